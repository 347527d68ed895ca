/* Free space that is enough in sum but nowhere in one run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "catalog/state.h"
#include "lib/world.h"

enum { CHUNKS = 16 };

/* Sixteen sessions of one chunk each fill the arena; those in even chunks are evicted. */
static void scatter(struct world *world, struct fc_key keys[CHUNKS][1])
{
	for (uint64_t session = 1; session <= CHUNKS; session++) {
		path_keys(session, 0, keys[session - 1], 1);
		assert_int_equal(save(world, session, 0, keys[session - 1], 1), 0);
	}
	assert_int_equal(world_chunks_used(world, FC_SSD), CHUNKS);
	for (uint64_t session = 1; session <= CHUNKS; session++) {
		struct fc_session_id id = world_session(world, session).id;
		const struct fc_session *found = fc_session_find(world->catalog, id);
		const struct fc_segment *segment =
			fc_container_of(found->segments.next, struct fc_segment, session_link);
		if (segment->chunk_first % 2 == 0)
			assert_int_equal(fc_catalog_evict(world->catalog, id), 0);
	}
	world_drain(world);
	assert_int_equal(world_chunks_used(world, FC_SSD), CHUNKS / 2);
}

static uint64_t sessions_stored(struct world *world, struct fc_key keys[CHUNKS][1])
{
	uint64_t count = 0;
	for (int session = 0; session < CHUNKS; session++)
		count += stored(world, keys[session], 1);
	return count;
}

static void a_turn_is_cut_into_pieces_before_a_session_is_reclaimed(void **state)
{
	(void)state;
	struct world world;
	struct fc_key keys[CHUNKS][1], path[3];
	world_init(&world, geometry_plain(100), 0, CHUNKS);
	assert_int_equal(world_open(&world), 0);
	scatter(&world, keys);
	path_keys(77, 0, path, 3);
	assert_int_equal(save(&world, 77, 0, path, 3), 0); /* 5,100 bytes and a header: two chunks in one run */
	assert_int_equal(stored(&world, path, 3), 3);
	assert_int_equal(sessions_stored(&world, keys), CHUNKS / 2);
	assert_int_equal(world_stats(&world).media[FC_SSD].sessions_reclaimed, 0);
	assert_string_equal(picture(&world, path, 3), "1 2");
	world_check(&world);
	world_deinit(&world);
}

static void space_that_is_too_little_in_sum_is_reclaimed(void **state)
{
	(void)state;
	struct world world;
	struct fc_key keys[CHUNKS][1], path[20];
	world_init(&world, geometry_plain(100), 0, CHUNKS);
	assert_int_equal(world_open(&world), 0);
	scatter(&world, keys);
	path_keys(77, 0, path, 20);
	assert_int_equal(save(&world, 77, 0, path, 20), 0); /* nine chunks; eight are free */
	assert_int_equal(stored(&world, path, 20), 20);
	assert_true(world_stats(&world).media[FC_SSD].sessions_reclaimed > 0);
	world_check(&world);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_is_cut_into_pieces_before_a_session_is_reclaimed),
		cmocka_unit_test(space_that_is_too_little_in_sum_is_reclaimed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

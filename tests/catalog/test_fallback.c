/* Memory that has no room for a turn: it goes to SSD, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/world.h"

/* Blocks and resume points of a turn are two segments, a chunk each; memory has `memory_chunks`. */
static void second_turn(struct world *world, uint64_t memory_chunks, struct fc_key keys[8])
{
	world_init(world, geometry_hybrid(1), memory_chunks, 64);
	assert_int_equal(world_open(world), 0);
	path_keys(1, 0, keys, 8);
	assert_int_equal(save(world, 7, 0, keys, 4), 0); /* a first turn: on SSD */
	assert_int_equal(save(world, 7, 1, keys, 8), 0);
	assert_int_equal(stored(world, keys, 8), 8);
	assert_int_equal(world_stats(world).saves_refused, 0);
	world_check(world);
}

static void a_turn_that_fits_stays_in_memory_with_its_resume_points(void **state)
{
	(void)state;
	struct world world;
	struct fc_key keys[8];
	second_turn(&world, 2, keys);
	assert_string_equal(picture(&world, keys, 8), "4 m4");
	world_deinit(&world);
}

static void a_turn_whose_resume_points_find_no_room_goes_to_ssd_with_them(void **state)
{
	(void)state;
	struct world world;
	struct fc_key keys[8];
	second_turn(&world, 1, keys);
	assert_string_equal(picture(&world, keys, 8), "4 4");
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_that_fits_stays_in_memory_with_its_resume_points),
		cmocka_unit_test(a_turn_whose_resume_points_find_no_room_goes_to_ssd_with_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Turns at the edge of what is allowed: none of them takes anything with it. */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LONG_PATH 400

static struct world world;

/* Windows that do not touch need a range each, and a segment has 64: so many points take several segments. */
static void a_turn_may_name_any_number_of_resume_points(void **state)
{
	(void)state;
	struct fc_key keys[LONG_PATH];
	uint64_t points[LONG_PATH / 4 - 1];
	struct put put;
	world_init(&world, geometry_hybrid(1), 0, 64);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, LONG_PATH);
	for (uint64_t i = 0; i < fc_array_len(points); i++)
		points[i] = 4 * (i + 1);
	put_init(&put, &world, 1, 0, keys, LONG_PATH);
	put.turn.resume_points = points;
	put.turn.resume_point_count = fc_array_len(points);
	assert_int_equal(put_reserve(&put), 0);
	/* 99 points and the end, 64 / 4 = 16 points a segment; and the blocks. */
	assert_int_equal(put.reservation.grant_count, 1 + 7);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	world_check(&world);
	for (uint64_t i = 0; i < fc_array_len(points); i++)
		assert_int_equal(stored(&world, keys, points[i] + 2), points[i]);
	assert_int_equal(stored(&world, keys, LONG_PATH), LONG_PATH);
	put_deinit(&put);
	world_deinit(&world);
}

static void a_turn_larger_than_any_address_does_not_fit(void **state)
{
	(void)state;
	const uint64_t count = (1ull << 16) + 2; /* blocks of 2^32 bytes: an address has 48 bits */
	struct fc_key *keys = malloc(count * sizeof(*keys));
	struct put put;
	struct fc_geometry geometry = geometry_plain(1);
	geometry.groups[0].slice_bytes[0] = (1ull << 31);
	geometry.groups[0].slice_bytes[1] = (1ull << 31);
	world_init(&world, geometry, 0, 8);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, count);
	put_init(&put, &world, 1, 0, keys, count);
	assert_int_equal(put_reserve(&put), FC_EFULL);
	assert_non_null(strstr(put.error.text, "do not fit"));
	assert_int_equal(world_stats(&world).saves_refused, 1);
	assert_int_equal(world_sessions(&world), 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 0);
	world_check(&world);
	put_deinit(&put);
	world_deinit(&world);
	free(keys);
}

static void a_store_that_is_only_read_takes_no_turn(void **state)
{
	(void)state;
	struct fc_key keys[8];
	struct put put;
	world_init(&world, geometry_plain(1), 0, 8);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	world.opts.is_read_only = true;
	assert_int_equal(world_reopen(&world, 0), 0);
	put_init(&put, &world, 1, 1, keys, 8);
	assert_int_equal(put_reserve(&put), FC_EINVAL);
	assert_string_equal(put.error.text, "save: the store is open for reading only");
	assert_int_equal(stored(&world, keys, 8), 4);
	assert_int_equal(world.media[FC_SSD]->media.counters.write_commands, 0);
	put_deinit(&put);
	world_deinit(&world);
}

/* A session that nobody named gets its id from its first own key, and {0, 0} is no id. */
static void no_key_makes_a_session_without_an_id(void **state)
{
	(void)state;
	struct fc_key keys[4];
	struct put put;
	world_init(&world, geometry_plain(1), 0, 8);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 4);
	keys[0] = (struct fc_key){0x636f6e7665727361ull, 0}; /* "conversa", with which a key is mixed */
	put_init(&put, &world, 0, 0, keys, 4);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put.reservation.session.high, 0);
	assert_int_equal(put.reservation.session.low, 1);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	assert_int_equal(world_session(&world, 1).segments, 1);
	put_deinit(&put);
	world_deinit(&world);
}

/* Layers 0 of hybrid: 14 bytes a block of group 0, 6 a block of group 2; checksums of 4 included. */
static void a_segment_is_as_long_as_its_longest_layer_allows(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_hybrid(1);
	assert_int_equal(fc_segment_blocks_max(&geometry, 0), UINT32_MAX / 2 * 2);
	assert_int_equal(fc_segment_blocks_max(&geometry, 12 + 28), 2);     /* one granule of two blocks */
	assert_int_equal(fc_segment_blocks_max(&geometry, 12 + 3 * 28), 6); /* three */
	assert_int_equal(fc_segment_blocks_max(&geometry, 1), 2);           /* never less than one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_may_name_any_number_of_resume_points),
		cmocka_unit_test(a_turn_larger_than_any_address_does_not_fit),
		cmocka_unit_test(a_store_that_is_only_read_takes_no_turn),
		cmocka_unit_test(no_key_makes_a_session_without_an_id),
		cmocka_unit_test(a_segment_is_as_long_as_its_longest_layer_allows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

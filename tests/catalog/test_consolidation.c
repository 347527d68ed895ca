/* Which small segments does a turn write again as part of its own, and what becomes of them? */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key keys[64], branch[64];

static void open_world(uint64_t memory_chunks, double ratio)
{
	world_init(&world, geometry_plain(1), memory_chunks, 32);
	world.opts.consolidate_ratio = ratio;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 64);
}

/* Saves a path turn by turn and draws its segments after each. */
static void assert_turns(uint64_t turn_first, const uint64_t *ends, const char *const *pictures)
{
	for (uint64_t turn = 0; pictures[turn] != NULL; turn++) {
		assert_int_equal(save(&world, 1, turn_first + turn, keys, ends[turn]), 0);
		assert_string_equal(picture(&world, keys, 64), pictures[turn]);
		assert_int_equal(stored(&world, keys, 64), ends[turn]);
		world_check(&world);
	}
}

static void ratio_0_leaves_one_segment_a_turn(void **state)
{
	(void)state;
	static const uint64_t ends[] = {4, 8, 10, 12};
	static const char *const pictures[] = {"4", "4 4", "4 4 2", "4 4 2 2", NULL};
	open_world(0, 0);
	assert_turns(0, ends, pictures);
	world_deinit(&world);
}

static void ratio_1_doubles(void **state)
{
	(void)state;
	static const uint64_t ends[] = {4, 8, 10, 12, 13, 16};
	static const char *const pictures[] = {
		"4",     "8", /* 4 <= 4 */
		"8 2",        /* 8 > 2 */
		"8 4",        /* 2 <= 2, then 8 > 4 */
		"8 4 1",      /* 4 > 1 */
		"16",         /* 1 <= 3, then 4 <= 4, then 8 <= 8 */
		NULL,
	};
	open_world(0, 1);
	assert_turns(0, ends, pictures);
	assert_int_equal(world_stats(&world).media[FC_SSD].segments_absorbed, 5);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1); /* all are gone that were absorbed */
	assert_int_equal(world_session(&world, 1).turns, 6);
	world_deinit(&world);
}

static void ratio_a_half_absorbs_what_is_half_as_large(void **state)
{
	(void)state;
	static const uint64_t ends[] = {4, 12, 20, 40};
	/* 4 <= 8 / 2; 12 > 8 / 2; 8 <= 20 / 2, then 12 <= 28 / 2 */
	static const char *const pictures[] = {"4", "12", "12 8", "40", NULL};
	open_world(0, 0.5);
	assert_turns(0, ends, pictures);
	world_deinit(&world);
}

static void only_what_the_device_holds_is_absorbed(void **state)
{
	(void)state;
	struct put put;
	open_world(0, 1);
	assert_int_equal(save(&world, 1, 0, keys, 2), 0);
	assert_int_equal(save(&world, 1, 1, keys, 3), 0);
	put_init(&put, &world, 1, 2, keys, 7);
	put.turn.resident[0].first_block = 1; /* the first block has been dropped from the device */
	put.turn.resident[0].count = 6;
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	put_deinit(&put);
	assert_string_equal(picture(&world, keys, 64), "2 5");
	world_deinit(&world);
}

static void another_sessions_segments_are_left_alone(void **state)
{
	(void)state;
	open_world(0, 1);
	assert_int_equal(save(&world, 1, 0, keys, 2), 0);
	assert_int_equal(save(&world, 2, 0, keys, 4), 0);
	assert_int_equal(save(&world, 2, 1, keys, 8), 0);
	assert_string_equal(picture(&world, keys, 64), "2 6");
	world_check(&world);
	world_deinit(&world);
}

static void what_was_absorbed_stays_until_its_heir_is_durable(void **state)
{
	(void)state;
	struct put put;
	open_world(0, 1);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	put_init(&put, &world, 1, 1, keys, 8);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	assert_string_equal(picture(&world, keys, 64), "8"); /* visible at once */
	assert_int_equal(put.durable_count, 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2);
	world_check(&world);
	world_poll(&world); /* its data are synced */
	world_poll(&world); /* header and entry are written */
	assert_int_equal(put.durable_count, 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2);
	world_poll(&world); /* and synced */
	assert_int_equal(put.durable_count, 1);
	assert_int_equal(put.durable_code, 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2); /* its entry is still on the medium */
	world_drain(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_check(&world);
	put_deinit(&put);
	world_deinit(&world);
}

static void what_was_absorbed_stays_until_its_leases_end(void **state)
{
	(void)state;
	struct fc_path path = {0};
	open_world(0, 1);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 4, 0, true, &path), 0);
	assert_int_equal(save(&world, 1, 1, keys, 8), 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2);
	verify_path(&world, &path, keys); /* the address is still valid */
	fc_catalog_release(world.catalog, &path);
	world_drain(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_check(&world);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

/* A branch takes the part of a segment that it uses; the rest stays what it was. */
static void a_branch_leaves_the_rest_to_the_other(void **state)
{
	(void)state;
	open_world(0, 1);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	memcpy(branch, keys, sizeof(branch));
	path_keys(2, 4, branch, 64);
	assert_int_equal(save(&world, 1, 1, branch, 12), 0); /* 8 new, 4 of the old segment */
	assert_string_equal(picture(&world, branch, 64), "12");
	assert_string_equal(picture(&world, keys, 64), "4 4");
	assert_int_equal(stored(&world, keys, 64), 8);
	assert_int_equal(stored(&world, branch, 64), 12);
	assert_int_equal(world_stats(&world).media[FC_SSD].segments_absorbed, 0);
	world_check(&world);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_int_equal(stored(&world, keys, 64), 8);
	assert_int_equal(stored(&world, branch, 64), 12);
	world_check(&world);
	world_deinit(&world);
}

/* A chat whose first turn went to SSD is then served from memory alone; the copy on SSD waits for the day when memory
 * is gone. */
static void memory_takes_a_small_first_turn_along_and_ssd_keeps_a_copy(void **state)
{
	(void)state;
	static const uint64_t ends[] = {4, 8, 12};
	static const char *const pictures[] = {"4", "m8", "m8 m4", NULL};
	open_world(16, 1);
	assert_turns(0, ends, pictures);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_crash(&world, 1);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(stored(&world, keys, 64), 4);
	world_check(&world);
	world_deinit(&world);
}

/* An agent session lies wholly on SSD: what lay in memory comes along, whatever the ratio, also from memory itself when
 * the device has dropped it. */
static void a_session_that_becomes_an_agents_leaves_memory(void **state)
{
	(void)state;
	for (int is_resident = 0; is_resident < 2; is_resident++) {
		struct put put;
		world_init(&world, geometry_plain(1), 16, 32);
		world.opts.agent_context_tokens = 4 * 12; /* tokens of 12 blocks */
		assert_int_equal(world_open(&world), 0);
		path_keys(1, 0, keys, 64);
		assert_int_equal(save(&world, 1, 0, keys, 4), 0);
		assert_int_equal(save(&world, 1, 1, keys, 8), 0);
		assert_int_equal(save(&world, 1, 2, keys, 12), 0);
		assert_string_equal(picture(&world, keys, 64), "4 m4 m4");
		put_init(&put, &world, 1, 3, keys, 13);
		if (!is_resident) {
			put.turn.resident[0].first_block = 12;
			put.turn.resident[0].count = 1;
		}
		assert_int_equal(put_reserve(&put), 0);
		/* What memory has to hand over is leased until the commit. */
		assert_int_equal(put.reservation.sources.placed_count, 3);
		assert_int_equal(put_finish(&put), 0);
		assert_string_equal(picture(&world, keys, 64), "4 9");
		assert_int_equal(world_chunks_used(&world, FC_MEMORY), 2); /* until the copy is durable */
		world_drain(&world);
		assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
		assert_int_equal(stored(&world, keys, 64), 13);
		world_check(&world);
		put_deinit(&put);
		world_deinit(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ratio_0_leaves_one_segment_a_turn),
		cmocka_unit_test(ratio_1_doubles),
		cmocka_unit_test(ratio_a_half_absorbs_what_is_half_as_large),
		cmocka_unit_test(only_what_the_device_holds_is_absorbed),
		cmocka_unit_test(another_sessions_segments_are_left_alone),
		cmocka_unit_test(what_was_absorbed_stays_until_its_heir_is_durable),
		cmocka_unit_test(what_was_absorbed_stays_until_its_leases_end),
		cmocka_unit_test(a_branch_leaves_the_rest_to_the_other),
		cmocka_unit_test(memory_takes_a_small_first_turn_along_and_ssd_keeps_a_copy),
		cmocka_unit_test(a_session_that_becomes_an_agents_leaves_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Many of everything: tables that grow while they are in use, and calls that find no memory for it. */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;

static void make_world(uint64_t chunks)
{
	world_init(&world, geometry_plain(1), 0, chunks);
	world.opts.index_shards = 1;
}

/* Fails every allocation from the k-th on; tells whether there was one. */
static void fail_at(uint64_t k)
{
	world.tracked.fail_at = world.tracked.call_count + k;
}

static bool has_failed(void)
{
	bool failed = world.tracked.call_count >= world.tracked.fail_at;
	world.tracked.fail_at = 0;
	return failed;
}

struct listing {
	uint64_t calls, limit;
	uint64_t chunk_bytes;
};

static bool on_session(void *context, const struct fc_session_info *info)
{
	struct listing *listing = context;
	assert_int_equal(info->segments, 1);
	return ++listing->calls < listing->limit;
}

static bool on_segment(void *context, const struct fc_segment_info *info)
{
	struct listing *listing = context;
	assert_true(info->is_kept);
	listing->chunk_bytes += info->bytes;
	return ++listing->calls < listing->limit;
}

static void a_listing_stops_when_it_is_told_to(void **state)
{
	(void)state;
	struct fc_key keys[4];
	make_world(16);
	assert_int_equal(world_open(&world), 0);
	for (uint64_t i = 1; i <= 5; i++) {
		path_keys(i, 0, keys, 4);
		assert_int_equal(save(&world, i, 0, keys, 4), 0);
	}
	assert_int_equal(fc_catalog_evict(world.catalog, (struct fc_session_id){0, 2}), 0); /* leaves a gap */
	world_drain(&world);
	struct listing sessions = {.limit = 3}, segments = {.limit = 3}, all = {.limit = 100};
	fc_catalog_sessions(world.catalog, on_session, &sessions);
	assert_int_equal(sessions.calls, 3);
	fc_catalog_segments(world.catalog, on_segment, &segments);
	assert_int_equal(segments.calls, 3);
	fc_catalog_segments(world.catalog, on_segment, &all);
	assert_int_equal(all.calls, 4);
	assert_int_equal(all.chunk_bytes, 4 * WORLD_CHUNK_BYTES);
	world_deinit(&world);
}

/* 1,100 sessions of one segment each: more than the first tables of sessions (256) and of segments (1,024) take. */
static void tables_of_sessions_and_segments_grow(void **state)
{
	(void)state;
	enum { COUNT = 1100 };
	struct fc_key key;
	make_world(COUNT);
	assert_int_equal(world_open(&world), 0);
	for (uint64_t i = 1; i <= COUNT; i++) {
		struct put put;
		path_keys(i, 0, &key, 1);
		put_init(&put, &world, i, 0, &key, 1);
		uint64_t k = 1;
		for (;; k++) {
			fail_at(k);
			int code = put_reserve(&put);
			(void)has_failed();
			if (code == FC_OK)
				break;
			assert_int_equal(code, FC_ENOMEM);
			if (i % 256 <= 1)
				world_check(&world);
		}
		assert_true(k > 1);
		assert_int_equal(put_finish(&put), 0);
		world_drain(&world);
		put_deinit(&put);
	}
	world_check(&world);
	assert_int_equal(world_sessions(&world), COUNT);
	assert_int_equal(world_chunks_used(&world, FC_SSD), COUNT);
	for (uint64_t i = 1; i <= COUNT; i += 90) {
		path_keys(i, 0, &key, 1);
		assert_int_equal(stored(&world, &key, 1), 1);
	}
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	assert_int_equal(world_sessions(&world), COUNT);
	world_deinit(&world);
}

/* One shard of 16 slots: a turn of 60 blocks makes it grow several times while names are given. */
static void a_turn_whose_names_find_no_memory_is_not_visible_at_all(void **state)
{
	(void)state;
	struct fc_key keys[64];
	uint64_t failures = 0;
	bool failed = true;
	path_keys(1, 0, keys, 64);
	for (uint64_t k = 1; failed; k++) {
		struct put put;
		make_world(16);
		assert_int_equal(world_open(&world), 0);
		assert_int_equal(save(&world, 1, 0, keys, 4), 0);
		put_init(&put, &world, 1, 1, keys, 64);
		assert_int_equal(put_reserve(&put), 0);
		assert_int_equal(put_write(&put), 0);
		fail_at(k);
		int code = put_commit(&put);
		failed = has_failed();
		world_check(&world);
		assert_true(code == FC_OK || (failed && code == FC_ENOMEM));
		world_drain(&world);
		if (code != FC_OK) {
			failures++;
			assert_int_equal(stored(&world, keys, 64), 4);
			assert_int_equal(world_stats(&world).blocks, 4);
		}
		put_deinit(&put);
		assert_int_equal(save(&world, 1, 1, keys, 64), 0);
		assert_int_equal(stored(&world, keys, 64), 64);
		world_deinit(&world);
	}
	assert_true(failures > 2);
}

/* Saves blocks 4 to `count` with the k-th allocation of the commit failing; true when one failed. Counts in `halves`
 * the commits that failed after their blocks were published. */
static bool commit_with_failure_at(uint64_t k, const struct fc_key *keys, uint64_t count, uint64_t *halves)
{
	struct put put;
	world_init(&world, geometry_hybrid(1), 0, 32);
	world.opts.index_shards = 1;
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	put_init(&put, &world, 1, 1, keys, count);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put.reservation.grant_count, 2);
	assert_int_equal(put_write(&put), 0);
	uint64_t blocks_before = world_stats(&world).blocks;
	fail_at(k);
	int code = put_commit(&put);
	bool failed = has_failed();
	assert_true(code == FC_OK || (failed && code == FC_ENOMEM));
	*halves += code != FC_OK && world_stats(&world).blocks > blocks_before;
	world_drain(&world);
	world_check(&world);
	assert_int_equal(put.durable_count, code == FC_OK ? 1 : 0);
	put_deinit(&put);
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	if (code != FC_OK || put.durable_code == FC_OK)
		assert_int_equal(stored(&world, keys, 40), code == FC_OK ? count : 4);
	world_deinit(&world);
	return failed;
}

/* The blocks are published and become durable, the resume point behind them is not, where the index has room for the
 * blocks alone: the caller, who was told that the commit failed, hears no more of it. */
static void what_a_failed_commit_left_becomes_durable_without_a_word(void **state)
{
	(void)state;
	struct fc_key keys[40];
	uint64_t halves = 0;
	path_keys(1, 0, keys, 40);
	for (uint64_t count = 6; count <= 40; count += 2)
		for (uint64_t k = 1; commit_with_failure_at(k, keys, count, &halves); k++)
			;
	assert_true(halves > 0);
}

static void an_open_whose_names_find_no_memory_gives_all_back(void **state)
{
	(void)state;
	struct fc_key keys[2][40];
	uint64_t k = 1;
	make_world(16);
	assert_int_equal(world_open(&world), 0);
	for (uint64_t i = 0; i < 2; i++) {
		path_keys(i, 0, keys[i], 40);
		assert_int_equal(save(&world, 1 + i, 0, keys[i], 40), 0);
	}
	world_close(&world);
	for (int code = FC_ENOMEM; code != FC_OK; k++) {
		fail_at(k);
		code = world_open(&world);
		assert_true(code == FC_OK || code == FC_ENOMEM);
		assert_true(has_failed() || code == FC_OK);
		if (code != FC_OK)
			assert_int_equal(world.tracked.bytes, 0);
	}
	assert_true(k > 15);
	world_check(&world);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(stored(&world, keys[i], 40), 40);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_stops_when_it_is_told_to),
		cmocka_unit_test(tables_of_sessions_and_segments_grow),
		cmocka_unit_test(a_turn_whose_names_find_no_memory_is_not_visible_at_all),
		cmocka_unit_test(what_a_failed_commit_left_becomes_durable_without_a_word),
		cmocka_unit_test(an_open_whose_names_find_no_memory_gives_all_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

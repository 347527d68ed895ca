/* Is every call that finds no memory without effect, and is none lost? Each call is made to fail at its first
 * allocation, its second, and so on, until it succeeds. */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key keys[16], branch[16];

static void make_world(void)
{
	world_init(&world, geometry_hybrid(1), 16, 64);
	world.opts.consolidate_ratio = 1;
	path_keys(1, 0, keys, 16);
	memcpy(branch, keys, sizeof(branch));
	path_keys(2, 6, branch, 16);
}

/* The k-th allocation from now on fails, and all after it. */
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

static void open_gives_all_back(void **state)
{
	(void)state;
	uint64_t k = 1;
	make_world();
	for (;; k++) {
		fail_at(k);
		int code = world_open(&world);
		bool failed = has_failed();
		if (code == FC_OK)
			break;
		assert_true(failed);
		assert_int_equal(code, FC_ENOMEM);
		assert_null(world.catalog);
		assert_int_equal(world.tracked.bytes, 0);
	}
	assert_true(k > 10);
	world_check(&world);
	world_deinit(&world);
}

/* Opens with one allocation more each time, until that is enough. */
static void open_at_last(void)
{
	for (uint64_t k = 1;; k++) {
		fail_at(k);
		int code = world_open(&world);
		bool failed = has_failed();
		if (code == FC_OK)
			return;
		assert_true(failed);
		assert_int_equal(code, FC_ENOMEM);
		assert_int_equal(world.tracked.bytes, 0);
	}
}

static void recovery_gives_all_back_and_loses_nothing(void **state)
{
	(void)state;
	make_world();
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	assert_int_equal(save(&world, 2, 0, branch, 10), 0);
	assert_int_equal(save(&world, 2, 1, branch, 16), 0);
	world_close(&world);
	open_at_last();
	world_check(&world);
	assert_int_equal(stored(&world, keys, 16), 8);
	assert_int_equal(stored(&world, branch, 16), 10); /* the last turn lay in memory */
	world_deinit(&world);
}

/* Without the head of a path its tail is dropped, which writes; an open that fails may leave no write under way. */
static void recovery_that_has_something_to_drop_waits_with_it(void **state)
{
	(void)state;
	struct fc_path path = {0};
	make_world();
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	assert_int_equal(save(&world, 2, 0, branch, 10), 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 8, 0, false, &path), 0);
	memset(world.media[FC_SSD]->image + fc_gva_offset(path.placed[0].base), 0, 64);
	fc_path_deinit(&path, &world.alloc);
	world_close(&world);
	open_at_last();
	world_check(&world);
	assert_int_equal(stored(&world, branch, 16), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0); /* frees without memory wait for the next turn */
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2);
	world_deinit(&world);
}

static void a_match_changes_nothing(void **state)
{
	(void)state;
	make_world();
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	assert_int_equal(world_reopen(&world, 0), 0); /* without scratch memory */
	struct fc_path path = {0};
	uint64_t k = 1;
	for (;; k++) {
		fail_at(k);
		int code = fc_catalog_match(world.catalog, keys, 16, 0, true, &path);
		(void)has_failed();
		if (code == FC_OK)
			break;
		assert_int_equal(code, FC_ENOMEM);
		assert_false(path.is_leased);
		assert_int_equal(world_stats(&world).leases, 0);
		world_check(&world);
	}
	assert_true(k > 2);
	assert_int_equal(path.blocks, 8);
	fc_catalog_release(world.catalog, &path);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

/* A turn with everything: a prompt in two places, its own blocks with what they absorb, and resume points. */
static void begin_turn(struct put *put, uint64_t turn, uint64_t blocks)
{
	put_init(put, &world, 2, turn, branch, blocks);
	put->turn.shared_blocks = 6;
}

static void a_reserve_leaves_no_trace(void **state)
{
	(void)state;
	struct put put;
	make_world();
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	struct fc_stats before = world_stats(&world);
	begin_turn(&put, 0, 10);
	uint64_t k = 1;
	for (;; k++) {
		fail_at(k);
		int code = put_reserve(&put);
		(void)has_failed();
		if (code == FC_OK)
			break;
		assert_int_equal(code, FC_ENOMEM);
		world_check(&world);
		assert_int_equal(world_sessions(&world), 1);
		assert_int_equal(world_stats(&world).media[FC_SSD].bytes_used, before.media[FC_SSD].bytes_used);
		assert_int_equal(world_stats(&world).media[FC_MEMORY].bytes_used, 0);
		assert_int_equal(world_stats(&world).leases, 0);
	}
	assert_true(k > 6);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	assert_int_equal(stored(&world, branch, 16), 10);
	put_deinit(&put);
	world_deinit(&world);
}

/* What of a turn is visible when its commit fails is whole; nothing that was there before is lost. */
static void a_commit_is_all_or_whole_parts(void **state)
{
	(void)state;
	uint64_t k = 1;
	for (bool failed = true; failed; k++) {
		struct put put;
		make_world();
		assert_int_equal(world_open(&world), 0);
		assert_int_equal(save(&world, 1, 0, keys, 8), 0);
		assert_int_equal(save(&world, 2, 1, branch, 8), 0);
		begin_turn(&put, 0, 12);
		assert_int_equal(put_reserve(&put), 0);
		assert_int_equal(put_write(&put), 0);
		fail_at(k);
		int code = put_commit(&put);
		failed = has_failed();
		assert_true(code == FC_OK || (failed && code == FC_ENOMEM));
		world_check(&world);
		world_drain(&world);
		world_check(&world);
		assert_int_equal(stored(&world, keys, 16), 8);
		assert_true(stored(&world, branch, 16) >= 8);
		if (code == FC_OK && put.durable_code == FC_OK)
			assert_int_equal(stored(&world, branch, 16), 12);
		put_deinit(&put);
		assert_int_equal(save(&world, 2, 0, branch, 12), 0);
		assert_int_equal(stored(&world, branch, 16), 12);
		world_check(&world);
		world_deinit(&world);
	}
	assert_true(k > 2);
}

/* The batch that makes it durable has its memory already: what was acknowledged stays, however little there is. */
static void what_is_visible_needs_no_memory_to_become_durable(void **state)
{
	(void)state;
	uint64_t k = 1;
	for (bool failed = true; failed && k < 40; k++) {
		struct put put;
		make_world();
		assert_int_equal(world_open(&world), 0);
		assert_int_equal(save(&world, 1, 0, keys, 4), 0);
		assert_int_equal(save(&world, 2, 1, branch, 8), 0);
		begin_turn(&put, 0, 12); /* a prompt and a turn, which absorbs the one before */
		assert_int_equal(put_reserve(&put), 0);
		assert_int_equal(put_write(&put), 0);
		fail_at(k);
		int code = put_commit(&put);
		world_drain(&world);
		failed = has_failed();
		world_check(&world);
		if (code == FC_OK) {
			assert_int_equal(put.durable_count, 1);
			assert_int_equal(put.durable_code, FC_OK);
			assert_int_equal(stored(&world, branch, 16), 12);
		}
		put_deinit(&put);
		world_deinit(&world);
	}
	assert_in_range(k, 3, 39);
}

/* Nothing at all is left between the commit and the end of its batch. */
static void a_batch_asks_for_no_memory(void **state)
{
	(void)state;
	struct put put;
	make_world();
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	put_init(&put, &world, 1, 0, keys, 8); /* absorbs the first turn, whose entry is then zeroed */
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	uint64_t calls = world.tracked.call_count;
	world_drain(&world);
	assert_int_equal(world.tracked.call_count, calls);
	assert_int_equal(put.durable_code, FC_OK);
	put_deinit(&put);
	world_deinit(&world);
}

static void losses_ask_for_no_memory(void **state)
{
	(void)state;
	struct fc_session_id id = {0, 1};
	make_world();
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	assert_int_equal(save(&world, 2, 0, branch, 8), 0);
	fail_at(1);
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_drain(&world);
	assert_false(has_failed());
	world_check(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 0);
	assert_int_equal(stored(&world, keys, 16), 0);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	world_check(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2);
	world_deinit(&world);
}

/* Two sessions wrote blocks 6 and 7 at the same time. The one whose copy is named loses them, and the other's copy
 * takes over; whoever stands on them must hold its session from now on, which is one more than there was room for. */
static void a_second_copy_takes_over_or_goes(void **state)
{
	(void)state;
	struct fc_key beyond[12];
	for (uint64_t k = 0;; k++) {
		struct put first, second;
		struct fc_path path = {0};
		world_init(&world, geometry_plain(1), 0, 16);
		assert_int_equal(world_open(&world), 0);
		for (uint64_t i = 1; i <= 3; i++)
			assert_int_equal(save(&world, i, 0, keys, 2 * i), 0);
		put_init(&first, &world, 4, 0, keys, 8);
		put_init(&second, &world, 5, 0, keys, 10);
		assert_int_equal(put_reserve(&first), 0);
		assert_int_equal(put_reserve(&second), 0);
		assert_int_equal(put_finish(&first), 0);
		assert_int_equal(put_finish(&second), 0);
		world_drain(&world);
		put_deinit(&first);
		put_deinit(&second);
		memcpy(beyond, keys, 8 * sizeof(*keys));
		path_keys(7, 8, beyond, 12);
		assert_int_equal(save(&world, 6, 0, beyond, 12), 0); /* stands on 1, 2, 3 and 4 */
		assert_int_equal(fc_catalog_match(world.catalog, keys, 8, 0, false, &path), 0);
		struct fc_segment *lost = path.placed[3].segment;
		fc_path_deinit(&path, &world.alloc);
		if (k > 0)
			fail_at(k);
		fc_catalog_cut(world.catalog, lost, 0);
		bool failed = k > 0 && has_failed();
		world_check(&world);
		world_drain(&world);
		world_check(&world);
		uint64_t depth = stored(&world, beyond, 12);
		assert_true(depth == 12 || (failed && depth == 6));
		assert_int_equal(save(&world, 6, 0, beyond, 12), 0);
		assert_int_equal(stored(&world, beyond, 12), 12);
		world_deinit(&world);
		if (k > 0 && !failed) {
			assert_true(k > 1);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_gives_all_back),
		cmocka_unit_test(recovery_gives_all_back_and_loses_nothing),
		cmocka_unit_test(recovery_that_has_something_to_drop_waits_with_it),
		cmocka_unit_test(a_match_changes_nothing),
		cmocka_unit_test(a_reserve_leaves_no_trace),
		cmocka_unit_test(a_commit_is_all_or_whole_parts),
		cmocka_unit_test(what_is_visible_needs_no_memory_to_become_durable),
		cmocka_unit_test(a_batch_asks_for_no_memory),
		cmocka_unit_test(losses_ask_for_no_memory),
		cmocka_unit_test(a_second_copy_takes_over_or_goes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How deep is a path stored, and from where can it be resumed? */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key keys[16], branch[16];

static void open_world(struct fc_geometry geometry)
{
	world_init(&world, geometry, 16, 32);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 16);
}

/* Another path that leaves the first at block `at`. */
static void leave_at(uint64_t at)
{
	memcpy(branch, keys, sizeof(branch));
	path_keys(2, at, branch, 16);
}

static void save_with_points(uint64_t session, const struct fc_key *path, uint64_t count, const uint64_t *points,
			     uint64_t point_count)
{
	struct put put;
	put_init(&put, &world, session, 0, path, count);
	put.turn.resume_points = points;
	put.turn.resume_point_count = point_count;
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	put_deinit(&put);
}

static void assert_match(const struct fc_key *path_of, uint64_t count, uint64_t blocks, uint64_t stored_blocks)
{
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(world.catalog, path_of, count, 0, false, &path), 0);
	verify_path(&world, &path, path_of);
	assert_int_equal(path.blocks, blocks);
	assert_int_equal(path.stored_blocks, stored_blocks);
	fc_path_deinit(&path, &world.alloc);
}

static void a_plain_path_matches_as_far_as_it_is_stored(void **state)
{
	(void)state;
	open_world(geometry_plain(1));
	assert_match(keys, 16, 0, 0);
	assert_int_equal(save(&world, 1, 0, keys, 6), 0);
	assert_int_equal(save(&world, 1, 0, keys, 10), 0);
	assert_match(keys, 16, 10, 10);
	assert_match(keys, 3, 3, 3);
	assert_match(keys, 0, 0, 0);
	leave_at(7);
	assert_match(branch, 16, 7, 7);
	leave_at(0);
	assert_match(branch, 16, 0, 0);
	assert_string_equal(picture(&world, keys, 16), "6 4");
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(world.catalog, keys, 16, 8, false, &path), 0);
	assert_int_equal(path.blocks, 8);
	assert_int_equal(path.stored_blocks, 10);
	assert_int_equal(path.bytes[FC_SSD], 8 * 17);
	assert_int_equal(path.placed_count, 2);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

static void the_end_of_a_turn_is_a_resume_point_and_what_lies_before_is_not(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1));
	assert_int_equal(save(&world, 1, 0, keys, 6), 0);
	assert_match(keys, 16, 6, 6);
	assert_match(keys, 7, 6, 6);
	assert_match(keys, 5, 0, 5); /* all blocks are there, but no window and no state at 4 or 2 */
	world_deinit(&world);
}

static void odd_ends_are_cut_down_to_the_granule(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1));
	assert_int_equal(save(&world, 1, 0, keys, 7), 0); /* a granule is two blocks */
	assert_match(keys, 16, 6, 6);
	assert_int_equal(save(&world, 1, 0, keys, 1), 0);
	world_deinit(&world);
}

static void named_points_can_be_resumed_from(void **state)
{
	(void)state;
	static const uint64_t points[] = {2, 4};
	open_world(geometry_hybrid(1));
	save_with_points(1, keys, 8, points, 2);
	assert_match(keys, 8, 8, 8);
	assert_match(keys, 7, 4, 7);
	assert_match(keys, 4, 4, 4);
	assert_match(keys, 3, 2, 3);
	/* A path that leaves inside the last window, [6, 8), or before it. */
	static const struct {
		uint64_t at, blocks;
	} branches[] = {{7, 4}, {6, 4}, {5, 4}, {4, 4}, {3, 2}, {2, 2}, {1, 0}};
	for (size_t i = 0; i < fc_array_len(branches); i++) {
		leave_at(branches[i].at);
		/* Group 1 has two path blocks in one, and of its last one here only the first. */
		assert_match(branch, 16, branches[i].blocks, branches[i].at - branches[i].at % 2);
	}
	world_deinit(&world);
}

/* A window of 14 tokens: behind block 4 it is [0, 4), behind block 6 [2, 6). */
static void a_window_may_lie_in_two_segments(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_hybrid(1);
	geometry.groups[2].window_tokens = 14;
	open_world(geometry);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	assert_int_equal(save(&world, 1, 0, keys, 6), 0);
	assert_match(keys, 16, 6, 6);
	assert_match(keys, 4, 4, 4); /* blocks 2 and 3 of the window are the second turn's now */
	/* Another session's turn leaves blocks 2 and 3 where they are, and adds its own. */
	leave_at(4);
	assert_int_equal(save(&world, 2, 0, branch, 6), 0);
	assert_match(branch, 16, 6, 6);
	assert_match(keys, 16, 6, 6);
	world_check(&world);
	world_deinit(&world);
}

static void looking_changes_nothing(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1));
	assert_int_equal(save(&world, 1, 0, keys, 6), 0);
	leave_at(0);
	assert_int_equal(save(&world, 2, 0, branch, 6), 0);
	struct fc_stats before = world_stats(&world);
	uint64_t used_before = world_session(&world, 1).used_seq;
	assert_match(keys, 16, 6, 6);
	assert_match(branch, 16, 6, 6);
	struct fc_stats after = world_stats(&world);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(world_session(&world, 1).used_seq, used_before);
	world_deinit(&world);
}

static void a_lease_keeps_a_session_and_counts_as_use(void **state)
{
	(void)state;
	struct fc_path path = {0};
	open_world(geometry_hybrid(1));
	assert_int_equal(save(&world, 1, 0, keys, 6), 0);
	leave_at(0);
	assert_int_equal(save(&world, 2, 0, branch, 6), 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 6, 0, true, &path), 0);
	assert_true(world_session(&world, 1).used_seq > world_session(&world, 2).used_seq);
	assert_int_equal(world_stats(&world).leases, 1);
	struct fc_session_id id = {0, 1};
	assert_int_equal(fc_catalog_evict(world.catalog, id), FC_EBUSY);
	world_check(&world);
	fc_catalog_release(world.catalog, &path);
	fc_catalog_release(world.catalog, &path);                        /* again: nothing happens */
	assert_int_equal(path.bytes[FC_MEMORY] + path.bytes[FC_SSD], 0); /* of no segment */
	assert_int_equal(world_stats(&world).leases, 0);
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	assert_int_equal(fc_catalog_evict(world.catalog, id), FC_ENOENT);
	assert_match(keys, 6, 0, 0);
	world_check(&world);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

static void damage_shortens_a_path_and_takes_what_stands_behind_it(void **state)
{
	(void)state;
	struct fc_path path = {0};
	open_world(geometry_plain(1));
	assert_int_equal(save(&world, 1, 0, keys, 6), 0);
	assert_int_equal(save(&world, 1, 0, keys, 10), 0);
	leave_at(2);
	assert_int_equal(save(&world, 2, 0, branch, 5), 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 6, 0, true, &path), 0);
	fc_catalog_cut(world.catalog, path.placed[0].segment, 4);
	fc_catalog_release(world.catalog, &path);
	world_check(&world);
	assert_match(keys, 16, 4, 4);   /* block 4 is bad, [6, 10) stood on it */
	assert_match(branch, 16, 5, 5); /* left before */
	assert_int_equal(world_stats(&world).sessions_cut, 1);
	/* The next turn writes the bad blocks again, and damage is never named again. */
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	assert_string_equal(picture(&world, keys, 16), "4 4");
	assert_match(keys, 16, 8, 8);
	world_check(&world);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

static void a_damaged_window_costs_its_resume_points_only(void **state)
{
	(void)state;
	static const uint64_t points[] = {4};
	struct fc_path path = {0};
	open_world(geometry_hybrid(1));
	save_with_points(1, keys, 4, NULL, 0);
	save_with_points(1, keys, 8, points, 1);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 8, 0, true, &path), 0);
	for (uint32_t i = 0; i < path.span_count; i++)
		if (path.spans[i].group == 2)
			fc_catalog_cut(world.catalog, path.placed[path.spans[i].placed].segment,
				       path.spans[i].entry_first);
	fc_catalog_release(world.catalog, &path);
	world_check(&world);
	assert_match(keys, 8, 4, 8);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_path_matches_as_far_as_it_is_stored),
		cmocka_unit_test(the_end_of_a_turn_is_a_resume_point_and_what_lies_before_is_not),
		cmocka_unit_test(odd_ends_are_cut_down_to_the_granule),
		cmocka_unit_test(named_points_can_be_resumed_from),
		cmocka_unit_test(a_window_may_lie_in_two_segments),
		cmocka_unit_test(looking_changes_nothing),
		cmocka_unit_test(a_lease_keeps_a_session_and_counts_as_use),
		cmocka_unit_test(damage_shortens_a_path_and_takes_what_stands_behind_it),
		cmocka_unit_test(a_damaged_window_costs_its_resume_points_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

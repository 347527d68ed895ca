/* Does a turn take what it needs and nothing else, for the right session, on the right medium? */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key keys[64], branch[64];

static void open_world(struct fc_geometry geometry, uint64_t memory_chunks, uint64_t ssd_chunks)
{
	world_init(&world, geometry, memory_chunks, ssd_chunks);
	path_keys(1, 0, keys, 64);
	memcpy(branch, keys, sizeof(branch));
}

/* Everything that statistics tell but how much I/O there was. */
static void assert_same_stock(const struct fc_stats *before)
{
	struct fc_stats after = world_stats(&world);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		assert_int_equal(after.media[medium].bytes_used, before->media[medium].bytes_used);
		assert_int_equal(after.media[medium].bytes_stored, before->media[medium].bytes_stored);
		assert_int_equal(after.media[medium].segments, before->media[medium].segments);
		assert_int_equal(after.media[medium].sessions, before->media[medium].sessions);
		assert_int_equal(after.media[medium].bytes_written, before->media[medium].bytes_written);
	}
	assert_int_equal(after.blocks, before->blocks);
	assert_int_equal(after.leases, before->leases);
	world_check(&world);
}

static int try_save(struct put *put)
{
	int code = put_reserve(put);
	if (code == FC_OK)
		code = put_finish(put);
	world_drain(&world);
	put_deinit(put);
	return code;
}

/* ---- leaving no trace ---- */

static void a_turn_without_room_leaves_no_trace(void **state)
{
	(void)state;
	open_world(geometry_plain(100), 0, 8);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	struct fc_path lease = {0};
	assert_int_equal(fc_catalog_match(world.catalog, keys, 4, 0, true, &lease), 0);
	struct fc_stats before = world_stats(&world);
	uint64_t sessions = world_sessions(&world);
	struct put put;
	path_keys(2, 0, branch, 64);
	put_init(&put, &world, 2, 0, branch, 64); /* 64 x 1.7 KB, and there are 32 KiB */
	assert_int_equal(try_save(&put), FC_EFULL);
	assert_non_null(strstr(put.error.text, "108800 new bytes do not fit"));
	assert_same_stock(&before);
	assert_int_equal(world_sessions(&world), sessions);
	assert_int_equal(world_stats(&world).saves_refused, 1);
	fc_catalog_release(world.catalog, &lease);
	fc_path_deinit(&lease, &world.alloc);
	world_deinit(&world);
}

static void a_new_block_without_a_slot_is_an_error_by_name(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1), 0, 16);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	struct fc_stats before = world_stats(&world);
	struct put put;
	put_init(&put, &world, 1, 0, keys, 10);
	put.turn.resident[1].first_block = 3; /* covers path blocks from 6 on */
	put.turn.resident[1].count = 2;
	assert_int_equal(try_save(&put), FC_EINVAL);
	assert_non_null(strstr(put.error.text, "path block 4 is new, but slots are given from block 6 on"));
	put_init(&put, &world, 1, 0, keys, 10);
	put.turn.resident[0].count = 9; /* the last one is missing */
	assert_int_equal(try_save(&put), FC_EINVAL);
	assert_non_null(strstr(put.error.text, "from block 10 on"));
	put_init(&put, &world, 1, 0, keys, 10);
	put.turn.resident[2].count = 9; /* the window's last */
	assert_int_equal(try_save(&put), FC_EINVAL);
	assert_non_null(strstr(put.error.text, "resume point 10"));
	assert_same_stock(&before);
	world_deinit(&world);
}

static void resume_points_that_cannot_be_are_refused_by_name(void **state)
{
	(void)state;
	static const uint64_t wrong[][2] = {{0, 4}, {3, 4}, {4, 4}, {6, 4}, {4, 12}};
	open_world(geometry_hybrid(1), 0, 16);
	assert_int_equal(world_open(&world), 0);
	struct fc_stats before = world_stats(&world);
	for (size_t i = 0; i < fc_array_len(wrong); i++) {
		struct put put;
		put_init(&put, &world, 1, 0, keys, 10);
		put.turn.resume_points = wrong[i];
		put.turn.resume_point_count = 2;
		assert_int_equal(try_save(&put), FC_EINVAL);
		assert_non_null(strstr(put.error.text, "ascending multiples of 2 up to 10 are allowed"));
	}
	assert_same_stock(&before);
	world_deinit(&world);
}

static void a_turn_that_is_given_up_leaves_no_trace(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1), 16, 16);
	assert_int_equal(world_open(&world), 0);
	struct fc_stats before = world_stats(&world);
	struct put put;
	put_init(&put, &world, 1, 1, keys, 10);
	put.turn.shared_blocks = 4;
	assert_int_equal(put_reserve(&put), 0);
	assert_true(world_chunks_used(&world, FC_MEMORY) > 0);
	assert_int_equal(stored(&world, keys, 10), 0); /* invisible before the commit */
	world_check(&world);
	put_abort(&put);
	put_deinit(&put);
	assert_same_stock(&before);
	assert_int_equal(world_sessions(&world), 0);
	world_deinit(&world);
}

static void saving_what_is_stored_is_free(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1), 16, 32);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 10), 0);
	struct fc_stats before = world_stats(&world);
	for (uint64_t session = 0; session < 3; session++) { /* inferred, the same, another */
		struct put put;
		put_init(&put, &world, session, 0, keys, 10);
		assert_int_equal(put_reserve(&put), 0);
		assert_int_equal(put.reservation.grant_count, 0);
		assert_int_equal(put.reservation.blocks_new, 0);
		assert_int_equal(put.reservation.bytes_new, 0);
		assert_int_equal(put_commit(&put), 0);
		assert_int_equal(put.reservation.durable_pending, 0);
		put_deinit(&put);
		assert_same_stock(&before);
	}
	assert_int_equal(world_sessions(&world), 1);
	world_deinit(&world);
}

static void a_turn_whose_head_was_cut_meanwhile_is_not_committed(void **state)
{
	(void)state;
	struct fc_path path = {0};
	struct put put;
	open_world(geometry_plain(1), 0, 16);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	put_init(&put, &world, 1, 0, keys, 10);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_write(&put), 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 4, 0, true, &path), 0);
	fc_catalog_cut(world.catalog, path.placed[0].segment, 2);
	fc_catalog_release(world.catalog, &path);
	assert_int_equal(put_commit(&put), FC_ENOENT);
	world_drain(&world);
	assert_int_equal(put.durable_count, 0);
	world_check(&world);
	assert_int_equal(stored(&world, keys, 10), 2);
	put_deinit(&put);
	fc_path_deinit(&path, &world.alloc);
	world_deinit(&world);
}

/* Two sessions say the same at the same time: the second one's copy is spare, and stands in when the first one goes. */
static void turns_that_overlap_end_up_stored_once(void **state)
{
	(void)state;
	struct put first, second;
	struct fc_session_id id = {0, 1};
	open_world(geometry_plain(1), 0, 16);
	assert_int_equal(world_open(&world), 0);
	put_init(&first, &world, 1, 0, keys, 6);
	put_init(&second, &world, 2, 0, keys, 10);
	assert_int_equal(put_reserve(&first), 0);
	assert_int_equal(put_reserve(&second), 0);
	assert_int_equal(put_finish(&first), 0);
	assert_int_equal(put_finish(&second), 0);
	world_drain(&world);
	world_check(&world);
	assert_string_equal(picture(&world, keys, 10), "6 4");
	assert_int_equal(world_session(&world, 1).dependents, 1);
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_check(&world);
	assert_string_equal(picture(&world, keys, 10), "10");
	assert_int_equal(stored(&world, keys, 10), 10);
	put_deinit(&first);
	put_deinit(&second);
	world_deinit(&world);
}

/* ---- sessions ---- */

static struct fc_session_id infer(const struct fc_key *path, uint64_t count, uint64_t shared_blocks)
{
	struct put put;
	put_init(&put, &world, 0, 0, path, count);
	put.turn.shared_blocks = shared_blocks;
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	struct fc_session_id id = put.reservation.session;
	put_deinit(&put);
	return id;
}

static void a_session_is_inferred_from_the_deepest_stored_block(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 16, 64);
	assert_int_equal(world_open(&world), 0);
	struct fc_session_id first = infer(keys, 8, 0);
	struct fc_session_id going_on = infer(keys, 12, 0);
	assert_memory_equal(&going_on, &first, sizeof(first));
	path_keys(2, 10, branch, 64); /* an edited history */
	struct fc_session_id edited = infer(branch, 14, 0);
	assert_memory_equal(&edited, &first, sizeof(first));
	path_keys(3, 4, branch, 64); /* only the system prompt is the same */
	struct fc_session_id other = infer(branch, 12, 4);
	assert_memory_not_equal(&other, &first, sizeof(first));
	struct fc_session_id other_going_on = infer(branch, 16, 4);
	assert_memory_equal(&other_going_on, &other, sizeof(other));
	path_keys(4, 0, branch, 64);
	struct fc_session_id new = infer(branch, 4, 0);
	assert_memory_not_equal(&new, &first, sizeof(first));
	assert_memory_not_equal(&new, &other, sizeof(other));
	world_check(&world);
	world_deinit(&world);
}

static void sessions_know_their_turns_blocks_and_extents(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 64);
	assert_int_equal(world_open(&world), 0);
	for (uint64_t turn = 0; turn < 4; turn++) { /* two sessions in turns, each grows in place */
		path_keys(2, 0, branch, 64);
		assert_int_equal(save(&world, 1, turn, keys, 4 + 4 * turn), 0);
		assert_int_equal(save(&world, 2, turn, branch, 4 + 4 * turn), 0);
	}
	struct fc_session_info info = world_session(&world, 2);
	assert_int_equal(info.turns, 4);
	assert_int_equal(info.blocks, 16);
	assert_int_equal(info.segments, 4);
	assert_int_equal(info.extents, 1);
	assert_int_equal(info.bytes[FC_SSD], 4 * WORLD_CHUNK_BYTES);
	assert_int_equal(info.dependents, 0);
	world_deinit(&world);
}

/* ---- placement ---- */

static void turns_go_where_their_signals_send_them(void **state)
{
	(void)state;
	/* 4 tokens a block, an agent has more than 40 tokens, a reply of 100 is long */
	static const struct {
		uint64_t turn, blocks, reply_tokens;
		const char *picture;
	} turns[] = {
		{0, 4, 0, "4"},   {1, 4, 0, "m4"},  {1, 10, 0, "m10"},  {1, 11, 0, "11"},
		{9, 4, 99, "m4"}, {9, 4, 100, "4"}, {0, 11, 500, "11"},
	};
	open_world(geometry_plain(1), 16, 16);
	world.opts.agent_context_tokens = 40;
	world.opts.long_reply_tokens = 100;
	assert_int_equal(world_open(&world), 0);
	for (size_t i = 0; i < fc_array_len(turns); i++) {
		struct put put;
		path_keys(100 + i, 0, keys, 64);
		put_init(&put, &world, 1 + i, turns[i].turn, keys, turns[i].blocks);
		put.turn.previous_reply_tokens = turns[i].reply_tokens;
		assert_int_equal(try_save(&put), 0);
		assert_string_equal(picture(&world, keys, 64), turns[i].picture);
	}
	world_deinit(&world);
}

static void what_memory_has_no_room_for_goes_to_ssd(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1), 2, 32);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 1, keys, 4), 0); /* two segments: blocks, and its resume point */
	struct fc_path lease = {0};
	assert_int_equal(fc_catalog_match(world.catalog, keys, 4, 0, true, &lease), 0);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 2);
	path_keys(2, 0, branch, 64);
	assert_int_equal(save(&world, 2, 1, branch, 4), 0);
	assert_string_equal(picture(&world, branch, 4), "4");
	assert_int_equal(stored(&world, branch, 4), 4);
	fc_catalog_release(world.catalog, &lease);
	fc_path_deinit(&lease, &world.alloc);
	world_deinit(&world);
}

static void one_medium_is_enough(void **state)
{
	(void)state;
	for (int only = 0; only < FC_MEDIUM_COUNT; only++) {
		open_world(geometry_hybrid(1), only == FC_MEMORY ? 32 : 0, only == FC_SSD ? 32 : 0);
		assert_int_equal(world_open(&world), 0);
		assert_int_equal(save(&world, 1, 0, keys, 4), 0);
		assert_int_equal(save(&world, 1, 1, keys, 8), 0);
		assert_int_equal(stored(&world, keys, 8), 8);
		assert_string_equal(picture(&world, keys, 8), only == FC_MEMORY ? "m4 m4" : "4 4");
		world_check(&world);
		world_deinit(&world);
	}
	open_world(geometry_plain(1), 0, 0);
	assert_int_equal(world_open(&world), FC_EINVAL);
	world_deinit(&world);
}

static void no_layer_of_a_segment_is_longer_than_the_limit(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 32);
	world.opts.area_bytes_max = 4 * (10 + 4) + 13; /* four blocks of the largest slices */
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	assert_int_equal(save(&world, 1, 0, keys, 15), 0);
	assert_string_equal(picture(&world, keys, 64), "4 4 4 3");
	assert_int_equal(stored(&world, keys, 15), 15);
	world_check(&world);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_without_room_leaves_no_trace),
		cmocka_unit_test(a_new_block_without_a_slot_is_an_error_by_name),
		cmocka_unit_test(resume_points_that_cannot_be_are_refused_by_name),
		cmocka_unit_test(a_turn_that_is_given_up_leaves_no_trace),
		cmocka_unit_test(saving_what_is_stored_is_free),
		cmocka_unit_test(a_turn_whose_head_was_cut_meanwhile_is_not_committed),
		cmocka_unit_test(turns_that_overlap_end_up_stored_once),
		cmocka_unit_test(a_session_is_inferred_from_the_deepest_stored_block),
		cmocka_unit_test(sessions_know_their_turns_blocks_and_extents),
		cmocka_unit_test(turns_go_where_their_signals_send_them),
		cmocka_unit_test(what_memory_has_no_room_for_goes_to_ssd),
		cmocka_unit_test(one_medium_is_enough),
		cmocka_unit_test(no_layer_of_a_segment_is_longer_than_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

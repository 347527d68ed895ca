/* What is left after the power fails, or the medium refuses, at any moment? A script of turns is run again and again,
 * each time with the fault one operation later, until nothing fails any more. */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define STEPS 9u
#define SEEDS 4u

/* Session 1 grows by consolidation, session 2 branches off, session 3 shares a prompt; then session 2 is evicted, and
 * session 4 takes its place. A step saves a path, or (0 blocks) evicts the session. */
static const struct {
	uint64_t session, path, blocks, shared_blocks;
} script[STEPS] = {
	{1, 0, 4, 0}, {1, 0, 8, 0}, {1, 0, 10, 0}, {2, 1, 12, 0}, {1, 0, 12, 0},
	{3, 2, 8, 4}, {2, 1, 0, 0}, {4, 3, 10, 0}, {3, 2, 12, 4},
};

static struct world world;
static struct fc_key paths[4][16];
static struct put turns[STEPS];
static bool is_begun[STEPS], is_committed[STEPS], is_lost[STEPS];

static void open_world(void)
{
	world_init(&world, geometry_hybrid(20), 0, 48);
	world.opts.consolidate_ratio = 1;
	for (uint64_t path = 0; path < 4; path++)
		path_keys(100 + path, 0, paths[path], 16);
	memcpy(paths[1], paths[0], 6 * sizeof(struct fc_key));
	path_keys(201, 6, paths[1], 16);
	memcpy(paths[2], paths[0], 4 * sizeof(struct fc_key));
	path_keys(202, 4, paths[2], 16);
	assert_int_equal(world_open(&world), 0);
}

/* The eviction takes session 2, and, if the medium refused what others had written before, also who stands on it. */
static void on_loss(void *context, struct fc_session_id id)
{
	(void)context;
	for (uint64_t step = 0; step < STEPS; step++)
		is_lost[step] |= is_begun[step] && script[step].session == id.low;
}

/* Goes on to the next step before the last one is durable, so that turns share batches. */
static void run_script(void)
{
	memset(is_begun, 0, sizeof(is_begun));
	memset(is_committed, 0, sizeof(is_committed));
	memset(is_lost, 0, sizeof(is_lost));
	fc_catalog_on_loss(world.catalog, on_loss, NULL);
	for (uint64_t step = 0; step < STEPS; step++) {
		struct put *put = &turns[step];
		is_begun[step] = true;
		put_init(put, &world, script[step].session, 0, paths[script[step].path], script[step].blocks);
		put->turn.shared_blocks = script[step].shared_blocks;
		if (script[step].blocks > 0) {
			is_committed[step] = put_reserve(put) == FC_OK && put_finish(put) == FC_OK;
		} else {
			struct fc_session_id id = {0, script[step].session};
			int code = fc_catalog_evict(world.catalog, id);
			assert_true(code == FC_OK || code == FC_ENOENT);
		}
		if (step % 3 == 2)
			world_poll(&world);
	}
}

static bool is_durable(uint64_t step)
{
	const struct put *put = &turns[step];
	return is_committed[step] && put_is_settled(put) && put->reservation.durable_code == FC_OK;
}

static void end_puts(void)
{
	for (uint64_t step = 0; step < STEPS; step++)
		if (is_begun[step])
			put_deinit(&turns[step]);
}

static void assert_durable_turns_are_there(const bool *was_durable)
{
	for (uint64_t step = 0; step < STEPS; step++) {
		const struct fc_key *path = paths[script[step].path];
		uint64_t blocks = stored(&world, path, 16); /* also compares every byte */
		if (was_durable[step] && !is_lost[step])
			assert_true(blocks >= script[step].blocks);
	}
}

static void assert_nothing_else_is_there(void)
{
	for (uint64_t path = 0; path < 4; path++) {
		uint64_t deepest = 0;
		for (uint64_t step = 0; step < STEPS; step++)
			for (uint64_t i = 0; is_begun[step] && i <= script[step].blocks; i++)
				if (memcmp(paths[script[step].path], paths[path], i * sizeof(struct fc_key)) == 0)
					deepest = fc_max_u64(deepest, i);
		assert_true(stored(&world, paths[path], 16) <= deepest);
	}
}

/* Runs the script on a medium that dies at operation `die_at`; false when it was over before. */
static bool crash_at(uint64_t die_at, uint64_t seed)
{
	bool was_durable[STEPS] = {false};
	open_world();
	uint64_t opened_at = world.media[FC_SSD]->op_count;
	world.media[FC_SSD]->die_at = opened_at + die_at;
	world.media[FC_SSD]->shuffle_seed = seed % 2 == 0 ? 0 : seed;
	run_script();
	world_drain(&world);
	bool has_died = world.media[FC_SSD]->is_dead;
	for (uint64_t step = 0; step < STEPS; step++)
		was_durable[step] = is_begun[step] && is_durable(step);
	world_crash(&world, seed);
	end_puts();
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_durable_turns_are_there(was_durable);
	assert_nothing_else_is_there();
	world_drain(&world);
	world_check(&world);
	/* And a second time, now without any unsynced write. */
	uint64_t chunks = world_chunks_used(&world, FC_SSD);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_durable_turns_are_there(was_durable);
	assert_int_equal(world_chunks_used(&world, FC_SSD), chunks);
	world_deinit(&world);
	return has_died;
}

static void durable_turns_survive_a_power_failure_at_any_operation(void **state)
{
	(void)state;
	uint64_t die_at = 1;
	for (bool has_died = true; has_died; die_at++) {
		has_died = false;
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			has_died |= crash_at(die_at, 10 * die_at + seed);
	}
	assert_true(die_at > 30); /* the script does so much at least */
}

static bool refuse_at(uint64_t fail_at, uint64_t fail_count, bool is_short)
{
	bool was_durable[STEPS] = {false};
	open_world();
	struct fake_media *ssd = world.media[FC_SSD];
	ssd->fail_at = ssd->op_count + fail_at;
	ssd->fail_count = fail_count;
	ssd->is_short = is_short;
	run_script();
	world_drain(&world);
	world_check(&world);
	bool has_failed = ssd->media.counters.errors > 0;
	for (uint64_t step = 0; step < STEPS; step++) {
		was_durable[step] = is_durable(step);
		assert_true(turns[step].durable_count <= 1);
	}
	assert_durable_turns_are_there(was_durable);
	end_puts();
	ssd->fail_at = 0; /* the medium is well again */
	run_script();
	world_drain(&world);
	world_check(&world);
	for (uint64_t step = 0; step < STEPS; step++)
		was_durable[step] = script[step].blocks > 0 && is_durable(step);
	assert_durable_turns_are_there(was_durable);
	for (uint64_t step = 0; step < STEPS; step++)
		assert_int_equal(was_durable[step], script[step].blocks > 0);
	end_puts();
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	assert_durable_turns_are_there(was_durable);
	world_deinit(&world);
	return has_failed;
}

static void a_medium_that_refuses_takes_nothing_else_along(void **state)
{
	(void)state;
	static const uint64_t counts[] = {1, 2, 5};
	for (size_t i = 0; i < fc_array_len(counts); i++)
		for (int is_short = 0; is_short < 2; is_short++)
			for (uint64_t fail_at = 1; refuse_at(fail_at, counts[i], is_short); fail_at++)
				;
}

/* ---- stories ---- */

static struct fc_key keys[16];

static void start(struct put *put, uint64_t turn, uint64_t blocks)
{
	put_init(put, &world, 1, turn, keys, blocks);
	assert_int_equal(put_reserve(put), 0);
	assert_int_equal(put_write(put), 0);
}

static void open_plain(double ratio)
{
	world_init(&world, geometry_plain(1), 0, 32);
	world.opts.consolidate_ratio = ratio;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 16);
}

static void it_counts_after_data_and_header_are_synced(void **state)
{
	(void)state;
	struct put put;
	open_plain(0);
	const struct fc_media_counters *counters = &world.media[FC_SSD]->media.counters;
	start(&put, 0, 4);
	uint64_t syncs = counters->sync_commands, writes = counters->write_commands;
	assert_int_equal(put_commit(&put), 0);
	assert_int_equal(stored(&world, keys, 16), 4);
	assert_int_equal(world_poll(&world), 1);
	assert_int_equal(counters->sync_commands, syncs + 1);
	assert_int_equal(counters->write_commands, writes);
	assert_int_equal(world_poll(&world), 2); /* the header and the page of the table, together */
	assert_int_equal(counters->write_commands, writes + 2);
	assert_int_equal(put.durable_count, 0);
	assert_int_equal(world_poll(&world), 1);
	assert_int_equal(counters->sync_commands, syncs + 2);
	assert_int_equal(put.durable_count, 1);
	assert_true(fc_catalog_is_settled(world.catalog));
	put_deinit(&put);
	world_deinit(&world);
}

static void turns_that_come_together_share_two_syncs(void **state)
{
	(void)state;
	struct put some[4];
	open_plain(0);
	const struct fc_media_counters *counters = &world.media[FC_SSD]->media.counters;
	for (uint64_t turn = 0; turn < 4; turn++) {
		put_init(&some[turn], &world, 1 + turn, 0, keys, 4);
		path_keys(50 + turn, 0, keys, 4);
		assert_int_equal(put_reserve(&some[turn]), 0);
		assert_int_equal(put_write(&some[turn]), 0);
	}
	uint64_t syncs = counters->sync_commands;
	for (int turn = 0; turn < 4; turn++)
		assert_int_equal(put_commit(&some[turn]), 0);
	world_drain(&world);
	assert_int_equal(counters->sync_commands, syncs + 4); /* the first alone, then the three that came meanwhile */
	for (int turn = 0; turn < 4; turn++) {
		assert_int_equal(some[turn].durable_count, 1);
		put_deinit(&some[turn]);
	}
	world_deinit(&world);
}

/* Two turns are refused together; the second had absorbed the first, and the first what was durable. */
static void a_refused_turn_gives_back_what_it_absorbed(void **state)
{
	(void)state;
	struct put first, second;
	open_plain(1);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	start(&first, 1, 8);
	assert_int_equal(put_commit(&first), 0);
	start(&second, 2, 16);
	assert_int_equal(put_commit(&second), 0);
	assert_string_equal(picture(&world, keys, 16), "16");
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 100;
	world_drain(&world);
	world_check(&world);
	assert_int_equal(second.durable_code, FC_EIO);
	/* If the first had made it before, both are there, else what was durable. */
	uint64_t left = stored(&world, keys, 16);
	assert_int_equal(left, first.durable_code == FC_OK ? 8 : 4);
	world.media[FC_SSD]->fail_at = 0;
	assert_int_equal(save(&world, 1, 3, keys, 16), 0);
	assert_int_equal(stored(&world, keys, 16), 16);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_int_equal(stored(&world, keys, 16), 16);
	put_deinit(&first);
	put_deinit(&second);
	world_deinit(&world);
}

/* The damaged blocks are written again, the medium refuses, and what had them first has them still, but damaged. */
static void damage_whose_cure_is_refused(double ratio)
{
	struct fc_path path = {0};
	struct put put;
	open_plain(ratio);
	assert_int_equal(save(&world, 1, 0, keys, 8), 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 8, 0, true, &path), 0);
	fc_catalog_cut(world.catalog, path.placed[0].segment, 5);
	fc_catalog_release(world.catalog, &path);
	fc_path_deinit(&path, &world.alloc);
	start(&put, 1, 8);
	assert_int_equal(put_commit(&put), 0);
	assert_string_equal(picture(&world, keys, 16), ratio == 0 ? "5 3" : "8");
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1;
	world_drain(&world);
	world_check(&world);
	assert_int_equal(put.durable_code, FC_EIO);
	assert_string_equal(picture(&world, keys, 16), "5");
	put_deinit(&put);
	world_deinit(&world);
}

static void damage_does_not_come_back_when_its_cure_is_refused(void **state)
{
	(void)state;
	damage_whose_cure_is_refused(0);
	damage_whose_cure_is_refused(10); /* the cure takes all of the segment along, and gives it back */
}

/* Freed while its commit was under way: it never gets to the medium. */
static void what_is_evicted_before_it_is_durable_does_not_come_back(void **state)
{
	(void)state;
	struct put first, second;
	struct fc_session_id id = {0, 2};
	struct fc_key other[4];
	open_plain(0);
	path_keys(7, 0, other, 4);
	start(&first, 0, 4);
	put_init(&second, &world, 2, 0, other, 4);
	assert_int_equal(put_reserve(&second), 0);
	assert_int_equal(put_write(&second), 0);
	assert_int_equal(put_commit(&first), 0);
	assert_int_equal(put_commit(&second), 0); /* waits behind the first batch */
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_check(&world);
	world_drain(&world);
	assert_int_equal(second.durable_count, 1);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_crash(&world, 1);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(stored(&world, keys, 16), 4);
	assert_int_equal(stored(&world, other, 4), 0);
	assert_int_equal(world_sessions(&world), 1);
	put_deinit(&first);
	put_deinit(&second);
	world_deinit(&world);
}

/* Replaced while its commit was under way: should its heir be lost, it must be found under its own session. */
static void what_is_absorbed_before_it_is_durable_keeps_its_session(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct put first, second;
		open_plain(1);
		start(&first, 0, 4);
		assert_int_equal(put_commit(&first), 0);
		start(&second, 1, 8);
		assert_int_equal(put_commit(&second), 0);
		while (first.durable_count == 0)
			world_poll(&world);
		world_crash(&world, seed);
		assert_int_equal(world_open(&world), 0);
		assert_true(stored(&world, keys, 16) >= 4);
		assert_int_equal(world_session(&world, 1).segments, 1);
		assert_int_equal(world_sessions(&world), 1);
		put_deinit(&first);
		put_deinit(&second);
		world_deinit(&world);
	}
}

static bool is_above(void *context, const struct fc_segment_info *info)
{
	uint64_t *highest = context;
	*highest = fc_max_u64(*highest, info->seq);
	return true;
}

static uint64_t highest_seq(void)
{
	uint64_t highest = 0;
	fc_catalog_segments(world.catalog, is_above, &highest);
	return highest;
}

static void no_number_is_given_twice(void **state)
{
	(void)state;
	uint64_t last = 0;
	open_plain(0);
	for (uint64_t life = 1; life <= 6; life++) {
		struct fc_superblock superblock;
		assert_int_equal(fc_superblock_decode(&superblock, world.media[FC_SSD]->image, NULL), 0);
		assert_int_equal(superblock.epoch, life);
		assert_int_equal(save(&world, life, 0, keys, 4), 0);
		assert_true(highest_seq() > last);
		assert_int_equal(highest_seq() >> FC_SEQ_EPOCH_BITS, life);
		last = highest_seq();
		struct fc_session_id id = {0, life};
		assert_int_equal(fc_catalog_evict(world.catalog, id), 0); /* nothing on the medium tells of it */
		world_drain(&world);
		if (life % 2 == 0)
			world_crash(&world, life);
		else
			world_close(&world);
		if (life % 2 == 0)
			assert_int_equal(world_open(&world), 0);
		else
			assert_int_equal(world_reopen(&world, 0), 0);
	}
	world_deinit(&world);
}

/* The medium is well, and the frees that it refused are taken up by the next turn. */
static void refused_frees_are_tried_again(void **state)
{
	(void)state;
	struct fc_session_id id = {0, 1};
	struct fc_key other[4];
	open_plain(0);
	path_keys(7, 0, other, 4);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1;
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_drain(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_check(&world);
	assert_int_equal(save(&world, 2, 0, other, 4), 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_check(&world);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durable_turns_survive_a_power_failure_at_any_operation),
		cmocka_unit_test(a_medium_that_refuses_takes_nothing_else_along),
		cmocka_unit_test(it_counts_after_data_and_header_are_synced),
		cmocka_unit_test(turns_that_come_together_share_two_syncs),
		cmocka_unit_test(a_refused_turn_gives_back_what_it_absorbed),
		cmocka_unit_test(damage_does_not_come_back_when_its_cure_is_refused),
		cmocka_unit_test(what_is_evicted_before_it_is_durable_does_not_come_back),
		cmocka_unit_test(what_is_absorbed_before_it_is_durable_keeps_its_session),
		cmocka_unit_test(no_number_is_given_twice),
		cmocka_unit_test(refused_frees_are_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who pays for a turn's room? Never the turn itself, and nobody where it could not be enough. A block takes 1020 bytes
 * here, so a chunk holds three or four. */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SESSIONS 12u
#define BLOCKS 120u
#define WAITERS 100u

static struct world world;
static struct fc_key keys[SESSIONS][BLOCKS];
static char lost[256]; /* ids of sessions in the order of their loss, as "3 1 " */

static void on_loss(void *context, struct fc_session_id id)
{
	(void)context;
	size_t length = strlen(lost);
	snprintf(lost + length, sizeof(lost) - length, "%llu ", (unsigned long long)id.low);
}

static void prepare(uint64_t memory_chunks, uint64_t ssd_chunks)
{
	world_init(&world, geometry_plain(60), memory_chunks, ssd_chunks);
	for (uint64_t i = 0; i < SESSIONS; i++)
		path_keys(100 + i, 0, keys[i], BLOCKS);
	lost[0] = '\0';
}

static void start(void)
{
	assert_int_equal(world_open(&world), 0);
	fc_catalog_on_loss(world.catalog, on_loss, NULL);
}

static int save_blocks(uint64_t session, uint64_t turn, uint64_t count)
{
	int code = save(&world, session, turn, keys[session], count);
	world_check(&world);
	return code;
}

static uint64_t depth(uint64_t session)
{
	return stored(&world, keys[session], BLOCKS);
}

static void lease(uint64_t session, struct fc_path *path)
{
	assert_int_equal(fc_catalog_match(world.catalog, keys[session], BLOCKS, 0, true, path), 0);
	assert_true(path->blocks > 0);
}

static void release(struct fc_path *path)
{
	fc_catalog_release(world.catalog, path);
	fc_path_deinit(path, &world.alloc);
}

/* ---- the watermarks ---- */

/* Alone above the high watermark, on each medium: turn 0 goes to SSD, turn 1 to memory. */
static void what_was_just_saved_does_not_make_room_for_itself(void **state)
{
	(void)state;
	for (uint64_t turn = 0; turn < 2; turn++)
		for (int is_durable = 0; is_durable < 2; is_durable++) {
			prepare(turn == 1 ? 32 : 0, turn == 1 && is_durable ? 0 : 32);
			if (turn == 1 && is_durable)
				world_make_memory_durable(&world);
			world.opts.high_watermark = 0.75;
			world.opts.low_watermark = 0.5;
			start();
			assert_int_equal(save_blocks(1, turn, 4), 0);
			assert_int_equal(save_blocks(2, turn, 110), 0); /* 28 or 29 of 32 chunks */
			assert_int_equal(depth(2), 110);
			assert_string_equal(lost, "1 ");
			assert_int_equal(save_blocks(3, turn, 4), 0); /* the next one decides anew */
			assert_string_equal(lost, "1 2 ");
			assert_int_equal(depth(3), 4);
			world_deinit(&world);
		}
}

static void a_session_grows_until_it_is_refused_and_stays_what_it_is(void **state)
{
	(void)state;
	prepare(0, 16);
	world.opts.high_watermark = 0.75;
	world.opts.low_watermark = 0.5;
	start();
	assert_int_equal(save_blocks(1, 0, 4), 0);
	uint64_t turn = 0;
	for (int code = 0; code == 0; turn++) {
		code = save_blocks(2, turn, 3 * (turn + 1));
		assert_true(code == FC_OK || code == FC_EFULL);
		assert_int_equal(depth(2), code == FC_OK ? 3 * (turn + 1) : 3 * turn);
	}
	assert_int_equal(turn, 17); /* a chunk each, and one more is too much */
	assert_string_equal(lost, "1 ");
	world_deinit(&world);
}

/* What it would have brought has been stored by another meanwhile: then that is what was saved. */
static void who_else_has_the_path_is_held_too(void **state)
{
	(void)state;
	struct put put;
	prepare(0, 64);
	world.opts.high_watermark = 0.4;
	world.opts.low_watermark = 0.1;
	start();
	put_init(&put, &world, 1, 0, keys[1], 100);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(save(&world, 2, 0, keys[1], 100), 0);
	assert_int_equal(put_finish(&put), 0); /* the same text, and no segment of its own is left of it */
	world_drain(&world);
	put_deinit(&put);
	assert_int_equal(world_session(&world, 1).segments, 0);
	assert_int_equal(depth(1), 100);
	assert_string_equal(lost, "");
	world_deinit(&world);
}

/* Others name it all, in memory, which ends with the process: what the turn wrote is the only copy that lasts. */
static void what_makes_a_turn_durable_is_held_too(void **state)
{
	(void)state;
	struct put put;
	prepare(32, 64);
	world.opts.high_watermark = 0.4;
	world.opts.low_watermark = 0.1;
	start();
	put_init(&put, &world, 1, 0, keys[1], 100);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(save(&world, 2, 1, keys[1], 100), 0);
	assert_int_equal(world_session(&world, 2).bytes[FC_SSD], 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	world_check(&world);
	assert_int_equal(put.durable_code, 0);
	assert_int_equal(put.durable_count, 1);
	put_deinit(&put);
	assert_true(world_session(&world, 1).bytes[FC_SSD] > 0);
	assert_string_equal(lost, "");
	world_deinit(&world);
}

/* All of it is stored already, and is cut before the commit: then nothing was saved. */
static void what_was_stored_already_and_is_gone_is_not_acknowledged(void **state)
{
	(void)state;
	struct put put;
	struct fc_path path = {0};
	prepare(0, 16);
	start();
	assert_int_equal(save_blocks(1, 0, 6), 0);
	put_init(&put, &world, 1, 1, keys[1], 6);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put.reservation.grant_count, 0);
	assert_int_equal(fc_catalog_match(world.catalog, keys[1], 6, 0, false, &path), 0);
	fc_catalog_cut(world.catalog, path.placed[0].segment, 3);
	fc_path_deinit(&path, &world.alloc);
	assert_int_equal(put_commit(&put), FC_ENOENT);
	world_check(&world);
	assert_int_equal(depth(1), 3);
	put_deinit(&put);
	world_deinit(&world);
}

/* ---- refused before anybody goes ---- */

static void a_turn_that_cannot_fit_takes_nobody(void **state)
{
	(void)state;
	struct put put;
	struct fc_path path = {0};
	prepare(0, 16);
	start();
	for (uint64_t session = 1; session <= 4; session++)
		assert_int_equal(save_blocks(session, 0, 12), 0); /* four chunks each */
	lease(4, &path);
	put_init(&put, &world, 5, 0, keys[5], 60); /* 16 chunks, and 12 could be had */
	assert_int_equal(put_reserve(&put), FC_EFULL);
	assert_string_equal(put.error.text,
			    "save: 61200 new bytes do not fit: SSD needs 65536 bytes for them, and at most 49152 can "
			    "be had; the rest is in use, or this session's own");
	put_deinit(&put);
	assert_string_equal(lost, "");
	world_check(&world);
	release(&path);
	assert_int_equal(save_blocks(5, 0, 60), 0);
	assert_string_equal(lost, "1 2 3 4 ");
	world_deinit(&world);
}

/* Nor one whose prompt alone would fit. */
static void a_prompt_is_not_paid_for_by_a_turn_that_is_refused(void **state)
{
	(void)state;
	struct put put;
	struct fc_path path = {0};
	prepare(0, 16);
	start();
	for (uint64_t session = 1; session <= 4; session++)
		assert_int_equal(save_blocks(session, 0, 12), 0);
	lease(4, &path);
	put_init(&put, &world, 5, 0, keys[5], 60);
	put.turn.shared_blocks = 12;
	assert_int_equal(put_reserve(&put), FC_EFULL);
	put_deinit(&put);
	assert_string_equal(lost, "");
	release(&path);
	world_deinit(&world);
}

/* Absorbing needs the old and the new at once. */
static void a_turn_absorbs_only_what_there_is_room_for_twice(void **state)
{
	(void)state;
	prepare(0, 16);
	world.opts.consolidate_ratio = 100;
	start();
	assert_int_equal(save_blocks(1, 0, 12), 0);
	assert_int_equal(save_blocks(2, 0, 33), 0); /* nine chunks */
	assert_int_equal(save_blocks(2, 1, 36), 0);
	assert_string_equal(picture(&world, keys[2], BLOCKS), "33 3");
	assert_string_equal(lost, "");
	assert_int_equal(save_blocks(3, 0, 12), 0);
	assert_string_equal(lost, "1 ");
	world_deinit(&world);
}

static void an_owners_turn_that_cannot_fit_takes_none_of_its_sessions(void **state)
{
	(void)state;
	struct fc_owner owner = {.tag = 7, .bytes_max = 12 * (uint64_t)WORLD_CHUNK_BYTES};
	struct fc_path path = {0};
	struct put put;
	prepare(0, 64);
	world.opts.owners = &owner;
	world.opts.owner_count = 1;
	start();
	for (uint64_t session = 1; session <= 4; session++) {
		put_init(&put, &world, 0, 0, keys[session], session < 4 ? 12 : 36);
		put.turn.session = (struct fc_session_id){7ull << 48, session};
		put.turn.owner = 7;
		int code = put_reserve(&put);
		assert_int_equal(code, session < 4 ? FC_OK : FC_EFULL); /* ten chunks, and eight could be had */
		if (code == FC_OK)
			assert_int_equal(put_finish(&put), 0);
		world_drain(&world);
		put_deinit(&put);
		if (session == 2)
			lease(2, &path);
	}
	assert_string_equal(lost, "");
	release(&path);
	world_deinit(&world);
}

/* ---- spills ---- */

static void prepare_spill(void)
{
	prepare(8, 16);
	world.opts.memory_reclaim = FC_MEMORY_SPILL;
	start();
}

/* What was saved last lies on SSD and stands on memory that finds no room there. */
static void a_session_stays_when_the_rest_of_it_finds_no_room(void **state)
{
	(void)state;
	struct fc_path path = {0};
	prepare_spill();
	assert_int_equal(save_blocks(1, 1, 12), 0); /* in memory */
	assert_int_equal(save_blocks(2, 0, 52), 0); /* 14 chunks of SSD */
	lease(2, &path);
	struct put put;
	put_init(&put, &world, 1, 2, keys[1], 18);
	put.turn.previous_reply_tokens = 1u << 30; /* to SSD, and no room to take along what is in memory */
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	put_deinit(&put);
	assert_string_equal(picture(&world, keys[1], BLOCKS), "m12 6");
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	assert_string_equal(picture(&world, keys[1], BLOCKS), "m12 6");
	assert_string_equal(lost, "");
	world_check(&world);
	release(&path);
	world_deinit(&world);
}

static void a_spill_takes_nobody_who_was_used_since(void **state)
{
	(void)state;
	struct fc_path path = {0};
	prepare_spill();
	assert_int_equal(save_blocks(1, 1, 12), 0);
	lease(1, &path);
	release(&path); /* it was used, so it is spilled, not dropped */
	assert_int_equal(save_blocks(2, 1, 12), 0);
	assert_int_equal(save_blocks(3, 0, 52), 0);
	assert_int_equal(save_blocks(4, 1, 3), 0); /* memory is full: session 1 is to go */
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	assert_string_equal(lost, "1 ");
	assert_int_equal(depth(3), 52);
	world_check(&world);
	world_deinit(&world);
}

/* ---- waiting ---- */

/* More wait than a turn ever waited for in vain: each gets its room as long as there is a session left for it. */
static void whoever_waits_is_served_as_long_as_anything_can_go(void **state)
{
	(void)state;
	struct put *puts = calloc(WAITERS, sizeof(*puts));
	struct fc_key(*paths)[3] = calloc(2 * WAITERS, sizeof(*paths));
	bool is_served[WAITERS] = {false};
	unsigned served = 0, rounds = 0;
	prepare(0, WAITERS);
	start();
	for (uint64_t i = 0; i < 2 * WAITERS; i++)
		path_keys(1000 + i, 0, paths[i], 3);
	for (uint64_t i = 0; i < WAITERS; i++)
		assert_int_equal(save(&world, 100 + i, 0, paths[i], 3), 0);
	for (uint64_t i = 0; i < WAITERS; i++) {
		put_init(&puts[i], &world, 1000 + i, 0, paths[WAITERS + i], 3);
		assert_int_equal(fc_catalog_reserve(world.catalog, &puts[i].turn, &puts[i].reservation, &puts[i].error),
				 FC_EAGAIN);
	}
	while (served < WAITERS) {
		assert_true(world_poll(&world) > 0);
		for (uint64_t i = 0; i < WAITERS; i++) {
			if (is_served[i] || !puts[i].has_space)
				continue;
			puts[i].has_space = false;
			rounds++;
			int code =
				fc_catalog_reserve(world.catalog, &puts[i].turn, &puts[i].reservation, &puts[i].error);
			assert_true(code == FC_OK || code == FC_EAGAIN);
			is_served[i] = code == FC_OK;
			served += is_served[i];
		}
	}
	assert_true(rounds < 4 * WAITERS); /* one batch is enough for most of them */
	world_check(&world);
	for (uint64_t i = 0; i < WAITERS; i++) {
		put_abort(&puts[i]);
		put_deinit(&puts[i]);
	}
	world_deinit(&world);
	free(puts);
	free(paths);
}

/* A medium that takes no writes frees nothing: who waits for it is told so in the end. */
static void whoever_waits_in_vain_is_refused(void **state)
{
	(void)state;
	struct put put;
	prepare(0, 4);
	start();
	for (uint64_t session = 1; session <= 4; session++)
		assert_int_equal(save_blocks(session, 0, 3), 0);
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1000000;
	put_init(&put, &world, 5, 0, keys[5], 3);
	assert_int_equal(put_reserve(&put), FC_EFULL);
	assert_true(put.reservation.space_attempts < 2 * FC_SPACE_STALLS_MAX);
	world.media[FC_SSD]->fail_count = 0;
	assert_int_equal(put_reserve(&put), 0);
	put_abort(&put);
	put_deinit(&put);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_just_saved_does_not_make_room_for_itself),
		cmocka_unit_test(a_session_grows_until_it_is_refused_and_stays_what_it_is),
		cmocka_unit_test(who_else_has_the_path_is_held_too),
		cmocka_unit_test(what_makes_a_turn_durable_is_held_too),
		cmocka_unit_test(what_was_stored_already_and_is_gone_is_not_acknowledged),
		cmocka_unit_test(a_turn_that_cannot_fit_takes_nobody),
		cmocka_unit_test(a_prompt_is_not_paid_for_by_a_turn_that_is_refused),
		cmocka_unit_test(a_turn_absorbs_only_what_there_is_room_for_twice),
		cmocka_unit_test(an_owners_turn_that_cannot_fit_takes_none_of_its_sessions),
		cmocka_unit_test(a_session_stays_when_the_rest_of_it_finds_no_room),
		cmocka_unit_test(a_spill_takes_nobody_who_was_used_since),
		cmocka_unit_test(whoever_waits_is_served_as_long_as_anything_can_go),
		cmocka_unit_test(whoever_waits_in_vain_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

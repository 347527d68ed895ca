/* Who goes when an arena is full? Always whole sessions, the oldest first, never one that is read or stood upon. Each
 * segment here is one chunk, so an arena's chunks are counted in segments. */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SESSIONS 24u

static struct world world;
static struct fc_key keys[SESSIONS][16];
static char lost[256]; /* ids of sessions in the order of their loss, as "3 1 " */

static void on_loss(void *context, struct fc_session_id id)
{
	(void)context;
	size_t length = strlen(lost);
	snprintf(lost + length, sizeof(lost) - length, "%llu ", (unsigned long long)id.low);
}

static void open_world(uint64_t memory_chunks, uint64_t ssd_chunks)
{
	world_init(&world, geometry_plain(1), memory_chunks, ssd_chunks);
	for (uint64_t i = 0; i < SESSIONS; i++)
		path_keys(100 + i, 0, keys[i], 16);
	lost[0] = '\0';
}

static void start(void)
{
	assert_int_equal(world_open(&world), 0);
	fc_catalog_on_loss(world.catalog, on_loss, NULL);
}

static void save_turns(uint64_t session, uint64_t turn_first, uint64_t turn_count)
{
	for (uint64_t turn = turn_first; turn < turn_first + turn_count; turn++)
		assert_int_equal(save(&world, session, turn, keys[session], 2 * (turn + 1 - turn_first)), 0);
	world_check(&world);
}

static uint64_t depth(uint64_t session)
{
	return stored(&world, keys[session], 16);
}

static void lease(uint64_t session, struct fc_path *path)
{
	assert_int_equal(fc_catalog_match(world.catalog, keys[session], 16, 0, true, path), 0);
	assert_true(path->blocks > 0);
}

static void use(uint64_t session)
{
	struct fc_path path = {0};
	lease(session, &path);
	fc_catalog_release(world.catalog, &path);
	fc_path_deinit(&path, &world.alloc);
}

static void the_oldest_session_goes_whole(void **state)
{
	(void)state;
	open_world(0, 12);
	start();
	for (uint64_t session = 1; session <= 6; session++)
		save_turns(session, 0, 2);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 12);
	save_turns(7, 0, 1);
	assert_string_equal(lost, "1 ");
	assert_int_equal(depth(1), 0); /* both turns, though one would have been enough */
	for (uint64_t session = 2; session <= 6; session++)
		assert_int_equal(depth(session), 4);
	assert_int_equal(depth(7), 2);
	struct fc_stats stats = world_stats(&world);
	assert_int_equal(stats.media[FC_SSD].sessions_reclaimed, 1);
	assert_int_equal(stats.media[FC_SSD].bytes_reclaimed, 2 * WORLD_CHUNK_BYTES);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 11);
	world_deinit(&world);
}

static void oldest_is_by_use_or_by_creation(void **state)
{
	(void)state;
	static const char *const losses[] = {"2 3 ", "1 2 "};
	for (int order = 0; order < 2; order++) {
		open_world(0, 4);
		world.opts.reclaim_order = order == 0 ? FC_RECLAIM_LEAST_RECENTLY_USED : FC_RECLAIM_OLDEST_CREATED;
		start();
		for (uint64_t session = 1; session <= 4; session++)
			save_turns(session, 0, 1);
		use(1);
		save_turns(5, 0, 1);
		save_turns(6, 0, 1);
		assert_string_equal(lost, losses[order]);
		world_deinit(&world);
	}
}

static void both_orders_are_those_of_before_a_restart(void **state)
{
	(void)state;
	for (int order = 0; order < 2; order++) {
		open_world(0, 8);
		world.opts.reclaim_order = order == 0 ? FC_RECLAIM_LEAST_RECENTLY_USED : FC_RECLAIM_OLDEST_CREATED;
		start();
		world.media[FC_SSD]->shuffle_seed = 5; /* headers are read in any order */
		save_turns(1, 0, 1);
		for (uint64_t session = 2; session <= 4; session++)
			save_turns(session, 0, 2);
		assert_int_equal(save(&world, 1, 1, keys[1], 4), 0); /* the oldest, and the last used */
		assert_int_equal(world_reopen(&world, 0), 0);
		fc_catalog_on_loss(world.catalog, on_loss, NULL);
		save_turns(5, 0, 1);
		assert_string_equal(lost, order == 0 ? "2 " : "1 ");
		world_deinit(&world);
	}
}

static void nobody_is_reclaimed_while_everybody_is_read(void **state)
{
	(void)state;
	struct fc_path paths[3] = {{0}};
	open_world(0, 3);
	start();
	for (uint64_t session = 1; session <= 3; session++) {
		save_turns(session, 0, 1);
		lease(session, &paths[session - 1]);
	}
	assert_int_equal(save(&world, 4, 0, keys[4], 2), FC_EFULL);
	assert_string_equal(lost, "");
	world_check(&world);
	fc_catalog_release(world.catalog, &paths[1]);
	assert_int_equal(save(&world, 4, 0, keys[4], 2), 0);
	assert_string_equal(lost, "2 ");
	for (int i = 0; i < 3; i++) {
		fc_catalog_release(world.catalog, &paths[i]);
		fc_path_deinit(&paths[i], &world.alloc);
	}
	world_deinit(&world);
}

static void what_others_stand_on_goes_after_them(void **state)
{
	(void)state;
	open_world(0, 4);
	start();
	save_turns(1, 0, 1);
	memcpy(keys[2], keys[1], 2 * sizeof(struct fc_key));
	path_keys(102, 2, keys[2], 16);
	assert_int_equal(save(&world, 2, 0, keys[2], 4), 0); /* on the two blocks of session 1 */
	save_turns(3, 0, 1);
	save_turns(4, 0, 1);
	assert_int_equal(world_session(&world, 1).dependents, 1);
	save_turns(5, 0, 1);
	assert_string_equal(lost, "2 ");
	save_turns(6, 0, 1);
	assert_string_equal(lost, "2 1 ");
	assert_int_equal(depth(3), 2);
	world_deinit(&world);
}

static void a_use_also_counts_for_what_it_stands_on(void **state)
{
	(void)state;
	open_world(0, 4);
	start();
	/* Three sessions on one another: 1 <- 2 <- 3. */
	save_turns(1, 0, 1);
	memcpy(keys[2], keys[1], 2 * sizeof(struct fc_key));
	path_keys(102, 2, keys[2], 16);
	assert_int_equal(save(&world, 2, 0, keys[2], 4), 0);
	memcpy(keys[3], keys[2], 4 * sizeof(struct fc_key));
	path_keys(103, 4, keys[3], 16);
	assert_int_equal(save(&world, 3, 0, keys[3], 6), 0);
	save_turns(4, 0, 1);
	use(3);
	assert_true(world_session(&world, 3).used_seq < world_session(&world, 2).used_seq);
	assert_true(world_session(&world, 2).used_seq < world_session(&world, 1).used_seq);
	/* 4 is the oldest now, and then leaves go before roots. */
	for (uint64_t session = 5; session <= 8; session++)
		save_turns(session, 0, 1);
	assert_string_equal(lost, "4 3 2 1 ");
	world_deinit(&world);
}

/* Conversations that grew into the same text stand on each other in a circle. */
static void circles_go_together_when_nothing_else_is_left(void **state)
{
	(void)state;
	for (uint64_t members = 2; members <= 4; members++) {
		struct fc_path path = {0};
		open_world(0, members + 1);
		start();
		for (uint64_t session = 1; session <= members; session++)
			assert_int_equal(save(&world, session, 0, keys[1], 2 * session), 0);
		assert_int_equal(save(&world, 1, 1, keys[1], 2 * members + 2), 0);
		world_check(&world);
		for (uint64_t session = 1; session <= members; session++)
			assert_true(world_session(&world, session).dependents > 0);
		lease(1, &path);
		assert_int_equal(save(&world, 9, 0, keys[9], 2), FC_EFULL); /* it is read */
		fc_catalog_release(world.catalog, &path);
		assert_int_equal(save(&world, 9, 0, keys[9], 2), 0);
		assert_int_equal(depth(1), 0);
		assert_int_equal(world_sessions(&world), 1);
		world_check(&world);
		fc_path_deinit(&path, &world.alloc);
		world_deinit(&world);
	}
}

static void from_the_high_watermark_down_to_the_low_one(void **state)
{
	(void)state;
	open_world(0, 16);
	world.opts.high_watermark = 0.75;
	world.opts.low_watermark = 0.5;
	start();
	for (uint64_t session = 1; session <= 12; session++)
		save_turns(session, 0, 1);
	assert_string_equal(lost, ""); /* 12 of 16 is not above */
	save_turns(13, 0, 1);
	assert_string_equal(lost, "1 2 3 4 5 ");
	world_drain(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 8);
	world_deinit(&world);
}

/* Absorbed segments on their way to be freed are no reason to reclaim somebody. */
static void what_is_about_to_be_freed_is_not_used(void **state)
{
	(void)state;
	struct put put;
	open_world(0, 8);
	world.opts.high_watermark = 0.5;
	world.opts.low_watermark = 0.25;
	world.opts.consolidate_ratio = 10;
	start();
	save_turns(1, 0, 1);
	save_turns(2, 0, 1);
	save_turns(3, 0, 1);
	for (uint64_t turn = 1; turn < 4; turn++) { /* 3 linked and 1 replaced at any time */
		put_init(&put, &world, 3, turn, keys[3], 2 + 2 * turn);
		assert_int_equal(put_reserve(&put), 0);
		assert_int_equal(put_finish(&put), 0);
		world_drain(&world);
		put_deinit(&put);
	}
	assert_string_equal(lost, "");
	world_deinit(&world);
}

static void evicting_takes_what_stands_on_it_along(void **state)
{
	(void)state;
	struct fc_session_id id = {0, 1};
	open_world(0, 8);
	start();
	save_turns(1, 0, 2);
	memcpy(keys[2], keys[1], 3 * sizeof(struct fc_key));
	path_keys(102, 3, keys[2], 16);
	assert_int_equal(save(&world, 2, 0, keys[2], 6), 0);
	save_turns(3, 0, 1);
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	assert_string_equal(lost, "1 2 ");
	world_drain(&world);
	world_check(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	assert_int_equal(depth(3), 2);
	world_deinit(&world);
}

/* ---- memory ---- */

static void chats_are_dropped_from_memory(void **state)
{
	(void)state;
	open_world(3, 8);
	start();
	for (uint64_t session = 1; session <= 3; session++)
		save_turns(session, 1, 1);
	use(1);
	save_turns(4, 1, 1);
	assert_string_equal(lost, "2 ");
	assert_int_equal(depth(2), 0);
	assert_string_equal(picture(&world, keys[1], 16), "m2");
	assert_string_equal(picture(&world, keys[4], 16), "m2");
	world_deinit(&world);
}

static void a_chat_that_was_reused_is_spilled_and_one_that_was_not_is_dropped(void **state)
{
	(void)state;
	open_world(3, 8);
	world.opts.memory_reclaim = FC_MEMORY_SPILL;
	start();
	for (uint64_t session = 1; session <= 3; session++)
		save_turns(session, 1, 1);
	use(1);
	save_turns(4, 1, 1); /* session 2 was never used */
	assert_string_equal(lost, "2 ");
	save_turns(5, 1, 1); /* session 3 neither */
	assert_string_equal(lost, "2 3 ");
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	use(4), use(5);
	save_turns(6, 1, 1); /* session 1 is to be spilled; until it is, what is new goes to SSD */
	assert_string_equal(lost, "2 3 ");
	assert_string_equal(picture(&world, keys[6], 16), "2");
	assert_int_equal(spill_one(&world), 0);
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	assert_string_equal(picture(&world, keys[1], 16), "2");
	assert_int_equal(depth(1), 2);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 2);
	save_turns(7, 1, 1);
	assert_string_equal(picture(&world, keys[7], 16), "m2");
	assert_string_equal(lost, "2 3 ");
	world_check(&world);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_session_goes_whole),
		cmocka_unit_test(oldest_is_by_use_or_by_creation),
		cmocka_unit_test(both_orders_are_those_of_before_a_restart),
		cmocka_unit_test(nobody_is_reclaimed_while_everybody_is_read),
		cmocka_unit_test(what_others_stand_on_goes_after_them),
		cmocka_unit_test(a_use_also_counts_for_what_it_stands_on),
		cmocka_unit_test(circles_go_together_when_nothing_else_is_left),
		cmocka_unit_test(from_the_high_watermark_down_to_the_low_one),
		cmocka_unit_test(what_is_about_to_be_freed_is_not_used),
		cmocka_unit_test(evicting_takes_what_stands_on_it_along),
		cmocka_unit_test(chats_are_dropped_from_memory),
		cmocka_unit_test(a_chat_that_was_reused_is_spilled_and_one_that_was_not_is_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who stands on whom, and what does it cost to know? Making room may look at what goes, and not at all the others:
 * counted by what the catalog says it has examined, never by time. */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define PROMPTS_MAX 48u
#define FOLLOWERS 30u

static struct world world;
static struct fc_key chat[4];
static char lost[256]; /* ids of sessions in the order of their loss, as "3 1 " */

static void on_loss(void *context, struct fc_session_id id)
{
	(void)context;
	size_t length = strlen(lost);
	snprintf(lost + length, sizeof(lost) - length, "%llu ", (unsigned long long)id.low);
}

static void start(uint64_t memory_chunks, uint64_t ssd_chunks)
{
	world_init(&world, geometry_plain(1), memory_chunks, ssd_chunks);
	path_keys(1, 0, chat, 4);
	lost[0] = '\0';
	assert_int_equal(world_open(&world), 0);
	fc_catalog_on_loss(world.catalog, on_loss, NULL);
}

/* Two blocks in memory, and a follower on SSD that has two more behind them. */
static void path_of(uint64_t prompt, uint64_t follower, struct fc_key *path)
{
	path_keys(100 + prompt, 0, path, 4);
	path_keys(1000 * prompt + follower, 2, path, 4);
}

static uint64_t follower_id(uint64_t prompt, uint64_t follower)
{
	return 100 * prompt + follower;
}

static void save_prompt(uint64_t prompt, uint64_t followers)
{
	struct fc_key path[4];
	path_of(prompt, 1, path);
	assert_int_equal(save(&world, prompt, 1, path, 2), 0);
	for (uint64_t follower = 1; follower <= followers; follower++) {
		path_of(prompt, follower, path);
		assert_int_equal(save(&world, follower_id(prompt, follower), 0, path, 4), 0);
	}
	assert_string_equal(picture(&world, path, 4), "m2 2");
}

static uint64_t depth(uint64_t prompt, uint64_t follower)
{
	struct fc_key path[4];
	path_of(prompt, follower, path);
	return stored(&world, path, 4);
}

static void lease(uint64_t prompt, uint64_t follower, struct fc_path *path)
{
	struct fc_key keys[4];
	path_of(prompt, follower, keys);
	assert_int_equal(fc_catalog_match(world.catalog, keys, 4, 0, true, path), 0);
	assert_int_equal(path->blocks, 4);
}

static void end_lease(struct fc_path *path)
{
	fc_catalog_release(world.catalog, path);
	fc_path_deinit(path, &world.alloc);
}

/* Saves a chat in memory; how many sessions were looked at for it. */
static uint64_t examined_for_chat(int code)
{
	uint64_t before = world.catalog->sessions_examined;
	struct put put;
	put_init(&put, &world, 9999, 1, chat, 2);
	assert_int_equal(put_reserve(&put), code);
	uint64_t examined = world.catalog->sessions_examined - before;
	if (code == FC_OK)
		put_abort(&put);
	put_deinit(&put);
	world_check(&world);
	return examined;
}

static void room_costs_by_what_goes_and_not_by_how_many_there_are(void **state)
{
	(void)state;
	uint64_t examined[2];
	for (unsigned i = 0; i < 2; i++) {
		uint64_t prompts = i == 0 ? 4 : PROMPTS_MAX;
		start(prompts, 2 * PROMPTS_MAX);
		for (uint64_t prompt = 1; prompt <= prompts; prompt++)
			save_prompt(prompt, 1);
		examined[i] = examined_for_chat(FC_OK);
		assert_string_equal(lost, "1 101 "); /* a knot: the oldest, with what stands on it */
		world_deinit(&world);
	}
	assert_int_equal(examined[0], examined[1]);
	assert_in_range(examined[1], 1, 12);
}

static void what_is_free_to_go_is_found_behind_many_that_are_not(void **state)
{
	(void)state;
	start(PROMPTS_MAX + 1, 2 * PROMPTS_MAX);
	for (uint64_t prompt = 1; prompt <= PROMPTS_MAX; prompt++)
		save_prompt(prompt, 1);
	struct fc_key other[2];
	path_keys(2, 0, other, 2);
	assert_int_equal(save(&world, 77, 1, other, 2), 0);
	assert_int_equal(examined_for_chat(FC_OK), 1);
	assert_string_equal(lost, "77 ");
	world_deinit(&world);
}

static void one_that_is_read_ends_the_search_for_a_knot(void **state)
{
	(void)state;
	struct fc_path read = {0}, used = {0};
	start(2, 2 * FOLLOWERS);
	save_prompt(1, FOLLOWERS);
	save_prompt(2, 1);
	lease(1, FOLLOWERS / 2, &read);
	lease(2, 1, &used); /* 1 is the older, and is tried first */
	end_lease(&used);
	assert_in_range(examined_for_chat(FC_OK), 1, FOLLOWERS / 2);
	assert_string_equal(lost, "2 201 ");
	for (uint64_t follower = 1; follower <= FOLLOWERS; follower++)
		assert_int_equal(depth(1, follower), 4);
	end_lease(&read);
	world_deinit(&world);
}

static void what_is_read_far_behind_holds_all_in_front(void **state)
{
	(void)state;
	struct fc_key path[6];
	start(1, 16);
	save_prompt(1, 3);
	path_of(1, 2, path);
	path_keys(5, 4, path, 6);
	assert_int_equal(save(&world, 8, 0, path, 6), 0); /* on a follower, and so on the prompt */
	assert_int_equal(world_session(&world, 1).dependents, 4);
	assert_int_equal(world_session(&world, follower_id(1, 2)).dependents, 1);
	struct fc_session *last = fc_session_find(world.catalog, (struct fc_session_id){0, 8});
	fc_session_add_reserved(world.catalog, last);
	world_check(&world);
	examined_for_chat(FC_OK); /* goes to SSD */
	assert_string_equal(lost, "");
	fc_session_drop_reserved(world.catalog, last);
	examined_for_chat(FC_OK);
	assert_int_equal(world_sessions(&world), 0);
	world_deinit(&world);
}

static void leases_that_end_in_another_order_leave_the_order_of_use(void **state)
{
	(void)state;
	struct fc_path paths[3] = {{0}};
	struct fc_key keys[8][2];
	start(0, 4);
	for (uint64_t i = 1; i < 8; i++)
		path_keys(20 + i, 0, keys[i], 2);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(save(&world, i, 0, keys[i], 2), 0);
	for (uint64_t i = 2; i >= 1; i--)
		assert_int_equal(fc_catalog_match(world.catalog, keys[i], 2, 0, true, &paths[i]), 0);
	assert_int_equal(save(&world, 5, 0, keys[5], 2), 0);
	assert_string_equal(lost, "3 ");
	world_check(&world);
	end_lease(&paths[1]);
	end_lease(&paths[2]);
	for (uint64_t i = 6; i < 8; i++)
		assert_int_equal(save(&world, i, 0, keys[i], 2), 0);
	assert_string_equal(lost, "3 4 2 ");
	world_check(&world);
	world_deinit(&world);
}

/* The text of session 2 was stored by session 1 meanwhile, in memory. It keeps a copy on SSD that nobody names. */
static void make_spare(void)
{
	struct put put;
	put_init(&put, &world, 2, 0, chat, 2);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(save(&world, 1, 1, chat, 2), 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	put_deinit(&put);
	assert_string_equal(picture(&world, chat, 2), "m2");
	assert_int_equal(world_session(&world, 1).dependents, 0);
	assert_int_equal(world_session(&world, 2).segments, 1);
	world_check(&world);
}

static void a_spare_copy_holds_nobody_and_takes_over(void **state)
{
	(void)state;
	struct fc_key other[2];
	start(1, 8);
	path_keys(2, 0, other, 2);
	make_spare();
	assert_int_equal(save(&world, 3, 1, other, 2), 0);
	assert_string_equal(lost, "1 ");
	assert_string_equal(picture(&world, chat, 2), "2");
	assert_int_equal(stored(&world, chat, 2), 2);
	assert_string_equal(picture(&world, other, 2), "m2");
	world_check(&world);
	world_deinit(&world);
}

static void room_is_made_whatever_memory_is_missing(void **state)
{
	(void)state;
	struct fc_key other[2];
	path_keys(2, 0, other, 2);
	for (uint64_t k = 1;; k++) {
		struct put put;
		start(3, 2 * FOLLOWERS);
		make_spare();
		save_prompt(3, FOLLOWERS);
		save_prompt(4, 2);
		put_init(&put, &world, 9999, 1, other, 2);
		world.tracked.fail_at = world.tracked.call_count + k;
		int code = put_reserve(&put);
		bool has_failed = world.tracked.call_count >= world.tracked.fail_at;
		world.tracked.fail_at = 0;
		assert_int_equal(code, has_failed ? FC_ENOMEM : FC_OK);
		world_check(&world);
		if (code == FC_OK)
			put_abort(&put);
		put_deinit(&put);
		assert_int_equal(save(&world, 9999, 1, other, 2), 0);
		world_check(&world);
		world_deinit(&world);
		if (!has_failed) {
			assert_true(k > 3);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_costs_by_what_goes_and_not_by_how_many_there_are),
		cmocka_unit_test(what_is_free_to_go_is_found_behind_many_that_are_not),
		cmocka_unit_test(one_that_is_read_ends_the_search_for_a_knot),
		cmocka_unit_test(what_is_read_far_behind_holds_all_in_front),
		cmocka_unit_test(leases_that_end_in_another_order_leave_the_order_of_use),
		cmocka_unit_test(a_spare_copy_holds_nobody_and_takes_over),
		cmocka_unit_test(room_is_made_whatever_memory_is_missing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

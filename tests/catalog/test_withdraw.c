/* What does a batch that fails cost? What it touched, and nothing else that is stored: counted, never timed. And does
 * it leave everything as it was, however many turns of however many sessions it was made of? */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TURNS 40u
#define OTHERS 400u

static struct world world;
static struct fc_key keys[TURNS][6];
static struct put turns[TURNS];

static void start(uint64_t others)
{
	world_init(&world, geometry_plain(1), 0, others + 3 * TURNS);
	world.opts.consolidate_ratio = 10;
	assert_int_equal(world_open(&world), 0);
	for (uint64_t i = 0; i < others; i++) {
		struct fc_key other[2];
		path_keys(5000 + i, 0, other, 2);
		assert_int_equal(save(&world, 5000 + i, 0, other, 2), 0);
	}
	for (uint64_t i = 0; i < TURNS; i++) {
		path_keys(100 + i, 0, keys[i], 6);
		assert_int_equal(save(&world, 100 + i, 0, keys[i], 2), 0);
	}
}

static void refuse_the_rest(void)
{
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1000;
	world_drain(&world);
	world.media[FC_SSD]->fail_count = 0;
}

/* Every session's next turn absorbs the one before; all of them are visible, and none is durable. */
static void save_next_turns(uint64_t turn, uint64_t blocks)
{
	for (uint64_t i = 0; i < TURNS; i++) {
		put_init(&turns[i], &world, 100 + i, turn, keys[i], blocks);
		assert_int_equal(fc_catalog_reserve(world.catalog, &turns[i].turn, &turns[i].reservation, NULL), 0);
		assert_int_equal(put_commit(&turns[i]), 0);
	}
}

static void everything_is_as_before(void)
{
	world_check(&world);
	for (uint64_t i = 0; i < TURNS; i++) {
		assert_int_equal(turns[i].durable_count, 1);
		assert_int_equal(turns[i].durable_code, FC_EIO);
		assert_string_equal(picture(&world, keys[i], 6), "2");
		assert_int_equal(stored(&world, keys[i], 6), 2);
		put_deinit(&turns[i]);
	}
}

static void a_batch_that_fails_costs_by_what_it_touched(void **state)
{
	(void)state;
	uint64_t segments[2], sessions[2];
	for (int i = 0; i < 2; i++) {
		start(i == 0 ? 0 : OTHERS);
		save_next_turns(1, 4);
		segments[i] = world.catalog->segments_examined;
		sessions[i] = world.catalog->sessions_examined;
		refuse_the_rest();
		segments[i] = world.catalog->segments_examined - segments[i];
		sessions[i] = world.catalog->sessions_examined - sessions[i];
		everything_is_as_before();
		world_deinit(&world);
	}
	assert_int_equal(segments[0], segments[1]);
	assert_int_equal(sessions[0], sessions[1]);
	/* The first turn has a batch of its own, and the others what it has replaced: gathered, and asked twice. */
	assert_in_range(segments[1], TURNS, 4 * TURNS);
	assert_in_range(sessions[1], TURNS, 8 * TURNS);
}

/* A prompt's copy takes names from the conversations that stand on it; it is refused together with a turn of one. */
static void a_prompt_and_a_turn_are_refused_together(void **state)
{
	(void)state;
	struct put prompt, turn;
	struct fc_key path[8];
	world_init(&world, geometry_plain(1), 0, 32);
	world.opts.consolidate_ratio = 10;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, path, 8);
	assert_int_equal(save(&world, 1, 0, path, 4), 0);
	struct fc_key branch[8];
	memcpy(branch, path, sizeof(branch));
	path_keys(2, 4, branch, 8);
	put_init(&prompt, &world, 2, 0, branch, 6);
	prompt.turn.shared_blocks = 4;
	assert_int_equal(put_reserve(&prompt), 0);
	assert_int_equal(put_write(&prompt), 0);
	assert_int_equal(put_commit(&prompt), 0);
	put_init(&turn, &world, 1, 1, path, 8);
	assert_int_equal(put_reserve(&turn), 0);
	assert_int_equal(put_commit(&turn), 0);
	world_check(&world);
	assert_string_equal(picture(&world, path, 8), "4 4");
	refuse_the_rest();
	assert_int_equal(prompt.durable_code, FC_EIO);
	assert_int_equal(turn.durable_code, FC_EIO);
	world_check(&world);
	assert_string_equal(picture(&world, path, 8), "4");
	assert_int_equal(stored(&world, path, 8), 4);
	assert_int_equal(stored(&world, branch, 8), 4);
	assert_int_equal(world_sessions(&world), 1);
	put_deinit(&prompt);
	put_deinit(&turn);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_that_fails_costs_by_what_it_touched),
		cmocka_unit_test(a_prompt_and_a_turn_are_refused_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What was lost is named again by whoever has it: does a copy that comes back know whom it stands on, do all that stood
 * on the lost one follow it, and is it offered to everybody who could have it? Each story was a fault that the
 * simulator found. */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key path[8];

static void start(uint64_t memory_chunks, uint64_t ssd_chunks, struct fc_geometry geometry)
{
	world_init(&world, geometry, memory_chunks, ssd_chunks);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, path, 8);
}

/* Its space is reserved and its slices are written; nobody sees it before its commit. */
static void write_turn(struct put *put, uint64_t session, uint64_t turn, const struct fc_key *keys, uint64_t count)
{
	put_init(put, &world, session, turn, keys, count);
	assert_int_equal(put_reserve(put), 0);
	assert_int_equal(put_write(put), 0);
}

/* The same of a prompt, and nothing behind it. */
static void write_prompt(struct put *put, uint64_t session, uint64_t count)
{
	put_init(put, &world, session, 0, path, count);
	put->turn.shared_blocks = count;
	assert_int_equal(put_reserve(put), 0);
	assert_int_equal(put->reservation.grant_count, 1);
	assert_int_equal(put_write(put), 0);
}

static void commit(struct put *put)
{
	assert_int_equal(put_commit(put), 0);
	world_check(&world);
}

static void refuse_next_operation(void)
{
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1;
}

static void wait_until_told(const struct put *put, int code)
{
	while (put->durable_count == 0)
		assert_true(world_poll(&world) > 0);
	assert_int_equal(put->durable_code, code);
	world_check(&world);
}

static void evict(struct fc_session_id id)
{
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_drain(&world);
	world_check(&world);
}

/* Whoever reads block `block` of the path finds it damaged. */
static void read_bad(uint64_t block)
{
	struct fc_path found = {0};
	assert_int_equal(fc_catalog_match(world.catalog, path, 8, 0, false, &found), 0);
	uint32_t i = 0;
	while (i < found.span_count && (found.spans[i].group != 0 || block < found.spans[i].block_first ||
					block >= found.spans[i].block_first + found.spans[i].count))
		i++;
	assert_true(i < found.span_count);
	const struct fc_span *span = &found.spans[i];
	fc_catalog_cut(world.catalog, found.placed[span->placed].segment,
		       span->entry_first + block - span->block_first);
	fc_path_deinit(&found, &world.alloc);
	world_check(&world);
}

/* A prompt of four blocks is replaced by a longer one, of which all but the first block is found damaged, and stored
 * once more by a conversation, before it is refused. Then the older prompt is named again: its first block, since the
 * others are the conversation's now. It stands on that, and takes the others over when the conversation goes. */
static void a_prompt_that_is_revived_stands_on_who_has_its_other_blocks(void **state)
{
	(void)state;
	struct put older, longer, chat;
	start(0, 16, geometry_plain(1));
	write_prompt(&older, 1, 4);
	write_prompt(&longer, 2, 6);
	commit(&older);
	wait_until_told(&older, 0);
	commit(&longer);
	refuse_next_operation();
	assert_string_equal(picture(&world, path, 8), "6");
	read_bad(1);
	assert_string_equal(picture(&world, path, 8), "1");
	put_init(&chat, &world, 3, 0, path, 6);
	assert_int_equal(put_reserve(&chat), 0); /* never read, so never written */
	commit(&chat);
	assert_string_equal(picture(&world, path, 8), "1 5");
	wait_until_told(&longer, FC_EIO);
	wait_until_told(&chat, 0);
	assert_string_equal(picture(&world, path, 8), "1 5");
	assert_int_equal(world_session(&world, 3).dependents, 1);
	evict((struct fc_session_id){0, 3});
	assert_string_equal(picture(&world, path, 8), "4");
	assert_int_equal(stored(&world, path, 8), 4);
	put_deinit(&older);
	put_deinit(&longer);
	put_deinit(&chat);
	world_deinit(&world);
}

/* Two prompts have taken the front of a conversation, and are refused in one batch: the first of them has blocks 2 and
 * 3, the second 0 and 1, and a branch stands on the second alone. The conversation takes back all four when the first
 * is worked off, and has to know of the branch then. */
static void who_stood_on_any_of_those_refused_stands_on_who_takes_over(void **state)
{
	(void)state;
	struct put other, first, second, branch;
	struct fc_key elsewhere[2], branching[4];
	start(0, 16, geometry_plain(1));
	path_keys(2, 0, elsewhere, 2);
	memcpy(branching, path, sizeof(branching));
	path_keys(3, 2, branching, 4);
	assert_int_equal(save(&world, 1, 0, path, 6), 0);
	write_turn(&other, 5, 0, elsewhere, 2);
	write_prompt(&first, 2, 4);
	write_prompt(&second, 3, 2);
	write_turn(&branch, 4, 0, branching, 4);
	commit(&other); /* is under way, so that the next two share a batch */
	commit(&first);
	commit(&second);
	assert_string_equal(picture(&world, path, 8), "2 2 2");
	wait_until_told(&other, 0);
	commit(&branch);
	refuse_next_operation();
	wait_until_told(&first, FC_EIO);
	assert_int_equal(second.durable_code, FC_EIO);
	assert_string_equal(picture(&world, path, 8), "6");
	assert_string_equal(picture(&world, branching, 4), "2 2");
	wait_until_told(&branch, 0);
	assert_int_equal(world_session(&world, 1).dependents, 1);
	evict((struct fc_session_id){0, 1});
	assert_int_equal(stored(&world, branching, 4), 0); /* a tail without its head is of no use */
	assert_int_equal(world_session(&world, 4).segments, 0);
	put_deinit(&other);
	put_deinit(&first);
	put_deinit(&second);
	put_deinit(&branch);
	world_deinit(&world);
}

/* A turn of eight blocks in memory has resume points at 4 and at its end; the point at 4 is also on SSD, of the turn
 * before. Damage behind 4 leaves the memory's points without their head. Then the copy of the first is all that there
 * is, and the same session has it. */
static void what_an_orphan_leaves_is_taken_over_by_its_own_sessions_copy(void **state)
{
	(void)state;
	struct put turn;
	static const uint64_t points[] = {4};
	start(16, 16, geometry_hybrid(1));
	put_init(&turn, &world, 1, 1, path, 8);
	turn.turn.resume_points = points;
	turn.turn.resume_point_count = 1;
	assert_int_equal(put_reserve(&turn), 0);
	assert_int_equal(put_write(&turn), 0);
	assert_int_equal(save(&world, 1, 0, path, 4), 0); /* meanwhile */
	assert_string_equal(picture(&world, path, 8), "4");
	commit(&turn);
	world_drain(&world);
	assert_string_equal(picture(&world, path, 8), "m8");
	read_bad(6);
	world_drain(&world);
	assert_int_equal(stored(&world, path, 8), 4);
	put_deinit(&turn);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_that_is_revived_stands_on_who_has_its_other_blocks),
		cmocka_unit_test(who_stood_on_any_of_those_refused_stands_on_who_takes_over),
		cmocka_unit_test(what_an_orphan_leaves_is_taken_over_by_its_own_sessions_copy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Does an owner keep what its quota allows, and nobody else's sessions go for it? Unless a test says otherwise a turn
 * is one segment of one chunk, so bytes are counted in chunks. */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SESSIONS 16u
#define RED 7u
#define BLUE 40000u

static struct world world;
static struct fc_key keys[SESSIONS][24];
static struct fc_owner owners[2];
static char lost[256]; /* sessions in the order of their loss: "7:1 40000:3 " */

static void on_loss(void *context, struct fc_session_id id)
{
	(void)context;
	size_t length = strlen(lost);
	snprintf(lost + length, sizeof(lost) - length, "%u:%llu ", fc_session_tag(id), (unsigned long long)id.low);
}

static void start(void)
{
	assert_int_equal(world_open(&world), 0);
	fc_catalog_on_loss(world.catalog, on_loss, NULL);
}

/* `scale` times 17 bytes a block. */
static void prepare_scaled(uint32_t scale, uint64_t memory_chunks, uint64_t ssd_chunks, uint64_t red_chunks,
			   uint64_t blue_chunks)
{
	world_init(&world, geometry_plain(scale), memory_chunks, ssd_chunks);
	owners[0] = (struct fc_owner){BLUE, blue_chunks * WORLD_CHUNK_BYTES, ""};
	owners[1] = (struct fc_owner){RED, red_chunks * WORLD_CHUNK_BYTES, "red"};
	world.opts.owners = owners;
	world.opts.owner_count = 2;
	for (uint64_t i = 0; i < SESSIONS; i++)
		path_keys(100 + i, 0, keys[i], 24);
	lost[0] = '\0';
}

static void prepare(uint64_t memory_chunks, uint64_t ssd_chunks, uint64_t red_chunks, uint64_t blue_chunks)
{
	prepare_scaled(1, memory_chunks, ssd_chunks, red_chunks, blue_chunks);
}

static struct fc_session_id id_of(uint16_t owner, uint64_t session)
{
	return (struct fc_session_id){(uint64_t)owner << 48, session};
}

static void put_for(struct put *put, uint16_t owner, uint64_t session, uint64_t turn, const struct fc_key *path,
		    uint64_t count)
{
	put_init(put, &world, 0, turn, path, count);
	put->turn.owner = owner;
	put->turn.session = id_of(owner, session);
}

static int save_path(uint16_t owner, uint64_t session, uint64_t turn, const struct fc_key *path, uint64_t count)
{
	struct put put;
	put_for(&put, owner, session, turn, path, count);
	int code = put_reserve(&put);
	if (code == FC_OK)
		code = put_finish(&put);
	world_drain(&world);
	world_check(&world);
	put_deinit(&put);
	return code;
}

/* Turns of two blocks each. */
static void save_turns(uint16_t owner, uint64_t session, uint64_t turn_count)
{
	for (uint64_t turn = 0; turn < turn_count; turn++)
		assert_int_equal(save_path(owner, session, turn, keys[session], 2 * (turn + 1)), 0);
}

static struct fc_owner_stats stats_of(uint16_t owner)
{
	struct fc_owner_stats stats;
	assert_int_equal(fc_catalog_owner_stats(world.catalog, owner, &stats), 0);
	return stats;
}

static struct fc_stats told_to(uint16_t owner)
{
	struct fc_stats stats;
	assert_int_equal(fc_catalog_stats_of(world.catalog, owner, &stats), 0);
	return stats;
}

static uint64_t chunks_of(uint16_t owner)
{
	return stats_of(owner).bytes_used / WORLD_CHUNK_BYTES;
}

static uint64_t depth(uint64_t session)
{
	return stored(&world, keys[session], 24);
}

static void lease(uint64_t session, struct fc_path *path)
{
	assert_int_equal(fc_catalog_match(world.catalog, keys[session], 24, 0, true, path), 0);
	assert_true(path->blocks > 0);
}

static void release(struct fc_path *path)
{
	fc_catalog_release(world.catalog, path);
	fc_path_deinit(path, &world.alloc);
}

/* ---- what counts ---- */

static void chunks_count_for_the_tag_of_their_session(void **state)
{
	(void)state;
	prepare(0, 16, 0, 8);
	start();
	save_turns(RED, 1, 3);
	save_turns(RED, 2, 1);
	save_turns(BLUE, 3, 2);
	save_turns(0, 4, 1);
	assert_int_equal(chunks_of(RED), 4);
	assert_int_equal(stats_of(RED).sessions, 2);
	assert_int_equal(stats_of(RED).bytes_max, 0);
	assert_int_equal(chunks_of(BLUE), 2);
	assert_int_equal(stats_of(BLUE).sessions, 1);
	assert_int_equal(stats_of(BLUE).bytes_max, 8 * WORLD_CHUNK_BYTES);
	struct fc_owner_stats stats;
	assert_int_equal(fc_catalog_owner_stats(world.catalog, 8, &stats), FC_ENOENT);
	assert_int_equal(fc_catalog_owner_stats(world.catalog, 0, &stats), FC_ENOENT);
	assert_int_equal(fc_catalog_evict(world.catalog, id_of(RED, 1)), 0);
	world_check(&world);
	assert_int_equal(chunks_of(RED), 4); /* their entries are not yet zero on the medium */
	world_drain(&world);
	world_check(&world);
	assert_int_equal(chunks_of(RED), 1);
	assert_int_equal(stats_of(RED).sessions, 1);
	world_deinit(&world);
}

static void what_is_reserved_counts_until_it_is_given_back(void **state)
{
	(void)state;
	struct put put;
	prepare(0, 16, 4, 4);
	start();
	put_for(&put, RED, 1, 0, keys[1], 2);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(chunks_of(RED), 1);
	world_check(&world);
	put_abort(&put);
	assert_int_equal(chunks_of(RED), 0);
	put_deinit(&put);
	put_for(&put, RED, 1, 0, keys[1], 2);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1; /* of the batch's first sync's followers */
	world.media[FC_SSD]->fail_count = 100;
	world_drain(&world);
	world.media[FC_SSD]->fail_count = 0;
	assert_int_equal(put.durable_code, FC_EIO);
	put_deinit(&put);
	world_check(&world);
	save_turns(RED, 2, 1); /* its batch frees what the failed one left */
	assert_int_equal(chunks_of(RED), 1);
	world_deinit(&world);
}

static void what_an_owner_has_is_counted_again_after_a_restart(void **state)
{
	(void)state;
	prepare(0, 16, 8, 8);
	start();
	save_turns(RED, 1, 3);
	save_turns(BLUE, 2, 2);
	save_turns(0, 3, 1);
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	assert_int_equal(chunks_of(RED), 3);
	assert_int_equal(chunks_of(BLUE), 2);
	world.opts.owner_count = 1; /* red is nobody any more: its sessions count for nobody, and stay */
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	assert_int_equal(chunks_of(BLUE), 2);
	assert_int_equal(depth(1), 6);
	world_deinit(&world);
}

/* ---- room ---- */

static void the_owners_oldest_session_goes_and_nobody_elses(void **state)
{
	(void)state;
	prepare(0, 32, 5, 0);
	start();
	save_turns(BLUE, 1, 2);
	save_turns(0, 2, 2);
	save_turns(RED, 3, 2);
	save_turns(RED, 4, 1);
	save_turns(RED, 5, 2);
	assert_int_equal(chunks_of(RED), 5);
	save_turns(RED, 6, 1);
	assert_string_equal(lost, "7:3 "); /* whole, though one chunk would have been enough */
	assert_int_equal(depth(3), 0);
	assert_int_equal(chunks_of(RED), 4);
	assert_int_equal(stats_of(RED).sessions_reclaimed, 1);
	assert_int_equal(world_stats(&world).media[FC_SSD].sessions_reclaimed, 0);
	struct fc_path path = {0};
	lease(4, &path); /* a use: now 5 is the oldest */
	release(&path);
	save_turns(RED, 7, 2);
	assert_string_equal(lost, "7:3 7:5 ");
	assert_int_equal(chunks_of(RED), 4);
	assert_int_equal(depth(1), 4);
	assert_int_equal(depth(2), 4);
	assert_int_equal(stats_of(BLUE).sessions_reclaimed, 0);
	world_deinit(&world);
}

static void what_is_read_or_stood_upon_stays_and_the_turn_is_refused(void **state)
{
	(void)state;
	struct put put;
	struct fc_path path = {0};
	prepare(0, 32, 3, 0);
	start();
	save_turns(RED, 1, 1);
	memcpy(keys[2], keys[1], sizeof(keys[2]));
	path_keys(2, 2, keys[2], 24);
	assert_int_equal(save_path(RED, 2, 0, keys[2], 4), 0); /* stands on 1 */
	save_turns(RED, 3, 1);
	lease(2, &path); /* and the lease also covers what it stands on */
	save_turns(RED, 4, 1);
	assert_string_equal(lost, "7:3 ");
	struct fc_path other = {0};
	lease(4, &other);
	put_for(&put, RED, 5, 0, keys[5], 2);
	assert_int_equal(put_reserve(&put), FC_EFULL);
	assert_string_equal(put.error.text,
			    "save: 34 new bytes: namespace \"red\" may use 12288, uses 12288, needs 4096 more, and "
			    "nothing more of its own can be reclaimed");
	put_deinit(&put);
	assert_string_equal(lost, "7:3 ");
	assert_int_equal(stats_of(RED).saves_refused, 1);
	assert_int_equal(stats_of(RED).sessions_reclaimed, 1);
	assert_int_equal(world_stats(&world).saves_refused, 1);
	world_check(&world);
	release(&path);
	release(&other);
	save_turns(RED, 5, 1);
	assert_string_equal(lost, "7:3 7:2 "); /* the leaf before what it stands on */
	save_turns(BLUE, 6, 8);
	world_deinit(&world);
}

static void a_session_that_anothers_stands_on_is_not_taken(void **state)
{
	(void)state;
	prepare(0, 32, 2, 4);
	start();
	save_turns(RED, 1, 2);
	memcpy(keys[2], keys[1], sizeof(keys[2]));
	path_keys(2, 4, keys[2], 24);
	assert_int_equal(save_path(BLUE, 2, 0, keys[2], 6), 0);
	assert_int_equal(save_path(RED, 3, 0, keys[3], 2), FC_EFULL);
	assert_string_equal(lost, "");
	assert_int_equal(depth(2), 6);
	assert_int_equal(fc_catalog_evict(world.catalog, id_of(BLUE, 2)), 0);
	save_turns(RED, 3, 1);
	assert_string_equal(lost, "40000:2 7:1 ");
	world_deinit(&world);
}

/* Looking for a circle costs a look at everything, so that ends somewhere. */
static void many_that_others_stand_on_are_not_looked_at_for_ever(void **state)
{
	(void)state;
	const uint64_t count = 20;
	prepare(0, 64, count, 0);
	start();
	for (uint64_t i = 1; i <= count; i++) {
		struct fc_key path[4];
		path_keys(200 + i, 0, path, 4);
		assert_int_equal(save_path(RED, i, 0, path, 2), 0);
		assert_int_equal(save_path(BLUE, i, 0, path, 4), 0);
	}
	assert_int_equal(save_path(RED, 99, 0, keys[9], 2), FC_EFULL);
	assert_string_equal(lost, "");
	assert_int_equal(chunks_of(RED), count);
	world_deinit(&world);
}

/* Conversations that grew into the same text stand on each other in a circle. */
static void a_circle_goes_if_it_is_all_the_owners(void **state)
{
	(void)state;
	for (int is_mixed = 0; is_mixed < 2; is_mixed++) {
		uint16_t other = is_mixed ? BLUE : RED;
		prepare(0, 32, is_mixed ? 2 : 3, 0);
		start();
		assert_int_equal(save_path(RED, 1, 0, keys[1], 2), 0);
		assert_int_equal(save_path(other, 2, 0, keys[1], 4), 0);
		assert_int_equal(save_path(RED, 1, 1, keys[1], 6), 0);
		assert_int_equal(save_path(RED, 9, 0, keys[9], 2), is_mixed ? FC_EFULL : 0);
		assert_string_equal(lost, is_mixed ? "" : "7:1 7:2 ");
		assert_int_equal(depth(1), is_mixed ? 6 : 0);
		world_deinit(&world);
	}
}

static void space_that_is_being_freed_is_waited_for(void **state)
{
	(void)state;
	struct put put;
	prepare(0, 32, 3, 0);
	start();
	for (uint64_t session = 1; session <= 3; session++)
		save_turns(RED, session, 1);
	put_for(&put, RED, 4, 0, keys[4], 2);
	assert_int_equal(fc_catalog_reserve(world.catalog, &put.turn, &put.reservation, &put.error), FC_EAGAIN);
	assert_string_equal(lost, "7:1 ");
	assert_int_equal(chunks_of(RED), 3);
	/* Tried again too early, it takes nobody more. */
	fc_catalog_abort(world.catalog, &put.reservation);
	assert_int_equal(fc_catalog_reserve(world.catalog, &put.turn, &put.reservation, &put.error), FC_EAGAIN);
	assert_string_equal(lost, "7:1 ");
	world_drain(&world);
	assert_true(put.has_space);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	assert_string_equal(lost, "7:1 ");
	assert_int_equal(chunks_of(RED), 3);
	put_deinit(&put);
	world_deinit(&world);
}

static void what_is_being_freed_is_not_waited_for_when_it_is_not_enough(void **state)
{
	(void)state;
	struct put put;
	struct fc_path paths[2] = {{0}};
	prepare_scaled(100, 0, 64, 3, 0);
	start();
	for (uint64_t session = 1; session <= 3; session++)
		save_turns(RED, session, 1);
	lease(1, &paths[0]);
	lease(2, &paths[1]);
	assert_int_equal(fc_catalog_evict(world.catalog, id_of(RED, 3)), 0);
	put_for(&put, RED, 4, 0, keys[4], 3); /* two chunks */
	assert_int_equal(fc_catalog_reserve(world.catalog, &put.turn, &put.reservation, &put.error), FC_EFULL);
	put_deinit(&put);
	put_for(&put, RED, 4, 0, keys[4], 2);
	assert_int_equal(fc_catalog_reserve(world.catalog, &put.turn, &put.reservation, &put.error), FC_EAGAIN);
	fc_catalog_abort(world.catalog, &put.reservation);
	put_deinit(&put);
	release(&paths[0]);
	release(&paths[1]);
	world_deinit(&world);
}

static void what_comes_back_when_a_write_is_refused_is_kept_again(void **state)
{
	(void)state;
	struct put put;
	prepare(0, 16, 4, 0);
	world.opts.consolidate_ratio = 100;
	start();
	assert_int_equal(save_path(RED, 1, 0, keys[1], 2), 0);
	put_for(&put, RED, 1, 1, keys[1], 4);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	world_check(&world);
	assert_int_equal(fc_owner_find(world.catalog, RED)->bytes_leaving, WORLD_CHUNK_BYTES); /* what was absorbed */
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1;
	world_drain(&world);
	assert_int_equal(put.durable_code, FC_EIO);
	put_deinit(&put);
	world_check(&world);
	assert_string_equal(picture(&world, keys[1], 24), "2");
	world_deinit(&world);
}

static void a_turn_larger_than_the_quota_takes_nobody(void **state)
{
	(void)state;
	struct put put;
	prepare_scaled(100, 0, 64, 4, 0); /* 1700 bytes a block: 3 blocks are 2 chunks, 12 are 6 */
	start();
	save_turns(RED, 1, 1);
	save_turns(RED, 2, 1);
	put_for(&put, RED, 3, 0, keys[3], 12);
	assert_int_equal(put_reserve(&put), FC_EFULL);
	assert_string_equal(put.error.text,
			    "save: 20400 new bytes: namespace \"red\" may use 16384, uses 8192, needs 24576 more, "
			    "and this save alone is larger than the quota");
	put_deinit(&put);
	/* Nor does one that is too large with what its own session has. */
	assert_int_equal(save_path(RED, 2, 1, keys[2], 9), FC_EFULL);
	assert_string_equal(lost, "");
	assert_int_equal(stats_of(RED).saves_refused, 2);
	assert_int_equal(save_path(RED, 2, 0, keys[2], 2), 0); /* what is stored already is free */
	world_deinit(&world);
}

static void nothing_is_absorbed_that_the_quota_has_no_room_for(void **state)
{
	(void)state;
	prepare_scaled(100, 0, 64, 4, 0);
	world.opts.consolidate_ratio = 100;
	start();
	save_turns(BLUE, 1, 2);
	assert_string_equal(picture(&world, keys[1], 24), "4");
	assert_int_equal(save_path(RED, 2, 0, keys[2], 6), 0);
	save_turns(RED, 3, 1);
	assert_int_equal(chunks_of(RED), 4);
	assert_int_equal(save_path(RED, 2, 1, keys[2], 8), 0);
	assert_string_equal(picture(&world, keys[2], 24), "6 2");
	assert_string_equal(lost, "7:3 ");
	world_deinit(&world);

	prepare_scaled(100, 16, 64, 4, 0); /* nor does a chat's turn leave memory for that */
	world.opts.consolidate_ratio = 100;
	start();
	assert_int_equal(save_path(RED, 2, 0, keys[2], 6), 0);
	assert_int_equal(save_path(RED, 2, 1, keys[2], 8), 0);
	assert_string_equal(picture(&world, keys[2], 24), "6 m2");
	world_deinit(&world);
}

static void a_smaller_quota_is_kept_from_the_next_turn_on(void **state)
{
	(void)state;
	prepare(0, 32, 8, 0);
	start();
	for (uint64_t session = 1; session <= 8; session++)
		save_turns(RED, session, 1);
	save_turns(BLUE, 9, 1);
	owners[1].bytes_max = 3 * WORLD_CHUNK_BYTES;
	assert_int_equal(world_reopen(&world, 0), 0);
	fc_catalog_on_loss(world.catalog, on_loss, NULL);
	world_check(&world);
	assert_int_equal(chunks_of(RED), 8);
	save_turns(RED, 10, 1);
	assert_string_equal(lost, "7:1 7:2 7:3 7:4 7:5 7:6 ");
	assert_int_equal(chunks_of(RED), 3);
	assert_int_equal(stats_of(RED).sessions_reclaimed, 6);
	assert_int_equal(depth(9), 2);
	world_deinit(&world);
}

/* ---- two media ---- */

static void both_media_count_together(void **state)
{
	(void)state;
	prepare(8, 8, 3, 0);
	start();
	save_turns(RED, 1, 3); /* the first turn lies on SSD, the others in memory */
	assert_string_equal(picture(&world, keys[1], 24), "2 m2 m2");
	assert_int_equal(chunks_of(RED), 3);
	save_turns(RED, 2, 1);
	assert_string_equal(lost, "7:1 ");
	assert_int_equal(chunks_of(RED), 1);
	world_deinit(&world);
}

static int save_shared(uint16_t owner, uint64_t session, const struct fc_key *path, uint64_t count)
{
	struct put put;
	put_for(&put, owner, session, 0, path, count);
	put.turn.shared_blocks = 4;
	int code = put_reserve(&put);
	if (code == FC_OK)
		code = put_finish(&put);
	world_drain(&world);
	world_check(&world);
	put_deinit(&put);
	return code;
}

static void a_prompt_is_its_owners_and_goes_after_what_stands_on_it(void **state)
{
	(void)state;
	prepare(8, 8, 3, 0);
	start();
	assert_int_equal(save_shared(RED, 1, keys[1], 6), 0); /* prompt on SSD and in memory, and the turn */
	assert_string_equal(picture(&world, keys[1], 24), "m4 2");
	assert_int_equal(chunks_of(RED), 3);
	assert_int_equal(stats_of(RED).sessions, 2);
	save_turns(RED, 2, 1);
	assert_string_equal(lost, "7:1 ");
	assert_string_equal(picture(&world, keys[1], 24), "m4");
	save_turns(RED, 3, 1); /* a prompt goes without a word */
	assert_string_equal(lost, "7:1 ");
	assert_int_equal(depth(1), 0);
	assert_int_equal(stats_of(RED).sessions_reclaimed, 2);
	assert_int_equal(chunks_of(RED), 2);
	world_deinit(&world);
}

static void a_prompt_is_not_copied_where_the_turn_would_not_fit_with_it(void **state)
{
	(void)state;
	prepare(8, 8, 2, 0);
	start();
	save_turns(RED, 2, 1);
	assert_int_equal(save_shared(RED, 1, keys[1], 6), 0);
	assert_string_equal(picture(&world, keys[1], 24), "6");
	assert_string_equal(lost, "");
	assert_int_equal(chunks_of(RED), 2);
	world_deinit(&world);
}

/* The agent's other branch is left over in memory, and is to be copied to SSD. */
static void leave_over_in_memory(uint64_t red_chunks)
{
	prepare(8, 16, red_chunks, 0);
	world.opts.agent_context_tokens = 4 * 12;
	start();
	memcpy(keys[2], keys[1], sizeof(keys[2]));
	path_keys(2, 4, keys[2], 24);
	assert_int_equal(save_path(RED, 1, 0, keys[1], 4), 0);
	assert_int_equal(save_path(RED, 1, 1, keys[1], 8), 0);
	assert_int_equal(save_path(RED, 1, 2, keys[2], 8), 0);
	assert_int_equal(save_path(RED, 1, 3, keys[2], 13), 0);
	assert_string_equal(picture(&world, keys[1], 24), "4 m4");
	assert_int_equal(chunks_of(RED), 3);
}

static void a_spill_without_room_in_the_quota_is_skipped(void **state)
{
	(void)state;
	leave_over_in_memory(4);
	assert_int_equal(spill_one(&world), 0);
	assert_string_equal(picture(&world, keys[1], 24), "4 4");
	assert_int_equal(chunks_of(RED), 3);
	world_check(&world);
	world_deinit(&world);

	leave_over_in_memory(4);
	save_turns(RED, 3, 1);
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	assert_string_equal(picture(&world, keys[1], 24), "4 m4");
	assert_string_equal(lost, "");
	world_check(&world);
	world_deinit(&world);
}

static void a_chat_that_has_no_room_to_be_spilled_is_dropped(void **state)
{
	(void)state;
	for (int has_room = 0; has_room < 2; has_room++) {
		prepare(2, 16, has_room ? 4 : 3, 0);
		world.opts.memory_reclaim = FC_MEMORY_SPILL;
		start();
		save_turns(RED, 1, 2);
		struct fc_path path = {0};
		lease(1, &path); /* reused, so worth a spill */
		release(&path);
		save_turns(RED, 2, 1);
		save_turns(BLUE, 3, 3); /* fills memory, and then wants more */
		assert_string_equal(lost, has_room ? "" : "7:1 ");
		assert_int_equal(stats_of(RED).sessions_reclaimed, 0); /* it was memory that lacked room */
		world_deinit(&world);
	}
}

/* ---- what an owner is told ---- */

static void assert_gone(uint16_t owner, enum fc_medium medium, uint64_t sessions, uint64_t chunks)
{
	struct fc_stats stats = told_to(owner);
	assert_int_equal(stats.media[medium].sessions_reclaimed, sessions);
	assert_int_equal(stats.media[medium].bytes_reclaimed, chunks * WORLD_CHUNK_BYTES);
}

/* For the arena's room and for its quota alike; others hear nothing of it. */
static void what_it_has_lost_for_room_is_told_to_the_owner_alone(void **state)
{
	(void)state;
	prepare(0, 3, 4, 0);
	start();
	save_turns(RED, 1, 1);
	save_turns(RED, 2, 1);
	save_turns(BLUE, 3, 1);
	assert_string_equal(lost, "");
	save_turns(BLUE, 4, 1);
	assert_string_equal(lost, "7:1 ");
	assert_gone(RED, FC_SSD, 1, 1);
	assert_gone(BLUE, FC_SSD, 0, 0);
	assert_int_equal(world_stats(&world).media[FC_SSD].sessions_reclaimed, 1);
	world_deinit(&world);

	prepare(2, 16, 2, 0);
	start();
	save_turns(RED, 1, 2);
	assert_string_equal(picture(&world, keys[1], 24), "2 m2");
	save_turns(RED, 2, 1); /* over its quota: one session, with what it has in either medium */
	assert_string_equal(lost, "7:1 ");
	assert_gone(RED, FC_SSD, 1, 1);
	assert_gone(RED, FC_MEMORY, 0, 1);
	assert_gone(BLUE, FC_SSD, 0, 0);
	assert_int_equal(world_stats(&world).media[FC_SSD].sessions_reclaimed, 0);
	world_deinit(&world);
}

static void what_was_cut_or_absorbed_is_told_to_the_owner_alone(void **state)
{
	(void)state;
	prepare(0, 16, 0, 0);
	world.opts.consolidate_ratio = 10;
	start();
	save_turns(BLUE, 1, 1);
	save_turns(RED, 2, 2);
	assert_string_equal(picture(&world, keys[2], 24), "4");
	assert_int_equal(told_to(RED).media[FC_SSD].segments_absorbed, 1);
	assert_int_equal(told_to(BLUE).media[FC_SSD].segments_absorbed, 0);
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(world.catalog, keys[2], 24, 0, false, &path), 0);
	fc_catalog_cut(world.catalog, path.placed[path.spans[0].placed].segment, 3);
	fc_path_deinit(&path, &world.alloc);
	assert_int_equal(depth(2), 3);
	assert_int_equal(told_to(RED).sessions_cut, 1);
	assert_int_equal(told_to(BLUE).sessions_cut, 0);
	struct fc_stats stats;
	assert_int_equal(fc_catalog_stats_of(world.catalog, RED + 1, &stats), FC_ENOENT);
	world_check(&world);
	world_deinit(&world);
}

/* ---- ids ---- */

static struct fc_session_id inferred(uint16_t owner, const struct fc_key *path, uint64_t count)
{
	struct put put;
	put_for(&put, owner, 0, 0, path, count);
	put.turn.session = (struct fc_session_id){0, 0};
	assert_int_equal(put_reserve(&put), 0);
	struct fc_session_id id = put.reservation.session;
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	world_check(&world);
	put_deinit(&put);
	return id;
}

static void derived_ids_begin_with_the_owners_tag(void **state)
{
	(void)state;
	prepare(8, 16, 0, 0);
	start();
	struct fc_session_id red = inferred(RED, keys[1], 4);
	assert_int_equal(red.high >> 48, RED);
	struct fc_session_id again = inferred(RED, keys[1], 8);
	assert_memory_equal(&red, &again, sizeof(red)); /* goes on with its own */
	struct fc_session_id blue = inferred(BLUE, keys[1], 12);
	assert_int_equal(blue.high >> 48, BLUE); /* and not with another's */
	struct fc_session_id nobody = inferred(0, keys[2], 4);
	assert_int_equal(nobody.high >> 48, 0);
	assert_int_equal(save_shared(BLUE, 3, keys[3], 6), 0);
	assert_int_equal(stats_of(BLUE).sessions, 3); /* a prompt's, too */
	world_deinit(&world);

	prepare(8, 16, 0, 0); /* without owners an id is all hash */
	world.opts.owner_count = 0;
	start();
	struct fc_session_id plain = inferred(0, keys[1], 4);
	assert_int_equal(plain.high, keys[1][0].high ^ 0x636f6e7665727361ull);
	assert_int_equal(red.high & (UINT64_MAX >> 16), plain.high & (UINT64_MAX >> 16));
	assert_int_equal(red.low, plain.low);
	save_turns(0, 2, 2);
	world_deinit(&world);
}

static void assert_refused(uint16_t owner, struct fc_session_id id, const char *text)
{
	struct put put;
	put_for(&put, owner, 0, 0, keys[1], 2);
	put.turn.session = id;
	assert_int_equal(put_reserve(&put), FC_EINVAL);
	assert_string_equal(put.error.text, text);
	put_deinit(&put);
	world_check(&world);
	assert_int_equal(world_sessions(&world), 0);
}

static void an_id_must_be_its_owners(void **state)
{
	(void)state;
	prepare(0, 16, 0, 0);
	start();
	assert_refused(9, id_of(9, 1), "save: owner 9; the store has no owner with that tag");
	assert_refused(
		RED, id_of(BLUE, 1),
		"save: session 9c400000000000000000000000000001 begins with tag 40000, and the turn's owner is 7");
	assert_refused(0, id_of(RED, 1),
		       "save: session 00070000000000000000000000000001 begins with tag 7, and the turn's owner is 0");
	assert_refused(RED, id_of(0, 1),
		       "save: session 00000000000000000000000000000001 begins with tag 0, and the turn's owner is 7");
	struct put put; /* a tag that is nobody's is nobody's */
	put_for(&put, 0, 0, 0, keys[1], 2);
	put.turn.session = id_of(9, 1);
	assert_int_equal(put_reserve(&put), 0);
	put_abort(&put);
	put_deinit(&put);
	world_deinit(&world);
}

/* ---- opening ---- */

static void assert_open_refused(const struct fc_owner *list, uint32_t count, const char *text)
{
	world.opts.owners = list;
	world.opts.owner_count = count;
	assert_int_equal(world_open(&world), FC_EINVAL);
	assert_string_equal(world.error.text, text);
	assert_int_equal(world.tracked.bytes, 0);
}

static void owners_are_checked_when_it_opens(void **state)
{
	(void)state;
	static struct fc_owner many[FC_OWNERS_MAX + 1];
	const struct fc_owner zero[] = {{3, 1, NULL}, {0, 1, NULL}};
	const struct fc_owner twice[] = {{3, 1, NULL}, {5, 1, NULL}, {3, 2, NULL}};
	for (uint32_t i = 0; i <= FC_OWNERS_MAX; i++)
		many[i].tag = (uint16_t)(FC_OWNERS_MAX + 1 - i);
	prepare(0, 16, 0, 0);
	assert_open_refused(zero, 2, "owner with tag 0; 1 to 65535 are allowed");
	assert_open_refused(twice, 3, "owner with tag 3 is there twice; tags must differ");
	assert_open_refused(many, FC_OWNERS_MAX + 1, "1025 owners; at most 1024 are allowed");
	world.opts.owner_count = FC_OWNERS_MAX;
	start();
	for (uint32_t i = 0; i < FC_OWNERS_MAX; i++)
		assert_int_equal(stats_of(many[i].tag).sessions, 0);
	world_deinit(&world);
}

static void an_open_without_memory_gives_all_back(void **state)
{
	(void)state;
	uint64_t k = 1;
	prepare(0, 16, 4, 4);
	for (;; k++) {
		world.tracked.fail_at = world.tracked.call_count + k;
		int code = world_open(&world);
		world.tracked.fail_at = 0;
		if (code == FC_OK)
			break;
		assert_int_equal(code, FC_ENOMEM);
		assert_int_equal(world.tracked.bytes, 0);
	}
	assert_true(k > 10);
	save_turns(RED, 1, 1);
	world_deinit(&world);
}

/* ---- the scan ---- */

static void assert_found(uint64_t *counter, uint64_t value, const char *text)
{
	struct fc_error error = {0};
	uint64_t right = *counter;
	*counter = value;
	assert_int_equal(fc_catalog_check(world.catalog, &error), FC_ECORRUPT);
	if (strstr(error.text, text) == NULL)
		fail_msg("'%s' does not say '%s'", error.text, text);
	*counter = right;
	world_check(&world);
}

static void the_scan_finds_a_wrong_account(void **state)
{
	(void)state;
	prepare(0, 16, 4, 0);
	start();
	save_turns(RED, 1, 1);
	save_turns(RED, 2, 1);
	struct fc_owner_state *red = fc_owner_find(world.catalog, RED);
	struct fc_session *session = fc_session_find(world.catalog, id_of(RED, 2));
	assert_found(&red->bytes_used, 4096, "owner 7: segments take 8192 bytes, counted 4096");
	assert_found(&red->bytes_leaving, 4096, "owner 7: 0 bytes are leaving, counted 4096");
	assert_found(&red->session_count, 3, "owner 7: 2 sessions, counted 3");
	assert_found(&red->bytes_max, 4096, "owner 7: 8192 bytes are used of 4096");
	assert_found(&session->used_seq, 0, " is not in the order of its use");
	assert_found(&session->owner_order.key, 0, " is not where it belongs among what its owner may lose");
	assert_found(&red->order.count, 1, "owner: 2 sessions may be reclaimed, and 1 are in its order");
	struct fc_holdings *held = &red->held[FC_SSD];
	assert_found(&held->chunks_used, 3, "owner 7, ssd: segments hold 2 chunks, counted 3");
	assert_found(&held->segment_count, 3, "owner 7, ssd: 2 segments, counted 3");
	assert_found(&held->session_count, 1, "owner 7, ssd: 2 sessions, counted 1");
	assert_found(&held->seam_count, 1, "owner 7, ssd: 0 segments lie behind another of their session, counted 1");
	assert_found(&held->blocks_named, held->blocks_named + 1, " blocks named, counted ");
	assert_found(&held->bytes_stored, held->bytes_stored + 1, " bytes stored, counted ");
	struct fc_error error = {0};
	uint64_t key = session->owner_order.key;
	session->owner = NULL;
	session->owner_order.key = 0;
	assert_int_equal(fc_catalog_check(world.catalog, &error), FC_ECORRUPT);
	assert_string_equal(error.text, "owner 7: session 0007000000000000 is another owner's");
	session->owner = red;
	session->owner_order.key = key;
	world_check(&world);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_count_for_the_tag_of_their_session),
		cmocka_unit_test(what_is_reserved_counts_until_it_is_given_back),
		cmocka_unit_test(what_an_owner_has_is_counted_again_after_a_restart),
		cmocka_unit_test(the_owners_oldest_session_goes_and_nobody_elses),
		cmocka_unit_test(what_is_read_or_stood_upon_stays_and_the_turn_is_refused),
		cmocka_unit_test(a_session_that_anothers_stands_on_is_not_taken),
		cmocka_unit_test(many_that_others_stand_on_are_not_looked_at_for_ever),
		cmocka_unit_test(a_circle_goes_if_it_is_all_the_owners),
		cmocka_unit_test(space_that_is_being_freed_is_waited_for),
		cmocka_unit_test(what_is_being_freed_is_not_waited_for_when_it_is_not_enough),
		cmocka_unit_test(what_comes_back_when_a_write_is_refused_is_kept_again),
		cmocka_unit_test(a_turn_larger_than_the_quota_takes_nobody),
		cmocka_unit_test(nothing_is_absorbed_that_the_quota_has_no_room_for),
		cmocka_unit_test(a_smaller_quota_is_kept_from_the_next_turn_on),
		cmocka_unit_test(both_media_count_together),
		cmocka_unit_test(a_prompt_is_its_owners_and_goes_after_what_stands_on_it),
		cmocka_unit_test(a_prompt_is_not_copied_where_the_turn_would_not_fit_with_it),
		cmocka_unit_test(a_spill_without_room_in_the_quota_is_skipped),
		cmocka_unit_test(a_chat_that_has_no_room_to_be_spilled_is_dropped),
		cmocka_unit_test(what_it_has_lost_for_room_is_told_to_the_owner_alone),
		cmocka_unit_test(what_was_cut_or_absorbed_is_told_to_the_owner_alone),
		cmocka_unit_test(derived_ids_begin_with_the_owners_tag),
		cmocka_unit_test(an_id_must_be_its_owners),
		cmocka_unit_test(owners_are_checked_when_it_opens),
		cmocka_unit_test(an_open_without_memory_gives_all_back),
		cmocka_unit_test(the_scan_finds_a_wrong_account),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

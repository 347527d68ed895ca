/* Does the full scan find what it is there to find? Each case breaks one thing in a healthy catalog, by hand, and wants
 * to be told about that thing; mended again, the catalog is healthy. */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key keys[8], branch[8];

/* What may be broken: a session in memory with a spare copy on SSD of its first blocks, and one that stands on it. */
static struct fc_session *session, *follower;
static struct fc_segment *in_memory, *backup, *standing;
static struct fc_arena *memory, *ssd;

static void make_catalog(void)
{
	world_init(&world, geometry_plain(1), 8, 16);
	world.opts.consolidate_ratio = 1;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	memcpy(branch, keys, sizeof(branch));
	path_keys(2, 4, branch, 8);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	assert_int_equal(save(&world, 1, 1, keys, 8), 0);
	assert_int_equal(save(&world, 2, 0, branch, 8), 0);
	assert_string_equal(picture(&world, keys, 8), "m8");
	assert_string_equal(picture(&world, branch, 8), "m4 4");
	memory = &world.catalog->arenas[FC_MEMORY];
	ssd = &world.catalog->arenas[FC_SSD];
	backup = world.catalog->segments[0];
	in_memory = world.catalog->segments[1];
	standing = world.catalog->segments[2];
	session = in_memory->session;
	follower = standing->session;
	assert_true(backup->is_backup);
	assert_int_equal(standing->start_block, 4);
	world_check(&world);
}

static void assert_found(const char *text)
{
	struct fc_error error = {0};
	assert_int_equal(fc_catalog_check(world.catalog, &error), FC_ECORRUPT);
	if (strstr(error.text, text) == NULL)
		fail_msg("'%s' does not say '%s'", error.text, text);
}

static void assert_counter_is_checked(uint64_t *counter, const char *text)
{
	*counter += 1;
	assert_found(text);
	*counter -= 1;
	world_check(&world);
}

static void counters_are_compared_with_a_scan(void **state)
{
	(void)state;
	make_catalog();
	assert_counter_is_checked(&standing->named_count, "4 entries are named, counted 5");
	assert_counter_is_checked(&session->segment_count[FC_SSD], "session 0000000000000001: 1 segments, counted 2");
	assert_counter_is_checked(&session->lease_count, "segments have 0 leases, sessions 1");
	assert_counter_is_checked(&memory->held.chunks_used, "memory: segments hold 1 chunks, counted 2");
	assert_counter_is_checked(&ssd->held.chunks_used, "ssd: segments hold 2 chunks, counted 3");
	assert_counter_is_checked(&ssd->chunk_count, "ssd: 14 chunks free and 2 used of 17");
	assert_counter_is_checked(&ssd->chunks_freeing, "0 chunks on their way to be free, counted 1");
	assert_counter_is_checked(&ssd->chunks_linked, "sessions hold 2 chunks, counted 3");
	assert_counter_is_checked(&ssd->held.blocks_named, "4 blocks named, counted 5");
	assert_counter_is_checked(&memory->held.segment_count, "memory: 1 segments, counted 2");
	assert_counter_is_checked(&memory->held.bytes_stored, "memory: 136 bytes stored, counted 137");
	assert_counter_is_checked(&session->chunks[FC_SSD], "session 0000000000000001: 1 chunks, counted 2");
	assert_counter_is_checked(&ssd->chunks_leaving, "ssd: 0 chunks are leaving, counted 1");
	assert_counter_is_checked(&ssd->chunks_to_go, "chunks may be reclaimed, counted");
	assert_counter_is_checked(&ssd->held.seam_count, "0 segments lie behind another of their session, counted 1");
	assert_counter_is_checked(&world.catalog->key_bytes, "keys take 256 bytes, counted 257");
	world_deinit(&world);
}

/* Whoever asks for statistics, and however often, makes nobody go through what is stored. */
static void statistics_look_at_no_segment(void **state)
{
	(void)state;
	make_catalog();
	struct fc_segment **segments = world.catalog->segments;
	world.catalog->segments = NULL;
	struct fc_stats stats = world_stats(&world);
	world.catalog->segments = segments;
	assert_int_equal(stats.media[FC_SSD].segments, 2);
	assert_int_equal(stats.media[FC_SSD].extents, 2);
	assert_int_equal(stats.media[FC_MEMORY].extents, 1);
	assert_true(stats.index_bytes > 256);
	world_deinit(&world);
}

static void segments_are_where_they_say(void **state)
{
	(void)state;
	make_catalog();
	uint64_t chunk = standing->chunk_first;
	standing->chunk_first = 16;
	assert_found("segment 2 lies outside its arena");
	standing->chunk_first = chunk;
	ssd->owner[chunk] = 0;
	assert_found("segment 2 does not own its first chunk");
	ssd->owner[chunk] = 3;
	ssd->owner[15] = 1;
	assert_found("ssd: 3 chunks begin a segment, and there are 2");
	ssd->owner[15] = 0;
	ssd->ender[15] = 1;
	assert_found("ssd: 3 chunks end a segment, and there are 2");
	ssd->ender[15] = 0;
	ssd->ender[chunk] = 0;
	assert_found("segment 2 does not own its last chunk");
	ssd->ender[chunk] = 3;
	world_check(&world);
	world_deinit(&world);
}

static void states_fit_names(void **state)
{
	(void)state;
	make_catalog();
	enum fc_segment_state before = standing->state;
	standing->state = FC_SEGMENT_RETIRED;
	assert_found("segment 2 is named in state");
	standing->state = before;
	backup->is_backup = false;
	assert_found("segment 0 is kept, but nothing names it");
	backup->is_backup = true;
	world_check(&world);
	world_deinit(&world);
}

static void nothing_stands_on_nothing(void **state)
{
	(void)state;
	make_catalog();
	standing->parent.low ^= 1;
	assert_found("segment 2 begins at block 4, and the block before it is gone");
	standing->parent.low ^= 1;
	follower->dep_count--;
	assert_found("segment 2 stands on a session that its own does not hold");
	follower->dep_count++;
	fc_segment_unname(world.catalog, standing, 1);
	assert_found("segment 2: entry 2 is named, and the one before is gone");
	assert_int_equal(fc_segment_name(world.catalog, standing, 1, false), 0);
	world_check(&world);
	world_deinit(&world);
}

static void sessions_own_their_segments(void **state)
{
	(void)state;
	make_catalog();
	backup->session = follower;
	assert_found("segment 0 is listed by another session");
	backup->session = session;
	fc_list_push(&world.catalog->spills, &follower->spill_link);
	assert_found("session 0000000000000002 is to leave memory, and has nothing there");
	fc_list_remove(&follower->spill_link);
	world_check(&world);
	world_deinit(&world);
}

static void leases_add_up(void **state)
{
	(void)state;
	make_catalog();
	standing->lease_count++;
	assert_found("session 0000000000000002 has fewer leases than its segments");
	follower->lease_count++;
	assert_found("segments are leased, but no lease is counted");
	world.catalog->lease_count++;
	assert_found("session 0000000000000002 is in use or not, and is taken for the other");
	fc_reclaim_sort(world.catalog, follower);
	world_check(&world);
	standing->lease_count--;
	follower->lease_count--;
	world.catalog->lease_count--;
	fc_reclaim_sort(world.catalog, follower);
	world_check(&world);
	world_deinit(&world);
}

static void both_ends_of_what_stands_on_what_agree(void **state)
{
	(void)state;
	make_catalog();
	struct fc_dep *dep = &follower->deps[0];
	assert_int_equal(follower->dep_count, 1);
	assert_int_equal(session->dependent_count, 1);
	session->dependent_count++;
	assert_found("session 0000000000000001: 1 stand on it, counted 2 of 1");
	session->dependent_count--;
	session->busy_dependent_count++;
	assert_found("session 0000000000000001: 0 that stand on it are in use, counted 1");
	session->busy_dependent_count--;
	dep->from = session;
	assert_found("session 0000000000000002: what it stands on does not know of it");
	dep->from = follower;
	fc_list_remove(&dep->link);
	fc_list_push(&follower->dependents, &dep->link);
	assert_found("session 0000000000000002: what stands on it does not know of it");
	fc_list_remove(&dep->link);
	fc_list_push(&session->dependents, &dep->link);
	dep->is_loose = true;
	assert_found("segment 2 stands on a session that its own does not hold");
	dep->is_loose = false;
	follower->keep_count++;
	assert_found("session 0000000000000002 is left over from what is done");
	follower->keep_count--;
	world_check(&world);
	world_deinit(&world);
}

static void what_may_be_reclaimed_is_where_it_belongs(void **state)
{
	(void)state;
	make_catalog();
	assert_int_equal(session->order[FC_MEMORY].key, FC_STOOD_UPON | session->used_seq);
	assert_int_equal(follower->order[FC_MEMORY].key, 0);
	assert_int_equal(follower->order[FC_SSD].key, follower->used_seq);
	fc_order_put(&ssd->order, &follower->order[FC_SSD], 0);
	assert_found("session 0000000000000002 is not where it belongs");
	fc_order_put(&ssd->order, &follower->order[FC_SSD], follower->used_seq + 1000);
	assert_found("session 0000000000000002 is not where it belongs");
	fc_order_put(&ssd->order, &follower->order[FC_SSD], follower->used_seq);
	assert_counter_is_checked(&ssd->order.count, "ssd: 2 sessions may be reclaimed, and 3 are in its order");
	assert_counter_is_checked(&memory->held.session_count, "memory: 1 sessions, counted 2");
	assert_counter_is_checked(&session->backup_count, "session 0000000000000001: 1 backups, counted 2");
	session->is_backed_up = true;
	assert_found("session 0000000000000001 has backups of its memory or not, and is taken for the other");
	session->is_backed_up = false;
	world_check(&world);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_are_compared_with_a_scan),
		cmocka_unit_test(statistics_look_at_no_segment),
		cmocka_unit_test(segments_are_where_they_say),
		cmocka_unit_test(states_fit_names),
		cmocka_unit_test(nothing_stands_on_nothing),
		cmocka_unit_test(sessions_own_their_segments),
		cmocka_unit_test(leases_add_up),
		cmocka_unit_test(both_ends_of_what_stands_on_what_agree),
		cmocka_unit_test(what_may_be_reclaimed_is_where_it_belongs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

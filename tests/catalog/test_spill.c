/* Is memory copied to SSD segment by segment, and only what is still worth it? */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct world world;
static struct fc_key keys[16], branch[16];

/* A chat with its first turn on SSD, and on each of two branches a turn in memory; then the second branch becomes an
 * agent's. Its own turn is absorbed; the first branch's turn is left over in memory. */
static void open_world_with_a_left_over(void)
{
	world_init(&world, geometry_plain(1), 8, 16);
	world.opts.agent_context_tokens = 4 * 12;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 16);
	memcpy(branch, keys, sizeof(branch));
	path_keys(2, 4, branch, 16);
	assert_int_equal(save(&world, 1, 0, keys, 4), 0);
	assert_int_equal(save(&world, 1, 1, keys, 8), 0);
	assert_int_equal(save(&world, 1, 2, branch, 8), 0);
	assert_string_equal(picture(&world, keys, 16), "4 m4");
	assert_string_equal(picture(&world, branch, 16), "4 m4");
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	assert_int_equal(save(&world, 1, 3, branch, 13), 0);
	assert_string_equal(picture(&world, branch, 16), "4 9");
	assert_string_equal(picture(&world, keys, 16), "4 m4");
}

struct spill {
	struct put put;
	struct fc_path from;
};

static void begin(struct spill *spill)
{
	memset(spill, 0, sizeof(*spill));
	put_init(&spill->put, &world, 0, 0, NULL, 0);
	assert_int_equal(fc_catalog_spill_next(world.catalog, &spill->from, &spill->put.reservation), 0);
}

static int finish(struct spill *spill)
{
	int code = put_finish(&spill->put);
	fc_catalog_release(world.catalog, &spill->from);
	world_drain(&world);
	world_check(&world);
	fc_path_deinit(&spill->from, &world.alloc);
	put_deinit(&spill->put);
	return code;
}

static void what_an_agent_leaves_in_memory_is_copied_to_ssd(void **state)
{
	(void)state;
	struct spill spill;
	open_world_with_a_left_over();
	begin(&spill);
	const struct fc_placed *from = &spill.from.placed[0], *to = &spill.put.reservation.grants[0].placed;
	assert_int_equal(fc_gva_medium(from->base), FC_MEMORY);
	assert_int_equal(fc_gva_medium(to->base), FC_SSD);
	assert_int_equal(to->shape->range_count, 1);
	assert_memory_equal(to->shape->ranges, from->shape->ranges, sizeof(*to->shape->ranges));
	assert_true(spill.from.is_leased);
	/* One at a time for a session. */
	struct spill second = {0};
	put_init(&second.put, &world, 0, 0, NULL, 0);
	assert_int_equal(fc_catalog_spill_next(world.catalog, &second.from, &second.put.reservation), FC_EAGAIN);
	assert_int_equal(finish(&spill), 0);
	assert_string_equal(picture(&world, keys, 16), "4 4");
	assert_int_equal(stored(&world, keys, 16), 8);
	assert_int_equal(stored(&world, branch, 16), 13);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	world_crash(&world, 1);
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(stored(&world, keys, 16), 8);
	world_deinit(&world);
}

static void memory_is_freed_when_the_copy_is_durable(void **state)
{
	(void)state;
	struct spill spill;
	open_world_with_a_left_over();
	begin(&spill);
	assert_int_equal(put_finish(&spill.put), 0);
	fc_catalog_release(world.catalog, &spill.from);
	assert_string_equal(picture(&world, keys, 16), "4 4");
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 1);
	world_drain(&world);
	assert_int_equal(spill.put.durable_count, 1);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
	fc_path_deinit(&spill.from, &world.alloc);
	put_deinit(&spill.put);
	world_deinit(&world);
}

static void a_copy_that_ssd_refuses_leaves_memory_as_it_was(void **state)
{
	(void)state;
	struct spill spill;
	open_world_with_a_left_over();
	begin(&spill);
	assert_int_equal(put_write(&spill.put), 0);
	world.media[FC_SSD]->fail_at = world.media[FC_SSD]->op_count + 1;
	world.media[FC_SSD]->fail_count = 1;
	assert_int_equal(put_commit(&spill.put), 0);
	fc_catalog_release(world.catalog, &spill.from);
	world_drain(&world);
	world_check(&world);
	assert_int_equal(spill.put.durable_code, FC_EIO);
	assert_string_equal(picture(&world, keys, 16), "4 m4");
	assert_int_equal(stored(&world, keys, 16), 8);
	fc_path_deinit(&spill.from, &world.alloc);
	put_deinit(&spill.put);
	world_deinit(&world);
}

static void given_up_it_can_begin_again(void **state)
{
	(void)state;
	struct spill spill;
	open_world_with_a_left_over();
	begin(&spill);
	put_abort(&spill.put);
	fc_catalog_release(world.catalog, &spill.from);
	fc_path_deinit(&spill.from, &world.alloc);
	put_deinit(&spill.put);
	world_check(&world);
	assert_string_equal(picture(&world, keys, 16), "4 m4");
	assert_int_equal(spill_one(&world), 0);
	assert_string_equal(picture(&world, keys, 16), "4 4");
	world_deinit(&world);
}

/* What was found damaged while it was copied is not named again by the copy. */
static void a_copy_names_only_what_is_still_named(void **state)
{
	(void)state;
	struct spill spill;
	open_world_with_a_left_over();
	begin(&spill);
	fc_catalog_cut(world.catalog, spill.from.placed[0].segment, 1);
	assert_int_equal(finish(&spill), 0);
	assert_string_equal(picture(&world, keys, 16), "4 1");
	assert_int_equal(stored(&world, keys, 16), 5);
	world_deinit(&world);

	open_world_with_a_left_over();
	begin(&spill);
	fc_catalog_cut(world.catalog, spill.from.placed[0].segment, 0);
	assert_int_equal(finish(&spill), FC_ENOENT);
	assert_string_equal(picture(&world, keys, 16), "4");
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
	world_deinit(&world);
}

/* The session has gone on meanwhile, and absorbed what is being copied. */
static void a_copy_takes_nothing_from_what_is_newer(void **state)
{
	(void)state;
	struct spill spill;
	open_world_with_a_left_over();
	begin(&spill);
	assert_int_equal(save(&world, 1, 4, keys, 13), 0);
	assert_string_equal(picture(&world, keys, 16), "4 9");
	uint64_t chunks = world_chunks_used(&world, FC_SSD);
	assert_int_equal(finish(&spill), FC_ENOENT);
	assert_string_equal(picture(&world, keys, 16), "4 9");
	assert_int_equal(stored(&world, keys, 16), 13);
	assert_int_equal(world_chunks_used(&world, FC_SSD), chunks - 1);
	world_deinit(&world);
}

static void without_room_on_ssd_the_session_is_dropped(void **state)
{
	(void)state;
	struct fc_path lease = {0};
	struct fc_key other[8][4];
	world_init(&world, geometry_plain(1), 2, 2);
	world.opts.memory_reclaim = FC_MEMORY_SPILL;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 16);
	for (uint64_t i = 0; i < 8; i++)
		path_keys(10 + i, 0, other[i], 4);
	/* SSD is full of what is read. */
	struct fc_path reads[2] = {{0}};
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(save(&world, 10 + i, 0, other[i], 4), 0);
		assert_int_equal(fc_catalog_match(world.catalog, other[i], 4, 0, true, &reads[i]), 0);
	}
	/* Memory is full of chats that were used. */
	for (uint64_t i = 2; i < 4; i++) {
		assert_int_equal(save(&world, 10 + i, 1, other[i], 4), 0);
		assert_int_equal(fc_catalog_match(world.catalog, other[i], 4, 0, true, &lease), 0);
		fc_catalog_release(world.catalog, &lease);
	}
	assert_int_equal(save(&world, 20, 1, other[4], 4), FC_EFULL); /* marks the oldest */
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	world_check(&world);
	assert_int_equal(stored(&world, other[2], 4), 0);
	assert_int_equal(stored(&world, other[3], 4), 4);
	assert_int_equal(world_stats(&world).media[FC_MEMORY].sessions_reclaimed, 1);
	assert_int_equal(save(&world, 20, 1, other[4], 4), 0);
	for (int i = 0; i < 2; i++) {
		fc_catalog_release(world.catalog, &reads[i]);
		fc_path_deinit(&reads[i], &world.alloc);
	}
	fc_path_deinit(&lease, &world.alloc);
	world_deinit(&world);
}

/* Damage was found in it meanwhile: there is nothing left of which a failure could be counted. */
static void a_copy_may_fail_after_its_original_was_cut(void **state)
{
	(void)state;
	struct put put;
	struct fc_path from = {0};
	struct fc_key other[4];
	world_init(&world, geometry_plain(1), 8, 8);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, 16);
	path_keys(2, 0, other, 4);
	assert_int_equal(save(&world, 1, 1, keys, 4), 0);
	assert_int_equal(save(&world, 1, 0, other, 4), 0); /* on SSD: the session leaves memory */
	put_init(&put, &world, 0, 0, NULL, 0);
	assert_int_equal(fc_catalog_spill_next(world.catalog, &from, &put.reservation), 0);
	fc_catalog_cut(world.catalog, from.placed[0].segment, 0);
	fc_catalog_spill_failed(world.catalog, &from, FC_EIO);
	fc_catalog_release(world.catalog, &from);
	put_abort(&put);
	world_drain(&world);
	world_check(&world);
	assert_int_equal(stored(&world, keys, 4), 0);
	assert_int_equal(stored(&world, other, 4), 4);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	fc_path_deinit(&from, &world.alloc);
	put_deinit(&put);
	world_deinit(&world);
}

/* As it is left when all that it named is named elsewhere, or was cut. */
static void what_names_nothing_leaves_memory_without_a_copy(void **state)
{
	(void)state;
	open_world_with_a_left_over();
	struct fc_catalog *catalog = world.catalog;
	struct fc_segment *segment = NULL;
	for (uint32_t number = 0; number < catalog->segment_top; number++)
		if (catalog->segments[number] != NULL && catalog->segments[number]->medium == FC_MEMORY)
			segment = catalog->segments[number];
	assert_non_null(segment);
	assert_true(fc_link_is_linked(&segment->session->spill_link));
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		fc_segment_unname(catalog, segment, entry);
	fc_segment_set_backup(catalog, segment, true);
	uint64_t segments_on_ssd = catalog->arenas[FC_SSD].held.segment_count;
	assert_int_equal(spill_one(&world), FC_EAGAIN);
	world_drain(&world);
	world_check(&world);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 0);
	assert_int_equal(catalog->arenas[FC_SSD].held.segment_count, segments_on_ssd);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_agent_leaves_in_memory_is_copied_to_ssd),
		cmocka_unit_test(memory_is_freed_when_the_copy_is_durable),
		cmocka_unit_test(a_copy_that_ssd_refuses_leaves_memory_as_it_was),
		cmocka_unit_test(given_up_it_can_begin_again),
		cmocka_unit_test(a_copy_names_only_what_is_still_named),
		cmocka_unit_test(a_copy_takes_nothing_from_what_is_newer),
		cmocka_unit_test(without_room_on_ssd_the_session_is_dropped),
		cmocka_unit_test(a_copy_may_fail_after_its_original_was_cut),
		cmocka_unit_test(what_names_nothing_leaves_memory_without_a_copy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

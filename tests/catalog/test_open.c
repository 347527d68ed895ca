/* Is an arena found again as it was left, whatever happened to it, and is what is not ours left alone? */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define AT_VERSION 24

static struct world world;
static struct fc_key keys[6][16];

static void make_world(struct fc_geometry geometry, uint64_t memory_chunks, uint64_t ssd_chunks)
{
	world_init(&world, geometry, memory_chunks, ssd_chunks);
	for (uint64_t i = 0; i < 6; i++)
		path_keys(100 + i, 0, keys[i], 16);
}

static void open_world(struct fc_geometry geometry, uint64_t memory_chunks, uint64_t ssd_chunks)
{
	make_world(geometry, memory_chunks, ssd_chunks);
	assert_int_equal(world_open(&world), 0);
}

static uint8_t *image(void)
{
	return world.media[FC_SSD]->image;
}

static struct fc_superblock superblock(void)
{
	struct fc_superblock found;
	assert_int_equal(fc_superblock_decode(&found, image(), NULL), 0);
	return found;
}

static uint8_t *segment_at(uint64_t chunk)
{
	struct fc_superblock found = superblock();
	return image() + found.data_offset + chunk * found.chunk_bytes;
}

/* ---- as it was left ---- */

static void everything_is_found_again(void **state)
{
	(void)state;
	open_world(geometry_hybrid(1), 0, 48);
	world.media[FC_SSD]->shuffle_seed = 3;
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	assert_int_equal(save(&world, 1, 1, keys[1], 8), 0);
	assert_int_equal(save(&world, 2, 0, keys[2], 6), 0);
	memcpy(keys[3], keys[1], 8 * sizeof(struct fc_key));
	path_keys(33, 8, keys[3], 16);
	assert_int_equal(save(&world, 3, 0, keys[3], 12), 0);
	struct fc_stats before = world_stats(&world);
	struct fc_session_info session = world_session(&world, 1);
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	struct fc_stats after = world_stats(&world);
	assert_int_equal(after.media[FC_SSD].bytes_used, before.media[FC_SSD].bytes_used);
	assert_int_equal(after.media[FC_SSD].bytes_stored, before.media[FC_SSD].bytes_stored);
	assert_int_equal(after.media[FC_SSD].segments, before.media[FC_SSD].segments);
	assert_int_equal(after.blocks, before.blocks);
	assert_int_equal(after.recovered_segments, 8); /* each turn has one for blocks and one for its resume point */
	assert_int_equal(after.dropped_segments, 0);
	struct fc_session_info found = world_session(&world, 1);
	assert_int_equal(found.turns, session.turns);
	assert_int_equal(found.blocks, session.blocks);
	assert_int_equal(found.dependents, 1);
	assert_int_equal(stored(&world, keys[1], 16), 8);
	assert_int_equal(stored(&world, keys[2], 16), 6);
	assert_int_equal(stored(&world, keys[3], 16), 12);
	assert_int_equal(save(&world, 1, 2, keys[1], 10), 0); /* and it goes on */
	assert_int_equal(stored(&world, keys[1], 16), 10);
	world_deinit(&world);
}

static void memory_that_survives_is_named_before_ssd(void **state)
{
	(void)state;
	make_world(geometry_plain(1), 8, 8);
	world_make_memory_durable(&world);
	world.opts.consolidate_ratio = 1;
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	assert_int_equal(save(&world, 1, 1, keys[1], 8), 0);
	assert_int_equal(save(&world, 1, 2, keys[1], 9), 0);
	assert_string_equal(picture(&world, keys[1], 16), "m8 m1");
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_string_equal(picture(&world, keys[1], 16), "m8 m1");
	assert_int_equal(stored(&world, keys[1], 16), 9);
	world_check(&world);
	world_deinit(&world);
}

/* Where every block may end a path, snapshots of neighbouring points lie side by side, as one range of the segment. */
static void resume_points_side_by_side_are_found_again(void **state)
{
	(void)state;
	static const uint64_t points[] = {3, 4, 5};
	struct put put;
	struct fc_geometry geometry = geometry_plain(1);
	geometry.group_count = 2;
	geometry.groups[1] = (struct fc_group){.rule = FC_RULE_STATE, .slice_bytes = {9, 0, 9}};
	open_world(geometry, 0, 8);
	put_init(&put, &world, 1, 0, keys[1], 8);
	put.turn.resume_points = points;
	put.turn.resume_point_count = 3;
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put.reservation.grant_count, 2);
	assert_int_equal(put.reservation.grants[1].placed.shape->range_count, 2); /* snapshots 3 to 5, and 8 */
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	put_deinit(&put);
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	assert_int_equal(world_stats(&world).dropped_segments, 0);
	for (uint64_t blocks = 3; blocks <= 5; blocks++)
		assert_int_equal(stored(&world, keys[1], blocks), blocks);
	assert_int_equal(stored(&world, keys[1], 7), 5);
	assert_int_equal(stored(&world, keys[1], 16), 8);
	world_deinit(&world);
}

/* Two write the same blocks at once: the first one's copy is named until the store is closed, the younger one's after.
 * The first one's is then a spare, which is kept until room is wanted, and nothing is lost with it. */
static void a_spare_copy_is_kept_and_not_counted_as_dropped(void **state)
{
	(void)state;
	struct put puts[2];
	open_world(geometry_plain(1), 0, 16);
	for (int i = 0; i < 2; i++) {
		put_init(&puts[i], &world, 1 + (uint64_t)i, 0, keys[1], 4 + 2 * (uint64_t)i);
		assert_int_equal(put_reserve(&puts[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(put_finish(&puts[i]), 0);
	world_drain(&world);
	for (int i = 0; i < 2; i++)
		put_deinit(&puts[i]);
	assert_int_equal(world_stats(&world).media[FC_SSD].segments, 2);
	assert_int_equal(world_reopen(&world, 0), 0);
	world_check(&world);
	assert_int_equal(stored(&world, keys[1], 16), 6);
	assert_string_equal(picture(&world, keys[1], 16), "6");
	assert_int_equal(world_stats(&world).media[FC_SSD].segments, 2);
	assert_int_equal(world_stats(&world).dropped_segments, 0);
	assert_int_equal(world_session(&world, 2).dependents, 0); /* whoever has the spare can be without it */
	world_deinit(&world);
}

/* The table of 8,200 chunks has room for 65,600, which is more than the MiB that is read and written at once; the
 * header of 700 blocks is longer than the 8 KiB that are read of each at first. */
static void large_tables_and_headers_are_read_in_several_pieces(void **state)
{
	(void)state;
	struct fc_key path[700];
	open_world(geometry_plain(1), 0, 8200);
	path_keys(5, 0, path, 700);
	assert_int_equal(save(&world, 1, 0, path, 700), 0);
	assert_int_equal(save(&world, 2, 0, keys[2], 4), 0);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_int_equal(stored(&world, path, 700), 700);
	assert_int_equal(stored(&world, keys[2], 16), 4);
	world_close(&world);
	segment_at(0)[9000] ^= 1; /* behind the first 8 KiB: the table is written anew without it */
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_int_equal(world_stats(&world).dropped_segments, 1);
	assert_int_equal(stored(&world, keys[2], 16), 4);
	world_deinit(&world);
}

/* ---- another size ---- */

static void a_larger_arena_has_more_room(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 4);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(save(&world, i, 0, keys[i], 4), 0);
	assert_int_equal(world_reopen(&world, 16), 0);
	assert_int_equal(world_stats(&world).media[FC_SSD].bytes, 16 * WORLD_CHUNK_BYTES);
	for (uint64_t i = 4; i < 6; i++)
		assert_int_equal(save(&world, i, 0, keys[i], 4), 0);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(stored(&world, keys[i], 16), 4);
	world_check(&world);
	world_deinit(&world);
}

static void a_smaller_arena_keeps_what_lies_inside(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 6);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(save(&world, 1 + i, 0, keys[i], 4), 0);
	struct fc_path path = {0};
	uint64_t kept = 0, chunk[6];
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(fc_catalog_match(world.catalog, keys[i], 16, 0, false, &path), 0);
		chunk[i] = (fc_gva_offset(path.placed[0].base) - superblock().data_offset) / WORLD_CHUNK_BYTES;
	}
	fc_path_deinit(&path, &world.alloc);
	assert_int_equal(world_reopen(&world, 4), 0);
	world_check(&world);
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(stored(&world, keys[i], 16), chunk[i] < 4 ? 4 : 0);
		kept += chunk[i] < 4;
	}
	assert_int_equal(kept, 4);
	assert_int_equal(world_stats(&world).dropped_segments, 2);
	/* What was cut off does not come back when the arena grows again. */
	assert_int_equal(world_reopen(&world, 6), 0);
	world_check(&world);
	assert_int_equal(world_stats(&world).dropped_segments, 0);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 4);
	world_deinit(&world);
}

static void an_arena_without_room_for_a_chunk_is_refused(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 4);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	world_close(&world);
	struct fake_media *old = world.media[FC_SSD];
	uint64_t needed = superblock().data_offset + WORLD_CHUNK_BYTES;
	char text[64];
	snprintf(text, sizeof(text), "at least %llu are needed", (unsigned long long)needed);
	static const uint64_t less[] = {512, 4096 + 512}; /* of what is needed; the second cuts into the table */
	for (size_t i = 0; i < fc_array_len(less); i++) {
		world.media[FC_SSD] = fake_media_reopen(old, needed - less[i]);
		assert_int_equal(world_open(&world), FC_EINVAL);
		assert_non_null(strstr(world.error.text, text));
		fake_media_close(world.media[FC_SSD]);
	}
	world.media[FC_SSD] = fake_media_reopen(old, 64u << 10); /* not even both superblocks */
	assert_int_equal(world_open(&world), FC_EINVAL);
	assert_non_null(strstr(world.error.text, "arena of 65536 bytes; at least"));
	fake_media_close(world.media[FC_SSD]);
	world.media[FC_SSD] = fake_media_reopen(old, needed);
	assert_int_equal(world_open(&world), 0);
	fake_media_close(old);
	world_deinit(&world);
}

/* ---- what is not ours ---- */

/* Opening fails with the code and the text, and writes nothing. */
static void assert_refused(int code, const char *text)
{
	uint64_t bytes = world.media[FC_SSD]->media.bytes;
	uint8_t *before = malloc(bytes);
	memcpy(before, image(), bytes);
	assert_int_equal(world_open(&world), code);
	if (strstr(world.error.text, text) == NULL)
		fail_msg("'%s' does not say '%s'", world.error.text, text);
	assert_memory_equal(image(), before, bytes);
	assert_int_equal(world.media[FC_SSD]->media.counters.write_commands, 0);
	free(before);
}

static void swap_word(uint8_t *bytes)
{
	for (int i = 0; i < 4; i++) {
		uint8_t byte = bytes[i];
		bytes[i] = bytes[7 - i];
		bytes[7 - i] = byte;
	}
}

static void foreign_arenas_are_refused_by_name_and_left_alone(void **state)
{
	(void)state;
	static const char *const texts[] = {"format version 9", "other byte order", "not a FlatCake arena",
					    "wanted hybrid: 4, 4, 4",
					    "group 0 layer 1: the arena has slices of 7 bytes"};
	static const int codes[] = {FC_EFORMAT, FC_EFORMAT, FC_EFORMAT, FC_EGEOMETRY, FC_EGEOMETRY};
	for (int i = 0; i < 5; i++) {
		open_world(geometry_plain(1), 0, 8);
		assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
		world_close(&world);
		struct fake_media *next = fake_media_reopen(world.media[FC_SSD], 0);
		fake_media_close(world.media[FC_SSD]);
		world.media[FC_SSD] = next;
		for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++) {
			uint8_t *bytes = image() + copy * FC_SUPERBLOCK_BYTES;
			if (i == 0)
				bytes[AT_VERSION] = 9;
			else if (i == 1)
				swap_word(bytes), swap_word(bytes + 8);
			else if (i == 2)
				memset(bytes, 'x', FC_SUPERBLOCK_BYTES);
		}
		if (i == 3)
			world.geometry = geometry_hybrid(1);
		else if (i == 4)
			world.geometry.groups[0].slice_bytes[1] = 8;
		assert_refused(codes[i], texts[i]);
		world_deinit(&world);
	}
}

static void one_good_superblock_is_enough(void **state)
{
	(void)state;
	for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++) {
		open_world(geometry_plain(1), 0, 8);
		assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
		world_close(&world);
		memset(image() + copy * FC_SUPERBLOCK_BYTES + 100, 0xff, 50);
		world.media[FC_SSD]->shuffle_seed = 1;
		assert_int_equal(world_open(&world), 0);
		assert_int_equal(stored(&world, keys[1], 16), 4);
		assert_int_equal(superblock().epoch, 2); /* and both are whole again */
		struct fc_superblock second;
		assert_int_equal(fc_superblock_decode(&second, image() + FC_SUPERBLOCK_BYTES, NULL), 0);
		assert_int_equal(second.epoch, 2);
		world_deinit(&world);
	}
}

static void two_damaged_superblocks_are_not_formatted_over(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 8);
	world_close(&world);
	struct fake_media *next = fake_media_reopen(world.media[FC_SSD], 0);
	fake_media_close(world.media[FC_SSD]);
	world.media[FC_SSD] = next;
	image()[200] ^= 1;
	image()[FC_SUPERBLOCK_BYTES + 200] ^= 1;
	assert_refused(FC_EFORMAT, "wrong checksum");
	world_deinit(&world);
}

/* The next process finds what the last one left, changed by hand. */
static void reopen_medium(void)
{
	world_close(&world);
	struct fake_media *next = fake_media_reopen(world.media[FC_SSD], 0);
	fake_media_close(world.media[FC_SSD]);
	world.media[FC_SSD] = next;
}

static void a_blank_superblock_beside_a_damaged_one_is_not_formatted_over(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 8);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	reopen_medium();
	memset(image(), 0, FC_SUPERBLOCK_BYTES);
	image()[FC_SUPERBLOCK_BYTES + 200] ^= 1;
	assert_refused(FC_EFORMAT, "ssd arena: superblock with a wrong checksum");
	world_deinit(&world);
}

static void a_blank_arena_is_not_opened_for_reading(void **state)
{
	(void)state;
	make_world(geometry_plain(1), 0, 8);
	world.opts.is_read_only = true;
	assert_refused(FC_EFORMAT, "nothing was ever stored in it");
	world_deinit(&world);
}

static void an_arena_on_a_medium_of_larger_sectors_is_refused(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 8);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	reopen_medium();
	world.media[FC_SSD]->media.align = 4096;
	assert_refused(FC_EFORMAT, "arena with an alignment of 512 bytes on a medium that needs 4096");
	world.media[FC_SSD]->media.align = 512;
	assert_int_equal(world_open(&world), 0);
	assert_int_equal(stored(&world, keys[1], 16), 4);
	world_deinit(&world);
}

/* 2^24 - 1 openings: the next one would give numbers a second time. */
static void an_arena_whose_numbers_are_used_up_is_refused(void **state)
{
	(void)state;
	for (unsigned left = 0; left < 2; left++) {
		open_world(geometry_plain(1), 0, 8);
		reopen_medium();
		struct fc_superblock worn = superblock();
		worn.epoch = FC_EPOCH_MAX - 1 - left;
		for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++)
			fc_superblock_encode(&worn, image() + copy * FC_SUPERBLOCK_BYTES);
		if (left == 0)
			assert_refused(FC_ELIMIT, "arena that was opened 16777215 times");
		else
			assert_int_equal(world_open(&world), 0);
		world_deinit(&world);
	}
}

static void a_power_failure_while_formatting_is_repaired_by_the_next_open(void **state)
{
	(void)state;
	bool has_died = true;
	for (uint64_t die_at = 1; has_died; die_at++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			make_world(geometry_hybrid(1), 0, 8); /* its superblock has many sectors that are not zeros */
			world.media[FC_SSD]->die_at = die_at;
			int code = world_open(&world);
			has_died = world.media[FC_SSD]->is_dead;
			assert_int_equal(code, has_died ? FC_EIO : FC_OK);
			world_crash(&world, 8 * die_at + seed);
			assert_int_equal(world_open(&world), 0);
			assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
			assert_int_equal(world_reopen(&world, 0), 0);
			assert_int_equal(stored(&world, keys[1], 16), 4);
			world_deinit(&world);
		}
}

static void a_power_failure_while_opening_loses_nothing(void **state)
{
	(void)state;
	bool has_died = true;
	for (uint64_t die_at = 1; has_died; die_at++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			open_world(geometry_plain(1), 0, 8);
			assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
			assert_int_equal(save(&world, 2, 0, keys[2], 4), 0);
			world_close(&world);
			/* One of them is damaged, so the table is written too. */
			uint64_t damaged_at = (uint64_t)(segment_at(0) - image());
			memset(image() + damaged_at, 0, 64);
			memset(world.media[FC_SSD]->durable_image + damaged_at, 0, 64);
			world.media[FC_SSD]->die_at = world.media[FC_SSD]->op_count + die_at;
			int code = world_open(&world);
			has_died = world.media[FC_SSD]->is_dead;
			assert_int_equal(code, has_died ? FC_EIO : FC_OK);
			world_crash(&world, 8 * die_at + seed);
			assert_int_equal(world_open(&world), 0);
			world_check(&world);
			assert_int_equal(stored(&world, keys[1], 16) + stored(&world, keys[2], 16), 4);
			world_deinit(&world);
		}
}

/* ---- damage ---- */

static void a_damaged_header_costs_its_segment_and_what_stands_on_it(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 16);
	for (uint64_t turn = 0; turn < 3; turn++)
		assert_int_equal(save(&world, 1, turn, keys[1], 4 + 4 * turn), 0);
	assert_int_equal(save(&world, 2, 0, keys[2], 4), 0);
	world_close(&world);
	segment_at(1)[137] ^= 4; /* the second turn lies behind the first */
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_int_equal(stored(&world, keys[1], 16), 4);
	assert_int_equal(stored(&world, keys[2], 16), 4);
	assert_int_equal(world_stats(&world).dropped_segments, 2);
	world_drain(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 2);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_int_equal(world_stats(&world).dropped_segments, 0); /* said once, and cleared away */
	assert_int_equal(world_stats(&world).recovered_segments, 2);
	world_deinit(&world);
}

static void a_damaged_entry_costs_its_segment(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 16);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	assert_int_equal(save(&world, 1, 1, keys[1], 8), 0);
	world_close(&world);
	image()[FC_TABLE_OFFSET + 1 * FC_TABLE_ENTRY_BYTES + 3] ^= 1;
	image()[FC_TABLE_OFFSET + 9 * FC_TABLE_ENTRY_BYTES] ^= 1; /* and one that was empty */
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_int_equal(stored(&world, keys[1], 16), 4);
	assert_int_equal(world_stats(&world).dropped_segments, 2);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_int_equal(world_stats(&world).dropped_segments, 0);
	world_deinit(&world);
}

/* An entry and a header that are both whole, but say different things, or the same of another place. */
static void what_does_not_belong_together_is_no_segment(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 16);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	assert_int_equal(save(&world, 1, 1, keys[1], 8), 0);
	world_close(&world);
	memcpy(segment_at(1), segment_at(0), WORLD_CHUNK_BYTES);
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_int_equal(stored(&world, keys[1], 16), 4);
	assert_int_equal(world_stats(&world).dropped_segments, 1);
	world_deinit(&world);
}

/* Header and entry agree on three chunks, with the right checksums, but the blocks that the header lists need one. */
static void a_header_that_its_own_blocks_contradict_is_no_segment(void **state)
{
	(void)state;
	open_world(geometry_plain(1), 0, 16);
	assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
	assert_int_equal(save(&world, 1, 1, keys[1], 8), 0);
	reopen_medium();
	struct fc_header header;
	struct fc_range ranges[FC_RANGES_MAX];
	struct fc_key entry_keys[4];
	const uint8_t *encoded_keys;
	uint8_t *place = segment_at(1);
	assert_int_equal(fc_header_decode(&header, ranges, &world.geometry, place, WORLD_CHUNK_BYTES, &encoded_keys),
			 0);
	assert_int_equal(header.shape.entry_count, 4);
	assert_int_equal(header.chunk_count, 1);
	for (uint64_t i = 0; i < 4; i++)
		entry_keys[i] = fc_header_key(encoded_keys, i);
	header.chunk_count = 3;
	fc_header_encode(&header, entry_keys, place);
	struct fc_table_entry entry = {.seq = header.seq, .chunk_count = 3};
	fc_table_entry_encode(&entry, superblock().uuid, 1, image() + FC_TABLE_OFFSET + FC_TABLE_ENTRY_BYTES);
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_int_equal(world_stats(&world).dropped_segments, 1);
	assert_int_equal(stored(&world, keys[1], 16), 4);
	world_drain(&world);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	world_deinit(&world);
}

static uint64_t match_depth(const struct fc_key *path_keys_of)
{
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(world.catalog, path_keys_of, 16, 0, false, &path), 0);
	uint64_t blocks = path.blocks;
	fc_path_deinit(&path, &world.alloc);
	return blocks;
}

static void of_two_that_claim_a_chunk_the_younger_has_it(void **state)
{
	(void)state;
	const uint64_t chunk = 2; /* a block takes two */
	uint8_t entry[FC_TABLE_ENTRY_BYTES], header[512];
	uint8_t *entry_place;
	struct fc_session_id id = {0, 1};
	open_world(geometry_plain(400), 0, 32);
	assert_int_equal(save(&world, 1, 0, keys[1], 1), 0);
	assert_int_equal(save(&world, 1, 1, keys[2], 1), 0); /* another path, in the same extent */
	entry_place = image() + FC_TABLE_OFFSET + chunk * FC_TABLE_ENTRY_BYTES;
	memcpy(entry, entry_place, sizeof(entry));
	memcpy(header, segment_at(chunk), sizeof(header));
	assert_int_equal(entry[8], 2);
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_drain(&world);
	assert_int_equal(save(&world, 3, 0, keys[3], 12), 0); /* over both places */
	assert_int_equal(world_stats(&world).media[FC_SSD].segments, 1);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 21);
	for (uint64_t i = 4; i < 6; i++)
		assert_int_equal(save(&world, i, 0, keys[i], 1), 0);
	world_close(&world);
	memcpy(entry_place, entry, sizeof(entry));
	memcpy(segment_at(chunk), header, sizeof(header));
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_int_equal(match_depth(keys[3]), 12);
	assert_int_equal(match_depth(keys[2]), 0);
	assert_int_equal(world_stats(&world).dropped_segments, 1);
	world_deinit(&world);
}

static void a_medium_that_cannot_be_read_or_written_is_not_opened(void **state)
{
	(void)state;
	bool has_failed = true;
	for (uint64_t fail_at = 1; has_failed; fail_at++) {
		open_world(geometry_plain(1), 0, 8);
		assert_int_equal(save(&world, 1, 0, keys[1], 4), 0);
		world_close(&world);
		struct fake_media *next = fake_media_reopen(world.media[FC_SSD], 0);
		fake_media_close(world.media[FC_SSD]);
		world.media[FC_SSD] = next;
		next->fail_at = fail_at;
		next->fail_count = 1;
		int code = world_open(&world);
		has_failed = next->media.counters.errors > 0;
		if (code != FC_OK) {
			assert_int_equal(code, FC_EIO);
			assert_non_null(strstr(world.error.text, "ssd arena: "));
			next->fail_at = 0;
			assert_int_equal(world_open(&world), 0);
		}
		/* Not a header either is lost to a read that fails once. */
		assert_int_equal(stored(&world, keys[1], 16), 4);
		world_check(&world);
		world_deinit(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_found_again),
		cmocka_unit_test(memory_that_survives_is_named_before_ssd),
		cmocka_unit_test(resume_points_side_by_side_are_found_again),
		cmocka_unit_test(a_spare_copy_is_kept_and_not_counted_as_dropped),
		cmocka_unit_test(large_tables_and_headers_are_read_in_several_pieces),
		cmocka_unit_test(a_larger_arena_has_more_room),
		cmocka_unit_test(a_smaller_arena_keeps_what_lies_inside),
		cmocka_unit_test(an_arena_without_room_for_a_chunk_is_refused),
		cmocka_unit_test(foreign_arenas_are_refused_by_name_and_left_alone),
		cmocka_unit_test(one_good_superblock_is_enough),
		cmocka_unit_test(two_damaged_superblocks_are_not_formatted_over),
		cmocka_unit_test(a_blank_superblock_beside_a_damaged_one_is_not_formatted_over),
		cmocka_unit_test(a_blank_arena_is_not_opened_for_reading),
		cmocka_unit_test(an_arena_on_a_medium_of_larger_sectors_is_refused),
		cmocka_unit_test(an_arena_whose_numbers_are_used_up_is_refused),
		cmocka_unit_test(a_power_failure_while_formatting_is_repaired_by_the_next_open),
		cmocka_unit_test(a_power_failure_while_opening_loses_nothing),
		cmocka_unit_test(a_damaged_header_costs_its_segment_and_what_stands_on_it),
		cmocka_unit_test(a_damaged_entry_costs_its_segment),
		cmocka_unit_test(what_does_not_belong_together_is_no_segment),
		cmocka_unit_test(a_header_that_its_own_blocks_contradict_is_no_segment),
		cmocka_unit_test(of_two_that_claim_a_chunk_the_younger_has_it),
		cmocka_unit_test(a_medium_that_cannot_be_read_or_written_is_not_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

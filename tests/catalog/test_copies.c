/* Two copies of the same blocks are found at an opening, and the one that is named is damaged: is the good one found,
 * and what is read never wrong? */
#include "catalog/state.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define BLOCKS 8u
#define CRASHES 24u

static struct world world;
static struct fc_key keys[BLOCKS], other[BLOCKS];

/* Where layer 0 of a path block lies that is stored, and which entry it is. */
static uint64_t find(uint64_t block, struct fc_segment **segment, uint64_t *entry)
{
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(world.catalog, keys, BLOCKS, 0, false, &path), 0);
	uint32_t i = 0;
	while (i < path.span_count && (path.spans[i].group != 0 || block < path.spans[i].block_first ||
				       block >= path.spans[i].block_first + path.spans[i].count))
		i++;
	assert_true(i < path.span_count);
	const struct fc_placed *placed = &path.placed[path.spans[i].placed];
	struct fc_layer_area area;
	fc_layer_first(&world.geometry, placed->shape, placed->header_bytes, &area);
	*segment = placed->segment;
	*entry = path.spans[i].entry_first + block - path.spans[i].block_first;
	const struct fc_range *range = fc_shape_range_of(placed->shape, *entry);
	struct fc_range_area part = fc_range_area_in(&world.geometry, placed->shape, &area, range);
	uint64_t offset =
		fc_gva_offset(placed->base) + part.slice_offset + (*entry - range->entry_first) * part.slice_bytes;
	fc_path_deinit(&path, &world.alloc);
	return offset;
}

static uint64_t address_of(uint64_t block)
{
	struct fc_segment *segment;
	uint64_t entry;
	return find(block, &segment, &entry);
}

static void damage(uint64_t offset)
{
	world.media[FC_SSD]->image[offset] ^= 1;
}

/* A load comes to this block, and its checksum fails. */
static void read_bad(uint64_t block)
{
	struct fc_segment *segment;
	uint64_t entry;
	find(block, &segment, &entry);
	fc_catalog_cut(world.catalog, segment, entry);
	world_check(&world);
}

static void open_plain(double ratio)
{
	world_init(&world, geometry_plain(1), 0, 16);
	world.opts.consolidate_ratio = ratio;
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, keys, BLOCKS);
	path_keys(2, 0, other, BLOCKS);
}

static uint64_t segments(void)
{
	return world_stats(&world).media[FC_SSD].segments;
}

/* Turns of two blocks, which the last one absorbs; the power fails at the k-th operation from then on. `addresses` is
 * where its blocks lie. */
static void crash_while_absorbing(uint64_t k, uint64_t turns, uint64_t addresses[BLOCKS])
{
	struct put put;
	open_plain(0);
	for (uint64_t turn = 0; turn < turns; turn++)
		assert_int_equal(save(&world, 1, turn, keys, 2 * (turn + 1)), 0);
	world_close(&world);
	world.opts.consolidate_ratio = 100;
	assert_int_equal(world_open(&world), 0);
	put_init(&put, &world, 1, turns, keys, BLOCKS);
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put_finish(&put), 0);
	assert_string_equal(picture(&world, keys, BLOCKS), "8");
	for (uint64_t block = 0; block < BLOCKS; block++)
		addresses[block] = address_of(block);
	world.media[FC_SSD]->die_at = world.media[FC_SSD]->op_count + k;
	world_drain(&world);
	put_deinit(&put);
	world_crash(&world, k);
}

static void a_crash_leaves_the_older_copy_and_it_is_found(void **state)
{
	(void)state;
	for (uint64_t turns = 1; turns <= 3; turns++) {
		unsigned doubled = 0;
		for (uint64_t k = 1; k <= CRASHES; k++) {
			uint64_t addresses[BLOCKS];
			crash_while_absorbing(k, turns, addresses);
			damage(addresses[1]);
			assert_int_equal(world_open(&world), 0);
			world_check(&world);
			if (segments() == turns + 1) {
				doubled++;
				assert_string_equal(picture(&world, keys, BLOCKS), "8");
				read_bad(1);
				/* the older copy of the first blocks, and all that is good of the younger */
				assert_string_equal(picture(&world, keys, BLOCKS), "2 6");
				assert_int_equal(stored(&world, keys, BLOCKS), BLOCKS);
			}
			world_deinit(&world);
		}
		assert_true(doubled > 0);
	}
}

static void damage_in_the_middle_is_mended_by_the_copy_that_has_it(void **state)
{
	(void)state;
	unsigned doubled = 0;
	for (uint64_t k = 1; k <= CRASHES; k++) {
		uint64_t addresses[BLOCKS];
		crash_while_absorbing(k, 3, addresses);
		damage(addresses[3]);
		damage(addresses[5]);
		damage(addresses[6]);
		assert_int_equal(world_open(&world), 0);
		if (segments() == 4) {
			doubled++;
			read_bad(3);
			assert_string_equal(picture(&world, keys, BLOCKS), "2 2 4");
			read_bad(5);
			assert_string_equal(picture(&world, keys, BLOCKS), "2 2 2 2");
			read_bad(6); /* which nobody has once more */
			assert_string_equal(picture(&world, keys, BLOCKS), "2 2 2");
			assert_int_equal(stored(&world, keys, BLOCKS), 6);
			/* The session goes on from there, and what it writes survives. */
			assert_int_equal(save(&world, 1, 4, keys, BLOCKS), 0);
			assert_int_equal(stored(&world, keys, BLOCKS), BLOCKS);
			world_check(&world);
			assert_int_equal(world_reopen(&world, 0), 0);
			assert_int_equal(stored(&world, keys, BLOCKS), BLOCKS);
		}
		world_deinit(&world);
	}
	assert_true(doubled > 0);
}

/* Nothing that was given up comes back, and nothing behind it is left without its head. */
static void a_copy_that_is_damaged_too_ends_the_path(void **state)
{
	(void)state;
	unsigned doubled = 0;
	for (uint64_t k = 1; k <= CRASHES; k++) {
		uint64_t addresses[BLOCKS];
		crash_while_absorbing(k, 3, addresses);
		assert_int_equal(world_open(&world), 0);
		if (segments() == 4) {
			doubled++;
			read_bad(3);
			assert_string_equal(picture(&world, keys, BLOCKS), "2 2 4");
			read_bad(2); /* the older copy */
			assert_int_equal(stored(&world, keys, BLOCKS), 2);
			assert_string_equal(picture(&world, keys, BLOCKS), "2");
			assert_int_equal(save(&world, 1, 4, keys, BLOCKS), 0);
			assert_int_equal(stored(&world, keys, BLOCKS), BLOCKS);
		}
		world_deinit(&world);
	}
	assert_true(doubled > 0);
}

/* Two wrote the same text at once: the younger copy is named after an opening, the older one is another session's. */
static void another_sessions_copy_is_found(void **state)
{
	(void)state;
	struct put puts[2];
	open_plain(0);
	for (uint64_t i = 0; i < 2; i++) {
		put_init(&puts[i], &world, 1 + i, 0, keys, 4 + 2 * i);
		assert_int_equal(put_reserve(&puts[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(put_finish(&puts[i]), 0);
	world_drain(&world);
	for (int i = 0; i < 2; i++)
		put_deinit(&puts[i]);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_string_equal(picture(&world, keys, BLOCKS), "6");
	damage(address_of(2));
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_string_equal(picture(&world, keys, BLOCKS), "6");
	read_bad(2);
	assert_string_equal(picture(&world, keys, BLOCKS), "4 2");
	assert_int_equal(stored(&world, keys, BLOCKS), 6);
	assert_int_equal(world_session(&world, 1).dependents, 1);
	world_deinit(&world);
}

/* A copy costs nobody anything: it goes before any session, and with the next turn of its own. */
static void a_copy_goes_first(void **state)
{
	(void)state;
	for (int is_own_turn = 0; is_own_turn < 2; is_own_turn++) {
		unsigned doubled = 0;
		for (uint64_t k = 1; k <= CRASHES; k++) {
			uint64_t addresses[BLOCKS];
			crash_while_absorbing(k, 3, addresses);
			assert_int_equal(world_open(&world), 0);
			if (segments() == 4) {
				struct fc_key more[BLOCKS + 2];
				doubled++;
				memcpy(more, keys, sizeof(keys));
				path_keys(1, BLOCKS, more, BLOCKS + 2);
				world.catalog->opts.consolidate_ratio = 0;
				if (is_own_turn)
					assert_int_equal(save(&world, 1, 4, more, BLOCKS + 2), 0);
				for (uint64_t i = 0; i < 13 && !is_own_turn; i++) { /* of 12 chunks that are free */
					path_keys(50 + i, 0, other, 2);
					assert_int_equal(save(&world, 50 + i, 0, other, 2), 0);
				}
				world_drain(&world);
				world_check(&world);
				assert_int_equal(world_session(&world, 1).segments, is_own_turn ? 2 : 1);
				assert_int_equal(world_stats(&world).media[FC_SSD].sessions_reclaimed, 0);
			}
			world_deinit(&world);
		}
		assert_true(doubled > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crash_leaves_the_older_copy_and_it_is_found),
		cmocka_unit_test(damage_in_the_middle_is_mended_by_the_copy_that_has_it),
		cmocka_unit_test(a_copy_that_is_damaged_too_ends_the_path),
		cmocka_unit_test(another_sessions_copy_is_found),
		cmocka_unit_test(a_copy_goes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

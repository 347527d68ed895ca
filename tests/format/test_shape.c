/* Where does each slice of a segment lie? All offsets are worked out by hand, from the picture in format/shape.h:
 * header, then layer after layer, each with its checksums (4 bytes a slice) in front of its slices. */
#include "format/arena.h"
#include "format/shape.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct layer {
	uint64_t offset, bytes, slice_count;
};

static void assert_layers(const struct fc_geometry *geometry, const struct fc_shape *shape, uint32_t align,
			  const struct layer *layers)
{
	struct fc_layer_area area;
	fc_layer_first(geometry, shape, fc_shape_header_bytes(shape, align), &area);
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		assert_int_equal(area.layer, layer);
		assert_int_equal(area.offset, layers[layer].offset);
		assert_int_equal(area.bytes, layers[layer].bytes);
		assert_int_equal(area.slice_count, layers[layer].slice_count);
		struct fc_layer_area sought;
		fc_layer_seek(geometry, shape, fc_shape_header_bytes(shape, align), align, layer, &sought);
		assert_int_equal(sought.offset, area.offset);
		assert_int_equal(sought.bytes, area.bytes);
		assert_int_equal(sought.slice_count, area.slice_count);
		assert_int_equal(fc_layer_next(geometry, shape, align, &area), layer + 1 < geometry->layer_count);
	}
}

static void assert_part(const struct fc_geometry *geometry, const struct fc_shape *shape, uint32_t layer,
			uint32_t range, uint64_t checksum_offset, uint64_t slice_offset, uint64_t slice_bytes)
{
	struct fc_layer_area area;
	fc_layer_seek(geometry, shape, fc_shape_header_bytes(shape, 64), 64, layer, &area);
	struct fc_range_area part = fc_range_area_in(geometry, shape, &area, &shape->ranges[range]);
	assert_int_equal(part.checksum_offset, checksum_offset);
	assert_int_equal(part.slice_offset, slice_offset);
	assert_int_equal(part.slice_bytes, slice_bytes);
}

static void a_plain_segment_is_header_and_one_area_a_layer(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1); /* slices of 10, 7 and 0 bytes */
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_shape shape;
	uint64_t bytes;
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 2, 5), 0);
	/* 136 fixed + 24 for the range + 5 keys of 16 */
	assert_int_equal(fc_header_encoded_bytes(&shape), 240);
	assert_int_equal(fc_shape_header_bytes(&shape, 64), 256);
	assert_int_equal(fc_shape_header_bytes(&shape, 512), 512);
	/* 5 x (10 + 4) = 70 up to 326; 5 x (7 + 4) = 55 from 384 to 439; nothing */
	static const struct layer layers[] = {{256, 70, 5}, {384, 55, 5}, {448, 0, 0}};
	assert_layers(&geometry, &shape, 64, layers);
	assert_part(&geometry, &shape, 0, 0, 256, 276, 10);
	assert_part(&geometry, &shape, 1, 0, 384, 404, 7);
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 64, &bytes), 0);
	assert_int_equal(bytes, 448);
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 512, &bytes), 0);
	assert_int_equal(bytes, 3 * 512);
}

static void a_hybrid_segment_lays_out_only_what_a_group_has_in_a_layer(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_hybrid(1);
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_shape shape;
	uint64_t bytes;
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 0, 4), 0);
	assert_int_equal(fc_shape_add(&shape, 1, 0, 2), 0);
	assert_int_equal(fc_shape_add(&shape, 2, 2, 2), 0);
	assert_int_equal(fc_shape_add(&shape, 3, 3, 1), 0);
	/* 136 + 4 x 24 + 9 x 16 = 376 */
	assert_int_equal(fc_shape_header_bytes(&shape, 64), 384);
	static const struct layer layers[] = {
		{384, 6 * 4 + 40 + 4, 6},    /* groups 0 and 2 */
		{512, 4 * 4 + 12 + 4, 4},    /* groups 1 and 2 */
		{576, 6 * 4 + 12 + 4, 6},    /* groups 0 and 2 */
		{640, 5 * 4 + 2 + 4 + 9, 5}, /* groups 1, 2 and 3 */
	};
	assert_layers(&geometry, &shape, 64, layers);
	assert_part(&geometry, &shape, 0, 0, 384, 408, 10);
	assert_part(&geometry, &shape, 0, 2, 400, 448, 2);
	assert_part(&geometry, &shape, 1, 1, 512, 528, 6);
	assert_part(&geometry, &shape, 1, 2, 520, 540, 2);
	assert_part(&geometry, &shape, 3, 3, 656, 666, 9);
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 64, &bytes), 0);
	assert_int_equal(bytes, 704); /* 675 */
}

static void one_layer_and_blocks_that_are_no_multiple_of_a_page(void **state)
{
	(void)state;
	struct fc_geometry geometry = {.block_tokens = 64, .layer_count = 1, .group_count = 1};
	geometry.groups[0] = (struct fc_group){.tokens_per_block = 64, .slice_bytes = {3098112}};
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_shape shape;
	uint64_t bytes;
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 0, 2), 0);
	static const struct layer layers[] = {{4096, 2 * 3098112 + 8, 2}};
	assert_layers(&geometry, &shape, 4096, layers);
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 4096, &bytes), 0);
	assert_int_equal(bytes, 4096 + 1513 * 4096); /* 6,196,232 bytes are 1,512.75 pages */
}

static void entries_are_numbered_over_all_ranges(void **state)
{
	(void)state;
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_shape shape;
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 7, 3), 0);
	assert_int_equal(fc_shape_add(&shape, 1, 9, 0), 0); /* nothing: no range */
	assert_int_equal(fc_shape_add(&shape, 1, 3, 2), 0);
	assert_int_equal(shape.range_count, 2);
	assert_int_equal(shape.entry_count, 5);
	assert_ptr_equal(fc_shape_range_of(&shape, 0), &storage[0]);
	assert_ptr_equal(fc_shape_range_of(&shape, 2), &storage[0]);
	assert_ptr_equal(fc_shape_range_of(&shape, 3), &storage[1]);
	assert_ptr_equal(fc_shape_range_of(&shape, 4), &storage[1]);
	assert_int_equal(storage[1].entry_first, 3);
}

static void ranges_and_entries_have_limits(void **state)
{
	(void)state;
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_shape shape;
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 0, UINT32_MAX), 0);
	assert_int_equal(fc_shape_add(&shape, 0, 0, 1), FC_ELIMIT);
	fc_shape_init(&shape, storage);
	for (int i = 0; i < FC_RANGES_MAX; i++)
		assert_int_equal(fc_shape_add(&shape, 0, 0, 1), 0);
	assert_int_equal(fc_shape_add(&shape, 0, 0, 1), FC_ELIMIT);
	assert_int_equal(shape.entry_count, FC_RANGES_MAX);
}

static void a_segment_beyond_the_reach_of_an_address_is_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry = {.block_tokens = 1, .layer_count = 2, .group_count = 1};
	geometry.groups[0] = (struct fc_group){.tokens_per_block = 1, .slice_bytes = {1ull << 32, 1ull << 32}};
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_shape shape;
	uint64_t bytes;
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 0, 32767), 0); /* 2^33 each: just below 2^48 */
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 512, &bytes), 0);
	assert_int_equal(fc_shape_add(&shape, 0, 32767, 1), 0);
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 512, &bytes), FC_EINVAL);
	fc_shape_init(&shape, storage);
	assert_int_equal(fc_shape_add(&shape, 0, 0, UINT32_MAX), 0);
	assert_int_equal(fc_shape_bytes(&geometry, &shape, 512, &bytes), FC_EINVAL);
}

static void assert_needed(const struct fc_geometry *geometry, uint32_t group, uint64_t path_blocks,
			  uint64_t block_first, uint64_t count)
{
	uint64_t found_first, found_count;
	fc_group_needed(geometry, group, path_blocks, &found_first, &found_count);
	assert_int_equal(found_count, count);
	if (count > 0)
		assert_int_equal(found_first, block_first);
}

static void each_rule_needs_its_own_blocks_of_a_prefix(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_hybrid(1);
	assert_needed(&geometry, 0, 6, 0, 6);
	assert_needed(&geometry, 1, 6, 0, 3); /* two path blocks each */
	/* A window of 6 tokens, 4 a block: behind 24 tokens it begins at 18, in block 4. */
	assert_needed(&geometry, 2, 6, 4, 2);
	assert_needed(&geometry, 2, 1, 0, 1);
	assert_needed(&geometry, 3, 6, 5, 1);
	for (uint32_t group = 0; group < 4; group++)
		assert_needed(&geometry, group, 0, 0, 0);
	geometry.groups[2].window_tokens = 8; /* exactly two blocks */
	assert_needed(&geometry, 2, 6, 4, 2);
	geometry.groups[2].window_tokens = 9;
	assert_needed(&geometry, 2, 6, 3, 3);
	geometry.groups[2].window_tokens = 1000;
	assert_needed(&geometry, 2, 6, 0, 6);
}

static void prefixes_end_where_blocks_of_all_groups_end(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_hybrid(1);
	assert_int_equal(fc_resume_granule(&geometry), 2);
	geometry.groups[1].tokens_per_block = 4 * 4;
	geometry.groups[2].tokens_per_block = 4 * 6;
	assert_int_equal(fc_group_span(&geometry, 1), 4);
	assert_int_equal(fc_group_span(&geometry, 2), 6);
	assert_int_equal(fc_group_span(&geometry, 3), 1);
	assert_int_equal(fc_resume_granule(&geometry), 12);
	assert_int_equal(fc_group_block_bytes(&geometry, 0), 13);
	assert_int_equal(fc_group_block_bytes(&geometry, 3), 9);
	/* Block 2 of a group that spans 4 path blocks ends with path block 11. */
	assert_int_equal(fc_group_key_position(4, 2), 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_segment_is_header_and_one_area_a_layer),
		cmocka_unit_test(a_hybrid_segment_lays_out_only_what_a_group_has_in_a_layer),
		cmocka_unit_test(one_layer_and_blocks_that_are_no_multiple_of_a_page),
		cmocka_unit_test(entries_are_numbered_over_all_ranges),
		cmocka_unit_test(ranges_and_entries_have_limits),
		cmocka_unit_test(a_segment_beyond_the_reach_of_an_address_is_refused),
		cmocka_unit_test(each_rule_needs_its_own_blocks_of_a_prefix),
		cmocka_unit_test(prefixes_end_where_blocks_of_all_groups_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The planner: which bytes are read for a history. Every offset here is worked out by hand; the comments show how. */
#include "cio/plan.h"

#include "format/checksum.h"
#include "lib/engine.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BLOCKS_MAX 64
#define SEGMENTS_MAX 4

/* A history by hand: segments of one group whose blocks follow one another, and the spans that are wanted of them. */
struct history {
	struct fc_geometry geometry;
	struct fc_range ranges[SEGMENTS_MAX];
	struct fc_shape shapes[SEGMENTS_MAX];
	struct fc_placed placed[SEGMENTS_MAX];
	struct fc_span spans[SEGMENTS_MAX];
	struct fc_path path;
	struct fc_key keys[BLOCKS_MAX];
	struct engine engine;
	struct fc_target target;
	struct tracked_alloc tracked;
	struct fc_alloc alloc;
	struct fc_plan_opts opts;
	struct fc_plan plan;
	struct fc_part part;
};

static void history_init(struct history *history, uint32_t layer_count, const uint64_t *slice_bytes_of)
{
	memset(history, 0, sizeof(*history));
	struct fc_geometry *geometry = &history->geometry;
	*geometry = (struct fc_geometry){
		.name = "by hand", .block_tokens = 4, .layer_count = layer_count, .group_count = 1};
	geometry->groups[0].tokens_per_block = 4;
	memcpy(geometry->groups[0].slice_bytes, slice_bytes_of, layer_count * sizeof(*slice_bytes_of));
	path_keys(1, 0, history->keys, BLOCKS_MAX);
	engine_init(&history->engine, geometry, BLOCKS_MAX, 1);
	history->target.layers = history->engine.layers;
	engine_slots(&history->engine, BLOCKS_MAX, history->target.slots);
	history->path.placed = history->placed;
	history->path.spans = history->spans;
	history->alloc = tracked_alloc_interface(&history->tracked);
	history->opts = (struct fc_plan_opts){
		.geometry = geometry,
		.path = &history->path,
		.keys = history->keys,
		.target = &history->target,
		.gap_bytes = 64 << 10,
		.slot_bytes = 1 << 20,
	};
}

/* A segment at `offset` with `held` blocks from `block_first` on, of which `count` from its entry `skip` on are wanted.
 */
struct part_of_segment {
	enum fc_medium medium;
	uint64_t offset, header_bytes;
	uint64_t block_first, held, skip, count;
	uint32_t align;
};

static void add_segment(struct history *history, struct part_of_segment want)
{
	uint32_t number = history->path.placed_count++;
	fc_shape_init(&history->shapes[number], &history->ranges[number]);
	assert_int_equal(fc_shape_add(&history->shapes[number], 0, want.block_first, want.held), 0);
	history->placed[number] = (struct fc_placed){
		.base = fc_gva_make(want.medium, 0, want.offset),
		.header_bytes = want.header_bytes,
		.align = want.align == 0 ? 512 : want.align,
		.shape = &history->shapes[number],
	};
	history->spans[history->path.span_count++] = (struct fc_span){
		.placed = number,
		.block_first = want.block_first + want.skip,
		.count = want.count,
		.entry_first = want.skip,
	};
}

static void start(struct history *history)
{
	assert_int_equal(fc_plan_start(&history->plan, &history->alloc, &history->opts, NULL), 0);
}

static void next(struct history *history)
{
	assert_int_equal(fc_plan_next(&history->plan, &history->part), 0);
}

static void assert_run(const struct history *history, uint32_t run, uint64_t offset, uint64_t bytes,
		       uint64_t stage_offset)
{
	assert_true(run < history->part.run_count);
	assert_int_equal(history->part.runs[run].offset, offset);
	assert_int_equal(history->part.runs[run].bytes, bytes);
	assert_int_equal(history->part.runs[run].stage_offset, stage_offset);
}

static void assert_copy(const struct history *history, uint64_t copy, uint64_t block, uint64_t slice_at,
			uint64_t checksum_at)
{
	const struct fc_copy *found = &history->part.copies[copy];
	assert_true(copy < history->part.copy_count);
	assert_int_equal((uintptr_t)found->flat, slice_at);
	assert_int_equal((uintptr_t)found->checksum, checksum_at);
	assert_int_equal(found->slot, history->engine.slots[0][block]);
	assert_int_equal(found->seed, fc_slice_seed(history->keys[block], 0, history->part.layer));
	assert_int_equal(history->part.origins[copy].block, block);
}

static void history_deinit(struct history *history)
{
	assert_int_equal(fc_plan_next(&history->plan, &history->part), FC_ENOENT);
	fc_part_deinit(&history->part, &history->alloc);
	fc_plan_deinit(&history->plan);
	engine_deinit(&history->engine);
	assert_int_equal(history->tracked.bytes, 0);
}

/* The segment of the next test, and 3 blocks of another: the same reads, and a copy for each of the two pieces. */
static void by_piece_there_is_one_copy_of_all_its_slices(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){100});
	history.opts.is_by_piece = true;
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 1024, 0, 8, 0, 8, 0});
	add_segment(&history, (struct part_of_segment){FC_SSD, 1 << 20, 1024, 8, 3, 0, 3, 0});
	start(&history);
	next(&history);
	assert_int_equal(history.part.run_count, 2);
	assert_run(&history, 0, 66560, 1024, 0);
	assert_int_equal(history.part.copy_count, 2);
	assert_copy(&history, 0, 0, 32, 0);
	assert_int_equal(history.part.copies[0].bytes, 800);
	assert_copy(&history, 1, 8, 1024 + 12, 1024);
	assert_int_equal(history.part.copies[1].bytes, 300);
	assert_int_equal(history.part.bytes_wanted[FC_SSD], 1100);
	history_deinit(&history);
}

/*   65536 + 1024 = 66560: layer 0: 8 checksums, 8 x 100 bytes = 832 bytes, read as 1024
 *                  67584: layer 1: 8 checksums, 8 x 50 bytes = 432 bytes, read as 512 */
static void one_segment_is_one_run_a_layer(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 2, (uint64_t[]){100, 50});
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 1024, 0, 8, 0, 8, 0});
	start(&history);
	next(&history);
	assert_int_equal(history.part.layer, 0);
	assert_true(history.part.is_last_of_layer);
	assert_int_equal(history.part.run_count, 1);
	assert_run(&history, 0, 66560, 1024, 0);
	assert_int_equal(history.part.stage_bytes, 1024);
	assert_int_equal(history.part.bytes_wanted[FC_SSD], 800);
	assert_int_equal(history.part.bytes_wanted[FC_MEMORY], 0);
	assert_int_equal(history.part.copy_count, 8);
	for (uint64_t block = 0; block < 8; block++) {
		assert_copy(&history, block, block, 32 + block * 100, block * 4);
		assert_int_equal(history.part.copies[block].bytes, 100);
		assert_ptr_equal(history.part.copies[block].paged, &history.engine.layers[0]);
	}
	next(&history);
	assert_int_equal(history.part.layer, 1);
	assert_int_equal(history.part.run_count, 1);
	assert_run(&history, 0, 67584, 512, 0);
	assert_copy(&history, 7, 7, 32 + 7 * 50, 28);
	assert_ptr_equal(history.part.copies[7].paged, &history.engine.layers[1]);
	history_deinit(&history);
}

/* Three of eight: checksums to 66572, slices from 66592 to 66892; 512 bytes hold both. */
static void a_prefix_of_a_segment_needs_no_more_than_its_bytes(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){100});
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 1024, 0, 8, 0, 3, 0});
	start(&history);
	next(&history);
	assert_int_equal(history.part.run_count, 1);
	assert_run(&history, 0, 66560, 512, 0);
	assert_int_equal(history.part.copy_count, 3);
	assert_copy(&history, 2, 2, 32 + 200, 8);
	history_deinit(&history);
}

/* The last three of eight: slices from 66592 + 500 = 67092 on, a sector behind their checksums: still one run. */
static void the_tail_of_a_segment_is_found_behind_its_checksums(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){100});
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 1024, 0, 8, 5, 3, 0});
	start(&history);
	next(&history);
	assert_int_equal(history.part.run_count, 1);
	assert_run(&history, 0, 66560, 1024, 0);
	assert_copy(&history, 0, 5, 532, 20);
	assert_copy(&history, 2, 7, 732, 28);
	history_deinit(&history);
}

/* Slices of 10,000: checksums are read in [66560, 67072), the last three slices in [116224, 146944): 66592 + 50000 =
 * 116592, down to 116224; 146592, up to 146944. Between them lie 49152 bytes. */
static void a_gap_is_read_through_when_it_is_smaller_than_the_limit(void **state)
{
	(void)state;
	for (int is_merged = 0; is_merged < 2; is_merged++) {
		struct history history;
		history_init(&history, 1, (uint64_t[]){10000});
		history.opts.gap_bytes = 49152 + (uint64_t)is_merged;
		add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 1024, 0, 8, 5, 3, 0});
		start(&history);
		next(&history);
		assert_int_equal(history.part.run_count, is_merged ? 1 : 2);
		if (is_merged) {
			assert_run(&history, 0, 66560, 146944 - 66560, 0);
			assert_copy(&history, 0, 5, 116592 - 66560, 20);
		} else {
			assert_run(&history, 0, 66560, 512, 0);
			assert_run(&history, 1, 116224, 30720, 512);
			assert_copy(&history, 0, 5, 512 + (116592 - 116224), 20);
			assert_int_equal(history.part.stage_bytes, 31232);
		}
		history_deinit(&history);
	}
}

/* The same, and a slot that has room for both runs and the gap (31232 + 49152 = 80384), or a sector less. */
static void a_gap_is_read_through_only_while_the_slot_has_room(void **state)
{
	(void)state;
	for (int has_room = 0; has_room < 2; has_room++) {
		struct history history;
		history_init(&history, 1, (uint64_t[]){10000});
		history.opts.slot_bytes = has_room ? 80384 : 80384 - 512;
		add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 1024, 0, 8, 5, 3, 0});
		start(&history);
		next(&history);
		assert_int_equal(history.part.run_count, has_room ? 1 : 2);
		history_deinit(&history);
	}
}

/* One layer, 4 blocks of 124 bytes a segment: an area of 16 + 496 = 512 bytes. The second segment begins where the
 * first ends, so that only its header of 512 bytes lies between the two areas. */
static void adjoining_segments_are_one_run_of_a_one_layer_model(void **state)
{
	(void)state;
	for (int is_merged = 0; is_merged < 2; is_merged++) {
		struct history history;
		history_init(&history, 1, (uint64_t[]){124});
		history.opts.gap_bytes = 512 + (uint64_t)is_merged;
		add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 512, 0, 4, 0, 4, 0});
		add_segment(&history, (struct part_of_segment){FC_SSD, 66560, 512, 4, 4, 0, 4, 0});
		start(&history);
		next(&history);
		assert_int_equal(history.part.run_count, is_merged ? 1 : 2);
		assert_run(&history, 0, 66048, is_merged ? 1536 : 512, 0);
		assert_int_equal(history.part.copy_count, 8);
		assert_copy(&history, 3, 3, 16 + 3 * 124, 12);
		uint64_t second = is_merged ? 1024 : 512;
		assert_copy(&history, 4, 4, second + 16, second);
		history_deinit(&history);
	}
}

static void segments_are_read_in_the_order_of_their_offsets(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){124});
	history.opts.gap_bytes = 0;
	add_segment(&history, (struct part_of_segment){FC_SSD, 262144, 512, 0, 4, 0, 4, 0});
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 512, 4, 4, 0, 4, 0});
	add_segment(&history, (struct part_of_segment){FC_SSD, 131072, 512, 8, 4, 0, 4, 0});
	start(&history);
	next(&history);
	assert_int_equal(history.part.run_count, 3);
	assert_run(&history, 0, 66048, 512, 0);
	assert_run(&history, 1, 131584, 512, 512);
	assert_run(&history, 2, 262656, 512, 1024);
	assert_copy(&history, 0, 0, 1024 + 16, 1024); /* copies stay in the order of the path */
	assert_copy(&history, 4, 4, 16, 0);
	assert_copy(&history, 8, 8, 512 + 16, 512);
	history_deinit(&history);
}

/* Odd sizes at an alignment of 4096: 5 blocks of 3001: 20 + 15005 bytes from 8192 on, in 16384 bytes. */
static void odd_slices_are_rounded_to_the_alignment(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){3001});
	add_segment(&history, (struct part_of_segment){FC_SSD, 4096, 4096, 0, 5, 0, 5, 4096});
	start(&history);
	next(&history);
	assert_int_equal(history.part.run_count, 1);
	assert_run(&history, 0, 8192, 16384, 0);
	assert_copy(&history, 4, 4, 20 + 4 * 3001, 16);
	history_deinit(&history);
}

/* A slot of 5120 bytes less 4 x 512 for rounding leaves 3072: three blocks of 1004. */
static void a_layer_that_exceeds_the_slot_comes_in_parts(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 2, (uint64_t[]){1000, 0});
	history.opts.slot_bytes = 5120;
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 512, 0, 10, 0, 10, 0});
	start(&history);
	uint64_t block = 0;
	const uint64_t counts[] = {3, 3, 3, 1};
	for (int i = 0; i < 4; i++) {
		next(&history);
		assert_int_equal(history.part.layer, 0);
		assert_int_equal(history.part.copy_count, counts[i]);
		assert_int_equal(history.part.is_last_of_layer, i == 3);
		assert_true(history.part.stage_bytes <= 5120);
		for (uint64_t copy = 0; copy < counts[i]; copy++)
			assert_int_equal(history.part.origins[copy].block, block++);
	}
	next(&history); /* a layer without a slice has a part all the same, so that it is announced */
	assert_int_equal(history.part.layer, 1);
	assert_int_equal(history.part.copy_count, 0);
	assert_int_equal(history.part.run_count, 0);
	assert_true(history.part.is_last_of_layer);
	history_deinit(&history);
}

static void the_smallest_slot_takes_a_slice_at_a_time(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){1000});
	assert_int_equal(fc_plan_slot_bytes_min(&history.geometry, 512), 1000 + 4 + 2048);
	history.opts.slot_bytes = fc_plan_slot_bytes_min(&history.geometry, 512);
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 512, 0, 3, 0, 3, 0});
	start(&history);
	for (int i = 0; i < 3; i++) {
		next(&history);
		assert_int_equal(history.part.copy_count, 1);
	}
	history_deinit(&history);
}

/* An arena keeps the alignment that it was made with, which may be larger than the window was made for. */
static void a_slot_too_small_for_the_segments_alignment_is_an_error(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){1000});
	history.opts.slot_bytes = fc_plan_slot_bytes_min(&history.geometry, 512);
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 4096, 0, 3, 0, 3, 4096});
	start(&history);
	assert_int_equal(fc_plan_next(&history.plan, &history.part), FC_ELIMIT);
	history.opts.slot_bytes = fc_plan_slot_bytes_min(&history.geometry, 4096);
	start(&history);
	for (int i = 0; i < 3; i++)
		next(&history);
	history_deinit(&history);
}

static void memory_is_copied_from_where_it_lies(void **state)
{
	(void)state;
	struct history history;
	uint8_t *map = calloc(1, 8192);
	history_init(&history, 1, (uint64_t[]){100});
	history.opts.memory_map = map;
	add_segment(&history, (struct part_of_segment){FC_MEMORY, 4096, 640, 0, 4, 1, 3, 64});
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 512, 4, 4, 0, 4, 0});
	start(&history);
	next(&history);
	assert_int_equal(history.part.run_count, 1);
	assert_int_equal(history.part.copy_count, 7);
	assert_int_equal(history.part.bytes_wanted[FC_MEMORY], 300);
	assert_int_equal(history.part.bytes_wanted[FC_SSD], 400);
	assert_ptr_equal(history.part.copies[0].flat, map + 4096 + 640 + 16 + 100);
	assert_ptr_equal(history.part.copies[0].checksum, map + 4096 + 640 + 4);
	assert_copy(&history, 3, 4, 16, 0);
	uint8_t slot[1024];
	fc_part_bind(&history.part, slot);
	assert_ptr_equal(history.part.copies[0].flat, map + 4096 + 640 + 16 + 100);
	assert_ptr_equal(history.part.copies[3].flat, slot + 16);
	assert_ptr_equal(history.part.copies[3].checksum, slot);
	free(map);
	history_deinit(&history);
}

static void a_block_without_a_slot_is_named(void **state)
{
	(void)state;
	struct history history;
	struct fc_error error = {0};
	history_init(&history, 1, (uint64_t[]){100});
	add_segment(&history, (struct part_of_segment){FC_SSD, 65536, 512, 0, 8, 0, 8, 0});
	history.target.slots[0].count = 7;
	assert_int_equal(fc_plan_start(&history.plan, &history.alloc, &history.opts, &error), FC_EINVAL);
	assert_string_equal(error.text, "load: group 0 needs slots for blocks 0 to 7, given are 0 to 6");
	history.target.slots[0] = (struct fc_slots){.first_block = 1, .count = 7, .slots = history.engine.slots[0]};
	assert_int_equal(fc_plan_start(&history.plan, &history.alloc, &history.opts, &error), FC_EINVAL);
	assert_string_equal(error.text, "load: group 0 needs slots for blocks 0 to 7, given are 1 to 7");
	history.target.slots[0].count = 0;
	assert_int_equal(fc_plan_start(&history.plan, &history.alloc, &history.opts, &error), FC_EINVAL);
	assert_string_equal(error.text, "load: group 0 needs slots for blocks 0 to 7, none are given");
	engine_deinit(&history.engine);
	fc_plan_deinit(&history.plan);
}

static void want_of_memory_at_any_point_leaves_the_plan_usable(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 2, (uint64_t[]){100, 50});
	history.opts.gap_bytes = 0;
	for (uint64_t i = 0; i < SEGMENTS_MAX; i++)
		add_segment(&history, (struct part_of_segment){FC_SSD, 65536 * (i + 1), 512, i * 16, 16, 0, 16, 0});
	int code = FC_ENOMEM;
	uint64_t failures = 0;
	for (uint64_t fail_at = 1; code != FC_OK; fail_at++) {
		fc_part_deinit(&history.part, &history.alloc);
		fc_plan_deinit(&history.plan);
		history.tracked.call_count = 0;
		history.tracked.fail_at = fail_at;
		code = fc_plan_start(&history.plan, &history.alloc, &history.opts, NULL);
		if (code == FC_OK)
			code = fc_plan_next(&history.plan, &history.part);
		failures += code == FC_ENOMEM;
		assert_true(code == FC_OK || code == FC_ENOMEM);
	}
	assert_true(failures >= 4); /* areas, copies, origins, runs */
	assert_int_equal(history.part.copy_count, 64);
	history.tracked.fail_at = 0;
	next(&history);
	history_deinit(&history);
}

/* ---- against a real catalog: every byte that a plan promises is there ---- */

static uint64_t follow_part(struct world *world, struct fc_part *part, uint8_t *slot, uint64_t slot_bytes)
{
	uint64_t read_bytes = 0;
	assert_true(part->stage_bytes <= slot_bytes);
	for (uint32_t i = 0; i < part->run_count; i++) {
		const struct fc_run *run = &part->runs[i];
		assert_int_equal(run->offset % 512, 0);
		assert_int_equal(run->bytes % 512, 0);
		assert_true(run->stage_offset + run->bytes <= slot_bytes);
		memcpy(slot + run->stage_offset, world->media[FC_SSD]->image + run->offset, run->bytes);
		read_bytes += run->bytes;
	}
	fc_part_bind(part, slot);
	for (uint64_t i = 0; i < part->copy_count; i++) {
		const struct fc_copy *copy = &part->copies[i];
		uint32_t sum = fc_slice_checksum(copy->flat, copy->bytes, copy->seed);
		assert_memory_equal(copy->checksum, &sum, sizeof(sum));
		memcpy((uint8_t *)copy->paged->base + copy->slot * copy->paged->slot_stride_bytes, copy->flat,
		       copy->bytes);
	}
	return read_bytes;
}

/* Follows the whole plan by hand, and finds every block where the engine wants it. Returns the number of runs. */
static uint64_t follow_plan(struct world *world, const struct fc_key *keys, uint64_t count, uint64_t slot_bytes,
			    uint64_t gap_bytes)
{
	struct engine engine;
	struct fc_path path = {0};
	struct fc_target target;
	struct fc_plan plan = {0};
	struct fc_part part = {0};
	uint64_t runs = 0, wanted = 0;
	engine_init(&engine, &world->geometry, count, 1);
	target.layers = engine.layers;
	engine_slots(&engine, count, target.slots);
	assert_int_equal(fc_catalog_match(world->catalog, keys, count, 0, false, &path), 0);
	assert_int_equal(path.blocks, count);
	struct fc_plan_opts opts = {
		.geometry = &world->geometry,
		.path = &path,
		.keys = keys,
		.target = &target,
		.memory_map = world->media[FC_MEMORY]->image,
		.gap_bytes = gap_bytes,
		.slot_bytes = slot_bytes,
	};
	uint8_t *slot = malloc(slot_bytes);
	assert_int_equal(fc_plan_start(&plan, &world->alloc, &opts, NULL), 0);
	while (fc_plan_next(&plan, &part) == FC_OK) {
		follow_part(world, &part, slot, slot_bytes);
		runs += part.run_count;
		wanted += part.bytes_wanted[FC_SSD] + part.bytes_wanted[FC_MEMORY];
	}
	assert_int_equal(wanted, path.bytes[FC_SSD] + path.bytes[FC_MEMORY]);
	engine_check(&engine, keys, count);
	free(slot);
	fc_part_deinit(&part, &world->alloc);
	fc_plan_deinit(&plan);
	fc_path_deinit(&path, &world->alloc);
	engine_deinit(&engine);
	return runs;
}

/* Three turns to SSD and one to memory, of uneven lengths. */
static void save_four_turns(struct world *world, struct fc_key *keys)
{
	const uint64_t ends[] = {6, 10, 24, 30};
	path_keys(1, 0, keys, 30);
	for (uint64_t turn = 0; turn < 4; turn++) {
		world->opts.long_reply_tokens = turn == 3 ? 1u << 30 : 0; /* a long reply sends a turn to SSD */
		assert_int_equal(world_reopen(world, 0), 0);
		assert_int_equal(save(world, 7, turn, keys, ends[turn]), 0);
	}
}

static void plans_of_all_sizes_bring_every_slice_to_its_slot(void **state)
{
	(void)state;
	const struct fc_geometry geometries[] = {geometry_plain(1), geometry_plain(100), geometry_hybrid(1),
						 geometry_hybrid(77)};
	for (size_t i = 0; i < fc_array_len(geometries); i++) {
		struct world world;
		struct fc_key keys[30];
		world_init(&world, geometries[i], 16, 64);
		assert_int_equal(world_open(&world), 0);
		save_four_turns(&world, keys);
		assert_string_equal(picture(&world, keys, 30), "6 4 14 m6");
		uint64_t least = fc_plan_slot_bytes_min(&world.geometry, 512);
		uint64_t runs = follow_plan(&world, keys, 30, 1 << 20, 1);
		for (uint64_t slot_bytes = least; slot_bytes < least + 20000; slot_bytes += 611) {
			assert_true(follow_plan(&world, keys, 30, slot_bytes, 0) >= runs);
			follow_plan(&world, keys, 30, slot_bytes, 64 << 10);
		}
		assert_true(follow_plan(&world, keys, 30, 1 << 20, 1 << 20) <= runs);
		world_deinit(&world);
	}
}

/* Slices in memory go through no slot, so none is too large for one; a slot's worth only says when a part is enough. */
static void slices_in_memory_may_be_larger_than_a_slot(void **state)
{
	(void)state;
	struct history history;
	history_init(&history, 1, (uint64_t[]){1000});
	add_segment(&history, (struct part_of_segment){FC_MEMORY, 65536, 64, 0, 3, 0, 3, 64});
	history.opts.slot_bytes = 500;
	start(&history);
	for (uint64_t block = 0; block < 3; block++) {
		next(&history);
		assert_int_equal(history.part.copy_count, 1);
		assert_int_equal(history.part.run_count, 0);
		assert_int_equal(history.part.origins[0].block, block);
		assert_int_equal(history.part.is_last_of_layer, block == 2);
	}
	history_deinit(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_in_memory_may_be_larger_than_a_slot),
		cmocka_unit_test(one_segment_is_one_run_a_layer),
		cmocka_unit_test(by_piece_there_is_one_copy_of_all_its_slices),
		cmocka_unit_test(a_prefix_of_a_segment_needs_no_more_than_its_bytes),
		cmocka_unit_test(the_tail_of_a_segment_is_found_behind_its_checksums),
		cmocka_unit_test(a_gap_is_read_through_when_it_is_smaller_than_the_limit),
		cmocka_unit_test(a_gap_is_read_through_only_while_the_slot_has_room),
		cmocka_unit_test(adjoining_segments_are_one_run_of_a_one_layer_model),
		cmocka_unit_test(segments_are_read_in_the_order_of_their_offsets),
		cmocka_unit_test(odd_slices_are_rounded_to_the_alignment),
		cmocka_unit_test(a_layer_that_exceeds_the_slot_comes_in_parts),
		cmocka_unit_test(the_smallest_slot_takes_a_slice_at_a_time),
		cmocka_unit_test(a_slot_too_small_for_the_segments_alignment_is_an_error),
		cmocka_unit_test(memory_is_copied_from_where_it_lies),
		cmocka_unit_test(a_block_without_a_slot_is_named),
		cmocka_unit_test(want_of_memory_at_any_point_leaves_the_plan_usable),
		cmocka_unit_test(plans_of_all_sizes_bring_every_slice_to_its_slot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "fuzz/arena_image.h"

#include "catalog/index.h"
#include "format/checksum.h"
#include "lib/world.h"

#include <stdlib.h>
#include <string.h>

#define STROKES_MAX 64
#define RANGES_MAX 6
#define ENTRIES_MAX 256
#define SEED_SUPERBLOCK 1
#define SEED_HEADER 2

struct segment {
	struct fc_header header;
	struct fc_range ranges[FC_RANGES_MAX];
	struct fc_key keys[ENTRIES_MAX];
	uint64_t chunk;
	uint8_t what; /* bits of the stroke */
};

enum { PATH = 3, IS_PROMPT = 4, HAS_RESUME = 8, IS_RESUME_ONLY = 16 };

void fuzz_paths_init(struct fuzz_paths *paths)
{
	path_keys(1, 0, paths->keys[0], FUZZ_PATH_BLOCKS);
	memcpy(paths->keys[1], paths->keys[0], sizeof(paths->keys[0]));
	path_keys(2, 4, paths->keys[1], FUZZ_PATH_BLOCKS);
	memcpy(paths->keys[2], paths->keys[1], sizeof(paths->keys[1]));
	path_keys(3, 8, paths->keys[2], FUZZ_PATH_BLOCKS);
	path_keys(4, 0, paths->keys[3], FUZZ_PATH_BLOCKS);
}

void fuzz_arena_init(struct fuzz_arena *arena, const struct fc_geometry *geometry, uint64_t chunks, uint32_t align,
		     bool is_durable, bool is_formatted)
{
	uint32_t format_align = align < 64 ? 64 : align;
	uint64_t bytes = world_arena_bytes(geometry, chunks, format_align);
	arena->media = fake_media_new(bytes, align, is_durable);
	fuzz_check(fc_superblock_plan(&arena->superblock, bytes, FUZZ_CHUNK_BYTES, format_align, geometry, NULL) ==
			   FC_OK,
		   "cannot be planned");
	arena->superblock.uuid = (struct fc_uuid){7, is_durable + align};
	arena->superblock.epoch = 1;
	for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES && is_formatted; copy++)
		fc_superblock_encode(&arena->superblock, arena->media->image + copy * FC_SUPERBLOCK_BYTES);
}

/* ---- places ---- */

static uint64_t chunk_count(const struct fuzz_arena *arena)
{
	return fc_superblock_chunks(&arena->superblock, arena->media->media.bytes);
}

static uint64_t chunk_offset(const struct fuzz_arena *arena, uint64_t chunk)
{
	return arena->superblock.data_offset + chunk * FUZZ_CHUNK_BYTES;
}

static void paint(struct fuzz_arena *arena, uint64_t offset, const void *bytes, uint64_t count)
{
	uint64_t end = arena->media->media.bytes;
	if (offset < end && count > 0)
		memcpy(arena->media->image + offset, bytes, fc_min_u64(count, end - offset));
}

/* Mostly of epoch 1; the last few are odd ones. */
static uint64_t take_seq(struct fuzz_input *input)
{
	static const uint64_t odd[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, 2ull << 40, (3ull << 40) + 5, 1ull << 63, 255};
	uint8_t number = fuzz_u8(input);
	size_t odd_count = sizeof(odd) / sizeof(odd[0]);
	return number < 256 - odd_count ? fc_seq_first(1) + 1 + number : odd[number - (256 - odd_count)];
}

static void paint_entry(struct fuzz_arena *arena, uint64_t chunk, uint64_t seq, uint32_t count)
{
	uint8_t bytes[FC_TABLE_ENTRY_BYTES];
	struct fc_table_entry entry = {.seq = seq, .chunk_count = count};
	fc_table_entry_encode(&entry, arena->superblock.uuid, chunk, bytes);
	paint(arena, FC_TABLE_OFFSET + chunk * FC_TABLE_ENTRY_BYTES, bytes, sizeof(bytes));
}

/* ---- segments ---- */

/* A range, and the keys that the path has for its blocks. A key stands for all that comes before it, so an arena whose
 * segments disagree on what that is would have to be forged; such are not made here. */
static void add_range(struct segment *segment, const struct fc_geometry *geometry, const struct fc_key *path,
		      uint32_t group, uint64_t first, uint64_t count)
{
	struct fc_shape *shape = &segment->header.shape;
	uint64_t entry = shape->entry_count;
	if (count > ENTRIES_MAX - entry)
		count = ENTRIES_MAX - entry;
	if (fc_shape_add(shape, group, first, count) != FC_OK)
		return;
	uint64_t span = fc_group_span(geometry, group);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t position = fc_group_key_position(span, first + i);
		segment->keys[entry + i] = fc_entry_key(path[position % FUZZ_PATH_BLOCKS], group);
	}
}

static void add_natural_ranges(struct segment *segment, const struct fc_geometry *geometry, const struct fc_key *path)
{
	const struct fc_header *header = &segment->header;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t span = fc_group_span(geometry, group), first, count;
		if (geometry->groups[group].rule == FC_RULE_ALL) {
			first = header->start_block / span;
			count = header->end_block / span - first;
			if (segment->what & IS_RESUME_ONLY)
				continue;
		} else {
			fc_group_needed(geometry, group, header->end_block, &first, &count);
			if (!(segment->what & (HAS_RESUME | IS_RESUME_ONLY)))
				continue;
		}
		add_range(segment, geometry, path, group, first, count);
	}
}

static void add_any_ranges(struct segment *segment, const struct fc_geometry *geometry, const struct fc_key *path,
			   struct fuzz_input *input)
{
	unsigned count = fuzz_u8(input) % (RANGES_MAX + 1);
	for (unsigned i = 0; i < count; i++) {
		uint32_t group = fuzz_u8(input) % geometry->group_count;
		uint64_t first = fuzz_u8(input), blocks = fuzz_u8(input);
		add_range(segment, geometry, path, group, first, blocks);
	}
}

static void take_segment(struct segment *segment, struct fuzz_arena *arena, const struct fuzz_paths *paths,
			 struct fuzz_input *input, bool is_natural)
{
	struct fc_header *header = &segment->header;
	const struct fc_geometry *geometry = &arena->superblock.geometry;
	memset(segment, 0, sizeof(*segment));
	segment->chunk = fuzz_u8(input) % chunk_count(arena);
	header->uuid = arena->superblock.uuid;
	header->seq = take_seq(input);
	header->offset = chunk_offset(arena, segment->chunk);
	header->session.low = fuzz_u8(input) % 5;
	segment->what = fuzz_u8(input);
	header->session_kind = segment->what & IS_PROMPT ? FC_SESSION_PROMPT : FC_SESSION_CONVERSATION;
	header->start_block = fuzz_u8(input) % FUZZ_PATH_BLOCKS;
	header->end_block = header->start_block + fuzz_u8(input);
	if (is_natural)
		header->end_block = fc_min_u64(header->end_block, FUZZ_PATH_BLOCKS);
	if (is_natural && (segment->what & IS_RESUME_ONLY))
		header->start_block = header->end_block;
	header->turn = fuzz_u8(input);
	const struct fc_key *path = paths->keys[segment->what & PATH];
	if (header->start_block > 0)
		header->parent = path[header->start_block - 1];
	fc_shape_init(&header->shape, segment->ranges);
	if (is_natural)
		add_natural_ranges(segment, geometry, path);
	else
		add_any_ranges(segment, geometry, path, input);
}

/* The slices of a range with what their keys say, and their checksums. */
static void paint_range(struct fuzz_arena *arena, const struct segment *segment, const struct fc_layer_area *area,
			const struct fc_range *range)
{
	const struct fc_geometry *geometry = &arena->superblock.geometry;
	uint64_t base = segment->header.offset;
	uint8_t slice[1024];
	struct fc_range_area part = fc_range_area_in(geometry, &segment->header.shape, area, range);
	for (uint64_t i = 0; i < range->count; i++) {
		struct fc_key key = fc_entry_key(segment->keys[range->entry_first + i], range->group);
		fuzz_check(part.slice_bytes <= sizeof(slice), "slices of %llu bytes",
			   (unsigned long long)part.slice_bytes);
		slice_bytes(key, range->group, area->layer, slice, part.slice_bytes);
		uint32_t sum =
			fc_slice_checksum(slice, part.slice_bytes, fc_slice_seed(key, range->group, area->layer));
		paint(arena, base + part.slice_offset + i * part.slice_bytes, slice, part.slice_bytes);
		paint(arena, base + part.checksum_offset + i * sizeof(sum), &sum, sizeof(sum));
	}
}

static void paint_slices(struct fuzz_arena *arena, const struct segment *segment)
{
	const struct fc_geometry *geometry = &arena->superblock.geometry;
	const struct fc_shape *shape = &segment->header.shape;
	struct fc_layer_area area;
	fc_layer_first(geometry, shape, fc_shape_header_bytes(shape, arena->superblock.align), &area);
	do {
		for (uint32_t i = 0; i < shape->range_count; i++)
			if (geometry->groups[shape->ranges[i].group].slice_bytes[area.layer] > 0)
				paint_range(arena, segment, &area, &shape->ranges[i]);
	} while (fc_layer_next(geometry, shape, arena->superblock.align, &area));
}

static void paint_segment(struct fuzz_arena *arena, struct segment *segment)
{
	struct fc_header *header = &segment->header;
	uint64_t bytes;
	if (fc_shape_bytes(&arena->superblock.geometry, &header->shape, arena->superblock.align, &bytes) != FC_OK)
		return;
	header->chunk_count = fc_align_up(bytes, FUZZ_CHUNK_BYTES) / FUZZ_CHUNK_BYTES;
	uint8_t *encoded = malloc(fc_header_encoded_bytes(&header->shape));
	fuzz_check(encoded != NULL, "no memory");
	fc_header_encode(header, segment->keys, encoded);
	paint_slices(arena, segment);
	paint(arena, header->offset, encoded, fc_header_encoded_bytes(&header->shape));
	paint_entry(arena, segment->chunk, header->seq, (uint32_t)header->chunk_count);
	free(encoded);
}

/* ---- bytes ---- */

static void fix_superblock(uint8_t *copy)
{
	uint64_t sum = fc_checksum(copy + 24, FC_SUPERBLOCK_BYTES - 24, SEED_SUPERBLOCK);
	memcpy(copy + 16, &sum, sizeof(sum));
}

static void fix_header(struct fuzz_arena *arena, uint64_t offset)
{
	uint8_t *header = arena->media->image + offset;
	uint64_t length;
	memcpy(&length, header + 16, sizeof(length));
	if (length < 16 || length > arena->media->media.bytes - offset)
		return;
	uint64_t sum = fc_checksum(header + 16, length - 16, SEED_HEADER);
	memcpy(header + 8, &sum, sizeof(sum));
}

static void fix_table(struct fuzz_arena *arena)
{
	for (uint64_t chunk = 0; chunk < chunk_count(arena); chunk++) {
		const uint8_t *entry = arena->media->image + FC_TABLE_OFFSET + chunk * FC_TABLE_ENTRY_BYTES;
		uint64_t seq;
		uint32_t count;
		memcpy(&seq, entry, sizeof(seq));
		memcpy(&count, entry + 8, sizeof(count));
		paint_entry(arena, chunk, seq, count);
	}
}

static void paint_bytes(struct fuzz_arena *arena, struct fuzz_input *input, bool is_fixed)
{
	uint8_t where = fuzz_u8(input);
	uint64_t place = fuzz_u16(input);
	const uint8_t *bytes;
	uint64_t base = where < 2    ? where * (uint64_t)FC_SUPERBLOCK_BYTES
			: where == 2 ? FC_TABLE_OFFSET
				     : chunk_offset(arena, (where - 3u) % chunk_count(arena));
	uint64_t room = where < 2 ? FC_SUPERBLOCK_BYTES : FUZZ_CHUNK_BYTES;
	size_t count = fuzz_bytes(input, fuzz_u8(input) % 32u, &bytes);
	paint(arena, base + place % room, bytes, count);
	if (!is_fixed)
		return;
	if (where < 2)
		fix_superblock(arena->media->image + base);
	else if (where == 2)
		fix_table(arena);
	else
		fix_header(arena, base);
}

static void flip(struct fuzz_arena *arena, struct fuzz_input *input)
{
	uint64_t place = fuzz_u16(input) * 16ull;
	uint8_t bits = fuzz_u8(input);
	arena->media->image[(place + bits % 16u) % arena->media->media.bytes] ^= bits;
}

static void copy_chunk(struct fuzz_arena *arena, struct fuzz_input *input)
{
	uint64_t from = chunk_offset(arena, fuzz_u8(input) % chunk_count(arena));
	uint64_t to = chunk_offset(arena, fuzz_u8(input) % chunk_count(arena));
	memmove(arena->media->image + to, arena->media->image + from, FUZZ_CHUNK_BYTES);
}

static void take_entry(struct fuzz_arena *arena, struct fuzz_input *input)
{
	uint64_t chunk = fuzz_u8(input) % chunk_count(arena);
	uint64_t seq = take_seq(input);
	paint_entry(arena, chunk, seq, fuzz_u8(input));
}

void fuzz_arena_paint(struct fuzz_arena *const arenas[2], const struct fuzz_paths *paths, struct fuzz_input *input)
{
	for (unsigned strokes = 0; strokes < STROKES_MAX && input->left > 0; strokes++) {
		struct segment segment;
		uint8_t stroke = fuzz_u8(input);
		struct fuzz_arena *arena = stroke & 0x80 && arenas[1] != NULL ? arenas[1] : arenas[0];
		switch (stroke % 8) {
		case 0:
		case 1:
		case 2:
			take_segment(&segment, arena, paths, input, stroke % 8 != 2);
			paint_segment(arena, &segment);
			break;
		case 3:
			take_entry(arena, input);
			break;
		case 4:
		case 5:
			paint_bytes(arena, input, stroke % 8 == 5);
			break;
		case 6:
			flip(arena, input);
			break;
		default:
			copy_chunk(arena, input);
			break;
		}
	}
	for (int i = 0; i < 2; i++)
		if (arenas[i] != NULL && arenas[i]->media->durable_image != NULL)
			memcpy(arenas[i]->media->durable_image, arenas[i]->media->image, arenas[i]->media->media.bytes);
}

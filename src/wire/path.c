/* MATCH and its answer: a path, as places in the arenas.
 *
 *     path     | blocks, stored, bytes, counts | placed, its ranges | placed, its ranges ... | span | span ...
 *
 * A client reads and writes where a path says, so all of it is held against what the client knows: its geometry and the
 * arenas of the welcome. The counts come first, are held against the bytes that are left, and are what memory is taken
 * by; so nothing is allocated that the body does not pay for, and nothing moves while pointers to it are handed out. */
#include "wire/codec.h"

#include "base/check.h"

#define PLACED_BYTES 24u
#define RANGE_BYTES 24u
#define SPAN_BYTES 32u

/* ---- MATCH ---- */

int fc_wire_put_match(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_wire_match *match)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_MATCH, request);
	fc_put_u64(&writer, match->blocks_max);
	fc_put_u64(&writer, match->key_count);
	fc_put_u32(&writer, match->is_leased);
	fc_put_u32(&writer, 0);
	fc_put_keys(&writer, match->keys, match->key_count, match->salt);
	return fc_writer_end(&writer);
}

int fc_wire_get_match(struct fc_wire_match *match, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_MATCH, body, bytes, error);
	*match = (struct fc_wire_match){0};
	match->blocks_max = fc_take_u64(&reader, "most blocks");
	match->key_count = fc_take_u64(&reader, "number of keys");
	match->is_leased = fc_take_bool(&reader, "lease");
	fc_take_zero(&reader);
	fc_take_keys(&reader, match->key_count, &match->found);
	return fc_reader_end(&reader);
}

/* ---- a place, and the shape of what lies there ---- */

void fc_put_placed(struct fc_writer *writer, const struct fc_placed *placed)
{
	const struct fc_shape *shape = placed->shape;
	fc_put_u64(writer, placed->base.bits);
	fc_put_u64(writer, placed->header_bytes);
	fc_put_u32(writer, placed->align);
	fc_put_u32(writer, shape->range_count);
	for (uint32_t i = 0; i < shape->range_count; i++) {
		const struct fc_range *range = &shape->ranges[i];
		fc_put_u32(writer, range->group);
		fc_put_u32(writer, 0);
		fc_put_u64(writer, range->block_first);
		fc_put_u64(writer, range->count);
	}
}

void fc_shape_cursor_begin(struct fc_shape_cursor *cursor, struct fc_reader *reader, const struct fc_placing *placing,
			   struct fc_shape_store *store, uint64_t shape_count, uint64_t range_count)
{
	uint64_t left = fc_reader_left(reader);
	*cursor = (struct fc_shape_cursor){.store = store, .range_count = range_count};
	if (shape_count > left / PLACED_BYTES || range_count > (left - shape_count * PLACED_BYTES) / RANGE_BYTES)
		fc_reader_fail(reader, "%llu segments with %llu ranges in %llu bytes", (unsigned long long)shape_count,
			       (unsigned long long)range_count, (unsigned long long)left);
	if (reader->code != FC_OK)
		return;
	if (fc_alloc_reserve(placing->alloc, (void **)&store->shapes, &store->shape_room, shape_count,
			     sizeof(*store->shapes)) != FC_OK ||
	    fc_alloc_reserve(placing->alloc, (void **)&store->ranges, &store->range_room, range_count,
			     sizeof(*store->ranges)) != FC_OK)
		fc_reader_no_memory(reader);
}

static void take_range(struct fc_reader *reader, const struct fc_geometry *geometry, struct fc_shape *shape)
{
	uint32_t group = fc_take_u32(reader, "group of a range");
	fc_take_zero(reader);
	uint64_t block_first = fc_take_u64(reader, "first block of a range");
	uint64_t count = fc_take_u64(reader, "blocks of a range");
	if (group >= geometry->group_count)
		fc_reader_fail(reader, "range of group %u; the geometry has %u", group, geometry->group_count);
	if (count == 0 || block_first > UINT32_MAX || count > UINT32_MAX - block_first)
		fc_reader_fail(reader, "range of %llu blocks from block %llu on", (unsigned long long)count,
			       (unsigned long long)block_first);
	if (reader->code == FC_OK && fc_shape_add(shape, group, block_first, count) != FC_OK)
		fc_reader_fail(reader, "segment of more than %u blocks", UINT32_MAX);
}

/* The whole segment lies in the arena of its medium, behind superblocks, and its header is as long as the format
 * says. */
static void check_placed(struct fc_reader *reader, const struct fc_placing *placing, const struct fc_placed *placed)
{
	unsigned long long bits = placed->base.bits, offset = fc_gva_offset(placed->base);
	uint32_t medium = fc_gva_medium(placed->base);
	if (medium >= FC_MEDIUM_COUNT || !placing->welcome->arenas[medium].is_there) {
		fc_reader_fail(reader, "segment at 0x%016llx: there is no arena of medium %u", bits, medium);
		return;
	}
	const struct fc_wire_arena *arena = &placing->welcome->arenas[medium];
	if (placed->align != arena->align || offset % arena->align != 0) {
		fc_reader_fail(reader, "segment at 0x%016llx with alignment %u; the arena's is %u", bits, placed->align,
			       arena->align);
		return;
	}
	uint64_t header_bytes = fc_shape_header_bytes(placed->shape, placed->align), bytes;
	if (placed->header_bytes != header_bytes)
		fc_reader_fail(reader, "segment at 0x%016llx with a header of %llu bytes; its shape needs %llu", bits,
			       (unsigned long long)placed->header_bytes, (unsigned long long)header_bytes);
	if (fc_shape_bytes(placing->geometry, placed->shape, placed->align, &bytes) != FC_OK)
		fc_reader_fail(reader, "segment at 0x%016llx is longer than an address can say", bits);
	else if (offset < FC_TABLE_OFFSET || bytes > arena->bytes || offset > arena->bytes - bytes)
		fc_reader_fail(reader, "segment at 0x%016llx of %llu bytes; its arena has %llu, the first %u its own",
			       bits, (unsigned long long)bytes, (unsigned long long)arena->bytes, FC_TABLE_OFFSET);
}

void fc_take_placed(struct fc_reader *reader, const struct fc_placing *placing, struct fc_shape_cursor *cursor,
		    struct fc_placed *placed)
{
	uint64_t ranges_left = cursor->range_count - cursor->ranges_used;
	placed->segment = NULL;
	placed->base.bits = fc_take_u64(reader, "address of a segment");
	placed->header_bytes = fc_take_u64(reader, "header of a segment");
	placed->align = fc_take_u32(reader, "alignment of a segment");
	uint32_t range_count = fc_take_u32(reader, "ranges of a segment");
	if (range_count == 0 || range_count > FC_RANGES_MAX || range_count > ranges_left)
		fc_reader_fail(reader,
			       "segment of %u ranges; allowed are 1 to %d, and %llu are left of what was announced",
			       range_count, FC_RANGES_MAX, (unsigned long long)ranges_left);
	if (reader->code != FC_OK)
		return;
	struct fc_shape *shape = &cursor->store->shapes[cursor->shapes_used++];
	fc_shape_init(shape, cursor->store->ranges + cursor->ranges_used);
	cursor->ranges_used += range_count;
	placed->shape = shape;
	for (uint32_t i = 0; i < range_count && reader->code == FC_OK; i++)
		take_range(reader, placing->geometry, shape);
	if (reader->code == FC_OK)
		check_placed(reader, placing, placed);
}

void fc_shape_cursor_end(const struct fc_shape_cursor *cursor, struct fc_reader *reader)
{
	if (cursor->ranges_used != cursor->range_count)
		fc_reader_fail(reader, "%llu ranges; %llu were announced", (unsigned long long)cursor->ranges_used,
			       (unsigned long long)cursor->range_count);
}

/* ---- a path ---- */

uint64_t fc_count_ranges(const struct fc_placed *placed)
{
	return placed->shape->range_count;
}

void fc_put_path(struct fc_writer *writer, const struct fc_path *path)
{
	uint64_t range_count = 0;
	for (uint32_t i = 0; i < path->placed_count; i++)
		range_count += fc_count_ranges(&path->placed[i]);
	fc_put_u64(writer, path->blocks);
	fc_put_u64(writer, path->stored_blocks);
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_put_u64(writer, path->bytes[medium]);
	fc_put_u32(writer, path->is_leased);
	fc_put_u32(writer, path->placed_count);
	fc_put_u32(writer, path->span_count);
	fc_put_u32(writer, 0);
	fc_put_u64(writer, range_count);
	for (uint32_t i = 0; i < path->placed_count; i++)
		fc_put_placed(writer, &path->placed[i]);
	for (uint32_t i = 0; i < path->span_count; i++) {
		const struct fc_span *span = &path->spans[i];
		fc_put_u32(writer, span->placed);
		fc_put_u32(writer, span->group);
		fc_put_u64(writer, span->block_first);
		fc_put_u64(writer, span->count);
		fc_put_u64(writer, span->entry_first);
	}
}

/* Its blocks are those that its entries are, all in one range. */
static bool is_span_of(const struct fc_span *span, const struct fc_shape *shape)
{
	if (span->count == 0 || span->entry_first >= shape->entry_count)
		return false;
	const struct fc_range *range = fc_shape_range_of(shape, span->entry_first);
	uint64_t position = span->entry_first - range->entry_first;
	return span->group == range->group && span->block_first == range->block_first + position &&
	       span->count <= range->count - position;
}

static void take_span(struct fc_reader *reader, const struct fc_path *path, struct fc_span *span)
{
	span->placed = fc_take_u32(reader, "segment of a span");
	span->group = fc_take_u32(reader, "group of a span");
	span->block_first = fc_take_u64(reader, "first block of a span");
	span->count = fc_take_u64(reader, "blocks of a span");
	span->entry_first = fc_take_u64(reader, "first entry of a span");
	if (span->placed >= path->placed_count)
		fc_reader_fail(reader, "span in segment %u; there are %u", span->placed, path->placed_count);
	else if (!is_span_of(span, path->placed[span->placed].shape))
		fc_reader_fail(reader,
			       "span of %llu blocks of group %u from block %llu, entry %llu of segment %u, which has "
			       "no such blocks there",
			       (unsigned long long)span->count, span->group, (unsigned long long)span->block_first,
			       (unsigned long long)span->entry_first, span->placed);
}

static void check_bytes(struct fc_reader *reader, const struct fc_placing *placing, const struct fc_path *path)
{
	uint64_t block_bytes[FC_GROUPS_MAX] = {0}, bytes[FC_MEDIUM_COUNT] = {0};
	for (uint32_t group = 0; group < placing->geometry->group_count; group++)
		block_bytes[group] = fc_group_block_bytes(placing->geometry, group);
	for (uint32_t i = 0; i < path->span_count; i++) {
		const struct fc_span *span = &path->spans[i];
		/* At most 2^48, the length of its segment. */
		uint64_t span_bytes = span->count * block_bytes[span->group];
		uint64_t *sum = &bytes[fc_gva_medium(path->placed[span->placed].base)];
		if (fc_add_overflows(*sum, span_bytes, sum))
			fc_reader_fail(reader, "more bytes than can be counted");
	}
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (path->bytes[medium] != bytes[medium])
			fc_reader_fail(reader, "%llu bytes on medium %u; its spans have %llu",
				       (unsigned long long)path->bytes[medium], medium,
				       (unsigned long long)bytes[medium]);
}

/* Group by group, the spans follow one another and are what resuming at path->blocks needs: no block is missing, none
 * is there twice. */
static void check_cover(struct fc_reader *reader, const struct fc_geometry *geometry, const struct fc_path *path)
{
	uint32_t next = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t block, count;
		fc_group_needed(geometry, group, path->blocks, &block, &count);
		for (uint64_t end = block + count; block < end; next++) {
			const struct fc_span *span = next < path->span_count ? &path->spans[next] : NULL;
			if (span == NULL || span->group != group || span->block_first != block ||
			    span->count > end - block) {
				fc_reader_fail(reader, "span %u is not that of group %u from block %llu to %llu", next,
					       group, (unsigned long long)block, (unsigned long long)end);
				return;
			}
			block += span->count;
		}
	}
	if (next < path->span_count)
		fc_reader_fail(reader, "%u spans, of which %u are needed", path->span_count, next);
}

static void check_blocks(struct fc_reader *reader, const struct fc_geometry *geometry, const struct fc_path *path)
{
	if (path->blocks > path->stored_blocks || path->stored_blocks > UINT32_MAX ||
	    path->blocks % fc_resume_granule(geometry) != 0)
		fc_reader_fail(reader, "%llu blocks of %llu stored; multiples of %llu are allowed",
			       (unsigned long long)path->blocks, (unsigned long long)path->stored_blocks,
			       (unsigned long long)fc_resume_granule(geometry));
}

/* Room for what the counts announce, the counts, which are believed from then on, and the segments. */
static void take_segments(struct fc_reader *reader, const struct fc_placing *placing, struct fc_path *path)
{
	struct fc_shape_cursor cursor;
	uint32_t placed_count = fc_take_u32(reader, "number of segments");
	uint32_t span_count = fc_take_u32(reader, "number of spans");
	fc_take_zero(reader);
	uint64_t range_count = fc_take_u64(reader, "number of ranges");
	fc_shape_cursor_begin(&cursor, reader, placing, &path->shapes, placed_count, range_count);
	if (span_count > fc_reader_left(reader) / SPAN_BYTES)
		fc_reader_fail(reader, "%u spans in %llu bytes", span_count,
			       (unsigned long long)fc_reader_left(reader));
	if (reader->code != FC_OK)
		return;
	if (fc_alloc_reserve(placing->alloc, (void **)&path->placed, &path->placed_room, placed_count,
			     sizeof(*path->placed)) != FC_OK ||
	    fc_alloc_reserve(placing->alloc, (void **)&path->spans, &path->span_room, span_count,
			     sizeof(*path->spans)) != FC_OK) {
		fc_reader_no_memory(reader);
		return;
	}
	path->placed_count = placed_count;
	path->span_count = span_count;
	for (uint32_t i = 0; i < placed_count && reader->code == FC_OK; i++)
		fc_take_placed(reader, placing, &cursor, &path->placed[i]);
	fc_shape_cursor_end(&cursor, reader);
}

void fc_take_path(struct fc_reader *reader, const struct fc_placing *placing, bool is_whole, struct fc_path *path)
{
	fc_wire_path_empty(path);
	path->blocks = fc_take_u64(reader, "blocks");
	path->stored_blocks = fc_take_u64(reader, "stored blocks");
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		path->bytes[medium] = fc_take_u64(reader, "bytes of a medium");
	path->is_leased = fc_take_bool(reader, "lease");
	check_blocks(reader, placing->geometry, path);
	take_segments(reader, placing, path);
	for (uint32_t i = 0; i < path->span_count && reader->code == FC_OK; i++)
		take_span(reader, path, &path->spans[i]);
	if (reader->code == FC_OK)
		check_bytes(reader, placing, path);
	if (reader->code == FC_OK && is_whole)
		check_cover(reader, placing->geometry, path);
	if (reader->code != FC_OK)
		fc_wire_path_empty(path);
}

void fc_wire_path_empty(struct fc_path *path)
{
	path->placed_count = path->span_count = 0;
	path->blocks = path->stored_blocks = 0;
	path->is_leased = false;
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		path->bytes[medium] = 0;
}

/* ---- MATCHED ---- */

int fc_wire_put_matched(struct fc_wire_buffer *buffer, uint64_t request, int code, const struct fc_path *path)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_MATCHED, request);
	fc_put_u32(&writer, (uint32_t)code);
	fc_put_u32(&writer, 0);
	if (code == FC_OK)
		fc_put_path(&writer, path);
	return fc_writer_end(&writer);
}

int fc_wire_get_matched(int *code, struct fc_path *path, const struct fc_wire_welcome *welcome,
			const struct fc_geometry *geometry, const struct fc_alloc *alloc, const uint8_t *body,
			uint64_t bytes, struct fc_error *error)
{
	struct fc_placing placing = {welcome, geometry, alloc};
	struct fc_reader reader;
	fc_check(!path->is_leased);
	fc_wire_path_empty(path);
	fc_reader_begin(&reader, FC_WIRE_MATCHED, body, bytes, error);
	*code = fc_take_code(&reader);
	fc_take_zero(&reader);
	if (*code == FC_OK && reader.code == FC_OK)
		fc_take_path(&reader, &placing, true, path);
	int outcome = fc_reader_end(&reader);
	if (outcome != FC_OK)
		fc_wire_path_empty(path);
	return outcome;
}

/* ---- DAMAGE ---- */

int fc_wire_put_damage(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_wire_damage *damage)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_DAMAGE, request);
	fc_put_u32(&writer, damage->placed);
	fc_put_u32(&writer, damage->is_checksum);
	fc_put_u64(&writer, damage->entry);
	return fc_writer_end(&writer);
}

int fc_wire_get_damage(struct fc_wire_damage *damage, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_DAMAGE, body, bytes, error);
	damage->placed = fc_take_u32(&reader, "segment");
	damage->is_checksum = fc_take_bool(&reader, "checksum");
	damage->entry = fc_take_u64(&reader, "entry");
	return fc_reader_end(&reader);
}

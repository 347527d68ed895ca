/* What a socket delivers, on either side.
 *
 *     1 byte     bits 0-1: pieces that it arrives in (whole, 1 byte, 7, 300); bit 2: put the magic into every frame;
 *                bit 3: put the length of the rest into a frame that says 0xffff; bit 4: paint an answer
 *     ...        frames, or strokes
 *
 * Frames are taken off the front until one is refused, as a connection does. A body that decodes must keep what wire.h
 * promises and encode to the same bytes (tests/wire/messages.c); a path that could not be decoded must be empty and
 * usable for the next. Strokes paint a right path of some length, cut into some spans in some segments, for MATCHED or
 * RESERVED, and then write some numbers over it; without those it must be accepted. The geometry and the arenas are
 * those of the example in messages.h. */
#include "fuzz/fuzz.h"
#include "wire/messages.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 3, FIX_MAGIC = 4, FIX_LENGTH = 8, PAINT = 16 };

#define LENGTH_OPEN 0xffffu

static struct messages messages;

/* Lets an input reach what is behind the header without luck. */
static void fix_headers(uint8_t *frames, size_t bytes, uint8_t mode)
{
	static const uint8_t magic[] = {'F', 'C', 'W', '1'};
	for (size_t at = 0; bytes - at >= FC_WIRE_HEADER_BYTES;) {
		uint64_t length, left = bytes - at - FC_WIRE_HEADER_BYTES;
		if (mode & FIX_MAGIC)
			memcpy(frames + at, magic, sizeof(magic));
		memcpy(&length, frames + at + 8, sizeof(length));
		if ((mode & FIX_LENGTH) && length == LENGTH_OPEN) {
			length = left;
			memcpy(frames + at + 8, &length, sizeof(length));
		}
		if (length > left)
			return;
		at += FC_WIRE_HEADER_BYTES + length;
	}
}

/* False when the connection ends. */
static bool take_frame(struct decoded *decoded, struct fc_wire_buffer *received, struct fc_wire_buffer *again,
		       bool *is_waiting)
{
	struct fc_wire_header header;
	struct fc_error error = {0};
	const uint8_t *body;
	int code = fc_wire_next(received, &header, &body, &error);
	*is_waiting = code == FC_EAGAIN;
	if (*is_waiting)
		return true;
	if (code == FC_OK) {
		fuzz_check(received->used - FC_WIRE_HEADER_BYTES >= header.body_bytes, "a frame that is not there");
		uint8_t *exact = fuzz_exact(body, header.body_bytes);
		code = decode_any(decoded, header.type, header.request, exact, header.body_bytes, again, &error);
		free(exact);
		fc_wire_buffer_drop(again, again->used);
		fc_wire_buffer_drop(received, FC_WIRE_HEADER_BYTES + header.body_bytes);
	}
	if (code == FC_OK)
		return true;
	fuzz_check_refusal(code, &error);
	fuzz_check(code == FC_EFORMAT, "code %d", code);
	return false;
}

/* True when none was refused. */
static bool run(const uint8_t *frames, size_t bytes, size_t piece)
{
	struct tracked_alloc tracked = {0};
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_wire_buffer received, again;
	struct decoded *decoded = malloc(sizeof(*decoded));
	fuzz_check(decoded != NULL, "no memory");
	decoded_init(decoded, &messages, &alloc);
	fc_wire_buffer_init(&received, &alloc);
	fc_wire_buffer_init(&again, &alloc);
	bool is_up = true;
	for (size_t at = 0; at < bytes && is_up; at += piece) {
		if (piece > bytes - at)
			piece = bytes - at;
		fuzz_check(fc_wire_buffer_add(&received, frames + at, piece) == FC_OK, "no memory");
		for (bool is_waiting = false; is_up && !is_waiting;)
			is_up = take_frame(decoded, &received, &again, &is_waiting);
	}
	/* What was refused must not stand in the way of what comes next. */
	for (unsigned number = 0; messages_put(&messages, number, &again); number++) {
		bool is_waiting;
		fc_wire_buffer_drop(&received, received.used);
		fuzz_check(fc_wire_buffer_add(&received, again.bytes, again.used) == FC_OK, "no memory");
		fc_wire_buffer_drop(&again, again.used);
		fuzz_check(take_frame(decoded, &received, &again, &is_waiting) && !is_waiting, "example %u", number);
	}
	decoded_deinit(decoded);
	fc_wire_buffer_deinit(&received);
	fc_wire_buffer_deinit(&again);
	fuzz_check(tracked.bytes == 0, "%llu bytes are lost", (unsigned long long)tracked.bytes);
	free(decoded);
	return is_up;
}

/* ---- painted answers ---- */

#define SEGMENTS 8
#define SPANS_MAX 128
#define SEGMENT_BYTES 0x4000u

struct painting {
	struct fc_range ranges[SEGMENTS][FC_RANGES_MAX];
	struct fc_shape shapes[SEGMENTS];
	struct fc_placed placed[SEGMENTS];
	struct fc_grant grants[SEGMENTS];
	struct fc_span spans[SPANS_MAX];
	struct fc_path path;
};

/* Blocks [block, end) of a group in pieces, each in one of the segments. False when they are too many. */
static bool paint_group(struct painting *painting, struct fuzz_input *input, uint32_t group, uint64_t block,
			uint64_t end)
{
	while (block < end) {
		uint8_t stroke = fuzz_u8(input);
		struct fc_shape *shape = &painting->shapes[stroke % SEGMENTS];
		uint64_t count = fc_min_u64(1 + stroke / SEGMENTS, end - block);
		if (painting->path.span_count == SPANS_MAX || shape->range_count == FC_RANGES_MAX)
			return false;
		painting->spans[painting->path.span_count++] =
			(struct fc_span){stroke % SEGMENTS, group, block, count, shape->entry_count};
		fuzz_check(fc_shape_add(shape, group, block, count) == FC_OK, "a shape of too many ranges");
		block += count;
	}
	return true;
}

/* Segments without blocks are left out, and spans numbered anew. */
static void place_segments(struct painting *painting, uint8_t media)
{
	uint32_t numbers[SEGMENTS];
	struct fc_path *path = &painting->path;
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		enum fc_medium medium = media >> i & 1 ? FC_SSD : FC_MEMORY;
		uint32_t align = messages.welcome.arenas[medium].align;
		if (painting->shapes[i].range_count == 0)
			continue;
		numbers[i] = path->placed_count;
		painting->placed[path->placed_count++] = (struct fc_placed){
			.base = fc_gva_make(medium, 0, FC_TABLE_OFFSET + i * SEGMENT_BYTES),
			.header_bytes = fc_shape_header_bytes(&painting->shapes[i], align),
			.align = align,
			.shape = &painting->shapes[i],
		};
	}
	for (uint32_t i = 0; i < path->span_count; i++) {
		struct fc_span *span = &painting->spans[i];
		span->placed = numbers[span->placed];
		path->bytes[fc_gva_medium(painting->placed[span->placed].base)] +=
			span->count * fc_group_block_bytes(&messages.geometry, span->group);
	}
}

static bool paint_path(struct painting *painting, struct fuzz_input *input)
{
	struct fc_path *path = &painting->path;
	uint8_t stroke = fuzz_u8(input);
	*path = (struct fc_path){.placed = painting->placed, .spans = painting->spans, .is_leased = stroke >> 7};
	path->blocks = fc_resume_granule(&messages.geometry) * (stroke & 31);
	path->stored_blocks = path->blocks + fuzz_u8(input);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		fc_shape_init(&painting->shapes[i], painting->ranges[i]);
	for (uint32_t group = 0; group < messages.geometry.group_count; group++) {
		uint64_t first, count;
		fc_group_needed(&messages.geometry, group, path->blocks, &first, &count);
		if (!paint_group(painting, input, group, first, first + count))
			return false;
	}
	place_segments(painting, fuzz_u8(input));
	return true;
}

static int put_painting(struct painting *painting, uint8_t stroke, struct fc_wire_buffer *buffer)
{
	struct fc_reservation reservation = {.grants = painting->grants, .sources = painting->path};
	if (stroke & 1)
		return fc_wire_put_matched(buffer, 1, FC_OK, &painting->path);
	while (reservation.grant_count < (uint32_t)(stroke >> 1) % SEGMENTS &&
	       reservation.grant_count < painting->path.placed_count) {
		painting->grants[reservation.grant_count].placed = painting->placed[reservation.grant_count];
		reservation.grant_count++;
	}
	return fc_wire_put_reserved(buffer, 1, FC_OK, &reservation, NULL);
}

/* Some numbers of the body; false when there are none. */
static bool write_over(struct fuzz_input *input, uint8_t *body, uint64_t bytes)
{
	unsigned count = fuzz_u8(input) % 4;
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = fuzz_u16(input) % bytes, value;
		uint8_t width = fuzz_u8(input);
		if (width & 128)
			value = fuzz_u64(input);
		else
			value = width;
		memcpy(body + at, &value, fc_min_u64(bytes - at, width & 128 ? 8 : 1));
	}
	return count > 0;
}

static void run_painting(struct fuzz_input *input)
{
	struct tracked_alloc tracked = {0};
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_wire_buffer buffer;
	struct fc_wire_header header;
	struct painting *painting = calloc(1, sizeof(*painting));
	const uint8_t *body;
	fuzz_check(painting != NULL, "no memory");
	fc_wire_buffer_init(&buffer, &alloc);
	if (paint_path(painting, input)) {
		fuzz_check(put_painting(painting, fuzz_u8(input), &buffer) == FC_OK, "it cannot be put");
		fuzz_check(fc_wire_next(&buffer, &header, &body, NULL) == FC_OK, "it is not there");
		bool is_changed = write_over(input, buffer.bytes + FC_WIRE_HEADER_BYTES, header.body_bytes);
		bool is_up = run(buffer.bytes, buffer.used, buffer.used);
		fuzz_check(is_up || is_changed, "a right path is refused");
	}
	fc_wire_buffer_deinit(&buffer);
	free(painting);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t pieces[] = {SIZE_MAX, 1, 7, 300};
	struct fuzz_input input = {data, size};
	uint8_t mode = fuzz_u8(&input);
	if (messages.geometry.layer_count == 0)
		messages_init(&messages);
	if (mode & PAINT) {
		run_painting(&input);
		return 0;
	}
	uint8_t *frames = fuzz_exact(input.bytes, input.left);
	fix_headers(frames, input.left, mode);
	(void)run(frames, input.left, pieces[mode & PIECES]);
	free(frames);
	return 0;
}

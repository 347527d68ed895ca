/* What a socket delivers, on either side.
 *
 *     1 byte     bits 0-1: pieces that it arrives in (whole, 1 byte, 7, 300); bit 2: put the magic into every frame;
 *                bit 3: put the length of the rest, or of the next announced frame, into a frame that says 0xffff
 *     ...        frames
 *
 * Frames are taken off the front until one is refused, as a connection does. A body that decodes must keep what wire.h
 * promises and encode to the same bytes (tests/wire/messages.c); a path that could not be decoded must be empty and
 * usable for the next. The geometry and the arenas are those of the example in messages.h. */
#include "fuzz/fuzz.h"
#include "wire/messages.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 3, FIX_MAGIC = 4, FIX_LENGTH = 8 };

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

static void run(const uint8_t *frames, size_t bytes, size_t piece)
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t pieces[] = {SIZE_MAX, 1, 7, 300};
	struct fuzz_input input = {data, size};
	uint8_t mode = fuzz_u8(&input);
	if (messages.geometry.layer_count == 0)
		messages_init(&messages);
	uint8_t *frames = fuzz_exact(input.bytes, input.left);
	fix_headers(frames, input.left, mode);
	run(frames, input.left, pieces[mode & PIECES]);
	free(frames);
	return 0;
}

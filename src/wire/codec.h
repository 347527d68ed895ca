/* What all messages are made of: a writer that appends one frame to a buffer, and a reader that walks one body.
 *
 * Both remember their first failure and do nothing after it, so that a message is written down field by field, and the
 * outcome is asked for once, at the end. A reader that has failed reads zeros; whoever uses a number it has read (as a
 * count, an index) looks at `code` first. Only for the files of src/wire. */
#ifndef FC_WIRE_CODEC_H
#define FC_WIRE_CODEC_H

#include "wire/wire.h"

#include <string.h>

/* Names of texts on the wire have FC_NAME_BYTES or as many as their field says, the rest of them 0. */
#define FC_WIRE_GEOMETRY_BYTES_MAX (FC_NAME_BYTES + 16u + FC_GROUPS_MAX * (16u + 8u * FC_LAYERS_MAX))
#define FC_WIRE_ERROR_BYTES_MAX (FC_ERROR_TEXT_BYTES - 1u)
/* Of the statistics of version 1. */
#define FC_WIRE_STATS_FIELDS 47u
#define FC_WIRE_STATS_FIELDS_MAX 1024u
#define FC_WIRE_TIMES_BYTES (8u * (FC_WIRE_TIME_BUCKETS + 1u))
#define FC_WIRE_WAITER_BYTES 32u
#define FC_WIRE_REPORT_COUNTERS (15u + 2u * FC_MEDIUM_COUNT)

/* The last of the codes. */
#define FC_WIRE_CODE_LEAST FC_EAGAIN

/* ---- numbers, little-endian on every machine ---- */

static inline uint16_t fc_load_u16(const uint8_t *place)
{
	return (uint16_t)(place[0] | place[1] << 8);
}

static inline uint32_t fc_load_u32(const uint8_t *place)
{
	uint32_t value;
	memcpy(&value, place, sizeof(value));
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? value : __builtin_bswap32(value);
}

static inline uint64_t fc_load_u64(const uint8_t *place)
{
	uint64_t value;
	memcpy(&value, place, sizeof(value));
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? value : __builtin_bswap64(value);
}

static inline void fc_store_u16(uint8_t *place, uint16_t value)
{
	place[0] = (uint8_t)value;
	place[1] = (uint8_t)(value >> 8);
}

static inline void fc_store_u32(uint8_t *place, uint32_t value)
{
	value = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? value : __builtin_bswap32(value);
	memcpy(place, &value, sizeof(value));
}

static inline void fc_store_u64(uint8_t *place, uint64_t value)
{
	value = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? value : __builtin_bswap64(value);
	memcpy(place, &value, sizeof(value));
}

/* ---- writing ---- */

/* Room for `count` more bytes behind what is in the buffer. FC_ENOMEM. */
FC_MUST_USE int fc_wire_buffer_room(struct fc_wire_buffer *buffer, uint64_t count);

struct fc_writer {
	struct fc_wire_buffer *buffer;
	uint64_t frame_at; /* in the buffer */
	int code;
};

void fc_writer_begin(struct fc_writer *writer, struct fc_wire_buffer *buffer, enum fc_wire_type type, uint64_t request);
/* Completes the header. On any failure the buffer is as it was at the beginning. */
FC_MUST_USE int fc_writer_end(struct fc_writer *writer);
void fc_writer_fail(struct fc_writer *writer, int code);

void fc_put_u32(struct fc_writer *writer, uint32_t value);
void fc_put_u64(struct fc_writer *writer, uint64_t value);
void fc_put_double(struct fc_writer *writer, double value);
/* A text that ends with 0, in a field of `bytes`. */
void fc_put_name(struct fc_writer *writer, const char *name, size_t bytes);
void fc_put_geometry(struct fc_writer *writer, const struct fc_geometry *geometry);
/* Code and length of the text (NULL or empty: the code's own); fc_put_error_text() follows, at once or behind other
 * fields. What is not printable in
 * the text (a sentence may have been cut in the middle of a letter) becomes question marks. */
void fc_put_error_head(struct fc_writer *writer, int code, const struct fc_error *error);
void fc_put_error_text(struct fc_writer *writer, int code, const struct fc_error *error);
void fc_put_keys(struct fc_writer *writer, const struct fc_key *keys, uint64_t count, struct fc_key salt);

/* ---- reading ---- */

struct fc_reader {
	enum fc_wire_type type;
	const uint8_t *body;
	uint64_t bytes, at;
	struct fc_error *error;
	int code;
};

void fc_reader_begin(struct fc_reader *reader, enum fc_wire_type type, const uint8_t *body, uint64_t bytes,
		     struct fc_error *error);
/* The outcome; a body that goes on is a failure. */
FC_MUST_USE int fc_reader_end(struct fc_reader *reader);
/* The first failure is the one that is told: FC_EFORMAT, with the message's name in front. */
void fc_reader_fail(struct fc_reader *reader, const char *format, ...) FC_PRINTF(2, 3);
void fc_reader_no_memory(struct fc_reader *reader);

static inline uint64_t fc_reader_left(const struct fc_reader *reader)
{
	return reader->bytes - reader->at;
}

/* `field` is what a failure says. */
uint32_t fc_take_u32(struct fc_reader *reader, const char *field);
uint64_t fc_take_u64(struct fc_reader *reader, const char *field);
bool fc_take_bool(struct fc_reader *reader, const char *field);
/* Finite and not negative. */
double fc_take_double(struct fc_reader *reader, const char *field);
/* FC_OK or an FC_E... */
int fc_take_code(struct fc_reader *reader);
/* Four bytes that must be 0. */
void fc_take_zero(struct fc_reader *reader);
/* In place; NULL after a failure. */
const uint8_t *fc_take_bytes(struct fc_reader *reader, uint64_t count, const char *field);
void fc_take_name(struct fc_reader *reader, char *name, size_t bytes, const char *field);
/* With fc_geometry_check(). */
void fc_take_geometry(struct fc_reader *reader, struct fc_geometry *geometry);
/* Counterparts of fc_put_error_...(). */
int fc_take_error_head(struct fc_reader *reader, uint32_t *text_bytes);
void fc_take_error_text(struct fc_reader *reader, int code, uint32_t text_bytes, struct fc_error *to);
void fc_take_keys(struct fc_reader *reader, uint64_t count, struct fc_wire_keys *keys);

/* ---- places (path.c) ---- */

/* What a place is held against. */
struct fc_placing {
	const struct fc_wire_welcome *welcome;
	const struct fc_geometry *geometry;
	const struct fc_alloc *alloc;
};

uint64_t fc_count_ranges(const struct fc_placed *placed);
void fc_put_placed(struct fc_writer *writer, const struct fc_placed *placed);
void fc_put_path(struct fc_writer *writer, const struct fc_path *path);

/* The shapes of one message, on their way into a store. Room for all of them is made at the beginning, if the body can
 * hold them, so that none is moved while others point to it. */
struct fc_shape_cursor {
	struct fc_shape_store *store;
	uint64_t shapes_used, ranges_used, range_count;
};
void fc_shape_cursor_begin(struct fc_shape_cursor *cursor, struct fc_reader *reader, const struct fc_placing *placing,
			   struct fc_shape_store *store, uint64_t shape_count, uint64_t range_count);
void fc_take_placed(struct fc_reader *reader, const struct fc_placing *placing, struct fc_shape_cursor *cursor,
		    struct fc_placed *placed);
/* As many ranges as were announced. */
void fc_shape_cursor_end(const struct fc_shape_cursor *cursor, struct fc_reader *reader);

/* With `is_whole`, the spans are exactly what resuming at path->blocks needs. */
void fc_take_path(struct fc_reader *reader, const struct fc_placing *placing, bool is_whole, struct fc_path *path);
/* Empty and not leased; keeps its memory. */
void fc_wire_path_empty(struct fc_path *path);

#endif

#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0xaf143cd8u /* llama-context.cpp: io_magic */
#define CELL_BYTES 12
#define ROWS_HEADER_BYTES 12
#define BODY_HEADER_BYTES 8

int state_error(struct fc_error *error, int code, const char *format, ...)
{
	if (error != NULL) {
		va_list arguments;
		va_start(arguments, format);
		error->code = code;
		vsnprintf(error->text, sizeof(error->text), format, arguments);
		va_end(arguments);
	}
	return code;
}

/* ---- reading, never past the end ---- */

struct reader {
	const uint8_t *bytes;
	uint64_t size, at;
	bool is_short;
};

static const uint8_t *take(struct reader *reader, uint64_t bytes)
{
	if (reader->is_short || bytes > reader->size - reader->at) {
		reader->is_short = true;
		return NULL;
	}
	const uint8_t *taken = reader->bytes + reader->at;
	reader->at += bytes;
	return taken;
}

static uint32_t take_u32(struct reader *reader)
{
	uint32_t value = 0;
	const uint8_t *taken = take(reader, sizeof(value));
	if (taken != NULL)
		memcpy(&value, taken, sizeof(value));
	return value;
}

static struct state_rows take_rows(struct reader *reader)
{
	struct state_rows rows = {.type = (int32_t)take_u32(reader)};
	const uint8_t *taken = take(reader, sizeof(rows.bytes));
	if (taken != NULL)
		memcpy(&rows.bytes, taken, sizeof(rows.bytes));
	return rows;
}

static int unknown_form(struct fc_error *error, const char *what, uint64_t found, uint64_t wanted)
{
	return state_error(error, FC_EINVAL,
			   "the engine's sequence state is not of the known form: %s is %llu, not %llu", what,
			   (unsigned long long)found, (unsigned long long)wanted);
}

static int expect(struct fc_error *error, const char *what, uint64_t found, uint64_t wanted)
{
	return found == wanted ? FC_OK : unknown_form(error, what, found, wanted);
}

/* Up to the first cell of the stream that has cells. Streams without cells before it take four bytes each. */
static int read_head(struct reader *reader, uint32_t *stream_count, uint32_t *streams_before, uint32_t *cell_count,
		     struct fc_error *error)
{
	int code = expect(error, "the magic number", take_u32(reader), MAGIC);
	take_u32(reader); /* the sequence that it was */
	*stream_count = take_u32(reader);
	*cell_count = 0;
	*streams_before = 0;
	for (uint32_t stream = 0; code == FC_OK && stream < *stream_count && *cell_count == 0; stream++) {
		*cell_count = take_u32(reader);
		*streams_before = stream;
		if (reader->is_short)
			break;
	}
	if (code == FC_OK && reader->is_short)
		code = state_error(error, FC_EINVAL, "the engine's sequence state ends in its head, after %llu bytes",
				   (unsigned long long)reader->size);
	return code;
}

/* The streams behind the one that was read must have no cells, and nothing may follow them. */
static int read_tail(struct reader *reader, uint32_t streams_behind, struct fc_error *error)
{
	int code = FC_OK;
	for (uint32_t stream = 0; code == FC_OK && stream < streams_behind && !reader->is_short; stream++)
		code = expect(error, "the number of cells of a second stream", take_u32(reader), 0);
	if (code != FC_OK)
		return code;
	if (reader->is_short)
		return state_error(error, FC_EINVAL, "the engine's sequence state is cut off after %llu bytes",
				   (unsigned long long)reader->size);
	return expect(error, "its size", reader->size, reader->at);
}

static int read_body_header(struct reader *reader, uint32_t *layer_count, struct fc_error *error)
{
	uint32_t is_transposed = take_u32(reader);
	*layer_count = take_u32(reader);
	if (is_transposed == 1)
		return state_error(error, FC_EINVAL,
				   "the engine keeps V transposed, which it does without flash attention; set "
				   "flash_attn_type to LLAMA_FLASH_ATTN_TYPE_ENABLED");
	return expect(error, "the mark of a transposed V", is_transposed, 0);
}

static int probe_rows(struct reader *reader, struct state_rows *rows, uint32_t layer_count, struct fc_error *error)
{
	for (uint32_t layer = 0; layer < layer_count; layer++) {
		rows[layer] = take_rows(reader);
		if (take(reader, rows[layer].bytes) == NULL || rows[layer].bytes == 0)
			return state_error(error, FC_EINVAL,
					   "the engine's sequence state is not of the known form: rows of %llu bytes "
					   "in layer %u",
					   (unsigned long long)rows[layer].bytes, layer);
	}
	return FC_OK;
}

int state_probe(struct state_shape *shape, const uint8_t *bytes, uint64_t size, struct fc_error *error)
{
	memset(shape, 0, sizeof(*shape));
	struct reader reader = {.bytes = bytes, .size = size};
	uint32_t before, cell_count;
	int code = read_head(&reader, &shape->stream_count, &before, &cell_count, error);
	if (code == FC_OK)
		code = expect(error, "the number of cells of one token", cell_count, 1);
	if (code == FC_OK)
		code = expect(error, "the position of the first token", take_u32(&reader), 0);
	if (code == FC_OK)
		code = expect(error, "the number of a cell's sequences", take_u32(&reader), 1);
	take_u32(&reader); /* which sequence */
	if (code == FC_OK)
		code = read_body_header(&reader, &shape->layer_count, error);
	if (code == FC_OK && (shape->layer_count == 0 || shape->layer_count > STATE_LAYERS_MAX))
		code = state_error(error, FC_ELIMIT, "the engine keeps KV for %u layers; 1 to %d are allowed",
				   shape->layer_count, STATE_LAYERS_MAX);
	if (code == FC_OK)
		code = probe_rows(&reader, shape->keys, shape->layer_count, error);
	uint64_t behind = shape->stream_count - before - 1;
	shape->has_values = code == FC_OK && reader.size - reader.at > behind * sizeof(uint32_t);
	if (shape->has_values)
		code = probe_rows(&reader, shape->values, shape->layer_count, error);
	return code == FC_OK ? read_tail(&reader, (uint32_t)behind, error) : code;
}

static int check_rows(struct reader *reader, const struct state_rows *wanted, uint32_t layer_count, uint32_t cell_count,
		      struct fc_error *error)
{
	for (uint32_t layer = 0; layer < layer_count; layer++) {
		struct state_rows rows = take_rows(reader);
		int code = expect(error, "the type of a row", (uint32_t)rows.type, (uint32_t)wanted[layer].type);
		if (code == FC_OK)
			code = expect(error, "the size of a row", rows.bytes, wanted[layer].bytes);
		if (code != FC_OK)
			return code;
		take(reader, cell_count * rows.bytes); /* no overflow: the probe saw this row size in memory */
	}
	return FC_OK;
}

/* Asked for one sequence, the engine names one in every cell. */
static int check_cells(struct reader *reader, uint32_t cell_count, struct fc_error *error)
{
	int code = FC_OK;
	for (uint32_t cell = 0; code == FC_OK && cell < cell_count && !reader->is_short; cell++) {
		take_u32(reader); /* the position */
		code = expect(error, "the number of a cell's sequences", take_u32(reader), 1);
		take_u32(reader); /* which sequence */
	}
	return code;
}

int state_open(const struct state_shape *shape, uint8_t *bytes, uint64_t size, struct state_view *view,
	       struct fc_error *error)
{
	*view = (struct state_view){.bytes = bytes};
	struct reader reader = {.bytes = bytes, .size = size};
	uint32_t stream_count, before, layer_count;
	int code = read_head(&reader, &stream_count, &before, &view->cell_count, error);
	if (code == FC_OK)
		code = expect(error, "the number of streams", stream_count, shape->stream_count);
	if (code != FC_OK || view->cell_count == 0)
		return code == FC_OK ? read_tail(&reader, 0, error) : code;
	view->cells_at = reader.at;
	code = check_cells(&reader, view->cell_count, error);
	if (code == FC_OK)
		code = read_body_header(&reader, &layer_count, error);
	if (code == FC_OK)
		code = expect(error, "the number of layers", layer_count, shape->layer_count);
	if (code == FC_OK)
		code = check_rows(&reader, shape->keys, shape->layer_count, view->cell_count, error);
	if (code == FC_OK && shape->has_values)
		code = check_rows(&reader, shape->values, shape->layer_count, view->cell_count, error);
	return code == FC_OK ? read_tail(&reader, stream_count - before - 1, error) : code;
}

/* ---- order ---- */

static uint32_t position_of(const struct state_view *view, uint32_t cell)
{
	uint32_t position;
	memcpy(&position, view->bytes + view->cells_at + (uint64_t)cell * CELL_BYTES, sizeof(position));
	return position;
}

bool state_is_in_order(const struct state_view *view, uint32_t first_position)
{
	for (uint32_t cell = 0; cell < view->cell_count; cell++)
		if (position_of(view, cell) != first_position + cell)
			return false;
	return true;
}

/* Which row of the sorted state each cell becomes. */
static int find_rows(const struct state_view *view, uint32_t first_position, uint32_t cell_count, uint32_t *row_of,
		     struct fc_error *error)
{
	uint32_t found = 0;
	uint8_t *is_found = calloc(1, cell_count + 1);
	if (is_found == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	for (uint32_t cell = 0; cell < view->cell_count; cell++) {
		uint32_t row = position_of(view, cell) - first_position; /* of positions before: huge */
		row_of[cell] = row;
		if (row < cell_count && !is_found[row]) {
			is_found[row] = 1;
			found++;
		}
	}
	free(is_found);
	if (found == cell_count && view->cell_count == cell_count)
		return FC_OK;
	return state_error(error, FC_EINVAL,
			   "the engine's sequence has gaps: %u of %u positions from %u on, in %u cells", found,
			   cell_count, first_position, view->cell_count);
}

static void sort_rows(const uint8_t *from, uint8_t *to, uint64_t row_bytes, const uint32_t *row_of, uint32_t cell_count)
{
	uint32_t cell = 0;
	while (cell < cell_count) {
		uint32_t run = 1; /* cells side by side whose rows are side by side, too */
		while (cell + run < cell_count && row_of[cell + run] == row_of[cell] + run)
			run++;
		memcpy(to + row_of[cell] * row_bytes, from + cell * row_bytes, run * row_bytes);
		cell += run;
	}
}

int state_sort(const struct state_shape *shape, const struct state_view *view, uint32_t first_position,
	       struct state_view *sorted, struct fc_error *error)
{
	uint32_t *row_of = malloc(((uint64_t)view->cell_count + 1) * sizeof(*row_of));
	int code = row_of == NULL ? state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM))
				  : find_rows(view, first_position, sorted->cell_count, row_of, error);
	for (uint32_t layer = 0; code == FC_OK && layer < shape->layer_count; layer++) {
		sort_rows(view->bytes + state_keys_at(shape, view, layer),
			  sorted->bytes + state_keys_at(shape, sorted, layer), shape->keys[layer].bytes, row_of,
			  view->cell_count);
		if (shape->has_values)
			sort_rows(view->bytes + state_values_at(shape, view, layer),
				  sorted->bytes + state_values_at(shape, sorted, layer), shape->values[layer].bytes,
				  row_of, view->cell_count);
	}
	free(row_of);
	return code;
}

/* ---- layout ---- */

static uint64_t rows_bytes(const struct state_rows *rows, uint32_t layer_count, uint64_t cell_count)
{
	uint64_t bytes = 0;
	for (uint32_t layer = 0; layer < layer_count; layer++)
		bytes += ROWS_HEADER_BYTES + rows[layer].bytes * cell_count;
	return bytes;
}

static uint64_t body_at(const struct state_view *view)
{
	return view->cells_at + (uint64_t)view->cell_count * CELL_BYTES + BODY_HEADER_BYTES;
}

uint64_t state_keys_at(const struct state_shape *shape, const struct state_view *view, uint32_t layer)
{
	return body_at(view) + rows_bytes(shape->keys, layer, view->cell_count) + ROWS_HEADER_BYTES;
}

uint64_t state_values_at(const struct state_shape *shape, const struct state_view *view, uint32_t layer)
{
	return body_at(view) + rows_bytes(shape->keys, shape->layer_count, view->cell_count) +
	       rows_bytes(shape->values, layer, view->cell_count) + ROWS_HEADER_BYTES;
}

uint64_t state_bytes(const struct state_shape *shape, uint32_t cell_count)
{
	uint64_t row_bytes = CELL_BYTES;
	for (uint32_t layer = 0; layer < shape->layer_count; layer++)
		row_bytes += shape->keys[layer].bytes + shape->values[layer].bytes;
	if (row_bytes > (UINT64_MAX >> 1) / ((uint64_t)cell_count + 1))
		return UINT64_MAX;
	uint64_t headers = rows_bytes(shape->keys, shape->layer_count, 0) +
			   (shape->has_values ? rows_bytes(shape->values, shape->layer_count, 0) : 0);
	return (3 + (uint64_t)shape->stream_count) * sizeof(uint32_t) + BODY_HEADER_BYTES + headers +
	       row_bytes * cell_count;
}

static uint8_t *put(uint8_t *to, const void *value, size_t bytes)
{
	memcpy(to, value, bytes);
	return to + bytes;
}

static uint8_t *put_u32(uint8_t *to, uint32_t value)
{
	return put(to, &value, sizeof(value));
}

static void put_rows_header(uint8_t *first_row, const struct state_rows *rows)
{
	uint8_t *at = put(first_row - ROWS_HEADER_BYTES, &rows->type, sizeof(rows->type));
	put(at, &rows->bytes, sizeof(rows->bytes));
}

/* Everything up to the first layer, and the empty streams behind the last. Ours always stand in the first stream: which
 * one they come from does not matter to the engine. */
static void put_frame(const struct state_shape *shape, struct state_view *view)
{
	uint8_t *at = put_u32(view->bytes, MAGIC);
	at = put_u32(at, 0);
	at = put_u32(at, shape->stream_count);
	at = put_u32(at, view->cell_count);
	view->cells_at = (uint64_t)(at - view->bytes);
	for (uint32_t cell = 0; cell < view->cell_count; cell++) {
		at = put_u32(at, cell);
		at = put_u32(at, 1);
		at = put_u32(at, 0);
	}
	at = put_u32(at, 0);
	put_u32(at, shape->layer_count);
	uint64_t tail_bytes = ((uint64_t)shape->stream_count - 1) * sizeof(uint32_t);
	memset(view->bytes + state_bytes(shape, view->cell_count) - tail_bytes, 0, tail_bytes);
}

void state_frame(const struct state_shape *shape, uint8_t *bytes, uint32_t cell_count, struct state_view *view)
{
	*view = (struct state_view){.bytes = bytes, .cell_count = cell_count};
	put_frame(shape, view);
	for (uint32_t layer = 0; layer < shape->layer_count; layer++) {
		put_rows_header(bytes + state_keys_at(shape, view, layer), &shape->keys[layer]);
		if (shape->has_values)
			put_rows_header(bytes + state_values_at(shape, view, layer), &shape->values[layer]);
	}
}

/* Rows move towards the front, first ones first, so none is overwritten before it has moved; frames are written last.
 */
void state_shrink(const struct state_shape *shape, struct state_view *view, uint32_t cell_count)
{
	struct state_view small = {.bytes = view->bytes, .cell_count = cell_count, .cells_at = view->cells_at};
	for (uint32_t layer = 0; layer < shape->layer_count; layer++)
		memmove(small.bytes + state_keys_at(shape, &small, layer),
			view->bytes + state_keys_at(shape, view, layer), shape->keys[layer].bytes * cell_count);
	for (uint32_t layer = 0; shape->has_values && layer < shape->layer_count; layer++)
		memmove(small.bytes + state_values_at(shape, &small, layer),
			view->bytes + state_values_at(shape, view, layer), shape->values[layer].bytes * cell_count);
	state_frame(shape, view->bytes, cell_count, view);
}

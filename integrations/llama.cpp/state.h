/* The bytes in which llama.cpp hands out the KV of one sequence (llama_state_seq_get_data), read and written row by
 * row.
 *
 *   u32 magic, i32 sequence
 *   u32 streams                                     1 with kv_unified, else one a sequence; for each of them:
 *     u32 cells                                     and nothing else when 0
 *     cells x { i32 position, u32 1, i32 sequence }
 *     u32 is V transposed, u32 layers
 *     layers x { i32 type, u64 row bytes, cells x row }        K
 *     layers x { i32 type, u64 row bytes, cells x row }        V; left out where the model has none (MLA)
 *
 * Rows of one layer lie side by side, so a block of 64 tokens is one run of K and one of V in every layer, and a state
 * of any prefix can be put together from blocks. llama.cpp states no version for this form. So its shape is asked from
 * the engine once, with a state of one token (state_probe), and every state after that must have exactly this shape
 * (state_open): row sizes, types and counts are compared, and the sizes must come out to the byte.
 *
 * Transposed V (no flash attention) is refused: there a token's row is not one run but as many as V has channels.
 *
 * These functions know nothing of llama.cpp's library and of the store; they only read and write memory. */
#ifndef FLATCAKE_LLAMA_STATE_H
#define FLATCAKE_LLAMA_STATE_H

#include <flatcake.h>

#include <stdbool.h>
#include <stdint.h>

#define STATE_LAYERS_MAX FC_LAYERS_MAX

struct state_rows {
	int32_t type; /* an enum ggml_type */
	uint64_t bytes;
};

struct state_shape {
	uint32_t stream_count;
	uint32_t layer_count;
	bool has_values;
	struct state_rows keys[STATE_LAYERS_MAX];
	struct state_rows values[STATE_LAYERS_MAX];
};

/* One state in memory: that of `cell_count` tokens. */
struct state_view {
	uint8_t *bytes;
	uint32_t cell_count;
	uint64_t cells_at; /* offset of the first cell */
};

/* Writes a sentence into `error` (may be NULL) and returns `code`. */
int state_error(struct fc_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The shape, from the state of a sequence that holds one token at position 0. FC_EINVAL: a form that is not known. */
int state_probe(struct state_shape *shape, const uint8_t *bytes, uint64_t size, struct fc_error *error);

/* Checks a state against the shape, to the byte. FC_EINVAL names what differs. */
int state_open(const struct state_shape *shape, uint8_t *bytes, uint64_t size, struct state_view *view,
	       struct fc_error *error);

/* Whether row i belongs to position first + i, for every row. */
bool state_is_in_order(const struct state_view *view, uint32_t first_position);

/* Copies the rows of positions [first, first + cell_count) in order to `sorted`, which state_frame() has prepared for
 * as many cells. FC_EINVAL unless each position is there exactly once. */
int state_sort(const struct state_shape *shape, const struct state_view *view, uint32_t first_position,
	       struct state_view *sorted, struct fc_error *error);

/* Size of a state of `cell_count` tokens; UINT64_MAX when it exceeds what can be addressed. */
uint64_t state_bytes(const struct state_shape *shape, uint32_t cell_count);

/* Writes everything but the rows of a state for positions [0, cell_count); `bytes` has room for state_bytes(). */
void state_frame(const struct state_shape *shape, uint8_t *bytes, uint32_t cell_count, struct state_view *view);

/* Leaves the first `cell_count` cells, which are at most those that are there. */
void state_shrink(const struct state_shape *shape, struct state_view *view, uint32_t cell_count);

/* Where the first row of a layer stands. */
uint64_t state_keys_at(const struct state_shape *shape, const struct state_view *view, uint32_t layer);
uint64_t state_values_at(const struct state_shape *shape, const struct state_view *view, uint32_t layer);

#endif

/* What the parts of flatcake-llama share; not for programs. */
#ifndef FLATCAKE_LLAMA_BRIDGE_H
#define FLATCAKE_LLAMA_BRIDGE_H

#include "flatcake-llama.h"
#include "state.h"

#define STAGING_COUNT 8 /* loads and saves that may be under way at once */

/* Memory for one state on its way between engine and store. It is kept for the next one: fresh pages cost as much as
 * copying into them. */
struct staging {
	uint8_t *bytes;
	uint64_t size;
	bool is_used;
};

struct fc_llama {
	struct llama_context *context;
	llama_memory_t memory;
	llama_seq_id scratch_sequence; /* -1: none */
	struct state_shape shape;
	struct fc_geometry geometry;
	struct fc_namespace name_space;
	struct fc_store *store;
	bool owns_store;
	struct staging stagings[STAGING_COUNT];
};

/* FC_EINVAL for a sequence that the context does not have, which would end the process inside llama.cpp, and for the
 * scratch sequence. */
int bridge_check_sequence(const struct fc_llama *bridge, llama_seq_id sequence, struct fc_error *error);

/* identity.c: everything besides the tokens that the rows depend on. */
int bridge_name(struct fc_llama *bridge, const struct fc_llama_opts *opts, struct fc_error *error);

/* staging.c */
int staging_take(struct fc_llama *bridge, uint64_t size, struct staging **staging, struct fc_error *error);
void staging_give(struct staging *staging);
void staging_free_all(struct fc_llama *bridge);

/* The path of keys of the whole blocks of `tokens`, and the slots 0, 1, 2 ...; freed with path_deinit(). */
struct path {
	struct fc_key *keys;
	uint64_t *slots;
	uint64_t block_count;
};
int path_init(struct path *path, const struct fc_llama *bridge, const llama_token *tokens, size_t token_count,
	      struct fc_error *error);
void path_deinit(struct path *path);

/* Describes the rows of a state in order to the store: slot s is the s-th block of tokens in it. */
int kv_register(struct fc_llama *bridge, const struct state_view *view, struct fc_kv **kv, struct fc_error *error);

uint64_t now_ns(void);

#endif

/* Opening a bridge: what the engine is asked, and what is refused. */
#include "flatcake-llama.h"

#include "bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_TOKENS_DEFAULT 64

/* A layer of a few thousand tokens is a few MiB, and two layers are read at once: commands must be smaller than that,
 * or hardly any of them are under way together. Measured on a state of 33 MB: 20 ms with commands of 4 MiB, 13 ms so.
 */
#define TRANSFER_BYTES (512u << 10)

void fc_llama_opts_init(struct fc_llama_opts *opts)
{
	memset(opts, 0, sizeof(*opts));
	opts->size = sizeof(*opts);
	opts->block_tokens = BLOCK_TOKENS_DEFAULT;
	opts->scratch_sequence = -1;
	fc_store_opts_init(&opts->store_opts);
	opts->store_opts.transfer_bytes = TRANSFER_BYTES;
}

/* ---- what can be kept ---- */

static int check_model(const struct llama_model *model, struct fc_error *error)
{
	const char *reason = NULL;
	enum llama_rope_type rope = llama_model_rope_type(model);
	if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model))
		reason = "it has recurrent layers, whose state is no rows of tokens";
	else if (llama_model_n_swa(model) > 0)
		reason = "it has sliding-window layers, which forget rows that a shorter prefix needs";
	else if (llama_model_has_encoder(model))
		reason = "it has an encoder";
	else if (rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE || rope == LLAMA_ROPE_TYPE_VISION)
		reason = "its positions have several parts (M-RoPE)";
	if (reason == NULL)
		return FC_OK;
	return state_error(error, FC_EINVAL, "this model cannot be kept: %s", reason);
}

static int check_opts(const struct fc_llama_opts *opts, struct fc_error *error)
{
	if (opts->size != sizeof(*opts))
		return state_error(error, FC_EINVAL, "options of %zu bytes, not %zu: use fc_llama_opts_init()",
				   opts->size, sizeof(*opts));
	if (opts->context == NULL || opts->params == NULL)
		return state_error(error, FC_EINVAL, "context and params are required");
	if (opts->store == NULL && opts->address == NULL)
		return state_error(error, FC_EINVAL, "neither a store nor an address is given");
	if (opts->block_tokens == 0)
		return state_error(error, FC_EINVAL, "blocks of 0 tokens; at least 1 is needed");
	if (opts->scratch_sequence >= (llama_seq_id)llama_n_seq_max(opts->context))
		return state_error(error, FC_EINVAL, "scratch sequence %d; the context has %u", opts->scratch_sequence,
				   llama_n_seq_max(opts->context));
	if (opts->scratch_sequence >= 0 && !opts->params->kv_unified)
		return state_error(
			error, FC_EINVAL,
			"a scratch sequence is of use only with kv_unified: elsewhere llama.cpp cannot copy a "
			"part of a sequence");
	return check_model(llama_get_model(opts->context), error);
}

/* ---- the shape, asked from the engine ---- */

static int decode_one_token(struct llama_context *context, llama_seq_id sequence, struct fc_error *error)
{
	struct llama_batch batch = llama_batch_init(1, 0, 1);
	if (batch.token == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	batch.n_tokens = 1;
	batch.token[0] = 0;
	batch.pos[0] = 0;
	batch.n_seq_id[0] = 1;
	batch.seq_id[0][0] = sequence;
	batch.logits[0] = 1;
	int result = llama_decode(context, batch);
	llama_batch_free(batch);
	if (result == 0)
		return FC_OK;
	return state_error(error, FC_EINVAL, "the engine cannot decode one token (llama_decode says %d)", result);
}

static int read_shape(struct fc_llama *bridge, llama_seq_id sequence, struct fc_error *error)
{
	struct staging *staging = NULL;
	uint64_t size = llama_state_seq_get_size(bridge->context, sequence);
	int code = staging_take(bridge, size, &staging, error);
	if (code != FC_OK)
		return code;
	if (size == 0 || llama_state_seq_get_data(bridge->context, staging->bytes, size, sequence) != size)
		code = state_error(error, FC_EINVAL, "the engine does not hand out the state of a sequence");
	if (code == FC_OK)
		code = state_probe(&bridge->shape, staging->bytes, size, error);
	staging_give(staging);
	return code;
}

static int probe(struct fc_llama *bridge, struct fc_error *error)
{
	llama_seq_id sequence = bridge->scratch_sequence < 0 ? 0 : bridge->scratch_sequence;
	if (llama_memory_seq_pos_max(bridge->memory, sequence) >= 0)
		return state_error(error, FC_EBUSY,
				   "sequence %d holds tokens; it must be empty, to ask the engine for its KV's shape",
				   sequence);
	int code = decode_one_token(bridge->context, sequence, error);
	if (code == FC_OK)
		code = read_shape(bridge, sequence, error);
	llama_memory_seq_rm(bridge->memory, sequence, -1, -1);
	return code;
}

static int check_types(const struct state_shape *shape, const struct llama_context_params *params,
		       struct fc_error *error)
{
	for (uint32_t layer = 0; layer < shape->layer_count; layer++)
		if (shape->keys[layer].type != (int32_t)params->type_k ||
		    (shape->has_values && shape->values[layer].type != (int32_t)params->type_v))
			return state_error(error, FC_EINVAL,
					   "layer %u: the engine's KV types are %d and %d, those of params %d and %d: "
					   "params must be those that the context was made with",
					   layer, shape->keys[layer].type, shape->values[layer].type,
					   (int)params->type_k, (int)params->type_v);
	return FC_OK;
}

static bool has_equal_rows(const struct state_shape *shape)
{
	for (uint32_t layer = 0; layer < shape->layer_count; layer++)
		if (shape->keys[layer].bytes != shape->values[layer].bytes)
			return false;
	return true;
}

/* A slice is the K rows and then the V rows of a layer's block: two pieces, which the store wants of equal size. Where
 * they differ (K of q8_0, V of f16), K and V are two groups. */
static void geometry_of(const struct state_shape *shape, uint32_t block_tokens, struct fc_geometry *geometry)
{
	bool is_paired = shape->has_values && has_equal_rows(shape);
	*geometry = (struct fc_geometry){.block_tokens = block_tokens, .layer_count = shape->layer_count};
	snprintf(geometry->name, sizeof(geometry->name), "llama.cpp-%u-layers", shape->layer_count);
	geometry->group_count = is_paired || !shape->has_values ? 1 : 2;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		geometry->groups[group].rule = FC_RULE_ALL;
		geometry->groups[group].tokens_per_block = block_tokens;
		for (uint32_t layer = 0; layer < shape->layer_count; layer++) {
			uint64_t row_bytes = (group == 0 ? shape->keys : shape->values)[layer].bytes;
			if (is_paired)
				row_bytes += shape->values[layer].bytes;
			geometry->groups[group].slice_bytes[layer] = row_bytes * block_tokens;
		}
	}
}

/* ---- opening and closing ---- */

static int open_store(struct fc_llama *bridge, const struct fc_llama_opts *opts, struct fc_error *error)
{
	if (opts->store != NULL) {
		bridge->store = opts->store;
		return FC_OK;
	}
	struct fc_store_opts store_opts = opts->store_opts;
	store_opts.geometry = &bridge->geometry;
	int code = fc_store_open(&bridge->store, opts->address, &store_opts, error);
	bridge->owns_store = code == FC_OK;
	return code;
}

int fc_llama_open(struct fc_llama **result, const struct fc_llama_opts *opts, struct fc_error *error)
{
	*result = NULL;
	int code = check_opts(opts, error);
	if (code != FC_OK)
		return code;
	struct fc_llama *bridge = calloc(1, sizeof(*bridge));
	if (bridge == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	bridge->context = opts->context;
	bridge->memory = llama_get_memory(opts->context);
	bridge->scratch_sequence = opts->scratch_sequence;
	code = probe(bridge, error);
	if (code == FC_OK)
		code = check_types(&bridge->shape, opts->params, error);
	if (code == FC_OK) {
		geometry_of(&bridge->shape, opts->block_tokens, &bridge->geometry);
		code = fc_geometry_check(&bridge->geometry, error);
	}
	if (code == FC_OK)
		code = bridge_name(bridge, opts, error);
	if (code == FC_OK)
		code = open_store(bridge, opts, error);
	if (code == FC_OK)
		*result = bridge;
	else
		fc_llama_close(bridge);
	return code;
}

void fc_llama_close(struct fc_llama *bridge)
{
	if (bridge == NULL)
		return;
	if (bridge->owns_store)
		fc_store_close(bridge->store);
	staging_free_all(bridge);
	free(bridge);
}

int bridge_check_sequence(const struct fc_llama *bridge, llama_seq_id sequence, struct fc_error *error)
{
	uint32_t count = llama_n_seq_max(bridge->context);
	if (sequence < 0 || (uint32_t)sequence >= count)
		return state_error(error, FC_EINVAL, "sequence %d; the context has %u, from 0", sequence, count);
	if (sequence == bridge->scratch_sequence)
		return state_error(error, FC_EINVAL, "sequence %d is the scratch sequence", sequence);
	return FC_OK;
}

struct fc_store *fc_llama_store(struct fc_llama *bridge)
{
	return bridge->store;
}

const struct fc_geometry *fc_llama_geometry(const struct fc_llama *bridge)
{
	return &bridge->geometry;
}

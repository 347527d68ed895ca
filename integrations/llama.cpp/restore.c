/* From the store into a sequence.
 *
 * A state of exactly the stored prefix is laid out in memory, everything but its rows is written, and the store loads
 * the blocks straight to where their rows belong in it, layer by layer. Then the engine takes the state as a whole. A
 * prefix that turns out shorter on the way (damage, a reclaim) makes the state smaller before that. */
#include "bridge.h"

#include <stdlib.h>

struct fc_llama_load {
	struct fc_llama *bridge;
	struct staging *staging; /* NULL: nothing is stored */
	struct state_view view;
	struct fc_kv *kv;
	struct fc_load *load;
	size_t token_count;
	size_t matched_tokens;
};

static int match(struct fc_llama *bridge, const struct path *path, uint64_t *tokens)
{
	struct fc_match found = {0};
	int code = path->block_count == 0 ? FC_OK : fc_match(bridge->store, path->keys, path->block_count, &found);
	*tokens = found.tokens;
	return code;
}

int fc_llama_match(struct fc_llama *bridge, const llama_token *tokens, size_t token_count, size_t *stored_tokens)
{
	struct path path;
	uint64_t found = 0;
	int code = path_init(&path, bridge, tokens, token_count, NULL);
	if (code == FC_OK)
		code = match(bridge, &path, &found);
	path_deinit(&path);
	*stored_tokens = found;
	return code;
}

static int submit(struct fc_llama_load *load, const struct path *path, struct fc_error *error)
{
	struct fc_llama *bridge = load->bridge;
	uint64_t size = state_bytes(&bridge->shape, (uint32_t)load->matched_tokens);
	int code = staging_take(bridge, size, &load->staging, error);
	if (code != FC_OK)
		return code;
	state_frame(&bridge->shape, load->staging->bytes, (uint32_t)load->matched_tokens, &load->view);
	code = kv_register(bridge, &load->view, &load->kv, error);
	if (code != FC_OK)
		return code;
	uint64_t block_count = load->matched_tokens / bridge->geometry.block_tokens;
	struct fc_load_opts opts = {
		.keys = path->keys,
		.key_count = path->block_count,
		.blocks_max = block_count,
		.kv = load->kv,
		.is_started_when_ready = true,
	};
	for (uint32_t group = 0; group < bridge->geometry.group_count; group++)
		opts.slots[group] = (struct fc_slots){.count = block_count, .slots = path->slots};
	return fc_load_submit(bridge->store, &opts, &load->load, error);
}

int fc_llama_load_begin(struct fc_llama *bridge, const llama_token *tokens, size_t token_count,
			struct fc_llama_load **result, struct fc_error *error)
{
	*result = NULL;
	if (token_count == 0 || token_count > INT32_MAX)
		return state_error(error, FC_EINVAL, "a prompt of %zu tokens; 1 to %d are allowed", token_count,
				   INT32_MAX);
	struct fc_llama_load *load = calloc(1, sizeof(*load));
	if (load == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	load->bridge = bridge;
	load->token_count = token_count;
	struct path path;
	uint64_t matched_tokens = 0;
	int code =
		path_init(&path, bridge, tokens, token_count - 1, error); /* the last one is decoded for its logits */
	if (code == FC_OK)
		code = match(bridge, &path, &matched_tokens);
	load->matched_tokens = matched_tokens;
	if (code == FC_OK && matched_tokens > 0)
		code = submit(load, &path, error);
	path_deinit(&path);
	if (code == FC_OK)
		*result = load;
	else
		fc_llama_load_cancel(load);
	return code;
}

void fc_llama_load_cancel(struct fc_llama_load *load)
{
	if (load == NULL)
		return;
	fc_load_free(load->load); /* waits: the slots may be touched until then */
	fc_kv_free(load->kv);
	staging_give(load->staging);
	free(load);
}

/* What a sequence holds is replaced as a whole, so this comes last, when every byte is there. */
static int copy_into_engine(struct fc_llama_load *load, llama_seq_id sequence, uint64_t tokens,
			    struct fc_llama_restored *restored, struct fc_error *error)
{
	struct fc_llama *bridge = load->bridge;
	if (tokens < load->view.cell_count)
		state_shrink(&bridge->shape, &load->view, (uint32_t)tokens);
	uint64_t start_ns = now_ns();
	uint64_t size = state_bytes(&bridge->shape, load->view.cell_count);
	size_t taken = llama_state_seq_set_data(bridge->context, load->view.bytes, size, sequence);
	restored->copy_ns = now_ns() - start_ns;
	if (taken == size && llama_memory_seq_pos_max(bridge->memory, sequence) == (llama_pos)tokens - 1)
		return FC_OK;
	llama_memory_seq_rm(bridge->memory, sequence, -1, -1);
	return state_error(error, FC_EFULL, "the engine does not take a state of %llu tokens: no room in its KV memory",
			   (unsigned long long)tokens);
}

static int finish(struct fc_llama_load *load, llama_seq_id sequence, size_t live_tokens,
		  struct fc_llama_restored *restored, struct fc_error *error)
{
	*restored = (struct fc_llama_restored){.matched_tokens = load->matched_tokens};
	int code = bridge_check_sequence(load->bridge, sequence, error);
	if (code != FC_OK)
		return code;
	size_t live = live_tokens < load->token_count ? live_tokens : load->token_count - 1;
	llama_pos held = llama_memory_seq_pos_max(load->bridge->memory, sequence) + 1;
	if (held < (llama_pos)live)
		return state_error(error, FC_EINVAL, "sequence %d holds %d tokens, not %zu", sequence, held, live);
	restored->tokens = live;
	if (load->load != NULL && load->matched_tokens > live) {
		struct fc_load_result result;
		uint64_t start_ns = now_ns();
		code = fc_load_wait(load->load, &result);
		restored->wait_ns = now_ns() - start_ns;
		if (code == FC_OK && result.code != FC_OK)
			code = state_error(error, result.code, "%s", result.error.text);
		for (int medium = 0; medium < FC_MEDIUM_COUNT && code == FC_OK; medium++)
			restored->bytes[medium] = result.bytes[medium];
		if (code == FC_OK && result.tokens > live) {
			code = copy_into_engine(load, sequence, result.tokens, restored, error);
			restored->tokens = restored->restored_tokens = code == FC_OK ? result.tokens : 0;
		}
	}
	restored->tokens_left = load->token_count - restored->tokens;
	llama_memory_seq_rm(load->bridge->memory, sequence, (llama_pos)restored->tokens, -1);
	return code;
}

int fc_llama_load_finish(struct fc_llama_load *load, llama_seq_id sequence, size_t live_tokens,
			 struct fc_llama_restored *restored, struct fc_error *error)
{
	int code = finish(load, sequence, live_tokens, restored, error);
	fc_llama_load_cancel(load);
	return code;
}

int fc_llama_restore(struct fc_llama *bridge, llama_seq_id sequence, const llama_token *tokens, size_t token_count,
		     size_t live_tokens, struct fc_llama_restored *restored, struct fc_error *error)
{
	struct fc_llama_load *load;
	*restored = (struct fc_llama_restored){0};
	int code = fc_llama_load_begin(bridge, tokens, token_count, &load, error);
	return code == FC_OK ? fc_llama_load_finish(load, sequence, live_tokens, restored, error) : code;
}

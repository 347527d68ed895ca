/* From a sequence into the store.
 *
 * llama.cpp hands out the state of a whole sequence. With kv_unified, cells may belong to several sequences, and giving
 * the new ones to a scratch sequence as well costs no copy: its state then is that of the new tokens alone. Without,
 * the whole sequence is copied out, which is still little beside having computed the turn.
 *
 * The store likes to write small segments again together with new ones (consolidation), as long as they are at hand. So
 * some of what is stored already is handed over as well: where only a part is copied out, HISTORY_FACTOR times as much
 * as is new. The store takes in a segment if it is no larger than what it is about to write, so that is enough for the
 * usual two of them; further ones wait for a larger turn. */
#include "bridge.h"

#include <stdlib.h>

#define HISTORY_FACTOR 3

struct fc_llama_saving {
	struct fc_llama *bridge;
	struct staging *staging; /* NULL: nothing to copy */
	struct fc_kv *kv;
	struct fc_save *save; /* NULL: no whole block */
	struct fc_llama_saved saved;
};

/* The state of `sequence` from `first` to `end`, or from 0 to its own end: first_row says which position row 0 is. */
static int copy_out(struct fc_llama_saving *saving, llama_seq_id sequence, llama_pos first, llama_pos end,
		    struct state_view *view, llama_pos *first_row, struct fc_error *error)
{
	struct fc_llama *bridge = saving->bridge;
	llama_seq_id source = bridge->scratch_sequence < 0 ? sequence : bridge->scratch_sequence;
	if (source != sequence) {
		llama_memory_seq_rm(bridge->memory, source, -1, -1);
		llama_memory_seq_cp(bridge->memory, sequence, source, first, end);
	}
	*first_row = source == sequence ? 0 : first;
	uint64_t size = llama_state_seq_get_size(bridge->context, source);
	int code = staging_take(bridge, size, &saving->staging, error);
	if (code == FC_OK && llama_state_seq_get_data(bridge->context, saving->staging->bytes, size, source) != size)
		code = state_error(error, FC_EINVAL, "the engine does not hand out the state of sequence %d", sequence);
	if (source != sequence)
		llama_memory_seq_rm(bridge->memory, source, -1, -1);
	if (code == FC_OK)
		code = state_open(&bridge->shape, saving->staging->bytes, size, view, error);
	saving->saved.bytes_copied = size;
	return code;
}

/* Cells that were taken where room was left lie in the order of the engine's memory, not of positions. */
static int put_in_order(struct fc_llama_saving *saving, struct state_view *view, llama_pos first_row, llama_pos end,
			struct fc_error *error)
{
	struct fc_llama *bridge = saving->bridge;
	if (view->cell_count >= (uint32_t)(end - first_row) && state_is_in_order(view, (uint32_t)first_row))
		return FC_OK;
	struct staging *sorted = NULL;
	struct state_view sorted_view;
	int code = staging_take(bridge, state_bytes(&bridge->shape, view->cell_count), &sorted, error);
	if (code != FC_OK)
		return code;
	state_frame(&bridge->shape, sorted->bytes, view->cell_count, &sorted_view);
	code = state_sort(&bridge->shape, view, (uint32_t)first_row, &sorted_view, error);
	if (code == FC_OK && sorted_view.cell_count < (uint32_t)(end - first_row))
		code = state_error(error, FC_EINVAL,
				   "the engine's sequence holds %u tokens from position %d on, not %d",
				   sorted_view.cell_count, first_row, end - first_row);
	staging_give(saving->staging);
	saving->staging = sorted;
	*view = sorted_view;
	return code;
}

static int submit(struct fc_llama_saving *saving, const struct fc_llama_turn *turn, const struct path *path,
		  uint64_t first_block, struct fc_error *error)
{
	struct fc_llama *bridge = saving->bridge;
	struct fc_save_opts opts = {
		.session = turn->session,
		.keys = path->keys,
		.key_count = path->block_count,
		.shared_blocks = turn->shared_tokens / bridge->geometry.block_tokens,
		.turn = turn->turn,
		.previous_reply_tokens = turn->previous_reply_tokens,
		.kv = saving->kv,
	};
	for (uint32_t group = 0; group < bridge->geometry.group_count; group++)
		opts.slots[group] = (struct fc_slots){
			.first_block = first_block, .count = path->block_count - first_block, .slots = path->slots};
	return fc_save_submit(bridge->store, &opts, &saving->save, error);
}

/* The first block that is copied out. */
static uint64_t first_wanted(const struct fc_llama *bridge, uint64_t stored_blocks, uint64_t block_count)
{
	uint64_t wanted = (block_count - stored_blocks) * HISTORY_FACTOR;
	if (bridge->scratch_sequence < 0 || wanted >= stored_blocks)
		return 0;
	return stored_blocks - wanted;
}

static int begin(struct fc_llama_saving *saving, const struct fc_llama_turn *turn, const struct path *path,
		 struct fc_error *error)
{
	struct fc_llama *bridge = saving->bridge;
	llama_pos block_tokens = (llama_pos)bridge->geometry.block_tokens;
	struct fc_match found;
	int code = fc_match(bridge->store, path->keys, path->block_count, &found);
	if (code != FC_OK)
		return state_error(error, code, "match: %s", fc_code_text(code));
	uint64_t first_block = first_wanted(bridge, found.stored_blocks, path->block_count);
	llama_pos first_row, end = (llama_pos)path->block_count * block_tokens;
	struct state_view view;
	uint64_t start_ns = now_ns();
	code = copy_out(saving, turn->sequence, (llama_pos)first_block * block_tokens, end, &view, &first_row, error);
	if (code == FC_OK)
		code = put_in_order(saving, &view, first_row, end, error);
	saving->saved.copy_ns = now_ns() - start_ns;
	if (code == FC_OK)
		code = kv_register(bridge, &view, &saving->kv, error);
	return code == FC_OK ? submit(saving, turn, path, (uint64_t)(first_row / block_tokens), error) : code;
}

static void saving_free(struct fc_llama_saving *saving)
{
	fc_save_free(saving->save);
	fc_kv_free(saving->kv);
	staging_give(saving->staging);
	free(saving);
}

int fc_llama_save_begin(struct fc_llama *bridge, const struct fc_llama_turn *turn, struct fc_llama_saving **result,
			struct fc_error *error)
{
	*result = NULL;
	if (turn->token_count > INT32_MAX || turn->shared_tokens > turn->token_count)
		return state_error(error, FC_EINVAL, "a turn of %zu tokens, %zu of them shared", turn->token_count,
				   turn->shared_tokens);
	int code = bridge_check_sequence(bridge, turn->sequence, error);
	if (code != FC_OK)
		return code;
	struct fc_llama_saving *saving = calloc(1, sizeof(*saving));
	if (saving == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	saving->bridge = bridge;
	struct path path;
	code = path_init(&path, bridge, turn->tokens, turn->token_count, error);
	saving->saved.stored_tokens = path.block_count * bridge->geometry.block_tokens;
	if (code == FC_OK && path.block_count > 0)
		code = begin(saving, turn, &path, error);
	path_deinit(&path);
	if (code == FC_OK)
		*result = saving;
	else
		saving_free(saving);
	return code;
}

int fc_llama_save_finish(struct fc_llama_saving *saving, bool until_durable, struct fc_llama_saved *saved,
			 struct fc_error *error)
{
	int code = FC_OK;
	if (saving->save != NULL) {
		struct fc_save_result result = {0};
		uint64_t start_ns = now_ns();
		code = fc_save_wait(saving->save, until_durable, &result);
		saving->saved.wait_ns = now_ns() - start_ns;
		if (code == FC_OK && result.code != FC_OK)
			code = state_error(error, result.code, "%s", result.error.text);
		saving->saved.blocks_new = result.blocks_new;
		for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
			saving->saved.bytes_written[medium] = result.bytes_written[medium];
		saving->saved.is_durable = result.is_durable;
	}
	*saved = saving->saved;
	if (code != FC_OK)
		saved->stored_tokens = 0;
	saving_free(saving);
	return code;
}

int fc_llama_save(struct fc_llama *bridge, const struct fc_llama_turn *turn, bool until_durable,
		  struct fc_llama_saved *saved, struct fc_error *error)
{
	struct fc_llama_saving *saving;
	*saved = (struct fc_llama_saved){0};
	int code = fc_llama_save_begin(bridge, turn, &saving, error);
	return code == FC_OK ? fc_llama_save_finish(saving, until_durable, saved, error) : code;
}

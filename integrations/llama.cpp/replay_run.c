/* One run: all turns in order through one system, with slots (sequences) that sessions take from each other. */
#include "replay.h"

#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define NOBODY UINT32_MAX

struct slot {
	uint32_t session;
	llama_token *tokens; /* what its sequence holds */
	size_t token_count;
	uint64_t used_at;
};

struct run {
	struct system *system;
	const struct replay_input *input;
	struct slot *slots;
	uint32_t slot_count;
	struct slot *histories; /* of all sessions, as the turns go on */
	size_t room;            /* tokens of each of those lists */
	llama_token *prompt;
	struct run_result *result;
};

static int lists_new(struct slot **lists, uint32_t count, size_t room)
{
	*lists = calloc(count, sizeof(**lists));
	for (uint32_t i = 0; *lists != NULL && i < count; i++) {
		(*lists)[i].session = NOBODY;
		(*lists)[i].tokens = calloc(room, sizeof(llama_token));
		if ((*lists)[i].tokens == NULL)
			return FC_ENOMEM;
	}
	return *lists == NULL ? FC_ENOMEM : FC_OK;
}

static void lists_free(struct slot *lists, uint32_t count)
{
	for (uint32_t i = 0; lists != NULL && i < count; i++)
		free(lists[i].tokens);
	free(lists);
}

static struct slot *slot_of(struct run *run, uint32_t session)
{
	struct slot *oldest = &run->slots[0];
	for (uint32_t i = 0; i < run->slot_count; i++) {
		if (run->slots[i].session == session)
			return &run->slots[i];
		if (run->slots[i].used_at < oldest->used_at)
			oldest = &run->slots[i];
	}
	return oldest;
}

static size_t make_prompt(struct run *run, const struct replay_turn *turn, llama_token *prompt)
{
	const struct slot *history = &run->histories[turn->session];
	size_t held = turn->is_added ? history->token_count : 0;
	memcpy(prompt, history->tokens, held * sizeof(*prompt));
	memcpy(prompt + held, turn->tokens, turn->token_count * sizeof(*prompt));
	return held + turn->token_count;
}

static size_t equal_blocks(const struct slot *slot, const llama_token *prompt, size_t count, size_t block)
{
	size_t equal = 0;
	while (equal < slot->token_count && equal < count - 1 && slot->tokens[equal] == prompt[equal])
		equal++;
	return equal / block * block;
}

/* Without limits, a session may also begin with what any other holds. Engines with separate streams copy whole
 * sequences. */
static size_t copy_from_others(struct run *run, struct slot *slot, size_t count)
{
	struct engine *engine = run->system->engine;
	size_t block = run->system->opts->block, best = equal_blocks(slot, run->prompt, count, block);
	struct slot *from = NULL;
	for (uint32_t i = 0; i < run->slot_count; i++) {
		size_t equal = equal_blocks(&run->slots[i], run->prompt, count, block);
		if (equal > best) {
			best = equal;
			from = &run->slots[i];
		}
	}
	if (from != NULL)
		llama_memory_seq_cp(engine->memory, (llama_seq_id)(from - run->slots),
				    (llama_seq_id)(slot - run->slots), -1, -1);
	return best;
}

static int say(struct run *run, llama_seq_id sequence, bool is_first, size_t start, size_t *count,
	       struct turn_result *found, uint64_t begun_ns, struct fc_error *error)
{
	struct engine *engine = run->system->engine;
	const float *logits;
	int code = engine_decode(engine, sequence, run->prompt, start, *count, &logits, error);
	if (code != FC_OK)
		return code;
	found->reply[0] = engine_best(engine, logits);
	fc_histogram_add(is_first ? &run->result->first_turn : &run->result->first_token, replay_now_ns() - begun_ns);
	found->logits_hash = XXH3_64bits(logits, engine->vocab_count * sizeof(*logits));
	for (uint64_t i = 0; i < engine->opts->reply && code == FC_OK; i++) {
		run->prompt[*count] = found->reply[i];
		code = engine_decode(engine, sequence, run->prompt, *count, *count + 1, &logits, error);
		*count += 1;
		if (code == FC_OK && i + 1 < engine->opts->reply)
			found->reply[i + 1] = engine_best(engine, logits);
	}
	return code;
}

/* What a trace's session says next is in the trace; the reply that was generated here is only compared. */
static int keep(struct run *run, const struct replay_turn *turn, struct slot *slot, size_t prompt_count, size_t count,
		struct fc_error *error)
{
	llama_seq_id sequence = (llama_seq_id)(slot - run->slots);
	size_t kept = turn->is_added ? count : prompt_count;
	struct slot *history = &run->histories[turn->session];
	llama_memory_seq_rm(run->system->engine->memory, sequence, (llama_pos)kept, -1);
	memcpy(slot->tokens, run->prompt, kept * sizeof(*slot->tokens));
	memcpy(history->tokens, run->prompt, kept * sizeof(*slot->tokens));
	slot->token_count = history->token_count = kept;
	uint64_t begun_ns = replay_now_ns();
	int code = system_save(run->system, turn, sequence, slot->tokens, kept, error);
	fc_histogram_add(&run->result->save, replay_now_ns() - begun_ns);
	return code;
}

static int look_ahead(struct run *run, size_t next, uint32_t session, llama_token *prompt, struct fc_error *error)
{
	if (next >= run->input->turn_count || run->input->turns[next].session == session)
		return FC_OK;
	const struct replay_turn *turn = &run->input->turns[next];
	if (slot_of(run, turn->session)->session == turn->session)
		return FC_OK;
	return system_look_ahead(run->system, prompt, make_prompt(run, turn, prompt), error);
}

static int take_turn(struct run *run, size_t index, struct turn_result *found, struct fc_error *error)
{
	const struct replay_turn *turn = &run->input->turns[index];
	struct slot *slot = slot_of(run, turn->session);
	llama_seq_id sequence = (llama_seq_id)(slot - run->slots);
	size_t block = run->system->opts->block, prompt_count = make_prompt(run, turn, run->prompt), start;
	uint64_t begun_ns = replay_now_ns();
	if (slot->session != turn->session)
		slot->token_count = 0;
	slot->session = turn->session;
	slot->used_at = index + 1;
	size_t live = run->system->kind == SYSTEM_UNLIMITED ? copy_from_others(run, slot, prompt_count)
							    : equal_blocks(slot, run->prompt, prompt_count, block);
	int code = system_restore(run->system, turn->session, sequence, run->prompt, prompt_count, live, &start, error);
	if (code != FC_OK)
		return code;
	if (turn->number > 0)
		fc_histogram_add(&run->result->restore, replay_now_ns() - begun_ns);
	run->result->prompt_tokens += prompt_count;
	run->result->computed_tokens += prompt_count - start;
	run->result->live_tokens += start == live ? live : 0;
	run->result->restored_tokens += start == live ? 0 : start;
	code = look_ahead(run, index + 1, turn->session, run->prompt + run->room, error);
	size_t count = prompt_count;
	if (code == FC_OK)
		code = say(run, sequence, turn->number == 0, start, &count, found, begun_ns, error);
	return code == FC_OK ? keep(run, turn, slot, prompt_count, count, error) : code;
}

static void compare(struct run_result *result, const struct turn_result *expected, const struct turn_result *found,
		    uint64_t reply)
{
	if (expected == NULL)
		return;
	size_t bytes = (reply == 0 ? 1 : reply) * sizeof(*found->reply);
	result->bits_equal += expected->logits_hash == found->logits_hash;
	result->reply_equal += memcmp(expected->reply, found->reply, bytes) == 0;
}

static int run_turns(struct run *run, const struct turn_result *expected, struct turn_result *found,
		     struct fc_error *error)
{
	struct fc_progress progress;
	int code = FC_OK;
	uint64_t begun_ns = replay_now_ns();
	fc_progress_init(&progress, stderr, fc_clock_real(), system_name(run->system->kind), run->input->turn_count);
	for (size_t i = 0; i < run->input->turn_count && code == FC_OK; i++) {
		code = take_turn(run, i, &found[i], error);
		if (code == FC_OK)
			compare(run->result, expected == NULL ? NULL : &expected[i], &found[i],
				run->system->opts->reply);
		run->result->turns += code == FC_OK;
		fc_progress_set(&progress, i + 1);
	}
	if (code == FC_OK)
		code = system_settle(run->system, error);
	fc_progress_deinit(&progress);
	run->result->time_ns = replay_now_ns() - begun_ns;
	run->result->bytes_written = run->system->bytes_written;
	run->result->is_done = code == FC_OK;
	return code;
}

int replay_run(struct system *system, const struct replay_input *input, uint32_t slot_count,
	       const struct turn_result *expected, struct turn_result *found, struct run_result *result,
	       struct fc_error *error)
{
	memset(result, 0, sizeof(*result));
	struct run run = {.system = system,
			  .input = input,
			  .slot_count = slot_count,
			  .room = input->history_max + system->opts->reply + 1,
			  .result = result};
	run.prompt = calloc(2 * run.room, sizeof(*run.prompt)); /* this turn's and the next one's */
	int code = run.prompt == NULL ? FC_ENOMEM : lists_new(&run.slots, slot_count, run.room);
	if (code == FC_OK)
		code = lists_new(&run.histories, input->session_count, run.room);
	if (code != FC_OK)
		fc_error_set(error, code, "%s", fc_code_text(code));
	else
		code = run_turns(&run, expected, found, error);
	lists_free(run.slots, slot_count);
	lists_free(run.histories, input->session_count);
	free(run.prompt);
	return code;
}

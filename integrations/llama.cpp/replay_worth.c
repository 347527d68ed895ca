/* Time to first token by the length of the history.
 *
 * A session of so many tokens is stored in every system; then it is forgotten and wanted again, with as many new tokens
 * as recorded agent sessions bring: 4,500 for 123,450 of input, 3.6 %. Systems take turns, so that a slow minute of the
 * machine hits all of them; medians are reported. */
#include "replay.h"

#include <stdlib.h>

#define NEW_TOKENS_SHARE 0.0365
#define NEW_TOKENS_MIN 16

struct worth {
	struct engine *engine;
	const struct replay_opts *opts;
	struct system systems[SYSTEM_COUNT];
	bool is_open[SYSTEM_COUNT];
	llama_token *tokens;
	uint64_t *samples[SYSTEM_COUNT][2]; /* to the first token; of them until all was restored */
};

static uint64_t new_tokens(uint64_t history)
{
	uint64_t share = (uint64_t)((double)history * NEW_TOKENS_SHARE);
	return share < NEW_TOKENS_MIN ? NEW_TOKENS_MIN : share;
}

static bool is_measured(const struct replay_opts *opts, int kind)
{
	return opts->is_run[kind] && kind != SYSTEM_UNLIMITED && kind != SYSTEM_SSD_AHEAD;
}

/* Another text for each length, so that none finds what another stored. */
static void make_tokens(struct worth *worth, uint64_t seed, uint64_t count)
{
	const struct llama_vocab *vocab = llama_model_get_vocab(worth->engine->model);
	uint64_t state = seed;
	for (uint64_t i = 0; i < count; i++) {
		do {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			worth->tokens[i] = (llama_token)((state >> 33) % worth->engine->vocab_count);
		} while (llama_vocab_is_control(vocab, worth->tokens[i]));
	}
}

static int store(struct worth *worth, uint32_t session, uint64_t history, struct fc_error *error)
{
	const float *logits;
	struct replay_turn turn = {.session = session};
	llama_memory_seq_rm(worth->engine->memory, 0, -1, -1);
	int code = engine_decode(worth->engine, 0, worth->tokens, 0, history, &logits, error);
	for (int kind = 0; kind < SYSTEM_COUNT && code == FC_OK; kind++) {
		if (!worth->is_open[kind])
			continue;
		code = system_save(&worth->systems[kind], &turn, 0, worth->tokens, history, error);
		if (code == FC_OK)
			code = system_settle(&worth->systems[kind], error);
	}
	return code;
}

static int want_again(struct worth *worth, int kind, uint32_t session, uint64_t history, uint64_t repetition,
		      struct fc_error *error)
{
	const float *logits;
	size_t start, count = history + new_tokens(history);
	llama_memory_seq_rm(worth->engine->memory, 0, -1, -1);
	int code = system_cool(&worth->systems[kind], session, error);
	uint64_t begun_ns = replay_now_ns();
	if (code == FC_OK)
		code = system_restore(&worth->systems[kind], session, 0, worth->tokens, count, 0, &start, error);
	uint64_t restored_ns = replay_now_ns() - begun_ns;
	if (code == FC_OK)
		code = engine_decode(worth->engine, 0, worth->tokens, start, count, &logits, error);
	worth->samples[kind][0][repetition] = replay_now_ns() - begun_ns;
	worth->samples[kind][1][repetition] = restored_ns;
	if (code == FC_OK && kind != SYSTEM_RECOMPUTE && start != history / worth->opts->block * worth->opts->block)
		code = fc_error_set(error, FC_EFULL, "--worth: %s kept %zu of %llu tokens; it needs more room",
				    system_name((enum system_kind)kind), start, (unsigned long long)history);
	return code;
}

static int compare_ns(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

static uint64_t median(uint64_t *samples, uint64_t count)
{
	qsort(samples, count, sizeof(*samples), compare_ns);
	return samples[count / 2];
}

static int measure_length(struct worth *worth, uint32_t session, struct worth_row *row, struct fc_error *error)
{
	make_tokens(worth, session + 1, row->history + new_tokens(row->history));
	int code = store(worth, session, row->history, error);
	for (uint64_t repetition = 0; repetition < worth->opts->repeat; repetition++)
		for (int kind = 0; kind < SYSTEM_COUNT && code == FC_OK; kind++)
			if (worth->is_open[kind])
				code = want_again(worth, kind, session, row->history, repetition, error);
	for (int kind = 0; kind < SYSTEM_COUNT && code == FC_OK; kind++) {
		if (!worth->is_open[kind])
			continue;
		row->first_token_ns[kind] = median(worth->samples[kind][0], worth->opts->repeat);
		row->restore_ns[kind] = median(worth->samples[kind][1], worth->opts->repeat);
	}
	return code;
}

static int open_systems(struct worth *worth, const char *folder, struct fc_error *error)
{
	int code = FC_OK;
	for (int kind = 0; kind < SYSTEM_COUNT && code == FC_OK; kind++) {
		if (!is_measured(worth->opts, kind))
			continue;
		for (int i = 0; i < 2; i++)
			worth->samples[kind][i] = calloc(worth->opts->repeat, sizeof(uint64_t));
		if (worth->samples[kind][0] == NULL || worth->samples[kind][1] == NULL)
			return fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
		code = system_open(&worth->systems[kind], (enum system_kind)kind, worth->engine, worth->opts, folder,
				   error);
		worth->is_open[kind] = code == FC_OK;
	}
	return code;
}

static void close_systems(struct worth *worth)
{
	for (int kind = 0; kind < SYSTEM_COUNT; kind++) {
		if (worth->is_open[kind])
			system_close(&worth->systems[kind]);
		free(worth->samples[kind][0]);
		free(worth->samples[kind][1]);
	}
	free(worth->tokens);
}

int replay_worth(struct engine *engine, const struct replay_opts *opts, const char *folder, struct worth_row *rows,
		 struct fc_error *error)
{
	struct worth worth = {.engine = engine, .opts = opts};
	uint64_t longest = 0;
	for (size_t i = 0; i < opts->length_count; i++)
		longest = opts->lengths[i] > longest ? opts->lengths[i] : longest;
	uint64_t room = longest + new_tokens(longest);
	worth.tokens = calloc(room, sizeof(*worth.tokens));
	int code = worth.tokens == NULL ? fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM))
					: engine_start(engine, 1, (room + 255) / 256 * 256, error);
	if (code == FC_OK)
		code = open_systems(&worth, folder, error);
	for (size_t i = 0; i < opts->length_count && code == FC_OK; i++) {
		rows[i] = (struct worth_row){.history = opts->lengths[i]};
		code = measure_length(&worth, (uint32_t)i, &rows[i], error);
	}
	close_systems(&worth);
	engine_stop(engine);
	return code;
}

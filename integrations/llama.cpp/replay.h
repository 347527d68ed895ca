/* flatcake-llama-replay: many agent sessions through one llama.cpp context whose KV memory holds few of them.
 *
 * The same turns run through several systems, one after another, which differ only in where a session's KV comes from
 * when it is wanted again:
 *
 *   unlimited       nothing is ever forgotten: a KV memory for all sessions; what the others are compared with
 *   recompute       what was forgotten is computed again
 *   file            llama.cpp's own files: a whole sequence written after each turn, read when the session comes back
 *   file-cold       the same, and the files are taken out of the page cache, as they are once they outgrow it
 *   memory, ssd     FlatCake, with all of the store in memory or on SSD
 *   ssd-ahead       as ssd, and the load of the next turn runs while this one is computed
 *
 * Every system starts to compute at a whole block, so that batches have the same shapes wherever the same prefix was at
 * hand, and logits can be compared bit for bit.
 *
 *   replay.c          options, and the runs in order
 *   replay_input.c    turns, from traces or texts
 *   replay_engine.c   model, context, decoding
 *   replay_system.c   the systems
 *   replay_run.c      one run, and what it measured
 *   replay_worth.c    time to first token by the length of the history
 *   replay_report.c   table, JSON, plot */
#ifndef FLATCAKE_LLAMA_REPLAY_H
#define FLATCAKE_LLAMA_REPLAY_H

#include "flatcake-llama.h"

#include "base/error.h"
#include "base/histogram.h"

#include <stdio.h>

#define REPLAY_PATHS_MAX 64
#define REPLAY_REPLY_MAX 64
#define REPLAY_LENGTHS_MAX 16

enum system_kind {
	SYSTEM_UNLIMITED,
	SYSTEM_RECOMPUTE,
	SYSTEM_FILE,
	SYSTEM_FILE_COLD,
	SYSTEM_MEMORY,
	SYSTEM_SSD,
	SYSTEM_SSD_AHEAD,
	SYSTEM_COUNT,
};

struct replay_opts {
	const char *model;
	const char *traces[REPLAY_PATHS_MAX], *texts[REPLAY_PATHS_MAX];
	size_t trace_count, text_count;
	const char *folder, *json, *svg, *libraries;
	uint64_t sessions, turns, history, kv_tokens, slots, reply, block, batch, threads, seed;
	uint64_t memory_bytes, ssd_bytes;
	enum ggml_type type_k, type_v;
	bool is_run[SYSTEM_COUNT];
	uint64_t lengths[REPLAY_LENGTHS_MAX]; /* --worth */
	size_t length_count;
	uint64_t repeat;
};

const char *system_name(enum system_kind kind);
const char *system_title(enum system_kind kind);

/* ---- turns ---- */

/* Of a trace: the whole prompt. Of a text: what is added to the history, replies included. */
struct replay_turn {
	uint32_t session;
	uint32_t number; /* in its session, from 0 */
	bool is_added;
	llama_token *tokens;
	size_t token_count;
	size_t shared_tokens;
};

struct replay_input {
	struct replay_turn *turns;
	size_t turn_count;
	uint32_t session_count;
	size_t history_max;   /* tokens of the longest prompt, with replies */
	size_t skipped_count; /* paragraphs that did not fit --history */
	double scale;         /* tokens of a trace that one of ours stands for */
	char source[128];
};

int replay_input_init(struct replay_input *input, const struct replay_opts *opts, const struct llama_vocab *vocab,
		      struct fc_error *error);
void replay_input_deinit(struct replay_input *input);

/* ---- engine ---- */

struct engine {
	struct llama_model *model;
	struct llama_context *context;
	llama_memory_t memory;
	struct llama_context_params params;
	size_t vocab_count;
	struct llama_batch batch;
	const struct replay_opts *opts;
};

int engine_load(struct engine *engine, const struct replay_opts *opts, struct fc_error *error);
int engine_start(struct engine *engine, uint32_t sequences, uint64_t tokens_per_sequence, struct fc_error *error);
void engine_stop(struct engine *engine);
void engine_free(struct engine *engine);

/* Decodes tokens [from, to) in batches counted from `from`; the logits are those of the last, until the next call. */
int engine_decode(struct engine *engine, llama_seq_id sequence, const llama_token *tokens, size_t from, size_t to,
		  const float **logits, struct fc_error *error);
llama_token engine_best(const struct engine *engine, const float *logits);
uint64_t replay_now_ns(void);

/* ---- systems ---- */

struct system {
	enum system_kind kind;
	struct engine *engine;
	const struct replay_opts *opts;
	struct fc_llama *bridge;        /* FlatCake's systems */
	struct fc_llama_saving *saving; /* under way */
	struct fc_llama_load *ahead;    /* for the next turn */
	char folder[512];
	uint64_t bytes_written;
};

int system_open(struct system *system, enum system_kind kind, struct engine *engine, const struct replay_opts *opts,
		const char *folder, struct fc_error *error);
void system_close(struct system *system);

/* Brings `prompt`'s prefix back into an engine's sequence, which holds `live` tokens of it (whole blocks) and maybe
 * others behind. Afterwards it holds exactly [0, *start). */
int system_restore(struct system *system, uint32_t session, llama_seq_id sequence, const llama_token *prompt,
		   size_t count, size_t live, size_t *start, struct fc_error *error);
int system_save(struct system *system, const struct replay_turn *turn, llama_seq_id sequence, const llama_token *tokens,
		size_t count, struct fc_error *error);
/* The next prompt, when it is known and its session's KV will have to be loaded. */
int system_look_ahead(struct system *system, const llama_token *prompt, size_t count, struct fc_error *error);
/* Once more as after a save: a file of file-cold that was read is taken out of the page cache again. */
int system_cool(struct system *system, uint32_t session, struct fc_error *error);
/* Until nothing is under way. */
int system_settle(struct system *system, struct fc_error *error);

/* ---- a run ---- */

struct turn_result {
	uint64_t logits_hash; /* of the first token */
	llama_token reply[REPLAY_REPLY_MAX];
};

struct run_result {
	bool is_done;
	/* Nanoseconds. A session's first turn, which has nothing to come back to, is apart. */
	struct fc_histogram first_turn, first_token, restore, save;
	uint64_t prompt_tokens, computed_tokens, live_tokens, restored_tokens;
	uint64_t bits_equal, reply_equal, turns;
	uint64_t bytes_written;
	uint64_t time_ns;
};

/* `expected` may be NULL; `found` has an entry for every turn. */
int replay_run(struct system *system, const struct replay_input *input, uint32_t slot_count,
	       const struct turn_result *expected, struct turn_result *found, struct run_result *result,
	       struct fc_error *error);

/* ---- by length ---- */

struct worth_row {
	uint64_t history;
	uint64_t first_token_ns[SYSTEM_COUNT]; /* medians; 0: not measured */
	uint64_t restore_ns[SYSTEM_COUNT];
};

int replay_worth(struct engine *engine, const struct replay_opts *opts, const char *folder, struct worth_row *rows,
		 struct fc_error *error);

/* ---- reports ---- */

void replay_print_run(const struct replay_opts *opts, const struct replay_input *input,
		      const struct run_result results[SYSTEM_COUNT]);
void replay_print_worth(const struct replay_opts *opts, const struct worth_row *rows);
int replay_write_json(const struct replay_opts *opts, const struct replay_input *input,
		      const struct run_result *results, const struct worth_row *rows, struct fc_error *error);
int replay_write_svg(const struct replay_opts *opts, const struct worth_row *rows, struct fc_error *error);

#endif

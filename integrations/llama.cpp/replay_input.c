/* Turns from traces, from texts, or made up.
 *
 * A trace names blocks by ids. Each id becomes a few tokens that follow from it alone (or a few ids one token), so
 * equal prefixes stay equal; how many, is chosen so that the longest prompt fits --history: the shape of the sessions
 * is kept, their size is scaled to the model. A text file is one session: paragraphs, separated by empty lines, are
 * what the user says turn by turn; the model's replies stay in the history. */
#include "replay.h"

#include "base/random.h"
#include "trace/generate.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct fc_error *error)
{
	return fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
}

/* ---- traces ---- */

static int load_trace(const struct replay_opts *opts, struct fc_trace **trace, struct fc_error *error)
{
	struct fc_trace_opts trace_opts;
	fc_trace_opts_init(&trace_opts);
	trace_opts.include_subagents = false;
	trace_opts.limit = opts->sessions;
	trace_opts.seed = opts->seed;
	if (opts->trace_count > 0)
		return fc_trace_load(opts->traces, opts->trace_count, &trace_opts, trace, error);
	struct fc_generate_opts generate;
	fc_generate_opts_init(&generate);
	generate.seed = opts->seed;
	generate.session_count = (uint32_t)opts->sessions;
	return fc_trace_generate(&generate, &trace_opts, trace, error);
}

static bool is_taken(const struct replay_opts *opts, const struct fc_trace_request *request)
{
	return request->session != FC_TRACE_NONE && request->turn < opts->turns && fc_trace_id_count(request) > 0;
}

/* How blocks of the trace become tokens: so many of them become so many tokens. */
struct scale {
	uint64_t blocks, tokens;
};

/* As many tokens a block as let the longest prompt fit, at most what a block had; else a token for several blocks. */
static struct scale scale_of(const struct fc_trace *trace, const struct replay_opts *opts)
{
	uint64_t most = 1;
	for (uint32_t i = 0; i < trace->request_count; i++)
		if (is_taken(opts, &trace->requests[i]) && fc_trace_id_count(&trace->requests[i]) > most)
			most = fc_trace_id_count(&trace->requests[i]);
	if (most > opts->history)
		return (struct scale){.blocks = (most + opts->history - 1) / opts->history, .tokens = 1};
	uint64_t fitting = opts->history / most;
	return (struct scale){.blocks = 1, .tokens = fitting < trace->block_tokens ? fitting : trace->block_tokens};
}

/* Any token that is text. */
static llama_token token_of(const struct llama_vocab *vocab, uint64_t state)
{
	llama_token token;
	do {
		token = (llama_token)(fc_random_split(&state) % (uint64_t)llama_vocab_n_tokens(vocab));
	} while (llama_vocab_is_control(vocab, token) || llama_vocab_is_eog(vocab, token));
	return token;
}

static int fill_turn(struct replay_turn *turn, const uint64_t *ids, uint64_t id_count, struct scale scale,
		     const struct llama_vocab *vocab, struct fc_error *error)
{
	uint64_t group_count = id_count / scale.blocks;
	turn->token_count = group_count * scale.tokens;
	turn->tokens = calloc(turn->token_count + 1, sizeof(*turn->tokens));
	if (turn->tokens == NULL)
		return no_memory(error);
	for (uint64_t i = 0; i < group_count; i++) {
		uint64_t mixed = 0;
		for (uint64_t k = 0; k < scale.blocks; k++) {
			mixed ^= ids[i * scale.blocks + k];
			mixed = fc_random_split(&mixed);
		}
		for (uint64_t k = 0; k < scale.tokens; k++)
			turn->tokens[i * scale.tokens + k] = token_of(vocab, mixed + k);
	}
	return FC_OK;
}

static int take_requests(struct replay_input *input, const struct fc_trace *trace, const struct replay_opts *opts,
			 const struct llama_vocab *vocab, struct fc_error *error)
{
	struct fc_trace_lists *lists;
	struct scale scale = scale_of(trace, opts);
	int code = fc_trace_lists_new(trace, &lists);
	if (code != FC_OK)
		return no_memory(error);
	for (uint32_t i = 0; i < trace->request_count && code == FC_OK; i++) {
		const struct fc_trace_request *request = &trace->requests[i];
		const uint64_t *ids;
		uint64_t id_count;
		if (!is_taken(opts, request) || fc_trace_id_count(request) < scale.blocks)
			continue;
		struct replay_turn *turn = &input->turns[input->turn_count];
		*turn = (struct replay_turn){
			.session = request->session,
			.number = request->turn,
			.shared_tokens = request->shared_tokens / trace->block_tokens / scale.blocks * scale.tokens,
		};
		code = fc_trace_lists_get(lists, i, &ids, &id_count);
		if (code == FC_OK)
			code = fill_turn(turn, ids, id_count, scale, vocab, error);
		if (code == FC_OK)
			input->turn_count++;
	}
	fc_trace_lists_free(lists);
	input->scale = (double)(scale.blocks * trace->block_tokens) / (double)scale.tokens;
	return code;
}

static int read_traces(struct replay_input *input, const struct replay_opts *opts, const struct llama_vocab *vocab,
		       struct fc_error *error)
{
	struct fc_trace *trace;
	int code = load_trace(opts, &trace, error);
	if (code != FC_OK)
		return code;
	if (trace->session_count == 0)
		code = fc_error_set(error, FC_EINVAL, "--trace: this trace does not name sessions");
	input->session_count = trace->session_count;
	input->turns = calloc((size_t)trace->request_count + 1, sizeof(*input->turns));
	if (code == FC_OK && input->turns == NULL)
		code = no_memory(error);
	if (code == FC_OK)
		code = take_requests(input, trace, opts, vocab, error);
	snprintf(input->source, sizeof(input->source), "%s",
		 opts->trace_count > 0 ? opts->traces[0] : "a generated agent trace");
	fc_trace_free(trace);
	return code;
}

/* ---- texts ---- */

static int read_file(const char *path, char **text, struct fc_error *error)
{
	FILE *file = fopen(path, "rb");
	size_t room = 0, used = 0;
	*text = NULL;
	while (file != NULL && !feof(file) && !ferror(file)) {
		char *grown = realloc(*text, room = room * 2 + 65536);
		if (grown == NULL)
			break;
		*text = grown;
		used += fread(*text + used, 1, room - used - 1, file);
		(*text)[used] = '\0';
	}
	bool is_read = file != NULL && !ferror(file) && feof(file);
	int reason = errno;
	if (file != NULL)
		fclose(file);
	if (is_read && strlen(*text) == used)
		return FC_OK;
	free(*text);
	*text = NULL;
	return is_read ? fc_error_set(error, FC_EINVAL, "--text: %s holds zero bytes: it is no text", path)
		       : fc_error_set(error, FC_ESYSTEM, "--text: %s: %s", path, strerror(reason));
}

static int add_paragraph(struct replay_input *input, uint32_t session, uint32_t number, const char *text, size_t bytes,
			 const struct llama_vocab *vocab, struct fc_error *error)
{
	struct replay_turn *grown = realloc(input->turns, (input->turn_count + 1) * sizeof(*grown));
	size_t room = 3 * bytes + 8; /* a byte is at most a token, but a space may have become three */
	llama_token *tokens = calloc(room, sizeof(*tokens));
	if (grown != NULL)
		input->turns = grown;
	if (grown == NULL || tokens == NULL) {
		free(tokens);
		return no_memory(error);
	}
	int32_t count = room > INT32_MAX ? -1
					 : llama_tokenize(vocab, text, (int32_t)bytes, tokens, (int32_t)room,
							  number == 0, false);
	if (count <= 0) {
		free(tokens);
		return fc_error_set(error, FC_EINVAL, "--text: paragraph %u of file %u cannot be tokenized", number + 1,
				    session + 1);
	}
	input->turns[input->turn_count++] = (struct replay_turn){
		.session = session, .number = number, .is_added = true, .tokens = tokens, .token_count = (size_t)count};
	return FC_OK;
}

static int read_text(struct replay_input *input, uint32_t session, const struct replay_opts *opts,
		     const struct llama_vocab *vocab, struct fc_error *error)
{
	char *text;
	int code = read_file(opts->texts[session], &text, error);
	if (code != FC_OK)
		return code;
	char *at = text;
	size_t held = 0;
	for (uint32_t number = 0; code == FC_OK && number < opts->turns; number++) {
		at += strspn(at, "\r\n");
		if (*at == '\0')
			break;
		char *end = strstr(at, "\n\n");
		size_t bytes = end == NULL ? strlen(at) : (size_t)(end - at);
		code = add_paragraph(input, session, number, at, bytes, vocab, error);
		at += bytes;
		if (code != FC_OK)
			break;
		held += input->turns[input->turn_count - 1].token_count + opts->reply;
		if (held > opts->history) { /* this one does not fit, and none after it */
			free(input->turns[--input->turn_count].tokens);
			input->skipped_count++;
			break;
		}
	}
	free(text);
	return code;
}

static int read_texts(struct replay_input *input, const struct replay_opts *opts, const struct llama_vocab *vocab,
		      struct fc_error *error)
{
	int code = FC_OK;
	input->session_count = (uint32_t)opts->text_count;
	for (uint32_t session = 0; session < input->session_count && code == FC_OK; session++)
		code = read_text(input, session, opts, vocab, error);
	snprintf(input->source, sizeof(input->source), "%zu text files", opts->text_count);
	input->scale = 1;
	return code;
}

/* ---- both ---- */

static int by_session(const void *left, const void *right)
{
	const struct replay_turn *a = left, *b = right;
	if (a->session != b->session)
		return a->session < b->session ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* All sessions are active at once: whose turn comes next is drawn, each session's own turns stay in order. (As
 * recorded, the first turns of a session follow one another within minutes, and nobody comes between them.) */
static int interleave(struct replay_input *input, uint64_t seed, struct fc_error *error)
{
	struct replay_turn *drawn = calloc(input->turn_count + 1, sizeof(*drawn));
	size_t *next = calloc(input->session_count + 1, sizeof(*next));
	struct fc_random random;
	fc_random_init(&random, seed);
	if (drawn == NULL || next == NULL) {
		free(drawn);
		free(next);
		return no_memory(error);
	}
	for (size_t i = input->turn_count; i-- > 0;)
		next[input->turns[i].session] = i;
	for (size_t i = 0; i < input->turn_count; i++) {
		uint32_t session;
		size_t *at;
		do {
			session = (uint32_t)fc_random_below(&random, input->session_count);
			at = &next[session];
		} while (*at >= input->turn_count || input->turns[*at].session != session);
		drawn[i] = input->turns[(*at)++];
	}
	free(input->turns);
	free(next);
	input->turns = drawn;
	return FC_OK;
}

/* Tokens of the longest prompt; turns of a session are in order. */
static size_t longest_prompt(const struct replay_input *input, const struct replay_opts *opts)
{
	size_t longest = 0, held = 0;
	for (size_t i = 0; i < input->turn_count; i++) {
		const struct replay_turn *turn = &input->turns[i];
		held = turn->is_added && turn->number > 0 ? held + opts->reply : 0;
		held += turn->token_count;
		longest = held > longest ? held : longest;
	}
	return longest;
}

int replay_input_init(struct replay_input *input, const struct replay_opts *opts, const struct llama_vocab *vocab,
		      struct fc_error *error)
{
	*input = (struct replay_input){0};
	int code =
		opts->text_count > 0 ? read_texts(input, opts, vocab, error) : read_traces(input, opts, vocab, error);
	if (code == FC_OK && input->turn_count == 0)
		code = fc_error_set(error, FC_EINVAL, "no turn fits --history %llu", (unsigned long long)opts->history);
	if (code != FC_OK)
		return code;
	qsort(input->turns, input->turn_count, sizeof(*input->turns), by_session);
	input->history_max = longest_prompt(input, opts) + opts->reply;
	return interleave(input, opts->seed, error);
}

void replay_input_deinit(struct replay_input *input)
{
	for (size_t i = 0; i < input->turn_count; i++)
		free(input->turns[i].tokens);
	free(input->turns);
}

/* A session is a line of requests whose input grows by the last reply and by what tools returned, until it meets the
 * limit of the context and is compacted: the prompt stays, a summary and some files replace the rest. Now and then a
 * request changes what was before it (a branch), or starts a subagent, which is a short line of its own.
 *
 * Numbers are drawn from the quantiles of recorded sessions, straight lines between them, so that the shape can be read
 * off the tables and needs no fitted formula. All of it is integer arithmetic but for the scales, so it is the same
 * everywhere. */
#include "trace/model.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_TOKENS 64
#define SYSTEM_PROMPTS_PER_TOOL_SET 8
#define SUBAGENT_KINDS 4
#define TURNS_MAX 1000000

/* A quantile: this share of all draws, in ten-thousandths, is at most `value`. */
struct point {
	uint64_t share;
	uint64_t value;
};

static const struct point TURNS[] = {{0, 3},     {500, 4},    {1000, 7},   {2500, 17},  {5000, 45},
				     {7500, 97}, {9000, 160}, {9500, 234}, {9900, 330}, {10000, 514}};
static const struct point REPLY[] = {{0, 1},       {500, 88},    {1000, 105},  {2500, 137},
				     {5000, 216},  {7500, 430},  {9000, 899},  {9500, 1574},
				     {9750, 2300}, {9900, 3934}, {9990, 8538}, {10000, 18195}};
/* Input beyond the last input and reply. */
static const struct point GROWTH[] = {{0, 0},       {2500, 47},    {5000, 282},   {7500, 973},    {9000, 2811},
				      {9500, 5436}, {9900, 14386}, {9990, 43688}, {10000, 120000}};
/* A session's first input beyond its prompt: a question, or a conversation that is taken up again. */
static const struct point FIRST[] = {{0, 111},       {500, 532},     {1000, 861},    {2500, 3617},
				     {5000, 6675},   {5700, 20000},  {7500, 77521},  {9000, 229374},
				     {9500, 310926}, {9900, 600000}, {10000, 837120}};
static const struct point CONTEXT_LIMIT[] = {{0, 140000},    {2000, 160000}, {5000, 172000}, {7000, 220000},
					     {9000, 320000}, {9700, 500000}, {10000, 900000}};
/* Input beyond the prompt after a compaction. */
static const struct point COMPACTED[] = {{0, 5000},     {2500, 18000}, {5000, 27000},
					 {7500, 40000}, {9000, 55000}, {10000, 80000}};
/* An edited history: how much of the list stays, in thousandths, and the new input behind it. */
static const struct point EDIT_KEEPS[] = {{0, 100}, {1500, 400}, {4000, 800}, {7000, 970}, {10000, 999}};
static const struct point EDIT_ADDS[] = {{0, 194},      {2500, 1000},  {5000, 10000},
					 {7500, 36000}, {9000, 94000}, {10000, 224000}};
static const struct point PAUSE_S[] = {{0, 1},       {500, 7},     {1000, 8},     {2500, 12},
				       {5000, 20},   {7500, 41},   {9000, 129},   {9500, 309},
				       {9900, 1799}, {9950, 6000}, {9990, 29100}, {10000, 77600}};
static const struct point TOOL_TOKENS[] = {{0, 890},      {500, 9056},   {2500, 10667}, {5000, 12439},
					   {7500, 12589}, {9000, 13110}, {9900, 15184}, {10000, 17261}};
static const struct point SYSTEM_TOKENS[] = {{0, 498},     {500, 1573},  {1000, 2115}, {2500, 2337}, {5000, 2826},
					     {7500, 3096}, {9000, 3787}, {9900, 5964}, {10000, 6767}};
static const struct point SUBAGENT_TURNS[] = {{0, 2}, {2500, 7}, {5000, 11}, {7500, 13}, {9000, 17}, {10000, 24}};
static const struct point SUBAGENT_TOOL_TOKENS[] = {{0, 7401}, {5000, 7771}, {10000, 8620}};
static const struct point SUBAGENT_SYSTEM_TOKENS[] = {{0, 551}, {5000, 952}, {10000, 2304}};
static const struct point SUBAGENT_FIRST[] = {{0, 471}, {5000, 1825}, {9000, 3326}, {10000, 9536}};
static const struct point SUBAGENT_GROWTH[] = {{0, 20},       {2500, 700},   {5000, 2200},  {7500, 5600},
					       {9000, 12500}, {9500, 22000}, {10000, 72000}};

/* Of the branches, in percent: the last block or two are written anew; the history is edited; the rest ask something
 * without the conversation. */
#define BRANCH_TAIL_PERCENT 67
#define BRANCH_EDIT_PERCENT 32

/* A line of requests as it grows. */
struct talk {
	struct session *session;
	const struct point *growth;
	uint64_t *ids;
	uint64_t id_count, id_capacity;
	uint64_t input_tokens, reply_tokens;
	uint64_t prompt_tokens;
	uint64_t limit_tokens;
};

struct session {
	const struct fc_generate_opts *opts;
	struct fc_random random;
	uint64_t next_id; /* ids are unique in the session, subagents included */
};

static uint64_t draw(struct fc_random *random, const struct point *points)
{
	const uint64_t parts = 1 << 20; /* of a ten-thousandth */
	uint64_t at = fc_random_below(random, 10000 * parts);
	while (at >= points[1].share * parts)
		points++;
	uint64_t width = (points[1].share - points[0].share) * parts;
	return points[0].value + (points[1].value - points[0].value) * (at - points[0].share * parts) / width;
}

static uint64_t scaled(uint64_t value, double scale)
{
	return fc_max_u64(1, (uint64_t)((double)value * scale));
}

static uint64_t draw_tokens(struct session *session, const struct point *points)
{
	return scaled(draw(&session->random, points), session->opts->token_scale);
}

/* A seed that depends on the trace's seed and on what it is for. */
static uint64_t derive_seed(const struct fc_generate_opts *opts, uint64_t purpose, uint64_t number)
{
	uint64_t state = opts->seed;
	state = fc_random_split(&state) + purpose;
	state = fc_random_split(&state) + number;
	return fc_random_split(&state);
}

enum { FOR_SESSIONS, FOR_TOOLS, FOR_SYSTEM, FOR_SUBAGENT_TOOLS, FOR_SUBAGENT_SYSTEM };

/* The size of the number-th prompt of a kind: a property of the trace, the same for all sessions that use it. */
static uint64_t prompt_tokens(const struct fc_generate_opts *opts, uint64_t purpose, uint64_t number,
			      const struct point *points)
{
	struct fc_random random;
	fc_random_init(&random, derive_seed(opts, purpose, number));
	return scaled(draw(&random, points), opts->token_scale);
}

/* One of `count`, the k-th with a weight of 1 / (k + offset): a few are common, most are rare. */
static uint64_t pick(struct fc_random *random, uint64_t count, uint64_t offset)
{
	const uint64_t unit = 1ull << 32;
	uint64_t total = 0;
	for (uint64_t k = 0; k < count; k++)
		total += unit / (k + offset);
	uint64_t at = fc_random_below(random, total);
	for (uint64_t k = 0; k < count; k++) {
		if (at < unit / (k + offset))
			return k;
		at -= unit / (k + offset);
	}
	return count - 1;
}

/* Cuts the list to `kept_count` blocks and fills it up with new ones to `input_tokens`. */
static int set_input(struct talk *talk, uint64_t kept_count, uint64_t input_tokens)
{
	kept_count = fc_min_u64(kept_count, talk->id_count);
	input_tokens = fc_max_u64(input_tokens, kept_count * BLOCK_TOKENS);
	uint64_t count = input_tokens / BLOCK_TOKENS;
	if (count > talk->id_capacity) {
		uint64_t *ids = realloc(talk->ids, 2 * count * sizeof(*ids));
		if (ids == NULL)
			return FC_ENOMEM;
		talk->ids = ids;
		talk->id_capacity = 2 * count;
	}
	for (talk->id_count = kept_count; talk->id_count < count; talk->id_count++)
		talk->ids[talk->id_count] = talk->session->next_id++;
	talk->input_tokens = input_tokens;
	return 0;
}

static int branch(struct talk *talk, uint64_t extended_tokens)
{
	struct session *session = talk->session;
	uint64_t percent = fc_random_below(&session->random, 100);
	if (percent < BRANCH_TAIL_PERCENT) {
		uint64_t cut = fc_min_u64(talk->id_count, fc_random_between(&session->random, 1, 2));
		return set_input(talk, talk->id_count - cut, extended_tokens);
	}
	if (percent >= BRANCH_TAIL_PERCENT + BRANCH_EDIT_PERCENT)
		return set_input(talk, 0, talk->prompt_tokens + draw_tokens(session, COMPACTED));
	uint64_t kept = talk->id_count * draw(&session->random, EDIT_KEEPS) / 1000;
	uint64_t edited = kept * BLOCK_TOKENS + draw_tokens(session, EDIT_ADDS);
	return set_input(talk, kept, fc_min_u64(edited, talk->limit_tokens));
}

/* The input of the line's next request. */
static int advance(struct talk *talk)
{
	struct session *session = talk->session;
	uint64_t extended = talk->input_tokens + talk->reply_tokens + draw_tokens(session, talk->growth);
	if (extended > talk->limit_tokens)
		return set_input(talk, talk->prompt_tokens / BLOCK_TOKENS,
				 talk->prompt_tokens + draw_tokens(session, COMPACTED));
	if (fc_random_unit(&session->random) < session->opts->branch_share)
		return branch(talk, extended);
	return set_input(talk, talk->id_count, extended);
}

static json_t *ids_json(const struct talk *talk)
{
	json_t *array = json_array();
	for (uint64_t i = 0; array != NULL && i < talk->id_count; i++) {
		if (json_array_append_new(array, json_integer((json_int_t)talk->ids[i])) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

static json_t *request_json(struct talk *talk, uint64_t time_ms)
{
	struct fc_random *random = &talk->session->random;
	talk->reply_tokens = draw_tokens(talk->session, REPLY);
	return json_pack("{s:f, s:s, s:I, s:I, s:o}", "t", (double)time_ms / 1000, "type",
			 fc_random_below(random, 100) < 85 ? "n" : "s", "in", (json_int_t)talk->input_tokens, "out",
			 (json_int_t)talk->reply_tokens, "hash_ids", ids_json(talk));
}

static uint64_t pause_ms(struct session *session)
{
	return scaled(draw(&session->random, PAUSE_S) * 1000, session->opts->time_scale);
}

/* Appends `turns` requests to the array; a subagent's if `subagents` is NULL. */
static int append_requests(struct talk *talk, uint64_t turns, json_t *array,
			   int (*subagent_cb)(struct session *session, uint64_t time_ms, json_t *array))
{
	struct session *session = talk->session;
	uint64_t time_ms = 0;
	for (uint64_t turn = 0; turn < turns; turn++) {
		if (turn > 0 && advance(talk) != 0)
			return FC_ENOMEM;
		if (json_array_append_new(array, request_json(talk, time_ms)) != 0)
			return FC_ENOMEM;
		bool has_subagent =
			subagent_cb != NULL && fc_random_unit(&session->random) < session->opts->subagent_share;
		time_ms += pause_ms(session);
		if (has_subagent && subagent_cb(session, time_ms, array) != 0)
			return FC_ENOMEM;
	}
	return 0;
}

static int append_subagent(struct session *session, uint64_t time_ms, json_t *array)
{
	const struct fc_generate_opts *opts = session->opts;
	uint64_t kind = pick(&session->random, SUBAGENT_KINDS, 1);
	uint64_t tool = prompt_tokens(opts, FOR_SUBAGENT_TOOLS, kind, SUBAGENT_TOOL_TOKENS);
	uint64_t system = prompt_tokens(opts, FOR_SUBAGENT_SYSTEM, kind, SUBAGENT_SYSTEM_TOKENS);
	struct talk talk = {.session = session, .growth = SUBAGENT_GROWTH, .prompt_tokens = tool + system};
	talk.limit_tokens = draw_tokens(session, CONTEXT_LIMIT);
	json_t *requests = json_array();
	int result = set_input(&talk, 0, talk.prompt_tokens + draw_tokens(session, SUBAGENT_FIRST));
	if (result == 0 && requests != NULL)
		result = append_requests(&talk, draw(&session->random, SUBAGENT_TURNS), requests, NULL);
	free(talk.ids);
	json_t *marker =
		json_pack("{s:f, s:s, s:I, s:I, s:o}", "t", (double)time_ms / 1000, "type", "subagent", "tool_tokens",
			  (json_int_t)tool, "system_tokens", (json_int_t)system, "requests", requests);
	if (result != 0 || marker == NULL) {
		json_decref(marker);
		return FC_ENOMEM;
	}
	return json_array_append_new(array, marker) != 0 ? FC_ENOMEM : 0;
}

static int append_main(struct session *session, uint64_t prompt, json_t *requests)
{
	struct talk talk = {.session = session, .growth = GROWTH, .prompt_tokens = prompt};
	uint64_t turns = scaled(draw(&session->random, TURNS), session->opts->turn_scale);
	talk.limit_tokens = draw_tokens(session, CONTEXT_LIMIT);
	uint64_t first = prompt + draw_tokens(session, FIRST);
	talk.limit_tokens = fc_max_u64(talk.limit_tokens, first + first / 5);
	int result = set_input(&talk, 0, first);
	if (result == 0)
		result = append_requests(&talk, fc_min_u64(turns, TURNS_MAX), requests, append_subagent);
	free(talk.ids);
	return result;
}

json_t *fc_model_session(const struct fc_generate_opts *opts, uint32_t index)
{
	struct session session = {.opts = opts, .next_id = 1};
	fc_random_init(&session.random, derive_seed(opts, FOR_SESSIONS, index));
	uint64_t tool_set = pick(&session.random, opts->tool_set_count, 3);
	uint64_t system_prompt = pick(&session.random, SYSTEM_PROMPTS_PER_TOOL_SET, 1);
	uint64_t tool = prompt_tokens(opts, FOR_TOOLS, tool_set, TOOL_TOKENS);
	uint64_t system =
		prompt_tokens(opts, FOR_SYSTEM, tool_set * SYSTEM_PROMPTS_PER_TOOL_SET + system_prompt, SYSTEM_TOKENS);
	char name[64];
	snprintf(name, sizeof(name), "generated_%llu_%06u", (unsigned long long)opts->seed, index);
	json_t *requests = json_array();
	int result = requests == NULL ? FC_ENOMEM : append_main(&session, tool + system, requests);
	json_t *made = json_pack("{s:s, s:i, s:s, s:I, s:I, s:o}", "id", name, "block_size", BLOCK_TOKENS,
				 "hash_id_scope", "local", "tool_tokens", (json_int_t)tool, "system_tokens",
				 (json_int_t)system, "requests", requests);
	if (result != 0) {
		json_decref(made);
		return NULL;
	}
	return made;
}

static int check_factor(const char *name, double value, double low, double high, struct fc_error *error)
{
	if (value >= low && value <= high)
		return 0;
	return fc_error_set(error, FC_EINVAL, "%s: %g; allowed: %g to %g", name, value, low, high);
}

void fc_generate_opts_init(struct fc_generate_opts *opts)
{
	*opts = (struct fc_generate_opts){.session_count = 40,
					  .turn_scale = 1,
					  .token_scale = 1,
					  .time_scale = 1,
					  .branch_share = 0.07,
					  .subagent_share = 0.002,
					  .tool_set_count = 74};
}

int fc_model_check(const struct fc_generate_opts *opts, struct fc_error *error)
{
	int result = check_factor("sessions", opts->session_count, 1, 1000000, error);
	if (result == 0)
		result = check_factor("turn scale", opts->turn_scale, 0.001, 100, error);
	if (result == 0)
		result = check_factor("token scale", opts->token_scale, 0.001, 100, error);
	if (result == 0)
		result = check_factor("time scale", opts->time_scale, 0.001, 100, error);
	if (result == 0)
		result = check_factor("share of branches", opts->branch_share, 0, 1, error);
	if (result == 0)
		result = check_factor("share of requests with a subagent", opts->subagent_share, 0, 1, error);
	return result != 0 ? result : check_factor("tool sets", opts->tool_set_count, 1, 10000, error);
}

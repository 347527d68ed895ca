/* Building a trace: prefix compression, ids that are global, and arrival times. The rules are in trace.h.
 *
 * While files are read, the names and number of sessions are not known yet, so ids are numbered in two steps. A suffix
 * first holds provisional ids,
 *
 *   bit 63 clear   the n-th id that this session showed
 *   bit 63 set     bits 32 to 62: a prompt class; bits 0 to 31: the block's position in it
 *
 * and fc_build_finish() adds to each the first number of its session or prompt class. A prompt class is (tool tokens)
 * for the blocks inside the tool definitions and (tool tokens, system tokens) for those behind. */
#include "trace/build.h"

#include "base/random.h"
#include "trace/idmap.h"
#include "trace/turns.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX ((uint64_t)UINT32_MAX - 1)
#define CLASS_MAX ((uint64_t)INT32_MAX)
#define IS_PROMPT (1ull << 63)
#define NO_SYSTEM UINT64_MAX

struct array {
	void *items;
	uint64_t capacity;
};

struct session {
	char *name;
	char *source;
	uint64_t first_ns, last_ns;
	uint64_t start_ns;
	uint64_t first_id;
	uint32_t request_count;
	uint32_t unique_count;
	uint32_t rank; /* by name */
};

struct prompt_class {
	uint64_t tool_tokens;
	uint64_t system_tokens;
	uint64_t block_count;
	uint64_t first_id;
};

struct line {
	enum fc_trace_kind kind;
	uint64_t prompt_tokens;
	uint64_t tool_blocks, prompt_blocks;
	uint32_t tool_class, system_class;
	uint64_t head_count;     /* of line_head: the first request's ids, up to prompt_blocks */
	uint64_t previous_count; /* of line_ids */
	uint32_t previous;
	uint32_t turn;
};

struct fc_trace_build {
	struct fc_trace_opts opts;
	uint32_t block_tokens;
	bool is_timed;
	struct array sessions, requests, classes, suffix_ids;
	uint64_t session_count, request_count, class_count, suffix_id_count, line_count;
	uint64_t ranked_count;         /* sessions that have requests, once they are ranked */
	struct fc_idmap session_ids;   /* of the current session */
	struct fc_idmap session_names; /* hashes of those of timed requests, and the sessions' numbers */
	struct line line;
	struct array line_ids, line_head;
};

static int no_memory(struct fc_error *error)
{
	return fc_error_set(error, FC_ENOMEM, "no memory for the trace");
}

static int limit_reached(const char *what, struct fc_error *error)
{
	return fc_error_set(error, FC_ELIMIT, "more than %llu %s", (unsigned long long)COUNT_MAX, what);
}

static int reserve(struct array *array, uint64_t count, size_t item_bytes, struct fc_error *error)
{
	if (count <= array->capacity)
		return 0;
	uint64_t capacity = fc_max_u64(count, fc_max_u64(64, array->capacity + array->capacity / 2));
	uint64_t bytes;
	if (fc_mul_overflows(capacity, item_bytes, &bytes))
		return no_memory(error);
	void *items = realloc(array->items, bytes);
	if (items == NULL)
		return no_memory(error);
	array->items = items;
	array->capacity = capacity;
	return 0;
}

static struct session *session_at(struct fc_trace_build *build, uint64_t index)
{
	return (struct session *)build->sessions.items + index;
}

static struct fc_trace_request *request_at(struct fc_trace_build *build, uint64_t index)
{
	return (struct fc_trace_request *)build->requests.items + index;
}

static struct prompt_class *class_at(struct fc_trace_build *build, uint64_t index)
{
	return (struct prompt_class *)build->classes.items + index;
}

int fc_build_new(const struct fc_trace_opts *opts, struct fc_trace_build **build, struct fc_error *error)
{
	*build = calloc(1, sizeof(**build));
	if (*build == NULL)
		return no_memory(error);
	(*build)->opts = *opts;
	return 0;
}

void fc_build_free(struct fc_trace_build *build)
{
	if (build == NULL)
		return;
	for (uint64_t i = 0; i < build->session_count; i++) {
		free(session_at(build, i)->name);
		free(session_at(build, i)->source);
	}
	free(build->sessions.items);
	free(build->requests.items);
	free(build->classes.items);
	free(build->suffix_ids.items);
	free(build->line_ids.items);
	free(build->line_head.items);
	fc_idmap_deinit(&build->session_ids);
	fc_idmap_deinit(&build->session_names);
	free(build);
}

/* Gives up the last session when it got no request: there is nothing to replay in it. */
static void drop_empty_session(struct fc_trace_build *build)
{
	if (build->session_count == 0 || session_at(build, build->session_count - 1)->request_count > 0)
		return;
	struct session *last = session_at(build, build->session_count - 1);
	free(last->name);
	free(last->source);
	build->session_count--;
}

uint32_t fc_build_request_count(const struct fc_trace_build *build)
{
	return (uint32_t)build->request_count;
}

static int check_block_tokens(struct fc_trace_build *build, uint32_t block_tokens, bool is_timed,
			      struct fc_error *error)
{
	bool is_first = build->session_count == 0 && build->request_count == 0;
	if (!is_first && build->is_timed != is_timed)
		return fc_error_set(error, FC_EINVAL,
				    "whole sessions and single requests together; allowed: one format a trace");
	if (!is_first && build->block_tokens != block_tokens)
		return fc_error_set(error, FC_EINVAL,
				    "blocks of %u tokens after blocks of %u; allowed: one block size a trace",
				    block_tokens, build->block_tokens);
	build->block_tokens = block_tokens;
	build->is_timed = is_timed;
	return 0;
}

static int append_session(struct fc_trace_build *build, const char *name, const char *source, struct fc_error *error)
{
	if (build->session_count >= COUNT_MAX)
		return limit_reached("sessions", error);
	if (reserve(&build->sessions, build->session_count + 1, sizeof(struct session), error) != 0)
		return FC_ENOMEM;
	struct session session = {.name = strdup(name), .source = strdup(source), .first_ns = UINT64_MAX};
	if (session.name == NULL || session.source == NULL) {
		free(session.name);
		free(session.source);
		return no_memory(error);
	}
	*session_at(build, build->session_count++) = session;
	return 0;
}

int fc_build_session(struct fc_trace_build *build, const char *name, const char *source, uint32_t block_tokens,
		     struct fc_error *error)
{
	drop_empty_session(build);
	int result = check_block_tokens(build, block_tokens, false, error);
	if (result == 0)
		result = append_session(build, name, source, error);
	if (result == 0)
		fc_idmap_clear(&build->session_ids);
	return result;
}

uint32_t fc_build_session_number(const struct fc_trace_build *build)
{
	return (uint32_t)build->session_count;
}

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a; the map mixes it once more */
	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
	return hash;
}

int fc_build_timed_session(struct fc_trace_build *build, const char *name, uint32_t *session, struct fc_error *error)
{
	for (uint64_t hash = hash_of(name);; hash++) { /* the next where another name has the same */
		bool is_new;
		*session = (uint32_t)build->session_count;
		if (fc_idmap_enter(&build->session_names, hash, session, &is_new) != 0)
			return no_memory(error);
		if (is_new)
			return append_session(build, name, "", error);
		if (strcmp(session_at(build, *session)->name, name) == 0)
			return 0;
	}
}

static int class_of(struct fc_trace_build *build, uint64_t tool_tokens, uint64_t system_tokens, uint32_t *index,
		    struct fc_error *error)
{
	for (*index = 0; *index < build->class_count; (*index)++) {
		struct prompt_class *class = class_at(build, *index);
		if (class->tool_tokens == tool_tokens && class->system_tokens == system_tokens)
			return 0;
	}
	if (build->class_count >= CLASS_MAX)
		return limit_reached("kinds of prompt", error);
	if (reserve(&build->classes, build->class_count + 1, sizeof(struct prompt_class), error) != 0)
		return FC_ENOMEM;
	*class_at(build, build->class_count++) =
		(struct prompt_class){.tool_tokens = tool_tokens, .system_tokens = system_tokens};
	return 0;
}

int fc_build_line(struct fc_trace_build *build, enum fc_trace_kind kind, uint64_t tool_tokens, uint64_t system_tokens,
		  struct fc_error *error)
{
	fc_check(build->session_count > 0);
	struct line *line = &build->line;
	*line = (struct line){.kind = kind, .previous = FC_TRACE_NONE};
	if (build->line_count >= COUNT_MAX)
		return limit_reached("lines", error);
	build->line_count++;
	if (!build->opts.share_prompts)
		return 0;
	line->prompt_tokens = tool_tokens + system_tokens;
	line->tool_blocks = tool_tokens / build->block_tokens;
	line->prompt_blocks = line->prompt_tokens / build->block_tokens;
	int result = class_of(build, tool_tokens, NO_SYSTEM, &line->tool_class, error);
	return result != 0 ? result : class_of(build, tool_tokens, system_tokens, &line->system_class, error);
}

static uint64_t common_prefix(const uint64_t *a, uint64_t a_count, const uint64_t *b, uint64_t b_count)
{
	uint64_t count = fc_min_u64(a_count, b_count);
	uint64_t common = 0;
	while (common < count && a[common] == b[common])
		common++;
	return common;
}

static uint64_t prompt_id(struct fc_trace_build *build, uint64_t position)
{
	bool is_tool = position < build->line.tool_blocks;
	uint32_t index = is_tool ? build->line.tool_class : build->line.system_class;
	struct prompt_class *class = class_at(build, index);
	uint64_t block = is_tool ? position : position - build->line.tool_blocks;
	class->block_count = fc_max_u64(class->block_count, block + 1);
	return IS_PROMPT | (uint64_t)index << 32 | block;
}

static int session_id(struct fc_trace_build *build, uint64_t file_id, uint64_t *id, struct fc_error *error)
{
	struct session *session = session_at(build, build->session_count - 1);
	uint32_t number = session->unique_count;
	bool is_new;
	if (session->unique_count >= COUNT_MAX)
		return limit_reached("unique blocks in one session", error);
	if (fc_idmap_enter(&build->session_ids, file_id, &number, &is_new) != 0)
		return no_memory(error);
	session->unique_count += is_new;
	*id = number;
	return 0;
}

/* Appends ids[prefix_count, id_count) under their provisional numbers. */
static int append_suffix(struct fc_trace_build *build, const struct fc_build_request *request, uint64_t prefix_count,
			 uint64_t prompt_count, struct fc_error *error)
{
	uint64_t count = request->id_count - prefix_count;
	if (reserve(&build->suffix_ids, fc_max_u64(build->suffix_id_count + count, 1), sizeof(uint64_t), error) != 0)
		return FC_ENOMEM;
	uint64_t *suffix = (uint64_t *)build->suffix_ids.items + build->suffix_id_count;
	for (uint64_t i = prefix_count; i < request->id_count; i++) {
		int result = 0;
		if (build->is_timed)
			*suffix++ = request->ids[i];
		else if (i < prompt_count)
			*suffix++ = prompt_id(build, i);
		else
			result = session_id(build, request->ids[i], suffix++, error);
		if (result != 0)
			return result;
	}
	build->suffix_id_count += count;
	return 0;
}

static int append_request(struct fc_trace_build *build, const struct fc_trace_request *request, struct fc_error *error)
{
	if (build->request_count >= COUNT_MAX)
		return limit_reached("requests", error);
	if (reserve(&build->requests, build->request_count + 1, sizeof(*request), error) != 0)
		return FC_ENOMEM;
	*request_at(build, build->request_count++) = *request;
	return 0;
}

static int copy_ids(struct array *array, const uint64_t *ids, uint64_t count, struct fc_error *error)
{
	if (reserve(array, count, sizeof(*ids), error) != 0)
		return FC_ENOMEM;
	if (count > 0)
		memcpy(array->items, ids, count * sizeof(*ids));
	return 0;
}

/* Leading blocks that are those of the line's first request, inside the prompt. The first request defines them. */
static int match_prompt(struct fc_trace_build *build, const struct fc_build_request *request, uint64_t *prompt_count,
			struct fc_error *error)
{
	struct line *line = &build->line;
	if (line->turn == 0) {
		line->head_count = fc_min_u64(line->prompt_blocks, request->id_count);
		if (copy_ids(&build->line_head, request->ids, line->head_count, error) != 0)
			return FC_ENOMEM;
	}
	*prompt_count = common_prefix(request->ids, request->id_count, build->line_head.items, line->head_count);
	return 0;
}

static void count_request(struct session *session, uint64_t time_ns)
{
	session->request_count++;
	session->first_ns = fc_min_u64(session->first_ns, time_ns);
	session->last_ns = fc_max_u64(session->last_ns, time_ns);
}

/* Makes the request the one that the next of its line is compared with. */
static void link_request(struct fc_trace_build *build, uint64_t time_ns)
{
	uint32_t index = (uint32_t)build->request_count - 1;
	if (build->line.previous != FC_TRACE_NONE)
		request_at(build, build->line.previous)->next = index;
	build->line.previous = index;
	build->line.turn++;
	count_request(session_at(build, build->session_count - 1), time_ns);
}

int fc_build_request(struct fc_trace_build *build, const struct fc_build_request *request, struct fc_error *error)
{
	struct line *line = &build->line;
	if (request->id_count > COUNT_MAX)
		return limit_reached("blocks in one request", error);
	uint64_t prompt_count;
	int result = match_prompt(build, request, &prompt_count, error);
	if (result != 0)
		return result;
	uint64_t prefix_count =
		common_prefix(request->ids, request->id_count, build->line_ids.items, line->previous_count);
	bool has_whole_prompt = prompt_count == line->prompt_blocks;
	uint64_t shared_tokens = has_whole_prompt ? line->prompt_tokens : prompt_count * build->block_tokens;
	struct fc_trace_request made = {
		.arrival_ns = request->time_ns,
		.input_tokens = request->input_tokens,
		.output_tokens = request->output_tokens,
		.shared_tokens = fc_min_u64(shared_tokens, request->input_tokens), /* its last block may be partial */
		.suffix_start = build->suffix_id_count,
		.suffix_count = (uint32_t)(request->id_count - prefix_count),
		.prefix_count = (uint32_t)prefix_count,
		.session = (uint32_t)build->session_count - 1,
		.line = (uint32_t)build->line_count - 1,
		.turn = line->turn,
		.previous = line->previous,
		.next = FC_TRACE_NONE,
		.kind = line->kind,
	};
	result = append_suffix(build, request, prefix_count, prompt_count, error);
	if (result == 0)
		result = append_request(build, &made, error);
	if (result == 0)
		result = copy_ids(&build->line_ids, request->ids, request->id_count, error);
	if (result != 0)
		return result;
	line->previous_count = request->id_count;
	link_request(build, request->time_ns);
	return 0;
}

int fc_build_check_timed(struct fc_trace_build *build, uint32_t block_tokens, struct fc_error *error)
{
	return check_block_tokens(build, block_tokens, true, error);
}

int fc_build_timed_request(struct fc_trace_build *build, uint32_t block_tokens, const struct fc_build_request *request,
			   struct fc_error *error)
{
	if (request->id_count > COUNT_MAX)
		return limit_reached("blocks in one request", error);
	int result = check_block_tokens(build, block_tokens, true, error);
	if (result != 0)
		return result;
	struct fc_trace_request made = {
		.arrival_ns = request->time_ns,
		.input_tokens = request->input_tokens,
		.output_tokens = request->output_tokens,
		.suffix_start = build->suffix_id_count,
		.suffix_count = (uint32_t)request->id_count,
		.session = request->has_session ? request->session : FC_TRACE_NONE,
		.line = FC_TRACE_NONE,
		.previous = FC_TRACE_NONE,
		.next = FC_TRACE_NONE,
	};
	result = append_suffix(build, request, 0, 0, error);
	if (result == 0)
		result = append_request(build, &made, error);
	if (result == 0 && request->has_session)
		count_request(session_at(build, request->session), request->time_ns);
	return result;
}

/* ---- finish: sessions by name -------------------------------------------------------------------------------------
 */

struct named {
	const char *name;
	uint32_t index;
};

static int compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* order[rank] = index of the session in the order of reading, of those that have requests. */
static int rank_sessions(struct fc_trace_build *build, struct named **order, struct fc_error *error)
{
	*order = calloc(build->session_count + 1, sizeof(**order));
	if (*order == NULL)
		return no_memory(error);
	for (uint32_t i = 0; i < build->session_count; i++)
		if (session_at(build, i)->request_count > 0)
			(*order)[build->ranked_count++] =
				(struct named){.name = session_at(build, i)->name, .index = i};
	qsort(*order, build->ranked_count, sizeof(**order), compare_named);
	for (uint32_t rank = 0; rank < build->ranked_count; rank++) {
		struct session *session = session_at(build, (*order)[rank].index);
		session->rank = rank;
		if (rank > 0 && strcmp((*order)[rank - 1].name, session->name) == 0)
			return fc_error_set(
				error, FC_EINVAL, "session \"%s\" stands in %s and in %s; allowed: each session once",
				session->name, session_at(build, (*order)[rank - 1].index)->source, session->source);
	}
	return 0;
}

/* ---- finish: ids --------------------------------------------------------------------------------------------------
 */

static int compare_classes(const void *a, const void *b)
{
	const struct prompt_class *first = *(struct prompt_class *const *)a;
	const struct prompt_class *second = *(struct prompt_class *const *)b;
	if (first->tool_tokens != second->tool_tokens)
		return first->tool_tokens < second->tool_tokens ? -1 : 1;
	return first->system_tokens < second->system_tokens ? -1 : first->system_tokens > second->system_tokens;
}

/* Numbers the prompt classes by their tokens, not by the order of reading. *next_id: the first free number. */
static int number_classes(struct fc_trace_build *build, uint64_t *next_id, struct fc_error *error)
{
	struct prompt_class **order = calloc(build->class_count + 1, sizeof(struct prompt_class *));
	if (order == NULL)
		return no_memory(error);
	for (uint64_t i = 0; i < build->class_count; i++)
		order[i] = class_at(build, i);
	qsort(order, build->class_count, sizeof(struct prompt_class *), compare_classes);
	for (uint64_t i = 0; i < build->class_count; i++) {
		order[i]->first_id = *next_id;
		*next_id += order[i]->block_count;
	}
	free(order);
	return 0;
}

static void renumber_request(struct fc_trace_build *build, const struct fc_trace_request *request)
{
	uint64_t *suffix = (uint64_t *)build->suffix_ids.items + request->suffix_start;
	uint64_t session_first = session_at(build, request->session)->first_id;
	for (uint32_t i = 0; i < request->suffix_count; i++) {
		if (suffix[i] & IS_PROMPT)
			suffix[i] = class_at(build, (suffix[i] & ~IS_PROMPT) >> 32)->first_id + (uint32_t)suffix[i];
		else
			suffix[i] += session_first;
	}
}

static int renumber(struct fc_trace_build *build, const struct named *order, uint64_t *id_bound, struct fc_error *error)
{
	*id_bound = 0;
	int result = number_classes(build, id_bound, error);
	if (result != 0)
		return result;
	for (uint64_t rank = 0; rank < build->ranked_count; rank++) {
		struct session *session = session_at(build, order[rank].index);
		session->first_id = *id_bound;
		*id_bound += session->unique_count;
	}
	for (uint64_t i = 0; i < build->request_count; i++)
		renumber_request(build, request_at(build, i));
	return 0;
}

/* ---- finish: times ------------------------------------------------------------------------------------------------
 */

static void shuffle(struct session **sessions, uint64_t count, uint64_t seed)
{
	struct fc_random random;
	fc_random_init(&random, seed);
	for (uint64_t i = count; i > 1; i--) {
		uint64_t other = fc_random_below(&random, i);
		struct session *kept = sessions[i - 1];
		sessions[i - 1] = sessions[other];
		sessions[other] = kept;
	}
}

/* lanes[k] = when lane k is free: at first, when it opens. */
static void open_lanes(struct session **sessions, uint64_t session_count, uint64_t *lanes, uint64_t lane_count)
{
	unsigned __int128 total_ns = 0;
	for (uint64_t i = 0; i < session_count; i++)
		total_ns += sessions[i]->last_ns - sessions[i]->first_ns;
	for (uint64_t lane = 0; lane < lane_count; lane++)
		lanes[lane] = (uint64_t)(total_ns / session_count * lane / lane_count);
}

static int hand_out(struct session **sessions, uint64_t session_count, uint64_t *lanes, uint64_t lane_count,
		    struct fc_error *error)
{
	for (uint64_t i = 0; i < session_count; i++) {
		uint64_t first_free = 0;
		for (uint64_t lane = 1; lane < lane_count && i >= lane_count; lane++)
			first_free = lanes[lane] < lanes[first_free] ? lane : first_free;
		uint64_t *lane = &lanes[i < lane_count ? i : first_free];
		sessions[i]->start_ns = *lane;
		if (fc_add_overflows(*lane, sessions[i]->last_ns - sessions[i]->first_ns, lane))
			return fc_error_set(error, FC_ELIMIT, "sessions one after the other last more than 584 years");
	}
	return 0;
}

static int arrange_sessions(struct fc_trace_build *build, const struct named *order, struct fc_error *error)
{
	uint64_t count = build->ranked_count;
	uint64_t lane_count = fc_min_u64(build->opts.concurrent_sessions, count);
	struct session **sessions = calloc(count + 1, sizeof(struct session *));
	uint64_t *lanes = calloc(lane_count + 1, sizeof(*lanes));
	int result = sessions == NULL || lanes == NULL ? no_memory(error) : 0;
	if (result == 0 && count > 0) {
		for (uint64_t rank = 0; rank < count; rank++)
			sessions[rank] = session_at(build, order[rank].index);
		shuffle(sessions, count, build->opts.seed);
		open_lanes(sessions, count, lanes, lane_count);
		result = hand_out(sessions, count, lanes, lane_count, error);
	}
	free(lanes);
	free(sessions);
	return result;
}

/* Replaces times by arrivals: of sessions as arranged, of timed requests since the first. */
static void set_arrivals(struct fc_trace_build *build)
{
	uint64_t first_ns = UINT64_MAX;
	for (uint64_t i = 0; i < build->request_count; i++)
		first_ns = fc_min_u64(first_ns, request_at(build, i)->arrival_ns);
	for (uint64_t i = 0; i < build->session_count && build->is_timed; i++)
		session_at(build, i)->start_ns = session_at(build, i)->first_ns - first_ns;
	for (uint64_t i = 0; i < build->request_count; i++) {
		struct fc_trace_request *request = request_at(build, i);
		if (build->is_timed) {
			request->arrival_ns -= first_ns;
		} else {
			const struct session *session = session_at(build, request->session);
			request->arrival_ns = session->start_ns + (request->arrival_ns - session->first_ns);
		}
	}
}

/* ---- finish: the order of requests --------------------------------------------------------------------------------
 */

struct place {
	uint64_t arrival_ns;
	uint32_t rank;  /* of the session */
	uint32_t index; /* in the order of reading, which keeps the sort stable */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *first = a, *second = b;
	if (first->arrival_ns != second->arrival_ns)
		return first->arrival_ns < second->arrival_ns ? -1 : 1;
	if (first->rank != second->rank)
		return first->rank < second->rank ? -1 : 1;
	return first->index < second->index ? -1 : first->index > second->index;
}

static uint32_t renamed(const uint32_t *new_index, uint32_t old)
{
	return old == FC_TRACE_NONE ? old : new_index[old];
}

/* Copies the requests into `ordered`, by arrival, with the links between them. */
static void place_requests(struct fc_trace_build *build, struct place *places, uint32_t *new_index,
			   struct fc_trace_request *ordered)
{
	for (uint32_t i = 0; i < build->request_count; i++) {
		const struct fc_trace_request *request = request_at(build, i);
		uint32_t rank = build->is_timed ? 0 : session_at(build, request->session)->rank;
		places[i] = (struct place){.arrival_ns = request->arrival_ns, .rank = rank, .index = i};
	}
	qsort(places, build->request_count, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < build->request_count; i++)
		new_index[places[i].index] = i;
	for (uint32_t i = 0; i < build->request_count; i++) {
		ordered[i] = *request_at(build, places[i].index);
		ordered[i].previous = renamed(new_index, ordered[i].previous);
		ordered[i].next = renamed(new_index, ordered[i].next);
		if (ordered[i].session != FC_TRACE_NONE)
			ordered[i].session = session_at(build, ordered[i].session)->rank;
	}
}

static int order_requests(struct fc_trace_build *build, struct fc_trace *trace, struct fc_error *error)
{
	uint64_t count = build->request_count;
	struct place *places = calloc(count + 1, sizeof(*places));
	uint32_t *new_index = calloc(count + 1, sizeof(*new_index));
	trace->requests = calloc(count + 1, sizeof(*trace->requests));
	int result = 0;
	if (places == NULL || new_index == NULL || trace->requests == NULL)
		result = no_memory(error);
	else
		place_requests(build, places, new_index, trace->requests);
	trace->request_count = (uint32_t)count;
	free(new_index);
	free(places);
	return result;
}

static int list_sessions(struct fc_trace_build *build, const struct named *order, struct fc_trace *trace,
			 struct fc_error *error)
{
	trace->sessions = calloc(build->ranked_count + 1, sizeof(*trace->sessions));
	trace->session_requests = calloc(build->request_count + 1, sizeof(*trace->session_requests));
	if (trace->sessions == NULL || trace->session_requests == NULL)
		return no_memory(error);
	uint32_t requests_start = 0;
	for (uint64_t rank = 0; rank < build->ranked_count; rank++) {
		struct session *from = session_at(build, order[rank].index);
		trace->sessions[rank] = (struct fc_trace_session){.name = from->name,
								  .start_ns = from->start_ns,
								  .duration_ns = from->last_ns - from->first_ns,
								  .requests_start = requests_start};
		from->name = NULL;
		requests_start += from->request_count;
	}
	trace->session_count = (uint32_t)build->ranked_count;
	for (uint32_t i = 0; i < trace->request_count && trace->session_count > 0; i++) {
		struct fc_trace_session *session = &trace->sessions[trace->requests[i].session];
		trace->session_requests[session->requests_start + session->request_count++] = i;
	}
	return 0;
}

/* Hands the pool over, without the room for growth; a trace of requests without blocks has a pool too. */
static int take_suffixes(struct fc_trace_build *build, struct fc_trace *trace, struct fc_error *error)
{
	uint64_t *ids = realloc(build->suffix_ids.items, fc_max_u64(build->suffix_id_count, 1) * sizeof(*ids));
	if (ids == NULL)
		return no_memory(error);
	build->suffix_ids = (struct array){0};
	trace->suffix_ids = ids;
	trace->suffix_id_count = build->suffix_id_count;
	return 0;
}

static int fill_trace(struct fc_trace_build *build, const struct named *order, struct fc_trace *trace,
		      struct fc_error *error)
{
	trace->format = build->is_timed ? FC_TRACE_OF_REQUESTS : FC_TRACE_OF_SESSIONS;
	trace->block_tokens = build->block_tokens;
	trace->line_count = (uint32_t)build->line_count;
	int result = build->is_timed ? 0 : renumber(build, order, &trace->id_bound, error);
	if (result == 0 && !build->is_timed)
		result = arrange_sessions(build, order, error);
	if (result != 0)
		return result;
	set_arrivals(build);
	result = order_requests(build, trace, error);
	if (result == 0)
		result = list_sessions(build, order, trace, error);
	if (result == 0)
		result = take_suffixes(build, trace, error);
	if (result == 0 && build->is_timed && trace->session_count > 0 && fc_turns_link(trace) != 0)
		result = no_memory(error);
	for (uint32_t i = 0; result == 0 && i < trace->request_count; i++)
		trace->reference_count += fc_trace_id_count(&trace->requests[i]);
	return result;
}

int fc_build_finish(struct fc_trace_build *build, struct fc_trace **trace, struct fc_error *error)
{
	drop_empty_session(build);
	*trace = NULL;
	struct fc_trace *made = calloc(1, sizeof(*made));
	struct named *order = NULL;
	int result = made == NULL ? no_memory(error) : rank_sessions(build, &order, error);
	if (result == 0)
		result = fill_trace(build, order, made, error);
	free(order);
	if (result != 0) {
		fc_trace_free(made);
		return result;
	}
	*trace = made;
	return 0;
}

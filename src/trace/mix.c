#include "trace/mix.h"

#include "base/check.h"
#include "base/random.h"
#include "trace/idmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of the traces, on its way into the mix. */
struct part {
	const struct fc_trace *trace;
	uint64_t cut;         /* blocks of the mix that one of its blocks is */
	uint32_t next;        /* its next request */
	uint32_t line_start;  /* of its lines in the mix */
	uint64_t id_start;    /* of its ids in the mix */
	uint32_t *numbers;    /* its requests in the mix */
	uint32_t *session_of; /* its sessions in the mix; FC_TRACE_NONE: none of its requests is there */
	struct fc_idmap ids;  /* of traces whose ids are any 64 bits */
};

struct mix {
	const struct fc_mix_opts *opts;
	struct part parts[FC_MIX_MAX];
	struct fc_trace *trace;
	uint8_t *drawn; /* parts, request by request */
};

/* ---- what is drawn ---- */

static uint32_t draw(const struct fc_mix_opts *opts, double sum, struct fc_random *random)
{
	double left = fc_random_unit(random) * sum;
	for (uint32_t i = 0; i + 1 < opts->count; i++) {
		if (left < opts->shares[i])
			return i;
		left -= opts->shares[i];
	}
	return opts->count - 1;
}

static int draw_all(struct mix *mix)
{
	const struct fc_mix_opts *opts = mix->opts;
	struct fc_random random;
	double sum = 0;
	uint64_t most = 0, count = 0;
	for (uint32_t i = 0; i < opts->count; i++) {
		sum += opts->shares[i];
		most += opts->traces[i]->request_count;
	}
	if (most >= FC_TRACE_NONE)
		return FC_ELIMIT;
	mix->drawn = malloc(most + 1);
	if (mix->drawn == NULL)
		return FC_ENOMEM;
	fc_random_init(&random, opts->seed);
	for (;;) {
		uint32_t from = draw(opts, sum, &random);
		struct part *part = &mix->parts[from];
		if (part->next == part->trace->request_count)
			break;
		part->numbers[part->next++] = (uint32_t)count;
		mix->drawn[count++] = (uint8_t)from;
	}
	for (uint32_t i = 0; i < opts->count; i++) {
		for (uint32_t k = mix->parts[i].next; k < mix->parts[i].trace->request_count; k++)
			mix->parts[i].numbers[k] = FC_TRACE_NONE;
		mix->parts[i].next = 0;
	}
	mix->trace->request_count = (uint32_t)count;
	return FC_OK;
}

/* ---- ids ---- */

static int dense_id(struct part *part, uint64_t id, uint64_t *dense)
{
	uint32_t number = (uint32_t)part->ids.used_count;
	bool is_new;
	*dense = id;
	if (part->trace->id_bound > 0)
		return FC_OK;
	int code = fc_idmap_enter(&part->ids, id, &number, &is_new);
	*dense = number;
	return code;
}

/* Blocks of the mix in the first `blocks` of a request's list. */
static uint64_t cut_count(const struct mix *mix, const struct part *part, const struct fc_trace_request *request,
			  uint64_t blocks)
{
	uint64_t tokens = mix->trace->block_tokens;
	uint64_t held = request->input_tokens / tokens;
	return part->cut == 1 ? blocks : fc_min_u64(blocks * part->cut, held);
}

/* Appends what the request's list has behind `prefix` blocks of the mix. `ids` are its own, whole. */
static int add_ids(struct mix *mix, struct part *part, const uint64_t *ids, uint64_t prefix, uint64_t count)
{
	struct fc_trace *trace = mix->trace;
	for (uint64_t i = prefix; i < count; i++) {
		uint64_t dense;
		if (dense_id(part, ids[i / part->cut], &dense) != FC_OK)
			return FC_ENOMEM;
		trace->suffix_ids[trace->suffix_id_count++] = part->id_start + dense * part->cut + i % part->cut;
	}
	return FC_OK;
}

/* ---- requests ---- */

static uint32_t renamed(const struct part *part, uint32_t request)
{
	return request == FC_TRACE_NONE ? FC_TRACE_NONE : part->numbers[request];
}

/* What the list has in common with the one before it on the line, which may have been cut short. */
static uint64_t prefix_of(const struct mix *mix, const struct part *part, const struct fc_trace_request *request,
			  uint64_t count)
{
	if (request->previous == FC_TRACE_NONE)
		return 0;
	const struct fc_trace_request *previous = &part->trace->requests[request->previous];
	uint64_t previous_count = cut_count(mix, part, previous, fc_trace_id_count(previous));
	return fc_min_u64(fc_min_u64(request->prefix_count * part->cut, previous_count), count);
}

static int add_request(struct mix *mix, struct part *part, uint32_t number, uint64_t gap_ns,
		       struct fc_trace_lists *lists)
{
	const struct fc_trace_request *from = &part->trace->requests[part->next];
	struct fc_trace_request *made = &mix->trace->requests[number];
	const uint64_t *ids;
	uint64_t id_count;
	int code = fc_trace_lists_get(lists, part->next, &ids, &id_count);
	if (code != FC_OK)
		return code;
	uint64_t count = cut_count(mix, part, from, id_count);
	uint64_t prefix = prefix_of(mix, part, from, count);
	*made = *from;
	made->arrival_ns = number * gap_ns;
	made->source = (uint32_t)(part - mix->parts);
	made->suffix_start = mix->trace->suffix_id_count;
	made->prefix_count = (uint32_t)prefix;
	made->suffix_count = (uint32_t)(count - prefix);
	made->session = from->session == FC_TRACE_NONE ? FC_TRACE_NONE : part->session_of[from->session];
	made->line = from->line == FC_TRACE_NONE ? FC_TRACE_NONE : part->line_start + from->line;
	made->previous = renamed(part, from->previous);
	made->next = renamed(part, from->next);
	mix->trace->reference_count += count;
	part->next++;
	return add_ids(mix, part, ids, prefix, count);
}

static uint64_t gap_ns_of(const struct mix *mix)
{
	const struct fc_trace *first = mix->opts->traces[0];
	uint64_t last_ns = first->requests[first->request_count - 1].arrival_ns;
	double sum = 0;
	for (uint32_t i = 0; i < mix->opts->count; i++)
		sum += mix->opts->shares[i];
	return (uint64_t)((double)last_ns / first->request_count * mix->opts->shares[0] / sum);
}

static int add_requests(struct mix *mix)
{
	struct fc_trace_lists *lists[FC_MIX_MAX] = {NULL};
	uint64_t gap_ns = gap_ns_of(mix);
	int code = FC_OK;
	for (uint32_t i = 0; i < mix->opts->count && code == FC_OK; i++)
		code = fc_trace_lists_new(mix->opts->traces[i], &lists[i]);
	for (uint32_t i = 0; i < mix->trace->request_count && code == FC_OK; i++)
		code = add_request(mix, &mix->parts[mix->drawn[i]], i, gap_ns, lists[mix->drawn[i]]);
	for (uint32_t i = 0; i < mix->opts->count; i++)
		fc_trace_lists_free(lists[i]);
	return code;
}

/* ---- sessions ---- */

static int add_session(struct mix *mix, struct part *part, uint32_t number)
{
	const struct fc_trace_session *from = &part->trace->sessions[number];
	const uint32_t *requests = part->trace->session_requests + from->requests_start;
	struct fc_trace_session *made = &mix->trace->sessions[mix->trace->session_count];
	uint32_t start = mix->trace->session_count == 0 ? 0 : made[-1].requests_start + made[-1].request_count;
	uint32_t count = 0;
	while (count < from->request_count && part->numbers[requests[count]] != FC_TRACE_NONE) {
		mix->trace->session_requests[start + count] = part->numbers[requests[count]];
		count++;
	}
	part->session_of[number] = FC_TRACE_NONE;
	if (count == 0)
		return FC_OK;
	*made = (struct fc_trace_session){.requests_start = start, .request_count = count};
	if (asprintf(&made->name, "%u:%s", (unsigned)(part - mix->parts) + 1, from->name) < 0) {
		made->name = NULL;
		return FC_ENOMEM;
	}
	part->session_of[number] = mix->trace->session_count++;
	return FC_OK;
}

static int add_sessions(struct mix *mix)
{
	int code = FC_OK;
	for (uint32_t i = 0; i < mix->opts->count; i++)
		for (uint32_t k = 0; k < mix->parts[i].trace->session_count && code == FC_OK; k++)
			code = add_session(mix, &mix->parts[i], k);
	return code;
}

static void time_sessions(struct fc_trace *trace)
{
	for (uint32_t i = 0; i < trace->session_count; i++) {
		struct fc_trace_session *session = &trace->sessions[i];
		const uint32_t *requests = trace->session_requests + session->requests_start;
		session->start_ns = trace->requests[requests[0]].arrival_ns;
		session->duration_ns =
			trace->requests[requests[session->request_count - 1]].arrival_ns - session->start_ns;
	}
}

/* ---- the whole ---- */

static int check_opts(const struct fc_mix_opts *opts, uint32_t *block_tokens, struct fc_error *error)
{
	if (opts->count < 1 || opts->count > FC_MIX_MAX)
		return fc_error_set(error, FC_EINVAL, "a mix of %u traces; allowed: 1 to %d", opts->count, FC_MIX_MAX);
	*block_tokens = UINT32_MAX;
	for (uint32_t i = 0; i < opts->count; i++) {
		if (!(opts->shares[i] > 0))
			return fc_error_set(error, FC_EINVAL, "the share of trace %u is %g; allowed: above 0", i + 1,
					    opts->shares[i]);
		*block_tokens = (uint32_t)fc_min_u64(*block_tokens, opts->traces[i]->block_tokens);
	}
	for (uint32_t i = 0; i < opts->count; i++)
		if (opts->traces[i]->block_tokens % *block_tokens != 0)
			return fc_error_set(error, FC_EINVAL,
					    "blocks of %u tokens in trace %u, and of %u in another; sizes must be "
					    "multiples of the smallest",
					    opts->traces[i]->block_tokens, i + 1, *block_tokens);
	return FC_OK;
}

static int init_part(struct mix *mix, uint32_t index, uint64_t *suffix_room)
{
	const struct fc_trace *trace = mix->opts->traces[index];
	struct part *part = &mix->parts[index];
	*part = (struct part){.trace = trace, .cut = trace->block_tokens / mix->trace->block_tokens};
	part->numbers = calloc(trace->request_count + 1ull, sizeof(*part->numbers));
	part->session_of = calloc(trace->session_count + 1ull, sizeof(*part->session_of));
	part->line_start = mix->trace->line_count;
	part->id_start = mix->trace->id_bound;
	mix->trace->line_count += trace->line_count;
	/* A trace of any 64 bits has at most as many different ids as it names. */
	mix->trace->id_bound += (trace->id_bound > 0 ? trace->id_bound : trace->suffix_id_count) * part->cut;
	*suffix_room += trace->suffix_id_count * part->cut;
	if (part->cut > 1) /* where the list before was cut short, its last block is completed here */
		*suffix_room += trace->request_count * part->cut;
	return part->numbers == NULL || part->session_of == NULL ? FC_ENOMEM : FC_OK;
}

static void add_left_out(struct fc_trace *trace, const struct fc_trace *part)
{
	if (trace->skipped_count == 0)
		trace->skipped_first = part->skipped_first;
	trace->skipped_count += part->skipped_count;
	trace->without_input_count += part->without_input_count;
}

static int make(struct mix *mix)
{
	struct fc_trace *trace = mix->trace;
	uint64_t suffix_room = 1, session_room = 1;
	int code = FC_OK;
	for (uint32_t i = 0; i < mix->opts->count && code == FC_OK; i++) {
		code = init_part(mix, i, &suffix_room);
		session_room += mix->opts->traces[i]->session_count;
	}
	if (code == FC_OK)
		code = draw_all(mix);
	if (code != FC_OK)
		return code;
	trace->format = mix->opts->traces[0]->format;
	trace->source_count = mix->opts->count;
	for (uint32_t i = 0; i < mix->opts->count; i++)
		add_left_out(trace, mix->opts->traces[i]);
	trace->requests = calloc(trace->request_count + 1ull, sizeof(*trace->requests));
	trace->session_requests = calloc(trace->request_count + 1ull, sizeof(*trace->session_requests));
	trace->sessions = calloc(session_room, sizeof(*trace->sessions));
	trace->suffix_ids = calloc(suffix_room, sizeof(*trace->suffix_ids));
	if (trace->requests == NULL || trace->session_requests == NULL || trace->sessions == NULL ||
	    trace->suffix_ids == NULL)
		return FC_ENOMEM;
	code = add_sessions(mix);
	if (code == FC_OK)
		code = add_requests(mix);
	fc_check(trace->suffix_id_count <= suffix_room);
	if (code == FC_OK)
		time_sessions(trace);
	return code;
}

int fc_trace_mix(const struct fc_mix_opts *opts, struct fc_trace **mixed, struct fc_error *error)
{
	struct mix mix = {.opts = opts};
	uint32_t block_tokens = 0;
	*mixed = NULL;
	int code = check_opts(opts, &block_tokens, error);
	if (code != FC_OK)
		return code;
	mix.trace = calloc(1, sizeof(*mix.trace));
	if (mix.trace != NULL)
		mix.trace->block_tokens = block_tokens;
	code = mix.trace == NULL ? FC_ENOMEM : make(&mix);
	if (code == FC_OK && mix.trace->request_count == 0)
		code = fc_error_set(error, FC_EINVAL, "a mix of which nothing is left");
	else if (code != FC_OK)
		fc_error_set(error, code, "a mix of traces: %s", fc_code_text(code));
	for (uint32_t i = 0; i < opts->count; i++) {
		free(mix.parts[i].numbers);
		free(mix.parts[i].session_of);
		fc_idmap_deinit(&mix.parts[i].ids);
	}
	free(mix.drawn);
	if (code == FC_OK)
		*mixed = mix.trace;
	else
		fc_trace_free(mix.trace);
	return code;
}

/* One node's part of a fleet's plan as a trace: its requests in their order, with lines and sessions numbered anew.
 *
 * Where the request before on the line went to another node, the list is taken whole from the trace, less what the last
 * one on this node has in common with it. */
#include "replay/fleet_plan.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a line or a session of the fleet on this node, by copy and number in the trace. */
struct seat {
	uint32_t number; /* on this node */
	uint32_t last;   /* request, on this node; lines only */
	bool is_taken;
};

struct making {
	const struct fc_fleet_plan *plan;
	struct fc_trace *trace;
	struct seat *lines, *sessions;
	uint32_t *origins; /* requests of the plan's trace, by number here */
	uint64_t suffix_room;
};

static uint64_t moved_id(const struct fc_fleet_plan *plan, uint64_t id, uint32_t copy)
{
	return id < plan->shared_bound ? id : id + copy * plan->opts.trace->id_bound;
}

static int reserve_suffix(struct making *making, uint64_t more)
{
	struct fc_trace *trace = making->trace;
	uint64_t wanted = trace->suffix_id_count + more;
	if (wanted <= making->suffix_room)
		return FC_OK;
	uint64_t room = wanted + wanted / 2;
	uint64_t *ids = realloc(trace->suffix_ids, room * sizeof(*ids));
	if (ids == NULL)
		return FC_ENOMEM;
	trace->suffix_ids = ids;
	making->suffix_room = room;
	return FC_OK;
}

/* Blocks that two requests of a line certainly have in common, `earlier` being any before `later`. */
static uint64_t common_blocks(const struct fc_trace *trace, uint32_t earlier, uint32_t later)
{
	uint64_t common = UINT64_MAX;
	for (uint32_t at = later; at != earlier; at = trace->requests[at].previous)
		common = fc_min_u64(common, trace->requests[at].prefix_count);
	return common;
}

/* Appends the ids of the request behind the first `prefix`. */
static int add_suffix(struct making *making, const struct fc_fleet_request *request, uint64_t prefix)
{
	const struct fc_trace *from = making->plan->opts.trace;
	const struct fc_trace_request *traced = &from->requests[request->request];
	uint64_t count = fc_trace_id_count(traced);
	/* A whole list is written there first, and what the prefix has of it is then overwritten. */
	if (reserve_suffix(making, count) != FC_OK)
		return FC_ENOMEM;
	uint64_t *to = making->trace->suffix_ids + making->trace->suffix_id_count;
	if (prefix == traced->prefix_count) {
		memcpy(to, from->suffix_ids + traced->suffix_start, traced->suffix_count * sizeof(*to));
	} else {
		fc_trace_request_ids(from, request->request, to);
		memmove(to, to + prefix, (count - prefix) * sizeof(*to));
	}
	for (uint64_t i = 0; i < count - prefix; i++)
		to[i] = moved_id(making->plan, to[i], request->copy);
	making->trace->suffix_id_count += count - prefix;
	return FC_OK;
}

static int name_session(struct fc_trace_session *session, const char *name, uint32_t copy)
{
	int code =
		copy == 0 ? asprintf(&session->name, "%s", name) : asprintf(&session->name, "%s, copy %u", name, copy);
	if (code < 0)
		session->name = NULL;
	return code < 0 ? FC_ENOMEM : FC_OK;
}

/* The session's number on this node; a new one starts with this request. */
static int seat_session(struct making *making, const struct fc_fleet_request *request, uint32_t *number)
{
	const struct fc_trace *from = making->plan->opts.trace;
	uint32_t traced = from->requests[request->request].session;
	struct seat *seat = &making->sessions[(size_t)request->copy * from->session_count + traced];
	if (!seat->is_taken) {
		struct fc_trace_session *made = &making->trace->sessions[making->trace->session_count];
		*seat = (struct seat){.number = making->trace->session_count, .is_taken = true};
		*made = (struct fc_trace_session){.start_ns = request->arrival_ns};
		if (name_session(made, from->sessions[traced].name, request->copy) != FC_OK)
			return FC_ENOMEM;
		making->trace->session_count++;
	}
	struct fc_trace_session *session = &making->trace->sessions[seat->number];
	session->request_count++;
	session->duration_ns = request->arrival_ns - session->start_ns;
	*number = seat->number;
	return FC_OK;
}

static struct seat *seat_line(struct making *making, const struct fc_fleet_request *request)
{
	const struct fc_trace *from = making->plan->opts.trace;
	uint32_t line = from->requests[request->request].line;
	struct seat *seat = &making->lines[(size_t)request->copy * from->line_count + line];
	if (!seat->is_taken)
		*seat = (struct seat){.number = making->trace->line_count++, .last = FC_TRACE_NONE, .is_taken = true};
	return seat;
}

static int add_request(struct making *making, uint32_t number, const struct fc_fleet_request *request)
{
	const struct fc_trace *from = making->plan->opts.trace;
	struct fc_trace *trace = making->trace;
	struct fc_trace_request *made = &trace->requests[number];
	struct seat *line = seat_line(making, request);
	uint64_t prefix =
		line->last == FC_TRACE_NONE ? 0 : common_blocks(from, making->origins[line->last], request->request);
	*made = from->requests[request->request];
	uint64_t count = fc_trace_id_count(made);
	made->arrival_ns = request->arrival_ns;
	made->suffix_start = trace->suffix_id_count;
	made->prefix_count = (uint32_t)prefix;
	made->suffix_count = (uint32_t)(count - prefix);
	made->line = line->number;
	made->previous = line->last;
	made->next = FC_TRACE_NONE;
	if (line->last != FC_TRACE_NONE)
		trace->requests[line->last].next = number;
	line->last = number;
	making->origins[number] = request->request;
	trace->reference_count += count;
	int code = seat_session(making, request, &made->session);
	return code == FC_OK ? add_suffix(making, request, prefix) : code;
}

static void list_sessions(struct fc_trace *trace)
{
	uint32_t start = 0;
	for (uint32_t i = 0; i < trace->session_count; i++) {
		trace->sessions[i].requests_start = start;
		start += trace->sessions[i].request_count;
		trace->sessions[i].request_count = 0;
	}
	for (uint32_t i = 0; i < trace->request_count; i++) {
		struct fc_trace_session *session = &trace->sessions[trace->requests[i].session];
		trace->session_requests[session->requests_start + session->request_count++] = i;
	}
}

static int make(struct making *making, uint32_t node)
{
	const struct fc_fleet_plan *plan = making->plan;
	const struct fc_trace *from = plan->opts.trace;
	struct fc_trace *trace = making->trace;
	uint64_t start = plan->node_starts[node], count = fc_fleet_node_count_of(plan, node);
	trace->format = from->format;
	trace->block_tokens = from->block_tokens;
	trace->id_bound = from->id_bound * plan->copy_count;
	trace->requests = calloc(count + 1, sizeof(*trace->requests));
	trace->sessions = calloc(count + 1, sizeof(*trace->sessions));
	trace->session_requests = calloc(count + 1, sizeof(*trace->session_requests));
	making->origins = calloc(count + 1, sizeof(*making->origins));
	making->lines = calloc((size_t)plan->copy_count * from->line_count + 1, sizeof(*making->lines));
	making->sessions = calloc((size_t)plan->copy_count * from->session_count + 1, sizeof(*making->sessions));
	if (trace->requests == NULL || trace->sessions == NULL || trace->session_requests == NULL ||
	    making->origins == NULL || making->lines == NULL || making->sessions == NULL)
		return FC_ENOMEM;
	int code = FC_OK;
	for (uint64_t i = 0; i < count && code == FC_OK; i++) {
		code = add_request(making, (uint32_t)i, &plan->requests[plan->node_requests[start + i]]);
		trace->request_count += code == FC_OK;
	}
	if (code == FC_OK)
		list_sessions(trace);
	return code;
}

int fc_fleet_node_trace(const struct fc_fleet_plan *plan, uint32_t node, struct fc_trace **trace)
{
	struct making making = {.plan = plan, .trace = calloc(1, sizeof(*making.trace))};
	int code = making.trace == NULL ? FC_ENOMEM : make(&making, node);
	free(making.lines);
	free(making.sessions);
	free(making.origins);
	*trace = code == FC_OK ? making.trace : NULL;
	if (code != FC_OK)
		fc_trace_free(making.trace);
	return code;
}

/* See sessions.h. A session's blocks are the union of its requests' paths: each path is walked up from its end until a
 * node is met that the session has marked, as all above are marked then. So every node is visited once for each session
 * that has it. */
#include "analyze/sessions.h"

#include "analyze/spread.h"
#include "base/check.h"

#include <stdlib.h>

void fc_sessions_infer(struct fc_sessions *sessions, const struct fc_tree *tree, uint32_t request,
		       const struct fc_tree_match *match)
{
	const struct fc_tree_node *deepest = &tree->nodes[match->node];
	bool goes_on = match->continued > 0 && match->continued > match->fork && deepest->last_request != FC_TRACE_NONE;
	sessions->of_request[request] = goes_on ? sessions->of_request[deepest->last_request] : sessions->count;
	sessions->count += !goes_on;
}

struct facts {
	uint64_t first_ns, last_ns;
	uint64_t request_count;
	uint64_t block_count;
	uint64_t input_tokens_max;
};

/* The requests of all sessions, session by session: order[starts[s]] to order[starts[s + 1] - 1]. */
struct grouping {
	uint32_t *starts;
	uint32_t *order;
};

static void group(const struct fc_sessions *sessions, uint32_t request_count, struct grouping *grouping)
{
	for (uint32_t i = 0; i < request_count; i++)
		grouping->starts[sessions->of_request[i] + 1]++;
	for (uint32_t s = 0; s < sessions->count; s++)
		grouping->starts[s + 1] += grouping->starts[s];
	for (uint32_t i = 0; i < request_count; i++)
		grouping->order[grouping->starts[sessions->of_request[i]]++] = i;
	for (uint32_t s = sessions->count; s > 0; s--)
		grouping->starts[s] = grouping->starts[s - 1];
	grouping->starts[0] = 0;
}

/* Blocks of the request that the session had not marked yet. */
static uint64_t mark_path(struct fc_tree *tree, uint32_t request, uint32_t session)
{
	uint64_t count = 0;
	uint32_t node = tree->ends[request];
	for (; node != FC_TREE_ROOT && tree->nodes[node].session_mark != session; node = tree->nodes[node].parent) {
		tree->nodes[node].session_mark = session;
		tree->nodes[node].session_count++;
		count += tree->nodes[node].length;
	}
	return count;
}

static struct facts facts_of(struct fc_tree *tree, const struct grouping *grouping, uint32_t session)
{
	struct facts facts = {.first_ns = UINT64_MAX};
	for (uint32_t i = grouping->starts[session]; i < grouping->starts[session + 1]; i++) {
		const struct fc_trace_request *request = &tree->trace->requests[grouping->order[i]];
		facts.first_ns = fc_min_u64(facts.first_ns, request->arrival_ns);
		facts.last_ns = fc_max_u64(facts.last_ns, request->arrival_ns);
		facts.input_tokens_max = fc_max_u64(facts.input_tokens_max, request->input_tokens);
		facts.block_count += mark_path(tree, grouping->order[i], session);
		facts.request_count++;
	}
	return facts;
}

static enum fc_traffic traffic_of(const struct facts *facts, uint64_t agent_context_tokens)
{
	if (facts->request_count <= 1)
		return FC_TRAFFIC_ONE_SHOT;
	return facts->input_tokens_max > agent_context_tokens ? FC_TRAFFIC_AGENT : FC_TRAFFIC_CHAT;
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return first < second ? -1 : first > second;
}

/* How many sessions are between their first and last request when a request arrives, on average and at most. Sorts
 * firsts and lasts. */
static void measure_activity(struct fc_analysis *analysis, const struct fc_trace *trace, uint64_t *firsts,
			     uint64_t *lasts)
{
	uint64_t count = analysis->session_count, begun = 0, ended = 0, sum = 0;
	qsort(firsts, count, sizeof(*firsts), compare);
	qsort(lasts, count, sizeof(*lasts), compare);
	for (uint32_t i = 0; i < trace->request_count; i++) {
		uint64_t now_ns = trace->requests[i].arrival_ns;
		while (begun < count && firsts[begun] <= now_ns)
			begun++;
		while (ended < count && lasts[ended] < now_ns)
			ended++;
		sum += begun - ended;
		analysis->active_sessions_max = fc_max_u64(analysis->active_sessions_max, begun - ended);
	}
	if (trace->request_count > 0)
		analysis->active_sessions_mean = (double)sum / trace->request_count;
}

static void measure_blocks(const struct fc_tree *tree, struct fc_analysis *analysis)
{
	for (uint32_t i = 1; i < tree->node_count; i++) {
		const struct fc_tree_node *node = &tree->nodes[i];
		if (node->session_count < 2)
			continue;
		analysis->shared_blocks += node->length;
		analysis->shared_references += (uint64_t)node->list_count * node->length;
	}
}

/* `columns` has four arrays of one number a session. */
static void measure(struct fc_tree *tree, const struct grouping *grouping, uint64_t *columns,
		    struct fc_analysis *analysis)
{
	uint64_t count = analysis->session_count;
	uint64_t *firsts = columns, *lasts = firsts + count, *requests = lasts + count, *blocks = requests + count;
	for (uint32_t session = 0; session < count; session++) {
		struct facts facts = facts_of(tree, grouping, session);
		enum fc_traffic traffic = traffic_of(&facts, analysis->agent_context_tokens);
		analysis->traffic_sessions[traffic]++;
		analysis->traffic_requests[traffic] += facts.request_count;
		firsts[session] = facts.first_ns;
		lasts[session] = facts.last_ns;
		requests[session] = facts.request_count;
		blocks[session] = facts.block_count;
	}
	measure_activity(analysis, tree->trace, firsts, lasts);
	fc_spread_of_values(&analysis->session_requests, requests, count);
	fc_spread_of_values(&analysis->session_blocks, blocks, count);
	measure_blocks(tree, analysis);
}

int fc_sessions_measure(const struct fc_sessions *sessions, struct fc_tree *tree, struct fc_analysis *analysis)
{
	struct grouping grouping = {
		.starts = calloc((size_t)sessions->count + 2, sizeof(*grouping.starts)),
		.order = calloc((size_t)tree->trace->request_count + 1, sizeof(*grouping.order)),
	};
	uint64_t *columns = calloc((size_t)sessions->count * 4 + 1, sizeof(*columns));
	int result = grouping.starts == NULL || grouping.order == NULL || columns == NULL ? FC_ENOMEM : 0;
	analysis->session_count = sessions->count;
	if (result == 0) {
		group(sessions, tree->trace->request_count, &grouping);
		measure(tree, &grouping, columns, analysis);
	}
	free(columns);
	free(grouping.order);
	free(grouping.starts);
	return result;
}

#include "replay/fleet_plan.h"

#include "base/check.h"
#include "base/heap.h"
#include "base/random.h"
#include "host/alloc.h"

#include <stdlib.h>
#include <string.h>

#define LANES_MAX (1ull << 24)

const char *fc_route_name(enum fc_route route)
{
	static const char *const names[FC_ROUTE_COUNT] = {
		[FC_ROUTE_SESSION] = "session",
		[FC_ROUTE_LEAST] = "least",
		[FC_ROUTE_ROUND_ROBIN] = "round-robin",
		[FC_ROUTE_RANDOM] = "random",
	};
	return names[route];
}

/* ---- sessions on lanes ---- */

struct lane {
	struct fc_heap_node node;
	uint64_t free_ns;
	uint64_t number;
};

static bool is_free_before(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct lane *first = fc_container_of(a, struct lane, node);
	const struct lane *second = fc_container_of(b, struct lane, node);
	(void)context;
	return first->free_ns != second->free_ns ? first->free_ns < second->free_ns : first->number < second->number;
}

static double mean_duration_ns(const struct fc_trace *trace)
{
	double sum_ns = 0;
	for (uint32_t i = 0; i < trace->session_count; i++)
		sum_ns += (double)trace->sessions[i].duration_ns;
	return sum_ns / trace->session_count;
}

static int init_lanes(struct fc_heap *heap, struct lane *lanes, uint64_t count, double opening_ns)
{
	struct fc_alloc alloc = fc_alloc_system();
	int code = fc_heap_init(heap, &alloc, count, is_free_before, NULL);
	for (uint64_t i = 0; i < count && code == FC_OK; i++) {
		lanes[i].number = i;
		lanes[i].free_ns = (uint64_t)(opening_ns * (double)i / (double)count);
		code = fc_heap_push(heap, &lanes[i].node);
	}
	return code;
}

static void shuffle(uint32_t *deck, uint32_t count, struct fc_random *random)
{
	for (uint32_t i = 0; i < count; i++)
		deck[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = (uint32_t)fc_random_below(random, i), kept = deck[i - 1];
		deck[i - 1] = deck[other];
		deck[other] = kept;
	}
}

/* Draws sessions until they hold enough requests, and starts each on the lane that is free first. */
static int deal_sessions(struct fc_fleet_plan *plan, struct fc_heap *lanes, uint32_t *deck)
{
	const struct fc_trace *trace = plan->opts.trace;
	uint64_t room = 0, total = 0;
	struct fc_random random;
	fc_random_init(&random, plan->opts.seed);
	for (uint32_t left = 0; total < plan->opts.request_count; left--) {
		if (left == 0) {
			left = trace->session_count;
			shuffle(deck, left, &random);
			plan->copy_count++;
		}
		if (plan->session_count == room) {
			room = room == 0 ? 1024 : 2 * room;
			void *grown = realloc(plan->sessions, room * sizeof(*plan->sessions));
			if (grown == NULL)
				return FC_ENOMEM;
			plan->sessions = grown;
		}
		uint32_t session = deck[left - 1];
		struct lane *lane = fc_container_of(fc_heap_pop(lanes), struct lane, node);
		uint64_t start_ns = lane->free_ns;
		lane->free_ns += trace->sessions[session].duration_ns;
		plan->sessions[plan->session_count++] = (struct fc_fleet_session){.start_ns = start_ns,
										  .end_ns = lane->free_ns,
										  .copy = plan->copy_count - 1,
										  .session = session};
		total += trace->sessions[session].request_count;
		fc_check(fc_heap_push(lanes, &lane->node) == FC_OK);
	}
	plan->request_count = total;
	return FC_OK;
}

/* ---- requests by arrival ---- */

static int compare_requests(const void *a, const void *b)
{
	const struct fc_fleet_request *first = a, *second = b;
	if (first->arrival_ns != second->arrival_ns)
		return first->arrival_ns < second->arrival_ns ? -1 : 1;
	if (first->copy != second->copy)
		return first->copy < second->copy ? -1 : 1;
	return first->request < second->request ? -1 : first->request > second->request;
}

static int list_requests(struct fc_fleet_plan *plan)
{
	const struct fc_trace *trace = plan->opts.trace;
	uint64_t count = 0;
	plan->requests = calloc(plan->request_count, sizeof(*plan->requests));
	if (plan->requests == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < plan->session_count; i++) {
		const struct fc_fleet_session *from = &plan->sessions[i];
		const struct fc_trace_session *session = &trace->sessions[from->session];
		const uint32_t *numbers = trace->session_requests + session->requests_start;
		uint64_t first_ns = trace->requests[numbers[0]].arrival_ns;
		for (uint32_t k = 0; k < session->request_count; k++)
			plan->requests[count++] = (struct fc_fleet_request){
				.arrival_ns = from->start_ns + trace->requests[numbers[k]].arrival_ns - first_ns,
				.copy = from->copy,
				.request = numbers[k]};
	}
	fc_check(count == plan->request_count);
	qsort(plan->requests, count, sizeof(*plan->requests), compare_requests);
	plan->request_count = fc_min_u64(count, plan->opts.request_count);
	return FC_OK;
}

/* Prompts that sessions share are numbered first, see trace.h. */
static int find_shared(struct fc_fleet_plan *plan)
{
	const struct fc_trace *trace = plan->opts.trace;
	for (uint32_t i = 0; i < trace->request_count; i++) {
		const struct fc_trace_request *request = &trace->requests[i];
		uint64_t shared = request->shared_tokens / trace->block_tokens;
		const uint64_t *ids = trace->suffix_ids + request->suffix_start;
		for (uint64_t k = request->prefix_count; k < shared && k < fc_trace_id_count(request); k++)
			plan->shared_bound = fc_max_u64(plan->shared_bound, ids[k - request->prefix_count] + 1);
	}
	return FC_OK;
}

static int check_opts(const struct fc_fleet_plan_opts *opts, struct fc_error *error)
{
	if (opts->trace->session_count == 0 || opts->trace->id_bound == 0)
		return fc_error_set(error, FC_EINVAL,
				    "--nodes: sessions are what is routed and repeated; allowed: a trace of whole "
				    "sessions, whose times count from their own starts");
	if (opts->node_count == 0 || opts->request_count == 0 || opts->request_count > UINT32_MAX / 2)
		return fc_error_set(error, FC_EINVAL, "--nodes %u with %llu requests; allowed: 1 and more, up to %u",
				    opts->node_count, (unsigned long long)opts->request_count, UINT32_MAX / 2);
	if (opts->concurrency == 0 || opts->concurrency > LANES_MAX / opts->node_count)
		return fc_error_set(error, FC_EINVAL,
				    "--concurrency: %llu sessions at once on each of %u nodes; at most %llu in all",
				    (unsigned long long)opts->concurrency, opts->node_count,
				    (unsigned long long)LANES_MAX);
	return FC_OK;
}

int fc_fleet_plan_init(struct fc_fleet_plan *plan, const struct fc_fleet_plan_opts *opts, struct fc_error *error)
{
	*plan = (struct fc_fleet_plan){.opts = *opts};
	int code = check_opts(opts, error);
	if (code != FC_OK)
		return code;
	uint64_t lane_count = opts->concurrency * opts->node_count;
	struct fc_heap heap = {0};
	struct lane *lanes = calloc(lane_count, sizeof(*lanes));
	uint32_t *deck = calloc(opts->trace->session_count, sizeof(*deck));
	plan->node_starts = calloc(opts->node_count + 1ull, sizeof(*plan->node_starts));
	if (lanes == NULL || deck == NULL || plan->node_starts == NULL)
		code = FC_ENOMEM;
	if (code == FC_OK)
		code = init_lanes(&heap, lanes, lane_count, mean_duration_ns(opts->trace));
	if (code == FC_OK)
		code = deal_sessions(plan, &heap, deck);
	if (code == FC_OK)
		code = list_requests(plan);
	if (code == FC_OK)
		code = find_shared(plan);
	if (heap.nodes != NULL)
		fc_heap_deinit(&heap);
	free(lanes);
	free(deck);
	return code == FC_OK ? code : fc_error_set(error, code, "--nodes: %s", fc_code_text(code));
}

void fc_fleet_plan_deinit(struct fc_fleet_plan *plan)
{
	free(plan->sessions);
	free(plan->requests);
	free(plan->node_starts);
	free(plan->node_requests);
	*plan = (struct fc_fleet_plan){0};
}

/* ---- routes ---- */

/* A node as the router of FC_ROUTE_LEAST counts it. */
struct counted {
	struct fc_heap_node node;
	uint64_t active_count, session_count;
	uint32_t number;
};

static bool is_less_busy(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct counted *first = fc_container_of(a, struct counted, node);
	const struct counted *second = fc_container_of(b, struct counted, node);
	(void)context;
	if (first->active_count != second->active_count)
		return first->active_count < second->active_count;
	if (first->session_count != second->session_count)
		return first->session_count < second->session_count;
	return first->number < second->number;
}

/* A session that will end. */
struct ending {
	struct fc_heap_node node;
	uint64_t end_ns, number;
	struct counted *at;
};

static bool ends_before(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct ending *first = fc_container_of(a, struct ending, node);
	const struct ending *second = fc_container_of(b, struct ending, node);
	(void)context;
	return first->end_ns != second->end_ns ? first->end_ns < second->end_ns : first->number < second->number;
}

static void spread(const struct fc_fleet_plan *plan, struct fc_heap *nodes, struct fc_heap *ends,
		   struct ending *endings, uint32_t *node_of)
{
	for (uint64_t i = 0; i < plan->session_count; i++) {
		const struct fc_fleet_session *session = &plan->sessions[i];
		struct fc_heap_node *first;
		while ((first = fc_heap_peek(ends)) != NULL) {
			struct ending *ending = fc_container_of(first, struct ending, node);
			if (ending->end_ns > session->start_ns)
				break;
			(void)fc_heap_pop(ends);
			ending->at->active_count--;
			fc_heap_update(nodes, &ending->at->node);
		}
		struct counted *best = fc_container_of(fc_heap_peek(nodes), struct counted, node);
		best->active_count++;
		best->session_count++;
		fc_heap_update(nodes, &best->node);
		endings[i] = (struct ending){.end_ns = session->end_ns, .number = i, .at = best};
		fc_check(fc_heap_push(ends, &endings[i].node) == FC_OK);
		node_of[i] = best->number;
	}
}

static int route_least(const struct fc_fleet_plan *plan, uint32_t *node_of)
{
	struct fc_alloc alloc = fc_alloc_system();
	struct fc_heap nodes = {0}, ends = {0};
	struct counted *counted = calloc(plan->opts.node_count, sizeof(*counted));
	struct ending *endings = calloc(plan->session_count, sizeof(*endings));
	int code = counted == NULL || endings == NULL ? FC_ENOMEM : FC_OK;
	if (code == FC_OK)
		code = fc_heap_init(&nodes, &alloc, plan->opts.node_count, is_less_busy, NULL);
	if (code == FC_OK)
		code = fc_heap_init(&ends, &alloc, plan->session_count, ends_before, NULL);
	for (uint32_t i = 0; i < plan->opts.node_count && code == FC_OK; i++) {
		counted[i].number = i;
		code = fc_heap_push(&nodes, &counted[i].node);
	}
	if (code == FC_OK)
		spread(plan, &nodes, &ends, endings, node_of);
	if (nodes.nodes != NULL)
		fc_heap_deinit(&nodes);
	if (ends.nodes != NULL)
		fc_heap_deinit(&ends);
	free(counted);
	free(endings);
	return code;
}

static uint32_t hashed_node(const struct fc_fleet_plan *plan, const struct fc_fleet_session *session)
{
	uint64_t state = 0x464c4545u + session->copy;
	for (const char *letter = plan->opts.trace->sessions[session->session].name; *letter != '\0'; letter++) {
		state ^= (uint8_t)*letter;
		state = fc_random_split(&state);
	}
	return (uint32_t)(state % plan->opts.node_count);
}

/* The node of each session, by place in plan->sessions. */
static int route_sessions(const struct fc_fleet_plan *plan, enum fc_route route, uint32_t *node_of)
{
	if (route == FC_ROUTE_LEAST)
		return route_least(plan, node_of);
	for (uint64_t i = 0; i < plan->session_count; i++)
		node_of[i] = hashed_node(plan, &plan->sessions[i]);
	return FC_OK;
}

/* By copy and session of the trace, since that is what a request knows. */
static int route_by_session(const struct fc_fleet_plan *plan, enum fc_route route, uint32_t *node_of_request)
{
	const struct fc_trace *trace = plan->opts.trace;
	uint32_t *node_of = calloc(plan->session_count, sizeof(*node_of));
	uint32_t *by_name = calloc((size_t)plan->copy_count * trace->session_count, sizeof(*by_name));
	int code = node_of == NULL || by_name == NULL ? FC_ENOMEM : route_sessions(plan, route, node_of);
	for (uint64_t i = 0; i < plan->session_count && code == FC_OK; i++) {
		const struct fc_fleet_session *session = &plan->sessions[i];
		by_name[(size_t)session->copy * trace->session_count + session->session] = node_of[i];
	}
	for (uint64_t i = 0; i < plan->request_count && code == FC_OK; i++) {
		const struct fc_fleet_request *request = &plan->requests[i];
		uint32_t session = trace->requests[request->request].session;
		node_of_request[i] = by_name[(size_t)request->copy * trace->session_count + session];
	}
	free(node_of);
	free(by_name);
	return code;
}

static void route_by_request(const struct fc_fleet_plan *plan, enum fc_route route, uint32_t *node_of_request)
{
	struct fc_random random;
	fc_random_init(&random, plan->opts.seed + 1);
	for (uint64_t i = 0; i < plan->request_count; i++)
		node_of_request[i] =
			(uint32_t)(route == FC_ROUTE_RANDOM ? fc_random_below(&random, plan->opts.node_count)
							    : i % plan->opts.node_count);
}

/* Counting sort; requests stay in the order of their arrival. */
static void list_by_node(struct fc_fleet_plan *plan, const uint32_t *node_of_request)
{
	uint64_t *starts = plan->node_starts;
	memset(starts, 0, (plan->opts.node_count + 1ull) * sizeof(*starts));
	for (uint64_t i = 0; i < plan->request_count; i++)
		starts[node_of_request[i] + 1]++;
	for (uint32_t node = 0; node < plan->opts.node_count; node++)
		starts[node + 1] += starts[node];
	for (uint64_t i = 0; i < plan->request_count; i++)
		plan->node_requests[starts[node_of_request[i]]++] = i;
	memmove(starts + 1, starts, plan->opts.node_count * sizeof(*starts));
	starts[0] = 0;
}

int fc_fleet_plan_route(struct fc_fleet_plan *plan, enum fc_route route)
{
	uint32_t *node_of_request = calloc(plan->request_count, sizeof(*node_of_request));
	if (plan->node_requests == NULL)
		plan->node_requests = calloc(plan->request_count, sizeof(*plan->node_requests));
	int code = node_of_request == NULL || plan->node_requests == NULL ? FC_ENOMEM : FC_OK;
	if (code == FC_OK && (route == FC_ROUTE_SESSION || route == FC_ROUTE_LEAST))
		code = route_by_session(plan, route, node_of_request);
	else if (code == FC_OK)
		route_by_request(plan, route, node_of_request);
	if (code == FC_OK)
		list_by_node(plan, node_of_request);
	free(node_of_request);
	return code;
}

#include "replay/arrivals.h"

#include "base/random.h"
#include "host/alloc.h"

#include <math.h>
#include <stdlib.h>

static uint32_t number_of(const struct fc_arrivals *arrivals, const struct fc_heap_node *node)
{
	return (uint32_t)(fc_container_of(node, struct fc_arrival, node) - arrivals->requests);
}

static bool comes_before(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct fc_arrival *first = fc_container_of(a, struct fc_arrival, node);
	const struct fc_arrival *second = fc_container_of(b, struct fc_arrival, node);
	(void)context;
	return first->due_ns != second->due_ns ? first->due_ns < second->due_ns : first < second;
}

/* Three years, the longest trace, at a pace that is slower still. */
#define LAST_NS 0x1p62

/* By the trace's clock. */
static void set_trace_times(struct fc_arrivals *arrivals, const struct fc_trace *trace, double speed, uint64_t start_ns)
{
	for (uint32_t i = 0; i < arrivals->request_count; i++)
		arrivals->requests[i].due_ns =
			start_ns + (uint64_t)fmin((double)trace->requests[i].arrival_ns / speed, LAST_NS);
}

/* Without a rate all are due at once, and the trace's order decides. */
static void set_times(struct fc_arrivals *arrivals, double rate_per_s, uint64_t seed, uint64_t start_ns)
{
	struct fc_random random;
	double after_s = 0;
	fc_random_init(&random, seed);
	for (uint32_t i = 0; i < arrivals->request_count; i++) {
		if (arrivals->is_paced)
			after_s -= log(1 - fc_random_unit(&random)) / rate_per_s;
		arrivals->requests[i].due_ns = start_ns + (uint64_t)(after_s * 1e9);
	}
}

static void link_sessions(struct fc_arrivals *arrivals, const struct fc_trace *trace)
{
	for (uint32_t i = 0; i < trace->request_count; i++)
		arrivals->requests[i].session_next = FC_TRACE_NONE;
	for (uint32_t i = 0; i < trace->session_count; i++) {
		const uint32_t *numbers = trace->session_requests + trace->sessions[i].requests_start;
		for (uint32_t j = 0; j + 1 < trace->sessions[i].request_count; j++)
			arrivals->requests[numbers[j]].session_next = numbers[j + 1];
	}
}

static void push(struct fc_arrivals *arrivals, uint32_t request)
{
	fc_check(fc_heap_push(&arrivals->heap, &arrivals->requests[request].node) == FC_OK);
}

static void push_first_ones(struct fc_arrivals *arrivals, const struct fc_trace *trace)
{
	for (uint32_t i = 0; i < trace->session_count; i++)
		push(arrivals, trace->session_requests[trace->sessions[i].requests_start]);
	for (uint32_t i = 0; i < trace->request_count; i++)
		if (trace->requests[i].session == FC_TRACE_NONE)
			push(arrivals, i);
}

int fc_arrivals_init(struct fc_arrivals *arrivals, const struct fc_trace *trace, struct fc_pace pace, uint64_t seed,
		     uint64_t start_ns)
{
	struct fc_alloc alloc = fc_alloc_system();
	*arrivals = (struct fc_arrivals){
		.request_count = trace->request_count,
		.is_paced = fc_pace_is_set(pace),
	};
	arrivals->requests = calloc((size_t)trace->request_count + 1, sizeof(*arrivals->requests));
	if (arrivals->requests == NULL)
		return FC_ENOMEM;
	int code = fc_heap_init(&arrivals->heap, &alloc, trace->request_count + 1ull, comes_before, NULL);
	if (code != FC_OK) {
		free(arrivals->requests);
		arrivals->requests = NULL;
		return code;
	}
	if (pace.speed > 0)
		set_trace_times(arrivals, trace, pace.speed, start_ns);
	else
		set_times(arrivals, pace.rate_per_s, seed, start_ns);
	link_sessions(arrivals, trace);
	push_first_ones(arrivals, trace);
	return FC_OK;
}

void fc_arrivals_deinit(struct fc_arrivals *arrivals)
{
	if (arrivals->requests == NULL)
		return;
	fc_heap_deinit(&arrivals->heap);
	free(arrivals->requests);
	arrivals->requests = NULL;
}

bool fc_arrivals_peek(const struct fc_arrivals *arrivals, uint32_t *request, uint64_t *due_ns)
{
	const struct fc_heap_node *node = fc_heap_peek(&arrivals->heap);
	if (node == NULL)
		return false;
	*request = number_of(arrivals, node);
	*due_ns = arrivals->requests[*request].due_ns;
	return true;
}

void fc_arrivals_pop(struct fc_arrivals *arrivals)
{
	(void)fc_heap_pop(&arrivals->heap);
}

void fc_arrivals_done(struct fc_arrivals *arrivals, uint32_t request, uint64_t now_ns)
{
	uint32_t next = arrivals->requests[request].session_next;
	if (next == FC_TRACE_NONE)
		return;
	if (arrivals->is_paced)
		arrivals->requests[next].due_ns = fc_max_u64(arrivals->requests[next].due_ns, now_ns);
	push(arrivals, next);
}

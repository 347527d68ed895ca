/* Which request comes next, and when: the trace's order, with the requests of a session one after the other.
 *
 * A session has one request waiting at a time; its next one is added when that is done. Requests without a session all
 * wait from the start. */
#ifndef FC_REPLAY_ARRIVALS_H
#define FC_REPLAY_ARRIVALS_H

#include "base/heap.h"
#include "trace/trace.h"

struct fc_arrival {
	struct fc_heap_node node;
	uint64_t due_ns;
	uint32_t session_next; /* the session's request behind it, or FC_TRACE_NONE */
};

struct fc_arrivals {
	struct fc_heap heap;         /* of those that wait, by due time and place in the trace */
	struct fc_arrival *requests; /* by number in the trace */
	uint32_t request_count;
	bool is_paced; /* by a rate; else all are due at once, and only the trace's order counts */
};

/* Times start at `start_ns`. FC_ENOMEM. */
FC_MUST_USE int fc_arrivals_init(struct fc_arrivals *arrivals, const struct fc_trace *trace, double rate_per_s,
				 uint64_t seed, uint64_t start_ns);
void fc_arrivals_deinit(struct fc_arrivals *arrivals);

/* The request that is due first; false when none waits. */
bool fc_arrivals_peek(const struct fc_arrivals *arrivals, uint32_t *request, uint64_t *due_ns);
void fc_arrivals_pop(struct fc_arrivals *arrivals);

/* A request is done: its session's next one arrives when it is due, but not before now. */
void fc_arrivals_done(struct fc_arrivals *arrivals, uint32_t request, uint64_t now_ns);

#endif

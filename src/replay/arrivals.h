/* Which request comes next, and when: the trace's order, with the requests of a session one after the other.
 *
 * Requests are due by the trace's own times, by a rate, or all at once; a pace says which. A session has one request
 * waiting at a time; its next one is added when that is done. Requests without a session all wait from the start. */
#ifndef FC_REPLAY_ARRIVALS_H
#define FC_REPLAY_ARRIVALS_H

#include "base/heap.h"
#include "trace/trace.h"

#include <math.h>

struct fc_pace {
	double rate_per_s; /* a random time whose mean is the request's place divided by this; INFINITY: at once */
	double speed;      /* above 0: the trace's times divided by this, instead of the rate */
};

static inline bool fc_pace_is_set(struct fc_pace pace)
{
	return pace.speed > 0 || isfinite(pace.rate_per_s);
}

struct fc_arrival {
	struct fc_heap_node node;
	uint64_t due_ns;
	uint32_t session_next; /* the session's request behind it, or FC_TRACE_NONE */
};

struct fc_arrivals {
	struct fc_heap heap;         /* of those that wait, by due time and place in the trace */
	struct fc_arrival *requests; /* by number in the trace */
	uint32_t request_count;
	bool is_paced; /* else all are due at once, and only the trace's order counts */
};

/* Times start at `start_ns`. FC_ENOMEM. */
FC_MUST_USE int fc_arrivals_init(struct fc_arrivals *arrivals, const struct fc_trace *trace, struct fc_pace pace,
				 uint64_t seed, uint64_t start_ns);
void fc_arrivals_deinit(struct fc_arrivals *arrivals);

/* The request that is due first; false when none waits. */
bool fc_arrivals_peek(const struct fc_arrivals *arrivals, uint32_t *request, uint64_t *due_ns);
void fc_arrivals_pop(struct fc_arrivals *arrivals);

/* A request is done: its session's next one arrives when it is due, but not before now. */
void fc_arrivals_done(struct fc_arrivals *arrivals, uint32_t request, uint64_t now_ns);

#endif

/* A fleet's requests and who serves which: a trace repeated to as many sessions as are needed, and a router.
 *
 * Copy c of a trace has sessions of its own with content of its own: its ids are moved by c times the trace's bound,
 * but those of shared prompts are the same in all copies, as a tool's prompt is. Sessions are drawn copy by copy, each
 * time shuffled by the seed, and handed to lanes as trace.h describes: `concurrency` lanes for each node. The plan
 * keeps the first `request_count` requests by arrival.
 *
 *   session      a session's node follows from its name: what needs no state in the router
 *   least        a new session goes to the node with the fewest active sessions, and stays there
 *   round-robin  each request goes to the next node, whatever the nodes hold
 *   random       each request goes to any node
 *
 * The last two ignore the cache: what a session left is on another node. A session is active from its first to its last
 * recorded request. With them a session's request does not wait for one that another node serves, which a client would;
 * so they look a little better than they are.
 *
 * The plan is a function of trace, options and seed. A node's part of it is a trace like any other. */
#ifndef FC_REPLAY_FLEET_PLAN_H
#define FC_REPLAY_FLEET_PLAN_H

#include "trace/trace.h"

enum fc_route { FC_ROUTE_SESSION, FC_ROUTE_LEAST, FC_ROUTE_ROUND_ROBIN, FC_ROUTE_RANDOM, FC_ROUTE_COUNT };

const char *fc_route_name(enum fc_route route);

struct fc_fleet_plan_opts {
	const struct fc_trace *trace; /* that names sessions */
	uint32_t node_count;
	uint64_t request_count;
	uint64_t concurrency; /* active sessions of a node */
	uint64_t seed;
};

/* One request of the fleet: request `request` of the trace, in copy `copy`. */
struct fc_fleet_request {
	uint64_t arrival_ns;
	uint32_t copy;
	uint32_t request;
};

/* One session of the fleet. */
struct fc_fleet_session {
	uint64_t start_ns, end_ns;
	uint32_t copy, session;
};

struct fc_fleet_plan {
	struct fc_fleet_plan_opts opts;
	struct fc_fleet_session *sessions; /* by start */
	uint64_t session_count;
	uint32_t copy_count;
	struct fc_fleet_request *requests; /* by arrival */
	uint64_t request_count;
	uint64_t shared_bound; /* ids below it are the same in all copies */
	/* of the route that was asked for last */
	uint64_t *node_starts;   /* node_count + 1 */
	uint64_t *node_requests; /* places in `requests`, node by node, each by arrival */
};

/* FC_EINVAL with what is allowed, FC_ENOMEM. fc_fleet_plan_deinit() also after a failure. */
FC_MUST_USE int fc_fleet_plan_init(struct fc_fleet_plan *plan, const struct fc_fleet_plan_opts *opts,
				   struct fc_error *error);
void fc_fleet_plan_deinit(struct fc_fleet_plan *plan);

/* Gives every request to a node. FC_ENOMEM. */
FC_MUST_USE int fc_fleet_plan_route(struct fc_fleet_plan *plan, enum fc_route route);

static inline uint64_t fc_fleet_node_count_of(const struct fc_fleet_plan *plan, uint32_t node)
{
	return plan->node_starts[node + 1] - plan->node_starts[node];
}

/* What one node serves, as a trace to be freed with fc_trace_free(). FC_ENOMEM. */
FC_MUST_USE int fc_fleet_node_trace(const struct fc_fleet_plan *plan, uint32_t node, struct fc_trace **trace);

#endif

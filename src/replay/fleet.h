/* A simulated fleet: many nodes, each whole, each with its own cache, behind a router (fleet_plan.h).
 *
 * Once it is known who serves what, nodes have nothing to do with one another, so they run one after the other in as
 * many processes as there are cores. A process holds one node at a time, made when its turn comes and gone afterwards,
 * so memory does not grow with the fleet beyond the plan (some 40 bytes a request) and a summary of each node. Sums are
 * sums of integers: results do not depend on how many processes there are.
 *
 * The rate is a node's on average: one that is given more requests than others gets them as much faster, so that all
 * nodes are at work for the same time. Memory and SSD are each node's. */
#ifndef FC_REPLAY_FLEET_H
#define FC_REPLAY_FLEET_H

#include "replay/engine.h"
#include "replay/fleet_plan.h"

#include <jansson.h>
#include <stdio.h>

struct fc_fleet_opts {
	const struct fc_trace *trace;
	const struct fc_geometry *geometry;
	const struct fc_hardware *hardware;
	const struct fc_config *config; /* node_count, request_count, routes, policies and the rest */
	uint64_t memory_bytes, ssd_bytes;
	void (*progress_cb)(void *context, uint64_t done); /* nodes, over all runs; may be NULL */
	void *context;
};

/* What one node of a run did. */
struct fc_fleet_node {
	uint64_t requests, sessions;
	uint64_t blocks, possible_blocks, delivered_blocks;
	uint64_t ttft_mean_ns, ttft_p50_ns, ttft_p99_ns; /* 0 without requests */
	uint64_t media_bytes[FC_MEDIUM_COUNT];
	uint64_t ssd_bytes_read, ssd_bytes_written;
	struct fc_error error;
};

/* One policy behind one router. */
struct fc_fleet_run {
	const struct fc_policy_type *policy;
	enum fc_route route;
	struct fc_outcome *outcome;  /* of all nodes together, but for what happened when */
	struct fc_fleet_node *nodes; /* shared memory, as the outcomes of batches */
	uint64_t real_ns;
};

struct fc_fleet {
	struct fc_fleet_opts opts;
	struct fc_fleet_plan plan;
	struct fc_fleet_run *runs;
	size_t run_count;
	struct fc_outcome *batches; /* shared memory: of the run under way */
	size_t batch_count, batch_nodes;
	uint64_t done;
};

/* FC_EINVAL with what is allowed, FC_ENOMEM. fc_fleet_deinit() also after a failure. */
FC_MUST_USE int fc_fleet_init(struct fc_fleet *fleet, const struct fc_fleet_opts *opts, struct fc_error *error);
void fc_fleet_deinit(struct fc_fleet *fleet);

/* How many nodes are simulated, over all runs. */
uint64_t fc_fleet_total(const struct fc_fleet *fleet);

/* Runs all policies behind all routers. The error of the first node that failed. */
FC_MUST_USE int fc_fleet_run(struct fc_fleet *fleet, struct fc_error *error);

/* A table for people. FC_ENOMEM, FC_EIO. */
FC_MUST_USE int fc_fleet_print(const struct fc_fleet *fleet, FILE *file);
/* The same for machines, and every node; NULL without memory. What would be 0/0 is null. */
json_t *fc_fleet_json(const struct fc_fleet *fleet);

#endif

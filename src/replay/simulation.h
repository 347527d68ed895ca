/* Several simulated runs: every policy at every rate and with every amount of memory, in processes of their own, as
 * many at once as there are cores. A run shares nothing with the others but the trace, so its result does not depend on
 * how many there are. */
#ifndef FC_REPLAY_SIMULATION_H
#define FC_REPLAY_SIMULATION_H

#include "replay/engine.h"

#include <jansson.h>
#include <stdio.h>

struct fc_simulation_opts {
	const struct fc_trace *trace;
	const struct fc_geometry *geometry;
	const struct fc_hardware *hardware;
	const struct fc_config *config;
	uint64_t memory_bytes, ssd_bytes;                  /* memory: unless config->memories lists others */
	void (*progress_cb)(void *context, uint64_t done); /* runs; may be NULL */
	void *context;
};

struct fc_simulated {
	const struct fc_policy_type *policy;
	const struct fc_trace *trace;
	const struct fc_config *config;
	uint64_t memory_bytes, ssd_bytes;
	double rate_per_s;
	struct fc_outcome *outcome;
	struct fc_arena_map *maps;         /* FC_MAP_MOMENTS, in shared memory; NULL: none is wanted */
	const struct fc_path_table *paths; /* made by fc_simulation_run() */
};

struct fc_simulation {
	struct fc_simulation_opts opts;
	struct fc_simulated *runs; /* by memory, then by rate, then in the order of the policies */
	size_t run_count;
	size_t policy_count, rate_count; /* of planned ones; the rest of run_count is amounts of memory */
	struct fc_outcome *outcomes;     /* shared memory */
	struct fc_arena_map *maps;       /* the same, once fc_simulation_want_maps() has been called */
	size_t map_count;
	struct fc_path_table *tables; /* one for each trace */
	size_t table_count;
};

/* Plans the runs that config->policies, config->rates and config->memories ask for. FC_EINVAL with what is allowed,
 * FC_ENOMEM. */
FC_MUST_USE int fc_simulation_init(struct fc_simulation *simulation, const struct fc_simulation_opts *opts,
				   struct fc_error *error);
/* `count` runs like `model`, to be changed one by one before they are run. FC_ENOMEM. */
FC_MUST_USE int fc_simulation_init_runs(struct fc_simulation *simulation, const struct fc_simulation_opts *opts,
					const struct fc_simulated *model, size_t count, struct fc_error *error);
/* The last `policy_count` runs, at the last rate with the last memory, are to draw where sessions lie. FC_ENOMEM. */
FC_MUST_USE int fc_simulation_want_maps(struct fc_simulation *simulation);
void fc_simulation_deinit(struct fc_simulation *simulation);

/* Runs them all, config->job_count at once. The error of the first that failed, in their order; the others' outcomes
 * are there. */
FC_MUST_USE int fc_simulation_run(struct fc_simulation *simulation, struct fc_error *error);

/* A table for people. FC_ENOMEM, FC_EIO. */
FC_MUST_USE int fc_simulation_print(const struct fc_simulation *simulation, FILE *file);
/* The same for machines; NULL without memory. What would be 0/0 is null. */
json_t *fc_simulation_json(const struct fc_simulation *simulation);

#endif

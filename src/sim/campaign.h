/* Many seeds on all cores, each core a process of its own: a core that traps, or never returns, is a finding like any
 * other and ends only its own process.
 *
 * The smallest seed that breaks is reported, with the shortest prefix of its operations that still breaks it. */
#ifndef FC_SIM_CAMPAIGN_H
#define FC_SIM_CAMPAIGN_H

#include "sim/run.h"

struct fc_sim_campaign {
	bool is_wired;
	uint64_t first_seed, last_seed;
	uint64_t operation_count;
	struct fc_sim_faults faults;
	FILE *log; /* of a single seed; NULL: none */
	unsigned job_count;
	unsigned watchdog_s; /* real time after which a seed counts as hanging inside one call; no seed comes near it */
};

struct fc_sim_verdict {
	bool is_broken;
	uint64_t seed;
	uint64_t operation_count; /* that still break it */
	char text[FC_ERROR_TEXT_BYTES];
	struct fc_sim_counts counts; /* of all seeds */
	uint64_t seed_count;
	uint64_t digest; /* of all logs */
};

/* FC_ESYSTEM with text when processes cannot be started. */
FC_MUST_USE int fc_sim_campaign_run(const struct fc_sim_campaign *campaign, struct fc_sim_verdict *verdict,
				    struct fc_error *error);

#endif

/* Figures of simulated runs as the page shows them, and how they are printed. What would be 0/0 is not a number. */
#ifndef FC_REPLAY_SIMULATION_NUMBERS_H
#define FC_REPLAY_SIMULATION_NUMBERS_H

#include "replay/simulation.h"

#include <math.h>
#include <string.h>

/* The runs that the page compares: those at the last rate with the last memory stand for one load. */
struct fc_simulation_shape {
	size_t policy_count, rate_count, memory_count;
	const struct fc_simulated *last; /* one for each policy */
};

struct fc_simulation_shape fc_simulation_shape(const struct fc_simulation *simulation);

static inline bool fc_run_has_ended(const struct fc_simulated *run)
{
	return run->outcome->error.code == FC_OK;
}

/* Delivered blocks, of the input and of what any cache could have had. */
double fc_run_of_input(const struct fc_outcome *outcome);
double fc_run_of_possible(const struct fc_outcome *outcome);
double fc_run_mean_s(const struct fc_histogram *histogram);
double fc_run_percentile_s(const struct fc_histogram *histogram, double percent);
double fc_run_ttft_mean_s(const struct fc_outcome *outcome);
double fc_run_ttft_p99_s(const struct fc_outcome *outcome);

/* "402 ms" and "94.20 %", or "n/a" for what is no number; on an axis, where values are round, "10 ms" and "1 s". */
void fc_print_seconds(char *string, size_t bytes, double value);
void fc_print_share(char *string, size_t bytes, double value);
void fc_print_axis_seconds(char *string, size_t bytes, double value);

/* FlatCake without one of its mechanisms. */
static inline bool fc_policy_is_variant(const struct fc_policy_type *policy)
{
	return strncmp(policy->name, "flat-", 5) == 0;
}

static inline bool fc_policy_is_flat(const struct fc_policy_type *policy)
{
	return strcmp(policy->name, "flat") == 0;
}

#endif

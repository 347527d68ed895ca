/* Tuning: which settings serve a trace best, found by simulated replay.
 *
 * A search by coordinates. Each setting has a short list of values worth trying; all of them are simulated on the
 * training part of the trace, the others unchanged, and the best is taken if it is better by more than the tolerance.
 * That goes on, setting after setting, until a round changes nothing. Then the budgets shrink, by halves, as far as the
 * objective stays within the tolerance of what was reached: memory and SSD that do nothing are not asked for.
 *
 * A search finds what fits its trace, noise included. So what was found is tried on sessions that were held out, next
 * to the settings it started from; if it is worse there by more than the tolerance, the start is what is recommended.
 *
 * Deterministic: equal traces, profiles and settings give equal results, on any number of cores. */
#ifndef FC_REPLAY_TUNE_H
#define FC_REPLAY_TUNE_H

#include "replay/simulation.h"

#define FC_TUNE_TEXT_BYTES 40
#define FC_TUNE_STEPS_MAX 64

struct fc_tune_opts {
	const struct fc_trace *training, *held_out;
	const struct fc_geometry *geometry;
	const struct fc_hardware *hardware;
	const struct fc_config *config; /* where the search starts; its budgets are the most that may be used */
	enum fc_tune_objective objective;
	double tolerance;            /* of the objective; of hit rates: points of 1 */
	uint64_t writes_per_day_max; /* settings that write more to SSD are not taken; 0: no limit */
	void (*step_cb)(void *context, const char *setting); /* before each; may be NULL */
	void *context;
};

struct fc_tune_score {
	double cost; /* what is made small: seconds, the share that was not delivered, or bytes */
	double ttft_mean_s, ttft_p99_s;
	double hit_rate; /* delivered, of all input blocks */
	double writes_per_day;
};

/* One setting that was changed, and what became of the objective on the training part. */
struct fc_tune_step {
	char setting[FC_TUNE_TEXT_BYTES]; /* as in the YAML file: "agent_context", "high_watermark low_watermark" */
	char value[FC_TUNE_TEXT_BYTES];   /* values with spaces between them */
	struct fc_tune_score score;
};

struct fc_tune_result {
	struct fc_tune_step steps[FC_TUNE_STEPS_MAX]; /* in the order in which they were taken */
	size_t step_count;
	uint64_t run_count; /* simulated */
	struct fc_tune_score training_start, training_best, held_start, held_best;
	bool is_start_better; /* on the held-out part: the steps are not recommended */
	bool is_over_limit;   /* nothing that was tried keeps to writes_per_day_max on the training part */
};

/* FC_ENOMEM, or the first error of a run. */
FC_MUST_USE int fc_tune(const struct fc_tune_opts *opts, struct fc_tune_result *result, struct fc_error *error);

/* Sets what a step names, "agent_context" or two names at once, to its values. FC_EINVAL. */
FC_MUST_USE int fc_tune_set(struct fc_config *config, const char *names, const char *values, struct fc_error *error);

#endif

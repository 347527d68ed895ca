/* The published experiment (design 2.5), simulated: what its files share. */
#ifndef FC_BENCH_PAPER_H
#define FC_BENCH_PAPER_H

#include "replay/simulation.h"

#define ROWS_MAX 128
#define SWEEP_ROWS_MAX 256
#define NO_VALUE (-1.0)
#define PUBLISHED_MOONCAKE_PERCENT 87.9 /* at 0.1/s */

/* A published figure and ours. */
struct paper_row {
	char name[96];
	double published, simulated; /* NO_VALUE: none */
	double fitted;               /* the same with what fit.c has fixed; NO_VALUE: no such run */
	const char *unit;
	const char *why; /* where they differ; NULL: nothing to say */
};

/* One run of a sweep over what the article does not give. */
struct sweep_row {
	char what[64];
	char policy[48];
	double rate_per_s;
	double hit_percent, prefetch_s, ttft_mean_s, ttft_p99_s, amplification;
	uint64_t cancelled;
};

struct paper {
	struct fc_config config;
	struct fc_hardware hardware;
	struct fc_geometry geometry;
	struct paper_row rows[ROWS_MAX];
	size_t row_count;
	size_t fitted_count;          /* rows whose second figure is there */
	bool is_fitted;               /* rows that are added give theirs */
	uint64_t fitted_memory_bytes; /* of the node */
	double fitted_percent;        /* what Mooncake delivers with it at the lowest load */
	struct sweep_row sweeps[SWEEP_ROWS_MAX];
	size_t sweep_count;
	struct fc_error error;
};

/* One run that is wanted; pointers are borrowed. */
struct wanted {
	const char *policy;
	const char *label; /* in the sweep's table; NULL: the policy's name */
	const char *settings;
	double rate_per_s;
	uint64_t memory_bytes;
	const struct fc_trace *trace;
	struct fc_outcome *outcome; /* a copy is left here */
};

/* Runs them all on `hardware`. */
FC_MUST_USE int paper_run(struct paper *paper, const struct fc_hardware *hardware, const struct fc_geometry *geometry,
			  const struct wanted *wanted, size_t count);

/* Once for the figures as the profile has them, and in the same order once more for the fitted ones. */
void paper_add_row(struct paper *paper, double published, double simulated, const char *unit, const char *why,
		   const char *format, ...) __attribute__((format(printf, 6, 7)));
void paper_add_sweep(struct paper *paper, const struct wanted *wanted, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

double paper_hit_percent(const struct fc_outcome *outcome);
double paper_mean_s(const struct fc_histogram *histogram);
double paper_percentile_s(const struct fc_histogram *histogram, double percent);

/* fit.c: every rank keeps a copy of the KV: one worker, which computes as all, and each copy's share of what a node
 * has.
 */
void paper_copy_on_all_ranks(struct fc_hardware *hardware);
/* fit.c: the copy's share of DRAM with which Mooncake delivers, at the lowest load, what is published. */
FC_MUST_USE int paper_fit_memory(struct paper *paper, const struct fc_hardware *hardware, const struct fc_trace *trace,
				 double rate_per_s, uint64_t *memory_bytes);

/* layouts.c: Llama-3.1-70B with 16K and 64K tokens of context. */
FC_MUST_USE int paper_layouts(struct paper *paper);

#endif

/* Measurements of this machine against the targets of the project: `flatcake bench`.
 *
 * A speed alone says little: disks differ, and a shared machine is slower at noon. So whatever has a limit is measured
 * together with that limit (fio on the same file system, memcpy() of the same bytes) in pairs, right after each other,
 * in alternating order, and what is reported is the median of the pairs' ratios.
 *
 *   pair 0    ours  peer
 *   pair 1    peer  ours          value = median of ours / peer over the pairs
 *   pair 2    ours  peer
 *
 * Each measurement works in a folder of its own below `dir`, which is removed afterwards, and adds one row or more to
 * the report. */
#ifndef FC_BENCH_BENCH_H
#define FC_BENCH_BENCH_H

#include "base/error.h"

#define FC_BENCH_ROWS_MAX 64
#define FC_BENCH_NOTE_BYTES 256
#define FC_BENCH_PATH_BYTES 4352

enum fc_bench_goal { FC_BENCH_AT_LEAST, FC_BENCH_AT_MOST };

/* One line of the result. `runs` and `peer_runs` are what was measured, in `runs_unit`; the value is made of them. */
struct fc_bench_row {
	const char *name;
	const char *summary;
	const char *unit;
	const char *runs_unit;
	enum fc_bench_goal goal;
	double target;
	bool has_value; /* false: `note` says why there is none */
	double value;
	char note[FC_BENCH_NOTE_BYTES];
	double *runs, *peer_runs; /* peer_runs stays NULL where there is no peer */
	uint64_t run_count;
};

struct fc_bench_report {
	struct fc_bench_row rows[FC_BENCH_ROWS_MAX];
	size_t row_count;
};

struct fc_bench {
	const char *dir;            /* existing folder on the disk that is measured */
	uint64_t size_bytes;        /* of the session; other sizes are in proportion to it */
	uint64_t run_count;         /* pairs */
	uint64_t seed;              /* of keys, slots and the order of reading */
	struct fc_store_opts store; /* how the store does its I/O; geometry and budgets are the measurements' */
	struct {
		const char *path; /* of a recorded trace, or NULL */
		const char *model;
		uint64_t scale, ssd_bytes, memory_bytes;
	} trace; /* what is replayed, and how */
	struct fc_bench_report *report;
	/* called before each run, to show that something happens; false: stop */
	bool (*step_cb)(void *context, const char *measurement);
	void *context;
	struct fc_bench_profile *profile; /* for fc_bench_profile() */
	/* the measurement's own */
	const char *measurement;
	char work_dir[4096];
};

struct fc_bench_measurement {
	const char *name;
	const char *summary;
	int (*run)(struct fc_bench *bench, struct fc_error *error);
};

/* Measurement `index`, or NULL behind the last. */
const struct fc_bench_measurement *fc_bench_at(size_t index);

/* Runs one measurement in a new folder below bench->dir and removes that. FC_ECANCELED when step_cb said stop. */
int fc_bench_run(struct fc_bench *bench, const struct fc_bench_measurement *measurement,
		 struct fc_error *error) FC_MUST_USE;

void fc_bench_report_deinit(struct fc_bench_report *report);

/* Whether the value reaches the target. */
bool fc_bench_row_passes(const struct fc_bench_row *row);

double fc_bench_median(const double *values, uint64_t count);
/* The smallest value that is not below `percent` of them, 0 to 99. */
double fc_bench_percentile(const double *values, uint64_t count, uint64_t percent);

/* ---- for the measurements ---- */

/* A new row with room for bench->run_count runs; NULL without memory. */
struct fc_bench_row *fc_bench_add_row(struct fc_bench *bench, const struct fc_bench_row *row, bool has_peer);
/* The median of runs[i] / peer_runs[i] becomes the value, and both medians are noted. */
void fc_bench_set_ratio(struct fc_bench_row *row);
/* The median of the runs becomes the value. */
void fc_bench_set_median(struct fc_bench_row *row);
void fc_bench_note(struct fc_bench_row *row, const char *format, ...) FC_PRINTF(2, 3);

/* FC_ECANCELED when the caller wants no further run. */
int fc_bench_step(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;

/* Does `ours` and `peer` for each run, in alternating order. `peer` may be NULL. */
typedef int (*fc_bench_run_cb)(void *context, uint64_t run, struct fc_error *error);
int fc_bench_pairs(struct fc_bench *bench, fc_bench_run_cb ours, fc_bench_run_cb peer, void *context,
		   struct fc_error *error) FC_MUST_USE;

/* `whole` at the default size of 1 GiB, and in proportion below it; at least `least`. */
uint64_t fc_bench_scaled(const struct fc_bench *bench, uint64_t whole, uint64_t least);

double fc_bench_seconds(void);     /* monotonic */
double fc_bench_cpu_seconds(void); /* of this process, all threads, user and system */

/* The measurements. */
int fc_bench_load(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_save(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_interleaved(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_mixed(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_memory(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_lookup(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_open(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_capacity(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_churn(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_full(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_shared(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;
int fc_bench_trace(struct fc_bench *bench, struct fc_error *error) FC_MUST_USE;

#endif

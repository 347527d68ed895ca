/* What the published evaluation left open, simulated: what the files of this folder share. */
#ifndef FC_BENCH_OPEN_H
#define FC_BENCH_OPEN_H

#include "cli/table.h"
#include "replay/simulation.h"

#define TRACES_MAX 8
#define GIB (1ull << 30)
#define NO_VALUE (-1.0)

/* A trace and the load that it is replayed at. */
struct subject {
	const char *name;
	struct fc_trace *trace;
	struct fc_geometry geometry;
	double rate_per_s;
	bool is_agents; /* its mean context is above --agent-context */
	bool is_cut;    /* only the beginning was taken */
};

struct open {
	struct fc_config config;
	struct fc_hardware hardware;
	struct subject subjects[TRACES_MAX];
	size_t subject_count;
	json_t *rows;
	struct fc_error error;
};

/* One run that is wanted; the outcome is left in it. */
struct wanted {
	const char *policy;
	uint64_t memory_bytes;
	double rate_per_s;
	struct fc_outcome *outcome;
};

/* Runs them all on `hardware`, as many at once as there are cores. */
FC_MUST_USE int open_run(struct open *open, const struct subject *subject, const struct fc_hardware *hardware,
			 struct wanted *wanted, size_t count);

/* Room for the outcomes of so many wanted runs, to be freed with free(). */
FC_MUST_USE int open_outcomes(struct open *open, struct wanted *wanted, size_t count, struct fc_outcome **outcomes);

/* One run in the JSON. */
void open_note(struct open *open, const char *section, const struct subject *subject, const struct wanted *wanted);

double open_mean_ms(const struct fc_histogram *histogram);
double open_percentile_ms(const struct fc_histogram *histogram, double percent);
double open_share(uint64_t part, uint64_t whole);
void open_ms_cell(struct fc_table *table, double value_ms);
void open_titles(struct fc_table *table, const char *const *titles, size_t count);
void open_heading(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* beside.c: every alternative on each trace; and the DRAM at which tiering catches up. */
FC_MUST_USE int open_beside(struct open *open);
FC_MUST_USE int open_crossover(struct open *open);
/* chats.c: short histories on SSD, in memory, and computed again. */
FC_MUST_USE int open_short_chats(struct open *open);
/* mixed.c: agents and chats on one node. */
FC_MUST_USE int open_mixed(struct open *open);

#endif

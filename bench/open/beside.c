/* Every alternative on each trace at one budget; and how much DRAM a tiered cache needs to be as good as flat. */
#include "bench/open/open.h"

#include <stdlib.h>
#include <string.h>

#define AS_GOOD 1.02 /* a mean TTFT no more than so much longer counts as caught up */

static const char *const policies[] = {"flat",         "mooncake", "mooncake-gds", "lmcache",      "lmcache-raw",
				       "vllm-offload", "hicache",  "recompute",    "infinite-dram"};

/* ---- beside the alternatives ---- */

static void add_line(struct fc_table *table, const struct wanted *wanted)
{
	const struct fc_outcome *outcome = wanted->outcome;
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", wanted->policy);
	fc_table_cell(table, "%s", fc_human_percent(outcome->delivered_blocks, outcome->blocks, text));
	open_ms_cell(table, open_mean_ms(&outcome->ttft));
	open_ms_cell(table, open_percentile_ms(&outcome->ttft, 50));
	open_ms_cell(table, open_percentile_ms(&outcome->ttft, 99));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->media_bytes[FC_MEMORY], text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->bytes_read, text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->drive_bytes_written, text));
}

static const struct wanted *best_of_the_others(const struct wanted *wanted)
{
	const struct wanted *best = NULL;
	for (size_t i = 1; i < fc_array_len(policies); i++) {
		bool is_bound =
			strcmp(wanted[i].policy, "infinite-dram") == 0 || strcmp(wanted[i].policy, "recompute") == 0;
		double mean = open_mean_ms(&wanted[i].outcome->ttft);
		if (!is_bound && (best == NULL || mean < open_mean_ms(&best->outcome->ttft)))
			best = &wanted[i];
	}
	return best;
}

static void conclude(const struct wanted *wanted)
{
	const struct wanted *best = best_of_the_others(wanted);
	double flat = open_mean_ms(&wanted[0].outcome->ttft), other = open_mean_ms(&best->outcome->ttft);
	double recompute = open_mean_ms(&wanted[fc_array_len(policies) - 2].outcome->ttft);
	printf("\nThe best of the alternatives by mean TTFT is %s. ", best->policy);
	if (other > flat * AS_GOOD)
		printf("flat is %.2f times as fast.\n", other / flat);
	else if (flat > other * AS_GOOD)
		printf("flat is slower, by %.1f %%: it does not help here.\n", 100 * (flat / other - 1));
	else
		printf("flat is level with it (%+.1f %%): it does not help here.\n", 100 * (flat / other - 1));
	printf("Against computing everything again, flat is %.2f times as fast; of what was possible it delivers %.2f "
	       "%%.\n",
	       recompute / flat,
	       100 * open_share(wanted[0].outcome->delivered_blocks, wanted[0].outcome->possible_blocks));
}

static int beside(struct open *open, const struct subject *subject)
{
	static const char *const titles[] = {"policy", "of input",  "TTFT mean", "p50",
					     "p99",    "from DRAM", "SSD read",  "SSD written"};
	struct wanted wanted[sizeof(policies) / sizeof(policies[0])];
	struct fc_outcome *outcomes;
	struct fc_table table;
	for (size_t i = 0; i < fc_array_len(policies); i++)
		wanted[i] = (struct wanted){.policy = policies[i],
					    .memory_bytes = open->config.memory_bytes,
					    .rate_per_s = subject->rate_per_s};
	int code = open_outcomes(open, wanted, fc_array_len(wanted), &outcomes);
	if (code == FC_OK)
		code = open_run(open, subject, &open->hardware, wanted, fc_array_len(wanted));
	if (code == FC_OK) {
		open_heading("%s: beside the alternatives", subject->name);
		fc_table_init(&table, "lrrrrrrr");
		open_titles(&table, titles, fc_array_len(titles));
		for (size_t i = 0; i < fc_array_len(wanted); i++) {
			add_line(&table, &wanted[i]);
			open_note(open, "beside", subject, &wanted[i]);
		}
		code = fc_table_print(&table, stdout);
		fc_table_deinit(&table);
		conclude(wanted);
		fflush(stdout);
	}
	free(outcomes);
	return code;
}

int open_beside(struct open *open)
{
	int code = FC_OK;
	for (size_t i = 0; i < open->subject_count && code == FC_OK; i++)
		code = beside(open, &open->subjects[i]);
	return code;
}

/* ---- the crossover ---- */

static const uint64_t budgets_gib[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
static const char *const tiered[] = {"flat", "hicache", "mooncake", "lmcache"};

enum { BUDGETS = sizeof(budgets_gib) / sizeof(budgets_gib[0]), TIERED = sizeof(tiered) / sizeof(tiered[0]) };

static int print_sweep(const struct wanted (*wanted)[TIERED])
{
	struct fc_table table;
	char text[FC_HUMAN_BYTES];
	fc_table_init(&table, "rrrrrrrrr");
	fc_table_cell(&table, "DRAM");
	for (size_t k = 0; k < TIERED; k++) {
		fc_table_cell(&table, "%s", tiered[k]);
		fc_table_cell(&table, "of input");
	}
	for (size_t i = 0; i < BUDGETS; i++) {
		fc_table_cell(&table, "%llu GiB", (unsigned long long)budgets_gib[i]);
		for (size_t k = 0; k < TIERED; k++) {
			const struct fc_outcome *outcome = wanted[i][k].outcome;
			open_ms_cell(&table, open_mean_ms(&outcome->ttft));
			fc_table_cell(&table, "%s", fc_human_percent(outcome->delivered_blocks, outcome->blocks, text));
		}
	}
	int code = fc_table_print(&table, stdout);
	fc_table_deinit(&table);
	return code;
}

/* The least budget from which on the other is as good as flat with the same budget. */
static void say_crossover(const struct wanted (*wanted)[TIERED], size_t other)
{
	size_t from = BUDGETS;
	while (from > 0 && open_mean_ms(&wanted[from - 1][other].outcome->ttft) <=
				   AS_GOOD * open_mean_ms(&wanted[from - 1][0].outcome->ttft))
		from--;
	if (from == 0)
		printf("%s is as good as flat (within %.0f %%) at every budget of the sweep.\n", tiered[other],
		       100 * (AS_GOOD - 1));
	else if (from == BUDGETS)
		printf("%s never catches up: with %llu GiB its mean TTFT is %.2f times that of flat.\n", tiered[other],
		       (unsigned long long)budgets_gib[BUDGETS - 1],
		       open_mean_ms(&wanted[BUDGETS - 1][other].outcome->ttft) /
			       open_mean_ms(&wanted[BUDGETS - 1][0].outcome->ttft));
	else
		printf("%s catches up from %llu GiB on; with 1 GiB its mean TTFT is %.2f times that of flat.\n",
		       tiered[other], (unsigned long long)budgets_gib[from],
		       open_mean_ms(&wanted[0][other].outcome->ttft) / open_mean_ms(&wanted[0][0].outcome->ttft));
}

static int crossover(struct open *open, const struct subject *subject)
{
	struct wanted wanted[BUDGETS][TIERED];
	struct fc_outcome *outcomes;
	for (size_t i = 0; i < BUDGETS; i++)
		for (size_t k = 0; k < TIERED; k++)
			wanted[i][k] = (struct wanted){.policy = tiered[k],
						       .memory_bytes = budgets_gib[i] * GIB,
						       .rate_per_s = subject->rate_per_s};
	int code = open_outcomes(open, wanted[0], BUDGETS * TIERED, &outcomes);
	if (code == FC_OK)
		code = open_run(open, subject, &open->hardware, wanted[0], BUDGETS * TIERED);
	if (code == FC_OK) {
		open_heading("%s: mean TTFT over the DRAM budget", subject->name);
		code = print_sweep(wanted);
		putchar('\n');
		for (size_t k = 1; k < TIERED; k++)
			say_crossover(wanted, k);
		for (size_t i = 0; i < BUDGETS * TIERED; i++)
			open_note(open, "crossover", subject, &wanted[i / TIERED][i % TIERED]);
		fflush(stdout);
	}
	free(outcomes);
	return code;
}

int open_crossover(struct open *open)
{
	int code = FC_OK;
	for (size_t i = 0; i < open->subject_count && code == FC_OK; i++)
		code = crossover(open, &open->subjects[i]);
	return code;
}

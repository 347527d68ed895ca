/* bench/paper/run: every row of the published evaluation (design 2.5) beside what the simulator gives for it.
 *
 * The article does not give the DRAM budget, the prefill rate, how requests arrive, or how Mooncake's staging was set
 * up. The rows use the values of the hardware profile, which were fixed before anything was compared; what is not given
 * is then swept, and the sweep is printed whole.
 *
 * Arrivals: at r requests/s, as many sessions are active at once as keep their recorded pace (a request of a session
 * follows the one before it by 157 s on average), so that load means more sessions, not faster ones. */
#include "bench/paper/paper.h"

#include "cli/json_file.h"
#include "cli/replay_trace.h"
#include "cli/table.h"
#include "trace/generate.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define RATES 10
#define GIB (1ull << 30)
#define PUBLISHED_READ_BYTES_PER_S 5000000000ull /* of a worker */

enum { FLAT, ONE_QUEUE, MOONCAKE, HICACHE, MAIN_POLICIES };

static const char *const main_policies[MAIN_POLICIES] = {"flat", "flat-one-queue", "mooncake", "hicache"};
static const uint64_t budgets_gib[] = {2, 4, 8, 16, 32, 64, 128};

/* ---- figures ---- */

double paper_hit_percent(const struct fc_outcome *outcome)
{
	return 100.0 * (double)outcome->delivered_blocks / (double)outcome->blocks;
}

double paper_mean_s(const struct fc_histogram *histogram)
{
	double mean;
	return fc_histogram_mean(histogram, &mean) ? mean / 1e9 : NO_VALUE;
}

double paper_percentile_s(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? (double)value / 1e9 : NO_VALUE;
}

static double ratio(double part, double whole)
{
	return whole > 0 && part >= 0 ? part / whole : NO_VALUE;
}

/* Bytes of a load over the time from its first to its last. */
static double read_gb_per_s(const struct fc_outcome *outcome)
{
	return ratio((double)outcome->bytes_read, (double)outcome->read_busy_ns);
}

static double amplification(const struct fc_outcome *outcome)
{
	return ratio((double)outcome->bytes_read, (double)outcome->media_bytes[FC_SSD]);
}

/* ---- rows ---- */

/* The second time, a figure goes to the row of the same name. */
static void set_fitted(struct paper *paper, const char *name, double simulated)
{
	fc_check(paper->fitted_count < paper->row_count);
	struct paper_row *row = &paper->rows[paper->fitted_count++];
	fc_check(strcmp(row->name, name) == 0);
	row->fitted = simulated;
}

void paper_add_row(struct paper *paper, double published, double simulated, const char *unit, const char *why,
		   const char *format, ...)
{
	struct paper_row row = {
		.published = published, .simulated = simulated, .fitted = NO_VALUE, .unit = unit, .why = why};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(row.name, sizeof(row.name), format, arguments);
	va_end(arguments);
	if (paper->is_fitted) {
		set_fitted(paper, row.name, simulated);
		return;
	}
	fc_check(paper->row_count < ROWS_MAX);
	paper->rows[paper->row_count++] = row;
}

void paper_add_sweep(struct paper *paper, const struct wanted *wanted, const char *format, ...)
{
	fc_check(paper->sweep_count < SWEEP_ROWS_MAX);
	struct sweep_row *row = &paper->sweeps[paper->sweep_count++];
	const struct fc_outcome *outcome = wanted->outcome;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(row->what, sizeof(row->what), format, arguments);
	va_end(arguments);
	snprintf(row->policy, sizeof(row->policy), "%s", wanted->label != NULL ? wanted->label : wanted->policy);
	row->rate_per_s = wanted->rate_per_s;
	row->hit_percent = paper_hit_percent(outcome);
	row->prefetch_s = paper_mean_s(&outcome->prefetch);
	row->ttft_mean_s = paper_mean_s(&outcome->ttft);
	row->ttft_p99_s = paper_percentile_s(&outcome->ttft, 99);
	row->amplification = amplification(outcome);
	row->cancelled = outcome->cancelled_loads;
}

/* ---- runs ---- */

int paper_run(struct paper *paper, const struct fc_hardware *hardware, const struct fc_geometry *geometry,
	      const struct wanted *wanted, size_t count)
{
	struct fc_simulation simulation;
	struct fc_config *configs = calloc(count, sizeof(*configs));
	struct fc_simulated model = {.policy = fc_policy_at(0), .ssd_bytes = hardware->ssd_bytes};
	struct fc_simulation_opts opts = {
		.trace = wanted[0].trace,
		.geometry = geometry,
		.hardware = hardware,
		.config = &paper->config,
		.memory_bytes = hardware->memory_bytes,
		.ssd_bytes = hardware->ssd_bytes,
	};
	if (configs == NULL)
		return fc_error_set(&paper->error, FC_ENOMEM, "no memory for %zu runs", count);
	int code = fc_simulation_init_runs(&simulation, &opts, &model, count, &paper->error);
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		configs[i] = paper->config;
		configs[i].policy_settings = wanted[i].settings;
		simulation.runs[i].policy = fc_policy_find(wanted[i].policy, strlen(wanted[i].policy));
		simulation.runs[i].config = &configs[i];
		simulation.runs[i].trace = wanted[i].trace;
		simulation.runs[i].memory_bytes = wanted[i].memory_bytes;
		simulation.runs[i].rate_per_s = wanted[i].rate_per_s;
	}
	if (code == FC_OK)
		code = fc_simulation_run(&simulation, &paper->error);
	for (size_t i = 0; i < count && code == FC_OK; i++)
		*wanted[i].outcome = *simulation.runs[i].outcome;
	fc_simulation_deinit(&simulation);
	free(configs);
	return code;
}

/* ---- the main run ---- */

static double rate_of(int index)
{
	return (double)(index + 1) / 10;
}

static void add_hit_rows(struct paper *paper, struct fc_outcome (*outcomes)[MAIN_POLICIES])
{
	const struct fc_outcome *first = &outcomes[0][FLAT];
	double bound = 100.0 * (double)first->possible_blocks / (double)first->blocks;
	paper_add_row(
		paper, 94.72, bound, "%",
		"another recording, public, whose sessions also share their prompts; and where the model can resume",
		"reusable prefix, upper bound");
	for (int i = 0; i < RATES; i++) {
		const struct fc_outcome *flat = &outcomes[i][FLAT];
		double possible = 100.0 * (double)flat->possible_blocks / (double)flat->blocks;
		paper_add_row(paper, 0.6, possible - paper_hit_percent(flat), "points", NULL,
			      "FlatCake, points below the bound at %.1f/s (published: at most)", rate_of(i));
	}
	for (int i = 0; i < RATES; i++)
		paper_add_row(paper,
			      i == 0   ? PUBLISHED_MOONCAKE_PERCENT
			      : i >= 4 ? 64.26
				       : NO_VALUE,
			      paper_hit_percent(&outcomes[i][MOONCAKE]), "%",
			      "decided by the DRAM budget and by how many copies of the KV there are, which are not "
			      "given: see the fitted column and the sweep",
			      "Mooncake, delivered hit rate at %.1f/s", rate_of(i));
	for (int i = 4; i < RATES; i++)
		paper_add_row(paper, 64.26 - 11, paper_hit_percent(&outcomes[i][HICACHE]), "%", "as above",
			      "DRAM only (HiCache) at %.1f/s", rate_of(i));
}

static void add_speed_rows(struct paper *paper, const struct fc_hardware *hardware,
			   struct fc_outcome (*outcomes)[MAIN_POLICIES])
{
	static const char bandwidth[] = "the profile's drives give a lone load what its link takes; the article's "
					"ratio of 5 : 1 to DRAM leaves "
					"11 GB/s for each worker when all read, of which 5 were measured";
	static const char prefetch[] = "0.8 GiB in 1.47 s is 0.6 GB/s, an eighth of the bandwidth that the article "
				       "measured: its prefetch time "
				       "counts more than one worker's read of one history, and does not say what";
	const struct fc_outcome *low = outcomes[0], *high = outcomes[RATES - 1];
	paper_add_row(paper, 5, read_gb_per_s(&high[FLAT]), "GB/s", bandwidth,
		      "FlatCake, SSD read bandwidth of a load");
	paper_add_row(paper, 1.9, ratio(read_gb_per_s(&high[FLAT]), read_gb_per_s(&high[MOONCAKE])), "x", NULL,
		      "the same / Mooncake's");
	paper_add_row(paper, 1.47, paper_mean_s(&low[FLAT].prefetch), "s", prefetch, "FlatCake, SSD prefetch at 0.1/s");
	paper_add_row(paper, 1.75, paper_mean_s(&high[FLAT].prefetch), "s", prefetch,
		      "FlatCake, SSD prefetch at 1.0/s");
	paper_add_row(paper, 1.75 / 1.47, ratio(paper_mean_s(&high[FLAT].prefetch), paper_mean_s(&low[FLAT].prefetch)),
		      "x", NULL, "FlatCake, prefetch at 1.0/s / at 0.1/s");
	paper_add_row(paper, 3.16, paper_mean_s(&low[MOONCAKE].prefetch), "s", prefetch,
		      "Mooncake, SSD prefetch at 0.1/s");
	paper_add_row(paper, 9.50, paper_mean_s(&high[MOONCAKE].prefetch), "s", prefetch,
		      "Mooncake, SSD prefetch at 1.0/s");
	paper_add_row(
		paper, 6.6, ratio(amplification(&high[MOONCAKE]), amplification(&high[FLAT])), "x",
		"the facts have no refill on a hit, and a prefetch that is cut keeps what it has read; what else was "
		"read in vain is not published",
		"SSD read amplification, Mooncake / FlatCake");
	paper_add_row(paper, 10.5,
		      100 * (ratio(paper_mean_s(&high[ONE_QUEUE].ttft), paper_mean_s(&high[FLAT].ttft)) - 1), "%",
		      "a stream is nearly always free when a request comes, so hardly a read waits and the queue's "
		      "order does not matter",
		      "one queue instead of two, mean TTFT");
	paper_add_row(
		paper, 27,
		100 * (ratio(paper_percentile_s(&high[ONE_QUEUE].ttft, 99), paper_percentile_s(&high[FLAT].ttft, 99)) -
		       1),
		"%", "as above", "one queue instead of two, P99 TTFT");
	paper_add_row(paper, 5,
		      ratio((double)(hardware->link_up_bytes_per_s * hardware->workers),
			    (double)(hardware->ssd_read_bytes_per_s * hardware->ssd_count)),
		      ": 1", "a premise: the profile's number of drives follows from it", "DRAM : SSD bandwidth");
}

static void add_trace_rows(struct paper *paper, const struct fc_trace *trace)
{
	double tokens = 0;
	for (uint32_t i = 0; i < trace->request_count; i++)
		tokens += (double)trace->requests[i].input_tokens;
	tokens /= trace->request_count;
	double gib = tokens * fc_geometry_bytes_per_token(&paper->geometry) / (double)GIB;
	paper_add_row(paper, 219, tokens / 1000, "k tokens", "another recording of the same tool",
		      "history per request");
	paper_add_row(paper, 0.8, gib, "GiB", "as above", "KV of it");
}

/* Ten loads, four policies. */
static int run_loads(struct paper *paper, const struct fc_hardware *hardware, uint64_t memory_bytes,
		     struct fc_trace *const traces[RATES], struct fc_outcome (*outcomes)[MAIN_POLICIES],
		     const char *name)
{
	struct wanted wanted[RATES * MAIN_POLICIES];
	for (int i = 0; i < RATES * MAIN_POLICIES; i++)
		wanted[i] = (struct wanted){
			.policy = main_policies[i % MAIN_POLICIES],
			.rate_per_s = rate_of(i / MAIN_POLICIES),
			.memory_bytes = memory_bytes,
			.trace = traces[i / MAIN_POLICIES],
			.outcome = &outcomes[i / MAIN_POLICIES][i % MAIN_POLICIES],
		};
	int code = paper_run(paper, hardware, &paper->geometry, wanted, fc_array_len(wanted));
	for (size_t i = 0; i < fc_array_len(wanted) && code == FC_OK; i++)
		paper_add_sweep(paper, &wanted[i], "%s", name);
	return code;
}

static int run_main(struct paper *paper, struct fc_trace *const traces[RATES])
{
	struct fc_outcome(*outcomes)[MAIN_POLICIES] = calloc(RATES, sizeof(*outcomes));
	if (outcomes == NULL)
		return fc_error_set(&paper->error, FC_ENOMEM, "no memory for outcomes");
	int code = run_loads(paper, &paper->hardware, paper->hardware.memory_bytes, traces, outcomes, "load");
	if (code == FC_OK) {
		add_hit_rows(paper, outcomes);
		add_speed_rows(paper, &paper->hardware, outcomes);
		add_trace_rows(paper, traces[0]);
	}
	free(outcomes);
	return code;
}

/* The same rows with a copy on every rank, the published speed of a worker's reads, and fitted DRAM (fit.c). */
static int run_fitted(struct paper *paper, struct fc_trace *const traces[RATES])
{
	struct fc_hardware hardware = paper->hardware;
	struct fc_outcome(*outcomes)[MAIN_POLICIES] = calloc(RATES, sizeof(*outcomes));
	uint64_t memory_bytes = 0;
	if (outcomes == NULL)
		return fc_error_set(&paper->error, FC_ENOMEM, "no memory for outcomes");
	paper_copy_on_all_ranks(&hardware);
	hardware.ssd_read_bytes_per_s = PUBLISHED_READ_BYTES_PER_S / hardware.ssd_count;
	int code = paper_fit_memory(paper, &hardware, traces[0], rate_of(0), &memory_bytes);
	if (code == FC_OK)
		code = run_loads(paper, &hardware, memory_bytes, traces, outcomes, "load, fitted");
	if (code == FC_OK) {
		paper->fitted_memory_bytes = memory_bytes * paper->hardware.workers;
		paper->fitted_percent = paper_hit_percent(&outcomes[0][MOONCAKE]);
		paper->is_fitted = true;
		add_hit_rows(paper, outcomes);
		add_speed_rows(paper, &hardware, outcomes);
	}
	free(outcomes);
	return code;
}

/* ---- what is not given ---- */

static int sweep_budgets(struct paper *paper, struct fc_trace *const traces[RATES])
{
	static const struct wanted kinds[] = {
		{.policy = "hicache"},
		{.policy = "mooncake", .label = "mooncake, staging each worker"},
		{.policy = "mooncake",
		 .label = "mooncake, staging of the node",
		 .settings = "mooncake.shared_staging=on"},
		{.policy = "mooncake",
		 .label = "mooncake, 20 GB, of the node",
		 .settings = "mooncake.shared_staging=on,mooncake.staging=20GiB"},
	};
	static const int rates[] = {0, 4, 9};
	size_t count = fc_array_len(budgets_gib) * fc_array_len(rates) * fc_array_len(kinds);
	struct fc_outcome *outcomes = calloc(count, sizeof(*outcomes));
	struct wanted *wanted = calloc(count, sizeof(*wanted));
	if (outcomes == NULL || wanted == NULL)
		return fc_error_set(&paper->error, FC_ENOMEM, "no memory for outcomes");
	for (size_t i = 0; i < count; i++) {
		int rate = rates[i % fc_array_len(rates)];
		wanted[i] = kinds[i / fc_array_len(rates) % fc_array_len(kinds)];
		wanted[i].rate_per_s = rate_of(rate);
		wanted[i].trace = traces[rate];
		wanted[i].memory_bytes = budgets_gib[i / fc_array_len(rates) / fc_array_len(kinds)] * GIB;
		wanted[i].outcome = &outcomes[i];
	}
	int code = paper_run(paper, &paper->hardware, &paper->geometry, wanted, count);
	for (size_t i = 0; i < count && code == FC_OK; i++)
		paper_add_sweep(paper, &wanted[i], "DRAM %llu GiB", (unsigned long long)(wanted[i].memory_bytes / GIB));
	free(outcomes);
	free(wanted);
	return code;
}

/* One queue against two could depend on how long a read is beside a prefill. Prefill from 40K to 200K tokens/s a node;
 * drives: the profile's 6, one, and one at an eighth of its speed, which is about what the published prefetch time
 * would take. */
static int sweep_speeds(struct paper *paper, struct fc_trace *const traces[RATES])
{
	static const struct {
		double prefill_per_s; /* of a worker */
		uint64_t drives, share;
	} speeds[] = {{5000, 6, 1}, {25000, 6, 1}, {12500, 1, 1}, {12500, 1, 8}, {25000, 1, 8}};
	static const char *const policies[] = {"flat", "flat-one-queue"};
	struct fc_outcome *outcomes = calloc(fc_array_len(policies), sizeof(*outcomes));
	int code = outcomes == NULL ? fc_error_set(&paper->error, FC_ENOMEM, "no memory for outcomes") : FC_OK;
	for (size_t i = 0; i < fc_array_len(speeds) && code == FC_OK; i++) {
		struct wanted wanted[2];
		struct fc_hardware hardware = paper->hardware;
		hardware.prefill_tokens_per_s = speeds[i].prefill_per_s;
		hardware.ssd_count = speeds[i].drives;
		hardware.ssd_read_bytes_per_s /= speeds[i].share;
		for (size_t k = 0; k < fc_array_len(policies); k++)
			wanted[k] = (struct wanted){.policy = policies[k],
						    .rate_per_s = 1,
						    .memory_bytes = hardware.memory_bytes,
						    .trace = traces[RATES - 1],
						    .outcome = &outcomes[k]};
		code = paper_run(paper, &hardware, &paper->geometry, wanted, fc_array_len(policies));
		for (size_t k = 0; k < fc_array_len(policies) && code == FC_OK; k++)
			paper_add_sweep(paper, &wanted[k], "prefill %.0fK/s a node, SSD %.1f GB/s",
					hardware.prefill_tokens_per_s * (double)hardware.workers / 1000,
					(double)(hardware.ssd_count * hardware.ssd_read_bytes_per_s) / 1e9);
	}
	free(outcomes);
	return code;
}

/* "0.8 GiB on a single GPU" may also mean that all eight ranks keep the KV of every request, as tensor parallelism
 * without split KV does: one worker, which computes as eight, and an eighth of every budget and of the drives for each
 * copy. */
static int sweep_copies(struct paper *paper, struct fc_trace *const traces[RATES])
{
	static const uint64_t node_gib[] = {32, 128};
	static const int rates[] = {0, 4, 9};
	enum { COUNT = 2 * 3 * MAIN_POLICIES };
	struct fc_hardware hardware = paper->hardware;
	struct fc_outcome *outcomes = calloc(COUNT, sizeof(*outcomes));
	struct wanted wanted[COUNT];
	uint64_t copies = hardware.workers;
	if (outcomes == NULL)
		return fc_error_set(&paper->error, FC_ENOMEM, "no memory for outcomes");
	paper_copy_on_all_ranks(&hardware);
	for (int i = 0; i < COUNT; i++) {
		int rate = rates[i / MAIN_POLICIES % 3];
		wanted[i] = (struct wanted){
			.policy = main_policies[i % MAIN_POLICIES],
			.rate_per_s = rate_of(rate),
			.memory_bytes = node_gib[i / MAIN_POLICIES / 3] * GIB / copies,
			.trace = traces[rate],
			.outcome = &outcomes[i],
		};
	}
	int code = paper_run(paper, &hardware, &paper->geometry, wanted, COUNT);
	for (int i = 0; i < COUNT && code == FC_OK; i++)
		paper_add_sweep(paper, &wanted[i], "KV on all ranks, DRAM %llu GiB",
				(unsigned long long)(wanted[i].memory_bytes * copies / GIB));
	free(outcomes);
	return code;
}

/* ---- the trace ---- */

/* Seconds from a request of a session to its next one, on average. */
static double mean_gap_s(const struct fc_trace *trace)
{
	double sum_ns = 0;
	for (uint32_t i = 0; i < trace->session_count; i++)
		sum_ns += (double)trace->sessions[i].duration_ns;
	return sum_ns / 1e9 / trace->request_count;
}

static int load_trace(struct paper *paper, uint32_t concurrency, struct fc_trace **trace)
{
	struct fc_config config = paper->config;
	struct fc_generate_opts generate;
	struct fc_trace_opts opts;
	config.concurrency = concurrency;
	if (config.argument_count > 0)
		return fc_replay_load_trace(&config, trace, &paper->error);
	fc_generate_opts_init(&generate);
	fc_trace_opts_init(&opts);
	generate.seed = opts.seed = config.seed;
	generate.session_count = config.session_count > 0 ? (uint32_t)config.session_count : 426;
	opts.concurrent_sessions = concurrency;
	return fc_trace_generate(&generate, &opts, trace, &paper->error);
}

/* One arrangement of the sessions for each rate. */
static int load_traces(struct paper *paper, struct fc_trace *traces[RATES])
{
	int code = load_trace(paper, 1, &traces[0]);
	double gap_s = code == FC_OK ? mean_gap_s(traces[0]) : 0;
	fc_trace_free(traces[0]);
	traces[0] = NULL;
	for (int i = 0; i < RATES && code == FC_OK; i++)
		code = load_trace(paper, (uint32_t)fmax(1, rate_of(i) * gap_s + 0.5), &traces[i]);
	return code;
}

/* ---- output ---- */

static void number_cell(struct fc_table *table, double value)
{
	if (value == NO_VALUE)
		fc_table_cell(table, "n/a");
	else
		fc_table_cell(table, "%.4g", value);
}

static void print_rows(const struct paper *paper)
{
	struct fc_table table;
	fc_table_init(&table, "lrrrrll");
	static const char *const titles[] = {"",       "published", "simulated",        "difference",
					     "fitted", "",          "where they differ"};
	for (size_t i = 0; i < fc_array_len(titles); i++)
		fc_table_cell(&table, "%s", titles[i]);
	for (size_t i = 0; i < paper->row_count; i++) {
		const struct paper_row *row = &paper->rows[i];
		bool has_both = row->published != NO_VALUE && row->simulated != NO_VALUE;
		fc_table_cell(&table, "%s", row->name);
		number_cell(&table, row->published);
		number_cell(&table, row->simulated);
		if (has_both)
			fc_table_cell(&table, "%+.3g", row->simulated - row->published);
		else
			fc_table_cell(&table, "%s", "");
		number_cell(&table, row->fitted);
		fc_table_cell(&table, "%s", row->unit);
		fc_table_cell(&table, "%s", row->why == NULL ? "" : row->why);
	}
	(void)!fc_table_print(&table, stdout);
	fc_table_deinit(&table);
}

static void print_sweeps(const struct paper *paper)
{
	static const char *const titles[] = {"what",   "policy", "rate/s",   "hit %",    "prefetch s",
					     "TTFT s", "p99 s",  "read amp", "cancelled"};
	struct fc_table table;
	fc_table_init(&table, "llrrrrrrr");
	for (size_t i = 0; i < fc_array_len(titles); i++)
		fc_table_cell(&table, "%s", titles[i]);
	for (size_t i = 0; i < paper->sweep_count; i++) {
		const struct sweep_row *row = &paper->sweeps[i];
		fc_table_cell(&table, "%s", row->what);
		fc_table_cell(&table, "%s", row->policy);
		fc_table_cell(&table, "%.1f", row->rate_per_s);
		fc_table_cell(&table, "%.2f", row->hit_percent);
		number_cell(&table, row->prefetch_s);
		number_cell(&table, row->ttft_mean_s);
		number_cell(&table, row->ttft_p99_s);
		number_cell(&table, row->amplification);
		fc_table_cell(&table, "%llu", (unsigned long long)row->cancelled);
	}
	(void)!fc_table_print(&table, stdout);
	fc_table_deinit(&table);
}

static json_t *number(double value)
{
	return value == NO_VALUE ? json_null() : json_real(value);
}

static json_t *rows_json(const struct paper *paper)
{
	json_t *array = json_array();
	for (size_t i = 0; i < paper->row_count; i++) {
		const struct paper_row *row = &paper->rows[i];
		json_array_append_new(array,
				      json_pack("{s:s, s:o, s:o, s:o, s:s, s:s*}", "row", row->name, "published",
						number(row->published), "simulated", number(row->simulated), "fitted",
						number(row->fitted), "unit", row->unit, "why", row->why));
	}
	return array;
}

static int run_all(struct paper *paper)
{
	struct fc_trace *traces[RATES] = {NULL};
	int code = fc_hardware_load(&paper->hardware, "8xb200-deepseek-v4-flash", &paper->error);
	if (code == FC_OK)
		code = load_traces(paper, traces);
	if (code == FC_OK)
		code = fc_geometry_preset(&paper->geometry, paper->hardware.model, traces[0]->block_tokens, 1,
					  &paper->error);
	if (code == FC_OK)
		code = run_main(paper, traces);
	if (code == FC_OK)
		code = run_fitted(paper, traces);
	paper->is_fitted = false;
	if (code == FC_OK)
		code = paper_layouts(paper);
	if (code == FC_OK)
		code = sweep_budgets(paper, traces);
	if (code == FC_OK)
		code = sweep_copies(paper, traces);
	if (code == FC_OK)
		code = sweep_speeds(paper, traces);
	for (int i = 0; i < RATES; i++)
		fc_trace_free(traces[i]);
	return code;
}

int main(int argc, char **argv)
{
	static struct paper paper;
	struct fc_config_problem problem;
	struct fc_config_sources sources = {
		.command = FC_COMMAND_REPLAY, .argument_count = argc - 1, .arguments = argv + 1};
	if (fc_config_load(&paper.config, &sources, &problem) != FC_OK) {
		fprintf(stderr, "bench/paper/run: %s\n", problem.error.text);
		return 2;
	}
	int code = run_all(&paper);
	if (code == FC_OK && !fc_json_replaces_text(&paper.config)) {
		printf("Published, simulated (memory %llu GiB, profile %s):\n\n",
		       (unsigned long long)(paper.hardware.memory_bytes / GIB), paper.hardware.name);
		print_rows(&paper);
		printf("\nFitted: a copy of the KV on every rank, each reading %.0f GB/s (published), and %.1f GiB of "
		       "DRAM "
		       "in the node,\nwith which Mooncake delivers %.1f %% at 0.1/s, the nearest to the published "
		       "%.1f. "
		       "The other figures of\nthat column follow from this one.\n",
		       (double)PUBLISHED_READ_BYTES_PER_S / 1e9, (double)paper.fitted_memory_bytes / GIB,
		       paper.fitted_percent, PUBLISHED_MOONCAKE_PERCENT);
		printf("\nEvery run, and the sweeps over what is not published:\n\n");
		print_sweeps(&paper);
	}
	if (code == FC_OK && paper.config.json_path != NULL)
		code = fc_json_write(paper.config.json_path, rows_json(&paper), &paper.error);
	if (code != FC_OK)
		fprintf(stderr, "bench/paper/run: %s\n", paper.error.text);
	fc_hardware_deinit(&paper.hardware);
	fc_config_free(&paper.config);
	return code == FC_OK ? 0 : 1;
}

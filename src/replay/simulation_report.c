/* Policies keep their colour through the whole page. With several rates there are lines over the load, with several
 * amounts of DRAM lines over those; what concerns one run is shown at the last rate and the last amount. With one of
 * either there are bars instead of the lines. */
#include "replay/simulation_report.h"

#include "cli/table.h"
#include "report/page.h"
#include "report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define PERCENTS 101

struct report {
	const struct fc_simulation *simulation;
	struct fc_page *page;
	size_t policy_count, rate_count, memory_count;
	const struct fc_simulated *last; /* the runs at the last rate with the last memory, one for each policy */
	double *values;                  /* scratch: x and y of the series of one plot */
	struct fc_plot_series *series;
	const char **names;                  /* scratch: of the policies */
	char point[2 * FC_HUMAN_BYTES + 32]; /* the last rate and memory */
};

/* ---- numbers and their units ---- */

static void print_seconds(char *string, size_t bytes, double value)
{
	char text[FC_HUMAN_BYTES];
	snprintf(string, bytes, "%s", value <= 0 ? "0 s" : fc_human_ns((uint64_t)llround(value * NS_PER_S), text));
}

static void print_bandwidth(char *string, size_t bytes, double value)
{
	snprintf(string, bytes, value < 1e9 && value > 0 ? "%.4g MB/s" : "%.4g GB/s",
		 value < 1e9 && value > 0 ? value / 1e6 : value / 1e9);
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

static double delivered(const struct fc_outcome *outcome)
{
	return share((double)outcome->delivered_blocks, (double)outcome->possible_blocks);
}

static double mean_s(const struct fc_histogram *histogram)
{
	double mean;
	return fc_histogram_mean(histogram, &mean) ? mean / NS_PER_S : NAN;
}

static double ttft_mean_s(const struct fc_outcome *outcome)
{
	return mean_s(&outcome->ttft);
}

static double percentile_s(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? (double)value / NS_PER_S : NAN;
}

static double ttft_p99_s(const struct fc_outcome *outcome)
{
	return percentile_s(&outcome->ttft, 99);
}

/* ---- over the load ---- */

static bool has_ended(const struct fc_simulated *run)
{
	return run->outcome->error.code == FC_OK;
}

static struct fc_plot_series *begin_series(struct report *report, size_t index, const char *name, size_t count)
{
	double *x = report->values + index * 2 * (FC_SERIES_INTERVALS + PERCENTS);
	report->series[index] = (struct fc_plot_series){
		.name = name,
		.x = x,
		.y = x + FC_SERIES_INTERVALS + PERCENTS,
		.count = count,
		.colour = (unsigned)(index % FC_PLOT_COLOURS),
		.is_dashed = index >= FC_PLOT_COLOURS,
	};
	return &report->series[index];
}

static void set_point(const struct fc_plot_series *series, size_t point, double x, double y)
{
	((double *)(uintptr_t)series->x)[point] = x; /* they lie in report->values */
	((double *)(uintptr_t)series->y)[point] = y;
}

/* The runs of a policy that are `stride` apart, up to the last. */
static void add_lines(struct report *report, struct fc_plot plot, size_t count, size_t stride,
		      double (*x_of)(const struct fc_simulated *run), double (*y_of)(const struct fc_outcome *outcome))
{
	const struct fc_simulated *first = report->last - (count - 1) * stride;
	count = count < FC_SERIES_INTERVALS ? count : FC_SERIES_INTERVALS;
	for (size_t policy = 0; policy < report->policy_count; policy++) {
		struct fc_plot_series *series = begin_series(report, policy, first[policy].policy->name, count);
		for (size_t i = 0; i < count; i++) {
			const struct fc_simulated *run = &first[i * stride + policy];
			set_point(series, i, x_of(run), has_ended(run) ? y_of(run->outcome) : NAN);
		}
	}
	plot.series = report->series;
	plot.series_count = report->policy_count;
	fc_plot_add(report->page, &plot);
}

static double rate_of(const struct fc_simulated *run)
{
	return run->rate_per_s;
}

static double memory_of(const struct fc_simulated *run)
{
	return (double)run->memory_bytes;
}

static void add_over_load(struct report *report, struct fc_plot plot, double (*y_of)(const struct fc_outcome *outcome))
{
	plot.x = (struct fc_axis){.label = "requests per second", .is_from_zero = true};
	add_lines(report, plot, report->rate_count, report->policy_count, rate_of, y_of);
}

static void add_over_memory(struct report *report, struct fc_plot plot,
			    double (*y_of)(const struct fc_outcome *outcome))
{
	plot.x = (struct fc_axis){.label = "DRAM for the cache",
				  .is_logarithmic = true,
				  .is_binary = true,
				  .print = fc_human_print_bytes};
	add_lines(report, plot, report->memory_count, report->policy_count * report->rate_count, memory_of, y_of);
}

static void add_all_lines(struct report *report, void (*add)(struct report *report, struct fc_plot plot,
							     double (*y_of)(const struct fc_outcome *outcome)))
{
	struct fc_plot hits = {
		.title = "Delivered prefix, of what any cache could have had",
		.y = {.label = "delivered / possible", .is_from_zero = true, .print = fc_human_print_share},
	};
	struct fc_plot mean = {
		.title = "Time to first token, mean",
		.y = {.label = "mean", .is_logarithmic = true, .print = print_seconds},
	};
	struct fc_plot p99 = {
		.title = "Time to first token, 99th percentile",
		.y = {.label = "p99", .is_logarithmic = true, .print = print_seconds},
	};
	add(report, hits, delivered);
	add(report, mean, ttft_mean_s);
	add(report, p99, ttft_p99_s);
}

/* ---- bars ---- */

static void add_hit_bars(struct report *report)
{
	static const char *const parts[] = {"delivered / possible"};
	for (size_t i = 0; i < report->policy_count; i++) {
		double value = has_ended(&report->last[i]) ? delivered(report->last[i].outcome) : 0;
		report->names[i] = report->last[i].policy->name;
		report->values[i] = isfinite(value) ? value : 0;
	}
	struct fc_bars bars = {
		.title = "Delivered prefix, of what any cache could have had",
		.names = report->names,
		.count = report->policy_count,
		.part_names = parts,
		.part_count = 1,
		.lengths = report->values,
		.print = fc_human_print_share,
	};
	fc_bars_add(report->page, &bars);
}

static void add_time_bars(struct report *report)
{
	const char *parts[FC_TTFT_PART_COUNT];
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		parts[part] = fc_ttft_part_name((enum fc_ttft_part)part);
	for (size_t i = 0; i < report->policy_count; i++) {
		const struct fc_simulated *run = &report->last[i];
		report->names[i] = run->policy->name;
		for (int part = 0; part < FC_TTFT_PART_COUNT; part++) {
			double value = has_ended(run) ? mean_s(&run->outcome->parts[part]) : 0;
			report->values[i * FC_TTFT_PART_COUNT + (size_t)part] = isfinite(value) ? value : 0;
		}
	}
	struct fc_bars bars = {
		.title = "Where the time to the first token went, mean",
		.note = "queue: until its history began to move; read: until it was in place; ready: until the engine "
			"took "
			"the request; prefill: until its first token.",
		.names = report->names,
		.count = report->policy_count,
		.part_names = parts,
		.part_count = FC_TTFT_PART_COUNT,
		.lengths = report->values,
		.print = print_seconds,
	};
	fc_bars_add(report->page, &bars);
}

/* ---- one run ---- */

static void add_distribution(struct report *report)
{
	struct fc_plot plot = {
		.title = "Time to first token, distribution",
		.x = {.label = "time to first token", .is_logarithmic = true, .print = print_seconds},
		.y = {.label = "share of the requests", .is_from_zero = true, .print = fc_human_print_share},
	};
	for (size_t i = 0; i < report->policy_count; i++) {
		const struct fc_simulated *run = &report->last[i];
		struct fc_plot_series *series =
			begin_series(report, i, run->policy->name, has_ended(run) ? PERCENTS : 0);
		for (size_t percent = 0; percent < series->count; percent++)
			set_point(series, percent, percentile_s(&run->outcome->ttft, (double)percent),
				  (double)percent / 100);
	}
	plot.series = report->series;
	plot.series_count = report->policy_count;
	fc_plot_add(report->page, &plot);
}

/* Amounts per second over time, up to the last interval that has any. */
static void add_rates(struct fc_plot_series *line, const struct fc_series *series)
{
	double interval_s = (double)series->interval_ns / NS_PER_S;
	size_t count = 0;
	for (size_t i = 0; i < FC_SERIES_INTERVALS && series->interval_ns > 0; i++)
		if (series->amounts[i] > 0)
			count = i + 1;
	for (size_t i = 0; i < count; i++)
		set_point(line, i, ((double)i + 0.5) * interval_s, (double)series->amounts[i] / interval_s);
	line->count = count;
}

static void add_bandwidth(struct report *report)
{
	struct fc_plot plot = {
		.title = "SSD reads over time",
		.note = "All drives together, whoever reads.",
		.x = {.label = "simulated time", .is_from_zero = true, .print = print_seconds},
		.y = {.label = "bytes per second", .is_from_zero = true, .print = print_bandwidth},
	};
	for (size_t i = 0; i < report->policy_count; i++) {
		const struct fc_simulated *run = &report->last[i];
		if (!has_ended(run) || run->outcome->drive_bytes_read == 0)
			continue;
		add_rates(begin_series(report, plot.series_count, run->policy->name, 0), &run->outcome->ssd_series);
		report->series[plot.series_count].colour = (unsigned)(i % FC_PLOT_COLOURS);
		report->series[plot.series_count++].is_dashed = i >= FC_PLOT_COLOURS;
	}
	plot.series = report->series;
	fc_plot_add(report->page, &plot);
}

/* ---- the table ---- */

#define COLUMNS 9

static void print_cells(const struct fc_simulated *run, char cells[COLUMNS][FC_HUMAN_BYTES + 32])
{
	const struct fc_outcome *outcome = run->outcome;
	char text[FC_HUMAN_BYTES];
	size_t bytes = sizeof(cells[0]);
	snprintf(cells[0], bytes, "%s", run->policy->name);
	if (!has_ended(run)) {
		snprintf(cells[1], bytes, "%s", fc_code_text(outcome->error.code));
		for (int i = 2; i < COLUMNS; i++)
			cells[i][0] = 0;
		return;
	}
	const double shares[] = {share((double)outcome->delivered_blocks, (double)outcome->blocks), delivered(outcome)};
	const double times[] = {ttft_mean_s(outcome), percentile_s(&outcome->ttft, 50), ttft_p99_s(outcome)};
	double amplification = share((double)outcome->bytes_read, (double)outcome->media_bytes[FC_SSD]);
	for (int i = 0; i < 2; i++)
		fc_human_print_share(cells[1 + i], bytes, shares[i]);
	for (int i = 0; i < 3; i++)
		print_seconds(cells[3 + i], bytes, times[i]);
	snprintf(cells[6], bytes, isfinite(amplification) ? "%.2f" : "n/a", amplification);
	snprintf(cells[7], bytes, "%s", fc_human_bytes(outcome->drive_bytes_written, text));
	snprintf(cells[8], bytes, "%s", fc_human_count(outcome->cancelled_loads, text));
}

static int add_table(struct report *report)
{
	static const char *const headings[COLUMNS] = {"policy",   "of input", "of possible",        "TTFT mean",
						      "p50",      "p99",      "read amplification", "written to SSD",
						      "cancelled"};
	size_t count = report->policy_count;
	char(*texts)[COLUMNS][FC_HUMAN_BYTES + 32] = calloc(count, sizeof(*texts));
	const char **cells = calloc(count * COLUMNS, sizeof(*cells));
	bool *is_marked = calloc(count, sizeof(*is_marked));
	int code = texts == NULL || cells == NULL || is_marked == NULL ? FC_ENOMEM : FC_OK;
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		print_cells(&report->last[i], texts[i]);
		is_marked[i] = strcmp(report->last[i].policy->name, "flat") == 0;
		for (size_t column = 0; column < COLUMNS; column++)
			cells[i * COLUMNS + column] = texts[i][column];
	}
	struct fc_page_table table = {headings, cells, is_marked, COLUMNS, count};
	if (code == FC_OK)
		fc_page_add_table(report->page, &table);
	free(texts);
	free(cells);
	free(is_marked);
	return code;
}

/* ---- the whole ---- */

static void find_shape(struct report *report, const struct fc_simulation *simulation)
{
	report->policy_count = simulation->policy_count;
	report->rate_count = simulation->rate_count;
	report->memory_count = simulation->run_count / report->policy_count / report->rate_count;
	report->last = simulation->runs + simulation->run_count - report->policy_count;
	char memory[FC_HUMAN_BYTES], rate[FC_HUMAN_BYTES] = "as fast as they are taken";
	if (isfinite(report->last->rate_per_s))
		snprintf(rate, sizeof(rate), "at %g requests/s", report->last->rate_per_s);
	snprintf(report->point, sizeof(report->point), "%s with %s of DRAM", rate,
		 fc_human_bytes(report->last->memory_bytes, memory));
}

static int add_all(struct report *report)
{
	char heading[128];
	snprintf(heading, sizeof(heading), "Every policy, %s", report->point);
	fc_page_section(report->page, heading, "The same trace, machine and budgets for each.");
	int code = add_table(report);
	if (report->rate_count > 1) {
		fc_page_section(report->page, "Over the load", NULL);
		add_all_lines(report, add_over_load);
	}
	if (report->memory_count > 1) {
		fc_page_section(report->page, "Over the DRAM",
				"Where tiering has as much DRAM as it needs, its line meets the others.");
		add_all_lines(report, add_over_memory);
	}
	snprintf(heading, sizeof(heading), "One load, %s", report->point);
	fc_page_section(report->page, heading, NULL);
	if (report->rate_count == 1 && report->memory_count == 1)
		add_hit_bars(report);
	add_time_bars(report);
	add_distribution(report);
	add_bandwidth(report);
	return code;
}

int fc_simulation_report(const struct fc_simulation *simulation, struct fc_page *page)
{
	struct report report = {.simulation = simulation, .page = page};
	if (simulation->run_count == 0)
		return FC_OK;
	find_shape(&report, simulation);
	report.series = calloc(report.policy_count, sizeof(*report.series));
	report.names = calloc(report.policy_count, sizeof(*report.names));
	report.values = calloc(report.policy_count * 2 * (FC_SERIES_INTERVALS + PERCENTS), sizeof(*report.values));
	bool has_memory = report.series != NULL && report.names != NULL && report.values != NULL;
	int code = has_memory ? add_all(&report) : FC_ENOMEM;
	free(report.series);
	free(report.names);
	free(report.values);
	return code;
}

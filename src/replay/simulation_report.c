/* Policies keep their colour through the whole page. With several rates there are lines over the load, and all that
 * concerns one run is shown at the last rate; with one rate there are bars instead of the lines. */
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
	struct fc_text *page;
	size_t policy_count, rate_count;
	const struct fc_simulated *last; /* the runs at the last rate, one for each policy */
	double *values;                  /* scratch: x and y of the series of one plot */
	struct fc_plot_series *series;
	const char **names;             /* scratch: of the policies */
	char rate[FC_HUMAN_BYTES + 16]; /* the last one */
};

/* ---- numbers and their units ---- */

static void print_seconds(char *string, size_t bytes, double value)
{
	char text[FC_HUMAN_BYTES];
	snprintf(string, bytes, "%s", value <= 0 ? "0 s" : fc_human_ns((uint64_t)llround(value * NS_PER_S), text));
}

static void print_percent(char *string, size_t bytes, double value)
{
	snprintf(string, bytes, "%.4g %%", 100 * value);
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

static void add_over_load(struct report *report, struct fc_plot plot,
			  double (*value_of)(const struct fc_outcome *outcome))
{
	size_t rates = report->rate_count < FC_SERIES_INTERVALS ? report->rate_count : FC_SERIES_INTERVALS;
	for (size_t policy = 0; policy < report->policy_count; policy++) {
		const struct fc_simulated *runs = report->simulation->runs + policy;
		struct fc_plot_series *series = begin_series(report, policy, runs->policy->name, rates);
		for (size_t rate = 0; rate < rates; rate++) {
			const struct fc_simulated *run = &runs[rate * report->policy_count];
			set_point(series, rate, run->rate_per_s, has_ended(run) ? value_of(run->outcome) : NAN);
		}
	}
	plot.x = (struct fc_axis){.label = "requests per second", .is_from_zero = true};
	plot.series = report->series;
	plot.series_count = report->policy_count;
	fc_plot_add(report->page, &plot);
}

static void add_loads(struct report *report)
{
	struct fc_plot hits = {
		.title = "Delivered prefix, of what any cache could have had",
		.y = {.label = "delivered / possible", .is_from_zero = true, .print = print_percent},
	};
	struct fc_plot mean = {
		.title = "Time to first token, mean",
		.y = {.label = "mean", .is_logarithmic = true, .print = print_seconds},
	};
	struct fc_plot p99 = {
		.title = "Time to first token, 99th percentile",
		.y = {.label = "p99", .is_logarithmic = true, .print = print_seconds},
	};
	add_over_load(report, hits, delivered);
	add_over_load(report, mean, ttft_mean_s);
	add_over_load(report, p99, ttft_p99_s);
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
		.print = print_percent,
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
		.y = {.label = "share of the requests", .is_from_zero = true, .print = print_percent},
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
		print_percent(cells[1 + i], bytes, shares[i]);
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
	size_t count = 0;
	while (count < simulation->run_count && simulation->runs[count].rate_per_s == simulation->runs[0].rate_per_s)
		count++;
	report->policy_count = count;
	report->rate_count = simulation->run_count / count;
	report->last = simulation->runs + simulation->run_count - count;
	double rate = report->last->rate_per_s;
	if (isfinite(rate))
		snprintf(report->rate, sizeof(report->rate), "at %g requests/s", rate);
	else
		snprintf(report->rate, sizeof(report->rate), "as fast as they are taken");
}

static int add_all(struct report *report)
{
	char heading[128];
	snprintf(heading, sizeof(heading), "Every policy, %s", report->rate);
	fc_page_section(report->page, heading, "The same trace, machine and budgets for each.");
	int code = add_table(report);
	if (report->rate_count > 1) {
		fc_page_section(report->page, "Over the load", NULL);
		add_loads(report);
	}
	snprintf(heading, sizeof(heading), "One load, %s", report->rate);
	fc_page_section(report->page, heading, NULL);
	if (report->rate_count == 1)
		add_hit_bars(report);
	add_time_bars(report);
	add_distribution(report);
	add_bandwidth(report);
	return code;
}

int fc_simulation_report(const struct fc_simulation *simulation, struct fc_text *page)
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

/* Policies keep their colour through the whole page, and over pages. FlatCake stands beside the alternatives in one set
 * of plots, and beside itself without one of its mechanisms in another. With several rates there are lines over the
 * load, with several amounts of DRAM lines over those; what concerns one run is shown at the last rate and the last
 * amount. With one of either there are bars instead of the lines. */
#include "replay/simulation_report.h"

#include "cli/table.h"
#include "replay/simulation_map.h"
#include "replay/simulation_numbers.h"
#include "replay/simulation_words.h"
#include "report/page.h"
#include "report/plot.h"

#include <stdlib.h>

#define NS_PER_S 1e9
#define PERCENTS 101
#define RATES_SHOWN 64   /* points of a line over time */
#define LONG_S 10800     /* beyond this, time is in hours */
#define BARS_RATIO_MAX 6 /* a bar that is longer than this times the shortest is cut, to show the others */
#define BARS_RATIO_SHOWN 3

struct report {
	struct fc_simulation_shape shape;
	struct fc_page *page;
	size_t *cast; /* of shape.last: who is in the plots that come */
	size_t cast_count;
	double *values; /* scratch: x and y of the series of one plot */
	struct fc_plot_series *series;
	const char **names; /* scratch: of the policies */
};

/* ---- who is shown, and how ---- */

static bool is_in_first_plots(const struct fc_simulated *run)
{
	return !fc_policy_is_variant(run->policy);
}

static bool is_in_second_plots(const struct fc_simulated *run)
{
	return fc_policy_is_variant(run->policy) || fc_policy_is_flat(run->policy);
}

static void choose_cast(struct report *report, bool (*is_chosen)(const struct fc_simulated *run))
{
	report->cast_count = 0;
	for (size_t i = 0; i < report->shape.policy_count; i++)
		if (is_chosen(&report->shape.last[i]))
			report->cast[report->cast_count++] = i;
}

static const struct fc_simulated *cast_run(const struct report *report, size_t i)
{
	return &report->shape.last[report->cast[i]];
}

struct look {
	const char *name;
	unsigned colour;
	bool is_dashed, is_dotted;
};

/* Relatives share a colour. */
static const struct look looks[] = {
	{"flat", 0, false, false},         {"mooncake", 1, false, false},       {"mooncake-gds", 1, true, false},
	{"lmcache", 2, false, false},      {"lmcache-raw", 2, true, false},     {"hicache", 3, false, false},
	{"vllm-offload", 4, false, false}, {"file-per-block", 5, false, false}, {"recompute", 6, false, false},
	{"infinite-dram", 6, true, false}, {"flat-one-queue", 7, false, false}, {"flat-fifo", 7, true, false},
	{"flat-no-merge", 5, true, false}, {"flat-no-overlap", 3, true, false}, {"flat-no-consolidate", 4, true, false},
};

static void set_look(struct fc_plot_series *series, const struct fc_policy_type *policy, size_t index)
{
	series->is_strong = fc_policy_is_flat(policy);
	series->colour = (unsigned)(index % FC_PLOT_COLOURS);
	series->is_dotted = true; /* a policy that the table does not have */
	for (size_t i = 0; i < fc_array_len(looks); i++) {
		if (strcmp(looks[i].name, policy->name) != 0)
			continue;
		series->colour = looks[i].colour;
		series->is_dashed = looks[i].is_dashed;
		series->is_dotted = looks[i].is_dotted;
	}
}

/* Series number `at` of the plot, for the policy number `policy`. */
static struct fc_plot_series *begin_series(struct report *report, size_t at, size_t policy, size_t count)
{
	const struct fc_policy_type *type = report->shape.last[policy].policy;
	double *x = report->values + at * 2 * (FC_SERIES_INTERVALS + PERCENTS);
	report->series[at] = (struct fc_plot_series){
		.name = type->name, .x = x, .y = x + FC_SERIES_INTERVALS + PERCENTS, .count = count};
	set_look(&report->series[at], type, policy);
	return &report->series[at];
}

static void set_point(const struct fc_plot_series *series, size_t point, double x, double y)
{
	((double *)(uintptr_t)series->x)[point] = x; /* they lie in report->values */
	((double *)(uintptr_t)series->y)[point] = y;
}

/* ---- lines over the load and over the DRAM ---- */

/* The runs of a policy that are `stride` apart, up to the last. */
static void add_lines(struct report *report, struct fc_plot plot, size_t count, size_t stride,
		      double (*x_of)(const struct fc_simulated *run), double (*y_of)(const struct fc_outcome *outcome))
{
	count = count < FC_SERIES_INTERVALS ? count : FC_SERIES_INTERVALS;
	const struct fc_simulated *first = report->shape.last - (count - 1) * stride;
	for (size_t at = 0; at < report->cast_count; at++) {
		size_t policy = report->cast[at];
		struct fc_plot_series *series = begin_series(report, at, policy, count);
		for (size_t i = 0; i < count; i++) {
			const struct fc_simulated *run = &first[i * stride + policy];
			set_point(series, i, x_of(run), fc_run_has_ended(run) ? y_of(run->outcome) : NAN);
		}
	}
	plot.series = report->series;
	plot.series_count = report->cast_count;
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
	add_lines(report, plot, report->shape.rate_count, report->shape.policy_count, rate_of, y_of);
}

static void add_over_memory(struct report *report, struct fc_plot plot,
			    double (*y_of)(const struct fc_outcome *outcome))
{
	plot.x = (struct fc_axis){.label = "DRAM for the cache",
				  .is_logarithmic = true,
				  .is_binary = true,
				  .print = fc_human_print_bytes};
	add_lines(report, plot, report->shape.memory_count, report->shape.policy_count * report->shape.rate_count,
		  memory_of, y_of);
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
		.y = {.label = "mean", .is_logarithmic = true, .print = fc_print_axis_seconds},
	};
	struct fc_plot p99 = {
		.title = "Time to first token, 99th percentile",
		.y = {.label = "99th percentile", .is_logarithmic = true, .print = fc_print_axis_seconds},
	};
	add(report, hits, fc_run_of_possible);
	add(report, mean, fc_run_ttft_mean_s);
	add(report, p99, fc_run_ttft_p99_s);
}

/* ---- bars ---- */

static void add_hit_bars(struct report *report)
{
	static const char *const parts[] = {"delivered / possible"};
	bool has_share = false; /* of what could be delivered, as anything could */
	for (size_t i = 0; i < report->cast_count; i++) {
		const struct fc_simulated *run = cast_run(report, i);
		double value = fc_run_has_ended(run) ? fc_run_of_possible(run->outcome) : 0;
		report->names[i] = run->policy->name;
		report->values[i] = isfinite(value) ? value : 0;
		has_share |= fc_run_has_ended(run) && isfinite(value);
	}
	struct fc_bars bars = {
		.title = "Delivered prefix, of what any cache could have had",
		.names = report->names,
		.count = report->cast_count,
		.part_names = parts,
		.part_count = 1,
		.lengths = report->values,
		.length_min = 1,
		.print = fc_human_print_share,
	};
	if (has_share)
		fc_bars_add(report->page, &bars);
}

/* What the picture's width should stand for, so that short bars can be told apart; 0: nothing need be cut. */
static double time_bars_max(const struct report *report)
{
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < report->cast_count; i++) {
		const struct fc_simulated *run = cast_run(report, i);
		double mean = fc_run_has_ended(run) ? fc_run_ttft_mean_s(run->outcome) : NAN;
		if (!isfinite(mean) || mean <= 0)
			continue;
		least = fmin(least, mean);
		most = fmax(most, mean);
	}
	return most > BARS_RATIO_MAX * least ? BARS_RATIO_SHOWN * least : 0;
}

static void add_time_bars(struct report *report, const char *title)
{
	const char *parts[FC_TTFT_PART_COUNT];
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		parts[part] = fc_ttft_part_name((enum fc_ttft_part)part);
	for (size_t i = 0; i < report->cast_count; i++) {
		const struct fc_simulated *run = cast_run(report, i);
		report->names[i] = run->policy->name;
		for (int part = 0; part < FC_TTFT_PART_COUNT; part++) {
			double value = fc_run_has_ended(run) ? fc_run_mean_s(&run->outcome->parts[part]) : 0;
			report->values[i * FC_TTFT_PART_COUNT + (size_t)part] = isfinite(value) ? value : 0;
		}
	}
	struct fc_bars bars = {
		.title = title,
		.note = "queue: until its history began to move; read: until it was in place; ready: until the engine "
			"took the request; prefill: until its first token. A bar with a slit is longer than the "
			"picture.",
		.names = report->names,
		.count = report->cast_count,
		.part_names = parts,
		.part_count = FC_TTFT_PART_COUNT,
		.lengths = report->values,
		.length_max = time_bars_max(report),
		.print = fc_print_seconds,
	};
	fc_bars_add(report->page, &bars);
}

/* ---- one run ---- */

static void add_distribution(struct report *report)
{
	struct fc_plot plot = {
		.title = "Time to first token, distribution",
		.x = {.label = "time to first token", .is_logarithmic = true, .print = fc_print_axis_seconds},
		.y = {.label = "share of the requests", .is_from_zero = true, .print = fc_human_print_share},
	};
	for (size_t i = 0; i < report->cast_count; i++) {
		const struct fc_simulated *run = cast_run(report, i);
		struct fc_plot_series *series =
			begin_series(report, i, report->cast[i], fc_run_has_ended(run) ? PERCENTS : 0);
		for (size_t percent = 0; percent < series->count; percent++)
			set_point(series, percent, fc_run_percentile_s(&run->outcome->ttft, (double)percent),
				  (double)percent / 100);
	}
	plot.series = report->series;
	plot.series_count = report->cast_count;
	fc_plot_add(report->page, &plot);
}

static size_t intervals_of(const struct fc_series *series)
{
	size_t count = 0;
	for (size_t i = 0; i < FC_SERIES_INTERVALS && series->interval_ns > 0; i++)
		if (series->amounts[i] > 0)
			count = i + 1;
	return count;
}

/* Gigabytes per second over time, some intervals together, up to the last that has any. */
static void add_rates(struct fc_plot_series *line, const struct fc_series *series, double unit_s)
{
	size_t count = intervals_of(series), each = (count + RATES_SHOWN - 1) / RATES_SHOWN;
	double point_s = (double)each * (double)series->interval_ns / NS_PER_S;
	for (size_t i = 0; i < count; i += each) {
		double sum = 0;
		for (size_t j = i; j < i + each && j < FC_SERIES_INTERVALS; j++)
			sum += (double)series->amounts[j];
		set_point(line, line->count, ((double)line->count + 0.5) * point_s / unit_s, sum / point_s / 1e9);
		line->count++;
	}
}

static void add_bandwidth(struct report *report)
{
	struct fc_plot plot = {
		.title = "SSD reads over time",
		.note = "All drives together, whoever reads.",
		.x = {.label = "simulated time, seconds", .is_from_zero = true},
		.y = {.label = "GB per second", .is_from_zero = true},
	};
	double longest_s = 0;
	for (size_t i = 0; i < report->cast_count; i++)
		longest_s = fmax(longest_s, (double)cast_run(report, i)->outcome->elapsed_ns / NS_PER_S);
	if (longest_s > LONG_S)
		plot.x.label = "simulated time, hours";
	for (size_t i = 0; i < report->cast_count; i++) {
		const struct fc_simulated *run = cast_run(report, i);
		if (!fc_run_has_ended(run) || run->outcome->drive_bytes_read == 0)
			continue;
		add_rates(begin_series(report, plot.series_count++, report->cast[i], 0), &run->outcome->ssd_series,
			  longest_s > LONG_S ? 3600 : 1);
	}
	plot.series = report->series;
	if (plot.series_count > 0)
		fc_plot_add(report->page, &plot);
	else
		fc_page_paragraph(report->page, "None of them read from the SSD.");
}

/* ---- the table ---- */

#define COLUMNS 9

static void print_cells(const struct fc_simulated *run, char cells[COLUMNS][FC_HUMAN_BYTES + 32])
{
	const struct fc_outcome *outcome = run->outcome;
	char text[FC_HUMAN_BYTES];
	size_t bytes = sizeof(cells[0]);
	snprintf(cells[0], bytes, "%s", run->policy->name);
	if (!fc_run_has_ended(run)) {
		snprintf(cells[1], bytes, "%s", fc_code_text(outcome->error.code));
		for (int i = 2; i < COLUMNS; i++)
			cells[i][0] = 0;
		return;
	}
	const double shares[] = {fc_run_of_input(outcome), fc_run_of_possible(outcome)};
	const double times[] = {fc_run_ttft_mean_s(outcome), fc_run_percentile_s(&outcome->ttft, 50),
				fc_run_ttft_p99_s(outcome)};
	double wanted = (double)outcome->media_bytes[FC_SSD];
	for (int i = 0; i < 2; i++)
		fc_print_share(cells[1 + i], bytes, shares[i]);
	for (int i = 0; i < 3; i++)
		fc_print_seconds(cells[3 + i], bytes, times[i]);
	snprintf(cells[6], bytes, wanted > 0 ? "%.2f" : "n/a", (double)outcome->bytes_read / fmax(wanted, 1));
	snprintf(cells[7], bytes, "%s", fc_human_bytes(outcome->drive_bytes_written, text));
	snprintf(cells[8], bytes, "%s", fc_human_count(outcome->cancelled_loads, text));
}

static int add_table(struct report *report)
{
	static const char *const headings[COLUMNS] = {
		"policy",   "of input",           "of possible",    "TTFT mean",      "TTFT p50",
		"TTFT p99", "read amplification", "written to SSD", "cancelled loads"};
	size_t count = report->shape.policy_count;
	char(*texts)[COLUMNS][FC_HUMAN_BYTES + 32] = calloc(count, sizeof(*texts));
	const char **cells = calloc(count * COLUMNS, sizeof(*cells));
	bool *is_marked = calloc(count, sizeof(*is_marked));
	int code = texts == NULL || cells == NULL || is_marked == NULL ? FC_ENOMEM : FC_OK;
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		print_cells(&report->shape.last[i], texts[i]);
		is_marked[i] = fc_policy_is_flat(report->shape.last[i].policy);
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

static void add_first_plots(struct report *report, const char *point)
{
	char heading[128];
	choose_cast(report, is_in_first_plots);
	if (report->cast_count == 0)
		return;
	if (report->shape.rate_count > 1) {
		fc_page_section(report->page, "Over the load", NULL);
		add_all_lines(report, add_over_load);
	}
	if (report->shape.memory_count > 1) {
		fc_page_section(report->page, "Over the DRAM",
				"Where tiering has as much DRAM as it needs, its line meets the others.");
		add_all_lines(report, add_over_memory);
	}
	snprintf(heading, sizeof(heading), "One load, %s", point);
	fc_page_section(report->page, heading, NULL);
	if (report->shape.rate_count == 1 && report->shape.memory_count == 1)
		add_hit_bars(report);
	add_time_bars(report, "Where the time to the first token went, mean");
	add_distribution(report);
	add_bandwidth(report);
}

static void add_second_plots(struct report *report)
{
	choose_cast(report, is_in_second_plots);
	if (report->cast_count < 2)
		return;
	fc_page_section(report->page, "FlatCake without one of its mechanisms",
			"Where one of them changes nothing at this load, another trace or less of the machine may show "
			"what it is for.");
	if (report->shape.rate_count > 1)
		add_over_load(report,
			      (struct fc_plot){
				      .title = "Time to first token, mean",
				      .y = {.label = "mean", .is_logarithmic = true, .print = fc_print_axis_seconds}},
			      fc_run_ttft_mean_s);
	add_time_bars(report, "Where the time to the first token went without one mechanism, mean");
}

static int add_all(struct report *report, const struct fc_simulation *simulation)
{
	char heading[128], point[FC_POINT_BYTES];
	fc_simulation_point(simulation, point);
	snprintf(heading, sizeof(heading), "Every policy, %s", point);
	fc_page_section(
		report->page, heading,
		"The same trace, machine and budgets for each. \"Of input\" and \"of possible\": blocks that were "
		"on the device when the prefill needed them, as a share of all blocks of the prompts, and of "
		"those that any cache could have had.");
	int code = add_table(report);
	add_first_plots(report, point);
	add_second_plots(report);
	return code == FC_OK ? fc_simulation_add_map(simulation, report->page) : code;
}

int fc_simulation_report(const struct fc_simulation *simulation, struct fc_page *page)
{
	if (simulation->run_count == 0)
		return FC_OK;
	struct report report = {.shape = fc_simulation_shape(simulation), .page = page};
	size_t count = report.shape.policy_count;
	report.cast = calloc(count, sizeof(*report.cast));
	report.series = calloc(count, sizeof(*report.series));
	report.names = calloc(count, sizeof(*report.names));
	report.values = calloc(count * 2 * (FC_SERIES_INTERVALS + PERCENTS), sizeof(*report.values));
	bool has_memory = report.cast != NULL && report.series != NULL && report.names != NULL && report.values != NULL;
	int code = has_memory ? add_all(&report, simulation) : FC_ENOMEM;
	free(report.cast);
	free(report.series);
	free(report.names);
	free(report.values);
	return code;
}

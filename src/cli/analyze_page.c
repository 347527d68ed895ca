/* An analysis as a section of a page: the LRU curve, and what is printed for people as it stands. */
#include "cli/analyze_report.h"
#include "cli/table.h"
#include "report/page.h"
#include "report/plot.h"

#include <stdlib.h>
#include <string.h>

static void add_curve(const struct fc_analyze_report *report, struct fc_page *page)
{
	const struct fc_analysis *analysis = report->analysis;
	uint64_t sizes_bytes[FC_CURVE_SIZES_MAX];
	double sizes[FC_CURVE_SIZES_MAX], hits[FC_CURVE_SIZES_MAX], best[FC_CURVE_SIZES_MAX];
	size_t count = fc_analyze_curve_sizes(report, sizes_bytes);
	double references = (double)analysis->reference_count;
	for (size_t i = 0; i < count; i++) {
		sizes[i] = (double)sizes_bytes[i];
		hits[i] =
			(double)fc_curve_hits(&analysis->curve, fc_analyze_blocks(report, sizes_bytes[i])) / references;
		best[i] = (double)analysis->hits / references;
	}
	const struct fc_plot_series series[] = {
		{.name = "LRU", .x = sizes, .y = hits, .count = count, .colour = 1},
		{.name = "best possible", .x = sizes, .y = best, .count = count, .colour = 6, .is_dashed = true},
	};
	struct fc_plot plot = {
		.title = "Hit rate of an LRU cache, by its size",
		.note = "Also the distribution of reuse distances: a block that comes back after so many distinct "
			"bytes is a hit from that size on.",
		.x = {.label = "size", .is_logarithmic = true, .is_binary = true, .print = fc_human_print_bytes},
		.y = {.label = "hits, of all blocks", .is_from_zero = true, .print = fc_human_print_share},
		.series = series,
		.series_count = 2,
	};
	fc_plot_add(page, &plot);
}

static void print_time(char *string, size_t bytes, double value)
{
	char text[FC_HUMAN_BYTES];
	snprintf(string, bytes, "%s", fc_human_ns((uint64_t)value, text));
}

#define PERCENTILE_COUNT 101

/* How many of all are at most so large: `unit` is what a number of the spread is worth on the axis. */
static void add_distribution(struct fc_page *page, const struct fc_spread *spread, double unit, struct fc_plot plot)
{
	double values[PERCENTILE_COUNT], shares[PERCENTILE_COUNT];
	if (spread->count == 0)
		return;
	for (size_t percent = 0; percent < PERCENTILE_COUNT; percent++) {
		values[percent] = (double)spread->percentiles[percent] * unit;
		shares[percent] = (double)percent / 100;
	}
	const struct fc_plot_series series = {
		.name = "share", .x = values, .y = shares, .count = PERCENTILE_COUNT, .colour = 1};
	plot.x.is_logarithmic = plot.y.is_from_zero = true;
	plot.y.print = fc_human_print_share;
	plot.series = &series;
	plot.series_count = 1;
	fc_plot_add(page, &plot);
}

static void add_distributions(const struct fc_analyze_report *report, struct fc_page *page)
{
	const struct fc_analysis *analysis = report->analysis;
	add_distribution(page, &analysis->reuse_ns, 1,
			 (struct fc_plot){.title = "Time until a block is used again",
					  .note = "Of every use but the first, since the one before.",
					  .x = {.label = "time", .print = print_time},
					  .y = {.label = "uses, up to this time"}});
	add_distribution(page, &analysis->session_blocks, report->block_bytes,
			 (struct fc_plot){.title = "KV of a session",
					  .note = "Distinct blocks of all its requests.",
					  .x = {.label = "size", .is_binary = true, .print = fc_human_print_bytes},
					  .y = {.label = "sessions, up to this size"}});
}

/* What `print` prints, to be freed also after a failure. */
static int print_to_text(const struct fc_analyze_report *report,
			 int (*print)(const struct fc_analyze_report *report, FILE *file), char **text)
{
	size_t bytes = 0;
	*text = NULL;
	FILE *file = open_memstream(text, &bytes);
	if (file == NULL)
		return FC_ENOMEM;
	int code = print(report, file);
	if (fclose(file) != 0 && code == FC_OK)
		code = FC_ENOMEM;
	return code;
}

static int add_text(const struct fc_analyze_report *report, struct fc_page *page)
{
	char *text;
	int code = print_to_text(report, fc_analyze_print, &text);
	if (code == FC_OK)
		fc_page_add_lines(page, text);
	free(text);
	return code;
}

int fc_analyze_add_words(const struct fc_analyze_report *report, bool is_brief, struct fc_page *page)
{
	char *text;
	int code = print_to_text(report, fc_analyze_print_words, &text);
	for (char *rest = text, *line; code == FC_OK && (line = strsep(&rest, "\n")) != NULL;)
		if (*line != 0 && !(is_brief && line != text))
			fc_page_add_words(page, NULL, line);
	free(text);
	return code;
}

int fc_analyze_add_page(const struct fc_analyze_report *report, struct fc_page *page)
{
	fc_page_section(page, "What the trace is made of", NULL);
	fc_page_begin_words(page);
	int code = fc_analyze_add_words(report, false, page);
	fc_page_end_words(page);
	if (report->analysis->reference_count > 0)
		add_curve(report, page);
	add_distributions(report, page);
	return code == FC_OK ? add_text(report, page) : code;
}

/* An analysis as a section of a page: the LRU curve, and what is printed for people as it stands. */
#include "cli/analyze_report.h"
#include "cli/table.h"
#include "report/page.h"
#include "report/plot.h"

#include <stdlib.h>

static void print_bytes(char *string, size_t bytes, double value)
{
	char text[FC_HUMAN_BYTES];
	snprintf(string, bytes, "%s", fc_human_bytes((uint64_t)value, text));
}

static void print_percent(char *string, size_t bytes, double value)
{
	snprintf(string, bytes, "%.4g %%", 100 * value);
}

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
			"bytes is "
			"a hit from that size on.",
		.x = {.label = "size", .is_logarithmic = true, .print = print_bytes},
		.y = {.label = "hits, of all blocks", .is_from_zero = true, .print = print_percent},
		.series = series,
		.series_count = 2,
	};
	fc_plot_add(page, &plot);
}

static int add_text(const struct fc_analyze_report *report, struct fc_page *page)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file = open_memstream(&text, &bytes);
	if (file == NULL)
		return FC_ENOMEM;
	int code = fc_analyze_print(report, file);
	if (fclose(file) != 0 && code == FC_OK)
		code = FC_ENOMEM;
	if (code == FC_OK)
		fc_page_add_lines(page, text);
	free(text);
	return code;
}

int fc_analyze_add_page(const struct fc_analyze_report *report, struct fc_page *page)
{
	fc_page_section(page, "What the trace is made of", NULL);
	if (report->analysis->reference_count > 0)
		add_curve(report, page);
	return add_text(report, page);
}

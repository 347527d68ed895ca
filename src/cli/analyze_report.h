/* What `flatcake analyze` says: for people, and for machines. */
#ifndef FC_CLI_ANALYZE_REPORT_H
#define FC_CLI_ANALYZE_REPORT_H

#include "analyze/judge.h"
#include "config/config.h"
#include "report/text.h"

#include <jansson.h>
#include <stdio.h>

struct fc_analyze_report {
	const struct fc_config *config;
	const struct fc_trace *trace;
	const struct fc_analysis *analysis;
	struct fc_judgement judgement;
	double block_bytes; /* of the chosen model, at the chosen scale */
};

/* FC_ENOMEM, FC_EIO. */
FC_MUST_USE int fc_analyze_print(const struct fc_analyze_report *report, FILE *file);

/* The sentences at its end alone, a line each: what kind of traffic this is, and whether tiering would do. FC_EIO. */
FC_MUST_USE int fc_analyze_print_words(const struct fc_analyze_report *report, FILE *file);

/* NULL without memory. What would be 0/0 is null. */
json_t *fc_analyze_json(const struct fc_analyze_report *report);

/* Adds those sentences to a list of them on a page; with `is_brief`, what kind of traffic it is alone. FC_ENOMEM. */
FC_MUST_USE int fc_analyze_add_words(const struct fc_analyze_report *report, bool is_brief, struct fc_page *page);
/* Adds a section to a page (--report): the curve, and all that is printed. FC_ENOMEM. */
FC_MUST_USE int fc_analyze_add_page(const struct fc_analyze_report *report, struct fc_page *page);

/* Analyzes the trace with the settings of report->config and calls `use` while the analysis is there. */
FC_MUST_USE int fc_analyze_with(struct fc_analyze_report *report,
				int (*use)(struct fc_analyze_report *report, void *context, struct fc_error *error),
				void *context, struct fc_error *error);

/* Sizes at which the LRU curve is shown: powers of two times a binary unit, from one that is small for the trace to the
 * first that holds all. Returns how many there are, at most `max`. */
#define FC_CURVE_SIZES_MAX 64
size_t fc_analyze_curve_sizes(const struct fc_analyze_report *report, uint64_t sizes_bytes[FC_CURVE_SIZES_MAX]);

/* Blocks of a cache of so many bytes, and the reverse, rounded down and up. */
uint64_t fc_analyze_blocks(const struct fc_analyze_report *report, uint64_t bytes);
uint64_t fc_analyze_bytes(const struct fc_analyze_report *report, double blocks);

#endif

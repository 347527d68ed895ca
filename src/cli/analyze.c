/* `flatcake analyze`: what a trace is made of, and what that means for where its KV should lie. */
#include "analyze/analyze.h"

#include "base/check.h"
#include "cli/analyze_report.h"
#include "cli/commands.h"
#include "cli/given.h"
#include "cli/json_file.h"
#include "cli/replay_trace.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>

uint64_t fc_analyze_blocks(const struct fc_analyze_report *report, uint64_t bytes)
{
	return (uint64_t)floor((double)bytes / report->block_bytes);
}

uint64_t fc_analyze_bytes(const struct fc_analyze_report *report, double blocks)
{
	double bytes = ceil(blocks * report->block_bytes);
	return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

size_t fc_analyze_curve_sizes(const struct fc_analyze_report *report, uint64_t sizes_bytes[FC_CURVE_SIZES_MAX])
{
	const struct fc_curve *curve = &report->analysis->curve;
	uint64_t all_hits = fc_curve_hits(curve, curve->size_max);
	size_t count = 0;
	for (uint64_t bytes = 1; count < FC_CURVE_SIZES_MAX && all_hits > 0; bytes *= 2) {
		uint64_t hits = fc_curve_hits(curve, fc_analyze_blocks(report, bytes));
		if (hits > 0) /* smaller caches hold nothing that is used again */
			sizes_bytes[count++] = bytes;
		if (hits == all_hits || bytes >= 1ull << 62)
			break;
	}
	return count;
}

static int write_page(const struct fc_analyze_report *report, struct fc_error *error)
{
	struct fc_page page = {0}, command = {0};
	fc_page_begin(&page, fc_given_name(report->config->arguments[0]), NULL);
	int code = fc_analyze_add_page(report, &page);
	fc_given_add(report->config, "analyze", &command);
	fc_page_end(&page, command.bytes);
	page.is_out_of_memory |= command.is_out_of_memory;
	if (code != FC_OK)
		code = fc_error_set(error, code, "--report: %s", fc_code_text(code));
	else
		code = fc_page_write(&page, report->config->report_path, error);
	fc_page_deinit(&page);
	fc_page_deinit(&command);
	return code;
}

static int print(struct fc_analyze_report *report, void *context, struct fc_error *error)
{
	const struct fc_config *config = report->config;
	(void)context;
	if (!fc_json_replaces_text(config) && fc_analyze_print(report, stdout) != FC_OK)
		return fc_error_set(error, FC_EIO, "cannot print the analysis");
	int code = config->report_path == NULL ? FC_OK : write_page(report, error);
	if (code != FC_OK || config->json_path == NULL)
		return code;
	return fc_json_write(config->json_path, fc_analyze_json(report), error);
}

int fc_analyze_with(struct fc_analyze_report *report,
		    int (*use)(struct fc_analyze_report *report, void *context, struct fc_error *error), void *context,
		    struct fc_error *error)
{
	const struct fc_config *config = report->config;
	struct fc_geometry geometry;
	int code = fc_geometry_preset(&geometry, config->model, report->trace->block_tokens, (uint32_t)config->scale,
				      error);
	if (code != FC_OK)
		return fc_error_wrap(error, code, "--model");
	report->block_bytes = fc_geometry_bytes_per_token(&geometry) * report->trace->block_tokens;
	fc_check(report->block_bytes > 0);
	struct fc_analyze_opts opts = {.dram_blocks = fc_analyze_blocks(report, config->dram_bytes),
				       .agent_context_tokens = config->agent_context_tokens,
				       .store_replies = config->is_storing_replies};
	struct fc_analysis analysis;
	code = fc_analyze(report->trace, &opts, &analysis);
	if (code != FC_OK)
		return fc_error_set(error, code, "%s for the analysis", fc_code_text(code));
	report->analysis = &analysis;
	fc_judge(&analysis, &report->judgement);
	code = use(report, context, error);
	fc_analysis_deinit(&analysis);
	return code;
}

int fc_command_analyze(const struct fc_config *config, struct fc_error *error)
{
	struct fc_analyze_report report = {.config = config};
	struct fc_trace *trace = NULL;
	int code = fc_replay_load_trace(config, &trace, error);
	report.trace = trace;
	if (code == FC_OK)
		code = fc_analyze_with(&report, print, NULL, error);
	fc_trace_free(trace);
	return code;
}

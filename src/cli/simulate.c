/* `flatcake replay --simulate`: a trace on a simulated node, once for each policy and rate. */
#include "cli/analyze_report.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/progress.h"
#include "cli/replay_trace.h"
#include "cli/table.h"
#include "replay/simulation_report.h"
#include "report/page.h"

#include <stdio.h>

struct simulate {
	struct fc_config config; /* with what the profile decides filled in */
	struct fc_hardware hardware;
	struct fc_trace *trace;
	struct fc_geometry geometry;
	struct fc_simulation simulation;
	struct fc_progress progress;
};

static void on_progress(void *context, uint64_t done)
{
	struct simulate *simulate = context;
	fc_progress_set(&simulate->progress, done);
}

static int run(struct simulate *simulate, struct fc_error *error)
{
	struct fc_simulation_opts opts = {
		.trace = simulate->trace,
		.geometry = &simulate->geometry,
		.hardware = &simulate->hardware,
		.config = &simulate->config,
		.memory_bytes = simulate->config.memory_bytes,
		.ssd_bytes = simulate->config.ssd_bytes,
		.progress_cb = on_progress,
		.context = simulate,
	};
	int code = fc_simulation_init(&simulate->simulation, &opts, error);
	if (code != FC_OK)
		return code;
	fc_progress_init(&simulate->progress, stderr, fc_clock_real(), "simulate", simulate->simulation.run_count);
	code = fc_simulation_run(&simulate->simulation, error);
	fc_progress_deinit(&simulate->progress);
	return code;
}

/* ---- the page ---- */

static int add_analysis(struct fc_analyze_report *report, void *context, struct fc_error *error)
{
	int code = fc_analyze_add_page(report, context);
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "--report: %s", fc_code_text(code));
}

static int add_sections(const struct simulate *simulate, struct fc_page *page, struct fc_error *error)
{
	int code = fc_simulation_report(&simulate->simulation, page);
	if (code != FC_OK)
		return fc_error_set(error, code, "--report: %s", fc_code_text(code));
	struct fc_config config = simulate->config;
	config.dram_bytes = config.memory_bytes;
	struct fc_analyze_report analysis = {.config = &config, .trace = simulate->trace};
	return fc_analyze_with(&analysis, add_analysis, page, error);
}

static int write_page(const struct simulate *simulate, struct fc_error *error)
{
	const struct fc_config *config = &simulate->config;
	struct fc_page page = {0};
	char lead[512], ssd[FC_HUMAN_BYTES];
	snprintf(lead, sizeof(lead), "%u requests of %u sessions; %s on %s, with %s of SSD",
		 simulate->trace->request_count, simulate->trace->session_count, simulate->geometry.name,
		 simulate->hardware.name, fc_human_bytes(config->ssd_bytes, ssd));
	fc_page_begin(&page, config->arguments[0], lead);
	int code = add_sections(simulate, &page, error);
	fc_page_end(&page, "flatcake replay --simulate --report");
	if (code == FC_OK)
		code = fc_page_write(&page, config->report_path, error);
	fc_page_deinit(&page);
	return code;
}

static int report(const struct simulate *simulate, struct fc_error *error)
{
	const struct fc_config *config = &simulate->config;
	if (!fc_json_replaces_text(config) && fc_simulation_print(&simulate->simulation, stdout) != FC_OK)
		return fc_error_set(error, FC_EIO, "cannot print the result");
	int code = config->report_path == NULL ? FC_OK : write_page(simulate, error);
	if (code != FC_OK || config->json_path == NULL)
		return code;
	return fc_json_write(config->json_path, fc_simulation_json(&simulate->simulation), error);
}

int fc_command_simulate(const struct fc_config *config, struct fc_error *error)
{
	struct simulate simulate = {.config = *config};
	struct fc_store_opts unused;
	int code = fc_hardware_load(&simulate.hardware, config->hardware, error);
	if (code == FC_OK) {
		fc_replay_use_profile(&simulate.config, &simulate.hardware);
		code = fc_replay_load_trace(&simulate.config, &simulate.trace, error);
	}
	if (code == FC_OK)
		code = fc_replay_make_options(&simulate.config, simulate.trace, &simulate.geometry, &unused, error);
	if (code == FC_OK && simulate.trace->request_count == 0)
		code = fc_error_set(error, FC_EINVAL, "the trace has no requests");
	if (code == FC_OK)
		code = run(&simulate, error);
	if (code == FC_OK)
		code = report(&simulate, error);
	fc_simulation_deinit(&simulate.simulation);
	fc_trace_free(simulate.trace);
	fc_hardware_deinit(&simulate.hardware);
	return code;
}

/* `flatcake replay --simulate`: a trace on a simulated node, once for each policy and rate; or on a fleet of
 * them. */
#include "base/check.h"
#include "cli/analyze_report.h"
#include "cli/commands.h"
#include "cli/given.h"
#include "cli/json_file.h"
#include "cli/progress.h"
#include "cli/replay_trace.h"
#include "cli/table.h"
#include "replay/fleet.h"
#include "replay/simulation_report.h"
#include "replay/simulation_words.h"
#include "replay/validation.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct simulate {
	struct fc_config config; /* with what the profile decides filled in */
	struct fc_hardware hardware;
	struct fc_trace *trace;
	struct fc_trace **rate_traces; /* the same with other times, one for each rate; NULL: all runs use `trace` */
	struct fc_geometry geometry;
	struct fc_simulation simulation;
	struct fc_progress progress;
	struct fc_validation *validation; /* NULL: none is shown */
};

static void on_progress(void *context, uint64_t done)
{
	struct simulate *simulate = context;
	fc_progress_set(&simulate->progress, done);
}

/* More requests a second from the same sessions is not more load on a cache, so each rate gets sessions in proportion:
 * the trace is read again for each, with other beginnings of its sessions. */
static int load_for_rates(struct simulate *simulate, struct fc_error *error)
{
	struct fc_simulation *simulation = &simulate->simulation;
	struct fc_config one = simulate->config;
	int code = FC_OK;
	if (one.concurrency_per_rate == 0)
		return FC_OK;
	simulate->rate_traces = calloc(simulation->rate_count, sizeof(struct fc_trace *));
	if (simulate->rate_traces == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu traces", simulation->rate_count);
	for (size_t i = 0; i < simulation->run_count && code == FC_OK; i++) {
		struct fc_simulated *run = &simulation->runs[i];
		size_t at = i / simulation->policy_count % simulation->rate_count;
		double active = round(run->rate_per_s * (double)one.concurrency_per_rate);
		if (!isfinite(run->rate_per_s))
			return fc_error_set(error, FC_EINVAL,
					    "--concurrency-per-rate: without a rate there is no number of sessions; "
					    "add --rate or --rates with numbers");
		one.concurrency = active < 1 ? 1 : active > UINT32_MAX ? UINT32_MAX : (uint64_t)active;
		if (simulate->rate_traces[at] == NULL)
			code = fc_replay_load_trace(&one, &simulate->rate_traces[at], error);
		run->trace = simulate->rate_traces[at];
	}
	return code;
}

static void free_rate_traces(struct simulate *simulate)
{
	for (size_t i = 0; i < simulate->simulation.rate_count && simulate->rate_traces != NULL; i++)
		fc_trace_free(simulate->rate_traces[i]);
	free(simulate->rate_traces);
	simulate->rate_traces = NULL;
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
	if (code == FC_OK)
		code = load_for_rates(simulate, error);
	if (code != FC_OK)
		return code;
	if (simulate->config.report_path != NULL && fc_simulation_want_maps(&simulate->simulation) != FC_OK)
		return fc_error_set(error, FC_ENOMEM, "--report: no memory for maps");
	fc_progress_init(&simulate->progress, stderr, fc_clock_real(), "simulate", simulate->simulation.run_count);
	code = fc_simulation_run(&simulate->simulation, error);
	fc_progress_deinit(&simulate->progress);
	return code;
}

/* ---- the page ---- */

struct sections {
	const struct simulate *simulate;
	struct fc_page *page;
};

static int add_sections(struct fc_analyze_report *analysis, void *context, struct fc_error *error)
{
	const struct sections *sections = context;
	const struct fc_simulation *simulation = &sections->simulate->simulation;
	struct fc_page *page = sections->page;
	fc_page_section(page, "In short", NULL);
	fc_page_begin_words(page);
	int code = fc_analyze_add_words(analysis, true, page);
	fc_simulation_add_words(simulation, page);
	fc_page_end_words(page);
	if (code == FC_OK)
		code = fc_simulation_report(simulation, page);
	if (code == FC_OK && sections->simulate->validation != NULL)
		code = fc_validation_report(sections->simulate->validation, page);
	if (code == FC_OK)
		code = fc_analyze_add_page(analysis, page);
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "--report: %s", fc_code_text(code));
}

static int add_body(const struct simulate *simulate, struct fc_page *page, struct fc_error *error)
{
	struct fc_config config = simulate->config;
	config.dram_bytes = simulate->simulation.runs[simulate->simulation.run_count - 1].memory_bytes;
	struct fc_analyze_report analysis = {.config = &config, .trace = simulate->trace};
	struct sections sections = {simulate, page};
	return fc_analyze_with(&analysis, add_sections, &sections, error);
}

static void print_lead(const struct simulate *simulate, char *lead, size_t bytes)
{
	char requests[FC_HUMAN_BYTES], ssd[FC_HUMAN_BYTES], sessions[FC_HUMAN_BYTES + 16] = "";
	if (simulate->trace->session_count > 0)
		snprintf(sessions, sizeof(sessions), " of %u sessions", simulate->trace->session_count);
	snprintf(lead, bytes, "%s requests%s, simulated: KV of %s, a node like %s, %s of SSD",
		 fc_human_count(simulate->trace->request_count, requests), sessions, simulate->geometry.name,
		 fc_given_name(simulate->hardware.name), fc_human_bytes(simulate->config.ssd_bytes, ssd));
}

static int write_page(const struct simulate *simulate, struct fc_error *error)
{
	const struct fc_config *config = &simulate->config;
	struct fc_page page = {0}, command = {0};
	char lead[512];
	print_lead(simulate, lead, sizeof(lead));
	fc_page_begin(&page, fc_given_name(config->arguments[0]), lead);
	int code = add_body(simulate, &page, error);
	fc_given_add(config, "replay", &command);
	fc_page_end(&page, command.bytes);
	page.is_out_of_memory |= command.is_out_of_memory;
	if (code == FC_OK)
		code = fc_page_write(&page, config->report_path, error);
	fc_page_deinit(&page);
	fc_page_deinit(&command);
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

/* ---- a fleet ---- */

static int run_fleet(struct simulate *simulate, struct fc_error *error)
{
	const struct fc_config *config = &simulate->config;
	struct fc_fleet fleet;
	struct fc_fleet_opts opts = {
		.trace = simulate->trace,
		.geometry = &simulate->geometry,
		.hardware = &simulate->hardware,
		.config = config,
		.memory_bytes = config->memory_bytes,
		.ssd_bytes = config->ssd_bytes,
		.progress_cb = on_progress,
		.context = simulate,
	};
	int code = fc_fleet_init(&fleet, &opts, error);
	if (code == FC_OK) {
		fc_progress_init(&simulate->progress, stderr, fc_clock_real(), "nodes", fc_fleet_total(&fleet));
		code = fc_fleet_run(&fleet, error);
		fc_progress_deinit(&simulate->progress);
	}
	if (code == FC_OK && !fc_json_replaces_text(config) && fc_fleet_print(&fleet, stdout) != FC_OK)
		code = fc_error_set(error, FC_EIO, "cannot print the result");
	if (code == FC_OK && config->json_path != NULL)
		code = fc_json_write(config->json_path, fc_fleet_json(&fleet), error);
	fc_fleet_deinit(&fleet);
	return code;
}

static int run_node(struct simulate *simulate, struct fc_error *error)
{
	int code = run(simulate, error);
	if (code == FC_OK)
		code = report(simulate, error);
	free_rate_traces(simulate);
	fc_simulation_deinit(&simulate->simulation);
	return code;
}

/* What a file or the environment sets for other runs, and this one could not do together. */
static int check_options(const struct fc_config *config, struct fc_error *error)
{
	const char *other = config->node_count > 0 ? "nodes" : config->mix != NULL ? "mix" : NULL;
	if (config->concurrency_per_rate > 0 && (other != NULL || config->speed > 0))
		return fc_error_set(error, FC_EINVAL, "concurrency-per-rate: not with --%s",
				    other != NULL ? other : "speed");
	if (config->speed > 0 && other != NULL)
		return fc_error_set(error, FC_EINVAL, "speed: not with --%s", other);
	if (config->node_count > 0 && config->mix != NULL)
		return fc_error_set(error, FC_EINVAL, "mix: not with --nodes");
	return FC_OK;
}

/* Before anything runs, so that a bad file is known at once. */
static int load_validation(struct simulate *simulate, struct fc_error *error)
{
	const struct fc_config *config = &simulate->config;
	if (config->validation_path == NULL || config->report_path == NULL)
		return FC_OK;
	simulate->validation = malloc(sizeof(*simulate->validation));
	if (simulate->validation == NULL)
		return fc_error_set(error, FC_ENOMEM, "--validation: no memory");
	int code = fc_validation_load(simulate->validation, config->validation_path, error);
	return code == FC_OK ? FC_OK : fc_error_wrap(error, code, "--validation");
}

int fc_command_simulate(const struct fc_config *config, struct fc_error *error)
{
	struct simulate simulate = {.config = *config};
	struct fc_store_opts unused;
	int code = check_options(config, error);
	if (code == FC_OK)
		code = load_validation(&simulate, error);
	if (code == FC_OK)
		code = fc_hardware_load(&simulate.hardware, config->hardware, error);
	if (code == FC_OK) {
		fc_replay_use_profile(&simulate.config, &simulate.hardware);
		code = config->mix != NULL ? fc_replay_load_mix(&simulate.config, &simulate.trace, error)
					   : fc_replay_load_trace(&simulate.config, &simulate.trace, error);
	}
	if (code == FC_OK)
		code = fc_replay_make_options(&simulate.config, simulate.trace, &simulate.geometry, &unused, error);
	if (code == FC_OK && simulate.trace->request_count == 0)
		code = fc_error_set(error, FC_EINVAL, "the trace has no requests");
	if (code == FC_OK)
		code = config->node_count > 0 ? run_fleet(&simulate, error) : run_node(&simulate, error);
	fc_trace_free(simulate.trace);
	fc_hardware_deinit(&simulate.hardware);
	free(simulate.validation);
	return code;
}

/* `flatcake replay --simulate`: a trace on a simulated node, once for each policy and rate. */
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/progress.h"
#include "cli/replay_trace.h"
#include "replay/simulation.h"

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

static void use_profile(struct simulate *simulate, const struct fc_config *config)
{
	const struct fc_hardware *hardware = &simulate->hardware;
	if (!fc_config_is_given(config, "model"))
		simulate->config.model = hardware->model;
	if (!fc_config_is_given(config, "memory"))
		simulate->config.memory_bytes = hardware->memory_bytes;
	if (!fc_config_is_given(config, "ssd"))
		simulate->config.ssd_bytes = hardware->ssd_bytes;
	if (fc_config_is_given(config, "prefill"))
		simulate->hardware.prefill_tokens_per_s = config->prefill_per_s;
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

static int report(const struct simulate *simulate, struct fc_error *error)
{
	const struct fc_config *config = &simulate->config;
	if (!fc_json_replaces_text(config) && fc_simulation_print(&simulate->simulation, stdout) != FC_OK)
		return fc_error_set(error, FC_EIO, "cannot print the result");
	if (config->json_path == NULL)
		return FC_OK;
	return fc_json_write(config->json_path, fc_simulation_json(&simulate->simulation), error);
}

int fc_command_simulate(const struct fc_config *config, struct fc_error *error)
{
	struct simulate simulate = {.config = *config};
	struct fc_store_opts unused;
	int code = fc_hardware_load(&simulate.hardware, config->hardware, error);
	if (code == FC_OK) {
		use_profile(&simulate, config);
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

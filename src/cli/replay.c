/* `flatcake replay`: a trace through a real store, with real bytes, and what came of it; or, with --simulate, what
 * simulate.c does. */
#define _GNU_SOURCE /* asprintf */
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/progress.h"
#include "cli/replay_trace.h"
#include "replay/driver.h"
#include "replay/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_BEYOND_STREAMS 2 /* under way besides those that read: one that is computed, one that is saved */
#define POOL_TURNS_BEYOND_STREAMS 4
#define REQUESTS_MAX 1024 /* at a given pace; what the store takes */

struct replay {
	const struct fc_config *config;
	struct fc_trace *trace;
	struct fc_geometry geometry;
	struct fc_store_opts store_opts;
	struct fc_interrupt interrupt;
	struct fc_replay_result *result;
	struct fc_progress progress;
	char model[FC_NAME_BYTES + 32];
	char *address; /* of the store */
};

static int make_options(struct replay *replay, struct fc_error *error)
{
	int code = fc_replay_make_options(replay->config, replay->trace, &replay->geometry, &replay->store_opts, error);
	replay->store_opts.daemon_namespace = replay->config->name_space;
	replay->store_opts.daemon_program = "flatcake replay";
	snprintf(replay->model, sizeof(replay->model), "%s/%llu", replay->geometry.name,
		 (unsigned long long)replay->config->scale);
	if (code != FC_OK)
		return code;
	bool has_daemon = replay->config->daemon != NULL;
	if (asprintf(&replay->address, "%s:%s", has_daemon ? "unix" : "dir",
		     has_daemon ? replay->config->daemon : replay->config->dir) >= 0)
		return FC_OK;
	replay->address = NULL;
	return fc_error_set(error, FC_ENOMEM, "no memory");
}

static void on_progress(void *context, uint64_t done)
{
	struct replay *replay = context;
	fc_progress_set(&replay->progress, done);
}

static int run(struct replay *replay, struct fc_error *error)
{
	const struct fc_config *config = replay->config;
	uint32_t streams = (uint32_t)config->streams;
	struct fc_pace pace = {.rate_per_s = config->rate_per_s, .speed = config->speed};
	struct fc_live_opts live_opts = {
		.address = replay->address,
		.store = &replay->store_opts,
		.turn_blocks_max = fc_driver_turn_blocks_max(replay->trace, config->is_storing_replies),
		.turn_count = streams + POOL_TURNS_BEYOND_STREAMS,
		.seed = config->seed,
		.is_checking = config->is_checking,
		.interrupt = &replay->interrupt,
	};
	struct fc_driver_opts driver_opts = {
		.trace = replay->trace,
		.geometry = &replay->geometry,
		.model = replay->model,
		.pace = pace,
		.prefill_per_s = config->prefill_per_s,
		.is_storing_replies = config->is_storing_replies,
		.active_max = fc_pace_is_set(pace) ? REQUESTS_MAX : streams + TURNS_BEYOND_STREAMS,
		.seed = config->seed,
		.progress_cb = on_progress,
		.context = replay,
	};
	struct fc_live live;
	int code = fc_live_open(&live, &live_opts, error);
	if (code != FC_OK)
		return code;
	if (fc_store_notice(live.store)[0] != 0)
		fprintf(stderr, "flatcake: replay: %s\n", fc_store_notice(live.store));
	replay->result->is_shared = config->daemon != NULL;
	fc_progress_init(&replay->progress, stderr, fc_clock_real(), "replay", replay->trace->request_count);
	code = fc_driver_run(&driver_opts, &live.backend, replay->result, error);
	fc_progress_deinit(&replay->progress);
	fc_live_close(&live);
	return code;
}

static int run_interruptibly(struct replay *replay, struct fc_error *error)
{
	int code = fc_replay_result_new(&replay->result, replay->trace->request_count);
	if (code != FC_OK)
		return fc_error_set(error, code, "no memory for the result");
	code = fc_interrupt_init(&replay->interrupt, error);
	if (code == FC_OK)
		code = run(replay, error);
	fc_interrupt_deinit(&replay->interrupt);
	return code;
}

static int report(const struct replay *replay, struct fc_error *error)
{
	const struct fc_config *config = replay->config;
	if (!fc_json_replaces_text(config) &&
	    fc_replay_print(replay->result, replay->trace, config, &replay->geometry, stdout) != FC_OK)
		return fc_error_set(error, FC_EIO, "cannot print the result");
	if (config->json_path == NULL)
		return FC_OK;
	return fc_json_write(config->json_path,
			     fc_replay_json(replay->result, replay->trace, config, &replay->geometry), error);
}

/* Whatever is wrong with the store must not pass for a success. */
static int judge(const struct fc_replay_result *result, struct fc_error *error)
{
	if (result->mismatches > 0)
		return fc_error_set(error, FC_ECORRUPT, "%llu delivered slices are wrong; the first: %s",
				    (unsigned long long)result->mismatches, result->first_mismatch.text);
	if (result->errors > 0)
		return fc_error_set(error, FC_EIO, "%llu errors; the first: %s", (unsigned long long)result->errors,
				    result->first_error.text);
	return FC_OK;
}

static int replay_live(const struct fc_config *config, struct fc_error *error)
{
	struct replay replay = {.config = config, .interrupt.fd = -1};
	int code = fc_replay_load_trace(config, &replay.trace, error);
	if (code == FC_OK)
		code = make_options(&replay, error);
	if (code == FC_OK)
		code = run_interruptibly(&replay, error);
	if (code == FC_OK)
		code = report(&replay, error);
	if (code == FC_OK)
		code = judge(replay.result, error);
	fc_replay_result_free(replay.result);
	fc_trace_free(replay.trace);
	free(replay.address);
	return code;
}

int fc_command_replay(const struct fc_config *config, struct fc_error *error)
{
	if (config->is_simulated)
		return fc_command_simulate(config, error);
	return replay_live(config, error);
}

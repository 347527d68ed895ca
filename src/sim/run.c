#include "sim/check.h"

#include <stdlib.h>
#include <string.h>

/* Every part has numbers of its own, so that a switch in one leaves the others as they were. */
enum stream {
	STREAM_SETTINGS,
	STREAM_FAULTS,
	STREAM_WORKLOAD,
	STREAM_BREAKAGE,
	STREAM_MEMORY,
	STREAM_DEVICE,
	STREAM_KV,
	STREAM_WIRE,
	STREAM_NETWORK,
	STREAM_ENGINES
};

static uint64_t seed_of(const struct fc_sim *sim, enum stream stream)
{
	uint64_t state = sim->opts.seed * 16 + (uint64_t)stream;
	return fc_random_split(&state);
}

static void init_media(struct fc_sim *sim)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (!sim->settings.has_medium[medium])
			continue;
		sim->media[medium] = fc_sim_medium_new(&sim->settings.media[medium], &sim->notes, &sim->faults);
		fc_check(sim->media[medium] != NULL);
	}
}

/* Faults that there cannot be. */
static void leave_out(struct fc_sim *sim)
{
	for (int fault = FC_FAULT_TRUNCATED; fault <= FC_FAULT_REPLACED && sim->is_wired; fault++)
		sim->faults.probability[fault] = 0;
	for (int fault = FC_FAULT_ENGINE_CRASH; fault <= FC_FAULT_STRANGER && !sim->is_wired; fault++)
		sim->faults.probability[fault] = 0;
}

static void *plain_alloc(void *context, size_t bytes)
{
	(void)context;
	return calloc(1, bytes);
}

static void plain_free(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	free(memory);
}

static void init_wires(struct fc_sim *sim)
{
	struct fc_random random;
	fc_random_init(&random, seed_of(sim, STREAM_WIRE));
	fc_sim_settings_choose_wire(&sim->settings, &random);
	for (uint32_t i = 1; i < sim->settings.space_count; i++)
		sim->spaces[i].secret = (struct fc_key){fc_random_u64(&random), fc_random_u64(&random)};
	sim->network = (struct fc_sim_network){
		.notes = &sim->notes,
		.alloc = {plain_alloc, plain_free, NULL},
		.delay_ns_max = sim->settings.delay_ns_max,
		.piece_bytes_max = sim->settings.piece_bytes_max,
		.stream_bytes_max = sim->settings.stream_bytes_max,
	};
	fc_random_init(&sim->network.random, seed_of(sim, STREAM_NETWORK));
	fc_sim_engines_init(sim, seed_of(sim, STREAM_ENGINES));
}

static void init_clients(struct fc_sim *sim)
{
	struct fc_random random;
	fc_random_init(&random, seed_of(sim, STREAM_KV));
	for (uint32_t i = 0; i < sim->settings.client_count; i++) {
		struct fc_sim_client *client = &sim->clients[i];
		client->number = i;
		client->process = &sim->holder;
		if (sim->is_wired)
			client->process = &sim->engines[i % sim->settings.engine_count].process;
		fc_check(fc_sim_kv_init(&client->kv, &sim->settings.geometry, &random) == FC_OK);
		if (sim->is_wired)
			client->kv.salt = sim->spaces[sim->engines[i % sim->settings.engine_count].space].secret;
	}
}

static void init(struct fc_sim *sim, const struct fc_sim_opts *opts)
{
	struct fc_random random;
	sim->opts = *opts;
	sim->is_wired = opts->is_wired;
	sim->notes.log = opts->log;
	sim->faults = opts->faults;
	fc_random_init(&random, seed_of(sim, STREAM_FAULTS));
	fc_sim_faults_choose(&sim->faults, &random);
	leave_out(sim);
	fc_random_init(&random, seed_of(sim, STREAM_SETTINGS));
	fc_sim_settings_choose(&sim->settings, &random);
	sim->clock_skew_ns = sim->settings.start_ns;
	fc_random_init(&sim->random, seed_of(sim, STREAM_WORKLOAD));
	fc_random_init(&sim->breakage, seed_of(sim, STREAM_BREAKAGE));
	fc_sim_memory_init(&sim->holder.memory, &sim->notes, seed_of(sim, STREAM_MEMORY));
	fc_sim_device_init(&sim->holder.device, &sim->notes, &sim->holder.memory, seed_of(sim, STREAM_DEVICE));
	sim->holder.sim = sim;
	if (sim->is_wired)
		init_wires(sim);
	init_media(sim);
	fc_sim_model_init(&sim->model);
	init_clients(sim);
	fc_sim_workload_init(sim);
}

static void deinit(struct fc_sim *sim)
{
	fc_sim_memory_forget(&sim->holder.memory);
	for (uint32_t i = 0; i < sim->settings.engine_count; i++)
		fc_sim_memory_forget(&sim->engines[i].process.memory);
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		fc_sim_stream_deinit(&sim->connections[i].up);
		fc_sim_stream_deinit(&sim->connections[i].down);
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_sim_medium_free(sim->media[medium]);
	for (uint32_t i = 0; i < sim->settings.client_count; i++)
		fc_sim_kv_deinit(&sim->clients[i].kv);
	fc_sim_model_deinit(&sim->model);
}

static void note_settings(struct fc_sim *sim)
{
	const struct fc_sim_settings *settings = &sim->settings;
	fc_sim_note(&sim->notes, "%llu layers, %llu groups, memory of %llu bytes, ssd of %llu",
		    settings->geometry.layer_count, settings->geometry.group_count,
		    settings->has_medium[FC_MEMORY] ? settings->media[FC_MEMORY].bytes : 0,
		    settings->has_medium[FC_SSD] ? settings->media[FC_SSD].bytes : 0);
	fc_sim_note(&sim->notes, "%llu clients, %llu sessions, %llu load streams, windows of %llu bytes",
		    settings->client_count, settings->session_count, settings->core.load_streams,
		    settings->core.window_bytes);
	if (sim->is_wired)
		fc_sim_note(&sim->notes, "%llu engines, %llu namespaces, a network that delays by %llu ns",
			    settings->engine_count, settings->space_count, settings->delay_ns_max, 0);
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++)
		if (sim->faults.probability[fault] > 0)
			fc_sim_note(&sim->notes, "fault %llu happens with a probability of %llu in a million",
				    (uint64_t)fault, (uint64_t)(sim->faults.probability[fault] * 1e6), 0, 0);
}

static void play(struct fc_sim *sim)
{
	note_settings(sim);
	(void)fc_sim_open(sim); /* damage is no surprise to an empty arena */
	while (sim->counts.operations < sim->opts.operation_count)
		fc_sim_operation(sim);
	sim->operation_losses = fc_sim_losses(sim);
	fc_sim_drain(sim);
}

bool fc_sim_run(struct fc_sim *sim, const struct fc_sim_opts *opts)
{
	init(sim, opts);
	if (setjmp(sim->notes.escape) == 0)
		play(sim);
	sim->counts.faults = fc_sim_fired(sim);
	deinit(sim);
	return sim->notes.broken[0] == '\0';
}

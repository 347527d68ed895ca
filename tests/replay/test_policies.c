/* What every policy owes the engine, over generated traces and budgets that are far too small; and that results do not
 * depend on how many processes compute them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/simulation.h"
#include "trace/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scene {
	struct fc_trace *trace;
	struct fc_geometry geometry;
	struct fc_hardware hardware;
	struct fc_config config;
	uint64_t block_bytes;
};

static void make_scene(struct scene *scene, uint64_t seed, const char *model)
{
	struct fc_generate_opts generate;
	struct fc_trace_opts trace_opts;
	struct fc_config_problem problem;
	struct fc_config_sources sources = {.command = FC_COMMAND_REPLAY};
	struct fc_error error = {0};
	fc_generate_opts_init(&generate);
	fc_trace_opts_init(&trace_opts);
	generate.seed = trace_opts.seed = seed;
	generate.session_count = 8;
	generate.turn_scale = 0.15;
	generate.token_scale = 0.2;
	trace_opts.concurrent_sessions = 4;
	assert_int_equal(fc_trace_generate(&generate, &trace_opts, &scene->trace, &error), FC_OK);
	assert_int_equal(fc_config_load(&scene->config, &sources, &problem), FC_OK);
	scene->config.seed = seed;
	if (fc_geometry_preset(&scene->geometry, model, scene->trace->block_tokens, 64, &error) != FC_OK ||
	    fc_hardware_load(&scene->hardware, "8xb200-deepseek-v4-flash", &error) != FC_OK)
		fail_msg("%s", error.text);
	scene->hardware.workers = 2;
	scene->block_bytes =
		(uint64_t)(fc_geometry_bytes_per_token(&scene->geometry) * scene->geometry.block_tokens + 0.5);
}

static void free_scene(struct scene *scene)
{
	fc_trace_free(scene->trace);
	fc_config_free(&scene->config);
	fc_hardware_deinit(&scene->hardware);
}

static void check_outcome(const struct scene *scene, const struct fc_policy_type *policy, struct fc_outcome *outcome)
{
	unsigned __int128 parts = 0;
	uint64_t delivered_bytes = outcome->media_bytes[FC_MEMORY] + outcome->media_bytes[FC_SSD];
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		parts += outcome->parts[part].sum;
	assert_int_equal(outcome->requests, scene->trace->request_count);
	assert_int_equal(outcome->ttft.count, scene->trace->request_count);
	assert_true(parts == outcome->ttft.sum);
	assert_int_equal(outcome->blocks, scene->trace->reference_count);
	assert_true(outcome->delivered_blocks <= outcome->possible_blocks);
	assert_true(outcome->possible_blocks <= outcome->seen_blocks);
	assert_true(outcome->seen_blocks < outcome->blocks);
	assert_true(outcome->bytes_read >= outcome->media_bytes[FC_SSD]);
	assert_true(outcome->drive_bytes_read >= outcome->bytes_read);
	/* Chunks and windows make it more, never less; Mooncake may have brought what the model cannot resume from. */
	assert_true(delivered_bytes >= outcome->delivered_blocks * scene->block_bytes);
	if (policy->has_no_ssd)
		assert_int_equal(outcome->drive_bytes_written, 0);
	if (policy->has_no_memory)
		assert_int_equal(outcome->media_bytes[FC_MEMORY], 0);
}

static void run_with(const struct scene *scene, struct fc_engine_opts opts, struct fc_outcome *outcome)
{
	struct fc_error error = {0};
	opts.trace = scene->trace;
	opts.geometry = &scene->geometry;
	opts.hardware = &scene->hardware;
	opts.config = &scene->config;
	if (fc_engine_run(&opts, outcome, &error) != FC_OK)
		fail_msg("%s: %s", opts.policy->name, error.text);
	check_outcome(scene, opts.policy, outcome);
}

static void run_one(const struct scene *scene, const struct fc_policy_type *policy, uint64_t memory_bytes,
		    uint64_t ssd_bytes, struct fc_outcome *outcome)
{
	struct fc_engine_opts opts = {
		.policy = policy, .memory_bytes = memory_bytes, .ssd_bytes = ssd_bytes, .rate_per_s = 4};
	run_with(scene, opts, outcome);
}

/* Over one trace with little DRAM, with these settings of mooncake or mooncake-gds. */
static void run_mooncake(const struct scene *scene, const char *policy, const char *settings, double rate_per_s,
			 struct fc_outcome *outcome)
{
	struct fc_engine_opts opts = {
		.policy = fc_policy_find(policy, strlen(policy)),
		.settings = settings,
		.memory_bytes = 40ull << 20,
		.ssd_bytes = 4ull << 30,
		.rate_per_s = rate_per_s,
	};
	run_with(scene, opts, outcome);
}

static void every_policy_keeps_the_contract(void **state)
{
	static const char *const models[] = {"deepseek-v4-flash", "llama-3.1-8b"};
	struct fc_outcome *outcome = calloc(1, sizeof(*outcome));
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct scene scene;
		make_scene(&scene, seed, models[seed % 2]);
		for (size_t i = 0; fc_policy_at(i) != NULL; i++) {
			const struct fc_policy_type *policy = fc_policy_at(i);
			run_one(&scene, policy, 64ull << 20, 1ull << 30, outcome); /* room */
			if (strcmp(policy->name, "infinite-dram") == 0)
				assert_int_equal(outcome->delivered_blocks, outcome->possible_blocks);
			if (strcmp(policy->name, "recompute") == 0)
				assert_int_equal(outcome->delivered_blocks, 0);
			run_one(&scene, policy, 1ull << 20, 16ull << 20, outcome); /* far too little */
		}
		free_scene(&scene);
	}
	free(outcome);
}

/* One request in the middle is larger than any worker: the run ends there, with others under way in every state. */
static void a_run_that_fails_leaves_nothing_behind(void **state)
{
	struct fc_outcome *outcome = calloc(1, sizeof(*outcome));
	struct scene scene;
	(void)state;
	make_scene(&scene, 9, "llama-3.1-8b");
	scene.trace->requests[scene.trace->request_count / 2].output_tokens = 1ull << 40;
	for (size_t i = 0; fc_policy_at(i) != NULL; i++) {
		struct fc_error error = {0};
		struct fc_engine_opts opts = {
			.trace = scene.trace,
			.geometry = &scene.geometry,
			.hardware = &scene.hardware,
			.config = &scene.config,
			.policy = fc_policy_at(i),
			.memory_bytes = 16ull << 20,
			.ssd_bytes = 1ull << 30,
			.rate_per_s = INFINITY,
		};
		assert_int_equal(fc_engine_run(&opts, outcome, &error), FC_ELIMIT);
		assert_true(outcome->requests > 0);
	}
	free_scene(&scene);
	free(outcome);
}

static void flat_delivers_what_there_is_room_for(void **state)
{
	struct fc_outcome *outcome = calloc(1, sizeof(*outcome));
	struct scene scene;
	(void)state;
	make_scene(&scene, 7, "deepseek-v4-flash");
	for (size_t i = 0; fc_policy_at(i) != NULL; i++) {
		if (strncmp(fc_policy_at(i)->name, "flat", 4) != 0)
			continue;
		run_one(&scene, fc_policy_at(i), 1ull << 20, 1ull << 30, outcome);
		/* a prompt that is shared for the first time was not known to be, when it was written */
		assert_true(outcome->delivered_blocks >= outcome->possible_blocks * 99 / 100);
	}
	free_scene(&scene);
	free(outcome);
}

static void outcomes_do_not_depend_on_the_number_of_processes(void **state)
{
	struct scene scene;
	struct fc_simulation first, second;
	struct fc_error error = {0};
	(void)state;
	make_scene(&scene, 3, "deepseek-v4-flash");
	scene.config.policies = "flat,mooncake,lmcache,recompute";
	scene.config.rates = "1,max";
	struct fc_simulation_opts opts = {
		.trace = scene.trace,
		.geometry = &scene.geometry,
		.hardware = &scene.hardware,
		.config = &scene.config,
		.memory_bytes = 8ull << 20,
		.ssd_bytes = 1ull << 30,
	};
	scene.config.job_count = 1;
	assert_int_equal(fc_simulation_init(&first, &opts, &error), FC_OK);
	assert_int_equal(fc_simulation_run(&first, &error), FC_OK);
	scene.config.job_count = 5;
	assert_int_equal(fc_simulation_init(&second, &opts, &error), FC_OK);
	assert_int_equal(fc_simulation_run(&second, &error), FC_OK);
	assert_int_equal(first.run_count, 8);
	for (size_t i = 0; i < first.run_count; i++) {
		first.runs[i].outcome->real_ns = second.runs[i].outcome->real_ns = 0;
		assert_memory_equal(first.runs[i].outcome, second.runs[i].outcome, sizeof(struct fc_outcome));
	}
	fc_simulation_deinit(&first);
	fc_simulation_deinit(&second);
	free_scene(&scene);
}

static void mistakes_in_names_and_settings_are_refused_before_anything_runs(void **state)
{
	static const struct {
		const char *policies, *settings, *text;
	} mistakes[] = {
		{"flat,flut", NULL, "there is no \"flut\""},
		{"mooncake", "mooncake.stagin=1GiB", "policy mooncake has no setting \"stagin\""},
		{"mooncake", "mooncake.staging=much", "--set mooncake.staging: \"much\" does not fit"},
		{"mooncake", "moncake.staging=1GiB", "there is no policy \"moncake\""},
		{"mooncake", "staging", "POLICY.KEY=VALUE is allowed"},
		{"mooncake", "mooncake.batch=1,mooncake.depth=1,mooncake.batch=2", "mooncake.batch is set twice"},
		{"flat", "mooncake.stagin=1GiB", "it has host_share, host_ratio, staging, "},
		{"flat", "mooncake.staging=much", "--set mooncake.staging: \"much\" does not fit"},
		{"flat", "recompute.speed=1", "it has none"},
		{"mooncake", "moncake.staging=1GiB", "there are flat, flat-one-queue, "},
		{"flat,mooncake,flat", NULL, "flat is named twice"},
		{"all,mooncake", NULL, "mooncake is named twice"},
	};
	struct scene scene;
	(void)state;
	make_scene(&scene, 1, "deepseek-v4-flash");
	struct fc_simulation_opts opts = {.trace = scene.trace, .config = &scene.config};
	for (size_t i = 0; i < fc_array_len(mistakes); i++) {
		struct fc_simulation simulation;
		struct fc_error error = {0};
		scene.config.policies = mistakes[i].policies;
		scene.config.policy_settings = mistakes[i].settings;
		assert_int_equal(fc_simulation_init(&simulation, &opts, &error), FC_EINVAL);
		assert_non_null(strstr(error.text, mistakes[i].text));
		fc_simulation_deinit(&simulation);
	}
	free_scene(&scene);
}

/* A load of more than the staging buffer holds ends where it is full; what is missing is counted, and computed. */
static void a_full_staging_buffer_cuts_mooncake_s_loads(void **state)
{
	struct fc_outcome *large = calloc(1, sizeof(*large)), *small = calloc(1, sizeof(*small));
	struct scene scene;
	(void)state;
	make_scene(&scene, 5, "llama-3.1-8b");
	run_mooncake(&scene, "mooncake", "mooncake.staging=100GiB,mooncake.host_ratio=1000,mooncake.bucket_objects=8",
		     0.2, large);
	run_mooncake(&scene, "mooncake", "mooncake.staging=4MiB,mooncake.host_ratio=1000,mooncake.bucket_objects=8",
		     0.2, small);
	assert_true(large->media_bytes[FC_SSD] > 0);
	assert_true(small->cancelled_blocks > 0);
	assert_true(small->media_bytes[FC_SSD] < large->media_bytes[FC_SSD]);
	assert_true(small->delivered_blocks < large->delivered_blocks);
	free_scene(&scene);
	free(large);
	free(small);
}

#define SMALL_BUCKETS "mooncake.bucket_objects=8,mooncake.heartbeat=1s,mooncake.lease=0ns"

/* v0.3.11 and later give a buffer back when its transfer is done; before, it was held for a lease. */
static void staging_is_given_back_when_its_transfer_is_done(void **state)
{
	struct fc_outcome *returned = calloc(1, sizeof(*returned)), *held = calloc(1, sizeof(*held));
	struct scene scene;
	(void)state;
	make_scene(&scene, 5, "llama-3.1-8b");
	run_mooncake(&scene, "mooncake", SMALL_BUCKETS ",mooncake.host_ratio=1000", 0.5, returned);
	run_mooncake(&scene, "mooncake", SMALL_BUCKETS ",mooncake.host_ratio=1000,mooncake.staging_lease=100s", 0.5,
		     held);
	assert_true(returned->media_bytes[FC_SSD] > 0);
	assert_true(held->cancelled_blocks > returned->cancelled_blocks);
	assert_true(held->delivered_blocks < returned->delivered_blocks);
	/* Staging is DRAM too: no more than a quarter of the budget, however much is asked for. */
	run_mooncake(&scene, "mooncake", SMALL_BUCKETS ",mooncake.host_ratio=1000,mooncake.staging=100GiB", 0.5, held);
	assert_int_equal(held->delivered_blocks, returned->delivered_blocks);
	assert_true(held->stats.bytes_stored[FC_MEMORY] > 20ull << 20);
	assert_true(held->stats.bytes_stored[FC_MEMORY] <= 30ull << 20);
	free_scene(&scene);
	free(returned);
	free(held);
}

/* SGLang asks how much is in flight before it adds the new prefetch: one that is larger than the limit is begun. */
static void a_prefetch_is_not_counted_against_itself(void **state)
{
	struct fc_outcome *outcome = calloc(1, sizeof(*outcome));
	struct scene scene;
	(void)state;
	make_scene(&scene, 5, "llama-3.1-8b");
	run_mooncake(&scene, "mooncake", SMALL_BUCKETS ",mooncake.host_ratio=1.02", 0.5, outcome);
	assert_true(outcome->media_bytes[FC_SSD] > 0);
	free_scene(&scene);
	free(outcome);
}

/* Straight to the device is past the page cache, also with one read at a time. */
static void a_direct_read_copies_nothing(void **state)
{
	struct fc_outcome *fast = calloc(1, sizeof(*fast)), *slow = calloc(1, sizeof(*slow));
	struct scene scene;
	(void)state;
	make_scene(&scene, 5, "llama-3.1-8b");
	static const char settings[] = "mooncake-gds.bucket_objects=8,mooncake-gds.heartbeat=10ms,mooncake-gds.depth=1";
	run_mooncake(&scene, "mooncake-gds", settings, 0.5, fast);
	scene.hardware.kernel_copy_bytes_per_s = 1000000;
	run_mooncake(&scene, "mooncake-gds", settings, 0.5, slow);
	assert_true(fast->media_bytes[FC_SSD] > 0);
	assert_true(fast->ttft.sum == slow->ttft.sum);
	free_scene(&scene);
	free(fast);
	free(slow);
}

static void a_map_shows_what_a_policy_has_stored(void **state)
{
	static const char *const names[] = {"flat", "flat-no-consolidate", "mooncake", "mooncake-gds", "hicache"};
	struct fc_outcome *outcome = calloc(1, sizeof(*outcome));
	struct fc_arena_map *maps = calloc(FC_MAP_MOMENTS, sizeof(*maps));
	struct scene scene;
	(void)state;
	make_scene(&scene, 3, "llama-3.1-8b");
	for (size_t i = 0; i < fc_array_len(names); i++) {
		struct fc_error error = {0};
		struct fc_engine_opts opts = {
			.trace = scene.trace,
			.geometry = &scene.geometry,
			.hardware = &scene.hardware,
			.config = &scene.config,
			.policy = fc_policy_find(names[i], strlen(names[i])),
			.settings = "mooncake.bucket_objects=4,mooncake-gds.bucket_objects=4",
			.memory_bytes = 40ull << 20,
			.ssd_bytes = 4ull << 30,
			.rate_per_s = 0.2,
			.maps = maps,
		};
		memset(maps, 0, FC_MAP_MOMENTS * sizeof(*maps));
		assert_int_equal(fc_engine_run(&opts, outcome, &error), FC_OK);
		const struct fc_arena_map *map = &maps[FC_MAP_MOMENTS - 1];
		uint64_t stored = outcome->stats.bytes_stored[FC_SSD];
		if (strcmp(names[i], "hicache") == 0) {
			assert_int_equal(map->arena_bytes, 0);
			continue;
		}
		assert_int_equal(map->request_count, scene.trace->request_count);
		assert_true(stored > 0);
		/* flat: in whole chunks, with headers */
		bool is_flat = strncmp(names[i], "flat", 4) == 0;
		assert_true(is_flat ? map->used_bytes >= stored : map->used_bytes == stored);
		assert_true(map->session_count > 1);
		assert_true(map->extent_bytes <= map->used_bytes);
		assert_true(maps[0].used_bytes <= map->used_bytes); /* nothing has gone */
	}
	free_scene(&scene);
	free(maps);
	free(outcome);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_keeps_the_contract),
		cmocka_unit_test(a_run_that_fails_leaves_nothing_behind),
		cmocka_unit_test(flat_delivers_what_there_is_room_for),
		cmocka_unit_test(outcomes_do_not_depend_on_the_number_of_processes),
		cmocka_unit_test(mistakes_in_names_and_settings_are_refused_before_anything_runs),
		cmocka_unit_test(a_map_shows_what_a_policy_has_stored),
		cmocka_unit_test(a_full_staging_buffer_cuts_mooncake_s_loads),
		cmocka_unit_test(staging_is_given_back_when_its_transfer_is_done),
		cmocka_unit_test(a_prefetch_is_not_counted_against_itself),
		cmocka_unit_test(a_direct_read_copies_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

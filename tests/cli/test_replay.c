/* `flatcake replay` as a whole: a generated trace through a real store in a folder of its own. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "cli/commands.h"
#include "trace/generate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 32

struct world {
	char folder[4096];
	char trace[4200], store[4200], json_path[4200];
	struct fc_error error;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	const char *base = getenv("TMPDIR");
	snprintf(world->folder, sizeof(world->folder), "%s/flatcake-replay-XXXXXX", base != NULL ? base : "/tmp");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->trace, sizeof(world->trace), "%s/trace.tar", world->folder);
	snprintf(world->store, sizeof(world->store), "%s/store", world->folder);
	snprintf(world->json_path, sizeof(world->json_path), "%s/result.json", world->folder);
	struct fc_generate_opts opts;
	fc_generate_opts_init(&opts);
	opts.session_count = 8;
	opts.turn_scale = 0.25;
	opts.token_scale = 0.1;
	opts.subagent_share = 0.03;
	opts.tool_set_count = 3;
	assert_int_equal(fc_generate_write(&opts, world->trace, false, NULL), FC_OK);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	char command[8192];
	snprintf(command, sizeof(command), "rm -rf '%s'", world->folder);
	int failed = system(command);
	free(world);
	return failed;
}

/* Runs the command with a trace and further options, words between spaces. Returns its code. */
static int replay(struct world *world, const char *trace, const char *options)
{
	char *arguments[ARGUMENTS_MAX] = {(char *)(uintptr_t)trace, "--dir", world->store, "--json", world->json_path};
	int count = 5;
	char *words = strdup(options), *rest = words;
	for (char *word; (word = strsep(&rest, " ")) != NULL && count < ARGUMENTS_MAX;)
		if (word[0] != '\0')
			arguments[count++] = word;
	struct fc_config config;
	struct fc_config_problem problem = {.error.code = 0};
	struct fc_config_sources sources = {FC_COMMAND_REPLAY, count, arguments, NULL};
	int code = fc_config_load(&config, &sources, &problem);
	if (code == FC_OK)
		code = fc_command_replay(&config, &problem.error);
	world->error = problem.error;
	fc_config_free(&config);
	free(words);
	return code;
}

static json_t *replay_well(struct world *world, const char *trace, const char *options)
{
	int code = replay(world, trace, options);
	if (code != FC_OK)
		fail_msg("%s: %s", options, world->error.text);
	json_t *json = json_load_file(world->json_path, 0, NULL);
	assert_non_null(json);
	return json;
}

static uint64_t number(const json_t *json, const char *name)
{
	const json_t *value = json_object_get(json, name);
	if (!json_is_integer(value))
		fail_msg("%s is no integer in the JSON", name);
	return (uint64_t)json_integer_value(value);
}

static void assert_all_delivered(const json_t *json)
{
	assert_int_equal(number(json, "mismatches"), 0);
	assert_int_equal(number(json, "errors"), 0);
	assert_int_equal(number(json, "saves_refused"), 0);
	assert_int_equal(number(json, "unexplained_blocks"), 0);
	assert_int_equal(number(json, "requests"), number(json, "requests_total"));
	assert_true(number(json, "possible_blocks") > number(json, "blocks") / 2);
	assert_int_equal(number(json, "delivered_blocks"), number(json, "possible_blocks"));
}

static void replay_all(struct world *world, const char *options)
{
	json_t *json = replay_well(world, world->trace, options);
	assert_all_delivered(json);
	json_decref(json);
}

static void a_plain_model_gets_all_that_is_possible(void **state)
{
	replay_all(*state, "--model llama-3.1-8b --scale 2048 --ssd 256MiB --memory 64MiB");
}

static void a_hybrid_model_gets_all_that_is_possible(void **state)
{
	replay_all(*state, "--scale 64 --ssd 256MiB --memory 64MiB");
}

static void without_consolidation_too(void **state)
{
	replay_all(*state, "--scale 64 --ssd 256MiB --memory 64MiB --consolidate 0");
}

static void ssd_alone_is_enough(void **state)
{
	replay_all(*state, "--scale 64 --ssd 256MiB --memory 0 --store-replies off --subagents off");
}

static void a_memory_budget_far_too_small_costs_nothing_that_was_reused(void **state)
{
	replay_all(*state, "--scale 64 --ssd 512MiB --memory 512KiB --memory-reclaim spill");
}

static void at_a_rate_requests_wait_for_their_session(void **state)
{
	struct world *world = *state;
	json_t *json = replay_well(world, world->trace, "--scale 256 --ssd 256MiB --rate 400 --prefill 1000000");
	assert_all_delivered(json);
	const json_t *prefill = json_object_get(json_object_get(json, "ttft_parts_ms"), "prefill");
	assert_true(json_number_value(json_object_get(prefill, "mean")) > 0);
	json_decref(json);
}

static void an_ssd_that_is_too_small_costs_sessions_and_nothing_else(void **state)
{
	struct world *world = *state;
	json_t *json = replay_well(world, world->trace, "--scale 64 --ssd 3MiB --memory 0");
	assert_int_equal(number(json, "mismatches"), 0);
	assert_int_equal(number(json, "errors"), 0);
	assert_true(number(json, "delivered_blocks") < number(json, "possible_blocks"));
	assert_true(number(json, "reclaimed_sessions") > 0);
	assert_int_equal(number(json, "unexplained_blocks"), 0);
	json_decref(json);
}

static void a_second_replay_starts_warm(void **state)
{
	struct world *world = *state;
	const char *options = "--scale 256 --ssd 256MiB --memory 0 --store-replies off";
	json_t *cold = replay_well(world, world->trace, options);
	assert_false(json_is_true(json_object_get(cold, "warm_start")));
	json_t *warm = replay_well(world, world->trace, options);
	assert_true(json_is_true(json_object_get(warm, "warm_start")));
	assert_all_delivered(warm);
	assert_true(number(warm, "delivered_blocks") > number(cold, "delivered_blocks"));
	assert_int_equal(number(warm, "blocks_new"), 0);
	json_decref(cold);
	json_decref(warm);
}

static void the_json_has_what_was_promised(void **state)
{
	struct world *world = *state;
	static const char *const integers[] = {
		"requests",           "blocks",        "prefix_blocks",      "possible_blocks",
		"delivered_blocks",   "mismatches",    "unexplained_blocks", "loads",
		"segments_touched",   "planned_runs",  "read_commands",      "bytes_wanted",
		"bytes_read",         "bytes_written", "bytes_stored",       "bytes_new",
		"reclaimed_sessions",
	};
	static const char *const parts[] = {"queue", "read", "ready", "prefill"};
	json_t *json = replay_well(world, world->trace, "--scale 256 --ssd 256MiB --sessions 2");
	for (size_t i = 0; i < fc_array_len(integers); i++)
		(void)number(json, integers[i]);
	const json_t *ttft = json_object_get(json, "ttft_ms");
	double sum = 0, mean = json_number_value(json_object_get(ttft, "mean"));
	assert_true(json_number_value(json_object_get(ttft, "p99")) >= json_number_value(json_object_get(ttft, "p50")));
	for (size_t i = 0; i < fc_array_len(parts); i++)
		sum += json_number_value(
			json_object_get(json_object_get(json_object_get(json, "ttft_parts_ms"), parts[i]), "mean"));
	assert_true(mean > 0 && sum > mean * 0.999 && sum < mean * 1.001); /* the parts are the whole */
	assert_true(json_number_value(json_object_get(json, "seconds")) > 0);
	assert_true(json_number_value(json_object_get(json, "ssd_read_bytes_per_s")) > 0);
	assert_true(number(json, "bytes_read") >= number(json, "bytes_wanted"));
	assert_int_equal(number(json_object_get(json, "settings"), "scale"), 256);
	assert_int_equal(number(json_object_get(json, "ssd"), "bytes_delivered"), number(json, "bytes_wanted"));
	assert_true(json_is_object(json_object_get(json, "memory")));
	json_decref(json);
}

static void a_bad_trace_is_named_with_its_line(void **state)
{
	struct world *world = *state;
	char path[4300];
	snprintf(path, sizeof(path), "%s/bad.jsonl", world->folder);
	FILE *file = fopen(path, "w");
	fputs("{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
	      "{\"timestamp\": 1, \"input_length\": -6, \"output_length\": 5, \"hash_ids\": [1, 2]}\n",
	      file);
	fclose(file);
	assert_int_equal(replay(world, path, "--scale 256"), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "bad.jsonl:2: input_length"));
	assert_int_not_equal(access(world->store, F_OK), 0);
	json_decref(replay_well(world, path, "--scale 4096 --ssd 64MiB --lenient"));
}

static void blocks_have_the_tokens_that_the_trace_says(void **state)
{
	struct world *world = *state;
	assert_int_equal(replay(world, world->trace, "--block-tokens 16"), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "--block-tokens: 16"));
	assert_non_null(strstr(world->error.text, "64 tokens"));
	json_decref(replay_well(world, world->trace, "--block-tokens 64 --scale 256 --ssd 64MiB --sessions 1"));
}

static void a_request_beyond_the_device_is_refused_with_its_need(void **state)
{
	struct world *world = *state;
	char path[4300];
	snprintf(path, sizeof(path), "%s/large.json", world->folder);
	FILE *file = fopen(path, "w");
	fputs("{\"id\": \"x\", \"block_size\": 64, \"hash_id_scope\": \"local\", \"tool_tokens\": 0, "
	      "\"system_tokens\": 0, \"requests\": [{\"t\": 0, \"type\": \"n\", \"in\": 6400000, \"out\": 1, "
	      "\"hash_ids\": [",
	      file);
	for (int i = 0; i < 100000; i++)
		fprintf(file, "%s%d", i == 0 ? "" : ", ", i);
	fputs("]}]}\n", file);
	fclose(file);
	assert_int_equal(replay(world, path, "--model llama-3.1-70b"), FC_ELIMIT);
	assert_non_null(strstr(world->error.text, "100000 blocks"));
	assert_non_null(strstr(world->error.text, "--scale"));
}

static void recorded_sessions_get_all_that_is_possible(void **state)
{
	struct world *world = *state;
	const char *source = getenv("FC_SOURCE_DIR");
	char beside[4300];
	snprintf(beside, sizeof(beside), "%s/../shared/traces/claude-code.tar.zst", source != NULL ? source : ".");
	if (access(beside, R_OK) != 0)
		skip();
	json_t *json = replay_well(world, beside, "--sessions 10 --scale 512 --ssd 512MiB --memory 64MiB");
	assert_all_delivered(json);
	json_decref(json);
}

int main(void)
{
#define STORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		STORY(a_plain_model_gets_all_that_is_possible),
		STORY(a_hybrid_model_gets_all_that_is_possible),
		STORY(without_consolidation_too),
		STORY(ssd_alone_is_enough),
		STORY(a_memory_budget_far_too_small_costs_nothing_that_was_reused),
		STORY(at_a_rate_requests_wait_for_their_session),
		STORY(an_ssd_that_is_too_small_costs_sessions_and_nothing_else),
		STORY(a_second_replay_starts_warm),
		STORY(the_json_has_what_was_promised),
		STORY(a_bad_trace_is_named_with_its_line),
		STORY(blocks_have_the_tokens_that_the_trace_says),
		STORY(a_request_beyond_the_device_is_refused_with_its_need),
		STORY(recorded_sessions_get_all_that_is_possible),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A fleet's plan and its runs: every request is served once and asks for what the trace says, copies share prompts and
 * nothing else, sessions stay where the router puts them, and results do not depend on how many processes there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/fleet.h"
#include "trace/generate.h"

#include <stdlib.h>
#include <string.h>

#define NODES 5u
#define REQUESTS 150u

struct scene {
	struct fc_trace *trace;
	struct fc_geometry geometry;
	struct fc_hardware hardware;
	struct fc_config config;
	struct fc_fleet_plan plan;
};

static void make_scene(struct scene *scene, uint64_t seed)
{
	struct fc_generate_opts generate;
	struct fc_trace_opts trace_opts;
	struct fc_config_problem problem;
	struct fc_config_sources sources = {.command = FC_COMMAND_REPLAY};
	struct fc_error error = {0};
	*scene = (struct scene){0};
	fc_generate_opts_init(&generate);
	fc_trace_opts_init(&trace_opts);
	generate.seed = trace_opts.seed = seed;
	generate.session_count = 8;
	generate.turn_scale = 0.15;
	generate.token_scale = 0.2;
	assert_int_equal(fc_trace_generate(&generate, &trace_opts, &scene->trace, &error), FC_OK);
	assert_int_equal(fc_config_load(&scene->config, &sources, &problem), FC_OK);
	if (fc_geometry_preset(&scene->geometry, "deepseek-v4-flash", scene->trace->block_tokens, 64, &error) !=
		    FC_OK ||
	    fc_hardware_load(&scene->hardware, "8xb200-deepseek-v4-flash", &error) != FC_OK)
		fail_msg("%s", error.text);
	struct fc_fleet_plan_opts opts = {
		.trace = scene->trace, .node_count = NODES, .request_count = REQUESTS, .concurrency = 1, .seed = seed};
	assert_true(opts.request_count > scene->trace->request_count); /* so that there is more than one copy */
	assert_int_equal(fc_fleet_plan_init(&scene->plan, &opts, &error), FC_OK);
	assert_true(scene->plan.copy_count > 1);
}

static void free_scene(struct scene *scene)
{
	fc_fleet_plan_deinit(&scene->plan);
	fc_trace_free(scene->trace);
	fc_config_free(&scene->config);
	fc_hardware_deinit(&scene->hardware);
}

static uint64_t expected_id(const struct scene *scene, uint64_t id, uint32_t copy)
{
	return id < scene->plan.shared_bound ? id : id + copy * scene->trace->id_bound;
}

static void check_list(const struct scene *scene, const struct fc_trace *node_trace, uint32_t number,
		       const struct fc_fleet_request *request)
{
	const struct fc_trace_request *made = &node_trace->requests[number];
	const struct fc_trace_request *wanted = &scene->trace->requests[request->request];
	uint64_t count = fc_trace_id_count(wanted);
	uint64_t *ids = calloc(2 * count + 1, sizeof(*ids));
	assert_int_equal(fc_trace_id_count(made), count);
	assert_int_equal(made->input_tokens, wanted->input_tokens);
	assert_int_equal(made->arrival_ns, request->arrival_ns);
	fc_trace_request_ids(node_trace, number, ids);
	fc_trace_request_ids(scene->trace, request->request, ids + count);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(ids[i], expected_id(scene, ids[count + i], request->copy));
	free(ids);
}

/* Under every router; a node's trace is whole in itself. */
static void every_request_is_served_once_with_its_list(void **state)
{
	struct scene scene;
	(void)state;
	make_scene(&scene, 1);
	for (int route = 0; route < FC_ROUTE_COUNT; route++) {
		uint64_t served[REQUESTS] = {0};
		assert_int_equal(fc_fleet_plan_route(&scene.plan, (enum fc_route)route), FC_OK);
		assert_int_equal(scene.plan.node_starts[NODES], REQUESTS);
		for (uint32_t node = 0; node < NODES; node++) {
			struct fc_trace *trace;
			const uint64_t *places = scene.plan.node_requests + scene.plan.node_starts[node];
			assert_int_equal(fc_fleet_node_trace(&scene.plan, node, &trace), FC_OK);
			assert_int_equal(trace->request_count, fc_fleet_node_count_of(&scene.plan, node));
			for (uint32_t i = 0; i < trace->request_count; i++) {
				served[places[i]]++;
				assert_true(i == 0 || places[i] > places[i - 1]);
				check_list(&scene, trace, i, &scene.plan.requests[places[i]]);
			}
			fc_trace_free(trace);
		}
		for (uint64_t i = 0; i < REQUESTS; i++)
			assert_int_equal(served[i], 1);
	}
	free_scene(&scene);
}

/* The rule of trace.h, counted again: what is shared is the same in two copies, and no other id is. */
static void copies_share_prompts_and_nothing_else(void **state)
{
	struct scene scene;
	uint64_t shared_count = 0;
	(void)state;
	make_scene(&scene, 2);
	for (uint32_t i = 0; i < scene.trace->request_count; i++) {
		const struct fc_trace_request *request = &scene.trace->requests[i];
		uint64_t shared = request->shared_tokens / scene.trace->block_tokens;
		uint64_t *ids = calloc(fc_trace_id_count(request) + 1, sizeof(*ids));
		fc_trace_request_ids(scene.trace, i, ids);
		for (uint64_t k = 0; k < fc_trace_id_count(request); k++) {
			assert_int_equal(ids[k] < scene.plan.shared_bound, k < shared);
			shared_count += k < shared;
		}
		free(ids);
	}
	assert_true(shared_count > 0);
	assert_true(scene.plan.shared_bound < scene.trace->id_bound);
	free_scene(&scene);
}

static uint32_t node_of(const struct fc_fleet_plan *plan, uint64_t place)
{
	for (uint32_t node = 0; node < NODES; node++)
		for (uint64_t i = plan->node_starts[node]; i < plan->node_starts[node + 1]; i++)
			if (plan->node_requests[i] == place)
				return node;
	fail_msg("request %llu is nowhere", (unsigned long long)place);
	return 0;
}

/* The node of a session, which all its requests must have; NODES where it has no request in the plan. */
static uint32_t session_node(const struct scene *scene, const struct fc_fleet_session *session)
{
	uint32_t found = NODES;
	for (uint64_t i = 0; i < REQUESTS; i++) {
		const struct fc_fleet_request *request = &scene->plan.requests[i];
		if (request->copy != session->copy ||
		    scene->trace->requests[request->request].session != session->session)
			continue;
		uint32_t node = node_of(&scene->plan, i);
		assert_true(found == NODES || found == node);
		found = node;
	}
	return found;
}

static void a_session_stays_on_its_node(void **state)
{
	struct scene scene;
	(void)state;
	make_scene(&scene, 3);
	for (int route = FC_ROUTE_SESSION; route <= FC_ROUTE_LEAST; route++) {
		assert_int_equal(fc_fleet_plan_route(&scene.plan, (enum fc_route)route), FC_OK);
		for (uint64_t i = 0; i < scene.plan.session_count; i++)
			(void)session_node(&scene, &scene.plan.sessions[i]);
	}
	free_scene(&scene);
}

/* Counted by hand: when a session began, no node had fewer that were active. */
static void least_takes_a_node_with_the_fewest_sessions(void **state)
{
	struct scene scene;
	(void)state;
	make_scene(&scene, 4);
	assert_int_equal(fc_fleet_plan_route(&scene.plan, FC_ROUTE_LEAST), FC_OK);
	uint32_t *nodes = calloc(scene.plan.session_count, sizeof(*nodes));
	for (uint64_t i = 0; i < scene.plan.session_count; i++) {
		uint64_t active[NODES + 1] = {0};
		nodes[i] = session_node(&scene, &scene.plan.sessions[i]);
		for (uint64_t k = 0; k < i; k++)
			active[nodes[k]] += scene.plan.sessions[k].end_ns > scene.plan.sessions[i].start_ns;
		if (nodes[i] == NODES)
			break; /* behind what the plan keeps; the counts from here on are not known */
		for (uint32_t node = 0; node < NODES; node++)
			assert_true(active[nodes[i]] <= active[node]);
	}
	free(nodes);
	free_scene(&scene);
}

static void run_fleet(struct scene *scene, struct fc_fleet *fleet, uint64_t jobs)
{
	struct fc_error error = {0};
	scene->config.job_count = jobs;
	scene->config.node_count = NODES;
	scene->config.request_count = REQUESTS;
	scene->config.rate_per_s = 4;
	scene->config.policies = "flat,hicache";
	scene->config.routes = "session,round-robin";
	struct fc_fleet_opts opts = {.trace = scene->trace,
				     .geometry = &scene->geometry,
				     .hardware = &scene->hardware,
				     .config = &scene->config,
				     .memory_bytes = 16ull << 20,
				     .ssd_bytes = 1ull << 30};
	if (fc_fleet_init(fleet, &opts, &error) != FC_OK || fc_fleet_run(fleet, &error) != FC_OK)
		fail_msg("%s", error.text);
}

static void results_do_not_depend_on_the_number_of_processes(void **state)
{
	struct scene scene;
	struct fc_fleet one, two;
	(void)state;
	make_scene(&scene, 5);
	run_fleet(&scene, &one, 1);
	run_fleet(&scene, &two, 2);
	assert_int_equal(one.run_count, 4);
	for (size_t i = 0; i < one.run_count; i++) {
		assert_memory_equal(one.runs[i].outcome, two.runs[i].outcome, sizeof(*one.runs[i].outcome));
		for (uint32_t node = 0; node < NODES; node++)
			assert_memory_equal(&one.runs[i].nodes[node], &two.runs[i].nodes[node],
					    sizeof(one.runs[i].nodes[node]));
		assert_int_equal(one.runs[i].outcome->requests, REQUESTS);
		assert_int_equal(one.runs[i].outcome->ttft.count, REQUESTS);
	}
	/* The router that ignores the cache pays for it. */
	assert_true(one.runs[2].outcome->delivered_blocks < one.runs[0].outcome->delivered_blocks);
	fc_fleet_deinit(&one);
	fc_fleet_deinit(&two);
	free_scene(&scene);
}

static void a_node_that_fails_is_named(void **state)
{
	struct scene scene;
	struct fc_fleet fleet;
	struct fc_error error = {0};
	(void)state;
	make_scene(&scene, 6);
	scene.config.node_count = NODES;
	scene.config.request_count = REQUESTS;
	scene.hardware.hbm_kv_bytes = 1;
	struct fc_fleet_opts opts = {.trace = scene.trace,
				     .geometry = &scene.geometry,
				     .hardware = &scene.hardware,
				     .config = &scene.config,
				     .memory_bytes = 16ull << 20,
				     .ssd_bytes = 1ull << 30};
	assert_int_equal(fc_fleet_init(&fleet, &opts, &error), FC_OK);
	assert_int_equal(fc_fleet_run(&fleet, &error), FC_ELIMIT);
	assert_non_null(strstr(error.text, "flat, session: node "));
	assert_non_null(strstr(error.text, "hbm_kv_bytes"));
	fc_fleet_deinit(&fleet);
	free_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_is_served_once_with_its_list),
		cmocka_unit_test(copies_share_prompts_and_nothing_else),
		cmocka_unit_test(a_session_stays_on_its_node),
		cmocka_unit_test(least_takes_a_node_with_the_fewest_sessions),
		cmocka_unit_test(results_do_not_depend_on_the_number_of_processes),
		cmocka_unit_test(a_node_that_fails_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "replay/fleet.h"

#include "base/random.h"
#include "clock/clock.h"
#include "replay/jobs.h"
#include "replay/simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES_MAX 64u /* a batch of nodes is one process's work; more would only take memory */
#define REQUESTS_EACH 1000u
#define RUNS_MAX 256u

/* ---- what is to be run ---- */

static int unknown_route(const char *name, struct fc_error *error)
{
	return fc_error_set(error, FC_EINVAL,
			    "--route: there is no \"%.80s\"; there are session, least, round-robin, random, and all",
			    name);
}

static int list_routes(const char *text, enum fc_route routes[RUNS_MAX], size_t *count, struct fc_error *error)
{
	char copy[256];
	*count = 0;
	if (strlen(text) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--route: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	for (char *rest = copy, *name; (name = strsep(&rest, ",")) != NULL;) {
		bool is_all = strcmp(name, "all") == 0, is_known = is_all;
		for (int route = 0; route < FC_ROUTE_COUNT; route++) {
			if (!is_all && strcmp(name, fc_route_name((enum fc_route)route)) != 0)
				continue;
			is_known = true;
			routes[(*count)++] = (enum fc_route)route;
		}
		if (!is_known)
			return unknown_route(name, error);
	}
	return FC_OK;
}

static int make_runs(struct fc_fleet *fleet, struct fc_error *error)
{
	const struct fc_config *config = fleet->opts.config;
	const struct fc_policy_type *types[FC_POLICIES_MAX];
	enum fc_route routes[RUNS_MAX];
	size_t type_count, route_count;
	int code = fc_policy_list(config->policies, types, &type_count, error);
	if (code == FC_OK)
		code = list_routes(config->routes, routes, &route_count, error);
	if (code == FC_OK && type_count * route_count > RUNS_MAX)
		code = fc_error_set(error, FC_EINVAL, "%zu policies behind %zu routers: at most %u runs", type_count,
				    route_count, RUNS_MAX);
	if (code != FC_OK)
		return code;
	uint32_t nodes = fleet->plan.opts.node_count;
	fleet->batch_count = fc_min_u64(nodes, BATCHES_MAX);
	fleet->batch_nodes = (nodes + fleet->batch_count - 1) / fleet->batch_count;
	fleet->runs = calloc(type_count * route_count, sizeof(*fleet->runs));
	fleet->batches = fc_jobs_alloc(fleet->batch_count * sizeof(*fleet->batches));
	if (fleet->runs == NULL || fleet->batches == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu runs", type_count * route_count);
	for (size_t i = 0; i < type_count * route_count; i++) {
		struct fc_fleet_run *run = &fleet->runs[fleet->run_count++];
		run->policy = types[i % type_count];
		run->route = routes[i / type_count];
		run->outcome = calloc(1, sizeof(*run->outcome));
		run->nodes = fc_jobs_alloc(nodes * sizeof(*run->nodes));
		if (run->outcome == NULL || run->nodes == NULL)
			return fc_error_set(error, FC_ENOMEM, "no memory for %u nodes", nodes);
	}
	code = fc_policy_check_settings(config->policy_settings, error);
	if (code == FC_OK && fc_config_is_flag(config, "set"))
		code = fc_policy_check_used(config->policy_settings, types, type_count, error);
	return code;
}

int fc_fleet_init(struct fc_fleet *fleet, const struct fc_fleet_opts *opts, struct fc_error *error)
{
	*fleet = (struct fc_fleet){.opts = *opts};
	struct fc_fleet_plan_opts plan = {
		.trace = opts->trace,
		.node_count = (uint32_t)opts->config->node_count,
		.request_count = opts->config->request_count,
		.concurrency = opts->config->concurrency,
		.seed = opts->config->seed,
	};
	if (plan.request_count == 0)
		plan.request_count = REQUESTS_EACH * opts->config->node_count;
	int code = fc_fleet_plan_init(&fleet->plan, &plan, error);
	return code == FC_OK ? make_runs(fleet, error) : code;
}

void fc_fleet_deinit(struct fc_fleet *fleet)
{
	for (size_t i = 0; i < fleet->run_count; i++) {
		free(fleet->runs[i].outcome);
		fc_jobs_free(fleet->runs[i].nodes, fleet->plan.opts.node_count * sizeof(*fleet->runs[i].nodes));
	}
	free(fleet->runs);
	fc_jobs_free(fleet->batches, fleet->batch_count * sizeof(*fleet->batches));
	fc_fleet_plan_deinit(&fleet->plan);
	*fleet = (struct fc_fleet){0};
}

uint64_t fc_fleet_total(const struct fc_fleet *fleet)
{
	return fleet->run_count * fleet->plan.opts.node_count;
}

/* ---- one node ---- */

static uint64_t percentile(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? value : 0;
}

static void note_node(struct fc_fleet_node *node, const struct fc_outcome *outcome, const struct fc_trace *trace)
{
	double mean;
	node->requests = outcome->requests;
	node->sessions = trace->session_count;
	node->blocks = outcome->blocks;
	node->possible_blocks = outcome->possible_blocks;
	node->delivered_blocks = outcome->delivered_blocks;
	node->ttft_mean_ns = fc_histogram_mean(&outcome->ttft, &mean) ? (uint64_t)mean : 0;
	node->ttft_p50_ns = percentile(&outcome->ttft, 50);
	node->ttft_p99_ns = percentile(&outcome->ttft, 99);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		node->media_bytes[medium] = outcome->media_bytes[medium];
	node->ssd_bytes_read = outcome->bytes_read;
	node->ssd_bytes_written = outcome->drive_bytes_written;
}

/* Its share of the fleet's rate, see fleet.h. */
static double rate_of(const struct fc_fleet *fleet, uint32_t node)
{
	double rate_per_s = fleet->opts.config->rate_per_s;
	double mean = (double)fleet->plan.request_count / fleet->plan.opts.node_count;
	return isfinite(rate_per_s) ? rate_per_s * (double)fc_fleet_node_count_of(&fleet->plan, node) / mean
				    : rate_per_s;
}

static int run_node(const struct fc_fleet *fleet, const struct fc_fleet_run *run, uint32_t node,
		    struct fc_outcome *outcome)
{
	struct fc_fleet_node *noted = &run->nodes[node];
	struct fc_config config = *fleet->opts.config;
	struct fc_trace *trace = NULL;
	uint64_t seed = config.seed + node;
	config.seed = fc_random_split(&seed);
	int code = fc_fleet_node_trace(&fleet->plan, node, &trace);
	if (code != FC_OK)
		return fc_error_set(&noted->error, code, "node %u: %s", node, fc_code_text(code));
	struct fc_engine_opts opts = {
		.trace = trace,
		.geometry = fleet->opts.geometry,
		.hardware = fleet->opts.hardware,
		.config = &config,
		.policy = run->policy,
		.settings = config.policy_settings,
		.memory_bytes = fleet->opts.memory_bytes,
		.ssd_bytes = fleet->opts.ssd_bytes,
		.rate_per_s = rate_of(fleet, node),
	};
	struct fc_error error = {0};
	code = fc_engine_run(&opts, outcome, &error);
	if (code != FC_OK)
		fc_error_set(&noted->error, code, "node %u: %.400s", node, error.text);
	else
		note_node(noted, outcome, trace);
	fc_trace_free(trace);
	return code;
}

/* ---- many ---- */

/* All that is a sum; what happened when is each node's own. */
static void add_outcome(struct fc_outcome *sum, const struct fc_outcome *one)
{
	sum->requests += one->requests;
	sum->blocks += one->blocks;
	sum->seen_blocks += one->seen_blocks;
	sum->under_way_blocks += one->under_way_blocks;
	sum->possible_blocks += one->possible_blocks;
	sum->delivered_blocks += one->delivered_blocks;
	sum->cancelled_blocks += one->cancelled_blocks;
	sum->cancelled_loads += one->cancelled_loads;
	sum->short_loads += one->short_loads;
	sum->loads += one->loads;
	sum->ssd_loads += one->ssd_loads;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		sum->media_bytes[medium] += one->media_bytes[medium];
	sum->bytes_read += one->bytes_read;
	sum->commands += one->commands;
	sum->segments += one->segments;
	sum->saves_refused += one->saves_refused;
	sum->output_tokens += one->output_tokens;
	fc_histogram_merge(&sum->ttft, &one->ttft);
	fc_histogram_merge(&sum->ttft_ssd, &one->ttft_ssd);
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		fc_histogram_merge(&sum->parts[part], &one->parts[part]);
	fc_histogram_merge(&sum->prefetch, &one->prefetch);
	sum->elapsed_ns = fc_max_u64(sum->elapsed_ns, one->elapsed_ns);
	sum->drive_bytes_read += one->drive_bytes_read;
	sum->drive_bytes_written += one->drive_bytes_written;
}

struct running {
	struct fc_fleet *fleet;
	struct fc_fleet_run *run;
};

static void run_batch(void *context, size_t batch)
{
	const struct running *running = context;
	const struct fc_fleet *fleet = running->fleet;
	struct fc_outcome *outcome = calloc(1, sizeof(*outcome));
	size_t first = batch * fleet->batch_nodes;
	size_t end = fc_min_u64(first + fleet->batch_nodes, fleet->plan.opts.node_count);
	for (size_t node = first; node < end; node++) {
		if (outcome == NULL)
			fc_error_set(&running->run->nodes[node].error, FC_ENOMEM, "no memory for an outcome");
		else if (run_node(fleet, running->run, (uint32_t)node, outcome) == FC_OK)
			add_outcome(&fleet->batches[batch], outcome);
	}
	free(outcome);
}

static void on_batch_ended(void *context, size_t batch, const struct fc_error *error)
{
	const struct running *running = context;
	struct fc_fleet *fleet = running->fleet;
	size_t first = fc_min_u64(batch * fleet->batch_nodes, fleet->plan.opts.node_count);
	size_t end = fc_min_u64(first + fleet->batch_nodes, fleet->plan.opts.node_count);
	if (error->code != FC_OK && first < end)
		running->run->nodes[first].error = *error;
	fleet->done += end - first;
	if (fleet->opts.progress_cb != NULL)
		fleet->opts.progress_cb(fleet->opts.context, fleet->done);
}

static int run_one(struct fc_fleet *fleet, struct fc_fleet_run *run, struct fc_error *error)
{
	struct running running = {.fleet = fleet, .run = run};
	struct fc_jobs jobs = {
		.count = fleet->batch_count,
		.at_once = fleet->opts.config->job_count,
		.run = run_batch,
		.ended = on_batch_ended,
		.context = &running,
	};
	uint64_t start_ns = fc_clock_real_ns();
	memset(fleet->batches, 0, fleet->batch_count * sizeof(*fleet->batches));
	int code = fc_jobs_run(&jobs, error);
	if (code != FC_OK)
		return code;
	for (uint32_t node = 0; node < fleet->plan.opts.node_count; node++) {
		const struct fc_error *failed = &run->nodes[node].error;
		if (failed->code != FC_OK)
			return fc_error_set(error, failed->code, "%s, %s: %.400s", run->policy->name,
					    fc_route_name(run->route), failed->text);
	}
	for (size_t batch = 0; batch < fleet->batch_count; batch++)
		add_outcome(run->outcome, &fleet->batches[batch]);
	run->real_ns = fc_clock_real_ns() - start_ns;
	return FC_OK;
}

int fc_fleet_run(struct fc_fleet *fleet, struct fc_error *error)
{
	int code = FC_OK;
	for (size_t i = 0; i < fleet->run_count && code == FC_OK; i++) {
		if (i == 0 || fleet->runs[i].route != fleet->runs[i - 1].route)
			code = fc_fleet_plan_route(&fleet->plan, fleet->runs[i].route);
		if (code == FC_OK)
			code = run_one(fleet, &fleet->runs[i], error);
		else
			fc_error_set(error, code, "--route: %s", fc_code_text(code));
	}
	return code;
}

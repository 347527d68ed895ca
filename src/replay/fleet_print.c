/* What a fleet did: one line a run, and in JSON every node. */
#include "replay/fleet.h"

#include "cli/json_file.h"
#include "cli/table.h"

#include <math.h>
#include <stdlib.h>

/* How one figure is spread over the nodes that had requests. */
struct spread {
	double least, median, greatest;
	uint32_t worst; /* node of the greatest */
	bool has_any;
};

typedef double (*figure_of)(const struct fc_fleet_node *node);

static double delivered_of(const struct fc_fleet_node *node)
{
	return (double)node->delivered_blocks / (double)node->blocks;
}

static double mean_of(const struct fc_fleet_node *node)
{
	return (double)node->ttft_mean_ns;
}

static double p99_of(const struct fc_fleet_node *node)
{
	return (double)node->ttft_p99_ns;
}

static double requests_of(const struct fc_fleet_node *node)
{
	return (double)node->requests;
}

static int compare_doubles(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;
	return first < second ? -1 : first > second;
}

static int spread_of(const struct fc_fleet *fleet, const struct fc_fleet_run *run, figure_of figure,
		     struct spread *spread)
{
	uint32_t count = 0;
	double *values = calloc(fleet->plan.opts.node_count + 1ull, sizeof(*values));
	*spread = (struct spread){0};
	if (values == NULL)
		return FC_ENOMEM;
	for (uint32_t node = 0; node < fleet->plan.opts.node_count; node++) {
		if (run->nodes[node].blocks == 0)
			continue;
		values[count] = figure(&run->nodes[node]);
		if (count == 0 || values[count] > spread->greatest) {
			spread->greatest = values[count];
			spread->worst = node;
		}
		count++;
	}
	qsort(values, count, sizeof(*values), compare_doubles);
	if (count > 0) {
		spread->has_any = true;
		spread->least = values[0];
		spread->median = values[count / 2];
	}
	free(values);
	return FC_OK;
}

/* ---- the table ---- */

static void ns_cell(struct fc_table *table, bool has_any, double time_ns)
{
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", has_any ? fc_human_ns((uint64_t)time_ns, text) : "n/a");
}

static void percentile_cell(struct fc_table *table, const struct fc_histogram *histogram, double percent)
{
	uint64_t value = 0;
	bool has_any = fc_histogram_percentile(histogram, percent, &value);
	ns_cell(table, has_any, (double)value);
}

static int add_row(const struct fc_fleet *fleet, const struct fc_fleet_run *run, struct fc_table *table)
{
	const struct fc_outcome *outcome = run->outcome;
	char text[FC_HUMAN_BYTES];
	struct spread hits, means, p99s, requests;
	double mean = 0;
	if (spread_of(fleet, run, delivered_of, &hits) != FC_OK || spread_of(fleet, run, mean_of, &means) != FC_OK ||
	    spread_of(fleet, run, p99_of, &p99s) != FC_OK || spread_of(fleet, run, requests_of, &requests) != FC_OK)
		return FC_ENOMEM;
	fc_table_cell(table, "%s", run->policy->name);
	fc_table_cell(table, "%s", fc_route_name(run->route));
	fc_table_cell(table, "%s", fc_human_percent(outcome->delivered_blocks, outcome->blocks, text));
	if (hits.has_any)
		fc_table_cell(table, "%.1f %%", 100 * hits.least);
	else
		fc_table_cell(table, "n/a");
	bool has_any = fc_histogram_mean(&outcome->ttft, &mean);
	ns_cell(table, has_any, mean);
	percentile_cell(table, &outcome->ttft, 50);
	percentile_cell(table, &outcome->ttft, 99);
	ns_cell(table, means.has_any, means.median);
	ns_cell(table, means.has_any, means.greatest);
	ns_cell(table, p99s.has_any, p99s.greatest);
	fc_table_cell(table, "%s", fc_human_count((uint64_t)requests.greatest, text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->media_bytes[FC_MEMORY], text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->media_bytes[FC_SSD], text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->drive_bytes_written, text));
	fc_table_cell(table, "%s", fc_human_ns(run->real_ns, text));
	return FC_OK;
}

int fc_fleet_print(const struct fc_fleet *fleet, FILE *file)
{
	static const char *const titles[] = {"policy",    "route",     "delivered", "worst node",  "TTFT mean",
					     "p50",       "p99",       "a node's",  "worst",       "worst p99",
					     "most reqs", "from DRAM", "from SSD",  "SSD written", "took"};
	const struct fc_fleet_plan *plan = &fleet->plan;
	char requests[FC_HUMAN_BYTES], sessions[FC_HUMAN_BYTES], memory[FC_HUMAN_BYTES], ssd[FC_HUMAN_BYTES];
	struct fc_table table;
	fprintf(file, "%u nodes, %s requests of %s sessions (the trace %u times, each with content of its own)\n",
		plan->opts.node_count, fc_human_count(plan->request_count, requests),
		fc_human_count(plan->session_count, sessions), plan->copy_count);
	fprintf(file, "%s on %s; each node with %s of memory and %s of SSD, cold start\n\n", fleet->opts.geometry->name,
		fleet->opts.hardware->name, fc_human_bytes(fleet->opts.memory_bytes, memory),
		fc_human_bytes(fleet->opts.ssd_bytes, ssd));
	if (fc_trace_print_left_out(plan->opts.trace, file))
		fputc('\n', file);
	fc_table_init(&table, "llrrrrrrrrrrrrr");
	for (size_t i = 0; i < fc_array_len(titles); i++)
		fc_table_cell(&table, "%s", titles[i]);
	int code = FC_OK;
	for (size_t i = 0; i < fleet->run_count && code == FC_OK; i++)
		code = add_row(fleet, &fleet->runs[i], &table);
	if (code == FC_OK)
		code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

/* ---- JSON ---- */

static json_t *times_ms(const struct fc_histogram *histogram)
{
	json_t *object = json_object();
	double mean;
	bool has_any = fc_histogram_mean(histogram, &mean);
	json_object_set_new(object, "count", fc_json_count(histogram->count));
	json_object_set_new(object, "mean", has_any ? json_real(mean / 1e6) : json_null());
	for (int i = 0; i < 2; i++) {
		uint64_t value = 0;
		has_any = fc_histogram_percentile(histogram, i == 0 ? 50 : 99, &value);
		json_object_set_new(object, i == 0 ? "p50" : "p99",
				    has_any ? json_real((double)value / 1e6) : json_null());
	}
	return object;
}

static json_t *node_json(const struct fc_fleet_node *node)
{
	json_t *object = json_object();
	json_object_set_new(object, "requests", fc_json_count(node->requests));
	json_object_set_new(object, "sessions", fc_json_count(node->sessions));
	json_object_set_new(object, "delivered_rate",
			    fc_json_ratio((double)node->delivered_blocks, (double)node->blocks));
	json_object_set_new(object, "possible_rate",
			    fc_json_ratio((double)node->possible_blocks, (double)node->blocks));
	json_object_set_new(object, "ttft_mean_ms", fc_json_ratio((double)node->ttft_mean_ns, 1e6));
	json_object_set_new(object, "ttft_p50_ms", fc_json_ratio((double)node->ttft_p50_ns, 1e6));
	json_object_set_new(object, "ttft_p99_ms", fc_json_ratio((double)node->ttft_p99_ns, 1e6));
	json_object_set_new(object, "memory_bytes_delivered", fc_json_count(node->media_bytes[FC_MEMORY]));
	json_object_set_new(object, "ssd_bytes_delivered", fc_json_count(node->media_bytes[FC_SSD]));
	json_object_set_new(object, "ssd_bytes_read", fc_json_count(node->ssd_bytes_read));
	json_object_set_new(object, "ssd_bytes_written", fc_json_count(node->ssd_bytes_written));
	return object;
}

static json_t *spread_json(const struct fc_fleet *fleet, const struct fc_fleet_run *run, figure_of figure, double unit)
{
	struct spread spread;
	if (spread_of(fleet, run, figure, &spread) != FC_OK || !spread.has_any)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:I}", "least", spread.least / unit, "median", spread.median / unit,
			 "greatest", spread.greatest / unit, "node_of_greatest", (json_int_t)spread.worst);
}

static json_t *run_json(const struct fc_fleet *fleet, const struct fc_fleet_run *run)
{
	const struct fc_outcome *outcome = run->outcome;
	json_t *object = json_object(), *nodes = json_array();
	json_object_set_new(object, "policy", json_string(run->policy->name));
	json_object_set_new(object, "route", json_string(fc_route_name(run->route)));
	json_object_set_new(object, "requests", fc_json_count(outcome->requests));
	json_object_set_new(object, "blocks", fc_json_count(outcome->blocks));
	json_object_set_new(object, "possible_blocks", fc_json_count(outcome->possible_blocks));
	json_object_set_new(object, "delivered_blocks", fc_json_count(outcome->delivered_blocks));
	json_object_set_new(object, "delivered_rate",
			    fc_json_ratio((double)outcome->delivered_blocks, (double)outcome->blocks));
	json_object_set_new(object, "ttft_ms", times_ms(&outcome->ttft));
	json_object_set_new(object, "memory_bytes_delivered", fc_json_count(outcome->media_bytes[FC_MEMORY]));
	json_object_set_new(object, "ssd_bytes_delivered", fc_json_count(outcome->media_bytes[FC_SSD]));
	json_object_set_new(object, "ssd_bytes_read", fc_json_count(outcome->bytes_read));
	json_object_set_new(object, "ssd_bytes_written", fc_json_count(outcome->drive_bytes_written));
	json_object_set_new(object, "read_commands", fc_json_count(outcome->commands));
	json_object_set_new(object, "cancelled_loads", fc_json_count(outcome->cancelled_loads));
	json_object_set_new(object, "simulated_seconds", json_real((double)outcome->elapsed_ns / 1e9));
	json_object_set_new(object, "requests_of_a_node", spread_json(fleet, run, requests_of, 1));
	json_object_set_new(object, "delivered_rate_of_a_node", spread_json(fleet, run, delivered_of, 1));
	json_object_set_new(object, "ttft_mean_ms_of_a_node", spread_json(fleet, run, mean_of, 1e6));
	json_object_set_new(object, "ttft_p99_ms_of_a_node", spread_json(fleet, run, p99_of, 1e6));
	for (uint32_t node = 0; node < fleet->plan.opts.node_count; node++)
		json_array_append_new(nodes, node_json(&run->nodes[node]));
	json_object_set_new(object, "nodes", nodes);
	return object;
}

json_t *fc_fleet_json(const struct fc_fleet *fleet)
{
	const struct fc_fleet_plan *plan = &fleet->plan;
	json_t *runs = json_array();
	for (size_t i = 0; i < fleet->run_count; i++)
		json_array_append_new(runs, run_json(fleet, &fleet->runs[i]));
	double rate_per_s = fleet->opts.config->rate_per_s;
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o}", "model",
			 fleet->opts.geometry->name, "hardware", fleet->opts.hardware->name, "nodes",
			 (json_int_t)plan->opts.node_count, "requests", (json_int_t)plan->request_count, "sessions",
			 (json_int_t)plan->session_count, "copies", (json_int_t)plan->copy_count, "skipped_records",
			 (json_int_t)plan->opts.trace->skipped_count, "requests_without_input",
			 (json_int_t)plan->opts.trace->without_input_count, "rate_per_s_of_a_node",
			 isfinite(rate_per_s) ? json_real(rate_per_s) : json_string("max"), "memory_bytes_of_a_node",
			 (json_int_t)fleet->opts.memory_bytes, "ssd_bytes_of_a_node", (json_int_t)fleet->opts.ssd_bytes,
			 "seed", (json_int_t)plan->opts.seed, "runs", runs);
}

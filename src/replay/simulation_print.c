/* What the runs found: one line each, and in JSON everything. */
#include "replay/simulation.h"

#include "cli/json_file.h"
#include "cli/table.h"

#include <math.h>

#define GIB 1073741824.0

static void number_cell(struct fc_table *table, double part, double whole, const char *format)
{
	char text[FC_HUMAN_BYTES];
	if (whole > 0) {
		snprintf(text, sizeof(text), format, part / whole);
		fc_table_cell(table, "%s", text);
	} else {
		fc_table_cell(table, "n/a");
	}
}

static void mean_cell(struct fc_table *table, const struct fc_histogram *histogram)
{
	double mean;
	char text[FC_HUMAN_BYTES];
	if (fc_histogram_mean(histogram, &mean))
		fc_table_cell(table, "%s", fc_human_ns((uint64_t)mean, text));
	else
		fc_table_cell(table, "n/a");
}

static void percentile_cell(struct fc_table *table, const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	char text[FC_HUMAN_BYTES];
	if (fc_histogram_percentile(histogram, percent, &value))
		fc_table_cell(table, "%s", fc_human_ns(value, text));
	else
		fc_table_cell(table, "n/a");
}

static void rate_cell(struct fc_table *table, const struct fc_simulated *run)
{
	if (run->config->speed > 0)
		fc_table_cell(table, "trace");
	else if (isfinite(run->rate_per_s))
		fc_table_cell(table, "%g", run->rate_per_s);
	else
		fc_table_cell(table, "max");
}

static void cells(struct fc_table *table, const char *const *titles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fc_table_cell(table, "%s", titles[i]);
}

static void add_hits(struct fc_table *table, const struct fc_simulated *run)
{
	const struct fc_outcome *outcome = run->outcome;
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", run->policy->name);
	fc_table_cell(table, "%s", fc_human_bytes(run->memory_bytes, text));
	rate_cell(table, run);
	if (outcome->error.code != FC_OK) {
		fc_table_cell(table, "failed");
		for (int i = 0; i < 8; i++)
			fc_table_cell(table, "%s", "");
		return;
	}
	number_cell(table, 100.0 * (double)outcome->delivered_blocks, (double)outcome->blocks, "%.2f %%");
	number_cell(table, 100.0 * (double)outcome->delivered_blocks, (double)outcome->possible_blocks, "%.2f %%");
	fc_table_cell(table, "%s", fc_human_count(outcome->cancelled_loads, text));
	mean_cell(table, &outcome->prefetch);
	number_cell(table, (double)outcome->bytes_read, (double)outcome->media_bytes[FC_SSD], "%.2f");
	number_cell(table, (double)outcome->commands, (double)outcome->ssd_loads, "%.1f");
	fc_table_cell(table, "%s", fc_human_bytes(outcome->media_bytes[FC_MEMORY], text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->media_bytes[FC_SSD], text));
	fc_table_cell(table, "%s", fc_human_bytes(outcome->drive_bytes_written, text));
}

static void add_times(struct fc_table *table, const struct fc_simulated *run)
{
	const struct fc_outcome *outcome = run->outcome;
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", run->policy->name);
	fc_table_cell(table, "%s", fc_human_bytes(run->memory_bytes, text));
	rate_cell(table, run);
	mean_cell(table, &outcome->ttft);
	percentile_cell(table, &outcome->ttft, 50);
	percentile_cell(table, &outcome->ttft, 99);
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		mean_cell(table, &outcome->parts[part]);
	fc_table_cell(table, "%s", fc_human_ns(outcome->elapsed_ns, text));
	fc_table_cell(table, "%s", fc_human_ns(outcome->real_ns, text));
}

static int print_hits(const struct fc_simulation *simulation, FILE *file)
{
	static const char *const titles[] = {"policy",        "DRAM",      "rate/s",   "of input",
					     "of possible",   "cancelled", "prefetch", "read amp",
					     "commands/load", "from DRAM", "from SSD", "SSD written"};
	struct fc_table table;
	fc_table_init(&table, "lrrrrrrrrrrr");
	cells(&table, titles, fc_array_len(titles));
	for (size_t i = 0; i < simulation->run_count; i++)
		add_hits(&table, &simulation->runs[i]);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static int print_times(const struct fc_simulation *simulation, FILE *file)
{
	static const char *const titles[] = {"policy", "DRAM", "rate/s", "TTFT mean", "p50",       "p99",
					     "queue",  "read", "ready",  "prefill",   "simulated", "took"};
	struct fc_table table;
	fc_table_init(&table, "lrrrrrrrrrrr");
	cells(&table, titles, fc_array_len(titles));
	for (size_t i = 0; i < simulation->run_count; i++)
		if (simulation->runs[i].outcome->error.code == FC_OK)
			add_times(&table, &simulation->runs[i]);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

/* Each kind of traffic of a mix for itself: who waits for whom. */
static void add_source(struct fc_table *table, const struct fc_simulated *run, uint32_t number)
{
	const struct fc_source_outcome *source = &run->outcome->sources[number];
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", run->policy->name);
	fc_table_cell(table, "%s", fc_human_bytes(run->memory_bytes, text));
	rate_cell(table, run);
	fc_table_cell(table, "%s", run->config->arguments[number]);
	fc_table_cell(table, "%s", fc_human_count(source->requests, text));
	number_cell(table, 100.0 * (double)source->delivered_blocks, (double)source->blocks, "%.2f %%");
	number_cell(table, 100.0 * (double)source->delivered_blocks, (double)source->possible_blocks, "%.2f %%");
	mean_cell(table, &source->ttft);
	percentile_cell(table, &source->ttft, 50);
	percentile_cell(table, &source->ttft, 99);
	mean_cell(table, &source->waited);
	percentile_cell(table, &source->waited, 99);
}

static int print_sources(const struct fc_simulation *simulation, FILE *file)
{
	static const char *const titles[] = {"policy",      "DRAM",      "rate/s", "trace", "requests", "of input",
					     "of possible", "TTFT mean", "p50",    "p99",   "waited",   "p99"};
	uint32_t source_count = simulation->opts.trace->source_count;
	struct fc_table table;
	if (source_count == 0)
		return FC_OK;
	fc_table_init(&table, "lrrlrrrrrrrr");
	cells(&table, titles, fc_array_len(titles));
	for (size_t i = 0; i < simulation->run_count; i++)
		for (uint32_t k = 0; k < source_count && simulation->runs[i].outcome->error.code == FC_OK; k++)
			add_source(&table, &simulation->runs[i], k);
	fputc('\n', file);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

int fc_simulation_print(const struct fc_simulation *simulation, FILE *file)
{
	const struct fc_simulation_opts *opts = &simulation->opts;
	const struct fc_outcome *first = simulation->runs[0].outcome;
	char requests[FC_HUMAN_BYTES], ssd[FC_HUMAN_BYTES], seen[FC_HUMAN_BYTES], possible[FC_HUMAN_BYTES];
	char sessions[FC_TRACE_SESSIONS_BYTES];
	fprintf(file, "%s, %s requests, blocks of %u tokens; %s on %s\n", fc_trace_sessions_text(opts->trace, sessions),
		fc_human_count(opts->trace->request_count, requests), opts->geometry->block_tokens,
		opts->geometry->name, opts->hardware->name);
	fprintf(file,
		"SSD %s, cold start; of the input, %s was seen before, and %s can be resumed from by the model\n\n",
		fc_human_bytes(opts->ssd_bytes, ssd), fc_human_percent(first->seen_blocks, first->blocks, seen),
		fc_human_percent(first->possible_blocks, first->blocks, possible));
	if (fc_trace_print_left_out(opts->trace, file))
		fputc('\n', file);
	fc_replay_print_clock(opts->trace, opts->config, first->under_way_blocks, file);
	int code = print_hits(simulation, file);
	fputc('\n', file);
	if (code == FC_OK)
		code = print_times(simulation, file);
	return code == FC_OK ? print_sources(simulation, file) : code;
}

/* ---- JSON ---- */

static json_t *times_ms(const struct fc_histogram *histogram)
{
	static const struct {
		const char *name;
		double percent;
	} percentiles[] = {{"p10", 10}, {"p50", 50}, {"p90", 90}, {"p99", 99}, {"max", 100}};
	json_t *object = json_object();
	double mean;
	bool has_any = fc_histogram_mean(histogram, &mean);
	json_object_set_new(object, "count", fc_json_count(histogram->count));
	json_object_set_new(object, "mean", has_any ? json_real(mean / 1e6) : json_null());
	for (size_t i = 0; i < fc_array_len(percentiles); i++) {
		uint64_t value = 0;
		bool is_there = fc_histogram_percentile(histogram, percentiles[i].percent, &value);
		json_object_set_new(object, percentiles[i].name,
				    is_there ? json_real((double)value / 1e6) : json_null());
	}
	return object;
}

/* Shares of all values that are no larger, at points a plot needs. */
static json_t *distribution_ms(const struct fc_histogram *histogram)
{
	json_t *array = json_array();
	for (double percent = 0; percent <= 100; percent += 2) {
		uint64_t value;
		if (fc_histogram_percentile(histogram, percent, &value))
			json_array_append_new(array, json_pack("[f, f]", (double)value / 1e6, percent));
	}
	return array;
}

static json_t *series(const struct fc_series *values)
{
	json_t *array = json_array();
	size_t last = 0;
	for (size_t i = 0; i < FC_SERIES_INTERVALS; i++)
		last = values->amounts[i] > 0 ? i + 1 : last;
	for (size_t i = 0; i < last; i++)
		json_array_append_new(array, fc_json_count(values->amounts[i]));
	return json_pack("{s:f, s:o}", "interval_s", (double)values->interval_ns / 1e9, "amounts", array);
}

static void add_prefix(json_t *object, const struct fc_outcome *outcome)
{
	json_object_set_new(object, "requests", fc_json_count(outcome->requests));
	json_object_set_new(object, "blocks", fc_json_count(outcome->blocks));
	json_object_set_new(object, "seen_blocks", fc_json_count(outcome->seen_blocks));
	json_object_set_new(object, "under_way_blocks", fc_json_count(outcome->under_way_blocks));
	json_object_set_new(object, "possible_blocks", fc_json_count(outcome->possible_blocks));
	json_object_set_new(object, "delivered_blocks", fc_json_count(outcome->delivered_blocks));
	json_object_set_new(object, "possible_rate",
			    fc_json_ratio((double)outcome->possible_blocks, (double)outcome->blocks));
	json_object_set_new(object, "delivered_rate",
			    fc_json_ratio((double)outcome->delivered_blocks, (double)outcome->blocks));
	json_object_set_new(object, "cancelled_blocks", fc_json_count(outcome->cancelled_blocks));
	json_object_set_new(object, "cancelled_loads", fc_json_count(outcome->cancelled_loads));
	json_object_set_new(object, "short_loads", fc_json_count(outcome->short_loads));
	json_object_set_new(object, "loads", fc_json_count(outcome->loads));
	json_object_set_new(object, "ssd_loads", fc_json_count(outcome->ssd_loads));
	json_object_set_new(object, "saves_refused", fc_json_count(outcome->saves_refused));
}

static void add_bytes(json_t *object, const struct fc_simulation *simulation, const struct fc_outcome *outcome)
{
	double drives = (double)simulation->opts.hardware->ssd_count;
	json_object_set_new(object, "memory_bytes_delivered", fc_json_count(outcome->media_bytes[FC_MEMORY]));
	json_object_set_new(object, "ssd_bytes_delivered", fc_json_count(outcome->media_bytes[FC_SSD]));
	json_object_set_new(object, "ssd_bytes_read", fc_json_count(outcome->bytes_read));
	json_object_set_new(object, "ssd_bytes_written", fc_json_count(outcome->drive_bytes_written));
	json_object_set_new(object, "read_commands", fc_json_count(outcome->commands));
	json_object_set_new(object, "read_amplification",
			    fc_json_ratio((double)outcome->bytes_read, (double)outcome->media_bytes[FC_SSD]));
	json_object_set_new(object, "read_commands_per_load",
			    fc_json_ratio((double)outcome->commands, (double)outcome->ssd_loads));
	json_object_set_new(object, "segments_per_load",
			    fc_json_ratio((double)outcome->segments, (double)outcome->ssd_loads));
	json_object_set_new(object, "ssd_read_bytes_per_s_of_a_load",
			    fc_json_ratio((double)outcome->bytes_read * 1e9, (double)outcome->read_busy_ns));
	json_object_set_new(object, "ssd_use",
			    fc_json_ratio((double)outcome->drive_busy_ns, drives * (double)outcome->elapsed_ns));
	json_object_set_new(object, "bytes_stored_memory", fc_json_count(outcome->stats.bytes_stored[FC_MEMORY]));
	json_object_set_new(object, "bytes_stored_ssd", fc_json_count(outcome->stats.bytes_stored[FC_SSD]));
	json_object_set_new(object, "bytes_lost", fc_json_count(outcome->stats.bytes_lost));
}

static json_t *sources_json(const struct fc_simulation *simulation, const struct fc_simulated *run)
{
	json_t *array = json_array();
	for (uint32_t i = 0; i < simulation->opts.trace->source_count; i++) {
		const struct fc_source_outcome *source = &run->outcome->sources[i];
		json_t *object = json_object();
		json_object_set_new(object, "trace", json_string(run->config->arguments[i]));
		json_object_set_new(object, "requests", fc_json_count(source->requests));
		json_object_set_new(object, "blocks", fc_json_count(source->blocks));
		json_object_set_new(object, "possible_blocks", fc_json_count(source->possible_blocks));
		json_object_set_new(object, "delivered_blocks", fc_json_count(source->delivered_blocks));
		json_object_set_new(object, "ttft_ms", times_ms(&source->ttft));
		json_object_set_new(object, "waited_ms", times_ms(&source->waited));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *run_json(const struct fc_simulation *simulation, const struct fc_simulated *run)
{
	const struct fc_outcome *outcome = run->outcome;
	json_t *object = json_object(), *parts = json_object();
	bool has_clock = simulation->opts.config->speed > 0;
	json_object_set_new(object, "policy", json_string(run->policy->name));
	json_object_set_new(object, "memory_bytes", fc_json_count(run->memory_bytes));
	json_object_set_new(object, "rate_per_s",
			    has_clock                   ? json_string("trace")
			    : isfinite(run->rate_per_s) ? json_real(run->rate_per_s)
							: json_string("max"));
	if (outcome->error.code != FC_OK)
		json_object_set_new(object, "error", json_string(outcome->error.text));
	add_prefix(object, outcome);
	add_bytes(object, simulation, outcome);
	json_object_set_new(object, "ttft_ms", times_ms(&outcome->ttft));
	json_object_set_new(object, "ttft_of_ssd_loads_ms", times_ms(&outcome->ttft_ssd));
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		json_object_set_new(parts, fc_ttft_part_name(part), times_ms(&outcome->parts[part]));
	json_object_set_new(object, "ttft_parts_ms", parts);
	json_object_set_new(object, "ttft_distribution", distribution_ms(&outcome->ttft));
	if (simulation->opts.trace->source_count > 0)
		json_object_set_new(object, "traces", sources_json(simulation, run));
	json_object_set_new(object, "ssd_prefetch_ms", times_ms(&outcome->prefetch));
	json_object_set_new(object, "ssd_read_ms", times_ms(&outcome->read));
	json_object_set_new(object, "ssd_read_bytes_over_time", series(&outcome->ssd_series));
	json_object_set_new(object, "delivered_blocks_over_time", series(&outcome->delivered_series));
	json_object_set_new(object, "possible_blocks_over_time", series(&outcome->possible_series));
	json_object_set_new(object, "simulated_seconds", json_real((double)outcome->elapsed_ns / 1e9));
	return object;
}

json_t *fc_simulation_json(const struct fc_simulation *simulation)
{
	const struct fc_simulation_opts *opts = &simulation->opts;
	json_t *runs = json_array();
	for (size_t i = 0; i < simulation->run_count; i++)
		json_array_append_new(runs, run_json(simulation, &simulation->runs[i]));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "model", opts->geometry->name,
			 "hardware", opts->hardware->name, "block_tokens", (json_int_t)opts->geometry->block_tokens,
			 "sessions", (json_int_t)opts->trace->session_count, "requests",
			 (json_int_t)opts->trace->request_count, "skipped_records",
			 (json_int_t)opts->trace->skipped_count, "requests_without_input",
			 (json_int_t)opts->trace->without_input_count, "ssd_bytes", (json_int_t)opts->ssd_bytes, "seed",
			 (json_int_t)opts->config->seed, "runs", runs);
}

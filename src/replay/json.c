/* The result for machines. Settings are taken from the table of options, so none can be forgotten. */
#include "base/check.h"
#include "cli/json_file.h"
#include "config/option.h"
#include "replay/result.h"

#include <math.h>

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *times_ms(const struct fc_histogram *histogram)
{
	double mean;
	uint64_t p50, p99;
	if (!fc_histogram_mean(histogram, &mean) || !fc_histogram_percentile(histogram, 50, &p50) ||
	    !fc_histogram_percentile(histogram, 99, &p99))
		return json_pack("{s:n, s:n, s:n}", "mean", "p50", "p99");
	return json_pack("{s:f, s:f, s:f}", "mean", mean / 1e6, "p50", (double)p50 / 1e6, "p99", (double)p99 / 1e6);
}

static json_t *parts_ms(const struct fc_replay_result *result)
{
	json_t *parts = json_object();
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++)
		json_object_set_new(parts, fc_ttft_part_name(part), times_ms(&result->ttft_parts[part]));
	return parts;
}

static json_t *medium(const struct fc_replay_result *result, enum fc_medium which)
{
	const struct fc_medium_stats *before = &result->before.media[which], *after = &result->after.media[which];
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes", fc_json_count(after->bytes), "bytes_used",
			 fc_json_count(after->bytes_used), "bytes_stored", fc_json_count(after->bytes_stored),
			 "bytes_delivered", fc_json_count(result->media_bytes[which]), "bytes_written",
			 fc_json_count(after->bytes_written - before->bytes_written), "sessions_reclaimed",
			 fc_json_count(after->sessions_reclaimed - before->sessions_reclaimed), "bytes_reclaimed",
			 fc_json_count(after->bytes_reclaimed - before->bytes_reclaimed), "segments",
			 fc_json_count(after->segments));
}

static json_t *setting(const struct fc_config *config, const struct fc_option *option)
{
	const void *field = (const char *)config + option->field_offset;
	switch (option->type) {
	case FC_OPTION_SIZE:
	case FC_OPTION_COUNT:
	case FC_OPTION_DURATION:
		return fc_json_count(*(const uint64_t *)field);
	case FC_OPTION_RATIO:
		return number(*(const double *)field);
	case FC_OPTION_RATE:
		return isinf(*(const double *)field) ? json_string("max") : number(*(const double *)field);
	case FC_OPTION_CHOICE:
		return json_string(option->choices[*(const int *)field]);
	case FC_OPTION_BOOL:
	case FC_OPTION_SWITCH:
		return json_boolean(*(const bool *)field);
	case FC_OPTION_TEXT:
		return *(const char *const *)field == NULL ? json_null() : json_string(*(const char *const *)field);
	}
	return NULL;
}

static json_t *settings(const struct fc_config *config)
{
	json_t *object = json_object();
	const struct fc_option *option;
	for (size_t row = 0; (option = fc_option_at(row)) != NULL; row++) {
		char name[FC_OPTION_NAME_BYTES];
		if ((option->commands & FC_COMMAND_REPLAY) == 0 || option->is_command_line_only)
			continue;
		fc_option_spell(option, FC_SPELLING_KEY, name);
		json_object_set_new(object, name, setting(config, option));
	}
	return object;
}

static void add_prefix(json_t *object, const struct fc_replay_result *result, bool is_checking, bool has_clock)
{
	json_object_set_new(object, "requests", fc_json_count(result->requests));
	json_object_set_new(object, "requests_total", fc_json_count(result->request_total));
	json_object_set_new(object, "is_interrupted", json_boolean(result->is_interrupted));
	json_object_set_new(object, "warm_start", json_boolean(result->is_warm));
	json_object_set_new(object, "blocks", fc_json_count(result->blocks));
	json_object_set_new(object, "prefix_blocks", fc_json_count(result->prefix_blocks));
	json_object_set_new(object, "under_way_blocks", fc_json_count(result->under_way_blocks));
	json_object_set_new(object, "trace_times_count", json_boolean(has_clock));
	json_object_set_new(object, "possible_blocks", fc_json_count(result->possible_blocks));
	json_object_set_new(object, "delivered_blocks", fc_json_count(result->delivered_blocks));
	json_object_set_new(object, "unexplained_blocks", fc_json_count(result->unexplained_blocks));
	json_object_set_new(object, "short_loads", fc_json_count(result->short_loads));
	json_object_set_new(object, "mismatches", is_checking ? fc_json_count(result->mismatches) : json_null());
	json_object_set_new(object, "errors", fc_json_count(result->errors));
}

static void add_reads(json_t *object, struct fc_replay_result *result)
{
	uint64_t wanted = result->media_bytes[FC_SSD];
	json_object_set_new(object, "loads", fc_json_count(result->loads));
	json_object_set_new(object, "segments_touched", fc_json_count(result->segments_touched));
	json_object_set_new(object, "planned_runs", fc_json_count(result->planned_runs));
	json_object_set_new(object, "read_commands", fc_json_count(result->read_commands));
	json_object_set_new(object, "segments_per_load",
			    fc_json_ratio((double)result->segments_touched, (double)result->loads));
	json_object_set_new(object, "planned_runs_per_load",
			    fc_json_ratio((double)result->planned_runs, (double)result->loads));
	json_object_set_new(object, "read_commands_per_load",
			    fc_json_ratio((double)result->read_commands, (double)result->loads));
	json_object_set_new(object, "bytes_wanted", fc_json_count(wanted));
	json_object_set_new(object, "bytes_read", fc_json_count(result->bytes_read));
	json_object_set_new(object, "read_amplification", fc_json_ratio((double)result->bytes_read, (double)wanted));
	json_object_set_new(object, "ssd_read_bytes_per_s",
			    fc_json_ratio((double)result->bytes_read * 1e9, (double)fc_busy_ns(&result->busy[FC_SSD])));
	json_object_set_new(
		object, "memory_read_bytes_per_s",
		fc_json_ratio((double)result->memory_only_bytes * 1e9, (double)fc_busy_ns(&result->busy[FC_MEMORY])));
}

static void add_writes(json_t *object, const struct fc_replay_result *result)
{
	uint64_t written = fc_replay_bytes_written(result);
	json_object_set_new(object, "saves", fc_json_count(result->saves));
	json_object_set_new(object, "saves_refused", fc_json_count(result->saves_refused));
	json_object_set_new(object, "blocks_new", fc_json_count(result->blocks_new));
	json_object_set_new(object, "bytes_new", fc_json_count(result->bytes_new));
	json_object_set_new(object, "bytes_written", fc_json_count(written));
	json_object_set_new(object, "bytes_stored", fc_json_count(fc_replay_bytes_stored(result)));
	json_object_set_new(object, "write_amplification", fc_json_ratio((double)written, (double)result->bytes_new));
	json_object_set_new(object, "segments_absorbed", fc_json_count(result->segments_absorbed));
	json_object_set_new(object, "segments_spilled",
			    fc_json_count(result->after.segments_spilled - result->before.segments_spilled));
	json_object_set_new(object, "reclaimed_sessions",
			    fc_json_count(fc_replay_sessions_reclaimed(result, FC_MEMORY) +
					  fc_replay_sessions_reclaimed(result, FC_SSD)));
	json_object_set_new(object, "memory", medium(result, FC_MEMORY));
	json_object_set_new(object, "ssd", medium(result, FC_SSD));
}

json_t *fc_replay_json(struct fc_replay_result *result, const struct fc_trace *trace, const struct fc_config *config,
		       const struct fc_geometry *geometry)
{
	json_t *object = json_object();
	if (object == NULL)
		return NULL;
	json_object_set_new(object, "model", json_string(geometry->name));
	json_object_set_new(object, "block_tokens", fc_json_count(geometry->block_tokens));
	json_object_set_new(object, "sessions", fc_json_count(trace->session_count));
	json_object_set_new(object, "skipped_records", fc_json_count(trace->skipped_count));
	json_object_set_new(object, "requests_without_input", fc_json_count(trace->without_input_count));
	add_prefix(object, result, config->is_checking, config->speed > 0);
	add_reads(object, result);
	add_writes(object, result);
	json_object_set_new(object, "ttft_ms", times_ms(&result->ttft));
	json_object_set_new(object, "ttft_parts_ms", parts_ms(result));
	json_object_set_new(object, "seconds", json_real((double)result->elapsed_ns / 1e9));
	json_object_set_new(object, "settings", settings(config));
	return object;
}

/* The result for people. */
#include "base/check.h"
#include "cli/table.h"
#include "replay/result.h"

#include <math.h>

static void row(struct fc_table *table, const char *name, const char *value, const char *note)
{
	fc_table_cell(table, "%s", name);
	fc_table_cell(table, "%s", value);
	fc_table_cell(table, "%s", note);
}

static void count_row(struct fc_table *table, const char *name, uint64_t count, const char *note)
{
	char text[FC_HUMAN_BYTES];
	row(table, name, fc_human_count(count, text), note);
}

/* "3.42" of 0/0 is "n/a". */
static const char *ratio_text(double part, double whole, char text[FC_HUMAN_BYTES])
{
	if (whole > 0)
		snprintf(text, FC_HUMAN_BYTES, "%.2f", part / whole);
	else
		snprintf(text, FC_HUMAN_BYTES, "n/a");
	return text;
}

static void ratio_row(struct fc_table *table, const char *name, double part, double whole, const char *note)
{
	char text[FC_HUMAN_BYTES];
	row(table, name, ratio_text(part, whole, text), note);
}

static const char *bandwidth_text(uint64_t bytes, uint64_t time_ns, char text[FC_HUMAN_BYTES + 2])
{
	char number[FC_HUMAN_BYTES];
	if (time_ns == 0)
		return "n/a";
	snprintf(text, FC_HUMAN_BYTES + 2, "%s/s",
		 fc_human_bytes((uint64_t)((double)bytes * 1e9 / (double)time_ns), number));
	return text;
}

static void prefix_row(struct fc_table *table, const struct fc_replay_result *result, const char *name, uint64_t blocks,
		       const char *note)
{
	char percent[FC_HUMAN_BYTES], text[128];
	snprintf(text, sizeof(text), "%s of the input%s", fc_human_percent(blocks, result->blocks, percent), note);
	count_row(table, name, blocks, text);
}

static void add_prefix(struct fc_table *table, const struct fc_replay_result *result, bool is_checking)
{
	char note[96];
	snprintf(note, sizeof(note), "%s%llu errors", result->is_interrupted ? "interrupted, " : "",
		 (unsigned long long)result->errors);
	count_row(table, "requests", result->requests, note);
	count_row(table, "input blocks", result->blocks, "");
	prefix_row(table, result, "  seen before", result->prefix_blocks, "");
	prefix_row(table, result, "  under way", result->under_way_blocks,
		   ", of requests that had not ended: no cache has them yet");
	prefix_row(table, result, "  possible prefix", result->possible_blocks, ", by the model's resume points");
	prefix_row(table, result, "  delivered prefix", result->delivered_blocks, "");
	snprintf(note, sizeof(note), "%llu blocks that no reclaim explains",
		 (unsigned long long)result->unexplained_blocks);
	count_row(table, "  short loads", result->short_loads, note);
	if (is_checking)
		count_row(table, "mismatches", result->mismatches, "slices that are not what was saved");
	else
		row(table, "mismatches", "n/a", "delivered bytes were not compared (--check off)");
}

static void add_reads(struct fc_table *table, struct fc_replay_result *result)
{
	char bytes[FC_HUMAN_BYTES], bandwidth[FC_HUMAN_BYTES + 2], note[96];
	count_row(table, "loads", result->loads, "that found something");
	snprintf(note, sizeof(note), "at %s, where all of a load was there",
		 bandwidth_text(result->memory_only_bytes, fc_busy_ns(&result->busy[FC_MEMORY]), bandwidth));
	row(table, "  from memory", fc_human_bytes(result->media_bytes[FC_MEMORY], bytes), note);
	snprintf(note, sizeof(note), "at %s",
		 bandwidth_text(result->bytes_read, fc_busy_ns(&result->busy[FC_SSD]), bandwidth));
	row(table, "  from SSD", fc_human_bytes(result->media_bytes[FC_SSD], bytes), note);
	double loads = (double)result->loads;
	ratio_row(table, "  segments per load", (double)result->segments_touched, loads, "");
	ratio_row(table, "  planned runs per load", (double)result->planned_runs, loads, "");
	ratio_row(table, "  commands per load", (double)result->read_commands, loads, "");
	ratio_row(table, "  read amplification", (double)result->bytes_read, (double)result->media_bytes[FC_SSD],
		  "bytes read / wanted, SSD");
}

static void add_writes(struct fc_table *table, const struct fc_replay_result *result)
{
	char bytes[FC_HUMAN_BYTES], note[96];
	uint64_t written = fc_replay_bytes_written(result);
	snprintf(note, sizeof(note), "%llu refused for want of room", (unsigned long long)result->saves_refused);
	count_row(table, "saves", result->saves, note);
	row(table, "  new", fc_human_bytes(result->bytes_new, bytes), "");
	row(table, "  written", fc_human_bytes(written, bytes), "with absorbed segments, resume points and headers");
	ratio_row(table, "  write amplification", (double)written, (double)result->bytes_new, "bytes written / new");
	row(table, "stored at the end", fc_human_bytes(fc_replay_bytes_stored(result), bytes), "");
	snprintf(note, sizeof(note), "in memory %llu, on SSD %llu; %llu segments spilled",
		 (unsigned long long)fc_replay_sessions_reclaimed(result, FC_MEMORY),
		 (unsigned long long)fc_replay_sessions_reclaimed(result, FC_SSD),
		 (unsigned long long)(result->after.segments_spilled - result->before.segments_spilled));
	count_row(table, "sessions reclaimed",
		  fc_replay_sessions_reclaimed(result, FC_MEMORY) + fc_replay_sessions_reclaimed(result, FC_SSD), note);
}

static void add_times(struct fc_table *table, const char *name, const struct fc_histogram *histogram)
{
	char text[FC_HUMAN_BYTES];
	double mean;
	uint64_t p50, p99;
	fc_table_cell(table, "%s", name);
	if (!fc_histogram_mean(histogram, &mean) || !fc_histogram_percentile(histogram, 50, &p50) ||
	    !fc_histogram_percentile(histogram, 99, &p99)) {
		for (int column = 0; column < 3; column++)
			fc_table_cell(table, "n/a");
		return;
	}
	fc_table_cell(table, "%s", fc_human_ns((uint64_t)mean, text));
	fc_table_cell(table, "%s", fc_human_ns(p50, text));
	fc_table_cell(table, "%s", fc_human_ns(p99, text));
}

static int print_times(const struct fc_replay_result *result, FILE *file)
{
	struct fc_table table;
	fc_table_init(&table, "lrrr");
	fc_table_cell(&table, "time to first token");
	fc_table_cell(&table, "mean");
	fc_table_cell(&table, "p50");
	fc_table_cell(&table, "p99");
	add_times(&table, "  whole", &result->ttft);
	for (int part = 0; part < FC_TTFT_PART_COUNT; part++) {
		char name[32];
		snprintf(name, sizeof(name), "  %s", fc_ttft_part_name(part));
		add_times(&table, name, &result->ttft_parts[part]);
	}
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static void print_head(const struct fc_replay_result *result, const struct fc_trace *trace,
		       const struct fc_config *config, const struct fc_geometry *geometry, FILE *file)
{
	char memory[FC_HUMAN_BYTES], ssd[FC_HUMAN_BYTES], requests[FC_HUMAN_BYTES], time[FC_HUMAN_BYTES];
	char sessions[FC_TRACE_SESSIONS_BYTES];
	fprintf(file, "%s, %s requests, blocks of %u tokens; %s / %llu\n", fc_trace_sessions_text(trace, sessions),
		fc_human_count(trace->request_count, requests), geometry->block_tokens, geometry->name,
		(unsigned long long)config->scale);
	/* A daemon's arenas are its own affair. */
	bool is_shared = config->daemon != NULL;
	const struct fc_medium_stats *media = result->after.media;
	fprintf(file, "memory %s, SSD %s%s, %s; %s\n\n",
		fc_human_bytes(is_shared ? media[FC_MEMORY].bytes : config->memory_bytes, memory),
		fc_human_bytes(is_shared ? media[FC_SSD].bytes : config->ssd_bytes, ssd),
		is_shared ? " of a flatcaked" : "",
		result->is_warm ? "warm start: the store held blocks before" : "cold start",
		fc_human_ns(result->elapsed_ns, time));
	if (fc_trace_print_left_out(trace, file))
		fputc('\n', file);
}

void fc_replay_print_clock(const struct fc_trace *trace, const struct fc_config *config, uint64_t under_way_blocks,
			   FILE *file)
{
	if (config->speed > 0 || trace->format != FC_TRACE_OF_REQUESTS || trace->source_count > 0)
		return;
	fprintf(file,
		"The trace's times do not count: requests start %s. Blocks that others under way\n"
		"were still computing, so that nothing could deliver them: %llu. --speed 1 keeps the trace's "
		"times.\n\n",
		isfinite(config->rate_per_s) || config->rates != NULL ? "at a rate" : "as fast as others end",
		(unsigned long long)under_way_blocks);
}

int fc_replay_print(struct fc_replay_result *result, const struct fc_trace *trace, const struct fc_config *config,
		    const struct fc_geometry *geometry, FILE *file)
{
	struct fc_table table;
	print_head(result, trace, config, geometry, file);
	fc_table_init(&table, "lrl");
	add_prefix(&table, result, config->is_checking);
	add_reads(&table, result);
	add_writes(&table, result);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	fputc('\n', file);
	fc_replay_print_clock(trace, config, result->under_way_blocks, file);
	return code == FC_OK ? print_times(result, file) : code;
}

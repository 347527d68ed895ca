/* An analysis for machines. Bytes are those of the chosen model. */
#include "cli/analyze_report.h"
#include "cli/json_file.h"

static json_t *count_or_null(uint64_t number, bool is_known)
{
	return is_known ? json_integer((json_int_t)number) : json_null();
}

/* Numbers times `unit`: block counts become bytes. */
static json_t *spread(const struct fc_spread *from, double unit)
{
	bool is_known = from->count > 0;
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)from->count, "mean",
			 is_known ? json_real(from->mean * unit) : json_null(), "p50",
			 count_or_null((uint64_t)((double)from->p50 * unit), is_known), "p90",
			 count_or_null((uint64_t)((double)from->p90 * unit), is_known), "p99",
			 count_or_null((uint64_t)((double)from->p99 * unit), is_known), "max",
			 count_or_null((uint64_t)((double)from->max * unit), is_known));
}

static json_t *requests(const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	return json_pack(
		"{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)analysis->request_count, "minute_max",
		(json_int_t)analysis->minute_requests_max, "span_ns", (json_int_t)analysis->span_ns, "per_second",
		fc_json_ratio((double)analysis->request_count, (double)analysis->span_ns / 1e9), "input_tokens",
		spread(&analysis->input_tokens, 1), "output_tokens", spread(&analysis->output_tokens, 1), "new_tokens",
		spread(&analysis->new_tokens, 1), "history_tokens", spread(&analysis->history_tokens, 1));
}

static json_t *sessions(const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	const uint64_t *kinds = analysis->traffic_requests;
	return json_pack(
		"{s:I, s:b, s:o, s:o, s:I, s:o, s:{s:I, s:I, s:I}}", "count", (json_int_t)analysis->session_count,
		"inferred", analysis->are_sessions_inferred, "requests", spread(&analysis->session_requests, 1),
		"kv_bytes", spread(&analysis->session_blocks, report->block_bytes), "active_max",
		(json_int_t)analysis->active_sessions_max, "active_mean", json_real(analysis->active_sessions_mean),
		"requests_by_kind", "agent", (json_int_t)kinds[FC_TRAFFIC_AGENT], "chat",
		(json_int_t)kinds[FC_TRAFFIC_CHAT], "one_shot", (json_int_t)kinds[FC_TRAFFIC_ONE_SHOT]);
}

static json_t *blocks(const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	double references = (double)analysis->reference_count, unique = (double)analysis->unique_count;
	return json_pack("{s:I, s:f, s:I, s:I, s:I, s:o, s:I, s:o, s:I, s:o, s:I, s:o, s:o}", "tokens",
			 (json_int_t)analysis->block_tokens, "bytes", report->block_bytes, "references",
			 (json_int_t)analysis->reference_count, "unique", (json_int_t)analysis->unique_count,
			 "used_once", (json_int_t)analysis->once_count, "used_once_share",
			 fc_json_ratio((double)analysis->once_count, unique), "possible_hits",
			 (json_int_t)analysis->hits, "possible_hit_rate",
			 fc_json_ratio((double)analysis->hits, references), "possible_hits_without_replies",
			 (json_int_t)analysis->list_hits, "possible_hit_rate_without_replies",
			 fc_json_ratio((double)analysis->list_hits, references), "other_session_hits",
			 (json_int_t)analysis->other_session_hits, "shared_reference_share",
			 fc_json_ratio((double)analysis->shared_references, references), "shared_block_share",
			 fc_json_ratio((double)analysis->shared_blocks, unique));
}

static json_t *reuse(const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	return json_pack("{s:o, s:o, s:o}", "requests", spread(&analysis->reuse_requests, 1), "time_ns",
			 spread(&analysis->reuse_ns, 1), "distinct_bytes",
			 spread(&analysis->reuse_blocks, report->block_bytes));
}

static json_t *working_set(const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	json_t *windows = json_array();
	for (int i = 0; i < FC_WINDOW_COUNT; i++) {
		bool is_known = analysis->span_ns >= fc_analyze_windows_ns[i];
		double bytes = analysis->window_blocks[i] * report->block_bytes;
		json_array_append_new(windows,
				      json_pack("{s:I, s:o}", "window_ns", (json_int_t)fc_analyze_windows_ns[i],
						"mean_bytes", is_known ? json_real(bytes) : json_null()));
	}
	return json_pack("{s:f, s:o}", "all_bytes", (double)analysis->unique_count * report->block_bytes, "windows",
			 windows);
}

static json_t *curve(const struct fc_analyze_report *report)
{
	uint64_t sizes[FC_CURVE_SIZES_MAX];
	size_t count = fc_analyze_curve_sizes(report, sizes);
	json_t *points = json_array();
	for (size_t i = 0; i < count; i++) {
		uint64_t hits = fc_curve_hits(&report->analysis->curve, fc_analyze_blocks(report, sizes[i]));
		json_array_append_new(
			points,
			json_pack("{s:I, s:I, s:o}", "bytes", (json_int_t)sizes[i], "hits", (json_int_t)hits,
				  "hit_rate", fc_json_ratio((double)hits, (double)report->analysis->reference_count)));
	}
	return points;
}

static json_t *tier(const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	double bytes = (double)analysis->tier_blocks * report->block_bytes;
	return json_pack("{s:I, s:I, s:o, s:f, s:o, s:o, s:o}", "dram_bytes", (json_int_t)report->config->dram_bytes,
			 "dram_hits", (json_int_t)report->judgement.dram_hits, "dram_hit_rate",
			 fc_json_ratio((double)report->judgement.dram_hits, (double)analysis->reference_count),
			 "ssd_bytes", bytes, "ssd_bytes_per_request",
			 spread(&analysis->request_blocks, report->block_bytes), "ssd_bytes_per_second",
			 fc_json_ratio(bytes, (double)analysis->span_ns / 1e9), "ssd_share_of_hits",
			 fc_json_ratio((double)analysis->tier_blocks, (double)analysis->hits));
}

static json_t *judgement(const struct fc_analyze_report *report)
{
	const struct fc_judgement *from = &report->judgement;
	return json_pack("{s:s, s:s, s:f, s:I, s:I}", "traffic", fc_traffic_name(from->traffic), "tiering",
			 fc_tiering_name(from->tiering), "median_sessions_in_dram", from->sessions_in_dram,
			 "dram_bytes_with_which_tiering_would_do",
			 (json_int_t)fc_analyze_bytes(report, (double)from->tiering_blocks),
			 "dram_bytes_that_are_enough_alone",
			 (json_int_t)fc_analyze_bytes(report, (double)from->enough_blocks));
}

json_t *fc_analyze_json(const struct fc_analyze_report *report)
{
	const struct fc_config *config = report->config;
	json_t *settings = json_pack("{s:s, s:I, s:b, s:b, s:b, s:I, s:I, s:I}", "model", config->model, "scale",
				     (json_int_t)config->scale, "store_replies", config->is_storing_replies,
				     "share_prompts", config->is_sharing_prompts, "subagents", config->has_subagents,
				     "concurrency", (json_int_t)config->concurrency, "seed", (json_int_t)config->seed,
				     "agent_context_tokens", (json_int_t)config->agent_context_tokens);
	return json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "settings", settings,
			 "skipped_records", (json_int_t)report->trace->skipped_count, "requests_without_input",
			 (json_int_t)report->trace->without_input_count, "requests", requests(report), "sessions",
			 sessions(report), "blocks", blocks(report), "reuse_distance", reuse(report), "working_set",
			 working_set(report), "lru_curve", curve(report), "tiered", tier(report), "judgement",
			 judgement(report));
}

/* See judge.h. */
#include "analyze/judge.h"

#include "base/check.h"

static uint32_t traffic_of(const struct fc_analysis *analysis)
{
	for (uint32_t traffic = 0; traffic < FC_TRAFFIC_COUNT; traffic++) {
		double share = (double)analysis->traffic_requests[traffic];
		if (share > 0 && share >= FC_JUDGE_KIND_SHARE * (double)analysis->request_count)
			return traffic;
	}
	return FC_TRAFFIC_MIXED;
}

static enum fc_tiering tiering_of(const struct fc_analysis *analysis, const struct fc_judgement *judgement)
{
	double references = (double)analysis->reference_count, hits = (double)analysis->hits;
	double from_ssd = (double)(analysis->hits - judgement->dram_hits);
	if (references <= 0)
		return FC_TIERING_UNKNOWN;
	if (hits <= 0 || hits < FC_JUDGE_REUSE_SHARE * references)
		return FC_TIERING_NO_REUSE;
	if (from_ssd <= FC_JUDGE_ENOUGH_SHARE * references)
		return FC_TIERING_DRAM_ENOUGH;
	if (from_ssd <= FC_JUDGE_TIERING_SHARE * hits)
		return FC_TIERING_DOES;
	return from_ssd < FC_JUDGE_FLAT_SHARE * hits ? FC_TIERING_DEPENDS : FC_TIERING_FAILS;
}

/* The smallest DRAM that leaves at most so many hits to SSD. */
static uint64_t dram_leaving(const struct fc_analysis *analysis, double hits_left)
{
	uint64_t left = fc_min_u64((uint64_t)hits_left, analysis->hits);
	return fc_curve_size(&analysis->curve, analysis->hits - left);
}

void fc_judge(const struct fc_analysis *analysis, struct fc_judgement *judgement)
{
	uint64_t median = analysis->session_blocks.p50;
	*judgement = (struct fc_judgement){
		.traffic = traffic_of(analysis),
		.dram_hits = fc_curve_hits(&analysis->curve, analysis->dram_blocks),
		.tiering_blocks = dram_leaving(analysis, FC_JUDGE_TIERING_SHARE * (double)analysis->hits),
		.enough_blocks = dram_leaving(analysis, FC_JUDGE_ENOUGH_SHARE * (double)analysis->reference_count),
		.sessions_in_dram = median > 0 ? (double)analysis->dram_blocks / (double)median : 0,
	};
	judgement->tiering = tiering_of(analysis, judgement);
}

const char *fc_traffic_name(uint32_t traffic)
{
	static const char *const names[] = {[FC_TRAFFIC_ONE_SHOT] = "one-shot traffic",
					    [FC_TRAFFIC_CHAT] = "chat traffic",
					    [FC_TRAFFIC_AGENT] = "agent traffic",
					    [FC_TRAFFIC_MIXED] = "mixed traffic"};
	fc_check(traffic < fc_array_len(names));
	return names[traffic];
}

const char *fc_tiering_name(enum fc_tiering tiering)
{
	static const char *const names[] = {[FC_TIERING_UNKNOWN] = "unknown",
					    [FC_TIERING_NO_REUSE] = "no_cache_pays",
					    [FC_TIERING_DRAM_ENOUGH] = "dram_is_enough",
					    [FC_TIERING_DOES] = "tiering_would_do",
					    [FC_TIERING_DEPENDS] = "depends",
					    [FC_TIERING_FAILS] = "tiering_would_not_do"};
	fc_check(tiering < fc_array_len(names));
	return names[tiering];
}

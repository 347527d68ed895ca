/* What an analysis means: rules, and nothing but the figures that they rest on. docs/tuning.md has them for operators.
 *
 * Traffic. It is named after the kind of session (analyze.h) that at least two thirds of the requests belong to, else
 * it is mixed.
 *
 * Tiering, that is, DRAM in front of SSD with LRU between them, by the share of hits that DRAM of the given size cannot
 * hold:
 *
 *   no references at all                                  unknown
 *   best possible hit rate below 10 %                     no cache pays
 *   DRAM alone comes within 2 points of the best rate     DRAM is enough: SSD, tiered or flat, has little to add
 *   at most 20 % of hits from SSD                         tiering would do
 *   at least 40 % of hits from SSD                        tiering would not do
 *   in between                                            it depends on the load: to be simulated
 *
 * 40 %: in the evaluation of the FlatCake article, DRAM alone reached a hit rate of 53 % where 95 % was possible, so 44
 * % of hits had to come from SSD, and the tiered systems lost up to 30 points of hit rate under load. 20 % is half of
 * that: a convention. 10 % and 2 points are conventions too. */
#ifndef FC_ANALYZE_JUDGE_H
#define FC_ANALYZE_JUDGE_H

#include "analyze/analyze.h"

#define FC_JUDGE_KIND_SHARE (2.0 / 3)
#define FC_JUDGE_REUSE_SHARE 0.10
#define FC_JUDGE_ENOUGH_SHARE 0.02
#define FC_JUDGE_TIERING_SHARE 0.20
#define FC_JUDGE_FLAT_SHARE 0.40

#define FC_TRAFFIC_MIXED FC_TRAFFIC_COUNT

enum fc_tiering {
	FC_TIERING_UNKNOWN,
	FC_TIERING_NO_REUSE,
	FC_TIERING_DRAM_ENOUGH,
	FC_TIERING_DOES,
	FC_TIERING_DEPENDS,
	FC_TIERING_FAILS,
};

struct fc_judgement {
	uint32_t traffic; /* enum fc_traffic, or FC_TRAFFIC_MIXED */
	enum fc_tiering tiering;
	uint64_t dram_hits;      /* of DRAM alone */
	uint64_t tiering_blocks; /* the smallest DRAM with which tiering would do */
	uint64_t enough_blocks;  /* the smallest that is enough alone */
	double sessions_in_dram; /* median sessions that DRAM holds; 0 when there are none */
};

void fc_judge(const struct fc_analysis *analysis, struct fc_judgement *judgement);

/* "agent traffic", "chat traffic", "one-shot traffic", "mixed traffic". */
const char *fc_traffic_name(uint32_t traffic);
/* A name for machines: "dram_is_enough". */
const char *fc_tiering_name(enum fc_tiering tiering);

#endif

/* One unknown, fixed by one row.
 *
 * The article says neither how much DRAM each system had nor how many copies of the KV there are, and the two decide
 * every hit rate but FlatCake's. Here all eight ranks keep the KV ("0.8 GiB on a single GPU"), each reads its copy at
 * the 5 GB/s that the article measured for a worker, and the DRAM is what lets Mooncake deliver the published 87.9 % at
 * the lowest load. That is one number for one row; what the same node then does at higher loads, and what the others do
 * with the same DRAM, follows, and is laid beside what is published. */
#include "bench/paper/paper.h"

#include <math.h>

#define STEPS 8
#define MEMORY_MAX (16ull << 30) /* of a copy: 128 GiB a node, where everything fits */

void paper_copy_on_all_ranks(struct fc_hardware *hardware)
{
	uint64_t copies = hardware->workers;
	hardware->workers = 1;
	hardware->prefill_tokens_per_s *= (double)copies;
	hardware->ssd_bytes /= copies;
	hardware->ssd_read_bytes_per_s /= copies;
	hardware->ssd_write_bytes_per_s /= copies;
	hardware->dram_bytes_per_s /= copies;
}

/* More DRAM never delivers less, so the budget is halved towards the published rate. */
int paper_fit_memory(struct paper *paper, const struct fc_hardware *hardware, const struct fc_trace *trace,
		     double rate_per_s, uint64_t *memory_bytes)
{
	uint64_t low = 0, high = MEMORY_MAX;
	double nearest = INFINITY;
	for (int step = 0; step < STEPS; step++) {
		struct fc_outcome outcome;
		struct wanted wanted = {.policy = "mooncake",
					.rate_per_s = rate_per_s,
					.memory_bytes = low + (high - low) / 2,
					.trace = trace,
					.outcome = &outcome};
		int code = paper_run(paper, hardware, &paper->geometry, &wanted, 1);
		if (code != FC_OK)
			return code;
		double percent = paper_hit_percent(&outcome);
		if (fabs(percent - PUBLISHED_MOONCAKE_PERCENT) < nearest) {
			nearest = fabs(percent - PUBLISHED_MOONCAKE_PERCENT);
			*memory_bytes = wanted.memory_bytes;
		}
		if (percent < PUBLISHED_MOONCAKE_PERCENT)
			low = wanted.memory_bytes;
		else
			high = wanted.memory_bytes;
	}
	return FC_OK;
}

/* The layout experiment: Llama-3.1-70B, requests that come back to 16K or 64K tokens of context which lie on SSD, and
 * the mean TTFT of those; Mooncake with direct reads against FlatCake. The article gives neither machine nor arrivals,
 * nor how many tokens are new: a session here writes its context, and after all others have written theirs, comes back
 * with 1,024 new tokens. What an object of Mooncake holds, and how many are read at once, is swept. */
#include "bench/paper/paper.h"
#include "bench/returning/returning.h"

#include <stdlib.h>

#define SESSIONS 24u
#define NEW_TOKENS 1024u
#define RATE_PER_S 0.1

static const struct {
	uint64_t context_tokens;
	double mooncake_s, flat_s;
} published[] = {{16384, 2.31, 2.32}, {65536, 6.60, 3.74}};

static const struct wanted kinds[] = {
	{.policy = "flat"},
	{.policy = "mooncake-gds", .label = "mooncake-gds, 64 tokens a read, 32 at once"},
	{.policy = "mooncake-gds",
	 .label = "mooncake-gds, 1 token a read, 32 at once",
	 .settings = "mooncake-gds.object_tokens=1"},
	{.policy = "mooncake-gds",
	 .label = "mooncake-gds, 1 token a read, 1 at once",
	 .settings = "mooncake-gds.object_tokens=1,mooncake-gds.depth=1"},
};

static int compare(struct paper *paper, const struct fc_hardware *hardware, const struct fc_geometry *geometry,
		   size_t which, bool is_row)
{
	static const char why[] =
		"machine, arrivals and new tokens are not given; a read of one block is 20 MiB here, for "
		"which its place hardly matters: see the sweep for smaller ones";
	struct returning made;
	struct fc_outcome *outcomes = calloc(fc_array_len(kinds), sizeof(*outcomes));
	struct wanted wanted[sizeof(kinds) / sizeof(kinds[0])];
	unsigned context_k = (unsigned)(published[which].context_tokens / 1024);
	int code = outcomes == NULL ? FC_ENOMEM
				    : returning_init(&made, SESSIONS, published[which].context_tokens, NEW_TOKENS);
	if (code != FC_OK) {
		free(outcomes);
		return fc_error_set(&paper->error, code, "no memory for the layout experiment");
	}
	for (size_t i = 0; i < fc_array_len(kinds); i++) {
		wanted[i] = kinds[i];
		wanted[i].rate_per_s = RATE_PER_S;
		/* half of what the sessions write; those that come back to SSD are counted */
		wanted[i].memory_bytes = (uint64_t)(SESSIONS * (double)published[which].context_tokens *
						    fc_geometry_bytes_per_token(geometry) / 2);
		wanted[i].trace = &made.trace;
		wanted[i].outcome = &outcomes[i];
	}
	code = paper_run(paper, hardware, geometry, wanted, fc_array_len(kinds));
	if (code == FC_OK && is_row) {
		paper_add_row(paper, published[which].flat_s, paper_mean_s(&outcomes[0].ttft_ssd), "s", why,
			      "Llama-3.1-70B, %uK, mean TTFT, FlatCake", context_k);
		paper_add_row(paper, published[which].mooncake_s, paper_mean_s(&outcomes[1].ttft_ssd), "s", why,
			      "Llama-3.1-70B, %uK, mean TTFT, Mooncake-GDS", context_k);
	}
	for (size_t i = 0; i < fc_array_len(kinds) && code == FC_OK; i++) {
		outcomes[i].ttft = outcomes[i].ttft_ssd; /* of those that came back */
		paper_add_sweep(paper, &wanted[i], "Llama %uK, SSD %.1f GB/s", context_k,
				(double)(hardware->ssd_count * hardware->ssd_read_bytes_per_s) / 1e9);
	}
	returning_deinit(&made);
	free(outcomes);
	return code;
}

int paper_layouts(struct paper *paper)
{
	struct fc_hardware hardware;
	struct fc_geometry geometry;
	int code = fc_hardware_load(&hardware, "8xh100-llama-3.1-70b", &paper->error);
	if (code == FC_OK)
		code = fc_geometry_preset(&geometry, hardware.model, RETURNING_BLOCK_TOKENS, 1, &paper->error);
	for (size_t i = 0; i < fc_array_len(published) && code == FC_OK; i++)
		code = compare(paper, &hardware, &geometry, i, true);
	hardware.ssd_count = 1;
	for (size_t i = 0; i < fc_array_len(published) && code == FC_OK; i++)
		code = compare(paper, &hardware, &geometry, i, false);
	fc_hardware_deinit(&hardware);
	return code;
}

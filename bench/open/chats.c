/* Short chats on SSD: what a turn that comes back to a history waits for when the history lies on SSD, when it lies in
 * memory, and when it is computed again. One length of history at a time, on an idle node, so that nothing but the
 * place differs. */
#include "bench/open/open.h"
#include "bench/returning/returning.h"

#include <stdlib.h>

#define SESSIONS 32u
#define NEW_TOKENS 128u
#define RATE_PER_S 0.5

static const uint32_t lengths[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), ON_SSD = 0, IN_MEMORY, COMPUTED, PLACES };

/* What each place is simulated with. */
static const struct {
	const char *policy;
	uint64_t memory_bytes;
} places[PLACES] = {
	[ON_SSD] = {"flat", 0},
	[IN_MEMORY] = {"hicache", 1ull << 40},
	[COMPUTED] = {"recompute", 0},
};

/* Mean TTFT of those that came back, for each place. */
static int measure(struct open *open, uint32_t history_tokens, double mean_ms[PLACES])
{
	struct returning chats;
	struct wanted wanted[PLACES];
	struct fc_outcome *outcomes = NULL;
	struct subject subject = {.name = "short chats", .trace = &chats.trace};
	int code = returning_init(&chats, SESSIONS, history_tokens, NEW_TOKENS);
	if (code != FC_OK)
		return fc_error_set(&open->error, code, "no memory for short chats");
	code = fc_geometry_preset(&subject.geometry, open->config.model, RETURNING_BLOCK_TOKENS, open->config.scale,
				  &open->error);
	for (size_t i = 0; i < PLACES; i++)
		wanted[i] = (struct wanted){
			.policy = places[i].policy, .memory_bytes = places[i].memory_bytes, .rate_per_s = RATE_PER_S};
	if (code == FC_OK)
		code = open_outcomes(open, wanted, PLACES, &outcomes);
	if (code == FC_OK)
		code = open_run(open, &subject, &open->hardware, wanted, PLACES);
	for (size_t i = 0; i < PLACES && code == FC_OK; i++) {
		mean_ms[i] = open_mean_ms(&outcomes[i].sources[1].ttft);
		json_array_append_new(open->rows, json_pack("{s:s, s:s, s:i, s:f}", "section", "short chats", "policy",
							    places[i].policy, "history_tokens", (int)history_tokens,
							    "ttft_mean_ms", mean_ms[i]));
	}
	free(outcomes);
	returning_deinit(&chats);
	return code;
}

static void conclude(double (*mean_ms)[PLACES])
{
	size_t pays = LENGTHS;
	while (pays > 0 && mean_ms[pays - 1][ON_SSD] < mean_ms[pays - 1][COMPUTED])
		pays--;
	if (pays == LENGTHS)
		printf("\nOn this node SSD is not faster than computing again at any of these lengths.\n");
	else if (pays == 0)
		printf("\nSSD is faster than computing again at every one of these lengths.\n");
	else
		printf("\nFrom %u tokens of history on, SSD is faster than computing again; below, it is slower.\n",
		       lengths[pays]);
	printf("A history that lies on SSD instead of in memory costs a turn %.2f ms at %u tokens and %.2f ms at %u: "
	       "that is what\n"
	       "misplacing a chat costs while the drives are idle. It is never a miss.\n",
	       mean_ms[0][ON_SSD] - mean_ms[0][IN_MEMORY], lengths[0],
	       mean_ms[LENGTHS - 1][ON_SSD] - mean_ms[LENGTHS - 1][IN_MEMORY], lengths[LENGTHS - 1]);
}

int open_short_chats(struct open *open)
{
	static const char *const titles[] = {"history",  "on SSD",       "in memory",
					     "computed", "SSD / memory", "computed / SSD"};
	double mean_ms[LENGTHS][PLACES];
	int code = FC_OK;
	for (size_t i = 0; i < LENGTHS && code == FC_OK; i++)
		code = measure(open, lengths[i], mean_ms[i]);
	if (code != FC_OK)
		return code;
	struct fc_table table;
	open_heading("short chats: mean TTFT of a turn of %u new tokens, by where its history is", NEW_TOKENS);
	fc_table_init(&table, "rrrrrr");
	open_titles(&table, titles, fc_array_len(titles));
	for (size_t i = 0; i < LENGTHS; i++) {
		fc_table_cell(&table, "%u", lengths[i]);
		for (size_t k = 0; k < PLACES; k++)
			open_ms_cell(&table, mean_ms[i][k]);
		fc_table_cell(&table, "%.2f x", mean_ms[i][ON_SSD] / mean_ms[i][IN_MEMORY]);
		fc_table_cell(&table, "%.2f x", mean_ms[i][COMPUTED] / mean_ms[i][ON_SSD]);
	}
	code = fc_table_print(&table, stdout);
	fc_table_deinit(&table);
	conclude(mean_ms);
	fflush(stdout);
	return code;
}

/* Agents and chats on one node: whether a chat waits behind an agent's read, and whether two queues help. The chats
 * alone at their own rate stand beside the mix. On the profile's drives, and on one of them at an eighth of its speed,
 * where reads are long. */
#include "bench/open/open.h"

#include "trace/mix.h"

#include <stdlib.h>
#include <string.h>

static const char *const policies[] = {"flat", "flat-fifo", "flat-one-queue", "hicache", "mooncake", "lmcache"};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]), AGENTS = 0, CHATS = 1 };

static const struct subject *first_of(const struct open *open, bool is_agents)
{
	for (size_t i = 0; i < open->subject_count; i++)
		if (open->subjects[i].is_agents == is_agents)
			return &open->subjects[i];
	return NULL;
}

static void add_line(struct fc_table *table, const char *policy, const char *kind, uint64_t requests,
		     const struct fc_histogram *ttft, const struct fc_histogram *waited, double delivered)
{
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", policy);
	fc_table_cell(table, "%s", kind);
	fc_table_cell(table, "%s", fc_human_count(requests, text));
	fc_table_cell(table, "%.1f %%", 100 * delivered);
	open_ms_cell(table, open_mean_ms(ttft));
	open_ms_cell(table, open_percentile_ms(ttft, 50));
	open_ms_cell(table, open_percentile_ms(ttft, 99));
	open_ms_cell(table, open_mean_ms(waited));
	open_ms_cell(table, open_percentile_ms(waited, 99));
}

static void add_source(struct open *open, struct fc_table *table, const struct wanted *wanted, int source,
		       const char *hardware)
{
	static const char *const kinds[] = {[AGENTS] = "agents", [CHATS] = "chats"};
	const struct fc_source_outcome *found = &wanted->outcome->sources[source];
	double delivered = open_share(found->delivered_blocks, found->blocks);
	add_line(table, wanted->policy, kinds[source], found->requests, &found->ttft, &found->waited, delivered);
	json_array_append_new(open->rows,
			      json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f}", "section", "mixed",
					"drives", hardware, "policy", wanted->policy, "kind", kinds[source], "requests",
					(json_int_t)found->requests, "delivered_rate", delivered, "ttft_mean_ms",
					open_mean_ms(&found->ttft), "ttft_p99_ms", open_percentile_ms(&found->ttft, 99),
					"waited_mean_ms", open_mean_ms(&found->waited), "waited_p99_ms",
					open_percentile_ms(&found->waited, 99)));
}

static void conclude(const struct wanted *wanted, const struct fc_outcome *alone)
{
	const struct fc_source_outcome *flat = &wanted[0].outcome->sources[CHATS];
	const struct fc_source_outcome *one = &wanted[2].outcome->sources[CHATS];
	double mixed_ms = open_mean_ms(&flat->ttft), alone_ms = open_mean_ms(&alone->ttft);
	double waited_ms = open_mean_ms(&flat->waited), one_ms = open_mean_ms(&one->waited);
	printf("\nA chat's mean TTFT is %.1f ms beside the agents and %.1f ms without them. Until the engine takes it, "
	       "it waits\n"
	       "%.2f ms on average with two queues and %.2f ms with one (p99 %.2f ms and %.2f ms): ",
	       mixed_ms, alone_ms, waited_ms, one_ms, open_percentile_ms(&flat->waited, 99),
	       open_percentile_ms(&one->waited, 99));
	if (one_ms > 1.1 * waited_ms)
		printf("with one queue chats wait behind agents' reads, with two they do so less.\n");
	else
		printf("the number of queues makes no difference here.\n");
}

static int run_mix(struct open *open, const struct subject *mixed, const struct subject *chats,
		   const struct fc_hardware *hardware, const char *drives)
{
	static const char *const titles[] = {"policy", "kind", "requests", "of input", "TTFT mean",
					     "p50",    "p99",  "waited",   "p99"};
	struct wanted wanted[POLICIES],
		alone = {.policy = "flat", .memory_bytes = open->config.memory_bytes, .rate_per_s = chats->rate_per_s};
	struct fc_outcome *outcomes, *alone_outcome = NULL;
	struct fc_table table;
	for (size_t i = 0; i < POLICIES; i++)
		wanted[i] = (struct wanted){.policy = policies[i],
					    .memory_bytes = open->config.memory_bytes,
					    .rate_per_s = mixed->rate_per_s};
	int code = open_outcomes(open, wanted, POLICIES, &outcomes);
	if (code == FC_OK)
		code = open_outcomes(open, &alone, 1, &alone_outcome);
	if (code == FC_OK)
		code = open_run(open, mixed, hardware, wanted, POLICIES);
	if (code == FC_OK)
		code = open_run(open, chats, hardware, &alone, 1);
	if (code == FC_OK) {
		open_heading("agents and chats on one node, %.2f requests/s; drives: %s", mixed->rate_per_s, drives);
		fc_table_init(&table, "llrrrrrrr");
		open_titles(&table, titles, fc_array_len(titles));
		for (size_t i = 0; i < POLICIES; i++) {
			add_source(open, &table, &wanted[i], AGENTS, drives);
			add_source(open, &table, &wanted[i], CHATS, drives);
		}
		code = fc_table_print(&table, stdout);
		fc_table_deinit(&table);
		conclude(wanted, alone_outcome);
		fflush(stdout);
	}
	free(outcomes);
	free(alone_outcome);
	return code;
}

int open_mixed(struct open *open)
{
	const struct subject *agents = first_of(open, true), *chats = first_of(open, false);
	if (agents == NULL || chats == NULL) {
		printf("\nNo mix: it needs a trace of agents and one of chats.\n");
		return FC_OK;
	}
	struct subject mixed = {.name = "mixed", .rate_per_s = agents->rate_per_s + chats->rate_per_s};
	struct fc_mix_opts opts = {.traces = {agents->trace, chats->trace},
				   .shares = {agents->rate_per_s, chats->rate_per_s},
				   .count = 2,
				   .seed = open->config.seed};
	int code = fc_trace_mix(&opts, &mixed.trace, &open->error);
	if (code == FC_OK)
		code = fc_geometry_preset(&mixed.geometry, open->config.model, mixed.trace->block_tokens,
					  open->config.scale, &open->error);
	if (code == FC_OK)
		code = run_mix(open, &mixed, chats, &open->hardware, "the profile's");
	struct fc_hardware slow = open->hardware;
	slow.ssd_count = 1;
	slow.ssd_read_bytes_per_s = fc_max_u64(1, slow.ssd_read_bytes_per_s / 8);
	if (code == FC_OK)
		code = run_mix(open, &mixed, chats, &slow, "one, at an eighth of its speed");
	fc_trace_free(mixed.trace);
	return code;
}

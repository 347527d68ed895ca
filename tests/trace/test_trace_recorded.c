/* The counts that are published for the recorded traces, to the last block. They lie outside the repository: in the
 * folder that FC_SHARED names (or its folder "traces"), else in ../shared/traces beside the sources. Skipped where they
 * are not. */
#define _GNU_SOURCE
#include "analyze/analyze.h"
#include "trace_files.h"

struct counts {
	uint64_t requests, references, prefix, unique, once, input_tokens;
};

static bool find_in(const char *folder, const char *inside, const char *name, char *path, size_t path_bytes)
{
	snprintf(path, path_bytes, "%s%s/%s", folder, inside, name);
	return access(path, R_OK) == 0;
}

/* The recorded file, or the test ends here as skipped. */
static const char *recorded(const char *name)
{
	static char path[4096];
	const char *shared = getenv("FC_SHARED");
	char source[2048] = __FILE__;
	char *slash = strstr(source, "tests/trace/");
	assert_non_null(slash);
	*slash = '\0';
	bool is_found = false;
	if (shared != NULL)
		is_found = find_in(shared, "/traces", name, path, sizeof(path)) ||
			   find_in(shared, "", name, path, sizeof(path));
	if (!is_found && !find_in(source, "../shared/traces", name, path, sizeof(path)))
		skip();
	return path;
}

/* A block is a prefix block if it and all before it in the request were seen before. */
static struct counts count(const struct fc_trace *trace, uint64_t id_bound)
{
	struct counts counts = {.requests = trace->request_count};
	uint32_t *seen = calloc(id_bound, sizeof(*seen));
	struct fc_trace_lists *lists;
	assert_non_null(seen);
	assert_int_equal(fc_trace_lists_new(trace, &lists), 0);
	for (uint32_t i = 0; i < trace->request_count; i++) {
		const uint64_t *ids;
		uint64_t id_count, prefix = 0;
		assert_int_equal(fc_trace_lists_get(lists, i, &ids, &id_count), 0);
		while (prefix < id_count && seen[ids[prefix]] > 0)
			prefix++;
		for (uint64_t j = 0; j < id_count; j++) {
			assert_true(ids[j] < id_bound);
			counts.unique += seen[ids[j]]++ == 0;
		}
		counts.references += id_count;
		counts.prefix += prefix;
		counts.input_tokens += trace->requests[i].input_tokens;
	}
	for (uint64_t id = 0; id < id_bound; id++)
		counts.once += seen[id] == 1;
	fc_trace_lists_free(lists);
	free(seen);
	return counts;
}

/* `flatcake analyze` counts runs of blocks, not blocks, and must come to the same. */
static void assert_analysis_agrees(const struct fc_trace *trace, const struct counts *counts)
{
	struct fc_analysis analysis;
	struct fc_analyze_opts opts = {.dram_blocks = 1000};
	assert_int_equal(fc_analyze(trace, &opts, &analysis), 0);
	assert_int_equal(analysis.reference_count, counts->references);
	assert_int_equal(analysis.list_hits, counts->prefix);
	assert_int_equal(analysis.hits, counts->prefix);
	assert_int_equal(analysis.unique_count, counts->unique);
	assert_int_equal(analysis.once_count, counts->once);
	fc_analysis_deinit(&analysis);
}

static void the_claude_code_sessions_have_their_published_counts(void **state)
{
	(void)state;
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.share_prompts = false;
	opts.include_subagents = false;
	struct fc_trace *trace = load(recorded("claude-code.tar.zst"), &opts);
	assert_int_equal(trace->session_count, 426);
	struct counts counts = count(trace, trace->id_bound);
	assert_analysis_agrees(trace, &counts);
	assert_int_equal(counts.requests, 29843);
	assert_int_equal(counts.references, 55385164);
	assert_int_equal(counts.prefix, 53422638);
	assert_int_equal(counts.unique, 1962526);
	/* A share of 0.062703 used once, 118,808.3 tokens a request. */
	assert_int_equal((counts.once * 2000000 + counts.unique) / (2 * counts.unique), 62703);
	assert_int_equal((counts.input_tokens * 20 + counts.requests) / (2 * counts.requests), 1188083);
	fc_trace_free(trace);
}

/* All 30,376 requests; ids are dense, so unique blocks are those below the bound. */
static void shared_prompts_and_subagents_change_the_counts_as_they_should(void **state)
{
	(void)state;
	struct fc_trace *trace = load(recorded("claude-code.tar.zst"), NULL);
	struct counts counts = count(trace, trace->id_bound);
	assert_analysis_agrees(trace, &counts);
	assert_int_equal(counts.requests, 29843 + 533);
	assert_int_equal(counts.references, trace->reference_count);
	assert_int_equal(counts.unique, trace->id_bound);
	assert_true(counts.unique < 1962526);
	assert_true(counts.prefix > 53422638);
	fc_trace_free(trace);
}

/* Published: 179,545 references, 62,617 of a prefix, 116,928 unique. They count the last block of a request also where
 * its tokens do not fill it, as in 7,186 of 7,200 requests; such a block can be neither stored nor found. Taken off:
 * all 7,186 references, 50 of a prefix, 7,136 unique; what is left was counted by a script of its own. */
static void the_mooncake_requests_have_their_published_counts(void **state)
{
	(void)state;
	struct fc_trace *trace = load(recorded("mooncake-conversation.jsonl.zst"), NULL);
	struct counts counts = count(trace, 1 << 20);
	assert_analysis_agrees(trace, &counts);
	assert_int_equal(counts.requests, 7200);
	assert_int_equal(counts.references, 179545 - 7186);
	assert_int_equal(counts.prefix, 62617 - 50);
	assert_int_equal(counts.unique, 116928 - 7136);
	assert_int_equal((counts.once * 2000000 + counts.unique) / (2 * counts.unique), 752559);
	assert_int_equal((counts.input_tokens * 20 + counts.requests) / (2 * counts.requests), 125249);
	fc_trace_free(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_claude_code_sessions_have_their_published_counts),
		cmocka_unit_test(shared_prompts_and_subagents_change_the_counts_as_they_should),
		cmocka_unit_test(the_mooncake_requests_have_their_published_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

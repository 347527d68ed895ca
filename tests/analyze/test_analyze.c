/* Random small traces, analysed and counted by brute force: a list of blocks in the order of their use, searched from
 * the top for each reference. And stories with values worked out by hand. */
#include "analyze/judge.h"
#include "analyze/spread.h"
#include "base/random.h"
#include "trace/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_TOKENS 10
#define BLOCKS_MAX 20000
#define LIST_MAX 64

static struct fc_trace_build *build_new(bool share_prompts)
{
	struct fc_trace_opts opts;
	struct fc_trace_build *build;
	fc_trace_opts_init(&opts);
	opts.share_prompts = share_prompts;
	opts.concurrent_sessions = 3;
	assert_int_equal(fc_build_new(&opts, &build, NULL), 0);
	return build;
}

static struct fc_trace *finish(struct fc_trace_build *build)
{
	struct fc_trace *trace;
	assert_int_equal(fc_build_finish(build, &trace, NULL), 0);
	fc_build_free(build);
	return trace;
}

/* ---- random traces ------------------------------------------------------------------------------------------------
 */

/* Changes a list as a conversation does: cut somewhere, mostly at the end, then longer by ids of a small alphabet. */
static uint64_t next_list(struct fc_random *random, uint64_t *ids, uint64_t count)
{
	if (fc_random_below(random, 3) == 0)
		count = fc_random_below(random, count + 1);
	uint64_t added = fc_random_below(random, 6);
	for (uint64_t i = 0; i < added && count < LIST_MAX; i++)
		ids[count++] = fc_random_below(random, 3);
	return count;
}

static struct fc_build_request next_request(struct fc_random *random, uint64_t *ids, uint64_t *count, uint64_t time_ns)
{
	*count = next_list(random, ids, *count);
	return (struct fc_build_request){.time_ns = time_ns,
					 .input_tokens = *count * BLOCK_TOKENS,
					 .output_tokens = fc_random_below(random, 50),
					 .ids = ids,
					 .id_count = *count};
}

static struct fc_trace *random_sessions(struct fc_random *random)
{
	struct fc_trace_build *build = build_new(fc_random_below(random, 2) == 1);
	uint64_t session_count = 1 + fc_random_below(random, 8);
	for (uint64_t session = 0; session < session_count; session++) {
		char name[32];
		snprintf(name, sizeof(name), "s%llu", (unsigned long long)session);
		assert_int_equal(fc_build_session(build, name, "test", BLOCK_TOKENS, NULL), 0);
		uint64_t line_count = 1 + fc_random_below(random, 2);
		for (uint64_t line = 0; line < line_count; line++) {
			uint64_t ids[LIST_MAX], count = 0, time_ns = 0;
			uint64_t tool_tokens = fc_random_below(random, 3) * BLOCK_TOKENS;
			assert_int_equal(fc_build_line(build, FC_TRACE_KIND_MAIN, tool_tokens, BLOCK_TOKENS, NULL), 0);
			uint64_t request_count = 1 + fc_random_below(random, 12);
			for (uint64_t i = 0; i < request_count; i++) {
				time_ns += fc_random_below(random, 40) * 1000000000;
				struct fc_build_request request = next_request(random, ids, &count, time_ns);
				assert_int_equal(fc_build_request(build, &request, NULL), 0);
			}
		}
	}
	return finish(build);
}

static struct fc_trace *random_loose(struct fc_random *random)
{
	struct fc_trace_build *build = build_new(false);
	uint64_t ids[4][LIST_MAX], counts[4] = {0};
	uint64_t request_count = 1 + fc_random_below(random, 60);
	for (uint64_t i = 0; i < request_count; i++) {
		uint64_t one = fc_random_below(random, 4);
		struct fc_build_request request = next_request(random, ids[one], &counts[one], i / 2 * 1000000000);
		assert_int_equal(fc_build_timed_request(build, BLOCK_TOKENS, &request, NULL), 0);
	}
	return finish(build);
}

/* ---- brute force --------------------------------------------------------------------------------------------------
 */

/* A block, named by its path. */
struct block {
	uint64_t parent; /* number of the block before it, or BLOCKS_MAX */
	uint64_t id;
	uint64_t list_count;
	uint64_t touched_ns;
	uint32_t touched_by;
};

struct brute {
	const struct fc_trace *trace;
	struct block blocks[BLOCKS_MAX];
	uint64_t block_count;
	uint64_t stack[BLOCKS_MAX]; /* the top is at stack_count - 1 */
	uint64_t stack_count;
	uint64_t distances[BLOCKS_MAX];
	uint64_t list_hits, hits, once, unique, tier_blocks, minute_max;
	uint64_t minutes[1000];
	double window_sum;
	uint64_t reuse_requests_sum;
};

static uint64_t number_of(struct brute *brute, uint64_t parent, uint64_t id)
{
	for (uint64_t i = 0; i < brute->block_count; i++) {
		if (brute->blocks[i].parent == parent && brute->blocks[i].id == id)
			return i;
	}
	assert_true(brute->block_count < BLOCKS_MAX);
	brute->blocks[brute->block_count] = (struct block){.parent = parent, .id = id, .touched_by = FC_TRACE_NONE};
	return brute->block_count++;
}

static uint64_t depth_of(const struct brute *brute, uint64_t block)
{
	for (uint64_t depth = 1; depth <= brute->stack_count; depth++) {
		if (brute->stack[brute->stack_count - depth] == block)
			return depth;
	}
	return 0;
}

static void move_to_top(struct brute *brute, uint64_t block)
{
	uint64_t depth = depth_of(brute, block);
	if (depth > 0) {
		uint64_t at = brute->stack_count - depth;
		memmove(&brute->stack[at], &brute->stack[at + 1], (depth - 1) * sizeof(brute->stack[0]));
		brute->stack_count--;
	}
	brute->stack[brute->stack_count++] = block;
}

static void look_up(struct brute *brute, uint32_t request, uint64_t block, uint64_t dram_blocks)
{
	struct block *found = &brute->blocks[block];
	uint64_t depth = depth_of(brute, block);
	uint64_t now_ns = brute->trace->requests[request].arrival_ns;
	brute->list_hits += found->list_count++ > 0;
	if (depth == 0)
		return;
	brute->hits++;
	brute->distances[depth]++;
	brute->reuse_requests_sum += request - found->touched_by;
	if (depth > dram_blocks) {
		brute->tier_blocks++;
		brute->minutes[now_ns / 60000000000]++;
	}
}

static void touch(struct brute *brute, uint32_t request, uint64_t block)
{
	struct block *found = &brute->blocks[block];
	uint64_t now_ns = brute->trace->requests[request].arrival_ns;
	if (found->touched_by != FC_TRACE_NONE)
		brute->window_sum += fmin((double)(now_ns - found->touched_ns), 60e9);
	found->touched_ns = now_ns;
	found->touched_by = request;
	move_to_top(brute, block);
}

static void take_request(struct brute *brute, uint32_t request, const struct fc_analyze_opts *opts)
{
	const struct fc_trace *trace = brute->trace;
	uint64_t ids[LIST_MAX], path[LIST_MAX];
	uint64_t own = fc_trace_id_count(&trace->requests[request]);
	uint64_t stored = fc_trace_stored_count(trace, request, opts->store_replies);
	fc_trace_request_ids(trace, stored > own ? trace->requests[request].next : request, ids);
	for (uint64_t i = 0; i < stored; i++)
		path[i] = number_of(brute, i == 0 ? BLOCKS_MAX : path[i - 1], ids[i]);
	for (uint64_t i = 0; i < own; i++)
		look_up(brute, request, path[i], opts->dram_blocks);
	for (uint64_t i = stored; i > 0; i--)
		touch(brute, request, path[i - 1]);
}

static void count_by_brute_force(struct brute *brute, const struct fc_trace *trace, const struct fc_analyze_opts *opts)
{
	memset(brute, 0, sizeof(*brute));
	brute->trace = trace;
	for (uint32_t i = 0; i < trace->request_count; i++)
		take_request(brute, i, opts);
	uint64_t end_ns = trace->requests[trace->request_count - 1].arrival_ns;
	for (uint64_t i = 0; i < brute->block_count; i++) {
		brute->unique += brute->blocks[i].list_count > 0;
		brute->once += brute->blocks[i].list_count == 1;
		brute->window_sum += fmin((double)(end_ns - brute->blocks[i].touched_ns), 60e9);
	}
	for (size_t i = 0; i < sizeof(brute->minutes) / sizeof(brute->minutes[0]); i++)
		brute->minute_max = brute->minutes[i] > brute->minute_max ? brute->minutes[i] : brute->minute_max;
}

/* Distinct blocks of a given session's lists, summed over sessions. */
static double session_blocks_mean(struct brute *brute)
{
	const struct fc_trace *trace = brute->trace;
	uint64_t sum = 0;
	for (uint32_t session = 0; session < trace->session_count; session++) {
		static bool is_held[BLOCKS_MAX];
		memset(is_held, 0, sizeof(is_held));
		for (uint32_t i = 0; i < trace->request_count; i++) {
			uint64_t ids[LIST_MAX], block = BLOCKS_MAX;
			if (trace->requests[i].session != session)
				continue;
			fc_trace_request_ids(trace, i, ids);
			for (uint64_t at = 0; at < fc_trace_id_count(&trace->requests[i]); at++) {
				block = number_of(brute, block, ids[at]);
				sum += !is_held[block];
				is_held[block] = true;
			}
		}
	}
	return (double)sum / (double)trace->session_count;
}

static void compare(struct brute *brute, const struct fc_trace *trace, const struct fc_analyze_opts *opts)
{
	struct fc_analysis analysis;
	assert_int_equal(fc_analyze(trace, opts, &analysis), 0);
	count_by_brute_force(brute, trace, opts);
	assert_int_equal(analysis.reference_count, trace->reference_count);
	assert_int_equal(analysis.list_hits, brute->list_hits);
	assert_int_equal(analysis.hits, brute->hits);
	assert_int_equal(analysis.unique_count, brute->unique);
	assert_int_equal(analysis.once_count, brute->once);
	assert_int_equal(analysis.curve.size_max, brute->stack_count);
	uint64_t hits = 0;
	for (uint64_t size = 0; size <= brute->stack_count; size++) {
		hits += brute->distances[size];
		assert_int_equal(fc_curve_hits(&analysis.curve, size), hits);
	}
	assert_int_equal(analysis.tier_blocks, brute->tier_blocks);
	assert_int_equal(analysis.minute_blocks_max, brute->minute_max);
	assert_int_equal(analysis.reuse_requests.count, brute->hits);
	if (brute->hits > 0)
		assert_float_equal(analysis.reuse_requests.mean,
				   (double)brute->reuse_requests_sum / (double)brute->hits, 1e-9);
	if (analysis.span_ns > 0)
		assert_float_equal(analysis.window_blocks[0], brute->window_sum / (double)analysis.span_ns, 1e-6);
	if (trace->session_count > 0)
		assert_float_equal(analysis.session_blocks.mean, session_blocks_mean(brute), 1e-9);
	fc_analysis_deinit(&analysis);
}

static void random_traces_are_counted_as_by_brute_force(void **state)
{
	(void)state;
	struct brute *brute = malloc(sizeof(*brute));
	assert_non_null(brute);
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct fc_random random;
		fc_random_init(&random, seed);
		struct fc_trace *trace = seed % 3 == 0 ? random_loose(&random) : random_sessions(&random);
		struct fc_analyze_opts opts = {.dram_blocks = fc_random_below(&random, 40),
					       .store_replies = fc_random_below(&random, 2) == 1};
		compare(brute, trace, &opts);
		fc_trace_free(trace);
	}
	free(brute);
}

/* ---- stories ------------------------------------------------------------------------------------------------------
 */

static void add(struct fc_trace_build *build, uint64_t time_s, const char *letters)
{
	uint64_t ids[LIST_MAX], count = strlen(letters);
	for (uint64_t i = 0; i < count; i++)
		ids[i] = (uint64_t)letters[i];
	struct fc_build_request request = {.time_ns = time_s * 1000000000,
					   .input_tokens = count * BLOCK_TOKENS,
					   .output_tokens = 1,
					   .ids = ids,
					   .id_count = count};
	assert_int_equal(fc_build_timed_request(build, BLOCK_TOKENS, &request, NULL), 0);
}

static struct fc_analysis analysis_of(struct fc_trace_build *build, const struct fc_analyze_opts *opts)
{
	struct fc_analysis analysis;
	struct fc_trace *trace = finish(build);
	assert_int_equal(fc_analyze(trace, opts, &analysis), 0);
	fc_trace_free(trace);
	return analysis;
}

/* The example at the top of stack.h, and a request that touches three of its runs. */
static void distances_are_depths_before_the_request_with_heads_on_top(void **state)
{
	(void)state;
	struct fc_trace_build *build = build_new(false);
	add(build, 0, "XYZ");   /* X Y Z */
	add(build, 1, "ABCDE"); /* A B C D E, X Y Z */
	add(build, 2, "XY");    /* distances 6 7; X Y, A B C D E, Z */
	add(build, 3, "ABCGH"); /* distances 3 4 5; A B C G H, X Y, D E, Z */
	add(build, 4, "ABCDE"); /* distances 1 2 3, then D 8, E 9 */
	struct fc_analysis analysis = analysis_of(build, &(struct fc_analyze_opts){.dram_blocks = 6});
	static const uint64_t hits[] = {0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 10};
	for (uint64_t size = 0; size < sizeof(hits) / sizeof(hits[0]); size++)
		assert_int_equal(fc_curve_hits(&analysis.curve, size), hits[size]);
	assert_int_equal(analysis.hits, 10);
	assert_int_equal(analysis.unique_count, 10);
	assert_int_equal(analysis.once_count, 3);  /* Z, G, H */
	assert_int_equal(analysis.tier_blocks, 3); /* Y of the third request, D and E of the last */
	assert_int_equal(analysis.request_blocks.max, 2);
	assert_int_equal(analysis.reuse_blocks.p50, 4);
	fc_analysis_deinit(&analysis);
}

static void a_path_longer_than_the_cache_leaves_its_head(void **state)
{
	(void)state;
	struct fc_trace_build *build = build_new(false);
	add(build, 0, "ABCDEF");
	add(build, 1, "ABCDEF");
	struct fc_analysis analysis = analysis_of(build, &(struct fc_analyze_opts){.dram_blocks = 4});
	assert_int_equal(fc_curve_hits(&analysis.curve, 4), 4);
	assert_int_equal(analysis.tier_blocks, 2);
	fc_analysis_deinit(&analysis);
}

static void an_id_behind_other_ids_is_another_block(void **state)
{
	(void)state;
	struct fc_trace_build *build = build_new(false);
	add(build, 0, "AAA");
	add(build, 1, "BA");
	struct fc_analysis analysis = analysis_of(build, &(struct fc_analyze_opts){0});
	assert_int_equal(analysis.unique_count, 5);
	assert_int_equal(analysis.hits, 0);
	fc_analysis_deinit(&analysis);
}

static void sessions_are_inferred_from_lists_that_go_on(void **state)
{
	(void)state;
	struct fc_trace_build *build = build_new(false);
	add(build, 0, "Sab");    /* begins one */
	add(build, 1, "Scd");    /* shares S with it, does not go on where it ended: another */
	add(build, 2, "SabBef"); /* goes on with the whole first */
	add(build, 3, "ScdDgh"); /* goes on with the whole second */
	add(build, 4, "Sx");     /* S is shared by now */
	add(build, 5, "SabBefij");
	add(build, 6, "SabBe"); /* shorter than what it begins with, but for the first */
	struct fc_analysis analysis = analysis_of(build, &(struct fc_analyze_opts){0});
	assert_true(analysis.are_sessions_inferred);
	assert_int_equal(analysis.session_count, 3);
	assert_int_equal(analysis.session_requests.max, 4);
	assert_int_equal(analysis.traffic_sessions[FC_TRAFFIC_ONE_SHOT], 1);
	assert_int_equal(analysis.shared_blocks, 1);
	assert_int_equal(analysis.shared_references, 7);
	assert_int_equal(analysis.other_session_hits, 5); /* S, five times */
	assert_int_equal(analysis.active_sessions_max, 2);
	assert_float_equal(analysis.active_sessions_mean, (1 + 2 + 2 + 2 + 2 + 1 + 1) / 7.0, 1e-9);
	assert_int_equal(analysis.minute_requests_max, 7);
	fc_analysis_deinit(&analysis);
}

static void what_lies_above_a_fork_is_shared(void **state)
{
	(void)state;
	struct fc_trace_build *build = build_new(false);
	add(build, 0, "Sa");  /* begins one */
	add(build, 1, "Sb");  /* does not go on where that ended: another */
	add(build, 2, "Sc");  /* so does this */
	add(build, 3, "P");   /* begins one */
	add(build, 4, "Pab"); /* goes on with it */
	add(build, 5, "Pcd"); /* so does this, behind the same end */
	add(build, 6, "Pef"); /* two have parted there */
	struct fc_analysis analysis = analysis_of(build, &(struct fc_analyze_opts){0});
	assert_int_equal(analysis.session_count, 5);
	assert_int_equal(analysis.session_requests.max, 3);
	assert_int_equal(analysis.traffic_sessions[FC_TRAFFIC_ONE_SHOT], 4);
	fc_analysis_deinit(&analysis);
}

static void requests_without_blocks_and_equal_times_divide_nothing_by_zero(void **state)
{
	(void)state;
	struct fc_trace_build *build = build_new(false);
	add(build, 5, "");
	add(build, 5, "");
	struct fc_analysis analysis = analysis_of(build, &(struct fc_analyze_opts){.dram_blocks = 1});
	struct fc_judgement judgement;
	fc_judge(&analysis, &judgement);
	assert_int_equal(analysis.span_ns, 0);
	assert_int_equal(analysis.reference_count, 0);
	assert_int_equal(analysis.session_count, 2);
	assert_true(analysis.active_sessions_mean == 2 && analysis.window_blocks[0] == 0);
	assert_int_equal(analysis.reuse_requests.count, 0);
	assert_int_equal(judgement.tiering, FC_TIERING_UNKNOWN);
	assert_true(judgement.sessions_in_dram == 0);
	fc_analysis_deinit(&analysis);
}

static void a_reply_is_stored_with_its_request(void **state)
{
	(void)state;
	for (int store_replies = 0; store_replies < 2; store_replies++) {
		struct fc_trace_build *build = build_new(false);
		static const uint64_t ids[] = {1, 2, 3, 4, 5};
		struct fc_build_request first = {.input_tokens = 20, .output_tokens = 25, .ids = ids, .id_count = 2};
		struct fc_build_request second = {.time_ns = 1, .input_tokens = 50, .ids = ids, .id_count = 5};
		assert_int_equal(fc_build_session(build, "a", "test", BLOCK_TOKENS, NULL), 0);
		assert_int_equal(fc_build_line(build, FC_TRACE_KIND_MAIN, 0, 0, NULL), 0);
		assert_int_equal(fc_build_request(build, &first, NULL), 0);
		assert_int_equal(fc_build_request(build, &second, NULL), 0);
		struct fc_analysis analysis =
			analysis_of(build, &(struct fc_analyze_opts){.store_replies = store_replies == 1});
		assert_int_equal(analysis.list_hits, 2);
		assert_int_equal(analysis.hits, store_replies == 1 ? 4 : 2); /* 45 tokens are four blocks */
		assert_int_equal(analysis.new_tokens.max, store_replies == 1 ? 20 : 30);
		fc_analysis_deinit(&analysis);
	}
}

/* ---- judgement ----------------------------------------------------------------------------------------------------
 */

static void tiering_is_judged_by_the_share_of_hits_from_ssd(void **state)
{
	(void)state;
	/* 100 references, 80 hits: hit k at distance k. */
	static const struct {
		uint64_t dram_blocks;
		enum fc_tiering tiering;
	} cases[] = {{0, FC_TIERING_FAILS},    {48, FC_TIERING_FAILS}, /* 32 of 80 are 40 % */
		     {49, FC_TIERING_DEPENDS}, {63, FC_TIERING_DEPENDS},     {64, FC_TIERING_DOES},
		     {77, FC_TIERING_DOES},    {78, FC_TIERING_DRAM_ENOUGH}, {200, FC_TIERING_DRAM_ENOUGH}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fc_analysis analysis = {.reference_count = 100,
					       .hits = 80,
					       .dram_blocks = cases[i].dram_blocks,
					       .request_count = 3,
					       .session_blocks = {.count = 1, .p50 = 10},
					       .traffic_requests = {[FC_TRAFFIC_AGENT] = 2, [FC_TRAFFIC_CHAT] = 1}};
		struct fc_judgement judgement;
		assert_int_equal(fc_curve_init(&analysis.curve, 100), 0);
		fc_curve_add(&analysis.curve, 0, 80);
		fc_curve_finish(&analysis.curve, 100);
		fc_judge(&analysis, &judgement);
		assert_int_equal(judgement.tiering, cases[i].tiering);
		assert_int_equal(judgement.traffic, FC_TRAFFIC_AGENT);
		assert_int_equal(judgement.tiering_blocks, 64);
		assert_int_equal(judgement.enough_blocks, 78);
		analysis.reference_count = 801;
		analysis.traffic_requests[FC_TRAFFIC_AGENT] = 1;
		fc_judge(&analysis, &judgement);
		assert_int_equal(judgement.tiering, FC_TIERING_NO_REUSE);
		assert_int_equal(judgement.traffic, FC_TRAFFIC_MIXED);
		fc_analysis_deinit(&analysis);
	}
}

static void percentiles_are_nearest_ranks(void **state)
{
	(void)state;
	uint64_t values[] = {5, 1, 4, 2, 3}, weights[] = {0, 3, 0, 6, 1};
	struct fc_spread spread;
	fc_spread_of_values(&spread, values, 5);
	assert_int_equal(spread.p50, 3);
	assert_int_equal(spread.p90, 5);
	assert_int_equal(spread.percentiles[0], 1);
	assert_int_equal(spread.percentiles[20], 1);
	assert_int_equal(spread.percentiles[21], 2);
	assert_int_equal(spread.percentiles[100], 5);
	assert_true(spread.mean == 3);
	fc_spread_of_weights(&spread, weights, 5);
	assert_int_equal(spread.count, 10);
	assert_int_equal(spread.p50, 3);
	assert_int_equal(spread.p90, 3);
	assert_int_equal(spread.p99, 4);
	assert_int_equal(spread.max, 4);
	assert_float_equal(spread.mean, 2.5, 1e-12);
	fc_spread_of_values(&spread, values, 0);
	assert_int_equal(spread.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_traces_are_counted_as_by_brute_force),
		cmocka_unit_test(distances_are_depths_before_the_request_with_heads_on_top),
		cmocka_unit_test(a_path_longer_than_the_cache_leaves_its_head),
		cmocka_unit_test(an_id_behind_other_ids_is_another_block),
		cmocka_unit_test(sessions_are_inferred_from_lists_that_go_on),
		cmocka_unit_test(what_lies_above_a_fork_is_shared),
		cmocka_unit_test(requests_without_blocks_and_equal_times_divide_nothing_by_zero),
		cmocka_unit_test(a_reply_is_stored_with_its_request),
		cmocka_unit_test(tiering_is_judged_by_the_share_of_hits_from_ssd),
		cmocka_unit_test(percentiles_are_nearest_ranks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

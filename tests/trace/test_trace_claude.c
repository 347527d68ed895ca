/* What a Claude Code session becomes in memory: lists, shared prompts, subagents, stored replies, arrival times. Blocks
 * of 4 tokens, so that every number can be worked out by hand. */
#define _GNU_SOURCE
#include "trace_files.h"

#define HEAD(name, tool, system)                                                                                       \
	"{\"id\":\"" name "\",\"block_size\":4,\"hash_id_scope\":\"local\",\"tool_tokens\":" #tool                     \
	",\"system_tokens\":" #system ",\"requests\":["
#define REQUEST(t, in, out, ids) "{\"t\":" #t ",\"type\":\"n\",\"in\":" #in ",\"out\":" #out ",\"hash_ids\":[" ids "]}"
#define SUBAGENT(t, tool, system)                                                                                      \
	"{\"t\":" #t ",\"type\":\"subagent\",\"tool_tokens\":" #tool ",\"system_tokens\":" #system ",\"requests\":["

/* Tool tokens 10: blocks 0 and 1 lie inside. 10 + 5 system tokens: block 2, too. */
#define SESSION_A                                                                                                      \
	HEAD("a", 10, 5)                                                                                               \
	REQUEST(0, 20, 6, "1,2,3,4,5")                                                                                 \
	"," REQUEST(10, 29, 2, "1,2,3,4,5,6,7") "," REQUEST(30.5, 16, 1, "1,2,9,4") "]}\n"
/* The same tools, 6 system tokens: blocks 2 and 3. */
#define SESSION_B HEAD("b", 10, 6) REQUEST(5, 20, 7, "1,2,3,4,5") "," REQUEST(15, 24, 1, "1,2,3,4,5,6") "]}\n"

static struct fc_trace *load_text(const char *text, const struct fc_trace_opts *opts)
{
	char *folder = folder_new();
	write_text(in_folder(folder, "trace.json"), text);
	struct fc_trace *trace = load(in_folder(folder, "trace.json"), opts);
	folder_free(folder);
	return trace;
}

static void assert_ids(const struct fc_trace *trace, uint32_t request, size_t count, const uint64_t *wanted)
{
	uint64_t ids[16];
	assert_int_equal(fc_trace_id_count(&trace->requests[request]), count);
	fc_trace_request_ids(trace, request, ids);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ids[i], wanted[i]);
}
#define assert_ids_are(trace, request, ...)                                                                            \
	assert_ids(trace, request, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

static uint32_t request_of(const struct fc_trace *trace, uint32_t session, uint32_t number)
{
	return trace->session_requests[trace->sessions[session].requests_start + number];
}

static void lists_are_kept_as_differences_along_a_line(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(SESSION_A, NULL);
	assert_int_equal(trace->request_count, 3);
	assert_int_equal(trace->block_tokens, 4);
	assert_int_equal(trace->requests[0].prefix_count, 0);
	assert_int_equal(trace->requests[1].prefix_count, 5);
	assert_int_equal(trace->requests[1].suffix_count, 2);
	assert_int_equal(trace->requests[2].prefix_count, 2);
	assert_int_equal(trace->requests[2].turn, 2);
	assert_int_equal(trace->requests[0].next, 1);
	assert_int_equal(trace->requests[2].previous, 1);
	assert_int_equal(trace->requests[2].next, FC_TRACE_NONE);
	assert_int_equal(trace->requests[2].arrival_ns, 30500000000);
	assert_int_equal(trace->suffix_id_count, 5 + 2 + 2);
	assert_int_equal(trace->reference_count, 5 + 7 + 4);
	fc_trace_free(trace);
}

/* Prompt classes in order: (10,5) has 1 block: id 0. (10,6) has 2: ids 1, 2. (10) has 2: ids 3, 4. Session a has 5 ids
 * of its own from 5 on (4, 5, 6, 7, 9), session b 2 from 10 on (5, 6). */
static void shared_prompts_are_put_back_by_tool_and_system_tokens(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(SESSION_A SESSION_B, NULL);
	assert_ids_are(trace, request_of(trace, 0, 0), 3, 4, 0, 5, 6);
	assert_ids_are(trace, request_of(trace, 0, 1), 3, 4, 0, 5, 6, 7, 8);
	assert_ids_are(trace, request_of(trace, 0, 2), 3, 4, 9, 5);
	assert_ids_are(trace, request_of(trace, 1, 0), 3, 4, 1, 2, 10);
	assert_ids_are(trace, request_of(trace, 1, 1), 3, 4, 1, 2, 10, 11);
	assert_int_equal(trace->id_bound, 12);
	assert_int_equal(trace->requests[request_of(trace, 0, 0)].shared_tokens, 15);
	assert_int_equal(trace->requests[request_of(trace, 0, 2)].shared_tokens, 8);
	assert_int_equal(trace->requests[request_of(trace, 1, 0)].shared_tokens, 16);
	fc_trace_free(trace);
}

static void sessions_share_nothing_without_share_prompts(void **state)
{
	(void)state;
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.share_prompts = false;
	struct fc_trace *trace = load_text(SESSION_A SESSION_B, &opts);
	assert_ids_are(trace, request_of(trace, 0, 0), 0, 1, 2, 3, 4);
	assert_ids_are(trace, request_of(trace, 0, 2), 0, 1, 7, 3);
	assert_ids_are(trace, request_of(trace, 1, 0), 8, 9, 10, 11, 12);
	assert_int_equal(trace->requests[0].shared_tokens, 0);
	assert_int_equal(trace->id_bound, 8 + 6);
	fc_trace_free(trace);
}

static void a_local_id_away_from_its_place_in_the_prompt_is_not_shared(void **state)
{
	(void)state;
	struct fc_trace *trace =
		load_text(HEAD("a", 8, 0) REQUEST(0, 8, 1, "1,2") "," REQUEST(1, 12, 1, "2,1,2") "]}", NULL);
	assert_ids_are(trace, 0, 0, 1);
	assert_ids_are(trace, 1, 2, 3, 2);
	fc_trace_free(trace);
}

#define SESSION_WITH_SUBAGENT                                                                                          \
	HEAD("a", 8, 0)                                                                                                \
	REQUEST(0, 8, 1, "1,2")                                                                                        \
	"," SUBAGENT(5, 4, 0)                                                                                          \
		REQUEST(0, 8, 1, "20,21") "," REQUEST(30, 12, 1, "20,21,22") "]}," REQUEST(20, 12, 1, "1,2,3") "]}\n"

static void a_subagent_is_a_line_of_its_own_whose_times_count_from_its_marker(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(SESSION_WITH_SUBAGENT, NULL);
	static const uint64_t arrivals_s[] = {0, 5, 20, 35};
	static const enum fc_trace_kind kinds[] = {FC_TRACE_KIND_MAIN, FC_TRACE_KIND_SUBAGENT, FC_TRACE_KIND_MAIN,
						   FC_TRACE_KIND_SUBAGENT};
	assert_int_equal(trace->session_count, 1);
	assert_int_equal(trace->line_count, 2);
	assert_int_equal(trace->request_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(trace->requests[i].arrival_ns, arrivals_s[i] * 1000000000);
		assert_int_equal(trace->requests[i].kind, kinds[i]);
		assert_int_equal(trace->requests[i].turn, i / 2);
	}
	assert_int_equal(trace->requests[2].previous, 0);
	assert_int_equal(trace->requests[3].previous, 1);
	assert_int_equal(trace->requests[1].shared_tokens, 4);
	assert_int_equal(trace->sessions[0].duration_ns, 35000000000);
	fc_trace_free(trace);
}

static void subagents_share_with_subagents_of_their_kind_only(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(HEAD("a", 8, 0) REQUEST(0, 8, 1, "1,2") "," SUBAGENT(5, 4, 0)
						   REQUEST(0, 8, 1, "20,21") "]}]}\n" HEAD("b", 8, 0)
							   REQUEST(0, 8, 1, "1,2") "," SUBAGENT(5, 4, 0)
								   REQUEST(0, 8, 1, "7,8") "]}]}\n",
					   NULL);
	/* Class (4): id 0. Class (8): ids 1, 2. Then one own id of each session's subagent. */
	assert_ids_are(trace, request_of(trace, 0, 0), 1, 2);
	assert_ids_are(trace, request_of(trace, 0, 1), 0, 3);
	assert_ids_are(trace, request_of(trace, 1, 1), 0, 4);
	fc_trace_free(trace);
}

static void subagents_can_be_left_out(void **state)
{
	(void)state;
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.include_subagents = false;
	struct fc_trace *trace = load_text(SESSION_WITH_SUBAGENT, &opts);
	assert_int_equal(trace->request_count, 2);
	assert_int_equal(trace->line_count, 1);
	fc_trace_free(trace);
}

static void a_stored_reply_counts_as_far_as_the_next_request_names_it(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(SESSION_A SESSION_B, NULL);
	/* 20 + 6 tokens: 6 blocks, of the next request's 7. */
	assert_int_equal(fc_trace_stored_count(trace, request_of(trace, 0, 0), true), 6);
	assert_int_equal(fc_trace_stored_count(trace, request_of(trace, 0, 0), false), 5);
	/* The next request does not begin with the whole list. */
	assert_int_equal(fc_trace_stored_count(trace, request_of(trace, 0, 1), true), 7);
	/* There is none. */
	assert_int_equal(fc_trace_stored_count(trace, request_of(trace, 0, 2), true), 4);
	/* 20 + 7 tokens: 6 blocks, all that the next request has. */
	assert_int_equal(fc_trace_stored_count(trace, request_of(trace, 1, 0), true), 6);
	fc_trace_free(trace);
	trace = load_text(
		HEAD("a", 0, 0) REQUEST(0, 4, 90, "1") "," REQUEST(1, 13, 1, "1,2,3") "," REQUEST(2, 8, 0, "1,2") "]}",
		NULL);
	assert_int_equal(fc_trace_stored_count(trace, 0, true), 3);
	fc_trace_free(trace);
}

static void a_reply_is_not_stored_under_ids_of_another_history(void **state)
{
	(void)state;
	/* The next list is longer, but its second block is another one: 2, not (8 + 20) / 4. */
	struct fc_trace *trace =
		load_text(HEAD("a", 0, 0) REQUEST(0, 8, 20, "1,2") "," REQUEST(1, 16, 1, "1,9,8,7") "]}", NULL);
	assert_int_equal(fc_trace_stored_count(trace, 0, true), 2);
	fc_trace_free(trace);
}

static void times_out_of_order_are_sorted_stably(void **state)
{
	(void)state;
	struct fc_trace *trace =
		load_text(HEAD("a", 0, 0) REQUEST(9, 4, 1, "1") "," REQUEST(2, 8, 1, "2,3") "," REQUEST(
				  9, 4, 1, "4") "," REQUEST(3, 12, 1, "2,3,5") "]}",
			  NULL);
	static const uint64_t arrivals_s[] = {0, 1, 7, 7};
	static const uint64_t inputs[] = {8, 12, 4, 4};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(trace->requests[i].arrival_ns, arrivals_s[i] * 1000000000);
		assert_int_equal(trace->requests[i].input_tokens, inputs[i]);
		assert_int_equal(trace->requests[i].turn, i);
	}
	assert_int_equal(trace->requests[1].prefix_count, 2);
	assert_ids_are(trace, 2, 3);
	assert_ids_are(trace, 3, 4);
	fc_trace_free(trace);
}

static void requests_without_blocks_are_kept(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(
		HEAD("a", 8, 4) REQUEST(0, 2, 0, "") "," REQUEST(1, 3, 9, "") "," REQUEST(2, 12, 1, "1,2,3") "]}",
		NULL);
	uint64_t ids[1];
	assert_int_equal(trace->request_count, 3);
	assert_int_equal(trace->reference_count, 3);
	fc_trace_request_ids(trace, 0, ids);
	/* 3 + 9 tokens: 3 blocks. */
	assert_int_equal(fc_trace_stored_count(trace, 1, true), 3);
	fc_trace_free(trace);
}

/* Durations: a 30, b 10, c 20 seconds. */
#define THREE_SESSIONS                                                                                                 \
	HEAD("a", 0, 0)                                                                                                \
	REQUEST(100, 4, 1, "1")                                                                                        \
	"," REQUEST(130, 4, 1, "1") "]}\n" HEAD("b", 0, 0)                                                             \
		REQUEST(0, 4, 1, "1") "," REQUEST(10, 4, 1, "1") "]}\n" HEAD("c", 0, 0)                                \
			REQUEST(0, 4, 1, "1") "," REQUEST(20, 4, 1, "1") "]}\n"

static struct fc_trace *arrange(uint32_t concurrent_sessions, uint64_t seed)
{
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.concurrent_sessions = concurrent_sessions;
	opts.seed = seed;
	return load_text(THREE_SESSIONS, &opts);
}

static void one_lane_runs_session_after_session_in_an_order_of_the_seed(void **state)
{
	(void)state;
	unsigned orders_seen = 0;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct fc_trace *trace = arrange(1, seed);
		uint64_t start_ns = 0;
		unsigned order = 0;
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t session = 0;
			while (session < 3 && trace->sessions[session].start_ns != start_ns)
				session++;
			assert_true(session < 3);
			assert_int_equal(trace->requests[request_of(trace, session, 0)].arrival_ns, start_ns);
			start_ns += trace->sessions[session].duration_ns;
			order = order * 3 + session;
		}
		assert_int_equal(start_ns, 60000000000);
		orders_seen |= 1u << order;
		fc_trace_free(trace);
	}
	/* All six orders of three sessions: 012 021 102 120 201 210 in base 3. */
	assert_int_equal(orders_seen, 1 << 5 | 1 << 7 | 1 << 11 | 1 << 15 | 1 << 19 | 1 << 21);
}

/* Two lanes; the second opens at mean duration / 2 = 10 s. The third session starts on the lane that is free first:
 * lane 0 at the first one's duration, or lane 1 at 10 s + the second one's. */
static void lanes_open_apart_and_take_the_next_session_when_free(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct fc_trace *trace = arrange(2, seed);
		const struct fc_trace_session *by_start[3] = {0};
		uint64_t third_ns = 0;
		for (uint32_t i = 0; i < 3; i++) {
			uint64_t start_ns = trace->sessions[i].start_ns;
			by_start[start_ns == 0                                    ? 0
				 : start_ns == 10000000000 && by_start[1] == NULL ? 1
										  : 2] = &trace->sessions[i];
		}
		assert_non_null(by_start[0]);
		assert_non_null(by_start[1]);
		assert_non_null(by_start[2]);
		third_ns = fc_min_u64(by_start[0]->duration_ns, 10000000000 + by_start[1]->duration_ns);
		if (by_start[0]->duration_ns != 10000000000)
			assert_int_equal(by_start[2]->start_ns, third_ns);
		fc_trace_free(trace);
	}
}

static void more_lanes_than_sessions_give_each_its_own(void **state)
{
	(void)state;
	struct fc_trace *trace = arrange(100, 7);
	/* Mean 20 s over 3 lanes. */
	uint64_t sum_ns = 0;
	for (uint32_t i = 0; i < 3; i++)
		sum_ns += trace->sessions[i].start_ns;
	assert_int_equal(sum_ns, 0 + 6666666666 + 13333333333);
	fc_trace_free(trace);
}

static void the_seed_changes_times_but_no_id(void **state)
{
	(void)state;
	struct fc_trace *one = arrange(1, 1), *other = arrange(1, 2);
	for (uint32_t session = 0; session < 3; session++) {
		assert_string_equal(one->sessions[session].name, other->sessions[session].name);
		assert_ids_are(one, request_of(one, session, 0), session);
		assert_ids_are(other, request_of(other, session, 0), session);
	}
	fc_trace_free(one);
	fc_trace_free(other);
}

static void assert_walked(struct fc_trace_lists *lists, const struct fc_trace *trace, uint32_t request)
{
	uint64_t wanted[16], count;
	const uint64_t *ids;
	fc_trace_request_ids(trace, request, wanted);
	assert_int_equal(fc_trace_lists_get(lists, request, &ids, &count), 0);
	assert_int_equal(count, fc_trace_id_count(&trace->requests[request]));
	assert_memory_equal(ids, wanted, count * sizeof(*ids));
}

static void a_walk_gives_the_lists_that_single_reads_give(void **state)
{
	(void)state;
	static const char *const texts[] = {SESSION_A, SESSION_A SESSION_B, SESSION_WITH_SUBAGENT};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fc_trace *trace = load_text(texts[i], NULL);
		struct fc_trace_lists *lists;
		assert_int_equal(fc_trace_lists_new(trace, &lists), 0);
		/* In order, each twice; then backwards, which a walk cannot foresee. */
		for (uint32_t step = 0; step < 2 * trace->request_count; step++)
			assert_walked(lists, trace, step / 2);
		for (uint32_t request = trace->request_count; request > 0; request--)
			assert_walked(lists, trace, request - 1);
		fc_trace_lists_free(lists);
		fc_trace_free(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_kept_as_differences_along_a_line),
		cmocka_unit_test(shared_prompts_are_put_back_by_tool_and_system_tokens),
		cmocka_unit_test(sessions_share_nothing_without_share_prompts),
		cmocka_unit_test(a_local_id_away_from_its_place_in_the_prompt_is_not_shared),
		cmocka_unit_test(a_subagent_is_a_line_of_its_own_whose_times_count_from_its_marker),
		cmocka_unit_test(subagents_share_with_subagents_of_their_kind_only),
		cmocka_unit_test(subagents_can_be_left_out),
		cmocka_unit_test(a_stored_reply_counts_as_far_as_the_next_request_names_it),
		cmocka_unit_test(a_reply_is_not_stored_under_ids_of_another_history),
		cmocka_unit_test(times_out_of_order_are_sorted_stably),
		cmocka_unit_test(requests_without_blocks_are_kept),
		cmocka_unit_test(one_lane_runs_session_after_session_in_an_order_of_the_seed),
		cmocka_unit_test(lanes_open_apart_and_take_the_next_session_when_free),
		cmocka_unit_test(more_lanes_than_sessions_give_each_its_own),
		cmocka_unit_test(the_seed_changes_times_but_no_id),
		cmocka_unit_test(a_walk_gives_the_lists_that_single_reads_give),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The simulated engine against times worked out by hand: prefill, chunks, batches, replies, copies beside the prefill.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/world.h"
#include "replay/engine.h"

#include <math.h>
#include <string.h>
#include <stdlib.h>

#define MS_NS 1000000ull
#define FAST 1000000000000000ull

/* Two sessions of two requests, blocks of 4 tokens:
 *     0  session 0   A B C        12 tokens
 *     1  session 1   X Y Z        12 tokens
 *     2  session 0   A B C D E    20 tokens
 *     3  session 1   X Y          8 tokens */
struct story {
	struct fc_trace_request requests[4];
	struct fc_trace_session sessions[2];
	uint32_t session_requests[4];
	uint64_t suffix_ids[10];
	struct fc_trace trace;
	struct fc_geometry geometry;
	struct fc_hardware hardware;
	struct fc_config config;
	struct fc_engine_opts opts;
	struct fc_outcome *outcome;
};

static void set_trace(struct story *story, uint32_t request_count, uint32_t session_count)
{
	const uint32_t none = FC_TRACE_NONE;
	story->requests[0] = (struct fc_trace_request){
		.input_tokens = 12, .output_tokens = 1, .suffix_count = 3, .previous = none, .next = none};
	story->requests[1] = (struct fc_trace_request){.input_tokens = 12,
						       .output_tokens = 1,
						       .suffix_start = 3,
						       .suffix_count = 3,
						       .session = 1,
						       .line = 1,
						       .previous = none,
						       .next = none};
	story->suffix_ids[0] = 'A', story->suffix_ids[1] = 'B', story->suffix_ids[2] = 'C';
	story->suffix_ids[3] = 'X', story->suffix_ids[4] = 'Y', story->suffix_ids[5] = 'Z';
	story->suffix_ids[6] = 'D', story->suffix_ids[7] = 'E';
	story->sessions[0] = (struct fc_trace_session){.name = "zero", .request_count = 1};
	story->sessions[1] = (struct fc_trace_session){.name = "one", .requests_start = 1, .request_count = 1};
	story->session_requests[0] = 0, story->session_requests[1] = 1;
	story->trace = (struct fc_trace){.block_tokens = 4,
					 .requests = story->requests,
					 .request_count = request_count,
					 .sessions = story->sessions,
					 .session_count = session_count,
					 .session_requests = story->session_requests,
					 .line_count = session_count,
					 .suffix_ids = story->suffix_ids,
					 .suffix_id_count = 8};
}

/* Session 0 alone: 12 tokens, then 20 of which those are the first. */
static void set_conversation(struct story *story)
{
	set_trace(story, 2, 1);
	story->requests[0].next = 1;
	story->requests[1] = (struct fc_trace_request){.input_tokens = 20,
						       .output_tokens = 1,
						       .suffix_start = 6,
						       .suffix_count = 2,
						       .prefix_count = 3,
						       .turn = 1,
						       .previous = 0,
						       .next = FC_TRACE_NONE};
	story->sessions[0].request_count = 2;
}

/* A token takes a millisecond, and everything else no time but for rounding. */
static struct story *make_story(const char *policy)
{
	struct story *story = calloc(1, sizeof(*story));
	struct fc_config_problem problem;
	struct fc_config_sources sources = {.command = FC_COMMAND_REPLAY};
	assert_int_equal(fc_config_load(&story->config, &sources, &problem), FC_OK);
	story->config.window_bytes = 64 << 10;
	story->config.chunk_bytes = 4096;
	story->config.streams = 1;
	story->geometry = geometry_plain(1);
	story->outcome = calloc(1, sizeof(*story->outcome));
	story->hardware = (struct fc_hardware){
		.name = "test",
		.workers = 1,
		.hbm_kv_bytes = 1000,
		.hbm_bytes_per_s = FAST,
		.prefill_tokens_per_s = 1000,
		.chunk_tokens = 1000,
		.batch_max = 10,
		.has_overlap = true,
		.dram_bytes_per_s = FAST,
		.link_up_bytes_per_s = 17000, /* a block of 17 bytes in a millisecond */
		.link_down_bytes_per_s = FAST,
		.ssd_count = 1,
		.ssd_align_bytes = 512,
		.ssd_stripe_bytes = 1 << 20,
		.ssd_transfer_bytes = 4 << 20,
		.ssd_read_bytes_per_s = FAST,
		.ssd_write_bytes_per_s = FAST,
		.ssd_first_write_bytes_per_s = FAST,
		.kernel_copy_bytes_per_s = FAST,
	};
	story->opts = (struct fc_engine_opts){.trace = &story->trace,
					      .geometry = &story->geometry,
					      .hardware = &story->hardware,
					      .config = &story->config,
					      .policy = fc_policy_find(policy, strlen(policy)),
					      .memory_bytes = 1 << 20,
					      .ssd_bytes = 16 << 20,
					      .rate_per_s = INFINITY};
	assert_non_null(story->opts.policy);
	set_trace(story, 2, 2);
	return story;
}

static void run(struct story *story)
{
	struct fc_error error;
	int code = fc_engine_run(&story->opts, story->outcome, &error);
	if (code != FC_OK)
		fail_msg("%s", error.text);
	assert_int_equal(story->outcome->requests, story->trace.request_count);
}

static void free_story(struct story *story)
{
	fc_config_free(&story->config);
	free(story->outcome);
	free(story);
}

#define assert_about_ms(value_ns, ms)                                                                                  \
	assert_in_range(value_ns, (uint64_t)((ms)*1e6) - 2000, (uint64_t)((ms)*1e6) + 2000)

static void what_fits_a_step_is_prefilled_together(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	run(story);
	/* 12 + 12 tokens in one step: both first tokens come at its end */
	assert_about_ms(story->outcome->ttft.min, 24);
	assert_about_ms(story->outcome->ttft.max, 24);
	assert_about_ms(story->outcome->elapsed_ns, 24);
	free_story(story);
}

static void chunks_fill_steps_in_order_of_arrival(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	story->hardware.chunk_tokens = 10;
	story->hardware.step_ns = MS_NS;
	run(story);
	/* 10 of the first | 2 and 8 of the second | 4: each step and a millisecond */
	assert_about_ms(story->outcome->ttft.min, 10 + 1 + 10 + 1);
	assert_about_ms(story->outcome->ttft.max, 10 + 1 + 10 + 1 + 4 + 1);
	free_story(story);
}

static void a_token_costs_more_the_longer_its_context(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	set_trace(story, 1, 1);
	story->hardware.prefill_context_tokens = 12;
	run(story);
	assert_about_ms(story->outcome->ttft.max, 12 * (1 + 6.0 / 12));
	free_story(story);
}

static void replies_go_on_beside_the_next_prefill(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	story->hardware.is_decoding = true;
	story->hardware.decode_step_ns = 5 * MS_NS;
	story->hardware.chunk_tokens = 12;
	story->requests[0].output_tokens = 3;
	run(story);
	/* 12 | 12 and a token of the first reply, 5 | its last token, 5 */
	assert_about_ms(story->outcome->ttft.min, 12);
	assert_about_ms(story->outcome->ttft.max, 12 + 17);
	assert_about_ms(story->outcome->elapsed_ns, 12 + 17 + 5);
	free_story(story);
}

static void a_request_without_room_waits_for_one_to_end(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	story->hardware.hbm_kv_bytes = 4 * 17; /* three blocks and one for the reply's token */
	run(story);
	assert_about_ms(story->outcome->ttft.min, 12);
	assert_about_ms(story->outcome->ttft.max, 24);
	assert_about_ms(story->outcome->parts[FC_TTFT_QUEUE].max, 12);
	free_story(story);
}

static void a_request_that_no_worker_can_hold_is_refused_by_name(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	struct fc_error error;
	story->hardware.hbm_kv_bytes = 4 * 17 - 1;
	assert_int_equal(fc_engine_run(&story->opts, story->outcome, &error), FC_ELIMIT);
	assert_non_null(strstr(error.text, "request 0: it needs 68 bytes of KV; a worker of test has 67"));
	free_story(story);
}

static void workers_compute_side_by_side(void **state)
{
	(void)state;
	struct story *story = make_story("recompute");
	story->hardware.workers = 2;
	run(story);
	assert_about_ms(story->outcome->ttft.max, 12);
	free_story(story);
}

static void a_history_is_copied_beside_the_prefill(void **state)
{
	(void)state;
	struct story *story = make_story("infinite-dram");
	set_conversation(story);
	run(story);
	assert_int_equal(story->outcome->blocks, 3 + 5);
	assert_int_equal(story->outcome->delivered_blocks, 3);
	assert_int_equal(story->outcome->possible_blocks, 3);
	assert_int_equal(story->outcome->media_bytes[FC_MEMORY], 3 * 17);
	/* three milliseconds of copying hide behind the 8 of the second request's new tokens */
	assert_about_ms(story->outcome->ttft.min, 8);
	assert_about_ms(story->outcome->elapsed_ns, 12 + 8);
	free_story(story);
}

static void a_slow_copy_is_waited_for_up_to_its_last_layer(void **state)
{
	(void)state;
	struct story *story = make_story("infinite-dram");
	set_conversation(story);
	story->hardware.link_up_bytes_per_s = 1700;
	run(story);
	assert_about_ms(story->outcome->elapsed_ns, 12 + 30 + 8.0 / 3); /* a third of the prefill is the last layer's */
	story->hardware.has_overlap = false;
	run(story);
	assert_about_ms(story->outcome->elapsed_ns, 12 + 30 + 8);
	free_story(story);
}

static void flat_reads_two_layers_at_a_time(void **state)
{
	(void)state;
	struct story *story = make_story("flat-no-overlap");
	set_conversation(story);
	story->hardware.link_up_bytes_per_s = FAST;
	story->hardware.ssd_latency_ns = MS_NS;
	story->opts.memory_bytes = 0;
	run(story);
	assert_int_equal(story->outcome->delivered_blocks, 3);
	assert_int_equal(story->outcome->media_bytes[FC_SSD], 3 * 17);
	assert_true(story->outcome->bytes_read >= 3 * 17);
	assert_int_equal(story->outcome->commands, 2); /* two of the three layers have bytes */
	/* both layers in one latency, then 8 new tokens */
	assert_about_ms(story->outcome->prefetch.max, 1);
	assert_about_ms(story->outcome->ttft.min, 1 + 8);
	assert_about_ms(story->outcome->parts[FC_TTFT_READ].max, 1);
	free_story(story);
}

static void flat_starts_when_the_layers_to_come_take_no_longer_than_the_prefill(void **state)
{
	(void)state;
	struct story *story = make_story("flat");
	set_conversation(story);
	for (uint32_t layer = 0; layer < 3; layer++)
		story->geometry.groups[0].slice_bytes[layer] = 4000; /* two blocks fill a slot: layers one by one */
	story->hardware.hbm_kv_bytes = 1 << 20;
	story->hardware.link_up_bytes_per_s = FAST;
	story->hardware.ssd_latency_ns = 2 * MS_NS;
	story->config.window_bytes = 64 << 10;
	story->opts.memory_bytes = 0;
	run(story);
	assert_int_equal(story->outcome->delivered_blocks, 3);
	/* Layers come at 2, 2 and 4 ms. With the second it is known that the third takes 0 ms: the prefill starts at 2,
	 * runs 8 and waits for nothing. */
	assert_about_ms(story->outcome->prefetch.max, 4);
	assert_about_ms(story->outcome->ttft.min, 2 + 8);
	free_story(story);
}

/* Session 0 comes back to three blocks on SSD, and session 1 with another text, which needs nothing. */
static void set_two_conversations(struct story *story)
{
	set_trace(story, 4, 2);
	story->requests[0].next = 2;
	story->requests[1].next = 3;
	story->requests[2] = (struct fc_trace_request){.input_tokens = 20,
						       .output_tokens = 1,
						       .suffix_start = 6,
						       .suffix_count = 2,
						       .prefix_count = 3,
						       .turn = 1,
						       .previous = 0,
						       .next = FC_TRACE_NONE};
	story->requests[3] = (struct fc_trace_request){.input_tokens = 8,
						       .output_tokens = 1,
						       .suffix_start = 8,
						       .suffix_count = 2,
						       .session = 1,
						       .line = 1,
						       .turn = 1,
						       .previous = 1,
						       .next = FC_TRACE_NONE};
	story->suffix_ids[8] = 'P', story->suffix_ids[9] = 'Q';
	story->trace.suffix_id_count = 10;
	for (uint32_t i = 0; i < 2; i++)
		story->sessions[i] = (struct fc_trace_session){
			.name = i == 0 ? "zero" : "one", .requests_start = 2 * i, .request_count = 2};
	const uint32_t order[4] = {0, 2, 1, 3};
	memcpy(story->session_requests, order, sizeof(order));
}

static void with_one_queue_nobody_overtakes_a_read(void **state)
{
	static const char *const policies[] = {"flat-no-overlap", "flat-one-queue"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct story *story = make_story(policies[i]);
		set_two_conversations(story);
		story->hardware.has_overlap = false;
		story->hardware.link_up_bytes_per_s = FAST;
		story->hardware.ssd_latency_ns = 50 * MS_NS;
		story->opts.memory_bytes = 0;
		run(story);
		/* Both first requests end at 24. Then: 8 at once, and 8 after 50 of reading; or 16 after 50 for both.
		 */
		assert_about_ms(story->outcome->ttft.min, i == 0 ? 8 : 24);
		assert_about_ms(story->outcome->ttft.max, i == 0 ? 50 + 8 : 50 + 16);
		free_story(story);
	}
}

static void the_copy_from_memory_begins_when_the_engine_takes_the_request(void **state)
{
	(void)state;
	struct story *story = make_story("flat");
	set_conversation(story);
	story->requests[1].turn = 1;
	story->opts.ssd_bytes = 0;
	run(story);
	assert_int_equal(story->outcome->media_bytes[FC_MEMORY], 3 * 17);
	assert_int_equal(story->outcome->bytes_read, 0);
	assert_about_ms(story->outcome->ttft.min, 8);
	free_story(story);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_a_step_is_prefilled_together),
		cmocka_unit_test(chunks_fill_steps_in_order_of_arrival),
		cmocka_unit_test(a_token_costs_more_the_longer_its_context),
		cmocka_unit_test(replies_go_on_beside_the_next_prefill),
		cmocka_unit_test(a_request_without_room_waits_for_one_to_end),
		cmocka_unit_test(a_request_that_no_worker_can_hold_is_refused_by_name),
		cmocka_unit_test(workers_compute_side_by_side),
		cmocka_unit_test(a_history_is_copied_beside_the_prefill),
		cmocka_unit_test(a_slow_copy_is_waited_for_up_to_its_last_layer),
		cmocka_unit_test(flat_reads_two_layers_at_a_time),
		cmocka_unit_test(flat_starts_when_the_layers_to_come_take_no_longer_than_the_prefill),
		cmocka_unit_test(with_one_queue_nobody_overtakes_a_read),
		cmocka_unit_test(the_copy_from_memory_begins_when_the_engine_takes_the_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

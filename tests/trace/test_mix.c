/* A mix of traces: shares, order, lists and ids of each, blocks cut to the smallest size, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/generate.h"
#include "trace/mix.h"

#include <stdlib.h>
#include <string.h>

#define CHATS 40u

static struct fc_trace *make_agents(uint64_t seed)
{
	struct fc_generate_opts generate;
	struct fc_trace_opts opts;
	struct fc_trace *trace;
	fc_generate_opts_init(&generate);
	fc_trace_opts_init(&opts);
	generate.seed = opts.seed = seed;
	generate.session_count = 8;
	generate.turn_scale = 0.15;
	generate.token_scale = 0.2;
	assert_int_equal(fc_trace_generate(&generate, &opts, &trace, NULL), FC_OK);
	return trace;
}

/* Requests without sessions, in blocks of 512 tokens with any 64 bits for names; the last block is partial: 3 blocks
 * for 1,100 tokens, which are 17 full blocks of 64. */
static struct fc_trace *make_chats(void)
{
	struct fc_trace *trace = calloc(1, sizeof(*trace));
	trace->format = FC_TRACE_OF_REQUESTS;
	trace->block_tokens = 512;
	trace->request_count = CHATS;
	trace->requests = calloc(CHATS, sizeof(*trace->requests));
	trace->suffix_ids = calloc(3 * CHATS, sizeof(*trace->suffix_ids));
	trace->suffix_id_count = 3 * CHATS;
	for (uint32_t i = 0; i < CHATS; i++) {
		trace->requests[i] = (struct fc_trace_request){.arrival_ns = i,
							       .input_tokens = 1100,
							       .output_tokens = i,
							       .suffix_start = 3 * i,
							       .suffix_count = 3,
							       .session = FC_TRACE_NONE,
							       .line = FC_TRACE_NONE,
							       .previous = FC_TRACE_NONE,
							       .next = FC_TRACE_NONE};
		trace->suffix_ids[3 * i] = UINT64_MAX; /* all begin alike */
		trace->suffix_ids[3 * i + 1] = 1000 + i / 2;
		trace->suffix_ids[3 * i + 2] = (1ull << 40) + i;
	}
	return trace;
}

static uint64_t *list_of(const struct fc_trace *trace, uint32_t request, uint64_t *count)
{
	*count = fc_trace_id_count(&trace->requests[request]);
	uint64_t *ids = calloc(*count + 1, sizeof(*ids));
	fc_trace_request_ids(trace, request, ids);
	return ids;
}

/* How many leading ids two requests share. */
static uint64_t common(const struct fc_trace *trace, uint32_t a, uint32_t b)
{
	uint64_t counts[2], same = 0;
	uint64_t *first = list_of(trace, a, &counts[0]), *second = list_of(trace, b, &counts[1]);
	while (same < counts[0] && same < counts[1] && first[same] == second[same])
		same++;
	free(first);
	free(second);
	return same;
}

static void each_trace_keeps_its_order_and_its_lists(void **state)
{
	struct fc_trace *agents = make_agents(1), *mixed;
	struct fc_mix_opts opts = {.traces = {agents, agents}, .shares = {1, 2}, .count = 2, .seed = 7};
	uint32_t next[2] = {0, 0}, *places[2];
	(void)state;
	assert_int_equal(fc_trace_mix(&opts, &mixed, NULL), FC_OK);
	assert_int_equal(mixed->source_count, 2);
	for (int i = 0; i < 2; i++)
		places[i] = calloc(agents->request_count, sizeof(*places[i]));
	for (uint32_t i = 0; i < mixed->request_count; i++) {
		const struct fc_trace_request *made = &mixed->requests[i];
		uint32_t source = made->source, from = next[source]++;
		places[source][from] = i;
		uint64_t counts[2], *ids = list_of(mixed, i, &counts[0]), *own = list_of(agents, from, &counts[1]);
		assert_int_equal(counts[0], counts[1]);
		for (uint64_t k = 0; k < counts[0]; k++)
			assert_int_equal(ids[k], own[k] + source * agents->id_bound);
		assert_int_equal(made->output_tokens, agents->requests[from].output_tokens);
		uint32_t previous = agents->requests[from].previous;
		assert_int_equal(made->previous, previous == FC_TRACE_NONE ? FC_TRACE_NONE : places[source][previous]);
		const char *name = mixed->sessions[made->session].name;
		assert_int_equal(name[0], source == 0 ? '1' : '2');
		assert_string_equal(name + 2, agents->sessions[agents->requests[from].session].name);
		free(ids);
		free(own);
	}
	/* The second ends first, after about twice as many of it. */
	assert_int_equal(next[1], agents->request_count);
	assert_true(next[0] > agents->request_count / 4 && next[0] < agents->request_count * 3 / 4);
	for (int i = 0; i < 2; i++)
		free(places[i]);
	fc_trace_free(mixed);
	fc_trace_free(agents);
}

static void larger_blocks_are_cut(void **state)
{
	struct fc_trace *agents = make_agents(2), *chats = make_chats(), *mixed;
	struct fc_mix_opts opts = {.traces = {agents, chats}, .shares = {1, 1}, .count = 2, .seed = 3};
	uint32_t found[CHATS], count = 0;
	(void)state;
	assert_int_equal(agents->block_tokens, 64);
	assert_int_equal(fc_trace_mix(&opts, &mixed, NULL), FC_OK);
	assert_int_equal(mixed->block_tokens, 64);
	for (uint32_t i = 0; i < mixed->request_count; i++)
		if (mixed->requests[i].source == 1)
			found[count++] = i;
	assert_true(count >= 4);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(fc_trace_id_count(&mixed->requests[found[i]]), 17);
		assert_int_equal(mixed->requests[found[i]].session, FC_TRACE_NONE);
	}
	assert_int_equal(common(mixed, found[0], found[1]), 16); /* two whole blocks of 512 */
	assert_int_equal(common(mixed, found[1], found[2]), 8);
	assert_int_equal(common(mixed, found[0], 0) == 0 || found[0] == 0, true);
	uint64_t referenced = 0;
	for (uint32_t i = 0; i < mixed->request_count; i++)
		referenced += fc_trace_id_count(&mixed->requests[i]);
	assert_int_equal(mixed->reference_count, referenced);
	fc_trace_free(mixed);
	fc_trace_free(chats);
	fc_trace_free(agents);
}

static void what_cannot_be_mixed_is_said(void **state)
{
	struct fc_trace *agents = make_agents(3), *chats = make_chats(), *mixed;
	struct fc_error error = {0};
	struct fc_mix_opts opts = {.traces = {agents, chats}, .shares = {1, 0}, .count = 2};
	(void)state;
	assert_int_equal(fc_trace_mix(&opts, &mixed, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "share of trace 2 is 0"));
	opts.shares[1] = 1;
	chats->block_tokens = 100;
	assert_int_equal(fc_trace_mix(&opts, &mixed, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "100 tokens in trace 2"));
	opts.count = 0;
	assert_int_equal(fc_trace_mix(&opts, &mixed, &error), FC_EINVAL);
	fc_trace_free(chats);
	fc_trace_free(agents);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_trace_keeps_its_order_and_its_lists),
		cmocka_unit_test(larger_blocks_are_cut),
		cmocka_unit_test(what_cannot_be_mixed_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

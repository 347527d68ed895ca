/* The modelled engine against a scripted world: when requests arrive, which is computed first, what is saved with which
 * signals, and what is counted. Time stands still until the driver waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "lib/world.h"
#include "replay/driver.h"
#include "replay/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS_MAX = 8, EVENTS_MAX = 32 };

#define SECOND_NS 1000000000ull

/* A store that holds what was saved. Loads are ready at once and in place when taken, saves visible at once. */
struct script {
	struct fc_backend backend;
	uint64_t now_ns;
	struct fc_replay_event events[EVENTS_MAX];
	uint32_t event_first, event_count;
	struct fc_replay_turn *ready[TURNS_MAX];
	uint32_t ready_count;
	struct fc_replay_turn saves[TURNS_MAX]; /* as they were asked for */
	uint64_t prefill_at_ns[TURNS_MAX];
	uint32_t save_count, active, active_max, room;
	uint64_t delivered[TURNS_MAX]; /* by order of loads */
	uint32_t load_count;
	int load_code, save_code;
	uint64_t wrong_slices;
	uint64_t losses;
	uint32_t interrupt_after; /* saves; 0: never */
};

static struct script *script_of(struct fc_backend *backend)
{
	return fc_container_of(backend, struct script, backend);
}

static void add_event(struct script *script, enum fc_event_kind kind, struct fc_replay_turn *turn)
{
	assert_in_range(script->event_count, 0, EVENTS_MAX - 1);
	script->events[script->event_count++] = (struct fc_replay_event){kind, turn};
}

static uint64_t script_now_ns(struct fc_backend *backend)
{
	return script_of(backend)->now_ns;
}

static void script_wait(struct fc_backend *backend, uint64_t until_ns)
{
	assert_int_not_equal(until_ns, UINT64_MAX); /* nothing would ever happen */
	script_of(backend)->now_ns = fc_max_u64(script_of(backend)->now_ns, until_ns);
}

static bool script_is_interrupted(struct fc_backend *backend)
{
	const struct script *script = script_of(backend);
	return script->interrupt_after > 0 && script->save_count >= script->interrupt_after;
}

static bool script_next_event(struct fc_backend *backend, struct fc_replay_event *event)
{
	struct script *script = script_of(backend);
	if (script->event_first == script->event_count) {
		script->event_first = script->event_count = 0;
		return false;
	}
	*event = script->events[script->event_first++];
	return true;
}

static int script_begin(struct fc_backend *backend, struct fc_replay_turn *turn)
{
	struct script *script = script_of(backend);
	if (script->active == script->room)
		return FC_EAGAIN;
	script->active++;
	script->active_max = script->active > script->active_max ? script->active : script->active_max;
	turn->place = script;
	return FC_OK;
}

static int script_load(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_error *error)
{
	struct script *script = script_of(backend);
	(void)error;
	if (script->load_code != FC_OK) {
		add_event(script, FC_EVENT_LOADED, turn);
		return FC_OK;
	}
	script->ready[script->ready_count++] = turn;
	add_event(script, FC_EVENT_READY, turn);
	return FC_OK;
}

/* By arrival, like the store. */
static int script_take(struct fc_backend *backend, struct fc_replay_turn **turn)
{
	struct script *script = script_of(backend);
	uint32_t first = 0;
	if (script->ready_count == 0)
		return FC_EAGAIN;
	for (uint32_t i = 1; i < script->ready_count; i++)
		if (script->ready[i]->arrival_ns < script->ready[first]->arrival_ns)
			first = i;
	*turn = script->ready[first];
	script->ready[first] = script->ready[--script->ready_count];
	add_event(script, FC_EVENT_LOADED, *turn);
	return FC_OK;
}

static void script_loaded(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_load_result *result)
{
	struct script *script = script_of(backend);
	(void)turn;
	*result = (struct fc_load_result){.code = script->load_code};
	result->blocks = result->matched_blocks = script->delivered[script->load_count++];
	result->bytes[FC_SSD] = result->blocks * 10;
}

static uint64_t script_keep(struct fc_backend *backend, struct fc_replay_turn *turn, uint64_t blocks,
			    struct fc_error *error)
{
	struct script *script = script_of(backend);
	assert_true(blocks <= turn->input_blocks);
	if (script->wrong_slices > 0)
		fc_error_set(error, FC_ECORRUPT, "slice 5");
	return script->wrong_slices;
}

static int script_save(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_error *error)
{
	struct script *script = script_of(backend);
	(void)error;
	script->prefill_at_ns[script->save_count] = script->now_ns;
	script->saves[script->save_count++] = *turn;
	add_event(script, FC_EVENT_SAVED, turn);
	return FC_OK;
}

static void script_saved(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_save_result *result)
{
	(void)turn;
	*result = (struct fc_save_result){.code = script_of(backend)->save_code, .bytes_new = 100, .blocks_new = 1};
}

static void script_end(struct fc_backend *backend, struct fc_replay_turn *turn)
{
	script_of(backend)->active--;
	turn->place = NULL;
}

static int script_stats(struct fc_backend *backend, struct fc_stats *stats)
{
	*stats = (struct fc_stats){.media[FC_SSD].sessions_reclaimed = script_of(backend)->losses};
	return FC_OK;
}

static int script_sync(struct fc_backend *backend, struct fc_error *error)
{
	(void)backend;
	(void)error;
	return FC_OK;
}

static const struct fc_backend_ops script_ops = {
	.now_ns = script_now_ns,
	.wait = script_wait,
	.is_interrupted = script_is_interrupted,
	.next_event = script_next_event,
	.begin = script_begin,
	.load = script_load,
	.take = script_take,
	.loaded = script_loaded,
	.keep = script_keep,
	.save = script_save,
	.saved = script_saved,
	.end = script_end,
	.stats = script_stats,
	.sync = script_sync,
};

/* Two sessions of two requests that share their first two blocks, of 4 tokens; in the trace's order
 *     0  session 0   A B C      12 tokens, reply of 8: the next list shows E F as its blocks
 *     1  session 1   A B X      12 tokens
 *     2  session 0   A B C E F  20 tokens
 *     3  session 1   A B E      12 tokens, a changed history */
static struct fc_trace_request requests[4];
static struct fc_trace_session sessions[2] = {
	{.name = "zero", .requests_start = 0, .request_count = 2},
	{.name = "one", .requests_start = 2, .request_count = 2},
};
static uint32_t session_requests[4] = {0, 2, 1, 3};
static uint64_t suffix_ids[9] = {'A', 'B', 'C', 'A', 'B', 'X', 'E', 'F', 'E'};

static struct fc_trace make_trace(void)
{
	const uint32_t none = FC_TRACE_NONE;
	requests[0] = (struct fc_trace_request){.input_tokens = 12,
						.output_tokens = 8,
						.suffix_count = 3,
						.previous = none,
						.next = 2,
						.shared_tokens = 9};
	requests[1] = (struct fc_trace_request){.input_tokens = 12,
						.suffix_start = 3,
						.suffix_count = 3,
						.session = 1,
						.line = 1,
						.previous = none,
						.next = 3,
						.shared_tokens = 9};
	requests[2] = (struct fc_trace_request){.input_tokens = 20,
						.suffix_start = 6,
						.suffix_count = 2,
						.prefix_count = 3,
						.turn = 1,
						.previous = 0,
						.next = none};
	requests[3] = (struct fc_trace_request){.input_tokens = 12,
						.suffix_start = 8,
						.suffix_count = 1,
						.prefix_count = 2,
						.session = 1,
						.line = 1,
						.turn = 1,
						.previous = 1,
						.next = none};
	return (struct fc_trace){.block_tokens = 4,
				 .requests = requests,
				 .request_count = 4,
				 .sessions = sessions,
				 .session_count = 2,
				 .session_requests = session_requests,
				 .line_count = 2,
				 .suffix_ids = suffix_ids,
				 .suffix_id_count = 9};
}

struct run {
	struct script script;
	struct fc_trace trace;
	struct fc_geometry geometry;
	struct fc_driver_opts opts;
	struct fc_replay_result *result;
};

static struct run *make_run(void)
{
	struct run *run = calloc(1, sizeof(*run));
	run->script = (struct script){.backend.ops = &script_ops, .now_ns = SECOND_NS, .room = TURNS_MAX};
	run->trace = make_trace();
	run->geometry = geometry_plain(1);
	run->opts = (struct fc_driver_opts){.trace = &run->trace,
					    .geometry = &run->geometry,
					    .model = "test",
					    .pace.rate_per_s = INFINITY,
					    .prefill_per_s = 4,
					    .is_storing_replies = true,
					    .active_max = TURNS_MAX,
					    .seed = 1};
	assert_int_equal(fc_replay_result_new(&run->result, 4), FC_OK);
	return run;
}

static void drive(struct run *run)
{
	struct fc_error error;
	assert_int_equal(fc_driver_run(&run->opts, &run->script.backend, run->result, &error), FC_OK);
	assert_int_equal(run->script.active, 0);
}

static void free_run(struct run *run)
{
	fc_replay_result_free(run->result);
	free(run);
}

static void one_prefill_at_a_time_at_the_engine_s_rate(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->script.delivered[2] = 3; /* 20 tokens, 12 of them delivered */
	run->script.delivered[3] = 3; /* all 12 delivered: the last token is computed still */
	drive(run);
	/* 4 tokens a second: 12, 12, 8 and 1 tokens */
	assert_int_equal(run->script.prefill_at_ns[0], 4 * SECOND_NS);
	assert_int_equal(run->script.prefill_at_ns[1], 7 * SECOND_NS);
	assert_int_equal(run->script.prefill_at_ns[2], 9 * SECOND_NS);
	assert_int_equal(run->script.prefill_at_ns[3], 9 * SECOND_NS + SECOND_NS / 4);
	assert_int_equal(run->result->ttft.count, 4);
	assert_int_equal(run->result->ttft.max, 6 * SECOND_NS); /* the second one waited for the first */
	free_run(run);
}

static void a_session_s_requests_follow_one_another(void **state)
{
	(void)state;
	struct run *run = make_run();
	drive(run);
	assert_int_equal(run->script.active_max, 2); /* of four requests, only two could be under way */
	free_run(run);
}

static void active_requests_and_room_are_limits(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->opts.active_max = 1;
	drive(run);
	assert_int_equal(run->script.active_max, 1);
	assert_int_equal(run->result->requests, 4);
	free_run(run);
	run = make_run();
	run->script.room = 1;
	drive(run);
	assert_int_equal(run->script.active_max, 1);
	assert_int_equal(run->result->requests, 4);
	assert_true(run->result->ttft_parts[FC_TTFT_QUEUE].count == 4);
	free_run(run);
}

static void with_a_speed_requests_come_when_the_trace_says(void **state)
{
	(void)state;
	struct run *run = make_run();
	for (uint32_t i = 0; i < 4; i++)
		run->trace.requests[i].arrival_ns = i * 1000 * SECOND_NS;
	run->opts.pace.speed = 2;
	run->opts.prefill_per_s = INFINITY;
	drive(run);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(run->script.prefill_at_ns[i], SECOND_NS + i * 500 * SECOND_NS);
	assert_int_equal(run->result->ttft.max, 0);
	free_run(run);
}

/* The same two requests, at once and an hour apart. */
static void blocks_of_requests_under_way_are_told_from_those_that_ended(void **state)
{
	(void)state;
	static uint64_t ids[] = {1, 2, 3, 1, 2, 3};
	for (int is_apart = 0; is_apart < 2; is_apart++) {
		struct fc_trace_request pair[2];
		for (uint32_t i = 0; i < 2; i++)
			pair[i] = (struct fc_trace_request){.arrival_ns = i * 3600 * SECOND_NS,
							    .input_tokens = 12,
							    .suffix_start = 3 * i,
							    .suffix_count = 3,
							    .session = FC_TRACE_NONE,
							    .line = FC_TRACE_NONE,
							    .previous = FC_TRACE_NONE,
							    .next = FC_TRACE_NONE};
		struct run *run = make_run();
		run->trace = (struct fc_trace){.format = FC_TRACE_OF_REQUESTS,
					       .block_tokens = 4,
					       .requests = pair,
					       .request_count = 2,
					       .suffix_ids = ids,
					       .suffix_id_count = 6};
		run->opts.pace.speed = is_apart ? 1 : 0;
		drive(run);
		assert_int_equal(run->result->blocks, 6);
		assert_int_equal(run->result->prefix_blocks, is_apart ? 3 : 0);
		assert_int_equal(run->result->possible_blocks, is_apart ? 3 : 0);
		assert_int_equal(run->result->under_way_blocks, is_apart ? 0 : 3);
		free_run(run);
	}
}

static void with_a_rate_time_passes_between_arrivals(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->opts.pace.rate_per_s = 0.001;
	run->opts.prefill_per_s = INFINITY;
	drive(run);
	assert_true(run->script.now_ns > 300 * SECOND_NS); /* four gaps of 1,000 s on average */
	for (int i = 1; i < 4; i++)
		assert_true(run->script.prefill_at_ns[i] > run->script.prefill_at_ns[i - 1]);
	assert_int_equal(run->result->ttft.max, 0); /* nobody waited for anybody */
	free_run(run);
}

static void replies_are_saved_as_far_as_the_next_request_shows_them(void **state)
{
	(void)state;
	struct run *run = make_run();
	drive(run);
	assert_int_equal(run->script.saves[0].stored_blocks, 5); /* 12 + 8 tokens */
	assert_int_equal(run->script.saves[1].stored_blocks, 3);
	free_run(run);
	run = make_run();
	run->opts.is_storing_replies = false;
	drive(run);
	assert_int_equal(run->script.saves[0].stored_blocks, 3);
	free_run(run);
}

static void saves_carry_the_signals_of_their_turn(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->script.delivered[2] = 5;
	run->script.delivered[3] = 2;
	drive(run);
	const struct fc_replay_turn *saves = run->script.saves;
	assert_int_equal(saves[0].turn, 0);
	assert_int_equal(saves[2].turn, 1);
	assert_int_equal(saves[2].previous_reply_tokens, 8);
	assert_int_equal(saves[0].previous_reply_tokens, 0);
	/* Both sessions had come when the first was saved: A and B are shared. 9 tokens of prompt are two blocks. */
	assert_int_equal(saves[0].shared_blocks, 2);
	assert_int_equal(saves[0].resume_point_count, 1);
	assert_int_equal(saves[0].resume_points[0], 2);
	assert_int_equal(saves[2].resume_point_count,
			 0);                            /* five blocks were delivered: what lies before is not known */
	assert_int_equal(saves[3].resume_points[0], 2); /* delivered up to there: still on the device */
	struct fc_session_id zero = fc_session_id_from_text("zero");
	assert_memory_equal(&saves[2].session, &zero, sizeof(zero));
	free_run(run);
}

static void requests_of_a_session_have_the_keys_of_their_common_blocks(void **state)
{
	(void)state;
	struct run *run = make_run();
	struct fc_key keys[2][5];
	struct fc_oracle *oracle;
	struct fc_paths paths;
	struct fc_turn_path *path;
	assert_int_equal(fc_oracle_new(&oracle, &run->geometry), FC_OK);
	assert_int_equal(fc_paths_init(&paths, &run->trace, oracle, "test", true), FC_OK);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(fc_paths_begin(&paths, i * 2, &path), FC_OK);
		assert_int_equal(path->count, 5);
		assert_int_equal(path->input_count, i == 0 ? 3 : 5);
		memcpy(keys[i], path->keys, sizeof(keys[i]));
		fc_paths_end(&paths, path);
	}
	assert_memory_equal(keys[0], keys[1], sizeof(keys[0])); /* the reply's blocks too */
	assert_int_equal(fc_paths_begin(&paths, 1, &path), FC_OK);
	assert_memory_equal(keys[0], path->keys, 2 * sizeof(struct fc_key));
	assert_memory_not_equal(&keys[0][2], &path->keys[2], sizeof(struct fc_key));
	fc_paths_end(&paths, path);
	assert_int_equal(fc_paths_begin(&paths, 3, &path), FC_OK);
	assert_memory_not_equal(&keys[0][3], &path->keys[2], sizeof(struct fc_key)); /* E behind B, not behind C */
	fc_paths_end(&paths, path);
	fc_paths_deinit(&paths);
	fc_oracle_free(oracle);
	free_run(run);
}

static void a_table_of_paths_gives_the_same_keys(void **state)
{
	(void)state;
	struct run *run = make_run();
	struct fc_path_table table;
	struct fc_oracle *oracles[2];
	struct fc_paths paths[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(fc_oracle_new(&oracles[i], &run->geometry), FC_OK);
	assert_int_equal(fc_path_table_init(&table, &run->trace, "test"), FC_OK);
	assert_int_equal(fc_paths_init(&paths[0], &run->trace, oracles[0], "test", true), FC_OK);
	assert_int_equal(fc_paths_init_from(&paths[1], &table, oracles[1], true), FC_OK);
	assert_int_equal(table.number_count, 7); /* A B C, X, E F, and E behind B */
	for (uint32_t i = 0; i < 4; i++) {
		struct fc_turn_path *both[2];
		for (int k = 0; k < 2; k++)
			assert_int_equal(fc_paths_begin(&paths[k], i, &both[k]), FC_OK);
		assert_int_equal(both[0]->count, both[1]->count);
		assert_int_equal(both[0]->input_count, both[1]->input_count);
		assert_memory_equal(both[0]->keys, both[1]->keys, both[0]->count * sizeof(struct fc_key));
		for (uint64_t block = 0; block < both[1]->count; block++)
			assert_true(both[1]->numbers[block] < table.number_count);
		for (int k = 0; k < 2; k++)
			fc_paths_end(&paths[k], both[k]);
	}
	for (int k = 0; k < 2; k++) {
		fc_paths_deinit(&paths[k]);
		fc_oracle_free(oracles[k]);
	}
	fc_path_table_deinit(&table);
	free_run(run);
}

static void what_was_possible_and_delivered_is_counted(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->opts.active_max = 1;     /* 0, 1, 2, 3: each after the one before it was saved */
	run->script.delivered[1] = 2; /* A B */
	run->script.delivered[2] = 4; /* five were possible */
	run->script.delivered[3] = 2;
	drive(run);
	assert_int_equal(run->result->blocks, 3 + 3 + 5 + 3);
	assert_int_equal(run->result->prefix_blocks, 0 + 2 + 5 + 2);
	assert_int_equal(run->result->possible_blocks, 0 + 2 + 5 + 2);
	assert_int_equal(run->result->delivered_blocks, 0 + 2 + 4 + 2);
	assert_int_equal(run->result->short_loads, 1);
	assert_int_equal(run->result->unexplained_blocks, 1);
	assert_int_equal(run->result->media_bytes[FC_SSD], 80);
	assert_int_equal(run->result->bytes_new, 400);
	free_run(run);
}

static void a_refused_save_is_no_error_and_its_blocks_are_not_possible(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->opts.active_max = 1;
	run->script.save_code = FC_EFULL;
	drive(run);
	assert_int_equal(run->result->saves_refused, 4);
	assert_int_equal(run->result->errors, 0);
	assert_int_equal(run->result->possible_blocks, 0);
	assert_int_equal(run->result->prefix_blocks, 9); /* computed all the same */
	free_run(run);
}

static void failures_are_counted_and_the_replay_goes_on(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->script.load_code = FC_EIO;
	run->script.save_code = FC_EIO;
	run->script.wrong_slices = 3;
	drive(run);
	assert_int_equal(run->result->requests, 4);
	assert_int_equal(run->result->errors, 8);
	assert_int_equal(run->result->mismatches, 12);
	assert_non_null(strstr(run->result->first_mismatch.text, "request 0: slice 5"));
	assert_non_null(strstr(run->result->first_error.text, "load"));
	free_run(run);
}

static void an_interrupt_ends_it_between_two_steps(void **state)
{
	(void)state;
	struct run *run = make_run();
	run->script.interrupt_after = 2;
	drive(run);
	assert_true(run->result->is_interrupted);
	assert_true(run->result->requests < 4);
	free_run(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_prefill_at_a_time_at_the_engine_s_rate),
		cmocka_unit_test(a_session_s_requests_follow_one_another),
		cmocka_unit_test(active_requests_and_room_are_limits),
		cmocka_unit_test(with_a_rate_time_passes_between_arrivals),
		cmocka_unit_test(with_a_speed_requests_come_when_the_trace_says),
		cmocka_unit_test(blocks_of_requests_under_way_are_told_from_those_that_ended),
		cmocka_unit_test(replies_are_saved_as_far_as_the_next_request_shows_them),
		cmocka_unit_test(saves_carry_the_signals_of_their_turn),
		cmocka_unit_test(a_table_of_paths_gives_the_same_keys),
		cmocka_unit_test(requests_of_a_session_have_the_keys_of_their_common_blocks),
		cmocka_unit_test(what_was_possible_and_delivered_is_counted),
		cmocka_unit_test(a_refused_save_is_no_error_and_its_blocks_are_not_possible),
		cmocka_unit_test(failures_are_counted_and_the_replay_goes_on),
		cmocka_unit_test(an_interrupt_ends_it_between_two_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

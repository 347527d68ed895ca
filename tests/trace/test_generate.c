/* Generated traces: that a seed decides them, that they have the recorded shape, and that every way out reads back the
 * same. */
#define _GNU_SOURCE
#include "trace_files.h"

#include "trace/generate.h"

static struct fc_trace *generate(const struct fc_generate_opts *opts)
{
	struct fc_trace_opts trace_opts;
	struct fc_trace *trace;
	struct fc_error error;
	fc_trace_opts_init(&trace_opts);
	assert_int_equal(fc_trace_generate(opts, &trace_opts, &trace, &error), 0);
	return trace;
}

static struct fc_generate_opts small(uint64_t seed)
{
	struct fc_generate_opts opts;
	fc_generate_opts_init(&opts);
	opts.seed = seed;
	opts.session_count = 6;
	opts.turn_scale = 0.3;
	opts.token_scale = 0.1;
	opts.subagent_share = 0.1;
	return opts;
}

static void a_seed_decides_the_whole_trace(void **state)
{
	(void)state;
	struct fc_generate_opts opts = small(3);
	struct fc_trace *one = generate(&opts), *again = generate(&opts);
	opts.seed = 4;
	struct fc_trace *other = generate(&opts);
	assert_traces_equal(one, again);
	assert_int_not_equal(one->reference_count, other->reference_count);
	assert_string_equal(one->sessions[5].name, "generated_3_000005");
	fc_trace_free(one);
	fc_trace_free(again);
	fc_trace_free(other);
}

static void a_session_does_not_depend_on_how_many_there_are(void **state)
{
	(void)state;
	struct fc_generate_opts opts = small(5);
	struct fc_trace_opts trace_opts;
	struct fc_trace *first_two;
	fc_trace_opts_init(&trace_opts);
	trace_opts.limit = 2;
	assert_int_equal(fc_trace_generate(&opts, &trace_opts, &first_two, NULL), 0);
	opts.session_count = 2;
	struct fc_trace *only_two = generate(&opts);
	assert_int_equal(only_two->session_count, 2);
	assert_traces_equal(first_two, only_two);
	fc_trace_free(first_two);
	fc_trace_free(only_two);
}

static void every_way_out_reads_back_as_the_same_trace(void **state)
{
	(void)state;
	static const char *const names[] = {"folder", "x.tar", "x.tar.gz", "x.tar.zst", "x.jsonl"};
	struct fc_generate_opts opts = small(1);
	struct fc_trace *wanted = generate(&opts);
	char *folder = folder_new();
	assert_true(wanted->line_count > wanted->session_count);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat status;
		assert_int_equal(fc_generate_write(&opts, in_folder(folder, names[i]), false, NULL), 0);
		assert_int_equal(stat(in_folder(folder, names[i]), &status), 0);
		assert_int_equal(status.st_mode & 0777, S_ISDIR(status.st_mode) ? 0700 : 0600);
		struct fc_trace *trace = load(in_folder(folder, names[i]), NULL);
		assert_traces_equal(wanted, trace);
		fc_trace_free(trace);
	}
	folder_free(folder);
	fc_trace_free(wanted);
}

static void standard_output_has_one_session_a_line(void **state)
{
	(void)state;
	struct fc_generate_opts opts = small(1);
	char *folder = folder_new();
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	int output = open(in_folder(folder, "out"), O_WRONLY | O_CREAT, 0600);
	assert_true(saved >= 0 && output >= 0 && dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
	int result = fc_generate_write(&opts, "-", false, NULL);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(output);
	assert_int_equal(result, 0);
	struct fc_trace *wanted = generate(&opts);
	struct fc_trace *trace = load_from_input(in_folder(folder, "out"));
	assert_traces_equal(wanted, trace);
	fc_trace_free(trace);
	fc_trace_free(wanted);
	folder_free(folder);
}

static void an_archive_is_the_same_to_the_byte(void **state)
{
	(void)state;
	static const char *const names[] = {"x.tar", "x.tar.gz", "x.tar.zst"};
	struct fc_generate_opts opts = small(1);
	char *folder = folder_new();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t first_bytes, second_bytes;
		assert_int_equal(fc_generate_write(&opts, in_folder(folder, names[i]), false, NULL), 0);
		char *first = read_bytes(in_folder(folder, names[i]), &first_bytes);
		assert_int_equal(fc_generate_write(&opts, in_folder(folder, names[i]), true, NULL), 0);
		char *second = read_bytes(in_folder(folder, names[i]), &second_bytes);
		assert_int_equal(first_bytes, second_bytes);
		assert_memory_equal(first, second, first_bytes);
		if (i == 1) /* no time in the gzip header: bytes 4 to 7 */
			assert_memory_equal(first + 4, "\0\0\0", 4);
		free(first);
		free(second);
	}
	folder_free(folder);
}

static void a_file_that_is_there_is_replaced_only_when_told_to(void **state)
{
	(void)state;
	static const char *const names[] = {"x.tar", "x.tar.gz", "x.tar.zst", "x.jsonl"};
	struct fc_generate_opts opts = small(1);
	struct fc_error error;
	char *folder = folder_new();
	for (size_t i = 0; i < fc_array_len(names); i++) {
		size_t bytes;
		write_text(in_folder(folder, names[i]), "mine");
		assert_int_equal(fc_generate_write(&opts, in_folder(folder, names[i]), false, &error), FC_EINVAL);
		assert_non_null(strstr(error.text, ": is there already; allowed: another name, or --force"));
		char *kept = read_bytes(in_folder(folder, names[i]), &bytes);
		assert_int_equal(bytes, 4);
		assert_memory_equal(kept, "mine", 4);
		free(kept);
		assert_int_equal(fc_generate_write(&opts, in_folder(folder, names[i]), true, &error), 0);
		fc_trace_free(load(in_folder(folder, names[i]), NULL));
	}
	folder_free(folder);
}

static void a_name_that_asks_for_what_is_not_written_is_refused(void **state)
{
	(void)state;
	static const char *const names[] = {"a.json", "a.jsonl.gz", "a.tgz", "a.zst", "a.csv", "run.1", "no/a.b"};
	struct fc_generate_opts opts = small(1);
	struct fc_error error;
	char *folder = folder_new();
	for (size_t i = 0; i < fc_array_len(names); i++) {
		struct stat status;
		assert_int_equal(fc_generate_write(&opts, in_folder(folder, names[i]), true, &error), FC_EINVAL);
		assert_non_null(strstr(error.text, ": an extension that is not written; allowed: .tar, "));
		assert_int_equal(stat(in_folder(folder, names[i]), &status), -1);
	}
	assert_int_equal(fc_generate_write(&opts, in_folder(folder, "run.1/"), false, &error), 0);
	folder_free(folder);
}

static void a_folder_that_holds_files_is_refused(void **state)
{
	(void)state;
	struct fc_generate_opts opts = small(1);
	struct fc_error error;
	char *folder = folder_new();
	assert_int_equal(fc_generate_write(&opts, folder, false, &error), 0);
	assert_int_equal(fc_generate_write(&opts, folder, false, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "holds 6 files; allowed: a new or empty folder"));
	assert_int_equal(fc_generate_write(&opts, in_folder(folder, "no/x.tar"), false, &error), FC_ESYSTEM);
	assert_non_null(strstr(error.text, "no/x.tar: No such file or directory"));
	folder_free(folder);
}

static void options_out_of_range_are_named(void **state)
{
	(void)state;
	struct fc_trace_opts trace_opts;
	struct fc_trace *trace;
	struct fc_error error;
	fc_trace_opts_init(&trace_opts);
	struct fc_generate_opts opts = small(1);
	opts.session_count = 0;
	assert_int_equal(fc_trace_generate(&opts, &trace_opts, &trace, &error), FC_EINVAL);
	assert_string_equal(error.text, "sessions: 0; allowed: 1 to 1e+06");
	opts = small(1);
	opts.token_scale = 0.0 / 0.0;
	assert_int_equal(fc_trace_generate(&opts, &trace_opts, &trace, &error), FC_EINVAL);
	opts = small(1);
	opts.branch_share = 1.5;
	assert_int_equal(fc_generate_write(&opts, "-", false, &error), FC_EINVAL);
	assert_string_equal(error.text, "share of branches: 1.5; allowed: 0 to 1");
}

/* ---- the shape ----------------------------------------------------------------------------------------------------
 */

static int compare_numbers(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return first < second ? -1 : first > second;
}

/* Numbers of a kind, as the trace has them. */
struct sample {
	uint64_t *values;
	uint64_t count;
};

static struct sample sample_new(uint64_t capacity)
{
	struct sample sample = {.values = calloc(capacity + 1, sizeof(uint64_t))};
	assert_non_null(sample.values);
	return sample;
}

static uint64_t mean(const struct sample *sample)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < sample->count; i++)
		sum += sample->values[i];
	return sum / sample->count;
}

static uint64_t quantile(struct sample *sample, uint64_t percent)
{
	qsort(sample->values, sample->count, sizeof(uint64_t), compare_numbers);
	return sample->values[sample->count * percent / 100];
}

/* Within `tolerance` percent of what was measured on recorded sessions. */
static void assert_near(const char *what, uint64_t value, uint64_t wanted, uint64_t tolerance)
{
	if (value * 100 < wanted * (100 - tolerance) || value * 100 > wanted * (100 + tolerance))
		fail_msg("%s: %llu, wanted %llu +- %llu %%", what, (unsigned long long)value,
			 (unsigned long long)wanted, (unsigned long long)tolerance);
}

struct shape {
	struct sample input, output, pause_s, turns, size_tokens;
	uint64_t new_tokens, branch_count, main_count;
};

static void measure(const struct fc_trace *trace, struct shape *shape)
{
	bool *seen = calloc(trace->id_bound, sizeof(*seen));
	for (uint32_t i = 0; i < trace->request_count; i++) {
		const struct fc_trace_request *request = &trace->requests[i];
		if (request->kind != FC_TRACE_KIND_MAIN)
			continue;
		shape->main_count++;
		shape->input.values[shape->input.count++] = request->input_tokens;
		shape->output.values[shape->output.count++] = request->output_tokens;
		uint64_t unique = 0;
		for (uint32_t j = 0; j < request->suffix_count; j++) {
			bool *is_seen = &seen[trace->suffix_ids[request->suffix_start + j]];
			unique += !*is_seen;
			*is_seen = true;
		}
		shape->new_tokens += unique * trace->block_tokens;
		shape->size_tokens.values[request->session] += unique * trace->block_tokens;
		shape->turns.values[request->session]++;
		if (request->previous == FC_TRACE_NONE)
			continue;
		const struct fc_trace_request *previous = &trace->requests[request->previous];
		shape->pause_s.values[shape->pause_s.count++] =
			(request->arrival_ns - previous->arrival_ns) / 1000000000;
		shape->branch_count += request->prefix_count < fc_trace_id_count(previous);
	}
	free(seen);
}

static void check_shape(struct shape *shape)
{
	assert_near("input tokens, mean", mean(&shape->input), 123450, 20);
	assert_near("input tokens, p50", quantile(&shape->input, 50), 104644, 20);
	assert_near("input tokens, p90", quantile(&shape->input, 90), 235882, 20);
	assert_near("new input tokens per request, mean", shape->new_tokens / shape->main_count, 4500, 20);
	assert_near("output tokens, mean", mean(&shape->output), 439, 15);
	assert_near("output tokens, p50", quantile(&shape->output, 50), 216, 5);
	assert_near("output tokens, p90", quantile(&shape->output, 90), 899, 10);
	assert_near("requests per session, p50", quantile(&shape->turns, 50), 45, 20);
	assert_near("requests per session, p90", quantile(&shape->turns, 90), 156, 20);
	assert_near("pause in seconds, p50", quantile(&shape->pause_s, 50), 20, 10);
	assert_near("pause in seconds, p90", quantile(&shape->pause_s, 90), 129, 15);
	assert_near("session tokens, p50", quantile(&shape->size_tokens, 50), 210000, 25);
	assert_near("session tokens, p90", quantile(&shape->size_tokens, 90), 751000, 25);
	assert_near("branches and compactions, per thousand", shape->branch_count * 1000 / shape->main_count, 75, 20);
}

/* Bounds are wide because sessions are few: the mean over 400 of them still depends on a handful. */
static void the_shape_is_that_of_recorded_sessions(void **state)
{
	(void)state;
	struct fc_generate_opts opts;
	fc_generate_opts_init(&opts);
	opts.session_count = 400;
	opts.seed = 2;
	struct fc_trace *trace = generate(&opts);
	struct shape shape = {.input = sample_new(trace->request_count),
			      .output = sample_new(trace->request_count),
			      .pause_s = sample_new(trace->request_count),
			      .turns = sample_new(trace->session_count),
			      .size_tokens = sample_new(trace->session_count)};
	shape.turns.count = shape.size_tokens.count = trace->session_count;
	measure(trace, &shape);
	check_shape(&shape);
	free(shape.input.values);
	free(shape.output.values);
	free(shape.pause_s.values);
	free(shape.turns.values);
	free(shape.size_tokens.values);
	fc_trace_free(trace);
}

static void prompts_are_shared_by_many_sessions_and_unevenly(void **state)
{
	(void)state;
	struct fc_generate_opts opts = small(9);
	opts.session_count = 400;
	opts.turn_scale = 0.01;
	opts.token_scale = 1; /* small sizes would fall together */
	opts.subagent_share = 0;
	struct fc_trace *trace = generate(&opts);
	uint32_t *sessions_of = calloc(trace->id_bound, sizeof(*sessions_of));
	uint32_t largest = 0, kinds = 0;
	for (uint32_t i = 0; i < trace->session_count; i++) {
		uint32_t first = trace->session_requests[trace->sessions[i].requests_start];
		kinds += sessions_of[trace->suffix_ids[trace->requests[first].suffix_start]]++ == 0;
	}
	for (uint64_t id = 0; id < trace->id_bound; id++)
		largest = sessions_of[id] > largest ? sessions_of[id] : largest;
	/* Recorded: 83 tool sizes in 710 sessions, the commonest in 82 of them. */
	assert_near("tool sets", kinds, 74, 15);
	assert_near("sessions of the commonest", largest, 400 * 82 / 710, 40);
	free(sessions_of);
	fc_trace_free(trace);
}

static void scales_act_on_what_they_name(void **state)
{
	(void)state;
	struct fc_generate_opts opts = small(2);
	opts.session_count = 60;
	opts.token_scale = 1;
	struct fc_trace *whole = generate(&opts);
	opts.token_scale = 0.1;
	struct fc_trace *tenth = generate(&opts);
	opts.time_scale = 0.5;
	struct fc_trace *faster = generate(&opts);
	uint64_t whole_tokens = 0, tenth_tokens = 0;
	for (uint32_t i = 0; i < whole->request_count; i++)
		whole_tokens += whole->requests[i].input_tokens;
	for (uint32_t i = 0; i < tenth->request_count; i++)
		tenth_tokens += tenth->requests[i].input_tokens;
	assert_near("requests", tenth->request_count, whole->request_count, 20);
	assert_near("tokens", tenth_tokens, whole_tokens / 10, 20);
	for (uint32_t i = 0; i < 60; i++)
		assert_true(faster->sessions[i].duration_ns <= tenth->sessions[i].duration_ns / 2 + 1000000000);
	fc_trace_free(whole);
	fc_trace_free(tenth);
	fc_trace_free(faster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_decides_the_whole_trace),
		cmocka_unit_test(a_session_does_not_depend_on_how_many_there_are),
		cmocka_unit_test(every_way_out_reads_back_as_the_same_trace),
		cmocka_unit_test(standard_output_has_one_session_a_line),
		cmocka_unit_test(an_archive_is_the_same_to_the_byte),
		cmocka_unit_test(a_file_that_is_there_is_replaced_only_when_told_to),
		cmocka_unit_test(a_name_that_asks_for_what_is_not_written_is_refused),
		cmocka_unit_test(a_folder_that_holds_files_is_refused),
		cmocka_unit_test(options_out_of_range_are_named),
		cmocka_unit_test(the_shape_is_that_of_recorded_sessions),
		cmocka_unit_test(prompts_are_shared_by_many_sessions_and_unevenly),
		cmocka_unit_test(scales_act_on_what_they_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

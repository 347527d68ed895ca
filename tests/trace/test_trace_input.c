/* Input as it comes: packed or not, in one file or many, with odd line ends, and wrong in every way that is refused. */
#define _GNU_SOURCE
#include "trace_files.h"

#define REQUEST(time, in, ids)                                                                                         \
	"{\"timestamp\":" #time ",\"input_length\":" #in ",\"output_length\":7,\"hash_ids\":[" ids "]}"
#define FIRST REQUEST(1000, 1024, "4,5")
#define SECOND REQUEST(2500, 1100, "4,9")
#define SESSION(name)                                                                                                  \
	"{\"id\":\"" name "\",\"block_size\":64,\"hash_id_scope\":\"local\",\"tool_tokens\":64,\"system_tokens\":0,"   \
	"\"requests\":[{\"t\":0,\"type\":\"s\",\"in\":130,\"out\":1,\"hash_ids\":[1,2]}]}"
#define INTEGER "an integer from 0 to 9223372036854775807"
#define ID "an integer from 0 to 18446744073709551615"

static char *folder;

static int new_folder(void **state)
{
	(void)state;
	folder = folder_new();
	return 0;
}

static int free_folder(void **state)
{
	(void)state;
	folder_free(folder);
	return 0;
}

/* Of more than Mooncake's own format, and of another. */
#define OF_SESSION(timestamp, ids, session)                                                                            \
	"{\"timestamp\":" #timestamp ",\"input_length\":1024,\"output_length\":7,\"hash_ids\":[" ids                   \
	"],\"session_id\":" session "}"
#define CHAT(chat, parent, time, ids)                                                                                  \
	"{\"chat_id\":" #chat ",\"parent_chat_id\":" #parent ",\"timestamp\":" #time                                   \
	",\"input_length\":32,\"output_length\":17,\"type\":\"text\",\"turn\":1,\"hash_ids\":[" ids "]}"

static struct fc_trace *load_bytes(const char *bytes, size_t byte_count)
{
	const char *path = in_folder(folder, "bytes");
	write_bytes(path, bytes, byte_count);
	return load(path, NULL);
}

static struct fc_trace *load_text(const char *text)
{
	return load_bytes(text, strlen(text));
}

static void mooncake_requests_keep_their_ids_and_know_no_session(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(FIRST "\n" SECOND "\n" REQUEST(2000, 3, "") "\n");
	uint64_t ids[2];
	assert_int_equal(trace->format, FC_TRACE_OF_REQUESTS);
	assert_int_equal(trace->block_tokens, 512);
	assert_int_equal(trace->request_count, 3);
	assert_int_equal(trace->session_count, 0);
	/* Sorted by time, from the first on. */
	assert_int_equal(trace->requests[0].arrival_ns, 0);
	assert_int_equal(trace->requests[1].arrival_ns, 1000000000);
	assert_int_equal(trace->requests[1].input_tokens, 3);
	assert_int_equal(trace->requests[2].arrival_ns, 1500000000);
	assert_int_equal(trace->requests[2].output_tokens, 7);
	assert_int_equal(trace->requests[2].session, FC_TRACE_NONE);
	assert_int_equal(trace->requests[2].line, FC_TRACE_NONE);
	fc_trace_request_ids(trace, 2, ids);
	assert_int_equal(ids[0], 4);
	assert_int_equal(ids[1], 9);
	assert_int_equal(fc_trace_stored_count(trace, 0, true), 2);
	struct fc_trace_lists *lists;
	const uint64_t *list;
	uint64_t count;
	assert_int_equal(fc_trace_lists_new(trace, &lists), 0);
	assert_int_equal(fc_trace_lists_get(lists, 0, &list, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[1], 5);
	fc_trace_lists_free(lists);
	fc_trace_free(trace);
}

static void the_largest_id_is_kept_whole(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(REQUEST(0, 2000, "18446744073709551615,9007199254740993,9007199254740992"));
	assert_int_equal(trace->suffix_ids[0], UINT64_MAX);
	assert_int_equal(trace->suffix_ids[1], 9007199254740993ull);
	assert_int_equal(trace->suffix_ids[2], 9007199254740992ull);
	fc_trace_free(trace);
}

static void an_id_may_stand_twice_in_a_list(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(REQUEST(0, 2000, "3,3,3"));
	assert_int_equal(fc_trace_id_count(&trace->requests[0]), 3);
	fc_trace_free(trace);
}

static void line_ends_marks_and_arrays_make_no_difference(void **state)
{
	(void)state;
	static const char *const forms[] = {
		FIRST "\n" SECOND,
		FIRST "\r\n" SECOND "\r\n",
		"\xef\xbb\xbf" FIRST "\n" SECOND "\n",
		"\n\n  \n" FIRST "\n\r\n\t\n" SECOND "\n\n",
		"[" FIRST "," SECOND "]",
		"\xef\xbb\xbf\r\n[\r\n" FIRST ",\r\n" SECOND "\r\n]\r\n",
		"[{\n\"timestamp\":\n1000, \"input_length\":1024,\"output_length\":7,\"hash_ids\":[4,\n5]\n},\n" SECOND
		"]\n",
	};
	struct fc_trace *wanted = load_text(FIRST "\n" SECOND "\n");
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct fc_trace *trace = load_text(forms[i]);
		assert_traces_equal(wanted, trace);
		fc_trace_free(trace);
	}
	fc_trace_free(wanted);
}

static void a_session_may_be_spread_over_lines(void **state)
{
	(void)state;
	struct fc_trace *wanted = load_text(SESSION("a") "\n");
	struct fc_trace *trace = load_text("{\n\"id\": \"a\", \"block_size\": 64,\n\"hash_id_scope\": \"local\","
					   "\"tool_tokens\": 64, \"system_tokens\": 0, \"requests\": [\n{\"t\": 0.0, "
					   "\"type\": \"s\",\n\"in\": 130, \"out\": 1, \"hash_ids\": [1,\n2]}\n]\n}\n");
	assert_traces_equal(wanted, trace);
	fc_trace_free(trace);
	trace = load_text("{\"id\":\"a\",\"block_size\":64,\"hash_id_scope\":\"local\",\"tool_tokens\":64,"
			  "\"system_tokens\":0,\"requests\":[\n{\"t\":0,\"type\":\"s\",\"in\":130,\"out\":1,"
			  "\"hash_ids\":[1,2]}]}");
	assert_traces_equal(wanted, trace);
	fc_trace_free(trace);
	fc_trace_free(wanted);
}

static void packed_files_and_standard_input_read_like_plain_ones(void **state)
{
	(void)state;
	static const char text[] = FIRST "\n" SECOND "\n";
	struct member member = {.bytes = text, .byte_count = strlen(text)};
	struct fc_trace *wanted = load_text(text);
	for (int packing = PLAIN; packing <= ZSTD; packing++) {
		const char *path = in_folder(folder, "packed");
		write_packed(path, (enum packing)packing, &member, 1);
		struct fc_trace *trace = load(path, NULL);
		assert_traces_equal(wanted, trace);
		fc_trace_free(trace);
		trace = load_from_input(path);
		assert_traces_equal(wanted, trace);
		fc_trace_free(trace);
	}
	fc_trace_free(wanted);
}

static void gzip_members_one_after_the_other_are_one_text(void **state)
{
	(void)state;
	static const char whole[] = FIRST "\n" SECOND "\n";
	struct member first = {.bytes = whole, .byte_count = 20};
	struct member second = {.bytes = whole + 20, .byte_count = strlen(whole) - 20};
	size_t first_bytes, second_bytes;
	write_packed(in_folder(folder, "1.gz"), GZIP, &first, 1);
	write_packed(in_folder(folder, "2.gz"), GZIP, &second, 1);
	char *bytes = read_bytes(in_folder(folder, "1.gz"), &first_bytes);
	char *more = read_bytes(in_folder(folder, "2.gz"), &second_bytes);
	bytes = realloc(bytes, first_bytes + second_bytes);
	memcpy(bytes + first_bytes, more, second_bytes);
	struct fc_trace *wanted = load_text(whole);
	struct fc_trace *trace = load_bytes(bytes, first_bytes + second_bytes);
	assert_traces_equal(wanted, trace);
	fc_trace_free(trace);
	fc_trace_free(wanted);
	free(bytes);
	free(more);
}

static void a_tar_reads_like_the_folder_that_it_packs(void **state)
{
	(void)state;
	static const struct member members[] = {
		{"traces/b.json", SESSION("b") "\n", sizeof(SESSION("b"))},
		{"traces/README", "not a trace", 11},
		{"traces/._b.json", "left behind", 11},
		{"traces/a.json", SESSION("a"), sizeof(SESSION("a")) - 1},
	};
	write_text(in_folder(folder, "a.json"), SESSION("a"));
	write_text(in_folder(folder, "README"), "not a trace");
	write_text(in_folder(folder, ".hidden.json"), "not a trace");
	assert_int_equal(mkdir(in_folder(folder, "deeper"), 0700), 0);
	write_text(in_folder(folder, "deeper/b.json"), SESSION("b") "\n");
	struct fc_trace *wanted = load(folder, NULL);
	assert_int_equal(wanted->session_count, 2);
	assert_int_equal(wanted->ignored_file_count, 2);
	char *packed = folder_new();
	for (int packing = PLAIN; packing <= ZSTD; packing++) {
		const char *path = in_folder(packed, "packed");
		write_packed(path, (enum packing)packing, members, 4);
		struct fc_trace *trace = load(path, NULL);
		assert_traces_equal(wanted, trace);
		assert_int_equal(trace->ignored_file_count, 2);
		fc_trace_free(trace);
		trace = load_from_input(path);
		assert_traces_equal(wanted, trace);
		fc_trace_free(trace);
	}
	folder_free(packed);
	fc_trace_free(wanted);
}

static void several_paths_make_one_trace(void **state)
{
	(void)state;
	const char *paths[] = {in_folder(folder, "a"), in_folder(folder, "b")};
	struct fc_trace_opts opts;
	struct fc_trace *trace;
	write_text(paths[0], SESSION("a"));
	write_text(paths[1], SESSION("b"));
	fc_trace_opts_init(&opts);
	assert_int_equal(fc_trace_load(paths, 2, &opts, &trace, NULL), 0);
	assert_int_equal(trace->session_count, 2);
	/* Both share the tool block. */
	assert_int_equal(trace->id_bound, 3);
	fc_trace_free(trace);
	opts.limit = 1;
	assert_int_equal(fc_trace_load(paths, 2, &opts, &trace, NULL), 0);
	assert_int_equal(trace->session_count, 1);
	fc_trace_free(trace);
}

static void the_limit_counts_requests_where_there_are_no_sessions(void **state)
{
	(void)state;
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.limit = 1;
	write_text(in_folder(folder, "x"), FIRST "\n" SECOND "\nnot even JSON\n");
	struct fc_trace *trace = load(in_folder(folder, "x"), &opts);
	assert_int_equal(trace->request_count, 1);
	fc_trace_free(trace);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------
 */

static int load_result(const char *path, bool is_lenient, struct fc_trace **trace, struct fc_error *error)
{
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.is_lenient = is_lenient;
	*error = (struct fc_error){0};
	int result = fc_trace_load(&path, 1, &opts, trace, error);
	assert_int_equal(result, error->code);
	assert_true((result == 0) == (*trace != NULL));
	return result;
}

/* The error starts with the file's path; `wanted` is what follows. */
static void assert_refused(const char *bytes, size_t byte_count, const char *wanted)
{
	char path[512];
	struct fc_trace *trace;
	struct fc_error error;
	snprintf(path, sizeof(path), "%s", in_folder(folder, "bad"));
	write_bytes(path, bytes, byte_count);
	int result = load_result(path, false, &trace, &error);
	if (result != FC_EINVAL || strncmp(error.text, path, strlen(path)) != 0 ||
	    strcmp(error.text + strlen(path), wanted) != 0)
		fail_msg("%.*s\n  wanted %s\n  got    %s (%d)", (int)byte_count, bytes, wanted, error.text, result);
}

struct bad {
	const char *text;
	const char *error;
};

static const struct bad BAD_MOONCAKE[] = {
	{FIRST "\n" REQUEST(0, 1000, "1,18446744073709551616"), ":2: hash_ids[1]: 18446744073709551616; allowed: " ID},
	{REQUEST(0, 1000, "9223372036854775808,18446744073709551616"),
	 ":1: hash_ids[1]: 18446744073709551616; allowed: " ID},
	{REQUEST(0, 1500, "9223372036854775808,\n184467440737095516150"),
	 ":2: hash_ids[1]: 184467440737095516150; allowed: " ID},
	{REQUEST(0, 1000, "1,99999999999999999999"), ":1: hash_ids[1]: 99999999999999999999; allowed: " ID},
	{REQUEST(0, 1000, "1,01"), ":1: hash_ids[1]: not JSON: invalid token near '0'"},
	{REQUEST(0, 1000, "1,"), ":1: hash_ids[1]: not JSON: unexpected token near ']'"},
	{REQUEST(0, 1000, "1 2"), ":1: hash_ids[0]: not JSON: ']' expected near '2'"},
	{REQUEST(9223372036854775808, 1000, "1"),
	 ":1: timestamp: 9223372036854775808; allowed: an integer from 0 to 9223372036854775807"},
	{"{\"timestamp\":0,\"input_length\":9,\"output_length\":7,\"hash_ids\":-1}",
	 ":1: hash_ids: -1; allowed: an array of integers"},
	{"{\"timestamp\":0,\"input_length\":9,\"output_length\":7,\"hash_ids\":[1],\"more\":{\"hash_ids\":-1},}",
	 ":1: more.hash_ids: not JSON: string or '}' expected near '}'"},
	{"{\"timestamp\":0,\"input_length\":9,\"output_length\":7,\"hash_ids\":[1],\"hash_ids\":[2]}",
	 ":1: hash_ids[0]: not JSON: duplicate object key near '\"hash_ids\"'"},
	{FIRST "\n{\"hash_ids\":[1,2,3,4,5,6,7,8,9,10],\"timestamp\":tru}",
	 ":2: timestamp: not JSON: invalid token near 'tru'"},
	{REQUEST(0, 1000, "-1"), ":1: hash_ids[0]: -1; allowed: " ID},
	{REQUEST(0, 1000, "1,1.5"), ":1: hash_ids[1]: 1.5; allowed: " ID},
	{REQUEST(0, 1000, "1,1e3"), ":1: hash_ids[1]: 1e3; allowed: " ID},
	{"\n\n" REQUEST(0, 1000, "\"x\""), ":3: hash_ids[0]: \"x\"; allowed: " ID},
	{REQUEST(0, 1000, "null"), ":1: hash_ids[0]: null; allowed: " ID},
	{REQUEST(0, 1000, "[1,2]"), ":1: hash_ids[0]: [1,2]; allowed: " ID},
	{REQUEST(-5, 1000, "1"), ":1: timestamp: -5; allowed: a number from 0 to 9223372036854"},
	{REQUEST(1e999, 1000, "1"), ":1: timestamp: 1e999; allowed: a number up to 1.8e308"},
	{REQUEST(1e300, 1000, "1"), ":1: timestamp: 1e300; allowed: a number from 0 to 9223372036854"},
	{REQUEST(0, 1.5, "1"), ":1: input_length: 1.5; allowed: " INTEGER},
	{REQUEST(0, "9", "1"), ":1: input_length: \"9\"; allowed: " INTEGER},
	{REQUEST(0, 1024, "1,2,3"),
	 ":1: hash_ids: [1,2,3]; allowed: at most 2 ids (there are 3) for 1024 input tokens in blocks of 512"},
	{"{\"timestamp\":0,\"input_length\":1,\"hash_ids\":[]}", ":1: output_length: missing; needed: " INTEGER},
	{"{\"timestamp\":0,\"input_length\":1,\"output_length\":1}",
	 ":1: hash_ids: missing; needed: an array of integers"},
	{"{\"timestamp\":0,\"timestamp\":1}", ":1: timestamp: not JSON: duplicate object key near '\"timestamp\"'"},
	{FIRST "\n{\"timestamp\":0,\"input_length\":", ":2: timestamp: not JSON: unexpected token near end of file"},
	{"{\"timestamp\":0,\n" SECOND "\n", ":1: timestamp: not JSON: string or '}' expected near end of file"},
	{FIRST " " SECOND, ":1: hash_ids[1]: not JSON: end of file expected near '{'"},
	{"7", ":1: neither JSON nor a table; needed: { or [ at the start, or names of columns with commas between"},
	{"timestamp;ContextTokens;GeneratedTokens\n1;2;3",
	 ":1: neither JSON nor a table; needed: { or [ at the start, or names of columns with commas between"},
	{"timestamp,ContextTokens\n1,2", ":1: output tokens: missing; needed: a column GeneratedTokens, output_length, "
					 "output_tokens, Response tokens or "
					 "num_decode_tokens"},
	{"\n\nTIMESTAMP,GeneratedTokens\n1,2",
	 ":3: input tokens: missing; needed: a column ContextTokens, input_length, input_tokens, Request tokens or "
	 "num_prefill_tokens"},
	{"input_tokens,output_tokens\n1,2", ":1: time: missing; needed: a column timestamp, time or arrived_at"},
	{"time\n1", ":1: input tokens: missing; needed: a column ContextTokens, input_length, input_tokens, Request "
		    "tokens or num_prefill_tokens"},
	{"a,b,c\n1,2,3", ":1: time: missing; needed: a column timestamp, time or arrived_at"},
	{"\"time\",input_tokens,x,output_tokens,timestamp\n1,2,3,4,5",
	 ":1: time: in columns 1 and 5; allowed: one column"},
	{"[\n" FIRST ",\n" REQUEST(0, 1000, "1,\n-2") "]", ":4: [1].hash_ids[1]: -2; allowed: " ID},
	{"[3]", ":1: [0]: 3; allowed: an object with \"requests\" (a Claude Code session) or with \"timestamp\" and "
		"\"hash_ids\" (a Mooncake request; with \"chat_id\", a Bailian request)"},
	{"", ": holds no request"},
	{"\r\n \n", ": holds no request"},
	{"[]", ": holds no request"},
	{FIRST "\n" SESSION("a"), ":2: whole sessions and single requests together; allowed: one format a trace"},
	{FIRST "\n" REQUEST(100000001001, 1000, "1"),
	 ":2: timestamp: 100000001001; allowed: at most 100000000000 from that of the first request, 1000"},
	{FIRST "\n" OF_SESSION(1, "1", "\"a\""),
	 ":2: session_id: \"a\"; allowed: the session in all requests or in none"},
	{OF_SESSION(1, "1", "\"a\"") "\n" FIRST,
	 ":2: session_id: missing; needed: the session in all requests or in none"},
	{OF_SESSION(1, "1", "\"\""), ":1: session_id: \"\"; allowed: a text that is not empty, or an integer"},
	{OF_SESSION(1, "1", "1.5"), ":1: session_id: 1.5; allowed: a text that is not empty, or an integer"},
	{OF_SESSION(1, "1", "null"), ":1: session_id: null; allowed: a text that is not empty, or an integer"},
	{CHAT(1, -1, 0, "1") "\n" FIRST,
	 ":2: blocks of 512 tokens after blocks of 16; allowed: one block size a trace"},
	{"{\"chat_id\":8,\"timestamp\":0,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1],\"session_id\":8}\n"
	 "{\"timestamp\":0,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1],\"session_id\":8}",
	 ":2: blocks of 512 tokens after blocks of 16; allowed: one block size a trace"},
	{CHAT(-1, -1, 0, "1"), ":1: chat_id: -1; allowed: " INTEGER},
	{CHAT(1, -2, 0, "1"), ":1: parent_chat_id: -2; allowed: -1, or an integer from 0 to 9223372036854775807"},
	{CHAT(1, 0.5, 0, "1"), ":1: parent_chat_id: 0.5; allowed: -1, or an integer from 0 to 9223372036854775807"},
	{CHAT(1, -1, 0, "1,2,3"),
	 ":1: hash_ids: [1,2,3]; allowed: at most 2 ids (there are 3) for 32 input tokens in blocks of 16"},
};

static void bad_mooncake_records_are_refused_by_place_value_and_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(BAD_MOONCAKE) / sizeof(BAD_MOONCAKE[0]); i++)
		assert_refused(BAD_MOONCAKE[i].text, strlen(BAD_MOONCAKE[i].text), BAD_MOONCAKE[i].error);
}

/* However it is packed; and to the byte. */
static void a_line_longer_than_is_allowed_is_refused_by_place(void **state)
{
	(void)state;
	static const char head[] = FIRST "\n" SECOND "\n";
	static const uint64_t line_max = 64ull << 20;
	size_t byte_count = strlen(head) + line_max + 1;
	char *bytes = malloc(byte_count);
	struct fc_trace *trace;
	struct fc_error error;
	assert_non_null(bytes);
	memset(bytes, ' ', byte_count);
	memcpy(bytes, head, strlen(head));
	bytes[byte_count - 2] = '\n';
	const char *path = in_folder(folder, "long");
	for (int packing = PLAIN; packing <= ZSTD; packing++) {
		for (int is_tar = 0; is_tar < 2; is_tar++) {
			struct member member = {
				.name = is_tar ? "t.jsonl" : NULL, .bytes = bytes, .byte_count = byte_count - 1};
			write_packed(path, (enum packing)packing, &member, 1);
			assert_int_equal(load_result(path, false, &trace, &error), 0);
			fc_trace_free(trace);
			member.byte_count = byte_count;
			bytes[byte_count - 2] = ' ';
			bytes[byte_count - 1] = '\n';
			write_packed(path, (enum packing)packing, &member, 1);
			for (int is_lenient = 0; is_lenient < 2; is_lenient++) {
				assert_int_equal(load_result(path, is_lenient, &trace, &error), FC_EINVAL);
				assert_non_null(
					strstr(error.text, is_tar ? "long:t.jsonl:3: a line" : "long:3: a line"));
				assert_non_null(
					strstr(error.text, "of more than 67108864 bytes; allowed: at most that many"));
			}
			bytes[byte_count - 2] = '\n';
		}
	}
	free(bytes);
}

static void assert_links(const struct fc_trace *trace, uint32_t index, uint32_t session, uint32_t previous,
			 uint32_t next, uint32_t prefix)
{
	const struct fc_trace_request *request = &trace->requests[index];
	assert_int_equal(request->session, session);
	assert_int_equal(request->line, session);
	assert_int_equal(request->previous, previous);
	assert_int_equal(request->next, next);
	assert_int_equal(request->prefix_count, prefix);
	assert_int_equal(request->turn, previous == FC_TRACE_NONE ? 0 : trace->requests[previous].turn + 1);
}

static void requests_that_name_their_session_are_its_turns_by_time(void **state)
{
	(void)state;
	/* Names are texts or numbers; "b" comes out of order, and two requests of it at one time keep the file's. */
	struct fc_trace *trace =
		load_text(OF_SESSION(3000, "1,3", "\"b\"") "\n" OF_SESSION(2000, "4", "7") "\n" OF_SESSION(
			1000, "1,2", "\"b\"") "\n" OF_SESSION(3000, "1,3",
							      "\"b\"") "\n" OF_SESSION(2500, "4,18446744073709551615",
										       "7"));
	uint64_t ids[2];
	assert_int_equal(trace->format, FC_TRACE_OF_REQUESTS);
	assert_int_equal(trace->session_count, 2);
	assert_int_equal(trace->line_count, 2);
	assert_int_equal(fc_trace_unit_count(trace), 5);
	assert_string_equal(trace->sessions[0].name, "7");
	assert_string_equal(trace->sessions[1].name, "b");
	assert_int_equal(trace->sessions[0].start_ns, 1000000000);
	assert_int_equal(trace->sessions[0].duration_ns, 500000000);
	assert_int_equal(trace->sessions[1].start_ns, 0);
	assert_int_equal(trace->sessions[1].duration_ns, 2000000000);
	assert_int_equal(trace->sessions[1].requests_start, 2);
	assert_int_equal(trace->sessions[1].request_count, 3);
	assert_int_equal(trace->session_requests[2], 0);
	assert_int_equal(trace->session_requests[4], 4);
	assert_links(trace, 0, 1, FC_TRACE_NONE, 3, 0);
	assert_links(trace, 1, 0, FC_TRACE_NONE, 2, 0);
	assert_links(trace, 2, 0, 1, FC_TRACE_NONE, 1);
	assert_links(trace, 3, 1, 0, 4, 1);
	assert_links(trace, 4, 1, 3, FC_TRACE_NONE, 2);
	fc_trace_request_ids(trace, 2, ids);
	assert_true(ids[0] == 4 && ids[1] == UINT64_MAX);
	fc_trace_request_ids(trace, 4, ids);
	assert_true(ids[0] == 1 && ids[1] == 3);
	fc_trace_free(trace);
}

static void chats_that_go_on_with_one_another_are_one_session(void **state)
{
	(void)state;
	/* 5 goes on with 4, which the trace does not have; 9 was named before it came; 3 and 8 both go on with 2. */
	struct fc_trace *trace =
		load_text(CHAT(2, -1, 0.5, "1") "\n" CHAT(3, 2, 1.25, "1,2") "\n" CHAT(5, 4, 2, "6") "\n" CHAT(
			6, 9, 3, "7,8") "\n" CHAT(9, -1, 2.5, "7") "\n" CHAT(8, 2, 4, "1,3") "\n" CHAT(10, 5, 5,
												       "6,9"));
	const char *names[] = {"2", "4", "9"};
	const uint32_t sessions[] = {0, 0, 1, 2, 2, 0, 1};
	assert_int_equal(trace->block_tokens, 16);
	assert_int_equal(trace->session_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_string_equal(trace->sessions[i].name, names[i]);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(trace->requests[i].session, sessions[i]);
	assert_int_equal(trace->requests[1].arrival_ns, 750000000);
	assert_links(trace, 5, 0, 1, FC_TRACE_NONE, 1);
	/* The second block of 2 is named by 3 only, which goes on with it. */
	assert_int_equal(fc_trace_stored_count(trace, 0, true), 2);
	fc_trace_free(trace);
}

static void blocks_have_the_size_that_is_asked_for_where_the_file_does_not_say(void **state)
{
	(void)state;
	struct fc_trace_opts opts;
	struct fc_trace *trace;
	const char *path = in_folder(folder, "x");
	write_text(path, REQUEST(0, 1000, "1,2,3,4"));
	fc_trace_opts_init(&opts);
	opts.block_tokens = 256;
	assert_int_equal(fc_trace_load(&path, 1, &opts, &trace, NULL), 0);
	assert_int_equal(trace->block_tokens, 256);
	fc_trace_free(trace);
	write_text(path, CHAT(8, -1, 0, "1"));
	opts.block_tokens = 32;
	assert_int_equal(fc_trace_load(&path, 1, &opts, &trace, NULL), 0);
	assert_int_equal(trace->block_tokens, 32);
	fc_trace_free(trace);
	/* With blocks of one size, two formats could stand in one trace; that a chat and a session have one name would
	 * mean nothing. */
	struct fc_error error;
	write_text(path, OF_SESSION(1, "1", "8") "\n" CHAT(8, -1, 0, "1"));
	assert_int_equal(fc_trace_load(&path, 1, &opts, &trace, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "x:2: chat_id: 8; allowed: the session in all requests or in none"));
}

/* In every format: 33 tokens are two blocks of 16, whatever ids the file gives. */
static void a_partial_block_at_the_end_of_an_input_is_no_block(void **state)
{
	(void)state;
	static const char *const texts[] = {
		REQUEST(0, 33, "10,20,99"),
		"{\"chat_id\":1,\"timestamp\":0,\"input_length\":33,\"output_length\":1,\"hash_ids\":[10,20,99]}",
		"{\"id\":\"a\",\"block_size\":16,\"hash_id_scope\":\"local\",\"tool_tokens\":0,\"system_tokens\":0,"
		"\"requests\":[{\"t\":0,\"type\":\"n\",\"in\":33,\"out\":1,\"hash_ids\":[10,20,99]}]}",
	};
	struct fc_trace_opts opts;
	const char *path = in_folder(folder, "x");
	fc_trace_opts_init(&opts);
	opts.block_tokens = 16;
	for (size_t i = 0; i < fc_array_len(texts); i++) {
		struct fc_trace *trace;
		write_text(path, texts[i]);
		assert_int_equal(fc_trace_load(&path, 1, &opts, &trace, NULL), 0);
		assert_int_equal(trace->block_tokens, 16);
		assert_int_equal(fc_trace_id_count(&trace->requests[0]), 2);
		assert_int_equal(trace->reference_count, 2);
		assert_int_equal(fc_trace_stored_count(trace, 0, true), 2);
		fc_trace_free(trace);
	}
}

/* A partial block that the next turn has filled up is a block of the reply. */
static void a_reply_fills_the_partial_block_before_it(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text("{\"chat_id\":1,\"timestamp\":0,\"input_length\":20,\"output_length\":17,"
					   "\"hash_ids\":[1,90]}\n" CHAT(2, 1, 1, "1,2"));
	assert_int_equal(trace->requests[1].prefix_count, 1);
	assert_int_equal(fc_trace_stored_count(trace, 0, false), 1);
	assert_int_equal(fc_trace_stored_count(trace, 0, true), 2);
	fc_trace_free(trace);
}

static void requests_without_input_are_counted_apart(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t requests, sessions, left_out;
	} cases[] = {
		{FIRST "\n" REQUEST(0, 0, "") "\n" REQUEST(9, 0, "") "\n" SECOND, 2, 0, 2},
		{OF_SESSION(1, "1",
			    "\"a\"") "\n{\"timestamp\":1,\"input_length\":0,\"output_length\":1,\"hash_ids\":[],"
				     "\"session_id\":\"b\"}",
		 1, 1, 1},
		/* 2 goes on with 1, which has no input; 3 with nothing. */
		{CHAT(2, 1, 1, "1") "\n{\"chat_id\":1,\"timestamp\":0,\"input_length\":0,\"output_length\":1,"
				    "\"hash_ids\":[]}\n{\"chat_id\":3,\"timestamp\":0,\"input_length\":0,"
				    "\"output_length\":1,\"hash_ids\":[]}",
		 1, 1, 2},
		{SESSION("a") "\n{\"id\":\"b\",\"block_size\":64,\"hash_id_scope\":\"local\",\"tool_tokens\":64,"
			      "\"system_tokens\":0,\"requests\":[{\"t\":0,\"type\":\"s\",\"in\":0,\"out\":1,"
			      "\"hash_ids\":[]}]}\n" SESSION("c"),
		 2, 2, 1},
		{"time,input_tokens,output_tokens\n0,0,1\n1,5,1\n", 1, 0, 1},
	};
	for (size_t i = 0; i < fc_array_len(cases); i++) {
		struct fc_trace *trace = load_text(cases[i].text);
		assert_int_equal(trace->request_count, cases[i].requests);
		assert_int_equal(trace->session_count, cases[i].sessions);
		assert_int_equal(trace->without_input_count, cases[i].left_out);
		assert_int_equal(trace->skipped_count, 0);
		for (uint32_t k = 0; k < trace->session_count; k++)
			assert_true(trace->sessions[k].request_count > 0);
		fc_trace_free(trace);
	}
}

static void times_since_1970_count_from_the_first(void **state)
{
	(void)state;
	struct fc_trace *trace = load_text(REQUEST(1764522686123, 1000, "1") "\n" REQUEST(1764522685000, 1000, "1"));
	assert_int_equal(trace->requests[1].arrival_ns, 1123000000); /* to the nanosecond: no double between */
	fc_trace_free(trace);
}

#define HEAD(block_size, rest)                                                                                         \
	"{\"id\":\"a\",\"block_size\":" block_size ",\"hash_id_scope\":\"local\",\"tool_tokens\":64,"                  \
	"\"system_tokens\":0,\"requests\":" rest "}"

static const struct bad BAD_CLAUDE[] = {
	{HEAD("0", "[1]"), ":1: block_size: 0; allowed: an integer from 1 to 1073741824"},
	{HEAD("64", "[]"), ":1: requests: []; allowed: an array of at least one request"},
	{HEAD("64", "[1]"), ":1: requests[0]: 1; allowed: an object"},
	{HEAD("64", "[{\"t\":0,\"type\":\"x\"}]"),
	 ":1: requests[0].type: \"x\"; allowed: \"n\", \"s\", or in a session also \"subagent\""},
	{HEAD("64", "[{\"t\":0,\"type\":\"n\",\"in\":1,\"hash_ids\":[]}]"),
	 ":1: requests[0].out: missing; needed: " INTEGER},
	{HEAD("64", "[{\"t\":0,\"type\":\"n\",\n\"in\":64,\"out\":1,\"hash_ids\":[\n1.5]}]"),
	 ":3: requests[0].hash_ids[0]: 1.5; allowed: " ID},
	{HEAD("64",
	      "[{\"t\":0,\"type\":\"n\",\"in\":64,\"out\":1,\"hash_ids\":[1]},\n{\"t\":0,\"type\":\"n\",\"in\":64,"
	      "\"out\":1,\"hash_ids\":[18446744073709551616]}]"),
	 ":2: requests[1].hash_ids[0]: 18446744073709551616; allowed: " ID},
	{HEAD("64", "[{\"t\":\"0\",\"type\":\"n\"}]"),
	 ":1: requests[0].t: \"0\"; allowed: a number from 0 to 100000000"},
	{HEAD("64", "[{\"t\":0,\"type\":\"subagent\",\"tool_tokens\":1,\"system_tokens\":1,\"requests\":[{\"t\":0,"
		    "\"type\":\"subagent\"}]}]"),
	 ":1: requests[0].requests[0].type: \"subagent\"; allowed: \"n\", \"s\", or in a session also \"subagent\""},
	{HEAD("64", "[{\"t\":0,\"type\":\"subagent\",\"system_tokens\":1,\"requests\":[]}]"),
	 ":1: requests[0].tool_tokens: missing; needed: " INTEGER},
	{"{\"requests\":[]}", ":1: id: missing; needed: the session's name"},
	{"{\"id\":\"a\",\"hash_id_scope\":\"global\",\"requests\":[]}",
	 ":1: hash_id_scope: \"global\"; allowed: \"local\""},
	{SESSION("a") "\n" HEAD("32", "[1]"),
	 ":2: blocks of 32 tokens after blocks of 64; allowed: one block size a trace"},
};

static void bad_sessions_are_refused_by_place_value_and_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(BAD_CLAUDE) / sizeof(BAD_CLAUDE[0]); i++)
		assert_refused(BAD_CLAUDE[i].text, strlen(BAD_CLAUDE[i].text), BAD_CLAUDE[i].error);
}

static void a_nul_byte_is_refused_where_it_stands(void **state)
{
	(void)state;
	static const char text[] =
		FIRST "\n{\"timestamp\":0,\"input_length\":1\0,\"output_length\":1,\"hash_ids\":[]}\n";
	assert_refused(text, sizeof(text) - 1, ":2: input_length: a NUL byte; allowed: JSON text");
}

static void a_session_twice_is_refused(void **state)
{
	(void)state;
	struct fc_trace *trace;
	struct fc_error error;
	write_text(in_folder(folder, "x.json"), SESSION("a") "\n" SESSION("b"));
	write_text(in_folder(folder, "y.json"), SESSION("a") "\n");
	assert_int_equal(load_result(folder, false, &trace, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "session \"a\" stands in "));
	assert_non_null(strstr(error.text, "y.json; allowed: each session once"));
}

static void what_cannot_be_opened_is_named(void **state)
{
	(void)state;
	struct fc_trace *trace;
	struct fc_error error;
	assert_int_equal(load_result(in_folder(folder, "none"), false, &trace, &error), FC_ESYSTEM);
	assert_non_null(strstr(error.text, "/none: No such file or directory"));
	assert_int_equal(load_result(folder, false, &trace, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, ": holds no request"));
}

/* Enough lines that differ for a packed file to have more than one block. */
static void write_cut(const char *path, enum packing packing, const char *member_name)
{
	size_t size = 0, byte_count;
	char *text = NULL;
	FILE *stream = open_memstream(&text, &size);
	for (unsigned i = 0; i < 20000; i++)
		fprintf(stream, "{\"timestamp\":%u,\"input_length\":%u,\"output_length\":7,\"hash_ids\":[%u]}\n", i,
			i * 7919 % 1000 + 1, i * 104729);
	fclose(stream);
	struct member member = {.name = member_name, .bytes = text, .byte_count = size};
	write_packed(path, packing, &member, 1);
	free(text);
	char *bytes = read_bytes(path, &byte_count);
	write_bytes(path, bytes, byte_count * 2 / 3);
	free(bytes);
}

static void a_cut_archive_is_an_error_even_when_lenient(void **state)
{
	(void)state;
	struct fc_trace *trace;
	struct fc_error error;
	for (int packing = GZIP; packing <= ZSTD; packing++) {
		for (int is_tar = 0; is_tar < 2; is_tar++) {
			write_cut(in_folder(folder, "cut"), (enum packing)packing, is_tar ? "x.jsonl" : NULL);
			assert_int_equal(load_result(in_folder(folder, "cut"), true, &trace, &error), FC_EINVAL);
			assert_non_null(strstr(error.text, "cannot be read: "));
		}
	}
	write_cut(in_folder(folder, "cut"), PLAIN, "x.jsonl");
	assert_int_equal(load_result(in_folder(folder, "cut"), true, &trace, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "cannot be read: "));
}

static void lenient_leaves_bad_requests_out_and_counts_them(void **state)
{
	(void)state;
	struct fc_trace *trace;
	struct fc_error error;
	write_text(in_folder(folder, "x"),
		   "{\"timestamp\":\n" FIRST "\nnonsense\n" REQUEST(0, 1, "-1") "\n" SECOND "\n");
	assert_int_equal(load_result(in_folder(folder, "x"), true, &trace, &error), 0);
	assert_int_equal(trace->request_count, 2);
	assert_int_equal(trace->skipped_count, 3);
	assert_non_null(strstr(trace->skipped_first.text, "x:1: "));
	fc_trace_free(trace);
	write_text(in_folder(folder, "x"), "nonsense\n");
	assert_int_equal(load_result(in_folder(folder, "x"), true, &trace, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "x: holds no request"));
}

static void lenient_keeps_the_good_requests_of_a_session(void **state)
{
	(void)state;
	struct fc_trace *trace;
	struct fc_error error;
	write_text(in_folder(folder, "x"),
		   HEAD("64",
			"[{\"t\":0,\"type\":\"n\",\"in\":64,\"out\":1,\"hash_ids\":[1]},{\"type\":\"q\"},"
			"{\"t\":1,\"type\":\"n\",\"in\":64,\"out\":1,\"hash_ids\":[-1]},{\"type\":\"subagent\"},"
			"{\"t\":2,\"type\":\"n\",\"in\":128,\"out\":1,\"hash_ids\":[1,2]}]") "\n" HEAD("1", "[4]"));
	assert_int_equal(load_result(in_folder(folder, "x"), true, &trace, &error), 0);
	assert_int_equal(trace->session_count, 1);
	assert_int_equal(trace->request_count, 2);
	assert_int_equal(trace->requests[1].prefix_count, 1);
	assert_int_equal(trace->skipped_count, 4);
	fc_trace_free(trace);
}

static void options_out_of_range_are_refused(void **state)
{
	(void)state;
	struct fc_trace_opts opts;
	struct fc_trace *trace;
	struct fc_error error;
	const char *path = in_folder(folder, "x");
	write_text(path, FIRST);
	fc_trace_opts_init(&opts);
	opts.concurrent_sessions = 0;
	assert_int_equal(fc_trace_load(&path, 1, &opts, &trace, &error), FC_EINVAL);
	assert_string_equal(error.text, "0 concurrent sessions; allowed: 1 to 10000");
	fc_trace_opts_init(&opts);
	opts.block_tokens = (1u << 30) + 1;
	assert_int_equal(fc_trace_load(&path, 1, &opts, &trace, &error), FC_EINVAL);
	fc_trace_opts_init(&opts);
	assert_int_equal(fc_trace_load(NULL, 0, &opts, &trace, &error), FC_EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, new_folder, free_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mooncake_requests_keep_their_ids_and_know_no_session),
		TEST(the_largest_id_is_kept_whole),
		TEST(an_id_may_stand_twice_in_a_list),
		TEST(line_ends_marks_and_arrays_make_no_difference),
		TEST(a_session_may_be_spread_over_lines),
		TEST(packed_files_and_standard_input_read_like_plain_ones),
		TEST(gzip_members_one_after_the_other_are_one_text),
		TEST(a_tar_reads_like_the_folder_that_it_packs),
		TEST(several_paths_make_one_trace),
		TEST(the_limit_counts_requests_where_there_are_no_sessions),
		TEST(bad_mooncake_records_are_refused_by_place_value_and_rule),
		TEST(requests_that_name_their_session_are_its_turns_by_time),
		TEST(chats_that_go_on_with_one_another_are_one_session),
		TEST(blocks_have_the_size_that_is_asked_for_where_the_file_does_not_say),
		TEST(a_line_longer_than_is_allowed_is_refused_by_place),
		TEST(a_partial_block_at_the_end_of_an_input_is_no_block),
		TEST(a_reply_fills_the_partial_block_before_it),
		TEST(requests_without_input_are_counted_apart),
		TEST(times_since_1970_count_from_the_first),
		TEST(bad_sessions_are_refused_by_place_value_and_rule),
		TEST(a_nul_byte_is_refused_where_it_stands),
		TEST(a_session_twice_is_refused),
		TEST(what_cannot_be_opened_is_named),
		TEST(a_cut_archive_is_an_error_even_when_lenient),
		TEST(lenient_leaves_bad_requests_out_and_counts_them),
		TEST(lenient_keeps_the_good_requests_of_a_session),
		TEST(options_out_of_range_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Loading a trace: tells from the text what it is, cuts it into records, and hands each to the reader of its format.
 *
 *   first line            the text is
 *   not JSON, but names   a table, with a request on each line below (csv.c)
 *   starts with [         one JSON array of records
 *   an object, whole      a record on each line; only one line is in memory at a time. It is an object if its braces
 *                         balance, or if the line after it starts one too (then the first is cut off, and reported so)
 *   part of an object     one record, spread over lines
 *
 * A byte-order mark, blank lines, CR LF and a missing last newline make no difference. A record with "requests" is a
 * Claude Code session, one with "chat_id" a Bailian request, another with "hash_ids" or "timestamp" a Mooncake request.
 */
#define _GNU_SOURCE /* memmem */
#include "base/check.h"
#include "trace/csv.h"
#include "trace/source.h"

#include <stdio.h>
#include <string.h>

#define CONCURRENT_SESSIONS_MAX 10000
#define BLOCK_TOKENS_MAX (1u << 30)

struct load {
	struct fc_reader reader;
	uint64_t record_count; /* of the current text */
};

/* A text and how far it was read. */
struct cursor {
	struct fc_text *text;
	uint64_t line; /* number of the next line */
};

void fc_trace_opts_init(struct fc_trace_opts *opts)
{
	*opts = (struct fc_trace_opts){
		.share_prompts = true, .include_subagents = true, .concurrent_sessions = 8, .block_tokens = 0};
}

int fc_reader_skip(struct fc_reader *reader, int result, const struct fc_error *error)
{
	if (result != FC_EINVAL || !reader->opts->is_lenient)
		return result;
	if (reader->skipped_count++ == 0)
		reader->skipped_first = *error;
	return 0;
}

int fc_reader_ids(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		  const json_t *request, uint64_t input_tokens, uint32_t block_tokens, struct fc_error *error)
{
	int result = fc_json_member_ids(text, at, request, "hash_ids", &reader->ids, error);
	if (result != 0)
		return result;
	uint64_t block_count = input_tokens / block_tokens + (input_tokens % block_tokens != 0);
	if (reader->ids.count <= block_count) {
		reader->ids.count = fc_min_u64(reader->ids.count, input_tokens / block_tokens);
		return 0;
	}
	char allowed[128];
	struct fc_json_at hash_ids = {.parent = at, .key = "hash_ids"};
	snprintf(allowed, sizeof(allowed), "at most %llu ids (there are %llu) for %llu input tokens in blocks of %u",
		 (unsigned long long)block_count, (unsigned long long)reader->ids.count,
		 (unsigned long long)input_tokens, block_tokens);
	return fc_json_refuse(text, &hash_ids, allowed, error);
}

bool fc_reader_is_without_input(struct fc_reader *reader, const struct fc_build_request *request)
{
	reader->without_input_count += request->input_tokens == 0;
	return request->input_tokens == 0;
}

bool fc_reader_is_in_span(struct fc_reader *reader, uint64_t time_ns)
{
	uint64_t first_ns = reader->has_first_time ? reader->first_time_ns : time_ns;
	reader->first_time_ns = first_ns;
	reader->has_first_time = true;
	return (time_ns > first_ns ? time_ns - first_ns : first_ns - time_ns) <= FC_JSON_SPAN_NS_MAX;
}

int fc_reader_timed(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		    const json_t *request, uint64_t unit_ns, uint32_t block_tokens, struct fc_build_request *made,
		    struct fc_error *error)
{
	struct fc_json_at time_at = {.parent = at, .key = "timestamp"};
	int result = fc_json_time(text, &time_at, json_object_get(request, "timestamp"), unit_ns, FC_JSON_TIME_NS_MAX,
				  &made->time_ns, error);
	if (result == 0)
		result = fc_json_member_integer(text, at, request, "input_length", INT64_MAX, &made->input_tokens,
						error);
	if (result == 0)
		result = fc_json_member_integer(text, at, request, "output_length", INT64_MAX, &made->output_tokens,
						error);
	if (result == 0)
		result = fc_reader_ids(reader, text, at, request, made->input_tokens, block_tokens, error);
	if (result != 0)
		return result;
	made->ids = reader->ids.items;
	made->id_count = reader->ids.count;
	if (fc_reader_is_in_span(reader, made->time_ns)) {
		result = fc_build_check_timed(reader->build, block_tokens, error);
		return result == 0 ? 0
				   : fc_error_wrap(error, result, "%s:%llu", text->file,
						   (unsigned long long)text->first_line);
	}
	char allowed[96];
	snprintf(allowed, sizeof(allowed), "at most %llu from that of the first request, %llu",
		 FC_JSON_SPAN_NS_MAX / (unsigned long long)unit_ns,
		 (unsigned long long)(reader->first_time_ns / unit_ns));
	return fc_json_refuse(text, &time_at, allowed, error);
}

int fc_reader_check_session(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
			    const char *key, enum fc_reader_sessions sessions, struct fc_error *error)
{
	struct fc_json_at key_at = {.parent = at, .key = key};
	if (reader->sessions == FC_READER_SESSIONS_UNKNOWN)
		reader->sessions = sessions;
	if (reader->sessions == sessions)
		return 0;
	return fc_json_refuse(text, &key_at, "the session in all requests or in none", error);
}

static bool is_limit_reached(const struct fc_reader *reader)
{
	uint64_t taken = reader->record_count - fc_min_u64(reader->record_count, reader->opts->skip);
	return reader->opts->limit != 0 && taken >= reader->opts->limit;
}

static int read_record(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		       const json_t *record, struct fc_error *error)
{
	if (json_object_get(record, "requests") != NULL)
		return fc_claude_read(reader, text, at, record, error);
	if (json_object_get(record, "chat_id") != NULL)
		return fc_bailian_read(reader, text, at, record, error);
	if (json_object_get(record, "hash_ids") != NULL || json_object_get(record, "timestamp") != NULL)
		return fc_mooncake_read(reader, text, at, record, error);
	return fc_json_refuse(
		text, at,
		"an object with \"requests\" (a Claude Code session) or with \"timestamp\" and \"hash_ids\" "
		"(a Mooncake request; with \"chat_id\", a Bailian request)",
		error);
}

/* One record of the text: 0 to go on, 1 when the limit is reached. */
static int take_record(struct load *load, const struct fc_json_text *text, const struct fc_json_at *at,
		       const json_t *record, struct fc_error *error)
{
	if (is_limit_reached(&load->reader))
		return 1;
	load->record_count++;
	if (load->reader.record_count++ < load->reader.opts->skip)
		return 0;
	int result = read_record(&load->reader, text, at, record, error);
	return fc_reader_skip(&load->reader, result, error);
}

/* Parses a text that is one record, or an array of them. */
static int take_json(struct load *load, struct fc_json_text *text, struct fc_error *error)
{
	struct fc_json_at root_at = {0};
	json_t *root;
	int result = fc_json_parse(text, &root, error);
	if (result != 0) {
		load->record_count++;
		return fc_reader_skip(&load->reader, result, error);
	}
	if (json_is_array(root)) {
		for (size_t i = 0; result == 0 && i < json_array_size(root); i++) {
			struct fc_json_at at = {.parent = &root_at, .index = i};
			result = take_record(load, text, &at, json_array_get(root, i), error);
		}
	} else {
		result = take_record(load, text, &root_at, root, error);
	}
	json_decref(root);
	return result;
}

/* The result of asking for text at a line, with the error where there is more of it than may be asked for. It is not
 * one record that is bad then, so is_lenient makes no difference. */
static int check_length(const struct cursor *cursor, uint64_t line, int result, const char *what,
			struct fc_error *error)
{
	if (result != FC_ELIMIT)
		return result;
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s of more than %llu bytes; allowed: at most that many",
			    fc_text_name(cursor->text), (unsigned long long)line, what, FC_TEXT_BYTES_MAX);
}

static uint64_t space_bytes(const char *bytes, uint64_t count)
{
	uint64_t space = 0;
	while (space < count && memchr(" \t\r\n", bytes[space], 4) != NULL)
		space++;
	return space;
}

/* Consumes the byte-order mark and blank lines; 1 and the first line with something in it, 0 at the end. */
static int skip_blank(struct cursor *cursor, const char **line, uint64_t *bytes, struct fc_error *error)
{
	int result;
	while ((result = fc_text_line(cursor->text, 0, line, bytes, error)) == 1) {
		if (cursor->line == 1 && *bytes >= 3 && memcmp(*line, "\xef\xbb\xbf", 3) == 0) {
			fc_text_consume(cursor->text, 3);
			*line += 3;
			*bytes -= 3;
		}
		if (space_bytes(*line, *bytes) < *bytes)
			return 1;
		fc_text_consume(cursor->text, *bytes);
		cursor->line++;
	}
	return check_length(cursor, cursor->line, result, "a line", error);
}

/* Without the white space at the end, or a record that breaks off would seem to end on the line behind it. */
static uint64_t trimmed(const char *bytes, uint64_t count)
{
	while (count > 0 && memchr(" \t\r\n", bytes[count - 1], 4) != NULL)
		count--;
	return count;
}

/* Where a line ends inside JSON. */
struct nesting {
	int64_t depth;  /* brackets that are open */
	bool is_array;  /* the innermost of them is [ */
	bool is_string; /* a string is open */
	char last;      /* byte that is no space */
};

/* Of a line that is not blank. */
static struct nesting nesting_of(const char *line, uint64_t bytes)
{
	struct nesting nesting = {0};
	uint64_t arrays = 0; /* one bit for each of the innermost 64 */
	for (uint64_t i = 0; i < bytes; i++) {
		if (line[i] == '"') {
			nesting.is_string = !nesting.is_string;
		} else if (nesting.is_string) {
			i += line[i] == '\\';
		} else if (line[i] == '{' || line[i] == '[') {
			nesting.depth++;
			arrays = arrays << 1 | (line[i] == '[');
		} else if (line[i] == '}' || line[i] == ']') {
			nesting.depth--;
			arrays >>= 1;
		}
	}
	nesting.is_array = arrays & 1;
	nesting.last = line[trimmed(line, bytes) - 1];
	return nesting;
}

/* Whether an object may follow the open line: as an item, or as a member's value. A line that breaks off inside
 * "hash_ids" looks as if it might, so only a session's is believed. */
static bool may_continue(const char *line, uint64_t bytes, struct nesting nesting)
{
	if (nesting.is_string || memmem(line, bytes, "\"requests\"", 10) == NULL)
		return false;
	return nesting.is_array ? nesting.last == '[' || nesting.last == ',' : nesting.last == ':';
}

/* Whether the text, whose first line this is, has one record a line: 1 or 0, or an error. */
static int has_record_lines(const struct cursor *cursor, const char *line, uint64_t bytes, struct fc_error *error)
{
	char first = line[space_bytes(line, bytes)];
	struct nesting nesting = nesting_of(line, bytes);
	if (first != '{' || (nesting.depth <= 0 && !nesting.is_string))
		return first != '[';
	bool is_continued = may_continue(line, bytes, nesting);
	const char *second;
	uint64_t second_bytes;
	int result = fc_text_line(cursor->text, bytes, &second, &second_bytes, error);
	if (result != 1)
		return check_length(cursor, cursor->line + 1, result, "a line", error);
	uint64_t space = space_bytes(second, second_bytes);
	return !is_continued && space < second_bytes && second[space] == '{';
}

static int take_lines(struct load *load, struct cursor *cursor, struct fc_error *error)
{
	const char *line;
	uint64_t bytes;
	int result;
	while ((result = skip_blank(cursor, &line, &bytes, error)) == 1) {
		struct fc_json_text text = {.file = fc_text_name(cursor->text),
					    .first_line = cursor->line,
					    .bytes = line,
					    .byte_count = trimmed(line, bytes),
					    .cut = &load->reader.cut};
		result = take_json(load, &text, error);
		if (result != 0)
			return result;
		fc_text_consume(cursor->text, bytes);
		cursor->line++;
	}
	return result;
}

/* A table, whose names of columns were the first line. */
static int take_table(struct load *load, struct cursor *cursor, const struct fc_csv *csv, uint64_t header_bytes,
		      struct fc_error *error)
{
	const char *bytes;
	uint64_t count;
	int result = 0;
	fc_text_consume(cursor->text, header_bytes);
	cursor->line++;
	while (result == 0 && (result = skip_blank(cursor, &bytes, &count, error)) == 1) {
		struct fc_csv_line line = {fc_text_name(cursor->text), cursor->line, bytes, trimmed(bytes, count)};
		if (is_limit_reached(&load->reader))
			return 1;
		load->record_count++;
		result = 0;
		if (load->reader.record_count++ >= load->reader.opts->skip)
			result = fc_reader_skip(&load->reader, fc_csv_read(&load->reader, csv, &line, error), error);
		fc_text_consume(cursor->text, count);
		cursor->line++;
	}
	return result;
}

static int take_document(struct load *load, struct cursor *cursor, struct fc_error *error)
{
	struct fc_json_text text = {
		.file = fc_text_name(cursor->text), .first_line = cursor->line, .cut = &load->reader.cut};
	uint64_t bytes;
	int result = fc_text_rest(cursor->text, &text.bytes, &bytes, error);
	if (result < 0)
		return check_length(cursor, cursor->line, result, "a document", error);
	text.byte_count = trimmed(text.bytes, bytes);
	return take_json(load, &text, error);
}

/* Consumes a first line that no kind of trace begins with, if opts.is_lenient lets it. */
static int skip_first_line(struct load *load, struct cursor *cursor, uint64_t bytes, struct fc_error *error)
{
	int result = fc_error_set(error, FC_EINVAL,
				  "%s:%llu: neither JSON nor a table; needed: { or [ at the start, or names of columns "
				  "with commas between",
				  fc_text_name(cursor->text), (unsigned long long)cursor->line);
	load->record_count++;
	fc_text_consume(cursor->text, bytes);
	cursor->line++;
	return fc_reader_skip(&load->reader, result, error);
}

/* Tells from the first line that is not blank what the text is, and reads it. */
static int take_first_line(struct load *load, struct cursor *cursor, const char *line, uint64_t bytes,
			   struct fc_error *error)
{
	struct fc_csv csv;
	struct fc_csv_line header = {fc_text_name(cursor->text), cursor->line, line, trimmed(line, bytes)};
	char first = line[space_bytes(line, bytes)];
	if (fc_csv_is_header(&header)) {
		int result = fc_csv_read_header(&csv, &header, error);
		return result != 0 ? result : take_table(load, cursor, &csv, bytes, error);
	}
	if (first != '{' && first != '[') {
		int result = skip_first_line(load, cursor, bytes, error);
		return result != 0 ? result : take_lines(load, cursor, error);
	}
	int has_lines = has_record_lines(cursor, line, bytes, error);
	if (has_lines < 0)
		return has_lines;
	return has_lines ? take_lines(load, cursor, error) : take_document(load, cursor, error);
}

static int take_text(void *context, struct fc_text *text, struct fc_error *error)
{
	struct load *load = context;
	struct cursor cursor = {.text = text, .line = 1};
	const char *line;
	uint64_t bytes;
	load->record_count = 0;
	if (is_limit_reached(&load->reader))
		return 1;
	int result = skip_blank(&cursor, &line, &bytes, error);
	if (result == 1)
		result = take_first_line(load, &cursor, line, bytes, error);
	if (result != 0 || load->record_count > 0)
		return result;
	return fc_reader_skip(&load->reader, fc_error_set(error, FC_EINVAL, "%s: holds no request", fc_text_name(text)),
			      error);
}

int fc_reader_check_opts(const struct fc_trace_opts *opts, struct fc_error *error)
{
	if (opts->concurrent_sessions < 1 || opts->concurrent_sessions > CONCURRENT_SESSIONS_MAX)
		return fc_error_set(error, FC_EINVAL, "%u concurrent sessions; allowed: 1 to %u",
				    opts->concurrent_sessions, CONCURRENT_SESSIONS_MAX);
	if (opts->block_tokens > BLOCK_TOKENS_MAX)
		return fc_error_set(error, FC_EINVAL, "%u tokens in a block; allowed: 0 to %u", opts->block_tokens,
				    BLOCK_TOKENS_MAX);
	return 0;
}

static uint64_t found_count(const struct load *load)
{
	return fc_build_request_count(load->reader.build) + load->reader.without_input_count;
}

/* Reads all paths into the builder. */
static int take_paths(struct load *load, const char *const *paths, size_t path_count, uint64_t *ignored_count,
		      struct fc_error *error)
{
	int result = 0;
	for (size_t i = 0; i < path_count && result == 0; i++) {
		uint64_t before = found_count(load);
		result = fc_source_walk(paths[i], take_text, load, ignored_count, error);
		uint64_t skip = load->reader.opts->skip;
		bool is_skipping = skip > 0 && load->reader.record_count <= skip;
		if (result == 0 && !is_skipping && found_count(load) == before)
			result = fc_error_set(error, FC_EINVAL, "%s: holds no request", paths[i]);
	}
	return result < 0 ? result : 0;
}

static int load_all(struct load *load, const char *const *paths, size_t path_count, struct fc_trace **trace,
		    struct fc_error *error)
{
	uint64_t ignored_count = 0;
	int result = take_paths(load, paths, path_count, &ignored_count, error);
	if (result == 0 && fc_build_request_count(load->reader.build) == 0 && load->reader.record_count > 0)
		result =
			fc_error_set(error, FC_EINVAL,
				     "nothing is left of a trace of %llu sessions or requests; requests without input: "
				     "%llu",
				     (unsigned long long)load->reader.record_count,
				     (unsigned long long)load->reader.without_input_count);
	else if (result == 0 && fc_build_request_count(load->reader.build) == 0)
		result = fc_error_set(error, FC_EINVAL, "no trace is named; needed: a file, a folder, or -");
	if (result == 0)
		result = fc_build_finish(load->reader.build, trace, error);
	if (result != 0)
		return result;
	(*trace)->skipped_count = load->reader.skipped_count;
	(*trace)->skipped_first = load->reader.skipped_first;
	(*trace)->without_input_count = load->reader.without_input_count;
	(*trace)->ignored_file_count = ignored_count;
	return 0;
}

int fc_trace_load(const char *const *paths, size_t path_count, const struct fc_trace_opts *opts,
		  struct fc_trace **trace, struct fc_error *error)
{
	struct fc_error fault = {0}; /* also written for records that are then skipped */
	struct load load = {.reader = {.opts = opts}};
	*trace = NULL;
	int result = fc_reader_check_opts(opts, &fault);
	if (result == 0)
		result = fc_build_new(opts, &load.reader.build, &fault);
	if (result == 0)
		result = load_all(&load, paths, path_count, trace, &fault);
	fc_build_free(load.reader.build);
	fc_json_ids_deinit(&load.reader.ids);
	fc_idmap_deinit(&load.reader.chats);
	fc_cut_deinit(&load.reader.cut);
	if (result != 0 && error != NULL)
		*error = fault;
	return result;
}

/* The Claude Code format: each record is a session,
 *
 *   {"id": name, "block_size": tokens, "hash_id_scope": "local", "tool_tokens": n, "system_tokens": n, "requests": [
 *      {"t": seconds, "type": "n" or "s", "in": tokens, "out": tokens, "hash_ids": [block, ...]},
 *      {"t": seconds, "type": "subagent", "tool_tokens": n, "system_tokens": n, "requests": [as above, t from the
 * marker]}]}
 *
 * and more members that nothing here needs. Ids mean something inside the session only and cover the full blocks of the
 * input. Requests become lines: all plain ones the main line, each subagent one of its own, every line sorted by time.
 */
#include "trace/reader.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_TOKENS_MAX (1u << 30)

/* Where the requests of a line stand: the array, and its place. */
struct list {
	const struct fc_json_text *text;
	const struct fc_json_at *at; /* of the array */
	const json_t *array;
	uint64_t start_ns; /* that their times count from */
};

/* A request of a line, before sorting. */
struct entry {
	uint64_t time_ns;
	size_t index; /* in the array */
};

struct session {
	const char *name;
	uint64_t block_tokens;
	uint64_t tool_tokens, system_tokens;
	const json_t *requests;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *first = a, *second = b;
	if (first->time_ns != second->time_ns)
		return first->time_ns < second->time_ns ? -1 : 1;
	return first->index < second->index ? -1 : first->index > second->index;
}

static bool is_subagent(const json_t *request)
{
	const char *type = json_string_value(json_object_get(request, "type"));
	return type != NULL && strcmp(type, "subagent") == 0;
}

static int read_time(const struct list *list, const struct fc_json_at *at, const json_t *request, uint64_t *time_ns,
		     struct fc_error *error)
{
	struct fc_json_at member = {.parent = at, .key = "t"};
	int result = fc_json_time(list->text, &member, json_object_get(request, "t"), 1000000000, FC_JSON_SPAN_NS_MAX,
				  time_ns, error);
	*time_ns += list->start_ns;
	return result;
}

/* Checks what sorting needs: that it is a plain request, and its time. */
static int read_entry(const struct list *list, size_t index, struct entry *entry, struct fc_error *error)
{
	struct fc_json_at at = {.parent = list->at, .index = index};
	const json_t *request = json_array_get(list->array, index);
	if (!json_is_object(request))
		return fc_json_refuse(list->text, &at, "an object", error);
	const char *type = json_string_value(json_object_get(request, "type"));
	struct fc_json_at type_at = {.parent = &at, .key = "type"};
	if (type == NULL || (strcmp(type, "n") != 0 && strcmp(type, "s") != 0))
		return fc_json_refuse(list->text, &type_at, "\"n\", \"s\", or in a session also \"subagent\"", error);
	entry->index = index;
	return read_time(list, &at, request, &entry->time_ns, error);
}

static int read_request(struct fc_reader *reader, const struct list *list, const struct entry *entry,
			uint32_t block_tokens, struct fc_error *error)
{
	struct fc_json_at at = {.parent = list->at, .index = entry->index};
	const json_t *request = json_array_get(list->array, entry->index);
	struct fc_build_request made = {.time_ns = entry->time_ns};
	int result = fc_json_member_integer(list->text, &at, request, "in", INT64_MAX, &made.input_tokens, error);
	if (result == 0)
		result = fc_json_member_integer(list->text, &at, request, "out", INT64_MAX, &made.output_tokens, error);
	if (result == 0)
		result = fc_reader_ids(reader, list->text, &at, request, made.input_tokens, block_tokens, error);
	if (result != 0 || fc_reader_is_without_input(reader, &made))
		return result;
	made.ids = reader->ids.items;
	made.id_count = reader->ids.count;
	return fc_build_request(reader->build, &made, error);
}

/* The entries of the list that are plain requests, by time. */
static int sort_entries(struct fc_reader *reader, const struct list *list, bool has_subagents, struct entry *entries,
			size_t *entry_count, struct fc_error *error)
{
	*entry_count = 0;
	for (size_t i = 0; i < json_array_size(list->array); i++) {
		if (has_subagents && is_subagent(json_array_get(list->array, i)))
			continue;
		int result = read_entry(list, i, &entries[*entry_count], error);
		*entry_count += result == 0;
		result = fc_reader_skip(reader, result, error);
		if (result != 0)
			return result;
	}
	qsort(entries, *entry_count, sizeof(*entries), compare_entries);
	return 0;
}

/* Reads the requests of a line, which has been started. */
static int read_line(struct fc_reader *reader, const struct list *list, bool has_subagents, uint32_t block_tokens,
		     struct fc_error *error)
{
	struct entry *entries = calloc(json_array_size(list->array) + 1, sizeof(*entries));
	if (entries == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory for its requests", list->text->file);
	size_t entry_count;
	int result = sort_entries(reader, list, has_subagents, entries, &entry_count, error);
	for (size_t i = 0; result == 0 && i < entry_count; i++) {
		result = read_request(reader, list, &entries[i], block_tokens, error);
		result = fc_reader_skip(reader, result, error);
	}
	free(entries);
	return result;
}

static int read_prompt(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *object,
		       uint64_t *tool_tokens, uint64_t *system_tokens, struct fc_error *error)
{
	int result = fc_json_member_integer(text, at, object, "tool_tokens", INT64_MAX, tool_tokens, error);
	return result != 0 ? result
			   : fc_json_member_integer(text, at, object, "system_tokens", INT64_MAX, system_tokens, error);
}

/* One subagent, `at` being the marker's place. */
static int read_subagent(struct fc_reader *reader, const struct list *session, const struct fc_json_at *at,
			 const json_t *marker, uint32_t block_tokens, struct fc_error *error)
{
	struct fc_json_at requests_at = {.parent = at, .key = "requests"};
	struct list list = {.text = session->text, .at = &requests_at, .array = json_object_get(marker, "requests")};
	uint64_t tool_tokens, system_tokens;
	if (!json_is_array(list.array))
		return fc_json_refuse(session->text, &requests_at, "an array of requests", error);
	int result = read_time(session, at, marker, &list.start_ns, error);
	if (result == 0)
		result = read_prompt(session->text, at, marker, &tool_tokens, &system_tokens, error);
	if (result == 0)
		result = fc_build_line(reader->build, FC_TRACE_KIND_SUBAGENT, tool_tokens, system_tokens, error);
	return result != 0 ? result : read_line(reader, &list, false, block_tokens, error);
}

static int read_subagents(struct fc_reader *reader, const struct list *session, uint32_t block_tokens,
			  struct fc_error *error)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(session->array); i++) {
		struct fc_json_at at = {.parent = session->at, .index = i};
		const json_t *marker = json_array_get(session->array, i);
		if (!is_subagent(marker))
			continue;
		result = read_subagent(reader, session, &at, marker, block_tokens, error);
		result = fc_reader_skip(reader, result, error);
	}
	return result;
}

/* Checks the members of the session itself. */
static int read_head(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *object,
		     struct session *session, struct fc_error *error)
{
	struct fc_json_at id = {.parent = at, .key = "id"};
	struct fc_json_at scope = {.parent = at, .key = "hash_id_scope"};
	struct fc_json_at block_size = {.parent = at, .key = "block_size"};
	struct fc_json_at requests = {.parent = at, .key = "requests"};
	session->name = json_string_value(json_object_get(object, "id"));
	if (session->name == NULL || session->name[0] == '\0')
		return fc_json_refuse(text, &id, "the session's name", error);
	const char *scope_name = json_string_value(json_object_get(object, "hash_id_scope"));
	if (scope_name == NULL || strcmp(scope_name, "local") != 0)
		return fc_json_refuse(text, &scope, "\"local\"", error);
	int result = fc_json_integer(text, &block_size, json_object_get(object, "block_size"), 1, BLOCK_TOKENS_MAX,
				     &session->block_tokens, error);
	if (result == 0)
		result = read_prompt(text, at, object, &session->tool_tokens, &session->system_tokens, error);
	if (result != 0)
		return result;
	session->requests = json_object_get(object, "requests");
	if (!json_is_array(session->requests) || json_array_size(session->requests) == 0)
		return fc_json_refuse(text, &requests, "an array of at least one request", error);
	return 0;
}

int fc_claude_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
		   const json_t *object, struct fc_error *error)
{
	struct session session;
	int result = read_head(text, at, object, &session, error);
	if (result != 0)
		return result;
	uint32_t block_tokens = (uint32_t)session.block_tokens;
	result = fc_build_session(reader->build, session.name, text->file, block_tokens, error);
	if (result != 0)
		return fc_error_wrap(error, result, "%s:%llu", text->file, (unsigned long long)text->first_line);
	struct fc_json_at requests_at = {.parent = at, .key = "requests"};
	struct list list = {.text = text, .at = &requests_at, .array = session.requests};
	result = fc_build_line(reader->build, FC_TRACE_KIND_MAIN, session.tool_tokens, session.system_tokens, error);
	if (result == 0)
		result = read_line(reader, &list, true, block_tokens, error);
	if (result == 0 && reader->opts->include_subagents)
		result = read_subagents(reader, &list, block_tokens, error);
	return result;
}

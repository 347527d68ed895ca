#include "replay/paths.h"

#include <stdlib.h>
#include <string.h>

int fc_paths_init(struct fc_paths *paths, const struct fc_trace *trace, struct fc_oracle *oracle, const char *model,
		  bool is_storing_replies)
{
	*paths = (struct fc_paths){.trace = trace, .oracle = oracle, .is_storing_replies = is_storing_replies};
	paths->lines = calloc((size_t)trace->line_count + 1, sizeof(*paths->lines));
	if (paths->lines == NULL)
		return FC_ENOMEM;
	return fc_namespace_init(&paths->name_space, &(struct fc_namespace_opts){.model = model, .rank_count = 1},
				 NULL);
}

static void path_deinit(struct fc_turn_path *path)
{
	free(path->keys);
	free(path->numbers);
	*path = (struct fc_turn_path){0};
}

void fc_paths_deinit(struct fc_paths *paths)
{
	for (uint32_t line = 0; paths->lines != NULL && line < paths->trace->line_count; line++)
		path_deinit(&paths->lines[line]);
	free(paths->lines);
	paths->lines = NULL;
}

static int reserve(struct fc_turn_path *path, uint64_t count)
{
	if (count <= path->room)
		return FC_OK;
	uint64_t room = count + count / 2;
	struct fc_key *keys = realloc(path->keys, room * sizeof(*keys));
	if (keys != NULL)
		path->keys = keys;
	uint32_t *numbers = realloc(path->numbers, room * sizeof(*numbers));
	if (numbers != NULL)
		path->numbers = numbers;
	if (keys == NULL || numbers == NULL)
		return FC_ENOMEM;
	path->room = room;
	return FC_OK;
}

/* Puts the keys of `ids` behind the first `at` blocks; an id is hashed as two tokens. */
static int append(struct fc_paths *paths, struct fc_turn_path *path, uint64_t at, const uint64_t *ids, uint64_t count)
{
	int code = reserve(path, at + count);
	for (uint64_t i = at; code == FC_OK && i < at + count; i++) {
		uint64_t id = ids[i - at];
		uint32_t tokens[2] = {(uint32_t)id, (uint32_t)(id >> 32)};
		const struct fc_key *parent = i == 0 ? NULL : &path->keys[i - 1];
		code = fc_key_chain(&paths->name_space, parent, tokens, 2, 1, &path->keys[i]);
		if (code == FC_OK)
			code = fc_oracle_number(paths->oracle, path->keys[i], &path->numbers[i]);
	}
	path->count = at + count;
	return code;
}

int fc_paths_begin(struct fc_paths *paths, uint32_t number, struct fc_turn_path **result)
{
	const struct fc_trace *trace = paths->trace;
	const struct fc_trace_request *request = &trace->requests[number];
	bool has_line = request->line != FC_TRACE_NONE;
	struct fc_turn_path *path = has_line ? &paths->lines[request->line] : calloc(1, sizeof(*path));
	if (path == NULL)
		return FC_ENOMEM;
	fc_check(request->prefix_count == 0 || (path->keys != NULL && path->request == request->previous));
	int code = append(paths, path, request->prefix_count, trace->suffix_ids + request->suffix_start,
			  request->suffix_count);
	path->input_count = path->count;
	path->request = number;
	uint64_t stored_count = fc_trace_stored_count(trace, number, paths->is_storing_replies);
	if (code == FC_OK && stored_count > path->count)
		code = append(paths, path, path->count, trace->suffix_ids + trace->requests[request->next].suffix_start,
			      stored_count - path->count);
	if (code == FC_OK)
		*result = path;
	else if (!has_line) {
		path_deinit(path);
		free(path);
	}
	return code;
}

void fc_paths_end(struct fc_paths *paths, struct fc_turn_path *path)
{
	const struct fc_trace_request *request = &paths->trace->requests[path->request];
	bool has_line = request->line != FC_TRACE_NONE;
	if (!has_line || request->next == FC_TRACE_NONE)
		path_deinit(path);
	if (!has_line)
		free(path);
}

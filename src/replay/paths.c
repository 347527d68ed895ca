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

int fc_paths_init_from(struct fc_paths *paths, const struct fc_path_table *table, struct fc_oracle *oracle,
		       bool is_storing_replies)
{
	*paths = (struct fc_paths){
		.trace = table->trace, .oracle = oracle, .is_storing_replies = is_storing_replies, .table = table};
	paths->lines = calloc((size_t)table->trace->line_count + 1, sizeof(*paths->lines));
	return paths->lines == NULL ? FC_ENOMEM : fc_oracle_give(oracle, table->number_count);
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
	if (code == FC_OK && paths->table != NULL && count > 0) {
		uint64_t place = (uint64_t)(ids - paths->trace->suffix_ids);
		memcpy(path->keys + at, paths->table->keys + place, count * sizeof(*path->keys));
		memcpy(path->numbers + at, paths->table->numbers + place, count * sizeof(*path->numbers));
		path->count = at + count;
		return FC_OK;
	}
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

/* ---- the table ---- */

static int fill_table(struct fc_path_table *table, struct fc_paths *paths)
{
	int code = FC_OK;
	for (uint32_t i = 0; i < table->trace->request_count && code == FC_OK; i++) {
		const struct fc_trace_request *request = &table->trace->requests[i];
		struct fc_turn_path *path;
		code = fc_paths_begin(paths, i, &path);
		if (code != FC_OK)
			break;
		for (uint64_t k = 0; k < request->suffix_count; k++) {
			table->keys[request->suffix_start + k] = path->keys[request->prefix_count + k];
			table->numbers[request->suffix_start + k] = path->numbers[request->prefix_count + k];
		}
		fc_paths_end(paths, path);
	}
	return code;
}

int fc_path_table_init(struct fc_path_table *table, const struct fc_trace *trace, const char *model)
{
	static const struct fc_geometry plain = {
		.block_tokens = 1,
		.layer_count = 1,
		.group_count = 1,
		.groups = {{.tokens_per_block = 1, .slice_bytes = {1}}},
	}; /* numbers do not depend on it */
	struct fc_oracle *oracle = NULL;
	struct fc_paths paths = {0};
	*table = (struct fc_path_table){
		.trace = trace,
		.keys = calloc(trace->suffix_id_count + 1, sizeof(*table->keys)),
		.numbers = calloc(trace->suffix_id_count + 1, sizeof(*table->numbers)),
	};
	int code = table->keys == NULL || table->numbers == NULL ? FC_ENOMEM : fc_oracle_new(&oracle, &plain);
	if (code == FC_OK)
		code = fc_paths_init(&paths, trace, oracle, model, false);
	if (code == FC_OK)
		code = fill_table(table, &paths);
	if (code == FC_OK)
		table->number_count = fc_oracle_count(oracle);
	if (paths.lines != NULL)
		fc_paths_deinit(&paths);
	fc_oracle_free(oracle);
	return code;
}

void fc_path_table_deinit(struct fc_path_table *table)
{
	free(table->keys);
	free(table->numbers);
	*table = (struct fc_path_table){0};
}

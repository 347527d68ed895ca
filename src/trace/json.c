/* See json.h. To find the place of a value, the scanner below walks the text once more and keeps the path to the value
 * that it stands at, written as in an error: requests[3].hash_ids[7]. It stops at a wanted path, or at a wanted offset
 * (where jansson gave up). It only ever reads text up to there, which jansson has accepted, and stops at anything it
 * does not understand. */
#include "trace/json.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 256
#define DEPTH_MAX 32
#define EXCERPT_BYTES 48
#define VALUES_MAX (4 << 20) /* that are made objects of; a gibibyte of them */

struct scan {
	const char *bytes;
	size_t byte_count;
	size_t at;
	const char *wanted_path; /* or NULL, then: */
	size_t wanted_offset;
	char path[PATH_BYTES];
	char found_path[PATH_BYTES]; /* of the wanted value, or of the last value before the wanted offset */
	size_t found_at;
	bool is_done;
};

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->byte_count && memchr(" \t\r\n", scan->bytes[scan->at], 4) != NULL)
		scan->at++;
}

static bool take(struct scan *scan, char wanted)
{
	skip_space(scan);
	if (scan->at >= scan->byte_count || scan->bytes[scan->at] != wanted)
		return false;
	scan->at++;
	return true;
}

/* Skips a string, its opening quote included. */
static void skip_string(struct scan *scan)
{
	for (scan->at++; scan->at < scan->byte_count && scan->bytes[scan->at] != '"'; scan->at++)
		scan->at += scan->bytes[scan->at] == '\\';
	scan->at++;
}

static void skip_scalar(struct scan *scan)
{
	if (scan->at < scan->byte_count && scan->bytes[scan->at] == '"') {
		skip_string(scan);
		return;
	}
	while (scan->at < scan->byte_count && memchr(",]} \t\r\n", scan->bytes[scan->at], 7) == NULL)
		scan->at++;
}

/* Notes that a value starts here; says whether the search ends. */
static bool arrive(struct scan *scan)
{
	if (scan->at >= scan->byte_count)
		return true;
	if (scan->wanted_path == NULL ? scan->at >= scan->wanted_offset : strcmp(scan->path, scan->wanted_path) != 0)
		return scan->wanted_path == NULL;
	memcpy(scan->found_path, scan->path, PATH_BYTES);
	scan->found_at = scan->at;
	return scan->wanted_path != NULL;
}

static void scan_value(struct scan *scan, unsigned depth);

static void scan_object(struct scan *scan, unsigned depth)
{
	size_t path_bytes = strlen(scan->path);
	do {
		skip_space(scan);
		size_t key_at = scan->at + 1;
		if (scan->at >= scan->byte_count || scan->bytes[scan->at] != '"')
			break;
		skip_string(scan);
		if (scan->at > scan->byte_count || !take(scan, ':'))
			break;
		const char *key_end = memchr(scan->bytes + key_at, '"', scan->at - key_at);
		snprintf(scan->path + path_bytes, PATH_BYTES - path_bytes, "%s%.*s", path_bytes > 0 ? "." : "",
			 (int)(key_end - (scan->bytes + key_at)), scan->bytes + key_at);
		scan_value(scan, depth + 1);
		scan->path[path_bytes] = '\0';
	} while (!scan->is_done && take(scan, ','));
	if (!scan->is_done && !take(scan, '}'))
		scan->is_done = true;
}

static void scan_array(struct scan *scan, unsigned depth)
{
	size_t path_bytes = strlen(scan->path);
	if (take(scan, ']'))
		return;
	size_t index = 0;
	do {
		snprintf(scan->path + path_bytes, PATH_BYTES - path_bytes, "[%zu]", index++);
		scan_value(scan, depth + 1);
		scan->path[path_bytes] = '\0';
	} while (!scan->is_done && take(scan, ','));
	if (!scan->is_done && !take(scan, ']'))
		scan->is_done = true;
}

static void scan_value(struct scan *scan, unsigned depth)
{
	skip_space(scan);
	if (depth > DEPTH_MAX || arrive(scan)) {
		scan->is_done = true;
		return;
	}
	if (take(scan, '{'))
		scan_object(scan, depth);
	else if (take(scan, '['))
		scan_array(scan, depth);
	else
		skip_scalar(scan);
}

/* Ends the path so that "text: path: " reads well for the root, too. */
static const char *shown_path(const char *path)
{
	return path[0] == '\0' ? "(whole record)" : path;
}

static unsigned long long line_of(const struct fc_json_text *text, size_t offset)
{
	unsigned long long line = text->first_line;
	for (size_t i = 0; i < offset && i < text->byte_count; i++)
		line += text->bytes[i] == '\n';
	return line;
}

/* The text of the value at `offset`, cut to what fits in a sentence, and without bytes that would upset a terminal. */
static void excerpt(const struct fc_json_text *text, size_t offset, char out[EXCERPT_BYTES + 4])
{
	struct scan scan = {
		.bytes = text->bytes, .byte_count = text->byte_count, .at = offset, .wanted_offset = SIZE_MAX};
	scan_value(&scan, 0);
	size_t end = (size_t)fc_min_u64(scan.at, text->byte_count);
	size_t bytes = 0;
	for (; offset + bytes < end && bytes < EXCERPT_BYTES; bytes++) {
		char byte = text->bytes[offset + bytes];
		out[bytes] = byte >= ' ' && byte <= '~' ? byte : '?';
	}
	strcpy(out + bytes, offset + bytes < end ? "..." : "");
}

static void write_path(const struct fc_json_at *at, char *path)
{
	path[0] = '\0';
	if (at->parent == NULL)
		return;
	write_path(at->parent, path);
	size_t bytes = strlen(path);
	if (at->key == NULL)
		snprintf(path + bytes, PATH_BYTES - bytes, "[%zu]", at->index);
	else
		snprintf(path + bytes, PATH_BYTES - bytes, "%s%s", bytes > 0 ? "." : "", at->key);
}

static bool find_path(const struct fc_json_text *text, const char *path, size_t *offset)
{
	struct scan scan = {
		.bytes = text->bytes, .byte_count = text->byte_count, .wanted_path = path, .found_at = SIZE_MAX};
	scan_value(&scan, 0);
	*offset = scan.found_at;
	return scan.found_at != SIZE_MAX;
}

int fc_json_refuse(const struct fc_json_text *text, const struct fc_json_at *at, const char *allowed,
		   struct fc_error *error)
{
	char path[PATH_BYTES], value[EXCERPT_BYTES + 4];
	size_t offset;
	write_path(at, path);
	if (find_path(text, path, &offset)) {
		excerpt(text, offset, value);
		return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: %s; allowed: %s", text->file, line_of(text, offset),
				    shown_path(path), value, allowed);
	}
	char parent[PATH_BYTES];
	write_path(at->parent != NULL ? at->parent : at, parent);
	if (!find_path(text, parent, &offset))
		offset = 0;
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: missing; needed: %s", text->file, line_of(text, offset),
			    shown_path(path), allowed);
}

static int refuse_nul(const struct fc_json_text *text, struct fc_error *error)
{
	size_t offset = (size_t)((const char *)memchr(text->bytes, '\0', text->byte_count) - text->bytes);
	struct scan scan = {.bytes = text->bytes, .byte_count = text->byte_count, .wanted_offset = offset};
	scan_value(&scan, 0);
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: a NUL byte; allowed: JSON text", text->file,
			    line_of(text, offset), shown_path(scan.found_path));
}

/* A number that does not fit into jansson's. Ids may be larger than those: where a list was left to jansson, it is the
 * item for which it was left that is wrong. */
static int refuse_overflow(const struct fc_json_text *text, struct scan *scan, struct fc_error *error)
{
	char value[EXCERPT_BYTES + 4];
	const char *integer = "an integer from 0 to 9223372036854775807";
	excerpt(text, scan->found_at, value);
	bool is_integer = strpbrk(value, ".eE") == NULL;
	if (is_integer && text->is_cut && text->cut->bad_at != UINT64_MAX) {
		*scan = (struct scan){.bytes = text->bytes,
				      .byte_count = text->byte_count,
				      .wanted_offset = (size_t)text->cut->bad_at + 1};
		scan_value(scan, 0);
		excerpt(text, scan->found_at, value);
		integer = FC_JSON_ID_RANGE;
	}
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: %s; allowed: %s", text->file, line_of(text, scan->found_at),
			    shown_path(scan->found_path), value, is_integer ? integer : "a number up to 1.8e308");
}

/* jansson's own words, with the field that it stood at; for a number that does not fit, with the number. */
static int refuse_syntax(const struct fc_json_text *text, json_error_t *fault, struct fc_error *error)
{
	if (json_error_code(fault) == json_error_out_of_memory)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory for a record", text->file);
	size_t offset = fault->position > 0 ? (size_t)fault->position : 0;
	if (text->is_cut)
		offset = (size_t)fc_cut_place(text->cut, offset);
	struct scan scan = {.bytes = text->bytes, .byte_count = text->byte_count, .wanted_offset = offset};
	scan_value(&scan, 0);
	if (json_error_code(fault) == json_error_numeric_overflow)
		return refuse_overflow(text, &scan, error);
	for (char *byte = fault->text; *byte != '\0'; byte++)
		*byte = *byte >= ' ' && *byte <= '~' ? *byte : '?';
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: not JSON: %s", text->file, line_of(text, offset),
			    shown_path(scan.found_path), fault->text);
}

/* At least as many values as the parser would make objects of, which take up to 250 bytes each, however short they are
 * written; more than VALUES_MAX are not counted. */
static uint64_t value_count(const char *bytes, size_t byte_count)
{
	uint64_t count = 1;
	bool is_string = false;
	for (size_t i = 0; i < byte_count && count <= VALUES_MAX; i++) {
		if (bytes[i] == '"')
			is_string = !is_string;
		else if (is_string)
			i += bytes[i] == '\\';
		else
			count += bytes[i] == ',' || bytes[i] == '{' || bytes[i] == '[';
	}
	return count;
}

/* Makes objects of the text, which is the record's or what is left of it without its lists. */
static int load(const struct fc_json_text *text, const char *bytes, size_t byte_count, json_t **root,
		struct fc_error *error)
{
	json_error_t fault;
	if (value_count(bytes, byte_count) > VALUES_MAX)
		return fc_error_set(
			error, FC_EINVAL,
			"%s:%llu: more than %d values besides whole lists of ids; allowed: at most that many in a "
			"line or document",
			text->file, (unsigned long long)text->first_line, VALUES_MAX);
	*root = json_loadb(bytes, byte_count, JSON_REJECT_DUPLICATES, &fault);
	return *root != NULL ? 0 : refuse_syntax(text, &fault, error);
}

int fc_json_parse(struct fc_json_text *text, json_t **root, struct fc_error *error)
{
	int result = 0;
	*root = NULL;
	if (memchr(text->bytes, '\0', text->byte_count) != NULL) /* jansson passes over one behind a number */
		return refuse_nul(text, error);
	if (text->cut != NULL)
		result = fc_cut_record(text->cut, text->bytes, text->byte_count);
	if (result < 0)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory for a record", text->file);
	text->is_cut = result == 1;
	if (text->is_cut)
		return load(text, text->cut->text, text->cut->text_bytes, root, error);
	return load(text, text->bytes, text->byte_count, root, error);
}

int fc_json_integer(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *value, uint64_t min,
		    uint64_t max, uint64_t *result, struct fc_error *error)
{
	json_int_t number = json_integer_value(value);
	if (json_is_integer(value) && (uint64_t)number >= min && (uint64_t)number <= max) { /* negative: above max */
		*result = (uint64_t)number;
		return 0;
	}
	char allowed[96];
	snprintf(allowed, sizeof(allowed), "an integer from %llu to %llu", (unsigned long long)min,
		 (unsigned long long)max);
	return fc_json_refuse(text, at, allowed, error);
}

int fc_json_time(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *value, uint64_t unit_ns,
		 uint64_t max_ns, uint64_t *result_ns, struct fc_error *error)
{
	uint64_t whole = (uint64_t)json_integer_value(value);
	if (json_is_integer(value) && whole <= max_ns / unit_ns) { /* negative: above that */
		*result_ns = whole * unit_ns;
		return 0;
	}
	double time_ns = json_is_real(value) ? json_real_value(value) * (double)unit_ns : -1;
	if (time_ns >= 0 && time_ns < (double)max_ns) {
		*result_ns = fc_min_u64((uint64_t)llround(time_ns), max_ns);
		return 0;
	}
	char allowed[96];
	snprintf(allowed, sizeof(allowed), "a number from 0 to %llu", (unsigned long long)(max_ns / unit_ns));
	return fc_json_refuse(text, at, allowed, error);
}

int fc_json_member_integer(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *object,
			   const char *key, uint64_t max, uint64_t *result, struct fc_error *error)
{
	struct fc_json_at member = {.parent = at, .key = key};
	return fc_json_integer(text, &member, json_object_get(object, key), 0, max, result, error);
}

static int reserve_ids(struct fc_json_ids *ids, size_t count)
{
	if (count <= ids->capacity)
		return 0;
	uint64_t *items = realloc(ids->items, count * sizeof(*items));
	if (items == NULL)
		return FC_ENOMEM;
	ids->items = items;
	ids->capacity = count;
	return 0;
}

static int no_memory_for_ids(const struct fc_json_text *text, uint64_t count, struct fc_error *error)
{
	return fc_error_set(error, FC_ENOMEM, "%s: no memory for %llu ids", text->file, (unsigned long long)count);
}

static int copy_cut_ids(const struct fc_json_text *text, int64_t number, struct fc_json_ids *ids,
			struct fc_error *error)
{
	const uint64_t *list = fc_cut_list(text->cut, number, &ids->count);
	if (reserve_ids(ids, ids->count) != 0)
		return no_memory_for_ids(text, ids->count, error);
	if (ids->count > 0)
		memcpy(ids->items, list, ids->count * sizeof(*list));
	return 0;
}

int fc_json_member_ids(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *object,
		       const char *key, struct fc_json_ids *ids, struct fc_error *error)
{
	struct fc_json_at member = {.parent = at, .key = key};
	const json_t *array = json_object_get(object, key);
	if (text->is_cut && json_is_integer(array))
		return copy_cut_ids(text, json_integer_value(array), ids, error);
	if (!json_is_array(array))
		return fc_json_refuse(text, &member, "an array of integers", error);
	ids->count = json_array_size(array);
	if (reserve_ids(ids, ids->count) != 0)
		return no_memory_for_ids(text, ids->count, error);
	for (size_t i = 0; i < ids->count; i++) {
		struct fc_json_at item = {.parent = &member, .index = i};
		const json_t *id = json_array_get(array, i);
		if (!json_is_integer(id) || json_integer_value(id) < 0)
			return fc_json_refuse(text, &item, FC_JSON_ID_RANGE, error);
		ids->items[i] = (uint64_t)json_integer_value(id);
	}
	return 0;
}

void fc_json_ids_deinit(struct fc_json_ids *ids)
{
	free(ids->items);
	*ids = (struct fc_json_ids){0};
}

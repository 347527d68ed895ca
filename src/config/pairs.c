#include "config/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	const char *path;
	bool takes_lists;
	int (*each)(void *context, const struct fc_pair *pair);
	void *context;
	struct fc_error *error;
};

static int next_event(struct reader *reader, yaml_event_t *event)
{
	if (yaml_parser_parse(&reader->parser, event))
		return FC_OK;
	const char *what = reader->parser.problem != NULL ? reader->parser.problem : "out of memory";
	return fc_error_set(reader->error, FC_EINVAL, "%s:%zu: not YAML: %s", reader->path,
			    reader->parser.problem_mark.line + 1, what);
}

static int complain(struct reader *reader, const yaml_event_t *event, const char *sentence)
{
	return fc_error_set(reader->error, FC_EINVAL, "%s:%zu: %s", reader->path, event->start_mark.line + 1, sentence);
}

/* The next event, which has to be of this type. */
static int expect_event(struct reader *reader, yaml_event_type_t type, const char *sentence, yaml_event_t *event)
{
	int code = next_event(reader, event);
	if (code != FC_OK || event->type == type)
		return code;
	code = complain(reader, event, sentence);
	yaml_event_delete(event);
	return code;
}

/* Where a pair stands: in the file itself (list NULL), or in a mapping of a list. */
struct place {
	const char *list;
	size_t list_len, item;
};

static int deliver(struct reader *reader, const yaml_event_t *key, const yaml_event_t *value, const struct place *place,
		   bool is_first)
{
	struct fc_pair pair = {
		.key = (const char *)key->data.scalar.value,
		.key_len = key->data.scalar.length,
		.value = (const char *)value->data.scalar.value,
		.line = key->start_mark.line + 1,
		.list = place->list,
		.list_len = place->list_len,
		.item = place->item,
		.is_first = is_first,
	};
	if (strlen(pair.value) != value->data.scalar.length)
		return complain(reader, value, "a value must not contain a NUL byte");
	return reader->each(reader->context, &pair);
}

static int deliver_empty(struct reader *reader, const yaml_event_t *key, const struct place *place)
{
	struct fc_pair pair = {
		.line = key->start_mark.line + 1, .list = place->list, .list_len = place->list_len, .is_empty = true};
	return reader->each(reader->context, &pair);
}

/* The mappings of a list; its key has been read, and the event that begins it. */
static int read_list(struct reader *reader, const yaml_event_t *key);

/* One "key: value"; `key` is the key's event. */
static int read_pair(struct reader *reader, const yaml_event_t *key, const struct place *place, bool is_first)
{
	if (key->type != YAML_SCALAR_EVENT)
		return complain(reader, key, "a key must be a plain name");
	yaml_event_t value;
	int code = next_event(reader, &value);
	if (code != FC_OK)
		return code;
	if (value.type == YAML_SCALAR_EVENT)
		code = deliver(reader, key, &value, place, is_first);
	else if (value.type == YAML_SEQUENCE_START_EVENT && reader->takes_lists && place->list == NULL)
		code = read_list(reader, key);
	else
		code = complain(reader, &value, "a value must be a single word or number, not a list or a mapping");
	yaml_event_delete(&value);
	return code;
}

static int read_mapping(struct reader *reader, const struct place *place)
{
	for (bool is_first = true;; is_first = false) {
		yaml_event_t event;
		int code = next_event(reader, &event);
		if (code != FC_OK)
			return code;
		bool is_end = event.type == YAML_MAPPING_END_EVENT;
		if (is_end && is_first && place->list != NULL)
			code = complain(reader, &event, "an entry of a list must not be empty");
		if (!is_end)
			code = read_pair(reader, &event, place, is_first);
		yaml_event_delete(&event);
		if (is_end || code != FC_OK)
			return code;
	}
}

static int read_list(struct reader *reader, const yaml_event_t *key)
{
	struct place place = {(const char *)key->data.scalar.value, key->data.scalar.length, 0};
	for (;; place.item++) {
		yaml_event_t event;
		int code = next_event(reader, &event);
		if (code != FC_OK)
			return code;
		bool is_end = event.type == YAML_SEQUENCE_END_EVENT;
		if (event.type == YAML_MAPPING_START_EVENT)
			code = read_mapping(reader, &place);
		else if (!is_end)
			code = complain(reader, &event, "an entry of a list must be lines of \"key: value\"");
		yaml_event_delete(&event);
		if (is_end && place.item == 0)
			return deliver_empty(reader, key, &place);
		if (is_end || code != FC_OK)
			return code;
	}
}

/* Stream, one document with one mapping in it, end. A file without a document sets nothing. */
static int read_stream(struct reader *reader)
{
	yaml_event_t event;
	int code = expect_event(reader, YAML_STREAM_START_EVENT, "not a YAML stream", &event);
	if (code != FC_OK)
		return code;
	yaml_event_delete(&event);
	code = next_event(reader, &event);
	if (code != FC_OK)
		return code;
	bool is_empty = event.type == YAML_STREAM_END_EVENT;
	yaml_event_delete(&event);
	if (is_empty)
		return FC_OK;
	code = expect_event(reader, YAML_MAPPING_START_EVENT, "expected lines of \"key: value\"", &event);
	if (code != FC_OK)
		return code;
	yaml_event_delete(&event);
	code = read_mapping(reader, &(struct place){.list = NULL});
	if (code != FC_OK)
		return code;
	code = expect_event(reader, YAML_DOCUMENT_END_EVENT, "expected the end of the settings", &event);
	if (code != FC_OK)
		return code;
	yaml_event_delete(&event);
	code = expect_event(reader, YAML_STREAM_END_EVENT, "a second document; settings stand in one", &event);
	if (code == FC_OK)
		yaml_event_delete(&event);
	return code;
}

static int read_file(struct reader *reader)
{
	FILE *file = fopen(reader->path, "re");
	if (file == NULL)
		return fc_error_set(reader->error, FC_ESYSTEM, "cannot read the settings file %s: %s", reader->path,
				    strerror(errno));
	int code = FC_ENOMEM;
	if (yaml_parser_initialize(&reader->parser)) {
		yaml_parser_set_input_file(&reader->parser, file);
		code = read_stream(reader);
		yaml_parser_delete(&reader->parser);
	} else {
		fc_error_set(reader->error, FC_ENOMEM, "no memory to read the settings file %s", reader->path);
	}
	fclose(file);
	return code;
}

int fc_pairs_read(const char *path, int (*each)(void *context, const struct fc_pair *pair), void *context,
		  struct fc_error *error)
{
	struct reader reader = {.path = path, .each = each, .context = context, .error = error};
	return read_file(&reader);
}

int fc_pairs_read_lists(const char *path, int (*each)(void *context, const struct fc_pair *pair), void *context,
			struct fc_error *error)
{
	struct reader reader = {.path = path, .takes_lists = true, .each = each, .context = context, .error = error};
	return read_file(&reader);
}

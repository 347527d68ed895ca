#include "config/pairs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	const char *path;
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

/* One "key: value"; `key` is the key's event. */
static int read_pair(struct reader *reader, const yaml_event_t *key)
{
	if (key->type != YAML_SCALAR_EVENT)
		return complain(reader, key, "a key must be a plain name");
	yaml_event_t value;
	int code = expect_event(reader, YAML_SCALAR_EVENT,
				"a value must be a single word or number, not a list or a mapping", &value);
	if (code != FC_OK)
		return code;
	struct fc_pair pair = {
		.key = (const char *)key->data.scalar.value,
		.key_len = key->data.scalar.length,
		.value = (const char *)value.data.scalar.value,
		.line = key->start_mark.line + 1,
	};
	if (strlen(pair.value) != value.data.scalar.length)
		code = complain(reader, &value, "a value must not contain a NUL byte");
	else
		code = reader->each(reader->context, &pair);
	yaml_event_delete(&value);
	return code;
}

static int read_mapping(struct reader *reader)
{
	for (;;) {
		yaml_event_t event;
		int code = next_event(reader, &event);
		if (code != FC_OK)
			return code;
		bool is_end = event.type == YAML_MAPPING_END_EVENT;
		if (!is_end)
			code = read_pair(reader, &event);
		yaml_event_delete(&event);
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
	code = read_mapping(reader);
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

int fc_pairs_read(const char *path, int (*each)(void *context, const struct fc_pair *pair), void *context,
		  struct fc_error *error)
{
	struct reader reader = {.path = path, .each = each, .context = context, .error = error};
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return fc_error_set(error, FC_ESYSTEM, "cannot read the settings file %s: %s", path, strerror(errno));
	int code = FC_ENOMEM;
	if (yaml_parser_initialize(&reader.parser)) {
		yaml_parser_set_input_file(&reader.parser, file);
		code = read_stream(&reader);
		yaml_parser_delete(&reader.parser);
	} else {
		fc_error_set(error, FC_ENOMEM, "no memory to read the settings file %s", path);
	}
	fclose(file);
	return code;
}

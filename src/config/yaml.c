/* The YAML file of settings: one mapping of keys to plain values, nothing nested.
 *
 *   memory: 4GiB
 *   ssd: 500GiB
 *   reclaim_order: lru       # keys are the long options with _ for -
 *
 * It is read event by event, because only events know their line, and every complaint names it. */
#include "config/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
	yaml_parser_t parser;
	struct fc_config *config;
	struct fc_config_problem *problem;
	const char *path;
	size_t seen_at[FC_OPTIONS_MAX]; /* line where each row's key stood, 0: not yet */
};

static int next_event(struct reader *reader, yaml_event_t *event)
{
	if (yaml_parser_parse(&reader->parser, event))
		return FC_OK;
	const char *what = reader->parser.problem != NULL ? reader->parser.problem : "out of memory";
	return fc_error_set(&reader->problem->error, FC_EINVAL, "%s:%zu: not YAML: %s", reader->path,
			    reader->parser.problem_mark.line + 1, what);
}

static int complain(struct reader *reader, const yaml_event_t *event, const char *sentence)
{
	return fc_error_set(&reader->problem->error, FC_EINVAL, "%s:%zu: %s", reader->path, event->start_mark.line + 1,
			    sentence);
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

static size_t row_of(const struct fc_option *option)
{
	return (size_t)(option - fc_option_at(0));
}

static int set_value(struct reader *reader, const struct fc_option *option, const yaml_event_t *event)
{
	char name[FC_OPTION_NAME_BYTES], place[FC_ERROR_TEXT_BYTES / 2];
	fc_option_spell(option, FC_SPELLING_KEY, name);
	snprintf(place, sizeof(place), "%s:%zu: %s", reader->path, event->start_mark.line + 1, name);
	const char *value = (const char *)event->data.scalar.value;
	if (strlen(value) != event->data.scalar.length)
		return complain(reader, event, "a value must not contain a NUL byte");
	if (option->type == FC_OPTION_TEXT) {
		char *copy = strdup(value);
		if (copy == NULL)
			return fc_error_set(&reader->problem->error, FC_ENOMEM, "%s: no memory", place);
		reader->config->owned_texts[row_of(option)] = copy;
		value = copy;
	}
	return fc_option_set(option, value, reader->config, place, &reader->problem->error);
}

static int find_key(struct reader *reader, const yaml_event_t *event, const struct fc_option **out)
{
	const char *name = (const char *)event->data.scalar.value;
	size_t name_len = event->data.scalar.length;
	size_t line = event->start_mark.line + 1;
	const struct fc_option *option = fc_option_find(FC_SPELLING_KEY, name, name_len, reader->config->command);
	if (option == NULL || option->is_command_line_only) {
		char place[FC_ERROR_TEXT_BYTES / 2];
		snprintf(place, sizeof(place), "%s:%zu: ", reader->path, line);
		return fc_config_unknown(reader->problem, place, FC_SPELLING_KEY, name, name_len,
					 reader->config->command);
	}
	size_t *seen_at = &reader->seen_at[row_of(option)];
	if (*seen_at != 0)
		return fc_error_set(&reader->problem->error, FC_EINVAL,
				    "%s:%zu: key \"%s\" stands twice, first in line %zu", reader->path, line, name,
				    *seen_at);
	*seen_at = line;
	*out = option;
	return FC_OK;
}

/* One "key: value"; `event` is the key. */
static int read_pair(struct reader *reader, const yaml_event_t *key)
{
	const struct fc_option *option = NULL;
	if (key->type != YAML_SCALAR_EVENT)
		return complain(reader, key, "a key must be a plain name");
	int code = find_key(reader, key, &option);
	if (code != FC_OK)
		return code;
	yaml_event_t value;
	code = expect_event(reader, YAML_SCALAR_EVENT,
			    "a value must be a single word or number, not a list or a mapping", &value);
	if (code != FC_OK)
		return code;
	code = set_value(reader, option, &value);
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

int fc_config_read_yaml(struct fc_config *config, const char *path, struct fc_config_problem *problem)
{
	struct reader reader = {.config = config, .problem = problem, .path = path};
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return fc_error_set(&problem->error, FC_ESYSTEM, "cannot read the settings file %s: %s", path,
				    strerror(errno));
	int code = FC_ENOMEM;
	if (yaml_parser_initialize(&reader.parser)) {
		yaml_parser_set_input_file(&reader.parser, file);
		code = read_stream(&reader);
		yaml_parser_delete(&reader.parser);
	} else {
		fc_error_set(&problem->error, FC_ENOMEM, "no memory to read the settings file %s", path);
	}
	fclose(file);
	return code;
}

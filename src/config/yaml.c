/* The YAML file of the program's settings: keys are the long options with _ for -. */
#include "config/option.h"
#include "config/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct fc_config *config;
	struct fc_config_problem *problem;
	const char *path;
	size_t seen_at[FC_OPTIONS_MAX]; /* line where each row's key stood, 0: not yet */
};

static size_t row_of(const struct fc_option *option)
{
	return (size_t)(option - fc_option_at(0));
}

static int set_value(struct reader *reader, const struct fc_option *option, const struct fc_pair *pair)
{
	char name[FC_OPTION_NAME_BYTES], place[FC_ERROR_TEXT_BYTES / 2];
	const char *value = pair->value;
	fc_option_spell(option, FC_SPELLING_KEY, name);
	snprintf(place, sizeof(place), "%s:%zu: %s", reader->path, pair->line, name);
	if (option->type == FC_OPTION_TEXT) {
		char *copy = strdup(value);
		if (copy == NULL)
			return fc_error_set(&reader->problem->error, FC_ENOMEM, "%s: no memory", place);
		reader->config->owned_texts[row_of(option)] = copy;
		value = copy;
	}
	return fc_option_set(option, value, reader->config, place, &reader->problem->error);
}

static int find_key(struct reader *reader, const struct fc_pair *pair, const struct fc_option **out)
{
	const struct fc_option *option =
		fc_option_find(FC_SPELLING_KEY, pair->key, pair->key_len, reader->config->command);
	bool is_foreign = option != NULL && reader->config->command == FC_COMMAND_DAEMON &&
			  (option->commands & FC_COMMAND_DAEMON) == 0; /* its file is for it alone */
	if (option == NULL || option->is_command_line_only || is_foreign) {
		char place[FC_ERROR_TEXT_BYTES / 2];
		snprintf(place, sizeof(place), "%s:%zu: ", reader->path, pair->line);
		return fc_config_unknown(reader->problem, place, FC_SPELLING_KEY, pair->key, pair->key_len,
					 reader->config->command);
	}
	size_t *seen_at = &reader->seen_at[row_of(option)];
	if (*seen_at != 0)
		return fc_error_set(&reader->problem->error, FC_EINVAL,
				    "%s:%zu: key \"%s\" stands twice, first in line %zu", reader->path, pair->line,
				    pair->key, *seen_at);
	*seen_at = pair->line;
	*out = option;
	return FC_OK;
}

static int on_pair(void *context, const struct fc_pair *pair)
{
	struct reader *reader = context;
	if (pair->list != NULL)
		return fc_config_namespace_pair(reader->config, reader->path, pair, reader->problem);
	const struct fc_option *option = NULL;
	int code = find_key(reader, pair, &option);
	return code == FC_OK ? set_value(reader, option, pair) : code;
}

int fc_config_read_yaml(struct fc_config *config, const char *path, struct fc_config_problem *problem)
{
	struct reader reader = {.config = config, .problem = problem, .path = path};
	if (config->command != FC_COMMAND_DAEMON)
		return fc_pairs_read(path, on_pair, &reader, &problem->error);
	int code = fc_pairs_read_lists(path, on_pair, &reader, &problem->error);
	return code == FC_OK ? fc_config_namespaces_check(config, path, problem) : code;
}

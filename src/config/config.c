/* Puts the settings of one run together: defaults, then the YAML file, then variables, then flags.
 *
 * Which file to read is itself a setting (--config, FLATCAKE_CONFIG), so the flags and variables are searched for it
 * first; then everything is set in the order of precedence, each later one over the earlier. */
#include "config/config.h"

#include "base/check.h"
#include "config/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_default(struct fc_config *config, const struct fc_option *option, struct fc_error *error)
{
	if (option->default_text == NULL) { /* a text: another command's row may have filled the field */
		*(const char **)(void *)((char *)config + option->field_offset) = NULL;
		return FC_OK;
	}
	return fc_option_set_in(option, option->default_text, config, option->name, error);
}

/* Rows may share a field: those of the command prevail, and of the others the first. */
static int set_defaults(struct fc_config *config, struct fc_error *error)
{
	size_t count = 0;
	int code = FC_OK;
	while (fc_option_at(count) != NULL)
		count++;
	for (size_t row = count; row-- > 0 && code == FC_OK;)
		code = set_default(config, fc_option_at(row), error);
	for (size_t row = 0; row < count && code == FC_OK; row++)
		if ((fc_option_at(row)->commands & config->command) != 0)
			code = set_default(config, fc_option_at(row), error);
	return code;
}

bool fc_config_is_given(const struct fc_config *config, const char *name)
{
	const struct fc_option *option;
	for (size_t row = 0; (option = fc_option_at(row)) != NULL; row++)
		if (strcmp(option->name, name) == 0 && config->is_given[row])
			return true;
	return false;
}

bool fc_config_is_flag(const struct fc_config *config, const char *name)
{
	const struct fc_option *option;
	for (size_t row = 0; (option = fc_option_at(row)) != NULL; row++)
		if (strcmp(option->name, name) == 0 && config->is_flag[row])
			return true;
	return false;
}

/* ---- flags --------------------------------------------------------------------------------------------------------
 */

/* One step through the arguments. `option` is NULL for a positional argument, whose text is then `value`. */
struct flag {
	const struct fc_option *option;
	const char *value;
};

struct flag_walk {
	const struct fc_config_sources *sources;
	int next;
	bool is_past_options; /* behind "--" */
};

static int refuse_flag(const struct fc_option *option, const char *name, struct fc_config_problem *problem,
		       enum fc_command_bit command)
{
	if (option == NULL)
		return fc_config_unknown(problem, "", FC_SPELLING_FLAG, name, strcspn(name, "="), command);
	char spelled[FC_OPTION_NAME_BYTES];
	fc_option_spell(option, FC_SPELLING_FLAG, spelled);
	char place[FC_OPTION_NAME_BYTES + 64];
	snprintf(place, sizeof(place), "%s belongs to other commands; for this one: ", spelled);
	return fc_config_unknown(problem, place, FC_SPELLING_FLAG, name, strcspn(name, "="), command);
}

/* Reads the option at `argument`, "--name=value" or "--name value"; a switch takes its value only after "=". */
static int read_flag(struct flag_walk *walk, const char *argument, struct flag *flag, struct fc_config_problem *problem)
{
	size_t name_len = strcspn(argument, "=");
	enum fc_command_bit command = walk->sources->command;
	flag->option = fc_option_find(FC_SPELLING_FLAG, argument, name_len, command);
	if (flag->option == NULL || (flag->option->commands & command) == 0)
		return refuse_flag(flag->option, argument, problem, command);
	if (argument[name_len] == '=') {
		flag->value = argument + name_len + 1;
	} else if (flag->option->type == FC_OPTION_SWITCH) {
		flag->value = "on";
	} else if (walk->next < walk->sources->argument_count) {
		flag->value = walk->sources->arguments[walk->next++];
	} else {
		char allowed[256];
		fc_option_describe(flag->option, allowed, sizeof(allowed));
		return fc_error_set(&problem->error, FC_EINVAL, "%s: a value must follow; allowed: %s", argument,
				    allowed);
	}
	return FC_OK;
}

/* The next argument, whatever it is. Call only while next < argument_count. */
static int next_flag(struct flag_walk *walk, struct flag *flag, struct fc_config_problem *problem)
{
	const char *argument = walk->sources->arguments[walk->next++];
	*flag = (struct flag){.value = argument};
	/* "-" alone means standard input */
	if (walk->is_past_options || argument[0] != '-' || argument[1] == '\0')
		return FC_OK;
	if (strcmp(argument, "--") == 0) {
		walk->is_past_options = true;
		flag->value = NULL;
		return FC_OK;
	}
	return read_flag(walk, argument, flag, problem);
}

/* Sets every flag, or with `only` given just that one; collects positional arguments in the first case. */
static int read_flags(struct fc_config *config, const struct fc_config_sources *sources, const char *only,
		      struct fc_config_problem *problem)
{
	struct flag_walk walk = {.sources = sources};
	while (walk.next < sources->argument_count) {
		struct flag flag;
		int code = next_flag(&walk, &flag, problem);
		if (code != FC_OK)
			return code;
		if (flag.option == NULL) {
			if (flag.value != NULL && only == NULL)
				config->arguments[config->argument_count++] = flag.value;
			continue;
		}
		if (only != NULL && strcmp(flag.option->name, only) != 0)
			continue;
		char place[FC_OPTION_NAME_BYTES];
		fc_option_spell(flag.option, FC_SPELLING_FLAG, place);
		code = fc_option_set(flag.option, flag.value, config, place, &problem->error);
		if (code != FC_OK)
			return code;
		config->is_flag[flag.option - fc_option_at(0)] = true;
	}
	return FC_OK;
}

/* ---- variables ----------------------------------------------------------------------------------------------------
 */

static int read_variable(struct fc_config *config, const char *entry, const char *only,
			 struct fc_config_problem *problem)
{
	size_t name_len = strcspn(entry, "=");
	const struct fc_option *option = fc_option_find(FC_SPELLING_VARIABLE, entry, name_len, config->command);
	if (option == NULL)
		return fc_config_unknown(problem, "", FC_SPELLING_VARIABLE, entry, name_len, config->command);
	if (only != NULL && strcmp(option->name, only) != 0)
		return FC_OK;
	char place[FC_OPTION_NAME_BYTES];
	fc_option_spell(option, FC_SPELLING_VARIABLE, place);
	return fc_option_set(option, entry + name_len + 1, config, place, &problem->error);
}

static int read_variables(struct fc_config *config, char *const *environment, const char *only,
			  struct fc_config_problem *problem)
{
	static const char prefix[] = "FLATCAKE_";
	for (; environment != NULL && *environment != NULL; environment++) {
		bool is_ours =
			strncmp(*environment, prefix, sizeof(prefix) - 1) == 0 && strchr(*environment, '=') != NULL;
		int code = is_ours ? read_variable(config, *environment, only, problem) : FC_OK;
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

/* ---- all together -------------------------------------------------------------------------------------------------
 */

static int check_together(const struct fc_config *config, struct fc_error *error)
{
	if (config->low_watermark >= config->high_watermark)
		return fc_error_set(error, FC_EINVAL,
				    "the low watermark (%.15g) must be below the high watermark (%.15g); "
				    "see --low-watermark and --high-watermark",
				    config->low_watermark, config->high_watermark);
	if (config->chunk_bytes != 0 && (!fc_is_power_of_two(config->chunk_bytes) || config->chunk_bytes < 4096))
		return fc_error_set(error, FC_EINVAL,
				    "--chunk: %llu bytes do not fit; allowed: a power of two from 4KiB, or 0",
				    (unsigned long long)config->chunk_bytes);
	return FC_OK;
}

int fc_config_load(struct fc_config *config, const struct fc_config_sources *sources, struct fc_config_problem *problem)
{
	*config = (struct fc_config){.command = sources->command};
	*problem = (struct fc_config_problem){.error.code = FC_OK};
	config->arguments = calloc((size_t)sources->argument_count + 1, sizeof(*config->arguments));
	if (config->arguments == NULL)
		return fc_error_set(&problem->error, FC_ENOMEM, "no memory for %d arguments", sources->argument_count);

	int code = set_defaults(config, &problem->error);
	if (code == FC_OK)
		code = read_variables(config, sources->environment, "config", problem);
	if (code == FC_OK)
		code = read_flags(config, sources, "config", problem);
	if (code == FC_OK && config->config_path != NULL)
		code = fc_config_read_yaml(config, config->config_path, problem);
	if (code == FC_OK)
		code = read_variables(config, sources->environment, NULL, problem);
	if (code == FC_OK)
		code = read_flags(config, sources, NULL, problem);
	if (code == FC_OK)
		code = check_together(config, &problem->error);
	if (code == FC_OK)
		code = fc_config_check_modes(config, &problem->error);
	return code;
}

void fc_config_free(struct fc_config *config)
{
	for (size_t row = 0; row < FC_OPTIONS_MAX; row++)
		free(config->owned_texts[row]);
	for (size_t at = 0; at < config->namespace_count; at++)
		free((void *)(uintptr_t)config->namespaces[at].name);
	free(config->namespaces);
	free(config->arguments);
	*config = (struct fc_config){.command = config->command};
}

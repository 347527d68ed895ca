#include "cli/outputs.h"

#include "config/option.h"
#include "host/whole_file.h"

#include <stdio.h>
#include <string.h>

/* What the row's option names for this command; NULL for nothing. */
static const char *path_of(const struct fc_config *config, const struct fc_option *option)
{
	if ((option->commands & config->command) == 0 || option->output == FC_OUTPUT_NONE)
		return NULL;
	return *(const char *const *)(const void *)((const char *)config + option->field_offset);
}

static int check_differs(const struct fc_config *config, size_t row, struct fc_error *error)
{
	const char *path = path_of(config, fc_option_at(row));
	for (size_t before = 0; before < row; before++) {
		const char *other = path_of(config, fc_option_at(before));
		if (other != NULL && strcmp(other, path) == 0)
			return fc_error_set(error, FC_EINVAL, "--%s: %s is what --%s names; allowed: another file",
					    fc_option_at(row)->name, path, fc_option_at(before)->name);
	}
	return FC_OK;
}

int fc_outputs_check(const struct fc_config *config, struct fc_error *error)
{
	int code = FC_OK;
	for (size_t row = 0; fc_option_at(row) != NULL && code == FC_OK; row++) {
		const struct fc_option *option = fc_option_at(row);
		const char *path = path_of(config, option);
		char what[FC_OPTION_NAME_BYTES];
		if (path == NULL)
			continue;
		fc_option_spell(option, FC_SPELLING_FLAG, what);
		code = check_differs(config, row, error);
		if (code == FC_OK && option->output == FC_OUTPUT_KEPT && !config->is_replacing &&
		    fc_whole_file_exists(path))
			code = fc_error_set(error, FC_EINVAL,
					    "%s: %s is there already; allowed: another name, or --force to replace it",
					    what, path);
		if (code == FC_OK)
			code = fc_whole_file_check(path, what, error);
	}
	return code;
}

#include "cli/json_file.h"

#include "host/whole_file.h"

#include <stdlib.h>
#include <string.h>

#define JSON_FORMAT (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

bool fc_json_replaces_text(const struct fc_config *config)
{
	return config->json_path != NULL && strcmp(config->json_path, "-") == 0;
}

json_t *fc_json_count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

json_t *fc_json_ratio(double part, double whole)
{
	return whole > 0 ? json_real(part / whole) : json_null();
}

/* The text with a newline behind; NULL without memory. */
static char *text_of(json_t *json, size_t *length)
{
	char *text = json == NULL ? NULL : json_dumps(json, JSON_FORMAT);
	if (text == NULL)
		return NULL;
	*length = strlen(text) + 1;
	char *line = realloc(text, *length + 1);
	if (line == NULL) {
		free(text);
		return NULL;
	}
	line[*length - 1] = '\n';
	return line;
}

int fc_json_write(const char *path, json_t *json, struct fc_error *error)
{
	size_t length = 0;
	char *text = text_of(json, &length);
	json_decref(json);
	if (text == NULL)
		return fc_error_set(error, FC_ENOMEM, "--json: no memory for the result");
	int code = fc_whole_file_write(path, text, length, "--json", error);
	free(text);
	return code;
}

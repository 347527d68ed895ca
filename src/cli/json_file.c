/* Writes JSON so that whoever reads the file never meets half of it: into a file beside it, which then takes its name.
 * What is no regular file (a pipe, /dev/null) is written to directly. */
#include "cli/json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON_FORMAT (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

bool fc_json_replaces_text(const struct fc_config *config)
{
	return config->json_path != NULL && strcmp(config->json_path, "-") == 0;
}

static int system_error(struct fc_error *error, const char *what, const char *path)
{
	return fc_error_set(error, FC_ESYSTEM, "--json: cannot %s %s: %s", what, path, strerror(errno));
}

static int dump(json_t *json, int fd, const char *path, struct fc_error *error)
{
	if (json_dumpfd(json, fd, JSON_FORMAT) != 0 || write(fd, "\n", 1) != 1)
		return system_error(error, "write", path);
	return FC_OK;
}

static int dump_beside(json_t *json, const char *path, struct fc_error *error)
{
	char *beside = NULL;
	int code = FC_OK;
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return fc_error_set(error, FC_ENOMEM, "--json: no memory");
	int fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0) {
		code = system_error(error, "create", beside);
		free(beside);
		return code;
	}
	code = dump(json, fd, beside, error);
	if (close(fd) != 0 && code == FC_OK)
		code = system_error(error, "write", beside);
	if (code == FC_OK && rename(beside, path) != 0)
		code = system_error(error, "replace", path);
	if (code != FC_OK)
		unlink(beside);
	free(beside);
	return code;
}

static int dump_directly(json_t *json, const char *path, struct fc_error *error)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(error, "open", path);
	int code = dump(json, fd, path, error);
	if (close(fd) != 0 && code == FC_OK)
		code = system_error(error, "write", path);
	return code;
}

int fc_json_write(const char *path, json_t *json, struct fc_error *error)
{
	struct stat status;
	int code;
	if (json == NULL)
		return fc_error_set(error, FC_ENOMEM, "--json: no memory for the result");
	if (strcmp(path, "-") == 0)
		code = fflush(stdout) == 0 ? dump(json, STDOUT_FILENO, "standard output", error)
					   : system_error(error, "write", "standard output");
	else if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		code = dump_directly(json, path, error);
	else
		code = dump_beside(json, path, error);
	json_decref(json);
	return code;
}

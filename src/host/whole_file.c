#define _GNU_SOURCE
#include "host/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct target {
	const char *path;
	const void *bytes;
	size_t byte_count;
	const char *what;
	struct fc_error *error;
};

static int system_error(const struct target *target, const char *verb, const char *path)
{
	return fc_error_set(target->error, FC_ESYSTEM, "%s: cannot %s %s: %s", target->what, verb, path,
			    strerror(errno));
}

static int write_all(const struct target *target, int fd, const char *path)
{
	const char *at = target->bytes;
	for (size_t left = target->byte_count; left > 0;) {
		ssize_t written = write(fd, at, left);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return system_error(target, "write", path);
		at += written;
		left -= (size_t)written;
	}
	return FC_OK;
}

/* Makes a file beside the target. The caller frees *beside after success. */
static int open_beside(const struct target *target, char **beside, int *fd)
{
	if (asprintf(beside, "%s.XXXXXX", target->path) < 0)
		return fc_error_set(target->error, FC_ENOMEM, "%s: no memory", target->what);
	*fd = mkostemp(*beside, O_CLOEXEC);
	if (*fd >= 0)
		return FC_OK;
	int code = system_error(target, "create", *beside);
	free(*beside);
	return code;
}

static int try_beside(const struct target *target)
{
	char *beside;
	int fd, code = open_beside(target, &beside, &fd);
	if (code != FC_OK)
		return code;
	close(fd);
	unlink(beside);
	free(beside);
	return FC_OK;
}

static int write_beside(const struct target *target)
{
	char *beside;
	int fd, code = open_beside(target, &beside, &fd);
	if (code != FC_OK)
		return code;
	code = write_all(target, fd, beside);
	if (close(fd) != 0 && code == FC_OK)
		code = system_error(target, "write", beside);
	if (code == FC_OK && rename(beside, target->path) != 0)
		code = system_error(target, "replace", target->path);
	if (code != FC_OK)
		unlink(beside);
	free(beside);
	return code;
}

static int write_directly(const struct target *target)
{
	int fd = open(target->path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(target, "open", target->path);
	int code = write_all(target, fd, target->path);
	if (close(fd) != 0 && code == FC_OK)
		code = system_error(target, "write", target->path);
	return code;
}

int fc_whole_file_write(const char *path, const void *bytes, size_t byte_count, const char *what,
			struct fc_error *error)
{
	struct target target = {path, bytes, byte_count, what, error};
	struct stat status;
	if (strcmp(path, "-") == 0)
		return fflush(stdout) == 0 ? write_all(&target, STDOUT_FILENO, "standard output")
					   : system_error(&target, "write", "standard output");
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		return write_directly(&target);
	return write_beside(&target);
}

/* Not by opening it: who reads from a pipe would meet its end. */
static int check_directly(const struct target *target, const struct stat *status)
{
	errno = S_ISDIR(status->st_mode) ? EISDIR : 0;
	if (errno == 0 && access(target->path, W_OK) == 0)
		return FC_OK;
	return system_error(target, "open", target->path);
}

int fc_whole_file_check(const char *path, const char *what, struct fc_error *error)
{
	struct target target = {path, NULL, 0, what, error};
	struct stat status;
	if (strcmp(path, "-") == 0)
		return FC_OK;
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		return check_directly(&target, &status);
	return try_beside(&target);
}

bool fc_whole_file_exists(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

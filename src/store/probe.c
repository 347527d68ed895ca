#include "store/probe.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *fc_probe_ssd_path(const struct fc_probe_opts *opts)
{
	char *path = NULL;
	if (opts->ssd_path != NULL)
		return strdup(opts->ssd_path);
	return asprintf(&path, "%s/ssd.arena", opts->dir) < 0 ? NULL : path;
}

/* Up to the end of the file. */
static size_t read_bytes(int fd, uint8_t *buffer, size_t bytes)
{
	size_t done = 0;
	while (done < bytes) {
		ssize_t count = pread(fd, buffer + done, bytes - done, (off_t)done);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break;
		done += (size_t)count;
	}
	return done;
}

static int decode(struct fc_superblock *superblock, const uint8_t *buffer, size_t bytes, struct fc_error *error)
{
	if (fc_superblocks_are_unwritten(buffer))
		return fc_error_set(error, FC_EFORMAT, "nothing was ever stored in it");
	if (bytes < FC_TABLE_OFFSET)
		return fc_error_set(error, FC_EFORMAT, "not a FlatCake arena: it ends before the superblocks do");
	return fc_superblock_choose(superblock, buffer, error);
}

static int read_superblock(int fd, struct fc_superblock *superblock, struct fc_error *error)
{
	uint8_t *buffer = calloc(1, FC_TABLE_OFFSET);
	if (buffer == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	size_t bytes = read_bytes(fd, buffer, FC_TABLE_OFFSET);
	int code = decode(superblock, buffer, bytes, error);
	free(buffer);
	return code;
}

/* What is not there is no error, and no arena. */
static int probe_arena(struct fc_probe *probe, enum fc_medium medium, const char *path, struct fc_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return FC_OK;
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: open: %s", path,
				    errno == ELOOP ? "it is a symbolic link" : strerror(errno));
	off_t end = lseek(fd, 0, SEEK_END); /* tells the size of a block device too */
	int code = end < 0 ? fc_error_set(error, FC_ESYSTEM, "lseek: %s", strerror(errno))
			   : read_superblock(fd, &probe->superblocks[medium], error);
	close(fd);
	if (code != FC_OK)
		return fc_error_wrap(error, code, "%s", path);
	probe->has_arena[medium] = true;
	probe->bytes[medium] = (uint64_t)end;
	return FC_OK;
}

const struct fc_geometry *fc_probe_geometry(const struct fc_probe *probe)
{
	return &probe->superblocks[probe->has_arena[FC_SSD] ? FC_SSD : FC_MEMORY].geometry;
}

int fc_store_probe(struct fc_probe *probe, const struct fc_probe_opts *opts, struct fc_error *error)
{
	*probe = (struct fc_probe){0};
	char *ssd_path = fc_probe_ssd_path(opts);
	if (ssd_path == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	int code = probe_arena(probe, FC_SSD, ssd_path, error);
	if (code == FC_OK && opts->memory_path != NULL)
		code = probe_arena(probe, FC_MEMORY, opts->memory_path, error);
	if (code == FC_OK && !probe->has_arena[FC_SSD] && !probe->has_arena[FC_MEMORY])
		code = fc_error_set(error, FC_ENOENT, "%s: no such arena%s%s", ssd_path,
				    opts->memory_path == NULL ? "" : ", nor ",
				    opts->memory_path == NULL ? "" : opts->memory_path);
	if (code == FC_OK && probe->has_arena[FC_SSD] && probe->has_arena[FC_MEMORY])
		code = fc_geometry_same(&probe->superblocks[FC_MEMORY].geometry, &probe->superblocks[FC_SSD].geometry,
					error);
	free(ssd_path);
	return code;
}

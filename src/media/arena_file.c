/* One writer per arena, by flock(): it works for files and block devices alike, dies with its holder whatever kills it,
 * and /proc/locks tells who that is. The lock belongs to the open file, so a second open by the same process is refused
 * too. */
#define _GNU_SOURCE
#include "media/arena_file.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The process that holds a flock() on the file, or 0. A line reads "1: FLOCK  ADVISORY  WRITE 123 fe:00:5678 0 EOF". */
static long holder_pid(const struct stat *status)
{
	char line[256];
	long found = 0;
	FILE *locks = fopen("/proc/locks", "re");

	if (locks == NULL)
		return 0;
	while (found == 0 && fgets(line, sizeof(line), locks) != NULL) {
		long pid = 0;
		unsigned device_major = 0, device_minor = 0;
		uint64_t inode = 0;
		/* A waiter's line has "->" behind the number and so does not match. */
		if (sscanf(line, "%*u: FLOCK %*s %*s %ld %x:%x:%" SCNu64, &pid, &device_major, &device_minor, &inode) !=
		    4)
			continue;
		if (inode == status->st_ino && device_major == major(status->st_dev) &&
		    device_minor == minor(status->st_dev))
			found = pid;
	}
	fclose(locks);
	return found;
}

static void process_name(long pid, char *name, size_t name_bytes)
{
	char path[64];

	snprintf(name, name_bytes, "unknown");
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return;
	if (fgets(name, (int)name_bytes, file) != NULL)
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
}

static int refuse_locked(int fd, const char *path, struct fc_error *error)
{
	struct stat status;
	char name[64];

	long pid = fstat(fd, &status) == 0 ? holder_pid(&status) : 0;
	if (pid <= 0)
		return fc_error_set(error, FC_EBUSY, "%s: held by another process (not visible in /proc/locks)", path);
	process_name(pid, name, sizeof(name));
	return fc_error_set(error, FC_EBUSY, "%s: held by process %ld (%s); stop it, or use another arena", path, pid,
			    name);
}

static int lock_file(int fd, const char *path, bool is_read_only, struct fc_error *error)
{
	int operation = (is_read_only ? LOCK_SH : LOCK_EX) | LOCK_NB;

	while (flock(fd, operation) != 0) {
		if (errno == EINTR)
			continue;
		if (errno == EWOULDBLOCK)
			return refuse_locked(fd, path, error);
		return fc_error_set(error, FC_ESYSTEM, "%s: flock: %s", path, strerror(errno));
	}
	return 0;
}

/* Opens and says whether the file was made. Creation is tried apart (O_EXCL), so that no other creator's file counts as
 * ours. */
static int open_or_create(const struct fc_arena_file_opts *opts, bool *is_new)
{
	/* O_NONBLOCK: a FIFO must be refused, not waited for. */
	int flags = (opts->is_read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

	*is_new = false;
	int fd = open(opts->path, flags);
	if (fd >= 0 || errno != ENOENT || !opts->is_created || opts->is_read_only)
		return fd;
	fd = open(opts->path, flags | O_CREAT | O_EXCL, 0600);
	*is_new = fd >= 0;
	return fd;
}

static int refuse_open(const char *path, struct fc_error *error)
{
	switch (errno) {
	case ENOENT:
		return fc_error_set(error, FC_ENOENT, "%s: no such file", path);
	case ELOOP:
		return fc_error_set(error, FC_EINVAL, "%s: a symbolic link; name the file or block device itself",
				    path);
	case EISDIR:
		return fc_error_set(error, FC_EINVAL, "%s: a folder; an arena is a regular file or a block device",
				    path);
	default:
		return fc_error_set(error, FC_ESYSTEM, "%s: open: %s", path, strerror(errno));
	}
}

static int file_init(struct fc_arena_file *file, const char *path, struct fc_error *error)
{
	struct stat status;

	if (fstat(file->fd, &status) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: fstat: %s", path, strerror(errno));
	file->is_block_device = S_ISBLK(status.st_mode);
	if (!file->is_block_device && !S_ISREG(status.st_mode))
		return fc_error_set(error, FC_EINVAL, "%s: an arena is a regular file or a block device", path);
	file->device = file->is_block_device ? status.st_rdev : status.st_dev;
	file->bytes = (uint64_t)status.st_size;
	if (file->is_block_device && ioctl(file->fd, BLKGETSIZE64, &file->bytes) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: BLKGETSIZE64: %s", path, strerror(errno));
	return 0;
}

int fc_arena_file_open(struct fc_arena_file *file, const struct fc_arena_file_opts *opts, struct fc_error *error)
{
	*file = (struct fc_arena_file){.fd = -1};
	file->fd = open_or_create(opts, &file->is_new);
	if (file->fd < 0)
		return refuse_open(opts->path, error);
	int code = lock_file(file->fd, opts->path, opts->is_read_only, error);
	if (code != 0) {
		/* Whoever has the lock has the file, even if it was made here. */
		fc_arena_file_close(file, opts->path, false);
		return code;
	}
	code = file_init(file, opts->path, error);
	/* Direct I/O is asked for after the open: an open that is refused for it leaves the file it made behind. */
	file->is_direct = code == 0 && opts->is_direct && fcntl(file->fd, F_SETFL, O_DIRECT) == 0;
	if (code == 0 && !file->is_direct && fcntl(file->fd, F_SETFL, 0) != 0)
		code = fc_error_set(error, FC_ESYSTEM, "%s: fcntl: %s", opts->path, strerror(errno));
	if (code != 0)
		fc_arena_file_close(file, opts->path, file->is_new);
	return code;
}

static int refuse_full(const struct fc_arena_file *file, const char *path, uint64_t bytes, struct fc_error *error)
{
	struct statvfs space;
	uint64_t available_bytes = 0;

	if (fstatvfs(file->fd, &space) == 0)
		available_bytes = (uint64_t)space.f_bavail * space.f_frsize;
	return fc_error_set(error, FC_EFULL,
			    "%s: needs %" PRIu64 " more bytes (%" PRIu64 " in all), its file system has %" PRIu64
			    " available",
			    path, bytes - file->bytes, bytes, available_bytes);
}

/* Returns 0 or an errno. */
static int set_space_aside(int fd, uint64_t bytes, bool *is_sparse)
{
	int result;

	do
		result = fallocate(fd, 0, 0, (off_t)bytes) == 0 ? 0 : errno;
	while (result == EINTR);
	*is_sparse = result == EOPNOTSUPP;
	if (*is_sparse)
		result = ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
	return result;
}

int fc_arena_file_resize(struct fc_arena_file *file, const char *path, uint64_t bytes, bool *is_sparse,
			 struct fc_error *error)
{
	bool is_sparse_unused;
	int failure = 0;

	if (file->is_block_device)
		return fc_error_set(error, FC_EINVAL, "%s: a block device of %" PRIu64 " bytes cannot become %" PRIu64,
				    path, file->bytes, bytes);
	if (bytes == 0 || bytes > INT64_MAX)
		return fc_error_set(error, FC_EINVAL, "%s: size %" PRIu64 ", allowed are 1 to %" PRId64, path, bytes,
				    INT64_MAX);
	if (bytes < file->bytes)
		failure = ftruncate(file->fd, (off_t)bytes) == 0 ? 0 : errno;
	else
		failure = set_space_aside(file->fd, bytes, is_sparse != NULL ? is_sparse : &is_sparse_unused);
	if (failure == ENOSPC || failure == EDQUOT) {
		int code = refuse_full(file, path, bytes, error);
		/* fallocate() may have got some of the way. */
		if (ftruncate(file->fd, (off_t)file->bytes) != 0)
			return fc_error_set(error, FC_ESYSTEM, "%s: ftruncate after a full disk: %s", path,
					    strerror(errno));
		return code;
	}
	if (failure != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: size %" PRIu64 ": %s", path, bytes, strerror(failure));
	file->bytes = bytes;
	return 0;
}

void fc_arena_file_close(struct fc_arena_file *file, const char *path, bool is_removed)
{
	if (file->fd < 0)
		return;
	if (is_removed)
		(void)unlink(path);
	/* Closing also unlocks; what mattered was synced before. */
	(void)close(file->fd);
	file->fd = -1;
}

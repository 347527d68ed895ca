/* One writer per arena, by flock(): it works for files and block devices alike, dies with its holder whatever kills it,
 * and /proc/locks tells who that is. The lock belongs to the open file, so a second open by the same process is refused
 * too.
 *
 * A killed process can leave commands in flight on an io_uring, which hold the open file, and thereby the lock, until
 * the last of them has ended. That is as it should be, since no write of the dead may land behind the back of the next
 * holder; so an open waits (up to a minute: the disk may have much left to do) for a holder that is dead already, and
 * refuses at once for one that lives. The ring itself must not hold the file (media/ssd_uring.c says why). */
#define _GNU_SOURCE
#include "media/arena_file.h"

#include "base/check.h"
#include "host/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_MS_MAX 60000
#define LOCK_PAUSE_MS 10

/* How /proc/locks names the file: by its inode and the device of its file system. On overlayfs and btrfs that is not
 * the device that stat() tells, so it comes from the mount. */
struct lock_name {
	unsigned device_major, device_minor;
	uint64_t inode;
};

static void read_mount_device(int64_t mount_id, struct lock_name *name)
{
	char line[1024];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");

	if (mounts == NULL)
		return;
	/* "36 35 98:0 / /path ..."; what a longer line continues with does not begin so. */
	while (fgets(line, sizeof(line), mounts) != NULL) {
		int64_t id = 0;
		unsigned device_major = 0, device_minor = 0;
		if (sscanf(line, "%" SCNd64 " %*d %u:%u ", &id, &device_major, &device_minor) == 3 && id == mount_id) {
			name->device_major = device_major;
			name->device_minor = device_minor;
		}
	}
	fclose(mounts);
}

static struct lock_name find_lock_name(int fd, const struct stat *status)
{
	char path[64];
	char line[256];
	struct lock_name name = {major(status->st_dev), minor(status->st_dev), status->st_ino};

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *info = fopen(path, "re");
	if (info == NULL)
		return name;
	while (fgets(line, sizeof(line), info) != NULL) {
		int64_t mount_id = 0;
		if (sscanf(line, "mnt_id: %" SCNd64, &mount_id) == 1)
			read_mount_device(mount_id, &name);
		(void)sscanf(line, "ino: %" SCNu64, &name.inode); /* since Linux 5.14 */
	}
	fclose(info);
	return name;
}

/* The process that holds a flock() on the file, or 0. A line reads "1: FLOCK  ADVISORY  WRITE 123 fe:00:5678 0 EOF". */
static long holder_pid(const struct lock_name *name)
{
	char line[256];
	long found = 0;
	FILE *locks = fopen("/proc/locks", "re");

	if (locks == NULL)
		return 0;
	while (found == 0 && fgets(line, sizeof(line), locks) != NULL) {
		long pid = 0;
		struct lock_name other = {0};
		/* A waiter's line has "->" behind the number and so does not match. */
		if (sscanf(line, "%*u: FLOCK %*s %*s %ld %x:%x:%" SCNu64, &pid, &other.device_major,
			   &other.device_minor, &other.inode) != 4)
			continue;
		if (other.inode == name->inode && other.device_major == name->device_major &&
		    other.device_minor == name->device_minor)
			found = pid;
	}
	fclose(locks);
	return found;
}

/* The process's name and whether it runs, from "123 (name) S ...": a zombie (Z) or corpse (X) does not. */
static bool read_process(long pid, char *name, size_t name_bytes)
{
	char path[64];
	char line[256] = "";

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	bool is_read = fgets(line, sizeof(line), file) != NULL;
	fclose(file);
	char *begin = strchr(line, '(');
	char *end = strrchr(line, ')');
	if (!is_read || begin == NULL || end == NULL || end[1] != ' ')
		return false;
	snprintf(name, name_bytes, "%.*s", (int)(end - begin - 1), begin + 1);
	return end[2] != 'Z' && end[2] != 'X';
}

struct holder {
	long pid; /* 0: not to be seen, or dead */
	bool is_alive;
	char name[64];
};

static struct holder find_holder(int fd)
{
	struct holder holder = {0};
	struct stat status;

	if (fstat(fd, &status) == 0) {
		struct lock_name name = find_lock_name(fd, &status);
		holder.pid = holder_pid(&name);
	}
	holder.is_alive = holder.pid > 0 && read_process(holder.pid, holder.name, sizeof(holder.name));
	return holder;
}

static int refuse_locked(const struct holder *holder, const char *path, struct fc_error *error)
{
	if (holder->pid == getpid())
		return fc_error_set(
			error, FC_EBUSY,
			"%s: held by process %ld (%s), which is this one: a store has it open, or was closed "
			"and still waits for I/O that has not returned",
			path, holder->pid, holder->name);
	if (holder->is_alive)
		return fc_error_set(error, FC_EBUSY, "%s: held by process %ld (%s); stop it, or use another arena",
				    path, holder->pid, holder->name);
	return fc_error_set(error, FC_EBUSY,
			    "%s: held by a process that /proc/locks does not show, or by the last I/O of one that died",
			    path);
}

static int lock_file(int fd, const char *path, bool is_read_only, struct fc_error *error)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
	int operation = (is_read_only ? LOCK_SH : LOCK_EX) | LOCK_NB;

	for (int waited_ms = 0; flock(fd, operation) != 0;) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return fc_error_set(error, FC_ESYSTEM, "%s: flock: %s", path, strerror(errno));
		struct holder holder = find_holder(fd);
		if (holder.is_alive || waited_ms >= LOCK_WAIT_MS_MAX)
			return refuse_locked(&holder, path, error);
		(void)nanosleep(&pause, NULL);
		waited_ms += LOCK_PAUSE_MS;
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

/* `sync` is AT_STATX_DONT_SYNC where another process has asked the file system already, which may have ceased to
 * answer: what the kernel knows will do. */
static int file_init(struct fc_arena_file *file, const char *path, int sync, struct fc_error *error)
{
	struct statx status;

	if (statx(file->fd, "", AT_EMPTY_PATH | sync, STATX_TYPE | STATX_INO | STATX_SIZE, &status) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: statx: %s", path, strerror(errno));
	file->is_block_device = S_ISBLK(status.stx_mode);
	if (!file->is_block_device && !S_ISREG(status.stx_mode))
		return fc_error_set(error, FC_EINVAL, "%s: an arena is a regular file or a block device", path);
	file->device = file->is_block_device ? makedev(status.stx_rdev_major, status.stx_rdev_minor)
					     : makedev(status.stx_dev_major, status.stx_dev_minor);
	file->bytes = status.stx_size;
	if (file->is_block_device && ioctl(file->fd, BLKGETSIZE64, &file->bytes) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: BLKGETSIZE64: %s", path, strerror(errno));
	return 0;
}

/* ---- whether it is still there ---- */

static bool has_name(const struct fc_arena_file *file, const struct stat *status)
{
	struct stat named;
	return fstatat(file->folder_fd, file->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == status->st_dev && named.st_ino == status->st_ino;
}

/* The folder is held open, so that neither another working directory nor a new name of the folder counts. Where a file
 * system does not call the file the same by its name and by its descriptor, the name says nothing. */
static void watch_name(struct fc_arena_file *file, const char *path)
{
	struct stat status;
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - path) + 1;

	if (file->is_block_device || folder_bytes >= sizeof(folder))
		return;
	memcpy(folder, path, folder_bytes);
	folder[folder_bytes] = '\0';
	file->name = path + folder_bytes;
	file->folder_fd = open(slash == NULL ? "." : folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (file->folder_fd < 0 || (fstat(file->fd, &status) == 0 && has_name(file, &status)))
		return;
	(void)close(file->folder_fd);
	file->folder_fd = -1;
}

static bool is_device_short(const struct fc_arena_file *file)
{
	uint64_t bytes;
	return ioctl(file->fd, BLKGETSIZE64, &bytes) == 0 && bytes < file->bytes;
}

static const char *judge_size(const struct fc_arena_file *file, const struct stat *status)
{
	if ((uint64_t)status->st_size >= file->bytes)
		return NULL;
	return "the file was made shorter while it was in use, and what is written to it may be nowhere; it has to be "
	       "opened anew";
}

const char *fc_arena_file_short(const struct fc_arena_file *file)
{
	struct stat status;
	if (file->is_block_device || fstat(file->fd, &status) != 0)
		return NULL;
	return judge_size(file, &status);
}

/* A look that fails says nothing: the reads and writes will. */
const char *fc_arena_file_lost(const struct fc_arena_file *file)
{
	struct stat status;
	if (file->is_block_device)
		return is_device_short(file) ? "the device has become smaller while it was in use" : NULL;
	if (fstat(file->fd, &status) != 0)
		return NULL;
	if (status.st_nlink == 0)
		return "the file was removed while it was in use, and all that is in it goes when it is closed; it has "
		       "to be opened anew";
	if (file->folder_fd >= 0 && !has_name(file, &status))
		return "the file has lost its name while it was in use, and would not be found again; it has to be "
		       "opened anew";
	return judge_size(file, &status);
}

/* ---- open ---- */

int fc_arena_file_make_buffered(struct fc_arena_file *file)
{
	file->is_direct = false;
	return fcntl(file->fd, F_SETFL, 0);
}

int fc_arena_file_open(struct fc_arena_file *file, const struct fc_arena_file_opts *opts, struct fc_error *error)
{
	*file = (struct fc_arena_file){.fd = -1, .folder_fd = -1};
	file->fd = open_or_create(opts, &file->is_new);
	if (file->fd < 0)
		return refuse_open(opts->path, error);
	int code = lock_file(file->fd, opts->path, opts->is_read_only, error);
	if (code != 0) {
		/* Whoever has the lock has the file, even if it was made here. */
		fc_arena_file_close(file, opts->path, false);
		return code;
	}
	code = file_init(file, opts->path, AT_STATX_SYNC_AS_STAT, error);
	if (code == 0 && !opts->is_read_only && !file->is_block_device)
		code = fc_private_check_owner(file->fd, opts->path, error);
	/* Direct I/O is asked for after the open: an open that is refused for it leaves the file it made behind. */
	file->is_direct = code == 0 && opts->is_direct && fcntl(file->fd, F_SETFL, O_DIRECT) == 0;
	if (code == 0 && !file->is_direct && fc_arena_file_make_buffered(file) != 0)
		code = fc_error_set(error, FC_ESYSTEM, "%s: fcntl: %s", opts->path, strerror(errno));
	if (code != 0)
		fc_arena_file_close(file, opts->path, file->is_new);
	else
		watch_name(file, opts->path);
	return code;
}

int fc_arena_file_adopt(struct fc_arena_file *file, int fd, const char *name, struct fc_error *error)
{
	*file = (struct fc_arena_file){.fd = fd, .folder_fd = -1};
	int code = file_init(file, name, AT_STATX_DONT_SYNC, error);
	int flags = fcntl(fd, F_GETFL);
	file->is_direct = flags >= 0 && (flags & O_DIRECT) != 0;
	if (code != 0)
		file->fd = -1;
	return code;
}

/* Refuses what certainly does not fit, before the file system is filled to the brim to find out. */
static int check_space(const struct fc_arena_file *file, const char *path, uint64_t bytes, bool is_full,
		       struct fc_error *error)
{
	struct statvfs space;
	uint64_t need_bytes = bytes - file->bytes;

	/* hugetlbfs without a limit of its own says 0 blocks. */
	bool is_known = fstatvfs(file->fd, &space) == 0 && space.f_blocks > 0;
	if (!is_full && (!is_known || need_bytes / space.f_frsize < space.f_bfree))
		return 0;
	return fc_error_set(error, FC_EFULL,
			    "%s: needs %" PRIu64 " more bytes (%" PRIu64 " in all), its file system has %" PRIu64
			    " available",
			    path, need_bytes, bytes, is_known ? (uint64_t)space.f_bavail * space.f_frsize : 0);
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

static int check_size(const struct fc_arena_file *file, const char *path, uint64_t bytes, struct fc_error *error)
{
	if (file->is_block_device)
		return fc_error_set(error, FC_EINVAL, "%s: a block device of %" PRIu64 " bytes cannot become %" PRIu64,
				    path, file->bytes, bytes);
	if (bytes == 0 || bytes > INT64_MAX)
		return fc_error_set(error, FC_EINVAL, "%s: size %" PRIu64 ", allowed are 1 to %" PRId64, path, bytes,
				    INT64_MAX);
	int code = fc_arena_file_check_limit(file, path, bytes, error);
	return code == 0 && bytes > file->bytes ? check_space(file, path, bytes, false, error) : code;
}

int fc_arena_file_check_limit(const struct fc_arena_file *file, const char *path, uint64_t bytes,
			      struct fc_error *error)
{
	struct rlimit limit;

	if (file->is_block_device || getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur)
		return 0;
	return fc_error_set(error, FC_ELIMIT,
			    "%s: %" PRIu64 " bytes, and this process may write files of %" PRIu64
			    " (RLIMIT_FSIZE); raise the limit (ulimit -f) or take a smaller arena",
			    path, bytes, (uint64_t)limit.rlim_cur);
}

uint64_t fc_arena_file_hole_bytes(const struct fc_arena_file *file)
{
	struct stat status;

	if (file->is_block_device || fstat(file->fd, &status) != 0)
		return 0;
	uint64_t present_bytes = (uint64_t)status.st_blocks * 512;
	return present_bytes < file->bytes ? file->bytes - present_bytes : 0;
}

int fc_arena_file_fill(struct fc_arena_file *file, const char *path, struct fc_error *error)
{
	struct statvfs space;
	bool is_sparse = false;
	uint64_t hole_bytes = fc_arena_file_hole_bytes(file);
	bool has_room =
		fstatvfs(file->fd, &space) != 0 || space.f_blocks == 0 || hole_bytes / space.f_frsize <= space.f_bfree;

	if (hole_bytes == 0) /* or every page of a large arena would be looked at */
		return 0;
	int failure = has_room ? set_space_aside(file->fd, file->bytes, &is_sparse) : ENOSPC;
	if (failure == 0)
		return 0;
	if (failure == ENOSPC || failure == EDQUOT)
		return fc_error_set(error, FC_EFULL,
				    "%s: %" PRIu64 " of its %" PRIu64
				    " bytes are holes, and its file system has no room to fill them",
				    path, hole_bytes, file->bytes);
	return fc_error_set(error, FC_ESYSTEM, "%s: fallocate: %s", path, strerror(failure));
}

void fc_arena_file_make_private(const struct fc_arena_file *file, const char *path, struct fc_media *media)
{
	char notices[3][FC_PRIVATE_NOTICE_BYTES];

	fc_private_close_to_others(file->fd, path, notices[0]);
	fc_private_look_at_links(file->fd, path, notices[1]);
	fc_private_look_at_folder(path, notices[2]);
	for (size_t i = 0; i < fc_array_len(notices); i++)
		if (notices[i][0] != '\0')
			fc_media_note(media, "%s", notices[i]);
}

static int grow(struct fc_arena_file *file, const char *path, uint64_t bytes, bool *is_sparse, struct fc_error *error)
{
	int failure = set_space_aside(file->fd, bytes, is_sparse);
	if (failure == 0)
		return 0;
	/* It may have got some of the way. */
	if (ftruncate(file->fd, (off_t)file->bytes) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: ftruncate: %s", path, strerror(errno));
	if (failure == ENOSPC || failure == EDQUOT)
		return check_space(file, path, bytes, true, error);
	return fc_error_set(error, FC_ESYSTEM, "%s: size %" PRIu64 ": %s", path, bytes, strerror(failure));
}

int fc_arena_file_resize(struct fc_arena_file *file, const char *path, uint64_t bytes, bool *is_sparse,
			 struct fc_error *error)
{
	bool is_sparse_unused;
	int code = check_size(file, path, bytes, error);

	if (code != 0)
		return code;
	if (bytes >= file->bytes)
		code = grow(file, path, bytes, is_sparse != NULL ? is_sparse : &is_sparse_unused, error);
	else if (ftruncate(file->fd, (off_t)bytes) != 0)
		code = fc_error_set(error, FC_ESYSTEM, "%s: size %" PRIu64 ": %s", path, bytes, strerror(errno));
	if (code == 0)
		file->bytes = bytes;
	return code;
}

void fc_arena_file_close(struct fc_arena_file *file, const char *path, bool is_removed)
{
	if (file->fd < 0)
		return;
	if (is_removed)
		(void)unlink(path);
	/* Nothing is in flight, so nobody needs to wait for a forked child that has the descriptor, too. What mattered
	 * was synced before, so close() has nothing to report. */
	(void)flock(file->fd, LOCK_UN);
	fc_arena_file_abandon(file);
	file->fd = file->folder_fd = -1;
}

void fc_arena_file_abandon(const struct fc_arena_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	if (file->folder_fd >= 0)
		(void)close(file->folder_fd);
}

#include "daemon/locks.h"

#include "base/check.h"
#include "daemon/log.h"
#include "host/private_file.h"
#include "host/random_bits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE_BITS 40
/* Bytes of one run: more clients than it will have. */
#define RUN_BYTES (1ull << 32)

struct fc_locks {
	int fd;       /* the daemon's own */
	int arena_fd; /* borrowed; -1: none */
	bool is_arena_silent;
	uint64_t base;
};

static struct flock lock_on(const struct fc_locks *locks, uint64_t number, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(locks->base + number),
		.l_len = 1,
	};
}

/* Whoever can open the file can hold locks on it that the next daemon waits for. Nothing is ever written to it, so one
 * with content is another file, named by mistake. */
static int check_file(int fd, const char *path, struct fc_error *error)
{
	char notice[FC_PRIVATE_NOTICE_BYTES];
	struct stat status;
	int code = fc_private_check_owner(fd, path, error);
	if (code != FC_OK)
		return code;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0)
		return fc_error_set(error, FC_EINVAL, "%s: not a lock file, which is a regular one without content",
				    path);
	fc_private_close_to_others(fd, path, notice);
	if (notice[0] != '\0')
		fc_log(FC_LOG_WARNING, "exposed", "%s", notice);
	return FC_OK;
}

static int open_file(struct fc_locks *locks, const char *path, struct fc_error *error)
{
	locks->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (locks->fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: open: %s", path, strerror(errno));
	int code = check_file(locks->fd, path, error);
	if (code != FC_OK)
		return code;
	if (flock(locks->fd, LOCK_EX | LOCK_NB) == 0)
		return FC_OK;
	if (errno == EWOULDBLOCK)
		return fc_error_set(error, FC_EBUSY,
				    "%s: another flatcaked has it; every daemon needs a lock_path of its own", path);
	return fc_error_set(error, FC_ESYSTEM, "%s: flock: %s", path, strerror(errno));
}

int fc_locks_open(struct fc_locks **result, const char *path, int arena_fd, struct fc_error *error)
{
	struct fc_locks *locks = calloc(1, sizeof(*locks));
	if (locks == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory", path);
	locks->fd = -1;
	locks->arena_fd = arena_fd;
	int code = fc_random_bits(&locks->base, sizeof(locks->base), error);
	locks->base >>= 64 - BASE_BITS;
	if (code == FC_OK)
		code = open_file(locks, path, error);
	if (code != FC_OK) {
		fc_locks_close(locks);
		return code;
	}
	*result = locks;
	return FC_OK;
}

void fc_locks_close(struct fc_locks *locks)
{
	if (locks == NULL)
		return;
	if (locks->fd >= 0)
		close(locks->fd);
	free(locks);
}

void fc_locks_arena_answers(struct fc_locks *locks, bool does_answer)
{
	locks->is_arena_silent = !does_answer;
}

int fc_locks_mark(const struct fc_locks *locks, uint64_t number, int arena_fd, struct fc_error *error)
{
	struct flock lock = lock_on(locks, number, F_RDLCK);
	if (fcntl(arena_fd, F_OFD_SETLK, &lock) == 0)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "lock of client %llu: %s", (unsigned long long)number, strerror(errno));
}

int fc_locks_take(const struct fc_locks *locks, uint64_t number, int *fd, struct fc_error *error)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", locks->fd);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "lock of client %llu: %s: %s", (unsigned long long)number, path,
				    strerror(errno));
	int code = fc_locks_mark(locks, number, *fd, error);
	if (code != FC_OK) {
		close(*fd);
		*fd = -1;
	}
	return code;
}

/* Whether a lock of anybody but this descriptor stands against it. What cannot be asked counts as held: space that is
 * kept too long does no harm. */
static bool is_held(int fd, struct flock lock)
{
	return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static enum fc_lock_state worse(enum fc_lock_state a, enum fc_lock_state b)
{
	return a > b ? a : b;
}

static enum fc_lock_state state_of(const struct fc_locks *locks, struct flock lock)
{
	if (is_held(locks->fd, lock))
		return FC_LOCK_HELD;
	if (locks->arena_fd >= 0 && locks->is_arena_silent)
		return FC_LOCK_HELD;
	return locks->arena_fd >= 0 && is_held(locks->arena_fd, lock) ? FC_LOCK_IN_FLIGHT : FC_LOCK_FREE;
}

enum fc_lock_state fc_locks_state(const struct fc_locks *locks, uint64_t number)
{
	return state_of(locks, lock_on(locks, number, F_WRLCK));
}

enum fc_lock_state fc_locks_state_before(const struct fc_locks *locks)
{
	struct flock below = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = (off_t)locks->base};
	struct flock above = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)(locks->base + RUN_BYTES)};
	enum fc_lock_state state = locks->base == 0 ? FC_LOCK_FREE : state_of(locks, below);
	return worse(state, state_of(locks, above)); /* length 0: to the end of all files */
}

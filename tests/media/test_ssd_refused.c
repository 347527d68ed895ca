/* Does the SSD medium still work, and say so once, where the system refuses what it would rather use? Each test refuses
 * one thing for good, by a seccomp filter or a limit, and so runs in a child of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "media/ssd_world.h"

#define ANY_ARGUMENT 0xffffffffu

/* From now on `call` fails with `error`; if `bits` is given, only when its third argument has any of them set. */
static bool refuse_call(unsigned call, uint32_t bits, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = fc_array_len(filter), .filter = filter};

	if (bits == ANY_ARGUMENT) /* straight to the refusal */
		filter[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 2, 3);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The number of the check that failed, or 0. */
static int run_in_child(struct ssd_world *world, int (*body)(struct ssd_world *world))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(body(world));
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			return 1;                                                                                      \
		}                                                                                                      \
	} while (0)

static int open_arena(struct ssd_world *world)
{
	struct fc_ssd_opts opts = {.path = world->path, .bytes = ARENA_BYTES, .queue_depth = 3};
	CHECK(fc_ssd_open(&opts, &world->media, &world->error) == 0);
	return 0;
}

static bool has_notice(const struct ssd_world *world, const char *text)
{
	return strstr(world->media->notice, text) != NULL;
}

/* Without cmocka's assertions, which do not work in a child. */
static int read_back_all(struct ssd_world *world, bool is_sleeping_on_fd)
{
	struct medium_io ios[PIECE_COUNT];
	struct pollfd event = {.fd = fc_media_event_fd(world->media), .events = POLLIN};

	world_fill(world, 7);
	for (enum fc_io_op op = FC_IO_WRITE;; op = FC_IO_READ) {
		world_submit_all(world, ios, op);
		while (!world_is_all_done(ios)) {
			if (!is_sleeping_on_fd)
				fc_media_wait(world->media, 1000000000);
			else if (fc_media_poll(world->media) == 0 && !world_is_all_done(ios))
				CHECK(poll(&event, 1, 5000) == 1);
		}
		for (int i = 0; i < PIECE_COUNT; i++)
			CHECK(ios[i].done_count == 1 && ios[i].io.result == (int64_t)PIECE_BYTES);
		if (op == FC_IO_READ)
			break;
		CHECK(medium_run(world->media, FC_IO_SYNC, 0, NULL, 0) == 0);
		memset(world->buffer, 0, ARENA_BYTES);
	}
	for (uint64_t at = 0; at < ARENA_BYTES; at++)
		CHECK(world->buffer[at] == world_byte(7, at));
	return 0;
}

static int body_without_uring(struct ssd_world *world, unsigned error)
{
	CHECK(refuse_call(SYS_io_uring_setup, ANY_ARGUMENT, error));
	CHECK(open_arena(world) == 0);
	CHECK(strcmp(fc_ssd_engine_name(world->media), "threads") == 0);
	CHECK(has_notice(world, "io_uring"));
	CHECK(has_notice(world, strerror((int)error)));
	CHECK(world->media->ops->register_buffers(world->media, world->buffer, ARENA_BYTES) == 0);
	CHECK(read_back_all(world, false) == 0);
	CHECK(read_back_all(world, true) == 0);
	CHECK(truncate(world->path, ARENA_BYTES / 2) == 0);
	CHECK(medium_run(world->media, FC_IO_READ, 0, world->buffer, ARENA_BYTES) == FC_EIO);
	CHECK(world->media->counters.errors == 1);
	CHECK(fc_media_wait(world->media, UINT64_MAX / 2) == 0);
	fc_media_close(world->media);
	return 0;
}

static int body_uring_filtered(struct ssd_world *world)
{
	return body_without_uring(world, EPERM);
}
static int body_uring_unknown(struct ssd_world *world)
{
	return body_without_uring(world, ENOSYS);
}

static void where_io_uring_is_filtered_threads_take_over(void **state)
{
	assert_int_equal(run_in_child(*state, body_uring_filtered), 0);
}

static void where_io_uring_is_unknown_threads_take_over(void **state)
{
	assert_int_equal(run_in_child(*state, body_uring_unknown), 0);
}

/* fcntl(fd, F_SETFL, O_DIRECT) */
static int body_without_direct_io(struct ssd_world *world)
{
	CHECK(refuse_call(SYS_fcntl, O_DIRECT, EINVAL));
	CHECK(open_arena(world) == 0);
	CHECK(!fc_ssd_is_direct(world->media));
	CHECK(world->media->align == 4096);
	CHECK(has_notice(world, "O_DIRECT"));
	CHECK(read_back_all(world, false) == 0);
	fc_media_close(world->media);
	return 0;
}

static void without_direct_io_the_page_cache_serves(void **state)
{
	assert_int_equal(run_in_child(*state, body_without_direct_io), 0);
}

static int body_without_space_to_set_aside(struct ssd_world *world)
{
	/* fallocate(fd, 0, 0, bytes): the third argument is the offset. */
	CHECK(refuse_call(SYS_fallocate, ANY_ARGUMENT, EOPNOTSUPP));
	CHECK(open_arena(world) == 0);
	CHECK(world->media->bytes == ARENA_BYTES);
	CHECK(has_notice(world, "set space aside"));
	CHECK(read_back_all(world, false) == 0);
	fc_media_close(world->media);
	return 0;
}

static void where_space_cannot_be_set_aside_a_notice_says_so(void **state)
{
	assert_int_equal(run_in_child(*state, body_without_space_to_set_aside), 0);
}

static int body_full(struct ssd_world *world)
{
	struct fc_ssd_opts opts = {.path = world->path, .bytes = ARENA_BYTES};

	CHECK(refuse_call(SYS_fallocate, ANY_ARGUMENT, ENOSPC));
	CHECK(fc_ssd_open(&opts, &world->media, &world->error) == FC_EFULL);
	CHECK(strstr(world->error.text, "needs 1048576 more bytes") != NULL);
	CHECK(access(world->path, F_OK) != 0);
	return 0;
}

static void a_full_disk_is_told_with_need_and_nothing_stays_behind(void **state)
{
	assert_int_equal(run_in_child(*state, body_full), 0);
}

static int body_little_memlock(struct ssd_world *world)
{
	struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	CHECK(syscall(SYS_capset, &header, none) == 0); /* or root would be above the limit */
	CHECK(open_arena(world) == 0);
	if (strcmp(fc_ssd_engine_name(world->media), "io_uring") != 0)
		return 0; /* refused here already: the other tests' case */
	CHECK(world->media->ops->register_buffers(world->media, world->buffer, ARENA_BYTES) == FC_ELIMIT);
	CHECK(has_notice(world, "RLIMIT_MEMLOCK"));
	size_t notice_bytes = strlen(world->media->notice);
	CHECK(world->media->ops->register_buffers(world->media, world->buffer, ARENA_BYTES) == FC_ELIMIT);
	CHECK(strlen(world->media->notice) == notice_bytes);
	CHECK(read_back_all(world, false) == 0);
	fc_media_close(world->media);
	return 0;
}

static void memory_that_may_not_be_locked_is_used_unregistered(void **state)
{
	assert_int_equal(run_in_child(*state, body_little_memlock), 0);
}

/* The child is killed with writes in flight; its arena can be opened at once, or once they have ended. */
static void a_killed_holder_does_not_keep_the_arena(void **state)
{
	struct ssd_world *world = *state;

	for (int round = 0; round < 5; round++) {
		int pipes[2];
		char byte = 0;
		assert_int_equal(pipe(pipes), 0);
		pid_t child = fork();
		if (child == 0) {
			struct medium_io ios[PIECE_COUNT];
			if (open_arena(world) != 0)
				_exit(1);
			world_submit_all(world, ios, FC_IO_WRITE);
			fc_media_poll(world->media);
			(void)!write(pipes[1], &byte, 1);
			pause();
			_exit(1);
		}
		close(pipes[1]);
		assert_int_equal(read(pipes[0], &byte, 1), 1);
		close(pipes[0]);
		struct fc_ssd_opts opts = {.path = world->path};
		assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EBUSY);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		world_open(world, opts);
		fc_media_close(world->media);
	}
}

/* With nothing in flight there is nothing to wait for, neither the kernel that takes a ring down when it gets round to
 * it.
 */
static void a_holder_that_is_killed_while_idle_gives_the_arena_back_at_once(void **state)
{
	struct ssd_world *world = *state;
	int pipes[2];
	char byte = 0;
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		if (open_arena(world) != 0 ||
		    medium_run(world->media, FC_IO_WRITE, 0, world->buffer, PIECE_BYTES) != (int64_t)PIECE_BYTES)
			_exit(1);
		(void)!write(pipes[1], &byte, 1);
		pause();
		_exit(1);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	int fd = open(world->path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_deinit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(where_io_uring_is_filtered_threads_take_over),
		WITH_WORLD(where_io_uring_is_unknown_threads_take_over),
		WITH_WORLD(without_direct_io_the_page_cache_serves),
		WITH_WORLD(where_space_cannot_be_set_aside_a_notice_says_so),
		WITH_WORLD(a_full_disk_is_told_with_need_and_nothing_stays_behind),
		WITH_WORLD(memory_that_may_not_be_locked_is_used_unregistered),
		WITH_WORLD(a_killed_holder_does_not_keep_the_arena),
		WITH_WORLD(a_holder_that_is_killed_while_idle_gives_the_arena_back_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#define _GNU_SOURCE
#include "real/silent_fs.h"

#include "real/alone.h"
#include "real/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "ssd.arena"
#define FILE_NODE 2u
#define WRITE_BYTES (128u << 10)
#define MESSAGE_BYTES (1u << 20)
#define GUARD_S 100
#define HELD_MAX 64
#define HOLD SIGUSR1
#define LET_GO SIGUSR2

static struct server {
	int fuse_fd, file_fd;
	bool is_there; /* the file was created */
	uint64_t held[HELD_MAX];
	unsigned held_count;
} server;

static volatile sig_atomic_t are_syncs_held;

/* ---- the server ---- */

static void answer(uint64_t unique, int error, const void *body, size_t bytes)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + bytes), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)(uintptr_t)body, bytes}};
	(void)!writev(server.fuse_fd, parts, bytes == 0 ? 1 : 2); /* whoever asked may be gone */
}

static struct fuse_attr attributes(uint64_t node)
{
	struct stat status = {0};
	(void)fstat(server.file_fd, &status);
	if (node != FILE_NODE)
		return (struct fuse_attr){.ino = 1, .mode = S_IFDIR | 0700, .nlink = 2, .blksize = 4096};
	return (struct fuse_attr){
		.ino = FILE_NODE,
		.size = (uint64_t)status.st_size,
		.blocks = (uint64_t)status.st_size / 512,
		.mode = S_IFREG | 0600,
		.nlink = 1,
		.blksize = 4096,
	};
}

static struct fuse_entry_out entry(void)
{
	return (struct fuse_entry_out){.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
}

static void on_init(const struct fuse_in_header *in, const void *body)
{
	const struct fuse_init_in *init = body;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = init->minor < FUSE_KERNEL_MINOR_VERSION ? init->minor : FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = WRITE_BYTES,
		.flags = init->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ASYNC_DIO | FUSE_ATOMIC_O_TRUNC),
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = WRITE_BYTES,
	};
	answer(in->unique, 0, &out, sizeof(out));
}

static void on_lookup(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = entry();
	bool is_found = server.is_there && strcmp(name, NAME) == 0;
	answer(in->unique, is_found ? 0 : ENOENT, &out, is_found ? sizeof(out) : 0);
}

static void on_create(const struct fuse_in_header *in)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {.entry = entry()};
	server.is_there = true;
	answer(in->unique, 0, &out, sizeof(out));
}

static void on_attributes(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = {.attr = attributes(in->nodeid)};
	answer(in->unique, 0, &out, sizeof(out));
}

static void on_setattr(const struct fuse_in_header *in, const void *body)
{
	const struct fuse_setattr_in *wanted = body;
	int error = 0;
	if ((wanted->valid & FATTR_SIZE) != 0)
		error = ftruncate(server.file_fd, (off_t)wanted->size) == 0 ? 0 : errno;
	if (error != 0)
		answer(in->unique, error, NULL, 0);
	else
		on_attributes(in);
}

static void on_read(const struct fuse_in_header *in, const void *body)
{
	static uint8_t bytes[WRITE_BYTES * 2];
	const struct fuse_read_in *wanted = body;
	ssize_t count = pread(server.file_fd, bytes, wanted->size < sizeof(bytes) ? wanted->size : sizeof(bytes),
			      (off_t)wanted->offset);
	answer(in->unique, count < 0 ? errno : 0, bytes, count < 0 ? 0 : (size_t)count);
}

static void on_write(const struct fuse_in_header *in, const uint8_t *body)
{
	const struct fuse_write_in *wanted = (const void *)body;
	ssize_t count = pwrite(server.file_fd, body + sizeof(*wanted), wanted->size, (off_t)wanted->offset);
	struct fuse_write_out out = {.size = count < 0 ? 0 : (uint32_t)count};
	answer(in->unique, count < 0 ? errno : 0, &out, count < 0 ? 0 : sizeof(out));
}

static void on_sync(const struct fuse_in_header *in)
{
	if (are_syncs_held && server.held_count < HELD_MAX)
		server.held[server.held_count++] = in->unique;
	else
		answer(in->unique, 0, NULL, 0);
}

static void serve(const struct fuse_in_header *in, const uint8_t *body)
{
	struct fuse_open_out opened = {0};
	struct fuse_statfs_out space = {
		.st = {.blocks = 1u << 20, .bfree = 1u << 20, .bavail = 1u << 20, .bsize = 4096, .frsize = 4096}};
	switch (in->opcode) {
	case FUSE_INIT:
		on_init(in, body);
		break;
	case FUSE_LOOKUP:
		on_lookup(in, (const char *)body);
		break;
	case FUSE_CREATE:
		on_create(in);
		break;
	case FUSE_GETATTR:
		on_attributes(in);
		break;
	case FUSE_SETATTR:
		on_setattr(in, body);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		on_read(in, body);
		break;
	case FUSE_WRITE:
		on_write(in, body);
		break;
	case FUSE_FSYNC:
		on_sync(in);
		break;
	case FUSE_STATFS:
		answer(in->unique, 0, &space, sizeof(space));
		break;
	case FUSE_READDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* are not answered */
	default:       /* FLUSH among them: the kernel does not ask for it again */
		answer(in->unique, ENOSYS, NULL, 0);
	}
}

static void on_hold(int number)
{
	are_syncs_held = number == HOLD;
}

static _Noreturn void run_server(void)
{
	static uint8_t message[MESSAGE_BYTES];
	struct sigaction action = {.sa_handler = on_hold};
	sigaction(HOLD, &action, NULL);
	sigaction(LET_GO, &action, NULL);
	for (;;) {
		ssize_t count = read(server.fuse_fd, message, sizeof(message));
		if (count < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
			_exit(0); /* unmounted */
		while (!are_syncs_held && server.held_count > 0)
			answer(server.held[--server.held_count], 0, NULL, 0);
		if (count > 0)
			serve((const struct fuse_in_header *)(const void *)message,
			      message + sizeof(struct fuse_in_header));
	}
}

/* ---- mounting ---- */

static pid_t start_server(void)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_server();
	return pid;
}

static pid_t start_guard(pid_t test, pid_t watched)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	close(server.fuse_fd);
	alarm(0);
	for (int waited_s = 0; waited_s < GUARD_S && kill(test, 0) == 0; waited_s++)
		sleep(1);
	kill(watched, SIGKILL);
	_exit(0);
}

void silent_fs_mount(struct silent_fs *fs)
{
	char options[100];
	enter_namespace();
	snprintf(fs->dir, sizeof(fs->dir), "/tmp/fc-silent-XXXXXX");
	assert_non_null(mkdtemp(fs->dir));
	snprintf(fs->arena, sizeof(fs->arena), "%s/" NAME, fs->dir);
	server.fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	server.file_fd = memfd_create("arena", MFD_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", server.fuse_fd, geteuid(),
		 getegid());
	if (server.fuse_fd < 0 || mount("silent", fs->dir, "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
		rmdir(fs->dir);
		skip_alone("FUSE is not to be had here (/dev/fuse, or the right to mount)");
	}
	fs->server = start_server();
	fs->guard = start_guard(getpid(), fs->server);
	close(server.fuse_fd);
	close(server.file_fd);
}

void silent_fs_unmount(struct silent_fs *fs)
{
	kill(fs->guard, SIGKILL);
	kill(fs->server, SIGKILL);
	waitpid(fs->guard, NULL, 0);
	waitpid(fs->server, NULL, 0);
	(void)umount2(fs->dir, MNT_DETACH);
	rmdir(fs->dir);
}

/* Until it has stopped, so that what comes afterwards is not answered. */
void silent_fs_stop(const struct silent_fs *fs)
{
	int status;
	assert_int_equal(kill(fs->server, SIGSTOP), 0);
	assert_int_equal(waitpid(fs->server, &status, WUNTRACED), fs->server);
	assert_true(WIFSTOPPED(status));
}

void silent_fs_go_on(const struct silent_fs *fs)
{
	assert_int_equal(kill(fs->server, SIGCONT), 0);
}

void silent_fs_hold_syncs(const struct silent_fs *fs, bool are_held)
{
	assert_int_equal(kill(fs->server, are_held ? HOLD : LET_GO), 0);
}

/* A real flatcaked in a folder of its own, and a bare client that speaks to it in messages: where the stories of
 * test_daemon.c take place. */
#ifndef FC_TESTS_DAEMON_DAEMON_WORLD_H
#define FC_TESTS_DAEMON_DAEMON_WORLD_H

#include "store/store_world.h"

#include "host/alloc.h"
#include "lib/hang.h"
#include "wire/wire.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define DESCRIPTORS 3
#define SCALE "2048"

struct daemon_world {
	char dir[64], memory_dir[64];
	char socket[100], log[100], arena[100];
	char options[8][120]; /* of the program, as --name=value */
	pid_t pid;            /* 0: not running */
	struct fc_geometry geometry;
};

static inline void pause_ms(long ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&pause, NULL);
}

static inline void daemon_world_init(struct daemon_world *world)
{
	memset(world, 0, sizeof(*world));
	snprintf(world->dir, sizeof(world->dir), "/tmp/fc-daemon-XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	/* Memory that outlives a process is a file system of its own. */
	snprintf(world->memory_dir, sizeof(world->memory_dir), "/dev/shm/%s", world->dir + strlen("/tmp/"));
	snprintf(world->socket, sizeof(world->socket), "%s/run/s.sock", world->dir);
	snprintf(world->log, sizeof(world->log), "%s/log", world->dir);
	snprintf(world->arena, sizeof(world->arena), "%s/ssd.arena", world->dir);
	assert_int_equal(fc_geometry_preset(&world->geometry, "llama-3.1-8b", 64, (uint32_t)atoi(SCALE), NULL), 0);
	snprintf(world->options[0], sizeof(world->options[0]), "--ssd-path=%s", world->arena);
	snprintf(world->options[1], sizeof(world->options[1]), "--memory-path=%s/memory.arena", world->memory_dir);
	snprintf(world->options[2], sizeof(world->options[2]), "--lock-path=%s/clients.lock", world->dir);
	snprintf(world->options[3], sizeof(world->options[3]), "--socket=%s", world->socket);
}

/* Starts the program; its standard error goes to the log. */
static inline pid_t daemon_world_spawn(const struct daemon_world *world, const char *extra)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/flatcaked", getenv("FC_BUILD_DIR"));
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	int log = open(world->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(log, STDERR_FILENO);
	umask(0);                         /* modes must not depend on it */
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
	execl(path, path, "--model=llama-3.1-8b", "--scale=" SCALE, "--block-tokens=64", "--ssd=64MiB",
	      "--memory=16MiB", "--window=4MiB", "--log-format=text", "--http-listen=127.0.0.1:0", world->options[0],
	      world->options[1], world->options[2], world->options[3], extra, (char *)NULL);
	_exit(127);
}

static inline bool daemon_world_log_says(const struct daemon_world *world, const char *words)
{
	uint64_t bytes = 0;
	if (access(world->log, F_OK) != 0)
		return false;
	uint8_t *log = store_world_read_file(world->log, &bytes);
	bool is_there = bytes > 0 && memmem(log, bytes, words, strlen(words)) != NULL;
	free(log);
	return is_there;
}

static inline bool daemon_world_has_ended(const struct daemon_world *world)
{
	siginfo_t end = {0};
	return waitid(P_PID, (id_t)world->pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid != 0;
}

/* What it said instead stands in the test's own output. */
static inline void daemon_world_miss_log(const struct daemon_world *world, const char *words)
{
	uint64_t bytes = 0;
	if (access(world->log, F_OK) == 0) {
		uint8_t *log = store_world_read_file(world->log, &bytes);
		fprintf(stderr, "---- log of flatcaked\n%.*s----\n", (int)bytes, (const char *)log);
		free(log);
	}
	fail_msg("the log does not say \"%s\"", words);
}

static inline void daemon_world_expect_log(const struct daemon_world *world, const char *words)
{
	for (int waited = 0; !daemon_world_log_says(world, words); waited += 10) {
		bool is_last = world->pid != 0 && daemon_world_has_ended(world) && !daemon_world_log_says(world, words);
		if (waited > HANG_MS || is_last)
			daemon_world_miss_log(world, words);
		pause_ms(10);
	}
}

static inline void daemon_world_start(struct daemon_world *world, const char *extra)
{
	unlink(world->log);
	world->pid = daemon_world_spawn(world, extra);
	daemon_world_expect_log(world, "listening");
}

/* The exit status, or 256 + the signal. */
static inline int daemon_world_wait(pid_t pid)
{
	int status = 0;
	for (int waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited += 10) {
		if (waited > HANG_MS)
			fail_msg("flatcaked does not end");
		pause_ms(10);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static inline int daemon_world_stop(struct daemon_world *world, int signal)
{
	assert_int_equal(kill(world->pid, signal), 0);
	pid_t pid = world->pid;
	world->pid = 0;
	return daemon_world_wait(pid);
}

static inline void daemon_world_deinit(struct daemon_world *world)
{
	char folder[200];
	if (world->pid != 0)
		assert_int_equal(daemon_world_stop(world, SIGTERM), 0);
	store_world_remove_files(world->memory_dir);
	snprintf(folder, sizeof(folder), "%s/run", world->dir);
	store_world_remove_files(folder);
	store_world_remove_files(world->dir);
}

/* ---- a bare client ---- */

struct bare {
	int fd;
	int fds[DESCRIPTORS]; /* lock, memory, SSD; -1: closed */
	struct fc_alloc alloc;
	struct fc_wire_buffer in, out;
	struct fc_wire_welcome welcome;
	uint64_t next_request;
};

static inline int bare_connect(struct bare *bare, const struct daemon_world *world)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	*bare = (struct bare){.alloc = fc_alloc_system(), .fds = {-1, -1, -1}};
	fc_wire_buffer_init(&bare->in, &bare->alloc);
	fc_wire_buffer_init(&bare->out, &bare->alloc);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", world->socket);
	bare->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connect(bare->fd, (struct sockaddr *)&address, sizeof(address));
}

static inline void bare_send(struct bare *bare)
{
	assert_int_equal(send(bare->fd, bare->out.bytes, bare->out.used, MSG_NOSIGNAL), bare->out.used);
	fc_wire_buffer_drop(&bare->out, bare->out.used);
}

/* 0 at the end of the connection. */
static inline ssize_t bare_receive(struct bare *bare, int wait_ms)
{
	char bytes[65536], control[CMSG_SPACE(sizeof(int) * DESCRIPTORS)];
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct pollfd wait = {.fd = bare->fd, .events = POLLIN};
	if (poll(&wait, 1, wait_ms) <= 0)
		return -1;
	ssize_t count = recvmsg(bare->fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head != NULL) {
		assert_int_equal(head->cmsg_len, CMSG_LEN(sizeof(bare->fds)));
		memcpy(bare->fds, CMSG_DATA(head), sizeof(bare->fds));
	}
	if (count > 0)
		assert_int_equal(fc_wire_buffer_add(&bare->in, bytes, (uint64_t)count), 0);
	return count;
}

static inline const uint8_t *bare_expect(struct bare *bare, enum fc_wire_type type, struct fc_wire_header *header)
{
	const uint8_t *body = NULL;
	struct fc_error error = {0};
	int code;
	while ((code = fc_wire_next(&bare->in, header, &body, &error)) == FC_EAGAIN)
		if (bare_receive(bare, HANG_MS) <= 0)
			fail_msg("%s was expected, and nothing comes", fc_wire_type_name(type));
	if (code != FC_OK || header->type != type)
		fail_msg("%s was expected: %s %s", fc_wire_type_name(type), fc_wire_type_name(header->type),
			 error.text);
	return body;
}

static inline void bare_take(struct bare *bare, const struct fc_wire_header *header)
{
	fc_wire_buffer_drop(&bare->in, FC_WIRE_HEADER_BYTES + header->body_bytes);
}

static inline void bare_open(struct bare *bare, const struct daemon_world *world)
{
	struct fc_wire_header header;
	struct fc_wire_hello hello = {
		.version_min = 1, .version_max = 1, .program = "bare", .geometry = world->geometry};
	assert_int_equal(bare_connect(bare, world), 0);
	assert_int_equal(fc_wire_put_hello(&bare->out, &hello), 0);
	bare_send(bare);
	const uint8_t *body = bare_expect(bare, FC_WIRE_WELCOME, &header);
	assert_int_equal(fc_wire_get_welcome(&bare->welcome, body, header.body_bytes, NULL), 0);
	bare_take(bare, &header);
}

static inline void bare_disconnect(struct bare *bare)
{
	close(bare->fd);
	fc_wire_buffer_deinit(&bare->in);
	fc_wire_buffer_deinit(&bare->out);
}

static inline void bare_unlock(struct bare *bare)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		if (bare->fds[i] >= 0)
			close(bare->fds[i]);
}

static inline void bare_close(struct bare *bare)
{
	bare_disconnect(bare);
	bare_unlock(bare);
}

static inline uint64_t bare_put_reserve(struct bare *bare, uint64_t session, const struct fc_key *keys, uint64_t count)
{
	struct fc_wire_reserve reserve = {.turn = {.session = {0, session}, .keys = keys, .key_count = count}};
	reserve.turn.resident[0].count = count;
	assert_int_equal(fc_wire_put_reserve(&bare->out, ++bare->next_request, &reserve), 0);
	bare_send(bare);
	return bare->next_request;
}

/* The code of the answer, with what it says. */
static inline int bare_take_reserved(struct bare *bare, const struct daemon_world *world, uint64_t request,
				     struct fc_error *why)
{
	struct fc_wire_header header;
	struct fc_reservation reservation = {0};
	struct fc_error error = {0};
	int code = 0;
	const uint8_t *body = bare_expect(bare, FC_WIRE_RESERVED, &header);
	assert_int_equal(header.request, request);
	assert_int_equal(fc_wire_get_reserved(&code, &reservation, why, &bare->welcome, &world->geometry, &bare->alloc,
					      body, header.body_bytes, &error),
			 0);
	bare_take(bare, &header);
	assert_int_equal(reservation.grant_count > 0, code == FC_OK);
	reservation.grant_count = 0;
	reservation.sources.is_leased = false;
	fc_reservation_deinit(&reservation, &bare->alloc);
	return code;
}

static inline void bare_expect_reserved(struct bare *bare, const struct daemon_world *world, uint64_t request)
{
	struct fc_error why = {0};
	if (bare_take_reserved(bare, world, request, &why) != FC_OK)
		fail_msg("%s", why.text);
}

static inline uint64_t bare_bytes_used(struct bare *bare)
{
	struct fc_wire_header header;
	struct fc_stats stats;
	assert_int_equal(fc_wire_put_plain(&bare->out, FC_WIRE_STATS, ++bare->next_request), 0);
	bare_send(bare);
	const uint8_t *body = bare_expect(bare, FC_WIRE_STATED, &header);
	assert_int_equal(fc_wire_get_stated(&stats, body, header.body_bytes, NULL), 0);
	bare_take(bare, &header);
	return stats.media[FC_SSD].bytes_used + stats.media[FC_MEMORY].bytes_used;
}

static inline void bare_expect_bytes_used(struct bare *bare, uint64_t bytes)
{
	for (int waited = 0; bare_bytes_used(bare) != bytes; waited += 10) {
		if (waited > HANG_MS)
			fail_msg("the space does not come back");
		pause_ms(10);
	}
}

#endif

#define _GNU_SOURCE
#include "bench/bare.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME_BYTES 64u   /* around the keys of a request, and around the segments of an answer */
#define SEGMENT_BYTES 88u /* a place with one range and a span */

static bool move_all(int fd, uint8_t *bytes, uint64_t count, bool is_write)
{
	while (count > 0) {
		ssize_t moved = is_write ? write(fd, bytes, count) : read(fd, bytes, count);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved <= 0)
			return false;
		bytes += moved;
		count -= (uint64_t)moved;
	}
	return true;
}

/* Takes what is there of the request, `left` bytes of which are still to come. What they are is no matter, so all
 * connections share a buffer. False when the connection has ended. */
static bool take_some(const struct fc_bench_bare *bare, int fd, uint64_t *left)
{
	ssize_t got = recv(fd, bare->bytes, *left, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	*left -= (uint64_t)got;
	return got > 0;
}

/* The child's life: whoever asks is answered, in turn, until it is killed. It waits for nobody alone. */
static void serve(const struct fc_bench_bare *bare)
{
	struct pollfd fds[FC_BENCH_BARE_CLIENTS];
	uint64_t left[FC_BENCH_BARE_CLIENTS], first = 0;
	for (int i = 0; i < FC_BENCH_BARE_CLIENTS; i++) {
		fds[i] = (struct pollfd){.fd = bare->servers[i], .events = POLLIN};
		left[i] = bare->request_bytes;
	}
	while (poll(fds, FC_BENCH_BARE_CLIENTS, -1) > 0) {
		for (int i = 0; i < FC_BENCH_BARE_CLIENTS; i++) {
			if (fds[i].revents == 0)
				continue;
			if (!take_some(bare, fds[i].fd, &left[i]))
				return;
			if (left[i] > 0)
				continue;
			left[i] = bare->request_bytes;
			first = (first + bare->probe_count) % bare->probes.key_count;
			if (fc_bench_probes_run(&bare->probes, first, bare->probe_count) != bare->probe_count ||
			    !move_all(fds[i].fd, bare->bytes, bare->answer_bytes, true))
				return;
		}
	}
}

static int connect_all(struct fc_bench_bare *bare, struct fc_error *error)
{
	for (int i = 0; i < FC_BENCH_BARE_CLIENTS; i++) {
		int ends[2];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
			return fc_error_set(error, FC_ESYSTEM, "socketpair: %s", strerror(errno));
		bare->clients[i] = ends[0];
		bare->servers[i] = ends[1];
	}
	return FC_OK;
}

int fc_bench_bare_start(struct fc_bench_bare *bare, const struct fc_bench_history *history, uint64_t seed,
			struct fc_error *error)
{
	uint64_t turn_blocks = history->block_count / (history->session_count * history->turn_count);
	*bare = (struct fc_bench_bare){.probe_count = history->wanted_blocks};
	for (int i = 0; i < FC_BENCH_BARE_CLIENTS; i++)
		bare->clients[i] = bare->servers[i] = -1;
	bare->request_bytes = history->wanted_blocks * sizeof(struct fc_key) + FRAME_BYTES;
	bare->answer_bytes = (history->wanted_blocks / turn_blocks + 1) * SEGMENT_BYTES + FRAME_BYTES;
	bare->bytes = calloc(1, fc_max_u64(bare->request_bytes, bare->answer_bytes));
	if (bare->bytes == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a request");
	int code = fc_bench_probes_init(&bare->probes, history->block_count, seed, error);
	if (code == FC_OK)
		code = connect_all(bare, error);
	if (code != FC_OK)
		return code;
	bare->pid = fork();
	if (bare->pid < 0)
		return fc_error_set(error, FC_ESYSTEM, "fork: %s", strerror(errno));
	if (bare->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(bare);
		_exit(1);
	}
	return FC_OK;
}

void fc_bench_bare_stop(struct fc_bench_bare *bare)
{
	if (bare->pid > 0) {
		kill(bare->pid, SIGKILL);
		(void)waitpid(bare->pid, NULL, 0);
	}
	for (int i = 0; i < FC_BENCH_BARE_CLIENTS && bare->bytes != NULL; i++) {
		if (bare->clients[i] >= 0)
			(void)close(bare->clients[i]);
		if (bare->servers[i] >= 0)
			(void)close(bare->servers[i]);
	}
	fc_bench_probes_deinit(&bare->probes);
	free(bare->bytes);
	*bare = (struct fc_bench_bare){0};
}

int fc_bench_bare_ask(const struct fc_bench_bare *bare, uint64_t number, struct fc_error *error)
{
	int fd = bare->clients[number];
	if (move_all(fd, bare->bytes, bare->request_bytes, true) &&
	    move_all(fd, bare->bytes, bare->answer_bytes, false))
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "the bare server: %s", strerror(errno));
}

#include "store/remote.h"

#include "base/check.h"
#include "media/memory.h"
#include "media/ssd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_NS (50ull * 1000 * 1000)
#define OPEN_TIMEOUT_NS (10ull * 1000 * 1000 * 1000)
#define FDS_MAX 3u /* lock, memory, SSD */
#define READ_BYTES (256u << 10)

struct fc_remote {
	struct fc_remote_opts opts;
	char *path;
	struct fc_client *client;
	int fd;      /* -1: closed */
	int lock_fd; /* -1: none */
	bool is_fencing;
	uint64_t next_try_ns;
	int fds[FDS_MAX]; /* that came and nobody has taken yet */
	unsigned fd_count;
	bool are_fds_lost; /* some found no room in this process */
	struct fc_media *media[FC_MEDIUM_COUNT];
	bool are_media_taken[FC_MEDIUM_COUNT];
	bool has_arenas; /* a welcome was taken; the identity of its arenas: */
	struct fc_key key_salt;
	struct statx arenas[FC_MEDIUM_COUNT];
	struct fc_wire_arena described[FC_MEDIUM_COUNT];
	uint8_t *buffer;
};

/* ---- descriptors ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void drop_fds(struct fc_remote *remote)
{
	while (remote->fd_count > 0)
		close_fd(&remote->fds[--remote->fd_count]);
	remote->are_fds_lost = false;
}

static void keep_fds(struct fc_remote *remote, struct msghdr *message)
{
	remote->are_fds_lost |= (message->msg_flags & MSG_CTRUNC) != 0;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
			if (remote->fd_count < FDS_MAX)
				remote->fds[remote->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

/* ---- the welcome ---- */

static int adopt(struct fc_remote *remote, enum fc_medium medium, int fd, const struct fc_wire_arena *arena,
		 struct fc_error *error)
{
	struct fc_ssd_opts opts = {
		.path = "SSD arena of flatcaked",
		.align = arena->align,
		.queue_depth = remote->opts.queue_depth,
		.transfer_bytes = remote->opts.transfer_bytes,
	};
	struct fc_media **media = &remote->media[medium];
	int code = medium == FC_SSD ? fc_ssd_adopt(fd, &opts, media, error)
				    : fc_memory_adopt(fd, "memory arena of flatcaked", arena->is_durable, media, error);
	if (code != FC_OK) {
		close(fd);
		return code;
	}
	if ((*media)->bytes < arena->bytes || arena->align % (*media)->align != 0)
		return fc_error_set(
			error, FC_EINVAL, "%s: %llu bytes, aligned to %u; flatcaked says %llu bytes, aligned to %u",
			medium == FC_SSD ? opts.path : "memory arena of flatcaked", (unsigned long long)(*media)->bytes,
			(*media)->align, (unsigned long long)arena->bytes, arena->align);
	return FC_OK;
}

static bool is_same(const struct statx *now, const struct statx *before)
{
	return now->stx_dev_major == before->stx_dev_major && now->stx_dev_minor == before->stx_dev_minor &&
	       now->stx_rdev_major == before->stx_rdev_major && now->stx_rdev_minor == before->stx_rdev_minor &&
	       now->stx_ino == before->stx_ino;
}

/* What a core reads and writes must be what it was opened with. */
static int check_same(const struct fc_remote *remote, const struct fc_wire_welcome *welcome, const struct statx *arenas,
		      struct fc_error *error)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_wire_arena *now = &welcome->arenas[medium], *before = &remote->described[medium];
		bool is_same_file = is_same(&arenas[medium], &remote->arenas[medium]);
		if (!is_same_file || now->is_there != before->is_there || now->bytes != before->bytes ||
		    now->align != before->align)
			return fc_error_set(error, FC_EINVAL,
					    "%s: flatcaked came back with another %s arena; open the store again",
					    remote->path, medium == FC_SSD ? "SSD" : "memory");
	}
	if (welcome->key_salt.high != remote->key_salt.high || welcome->key_salt.low != remote->key_salt.low)
		return fc_error_set(error, FC_EINVAL, "%s: flatcaked came back with new arenas; open the store again",
				    remote->path);
	return FC_OK;
}

static int check_count(const struct fc_remote *remote, const struct fc_wire_welcome *welcome, struct fc_error *error)
{
	if (remote->are_fds_lost)
		return fc_error_set(
			error, FC_ESYSTEM,
			"%s: no room for the descriptors that flatcaked hands out: this process has as many "
			"open as it may; close some, or raise RLIMIT_NOFILE",
			remote->path);
	unsigned expected = 1u + welcome->arenas[FC_MEMORY].is_there + welcome->arenas[FC_SSD].is_there;
	if (remote->fd_count != expected)
		return fc_error_set(error, FC_EFORMAT, "%s: %u descriptors came with WELCOME, %u were announced",
				    remote->path, remote->fd_count, expected);
	return FC_OK;
}

static int take_arenas(struct fc_remote *remote, const struct fc_wire_welcome *welcome, struct fc_error *error)
{
	struct statx arenas[FC_MEDIUM_COUNT] = {{0}};
	int fds[FC_MEDIUM_COUNT] = {-1, -1};
	unsigned next = 1;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (!welcome->arenas[medium].is_there)
			continue;
		fds[medium] = remote->fds[next++];
		/* As the kernel knows it: the file system is not asked, which may not answer. */
		if (statx(fds[medium], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &arenas[medium]) != 0)
			return fc_error_set(error, FC_ESYSTEM, "%s: statx: %s", remote->path, strerror(errno));
	}
	if (remote->has_arenas)
		return check_same(remote, welcome, arenas, error);
	memcpy(remote->arenas, arenas, sizeof(arenas));
	memcpy(remote->described, welcome->arenas, sizeof(remote->described));
	remote->key_salt = welcome->key_salt;
	remote->has_arenas = true;
	remote->fd_count = 1; /* from here on they are the media's */
	int code = FC_OK;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (fds[medium] >= 0 && code == FC_OK)
			code = adopt(remote, (enum fc_medium)medium, fds[medium], &welcome->arenas[medium], error);
		else if (fds[medium] >= 0)
			close(fds[medium]);
	}
	return code;
}

static int on_welcome(void *context, const struct fc_wire_welcome *welcome, struct fc_error *error)
{
	struct fc_remote *remote = context;
	int code = check_count(remote, welcome, error);
	if (code == FC_OK)
		code = take_arenas(remote, welcome, error);
	if (code != FC_OK)
		return code;
	fc_check(remote->lock_fd < 0);
	remote->lock_fd = remote->fds[0];
	remote->fds[0] = remote->fds[--remote->fd_count];
	drop_fds(remote);
	return FC_OK;
}

/* ---- the socket ---- */

static int refuse_connect(const char *path, int failure, struct fc_error *error)
{
	if (failure == ENOENT || failure == ECONNREFUSED)
		return fc_error_set(error, FC_ENOENT, "%s: no flatcaked listens here (%s)", path, strerror(failure));
	if (failure == EAGAIN)
		return fc_error_set(error, FC_EAGAIN,
				    "%s: flatcaked does not let anybody in: too many wait to connect, or it is stopped",
				    path);
	return fc_error_set(error, FC_ESYSTEM, "%s: connect: %s%s", path, strerror(failure),
			    failure == EACCES ? "; users of the socket's group may, see socket_mode of flatcaked" : "");
}

static int connect_to(struct fc_remote *remote, struct fc_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(remote->path) >= sizeof(address.sun_path))
		return fc_error_set(error, FC_EINVAL, "%s: a socket's path of %zu bytes; at most %zu are allowed",
				    remote->path, strlen(remote->path), sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, remote->path, strlen(remote->path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: socket: %s", remote->path, strerror(errno));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		int failure = errno;
		close(fd);
		return refuse_connect(remote->path, failure, error);
	}
	remote->fd = fd;
	fc_client_connected(remote->client);
	return FC_OK;
}

static void disconnect(struct fc_remote *remote)
{
	close_fd(&remote->fd);
	drop_fds(remote);
	remote->is_fencing = true;
	remote->next_try_ns = fc_clock_real_ns() + RETRY_NS;
	fc_client_disconnected(remote->client);
}

/* False when the connection has ended. */
static bool receive(struct fc_remote *remote, unsigned *count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec part = {.iov_base = remote->buffer, .iov_len = READ_BYTES};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t received = recvmsg(remote->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (received < 0)
		return errno == EAGAIN || errno == EINTR;
	if (received == 0)
		return false;
	*count += 1;
	keep_fds(remote, &message);
	struct fc_error why;
	return fc_client_received(remote->client, remote->buffer, (uint64_t)received, &why) == FC_OK;
}

static bool transmit(struct fc_remote *remote, unsigned *count)
{
	struct fc_wire_buffer *output = fc_client_output(remote->client);
	while (output->used > 0) {
		ssize_t sent = send(remote->fd, output->bytes, output->used, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		fc_wire_buffer_drop(output, (uint64_t)sent);
		*count += 1;
	}
	return true;
}

/* Connects again when the last write of the connection before has ended. */
static void step_closed(struct fc_remote *remote)
{
	if (fc_clock_real_ns() < remote->next_try_ns)
		return;
	remote->next_try_ns = fc_clock_real_ns() + RETRY_NS;
	if (remote->is_fencing && fc_client_may_unlock(remote->client)) {
		close_fd(&remote->lock_fd);
		remote->is_fencing = false;
	}
	if (remote->is_fencing || fc_client_state(remote->client) == FC_CLIENT_REFUSED)
		return;
	(void)connect_to(remote, NULL); /* else it is tried again */
}

unsigned fc_remote_step(struct fc_remote *remote)
{
	unsigned count = 0;
	if (remote->fd < 0)
		step_closed(remote);
	if (remote->fd < 0)
		return 0;
	bool is_well = transmit(remote, &count) && receive(remote, &count);
	if (!is_well || fc_client_wants_close(remote->client)) {
		disconnect(remote);
		return count + 1;
	}
	return count;
}

int fc_remote_fd(const struct fc_remote *remote, short *events)
{
	*events = POLLIN;
	if (remote->fd >= 0 && fc_client_output(remote->client)->used > 0)
		*events |= POLLOUT;
	return remote->fd;
}

uint64_t fc_remote_wake_ns(const struct fc_remote *remote)
{
	bool is_tried_again = remote->fd < 0 && fc_client_state(remote->client) != FC_CLIENT_REFUSED;
	return is_tried_again ? fc_max_u64(remote->next_try_ns, fc_clock_real_ns() + 1) : UINT64_MAX;
}

/* ---- open and close ---- */

/* Where many start at once, the queue of the socket is full for a moment. */
static int connect_by(struct fc_remote *remote, uint64_t end_ns, struct fc_error *error)
{
	int code;
	while ((code = connect_to(remote, error)) == FC_EAGAIN && fc_clock_real_ns() < end_ns)
		(void)poll(NULL, 0, RETRY_NS / 1000000);
	return code;
}

static int wait_for_welcome(struct fc_remote *remote, uint64_t end_ns, struct fc_error *error)
{
	while (fc_client_state(remote->client) == FC_CLIENT_GREETING && fc_clock_real_ns() < end_ns) {
		struct pollfd wait = {.fd = -1};
		wait.fd = fc_remote_fd(remote, &wait.events);
		(void)poll(&wait, 1, 100);
		(void)fc_remote_step(remote);
	}
	if (fc_client_state(remote->client) == FC_CLIENT_UP)
		return FC_OK;
	const struct fc_error *why = fc_client_refusal(remote->client);
	if (why->code != FC_OK) {
		fc_error_set(error, why->code, "%s", why->text);
		return fc_error_wrap(error, why->code, "%s", remote->path);
	}
	if (fc_clock_real_ns() >= end_ns)
		return fc_error_set(error, FC_ETIMEOUT, "%s: flatcaked does not answer", remote->path);
	return fc_error_set(error, FC_EIO, "%s: flatcaked closed the connection", remote->path);
}

static int make_client(struct fc_remote *remote, struct fc_error *error)
{
	struct fc_client_opts opts = {
		.alloc = remote->opts.alloc,
		.clock = fc_clock_real(),
		.geometry = remote->opts.geometry,
		.name_space = remote->opts.name_space,
		.program = remote->opts.program,
		.reconnect_timeout_ns = remote->opts.reconnect_timeout_ns,
		.answer_timeout_ns = remote->opts.answer_timeout_ns,
		.claim_timeout_ns = remote->opts.claim_timeout_ns,
		.welcome_cb = on_welcome,
		.context = remote,
	};
	return fc_client_open(&remote->client, &opts, error);
}

int fc_remote_open(struct fc_remote **result, const struct fc_remote_opts *opts, struct fc_error *error)
{
	struct fc_remote *remote = calloc(1, sizeof(*remote));
	if (remote == NULL)
		return fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
	remote->opts = *opts;
	remote->fd = remote->lock_fd = -1;
	remote->path = strdup(opts->path);
	remote->buffer = malloc(READ_BYTES);
	uint64_t end_ns = fc_clock_real_ns() + OPEN_TIMEOUT_NS;
	int code = FC_OK;
	if (remote->path == NULL || remote->buffer == NULL)
		code = fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
	if (code == FC_OK)
		code = make_client(remote, error);
	if (code == FC_OK)
		code = connect_by(remote, end_ns, error);
	if (code == FC_OK)
		code = wait_for_welcome(remote, end_ns, error);
	if (code != FC_OK)
		fc_remote_close(remote);
	else
		*result = remote;
	return code;
}

void fc_remote_close(struct fc_remote *remote)
{
	if (remote == NULL)
		return;
	if (remote->fd >= 0)
		disconnect(remote);
	close_fd(&remote->lock_fd);
	drop_fds(remote);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (!remote->are_media_taken[medium])
			fc_media_close(remote->media[medium]);
	fc_client_free(remote->client);
	free(remote->buffer);
	free(remote->path);
	free(remote);
}

void fc_remote_abandon(struct fc_remote *remote)
{
	close_fd(&remote->fd);
	close_fd(&remote->lock_fd);
	drop_fds(remote);
}

struct fc_client *fc_remote_client(struct fc_remote *remote)
{
	return remote->client;
}

struct fc_media *fc_remote_take_media(struct fc_remote *remote, enum fc_medium medium)
{
	remote->are_media_taken[medium] = true;
	return remote->media[medium];
}

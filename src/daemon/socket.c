/* The Unix socket: who connects, what arrives, what is sent, which descriptors go along.
 *
 *     connected --bytes--> the server --answers--> `dirty` --flush--> the socket, as far as it takes them
 *        |  end of file, error, or the server wants it
 *        v
 *     closed --lock free--> forgotten
 *
 * A client gets descriptors of its own (separate open file descriptions) of the arenas: they neither keep this
 * process's lock on an arena alive, nor share its flags. */
#define _GNU_SOURCE
#include "daemon/daemon.h"

#include "base/check.h"
#include "host/private_file.h"
#include "media/memory.h"
#include "media/ssd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RECEIVE_BYTES (256u << 10)
#define BACKLOG 128
#define ACCEPTS_MAX 16 /* in a row */
#define DESCRIPTORS_MAX 3
/* How long the last commands of a dead process are waited for, once its lock is free. */
#define IN_FLIGHT_NS (2000ull * 1000 * 1000)

struct fc_connection {
	struct fc_daemon *daemon;
	struct fc_link link;       /* daemon->connections or ->gone */
	struct fc_link dirty_link; /* daemon->dirty */
	uv_poll_t poll;
	int fd;     /* -1: closed */
	int events; /* that the loop waits for: starting anew costs a system call */
	struct fc_server_client *client;
	uint64_t number;
	struct fc_daemon_spare spare; /* of the arena: its descriptor, until it is sent, and the number of its lock */
	bool has_spare;
	bool has_lock;   /* its descriptors were sent */
	bool is_waiting; /* with its welcome, for a descriptor of the arena */
	bool is_to_close, is_handle_closed;
	uint64_t free_since_ns; /* its lock is, but not the arena; 0: not yet */
	gid_t *groups;          /* of its process */
};

/* ---- the listening socket ---- */

static int refuse_live(const char *path, int fd, struct fc_error *error)
{
	struct ucred peer = {0};
	socklen_t length = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		peer.pid = 0;
	return fc_error_set(error, FC_EBUSY, "%s: process %d listens here already; stop it, or use another socket",
			    path, peer.pid);
}

/* Takes away the file of a daemon that is dead, and nothing else. */
static int clear_path(const char *path, const struct sockaddr_un *address, struct fc_error *error)
{
	struct stat status;
	if (lstat(path, &status) != 0)
		return errno == ENOENT ? FC_OK : fc_error_set(error, FC_ESYSTEM, "%s: stat: %s", path, strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return fc_error_set(error, FC_EINVAL, "%s: there is a file that is no socket", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: socket: %s", path, strerror(errno));
	int code = FC_OK;
	/* EAGAIN: somebody listens, and is busy. */
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
		code = refuse_live(path, fd, error);
	else if (errno != ECONNREFUSED)
		code = fc_error_set(error, FC_ESYSTEM, "%s: connect: %s", path, strerror(errno));
	close(fd);
	if (code == FC_OK && unlink(path) != 0 && errno != ENOENT)
		code = fc_error_set(error, FC_ESYSTEM, "%s: unlink: %s", path, strerror(errno));
	return code;
}

static int open_to_others(const struct fc_config *config, struct fc_error *error)
{
	static const mode_t modes[] = {[FC_SOCKET_OWNER] = 0600, [FC_SOCKET_GROUP] = 0660, [FC_SOCKET_ALL] = 0666};
	const char *path = config->socket_path;
	if (config->socket_group != NULL) {
		const struct group *group = getgrnam(config->socket_group);
		if (group == NULL)
			return fc_error_set(error, FC_EINVAL, "socket_group: there is no group \"%s\"",
					    config->socket_group);
		if (chown(path, (uid_t)-1, group->gr_gid) != 0)
			return fc_error_set(error, FC_ESYSTEM, "%s: giving it to group \"%s\": %s", path,
					    config->socket_group, strerror(errno));
	}
	if (chmod(path, modes[config->socket_mode]) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: chmod: %s", path, strerror(errno));
	return FC_OK;
}

/* What has happened to the socket's file; NULL: nothing that can be seen. While the socket is open no other file has
 * its number. */
static const char *find_loss(const struct fc_daemon *daemon)
{
	struct stat status;
	if (lstat(daemon->settings->config.socket_path, &status) != 0)
		return errno == ENOENT || errno == ENOTDIR ? "the socket was removed or renamed" : NULL;
	if (status.st_dev != daemon->socket_device || status.st_ino != daemon->socket_inode)
		return "the socket was replaced by another file";
	return NULL;
}

static int remember_file(struct fc_daemon *daemon, struct fc_error *error)
{
	const char *path = daemon->settings->config.socket_path;
	struct stat status;
	if (lstat(path, &status) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: stat: %s", path, strerror(errno));
	daemon->socket_device = status.st_dev;
	daemon->socket_inode = status.st_ino;
	daemon->is_socket_ours = true;
	return FC_OK;
}

/* The mode of the socket before it is bound is that of its file: at no moment can others connect. */
static int bind_and_listen(struct fc_daemon *daemon, const struct sockaddr_un *address, struct fc_error *error)
{
	const struct fc_config *config = &daemon->settings->config;
	const char *path = config->socket_path;
	daemon->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (daemon->listen_fd < 0 || fchmod(daemon->listen_fd, 0600) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: socket: %s", path, strerror(errno));
	if (bind(daemon->listen_fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: bind: %s", path, strerror(errno));
	int code = remember_file(daemon, error);
	if (code == FC_OK)
		code = open_to_others(config, error);
	if (code == FC_OK && listen(daemon->listen_fd, BACKLOG) != 0)
		code = fc_error_set(error, FC_ESYSTEM, "%s: listen: %s", path, strerror(errno));
	return code;
}

static void on_connect(uv_poll_t *handle, int status, int events);

/* Where others can replace the socket, engines would hand their blocks to whoever did. */
static void warn_of_folder(const char *path)
{
	char notice[FC_PRIVATE_NOTICE_BYTES];
	fc_private_look_at_folder(path, notice);
	if (notice[0] != '\0')
		fc_log(FC_LOG_WARNING, "exposed", "%s", notice);
}

int fc_daemon_listen(struct fc_daemon *daemon, struct fc_error *error)
{
	const char *path = daemon->settings->config.socket_path;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return fc_error_set(error, FC_EINVAL, "%s: a socket's path of %zu bytes; at most %zu are allowed", path,
				    strlen(path), sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	daemon->receive_buffer = malloc(RECEIVE_BYTES);
	if (daemon->receive_buffer == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory", path);
	int code = fc_daemon_make_parent(path, error);
	if (code == FC_OK)
		code = clear_path(path, &address, error);
	if (code == FC_OK)
		code = bind_and_listen(daemon, &address, error);
	if (code != FC_OK)
		return code;
	warn_of_folder(path);
	daemon->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fc_check(uv_poll_init(&daemon->loop, &daemon->listen_poll, daemon->listen_fd) == 0);
	daemon->listen_poll.data = daemon;
	fc_check(uv_poll_start(&daemon->listen_poll, UV_READABLE, on_connect) == 0);
	return FC_OK;
}

/* A file that is not this daemon's stays. */
void fc_daemon_stop_listening(struct fc_daemon *daemon)
{
	if (daemon->is_socket_ours && find_loss(daemon) == NULL)
		(void)unlink(daemon->settings->config.socket_path);
	daemon->is_socket_ours = false;
	if (daemon->listen_fd >= 0) {
		if (daemon->listen_poll.data != NULL)
			uv_poll_stop(&daemon->listen_poll);
		close(daemon->listen_fd);
		close(daemon->spare_fd);
		daemon->listen_fd = -1;
	}
	free(daemon->receive_buffer);
	daemon->receive_buffer = NULL;
}

/* Those who are connected go on, and whoever comes does not find the way. It is not made anew: a path that somebody has
 * cleared may be meant for somebody else, who would be in turn pushed aside. */
void fc_daemon_look_at_socket(struct fc_daemon *daemon)
{
	const char *path = daemon->settings->config.socket_path;
	const char *lost = daemon->is_socket_ours ? find_loss(daemon) : NULL;
	if (lost != NULL && daemon->socket_lost == NULL)
		fc_log(FC_LOG_ERROR, "socket-lost",
		       "%s: %s: whoever is connected goes on, nobody else can connect until it is put back or the "
		       "daemon is started anew",
		       path, lost);
	if (lost == NULL && daemon->socket_lost != NULL)
		fc_log(FC_LOG_INFO, "socket-back", "%s: the socket is in its place again", path);
	daemon->socket_lost = lost;
}

/* ---- the end of a connection ---- */

static void free_connection(struct fc_connection *connection)
{
	if (connection == NULL)
		return;
	if (connection->spare.fd >= 0)
		close(connection->spare.fd);
	free(connection->groups);
	free(connection);
}

static void forget(struct fc_connection *connection)
{
	if (connection->client != NULL || !connection->is_handle_closed)
		return;
	fc_list_remove(&connection->link);
	free_connection(connection);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct fc_connection *connection = handle->data;
	connection->is_handle_closed = true;
	forget(connection);
}

static void unlocked(struct fc_connection *connection)
{
	fc_server_unlocked(connection->client);
	connection->client = NULL;
	forget(connection);
}

static void end_connection(struct fc_connection *connection)
{
	struct fc_daemon *daemon = connection->daemon;
	uv_poll_stop(&connection->poll);
	close(connection->fd);
	connection->fd = -1;
	fc_list_remove(&connection->dirty_link);
	fc_list_remove(&connection->link);
	fc_list_push(&daemon->gone, &connection->link);
	uv_close((uv_handle_t *)&connection->poll, on_handle_closed);
	fc_server_disconnected(connection->client);
	if (!connection->has_lock)
		unlocked(connection);
}

void fc_daemon_end_connections(struct fc_daemon *daemon)
{
	fc_list_for_each_safe(link, &daemon->connections)
	{
		end_connection(fc_container_of(link, struct fc_connection, link));
	}
}

void fc_daemon_forget_connections(struct fc_daemon *daemon)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&daemon->gone)) != NULL)
		free_connection(fc_container_of(link, struct fc_connection, link));
}

static bool is_over(const struct fc_daemon *daemon, struct fc_connection *connection, uint64_t now_ns)
{
	enum fc_lock_state state = fc_locks_state(daemon->locks, connection->spare.number);
	if (state == FC_LOCK_FREE)
		return true;
	if (state == FC_LOCK_HELD) {
		connection->free_since_ns = 0; /* an arena that fell silent may have held commands back */
		return false;
	}
	if (connection->free_since_ns == 0)
		connection->free_since_ns = now_ns;
	return now_ns - connection->free_since_ns >= IN_FLIGHT_NS;
}

bool fc_daemon_look_at_locks(struct fc_daemon *daemon, uint64_t now_ns)
{
	bool is_one_held = false;
	fc_list_for_each_safe(link, &daemon->gone)
	{
		struct fc_connection *connection = fc_container_of(link, struct fc_connection, link);
		if (connection->client == NULL)
			continue;
		if (is_over(daemon, connection, now_ns))
			unlocked(connection);
		else
			is_one_held = true;
	}
	return is_one_held;
}

/* ---- sending ---- */

static int reopen(int fd, struct fc_error *error)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int copy = open(path, O_RDWR | O_CLOEXEC);
	if (copy < 0)
		fc_error_set(error, FC_ESYSTEM, "%s: %s", path, strerror(errno));
	return copy;
}

/* In the order lock, memory, SSD; those that were opened are to be closed also after a failure. */
static int open_descriptors(struct fc_connection *connection, int fds[DESCRIPTORS_MAX], unsigned *count,
			    struct fc_error *error)
{
	const struct fc_daemon *daemon = connection->daemon;
	*count = 0;
	int code = fc_locks_take(daemon->locks, connection->spare.number, &fds[0], error);
	if (code != FC_OK)
		return code;
	*count = 1;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_media *media = daemon->media[medium];
		if (media == NULL)
			continue;
		int fd = medium == FC_SSD ? connection->spare.fd : reopen(fc_memory_fd(media), error);
		if (fd < 0)
			return FC_ESYSTEM;
		if (medium == FC_SSD)
			connection->spare.fd = -1; /* it is closed with the others */
		fds[(*count)++] = fd;
	}
	return FC_OK;
}

/* The first bytes of a connection, which are the welcome, with the descriptors. */
static ssize_t send_welcome(struct fc_connection *connection, const struct fc_wire_buffer *output)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MAX)];
	} control = {0};
	struct iovec part = {.iov_base = output->bytes, .iov_len = output->used};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
	int fds[DESCRIPTORS_MAX];
	unsigned count;
	struct fc_error error = {0};
	ssize_t sent = -1;
	if (open_descriptors(connection, fds, &count, &error) == FC_OK) {
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
		sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		connection->has_lock = sent > 0;
	} else {
		fc_log(FC_LOG_ERROR, "client-descriptors", "client %llu gets no descriptors: %s",
		       (unsigned long long)connection->number, error.text);
		errno = EIO;
	}
	int failure = errno;
	while (count > 0)
		close(fds[--count]);
	errno = failure;
	return sent;
}

/* False: it has to wait for the descriptor of the arena. */
static bool obtain_spare(struct fc_connection *connection)
{
	struct fc_daemon *daemon = connection->daemon;
	if (connection->has_spare)
		return true;
	if (daemon->media[FC_SSD] == NULL)
		connection->spare.number = connection->number;
	else if (!fc_daemon_take_spare(daemon, &connection->spare))
		return false;
	connection->has_spare = true;
	return true;
}

/* As much as the socket takes. False when the connection is of no use any more. */
static bool transmit(struct fc_connection *connection)
{
	struct fc_wire_buffer *output = fc_server_output(connection->client);
	while (output->used > 0) {
		bool is_first = fc_server_client_is_welcome(connection->client) && !connection->has_lock;
		connection->is_waiting = is_first && !obtain_spare(connection);
		if (connection->is_waiting)
			return true;
		ssize_t sent = is_first
				       ? send_welcome(connection, output)
				       : send(connection->fd, output->bytes, output->used, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		fc_wire_buffer_drop(output, (uint64_t)sent);
	}
	return true;
}

static void on_ready(uv_poll_t *handle, int status, int events);

static void wait_for(struct fc_connection *connection, int events)
{
	if (connection->events != events)
		fc_check(uv_poll_start(&connection->poll, events, on_ready) == 0);
	connection->events = events;
}

static void flush(struct fc_connection *connection)
{
	fc_list_remove(&connection->dirty_link);
	bool is_well = transmit(connection);
	if (!is_well || connection->is_to_close) {
		end_connection(connection);
		return;
	}
	bool has_output = fc_server_output(connection->client)->used > 0 && !connection->is_waiting;
	wait_for(connection, UV_READABLE | (has_output ? UV_WRITABLE : 0));
}

void fc_daemon_flush(struct fc_daemon *daemon)
{
	while (!fc_list_is_empty(&daemon->dirty))
		flush(fc_container_of(daemon->dirty.next, struct fc_connection, dirty_link));
}

static void make_dirty(struct fc_connection *connection)
{
	if (!fc_link_is_linked(&connection->dirty_link))
		fc_list_push(&connection->daemon->dirty, &connection->dirty_link);
}

void fc_daemon_arena_is_open(struct fc_daemon *daemon, bool is_open)
{
	fc_list_for_each(link, &daemon->connections)
	{
		struct fc_connection *connection = fc_container_of(link, struct fc_connection, link);
		if (!connection->is_waiting)
			continue;
		connection->is_to_close |= !is_open;
		make_dirty(connection);
	}
	fc_daemon_flush(daemon);
}

void fc_daemon_has_output(void *context, struct fc_server_client *client)
{
	(void)context;
	make_dirty(fc_server_client_context(client));
}

void fc_daemon_wants_close(void *context, struct fc_server_client *client)
{
	(void)context;
	struct fc_connection *connection = fc_server_client_context(client);
	connection->is_to_close = true;
	make_dirty(connection);
}

/* ---- receiving ---- */

/* One piece for each time that it is readable, so that nobody keeps the others waiting. False: it has ended. */
static bool receive(struct fc_connection *connection)
{
	uint8_t *buffer = connection->daemon->receive_buffer;
	ssize_t count = recv(connection->fd, buffer, RECEIVE_BYTES, MSG_DONTWAIT);
	if (count < 0)
		return errno == EAGAIN || errno == EINTR;
	if (count == 0)
		return false;
	fc_server_received(connection->client, buffer, (uint64_t)count);
	return true;
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
	struct fc_connection *connection = handle->data;
	struct fc_daemon *daemon = connection->daemon;
	bool is_well = status == 0;
	if (is_well && (events & UV_READABLE) != 0)
		is_well = receive(connection);
	if (!is_well) {
		end_connection(connection);
		return;
	}
	if ((events & UV_WRITABLE) != 0)
		make_dirty(connection);
	fc_daemon_flush(daemon);
}

/* ---- accepting ---- */

/* Says why, if the socket takes it. */
static void refuse(const struct fc_daemon *daemon, int fd, const struct fc_error *error)
{
	struct fc_wire_refused refused = {.error = *error};
	struct fc_wire_buffer buffer;
	fc_wire_buffer_init(&buffer, &daemon->alloc);
	if (fc_wire_put_refused(&buffer, &refused) == FC_OK)
		(void)send(fd, buffer.bytes, buffer.used, MSG_NOSIGNAL | MSG_DONTWAIT);
	fc_wire_buffer_deinit(&buffer);
}

/* Who it is, as the kernel knows it. */
static int identify(int fd, struct fc_connection *connection, struct fc_server_peer *peer)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials), group_bytes = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
		return FC_ESYSTEM;
	*peer = (struct fc_server_peer){.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
	/* The first call says how many there are. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &group_bytes) == 0 || errno != ERANGE)
		return FC_OK;
	connection->groups = malloc(group_bytes);
	if (connection->groups == NULL)
		return FC_ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, connection->groups, &group_bytes) != 0)
		return FC_ESYSTEM;
	peer->groups = connection->groups;
	peer->group_count = (uint32_t)(group_bytes / sizeof(*connection->groups));
	return FC_OK;
}

static void admit(struct fc_daemon *daemon, int fd)
{
	struct fc_connection *connection = calloc(1, sizeof(*connection));
	struct fc_server_peer peer;
	struct fc_error error = {0};
	if (connection != NULL)
		connection->spare.fd = -1;
	if (connection == NULL || identify(fd, connection, &peer) != FC_OK) {
		free_connection(connection);
		close(fd);
		return;
	}
	if (fc_daemon_check_arena(daemon, &error) != FC_OK ||
	    fc_server_connect(daemon->server, &peer, connection, &connection->client, &error) != FC_OK) {
		refuse(daemon, fd, &error);
		free_connection(connection);
		close(fd);
		return;
	}
	connection->daemon = daemon;
	connection->fd = fd;
	connection->number = fc_server_client_number(connection->client);
	fc_check(uv_poll_init(&daemon->loop, &connection->poll, fd) == 0);
	connection->poll.data = connection;
	fc_list_push(&daemon->connections, &connection->link);
	wait_for(connection, UV_READABLE);
}

/* Without a descriptor left, whoever waits would make the socket readable for ever: the spare one lets him in, to be
 * turned away. */
static void turn_away(struct fc_daemon *daemon)
{
	close(daemon->spare_fd);
	int fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	daemon->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_connect(uv_poll_t *handle, int status, int events)
{
	struct fc_daemon *daemon = handle->data;
	(void)events;
	for (int i = 0; status == 0 && i < ACCEPTS_MAX; i++) {
		int fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			admit(daemon, fd);
			continue;
		}
		int failure = errno;
		if (failure != EAGAIN && failure != EINTR && failure != ECONNABORTED)
			fc_log(FC_LOG_ERROR, "accept", "accept: %s", strerror(failure));
		if (failure == EMFILE || failure == ENFILE)
			turn_away(daemon);
		return;
	}
}

/* ---- the log ---- */

static enum fc_log_level level_of(enum fc_server_event event)
{
	switch (event) {
	case FC_SERVER_CONNECTED:
	case FC_SERVER_DISCONNECTED:
	case FC_SERVER_FENCE_OVER:
	case FC_SERVER_DRAINING:
	case FC_SERVER_ORPHANS_FREED:
		return FC_LOG_INFO;
	default:
		return FC_LOG_WARNING;
	}
}

void fc_daemon_on_event(void *context, enum fc_server_event event, const struct fc_server_client *client,
			const char *text)
{
	(void)context;
	struct fc_log_field field = {"client", FC_LOG_COUNT(client == NULL ? 0 : fc_server_client_number(client))};
	fc_log_write(level_of(event), fc_server_event_name(event), &field, client == NULL ? 0 : 1, "%s", text);
}

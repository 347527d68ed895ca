/* What the files of the running daemon share.
 *
 *     main.c      settings
 *     serve.c     log, and the frame of a life
 *     open.c      arenas, core, server: opened, and closed in reverse
 *     loop.c      the loop (libuv): steps the core between events, timers, signals, stopping
 *     socket.c    the listening socket and the connections
 *     locks.c     which clients may still write
 *     arena.c     whether the SSD arena answers, and descriptors of it for clients
 *     snapshot.c  what operators see (view.h)
 *     operate.c   HTTP on the loop
 *
 * One thread, which calls nothing that waits for the file of an arena once that is open.
 *
 *     OPENING --arenas recovered--> FENCING --no lock of an earlier run is held, or fence_timeout--> READY
 *        |                             |                                                              |
 *        '------------ signal, drain --+--------------------------------------------------------------'
 *                                      v
 *                DRAINING --reservations have ended, or drain_timeout--> CLOSING --the core is idle--> the end
 *
 * A second signal ends the process at once: its arenas are then as after any crash, which loses nothing that was
 * durable. */
#ifndef FC_DAEMON_DAEMON_H
#define FC_DAEMON_DAEMON_H

#include "core/core.h"
#include "daemon/locks.h"
#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/settings.h"
#include "daemon/view.h"
#include "server/server.h"

#include <uv.h>

struct fc_connection;
struct fc_http;
struct fc_snapshot;

#define FC_DAEMON_SPARES 8u

/* A descriptor of the SSD arena for a client that is still to come, and the number of the lock that it is marked with.
 */
struct fc_daemon_spare {
	int fd;
	uint64_t number;
};

struct fc_daemon_arena {
	const char *path;
	struct fc_io io; /* the read that is to be answered */
	void *buffer;    /* NULL: there is no SSD arena */
	bool is_asked, is_silent;
	uint64_t asked_ns;
	struct fc_daemon_spare spares[FC_DAEMON_SPARES];
	uint32_t spare_count;
	uint64_t next_number;
	/* the job's */
	uv_work_t work;
	bool is_filling;
	struct fc_daemon_spare opened;
	struct fc_error error;
};

struct fc_daemon {
	const struct fc_daemon_settings *settings;
	struct fc_notify notify;
	struct fc_alloc alloc;
	enum fc_daemon_state state;
	bool is_closing; /* behind DRAINING: connections are ended, the core comes to rest */
	int exit_code;   /* of the process */
	uint64_t started_ns;
	int64_t started_at_s;

	/* open.c */
	struct fc_media *media[FC_MEDIUM_COUNT];
	struct fc_device *device;
	struct fc_core *core;
	struct fc_server *server;
	struct fc_locks *locks;
	struct fc_owner *owners;
	uint32_t owner_count;
	struct fc_server_namespace_opts *namespaces;
	uint32_t *ids; /* of users and groups, for the namespaces */
	struct fc_uuid instance;
	bool is_core_open, has_open_ended;

	/* loop.c */
	uv_loop_t loop;
	uv_prepare_t prepare;
	uv_idle_t idle;
	uv_timer_t timer, second, alive;
	uv_poll_t ssd_poll;
	uv_signal_t signals[3];
	uint64_t fence_end_ns, fence_flight_end_ns, drain_end_ns, next_lock_look_ns, next_arena_look_ns;
	bool is_loss_told[FC_MEDIUM_COUNT]; /* in the log */

	struct fc_daemon_arena arena; /* arena.c */

	/* operate.c, snapshot.c */
	struct fc_http *http; /* NULL: off */
	struct fc_snapshot *snapshot;
	uv_poll_t http_poll;
	uv_timer_t http_timer;

	/* socket.c */
	int listen_fd, spare_fd;
	uv_poll_t listen_poll;
	bool is_socket_ours; /* its file was made by this process: this one */
	dev_t socket_device;
	ino_t socket_inode;
	const char *socket_lost; /* what has happened to its file, so that nobody new finds it; NULL: it is there */
	struct fc_link connections, dirty, gone;
	uint8_t *receive_buffer;
};

static inline uint64_t fc_daemon_now_ns(void)
{
	return fc_clock_real_ns();
}

/* ---- serve.c ---- */

/* A daemon's whole life, one at a time in a process; returns the process's exit code. */
int fc_daemon_serve(const struct fc_daemon_settings *settings);

/* ---- open.c ---- */

/* The folder of a file, 0700, if it is missing. */
FC_MUST_USE int fc_daemon_make_parent(const char *path, struct fc_error *error);
/* Arenas, device, locks, and the core, which goes on opening in the loop. On failure fc_daemon_close() cleans up. */
FC_MUST_USE int fc_daemon_open(struct fc_daemon *daemon, struct fc_error *error);
/* Logs what can be done about an open that failed, if there is something. */
void fc_daemon_hint(const struct fc_daemon *daemon, int code);
/* Once the core is open. */
FC_MUST_USE int fc_daemon_open_server(struct fc_daemon *daemon, struct fc_error *error);
/* The core is idle, or was never open. */
void fc_daemon_close(struct fc_daemon *daemon);

/* ---- loop.c ---- */

/* Runs until it is told to stop; returns the process's exit code. */
int fc_daemon_run(struct fc_daemon *daemon);
/* The core's, when the arenas are recovered. */
void fc_daemon_on_opened(void *daemon, int code, const struct fc_error *error);
/* Begins to stop; allowed at any time. */
void fc_daemon_drain(struct fc_daemon *daemon, const char *why);
/* Something cannot be gone on with. */
void fc_daemon_fail(struct fc_daemon *daemon, const struct fc_error *error);

/* ---- arena.c ---- */

/* Once arena and locks are open. */
FC_MUST_USE int fc_daemon_open_arena(struct fc_daemon *daemon, struct fc_error *error);
/* After the loop. */
void fc_daemon_close_arena(struct fc_daemon *daemon);
/* Once a second: asks whether it answers, and says so when it does not. */
void fc_daemon_look_at_arena(struct fc_daemon *daemon, uint64_t now_ns);
/* How long it has not answered, if that is longer than io_timeout; else 0. */
uint64_t fc_daemon_silence_ns(const struct fc_daemon *daemon, uint64_t now_ns);
/* Something is under way that must end before the arena is closed. */
bool fc_daemon_arena_is_asked(const struct fc_daemon *daemon);
/* False: there is none; fc_daemon_arena_is_open() will be called. */
bool fc_daemon_take_spare(struct fc_daemon *daemon, struct fc_daemon_spare *spare);
/* FC_EAGAIN with text when a client that connects now would get no descriptor. */
FC_MUST_USE int fc_daemon_check_arena(const struct fc_daemon *daemon, struct fc_error *error);

/* ---- operate.c ---- */

/* Once there is a loop; nothing when http_listen is off. */
FC_MUST_USE int fc_daemon_open_http(struct fc_daemon *daemon, struct fc_error *error);
/* After the loop. */
void fc_daemon_close_http(struct fc_daemon *daemon);

/* ---- snapshot.c ---- */

/* What HTTP asks; until fc_snapshot_free(). */
FC_MUST_USE int fc_daemon_open_snapshot(struct fc_daemon *daemon, struct fc_daemon_callbacks *callbacks,
					struct fc_error *error);
void fc_snapshot_free(struct fc_snapshot *snapshot);

/* ---- socket.c ---- */

/* FC_EBUSY names the process that listens there already. */
FC_MUST_USE int fc_daemon_listen(struct fc_daemon *daemon, struct fc_error *error);
void fc_daemon_stop_listening(struct fc_daemon *daemon);
/* Once a second: asks whether the socket's file still is the one that was made, and says so in the log when it changes.
 */
void fc_daemon_look_at_socket(struct fc_daemon *daemon);
/* Sends what waits, and ends the connections that are to end. */
void fc_daemon_flush(struct fc_daemon *daemon);
/* arena.c's: there is a descriptor for those who wait for one, or there will be none. */
void fc_daemon_arena_is_open(struct fc_daemon *daemon, bool is_open);
/* Looks whose locks are free by now; true while some are not. */
bool fc_daemon_look_at_locks(struct fc_daemon *daemon, uint64_t now_ns);
void fc_daemon_end_connections(struct fc_daemon *daemon);
/* After the loop, and after the server. */
void fc_daemon_forget_connections(struct fc_daemon *daemon);
/* The server's: see server.h. */
void fc_daemon_has_output(void *daemon, struct fc_server_client *client);
void fc_daemon_wants_close(void *daemon, struct fc_server_client *client);
void fc_daemon_on_event(void *daemon, enum fc_server_event event, const struct fc_server_client *client,
			const char *text);

#endif

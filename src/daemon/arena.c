/* The file of the SSD arena, as far as the daemon itself has to do with it. A call for it may not return for as long as
 * its file system or device does not answer, so none is made on the loop once the arena is open:
 *
 *  - Whether it answers is seen by a read of its first bytes, once a second, through the medium, which never waits. One
 *    that is under way for io_timeout makes the arena silent, until it returns.
 *  - A client's descriptor is opened before the client is there, and marked with the lock (locks.h) that it will have,
 *    by a thread of libuv's. A few lie in store, so that clients are let in while the arena is silent; when there are
 *    no more, who connects is told why.
 *
 *     none --fc_daemon_open_arena()--> filling (one job at a time) --FC_DAEMON_SPARES are there--> full
 *                                         ^                                                         |
 *                                         '---------------- fc_daemon_take_spare() ----------------'
 */
#define _GNU_SOURCE
#include "daemon/daemon.h"

#include "base/check.h"
#include "media/ssd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_ALIGN 65536u
#define NS_PER_S 1000000000ull

/* ---- does it answer? ---- */

static void on_answer(struct fc_io *io)
{
	struct fc_daemon_arena *arena = fc_container_of(io, struct fc_daemon_arena, io);
	if (arena->is_silent)
		fc_log(FC_LOG_WARNING, "arena-answers", "%s answers again", arena->path);
	arena->is_asked = arena->is_silent = false;
}

static void ask(struct fc_daemon *daemon, uint64_t now_ns)
{
	struct fc_daemon_arena *arena = &daemon->arena;
	arena->is_asked = true;
	arena->asked_ns = now_ns;
	arena->io = (struct fc_io){
		.op = FC_IO_READ, .bytes = FC_SUPERBLOCK_BYTES, .buffer = arena->buffer, .done_cb = on_answer};
	fc_media_submit(daemon->media[FC_SSD], &arena->io);
}

void fc_daemon_look_at_arena(struct fc_daemon *daemon, uint64_t now_ns)
{
	struct fc_daemon_arena *arena = &daemon->arena;
	uint64_t limit_ns = daemon->settings->config.io_timeout_ns;
	if (arena->buffer == NULL)
		return;
	fc_locks_arena_answers(daemon->locks, !arena->is_asked); /* what was asked a second ago */
	if (!arena->is_asked && !daemon->is_closing)
		ask(daemon, now_ns);
	if (!arena->is_asked || arena->is_silent || now_ns - arena->asked_ns < limit_ns)
		return;
	arena->is_silent = true;
	fc_log(FC_LOG_ERROR, "arena-silent",
	       "%s has not answered for %llu s: loads from it end by their time limits, and nothing is saved to it",
	       arena->path, (unsigned long long)((now_ns - arena->asked_ns) / NS_PER_S));
}

uint64_t fc_daemon_silence_ns(const struct fc_daemon *daemon, uint64_t now_ns)
{
	return daemon->arena.is_silent ? fc_max_u64(now_ns - daemon->arena.asked_ns, 1) : 0;
}

bool fc_daemon_arena_is_asked(const struct fc_daemon *daemon)
{
	return daemon->arena.is_asked || daemon->arena.is_filling;
}

/* ---- descriptors for clients ---- */

/* On a thread of libuv's: an open file description of its own, since it is marked with the client's lock. */
static void open_spare(uv_work_t *work)
{
	struct fc_daemon *daemon = work->data;
	struct fc_daemon_arena *arena = &daemon->arena;
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fc_ssd_fd(daemon->media[FC_SSD]));
	int flags = fc_ssd_is_direct(daemon->media[FC_SSD]) ? O_DIRECT : 0;
	arena->error = (struct fc_error){0};
	arena->opened.fd = open(path, O_RDWR | O_CLOEXEC | flags);
	if (arena->opened.fd < 0) {
		fc_error_set(&arena->error, FC_ESYSTEM, "%s: %s", arena->path, strerror(errno));
		return;
	}
	if (fc_locks_mark(daemon->locks, arena->opened.number, arena->opened.fd, &arena->error) == FC_OK)
		return;
	close(arena->opened.fd);
	arena->opened.fd = -1;
}

static void fill(struct fc_daemon *daemon);

static void on_spare(uv_work_t *work, int status)
{
	struct fc_daemon *daemon = work->data;
	struct fc_daemon_arena *arena = &daemon->arena;
	(void)status;
	arena->is_filling = false;
	if (arena->opened.fd >= 0)
		arena->spares[arena->spare_count++] = arena->opened;
	else
		fc_log(FC_LOG_ERROR, "client-descriptors", "no descriptor of the arena for clients: %s",
		       arena->error.text);
	fc_daemon_arena_is_open(daemon, arena->opened.fd >= 0);
	if (arena->opened.fd >= 0)
		fill(daemon);
}

static void fill(struct fc_daemon *daemon)
{
	struct fc_daemon_arena *arena = &daemon->arena;
	if (arena->buffer == NULL || arena->is_filling || daemon->is_closing || arena->spare_count == FC_DAEMON_SPARES)
		return;
	arena->is_filling = true;
	arena->opened = (struct fc_daemon_spare){.fd = -1, .number = arena->next_number++};
	arena->work.data = daemon;
	fc_check(uv_queue_work(&daemon->loop, &arena->work, open_spare, on_spare) == 0);
}

bool fc_daemon_take_spare(struct fc_daemon *daemon, struct fc_daemon_spare *spare)
{
	struct fc_daemon_arena *arena = &daemon->arena;
	bool is_there = arena->spare_count > 0;
	if (is_there)
		*spare = arena->spares[--arena->spare_count];
	fill(daemon);
	return is_there;
}

int fc_daemon_check_arena(const struct fc_daemon *daemon, struct fc_error *error)
{
	const struct fc_daemon_arena *arena = &daemon->arena;
	uint64_t silence_ns = fc_daemon_silence_ns(daemon, fc_daemon_now_ns());
	if (silence_ns == 0 || arena->spare_count > 0)
		return FC_OK;
	return fc_error_set(error, FC_EAGAIN, "the SSD arena of flatcaked, %s, has not answered for %llu s",
			    arena->path, (unsigned long long)(silence_ns / NS_PER_S));
}

/* ---- open and close ---- */

int fc_daemon_open_arena(struct fc_daemon *daemon, struct fc_error *error)
{
	struct fc_daemon_arena *arena = &daemon->arena;
	if (daemon->media[FC_SSD] == NULL)
		return FC_OK;
	arena->path = daemon->settings->config.ssd_path;
	arena->buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_ALIGN);
	if (arena->buffer == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory", arena->path);
	fill(daemon);
	return FC_OK;
}

void fc_daemon_close_arena(struct fc_daemon *daemon)
{
	struct fc_daemon_arena *arena = &daemon->arena;
	while (arena->spare_count > 0)
		close(arena->spares[--arena->spare_count].fd);
	free(arena->buffer);
	arena->buffer = NULL;
}

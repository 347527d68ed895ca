/* The SSD medium: everything about an I/O but the moving of bytes.
 *
 *      submit()          poll()                             engine
 *   checked ──► waiting ──────► at most queue_depth ──────► pread / pwrite / fdatasync
 *      │                 ▲                                     │
 *      │ refused         └────────── came back short ◄─────────┤
 *      ▼                                                       ▼
 *     done ◄───────────────────────────────────────────── ended
 *      └──► done_cb, from poll()
 *
 * submit() only queues, so that one poll() hands many commands to the kernel at once. A transfer that came back short
 * goes on where it stopped; the end of the file, where nothing more can come, is an error: a short read is never
 * success. */
#define _GNU_SOURCE
#include "media/ssd.h"

#include "media/ssd_internal.h"
#include "media/ssd_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define QUEUE_DEPTH_DEFAULT 64
#define BUFFERED_ALIGN 4096
/* An I/O that is told "try again" this often without having moved a byte has failed. */
#define FRUITLESS_ATTEMPTS_MAX 1000

static struct fc_ssd *ssd_of(const struct fc_media *media)
{
	struct fc_ssd *ssd = fc_container_of(media, struct fc_ssd, media);
	fc_check(ssd->magic == FC_SSD_MAGIC);
	return ssd;
}

static bool is_idle(const struct fc_ssd *ssd)
{
	return ssd->in_flight_count == 0 && fc_list_is_empty(&ssd->waiting) && fc_list_is_empty(&ssd->done);
}

/* ---- the life of an I/O -------------------------------------------------------------------------------------------
 */

static bool is_allowed(const struct fc_ssd *ssd, const struct fc_io *io)
{
	uint64_t misaligned = ssd->media.align - 1;
	uint64_t end = 0;

	if (io->op == FC_IO_SYNC)
		return true;
	if (io->bytes == 0 || fc_add_overflows(io->offset, io->bytes, &end) || end > ssd->media.bytes)
		return false;
	if (io->op == FC_IO_WRITE && ssd->is_read_only)
		return false;
	return ((io->offset | io->bytes | (uint64_t)(uintptr_t)io->buffer) & misaligned) == 0;
}

static void succeed(struct fc_ssd *ssd, struct fc_io *io)
{
	io->result = (int64_t)io->bytes;
	if (io->op == FC_IO_READ)
		ssd->media.counters.bytes_read += io->bytes;
	else if (io->op == FC_IO_WRITE)
		ssd->media.counters.bytes_written += io->bytes;
	fc_list_push(&ssd->done, &io->link);
}

static void fail(struct fc_ssd *ssd, struct fc_io *io, int code, const char *why)
{
	io->result = code;
	io->failure = why;
	ssd->media.counters.errors++;
	fc_list_push(&ssd->done, &io->link);
}

static void ssd_submit(struct fc_media *media, struct fc_io *io)
{
	struct fc_ssd *ssd = ssd_of(media);

	io->medium_private[0] = io->medium_private[1] = 0;
	io->failure = NULL;
	if (media->lost != NULL && io->op != FC_IO_READ)
		fail(ssd, io, FC_EIO, media->lost);
	else if (is_allowed(ssd, io))
		fc_list_push(&ssd->waiting, &io->link);
	else
		fail(ssd, io, FC_EINVAL, "not inside the arena, not aligned, or not open for that");
}

/* Nothing that is written from now on is kept, so nothing may pass for it. */
static void lose(struct fc_ssd *ssd, struct fc_io *io, const char *why)
{
	if (ssd->media.lost == NULL)
		ssd->media.lost = why;
	fail(ssd, io, FC_EIO, ssd->media.lost);
}

static void try_again(struct fc_ssd *ssd, struct fc_io *io)
{
	if (++io->medium_private[1] < FRUITLESS_ATTEMPTS_MAX)
		fc_list_insert_before(ssd->waiting.next, &io->link);
	else
		fail(ssd, io, FC_EIO, "interrupted again and again");
}

static void moved(struct fc_ssd *ssd, struct fc_io *io, uint64_t bytes)
{
	uint64_t moved_bytes = io->medium_private[0] + bytes;

	if (moved_bytes == io->bytes) {
		succeed(ssd, io);
		return;
	}
	/* A command must start aligned; what came back ragged comes again. */
	moved_bytes = fc_align_down(moved_bytes, ssd->media.align);
	if (moved_bytes == io->medium_private[0]) {
		fail(ssd, io, FC_EIO, "the file ends there");
		return;
	}
	io->medium_private[0] = moved_bytes;
	io->medium_private[1] = 0;
	fc_list_insert_before(ssd->waiting.next, &io->link);
}

static int64_t lost_or(struct fc_io *io, const char *lost, int64_t result)
{
	io->failure = lost;
	return lost != NULL ? FC_SSD_LOST : result;
}

int64_t fc_ssd_check_write(const struct fc_arena_file *file, struct fc_io *io)
{
	return lost_or(io, io->op == FC_IO_WRITE ? fc_arena_file_short(file) : NULL, 0);
}

int64_t fc_ssd_check_sync(const struct fc_arena_file *file, struct fc_io *io, int64_t result)
{
	return result < 0 || io->op != FC_IO_SYNC ? result : lost_or(io, fc_arena_file_lost(file), result);
}

void fc_ssd_ended(struct fc_ssd *ssd, struct fc_io *io, int64_t result)
{
	fc_check(ssd->in_flight_count > 0);
	ssd->in_flight_count--;
	if (result == FC_SSD_LOST)
		lose(ssd, io, io->failure);
	else if (result == -EINTR || result == -EAGAIN)
		try_again(ssd, io);
	else if (result < 0)
		fail(ssd, io, result == -ENOSPC || result == -EDQUOT ? FC_EFULL : FC_EIO,
		     strerrordesc_np((int)-result));
	else if (io->op == FC_IO_SYNC)
		succeed(ssd, io);
	else
		moved(ssd, io, (uint64_t)result);
}

static void start_waiting(struct fc_ssd *ssd)
{
	struct fc_media_counters *counters = &ssd->media.counters;
	uint64_t *const commands[] = {
		[FC_IO_READ] = &counters->read_commands,
		[FC_IO_WRITE] = &counters->write_commands,
		[FC_IO_SYNC] = &counters->sync_commands,
	};

	while (ssd->in_flight_count < ssd->media.queue_depth && !fc_list_is_empty(&ssd->waiting)) {
		struct fc_io *io = fc_container_of(fc_list_pop(&ssd->waiting), struct fc_io, link);
		(*commands[io->op])++;
		ssd->in_flight_count++;
		ssd->engine->start(ssd, io);
	}
}

/* Only what is done now: a done_cb that submits what is refused at once must not keep poll() here for ever. */
static unsigned deliver(struct fc_ssd *ssd)
{
	struct fc_link *last = ssd->done.prev;
	unsigned count = 0;

	for (bool is_last = fc_list_is_empty(&ssd->done); !is_last; count++) {
		struct fc_link *link = fc_list_pop(&ssd->done);
		is_last = link == last;
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		io->done_cb(io);
	}
	return count;
}

static unsigned ssd_poll(struct fc_media *media)
{
	struct fc_ssd *ssd = ssd_of(media);

	/* Again while commands that ended have made room: what is left waiting must have something in flight to wait
	 * for. */
	do {
		start_waiting(ssd);
		ssd->engine->poll(ssd);
	} while (!fc_list_is_empty(&ssd->waiting) && ssd->in_flight_count < ssd->media.queue_depth);
	return deliver(ssd);
}

/* What the ended commands make room for is started by the next call, together with what the callbacks submit. */
static unsigned ssd_wait(struct fc_media *media, uint64_t timeout_ns)
{
	struct fc_ssd *ssd = ssd_of(media);

	start_waiting(ssd);
	if (!fc_list_is_empty(&ssd->done) || ssd->in_flight_count == 0)
		return ssd_poll(media);
	ssd->engine->wait(ssd, timeout_ns);
	return deliver(ssd);
}

static int ssd_event_fd(struct fc_media *media)
{
	struct fc_ssd *ssd = ssd_of(media);
	return ssd->engine->event_fd(ssd);
}

static int ssd_register_buffers(struct fc_media *media, void *memory, uint64_t bytes)
{
	struct fc_ssd *ssd = ssd_of(media);

	if (memory == NULL || bytes == 0)
		return FC_EINVAL;
	int failure = ssd->engine->register_buffers(ssd, memory, bytes);
	if (failure == 0)
		return 0;
	if (strstr(ssd->media.notice, "buffers") == NULL)
		fc_media_note(&ssd->media,
			      "%s: I/O buffers are not registered with the kernel (%s%s), which costs some CPU time",
			      ssd->path, strerror(failure),
			      failure == ENOMEM || failure == EPERM ? "; raise RLIMIT_MEMLOCK, ulimit -l" : "");
	return FC_ELIMIT;
}

/* ---- open and close -----------------------------------------------------------------------------------------------
 */

static void ssd_free(struct fc_ssd *ssd, bool is_removed)
{
	fc_arena_file_close(&ssd->file, ssd->path, is_removed);
	free(ssd->path);
	free(ssd);
}

static void ssd_close(struct fc_media *media)
{
	struct fc_ssd *ssd = ssd_of(media);
	fc_check(is_idle(ssd));
	ssd->engine->close(ssd);
	ssd_free(ssd, false);
}

static const struct fc_media_ops ssd_ops = {
	.submit = ssd_submit,
	.poll = ssd_poll,
	.register_buffers = ssd_register_buffers,
	.close = ssd_close,
	.event_fd = ssd_event_fd,
	.wait = ssd_wait,
};

static int check_existing(struct fc_ssd *ssd, struct fc_error *error)
{
	uint64_t hole_bytes = fc_arena_file_hole_bytes(&ssd->file);

	if (hole_bytes > 0)
		fc_media_note(&ssd->media,
			      "%s: no space is set aside for %" PRIu64 " of its bytes; a write may find the disk full",
			      ssd->path, hole_bytes);
	return fc_arena_file_check_limit(&ssd->file, ssd->path, ssd->file.bytes, error);
}

static int open_file(struct fc_ssd *ssd, const struct fc_ssd_opts *opts, struct fc_error *error)
{
	struct fc_arena_file_opts file_opts = {
		.path = ssd->path,
		.is_created = opts->bytes > 0,
		.is_read_only = opts->is_read_only,
		.is_direct = !opts->is_buffered,
	};
	bool is_sparse = false;

	int code = fc_arena_file_open(&ssd->file, &file_opts, error);
	if (code != 0)
		return code;
	if (ssd->file.bytes > 0)
		return opts->is_read_only ? 0 : check_existing(ssd, error);
	if (opts->bytes == 0 || opts->is_read_only)
		return fc_error_set(error, FC_EINVAL, "%s: empty, and no size was given to make an arena of",
				    ssd->path);
	ssd->media.is_new = true;
	code = fc_arena_file_resize(&ssd->file, ssd->path, opts->bytes, &is_sparse, error);
	if (is_sparse)
		fc_media_note(&ssd->media, "%s: its file system cannot set space aside; a write may find it full",
			      ssd->path);
	return code;
}

static int init_align(struct fc_ssd *ssd, const struct fc_ssd_opts *opts, struct fc_error *error)
{
	bool is_buffered = opts->is_buffered;
	uint32_t align = ssd->file.is_direct ? opts->align : 0;

	if (align == 0 && ssd->file.is_direct)
		align = fc_ssd_direct_align(&ssd->file);
	if (align == 0 && ssd->file.is_direct && fc_arena_file_make_buffered(&ssd->file) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: fcntl: %s", ssd->path, strerror(errno));
	if (align == 0 && !is_buffered)
		fc_media_note(
			&ssd->media,
			"%s: its file system has no direct I/O (O_DIRECT); reads and writes go through the page cache",
			ssd->path);
	ssd->media.align = align > 0 ? align : BUFFERED_ALIGN;
	ssd->media.bytes = fc_align_down(ssd->file.bytes, ssd->media.align);
	if (ssd->media.bytes == 0)
		return fc_error_set(error, FC_EINVAL, "%s: %" PRIu64 " bytes, the least is one unit of I/O, %" PRIu32,
				    ssd->path, ssd->file.bytes, ssd->media.align);
	return 0;
}

static int init_limits(struct fc_ssd *ssd, const struct fc_ssd_opts *opts, struct fc_error *error)
{
	if (opts->queue_depth > FC_QUEUE_DEPTH_MAX)
		return fc_error_set(error, FC_EINVAL, "%s: queue depth %" PRIu32 ", allowed are 1 to %u", ssd->path,
				    opts->queue_depth, FC_QUEUE_DEPTH_MAX);
	if (opts->transfer_bytes % ssd->media.align != 0)
		return fc_error_set(error, FC_EINVAL,
				    "%s: largest transfer %" PRIu64 " bytes, allowed are multiples of %" PRIu32,
				    ssd->path, opts->transfer_bytes, ssd->media.align);
	ssd->media.queue_depth = opts->queue_depth > 0 ? opts->queue_depth : QUEUE_DEPTH_DEFAULT;
	ssd->media.transfer_bytes_max =
		opts->transfer_bytes > 0 ? opts->transfer_bytes : fc_ssd_transfer_bytes_max(&ssd->file);
	return 0;
}

static int open_engine(struct fc_ssd *ssd, struct fc_error *error)
{
	ssd->engine = &fc_ssd_engine_uring;
	int failure = ssd->engine->open(ssd);
	if (failure == 0)
		return 0;
	fc_media_note(&ssd->media, "%s: no io_uring (%s); a few threads read and write instead", ssd->path,
		      strerror(failure));
	ssd->engine = &fc_ssd_engine_threads;
	failure = ssd->engine->open(ssd);
	if (failure == 0)
		return 0;
	return fc_error_set(error, FC_ESYSTEM, "%s: neither io_uring nor threads: %s", ssd->path, strerror(failure));
}

static struct fc_ssd *make_ssd(const struct fc_ssd_opts *opts, struct fc_error *error)
{
	struct fc_ssd *ssd = calloc(1, sizeof(*ssd));

	if (ssd == NULL || (ssd->path = strdup(opts->path)) == NULL) {
		free(ssd);
		fc_error_set(error, FC_ENOMEM, "%s: no memory to open it", opts->path);
		return NULL;
	}
	ssd->magic = FC_SSD_MAGIC;
	ssd->media.ops = &ssd_ops;
	ssd->media.name = ssd->path;
	ssd->media.is_durable = true;
	ssd->is_read_only = opts->is_read_only;
	ssd->file.fd = ssd->file.folder_fd = -1;
	fc_list_init(&ssd->waiting);
	fc_list_init(&ssd->done);
	return ssd;
}

/* With the file open. */
static int start_ssd(struct fc_ssd *ssd, const struct fc_ssd_opts *opts, struct fc_error *error)
{
	int code = init_align(ssd, opts, error);
	if (code == 0)
		code = init_limits(ssd, opts, error);
	return code == 0 ? open_engine(ssd, error) : code;
}

int fc_ssd_open(const struct fc_ssd_opts *opts, struct fc_media **media, struct fc_error *error)
{
	struct fc_ssd *ssd = make_ssd(opts, error);

	if (ssd == NULL)
		return FC_ENOMEM;
	int code = open_file(ssd, opts, error);
	if (code == 0)
		code = start_ssd(ssd, opts, error);
	if (code != 0) {
		ssd_free(ssd, ssd->file.is_new);
		return code;
	}
	*media = &ssd->media;
	return 0;
}

int fc_ssd_adopt(int fd, const struct fc_ssd_opts *opts, struct fc_media **media, struct fc_error *error)
{
	struct fc_ssd *ssd = make_ssd(opts, error);

	if (ssd == NULL)
		return FC_ENOMEM;
	int code = fc_arena_file_adopt(&ssd->file, fd, ssd->path, error);
	if (code == 0)
		code = start_ssd(ssd, opts, error);
	if (code != 0) {
		ssd->file.fd = -1; /* the caller's */
		ssd_free(ssd, false);
		return code;
	}
	*media = &ssd->media;
	return 0;
}

/* ---- what else can be asked ---------------------------------------------------------------------------------------
 */

int fc_ssd_resize(struct fc_media *media, uint64_t bytes, struct fc_error *error)
{
	struct fc_ssd *ssd = ssd_of(media);

	fc_check(is_idle(ssd));
	if (ssd->is_read_only)
		return fc_error_set(error, FC_EINVAL, "%s: open for reading only, so its size stays", ssd->path);
	if (bytes < media->align)
		return fc_error_set(error, FC_EINVAL, "%s: size %" PRIu64 ", the least is one unit of I/O, %" PRIu32,
				    ssd->path, bytes, media->align);
	int code = fc_arena_file_resize(&ssd->file, ssd->path, bytes, NULL, error);
	if (code == 0)
		media->bytes = fc_align_down(bytes, media->align);
	return code;
}

void fc_ssd_make_private(struct fc_media *media)
{
	const struct fc_ssd *ssd = ssd_of(media);
	fc_arena_file_make_private(&ssd->file, ssd->path, media);
}

int fc_ssd_fd(const struct fc_media *media)
{
	return ssd_of(media)->file.fd;
}

void fc_ssd_abandon(const struct fc_media *media)
{
	fc_arena_file_abandon(&ssd_of(media)->file);
}

const char *fc_ssd_engine_name(const struct fc_media *media)
{
	return ssd_of(media)->engine->name;
}

bool fc_ssd_is_direct(const struct fc_media *media)
{
	return ssd_of(media)->file.is_direct;
}

/* The medium interface: bytes at offsets, asynchronously. What the core knows of memory, SSD, GPUDirect and remote
 * arenas.
 *
 * Contract, for every implementation:
 *  - submit() never fails and never calls done_cb itself; the result arrives through done_cb, exactly once, from inside
 *    poll(). `result` is the number of bytes moved, or a negative FC_E... code. A caller treats any result but `bytes`
 *    as a failure; an implementation continues a short transfer that the system allows to be continued.
 *  - With a result other than `bytes` comes `failure`: why, in a constant string, by the words of the system where it
 * was the system; NULL when nothing more is known than the code.
 *  - offset, bytes and buffer are multiples of `align` for SSD media; buffers lie in memory that was registered with
 *    register_buffers(), or any other (slower).
 *  - An arena whose file was removed, replaced or made shorter takes writes and syncs and loses them. A medium finds
 * that out, at the latest at a sync: it sets `lost`, and from then on every write and sync fails. What can be read is
 * read.
 *  - FC_IO_SYNC makes every write whose done_cb has been called before the sync was submitted durable.
 *  - The fc_io is the caller's, is borrowed until done_cb is called, and may be reused from inside it.
 *  - An I/O outside the arena, and a write to a medium that is open for reading only, ends with FC_EINVAL.
 *  - submit() and poll() never wait, and wait() no longer than it is told, whatever the hardware, the file system or
 *    the network behind the medium does: an I/O that does not end keeps nobody but its caller's fc_io.
 *  - close() is called with nothing in flight, and register_buffers() while nothing may hold up the medium.
 *  - One thread. */
#ifndef FC_MEDIA_MEDIA_H
#define FC_MEDIA_MEDIA_H

#include "base/error.h"
#include "base/list.h"

enum fc_io_op { FC_IO_READ = 0, FC_IO_WRITE = 1, FC_IO_SYNC = 2 };

struct fc_io {
	struct fc_link link; /* the medium's while in flight */
	enum fc_io_op op;
	uint64_t offset; /* in the arena */
	uint64_t bytes;
	void *buffer;
	int64_t result;
	const char *failure; /* see above; fc_io_explain() tells all of it */
	void (*done_cb)(struct fc_io *io);
	uint64_t medium_private[2]; /* the medium's while in flight */
};

#define FC_MEDIA_NOTICE_BYTES 2048

struct fc_media_counters {
	uint64_t read_commands, write_commands, sync_commands;
	uint64_t bytes_read, bytes_written;
	uint64_t errors;
};

struct fc_media;

struct fc_media_ops {
	void (*submit)(struct fc_media *media, struct fc_io *io);
	/* Hands over what submit() queued, then calls the done_cb of whatever has ended; returns how many. Never waits.
	 */
	unsigned (*poll)(struct fc_media *media);
	/* Names memory that many later operations will use. Returns 0, or an error after which it still works, slower.
	 */
	int (*register_buffers)(struct fc_media *media, void *memory, uint64_t bytes);
	void (*close)(struct fc_media *media);
	/* A descriptor that is readable when completions may wait for poll(), for a thread that sleeps in one place;
	 * poll() makes it unreadable again. Before sleeping, call poll() until it returns 0: it also hands over what is
	 * queued. NULL, or an answer of -1: after a poll() that returned 0 nothing is in flight. */
	int (*event_fd)(struct fc_media *media);
	/* Hands over what is queued, sleeps until at least one I/O has ended or `timeout_ns` has passed, then does what
	 * poll() does. Cheaper than event_fd() + poll() where nothing else is waited for. NULL: poll() never leaves
	 * anything unfinished. */
	unsigned (*wait)(struct fc_media *media, uint64_t timeout_ns);
};

struct fc_media {
	const struct fc_media_ops *ops;
	const char *name;            /* of the arena, for messages: its path where it has one; NULL: "arena" */
	uint64_t bytes;              /* size of the arena */
	uint32_t align;              /* of offsets, sizes and buffers; 1 for memory */
	uint64_t transfer_bytes_max; /* largest single command worth sending */
	uint32_t queue_depth;        /* commands that run at once; more wait inside the medium */
	uint8_t *map;                /* memory media: the arena's bytes, for reading and writing in place; else NULL */
	bool is_durable;             /* its content outlives the process */
	bool is_new;                 /* this open made it: it reads as zeros */
	const char *lost;            /* what has happened to it, see above; constant; NULL: it is there */
	char notice[FC_MEDIA_NOTICE_BYTES]; /* what is not as was asked for, in sentences for the operator; "": nothing
					     */
	struct fc_media_counters counters;
};

/* Adds a sentence to the notice; what finds no room is cut. */
void fc_media_note(struct fc_media *media, const char *format, ...) FC_PRINTF(2, 3);

/* Of an I/O that has ended: FC_OK when all its bytes were moved, else why not (FC_EFULL: a file system without room).
 */
static inline int fc_io_code(const struct fc_io *io)
{
	if (io->result == (int64_t)io->bytes)
		return FC_OK;
	return io->result < 0 ? (int)io->result : FC_EIO;
}

/* What an I/O that failed was to do, and why it did not, for a person: "write of 4096 bytes at 81920: No space left on
 * device", behind "X/ssd.arena: " unless `media` is NULL. Returns the code. */
static inline int fc_io_explain(const struct fc_media *media, const struct fc_io *io, struct fc_error *error)
{
	int code = fc_io_code(io);
	const char *why = io->failure != NULL ? io->failure : fc_code_text(code);
	if (io->op == FC_IO_SYNC)
		fc_error_set(error, code, "sync: %s", why);
	else
		fc_error_set(error, code, "%s of %llu bytes at %llu: %s", io->op == FC_IO_READ ? "read" : "write",
			     (unsigned long long)io->bytes, (unsigned long long)io->offset, why);
	return media == NULL ? code : fc_error_wrap(error, code, "%s", media->name != NULL ? media->name : "arena");
}

static inline void fc_media_submit(struct fc_media *media, struct fc_io *io)
{
	media->ops->submit(media, io);
}
static inline unsigned fc_media_poll(struct fc_media *media)
{
	return media->ops->poll(media);
}
static inline int fc_media_event_fd(struct fc_media *media)
{
	return media->ops->event_fd == NULL ? -1 : media->ops->event_fd(media);
}
static inline unsigned fc_media_wait(struct fc_media *media, uint64_t timeout_ns)
{
	return media->ops->wait == NULL ? media->ops->poll(media) : media->ops->wait(media, timeout_ns);
}
static inline void fc_media_close(struct fc_media *media)
{
	if (media != NULL)
		media->ops->close(media);
}

#endif

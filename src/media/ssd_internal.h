/* Between the SSD medium and its two engines. The medium (ssd.c) checks, queues, continues what came back short, and
 * calls done_cb; an engine only moves bytes: io_uring (ssd_uring.c), or threads (ssd_threads.c) where io_uring is
 * refused.
 *
 * Either has threads of its own, and they alone call the kernel for the arena's file once it is open: a call may not
 * return for as long as the file system or the device does not answer. The medium's thread never waits for them, but in
 * wait(), for as long as it was told, in register_buffers() and, with nothing in flight, in close(). */
#ifndef FC_MEDIA_SSD_INTERNAL_H
#define FC_MEDIA_SSD_INTERNAL_H

#include "media/arena_file.h"
#include "media/media.h"

#include <string.h>

#define FC_SSD_MAGIC 0x464353534d454449ull

struct fc_ssd;

struct fc_ssd_engine {
	const char *name;
	/* Makes ssd->engine_state for ssd->media.queue_depth commands. Returns 0 or an errno. */
	int (*open)(struct fc_ssd *ssd);
	/* Takes one command; the medium never has more than queue_depth of them with the engine. */
	void (*start)(struct fc_ssd *ssd, struct fc_io *io);
	/* Lets the started commands run, and passes each that has ended to fc_ssd_ended(). Never waits. */
	void (*poll)(struct fc_ssd *ssd);
	/* The same, but sleeps first until one has ended or the time is over. */
	void (*wait)(struct fc_ssd *ssd, uint64_t timeout_ns);
	int (*event_fd)(struct fc_ssd *ssd);
	/* Returns 0 or an errno. Waits until the engine has handed over what was started before. */
	int (*register_buffers)(struct fc_ssd *ssd, void *memory, uint64_t bytes);
	void (*close)(struct fc_ssd *ssd);
};

struct fc_ssd {
	struct fc_media media;
	uint64_t magic;
	struct fc_arena_file file;
	char *path;
	bool is_read_only;
	const struct fc_ssd_engine *engine;
	void *engine_state;
	uint32_t in_flight_count; /* with the engine */
	struct fc_link waiting;   /* for the engine to have room */
	struct fc_link done;      /* for their done_cb */
};

/* What is left of a read or write, as one command of at most 1 GiB (the kernel moves at most 2 GiB at once). */
struct fc_ssd_command {
	uint64_t offset;
	uint8_t *buffer;
	uint32_t bytes;
};

/* medium_private[0] counts the bytes moved, [1] the attempts that moved nothing. */
static inline struct fc_ssd_command fc_ssd_command_of(const struct fc_io *io)
{
	uint64_t moved_bytes = io->medium_private[0];
	struct fc_ssd_command command = {
		.offset = io->offset + moved_bytes,
		.buffer = (uint8_t *)io->buffer + moved_bytes,
		.bytes = (uint32_t)fc_min_u64(io->bytes - moved_bytes, (uint64_t)1 << 30),
	};
	return command;
}

/* Instead of a negative errno: the arena is lost, and the fc_io's `failure` says how. */
#define FC_SSD_LOST (-100000)

/* For an engine's own thread. Before a write is sent: 0, or FC_SSD_LOST. */
int64_t fc_ssd_check_write(const struct fc_arena_file *file, struct fc_io *io);
/* When the system has answered a sync: its result, or FC_SSD_LOST when what was synced is in no arena any more. */
int64_t fc_ssd_check_sync(const struct fc_arena_file *file, struct fc_io *io, int64_t result);

/* A command has ended: `result` bytes moved, or a negative errno. */
void fc_ssd_ended(struct fc_ssd *ssd, struct fc_io *io, int64_t result);

extern const struct fc_ssd_engine fc_ssd_engine_uring;
extern const struct fc_ssd_engine fc_ssd_engine_threads;

#endif

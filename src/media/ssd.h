/* The SSD medium: an arena in a pre-allocated file or on a block device, read and written without the page cache. */
#ifndef FC_MEDIA_SSD_H
#define FC_MEDIA_SSD_H

#include "media/media.h"

struct fc_ssd_opts {
	const char *path; /* a regular file or a block device; never a symbolic link */
	uint64_t bytes; /* size of an arena that is made now, 0: only open what is there. An existing one keeps its size
			 */
	uint32_t queue_depth;    /* commands in flight, 1 to FC_QUEUE_DEPTH_MAX; 0: 64 */
	uint64_t transfer_bytes; /* largest command worth sending, a multiple of the alignment; 0: what the device says
				  */
	uint32_t align; /* of an arena that is adopted, where whoever holds it has found out; 0: it is found out here */
	bool is_read_only; /* any number of readers, but no writer beside them */
	bool is_buffered;  /* through the page cache even where direct I/O is to be had */
};

/* Opens an arena; close it with fc_media_close(). What works only by a fallback (no O_DIRECT, no io_uring, no space set
 * aside) stands in `notice`. FC_EBUSY names the process that holds it, FC_EFULL the space that is missing, FC_ENOENT
 * and FC_EINVAL the path.
 *
 * Its thread is whichever calls it, one at a time. Once it is open no call waits for the file system or the device, but
 * fc_ssd_resize() and the end of wait(); both engines have threads for that. register_buffers() is for when nothing is
 * in flight; where memory may not be locked it answers FC_ELIMIT, and adds a notice. */
int fc_ssd_open(const struct fc_ssd_opts *opts, struct fc_media **media, struct fc_error *error) FC_MUST_USE;

/* The same for an arena that another process holds: `fd` is what it handed out, opts->path only names it in messages,
 * and nothing is created or locked. The descriptor belongs to the media from then on, on failure to the caller. */
int fc_ssd_adopt(int fd, const struct fc_ssd_opts *opts, struct fc_media **media, struct fc_error *error) FC_MUST_USE;

/* Grows or shrinks a regular file, with space set aside; nothing may be in flight. On failure it is as before. */
int fc_ssd_resize(struct fc_media *media, uint64_t bytes, struct fc_error *error) FC_MUST_USE;

/* Takes from others what they may do with the arena's file, and tells it in the notice. For who has found it to be
 * ours: another's file that was named by mistake keeps its mode. */
void fc_ssd_make_private(struct fc_media *media);

/* The arena's descriptor, to be handed to processes that may read it too. */
int fc_ssd_fd(const struct fc_media *media);

/* In a child that was forked, which has none of its threads: lets go of the arena's descriptors, and no more. */
void fc_ssd_abandon(const struct fc_media *media);

/* "io_uring" or "threads". */
const char *fc_ssd_engine_name(const struct fc_media *media);

/* Whether the page cache is out of the way. */
bool fc_ssd_is_direct(const struct fc_media *media);

#endif

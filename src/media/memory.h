/* The memory medium: an arena that is mapped, and that its readers copy from in place (`map`). */
#ifndef FC_MEDIA_MEMORY_H
#define FC_MEDIA_MEMORY_H

#include "media/media.h"

struct fc_memory_opts {
	const char *path; /* a file on tmpfs or hugetlbfs that outlives the process; NULL: memory that ends with it */
	uint64_t bytes;   /* size of an arena that is made now, 0: only open what is there. An existing file keeps its
			     size */
	bool is_shared;   /* without path: memory that other processes can map through fc_memory_fd() */
	bool is_read_only;
};

/* Opens an arena; close it with fc_media_close(). I/O is done inside submit(): poll() only announces it, and 0 means
 * that none waits. Whoever holds the file is named by FC_EBUSY; FC_EFULL says how much room is missing. */
int fc_memory_open(const struct fc_memory_opts *opts, struct fc_media **media, struct fc_error *error) FC_MUST_USE;

/* Maps an arena that another process holds: `fd` is what it handed out, `name` stands for it in messages, and nothing
 * is locked or resized. `is_durable` is what that process says. The descriptor belongs to the media from then on, on
 * failure to the caller. */
int fc_memory_adopt(int fd, const char *name, bool is_durable, struct fc_media **media,
		    struct fc_error *error) FC_MUST_USE;

/* Changes the size and thereby, maybe, where `map` points: nothing may be in flight, and no address into the old map is
 * valid afterwards. Content below the smaller size stays, new bytes are zero. On failure the arena is as before. */
int fc_memory_resize(struct fc_media *media, uint64_t bytes, struct fc_error *error) FC_MUST_USE;

/* Takes from others what they may do with the arena's file, and tells it in the notice. For who has found it to be
 * ours. Without a path there is nothing to take. */
void fc_memory_make_private(struct fc_media *media);

/* The descriptor behind the mapping, to be handed to processes that may map it too; -1 for private memory. */
int fc_memory_fd(const struct fc_media *media);

/* In a child that was forked: lets go of the arena's descriptors, and no more. */
void fc_memory_abandon(const struct fc_media *media);

#endif

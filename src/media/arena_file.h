/* What the media whose arena is a file have in common: how the file is opened, sized, and kept from a second writer.
 * Private to src/media/. */
#ifndef FC_MEDIA_ARENA_FILE_H
#define FC_MEDIA_ARENA_FILE_H

#include "media/media.h"

#include <sys/types.h>

struct fc_arena_file_opts {
	const char *path;
	bool is_created; /* make a regular file when nothing is there */
	bool is_read_only;
	bool is_direct; /* O_DIRECT where the file system has it */
};

struct fc_arena_file {
	int fd;
	bool is_block_device;
	bool is_direct; /* what came of the wish */
	bool is_new;    /* this open made it */
	uint64_t bytes;
	dev_t device; /* that the bytes lie on */
	/* how the file is called, for fc_arena_file_lost() */
	int folder_fd;    /* -1: it is not looked at */
	const char *name; /* in that folder; the path's */
};

/* Opens a regular file or block device: 0600 when created, never through a symbolic link, and locked: exclusively, or
 * shared with other readers when read-only. FC_EBUSY names the process that holds it. To be written, a file has to
 * belong to this process's user or to root: FC_EINVAL names whose it is. opts->path is borrowed until the close. */
int fc_arena_file_open(struct fc_arena_file *file, const struct fc_arena_file_opts *opts,
		       struct fc_error *error) FC_MUST_USE;

/* Takes over a descriptor of an arena that another process holds, and has handed out: it is neither locked nor changed,
 * and direct if it is direct. The descriptor is the caller's on failure. */
int fc_arena_file_adopt(struct fc_arena_file *file, int fd, const char *name, struct fc_error *error) FC_MUST_USE;

/* Gives a regular file `bytes`, with space set aside for all of them, so that a later write cannot find the disk full.
 * FC_EFULL names need and what is there. *is_sparse (may be NULL) tells that the file system cannot set space aside. */
int fc_arena_file_resize(struct fc_arena_file *file, const char *path, uint64_t bytes, bool *is_sparse,
			 struct fc_error *error) FC_MUST_USE;

/* Sets space aside for every hole of a regular file that is there. FC_EFULL names need and what is there; then, and
 * where the file system cannot do it, the file is as it was. */
int fc_arena_file_fill(struct fc_arena_file *file, const char *path, struct fc_error *error) FC_MUST_USE;

/* Bytes of a regular file that no space is set aside for; 0 for others. */
uint64_t fc_arena_file_hole_bytes(const struct fc_arena_file *file);

/* Once it is known that the arena is ours: what its mode lets others do is taken from them, and told, as are further
 * names of the file and a folder in which others can replace it. */
void fc_arena_file_make_private(const struct fc_arena_file *file, const char *path, struct fc_media *media);

/* FC_ELIMIT when RLIMIT_FSIZE lets nobody write so far into a regular file. */
int fc_arena_file_check_limit(const struct fc_arena_file *file, const char *path, uint64_t bytes,
			      struct fc_error *error) FC_MUST_USE;

/* Whether what is written still comes to a file that the next open would find: NULL, or what has happened to it, as a
 * constant sentence. A file that was removed, whose name is another's by now or nobody's, or that became shorter, takes
 * writes and syncs as ever, and loses them. What was locked is the file, so whoever takes its name can be another
 * process with an arena of its own. May wait for the file system. */
const char *fc_arena_file_lost(const struct fc_arena_file *file) FC_MUST_USE;
/* The part of it that a write must not happen without: that the file is as long as it was. A write behind the end would
 * make it long again, and nobody could see that it had been short. */
const char *fc_arena_file_short(const struct fc_arena_file *file) FC_MUST_USE;

/* Gives up direct I/O. Returns 0, or -1 with errno. */
int fc_arena_file_make_buffered(struct fc_arena_file *file) FC_MUST_USE;

/* Takes back what this open created, when the open fails later on. */
void fc_arena_file_close(struct fc_arena_file *file, const char *path, bool is_removed);

/* In a child that was forked: its descriptors are closed, and the parent keeps lock and file. */
void fc_arena_file_abandon(const struct fc_arena_file *file);

#endif

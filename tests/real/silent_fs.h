/* A file system that can be told not to answer: one file, `ssd.arena`, behind FUSE, spoken in the kernel's own protocol
 * by a process that is stopped with SIGSTOP. Everything that the kernel then has to ask about the file waits: open,
 * stat, read, write, sync; io_uring_enter too.
 *
 * The mount is for a process in a mount namespace of its own (alone.h). A guard kills the server when the test is gone,
 * or has taken too long: the kernel then answers everything with an error, so that nobody is left behind. */
#ifndef FC_TESTS_REAL_SILENT_FS_H
#define FC_TESTS_REAL_SILENT_FS_H

#include <stdbool.h>
#include <sys/types.h>

struct silent_fs {
	char dir[64];
	char arena[80]; /* path of the file */
	pid_t server, guard;
};

/* Skips the test (alone.h) where it cannot be had. */
void silent_fs_mount(struct silent_fs *fs);
/* Ends the server and takes the mount away. */
void silent_fs_unmount(struct silent_fs *fs);

/* Does not answer from now on, and when it does again. */
void silent_fs_stop(const struct silent_fs *fs);
void silent_fs_go_on(const struct silent_fs *fs);

/* Only syncs are left unanswered, until they are let go. */
void silent_fs_hold_syncs(const struct silent_fs *fs, bool are_held);

#endif

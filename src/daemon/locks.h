/* Which clients may still write. Every client gets a descriptor of its own of one file, with a lock on one byte of it
 * (an open file description lock): it holds it until its last write has ended, and when the process dies the kernel
 * lets go of it. No message can lie about that.
 *
 * A killed process can leave commands in flight on an io_uring for a moment, and those hold the descriptor of the
 * arena, not that of the lock. So the descriptor of the SSD arena that a client gets has a lock on the same byte of the
 * arena: it is looked at only for a short while after the other is free, since a client that lives may keep reading
 * through it.
 *
 * Read locks, on descriptors that cannot write: a hostile client can keep its own byte locked, and pretend that others
 * are, which costs the space of their reservations until it is gone; it can keep nobody from getting a lock. Bytes are
 * numbered from a random place on, so that those of an earlier run are not met again.
 *
 * The daemon itself holds the file with flock(): two daemons with one lock file would wait for each other's clients. */
#ifndef FC_DAEMON_LOCKS_H
#define FC_DAEMON_LOCKS_H

#include "base/error.h"

struct fc_locks;

/* `arena_fd`: of the SSD arena, or -1. FC_EBUSY when another daemon has the file, FC_ESYSTEM. */
FC_MUST_USE int fc_locks_open(struct fc_locks **locks, const char *path, int arena_fd, struct fc_error *error);
void fc_locks_close(struct fc_locks *locks); /* NULL is allowed */

/* While the arena does not answer, its locks are not asked for, and count as held: on some file systems the question
 * goes to the other side. */
void fc_locks_arena_answers(struct fc_locks *locks, bool does_answer);

/* A descriptor with the lock of a client, to be handed out and closed. `number` is used once in a run. */
FC_MUST_USE int fc_locks_take(const struct fc_locks *locks, uint64_t number, int *fd, struct fc_error *error);
/* Marks a descriptor of the SSD arena that is handed out to the same client. */
FC_MUST_USE int fc_locks_mark(const struct fc_locks *locks, uint64_t number, int arena_fd, struct fc_error *error);

enum fc_lock_state {
	FC_LOCK_FREE = 0,
	FC_LOCK_IN_FLIGHT = 1, /* the lock is free, and something has the arena's descriptor still */
	FC_LOCK_HELD = 2,
};
enum fc_lock_state fc_locks_state(const struct fc_locks *locks, uint64_t number);
/* Of all clients of earlier runs. */
enum fc_lock_state fc_locks_state_before(const struct fc_locks *locks);

#endif

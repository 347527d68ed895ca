/* What becomes of open stores when the process forks.
 *
 * The child has a copy of a store, but not its thread: a call would wait for it for ever. And it has the descriptors:
 * the connection to flatcaked, the lock that says who may still write, the arenas. As long as any copy of them is open,
 * a parent that was killed does not look dead, so its leases, its reservations and its arenas would stay taken until
 * the child ends too.
 *
 * So a child lets go of all of them at once, and its copy of the store refuses every call (FC_ECANCELED) but the ones
 * that free. The parent notices nothing. Descriptors close by themselves where the child runs another program.
 *
 *     prepare   every store's `descriptors`, then its `mutex`, is held: nothing is half done in the copy
 *     parent    gives them back
 *     child     as above; the copies are watched no more */
#ifndef FC_STORE_FORK_H
#define FC_STORE_FORK_H

#include "base/error.h"

struct fc_store;

/* Between the store's open and its close, on the store's thread. */
void fc_fork_watch(struct fc_store *store);
void fc_fork_unwatch(struct fc_store *store);

/* Why a call was refused: the store is being closed, or this is a child of the process that opened it. Returns
 * FC_ECANCELED. */
int fc_fork_refuse(const struct fc_store *store, const char *what, struct fc_error *error);

#endif

/* A store whose arenas belong to flatcaked: the socket, the descriptors that came over it, and the lock that keeps the
 * space that this process may still be writing to from being given to others (docs/daemon.md).
 *
 *   closed --connect--> open --end of file, error, no answer--> fencing --no claim is written any more--> closed
 *
 * While it is closed, a connection is tried every RETRY. All calls are made on the store's thread, but for those of
 * opening, before there is one. */
#ifndef FC_STORE_REMOTE_H
#define FC_STORE_REMOTE_H

#include "client/client.h"
#include "media/media.h"

struct fc_remote;

struct fc_remote_opts {
	const char *path; /* of the socket */
	const struct fc_alloc *alloc;
	const struct fc_geometry *geometry; /* borrowed */
	const char *name_space, *program;
	uint64_t reconnect_timeout_ns, answer_timeout_ns, claim_timeout_ns;
	uint32_t queue_depth; /* of the SSD medium */
	uint64_t transfer_bytes;
};

/* Connects, and waits for the welcome. FC_ENOENT when nobody listens, FC_ETIMEOUT, what the daemon refuses with, or
 * what is wrong with its arenas. */
FC_MUST_USE int fc_remote_open(struct fc_remote **remote, const struct fc_remote_opts *opts, struct fc_error *error);
/* Nothing may be open on its directory. NULL is allowed. */
void fc_remote_close(struct fc_remote *remote);

/* Closes the copies of its descriptors that a forked process has; nothing else may be done with it then. */
void fc_remote_abandon(struct fc_remote *remote);

struct fc_client *fc_remote_client(struct fc_remote *remote);
/* The arenas, opened by fc_remote_open() and now the caller's to close; NULL where there is none. */
struct fc_media *fc_remote_take_media(struct fc_remote *remote, enum fc_medium medium);

/* Reads, writes, connects again; never waits. Returns how much happened. */
unsigned fc_remote_step(struct fc_remote *remote);
/* To be polled for `*events` before the next step; -1: none. */
int fc_remote_fd(const struct fc_remote *remote, short *events);
/* When the next step should be at the latest. */
uint64_t fc_remote_wake_ns(const struct fc_remote *remote);

#endif

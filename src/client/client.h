/* The client's side of a connection to flatcaked, as a directory for a core (docs/daemon.md).
 *
 *   DOWN --fc_client_connected()--> GREETING --WELCOME--> UP
 *     ^                                |                  |
 *     '---- fc_client_disconnected() --+------------------'
 *
 *   question, lookup, claim that is asked     is asked again when the next connection is up; without one for
 *                                             `reconnect_timeout_ns` it is answered: nothing stored, or FC_EAGAIN
 *   claim without an answer                   for `claim_timeout_ns`, whatever else is answered: FC_ETIMEOUT, and taken
 * back lease                                     ends with its connection. Reading goes on: checksums tell what is
 * right claim that is RESERVED or COMMITTING      is lost: its owner stops writing and aborts claim that is visible is
 * told that its durability is unknown (FC_ECANCELED)
 *
 * Fencing: while a lost claim has not been aborted, its owner may still be writing to space that the next daemon
 * believes to be free. fc_client_may_unlock() says when that is over; whoever holds the client's lock keeps it until
 * then.
 *
 * Request numbers grow over all connections, so an answer, a lease or a claim of an earlier one is known by its number.
 * Pure: bytes come in and go out through whoever owns the socket. One thread. */
#ifndef FC_CLIENT_CLIENT_H
#define FC_CLIENT_CLIENT_H

#include "clock/clock.h"
#include "core/directory.h"
#include "wire/wire.h"

struct fc_client;

enum fc_client_state {
	FC_CLIENT_DOWN = 0,
	FC_CLIENT_GREETING = 1,
	FC_CLIENT_UP = 2,
	FC_CLIENT_REFUSED = 3, /* for good: fc_client_refusal() says why */
};

struct fc_client_opts {
	const struct fc_alloc *alloc;
	struct fc_clock clock;
	const struct fc_geometry *geometry; /* borrowed */
	const char *name_space;             /* "" for the default one */
	const char *program;                /* for the daemon's operator; "" allowed */
	uint64_t reconnect_timeout_ns;
	uint64_t answer_timeout_ns; /* a daemon that does not answer a match for so long is taken for dead */
	uint64_t claim_timeout_ns;  /* room takes longer than an answer, and who makes it is not dead; but no claim
				     * waits longer for its own answer on one connection, whatever else comes */
	/* A welcome has come: the owner of the socket checks that it describes the arenas that it has, and takes the
	 * descriptors that came along. An error ends the connection: for a moment, when it is FC_ENOMEM or FC_ESYSTEM,
	 * else for good. */
	int (*welcome_cb)(void *context, const struct fc_wire_welcome *welcome, struct fc_error *error);
	void *context;
};

/* FC_EINVAL (a name that is too long, or not printable), FC_ENOMEM. */
FC_MUST_USE int fc_client_open(struct fc_client **client, const struct fc_client_opts *opts, struct fc_error *error);
/* No lookup and no claim may be open; questions are answered with FC_ECANCELED. NULL is allowed. */
void fc_client_free(struct fc_client *client);

struct fc_directory *fc_client_directory(struct fc_client *client);
enum fc_client_state fc_client_state(const struct fc_client *client);
/* Of the last welcome; zero before the first. */
const struct fc_wire_welcome *fc_client_welcome(const struct fc_client *client);
/* How many welcomes there were: tells one connection from another. */
uint64_t fc_client_welcome_count(const struct fc_client *client);
/* Why the last connection was refused or ended; code FC_OK: it was not. */
const struct fc_error *fc_client_refusal(const struct fc_client *client);

/* ---- the socket's owner ---- */

void fc_client_connected(struct fc_client *client);
/* What the socket has brought. An error: close it, and say fc_client_disconnected(). */
FC_MUST_USE int fc_client_received(struct fc_client *client, const void *bytes, uint64_t count, struct fc_error *error);
void fc_client_disconnected(struct fc_client *client);
/* Bytes to be sent; fc_wire_buffer_drop() what was. */
struct fc_wire_buffer *fc_client_output(struct fc_client *client);
/* The connection is of no use any more (no memory, no answer): close it. */
bool fc_client_wants_close(const struct fc_client *client);
bool fc_client_may_unlock(const struct fc_client *client);

/* Sends a report, if it is up. */
void fc_client_report(struct fc_client *client, const struct fc_wire_report *report);
/* Answers every question with FC_ECANCELED: nobody waits any more. */
void fc_client_cancel_questions(struct fc_client *client);

#endif

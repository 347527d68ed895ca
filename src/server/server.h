/* The server: what flatcaked answers to its clients. Pure: bytes and events come in, bytes and wishes go out; sockets,
 * descriptors and locks are the transport's (src/daemon, or the simulator).
 *
 * It asks the local directory of the daemon's core (core/directory.h) on behalf of its clients, and holds what they
 * were given: a lease is a leased path, a reservation is a claim.
 *
 * States of a client:
 *
 *   connect --> GREETING --hello--> UP --goodbye of either side--> LEAVING --.
 *                  |  refused        |  error, limit, lease too old          |
 *                  '---------------> CLOSING (the reason is told once) <-----'
 *   disconnected: its leases end, what it asked for is taken back, RESERVED becomes ORPHANED
 *   unlocked:     nothing of it can write any more: orphans are aborted       disconnected and unlocked: it is gone
 *
 * States of a request:
 *
 *   MATCH      answered at once: LEASED, or ended if nothing is held      LEASED --release, forget--> ended
 *   RESERVE    FENCED --fence is over--> ASKED --answered--> RESERVED --commit--> VISIBLE --durable told--> ended
 *              '------- forget, abort -----'--> ended          |'--abort, forget--> ended
 *                                                              '--disconnected--> ORPHANED --unlocked--> ended
 *
 * A request's number is used once: numbers ascend within a connection, so "used twice" needs no memory. A number above
 * the highest one so far has never been asked for, and to name it is an error; one that is lower and names nothing (any
 * more) may be a crossing:
 *
 *   client                 daemon
 *   FORGET of a MATCH      had answered it: the lease that the client did not see ends. It held none: nothing
 *   FORGET of a RESERVE    had granted it: the grant is taken back. Had refused it, still asks for it: nothing stays
 *   ABORT of a RESERVE     had not answered it: the same as FORGET
 *   FORGET after COMMIT    the client does not want to know: COMMITTED is not sent if it was not yet, nor DURABLE
 *   RELEASE twice          nothing
 *   DAMAGE of what ended   a hint that comes too late: counted, nothing else
 *   COMMIT of what ended   an error: nobody but the client ends a reservation while the connection lasts
 *   anything but COMMIT, ABORT, RELEASE, FORGET, DAMAGE, REPORT after the daemon's GOODBYE: left unanswered, the client
 *                          asks the next daemon; the same after its own GOODBYE is an error
 *
 * Damage: the daemon looks for itself (verify.c). While it does, what is named in the report is held, whatever the
 * client has sent since: a RELEASE, ABORT or COMMIT of it takes effect when the look is over, or has taken too long.
 *
 * Invariants:
 *   1. What a client can hold is bounded by `limits`: whoever goes over one is disconnected.
 *   2. Keys are exclusive-ored with the salt of the client's namespace, and session ids carry its tag, before the
 *      catalog sees them: no message can name what belongs to another namespace.
 *   3. Space that was reserved for a client is given to nobody else before fc_server_unlocked().
 *   4. The sum of all reports never falls, also when clients go.
 *   5. Nothing here waits: what takes long is a state, and ends by an event or by a time limit in fc_server_wake_ns().
 *   6. No process has more than its share of an arena reserved, in however many connections; a single save that is
 *      larger leaves at least as much as a share to the others (share.c). So a client that is stopped while it holds
 *      reservations, which nobody may take from it (3), withholds a part of the arena and never the whole.
 *
 * One thread. Callbacks are called from inside calls of this interface and of fc_core_step(); they must only note what
 * they are told, and not call back. */
#ifndef FC_SERVER_SERVER_H
#define FC_SERVER_SERVER_H

#include "core/core.h"
#include "wire/wire.h"

struct fc_server;
struct fc_server_client;

/* ---- open and close ---- */

#define FC_SERVER_NAMESPACES_MAX 1024u

/* Borrowed until fc_server_free(). What a namespace may keep is for the catalog to limit: it is opened with an owner
 * for each of them, whose tag is fc_server_namespace_tag(). */
struct fc_server_namespace_opts {
	const char *name;     /* at most FC_WIRE_NAMESPACE_BYTES - 1 bytes */
	const uint32_t *uids; /* who may use it; neither uids nor gids: whoever can connect */
	uint32_t uid_count;
	const uint32_t *gids;
	uint32_t gid_count;
};

struct fc_server_limits {
	uint32_t clients_max;  /* gone ones whose lock is held included */
	uint32_t requests_max; /* leases, and as many reservations, of one client */
	uint64_t reserved_bytes_max, unsent_bytes_max;
	double reserved_share;     /* of an arena, that the clients of one process may have reserved: share.c */
	uint64_t reserved_old_ns;  /* a reservation older than this is told of, once */
	uint64_t memory_bytes_max; /* keys and paths of one client's requests */
	uint64_t keys_max;         /* in one message */
	uint32_t damages_max; /* reports of one client that wait to be looked at; what is more is dropped and counted */
	uint64_t hello_timeout_ns, lease_timeout_ns, io_timeout_ns;
};

enum fc_server_event {
	FC_SERVER_CONNECTED = 1, /* greeted: the text names program and namespace */
	FC_SERVER_DISCONNECTED = 2,
	/* why a connection was not let in */
	FC_SERVER_CLIENT_LIMIT = 3,
	FC_SERVER_REFUSED_VERSION = 4,
	FC_SERVER_REFUSED_GEOMETRY = 5,
	FC_SERVER_REFUSED_NAMESPACE = 6,
	FC_SERVER_REFUSED_STATE = 7, /* draining */
	/* why one was ended */
	FC_SERVER_PROTOCOL_ERROR = 8, /* garbage, or a number that cannot be */
	FC_SERVER_HELD_LIMIT = 9,
	FC_SERVER_UNSENT_LIMIT = 10,
	FC_SERVER_LEASE_TIMEOUT = 11,
	FC_SERVER_NO_MEMORY = 12,
	/* what else happens */
	FC_SERVER_ORPHANED = 13,
	FC_SERVER_ORPHANS_FREED = 14,
	FC_SERVER_DAMAGE_CONFIRMED = 15,
	FC_SERVER_DAMAGE_UNCONFIRMED = 16,
	FC_SERVER_FENCE_OVER = 17,
	FC_SERVER_DRAINING = 18,
	FC_SERVER_NOT_DURABLE = 19, /* a turn that was visible; the text says why */
	FC_SERVER_RESERVATION_OLD = 20,
};
#define FC_SERVER_EVENT_COUNT 21
/* A word for an event, for logs and metrics: "protocol_error". */
const char *fc_server_event_name(enum fc_server_event event);

struct fc_server_opts {
	const struct fc_alloc *alloc;
	struct fc_clock clock;
	struct fc_core *core; /* open; with a catalog of its own */
	const struct fc_geometry *geometry;
	struct fc_media *media[FC_MEDIUM_COUNT]; /* the core's */
	struct fc_uuid instance;                 /* random: of this run */
	struct fc_uuid store;                    /* of the SSD arena, or of the memory arena where there is none */
	/* None, and not is_closed: every name is taken as it comes. Else a client that names none gets "default", if
	 * that is there. */
	const struct fc_server_namespace_opts *namespaces;
	uint32_t namespace_count;
	bool is_closed; /* no other names than those, also when there are none: nobody is let in */
	struct fc_server_limits limits;
	bool is_fenced; /* until fc_server_fence_is_over() nothing is reserved */
	/* Bytes wait in fc_server_output(). Called when some were put there after it was last asked for. */
	void (*has_output)(void *context, struct fc_server_client *client);
	/* The transport sends what waits, if it can be sent at once, ends the connection, and says so with
	 * fc_server_disconnected(). Called once for a client. */
	void (*wants_close)(void *context, struct fc_server_client *client);
	/* `client` may be NULL. */
	void (*event)(void *context, enum fc_server_event event, const struct fc_server_client *client,
		      const char *text);
	void *context;
};

void fc_server_limits_init(struct fc_server_limits *limits);

/* FC_EINVAL with text (a namespace given twice, two names with one tag, a limit that is 0), FC_ENOMEM. */
FC_MUST_USE int fc_server_open(struct fc_server **server, const struct fc_server_opts *opts, struct fc_error *error);
/* Every client must be disconnected, fc_server_is_at_rest(), and nothing may wait to become durable; orphans are
 * aborted. NULL is allowed. */
void fc_server_free(struct fc_server *server);

/* ---- clients ---- */

struct fc_server_peer {
	int32_t pid; /* 0: of a process that cannot be seen from here */
	uint32_t uid, gid;
	const uint32_t *groups; /* further ones; borrowed until fc_server_disconnected() */
	uint32_t group_count;
};

/* FC_ELIMIT when there are clients_max, FC_ENOMEM; with text, and told as an event. */
FC_MUST_USE int fc_server_connect(struct fc_server *server, const struct fc_server_peer *peer, void *context,
				  struct fc_server_client **client, struct fc_error *error);
void fc_server_received(struct fc_server_client *client, const void *bytes, uint64_t count);
/* What is to be sent; the transport takes from the front what it has sent. Descriptors go with its first byte if
 * fc_server_client_is_welcome(): WELCOME is the first message of a connection. */
struct fc_wire_buffer *fc_server_output(struct fc_server_client *client);
bool fc_server_client_is_welcome(const struct fc_server_client *client);
void *fc_server_client_context(const struct fc_server_client *client);
uint64_t fc_server_client_number(const struct fc_server_client *client);
/* The connection is gone; nothing is called for this client any more. */
void fc_server_disconnected(struct fc_server_client *client);
/* After fc_server_disconnected(): nothing that the process had under way can still write. The client is freed. */
void fc_server_unlocked(struct fc_server_client *client);

/* ---- time ---- */

/* To be called after fc_core_step(); returns how many things it did. */
unsigned fc_server_step(struct fc_server *server);
uint64_t fc_server_wake_ns(const struct fc_server *server);
void fc_server_fence_is_over(struct fc_server *server);
/* Says goodbye to everybody: from now on nothing new is answered. */
void fc_server_drain(struct fc_server *server);
/* Nobody who is connected has something left to commit, and all that was said to be durable is. */
bool fc_server_is_drained(const struct fc_server *server);
/* Aborts what clients that are gone have left: for a daemon that has ended its connections and reserves nothing any
 * more. What that frees takes the core a while. */
void fc_server_end_orphans(struct fc_server *server);
/* No I/O of its own is under way (fc_core_is_idle() knows nothing of it). */
bool fc_server_is_at_rest(const struct fc_server *server);

/* ---- for operators ---- */

struct fc_server_counters {
	uint64_t matches, matches_hit, keys_asked, blocks_matched, leases_granted;
	uint64_t reserves, reserves_refused, commits, commits_failed, aborts, orphaned, orphans_freed;
	uint64_t bytes_granted[FC_MEDIUM_COUNT], blocks_new, bytes_new;
	uint64_t damages, damages_confirmed, damages_unconfirmed, damages_dropped;
	uint64_t messages, bytes_received, bytes_sent;
	uint64_t events[FC_SERVER_EVENT_COUNT];
	struct fc_wire_times match_time; /* from a whole MATCH to its answer */
};

/* What is held now. */
struct fc_server_held {
	uint64_t leases, claims_waiting, claims_reserved, claims_orphaned, claims_visible;
	uint64_t reserved_bytes, unsent_bytes;
	uint64_t reserved_in[FC_MEDIUM_COUNT]; /* of reserved_bytes */
	uint64_t claims_in[FC_MEDIUM_COUNT];   /* that have some of those */
};

enum fc_server_client_state {
	FC_SERVER_GREETING = 1,
	FC_SERVER_UP = 2,
	FC_SERVER_LEAVING = 3, /* goodbye was said */
	FC_SERVER_CLOSING = 4,
	FC_SERVER_GONE = 5, /* disconnected, and its lock is held */
};
const char *fc_server_state_name(enum fc_server_client_state state);

struct fc_server_client_info {
	uint64_t number;
	enum fc_server_client_state state;
	struct fc_server_peer peer;
	const char *program, *name_space; /* "" before the hello */
	uint64_t connected_ns, last_message_ns;
	uint64_t oldest_lease_ns;       /* when it was granted; 0: none */
	uint64_t oldest_reservation_ns; /* the same */
	struct fc_server_counters counters;
	struct fc_server_held held;
	struct fc_wire_report report; /* zeros before the first */
	uint64_t reported_ns;         /* 0: never */
};

struct fc_server_namespace_info {
	const char *name;
	uint16_t tag; /* top bits of its sessions' ids */
	uint32_t clients;
	struct fc_server_counters counters; /* survive the clients */
	struct fc_server_held held;
	struct fc_wire_report report; /* counters: the sum of all that clients ever reported; what is "now": of those
				       * that are connected; no waiters */
};

/* Call `each` until it returns false. What the infos point to stays until the call returns. */
void fc_server_clients(const struct fc_server *server,
		       bool (*each)(void *context, const struct fc_server_client_info *info), void *context);
void fc_server_namespaces(const struct fc_server *server,
			  bool (*each)(void *context, const struct fc_server_namespace_info *info), void *context);

struct fc_server_totals {
	uint32_t clients, clients_gone; /* connected; gone, and their locks held */
	bool is_fenced, is_draining;
	uint64_t verifies_waiting;
	uint64_t oldest_reservation_ns; /* when it was granted, orphans included; 0: none */
	struct fc_server_counters counters;
	struct fc_server_held held;
	struct fc_wire_report report;
};
void fc_server_totals(const struct fc_server *server, struct fc_server_totals *totals);

/* Top 16 bits of the ids of a namespace's sessions; never 0. */
uint16_t fc_server_namespace_tag(const char *name);
/* What a namespace's client calls its session, as the catalog knows it. {0, 0}, which asks for inference, stays. */
struct fc_session_id fc_server_session_id(const char *name_space, struct fc_session_id id);

#endif

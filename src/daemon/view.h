/* What an operator sees of a running flatcaked, and what an operator can do to it: the one interface between the daemon
 * and all that reports on it (metrics, JSON, the status page).
 *
 * The daemon implements struct fc_daemon_callbacks; http.c calls them. A view is a snapshot: taken by a call, read
 * before the next call, never changed by who reads it. Everything here runs on the thread of the daemon's loop, between
 * two steps of the core, so that a view is consistent with itself; nothing waits.
 *
 *     main.c, loop.c  --fills-->  struct fc_daemon_view  --read by-->  metrics.c, status.c, map.c  <--asked by-- http.c
 *
 * Counters never fall while the process lives: those of clients include the clients that have left. Gauges are what is
 * now. */
#ifndef FC_DAEMON_VIEW_H
#define FC_DAEMON_VIEW_H

#include "base/error.h"
#include "catalog/catalog.h"
#include "wire/wire.h"

enum fc_daemon_state {
	FC_DAEMON_OPENING, /* arenas are being recovered: no client is answered */
	FC_DAEMON_FENCING, /* matches are answered, nothing is reserved until clients of the last run are gone */
	FC_DAEMON_READY,
	FC_DAEMON_DRAINING, /* no new requests; ends when what is open has ended */
};
#define FC_DAEMON_STATE_COUNT 4

/* Why a connection was refused or ended by the daemon. */
enum fc_refusal {
	FC_REFUSAL_PROTOCOL,     /* frames that are none, or a version that is not spoken */
	FC_REFUSAL_GEOMETRY,     /* another model */
	FC_REFUSAL_NAMESPACE,    /* unknown, or not this user's */
	FC_REFUSAL_CLIENT_LIMIT, /* clients_max */
	FC_REFUSAL_HELD_LIMIT,   /* requests, leases, reserved bytes */
	FC_REFUSAL_UNSENT,       /* did not read its answers */
	FC_REFUSAL_LEASE,        /* a lease older than lease_timeout */
	FC_REFUSAL_STATE,        /* opening or draining */
	FC_REFUSAL_MEMORY,       /* the daemon found no memory */
};
#define FC_REFUSAL_COUNT 9

/* "ready", "protocol": as metrics and JSON spell them. */
const char *fc_daemon_state_text(enum fc_daemon_state state);
const char *fc_refusal_text(enum fc_refusal refusal);
const char *fc_medium_text(enum fc_medium medium);

struct fc_view_arena {
	bool is_there;
	const char *path;   /* NULL: memory that ends with the process */
	const char *notice; /* what works by a fallback only; "" when there is nothing to say */
	uint64_t silent_ns; /* it has not answered for so long, more than io_timeout; 0: it answers */
	const char *lost;   /* what has happened to it, so that nothing is kept in it any more; "" while it is there */
	uint64_t bytes, chunk_bytes;
	uint64_t largest_free_bytes;
	uint64_t read_limit_bytes_per_s; /* what the medium gives at best, as the operator has set it; 0: not known */
};

struct fc_view_client {
	uint64_t number; /* of the connection */
	int64_t pid;     /* 0: of a process that cannot be seen from here, as in another container */
	int64_t uid;
	const char *program, *name_space;
	uint64_t age_ns;
	uint64_t leases, oldest_lease_ns; /* 0 without a lease */
	uint64_t reservations, reserved_bytes, requests;
	uint64_t oldest_reservation_ns; /* 0 without a reservation */
	uint64_t unsent_bytes;
	uint64_t report_age_ns; /* UINT64_MAX: it has not reported yet */
	struct fc_wire_report report;
};

struct fc_view_namespace {
	const char *name;    /* "" for the default one */
	uint64_t bytes_used; /* UINT64_MAX: not counted */
	uint64_t bytes_max;  /* 0: no quota */
	uint64_t clients;
	uint64_t saves_over_quota; /* reservations refused for the quota */
};

struct fc_view_counters {
	uint64_t connections;
	uint64_t refused[FC_REFUSAL_COUNT];
	uint64_t leases_expired;
	uint64_t reservations_orphaned; /* their clients went without COMMIT or ABORT */
	uint64_t damage_confirmed, damage_unconfirmed;
	uint64_t matches, reservations, commits;
	struct fc_wire_times match_time; /* from a whole MATCH to its answer in the buffer */
};

struct fc_daemon_view {
	enum fc_daemon_state state;
	const char *reason;  /* why it is not ready, a sentence; "" when ready */
	bool is_socket_lost; /* its file was removed or replaced: nobody new can connect */
	uint64_t uptime_ns;
	int64_t started_at_s; /* seconds since 1970 */
	const char *instance; /* 32 hexadecimal digits: of this run */
	const struct fc_geometry *geometry;
	struct fc_stats stats;
	struct fc_view_arena arenas[FC_MEDIUM_COUNT];
	const struct fc_view_client *clients; /* valid until the next callback */
	size_t client_count;
	const struct fc_view_namespace *namespaces;
	size_t namespace_count;
	uint64_t reservations_orphaned_now; /* whose clients' locks are not free yet */
	uint64_t oldest_reservation_ns;     /* of anybody, orphans included; 0: there is none */
	/* Sums of all reports: counters of clients that have left included, lengths and active ones of those who are
	 * there. No waiters: those stand with their clients. */
	struct fc_wire_report reports;
	struct fc_view_counters counters;
};

/* Clients are served in full, and the arenas keep what is saved and answer: what /readyz and the metric say. */
static inline bool fc_view_is_ready(const struct fc_daemon_view *view)
{
	bool are_silent = view->arenas[FC_MEMORY].silent_ns > 0 || view->arenas[FC_SSD].silent_ns > 0;
	return view->state == FC_DAEMON_READY && view->reason[0] == '\0' && !are_silent;
}

struct fc_daemon_callbacks {
	void *context;
	/* Fills `view`. What it points to stays until the next callback. */
	void (*view)(void *context, struct fc_daemon_view *view);
	/* fc_catalog_segments() and fc_catalog_sessions() of the daemon's catalog; nothing while it is opening. */
	void (*segments)(void *context, bool (*each)(void *each_context, const struct fc_segment_info *info),
			 void *each_context);
	void (*sessions)(void *context, bool (*each)(void *each_context, const struct fc_session_info *info),
			 void *each_context);
	/* Frees a session and what stands on it: FC_OK, FC_ENOENT, FC_EBUSY (read right now), FC_EAGAIN (opening). */
	int (*evict)(void *context, struct fc_session_id id);
	/* Begins to drain, then the daemon ends. FC_OK, also when it is draining already. */
	int (*drain)(void *context);
};

#endif

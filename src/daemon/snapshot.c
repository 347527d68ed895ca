/* What operators see (view.h), put together from the core, the catalog and the server; and what they may do. Texts are
 * copied: what the server shows stays for the time of a call only. */
#include "daemon/daemon.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct texts {
	char program[FC_NAME_BYTES];
	char name_space[FC_WIRE_NAMESPACE_BYTES];
};

struct fc_snapshot {
	struct fc_view_client *clients;
	struct texts *client_texts;
	size_t client_count, client_room;
	struct fc_view_namespace *namespaces;
	struct texts *namespace_texts;
	size_t namespace_count, namespace_room;
	char instance[33];
	char reason[FC_ERROR_TEXT_BYTES]; /* why it is not ready, where that names a file */
	uint64_t now_ns;
	const struct fc_catalog *catalog;
};

void fc_snapshot_free(struct fc_snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	free(snapshot->clients);
	free(snapshot->client_texts);
	free(snapshot->namespaces);
	free(snapshot->namespace_texts);
	free(snapshot);
}

/* Both arrays of a kind with room for one more, their content kept. */
static bool make_room(void **items, size_t item_bytes, struct texts **texts, size_t count, size_t *room)
{
	if (count < *room)
		return true;
	size_t larger = *room == 0 ? 16 : *room * 2;
	void *more_items = realloc(*items, larger * item_bytes);
	if (more_items != NULL)
		*items = more_items;
	struct texts *more_texts = realloc(*texts, larger * sizeof(**texts));
	if (more_texts != NULL)
		*texts = more_texts;
	if (more_items == NULL || more_texts == NULL) {
		fc_log(FC_LOG_WARNING, "no-memory", "no memory to show all clients and namespaces");
		return false;
	}
	*room = larger;
	return true;
}

static uint64_t age(uint64_t now_ns, uint64_t since_ns)
{
	return since_ns < now_ns ? now_ns - since_ns : 0;
}

static bool add_client(void *context, const struct fc_server_client_info *info)
{
	struct fc_snapshot *snapshot = context;
	size_t at = snapshot->client_count;
	if (info->state == FC_SERVER_GONE)
		return true;
	if (!make_room((void **)&snapshot->clients, sizeof(*snapshot->clients), &snapshot->client_texts, at,
		       &snapshot->client_room))
		return false;
	snprintf(snapshot->client_texts[at].program, FC_NAME_BYTES, "%s", info->program);
	snprintf(snapshot->client_texts[at].name_space, FC_WIRE_NAMESPACE_BYTES, "%s", info->name_space);
	const struct fc_server_held *held = &info->held;
	snapshot->clients[at] = (struct fc_view_client){
		.number = info->number,
		.pid = info->peer.pid,
		.uid = info->peer.uid,
		.age_ns = age(snapshot->now_ns, info->connected_ns),
		.leases = held->leases,
		.oldest_lease_ns = info->oldest_lease_ns != 0 ? age(snapshot->now_ns, info->oldest_lease_ns) : 0,
		.reservations = held->claims_reserved,
		.reserved_bytes = held->reserved_bytes,
		.oldest_reservation_ns =
			info->oldest_reservation_ns != 0 ? age(snapshot->now_ns, info->oldest_reservation_ns) : 0,
		.requests = held->leases + held->claims_waiting + held->claims_reserved,
		.unsent_bytes = held->unsent_bytes,
		.report_age_ns = info->reported_ns != 0 ? age(snapshot->now_ns, info->reported_ns) : UINT64_MAX,
		.report = info->report,
	};
	snapshot->client_count++;
	return true;
}

static bool add_namespace(void *context, const struct fc_server_namespace_info *info)
{
	struct fc_snapshot *snapshot = context;
	size_t at = snapshot->namespace_count;
	struct fc_owner_stats owner = {.bytes_used = UINT64_MAX}; /* counted for those of the settings only */
	if (!make_room((void **)&snapshot->namespaces, sizeof(*snapshot->namespaces), &snapshot->namespace_texts, at,
		       &snapshot->namespace_room))
		return false;
	if (fc_catalog_owner_stats(snapshot->catalog, info->tag, &owner) == FC_ENOENT)
		owner = (struct fc_owner_stats){.bytes_used = UINT64_MAX};
	snprintf(snapshot->namespace_texts[at].name_space, FC_WIRE_NAMESPACE_BYTES, "%s", info->name);
	snapshot->namespaces[at] = (struct fc_view_namespace){
		.bytes_used = owner.bytes_used,
		.bytes_max = owner.bytes_max,
		.clients = info->clients,
		.saves_over_quota = owner.saves_refused,
	};
	snapshot->namespace_count++;
	return true;
}

/* The arrays have moved while they grew: texts are pointed to at the end. */
static void show_lists(struct fc_snapshot *snapshot, struct fc_daemon_view *view)
{
	for (size_t at = 0; at < snapshot->client_count; at++) {
		snapshot->clients[at].program = snapshot->client_texts[at].program;
		snapshot->clients[at].name_space = snapshot->client_texts[at].name_space;
	}
	for (size_t at = 0; at < snapshot->namespace_count; at++)
		snapshot->namespaces[at].name = snapshot->namespace_texts[at].name_space;
	view->clients = snapshot->clients;
	view->client_count = snapshot->client_count;
	view->namespaces = snapshot->namespaces;
	view->namespace_count = snapshot->namespace_count;
}

static void show_totals(const struct fc_server_totals *totals, uint64_t now_ns, struct fc_daemon_view *view)
{
	const struct fc_server_counters *from = &totals->counters;
	const uint64_t *events = from->events;
	struct fc_view_counters *to = &view->counters;
	to->connections = events[FC_SERVER_CONNECTED];
	to->refused[FC_REFUSAL_PROTOCOL] = events[FC_SERVER_PROTOCOL_ERROR] + events[FC_SERVER_REFUSED_VERSION];
	to->refused[FC_REFUSAL_GEOMETRY] = events[FC_SERVER_REFUSED_GEOMETRY];
	to->refused[FC_REFUSAL_NAMESPACE] = events[FC_SERVER_REFUSED_NAMESPACE];
	to->refused[FC_REFUSAL_CLIENT_LIMIT] = events[FC_SERVER_CLIENT_LIMIT];
	to->refused[FC_REFUSAL_HELD_LIMIT] = events[FC_SERVER_HELD_LIMIT];
	to->refused[FC_REFUSAL_UNSENT] = events[FC_SERVER_UNSENT_LIMIT];
	to->refused[FC_REFUSAL_LEASE] = events[FC_SERVER_LEASE_TIMEOUT];
	to->refused[FC_REFUSAL_STATE] = events[FC_SERVER_REFUSED_STATE];
	to->refused[FC_REFUSAL_MEMORY] = events[FC_SERVER_NO_MEMORY];
	to->leases_expired = events[FC_SERVER_LEASE_TIMEOUT];
	to->reservations_orphaned = from->orphaned;
	to->damage_confirmed = from->damages_confirmed;
	to->damage_unconfirmed = from->damages_unconfirmed;
	to->matches = from->matches;
	to->reservations = from->reserves;
	to->commits = from->commits;
	to->match_time = from->match_time;
	view->reports = totals->report;
	view->reservations_orphaned_now = totals->held.claims_orphaned;
	if (totals->oldest_reservation_ns != 0)
		view->oldest_reservation_ns = age(now_ns, totals->oldest_reservation_ns);
}

static const char *reason(enum fc_daemon_state state)
{
	static const char *const texts[FC_DAEMON_STATE_COUNT] = {
		[FC_DAEMON_OPENING] = "the arenas are being recovered",
		[FC_DAEMON_FENCING] = "a client of an earlier run may still be writing; nothing is reserved until then",
		[FC_DAEMON_READY] = "",
		[FC_DAEMON_DRAINING] = "the daemon is being stopped",
	};
	return texts[state];
}

/* A daemon whose arena is gone serves what it still has, and is no place to send anybody to; nor is one that cannot be
 * found. */
static const char *reason_of(const struct fc_daemon *daemon)
{
	struct fc_snapshot *snapshot = daemon->snapshot;
	for (int medium = 0; medium < FC_MEDIUM_COUNT && daemon->state == FC_DAEMON_READY; medium++) {
		const struct fc_media *media = daemon->media[medium];
		if (media == NULL || media->lost == NULL)
			continue;
		snprintf(snapshot->reason, sizeof(snapshot->reason), "%s: %s", media->name, media->lost);
		return snapshot->reason;
	}
	if (daemon->state == FC_DAEMON_READY && daemon->socket_lost != NULL) {
		snprintf(snapshot->reason, sizeof(snapshot->reason), "%s: %s", daemon->settings->config.socket_path,
			 daemon->socket_lost);
		return snapshot->reason;
	}
	return reason(daemon->state);
}

static void show_arena(const struct fc_daemon *daemon, enum fc_medium medium, struct fc_daemon_view *view)
{
	const struct fc_media *media = daemon->media[medium];
	const struct fc_config *config = &daemon->settings->config;
	struct fc_view_arena *arena = &view->arenas[medium];
	const struct fc_superblock *superblock = NULL;
	*arena = (struct fc_view_arena){
		.is_there = media != NULL,
		.path = medium == FC_SSD ? config->ssd_path : config->memory_path,
		.notice = media != NULL ? media->notice : "",
		.silent_ns = medium == FC_SSD ? fc_daemon_silence_ns(daemon, daemon->snapshot->now_ns) : 0,
		.lost = media != NULL && media->lost != NULL ? media->lost : "",
		.bytes = media != NULL ? media->bytes : 0,
		.read_limit_bytes_per_s = medium == FC_SSD ? config->ssd_read_limit_bytes : 0,
	};
	if (daemon->is_core_open)
		superblock = fc_catalog_superblock(fc_core_catalog(daemon->core), medium);
	if (superblock == NULL)
		return;
	arena->chunk_bytes = superblock->chunk_bytes;
	arena->largest_free_bytes = fc_catalog_largest_free_bytes(fc_core_catalog(daemon->core), medium);
}

static void show(void *context, struct fc_daemon_view *view)
{
	struct fc_daemon *daemon = context;
	struct fc_snapshot *snapshot = daemon->snapshot;
	snapshot->now_ns = fc_daemon_now_ns();
	snapshot->client_count = snapshot->namespace_count = 0;
	view->state = daemon->state;
	view->reason = reason_of(daemon);
	view->is_socket_lost = daemon->socket_lost != NULL;
	view->uptime_ns = age(snapshot->now_ns, daemon->started_ns);
	view->started_at_s = daemon->started_at_s;
	view->instance = snapshot->instance;
	view->geometry = &daemon->settings->geometry;
	if (daemon->is_core_open)
		fc_core_stats(daemon->core, &view->stats);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		show_arena(daemon, (enum fc_medium)medium, view);
	if (daemon->server != NULL) {
		struct fc_server_totals totals;
		fc_server_totals(daemon->server, &totals);
		show_totals(&totals, snapshot->now_ns, view);
		snapshot->catalog = fc_core_catalog(daemon->core);
		fc_server_clients(daemon->server, add_client, snapshot);
		fc_server_namespaces(daemon->server, add_namespace, snapshot);
	}
	show_lists(snapshot, view);
}

static void show_segments(void *context, bool (*each)(void *each_context, const struct fc_segment_info *info),
			  void *each_context)
{
	const struct fc_daemon *daemon = context;
	if (daemon->is_core_open)
		fc_catalog_segments(fc_core_catalog(daemon->core), each, each_context);
}

static void show_sessions(void *context, bool (*each)(void *each_context, const struct fc_session_info *info),
			  void *each_context)
{
	const struct fc_daemon *daemon = context;
	if (daemon->is_core_open)
		fc_catalog_sessions(fc_core_catalog(daemon->core), each, each_context);
}

static int evict(void *context, struct fc_session_id id)
{
	const struct fc_daemon *daemon = context;
	if (!daemon->is_core_open || daemon->is_closing)
		return FC_EAGAIN;
	return fc_catalog_evict(fc_core_catalog(daemon->core), id);
}

static int drain(void *context)
{
	fc_daemon_drain(context, "asked for over HTTP");
	return FC_OK;
}

int fc_daemon_open_snapshot(struct fc_daemon *daemon, struct fc_daemon_callbacks *callbacks, struct fc_error *error)
{
	struct fc_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	if (snapshot == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for what operators see");
	snprintf(snapshot->instance, sizeof(snapshot->instance), "%016" PRIx64 "%016" PRIx64, daemon->instance.high,
		 daemon->instance.low);
	daemon->snapshot = snapshot;
	*callbacks = (struct fc_daemon_callbacks){
		.context = daemon,
		.view = show,
		.segments = show_segments,
		.sessions = show_sessions,
		.evict = evict,
		.drain = drain,
	};
	return FC_OK;
}

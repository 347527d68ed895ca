#include "daemon/status.h"

#include "base/check.h"
#include "daemon/metrics.h"

#include <inttypes.h>
#include <math.h>

static json_t *count_json(uint64_t value)
{
	return json_integer((json_int_t)fc_min_u64(value, INT64_MAX));
}

static json_t *seconds_json(uint64_t time_ns)
{
	return json_real((double)time_ns / 1e9);
}

/* A text from a client may be no UTF-8: then jansson refuses it, and it is shown as such. */
static json_t *text_json(const char *text)
{
	json_t *string = json_string(text);
	return string != NULL ? string : json_string("(not UTF-8)");
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, count_json(value));
}

/* A sum of many times may be asked for quantiles by the page and by `flatcake top`; both need the bounds. */
static json_t *times_json(const struct fc_wire_times *times)
{
	json_t *bounds = json_array(), *counts = json_array();
	uint64_t count = 0;
	for (size_t bucket = 0; bucket < FC_WIRE_TIME_BUCKETS; bucket++) {
		double bound_s = fc_metrics_bucket_s(bucket);
		json_array_append_new(bounds, isinf(bound_s) ? json_null() : json_real(bound_s));
		json_array_append_new(counts, count_json(times->counts[bucket]));
		count += times->counts[bucket];
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "bounds_seconds", bounds, "counts", counts, "sum_seconds",
			 seconds_json(times->sum_ns), "count", count_json(count));
}

static json_t *media_json(const uint64_t bytes[FC_MEDIUM_COUNT])
{
	return json_pack("{s:o, s:o}", "memory", count_json(bytes[FC_MEMORY]), "ssd", count_json(bytes[FC_SSD]));
}

static json_t *report_json(const struct fc_wire_report *report)
{
	json_t *object = json_object();
	set_count(object, "loads", report->loads);
	set_count(object, "loads_hit", report->loads_hit);
	set_count(object, "loads_failed", report->loads_failed);
	set_count(object, "saves", report->saves);
	set_count(object, "saves_failed", report->saves_failed);
	set_count(object, "blocks_possible", report->blocks_possible);
	set_count(object, "blocks_delivered", report->blocks_delivered);
	json_object_set_new(object, "bytes_wanted", media_json(report->bytes_wanted));
	json_object_set_new(object, "bytes_written", media_json(report->bytes_written));
	set_count(object, "bytes_read", report->bytes_read);
	set_count(object, "read_commands", report->read_commands);
	set_count(object, "checksum_failures", report->checksum_failures);
	set_count(object, "io_errors", report->io_errors);
	set_count(object, "ready_length", report->ready_length);
	set_count(object, "prepare_length", report->prepare_length);
	set_count(object, "loads_active", report->loads_active);
	set_count(object, "saves_active", report->saves_active);
	return object;
}

static json_t *arena_json(const struct fc_daemon_view *view, enum fc_medium medium)
{
	const struct fc_view_arena *arena = &view->arenas[medium];
	const struct fc_medium_stats *stats = &view->stats.media[medium];
	json_t *object = json_object();
	json_object_set_new(object, "medium", json_string(fc_medium_text(medium)));
	json_object_set_new(object, "path", arena->path != NULL ? text_json(arena->path) : json_null());
	json_object_set_new(object, "notice", text_json(arena->notice));
	json_object_set_new(object, "silent_seconds", seconds_json(arena->silent_ns));
	json_object_set_new(object, "lost", text_json(arena->lost));
	set_count(object, "bytes", stats->bytes);
	set_count(object, "bytes_used", stats->bytes_used);
	set_count(object, "bytes_stored", stats->bytes_stored);
	set_count(object, "largest_free_bytes", arena->largest_free_bytes);
	set_count(object, "chunk_bytes", arena->chunk_bytes);
	set_count(object, "sessions", stats->sessions);
	set_count(object, "segments", stats->segments);
	set_count(object, "extents", stats->extents);
	set_count(object, "blocks", stats->blocks);
	set_count(object, "sessions_reclaimed", stats->sessions_reclaimed);
	set_count(object, "bytes_reclaimed", stats->bytes_reclaimed);
	set_count(object, "segments_absorbed", stats->segments_absorbed);
	json_object_set_new(object, "read_limit_bytes_per_second",
			    arena->read_limit_bytes_per_s > 0 ? count_json(arena->read_limit_bytes_per_s)
							      : json_null());
	return object;
}

static json_t *refused_json(const struct fc_view_counters *counters)
{
	json_t *object = json_object();
	for (int refusal = 0; refusal < FC_REFUSAL_COUNT; refusal++)
		set_count(object, fc_refusal_text((enum fc_refusal)refusal), counters->refused[refusal]);
	return object;
}

static json_t *counters_json(const struct fc_daemon_view *view)
{
	const struct fc_view_counters *counters = &view->counters;
	const struct fc_stats *stats = &view->stats;
	json_t *object = json_object();
	set_count(object, "connections", counters->connections);
	json_object_set_new(object, "refused", refused_json(counters));
	set_count(object, "leases_expired", counters->leases_expired);
	set_count(object, "reservations_orphaned", counters->reservations_orphaned);
	set_count(object, "damage_confirmed", counters->damage_confirmed);
	set_count(object, "damage_unconfirmed", counters->damage_unconfirmed);
	set_count(object, "matches", counters->matches);
	set_count(object, "reservations", counters->reservations);
	set_count(object, "commits", counters->commits);
	set_count(object, "saves_refused", stats->saves_refused);
	set_count(object, "sessions_cut", stats->sessions_cut);
	set_count(object, "segments_spilled", stats->segments_spilled);
	set_count(object, "checksum_failures", stats->checksum_failures);
	set_count(object, "io_errors", stats->io_errors);
	set_count(object, "recovered_segments", stats->recovered_segments);
	set_count(object, "dropped_segments", stats->dropped_segments);
	return object;
}

static json_t *version_json(void)
{
	return json_sprintf("%d.%d.%d", FC_VERSION_MAJOR, FC_VERSION_MINOR, FC_VERSION_PATCH);
}

json_t *fc_status_json(const struct fc_daemon_view *view)
{
	json_t *object = json_object(), *arenas = json_array();
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->arenas[medium].is_there)
			json_array_append_new(arenas, arena_json(view, (enum fc_medium)medium));
	json_object_set_new(object, "version", version_json());
	json_object_set_new(object, "instance", text_json(view->instance));
	json_object_set_new(object, "state", json_string(fc_daemon_state_text(view->state)));
	json_object_set_new(object, "reason", text_json(view->reason));
	json_object_set_new(object, "uptime_seconds", seconds_json(view->uptime_ns));
	json_object_set_new(object, "started_at_seconds", json_integer(view->started_at_s));
	json_object_set_new(object, "model",
			    json_pack("{s:o, s:I, s:I}", "name", text_json(view->geometry->name), "layers",
				      (json_int_t)view->geometry->layer_count, "block_tokens",
				      (json_int_t)view->geometry->block_tokens));
	json_object_set_new(object, "arenas", arenas);
	set_count(object, "index_blocks", view->stats.blocks);
	set_count(object, "index_bytes", view->stats.index_bytes);
	set_count(object, "clients", view->client_count);
	set_count(object, "namespaces", view->namespace_count);
	set_count(object, "leases", view->stats.leases);
	set_count(object, "reservations_orphaned_now", view->reservations_orphaned_now);
	json_object_set_new(object, "reports", report_json(&view->reports));
	json_object_set_new(object, "load_time", times_json(&view->reports.load_time));
	json_object_set_new(object, "first_layer_time", times_json(&view->reports.first_layer_time));
	json_object_set_new(object, "queue_wait", times_json(&view->reports.queue_wait));
	json_object_set_new(object, "match_time", times_json(&view->counters.match_time));
	json_object_set_new(object, "counters", counters_json(view));
	return object;
}

/* ---- clients and namespaces ---- */

static json_t *waiters_json(const struct fc_wire_report *report)
{
	json_t *array = json_array();
	for (uint32_t at = 0; at < report->waiter_count && at < FC_WIRE_WAITERS_MAX; at++) {
		const struct fc_wire_waiter *waiter = &report->waiters[at];
		json_array_append_new(array, json_pack("{s:o, s:o, s:o, s:f}", "request", count_json(waiter->request),
						       "ssd_bytes", count_json(waiter->ssd_bytes), "waited_seconds",
						       seconds_json(waiter->waited_ns), "priority",
						       isfinite(waiter->priority) ? waiter->priority : 0.0));
	}
	return array;
}

static json_t *client_json(const struct fc_view_client *client)
{
	json_t *object = json_object();
	set_count(object, "number", client->number);
	json_object_set_new(object, "pid", client->pid != 0 ? json_integer(client->pid) : json_null());
	json_object_set_new(object, "uid", json_integer(client->uid));
	json_object_set_new(object, "program", text_json(client->program));
	json_object_set_new(object, "namespace", text_json(client->name_space));
	json_object_set_new(object, "age_seconds", seconds_json(client->age_ns));
	set_count(object, "leases", client->leases);
	json_object_set_new(object, "oldest_lease_seconds", seconds_json(client->oldest_lease_ns));
	set_count(object, "reservations", client->reservations);
	set_count(object, "reserved_bytes", client->reserved_bytes);
	json_object_set_new(object, "oldest_reservation_seconds", seconds_json(client->oldest_reservation_ns));
	set_count(object, "requests", client->requests);
	set_count(object, "unsent_bytes", client->unsent_bytes);
	bool has_reported = client->report_age_ns != UINT64_MAX;
	json_object_set_new(object, "report_age_seconds",
			    has_reported ? seconds_json(client->report_age_ns) : json_null());
	json_object_set_new(object, "report", has_reported ? report_json(&client->report) : json_null());
	json_object_set_new(object, "waiters", has_reported ? waiters_json(&client->report) : json_array());
	return object;
}

json_t *fc_status_clients_json(const struct fc_daemon_view *view)
{
	json_t *array = json_array();
	for (size_t at = 0; at < view->client_count; at++)
		json_array_append_new(array, client_json(&view->clients[at]));
	return json_pack("{s:o}", "clients", array);
}

json_t *fc_status_namespaces_json(const struct fc_daemon_view *view)
{
	json_t *array = json_array();
	for (size_t at = 0; at < view->namespace_count; at++) {
		const struct fc_view_namespace *space = &view->namespaces[at];
		json_array_append_new(
			array, json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", text_json(space->name), "bytes_used",
					 space->bytes_used != UINT64_MAX ? count_json(space->bytes_used) : json_null(),
					 "bytes_max", space->bytes_max > 0 ? count_json(space->bytes_max) : json_null(),
					 "clients", count_json(space->clients), "saves_over_quota",
					 count_json(space->saves_over_quota)));
	}
	return json_pack("{s:o}", "namespaces", array);
}

/* ---- sessions ---- */

struct session_page {
	json_t *array;
	uint64_t limit, cursor, next_cursor;
	bool is_more;
};

static const char *kind_text(enum fc_session_kind kind)
{
	return kind == FC_SESSION_PROMPT ? "prompt" : "conversation";
}

static json_t *session_json(const struct fc_session_info *info)
{
	json_t *object = json_object();
	json_object_set_new(object, "session", json_sprintf("%016" PRIx64 "%016" PRIx64, info->id.high, info->id.low));
	json_object_set_new(object, "kind", json_string(kind_text(info->kind)));
	set_count(object, "turns", info->turns);
	set_count(object, "blocks", info->blocks);
	set_count(object, "segments", info->segments);
	set_count(object, "extents", info->extents);
	set_count(object, "leases", info->leases);
	set_count(object, "dependents", info->dependents);
	json_object_set_new(object, "bytes", media_json(info->bytes));
	set_count(object, "created_seq", info->created_seq);
	set_count(object, "used_seq", info->used_seq);
	return object;
}

static bool add_session(void *context, const struct fc_session_info *info)
{
	struct session_page *page = context;
	if (info->used_seq <= page->cursor)
		return true;
	if (json_array_size(page->array) == page->limit) {
		page->is_more = true;
		return false;
	}
	page->next_cursor = info->used_seq;
	json_array_append_new(page->array, session_json(info));
	return true;
}

json_t *fc_status_sessions_json(const struct fc_daemon_callbacks *callbacks, uint64_t limit, uint64_t cursor)
{
	struct session_page page = {.array = json_array(), .limit = limit, .cursor = cursor};
	callbacks->sessions(callbacks->context, add_session, &page);
	return json_pack("{s:o, s:o}", "sessions", page.array, "next_cursor",
			 page.is_more ? json_sprintf("%" PRIu64, page.next_cursor) : json_null());
}

/* One row a metric wherever it is a field of the view; what needs labels of its own follows below the tables. */
#include "daemon/metrics.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

#define COUNTER "counter"
#define GAUGE "gauge"

struct metric {
	const char *name, *type, *help;
	size_t field_offset;
	const char *label; /* name="value", or NULL; rows of one name follow each other */
};

#define VIEW(field) offsetof(struct fc_daemon_view, field)

static const struct metric plain_metrics[] = {
	{"flatcake_start_time_seconds", GAUGE, "When the daemon started, in seconds since 1970.", VIEW(started_at_s),
	 NULL},
	{"flatcake_index_blocks", GAUGE, "Blocks that the index names.", VIEW(stats.blocks), NULL},
	{"flatcake_index_bytes", GAUGE, "Memory of the index and the keys.", VIEW(stats.index_bytes), NULL},
	{"flatcake_leases", GAUGE, "Leases that clients hold.", VIEW(stats.leases), NULL},
	{"flatcake_clients", GAUGE, "Connected clients.", VIEW(client_count), NULL},
	{"flatcake_namespaces", GAUGE, "Namespaces that are served.", VIEW(namespace_count), NULL},
	{"flatcake_connections_total", COUNTER, "Clients that were let in.", VIEW(counters.connections), NULL},
	{"flatcake_leases_expired_total", COUNTER, "Leases that were kept longer than lease_timeout.",
	 VIEW(counters.leases_expired), NULL},
	{"flatcake_reservations_orphaned", GAUGE,
	 "Reservations whose client is gone and may still be writing: their space is not given to others.",
	 VIEW(reservations_orphaned_now), NULL},
	{"flatcake_reservations_orphaned_total", COUNTER, "Reservations whose client went without commit or abort.",
	 VIEW(counters.reservations_orphaned), NULL},
	{"flatcake_matches_total", COUNTER, "Matches that were answered.", VIEW(counters.matches), NULL},
	{"flatcake_reservations_total", COUNTER, "Reservations that were granted.", VIEW(counters.reservations), NULL},
	{"flatcake_commits_total", COUNTER, "Reservations that were committed.", VIEW(counters.commits), NULL},
	{"flatcake_damage_reports_total", COUNTER,
	 "Slices that clients reported as damaged, by what the daemon found when it read them itself.",
	 VIEW(counters.damage_confirmed), "verdict=\"confirmed\""},
	{"flatcake_damage_reports_total", COUNTER, NULL, VIEW(counters.damage_unconfirmed), "verdict=\"unconfirmed\""},

	{"flatcake_loads_total", COUNTER, "Loads that ended, of all clients.", VIEW(reports.loads), NULL},
	{"flatcake_loads_hit_total", COUNTER, "Loads that delivered at least one block.", VIEW(reports.loads_hit),
	 NULL},
	{"flatcake_loads_failed_total", COUNTER, "Loads that ended with an error.", VIEW(reports.loads_failed), NULL},
	{"flatcake_saves_total", COUNTER, "Saves that ended.", VIEW(reports.saves), NULL},
	{"flatcake_saves_failed_total", COUNTER, "Saves that ended with an error.", VIEW(reports.saves_failed), NULL},
	{"flatcake_prefix_blocks_possible_total", COUNTER, "Blocks that matches promised.",
	 VIEW(reports.blocks_possible), NULL},
	{"flatcake_prefix_blocks_delivered_total", COUNTER,
	 "Blocks that were in place on the device when a load ended.", VIEW(reports.blocks_delivered), NULL},
	{"flatcake_load_bytes_total", COUNTER, "Bytes of slices that loads wanted, by medium.",
	 VIEW(reports.bytes_wanted[FC_MEMORY]), "medium=\"memory\""},
	{"flatcake_load_bytes_total", COUNTER, NULL, VIEW(reports.bytes_wanted[FC_SSD]), "medium=\"ssd\""},
	{"flatcake_save_bytes_total", COUNTER, "Bytes that saves wrote, by medium.",
	 VIEW(reports.bytes_written[FC_MEMORY]), "medium=\"memory\""},
	{"flatcake_save_bytes_total", COUNTER, NULL, VIEW(reports.bytes_written[FC_SSD]), "medium=\"ssd\""},
	{"flatcake_read_bytes_total", COUNTER,
	 "Bytes that clients read from SSD, with gaps, checksums and alignment; divided by flatcake_load_bytes_total "
	 "of "
	 "ssd: the read amplification.",
	 VIEW(reports.bytes_read), NULL},
	{"flatcake_read_commands_total", COUNTER, "Read commands that clients sent to the SSD.",
	 VIEW(reports.read_commands), NULL},
	{"flatcake_queue_length", GAUGE, "Requests that wait in the clients' queues.", VIEW(reports.ready_length),
	 "queue=\"ready\""},
	{"flatcake_queue_length", GAUGE, NULL, VIEW(reports.prepare_length), "queue=\"prepare\""},
	{"flatcake_loads_active", GAUGE, "Loads that read or copy now.", VIEW(reports.loads_active), NULL},
	{"flatcake_saves_active", GAUGE, "Saves that write now.", VIEW(reports.saves_active), NULL},

	{"flatcake_checksum_failures_total", COUNTER, "Slices whose checksum did not match, by who read them.",
	 VIEW(reports.checksum_failures), "by=\"clients\""},
	{"flatcake_checksum_failures_total", COUNTER, NULL, VIEW(stats.checksum_failures), "by=\"daemon\""},
	{"flatcake_io_errors_total", COUNTER, "Reads and writes that failed or did not return, by whose they were.",
	 VIEW(reports.io_errors), "by=\"clients\""},
	{"flatcake_io_errors_total", COUNTER, NULL, VIEW(stats.io_errors), "by=\"daemon\""},
	{"flatcake_sessions_cut_total", COUNTER, "Sessions that were cut at a damaged slice.", VIEW(stats.sessions_cut),
	 NULL},
	{"flatcake_segments_spilled_total", COUNTER, "Segments that memory had no room for and that went to SSD.",
	 VIEW(stats.segments_spilled), NULL},
	{"flatcake_saves_refused_total", COUNTER, "Reservations that found no room.", VIEW(stats.saves_refused), NULL},
	{"flatcake_recovered_segments", GAUGE, "Segments that the last start found.", VIEW(stats.recovered_segments),
	 NULL},
	{"flatcake_dropped_segments", GAUGE, "Segments that the last start dropped: not whole, or without their head.",
	 VIEW(stats.dropped_segments), NULL},
};

#define MEDIUM(field) offsetof(struct fc_medium_stats, field)

static const struct metric medium_metrics[] = {
	{"flatcake_arena_bytes", GAUGE, "Bytes that segments may use.", MEDIUM(bytes), NULL},
	{"flatcake_arena_used_bytes", GAUGE, "Bytes in chunks that are owned.", MEDIUM(bytes_used), NULL},
	{"flatcake_arena_stored_bytes", GAUGE, "Bytes of slices that the index names.", MEDIUM(bytes_stored), NULL},
	{"flatcake_arena_sessions", GAUGE, "Sessions.", MEDIUM(sessions), NULL},
	{"flatcake_arena_segments", GAUGE, "Segments.", MEDIUM(segments), NULL},
	{"flatcake_arena_extents", GAUGE, "Contiguous pieces that sessions lie in.", MEDIUM(extents), NULL},
	{"flatcake_arena_blocks", GAUGE, "Blocks.", MEDIUM(blocks), NULL},
	{"flatcake_sessions_reclaimed_total", COUNTER, "Sessions that were freed for room.", MEDIUM(sessions_reclaimed),
	 NULL},
	{"flatcake_reclaimed_bytes_total", COUNTER, "Bytes that reclaiming freed.", MEDIUM(bytes_reclaimed), NULL},
	{"flatcake_segments_absorbed_total", COUNTER, "Segments that later ones took in.", MEDIUM(segments_absorbed),
	 NULL},
	{"flatcake_daemon_read_bytes_total", COUNTER, "Bytes that the daemon itself read.", MEDIUM(bytes_read), NULL},
	{"flatcake_daemon_written_bytes_total", COUNTER, "Bytes that the daemon itself wrote.", MEDIUM(bytes_written),
	 NULL},
	{"flatcake_daemon_read_commands_total", COUNTER, "Read commands of the daemon itself.", MEDIUM(read_commands),
	 NULL},
	{"flatcake_daemon_write_commands_total", COUNTER, "Write commands of the daemon itself.",
	 MEDIUM(write_commands), NULL},
};

static void add_head(struct fc_text *text, const char *name, const char *type, const char *help)
{
	fc_text_addf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static uint64_t field_at(const void *base, size_t field_offset)
{
	uint64_t value; /* every field of the tables has 64 bits */
	memcpy(&value, (const char *)base + field_offset, sizeof(value));
	return value;
}

static void add_value(struct fc_text *text, const char *name, const char *label, uint64_t value)
{
	fc_text_add(text, name);
	if (label != NULL)
		fc_text_addf(text, "{%s}", label);
	fc_text_add(text, " ");
	fc_text_add_number(text, value, '\n');
}

static void add_plain(struct fc_text *text, const struct fc_daemon_view *view)
{
	_Static_assert(sizeof(view->client_count) == sizeof(uint64_t), "fields of the table have 64 bits");
	for (size_t row = 0; row < fc_array_len(plain_metrics); row++) {
		const struct metric *metric = &plain_metrics[row];
		if (metric->help != NULL)
			add_head(text, metric->name, metric->type, metric->help);
		add_value(text, metric->name, metric->label, field_at(view, metric->field_offset));
	}
}

/* ---- by medium ---- */

static const char *medium_label(enum fc_medium medium)
{
	return medium == FC_MEMORY ? "medium=\"memory\"" : "medium=\"ssd\"";
}

static void add_media(struct fc_text *text, const struct fc_daemon_view *view)
{
	for (size_t row = 0; row < fc_array_len(medium_metrics); row++) {
		const struct metric *metric = &medium_metrics[row];
		add_head(text, metric->name, metric->type, metric->help);
		for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
			if (view->arenas[medium].is_there)
				add_value(text, metric->name, medium_label((enum fc_medium)medium),
					  field_at(&view->stats.media[medium], metric->field_offset));
	}
}

static void add_arenas(struct fc_text *text, const struct fc_daemon_view *view)
{
	add_head(text, "flatcake_arena_largest_free_bytes", GAUGE, "The largest contiguous piece that is free.");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->arenas[medium].is_there)
			add_value(text, "flatcake_arena_largest_free_bytes", medium_label((enum fc_medium)medium),
				  view->arenas[medium].largest_free_bytes);
	add_head(text, "flatcake_arena_silent_seconds", GAUGE,
		 "For how long the arena has not answered, if for longer than io_timeout.");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->arenas[medium].is_there)
			add_value(text, "flatcake_arena_silent_seconds", medium_label((enum fc_medium)medium),
				  view->arenas[medium].silent_ns / 1000000000);
	add_head(text, "flatcake_arena_fallback", GAUGE,
		 "1 when the medium works by a fallback only; the log says which.");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->arenas[medium].is_there)
			add_value(text, "flatcake_arena_fallback", medium_label((enum fc_medium)medium),
				  view->arenas[medium].notice[0] != '\0');
	add_head(text, "flatcake_arena_lost", GAUGE,
		 "1 when its file was removed, replaced or made shorter under the daemon: nothing is kept in it.");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->arenas[medium].is_there)
			add_value(text, "flatcake_arena_lost", medium_label((enum fc_medium)medium),
				  view->arenas[medium].lost[0] != '\0');
	add_head(text, "flatcake_arena_read_limit_bytes_per_second", GAUGE,
		 "What the medium gives at best, as it was set.");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->arenas[medium].is_there && view->arenas[medium].read_limit_bytes_per_s > 0)
			add_value(text, "flatcake_arena_read_limit_bytes_per_second",
				  medium_label((enum fc_medium)medium), view->arenas[medium].read_limit_bytes_per_s);
}

/* ---- histograms ---- */

double fc_metrics_bucket_s(size_t bucket)
{
	return bucket + 1 < FC_WIRE_TIME_BUCKETS ? 0.001 * exp2((double)bucket / 2) : INFINITY;
}

static void add_times(struct fc_text *text, const char *name, const char *help, const struct fc_wire_times *times)
{
	uint64_t below = 0;
	add_head(text, name, "histogram", help);
	for (size_t bucket = 0; bucket < FC_WIRE_TIME_BUCKETS; bucket++) {
		below += times->counts[bucket];
		if (bucket + 1 < FC_WIRE_TIME_BUCKETS)
			fc_text_addf(text, "%s_bucket{le=\"%.6g\"} ", name, fc_metrics_bucket_s(bucket));
		else
			fc_text_addf(text, "%s_bucket{le=\"+Inf\"} ", name);
		fc_text_add_number(text, below, '\n');
	}
	fc_text_addf(text, "%s_sum %.9f\n%s_count ", name, (double)times->sum_ns / 1e9, name);
	fc_text_add_number(text, below, '\n');
}

static void add_histograms(struct fc_text *text, const struct fc_daemon_view *view)
{
	add_times(text, "flatcake_load_seconds", "From a load's submission to its end.", &view->reports.load_time);
	add_times(text, "flatcake_first_layer_seconds", "From a load's submission to its first layer in place.",
		  &view->reports.first_layer_time);
	add_times(text, "flatcake_queue_wait_seconds", "From a load's submission to its first read or copy.",
		  &view->reports.queue_wait);
	add_times(text, "flatcake_match_seconds", "From a whole match message to its answer, in the daemon.",
		  &view->counters.match_time);
}

/* ---- states, clients, namespaces ---- */

static void add_states(struct fc_text *text, const struct fc_daemon_view *view)
{
	add_head(text, "flatcake_build_info", GAUGE, "1, with the version.");
	fc_text_addf(text, "flatcake_build_info{version=\"%d.%d.%d\"} 1\n", FC_VERSION_MAJOR, FC_VERSION_MINOR,
		     FC_VERSION_PATCH);
	add_head(text, "flatcake_uptime_seconds", GAUGE, "Since the daemon started.");
	fc_text_addf(text, "flatcake_uptime_seconds %.3f\n", (double)view->uptime_ns / 1e9);
	add_head(text, "flatcake_ready", GAUGE, "1 when clients are served in full.");
	add_value(text, "flatcake_ready", NULL, fc_view_is_ready(view));
	add_head(text, "flatcake_socket_lost", GAUGE,
		 "1 when its file was removed, renamed or replaced: nobody new can connect.");
	add_value(text, "flatcake_socket_lost", NULL, view->is_socket_lost);
	add_head(text, "flatcake_state", GAUGE, "1 for the state that the daemon is in.");
	for (int state = 0; state < FC_DAEMON_STATE_COUNT; state++)
		fc_text_addf(text, "flatcake_state{state=\"%s\"} %d\n",
			     fc_daemon_state_text((enum fc_daemon_state)state), (int)view->state == state);
}

static void add_clients(struct fc_text *text, const struct fc_daemon_view *view)
{
	uint64_t oldest_ns = 0, reservations = 0, reserved_bytes = 0, silent = 0;
	for (size_t at = 0; at < view->client_count; at++) {
		const struct fc_view_client *client = &view->clients[at];
		oldest_ns = fc_max_u64(oldest_ns, client->oldest_lease_ns);
		reservations += client->reservations;
		reserved_bytes += client->reserved_bytes;
		silent += client->report_age_ns > 30000000000ull && client->age_ns > 30000000000ull;
	}
	add_head(text, "flatcake_oldest_lease_seconds", GAUGE, "Age of the oldest lease, 0 without any.");
	fc_text_addf(text, "flatcake_oldest_lease_seconds %.3f\n", (double)oldest_ns / 1e9);
	add_head(text, "flatcake_oldest_reservation_seconds", GAUGE,
		 "Age of the oldest reservation, those of gone clients included, 0 without any.");
	fc_text_addf(text, "flatcake_oldest_reservation_seconds %.3f\n", (double)view->oldest_reservation_ns / 1e9);
	add_head(text, "flatcake_reservations_open", GAUGE, "Reservations of connected clients, not yet committed.");
	add_value(text, "flatcake_reservations_open", NULL, reservations);
	add_head(text, "flatcake_reserved_bytes", GAUGE, "Bytes of those.");
	add_value(text, "flatcake_reserved_bytes", NULL, reserved_bytes);
	add_head(text, "flatcake_clients_silent", GAUGE, "Clients that have not reported for 30 seconds.");
	add_value(text, "flatcake_clients_silent", NULL, silent);
	add_head(text, "flatcake_connections_refused_total", COUNTER,
		 "Connections that the daemon refused or ended, by reason.");
	for (int refusal = 0; refusal < FC_REFUSAL_COUNT; refusal++)
		fc_text_addf(text, "flatcake_connections_refused_total{reason=\"%s\"} %llu\n",
			     fc_refusal_text((enum fc_refusal)refusal),
			     (unsigned long long)view->counters.refused[refusal]);
}

/* A label's value: quotes, backslashes and line ends escaped. */
static void add_namespace_value(struct fc_text *text, const char *name, const char *name_space, uint64_t value)
{
	fc_text_addf(text, "%s{namespace=\"", name);
	for (; *name_space != '\0'; name_space++) {
		char letter[3] = {*name_space};
		if (*name_space == '"' || *name_space == '\\' || *name_space == '\n') {
			letter[0] = '\\';
			letter[1] = *name_space == '\n' ? 'n' : *name_space;
		}
		fc_text_add(text, letter);
	}
	fc_text_add(text, "\"} ");
	fc_text_add_number(text, value, '\n');
}

static void add_namespaces(struct fc_text *text, const struct fc_daemon_view *view)
{
	static const struct {
		const char *name, *type, *help;
		size_t field_offset;
		bool is_absent_at_0;
	} rows[] = {
		{"flatcake_namespace_used_bytes", GAUGE, "Bytes of a namespace on all media.",
		 offsetof(struct fc_view_namespace, bytes_used), false},
		{"flatcake_namespace_quota_bytes", GAUGE, "Bytes that it may have.",
		 offsetof(struct fc_view_namespace, bytes_max), true},
		{"flatcake_namespace_clients", GAUGE, "Its connected clients.",
		 offsetof(struct fc_view_namespace, clients), false},
		{"flatcake_namespace_saves_over_quota_total", COUNTER, "Reservations that its quota refused.",
		 offsetof(struct fc_view_namespace, saves_over_quota), false},
	};
	for (size_t row = 0; row < fc_array_len(rows); row++) {
		add_head(text, rows[row].name, rows[row].type, rows[row].help);
		for (size_t at = 0; at < view->namespace_count; at++) {
			uint64_t value = field_at(&view->namespaces[at], rows[row].field_offset);
			if (value != UINT64_MAX && (value != 0 || !rows[row].is_absent_at_0))
				add_namespace_value(text, rows[row].name, view->namespaces[at].name, value);
		}
	}
}

static void add_own(struct fc_text *text, const struct fc_metrics_own *own)
{
	add_head(text, "flatcake_http_requests_total", COUNTER, "HTTP requests, by the class of their answer.");
	for (size_t class = 2; class < fc_array_len(own->http_requests); class ++)
		fc_text_addf(text, "flatcake_http_requests_total{status=\"%zuxx\"} %llu\n", class,
			     (unsigned long long)own->http_requests[class]);
	add_head(text, "flatcake_log_messages_lost_total", COUNTER, "Log messages that were not written, by reason.");
	add_value(text, "flatcake_log_messages_lost_total", "reason=\"limit\"", own->log_held_back);
	add_value(text, "flatcake_log_messages_lost_total", "reason=\"error\"", own->log_unwritten);
}

void fc_metrics_write(struct fc_text *text, const struct fc_daemon_view *view, const struct fc_metrics_own *own)
{
	add_states(text, view);
	add_plain(text, view);
	add_media(text, view);
	add_arenas(text, view);
	add_histograms(text, view);
	add_clients(text, view);
	add_namespaces(text, view);
	add_own(text, own);
}

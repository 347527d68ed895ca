#include "daemon/fake_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

static uint64_t draw(struct fake_daemon *fake, uint64_t below)
{
	fake->random ^= fake->random << 13;
	fake->random ^= fake->random >> 7;
	fake->random ^= fake->random << 17;
	return fake->random % below;
}

struct fc_session_id fake_session_id(uint64_t number)
{
	return (struct fc_session_id){number * 0x9e3779b97f4a7c15ull, number * 0xc2b2ae3d27d4eb4full};
}

static void init_arena(struct fake_daemon *fake, enum fc_medium medium, uint32_t chunk_count)
{
	struct fake_arena *arena = &fake->arenas[medium];
	*arena = (struct fake_arena){.chunk_count = chunk_count, .chunk_bytes = medium == FC_SSD ? 32 * MIB : 16 * MIB};
	arena->owners = calloc(chunk_count + 1, sizeof(*arena->owners));
	arena->begins = calloc(chunk_count + 1, sizeof(*arena->begins));
	fake->view.arenas[medium] = (struct fc_view_arena){
		.is_there = chunk_count > 0,
		.path = medium == FC_SSD ? "/var/lib/flatcake/ssd.arena" : "/dev/shm/flatcake/memory.arena",
		.notice = "",
		.lost = "",
		.bytes = chunk_count * arena->chunk_bytes,
		.chunk_bytes = arena->chunk_bytes,
		.read_limit_bytes_per_s = medium == FC_SSD ? 6800000000ull : 0,
	};
}

static void init_clients(struct fake_daemon *fake)
{
	static const char *const programs[FAKE_CLIENTS] = {"vllm worker 0", "vllm worker 1",    "vllm worker 2",
							   "vllm worker 3", "sglang scheduler", "llama.cpp"};
	for (int at = 0; at < FAKE_CLIENTS; at++)
		fake->clients[at] = (struct fc_view_client){
			.number = 11 + (uint64_t)at,
			.pid = 4100 + 7 * at,
			.uid = 1001 + at / 4,
			.program = programs[at],
			.name_space = at < 4    ? "team-a"
				      : at == 4 ? "team-b"
						: "",
			.age_ns = (uint64_t)(7200 + 60 * at) * 1000000000ull,
		};
	fake->namespaces[0] = (struct fc_view_namespace){.name = "team-a", .bytes_max = 400ull << 30, .clients = 4};
	fake->namespaces[1] = (struct fc_view_namespace){.name = "team-b", .bytes_max = 200ull << 30, .clients = 1};
	fake->namespaces[2] = (struct fc_view_namespace){.name = "", .clients = 1};
}

void fake_daemon_init(struct fake_daemon *fake, uint32_t memory_chunks, uint32_t ssd_chunks)
{
	memset(fake, 0, sizeof(*fake));
	fake->random = 88172645463325252ull;
	fake->session_room = memory_chunks + ssd_chunks + 1;
	fake->sessions = calloc(fake->session_room, sizeof(*fake->sessions));
	fake->view.state = FC_DAEMON_READY;
	fake->view.reason = "";
	fake->view.instance = "5f0c2b7e9a6d41838c1e0f27ab94d3c6";
	fake->view.started_at_s = 1796040000;
	fake->view.uptime_ns = 2 * 86400 * 1000000000ull;
	struct fc_error error;
	if (fc_geometry_preset(&fake->geometry, "deepseek-v4-flash", 64, 1, &error) != FC_OK)
		abort();
	init_arena(fake, FC_MEMORY, memory_chunks);
	init_arena(fake, FC_SSD, ssd_chunks);
	init_clients(fake);
}

void fake_daemon_deinit(struct fake_daemon *fake)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		free(fake->arenas[medium].owners);
		free(fake->arenas[medium].begins);
	}
	free(fake->sessions);
}

/* ---- turns ---- */

static void free_session(struct fake_daemon *fake, struct fake_session *session, bool is_reclaim)
{
	struct fake_arena *arena = &fake->arenas[session->medium];
	uint32_t owner = (uint32_t)(session - fake->sessions) + 1;
	for (uint32_t chunk = 0; chunk < arena->chunk_count; chunk++) {
		if (arena->owners[chunk] != owner)
			continue;
		arena->owners[chunk] = 0;
		arena->segment_count -= arena->begins[chunk];
		arena->begins[chunk] = false;
		arena->used_count--;
	}
	if (is_reclaim) {
		arena->sessions_reclaimed++;
		arena->bytes_reclaimed += session->chunk_count * arena->chunk_bytes;
	}
	session->number = 0;
}

static struct fake_session *oldest(struct fake_daemon *fake, int medium)
{
	struct fake_session *found = NULL;
	for (uint32_t at = 0; at < fake->session_room; at++) {
		struct fake_session *session = &fake->sessions[at];
		if (session->number != 0 && session->medium == medium && !session->is_leased &&
		    (found == NULL || session->used_seq < found->used_seq))
			found = session;
	}
	return found;
}

/* The largest free run, and where it begins. */
static uint32_t largest_run(const struct fake_arena *arena, uint32_t *from)
{
	uint32_t best = 0, length = 0;
	for (uint32_t chunk = 0; chunk < arena->chunk_count; chunk++) {
		length = arena->owners[chunk] == 0 ? length + 1 : 0;
		if (length > best) {
			best = length;
			*from = chunk + 1 - length;
		}
	}
	return best;
}

static bool is_free(const struct fake_arena *arena, uint32_t from, uint32_t count)
{
	if (from + count > arena->chunk_count)
		return false;
	for (uint32_t at = 0; at < count; at++)
		if (arena->owners[from + at] != 0)
			return false;
	return true;
}

static void append(struct fake_daemon *fake, struct fake_session *session, uint32_t count)
{
	struct fake_arena *arena = &fake->arenas[session->medium];
	uint32_t from = session->last_chunk + 1, run_from = 0;
	if (session->turns == 0 || !is_free(arena, from, count)) {
		uint32_t run = largest_run(arena, &run_from);
		if (run < count)
			return;
		from = run_from + (session->turns == 0 ? (run - count) / 2 : 0);
	}
	for (uint32_t at = 0; at < count; at++)
		arena->owners[from + at] = (uint32_t)(session - fake->sessions) + 1;
	arena->begins[from] = true;
	arena->used_count += count;
	arena->segment_count++;
	session->last_chunk = from + count - 1;
	session->chunk_count += count;
	session->turns++;
}

static void reclaim(struct fake_daemon *fake, int medium)
{
	struct fake_arena *arena = &fake->arenas[medium];
	if (arena->used_count <= arena->chunk_count * 95ull / 100)
		return;
	while (arena->used_count > arena->chunk_count * 85ull / 100) {
		struct fake_session *session = oldest(fake, medium);
		if (session == NULL)
			return;
		free_session(fake, session, true);
	}
}

static struct fake_session *choose_session(struct fake_daemon *fake, int medium)
{
	uint32_t active = fake->arenas[medium].chunk_count / 80 + 1; /* conversations that go on at once */
	if (draw(fake, 100) >= 15) {
		for (int tries = 0; tries < 8 && fake->session_numbers > 0; tries++) {
			uint64_t back = draw(fake, active) + 1;
			uint64_t wanted = fake->session_numbers >= back ? fake->session_numbers - back + 1 : 1;
			struct fake_session *session = &fake->sessions[wanted % fake->session_room];
			if (session->number == wanted && session->medium == medium)
				return session;
		}
	}
	struct fake_session *session = &fake->sessions[++fake->session_numbers % fake->session_room];
	if (session->number != 0)
		free_session(fake, session, false);
	*session = (struct fake_session){.number = fake->session_numbers, .created_seq = ++fake->seq, .medium = medium};
	return session;
}

/* ---- reports ---- */

static void add_time(struct fc_wire_times *times, double milliseconds)
{
	size_t bucket = 0;
	for (double bound = 1; bucket + 1 < FC_WIRE_TIME_BUCKETS && milliseconds > bound; bound *= 1.41421356237)
		bucket++;
	times->counts[bucket]++;
	times->sum_ns += (uint64_t)(milliseconds * 1e6);
}

static void add_load(struct fake_daemon *fake, struct fc_wire_report *report, uint64_t kv_bytes, bool is_ssd)
{
	uint64_t possible = kv_bytes / MIB / 2 + 1;
	double milliseconds = (double)kv_bytes / 5.2e6 * (1 + (double)draw(fake, 100) / 120) + (is_ssd ? 4 : 1);
	report->loads++;
	report->loads_hit++;
	report->blocks_possible += possible;
	report->blocks_delivered += possible - (draw(fake, 12) == 0 ? possible / 4 : 0);
	report->bytes_wanted[is_ssd ? FC_SSD : FC_MEMORY] += kv_bytes;
	if (is_ssd) {
		report->bytes_read += kv_bytes + kv_bytes / 40;
		report->read_commands += kv_bytes / (900 << 10) + 1;
	}
	report->saves++;
	report->bytes_written[is_ssd ? FC_SSD : FC_MEMORY] += kv_bytes / 6;
	add_time(&report->load_time, milliseconds);
	add_time(&report->first_layer_time, milliseconds / 14 + 1);
	add_time(&report->queue_wait, milliseconds * 0.4);
}

static void set_waiters(struct fake_daemon *fake, struct fc_view_client *client)
{
	struct fc_wire_report *report = &client->report;
	report->waiter_count = (uint32_t)draw(fake, 5);
	report->prepare_length = report->waiter_count + (report->waiter_count > 0 ? 1 : 0);
	report->ready_length = draw(fake, 4);
	report->loads_active = 1 + draw(fake, 3);
	report->saves_active = draw(fake, 2);
	for (uint32_t at = 0; at < report->waiter_count; at++) {
		struct fc_wire_waiter *waiter = &report->waiters[at];
		waiter->request = report->loads + at + 1;
		waiter->ssd_bytes = (40 + draw(fake, 3000)) * MIB;
		waiter->waited_ns = draw(fake, 2500) * 1000000;
		waiter->priority =
			1 + (double)waiter->waited_ns / 1e9 / ((double)waiter->ssd_bytes / (double)(1ull << 30));
	}
	client->leases = report->loads_active;
	client->oldest_lease_ns = 300000000 + draw(fake, 900) * 1000000;
	client->reservations = report->saves_active;
	client->reserved_bytes = report->saves_active * 96 * MIB;
	client->requests = client->leases + client->reservations + report->prepare_length;
	client->report_age_ns = draw(fake, 900) * 1000000;
}

static void add_times(struct fc_wire_times *sum, const struct fc_wire_times *times)
{
	for (size_t bucket = 0; bucket < FC_WIRE_TIME_BUCKETS; bucket++)
		sum->counts[bucket] += times->counts[bucket];
	sum->sum_ns += times->sum_ns;
}

static void add_report(struct fc_wire_report *sum, const struct fc_wire_report *report)
{
	sum->loads += report->loads;
	sum->loads_hit += report->loads_hit;
	sum->saves += report->saves;
	sum->blocks_possible += report->blocks_possible;
	sum->blocks_delivered += report->blocks_delivered;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		sum->bytes_wanted[medium] += report->bytes_wanted[medium];
		sum->bytes_written[medium] += report->bytes_written[medium];
	}
	sum->bytes_read += report->bytes_read;
	sum->read_commands += report->read_commands;
	sum->ready_length += report->ready_length;
	sum->prepare_length += report->prepare_length;
	sum->loads_active += report->loads_active;
	sum->saves_active += report->saves_active;
	add_times(&sum->load_time, &report->load_time);
	add_times(&sum->first_layer_time, &report->first_layer_time);
	add_times(&sum->queue_wait, &report->queue_wait);
}

void fake_daemon_step(struct fake_daemon *fake, unsigned turns, uint64_t passed_ns)
{
	for (unsigned turn = 0; turn < turns; turn++) {
		int medium = fake->arenas[FC_MEMORY].chunk_count > 0 && draw(fake, 4) == 0 ? FC_MEMORY : FC_SSD;
		struct fake_session *session = choose_session(fake, medium);
		struct fc_view_client *client = &fake->clients[session->number % FAKE_CLIENTS];
		session->used_seq = ++fake->seq;
		if (session->turns > 0)
			add_load(fake, &client->report, session->chunk_count * 9 * MIB, medium == FC_SSD);
		append(fake, session, 1 + (uint32_t)draw(fake, medium == FC_SSD ? 3 : 2));
		reclaim(fake, medium);
		add_time(&fake->view.counters.match_time, 0.3 + (double)draw(fake, 10) / 5);
		fake->view.counters.matches++;
		fake->view.counters.reservations++;
		fake->view.counters.commits++;
	}
	for (int at = 0; at < FAKE_CLIENTS; at++) {
		fake->clients[at].age_ns += passed_ns;
		set_waiters(fake, &fake->clients[at]);
	}
	fake->view.uptime_ns += passed_ns;
}

/* ---- callbacks ---- */

static void fill_medium(struct fake_daemon *fake, struct fc_daemon_view *view, int medium)
{
	const struct fake_arena *arena = &fake->arenas[medium];
	uint32_t from, extents = 0;
	uint64_t sessions = 0;
	for (uint32_t chunk = 0; chunk < arena->chunk_count; chunk++)
		extents +=
			arena->owners[chunk] != 0 && (chunk == 0 || arena->owners[chunk - 1] != arena->owners[chunk]);
	for (uint32_t at = 0; at < fake->session_room; at++)
		sessions += fake->sessions[at].number != 0 && fake->sessions[at].medium == medium;
	view->stats.media[medium] = (struct fc_medium_stats){
		.bytes = arena->chunk_count * arena->chunk_bytes,
		.bytes_used = arena->used_count * arena->chunk_bytes,
		.bytes_stored = arena->used_count * arena->chunk_bytes * 9 / 10,
		.sessions = sessions,
		.segments = arena->segment_count,
		.extents = extents,
		.blocks = arena->used_count * 15ull,
		.sessions_reclaimed = arena->sessions_reclaimed,
		.bytes_reclaimed = arena->bytes_reclaimed,
	};
	view->stats.blocks += arena->used_count * 15ull;
	view->arenas[medium].largest_free_bytes = largest_run(arena, &from) * arena->chunk_bytes;
}

static void fake_view(void *context, struct fc_daemon_view *view)
{
	struct fake_daemon *fake = context;
	fake->views++;
	*view = fake->view;
	view->geometry = &fake->geometry;
	view->clients = fake->clients;
	view->client_count = FAKE_CLIENTS;
	view->namespaces = fake->namespaces;
	view->namespace_count = FAKE_NAMESPACES;
	for (int at = 0; at < FAKE_CLIENTS; at++) {
		add_report(&view->reports, &fake->clients[at].report);
		view->stats.leases += fake->clients[at].leases;
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fill_medium(fake, view, medium);
	view->stats.index_bytes = view->stats.blocks * 33;
	view->counters.connections += 9;
	fake->namespaces[0].bytes_used = fake->arenas[FC_SSD].used_count * fake->arenas[FC_SSD].chunk_bytes / 100 * 62;
	fake->namespaces[1].bytes_used = fake->arenas[FC_SSD].used_count * fake->arenas[FC_SSD].chunk_bytes / 100 * 30;
	fake->namespaces[2].bytes_used = fake->arenas[FC_SSD].used_count * fake->arenas[FC_SSD].chunk_bytes / 100 * 8;
}

static void fake_segments(void *context, bool (*each)(void *each_context, const struct fc_segment_info *info),
			  void *each_context)
{
	struct fake_daemon *fake = context;
	fake->map_walks++;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fake_arena *arena = &fake->arenas[medium];
		for (uint32_t chunk = 0; chunk < arena->chunk_count; chunk++) {
			if (!arena->begins[chunk])
				continue;
			uint32_t end = chunk + 1, owner = arena->owners[chunk];
			while (end < arena->chunk_count && arena->owners[end] == owner && !arena->begins[end])
				end++;
			const struct fake_session *session = &fake->sessions[owner - 1];
			struct fc_segment_info info = {
				.placed.base = fc_gva_make((enum fc_medium)medium, 0, chunk * arena->chunk_bytes),
				.session = fake_session_id(session->number),
				.bytes = (end - chunk) * arena->chunk_bytes,
				.is_kept = session->number % 97 != 0 || session->turns > 1,
			};
			if (!each(each_context, &info))
				return;
		}
	}
}

static int by_use(const void *a, const void *b)
{
	const struct fake_session *const *left = a, *const *right = b;
	return ((*left)->used_seq > (*right)->used_seq) - ((*left)->used_seq < (*right)->used_seq);
}

static void fake_sessions(void *context, bool (*each)(void *each_context, const struct fc_session_info *info),
			  void *each_context)
{
	struct fake_daemon *fake = context;
	const struct fake_session **sorted = calloc(fake->session_room, sizeof(*sorted));
	size_t count = 0;
	for (uint32_t at = 0; at < fake->session_room; at++)
		if (fake->sessions[at].number != 0)
			sorted[count++] = &fake->sessions[at];
	qsort(sorted, count, sizeof(*sorted), by_use);
	for (size_t at = 0; at < count; at++) {
		struct fc_session_info info = {.id = fake_session_id(sorted[at]->number),
					       .turns = sorted[at]->turns,
					       .created_seq = sorted[at]->created_seq,
					       .used_seq = sorted[at]->used_seq};
		info.bytes[sorted[at]->medium] = sorted[at]->chunk_count * fake->arenas[sorted[at]->medium].chunk_bytes;
		if (!each(each_context, &info))
			break;
	}
	free(sorted);
}

static int fake_evict(void *context, struct fc_session_id id)
{
	struct fake_daemon *fake = context;
	if (fake->view.state == FC_DAEMON_OPENING)
		return FC_EAGAIN;
	for (uint32_t at = 0; at < fake->session_room; at++) {
		struct fake_session *session = &fake->sessions[at];
		struct fc_session_id its_id = fake_session_id(session->number);
		if (session->number == 0 || its_id.high != id.high || its_id.low != id.low)
			continue;
		if (session->is_leased)
			return FC_EBUSY;
		free_session(fake, session, false);
		return FC_OK;
	}
	return FC_ENOENT;
}

static int fake_drain(void *context)
{
	struct fake_daemon *fake = context;
	fake->drains++;
	fake->view.state = FC_DAEMON_DRAINING;
	fake->view.reason = "draining: an operator asked for it";
	return FC_OK;
}

struct fc_daemon_callbacks fake_daemon_callbacks(struct fake_daemon *fake)
{
	return (struct fc_daemon_callbacks){
		.context = fake,
		.view = fake_view,
		.segments = fake_segments,
		.sessions = fake_sessions,
		.evict = fake_evict,
		.drain = fake_drain,
	};
}

/* The daemon: the server of production on the core that holds the store, and what a process around it does: it accepts,
 * moves bytes, closes, looks at its clients' locks now and then, and lifts the fence that it began with.
 *
 * What the server says of a client is held against what the run knows: an engine never breaks the protocol, nor goes
 * over a limit unless it reads nothing; who is no engine is not let in, and not kept. */
#include "sim/check.h"

#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS 1000000000ull

const char *fc_sim_space_name(uint32_t space)
{
	return space == 0 ? "" : "another tenant";
}

/* ---- what the server tells ---- */

static void on_output(void *context, struct fc_server_client *client)
{
	struct fc_sim_connection *connection = fc_server_client_context(client);
	(void)context;
	connection->has_output = true;
}

static void on_close(void *context, struct fc_server_client *client)
{
	struct fc_sim *sim = context;
	struct fc_sim_connection *connection = fc_server_client_context(client);
	if (connection->wants_close)
		fc_sim_broken(&sim->notes, "client %llu: the server wants it closed twice",
			      (unsigned long long)fc_server_client_number(client));
	connection->wants_close = true;
}

static bool is_allowed(const struct fc_sim *sim, enum fc_server_event event, const struct fc_sim_connection *connection)
{
	const double *probability = sim->faults.probability;
	if (connection == NULL || connection->is_strange)
		return true;
	switch (event) {
	case FC_SERVER_PROTOCOL_ERROR: /* no HELLO in time */
		return probability[FC_FAULT_CLOCK_JUMP] + probability[FC_FAULT_STOPPED] > 0;
	case FC_SERVER_UNSENT_LIMIT:
		return probability[FC_FAULT_DEAF] + probability[FC_FAULT_STOPPED] > 0;
	case FC_SERVER_HELD_LIMIT:
	case FC_SERVER_REFUSED_VERSION:
	case FC_SERVER_REFUSED_GEOMETRY:
		return false;
	case FC_SERVER_LEASE_TIMEOUT:
		return sim->settings.limits.lease_timeout_ns < 3600 * SECOND_NS;
	case FC_SERVER_REFUSED_NAMESPACE: /* it was the first to name it */
	case FC_SERVER_NO_MEMORY:
		return probability[FC_FAULT_ALLOCATION] > 0;
	default:
		return true;
	}
}

static void on_event(void *context, enum fc_server_event event, const struct fc_server_client *client, const char *text)
{
	struct fc_sim *sim = context;
	const struct fc_sim_connection *connection = client == NULL ? NULL : fc_server_client_context(client);
	uint64_t number = client == NULL ? 0 : fc_server_client_number(client);
	if (sim->notes.log != NULL)
		fprintf(sim->notes.log, "%22s server: %s: %s\n", "", fc_server_event_name(event), text);
	fc_sim_note(&sim->notes, "  server: event %llu, client %llu", (uint64_t)event, number, 0, 0);
	if (!is_allowed(sim, event, connection))
		fc_sim_broken(&sim->notes, "the server about an engine: %s: %s", fc_server_event_name(event), text);
}

/* ---- connections ---- */

bool fc_sim_is_locked(const struct fc_sim *sim, struct fc_sim_connection *connection)
{
	uint32_t adrift = 0;
	if (connection->lock != FC_SIM_LOCKED_BY_WRITES)
		return connection->lock == FC_SIM_LOCKED_BY_ENGINE;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL)
			adrift += fc_sim_medium_adrift(sim->media[medium], connection->life);
	if (adrift == 0)
		connection->lock = FC_SIM_UNLOCKED;
	return adrift > 0;
}

static struct fc_sim_connection *free_connection(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++)
		if (!sim->connections[i].is_used)
			return &sim->connections[i];
	return NULL;
}

struct fc_sim_connection *fc_sim_accept(struct fc_sim *sim, int32_t pid)
{
	struct fc_server_peer peer = {.pid = pid, .uid = 1000, .gid = 1000};
	struct fc_error error = {0};
	if (sim->daemon.server == NULL || sim->daemon.is_stopping)
		return NULL;
	struct fc_sim_connection *connection = free_connection(sim);
	if (connection == NULL) /* the daemon has not yet looked who is gone */
		return NULL;
	*connection = (struct fc_sim_connection){.instance = sim->daemon.instance, .opened_ns = sim->notes.now_ns};
	if (fc_server_connect(sim->daemon.server, &peer, connection, &connection->peer, &error) != FC_OK)
		return NULL;
	connection->is_used = connection->is_open = true;
	sim->counts.connections++;
	return connection;
}

/* ---- what engines write ---- */

struct landing {
	enum fc_medium medium;
	uint64_t offset, bytes;
	bool is_reserved;
};

static bool on_segment(void *context, const struct fc_segment_info *info)
{
	struct landing *landing = context;
	uint64_t base = fc_gva_offset(info->placed.base);
	if (fc_gva_medium(info->placed.base) == landing->medium && !info->is_kept && base <= landing->offset &&
	    landing->offset + landing->bytes <= base + info->bytes)
		landing->is_reserved = true;
	return !landing->is_reserved;
}

/* What an engine writes, alive or not, lands where space is reserved, unless it is the fence that protects it. */
static void check_landings(struct fc_sim *sim, const struct fc_sim_medium *medium, enum fc_medium number)
{
	for (uint32_t i = 0; i < medium->flight_count; i++) {
		const struct fc_sim_flight *flight = &medium->flights[i];
		struct landing landing = {number, flight->io->offset, flight->io->bytes, false};
		if (flight->io->op != FC_IO_WRITE || flight->via == &medium->media || flight->is_stray)
			continue;
		fc_catalog_segments(fc_core_catalog(sim->holder.core), on_segment, &landing);
		if (!landing.is_reserved)
			fc_sim_broken(&sim->notes, "a write is under way to %llu of medium %d, which is not reserved",
				      (unsigned long long)landing.offset, number);
	}
}

static void check_reservations(struct fc_sim *sim)
{
	struct fc_server_totals totals;
	fc_server_totals(sim->daemon.server, &totals);
	if (sim->daemon.is_fenced && totals.held.claims_reserved > 0)
		fc_sim_broken(&sim->notes, "%llu reservations behind the fence",
			      (unsigned long long)totals.held.claims_reserved);
	for (int medium = 0; medium < FC_MEDIUM_COUNT && !sim->daemon.is_fenced; medium++)
		if (sim->media[medium] != NULL)
			check_landings(sim, sim->media[medium], (enum fc_medium)medium);
}

/* ---- ends of connections ---- */

/* The daemon's end is closed: what it has sent arrives. */
static void close_end(struct fc_sim *sim, struct fc_sim_connection *connection)
{
	connection->is_open = connection->has_output = false;
	fc_sim_stream_end(&connection->down, &sim->network);
	fc_sim_stream_deinit(&connection->up);
	connection->up.is_ended = true;
	fc_server_disconnected(connection->peer);
	check_reservations(sim); /* nothing that is under way has lost its place */
}

static void forget_peer(struct fc_sim_connection *connection)
{
	connection->peer = NULL;
}

static void free_unused(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		struct fc_sim_connection *connection = &sim->connections[i];
		if (!connection->is_used || connection->peer != NULL || connection->engine != NULL ||
		    fc_sim_is_locked(sim, connection))
			continue;
		fc_sim_stream_deinit(&connection->up);
		fc_sim_stream_deinit(&connection->down);
		connection->is_used = false;
	}
}

/* Drops the answer to a reservation that stands at the front, if it is never to come. */
static bool is_lost(struct fc_sim *sim, struct fc_wire_buffer *output, const struct fc_wire_header *header)
{
	if (header->type != FC_WIRE_RESERVED || sim->is_healed ||
	    !fc_sim_happens(&sim->breakage, sim->faults.probability[FC_FAULT_MUTE]))
		return false;
	fc_sim_note(&sim->notes, "the answer to request %llu is not sent", header->request, 0, 0, 0);
	fc_wire_buffer_drop(output, FC_WIRE_HEADER_BYTES + header->body_bytes);
	sim->faults_fired++;
	return true;
}

/* How many bytes may go: where answers are lost, up to the end of one. */
static uint64_t sendable(struct fc_sim *sim, struct fc_sim_connection *connection, struct fc_wire_buffer *output)
{
	struct fc_wire_header header;
	if (sim->faults.probability[FC_FAULT_MUTE] == 0)
		return output->used;
	while (connection->frame_left_bytes == 0 && output->used > 0) {
		fc_check(fc_wire_header_decode(&header, output->bytes, NULL) == FC_OK);
		if (!is_lost(sim, output, &header))
			connection->frame_left_bytes = FC_WIRE_HEADER_BYTES + header.body_bytes;
	}
	return fc_min_u64(connection->frame_left_bytes, output->used);
}

static unsigned send_output(struct fc_sim *sim, struct fc_sim_connection *connection)
{
	if (!connection->has_output)
		return 0;
	struct fc_wire_buffer *output = fc_server_output(connection->peer);
	bool is_read = connection->engine != NULL || connection->is_strange; /* else it goes nowhere */
	uint64_t sent = output->used;
	if (is_read) {
		sent = sendable(sim, connection, output);
		sent = fc_sim_stream_send(&connection->down, &sim->network, output->bytes, sent);
		connection->frame_left_bytes -= fc_min_u64(sent, connection->frame_left_bytes);
	}
	fc_wire_buffer_drop(output, sent);
	connection->has_output = output->used > 0;
	return sent > 0;
}

static unsigned receive(struct fc_sim *sim, struct fc_sim_connection *connection)
{
	struct fc_sim_stream *up = &connection->up;
	if (fc_sim_stream_is_over(up, &sim->network)) {
		close_end(sim, connection);
		return 1;
	}
	uint64_t count = fc_sim_stream_due(up, &sim->network);
	if (count == 0)
		return 0;
	fc_server_received(connection->peer, up->bytes, count);
	fc_sim_stream_drop(up);
	return 1;
}

/* Who was let in, or was not told why not. */
static void check_stranger(struct fc_sim *sim, const struct fc_sim_connection *connection)
{
	struct fc_wire_header header = {0};
	if (!connection->is_strange)
		return;
	if (fc_server_client_is_welcome(connection->peer))
		fc_sim_broken(&sim->notes, "a stranger is welcome");
	const double *probability = sim->faults.probability;
	bool may_be_late = probability[FC_FAULT_ALLOCATION] + probability[FC_FAULT_CLOCK_JUMP] > 0;
	if (!connection->must_be_refused || may_be_late)
		return;
	if (connection->down.used < FC_WIRE_HEADER_BYTES ||
	    fc_wire_header_decode(&header, connection->down.bytes, NULL) != FC_OK || header.type != FC_WIRE_REFUSED)
		fc_sim_broken(&sim->notes, "a stranger is sent away without a reason");
}

static unsigned serve(struct fc_sim *sim, struct fc_sim_connection *connection)
{
	unsigned count = send_output(sim, connection) + receive(sim, connection);
	fc_sim_check_lost(sim);
	if (!connection->is_open || !connection->wants_close)
		return count;
	count += send_output(sim, connection);
	check_stranger(sim, connection);
	close_end(sim, connection);
	return count + 1;
}

/* ---- locks ---- */

static void end_fence(struct fc_sim *sim)
{
	sim->daemon.is_fenced = false;
	fc_sim_note(&sim->notes, "the fence is lifted", 0, 0, 0, 0);
	fc_server_fence_is_over(sim->daemon.server);
}

/* Whoever still holds a lock then is stuck: what of it lands later may land on anything. */
static void give_up_fence(struct fc_sim *sim, const struct fc_sim_connection *connection)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (sim->media[medium] == NULL)
			continue;
		if (connection->lock == FC_SIM_LOCKED_BY_WRITES)
			fc_sim_medium_stray(sim->media[medium], NULL, connection->life);
		for (uint32_t i = 0; i < sim->settings.engine_count; i++)
			if (connection->lock == FC_SIM_LOCKED_BY_ENGINE && sim->engines[i].life == connection->life)
				fc_sim_medium_stray(sim->media[medium], &sim->engines[i].fronts[medium].media, 0);
	}
	fc_sim_note(&sim->notes, "life %llu holds its lock for too long", connection->life, 0, 0, 0);
}

static unsigned probe_fence(struct fc_sim *sim)
{
	bool is_over = sim->notes.now_ns >= sim->daemon.fence_end_ns, is_held = false;
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		struct fc_sim_connection *connection = &sim->connections[i];
		if (!connection->is_used || connection->instance == sim->daemon.instance ||
		    !fc_sim_is_locked(sim, connection))
			continue;
		is_held = true;
		if (is_over)
			give_up_fence(sim, connection);
	}
	if (is_held && !is_over)
		return 0;
	sim->counts.fences_given_up += is_held;
	end_fence(sim);
	return 1;
}

static unsigned probe(struct fc_sim *sim)
{
	unsigned count = 0;
	if (sim->notes.now_ns < sim->daemon.next_probe_ns)
		return 0;
	sim->daemon.next_probe_ns = sim->notes.now_ns + sim->settings.probe_ns;
	if (sim->daemon.is_fenced)
		count += probe_fence(sim);
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		struct fc_sim_connection *connection = &sim->connections[i];
		if (connection->peer == NULL || connection->is_open || fc_sim_is_locked(sim, connection))
			continue;
		fc_server_unlocked(connection->peer);
		forget_peer(connection);
		check_reservations(sim);
		count++;
	}
	return count;
}

/* ---- life ---- */

void fc_sim_daemon_start(struct fc_sim *sim)
{
	struct fc_sim_daemon *daemon = &sim->daemon;
	const struct fc_catalog *catalog = fc_core_catalog(sim->holder.core);
	const struct fc_superblock *superblock =
		fc_catalog_superblock(catalog, sim->media[FC_SSD] != NULL ? FC_SSD : FC_MEMORY);
	struct fc_error error = {0};
	struct fc_server_opts opts = {
		.alloc = &sim->holder.memory.alloc,
		.clock = {fc_sim_now_ns, sim},
		.core = sim->holder.core,
		.geometry = &sim->settings.geometry,
		.instance = {++daemon->instance, 1},
		.store = superblock->uuid,
		.limits = sim->settings.limits,
		.has_output = on_output,
		.wants_close = on_close,
		.event = on_event,
		.context = sim,
	};
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++)
		opts.is_fenced |= sim->connections[i].is_used && fc_sim_is_locked(sim, &sim->connections[i]);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		opts.media[medium] = sim->media[medium] == NULL ? NULL : &sim->media[medium]->media;
	double probability = sim->holder.memory.fail_probability;
	sim->holder.memory.fail_probability = 0;
	if (fc_server_open(&daemon->server, &opts, &error) != FC_OK)
		fc_sim_broken(&sim->notes, "server: %s", error.text);
	sim->holder.memory.fail_probability = probability;
	daemon->is_fenced = opts.is_fenced;
	daemon->is_stopping = false;
	daemon->fence_end_ns = sim->notes.now_ns + sim->settings.fence_timeout_ns;
	daemon->next_probe_ns = sim->notes.now_ns + sim->settings.probe_ns;
	daemon->commits = 0;
	sim->counts.fences += opts.is_fenced;
	fc_sim_note(&sim->notes, "the daemon listens, fenced: %llu", opts.is_fenced, 0, 0, 0);
}

void fc_sim_daemon_kill(struct fc_sim *sim)
{
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		struct fc_sim_connection *connection = &sim->connections[i];
		if (!connection->is_used)
			continue;
		if (connection->is_open) {
			fc_sim_stream_cut(&connection->down, &sim->network);
			fc_sim_stream_deinit(&connection->up);
			connection->up.is_ended = true;
		}
		connection->is_open = connection->has_output = false;
		forget_peer(connection);
	}
	sim->daemon.server = NULL;
	free_unused(sim);
}

static bool is_drained(struct fc_sim *sim)
{
	return fc_server_is_drained(sim->daemon.server);
}

static bool is_quiet(struct fc_sim *sim)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (sim->media[medium] != NULL &&
		    fc_sim_medium_flights(sim->media[medium], &sim->media[medium]->media) > 0)
			return false;
	return fc_core_is_idle(sim->holder.core);
}

void fc_sim_daemon_stop(struct fc_sim *sim)
{
	struct fc_stats stats;
	fc_server_drain(sim->daemon.server);
	(void)fc_sim_advance_until(sim, is_drained, sim->settings.drain_timeout_ns);
	sim->daemon.is_stopping = true;
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++)
		if (sim->connections[i].is_open)
			close_end(sim, &sim->connections[i]);
	if (!fc_sim_advance_until(sim, is_quiet, 3600 * SECOND_NS))
		fc_sim_broken(&sim->notes, "stop: the daemon does not come to rest");
	fc_server_free(sim->daemon.server);
	sim->daemon.server = NULL;
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++)
		forget_peer(&sim->connections[i]);
	free_unused(sim);
	fc_core_stats(sim->holder.core, &stats);
	if (stats.leases > 0)
		fc_sim_broken(&sim->notes, "stop: %llu leases are left of clients that are gone",
			      (unsigned long long)stats.leases);
}

/* ---- shares ---- */

struct reserved {
	/* by process */
	uint64_t bytes[FC_SIM_ENGINES_MAX + 2][FC_MEDIUM_COUNT], claims[FC_SIM_ENGINES_MAX + 2][FC_MEDIUM_COUNT];
};

static bool add_reserved(void *context, const struct fc_server_client_info *info)
{
	struct reserved *reserved = context;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		reserved->bytes[info->peer.pid][medium] += info->held.reserved_in[medium];
		reserved->claims[info->peer.pid][medium] += info->held.claims_in[medium];
	}
	return true;
}

/* Whatever one process has reserved, stopped, gone or alive: it is within its share, or one save that leaves as much to
 * the others. */
static void check_shares(struct fc_sim *sim)
{
	struct reserved reserved = {0};
	fc_server_clients(sim->daemon.server, add_reserved, &reserved);
	for (uint32_t pid = 0; pid < FC_SIM_ENGINES_MAX + 2; pid++)
		for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
			uint64_t held_bytes = reserved.bytes[pid][medium];
			uint64_t bytes = sim->media[medium] == NULL ? 0 : sim->media[medium]->media.bytes;
			uint64_t share_bytes = (uint64_t)((double)bytes * sim->settings.limits.reserved_share);
			bool is_one = reserved.claims[pid][medium] == 1 && held_bytes <= bytes - share_bytes;
			if (held_bytes > share_bytes && !is_one)
				fc_sim_broken(&sim->notes, "process %u has %llu of %llu bytes of medium %d reserved",
					      pid, (unsigned long long)held_bytes, (unsigned long long)bytes, medium);
		}
}

/* ---- time ---- */

unsigned fc_sim_daemon_step(struct fc_sim *sim)
{
	unsigned count = 0;
	if (sim->daemon.server == NULL)
		return 0;
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++)
		if (sim->connections[i].is_open)
			count += serve(sim, &sim->connections[i]);
	count += probe(sim);
	count += fc_server_step(sim->daemon.server);
	if (count > 0)
		check_shares(sim);
	free_unused(sim);
	return count;
}

uint64_t fc_sim_daemon_next_ns(const struct fc_sim *sim)
{
	const struct fc_sim_daemon *daemon = &sim->daemon;
	bool is_probing = daemon->is_fenced;
	uint64_t next_ns = UINT64_MAX;
	if (daemon->server == NULL)
		return UINT64_MAX;
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		const struct fc_sim_connection *connection = &sim->connections[i];
		if (connection->is_open)
			next_ns = fc_min_u64(next_ns, fc_sim_stream_next_ns(&connection->up));
		is_probing |= connection->peer != NULL && !connection->is_open;
	}
	uint64_t wake_ns = fc_server_wake_ns(daemon->server);
	if (wake_ns != UINT64_MAX)
		next_ns = fc_min_u64(next_ns, wake_ns > sim->clock_skew_ns ? wake_ns - sim->clock_skew_ns : 0);
	return is_probing ? fc_min_u64(next_ns, daemon->next_probe_ns) : next_ns;
}

/* ---- what it holds ---- */

bool fc_sim_daemon_has_committed(struct fc_sim *sim)
{
	struct fc_server_totals totals;
	if (sim->daemon.server == NULL)
		return false;
	fc_server_totals(sim->daemon.server, &totals);
	bool has_committed = totals.counters.commits != sim->daemon.commits;
	sim->daemon.commits = totals.counters.commits;
	return has_committed;
}

bool fc_sim_daemon_is_idle(struct fc_sim *sim)
{
	struct fc_server_totals totals;
	if (sim->daemon.server == NULL)
		return true;
	fc_server_totals(sim->daemon.server, &totals);
	return totals.clients_gone + totals.verifies_waiting + totals.held.leases + totals.held.claims_waiting +
		       totals.held.claims_reserved + totals.held.claims_visible ==
	       0;
}

void fc_sim_daemon_check(struct fc_sim *sim)
{
	struct fc_server_totals totals;
	struct fc_stats stats;
	if (sim->daemon.server == NULL)
		return;
	fc_server_totals(sim->daemon.server, &totals);
	fc_core_stats(sim->holder.core, &stats);
	if (totals.held.leases > stats.leases)
		fc_sim_broken(&sim->notes, "the server holds %llu leases, the catalog knows %llu",
			      (unsigned long long)totals.held.leases, (unsigned long long)stats.leases);
	check_reservations(sim);
	if (totals.held.claims_reserved == 0 && totals.held.reserved_bytes > 0)
		fc_sim_broken(&sim->notes, "%llu bytes are reserved for nobody",
			      (unsigned long long)totals.held.reserved_bytes);
	for (uint32_t i = 0; i < FC_SIM_CONNECTIONS_MAX; i++) {
		const struct fc_sim_connection *connection = &sim->connections[i];
		uint64_t patience_ns = sim->settings.limits.hello_timeout_ns + SECOND_NS;
		if (connection->is_open && connection->is_strange &&
		    sim->notes.now_ns - connection->opened_ns > patience_ns)
			fc_sim_broken(&sim->notes, "a stranger is kept for more than %llu ns",
				      (unsigned long long)patience_ns);
	}
}

/* ---- strangers ---- */

enum strange { STRANGE_GARBAGE, STRANGE_VERSION, STRANGE_GEOMETRY, STRANGE_HALF, STRANGE_SILENT, STRANGE_COUNT };

/* Another block size, or a model of another name and equal sizes: which, the moment decides, and nothing is drawn. */
static void make_strange(struct fc_geometry *geometry, uint64_t now_ns)
{
	if (now_ns % 2 == 0) {
		geometry->name[0]++;
		return;
	}
	geometry->block_tokens *= 2;
	for (uint32_t group = 0; group < geometry->group_count; group++)
		geometry->groups[group].tokens_per_block *= 2;
}

static void say_hello(struct fc_sim *sim, struct fc_sim_connection *connection, enum strange kind)
{
	struct fc_wire_buffer buffer;
	struct fc_wire_hello hello = {
		.version_min = FC_WIRE_VERSION_MIN,
		.version_max = FC_WIRE_VERSION_MAX,
		.geometry = sim->settings.geometry,
	};
	if (kind == STRANGE_VERSION)
		hello.version_min = hello.version_max = FC_WIRE_VERSION_MAX + 1;
	if (kind == STRANGE_GEOMETRY)
		make_strange(&hello.geometry, connection->opened_ns);
	fc_wire_buffer_init(&buffer, &sim->network.alloc);
	fc_check(fc_wire_put_hello(&buffer, &hello) == FC_OK);
	uint64_t count = kind == STRANGE_HALF ? fc_random_below(&sim->breakage, buffer.used) : buffer.used;
	(void)fc_sim_stream_send(&connection->up, &sim->network, buffer.bytes, count);
	fc_wire_buffer_deinit(&buffer);
}

void fc_sim_stranger(struct fc_sim *sim)
{
	enum strange kind = (enum strange)fc_random_below(&sim->breakage, STRANGE_COUNT);
	struct fc_sim_connection *connection = fc_sim_accept(sim, FC_SIM_ENGINES_MAX + 1);
	uint8_t garbage[256];
	if (connection == NULL)
		return;
	connection->is_strange = true;
	connection->must_be_refused = kind == STRANGE_VERSION || kind == STRANGE_GEOMETRY;
	fc_sim_note(&sim->notes, "a stranger connects, of kind %llu", (uint64_t)kind, 0, 0, 0);
	if (kind == STRANGE_GARBAGE) {
		for (size_t i = 0; i < sizeof(garbage); i++)
			garbage[i] = (uint8_t)fc_random_u64(&sim->breakage);
		(void)fc_sim_stream_send(&connection->up, &sim->network, garbage, sizeof(garbage));
	} else if (kind != STRANGE_SILENT) {
		say_hello(sim, connection, kind);
	}
	if (fc_random_below(&sim->breakage, 4) == 0)
		fc_sim_stream_end(&connection->up, &sim->network);
}

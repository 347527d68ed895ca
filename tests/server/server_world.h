/* A server in front of a core with fake media, and clients that speak to it in bytes: where the stories of tests/server
 * take place. After every step the whole catalog is checked; server_world_deinit() asserts that nothing is left: no
 * lease, no reservation, no byte of memory. */
#ifndef FC_TESTS_SERVER_SERVER_WORLD_H
#define FC_TESTS_SERVER_SERVER_WORLD_H

#include "core/core_world.h"
#include "format/checksum.h"
#include "server/server.h"

#define CLIENTS_MAX 8
#define TEXT_BYTES 1024

struct server_world {
	struct core_world core;
	struct fc_server_opts opts;
	struct fc_server *server;
	uint64_t events[FC_SERVER_EVENT_COUNT];
	char last_text[TEXT_BYTES]; /* of the last event */
	int32_t pid;                /* of the process that connects next */
};

/* The other end of a connection. */
struct peer {
	struct server_world *world;
	struct fc_server_client *client; /* NULL: gone */
	struct fc_wire_buffer to_server;
	struct fc_wire_welcome welcome;
	bool has_output, wants_close;
	uint64_t next_request;
};

static inline void on_output(void *context, struct fc_server_client *client)
{
	(void)context;
	((struct peer *)fc_server_client_context(client))->has_output = true;
}

static inline void on_wants_close(void *context, struct fc_server_client *client)
{
	(void)context;
	struct peer *peer = fc_server_client_context(client);
	assert_false(peer->wants_close);
	peer->wants_close = true;
}

static inline void on_server_event(void *context, enum fc_server_event event, const struct fc_server_client *client,
				   const char *text)
{
	struct server_world *world = context;
	(void)client;
	world->events[event]++;
	snprintf(world->last_text, sizeof(world->last_text), "%s", text);
}

/* Change `opts` and `core.opts` before server_world_open(). */
static inline void server_world_init(struct server_world *world, struct fc_geometry geometry, uint64_t memory_chunks,
				     uint64_t ssd_chunks)
{
	memset(world, 0, sizeof(*world));
	core_world_init(&world->core, geometry, memory_chunks, ssd_chunks);
	world->opts = (struct fc_server_opts){
		.alloc = &world->core.world.alloc,
		.clock = {core_world_now, &world->core},
		.geometry = &world->core.world.geometry,
		.instance = {1, 2},
		.store = {3, 4},
		.has_output = on_output,
		.wants_close = on_wants_close,
		.event = on_server_event,
		.context = world,
	};
	fc_server_limits_init(&world->opts.limits);
	world->pid = 100;
}

static inline int server_world_start(struct server_world *world, struct fc_error *error)
{
	world->opts.core = world->core.core;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		world->opts.media[medium] = world->core.opts.catalog.media[medium];
	return fc_server_open(&world->server, &world->opts, error);
}

static inline void server_world_open(struct server_world *world)
{
	struct fc_error error = {0};
	assert_int_equal(core_world_open(&world->core), 0);
	if (server_world_start(world, &error) != FC_OK)
		fail_msg("%s", error.text);
}

static inline unsigned server_world_step(struct server_world *world)
{
	unsigned count = core_world_step(&world->core);
	count += fc_server_step(world->server);
	core_world_check(&world->core);
	return count;
}

/* Until nothing moves any more; what then still wants to be woken wants it later. */
static inline void server_world_settle(struct server_world *world)
{
	for (int steps = 0; server_world_step(world) > 0; steps++)
		assert_true(steps < STEPS_MAX);
	assert_true(fc_server_wake_ns(world->server) > world->core.now_ns);
}

static inline struct fc_server_totals server_world_totals(const struct server_world *world)
{
	struct fc_server_totals totals;
	fc_server_totals(world->server, &totals);
	return totals;
}

static inline void server_world_deinit(struct server_world *world)
{
	server_world_settle(world);
	struct fc_server_totals totals = server_world_totals(world);
	assert_int_equal(totals.clients, 0);
	assert_int_equal(totals.held.leases, 0);
	assert_int_equal(totals.held.claims_waiting, 0);
	assert_int_equal(totals.held.claims_visible, 0);
	fc_server_free(world->server);
	core_world_deinit(&world->core);
}

/* ---- peers ---- */

static inline int peer_try_connect(struct peer *peer, struct server_world *world, struct fc_error *error)
{
	static const uint32_t groups[] = {3000, 3001};
	struct fc_server_peer credentials = {
		.pid = world->pid, .uid = 1000, .gid = 2000, .groups = groups, .group_count = 2};
	*peer = (struct peer){.world = world};
	fc_wire_buffer_init(&peer->to_server, &world->core.world.alloc);
	return fc_server_connect(world->server, &credentials, peer, &peer->client, error);
}

static inline void peer_connect(struct peer *peer, struct server_world *world)
{
	assert_int_equal(peer_try_connect(peer, world, NULL), 0);
}

/* Delivers what was put into `to_server`. */
static inline void peer_send(struct peer *peer)
{
	fc_server_received(peer->client, peer->to_server.bytes, peer->to_server.used);
	fc_wire_buffer_drop(&peer->to_server, peer->to_server.used);
}

static inline void peer_send_bytes(struct peer *peer, const void *bytes, uint64_t count)
{
	fc_server_received(peer->client, bytes, count);
}

static inline void peer_send_plain(struct peer *peer, enum fc_wire_type type, uint64_t request)
{
	assert_int_equal(fc_wire_put_plain(&peer->to_server, type, request), 0);
	peer_send(peer);
}

/* The next message of the server's, which must be of this type; its body stays until peer_take() or more output. */
static inline const uint8_t *peer_expect(struct peer *peer, enum fc_wire_type type, struct fc_wire_header *header)
{
	struct fc_error error = {0};
	const uint8_t *body = NULL;
	peer->has_output = false;
	if (fc_wire_next(fc_server_output(peer->client), header, &body, &error) != FC_OK)
		fail_msg("%s was expected: %s (%s)", fc_wire_type_name(type), error.text, peer->world->last_text);
	if (header->type != type)
		fail_msg("%s was expected, not %s", fc_wire_type_name(type), fc_wire_type_name(header->type));
	return body;
}

static inline void peer_take(struct peer *peer, const struct fc_wire_header *header)
{
	fc_wire_buffer_drop(fc_server_output(peer->client), FC_WIRE_HEADER_BYTES + header->body_bytes);
}

static inline void peer_expect_nothing(struct peer *peer)
{
	assert_int_equal(fc_server_output(peer->client)->used, 0);
	peer->has_output = false;
}

static inline void peer_put_hello(struct peer *peer, const char *name_space)
{
	struct fc_wire_hello hello = {
		.version_min = 1, .version_max = 1, .program = "test", .geometry = peer->world->core.world.geometry};
	snprintf(hello.name_space, sizeof(hello.name_space), "%s", name_space);
	assert_int_equal(fc_wire_put_hello(&peer->to_server, &hello), 0);
}

static inline void peer_hello(struct peer *peer, const char *name_space)
{
	struct fc_wire_header header;
	struct fc_error error = {0};
	peer_put_hello(peer, name_space);
	peer_send(peer);
	const uint8_t *body = peer_expect(peer, FC_WIRE_WELCOME, &header);
	if (fc_wire_get_welcome(&peer->welcome, body, header.body_bytes, &error) != FC_OK)
		fail_msg("%s", error.text);
	peer_take(peer, &header);
	assert_true(fc_server_client_is_welcome(peer->client));
}

static inline void peer_open(struct peer *peer, struct server_world *world, const char *name_space)
{
	peer_connect(peer, world);
	peer_hello(peer, name_space);
}

/* The socket is gone, and the lock still held. */
static inline void peer_vanish(struct peer *peer)
{
	fc_server_disconnected(peer->client);
	fc_wire_buffer_deinit(&peer->to_server);
}

static inline void peer_unlock(struct peer *peer)
{
	fc_server_unlocked(peer->client);
	peer->client = NULL;
}

static inline void peer_close(struct peer *peer)
{
	peer_vanish(peer);
	peer_unlock(peer);
}

/* The server has said that it ends the connection, and nothing more follows. */
static inline void peer_expect_end(struct peer *peer, enum fc_server_event why)
{
	if (!peer->wants_close || peer->world->events[why] == 0)
		fail_msg("%s was expected: %s", fc_server_event_name(why), peer->world->last_text);
	peer_close(peer);
}

/* ---- questions ---- */

static inline uint64_t peer_put_match(struct peer *peer, const struct fc_key *keys, uint64_t count, bool is_leased)
{
	struct fc_wire_match match = {.is_leased = is_leased, .keys = keys, .key_count = count};
	uint64_t request = ++peer->next_request;
	assert_int_equal(fc_wire_put_match(&peer->to_server, request, &match), 0);
	return request;
}

static inline int peer_expect_matched(struct peer *peer, uint64_t request, struct fc_path *path)
{
	struct fc_wire_header header;
	struct fc_error error = {0};
	int code = 0;
	const uint8_t *body = peer_expect(peer, FC_WIRE_MATCHED, &header);
	assert_int_equal(header.request, request);
	path->is_leased = false;
	if (fc_wire_get_matched(&code, path, &peer->welcome, &peer->world->core.world.geometry,
				&peer->world->core.world.alloc, body, header.body_bytes, &error) != FC_OK)
		fail_msg("%s", error.text);
	peer_take(peer, &header);
	return code;
}

/* How many blocks are stored; with a lease if there are some. */
static inline uint64_t peer_match(struct peer *peer, const struct fc_key *keys, uint64_t count, bool is_leased,
				  uint64_t *request)
{
	struct fc_path path = {0};
	uint64_t number = peer_put_match(peer, keys, count, is_leased);
	peer_send(peer);
	assert_int_equal(peer_expect_matched(peer, number, &path), 0);
	uint64_t blocks = path.blocks;
	assert_int_equal(path.is_leased, is_leased && blocks > 0);
	path.is_leased = false;
	fc_path_deinit(&path, &peer->world->core.world.alloc);
	if (request != NULL)
		*request = number;
	return blocks;
}

static inline uint64_t peer_put_reserve(struct peer *peer, uint64_t session, uint64_t turn, const struct fc_key *keys,
					uint64_t count)
{
	struct fc_wire_reserve reserve = {
		.turn = {.session = {0, session}, .keys = keys, .key_count = count, .turn = turn}};
	const struct fc_geometry *geometry = &peer->world->core.world.geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++)
		reserve.turn.resident[group].count = count / fc_group_span(geometry, group);
	uint64_t request = ++peer->next_request;
	assert_int_equal(fc_wire_put_reserve(&peer->to_server, request, &reserve), 0);
	return request;
}

/* What was granted goes to `reservation`, to be given to peer_forget_reservation(). */
static inline int peer_expect_reserved(struct peer *peer, uint64_t request, struct fc_reservation *reservation,
				       struct fc_error *why)
{
	struct fc_wire_header header;
	struct fc_error error = {0};
	int code = 0;
	const uint8_t *body = peer_expect(peer, FC_WIRE_RESERVED, &header);
	assert_int_equal(header.request, request);
	*reservation = (struct fc_reservation){0};
	if (fc_wire_get_reserved(&code, reservation, why, &peer->welcome, &peer->world->core.world.geometry,
				 &peer->world->core.world.alloc, body, header.body_bytes, &error) != FC_OK)
		fail_msg("%s", error.text);
	peer_take(peer, &header);
	return code;
}

static inline void peer_forget_reservation(struct peer *peer, struct fc_reservation *reservation)
{
	reservation->grant_count = 0;
	reservation->sources.is_leased = false;
	fc_reservation_deinit(reservation, &peer->world->core.world.alloc);
}

/* Of geometries whose groups all have span 1: the slices of a grant where they belong, with their checksums. */
static inline void peer_write(struct peer *peer, const struct fc_reservation *reservation, const struct fc_key *keys)
{
	const struct fc_geometry *geometry = &peer->world->core.world.geometry;
	for (uint32_t i = 0; i < reservation->grant_count; i++) {
		const struct fc_placed *placed = &reservation->grants[i].placed;
		uint8_t *segment =
			peer->world->core.world.media[fc_gva_medium(placed->base)]->image + fc_gva_offset(placed->base);
		for (uint64_t entry = 0; entry < placed->shape->entry_count; entry++) {
			const struct fc_range *range = fc_shape_range_of(placed->shape, entry);
			uint64_t position = entry - range->entry_first;
			struct fc_key key = keys[range->block_first + position];
			key.high ^= peer->welcome.key_salt.high;
			key.low ^= peer->welcome.key_salt.low;
			struct fc_layer_area area;
			fc_layer_first(geometry, placed->shape, placed->header_bytes, &area);
			do {
				if (geometry->groups[range->group].slice_bytes[area.layer] == 0)
					continue;
				struct fc_range_area where = fc_range_area_in(geometry, placed->shape, &area, range);
				uint8_t *slice = segment + where.slice_offset + position * where.slice_bytes;
				slice_bytes(key, range->group, area.layer, slice, where.slice_bytes);
				uint32_t sum = fc_slice_checksum(slice, where.slice_bytes,
								 fc_slice_seed(key, range->group, area.layer));
				memcpy(segment + where.checksum_offset + position * sizeof(sum), &sum, sizeof(sum));
			} while (fc_layer_next(geometry, placed->shape, placed->align, &area));
		}
	}
}

/* A whole turn: reserve, write, commit, durable. */
static inline void peer_save(struct peer *peer, uint64_t session, uint64_t turn, const struct fc_key *keys,
			     uint64_t count)
{
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_wire_header header;
	struct fc_wire_committed committed;
	uint64_t request = peer_put_reserve(peer, session, turn, keys, count);
	peer_send(peer);
	if (peer_expect_reserved(peer, request, &reservation, &why) != FC_OK)
		fail_msg("%s", why.text);
	peer_write(peer, &reservation, keys);
	peer_forget_reservation(peer, &reservation);
	peer_send_plain(peer, FC_WIRE_COMMIT, request);
	const uint8_t *body = peer_expect(peer, FC_WIRE_COMMITTED, &header);
	assert_int_equal(fc_wire_get_committed(&committed, body, header.body_bytes, NULL), 0);
	assert_int_equal(committed.code, 0);
	peer_take(peer, &header);
	server_world_settle(peer->world);
	if (!committed.is_durable_coming)
		return;
	(void)peer_expect(peer, FC_WIRE_DURABLE, &header);
	assert_int_equal(header.request, request);
	peer_take(peer, &header);
}

#endif

/* Clients that lie, flood, keep, or do not read: each loses its connection with a reason, and its neighbour notices
 * nothing. */
#include "server/server_world.h"

#include "base/random.h"

struct scene {
	struct server_world world;
	struct peer good;
	struct fc_key keys[8];
	uint64_t lease; /* of the good one */
};

static void begin(struct scene *scene)
{
	path_keys(1, 0, scene->keys, 8);
	server_world_open(&scene->world);
	peer_open(&scene->good, &scene->world, "good");
	peer_save(&scene->good, 1, 0, scene->keys, 8);
	assert_int_equal(peer_match(&scene->good, scene->keys, 8, true, &scene->lease), 8);
}

static void open_scene(struct scene *scene)
{
	server_world_init(&scene->world, geometry_plain(100), 8, 32);
	begin(scene);
}

/* The neighbour still has what it had, and can do what it could. */
static void close_scene(struct scene *scene)
{
	server_world_settle(&scene->world);
	assert_false(scene->good.wants_close);
	struct fc_server_totals totals = server_world_totals(&scene->world);
	assert_int_equal(totals.held.leases, 1);
	assert_int_equal(totals.held.claims_reserved, 0);
	assert_int_equal(totals.held.reserved_bytes, 0);
	assert_int_equal(totals.held.claims_waiting, 0);
	assert_int_equal(core_world_stats(&scene->world.core).leases, 1);
	peer_send_plain(&scene->good, FC_WIRE_RELEASE, scene->lease);
	assert_int_equal(peer_match(&scene->good, scene->keys, 8, false, NULL), 8);
	peer_close(&scene->good);
	server_world_deinit(&scene->world);
}

/* ---- bytes ---- */

static void noise_ends_the_connection_at_once(void **state)
{
	(void)state;
	struct scene scene;
	struct fc_random random;
	uint8_t noise[512];
	open_scene(&scene);
	fc_random_init(&random, 7);
	for (int round = 0; round < 200; round++) {
		struct peer bad;
		uint64_t count = FC_WIRE_HEADER_BYTES + fc_random_below(&random, sizeof(noise) - FC_WIRE_HEADER_BYTES);
		for (uint64_t i = 0; i < count; i++)
			noise[i] = (uint8_t)fc_random_u64(&random);
		peer_connect(&bad, &scene.world);
		if (round % 2 == 1)
			peer_hello(&bad, "bad");
		peer_send_bytes(&bad, noise, count);
		peer_expect_end(&bad, FC_SERVER_PROTOCOL_ERROR);
	}
	assert_int_equal(scene.world.events[FC_SERVER_PROTOCOL_ERROR], 200);
	close_scene(&scene);
}

/* Everything that a client may say, once each, for `request`. */
static void put_everything(struct peer *peer, const struct fc_key *keys)
{
	struct fc_wire_damage damage = {.placed = 0, .entry = 1};
	struct fc_wire_report report = {.loads = 1};
	(void)peer_put_match(peer, keys, 8, true);
	uint64_t lease = peer->next_request;
	(void)peer_put_reserve(peer, 3, 0, keys, 8);
	uint64_t claim = peer->next_request;
	assert_int_equal(fc_wire_put_damage(&peer->to_server, lease, &damage), 0);
	assert_int_equal(fc_wire_put_report(&peer->to_server, &report), 0);
	assert_int_equal(fc_wire_put_session(&peer->to_server, ++peer->next_request, (struct fc_session_id){0, 3}), 0);
	assert_int_equal(fc_wire_put_plain(&peer->to_server, FC_WIRE_STATS, ++peer->next_request), 0);
	assert_int_equal(fc_wire_put_plain(&peer->to_server, FC_WIRE_RELEASE, lease), 0);
	assert_int_equal(fc_wire_put_plain(&peer->to_server, FC_WIRE_ABORT, claim), 0);
	assert_int_equal(fc_wire_put_plain(&peer->to_server, FC_WIRE_GOODBYE, 0), 0);
}

static void messages_may_come_byte_by_byte(void **state)
{
	(void)state;
	struct scene scene;
	struct peer slow;
	open_scene(&scene);
	peer_connect(&slow, &scene.world);
	peer_put_hello(&slow, "good");
	put_everything(&slow, scene.keys);
	for (uint64_t i = 0; i < slow.to_server.used; i++)
		peer_send_bytes(&slow, slow.to_server.bytes + i, 1);
	fc_wire_buffer_drop(&slow.to_server, slow.to_server.used);
	assert_false(slow.wants_close);
	struct fc_server_totals totals = server_world_totals(&scene.world);
	assert_int_equal(totals.counters.matches_hit, 2);
	assert_int_equal(totals.counters.reserves, 2);
	server_world_settle(&scene.world);
	peer_close(&slow);
	close_scene(&scene);
}

static void every_flipped_bit_is_survived(void **state)
{
	(void)state;
	struct scene scene;
	struct peer model;
	open_scene(&scene);
	peer_connect(&model, &scene.world);
	peer_put_hello(&model, "bad");
	put_everything(&model, scene.keys);
	uint64_t count = model.to_server.used;
	uint8_t *bytes = malloc(count);
	for (uint64_t bit = 0; bit < count * 8; bit += 5) {
		struct peer bad;
		memcpy(bytes, model.to_server.bytes, count);
		bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		peer_connect(&bad, &scene.world);
		peer_send_bytes(&bad, bytes, count);
		server_world_settle(&scene.world);
		peer_close(&bad);
	}
	free(bytes);
	peer_close(&model);
	close_scene(&scene);
}

static void a_body_that_is_too_long_is_not_waited_for(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	uint8_t header[FC_WIRE_HEADER_BYTES];
	server_world_init(&scene.world, geometry_plain(100), 8, 32);
	scene.world.opts.limits.keys_max = 100;
	begin(&scene);
	peer_open(&bad, &scene.world, "bad");
	assert_int_equal(fc_wire_put_plain(&bad.to_server, FC_WIRE_STATS, 1), 0);
	memcpy(header, bad.to_server.bytes, sizeof(header));
	fc_wire_buffer_drop(&bad.to_server, bad.to_server.used);
	header[4] = FC_WIRE_MATCH;
	header[11] = 1; /* 16 MiB: the protocol would allow it */
	peer_send_bytes(&bad, header, sizeof(header));
	peer_expect_end(&bad, FC_SERVER_HELD_LIMIT);
	struct fc_key *keys = calloc(101, sizeof(*keys));
	peer_open(&bad, &scene.world, "bad");
	(void)peer_put_match(&bad, keys, 101, true);
	peer_send(&bad);
	peer_expect_end(&bad, FC_SERVER_HELD_LIMIT);
	free(keys);
	close_scene(&scene);
}

static void who_says_nothing_is_sent_away(void **state)
{
	(void)state;
	struct scene scene;
	struct peer silent;
	open_scene(&scene);
	peer_connect(&silent, &scene.world);
	scene.world.core.now_ns += scene.world.opts.limits.hello_timeout_ns - 1;
	server_world_settle(&scene.world);
	assert_false(silent.wants_close);
	assert_int_equal(fc_server_wake_ns(scene.world.server), scene.world.core.now_ns + 1);
	scene.world.core.now_ns++;
	server_world_settle(&scene.world);
	peer_expect_end(&silent, FC_SERVER_PROTOCOL_ERROR);
	close_scene(&scene);
}

/* ---- order ---- */

static void what_comes_out_of_turn_ends_the_connection(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_wire_welcome welcome = {.version = 1, .requests_max = 1, .area_bytes_max = 1};
	open_scene(&scene);
	for (int way = 0; way < 3; way++) {
		peer_connect(&bad, &scene.world);
		if (way == 0) {
			(void)peer_put_match(&bad, scene.keys, 8, true);
		} else {
			peer_hello(&bad, "bad");
			peer_put_hello(&bad, "good");
			if (way == 2) {
				fc_wire_buffer_drop(&bad.to_server, bad.to_server.used);
				assert_int_equal(fc_wire_put_welcome(&bad.to_server, &welcome), 0);
			}
		}
		peer_send(&bad);
		peer_expect_end(&bad, FC_SERVER_PROTOCOL_ERROR);
	}
	close_scene(&scene);
}

static void a_number_is_used_once(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	open_scene(&scene);
	for (int way = 0; way < 2; way++) {
		peer_open(&bad, &scene.world, "bad");
		bad.next_request = 10;
		assert_int_equal(peer_match(&bad, scene.keys, 8, true, NULL), 0);
		bad.next_request = way == 0 ? 10 : 4; /* again, or going back */
		(void)peer_put_match(&bad, scene.keys, 8, true);
		peer_send(&bad);
		peer_expect_end(&bad, FC_SERVER_PROTOCOL_ERROR);
	}
	close_scene(&scene);
}

static void what_was_never_asked_for_cannot_be_named(void **state)
{
	(void)state;
	static const enum fc_wire_type types[] = {FC_WIRE_RELEASE, FC_WIRE_FORGET, FC_WIRE_COMMIT, FC_WIRE_ABORT};
	struct scene scene;
	struct peer bad;
	open_scene(&scene);
	for (size_t i = 0; i < fc_array_len(types); i++) {
		peer_open(&bad, &scene.world, "bad");
		peer_send_plain(&bad, types[i], scene.lease); /* another's number is nothing here */
		peer_expect_end(&bad, FC_SERVER_PROTOCOL_ERROR);
	}
	close_scene(&scene);
}

static void requests_are_what_they_were_made_as(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_key keys[4];
	path_keys(5, 0, keys, 4);
	open_scene(&scene);
	for (int way = 0; way < 4; way++) {
		peer_open(&bad, &scene.world, "good");
		(void)peer_put_match(&bad, scene.keys, 8, true);
		(void)peer_put_reserve(&bad, 2, 0, keys, 4);
		peer_send(&bad);
		static const struct {
			enum fc_wire_type type;
			uint64_t request;
		} lies[] = {{FC_WIRE_COMMIT, 1}, {FC_WIRE_ABORT, 1}, {FC_WIRE_RELEASE, 2}, {FC_WIRE_COMMIT, 3}};
		peer_send_plain(&bad, lies[way].type, lies[way].request);
		peer_expect_end(&bad, FC_SERVER_PROTOCOL_ERROR);
	}
	close_scene(&scene);
}

static void a_commit_is_possible_once(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_key keys[4];
	path_keys(5, 0, keys, 4);
	open_scene(&scene);
	peer_open(&bad, &scene.world, "bad");
	uint64_t request = peer_put_reserve(&bad, 2, 0, keys, 4);
	assert_int_equal(fc_wire_put_plain(&bad.to_server, FC_WIRE_COMMIT, request), 0);
	assert_int_equal(fc_wire_put_plain(&bad.to_server, FC_WIRE_COMMIT, request), 0);
	peer_send(&bad);
	peer_expect_end(&bad, FC_SERVER_PROTOCOL_ERROR);
	assert_int_equal(server_world_totals(&scene.world).counters.commits, 2);
	close_scene(&scene);
}

/* ---- keeping ---- */

static void a_lease_that_is_never_released_ends_with_its_connection(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	open_scene(&scene);
	scene.world.core.now_ns += 5 * SECOND_NS;
	peer_send_plain(&scene.good, FC_WIRE_RELEASE, scene.lease);
	peer_open(&bad, &scene.world, "good");
	uint64_t request;
	assert_int_equal(peer_match(&bad, scene.keys, 8, true, &request), 8);
	scene.world.core.now_ns += SECOND_NS;
	assert_int_equal(peer_match(&scene.good, scene.keys, 8, true, &scene.lease), 8);
	scene.world.core.now_ns += scene.world.opts.limits.lease_timeout_ns - SECOND_NS;
	server_world_settle(&scene.world);
	peer_expect_end(&bad, FC_SERVER_LEASE_TIMEOUT);
	close_scene(&scene);
}

static void what_one_client_may_hold_is_bounded(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_key keys[4];
	server_world_init(&scene.world, geometry_plain(100), 8, 64);
	scene.world.opts.limits.requests_max = 3;
	begin(&scene);
	peer_open(&bad, &scene.world, "good");
	for (int i = 0; i < 4; i++)
		(void)peer_put_match(&bad, scene.keys, 8, true);
	peer_send(&bad);
	peer_expect_end(&bad, FC_SERVER_HELD_LIMIT);
	peer_open(&bad, &scene.world, "good");
	for (int i = 0; i < 4; i++) {
		path_keys(20 + (uint64_t)i, 0, keys, 4);
		(void)peer_put_reserve(&bad, 20 + (uint64_t)i, 0, keys, 4);
	}
	peer_send(&bad);
	peer_expect_end(&bad, FC_SERVER_HELD_LIMIT);
	close_scene(&scene);
}

static void reserved_bytes_are_bounded_and_the_client_is_told(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_key keys[4], more[4];
	path_keys(5, 0, keys, 4);
	path_keys(6, 0, more, 4);
	server_world_init(&scene.world, geometry_plain(100), 8, 32);
	scene.world.opts.limits.reserved_bytes_max = 20000; /* one segment of 8 blocks, or of 4, but not two */
	begin(&scene);
	peer_open(&bad, &scene.world, "bad");
	uint64_t first = peer_put_reserve(&bad, 2, 0, keys, 4);
	peer_send(&bad);
	assert_int_equal(peer_expect_reserved(&bad, first, &reservation, &why), 0);
	peer_forget_reservation(&bad, &reservation);
	uint64_t held = server_world_totals(&scene.world).held.reserved_bytes;
	assert_true(held > 4 * 1700 && 2 * held > 15000);
	scene.world.opts.limits.reserved_bytes_max = 0; /* the server has its own copy */
	for (int i = 0; i < 3; i++) {
		uint64_t second = peer_put_reserve(&bad, 3, 0, more, 4);
		peer_send(&bad);
		int code = peer_expect_reserved(&bad, second, &reservation, &why);
		peer_forget_reservation(&bad, &reservation);
		if (code == FC_OK)
			continue;
		assert_int_equal(code, FC_ELIMIT);
		assert_non_null(strstr(why.text, "reserved_bytes_max"));
		assert_true(server_world_totals(&scene.world).held.reserved_bytes <= 20000);
		peer_close(&bad);
		close_scene(&scene);
		return;
	}
	fail_msg("nothing was refused");
}

/* Reserves in one session after the other until it is refused; returns how many were granted. */
static uint64_t reserve_all(struct peer *peer, uint64_t first_session, struct fc_error *why)
{
	for (uint64_t count = 0; count < 100; count++) {
		struct fc_reservation reservation;
		struct fc_key keys[4];
		path_keys(first_session + count, 0, keys, 4);
		uint64_t request = peer_put_reserve(peer, first_session + count, 0, keys, 4);
		peer_send(peer);
		while (fc_server_output(peer->client)->used == 0)
			(void)server_world_step(peer->world);
		why->code = peer_expect_reserved(peer, request, &reservation, why);
		peer_forget_reservation(peer, &reservation);
		if (why->code != FC_OK)
			return count;
	}
	fail_msg("nothing is refused");
	return 0;
}

static void a_process_has_its_share_of_an_arena_in_however_many_connections(void **state)
{
	(void)state;
	struct scene scene;
	struct peer one, two, other;
	struct fc_error why = {0};
	server_world_init(&scene.world, geometry_plain(100), 0, 64);
	scene.world.opts.limits.reserved_share = 0.3;
	begin(&scene);
	scene.world.pid = 200;
	peer_open(&one, &scene.world, "bad");
	peer_open(&two, &scene.world, "bad");
	uint64_t granted = reserve_all(&one, 1000, &why);
	assert_int_equal(why.code, FC_ELIMIT);
	assert_non_null(strstr(why.text, "process 200"));
	assert_non_null(strstr(why.text, "reserved_share"));
	assert_true(granted > 1);
	assert_int_equal(reserve_all(&two, 2000, &why), 0);
	assert_int_equal(why.code, FC_ELIMIT);
	uint64_t arena_bytes = scene.world.opts.media[FC_SSD]->bytes;
	uint64_t held = server_world_totals(&scene.world).held.reserved_bytes;
	assert_true((double)held <= 0.3 * (double)arena_bytes && (double)held > 0.2 * (double)arena_bytes);
	/* The next process has a share of its own, also with what the first leaves behind. */
	peer_vanish(&one);
	scene.world.pid = 201;
	peer_open(&other, &scene.world, "other");
	assert_int_equal(reserve_all(&other, 3000, &why), granted);
	peer_unlock(&one);
	assert_int_equal(reserve_all(&two, 4000, &why), granted);
	peer_close(&two);
	peer_close(&other);
	close_scene(&scene);
}

static void one_save_may_be_larger_than_a_share_and_leaves_one(void **state)
{
	(void)state;
	struct scene scene;
	struct peer one, other;
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_key keys[32];
	path_keys(5, 0, keys, 32);
	server_world_init(&scene.world, geometry_plain(100), 0, 64);
	scene.world.opts.limits.reserved_share = 0.1;
	begin(&scene);
	scene.world.pid = 200;
	peer_open(&one, &scene.world, "one");
	uint64_t request = peer_put_reserve(&one, 5, 0, keys, 32);
	peer_send(&one);
	assert_int_equal(peer_expect_reserved(&one, request, &reservation, &why), 0);
	peer_forget_reservation(&one, &reservation);
	assert_true(server_world_totals(&scene.world).held.reserved_bytes > scene.world.opts.media[FC_SSD]->bytes / 10);
	assert_int_equal(reserve_all(&one, 1000, &why), 0); /* nothing on top of it */
	scene.world.pid = 201;
	peer_open(&other, &scene.world, "other");
	assert_true(reserve_all(&other, 2000, &why) > 0);
	peer_close(&one);
	peer_close(&other);
	close_scene(&scene);
}

static void a_full_arena_names_who_has_it_reserved(void **state)
{
	(void)state;
	struct scene scene;
	struct peer holder, other;
	struct fc_error why = {0};
	server_world_init(&scene.world, geometry_plain(100), 0, 32);
	scene.world.opts.limits.reserved_share = 1;
	begin(&scene);
	scene.world.pid = 200;
	peer_open(&holder, &scene.world, "greedy");
	assert_true(reserve_all(&holder, 1000, &why) > 1);
	assert_int_equal(why.code, FC_EFULL);
	assert_null(strstr(why.text, "process")); /* nobody else is in its way */
	scene.world.core.now_ns += 7000000000ull;
	scene.world.pid = 201;
	peer_open(&other, &scene.world, "other");
	assert_int_equal(reserve_all(&other, 2000, &why), 0);
	assert_int_equal(why.code, FC_EFULL);
	assert_non_null(
		strstr(why.text, "reserved by process 200 (\"test\", namespace \"greedy\"), the oldest for 7 s"));
	peer_close(&holder);
	peer_close(&other);
	close_scene(&scene);
}

static void an_old_reservation_is_told_of_once(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_error why = {0};
	server_world_init(&scene.world, geometry_plain(100), 0, 64);
	scene.world.opts.limits.reserved_old_ns = 10000000000ull;
	begin(&scene);
	assert_int_equal(server_world_totals(&scene.world).oldest_reservation_ns, 0);
	peer_open(&bad, &scene.world, "bad");
	uint64_t since_ns = scene.world.core.now_ns;
	assert_true(reserve_all(&bad, 1000, &why) > 1);
	assert_int_equal(server_world_totals(&scene.world).oldest_reservation_ns, since_ns);
	server_world_settle(&scene.world);
	assert_int_equal(scene.world.events[FC_SERVER_RESERVATION_OLD], 0);
	assert_true(fc_server_wake_ns(scene.world.server) <= since_ns + 10000000000ull);
	scene.world.core.now_ns = since_ns + 10000000000ull;
	server_world_settle(&scene.world);
	assert_int_equal(scene.world.events[FC_SERVER_RESERVATION_OLD], 1);
	assert_non_null(strstr(scene.world.last_text, "process 100 (\"test\", namespace \"bad\") has reserved"));
	assert_int_equal(server_world_totals(&scene.world).oldest_reservation_ns, since_ns);
	peer_close(&bad);
	close_scene(&scene);
}

static void who_does_not_read_is_not_written_to_for_ever(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	server_world_init(&scene.world, geometry_plain(100), 8, 32);
	scene.world.opts.limits.unsent_bytes_max = 10000;
	begin(&scene);
	peer_open(&bad, &scene.world, "bad");
	for (int i = 0; i < 1000 && !bad.wants_close; i++)
		peer_send_plain(&bad, FC_WIRE_STATS, ++bad.next_request);
	assert_true(fc_server_output(bad.client)->used < 11000);
	peer_expect_end(&bad, FC_SERVER_UNSENT_LIMIT);
	close_scene(&scene);
}

static void memory_of_requests_is_bounded(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	struct fc_key *keys = calloc(4000, sizeof(*keys));
	path_keys(9, 0, keys, 4000);
	server_world_init(&scene.world, geometry_plain(100), 8, 32);
	scene.world.opts.limits.memory_bytes_max = 100000;
	scene.world.opts.is_fenced = true; /* so that reserves wait, with their keys */
	path_keys(1, 0, scene.keys, 8);
	server_world_open(&scene.world);
	peer_open(&bad, &scene.world, "bad");
	for (int i = 0; i < 2; i++)
		(void)peer_put_reserve(&bad, 2, 0, keys, 4000); /* 64 kB of keys each */
	peer_send(&bad);
	peer_expect_end(&bad, FC_SERVER_HELD_LIMIT);
	assert_int_equal(server_world_totals(&scene.world).held.claims_waiting, 0);
	free(keys);
	server_world_deinit(&scene.world);
}

static void connections_are_bounded_gone_ones_included(void **state)
{
	(void)state;
	struct scene scene;
	struct peer peers[3], one_more;
	struct fc_error error = {0};
	server_world_init(&scene.world, geometry_plain(100), 8, 32);
	scene.world.opts.limits.clients_max = 4;
	begin(&scene);
	for (int i = 0; i < 3; i++)
		peer_open(&peers[i], &scene.world, "n");
	peer_vanish(&peers[0]); /* its lock is still held */
	assert_int_equal(peer_try_connect(&one_more, &scene.world, &error), FC_ELIMIT);
	assert_non_null(strstr(error.text, "1 of them are gone"));
	assert_int_equal(scene.world.events[FC_SERVER_CLIENT_LIMIT], 1);
	peer_unlock(&peers[0]);
	peer_open(&one_more, &scene.world, "n");
	peer_close(&one_more);
	peer_close(&peers[1]);
	peer_close(&peers[2]);
	close_scene(&scene);
}

static void namespaces_that_nobody_uses_make_room(void **state)
{
	(void)state;
	struct scene scene;
	struct peer bad;
	uint64_t refused = 0;
	open_scene(&scene);
	for (int i = 0; i < 3000; i++) {
		char name[32];
		struct fc_wire_header header;
		snprintf(name, sizeof(name), "name %d", i);
		peer_connect(&bad, &scene.world);
		peer_put_hello(&bad, name);
		peer_send(&bad);
		/* Of 1000 names some share one of 65535 tags: the later one is refused by name. */
		if (bad.wants_close)
			refused++;
		else
			(void)peer_expect(&bad, FC_WIRE_WELCOME, &header);
		peer_close(&bad);
	}
	assert_true(refused < 200);
	assert_int_equal(scene.world.events[FC_SERVER_REFUSED_NAMESPACE], refused);
	close_scene(&scene);
}

/* ---- memory ---- */

/* Every allocation fails once: somebody may lose a connection, nothing is lost. */
static void want_of_memory_costs_a_connection_at_most(void **state)
{
	(void)state;
	struct scene scene;
	open_scene(&scene);
	struct tracked_alloc *tracked = &scene.world.core.world.tracked;
	bool is_through = false;
	for (uint64_t k = 1; !is_through; k++) {
		struct peer peer;
		assert_true(k < 1000);
		if (peer_try_connect(&peer, &scene.world, NULL) != FC_OK)
			continue;
		peer_put_hello(&peer, "good");
		put_everything(&peer, scene.keys);
		tracked->fail_at = tracked->call_count + k;
		peer_send_bytes(&peer, peer.to_server.bytes, peer.to_server.used);
		server_world_settle(&scene.world);
		is_through = tracked->call_count < tracked->fail_at;
		tracked->fail_at = 0;
		peer_close(&peer);
		server_world_settle(&scene.world);
		assert_int_equal(server_world_totals(&scene.world).held.leases, 1);
		assert_int_equal(server_world_totals(&scene.world).held.claims_reserved, 0);
	}
	close_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_ends_the_connection_at_once),
		cmocka_unit_test(messages_may_come_byte_by_byte),
		cmocka_unit_test(every_flipped_bit_is_survived),
		cmocka_unit_test(a_body_that_is_too_long_is_not_waited_for),
		cmocka_unit_test(who_says_nothing_is_sent_away),
		cmocka_unit_test(what_comes_out_of_turn_ends_the_connection),
		cmocka_unit_test(a_number_is_used_once),
		cmocka_unit_test(what_was_never_asked_for_cannot_be_named),
		cmocka_unit_test(requests_are_what_they_were_made_as),
		cmocka_unit_test(a_commit_is_possible_once),
		cmocka_unit_test(a_lease_that_is_never_released_ends_with_its_connection),
		cmocka_unit_test(what_one_client_may_hold_is_bounded),
		cmocka_unit_test(reserved_bytes_are_bounded_and_the_client_is_told),
		cmocka_unit_test(a_process_has_its_share_of_an_arena_in_however_many_connections),
		cmocka_unit_test(one_save_may_be_larger_than_a_share_and_leaves_one),
		cmocka_unit_test(a_full_arena_names_who_has_it_reserved),
		cmocka_unit_test(an_old_reservation_is_told_of_once),
		cmocka_unit_test(who_does_not_read_is_not_written_to_for_ever),
		cmocka_unit_test(memory_of_requests_is_bounded),
		cmocka_unit_test(connections_are_bounded_gone_ones_included),
		cmocka_unit_test(namespaces_that_nobody_uses_make_room),
		cmocka_unit_test(want_of_memory_costs_a_connection_at_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

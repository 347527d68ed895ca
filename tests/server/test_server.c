/* The server, told as stories: what a client gets, what it holds, and how that ends, whatever crosses on the wire. */
#include "server/server_world.h"

static uint64_t ssd_bytes_used(struct server_world *world)
{
	return core_world_stats(&world->core).media[FC_SSD].bytes_used;
}

static void open_plain(struct server_world *world)
{
	server_world_init(world, geometry_plain(100), 8, 32);
	server_world_open(world);
}

/* ---- hello ---- */

static void a_client_is_told_what_the_arenas_are(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	open_plain(&world);
	peer_open(&peer, &world, "");
	assert_int_equal(peer.welcome.version, 1);
	assert_int_equal(peer.welcome.client, 1);
	assert_int_equal(peer.welcome.instance.high, 1);
	assert_int_equal(peer.welcome.area_bytes_max, fc_core_area_bytes_max(world.core.core));
	assert_int_equal(peer.welcome.requests_max, world.opts.limits.requests_max);
	assert_true(peer.welcome.arenas[FC_MEMORY].is_there && peer.welcome.arenas[FC_SSD].is_there);
	assert_false(peer.welcome.arenas[FC_MEMORY].is_durable);
	assert_true(peer.welcome.arenas[FC_SSD].is_durable);
	assert_int_equal(peer.welcome.arenas[FC_SSD].bytes, world.core.world.media[FC_SSD]->media.bytes);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void expect_refused(struct peer *peer, int code, bool is_final, const char *words)
{
	struct fc_wire_header header;
	struct fc_wire_refused refused;
	peer_send(peer);
	const uint8_t *body = peer_expect(peer, FC_WIRE_REFUSED, &header);
	assert_int_equal(fc_wire_get_refused(&refused, body, header.body_bytes, NULL), 0);
	assert_int_equal(refused.error.code, code);
	assert_int_equal(refused.is_final, is_final);
	if (strstr(refused.error.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", refused.error.text, words);
	assert_true(peer->wants_close);
	assert_false(fc_server_client_is_welcome(peer->client));
	peer_close(peer);
}

static void another_model_is_refused_by_the_field_that_differs(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	open_plain(&world);
	peer_connect(&peer, &world);
	struct fc_wire_hello hello = {.version_min = 1, .version_max = 1, .geometry = world.core.world.geometry};
	hello.geometry.groups[0].slice_bytes[1]++;
	assert_int_equal(fc_wire_put_hello(&peer.to_server, &hello), 0);
	expect_refused(&peer, FC_EGEOMETRY, true, "geometry plain: group 0 layer 1");
	assert_int_equal(world.events[FC_SERVER_REFUSED_GEOMETRY], 1);
	hello.geometry.groups[0].slice_bytes[1]--;
	strcpy(hello.geometry.name, "plain-fp8");
	peer_connect(&peer, &world);
	assert_int_equal(fc_wire_put_hello(&peer.to_server, &hello), 0);
	expect_refused(&peer, FC_EGEOMETRY, true, "wanted plain-fp8");
	assert_int_equal(world.events[FC_SERVER_REFUSED_GEOMETRY], 2);
	server_world_deinit(&world);
}

static void a_version_that_nobody_speaks_is_refused(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	open_plain(&world);
	peer_connect(&peer, &world);
	struct fc_wire_hello hello = {.version_min = 7, .version_max = 9, .geometry = world.core.world.geometry};
	assert_int_equal(fc_wire_put_hello(&peer.to_server, &hello), 0);
	expect_refused(&peer, FC_EINVAL, true, "7 to 9");
	server_world_deinit(&world);
}

static void a_configured_namespace_is_for_its_users_alone(void **state)
{
	(void)state;
	static const uint32_t uids[] = {1000}, others[] = {5, 6}, gids[] = {2000}, further[] = {7, 3001};
	static const struct fc_server_namespace_opts namespaces[] = {
		{.name = "mine", .uids = uids, .uid_count = 1},
		{.name = "theirs", .uids = others, .uid_count = 2},
		{.name = "ours", .uids = others, .uid_count = 2, .gids = gids, .gid_count = 1},
		{.name = "also ours", .gids = further, .gid_count = 2},
		{.name = "of others", .gids = others, .gid_count = 2},
		{.name = "default"},
	};
	struct server_world world;
	struct peer peer;
	server_world_init(&world, geometry_plain(100), 8, 32);
	world.opts.namespaces = namespaces;
	world.opts.namespace_count = 6;
	server_world_open(&world);
	peer_open(&peer, &world, "mine");
	peer_close(&peer);
	peer_open(&peer, &world, "also ours");
	peer_close(&peer);
	peer_open(&peer, &world, "ours");
	peer_close(&peer);
	peer_open(&peer, &world, "");
	peer_close(&peer);
	peer_connect(&peer, &world);
	peer_put_hello(&peer, "theirs");
	expect_refused(&peer, FC_EINVAL, true, "user 1000");
	peer_connect(&peer, &world);
	peer_put_hello(&peer, "unheard of");
	expect_refused(&peer, FC_EINVAL, true, "unheard of");
	assert_int_equal(world.events[FC_SERVER_REFUSED_NAMESPACE], 2);
	server_world_deinit(&world);
}

static void a_namespace_given_twice_is_no_setting(void **state)
{
	(void)state;
	static const struct fc_server_namespace_opts twice[] = {{.name = "a"}, {.name = "b"}, {.name = "a"}};
	struct server_world world;
	struct fc_error error = {0};
	server_world_init(&world, geometry_plain(100), 8, 32);
	world.opts.namespaces = twice;
	world.opts.namespace_count = 3;
	assert_int_equal(core_world_open(&world.core), 0);
	assert_int_equal(server_world_start(&world, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "\"a\" is given twice"));
	world.opts.namespace_count = 0;
	world.opts.limits.keys_max = 0;
	assert_int_equal(server_world_start(&world, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "keys_max 0"));
	core_world_deinit(&world.core);
}

static void with_an_empty_list_nobody_is_let_in(void **state)
{
	(void)state;
	static const char *const names[] = {"", "default", "mine"};
	struct server_world world;
	struct peer peer;
	server_world_init(&world, geometry_plain(100), 8, 32);
	world.opts.is_closed = true;
	server_world_open(&world);
	for (size_t i = 0; i < fc_array_len(names); i++) {
		peer_connect(&peer, &world);
		peer_put_hello(&peer, names[i]);
		expect_refused(&peer, FC_EINVAL, true, "knows none of this name");
	}
	server_world_deinit(&world);
}

static void namespaces_do_not_see_each_other(void **state)
{
	(void)state;
	struct server_world world;
	struct peer red, blue;
	struct fc_key keys[6];
	path_keys(1, 0, keys, 6);
	open_plain(&world);
	peer_open(&red, &world, "red");
	peer_open(&blue, &world, "blue");
	assert_true(red.welcome.key_salt.high != blue.welcome.key_salt.high);
	peer_save(&red, 5, 0, keys, 6);
	assert_int_equal(peer_match(&red, keys, 6, false, NULL), 6);
	assert_int_equal(peer_match(&blue, keys, 6, false, NULL), 0);
	/* The same session of both is two sessions. */
	peer_save(&blue, 5, 0, keys, 4);
	assert_int_equal(peer_match(&blue, keys, 6, false, NULL), 4);
	struct fc_stats stats = core_world_stats(&world.core);
	assert_int_equal(stats.media[FC_SSD].sessions, 2);
	assert_int_equal(stats.blocks, 10);
	peer_close(&red);
	peer_close(&blue);
	server_world_deinit(&world);
}

static struct fc_stats ask_stats(struct peer *peer)
{
	struct fc_wire_header header;
	struct fc_stats stats;
	peer_send_plain(peer, FC_WIRE_STATS, ++peer->next_request);
	const uint8_t *body = peer_expect(peer, FC_WIRE_STATED, &header);
	assert_int_equal(fc_wire_get_stated(&stats, body, header.body_bytes, NULL), 0);
	peer_take(peer, &header);
	return stats;
}

static void report_work(struct peer *peer, uint64_t loads, uint64_t saves)
{
	struct fc_wire_report report = {.loads = loads, .saves = saves, .io_errors = 1, .loads_active = 1};
	assert_int_equal(fc_wire_put_report(&peer->to_server, &report), 0);
	peer_send(peer);
}

/* One that has the namespaces of its settings, each of them counted. */
static void open_with_red_and_blue(struct server_world *world)
{
	static const struct fc_server_namespace_opts namespaces[] = {{.name = "red"}, {.name = "blue"}};
	static struct fc_owner owners[] = {{.name = "red"}, {.name = "blue"}};
	for (int i = 0; i < 2; i++)
		owners[i].tag = fc_server_namespace_tag(owners[i].name);
	server_world_init(world, geometry_plain(100), 8, 32);
	world->core.opts.catalog.owners = owners;
	world->core.opts.catalog.owner_count = 2;
	world->opts.namespaces = namespaces;
	world->opts.namespace_count = 2;
	server_world_open(world);
}

/* Whoever may take any name is told the whole: statistics_and_sessions_are_answered(). */
static void a_configured_namespace_is_told_what_is_its_own(void **state)
{
	(void)state;
	struct server_world world;
	struct peer red, blue;
	struct fc_key keys[6];
	path_keys(1, 0, keys, 6);
	open_with_red_and_blue(&world);
	peer_open(&red, &world, "red");
	peer_open(&blue, &world, "blue");
	peer_save(&red, 5, 0, keys, 6);
	peer_save(&red, 6, 0, keys, 6);
	peer_save(&blue, 5, 0, keys, 4);
	struct fc_stats all = core_world_stats(&world.core), reds = ask_stats(&red), blues = ask_stats(&blue);
	const struct fc_medium_stats *of_all = &all.media[FC_SSD], *of_blue = &blues.media[FC_SSD];
	assert_int_equal(of_blue->bytes, of_all->bytes);
	assert_int_equal(of_blue->sessions, 1);
	assert_int_equal(of_blue->blocks, 4);
	assert_int_equal(of_blue->segments, 1);
	assert_int_equal(of_blue->extents, 1);
	assert_int_equal(blues.blocks, 4);
	assert_int_equal(reds.blocks, 6);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_medium_stats *one = &reds.media[medium], *other = &blues.media[medium];
		assert_int_equal(one->bytes_used + other->bytes_used, all.media[medium].bytes_used);
		assert_int_equal(one->bytes_stored + other->bytes_stored, all.media[medium].bytes_stored);
		assert_int_equal(one->segments + other->segments, all.media[medium].segments);
		assert_int_equal(one->sessions + other->sessions, all.media[medium].sessions);
		assert_int_equal(other->bytes_written, 0);
	}
	assert_int_equal(blues.index_bytes, 0);
	report_work(&red, 50, 20);
	report_work(&blue, 3, 1);
	reds = ask_stats(&red), blues = ask_stats(&blue);
	assert_int_equal(reds.loads, 50);
	assert_int_equal(reds.saves, 20);
	assert_int_equal(blues.loads, 3);
	assert_int_equal(blues.saves, 1);
	assert_int_equal(blues.loads_active, 1);
	assert_int_equal(blues.io_errors, 1);
	peer_close(&red);
	peer_close(&blue);
	server_world_deinit(&world);
}

static void a_session_is_known_by_the_name_that_either_side_gave_it(void **state)
{
	(void)state;
	struct fc_session_id given = {0x1234567890abcdefull, 99};
	struct fc_session_id stored = fc_server_session_id("red", given);
	assert_int_equal(stored.high >> 48, fc_server_namespace_tag("red"));
	struct fc_session_id again = fc_server_session_id("red", stored);
	assert_true(again.high == stored.high && again.low == stored.low);
	struct fc_session_id other = fc_server_session_id("blue", given);
	assert_int_equal(other.high >> 48, fc_server_namespace_tag("blue"));
	assert_true(other.low != stored.low);
	struct fc_session_id foreign = fc_server_session_id("blue", stored);
	assert_int_equal(foreign.high >> 48, fc_server_namespace_tag("blue"));
	struct fc_session_id inferred = fc_server_session_id("red", (struct fc_session_id){0, 0});
	assert_true(inferred.high == 0 && inferred.low == 0);
}

/* ---- saving and matching ---- */

static void what_a_client_saved_is_there_byte_by_byte(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key keys[8], stored[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_save(&peer, 1, 0, keys, 8);
	for (int i = 0; i < 8; i++)
		stored[i] = (struct fc_key){keys[i].high ^ peer.welcome.key_salt.high,
					    keys[i].low ^ peer.welcome.key_salt.low};
	assert_int_equal(core_world_load(&world.core, stored, 8).blocks, 8);
	assert_int_equal(core_world_load(&world.core, keys, 8).blocks, 0);
	struct fc_server_totals totals = server_world_totals(&world);
	assert_int_equal(totals.counters.reserves, 1);
	assert_int_equal(totals.counters.commits, 1);
	assert_int_equal(totals.counters.blocks_new, 8);
	assert_int_equal(totals.counters.bytes_new, 8 * 1700);
	assert_int_equal(totals.held.reserved_bytes, 0);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void a_lease_lasts_until_it_is_released(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key keys[8];
	uint64_t request;
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_save(&peer, 1, 0, keys, 8);
	assert_int_equal(peer_match(&peer, keys, 8, true, &request), 8);
	assert_int_equal(core_world_stats(&world.core).leases, 1);
	peer_send_plain(&peer, FC_WIRE_RELEASE, request);
	assert_int_equal(core_world_stats(&world.core).leases, 0);
	peer_send_plain(&peer, FC_WIRE_RELEASE, request); /* as a client that does not know what it holds may do */
	assert_false(peer.wants_close);
	assert_int_equal(peer_match(&peer, keys, 8, false, &request), 8);
	assert_int_equal(core_world_stats(&world.core).leases, 0);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void a_match_of_nothing_holds_nothing(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	assert_int_equal(peer_match(&peer, keys, 8, true, NULL), 0);
	assert_int_equal(peer_match(&peer, keys, 0, true, NULL), 0);
	assert_int_equal(core_world_stats(&world.core).leases, 0);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void a_turn_without_its_blocks_is_refused_with_the_reason(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_key keys[4];
	path_keys(1, 0, keys, 4);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	struct fc_wire_reserve reserve = {.turn = {.session = {0, 1}, .keys = keys, .key_count = 4}};
	assert_int_equal(fc_wire_put_reserve(&peer.to_server, 1, &reserve), 0);
	peer_send(&peer);
	assert_int_equal(peer_expect_reserved(&peer, 1, &reservation, &why), FC_EINVAL);
	assert_non_null(strstr(why.text, "path block 0 is new"));
	peer_forget_reservation(&peer, &reservation);
	assert_int_equal(server_world_totals(&world).counters.reserves_refused, 1);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void statistics_and_sessions_are_answered(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer, other;
	struct fc_wire_header header;
	struct fc_key keys[8];
	int code;
	uint64_t blocks;
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_save(&peer, 7, 0, keys, 8);
	assert_int_equal(ask_stats(&peer).blocks, 8);
	peer_open(&other, &world, "m");
	report_work(&peer, 5, 1);
	report_work(&other, 2, 0);
	struct fc_stats stats = ask_stats(&other);
	assert_int_equal(stats.blocks, 8);
	assert_int_equal(stats.loads, 7);
	assert_int_equal(stats.saves, 1);
	peer_close(&other);
	assert_int_equal(fc_wire_put_session(&peer.to_server, 11, (struct fc_session_id){0, 7}), 0);
	assert_int_equal(fc_wire_put_session(&peer.to_server, 12, (struct fc_session_id){0, 8}), 0);
	peer_send(&peer);
	const uint8_t *body = peer_expect(&peer, FC_WIRE_SESSION_FOUND, &header);
	assert_int_equal(header.request, 11);
	assert_int_equal(fc_wire_get_session_found(&code, &blocks, body, header.body_bytes, NULL), 0);
	assert_int_equal(code, 0);
	assert_int_equal(blocks, 8);
	peer_take(&peer, &header);
	body = peer_expect(&peer, FC_WIRE_SESSION_FOUND, &header);
	assert_int_equal(fc_wire_get_session_found(&code, &blocks, body, header.body_bytes, NULL), 0);
	assert_int_equal(code, FC_ENOENT);
	peer_take(&peer, &header);
	peer_close(&peer);
	server_world_deinit(&world);
}

/* ---- room ---- */

/* An SSD arena for one session of 8 blocks and no more. */
static void open_narrow(struct server_world *world)
{
	server_world_init(world, geometry_plain(100), 0, 5);
	server_world_open(world);
}

static void a_reserve_waits_for_room_and_is_answered_in_time(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_key first[8], second[8];
	path_keys(1, 0, first, 8);
	path_keys(2, 0, second, 8);
	open_narrow(&world);
	peer_open(&peer, &world, "n");
	peer_save(&peer, 1, 0, first, 8);
	uint64_t request = peer_put_reserve(&peer, 2, 0, second, 8);
	peer_send(&peer);
	peer_expect_nothing(&peer);
	assert_int_equal(server_world_totals(&world).held.claims_waiting, 1);
	server_world_settle(&world);
	assert_int_equal(peer_expect_reserved(&peer, request, &reservation, &why), 0);
	peer_forget_reservation(&peer, &reservation);
	assert_int_equal(server_world_totals(&world).held.claims_reserved, 1);
	peer_send_plain(&peer, FC_WIRE_ABORT, request);
	assert_int_equal(server_world_totals(&world).held.claims_reserved, 0);
	assert_int_equal(ssd_bytes_used(&world), 0);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void what_was_asked_and_forgotten_is_not_answered(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key first[8], second[8];
	path_keys(1, 0, first, 8);
	path_keys(2, 0, second, 8);
	open_narrow(&world);
	peer_open(&peer, &world, "n");
	for (int way = 0; way < 2; way++) {
		peer_save(&peer, 1, 0, first, 8);
		uint64_t request = peer_put_reserve(&peer, 2, 0, second, 8);
		peer_send(&peer);
		peer_expect_nothing(&peer);
		peer_send_plain(&peer, way == 0 ? FC_WIRE_FORGET : FC_WIRE_ABORT, request);
		server_world_settle(&world);
		peer_expect_nothing(&peer);
		peer_send_plain(&peer, FC_WIRE_FORGET, request);
	}
	assert_false(peer.wants_close);
	assert_int_equal(server_world_totals(&world).held.claims_waiting, 0);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void a_forget_that_crosses_the_answer_takes_back_what_it_gave(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_save(&peer, 1, 0, keys, 4);
	(void)peer_put_match(&peer, keys, 4, true);
	(void)peer_put_reserve(&peer, 1, 1, keys, 8);
	assert_int_equal(fc_wire_put_plain(&peer.to_server, FC_WIRE_FORGET, peer.next_request - 1), 0);
	assert_int_equal(fc_wire_put_plain(&peer.to_server, FC_WIRE_FORGET, peer.next_request), 0);
	peer_send(&peer); /* all in one piece: nothing of it was seen when it was forgotten */
	struct fc_server_totals totals = server_world_totals(&world);
	assert_int_equal(totals.held.leases, 0);
	assert_int_equal(totals.held.claims_reserved, 0);
	assert_int_equal(totals.held.reserved_bytes, 0);
	assert_int_equal(core_world_stats(&world.core).leases, 0);
	assert_false(peer.wants_close);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void who_forgets_a_commit_is_told_nothing_and_it_stays(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_reservation reservation;
	struct fc_wire_header header;
	struct fc_error why = {0};
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	uint64_t request = peer_put_reserve(&peer, 1, 0, keys, 8);
	peer_send(&peer);
	assert_int_equal(peer_expect_reserved(&peer, request, &reservation, &why), 0);
	peer_write(&peer, &reservation, keys);
	peer_forget_reservation(&peer, &reservation);
	peer_send_plain(&peer, FC_WIRE_COMMIT, request);
	(void)peer_expect(&peer, FC_WIRE_COMMITTED, &header);
	peer_take(&peer, &header);
	assert_int_equal(server_world_totals(&world).held.claims_visible, 1);
	peer_send_plain(&peer, FC_WIRE_ABORT, request);
	server_world_settle(&world);
	peer_expect_nothing(&peer);
	assert_int_equal(server_world_totals(&world).held.claims_visible, 0);
	assert_int_equal(peer_match(&peer, keys, 8, false, NULL), 8);
	peer_close(&peer);
	server_world_deinit(&world);
}

/* ---- a client that goes ---- */

static void what_a_gone_client_held_comes_back_in_two_steps(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer, other;
	struct fc_key keys[8], next[8];
	uint64_t lease;
	path_keys(1, 0, keys, 8);
	path_keys(2, 0, next, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_open(&other, &world, "n");
	peer_save(&peer, 1, 0, keys, 8);
	uint64_t used = ssd_bytes_used(&world);
	assert_int_equal(peer_match(&peer, keys, 8, true, &lease), 8);
	(void)peer_put_reserve(&peer, 2, 0, next, 8);
	peer_send(&peer);
	assert_true(ssd_bytes_used(&world) > used);
	peer_vanish(&peer);
	struct fc_server_totals totals = server_world_totals(&world);
	assert_int_equal(totals.held.leases, 0);
	assert_int_equal(totals.held.claims_reserved, 1);
	assert_int_equal(totals.held.claims_orphaned, 1);
	assert_int_equal(totals.clients, 1);
	assert_int_equal(totals.clients_gone, 1);
	server_world_settle(&world);
	assert_int_equal(server_world_totals(&world).held.claims_orphaned, 1);
	peer_unlock(&peer);
	totals = server_world_totals(&world);
	assert_int_equal(totals.held.claims_reserved, 0);
	assert_int_equal(totals.held.claims_orphaned, 0);
	assert_int_equal(totals.held.reserved_bytes, 0);
	assert_int_equal(totals.counters.orphaned, 1);
	assert_int_equal(totals.counters.orphans_freed, 1);
	assert_int_equal(ssd_bytes_used(&world), used);
	assert_int_equal(peer_match(&other, keys, 8, false, NULL), 8);
	peer_close(&other);
	server_world_deinit(&world);
}

static void what_was_committed_becomes_durable_without_its_client(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	uint64_t request = peer_put_reserve(&peer, 1, 0, keys, 8);
	peer_send(&peer);
	assert_int_equal(peer_expect_reserved(&peer, request, &reservation, &why), 0);
	peer_write(&peer, &reservation, keys);
	peer_forget_reservation(&peer, &reservation);
	peer_send_plain(&peer, FC_WIRE_COMMIT, request);
	peer_close(&peer);
	assert_int_equal(server_world_totals(&world).held.claims_visible, 1);
	server_world_settle(&world);
	assert_int_equal(server_world_totals(&world).held.claims_visible, 0);
	peer_open(&peer, &world, "n");
	assert_int_equal(peer_match(&peer, keys, 8, false, NULL), 8);
	peer_close(&peer);
	server_world_deinit(&world);
}

/* The client hears a code, and the daemon's log the reason; also when the client is gone. */
static void what_could_not_be_made_durable_is_told(void **state)
{
	(void)state;
	for (int is_gone = 0; is_gone < 2; is_gone++) {
		struct server_world world;
		struct peer peer;
		struct fc_reservation reservation;
		struct fc_error why = {0};
		struct fc_key keys[8];
		path_keys(1, 0, keys, 8);
		open_plain(&world);
		peer_open(&peer, &world, "n");
		uint64_t request = peer_put_reserve(&peer, 1, 0, keys, 8);
		peer_send(&peer);
		assert_int_equal(peer_expect_reserved(&peer, request, &reservation, &why), 0);
		peer_write(&peer, &reservation, keys);
		peer_forget_reservation(&peer, &reservation);
		struct fake_media *ssd = world.core.world.media[FC_SSD];
		ssd->fail_at = ssd->op_count + 1; /* the sync */
		ssd->fail_count = 1;
		peer_send_plain(&peer, FC_WIRE_COMMIT, request);
		if (is_gone)
			peer_close(&peer);
		server_world_settle(&world);
		assert_int_equal(world.events[FC_SERVER_NOT_DURABLE], 1);
		assert_non_null(strstr(world.last_text, "the test's arena: sync: a fault of the test"));
		if (!is_gone)
			peer_close(&peer);
		server_world_deinit(&world);
	}
}

static void counters_of_a_gone_client_stay_in_the_sums(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer, other;
	struct fc_wire_report report = {.loads = 5, .saves = 2, .bytes_read = 1000, .ready_length = 3};
	report.load_time.counts[4] = 5;
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_open(&other, &world, "m");
	assert_int_equal(fc_wire_put_report(&peer.to_server, &report), 0);
	report.loads = 7;
	report.load_time.counts[4] = 6;
	report.ready_length = 1;
	assert_int_equal(fc_wire_put_report(&peer.to_server, &report), 0);
	peer_send(&peer);
	report = (struct fc_wire_report){.loads = 10, .ready_length = 2};
	assert_int_equal(fc_wire_put_report(&other.to_server, &report), 0);
	peer_send(&other);
	struct fc_server_totals totals = server_world_totals(&world);
	assert_int_equal(totals.report.loads, 17);
	assert_int_equal(totals.report.ready_length, 3);
	assert_int_equal(totals.report.load_time.counts[4], 6);
	peer_close(&peer);
	totals = server_world_totals(&world);
	assert_int_equal(totals.report.loads, 17);
	assert_int_equal(totals.report.ready_length, 2);
	report.loads = 9; /* has fallen */
	assert_int_equal(fc_wire_put_report(&other.to_server, &report), 0);
	peer_send(&other);
	peer_expect_end(&other, FC_SERVER_PROTOCOL_ERROR);
	totals = server_world_totals(&world);
	assert_int_equal(totals.report.loads, 17);
	assert_int_equal(totals.report.ready_length, 0);
	server_world_deinit(&world);
}

/* ---- fence and drain ---- */

static void behind_the_fence_matches_are_answered_and_reserves_wait(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_reservation reservation;
	struct fc_error why = {0};
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	server_world_init(&world, geometry_plain(100), 8, 32);
	world.opts.is_fenced = true;
	server_world_open(&world);
	peer_open(&peer, &world, "n");
	uint64_t first = peer_put_reserve(&peer, 1, 0, keys, 4);
	uint64_t second = peer_put_reserve(&peer, 1, 0, keys, 8);
	uint64_t third = peer_put_reserve(&peer, 1, 0, keys, 8);
	peer_send(&peer);
	server_world_settle(&world);
	peer_expect_nothing(&peer);
	assert_int_equal(peer_match(&peer, keys, 8, true, NULL), 0);
	peer_send_plain(&peer, FC_WIRE_FORGET, third);
	fc_server_fence_is_over(world.server);
	fc_server_fence_is_over(world.server);
	assert_int_equal(world.events[FC_SERVER_FENCE_OVER], 1);
	assert_int_equal(peer_expect_reserved(&peer, first, &reservation, &why), 0);
	peer_forget_reservation(&peer, &reservation);
	assert_int_equal(peer_expect_reserved(&peer, second, &reservation, &why), 0);
	peer_forget_reservation(&peer, &reservation);
	peer_expect_nothing(&peer);
	peer_close(&peer);
	server_world_deinit(&world);
}

static void a_stop_lets_reservations_commit_and_begins_nothing(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer, late;
	struct fc_reservation reservation;
	struct fc_wire_header header;
	struct fc_error why = {0};
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_connect(&late, &world);
	uint64_t request = peer_put_reserve(&peer, 1, 0, keys, 8);
	peer_send(&peer);
	assert_int_equal(peer_expect_reserved(&peer, request, &reservation, &why), 0);
	assert_false(fc_server_is_drained(world.server));
	fc_server_drain(world.server);
	(void)peer_expect(&peer, FC_WIRE_GOODBYE, &header);
	peer_take(&peer, &header);
	assert_false(fc_server_is_drained(world.server));
	(void)peer_put_match(&peer, keys, 8, true); /* crosses the goodbye */
	peer_send(&peer);
	peer_expect_nothing(&peer);
	peer_put_hello(&late, "n");
	expect_refused(&late, FC_EAGAIN, false, "stopping");
	peer_write(&peer, &reservation, keys);
	peer_forget_reservation(&peer, &reservation);
	peer_send_plain(&peer, FC_WIRE_COMMIT, request);
	(void)peer_expect(&peer, FC_WIRE_COMMITTED, &header);
	peer_take(&peer, &header);
	assert_false(fc_server_is_drained(world.server));
	server_world_settle(&world);
	assert_true(fc_server_is_drained(world.server));
	(void)peer_expect(&peer, FC_WIRE_DURABLE, &header);
	peer_take(&peer, &header);
	peer_close(&peer);
	server_world_deinit(&world);
}

/* A client that does not answer has reserved, and its process is still alive when the daemon stops. */
static void at_a_stop_orphans_are_taken_back_before_the_core_rests(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key keys[8];
	path_keys(1, 0, keys, 8);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	uint64_t used = ssd_bytes_used(&world);
	(void)peer_put_reserve(&peer, 1, 0, keys, 8);
	peer_send(&peer);
	fc_server_drain(world.server);
	peer_vanish(&peer);
	assert_true(fc_server_is_drained(world.server));
	assert_int_equal(server_world_totals(&world).held.claims_orphaned, 1);
	fc_server_end_orphans(world.server);
	struct fc_server_totals totals = server_world_totals(&world);
	assert_int_equal(totals.held.claims_reserved, 0);
	assert_int_equal(totals.held.claims_orphaned, 0);
	assert_int_equal(totals.counters.orphans_freed, 1);
	server_world_settle(&world);
	assert_int_equal(ssd_bytes_used(&world), used);
	server_world_deinit(&world);
}

static void after_its_own_goodbye_a_client_asks_nothing(void **state)
{
	(void)state;
	struct server_world world;
	struct peer peer;
	struct fc_key keys[1];
	path_keys(1, 0, keys, 1);
	open_plain(&world);
	peer_open(&peer, &world, "n");
	peer_send_plain(&peer, FC_WIRE_GOODBYE, 0);
	assert_false(peer.wants_close);
	(void)peer_put_match(&peer, keys, 1, true);
	peer_send(&peer);
	peer_expect_end(&peer, FC_SERVER_PROTOCOL_ERROR);
	server_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_is_told_what_the_arenas_are),
		cmocka_unit_test(another_model_is_refused_by_the_field_that_differs),
		cmocka_unit_test(a_version_that_nobody_speaks_is_refused),
		cmocka_unit_test(a_configured_namespace_is_for_its_users_alone),
		cmocka_unit_test(a_namespace_given_twice_is_no_setting),
		cmocka_unit_test(with_an_empty_list_nobody_is_let_in),
		cmocka_unit_test(namespaces_do_not_see_each_other),
		cmocka_unit_test(a_configured_namespace_is_told_what_is_its_own),
		cmocka_unit_test(a_session_is_known_by_the_name_that_either_side_gave_it),
		cmocka_unit_test(what_a_client_saved_is_there_byte_by_byte),
		cmocka_unit_test(a_lease_lasts_until_it_is_released),
		cmocka_unit_test(a_match_of_nothing_holds_nothing),
		cmocka_unit_test(a_turn_without_its_blocks_is_refused_with_the_reason),
		cmocka_unit_test(statistics_and_sessions_are_answered),
		cmocka_unit_test(a_reserve_waits_for_room_and_is_answered_in_time),
		cmocka_unit_test(what_was_asked_and_forgotten_is_not_answered),
		cmocka_unit_test(a_forget_that_crosses_the_answer_takes_back_what_it_gave),
		cmocka_unit_test(who_forgets_a_commit_is_told_nothing_and_it_stays),
		cmocka_unit_test(what_a_gone_client_held_comes_back_in_two_steps),
		cmocka_unit_test(what_was_committed_becomes_durable_without_its_client),
		cmocka_unit_test(what_could_not_be_made_durable_is_told),
		cmocka_unit_test(counters_of_a_gone_client_stay_in_the_sums),
		cmocka_unit_test(behind_the_fence_matches_are_answered_and_reserves_wait),
		cmocka_unit_test(a_stop_lets_reservations_commit_and_begins_nothing),
		cmocka_unit_test(at_a_stop_orphans_are_taken_back_before_the_core_rests),
		cmocka_unit_test(after_its_own_goodbye_a_client_asks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

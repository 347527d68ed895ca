/* What becomes of a client's word that a slice is damaged: the daemon looks for itself, and holds what it looks at. */
#include "server/server_world.h"

struct scene {
	struct server_world world;
	struct peer peer;
	struct fc_key keys[8];   /* as the client names them */
	struct fc_key stored[8]; /* as they are stored */
};

/* 8 blocks on SSD (turn 0), or in memory (a later turn). */
static void save_scene(struct scene *scene, uint64_t turn)
{
	path_keys(1, 0, scene->keys, 8);
	server_world_open(&scene->world);
	peer_open(&scene->peer, &scene->world, "n");
	peer_save(&scene->peer, 1, turn, scene->keys, 8);
	for (int i = 0; i < 8; i++)
		scene->stored[i] = (struct fc_key){scene->keys[i].high ^ scene->peer.welcome.key_salt.high,
						   scene->keys[i].low ^ scene->peer.welcome.key_salt.low};
}

static void open_scene(struct scene *scene, uint64_t turn)
{
	server_world_init(&scene->world, geometry_plain(100), 8, 32);
	save_scene(scene, turn);
}

static void close_scene(struct scene *scene)
{
	peer_close(&scene->peer);
	server_world_deinit(&scene->world);
}

static uint64_t lease(struct scene *scene)
{
	uint64_t request;
	assert_true(peer_match(&scene->peer, scene->keys, 8, true, &request) > 0);
	return request;
}

static void report(struct scene *scene, uint64_t request, uint32_t placed, uint64_t entry)
{
	struct fc_wire_damage damage = {.placed = placed, .entry = entry, .is_checksum = true};
	assert_int_equal(fc_wire_put_damage(&scene->peer.to_server, request, &damage), 0);
	peer_send(&scene->peer);
}

static struct fc_server_counters counters(const struct scene *scene)
{
	return server_world_totals(&scene->world).counters;
}

static uint64_t matched(struct scene *scene)
{
	return peer_match(&scene->peer, scene->keys, 8, false, NULL);
}

static void what_is_damaged_is_cut(void **state)
{
	(void)state;
	for (uint64_t turn = 0; turn < 2; turn++) {
		struct scene scene;
		open_scene(&scene, turn);
		core_world_damage(&scene.world.core, scene.stored, 8, 0, 5, 1);
		uint64_t request = lease(&scene);
		report(&scene, request, 0, 5);
		server_world_settle(&scene.world);
		assert_int_equal(counters(&scene).damages_confirmed, 1);
		assert_int_equal(counters(&scene).damages_unconfirmed, 0);
		assert_int_equal(matched(&scene), 5);
		assert_int_equal(core_world_stats(&scene.world.core).sessions_cut, 1);
		close_scene(&scene);
	}
}

static void what_is_not_damaged_is_not_cut(void **state)
{
	(void)state;
	for (uint64_t turn = 0; turn < 2; turn++) {
		struct scene scene;
		open_scene(&scene, turn);
		core_world_damage(&scene.world.core, scene.stored, 8, 0, 5, 1); /* another entry than is told */
		uint64_t request = lease(&scene);
		for (uint64_t entry = 0; entry < 8; entry++)
			if (entry != 5)
				report(&scene, request, 0, entry);
		server_world_settle(&scene.world);
		assert_int_equal(counters(&scene).damages_confirmed, 0);
		assert_int_equal(counters(&scene).damages_unconfirmed, 7);
		assert_int_equal(matched(&scene), 8);
		close_scene(&scene);
	}
}

static void every_layer_is_looked_at(void **state)
{
	(void)state;
	for (uint32_t layer = 0; layer < 2; layer++) { /* the third has no slices */
		struct scene scene;
		open_scene(&scene, 0);
		core_world_damage(&scene.world.core, scene.stored, 8, 0, 2, layer);
		report(&scene, lease(&scene), 0, 2);
		server_world_settle(&scene.world);
		assert_int_equal(counters(&scene).damages_confirmed, 1);
		assert_int_equal(matched(&scene), 2);
		close_scene(&scene);
	}
}

/* An error of the drive is no damage before it stays (core/directory.h): the second report finds it again. */
static void what_cannot_be_read_is_cut_when_that_stays_so(void **state)
{
	(void)state;
	for (int is_staying = 0; is_staying < 2; is_staying++) {
		struct scene scene;
		open_scene(&scene, 0);
		struct fake_media *ssd = scene.world.core.world.media[FC_SSD];
		uint64_t request = lease(&scene);
		for (uint64_t round = 0; round < 2; round++) {
			if (round == 0 || is_staying) {
				ssd->fail_at = ssd->op_count + 2; /* the slice; its checksum can be read */
				ssd->fail_count = 1;
			}
			report(&scene, request, 0, 6);
			server_world_settle(&scene.world);
			assert_int_equal(counters(&scene).damages_confirmed, round == 1 && is_staying);
			assert_int_equal(matched(&scene), round == 1 && is_staying ? 6 : 8);
		}
		close_scene(&scene);
	}
}

static void a_slice_longer_than_the_buffer_is_looked_at_in_pieces(void **state)
{
	(void)state;
	for (uint32_t is_damaged = 0; is_damaged < 2; is_damaged++) {
		struct scene scene;
		server_world_init(&scene.world, geometry_plain(120000), 0, 8000); /* slices of 1.2 MB and 0.84 MB */
		scene.world.core.opts.window_bytes = 32u << 20;
		save_scene(&scene, 0);
		if (is_damaged)
			core_world_damage(&scene.world.core, scene.stored, 8, 0, 7, 1);
		report(&scene, lease(&scene), 0, 7);
		server_world_settle(&scene.world);
		assert_int_equal(counters(&scene).damages_confirmed, is_damaged);
		assert_int_equal(matched(&scene), 8 - is_damaged);
		close_scene(&scene);
	}
}

static void a_release_waits_until_the_look_is_over(void **state)
{
	(void)state;
	struct scene scene;
	open_scene(&scene, 0);
	core_world_damage(&scene.world.core, scene.stored, 8, 0, 5, 0);
	uint64_t request = lease(&scene);
	report(&scene, request, 0, 5);
	peer_send_plain(&scene.peer, FC_WIRE_RELEASE, request);
	peer_send_plain(&scene.peer, FC_WIRE_RELEASE, request);
	report(&scene, request, 0, 4); /* too late: the client has given it back */
	assert_int_equal(core_world_stats(&scene.world.core).leases, 1);
	server_world_settle(&scene.world);
	assert_int_equal(core_world_stats(&scene.world.core).leases, 0);
	assert_int_equal(counters(&scene).damages, 2);
	assert_int_equal(counters(&scene).damages_confirmed, 1);
	assert_int_equal(counters(&scene).damages_dropped, 1);
	assert_false(scene.peer.wants_close);
	close_scene(&scene);
}

/* A turn of memory that a later one on SSD absorbs is a source of the reservation. */
static uint64_t reserve_more(struct scene *scene, struct fc_key *longer, struct fc_reservation *reservation)
{
	struct fc_error why = {0};
	memcpy(longer, scene->keys, 8 * sizeof(*longer));
	path_keys(9, 8, longer, 12);
	uint64_t request = peer_put_reserve(&scene->peer, 1, 1, longer, 12);
	peer_send(&scene->peer);
	assert_int_equal(peer_expect_reserved(&scene->peer, request, reservation, &why), 0);
	assert_true(reservation->sources.placed_count > 0);
	return request;
}

static void a_commit_waits_until_the_look_at_its_sources_is_over(void **state)
{
	(void)state;
	struct scene scene;
	struct fc_key longer[12];
	struct fc_reservation reservation;
	struct fc_wire_header header;
	struct fc_wire_committed committed;
	open_scene(&scene, 0);
	uint64_t request = reserve_more(&scene, longer, &reservation);
	peer_write(&scene.peer, &reservation, longer);
	peer_forget_reservation(&scene.peer, &reservation);
	report(&scene, request, 0, 3);
	peer_send_plain(&scene.peer, FC_WIRE_COMMIT, request);
	peer_expect_nothing(&scene.peer);
	server_world_settle(&scene.world);
	const uint8_t *body = peer_expect(&scene.peer, FC_WIRE_COMMITTED, &header);
	assert_int_equal(fc_wire_get_committed(&committed, body, header.body_bytes, NULL), 0);
	assert_int_equal(committed.code, 0);
	peer_take(&scene.peer, &header);
	assert_int_equal(counters(&scene).damages_unconfirmed, 1);
	assert_int_equal(peer_match(&scene.peer, longer, 12, false, NULL), 12);
	close_scene(&scene);
}

static void a_commit_on_sources_that_were_cut_fails_and_holds_nothing(void **state)
{
	(void)state;
	struct scene scene;
	struct fc_key longer[12];
	struct fc_reservation reservation;
	struct fc_wire_header header;
	struct fc_wire_committed committed;
	open_scene(&scene, 0);
	core_world_damage(&scene.world.core, scene.stored, 8, 0, 3, 0);
	uint64_t request = reserve_more(&scene, longer, &reservation);
	peer_forget_reservation(&scene.peer, &reservation);
	report(&scene, request, 0, 3);
	peer_send_plain(&scene.peer, FC_WIRE_COMMIT, request);
	server_world_settle(&scene.world);
	const uint8_t *body = peer_expect(&scene.peer, FC_WIRE_COMMITTED, &header);
	assert_int_equal(fc_wire_get_committed(&committed, body, header.body_bytes, NULL), 0);
	assert_int_equal(committed.code, FC_ENOENT);
	assert_false(committed.is_durable_coming);
	peer_take(&scene.peer, &header);
	assert_int_equal(counters(&scene).commits_failed, 1);
	assert_int_equal(server_world_totals(&scene.world).held.reserved_bytes, 0);
	close_scene(&scene);
}

static void a_read_that_does_not_return_keeps_nobody_waiting(void **state)
{
	(void)state;
	struct scene scene;
	open_scene(&scene, 0);
	core_world_damage(&scene.world.core, scene.stored, 8, 0, 5, 0);
	struct hold_media *ssd = &scene.world.core.ssd;
	uint64_t request = lease(&scene);
	ssd->is_holding[FC_IO_READ] = true;
	report(&scene, request, 0, 5);
	peer_send_plain(&scene.peer, FC_WIRE_RELEASE, request);
	server_world_settle(&scene.world);
	assert_int_equal(core_world_stats(&scene.world.core).leases, 1);
	scene.world.core.now_ns += scene.world.opts.limits.io_timeout_ns;
	server_world_settle(&scene.world);
	assert_int_equal(core_world_stats(&scene.world.core).leases, 0);
	assert_int_equal(counters(&scene).damages_unconfirmed, 1);
	request = lease(&scene); /* the buffer is still the lost read's: this one waits */
	report(&scene, request, 0, 5);
	server_world_settle(&scene.world);
	assert_int_equal(server_world_totals(&scene.world).verifies_waiting, 1);
	hold_media_release(ssd);
	server_world_settle(&scene.world);
	assert_int_equal(counters(&scene).damages_confirmed, 1);
	assert_int_equal(matched(&scene), 5);
	close_scene(&scene);
}

static void who_goes_takes_the_reports_along(void **state)
{
	(void)state;
	struct scene scene;
	open_scene(&scene, 0);
	uint64_t request = lease(&scene);
	scene.world.core.ssd.is_holding[FC_IO_READ] = true;
	for (uint64_t entry = 0; entry < 4; entry++)
		report(&scene, request, 0, entry);
	server_world_settle(&scene.world); /* the first is being read */
	peer_close(&scene.peer);
	assert_int_equal(core_world_stats(&scene.world.core).leases, 0);
	assert_int_equal(server_world_totals(&scene.world).verifies_waiting, 0);
	assert_int_equal(counters(&scene).damages_dropped, 4);
	assert_true(fc_core_is_idle(scene.world.core.core));
	assert_false(fc_server_is_at_rest(scene.world.server)); /* the buffer is still being read into */
	hold_media_release(&scene.world.core.ssd);
	server_world_deinit(&scene.world);
}

static void reports_are_bounded(void **state)
{
	(void)state;
	struct scene scene;
	server_world_init(&scene.world, geometry_plain(100), 8, 32);
	scene.world.opts.limits.damages_max = 3;
	save_scene(&scene, 0);
	uint64_t request = lease(&scene);
	scene.world.core.ssd.is_holding[FC_IO_READ] = true;
	for (int round = 0; round < 100; round++)
		for (uint64_t entry = 0; entry < 8; entry++)
			report(&scene, request, 0, entry);
	assert_int_equal(server_world_totals(&scene.world).verifies_waiting, 3);
	assert_int_equal(counters(&scene).damages, 800);
	assert_int_equal(counters(&scene).damages_dropped, 797);
	hold_media_release(&scene.world.core.ssd);
	server_world_settle(&scene.world);
	assert_int_equal(counters(&scene).damages_unconfirmed, 3);
	close_scene(&scene);
}

static void what_was_reported_already_is_looked_at_once(void **state)
{
	(void)state;
	struct scene scene;
	open_scene(&scene, 0);
	uint64_t request = lease(&scene);
	for (int i = 0; i < 5; i++)
		report(&scene, request, 0, 2);
	server_world_settle(&scene.world);
	assert_int_equal(counters(&scene).damages_unconfirmed, 1);
	assert_int_equal(counters(&scene).damages_dropped, 4);
	report(&scene, request, 0, 2); /* decided, and doubted again */
	server_world_settle(&scene.world);
	assert_int_equal(counters(&scene).damages_unconfirmed, 2);
	close_scene(&scene);
}

static void damage_that_cannot_be_is_an_error(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		struct scene scene;
		open_scene(&scene, 0);
		uint64_t request = lease(&scene);
		report(&scene, way == 0 ? request + 1 : request, way == 1 ? 1 : 0, way == 2 ? 8 : 0);
		peer_expect_end(&scene.peer, FC_SERVER_PROTOCOL_ERROR);
		server_world_deinit(&scene.world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_damaged_is_cut),
		cmocka_unit_test(what_is_not_damaged_is_not_cut),
		cmocka_unit_test(every_layer_is_looked_at),
		cmocka_unit_test(what_cannot_be_read_is_cut_when_that_stays_so),
		cmocka_unit_test(a_slice_longer_than_the_buffer_is_looked_at_in_pieces),
		cmocka_unit_test(a_release_waits_until_the_look_is_over),
		cmocka_unit_test(a_commit_waits_until_the_look_at_its_sources_is_over),
		cmocka_unit_test(a_commit_on_sources_that_were_cut_fails_and_holds_nothing),
		cmocka_unit_test(a_read_that_does_not_return_keeps_nobody_waiting),
		cmocka_unit_test(who_goes_takes_the_reports_along),
		cmocka_unit_test(reports_are_bounded),
		cmocka_unit_test(what_was_reported_already_is_looked_at_once),
		cmocka_unit_test(damage_that_cannot_be_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

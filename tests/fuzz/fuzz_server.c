/* Two hostile clients of a server with a small core behind it, and one that behaves.
 *
 * The input is a list of steps:
 *
 *     1 byte     bits 0-3: what is done; bit 4: by which of the two; bits 5-7: a small number
 *     ...        what that needs: a count and raw bytes, or the fields of a whole message
 *
 * After every step the catalog is checked whole. At the end the good client must find what it saved and still hold its
 * lease, and when all are gone nothing may be held, and no byte of memory be left. */
#include "fuzz/fuzz.h"
#include "server/server_world.h"

#define GOOD_BLOCKS 6
#define PATHS 4
#define PATH_KEYS 8

enum step {
	STEP_RAW,
	STEP_HELLO,
	STEP_MATCH,
	STEP_RESERVE,
	STEP_PLAIN,
	STEP_DAMAGE,
	STEP_SESSION,
	STEP_REPORT,
	STEP_SETTLE,
	STEP_LATER,
	STEP_READ,
	STEP_RECONNECT,
	STEP_VANISH,
	STEP_UNLOCK,
	STEP_FENCE,
	STEP_DRAIN,
};

struct scene {
	struct server_world world;
	struct peer good, bad[2];
	bool is_gone[2]; /* disconnected, its lock held */
	struct fc_key good_keys[GOOD_BLOCKS];
	struct fc_key paths[PATHS][PATH_KEYS];
	bool is_draining;
};

static void close_bad(struct scene *scene, unsigned number)
{
	struct peer *bad = &scene->bad[number];
	if (bad->client == NULL)
		return;
	if (!scene->is_gone[number])
		peer_vanish(bad);
	peer_unlock(bad);
	scene->is_gone[number] = false;
}

static void open_scene(struct scene *scene, bool is_fenced)
{
	server_world_init(&scene->world, geometry_plain(20), 8, 12);
	scene->world.core.opts.catalog.consolidate_ratio = 1;
	scene->world.core.opts.catalog.index_shards = 1; /* the whole of it is checked after every step */
	scene->world.opts.is_fenced = is_fenced;
	struct fc_server_limits *limits = &scene->world.opts.limits;
	limits->requests_max = 8;
	limits->unsent_bytes_max = 1u << 16;
	limits->keys_max = 64;
	limits->damages_max = 4;
	limits->reserved_bytes_max = 16384;
	limits->lease_timeout_ns = 4000 * SECOND_NS; /* the longest input is over by then */
	path_keys(1, 0, scene->good_keys, GOOD_BLOCKS);
	for (uint64_t i = 0; i < PATHS; i++) {
		memcpy(scene->paths[i], scene->good_keys, 4 * sizeof(struct fc_key));
		path_keys(10 + i, 2 * i, scene->paths[i],
			  PATH_KEYS); /* some go along with the good one's for a while */
	}
	server_world_open(&scene->world);
	peer_open(&scene->good, &scene->world, "good");
	peer_connect(&scene->bad[0], &scene->world);
	peer_connect(&scene->bad[1], &scene->world);
	if (is_fenced)
		return;
	peer_save(&scene->good, 1, 0, scene->good_keys, GOOD_BLOCKS);
	assert_int_equal(peer_match(&scene->good, scene->good_keys, GOOD_BLOCKS, true, NULL), GOOD_BLOCKS);
}

static void close_scene(struct scene *scene, bool is_fenced)
{
	close_bad(scene, 0);
	close_bad(scene, 1);
	server_world_settle(&scene->world);
	fuzz_check(!scene->good.wants_close, "the good client lost its connection: %s", scene->world.last_text);
	fuzz_check(core_world_stats(&scene->world.core).leases == (is_fenced ? 0 : 1),
		   "leases of the good client alone");
	if (!is_fenced && !scene->is_draining)
		assert_int_equal(peer_match(&scene->good, scene->good_keys, GOOD_BLOCKS, false, NULL), GOOD_BLOCKS);
	struct fc_server_totals totals = server_world_totals(&scene->world);
	fuzz_check(totals.held.claims_reserved == 0 && totals.held.reserved_bytes == 0, "something stays reserved");
	peer_close(&scene->good);
	server_world_deinit(&scene->world);
	fuzz_check(scene->world.core.world.tracked.bytes == 0, "memory is left");
}

/* ---- steps ---- */

static uint64_t take_number(struct peer *peer, struct fuzz_input *input)
{
	uint8_t way = fuzz_u8(input);
	return way < 128 ? ++peer->next_request : way & 15;
}

static void put_message(struct scene *scene, struct peer *peer, enum step step, unsigned small,
			struct fuzz_input *input)
{
	struct fc_wire_buffer *out = &peer->to_server;
	uint64_t number = take_number(peer, input);
	if (number == 0)
		return;
	if (step == STEP_MATCH) {
		struct fc_wire_match match = {.blocks_max = fuzz_u8(input) & 15,
					      .is_leased = (small & 4) == 0,
					      .keys = scene->paths[small % PATHS],
					      .key_count = fuzz_u8(input) % (PATH_KEYS + 1)};
		assert_int_equal(fc_wire_put_match(out, number, &match), 0);
	} else if (step == STEP_RESERVE) {
		struct fc_wire_reserve reserve = {.turn = {.session = {0, fuzz_u8(input) & 3},
							   .keys = scene->paths[small % PATHS],
							   .key_count = fuzz_u8(input) % (PATH_KEYS + 1),
							   .turn = small >> 2,
							   .shared_blocks = fuzz_u8(input) & 15}};
		reserve.turn.resident[0].first_block = fuzz_u8(input) & 3;
		reserve.turn.resident[0].count = fuzz_u8(input) & 15;
		assert_int_equal(fc_wire_put_reserve(out, number, &reserve), 0);
	} else if (step == STEP_PLAIN) {
		static const enum fc_wire_type types[] = {FC_WIRE_RELEASE, FC_WIRE_FORGET, FC_WIRE_COMMIT,
							  FC_WIRE_ABORT,   FC_WIRE_STATS,  FC_WIRE_FORGET,
							  FC_WIRE_COMMIT,  FC_WIRE_ABORT};
		assert_int_equal(fc_wire_put_plain(out, types[small], number), 0);
	} else if (step == STEP_DAMAGE) {
		struct fc_wire_damage damage = {.placed = small & 1, .entry = fuzz_u8(input) & 7};
		assert_int_equal(fc_wire_put_damage(out, number, &damage), 0);
	} else {
		struct fc_session_id id = {fuzz_u64(input), small};
		assert_int_equal(fc_wire_put_session(out, number, id), 0);
	}
	peer_send(peer);
}

static void send_report(struct peer *peer, struct fuzz_input *input)
{
	struct fc_wire_report report = {.loads = fuzz_u8(input), .ready_length = fuzz_u64(input)};
	assert_int_equal(fc_wire_put_report(&peer->to_server, &report), 0);
	peer_send(peer);
}

static void send_raw(struct peer *peer, struct fuzz_input *input)
{
	const uint8_t *bytes;
	size_t count = fuzz_bytes(input, fuzz_u8(input), &bytes);
	uint8_t *exact = fuzz_exact(bytes, count);
	peer_send_bytes(peer, exact, count);
	free(exact);
}

/* For a client that is connected. */
static void act(struct scene *scene, unsigned number, enum step step, unsigned small, struct fuzz_input *input)
{
	struct peer *peer = &scene->bad[number];
	switch (step) {
	case STEP_RAW:
		send_raw(peer, input);
		break;
	case STEP_HELLO:
		peer_put_hello(peer, small < 4 ? "good" : "bad");
		peer_send(peer);
		break;
	case STEP_REPORT:
		send_report(peer, input);
		break;
	case STEP_READ:
		fc_wire_buffer_drop(fc_server_output(peer->client), fc_server_output(peer->client)->used);
		break;
	case STEP_VANISH:
		peer_vanish(peer);
		scene->is_gone[number] = true;
		break;
	default:
		put_message(scene, peer, step, small, input);
		break;
	}
}

static void step(struct scene *scene, struct fuzz_input *input)
{
	uint8_t head = fuzz_u8(input);
	enum step step = (enum step)(head & 15);
	unsigned number = head >> 4 & 1, small = head >> 5;
	switch (step) {
	case STEP_SETTLE:
		server_world_settle(&scene->world);
		break;
	case STEP_LATER: /* not so late that the good one's lease is too old: it may have to be taken again 2000 times
			  */
		scene->world.core.now_ns += (uint64_t)small * SECOND_NS / 8;
		break;
	case STEP_FENCE:
		fc_server_fence_is_over(scene->world.server);
		break;
	case STEP_DRAIN:
		fc_server_drain(scene->world.server);
		scene->is_draining = true;
		break;
	case STEP_RECONNECT:
		close_bad(scene, number);
		peer_connect(&scene->bad[number], &scene->world);
		break;
	case STEP_UNLOCK:
		if (scene->is_gone[number])
			close_bad(scene, number);
		break;
	default:
		if (scene->bad[number].client != NULL && !scene->is_gone[number])
			act(scene, number, step, small, input);
		break;
	}
	core_world_check(&scene->world.core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene scene;
	struct fuzz_input input = {data, size};
	bool is_fenced = (fuzz_u8(&input) & 1) != 0;
	memset(&scene, 0, sizeof(scene));
	open_scene(&scene, is_fenced);
	while (input.left > 0)
		step(&scene, &input);
	close_scene(&scene, is_fenced);
	return 0;
}

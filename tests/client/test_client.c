/* The client's directory against a daemon that is played by hand: what it sends, and what becomes of what was asked
 * when answers are late, wrong, or never come. */
#include "client/client.h"
#include "base/check.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND_NS 1000000000ull
#define ARENA_BYTES (1ull << 20)

static const struct fc_key salt = {0x1111, 0x2222};

struct played {
	struct tracked_alloc tracked;
	struct fc_alloc alloc;
	struct fc_geometry geometry;
	struct fc_client *client;
	struct fc_directory *directory;
	uint64_t now_ns;
	int welcome_code;
	/* the last message taken out of the client's output */
	struct fc_wire_header header;
	const uint8_t *body;
	struct fc_wire_buffer taken;
	/* callbacks */
	unsigned matched, reserved, visible, durable, lost, answered;
};

struct played_lookup {
	struct fc_lookup lookup;
	struct fc_path path;
	struct played *played;
};

struct played_claim {
	struct fc_claim claim;
	struct played *played;
};

static uint64_t played_now(void *context)
{
	return ((struct played *)context)->now_ns;
}

static int on_welcome(void *context, const struct fc_wire_welcome *welcome, struct fc_error *error)
{
	struct played *played = context;
	assert_true(welcome->arenas[FC_SSD].is_there);
	return played->welcome_code == 0 ? 0 : fc_error_set(error, played->welcome_code, "another arena");
}

static void played_init(struct played *played)
{
	*played = (struct played){.geometry = geometry_plain(100), .now_ns = 1000 * SECOND_NS};
	played->alloc = tracked_alloc_interface(&played->tracked);
	struct fc_client_opts opts = {
		.alloc = &played->alloc,
		.clock = {played_now, played},
		.geometry = &played->geometry,
		.name_space = "agents",
		.program = "test",
		.reconnect_timeout_ns = 2 * SECOND_NS,
		.answer_timeout_ns = 10 * SECOND_NS,
		.claim_timeout_ns = 30 * SECOND_NS,
		.welcome_cb = on_welcome,
		.context = played,
	};
	assert_int_equal(fc_client_open(&played->client, &opts, NULL), 0);
	played->directory = fc_client_directory(played->client);
	fc_wire_buffer_init(&played->taken, &played->alloc);
}

static void played_deinit(struct played *played)
{
	fc_client_free(played->client);
	fc_wire_buffer_deinit(&played->taken);
	assert_int_equal(played->tracked.bytes, 0); /* nothing is left */
}

/* Takes the next message, which must be of this type, out of what the client wants to send. */
static void take(struct played *played, enum fc_wire_type type)
{
	struct fc_wire_buffer *output = fc_client_output(played->client);
	fc_wire_buffer_drop(&played->taken, played->taken.used);
	assert_int_equal(fc_wire_next(output, &played->header, &played->body, NULL), 0);
	assert_int_equal(played->header.type, type);
	uint64_t bytes = FC_WIRE_HEADER_BYTES + played->header.body_bytes;
	assert_int_equal(fc_wire_buffer_add(&played->taken, output->bytes, bytes), 0);
	played->body = played->taken.bytes + FC_WIRE_HEADER_BYTES;
	fc_wire_buffer_drop(output, bytes);
}

static void assert_silent(const struct played *played)
{
	assert_int_equal(fc_client_output(played->client)->used, 0);
}

/* Hands over a frame byte by byte, as a bad network would. */
static int give(struct played *played, struct fc_wire_buffer *frame)
{
	int code = 0;
	for (uint64_t i = 0; i < frame->used && code == 0; i++)
		code = fc_client_received(played->client, frame->bytes + i, 1, NULL);
	fc_wire_buffer_deinit(frame);
	return code;
}

static int give_welcome(struct played *played)
{
	struct fc_wire_buffer frame;
	struct fc_wire_welcome welcome = {
		.version = 1,
		.client = 7,
		.key_salt = salt,
		.area_bytes_max = 1 << 20,
		.requests_max = 64,
		.arenas[FC_SSD] = {.is_there = true, .is_durable = true, .align = 512, .bytes = ARENA_BYTES},
	};
	fc_wire_buffer_init(&frame, &played->alloc);
	assert_int_equal(fc_wire_put_welcome(&frame, &welcome), 0);
	return give(played, &frame);
}

static void connect(struct played *played)
{
	struct fc_wire_hello hello;
	fc_client_connected(played->client);
	take(played, FC_WIRE_HELLO);
	assert_int_equal(fc_wire_get_hello(&hello, played->body, played->header.body_bytes, NULL), 0);
	assert_string_equal(hello.name_space, "agents");
	assert_int_equal(give_welcome(played), 0);
	assert_int_equal(fc_client_state(played->client), FC_CLIENT_UP);
}

/* ---- lookups ---- */

static void on_matched(struct fc_lookup *lookup)
{
	fc_container_of(lookup, struct played_lookup, lookup)->played->matched++;
}

static void ask(struct played *played, struct played_lookup *asked, const struct fc_key *keys, uint64_t count)
{
	*asked = (struct played_lookup){.played = played};
	asked->lookup =
		(struct fc_lookup){.keys = keys, .key_count = count, .path = &asked->path, .answered_cb = on_matched};
	played->directory->ops->match(played->directory, &asked->lookup);
}

static void give_matched(struct played *played, uint64_t request, int code)
{
	struct fc_wire_buffer frame;
	struct fc_path path = {.is_leased = code == 0};
	fc_wire_buffer_init(&frame, &played->alloc);
	assert_int_equal(fc_wire_put_matched(&frame, request, code, &path), 0);
	assert_int_equal(give(played, &frame), 0);
}

static void a_match_names_the_keys_without_the_salt_and_its_lease_is_released(void **state)
{
	(void)state;
	struct played played;
	struct played_lookup asked;
	struct fc_wire_match match;
	struct fc_key got[2], keys[2] = {{1 ^ 0x1111, 2 ^ 0x2222}, {3 ^ 0x1111, 4 ^ 0x2222}};
	played_init(&played);
	connect(&played);
	ask(&played, &asked, keys, 2);
	take(&played, FC_WIRE_MATCH);
	assert_int_equal(fc_wire_get_match(&match, played.body, played.header.body_bytes, NULL), 0);
	fc_wire_keys_copy(&match.found, (struct fc_key){0, 0}, got);
	assert_true(match.is_leased && match.found.count == 2 && got[0].high == 1 && got[0].low == 2);
	assert_true(got[1].high == 3 && got[1].low == 4);
	assert_int_equal(played.matched, 0);
	give_matched(&played, played.header.request, 0);
	assert_int_equal(played.matched, 1);
	assert_true(asked.path.is_leased);
	played.directory->ops->release(played.directory, &asked.path);
	assert_false(asked.path.is_leased);
	uint64_t request = played.header.request;
	take(&played, FC_WIRE_RELEASE);
	assert_int_equal(played.header.request, request);
	assert_silent(&played);
	fc_path_deinit(&asked.path, &played.alloc);
	played_deinit(&played);
}

static void a_forgotten_match_is_taken_back_and_its_late_answer_is_nobodys(void **state)
{
	(void)state;
	struct played played;
	struct played_lookup asked;
	struct fc_key key = {1, 2};
	played_init(&played);
	connect(&played);
	ask(&played, &asked, &key, 1);
	take(&played, FC_WIRE_MATCH);
	uint64_t request = played.header.request;
	played.directory->ops->forget(played.directory, &asked.lookup);
	take(&played, FC_WIRE_FORGET);
	assert_int_equal(played.header.request, request);
	give_matched(&played, request, 0);
	assert_int_equal(played.matched, 0);
	assert_false(asked.path.is_leased);
	assert_silent(&played);
	played_deinit(&played);
}

static void what_is_asked_without_a_connection_is_asked_on_the_next_one(void **state)
{
	(void)state;
	struct played played;
	struct played_lookup asked;
	struct fc_key key = {1, 2};
	played_init(&played);
	ask(&played, &asked, &key, 1);
	assert_silent(&played);
	connect(&played);
	take(&played, FC_WIRE_MATCH);
	uint64_t first = played.header.request;
	fc_client_disconnected(played.client);
	assert_int_equal(played.matched, 0);
	connect(&played);
	take(&played, FC_WIRE_MATCH);
	assert_true(played.header.request > first);
	give_matched(&played, played.header.request, 0);
	assert_int_equal(played.matched, 1);
	fc_client_disconnected(played.client); /* and the lease with it */
	connect(&played);
	played.directory->ops->release(played.directory, &asked.path);
	assert_silent(&played);
	fc_path_deinit(&asked.path, &played.alloc);
	played_deinit(&played);
}

static void without_a_daemon_nothing_is_stored(void **state)
{
	(void)state;
	struct played played;
	struct played_lookup asked;
	struct fc_key key = {1, 2};
	played_init(&played);
	ask(&played, &asked, &key, 1);
	played.now_ns += 2 * SECOND_NS - 1;
	assert_int_equal(played.directory->ops->poll(played.directory), 0);
	assert_int_equal(played.directory->ops->wake_ns(played.directory), played.now_ns + 1);
	played.now_ns++;
	assert_int_equal(played.directory->ops->poll(played.directory), 1);
	assert_int_equal(played.matched, 1);
	assert_true(asked.lookup.code == 0 && asked.path.blocks == 0 && !asked.path.is_leased);
	played_deinit(&played);
}

static void a_daemon_that_does_not_answer_is_given_up(void **state)
{
	(void)state;
	struct played played;
	struct played_lookup asked;
	struct fc_key key = {1, 2};
	played_init(&played);
	connect(&played);
	ask(&played, &asked, &key, 1);
	played.now_ns += 10 * SECOND_NS - 1;
	(void)played.directory->ops->poll(played.directory);
	assert_false(fc_client_wants_close(played.client));
	played.now_ns++;
	(void)played.directory->ops->poll(played.directory);
	assert_true(fc_client_wants_close(played.client));
	fc_client_disconnected(played.client);
	played.now_ns += 2 * SECOND_NS;
	assert_int_equal(played.directory->ops->poll(played.directory), 1);
	assert_int_equal(played.matched, 1);
	played_deinit(&played);
}

/* ---- claims ---- */

static void on_reserved(struct fc_claim *claim)
{
	fc_container_of(claim, struct played_claim, claim)->played->reserved++;
}
static void on_visible(struct fc_claim *claim)
{
	fc_container_of(claim, struct played_claim, claim)->played->visible++;
}
static void on_durable(struct fc_claim *claim)
{
	fc_container_of(claim, struct played_claim, claim)->played->durable++;
}
static void on_lost(struct fc_claim *claim)
{
	fc_container_of(claim, struct played_claim, claim)->played->lost++;
}

static void claim(struct played *played, struct played_claim *claimed, const struct fc_key *key)
{
	*claimed = (struct played_claim){.played = played};
	claimed->claim.turn = (struct fc_turn){.keys = key, .key_count = 1, .resident[0].count = 1};
	claimed->claim.reserved_cb = on_reserved;
	claimed->claim.visible_cb = on_visible;
	claimed->claim.durable_cb = on_durable;
	claimed->claim.lost_cb = on_lost;
	played->directory->ops->reserve(played->directory, &claimed->claim);
}

static void give_reserved(struct played *played, uint64_t request)
{
	struct fc_wire_buffer frame;
	struct fc_reservation reservation = {.session = {5, 6}};
	fc_wire_buffer_init(&frame, &played->alloc);
	assert_int_equal(fc_wire_put_reserved(&frame, request, 0, &reservation, NULL), 0);
	assert_int_equal(give(played, &frame), 0);
}

static void give_committed(struct played *played, uint64_t request)
{
	struct fc_wire_buffer frame;
	struct fc_wire_committed committed = {.is_durable_coming = true};
	fc_wire_buffer_init(&frame, &played->alloc);
	assert_int_equal(fc_wire_put_committed(&frame, request, &committed), 0);
	assert_int_equal(give(played, &frame), 0);
}

static void claim_deinit(struct played *played, struct played_claim *claimed)
{
	fc_reservation_deinit(&claimed->claim.reservation, &played->alloc);
}

static void a_claim_becomes_visible_and_then_durable(void **state)
{
	(void)state;
	struct played played;
	struct played_claim claimed;
	struct fc_wire_buffer frame;
	struct fc_key key = {1, 2};
	played_init(&played);
	connect(&played);
	claim(&played, &claimed, &key);
	take(&played, FC_WIRE_RESERVE);
	uint64_t request = played.header.request;
	give_reserved(&played, request);
	assert_int_equal(played.reserved, 1);
	assert_int_equal(claimed.claim.reservation.session.low, 6);
	played.directory->ops->commit(played.directory, &claimed.claim);
	take(&played, FC_WIRE_COMMIT);
	assert_int_equal(played.header.request, request);
	give_committed(&played, request);
	assert_int_equal(played.visible, 1);
	assert_int_equal(claimed.claim.reservation.durable_pending, 1);
	fc_wire_buffer_init(&frame, &played.alloc);
	assert_int_equal(fc_wire_put_durable(&frame, request, FC_EIO), 0);
	assert_int_equal(give(&played, &frame), 0);
	assert_int_equal(played.durable, 1);
	assert_int_equal(claimed.claim.reservation.durable_code, FC_EIO);
	assert_silent(&played);
	claim_deinit(&played, &claimed);
	played_deinit(&played);
}

static void a_claim_that_has_ended_serves_again_though_its_sources_were_leased(void **state)
{
	(void)state;
	struct played played;
	struct played_claim claimed;
	struct fc_wire_buffer frame;
	struct fc_reservation leased = {.sources.is_leased = true};
	struct fc_key key = {1, 2};
	played_init(&played);
	connect(&played);
	claim(&played, &claimed, &key);
	for (unsigned turn = 1; turn <= 2; turn++) {
		take(&played, FC_WIRE_RESERVE);
		fc_wire_buffer_init(&frame, &played.alloc);
		assert_int_equal(fc_wire_put_reserved(&frame, played.header.request, 0, &leased, NULL), 0);
		assert_int_equal(give(&played, &frame), 0);
		assert_int_equal(played.reserved, turn);
		played.directory->ops->abort(played.directory, &claimed.claim);
		take(&played, FC_WIRE_ABORT);
		assert_false(claimed.claim.reservation.sources.is_leased);
		if (turn == 1)
			played.directory->ops->reserve(played.directory, &claimed.claim);
	}
	claim_deinit(&played, &claimed);
	played_deinit(&played);
}

static void claims_are_lost_with_their_connection_and_hold_the_lock_until_they_are_aborted(void **state)
{
	(void)state;
	struct played played;
	struct played_claim asked, reserved, visible;
	struct fc_key key = {1, 2};
	played_init(&played);
	connect(&played);
	claim(&played, &reserved, &key);
	take(&played, FC_WIRE_RESERVE);
	give_reserved(&played, played.header.request);
	claim(&played, &visible, &key);
	take(&played, FC_WIRE_RESERVE);
	give_reserved(&played, played.header.request);
	played.directory->ops->commit(played.directory, &visible.claim);
	take(&played, FC_WIRE_COMMIT);
	give_committed(&played, played.header.request);
	claim(&played, &asked, &key);
	take(&played, FC_WIRE_RESERVE);
	fc_client_disconnected(played.client);
	assert_int_equal(played.lost, 1);
	assert_int_equal(reserved.claim.state, FC_CLAIM_LOST);
	assert_int_equal(played.durable, 1);
	assert_int_equal(visible.claim.reservation.durable_code, FC_ECANCELED);
	assert_false(fc_client_may_unlock(played.client));
	played.directory->ops->abort(played.directory, &reserved.claim);
	assert_true(fc_client_may_unlock(played.client));
	connect(&played);
	take(&played, FC_WIRE_RESERVE); /* the one that had no answer */
	assert_silent(&played);
	played.directory->ops->abort(played.directory, &asked.claim);
	take(&played, FC_WIRE_ABORT);
	claim_deinit(&played, &asked);
	claim_deinit(&played, &reserved);
	claim_deinit(&played, &visible);
	played_deinit(&played);
}

static void a_claim_has_a_deadline_of_its_own_whatever_else_is_answered(void **state)
{
	(void)state;
	struct played played;
	struct played_claim claimed;
	struct fc_key key = {1, 2};
	played_init(&played);
	connect(&played);
	claim(&played, &claimed, &key);
	take(&played, FC_WIRE_RESERVE);
	uint64_t request = played.header.request, progress = played.directory->progress;
	for (int second = 1; second <= 29; second++) {
		struct played_lookup asked;
		ask(&played, &asked, &key, 1);
		take(&played, FC_WIRE_MATCH);
		played.now_ns += SECOND_NS;
		give_matched(&played, played.header.request, 0);
		played.directory->ops->release(played.directory, &asked.path);
		take(&played, FC_WIRE_RELEASE);
		fc_path_deinit(&asked.path, &played.alloc);
		assert_int_equal(played.directory->ops->poll(played.directory), 0);
	}
	assert_int_equal(played.matched, 29);
	assert_int_equal(played.directory->progress, progress); /* nothing of it is the claim's */
	assert_int_equal(played.directory->ops->wake_ns(played.directory), played.now_ns + SECOND_NS);
	played.now_ns += SECOND_NS;
	assert_int_equal(played.directory->ops->poll(played.directory), 1);
	assert_int_equal(played.reserved, 1);
	assert_int_equal(claimed.claim.code, FC_ETIMEOUT);
	assert_non_null(strstr(claimed.claim.error.text, "has not answered in 30000 ms"));
	take(&played, FC_WIRE_ABORT);
	assert_int_equal(played.header.request, request);
	give_reserved(&played, request); /* too late: the daemon takes it back */
	assert_int_equal(played.reserved, 1);
	assert_false(fc_client_wants_close(played.client));
	claim_deinit(&played, &claimed);
	played_deinit(&played);
}

static void a_save_without_a_daemon_ends_with_a_reason(void **state)
{
	(void)state;
	struct played played;
	struct played_claim claimed;
	struct fc_key key = {1, 2};
	played_init(&played);
	claim(&played, &claimed, &key);
	played.now_ns += 2 * SECOND_NS;
	assert_int_equal(played.directory->ops->poll(played.directory), 1);
	assert_int_equal(claimed.claim.code, FC_EAGAIN);
	assert_string_equal(claimed.claim.error.text, "save: no connection to flatcaked");
	claim_deinit(&played, &claimed);
	played_deinit(&played);
}

/* ---- bad daemons ---- */

static void give_refused(struct played *played, bool is_final)
{
	struct fc_wire_buffer frame;
	struct fc_wire_refused refused = {.is_final = is_final};
	fc_error_set(&refused.error, FC_ELIMIT, "256 clients are connected");
	fc_client_connected(played->client);
	take(played, FC_WIRE_HELLO);
	fc_wire_buffer_init(&frame, &played->alloc);
	assert_int_equal(fc_wire_put_refused(&frame, &refused), 0);
	assert_int_equal(give(played, &frame), FC_ELIMIT);
	fc_client_disconnected(played->client);
	assert_non_null(strstr(fc_client_refusal(played->client)->text, "256 clients are connected"));
}

static void a_refusal_may_be_for_good_or_for_now(void **state)
{
	(void)state;
	struct played played;
	played_init(&played);
	give_refused(&played, false);
	assert_int_equal(fc_client_state(played.client), FC_CLIENT_DOWN);
	connect(&played);
	fc_client_disconnected(played.client);
	give_refused(&played, true);
	assert_int_equal(fc_client_state(played.client), FC_CLIENT_REFUSED);
	played_deinit(&played);
}

static void a_welcome_to_other_arenas_is_the_end(void **state)
{
	(void)state;
	struct played played;
	played_init(&played);
	played.welcome_code = FC_EINVAL;
	fc_client_connected(played.client);
	take(&played, FC_WIRE_HELLO);
	assert_int_equal(give_welcome(&played), FC_EINVAL);
	fc_client_disconnected(played.client);
	assert_int_equal(fc_client_state(played.client), FC_CLIENT_REFUSED);
	played_deinit(&played);
}

static void a_welcome_that_finds_no_room_is_tried_again(void **state)
{
	(void)state;
	static const int codes[] = {FC_ESYSTEM, FC_ENOMEM};
	struct played played;
	played_init(&played);
	for (size_t i = 0; i < fc_array_len(codes); i++) {
		played.welcome_code = codes[i];
		fc_client_connected(played.client);
		take(&played, FC_WIRE_HELLO);
		assert_int_equal(give_welcome(&played), codes[i]);
		fc_client_disconnected(played.client);
		assert_int_equal(fc_client_state(played.client), FC_CLIENT_DOWN);
	}
	played.welcome_code = FC_OK;
	connect(&played);
	assert_int_equal(fc_client_state(played.client), FC_CLIENT_UP);
	played_deinit(&played);
}

static void what_a_daemon_does_not_send_ends_the_connection(void **state)
{
	(void)state;
	struct played played;
	struct fc_wire_buffer frame;
	const uint8_t nonsense[FC_WIRE_HEADER_BYTES] = "GET / HTTP/1.1\r\nHost: ab";
	played_init(&played);
	connect(&played);
	assert_int_equal(fc_client_received(played.client, nonsense, sizeof(nonsense), NULL), FC_EFORMAT);
	assert_true(fc_client_wants_close(played.client));
	fc_client_disconnected(played.client);
	connect(&played);
	fc_wire_buffer_init(&frame, &played.alloc);
	assert_int_equal(fc_wire_put_plain(&frame, FC_WIRE_COMMIT, 1), 0);
	assert_int_equal(give(&played, &frame), FC_EFORMAT);
	fc_client_disconnected(played.client);
	fc_client_connected(played.client);
	take(&played, FC_WIRE_HELLO);
	fc_wire_buffer_init(&frame, &played.alloc);
	assert_int_equal(fc_wire_put_durable(&frame, 1, 0), 0);
	assert_int_equal(give(&played, &frame), FC_EFORMAT); /* before the welcome */
	fc_client_disconnected(played.client);
	played_deinit(&played);
}

static void on_answered(struct fc_question *question)
{
	(void)question;
}

static void questions_are_answered_with_the_close(void **state)
{
	(void)state;
	struct played played;
	struct fc_question question = {.kind = FC_QUESTION_STATS, .answered_cb = on_answered};
	played_init(&played);
	connect(&played);
	played.directory->ops->ask(played.directory, &question);
	take(&played, FC_WIRE_STATS);
	fc_client_cancel_questions(played.client);
	assert_int_equal(question.code, FC_ECANCELED);
	played_deinit(&played);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_match_names_the_keys_without_the_salt_and_its_lease_is_released),
		cmocka_unit_test(a_forgotten_match_is_taken_back_and_its_late_answer_is_nobodys),
		cmocka_unit_test(what_is_asked_without_a_connection_is_asked_on_the_next_one),
		cmocka_unit_test(without_a_daemon_nothing_is_stored),
		cmocka_unit_test(a_daemon_that_does_not_answer_is_given_up),
		cmocka_unit_test(a_claim_becomes_visible_and_then_durable),
		cmocka_unit_test(a_claim_that_has_ended_serves_again_though_its_sources_were_leased),
		cmocka_unit_test(claims_are_lost_with_their_connection_and_hold_the_lock_until_they_are_aborted),
		cmocka_unit_test(a_claim_has_a_deadline_of_its_own_whatever_else_is_answered),
		cmocka_unit_test(a_save_without_a_daemon_ends_with_a_reason),
		cmocka_unit_test(a_refusal_may_be_for_good_or_for_now),
		cmocka_unit_test(a_welcome_to_other_arenas_is_the_end),
		cmocka_unit_test(a_welcome_that_finds_no_room_is_tried_again),
		cmocka_unit_test(what_a_daemon_does_not_send_ends_the_connection),
		cmocka_unit_test(questions_are_answered_with_the_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What clients hold: leases and reservations. The states and crossings stand in server.h. */
#include "server/state.h"

#include "base/plant.h"

#include <string.h>

/* Ended requests are kept, with the memory that their paths have grown to, for the next ones; not those that have grown
 * beyond what nearly every request needs. */
#define FREE_REQUESTS_MAX 256u
#define FREE_REQUEST_BYTES_MAX (256u << 10)

/* ---- counting ---- */

static void count_held(struct fc_server_request *request, size_t offset, uint64_t amount, bool is_more)
{
	struct fc_server_held *held[] = {
		&request->server->held,
		&request->space->held,
		request->client == NULL ? NULL : &request->client->held,
	};
	for (size_t i = 0; i < fc_array_len(held); i++) {
		if (held[i] == NULL)
			continue;
		uint64_t *field = (uint64_t *)(void *)((char *)held[i] + offset);
		fc_check(is_more || *field >= amount);
		*field = is_more ? *field + amount : *field - amount;
	}
}

#define HELD(field) offsetof(struct fc_server_held, field)

/* What happened, in all three books. */
static void count_at(struct fc_server_client *client, size_t offset, uint64_t amount)
{
	struct fc_server_counters *books[] = {&client->server->counters, &client->space->counters, &client->counters};
	for (size_t i = 0; i < fc_array_len(books); i++)
		*(uint64_t *)(void *)((char *)books[i] + offset) += amount;
}

#define COUNT(client, field, amount) count_at(client, offsetof(struct fc_server_counters, field), amount)

static size_t held_by_state(enum fc_request_state state)
{
	switch (state) {
	case FC_REQUEST_LEASED:
		return HELD(leases);
	case FC_REQUEST_FENCED:
	case FC_REQUEST_ASKED:
		return HELD(claims_waiting);
	case FC_REQUEST_RESERVED:
		return HELD(claims_reserved);
	case FC_REQUEST_VISIBLE:
		return HELD(claims_visible);
	case FC_REQUEST_FREE:
		break;
	}
	fc_check(false);
	return 0;
}

static void set_state(struct fc_server_request *request, enum fc_request_state state)
{
	if (request->state != FC_REQUEST_FREE)
		count_held(request, held_by_state(request->state), 1, false);
	request->state = state;
	if (state != FC_REQUEST_FREE)
		count_held(request, held_by_state(state), 1, true);
}

/* ---- the life of a request's memory ---- */

static void free_memory(struct fc_server *server, struct fc_server_request *request)
{
	const struct fc_alloc *alloc = server->opts.alloc;
	fc_path_deinit(&request->path, alloc);
	fc_reservation_deinit(&request->claim.reservation, alloc);
	fc_alloc_free(alloc, request->keys, request->key_room * sizeof(*request->keys));
	fc_alloc_free(alloc, request->points, request->point_room * sizeof(*request->points));
	fc_alloc_free(alloc, request, sizeof(*request));
}

static struct fc_server_request *obtain(struct fc_server_client *client, uint64_t number)
{
	struct fc_server *server = client->server;
	struct fc_link *link = fc_list_pop(&server->free_requests);
	struct fc_server_request *request = NULL;
	if (link != NULL) {
		request = fc_container_of(link, struct fc_server_request, link);
		server->free_request_count--;
	} else {
		request = fc_alloc_zeroed(server->opts.alloc, sizeof(*request));
		if (request == NULL)
			return NULL;
	}
	request->server = server;
	request->client = client;
	request->space = client->space;
	request->space->request_count++;
	request->number = number;
	request->wish = FC_WISH_NONE;
	request->damage_count = 0;
	memset(request->reserved_in, 0, sizeof(request->reserved_in));
	request->since_ns = fc_server_now_ns(server);
	fc_list_push(&client->requests, &request->link);
	fc_list_push(&client->buckets[number % FC_REQUEST_BUCKETS], &request->bucket);
	return request;
}

static uint64_t path_bytes(const struct fc_path *path)
{
	return path->placed_room * sizeof(*path->placed) + path->span_room * sizeof(*path->spans);
}

static uint64_t measure(const struct fc_server_request *request)
{
	const struct fc_reservation *reservation = &request->claim.reservation;
	return path_bytes(&request->path) + path_bytes(&reservation->sources) +
	       reservation->grant_room * sizeof(*reservation->grants) + request->key_room * sizeof(*request->keys) +
	       request->point_room * sizeof(*request->points);
}

/* After what it holds has grown: it counts for its client. */
static void weigh(struct fc_server_request *request)
{
	struct fc_server_client *client = request->client;
	uint64_t limit = request->server->opts.limits.memory_bytes_max;
	uint64_t bytes = measure(request);
	client->memory_bytes += bytes - request->memory_bytes;
	request->memory_bytes = bytes;
	if (client->memory_bytes > limit)
		fc_server_client_fail(client, FC_SERVER_HELD_LIMIT,
				      "its requests take %llu bytes of the daemon's memory; at most %llu are allowed "
				      "(memory_bytes_max)",
				      (unsigned long long)client->memory_bytes, (unsigned long long)limit);
}

/* The client knows it no more. */
static void forget_number(struct fc_server_request *request)
{
	fc_list_remove(&request->bucket);
}

/* It holds nothing any more. */
static void end(struct fc_server_request *request)
{
	struct fc_server *server = request->server;
	fc_check(request->damage_count == 0);
	set_state(request, FC_REQUEST_FREE);
	forget_number(request);
	fc_list_remove(&request->link);
	fc_list_remove(&request->order);
	request->space->request_count--;
	if (request->client != NULL)
		request->client->memory_bytes -= request->memory_bytes;
	request->memory_bytes = 0;
	request->client = NULL;
	request->space = NULL;
	if (server->free_request_count >= FREE_REQUESTS_MAX || measure(request) > FREE_REQUEST_BYTES_MAX) {
		free_memory(server, request);
		return;
	}
	server->free_request_count++;
	fc_list_push(&server->free_requests, &request->link);
}

void fc_requests_deinit(struct fc_server *server)
{
	struct fc_link *link;
	fc_check(fc_list_is_empty(&server->unheard));
	while ((link = fc_list_pop(&server->free_requests)) != NULL)
		free_memory(server, fc_container_of(link, struct fc_server_request, link));
	fc_alloc_free(server->opts.alloc, server->keys, server->key_room * sizeof(*server->keys));
}

/* ---- numbers ---- */

struct fc_server_request *fc_server_client_find(struct fc_server_client *client, uint64_t number)
{
	fc_list_for_each(link, &client->buckets[number % FC_REQUEST_BUCKETS])
	{
		struct fc_server_request *request = fc_container_of(link, struct fc_server_request, bucket);
		if (request->number == number)
			return request;
	}
	return NULL;
}

bool fc_server_client_takes_number(struct fc_server_client *client, uint64_t number)
{
	if (number > client->last_request) {
		client->last_request = number;
		return true;
	}
	fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR,
			      "request %llu after request %llu; numbers ascend, and none is used twice",
			      (unsigned long long)number, (unsigned long long)client->last_request);
	return false;
}

/* The request of that number; NULL when it is gone, which may be a crossing, or never was, which is an error. */
static struct fc_server_request *known(struct fc_server_client *client, uint64_t number, const char *what)
{
	if (number > client->last_request)
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s of request %llu, which was never made",
				      what, (unsigned long long)number);
	return fc_server_client_find(client, number);
}

/* What is only held because somebody looks at it counts not against the client, which knows nothing of it. */
static bool has_room(struct fc_server_client *client, uint64_t held, const char *what)
{
	uint32_t requests_max = client->server->opts.limits.requests_max;
	if (held < (uint64_t)requests_max + client->damage_count)
		return true;
	fc_server_client_fail(client, FC_SERVER_HELD_LIMIT, "%s: %llu are open; at most %u are allowed (requests_max)",
			      what, (unsigned long long)held, requests_max);
	return false;
}

static bool check_keys(struct fc_server_client *client, uint64_t count, const char *what)
{
	uint64_t keys_max = client->server->opts.limits.keys_max;
	if (count <= keys_max)
		return true;
	fc_server_client_fail(client, FC_SERVER_HELD_LIMIT, "%s of %llu keys; at most %llu are allowed (keys_max)",
			      what, (unsigned long long)count, (unsigned long long)keys_max);
	return false;
}

/* ---- MATCH ---- */

static void on_matched(struct fc_lookup *lookup)
{
	(void)lookup; /* the local directory answers inside the question: `code` is all that is needed */
}

static int look_up(struct fc_server *server, const struct fc_wire_match *match, struct fc_path *path)
{
	struct fc_lookup lookup = {
		.keys = server->keys,
		.key_count = match->key_count,
		.blocks_max = match->blocks_max,
		.is_unleased = !match->is_leased,
		.path = path,
		.code = FC_EAGAIN,
		.answered_cb = on_matched,
	};
	server->directory->ops->match(server->directory, &lookup);
	fc_check(lookup.code != FC_EAGAIN);
	return lookup.code;
}

static int copy_keys(struct fc_server_client *client, const struct fc_wire_keys *found, struct fc_key **keys,
		     uint64_t *room)
{
	int code = fc_alloc_reserve(client->server->opts.alloc, (void **)keys, room, found->count, sizeof(**keys));
	if (code == FC_OK)
		fc_wire_keys_copy(found, client->space->salt, *keys);
	return code;
}

static void match(struct fc_server_client *client, struct fc_server_request *request, const struct fc_wire_match *match)
{
	struct fc_server *server = client->server;
	struct fc_path *path = &request->path;
	int code = copy_keys(client, &match->found, &server->keys, &server->key_room);
	if (code == FC_OK)
		code = look_up(server, match, path);
	bool is_hit = code == FC_OK && path->blocks > 0;
	COUNT(client, matches, 1);
	COUNT(client, keys_asked, match->key_count);
	COUNT(client, matches_hit, is_hit);
	COUNT(client, blocks_matched, is_hit ? path->blocks : 0);
	if (code == FC_OK && path->is_leased && !is_hit)
		server->directory->ops->release(server->directory, path);
	fc_server_client_sent(client, fc_wire_put_matched(&client->output, request->number, code, path));
	if (code == FC_OK && path->is_leased) {
		COUNT(client, leases_granted, 1);
		set_state(request, FC_REQUEST_LEASED);
		fc_list_push(&server->leases, &request->order);
		weigh(request);
	} else {
		end(request);
	}
}

static void count_time(struct fc_server_client *client, uint64_t duration_ns)
{
	struct fc_server_counters *books[] = {&client->server->counters, &client->space->counters, &client->counters};
	uint32_t bucket = fc_wire_time_bucket(duration_ns);
	for (size_t i = 0; i < fc_array_len(books); i++) {
		books[i]->match_time.counts[bucket]++;
		books[i]->match_time.sum_ns += duration_ns;
	}
}

void fc_server_client_match(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes)
{
	struct fc_wire_match message;
	struct fc_error error = {0};
	uint64_t began_ns = fc_server_now_ns(client->server);
	if (!fc_server_client_takes_number(client, number) || !has_room(client, client->held.leases, "MATCH"))
		return;
	if (fc_wire_get_match(&message, body, bytes, &error) != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s", error.text);
		return;
	}
	if (!check_keys(client, message.key_count, "MATCH"))
		return;
	struct fc_server_request *request = obtain(client, number);
	if (request == NULL)
		fc_server_client_sent(client, fc_wire_put_matched(&client->output, number, FC_ENOMEM, NULL));
	else
		match(client, request, &message);
	count_time(client, fc_server_now_ns(client->server) - began_ns);
}

/* ---- RESERVE ---- */

static void refuse_reserve(struct fc_server_client *client, uint64_t number, const struct fc_error *why)
{
	COUNT(client, reserves_refused, 1);
	fc_server_client_sent(client, fc_wire_put_reserved(&client->output, number, why->code, NULL, why));
}

/* In whole chunks, as the others miss them. */
static uint64_t grant_bytes(const struct fc_server *server, const struct fc_reservation *reservation,
			    enum fc_medium medium)
{
	const struct fc_superblock *superblock = fc_catalog_superblock(server->catalog, medium);
	uint64_t sum = 0;
	for (uint32_t i = 0; i < reservation->grant_count; i++) {
		const struct fc_placed *placed = &reservation->grants[i].placed;
		uint64_t bytes = 0;
		if (fc_gva_medium(placed->base) != medium)
			continue;
		fc_check(fc_shape_bytes(server->opts.geometry, placed->shape, placed->align, &bytes) == FC_OK);
		sum += fc_align_up(bytes, superblock->chunk_bytes);
	}
	return sum;
}

static void count_reserved(struct fc_server_request *request, bool is_more)
{
	static const size_t bytes_in[FC_MEDIUM_COUNT] = {HELD(reserved_in[FC_MEMORY]), HELD(reserved_in[FC_SSD])};
	static const size_t claims_in[FC_MEDIUM_COUNT] = {HELD(claims_in[FC_MEMORY]), HELD(claims_in[FC_SSD])};
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		count_held(request, claims_in[medium], request->reserved_in[medium] > 0, is_more);
		count_held(request, bytes_in[medium], request->reserved_in[medium], is_more);
		count_held(request, HELD(reserved_bytes), request->reserved_in[medium], is_more);
	}
}

static void drop_reserved(struct fc_server_request *request)
{
	count_reserved(request, false);
	memset(request->reserved_in, 0, sizeof(request->reserved_in));
}

/* Gives back what a claim holds; the request goes on to its end. */
static void abort_claim(struct fc_server_request *request)
{
	struct fc_directory *directory = request->server->directory;
	directory->ops->abort(directory, &request->claim);
	drop_reserved(request);
}

static int check_reserved(const struct fc_server_client *client, const uint64_t bytes[FC_MEDIUM_COUNT],
			  struct fc_error *error)
{
	uint64_t limit = client->server->opts.limits.reserved_bytes_max;
	uint64_t sum = bytes[FC_MEMORY] + bytes[FC_SSD];
	if (sum <= limit && client->held.reserved_bytes <= limit - sum)
		return fc_share_check(client, bytes, error);
	return fc_error_set(error, FC_ELIMIT,
			    "save: %llu bytes on top of %llu that are reserved already; a client may have %llu at "
			    "once (reserved_bytes_max)",
			    (unsigned long long)sum, (unsigned long long)client->held.reserved_bytes,
			    (unsigned long long)limit);
}

static void grant(struct fc_server_request *request)
{
	struct fc_server_client *client = request->client;
	struct fc_server *server = request->server;
	struct fc_reservation *reservation = &request->claim.reservation;
	struct fc_error error = {0};
	uint64_t bytes[FC_MEDIUM_COUNT];
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		bytes[medium] = grant_bytes(server, reservation, (enum fc_medium)medium);
	if (check_reserved(client, bytes, &error) != FC_OK) {
		abort_claim(request);
		refuse_reserve(client, request->number, &error);
		end(request);
		return;
	}
	memcpy(request->reserved_in, bytes, sizeof(bytes));
	count_reserved(request, true);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		COUNT(client, bytes_granted[medium], bytes[medium]);
	set_state(request, FC_REQUEST_RESERVED);
	request->since_ns = fc_server_now_ns(server);
	fc_list_push(&server->reserved, &request->order);
	weigh(request);
	fc_server_client_sent(client, fc_wire_put_reserved(&client->output, request->number, FC_OK, reservation, NULL));
}

static struct fc_server_request *request_of(struct fc_claim *claim)
{
	return fc_container_of(claim, struct fc_server_request, claim);
}

static void on_reserved(struct fc_claim *claim)
{
	struct fc_server_request *request = request_of(claim);
	if (!fc_server_client_is_talking(request->client)) {
		if (claim->code == FC_OK)
			abort_claim(request);
		end(request);
		return;
	}
	if (claim->code == FC_OK) {
		grant(request);
		return;
	}
	claim->error.code = claim->code;
	if (claim->error.text[0] == 0)
		(void)fc_error_set(&claim->error, claim->code, "save: %s", fc_code_text(claim->code));
	if (claim->code == FC_EFULL && !claim->reservation.is_over_quota)
		fc_share_blame(request->client, &claim->error);
	refuse_reserve(request->client, request->number, &claim->error);
	end(request);
}

static void on_visible(struct fc_claim *claim)
{
	struct fc_server_request *request = request_of(claim);
	struct fc_server_client *client = request->client;
	struct fc_wire_committed message = {
		.code = claim->code,
		.segments_absorbed = claim->code == FC_OK ? claim->reservation.segments_absorbed : 0,
		.is_durable_coming = claim->state == FC_CLAIM_VISIBLE,
	};
	drop_reserved(request);
	fc_list_remove(&request->order);
	COUNT(client, commits, 1);
	COUNT(client, commits_failed, claim->code != FC_OK);
	if (claim->code == FC_OK) {
		COUNT(client, blocks_new, claim->reservation.blocks_new);
		COUNT(client, bytes_new, claim->reservation.bytes_new);
	}
	bool is_durable_coming = message.is_durable_coming;
	if (fc_is_planted(FC_PLANT_DURABLE_UNHEARD))
		message.is_durable_coming = false;
	if (fc_server_client_is_talking(client) && fc_link_is_linked(&request->bucket))
		fc_server_client_sent(client, fc_wire_put_committed(&client->output, request->number, &message));
	if (is_durable_coming)
		set_state(request, FC_REQUEST_VISIBLE);
	else
		end(request);
}

static void on_durable(struct fc_claim *claim)
{
	struct fc_server_request *request = request_of(claim);
	struct fc_server_client *client = request->client;
	if (claim->reservation.durable_code != FC_OK)
		fc_server_tell(request->server, FC_SERVER_NOT_DURABLE, client,
			       "a turn of %llu bytes could not be made durable, and is forgotten: %s",
			       (unsigned long long)claim->reservation.bytes_new, claim->reservation.durable_error.text);
	if (client != NULL && fc_server_client_is_talking(client) && fc_link_is_linked(&request->bucket))
		fc_server_client_sent(
			client, fc_wire_put_durable(&client->output, request->number, claim->reservation.durable_code));
	end(request);
}

static void ask(struct fc_server_request *request)
{
	struct fc_directory *directory = request->server->directory;
	set_state(request, FC_REQUEST_ASKED);
	directory->ops->reserve(directory, &request->claim);
}

/* The claim's own arrays: the body that the message lies in is gone when the answer comes. */
static int take_turn(struct fc_server_request *request, const struct fc_wire_reserve *message)
{
	struct fc_turn *turn = &request->claim.turn;
	*turn = message->turn;
	int code = copy_keys(request->client, &message->found, &request->keys, &request->key_room);
	if (code == FC_OK)
		code = fc_alloc_reserve(request->server->opts.alloc, (void **)&request->points, &request->point_room,
					turn->resume_point_count, sizeof(*request->points));
	if (code != FC_OK)
		return code;
	if (turn->resume_point_count > 0)
		memcpy(request->points, message->turn.resume_points,
		       turn->resume_point_count * sizeof(*request->points));
	turn->keys = request->keys;
	turn->resume_points = request->points;
	turn->session = fc_server_session_id(request->space->name, message->turn.session);
	turn->owner = request->space->owner;
	weigh(request);
	return FC_OK;
}

static void reserve(struct fc_server_request *request)
{
	struct fc_claim *claim = &request->claim;
	claim->error = (struct fc_error){0};
	claim->reserved_cb = on_reserved;
	claim->visible_cb = on_visible;
	claim->durable_cb = on_durable; /* lost_cb: the local directory loses nothing */
	if (!request->server->is_fenced) {
		ask(request);
		return;
	}
	set_state(request, FC_REQUEST_FENCED);
	fc_list_push(&request->server->fenced, &request->order);
}

void fc_server_client_reserve(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes)
{
	struct fc_server *server = client->server;
	struct fc_wire_reserve message;
	struct fc_error error = {0};
	uint64_t open = client->held.claims_waiting + client->held.claims_reserved + client->held.claims_visible;
	if (!fc_server_client_takes_number(client, number) || !has_room(client, open, "RESERVE"))
		return;
	if (fc_wire_get_reserve(&message, server->points, server->opts.geometry, body, bytes, &error) != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s", error.text);
		return;
	}
	if (!check_keys(client, message.turn.key_count, "RESERVE"))
		return;
	COUNT(client, reserves, 1);
	struct fc_server_request *request = obtain(client, number);
	int code = request == NULL ? FC_ENOMEM : take_turn(request, &message);
	if (code == FC_OK) {
		reserve(request);
		return;
	}
	(void)fc_error_set(&error, code, "save: %s", fc_code_text(code));
	refuse_reserve(client, number, &error);
	if (request != NULL)
		end(request);
}

/* ---- the ends ---- */

const struct fc_path *fc_request_path(const struct fc_server_request *request)
{
	if (request->state == FC_REQUEST_LEASED)
		return &request->path;
	return request->state == FC_REQUEST_RESERVED ? &request->claim.reservation.sources : NULL;
}

static void finish(struct fc_server_request *request)
{
	struct fc_server *server = request->server;
	if (request->state != FC_REQUEST_LEASED)
		abort_claim(request);
	else if (fc_server_client_is_talking(request->client) || !fc_is_planted(FC_PLANT_DEAD_LEASE))
		server->directory->ops->release(server->directory, &request->path);
	else
		request->path.is_leased = false;
	end(request);
}

/* Ends it as soon as nobody looks at what it holds. */
static void wish_end(struct fc_server_request *request)
{
	forget_number(request);
	if (request->state == FC_REQUEST_VISIBLE)
		return; /* nobody is told; it ends when it is durable */
	if (request->wish == FC_WISH_COMMIT)
		return; /* its commit goes on, and nobody is told */
	if (request->state != FC_REQUEST_LEASED && request->client != NULL)
		COUNT(request->client, aborts, 1);
	if (request->damage_count > 0) {
		request->wish = FC_WISH_END;
		fc_list_remove(&request->order); /* from now on it is not the client that holds it */
	} else {
		finish(request);
	}
}

static void commit(struct fc_server_request *request)
{
	struct fc_directory *directory = request->server->directory;
	directory->ops->commit(directory, &request->claim);
}

void fc_request_is_decided(struct fc_server_request *request)
{
	if (request->damage_count > 0)
		return;
	enum fc_request_wish wish = request->wish;
	request->wish = FC_WISH_NONE;
	if (wish == FC_WISH_END)
		finish(request);
	else if (wish == FC_WISH_COMMIT)
		commit(request);
}

void fc_server_client_release(struct fc_server_client *client, uint64_t number)
{
	struct fc_server_request *request = known(client, number, "RELEASE");
	if (request == NULL)
		return;
	if (request->state == FC_REQUEST_LEASED)
		wish_end(request);
	else
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "RELEASE of request %llu, which is a RESERVE",
				      (unsigned long long)number);
}

void fc_server_client_forget(struct fc_server_client *client, uint64_t number)
{
	struct fc_server_request *request = known(client, number, "FORGET");
	if (request != NULL && fc_is_planted(FC_PLANT_FORGET_CROSSED))
		forget_number(request);
	else if (request != NULL)
		wish_end(request);
}

void fc_server_client_abort(struct fc_server_client *client, uint64_t number)
{
	struct fc_server_request *request = known(client, number, "ABORT");
	if (request == NULL)
		return;
	if (request->state == FC_REQUEST_LEASED)
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "ABORT of request %llu, which is a MATCH",
				      (unsigned long long)number);
	else
		wish_end(request);
}

void fc_server_client_commit(struct fc_server_client *client, uint64_t number)
{
	struct fc_server_request *request = known(client, number, "COMMIT");
	if (client->state == FC_SERVER_CLOSING)
		return;
	if (request == NULL || request->state != FC_REQUEST_RESERVED || request->wish != FC_WISH_NONE) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR,
				      "COMMIT of request %llu, which holds no reservation", (unsigned long long)number);
		return;
	}
	if (request->damage_count > 0)
		request->wish = FC_WISH_COMMIT;
	else
		commit(request);
}

/* ---- all of a client ---- */

static void leave_unheard(struct fc_server_request *request)
{
	count_held(request, HELD(claims_visible), 1, false);
	request->client->memory_bytes -= request->memory_bytes;
	request->client = NULL;
	request->server->held.claims_visible++;
	request->space->held.claims_visible++;
	fc_list_remove(&request->link);
	fc_list_push(&request->server->unheard, &request->link);
}

void fc_server_client_drop_requests(struct fc_server_client *client)
{
	fc_list_for_each_safe(link, &client->requests)
	{
		struct fc_server_request *request = fc_container_of(link, struct fc_server_request, link);
		forget_number(request);
		fc_verify_drop(client->server, request);
		if (request->wish == FC_WISH_COMMIT)
			fc_request_is_decided(request); /* it was asked for in time */
	}
	fc_list_for_each_safe(link, &client->requests)
	{
		struct fc_server_request *request = fc_container_of(link, struct fc_server_request, link);
		request->wish = FC_WISH_NONE;
		if (request->state == FC_REQUEST_VISIBLE) {
			leave_unheard(request);
		} else if (request->state == FC_REQUEST_RESERVED && !fc_is_planted(FC_PLANT_EARLY_ORPHAN)) {
			COUNT(client, orphaned, 1);
			count_held(request, HELD(claims_orphaned), 1, true);
		} else {
			finish(request);
		}
	}
}

void fc_server_client_free_orphans(struct fc_server_client *client)
{
	fc_list_for_each_safe(link, &client->requests)
	{
		struct fc_server_request *request = fc_container_of(link, struct fc_server_request, link);
		fc_check(request->state == FC_REQUEST_RESERVED);
		COUNT(client, orphans_freed, 1);
		count_held(request, HELD(claims_orphaned), 1, false);
		finish(request);
	}
}

void fc_server_client_drop_unanswered(struct fc_server_client *client)
{
	fc_list_for_each_safe(link, &client->requests)
	{
		struct fc_server_request *request = fc_container_of(link, struct fc_server_request, link);
		if (request->state == FC_REQUEST_ASKED || request->state == FC_REQUEST_FENCED)
			finish(request);
	}
}

void fc_requests_unfence(struct fc_server *server)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&server->fenced)) != NULL)
		ask(fc_container_of(link, struct fc_server_request, order));
}

/* A client's connection: from bytes to messages, and how it ends. */
#include "server/state.h"

#include <stdio.h>
#include <string.h>

/* ---- telling ---- */

const char *fc_server_event_name(enum fc_server_event event)
{
	static const char *const names[FC_SERVER_EVENT_COUNT] = {
		[FC_SERVER_CONNECTED] = "connected",
		[FC_SERVER_DISCONNECTED] = "disconnected",
		[FC_SERVER_CLIENT_LIMIT] = "client_limit",
		[FC_SERVER_REFUSED_VERSION] = "refused_version",
		[FC_SERVER_REFUSED_GEOMETRY] = "refused_geometry",
		[FC_SERVER_REFUSED_NAMESPACE] = "refused_namespace",
		[FC_SERVER_REFUSED_STATE] = "refused_state",
		[FC_SERVER_PROTOCOL_ERROR] = "protocol_error",
		[FC_SERVER_HELD_LIMIT] = "held_limit",
		[FC_SERVER_UNSENT_LIMIT] = "unsent_limit",
		[FC_SERVER_LEASE_TIMEOUT] = "lease_timeout",
		[FC_SERVER_NO_MEMORY] = "no_memory",
		[FC_SERVER_ORPHANED] = "orphaned",
		[FC_SERVER_ORPHANS_FREED] = "orphans_freed",
		[FC_SERVER_DAMAGE_CONFIRMED] = "damage_confirmed",
		[FC_SERVER_DAMAGE_UNCONFIRMED] = "damage_unconfirmed",
		[FC_SERVER_FENCE_OVER] = "fence_over",
		[FC_SERVER_DRAINING] = "draining",
		[FC_SERVER_NOT_DURABLE] = "not_durable",
		[FC_SERVER_RESERVATION_OLD] = "reservation_old",
	};
	return event > 0 && event < FC_SERVER_EVENT_COUNT ? names[event] : "unknown";
}

const char *fc_server_state_name(enum fc_server_client_state state)
{
	switch (state) {
	case FC_SERVER_GREETING:
		return "greeting";
	case FC_SERVER_UP:
		return "up";
	case FC_SERVER_LEAVING:
		return "leaving";
	case FC_SERVER_CLOSING:
		return "closing";
	case FC_SERVER_GONE:
		return "gone";
	}
	return "unknown";
}

static void tell(struct fc_server *server, enum fc_server_event event, struct fc_server_client *client,
		 const char *format, va_list arguments)
{
	char text[FC_ERROR_TEXT_BYTES];
	vsnprintf(text, sizeof(text), format, arguments);
	server->counters.events[event]++;
	if (client != NULL) {
		client->counters.events[event]++;
		FC_COUNT_AT(client->space, counters.events[event], 1);
	}
	if (server->opts.event != NULL)
		server->opts.event(server->opts.context, event, client, text);
}

void fc_server_tell(struct fc_server *server, enum fc_server_event event, struct fc_server_client *client,
		    const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	tell(server, event, client, format, arguments);
	va_end(arguments);
}

void fc_server_client_fail(struct fc_server_client *client, enum fc_server_event event, const char *format, ...)
{
	if (client->state == FC_SERVER_CLOSING || client->state == FC_SERVER_GONE)
		return;
	client->state = FC_SERVER_CLOSING;
	fc_list_remove(&client->hello_link);
	va_list arguments;
	va_start(arguments, format);
	tell(client->server, event, client, format, arguments);
	va_end(arguments);
	client->server->opts.wants_close(client->server->opts.context, client);
}

/* ---- output ---- */

/* The transport takes bytes from the front when it likes; what is missing since the last look has been sent. */
static void note_output(struct fc_server_client *client)
{
	struct fc_server *server = client->server;
	uint64_t unsent = client->output.used;
	if (unsent < client->output_bytes) {
		uint64_t sent = client->output_bytes - unsent;
		client->counters.bytes_sent += sent;
		server->counters.bytes_sent += sent;
		FC_COUNT_AT(client->space, counters.bytes_sent, sent);
	}
	client->output_bytes = unsent;
}

void fc_server_client_sent(struct fc_server_client *client, int code)
{
	struct fc_server *server = client->server;
	if (code != FC_OK) {
		fc_server_client_fail(client, code == FC_ENOMEM ? FC_SERVER_NO_MEMORY : FC_SERVER_UNSENT_LIMIT,
				      "an answer could not be put together: %s", fc_code_text(code));
		return;
	}
	client->output_bytes = client->output.used;
	if (client->output.used > server->opts.limits.unsent_bytes_max) {
		fc_server_client_fail(client, FC_SERVER_UNSENT_LIMIT,
				      "%llu bytes of answers wait to be read; at most %llu are kept (unsent_bytes_max)",
				      (unsigned long long)client->output.used,
				      (unsigned long long)server->opts.limits.unsent_bytes_max);
		return;
	}
	if (!client->is_output_told)
		server->opts.has_output(server->opts.context, client);
	client->is_output_told = true;
}

struct fc_wire_buffer *fc_server_output(struct fc_server_client *client)
{
	client->is_output_told = false;
	return &client->output;
}

bool fc_server_client_is_welcome(const struct fc_server_client *client)
{
	return client->is_welcome;
}

void *fc_server_client_context(const struct fc_server_client *client)
{
	return client->context;
}

uint64_t fc_server_client_number(const struct fc_server_client *client)
{
	return client->number;
}

/* ---- messages ---- */

/* Engines load and save by themselves, so what they have done is what their reports say. */
static void add_reported(struct fc_stats *stats, const struct fc_wire_report *report)
{
	stats->loads += report->loads;
	stats->loads_active += report->loads_active;
	stats->saves += report->saves;
	stats->saves_active += report->saves_active;
	stats->ready_length += report->ready_length;
	stats->prepare_length += report->prepare_length;
	stats->checksum_failures += report->checksum_failures;
	stats->io_errors += report->io_errors;
}

/* A namespace of the settings is told what is its own: how much others keep, and do, is not for it. */
static void answer_stats(struct fc_server_client *client, uint64_t number)
{
	struct fc_stats stats = {0};
	if (!fc_server_client_takes_number(client, number))
		return;
	const struct fc_server_space *space = client->space;
	if (space->owner == 0)
		fc_core_stats(client->server->opts.core, &stats);
	else if (fc_catalog_stats_of(client->server->catalog, space->owner, &stats) == FC_OK)
		stats.leases = space->held.leases;
	add_reported(&stats, space->owner == 0 ? &client->server->report : &space->report);
	fc_server_client_sent(client, fc_wire_put_stated(&client->output, number, &stats));
}

static void answer_session(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes)
{
	struct fc_session_id id;
	struct fc_error error = {0};
	uint64_t blocks = 0;
	if (!fc_server_client_takes_number(client, number))
		return;
	if (fc_wire_get_session(&id, body, bytes, &error) != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s", error.text);
		return;
	}
	id = fc_server_session_id(client->space->name, id);
	int code = fc_catalog_session_blocks(client->server->catalog, id, &blocks);
	fc_server_client_sent(client, fc_wire_put_session_found(&client->output, number, code, blocks));
}

static void leave(struct fc_server_client *client)
{
	client->has_said_goodbye = true;
	client->state = FC_SERVER_LEAVING;
}

/* What asks for something. After the daemon's goodbye it is left unanswered: the client asks the next one. */
static void handle_question(struct fc_server_client *client, const struct fc_wire_header *header, const uint8_t *body)
{
	if (client->has_said_goodbye) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s after GOODBYE",
				      fc_wire_type_name(header->type));
		return;
	}
	if (client->server->is_draining) {
		(void)fc_server_client_takes_number(client, header->request);
		return;
	}
	switch (header->type) {
	case FC_WIRE_MATCH:
		fc_server_client_match(client, header->request, body, header->body_bytes);
		break;
	case FC_WIRE_RESERVE:
		fc_server_client_reserve(client, header->request, body, header->body_bytes);
		break;
	case FC_WIRE_STATS:
		answer_stats(client, header->request);
		break;
	default:
		answer_session(client, header->request, body, header->body_bytes);
		break;
	}
}

static void handle(struct fc_server_client *client, const struct fc_wire_header *header, const uint8_t *body)
{
	switch (header->type) {
	case FC_WIRE_MATCH:
	case FC_WIRE_RESERVE:
	case FC_WIRE_STATS:
	case FC_WIRE_SESSION:
		handle_question(client, header, body);
		break;
	case FC_WIRE_RELEASE:
		fc_server_client_release(client, header->request);
		break;
	case FC_WIRE_FORGET:
		fc_server_client_forget(client, header->request);
		break;
	case FC_WIRE_COMMIT:
		fc_server_client_commit(client, header->request);
		break;
	case FC_WIRE_ABORT:
		fc_server_client_abort(client, header->request);
		break;
	case FC_WIRE_DAMAGE:
		fc_server_client_damage(client, header->request, body, header->body_bytes);
		break;
	case FC_WIRE_REPORT:
		fc_server_client_report(client, body, header->body_bytes);
		break;
	case FC_WIRE_GOODBYE:
		leave(client);
		break;
	default:
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR,
				      "%s: only a daemon sends it or, HELLO, nobody twice",
				      fc_wire_type_name(header->type));
		break;
	}
}

static void receive_message(struct fc_server_client *client, const struct fc_wire_header *header, const uint8_t *body)
{
	struct fc_server *server = client->server;
	client->counters.messages++;
	server->counters.messages++;
	FC_COUNT_AT(client->space, counters.messages, 1);
	client->last_message_ns = fc_server_now_ns(server);
	if (client->state != FC_SERVER_GREETING)
		handle(client, header, body);
	else if (header->type == FC_WIRE_HELLO)
		fc_server_client_greet(client, body, header->body_bytes);
	else
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s before HELLO",
				      fc_wire_type_name(header->type));
}

/* Says no to a body that is longer than anything allowed here before it is waited for. */
static int check_length(const struct fc_server_client *client, struct fc_error *error)
{
	struct fc_wire_header header;
	if (client->input.used < FC_WIRE_HEADER_BYTES)
		return FC_EAGAIN;
	int code = fc_wire_header_decode(&header, client->input.bytes, error);
	if (code == FC_OK && client->state == FC_SERVER_GREETING && header.type != FC_WIRE_HELLO)
		return fc_error_set(error, FC_EFORMAT, "%s before HELLO", fc_wire_type_name(header.type));
	if (code == FC_OK && header.body_bytes > client->server->body_bytes_max)
		return fc_error_set(error, FC_ELIMIT, "%s of %llu bytes; at most %llu are allowed (keys_max)",
				    fc_wire_type_name(header.type), (unsigned long long)header.body_bytes,
				    (unsigned long long)client->server->body_bytes_max);
	return code;
}

static bool is_heard(const struct fc_server_client *client)
{
	return client->state == FC_SERVER_GREETING || fc_server_client_is_talking(client);
}

void fc_server_received(struct fc_server_client *client, const void *bytes, uint64_t count)
{
	struct fc_server *server = client->server;
	if (!is_heard(client))
		return;
	note_output(client);
	client->counters.bytes_received += count;
	server->counters.bytes_received += count;
	FC_COUNT_AT(client->space, counters.bytes_received, count);
	if (fc_wire_buffer_add(&client->input, bytes, count) != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_NO_MEMORY, "no memory for %llu bytes of a message",
				      (unsigned long long)count);
		return;
	}
	while (is_heard(client)) {
		struct fc_wire_header header;
		const uint8_t *body = NULL;
		struct fc_error error = {0};
		int code = check_length(client, &error);
		if (code == FC_OK)
			code = fc_wire_next(&client->input, &header, &body, &error);
		if (code == FC_EAGAIN)
			return;
		if (code != FC_OK) {
			fc_server_client_fail(client,
					      code == FC_ELIMIT ? FC_SERVER_HELD_LIMIT : FC_SERVER_PROTOCOL_ERROR, "%s",
					      error.text);
			return;
		}
		receive_message(client, &header, body);
		fc_wire_buffer_drop(&client->input, FC_WIRE_HEADER_BYTES + header.body_bytes);
	}
}

/* ---- beginning and end ---- */

static int refuse_connect(struct fc_server *server, const struct fc_server_peer *peer, int code, struct fc_error *error)
{
	enum fc_server_event event = code == FC_ENOMEM ? FC_SERVER_NO_MEMORY : FC_SERVER_CLIENT_LIMIT;
	if (code == FC_ENOMEM)
		(void)fc_error_set(error, code, "process %d of user %u: no memory for another client", peer->pid,
				   peer->uid);
	else
		(void)fc_error_set(
			error, code,
			"process %d of user %u: there are %u clients, which is the limit (clients_max); %u of "
			"them are gone and their locks still held",
			peer->pid, peer->uid, server->client_count + server->gone_count, server->gone_count);
	fc_server_tell(server, event, NULL, "%s", error->text);
	return code;
}

int fc_server_connect(struct fc_server *server, const struct fc_server_peer *peer, void *context,
		      struct fc_server_client **result, struct fc_error *error)
{
	if (server->client_count + server->gone_count >= server->opts.limits.clients_max)
		return refuse_connect(server, peer, FC_ELIMIT, error);
	struct fc_server_client *client = fc_alloc_zeroed(server->opts.alloc, sizeof(*client));
	if (client == NULL)
		return refuse_connect(server, peer, FC_ENOMEM, error);
	client->server = server;
	client->state = FC_SERVER_GREETING;
	client->number = ++server->next_number;
	client->peer = *peer;
	client->context = context;
	client->connected_ns = client->last_message_ns = fc_server_now_ns(server);
	fc_list_init(&client->requests);
	for (uint32_t i = 0; i < FC_REQUEST_BUCKETS; i++)
		fc_list_init(&client->buckets[i]);
	fc_wire_buffer_init(&client->input, server->opts.alloc);
	fc_wire_buffer_init(&client->output, server->opts.alloc);
	fc_list_push(&server->clients, &client->link);
	fc_list_push(&server->greeting, &client->hello_link);
	server->client_count++;
	*result = client;
	return FC_OK;
}

void fc_server_disconnected(struct fc_server_client *client)
{
	struct fc_server *server = client->server;
	fc_check(client->state != FC_SERVER_GONE);
	note_output(client);
	client->state = FC_SERVER_GONE;
	fc_list_remove(&client->hello_link);
	fc_wire_buffer_deinit(&client->input);
	fc_wire_buffer_deinit(&client->output);
	client->output_bytes = 0;
	server->client_count--;
	server->gone_count++;
	fc_report_forget(client);
	fc_server_client_drop_requests(client);
	fc_server_tell(server, FC_SERVER_DISCONNECTED, client, "client %llu is disconnected",
		       (unsigned long long)client->number);
	if (client->held.claims_orphaned > 0)
		fc_server_tell(server, FC_SERVER_ORPHANED, client,
			       "client %llu leaves %llu reservations, which wait until its lock is free",
			       (unsigned long long)client->number, (unsigned long long)client->held.claims_orphaned);
}

void fc_server_client_free(struct fc_server_client *client)
{
	struct fc_server *server = client->server;
	fc_server_client_free_orphans(client);
	fc_check(fc_list_is_empty(&client->requests));
	if (client->space != NULL)
		client->space->client_count--;
	fc_list_remove(&client->link);
	server->gone_count--;
	fc_alloc_free(server->opts.alloc, client, sizeof(*client));
}

void fc_server_unlocked(struct fc_server_client *client)
{
	fc_check(client->state == FC_SERVER_GONE);
	uint64_t orphans = client->held.claims_orphaned;
	if (orphans > 0)
		fc_server_tell(client->server, FC_SERVER_ORPHANS_FREED, client,
			       "client %llu: its lock is free, and with it %llu reservations",
			       (unsigned long long)client->number, (unsigned long long)orphans);
	fc_server_client_free(client);
}

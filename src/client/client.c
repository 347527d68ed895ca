/* A client's connection: its states, and what becomes of open requests when it ends. */
#include "client/state.h"

#include "base/plant.h"

#include <string.h>

/* ---- open and close ---- */

static int copy_name(char *to, size_t room, const char *from, const char *what, struct fc_error *error)
{
	if (strlen(from) >= room)
		return fc_error_set(error, FC_EINVAL, "%s \"%s\"; at most %zu bytes are allowed", what, from, room - 1);
	if (!fc_wire_is_printable(from))
		return fc_error_set(error, FC_EINVAL, "%s: UTF-8 is allowed, without control characters", what);
	memcpy(to, from, strlen(from) + 1);
	return FC_OK;
}

int fc_client_open(struct fc_client **result, const struct fc_client_opts *opts, struct fc_error *error)
{
	struct fc_client *client = fc_alloc_zeroed(opts->alloc, sizeof(*client));
	if (client == NULL)
		return fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
	client->opts = *opts;
	client->directory.ops = &fc_client_ops;
	client->next_request = client->first_request = 1;
	client->down_since_ns = fc_client_now_ns(client);
	fc_wire_buffer_init(&client->input, opts->alloc);
	fc_wire_buffer_init(&client->output, opts->alloc);
	fc_list_init(&client->lookups);
	fc_list_init(&client->questions);
	fc_list_init(&client->claims);
	int code = copy_name(client->name_space, sizeof(client->name_space), opts->name_space, "namespace", error);
	if (code == FC_OK)
		code = copy_name(client->program, sizeof(client->program), opts->program, "program", error);
	if (code != FC_OK) {
		fc_client_free(client);
		return code;
	}
	*result = client;
	return FC_OK;
}

void fc_client_free(struct fc_client *client)
{
	if (client == NULL)
		return;
	fc_client_cancel_questions(client);
	fc_check(fc_list_is_empty(&client->lookups) && fc_list_is_empty(&client->claims));
	fc_wire_buffer_deinit(&client->input);
	fc_wire_buffer_deinit(&client->output);
	fc_alloc_free(client->opts.alloc, client, sizeof(*client));
}

/* ---- questions about it ---- */

struct fc_directory *fc_client_directory(struct fc_client *client)
{
	return &client->directory;
}

enum fc_client_state fc_client_state(const struct fc_client *client)
{
	return client->state;
}

const struct fc_wire_welcome *fc_client_welcome(const struct fc_client *client)
{
	return &client->welcome;
}

uint64_t fc_client_welcome_count(const struct fc_client *client)
{
	return client->welcome_count;
}

const struct fc_error *fc_client_refusal(const struct fc_client *client)
{
	return &client->refusal;
}

struct fc_wire_buffer *fc_client_output(struct fc_client *client)
{
	return &client->output;
}

bool fc_client_wants_close(const struct fc_client *client)
{
	return client->wants_close;
}

bool fc_client_may_unlock(const struct fc_client *client)
{
	return client->state != FC_CLIENT_UP && (client->lost_count == 0 || fc_is_planted(FC_PLANT_EARLY_UNLOCK));
}

/* ---- the connection ---- */

void fc_client_connected(struct fc_client *client)
{
	struct fc_wire_hello hello = {
		.version_min = FC_WIRE_VERSION_MIN,
		.version_max = FC_WIRE_VERSION_MAX,
		.geometry = *client->opts.geometry,
	};
	fc_check(client->state == FC_CLIENT_DOWN);
	memcpy(hello.name_space, client->name_space, sizeof(hello.name_space));
	memcpy(hello.program, client->program, sizeof(hello.program));
	client->state = FC_CLIENT_GREETING;
	client->wants_close = false;
	if (fc_is_planted(FC_PLANT_NUMBERS_ANEW))
		client->next_request = 1;
	client->first_request = client->next_request;
	fc_client_sent(client, fc_wire_put_hello(&client->output, &hello));
}

/* The end of a claim that its connection leaves behind. */
static void lose_claim(struct fc_client *client, struct fc_claim *claim)
{
	if (claim->state == FC_CLAIM_RESERVED && fc_is_planted(FC_PLANT_COMMIT_OF_THE_LOST))
		return;
	if (claim->state == FC_CLAIM_RESERVED || claim->state == FC_CLAIM_COMMITTING) {
		claim->state = FC_CLAIM_LOST;
		client->lost_count++;
		claim->lost_cb(claim);
	} else if (claim->state == FC_CLAIM_VISIBLE) {
		fc_list_remove(&claim->link);
		claim->state = FC_CLAIM_NONE;
		claim->reservation.durable_pending = 0;
		claim->reservation.durable_code =
			fc_error_set(&claim->reservation.durable_error, FC_ECANCELED,
				     "the connection ended before the daemon had told; it may have become so");
		claim->durable_cb(claim);
	}
}

void fc_client_disconnected(struct fc_client *client)
{
	if (client->state == FC_CLIENT_UP)
		client->down_since_ns = fc_client_now_ns(client);
	if (client->state != FC_CLIENT_REFUSED)
		client->state = FC_CLIENT_DOWN;
	client->wants_close = false;
	fc_wire_buffer_drop(&client->input, client->input.used);
	fc_wire_buffer_drop(&client->output, client->output.used);
	fc_list_for_each(link, &client->lookups)
	{
		fc_container_of(link, struct fc_lookup, link)->request = 0;
	}
	fc_list_for_each(link, &client->questions)
	{
		fc_container_of(link, struct fc_question, link)->request = 0;
	}
	fc_list_for_each_safe(link, &client->claims)
	{
		lose_claim(client, fc_container_of(link, struct fc_claim, link));
	}
	client->directory.progress++;
}

static int on_welcome(struct fc_client *client, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_wire_welcome welcome;
	int code = fc_wire_get_welcome(&welcome, body, bytes, error);
	if (code == FC_OK && (welcome.version < FC_WIRE_VERSION_MIN || welcome.version > FC_WIRE_VERSION_MAX))
		code = fc_error_set(error, FC_EFORMAT, "WELCOME: version %u; %u to %u were offered", welcome.version,
				    FC_WIRE_VERSION_MIN, FC_WIRE_VERSION_MAX);
	if (code != FC_OK)
		return code;
	code = client->opts.welcome_cb(client->opts.context, &welcome, error);
	if (code != FC_OK) {
		/* What this process lacks now it may have at the next try. */
		if (code != FC_ENOMEM && code != FC_ESYSTEM)
			client->state = FC_CLIENT_REFUSED;
		return code;
	}
	client->welcome = welcome;
	client->welcome_count++;
	client->state = FC_CLIENT_UP;
	client->refusal = (struct fc_error){0};
	fc_client_send_all(client);
	return FC_OK;
}

static int on_refused(struct fc_client *client, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_wire_refused refused;
	int code = fc_wire_get_refused(&refused, body, bytes, error);
	if (code != FC_OK)
		return code;
	if (refused.is_final)
		client->state = FC_CLIENT_REFUSED;
	return fc_error_set(error, refused.error.code, "flatcaked refuses: %s", refused.error.text);
}

static int on_message(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		      struct fc_error *error)
{
	if (header->type == FC_WIRE_REFUSED)
		return on_refused(client, body, header->body_bytes, error);
	if (client->state == FC_CLIENT_UP)
		return fc_client_answer(client, header, body, error);
	if (header->type == FC_WIRE_WELCOME)
		return on_welcome(client, body, header->body_bytes, error);
	return fc_error_set(error, FC_EFORMAT, "message of type %u before WELCOME", header->type);
}

int fc_client_received(struct fc_client *client, const void *bytes, uint64_t count, struct fc_error *error)
{
	struct fc_error why = {0};
	struct fc_wire_header header;
	const uint8_t *body;
	int code = fc_wire_buffer_add(&client->input, bytes, count);
	if (fc_is_planted(FC_PLANT_ANY_PROGRESS))
		client->directory.progress++;
	while (code == FC_OK) {
		code = fc_wire_next(&client->input, &header, &body, &why);
		if (code == FC_EAGAIN)
			return FC_OK; /* the rest is still to come */
		if (code == FC_OK)
			code = on_message(client, &header, body, &why);
		if (code == FC_OK)
			fc_wire_buffer_drop(&client->input, FC_WIRE_HEADER_BYTES + header.body_bytes);
	}
	if (why.code == FC_OK)
		fc_error_set(&why, code, "connection: %s", fc_code_text(code));
	client->refusal = why;
	client->wants_close = true;
	return fc_error_set(error, code, "%s", why.text);
}

void fc_client_report(struct fc_client *client, const struct fc_wire_report *report)
{
	if (client->state == FC_CLIENT_UP)
		fc_client_sent(client, fc_wire_put_report(&client->output, report));
}

void fc_client_cancel_questions(struct fc_client *client)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&client->questions)) != NULL) {
		struct fc_question *question = fc_container_of(link, struct fc_question, link);
		question->code = FC_ECANCELED;
		question->answered_cb(question);
	}
}

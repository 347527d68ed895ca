/* How a client is let in, or why not. */
#include "server/state.h"

#include <stdio.h>

static void describe_arena(const struct fc_server *server, enum fc_medium medium, struct fc_wire_arena *arena)
{
	const struct fc_media *media = server->opts.media[medium];
	const struct fc_superblock *superblock = fc_catalog_superblock(server->catalog, medium);
	*arena = (struct fc_wire_arena){0};
	if (media == NULL || superblock == NULL)
		return;
	*arena = (struct fc_wire_arena){
		.is_there = true,
		.is_durable = media->is_durable,
		.align = superblock->align,
		.bytes = media->bytes,
	};
}

static void welcome(struct fc_server_client *client, uint32_t version)
{
	const struct fc_server *server = client->server;
	struct fc_wire_welcome message = {
		.version = version,
		.client = client->number,
		.instance = server->opts.instance,
		.key_salt = client->space->salt,
		.area_bytes_max = server->area_bytes_max,
		.requests_max = server->opts.limits.requests_max,
	};
	char process[64] = "a process of another container";
	if (client->peer.pid != 0)
		snprintf(process, sizeof(process), "process %d", client->peer.pid);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		describe_arena(server, (enum fc_medium)medium, &message.arenas[medium]);
	client->state = FC_SERVER_UP;
	client->is_welcome = true;
	fc_list_remove(&client->hello_link);
	fc_server_tell(client->server, FC_SERVER_CONNECTED, client,
		       "client %llu: %s of user %u, \"%s\", namespace \"%s\"", (unsigned long long)client->number,
		       process, client->peer.uid, client->program, client->space->name);
	fc_server_client_sent(client, fc_wire_put_welcome(&client->output, &message));
}

static void refuse(struct fc_server_client *client, enum fc_server_event why, const struct fc_error *error)
{
	struct fc_wire_refused message = {.error = *error};
	/* Room for a namespace, memory and another daemon may be there later; the rest is as the operator set it. */
	message.is_final = error->code != FC_ENOMEM && error->code != FC_ELIMIT && error->code != FC_EAGAIN;
	fc_server_client_sent(client, fc_wire_put_refused(&client->output, &message));
	fc_server_client_fail(client, why, "%s", error->text);
}

/* FC_OK, or `why` says what does not fit. */
static int check_hello(struct fc_server_client *client, const struct fc_wire_hello *hello, uint32_t *version,
		       struct fc_server_space **space, enum fc_server_event *why, struct fc_error *error)
{
	struct fc_server *server = client->server;
	*why = FC_SERVER_REFUSED_VERSION;
	int code = fc_wire_choose_version(hello, version, error);
	if (code != FC_OK)
		return code;
	*why = FC_SERVER_REFUSED_STATE;
	if (server->is_draining)
		return fc_error_set(error, FC_EAGAIN, "the daemon is stopping");
	*why = FC_SERVER_REFUSED_GEOMETRY;
	code = fc_geometry_same(server->opts.geometry, &hello->geometry, error);
	if (code != FC_OK)
		return code;
	*why = FC_SERVER_REFUSED_NAMESPACE;
	return fc_space_for(server, hello->name_space, &client->peer, space, error);
}

void fc_server_client_greet(struct fc_server_client *client, const uint8_t *body, uint64_t bytes)
{
	struct fc_server *server = client->server;
	struct fc_wire_hello *hello = &server->hello;
	struct fc_error error = {0};
	struct fc_server_space *space = NULL;
	uint32_t version = 0;
	int code = fc_wire_get_hello(hello, body, bytes, &error);
	if (code != FC_OK) {
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "%s", error.text);
		return;
	}
	snprintf(client->program, sizeof(client->program), "%s", hello->program);
	enum fc_server_event why;
	code = check_hello(client, hello, &version, &space, &why, &error);
	if (code != FC_OK) {
		refuse(client, why, &error);
		return;
	}
	client->space = space;
	space->client_count++;
	welcome(client, version);
}

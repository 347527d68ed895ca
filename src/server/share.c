/* What one process may have reserved of an arena, and whose reservations are in whose way.
 *
 * What is reserved is written by its client without asking, so it cannot be taken back while that process lives: one
 * that is stopped (SIGSTOP, a debugger) may go on at any time, with a write. It withholds what it has reserved for as
 * long as it is stopped. Therefore what it can have reserved is bounded, in each arena:
 *
 *     |<-------------------------- arena --------------------------->|
 *     |  process A: at most a share  |  B: a share  | ...   | a share |
 *
 *   1. Reservations of the connections of one process take together no more than reserved_share of the arena, in whole
 *      chunks.
 *   2. One that is larger is granted to a process that has nothing else reserved there, if at least a share of the
 *      arena stays without reservations: a single save may be large, also in a small arena.
 *
 * So the others always keep a share at least, however long somebody is stopped. A process that cannot be seen from here
 * (in another container) has no number: then the connection stands for it. What several processes hold adds up; a quota
 * bounds a namespace, since what is reserved counts there.
 *
 * A refusal names who holds most. A reservation that has become old is told of once; the oldest is for metrics. */
#include "server/state.h"

#include "base/plant.h"

#include <stdio.h>

static bool is_same_process(const struct fc_server_client *one, const struct fc_server_client *other)
{
	return one == other ||
	       (one->peer.pid != 0 && one->peer.pid == other->peer.pid && one->peer.uid == other->peer.uid);
}

/* What the process of `client` has reserved there. */
static uint64_t held_by(const struct fc_server_client *client, int medium)
{
	uint64_t bytes = 0;
	fc_list_for_each(link, &client->server->clients)
	{
		const struct fc_server_client *other = fc_container_of(link, struct fc_server_client, link);
		if (is_same_process(client, other))
			bytes += other->held.reserved_in[medium];
	}
	return bytes;
}

static int check_arena(const struct fc_server_client *client, int medium, uint64_t bytes, struct fc_error *error)
{
	const struct fc_server *server = client->server;
	uint64_t arena_bytes = server->opts.media[medium]->bytes;
	uint64_t share_bytes = (uint64_t)((double)arena_bytes * server->opts.limits.reserved_share);
	uint64_t own_bytes = held_by(client, medium);
	uint64_t all_bytes = server->held.reserved_in[medium];
	bool is_within = bytes <= share_bytes && own_bytes <= share_bytes - bytes;
	bool leaves_a_share = bytes <= arena_bytes - share_bytes && all_bytes <= arena_bytes - share_bytes - bytes;
	if (is_within || (own_bytes == 0 && leaves_a_share) || fc_is_planted(FC_PLANT_NO_SHARE))
		return FC_OK;
	return fc_error_set(error, FC_ELIMIT,
			    "save: %llu bytes on top of %llu that process %d has reserved of %llu; at most %llu are "
			    "allowed at once, or a single save that leaves as many without reservations, where %llu "
			    "are reserved in all (reserved_share)",
			    (unsigned long long)bytes, (unsigned long long)own_bytes, client->peer.pid,
			    (unsigned long long)arena_bytes, (unsigned long long)share_bytes,
			    (unsigned long long)all_bytes);
}

int fc_share_check(const struct fc_server_client *client, const uint64_t bytes[FC_MEDIUM_COUNT], struct fc_error *error)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		int code = bytes[medium] == 0 ? FC_OK : check_arena(client, medium, bytes[medium], error);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

/* ---- who is in the way ---- */

#define NAMED_BYTES 256

static void name(const struct fc_server_client *client, char text[NAMED_BYTES])
{
	char process[32] = "a process of another container";
	if (client->peer.pid != 0)
		snprintf(process, sizeof(process), "process %d", client->peer.pid);
	snprintf(text, NAMED_BYTES, "%s (\"%s\", namespace \"%s\")", process, client->program,
		 client->space == NULL ? "" : client->space->name);
}

static uint64_t age_s(const struct fc_server *server, uint64_t since_ns)
{
	uint64_t now_ns = fc_server_now_ns(server);
	return now_ns > since_ns ? (now_ns - since_ns) / 1000000000u : 0;
}

static uint64_t oldest_of(const struct fc_server_client *client)
{
	uint64_t oldest_ns = UINT64_MAX;
	fc_list_for_each(link, &client->requests)
	{
		const struct fc_server_request *request = fc_container_of(link, struct fc_server_request, link);
		if (request->state == FC_REQUEST_RESERVED)
			oldest_ns = fc_min_u64(oldest_ns, request->since_ns);
	}
	return oldest_ns;
}

void fc_share_blame(const struct fc_server_client *client, struct fc_error *error)
{
	const struct fc_server *server = client->server;
	const struct fc_server_client *holder = NULL;
	fc_list_for_each(link, &server->clients)
	{
		const struct fc_server_client *other = fc_container_of(link, struct fc_server_client, link);
		if (other != client && other->held.reserved_bytes > 0 &&
		    (holder == NULL || other->held.reserved_bytes > holder->held.reserved_bytes))
			holder = other;
	}
	if (holder == NULL)
		return;
	char why[NAMED_BYTES], who[NAMED_BYTES];
	snprintf(why, sizeof(why), "%.*s", NAMED_BYTES - 1, error->text);
	name(holder, who);
	(void)fc_error_set(error, error->code, "%s; %llu bytes are reserved by %s, the oldest for %llu s", why,
			   (unsigned long long)holder->held.reserved_bytes, who,
			   (unsigned long long)age_s(server, oldest_of(holder)));
}

/* ---- what is old ---- */

static struct fc_server_request *first_of(const struct fc_link *list)
{
	return fc_list_is_empty(list) ? NULL : fc_container_of(list->next, struct fc_server_request, order);
}

static uint64_t old_at_ns(const struct fc_server_request *request)
{
	uint64_t end_ns, old_ns = request->server->opts.limits.reserved_old_ns;
	return fc_add_overflows(request->since_ns, old_ns, &end_ns) ? UINT64_MAX : end_ns;
}

/* One message for a client that has several. */
static bool is_told_already(const struct fc_server_request *request)
{
	fc_list_for_each(link, &request->server->reserved_long)
	{
		if (fc_container_of(link, struct fc_server_request, order)->client == request->client)
			return true;
	}
	return false;
}

unsigned fc_share_step(struct fc_server *server, uint64_t now_ns)
{
	unsigned done = 0;
	for (struct fc_server_request *request;
	     (request = first_of(&server->reserved)) != NULL && old_at_ns(request) <= now_ns; done++) {
		struct fc_server_client *client = request->client;
		char who[NAMED_BYTES];
		name(client, who);
		if (!is_told_already(request))
			fc_server_tell(server, FC_SERVER_RESERVATION_OLD, client,
				       "client %llu: %s has reserved %llu bytes and neither committed nor given back "
				       "for %llu s: nobody else can have them until it goes on or its process ends",
				       (unsigned long long)client->number, who,
				       (unsigned long long)client->held.reserved_bytes,
				       (unsigned long long)age_s(server, request->since_ns));
		fc_list_remove(&request->order);
		fc_list_push(&server->reserved_long, &request->order);
	}
	return done;
}

uint64_t fc_share_wake_ns(const struct fc_server *server)
{
	const struct fc_server_request *request = first_of(&server->reserved);
	return request == NULL ? UINT64_MAX : old_at_ns(request);
}

uint64_t fc_share_oldest_ns(const struct fc_server *server)
{
	const struct fc_server_request *request = first_of(&server->reserved_long);
	if (request == NULL)
		request = first_of(&server->reserved);
	return request == NULL ? 0 : request->since_ns;
}

/* The server's frame: opening, time, stopping, and what operators see. */
#include "server/state.h"

#include "base/plant.h"

/* Of a message, besides its keys: resume points, fixed fields. */
#define BODY_BYTES_BESIDES_KEYS (FC_WIRE_POINTS_MAX * 8ull + 65536)
#define SECOND_NS 1000000000ull

void fc_server_limits_init(struct fc_server_limits *limits)
{
	*limits = (struct fc_server_limits){
		.clients_max = 256,
		.requests_max = 4096,
		.reserved_bytes_max = 64ull << 30,
		.reserved_share = 0.25,
		.reserved_old_ns = 60 * SECOND_NS,
		.unsent_bytes_max = 64ull << 20,
		.memory_bytes_max = 256ull << 20,
		.keys_max = 1ull << 20,
		.damages_max = 64,
		.hello_timeout_ns = 5 * SECOND_NS,
		.lease_timeout_ns = 600 * SECOND_NS,
		.io_timeout_ns = 30 * SECOND_NS,
	};
}

static int check_limits(const struct fc_server_limits *limits, struct fc_error *error)
{
	const struct {
		const char *name;
		uint64_t value, max;
	} rows[] = {
		{"clients_max", limits->clients_max, 65536},
		{"requests_max", limits->requests_max, 1u << 20},
		{"reserved_bytes_max", limits->reserved_bytes_max, UINT64_MAX},
		{"unsent_bytes_max", limits->unsent_bytes_max, UINT64_MAX},
		{"memory_bytes_max", limits->memory_bytes_max, UINT64_MAX},
		{"keys_max", limits->keys_max,
		 (FC_WIRE_BODY_BYTES_MAX - BODY_BYTES_BESIDES_KEYS) / sizeof(struct fc_key)},
		{"damages_max", limits->damages_max, 4096},
		{"reserved_old_ns", limits->reserved_old_ns, UINT64_MAX},
		{"hello_timeout_ns", limits->hello_timeout_ns, UINT64_MAX},
		{"lease_timeout_ns", limits->lease_timeout_ns, UINT64_MAX},
		{"io_timeout_ns", limits->io_timeout_ns, UINT64_MAX},
	};
	for (size_t i = 0; i < fc_array_len(rows); i++)
		if (rows[i].value == 0 || rows[i].value > rows[i].max)
			return fc_error_set(error, FC_EINVAL, "%s %llu; 1 to %llu is allowed", rows[i].name,
					    (unsigned long long)rows[i].value, (unsigned long long)rows[i].max);
	if (!(limits->reserved_share > 0 && limits->reserved_share <= 1))
		return fc_error_set(error, FC_EINVAL, "reserved_share %g; more than 0, up to 1, is allowed",
				    limits->reserved_share);
	return FC_OK;
}

int fc_server_open(struct fc_server **result, const struct fc_server_opts *opts, struct fc_error *error)
{
	int code = check_limits(&opts->limits, error);
	if (code != FC_OK)
		return code;
	struct fc_server *server = fc_alloc_zeroed(opts->alloc, sizeof(*server));
	if (server == NULL)
		return fc_error_set(error, FC_ENOMEM, "server: %s", fc_code_text(FC_ENOMEM));
	server->opts = *opts;
	server->catalog = fc_core_catalog(opts->core);
	server->directory = fc_core_directory(opts->core);
	fc_check(server->catalog != NULL);
	server->area_bytes_max = fc_core_area_bytes_max(opts->core);
	server->body_bytes_max = opts->limits.keys_max * sizeof(struct fc_key) + BODY_BYTES_BESIDES_KEYS;
	server->is_fenced = opts->is_fenced && !fc_is_planted(FC_PLANT_NO_FENCE);
	struct fc_link *lists[] = {&server->clients,  &server->greeting,      &server->spaces,
				   &server->leases,   &server->fenced,        &server->unheard,
				   &server->reserved, &server->reserved_long, &server->free_requests};
	for (size_t i = 0; i < fc_array_len(lists); i++)
		fc_list_init(lists[i]);
	code = fc_verify_init(server);
	if (code != FC_OK)
		code = fc_error_set(error, code, "server: %s", fc_code_text(code));
	else
		code = fc_spaces_init(server, error);
	if (code != FC_OK) {
		fc_server_free(server);
		return code;
	}
	*result = server;
	return FC_OK;
}

void fc_server_free(struct fc_server *server)
{
	if (server == NULL)
		return;
	fc_check(server->client_count == 0);
	fc_list_for_each_safe(link, &server->clients)
	{
		fc_server_client_free(fc_container_of(link, struct fc_server_client, link));
	}
	fc_requests_deinit(server);
	fc_spaces_deinit(server);
	fc_verify_deinit(server);
	fc_alloc_free(server->opts.alloc, server, sizeof(*server));
}

/* ---- time ---- */

static uint64_t after(uint64_t since_ns, uint64_t duration_ns)
{
	uint64_t end_ns;
	return fc_add_overflows(since_ns, duration_ns, &end_ns) ? UINT64_MAX : end_ns;
}

static struct fc_server_client *next_greeting(const struct fc_server *server)
{
	if (fc_list_is_empty(&server->greeting))
		return NULL;
	return fc_container_of(server->greeting.next, struct fc_server_client, hello_link);
}

/* The oldest lease whose client is still to be blamed for it. */
static struct fc_server_request *oldest_lease(const struct fc_server *server)
{
	fc_list_for_each(link, &server->leases)
	{
		struct fc_server_request *request = fc_container_of(link, struct fc_server_request, order);
		if (fc_server_client_is_talking(request->client))
			return request;
	}
	return NULL;
}

static unsigned end_late_greetings(struct fc_server *server, uint64_t now_ns)
{
	unsigned done = 0;
	uint64_t timeout_ns = server->opts.limits.hello_timeout_ns;
	for (struct fc_server_client *client;
	     (client = next_greeting(server)) != NULL &&
	     after(client->connected_ns, timeout_ns) + fc_is_planted(FC_PLANT_WAKE_FOR_NOTHING) <= now_ns;
	     done++)
		fc_server_client_fail(client, FC_SERVER_PROTOCOL_ERROR, "no HELLO in %llu ms",
				      (unsigned long long)(timeout_ns / 1000000));
	return done;
}

static unsigned end_late_leases(struct fc_server *server, uint64_t now_ns)
{
	unsigned done = 0;
	uint64_t timeout_ns = server->opts.limits.lease_timeout_ns;
	for (struct fc_server_request *request;
	     (request = oldest_lease(server)) != NULL && after(request->since_ns, timeout_ns) <= now_ns; done++)
		fc_server_client_fail(request->client, FC_SERVER_LEASE_TIMEOUT,
				      "the lease of request %llu is older than %llu s (lease_timeout)",
				      (unsigned long long)request->number,
				      (unsigned long long)(timeout_ns / SECOND_NS));
	return done;
}

unsigned fc_server_step(struct fc_server *server)
{
	uint64_t now_ns = fc_server_now_ns(server);
	return end_late_greetings(server, now_ns) + end_late_leases(server, now_ns) + fc_share_step(server, now_ns) +
	       fc_verify_step(server);
}

uint64_t fc_server_wake_ns(const struct fc_server *server)
{
	uint64_t wake_ns = fc_min_u64(fc_verify_wake_ns(server), fc_share_wake_ns(server));
	const struct fc_server_client *client = next_greeting(server);
	const struct fc_server_request *request = oldest_lease(server);
	if (client != NULL)
		wake_ns = fc_min_u64(wake_ns, after(client->connected_ns, server->opts.limits.hello_timeout_ns));
	if (request != NULL)
		wake_ns = fc_min_u64(wake_ns, after(request->since_ns, server->opts.limits.lease_timeout_ns));
	return wake_ns;
}

void fc_server_fence_is_over(struct fc_server *server)
{
	if (!server->is_fenced)
		return;
	server->is_fenced = false;
	fc_server_tell(server, FC_SERVER_FENCE_OVER, NULL, "no process of the daemon before can write any more");
	fc_requests_unfence(server);
}

/* ---- stopping ---- */

void fc_server_drain(struct fc_server *server)
{
	if (server->is_draining)
		return;
	server->is_draining = true;
	fc_server_tell(server, FC_SERVER_DRAINING, NULL, "stopping: %u clients are told", server->client_count);
	fc_list_for_each(link, &server->clients)
	{
		struct fc_server_client *client = fc_container_of(link, struct fc_server_client, link);
		if (!fc_server_client_is_talking(client))
			continue;
		fc_server_client_drop_unanswered(client);
		client->state = FC_SERVER_LEAVING;
		fc_server_client_sent(client, fc_wire_put_plain(&client->output, FC_WIRE_GOODBYE, 0));
	}
}

bool fc_server_is_drained(const struct fc_server *server)
{
	const struct fc_server_held *held = &server->held;
	return server->is_draining && held->claims_reserved == held->claims_orphaned && held->claims_visible == 0;
}

void fc_server_end_orphans(struct fc_server *server)
{
	fc_check(server->is_draining && server->client_count == 0);
	fc_list_for_each(link, &server->clients)
	{
		fc_server_client_free_orphans(fc_container_of(link, struct fc_server_client, link));
	}
}

bool fc_server_is_at_rest(const struct fc_server *server)
{
	return !server->look.is_io_open;
}

/* ---- for operators ---- */

/* When the oldest of the requests in that state was granted; 0: there is none. */
static uint64_t oldest_ns(const struct fc_server_client *client, enum fc_request_state state)
{
	uint64_t oldest_ns = 0;
	fc_list_for_each(link, &client->requests)
	{
		const struct fc_server_request *request = fc_container_of(link, struct fc_server_request, link);
		if (request->state == state && (oldest_ns == 0 || request->since_ns < oldest_ns))
			oldest_ns = request->since_ns;
	}
	return oldest_ns;
}

void fc_server_clients(const struct fc_server *server,
		       bool (*each)(void *context, const struct fc_server_client_info *info), void *context)
{
	fc_list_for_each(link, &server->clients)
	{
		const struct fc_server_client *client = fc_container_of(link, struct fc_server_client, link);
		struct fc_server_client_info info = {
			.number = client->number,
			.state = client->state,
			.peer = client->peer,
			.program = client->program,
			.name_space = client->space == NULL ? "" : client->space->name,
			.connected_ns = client->connected_ns,
			.last_message_ns = client->last_message_ns,
			.counters = client->counters,
			.held = client->held,
			.report = client->report,
			.reported_ns = client->reported_ns,
		};
		info.held.unsent_bytes = client->output.used;
		info.oldest_lease_ns = oldest_ns(client, FC_REQUEST_LEASED);
		info.oldest_reservation_ns = oldest_ns(client, FC_REQUEST_RESERVED);
		if (!each(context, &info))
			return;
	}
}

static uint64_t unsent_bytes(const struct fc_server *server, const struct fc_server_space *space, uint32_t *clients)
{
	uint64_t bytes = 0;
	fc_list_for_each(link, &server->clients)
	{
		const struct fc_server_client *client = fc_container_of(link, struct fc_server_client, link);
		if (client->state == FC_SERVER_GONE || (space != NULL && client->space != space))
			continue;
		bytes += client->output.used;
		++*clients;
	}
	return bytes;
}

void fc_server_namespaces(const struct fc_server *server,
			  bool (*each)(void *context, const struct fc_server_namespace_info *info), void *context)
{
	fc_list_for_each(link, &server->spaces)
	{
		const struct fc_server_space *space = fc_container_of(link, struct fc_server_space, link);
		struct fc_server_namespace_info info = {
			.name = space->name,
			.tag = space->tag,
			.counters = space->counters,
			.held = space->held,
			.report = space->report,
		};
		info.held.unsent_bytes = unsent_bytes(server, space, &info.clients);
		if (!each(context, &info))
			return;
	}
}

void fc_server_totals(const struct fc_server *server, struct fc_server_totals *totals)
{
	uint32_t connected = 0;
	*totals = (struct fc_server_totals){
		.clients = server->client_count,
		.clients_gone = server->gone_count,
		.is_fenced = server->is_fenced,
		.is_draining = server->is_draining,
		.verifies_waiting = server->damages_waiting,
		.oldest_reservation_ns = fc_share_oldest_ns(server),
		.counters = server->counters,
		.held = server->held,
		.report = server->report,
	};
	totals->held.unsent_bytes = unsent_bytes(server, NULL, &connected);
}

/* What the files of the server share. Nobody outside src/server includes this. */
#ifndef FC_SERVER_STATE_H
#define FC_SERVER_STATE_H

#include "base/check.h"
#include "base/list.h"
#include "server/server.h"

#define FC_REQUEST_BUCKETS 256u

enum fc_request_state {
	FC_REQUEST_FREE = 0,
	FC_REQUEST_LEASED = 1,
	FC_REQUEST_FENCED = 2, /* a reserve that waits for the fence */
	FC_REQUEST_ASKED = 3,
	FC_REQUEST_RESERVED = 4,
	FC_REQUEST_VISIBLE = 5,
};

/* What the client wants of a request while what it holds is being looked at. */
enum fc_request_wish {
	FC_WISH_NONE = 0,
	FC_WISH_END = 1, /* release or abort; the client knows it no more */
	FC_WISH_COMMIT = 2,
};

struct fc_server_request {
	struct fc_link link;   /* client->requests, server->unheard, or server->free_requests */
	struct fc_link bucket; /* client->buckets, while the client knows it */
	struct fc_link order;  /* server->leases, ->fenced, ->reserved or ->reserved_long */
	struct fc_server *server;
	struct fc_server_client *client; /* NULL: nobody is told any more */
	struct fc_server_space *space;   /* the namespace, where it is counted */
	uint64_t number;
	enum fc_request_state state;
	enum fc_request_wish wish;
	uint32_t damage_count; /* reports about it that are not decided */
	uint64_t since_ns;     /* granted, or asked */
	struct fc_path path;   /* LEASED */
	struct fc_claim claim; /* the others */
	struct fc_key *keys;   /* of the claim */
	uint64_t key_room;
	uint64_t *points;
	uint64_t point_room;
	uint64_t reserved_in[FC_MEDIUM_COUNT];
	uint64_t memory_bytes; /* as it counts for the client */
};

/* A namespace. */
struct fc_server_space {
	struct fc_server *server;
	struct fc_link link; /* server->spaces */
	char name[FC_WIRE_NAMESPACE_BYTES];
	uint16_t tag;
	struct fc_key salt;
	const struct fc_server_namespace_opts *opts; /* NULL: taken as it came */
	uint16_t owner;                              /* the tag, where the catalog counts what it keeps; else 0 */
	uint32_t client_count;                       /* gone ones included */
	uint64_t request_count;
	struct fc_server_counters counters;
	struct fc_server_held held;
	struct fc_wire_report report;
};

struct fc_server_client {
	struct fc_server *server;
	struct fc_link link;       /* server->clients */
	struct fc_link hello_link; /* server->greeting, while it is expected to greet */
	enum fc_server_client_state state;
	uint64_t number;
	struct fc_server_peer peer;
	void *context;
	struct fc_server_space *space; /* NULL before the hello */
	char program[FC_NAME_BYTES];
	bool is_welcome, has_said_goodbye;
	uint64_t connected_ns, last_message_ns;
	uint64_t last_request; /* the highest number that it has used */
	struct fc_link requests;
	struct fc_link buckets[FC_REQUEST_BUCKETS];
	uint32_t damage_count; /* reports of it that are not decided */
	uint64_t memory_bytes; /* of its requests */
	struct fc_wire_buffer input, output;
	bool is_output_told;
	uint64_t output_bytes; /* in `output` when it was last looked at: what is missing has been sent */
	struct fc_server_counters counters;
	struct fc_server_held held;
	struct fc_wire_report report;
	uint64_t reported_ns;
};

/* One report of damage. */
struct fc_damage {
	struct fc_link link; /* server->damages, or free */
	struct fc_server_request *request;
	uint32_t placed;
	uint64_t entry;
};

/* What the look at one slice is about; see verify.c. */
struct fc_look {
	struct fc_damage *damage; /* NULL: none. Of an abandoned one only the I/O is waited for */
	const struct fc_placed *placed;
	const struct fc_range *range;
	struct fc_key key;
	uint64_t entry;
	struct fc_layer_area area;
	uint64_t slice_offset, slice_bytes, checksum_offset; /* in the arena */
	uint64_t done_bytes;
	bool has_checksum;
	uint32_t checksum;
	struct fc_io io;
	bool is_io_open, has_io_ended;
	uint64_t io_offset; /* of what the I/O was for */
	uint64_t started_ns;
	void *hash; /* of the slice so far */
};

struct fc_server {
	struct fc_server_opts opts;
	struct fc_catalog *catalog;
	struct fc_directory *directory;
	uint64_t area_bytes_max;
	uint64_t body_bytes_max;
	struct fc_link clients;
	struct fc_link greeting; /* who has not said hello, in the order they came */
	uint32_t client_count, gone_count;
	uint64_t next_number;
	struct fc_link spaces;
	uint32_t space_count;
	struct fc_link leases; /* of all clients, oldest first */
	struct fc_link fenced; /* reserves that wait for the fence, in order */
	struct fc_link reserved,
		reserved_long;  /* RESERVED, oldest first; the second: told of, and older than the first */
	struct fc_link unheard; /* requests of clients that are gone, VISIBLE */
	struct fc_link free_requests;
	uint32_t free_request_count;
	bool is_fenced, is_draining;
	struct fc_server_counters counters;
	struct fc_server_held held;
	struct fc_wire_report report;

	/* scratch of one message */
	struct fc_key *keys;
	uint64_t key_room;
	uint64_t points[FC_WIRE_POINTS_MAX];
	struct fc_wire_hello hello;
	struct fc_wire_report report_in;

	/* verify.c */
	struct fc_damage *damage_pool;
	struct fc_link damages, free_damages;
	uint64_t damage_count, damages_waiting;
	struct fc_look look;
	uint8_t *look_memory, *look_buffer; /* the second is aligned */
	uint64_t look_memory_bytes;
};

static inline uint64_t fc_server_now_ns(const struct fc_server *server)
{
	return fc_clock_now_ns(&server->opts.clock);
}

/* ---- counting: what happens to a request counts for the whole, its namespace, and its client while it is there ----
 */

#define FC_COUNT_AT(owner, field, amount)                                                                              \
	do {                                                                                                           \
		if ((owner) != NULL)                                                                                   \
			(owner)->field += (amount);                                                                    \
	} while (0)

/* ---- client.c ---- */

/* Ends the connection for a reason: told once, counted. */
void fc_server_client_fail(struct fc_server_client *client, enum fc_server_event event, const char *format, ...)
	FC_PRINTF(3, 4);
/* Whether messages to and from it still matter. */
static inline bool fc_server_client_is_talking(const struct fc_server_client *client)
{
	return client->state == FC_SERVER_UP || client->state == FC_SERVER_LEAVING;
}
/* After something was appended to its output, or could not be (`code`). */
void fc_server_client_sent(struct fc_server_client *client, int code);
void fc_server_tell(struct fc_server *server, enum fc_server_event event, struct fc_server_client *client,
		    const char *format, ...) FC_PRINTF(4, 5);
void fc_server_client_free(struct fc_server_client *client);

/* ---- share.c ---- */

/* FC_OK, or FC_ELIMIT with a text that names the process and its share. */
FC_MUST_USE int fc_share_check(const struct fc_server_client *client, const uint64_t bytes[FC_MEDIUM_COUNT],
			       struct fc_error *error);
/* An arena was too full for a save of `client`: adds to `error` which other process has most of it reserved, if any. */
void fc_share_blame(const struct fc_server_client *client, struct fc_error *error);
/* Tells of reservations that have become old. */
unsigned fc_share_step(struct fc_server *server, uint64_t now_ns);
uint64_t fc_share_wake_ns(const struct fc_server *server);
uint64_t fc_share_oldest_ns(const struct fc_server *server);

/* ---- hello.c ---- */

void fc_server_client_greet(struct fc_server_client *client, const uint8_t *body, uint64_t bytes);

/* ---- requests.c ---- */

/* A message about requests; ends the connection when it cannot be. */
void fc_server_client_match(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes);
void fc_server_client_reserve(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes);
void fc_server_client_release(struct fc_server_client *client, uint64_t number);
void fc_server_client_forget(struct fc_server_client *client, uint64_t number);
void fc_server_client_abort(struct fc_server_client *client, uint64_t number);
void fc_server_client_commit(struct fc_server_client *client, uint64_t number);
struct fc_server_request *fc_server_client_find(struct fc_server_client *client, uint64_t number);
/* Whether `number` may open a request: above all before it. */
bool fc_server_client_takes_number(struct fc_server_client *client, uint64_t number);
/* All of a client that is gone: what can go goes, reservations stay. */
void fc_server_client_drop_requests(struct fc_server_client *client);
/* Its reservations, when nothing of it can write any more. */
void fc_server_client_free_orphans(struct fc_server_client *client);
/* Reserves that were asked for and not granted, when the daemon stops: the client asks the next one. */
void fc_server_client_drop_unanswered(struct fc_server_client *client);
void fc_requests_unfence(struct fc_server *server);
/* No report about it is open any more: what the client wished meanwhile. */
void fc_request_is_decided(struct fc_server_request *request);
/* Sources of a reservation, or the leased path. */
const struct fc_path *fc_request_path(const struct fc_server_request *request);
void fc_requests_deinit(struct fc_server *server);

/* ---- namespace.c ---- */

/* FC_EINVAL with text: not known, not allowed, or its tag is taken. */
FC_MUST_USE int fc_space_for(struct fc_server *server, const char *name, const struct fc_server_peer *peer,
			     struct fc_server_space **space, struct fc_error *error);
FC_MUST_USE int fc_spaces_init(struct fc_server *server, struct fc_error *error);
void fc_spaces_deinit(struct fc_server *server);

/* ---- verify.c ---- */

FC_MUST_USE int fc_verify_init(struct fc_server *server);
void fc_verify_deinit(struct fc_server *server);
void fc_server_client_damage(struct fc_server_client *client, uint64_t number, const uint8_t *body, uint64_t bytes);
/* Nobody wants to know any more: a client is gone. */
void fc_verify_drop(struct fc_server *server, struct fc_server_request *request);
unsigned fc_verify_step(struct fc_server *server);
uint64_t fc_verify_wake_ns(const struct fc_server *server);

/* ---- report.c ---- */

void fc_server_client_report(struct fc_server_client *client, const uint8_t *body, uint64_t bytes);
/* What is "now" in the sums, without a client that is gone. */
void fc_report_forget(struct fc_server_client *client);

#endif

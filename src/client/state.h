/* What the files of the client share. Nobody outside src/client includes this. */
#ifndef FC_CLIENT_STATE_H
#define FC_CLIENT_STATE_H

#include "base/check.h"
#include "client/client.h"

struct fc_client {
	struct fc_directory directory;
	struct fc_client_opts opts;
	char name_space[FC_WIRE_NAMESPACE_BYTES];
	char program[FC_NAME_BYTES];
	enum fc_client_state state;
	struct fc_wire_welcome welcome;
	uint64_t welcome_count;
	struct fc_error refusal;
	struct fc_wire_buffer input, output;
	bool wants_close;
	uint64_t down_since_ns;
	uint64_t next_request;             /* over all connections */
	uint64_t first_request;            /* of this connection */
	struct fc_link lookups, questions; /* asked; request 0: not sent on this connection */
	struct fc_link claims;             /* in any state but NONE */
	uint64_t lost_count;               /* claims that were lost, and not aborted yet */
};

static inline struct fc_client *fc_client_of(const struct fc_directory *directory)
{
	return fc_container_of(directory, struct fc_client, directory);
}
static inline uint64_t fc_client_now_ns(const struct fc_client *client)
{
	return fc_clock_now_ns(&client->opts.clock);
}
/* A number that this connection has given out. */
static inline bool fc_client_is_current(const struct fc_client *client, uint64_t request)
{
	return client->state == FC_CLIENT_UP && request >= client->first_request;
}

/* ask.c: the directory's functions, and sending what waits */
extern const struct fc_directory_ops fc_client_ops;
void fc_client_send_all(struct fc_client *client);
/* Without memory for what must be said, the connection is of no use. */
void fc_client_sent(struct fc_client *client, int code);

/* answer.c */
FC_MUST_USE int fc_client_answer(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
				 struct fc_error *error);
void fc_client_forget_reservation(struct fc_reservation *reservation);

#endif

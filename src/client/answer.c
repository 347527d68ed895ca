/* The daemon's answers find who asked. One whose question was forgotten meanwhile is passed over: the message that
 * forgot it is on its way, and takes back what the answer gave. */
#include "client/state.h"

void fc_client_forget_reservation(struct fc_reservation *reservation)
{
	reservation->grant_count = 0;
	reservation->sources.placed_count = reservation->sources.span_count = 0;
	reservation->sources.is_leased = false;
}

/* ---- who asked ---- */

static struct fc_lookup *find_lookup(struct fc_client *client, uint64_t request)
{
	fc_list_for_each(link, &client->lookups)
	{
		struct fc_lookup *lookup = fc_container_of(link, struct fc_lookup, link);
		if (lookup->request == request)
			return lookup;
	}
	return NULL;
}

static struct fc_claim *find_claim(struct fc_client *client, uint64_t request, enum fc_claim_state state)
{
	fc_list_for_each(link, &client->claims)
	{
		struct fc_claim *claim = fc_container_of(link, struct fc_claim, link);
		if (claim->request == request && claim->state == state)
			return claim;
	}
	return NULL;
}

static struct fc_question *find_question(struct fc_client *client, uint64_t request, enum fc_question_kind kind)
{
	fc_list_for_each(link, &client->questions)
	{
		struct fc_question *question = fc_container_of(link, struct fc_question, link);
		if (question->request == request && question->kind == kind)
			return question;
	}
	return NULL;
}

/* ---- answers ---- */

static int on_matched(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		      struct fc_error *error)
{
	struct fc_lookup *lookup = find_lookup(client, header->request);
	if (lookup == NULL)
		return FC_OK;
	int lookup_code;
	int code = fc_wire_get_matched(&lookup_code, lookup->path, &client->welcome, client->opts.geometry,
				       client->opts.alloc, body, header->body_bytes, error);
	if (code != FC_OK)
		return code;
	if (lookup->path->blocks > lookup->key_count || (lookup->path->is_leased && lookup->is_unleased)) {
		lookup->path->is_leased = false;
		return fc_error_set(error, FC_EFORMAT,
				    "MATCHED: more than was asked for: %llu blocks of %llu, or a lease",
				    (unsigned long long)lookup->path->blocks, (unsigned long long)lookup->key_count);
	}
	fc_list_remove(&lookup->link);
	lookup->code = lookup_code;
	lookup->path->request = lookup->request;
	lookup->answered_cb(lookup);
	return FC_OK;
}

static int on_reserved(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		       struct fc_error *error)
{
	struct fc_claim *claim = find_claim(client, header->request, FC_CLAIM_ASKED);
	if (claim == NULL)
		return FC_OK;
	int code = fc_wire_get_reserved(&claim->code, &claim->reservation, &claim->error, &client->welcome,
					client->opts.geometry, client->opts.alloc, body, header->body_bytes, error);
	if (code != FC_OK)
		return code;
	claim->reservation.sources.request = claim->request;
	claim->reservation.sources.is_leased = false; /* they are held as long as the claim is */
	claim->state = claim->code == FC_OK ? FC_CLAIM_RESERVED : FC_CLAIM_NONE;
	if (claim->code != FC_OK)
		fc_list_remove(&claim->link);
	claim->reserved_cb(claim);
	return FC_OK;
}

static int on_committed(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
			struct fc_error *error)
{
	struct fc_claim *claim = find_claim(client, header->request, FC_CLAIM_COMMITTING);
	struct fc_wire_committed committed;
	int code = fc_wire_get_committed(&committed, body, header->body_bytes, error);
	if (code != FC_OK || claim == NULL)
		return code;
	claim->code = committed.code;
	claim->reservation.segments_absorbed = committed.segments_absorbed;
	claim->reservation.durable_pending = committed.is_durable_coming;
	fc_client_forget_reservation(&claim->reservation);
	bool is_durability_coming = committed.code == FC_OK && committed.is_durable_coming;
	claim->state = is_durability_coming ? FC_CLAIM_VISIBLE : FC_CLAIM_NONE;
	if (!is_durability_coming)
		fc_list_remove(&claim->link);
	claim->visible_cb(claim);
	return FC_OK;
}

static int on_durable(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		      struct fc_error *error)
{
	struct fc_claim *claim = find_claim(client, header->request, FC_CLAIM_VISIBLE);
	int durable_code;
	int code = fc_wire_get_durable(&durable_code, body, header->body_bytes, error);
	if (code != FC_OK || claim == NULL)
		return code;
	fc_list_remove(&claim->link);
	claim->state = FC_CLAIM_NONE;
	claim->reservation.durable_pending = 0;
	claim->reservation.durable_code = durable_code;
	if (durable_code != FC_OK)
		fc_error_set(&claim->reservation.durable_error, durable_code,
			     "the daemon, whose log says more, says: %s", fc_code_text(durable_code));
	claim->durable_cb(claim);
	return FC_OK;
}

static int on_stated(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		     struct fc_error *error)
{
	struct fc_question *question = find_question(client, header->request, FC_QUESTION_STATS);
	if (question == NULL)
		return FC_OK;
	int code = fc_wire_get_stated(&question->stats, body, header->body_bytes, error);
	if (code != FC_OK)
		return code;
	fc_list_remove(&question->link);
	question->code = FC_OK;
	question->answered_cb(question);
	return FC_OK;
}

static int on_session_found(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
			    struct fc_error *error)
{
	struct fc_question *question = find_question(client, header->request, FC_QUESTION_SESSION);
	if (question == NULL)
		return FC_OK;
	int code = fc_wire_get_session_found(&question->code, &question->blocks, body, header->body_bytes, error);
	if (code != FC_OK)
		return code;
	fc_list_remove(&question->link);
	question->answered_cb(question);
	return FC_OK;
}

static int on_goodbye(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		      struct fc_error *error)
{
	(void)client;
	(void)header;
	(void)body;
	(void)error;
	return FC_OK; /* the daemon answers what is under way, and closes */
}

int fc_client_answer(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
		     struct fc_error *error)
{
	static const struct {
		enum fc_wire_type type;
		int (*get)(struct fc_client *client, const struct fc_wire_header *header, const uint8_t *body,
			   struct fc_error *error);
	} answers[] = {
		{FC_WIRE_MATCHED, on_matched},     {FC_WIRE_RESERVED, on_reserved},
		{FC_WIRE_COMMITTED, on_committed}, {FC_WIRE_DURABLE, on_durable},
		{FC_WIRE_STATED, on_stated},       {FC_WIRE_SESSION_FOUND, on_session_found},
		{FC_WIRE_GOODBYE, on_goodbye},
	};
	for (size_t i = 0; i < fc_array_len(answers); i++)
		if (answers[i].type == header->type)
			return answers[i].get(client, header, body, error);
	return fc_error_set(error, FC_EFORMAT, "message of type %u, which a daemon does not send now", header->type);
}

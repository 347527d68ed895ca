/* What the core asks becomes messages; what cannot be sent now waits for the next connection. */
#include "client/state.h"

#include "base/plant.h"

void fc_client_sent(struct fc_client *client, int code)
{
	if (code != FC_OK)
		client->wants_close = true;
}

static void send_plain(struct fc_client *client, enum fc_wire_type type, uint64_t request)
{
	fc_client_sent(client, fc_wire_put_plain(&client->output, type, request));
}

/* ---- matches ---- */

static void send_match(struct fc_client *client, struct fc_lookup *lookup)
{
	struct fc_wire_match match = {
		.blocks_max = lookup->blocks_max,
		.is_leased = !lookup->is_unleased,
		.keys = lookup->keys,
		.key_count = lookup->key_count,
		.salt = client->welcome.key_salt,
	};
	lookup->request = client->next_request++;
	lookup->asked_ns = fc_client_now_ns(client);
	fc_client_sent(client, fc_wire_put_match(&client->output, lookup->request, &match));
}

static void client_match(struct fc_directory *directory, struct fc_lookup *lookup)
{
	struct fc_client *client = fc_client_of(directory);
	fc_check(!lookup->path->is_leased);
	lookup->path->placed_count = lookup->path->span_count = 0;
	lookup->path->blocks = lookup->path->stored_blocks = 0;
	lookup->path->bytes[FC_MEMORY] = lookup->path->bytes[FC_SSD] = 0;
	lookup->request = 0;
	lookup->asked_ns = fc_client_now_ns(client);
	fc_list_push(&client->lookups, &lookup->link);
	if (client->state == FC_CLIENT_UP)
		send_match(client, lookup);
}

static void client_forget(struct fc_directory *directory, struct fc_lookup *lookup)
{
	struct fc_client *client = fc_client_of(directory);
	fc_list_remove(&lookup->link);
	if (fc_client_is_current(client, lookup->request))
		send_plain(client, FC_WIRE_FORGET, lookup->request);
}

static void client_release(struct fc_directory *directory, struct fc_path *path)
{
	struct fc_client *client = fc_client_of(directory);
	if (!path->is_leased)
		return;
	path->is_leased = false;
	path->placed_count = path->span_count = 0;
	if (fc_client_is_current(client, path->request))
		send_plain(client, FC_WIRE_RELEASE, path->request);
}

static bool client_cut(struct fc_directory *directory, const struct fc_path *path, uint32_t placed, uint64_t entry,
		       bool is_checksum)
{
	struct fc_client *client = fc_client_of(directory);
	struct fc_wire_damage damage = {.placed = placed, .entry = entry, .is_checksum = is_checksum};
	if (fc_client_is_current(client, path->request))
		fc_client_sent(client, fc_wire_put_damage(&client->output, path->request, &damage));
	return false;
}

/* ---- claims ---- */

static void send_reserve(struct fc_client *client, struct fc_claim *claim)
{
	struct fc_wire_reserve reserve = {.turn = claim->turn, .salt = client->welcome.key_salt};
	claim->request = client->next_request++;
	claim->asked_ns = fc_client_now_ns(client);
	fc_client_sent(client, fc_wire_put_reserve(&client->output, claim->request, &reserve));
}

static void client_reserve(struct fc_directory *directory, struct fc_claim *claim)
{
	struct fc_client *client = fc_client_of(directory);
	struct fc_reservation *reservation = &claim->reservation;
	fc_check(reservation->grant_count == 0);
	reservation->session = claim->turn.session;
	reservation->blocks_new = reservation->bytes_new = reservation->segments_absorbed = 0;
	reservation->durable_pending = 0;
	reservation->durable_code = FC_OK;
	reservation->durable_error = (struct fc_error){0};
	claim->state = FC_CLAIM_ASKED;
	claim->request = 0;
	claim->asked_ns = fc_client_now_ns(client);
	fc_list_push(&client->claims, &claim->link);
	if (client->state == FC_CLIENT_UP)
		send_reserve(client, claim);
}

static void client_commit(struct fc_directory *directory, struct fc_claim *claim)
{
	fc_check(claim->state == FC_CLAIM_RESERVED);
	claim->state = FC_CLAIM_COMMITTING;
	claim->asked_ns = fc_client_now_ns(fc_client_of(directory));
	send_plain(fc_client_of(directory), FC_WIRE_COMMIT, claim->request);
}

static void client_abort(struct fc_directory *directory, struct fc_claim *claim)
{
	struct fc_client *client = fc_client_of(directory);
	if (claim->state == FC_CLAIM_NONE)
		return;
	fc_list_remove(&claim->link);
	fc_client_forget_reservation(&claim->reservation);
	if (claim->state == FC_CLAIM_LOST)
		client->lost_count--;
	else if (fc_client_is_current(client, claim->request) &&
		 (claim->state != FC_CLAIM_ASKED || !fc_is_planted(FC_PLANT_SILENT_ABORT)))
		send_plain(client, FC_WIRE_ABORT, claim->request);
	claim->state = FC_CLAIM_NONE;
}

/* ---- questions ---- */

static void send_question(struct fc_client *client, struct fc_question *question)
{
	question->request = client->next_request++;
	question->asked_ns = fc_client_now_ns(client);
	if (question->kind == FC_QUESTION_SESSION)
		fc_client_sent(client, fc_wire_put_session(&client->output, question->request, question->session));
	else
		send_plain(client, FC_WIRE_STATS, question->request);
}

static void client_ask(struct fc_directory *directory, struct fc_question *question)
{
	struct fc_client *client = fc_client_of(directory);
	question->request = 0;
	question->asked_ns = fc_client_now_ns(client);
	fc_list_push(&client->questions, &question->link);
	if (client->state == FC_CLIENT_UP)
		send_question(client, question);
}

/* ---- a new connection ---- */

void fc_client_send_all(struct fc_client *client)
{
	if (fc_is_planted(FC_PLANT_NOT_ASKED_AGAIN))
		return;
	fc_list_for_each(link, &client->lookups)
	{
		send_match(client, fc_container_of(link, struct fc_lookup, link));
	}
	fc_list_for_each(link, &client->claims)
	{
		struct fc_claim *claim = fc_container_of(link, struct fc_claim, link);
		if (claim->state == FC_CLAIM_ASKED)
			send_reserve(client, claim);
	}
	fc_list_for_each(link, &client->questions)
	{
		send_question(client, fc_container_of(link, struct fc_question, link));
	}
}

/* ---- time ---- */

/* When something that was asked has waited long enough: for an answer, or, with everything else, for a daemon. */
static uint64_t limit_ns(const struct fc_client *client, uint64_t asked_ns)
{
	bool is_up = client->state == FC_CLIENT_UP;
	uint64_t wait_ns = is_up ? client->opts.answer_timeout_ns : client->opts.reconnect_timeout_ns;
	uint64_t end_ns;
	return fc_add_overflows(is_up ? asked_ns : client->down_since_ns, wait_ns, &end_ns) ? UINT64_MAX : end_ns;
}

#define DURABLE_FACTOR 6 /* a disk's sync may take longer than an answer */

static bool is_waiting_for_room(const struct fc_client *client, const struct fc_claim *claim)
{
	return claim->state == FC_CLAIM_ASKED && client->state == FC_CLIENT_UP;
}

static uint64_t claim_limit_ns(const struct fc_client *client, const struct fc_claim *claim)
{
	uint64_t limit, wait_ns = 0;
	if (is_waiting_for_room(client, claim))
		wait_ns = fc_is_planted(FC_PLANT_ANY_PROGRESS) ? 0 : client->opts.claim_timeout_ns;
	else if (claim->state == FC_CLAIM_COMMITTING || claim->state == FC_CLAIM_ASKED)
		return limit_ns(client, claim->asked_ns);
	else if (claim->state == FC_CLAIM_VISIBLE)
		wait_ns = DURABLE_FACTOR * client->opts.answer_timeout_ns;
	return wait_ns == 0 || fc_add_overflows(claim->asked_ns, wait_ns, &limit) ? UINT64_MAX : limit;
}

static uint64_t client_wake_ns(const struct fc_directory *directory)
{
	const struct fc_client *client = fc_client_of(directory);
	uint64_t wake_ns = UINT64_MAX;
	fc_list_for_each(link, &client->lookups)
	{
		wake_ns =
			fc_min_u64(wake_ns, limit_ns(client, fc_container_of(link, struct fc_lookup, link)->asked_ns));
	}
	fc_list_for_each(link, &client->questions)
	{
		wake_ns = fc_min_u64(wake_ns,
				     limit_ns(client, fc_container_of(link, struct fc_question, link)->asked_ns));
	}
	fc_list_for_each(link, &client->claims)
	{
		const struct fc_claim *claim = fc_container_of(link, struct fc_claim, link);
		wake_ns = fc_min_u64(wake_ns, claim_limit_ns(client, claim));
	}
	return client->wants_close ? UINT64_MAX : wake_ns;
}

/* Nothing is stored, as far as anybody can tell. */
static unsigned give_up_lookups(struct fc_client *client, uint64_t now_ns)
{
	unsigned count = 0;
	fc_list_for_each_safe(link, &client->lookups)
	{
		struct fc_lookup *lookup = fc_container_of(link, struct fc_lookup, link);
		if (now_ns < limit_ns(client, lookup->asked_ns))
			continue;
		fc_list_remove(&lookup->link);
		lookup->code = FC_OK;
		lookup->answered_cb(lookup);
		count++;
	}
	return count;
}

static void refuse_late_claim(struct fc_client *client, struct fc_claim *claim)
{
	if (client->state != FC_CLIENT_UP) {
		claim->code = fc_error_set(&claim->error, FC_EAGAIN, "save: no connection to flatcaked");
		return;
	}
	send_plain(client, FC_WIRE_ABORT, claim->request); /* what it is still granted is not wanted */
	claim->code = fc_error_set(&claim->error, FC_ETIMEOUT,
				   "save: flatcaked has not answered in %llu ms whether there is room (io_timeout)",
				   (unsigned long long)(client->opts.claim_timeout_ns / 1000000));
}

static unsigned give_up_claims(struct fc_client *client, uint64_t now_ns)
{
	unsigned count = 0;
	fc_list_for_each_safe(link, &client->claims)
	{
		struct fc_claim *claim = fc_container_of(link, struct fc_claim, link);
		if (claim->state != FC_CLAIM_ASKED || now_ns < claim_limit_ns(client, claim))
			continue;
		fc_list_remove(&claim->link);
		claim->state = FC_CLAIM_NONE;
		refuse_late_claim(client, claim);
		claim->reserved_cb(claim);
		count++;
	}
	return count;
}

static unsigned give_up_questions(struct fc_client *client, uint64_t now_ns)
{
	unsigned count = 0;
	fc_list_for_each_safe(link, &client->questions)
	{
		struct fc_question *question = fc_container_of(link, struct fc_question, link);
		if (now_ns < limit_ns(client, question->asked_ns))
			continue;
		fc_list_remove(&question->link);
		question->code = FC_EAGAIN;
		question->answered_cb(question);
		count++;
	}
	return count;
}

/* A daemon that leaves a match without an answer is taken for dead. A reservation without one ends by itself. */
static unsigned client_poll(struct fc_directory *directory)
{
	struct fc_client *client = fc_client_of(directory);
	uint64_t now_ns = fc_client_now_ns(client);
	if (client->state != FC_CLIENT_UP)
		return give_up_lookups(client, now_ns) + give_up_claims(client, now_ns) +
		       give_up_questions(client, now_ns);
	unsigned count = give_up_claims(client, now_ns);
	if (client_wake_ns(directory) <= now_ns)
		client->wants_close = true;
	return count;
}

const struct fc_directory_ops fc_client_ops = {
	.match = client_match,
	.forget = client_forget,
	.release = client_release,
	.cut = client_cut,
	.reserve = client_reserve,
	.commit = client_commit,
	.abort = client_abort,
	.ask = client_ask,
	.poll = client_poll,
	.wake_ns = client_wake_ns,
};

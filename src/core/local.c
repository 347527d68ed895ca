/* The directory that is the catalog of this process. Only room may have to be waited for: the catalog says so, calls
 * space_cb when it is worth trying again, and bounds how often (reserve.c). */
#include "core/directory.h"

#include "base/check.h"
#include "base/plant.h"

static struct fc_local_directory *local_of(struct fc_directory *directory)
{
	return fc_container_of(directory, struct fc_local_directory, directory);
}

static struct fc_claim *claim_of(struct fc_reservation *reservation)
{
	return fc_container_of(reservation, struct fc_claim, reservation);
}

/* ---- matches ---- */

static void local_match(struct fc_directory *directory, struct fc_lookup *lookup)
{
	lookup->code = fc_catalog_match(local_of(directory)->catalog, lookup->keys, lookup->key_count,
					lookup->blocks_max, !lookup->is_unleased, lookup->path);
	lookup->answered_cb(lookup);
}

static void local_forget(struct fc_directory *directory, struct fc_lookup *lookup)
{
	(void)directory;
	(void)lookup;
	fc_check(false); /* every match has been answered when it returned */
}

static void local_release(struct fc_directory *directory, struct fc_path *path)
{
	fc_catalog_release(local_of(directory)->catalog, path);
}

/* ---- damage ---- */

static struct fc_suspect *find_suspect(struct fc_local_directory *local, struct fc_gva base, struct fc_key key)
{
	for (uint32_t i = 0; i < local->suspect_count; i++) {
		struct fc_suspect *suspect = &local->suspects[i];
		if (suspect->base.bits == base.bits && suspect->key.high == key.high && suspect->key.low == key.low)
			return suspect;
	}
	return NULL;
}

static struct fc_suspect *add_suspect(struct fc_local_directory *local, struct fc_gva base, struct fc_key key)
{
	struct fc_suspect *suspect = &local->suspects[local->next_suspect++ % FC_SUSPECTS_MAX];
	if (local->suspect_count < FC_SUSPECTS_MAX)
		local->suspect_count++;
	suspect->base = base;
	suspect->key = key;
	return suspect;
}

/* True when this place fails and others do not. */
static bool does_error_stay(struct fc_local_directory *local, const struct fc_placed *placed, uint64_t entry)
{
	struct fc_key key = fc_catalog_segment_key(placed->segment, entry);
	const struct fc_media_counters *counters = &local->media[fc_gva_medium(placed->base)]->counters;
	uint64_t moved_bytes = counters->bytes_read + counters->bytes_written;
	struct fc_suspect *suspect = find_suspect(local, placed->base, key);
	if (suspect == NULL)
		add_suspect(local, placed->base, key)->moved_bytes = moved_bytes;
	return suspect != NULL && suspect->moved_bytes != moved_bytes;
}

static bool local_cut(struct fc_directory *directory, const struct fc_path *path, uint32_t placed, uint64_t entry,
		      bool is_checksum)
{
	struct fc_local_directory *local = local_of(directory);
	const struct fc_placed *where = &path->placed[placed];
	if (!is_checksum && !does_error_stay(local, where, entry) && !fc_is_planted(FC_PLANT_CUT_ON_ERROR))
		return false;
	fc_catalog_cut(local->catalog, where->segment, entry);
	return true;
}

static void local_ask(struct fc_directory *directory, struct fc_question *question)
{
	struct fc_catalog *catalog = local_of(directory)->catalog;
	question->code = FC_OK;
	if (question->kind == FC_QUESTION_SESSION)
		question->code = fc_catalog_session_blocks(catalog, question->session, &question->blocks);
	else
		fc_catalog_stats(catalog, &question->stats);
	question->answered_cb(question);
}

/* ---- claims ---- */

static void on_space(struct fc_reservation *reservation)
{
	claim_of(reservation)->may_try = true;
}

static void on_durable(struct fc_reservation *reservation)
{
	struct fc_claim *claim = claim_of(reservation);
	claim->state = FC_CLAIM_NONE;
	claim->durable_cb(claim);
}

/* True when it has been answered. */
static bool try_reserve(struct fc_local_directory *local, struct fc_claim *claim)
{
	claim->may_try = false;
	claim->code = fc_catalog_reserve(local->catalog, &claim->turn, &claim->reservation, &claim->error);
	if (claim->code == FC_EAGAIN)
		return false;
	claim->state = claim->code == FC_OK ? FC_CLAIM_RESERVED : FC_CLAIM_NONE;
	fc_list_remove(&claim->link);
	claim->reserved_cb(claim);
	return true;
}

static void local_reserve(struct fc_directory *directory, struct fc_claim *claim)
{
	struct fc_local_directory *local = local_of(directory);
	claim->state = FC_CLAIM_ASKED;
	claim->reservation.space_attempts = 0;
	claim->reservation.space_cb = on_space;
	claim->reservation.durable_cb = on_durable;
	fc_list_push(&local->waiting, &claim->link);
	(void)try_reserve(local, claim);
}

static void local_commit(struct fc_directory *directory, struct fc_claim *claim)
{
	fc_check(claim->state == FC_CLAIM_RESERVED);
	claim->code = fc_catalog_commit(local_of(directory)->catalog, &claim->reservation);
	bool is_durability_coming = claim->code == FC_OK && claim->reservation.durable_pending > 0;
	claim->state = is_durability_coming ? FC_CLAIM_VISIBLE : FC_CLAIM_NONE;
	claim->visible_cb(claim);
}

static void local_abort(struct fc_directory *directory, struct fc_claim *claim)
{
	if (claim->state == FC_CLAIM_NONE)
		return;
	fc_check(claim->state == FC_CLAIM_ASKED || claim->state == FC_CLAIM_RESERVED);
	claim->state = FC_CLAIM_NONE;
	fc_list_remove(&claim->link);
	fc_catalog_abort(local_of(directory)->catalog, &claim->reservation);
}

/* In the order they came, each at most once; one that still waits does not hold up the others, who may want less. */
static unsigned local_poll(struct fc_directory *directory)
{
	struct fc_local_directory *local = local_of(directory);
	unsigned count = 0;
	fc_list_for_each_safe(link, &local->waiting)
	{
		struct fc_claim *claim = fc_container_of(link, struct fc_claim, link);
		if (!claim->may_try)
			continue;
		directory->progress++;
		count += try_reserve(local, claim);
	}
	return count;
}

static uint64_t local_wake_ns(const struct fc_directory *directory)
{
	(void)directory;
	return UINT64_MAX;
}

void fc_local_directory_init(struct fc_local_directory *local, struct fc_catalog *catalog,
			     struct fc_media *const media[FC_MEDIUM_COUNT])
{
	static const struct fc_directory_ops ops = {
		.match = local_match,
		.forget = local_forget,
		.release = local_release,
		.cut = local_cut,
		.reserve = local_reserve,
		.commit = local_commit,
		.abort = local_abort,
		.ask = local_ask,
		.poll = local_poll,
		.wake_ns = local_wake_ns,
	};
	*local = (struct fc_local_directory){.directory.ops = &ops, .catalog = catalog};
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		local->media[medium] = media[medium];
	fc_list_init(&local->waiting);
}

/* Owners: what each of them may keep, in bytes of chunks on all media together.
 *
 * The top 16 bits of a session's id are its owner's tag. They are in every segment's header, so whose a segment is
 * survives on the medium without a word of its own, and a segment keeps its owner when its session is gone.
 *
 *     bytes_used  =  reserved + kept by sessions + leaving (retired: read, pinned, or on its way to be free)
 *
 * Counted where chunks are taken (segment.c, recover.c) and given back (segment.c). A turn that would take its owner
 * over the limit makes room among that owner's sessions only (reclaim.c), and waits for what is leaving as it waits for
 * room in an arena (reserve.c). Ids of a tag that is nobody's count for nobody.
 *
 * The other design kept the owner in a field of the header. It needs another format, and nobody could tell by an id
 * alone whose session it is. */
#include "catalog/state.h"

#include <stdio.h>

/* What was replaced is pinned by one batch, freed by the next, and may have come too late for that one: so often a turn
 * waits for what is leaving anyway before it takes more sessions. */
#define PATIENT_ATTEMPTS 4u

/* ---- the table ---- */

static int check_tags(struct fc_catalog *catalog, struct fc_error *error)
{
	for (uint32_t i = 0; i < catalog->owner_count; i++) {
		uint16_t tag = catalog->owners[i].tag;
		if (tag == 0)
			return fc_error_set(error, FC_EINVAL, "owner with tag 0; 1 to %u are allowed", UINT16_MAX);
		if (i > 0 && tag == catalog->owners[i - 1].tag)
			return fc_error_set(error, FC_EINVAL, "owner with tag %u is there twice; tags must differ",
					    tag);
	}
	return FC_OK;
}

int fc_owners_init(struct fc_catalog *catalog, const struct fc_owner *owners, uint32_t count, struct fc_error *error)
{
	if (count > FC_OWNERS_MAX)
		return fc_error_set(error, FC_EINVAL, "%u owners; at most %u are allowed", count, FC_OWNERS_MAX);
	if (count == 0)
		return FC_OK;
	catalog->owners = fc_alloc_zeroed(catalog->alloc, count * sizeof(*catalog->owners));
	if (catalog->owners == NULL)
		return FC_ENOMEM;
	catalog->owner_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = i;
		for (; place > 0 && catalog->owners[place - 1].tag > owners[i].tag; place--)
			catalog->owners[place] = catalog->owners[place - 1];
		catalog->owners[place] = (struct fc_owner_state){
			.tag = owners[i].tag, .name = owners[i].name, .bytes_max = owners[i].bytes_max};
	}
	for (uint32_t i = 0; i < count; i++)
		catalog->owners[i].order.seed = catalog->opts.hash_seed;
	return check_tags(catalog, error);
}

void fc_owners_deinit(struct fc_catalog *catalog)
{
	fc_alloc_free(catalog->alloc, catalog->owners, catalog->owner_count * sizeof(*catalog->owners));
	catalog->owners = NULL;
	catalog->owner_count = 0;
}

struct fc_owner_state *fc_owner_find(const struct fc_catalog *catalog, uint16_t tag)
{
	uint32_t first = 0, end = catalog->owner_count;
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;
		if (catalog->owners[middle].tag == tag)
			return &catalog->owners[middle];
		if (catalog->owners[middle].tag < tag)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

/* An arena of an earlier run may hold more than what is allowed now: then the owner's next turn makes room. */
void fc_owners_opened(struct fc_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->owner_count; i++)
		catalog->owners[i].bytes_opened = catalog->owners[i].bytes_used;
}

/* ---- room ---- */

bool fc_owner_has_room(const struct fc_owner_state *owner, uint64_t bytes)
{
	return owner == NULL || owner->bytes_max == 0 ||
	       (bytes <= owner->bytes_max && owner->bytes_used <= owner->bytes_max - bytes);
}

uint64_t fc_owner_room_max(const struct fc_owner_state *owner)
{
	if (owner == NULL || owner->bytes_max == 0)
		return UINT64_MAX;
	uint64_t staying = owner->bytes_used - owner->bytes_leaving - owner->bytes_to_go;
	return owner->bytes_max - fc_min_u64(owner->bytes_max, staying);
}

static bool is_something_moving(const struct fc_catalog *catalog)
{
	bool is_moving = false;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		is_moving |= catalog->arenas[medium].batch != NULL;
	return is_moving;
}

int fc_owner_take_room(struct fc_catalog *catalog, const struct fc_segment *segment, bool may_reclaim,
		       struct fc_reservation *reservation)
{
	struct fc_owner_state *owner = segment->owner;
	uint64_t bytes = fc_segment_bytes(catalog, segment);
	if (fc_owner_has_room(owner, bytes))
		return FC_OK;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_commit_kick(&catalog->arenas[medium]);
	uint64_t over = owner->bytes_used + bytes - owner->bytes_max;
	bool is_patient = is_something_moving(catalog) && reservation->space_attempts < PATIENT_ATTEMPTS;
	uint64_t coming = is_patient ? fc_min_u64(owner->bytes_leaving, over) : 0;
	if (may_reclaim)
		fc_reclaim_for_owner(catalog, owner, over - coming);
	if (fc_owner_has_room(owner, bytes))
		return FC_OK;
	over = owner->bytes_used + bytes - owner->bytes_max;
	bool is_coming = owner->bytes_leaving >= over && is_something_moving(catalog) &&
			 fc_space_is_worth_waiting(catalog, reservation);
	return is_coming ? FC_EAGAIN : FC_EFULL;
}

/* Whose quota it is, and why it has no room: nothing helps a save that is larger than all of it. */
void fc_owner_refuse(struct fc_owner_state *owner, uint64_t bytes_new, uint64_t need_bytes, struct fc_error *error)
{
	const char *why = "nothing more of its own can be reclaimed";
	char whose[96];
	owner->saves_refused++;
	if (owner->name == NULL)
		snprintf(whose, sizeof(whose), "owner %u", owner->tag);
	else
		snprintf(whose, sizeof(whose), "namespace \"%.70s\"", owner->name[0] == 0 ? "default" : owner->name);
	if (need_bytes > owner->bytes_max)
		why = "this save alone is larger than the quota";
	fc_error_set(error, FC_EFULL, "save: %llu new bytes: %s may use %llu, uses %llu, needs %llu more, and %s",
		     (unsigned long long)bytes_new, whose, (unsigned long long)owner->bytes_max,
		     (unsigned long long)owner->bytes_used, (unsigned long long)need_bytes, why);
}

/* ---- statistics ---- */

int fc_catalog_owner_stats(const struct fc_catalog *catalog, uint16_t tag, struct fc_owner_stats *stats)
{
	const struct fc_owner_state *owner = fc_owner_find(catalog, tag);
	if (owner == NULL)
		return FC_ENOENT;
	*stats = (struct fc_owner_stats){
		.bytes_used = owner->bytes_used,
		.bytes_max = owner->bytes_max,
		.sessions = owner->session_count,
		.sessions_reclaimed = owner->sessions_reclaimed,
		.saves_refused = owner->saves_refused,
	};
	return FC_OK;
}

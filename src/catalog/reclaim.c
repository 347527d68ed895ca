/* Reclaim: whole sessions, oldest first, never one that is read or that another stands on.
 *
 * A session with a hole is worth only its head, so nothing smaller than a session is ever taken. Dependents are always
 * older than what they stand on (session.c), so the plain walk from the old end frees leaves before roots. Sessions can
 * stand on each other in a circle when conversations grew into the same text; if nothing else is left, such a knot is
 * freed together.
 *
 * Memory has one more way: what also lies on SSD (a prompt's backup) only changes its name back to that copy, and with
 * the setting `spill` a session that was ever reused is moved to SSD (spill.c), if its owner has room for both copies.
 *
 * An owner that is over its quota (owners.c) gives sessions by the same rules, from both media and always least
 * recently used first; whatever another owner's session stands on stays. */
#include "catalog/state.h"

#include "base/plant.h"

#include <string.h>

#define KNOT_TRIES_MAX 16 /* each looks at all sessions, perhaps often */

static uint64_t chunks_on(const struct fc_session *session, enum fc_medium medium)
{
	uint64_t chunks = 0;
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == medium)
			chunks += segment->chunk_count;
	}
	return chunks;
}

static void retire_all(struct fc_catalog *catalog, struct fc_session *session)
{
	while (!fc_list_is_empty(&session->segments)) {
		fc_segment_retire(catalog, fc_container_of(session->segments.prev, struct fc_segment, session_link));
		if (fc_is_planted(FC_PLANT_HALF_SESSION))
			return;
	}
}

static void tell_loss(struct fc_catalog *catalog, const struct fc_session *session)
{
	if (catalog->loss_cb != NULL && session->kind == FC_SESSION_CONVERSATION)
		catalog->loss_cb(catalog->loss_context, session->id);
}

/* ---- orphans ---- */

/* The segment names what it has and nobody names any more. Where memory for that is missing, it goes: blocks behind a
 * gap are worth nothing. */
static bool take_over(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_session *lost)
{
	if (segment->named_count == segment->shape.entry_count || fc_segment_is_orphan(catalog, segment) ||
	    !fc_segment_has_unnamed(catalog, segment))
		return false;
	int code = fc_session_depend_after_move(catalog, lost, segment->session);
	if (code == FC_OK)
		code = fc_publish_depend_on_keepers(catalog, segment);
	for (uint64_t entry = 0; entry < segment->shape.entry_count && code == FC_OK; entry++)
		code = fc_segment_name(catalog, segment, entry, false);
	segment->is_backup = false;
	if (code != FC_OK)
		fc_segment_retire(catalog, segment);
	return true;
}

static bool take_over_by(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *lost)
{
	bool any = false;
	session->reserved_count++; /* keeps it while we walk */
	fc_list_for_each_safe(link, &session->segments)
	{
		any |= take_over(catalog, fc_container_of(link, struct fc_segment, session_link), lost);
	}
	session->reserved_count--;
	fc_session_settle(catalog, session);
	return any;
}

/* A spare copy can be the head of the next one, so until nothing changes. */
bool fc_reclaim_take_over(struct fc_catalog *catalog, struct fc_session *lost)
{
	bool any, ever = false;
	do {
		any = false;
		fc_list_for_each_safe(link, &catalog->sessions)
		{
			any |= take_over_by(catalog, fc_container_of(link, struct fc_session, all_link), lost);
		}
		ever |= any;
	} while (any);
	return ever;
}

static bool drop_orphans_of(struct fc_catalog *catalog, struct fc_session *session)
{
	bool any = false;
	session->reserved_count++; /* keeps it while we walk */
	fc_list_for_each_safe(link, &session->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (!fc_segment_is_orphan(catalog, segment))
			continue;
		if (!any)
			tell_loss(catalog, session);
		fc_segment_retire(catalog, segment);
		any = true;
	}
	session->reserved_count--;
	fc_session_settle(catalog, session);
	return any;
}

void fc_reclaim_orphans(struct fc_catalog *catalog, struct fc_session *session)
{
	bool any;
	fc_reclaim_take_over(catalog, session);
	do {
		any = false;
		fc_list_for_each_safe(link, &catalog->sessions)
		{
			any |= drop_orphans_of(catalog, fc_container_of(link, struct fc_session, all_link));
		}
	} while (any);
}

/* ---- one session ---- */

void fc_reclaim_session(struct fc_catalog *catalog, struct fc_session *session)
{
	bool had_dependents = session->dependent_count > 0;
	tell_loss(catalog, session);
	session->reserved_count++;
	retire_all(catalog, session);
	if (had_dependents)
		fc_reclaim_orphans(catalog, session);
	session->reserved_count--;
	fc_session_settle(catalog, session);
}

static bool is_reclaimable(const struct fc_session *session)
{
	bool is_read = session->lease_count > 0 && !fc_is_planted(FC_PLANT_RECLAIM_LEASED);
	return !is_read && session->dependent_count == 0 && session->reserved_count == 0;
}

void fc_reclaim_counted(struct fc_catalog *catalog, struct fc_arena *arena, struct fc_session *session)
{
	arena->sessions_reclaimed++;
	arena->bytes_reclaimed += chunks_on(session, arena->medium) * arena->superblock.chunk_bytes;
	fc_reclaim_session(catalog, session);
}

/* ---- memory whose copy on SSD can take over ---- */

static const struct fc_segment *backup_of(const struct fc_session *session, const struct fc_segment *segment)
{
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *other = fc_container_of(link, struct fc_segment, session_link);
		bool is_whole = other->sound_blocks >= other->end_block && other->are_resume_blocks_sound;
		if (other->is_backup && is_whole && other->shape.entry_count == segment->shape.entry_count &&
		    memcmp(other->keys, segment->keys, segment->shape.entry_count * sizeof(*segment->keys)) == 0)
			return other;
	}
	return NULL;
}

static bool is_backed_up(const struct fc_session *session)
{
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == FC_MEMORY && backup_of(session, segment) == NULL)
			return false;
	}
	return session->lease_count == 0 && session->reserved_count == 0;
}

/* The names were there a moment ago, so the index has room for them. */
static void name_backups(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_list_for_each(link, &session->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (!segment->is_backup)
			continue;
		for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
			if (fc_segment_name(catalog, segment, entry, false) != FC_OK)
				break;
		segment->is_backup = segment->named_count == 0;
	}
}

static void fall_back_to_ssd(struct fc_catalog *catalog, struct fc_session *session)
{
	session->reserved_count++;
	fc_list_for_each_safe(link, &session->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == FC_MEMORY)
			fc_segment_retire(catalog, segment);
	}
	name_backups(catalog, session);
	session->reserved_count--;
	fc_session_settle(catalog, session);
}

/* ---- choosing ---- */

enum outcome { LEFT_ALONE, FREED, WILL_SPILL };

static enum outcome reclaim_one(struct fc_catalog *catalog, struct fc_arena *arena, struct fc_session *session)
{
	if (arena->medium == FC_MEMORY && is_backed_up(session)) {
		arena->bytes_reclaimed += chunks_on(session, FC_MEMORY) * arena->superblock.chunk_bytes;
		fall_back_to_ssd(catalog, session);
		return FREED;
	}
	bool can_spill =
		arena->medium == FC_MEMORY && catalog->opts.memory_reclaim == FC_MEMORY_SPILL &&
		catalog->arenas[FC_SSD].is_open &&
		fc_owner_has_room(session->owner, chunks_on(session, FC_MEMORY) * arena->superblock.chunk_bytes);
	if (can_spill && (session->load_count > 0 || session->dependent_count > 0)) {
		fc_spill_want(catalog, session);
		return WILL_SPILL;
	}
	if (!is_reclaimable(session))
		return LEFT_ALONE;
	fc_reclaim_counted(catalog, arena, session);
	return FREED;
}

/* With the order "oldest created", the next older than `above` by creation; else simply the list's order. */
static struct fc_session *next_by_creation(const struct fc_arena *arena, uint64_t above)
{
	struct fc_session *best = NULL;
	fc_list_for_each(link, &arena->sessions)
	{
		struct fc_session *session = fc_container_of(link, struct fc_session, order[arena->medium]);
		if (session->created_seq > above && (best == NULL || session->created_seq < best->created_seq))
			best = session;
	}
	return best;
}

/* Walks the sessions of the arena from the old end until that makes enough room. True when some of it comes later,
 * from sessions that are spilled. */
static bool walk(struct fc_catalog *catalog, struct fc_arena *arena, uint64_t chunks_wanted)
{
	uint64_t chunks = 0;
	bool by_creation = catalog->opts.reclaim_order == FC_RECLAIM_OLDEST_CREATED;
	uint64_t created = 0;
	bool will_spill = false;
	struct fc_link *link = arena->sessions.next;
	while (chunks < chunks_wanted) {
		struct fc_session *session;
		if (by_creation) {
			session = next_by_creation(arena, created);
			if (session == NULL)
				return will_spill;
			created = session->created_seq;
		} else {
			if (link == &arena->sessions)
				return will_spill;
			session = fc_container_of(link, struct fc_session, order[arena->medium]);
			link = link->next; /* a session without dependents takes nobody else from the list */
		}
		uint64_t size = chunks_on(session, arena->medium);
		enum outcome outcome = reclaim_one(catalog, arena, session);
		if (outcome != LEFT_ALONE)
			chunks += size;
		will_spill |= outcome == WILL_SPILL;
	}
	return will_spill;
}

/* Marks everything that stands on `session`, directly or not. False as soon as one of them is in use, or not `owner`'s
 * where that is given. */
static bool mark_standing_on(struct fc_catalog *catalog, struct fc_session *session, const struct fc_owner_state *owner)
{
	bool any = true;
	session->mark = ++catalog->mark;
	while (any) {
		any = false;
		fc_list_for_each(link, &catalog->sessions)
		{
			struct fc_session *other = fc_container_of(link, struct fc_session, all_link);
			bool is_new = false;
			for (uint32_t i = 0; i < other->dep_count; i++)
				is_new |= other->mark != catalog->mark && other->deps[i]->mark == catalog->mark;
			if (!is_new)
				continue;
			bool is_foreign = owner != NULL && other->owner != owner;
			if (other->lease_count > 0 || other->reserved_count > 0 || is_foreign)
				return false;
			other->mark = catalog->mark;
			any = true;
		}
	}
	return true;
}

/* The walk frees what nobody stands on. Sessions that stand on each other in a circle, and those on which only sessions
 * of the other medium stand, are never that: then the oldest goes, with everything that cannot be without it. */
static bool reclaim_knot(struct fc_catalog *catalog, struct fc_arena *arena)
{
	unsigned tries = 0;
	fc_list_for_each(link, &arena->sessions)
	{
		struct fc_session *session = fc_container_of(link, struct fc_session, order[arena->medium]);
		if (session->lease_count > 0 || session->reserved_count > 0)
			continue;
		if (mark_standing_on(catalog, session, NULL)) {
			fc_reclaim_counted(catalog, arena, session);
			return true;
		}
		if (++tries == KNOT_TRIES_MAX)
			return false;
	}
	return false;
}

static bool has_run(const struct fc_arena *arena, uint64_t chunks)
{
	return fc_space_largest(&arena->space, NULL) >= chunks;
}

void fc_reclaim_for(struct fc_catalog *catalog, struct fc_arena *arena, uint64_t chunks_wanted)
{
	/* What is on its way may be enough; if it turns out not to be one run, the next call takes more sessions. */
	if (arena->chunks_freeing >= chunks_wanted)
		return;
	uint64_t before;
	do {
		before = arena->bytes_reclaimed;
		bool will_spill = walk(catalog, arena, chunks_wanted);
		if (arena->bytes_reclaimed == before && (will_spill || !reclaim_knot(catalog, arena)))
			return;
	} while (!arena->is_durable && !has_run(arena, chunks_wanted));
}

void fc_reclaim_to_watermark(struct fc_catalog *catalog, struct fc_arena *arena)
{
	uint64_t high = (uint64_t)((double)arena->chunk_count * catalog->opts.high_watermark);
	uint64_t low = (uint64_t)((double)arena->chunk_count * catalog->opts.low_watermark);
	uint64_t used = arena->chunks_linked; /* what is retired, though it may be pinned or read, goes anyway */
	if (used > high)
		walk(catalog, arena, used - low);
}

/* ---- an owner's quota ---- */

static uint64_t kept_bytes(const struct fc_owner_state *owner)
{
	return owner->bytes_used - owner->bytes_leaving;
}

static void reclaim_owned(struct fc_catalog *catalog, struct fc_owner_state *owner, struct fc_session *session)
{
	if (!is_reclaimable(session))
		return;
	owner->sessions_reclaimed++;
	fc_reclaim_session(catalog, session);
}

/* As reclaim_knot(), but all of the knot is the owner's. */
static bool reclaim_owned_knot(struct fc_catalog *catalog, struct fc_owner_state *owner)
{
	unsigned tries = 0;
	fc_list_for_each(link, &owner->sessions)
	{
		struct fc_session *session = fc_container_of(link, struct fc_session, owner_link);
		if (session->lease_count > 0 || session->reserved_count > 0)
			continue;
		if (mark_standing_on(catalog, session, owner)) {
			owner->sessions_reclaimed++;
			fc_reclaim_session(catalog, session);
			return true;
		}
		if (++tries == KNOT_TRIES_MAX)
			return false;
	}
	return false;
}

void fc_reclaim_for_owner(struct fc_catalog *catalog, struct fc_owner_state *owner, uint64_t bytes)
{
	uint64_t kept = kept_bytes(owner);
	uint64_t goal = kept - fc_min_u64(kept, bytes);
	if (bytes > 0 && fc_is_planted(FC_PLANT_FOREIGN_QUOTA))
		reclaim_owned(catalog, owner, fc_container_of(catalog->sessions.next, struct fc_session, all_link));
	fc_list_for_each_safe(link, &owner->sessions)
	{
		if (kept_bytes(owner) <= goal)
			return;
		reclaim_owned(catalog, owner, fc_container_of(link, struct fc_session, owner_link));
	}
	bool any = true;
	while (any && kept_bytes(owner) > goal)
		any = reclaim_owned_knot(catalog, owner);
}

/* ---- damage and eviction ---- */

void fc_catalog_cut(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry)
{
	if (!fc_segment_is_linked(segment) || fc_is_planted(FC_PLANT_NO_CUT))
		return;
	struct fc_session *session = segment->session;
	const struct fc_range *bad = fc_shape_range_of(&segment->shape, entry);
	uint64_t bad_block = bad->block_first + (entry - bad->entry_first);
	session->reserved_count++;
	if (catalog->geometry.groups[bad->group].rule == FC_RULE_ALL)
		fc_segment_spoil(catalog, segment, bad_block * fc_group_span(&catalog->geometry, bad->group), false);
	else
		fc_segment_spoil(catalog, segment, UINT64_MAX, true);
	catalog->sessions_cut++;
	if (segment->named_count == 0)
		fc_segment_retire(catalog, segment);
	tell_loss(catalog, session);
	fc_reclaim_orphans(catalog, session);
	session->reserved_count--;
	fc_session_settle(catalog, session);
}

int fc_catalog_evict(struct fc_catalog *catalog, struct fc_session_id id)
{
	struct fc_session *session = fc_session_find(catalog, id);
	if (session == NULL)
		return FC_ENOENT;
	if (session->lease_count > 0 || session->reserved_count > 0)
		return FC_EBUSY;
	fc_reclaim_session(catalog, session);
	return FC_OK;
}

/* Reclaim: whole sessions, oldest first, never one that is read or that another stands on.
 *
 * A session with a hole is worth only its head, so nothing smaller than a session is ever taken. Sessions can stand on
 * each other in a circle when conversations grew into the same text; if nothing else is left, such a knot is freed
 * together.
 *
 * Memory has one more way: what also lies on SSD (a prompt's backup) only changes its name back to that copy, and with
 * the setting `spill` a session that was ever reused is moved to SSD (spill.c), if its owner has room for both copies.
 *
 * An owner that is over its quota (owners.c) gives sessions by the same rules, from both media and always least
 * recently used first; whatever another owner's session stands on stays.
 *
 * What may be reclaimed is known before it is asked for. A session with segments in an arena is, for that arena,
 *
 *     free to go    nothing stands on it, and it is not in use (leased or reserved); in memory also: all of it is
 *                   backed up and it is not in use, or it may be spilled
 *     stood upon    not that, not in use, and nothing that is in use stands on it: it goes with all that stands on it
 *     in use        neither
 *
 * A session has a dep on whoever holds any block of its paths, so what stands on what stands on it and is not listed
 * with it can be without it. And the arena's order (base/order.h) has the first two: those that are free to go by age,
 * and behind them, with FC_STOOD_UPON, the others by use. An owner's order is the same, where only the first line makes
 * it free to go. What decides is in the session: lease_count, reserved_count, dependent_count, busy_dependent_count,
 * foreign_count, load_count, segment_count, is_backed_up, used_seq and created_seq. Whoever changes one of them calls
 * fc_reclaim_sort() before anything else is reclaimed; fc_catalog_check() asks for every session where it belongs, and
 * whether it is there.
 *
 * Arenas and owners also count what those in their order have, so a turn knows before anybody is reclaimed for it
 * whether that could ever be enough (fc_reclaim_room_max(), fc_owner_room_max()). What could be enough in sum may lie
 * in pieces that are too short; then sessions go and the turn is refused all the same (reserve.c has shorter segments
 * first).
 *
 * Those who wait for room that is being freed have their share of it: what others wait for is nobody else's, and a turn
 * that comes later takes sessions of its own.
 *
 * Costs, with n sessions. To make room: O(log n) for each session that goes, is spilled or falls back, whatever else
 * the arena is full of. With `spill`, sessions of an owner whose quota has no room for the copy are passed over one by
 * one. A use, a lease and a turn pay O(log n) for each session that they touch, and for each that these stand on when
 * they come into use or are out of it.
 *
 * A loss (a session goes that others stand on, a cut, a write that was refused) is of interest only to the sessions
 * that stand on the one that loses, and to those that have spare copies of its blocks (session.c). They are gathered in
 * order of use; those with copies take over; what then has no head is dropped, and is a loss in its turn. O(d log d)
 * for d dependents.
 *
 * The other design left the lists as they were and had a second list of what is free to go, where a session finds its
 * place from the nearer end. It needs no tree, but a prompt whose last dependent goes, or a lease that ends late, would
 * pass half of the list. A heap (base/heap.h) needs memory that may be missing, and cannot pass over what it does not
 * want. Before either, reclaim walked all sessions: with 20,000 prompts that others stand on, each turn looked at
 * all of them. */
#include "catalog/state.h"

#include "base/plant.h"

#include <string.h>

static void retire_all(struct fc_catalog *catalog, struct fc_session *session)
{
	while (!fc_list_is_empty(&session->segments)) {
		fc_segment_retire(catalog, fc_container_of(session->segments.prev, struct fc_segment, session_link));
		if (fc_is_planted(FC_PLANT_HALF_SESSION))
			return;
	}
}

void fc_reclaim_tell_loss(struct fc_catalog *catalog, const struct fc_session *session)
{
	if (catalog->loss_cb != NULL && session->kind == FC_SESSION_CONVERSATION)
		catalog->loss_cb(catalog->loss_context, session->id);
}

/* ---- what may be reclaimed ---- */

static bool is_reclaimable(const struct fc_session *session)
{
	bool is_read = session->lease_count > 0 && !fc_is_planted(FC_PLANT_RECLAIM_LEASED);
	return !is_read && session->dependent_count == 0 && session->reserved_count == 0;
}

/* It is in use, or something that stands on it is. */
static bool is_held(const struct fc_session *session)
{
	return session->is_busy || session->busy_dependent_count > 0;
}

static bool may_spill(const struct fc_catalog *catalog, const struct fc_session *session)
{
	return catalog->opts.memory_reclaim == FC_MEMORY_SPILL && catalog->arenas[FC_SSD].is_open &&
	       (session->load_count > 0 || session->dependent_count > 0);
}

static bool may_go_alone(const struct fc_catalog *catalog, const struct fc_session *session, enum fc_medium medium)
{
	bool may_leave =
		medium == FC_MEMORY && ((session->is_backed_up && !session->is_busy) || may_spill(catalog, session));
	return may_leave || is_reclaimable(session);
}

uint64_t fc_reclaim_rank(const struct fc_catalog *catalog, const struct fc_session *session, enum fc_medium medium)
{
	if (session->segment_count[medium] == 0)
		return 0;
	if (may_go_alone(catalog, session, medium))
		return catalog->opts.reclaim_order == FC_RECLAIM_OLDEST_CREATED ? session->created_seq
										: session->used_seq;
	return is_held(session) ? 0 : FC_STOOD_UPON | session->used_seq;
}

uint64_t fc_reclaim_owner_rank(const struct fc_session *session)
{
	if (session->owner == NULL || fc_list_is_empty(&session->segments))
		return 0;
	if (is_reclaimable(session))
		return session->used_seq;
	return is_held(session) || session->foreign_count > 0 ? 0 : FC_STOOD_UPON | session->used_seq;
}

/* One that is in use may be in an order, to be spilled later: nothing of it can be had now. */
uint64_t fc_reclaim_chunks_to_go(const struct fc_session *session, enum fc_medium medium)
{
	return session->order[medium].key == 0 || session->is_busy ? 0 : session->chunks[medium];
}

uint64_t fc_reclaim_bytes_to_go(const struct fc_catalog *catalog, const struct fc_session *session)
{
	uint64_t bytes = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		bytes += session->chunks[medium] * catalog->arenas[medium].superblock.chunk_bytes;
	return session->owner_order.key == 0 ? 0 : bytes;
}

static void set_place(struct fc_catalog *catalog, struct fc_session *session, enum fc_medium medium, uint64_t rank)
{
	struct fc_arena *arena = &catalog->arenas[medium];
	fc_order_put(&arena->order, &session->order[medium], rank);
	uint64_t chunks = fc_reclaim_chunks_to_go(session, medium);
	arena->chunks_to_go += chunks - session->chunks_to_go[medium];
	session->chunks_to_go[medium] = chunks;
}

static void set_owner_place(struct fc_catalog *catalog, struct fc_session *session, uint64_t rank)
{
	fc_order_put(&session->owner->order, &session->owner_order, rank);
	uint64_t bytes = fc_reclaim_bytes_to_go(catalog, session);
	session->owner->bytes_to_go += bytes - session->bytes_to_go;
	session->bytes_to_go = bytes;
}

static void place_by_rank(struct fc_catalog *catalog, struct fc_session *session)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		set_place(catalog, session, (enum fc_medium)medium,
			  fc_reclaim_rank(catalog, session, (enum fc_medium)medium));
	if (session->owner != NULL)
		set_owner_place(catalog, session, fc_reclaim_owner_rank(session));
}

/* What it stands on, directly, counts those that are in use, and is held by the first of them. */
static void set_busy(struct fc_catalog *catalog, struct fc_session *session, bool is_busy)
{
	if (session->is_busy == is_busy)
		return;
	session->is_busy = is_busy;
	for (uint32_t i = 0; i < session->dep_count; i++) {
		struct fc_session *on = session->deps[i].on;
		if (session->deps[i].is_loose)
			continue;
		on->busy_dependent_count += is_busy ? 1 : UINT32_MAX;
		if (on->busy_dependent_count == is_busy)
			place_by_rank(catalog, on);
	}
}

void fc_reclaim_sort(struct fc_catalog *catalog, struct fc_session *session)
{
	set_busy(catalog, session, session->lease_count > 0 || session->reserved_count > 0);
	place_by_rank(catalog, session);
}

void fc_reclaim_segments_changed(struct fc_catalog *catalog, struct fc_session *session)
{
	session->is_backed_up = fc_reclaim_has_backups(session);
	fc_reclaim_sort(catalog, session);
}

void fc_reclaim_forget(struct fc_catalog *catalog, struct fc_session *session)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		set_place(catalog, session, (enum fc_medium)medium, 0);
	if (session->owner != NULL)
		set_owner_place(catalog, session, 0);
	fc_order_put(&catalog->affected, &session->affected, 0);
	fc_check(!fc_link_is_linked(&session->work_link));
}

/* ---- what a loss leads to ---- */

static struct fc_session *affected_from(const struct fc_catalog *catalog, uint64_t used_seq)
{
	struct fc_order_node *node = fc_order_from(&catalog->affected, used_seq);
	return node == NULL ? NULL : fc_container_of(node, struct fc_session, affected);
}

/* All that a loss of this session's blocks can be of interest to: itself, and what has them on its paths or as spare
 * copies. */
static void gather_affected(struct fc_catalog *catalog, struct fc_session *lost)
{
	fc_check(catalog->affected.count == 0);
	fc_order_put(&catalog->affected, &lost->affected, lost->used_seq);
	fc_list_for_each(link, &lost->dependents)
	{
		struct fc_session *from = fc_container_of(link, struct fc_dep, link)->from;
		fc_order_put(&catalog->affected, &from->affected, from->used_seq);
	}
}

static void forget_affected(struct fc_catalog *catalog)
{
	struct fc_session *session;
	while ((session = affected_from(catalog, 1)) != NULL)
		fc_order_put(&catalog->affected, &session->affected, 0);
}

/* What is taken over may have been any session's that has lost something and is still to be worked off: whoever stood
 * on it there stands on this session now. One with a spare copy depends on those that had the names. */
static int depend_after_loss(struct fc_catalog *catalog, struct fc_session *lost, struct fc_session *session)
{
	int code = fc_session_depend_after_move(catalog, lost, session);
	for (uint32_t i = 0; i < session->dep_count && code == FC_OK; i++)
		if (fc_link_is_linked(&session->deps[i].on->work_link))
			code = fc_session_depend_after_move(catalog, session->deps[i].on, session);
	return code;
}

/* The segment names what it has and nobody names any more. Where memory for that is missing, it goes: blocks behind a
 * gap are worth nothing. */
static bool take_over(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_session *lost)
{
	if (segment->named_count == segment->shape.entry_count || fc_segment_is_orphan(catalog, segment) ||
	    !fc_segment_has_unnamed(catalog, segment))
		return false;
	int code = depend_after_loss(catalog, lost, segment->session);
	if (code == FC_OK)
		code = fc_publish_depend_on_keepers(catalog, segment, false);
	for (uint64_t entry = 0; entry < segment->shape.entry_count && code == FC_OK; entry++)
		code = fc_segment_name(catalog, segment, entry, false);
	fc_segment_set_backup(catalog, segment, false);
	if (code != FC_OK)
		fc_segment_retire(catalog, segment);
	return true;
}

static bool take_over_by(struct fc_catalog *catalog, struct fc_session *session, struct fc_session *lost)
{
	bool any = false;
	fc_session_keep(session);
	fc_list_for_each_safe(link, &session->segments)
	{
		any |= take_over(catalog, fc_container_of(link, struct fc_segment, session_link), lost);
	}
	fc_session_let_go(catalog, session);
	return any;
}

/* A spare copy can be the head of the next one, so until nothing changes. */
static bool take_over_affected(struct fc_catalog *catalog, struct fc_session *lost)
{
	bool any, ever = false;
	do {
		any = false;
		struct fc_session *session;
		for (uint64_t seq = 1; (session = affected_from(catalog, seq)) != NULL;) {
			seq = session->used_seq + 1;
			catalog->sessions_examined++;
			any |= take_over_by(catalog, session, lost);
		}
		ever |= any;
	} while (any);
	return ever;
}

bool fc_reclaim_take_over_lost(struct fc_catalog *catalog)
{
	bool any = false;
	fc_list_for_each(link, &catalog->work)
	{
		struct fc_session *lost = fc_container_of(link, struct fc_session, work_link);
		gather_affected(catalog, lost);
		any |= take_over_affected(catalog, lost);
		forget_affected(catalog);
	}
	return any;
}

void fc_reclaim_has_lost(struct fc_catalog *catalog, struct fc_session *session)
{
	if (fc_link_is_linked(&session->work_link))
		return;
	fc_session_keep(session);
	fc_list_push(&catalog->work, &session->work_link);
}

/* What it loses here others may stand on that do not stand on what was lost first. */
static bool drop_orphans_of(struct fc_catalog *catalog, struct fc_session *session)
{
	bool any = false;
	fc_session_keep(session);
	fc_list_for_each_safe(link, &session->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (!fc_segment_is_orphan(catalog, segment))
			continue;
		if (!any)
			fc_reclaim_tell_loss(catalog, session);
		fc_segment_retire(catalog, segment);
		any = true;
	}
	/* Its own segments may have spare copies of what went, as others may. */
	if (any && (!fc_list_is_empty(&session->dependents) || !fc_list_is_empty(&session->segments)))
		fc_reclaim_has_lost(catalog, session);
	fc_session_let_go(catalog, session);
	return any;
}

static void drop_affected_orphans(struct fc_catalog *catalog)
{
	bool any;
	do {
		any = false;
		struct fc_session *session;
		for (uint64_t seq = 1; (session = affected_from(catalog, seq)) != NULL;) {
			seq = session->used_seq + 1;
			catalog->sessions_examined++;
			any |= drop_orphans_of(catalog, session);
		}
	} while (any);
}

void fc_reclaim_orphans(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_check(fc_list_is_empty(&catalog->work));
	fc_reclaim_has_lost(catalog, session);
	fc_reclaim_work_off_losses(catalog);
}

void fc_reclaim_work_off_losses(struct fc_catalog *catalog)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&catalog->work)) != NULL) {
		struct fc_session *session = fc_container_of(link, struct fc_session, work_link);
		gather_affected(catalog, session);
		take_over_affected(catalog, session);
		drop_affected_orphans(catalog);
		forget_affected(catalog);
		fc_session_let_go(catalog, session);
	}
}

/* ---- one session ---- */

void fc_reclaim_session(struct fc_catalog *catalog, struct fc_session *session)
{
	bool had_dependents = !fc_list_is_empty(&session->dependents);
	fc_reclaim_tell_loss(catalog, session);
	fc_session_keep(session);
	retire_all(catalog, session);
	if (had_dependents)
		fc_reclaim_orphans(catalog, session);
	fc_session_let_go(catalog, session);
}

/* What the session has in the arena makes room there, and is something of its owner's that goes. `sessions`: 1 when all
 * of it goes. */
static void count_room(struct fc_arena *arena, const struct fc_session *session, uint64_t sessions)
{
	struct fc_removals *of_owner = session->owner == NULL ? NULL : &session->owner->removed[arena->medium];
	struct fc_removals *each[] = {&arena->removed, of_owner};
	for (size_t i = 0; i < fc_array_len(each) && each[i] != NULL; i++) {
		each[i]->sessions_reclaimed += sessions;
		each[i]->bytes_reclaimed += session->chunks[arena->medium] * arena->superblock.chunk_bytes;
	}
}

void fc_reclaim_counted(struct fc_catalog *catalog, struct fc_arena *arena, struct fc_session *session)
{
	count_room(arena, session, 1);
	fc_reclaim_session(catalog, session);
}

/* ---- memory whose copy on SSD can take over ---- */

static const struct fc_segment *backup_of(const struct fc_session *session, const struct fc_segment *segment)
{
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *other = fc_container_of(link, struct fc_segment, session_link);
		bool is_whole = other->sound_from == 0 && other->sound_blocks >= other->end_block &&
				other->are_resume_blocks_sound;
		if (other->is_backup && other->medium == FC_SSD && is_whole &&
		    other->shape.entry_count == segment->shape.entry_count &&
		    memcmp(other->keys, segment->keys, segment->shape.entry_count * sizeof(*segment->keys)) == 0)
			return other;
	}
	return NULL;
}

bool fc_reclaim_has_backups(const struct fc_session *session)
{
	if (session->segment_count[FC_MEMORY] == 0 || session->backup_count == 0)
		return false;
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == FC_MEMORY && backup_of(session, segment) == NULL)
			return false;
	}
	return true;
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
		fc_segment_set_backup(catalog, segment, segment->named_count == 0);
	}
}

static void fall_back_to_ssd(struct fc_catalog *catalog, struct fc_session *session)
{
	fc_session_keep(session);
	fc_list_for_each_safe(link, &session->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == FC_MEMORY)
			fc_segment_retire(catalog, segment);
	}
	name_backups(catalog, session);
	fc_session_let_go(catalog, session);
}

/* ---- choosing ---- */

enum outcome { LEFT_ALONE, FREED, WILL_SPILL };

static enum outcome reclaim_one(struct fc_catalog *catalog, struct fc_arena *arena, struct fc_session *session)
{
	uint64_t bytes = session->chunks[arena->medium] * arena->superblock.chunk_bytes;
	if (arena->medium == FC_MEMORY && session->is_backed_up && !session->is_busy) {
		count_room(arena, session, 0);
		fall_back_to_ssd(catalog, session);
		return FREED;
	}
	if (arena->medium == FC_MEMORY && may_spill(catalog, session) && fc_owner_has_room(session->owner, bytes)) {
		fc_spill_want(catalog, session, true);
		return WILL_SPILL;
	}
	if (!is_reclaimable(session))
		return LEFT_ALONE;
	fc_reclaim_counted(catalog, arena, session);
	return FREED;
}

/* The rank that all sessions have that were not used, or created, before it. */
static uint64_t rank_limit(const struct fc_catalog *catalog, const struct fc_session *before)
{
	if (before == NULL)
		return FC_STOOD_UPON;
	return catalog->opts.reclaim_order == FC_RECLAIM_OLDEST_CREATED ? before->created_seq : before->used_seq;
}

/* Goes through what may go alone, from the old end until that makes enough room, or to the limit. True when some of it
 * comes later, from sessions that are spilled. */
static bool walk(struct fc_catalog *catalog, struct fc_arena *arena, uint64_t chunks_wanted, uint64_t limit)
{
	uint64_t chunks = 0, rank = 0;
	bool will_spill = false;
	while (chunks < chunks_wanted) {
		struct fc_order_node *node = fc_order_from(&arena->order, rank + 1);
		if (node == NULL || node->key >= limit)
			break;
		rank = node->key;
		struct fc_session *session = fc_container_of(node, struct fc_session, order[arena->medium]);
		uint64_t size = session->chunks[arena->medium];
		catalog->sessions_examined++;
		enum outcome outcome = reclaim_one(catalog, arena, session);
		if (outcome != LEFT_ALONE)
			chunks += size;
		will_spill |= outcome == WILL_SPILL;
	}
	return will_spill;
}

/* ---- knots ---- */

/* The oldest that may go with all that stands on it. */
static struct fc_session *find_knot(struct fc_catalog *catalog, const struct fc_order *order, size_t node_at)
{
	struct fc_order_node *node = fc_order_from(order, 1);
	for (; node != NULL; node = fc_order_from(order, node->key + 1)) {
		struct fc_session *session = (struct fc_session *)(void *)((char *)node - node_at);
		catalog->sessions_examined++;
		if (!is_held(session))
			return session; /* else it could be spilled, if its owner had room */
	}
	return NULL;
}

/* The walk frees what nobody stands on. Sessions that stand on each other in a circle, and those on which only sessions
 * of the other medium stand, are never that: then the oldest goes, with everything that cannot be without it. */
static bool reclaim_knot(struct fc_catalog *catalog, struct fc_arena *arena, const struct fc_session *before)
{
	size_t node_at = offsetof(struct fc_session, order) + (size_t)arena->medium * sizeof(struct fc_order_node);
	struct fc_session *session = find_knot(catalog, &arena->order, node_at);
	if (session == NULL || (before != NULL && session->used_seq > before->used_seq))
		return false;
	fc_reclaim_counted(catalog, arena, session);
	return true;
}

static bool has_run(const struct fc_arena *arena, uint64_t chunks)
{
	return fc_space_largest(&arena->space, NULL) >= chunks;
}

void fc_reclaim_spares(struct fc_catalog *catalog)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&catalog->spares)) != NULL) {
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, spare_link);
		if (segment->is_backup && !fc_publish_is_needed_as_backup(catalog, segment))
			fc_segment_retire(catalog, segment);
	}
}

uint64_t fc_reclaim_room_max(const struct fc_arena *arena)
{
	return arena->chunk_count - (arena->held.chunks_used - arena->chunks_leaving - arena->chunks_to_go);
}

void fc_reclaim_for(struct fc_catalog *catalog, struct fc_arena *arena, uint64_t chunks_wanted,
		    const struct fc_session *before)
{
	fc_reclaim_spares(catalog);
	/* What is on its way may be enough; if it turns out not to be one run, the next call takes more sessions. */
	uint64_t coming = arena->chunks_freeing - fc_min_u64(arena->chunks_freeing, arena->chunks_awaited);
	if (coming >= chunks_wanted)
		return;
	uint64_t freed;
	do {
		freed = arena->removed.bytes_reclaimed;
		bool will_spill = walk(catalog, arena, chunks_wanted, rank_limit(catalog, before));
		if (arena->removed.bytes_reclaimed == freed && (will_spill || !reclaim_knot(catalog, arena, before)))
			return;
	} while (!arena->is_durable && !has_run(arena, chunks_wanted));
}

static uint64_t above_watermark(const struct fc_catalog *catalog, const struct fc_arena *arena)
{
	uint64_t high = (uint64_t)((double)arena->chunk_count * catalog->opts.high_watermark);
	uint64_t low = (uint64_t)((double)arena->chunk_count * catalog->opts.low_watermark);
	uint64_t used = arena->chunks_linked; /* what is retired, though it may be pinned or read, goes anyway */
	return used > high ? used - low : 0;
}

bool fc_reclaim_is_wanted(const struct fc_catalog *catalog)
{
	bool is_wanted = false;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		is_wanted |= above_watermark(catalog, &catalog->arenas[medium]) > 0;
	return is_wanted;
}

void fc_reclaim_to_watermarks(struct fc_catalog *catalog)
{
	fc_reclaim_spares(catalog);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct fc_arena *arena = &catalog->arenas[medium];
		walk(catalog, arena, above_watermark(catalog, arena), FC_STOOD_UPON);
	}
}

/* ---- an owner's quota ---- */

static uint64_t kept_bytes(const struct fc_owner_state *owner)
{
	return owner->bytes_used - owner->bytes_leaving;
}

static void reclaim_owned(struct fc_catalog *catalog, struct fc_owner_state *owner, struct fc_session *session)
{
	owner->sessions_reclaimed++;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		owner->removed[medium].bytes_reclaimed +=
			session->chunks[medium] * catalog->arenas[medium].superblock.chunk_bytes;
	owner->removed[session->segment_count[FC_SSD] > 0 ? FC_SSD : FC_MEMORY].sessions_reclaimed++;
	fc_reclaim_session(catalog, session);
}

static void walk_owned(struct fc_catalog *catalog, struct fc_owner_state *owner, uint64_t goal)
{
	uint64_t rank = 0;
	while (kept_bytes(owner) > goal) {
		struct fc_order_node *node = fc_order_from(&owner->order, rank + 1);
		if (node == NULL || node->key >= FC_STOOD_UPON)
			return;
		rank = node->key;
		catalog->sessions_examined++;
		reclaim_owned(catalog, owner, fc_container_of(node, struct fc_session, owner_order));
	}
}

void fc_reclaim_for_owner(struct fc_catalog *catalog, struct fc_owner_state *owner, uint64_t bytes)
{
	uint64_t kept = kept_bytes(owner);
	uint64_t goal = kept - fc_min_u64(kept, bytes);
	if (bytes > 0 && fc_is_planted(FC_PLANT_FOREIGN_QUOTA)) {
		struct fc_session *oldest = fc_container_of(catalog->sessions.next, struct fc_session, all_link);
		if (is_reclaimable(oldest))
			reclaim_owned(catalog, owner, oldest);
	}
	walk_owned(catalog, owner, goal);
	struct fc_session *session;
	while (kept_bytes(owner) > goal &&
	       (session = find_knot(catalog, &owner->order, offsetof(struct fc_session, owner_order))) != NULL)
		reclaim_owned(catalog, owner, session);
}

/* ---- eviction ---- */

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

/* Spill: a session's memory is copied to SSD, segment by segment, and then freed.
 *
 * Two occasions mark a session (fc_spill_want()): reclaim of memory with the setting `spill`, and a session that
 * became an agent's whose memory segments could not all be absorbed. A copy has the same shape, so the checksums of the
 * slices stay valid; it replaces the original in the index like any consolidation does. Until then the owner has both,
 * so a session whose owner has no room for that in its quota stays where it is. */
#include "catalog/state.h"

#include "base/plant.h"

#include <string.h>

#define FAILURES_MAX 8u

/* A session that is to leave memory has something there. */
static struct fc_segment *first_in_memory(const struct fc_session *session)
{
	struct fc_link *link = session->segments.next;
	fc_check(session->segment_count[FC_MEMORY] > 0);
	while (fc_container_of(link, struct fc_segment, session_link)->medium != FC_MEMORY)
		link = link->next;
	return fc_container_of(link, struct fc_segment, session_link);
}

static struct fc_segment *next_of_any(const struct fc_catalog *catalog)
{
	fc_list_for_each(link, &catalog->spills)
	{
		struct fc_session *session = fc_container_of(link, struct fc_session, spill_link);
		if (session->reserved_count == 0)
			return first_in_memory(session);
	}
	return NULL;
}

/* A segment that names nothing any more has nothing to hand over to a copy, and goes without one. */
static struct fc_segment *next_to_spill(struct fc_catalog *catalog)
{
	struct fc_segment *segment;
	while ((segment = next_of_any(catalog)) != NULL && segment->named_count == 0) {
		struct fc_session *session = segment->session;
		fc_segment_retire(catalog, segment);
		fc_session_settle(catalog, session);
	}
	return segment;
}

void fc_spill_want(struct fc_catalog *catalog, struct fc_session *session, bool is_for_room)
{
	fc_check(session->segment_count[FC_MEMORY] > 0);
	session->is_spilled_for_room = is_for_room;
	if (!fc_link_is_linked(&session->spill_link))
		fc_list_push(&catalog->spills, &session->spill_link);
}

static int reserve_copy(struct fc_catalog *catalog, const struct fc_segment *original,
			struct fc_reservation *reservation, bool *is_over_quota)
{
	struct fc_segment *copy;
	*is_over_quota = false;
	int code = fc_segment_new(catalog, FC_SSD, &original->shape, &copy);
	if (code != FC_OK)
		return code;
	fc_segment_assign(copy, original->session);
	memcpy(copy->keys, original->keys, original->shape.entry_count * sizeof(*copy->keys));
	copy->turn = original->turn;
	copy->start_block = original->start_block;
	copy->end_block = original->end_block;
	copy->parent = original->parent;
	copy->sound_from = original->sound_from;
	copy->sound_blocks = original->sound_blocks;
	copy->are_resume_blocks_sound = original->are_resume_blocks_sound;
	code = fc_segment_measure(catalog, copy);
	if (code == FC_OK) {
		code = fc_owner_take_room(catalog, copy, false, reservation);
		*is_over_quota = code == FC_EFULL;
	}
	if (code == FC_OK)
		code = fc_segment_take_room(catalog, copy, reservation, original->session);
	if (code != FC_OK) {
		fc_segment_delete(catalog, copy);
		return code;
	}
	code = fc_commit_prepare(catalog, copy);
	if (code == FC_OK)
		code = fc_reservation_add(catalog, reservation, copy);
	if (code != FC_OK)
		fc_segment_delete(catalog, copy);
	return code;
}

static int lease_one(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_path *path)
{
	fc_path_reset(path);
	int code =
		fc_alloc_reserve(catalog->alloc, (void **)&path->placed, &path->placed_room, 1, sizeof(*path->placed));
	if (code != FC_OK)
		return code;
	path->placed[0] = fc_segment_placed(catalog, segment);
	path->placed_count = 1;
	path->is_leased = true;
	catalog->lease_count++;
	segment->lease_count++;
	fc_session_add_lease(catalog, segment->session); /* not a use: the session stays as old as it is */
	return FC_OK;
}

int fc_catalog_spill_next(struct fc_catalog *catalog, struct fc_path *from, struct fc_reservation *reservation)
{
	if (!catalog->arenas[FC_MEMORY].is_open || !catalog->arenas[FC_SSD].is_open || catalog->opts.is_read_only ||
	    catalog->arenas[FC_SSD].is_silent)
		return FC_EAGAIN;
	struct fc_segment *segment = next_to_spill(catalog);
	if (segment == NULL)
		return FC_EAGAIN;
	reservation->keys = NULL;
	reservation->durable_pending = 0;
	reservation->segments_absorbed = 0;
	int code = lease_one(catalog, segment, from);
	if (code != FC_OK)
		return code;
	struct fc_session *session = segment->session;
	bool is_over_quota;
	code = reserve_copy(catalog, segment, reservation, &is_over_quota);
	if (code != FC_EAGAIN)
		reservation->space_attempts = 0; /* of the next one */
	if (code == FC_OK)
		return FC_OK;
	fc_session_keep(session);
	fc_catalog_release(catalog, from);
	if (code == FC_EAGAIN)
		fc_space_wait(catalog, reservation);
	if (code == FC_EFULL) {
		/* No room on SSD either: then it goes as the setting `drop` would have it. Over its owner's quota it
		 * stays: if memory is full, reclaim will find that it cannot be moved. And so does one that is only
		 * wanted elsewhere, or in which something was saved since: it is not the one that can be spared. */
		code = FC_EAGAIN;
		fc_list_remove(&session->spill_link);
		if (session->is_spilled_for_room && !is_over_quota && session->lease_count == 0 &&
		    session->dependent_count == 0)
			fc_reclaim_counted(catalog, &catalog->arenas[FC_MEMORY], session);
	}
	fc_session_let_go(catalog, session);
	return code;
}

/* Reclaim asks again when it needs room; a medium that fails is not asked in a circle. */
void fc_spill_has_failed(struct fc_session *session)
{
	if (!fc_link_is_linked(&session->spill_link) || ++session->spill_failures < FAILURES_MAX ||
	    fc_is_planted(FC_PLANT_ENDLESS_SPILL))
		return;
	fc_list_remove(&session->spill_link);
	session->spill_failures = 0;
}

void fc_catalog_spill_failed(struct fc_catalog *catalog, const struct fc_path *from, int code)
{
	struct fc_segment *segment = from->placed[0].segment;
	if (!fc_segment_is_linked(segment))
		return;
	struct fc_session *session = segment->session;
	fc_spill_has_failed(session);
	if (code != FC_ECORRUPT)
		return;
	/* A copy has the shape of its original, so there will never be one of a damaged segment. */
	fc_session_keep(session);
	fc_segment_retire(catalog, segment);
	fc_reclaim_orphans(catalog, session);
	fc_session_let_go(catalog, session);
}

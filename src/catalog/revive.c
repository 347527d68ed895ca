/* Revive: a write was refused by the medium, and what the segment had replaced becomes the copy again.
 *
 * A replaced segment stays on its medium, pinned by what replaced it, until that is durable (publish.c). One that was
 * replaced by several is pinned by the one that took its last name, and any of them may be refused. So all pinned
 * segments are asked, not only those of the refused one; and what they still pin in their turn is asked as well, since
 * a refused segment may itself have been replaced before it was durable. */
#include "catalog/state.h"

static bool is_whole_on_medium(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	return segment->was_durable || !catalog->arenas[segment->medium].is_durable;
}

static int depend_as_before(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_session *lost)
{
	int code = fc_session_depend_after_move(catalog, lost, segment->session);
	if (code == FC_OK)
		code = fc_publish_depend_on_keepers(catalog, segment);
	if (code != FC_OK || segment->start_block == 0)
		return code;
	struct fc_location parent = fc_index_find(&catalog->index, segment->parent);
	return fc_session_depend(catalog, segment->session, catalog->segments[parent.segment]->session);
}

/* Without memory for what it needs it stays as it is, and goes with what pins it. */
static bool revive(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_session *lost)
{
	struct fc_session *session;
	if (fc_session_obtain(catalog, segment->session_id, segment->session_kind, &session) != FC_OK)
		return false;
	segment->session = session;
	int code = depend_as_before(catalog, segment, lost);
	if (code != FC_OK) {
		if (segment->lease_count == 0)
			segment->session = NULL;
		fc_session_settle(catalog, session);
		return false;
	}
	if (segment->lease_count == 0)
		catalog->arenas[segment->medium].chunks_leaving -= segment->chunk_count;
	fc_list_remove(&segment->pin_link);
	segment->state = segment->was_durable ? FC_SEGMENT_DURABLE : FC_SEGMENT_VISIBLE;
	if (segment->owner != NULL)
		segment->owner->bytes_leaving -= fc_segment_bytes(catalog, segment);
	fc_segment_adopt(catalog, segment, session);
	for (uint64_t entry = 0; entry < segment->shape.entry_count && code == FC_OK; entry++)
		code = fc_segment_name(catalog, segment, entry, false);
	fc_segment_set_backup(catalog, segment, segment->named_count == 0);
	if (code != FC_OK)
		fc_segment_retire(catalog, segment);
	return true;
}

/* What others name already is worth keeping where their copy does not outlive the process. */
static bool is_worth_reviving(struct fc_catalog *catalog, const struct fc_segment *segment)
{
	return fc_segment_has_unnamed(catalog, segment) || fc_publish_is_needed_as_backup(catalog, segment);
}

void fc_revive_replaced(struct fc_catalog *catalog, struct fc_session *lost)
{
	bool any;
	do {
		any = fc_reclaim_take_over(catalog, lost); /* may be the head of what is revived */
		for (uint32_t number = 0; number < catalog->segment_top; number++) {
			struct fc_segment *segment = catalog->segments[number];
			if (segment == NULL || segment->state != FC_SEGMENT_RETIRED ||
			    !fc_link_is_linked(&segment->pin_link) || !is_whole_on_medium(catalog, segment) ||
			    fc_segment_is_orphan(catalog, segment) || !is_worth_reviving(catalog, segment))
				continue;
			any |= revive(catalog, segment, lost);
		}
	} while (any);
}

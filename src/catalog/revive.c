/* Withdraw and revive: a batch was refused by the medium, and what its segments had replaced becomes the copy again.
 *
 * A replaced segment stays on its medium, pinned by what replaced it, until that is durable (publish.c). One that was
 * replaced by several is pinned by the one that took its last name, and any of them may be refused; and a refused
 * segment may itself have been replaced before it was durable, and still pin what it replaced. So all that is pinned is
 * asked, whoever pins it: catalog->pins has it, which is what the turns have replaced that are not yet durable.
 *
 *     refused segments                 stop naming; their sessions are the ones that lose
 *        catalog->pins --> asked       those whose names a refused segment had, or nobody, or a medium that forgets
 *           named again, with what spare copies take over, until nothing changes (one can be the other's head)
 *     refused segments                 go, with what they still pin; then what has lost its head
 *
 * All of a batch together, so it costs by what the turns under way have written and replaced, however many of them were
 * refused, and whatever else is stored. Before, each segment of the batch asked all segments of the catalog. */
#include "catalog/state.h"

#include "base/plant.h"

/* ---- who is asked ---- */

static bool is_whole_on_medium(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	return segment->was_durable || !catalog->arenas[segment->medium].is_durable;
}

static bool has_lost(const struct fc_catalog *catalog, struct fc_key entry_key)
{
	struct fc_location location = fc_index_find(&catalog->index, entry_key);
	const struct fc_segment *holder = fc_location_is_none(location) ? NULL : catalog->segments[location.segment];
	return holder == NULL || holder->is_refused || !catalog->arenas[holder->medium].is_durable;
}

/* While the refused segments still have their names. */
static void gather_asked(struct fc_catalog *catalog, struct fc_link *asked)
{
	fc_list_for_each_safe(link, &catalog->pins)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, pins_link);
		uint64_t entry = 0;
		catalog->segments_examined++;
		while (entry < segment->shape.entry_count && !has_lost(catalog, segment->keys[entry]))
			entry++;
		if (entry == segment->shape.entry_count || !is_whole_on_medium(catalog, segment))
			continue;
		fc_list_remove(&segment->pins_link);
		fc_list_push(asked, &segment->pins_link);
	}
}

/* ---- naming again ---- */

/* Both have a block of the same text: the first that they could have in common, in some group, is the same. */
static bool has_common_block(const struct fc_segment *a, const struct fc_segment *b)
{
	for (uint32_t i = 0; i < a->shape.range_count; i++)
		for (uint32_t j = 0; j < b->shape.range_count; j++) {
			const struct fc_range *left = &a->shape.ranges[i], *right = &b->shape.ranges[j];
			uint64_t first = fc_max_u64(left->block_first, right->block_first);
			if (left->group != right->group || first >= left->block_first + left->count ||
			    first >= right->block_first + right->count)
				continue;
			if (fc_key_equals(a->keys[left->entry_first + first - left->block_first],
					  b->keys[right->entry_first + first - right->block_first]))
				return true;
		}
	return false;
}

/* Whoever stands on the blocks stands on this session from now on, and it on what is before and around them. */
static int depend_as_before(struct fc_catalog *catalog, struct fc_segment *segment, const struct fc_link *refused)
{
	int code = FC_OK;
	fc_list_for_each(link, refused)
	{
		const struct fc_segment *lost = fc_container_of(link, struct fc_segment, commit_link);
		if (code == FC_OK && lost->session != segment->session && has_common_block(lost, segment))
			code = fc_session_depend_after_move(catalog, lost->session, segment->session);
	}
	if (code == FC_OK)
		code = fc_publish_depend_on_keepers(catalog, segment, false);
	if (code != FC_OK || segment->start_block == 0)
		return code;
	struct fc_location parent = fc_index_find(&catalog->index, segment->parent);
	return fc_session_depend(catalog, segment->session, catalog->segments[parent.segment]->session);
}

/* Without memory for what it needs it stays as it is, and goes with what pins it. */
static bool revive(struct fc_catalog *catalog, struct fc_segment *segment, const struct fc_link *refused)
{
	struct fc_session *session;
	if (fc_session_obtain(catalog, segment->session_id, segment->session_kind, &session) != FC_OK)
		return false;
	segment->session = session;
	int code = depend_as_before(catalog, segment, refused);
	if (code != FC_OK) {
		if (segment->lease_count == 0)
			segment->session = NULL;
		fc_session_settle(catalog, session);
		return false;
	}
	if (segment->lease_count == 0)
		catalog->arenas[segment->medium].chunks_leaving -= segment->chunk_count;
	fc_segment_unpin(segment);
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

static void revive_asked(struct fc_catalog *catalog, struct fc_link *asked, const struct fc_link *refused)
{
	bool any;
	do {
		any = fc_reclaim_take_over_lost(catalog); /* may be the head of what is revived */
		fc_list_for_each_safe(link, asked)
		{
			struct fc_segment *segment = fc_container_of(link, struct fc_segment, pins_link);
			catalog->segments_examined++;
			if (!fc_segment_is_orphan(catalog, segment) && is_worth_reviving(catalog, segment))
				any |= revive(catalog, segment, refused);
		}
	} while (any);
}

/* ---- the batch ---- */

void fc_withdraw(struct fc_catalog *catalog, struct fc_link *refused)
{
	struct fc_link asked, *link;
	fc_list_init(&asked);
	fc_list_for_each(each, refused)
	{
		struct fc_segment *segment = fc_container_of(each, struct fc_segment, commit_link);
		segment->is_refused = true;
		fc_spill_has_failed(segment->session);
		fc_reclaim_has_lost(catalog, segment->session); /* it is kept until that is worked off */
	}
	gather_asked(catalog, &asked);
	fc_list_for_each(each, refused)
	{
		fc_segment_spoil(catalog, fc_container_of(each, struct fc_segment, commit_link), 0, true);
	}
	if (!fc_is_planted(FC_PLANT_NO_REVIVE))
		revive_asked(catalog, &asked, refused);
	while ((link = fc_list_pop(&asked)) != NULL)
		fc_list_push(&catalog->pins, link);
	while ((link = fc_list_pop(refused)) != NULL)
		fc_segment_retire(catalog, fc_container_of(link, struct fc_segment, commit_link));
	fc_reclaim_work_off_losses(catalog);
}

/* Damage: a slice was read and is not what its checksum says.
 *
 * The session is cut there: the segment names nothing any more from that block on, and what stands on it goes. Unless
 * the bad block is stored once more. After a restart two copies of the same blocks may be there, when a crash came
 * between the younger one and the end of the older, or when two sessions wrote the same text; the younger is named, and
 * which of them is good nobody knows before a read (rebuild.c). Then the copies take over:
 *
 *     segment    | a | b | X | d | e |          copies    | a | b | c | d |
 *                                                                                  gives up its front, [a, d]:
 *     named      | a | b | c | d | e |                    '-- by the copies --' by the segment
 *
 * The front is given up as far as copies reach without a gap from the segment's first block beyond the bad one. The
 * rest of the segment then begins behind it, and stands on the copies. Where they do not reach that far, it is cut, and
 * the copies name what they have. A copy that is damaged too is cut in its turn, and nothing that was given up comes
 * back; the next opening finds what the medium says, and it all begins anew. */
#include "catalog/state.h"

#include "base/plant.h"

/* Where the segment has path blocks of group 0 that end with block `position` of the path; false when it has none that
 * is sound. */
static bool find_entry(const struct fc_catalog *catalog, const struct fc_segment *segment, uint64_t position,
		       uint64_t *entry)
{
	uint64_t block = position / fc_group_span(&catalog->geometry, 0);
	for (uint32_t i = 0; i < segment->shape.range_count; i++) {
		const struct fc_range *range = &segment->shape.ranges[i];
		if (range->group != 0 || block < range->block_first || block >= range->block_first + range->count)
			continue;
		*entry = range->entry_first + block - range->block_first;
		return fc_segment_is_sound(catalog, segment, *entry);
	}
	return false;
}

/* One of the session's other segments that has the block before `position`, and is no tail without its head: how far it
 * is sound. */
static uint64_t copy_end(const struct fc_catalog *catalog, const struct fc_segment *segment,
			 const struct fc_session *session, uint64_t position)
{
	uint64_t here, there, end = position;
	if (!find_entry(catalog, segment, position, &here))
		return position;
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *copy = fc_container_of(link, struct fc_segment, session_link);
		if (copy == segment || copy->start_block > position || fc_segment_is_orphan(catalog, copy) ||
		    !find_entry(catalog, copy, position, &there) ||
		    !fc_key_equals(copy->keys[there], segment->keys[here]))
			continue;
		end = fc_max_u64(end, fc_min_u64(copy->end_block, copy->sound_blocks));
	}
	return end;
}

/* The same among all that know of the session's blocks (session.c). */
static uint64_t copies_end(struct fc_catalog *catalog, const struct fc_segment *segment, uint64_t position)
{
	uint64_t end = copy_end(catalog, segment, segment->session, position);
	fc_list_for_each(link, &segment->session->dependents)
	{
		const struct fc_session *from = fc_container_of(link, struct fc_dep, link)->from;
		catalog->sessions_examined++;
		end = fc_max_u64(end, copy_end(catalog, segment, from, position));
	}
	return end;
}

/* Path blocks [start, end) are stored once more, and `bad_block` is one of them; 0 when that is not so. */
static uint64_t front_end(struct fc_catalog *catalog, const struct fc_segment *segment, uint64_t bad_block)
{
	uint64_t position = segment->start_block;
	while (position <= bad_block) {
		uint64_t end = copies_end(catalog, segment, position);
		end -= end % catalog->granule;
		if (end <= position)
			return 0;
		position = end;
	}
	return fc_min_u64(position, segment->end_block);
}

static bool give_up_front(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t bad_block)
{
	uint64_t entry, end = front_end(catalog, segment, bad_block);
	if (end == 0 || end == segment->end_block || !find_entry(catalog, segment, end - 1, &entry))
		return false;
	segment->start_block = segment->sound_from = end;
	segment->parent = segment->keys[entry];
	fc_segment_spoil(catalog, segment, segment->sound_blocks, false);
	return true;
}

void fc_catalog_cut(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry)
{
	if (!fc_segment_is_linked(segment) || fc_is_planted(FC_PLANT_NO_CUT))
		return;
	struct fc_session *session = segment->session;
	const struct fc_range *bad = fc_shape_range_of(&segment->shape, entry);
	uint64_t bad_block = bad->block_first + (entry - bad->entry_first);
	fc_session_keep(session);
	if (catalog->geometry.groups[bad->group].rule != FC_RULE_ALL) {
		fc_segment_spoil(catalog, segment, UINT64_MAX, true);
	} else {
		bad_block *= fc_group_span(&catalog->geometry, bad->group);
		if (!segment->was_durable || !give_up_front(catalog, segment, bad_block))
			fc_segment_spoil(catalog, segment, bad_block, false);
	}
	catalog->sessions_cut++;
	if (session->owner != NULL)
		session->owner->sessions_cut++;
	if (segment->named_count == 0)
		fc_segment_retire(catalog, segment);
	fc_reclaim_tell_loss(catalog, session);
	fc_reclaim_orphans(catalog, session);
	fc_session_let_go(catalog, session);
}

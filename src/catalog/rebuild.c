/* Rebuild: sessions, names and order of use, made from the segments that both arenas hold.
 *
 * The medium says what each segment is; what follows from all of them together is not stored, so that it cannot
 * disagree: which of two copies is named (memory before SSD, then the younger), what a session stands on, and what is
 * worth nothing any more, because the block before it is gone.
 *
 * Nobody has read a slice yet, so of two copies the one that is named may be the damaged one. The other is kept as a
 * spare: it takes over when damage is found (reclaim.c), goes with the next turn of its session, whose history has been
 * read by then, and is the first to go when room is wanted. */
#include "catalog/state.h"

#include "base/plant.h"

static uint64_t segments_by_seq(struct fc_catalog *catalog, struct fc_segment **sorted)
{
	uint64_t count = 0;
	for (uint32_t number = 0; number < catalog->segment_top; number++)
		if (catalog->segments[number] != NULL)
			sorted[count++] = catalog->segments[number];
	/* Shell sort; sequence numbers are nearly in order of the segment numbers. */
	for (uint64_t gap = count / 2; gap > 0; gap /= 2)
		for (uint64_t i = gap; i < count; i++) {
			struct fc_segment *moved = sorted[i];
			uint64_t j = i;
			for (; j >= gap && sorted[j - gap]->seq > moved->seq; j -= gap)
				sorted[j] = sorted[j - gap];
			sorted[j] = moved;
		}
	return count;
}

static int name_all(struct fc_catalog *catalog, struct fc_segment **sorted, uint64_t count, enum fc_medium medium)
{
	for (uint64_t i = count; i-- > 0;) {
		struct fc_segment *segment = sorted[i];
		if (segment->medium != medium || !fc_segment_is_linked(segment))
			continue;
		for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++) {
			int code = fc_segment_name(catalog, segment, entry, false);
			if (code != FC_OK)
				return code;
		}
	}
	return FC_OK;
}

static int depend_on_holder(struct fc_catalog *catalog, const struct fc_segment *segment, struct fc_session *holder)
{
	return segment->named_count == 0 ? fc_session_depend_loosely(catalog, segment->session, holder)
					 : fc_session_depend(catalog, segment->session, holder);
}

/* What a session stands on: who holds the block before each of its segments, what that one stands on, and who holds its
 * own blocks in its place; not for good where all that a segment has is spare. */
static int restore_deps(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_session *session = segment->session;
	int code = FC_OK;
	for (uint64_t entry = 0; entry < segment->shape.entry_count && code == FC_OK; entry++) {
		struct fc_location location = fc_index_find(&catalog->index, segment->keys[entry]);
		if (!fc_location_is_none(location))
			code = depend_on_holder(catalog, segment, catalog->segments[location.segment]->session);
	}
	if (segment->start_block == 0 || code != FC_OK)
		return code;
	struct fc_location parent = fc_index_find(&catalog->index, segment->parent);
	struct fc_session *holder = catalog->segments[parent.segment]->session;
	code = fc_session_depend(catalog, session, holder);
	for (uint32_t i = 0; i < holder->dep_count && code == FC_OK; i++)
		code = fc_session_depend(catalog, session, holder->deps[i].on);
	return code;
}

/* Every block of a segment that names nothing is named by another. */
static void keep_spares(struct fc_catalog *catalog)
{
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL || !fc_segment_is_linked(segment) || segment->named_count > 0)
			continue;
		fc_segment_set_backup(catalog, segment, true);
		fc_list_push(&catalog->spares, &segment->spare_link);
		if (fc_is_planted(FC_PLANT_DROP_COPIES))
			fc_segment_retire(catalog, segment);
	}
}

static uint64_t drop_orphans(struct fc_catalog *catalog)
{
	uint64_t dropped = 0, before;
	do {
		before = dropped;
		for (uint32_t number = 0; number < catalog->segment_top; number++) {
			struct fc_segment *segment = catalog->segments[number];
			if (segment == NULL || !fc_segment_is_linked(segment) ||
			    !fc_segment_is_orphan(catalog, segment))
				continue;
			dropped++;
			fc_segment_retire(catalog, segment);
		}
	} while (dropped != before);
	return dropped;
}

/* The chain of holders settles in as many rounds as the longest chain of sessions; deps never shrink. */
static int restore_all_deps(struct fc_catalog *catalog)
{
	int code = FC_OK;
	for (bool changed = true; changed && code == FC_OK;) {
		changed = false;
		for (uint32_t number = 0; number < catalog->segment_top && code == FC_OK; number++) {
			struct fc_segment *segment = catalog->segments[number];
			if (segment == NULL || !fc_segment_is_linked(segment))
				continue;
			uint32_t before = segment->session->dep_count;
			code = restore_deps(catalog, segment);
			changed |= segment->session->dep_count != before;
		}
	}
	return code;
}

static void drop_empty_sessions(struct fc_catalog *catalog)
{
	fc_list_for_each_safe(link, &catalog->sessions)
	{
		fc_session_settle(catalog, fc_container_of(link, struct fc_session, all_link));
	}
}

/* Names everything that has its head. What an orphan has named and an older segment has too is named again, so the
 * spare copies go last. */
static int name_whole(struct fc_catalog *catalog, struct fc_segment **sorted, uint64_t count)
{
	uint64_t orphan_count;
	do {
		int code = name_all(catalog, sorted, count, FC_MEMORY);
		if (code == FC_OK)
			code = name_all(catalog, sorted, count, FC_SSD);
		if (code != FC_OK)
			return code;
		orphan_count = drop_orphans(catalog);
		catalog->dropped_segments += orphan_count;
	} while (orphan_count > 0 && !fc_is_planted(FC_PLANT_NAME_ONCE));
	return FC_OK;
}

static int build(struct fc_catalog *catalog, struct fc_segment **sorted)
{
	uint64_t count = segments_by_seq(catalog, sorted);
	for (uint64_t i = 0; i < count; i++) {
		struct fc_session *session = sorted[i]->session;
		if (fc_list_is_empty(&session->segments)) /* headers are read in any order */
			session->created_seq = ++catalog->use_seq;
		fc_segment_adopt(catalog, sorted[i], session);
		session->turns = fc_max_u64(session->turns, sorted[i]->turn + 1);
	}
	int code = name_whole(catalog, sorted, count);
	if (code != FC_OK)
		return code;
	catalog->recovered_segments += count;
	keep_spares(catalog);
	drop_empty_sessions(catalog);
	return restore_all_deps(catalog);
}

/* The youngest segment of a session stands for its last use, which nothing on the medium tells. */
static void order_by_use(struct fc_catalog *catalog, struct fc_segment **sorted)
{
	uint64_t count = segments_by_seq(catalog, sorted);
	for (uint64_t i = 0; i < count; i++)
		if (fc_segment_is_linked(sorted[i]))
			fc_session_touch(catalog, sorted[i]->session);
}

int fc_rebuild(struct fc_catalog *catalog)
{
	size_t bytes = (catalog->segment_top + 1ull) * sizeof(struct fc_segment *);
	struct fc_segment **sorted = fc_alloc_zeroed(catalog->alloc, bytes);
	if (sorted == NULL)
		return FC_ENOMEM;
	int code = build(catalog, sorted);
	if (code == FC_OK)
		order_by_use(catalog, sorted);
	fc_alloc_free(catalog->alloc, sorted, bytes);
	return code;
}

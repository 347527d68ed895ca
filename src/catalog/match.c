/* Match: how much of a path is stored, and where.
 *
 * Path blocks are numbered from 0. Group g's block b covers path blocks [b*span, (b+1)*span) and is named by the path's
 * key at (b+1)*span-1. The stored prefix is what every FC_RULE_ALL group has; the match ends at the deepest multiple of
 * the resume granule inside it where the window and state groups have what their rule needs. */
#include "catalog/state.h"

#include "base/plant.h"

#define RESUME_BATCH 64

static int scratch_for(struct fc_catalog *catalog, uint64_t key_count)
{
	if (key_count <= catalog->location_room)
		return FC_OK;
	uint64_t room = fc_max_u64(key_count, catalog->location_room * 2);
	struct fc_location *locations = fc_alloc_zeroed(catalog->alloc, room * sizeof(*locations));
	if (locations == NULL)
		return FC_ENOMEM;
	fc_alloc_free(catalog->alloc, catalog->locations, catalog->location_room * sizeof(*locations));
	catalog->locations = locations;
	catalog->location_room = room;
	return FC_OK;
}

static struct fc_index_query query_for(const struct fc_catalog *catalog, const struct fc_key *keys, uint32_t group,
				       uint64_t block_first, uint64_t count)
{
	uint64_t span = fc_group_span(&catalog->geometry, group);
	return (struct fc_index_query){
		.keys = count > 0 ? keys + fc_group_key_position(span, block_first) : NULL, /* no blocks, no keys */
		.stride = span,
		.count = count,
		.group = group,
	};
}

int fc_match_prefix(struct fc_catalog *catalog, const struct fc_key *keys, uint64_t key_count, uint64_t *stored)
{
	/* Group 0 goes last, so that its locations are what stays in the scratch. */
	int code = scratch_for(catalog, key_count);
	if (code != FC_OK)
		return code;
	uint64_t prefix = key_count;
	for (uint32_t i = catalog->geometry.group_count; i-- > 0;) {
		if (catalog->geometry.groups[i].rule != FC_RULE_ALL)
			continue;
		uint64_t span = fc_group_span(&catalog->geometry, i);
		struct fc_index_query query = query_for(catalog, keys, i, 0, prefix / span);
		uint64_t found = fc_index_find_prefix(&catalog->index, &query, catalog->locations);
		/* A group with longer blocks cannot speak for the path blocks behind its last whole one. */
		if (found < query.count)
			prefix = fc_min_u64(prefix, found * span);
	}
	*stored = prefix;
	return FC_OK;
}

/* Of the window or state group: the largest multiple of the granule <= limit where the group has what its rule needs.
 */
static uint64_t group_resume_limit(const struct fc_catalog *catalog, const struct fc_key *keys, uint32_t group,
				   uint64_t limit)
{
	uint64_t span = fc_group_span(&catalog->geometry, group);
	uint64_t candidate = limit - limit % catalog->granule;
	while (candidate > 0) {
		uint64_t first, count;
		fc_group_needed(&catalog->geometry, group, candidate, &first, &count);
		uint64_t missing = count;
		/* From the end backwards: the deepest missing block rules out every candidate whose window holds it. */
		while (missing > 0) {
			uint64_t batch = fc_min_u64(missing, RESUME_BATCH);
			struct fc_location locations[RESUME_BATCH];
			struct fc_index_query query = query_for(catalog, keys, group, first + missing - batch, batch);
			uint64_t there = fc_index_find_batch(&catalog->index, &query, locations);
			if (there < batch) {
				while (!fc_location_is_none(locations[batch - 1]))
					batch--, missing--;
				break;
			}
			missing -= batch;
		}
		if (missing == 0)
			return candidate;
		/* Block first + missing - 1 is not there. The next candidate ends in front of it, at the latest one
		 * granule up. */
		uint64_t end = fc_group_key_position(span, first + missing - 1);
		candidate = fc_min_u64(candidate - catalog->granule, end - end % catalog->granule);
	}
	return 0;
}

static uint64_t deepest_resume_point(const struct fc_catalog *catalog, const struct fc_key *keys, uint64_t limit)
{
	uint64_t candidate = limit - limit % catalog->granule;
	if (!catalog->has_resume_groups || fc_is_planted(FC_PLANT_NO_RESUME_RULE))
		return candidate;
	for (;;) {
		uint64_t lowest = candidate;
		for (uint32_t group = 0; group < catalog->geometry.group_count; group++)
			if (catalog->geometry.groups[group].rule != FC_RULE_ALL)
				lowest = group_resume_limit(catalog, keys, group, lowest);
		if (lowest == candidate)
			return candidate;
		candidate = lowest;
	}
}

/* ---- paths ---- */

void fc_path_reset(struct fc_path *path)
{
	fc_check(!path->is_leased);
	path->placed_count = path->span_count = 0;
	path->blocks = path->stored_blocks = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		path->bytes[medium] = 0;
}

void fc_path_deinit(struct fc_path *path, const struct fc_alloc *alloc)
{
	fc_check(!path->is_leased);
	fc_alloc_free(alloc, path->placed, path->placed_room * sizeof(*path->placed));
	fc_alloc_free(alloc, path->spans, path->span_room * sizeof(*path->spans));
	fc_shape_store_deinit(&path->shapes, alloc);
	*path = (struct fc_path){0};
}

void fc_shape_store_deinit(struct fc_shape_store *store, const struct fc_alloc *alloc)
{
	fc_alloc_free(alloc, store->shapes, store->shape_room * sizeof(*store->shapes));
	fc_alloc_free(alloc, store->ranges, store->range_room * sizeof(*store->ranges));
	*store = (struct fc_shape_store){0};
}

static int placed_index(struct fc_catalog *catalog, struct fc_path *path, struct fc_segment *segment, uint32_t *index)
{
	/* Nearly always the one that was added last; a path has few segments. */
	for (uint32_t i = path->placed_count; i-- > 0;) {
		if (path->placed[i].segment == segment) {
			*index = i;
			return FC_OK;
		}
	}
	int code = fc_alloc_reserve(catalog->alloc, (void **)&path->placed, &path->placed_room,
				    path->placed_count + 1ull, sizeof(*path->placed));
	if (code != FC_OK)
		return code;
	*index = path->placed_count;
	path->placed[path->placed_count++] = fc_segment_placed(catalog, segment);
	return FC_OK;
}

static int add_block(struct fc_catalog *catalog, struct fc_path *path, uint32_t group, uint64_t block,
		     struct fc_location location)
{
	struct fc_segment *segment = catalog->segments[location.segment];
	path->bytes[segment->medium] += catalog->block_bytes[group];
	if (path->span_count > 0) {
		struct fc_span *last = &path->spans[path->span_count - 1];
		const struct fc_placed *placed = &path->placed[last->placed];
		const struct fc_range *range = fc_shape_range_of(placed->shape, last->entry_first);
		if (placed->segment == segment && last->group == group &&
		    last->entry_first + last->count == location.entry && last->block_first + last->count == block &&
		    location.entry < range->entry_first + range->count) {
			last->count++;
			return FC_OK;
		}
	}
	int code = fc_alloc_reserve(catalog->alloc, (void **)&path->spans, &path->span_room, path->span_count + 1ull,
				    sizeof(*path->spans));
	if (code != FC_OK)
		return code;
	struct fc_span span = {.group = group, .block_first = block, .count = 1, .entry_first = location.entry};
	code = placed_index(catalog, path, segment, &span.placed);
	if (code == FC_OK)
		path->spans[path->span_count++] = span;
	return code;
}

/* Blocks whose locations are in the scratch. */
static int add_located(struct fc_catalog *catalog, struct fc_path *path, uint32_t group, uint64_t block_first,
		       uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		int code = add_block(catalog, path, group, block_first + i, catalog->locations[i]);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

int fc_match_add_spans(struct fc_catalog *catalog, struct fc_path *path, const struct fc_key *keys, uint32_t group,
		       uint64_t block_first, uint64_t count)
{
	struct fc_index_query query = query_for(catalog, keys, group, block_first, count);
	if (count == 0)
		return FC_OK;
	fc_check(fc_index_find_batch(&catalog->index, &query, catalog->locations) == count);
	return add_located(catalog, path, group, block_first, count);
}

int fc_catalog_match(struct fc_catalog *catalog, const struct fc_key *keys, uint64_t key_count, uint64_t blocks_max,
		     bool lease, struct fc_path *path)
{
	fc_path_reset(path);
	uint64_t stored;
	int code = fc_match_prefix(catalog, keys, key_count, &stored);
	if (code != FC_OK)
		return code;
	uint64_t limit = blocks_max == 0 ? stored : fc_min_u64(stored, blocks_max);
	uint64_t blocks = deepest_resume_point(catalog, keys, limit);
	code = add_located(catalog, path, 0, 0, blocks); /* where fc_match_prefix() has just found them */
	for (uint32_t group = 1; group < catalog->geometry.group_count && code == FC_OK; group++) {
		uint64_t first, count;
		fc_group_needed(&catalog->geometry, group, blocks, &first, &count);
		code = fc_match_add_spans(catalog, path, keys, group, first, count);
	}
	if (code != FC_OK) {
		fc_path_reset(path);
		return code;
	}
	path->blocks = blocks;
	path->stored_blocks = stored;
	if (lease) {
		fc_path_lease(catalog, path);
		for (uint32_t i = 0; i < path->placed_count; i++)
			if (path->placed[i].segment->session->load_count++ == 0)
				fc_reclaim_sort(catalog, path->placed[i].segment->session);
	}
	return FC_OK;
}

/* ---- leases ---- */

void fc_path_lease(struct fc_catalog *catalog, struct fc_path *path)
{
	fc_check(!path->is_leased);
	path->is_leased = true;
	catalog->lease_count++;
	for (uint32_t i = 0; i < path->placed_count; i++) {
		struct fc_segment *segment = path->placed[i].segment;
		segment->lease_count++;
		fc_session_add_lease(catalog, segment->session);
		fc_session_touch(catalog, segment->session);
	}
}

void fc_catalog_release(struct fc_catalog *catalog, struct fc_path *path)
{
	if (!path->is_leased)
		return;
	path->is_leased = false;
	catalog->lease_count--;
	for (uint32_t i = 0; i < path->placed_count; i++) {
		struct fc_segment *segment = path->placed[i].segment;
		struct fc_session *session = segment->session;
		fc_check(segment->lease_count > 0);
		segment->lease_count--;
		fc_session_drop_lease(catalog, session);
		if (segment->state == FC_SEGMENT_RETIRED && segment->lease_count == 0) {
			fc_segment_leave(catalog, segment);
			fc_segment_settle(catalog, segment);
		}
		fc_session_settle(catalog, session);
	}
	path->placed_count = path->span_count = 0;
	path->bytes[FC_MEMORY] = path->bytes[FC_SSD] = 0;
}

/* The catalog's frame: closing, sessions, statistics. Opening is in recover.c. */
#include "catalog/state.h"

void fc_catalog_free(struct fc_catalog *catalog)
{
	if (catalog == NULL)
		return;
	const struct fc_alloc *alloc = catalog->alloc;
	fc_open_deinit(catalog);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_commit_deinit(&catalog->arenas[medium]);
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL)
			continue;
		fc_commit_forget(catalog, segment);
		fc_alloc_free(alloc, segment, segment->allocated_bytes);
	}
	fc_session_table_deinit(catalog);
	fc_owners_deinit(catalog);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct fc_arena *arena = &catalog->arenas[medium];
		fc_space_deinit(&arena->space);
		fc_alloc_free(alloc, arena->owner, arena->chunk_count * sizeof(*arena->owner));
		fc_alloc_free(alloc, arena->ender, arena->chunk_count * sizeof(*arena->ender));
	}
	fc_index_deinit(&catalog->index);
	fc_alloc_free(alloc, catalog->segments, catalog->segment_room * sizeof(*catalog->segments));
	fc_alloc_free(alloc, catalog->free_numbers, catalog->segment_room * sizeof(*catalog->free_numbers));
	fc_alloc_free(alloc, catalog->locations, catalog->location_room * sizeof(*catalog->locations));
	fc_alloc_free(alloc, catalog, sizeof(*catalog));
}

const struct fc_superblock *fc_catalog_superblock(const struct fc_catalog *catalog, enum fc_medium medium)
{
	const struct fc_arena *arena = &catalog->arenas[medium];
	return arena->is_open ? &arena->superblock : NULL;
}

uint64_t fc_catalog_largest_free_bytes(const struct fc_catalog *catalog, enum fc_medium medium)
{
	const struct fc_arena *arena = &catalog->arenas[medium];
	return arena->is_open ? fc_space_largest(&arena->space, NULL) * arena->superblock.chunk_bytes : 0;
}

void fc_catalog_on_loss(struct fc_catalog *catalog, void (*loss_cb)(void *context, struct fc_session_id id),
			void *context)
{
	catalog->loss_cb = loss_cb;
	catalog->loss_context = context;
}

static struct fc_session_info describe(const struct fc_catalog *catalog, const struct fc_session *session)
{
	struct fc_session_info info = {
		.id = session->id,
		.kind = session->kind,
		.turns = session->turns,
		.leases = session->lease_count,
		.dependents = session->dependent_count,
		.created_seq = session->created_seq,
		.used_seq = session->used_seq,
	};
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		info.blocks += segment->named_count;
		info.segments++;
		info.extents += !fc_segment_has_seam(catalog, segment);
		info.bytes[segment->medium] += fc_segment_bytes(catalog, segment);
	}
	return info;
}

void fc_catalog_sessions(struct fc_catalog *catalog, bool (*each)(void *context, const struct fc_session_info *info),
			 void *context)
{
	fc_list_for_each(link, &catalog->sessions)
	{
		struct fc_session_info info = describe(catalog, fc_container_of(link, struct fc_session, all_link));
		if (!each(context, &info))
			return;
	}
}

int fc_catalog_session_blocks(struct fc_catalog *catalog, struct fc_session_id id, uint64_t *blocks)
{
	const struct fc_session *session = fc_session_find(catalog, id);
	if (session == NULL)
		return FC_ENOENT;
	*blocks = 0;
	fc_list_for_each(link, &session->segments)
	{
		*blocks += fc_container_of(link, struct fc_segment, session_link)->named_count;
	}
	return FC_OK;
}

void fc_catalog_segments(struct fc_catalog *catalog, bool (*each)(void *context, const struct fc_segment_info *info),
			 void *context)
{
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL)
			continue;
		struct fc_segment_info info = {
			.placed = fc_segment_placed(catalog, segment),
			.session_kind = segment->session_kind,
			.turn = segment->turn,
			.seq = segment->seq,
			.start_block = segment->start_block,
			.end_block = segment->end_block,
			.bytes = fc_segment_bytes(catalog, segment),
			.blocks_named = segment->named_count,
			.is_kept = fc_segment_is_linked(segment),
		};
		if (info.is_kept)
			info.session = segment->session->id;
		if (!each(context, &info))
			return;
	}
}

static struct fc_medium_stats describe_arena(const struct fc_arena *arena, const struct fc_holdings *held,
					     const struct fc_removals *removed)
{
	return (struct fc_medium_stats){
		.bytes = arena->chunk_count * arena->superblock.chunk_bytes,
		.bytes_used = held->chunks_used * arena->superblock.chunk_bytes,
		.bytes_stored = held->bytes_stored,
		.segments = held->segment_count,
		.extents = held->segment_count - held->seam_count, /* of each, one segment has none behind it */
		.sessions = held->session_count,
		.blocks = held->blocks_named,
		.sessions_reclaimed = removed->sessions_reclaimed,
		.bytes_reclaimed = removed->bytes_reclaimed,
		.segments_absorbed = removed->segments_absorbed,
	};
}

static void arena_stats(const struct fc_arena *arena, struct fc_medium_stats *stats)
{
	*stats = describe_arena(arena, &arena->held, &arena->removed);
	const struct fc_media_counters *counters = &arena->media->counters;
	stats->bytes_read = counters->bytes_read;
	stats->bytes_written = counters->bytes_written;
	stats->read_commands = counters->read_commands;
	stats->write_commands = counters->write_commands;
}

/* Counters only: whoever asks, however often, and however much is stored. fc_catalog_check() knows where they come
 * from.
 */
void fc_catalog_stats(const struct fc_catalog *catalog, struct fc_stats *stats)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (catalog->arenas[medium].is_open)
			arena_stats(&catalog->arenas[medium], &stats->media[medium]);
	stats->blocks = fc_index_count(&catalog->index);
	stats->index_bytes = fc_index_bytes(&catalog->index) + catalog->key_bytes;
	stats->leases = catalog->lease_count;
	stats->sessions_cut = catalog->sessions_cut;
	stats->saves_refused = catalog->saves_refused;
	stats->recovered_segments = catalog->recovered_segments;
	stats->dropped_segments = catalog->dropped_segments;
}

int fc_catalog_stats_of(const struct fc_catalog *catalog, uint16_t tag, struct fc_stats *stats)
{
	const struct fc_owner_state *owner = fc_owner_find(catalog, tag);
	*stats = (struct fc_stats){0};
	if (owner == NULL)
		return FC_ENOENT;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (!catalog->arenas[medium].is_open)
			continue;
		stats->media[medium] =
			describe_arena(&catalog->arenas[medium], &owner->held[medium], &owner->removed[medium]);
		stats->blocks += owner->held[medium].blocks_named;
	}
	stats->saves_refused = owner->saves_refused;
	stats->sessions_cut = owner->sessions_cut;
	return FC_OK;
}

/* Room: how long a segment may be, how many chunks it is, and how it comes by them.
 *
 * What is free is taken at once. What sessions have to go for is on its way: a commit batch zeroes their entries before
 * their chunks are free (commit.c), and whoever wants them waits, and tries again after each batch. Many may wait for
 * one arena. Each has its share in what is on its way (arena->chunks_awaited), so that all of them may be served by the
 * same batch; and it is refused when nothing is left that could be reclaimed, not because others came first. */
#include "catalog/state.h"

/* ---- lengths ---- */

/* What a granule of all blocks, and what the blocks of one resume point, take in a layer. */
static void layer_needs(const struct fc_geometry *geometry, uint32_t layer, uint64_t *granule_bytes,
			uint64_t *resume_bytes)
{
	uint64_t granule = fc_resume_granule(geometry);
	*granule_bytes = *resume_bytes = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t first, count, slice_bytes = geometry->groups[group].slice_bytes[layer];
		if (slice_bytes == 0)
			continue;
		if (geometry->groups[group].rule == FC_RULE_ALL) {
			*granule_bytes += granule / fc_group_span(geometry, group) * (slice_bytes + FC_CHECKSUM_BYTES);
			continue;
		}
		fc_group_needed(geometry, group, UINT32_MAX - UINT32_MAX % granule, &first, &count);
		*resume_bytes += count * (slice_bytes + FC_CHECKSUM_BYTES);
	}
}

uint64_t fc_catalog_area_bytes_min(const struct fc_geometry *geometry)
{
	uint64_t longest = 0;
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		uint64_t granule_bytes, resume_bytes;
		layer_needs(geometry, layer, &granule_bytes, &resume_bytes);
		longest = fc_max_u64(longest, granule_bytes + resume_bytes);
	}
	return longest;
}

uint64_t fc_segment_blocks_max(const struct fc_geometry *geometry, uint64_t area_bytes_max)
{
	uint64_t granule = fc_resume_granule(geometry);
	uint64_t granules = area_bytes_max == 0 ? UINT32_MAX / granule : UINT64_MAX;
	for (uint32_t layer = 0; layer < geometry->layer_count && area_bytes_max > 0; layer++) {
		uint64_t granule_bytes, resume_bytes;
		layer_needs(geometry, layer, &granule_bytes, &resume_bytes);
		if (granule_bytes > 0 && area_bytes_max > resume_bytes)
			granules = fc_min_u64(granules, (area_bytes_max - resume_bytes) / granule_bytes);
		else if (granule_bytes > 0)
			granules = 1;
	}
	return fc_max_u64(1, fc_min_u64(granules, UINT32_MAX / granule)) * granule;
}

/* ---- chunks ---- */

uint64_t fc_room_chunks(const struct fc_superblock *superblock, uint64_t bytes)
{
	return (bytes + superblock->chunk_bytes - 1) / superblock->chunk_bytes;
}

int fc_segment_measure(struct fc_catalog *catalog, struct fc_segment *segment)
{
	const struct fc_superblock *superblock = &catalog->arenas[segment->medium].superblock;
	uint64_t bytes;
	if (fc_shape_bytes(&catalog->geometry, &segment->shape, superblock->align, &bytes) != FC_OK)
		return FC_EFULL;
	segment->header_bytes = fc_shape_header_bytes(&segment->shape, superblock->align);
	segment->chunk_count = fc_room_chunks(superblock, bytes);
	return segment->chunk_count > catalog->arenas[segment->medium].chunk_count ? FC_EFULL : FC_OK;
}

/* Finds room, reclaiming whole sessions if need be. Space that is being freed is worth waiting for, but not for ever: a
 * medium that fails to write frees nothing. */
int fc_segment_take_room(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_reservation *reservation,
			 const struct fc_session *before)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	int code = fc_segment_place(catalog, segment);
	if (code != FC_EFULL || segment->chunk_count > fc_reclaim_room_max(arena))
		return code;
	fc_reclaim_for(catalog, arena, segment->chunk_count, before);
	code = fc_segment_place(catalog, segment);
	if (code != FC_EFULL)
		return code;
	fc_commit_kick(arena);
	if (arena->batch == NULL || !fc_space_is_worth_waiting(catalog, reservation))
		return FC_EFULL;
	reservation->wait_medium = segment->medium;
	reservation->wait_chunks = segment->chunk_count;
	return FC_EAGAIN;
}

/* ---- waiting for space ---- */

/* A medium that fails to write frees nothing, so who waits in vain gives up. As long as chunks become free, whoever got
 * them, waiting is worth it. */
bool fc_space_is_worth_waiting(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	if (reservation->space_attempts++ == 0 || reservation->space_freed != catalog->chunks_freed)
		reservation->space_stalls = 0;
	reservation->space_freed = catalog->chunks_freed;
	return reservation->space_stalls++ < FC_SPACE_STALLS_MAX;
}

void fc_space_wait(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	catalog->arenas[reservation->wait_medium].chunks_awaited += reservation->wait_chunks;
	fc_list_push(&catalog->space_waiters, &reservation->wait_link);
}

void fc_space_wait_no_more(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	if (!fc_link_is_linked(&reservation->wait_link))
		return;
	fc_list_remove(&reservation->wait_link);
	catalog->arenas[reservation->wait_medium].chunks_awaited -= reservation->wait_chunks;
	reservation->wait_chunks = 0;
}

void fc_space_wake(struct fc_catalog *catalog)
{
	struct fc_link waiters;
	fc_list_init(&waiters);
	struct fc_link *link;
	while (!fc_list_is_empty(&catalog->space_waiters)) {
		link = catalog->space_waiters.next;
		fc_space_wait_no_more(catalog, fc_container_of(link, struct fc_reservation, wait_link));
		fc_list_push(&waiters, link);
	}
	while ((link = fc_list_pop(&waiters)) != NULL) {
		struct fc_reservation *reservation = fc_container_of(link, struct fc_reservation, wait_link);
		reservation->space_cb(reservation);
	}
}

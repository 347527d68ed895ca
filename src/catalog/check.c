/* The full scan: recomputes every counter from what is there, and tests the invariants of catalog.h one by one. */
#include "catalog/state.h"

#define REQUIRE(condition, ...)                                                                                        \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return fc_error_set(error, FC_ECORRUPT, __VA_ARGS__);                                          \
	} while (0)

static bool is_held_by(const struct fc_session *session, const struct fc_session *holder)
{
	bool is_held = session == holder;
	for (uint32_t i = 0; i < session->dep_count; i++)
		is_held |= session->deps[i] == holder;
	return is_held;
}

static int check_segment(struct fc_catalog *catalog, const struct fc_segment *segment, struct fc_error *error)
{
	const struct fc_arena *arena = &catalog->arenas[segment->medium];
	uint64_t named = 0;
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++) {
		struct fc_location location = fc_index_find(&catalog->index, segment->keys[entry]);
		named += location.segment == segment->number && location.entry == entry;
	}
	REQUIRE(named == segment->named_count, "segment %u: %llu entries are named, counted %llu", segment->number,
		(unsigned long long)named, (unsigned long long)segment->named_count);
	REQUIRE(named == 0 || fc_segment_is_linked(segment), "segment %u is named in state %d", segment->number,
		(int)segment->state);
	REQUIRE(segment->chunk_first + segment->chunk_count <= arena->chunk_count, "segment %u lies outside its arena",
		segment->number);
	REQUIRE(arena->owner[segment->chunk_first] == segment->number + 1,
		"segment %u does not own its first chunk %llu", segment->number,
		(unsigned long long)segment->chunk_first);
	if (!fc_segment_is_linked(segment))
		return FC_OK;
	REQUIRE(segment->named_count > 0 || segment->is_backup, "segment %u is kept, but nothing names it",
		segment->number);
	if (segment->start_block == 0)
		return FC_OK;
	struct fc_location parent = fc_index_find(&catalog->index, segment->parent);
	REQUIRE(!fc_location_is_none(parent), "segment %u begins at block %llu, and the block before it is gone",
		segment->number, (unsigned long long)segment->start_block);
	REQUIRE(is_held_by(segment->session, catalog->segments[parent.segment]->session),
		"segment %u stands on a session that its own does not hold", segment->number);
	return FC_OK;
}

/* What a segment names has a head: the block before it on the path is named, by a session that its own holds. */
static int check_heads(struct fc_catalog *catalog, const struct fc_segment *segment, struct fc_error *error)
{
	for (uint32_t i = 0; i < segment->shape.range_count; i++) {
		const struct fc_range *range = &segment->shape.ranges[i];
		if (catalog->geometry.groups[range->group].rule != FC_RULE_ALL)
			continue;
		for (uint64_t entry = range->entry_first + 1; entry < range->entry_first + range->count; entry++) {
			struct fc_location here = fc_index_find(&catalog->index, segment->keys[entry]);
			struct fc_location before = fc_index_find(&catalog->index, segment->keys[entry - 1]);
			if (here.segment != segment->number)
				continue;
			REQUIRE(!fc_location_is_none(before),
				"segment %u: entry %llu is named, and the one before is gone", segment->number,
				(unsigned long long)entry);
			REQUIRE(is_held_by(segment->session, catalog->segments[before.segment]->session),
				"segment %u: entry %llu stands on a session that its own does not hold",
				segment->number, (unsigned long long)entry);
		}
	}
	return FC_OK;
}

static int check_session(const struct fc_session *session, uint64_t *leases, struct fc_error *error)
{
	uint64_t segments[FC_MEDIUM_COUNT] = {0};
	uint64_t linked_leases = 0;
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		REQUIRE(segment->session == session, "segment %u is listed by another session", segment->number);
		segments[segment->medium]++;
		linked_leases += segment->lease_count;
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		REQUIRE(segments[medium] == session->segment_count[medium],
			"session %016llx: %llu segments, counted %llu", (unsigned long long)session->id.low,
			(unsigned long long)segments[medium], (unsigned long long)session->segment_count[medium]);
	REQUIRE(!fc_link_is_linked(&session->spill_link) || segments[FC_MEMORY] > 0,
		"session %016llx is to leave memory, and has nothing there", (unsigned long long)session->id.low);
	REQUIRE(linked_leases <= session->lease_count, "session %016llx has fewer leases than its segments",
		(unsigned long long)session->id.low);
	*leases += session->lease_count;
	return FC_OK;
}

struct arena_sums {
	uint64_t chunks, chunks_freeing, chunks_linked, named, bytes_stored, linked;
};

static void add_segment(const struct fc_catalog *catalog, const struct fc_segment *segment, struct arena_sums *sums)
{
	sums->chunks += segment->chunk_count;
	if (segment->state == FC_SEGMENT_RETIRED && fc_link_is_linked(&segment->commit_link) && !segment->is_committing)
		sums->chunks_freeing += segment->chunk_count;
	sums->named += segment->named_count;
	sums->linked += fc_segment_is_linked(segment);
	sums->chunks_linked += fc_segment_is_linked(segment) ? segment->chunk_count : 0;
	(void)catalog;
}

static int check_arena(const struct fc_arena *arena, const struct arena_sums *sums, struct fc_error *error)
{
	const char *name = arena->medium == FC_SSD ? "ssd" : "memory";
	fc_space_check(&arena->space);
	REQUIRE(sums->chunks == arena->chunks_used, "%s: segments hold %llu chunks, counted %llu", name,
		(unsigned long long)sums->chunks, (unsigned long long)arena->chunks_used);
	REQUIRE(fc_space_free_count(&arena->space) + arena->chunks_used == arena->chunk_count,
		"%s: %llu chunks free and %llu used of %llu", name,
		(unsigned long long)fc_space_free_count(&arena->space), (unsigned long long)arena->chunks_used,
		(unsigned long long)arena->chunk_count);
	REQUIRE(sums->chunks_freeing == arena->chunks_freeing, "%s: %llu chunks on their way to be free, counted %llu",
		name, (unsigned long long)sums->chunks_freeing, (unsigned long long)arena->chunks_freeing);
	REQUIRE(sums->chunks_linked == arena->chunks_linked, "%s: sessions hold %llu chunks, counted %llu", name,
		(unsigned long long)sums->chunks_linked, (unsigned long long)arena->chunks_linked);
	REQUIRE(sums->named == arena->blocks_named, "%s: %llu blocks named, counted %llu", name,
		(unsigned long long)sums->named, (unsigned long long)arena->blocks_named);
	REQUIRE(sums->linked == arena->segment_count, "%s: %llu segments, counted %llu", name,
		(unsigned long long)sums->linked, (unsigned long long)arena->segment_count);
	REQUIRE(sums->bytes_stored == arena->bytes_stored, "%s: %llu bytes stored, counted %llu", name,
		(unsigned long long)sums->bytes_stored, (unsigned long long)arena->bytes_stored);
	uint64_t owners = 0;
	for (uint64_t chunk = 0; chunk < arena->chunk_count; chunk++)
		owners += arena->owner[chunk] != 0;
	uint64_t segments = 0;
	for (uint32_t number = 0; number < arena->catalog->segment_top; number++) {
		const struct fc_segment *segment = arena->catalog->segments[number];
		segments += segment != NULL && segment->medium == arena->medium;
	}
	REQUIRE(owners == segments, "%s: %llu chunks begin a segment, and there are %llu", name,
		(unsigned long long)owners, (unsigned long long)segments);
	return FC_OK;
}

static int check_owner(const struct fc_catalog *catalog, const struct fc_owner_state *owner, struct fc_error *error)
{
	uint64_t used = 0, leaving = 0, sessions = 0, used_seq = 0;
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		const struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL || fc_session_tag(segment->session_id) != owner->tag)
			continue;
		used += fc_segment_bytes(catalog, segment);
		leaving += segment->state == FC_SEGMENT_RETIRED ? fc_segment_bytes(catalog, segment) : 0;
	}
	fc_list_for_each(link, &owner->sessions)
	{
		const struct fc_session *session = fc_container_of(link, struct fc_session, owner_link);
		REQUIRE(session->owner == owner && fc_session_tag(session->id) == owner->tag,
			"owner %u: session %016llx is another owner's", owner->tag,
			(unsigned long long)session->id.high);
		REQUIRE(session->used_seq > used_seq, "owner %u: its sessions are not in the order of their use",
			owner->tag);
		used_seq = session->used_seq;
		sessions++;
	}
	REQUIRE(used == owner->bytes_used, "owner %u: segments take %llu bytes, counted %llu", owner->tag,
		(unsigned long long)used, (unsigned long long)owner->bytes_used);
	REQUIRE(leaving == owner->bytes_leaving, "owner %u: %llu bytes are leaving, counted %llu", owner->tag,
		(unsigned long long)leaving, (unsigned long long)owner->bytes_leaving);
	REQUIRE(sessions == owner->session_count, "owner %u: %llu sessions, counted %llu", owner->tag,
		(unsigned long long)sessions, (unsigned long long)owner->session_count);
	REQUIRE(owner->bytes_max == 0 || used <= fc_max_u64(owner->bytes_max, owner->bytes_opened),
		"owner %u: %llu bytes are used of %llu", owner->tag, (unsigned long long)used,
		(unsigned long long)owner->bytes_max);
	return FC_OK;
}

/* Every session of an owner is in its list: each is there once, and there are as many. */
static int check_owners(const struct fc_catalog *catalog, struct fc_error *error)
{
	uint64_t owned = 0, listed = 0;
	for (uint32_t i = 0; i < catalog->owner_count; i++) {
		int code = check_owner(catalog, &catalog->owners[i], error);
		if (code != FC_OK)
			return code;
		listed += catalog->owners[i].session_count;
	}
	fc_list_for_each(link, &catalog->sessions)
	{
		const struct fc_session *session = fc_container_of(link, struct fc_session, all_link);
		owned += fc_owner_find(catalog, fc_session_tag(session->id)) != NULL;
	}
	REQUIRE(owned == listed, "%llu sessions have an owner, %llu are an owner's", (unsigned long long)owned,
		(unsigned long long)listed);
	return FC_OK;
}

static uint64_t stored_bytes(struct fc_catalog *catalog, struct fc_segment *segment)
{
	uint64_t bytes = 0;
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		if (fc_segment_is_named(catalog, segment, entry))
			bytes += catalog->block_bytes[fc_shape_range_of(&segment->shape, entry)->group];
	return bytes;
}

int fc_catalog_check(struct fc_catalog *catalog, struct fc_error *error)
{
	struct arena_sums sums[FC_MEDIUM_COUNT] = {0};
	uint64_t segment_leases = 0, session_leases = 0, named = 0;
	fc_index_check(&catalog->index);
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL)
			continue;
		int code = check_segment(catalog, segment, error);
		if (code == FC_OK && fc_segment_is_linked(segment))
			code = check_heads(catalog, segment, error);
		if (code != FC_OK)
			return code;
		add_segment(catalog, segment, &sums[segment->medium]);
		sums[segment->medium].bytes_stored += stored_bytes(catalog, segment);
		segment_leases += segment->lease_count;
		named += segment->named_count;
	}
	fc_list_for_each(link, &catalog->sessions)
	{
		int code = check_session(fc_container_of(link, struct fc_session, all_link), &session_leases, error);
		if (code != FC_OK)
			return code;
	}
	REQUIRE(segment_leases == session_leases, "segments have %llu leases, sessions %llu",
		(unsigned long long)segment_leases, (unsigned long long)session_leases);
	REQUIRE((segment_leases == 0) || catalog->lease_count > 0, "segments are leased, but no lease is counted");
	REQUIRE(named == fc_index_count(&catalog->index), "segments have %llu named entries, the index %llu",
		(unsigned long long)named, (unsigned long long)fc_index_count(&catalog->index));
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		int code = catalog->arenas[medium].is_open ? check_arena(&catalog->arenas[medium], &sums[medium], error)
							   : FC_OK;
		if (code != FC_OK)
			return code;
	}
	return check_owners(catalog, error);
}

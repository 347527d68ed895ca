/* The full scan: recomputes every counter from what is there, and tests the invariants of catalog.h one by one. */
#include "catalog/state.h"

#include <stdio.h>

#define REQUIRE(condition, ...)                                                                                        \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return fc_error_set(error, FC_ECORRUPT, __VA_ARGS__);                                          \
	} while (0)

static bool knows(const struct fc_session *session, const struct fc_session *holder, bool loosely)
{
	bool is_known = session == holder;
	for (uint32_t i = 0; i < session->dep_count; i++)
		is_known |= session->deps[i].on == holder && (loosely || !session->deps[i].is_loose);
	return is_known;
}

static bool is_held_by(const struct fc_session *session, const struct fc_session *holder)
{
	return knows(session, holder, false);
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
	REQUIRE(arena->ender[segment->chunk_first + segment->chunk_count - 1] == segment->number + 1,
		"segment %u does not own its last chunk", segment->number);
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

/* What a segment has and others name is known to them as its session's, so that it can take over from them. */
static int check_spares(struct fc_catalog *catalog, const struct fc_segment *segment, struct fc_error *error)
{
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++) {
		struct fc_location location = fc_index_find(&catalog->index, segment->keys[entry]);
		REQUIRE(fc_location_is_none(location) || !fc_segment_is_sound(catalog, segment, entry) ||
				knows(segment->session, catalog->segments[location.segment]->session, true),
			"segment %u: entry %llu is named by a session that does not know of it", segment->number,
			(unsigned long long)entry);
	}
	return FC_OK;
}

/* Both ends of what stands on what, and what is counted of it. */
static int check_deps(const struct fc_session *session, struct fc_error *error)
{
	uint32_t listed = 0, dependents = 0, busy = 0, foreign = 0;
	for (uint32_t i = 0; i < session->dep_count; i++) {
		const struct fc_dep *dep = &session->deps[i];
		REQUIRE(dep->from == session && dep->on != session && dep->link.next->prev == &dep->link &&
				dep->link.prev->next == &dep->link,
			"session %016llx: what it stands on does not know of it", (unsigned long long)session->id.low);
		for (uint32_t j = 0; j < i; j++)
			REQUIRE(session->deps[j].on != dep->on, "session %016llx stands on another twice",
				(unsigned long long)session->id.low);
	}
	fc_list_for_each(link, &session->dependents)
	{
		const struct fc_dep *dep = fc_container_of(link, struct fc_dep, link);
		bool is_one = dep >= dep->from->deps && dep < dep->from->deps + dep->from->dep_count;
		REQUIRE(dep->on == session && is_one, "session %016llx: what stands on it does not know of it",
			(unsigned long long)session->id.low);
		listed++;
		dependents += !dep->is_loose;
		busy += !dep->is_loose && dep->from->is_busy;
		foreign += !dep->is_loose && dep->from->owner != session->owner;
	}
	REQUIRE(dependents == session->dependent_count, "session %016llx: %u stand on it, counted %u of %u",
		(unsigned long long)session->id.low, dependents, session->dependent_count, listed);
	REQUIRE(busy == session->busy_dependent_count, "session %016llx: %u that stand on it are in use, counted %u",
		(unsigned long long)session->id.low, busy, session->busy_dependent_count);
	REQUIRE(foreign == session->foreign_count, "session %016llx: %u of others stand on it, counted %u",
		(unsigned long long)session->id.low, foreign, session->foreign_count);
	return FC_OK;
}

/* Its place among what may be reclaimed. */
static int check_ranks(const struct fc_catalog *catalog, const struct fc_session *session, struct fc_error *error)
{
	REQUIRE(session->is_busy == (session->lease_count > 0 || session->reserved_count > 0),
		"session %016llx is in use or not, and is taken for the other", (unsigned long long)session->id.low);
	REQUIRE(session->is_backed_up == fc_reclaim_has_backups(session),
		"session %016llx has backups of its memory or not, and is taken for the other",
		(unsigned long long)session->id.low);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		REQUIRE(session->order[medium].key == fc_reclaim_rank(catalog, session, (enum fc_medium)medium) &&
				session->chunks_to_go[medium] ==
					fc_reclaim_chunks_to_go(session, (enum fc_medium)medium),
			"session %016llx is not where it belongs among what may be reclaimed",
			(unsigned long long)session->id.low);
	REQUIRE(session->owner_order.key == fc_reclaim_owner_rank(session),
		"session %016llx is not where it belongs among what its owner may lose",
		(unsigned long long)session->id.low);
	return FC_OK;
}

static int check_session(const struct fc_session *session, uint64_t *leases, struct fc_error *error)
{
	uint64_t segments[FC_MEDIUM_COUNT] = {0}, chunks[FC_MEDIUM_COUNT] = {0};
	uint64_t linked_leases = 0, backups = 0;
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		REQUIRE(segment->session == session, "segment %u is listed by another session", segment->number);
		segments[segment->medium]++;
		chunks[segment->medium] += segment->chunk_count;
		backups += segment->is_backup;
		linked_leases += segment->lease_count;
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		REQUIRE(segments[medium] == session->segment_count[medium],
			"session %016llx: %llu segments, counted %llu", (unsigned long long)session->id.low,
			(unsigned long long)segments[medium], (unsigned long long)session->segment_count[medium]);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		REQUIRE(chunks[medium] == session->chunks[medium], "session %016llx: %llu chunks, counted %llu",
			(unsigned long long)session->id.low, (unsigned long long)chunks[medium],
			(unsigned long long)session->chunks[medium]);
	REQUIRE(backups == session->backup_count, "session %016llx: %llu backups, counted %llu",
		(unsigned long long)session->id.low, (unsigned long long)backups,
		(unsigned long long)session->backup_count);
	REQUIRE(!fc_link_is_linked(&session->spill_link) || segments[FC_MEMORY] > 0,
		"session %016llx is to leave memory, and has nothing there", (unsigned long long)session->id.low);
	REQUIRE(linked_leases <= session->lease_count, "session %016llx has fewer leases than its segments",
		(unsigned long long)session->id.low);
	*leases += session->lease_count;
	return FC_OK;
}

struct arena_sums {
	struct fc_holdings held;
	uint64_t chunks_freeing, chunks_linked, chunks_leaving;
};

static uint64_t stored_bytes(struct fc_catalog *catalog, struct fc_segment *segment)
{
	uint64_t bytes = 0;
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		if (fc_segment_is_named(catalog, segment, entry))
			bytes += catalog->block_bytes[fc_shape_range_of(&segment->shape, entry)->group];
	return bytes;
}

static void add_holdings(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_holdings *sums)
{
	sums->chunks_used += segment->chunk_count;
	sums->blocks_named += segment->named_count;
	sums->bytes_stored += stored_bytes(catalog, segment);
	sums->segment_count += fc_segment_is_linked(segment);
	sums->seam_count += fc_segment_has_seam(catalog, segment);
}

/* `whose`: an arena, or an owner in one. */
static int check_holdings(const struct fc_holdings *held, const struct fc_holdings *sums, const char *whose,
			  struct fc_error *error)
{
	REQUIRE(sums->chunks_used == held->chunks_used, "%s: segments hold %llu chunks, counted %llu", whose,
		(unsigned long long)sums->chunks_used, (unsigned long long)held->chunks_used);
	REQUIRE(sums->blocks_named == held->blocks_named, "%s: %llu blocks named, counted %llu", whose,
		(unsigned long long)sums->blocks_named, (unsigned long long)held->blocks_named);
	REQUIRE(sums->seam_count == held->seam_count,
		"%s: %llu segments lie behind another of their session, counted %llu", whose,
		(unsigned long long)sums->seam_count, (unsigned long long)held->seam_count);
	REQUIRE(sums->segment_count == held->segment_count, "%s: %llu segments, counted %llu", whose,
		(unsigned long long)sums->segment_count, (unsigned long long)held->segment_count);
	REQUIRE(sums->bytes_stored == held->bytes_stored, "%s: %llu bytes stored, counted %llu", whose,
		(unsigned long long)sums->bytes_stored, (unsigned long long)held->bytes_stored);
	return FC_OK;
}

static void add_segment(struct fc_catalog *catalog, struct fc_segment *segment, struct arena_sums *sums)
{
	add_holdings(catalog, segment, &sums->held);
	if (segment->state == FC_SEGMENT_RETIRED && fc_link_is_linked(&segment->commit_link) && !segment->is_committing)
		sums->chunks_freeing += segment->chunk_count;
	if (segment->state == FC_SEGMENT_RETIRED && segment->lease_count == 0)
		sums->chunks_leaving += segment->chunk_count;
	sums->chunks_linked += fc_segment_is_linked(segment) ? segment->chunk_count : 0;
}

static int check_arena(const struct fc_arena *arena, const struct arena_sums *sums, struct fc_error *error)
{
	const char *name = arena->medium == FC_SSD ? "ssd" : "memory";
	fc_space_check(&arena->space);
	int code = check_holdings(&arena->held, &sums->held, name, error);
	if (code != FC_OK)
		return code;
	REQUIRE(fc_space_free_count(&arena->space) + arena->held.chunks_used == arena->chunk_count,
		"%s: %llu chunks free and %llu used of %llu", name,
		(unsigned long long)fc_space_free_count(&arena->space), (unsigned long long)arena->held.chunks_used,
		(unsigned long long)arena->chunk_count);
	REQUIRE(sums->chunks_freeing == arena->chunks_freeing, "%s: %llu chunks on their way to be free, counted %llu",
		name, (unsigned long long)sums->chunks_freeing, (unsigned long long)arena->chunks_freeing);
	REQUIRE(sums->chunks_linked == arena->chunks_linked, "%s: sessions hold %llu chunks, counted %llu", name,
		(unsigned long long)sums->chunks_linked, (unsigned long long)arena->chunks_linked);
	REQUIRE(sums->chunks_leaving == arena->chunks_leaving, "%s: %llu chunks are leaving, counted %llu", name,
		(unsigned long long)sums->chunks_leaving, (unsigned long long)arena->chunks_leaving);
	uint64_t owners = 0, enders = 0;
	for (uint64_t chunk = 0; chunk < arena->chunk_count; chunk++) {
		owners += arena->owner[chunk] != 0;
		enders += arena->ender[chunk] != 0;
	}
	uint64_t segments = 0;
	for (uint32_t number = 0; number < arena->catalog->segment_top; number++) {
		const struct fc_segment *segment = arena->catalog->segments[number];
		segments += segment != NULL && segment->medium == arena->medium;
	}
	REQUIRE(owners == segments, "%s: %llu chunks begin a segment, and there are %llu", name,
		(unsigned long long)owners, (unsigned long long)segments);
	REQUIRE(enders == segments, "%s: %llu chunks end a segment, and there are %llu", name,
		(unsigned long long)enders, (unsigned long long)segments);
	return FC_OK;
}

/* Of an arena or an owner: as many are in its order as belong there. */
static int check_order(const struct fc_order *order, uint64_t count, const char *whose, struct fc_error *error)
{
	REQUIRE(order->count == count, "%s: %llu sessions may be reclaimed, and %llu are in its order", whose,
		(unsigned long long)count, (unsigned long long)order->count);
	fc_order_check(order);
	return FC_OK;
}

/* The sessions of all, in the order of their use, and those of them that may be reclaimed. */
static int check_sessions(const struct fc_catalog *catalog, struct fc_error *error)
{
	uint64_t count[FC_MEDIUM_COUNT] = {0}, ranked[FC_MEDIUM_COUNT] = {0}, to_go[FC_MEDIUM_COUNT] = {0};
	uint64_t used_seq = 0, sessions = 0;
	fc_list_for_each(link, &catalog->sessions)
	{
		const struct fc_session *session = fc_container_of(link, struct fc_session, all_link);
		REQUIRE(session->used_seq > used_seq, "session %016llx is not in the order of its use",
			(unsigned long long)session->id.low);
		used_seq = session->used_seq;
		sessions++;
		int code = check_deps(session, error);
		if (code == FC_OK)
			code = check_ranks(catalog, session, error);
		if (code != FC_OK)
			return code;
		REQUIRE(session->affected.key == 0 && !fc_link_is_linked(&session->work_link) &&
				session->keep_count == 0,
			"session %016llx is left over from what is done", (unsigned long long)session->id.low);
		for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
			count[medium] += session->segment_count[medium] > 0;
			ranked[medium] += session->order[medium].key != 0;
			to_go[medium] += session->chunks_to_go[medium];
		}
	}
	REQUIRE(sessions == catalog->session_count, "%llu sessions, counted %llu", (unsigned long long)sessions,
		(unsigned long long)catalog->session_count);
	int code = FC_OK;
	for (int medium = 0; medium < FC_MEDIUM_COUNT && code == FC_OK; medium++) {
		const char *name = medium == FC_SSD ? "ssd" : "memory";
		REQUIRE(count[medium] == catalog->arenas[medium].held.session_count, "%s: %llu sessions, counted %llu",
			name, (unsigned long long)count[medium],
			(unsigned long long)catalog->arenas[medium].held.session_count);
		REQUIRE(to_go[medium] == catalog->arenas[medium].chunks_to_go,
			"%s: %llu chunks may be reclaimed, counted %llu", name, (unsigned long long)to_go[medium],
			(unsigned long long)catalog->arenas[medium].chunks_to_go);
		code = check_order(&catalog->arenas[medium].order, ranked[medium], name, error);
	}
	return code;
}

static int check_owners_holdings(const struct fc_owner_state *owner, const struct fc_holdings *sums,
				 struct fc_error *error)
{
	int code = FC_OK;
	for (int medium = 0; medium < FC_MEDIUM_COUNT && code == FC_OK; medium++) {
		char whose[32];
		snprintf(whose, sizeof(whose), "owner %u, %s", owner->tag, medium == FC_SSD ? "ssd" : "memory");
		code = check_holdings(&owner->held[medium], &sums[medium], whose, error);
		REQUIRE(code != FC_OK || sums[medium].session_count == owner->held[medium].session_count,
			"%s: %llu sessions, counted %llu", whose, (unsigned long long)sums[medium].session_count,
			(unsigned long long)owner->held[medium].session_count);
	}
	return code;
}

static int check_owner(struct fc_catalog *catalog, const struct fc_owner_state *owner, struct fc_error *error)
{
	struct fc_holdings held[FC_MEDIUM_COUNT] = {0};
	uint64_t used = 0, leaving = 0, sessions = 0, ranked = 0, to_go = 0;
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL || fc_session_tag(segment->session_id) != owner->tag)
			continue;
		add_holdings(catalog, segment, &held[segment->medium]);
		used += fc_segment_bytes(catalog, segment);
		leaving += segment->state == FC_SEGMENT_RETIRED ? fc_segment_bytes(catalog, segment) : 0;
	}
	fc_list_for_each(link, &catalog->sessions)
	{
		const struct fc_session *session = fc_container_of(link, struct fc_session, all_link);
		REQUIRE((session->owner == owner) == (fc_session_tag(session->id) == owner->tag),
			"owner %u: session %016llx is another owner's", owner->tag,
			(unsigned long long)session->id.high);
		sessions += session->owner == owner;
		for (int medium = 0; medium < FC_MEDIUM_COUNT && session->owner == owner; medium++)
			held[medium].session_count += session->segment_count[medium] > 0;
		ranked += session->owner == owner && session->owner_order.key != 0;
		to_go += session->owner == owner ? fc_reclaim_bytes_to_go(catalog, session) : 0;
	}
	REQUIRE(used == owner->bytes_used, "owner %u: segments take %llu bytes, counted %llu", owner->tag,
		(unsigned long long)used, (unsigned long long)owner->bytes_used);
	REQUIRE(leaving == owner->bytes_leaving, "owner %u: %llu bytes are leaving, counted %llu", owner->tag,
		(unsigned long long)leaving, (unsigned long long)owner->bytes_leaving);
	REQUIRE(to_go == owner->bytes_to_go, "owner %u: %llu bytes may be reclaimed, counted %llu", owner->tag,
		(unsigned long long)to_go, (unsigned long long)owner->bytes_to_go);
	REQUIRE(sessions == owner->session_count, "owner %u: %llu sessions, counted %llu", owner->tag,
		(unsigned long long)sessions, (unsigned long long)owner->session_count);
	REQUIRE(owner->bytes_max == 0 || used <= fc_max_u64(owner->bytes_max, owner->bytes_opened),
		"owner %u: %llu bytes are used of %llu", owner->tag, (unsigned long long)used,
		(unsigned long long)owner->bytes_max);
	int code = check_order(&owner->order, ranked, "owner", error);
	return code == FC_OK ? check_owners_holdings(owner, held, error) : code;
}

static int check_owners(struct fc_catalog *catalog, struct fc_error *error)
{
	int code = FC_OK;
	for (uint32_t i = 0; i < catalog->owner_count && code == FC_OK; i++)
		code = check_owner(catalog, &catalog->owners[i], error);
	return code;
}

int fc_catalog_check(struct fc_catalog *catalog, struct fc_error *error)
{
	struct arena_sums sums[FC_MEDIUM_COUNT] = {0};
	uint64_t segment_leases = 0, session_leases = 0, named = 0, key_bytes = 0;
	fc_index_check(&catalog->index);
	for (uint32_t number = 0; number < catalog->segment_top; number++) {
		struct fc_segment *segment = catalog->segments[number];
		if (segment == NULL)
			continue;
		int code = check_segment(catalog, segment, error);
		if (code == FC_OK && fc_segment_is_linked(segment))
			code = check_heads(catalog, segment, error);
		if (code == FC_OK && fc_segment_is_linked(segment))
			code = check_spares(catalog, segment, error);
		if (code != FC_OK)
			return code;
		add_segment(catalog, segment, &sums[segment->medium]);
		segment_leases += segment->lease_count;
		named += segment->named_count;
		key_bytes += segment->shape.entry_count * sizeof(*segment->keys);
	}
	REQUIRE(key_bytes == catalog->key_bytes, "keys take %llu bytes, counted %llu", (unsigned long long)key_bytes,
		(unsigned long long)catalog->key_bytes);
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
	int code = check_sessions(catalog, error);
	return code == FC_OK ? check_owners(catalog, error) : code;
}

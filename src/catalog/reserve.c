/* Reserve: decide what a turn writes and where, and take the space. Nothing of it is visible before the commit.
 *
 * A turn writes up to four segments:
 *
 *   path   0 ------------- k ------------- absorb ------- stored ------------ end
 *          | shared prompt | older turns   | small turns  | new blocks        |
 *          '-- prompt, copy on SSD         '-- main segment ------------------'  + resume segment at `end`
 *              prompt, in memory
 *
 * prompt: [.., k) when the engine says that the first k blocks are shared and they are not in memory yet: a session of
 * its own, so that it outlives the conversation that wrote it first. Where memory does not survive a restart, a second
 * copy goes to SSD (a backup: unnamed while the one in memory is), or a restart would cut the head off every session
 * that stands on it.
 *
 * main: what is new, and, if consolidation says so, the segments before it once more.
 *
 * resume: the blocks of window and state groups for the points where this path can be resumed. They are apart from the
 * main segment because the device does not hold the older ones any more when a later turn absorbs it: the main segment
 * can then be freed, and the resume points stay.
 *
 * Consolidation: while the segment in front of the new one is the same session's and what the path uses of it is no
 * larger than `consolidate_ratio` times what is being written, it is written again as part of it. A turn that goes to
 * SSD also takes along whatever of its session lies in memory: nothing durable stands on something that is not.
 *
 * Room: a piece (the prompt in one medium, or the turn) first takes what is free. Where that is not enough, all of the
 * piece is measured and held against what could be had if everything was reclaimed that may be; only then is anything.
 * So a turn that is too large, or the copy of it that absorbing would need while the old ones are still there, costs
 * nobody anything. */
#include "catalog/state.h"

#include "base/plant.h"

#define PIECES_MAX 8 /* of a segment for which no run is long enough */

/* What is granted together, on one medium. */
struct piece {
	enum fc_medium medium;
	struct fc_session *session;
	uint64_t start, end;     /* path blocks */
	uint64_t resume_at;      /* its last segment also gets what resuming here needs; 0: nothing */
	bool has_points;         /* and segments of the turn's resume points follow */
	uint64_t chunks_besides; /* that the medium is going to need for what is planned next */
};

struct plan {
	struct fc_catalog *catalog;
	const struct fc_turn *turn;
	struct fc_reservation *reservation;
	struct fc_error *error;
	uint64_t end;           /* path blocks to be stored, a multiple of the granule */
	uint64_t stored;        /* of these, stored already */
	uint64_t resident_from; /* the device holds all FC_RULE_ALL blocks of [resident_from, end) */
	struct fc_owner_state *owner;
	uint64_t quota_need_bytes;       /* what the owner's quota has refused last, or 0 */
	uint64_t need_bytes, room_bytes; /* else what was wanted, and what could be had, in an arena that has refused */
	enum fc_medium refused_by;
	bool may_reclaim, is_measuring, lacks_room;
	uint64_t chunks_measured;
	struct fc_session *session;
	uint64_t start; /* of the main segment */
	enum fc_medium medium;
	struct fc_range ranges[FC_RANGES_MAX];
	struct fc_shape shape;
};

static uint64_t to_granule(const struct plan *plan, uint64_t blocks)
{
	return blocks - blocks % plan->catalog->granule;
}

static bool has_arena(const struct fc_catalog *catalog, enum fc_medium medium)
{
	return catalog->arenas[medium].is_open;
}

static struct fc_segment *holder_of(const struct plan *plan, uint64_t block)
{
	return plan->catalog->segments[plan->catalog->locations[block].segment];
}

static enum fc_medium choose_medium(const struct plan *plan)
{
	const struct fc_catalog *catalog = plan->catalog;
	const struct fc_turn *turn = plan->turn;
	enum fc_medium medium = fc_placement_choose(
		&catalog->opts, turn->turn, plan->end * catalog->geometry.block_tokens, turn->previous_reply_tokens);
	if (has_arena(catalog, medium))
		return medium;
	return medium == FC_SSD ? FC_MEMORY : FC_SSD;
}

/* ---- what the caller said ---- */

static bool is_resident(const struct plan *plan, uint32_t group, uint64_t first, uint64_t count)
{
	uint64_t have_first = plan->turn->resident[group].first_block;
	return count == 0 || (have_first <= first && first + count <= have_first + plan->turn->resident[group].count);
}

static int check_owner(const struct plan *plan)
{
	const struct fc_turn *turn = plan->turn;
	bool is_given = turn->session.high != 0 || turn->session.low != 0;
	if (turn->owner != 0 && plan->owner == NULL)
		return fc_error_set(plan->error, FC_EINVAL, "save: owner %u; the store has no owner with that tag",
				    turn->owner);
	if (is_given && fc_owner_find(plan->catalog, fc_session_tag(turn->session)) != plan->owner)
		return fc_error_set(plan->error, FC_EINVAL,
				    "save: session %016llx%016llx begins with tag %u, and the turn's owner is %u",
				    (unsigned long long)turn->session.high, (unsigned long long)turn->session.low,
				    fc_session_tag(turn->session), turn->owner);
	return FC_OK;
}

static int check_turn(struct plan *plan)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	plan->resident_from = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		if (geometry->groups[group].rule != FC_RULE_ALL)
			continue;
		uint64_t span = fc_group_span(geometry, group);
		uint64_t have = plan->turn->resident[group].first_block + plan->turn->resident[group].count;
		uint64_t from = have < plan->end / span ? plan->end : plan->turn->resident[group].first_block * span;
		plan->resident_from = fc_max_u64(plan->resident_from, from);
	}
	if (plan->resident_from > plan->stored)
		return fc_error_set(
			plan->error, FC_EINVAL,
			"save: path block %llu is new, but slots are given from block %llu on; every block from the "
			"stored prefix to the end needs a slot in every group that keeps all blocks",
			(unsigned long long)plan->stored, (unsigned long long)plan->resident_from);
	for (uint64_t i = 0; i < plan->turn->resume_point_count; i++) {
		uint64_t point = plan->turn->resume_points[i];
		if (point == 0 || point > plan->end || point % plan->catalog->granule != 0 ||
		    (i > 0 && point <= plan->turn->resume_points[i - 1]))
			return fc_error_set(
				plan->error, FC_EINVAL,
				"save: resume point %llu; ascending multiples of %llu up to %llu are allowed",
				(unsigned long long)point, (unsigned long long)plan->catalog->granule,
				(unsigned long long)plan->end);
	}
	return FC_OK;
}

/* Where there are owners, the id says whose it is. */
static struct fc_session_id id_from_key(const struct plan *plan, struct fc_key key, uint64_t domain)
{
	struct fc_session_id id = {key.high ^ domain, key.low};
	if (plan->catalog->owner_count > 0)
		id.high = (uint64_t)plan->turn->owner << 48 | (id.high & (UINT64_MAX >> 16));
	if (id.high == 0 && id.low == 0)
		id.low = 1;
	return id;
}

/* Continues the session of the deepest stored block, unless that block is shared or another owner's: then this is
 * another conversation. */
static struct fc_session_id infer_session(const struct plan *plan)
{
	if (plan->turn->session.high != 0 || plan->turn->session.low != 0)
		return plan->turn->session;
	if (plan->stored > plan->turn->shared_blocks) {
		const struct fc_session *deepest = holder_of(plan, plan->stored - 1)->session;
		if (deepest->kind == FC_SESSION_CONVERSATION && deepest->owner == plan->owner)
			return deepest->id;
	}
	uint64_t first_own = fc_min_u64(plan->stored, plan->end - 1);
	return id_from_key(plan, plan->turn->keys[first_own], 0x636f6e7665727361ull);
}

/* ---- shapes ---- */

static void begin_shape(struct plan *plan)
{
	fc_shape_init(&plan->shape, plan->ranges);
}

static int add_all_groups(struct plan *plan, uint64_t start, uint64_t end)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		if (geometry->groups[group].rule != FC_RULE_ALL)
			continue;
		uint64_t span = fc_group_span(geometry, group);
		int code = fc_shape_add(&plan->shape, group, start / span, end / span - start / span);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

/* Adds what `group` needs at `point`, joined to the range before it where they touch. */
static int add_needed(struct plan *plan, uint32_t group, uint64_t point)
{
	uint64_t first, count;
	fc_group_needed(&plan->catalog->geometry, group, point, &first, &count);
	if (count > 1 && fc_is_planted(FC_PLANT_SHORT_WINDOW)) {
		first++;
		count--;
	}
	if (plan->shape.range_count > 0) {
		struct fc_range *last = &plan->shape.ranges[plan->shape.range_count - 1];
		uint64_t last_end = last->block_first + last->count;
		if (last->group == group && first <= last_end) {
			uint64_t more = first + count > last_end ? first + count - last_end : 0;
			last->count += more;
			plan->shape.entry_count += more;
			return FC_OK;
		}
	}
	return fc_shape_add(&plan->shape, group, first, count);
}

static bool is_resume_resident(const struct plan *plan, uint64_t point)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t first, count;
		fc_group_needed(geometry, group, point, &first, &count);
		if (geometry->groups[group].rule != FC_RULE_ALL && !is_resident(plan, group, first, count))
			return false;
	}
	return true;
}

/* True when a match could already end at `point`. */
static bool is_resume_stored(const struct plan *plan, uint64_t point)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		if (geometry->groups[group].rule == FC_RULE_ALL)
			continue;
		uint64_t first, count, span = fc_group_span(geometry, group);
		fc_group_needed(geometry, group, point, &first, &count);
		for (uint64_t block = first; block < first + count; block++) {
			struct fc_key key = plan->turn->keys[fc_group_key_position(span, block)];
			if (fc_location_is_none(fc_index_find(&plan->catalog->index, fc_entry_key(key, group))))
				return false;
		}
	}
	return true;
}

/* ---- granting a segment ---- */

static void fill_keys(const struct plan *plan, struct fc_segment *segment)
{
	for (uint32_t i = 0; i < segment->shape.range_count; i++) {
		const struct fc_range *range = &segment->shape.ranges[i];
		uint64_t span = fc_group_span(&plan->catalog->geometry, range->group);
		for (uint64_t j = 0; j < range->count; j++)
			segment->keys[range->entry_first + j] = fc_entry_key(
				plan->turn->keys[fc_group_key_position(span, range->block_first + j)], range->group);
	}
}

/* Instead of granting plan->shape. */
static int measure(struct plan *plan, enum fc_medium medium)
{
	const struct fc_superblock *superblock = &plan->catalog->arenas[medium].superblock;
	uint64_t bytes;
	if (fc_shape_bytes(&plan->catalog->geometry, &plan->shape, superblock->align, &bytes) != FC_OK)
		return FC_EFULL;
	plan->chunks_measured += fc_room_chunks(superblock, bytes);
	return FC_OK;
}

static int take_room(struct plan *plan, struct fc_segment *segment)
{
	struct fc_catalog *catalog = plan->catalog;
	if (catalog->arenas[segment->medium].is_silent)
		return FC_ETIMEOUT;
	int code = fc_segment_measure(catalog, segment);
	if (code == FC_OK) {
		code = fc_owner_take_room(catalog, segment, plan->may_reclaim, plan->reservation);
		plan->quota_need_bytes = code == FC_EFULL ? fc_segment_bytes(catalog, segment) : 0;
	}
	if (code == FC_OK)
		code = plan->may_reclaim ? fc_segment_take_room(catalog, segment, plan->reservation, NULL)
					 : fc_segment_place(catalog, segment);
	plan->lacks_room |= code == FC_EFULL;
	return code;
}

/* Makes plan->shape a reserved segment of the session, which adds path blocks [start, end). */
static int grant(struct plan *plan, enum fc_medium medium, struct fc_session *session, uint64_t start, uint64_t end)
{
	struct fc_catalog *catalog = plan->catalog;
	struct fc_segment *segment;
	if (plan->is_measuring)
		return measure(plan, medium);
	int code = fc_segment_new(catalog, medium, &plan->shape, &segment);
	if (code != FC_OK)
		return code;
	fc_segment_assign(segment, session);
	segment->turn = plan->turn->turn;
	segment->start_block = start;
	segment->end_block = end;
	if (start > 0)
		segment->parent = plan->turn->keys[start - 1];
	fill_keys(plan, segment);
	code = take_room(plan, segment);
	if (code == FC_OK)
		code = fc_commit_prepare(catalog, segment);
	if (code == FC_OK)
		code = fc_reservation_add(catalog, plan->reservation, segment);
	if (code != FC_OK)
		fc_segment_delete(catalog, segment);
	return code;
}

/* Takes back the grants from number `first` on. */
static void ungrant(struct plan *plan, uint32_t first)
{
	struct fc_reservation *reservation = plan->reservation;
	while (reservation->grant_count > first) {
		struct fc_segment *segment = reservation->grants[--reservation->grant_count].placed.segment;
		struct fc_session *session = segment->session;
		fc_segment_delete(plan->catalog, segment);
		fc_session_drop_reserved(plan->catalog, session);
		fc_session_settle(plan->catalog, session);
	}
}

/* Chunks of a segment of path blocks [start, end); UINT64_MAX when there is no such segment. Uses plan->shape. */
static uint64_t segment_chunks(struct plan *plan, enum fc_medium medium, uint64_t start, uint64_t end)
{
	const struct fc_superblock *superblock = &plan->catalog->arenas[medium].superblock;
	uint64_t bytes;
	begin_shape(plan);
	if (add_all_groups(plan, start, end) != FC_OK ||
	    fc_shape_bytes(&plan->catalog->geometry, &plan->shape, superblock->align, &bytes) != FC_OK)
		return UINT64_MAX;
	return fc_room_chunks(superblock, bytes);
}

/* Free space that is enough in sum may lie scattered, since sessions leave each other room to grow (space.h). Then a
 * few shorter segments are better than sessions that are reclaimed for the sake of one run. */
static uint64_t end_that_fits(struct plan *plan, enum fc_medium medium, uint64_t start, uint64_t end)
{
	const struct fc_space *space = &plan->catalog->arenas[medium].space;
	uint64_t longest = fc_space_largest(space, NULL);
	uint64_t whole = segment_chunks(plan, medium, start, end);
	if (whole <= longest || whole > space->free_count)
		return end;
	for (uint64_t pieces = 2; pieces <= PIECES_MAX; pieces *= 2) {
		uint64_t next = start + to_granule(plan, (end - start) / pieces);
		if (next > start && segment_chunks(plan, medium, start, next) <= longest)
			return next;
	}
	return end;
}

/* Where the next segment of [start, end) ends. The segments are as few as the limit on their length allows, and about
 * equally long: a window's two slots take turns, and one that holds only a few blocks leaves the disk waiting. */
static uint64_t segment_end(struct plan *plan, enum fc_medium medium, uint64_t start, uint64_t end)
{
	uint64_t blocks_max = plan->catalog->segment_blocks_max;
	uint64_t segment_count = (end - start + blocks_max - 1) / blocks_max;
	uint64_t blocks = (end - start + segment_count - 1) / segment_count;
	uint64_t granule = plan->catalog->granule;
	uint64_t next = fc_min_u64(end, to_granule(plan, start + (blocks + granule - 1) / granule * granule));
	return end_that_fits(plan, medium, start, next);
}

/* Path blocks [start, end), in as many segments as their length and the free space ask for; all or none. The last one
 * also gets what resuming at `resume_at` needs, if that is not 0. */
static int grant_blocks(struct plan *plan, enum fc_medium medium, struct fc_session *session, uint64_t start,
			uint64_t end, uint64_t resume_at)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	uint32_t first_grant = plan->reservation->grant_count;
	int code = FC_OK;
	for (uint64_t next; start < end && code == FC_OK; start = next) {
		next = segment_end(plan, medium, start, end);
		begin_shape(plan);
		code = add_all_groups(plan, start, next);
		for (uint32_t group = 0; group < geometry->group_count && code == FC_OK && next == end && resume_at > 0;
		     group++)
			if (geometry->groups[group].rule != FC_RULE_ALL)
				code = add_needed(plan, group, resume_at);
		if (code == FC_OK)
			code = grant(plan, medium, session, start, next);
	}
	if (code != FC_OK)
		ungrant(plan, first_grant);
	return code;
}

/* ---- sizes, and an owner's quota ---- */

static uint64_t all_bytes(const struct plan *plan, uint64_t path_blocks)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	uint64_t bytes = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++)
		if (geometry->groups[group].rule == FC_RULE_ALL)
			bytes += plan->catalog->block_bytes[group] * path_blocks / fc_group_span(geometry, group);
	return bytes;
}

static bool has_quota(const struct plan *plan)
{
	return plan->owner != NULL && plan->owner->bytes_max > 0;
}

/* Of path blocks [start, end), in the segments that they would be now; UINT64_MAX when one of these cannot be. */
static uint64_t blocks_chunks(struct plan *plan, enum fc_medium medium, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;
	for (uint64_t next; start < end; start = next) {
		next = segment_end(plan, medium, start, end);
		uint64_t chunks = segment_chunks(plan, medium, start, next);
		sum = sum + chunks < sum ? UINT64_MAX : sum + chunks;
	}
	return sum;
}

/* 0 where nobody asks. */
static uint64_t blocks_bytes(struct plan *plan, enum fc_medium medium, uint64_t start, uint64_t end)
{
	uint64_t chunk_bytes = plan->catalog->arenas[medium].superblock.chunk_bytes;
	return has_quota(plan) ? blocks_chunks(plan, medium, start, end) * chunk_bytes : 0;
}

/* False when `bytes` cannot fit whatever is reclaimed, since what is in use stays, and so the turn's own session and
 * what it stands on. So nothing is reclaimed for a turn that is too large, or for copies that are only worth having. */
static bool may_fit_quota(const struct plan *plan, uint64_t bytes)
{
	return bytes == 0 || bytes <= fc_owner_room_max(plan->owner);
}

static int check_quota(struct plan *plan, uint64_t bytes)
{
	bool may_fit = may_fit_quota(plan, bytes);
	plan->quota_need_bytes = may_fit ? 0 : bytes;
	return may_fit ? FC_OK : FC_EFULL;
}

/* ---- resume points ---- */

static int want_resume(struct plan *plan, uint64_t point, bool *is_wanted)
{
	*is_wanted = point > 0 && !is_resume_stored(plan, point);
	if (*is_wanted && !is_resume_resident(plan, point))
		return fc_error_set(plan->error, FC_EINVAL,
				    "save: resume point %llu needs its window and state blocks on the device, and "
				    "slots are missing",
				    (unsigned long long)point);
	return FC_OK;
}

/* Windows of neighbouring points overlap; what an earlier one stored is not new. */
static void count_new_resume_bytes(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->shape.range_count; i++) {
		const struct fc_range *range = &plan->shape.ranges[i];
		uint64_t span = fc_group_span(&plan->catalog->geometry, range->group);
		for (uint64_t j = 0; j < range->count; j++) {
			struct fc_key key = plan->turn->keys[fc_group_key_position(span, range->block_first + j)];
			if (fc_location_is_none(fc_index_find(&plan->catalog->index, fc_entry_key(key, range->group))))
				plan->reservation->bytes_new += plan->catalog->block_bytes[range->group];
		}
	}
}

/* What resuming at points [first, end) of the turn needs; the turn's end is the last of them. */
static int add_points(struct plan *plan, uint64_t first, uint64_t end, uint64_t *deepest)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	const struct fc_turn *turn = plan->turn;
	begin_shape(plan);
	*deepest = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		if (geometry->groups[group].rule == FC_RULE_ALL)
			continue;
		for (uint64_t i = first; i < end; i++) {
			uint64_t point = i < turn->resume_point_count ? turn->resume_points[i] : plan->end;
			bool is_wanted;
			int code = want_resume(plan, point, &is_wanted);
			if (code == FC_OK && is_wanted)
				code = add_needed(plan, group, point);
			if (code != FC_OK)
				return code;
			if (is_wanted)
				*deepest = fc_max_u64(*deepest, point);
		}
	}
	return FC_OK;
}

static bool is_within_area_limit(const struct plan *plan)
{
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	uint64_t limit = plan->catalog->opts.area_bytes_max;
	struct fc_layer_area area;
	fc_layer_first(geometry, &plan->shape, 0, &area);
	do {
		if (limit > 0 && area.bytes > limit)
			return false;
	} while (fc_layer_next(geometry, &plan->shape, 1, &area));
	return true;
}

/* One segment for as many points as its ranges, of which each point adds one a group at most, and the limit on the
 * length of a layer let it have. */
static int plan_resume(struct plan *plan)
{
	const uint64_t points_max = FC_RANGES_MAX / plan->catalog->geometry.group_count;
	uint64_t count = plan->turn->resume_point_count + 1;
	for (uint64_t first = 0, end; first < count; first = end) {
		uint64_t deepest;
		end = fc_min_u64(count, first + points_max);
		int code = add_points(plan, first, end, &deepest);
		while (code == FC_OK && end - first > 1 && !is_within_area_limit(plan))
			code = add_points(plan, first, --end, &deepest);
		if (code == FC_OK && plan->shape.range_count > 0) {
			code = grant(plan, plan->medium, plan->session, deepest, deepest);
			if (code == FC_OK && !plan->is_measuring)
				count_new_resume_bytes(plan);
		}
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

/* ---- room for a piece ---- */

static int grant_piece(struct plan *plan, const struct piece *piece)
{
	int code = grant_blocks(plan, piece->medium, piece->session, piece->start, piece->end, piece->resume_at);
	return code == FC_OK && piece->has_points ? plan_resume(plan) : code;
}

/* Before anything is reclaimed for it: could all of it be had? */
static int check_room(struct plan *plan, const struct piece *piece)
{
	const struct fc_arena *arena = &plan->catalog->arenas[piece->medium];
	uint64_t chunk_bytes = arena->superblock.chunk_bytes;
	fc_reclaim_spares(plan->catalog);
	plan->is_measuring = true;
	plan->chunks_measured = 0;
	plan->need_bytes = plan->room_bytes = 0;
	int code = grant_piece(plan, piece);
	plan->is_measuring = false;
	if (code != FC_OK)
		return code;
	uint64_t room = fc_reclaim_room_max(arena);
	plan->refused_by = piece->medium;
	plan->need_bytes = plan->chunks_measured * chunk_bytes;
	plan->room_bytes = room * chunk_bytes;
	code = check_quota(plan, plan->need_bytes);
	if (code == FC_OK && (room < plan->chunks_measured || room - plan->chunks_measured < piece->chunks_besides))
		code = FC_EFULL;
	return code;
}

/* All or none of it. */
static int grant_with_room(struct plan *plan, const struct piece *piece)
{
	uint32_t first_grant = plan->reservation->grant_count;
	uint64_t bytes_new = plan->reservation->bytes_new;
	plan->lacks_room = false;
	int code = grant_piece(plan, piece);
	if (code == FC_EFULL && plan->lacks_room) {
		ungrant(plan, first_grant);
		plan->reservation->bytes_new = bytes_new;
		code = check_room(plan, piece);
		plan->may_reclaim = true;
		if (code == FC_OK)
			code = grant_piece(plan, piece);
		plan->may_reclaim = false;
	}
	if (code != FC_OK) {
		ungrant(plan, first_grant);
		plan->reservation->bytes_new = bytes_new;
	}
	return code;
}

/* ---- the shared prompt ---- */

static struct fc_session_id prompt_id(const struct plan *plan, uint64_t shared)
{
	return id_from_key(plan, plan->turn->keys[shared - 1], 0x70726f6d7074ull);
}

static bool has_copy_on_ssd(const struct fc_session *session, uint64_t block)
{
	fc_list_for_each(link, &session->segments)
	{
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == FC_SSD && segment->start_block <= block &&
		    block < fc_min_u64(segment->end_block, segment->sound_blocks))
			return true;
	}
	return false;
}

/* Leading blocks of [0, shared) that a prompt's session has in this medium. A conversation's copy does not count: it
 * goes when the conversation goes. */
static uint64_t prompt_prefix(const struct plan *plan, uint64_t shared, enum fc_medium medium)
{
	uint64_t block = 0;
	const struct fc_session *own = shared == 0 ? NULL : fc_session_find(plan->catalog, prompt_id(plan, shared));
	for (; block < fc_min_u64(plan->stored, shared); block++) {
		const struct fc_segment *holder = holder_of(plan, block);
		bool is_there = holder->medium == medium && holder->session->kind == FC_SESSION_PROMPT;
		if (medium == FC_SSD && !is_there)
			is_there = (holder->session->kind == FC_SESSION_PROMPT &&
				    has_copy_on_ssd(holder->session, block)) ||
				   (own != NULL && has_copy_on_ssd(own, block));
		if (!is_there)
			break;
	}
	return to_granule(plan, block);
}

/* The turn chooses a medium later, and whatever that is may end on SSD. */
static bool may_go_to(const struct plan *plan, enum fc_medium medium)
{
	return medium == FC_SSD || choose_medium(plan) == medium;
}

static int grant_prompt(struct plan *plan, enum fc_medium medium, uint64_t from, uint64_t shared)
{
	uint64_t rest = fc_max_u64(plan->stored, shared);
	struct piece piece = {
		.medium = medium,
		.start = from,
		.end = shared,
		.resume_at = is_resume_resident(plan, shared) ? shared : 0,
		.chunks_besides = may_go_to(plan, medium) ? blocks_chunks(plan, medium, rest, plan->end) : 0,
	};
	int code = fc_session_obtain(plan->catalog, prompt_id(plan, shared), FC_SESSION_PROMPT, &piece.session);
	if (code != FC_OK)
		return code;
	struct fc_session *session = piece.session;
	fc_session_add_reserved(plan->catalog, session); /* making room must not take it away */
	code = grant_with_room(plan, &piece);
	fc_session_drop_reserved(plan->catalog, session);
	fc_session_settle(plan->catalog, session);
	return code;
}

/* First the copy that survives a restart, then the one that is read: it takes the names over (publish.c). Want of room
 * is no error here, nor a medium that does not answer: the prompt then stays where it is, or goes with the turn. */
static int plan_prompt(struct plan *plan)
{
	struct fc_catalog *catalog = plan->catalog;
	uint64_t shared = to_granule(plan, fc_min_u64(plan->turn->shared_blocks, plan->end));
	uint64_t memory_from = prompt_prefix(plan, shared, FC_MEMORY);
	uint64_t ssd_from = prompt_prefix(plan, shared, FC_SSD);
	bool is_volatile = !has_arena(catalog, FC_MEMORY) || !catalog->arenas[FC_MEMORY].is_durable;
	bool needs_ssd =
		has_arena(catalog, FC_SSD) && is_volatile && ssd_from < shared && plan->resident_from <= ssd_from;
	bool needs_memory = has_arena(catalog, FC_MEMORY) && memory_from < shared && plan->resident_from <= memory_from;
	uint64_t bytes = all_bytes(plan, plan->end - fc_max_u64(plan->stored, shared)) +
			 (needs_ssd ? blocks_bytes(plan, FC_SSD, ssd_from, shared) : 0) +
			 (needs_memory ? blocks_bytes(plan, FC_MEMORY, memory_from, shared) : 0);
	int code = FC_OK;
	if (!may_fit_quota(plan, bytes))
		return FC_OK;
	if (needs_ssd)
		code = grant_prompt(plan, FC_SSD, ssd_from, shared);
	if (code != FC_OK && code != FC_EFULL && code != FC_ETIMEOUT)
		return code;
	if (needs_memory)
		code = grant_prompt(plan, FC_MEMORY, memory_from, shared);
	if (plan->reservation->grant_count > 0)
		plan->start = fc_max_u64(plan->start, shared);
	return code == FC_EFULL || code == FC_ETIMEOUT ? FC_OK : code;
}

/* ---- the main segment ---- */

/* Where on the path the run of blocks that ends before `end` and lies in one segment begins, not below `floor`. */
static uint64_t run_start(const struct plan *plan, uint64_t end, uint64_t floor)
{
	const struct fc_segment *segment = holder_of(plan, end - 1);
	while (end > floor && holder_of(plan, end - 1) == segment)
		end--;
	return end;
}

static bool is_own(const struct plan *plan, uint64_t block)
{
	return holder_of(plan, block)->session == plan->session;
}

/* First block of the session's own that lies in memory, in [floor, start); start if none. */
static uint64_t first_own_in_memory(const struct plan *plan, uint64_t floor)
{
	uint64_t block = floor;
	while (block < plan->start && !(is_own(plan, block) && holder_of(plan, block)->medium == FC_MEMORY))
		block++;
	return block;
}

static void absorb(struct plan *plan, uint64_t floor)
{
	const struct fc_catalog *catalog = plan->catalog;
	bool must_leave_memory =
		plan->medium == FC_SSD && has_arena(catalog, FC_MEMORY) && !catalog->arenas[FC_MEMORY].is_durable;
	uint64_t must_reach = must_leave_memory ? first_own_in_memory(plan, floor) : plan->start;
	uint64_t limit_bytes = all_bytes(plan, plan->end - plan->start);
	while (plan->start > floor && is_own(plan, plan->start - 1)) {
		uint64_t begin = run_start(plan, plan->start, floor);
		uint64_t run_bytes = all_bytes(plan, plan->start - begin);
		bool is_small = (double)run_bytes <= catalog->opts.consolidate_ratio * (double)limit_bytes &&
				plan->end - begin <= catalog->segment_blocks_max;
		bool has_source = plan->resident_from <= begin || holder_of(plan, begin)->medium == FC_MEMORY;
		if (!has_source || (!is_small && plan->start <= must_reach))
			return;
		plan->start = begin;
		limit_bytes += run_bytes;
	}
}

/* ---- the turn: main segment and resume points together ---- */

/* On one medium; all or none. */
static int plan_turn_on(struct plan *plan, enum fc_medium medium, bool may_absorb)
{
	bool has_prompt = plan->reservation->grant_count > 0;
	uint64_t floor = has_prompt ? to_granule(plan, fc_min_u64(plan->turn->shared_blocks, plan->end)) : 0;
	uint64_t unabsorbed = plan->start;
	plan->medium = medium;
	if (may_absorb && plan->start < plan->end)
		absorb(plan, floor);
	if (!may_fit_quota(plan, blocks_bytes(plan, medium, plan->start, plan->end)))
		plan->start = unabsorbed;
	struct piece piece = {
		.medium = medium,
		.session = plan->session,
		.start = plan->start,
		.end = plan->end,
		.has_points = plan->catalog->has_resume_groups,
	};
	int code = check_quota(plan, blocks_bytes(plan, medium, plan->start, plan->end));
	if (code == FC_OK)
		code = grant_with_room(plan, &piece);
	if (code != FC_OK)
		plan->start = unabsorbed;
	return code;
}

static int plan_turn(struct plan *plan)
{
	struct fc_catalog *catalog = plan->catalog;
	enum fc_medium medium = choose_medium(plan);
	int code = plan_turn_on(plan, medium, true);
	if (code == FC_EFULL && medium == FC_MEMORY && has_arena(catalog, FC_SSD)) {
		medium = FC_SSD;
		code = plan_turn_on(plan, medium, true);
	}
	if (code == FC_EFULL) /* absorbing asks for room that the turn alone may not need */
		code = plan_turn_on(plan, medium, false);
	return code;
}

/* ---- all of it ---- */

/* A resume point that is stored is not written again, so it has to stay as well. Windows of neighbours overlap. */
static int add_stored_points(struct plan *plan, uint32_t group)
{
	const struct fc_turn *turn = plan->turn;
	uint64_t from = 0;
	for (uint64_t i = 0; i <= turn->resume_point_count; i++) {
		uint64_t first, count, point = i < turn->resume_point_count ? turn->resume_points[i] : plan->end;
		if (!is_resume_stored(plan, point))
			continue;
		fc_group_needed(&plan->catalog->geometry, group, point, &first, &count);
		uint64_t end = first + count;
		first = fc_max_u64(first, from);
		from = fc_max_u64(from, end);
		int code = fc_match_add_spans(plan->catalog, &plan->reservation->sources, turn->keys, group, first,
					      end - fc_min_u64(first, end));
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

static int lease_sources(struct plan *plan)
{
	struct fc_path *sources = &plan->reservation->sources;
	const struct fc_geometry *geometry = &plan->catalog->geometry;
	fc_path_reset(sources);
	for (uint32_t group = geometry->group_count; group-- > 0;) {
		/* Group 0 last: it leaves its locations in the scratch for the rest of the plan. */
		int code = geometry->groups[group].rule != FC_RULE_ALL
				   ? add_stored_points(plan, group)
				   : fc_match_add_spans(plan->catalog, sources, plan->turn->keys, group, 0,
							plan->stored / fc_group_span(geometry, group));
		if (code != FC_OK)
			return code;
	}
	fc_path_lease(plan->catalog, sources);
	return FC_OK;
}

static int make_plan(struct plan *plan)
{
	struct fc_reservation *reservation = plan->reservation;
	int code = fc_match_prefix(plan->catalog, plan->turn->keys, plan->end, &plan->stored);
	if (code == FC_OK)
		code = check_turn(plan);
	if (code == FC_OK)
		code = lease_sources(plan);
	if (code != FC_OK)
		return code;
	reservation->session = infer_session(plan);
	code = fc_session_obtain(plan->catalog, reservation->session, FC_SESSION_CONVERSATION, &plan->session);
	if (code != FC_OK)
		return code;
	fc_session_add_reserved(plan->catalog, plan->session); /* it stays while this goes on, whatever reclaim does */
	plan->start = plan->stored;
	reservation->blocks_new = plan->end - plan->stored;
	reservation->bytes_new = all_bytes(plan, reservation->blocks_new);
	code = plan_prompt(plan);
	if (code == FC_OK)
		code = plan_turn(plan);
	if (code == FC_EFULL && reservation->grant_count > 0) { /* the copy of the prompt is only worth having */
		ungrant(plan, 0);
		plan->start = plan->stored;
		code = plan_turn(plan);
	}
	fc_session_drop_reserved(plan->catalog, plan->session);
	fc_session_settle(plan->catalog, plan->session); /* a new one goes again if nothing of it was granted */
	return code;
}

static void refuse(const struct plan *plan)
{
	unsigned long long bytes_new = plan->reservation->bytes_new;
	plan->catalog->saves_refused++;
	plan->reservation->is_over_quota = plan->quota_need_bytes > 0;
	if (plan->quota_need_bytes > 0)
		fc_owner_refuse(plan->owner, bytes_new, plan->quota_need_bytes, plan->error);
	else if (plan->need_bytes > plan->room_bytes)
		fc_error_set(plan->error, FC_EFULL,
			     "save: %llu new bytes do not fit: %s needs %llu bytes for them, and at most %llu can be "
			     "had; the rest is in use, or this session's own",
			     bytes_new, plan->refused_by == FC_SSD ? "SSD" : "memory",
			     (unsigned long long)plan->need_bytes, (unsigned long long)plan->room_bytes);
	else
		fc_error_set(plan->error, FC_EFULL, "save: %llu new bytes do not fit: nothing more can be reclaimed",
			     bytes_new);
}

int fc_catalog_reserve(struct fc_catalog *catalog, const struct fc_turn *turn, struct fc_reservation *reservation,
		       struct fc_error *error)
{
	struct plan plan = {
		.catalog = catalog,
		.turn = turn,
		.reservation = reservation,
		.error = error,
		.end = turn->key_count - turn->key_count % catalog->granule,
		.owner = fc_owner_find(catalog, turn->owner),
	};
	fc_check(reservation->grant_count == 0 && !fc_link_is_linked(&reservation->wait_link));
	reservation->session = turn->session;
	reservation->keys = turn->keys;
	reservation->key_count = plan.end;
	reservation->blocks_new = reservation->bytes_new = reservation->segments_absorbed = 0;
	reservation->durable_pending = 0;
	reservation->durable_code = FC_OK;
	reservation->durable_error = (struct fc_error){0};
	reservation->is_over_quota = false;
	if (catalog->opts.is_read_only)
		return fc_error_set(error, FC_EINVAL, "save: the store is open for reading only");
	int code = check_owner(&plan);
	if (code != FC_OK || plan.end == 0)
		return code;
	code = make_plan(&plan);
	if (code == FC_OK)
		return FC_OK;
	if (code == FC_EFULL)
		refuse(&plan);
	if (code == FC_ETIMEOUT)
		fc_error_set(error, code,
			     "save: the arena does not answer: what was to become durable there before has been waited "
			     "for longer than io_timeout_ns");
	fc_reservation_undo(catalog, reservation);
	if (code == FC_EAGAIN)
		fc_space_wait(catalog, reservation);
	return code;
}

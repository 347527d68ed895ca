#include "replay/arena_map.h"

#include <stdlib.h>
#include <string.h>

/* A piece whose owner is known. */
struct held {
	uint64_t offset, bytes;
	uint32_t owner;
	bool is_point;
};

struct gathering {
	const struct fc_map_taker *taker;
	struct held *pieces;
	size_t count, room;
	bool is_out_of_memory;
};

/* ---- owners ---- */

static uint32_t owner_from(uint64_t bits)
{
	uint32_t hash = (uint32_t)(bits ^ bits >> 32);
	return hash < FC_MAP_SESSIONS ? hash + FC_MAP_SESSIONS : hash;
}

static uint32_t owner_of_session(struct fc_session_id session)
{
	return owner_from(session.high ^ session.low);
}

static uint32_t new_owner(struct fc_map_taker *taker)
{
	return owner_from((++taker->unnamed) * 0x9e3779b97f4a7c15ull);
}

int fc_map_taker_init(struct fc_map_taker *taker, struct fc_arena_map *maps, uint64_t number_max,
		      uint64_t request_total)
{
	*taker = (struct fc_map_taker){.maps = maps, .request_total = request_total};
	if (maps == NULL)
		return FC_OK;
	taker->owner_of = calloc(number_max, sizeof(*taker->owner_of));
	return taker->owner_of == NULL ? FC_ENOMEM : FC_OK;
}

void fc_map_taker_deinit(struct fc_map_taker *taker)
{
	free(taker->owner_of);
	*taker = (struct fc_map_taker){0};
}

void fc_map_taker_saving(struct fc_map_taker *taker, const struct fc_policy_turn *turn)
{
	uint64_t first = turn->turn.stored_blocks;
	if (taker->maps == NULL)
		return;
	while (first > 0 && taker->owner_of[turn->numbers[first - 1]] == 0)
		first--;
	if (first == turn->turn.stored_blocks)
		return;
	bool has_name = turn->turn.session.high != 0 || turn->turn.session.low != 0;
	bool goes_on = first > turn->turn.shared_blocks;
	uint32_t owner = has_name  ? owner_of_session(turn->turn.session)
			 : goes_on ? taker->owner_of[turn->numbers[first - 1]]
				   : new_owner(taker);
	for (uint64_t i = first; i < turn->turn.stored_blocks; i++)
		taker->owner_of[turn->numbers[i]] = owner;
}

/* ---- pieces ---- */

static void on_piece(void *context, const struct fc_policy_piece *piece)
{
	struct gathering *gathering = context;
	if (gathering->count == gathering->room) {
		size_t room = gathering->room * 2 + 1024;
		struct held *grown = realloc(gathering->pieces, room * sizeof(*grown));
		if (grown == NULL) {
			gathering->is_out_of_memory = true;
			return;
		}
		gathering->pieces = grown;
		gathering->room = room;
	}
	uint32_t owner = piece->is_shared     ? FC_MAP_SHARED
			 : piece->is_by_block ? gathering->taker->owner_of[piece->number]
					      : owner_of_session(piece->session);
	fc_check(owner != 0);
	gathering->pieces[gathering->count++] = (struct held){piece->offset, piece->bytes, owner, piece->is_point};
}

static int compare_offsets(const void *a, const void *b)
{
	const struct held *first = a, *second = b;
	return first->offset < second->offset ? -1 : first->offset > second->offset;
}

static int compare_owners(const void *a, const void *b)
{
	const struct held *first = a, *second = b;
	return first->owner < second->owner ? -1 : first->owner > second->owner;
}

static int compare_counts(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return first < second ? -1 : first > second;
}

/* qsort() is not to be given an array that does not exist, be it of nothing. */
static void sort(void *items, size_t count, size_t item_bytes, int (*compare)(const void *a, const void *b))
{
	if (count > 1)
		qsort(items, count, item_bytes, compare);
}

/* Pieces become extents. */
static void join(struct gathering *gathering)
{
	size_t kept = 0;
	sort(gathering->pieces, gathering->count, sizeof(*gathering->pieces), compare_offsets);
	for (size_t i = 0; i < gathering->count; i++) {
		const struct held *piece = &gathering->pieces[i];
		struct held *last = kept > 0 ? &gathering->pieces[kept - 1] : NULL;
		fc_check(last == NULL || last->offset + last->bytes <= piece->offset); /* no byte has two owners */
		if (last != NULL && last->offset + last->bytes == piece->offset && last->owner == piece->owner &&
		    last->is_point == piece->is_point)
			last->bytes += piece->bytes;
		else
			gathering->pieces[kept++] = *piece;
	}
	gathering->count = kept;
}

/* ---- pictures ---- */

/* What a cell [begin, end) shows, of the extents from `first` on; `scratch` has room for all of them. */
static uint32_t shown(const struct gathering *gathering, size_t first, uint64_t begin, uint64_t end,
		      struct held *scratch)
{
	size_t count = 0;
	uint64_t used = 0, most = 0, sum = 0;
	uint32_t owner = FC_MAP_FREE;
	for (size_t i = first; i < gathering->count && gathering->pieces[i].offset < end; i++) {
		const struct held *extent = &gathering->pieces[i];
		uint64_t from = fc_max_u64(extent->offset, begin);
		uint64_t to = fc_min_u64(extent->offset + extent->bytes, end);
		scratch[count++] = (struct held){from, to - from, extent->owner, false};
		used += to - from;
	}
	if (2 * used < end - begin || used == 0)
		return FC_MAP_FREE;
	sort(scratch, count, sizeof(*scratch), compare_owners);
	for (size_t i = 0; i < count; i++) {
		sum = i > 0 && scratch[i - 1].owner == scratch[i].owner ? sum + scratch[i].bytes : scratch[i].bytes;
		if (sum > most) {
			most = sum;
			owner = scratch[i].owner;
		}
	}
	return 2 * most >= used ? owner : FC_MAP_MIXED;
}

static void take_picture(struct fc_map_picture *picture, const struct gathering *gathering, struct held *scratch)
{
	size_t first = 0;
	for (size_t cell = 0; cell < FC_MAP_CELLS; cell++) {
		uint64_t begin = picture->first_byte + cell * picture->cell_bytes;
		uint64_t end = begin + picture->cell_bytes;
		while (first < gathering->count &&
		       gathering->pieces[first].offset + gathering->pieces[first].bytes <= begin)
			first++;
		picture->cells[cell] = shown(gathering, first, begin, end, scratch);
	}
}

/* Where the fullest of the stretches of `bytes` begins, into which the arena can be cut. */
static uint64_t fullest(const struct gathering *gathering, uint64_t arena_bytes, uint64_t bytes)
{
	uint64_t best = 0, best_used = 0;
	size_t first = 0;
	for (uint64_t begin = 0; begin < arena_bytes; begin += bytes) {
		uint64_t used = 0, end = begin + bytes;
		while (first < gathering->count &&
		       gathering->pieces[first].offset + gathering->pieces[first].bytes <= begin)
			first++;
		for (size_t i = first; i < gathering->count && gathering->pieces[i].offset < end; i++) {
			const struct held *extent = &gathering->pieces[i];
			used += fc_min_u64(extent->offset + extent->bytes, end) - fc_max_u64(extent->offset, begin);
		}
		if (used > best_used) {
			best_used = used;
			best = begin;
		}
	}
	return best;
}

/* ---- numbers ---- */

static void count_gaps(struct fc_arena_map *map, const struct gathering *gathering)
{
	uint64_t at = 0;
	for (size_t i = 0; i <= gathering->count; i++) {
		uint64_t next = i < gathering->count ? gathering->pieces[i].offset : map->arena_bytes;
		uint64_t gap = next > at ? next - at : 0;
		map->gap_count += gap > 0;
		map->gap_bytes_max = fc_max_u64(map->gap_bytes_max, gap);
		if (i < gathering->count)
			at = next + gathering->pieces[i].bytes;
	}
}

/* Keeps the extents alone, in the order of their owners; `counts` has room for all. */
static void count_extents(struct fc_arena_map *map, struct gathering *gathering, uint64_t *counts)
{
	size_t sessions = 0, kept = 0;
	struct held *extents = gathering->pieces;
	for (size_t i = 0; i < gathering->count; i++) {
		map->used_bytes += extents[i].bytes;
		map->extent_bytes += extents[i].is_point ? 0 : extents[i].bytes;
		if (!extents[i].is_point)
			extents[kept++] = extents[i];
	}
	gathering->count = kept;
	if (kept == 0)
		return;
	sort(extents, kept, sizeof(*extents), compare_owners);
	for (size_t i = 0; i < kept; i++) {
		bool is_next = i == 0 || extents[i - 1].owner != extents[i].owner;
		sessions += is_next;
		counts[sessions - 1] = is_next ? 1 : counts[sessions - 1] + 1;
	}
	sort(counts, sessions, sizeof(*counts), compare_counts);
	map->session_count = sessions;
	map->extent_count = kept;
	map->extents_p50 = counts[(sessions - 1) / 2];
	map->extents_p90 = counts[(sessions - 1) * 9 / 10];
	map->extents_max = counts[sessions - 1];
}

static int draw(struct fc_arena_map *map, struct gathering *gathering, uint64_t block_bytes)
{
	void *scratch = calloc(gathering->count + 1, fc_max_u64(sizeof(struct held), sizeof(uint64_t)));
	if (scratch == NULL || gathering->is_out_of_memory) {
		free(scratch);
		return FC_ENOMEM;
	}
	join(gathering);
	map->whole.cell_bytes = (map->arena_bytes + FC_MAP_CELLS - 1) / FC_MAP_CELLS;
	map->near.cell_bytes = fc_min_u64(block_bytes, map->whole.cell_bytes);
	map->near.first_byte = fullest(gathering, map->arena_bytes, map->near.cell_bytes * FC_MAP_CELLS);
	take_picture(&map->whole, gathering, scratch);
	take_picture(&map->near, gathering, scratch);
	count_gaps(map, gathering);
	count_extents(map, gathering, scratch);
	free(scratch);
	return FC_OK;
}

static int take(struct fc_map_taker *taker, struct fc_policy *policy, struct fc_arena_map *map)
{
	struct gathering gathering = {.taker = taker};
	map->at_ns = policy->env->world->now_ns;
	map->arena_bytes = policy->ops->layout(policy, on_piece, &gathering);
	int code = draw(map, &gathering, policy->env->block_bytes);
	free(gathering.pieces);
	return code;
}

int fc_map_taker_take(struct fc_map_taker *taker, struct fc_policy *policy, uint64_t request_count)
{
	if (taker->maps == NULL || policy->ops->layout == NULL || policy->env->ssd_bytes == 0)
		return FC_OK;
	int code = FC_OK;
	while (code == FC_OK && taker->taken < FC_MAP_MOMENTS &&
	       request_count >= taker->request_total * ((uint64_t)taker->taken + 1) / FC_MAP_MOMENTS) {
		struct fc_arena_map *map = &taker->maps[taker->taken++];
		*map = (struct fc_arena_map){.request_count = request_count};
		code = take(taker, policy, map);
	}
	return code;
}

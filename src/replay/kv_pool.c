#include "replay/kv_pool.h"

#include "host/pages.h"

#include <stdlib.h>
#include <string.h>

#define LAYER_ALIGN 64 /* layers do not share a cache line; slots inside may start anywhere */
#define HOLE_BYTE 0xee

static bool add_area(uint64_t slice_bytes, uint64_t slot_count, uint64_t *total)
{
	uint64_t bytes;
	return fc_mul_overflows(slice_bytes, slot_count + 1, &bytes) || bytes > UINT64_MAX - LAYER_ALIGN ||
	       fc_add_overflows(*total, fc_align_up(bytes, LAYER_ALIGN), total);
}

uint64_t fc_kv_pool_bytes(const struct fc_geometry *geometry, const uint64_t slot_counts[FC_GROUPS_MAX])
{
	uint64_t total = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++)
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			if (add_area(geometry->groups[group].slice_bytes[layer], slot_counts[group], &total))
				return UINT64_MAX;
	return total;
}

static void lay_out(struct fc_kv_pool *pool)
{
	const struct fc_geometry *geometry = &pool->geometry;
	uint8_t *base = pool->memory;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t slot_count = pool->groups[group].count + 1;
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
			uint64_t slice_bytes = geometry->groups[group].slice_bytes[layer];
			pool->layers[group * geometry->layer_count + layer] = (struct fc_paged_layer){
				.base = base,
				.slot_stride_bytes = slice_bytes,
				.slot_count = slot_count,
				.piece_count = 1,
			};
			memset(base + (slot_count - 1) * slice_bytes, HOLE_BYTE, slice_bytes);
			base += fc_align_up(slice_bytes * slot_count, LAYER_ALIGN);
		}
	}
}

static int make_slots(struct fc_kv_pool *pool, uint32_t group, uint64_t count)
{
	struct fc_kv_slots *slots = &pool->groups[group];
	slots->free = calloc(count + 1, sizeof(*slots->free));
	if (slots->free == NULL)
		return FC_ENOMEM;
	slots->count = count;
	for (uint64_t slot = 0; slot < count; slot++)
		fc_kv_pool_give(pool, group, 1, &slot);
	return FC_OK;
}

int fc_kv_pool_init(struct fc_kv_pool *pool, const struct fc_geometry *geometry,
		    const uint64_t slot_counts[FC_GROUPS_MAX], uint64_t seed, struct fc_error *error)
{
	*pool = (struct fc_kv_pool){.geometry = *geometry, .bytes = fc_kv_pool_bytes(geometry, slot_counts)};
	fc_random_init(&pool->random, seed);
	pool->layers = calloc((size_t)geometry->group_count * geometry->layer_count, sizeof(*pool->layers));
	pool->memory = fc_pages_alloc(pool->bytes);
	int code = pool->layers == NULL || pool->memory == NULL ? FC_ENOMEM : FC_OK;
	for (uint32_t group = 0; group < geometry->group_count && code == FC_OK; group++)
		code = make_slots(pool, group, slot_counts[group]);
	if (code != FC_OK)
		return fc_error_set(error, code, "no memory for the modelled engine's KV, %llu bytes",
				    (unsigned long long)pool->bytes);
	lay_out(pool);
	return FC_OK;
}

void fc_kv_pool_deinit(struct fc_kv_pool *pool)
{
	for (uint32_t group = 0; group < FC_GROUPS_MAX; group++)
		free(pool->groups[group].free);
	free(pool->layers);
	fc_pages_free(pool->memory, pool->bytes);
	*pool = (struct fc_kv_pool){.bytes = 0};
}

bool fc_kv_pool_has(const struct fc_kv_pool *pool, const uint64_t counts[FC_GROUPS_MAX])
{
	for (uint32_t group = 0; group < pool->geometry.group_count; group++)
		if (pool->groups[group].free_count < counts[group])
			return false;
	return true;
}

void fc_kv_pool_take(struct fc_kv_pool *pool, uint32_t group, uint64_t count, uint64_t *slots)
{
	struct fc_kv_slots *from = &pool->groups[group];
	fc_check(count <= from->free_count);
	from->free_count -= count;
	if (count > 0)
		memcpy(slots, from->free + from->free_count, count * sizeof(*slots));
}

void fc_kv_pool_give(struct fc_kv_pool *pool, uint32_t group, uint64_t count, const uint64_t *slots)
{
	struct fc_kv_slots *to = &pool->groups[group];
	fc_check(count <= to->count - to->free_count);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t place = fc_random_below(&pool->random, to->free_count + 1);
		to->free[to->free_count++] = to->free[place];
		to->free[place] = slots[i];
	}
}

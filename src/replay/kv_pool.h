/* The paged KV of the modelled engine: what its device memory would be.
 *
 * Each layer of each group is an area of its own, cut into slots of one slice; slot s of a group is slot s of all its
 * layers. Slots are handed out in an order that a seed shuffles, and go back to a random place in that order, so that
 * nothing is contiguous by accident and a block hardly ever comes back to where its bytes still lie.
 *
 * The last slot of each group is the hole: it is never handed out, and holds bytes that belong to no block. A slot list
 * names it for blocks that the store has no business with. */
#ifndef FC_REPLAY_KV_POOL_H
#define FC_REPLAY_KV_POOL_H

#include "base/error.h"
#include "base/random.h"

/* Slots of one group. */
struct fc_kv_slots {
	uint64_t *free; /* the first free_count are free */
	uint64_t free_count;
	uint64_t count; /* without the hole */
};

struct fc_kv_pool {
	struct fc_geometry geometry;
	struct fc_random random;
	struct fc_kv_slots groups[FC_GROUPS_MAX];
	uint8_t *memory;
	uint64_t bytes;
	struct fc_paged_layer *layers; /* [group * layer_count + layer], as fc_kv_register() takes them */
};

/* Bytes of memory that a pool with so many slots a group takes; UINT64_MAX when that is beyond 64 bits. */
uint64_t fc_kv_pool_bytes(const struct fc_geometry *geometry, const uint64_t slot_counts[FC_GROUPS_MAX]);

/* FC_ENOMEM with the size in the text. fc_kv_pool_deinit() also after a failure. */
FC_MUST_USE int fc_kv_pool_init(struct fc_kv_pool *pool, const struct fc_geometry *geometry,
				const uint64_t slot_counts[FC_GROUPS_MAX], uint64_t seed, struct fc_error *error);
void fc_kv_pool_deinit(struct fc_kv_pool *pool);

/* Whether so many slots of every group are free. */
bool fc_kv_pool_has(const struct fc_kv_pool *pool, const uint64_t counts[FC_GROUPS_MAX]);

/* Takes `count` free slots of a group; there must be as many. */
void fc_kv_pool_take(struct fc_kv_pool *pool, uint32_t group, uint64_t count, uint64_t *slots);
void fc_kv_pool_give(struct fc_kv_pool *pool, uint32_t group, uint64_t count, const uint64_t *slots);

static inline uint64_t fc_kv_pool_hole(const struct fc_kv_pool *pool, uint32_t group)
{
	return pool->groups[group].count;
}

/* Address of a slice; its layer must have a part in the group. */
static inline uint8_t *fc_kv_pool_slice(const struct fc_kv_pool *pool, uint32_t group, uint32_t layer, uint64_t slot)
{
	const struct fc_paged_layer *paged = &pool->layers[group * pool->geometry.layer_count + layer];
	return (uint8_t *)paged->base + slot * paged->slot_stride_bytes;
}

#endif

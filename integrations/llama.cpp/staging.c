/* Memory on the way between engine and store, and how the store finds blocks in it. */
#include "bridge.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE_BYTES (2ull << 20)

uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A little more than asked: a session grows with every turn. */
static int grow(struct staging *staging, uint64_t size)
{
	if (size <= staging->size)
		return FC_OK;
	if (size > UINT64_MAX / 2)
		return FC_ENOMEM;
	uint64_t room = (size + size / 4 + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	free(staging->bytes);
	staging->size = 0;
	staging->bytes = aligned_alloc(HUGE_PAGE_BYTES, room);
	if (staging->bytes == NULL)
		return FC_ENOMEM;
	madvise(staging->bytes, room, MADV_HUGEPAGE); /* only a wish: fewer page faults */
	staging->size = room;
	return FC_OK;
}

int staging_take(struct fc_llama *bridge, uint64_t size, struct staging **staging, struct fc_error *error)
{
	struct staging *best = NULL; /* the smallest that is large enough, or else the largest */
	for (int i = 0; i < STAGING_COUNT; i++) {
		struct staging *one = &bridge->stagings[i];
		if (one->is_used)
			continue;
		bool is_better = best == NULL || (best->size < size ? one->size > best->size
								    : one->size >= size && one->size < best->size);
		best = is_better ? one : best;
	}
	if (best == NULL)
		return state_error(error, FC_ELIMIT, "%d loads and saves of one context are under way, the limit",
				   STAGING_COUNT);
	if (grow(best, size) != FC_OK)
		return state_error(error, FC_ENOMEM, "no memory for a state of %llu bytes", (unsigned long long)size);
	best->is_used = true;
	*staging = best;
	return FC_OK;
}

void staging_give(struct staging *staging)
{
	if (staging != NULL)
		staging->is_used = false;
}

void staging_free_all(struct fc_llama *bridge)
{
	for (int i = 0; i < STAGING_COUNT; i++)
		free(bridge->stagings[i].bytes);
}

int path_init(struct path *path, const struct fc_llama *bridge, const llama_token *tokens, size_t token_count,
	      struct fc_error *error)
{
	uint32_t block_tokens = bridge->geometry.block_tokens;
	*path = (struct path){.block_count = token_count / block_tokens};
	path->keys = calloc(path->block_count + 1, sizeof(*path->keys));
	path->slots = calloc(path->block_count + 1, sizeof(*path->slots));
	if (path->keys == NULL || path->slots == NULL) {
		path_deinit(path);
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	}
	for (uint64_t i = 0; i < path->block_count; i++)
		path->slots[i] = i;
	_Static_assert(sizeof(llama_token) == sizeof(uint32_t), "tokens are hashed as 32-bit numbers");
	int code = fc_key_chain(&bridge->name_space, NULL, (const uint32_t *)tokens, block_tokens, path->block_count,
				path->keys);
	if (code == FC_OK)
		return FC_OK;
	path_deinit(path);
	return state_error(error, code, "keys of %llu blocks: %s", (unsigned long long)path->block_count,
			   fc_code_text(code));
}

void path_deinit(struct path *path)
{
	free(path->keys);
	free(path->slots);
	*path = (struct path){0};
}

/* One group with slices of two pieces where K and V have equal rows, otherwise a group for each: see geometry_of(). */
int kv_register(struct fc_llama *bridge, const struct state_view *view, struct fc_kv **kv, struct fc_error *error)
{
	const struct state_shape *shape = &bridge->shape;
	const struct fc_geometry *geometry = &bridge->geometry;
	uint32_t block_tokens = geometry->block_tokens, layer_count = shape->layer_count;
	bool is_paired = shape->has_values && geometry->group_count == 1;
	struct fc_paged_layer *layers = calloc((size_t)layer_count * geometry->group_count, sizeof(*layers));
	if (layers == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	for (uint32_t layer = 0; layer < layer_count; layer++) {
		uint64_t keys_at = state_keys_at(shape, view, layer);
		uint64_t values_at = shape->has_values ? state_values_at(shape, view, layer) : 0;
		struct fc_paged_layer paged = {
			.base = view->bytes + keys_at,
			.slot_stride_bytes = shape->keys[layer].bytes * block_tokens,
			.slot_count = view->cell_count / block_tokens,
			.piece_count = is_paired ? 2 : 1,
			.piece_stride_bytes = is_paired ? values_at - keys_at : 0,
		};
		layers[layer] = paged;
		if (geometry->group_count == 1)
			continue;
		paged.base = view->bytes + values_at;
		paged.slot_stride_bytes = shape->values[layer].bytes * block_tokens;
		layers[layer_count + layer] = paged;
	}
	int code = fc_kv_register(bridge->store, layers, kv, error);
	free(layers);
	return code;
}

/* What a request keeps of what its caller passed: copies, in memory that the pooled request reuses. */
#include "core/state.h"

#include <string.h>

int fc_core_copy_array(const struct fc_alloc *alloc, void **memory, uint64_t *room, const void *from, uint64_t count,
		       size_t item_bytes)
{
	int code = fc_alloc_reserve(alloc, memory, room, count, item_bytes);
	if (code == FC_OK && count > 0)
		memcpy(*memory, from, count * item_bytes);
	return code;
}

int fc_core_copy_keys(const struct fc_core *core, struct fc_key **memory, uint64_t *room, const struct fc_key *from,
		      uint64_t count)
{
	int code = fc_core_copy_array(core->alloc, (void **)memory, room, from, count, sizeof(*from));
	struct fc_key salt = core->opts.key_salt;
	for (uint64_t i = 0; i < count && code == FC_OK && (salt.high | salt.low) != 0; i++) {
		(*memory)[i].high ^= salt.high;
		(*memory)[i].low ^= salt.low;
	}
	return code;
}

int fc_core_copy_slots(const struct fc_core *core, struct fc_target *target, uint64_t **memory, uint64_t *room,
		       const struct fc_slots *slots)
{
	uint32_t group_count = core->opts.catalog.geometry->group_count;
	uint64_t total = 0;
	for (uint32_t group = 0; group < group_count; group++)
		total += slots[group].count;
	int code = fc_alloc_reserve(core->alloc, (void **)memory, room, total, sizeof(**memory));
	if (code != FC_OK)
		return code;
	uint64_t used = 0;
	for (uint32_t group = 0; group < group_count; group++) {
		target->slots[group] = slots[group];
		target->slots[group].slots = total > 0 ? *memory + used : NULL;
		if (slots[group].count > 0)
			memcpy(*memory + used, slots[group].slots, slots[group].count * sizeof(**memory));
		used += slots[group].count;
	}
	return FC_OK;
}

/* Blocks of a path, which has 2^32 at most, so that no sum of these numbers overflows. */
static int check_blocks(uint32_t group, const struct fc_slots *slots, const char *what, struct fc_error *error)
{
	if (slots->count > UINT32_MAX || slots->first_block > UINT32_MAX - slots->count)
		return fc_error_set(error, FC_EINVAL,
				    "%s: group %u has slots of %llu blocks from block %llu on; blocks below %u are "
				    "allowed",
				    what, group, (unsigned long long)slots->count,
				    (unsigned long long)slots->first_block, UINT32_MAX);
	if (slots->count > 0 && slots->slots == NULL)
		return fc_error_set(error, FC_EINVAL, "%s: group %u has %llu slots, but the array is NULL", what, group,
				    (unsigned long long)slots->count);
	return FC_OK;
}

/* Every slot number must exist in every layer of its group: a wrong one would be written through. */
int fc_core_check_slots(const struct fc_core *core, const struct fc_slots *slots, const struct fc_paged_layer *layers,
			const char *what, struct fc_error *error)
{
	const struct fc_geometry *geometry = core->opts.catalog.geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t slot_count = UINT64_MAX;
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			if (geometry->groups[group].slice_bytes[layer] > 0)
				slot_count = fc_min_u64(slot_count,
							layers[group * geometry->layer_count + layer].slot_count);
		int code = check_blocks(group, &slots[group], what, error);
		if (code != FC_OK)
			return code;
		for (uint64_t i = 0; i < slots[group].count; i++)
			if (slots[group].slots[i] >= slot_count)
				return fc_error_set(
					error, FC_EINVAL, "%s: group %u block %llu: slot %llu; 0 to %llu are allowed",
					what, group, (unsigned long long)(slots[group].first_block + i),
					(unsigned long long)slots[group].slots[i], (unsigned long long)slot_count - 1);
	}
	return FC_OK;
}

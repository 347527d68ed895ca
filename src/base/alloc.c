#include "base/alloc.h"

#include "base/check.h"
#include "base/error.h"

#include <string.h>

#define ROOM_FIRST 4

void *fc_alloc_grow(const struct fc_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes)
{
	void *larger = fc_alloc_zeroed(alloc, new_bytes);
	if (larger == NULL)
		return NULL;
	if (memory != NULL) {
		memcpy(larger, memory, old_bytes);
		fc_alloc_free(alloc, memory, old_bytes);
	}
	return larger;
}

int fc_alloc_reserve(const struct fc_alloc *alloc, void **array, uint64_t *room, uint64_t count, size_t item_bytes)
{
	if (count <= *room)
		return FC_OK;
	uint64_t larger_room = fc_max_u64(count, fc_max_u64(*room * 2, ROOM_FIRST));
	uint64_t bytes;
	if (fc_mul_overflows(larger_room, item_bytes, &bytes))
		return FC_ENOMEM;
	void *larger = fc_alloc_grow(alloc, *array, *room * item_bytes, bytes);
	if (larger == NULL)
		return FC_ENOMEM;
	*array = larger;
	*room = larger_room;
	return FC_OK;
}

#include "base/alloc.h"

#include <string.h>

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

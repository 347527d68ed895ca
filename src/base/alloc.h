/* Memory for the pure folders, which call no malloc of their own: whoever opens the core hands it one of these.
 * Production uses fc_alloc_system() (src/host/alloc.h, huge pages for large pieces); tests hand in one that fails at
 * the k-th call. */
#ifndef FC_BASE_ALLOC_H
#define FC_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

struct fc_alloc {
	void *(*alloc)(void *context, size_t bytes);             /* zeroed memory, aligned to 64 bytes, or NULL */
	void (*free)(void *context, void *memory, size_t bytes); /* the same `bytes`; memory may be NULL */
	void *context;
};

static inline void *fc_alloc_zeroed(const struct fc_alloc *alloc, size_t bytes)
{
	return alloc->alloc(alloc->context, bytes);
}

static inline void fc_alloc_free(const struct fc_alloc *alloc, void *memory, size_t bytes)
{
	alloc->free(alloc->context, memory, bytes);
}

/* A larger copy of `memory`, the new part zeroed; on failure NULL and the old memory is untouched. */
void *fc_alloc_grow(const struct fc_alloc *alloc, void *memory, size_t old_bytes, size_t new_bytes);

/* Makes room for at least `count` items in a growing array: `*array` has `*room` of them (NULL and 0 at first) and is
 * moved when that is not enough, at least doubling, with what was in it kept and the new part zeroed. FC_OK, or
 * FC_ENOMEM with the array as it was. */
__attribute__((warn_unused_result)) int fc_alloc_reserve(const struct fc_alloc *alloc, void **array, uint64_t *room,
							 uint64_t count, size_t item_bytes);

#endif

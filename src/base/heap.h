/* A binary heap of structs that embed a node: the first in an order of the caller's is at hand at once, and any of them
 * can be taken out, or moved after its place in the order has changed, in O(log n).
 *
 * The capacity is fixed when the heap is made; after that nothing allocates. For one thread at a time. */
#ifndef FC_BASE_HEAP_H
#define FC_BASE_HEAP_H

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"

/* Embed it; zeroed means "in no heap". fc_container_of() leads back. */
struct fc_heap_node {
	uint64_t place; /* position in the heap, counted from 1; 0: in no heap */
};

/* True when `a` comes before `b`. For a defined order among equals, let it fall back to an arrival number. */
typedef bool (*fc_heap_before_cb)(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context);

struct fc_heap {
	struct fc_alloc alloc;
	struct fc_heap_node **nodes;
	uint64_t count;
	uint64_t capacity;
	fc_heap_before_cb before;
	void *context; /* handed to `before` */
};

/* Room for `capacity` (>= 1) nodes. FC_ENOMEM; FC_EINVAL for a capacity that cannot be. */
FC_MUST_USE int fc_heap_init(struct fc_heap *heap, const struct fc_alloc *alloc, uint64_t capacity,
			     fc_heap_before_cb before, void *context);
/* Nodes that are still in are forgotten, not touched. */
void fc_heap_deinit(struct fc_heap *heap);

/* Adds a node that is in no heap. FC_ELIMIT when the heap is full. */
FC_MUST_USE int fc_heap_push(struct fc_heap *heap, struct fc_heap_node *node);

/* The first in order, NULL when empty. */
static inline struct fc_heap_node *fc_heap_peek(const struct fc_heap *heap)
{
	return heap->count == 0 ? NULL : heap->nodes[0];
}
struct fc_heap_node *fc_heap_pop(struct fc_heap *heap);

/* Takes a node out; one that is in no heap is left alone. */
void fc_heap_remove(struct fc_heap *heap, struct fc_heap_node *node);

/* Restores the order after what `before` looks at has changed for one node. */
void fc_heap_update(struct fc_heap *heap, struct fc_heap_node *node);

/* Restores the order after it has changed for all nodes at once, in O(n). */
void fc_heap_reorder(struct fc_heap *heap);

static inline bool fc_heap_contains(const struct fc_heap *heap, const struct fc_heap_node *node)
{
	return node->place != 0 && node->place <= heap->count && heap->nodes[node->place - 1] == node;
}
static inline uint64_t fc_heap_count(const struct fc_heap *heap)
{
	return heap->count;
}

#endif

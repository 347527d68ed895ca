/* nodes[0] is the first in order; the children of nodes[i] are nodes[2i + 1] and nodes[2i + 2], and neither is before
 * it. Each node knows its place, so that it can be found again. */
#include "base/heap.h"

#include <string.h>

int fc_heap_init(struct fc_heap *heap, const struct fc_alloc *alloc, uint64_t capacity, fc_heap_before_cb before,
		 void *context)
{
	memset(heap, 0, sizeof(*heap));
	uint64_t bytes;
	if (capacity == 0 || fc_mul_overflows(capacity, sizeof(*heap->nodes), &bytes))
		return FC_EINVAL;
	heap->nodes = fc_alloc_zeroed(alloc, bytes);
	if (heap->nodes == NULL)
		return FC_ENOMEM;
	heap->alloc = *alloc;
	heap->capacity = capacity;
	heap->before = before;
	heap->context = context;
	return 0;
}

void fc_heap_deinit(struct fc_heap *heap)
{
	if (heap->nodes != NULL)
		fc_alloc_free(&heap->alloc, heap->nodes, heap->capacity * sizeof(*heap->nodes));
	memset(heap, 0, sizeof(*heap));
}

static void put(struct fc_heap *heap, uint64_t at, struct fc_heap_node *node)
{
	heap->nodes[at] = node;
	node->place = at + 1;
}

static bool is_before(const struct fc_heap *heap, const struct fc_heap_node *a, const struct fc_heap_node *b)
{
	return heap->before(a, b, heap->context);
}

/* Moves the node at `at` towards the root while it is before its parent. */
static void rise(struct fc_heap *heap, uint64_t at)
{
	struct fc_heap_node *node = heap->nodes[at];
	while (at > 0) {
		uint64_t parent = (at - 1) / 2;
		if (!is_before(heap, node, heap->nodes[parent]))
			break;
		put(heap, at, heap->nodes[parent]);
		at = parent;
	}
	put(heap, at, node);
}

/* Moves the node at `at` away from the root while a child is before it. */
static void sink(struct fc_heap *heap, uint64_t at)
{
	struct fc_heap_node *node = heap->nodes[at];
	for (;;) {
		uint64_t child = 2 * at + 1;
		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && is_before(heap, heap->nodes[child + 1], heap->nodes[child]))
			child++;
		if (!is_before(heap, heap->nodes[child], node))
			break;
		put(heap, at, heap->nodes[child]);
		at = child;
	}
	put(heap, at, node);
}

int fc_heap_push(struct fc_heap *heap, struct fc_heap_node *node)
{
	fc_check(node->place == 0);
	if (heap->count == heap->capacity)
		return FC_ELIMIT;
	put(heap, heap->count++, node);
	rise(heap, heap->count - 1);
	return 0;
}

void fc_heap_update(struct fc_heap *heap, struct fc_heap_node *node)
{
	fc_check(fc_heap_contains(heap, node));
	rise(heap, node->place - 1);
	sink(heap, node->place - 1);
}

void fc_heap_remove(struct fc_heap *heap, struct fc_heap_node *node)
{
	if (node->place == 0)
		return;
	fc_check(fc_heap_contains(heap, node));
	uint64_t at = node->place - 1;
	struct fc_heap_node *last = heap->nodes[--heap->count];
	node->place = 0;
	if (last == node)
		return;
	put(heap, at, last);
	fc_heap_update(heap, last);
}

struct fc_heap_node *fc_heap_pop(struct fc_heap *heap)
{
	struct fc_heap_node *first = fc_heap_peek(heap);
	if (first != NULL)
		fc_heap_remove(heap, first);
	return first;
}

void fc_heap_reorder(struct fc_heap *heap)
{
	for (uint64_t at = heap->count / 2; at > 0; at--)
		sink(heap, at - 1);
}

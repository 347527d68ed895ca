/* See tree.h. Children are found in one hash table of node numbers; the key (parent, first id) is read from the node
 * itself, so that a slot takes four bytes, and cutting a node replaces one slot and adds one. */
#include "analyze/tree.h"

#include "base/check.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOT_COUNT 1024
#define FIRST_NODE_CAPACITY 1024
#define NODES_MAX ((uint64_t)UINT32_MAX - 1)

/* A place in the tree: behind the first `offset` blocks of a node, of which there is at least one but in the root. */
struct place {
	uint32_t node;
	uint32_t offset;
};

static uint64_t slot_of(const struct fc_tree *tree, uint32_t parent, uint64_t id)
{
	uint64_t state = id ^ (uint64_t)parent << 32;
	uint64_t mixed = fc_random_split(&state);
	state = mixed ^ parent;
	return fc_random_split(&state) & (tree->slot_count - 1);
}

/* The slot of the child that starts with `id`, or the free one where it would be. */
static uint32_t *child_slot(const struct fc_tree *tree, uint32_t parent, uint64_t id)
{
	uint64_t at = slot_of(tree, parent, id);
	while (tree->slots[at] != FC_TREE_NONE) {
		const struct fc_tree_node *node = &tree->nodes[tree->slots[at]];
		if (node->parent == parent && tree->trace->suffix_ids[node->label] == id)
			break;
		at = (at + 1) & (tree->slot_count - 1);
	}
	return &tree->slots[at];
}

static void enter_child(struct fc_tree *tree, uint32_t node)
{
	const struct fc_tree_node *entered = &tree->nodes[node];
	*child_slot(tree, entered->parent, tree->trace->suffix_ids[entered->label]) = node;
}

static int grow_slots(struct fc_tree *tree, uint64_t slot_count)
{
	uint32_t *slots = malloc(slot_count * sizeof(*slots));
	if (slots == NULL)
		return FC_ENOMEM;
	memset(slots, 0xff, slot_count * sizeof(*slots));
	free(tree->slots);
	tree->slots = slots;
	tree->slot_count = slot_count;
	for (uint32_t node = 1; node < tree->node_count; node++)
		enter_child(tree, node);
	return 0;
}

/* Makes room for two nodes, which is what one step may add. */
static int reserve(struct fc_tree *tree)
{
	if (tree->node_count + 2ull > NODES_MAX)
		return FC_ELIMIT;
	if (tree->node_count + 2ull > tree->node_capacity) {
		uint64_t capacity = tree->node_capacity + tree->node_capacity / 2;
		struct fc_tree_node *nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
		if (nodes == NULL)
			return FC_ENOMEM;
		tree->nodes = nodes;
		tree->node_capacity = capacity;
	}
	if ((tree->node_count + 2ull) * 2 > tree->slot_count)
		return grow_slots(tree, tree->slot_count * 2);
	return 0;
}

int fc_tree_init(struct fc_tree *tree, const struct fc_trace *trace)
{
	*tree = (struct fc_tree){.trace = trace, .node_count = 1, .node_capacity = FIRST_NODE_CAPACITY};
	tree->nodes = malloc(FIRST_NODE_CAPACITY * sizeof(*tree->nodes));
	tree->ends = calloc((size_t)trace->request_count + 1, sizeof(*tree->ends));
	if (tree->nodes == NULL || tree->ends == NULL || grow_slots(tree, FIRST_SLOT_COUNT) != 0) {
		fc_tree_deinit(tree);
		return FC_ENOMEM;
	}
	tree->nodes[FC_TREE_ROOT] = (struct fc_tree_node){.parent = FC_TREE_NONE,
							  .child = FC_TREE_NONE,
							  .last_request = FC_TRACE_NONE,
							  .session_mark = FC_TRACE_NONE};
	return 0;
}

void fc_tree_deinit(struct fc_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	free(tree->ends);
	*tree = (struct fc_tree){0};
}

/* The place behind the first `depth` blocks of the path that ends with `node`. */
static struct place climb(const struct fc_tree *tree, uint32_t node, uint32_t depth)
{
	while (node != FC_TREE_ROOT && tree->nodes[node].start >= depth)
		node = tree->nodes[node].parent;
	return (struct place){.node = node, .offset = depth - tree->nodes[node].start};
}

static uint32_t common(const uint64_t *a, const uint64_t *b, uint32_t count)
{
	uint32_t same = 0;
	while (same < count && a[same] == b[same])
		same++;
	return same;
}

/* Follows ids down from a place as far as the tree has them; returns how many it had. */
static uint32_t descend(const struct fc_tree *tree, struct place *place, const uint64_t *ids, uint32_t count)
{
	uint32_t done = 0;
	for (;;) {
		const struct fc_tree_node *node = &tree->nodes[place->node];
		uint32_t room = node->length - place->offset;
		uint32_t step = common(tree->trace->suffix_ids + node->label + place->offset, ids + done,
				       room < count - done ? room : count - done);
		place->offset += step;
		done += step;
		if (done == count || step < room)
			return done;
		uint32_t child = *child_slot(tree, place->node, ids[done]);
		if (child == FC_TREE_NONE)
			return done;
		*place = (struct place){.node = child};
	}
}

static void adopt(struct fc_tree *tree, uint32_t parent, uint32_t child)
{
	struct fc_tree_node *node = &tree->nodes[parent];
	if (node->child == FC_TREE_NONE)
		node->child = child;
	else
		node->is_fork = true;
}

/* Cuts a node in two behind its first `offset` blocks; returns the upper part, which is new. */
static uint32_t cut(struct fc_tree *tree, uint32_t lower, uint32_t offset)
{
	uint32_t upper = tree->node_count++;
	struct fc_tree_node *above = &tree->nodes[upper], *below = &tree->nodes[lower];
	uint32_t *slot = child_slot(tree, below->parent, tree->trace->suffix_ids[below->label]);
	fc_check(*slot == lower);
	*above = *below;
	above->length = offset;
	above->child = lower;
	above->is_fork = above->is_list_end = false;
	*slot = upper;
	if (tree->nodes[above->parent].child == lower)
		tree->nodes[above->parent].child = upper;
	below->label += offset;
	below->start += offset;
	below->length -= offset;
	below->parent = upper;
	enter_child(tree, lower);
	return upper;
}

static uint32_t add_leaf(struct fc_tree *tree, uint32_t parent, uint64_t label, uint32_t length)
{
	const struct fc_tree_node *above = &tree->nodes[parent];
	uint32_t leaf = tree->node_count++;
	tree->nodes[leaf] = (struct fc_tree_node){.label = label,
						  .start = above->start + above->length,
						  .length = length,
						  .parent = parent,
						  .child = FC_TREE_NONE,
						  .last_request = FC_TRACE_NONE,
						  .session_mark = FC_TRACE_NONE};
	enter_child(tree, leaf);
	adopt(tree, parent, leaf);
	return leaf;
}

/* Makes a node end at `place`, then adds what the tree does not have: `count` ids at `label`. */
static int grow_at(struct fc_tree *tree, struct place place, uint64_t label, uint32_t count, uint32_t *end)
{
	int result = reserve(tree);
	if (result != 0)
		return result;
	*end = place.node;
	if (place.offset < tree->nodes[place.node].length)
		*end = cut(tree, place.node, place.offset);
	if (count > 0)
		*end = add_leaf(tree, *end, label, count);
	return 0;
}

int fc_tree_extend(struct fc_tree *tree, uint32_t node, uint64_t label, uint32_t count, uint32_t *end)
{
	struct place place = {.node = node, .offset = tree->nodes[node].length};
	uint32_t done = descend(tree, &place, tree->trace->suffix_ids + label, count);
	return grow_at(tree, place, label + done, count - done, end);
}

/* What lies above `place`, where the tree's part of a list ends. */
static struct fc_tree_match look_up(const struct fc_tree *tree, struct place place)
{
	struct fc_tree_match match = {.depth = tree->nodes[place.node].start + place.offset, .node = place.node};
	uint32_t node = place.node;
	if (node != FC_TREE_ROOT && place.offset < tree->nodes[node].length)
		node = tree->nodes[node].parent;
	for (; node != FC_TREE_ROOT; node = tree->nodes[node].parent) {
		const struct fc_tree_node *passed = &tree->nodes[node];
		uint32_t end = passed->start + passed->length;
		if (passed->is_list_end && match.continued < end)
			match.continued = end;
		if (passed->is_fork && match.fork < end)
			match.fork = end;
	}
	return match;
}

int fc_tree_add(struct fc_tree *tree, uint32_t request, struct fc_tree_match *match)
{
	const struct fc_trace_request *added = &tree->trace->requests[request];
	struct place place = {.node = FC_TREE_ROOT};
	if (added->previous != FC_TRACE_NONE)
		place = climb(tree, tree->ends[added->previous], added->prefix_count);
	fc_check(added->previous != FC_TRACE_NONE || added->prefix_count == 0);
	uint32_t done = descend(tree, &place, tree->trace->suffix_ids + added->suffix_start, added->suffix_count);
	if (match != NULL)
		*match = look_up(tree, place);
	int result = grow_at(tree, place, added->suffix_start + done, added->suffix_count - done, &tree->ends[request]);
	if (result == 0)
		tree->nodes[tree->ends[request]].is_list_end = true;
	return result;
}

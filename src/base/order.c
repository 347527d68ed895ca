/* A node's `smaller` and `larger` are the trees of what is before and behind it; neither has a node of higher rank. */
#include "base/order.h"

#include "base/check.h"
#include "base/random.h"

static uint64_t rank_of(const struct fc_order *order, const struct fc_order_node *node)
{
	uint64_t state = node->key ^ order->seed;
	return fc_random_split(&state);
}

/* Of a tree, what is before `key` and what is behind it. */
static void split(struct fc_order_node *tree, uint64_t key, struct fc_order_node **before,
		  struct fc_order_node **behind)
{
	while (tree != NULL) {
		if (tree->key < key) {
			*before = tree;
			before = &tree->larger;
			tree = tree->larger;
		} else {
			*behind = tree;
			behind = &tree->smaller;
			tree = tree->smaller;
		}
	}
	*before = *behind = NULL;
}

/* The place at which the search for `node`'s key leaves what is above it. */
static struct fc_order_node **place_of(struct fc_order *order, const struct fc_order_node *node)
{
	struct fc_order_node **place = &order->root;
	uint64_t rank = rank_of(order, node);
	while (*place != NULL && *place != node && rank_of(order, *place) >= rank)
		place = node->key < (*place)->key ? &(*place)->smaller : &(*place)->larger;
	return place;
}

static void insert(struct fc_order *order, struct fc_order_node *node)
{
	struct fc_order_node **place = place_of(order, node);
	split(*place, node->key, &node->smaller, &node->larger);
	*place = node;
	order->count++;
}

static void take_out(struct fc_order *order, struct fc_order_node *node)
{
	struct fc_order_node **place = place_of(order, node);
	struct fc_order_node *before = node->smaller, *behind = node->larger;
	fc_check(*place == node);
	while (before != NULL && behind != NULL) {
		if (rank_of(order, before) >= rank_of(order, behind)) {
			*place = before;
			place = &before->larger;
			before = before->larger;
		} else {
			*place = behind;
			place = &behind->smaller;
			behind = behind->smaller;
		}
	}
	*place = before != NULL ? before : behind;
	order->count--;
}

void fc_order_put(struct fc_order *order, struct fc_order_node *node, uint64_t key)
{
	if (node->key == key)
		return;
	if (node->key != 0)
		take_out(order, node);
	node->key = key;
	if (key != 0)
		insert(order, node);
}

struct fc_order_node *fc_order_from(const struct fc_order *order, uint64_t key)
{
	struct fc_order_node *found = NULL;
	for (struct fc_order_node *node = order->root; node != NULL;) {
		if (node->key >= key) {
			found = node;
			node = node->smaller;
		} else {
			node = node->larger;
		}
	}
	return found;
}

void fc_order_check(const struct fc_order *order)
{
	uint64_t count = 0, before = 0;
	struct fc_order_node *node = fc_order_from(order, 1);
	for (; node != NULL; node = fc_order_from(order, node->key + 1)) {
		fc_check(node->key > before);
		fc_check(node->smaller == NULL || rank_of(order, node->smaller) <= rank_of(order, node));
		fc_check(node->larger == NULL || rank_of(order, node->larger) <= rank_of(order, node));
		before = node->key;
		if (++count > order->count || node->key == UINT64_MAX)
			break;
	}
	fc_check(count == order->count);
}

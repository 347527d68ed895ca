/* Structs that embed a node, in ascending order of a number: any of them is put in, taken out, or found by where it
 * would be, in O(log n), and nothing allocates.
 *
 * A treap: a binary search tree by key that is at the same time a heap by a number mixed from the key and the order's
 * seed. So its shape follows from what is in it, whatever was put in first, and it is as deep as a tree whose keys came
 * at random: about 1.4 log2 n for most nodes. Who does not know the seed cannot choose keys that make it deep.
 *
 * Keys are not 0, and no two nodes of an order have the same. For one thread at a time. */
#ifndef FC_BASE_ORDER_H
#define FC_BASE_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Embed it; zeroed means "in no order". fc_container_of() leads back. */
struct fc_order_node {
	struct fc_order_node *smaller, *larger;
	uint64_t key; /* 0: in no order */
};

/* Zeroed is empty; a seed may be set as long as it is. */
struct fc_order {
	struct fc_order_node *root;
	uint64_t count;
	uint64_t seed;
};

/* Puts the node where `key` belongs, from wherever in this order it was; 0 takes it out. */
void fc_order_put(struct fc_order *order, struct fc_order_node *node, uint64_t key);

/* The first node whose key is at least `key`; NULL when there is none. With the key behind that of a node, the next
 * one, also when the node itself has left meanwhile. */
struct fc_order_node *fc_order_from(const struct fc_order *order, uint64_t key);

/* Asserts that all is in order, and that there are as many nodes as counted. */
void fc_order_check(const struct fc_order *order);

#endif

/* Exact LRU stack distances of a whole trace.
 *
 * What LRU means where requests touch paths. A request is matched against what the cache holds when it arrives; then
 * its path goes to the top of the stack, its head uppermost, so that a tail is always evicted before what it stands on,
 * and a path that is longer than the cache leaves its head there. The distance of a block is its depth in the stack
 * when the request arrives, counted from 1: a cache of C blocks hits it exactly if that is at most C, for every C at
 * once. As no block lies above one that it stands on, the blocks that hit are always a prefix of the list, and a hit
 * rate by blocks is a hit rate by prefixes.
 *
 * How it is computed. The stack is the paths of all requests, latest first, each less what later ones took: since those
 * can only take heads of it, what is left of each is one run.
 *
 *     request 3   A B C G H        top
 *     request 1             D E      (was A B C D E)
 *     request 2   X Y              bottom; Z was taken
 *
 * So the stack is an array of run lengths by request, in a Fenwick tree, and a list that arrives falls into as many
 * pieces as it has different last users: a few. Each piece is the head of a run, its distances are consecutive numbers,
 * and the histogram of distances takes it as two entries of a difference array. Per request: the tree's nodes on the
 * list, and O(log requests) for each piece; blocks are never touched one by one. (That pieces are few also in the worst
 * case is the analysis of `access` in link-cut trees: O(log blocks) for a request, amortised.) */
#ifndef FC_ANALYZE_STACK_H
#define FC_ANALYZE_STACK_H

#include "analyze/tree.h"

/* Consecutive blocks of a list that one request was the last to touch, and their distances. */
struct fc_stack_piece {
	uint32_t last_request;
	uint32_t list_count; /* blocks that the request looks up */
	uint32_t move_count; /* blocks that it moves: also those of its reply */
	uint64_t above;      /* blocks that lie over the piece; its distances are above + 1, above + 2, ... */
};

struct fc_stack {
	struct fc_tree *tree;
	uint64_t *runs; /* Fenwick tree over requests: what is left of the path of each */
	uint32_t request_count;
	uint64_t block_count;          /* in the whole stack */
	struct fc_stack_piece *pieces; /* of the request that was taken last, from the tail to the head */
	uint64_t piece_count, piece_capacity;
	uint32_t list_known;  /* blocks of its list that some list held before */
	uint32_t list_stored; /* blocks of its list that were in the stack: by lists, or by replies */
	uint32_t path_count;  /* blocks of its list and reply */
};

/* FC_ENOMEM. The tree stays borrowed, and is written. */
FC_MUST_USE int fc_stack_init(struct fc_stack *stack, struct fc_tree *tree);
void fc_stack_deinit(struct fc_stack *stack);

/* Takes the next request: its list ends with node tree->ends[request], its reply with node `end` at or below that.
 * Fills in what stands above. Requests must come in their order. FC_ENOMEM. */
FC_MUST_USE int fc_stack_take(struct fc_stack *stack, uint32_t request, uint32_t end);

#endif

/* The blocks of a trace as a tree of paths, compressed.
 *
 * A block is named by its path, so the blocks of a trace form a tree, and a request is a way down from its root. Nodes
 * hold runs of blocks that no request has told apart yet:
 *
 *     root --- A B C D --- E F      a request ended behind D, and one behind F
 *                    \---- G H I    another left the first behind D
 *
 * A run is a piece of the trace's own list of ids, so a node has a fixed size, and a request makes at most two of them:
 * memory grows with requests, not with blocks. A request enters where the list that it repeats ends, and compares only
 * what is new in it: time grows with what lists change by, plus the nodes that a list runs through.
 *
 * A node ends wherever a request ended or two parted, so every list is a series of whole nodes. A node's number stands
 * for its last block for ever: a node that is cut keeps its number for the lower part. */
#ifndef FC_ANALYZE_TREE_H
#define FC_ANALYZE_TREE_H

#include "trace/trace.h"

#define FC_TREE_ROOT 0u
#define FC_TREE_NONE UINT32_MAX

struct fc_tree_node {
	uint64_t label; /* of the first block, in the trace's suffix_ids */
	uint32_t start; /* depth of the first block */
	uint32_t length;
	uint32_t parent;
	uint32_t child;         /* the first that was made; FC_TREE_NONE */
	uint32_t last_request;  /* that touched these blocks; FC_TRACE_NONE: none so far */
	uint32_t list_count;    /* requests whose lists hold these blocks */
	uint32_t session_count; /* sessions whose requests' lists hold them; set by who walks sessions */
	uint32_t session_mark;  /* free for who walks sessions */
	bool is_fork;           /* has two children or more */
	bool is_list_end;       /* of some request */
};

struct fc_tree {
	const struct fc_trace *trace;
	struct fc_tree_node *nodes;
	uint32_t node_count;
	uint64_t node_capacity;
	uint32_t *slots; /* hash table of nodes by parent and first id; FC_TREE_NONE: free */
	uint64_t slot_count;
	uint32_t *ends; /* by request: node that its list ends with */
};

/* What a request met before it changed the tree. */
struct fc_tree_match {
	uint32_t depth;     /* leading blocks that were there */
	uint32_t node;      /* that holds the last of them; the root for none */
	uint32_t fork;      /* depth of the deepest fork that it passed or stopped at */
	uint32_t continued; /* depth at which the deepest earlier list ended that it begins with; 0: none */
};

/* FC_ENOMEM. Borrows the trace. */
FC_MUST_USE int fc_tree_init(struct fc_tree *tree, const struct fc_trace *trace);
void fc_tree_deinit(struct fc_tree *tree);

/* Adds a request's list; those before it on its line must have been added. ends[request] is then its node. `match` may
 * be NULL when nobody asks (it costs a walk to the root). FC_ENOMEM, FC_ELIMIT (2^32 - 2 nodes). */
FC_MUST_USE int fc_tree_add(struct fc_tree *tree, uint32_t request, struct fc_tree_match *match);

/* Goes on from a node's last block with `count` ids at `label`; *end is where that ends. FC_ENOMEM, FC_ELIMIT. */
FC_MUST_USE int fc_tree_extend(struct fc_tree *tree, uint32_t node, uint64_t label, uint32_t count, uint32_t *end);

#endif

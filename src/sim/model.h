/* The reference model: every block that was ever saved, as a tree of keys, and what the store has said of it.
 *
 *     root --> a1 --> a2 --> a3            a node is a block on a path; its key says all that came before it, so
 *                      '---> b3 --> b4     two conversations that agree share nodes, and a branch is a second child
 *
 * Namespaces are trees of their own: the same tokens have the same key, and are another node.
 *
 * A node knows whether a reader may be given it (some save of it was acknowledged, or is under way), and whether it
 * must survive (the save that brought it was reported durable). A claim is one acknowledged save: this path, to this
 * depth, is there as long as nothing was reclaimed or damaged since. */
#ifndef FC_SIM_MODEL_H
#define FC_SIM_MODEL_H

#include "base/error.h"
#include "base/random.h"

#define FC_SIM_ROOT 0u

struct fc_sim_node {
	struct fc_key key;
	uint32_t parent;
	uint32_t space;            /* namespace */
	uint64_t tokens;           /* that it was made from */
	uint32_t depth;            /* blocks of the path that ends here */
	uint32_t open_saves;       /* under way, or interrupted by a crash: may be there */
	bool is_saved;             /* acknowledged once */
	bool is_durable;           /* must survive the process */
	uint64_t durable_reclaims; /* of the run when it became so */
};

struct fc_sim_claim {
	uint32_t node;
	uint64_t losses; /* of the run when it was acknowledged, or last seen whole */
	bool is_durable;
	uint64_t durable_reclaims; /* of the run when it became so */
};

#define FC_SIM_CLAIMS_MAX 256u

struct fc_sim_model {
	struct fc_sim_node *nodes; /* nodes[FC_SIM_ROOT] is no block */
	uint32_t node_count, node_room;
	uint32_t *table; /* of key.low, by open addressing: node number or 0 */
	uint32_t table_size;
	struct fc_sim_claim claims[FC_SIM_CLAIMS_MAX]; /* the latest */
	uint32_t claim_count, next_claim;
};

void fc_sim_model_init(struct fc_sim_model *model);
void fc_sim_model_deinit(struct fc_sim_model *model);

/* The block of a namespace behind `parent` whose tokens are `tokens`: the same node for the same tokens. */
uint32_t fc_sim_model_child(struct fc_sim_model *model, uint32_t space, uint32_t parent, uint64_t tokens);

/* The path that ends at `node`, with the same tokens in another namespace. */
uint32_t fc_sim_model_translate(struct fc_sim_model *model, uint32_t node, uint32_t space);

/* Node at `depth` on the path that ends at `node`. */
uint32_t fc_sim_model_ancestor(const struct fc_sim_model *model, uint32_t node, uint32_t depth);

/* Writes the keys of the path that ends at `node`; returns its depth. */
uint32_t fc_sim_model_keys(const struct fc_sim_model *model, uint32_t node, struct fc_key *keys);

void fc_sim_model_claim(struct fc_sim_model *model, uint32_t node, uint64_t losses, bool is_durable);

/* The claim on this path, if it is still kept, has become durable. */
void fc_sim_model_mark_durable(struct fc_sim_model *model, uint32_t node, uint64_t reclaims);

#endif

#include "sim/model.h"

#include <stdlib.h>
#include <string.h>

static void *grow(void *memory, uint64_t bytes)
{
	void *larger = realloc(memory, bytes);
	fc_check(larger != NULL);
	return larger;
}

void fc_sim_model_init(struct fc_sim_model *model)
{
	*model = (struct fc_sim_model){.node_room = 1024, .table_size = 4096, .node_count = 1};
	model->nodes = grow(NULL, model->node_room * sizeof(*model->nodes));
	model->table = grow(NULL, model->table_size * sizeof(*model->table));
	memset(model->table, 0, model->table_size * sizeof(*model->table));
	model->nodes[FC_SIM_ROOT] = (struct fc_sim_node){0};
}

void fc_sim_model_deinit(struct fc_sim_model *model)
{
	free(model->nodes);
	free(model->table);
	*model = (struct fc_sim_model){0};
}

static uint32_t *place_of(const struct fc_sim_model *model, uint32_t space, struct fc_key key)
{
	uint32_t place = (uint32_t)key.low & (model->table_size - 1);
	for (;; place = (place + 1) & (model->table_size - 1)) {
		uint32_t node = model->table[place];
		const struct fc_sim_node *at = &model->nodes[node];
		if (node == 0 || (at->key.low == key.low && at->key.high == key.high && at->space == space))
			return &model->table[place];
	}
}

static void grow_table(struct fc_sim_model *model)
{
	model->table_size *= 2;
	model->table = grow(model->table, model->table_size * sizeof(*model->table));
	memset(model->table, 0, model->table_size * sizeof(*model->table));
	for (uint32_t node = 1; node < model->node_count; node++)
		*place_of(model, model->nodes[node].space, model->nodes[node].key) = node;
}

/* Callers may bring keys of their own (flatcake.h), and poor ones: a sibling's key may differ in one half only, so that
 * comparing half of a key is not enough. */
static struct fc_key key_of(struct fc_key parent, uint64_t tokens)
{
	uint64_t state = (parent.low * 0x9e3779b97f4a7c15ull) ^ (parent.high * 0xc2b2ae3d27d4eb4full);
	state += (tokens / 4 + 1) * 0xff51afd7ed558ccdull;
	struct fc_key key;
	key.high = fc_random_split(&state);
	key.low = fc_random_split(&state);
	if (tokens % 4 == 1)
		key.high += 1;
	if (tokens % 4 == 2)
		key.low += 1;
	return key;
}

uint32_t fc_sim_model_child(struct fc_sim_model *model, uint32_t space, uint32_t parent, uint64_t tokens)
{
	struct fc_key key = key_of(model->nodes[parent].key, tokens);
	uint32_t *place = place_of(model, space, key);
	if (*place != 0)
		return *place;
	if (model->node_count == model->node_room) {
		model->node_room *= 2;
		model->nodes = grow(model->nodes, model->node_room * sizeof(*model->nodes));
	}
	uint32_t node = model->node_count++;
	model->nodes[node] = (struct fc_sim_node){
		.key = key,
		.parent = parent,
		.space = space,
		.tokens = tokens,
		.depth = model->nodes[parent].depth + 1,
	};
	*place = node;
	if (model->node_count * 2 > model->table_size)
		grow_table(model);
	return node;
}

uint32_t fc_sim_model_translate(struct fc_sim_model *model, uint32_t node, uint32_t space)
{
	if (node == FC_SIM_ROOT || model->nodes[node].space == space)
		return node;
	uint64_t tokens = model->nodes[node].tokens;
	uint32_t parent = fc_sim_model_translate(model, model->nodes[node].parent, space);
	return fc_sim_model_child(model, space, parent, tokens);
}

uint32_t fc_sim_model_ancestor(const struct fc_sim_model *model, uint32_t node, uint32_t depth)
{
	fc_check(depth <= model->nodes[node].depth);
	while (model->nodes[node].depth > depth)
		node = model->nodes[node].parent;
	return node;
}

uint32_t fc_sim_model_keys(const struct fc_sim_model *model, uint32_t node, struct fc_key *keys)
{
	uint32_t depth = model->nodes[node].depth;
	for (uint32_t at = node; at != FC_SIM_ROOT; at = model->nodes[at].parent)
		keys[model->nodes[at].depth - 1] = model->nodes[at].key;
	return depth;
}

static struct fc_sim_claim *claim_of(struct fc_sim_model *model, uint32_t node)
{
	for (uint32_t i = 0; i < model->claim_count; i++)
		if (model->claims[i].node == node)
			return &model->claims[i];
	return NULL;
}

void fc_sim_model_mark_durable(struct fc_sim_model *model, uint32_t node, uint64_t reclaims)
{
	struct fc_sim_claim *claim = claim_of(model, node);
	if (claim == NULL)
		return;
	claim->is_durable = true;
	claim->durable_reclaims = reclaims;
}

void fc_sim_model_claim(struct fc_sim_model *model, uint32_t node, uint64_t losses, bool is_durable)
{
	struct fc_sim_claim *claim = claim_of(model, node);
	if (claim == NULL) {
		claim = &model->claims[model->next_claim++ % FC_SIM_CLAIMS_MAX];
		if (model->claim_count < FC_SIM_CLAIMS_MAX)
			model->claim_count++;
	}
	*claim = (struct fc_sim_claim){.node = node, .losses = losses, .is_durable = is_durable};
}

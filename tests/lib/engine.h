/* The memory of an engine: paged KV in slots, as large as a test needs, with the bytes of slices that follow from their
 * keys (world.h). Blocks of one group never lie side by side: block b of a group has slot (b * 7 + group) mod
 * slot_count, and slot_count is made prime to 7.
 *
 *     struct engine engine;
 *     engine_init(&engine, &geometry, 20, 1);
 *     engine_fill(&engine, keys, 20);                  "prefill"
 *     engine_slots(&engine, 20, opts.slots);           into a load's or a save's options
 *     engine_wipe(&engine);                            somebody else needed the memory
 *     engine_check(&engine, keys, 20);                 everything that resuming behind block 20 needs is there
 *     engine_deinit(&engine);
 */
#ifndef FC_TESTS_LIB_ENGINE_H
#define FC_TESTS_LIB_ENGINE_H

#include "flatcake.h"

struct engine {
	struct fc_geometry geometry;
	struct fc_paged_layer *layers; /* [group * layer_count + layer] */
	uint64_t slot_count;
	uint64_t *slots[FC_GROUPS_MAX]; /* of block 0, 1, ... */
	uint64_t block_max[FC_GROUPS_MAX];
};

/* Room for `path_blocks` of every group. Slices lie in `piece_count` pieces, which divides every slice's size. */
void engine_init(struct engine *engine, const struct fc_geometry *geometry, uint64_t path_blocks, uint32_t piece_count);
void engine_deinit(struct engine *engine);

/* Slots of all blocks of [0, path_blocks) in every group. */
void engine_slots(const struct engine *engine, uint64_t path_blocks, struct fc_slots slots[FC_GROUPS_MAX]);

/* Fills in every block of [0, path_blocks). */
void engine_fill(struct engine *engine, const struct fc_key *keys, uint64_t path_blocks);

/* Overwrites everything. */
void engine_wipe(struct engine *engine);

/* Whether one layer of all that resuming at `path_blocks` needs is in place. */
bool engine_has_layer(const struct engine *engine, const struct fc_key *keys, uint64_t path_blocks, uint32_t layer);

/* Asserts it for every layer. */
void engine_check(const struct engine *engine, const struct fc_key *keys, uint64_t path_blocks);

#endif

/* What the simulated engines compute: the bytes of a slice are a function of its key, so whatever comes back can be
 * told from anything else; and the paged memory in which they hold it. */
#ifndef FC_SIM_CONTENT_H
#define FC_SIM_CONTENT_H

#include "base/error.h"
#include "base/random.h"

#define FC_SIM_PATH_BLOCKS_MAX 96u

/* One of several kinds, with slices of odd sizes: one layer, plain, and hybrids with windows and states. */
void fc_sim_geometry(struct fc_geometry *geometry, struct fc_random *random);

void fc_sim_slice(struct fc_key key, uint32_t group, uint32_t layer, uint8_t *bytes, uint64_t count);
bool fc_sim_slice_is(struct fc_key key, uint32_t group, uint32_t layer, const uint8_t *bytes, uint64_t count);

/* Paged KV for one request: FC_SIM_PATH_BLOCKS_MAX blocks of every group, scattered over the slots. */
struct fc_sim_kv {
	const struct fc_geometry *geometry;
	struct fc_key salt; /* exclusive-ored with a key before it becomes bytes: other engines, other bytes */
	struct fc_paged_layer layers[FC_GROUPS_MAX * 8];
	uint8_t *memory;
	uint64_t bytes;
	uint64_t slots[FC_GROUPS_MAX][FC_SIM_PATH_BLOCKS_MAX];
};

#define FC_SIM_LAYERS_MAX 8u

/* FC_ENOMEM. `geometry` is borrowed. */
FC_MUST_USE int fc_sim_kv_init(struct fc_sim_kv *kv, const struct fc_geometry *geometry, struct fc_random *random);
void fc_sim_kv_deinit(struct fc_sim_kv *kv);

/* Slots of blocks [first, first + count) of a group. */
struct fc_slots fc_sim_kv_slots(const struct fc_sim_kv *kv, uint32_t group, uint64_t first, uint64_t count);

/* Computes a group's blocks [first, first + count) of the path. */
void fc_sim_kv_fill(struct fc_sim_kv *kv, const struct fc_key *keys, uint32_t group, uint64_t first, uint64_t count);

/* Nobody's memory now: it is filled with a pattern, and must still hold it when it is given out again. */
void fc_sim_kv_wipe(struct fc_sim_kv *kv);
bool fc_sim_kv_is_wiped(const struct fc_sim_kv *kv);

/* Whether one layer of all that resuming behind `path_blocks` needs is in place; the first that is not. */
bool fc_sim_kv_has_layer(const struct fc_sim_kv *kv, const struct fc_key *keys, uint64_t path_blocks, uint32_t layer,
			 uint32_t *bad_group, uint64_t *bad_block);

#endif

/* A hash table from 64-bit ids to 32-bit numbers, for renumbering ids on load: open addressing, at most half full, and
 * cleared in time proportional to its capacity, so that one table serves session after session. */
#ifndef FC_TRACE_IDMAP_H
#define FC_TRACE_IDMAP_H

#include "base/error.h"

struct fc_idmap_slot {
	uint64_t id;
	uint32_t number;
	uint32_t is_used;
};

struct fc_idmap {
	struct fc_idmap_slot *slots;
	uint64_t slot_count; /* a power of two, or 0 */
	uint64_t used_count;
};

/* Finds `id`, or enters it with *number as it came in. Sets *number to what the table has and *is_new. 0 or FC_ENOMEM.
 */
FC_MUST_USE int fc_idmap_enter(struct fc_idmap *map, uint64_t id, uint32_t *number, bool *is_new);
void fc_idmap_clear(struct fc_idmap *map);
void fc_idmap_deinit(struct fc_idmap *map);

#endif

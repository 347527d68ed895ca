/* The live backend: the real store through its public API, real bytes in a real pool of slots, real time. */
#ifndef FC_REPLAY_LIVE_H
#define FC_REPLAY_LIVE_H

#include "replay/backend.h"
#include "replay/interrupt.h"
#include "replay/kv_pool.h"

#include "base/list.h"

struct fc_live {
	struct fc_backend backend;
	struct fc_store *store;
	struct fc_kv *kv;
	struct fc_kv_pool pool;
	const struct fc_geometry *geometry;
	struct fc_interrupt *interrupt;
	bool is_checking;
	uint64_t resume_slots[FC_GROUPS_MAX]; /* that a turn holds of groups which only resume points need */
	struct fc_link turns;                 /* that have begun */
	uint64_t kept_saves;                  /* visible, and not yet known to be durable */
	int durable_code;                     /* of the last that could not be made durable */
};

struct fc_live_opts {
	const char *address;               /* as for fc_store_open() */
	const struct fc_store_opts *store; /* its geometry stays borrowed */
	uint64_t turn_blocks_max;          /* of the largest turn, in blocks */
	uint32_t turn_count;               /* of that size that the pool should hold at once, memory permitting */
	uint64_t seed;
	bool is_checking; /* every delivered byte is compared */
	struct fc_interrupt *interrupt;
};

/* Errors of the store's, or FC_ELIMIT when this machine has not the memory for the largest turn. Nothing is to be
 * closed after a failure. */
FC_MUST_USE int fc_live_open(struct fc_live *live, const struct fc_live_opts *opts, struct fc_error *error);
/* Most that the modelled engine's KV may take of this machine's memory. */
uint64_t fc_live_pool_bytes_max(void);

/* Every turn must have ended. */
void fc_live_close(struct fc_live *live);

#endif

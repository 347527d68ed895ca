/* The store behind mooncake.c: objects in DRAM with leases, and in buckets on SSD (v0.3.12).
 *
 *   put         to DRAM; a pool that is full fails the put. The object is queued for SSD, and pinned in DRAM until it
 * is there (inc_refcnt) heartbeat   10 s after the last one's work: what the last one left over goes first, then what
 * was queued since, in the order of a hash and so without session locality, into buckets of 256 MiB or 500 objects;
 * what does not fill the last one is left over DRAM        above 90 %, every 10 ms, max(5 %, use - 85 %) of the objects
 * go, those whose leases ended first, but for those that are pinned SSD         above 90 %, whole buckets go, oldest
 * first, down to 80 % */
#ifndef FC_REPLAY_POLICY_MOONCAKE_STORE_H
#define FC_REPLAY_POLICY_MOONCAKE_STORE_H

#include "replay/policy.h"
#include "replay/policy/lru.h"

struct fc_mooncake_store_opts {
	uint64_t memory_bytes, ssd_bytes;
	uint64_t lease_ns, heartbeat_ns, eviction_ns;
	uint64_t bucket_bytes, bucket_objects;
	uint64_t queue_max; /* objects that wait for SSD; more are never written */
};

struct fc_mooncake_bucket {
	uint32_t *objects; /* NULL: evicted */
	uint32_t count;
};

#define FC_MOONCAKE_NO_BUCKET 0u

struct fc_mooncake_store {
	const struct fc_policy_env *env;
	struct fc_mooncake_store_opts opts;
	struct fc_lru memory;                     /* by the end of the lease */
	uint64_t memory_max, ssd_max, ssd_blocks; /* blocks; an object is one */
	uint64_t *lease_ns;                       /* by number */
	uint32_t *bucket_of;                      /* by number */
	struct fc_mooncake_bucket *buckets;       /* by id, from 1 */
	uint32_t bucket_count, bucket_room, bucket_first;
	uint32_t *queue;                       /* all of it in DRAM, and not on SSD */
	uint64_t queue_count, left_over_count; /* the latter from the last heartbeat, at the queue's head */
	bool *is_queued;                       /* by number */
	struct fc_world_event heartbeat, eviction;
	struct fc_policy_stats *stats;
};

/* FC_ENOMEM. fc_mooncake_store_deinit() also after a failure. */
FC_MUST_USE int fc_mooncake_store_init(struct fc_mooncake_store *store, const struct fc_policy_env *env,
				       const struct fc_mooncake_store_opts *opts, struct fc_policy_stats *stats);
void fc_mooncake_store_deinit(struct fc_mooncake_store *store);

static inline bool fc_mooncake_in_memory(const struct fc_mooncake_store *store, uint32_t number)
{
	return fc_lru_has(&store->memory, number);
}
static inline bool fc_mooncake_on_ssd(const struct fc_mooncake_store *store, uint32_t number)
{
	return store->bucket_of[number] != FC_MOONCAKE_NO_BUCKET;
}

/* Where objects lie: buckets in the order in which they were written, in the room of those that went first. Returns the
 * length of all that room. */
uint64_t fc_mooncake_layout(const struct fc_mooncake_store *store,
			    void (*each)(void *context, const struct fc_policy_piece *piece), void *context);

void fc_mooncake_put(struct fc_mooncake_store *store, uint32_t number);
/* A get, or a look-up, of an object in DRAM. */
void fc_mooncake_renew(struct fc_mooncake_store *store, uint32_t number);

#endif

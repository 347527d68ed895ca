/* What the tiered caches have in common: DRAM in front, least recently used first out, perhaps a disk behind it.
 *
 *   look-up   objects of the prefix, from the front, as long as each is in DRAM or on disk
 *   load      those on disk are brought to DRAM, by `readers` threads a worker, first come first served; the request
 * may start when all are there. Once it has started, everything is copied from DRAM to the device, layer by layer
 *             beside the prefill (is_overlapping) or before it
 *   save      new objects go to DRAM, and to disk (write-through); DRAM and disk drop what was used longest ago, of a
 * path the deepest objects first
 *
 * Where an engine has a pool for each rank, all pools are counted as one: as if the router always chose the rank that
 * has a session. Objects that a request is about to copy are not dropped from under it. Both are in these caches'
 * favour. */
#ifndef FC_REPLAY_POLICY_TIERED_H
#define FC_REPLAY_POLICY_TIERED_H

#include "replay/policy.h"

struct fc_tiered_opts {
	uint64_t object_tokens; /* tokens of an object; at least a block of the trace */
	bool is_endless;        /* DRAM without limit */
	bool has_disk;
	bool is_overlapping;
	uint64_t readers;      /* threads that read from disk, each worker */
	uint64_t piece_bytes;  /* of an object that are read at a time */
	bool is_through_files; /* each object is a file, opened and read through the page cache; else raw and direct */
	uint64_t disk_high_percent; /* of the budget that the disk may hold */
};

/* Opens a policy of this kind whose settings are a struct fc_tiered_opts. */
FC_MUST_USE int fc_tiered_open(struct fc_policy **policy, const struct fc_policy_env *env, struct fc_error *error);

#endif

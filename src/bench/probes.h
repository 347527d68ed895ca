/* What memory and core allow a look-up: the least that finding a key in a table which does not hold the keys can cost.
 *
 * A look-up is two accesses to random places that depend on each other: the slot of a table of 12 bytes a key, 0.8
 * full, and the key of 16 bytes that the slot names. Here they are made by a plain loop without hash, walk or pages, as
 * far ahead of their use as the index does it (16 keys for each of the two), over as many bytes. What it reaches is a
 * property of the machine: the latency of its memory, and how many misses a core has under way. The index is held
 * against it. */
#ifndef FC_BENCH_PROBES_H
#define FC_BENCH_PROBES_H

#include "base/alloc.h"
#include "base/error.h"

struct fc_bench_probe_slot {
	uint32_t tag, segment, entry;
};

struct fc_bench_probes {
	struct fc_alloc alloc;
	struct fc_bench_probe_slot *slots;
	struct fc_key *keys;
	uint32_t *homes; /* the slot of each key, in the order in which they are asked for */
	uint64_t key_count, slot_count;
};

/* To be deinitialised also after a failure. */
int fc_bench_probes_init(struct fc_bench_probes *probes, uint64_t key_count, uint64_t seed,
			 struct fc_error *error) FC_MUST_USE;
void fc_bench_probes_deinit(struct fc_bench_probes *probes);

/* Asks for `count` keys from the `first` on, which is not above the number of keys, and begins anew behind the last.
 * Returns how many were found: all. */
uint64_t fc_bench_probes_run(const struct fc_bench_probes *probes, uint64_t first, uint64_t count);

#endif

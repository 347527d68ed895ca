/* Checksums of slices and of structures on a medium (XXH3).
 *
 * A slice's checksum is 32 bits: XXH3-64 of its bytes, mixed with a seed that says which slice it is meant to be
 * (key, group, layer), folded. So a slice that is right in itself but lies in the wrong place fails too. */
#ifndef FC_FORMAT_CHECKSUM_H
#define FC_FORMAT_CHECKSUM_H

#include "flatcake.h"

static inline uint64_t fc_slice_seed(struct fc_key key, uint32_t group, uint32_t layer)
{
	uint64_t mixed = (key.low ^ (key.high * 0x9e3779b97f4a7c15ull)) +
			 ((uint64_t)group << 32 | layer) * 0xff51afd7ed558ccdull;
	mixed ^= mixed >> 32;
	return mixed * 0xc4ceb9fe1a85ec53ull;
}

static inline uint32_t fc_slice_fold(uint64_t hash, uint64_t seed)
{
	uint64_t mixed = (hash ^ seed) * 0x9fb21c651e98df25ull;
	return (uint32_t)(mixed >> 32);
}

/* Of contiguous bytes. */
uint32_t fc_slice_checksum(const void *bytes, uint64_t byte_count, uint64_t seed);

/* 64 bits, for superblocks, chunk table entries and headers. */
uint64_t fc_checksum(const void *bytes, uint64_t byte_count, uint64_t seed);

#endif

/* What stands in a slice: bytes that follow from its block's key, its group and its layer, and from nothing else.
 *
 * Every slice that a replay gets back is compared with what it must be, so one that belongs to another block, group or
 * layer, is old, shifted or torn is caught, without keeping a copy of anything. A slice is a run of 64-bit words
 *
 *     word i = seed + i * step        seed, step (odd): mixed from key, group and layer
 *
 * cut off at the slice's size. Words of a slice all differ, so a shift inside a slice shows; and nothing is looked up
 * or multiplied on the way, so that filling and checking keep up with memory. */
#ifndef FC_REPLAY_CONTENT_H
#define FC_REPLAY_CONTENT_H

#include "base/error.h"

#define FC_CONTENT_RIGHT UINT64_MAX

struct fc_content {
	uint64_t seed;
	uint64_t step;
};

struct fc_content fc_content_of(struct fc_key key, uint32_t group, uint32_t layer);

void fc_content_fill(struct fc_content content, uint8_t *slice, uint64_t bytes);

/* Offset of the first byte that is not as it must be, or FC_CONTENT_RIGHT. */
uint64_t fc_content_check(struct fc_content content, const uint8_t *slice, uint64_t bytes);

#endif

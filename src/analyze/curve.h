/* How many block references an LRU cache hits, as a function of its size in blocks; exact for every size. Filled with
 * runs of consecutive stack distances (stack.h), which cost the same whatever their length. */
#ifndef FC_ANALYZE_CURVE_H
#define FC_ANALYZE_CURVE_H

#include "base/error.h"

struct fc_curve {
	uint64_t *hits; /* by size, 0 to size_max; while it is filled: differences of differences of that */
	uint64_t size_max;
	unsigned __int128 distance_sum;
};

/* For distances of 1 to `size_max`. Pages of distances that do not occur are never touched. FC_ENOMEM. */
FC_MUST_USE int fc_curve_init(struct fc_curve *curve, uint64_t size_max);
void fc_curve_deinit(struct fc_curve *curve);

/* Adds the distances above + 1 to above + count. */
void fc_curve_add(struct fc_curve *curve, uint64_t above, uint64_t count);

/* Ends the filling; no distance is above `size_max`, which replaces the first. */
void fc_curve_finish(struct fc_curve *curve, uint64_t size_max);

/* Hits of a cache of so many blocks. */
static inline uint64_t fc_curve_hits(const struct fc_curve *curve, uint64_t blocks)
{
	return curve->hits[blocks < curve->size_max ? blocks : curve->size_max];
}

/* The smallest cache with so many hits; there must be one. As the hits are by distance, fc_curve_size() of a share of
 * all hits is also a percentile of the distances. */
uint64_t fc_curve_size(const struct fc_curve *curve, uint64_t hits);

#endif

/* A histogram of durations, or of any 64-bit numbers: fixed size, exact count, sum, least and greatest, and percentiles
 * to within 0.8 %.
 *
 * Buckets are log-linear. Values below 128 have a bucket each; above, every power of two is cut into 64 buckets of
 * equal width, so a bucket is at most 1/64 as wide as its values are large, and its middle at most 1/128 away from any
 * of them.
 *
 *     0 1 2 ... 127 | 128 130 132 ... 254 | 256 260 ... 508 | 512 ...
 *       width 1           width 2               width 4
 *
 * A zeroed histogram is an empty one. Pure; for one thread at a time. */
#ifndef FC_BASE_HISTOGRAM_H
#define FC_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define FC_HISTOGRAM_BUCKETS ((64 - 7) * 64 + 128)

struct fc_histogram {
	uint64_t count;
	unsigned __int128 sum; /* cannot overflow: below 2^64 values below 2^64 */
	uint64_t min;          /* of no meaning while count is 0 */
	uint64_t max;
	uint64_t buckets[FC_HISTOGRAM_BUCKETS];
};

void fc_histogram_add(struct fc_histogram *histogram, uint64_t value);

/* Adds the same value `count` times. */
void fc_histogram_add_many(struct fc_histogram *histogram, uint64_t value, uint64_t count);

/* Adds all that is in `from`. */
void fc_histogram_merge(struct fc_histogram *histogram, const struct fc_histogram *from);

/* The smallest value, to within 0.8 %, such that at least `percent` (0 to 100) of all values are no larger; 0 asks for
 * the least, 100 for the greatest, both exact. False when the histogram is empty: there is no such value then. */
bool fc_histogram_percentile(const struct fc_histogram *histogram, double percent, uint64_t *value);

/* False when the histogram is empty. */
bool fc_histogram_mean(const struct fc_histogram *histogram, double *mean);

#endif

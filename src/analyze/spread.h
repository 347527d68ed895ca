/* Exact spreads: mean, percentiles and maximum of whole numbers. */
#ifndef FC_ANALYZE_SPREAD_H
#define FC_ANALYZE_SPREAD_H

#include "analyze/analyze.h"

/* Of `values`, which are sorted by it. */
void fc_spread_of_values(struct fc_spread *spread, uint64_t *values, uint64_t count);

/* Of the numbers 0 to count - 1, where number i occurs weights[i] times. */
void fc_spread_of_weights(struct fc_spread *spread, const uint64_t *weights, uint64_t count);

/* Of the distances in a finished curve. */
void fc_spread_of_curve(struct fc_spread *spread, const struct fc_curve *curve);

/* Of a histogram, whose percentiles are to within 0.8 %. */
void fc_spread_of_histogram(struct fc_spread *spread, const struct fc_histogram *histogram);

/* Nearest rank: the how-many-th of `count` numbers is the percentile; 1 to count. */
uint64_t fc_spread_rank(uint64_t count, unsigned percent);

#endif

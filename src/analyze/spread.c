/* See spread.h. */
#include "analyze/spread.h"

#include "base/check.h"

#include <stdlib.h>

uint64_t fc_spread_rank(uint64_t count, unsigned percent)
{
	unsigned __int128 rank = ((unsigned __int128)count * percent + 99) / 100;
	return rank == 0 ? 1 : (uint64_t)rank;
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return first < second ? -1 : first > second;
}

static double mean_of(unsigned __int128 sum, uint64_t count)
{
	return (double)sum / (double)count;
}

/* From percentiles to what is asked for most. */
static void name_percentiles(struct fc_spread *spread)
{
	spread->p50 = spread->percentiles[50];
	spread->p90 = spread->percentiles[90];
	spread->p99 = spread->percentiles[99];
	spread->max = spread->percentiles[100];
}

void fc_spread_of_values(struct fc_spread *spread, uint64_t *values, uint64_t count)
{
	*spread = (struct fc_spread){.count = count};
	if (count == 0)
		return;
	unsigned __int128 sum = 0;
	qsort(values, count, sizeof(*values), compare);
	for (uint64_t i = 0; i < count; i++)
		sum += values[i];
	spread->mean = mean_of(sum, count);
	for (unsigned percent = 0; percent <= 100; percent++)
		spread->percentiles[percent] = values[fc_spread_rank(count, percent) - 1];
	name_percentiles(spread);
}

void fc_spread_of_weights(struct fc_spread *spread, const uint64_t *weights, uint64_t count)
{
	unsigned __int128 sum = 0;
	*spread = (struct fc_spread){0};
	for (uint64_t i = 0; i < count; i++) {
		spread->count += weights[i];
		sum += (unsigned __int128)weights[i] * i;
	}
	if (spread->count == 0)
		return;
	spread->mean = mean_of(sum, spread->count);
	uint64_t number = 0, passed = weights[0];
	for (unsigned percent = 0; percent <= 100; percent++) {
		while (passed < fc_spread_rank(spread->count, percent))
			passed += weights[++number];
		spread->percentiles[percent] = number;
	}
	name_percentiles(spread);
}

void fc_spread_of_curve(struct fc_spread *spread, const struct fc_curve *curve)
{
	*spread = (struct fc_spread){.count = fc_curve_hits(curve, curve->size_max)};
	if (spread->count == 0)
		return;
	spread->mean = mean_of(curve->distance_sum, spread->count);
	for (unsigned percent = 0; percent <= 100; percent++)
		spread->percentiles[percent] = fc_curve_size(curve, fc_spread_rank(spread->count, percent));
	name_percentiles(spread);
}

void fc_spread_of_histogram(struct fc_spread *spread, const struct fc_histogram *histogram)
{
	*spread = (struct fc_spread){.count = histogram->count};
	if (!fc_histogram_mean(histogram, &spread->mean))
		return;
	for (unsigned percent = 0; percent <= 100; percent++)
		fc_check(fc_histogram_percentile(histogram, percent, &spread->percentiles[percent]));
	name_percentiles(spread);
}

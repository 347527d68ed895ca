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
	spread->p50 = values[fc_spread_rank(count, 50) - 1];
	spread->p90 = values[fc_spread_rank(count, 90) - 1];
	spread->p99 = values[fc_spread_rank(count, 99) - 1];
	spread->max = values[count - 1];
}

/* The first number by which `rank` of all have come. */
static uint64_t ranked(const uint64_t *weights, uint64_t rank)
{
	uint64_t number = 0, passed = weights[0];
	while (passed < rank)
		passed += weights[++number];
	return number;
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
	spread->p50 = ranked(weights, fc_spread_rank(spread->count, 50));
	spread->p90 = ranked(weights, fc_spread_rank(spread->count, 90));
	spread->p99 = ranked(weights, fc_spread_rank(spread->count, 99));
	spread->max = ranked(weights, spread->count);
}

void fc_spread_of_curve(struct fc_spread *spread, const struct fc_curve *curve)
{
	*spread = (struct fc_spread){.count = fc_curve_hits(curve, curve->size_max)};
	if (spread->count == 0)
		return;
	spread->mean = mean_of(curve->distance_sum, spread->count);
	spread->p50 = fc_curve_size(curve, fc_spread_rank(spread->count, 50));
	spread->p90 = fc_curve_size(curve, fc_spread_rank(spread->count, 90));
	spread->p99 = fc_curve_size(curve, fc_spread_rank(spread->count, 99));
	spread->max = fc_curve_size(curve, spread->count);
}

static uint64_t percentile(const struct fc_histogram *histogram, double percent)
{
	uint64_t value = 0;
	fc_check(fc_histogram_percentile(histogram, percent, &value));
	return value;
}

void fc_spread_of_histogram(struct fc_spread *spread, const struct fc_histogram *histogram)
{
	*spread = (struct fc_spread){.count = histogram->count};
	if (!fc_histogram_mean(histogram, &spread->mean))
		return;
	spread->p50 = percentile(histogram, 50);
	spread->p90 = percentile(histogram, 90);
	spread->p99 = percentile(histogram, 99);
	spread->max = histogram->max;
}

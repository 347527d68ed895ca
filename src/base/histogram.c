/* See histogram.h for the buckets. */
#include "base/histogram.h"

#include "base/check.h"

#define STEP_BITS 6 /* 64 buckets to a power of two */

/* `shift` is how many low bits of the value the bucket ignores. */
static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift = value < 2u << STEP_BITS ? 0 : (uint32_t)(63 - __builtin_clzll(value)) - STEP_BITS;
	return (shift << STEP_BITS) + (uint32_t)(value >> shift);
}

static uint64_t bucket_middle(uint32_t bucket)
{
	uint32_t shift = bucket < 2u << STEP_BITS ? 0 : (bucket >> STEP_BITS) - 1;
	uint64_t first = (uint64_t)(bucket - (shift << STEP_BITS)) << shift;
	return first + ((1ull << shift) - 1) / 2;
}

static void widen(struct fc_histogram *histogram, uint64_t min, uint64_t max)
{
	bool is_empty = histogram->count == 0;
	histogram->min = is_empty ? min : fc_min_u64(histogram->min, min);
	histogram->max = is_empty ? max : fc_max_u64(histogram->max, max);
}

void fc_histogram_add_many(struct fc_histogram *histogram, uint64_t value, uint64_t count)
{
	if (count == 0)
		return;
	widen(histogram, value, value);
	histogram->count += count;
	histogram->sum += (unsigned __int128)value * count;
	histogram->buckets[bucket_of(value)] += count;
}

void fc_histogram_add(struct fc_histogram *histogram, uint64_t value)
{
	fc_histogram_add_many(histogram, value, 1);
}

void fc_histogram_merge(struct fc_histogram *histogram, const struct fc_histogram *from)
{
	if (from->count == 0)
		return;
	widen(histogram, from->min, from->max);
	histogram->count += from->count;
	histogram->sum += from->sum;
	for (uint32_t bucket = 0; bucket < FC_HISTOGRAM_BUCKETS; bucket++)
		histogram->buckets[bucket] += from->buckets[bucket];
}

/* How many values the percentile covers, rounded up: 1 to count. */
static uint64_t rank_of(uint64_t count, double percent)
{
	double exact = percent / 100 * (double)count;
	exact -= exact * 1e-12; /* 99.9 % of 10,000 is 9,990, whatever binary fractions make of it */
	uint64_t rank = (uint64_t)exact;
	if ((double)rank < exact)
		rank++;
	return fc_min_u64(fc_max_u64(rank, 1), count);
}

bool fc_histogram_percentile(const struct fc_histogram *histogram, double percent, uint64_t *value)
{
	fc_check(percent >= 0 && percent <= 100);
	if (histogram->count == 0)
		return false;
	uint64_t rank = rank_of(histogram->count, percent);
	uint64_t passed = 0;
	uint32_t bucket = 0;
	while (passed + histogram->buckets[bucket] < rank)
		passed += histogram->buckets[bucket++];
	if (rank == 1)
		*value = histogram->min;
	else if (rank == histogram->count)
		*value = histogram->max;
	else
		*value = fc_min_u64(fc_max_u64(bucket_middle(bucket), histogram->min), histogram->max);
	return true;
}

bool fc_histogram_mean(const struct fc_histogram *histogram, double *mean)
{
	if (histogram->count == 0)
		return false;
	double sum = (double)(uint64_t)(histogram->sum >> 64) * 0x1p64 + (double)(uint64_t)histogram->sum;
	*mean = sum / (double)histogram->count;
	return true;
}

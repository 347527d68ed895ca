/* Are count, sum and ends exact, and percentiles within the promised error, for small numbers and for the largest? */
#include "base/histogram.h"

#include "base/check.h"
#include "base/dies.h"
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t percentile(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	assert_true(fc_histogram_percentile(histogram, percent, &value));
	return value;
}

static void an_empty_histogram_has_no_percentiles(void **state)
{
	(void)state;
	struct fc_histogram histogram = {0};
	uint64_t value;
	double mean;
	assert_false(fc_histogram_percentile(&histogram, 50, &value));
	assert_false(fc_histogram_mean(&histogram, &mean));
}

static void small_numbers_are_exact(void **state)
{
	(void)state;
	struct fc_histogram histogram = {0};
	double mean;
	for (uint64_t value = 100; value >= 1; value--)
		fc_histogram_add(&histogram, value);
	assert_int_equal(histogram.count, 100);
	assert_true(histogram.sum == 5050);
	assert_int_equal(histogram.min, 1);
	assert_int_equal(histogram.max, 100);
	assert_true(fc_histogram_mean(&histogram, &mean) && mean == 50.5);
	assert_int_equal(percentile(&histogram, 0), 1);
	assert_int_equal(percentile(&histogram, 1), 1);
	assert_int_equal(percentile(&histogram, 1.5), 2);
	assert_int_equal(percentile(&histogram, 50), 50);
	assert_int_equal(percentile(&histogram, 99), 99);
	assert_int_equal(percentile(&histogram, 100), 100);
}

static void a_single_value_is_every_percentile(void **state)
{
	(void)state;
	static const uint64_t values[] = {0, 127, 128, 1000003, UINT64_MAX - 1, UINT64_MAX};
	for (size_t i = 0; i < fc_array_len(values); i++) {
		struct fc_histogram histogram = {0};
		fc_histogram_add(&histogram, values[i]);
		for (int percent = 0; percent <= 100; percent += 25)
			assert_int_equal(percentile(&histogram, percent), values[i]);
	}
}

static void sums_beyond_64_bits_are_exact(void **state)
{
	(void)state;
	struct fc_histogram histogram = {0};
	double mean;
	fc_histogram_add(&histogram, UINT64_MAX);
	fc_histogram_add(&histogram, UINT64_MAX);
	assert_true(histogram.sum == 2 * (unsigned __int128)UINT64_MAX);
	assert_true(fc_histogram_mean(&histogram, &mean) && mean == 0x1p64);
}

/* The middle of three values shows its bucket's number, since the ends are exact. */
static void every_size_is_within_the_promised_error(void **state)
{
	(void)state;
	for (uint32_t bit = 7; bit < 64; bit++) {
		for (uint64_t step = 0; step < 256; step++) {
			uint64_t value = (1ull << bit) + (bit >= 8 ? step << (bit - 8) : step >> 1);
			struct fc_histogram histogram = {0};
			fc_histogram_add(&histogram, 0);
			fc_histogram_add(&histogram, value);
			fc_histogram_add(&histogram, UINT64_MAX);
			double got = (double)percentile(&histogram, 50);
			assert_true(fabs(got - (double)value) <= (double)value / 128);
		}
	}
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void percentiles_agree_with_a_sorted_list(void **state)
{
	(void)state;
	enum { value_count = 10000 };
	static uint64_t values[value_count];
	static const double percents[] = {0.1, 10, 25, 50, 90, 99, 99.9, 99.99};
	struct fc_histogram histogram = {0};
	struct fc_random random;
	fc_random_init(&random, 5);
	for (size_t i = 0; i < value_count; i++) {
		uint64_t shift =
			fc_random_below(&random, 50); /* a statement of its own: the order decides the numbers */
		values[i] = fc_random_u64(&random) >> shift;
		fc_histogram_add(&histogram, values[i]);
	}
	qsort(values, value_count, sizeof(values[0]), compare_numbers);
	for (size_t i = 0; i < fc_array_len(percents); i++) {
		double wanted = (double)values[(size_t)ceil(percents[i] / 100 * value_count - 1e-9) - 1];
		assert_true(fabs((double)percentile(&histogram, percents[i]) - wanted) <= wanted / 100);
	}
}

static void merging_is_adding_all_values(void **state)
{
	(void)state;
	struct fc_histogram both = {0}, left = {0}, right = {0}, empty = {0};
	for (uint64_t value = 10; value < 100000; value = value * 3 / 2) {
		fc_histogram_add(&both, value);
		fc_histogram_add(value % 2 == 0 ? &left : &right, value);
	}
	fc_histogram_merge(&left, &right);
	fc_histogram_merge(&left, &empty);
	assert_memory_equal(&left, &both, sizeof(both));
	fc_histogram_merge(&empty, &both);
	assert_memory_equal(&empty, &both, sizeof(both));
}

static void ask_for_101_percent(void *context)
{
	uint64_t value;
	fc_histogram_percentile(context, 101, &value);
}

static void impossible_percentiles_are_stopped(void **state)
{
	(void)state;
	struct fc_histogram histogram = {0};
	assert_true(dies(ask_for_101_percent, &histogram));
}

static void a_value_that_never_occurred_changes_nothing(void **state)
{
	(void)state;
	struct fc_histogram histogram = {0};
	uint64_t value;
	fc_histogram_add_many(&histogram, 7, 0);
	assert_int_equal(histogram.count, 0);
	assert_false(fc_histogram_percentile(&histogram, 50, &value));
	fc_histogram_add_many(&histogram, 9, 3);
	fc_histogram_add_many(&histogram, 1, 0);
	assert_int_equal(histogram.count, 3);
	assert_int_equal(histogram.min, 9);
	assert_int_equal(histogram.max, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_that_never_occurred_changes_nothing),
		cmocka_unit_test(an_empty_histogram_has_no_percentiles),
		cmocka_unit_test(small_numbers_are_exact),
		cmocka_unit_test(a_single_value_is_every_percentile),
		cmocka_unit_test(sums_beyond_64_bits_are_exact),
		cmocka_unit_test(every_size_is_within_the_promised_error),
		cmocka_unit_test(percentiles_agree_with_a_sorted_list),
		cmocka_unit_test(merging_is_adding_all_values),
		cmocka_unit_test(impossible_percentiles_are_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

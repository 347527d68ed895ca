/* The generators against the values of their authors, and the derived draws against their bounds. */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void splitmix_gives_its_published_sequence(void **state)
{
	(void)state;
	uint64_t split = 0;
	assert_int_equal(fc_random_split(&split), 0xe220a8397b1dcdafull);
	assert_int_equal(fc_random_split(&split), 0x6e789e6aa1b965f4ull);
	assert_int_equal(fc_random_split(&split), 0x06c45d188009454full);
}

static void xoshiro_gives_its_published_sequence(void **state)
{
	(void)state;
	struct fc_random random = {{1, 2, 3, 4}};
	static const uint64_t wanted[] = {41943041, 58720359, 3588806011781223, 3591011842654386,
					  9228616714210784205ull};
	for (size_t i = 0; i < fc_array_len(wanted); i++)
		assert_int_equal(fc_random_u64(&random), wanted[i]);
}

static void bounded_draws_reach_every_value_and_none_else(void **state)
{
	(void)state;
	struct fc_random random;
	unsigned counts[5] = {0};
	fc_random_init(&random, 1);
	for (int i = 0; i < 5000; i++) {
		uint64_t value = fc_random_between(&random, 7, 11);
		assert_in_range(value, 7, 11);
		counts[value - 7]++;
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(counts[i], 850, 1150);
	assert_int_equal(fc_random_below(&random, 1), 0);
}

static void the_unit_draw_stays_below_one(void **state)
{
	(void)state;
	struct fc_random random;
	double sum = 0;
	fc_random_init(&random, 2);
	for (int i = 0; i < 10000; i++) {
		double value = fc_random_unit(&random);
		assert_true(value >= 0 && value < 1);
		sum += value;
	}
	assert_true(sum > 4850 && sum < 5150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splitmix_gives_its_published_sequence),
		cmocka_unit_test(xoshiro_gives_its_published_sequence),
		cmocka_unit_test(bounded_draws_reach_every_value_and_none_else),
		cmocka_unit_test(the_unit_draw_stays_below_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Checksum values against constants: of the empty input as published with XXH3, of "flatcake" from libxxhash 0.8.1.
 * They are on media, so they must never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/checksum.h"

static void unseeded_checksum_is_what_xxhsum_prints(void **state)
{
	(void)state;
	assert_int_equal(fc_checksum("", 0, 0), 0x2d06800538d394c2ull);
	assert_int_equal(fc_checksum("flatcake", 8, 0), 0x455844843419df10ull);
}

static void slice_checksum_folds_hash_and_seed(void **state)
{
	(void)state;
	/* (0x2d06800538d394c2 ^ 5) * 0x9fb21c651e98df25 mod 2^64, its upper half */
	assert_int_equal(fc_slice_checksum("", 0, 5), 0x66550cd4);
}

static void right_bytes_in_the_wrong_place_have_another_checksum(void **state)
{
	struct fc_key key = {1, 2};
	struct fc_key other_key = {2, 1};
	uint32_t right = fc_slice_checksum("bytes", 5, fc_slice_seed(key, 0, 3));

	(void)state;
	assert_int_not_equal(right, fc_slice_checksum("bytes", 5, fc_slice_seed(key, 0, 4)));
	assert_int_not_equal(right, fc_slice_checksum("bytes", 5, fc_slice_seed(key, 1, 3)));
	assert_int_not_equal(right, fc_slice_checksum("bytes", 5, fc_slice_seed(other_key, 0, 3)));
	assert_int_not_equal(right, fc_slice_checksum("bytez", 5, fc_slice_seed(key, 0, 3)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unseeded_checksum_is_what_xxhsum_prints),
		cmocka_unit_test(slice_checksum_folds_hash_and_seed),
		cmocka_unit_test(right_bytes_in_the_wrong_place_have_another_checksum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

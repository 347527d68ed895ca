/* The bytes of slices: that whatever is not the slice that was asked for is told from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/content.h"

#include <string.h>

enum { BYTES = 1000 };

static const struct fc_key key = {0x0123456789abcdef, 0xfedcba9876543210};

static void what_was_filled_is_right_at_every_size_and_place(void **state)
{
	(void)state;
	uint8_t memory[BYTES + 16];
	struct fc_content content = fc_content_of(key, 1, 2);
	for (uint64_t bytes = 0; bytes < BYTES; bytes++) {
		uint8_t *slice = memory + bytes % 8;
		memset(memory, 0x5a, sizeof(memory));
		fc_content_fill(content, slice, bytes);
		assert_int_equal(fc_content_check(content, slice, bytes), FC_CONTENT_RIGHT);
		assert_int_equal(slice[bytes], 0x5a); /* nothing behind it was touched */
	}
}

static void the_first_words_follow_from_seed_and_step(void **state)
{
	(void)state;
	uint8_t slice[17];
	fc_content_fill((struct fc_content){.seed = 0x0807060504030201, .step = 0x0101010101010101}, slice, 17);
	static const uint8_t wanted[17] = {1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8, 9, 3};
	assert_memory_equal(slice, wanted, sizeof(wanted));
}

static void one_wrong_bit_is_found_wherever_it_is(void **state)
{
	(void)state;
	uint8_t slice[BYTES];
	struct fc_content content = fc_content_of(key, 0, 0);
	for (uint64_t bytes = 1; bytes < BYTES; bytes += 37) {
		for (uint64_t at = 0; at < bytes; at++) {
			fc_content_fill(content, slice, bytes);
			slice[at] ^= 0x10;
			assert_int_equal(fc_content_check(content, slice, bytes), at);
		}
	}
}

static void assert_other(struct fc_key other_key, uint32_t group, uint32_t layer)
{
	uint8_t slice[BYTES];
	fc_content_fill(fc_content_of(other_key, group, layer), slice, BYTES);
	for (uint64_t bytes = 8; bytes <= BYTES; bytes += 124)
		assert_int_not_equal(fc_content_check(fc_content_of(key, 3, 7), slice, bytes), FC_CONTENT_RIGHT);
}

static void a_slice_of_another_block_group_or_layer_is_wrong(void **state)
{
	(void)state;
	assert_other((struct fc_key){key.high + 1, key.low}, 3, 7);
	assert_other((struct fc_key){key.high, key.low + 1}, 3, 7);
	assert_other((struct fc_key){key.low, key.high}, 3, 7);
	assert_other(key, 2, 7);
	assert_other(key, 3, 8);
	assert_other(key, 7, 3);
}

static void a_shifted_slice_is_wrong(void **state)
{
	(void)state;
	uint8_t slice[BYTES + 64];
	struct fc_content content = fc_content_of(key, 0, 0);
	fc_content_fill(content, slice, sizeof(slice));
	for (uint64_t shift = 1; shift <= 64; shift++)
		assert_int_not_equal(fc_content_check(content, slice + shift, BYTES), FC_CONTENT_RIGHT);
}

static void a_torn_slice_is_wrong_where_the_other_one_begins(void **state)
{
	(void)state;
	uint8_t slice[BYTES];
	struct fc_content content = fc_content_of(key, 0, 0);
	fc_content_fill(content, slice, BYTES);
	memset(slice + 512, 0, BYTES - 512);
	uint64_t wrong_at = fc_content_check(content, slice, BYTES);
	assert_in_range(wrong_at, 512, 520);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_filled_is_right_at_every_size_and_place),
		cmocka_unit_test(the_first_words_follow_from_seed_and_step),
		cmocka_unit_test(one_wrong_bit_is_found_wherever_it_is),
		cmocka_unit_test(a_slice_of_another_block_group_or_layer_is_wrong),
		cmocka_unit_test(a_shifted_slice_is_wrong),
		cmocka_unit_test(a_torn_slice_is_wrong_where_the_other_one_begins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

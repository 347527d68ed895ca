/* What the pure folders are promised about memory, and that the clock runs forwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "clock/clock.h"
#include "host/alloc.h"
#include "host/pages.h"

static const size_t sizes[] = {
	0, 1, 63, 64, 65, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20,
};

static void memory_is_zeroed_and_aligned_at_every_size(void **state)
{
	struct fc_alloc alloc = fc_alloc_system();

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* Twice: the second piece may be the first one's memory, which is dirty now. */
		for (int round = 0; round < 2; round++) {
			uint8_t *memory = fc_alloc_zeroed(&alloc, sizes[i]);
			assert_non_null(memory);
			assert_int_equal((uintptr_t)memory % 64, 0);
			for (size_t at = 0; at < sizes[i]; at++)
				if (memory[at] != 0)
					fail_msg("byte %zu of %zu is %u", at, sizes[i], memory[at]);
			memset(memory, 0xa5, sizes[i]);
			fc_alloc_free(&alloc, memory, sizes[i]);
		}
	}
}

static void freeing_nothing_is_allowed(void **state)
{
	struct fc_alloc alloc = fc_alloc_system();

	(void)state;
	fc_alloc_free(&alloc, NULL, 10);
	fc_alloc_free(&alloc, NULL, 10 << 20);
}

static void a_size_beyond_the_address_space_gives_null(void **state)
{
	struct fc_alloc alloc = fc_alloc_system();

	(void)state;
	assert_null(fc_alloc_zeroed(&alloc, SIZE_MAX));
	assert_null(fc_alloc_zeroed(&alloc, SIZE_MAX - 4096));
	assert_null(fc_alloc_zeroed(&alloc, SIZE_MAX / 4));
	assert_null(fc_pages_alloc(0));
}

static void large_pieces_start_at_a_huge_page(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		void *memory = fc_pages_alloc((3 << 20) + 123);
		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % FC_HUGE_PAGE_BYTES, 0);
		fc_pages_free(memory, (3 << 20) + 123);
	}
}

static void the_real_clock_never_runs_backwards(void **state)
{
	struct fc_clock clock = fc_clock_real();
	uint64_t first_ns = fc_clock_now_ns(&clock);
	uint64_t last_ns = first_ns;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t now_ns = fc_clock_now_ns(&clock);
		assert_true(now_ns >= last_ns);
		last_ns = now_ns;
	}
	assert_true(last_ns > first_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_aligned_at_every_size),
		cmocka_unit_test(freeing_nothing_is_allowed),
		cmocka_unit_test(a_size_beyond_the_address_space_gives_null),
		cmocka_unit_test(large_pieces_start_at_a_huge_page),
		cmocka_unit_test(the_real_clock_never_runs_backwards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

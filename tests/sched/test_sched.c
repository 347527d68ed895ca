/* FC-MAS: who is read next, and who is prefilled next. Sizes are powers of two of a GiB, so that every priority can be
 * worked out in the head. */
#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define SECOND_NS 1000000000ull
#define GIB (1ull << 30)

static struct fc_sched sched;

static int setup(void **state)
{
	(void)state;
	fc_sched_init(&sched);
	return 0;
}

static struct fc_sched_item item(uint64_t arrival_s, uint64_t ssd_bytes)
{
	struct fc_sched_item made = {.arrival_ns = arrival_s * SECOND_NS, .ssd_bytes = ssd_bytes};
	fc_sched_number(&sched, &made);
	return made;
}

static void assert_next_prepare(uint64_t now_s, const struct fc_sched_item *wanted)
{
	assert_ptr_equal(fc_sched_take_prepare(&sched, now_s * SECOND_NS, UINT64_MAX), wanted);
}

static void priority_is_one_plus_seconds_waited_per_gib(void **state)
{
	(void)state;
	struct fc_sched_item two_gib = item(10, 2 * GIB);
	assert_float_equal(fc_sched_priority(&two_gib, 10 * SECOND_NS), 1.0, 0);
	assert_float_equal(fc_sched_priority(&two_gib, 13 * SECOND_NS), 2.5, 1e-12); /* 1 + 3 s / 2 GiB */
	struct fc_sched_item half_gib = item(10, GIB / 2);
	assert_float_equal(fc_sched_priority(&half_gib, 13 * SECOND_NS), 7.0, 1e-12); /* 1 + 3 s / 0.5 GiB */
	/* An arrival in the future has not waited yet. */
	assert_float_equal(fc_sched_priority(&half_gib, 3 * SECOND_NS), 1.0, 0);
}

static void the_smaller_of_two_that_waited_equally_is_read_first(void **state)
{
	(void)state;
	struct fc_sched_item large = item(0, 4 * GIB), small = item(0, GIB);
	fc_sched_add_prepare(&sched, &large);
	fc_sched_add_prepare(&sched, &small);
	assert_int_equal(sched.prepare_length, 2);
	assert_next_prepare(1, &small);
	assert_next_prepare(1, &large);
	assert_next_prepare(1, NULL);
	assert_int_equal(sched.prepare_length, 0);
}

/* A (4 GiB, arrived at 0) and B (1 GiB, arrived at 6): A's priority is 1 + t/4, B's 1 + (t-6). They meet at t = 8. */
static void a_large_one_is_overtaken_only_until_the_small_one_has_caught_up(void **state)
{
	(void)state;
	struct fc_sched_item large = item(0, 4 * GIB), small = item(6, GIB);
	uint64_t arrives_first = 7, meet = 8, later = 9;
	struct fc_sched_item *before[] = {&large, &small}, *tie[] = {&large, &small}, *after[] = {&small, &large};
	struct fc_sched_item **orders[] = {before, tie, after};
	uint64_t times[] = {arrives_first, meet, later};
	for (int i = 0; i < 3; i++) {
		fc_sched_add_prepare(&sched, &small);
		fc_sched_add_prepare(&sched, &large);
		assert_next_prepare(times[i], orders[i][0]);
		assert_next_prepare(times[i], orders[i][1]);
	}
}

/* A stream of small reads, each of 1 GiB and just arrived, cannot hold back 1 TiB for ever: it waits 1,024 s until its
 * priority is 2, and a small one has that only after a second. */
static void a_very_large_one_does_not_starve(void **state)
{
	(void)state;
	struct fc_sched_item huge = item(0, 1024 * GIB);
	fc_sched_add_prepare(&sched, &huge);
	struct fc_sched_item early = item(1000, GIB);
	fc_sched_add_prepare(&sched, &early);
	assert_next_prepare(1001, &early); /* 2.0 against 1.98 */
	struct fc_sched_item late = item(1025, GIB);
	fc_sched_add_prepare(&sched, &late);
	assert_next_prepare(1026, &huge); /* 2.002 against 2.0 */
	assert_next_prepare(1026, &late);
}

static void equal_priorities_go_by_arrival_and_then_by_submission(void **state)
{
	(void)state;
	/* At 8 s all three have waited 2 s for a GiB: 4/2, 2/1, 2/1. */
	struct fc_sched_item earlier = item(4, 2 * GIB), first = item(6, GIB), second = item(6, GIB);
	fc_sched_add_prepare(&sched, &second);
	fc_sched_add_prepare(&sched, &first);
	fc_sched_add_prepare(&sched, &earlier);
	assert_next_prepare(8, &earlier);
	assert_next_prepare(8, &first);
	assert_next_prepare(8, &second);
}

static void sizes_beyond_any_double_are_compared_exactly(void **state)
{
	(void)state;
	/* 2^53 + 1 bytes is a little more than 2^53, and a double cannot tell. */
	struct fc_sched_item larger = item(0, (1ull << 53) + 1), smaller = item(0, 1ull << 53);
	fc_sched_add_prepare(&sched, &larger);
	fc_sched_add_prepare(&sched, &smaller);
	assert_ptr_equal(fc_sched_take_prepare(&sched, UINT64_MAX, UINT64_MAX), &smaller);
	fc_sched_remove_prepare(&sched, &larger);
}

static void nobody_has_waited_before_anybody_arrived(void **state)
{
	(void)state;
	/* The clock stands in front of both arrivals: the earlier one goes first. */
	struct fc_sched_item late = item(9, GIB), early = item(8, 2 * GIB);
	fc_sched_add_prepare(&sched, &late);
	fc_sched_add_prepare(&sched, &early);
	assert_next_prepare(5, &early);
	assert_next_prepare(5, &late);
}

static void ready_goes_by_arrival_and_not_by_entry(void **state)
{
	(void)state;
	struct fc_sched_item first = item(1, GIB), second = item(2, 0), third = item(3, 0);
	fc_sched_add_ready(&sched, &second);
	fc_sched_add_ready(&sched, &third);
	/* The first was read from SSD meanwhile, and comes back in front of those that never left memory. */
	fc_sched_add_prepare(&sched, &first);
	assert_next_prepare(4, &first);
	fc_sched_add_ready(&sched, &first);
	assert_int_equal(sched.ready_length, 3);
	assert_ptr_equal(fc_sched_take_ready(&sched), &first);
	assert_ptr_equal(fc_sched_take_ready(&sched), &second);
	assert_ptr_equal(fc_sched_take_ready(&sched), &third);
	assert_null(fc_sched_take_ready(&sched));
	assert_int_equal(sched.ready_length, 0);
}

static void equal_arrivals_are_ready_in_order_of_submission(void **state)
{
	(void)state;
	struct fc_sched_item a = item(5, 0), b = item(5, 0), c = item(5, 0);
	fc_sched_add_ready(&sched, &c);
	fc_sched_add_ready(&sched, &a);
	fc_sched_add_ready(&sched, &b);
	assert_ptr_equal(fc_sched_take_ready(&sched), &a);
	assert_ptr_equal(fc_sched_take_ready(&sched), &b);
	assert_ptr_equal(fc_sched_take_ready(&sched), &c);
}

static void whoever_is_removed_is_not_taken(void **state)
{
	(void)state;
	struct fc_sched_item a = item(1, GIB), b = item(2, GIB), c = item(3, 0), d = item(4, 0);
	fc_sched_add_prepare(&sched, &a);
	fc_sched_add_prepare(&sched, &b);
	fc_sched_add_ready(&sched, &c);
	fc_sched_add_ready(&sched, &d);
	fc_sched_remove_prepare(&sched, &a);
	fc_sched_remove_ready(&sched, &c);
	assert_int_equal(sched.prepare_length, 1);
	assert_int_equal(sched.ready_length, 1);
	assert_next_prepare(9, &b);
	assert_ptr_equal(fc_sched_take_ready(&sched), &d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(priority_is_one_plus_seconds_waited_per_gib, setup),
		cmocka_unit_test_setup(the_smaller_of_two_that_waited_equally_is_read_first, setup),
		cmocka_unit_test_setup(a_large_one_is_overtaken_only_until_the_small_one_has_caught_up, setup),
		cmocka_unit_test_setup(a_very_large_one_does_not_starve, setup),
		cmocka_unit_test_setup(equal_priorities_go_by_arrival_and_then_by_submission, setup),
		cmocka_unit_test_setup(sizes_beyond_any_double_are_compared_exactly, setup),
		cmocka_unit_test_setup(nobody_has_waited_before_anybody_arrived, setup),
		cmocka_unit_test_setup(ready_goes_by_arrival_and_not_by_entry, setup),
		cmocka_unit_test_setup(equal_arrivals_are_ready_in_order_of_submission, setup),
		cmocka_unit_test_setup(whoever_is_removed_is_not_taken, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

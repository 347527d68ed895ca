/* The law of the simulated node's pipes: nobody waits for one that is idle, whatever was laid out before its time. */
#define _GNU_SOURCE
#include "base/random.h"
#include "replay/policy/wave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define UNITS 4000u /* of time */

static struct fc_pipe pipe;

static void a_transfer_takes_the_gaps_in_front_of_what_is_laid_out(void **state)
{
	(void)state;
	pipe = (struct fc_pipe){.bytes_per_s = 1000000000};
	assert_int_equal(fc_pipe_move(&pipe, 0, 4), 4);
	assert_int_equal(fc_pipe_move(&pipe, 8, 4), 12);
	assert_int_equal(fc_pipe_move(&pipe, 20, 6), 26);
	assert_true(fc_pipe_is_idle_at(&pipe, 4));
	assert_int_equal(fc_pipe_move(&pipe, 4, 6), 14); /* 4 in the first gap, 2 in the second */
	assert_false(fc_pipe_is_idle_at(&pipe, 4));
	assert_true(fc_pipe_is_idle_at(&pipe, 14));
	assert_int_equal(fc_pipe_move(&pipe, 16, 2), 18);
	assert_int_equal(fc_pipe_move(&pipe, 0, 5), 27); /* 14 to 16, 18 to 20, and one behind all */
	assert_int_equal(pipe.busy_ns, 27);
	assert_int_equal(fc_pipe_move(&pipe, 3, 0), 27); /* nothing ends as soon as it is its turn */
	assert_int_equal(pipe.free_ns, 27);
}

/* The plainest model there is: unit by unit, the first idle ones from its arrival on. */
static uint64_t take_idle_units(bool taken[UNITS], uint64_t from, uint64_t busy)
{
	uint64_t at = from;
	for (; busy > 0; at++) {
		assert_true(at < UNITS);
		busy -= !taken[at];
		taken[at] = true;
	}
	return at;
}

static void nobody_waits_for_a_pipe_that_is_idle(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct fc_random random;
		bool taken[UNITS] = {false};
		uint64_t now = 0;
		fc_random_init(&random, seed);
		pipe = (struct fc_pipe){.bytes_per_s = 1000000000};
		for (int i = 0; i < 200; i++) {
			now += fc_random_below(&random, 12);
			uint64_t from = now + (fc_random_below(&random, 2) == 0 ? 0 : fc_random_below(&random, 60));
			uint64_t busy = 1 + fc_random_below(&random, 9);
			assert_int_equal(fc_pipe_occupy(&pipe, from, busy), take_idle_units(taken, from, busy));
			assert_int_equal(fc_pipe_is_idle_at(&pipe, now), !taken[now]);
		}
	}
}

/* Far more gaps than are kept: what lies in the past is forgotten, and what comes is served as before. */
static void old_gaps_are_forgotten(void **state)
{
	(void)state;
	pipe = (struct fc_pipe){.bytes_per_s = 1000000000};
	for (uint64_t i = 0; i < 5 * FC_PIPE_GAPS_MAX; i++)
		assert_int_equal(fc_pipe_occupy(&pipe, 10 * i, 4), 10 * i + 4);
	assert_in_range(pipe.gap_count, FC_PIPE_GAPS_MAX / 2, FC_PIPE_GAPS_MAX);
	uint64_t last = 10 * (5 * FC_PIPE_GAPS_MAX - 1);
	assert_int_equal(fc_pipe_occupy(&pipe, last - 10, 8), last + 6);
}

/* A row of reads with software between them leaves its drive idle in between: a read that comes meanwhile is as fast as
 * alone. */
static void a_read_beside_a_row_that_is_laid_out_is_not_held_up(void **state)
{
	(void)state;
	static const uint32_t numbers[] = {1, 2, 3, 4};
	struct fc_hardware hardware = {
		.workers = 1,
		.ssd_count = 1,
		.ssd_stripe_bytes = 1 << 20,
		.ssd_read_bytes_per_s = 1000000000,
		.ssd_latency_ns = 80000,
		.dram_bytes_per_s = 1000000000,
	};
	struct fc_wave_opts opts = {.lanes = 1, .object_bytes = 1 << 20, .object_ns = 100000000};
	struct fc_machine machine;
	uint64_t commands = 0;
	assert_int_equal(fc_machine_init(&machine, &hardware, NULL), 0);
	uint64_t alone_ns = fc_machine_read(&machine, 0, 0, 4096, 0);
	uint64_t row_end_ns = fc_wave_read(&machine, &opts, 1000000, numbers, 4, &commands);
	assert_true(row_end_ns > 400000000);
	assert_int_equal(fc_machine_read(&machine, 2000000, 0, 4096, 0), 2000000 + alone_ns);
	fc_machine_deinit(&machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transfer_takes_the_gaps_in_front_of_what_is_laid_out),
		cmocka_unit_test(nobody_waits_for_a_pipe_that_is_idle),
		cmocka_unit_test(old_gaps_are_forgotten),
		cmocka_unit_test(a_read_beside_a_row_that_is_laid_out_is_not_held_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

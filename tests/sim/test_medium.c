/* The simulated medium keeps what media.h promises, and forgets what a real one may forget. */
#include "sim/medium.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define ALIGN 512u
#define BYTES (64u << 10)

struct world {
	struct fc_sim_notes notes;
	struct fc_sim_faults faults;
	struct fc_sim_medium *medium;
	uint8_t buffer[8 * 4096] __attribute__((aligned(4096)));
	struct fc_io io;
	unsigned done_count;
};

static struct world *current;

static void on_done(struct fc_io *io)
{
	(void)io;
	current->done_count++;
}

static void init(struct world *world)
{
	memset(world, 0, sizeof(*world));
	struct fc_sim_medium_opts opts = {
		.bytes = BYTES,
		.align = ALIGN,
		.is_durable = true,
		.latency_ns = 1000,
		.bytes_per_s = 512000000, /* a sector takes 1000 ns */
		.queue_depth = 1,
		.late_ns = 1000000,
		.seed = 1,
	};
	world->medium = fc_sim_medium_new(&opts, &world->notes, &world->faults);
	assert_non_null(world->medium);
	current = world;
}

static void submit(struct world *world, enum fc_io_op op, uint64_t offset, uint64_t bytes)
{
	world->io =
		(struct fc_io){.op = op, .offset = offset, .bytes = bytes, .buffer = world->buffer, .done_cb = on_done};
	fc_media_submit(&world->medium->media, &world->io);
}

static int64_t finish(struct world *world)
{
	world->notes.now_ns = fc_sim_medium_next_ns(world->medium);
	assert_int_equal(fc_media_poll(&world->medium->media), 1);
	return world->io.result;
}

static void write_byte(struct world *world, uint64_t offset, uint8_t value)
{
	memset(world->buffer, value, ALIGN);
	submit(world, FC_IO_WRITE, offset, ALIGN);
	assert_int_equal(finish(world), ALIGN);
}

static void sync_all(struct world *world)
{
	submit(world, FC_IO_SYNC, 0, 0);
	assert_int_equal(finish(world), 0);
}

static void a_command_takes_its_latency_and_its_bytes(void **state)
{
	(void)state;
	struct world world;
	init(&world);
	world.notes.now_ns = 5000;
	submit(&world, FC_IO_READ, 0, ALIGN);
	uint64_t due_ns = fc_sim_medium_next_ns(world.medium);
	assert_in_range(due_ns, 7000, 7500); /* 1000 of latency, up to half more, 1000 for the sector */
	world.notes.now_ns = due_ns - 1;
	assert_int_equal(fc_media_poll(&world.medium->media), 0);
	world.notes.now_ns = due_ns;
	assert_int_equal(fc_media_poll(&world.medium->media), 1);
	assert_int_equal(world.done_count, 1);
	fc_sim_medium_free(world.medium);
}

static void bytes_move_when_the_command_ends(void **state)
{
	(void)state;
	struct world world;
	init(&world);
	memset(world.buffer, 1, ALIGN);
	submit(&world, FC_IO_WRITE, 0, ALIGN);
	memset(world.buffer, 2, ALIGN); /* too early: the buffer is borrowed */
	assert_int_equal(finish(&world), ALIGN);
	assert_int_equal(world.medium->image[0], 2);
	fc_sim_medium_free(world.medium);
}

static void a_power_failure_takes_only_what_was_not_synced(void **state)
{
	(void)state;
	unsigned lost = 0;
	for (uint64_t seed = 0; seed < 32; seed++) {
		struct world world;
		init(&world);
		fc_random_init(&world.medium->random, seed);
		write_byte(&world, 0, 1);
		sync_all(&world);
		write_byte(&world, 4096, 2);
		fc_sim_medium_power_off(world.medium);
		assert_int_equal(world.medium->image[0], 1);
		lost += world.medium->image[4096] == 0;
		fc_sim_medium_free(world.medium);
	}
	assert_in_range(lost, 1, 31);
}

static void a_sync_covers_only_writes_that_ended_before_it_was_submitted(void **state)
{
	(void)state;
	struct world world;
	init(&world);
	struct fc_io late = {.op = FC_IO_SYNC, .done_cb = on_done};
	memset(world.buffer, 3, ALIGN);
	submit(&world, FC_IO_WRITE, 0, ALIGN);
	fc_media_submit(&world.medium->media, &late); /* while the write is under way */
	world.notes.now_ns = 1000000;
	assert_int_equal(fc_media_poll(&world.medium->media), 2);
	assert_false(fc_list_is_empty(&world.medium->unsynced));
	fc_sim_medium_free(world.medium);
}

static void a_killed_process_loses_nothing_that_had_ended(void **state)
{
	(void)state;
	struct world world;
	init(&world);
	write_byte(&world, 0, 1);
	fc_sim_medium_kill(world.medium);
	assert_int_equal(world.medium->image[0], 1);
	fc_sim_medium_free(world.medium);
}

static void a_fault_that_is_certain_always_happens(void **state)
{
	(void)state;
	struct world world;
	init(&world);
	world.faults.probability[FC_FAULT_SHORT_READ] = 1;
	submit(&world, FC_IO_READ, 0, 8 * ALIGN);
	assert_in_range(finish(&world), 0, 7 * ALIGN);
	world.faults.probability[FC_FAULT_SHORT_READ] = 0;
	world.faults.probability[FC_FAULT_STICKY_ERROR] = 1;
	submit(&world, FC_IO_READ, 0, ALIGN);
	assert_int_equal(finish(&world), FC_EIO);
	world.faults.probability[FC_FAULT_STICKY_ERROR] = 0;
	submit(&world, FC_IO_READ, 0, ALIGN);
	assert_int_equal(finish(&world), FC_EIO); /* the place stays bad */
	submit(&world, FC_IO_READ, ALIGN, ALIGN);
	assert_int_equal(finish(&world), ALIGN);
	fc_sim_medium_heal(world.medium);
	submit(&world, FC_IO_READ, 0, ALIGN);
	assert_int_equal(finish(&world), ALIGN);
	fc_sim_medium_free(world.medium);
}

static void what_is_stuck_returns_when_it_is_released(void **state)
{
	(void)state;
	struct world world;
	init(&world);
	world.faults.probability[FC_FAULT_STUCK] = 1;
	submit(&world, FC_IO_READ, 0, ALIGN);
	assert_true(fc_sim_medium_next_ns(world.medium) == FC_SIM_NEVER_NS);
	assert_int_equal(fc_sim_medium_stuck_count(world.medium), 1);
	fc_sim_medium_release(world.medium, NULL, 10);
	assert_int_equal(finish(&world), ALIGN);
	fc_sim_medium_free(world.medium);
}

static void a_command_against_the_contract_is_named(void **state)
{
	(void)state;
	static struct world world;
	static const struct {
		uint64_t offset, bytes;
	} wrong[] = {{1, ALIGN}, {0, 100}, {BYTES, ALIGN}, {0, 0}};
	for (volatile size_t i = 0; i < fc_array_len(wrong); i++) { /* lives across longjmp */
		init(&world);
		if (setjmp(world.notes.escape) == 0)
			submit(&world, FC_IO_READ, wrong[i].offset, wrong[i].bytes);
		assert_string_not_equal(world.notes.broken, "");
		fc_sim_medium_free(world.medium);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_takes_its_latency_and_its_bytes),
		cmocka_unit_test(bytes_move_when_the_command_ends),
		cmocka_unit_test(a_power_failure_takes_only_what_was_not_synced),
		cmocka_unit_test(a_sync_covers_only_writes_that_ended_before_it_was_submitted),
		cmocka_unit_test(a_killed_process_loses_nothing_that_had_ended),
		cmocka_unit_test(a_fault_that_is_certain_always_happens),
		cmocka_unit_test(what_is_stuck_returns_when_it_is_released),
		cmocka_unit_test(a_command_against_the_contract_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

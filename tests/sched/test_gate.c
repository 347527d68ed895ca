/* The gate: which command reaches the medium next, and how many bytes are there at once. Time is set by hand. */
#include "sched/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MIB (1ull << 20)
#define KIB (1ull << 10)
#define MS_NS 1000000ull
#define PATIENCE_NS (10 * MS_NS)
#define SENT_MAX 512
#define IOS_MAX 64

/* A drive that writes down what it was given. */
static struct {
	struct fc_media media;
	struct fc_io *sent[SENT_MAX];
	unsigned count;
} drive;

static struct fc_gate gate;
static uint64_t now_ns;

static uint64_t tell_now(void *context)
{
	(void)context;
	return now_ns;
}

static void take(struct fc_media *media, struct fc_io *io)
{
	(void)media;
	assert_true(drive.count < SENT_MAX);
	drive.sent[drive.count++] = io;
}

static const struct fc_media_ops drive_ops = {.submit = take};

/* A stream with its commands. */
struct user {
	struct fc_gate_line line;
	struct fc_io ios[IOS_MAX];
	unsigned used;
};

static int setup(void **state)
{
	(void)state;
	memset(&drive, 0, sizeof(drive));
	drive.media = (struct fc_media){.ops = &drive_ops, .queue_depth = 64};
	now_ns = 1000 * MS_NS;
	fc_gate_init(&gate, &drive.media, (struct fc_clock){tell_now, NULL}, PATIENCE_NS, false);
	gate.small_seen_ns = now_ns;
	return 0;
}

/* A load that arrives now. */
static void open_load(struct user *user, uint64_t ssd_bytes)
{
	struct fc_sched_item item = {.arrival_ns = now_ns, .ssd_bytes = ssd_bytes};
	*user = (struct user){.used = 0};
	fc_gate_open(&gate, &user->line, &item);
}

static void open_save(struct user *user)
{
	*user = (struct user){.used = 0};
	fc_gate_open(&gate, &user->line, NULL);
}

static void ask(struct user *user, unsigned count, uint64_t bytes)
{
	for (unsigned i = 0; i < count; i++) {
		assert_true(user->used < IOS_MAX);
		struct fc_io *io = &user->ios[user->used++];
		*io = (struct fc_io){.op = user->line.is_load ? FC_IO_READ : FC_IO_WRITE, .bytes = bytes};
		fc_gate_add(&user->line, io);
	}
	fc_gate_send(&user->line, count * bytes);
}

static bool is_of(const struct fc_io *io, const struct user *user)
{
	return io >= user->ios && io < user->ios + IOS_MAX;
}

/* The first command of the user that is with the drive ends; what that lets go comes behind the others. */
static void end_one(struct user *user)
{
	unsigned i = 0;
	while (i < drive.count && !is_of(drive.sent[i], user))
		i++;
	assert_true(i < drive.count);
	struct fc_io *io = drive.sent[i];
	memmove(&drive.sent[i], &drive.sent[i + 1], (--drive.count - i) * sizeof(drive.sent[0]));
	fc_gate_ended(&user->line, io);
}

static unsigned count_of(const struct user *user)
{
	unsigned count = 0;
	for (unsigned i = 0; i < drive.count; i++)
		count += is_of(drive.sent[i], user);
	return count;
}

static uint64_t bytes_there(void)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < drive.count; i++)
		bytes += drive.sent[i]->bytes;
	return bytes;
}

static void no_more_goes_than_keeps_a_drive_busy(void **state)
{
	(void)state;
	static struct user load;
	open_load(&load, 64 * MIB);
	ask(&load, 32, MIB);
	assert_int_equal(bytes_there(), FC_GATE_BUSY_MAX); /* nothing is known of the drive yet */
	end_one(&load);
	assert_int_equal(bytes_there(), FC_GATE_BUSY_MAX);
}

static void more_goes_while_nobody_small_is_about(void **state)
{
	(void)state;
	static struct user load, small;
	open_load(&load, 64 * MIB);
	ask(&load, 48, MIB);
	now_ns += 999 * MS_NS;
	fc_gate_step(&gate);
	assert_int_equal(bytes_there(), FC_GATE_BUSY_MAX);
	now_ns += MS_NS;
	fc_gate_step(&gate);
	assert_int_equal(bytes_there(), FC_GATE_ALONE_MAX);
	open_load(&small, 2 * MIB);
	now_ns += 100 * MS_NS;
	for (int i = 0; i < 20; i++)
		end_one(&load);
	assert_int_equal(bytes_there(), 4 * MIB); /* for a small one is there */
	assert_false(gate.is_alone);
}

static void where_others_read_too_somebody_small_may_always_be_about(void **state)
{
	(void)state;
	static struct user load;
	gate.is_shared = true;
	now_ns += 2000 * MS_NS;
	open_load(&load, 64 * MIB);
	ask(&load, 48, MIB);
	assert_int_equal(bytes_there(), FC_GATE_SHARED_MAX);
}

static void the_smaller_load_goes_first(void **state)
{
	(void)state;
	static struct user large, small;
	open_load(&large, 1024 * MIB);
	ask(&large, 32, MIB);
	open_load(&small, 2 * MIB);
	now_ns += MS_NS;
	ask(&small, 2, 64 * KIB);
	assert_int_equal(count_of(&small), 0); /* no room yet */
	end_one(&large);
	assert_int_equal(count_of(&small), 2);
	assert_int_equal(count_of(&large), 7);
}

/* 1 GiB that has waited for 64 s, and 2 MiB: these have to wait for an eighth of a second first. */
static void a_large_load_that_has_waited_long_goes_first(void **state)
{
	(void)state;
	static struct user large, small;
	open_load(&large, 1024 * MIB);
	ask(&large, 32, MIB);
	now_ns += 64000 * MS_NS;
	open_load(&small, 2 * MIB);
	now_ns += 9 * MS_NS;
	ask(&small, 1, 64 * KIB);
	end_one(&large);
	assert_int_equal(count_of(&small), 0);
	now_ns += 117 * MS_NS;
	end_one(&large);
	assert_int_equal(count_of(&small), 1);
}

static void beside_a_small_load_little_of_a_long_one_goes(void **state)
{
	(void)state;
	static struct user large, small;
	open_load(&large, 1024 * MIB);
	ask(&large, 32, 256 * KIB);
	open_load(&small, 2 * MIB);
	now_ns += MS_NS;
	ask(&small, 1, 128 * KIB);
	for (int i = 0; i < 31; i++)
		end_one(&large);
	assert_int_equal(count_of(&small), 1);
	ask(&large, 16, 256 * KIB);
	assert_int_equal(count_of(&large), 1); /* 256 + 128 KiB; another would make it more than 512 */
	end_one(&small);                       /* it copies now, and will be back */
	assert_int_equal(bytes_there(), FC_GATE_BESIDE_MIN);
	fc_gate_close(&small.line);
	fc_gate_step(&gate);
	assert_int_equal(count_of(&large), 17);
}

static void two_long_loads_do_not_hold_each_other_back(void **state)
{
	(void)state;
	static struct user first, second;
	open_load(&first, 1024 * MIB);
	ask(&first, 16, MIB);
	now_ns += MS_NS;
	open_load(&second, 1024 * MIB);
	ask(&second, 16, MIB);
	while (count_of(&first) > 1)
		end_one(&first);
	assert_int_equal(bytes_there(), FC_GATE_BUSY_MAX);
}

static void saves_go_behind_loads_but_have_a_share(void **state)
{
	(void)state;
	static struct user load, save;
	unsigned reads = 0, writes = 0;
	open_load(&load, 1024 * MIB);
	open_save(&save);
	ask(&load, 8, MIB);
	ask(&save, 16, MIB);
	assert_int_equal(count_of(&save), 0);
	while (load.used < IOS_MAX) {
		unsigned before = count_of(&save);
		ask(&load, 1, MIB);
		if (count_of(&load) > 0)
			end_one(&load), reads++;
		while (count_of(&save) > 0)
			end_one(&save), writes++;
		assert_true(count_of(&save) <= before + 1);
	}
	assert_in_range(writes, reads / FC_GATE_WRITE_SHARE - 2, reads / FC_GATE_WRITE_SHARE + 2);
}

static void a_save_with_nothing_beside_it_has_the_drive(void **state)
{
	(void)state;
	static struct user save;
	open_save(&save);
	ask(&save, 16, MIB);
	assert_int_equal(bytes_there(), FC_GATE_BUSY_MAX);
}

static void nobody_is_passed_over_for_longer_than_patience_lasts(void **state)
{
	(void)state;
	static struct user load, save;
	open_load(&load, 1024 * MIB);
	ask(&load, 16, MIB);
	open_save(&save);
	ask(&save, 2, MIB);
	assert_int_equal(count_of(&save), 0);
	assert_int_equal(fc_gate_wake_ns(&gate), now_ns + PATIENCE_NS);
	now_ns += PATIENCE_NS;
	fc_gate_step(&gate);
	assert_int_equal(count_of(&save), 1);
	assert_int_equal(fc_gate_wake_ns(&gate), UINT64_MAX);
	fc_gate_step(&gate);
	assert_int_equal(count_of(&save), 1); /* while that is there, it waits as ever */
}

static void what_never_returns_does_not_take_room_for_ever(void **state)
{
	(void)state;
	static struct user lost, other;
	open_load(&lost, 1024 * MIB);
	ask(&lost, 16, MIB);
	open_load(&other, 2048 * MIB);
	ask(&other, 16, MIB);
	assert_int_equal(count_of(&other), 0);
	fc_gate_give_up(&lost.line);
	assert_int_equal(count_of(&lost), 8); /* and no more of it */
	assert_int_equal(count_of(&other), 8);
	for (int i = 0; i < 8; i++)
		end_one(&lost); /* late */
	assert_int_equal(gate.in_flight_count, 8);
	while (count_of(&other) > 0)
		end_one(&other);
	assert_int_equal(count_of(&lost), 8); /* the rest of it has had its turn */
}

static void the_room_follows_the_speed_of_the_drive(void **state)
{
	(void)state;
	static struct user load;
	open_load(&load, 1024 * MIB);
	ask(&load, 40, MIB);
	for (int i = 0; i < 8; i++, now_ns += 2 * MS_NS)
		end_one(&load); /* 512 MB/s: 3 ms are 1.5 MiB */
	end_one(&load);
	assert_in_range(fc_gate_busy_bytes(&gate), FC_GATE_BUSY_MIN, 2 * MIB);
	while (bytes_there() > MIB)
		end_one(&load);
	for (int i = 0; i < 24; i++, now_ns += MS_NS / 20)
		if (count_of(&load) > 0)
			end_one(&load); /* 20 GB/s */
	assert_in_range(fc_gate_busy_bytes(&gate), 4 * MIB, FC_GATE_BUSY_MAX);
}

/* A drive far away moves 1 GiB/s, and takes 4 ms to answer. */
static void a_slow_answer_makes_room(void **state)
{
	(void)state;
	static struct user load;
	open_load(&load, 1024 * MIB);
	ask(&load, 1, MIB);
	now_ns += 4 * MS_NS;
	end_one(&load);
	assert_int_equal(gate.quickest_ns, 4 * MS_NS);
	ask(&load, 32, MIB);
	for (int i = 0; i < 20; i++, now_ns += MS_NS)
		end_one(&load);
	assert_int_equal(fc_gate_busy_bytes(&gate), FC_GATE_BUSY_MAX);
	assert_in_range(fc_gate_beside_bytes(&gate), 3 * MIB, 5 * MIB);
}

static void no_more_commands_go_than_the_medium_runs_at_once(void **state)
{
	(void)state;
	static struct user load;
	drive.media.queue_depth = 4;
	open_load(&load, MIB);
	ask(&load, 8, 4 * KIB);
	assert_int_equal(drive.count, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_more_goes_than_keeps_a_drive_busy, setup),
		cmocka_unit_test_setup(more_goes_while_nobody_small_is_about, setup),
		cmocka_unit_test_setup(where_others_read_too_somebody_small_may_always_be_about, setup),
		cmocka_unit_test_setup(the_smaller_load_goes_first, setup),
		cmocka_unit_test_setup(a_large_load_that_has_waited_long_goes_first, setup),
		cmocka_unit_test_setup(beside_a_small_load_little_of_a_long_one_goes, setup),
		cmocka_unit_test_setup(two_long_loads_do_not_hold_each_other_back, setup),
		cmocka_unit_test_setup(saves_go_behind_loads_but_have_a_share, setup),
		cmocka_unit_test_setup(a_save_with_nothing_beside_it_has_the_drive, setup),
		cmocka_unit_test_setup(nobody_is_passed_over_for_longer_than_patience_lasts, setup),
		cmocka_unit_test_setup(what_never_returns_does_not_take_room_for_ever, setup),
		cmocka_unit_test_setup(the_room_follows_the_speed_of_the_drive, setup),
		cmocka_unit_test_setup(a_slow_answer_makes_room, setup),
		cmocka_unit_test_setup(no_more_commands_go_than_the_medium_runs_at_once, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A device that is the host's CPU: what one thread does takes its time one after the other, worked out here by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/timed.h"

#include <string.h>

#define WINDOW_BYTES 8192

struct story {
	struct fc_world world;
	struct fc_hardware hardware;
	struct fc_machine machine;
	struct fc_geometry geometry;
	struct fc_timed *timed;
	uint8_t *window;
	struct fc_copy copies[2];
	struct fc_copy_batch first, second;
	struct fc_io io;
	uint64_t first_ns, second_ns, io_ns;
};

static struct story *the_story;

static void pump(void *context, bool is_reading)
{
	const struct story *story = context;
	(void)is_reading;
	fc_timed_poll(story->timed);
}

static void batch_done(struct fc_copy_batch *batch)
{
	*(batch == &the_story->first ? &the_story->first_ns : &the_story->second_ns) = the_story->world.now_ns;
}

static void io_done(struct fc_io *io)
{
	(void)io;
	the_story->io_ns = the_story->world.now_ns;
}

static void begin(struct story *story)
{
	*story = (struct story){.geometry = {.block_tokens = 1, .layer_count = 1, .group_count = 1}};
	the_story = story;
	story->geometry.groups[0] = (struct fc_group){.tokens_per_block = 1};
	story->geometry.groups[0].slice_bytes[0] = 1000;
	story->hardware = (struct fc_hardware){
		.workers = 1,
		.has_cpu_device = true,
		.hbm_bytes_per_s = 1000000000, /* a byte in a nanosecond */
		.link_up_bytes_per_s = 1000000000,
		.link_down_bytes_per_s = 500000000,
		.dram_bytes_per_s = 1000,
		.copy_ns = 90,
		.window_copy_ns = 100,
		.slice_ns = 10,
		.direct_command_ns = 5,
		.wake_ns = 7,
		.ssd_count = 1,
		.ssd_align_bytes = 512,
		.ssd_stripe_bytes = 1 << 20,
		.ssd_transfer_bytes = 4 << 20,
		.ssd_read_bytes_per_s = 1000000000,
		.ssd_write_bytes_per_s = 1000000000,
		.ssd_first_write_bytes_per_s = 500000000,
		.ssd_sync_ns = 77,
	};
	struct fc_timed_opts opts = {
		.machine = &story->machine,
		.geometry = &story->geometry,
		.memory_bytes = 1 << 20,
		.ssd_bytes = 1 << 20,
		.window_bytes = WINDOW_BYTES,
		.queue_depth = 8,
		.transfer_bytes = 4 << 20,
		.pump_cb = pump,
		.context = story,
	};
	assert_int_equal(fc_world_init(&story->world), FC_OK);
	assert_int_equal(fc_machine_init(&story->machine, &story->hardware, &story->world), FC_OK);
	assert_int_equal(fc_timed_new(&story->timed, &opts), FC_OK);
	struct fc_device *device = fc_timed_device(story->timed);
	story->window = device->ops->window_alloc(device, WINDOW_BYTES);
	assert_non_null(story->window);
}

static void end(struct story *story)
{
	struct fc_device *device = fc_timed_device(story->timed);
	while (fc_world_step(&story->world))
		;
	device->ops->window_free(device, story->window, WINDOW_BYTES);
	fc_timed_free(story->timed);
	fc_machine_deinit(&story->machine);
	fc_world_deinit(&story->world);
}

static void submit(struct story *story, struct fc_copy_batch *batch, enum fc_copy_direction direction, uint8_t *flat)
{
	for (int i = 0; i < 2; i++)
		story->copies[i] =
			(struct fc_copy){.flat = flat, .paged = fc_timed_layers(story->timed, 0), .bytes = 1000};
	*batch = (struct fc_copy_batch){
		.direction = direction, .copies = story->copies, .copy_count = 2, .done_cb = batch_done};
	fc_device_submit(fc_timed_device(story->timed), batch);
}

static void send(struct story *story, enum fc_io_op op, uint64_t bytes)
{
	story->io = (struct fc_io){.op = op, .bytes = bytes, .buffer = story->window, .done_cb = io_done};
	fc_media_submit(fc_timed_medium(story->timed, FC_SSD), &story->io);
}

static void one_thread_sends_and_copies(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	send(&story, FC_IO_READ, 1024);
	submit(&story, &story.first, FC_COPY_SCATTER, story.window);
	submit(&story, &story.second, FC_COPY_SCATTER, story.window);
	end(&story);
	/* The command takes the thread 5, the drive 1024. The first batch begins behind it. */
	assert_int_equal(story.first_ns, 5 + 100 + 2 * 10 + 2000);
	/* The read has ended at 1029, which is seen when the batch is done, before the second begins. */
	assert_int_equal(story.io_ns, story.first_ns);
	assert_int_equal(story.second_ns, story.first_ns + 2120);
}

static void a_read_wakes_a_thread_that_does_not_copy(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	send(&story, FC_IO_READ, 1024);
	end(&story);
	assert_int_equal(story.io_ns, 5 + 1024 + 7); /* once it has woken up */
}

static void what_is_saved_goes_at_the_speed_of_saving_wherever_it_lies(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	submit(&story, &story.first, FC_COPY_GATHER, story.window);
	submit(&story, &story.second, FC_COPY_GATHER, fc_timed_medium(story.timed, FC_MEMORY)->map);
	end(&story);
	assert_int_equal(story.first_ns, 90 + 20 + 4000);
	assert_int_equal(story.second_ns, 2 * story.first_ns);
}

static void a_sync_takes_its_own_time(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	send(&story, FC_IO_SYNC, 0);
	end(&story);
	assert_int_equal(story.io_ns, 77 + 7);
}

static void a_piece_takes_as_long_as_its_slices(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	story.copies[0] =
		(struct fc_copy){.flat = story.window, .paged = fc_timed_layers(story.timed, 0), .bytes = 30 * 1000};
	story.first = (struct fc_copy_batch){
		.direction = FC_COPY_SCATTER, .copies = story.copies, .copy_count = 1, .done_cb = batch_done};
	fc_device_submit(fc_timed_device(story.timed), &story.first);
	end(&story);
	assert_int_equal(story.first_ns, 100 + 30 * 10 + 30 * 1000);
}

static void a_window_is_copied_at_the_speed_of_its_slices(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	story.hardware.slice_curve =
		(struct fc_speed_curve){.bytes = {500, 2000}, .bytes_per_s = {100000000, 300000000}, .count = 2};
	story.hardware.large_slice_curve =
		(struct fc_speed_curve){.bytes = {500}, .bytes_per_s = {500000000}, .count = 1};
	story.hardware.window_large_bytes = 2001;
	submit(&story, &story.first, FC_COPY_SCATTER, story.window);
	end(&story);
	assert_int_equal(story.first_ns, 100 + 2000 * 5); /* 1,000 is half of the way from 500 to 2,000 */
	begin(&story);
	story.hardware.large_slice_curve =
		(struct fc_speed_curve){.bytes = {500}, .bytes_per_s = {500000000}, .count = 1};
	story.hardware.window_large_bytes = 2000;
	submit(&story, &story.first, FC_COPY_SCATTER, story.window);
	submit(&story, &story.second, FC_COPY_SCATTER, fc_timed_medium(story.timed, FC_MEMORY)->map);
	end(&story);
	assert_int_equal(story.first_ns, 100 + 2000 * 2);
	assert_int_equal(story.second_ns - story.first_ns, 90 + 2 * 10 + 2000); /* memory has no curve */
}

static uint64_t the_ends_ns[3];
static struct fc_io the_ios[3];

static void note_end(struct fc_io *io)
{
	the_ends_ns[io - the_ios] = the_story->world.now_ns;
}

static void send_one(struct story *story, int number, enum fc_io_op op)
{
	uint64_t bytes = op == FC_IO_SYNC ? 0 : 1024;
	the_ios[number] = (struct fc_io){.op = op, .bytes = bytes, .buffer = story->window, .done_cb = note_end};
	fc_media_submit(fc_timed_medium(story->timed, FC_SSD), &the_ios[number]);
}

static void step_to(struct story *story, uint64_t time_ns, struct fc_world_event *event)
{
	fc_world_at(&story->world, event, time_ns);
	while (fc_world_is_scheduled(&story->world, event))
		(void)fc_world_step(&story->world);
}

static void nothing(struct fc_world_event *event)
{
	(void)event;
}

/* 5 to send a command. The drive needs 20 to wake up and serve one besides its bytes, which begin 15 after that. */
static void begin_with_joint_reports(struct story *story)
{
	begin(story);
	story->hardware.has_joint_reports = true;
	story->hardware.ssd_command_ns = 5;
	story->hardware.ssd_latency_ns = 20;
}

static void a_drive_that_reports_jointly_tells_of_nothing_before_all_is_done(void **state)
{
	struct story story;
	struct fc_world_event soon = {.fire = nothing};
	(void)state;
	begin_with_joint_reports(&story);
	send_one(&story, 0, FC_IO_READ);
	send_one(&story, 1, FC_IO_WRITE);
	step_to(&story, 1500, &soon);
	send_one(&story, 2, FC_IO_READ);
	end(&story);
	uint64_t done_ns = 5 + 15 + 3 * (5 + 1024) + 1024; /* the write is the first one there */
	for (int i = 0; i < 3; i++)
		assert_int_equal(the_ends_ns[i], done_ns + 7);
	/* It sleeps again: the next one wakes it. */
	begin_with_joint_reports(&story);
	send_one(&story, 0, FC_IO_READ);
	step_to(&story, 5000, &soon);
	send_one(&story, 1, FC_IO_READ);
	end(&story);
	assert_int_equal(the_ends_ns[0], 5 + 15 + 5 + 1024 + 7);
	assert_int_equal(the_ends_ns[1], 5000 + the_ends_ns[0]);
}

static void where_nothing_was_written_a_write_takes_its_own_time(void **state)
{
	struct story story;
	(void)state;
	begin(&story);
	send(&story, FC_IO_WRITE, 1024);
	end(&story);
	assert_int_equal(story.io_ns, 5 + 2 * 1024 + 7);
	begin(&story);
	struct fc_world_event later = {.fire = nothing};
	send(&story, FC_IO_WRITE, 1024);
	step_to(&story, 10000, &later);
	send(&story, FC_IO_WRITE, 1024);
	end(&story);
	assert_int_equal(story.io_ns, 10000 + 5 + 1024 + 7);
}

static void a_sync_is_one_of_the_commands_that_are_reported_jointly(void **state)
{
	struct story story;
	(void)state;
	begin_with_joint_reports(&story);
	send_one(&story, 0, FC_IO_READ);
	send_one(&story, 1, FC_IO_SYNC);
	end(&story);
	assert_int_equal(the_ends_ns[0], 5 + 15 + 5 + 1024 + 77 + 7);
	assert_int_equal(the_ends_ns[1], the_ends_ns[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_sends_and_copies),
		cmocka_unit_test(a_read_wakes_a_thread_that_does_not_copy),
		cmocka_unit_test(what_is_saved_goes_at_the_speed_of_saving_wherever_it_lies),
		cmocka_unit_test(a_sync_takes_its_own_time),
		cmocka_unit_test(a_window_is_copied_at_the_speed_of_its_slices),
		cmocka_unit_test(a_piece_takes_as_long_as_its_slices),
		cmocka_unit_test(a_drive_that_reports_jointly_tells_of_nothing_before_all_is_done),
		cmocka_unit_test(where_nothing_was_written_a_write_takes_its_own_time),
		cmocka_unit_test(a_sync_is_one_of_the_commands_that_are_reported_jointly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

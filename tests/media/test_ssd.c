/* Does the SSD medium keep its contract on a real file, with io_uring and with threads? What the kernel does only on
 * bad days (short transfers, errors) comes from a scripted engine in test_ssd_faults.c; what it refuses in containers,
 * from test_ssd_refused.c. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "media/ssd_world.h"

static void check_reads_back_beyond_its_depth(struct ssd_world *world, bool is_registered)
{
	struct medium_io ios[PIECE_COUNT];

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES, .queue_depth = 3});
	assert_true(world->media->is_new);
	if (is_registered)
		assert_int_equal(world->media->ops->register_buffers(world->media, world->buffer, ARENA_BYTES), 0);
	world_fill(world, 1);
	world_run_all(world, ios, FC_IO_WRITE);
	assert_int_equal(medium_run(world->media, FC_IO_SYNC, 0, NULL, 0), 0);
	memset(world->buffer, 0, ARENA_BYTES);
	world_run_all(world, ios, FC_IO_READ);
	world_check_filled(world, 1);
	assert_int_equal(world->media->counters.write_commands, PIECE_COUNT);
	assert_int_equal(world->media->counters.read_commands, PIECE_COUNT);
	assert_int_equal(world->media->counters.bytes_written, ARENA_BYTES);
	assert_int_equal(world->media->counters.bytes_read, ARENA_BYTES);
	assert_int_equal(world->media->counters.sync_commands, 1);
	assert_int_equal(world->media->counters.errors, 0);
	fc_media_close(world->media);
}

static void more_io_than_the_queue_is_deep_reads_back(void **state)
{
	check_reads_back_beyond_its_depth(*state, false);
}

static void registered_memory_reads_back(void **state)
{
	check_reads_back_beyond_its_depth(*state, true);
}

static void a_transfer_across_two_registered_pieces_works(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	assert_int_equal(world->media->ops->register_buffers(world->media, world->buffer, 65536), 0);
	assert_int_equal(world->media->ops->register_buffers(world->media, world->buffer + 65536, 65536), 0);
	world_fill(world, 3);
	assert_int_equal(medium_run(world->media, FC_IO_WRITE, 0, world->buffer, 65536), 65536);
	assert_int_equal(medium_run(world->media, FC_IO_WRITE, 65536, world->buffer + 65536, ARENA_BYTES - 65536),
			 ARENA_BYTES - 65536);
	memset(world->buffer, 0, ARENA_BYTES);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 0, world->buffer, ARENA_BYTES), ARENA_BYTES);
	world_check_filled(world, 3);
	fc_media_close(world->media);
}

static void the_file_is_private_and_wholly_set_aside(void **state)
{
	struct ssd_world *world = *state;
	struct stat status;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	assert_int_equal(stat(world->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(status.st_size, ARENA_BYTES);
	assert_true((uint64_t)status.st_blocks * 512 >= ARENA_BYTES);
	fc_media_close(world->media);
}

static void an_existing_arena_keeps_its_size_and_bytes(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	world_fill(world, 5);
	assert_int_equal(medium_run(world->media, FC_IO_WRITE, 0, world->buffer, ARENA_BYTES), ARENA_BYTES);
	fc_media_close(world->media);
	memset(world->buffer, 0, ARENA_BYTES);
	world_open(world, (struct fc_ssd_opts){.bytes = 2 * ARENA_BYTES});
	assert_false(world->media->is_new);
	assert_int_equal(world->media->bytes, ARENA_BYTES);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 0, world->buffer, ARENA_BYTES), ARENA_BYTES);
	world_check_filled(world, 5);
	fc_media_close(world->media);
}

static void what_breaks_the_contract_is_refused_and_counted(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	struct fc_media *media = world->media;
	uint32_t align = media->align;
	assert_int_equal(medium_run(media, FC_IO_READ, ARENA_BYTES, world->buffer, align), FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, ARENA_BYTES - align, world->buffer, 2 * (uint64_t)align),
			 FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, UINT64_MAX - align + 1, world->buffer, 2 * (uint64_t)align),
			 FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, 1, world->buffer, align), FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, 0, world->buffer + 1, align), FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, 0, world->buffer, align - 1), FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_WRITE, 0, world->buffer, 0), FC_EINVAL);
	assert_int_equal(media->counters.errors, 7);
	assert_int_equal(media->counters.read_commands, 0);
	fc_media_close(media);
}

static void a_read_beyond_a_file_that_became_short_is_an_error(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	assert_int_equal(truncate(world->path, ARENA_BYTES / 2), 0);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 0, world->buffer, ARENA_BYTES), FC_EIO);
	assert_int_equal(medium_run(world->media, FC_IO_READ, ARENA_BYTES / 2, world->buffer, 4096), FC_EIO);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 0, world->buffer, ARENA_BYTES / 2), ARENA_BYTES / 2);
	assert_int_equal(world->media->counters.errors, 2);
	fc_media_close(world->media);
}

static void readers_share_an_arena_and_cannot_write(void **state)
{
	struct ssd_world *world = *state;
	struct fc_media *second = NULL;
	struct fc_ssd_opts opts = {.path = world->path, .is_read_only = true};

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	fc_media_close(world->media);
	world_open(world, opts);
	assert_int_equal(fc_ssd_open(&opts, &second, &world->error), 0);
	assert_int_equal(medium_run(second, FC_IO_WRITE, 0, world->buffer, 4096), FC_EINVAL);
	assert_int_equal(medium_run(second, FC_IO_READ, 0, world->buffer, 4096), 4096);
	assert_int_equal(fc_ssd_resize(second, 2 * ARENA_BYTES, &world->error), FC_EINVAL);
	fc_media_close(second);
	opts.is_read_only = false;
	assert_int_equal(fc_ssd_open(&opts, &second, &world->error), FC_EBUSY);
	fc_media_close(world->media);
}

static void a_second_process_is_refused_and_told_who_holds_it(void **state)
{
	struct ssd_world *world = *state;
	char holder[32];
	int status = 0;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	snprintf(holder, sizeof(holder), "process %d (", (int)getpid());
	pid_t child = fork();
	if (child == 0) {
		struct fc_ssd_opts opts = {.path = world->path};
		struct fc_media *second = NULL;
		int code = fc_ssd_open(&opts, &second, &world->error);
		_exit(code == FC_EBUSY && strstr(world->error.text, holder) != NULL ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fc_media_close(world->media);
	world_open(world, (struct fc_ssd_opts){.bytes = 0});
	fc_media_close(world->media);
}

static void resize_keeps_what_stays_and_reads_zeros_behind_it(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	world_fill(world, 9);
	assert_int_equal(medium_run(world->media, FC_IO_WRITE, 0, world->buffer, ARENA_BYTES), ARENA_BYTES);
	assert_int_equal(fc_ssd_resize(world->media, ARENA_BYTES / 2, &world->error), 0);
	assert_int_equal(world->media->bytes, ARENA_BYTES / 2);
	assert_int_equal(medium_run(world->media, FC_IO_READ, ARENA_BYTES / 2, world->buffer, 4096), FC_EINVAL);
	assert_int_equal(fc_ssd_resize(world->media, 2 * ARENA_BYTES, &world->error), 0);
	assert_int_equal(world->media->bytes, 2 * ARENA_BYTES);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 0, world->buffer, ARENA_BYTES), ARENA_BYTES);
	assert_int_equal(world->buffer[ARENA_BYTES / 2], 0);
	world_fill_range(world, 9, ARENA_BYTES / 2, ARENA_BYTES);
	world_check_filled(world, 9);
	assert_int_equal(fc_ssd_resize(world->media, 0, &world->error), FC_EINVAL);
	assert_int_equal(fc_ssd_resize(world->media, (uint64_t)1 << 62, &world->error), FC_EFULL);
	assert_non_null(strstr(world->error.text, "available"));
	assert_int_equal(world->media->bytes, 2 * ARENA_BYTES);
	fc_media_close(world->media);
}

static void what_cannot_be_an_arena_is_refused_by_name(void **state)
{
	struct ssd_world *world = *state;
	char link_path[300];
	struct fc_ssd_opts opts = {.path = world->path};

	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_ENOENT);
	assert_non_null(strstr(world->error.text, world->path));
	opts.bytes = 100; /* less than one unit of I/O */
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EINVAL);
	assert_int_equal(access(world->path, F_OK), -1);
	opts.bytes = (uint64_t)1 << 62;
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EFULL);
	assert_int_equal(access(world->path, F_OK), -1);
	opts.bytes = ARENA_BYTES;
	opts.queue_depth = FC_QUEUE_DEPTH_MAX + 1;
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EINVAL);
	opts.queue_depth = 0;
	opts.transfer_bytes = 1000001;
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "1000001"));
	assert_int_equal(access(world->path, F_OK), -1);
	opts.transfer_bytes = 0;
	opts.path = world->folder;
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EINVAL);
	snprintf(link_path, sizeof(link_path), "%s/link", world->folder);
	assert_int_equal(symlink(world->path, link_path), 0);
	opts.path = link_path;
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "symbolic link"));
	unlink(link_path);
	assert_null(world->media);
}

static void without_direct_io_a_notice_says_so(void **state)
{
	struct ssd_world *world = *state;
	char path[] = "/dev/shm/fc-ssd-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	struct fc_ssd_opts opts = {.path = path, .bytes = ARENA_BYTES};
	assert_int_equal(fc_ssd_open(&opts, &world->media, &world->error), 0);
	bool has_notice = strstr(world->media->notice, "O_DIRECT") != NULL;
	assert_int_equal(has_notice, !fc_ssd_is_direct(world->media));
	assert_int_equal(medium_run(world->media, FC_IO_WRITE, 4096, world->buffer, 8192), 8192);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 4096, world->buffer, 8192), 8192);
	fc_media_close(world->media);
	unlink(path);
}

static void buffered_io_on_request_is_no_notice(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES, .is_buffered = true});
	assert_false(fc_ssd_is_direct(world->media));
	assert_int_equal(world->media->align, 4096);
	assert_true(strstr(world->media->notice, "O_DIRECT") == NULL);
	assert_int_equal(medium_run(world->media, FC_IO_READ, 4096, world->buffer, 8192), 8192);
	fc_media_close(world->media);
}

static void the_descriptor_is_readable_when_something_has_ended(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES, .queue_depth = 2});
	struct pollfd event = {.fd = fc_media_event_fd(world->media), .events = POLLIN};
	for (int round = 0; round < 50; round++) {
		struct medium_io ios[PIECE_COUNT];
		world_submit_all(world, ios, FC_IO_READ);
		while (!world_is_all_done(ios)) {
			if (fc_media_poll(world->media) == 0 && !world_is_all_done(ios))
				assert_int_equal(poll(&event, 1, 5000), 1);
		}
		while (fc_media_poll(world->media) > 0)
			;
		assert_int_equal(poll(&event, 1, 0), 0);
	}
	fc_media_close(world->media);
}

static void waiting_with_nothing_in_flight_returns_at_once(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	assert_int_equal(fc_media_wait(world->media, UINT64_MAX / 2), 0);
	fc_media_close(world->media);
}

static void *use_from_another_thread(void *argument)
{
	struct ssd_world *world = argument;
	return (void *)(intptr_t)medium_run(world->media, FC_IO_READ, 0, world->buffer, 65536);
}

static void a_thread_that_did_not_open_it_may_own_it(void **state)
{
	struct ssd_world *world = *state;
	pthread_t thread;
	void *result = NULL;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	assert_int_equal(world->media->ops->register_buffers(world->media, world->buffer, ARENA_BYTES), 0);
	assert_true(fc_media_event_fd(world->media) >= 0);
	assert_int_equal(pthread_create(&thread, NULL, use_from_another_thread, world), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, 65536);
	fc_media_close(world->media);
}

struct chain {
	struct fc_io io;
	struct fc_media *media;
	unsigned left;
};

static void submit_next(struct fc_io *io)
{
	struct chain *chain = fc_container_of(io, struct chain, io);
	if (io->result == 4096 && --chain->left > 0)
		fc_media_submit(chain->media, io);
}

static void an_io_may_be_submitted_again_from_its_callback(void **state)
{
	struct ssd_world *world = *state;

	world_open(world, (struct fc_ssd_opts){.bytes = ARENA_BYTES});
	struct chain chain = {.media = world->media, .left = 20};
	chain.io = (struct fc_io){.op = FC_IO_READ, .buffer = world->buffer, .bytes = 4096, .done_cb = submit_next};
	fc_media_submit(chain.media, &chain.io);
	for (int tries = 0; chain.left > 0 && tries < 1000; tries++)
		fc_media_wait(chain.media, 100000000);
	assert_int_equal(chain.left, 0);
	fc_media_close(world->media);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_deinit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(more_io_than_the_queue_is_deep_reads_back),
		WITH_WORLD(registered_memory_reads_back),
		WITH_WORLD(a_transfer_across_two_registered_pieces_works),
		WITH_WORLD(the_file_is_private_and_wholly_set_aside),
		WITH_WORLD(an_existing_arena_keeps_its_size_and_bytes),
		WITH_WORLD(what_breaks_the_contract_is_refused_and_counted),
		WITH_WORLD(a_read_beyond_a_file_that_became_short_is_an_error),
		WITH_WORLD(readers_share_an_arena_and_cannot_write),
		WITH_WORLD(a_second_process_is_refused_and_told_who_holds_it),
		WITH_WORLD(resize_keeps_what_stays_and_reads_zeros_behind_it),
		WITH_WORLD(what_cannot_be_an_arena_is_refused_by_name),
		WITH_WORLD(without_direct_io_a_notice_says_so),
		WITH_WORLD(buffered_io_on_request_is_no_notice),
		WITH_WORLD(the_descriptor_is_readable_when_something_has_ended),
		WITH_WORLD(waiting_with_nothing_in_flight_returns_at_once),
		WITH_WORLD(a_thread_that_did_not_open_it_may_own_it),
		WITH_WORLD(an_io_may_be_submitted_again_from_its_callback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

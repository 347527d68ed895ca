/* Does an arena in memory keep its bytes, its bounds and its lock? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "media/medium_io.h"
#include "media/memory.h"

#define ARENA_BYTES 1000003 /* nothing's multiple */

struct world {
	char folder[64]; /* on tmpfs */
	char path[96];
	struct fc_error error;
};

static int world_init(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	snprintf(world->folder, sizeof(world->folder), "/dev/shm/fc-memory-XXXXXX");
	if (mkdtemp(world->folder) == NULL) {
		free(world);
		return -1;
	}
	snprintf(world->path, sizeof(world->path), "%s/arena", world->folder);
	*state = world;
	return 0;
}

static int world_deinit(void **state)
{
	struct world *world = *state;
	unlink(world->path);
	rmdir(world->folder);
	free(world);
	return 0;
}

static void check_reads_back(struct fc_media *media)
{
	char text[] = "written to the arena";
	char back[sizeof(text)] = "";

	assert_int_equal(medium_run(media, FC_IO_WRITE, 777, text, sizeof(text)), sizeof(text));
	assert_memory_equal(media->map + 777, text, sizeof(text));
	assert_int_equal(medium_run(media, FC_IO_READ, 777, back, sizeof(back)), sizeof(back));
	assert_string_equal(back, text);
	assert_int_equal(medium_run(media, FC_IO_SYNC, 0, NULL, 0), 0);
	assert_int_equal(media->counters.write_commands, 1);
	assert_int_equal(media->counters.read_commands, 1);
	assert_int_equal(media->counters.sync_commands, 1);
	assert_int_equal(media->counters.bytes_written, sizeof(text));
	assert_int_equal(media->counters.bytes_read, sizeof(text));
	assert_int_equal(media->counters.errors, 0);
}

static void every_backing_reads_back_what_was_written(void **state)
{
	struct world *world = *state;
	const struct fc_memory_opts opts[] = {
		{.bytes = ARENA_BYTES},
		{.bytes = ARENA_BYTES, .is_shared = true},
		{.bytes = ARENA_BYTES, .path = world->path},
	};

	for (size_t i = 0; i < fc_array_len(opts); i++) {
		struct fc_media *media = NULL;
		assert_int_equal(fc_memory_open(&opts[i], &media, &world->error), 0);
		assert_true(media->bytes >= ARENA_BYTES);
		assert_true(media->is_new);
		assert_int_equal(media->is_durable, opts[i].path != NULL);
		assert_int_equal(media->align, 1);
		assert_int_equal(fc_media_event_fd(media), -1);
		check_reads_back(media);
		fc_media_close(media);
	}
}

static void io_outside_the_arena_is_refused_and_touches_nothing(void **state)
{
	struct world *world = *state;
	struct fc_memory_opts opts = {.bytes = 4096};
	struct fc_media *media = NULL;
	char buffer[16] = "0123456789abcde";

	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	assert_int_equal(medium_run(media, FC_IO_WRITE, 4096 - 15, buffer, 16), FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, 4096, buffer, 1), FC_EINVAL);
	assert_int_equal(medium_run(media, FC_IO_READ, UINT64_MAX - 7, buffer, 16), FC_EINVAL);
	assert_int_equal(media->counters.errors, 3);
	assert_int_equal(media->counters.bytes_written, 0);
	assert_int_equal(media->map[4095], 0);
	assert_int_equal(medium_run(media, FC_IO_WRITE, 4096 - 16, buffer, 16), 16);
	fc_media_close(media);
}

static void a_file_outlives_its_medium_and_is_private_to_its_owner(void **state)
{
	struct world *world = *state;
	struct fc_memory_opts opts = {.bytes = ARENA_BYTES, .path = world->path};
	struct fc_media *media = NULL;
	struct stat status;

	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	uint64_t bytes = media->bytes;
	memcpy(media->map + bytes - 4, "tail", 4);
	fc_media_close(media);
	assert_int_equal(stat(world->path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);

	opts.bytes = 2 * ARENA_BYTES; /* an existing file keeps its size */
	opts.is_read_only = true;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	assert_int_equal(media->bytes, bytes);
	assert_false(media->is_new);
	assert_memory_equal(media->map + bytes - 4, "tail", 4);
	char byte = 'x';
	assert_int_equal(medium_run(media, FC_IO_WRITE, 0, &byte, 1), FC_EINVAL);
	fc_media_close(media);
}

static void other_processes_see_shared_memory_through_its_descriptor(void **state)
{
	struct world *world = *state;
	struct fc_memory_opts opts = {.bytes = ARENA_BYTES, .is_shared = true};
	struct fc_media *media = NULL;

	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	media->map[12345] = 77;
	pid_t child = fork();
	if (child == 0) {
		uint8_t *map = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fc_memory_fd(media), 0);
		if (map == MAP_FAILED || map[12345] != 77)
			_exit(1);
		map[12346] = 78;
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(media->map[12346], 78);
	fc_media_close(media);

	opts.is_shared = false;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	assert_int_equal(fc_memory_fd(media), -1);
	fc_media_close(media);
}

static void a_second_writer_is_refused_and_told_who_holds_it(void **state)
{
	struct world *world = *state;
	struct fc_memory_opts opts = {.bytes = ARENA_BYTES, .path = world->path};
	struct fc_media *media = NULL;
	struct fc_media *second = NULL;
	char holder[32];

	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	assert_int_equal(fc_memory_open(&opts, &second, &world->error), FC_EBUSY);
	snprintf(holder, sizeof(holder), "process %d (", (int)getpid());
	assert_non_null(strstr(world->error.text, holder));
	assert_null(second);
	fc_media_close(media);
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), 0);
	fc_media_close(media);
}

static void resize_keeps_the_bytes_and_reads_zeros_behind_them(void **state)
{
	struct world *world = *state;
	const struct fc_memory_opts opts[] = {
		{.bytes = ARENA_BYTES},
		{.bytes = ARENA_BYTES, .is_shared = true},
		{.bytes = ARENA_BYTES, .path = world->path},
	};

	for (size_t i = 0; i < fc_array_len(opts); i++) {
		struct fc_media *media = NULL;
		assert_int_equal(fc_memory_open(&opts[i], &media, &world->error), 0);
		memcpy(media->map + 500000, "middle", 6);
		assert_int_equal(fc_memory_resize(media, 9 << 20, &world->error), 0);
		assert_int_equal(media->bytes, 9 << 20);
		assert_memory_equal(media->map + 500000, "middle", 6);
		assert_int_equal(media->map[(9 << 20) - 1], 0);
		memcpy(media->map + (8 << 20), "beyond", 6);
		assert_int_equal(fc_memory_resize(media, 1 << 20, &world->error), 0);
		assert_memory_equal(media->map + 500000, "middle", 6);
		assert_int_equal(fc_memory_resize(media, 9 << 20, &world->error), 0);
		assert_int_equal(media->map[8 << 20], 0);
		assert_int_equal(fc_memory_resize(media, 0, &world->error), FC_EINVAL);
		assert_int_equal(media->bytes, 9 << 20);
		fc_media_close(media);
	}
}

static void what_cannot_be_an_arena_is_refused_by_name(void **state)
{
	struct world *world = *state;
	char link_path[128];
	struct fc_media *media = NULL;
	struct fc_memory_opts opts = {.path = world->path};

	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_ENOENT);
	assert_non_null(strstr(world->error.text, world->path));
	opts.bytes = 4096;
	opts.path = world->folder;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_EINVAL);
	snprintf(link_path, sizeof(link_path), "%s/link", world->folder);
	assert_int_equal(symlink(world->path, link_path), 0);
	opts.path = link_path;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "symbolic link"));
	unlink(link_path);
	opts.path = "/proc/self/status";
	opts.is_read_only = true;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "not in memory"));
	opts.is_read_only = false;
	assert_int_equal(mkfifo(world->path, 0600), 0);
	opts.path = world->path;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_EINVAL);
	assert_non_null(strstr(world->error.text, "regular file"));
	unlink(world->path);
	opts.path = NULL;
	opts.bytes = 0;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_EINVAL);
	/* More than there is: nothing may stay behind. */
	opts.path = world->path;
	opts.bytes = (uint64_t)1 << 60;
	assert_int_equal(fc_memory_open(&opts, &media, &world->error), FC_EFULL);
	assert_non_null(strstr(world->error.text, "available"));
	assert_int_equal(access(world->path, F_OK), -1);
	assert_null(media);
}

struct chain {
	struct fc_io io;
	struct fc_media *media;
	unsigned left;
};

static void submit_next(struct fc_io *io)
{
	struct chain *chain = fc_container_of(io, struct chain, io);
	if (chain->left-- > 1)
		fc_media_submit(chain->media, io);
}

static void an_io_may_be_submitted_again_from_its_callback(void **state)
{
	struct world *world = *state;
	struct fc_memory_opts opts = {.bytes = 4096};
	struct chain chain = {.io = {.op = FC_IO_SYNC, .done_cb = submit_next}, .left = 3};

	assert_int_equal(fc_memory_open(&opts, &chain.media, &world->error), 0);
	fc_media_submit(chain.media, &chain.io);
	assert_int_equal(fc_media_poll(chain.media), 1);
	assert_int_equal(fc_media_poll(chain.media), 1);
	assert_int_equal(fc_media_poll(chain.media), 1);
	assert_int_equal(fc_media_poll(chain.media), 0);
	fc_media_close(chain.media);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_deinit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(every_backing_reads_back_what_was_written),
		WITH_WORLD(io_outside_the_arena_is_refused_and_touches_nothing),
		WITH_WORLD(a_file_outlives_its_medium_and_is_private_to_its_owner),
		WITH_WORLD(other_processes_see_shared_memory_through_its_descriptor),
		WITH_WORLD(a_second_writer_is_refused_and_told_who_holds_it),
		WITH_WORLD(resize_keeps_the_bytes_and_reads_zeros_behind_them),
		WITH_WORLD(what_cannot_be_an_arena_is_refused_by_name),
		WITH_WORLD(an_io_may_be_submitted_again_from_its_callback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

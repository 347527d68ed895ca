/* Does a store work, or say why not, where the system allows it little: small files, little locked memory, few
 * descriptors, no io_uring? And does nobody die when a file that is in use becomes short? Each test is a process. */
#define _GNU_SOURCE
#include "real/alone.h"
#include "real/deny.h"
#include "real/stories.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void set_limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(resource, &limit), 0);
	limit.rlim_cur = value;
	assert_int_equal(setrlimit(resource, &limit), 0);
}

/* ---- RLIMIT_FSIZE ---- */

static void an_arena_above_RLIMIT_FSIZE_is_refused_by_name(void **state)
{
	struct store_world world;
	if (!is_alone(state))
		return;
	make_world(&world);
	set_limit(RLIMIT_FSIZE, 4 * MIB);
	assert_refused(&world, FC_ELIMIT, world.arena, "RLIMIT_FSIZE");
	assert_int_equal(access(world.arena, F_OK), -1); /* nothing stays behind */
	world.opts.ssd_bytes = 4 * MIB;
	check_works(&world);
	store_world_close(&world);
	world.opts.ssd_bytes = 5 * MIB; /* it cannot grow, and stays as it is */
	assert_refused(&world, FC_ELIMIT, world.arena, "RLIMIT_FSIZE");
	world.opts.ssd_bytes = 4 * MIB;
	store_world_open(&world);
	assert_int_equal(count_whole(&world, 1), SESSIONS);
	store_world_close(&world);
	set_limit(RLIMIT_FSIZE, 3 * MIB); /* nor can it be written any more */
	assert_refused(&world, FC_ELIMIT, world.arena, "RLIMIT_FSIZE");
	store_world_deinit(&world);
}

static void a_memory_file_above_RLIMIT_FSIZE_is_refused_by_name(void **state)
{
	struct store_world world;
	char path[100];
	if (!is_alone(state))
		return;
	if (access("/dev/shm", W_OK) != 0)
		skip_alone("no /dev/shm to write to");
	make_world(&world);
	snprintf(path, sizeof(path), "/dev/shm/fc-limits-%ld", (long)getpid());
	world.opts.memory_path = path;
	world.opts.memory_bytes = 8 * MIB;
	world.opts.ssd_bytes = 4 * MIB;
	set_limit(RLIMIT_FSIZE, 4 * MIB);
	assert_refused(&world, FC_ELIMIT, path, "RLIMIT_FSIZE");
	assert_int_equal(access(path, F_OK), -1);
	store_world_deinit(&world);
}

static void a_limit_that_comes_later_fails_saves_and_kills_nobody(void **state)
{
	struct store_world world;
	struct fc_key keys[BLOCKS];
	if (!is_alone(state))
		return;
	make_world(&world);
	store_world_open(&world);
	save_sessions(&world, 1, 0);
	path_keys(100, 0, keys, BLOCKS);
	set_limit(RLIMIT_FSIZE, 4096);
	struct fc_save_result result = store_world_save(&world, 100, 0, keys, BLOCKS);
	assert_int_equal(result.code, FC_EIO);
	assert_text(result.error.text, world.arena);
	assert_text(result.error.text, "write of ");
	assert_text(result.error.text, strerror(EFBIG));
	assert_int_equal(count_whole(&world, 1), SESSIONS);
	assert_true(store_world_stats(&world).io_errors > 0);
	set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
	save_sessions(&world, 200, 0);
	assert_int_equal(count_whole(&world, 200), SESSIONS);
	store_world_deinit(&world);
}

/* ---- RLIMIT_MEMLOCK, RLIMIT_NOFILE ---- */

static void with_64_KiB_of_RLIMIT_MEMLOCK_a_store_works_and_says_what_it_lacks(void **state)
{
	struct store_world world;
	if (!is_alone(state))
		return;
	struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
	make_world(&world);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	assert_true(deny_privileges()); /* root is above the limit */
	check_works(&world);
	/* Where io_uring is refused altogether there is nothing to lock. */
	if (strstr(fc_store_notice(world.store), "io_uring") == NULL)
		assert_text(fc_store_notice(world.store), "RLIMIT_MEMLOCK");
	store_world_deinit(&world);
}

static uint64_t count_descriptors(void)
{
	uint64_t count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void with_too_few_descriptors_the_open_says_so_and_leaks_none(void **state)
{
	struct store_world world;
	if (!is_alone(state))
		return;
	make_world(&world);
	uint64_t before = count_descriptors();
	uint64_t limit = before;
	for (int code = FC_EAGAIN; code != FC_OK; limit++) {
		assert_true(limit < before + 32);
		set_limit(RLIMIT_NOFILE, limit);
		code = store_world_try_open(&world);
		if (code == FC_OK)
			break;
		assert_int_equal(code, FC_ESYSTEM);
		assert_text(world.error.text, strerror(EMFILE));
		assert_int_equal(count_descriptors(), before);
	}
	fc_store_close(world.store);
	assert_true(limit > before);
	assert_int_equal(count_descriptors(), before);
	check_works(&world);
	store_world_deinit(&world);
}

/* ---- io_uring ---- */

static void check_without_uring(int error)
{
	struct store_world world;
	make_world(&world);
	if (!deny_call(SYS_io_uring_setup, error))
		skip_alone("no seccomp here");
	check_works(&world);
	assert_text(fc_store_notice(world.store), "io_uring");
	assert_text(fc_store_notice(world.store), strerror(error));
	store_world_deinit(&world);
}

static void where_io_uring_is_forbidden_a_store_works_with_threads_and_says_so(void **state)
{
	if (is_alone(state))
		check_without_uring(EPERM);
}

static void where_io_uring_is_unknown_a_store_works_with_threads_and_says_so(void **state)
{
	if (is_alone(state))
		check_without_uring(ENOSYS);
}

static void run_program(const char *arguments)
{
	char line[2000];
	snprintf(line, sizeof(line), "'%s' %s", getenv("FLATCAKE"), arguments);
	if (system(line) != 0)
		fail_msg("it failed: %s", line);
}

static void where_io_uring_is_forbidden_the_program_works_and_says_so(void **state)
{
	struct store_world world;
	char arguments[1200];
	char text[1000] = "";
	if (!is_alone(state))
		return;
	if (getenv("FLATCAKE") == NULL)
		skip_alone("FLATCAKE does not name the program");
	make_world(&world);
	if (!deny_call(SYS_io_uring_setup, EPERM))
		skip_alone("no seccomp here");
	snprintf(arguments, sizeof(arguments),
		 "gen --seed 1 --sessions 2 --turns 3 --length 0.05 --output %s/trace.tar.gz >/dev/null", world.dir);
	run_program(arguments);
	snprintf(arguments, sizeof(arguments),
		 "replay %s/trace.tar.gz --dir %s --memory 0 --ssd 64MiB --scale 64 >/dev/null 2>%s/errors", world.dir,
		 world.dir, world.dir);
	run_program(arguments);
	snprintf(arguments, sizeof(arguments), "verify --dir %s >/dev/null", world.dir);
	run_program(arguments);
	snprintf(arguments, sizeof(arguments), "%s/errors", world.dir);
	int fd = open(arguments, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_text(text, "no io_uring");
	store_world_deinit(&world);
}

/* ---- a file that is lost under a running store ---- */

enum loss { TRUNCATED, REMOVED, RENAMED, REPLACED, LOSS_COUNT };

static const char *const loss_texts[LOSS_COUNT] = {"made shorter", "was removed", "lost its name", "lost its name"};

static void lose(const char *path, enum loss loss)
{
	char other[600];
	snprintf(other, sizeof(other), "%s.other", path);
	if (loss == TRUNCATED)
		assert_int_equal(truncate(path, 0), 0);
	if (loss == REMOVED)
		assert_int_equal(unlink(path), 0);
	if (loss == RENAMED || loss == REPLACED)
		assert_int_equal(rename(path, other), 0);
	if (loss != REPLACED)
		return;
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void find_again(const char *path, enum loss loss)
{
	char other[600];
	snprintf(other, sizeof(other), "%s.other", path);
	if (loss == RENAMED || loss == REPLACED)
		assert_int_equal(rename(other, path), 0);
}

/* Nothing that is saved from now on passes for kept, and every refusal says what has happened to which file. */
static void check_nothing_is_kept(struct store_world *world, const char *path, uint64_t turn, enum loss loss)
{
	struct fc_error error = {0};
	struct fc_key keys[BLOCKS];
	for (uint64_t session = 100; session < 104; session++) {
		path_keys(session, 0, keys, BLOCKS);
		struct fc_save_result result = store_world_save(world, session, turn, keys, BLOCKS);
		assert_int_equal(result.code != FC_OK ? result.code : result.durable_code, FC_EIO);
		assert_false(result.is_durable);
		assert_text(result.error.text, path);
		assert_text(result.error.text, loss_texts[loss]);
	}
	assert_int_equal(fc_store_sync(world->store, &error), FC_EIO);
	assert_text(error.text, path);
	assert_text(error.text, loss_texts[loss]);
	assert_true(store_world_stats(world).io_errors > 0);
}

static void check_lost_ssd(enum loss loss)
{
	struct fc_error error = {0};
	struct store_world world;
	make_world(&world);
	world.opts.ssd_bytes = 4 * MIB;
	store_world_open(&world);
	save_sessions(&world, 1, 0);
	assert_int_equal(count_whole(&world, 1), SESSIONS);
	assert_int_equal(fc_store_sync(world.store, &error), FC_OK);
	lose(world.arena, loss);
	/* Nothing waits to become durable, and yet it is no success. */
	assert_int_equal(fc_store_sync(world.store, &error), FC_EIO);
	assert_text(error.text, loss_texts[loss]);
	check_nothing_is_kept(&world, world.arena, 0, loss);
	assert_int_equal(count_whole(&world, 1), loss == TRUNCATED ? 0 : SESSIONS); /* what can be read is read */
	store_world_close(&world);
	find_again(world.arena, loss);
	store_world_open(&world);
	assert_int_equal(count_whole(&world, 1), loss == RENAMED || loss == REPLACED ? SESSIONS : 0);
	assert_int_equal(count_whole(&world, 100), 0);
	save_sessions(&world, 200, 0);
	assert_int_equal(count_whole(&world, 200), SESSIONS);
	assert_int_equal(fc_store_sync(world.store, &error), FC_OK);
	store_world_deinit(&world);
}

static void what_is_saved_to_an_ssd_arena_that_is_lost_is_never_durable(void **state)
{
	if (!is_alone(state))
		return;
	for (int loss = 0; loss < LOSS_COUNT; loss++)
		check_lost_ssd((enum loss)loss);
}

static void with_threads_what_is_saved_to_a_lost_ssd_arena_is_never_durable(void **state)
{
	if (!is_alone(state))
		return;
	if (!deny_call(SYS_io_uring_setup, EPERM))
		skip_alone("no seccomp here");
	for (int loss = 0; loss < LOSS_COUNT; loss++)
		check_lost_ssd((enum loss)loss);
}

/* The save's own writes would make the file as long as it was. */
static void a_write_never_hides_that_the_file_was_short(void **state)
{
	struct store_world world;
	struct fc_key keys[BLOCKS];
	if (!is_alone(state))
		return;
	for (uint64_t session = 1; session < 64; session++) {
		make_world(&world);
		world.opts.ssd_bytes = 4 * MIB;
		store_world_open(&world);
		for (uint64_t before = 1; before < session; before++) {
			path_keys(before, 0, keys, BLOCKS);
			assert_int_equal(store_world_save(&world, before, 0, keys, BLOCKS).durable_code, FC_OK);
		}
		assert_int_equal(truncate(world.arena, 0), 0);
		path_keys(session, 0, keys, BLOCKS);
		struct fc_save_result result = store_world_save(&world, session, 0, keys, BLOCKS);
		assert_int_equal(result.code != FC_OK ? result.code : result.durable_code, FC_EIO);
		assert_text(result.error.text, "made shorter");
		store_world_deinit(&world);
	}
}

/* Another working directory, and another name of the folder, are no loss. */
static void an_arena_that_is_still_there_is_found_by_its_folder(void **state)
{
	struct fc_error error = {0};
	struct store_world world;
	char moved[600], name[600];
	if (!is_alone(state))
		return;
	make_world(&world);
	snprintf(name, sizeof(name), "%s", world.dir);
	snprintf(moved, sizeof(moved), "%s.moved", world.dir);
	assert_int_equal(chdir(world.dir), 0);
	snprintf(world.address, sizeof(world.address), "dir:.");
	store_world_open(&world);
	assert_int_equal(chdir("/"), 0);
	save_sessions(&world, 1, 0);
	assert_int_equal(rename(name, moved), 0);
	save_sessions(&world, 100, 0);
	assert_int_equal(fc_store_sync(world.store, &error), FC_OK);
	assert_int_equal(rename(moved, name), 0);
	store_world_deinit(&world);
}

static void init_memory_world(struct store_world *world, char *path, size_t path_room)
{
	if (access("/dev/shm", W_OK) != 0)
		skip_alone("no /dev/shm to write to");
	make_world(world);
	snprintf(path, path_room, "/dev/shm/fc-limits-%ld", (long)getpid());
	world->opts.memory_path = path;
	world->opts.memory_bytes = 4 * MIB;
}

static void what_is_saved_to_a_memory_arena_that_is_lost_is_never_durable(void **state)
{
	struct store_world world;
	char path[100];
	if (!is_alone(state))
		return;
	for (int loss = 0; loss < LOSS_COUNT; loss++) {
		init_memory_world(&world, path, sizeof(path));
		store_world_open(&world);
		save_sessions(&world, 1, 1);
		lose(path, (enum loss)loss);
		check_nothing_is_kept(&world, path, 1, (enum loss)loss);
		save_sessions(&world, 200, 0); /* SSD */
		assert_int_equal(count_whole(&world, 200), SESSIONS);
		store_world_deinit(&world);
		find_again(path, (enum loss)loss);
		(void)unlink(path);
	}
}

/* The memory arena is a mapping: without a guard the first copy would end in SIGBUS. */
static void a_memory_arena_that_becomes_short_costs_its_sessions_and_nobody_dies(void **state)
{
	struct store_world world;
	struct fc_key keys[BLOCKS];
	char path[100];
	if (!is_alone(state))
		return;
	for (off_t bytes = 0; bytes <= (off_t)MIB; bytes += (off_t)(MIB / 2)) {
		init_memory_world(&world, path, sizeof(path));
		store_world_open(&world);
		save_sessions(&world, 1, 1);
		path_keys(1, 0, keys, BLOCKS);
		assert_int_equal(store_world_load(&world, keys, BLOCKS).bytes[FC_MEMORY], BLOCKS * 1700);
		assert_int_equal(count_whole(&world, 1), SESSIONS);
		assert_int_equal(truncate(path, bytes), 0);
		uint64_t whole = count_whole(&world, 1);
		assert_true(bytes > 0 || whole == 0);
		assert_true(whole == SESSIONS || store_world_stats(&world).checksum_failures > 0);
		/* Nothing can be kept there any more, and it is not claimed; what goes to SSD is as good as ever. */
		path_keys(100, 0, keys, BLOCKS);
		struct fc_save_result result = store_world_save(&world, 100, 1, keys, BLOCKS);
		assert_int_not_equal(result.code != FC_OK ? result.code : result.durable_code, FC_OK);
		assert_false(result.is_durable);
		save_sessions(&world, 200, 0);
		assert_int_equal(count_whole(&world, 200), SESSIONS);
		store_world_deinit(&world);
		unlink(path);
	}
}

static sigjmp_buf elsewhere;

static void on_other_bus_error(int number)
{
	(void)number;
	siglongjmp(elsewhere, 1);
}

/* The program's own mappings are its own business, as they were before. */
static void a_bus_error_elsewhere_goes_to_the_programs_own_handler(void **state)
{
	struct store_world world;
	char path[100];
	if (!is_alone(state))
		return;
	assert_true(signal(SIGBUS, on_other_bus_error) != SIG_ERR);
	init_memory_world(&world, path, sizeof(path));
	store_world_open(&world);
	int fd = memfd_create("other", MFD_CLOEXEC);
	volatile uint8_t *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(fd >= 0 && (const void *)map != MAP_FAILED);
	if (sigsetjmp(elsewhere, 1) == 0) {
		(void)map[0];
		fail_msg("the access beyond the file's end had no consequence");
	}
	save_sessions(&world, 1, 1);
	assert_int_equal(count_whole(&world, 1), SESSIONS);
	store_world_deinit(&world);
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ALONE(an_arena_above_RLIMIT_FSIZE_is_refused_by_name),
		ALONE(a_memory_file_above_RLIMIT_FSIZE_is_refused_by_name),
		ALONE(a_limit_that_comes_later_fails_saves_and_kills_nobody),
		ALONE(with_64_KiB_of_RLIMIT_MEMLOCK_a_store_works_and_says_what_it_lacks),
		ALONE(with_too_few_descriptors_the_open_says_so_and_leaks_none),
		ALONE(where_io_uring_is_forbidden_a_store_works_with_threads_and_says_so),
		ALONE(where_io_uring_is_unknown_a_store_works_with_threads_and_says_so),
		ALONE(where_io_uring_is_forbidden_the_program_works_and_says_so),
		ALONE(what_is_saved_to_an_ssd_arena_that_is_lost_is_never_durable),
		ALONE(with_threads_what_is_saved_to_a_lost_ssd_arena_is_never_durable),
		ALONE(a_write_never_hides_that_the_file_was_short),
		ALONE(an_arena_that_is_still_there_is_found_by_its_folder),
		ALONE(what_is_saved_to_a_memory_arena_that_is_lost_is_never_durable),
		ALONE(a_memory_arena_that_becomes_short_costs_its_sessions_and_nobody_dies),
		ALONE(a_bus_error_elsewhere_goes_to_the_programs_own_handler),
	};
	return alone_main(argc, argv, tests, fc_array_len(tests));
}

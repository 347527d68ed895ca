/* A writer is killed with SIGKILL at a random moment, again and again; each time what it leaves is looked at twice,
 * read-only as `flatcake verify` does and through the public interface, and everything that it was told is durable must
 * be there (promise.h).
 *
 *     KILLS      how many (16); `make kill` asks for 200
 *     TMPDIR     the file system
 *     FC_SMALL   set where that file system is smaller than the arenas of WRITER_SPARSE (64 MiB): they are made sparse
 *                there, another file takes and gives back room, and writes must meet a full disk */
#define _GNU_SOURCE
#include "base/random.h"
#include "lib/hang.h"
#include "real/promise.h"
#include "real/writer.h"
#include "store/inspect.h"
#include "store/store_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#define MORE_KILLS 50 /* times as many at most */
#define ROUNDS_PER_FOLDER 10
#define RECORDS_OF_A_FULL_ARENA 250 /* of WRITER_TIGHT, twice over */

static struct fc_random chance;

struct campaign {
	struct writer_opts opts;
	struct fc_geometry geometry;
	struct fc_store_opts store_opts;
	char dir[256];
	char memory_path[300];
	char ballast[300];
	struct promises promises;
	uint64_t kills, folders, whole_count, early_count;
	uint64_t full_disk_count; /* saves that the disk had no room for */
};

static const char *world_name(enum writer_world world)
{
	static const char *const names[] = {"roomy", "tight", "memory", "sparse"};
	return names[world];
}

/* ---- a folder for some rounds ---- */

static void remove_folder(struct campaign *campaign)
{
	if (campaign->dir[0] == 0)
		return;
	store_world_remove_files(campaign->dir);
	unlink(campaign->memory_path);
	unlink(campaign->ballast);
	campaign->dir[0] = 0;
}

/* As an operator's `truncate` or a copy program leaves it: no space is set aside for it. */
static void make_sparse_arena(const struct campaign *campaign)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/ssd.arena", campaign->dir);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)campaign->store_opts.ssd_bytes), 0);
	close(fd);
}

static void make_folder(struct campaign *campaign)
{
	const char *base = getenv("TMPDIR");
	remove_folder(campaign);
	promises_forget(&campaign->promises);
	snprintf(campaign->dir, sizeof(campaign->dir), "%s/fc-kill-XXXXXX", base != NULL ? base : "/tmp");
	if (mkdtemp(campaign->dir) == NULL)
		fail_msg("%s: mkdtemp: %s", campaign->dir, strerror(errno));
	snprintf(campaign->memory_path, sizeof(campaign->memory_path), "/dev/shm/fc-kill-%ld", (long)getpid());
	snprintf(campaign->ballast, sizeof(campaign->ballast), "%s.ballast", campaign->dir);
	campaign->opts.dir = campaign->dir;
	campaign->opts.memory_path = campaign->memory_path;
	campaign->opts.is_hybrid = campaign->folders % 2 == 1;
	campaign->opts.is_consolidating = campaign->folders % 4 < 2;
	campaign->opts.session_first = fc_max_u64(campaign->promises.session_end, WRITER_LANES);
	campaign->folders++;
	campaign->geometry = writer_geometry(&campaign->opts);
	writer_store_opts(&campaign->opts, &campaign->geometry, &campaign->store_opts);
	if (campaign->opts.world == WRITER_SPARSE)
		make_sparse_arena(campaign);
}

/* ---- a writer's life ---- */

static void check_record(struct campaign *campaign, const struct writer_record *record)
{
	if (record->event != WRITER_REFUSED)
		return;
	bool is_full_disk = campaign->opts.world == WRITER_SPARSE && record->session > 0 && record->code == FC_EFULL;
	if (!is_full_disk)
		fail_msg("%s: the writer was refused (%s): %s", world_name(campaign->opts.world),
			 fc_code_text(record->code), record->text);
	campaign->full_disk_count++;
}

/* False at the pipe's end. */
static bool next_record(struct campaign *campaign, int fd, uint32_t *event)
{
	struct writer_record record;
	struct pollfd pipe = {.fd = fd, .events = POLLIN};
	if (poll(&pipe, 1, HANG_MS) != 1)
		fail_msg("%s: the writer says nothing and does not end", world_name(campaign->opts.world));
	ssize_t count = read(fd, &record, sizeof(record));
	if (count == 0)
		return false;
	assert_int_equal(count, sizeof(record));
	promises_note(&campaign->promises, &record);
	check_record(campaign, &record);
	*event = record.event;
	return true;
}

static void expect_record(struct campaign *campaign, int fd, uint32_t *event)
{
	if (!next_record(campaign, fd, event))
		fail_msg("%s: the writer has ended by itself", world_name(campaign->opts.world));
}

static void pause_us(uint64_t max_us)
{
	uint64_t us = fc_random_below(&chance, max_us + 1);
	struct timespec pause = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
	nanosleep(&pause, NULL);
}

/* In a small file system another file takes the room that is left, but for `room_bytes`. */
static void take_room(struct campaign *campaign, uint64_t room_bytes)
{
	struct statvfs space;
	int fd = open(campaign->ballast, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fstatvfs(fd, &space), 0);
	uint64_t left_bytes = (uint64_t)space.f_bavail * space.f_frsize;
	if (left_bytes > room_bytes && fallocate(fd, 0, 0, (off_t)(left_bytes - room_bytes)) != 0)
		assert_int_equal(errno, ENOSPC);
	close(fd);
}

static bool is_first_round(const struct campaign *campaign)
{
	return campaign->kills % ROUNDS_PER_FOLDER == 0;
}

/* The disk fills up while the writer runs. In the first round of a folder it is waited for, in others it may happen, or
 * there is room again. */
static void fill_disk(struct campaign *campaign, int fd)
{
	uint32_t event = 0;
	bool is_waited_for = is_first_round(campaign);
	while (event != WRITER_OPENED)
		expect_record(campaign, fd, &event);
	unlink(campaign->ballast);
	if (is_waited_for || fc_random_below(&chance, 3) > 0)
		take_room(campaign, fc_random_below(&chance, is_waited_for ? MIB : 4 * MIB));
	while (is_waited_for && event != WRITER_REFUSED)
		expect_record(campaign, fd, &event);
}

/* Some are killed at any moment of their beginning, the others after some records and a little more. */
static void wait_for_the_moment(struct campaign *campaign, int fd)
{
	uint64_t record_count = fc_random_below(&chance, 5) == 0 ? 0 : fc_random_below(&chance, 60);
	uint32_t event;
	if (campaign->opts.world == WRITER_TIGHT && is_first_round(campaign))
		record_count = RECORDS_OF_A_FULL_ARENA;
	if (campaign->opts.world == WRITER_SPARSE)
		fill_disk(campaign, fd);
	else if (record_count == 0)
		pause_us(30000);
	for (uint64_t i = 0; i < record_count; i++)
		expect_record(campaign, fd, &event);
	pause_us(4000);
}

static void let_write_and_kill(struct campaign *campaign)
{
	int fds[2], status;
	uint32_t event;
	assert_int_equal(pipe(fds), 0);
	campaign->opts.pipe_fd = fds[1];
	campaign->opts.is_uring_denied = fc_random_below(&chance, 4) == 0;
	pid_t writer = writer_start(&campaign->opts);
	assert_true(writer > 0);
	close(fds[1]);
	wait_for_the_moment(campaign, fds[0]);
	assert_int_equal(kill(writer, SIGKILL), 0);
	while (next_record(campaign, fds[0], &event))
		;
	close(fds[0]);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("%s: the writer ended with status 0x%x", world_name(campaign->opts.world), (unsigned)status);
	campaign->opts.session_first = fc_max_u64(campaign->promises.session_end, WRITER_LANES);
}

/* ---- what it leaves ---- */

static bool has_promises(const struct campaign *campaign)
{
	for (uint64_t i = 0; i < campaign->promises.session_end; i++)
		if (campaign->promises.sessions[i].durable_blocks > 0)
			return true;
	return false;
}

/* Nothing that the tables name may be damaged, be it promised or not. */
static void inspect(struct campaign *campaign)
{
	struct fc_inspect *inspect = NULL;
	struct fc_error error = {0};
	struct fc_scan scan = {0};
	struct fc_probe_opts opts = {.dir = campaign->dir, .memory_path = campaign->store_opts.memory_path};
	int code = fc_inspect_open(&inspect, &opts, &error);
	bool is_early = code == FC_ENOENT || (code == FC_EFORMAT && strstr(error.text, "nothing was ever") != NULL) ||
			(code == FC_EFORMAT && strstr(error.text, "it ends before") != NULL);
	if (is_early && !has_promises(campaign)) {
		campaign->early_count++;
		return;
	}
	if (code != FC_OK)
		fail_msg("inspect: %s", error.text);
	if (fc_inspect_scan(inspect, &scan, &error) != FC_OK)
		fail_msg("scan: %s", error.text);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (scan.media[medium].slices_damaged > 0)
			fail_msg("%llu slices of medium %d are damaged",
				 (unsigned long long)scan.media[medium].slices_damaged, medium);
	fc_inspect_close(inspect);
}

/* Returns whether the folder is worth another round. */
static bool check_kept(struct campaign *campaign)
{
	struct fc_error error = {0};
	struct promise_witness witness = {0};
	struct engine engine;
	struct fc_stats stats;
	char address[300];
	snprintf(address, sizeof(address), "dir:%s", campaign->dir);
	if (fc_store_open(&witness.store, address, &campaign->store_opts, &error) != FC_OK)
		fail_msg("after the kill: %s", error.text);
	engine_init(&engine, &campaign->geometry, WRITER_BLOCKS, 1);
	witness.engine = &engine;
	assert_int_equal(fc_kv_register(witness.store, engine.layers, &witness.kv, &error), FC_OK);
	campaign->whole_count += promises_check(&campaign->promises, &witness, campaign->opts.world == WRITER_TIGHT);
	assert_int_equal(fc_store_stats(witness.store, &stats), FC_OK);
	assert_int_equal(stats.checksum_failures, 0);
	assert_int_equal(stats.io_errors, 0);
	fc_kv_free(witness.kv);
	fc_store_close(witness.store);
	engine_deinit(&engine);
	bool has_room = true;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		has_room &= stats.media[medium].bytes_used <= stats.media[medium].bytes / 2;
	return has_room || campaign->opts.world == WRITER_TIGHT;
}

static void on_alarm(int number)
{
	static const char text[] = "a round has not ended after half an hour: the store or the writer hangs\n";
	(void)number;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

/* A campaign in which it never happened has shown nothing about it. */
static bool has_happened(const struct campaign *campaign)
{
	const struct promises *promises = &campaign->promises;
	return promises->durable_count > 0 &&
	       (campaign->opts.world != WRITER_SPARSE || campaign->full_disk_count > 0) &&
	       (campaign->opts.world != WRITER_TIGHT || promises->reclaimed_count > 0);
}

/* Where a slow machine's writers are killed before they get that far, more follow. */
static void run(enum writer_world world, uint64_t kills)
{
	struct campaign *campaign = calloc(1, sizeof(*campaign));
	bool has_room = false;
	assert_non_null(campaign);
	campaign->opts.world = world;
	for (; campaign->kills < kills || (!has_happened(campaign) && campaign->kills < MORE_KILLS * kills);
	     campaign->kills++) {
		alarm(HANG_S);
		if (!has_room || campaign->kills % ROUNDS_PER_FOLDER == 0)
			make_folder(campaign);
		let_write_and_kill(campaign);
		inspect(campaign);
		has_room = check_kept(campaign);
	}
	alarm(0);
	remove_folder(campaign);
	const struct promises *promises = &campaign->promises;
	print_message("%s: %llu kills in %llu folders; %llu saves acknowledged as durable, %llu refused, %llu by a "
		      "full disk; %llu sessions found whole, %llu reclaimed; %llu kills before anything was stored\n",
		      world_name(world), (unsigned long long)campaign->kills, (unsigned long long)campaign->folders,
		      (unsigned long long)promises->durable_count, (unsigned long long)promises->refused_count,
		      (unsigned long long)campaign->full_disk_count, (unsigned long long)campaign->whole_count,
		      (unsigned long long)promises->reclaimed_count, (unsigned long long)campaign->early_count);
	assert_true(has_happened(campaign));
	promises_deinit(&campaign->promises);
	free(campaign);
}

static uint64_t kills_of(enum writer_world world)
{
	const char *text = getenv("KILLS");
	uint64_t kills = text != NULL ? strtoull(text, NULL, 10) : 16;
	bool is_small = getenv("FC_SMALL") != NULL;
	/* A small disk belongs to the world that needs one, but for a quarter with arenas that are wholly set aside. */
	static const uint64_t shares[2][WRITER_WORLD_COUNT] = {
		{[WRITER_ROOMY] = 2, [WRITER_TIGHT] = 1, [WRITER_MEMORY] = 1},
		{[WRITER_TIGHT] = 1, [WRITER_SPARSE] = 3},
	};
	return kills * shares[is_small][world] / 4;
}

static void a_killed_writer_leaves_all_that_was_durable(void **state)
{
	enum writer_world world = *(const enum writer_world *)*state;
	uint64_t kills = kills_of(world);
	if (kills == 0 || (world == WRITER_MEMORY && access("/dev/shm", W_OK) != 0))
		skip();
	run(world, kills);
}

#define IN_WORLD(number)                                                                                               \
	{                                                                                                              \
		.name = "a_killed_writer_leaves_all_that_was_durable, " #number,                                       \
		.test_func = a_killed_writer_leaves_all_that_was_durable,                                              \
		.initial_state = &(enum writer_world){number},                                                         \
	}

int main(int argc, char **argv)
{
	writer_main(argc, argv);
	const struct CMUnitTest tests[] = {
		IN_WORLD(WRITER_ROOMY),
		IN_WORLD(WRITER_TIGHT),
		IN_WORLD(WRITER_MEMORY),
		IN_WORLD(WRITER_SPARSE),
	};
	uint64_t seed = 0;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return 1;
	fc_random_init(&chance, seed);
	if (signal(SIGALRM, on_alarm) == SIG_ERR)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

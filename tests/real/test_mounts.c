/* Does a store work, or say why not, where its folder lies on tmpfs, on overlayfs, on a read-only mount, in a folder
 * without permission, or on a file system that is full? Each test is a process in a mount namespace of its own, with a
 * user namespace where it is not root; what it mounts goes with it. */
#define _GNU_SOURCE
#include "real/alone.h"
#include "real/deny.h"
#include "real/namespaces.h"
#include "real/stories.h"
#include "store/inspect.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

/* ---- mounts ---- */

static void mount_tmpfs(const char *path, const char *options)
{
	if (mount("none", path, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
		skip_alone("tmpfs cannot be mounted here");
}

static void make_dir(char *path, size_t room, const char *parent, const char *name)
{
	assert_true(snprintf(path, room, "%s/%s", parent, name) < (int)room);
	assert_int_equal(mkdir(path, 0700), 0);
}

/* The world's folder is the mount point from now on. */
static void make_world_on_tmpfs(struct store_world *world, const char *options)
{
	enter_namespace();
	make_world(world);
	mount_tmpfs(world->dir, options);
}

static void remove_world(struct store_world *world)
{
	if (world->store != NULL)
		store_world_close(world);
	engine_deinit(&world->engine);
	store_world_remove_files(world->dir);
	(void)umount2(world->dir, MNT_DETACH);
	assert_int_equal(rmdir(world->dir), 0);
}

static void on_tmpfs_a_store_works(void **state)
{
	struct store_world world;
	if (!is_alone(state))
		return;
	make_world_on_tmpfs(&world, "size=32m,mode=0700");
	check_works(&world);
	remove_world(&world);
}

/* ---- overlayfs ---- */

static bool mount_overlay(const char *base, const char *lower, const char *merged)
{
	char upper[400], work[400], options[1300];
	make_dir(upper, sizeof(upper), base, "changes");
	make_dir(work, sizeof(work), base, "work");
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work);
	if (mount("overlay", merged, "overlay", 0, options) == 0)
		return true;
	strcat(options, ",userxattr");
	return mount("overlay", merged, "overlay", 0, options) == 0;
}

static void check_holder_is_named(struct store_world *world)
{
	struct fc_store *second;
	char pid[64];
	assert_int_equal(fc_store_open(&second, world->address, &world->opts, &world->error), FC_EBUSY);
	snprintf(pid, sizeof(pid), "held by process %ld (", (long)getpid());
	assert_text(world->error.text, pid);
}

/* An arena that is made there, and one that comes from the layer below and is copied up when it is opened. */
static void on_overlayfs_a_store_works_and_a_second_one_is_told_who_holds_it(void **state)
{
	struct store_world world;
	char base[256], upper[300], lower[400];
	if (!is_alone(state))
		return;
	enter_namespace();
	for (int is_below = 0; is_below < 2; is_below++) {
		make_world(&world);
		/* The upper layer is a tmpfs, for the folder may lie on an overlay itself. The lower one is on it as
		 * well, or on another file system, where a file's device is not the one that /proc/locks shows. */
		snprintf(base, sizeof(base), "%s", world.dir);
		make_dir(upper, sizeof(upper), base, "upper");
		mount_tmpfs(upper, "size=64m,mode=0700");
		make_dir(lower, sizeof(lower), is_below ? base : upper, "lower");
		snprintf(world.dir, sizeof(world.dir), "%s", lower);
		snprintf(world.arena, sizeof(world.arena), "%s/ssd.arena", lower);
		snprintf(world.address, sizeof(world.address), "dir:%s", lower);
		if (is_below) {
			store_world_open(&world);
			save_sessions(&world, 1, 0);
			store_world_close(&world);
		}
		if (!mount_overlay(upper, lower, lower)) {
			(void)umount2(upper, MNT_DETACH);
			(void)rmdir(upper);
			(void)rmdir(base);
			skip_alone("overlayfs cannot be mounted here");
		}
		store_world_open(&world);
		assert_int_equal(count_whole(&world, 1), is_below ? SESSIONS : 0);
		check_holder_is_named(&world);
		store_world_close(&world);
		check_works(&world);
		store_world_close(&world);
		engine_deinit(&world.engine);
		assert_int_equal(umount2(lower, MNT_DETACH), 0);
		if (is_below)
			store_world_remove_files(lower);
		assert_int_equal(umount2(upper, MNT_DETACH), 0);
		assert_int_equal(rmdir(upper), 0);
		assert_int_equal(rmdir(base), 0);
	}
}

/* ---- nothing may be written ---- */

/* As `flatcake stat` and `verify` do. */
static void check_can_be_read(const struct store_world *world)
{
	struct fc_inspect *inspect = NULL;
	struct fc_error error = {0};
	struct fc_scan scan = {0};
	struct fc_probe_opts opts = {.dir = world->dir};
	if (fc_inspect_open(&inspect, &opts, &error) != FC_OK)
		fail_msg("inspect: %s", error.text);
	assert_int_equal(fc_inspect_scan(inspect, &scan, &error), FC_OK);
	assert_true(scan.media[FC_SSD].slices >= SESSIONS * BLOCKS);
	assert_int_equal(scan.media[FC_SSD].slices_damaged, 0);
	fc_inspect_close(inspect);
}

static void check_program_reads(const struct store_world *world, const char *command)
{
	const char *program = getenv("FLATCAKE");
	char line[1000];
	if (program == NULL)
		return;
	snprintf(line, sizeof(line), "'%s' %s --dir '%s' >/dev/null", program, command, world->dir);
	assert_int_equal(system(line), 0);
}

static void save_and_close(struct store_world *world)
{
	store_world_open(world);
	save_sessions(world, 1, 0);
	store_world_close(world);
}

static void on_a_read_only_mount_a_store_is_refused_and_can_be_read(void **state)
{
	struct store_world world;
	if (!is_alone(state))
		return;
	make_world_on_tmpfs(&world, "size=32m,mode=0700");
	save_and_close(&world);
	assert_int_equal(mount(NULL, world.dir, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL), 0);
	assert_refused(&world, FC_ESYSTEM, world.arena, strerror(EROFS));
	check_can_be_read(&world);
	check_program_reads(&world, "stat");
	check_program_reads(&world, "sessions");
	check_program_reads(&world, "verify");
	snprintf(world.address, sizeof(world.address), "dir:%s/new", world.dir);
	assert_refused(&world, FC_ESYSTEM, world.dir, strerror(EROFS));
	assert_int_equal(mount(NULL, world.dir, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, NULL), 0);
	remove_world(&world);
}

static void without_permission_a_store_is_refused_by_name_and_what_can_be_read_is(void **state)
{
	struct store_world world;
	if (!is_alone(state))
		return;
	make_world(&world);
	assert_true(deny_privileges());
	assert_int_equal(chmod(world.dir, 0500), 0);
	assert_refused(&world, FC_ESYSTEM, world.arena, strerror(EACCES));
	assert_int_equal(chmod(world.dir, 0), 0);
	assert_refused(&world, FC_ESYSTEM, world.arena, strerror(EACCES));
	assert_int_equal(chmod(world.dir, 0700), 0);
	save_and_close(&world);
	assert_int_equal(chmod(world.arena, 0400), 0);
	assert_refused(&world, FC_ESYSTEM, world.arena, strerror(EACCES));
	check_can_be_read(&world);
	assert_int_equal(chmod(world.arena, 0), 0);
	assert_refused(&world, FC_ESYSTEM, world.arena, strerror(EACCES));
	assert_int_equal(chmod(world.arena, 0600), 0);
	store_world_open(&world);
	assert_int_equal(count_whole(&world, 1), SESSIONS);
	store_world_deinit(&world);
}

/* ---- no room ---- */

static void make_sparse(const char *path, uint64_t bytes)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

static void a_memory_arena_that_its_tmpfs_has_no_room_for_is_refused_at_open(void **state)
{
	struct store_world world;
	char path[300];
	if (!is_alone(state))
		return;
	make_world_on_tmpfs(&world, "size=6m,mode=0700");
	snprintf(path, sizeof(path), "%s/memory", world.dir);
	world.opts.ssd_bytes = 4 * MIB;
	world.opts.memory_bytes = 4 * MIB;
	world.opts.memory_path = path;
	assert_refused(&world, FC_EFULL, path, "needs 4194304 more bytes");
	assert_int_equal(access(path, F_OK), -1);
	/* A file of the right size, as `truncate` makes it, has no more room than none: the first touch would tell. */
	make_sparse(path, 4 * MIB);
	assert_refused(&world, FC_EFULL, path, "4194304 of its 4194304 bytes are holes");
	assert_int_equal(mount(NULL, world.dir, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, "size=16m"), 0);
	store_world_open(&world);
	struct statvfs space;
	assert_int_equal(statvfs(world.dir, &space), 0);
	assert_true(space.f_bfree * space.f_frsize <= 8 * MIB);
	save_sessions(&world, 1, 1);
	assert_int_equal(count_whole(&world, 1), SESSIONS);
	remove_world(&world);
}

static void fill_up(const char *path, uint64_t room_bytes)
{
	struct statvfs space;
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fstatvfs(fd, &space), 0);
	uint64_t bytes = (uint64_t)space.f_bavail * space.f_frsize - room_bytes;
	assert_int_equal(fallocate(fd, 0, 0, (off_t)bytes), 0);
	close(fd);
}

static void an_arena_that_is_set_aside_does_not_notice_that_the_disk_is_full(void **state)
{
	struct store_world world;
	char ballast[300];
	if (!is_alone(state))
		return;
	make_world_on_tmpfs(&world, "size=20m,mode=0700");
	snprintf(ballast, sizeof(ballast), "%s/ballast", world.dir);
	store_world_open(&world);
	fill_up(ballast, 0);
	for (uint64_t i = 0; i < 100; i++)
		save_sessions(&world, 1 + i * SESSIONS, 0);
	assert_int_equal(count_whole(&world, 1 + 99 * SESSIONS), SESSIONS);
	remove_world(&world);
}

/* Saves until the disk has no room; returns how many sessions were acknowledged as durable. */
static uint64_t save_until_full(struct store_world *world)
{
	struct fc_key keys[BLOCKS];
	for (uint64_t session = 1;; session++) {
		assert_true(session < 1000);
		path_keys(session, 0, keys, BLOCKS);
		struct fc_save_result result = store_world_save(world, session, 0, keys, BLOCKS);
		if (result.code == FC_OK && result.durable_code == FC_OK)
			continue;
		assert_int_equal(result.code != FC_OK ? result.code : result.durable_code, FC_EFULL);
		if (result.code != FC_OK)
			assert_text(result.error.text, "file system or device is full");
		return session - 1;
	}
}

static void a_disk_that_fills_up_refuses_saves_until_there_is_room_again(void **state)
{
	struct store_world world;
	struct fc_key keys[BLOCKS];
	char ballast[300];
	if (!is_alone(state))
		return;
	make_world_on_tmpfs(&world, "size=24m,mode=0700");
	snprintf(ballast, sizeof(ballast), "%s/ballast", world.dir);
	make_sparse(world.arena, world.opts.ssd_bytes);
	store_world_open(&world);
	assert_text(fc_store_notice(world.store), "no space is set aside for");
	fill_up(ballast, MIB);
	uint64_t count = save_until_full(&world);
	assert_true(count > 0);
	for (int is_reopened = 0; is_reopened < 2; is_reopened++) {
		for (uint64_t session = 1; session <= count; session++) {
			path_keys(session, 0, keys, BLOCKS);
			assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, BLOCKS);
		}
		store_world_close(&world);
		store_world_open(&world); /* on a disk that is full still */
	}
	assert_int_equal(unlink(ballast), 0);
	save_sessions(&world, 2000, 0);
	assert_int_equal(count_whole(&world, 2000), SESSIONS);
	remove_world(&world);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ALONE(on_tmpfs_a_store_works),
		ALONE(on_overlayfs_a_store_works_and_a_second_one_is_told_who_holds_it),
		ALONE(on_a_read_only_mount_a_store_is_refused_and_can_be_read),
		ALONE(without_permission_a_store_is_refused_by_name_and_what_can_be_read_is),
		ALONE(a_memory_arena_that_its_tmpfs_has_no_room_for_is_refused_at_open),
		ALONE(an_arena_that_is_set_aside_does_not_notice_that_the_disk_is_full),
		ALONE(a_disk_that_fills_up_refuses_saves_until_there_is_room_again),
	};
	return alone_main(argc, argv, tests, fc_array_len(tests));
}

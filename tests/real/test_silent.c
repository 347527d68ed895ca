/* What becomes of a store, and of flatcaked, when the file system of its arena does not answer? Whatever is expected
 * here is expected while it is silent: a call that waits for it would end by the test's own limit. */
#define _GNU_SOURCE
#include "real/alone.h"
#include "real/deny.h"
#include "real/silent_fs.h"
#include "real/stories.h"

#include <sys/syscall.h>

#define SECOND_NS 1000000000ull
#define ON_SSD 1
#define IN_MEMORY 2

struct scene {
	struct silent_fs fs;
	struct store_world world;
	struct fc_key keys[2][BLOCKS];
};

static void save_one(struct scene *scene, uint64_t session)
{
	struct fc_key *keys = scene->keys[session - 1];
	path_keys(session, 0, keys, BLOCKS);
	struct fc_save_result result = store_world_save(&scene->world, session, session == IN_MEMORY, keys, BLOCKS);
	assert_int_equal(result.code, FC_OK);
	assert_int_equal(result.durable_code, FC_OK);
	assert_int_equal(result.bytes_written[FC_SSD] > 0, session == ON_SSD);
}

static void begin(struct scene *scene)
{
	silent_fs_mount(&scene->fs);
	make_world(&scene->world);
	scene->world.opts.ssd_path = scene->fs.arena;
	scene->world.opts.memory_bytes = 4 * MIB;
	scene->world.opts.io_timeout_ns = 3 * SECOND_NS;
	store_world_open(&scene->world);
	save_one(scene, ON_SSD);
	save_one(scene, IN_MEMORY);
}

/* What was left behind lets go of the arena when it has been answered. */
static void open_again(struct store_world *world)
{
	int code;
	while ((code = store_world_try_open(world)) == FC_EBUSY)
		usleep(10000);
	if (code != FC_OK)
		fail_msg("%s", world->error.text);
	assert_int_equal(fc_kv_register(world->store, world->engine.layers, &world->kv, &world->error), 0);
}

static void end(struct scene *scene)
{
	if (scene->world.store != NULL)
		store_world_close(&scene->world);
	engine_deinit(&scene->world.engine);
	store_world_remove_files(scene->world.dir);
	silent_fs_unmount(&scene->fs);
}

static struct fc_load_result load(struct scene *scene, uint64_t session, uint64_t timeout_ns)
{
	struct fc_load_opts opts = store_world_load_opts(&scene->world, scene->keys[session - 1], BLOCKS);
	struct fc_load_result result;
	opts.timeout_ns = timeout_ns;
	struct fc_load *request = store_world_submit_load(&scene->world, &opts);
	(void)fc_load_wait(request, &result);
	fc_load_free(request);
	return result;
}

static void check_silence(struct scene *scene)
{
	silent_fs_stop(&scene->fs);
	struct fc_load_result timed = load(scene, ON_SSD, SECOND_NS);
	assert_int_equal(timed.code, FC_ETIMEOUT);
	assert_int_equal(timed.blocks, 0);
	assert_text(timed.error.text, "timeout_ns");
	struct fc_load_result from_memory = load(scene, IN_MEMORY, 0);
	assert_int_equal(from_memory.code, FC_OK);
	assert_int_equal(from_memory.blocks, BLOCKS);
	(void)store_world_stats(&scene->world);
	struct fc_load_result untimed = load(scene, ON_SSD, 0);
	assert_int_equal(untimed.code, FC_ETIMEOUT);
	assert_text(untimed.error.text, "does not answer");
	struct fc_key keys[BLOCKS];
	path_keys(3, 0, keys, BLOCKS);
	struct fc_save_result save = store_world_save(&scene->world, 3, 0, keys, BLOCKS);
	assert_true(save.code == FC_ETIMEOUT || save.durable_code == FC_ETIMEOUT);
	assert_text(save.error.text, "does not answer");
	assert_int_equal(load(scene, IN_MEMORY, 0).blocks, BLOCKS);
	store_world_close(&scene->world);
	silent_fs_go_on(&scene->fs);
	open_again(&scene->world);
	assert_int_equal(load(scene, ON_SSD, 0).blocks, BLOCKS);
}

static void a_silent_file_system_holds_up_no_deadline_no_memory_and_no_close(void **state)
{
	struct scene scene;
	if (!is_alone(state))
		return;
	begin(&scene);
	check_silence(&scene);
	end(&scene);
}

static void nor_does_it_without_io_uring(void **state)
{
	struct scene scene;
	if (!is_alone(state))
		return;
	if (!deny_call(SYS_io_uring_setup, EPERM))
		skip_alone("no seccomp here");
	begin(&scene);
	check_silence(&scene);
	end(&scene);
}

static void a_sync_that_is_not_answered_is_waited_for_as_long_as_documented(void **state)
{
	struct scene scene;
	struct fc_key keys[BLOCKS];
	struct fc_save_result result;
	if (!is_alone(state))
		return;
	begin(&scene);
	silent_fs_hold_syncs(&scene.fs, true);
	path_keys(3, 0, keys, BLOCKS);
	struct fc_save_opts opts = store_world_save_opts(&scene.world, 3, 0, keys, BLOCKS);
	engine_fill(&scene.world.engine, keys, BLOCKS);
	struct fc_save *save = store_world_submit_save(&scene.world, &opts);
	assert_int_equal(fc_save_wait(save, false, &result), FC_OK);
	assert_int_equal(fc_store_sync(scene.world.store, &scene.world.error), FC_ETIMEOUT);
	assert_text(scene.world.error.text, "does not answer");
	assert_int_equal(fc_save_wait(save, true, &result), FC_ETIMEOUT);
	fc_save_free(save);
	assert_int_equal(store_world_load(&scene.world, keys, BLOCKS).blocks, BLOCKS); /* visible all the same */
	struct fc_key others[BLOCKS];
	path_keys(4, 0, others, BLOCKS);
	assert_int_equal(store_world_save(&scene.world, 4, 0, others, BLOCKS).code, FC_ETIMEOUT);
	store_world_close(&scene.world);
	assert_int_equal(store_world_try_open(&scene.world), FC_EBUSY);
	assert_text(scene.world.error.text, "still waits for I/O");
	silent_fs_hold_syncs(&scene.fs, false);
	open_again(&scene.world);
	assert_int_equal(store_world_load(&scene.world, keys, BLOCKS).blocks, BLOCKS);
	end(&scene);
}

static void an_open_that_is_not_answered_is_given_up(void **state)
{
	struct scene scene;
	if (!is_alone(state))
		return;
	begin(&scene);
	store_world_close(&scene.world);
	silent_fs_stop(&scene.fs);
	assert_int_equal(store_world_try_open(&scene.world), FC_ETIMEOUT);
	assert_text(scene.world.error.text, scene.fs.arena);
	silent_fs_go_on(&scene.fs);
	open_again(&scene.world);
	assert_int_equal(load(&scene, ON_SSD, 0).blocks, BLOCKS);
	end(&scene);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		ALONE(a_silent_file_system_holds_up_no_deadline_no_memory_and_no_close),
		ALONE(nor_does_it_without_io_uring),
		ALONE(a_sync_that_is_not_answered_is_waited_for_as_long_as_documented),
		ALONE(an_open_that_is_not_answered_is_given_up),
	};
	return alone_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

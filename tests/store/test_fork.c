/* A process forks while a store is open: the child cannot use it and keeps nothing of it, and the parent notices
 * nothing. */
#include "lib/hang.h"
#include "store/store_world.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define BLOCKS 12

/* Runs `child` in a child, which an alarm ends: a call that never returns must not look like a test that goes on. */
static void expect_child_succeeds(bool (*child)(struct store_world *world), struct store_world *world)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(HANG_S);
		_exit(child(world) ? 0 : 1);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool every_call_is_refused(struct store_world *world)
{
	struct fc_key keys[BLOCKS];
	struct fc_stats stats;
	struct fc_match match;
	struct fc_event event;
	struct fc_load *load = NULL;
	struct fc_save *save = NULL;
	uint64_t blocks;
	path_keys(1, 0, keys, BLOCKS);
	struct fc_load_opts load_opts = store_world_load_opts(world, keys, BLOCKS);
	struct fc_save_opts save_opts = store_world_save_opts(world, 1, 0, keys, BLOCKS);
	bool is_right = fc_load_submit(world->store, &load_opts, &load, &world->error) == FC_ECANCELED &&
			strstr(world->error.text, "parent") != NULL && load == NULL;
	is_right &= fc_save_submit(world->store, &save_opts, &save, &world->error) == FC_ECANCELED && save == NULL;
	is_right &= fc_store_stats(world->store, &stats) == FC_ECANCELED;
	is_right &= fc_match(world->store, keys, BLOCKS, &match) == FC_ECANCELED;
	is_right &= fc_session_blocks(world->store, (struct fc_session_id){0, 1}, &blocks) == FC_ECANCELED;
	is_right &= fc_store_sync(world->store, &world->error) == FC_ECANCELED;
	is_right &= fc_ready_take(world->store, &load) == FC_ECANCELED;
	is_right &= fc_store_events(world->store, &event, 1) == 0;
	store_world_close(world);
	return is_right;
}

static void a_child_is_refused_and_never_hangs(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	path_keys(1, 0, keys, BLOCKS);
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	assert_int_equal(store_world_save(&world, 1, 0, keys, BLOCKS).code, 0);
	expect_child_succeeds(every_call_is_refused, &world);
	assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, BLOCKS); /* the parent's goes on */
	store_world_deinit(&world);
}

static struct fc_load *load_of_the_parent;
static struct fc_save *save_of_the_parent;

static bool requests_are_freed(struct store_world *world)
{
	bool is_right =
		fc_load_wait(load_of_the_parent, NULL) <= 0 && fc_save_wait(save_of_the_parent, true, NULL) <= 0;
	fc_load_free(load_of_the_parent);
	fc_save_free(save_of_the_parent);
	store_world_close(world);
	return is_right;
}

static void requests_of_the_parent_can_be_freed_in_the_child(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS], more[BLOCKS];
	struct fc_load_result result;
	path_keys(1, 0, keys, BLOCKS);
	path_keys(2, 0, more, BLOCKS);
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	assert_int_equal(store_world_save(&world, 1, 0, keys, BLOCKS).code, 0);
	for (int round = 0; round < 20; round++) { /* from under way to ended */
		struct fc_load_opts load_opts = store_world_load_opts(&world, keys, BLOCKS);
		struct fc_save_opts save_opts = store_world_save_opts(&world, 2, 0, more, BLOCKS);
		load_of_the_parent = store_world_submit_load(&world, &load_opts);
		save_of_the_parent = store_world_submit_save(&world, &save_opts);
		expect_child_succeeds(requests_are_freed, &world);
		assert_int_equal(fc_load_wait(load_of_the_parent, &result), 0);
		assert_int_equal(result.blocks, BLOCKS);
		assert_int_equal(fc_save_wait(save_of_the_parent, true, NULL), 0);
		fc_load_free(load_of_the_parent);
		fc_save_free(save_of_the_parent);
	}
	store_world_deinit(&world);
}

static bool events_are_left_alone(struct store_world *world)
{
	struct fc_event events[64];
	while (fc_store_events(world->store, events, 64) > 0)
		;
	return true;
}

static void events_of_the_parent_stay_its_own(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_event event;
	path_keys(1, 0, keys, BLOCKS);
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	struct fc_save_opts opts = store_world_save_opts(&world, 1, 0, keys, BLOCKS);
	struct fc_save *save = store_world_submit_save(&world, &opts);
	assert_int_equal(fc_save_wait(save, true, NULL), 0);
	expect_child_succeeds(events_are_left_alone, &world);
	struct pollfd wait = {.fd = fc_store_fd(world.store), .events = POLLIN};
	assert_int_equal(poll(&wait, 1, 0), 1);
	assert_int_equal(fc_store_events(world.store, &event, 1), 1);
	fc_save_free(save);
	store_world_deinit(&world);
}

/* Of the parent: a process that opens the store, forks, and is killed. Returns the child that is left. */
static pid_t leave_a_child(struct store_world *world)
{
	int tell[2];
	pid_t child = 0;
	assert_int_equal(pipe(tell), 0);
	pid_t parent = fork();
	if (parent == 0) {
		store_world_open(world);
		child = fork();
		if (child == 0) {
			alarm(HANG_S); /* whatever becomes of the test */
			pause();
			_exit(0);
		}
		(void)!write(tell[1], &child, sizeof(child));
		pause();
	}
	assert_int_equal(read(tell[0], &child, sizeof(child)), sizeof(child));
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	close(tell[0]);
	close(tell[1]);
	return child;
}

static void the_child_of_a_killed_process_holds_no_arena(void **state)
{
	(void)state;
	struct store_world world;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	pid_t child = leave_a_child(&world);
	int code = store_world_try_open(&world);
	assert_int_equal(kill(child, SIGKILL), 0);
	if (code != FC_OK)
		fail_msg("%s", world.error.text);
	store_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_is_refused_and_never_hangs),
		cmocka_unit_test(requests_of_the_parent_can_be_freed_in_the_child),
		cmocka_unit_test(events_of_the_parent_stay_its_own),
		cmocka_unit_test(the_child_of_a_killed_process_holds_no_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

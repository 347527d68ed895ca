/* What surrounds a running flatcaked: descriptors that run out on either side, groups of users, a hangup, a service
 * manager that waits, arenas of another model. */
#include "daemon/daemon_world.h"

#include <grp.h>
#include <sys/resource.h>

static int try_open(struct store_world *store, const struct daemon_world *world, const char *name_space)
{
	store_world_init(store, world->geometry, 24);
	snprintf(store->address, sizeof(store->address), "unix:%s", world->socket);
	store->opts.window_bytes = 4 * MIB;
	store->opts.daemon_namespace = name_space;
	return store_world_try_open(store);
}

static void expect_child_succeeds(int (*child)(const struct daemon_world *world), const struct daemon_world *world)
{
	pid_t pid = fork();
	if (pid == 0) {
		alarm(HANG_S);
		_exit(child(world));
	}
	assert_int_equal(daemon_world_wait(pid), 0);
}

/* ---- descriptors ---- */

/* So many more than are open now. */
static void allow_descriptors(unsigned more)
{
	struct rlimit limit;
	int next = open("/dev/null", O_RDONLY);
	assert_true(next >= 0 && close(next) == 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)next + more;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int is_told_at_open(const struct daemon_world *world)
{
	struct store_world store;
	allow_descriptors(4); /* two eventfds, the socket, one */
	if (try_open(&store, world, NULL) != FC_ESYSTEM)
		return 1;
	return strstr(store.error.text, "RLIMIT_NOFILE") != NULL ? 0 : 2;
}

static void a_client_without_descriptors_is_told_so(void **state)
{
	(void)state;
	struct daemon_world world;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	expect_child_succeeds(is_told_at_open, &world);
	daemon_world_deinit(&world);
}

static void the_daemon_raises_its_limit_or_says_what_is_missing(void **state)
{
	(void)state;
	struct daemon_world world;
	struct rlimit before, limit;
	daemon_world_init(&world);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	daemon_world_start(&world, "--clients-max=200");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(daemon_world_log_says(&world, "RLIMIT_NOFILE"));
	struct rlimit raised;
	assert_int_equal(prlimit(world.pid, RLIMIT_NOFILE, NULL, &raised), 0);
	assert_true(raised.rlim_cur >= 200);
	assert_int_equal(daemon_world_stop(&world, SIGTERM), 0);
	limit.rlim_max = 100;
	pid_t pid = fork(); /* a hard limit is for good */
	if (pid == 0) {
		setrlimit(RLIMIT_NOFILE, &limit);
		world.pid = daemon_world_spawn(&world, "--clients-max=200");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(daemon_world_wait(world.pid) != 0);
	}
	daemon_world_expect_log(&world, "RLIMIT_NOFILE");
	daemon_world_expect_log(&world, "listening");
	assert_int_equal(kill(pid, SIGKILL), 0); /* and the daemon with it */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	daemon_world_deinit(&world);
}

/* ---- a daemon that lets nobody in ---- */

static void a_full_queue_is_waited_for_and_named(void **state)
{
	(void)state;
	struct daemon_world world;
	struct store_world store;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fds[400];
	size_t count = 0;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", world.socket);
	assert_int_equal(kill(world.pid, SIGSTOP), 0);
	do {
		fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(fds[count] >= 0);
	} while (connect(fds[count++], (struct sockaddr *)&address, sizeof(address)) == 0 && count < 400);
	assert_int_equal(errno, EAGAIN);
	pid_t pid = fork();
	if (pid == 0) {
		pause_ms(300);
		_exit(kill(world.pid, SIGCONT));
	}
	int code = try_open(&store, &world, NULL); /* begins while the queue is full */
	if (code != FC_OK)
		fail_msg("%s", store.error.text);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (count > 0)
		close(fds[--count]);
	store_world_deinit(&store);
	daemon_world_deinit(&world);
}

/* ---- names ---- */

static void a_name_that_forges_lines_is_refused_before_it_is_sent(void **state)
{
	(void)state;
	static const char *const names[] = {"two\nlines", "\xff\xfe", "\x1b[2J"};
	struct daemon_world world;
	struct store_world store;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(try_open(&store, &world, names[i]), FC_EINVAL);
		assert_non_null(strstr(store.error.text, "namespace: UTF-8"));
		store_world_deinit(&store);
	}
	assert_int_equal(try_open(&store, &world, "caf\xc3\xa9 \"quoted\\"), FC_OK);
	store_world_deinit(&store);
	daemon_world_deinit(&world);
}

/* ---- groups ---- */

static int may_open_with_the_group_alone(const struct daemon_world *world)
{
	static const gid_t with[] = {4711, 4712}, without[] = {4711};
	struct store_world store;
	if (setgroups(1, without) != 0 || try_open(&store, world, "team") != FC_EINVAL)
		return 1;
	if (strstr(store.error.text, "may not use it") == NULL)
		return 2;
	if (setgroups(2, with) != 0 || try_open(&store, world, "team") != FC_OK)
		return 3;
	store_world_deinit(&store);
	return 0;
}

static void further_groups_of_a_user_count(void **state)
{
	(void)state;
	static const char settings[] = "namespaces:\n  - name: team\n    gid: 4712\n";
	struct daemon_world world;
	char path[200], option[220];
	if (geteuid() != 0)
		skip(); /* nobody else may choose groups */
	daemon_world_init(&world);
	snprintf(path, sizeof(path), "%s/settings.yaml", world.dir);
	snprintf(option, sizeof(option), "--config=%s", path);
	store_world_write_file(path, 0, settings, sizeof(settings) - 1);
	daemon_world_start(&world, option);
	expect_child_succeeds(may_open_with_the_group_alone, &world);
	daemon_world_deinit(&world);
}

static int is_told_about_the_group(const struct daemon_world *world)
{
	struct store_world store;
	if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
		return 1;
	if (try_open(&store, world, NULL) != FC_ESYSTEM)
		return 2;
	return strstr(store.error.text, "socket_mode") != NULL ? 0 : 3;
}

static void who_may_not_connect_is_told_what_is_missing(void **state)
{
	(void)state;
	struct daemon_world world;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	assert_int_equal(chmod(world.socket, 0), 0);
	expect_child_succeeds(is_told_about_the_group, &world);
	daemon_world_deinit(&world);
}

/* ---- signals, and the service manager ---- */

static void a_hangup_stops_no_service(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare bare;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	assert_int_equal(kill(world.pid, SIGHUP), 0);
	daemon_world_expect_log(&world, "settings are read at the start only");
	bare_open(&bare, &world);
	bare_close(&bare);
	daemon_world_deinit(&world);
}

/* A terabyte of memory takes minutes to be cleared, and a service manager's patience ends before. */
static void a_large_memory_arena_asks_for_more_time_to_start(void **state)
{
	(void)state;
	struct daemon_world world;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char message[512];
	daemon_world_init(&world);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", world.dir);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
	pid_t pid = daemon_world_spawn(&world, "--memory=1TiB"); /* refused, but not before it has asked */
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
	ssize_t count = recv(fd, message, sizeof(message) - 1, 0);
	assert_true(count > 0);
	message[count] = 0;
	unsigned long long usec = 0;
	assert_int_equal(sscanf(message, "EXTEND_TIMEOUT_USEC=%llu", &usec), 1);
	assert_true(usec >= 4096 * 1000000ull); /* at 256 MiB a second */
	assert_int_equal(daemon_world_wait(pid), 1);
	close(fd);
	daemon_world_deinit(&world);
}

/* ---- arenas of another model ---- */

static void another_model_is_refused_by_arena_and_with_what_to_do(void **state)
{
	(void)state;
	struct daemon_world world;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	assert_int_equal(daemon_world_stop(&world, SIGTERM), 0);
	assert_int_equal(daemon_world_wait(daemon_world_spawn(&world, "--block-tokens=16")), 1);
	assert_true(daemon_world_log_says(&world, "ssd.arena: the arena has geometry"));
	assert_true(daemon_world_log_says(&world, "Give this one files of its own"));
	assert_false(daemon_world_log_says(&world, "remove")); /* it may be in use, or another daemon's */
	daemon_world_start(&world, NULL);                      /* and is as it was */
	daemon_world_deinit(&world);
}

/* ---- what others may do ---- */

static void what_others_may_do_with_its_files_is_taken_away_or_told(void **state)
{
	(void)state;
	struct daemon_world world;
	char lock_path[100], folder[100];
	struct stat status;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	assert_int_equal(daemon_world_stop(&world, SIGTERM), 0);
	assert_false(daemon_world_log_says(&world, "mode 0"));
	snprintf(lock_path, sizeof(lock_path), "%s/clients.lock", world.dir);
	snprintf(folder, sizeof(folder), "%s/run", world.dir);
	assert_int_equal(chmod(lock_path, 0666), 0);
	assert_int_equal(chmod(world.arena, 0666), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	daemon_world_start(&world, NULL);
	assert_int_equal(daemon_world_stop(&world, SIGTERM), 0);
	assert_true(daemon_world_log_says(&world, "clients.lock: had mode 0666"));
	assert_true(daemon_world_log_says(&world, "ssd.arena: had mode 0666"));
	assert_true(
		daemon_world_log_says(&world, "run: a folder of mode 0777, in which anybody can take away or replace"));
	assert_int_equal(stat(lock_path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(stat(world.arena, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	daemon_world_deinit(&world);
}

static void a_file_that_is_no_lock_file_is_left_alone(void **state)
{
	(void)state;
	struct daemon_world world;
	char lock_path[100], letter[] = "a letter to a friend";
	struct stat status;
	daemon_world_init(&world);
	snprintf(lock_path, sizeof(lock_path), "%s/clients.lock", world.dir);
	store_world_write_file(lock_path, 0, letter, sizeof(letter));
	assert_int_equal(chmod(lock_path, 0644), 0);
	assert_int_equal(daemon_world_wait(daemon_world_spawn(&world, NULL)), 1);
	assert_true(daemon_world_log_says(&world, "clients.lock: not a lock file"));
	assert_int_equal(stat(lock_path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
	daemon_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_without_descriptors_is_told_so),
		cmocka_unit_test(the_daemon_raises_its_limit_or_says_what_is_missing),
		cmocka_unit_test(a_full_queue_is_waited_for_and_named),
		cmocka_unit_test(a_name_that_forges_lines_is_refused_before_it_is_sent),
		cmocka_unit_test(further_groups_of_a_user_count),
		cmocka_unit_test(who_may_not_connect_is_told_what_is_missing),
		cmocka_unit_test(a_hangup_stops_no_service),
		cmocka_unit_test(a_large_memory_arena_asks_for_more_time_to_start),
		cmocka_unit_test(another_model_is_refused_by_arena_and_with_what_to_do),
		cmocka_unit_test(what_others_may_do_with_its_files_is_taken_away_or_told),
		cmocka_unit_test(a_file_that_is_no_lock_file_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The real flatcaked: how it starts beside others, dead and alive, how it stops, and what it does with clients that are
 * killed, that hang, or that let go of everything but their lock. */
#include "daemon/daemon_world.h"

/* ---- stores in it ---- */

static void open_store(struct store_world *store, const struct daemon_world *world)
{
	store_world_init(store, world->geometry, 24);
	snprintf(store->address, sizeof(store->address), "unix:%s", world->socket);
	store->opts.window_bytes = 4 * MIB;
	store->opts.reconnect_timeout_ns = HANG_S * 1000000000ull;
	store_world_open(store);
}

static void save_both(struct store_world *store, struct fc_key *first, struct fc_key *second)
{
	path_keys(1, 0, first, 20);
	path_keys(2, 0, second, 10);
	assert_int_equal(store_world_save(store, 1, 0, first, 20).code, 0);  /* to SSD */
	assert_int_equal(store_world_save(store, 2, 1, second, 10).code, 0); /* to memory */
}

static void content_outlives_a_stop_and_a_kill(void **state)
{
	(void)state;
	static const int signals[] = {SIGTERM, SIGKILL, SIGINT};
	static const int ends[] = {0, 256 + SIGKILL, 0};
	struct daemon_world world;
	struct store_world store;
	struct fc_key first[20], second[10];
	daemon_world_init(&world);
	daemon_world_start(&world, "--long-reply=1000000");
	open_store(&store, &world);
	save_both(&store, first, second);
	struct fc_stats stats = store_world_stats(&store);
	assert_int_equal(stats.media[FC_SSD].blocks, 20);
	assert_int_equal(stats.media[FC_MEMORY].blocks, 10);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(daemon_world_stop(&world, signals[i]), ends[i]);
		assert_int_equal(access(world.socket, F_OK), signals[i] == SIGKILL ? 0 : -1);
		daemon_world_start(&world, "--long-reply=1000000");
		/* The same store: it has connected again by itself. */
		assert_int_equal(store_world_load(&store, first, 20).blocks, 20);
		assert_int_equal(store_world_load(&store, second, 10).blocks, 10);
	}
	struct fc_key more[24];
	memcpy(more, first, sizeof(first));
	path_keys(9, 20, more, 24);
	assert_int_equal(store_world_save(&store, 1, 1, more, 24).code, 0);
	assert_int_equal(store_world_load(&store, more, 24).blocks, 24);
	store_world_deinit(&store);
	daemon_world_deinit(&world);
}

static void files_are_for_their_owner_alone(void **state)
{
	(void)state;
	struct daemon_world world;
	struct stat status;
	char path[200];
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	assert_int_equal(stat(world.socket, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	snprintf(path, sizeof(path), "%s/run", world.dir);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(stat(world.arena, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	snprintf(path, sizeof(path), "%s/clients.lock", world.dir);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	daemon_world_deinit(&world);
}

/* ---- beside others ---- */

static void a_second_daemon_is_refused_by_the_name_of_the_first(void **state)
{
	(void)state;
	struct daemon_world world, other;
	char words[200];
	daemon_world_init(&world);
	daemon_world_init(&other);
	daemon_world_start(&world, NULL);
	/* The same arenas. */
	struct daemon_world same = world;
	snprintf(same.log, sizeof(same.log), "%s/log", other.dir);
	assert_int_equal(daemon_world_wait(daemon_world_spawn(&same, NULL)), 1);
	snprintf(words, sizeof(words), "held by process %d (flatcaked)", world.pid);
	assert_true(daemon_world_log_says(&same, words));
	/* Arenas of its own, and the same socket. */
	memcpy(other.options[3], world.options[3], sizeof(other.options[3]));
	assert_int_equal(daemon_world_wait(daemon_world_spawn(&other, NULL)), 1);
	snprintf(words, sizeof(words), "process %d listens here already", world.pid);
	assert_true(daemon_world_log_says(&other, words));
	/* Arenas and socket of its own, and the same lock file. */
	snprintf(other.options[3], sizeof(other.options[3]), "--socket=%s", other.socket);
	memcpy(other.options[2], world.options[2], sizeof(other.options[2]));
	assert_int_equal(daemon_world_wait(daemon_world_spawn(&other, NULL)), 1);
	assert_true(daemon_world_log_says(&other, "another flatcaked has it"));
	struct bare bare;
	bare_open(&bare, &world); /* the first one has noticed nothing */
	bare_close(&bare);
	daemon_world_deinit(&other);
	daemon_world_deinit(&world);
}

static void a_file_that_is_no_socket_stays(void **state)
{
	(void)state;
	struct daemon_world world;
	char folder[200];
	daemon_world_init(&world);
	snprintf(folder, sizeof(folder), "%s/run", world.dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	store_world_write_file(world.socket, 0, "precious", 8);
	assert_int_equal(daemon_world_wait(daemon_world_spawn(&world, NULL)), 1);
	assert_true(daemon_world_log_says(&world, "no socket"));
	assert_int_equal(store_world_file_bytes(world.socket), 8);
	daemon_world_deinit(&world);
}

/* ---- clients that go ---- */

static void a_killed_client_gives_its_reservations_back(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare watcher;
	struct fc_key keys[20];
	path_keys(1, 0, keys, 20);
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	daemon_world_expect_log(&world, "fence_over");
	bare_open(&watcher, &world);
	uint64_t before = bare_bytes_used(&watcher);
	pid_t pid = fork();
	if (pid == 0) {
		struct bare victim;
		bare_open(&victim, &world);
		bare_expect_reserved(&victim, &world, bare_put_reserve(&victim, 1, keys, 20));
		pause();
	}
	for (int waited = 0; bare_bytes_used(&watcher) == before && waited < HANG_MS; waited += 10)
		pause_ms(10);
	assert_true(bare_bytes_used(&watcher) > before);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	bare_expect_bytes_used(&watcher, before);
	bare_close(&watcher);
	daemon_world_deinit(&world);
}

/* A worker that an engine forked, as engines do, must not stand in for the engine that was killed. */
static void the_child_of_a_killed_client_holds_nothing(void **state)
{
	(void)state;
	struct daemon_world world;
	int tell[2];
	pid_t child = 0;
	daemon_world_init(&world);
	daemon_world_start(&world, "--fence-timeout=1h");
	daemon_world_expect_log(&world, "fence_over");
	assert_int_equal(pipe(tell), 0);
	pid_t parent = fork();
	if (parent == 0) {
		struct store_world store;
		open_store(&store, &world);
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
	assert_false(daemon_world_log_says(&world, "is disconnected"));
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	daemon_world_expect_log(&world, "is disconnected");
	assert_int_equal(daemon_world_stop(&world, SIGKILL), 256 + SIGKILL);
	daemon_world_start(&world, "--fence-timeout=1h");
	daemon_world_expect_log(&world, "fence_over"); /* its lock is free */
	assert_int_equal(kill(child, SIGKILL), 0);
	daemon_world_deinit(&world);
}

static void who_lost_the_connection_keeps_its_space_as_long_as_its_lock(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare watcher, bare;
	struct fc_key keys[20];
	path_keys(1, 0, keys, 20);
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	bare_open(&watcher, &world);
	bare_open(&bare, &world);
	uint64_t before = bare_bytes_used(&watcher);
	bare_expect_reserved(&bare, &world, bare_put_reserve(&bare, 1, keys, 20));
	bare_disconnect(&bare);
	daemon_world_expect_log(&world, "leaves 1 reservations");
	pause_ms(100); /* several looks at the lock */
	assert_true(bare_bytes_used(&watcher) > before);
	bare_unlock(&bare);
	bare_expect_bytes_used(&watcher, before);
	bare_close(&watcher);
	daemon_world_deinit(&world);
}

static void a_new_daemon_reserves_nothing_while_an_old_lock_is_held(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare old, new;
	struct fc_wire_header header;
	struct fc_key keys[20];
	path_keys(1, 0, keys, 20);
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	bare_open(&old, &world);
	assert_int_equal(daemon_world_stop(&world, SIGKILL), 256 + SIGKILL);
	daemon_world_start(&world, NULL);
	bare_open(&new, &world);
	struct fc_wire_match match = {.keys = keys, .key_count = 20};
	assert_int_equal(fc_wire_put_match(&new.out, ++new.next_request, &match), 0);
	bare_send(&new);
	(void)bare_expect(&new, FC_WIRE_MATCHED, &header);
	bare_take(&new, &header);
	uint64_t request = bare_put_reserve(&new, 1, keys, 20);
	assert_int_equal(bare_receive(&new, 300), -1);
	assert_false(daemon_world_log_says(&world, "fence_over"));
	bare_close(&old);
	bare_expect_reserved(&new, &world, request);
	bare_close(&new);
	daemon_world_deinit(&world);
}

static void a_lock_that_is_never_let_go_delays_and_does_not_stop(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare old;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	bare_open(&old, &world);
	assert_int_equal(daemon_world_stop(&world, SIGKILL), 256 + SIGKILL);
	daemon_world_start(&world, "--fence-timeout=300ms");
	daemon_world_expect_log(&world, "fence-timeout");
	daemon_world_expect_log(&world, "fence_over");
	bare_close(&old);
	daemon_world_deinit(&world);
}

/* Its space cannot be taken from it, since it may go on and write: so it must not be all there is. */
static void a_stopped_client_withholds_a_part_and_is_named(void **state)
{
	(void)state;
	static struct fc_key keys[9000];
	struct daemon_world world;
	struct bare watcher;
	struct fc_error why = {0};
	char words[200];
	int status = 0;
	daemon_world_init(&world);
	daemon_world_start(&world, "--reserved-old=1s");
	daemon_world_expect_log(&world, "fence_over");
	pid_t pid = fork();
	if (pid == 0) {
		struct bare victim;
		bare_open(&victim, &world);
		path_keys(1, 0, keys, 9000);
		bare_expect_reserved(&victim, &world, bare_put_reserve(&victim, 1, keys, 9000)); /* 36 of 64 MiB */
		path_keys(2, 0, keys, 2000);
		int code = bare_take_reserved(&victim, &world, bare_put_reserve(&victim, 2, keys, 2000), &why);
		if (code != FC_ELIMIT || strstr(why.text, "reserved_share") == NULL)
			_exit(1);
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	bare_open(&watcher, &world);
	path_keys(3, 0, keys, 3000);
	bare_expect_reserved(&watcher, &world, bare_put_reserve(&watcher, 3, keys, 3000));
	path_keys(4, 0, keys, 9000);
	uint64_t request = bare_put_reserve(&watcher, 4, keys, 9000);
	assert_int_equal(bare_take_reserved(&watcher, &world, request, &why), FC_EFULL);
	snprintf(words, sizeof(words), "reserved by process %d (\"bare\", namespace \"\")", pid);
	if (strstr(why.text, words) == NULL)
		fail_msg("%s", why.text);
	snprintf(words, sizeof(words), "process %d (\"bare\", namespace \"\") has reserved", pid);
	daemon_world_expect_log(&world, words);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	bare_close(&watcher);
	bare_open(&watcher, &world);
	bare_expect_bytes_used(&watcher, 0);
	bare_expect_reserved(&watcher, &world, bare_put_reserve(&watcher, 4, keys, 9000));
	bare_close(&watcher);
	daemon_world_deinit(&world);
}

/* ---- stopping ---- */

static void a_stop_waits_for_a_commit(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare bare;
	struct fc_wire_header header;
	struct fc_key keys[20];
	path_keys(1, 0, keys, 20);
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	bare_open(&bare, &world);
	uint64_t request = bare_put_reserve(&bare, 1, keys, 20);
	bare_expect_reserved(&bare, &world, request);
	assert_int_equal(kill(world.pid, SIGTERM), 0);
	(void)bare_expect(&bare, FC_WIRE_GOODBYE, &header);
	bare_take(&bare, &header);
	pause_ms(200);
	assert_int_equal(waitpid(world.pid, NULL, WNOHANG), 0);
	assert_int_equal(fc_wire_put_plain(&bare.out, FC_WIRE_COMMIT, request), 0);
	bare_send(&bare);
	(void)bare_expect(&bare, FC_WIRE_COMMITTED, &header);
	bare_take(&bare, &header);
	(void)bare_expect(&bare, FC_WIRE_DURABLE, &header);
	bare_take(&bare, &header);
	while (bare_receive(&bare, HANG_MS) > 0)
		;
	assert_int_equal(daemon_world_wait(world.pid), 0);
	world.pid = 0;
	assert_int_equal(access(world.socket, F_OK), -1);
	bare_close(&bare);
	daemon_world_deinit(&world);
}

static void a_stop_has_a_deadline_and_a_second_signal_has_none(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare bare;
	struct fc_key keys[20];
	path_keys(1, 0, keys, 20);
	daemon_world_init(&world);
	for (int way = 0; way < 2; way++) {
		daemon_world_start(&world, way == 0 ? "--drain-timeout=200ms" : "--drain-timeout=1h");
		bare_open(&bare, &world);
		bare_expect_reserved(&bare, &world, bare_put_reserve(&bare, 1, keys, 20));
		assert_int_equal(kill(world.pid, SIGTERM), 0);
		daemon_world_expect_log(&world, "stopping");
		if (way == 1)
			assert_int_equal(kill(world.pid, SIGTERM), 0);
		assert_int_equal(daemon_world_wait(world.pid), way);
		assert_true(daemon_world_log_says(&world, way == 0 ? "drain-timeout" : "stopped-at-once"));
		world.pid = 0;
		bare_close(&bare);
	}
	daemon_world_deinit(&world);
}

static void noise_on_the_socket_ends_one_connection(void **state)
{
	(void)state;
	struct daemon_world world;
	struct bare bare, noisy;
	daemon_world_init(&world);
	daemon_world_start(&world, NULL);
	bare_open(&bare, &world);
	assert_int_equal(bare_connect(&noisy, &world), 0);
	assert_int_equal(fc_wire_buffer_add(&noisy.out, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 36), 0);
	bare_send(&noisy);
	assert_true(bare_receive(&noisy, HANG_MS) <= 0);
	daemon_world_expect_log(&world, "protocol_error");
	(void)bare_bytes_used(&bare);
	bare_close(&noisy);
	bare_close(&bare);
	daemon_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_outlives_a_stop_and_a_kill),
		cmocka_unit_test(files_are_for_their_owner_alone),
		cmocka_unit_test(a_second_daemon_is_refused_by_the_name_of_the_first),
		cmocka_unit_test(a_file_that_is_no_socket_stays),
		cmocka_unit_test(a_killed_client_gives_its_reservations_back),
		cmocka_unit_test(the_child_of_a_killed_client_holds_nothing),
		cmocka_unit_test(who_lost_the_connection_keeps_its_space_as_long_as_its_lock),
		cmocka_unit_test(a_new_daemon_reserves_nothing_while_an_old_lock_is_held),
		cmocka_unit_test(a_lock_that_is_never_let_go_delays_and_does_not_stop),
		cmocka_unit_test(a_stopped_client_withholds_a_part_and_is_named),
		cmocka_unit_test(a_stop_waits_for_a_commit),
		cmocka_unit_test(a_stop_has_a_deadline_and_a_second_signal_has_none),
		cmocka_unit_test(noise_on_the_socket_ends_one_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What becomes of a store, and of flatcaked, when the file system of its arena does not answer? Whatever is expected
 * here is expected while it is silent: a call that waits for it would end by the test's own limit. A machine that
 * stands still for longer than the short limits here looks silent too; what has to succeed is tried until it does. */
#define _GNU_SOURCE
#include "daemon/daemon_world.h"
#include "real/alone.h"
#include "real/deny.h"
#include "real/silent_fs.h"
#include "real/stories.h"

#include <arpa/inet.h>
#include <sys/syscall.h>

#define SECOND_NS 1000000000ull
#define SHORT_NS (SECOND_NS / 4)
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
	struct fc_save_result result;
	struct fc_match match;
	path_keys(session, 0, keys, BLOCKS);
	do
		result = store_world_save(&scene->world, session, session == IN_MEMORY, keys, BLOCKS);
	while (result.code == FC_ETIMEOUT || result.durable_code == FC_ETIMEOUT);
	assert_int_equal(result.code, FC_OK);
	assert_int_equal(result.durable_code, FC_OK);
	assert_int_equal(fc_match(scene->world.store, keys, BLOCKS, &match), 0);
	assert_int_equal(match.blocks, BLOCKS);
	assert_int_equal(match.bytes[FC_SSD] > 0, session == ON_SSD);
}

static void begin(struct scene *scene, uint64_t io_timeout_ns)
{
	silent_fs_mount(&scene->fs);
	make_world(&scene->world);
	scene->world.opts.ssd_path = scene->fs.arena;
	scene->world.opts.memory_bytes = 4 * MIB;
	scene->world.opts.io_timeout_ns = io_timeout_ns;
	store_world_open(&scene->world);
	save_one(scene, ON_SSD);
	save_one(scene, IN_MEMORY);
}

/* What was left behind lets go of the arena when it has been answered. */
static void open_again(struct store_world *world)
{
	int code;
	while ((code = store_world_try_open(world)) == FC_EBUSY || code == FC_ETIMEOUT)
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

static void expect_load(struct scene *scene, uint64_t session)
{
	struct fc_load_result result;
	do
		result = load(scene, session, 0);
	while (result.code == FC_ETIMEOUT);
	assert_int_equal(result.code, FC_OK);
	assert_int_equal(result.blocks, BLOCKS);
}

static void check_silence(struct scene *scene)
{
	silent_fs_stop(&scene->fs);
	struct fc_load_result timed = load(scene, ON_SSD, SHORT_NS);
	assert_int_equal(timed.code, FC_ETIMEOUT);
	assert_int_equal(timed.blocks, 0);
	assert_text(timed.error.text, "timeout_ns");
	expect_load(scene, IN_MEMORY);
	(void)store_world_stats(&scene->world);
	struct fc_load_result untimed = load(scene, ON_SSD, 0);
	assert_int_equal(untimed.code, FC_ETIMEOUT);
	assert_text(untimed.error.text, "does not answer");
	struct fc_key keys[BLOCKS];
	path_keys(3, 0, keys, BLOCKS);
	struct fc_save_result save = store_world_save(&scene->world, 3, 0, keys, BLOCKS);
	assert_true(save.code == FC_ETIMEOUT || save.durable_code == FC_ETIMEOUT);
	assert_text(save.error.text, "does not answer");
	expect_load(scene, IN_MEMORY);
	store_world_close(&scene->world);
	silent_fs_go_on(&scene->fs);
	open_again(&scene->world);
	expect_load(scene, ON_SSD);
}

static void a_silent_file_system_holds_up_no_deadline_no_memory_and_no_close(void **state)
{
	struct scene scene;
	if (!is_alone(state))
		return;
	begin(&scene, SECOND_NS);
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
	begin(&scene, SECOND_NS);
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
	begin(&scene, 4 * SECOND_NS);
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
	memcpy(scene.keys[0], keys, sizeof(keys));
	expect_load(&scene, ON_SSD);
	end(&scene);
}

static void an_open_that_is_not_answered_is_given_up(void **state)
{
	struct scene scene;
	if (!is_alone(state))
		return;
	begin(&scene, SECOND_NS);
	store_world_close(&scene.world);
	silent_fs_stop(&scene.fs);
	assert_int_equal(store_world_try_open(&scene.world), FC_ETIMEOUT);
	assert_text(scene.world.error.text, scene.fs.arena);
	silent_fs_go_on(&scene.fs);
	open_again(&scene.world);
	expect_load(&scene, ON_SSD);
	end(&scene);
}

/* ---- the daemon ---- */

struct daemon_scene {
	struct scene scene;
	struct daemon_world daemon;
	unsigned port;
};

static unsigned read_port(const struct daemon_world *daemon)
{
	static const char before[] = "status page at port ";
	uint64_t bytes = 0;
	daemon_world_expect_log(daemon, before);
	uint8_t *log = store_world_read_file(daemon->log, &bytes);
	const char *at = memmem(log, bytes, before, strlen(before));
	unsigned port = (unsigned)strtoul(at + strlen(before), NULL, 10);
	free(log);
	return port;
}

/* The whole answer. */
static void ask(const struct daemon_scene *scene, const char *path, char *answer, size_t room)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)scene->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	char question[200];
	size_t used = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	int length = snprintf(question, sizeof(question), "GET %s HTTP/1.0\r\n\r\n", path);
	assert_int_equal(write(fd, question, (size_t)length), length);
	for (ssize_t count; (count = read(fd, answer + used, room - 1 - used)) > 0;)
		used += (size_t)count;
	answer[used] = 0;
	close(fd);
}

/* Its clients: as long as they follow, so does the test. */
static void open_client(struct scene *scene, const struct daemon_world *daemon)
{
	struct store_world *world = &scene->world;
	store_world_init(world, daemon->geometry, BLOCKS);
	snprintf(world->address, sizeof(world->address), "unix:%s", daemon->socket);
	world->opts.window_bytes = 4 * MIB;
	world->opts.io_timeout_ns = SECOND_NS;
	store_world_open(world);
}

static void close_client(struct scene *scene)
{
	store_world_close(&scene->world);
	engine_deinit(&scene->world.engine);
	store_world_remove_files(scene->world.dir);
}

static void begin_daemon(struct daemon_scene *scene)
{
	silent_fs_mount(&scene->scene.fs);
	daemon_world_init(&scene->daemon);
	snprintf(scene->daemon.options[0], sizeof(scene->daemon.options[0]), "--ssd-path=%s", scene->scene.fs.arena);
	setenv("FLATCAKE_IO_TIMEOUT", "1s", 1);
	setenv("FLATCAKE_DRAIN_TIMEOUT", "2s", 1);
	daemon_world_start(&scene->daemon, NULL);
	scene->port = read_port(&scene->daemon);
	open_client(&scene->scene, &scene->daemon);
	save_one(&scene->scene, ON_SSD);
	save_one(&scene->scene, IN_MEMORY);
}

/* Its main thread has ended. The kernel keeps what is left of the process for as long as another thread waits in it
 * for what does not answer, if that cannot be killed. */
static void expect_end(pid_t pid)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		FILE *file = fopen(path, "re");
		assert_non_null(file);
		assert_non_null(fgets(line, sizeof(line), file));
		fclose(file);
	} while (strstr(line, ") Z ") == NULL && usleep(10000) == 0);
}

static void check_silent_daemon(struct daemon_scene *scene)
{
	struct scene other = {.fs = scene->scene.fs};
	char answer[4096];
	silent_fs_stop(&scene->scene.fs);
	memcpy(other.keys, scene->scene.keys, sizeof(other.keys));
	do
		ask(scene, "/readyz", answer, sizeof(answer));
	while (strstr(answer, "has not answered") == NULL && usleep(10000) == 0);
	assert_text(answer, " 503 ");
	assert_text(answer, scene->scene.fs.arena);
	ask(scene, "/healthz", answer, sizeof(answer));
	assert_text(answer, " 200 ");
	assert_text(answer, scene->scene.fs.arena);
	assert_int_equal(load(&scene->scene, ON_SSD, SHORT_NS).code, FC_ETIMEOUT);
	open_client(&other, &scene->daemon);
	assert_int_equal(load(&other, ON_SSD, SHORT_NS).code, FC_ETIMEOUT);
	expect_load(&other, IN_MEMORY);
	close_client(&other);
	assert_int_equal(kill(scene->daemon.pid, SIGTERM), 0);
	expect_end(scene->daemon.pid);
	assert_int_not_equal(access(scene->daemon.socket, F_OK), 0);
	assert_true(daemon_world_log_says(&scene->daemon, scene->scene.fs.arena));
	close_client(&scene->scene);
	silent_fs_go_on(&scene->scene.fs);
	(void)daemon_world_wait(scene->daemon.pid);
	scene->daemon.pid = 0;
}

static void a_silent_file_system_holds_up_neither_flatcaked_nor_its_end(void **state)
{
	struct daemon_scene scene = {0};
	if (!is_alone(state))
		return;
	begin_daemon(&scene);
	check_silent_daemon(&scene);
	daemon_world_deinit(&scene.daemon);
	silent_fs_unmount(&scene.scene.fs);
}

static void nor_without_io_uring(void **state)
{
	struct daemon_scene scene = {0};
	if (!is_alone(state))
		return;
	if (!deny_call(SYS_io_uring_setup, EPERM))
		skip_alone("no seccomp here");
	begin_daemon(&scene);
	check_silent_daemon(&scene);
	daemon_world_deinit(&scene.daemon);
	silent_fs_unmount(&scene.scene.fs);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		ALONE(a_silent_file_system_holds_up_no_deadline_no_memory_and_no_close),
		ALONE(nor_does_it_without_io_uring),
		ALONE(a_sync_that_is_not_answered_is_waited_for_as_long_as_documented),
		ALONE(an_open_that_is_not_answered_is_given_up),
		ALONE(a_silent_file_system_holds_up_neither_flatcaked_nor_its_end),
		ALONE(nor_without_io_uring),
	};
	return alone_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

#define _GNU_SOURCE
#include "bench/daemon.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_TIMEOUT_S 1800 /* it hangs */
#define PAUSE_US 2000

/* The child's life. */
static int run_child(const struct fc_bench_daemon *daemon, const struct fc_bench *bench,
		     const struct fc_bench_engine *engine, uint64_t ssd_bytes)
{
	char bytes[32], lock_path[FC_BENCH_PATH_BYTES + 8];
	struct fc_daemon_settings settings;
	struct fc_config_problem problem = {0};
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)ssd_bytes);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", daemon->socket_path);
	char *arguments[] = {(char *)"--socket",
			     (char *)daemon->socket_path,
			     (char *)"--ssd-path",
			     (char *)engine->arena_path,
			     (char *)"--ssd",
			     bytes,
			     (char *)"--memory",
			     (char *)"0",
			     (char *)"--lock-path",
			     lock_path,
			     (char *)"--http-listen",
			     (char *)"off",
			     (char *)"--log-level",
			     (char *)"error",
			     NULL};
	char *environment[] = {NULL};
	int count = 0;
	while (arguments[count] != NULL)
		count++;
	if (fc_daemon_settings_load(&settings, count, arguments, environment, &problem) != FC_OK) {
		fprintf(stderr, "flatcaked: %s\n", problem.error.text);
		return 1;
	}
	settings.geometry = engine->geometry;
	settings.store.window_bytes = bench->store.window_bytes;
	settings.store.high_watermark = settings.store.low_watermark = 1; /* nothing is to be reclaimed here */
	return fc_daemon_serve(&settings);
}

static bool is_alive(struct fc_bench_daemon *daemon)
{
	if (daemon->pid > 0 && waitpid(daemon->pid, NULL, WNOHANG) == 0)
		return true;
	daemon->pid = 0;
	return false;
}

static int await_welcome(struct fc_bench_daemon *daemon, const struct fc_bench *bench,
			 const struct fc_bench_engine *engine, struct fc_error *error)
{
	char address[FC_BENCH_PATH_BYTES + 8];
	struct fc_store_opts opts = bench->store;
	struct fc_store *store = NULL;
	double begin_s = fc_bench_seconds();
	int code = FC_ENOENT;
	opts.geometry = &engine->geometry;
	snprintf(address, sizeof(address), "unix:%s", daemon->socket_path);
	while (code == FC_ENOENT && is_alive(daemon) && fc_bench_seconds() - begin_s < START_TIMEOUT_S) {
		code = fc_store_open(&store, address, &opts, error);
		if (code == FC_ENOENT)
			usleep(PAUSE_US);
	}
	daemon->start_s = fc_bench_seconds() - begin_s;
	fc_store_close(store);
	return code;
}

int fc_bench_daemon_start(struct fc_bench_daemon *daemon, const struct fc_bench *bench,
			  const struct fc_bench_engine *engine, uint64_t ssd_bytes, struct fc_error *error)
{
	snprintf(daemon->socket_path, sizeof(daemon->socket_path), "%s.sock", engine->arena_path);
	daemon->pid = fork();
	if (daemon->pid < 0) {
		daemon->pid = 0;
		return fc_error_set(error, FC_ESYSTEM, "fork: %s", strerror(errno));
	}
	if (daemon->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run_child(daemon, bench, engine, ssd_bytes));
	}
	int code = await_welcome(daemon, bench, engine, error);
	if (code != FC_OK)
		fc_bench_daemon_stop(daemon);
	return code == FC_OK ? FC_OK : fc_error_wrap(error, code, "flatcaked");
}

void fc_bench_daemon_stop(struct fc_bench_daemon *daemon)
{
	if (!is_alive(daemon))
		return;
	kill(daemon->pid, SIGTERM);
	(void)waitpid(daemon->pid, NULL, 0);
	daemon->pid = 0;
}

/* A flatcaked for a measurement: the same code in a child process, with the measurement's geometry, on an arena that
 * was written before. */
#ifndef FC_BENCH_DAEMON_H
#define FC_BENCH_DAEMON_H

#include "bench/engine.h"

#include <sys/types.h>

struct fc_bench_daemon {
	pid_t pid; /* 0: not running */
	char socket_path[FC_BENCH_PATH_BYTES];
	double start_s; /* from the start to the first welcome */
};

/* On the arena of engine->arena_path, which nobody holds. Returns when a client has been welcomed. */
int fc_bench_daemon_start(struct fc_bench_daemon *daemon, const struct fc_bench *bench,
			  const struct fc_bench_engine *engine, uint64_t ssd_bytes, struct fc_error *error) FC_MUST_USE;
void fc_bench_daemon_stop(struct fc_bench_daemon *daemon);

#endif

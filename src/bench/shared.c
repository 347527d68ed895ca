/* A store that is shared: what the way through flatcaked costs against the same store embedded, and how many processes
 * it serves.
 *
 *   shared-load     a session from SSD, through the daemon and embedded, in pairs: the data takes the same way
 *   daemon-start    to the first welcome, with the million blocks of `open` in the arena
 *   shared-match    14,000 keys in that, by one client: median and 99th percentile
 *   matches         the same by 16 processes at once, each asking again as soon as it is answered
 *   clients         64 processes that are connected at once, and all served */
#include "bench/daemon.h"
#include "bench/history.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD_BLOCKS 256
#define MATCHES 1000
#define MATCHERS 16
#define CLIENTS 64
#define MATCH_SECONDS 3.0

static int make_folder(struct fc_bench *bench, const char *name, struct fc_error *error)
{
	size_t used = strlen(bench->work_dir);
	if (used + strlen(name) + 2 > sizeof(bench->work_dir))
		return fc_error_set(error, FC_EINVAL, "--dir: the folder's name is too long");
	snprintf(bench->work_dir + used, sizeof(bench->work_dir) - used, "/%s", name);
	if (mkdir(bench->work_dir, 0700) == 0)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "%s: mkdir: %s", bench->work_dir, strerror(errno));
}

/* ---- loads ---- */

/* One arena, which each side opens anew for a run: a disk is faster in one place than in another. */
struct load_pair {
	struct fc_bench bench; /* with the folder of the arena */
	struct fc_bench_engine engine;
	struct fc_bench_daemon daemon;
	struct fc_bench_row *row;
	uint64_t ssd_bytes;
};

/* The second load counts: the first one finds windows and slots untouched. */
static int time_load(struct fc_bench_engine *engine, double *bytes_per_s, struct fc_error *error)
{
	struct fc_load_result result;
	int code = fc_bench_engine_load(engine, &result, error);
	double begin_s = fc_bench_seconds();
	if (code == FC_OK)
		code = fc_bench_engine_load(engine, &result, error);
	*bytes_per_s = (double)result.bytes[FC_SSD] / (fc_bench_seconds() - begin_s);
	fc_bench_engine_close(engine);
	return code;
}

static int load_shared(void *context, uint64_t run, struct fc_error *error)
{
	struct load_pair *pair = context;
	int code = fc_bench_daemon_start(&pair->daemon, &pair->bench, &pair->engine, pair->ssd_bytes, error);
	if (code == FC_OK)
		code = fc_bench_engine_connect(&pair->engine, &pair->bench, pair->daemon.socket_path, error);
	if (code == FC_OK)
		code = time_load(&pair->engine, &pair->row->runs[run], error);
	fc_bench_daemon_stop(&pair->daemon);
	return code;
}

static int load_embedded(void *context, uint64_t run, struct fc_error *error)
{
	struct load_pair *pair = context;
	int code = fc_bench_engine_open(&pair->engine, &pair->bench, 0, pair->ssd_bytes, error);
	return code == FC_OK ? time_load(&pair->engine, &pair->row->peer_runs[run], error) : code;
}

static int prepare_pair(struct load_pair *pair, struct fc_error *error)
{
	struct fc_bench *bench = &pair->bench;
	struct fc_bench_turn turn = {.block_count = LOAD_BLOCKS};
	pair->ssd_bytes = bench->size_bytes + fc_bench_scaled(bench, 256ull << 20, 64ull << 20);
	int code = make_folder(bench, "loads", error);
	if (code == FC_OK)
		code = fc_bench_engine_init(&pair->engine, FC_BENCH_LAYERS, LOAD_BLOCKS, bench->size_bytes, bench->seed,
					    error);
	if (code == FC_OK)
		code = fc_bench_engine_open(&pair->engine, bench, 0, pair->ssd_bytes, error);
	if (code != FC_OK)
		return code;
	fc_bench_engine_use(&pair->engine, bench->seed, 0);
	code = fc_bench_engine_save(&pair->engine, &turn, true, NULL, error);
	if (code == FC_OK)
		code = fc_bench_engine_check(&pair->engine, bench->seed, error);
	fc_bench_engine_close(&pair->engine);
	return code;
}

static int measure_loads(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row row = {
		.name = "shared-load",
		.summary = "load of a session from SSD through flatcaked / embedded",
		.unit = "ratio",
		.runs_unit = "GiB/s",
		.goal = FC_BENCH_AT_LEAST,
		.target = 0.95,
	};
	struct load_pair pair = {.bench = *bench, .row = fc_bench_add_row(bench, &row, true)};
	if (pair.row == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	int code = prepare_pair(&pair, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, load_shared, load_embedded, &pair, error);
	for (uint64_t run = 0; run < pair.row->run_count; run++) {
		pair.row->runs[run] /= 1 << 30;
		pair.row->peer_runs[run] /= 1 << 30;
	}
	if (code == FC_OK)
		fc_bench_set_ratio(pair.row);
	if (code == FC_OK)
		fc_bench_note(pair.row, "%.2f GiB/s, embedded %.2f",
			      fc_bench_median(pair.row->runs, pair.row->run_count),
			      fc_bench_median(pair.row->peer_runs, pair.row->run_count));
	fc_bench_engine_deinit(&pair.engine);
	return code;
}

/* ---- matches ---- */

struct match_world {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_daemon daemon;
	struct fc_bench_history history;
};

static int time_matches(struct match_world *world, struct fc_bench_row *median, struct fc_bench_row *tail,
			struct fc_error *error)
{
	double times_s[MATCHES];
	int code = fc_bench_engine_connect(&world->engine, world->bench, world->daemon.socket_path, error);
	for (uint64_t run = 0; run < world->bench->run_count && code == FC_OK; run++) {
		fc_bench_engine_use(&world->engine, world->bench->seed, run % world->history.session_count);
		for (int i = 0; i < MATCHES && code == FC_OK; i++) {
			double begin_s = fc_bench_seconds();
			code = fc_bench_history_match(&world->history, &world->engine, error);
			times_s[i] = fc_bench_seconds() - begin_s;
		}
		median->runs[run] = fc_bench_percentile(times_s, MATCHES, 50) * 1e3;
		tail->runs[run] = fc_bench_percentile(times_s, MATCHES, 99) * 1e3;
	}
	fc_bench_engine_close(&world->engine);
	if (code != FC_OK)
		return code;
	fc_bench_set_median(median);
	fc_bench_set_median(tail);
	fc_bench_note(tail, "of %d matches a run", MATCHES);
	return FC_OK;
}

/* A process of its own: connects, says so, waits until all are connected, and asks until the time is over. */
static void be_matcher(struct match_world *world, int from, int to, double seconds)
{
	struct fc_error error = {0};
	char byte = 0;
	uint64_t count = 0;
	int code = fc_bench_engine_connect(&world->engine, world->bench, world->daemon.socket_path, &error);
	if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
		_exit(1);
	double end_s = fc_bench_seconds() + seconds;
	while (code == FC_OK && (count == 0 || fc_bench_seconds() < end_s)) {
		code = fc_bench_history_match(&world->history, &world->engine, &error);
		count += code == FC_OK;
	}
	if (code != FC_OK)
		fprintf(stderr, "matcher: %s\n", error.text);
	fc_bench_engine_close(&world->engine);
	_exit(write(to, &count, sizeof(count)) == sizeof(count) ? 0 : 1);
}

struct matchers {
	int start[2], told[2];
	uint64_t started, answered, matches;
};

static void collect(struct matchers *matchers)
{
	char byte = 0;
	for (uint64_t i = 0; i < matchers->started; i++)
		if (read(matchers->told[0], &byte, 1) != 1)
			return;
	for (uint64_t i = 0; i < matchers->started; i++)
		if (write(matchers->start[1], &byte, 1) != 1)
			return;
	for (uint64_t i = 0; i < matchers->started; i++) {
		uint64_t count = 0;
		if (read(matchers->told[0], &count, sizeof(count)) != sizeof(count))
			return;
		matchers->answered += count > 0;
		matchers->matches += count;
	}
}

/* How many matches `process_count` processes get answered in that time, and how many of them got any. */
static int run_matchers(struct match_world *world, uint64_t process_count, double seconds, struct matchers *matchers,
			struct fc_error *error)
{
	*matchers = (struct matchers){0};
	if (pipe(matchers->start) != 0 || pipe(matchers->told) != 0)
		return fc_error_set(error, FC_ESYSTEM, "pipe: %s", strerror(errno));
	for (; matchers->started < process_count; matchers->started++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			be_matcher(world, matchers->start[0], matchers->told[1], seconds);
	}
	close(matchers->told[1]);
	collect(matchers);
	close(matchers->told[0]);
	close(matchers->start[0]);
	close(matchers->start[1]);
	for (uint64_t i = 0; i < matchers->started; i++)
		(void)waitpid(-1, NULL, 0);
	return FC_OK;
}

static int count_matches(struct match_world *world, struct fc_bench_row *rate, struct fc_bench_row *clients,
			 struct fc_error *error)
{
	struct matchers matchers;
	fc_bench_engine_use(&world->engine, world->bench->seed, 0);
	for (uint64_t run = 0; run < world->bench->run_count; run++) {
		int code = run_matchers(world, MATCHERS, MATCH_SECONDS, &matchers, error);
		if (code == FC_OK)
			code = fc_bench_step(world->bench, error);
		if (code != FC_OK)
			return code;
		rate->runs[run] = (double)matchers.matches / MATCH_SECONDS;
		code = run_matchers(world, CLIENTS, 0, &matchers, error);
		if (code != FC_OK)
			return code;
		clients->runs[run] = (double)matchers.answered;
	}
	fc_bench_set_median(rate);
	fc_bench_set_median(clients);
	fc_bench_note(rate, "%d processes, each with one match under way", MATCHERS);
	return FC_OK;
}

struct match_rows {
	struct fc_bench_row *start, *median, *tail, *rate, *clients;
};

static int add_match_rows(struct fc_bench *bench, struct match_rows *rows, struct fc_error *error)
{
	static const struct fc_bench_row kinds[] = {
		{.name = "daemon-start",
		 .summary = "start of flatcaked on an arena with 1 million blocks, to the first welcome",
		 .unit = "s",
		 .runs_unit = "s",
		 .goal = FC_BENCH_AT_MOST,
		 .target = 2},
		{.name = "shared-match",
		 .summary = "match of 14,000 keys through the socket, median",
		 .unit = "ms",
		 .runs_unit = "ms",
		 .goal = FC_BENCH_AT_MOST,
		 .target = 1.5},
		{.name = "shared-match-p99",
		 .summary = "the same, 99th percentile",
		 .unit = "ms",
		 .runs_unit = "ms",
		 .goal = FC_BENCH_AT_MOST,
		 .target = 5},
		{.name = "matches",
		 .summary = "such matches of 16 processes in a closed loop",
		 .unit = "matches/s",
		 .runs_unit = "matches/s",
		 .goal = FC_BENCH_AT_LEAST,
		 .target = 1000},
		{.name = "clients",
		 .summary = "processes connected at once that are all served",
		 .unit = "clients",
		 .runs_unit = "clients",
		 .goal = FC_BENCH_AT_LEAST,
		 .target = CLIENTS},
	};
	struct fc_bench_row **places[] = {&rows->start, &rows->median, &rows->tail, &rows->rate, &rows->clients};
	for (size_t i = 0; i < fc_array_len(kinds); i++) {
		*places[i] = fc_bench_add_row(bench, &kinds[i], false);
		if (*places[i] == NULL)
			return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	}
	return FC_OK;
}

static int time_starts(struct match_world *world, struct fc_bench_row *row, struct fc_error *error)
{
	int code = FC_OK;
	for (uint64_t run = 0; run < world->bench->run_count && code == FC_OK; run++) {
		fc_bench_daemon_stop(&world->daemon);
		code = fc_bench_step(world->bench, error);
		if (code == FC_OK)
			code = fc_bench_daemon_start(&world->daemon, world->bench, &world->engine,
						     FC_BENCH_HISTORY_ROOM_BYTES, error);
		row->runs[run] = world->daemon.start_s;
	}
	if (code == FC_OK)
		fc_bench_set_median(row);
	return code;
}

static int measure_matches(struct fc_bench *bench, struct fc_error *error)
{
	struct match_world world = {.bench = bench};
	struct match_rows rows;
	int code = add_match_rows(bench, &rows, error);
	if (code == FC_OK)
		code = make_folder(bench, "matches", error);
	if (code == FC_OK)
		code = fc_bench_history_write(&world.history, &world.engine, bench, error);
	fc_bench_engine_close(&world.engine);
	if (code == FC_OK)
		code = time_starts(&world, rows.start, error);
	if (code == FC_OK)
		code = time_matches(&world, rows.median, rows.tail, error);
	if (code == FC_OK)
		code = count_matches(&world, rows.rate, rows.clients, error);
	fc_bench_engine_deinit(&world.engine);
	fc_bench_daemon_stop(&world.daemon);
	return code;
}

int fc_bench_shared(struct fc_bench *bench, struct fc_error *error)
{
	struct fc_bench loads = *bench, matches = *bench;
	int code = measure_loads(&loads, error);
	/* Many small processes: windows as small as this geometry lets them be, and turns that stay apart. */
	matches.store.consolidate_ratio = 0;
	matches.store.streams = 1;
	matches.store.window_bytes = 1u << 20;
	return code == FC_OK ? measure_matches(&matches, error) : code;
}

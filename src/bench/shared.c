/* A store that is shared: what the way through flatcaked costs against the same store embedded, and how many processes
 * it serves.
 *
 *   shared-load     a session from SSD, through the daemon and embedded, in pairs: the data takes the same way
 *   daemon-start    to the first welcome, with the million blocks of `open` in the arena, beside an open of it embedded
 *   shared-match    14,000 keys in that, by one client: median and 99th percentile, beside those of a bare server
 * (bare.h) matches         the same by 16 processes at once, each asking again as soon as it is answered, beside the
 * same clients         64 processes that are connected at once, and all served */
#include "bench/bare.h"
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
#define MATCHERS FC_BENCH_BARE_CLIENTS
#define CLIENTS 64
#define MATCH_MS 3000u
#define MATCH_MS_MIN 200u

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
	struct fc_bench_bare bare;
	double seconds; /* of matches in a closed loop */
	struct match_rows {
		struct fc_bench_row *start, *median, *tail, *rate, *clients;
	} rows;
};

/* One match by client `number`, of flatcaked or of the bare server. */
static int ask(struct match_world *world, bool is_bare, uint64_t number, struct fc_error *error)
{
	if (is_bare)
		return fc_bench_bare_ask(&world->bare, number, error);
	return fc_bench_history_match(&world->history, &world->engine, error);
}

static int time_matches(struct match_world *world, bool is_bare, double *median_ms, double *tail_ms,
			struct fc_error *error)
{
	double times_s[MATCHES];
	int code = FC_OK;
	for (int i = 0; i < MATCHES && code == FC_OK; i++) {
		double begin_s = fc_bench_seconds();
		code = ask(world, is_bare, 0, error);
		times_s[i] = fc_bench_seconds() - begin_s;
	}
	if (code != FC_OK)
		return code;
	*median_ms = fc_bench_percentile(times_s, MATCHES, 50) * 1e3;
	*tail_ms = fc_bench_percentile(times_s, MATCHES, 99) * 1e3;
	return FC_OK;
}

static int time_shared(void *context, uint64_t run, struct fc_error *error)
{
	struct match_world *world = context;
	fc_bench_engine_use(&world->engine, world->bench->seed, run % world->history.session_count);
	return time_matches(world, false, &world->rows.median->runs[run], &world->rows.tail->runs[run], error);
}

static int time_bare(void *context, uint64_t run, struct fc_error *error)
{
	struct match_world *world = context;
	return time_matches(world, true, &world->rows.median->peer_runs[run], &world->rows.tail->peer_runs[run], error);
}

/* "0.50 ms, limit 0.40 ms": of the row's runs, and of its peer's. */
static void note_medians(struct fc_bench_row *row, const char *more)
{
	fc_bench_set_ratio(row);
	fc_bench_note(row, "%.4g %s, limit %.4g %s%s", fc_bench_median(row->runs, row->run_count), row->runs_unit,
		      fc_bench_median(row->peer_runs, row->run_count), row->runs_unit, more);
}

static int compare_matches(struct match_world *world, struct fc_error *error)
{
	int code = fc_bench_engine_connect(&world->engine, world->bench, world->daemon.socket_path, error);
	if (code == FC_OK)
		code = fc_bench_pairs(world->bench, time_shared, time_bare, world, error);
	fc_bench_engine_close(&world->engine);
	if (code != FC_OK)
		return code;
	note_medians(world->rows.median, "");
	note_medians(world->rows.tail, " of 1,000 matches a run");
	return FC_OK;
}

/* What a matcher is: which of how many, for how long, and whom it asks. */
struct matching {
	uint64_t process_count;
	double seconds;
	bool is_bare;
};

/* A process of its own: connects, says so, waits until all are connected, and asks until the time is over. */
static void be_matcher(struct match_world *world, const struct matching *matching, uint64_t number, int from, int to)
{
	struct fc_error error = {0};
	char byte = 0;
	uint64_t count = 0;
	int code = FC_OK;
	if (!matching->is_bare)
		code = fc_bench_engine_connect(&world->engine, world->bench, world->daemon.socket_path, &error);
	if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
		_exit(1);
	double end_s = fc_bench_seconds() + matching->seconds;
	while (code == FC_OK && (count == 0 || fc_bench_seconds() < end_s)) {
		code = ask(world, matching->is_bare, number, &error);
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

/* How many matches so many processes get answered in that time, and how many of them got any. */
static int run_matchers(struct match_world *world, const struct matching *matching, struct matchers *matchers,
			struct fc_error *error)
{
	*matchers = (struct matchers){0};
	if (pipe(matchers->start) != 0 || pipe(matchers->told) != 0)
		return fc_error_set(error, FC_ESYSTEM, "pipe: %s", strerror(errno));
	for (; matchers->started < matching->process_count; matchers->started++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			be_matcher(world, matching, matchers->started, matchers->start[0], matchers->told[1]);
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

static int count_shared(void *context, uint64_t run, struct fc_error *error)
{
	struct match_world *world = context;
	struct matchers matchers;
	struct matching busy = {MATCHERS, world->seconds, false}, many = {CLIENTS, 0, false};
	int code = run_matchers(world, &busy, &matchers, error);
	if (code != FC_OK)
		return code;
	world->rows.rate->runs[run] = (double)matchers.matches / world->seconds;
	code = run_matchers(world, &many, &matchers, error);
	world->rows.clients->runs[run] = (double)matchers.answered;
	return code;
}

static int count_bare(void *context, uint64_t run, struct fc_error *error)
{
	struct match_world *world = context;
	struct matchers matchers;
	struct matching busy = {MATCHERS, world->seconds, true};
	int code = run_matchers(world, &busy, &matchers, error);
	world->rows.rate->peer_runs[run] = (double)matchers.matches / world->seconds;
	return code;
}

static int count_matches(struct match_world *world, struct fc_error *error)
{
	fc_bench_engine_use(&world->engine, world->bench->seed, 0);
	int code = fc_bench_pairs(world->bench, count_shared, count_bare, world, error);
	if (code != FC_OK)
		return code;
	fc_bench_set_median(world->rows.clients);
	note_medians(world->rows.rate, ", each process with one match under way");
	return FC_OK;
}

static int add_match_rows(struct fc_bench *bench, struct match_rows *rows, struct fc_error *error)
{
	static const struct fc_bench_row kinds[] = {
		{.name = "daemon-start",
		 .summary = "start of flatcaked on an arena with 1 million blocks, to the first welcome / open of it "
			    "embedded",
		 .unit = "x",
		 .runs_unit = "s",
		 .goal = FC_BENCH_AT_MOST,
		 .target = 1.5},
		{.name = "shared-match",
		 .summary = "match of 14,000 keys through the socket, median / by a bare server of as many bytes and "
			    "probes",
		 .unit = "x",
		 .runs_unit = "ms",
		 .goal = FC_BENCH_AT_MOST,
		 .target = 4},
		{.name = "shared-match-p99",
		 .summary = "the same, 99th percentile",
		 .unit = "x",
		 .runs_unit = "ms",
		 .goal = FC_BENCH_AT_MOST,
		 .target = 10},
		{.name = "matches",
		 .summary = "such matches of 16 processes in a closed loop / of as many at the bare server",
		 .unit = "ratio",
		 .runs_unit = "matches/s",
		 .goal = FC_BENCH_AT_LEAST,
		 .target = 0.3},
		{.name = "clients",
		 .summary = "processes connected at once that are all served",
		 .unit = "clients",
		 .runs_unit = "clients",
		 .goal = FC_BENCH_AT_LEAST,
		 .target = CLIENTS},
	};
	struct fc_bench_row **places[] = {&rows->start, &rows->median, &rows->tail, &rows->rate, &rows->clients};
	for (size_t i = 0; i < fc_array_len(kinds); i++) {
		*places[i] = fc_bench_add_row(bench, &kinds[i], places[i] != &rows->clients);
		if (*places[i] == NULL)
			return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	}
	return FC_OK;
}

static int time_start(void *context, uint64_t run, struct fc_error *error)
{
	struct match_world *world = context;
	int code =
		fc_bench_daemon_start(&world->daemon, world->bench, &world->engine, FC_BENCH_HISTORY_ROOM_BYTES, error);
	world->rows.start->runs[run] = world->daemon.start_s;
	fc_bench_daemon_stop(&world->daemon);
	return code;
}

static int time_open(void *context, uint64_t run, struct fc_error *error)
{
	struct match_world *world = context;
	double start_s = fc_bench_seconds();
	int code = fc_bench_engine_open(&world->engine, world->bench, 0, FC_BENCH_HISTORY_ROOM_BYTES, error);
	world->rows.start->peer_runs[run] = fc_bench_seconds() - start_s;
	fc_bench_engine_close(&world->engine);
	return code;
}

/* It is running afterwards. */
static int time_starts(struct match_world *world, struct fc_error *error)
{
	int code = fc_bench_pairs(world->bench, time_start, time_open, world, error);
	if (code != FC_OK)
		return code;
	note_medians(world->rows.start, "");
	return fc_bench_daemon_start(&world->daemon, world->bench, &world->engine, FC_BENCH_HISTORY_ROOM_BYTES, error);
}

static int measure_matches(struct fc_bench *bench, struct fc_error *error)
{
	struct match_world world = {.bench = bench,
				    .seconds = (double)fc_bench_scaled(bench, MATCH_MS, MATCH_MS_MIN) / 1e3};
	int code = add_match_rows(bench, &world.rows, error);
	if (code == FC_OK)
		code = make_folder(bench, "matches", error);
	if (code == FC_OK)
		code = fc_bench_history_write(&world.history, &world.engine, bench, error);
	fc_bench_engine_close(&world.engine);
	if (code == FC_OK)
		code = time_starts(&world, error);
	if (code == FC_OK)
		code = fc_bench_bare_start(&world.bare, &world.history, bench->seed, error);
	if (code == FC_OK)
		code = compare_matches(&world, error);
	if (code == FC_OK)
		code = count_matches(&world, error);
	fc_bench_bare_stop(&world.bare);
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

/* Small beside big: loads of 2 MiB (16 layers of 8 slices of 16 KiB) while 1,000 MiB are under way, spread over four
 * fifths of the time that these take alone.
 *
 *   mixed-load, -worst     beside a long load: the median and the longest of the short ones / their median alone
 *   mixed-save, -worst     beside a save
 *   mixed-long             the long load beside the short ones / alone
 *   mixed-shared, -worst   beside the long loads of another process, both of one flatcaked
 *
 * The first two are one store of one process. The other process of the last knows nothing of the short loads: only what
 * it keeps out of the drive on its own account helps them. */
#include "bench/daemon.h"

#include "base/random.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAYERS 16
#define SLICE_BYTES (16ull << 10)
#define LONG_BLOCKS 4000ull
#define SHORT_BLOCKS 8ull
#define SHORTS 20ull
#define SPREAD 0.8 /* of the long one's time */
#define ROOM_FACTOR 4
#define SHARED_PAUSE_S 0.01
#define SHARED_BEGIN_S 0.05

struct mixed_rows {
	struct fc_bench_row *load, *load_worst, *save, *save_worst, *long_load, *shared, *shared_worst;
};

struct mixed {
	struct fc_bench bench; /* as given */
	struct fc_bench_engine engine;
	struct fc_bench_daemon daemon;
	struct mixed_rows rows;
	struct fc_key keys[SHORTS * SHORT_BLOCKS];
	uint64_t ssd_bytes, next_session;
	double save_s; /* alone */
};

/* ---- short loads ---- */

static struct fc_load_opts short_load(const struct mixed *mixed, uint64_t number)
{
	const struct fc_bench_engine *engine = &mixed->engine;
	struct fc_load_opts opts = {
		.keys = mixed->keys + number * SHORT_BLOCKS,
		.key_count = SHORT_BLOCKS,
		.kv = engine->kv,
		.is_started_when_ready = true,
	};
	opts.slots[0] = (struct fc_slots){.count = SHORT_BLOCKS,
					  .slots = engine->slots + engine->block_count + number * SHORT_BLOCKS};
	return opts;
}

static int time_short(const struct mixed *mixed, uint64_t number, double *seconds, struct fc_error *error)
{
	struct fc_load_opts opts = short_load(mixed, number);
	struct fc_load_result result;
	struct fc_load *load;
	double begin_s = fc_bench_seconds();
	int code = fc_load_submit(mixed->engine.store, &opts, &load, error);
	if (code != FC_OK)
		return code;
	code = fc_load_wait(load, &result);
	fc_load_free(load);
	*seconds = fc_bench_seconds() - begin_s;
	if (code == FC_OK && result.blocks == SHORT_BLOCKS)
		return FC_OK;
	return fc_error_set(error, code == FC_OK ? FC_EIO : code, "short load: %llu of %llu blocks came back",
			    (unsigned long long)result.blocks, SHORT_BLOCKS);
}

static void sleep_until(double at_s)
{
	double left_s = at_s - fc_bench_seconds();
	if (left_s > 0)
		usleep((useconds_t)(left_s * 1e6));
}

struct times {
	double median_ms, worst_ms;
};

/* All of the short loads, one begun every `pace_s`, or when the one before it has ended. */
static int time_shorts(const struct mixed *mixed, double pace_s, struct times *times, struct fc_error *error)
{
	double each_s[SHORTS], begin_s = fc_bench_seconds();
	int code = FC_OK;
	for (uint64_t i = 0; i < SHORTS && code == FC_OK; i++) {
		sleep_until(begin_s + ((double)i + 0.5) * pace_s);
		code = time_short(mixed, i, &each_s[i], error);
	}
	if (code != FC_OK)
		return code;
	times->median_ms = fc_bench_median(each_s, SHORTS) * 1e3;
	times->worst_ms = fc_bench_percentile(each_s, SHORTS, 99) * 1e3;
	return FC_OK;
}

static void note_times(struct fc_bench_row *median, struct fc_bench_row *worst, uint64_t run, struct times beside,
		       struct times alone)
{
	median->runs[run] = beside.median_ms;
	worst->runs[run] = beside.worst_ms;
	median->peer_runs[run] = worst->peer_runs[run] = alone.median_ms;
}

/* ---- beside a load ---- */

static int run_beside_load(struct mixed *mixed, uint64_t run, struct times alone, struct fc_error *error)
{
	struct fc_load_result result;
	struct fc_load *load;
	struct times times;
	fc_bench_engine_use(&mixed->engine, mixed->bench.seed, 0);
	double begin_s = fc_bench_seconds();
	int code = fc_bench_engine_load(&mixed->engine, &result, error);
	double alone_s = fc_bench_seconds() - begin_s;
	if (code != FC_OK)
		return code;
	begin_s = fc_bench_seconds();
	code = fc_bench_engine_submit_load(&mixed->engine, &load, error);
	if (code != FC_OK)
		return code;
	code = time_shorts(mixed, SPREAD * alone_s / SHORTS, &times, error);
	int ended = fc_bench_engine_wait(&mixed->engine, load, &result, code == FC_OK ? error : NULL);
	mixed->rows.long_load->runs[run] = (fc_bench_seconds() - begin_s) * 1e3;
	mixed->rows.long_load->peer_runs[run] = alone_s * 1e3;
	if (code == FC_OK && ended == FC_OK)
		note_times(mixed->rows.load, mixed->rows.load_worst, run, times, alone);
	return code == FC_OK ? ended : code;
}

/* ---- beside a save ---- */

static int submit_save(struct mixed *mixed, struct fc_save **save, struct fc_error *error)
{
	struct fc_bench_turn turn = {.session = mixed->next_session, .block_count = mixed->engine.block_count};
	fc_bench_engine_use(&mixed->engine, mixed->bench.seed, mixed->next_session++);
	return fc_bench_engine_submit(&mixed->engine, &turn, save, error);
}

static int wait_save(struct fc_save *save, struct fc_error *error)
{
	struct fc_save_result result;
	int code = fc_save_wait(save, true, &result);
	fc_save_free(save);
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "save: %s", result.error.text);
}

static int run_beside_save(struct mixed *mixed, uint64_t run, struct times alone, struct fc_error *error)
{
	struct fc_save *save;
	struct times times;
	int code = submit_save(mixed, &save, error);
	if (code != FC_OK)
		return code;
	code = time_shorts(mixed, SPREAD * mixed->save_s / SHORTS, &times, error);
	int ended = wait_save(save, code == FC_OK ? error : NULL);
	if (code == FC_OK && ended == FC_OK)
		note_times(mixed->rows.save, mixed->rows.save_worst, run, times, alone);
	return code == FC_OK ? ended : code;
}

static int run_all(struct mixed *mixed, struct fc_error *error)
{
	int code = FC_OK;
	for (uint64_t run = 0; run < mixed->bench.run_count && code == FC_OK; run++) {
		struct times alone;
		code = fc_bench_step(&mixed->bench, error);
		if (code == FC_OK)
			code = time_shorts(mixed, 0, &alone, error);
		if (code == FC_OK)
			code = run_beside_load(mixed, run, alone, error);
		if (code == FC_OK)
			code = run_beside_save(mixed, run, alone, error);
	}
	return code;
}

/* ---- beside another process ---- */

/* The other process: says that it is there, and loads until nobody listens. The first byte that it gets lets it begin.
 */
static void be_other(struct mixed *mixed, int from, int to)
{
	struct fc_error error = {0};
	struct fc_load_result result;
	char byte = 0;
	(void)signal(SIGPIPE, SIG_IGN);
	fc_bench_engine_use(&mixed->engine, mixed->bench.seed, 0);
	int code = fc_bench_engine_connect(&mixed->engine, &mixed->bench, mixed->daemon.socket_path, &error);
	if (code == FC_OK)
		code = fc_bench_engine_load(&mixed->engine, &result, &error);
	bool may_go = code == FC_OK && write(to, &byte, 1) == 1 && read(from, &byte, 1) == 1;
	while (code == FC_OK && may_go && write(to, &byte, 1) == 1)
		code = fc_bench_engine_load(&mixed->engine, &result, &error);
	if (code != FC_OK)
		fprintf(stderr, "mixed: the other process: %s\n", error.text);
	fc_bench_engine_close(&mixed->engine);
	_exit(code == FC_OK ? 0 : 1);
}

/* With the other process there and waiting at `to` for its first byte. */
static int run_beside_other(struct mixed *mixed, uint64_t run, int from, int to, struct fc_error *error)
{
	struct times alone, beside;
	char byte = 0;
	int code = fc_bench_engine_connect(&mixed->engine, &mixed->bench, mixed->daemon.socket_path, error);
	if (code == FC_OK)
		code = time_shorts(mixed, 0, &alone, error); /* finds windows untouched */
	if (code == FC_OK)
		code = time_shorts(mixed, 0, &alone, error);
	if (code == FC_OK && (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1))
		code = fc_error_set(error, FC_ESYSTEM, "the other process has ended");
	if (code == FC_OK)
		sleep_until(fc_bench_seconds() + SHARED_BEGIN_S);
	if (code == FC_OK)
		code = time_shorts(mixed, SHARED_PAUSE_S, &beside, error);
	if (code == FC_OK)
		note_times(mixed->rows.shared, mixed->rows.shared_worst, run, beside, alone);
	fc_bench_engine_close(&mixed->engine);
	return code;
}

static int run_shared(struct mixed *mixed, uint64_t run, struct fc_error *error)
{
	int to[2], from[2], status;
	char byte;
	if (pipe(to) != 0 || pipe(from) != 0)
		return fc_error_set(error, FC_ESYSTEM, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		be_other(mixed, to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	int code = pid > 0 && read(from[0], &byte, 1) == 1 ? FC_OK : FC_ESYSTEM;
	if (code == FC_OK)
		code = run_beside_other(mixed, run, from[0], to[1], error);
	else
		(void)fc_error_set(error, code, "the other process did not start");
	(void)close(to[1]);
	(void)close(from[0]);
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	return code;
}

static int run_all_shared(struct mixed *mixed, struct fc_error *error)
{
	int code = fc_bench_daemon_start(&mixed->daemon, &mixed->bench, &mixed->engine, mixed->ssd_bytes, error);
	for (uint64_t run = 0; run < mixed->bench.run_count && code == FC_OK; run++) {
		code = fc_bench_step(&mixed->bench, error);
		if (code == FC_OK)
			code = run_shared(mixed, run, error);
	}
	fc_bench_daemon_stop(&mixed->daemon);
	return code;
}

/* ---- the measurement ---- */

static int save_shorts(struct mixed *mixed, struct fc_error *error)
{
	struct fc_random random;
	int code = FC_OK;
	fc_random_init(&random, mixed->bench.seed);
	for (uint64_t i = 0; i < SHORTS * SHORT_BLOCKS; i++)
		mixed->keys[i] = (struct fc_key){fc_random_u64(&random), fc_random_u64(&random)};
	for (uint64_t i = 0; i < SHORTS && code == FC_OK; i++) {
		struct fc_load_opts load = short_load(mixed, i);
		struct fc_save_opts opts = {
			.session = {.high = 2, .low = i + 1},
			.keys = load.keys,
			.key_count = load.key_count,
			.kv = load.kv,
		};
		struct fc_save *save;
		opts.slots[0] = load.slots[0];
		code = fc_save_submit(mixed->engine.store, &opts, &save, error);
		if (code == FC_OK)
			code = wait_save(save, error);
	}
	return code;
}

/* The first session is the one that is loaded; the second one says how long a save takes. */
static int prepare(struct mixed *mixed, struct fc_error *error)
{
	struct fc_bench_engine *engine = &mixed->engine;
	uint64_t blocks = fc_bench_scaled(&mixed->bench, LONG_BLOCKS, 8 * SHORT_BLOCKS);
	int code = fc_bench_engine_init_among(engine, LAYERS, blocks, blocks + SHORTS * SHORT_BLOCKS, SLICE_BYTES,
					      mixed->bench.seed, error);
	mixed->ssd_bytes = ROOM_FACTOR * engine->memory_bytes + (64ull << 20);
	if (code == FC_OK)
		code = fc_bench_engine_open(engine, &mixed->bench, 0, mixed->ssd_bytes, error);
	for (int i = 0; i < 2 && code == FC_OK; i++) {
		struct fc_save *save;
		double begin_s = fc_bench_seconds();
		code = submit_save(mixed, &save, error);
		if (code == FC_OK)
			code = wait_save(save, error);
		mixed->save_s = fc_bench_seconds() - begin_s;
	}
	return code == FC_OK ? save_shorts(mixed, error) : code;
}

static int add_rows(struct mixed *mixed, struct fc_bench *bench, struct fc_error *error)
{
	static const struct {
		const char *name, *summary;
		double target;
	} kinds[] = {
		{"mixed-load", "short loads beside a long one / alone, median", 5},
		{"mixed-load-worst", "the longest of 20 of them / their median alone", 20},
		{"mixed-save", "short loads beside a long save / alone, median", 5},
		{"mixed-save-worst", "the longest of 20 of them / their median alone", 20},
		{"mixed-long", "the long load beside the short ones / alone", 1.1},
		{"mixed-shared", "short loads beside the long ones of another process / alone, median", 5},
		{"mixed-shared-worst", "the longest of 20 of them / their median alone", 20},
	};
	struct mixed_rows *rows = &mixed->rows;
	struct fc_bench_row **places[] = {&rows->load,      &rows->load_worst, &rows->save,        &rows->save_worst,
					  &rows->long_load, &rows->shared,     &rows->shared_worst};
	for (size_t i = 0; i < fc_array_len(kinds); i++) {
		struct fc_bench_row row = {
			.name = kinds[i].name,
			.summary = kinds[i].summary,
			.unit = "ratio",
			.runs_unit = "ms",
			.goal = FC_BENCH_AT_MOST,
			.target = kinds[i].target,
		};
		*places[i] = fc_bench_add_row(bench, &row, true);
		if (*places[i] == NULL)
			return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	}
	return FC_OK;
}

static void set_values(const struct mixed_rows *rows)
{
	struct fc_bench_row *const all[] = {rows->load,      rows->load_worst, rows->save,        rows->save_worst,
					    rows->long_load, rows->shared,     rows->shared_worst};
	for (size_t i = 0; i < fc_array_len(all); i++) {
		struct fc_bench_row *row = all[i];
		fc_bench_set_ratio(row);
		fc_bench_note(row, "%.1f ms, alone %.1f", fc_bench_median(row->runs, row->run_count),
			      fc_bench_median(row->peer_runs, row->run_count));
	}
}

int fc_bench_mixed(struct fc_bench *bench, struct fc_error *error)
{
	struct mixed mixed = {.bench = *bench};
	int code = add_rows(&mixed, bench, error);
	if (code == FC_OK)
		code = prepare(&mixed, error);
	if (code == FC_OK)
		code = run_all(&mixed, error);
	fc_bench_engine_close(&mixed.engine);
	if (code == FC_OK)
		code = run_all_shared(&mixed, error);
	if (code == FC_OK)
		set_values(&mixed.rows);
	fc_bench_engine_deinit(&mixed.engine);
	return code;
}

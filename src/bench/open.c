/* A large arena: a million blocks in 16,000 segments, made through the store itself, with slices so small that nothing
 * but the number of segments counts. Then two questions: how long it takes to open, and how long to find a history of
 * 14,000 blocks (219k tokens in blocks of 16) among all of that. Turns are not consolidated here, so that the history
 * lies in more than 200 segments. */
#include "bench/engine.h"

#include "base/check.h"

#define SESSIONS 72
#define TURNS 223
#define TURN_BLOCKS 63
#define HISTORY_BLOCKS 14000
#define SLICE_BYTES 16
#define MATCHES 200
#define ROOM_BYTES (512ull << 20) /* a segment takes one chunk of 16 KiB */

struct open_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_row *open, *match;
	uint64_t session_count, turn_count;
	struct fc_stats stats;
};

/* One turn of every session at once; the next one needs this one to be visible. */
static int write_turn(struct open_bench *open, uint64_t number, struct fc_error *error)
{
	struct fc_save *saves[SESSIONS];
	uint64_t count = 0;
	int code = FC_OK;
	for (; count < open->session_count && code == FC_OK; count++) {
		struct fc_bench_turn turn = {count, number, (number + 1) * TURN_BLOCKS};
		fc_bench_engine_use(&open->engine, open->bench->seed, count);
		code = fc_bench_engine_submit(&open->engine, &turn, &saves[count], error);
		if (code != FC_OK)
			break;
	}
	for (uint64_t i = 0; i < count; i++) {
		struct fc_save_result result;
		int saved = fc_save_wait(saves[i], false, &result);
		if (saved != FC_OK && code == FC_OK)
			code = fc_error_set(error, saved, "save: %s", result.error.text);
		fc_save_free(saves[i]);
	}
	return code;
}

static int write_arena(struct open_bench *open, struct fc_error *error)
{
	int code = FC_OK;
	for (uint64_t turn = 0; turn < open->turn_count && code == FC_OK; turn++) {
		if (turn % 16 == 0)
			code = fc_bench_step(open->bench, error);
		if (code == FC_OK)
			code = write_turn(open, turn, error);
	}
	return code == FC_OK ? fc_store_sync(open->engine.store, error) : code;
}

static int time_matches(struct open_bench *open, uint64_t run, struct fc_error *error)
{
	uint64_t wanted = fc_min_u64(HISTORY_BLOCKS, open->engine.block_count);
	struct fc_match match;
	double times_s[MATCHES];
	fc_bench_engine_use(&open->engine, open->bench->seed, run % open->session_count);
	for (int i = 0; i < MATCHES; i++) {
		double start_s = fc_bench_seconds();
		int code = fc_match(open->engine.store, open->engine.keys, wanted, &match);
		times_s[i] = fc_bench_seconds() - start_s;
		if (code == FC_OK && match.blocks != wanted)
			code = FC_ENOENT;
		if (code != FC_OK)
			return fc_error_set(error, code, "match: %llu of %llu blocks were found",
					    (unsigned long long)match.blocks, (unsigned long long)wanted);
	}
	open->match->runs[run] = fc_bench_median(times_s, MATCHES) * 1e3;
	return FC_OK;
}

static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct open_bench *open = context;
	fc_bench_engine_close(&open->engine);
	double start_s = fc_bench_seconds();
	int code = fc_bench_engine_open(&open->engine, open->bench, 0, ROOM_BYTES, error);
	open->open->runs[run] = fc_bench_seconds() - start_s;
	if (code == FC_OK)
		code = fc_store_stats(open->engine.store, &open->stats);
	uint64_t segments = open->session_count * open->turn_count;
	if (code == FC_OK && open->stats.media[FC_SSD].segments != segments)
		code = fc_error_set(error, FC_ECORRUPT, "%llu of %llu segments came back",
				    (unsigned long long)open->stats.media[FC_SSD].segments,
				    (unsigned long long)segments);
	return code == FC_OK ? time_matches(open, run, error) : code;
}

static int add_rows(struct open_bench *open, struct fc_error *error)
{
	static const struct fc_bench_row opening = {
		.name = "open",
		.summary = "open of an arena with 1 million blocks in 16,000 segments",
		.unit = "s",
		.runs_unit = "s",
		.goal = FC_BENCH_AT_MOST,
		.target = 1,
	};
	static const struct fc_bench_row match = {
		.name = "match",
		.summary = "match of 14,000 keys in it",
		.unit = "ms",
		.runs_unit = "ms",
		.goal = FC_BENCH_AT_MOST,
		.target = 1,
	};
	open->open = fc_bench_add_row(open->bench, &opening, false);
	open->match = fc_bench_add_row(open->bench, &match, false);
	if (open->open == NULL || open->match == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	return FC_OK;
}

static int prepare(struct open_bench *open, struct fc_error *error)
{
	open->bench->store.consolidate_ratio = 0;
	uint64_t blocks = open->turn_count * TURN_BLOCKS;
	int code = fc_bench_engine_init(&open->engine, 1, blocks, blocks * SLICE_BYTES, open->bench->seed, error);
	if (code == FC_OK)
		code = fc_bench_engine_open(&open->engine, open->bench, 0, ROOM_BYTES, error);
	return code == FC_OK ? write_arena(open, error) : code;
}

static void finish(struct open_bench *open)
{
	fc_bench_set_median(open->open);
	fc_bench_note(open->open, "%llu blocks in %llu segments", (unsigned long long)open->stats.blocks,
		      (unsigned long long)open->stats.media[FC_SSD].segments);
	fc_bench_set_median(open->match);
	fc_bench_note(open->match, "median of %d matches a run, from another thread", MATCHES);
}

int fc_bench_open(struct fc_bench *bench, struct fc_error *error)
{
	struct fc_bench own = *bench; /* whose ratio of consolidation is another */
	struct open_bench open = {
		.bench = &own,
		.session_count = fc_bench_scaled(bench, SESSIONS, 2),
		.turn_count = fc_bench_scaled(bench, TURNS, 4),
	};
	int code = add_rows(&open, error);
	if (code == FC_OK)
		code = prepare(&open, error);
	if (code == FC_OK)
		code = fc_bench_pairs(&own, run_ours, NULL, &open, error);
	if (code == FC_OK)
		finish(&open);
	fc_bench_engine_deinit(&open.engine);
	return code;
}

/* The large arena of history.h, and two questions: how long it takes to open, and how long to find a long history among
 * all of that. */
#include "bench/history.h"

#define MATCHES 200

struct open_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_row *open, *match;
	struct fc_bench_history history;
	struct fc_stats stats;
};

static int time_matches(struct open_bench *open, uint64_t run, struct fc_error *error)
{
	double times_s[MATCHES];
	fc_bench_engine_use(&open->engine, open->bench->seed, run % open->history.session_count);
	for (int i = 0; i < MATCHES; i++) {
		double start_s = fc_bench_seconds();
		int code = fc_bench_history_match(&open->history, &open->engine, error);
		times_s[i] = fc_bench_seconds() - start_s;
		if (code != FC_OK)
			return code;
	}
	open->match->runs[run] = fc_bench_median(times_s, MATCHES) * 1e3;
	return FC_OK;
}

static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct open_bench *open = context;
	fc_bench_engine_close(&open->engine);
	double start_s = fc_bench_seconds();
	int code = fc_bench_engine_open(&open->engine, open->bench, 0, FC_BENCH_HISTORY_ROOM_BYTES, error);
	open->open->runs[run] = fc_bench_seconds() - start_s;
	if (code == FC_OK)
		code = fc_store_stats(open->engine.store, &open->stats);
	uint64_t segments = open->history.session_count * open->history.turn_count;
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
	struct open_bench open = {.bench = &own};
	own.store.consolidate_ratio = 0;
	int code = add_rows(&open, error);
	if (code == FC_OK)
		code = fc_bench_history_write(&open.history, &open.engine, &own, error);
	if (code == FC_OK)
		code = fc_bench_pairs(&own, run_ours, NULL, &open, error);
	if (code == FC_OK)
		finish(&open);
	fc_bench_engine_deinit(&open.engine);
	return code;
}

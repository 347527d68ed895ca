/* The large arena of history.h, and two questions: how long it takes to open, and how long to find a long history among
 * all of that.
 *
 * What that takes at least is the machine's: an open has to read what is stored (here, where slices are tiny, hardly
 * more than headers) and to put every key into a table, so its limit is a plain loop of pread() over as many bytes, and
 * a bare probe (probes.h) for each key. A match has to find each key: as many bare probes. */
#include "bench/history.h"
#include "bench/peer.h"
#include "bench/probes.h"

#define MATCHES 200
#define SEGMENT_BYTES (16ull << 10) /* each has one chunk */

struct open_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_row *open, *match;
	struct fc_bench_history history;
	struct fc_bench_probes probes;
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

static int probe(const struct open_bench *open, uint64_t first, uint64_t count, double *seconds, struct fc_error *error)
{
	double start_s = fc_bench_seconds();
	uint64_t found = fc_bench_probes_run(&open->probes, first, count);
	*seconds = fc_bench_seconds() - start_s;
	return found == count ? FC_OK : fc_error_set(error, FC_ECORRUPT, "the bare table loses keys");
}

static int run_peer(void *context, uint64_t run, struct fc_error *error)
{
	struct open_bench *open = context;
	double times_s[MATCHES], cpu_s = 0, seconds = 0;
	uint64_t bytes = open->history.session_count * open->history.turn_count * SEGMENT_BYTES;
	double start_s = fc_bench_seconds();
	int code = fc_bench_pread_loop(open->engine.arena_path, bytes, &cpu_s, error);
	if (code == FC_OK)
		code = probe(open, 0, open->history.block_count, &seconds, error);
	open->open->peer_runs[run] = fc_bench_seconds() - start_s;
	for (uint64_t i = 0; i < MATCHES && code == FC_OK; i++)
		code = probe(open, i * open->history.wanted_blocks % open->history.block_count,
			     open->history.wanted_blocks, &times_s[i], error);
	if (code == FC_OK)
		open->match->peer_runs[run] = fc_bench_median(times_s, MATCHES) * 1e3;
	return code;
}

static int add_rows(struct open_bench *open, struct fc_error *error)
{
	static const struct fc_bench_row opening = {
		.name = "open",
		.summary = "open of an arena with 1 million blocks in 16,000 segments / pread of its bytes and bare "
			   "probes of its keys",
		.unit = "x",
		.runs_unit = "s",
		.goal = FC_BENCH_AT_MOST,
		.target = 5,
	};
	static const struct fc_bench_row match = {
		.name = "match",
		.summary = "match of 14,000 keys in it / as many bare probes",
		.unit = "x",
		.runs_unit = "ms",
		.goal = FC_BENCH_AT_MOST,
		.target = 4,
	};
	open->open = fc_bench_add_row(open->bench, &opening, true);
	open->match = fc_bench_add_row(open->bench, &match, true);
	if (open->open == NULL || open->match == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	return FC_OK;
}

static void finish(struct open_bench *open)
{
	fc_bench_set_ratio(open->open);
	fc_bench_note(open->open, "%.2f s, limit %.2f s; %llu blocks in %llu segments",
		      fc_bench_median(open->open->runs, open->open->run_count),
		      fc_bench_median(open->open->peer_runs, open->open->run_count),
		      (unsigned long long)open->stats.blocks, (unsigned long long)open->stats.media[FC_SSD].segments);
	fc_bench_set_ratio(open->match);
	fc_bench_note(open->match, "%.3f ms, limit %.3f ms; median of %d matches a run, from another thread",
		      fc_bench_median(open->match->runs, open->match->run_count),
		      fc_bench_median(open->match->peer_runs, open->match->run_count), MATCHES);
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
		code = fc_bench_probes_init(&open.probes, open.history.block_count, own.seed, error);
	if (code == FC_OK)
		code = fc_bench_pairs(&own, run_ours, run_peer, &open, error);
	if (code == FC_OK)
		finish(&open);
	fc_bench_probes_deinit(&open.probes);
	fc_bench_engine_deinit(&open.engine);
	return code;
}

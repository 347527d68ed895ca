/* A catalog that is always full, mostly of what cannot be taken alone: does making room cost by what goes, or by how
 * many sessions there are?
 *
 * A fifth of the sessions are prompts in memory, on each of which four conversations on SSD stand. Both arenas are full
 * of them. A turn saves another prompt: memory has nothing that is free to go, so the oldest prompt goes with its four;
 * then four conversations follow on SSD. Some of the oldest prompts have a reader, so each search begins in vain.
 *
 * The same is done with a hundred thousand and with a thousand sessions, and what is compared is the time of a
 * fc_catalog_reserve(): all that a turn waits for in the daemon's thread. */
#include "bench/bench.h"

#include "base/check.h"
#include "base/random.h"
#include "bench/null_media.h"
#include "catalog/catalog.h"
#include "host/alloc.h"

#include <stdlib.h>

#define SESSIONS_LARGE 100000ull
#define SESSIONS_SMALL 1000ull
#define GROUP 5u /* a prompt, and what stands on it */
#define READERS 8u
#define CHUNK_BYTES 16384ull
#define TURNS 400u /* of a run */

struct full {
	struct fc_alloc alloc;
	struct fc_null_media media[FC_MEDIUM_COUNT];
	struct fc_geometry geometry;
	struct fc_catalog *catalog;
	struct fc_reservation reservation;
	struct fc_path readers[READERS];
	struct fc_random random;
	int open_code;
	uint64_t session; /* number of the next */
	uint64_t reserves;
	double seconds, longest_seconds;
};

struct pair {
	struct full large, small;
	struct fc_bench_row *row;
	double longest_seconds[2];
};

static void on_opened(void *context, int code, const struct fc_error *error)
{
	(void)error;
	((struct full *)context)->open_code = code;
}

static void on_told(struct fc_reservation *reservation)
{
	(void)reservation;
}

static void settle(struct full *full)
{
	while (fc_media_poll(&full->media[FC_MEMORY].media) + fc_media_poll(&full->media[FC_SSD].media) > 0)
		;
}

static int open_full(struct full *full, struct fc_bench *bench, uint64_t sessions, struct fc_error *error)
{
	full->alloc = fc_alloc_system();
	fc_random_init(&full->random, bench->seed);
	fc_null_media_init(&full->media[FC_MEMORY], sessions / GROUP * CHUNK_BYTES + (1u << 20));
	fc_null_media_init(&full->media[FC_SSD], sessions / GROUP * (GROUP - 1) * CHUNK_BYTES + (8u << 20));
	full->media[FC_MEMORY].media.is_durable = false;
	full->geometry = (struct fc_geometry){.name = "bench", .block_tokens = 16, .layer_count = 1, .group_count = 1};
	full->geometry.groups[0] =
		(struct fc_group){.rule = FC_RULE_ALL, .tokens_per_block = 16, .slice_bytes[0] = 4096};
	struct fc_catalog_opts opts = {
		.geometry = &full->geometry,
		.alloc = &full->alloc,
		.media = {&full->media[FC_MEMORY].media, &full->media[FC_SSD].media},
		.chunk_bytes = CHUNK_BYTES,
		.uuid = {1, 2},
		.hash_seed = bench->seed,
		.high_watermark = 1,
		.low_watermark = 1,
		.agent_context_tokens = bench->store.agent_context_tokens,
		.long_reply_tokens = bench->store.long_reply_tokens,
	};
	full->reservation.durable_cb = full->reservation.space_cb = on_told;
	full->open_code = FC_EIO;
	int code = fc_catalog_open(&full->catalog, &opts, on_opened, full);
	if (code == FC_OK) {
		settle(full);
		code = full->open_code;
	}
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "catalog: %s", fc_code_text(code));
}

static void close_full(struct full *full)
{
	if (full->catalog == NULL)
		return;
	settle(full);
	for (unsigned i = 0; i < READERS; i++) {
		fc_catalog_release(full->catalog, &full->readers[i]);
		fc_path_deinit(&full->readers[i], &full->alloc);
	}
	fc_reservation_deinit(&full->reservation, &full->alloc);
	fc_catalog_free(full->catalog);
}

/* A first turn goes to SSD, a later one to memory. */
static int save(struct full *full, const struct fc_key *keys, uint64_t count, uint64_t turn, struct fc_error *error)
{
	struct fc_turn opts = {
		.session = {1, ++full->session},
		.keys = keys,
		.key_count = count,
		.turn = turn,
		.resident[0].count = count,
	};
	full->reservation.space_attempts = 0;
	int code;
	do {
		double before = fc_bench_seconds();
		code = fc_catalog_reserve(full->catalog, &opts, &full->reservation, error);
		double seconds = fc_bench_seconds() - before;
		full->seconds += seconds;
		full->longest_seconds = seconds > full->longest_seconds ? seconds : full->longest_seconds;
		full->reserves++;
		settle(full);
	} while (code == FC_EAGAIN);
	if (code != FC_OK)
		return code;
	code = fc_catalog_commit(full->catalog, &full->reservation);
	settle(full);
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "turn: %s", fc_code_text(code));
}

static int save_group(struct full *full, struct fc_path *reader, struct fc_error *error)
{
	struct fc_key keys[2];
	keys[0] = (struct fc_key){fc_random_u64(&full->random), fc_random_u64(&full->random)};
	int code = save(full, keys, 1, 1, error);
	for (unsigned i = 1; i < GROUP && code == FC_OK; i++) {
		keys[1] = (struct fc_key){fc_random_u64(&full->random), fc_random_u64(&full->random)};
		code = save(full, keys, 2, 0, error);
	}
	if (code == FC_OK && reader != NULL)
		code = fc_catalog_match(full->catalog, keys, 2, 0, true, reader);
	return code;
}

static int fill(struct full *full, uint64_t sessions, struct fc_error *error)
{
	int code = FC_OK;
	/* Until memory is full, and once more as often, so that what is measured is the steady state. */
	for (uint64_t group = 0; group < 2 * sessions / GROUP && code == FC_OK; group++)
		code = save_group(full, group < READERS ? &full->readers[group] : NULL, error);
	struct fc_stats stats;
	fc_catalog_stats(full->catalog, &stats);
	if (code == FC_OK && stats.media[FC_MEMORY].sessions_reclaimed == 0)
		return fc_error_set(error, FC_ECORRUPT, "memory was never full");
	return code;
}

static int run(struct full *full, double *mean, double *longest, struct fc_error *error)
{
	int code = FC_OK;
	full->seconds = full->longest_seconds = 0;
	full->reserves = 0;
	for (unsigned turn = 0; turn < TURNS && code == FC_OK; turn++)
		code = save_group(full, NULL, error);
	if (code == FC_OK)
		*mean = full->seconds / (double)full->reserves * 1e6;
	*longest = full->longest_seconds > *longest ? full->longest_seconds : *longest;
	return code;
}

static int run_large(void *context, uint64_t number, struct fc_error *error)
{
	struct pair *pair = context;
	return run(&pair->large, &pair->row->runs[number], &pair->longest_seconds[0], error);
}

static int run_small(void *context, uint64_t number, struct fc_error *error)
{
	struct pair *pair = context;
	return run(&pair->small, &pair->row->peer_runs[number], &pair->longest_seconds[1], error);
}

int fc_bench_full(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row reserve = {
		.name = "full",
		.summary = "mean time of a reserve in a full catalog of 100,000 sessions / of 1,000",
		.unit = "x",
		.runs_unit = "us",
		.goal = FC_BENCH_AT_MOST,
		.target = 2,
	};
	struct pair *pair = calloc(1, sizeof(*pair));
	if (pair == NULL || (pair->row = fc_bench_add_row(bench, &reserve, true)) == NULL) {
		free(pair);
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	}
	uint64_t sessions = fc_bench_scaled(bench, SESSIONS_LARGE, 2 * SESSIONS_SMALL);
	int code = open_full(&pair->large, bench, sessions, error);
	if (code == FC_OK)
		code = open_full(&pair->small, bench, SESSIONS_SMALL, error);
	if (code == FC_OK)
		code = fill(&pair->large, sessions, error);
	if (code == FC_OK)
		code = fill(&pair->small, SESSIONS_SMALL, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, run_large, run_small, pair, error);
	if (code == FC_OK) {
		fc_bench_set_ratio(pair->row);
		fc_bench_note(pair->row, "%llu sessions, mean %.2f us, longest %.0f us; of 1,000 %.2f us and %.0f us",
			      (unsigned long long)sessions, fc_bench_median(pair->row->runs, pair->row->run_count),
			      pair->longest_seconds[0] * 1e6,
			      fc_bench_median(pair->row->peer_runs, pair->row->run_count),
			      pair->longest_seconds[1] * 1e6);
	}
	close_full(&pair->large);
	close_full(&pair->small);
	free(pair);
	return code;
}

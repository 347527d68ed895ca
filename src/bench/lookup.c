/* The index alone: 10 million keys in segments of a thousand, looked up in random order by one thread, beside bare
 * probes of as large a table (probes.h), which say what memory and core allow; and the memory that a key takes, the
 * segments' key arrays included. */
#include "bench/bench.h"

#include "base/random.h"
#include "bench/probes.h"
#include "catalog/index.h"
#include "host/alloc.h"

#include <stdlib.h>

#define KEYS 10000000ull
#define KEYS_MIN 10000ull
#define SEGMENT_KEYS 1000u
#define BATCH_KEYS 14000u

struct lookup_bench {
	struct fc_bench *bench;
	struct fc_bench_row *speed, *size;
	struct fc_alloc alloc;
	struct fc_index index;
	struct fc_key *keys;  /* segment after segment: their key arrays */
	struct fc_key *asked; /* the same in random order */
	struct fc_location *locations;
	struct fc_bench_probes probes;
	uint64_t key_count;
};

static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct lookup_bench *lookup = context;
	uint64_t found = 0;
	double start_s = fc_bench_seconds();
	for (uint64_t first = 0; first < lookup->key_count; first += BATCH_KEYS) {
		struct fc_index_query query = {
			.keys = lookup->asked + first,
			.stride = 1,
			.count = fc_min_u64(BATCH_KEYS, lookup->key_count - first),
		};
		found += fc_index_find_batch(&lookup->index, &query, lookup->locations);
	}
	lookup->speed->runs[run] = (double)lookup->key_count / 1e6 / (fc_bench_seconds() - start_s);
	lookup->size->runs[run] = (double)(fc_index_bytes(&lookup->index) + lookup->key_count * sizeof(struct fc_key)) /
				  (double)lookup->key_count;
	if (found == lookup->key_count)
		return FC_OK;
	return fc_error_set(error, FC_ECORRUPT, "%llu of %llu keys were found", (unsigned long long)found,
			    (unsigned long long)lookup->key_count);
}

static int run_peer(void *context, uint64_t run, struct fc_error *error)
{
	struct lookup_bench *lookup = context;
	uint64_t found = 0;
	double start_s = fc_bench_seconds();
	for (uint64_t first = 0; first < lookup->key_count; first += BATCH_KEYS)
		found += fc_bench_probes_run(&lookup->probes, first, fc_min_u64(BATCH_KEYS, lookup->key_count - first));
	lookup->speed->peer_runs[run] = (double)lookup->key_count / 1e6 / (fc_bench_seconds() - start_s);
	return found == lookup->key_count ? FC_OK : fc_error_set(error, FC_ECORRUPT, "the bare table loses keys");
}

static int insert_all(struct lookup_bench *lookup)
{
	int code = FC_OK;
	for (uint64_t i = 0; i < lookup->key_count && code == FC_OK; i++) {
		struct fc_location location = {(uint32_t)(i / SEGMENT_KEYS), (uint32_t)(i % SEGMENT_KEYS)};
		if (location.entry == 0)
			code = fc_index_segment_set(&lookup->index, location.segment, lookup->keys + i);
		if (code == FC_OK)
			code = fc_index_insert(&lookup->index, lookup->keys[i], location);
	}
	return code;
}

static void draw_keys(struct lookup_bench *lookup)
{
	struct fc_random random;
	fc_random_init(&random, lookup->bench->seed);
	for (uint64_t i = 0; i < lookup->key_count; i++) {
		struct fc_key key = {fc_random_u64(&random), fc_random_u64(&random)};
		uint64_t other = fc_random_below(&random, i + 1);
		lookup->keys[i] = key;
		lookup->asked[i] = lookup->asked[other];
		lookup->asked[other] = key;
	}
}

static int prepare(struct lookup_bench *lookup, struct fc_error *error)
{
	uint64_t bytes = lookup->key_count * sizeof(struct fc_key);
	lookup->keys = fc_alloc_zeroed(&lookup->alloc, bytes);
	lookup->asked = fc_alloc_zeroed(&lookup->alloc, bytes);
	lookup->locations = calloc(BATCH_KEYS, sizeof(*lookup->locations));
	if (lookup->keys == NULL || lookup->asked == NULL || lookup->locations == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %llu keys", (unsigned long long)lookup->key_count);
	draw_keys(lookup);
	int code = fc_bench_probes_init(&lookup->probes, lookup->key_count, lookup->bench->seed, error);
	if (code != FC_OK)
		return code;
	code = insert_all(lookup);
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "index: %s", fc_code_text(code));
}

static int add_rows(struct lookup_bench *lookup, struct fc_error *error)
{
	static const struct fc_bench_row speed = {
		.name = "lookup",
		.summary = "batch look-up on one core / bare probes of as large a table",
		.unit = "ratio",
		.runs_unit = "million keys/s",
		.goal = FC_BENCH_AT_LEAST,
		.target = 0.4,
	};
	static const struct fc_bench_row size = {
		.name = "key-bytes",
		.summary = "memory of a key in the index, with the segments' key arrays",
		.unit = "bytes",
		.runs_unit = "bytes",
		.goal = FC_BENCH_AT_MOST,
		.target = 40,
	};
	lookup->speed = fc_bench_add_row(lookup->bench, &speed, true);
	lookup->size = fc_bench_add_row(lookup->bench, &size, false);
	if (lookup->speed == NULL || lookup->size == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	return FC_OK;
}

int fc_bench_lookup(struct fc_bench *bench, struct fc_error *error)
{
	struct lookup_bench lookup = {
		.bench = bench, .alloc = fc_alloc_system(), .key_count = fc_bench_scaled(bench, KEYS, KEYS_MIN)};
	struct fc_index_opts opts = {.seed = {bench->seed, ~bench->seed}};
	int code = add_rows(&lookup, error);
	if (code != FC_OK)
		return code;
	code = fc_index_init(&lookup.index, &lookup.alloc, &opts);
	if (code != FC_OK)
		return fc_error_set(error, code, "index: %s", fc_code_text(code));
	code = prepare(&lookup, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, run_ours, run_peer, &lookup, error);
	if (code == FC_OK) {
		fc_bench_set_ratio(lookup.speed);
		fc_bench_set_median(lookup.size);
		fc_bench_note(lookup.speed, "%.1f million keys/s of %llu, random order; bare probes %.1f",
			      fc_bench_median(lookup.speed->runs, bench->run_count),
			      (unsigned long long)lookup.key_count,
			      fc_bench_median(lookup.speed->peer_runs, bench->run_count));
	}
	fc_index_deinit(&lookup.index);
	fc_bench_probes_deinit(&lookup.probes);
	fc_alloc_free(&lookup.alloc, lookup.keys, lookup.key_count * sizeof(struct fc_key));
	fc_alloc_free(&lookup.alloc, lookup.asked, lookup.key_count * sizeof(struct fc_key));
	free(lookup.locations);
	return code;
}

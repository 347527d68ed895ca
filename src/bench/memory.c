/* A session in memory: the store's way from the arena to the slots, checksums included, beside one memcpy() of as many
 * bytes into the same slots. */
#include "bench/engine.h"

#include "host/pages.h"

#include <string.h>

#define BLOCKS 256
#define GIB ((double)(1ull << 30))

struct memory_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_row *row;
	uint8_t *copy; /* what memcpy() reads from */
};

static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct memory_bench *memory = context;
	struct fc_load_result result;
	double start_s = fc_bench_seconds();
	int code = fc_bench_engine_load(&memory->engine, &result, error);
	memory->row->runs[run] = (double)result.bytes[FC_MEMORY] / GIB / (fc_bench_seconds() - start_s);
	return code;
}

static int run_peer(void *context, uint64_t run, struct fc_error *error)
{
	struct memory_bench *memory = context;
	(void)error;
	double start_s = fc_bench_seconds();
	memcpy(memory->engine.memory, memory->copy, memory->engine.memory_bytes);
	memory->row->peer_runs[run] = (double)memory->engine.memory_bytes / GIB / (fc_bench_seconds() - start_s);
	return FC_OK;
}

static int prepare(struct memory_bench *memory, struct fc_error *error)
{
	struct fc_bench *bench = memory->bench;
	struct fc_bench_engine *engine = &memory->engine;
	struct fc_bench_turn turn = {.block_count = BLOCKS};
	int code = fc_bench_engine_init(engine, FC_BENCH_LAYERS, BLOCKS, bench->size_bytes, bench->seed, error);
	if (code == FC_OK)
		code = fc_bench_engine_open(engine, bench,
					    engine->memory_bytes + fc_bench_scaled(bench, 128ull << 20, 16ull << 20), 0,
					    error);
	if (code != FC_OK)
		return code;
	fc_bench_engine_use(engine, bench->seed, 0);
	code = fc_bench_engine_save(engine, &turn, false, NULL, error);
	memory->copy = fc_pages_alloc(engine->memory_bytes);
	if (code == FC_OK && memory->copy == NULL)
		code = fc_error_set(error, FC_ENOMEM, "no memory for a second copy of the session");
	if (code != FC_OK)
		return code;
	memcpy(memory->copy, engine->memory, engine->memory_bytes);
	return fc_bench_engine_check(engine, bench->seed, error);
}

int fc_bench_memory(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row row = {
		.name = "memory",
		.summary = "load of a session from memory / memcpy of as many bytes",
		.unit = "ratio",
		.runs_unit = "GiB/s",
		.goal = FC_BENCH_AT_LEAST,
		.target = 0.85,
	};
	struct memory_bench memory = {.bench = bench, .row = fc_bench_add_row(bench, &row, true)};
	int code = memory.row != NULL ? FC_OK : fc_error_set(error, FC_ENOMEM, "no memory for the result");
	if (code == FC_OK)
		code = prepare(&memory, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, run_ours, run_peer, &memory, error);
	if (code == FC_OK) {
		fc_bench_set_ratio(memory.row);
		fc_bench_note(memory.row, "%.2f GiB/s with checksums, memcpy %.2f",
			      fc_bench_median(memory.row->runs, bench->run_count),
			      fc_bench_median(memory.row->peer_runs, bench->run_count));
	}
	fc_pages_free(memory.copy, memory.engine.memory_bytes);
	fc_bench_engine_deinit(&memory.engine);
	return code;
}

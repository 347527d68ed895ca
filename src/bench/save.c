/* One session written in one turn until it is durable, beside fio writing a file of the same size, made durable at the
 * end. Both write to space that was set aside and never written. */
#include "bench/engine.h"
#include "bench/peer.h"

#include <stdio.h>

#define BLOCKS 256

struct save_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_fio fio;
	struct fc_bench_row *row;
};

static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct save_bench *save = context;
	struct fc_bench_turn turn = {.session = run, .block_count = BLOCKS};
	fc_bench_engine_use(&save->engine, save->bench->seed, run);
	double start_s = fc_bench_seconds();
	int code = fc_bench_engine_save(&save->engine, &turn, true, NULL, error);
	save->row->runs[run] = (double)save->engine.memory_bytes / (fc_bench_seconds() - start_s);
	return code;
}

static int run_peer(void *context, uint64_t run, struct fc_error *error)
{
	struct save_bench *save = context;
	return fc_bench_fio(save->bench, &save->fio, &save->row->peer_runs[run], error);
}

/* Room for every run, so that none is slowed by reclaiming another. */
static int prepare(struct save_bench *save, struct fc_error *error)
{
	struct fc_bench *bench = save->bench;
	int code = fc_bench_engine_init(&save->engine, FC_BENCH_LAYERS, BLOCKS, bench->size_bytes, bench->seed, error);
	if (code == FC_OK)
		code = fc_bench_transfer_bytes(bench, &save->fio.transfer_bytes, error);
	uint64_t each_bytes = save->engine.memory_bytes + fc_bench_scaled(bench, 32ull << 20, 8ull << 20);
	if (code == FC_OK)
		code = fc_bench_engine_open(&save->engine, bench, 0, bench->run_count * each_bytes + (64ull << 20),
					    error);
	save->fio.bytes = save->engine.memory_bytes;
	save->fio.queue_depth = bench->store.queue_depth;
	save->fio.is_write = true;
	return code;
}

int fc_bench_save(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row row = {
		.name = "save",
		.summary = "save of a session to SSD / fio sequential write",
		.unit = "ratio",
		.runs_unit = "GiB/s",
		.goal = FC_BENCH_AT_LEAST,
		.target = 0.90,
	};
	struct save_bench save = {.bench = bench, .row = fc_bench_add_row(bench, &row, true)};
	char path[FC_BENCH_PATH_BYTES];
	snprintf(path, sizeof(path), "%s/peer", bench->work_dir);
	save.fio.path = path;
	int code = save.row != NULL ? FC_OK : fc_error_set(error, FC_ENOMEM, "no memory for the result");
	if (code == FC_OK)
		code = prepare(&save, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, run_ours, run_peer, &save, error);
	if (code == FC_OK)
		fc_bench_set_fio_ratio(save.row);
	fc_bench_engine_deinit(&save.engine);
	return code;
}

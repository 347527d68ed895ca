/* One session on SSD, written in one turn: how fast it is read beside fio, in how many runs, and for how much CPU
 * time beside a plain loop of pread(). */
#include "bench/engine.h"
#include "bench/peer.h"

#include <stdio.h>

#define BLOCKS 256
#define GIB ((double)(1ull << 30))

struct load_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_fio fio;
	struct fc_bench_row *speed, *runs, *cpu;
	uint64_t segments;
};

static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct load_bench *load = context;
	struct fc_load_result result;
	double cpu_s = fc_bench_cpu_seconds();
	double start_s = fc_bench_seconds();
	int code = fc_bench_engine_load(&load->engine, &result, error);
	if (code != FC_OK)
		return code;
	double bytes = (double)result.bytes[FC_SSD];
	load->speed->runs[run] = bytes / (fc_bench_seconds() - start_s);
	load->cpu->runs[run] = (fc_bench_cpu_seconds() - cpu_s) * GIB / bytes;
	load->runs->runs[run] = (double)result.planned_runs;
	load->segments = result.segments;
	return FC_OK;
}

static int run_peer(void *context, uint64_t run, struct fc_error *error)
{
	struct load_bench *load = context;
	double cpu_s = 0;
	int code = fc_bench_fio(load->bench, &load->fio, &load->speed->peer_runs[run], error);
	if (code == FC_OK)
		code = fc_bench_pread_loop(load->fio.path, load->fio.bytes, &cpu_s, error);
	load->cpu->peer_runs[run] = cpu_s * GIB / (double)load->fio.bytes;
	return code;
}

static int add_rows(struct load_bench *load, struct fc_error *error)
{
	static const struct fc_bench_row speed = {
		.name = "load",
		.summary = "load of a session from SSD / fio sequential read",
		.unit = "ratio",
		.runs_unit = "GiB/s",
		.goal = FC_BENCH_AT_LEAST,
		.target = 0.95,
	};
	static const struct fc_bench_row runs = {
		.name = "planned-runs",
		.summary = "planned runs of that load, at most layers x segments",
		.unit = "runs",
		.runs_unit = "runs",
		.goal = FC_BENCH_AT_MOST,
	};
	static const struct fc_bench_row cpu = {
		.name = "cpu",
		.summary = "CPU time of that load / pread loop of 256 KiB",
		.unit = "ratio",
		.runs_unit = "s/GiB",
		.goal = FC_BENCH_AT_MOST,
		.target = 1,
	};
	load->speed = fc_bench_add_row(load->bench, &speed, true);
	load->runs = fc_bench_add_row(load->bench, &runs, false);
	load->cpu = fc_bench_add_row(load->bench, &cpu, true);
	if (load->speed == NULL || load->runs == NULL || load->cpu == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	return FC_OK;
}

/* fio reads the same bytes in the same place: some disks are faster in one place than in another. */
static int prepare(struct load_bench *load, struct fc_error *error)
{
	struct fc_bench *bench = load->bench;
	int code = fc_bench_engine_init(&load->engine, FC_BENCH_LAYERS, BLOCKS, bench->size_bytes, bench->seed, error);
	if (code == FC_OK)
		code = fc_bench_transfer_bytes(bench, &load->fio.transfer_bytes, error);
	if (code == FC_OK)
		code = fc_bench_engine_open(
			&load->engine, bench, 0,
			load->engine.memory_bytes + fc_bench_scaled(bench, 256ull << 20, 64ull << 20), error);
	if (code != FC_OK)
		return code;
	load->fio.bytes = load->engine.memory_bytes;
	load->fio.queue_depth = bench->store.queue_depth;
	load->fio.path = load->engine.arena_path;
	fc_bench_engine_use(&load->engine, bench->seed, 0);
	struct fc_bench_turn turn = {.block_count = BLOCKS};
	code = fc_bench_engine_save(&load->engine, &turn, true, NULL, error);
	if (code == FC_OK)
		code = fc_bench_engine_check(&load->engine, bench->seed, error);
	return code;
}

static void finish(struct load_bench *load)
{
	fc_bench_set_fio_ratio(load->speed);
	fc_bench_set_median(load->runs);
	load->runs->target = (double)(FC_BENCH_LAYERS * load->segments);
	fc_bench_note(load->runs, "%u layers x %llu segments", FC_BENCH_LAYERS, (unsigned long long)load->segments);
	fc_bench_set_ratio(load->cpu);
	fc_bench_note(load->cpu, "%.3f s/GiB with checksums and the copy to the slots, pread alone %.3f",
		      fc_bench_median(load->cpu->runs, load->cpu->run_count),
		      fc_bench_median(load->cpu->peer_runs, load->cpu->run_count));
}

int fc_bench_load(struct fc_bench *bench, struct fc_error *error)
{
	struct load_bench load = {.bench = bench};
	int code = add_rows(&load, error);
	if (code == FC_OK)
		code = prepare(&load, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, run_ours, run_peer, &load, error);
	if (code == FC_OK)
		finish(&load);
	fc_bench_engine_deinit(&load.engine);
	return code;
}

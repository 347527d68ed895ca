/* What the layout is for: many sessions that grow at the same time, turn by turn, and are later asked for in an order
 * that has nothing to do with that of writing.
 *
 * The turns of a session have lengths as uneven as those of the recorded agents (exponential), so that consolidation
 * meets small segments behind large ones and the other way round.
 *
 * The value is held against fio with the largest commands that the disk takes. A run of a short segment is a smaller
 * command, and many disks are slower with those, so the note also tells what fio reaches with commands of the loads'
 * mean size: what is missing to 1 there is the store's, the rest is the disk's. */
#include "bench/engine.h"
#include "bench/peer.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((double)(1ull << 30))
#define MIB ((double)(1ull << 20))
#define LAYERS 32
#define SESSIONS 32
#define TURNS 20
#define BLOCKS 256
/* A session's share of --size. All of them together are then four times as large. */
#define SESSION_SHARE 8
/* Consolidation leaves room behind that is free only after what replaced it is durable. */
#define ROOM_PERCENT 200
#define FIO_BLOCK_BYTES 4096u

struct interleaved_bench {
	struct fc_bench *bench;
	struct fc_bench_engine engine;
	struct fc_bench_fio fio;
	struct fc_bench_row *row;
	uint64_t ends[SESSIONS][TURNS]; /* path blocks after each turn */
	double *small_runs;             /* of fio with commands as small as the loads', in bytes per second */
	uint64_t segments, planned_runs, read_commands, bytes_written, bytes_new;
};

/* TURNS lengths of at least one block that sum up to BLOCKS. */
static void draw_turns(uint64_t ends[TURNS], struct fc_random *random)
{
	double shares[TURNS], sum = 0;
	for (int turn = 0; turn < TURNS; turn++)
		sum += shares[turn] = -log(1 - fc_random_unit(random));
	double at = 0;
	for (int turn = 0; turn < TURNS; turn++) {
		at += shares[turn] / sum * (BLOCKS - TURNS);
		ends[turn] = (uint64_t)turn + 1 + (uint64_t)at;
	}
	ends[TURNS - 1] = BLOCKS;
}

static int write_sessions(struct interleaved_bench *interleaved, struct fc_error *error)
{
	struct fc_bench *bench = interleaved->bench;
	struct fc_save_result result;
	for (uint64_t turn = 0; turn < TURNS; turn++) {
		int code = fc_bench_step(bench, error);
		for (uint64_t session = 0; session < SESSIONS && code == FC_OK; session++) {
			struct fc_bench_turn saved = {session, turn, interleaved->ends[session][turn]};
			fc_bench_engine_use(&interleaved->engine, bench->seed, session);
			code = fc_bench_engine_save(&interleaved->engine, &saved, false, &result, error);
			interleaved->bytes_written += result.bytes_written[FC_SSD];
			interleaved->bytes_new += result.bytes_new;
		}
		if (code != FC_OK)
			return code;
	}
	return fc_store_sync(interleaved->engine.store, error);
}

static void draw_order(uint64_t order[SESSIONS], uint64_t seed)
{
	struct fc_random random;
	fc_random_init(&random, seed);
	for (uint64_t i = 0; i < SESSIONS; i++) {
		uint64_t other = fc_random_below(&random, i + 1);
		order[i] = i;
		order[i] = order[other];
		order[other] = i;
	}
}

/* Waits for all that was submitted, whatever becomes of each. */
static int wait_all(struct interleaved_bench *interleaved, struct fc_load *loads[], uint64_t count, uint64_t *bytes,
		    struct fc_error *error)
{
	int code = FC_OK;
	for (uint64_t i = 0; i < count; i++) {
		struct fc_load_result result;
		int ended = fc_bench_engine_wait(&interleaved->engine, loads[i], &result, code == FC_OK ? error : NULL);
		code = code == FC_OK ? ended : code;
		*bytes += result.bytes[FC_SSD];
		interleaved->segments += result.segments;
		interleaved->planned_runs += result.planned_runs;
		interleaved->read_commands += result.read_commands;
	}
	return code;
}

/* All requests arrive at once; the store runs as many as it has streams. */
static int run_ours(void *context, uint64_t run, struct fc_error *error)
{
	struct interleaved_bench *interleaved = context;
	struct fc_load *loads[SESSIONS];
	uint64_t order[SESSIONS], bytes = 0, count = 0;
	int code = FC_OK;
	draw_order(order, interleaved->bench->seed + run);
	interleaved->segments = interleaved->planned_runs = interleaved->read_commands = 0;
	double start_s = fc_bench_seconds();
	for (; count < SESSIONS; count++) {
		fc_bench_engine_use(&interleaved->engine, interleaved->bench->seed, order[count]);
		code = fc_bench_engine_submit_load(&interleaved->engine, &loads[count], error);
		if (code != FC_OK)
			break;
	}
	int ended = wait_all(interleaved, loads, count, &bytes, code == FC_OK ? error : NULL);
	interleaved->row->runs[run] = (double)bytes / (fc_bench_seconds() - start_s);
	return code == FC_OK ? ended : code;
}

/* The first pair begins with ours, so the loads' commands are known here. */
static int run_peer(void *context, uint64_t run, struct fc_error *error)
{
	struct interleaved_bench *interleaved = context;
	struct fc_bench_fio small = interleaved->fio;
	small.transfer_bytes = fc_align_up(small.bytes / interleaved->read_commands, FIO_BLOCK_BYTES);
	int code = fc_bench_fio(interleaved->bench, &interleaved->fio, &interleaved->row->peer_runs[run], error);
	if (code == FC_OK)
		code = fc_bench_fio(interleaved->bench, &small, &interleaved->small_runs[run], error);
	return code;
}

static int prepare(struct interleaved_bench *interleaved, struct fc_error *error)
{
	struct fc_bench *bench = interleaved->bench;
	struct fc_bench_engine *engine = &interleaved->engine;
	struct fc_random random;
	fc_random_init(&random, bench->seed);
	for (int session = 0; session < SESSIONS; session++)
		draw_turns(interleaved->ends[session], &random);
	int code = fc_bench_engine_init(engine, LAYERS, BLOCKS, bench->size_bytes / SESSION_SHARE, bench->seed, error);
	if (code == FC_OK)
		code = fc_bench_transfer_bytes(bench, &interleaved->fio.transfer_bytes, error);
	uint64_t ssd_bytes = SESSIONS * engine->memory_bytes / 100 * ROOM_PERCENT + (512ull << 20);
	if (code == FC_OK)
		code = fc_bench_engine_open(engine, bench, 0, ssd_bytes, error);
	if (code == FC_OK)
		code = write_sessions(interleaved, error);
	fc_bench_engine_use(engine, bench->seed, SESSIONS / 2);
	if (code == FC_OK)
		code = fc_bench_engine_check(engine, bench->seed, error);
	interleaved->fio.bytes = SESSIONS * engine->memory_bytes;
	interleaved->fio.queue_depth = bench->store.queue_depth;
	if (code == FC_OK)
		code = fc_bench_write_file(&interleaved->fio, engine->memory, engine->memory_bytes, error);
	return code;
}

static void finish(struct interleaved_bench *interleaved)
{
	struct fc_bench_row *row = interleaved->row;
	fc_bench_set_fio_ratio(row);
	size_t used = strlen(row->note);
	double command_bytes = (double)interleaved->fio.bytes / (double)interleaved->read_commands;
	snprintf(row->note + used, sizeof(row->note) - used,
		 " (%.2f with commands of %.1f MiB, as the loads have); %.1f segments and %.0f runs a load, "
		 "written %.2f x what was new",
		 fc_bench_median(interleaved->small_runs, row->run_count) / GIB, command_bytes / MIB,
		 (double)interleaved->segments / SESSIONS, (double)interleaved->planned_runs / SESSIONS,
		 (double)interleaved->bytes_written / (double)interleaved->bytes_new);
}

int fc_bench_interleaved(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row row = {
		.name = "interleaved",
		.summary = "32 sessions of 20 turns, written interleaved, read in random order / fio sequential read",
		.unit = "ratio",
		.runs_unit = "GiB/s",
		.goal = FC_BENCH_AT_LEAST,
		.target = 0.90,
	};
	struct interleaved_bench interleaved = {.bench = bench, .row = fc_bench_add_row(bench, &row, true)};
	char path[FC_BENCH_PATH_BYTES];
	snprintf(path, sizeof(path), "%s/peer", bench->work_dir);
	interleaved.fio.path = path;
	interleaved.small_runs = calloc(bench->run_count, sizeof(*interleaved.small_runs));
	int code = interleaved.row != NULL && interleaved.small_runs != NULL
			   ? FC_OK
			   : fc_error_set(error, FC_ENOMEM, "no memory for the result");
	if (code == FC_OK)
		code = prepare(&interleaved, error);
	if (code == FC_OK)
		code = fc_bench_pairs(bench, run_ours, run_peer, &interleaved, error);
	if (code == FC_OK)
		finish(&interleaved);
	fc_bench_engine_deinit(&interleaved.engine);
	free(interleaved.small_runs);
	return code;
}

#include "bench/history.h"

#include "base/check.h"

#define SESSIONS 72
#define TURNS 223
#define TURN_BLOCKS 63
#define WANTED_BLOCKS 14000
#define SLICE_BYTES 16

/* One turn of every session at once; the next one needs this one to be visible. */
static int write_turn(const struct fc_bench_history *history, struct fc_bench_engine *engine,
		      const struct fc_bench *bench, uint64_t number, struct fc_error *error)
{
	struct fc_save *saves[SESSIONS];
	uint64_t count = 0;
	int code = FC_OK;
	for (; count < history->session_count && code == FC_OK; count++) {
		struct fc_bench_turn turn = {count, number, (number + 1) * TURN_BLOCKS};
		fc_bench_engine_use(engine, bench->seed, count);
		code = fc_bench_engine_submit(engine, &turn, &saves[count], error);
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

int fc_bench_history_write(struct fc_bench_history *history, struct fc_bench_engine *engine, struct fc_bench *bench,
			   struct fc_error *error)
{
	history->session_count = fc_bench_scaled(bench, SESSIONS, 2);
	history->turn_count = fc_bench_scaled(bench, TURNS, 4);
	uint64_t blocks = history->turn_count * TURN_BLOCKS;
	history->block_count = history->session_count * blocks;
	history->wanted_blocks = fc_min_u64(WANTED_BLOCKS, blocks);
	int code = fc_bench_engine_init(engine, 1, blocks, blocks * SLICE_BYTES, bench->seed, error);
	if (code == FC_OK)
		code = fc_bench_engine_open(engine, bench, 0, FC_BENCH_HISTORY_ROOM_BYTES, error);
	for (uint64_t turn = 0; turn < history->turn_count && code == FC_OK; turn++) {
		if (turn % 16 == 0)
			code = fc_bench_step(bench, error);
		if (code == FC_OK)
			code = write_turn(history, engine, bench, turn, error);
	}
	return code == FC_OK ? fc_store_sync(engine->store, error) : code;
}

int fc_bench_history_match(const struct fc_bench_history *history, struct fc_bench_engine *engine,
			   struct fc_error *error)
{
	struct fc_match match;
	int code = fc_match(engine->store, engine->keys, history->wanted_blocks, &match);
	if (code == FC_OK && match.blocks != history->wanted_blocks)
		code = FC_ENOENT;
	if (code == FC_OK)
		return FC_OK;
	return fc_error_set(error, code, "match: %llu of %llu blocks were found", (unsigned long long)match.blocks,
			    (unsigned long long)history->wanted_blocks);
}

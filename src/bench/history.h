/* A large arena: a million blocks in 16,000 segments, made through the store itself, with slices so small that nothing
 * but the number of segments counts. Turns are not to be consolidated (bench->store.consolidate_ratio 0), so that a
 * history of 14,000 blocks (219k tokens in blocks of 16) lies in more than 200 segments. */
#ifndef FC_BENCH_HISTORY_H
#define FC_BENCH_HISTORY_H

#include "bench/engine.h"

#define FC_BENCH_HISTORY_ROOM_BYTES (512ull << 20) /* a segment takes one chunk of 16 KiB */

struct fc_bench_history {
	uint64_t session_count, turn_count;
	uint64_t block_count;   /* of all sessions */
	uint64_t wanted_blocks; /* of a match */
};

/* Opens the store in bench->work_dir, writes it full in proportion to bench->size_bytes, and syncs; the store stays
 * open in `engine`, to be deinitialised also after a failure. */
int fc_bench_history_write(struct fc_bench_history *history, struct fc_bench_engine *engine, struct fc_bench *bench,
			   struct fc_error *error) FC_MUST_USE;

/* One match of a session that fc_bench_engine_use() has named; all that is wanted must be found. */
int fc_bench_history_match(const struct fc_bench_history *history, struct fc_bench_engine *engine,
			   struct fc_error *error) FC_MUST_USE;

#endif

/* The engine that the measurements pretend to be: paged KV memory of one session, and turns that are saved from it and
 * loaded into it through the public interface.
 *
 * All sessions use the same slots and the same bytes; only their keys differ. That a load delivers the right ones is
 * what the store's checksums are for (they are seeded with the key), and fc_bench_engine_check() compares the bytes
 * after an unmeasured load. */
#ifndef FC_BENCH_ENGINE_H
#define FC_BENCH_ENGINE_H

#include "bench/bench.h"

#define FC_BENCH_LAYERS 36 /* as in Qwen3-8B: 28 MiB a layer in a session of 1 GiB */

struct fc_bench_engine {
	struct fc_geometry geometry;
	struct fc_paged_layer layers[FC_BENCH_LAYERS];
	uint64_t block_count, slot_count, slice_bytes;
	uint8_t *memory; /* layers x slots x slice_bytes */
	uint64_t memory_bytes;
	uint64_t *slots;                      /* a random order, as an engine has it after a while */
	struct fc_key *keys;                  /* of the present session */
	struct fc_store *store;               /* while open */
	char arena_path[FC_BENCH_PATH_BYTES]; /* unless it is a daemon's */
	struct fc_kv *kv;
};

/* A model of `layer_count` equal layers whose `block_count` blocks have `bytes` in all. */
int fc_bench_engine_init(struct fc_bench_engine *engine, uint32_t layer_count, uint64_t block_count, uint64_t bytes,
			 uint64_t seed, struct fc_error *error) FC_MUST_USE;
/* The same with slices of so many bytes, and blocks that lie among other slots, as in an engine that has other requests
 * too. fc_bench_engine_check() is not for such a session. */
int fc_bench_engine_init_among(struct fc_bench_engine *engine, uint32_t layer_count, uint64_t block_count,
			       uint64_t slot_count, uint64_t slice_bytes, uint64_t seed,
			       struct fc_error *error) FC_MUST_USE;
/* Closes the store too. */
void fc_bench_engine_deinit(struct fc_bench_engine *engine);

/* Opens the store in bench->work_dir with bench->store and these budgets. */
int fc_bench_engine_open(struct fc_bench_engine *engine, const struct fc_bench *bench, uint64_t memory_bytes,
			 uint64_t ssd_bytes, struct fc_error *error) FC_MUST_USE;
/* The same at the flatcaked that listens at `socket_path`. */
int fc_bench_engine_connect(struct fc_bench_engine *engine, const struct fc_bench *bench, const char *socket_path,
			    struct fc_error *error) FC_MUST_USE;
void fc_bench_engine_close(struct fc_bench_engine *engine);

/* Names the session that saves and loads are about. */
void fc_bench_engine_use(struct fc_bench_engine *engine, uint64_t seed, uint64_t session);

struct fc_bench_turn {
	uint64_t session;
	uint64_t turn;
	uint64_t block_count; /* of the path, earlier turns included */
};

int fc_bench_engine_submit(struct fc_bench_engine *engine, const struct fc_bench_turn *turn, struct fc_save **save,
			   struct fc_error *error) FC_MUST_USE;
/* Saves a turn and waits; `result` may be NULL. */
int fc_bench_engine_save(struct fc_bench_engine *engine, const struct fc_bench_turn *turn, bool until_durable,
			 struct fc_save_result *result, struct fc_error *error) FC_MUST_USE;
int fc_bench_engine_submit_load(struct fc_bench_engine *engine, struct fc_load **load,
				struct fc_error *error) FC_MUST_USE;
/* Waits for a load, insists on all of its blocks, and frees it. */
int fc_bench_engine_wait(struct fc_bench_engine *engine, struct fc_load *load, struct fc_load_result *result,
			 struct fc_error *error) FC_MUST_USE;
/* Both. */
int fc_bench_engine_load(struct fc_bench_engine *engine, struct fc_load_result *result,
			 struct fc_error *error) FC_MUST_USE;
/* Clears the slots, loads, and compares every byte with what was saved. */
int fc_bench_engine_check(struct fc_bench_engine *engine, uint64_t seed, struct fc_error *error) FC_MUST_USE;

#endif

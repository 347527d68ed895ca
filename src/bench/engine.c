#include "bench/engine.h"

#include "base/random.h"
#include "host/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_TOKENS 16

/* Bytes that no disk can compress, and that tell when a slice is at the wrong place. */
static void fill(uint8_t *memory, uint64_t bytes, uint64_t seed)
{
	struct fc_random random;
	fc_random_init(&random, seed);
	uint64_t at = 0;
	for (; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
		uint64_t value = fc_random_u64(&random);
		memcpy(memory + at, &value, sizeof(value));
	}
	memset(memory + at, 0x5a, bytes - at);
}

static bool is_filled(const uint8_t *memory, uint64_t bytes, uint64_t seed)
{
	struct fc_random random;
	fc_random_init(&random, seed);
	for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
		uint64_t value = fc_random_u64(&random);
		if (memcmp(memory + at, &value, sizeof(value)) != 0)
			return false;
	}
	return true;
}

/* So many of all slots, in a random order. */
static void choose_slots(struct fc_bench_engine *engine, uint64_t seed)
{
	struct fc_random random;
	fc_random_init(&random, seed + 1);
	for (uint64_t i = 0; i < engine->slot_count; i++) {
		uint64_t other = fc_random_below(&random, i + 1);
		engine->slots[i] = engine->slots[other];
		engine->slots[other] = i;
	}
}

static void init_geometry(struct fc_bench_engine *engine, uint32_t layer_count)
{
	struct fc_geometry *geometry = &engine->geometry;
	*geometry = (struct fc_geometry){
		.name = "bench", .block_tokens = BLOCK_TOKENS, .layer_count = layer_count, .group_count = 1};
	geometry->groups[0].tokens_per_block = BLOCK_TOKENS;
	for (uint32_t layer = 0; layer < layer_count; layer++) {
		uint64_t layer_bytes = engine->slot_count * engine->slice_bytes;
		geometry->groups[0].slice_bytes[layer] = engine->slice_bytes;
		engine->layers[layer] = (struct fc_paged_layer){engine->memory + layer * layer_bytes,
								engine->slice_bytes, engine->slot_count, 0, 1};
	}
}

int fc_bench_engine_init(struct fc_bench_engine *engine, uint32_t layer_count, uint64_t block_count, uint64_t bytes,
			 uint64_t seed, struct fc_error *error)
{
	uint64_t slice_bytes = fc_max_u64(bytes / layer_count / block_count, 1);
	return fc_bench_engine_init_among(engine, layer_count, block_count, block_count, slice_bytes, seed, error);
}

int fc_bench_engine_init_among(struct fc_bench_engine *engine, uint32_t layer_count, uint64_t block_count,
			       uint64_t slot_count, uint64_t slice_bytes, uint64_t seed, struct fc_error *error)
{
	fc_check(layer_count <= FC_BENCH_LAYERS && block_count <= slot_count);
	*engine = (struct fc_bench_engine){.block_count = block_count, .slot_count = slot_count};
	engine->slice_bytes = slice_bytes;
	engine->memory_bytes = slice_bytes * layer_count * slot_count;
	engine->memory = fc_pages_alloc(engine->memory_bytes);
	engine->slots = calloc(slot_count, sizeof(*engine->slots));
	engine->keys = calloc(block_count, sizeof(*engine->keys));
	if (engine->memory == NULL || engine->slots == NULL || engine->keys == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a session of %llu bytes",
				    (unsigned long long)engine->memory_bytes);
	fill(engine->memory, engine->memory_bytes, seed);
	choose_slots(engine, seed);
	init_geometry(engine, layer_count);
	return FC_OK;
}

int fc_bench_engine_open(struct fc_bench_engine *engine, const struct fc_bench *bench, uint64_t memory_bytes,
			 uint64_t ssd_bytes, struct fc_error *error)
{
	char address[FC_BENCH_PATH_BYTES];
	struct fc_store_opts opts = bench->store;
	opts.geometry = &engine->geometry;
	opts.memory_bytes = memory_bytes;
	opts.ssd_bytes = ssd_bytes;
	opts.high_watermark = opts.low_watermark = 1; /* nothing is to be reclaimed here */
	opts.ssd_path = engine->arena_path;
	snprintf(address, sizeof(address), "dir:%s/store", bench->work_dir);
	snprintf(engine->arena_path, sizeof(engine->arena_path), "%s/arena", bench->work_dir);
	int code = fc_store_open(&engine->store, address, &opts, error);
	if (code == FC_OK)
		code = fc_kv_register(engine->store, engine->layers, &engine->kv, error);
	return code;
}

int fc_bench_engine_connect(struct fc_bench_engine *engine, const struct fc_bench *bench, const char *socket_path,
			    struct fc_error *error)
{
	char address[FC_BENCH_PATH_BYTES];
	struct fc_store_opts opts = bench->store;
	opts.geometry = &engine->geometry;
	snprintf(address, sizeof(address), "unix:%s", socket_path);
	int code = fc_store_open(&engine->store, address, &opts, error);
	if (code == FC_OK)
		code = fc_kv_register(engine->store, engine->layers, &engine->kv, error);
	return code;
}

void fc_bench_engine_close(struct fc_bench_engine *engine)
{
	fc_kv_free(engine->kv);
	fc_store_close(engine->store);
	engine->kv = NULL;
	engine->store = NULL;
}

void fc_bench_engine_deinit(struct fc_bench_engine *engine)
{
	fc_bench_engine_close(engine);
	fc_pages_free(engine->memory, engine->memory_bytes);
	free(engine->slots);
	free(engine->keys);
	*engine = (struct fc_bench_engine){0};
}

void fc_bench_engine_use(struct fc_bench_engine *engine, uint64_t seed, uint64_t session)
{
	uint64_t mixed = seed;
	mixed = fc_random_split(&mixed) + session;
	uint64_t state = fc_random_split(&mixed); /* far from those of the other sessions */
	for (uint64_t i = 0; i < engine->block_count; i++) {
		engine->keys[i].high = fc_random_split(&state);
		engine->keys[i].low = fc_random_split(&state);
	}
}

int fc_bench_engine_submit(struct fc_bench_engine *engine, const struct fc_bench_turn *turn, struct fc_save **save,
			   struct fc_error *error)
{
	struct fc_save_opts opts = {
		.session = {.high = 1, .low = turn->session + 1},
		.keys = engine->keys,
		.key_count = turn->block_count,
		.turn = turn->turn,
		.kv = engine->kv,
	};
	opts.slots[0] = (struct fc_slots){.count = turn->block_count, .slots = engine->slots};
	return fc_save_submit(engine->store, &opts, save, error);
}

int fc_bench_engine_save(struct fc_bench_engine *engine, const struct fc_bench_turn *turn, bool until_durable,
			 struct fc_save_result *result, struct fc_error *error)
{
	struct fc_save *save;
	struct fc_save_result own;
	int code = fc_bench_engine_submit(engine, turn, &save, error);
	if (code != FC_OK)
		return code;
	code = fc_save_wait(save, until_durable, &own);
	fc_save_free(save);
	if (result != NULL)
		*result = own;
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "save: %s %s", fc_code_text(code), own.error.text);
}

int fc_bench_engine_submit_load(struct fc_bench_engine *engine, struct fc_load **load, struct fc_error *error)
{
	struct fc_load_opts opts = {
		.keys = engine->keys,
		.key_count = engine->block_count,
		.kv = engine->kv,
		.is_started_when_ready = true,
	};
	opts.slots[0] = (struct fc_slots){.count = engine->block_count, .slots = engine->slots};
	return fc_load_submit(engine->store, &opts, load, error);
}

int fc_bench_engine_wait(struct fc_bench_engine *engine, struct fc_load *load, struct fc_load_result *result,
			 struct fc_error *error)
{
	int code = fc_load_wait(load, result);
	fc_load_free(load);
	if (code != FC_OK)
		return fc_error_set(error, code, "load: %s %s", fc_code_text(code), result->error.text);
	if (result->blocks == engine->block_count)
		return FC_OK;
	return fc_error_set(error, FC_EIO, "load: %llu of %llu blocks came back", (unsigned long long)result->blocks,
			    (unsigned long long)engine->block_count);
}

int fc_bench_engine_load(struct fc_bench_engine *engine, struct fc_load_result *result, struct fc_error *error)
{
	struct fc_load *load;
	int code = fc_bench_engine_submit_load(engine, &load, error);
	return code == FC_OK ? fc_bench_engine_wait(engine, load, result, error) : code;
}

int fc_bench_engine_check(struct fc_bench_engine *engine, uint64_t seed, struct fc_error *error)
{
	struct fc_load_result result;
	memset(engine->memory, 0, engine->memory_bytes);
	int code = fc_bench_engine_load(engine, &result, error);
	if (code == FC_OK && !is_filled(engine->memory, engine->memory_bytes, seed))
		code = fc_error_set(error, FC_ECORRUPT, "load: wrong bytes came back");
	return code;
}

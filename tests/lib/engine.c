#include "lib/engine.h"

#include "format/shape.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PIECE_GAP_BYTES 5 /* between the pieces of a slice, so that nothing hides behind adjacency */
#define WIPED 0xee

static uint64_t layer_bytes(const struct fc_paged_layer *layer)
{
	return layer->slot_stride_bytes * layer->slot_count;
}

static void init_layer(struct engine *engine, uint32_t group, uint32_t layer, uint32_t piece_count)
{
	uint64_t slice_bytes = engine->geometry.groups[group].slice_bytes[layer];
	if (slice_bytes == 0)
		return;
	assert_int_equal(slice_bytes % piece_count, 0);
	uint64_t piece_stride = slice_bytes / piece_count + (piece_count > 1 ? PIECE_GAP_BYTES : 0);
	struct fc_paged_layer *paged = &engine->layers[group * engine->geometry.layer_count + layer];
	*paged = (struct fc_paged_layer){
		.slot_stride_bytes = piece_stride * piece_count,
		.slot_count = engine->slot_count,
		.piece_stride_bytes = piece_stride,
		.piece_count = piece_count,
	};
	paged->base = malloc(layer_bytes(paged));
	assert_non_null(paged->base);
}

void engine_init(struct engine *engine, const struct fc_geometry *geometry, uint64_t path_blocks, uint32_t piece_count)
{
	*engine = (struct engine){.geometry = *geometry, .slot_count = path_blocks + 1};
	if (engine->slot_count % 7 == 0)
		engine->slot_count++;
	engine->layers = calloc((size_t)geometry->group_count * geometry->layer_count, sizeof(*engine->layers));
	assert_non_null(engine->layers);
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		engine->block_max[group] = path_blocks / fc_group_span(geometry, group);
		engine->slots[group] = calloc(path_blocks + 1, sizeof(uint64_t));
		assert_non_null(engine->slots[group]);
		for (uint64_t block = 0; block < engine->block_max[group]; block++)
			engine->slots[group][block] = (block * 7 + group) % engine->slot_count;
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			init_layer(engine, group, layer, piece_count);
	}
	engine_wipe(engine);
}

void engine_deinit(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->geometry.group_count * engine->geometry.layer_count; i++)
		free(engine->layers[i].base);
	for (uint32_t group = 0; group < engine->geometry.group_count; group++)
		free(engine->slots[group]);
	free(engine->layers);
}

void engine_slots(const struct engine *engine, uint64_t path_blocks, struct fc_slots slots[FC_GROUPS_MAX])
{
	for (uint32_t group = 0; group < engine->geometry.group_count; group++)
		slots[group] = (struct fc_slots){
			.count = path_blocks / fc_group_span(&engine->geometry, group),
			.slots = engine->slots[group],
		};
}

static uint8_t *piece_of(const struct engine *engine, uint32_t group, uint32_t layer, uint64_t block, uint32_t piece)
{
	const struct fc_paged_layer *paged = &engine->layers[group * engine->geometry.layer_count + layer];
	return (uint8_t *)paged->base + engine->slots[group][block] * paged->slot_stride_bytes +
	       piece * paged->piece_stride_bytes;
}

static void fill_slice(struct engine *engine, const struct fc_key *keys, uint32_t group, uint32_t layer, uint64_t block)
{
	const struct fc_paged_layer *paged = &engine->layers[group * engine->geometry.layer_count + layer];
	uint64_t bytes = engine->geometry.groups[group].slice_bytes[layer];
	uint64_t position = fc_group_key_position(fc_group_span(&engine->geometry, group), block);
	uint8_t *slice = malloc(bytes);
	slice_bytes(keys[position], group, layer, slice, bytes);
	for (uint32_t piece = 0; piece < paged->piece_count; piece++)
		memcpy(piece_of(engine, group, layer, block, piece), slice + piece * (bytes / paged->piece_count),
		       bytes / paged->piece_count);
	free(slice);
}

void engine_fill(struct engine *engine, const struct fc_key *keys, uint64_t path_blocks)
{
	const struct fc_geometry *geometry = &engine->geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++)
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			for (uint64_t block = 0; block < path_blocks / fc_group_span(geometry, group); block++)
				if (geometry->groups[group].slice_bytes[layer] > 0)
					fill_slice(engine, keys, group, layer, block);
}

void engine_wipe(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->geometry.group_count * engine->geometry.layer_count; i++)
		if (engine->layers[i].base != NULL)
			memset(engine->layers[i].base, WIPED, layer_bytes(&engine->layers[i]));
}

static bool has_slice(const struct engine *engine, struct fc_key key, uint32_t group, uint32_t layer, uint64_t block)
{
	const struct fc_paged_layer *paged = &engine->layers[group * engine->geometry.layer_count + layer];
	uint64_t bytes = engine->geometry.groups[group].slice_bytes[layer];
	uint64_t piece_bytes = bytes / paged->piece_count;
	uint8_t *wanted = malloc(bytes);
	bool is_there = true;
	slice_bytes(key, group, layer, wanted, bytes);
	for (uint32_t piece = 0; piece < paged->piece_count; piece++)
		is_there &= memcmp(piece_of(engine, group, layer, block, piece), wanted + piece * piece_bytes,
				   piece_bytes) == 0;
	free(wanted);
	return is_there;
}

bool engine_has_layer(const struct engine *engine, const struct fc_key *keys, uint64_t path_blocks, uint32_t layer)
{
	const struct fc_geometry *geometry = &engine->geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t first, count, span = fc_group_span(geometry, group);
		if (geometry->groups[group].slice_bytes[layer] == 0)
			continue;
		fc_group_needed(geometry, group, path_blocks, &first, &count);
		for (uint64_t block = first; block < first + count; block++)
			if (!has_slice(engine, keys[fc_group_key_position(span, block)], group, layer, block))
				return false;
	}
	return true;
}

void engine_check(const struct engine *engine, const struct fc_key *keys, uint64_t path_blocks)
{
	for (uint32_t layer = 0; layer < engine->geometry.layer_count; layer++)
		if (!engine_has_layer(engine, keys, path_blocks, layer))
			fail_msg("layer %u of the first %llu blocks is not what was saved", layer,
				 (unsigned long long)path_blocks);
}

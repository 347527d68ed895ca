#include "sim/content.h"

#include "format/checksum.h"
#include "format/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIPED 0xa5
#define SLICE_BYTES_MAX 400u

/* ---- geometries ---- */

static void fill_group(struct fc_geometry *geometry, enum fc_rule rule, uint32_t span, uint32_t window_tokens,
		       struct fc_random *random)
{
	struct fc_group *group = &geometry->groups[geometry->group_count++];
	uint64_t largest = fc_random_below(random, 4) == 0 ? SLICE_BYTES_MAX : 40;
	uint64_t unit = fc_random_between(random, 1, 2); /* even sizes can lie in two pieces */
	*group = (struct fc_group){
		.rule = rule, .tokens_per_block = span * geometry->block_tokens, .window_tokens = window_tokens};
	bool has_any = false;
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		if (fc_random_below(random, 4) != 0)
			group->slice_bytes[layer] = unit * fc_random_between(random, 1, largest / 2);
		has_any |= group->slice_bytes[layer] > 0;
	}
	if (!has_any)
		group->slice_bytes[fc_random_below(random, geometry->layer_count)] = 6;
}

void fc_sim_geometry(struct fc_geometry *geometry, struct fc_random *random)
{
	uint32_t kind = (uint32_t)fc_random_below(random, 5);
	*geometry = (struct fc_geometry){.block_tokens = 4};
	snprintf(geometry->name, sizeof(geometry->name), "simulated-%u", kind);
	geometry->layer_count = kind == 0 ? 1 : (uint32_t)fc_random_between(random, 1, 5);
	fill_group(geometry, FC_RULE_ALL, 1, 0, random);
	if (kind >= 2 && fc_random_below(random, 2) == 0)
		fill_group(geometry, FC_RULE_ALL, 2, 0, random);
	if (kind == 2 || kind == 4)
		fill_group(geometry, FC_RULE_WINDOW, 1, (uint32_t)fc_random_between(random, 1, 14), random);
	if (kind == 3 || kind == 4)
		fill_group(geometry, FC_RULE_STATE, 1, 0, random);
}

/* ---- slices ---- */

void fc_sim_slice(struct fc_key key, uint32_t group, uint32_t layer, uint8_t *bytes, uint64_t count)
{
	uint64_t state = fc_slice_seed(key, group, layer);
	for (uint64_t done = 0; done < count; done += 8) {
		uint64_t word = fc_random_split(&state);
		memcpy(bytes + done, &word, fc_min_u64(8, count - done));
	}
}

bool fc_sim_slice_is(struct fc_key key, uint32_t group, uint32_t layer, const uint8_t *bytes, uint64_t count)
{
	uint64_t state = fc_slice_seed(key, group, layer);
	for (uint64_t done = 0; done < count; done += 8) {
		uint64_t word = fc_random_split(&state);
		if (memcmp(bytes + done, &word, fc_min_u64(8, count - done)) != 0)
			return false;
	}
	return true;
}

/* ---- paged memory ---- */

static const struct fc_paged_layer *layer_of(const struct fc_sim_kv *kv, uint32_t group, uint32_t layer)
{
	return &kv->layers[group * kv->geometry->layer_count + layer];
}

/* 97 slots, a prime: any step visits each once. */
#define SLOT_COUNT (FC_SIM_PATH_BLOCKS_MAX + 1)

static void choose_slots(struct fc_sim_kv *kv, struct fc_random *random)
{
	for (uint32_t group = 0; group < kv->geometry->group_count; group++) {
		uint64_t step = fc_random_between(random, 1, SLOT_COUNT - 1);
		uint64_t first = fc_random_below(random, SLOT_COUNT);
		for (uint64_t block = 0; block < FC_SIM_PATH_BLOCKS_MAX; block++)
			kv->slots[group][block] = (first + block * step) % SLOT_COUNT;
	}
}

static bool is_even(const struct fc_geometry *geometry, uint32_t group)
{
	uint64_t odd = 0;
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
		odd |= geometry->groups[group].slice_bytes[layer] & 1;
	return odd == 0;
}

int fc_sim_kv_init(struct fc_sim_kv *kv, const struct fc_geometry *geometry, struct fc_random *random)
{
	memset(kv, 0, sizeof(*kv));
	kv->geometry = geometry;
	fc_check(geometry->layer_count <= FC_SIM_LAYERS_MAX);
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint32_t piece_count = is_even(geometry, group) ? (uint32_t)fc_random_between(random, 1, 2) : 1;
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
			uint64_t slice_bytes = geometry->groups[group].slice_bytes[layer];
			struct fc_paged_layer *paged = &kv->layers[group * geometry->layer_count + layer];
			if (slice_bytes == 0)
				continue;
			uint64_t gap = fc_random_below(random, 4);
			paged->piece_count = piece_count;
			paged->piece_stride_bytes = slice_bytes / piece_count + gap;
			paged->slot_stride_bytes = paged->piece_stride_bytes * piece_count + gap;
			paged->slot_count = SLOT_COUNT;
			kv->bytes += paged->slot_stride_bytes * SLOT_COUNT;
		}
	}
	kv->memory = malloc(kv->bytes);
	if (kv->memory == NULL)
		return FC_ENOMEM;
	uint64_t used = 0;
	for (uint32_t i = 0; i < geometry->group_count * geometry->layer_count; i++) {
		kv->layers[i].base = kv->memory + used;
		used += kv->layers[i].slot_stride_bytes * kv->layers[i].slot_count;
	}
	choose_slots(kv, random);
	fc_sim_kv_wipe(kv);
	return FC_OK;
}

void fc_sim_kv_deinit(struct fc_sim_kv *kv)
{
	free(kv->memory);
	kv->memory = NULL;
}

struct fc_slots fc_sim_kv_slots(const struct fc_sim_kv *kv, uint32_t group, uint64_t first, uint64_t count)
{
	return (struct fc_slots){.first_block = first, .count = count, .slots = kv->slots[group] + first};
}

static uint8_t *piece_of(const struct fc_sim_kv *kv, uint32_t group, uint32_t layer, uint64_t block, uint32_t piece)
{
	const struct fc_paged_layer *paged = layer_of(kv, group, layer);
	return (uint8_t *)paged->base + kv->slots[group][block] * paged->slot_stride_bytes +
	       piece * paged->piece_stride_bytes;
}

static struct fc_key key_of(const struct fc_sim_kv *kv, const struct fc_key *keys, uint32_t group, uint64_t block)
{
	struct fc_key key = keys[fc_group_key_position(fc_group_span(kv->geometry, group), block)];
	return (struct fc_key){key.high ^ kv->salt.high, key.low ^ kv->salt.low};
}

void fc_sim_kv_fill(struct fc_sim_kv *kv, const struct fc_key *keys, uint32_t group, uint64_t first, uint64_t count)
{
	uint8_t slice[SLICE_BYTES_MAX];
	for (uint32_t layer = 0; layer < kv->geometry->layer_count; layer++) {
		uint64_t bytes = kv->geometry->groups[group].slice_bytes[layer];
		uint32_t piece_count = layer_of(kv, group, layer)->piece_count;
		for (uint64_t block = first; block < first + count && bytes > 0; block++) {
			fc_sim_slice(key_of(kv, keys, group, block), group, layer, slice, bytes);
			for (uint32_t piece = 0; piece < piece_count; piece++)
				memcpy(piece_of(kv, group, layer, block, piece), slice + piece * (bytes / piece_count),
				       bytes / piece_count);
		}
	}
}

void fc_sim_kv_wipe(struct fc_sim_kv *kv)
{
	memset(kv->memory, WIPED, kv->bytes);
}

bool fc_sim_kv_is_wiped(const struct fc_sim_kv *kv)
{
	return kv->memory[0] == WIPED && memcmp(kv->memory, kv->memory + 1, kv->bytes - 1) == 0;
}

static bool has_slice(const struct fc_sim_kv *kv, struct fc_key key, uint32_t group, uint32_t layer, uint64_t block)
{
	uint8_t slice[SLICE_BYTES_MAX];
	uint64_t bytes = kv->geometry->groups[group].slice_bytes[layer];
	uint32_t piece_count = layer_of(kv, group, layer)->piece_count;
	for (uint32_t piece = 0; piece < piece_count; piece++)
		memcpy(slice + piece * (bytes / piece_count), piece_of(kv, group, layer, block, piece),
		       bytes / piece_count);
	return fc_sim_slice_is(key, group, layer, slice, bytes);
}

bool fc_sim_kv_has_layer(const struct fc_sim_kv *kv, const struct fc_key *keys, uint64_t path_blocks, uint32_t layer,
			 uint32_t *bad_group, uint64_t *bad_block)
{
	const struct fc_geometry *geometry = kv->geometry;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t first, count;
		if (geometry->groups[group].slice_bytes[layer] == 0)
			continue;
		fc_group_needed(geometry, group, path_blocks, &first, &count);
		for (uint64_t block = first; block < first + count; block++) {
			if (has_slice(kv, key_of(kv, keys, group, block), group, layer, block))
				continue;
			*bad_group = group;
			*bad_block = block;
			return false;
		}
	}
	return true;
}

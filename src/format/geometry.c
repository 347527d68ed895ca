/* Geometries: the check that every geometry from outside passes, and the models known by name.
 *
 * A plain preset is one group under FC_RULE_ALL whose layers are all alike:
 *
 *     model           layers   bytes per token and layer
 *     deepseek-v3       61     1,152 = (512 + 64) x 2: the latent and the rotary part, bf16; the same on every rank
 *     llama-3.1-70b     80     4,096 = K and V x 8 heads x 128 x 2; half of that in fp8
 *     llama-3.1-8b      32     4,096
 *     qwen3-32b         64     4,096
 *
 * DeepSeek-V4-Flash is the hybrid one. It has 43 layers. All of them keep a sliding window of 128 tokens; layers 0 and
 * 1 keep nothing else. The other 41 alternate, starting with c4: 21 "c4" layers keep one compressed entry and one
 * indexer entry for every 4 tokens, 20 "c128" layers keep one compressed entry for every 128 tokens.
 *
 *                                    FP8                          bf16
 *     window, a token                584                          1,024
 *     c4, per 4 tokens               584 + 132 = 716              1,024 + 256 = 1,280
 *     c128, per 128 tokens           584                          1,024
 *     c4 + c128, a token             21 x 179 + 20 x 4.5625       21 x 320 + 20 x 8
 *                                    = 3,850.25                   = 6,880
 *     window, a resume point         128 x 43 x 584 = 3.2 MB      128 x 43 x 1,024 = 5.6 MB
 *
 * The window is a group of its own because it is needed only where a prefix ends. */
#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_TOKENS_DEFAULT 64u
#define GROUP_TOKENS_MAX (1u << 24) /* window, block of a group, and distance of resume points */
#define SLICE_BYTES_MAX (1ull << 32)

/* ---- check --------------------------------------------------------------------------------------------------------
 */

static int check_name(const struct fc_geometry *geometry, struct fc_error *error)
{
	size_t length = strnlen(geometry->name, FC_NAME_BYTES);
	if (length == 0)
		return fc_error_set(error, FC_EINVAL,
				    "geometry: name is empty; it is what tells models of equal sizes apart");
	if (length == FC_NAME_BYTES)
		return fc_error_set(error, FC_EINVAL, "geometry: name is not terminated within %d bytes",
				    FC_NAME_BYTES);
	for (size_t i = 0; i < length; i++) {
		unsigned char letter = (unsigned char)geometry->name[i];
		if (letter < 0x20 || letter > 0x7e)
			return fc_error_set(error, FC_EINVAL,
					    "geometry: name holds byte 0x%02x at %zu; printable ASCII is allowed",
					    letter, i);
	}
	return 0;
}

static int check_number(const char *what, uint64_t value, uint64_t min, uint64_t max, struct fc_error *error)
{
	if (value >= min && value <= max)
		return 0;
	return fc_error_set(error, FC_EINVAL, "%s is %" PRIu64 "; allowed are %" PRIu64 " to %" PRIu64, what, value,
			    min, max);
}

static int check_group_rule(const struct fc_geometry *geometry, uint32_t g, struct fc_error *error)
{
	const struct fc_group *group = &geometry->groups[g];
	if (group->rule != FC_RULE_ALL && group->rule != FC_RULE_WINDOW && group->rule != FC_RULE_STATE)
		return fc_error_set(error, FC_EINVAL, "rule is %d; allowed are %d (all), %d (window) and %d (state)",
				    (int)group->rule, FC_RULE_ALL, FC_RULE_WINDOW, FC_RULE_STATE);
	if (g == 0 && group->rule != FC_RULE_ALL)
		return fc_error_set(error, FC_EINVAL, "rule is %d; the first group must be under rule %d (all)",
				    (int)group->rule, FC_RULE_ALL);
	if (group->rule == FC_RULE_WINDOW)
		return check_number("window_tokens", group->window_tokens, 1, GROUP_TOKENS_MAX, error);
	if (group->window_tokens != 0)
		return fc_error_set(error, FC_EINVAL,
				    "window_tokens is %" PRIu32 "; it must be 0 unless the rule is %d (window)",
				    group->window_tokens, FC_RULE_WINDOW);
	return 0;
}

static int check_group_tokens(const struct fc_geometry *geometry, uint32_t g, struct fc_error *error)
{
	const struct fc_group *group = &geometry->groups[g];
	if (group->rule == FC_RULE_STATE)
		return 0;
	int code = check_number("tokens_per_block", group->tokens_per_block, 1, GROUP_TOKENS_MAX, error);
	if (code != 0)
		return code;
	if (group->tokens_per_block % geometry->block_tokens != 0)
		return fc_error_set(error, FC_EINVAL,
				    "tokens_per_block is %" PRIu32 ", not a multiple of block_tokens %" PRIu32,
				    group->tokens_per_block, geometry->block_tokens);
	if (g == 0 && group->tokens_per_block != geometry->block_tokens)
		return fc_error_set(error, FC_EINVAL,
				    "tokens_per_block is %" PRIu32 "; the first group's must be block_tokens, %" PRIu32,
				    group->tokens_per_block, geometry->block_tokens);
	return 0;
}

static int check_group_slices(const struct fc_geometry *geometry, uint32_t g, struct fc_error *error)
{
	const struct fc_group *group = &geometry->groups[g];
	uint64_t total_bytes = 0;
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		uint64_t bytes = group->slice_bytes[layer];
		if (bytes > SLICE_BYTES_MAX)
			return fc_error_set(error, FC_EINVAL,
					    "layer %" PRIu32 ": slice_bytes is %" PRIu64 "; allowed are 0 to %llu",
					    layer, bytes, SLICE_BYTES_MAX);
		total_bytes += bytes;
	}
	if (total_bytes == 0)
		return fc_error_set(error, FC_EINVAL,
				    "slice_bytes is 0 in all %" PRIu32 " layers; at least one must have bytes",
				    geometry->layer_count);
	return 0;
}

static int check_group(const struct fc_geometry *geometry, uint32_t g, struct fc_error *error)
{
	int code = check_group_rule(geometry, g, error);
	if (code == 0)
		code = check_group_tokens(geometry, g, error);
	if (code == 0)
		code = check_group_slices(geometry, g, error);
	if (code != 0)
		return fc_error_wrap(error, code, "geometry: group %" PRIu32, g);
	return 0;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* A prefix can end only where blocks of all groups end, so their least common multiple must stay usable. */
static int check_resume_distance(const struct fc_geometry *geometry, struct fc_error *error)
{
	uint64_t distance_tokens = geometry->block_tokens;
	for (uint32_t g = 0; g < geometry->group_count; g++) {
		const struct fc_group *group = &geometry->groups[g];
		if (group->rule == FC_RULE_STATE)
			continue;
		uint64_t common = greatest_common_divisor(distance_tokens, group->tokens_per_block);
		distance_tokens = distance_tokens / common * group->tokens_per_block;
		if (distance_tokens > GROUP_TOKENS_MAX)
			return fc_error_set(error, FC_EINVAL,
					    "geometry: group %" PRIu32 ": tokens_per_block %" PRIu32
					    " makes blocks of all groups end together only every %" PRIu64
					    " tokens; at most %u are allowed",
					    g, group->tokens_per_block, distance_tokens, GROUP_TOKENS_MAX);
	}
	return 0;
}

int fc_geometry_check(const struct fc_geometry *geometry, struct fc_error *error)
{
	if (geometry == NULL)
		return fc_error_set(error, FC_EINVAL, "geometry: missing");
	int code = check_name(geometry, error);
	if (code == 0)
		code = check_number("geometry: layer_count", geometry->layer_count, 1, FC_LAYERS_MAX, error);
	if (code == 0)
		code = check_number("geometry: group_count", geometry->group_count, 1, FC_GROUPS_MAX, error);
	if (code == 0)
		code = check_number("geometry: block_tokens", geometry->block_tokens, 1, FC_BLOCK_TOKENS_MAX, error);
	for (uint32_t g = 0; code == 0 && g < geometry->group_count; g++)
		code = check_group(geometry, g, error);
	if (code == 0)
		code = check_resume_distance(geometry, error);
	return code;
}

/* ---- presets ------------------------------------------------------------------------------------------------------
 */

struct preset {
	const char *name;
	uint32_t layer_count;
	uint32_t layer_token_bytes; /* plain: of every layer; hybrid: of a window or c128 entry */
	uint32_t indexer_bytes;     /* hybrid: added to each c4 entry; 0 for plain */
};

static const struct preset presets[] = {
	{"deepseek-v4-flash", 43, 584, 132}, {"deepseek-v4-flash-bf16", 43, 1024, 256}, {"deepseek-v3", 61, 1152, 0},
	{"llama-3.1-70b", 80, 4096, 0},      {"llama-3.1-70b-fp8", 80, 2048, 0},        {"llama-3.1-8b", 32, 4096, 0},
	{"qwen3-32b", 64, 4096, 0},
};

#define FLASH_WINDOW_ONLY_LAYERS 2
#define FLASH_WINDOW_TOKENS 128u
#define FLASH_DENSE_TOKENS 4u
#define FLASH_SPARSE_TOKENS 128u

const char *fc_geometry_preset_name(size_t index)
{
	return index < fc_array_len(presets) ? presets[index].name : NULL;
}

static const struct preset *find_preset(const char *name)
{
	for (size_t i = 0; i < fc_array_len(presets); i++) {
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	}
	return NULL;
}

static int unknown_preset(const char *name, struct fc_error *error)
{
	char names[FC_ERROR_TEXT_BYTES / 2];
	size_t used = 0;
	for (size_t i = 0; i < fc_array_len(presets); i++) {
		int written = snprintf(names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : ", ", presets[i].name);
		fc_check(written > 0 && (size_t)written < sizeof(names) - used);
		used += (size_t)written;
	}
	return fc_error_set(error, FC_ENOENT, "model \"%.64s\" is unknown; known are %s", name, names);
}

/* Rounded to the nearest; a layer that has bytes keeps at least one, so that the number of reads stays the same. */
static uint64_t scaled(uint64_t bytes, uint32_t scale)
{
	return fc_max_u64((bytes + scale / 2) / scale, 1);
}

static void fill_plain(struct fc_geometry *geometry, const struct preset *preset, uint32_t scale)
{
	struct fc_group *group = &geometry->groups[0];
	geometry->group_count = 1;
	group->rule = FC_RULE_ALL;
	group->tokens_per_block = geometry->block_tokens;
	for (uint32_t layer = 0; layer < preset->layer_count; layer++)
		group->slice_bytes[layer] = scaled((uint64_t)geometry->block_tokens * preset->layer_token_bytes, scale);
}

/* Each group's block must hold whole compressed entries, and blocks of the c128 group must end where keys end. */
static int check_flash_block_tokens(const char *name, uint32_t block_tokens, struct fc_error *error)
{
	bool fits_sparse = block_tokens < FLASH_SPARSE_TOKENS ? FLASH_SPARSE_TOKENS % block_tokens == 0
							      : block_tokens % FLASH_SPARSE_TOKENS == 0;
	if (block_tokens % FLASH_DENSE_TOKENS == 0 && fits_sparse)
		return 0;
	return fc_error_set(error, FC_EINVAL,
			    "model %s: block_tokens is %" PRIu32 "; allowed are 4, 8, 16, 32, 64 and multiples of 128",
			    name, block_tokens);
}

static void fill_flash(struct fc_geometry *geometry, const struct preset *preset, uint32_t scale)
{
	struct fc_group *dense = &geometry->groups[0];
	struct fc_group *sparse = &geometry->groups[1];
	struct fc_group *window = &geometry->groups[2];
	geometry->group_count = 3;
	dense->rule = FC_RULE_ALL;
	dense->tokens_per_block = geometry->block_tokens;
	sparse->rule = FC_RULE_ALL;
	sparse->tokens_per_block = (uint32_t)fc_max_u64(geometry->block_tokens, FLASH_SPARSE_TOKENS);
	window->rule = FC_RULE_WINDOW;
	window->tokens_per_block = geometry->block_tokens;
	window->window_tokens = FLASH_WINDOW_TOKENS;

	uint64_t dense_entry_bytes = preset->layer_token_bytes + preset->indexer_bytes;
	uint64_t dense_bytes = dense->tokens_per_block / FLASH_DENSE_TOKENS * dense_entry_bytes;
	uint64_t sparse_bytes = sparse->tokens_per_block / FLASH_SPARSE_TOKENS * (uint64_t)preset->layer_token_bytes;
	uint64_t window_bytes = window->tokens_per_block * (uint64_t)preset->layer_token_bytes;
	for (uint32_t layer = 0; layer < preset->layer_count; layer++) {
		window->slice_bytes[layer] = scaled(window_bytes, scale);
		if (layer < FLASH_WINDOW_ONLY_LAYERS)
			continue;
		if ((layer - FLASH_WINDOW_ONLY_LAYERS) % 2 == 0)
			dense->slice_bytes[layer] = scaled(dense_bytes, scale);
		else
			sparse->slice_bytes[layer] = scaled(sparse_bytes, scale);
	}
}

int fc_geometry_preset(struct fc_geometry *geometry, const char *name, uint32_t block_tokens, uint32_t scale,
		       struct fc_error *error)
{
	if (geometry == NULL || name == NULL)
		return fc_error_set(error, FC_EINVAL, "model: %s missing", name == NULL ? "name" : "geometry");
	const struct preset *preset = find_preset(name);
	if (preset == NULL)
		return unknown_preset(name, error);
	if (block_tokens == 0)
		block_tokens = BLOCK_TOKENS_DEFAULT;
	int code = check_number("model: block_tokens", block_tokens, 1, FC_BLOCK_TOKENS_MAX, error);
	if (code == 0)
		code = check_number("model: scale", scale, 1, FC_SCALE_MAX, error);
	if (code == 0 && preset->indexer_bytes != 0)
		code = check_flash_block_tokens(name, block_tokens, error);
	if (code != 0)
		return code;

	memset(geometry, 0, sizeof(*geometry));
	snprintf(geometry->name, sizeof(geometry->name), "%s", preset->name);
	geometry->block_tokens = block_tokens;
	geometry->layer_count = preset->layer_count;
	if (preset->indexer_bytes != 0)
		fill_flash(geometry, preset, scale);
	else
		fill_plain(geometry, preset, scale);
	return fc_geometry_check(geometry, error);
}

double fc_geometry_bytes_per_token(const struct fc_geometry *geometry)
{
	double bytes = 0;
	if (fc_geometry_check(geometry, NULL) != FC_OK)
		return 0;
	for (uint32_t g = 0; g < geometry->group_count; g++) {
		const struct fc_group *group = &geometry->groups[g];
		if (group->rule != FC_RULE_ALL)
			continue;
		uint64_t block_bytes = 0;
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			block_bytes += group->slice_bytes[layer];
		bytes += (double)block_bytes / group->tokens_per_block;
	}
	return bytes;
}

/* Are the known models' sizes those of the published figures, and is every impossible geometry refused by name? */
#include "base/check.h"
#include "flatcake.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct fc_geometry preset(const char *name, uint32_t block_tokens, uint32_t scale)
{
	struct fc_geometry geometry;
	struct fc_error error = {0};
	int code = fc_geometry_preset(&geometry, name, block_tokens, scale, &error);
	assert_string_equal(error.text, "");
	assert_int_equal(code, 0);
	return geometry;
}

/* A valid geometry of one, two or three groups to break: all, window, state over three layers. */
static struct fc_geometry small_geometry(void)
{
	struct fc_geometry geometry = {.name = "small", .block_tokens = 16, .layer_count = 3, .group_count = 3};
	geometry.groups[0] = (struct fc_group){.rule = FC_RULE_ALL, .tokens_per_block = 16, .slice_bytes = {100, 0, 7}};
	geometry.groups[1] = (struct fc_group){
		.rule = FC_RULE_WINDOW, .tokens_per_block = 32, .window_tokens = 50, .slice_bytes = {0, 33, 0}};
	geometry.groups[2] = (struct fc_group){.rule = FC_RULE_STATE, .slice_bytes = {0, 1ull << 32, 0}};
	return geometry;
}

static void assert_refused(const struct fc_geometry *geometry, const char *wanted)
{
	struct fc_error error = {0};
	assert_int_equal(fc_geometry_check(geometry, &error), FC_EINVAL);
	assert_int_equal(error.code, FC_EINVAL);
	if (strstr(error.text, wanted) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, wanted);
	assert_int_equal(fc_geometry_check(geometry, NULL), FC_EINVAL);
}

/* ---- presets ------------------------------------------------------------------------------------------------------
 */

static void plain_models_have_their_published_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t layers;
		double token_bytes;
	} models[] = {
		{"deepseek-v3", 61, 70272},   {"llama-3.1-70b", 80, 327680}, {"llama-3.1-70b-fp8", 80, 163840},
		{"llama-3.1-8b", 32, 131072}, {"qwen3-32b", 64, 262144},
	};
	for (size_t i = 0; i < fc_array_len(models); i++) {
		struct fc_geometry geometry = preset(models[i].name, 0, 1);
		assert_string_equal(geometry.name, models[i].name);
		assert_int_equal(geometry.block_tokens, 64);
		assert_int_equal(geometry.layer_count, models[i].layers);
		assert_int_equal(geometry.group_count, 1);
		assert_int_equal(geometry.groups[0].slice_bytes[models[i].layers - 1] * models[i].layers,
				 (uint64_t)models[i].token_bytes * 64);
		assert_true(fc_geometry_bytes_per_token(&geometry) == models[i].token_bytes);
	}
}

static uint32_t layers_with_bytes(const struct fc_group *group)
{
	uint32_t count = 0;
	for (uint32_t layer = 0; layer < FC_LAYERS_MAX; layer++)
		count += group->slice_bytes[layer] != 0;
	return count;
}

static void flash_has_its_published_sizes(void **state)
{
	(void)state;
	static const uint32_t block_sizes[] = {4, 16, 64, 128, 256};
	for (size_t i = 0; i < fc_array_len(block_sizes); i++) {
		struct fc_geometry geometry = preset("deepseek-v4-flash", block_sizes[i], 1);
		assert_true(fc_geometry_bytes_per_token(&geometry) == 3850.25);
		geometry = preset("deepseek-v4-flash-bf16", block_sizes[i], 1);
		assert_true(fc_geometry_bytes_per_token(&geometry) == 6880);
	}
}

static void flash_alternates_its_layers(void **state)
{
	(void)state;
	struct fc_geometry geometry = preset("deepseek-v4-flash", 64, 1);
	const struct fc_group *dense = &geometry.groups[0];
	const struct fc_group *sparse = &geometry.groups[1];
	const struct fc_group *window = &geometry.groups[2];
	assert_int_equal(geometry.layer_count, 43);
	assert_int_equal(geometry.group_count, 3);
	assert_int_equal(layers_with_bytes(dense), 21);
	assert_int_equal(layers_with_bytes(sparse), 20);
	assert_int_equal(layers_with_bytes(window), 43);
	assert_int_equal(dense->slice_bytes[0] + dense->slice_bytes[1], 0);
	assert_int_equal(sparse->slice_bytes[0] + sparse->slice_bytes[1], 0);
	assert_int_equal(dense->slice_bytes[2], 11456); /* 16 x 716 */
	assert_int_equal(dense->slice_bytes[3], 0);
	assert_int_equal(dense->slice_bytes[42], 11456);
	assert_int_equal(sparse->tokens_per_block, 128);
	assert_int_equal(sparse->slice_bytes[3], 584);
	assert_int_equal(sparse->slice_bytes[41], 584);
	assert_int_equal(window->rule, FC_RULE_WINDOW);
	assert_int_equal(window->window_tokens, 128);
	assert_int_equal(window->tokens_per_block, 64);
	assert_int_equal(window->slice_bytes[0], 37376); /* 64 x 584; two blocks in 43 layers: 3,214,336 */
	geometry = preset("deepseek-v4-flash", 256, 1);
	assert_int_equal(geometry.groups[1].tokens_per_block, 256);
	assert_int_equal(geometry.groups[1].slice_bytes[3], 1168);
}

static void flash_wants_blocks_of_whole_entries(void **state)
{
	(void)state;
	static const uint32_t wrong[] = {1, 2, 3, 6, 12, 48, 96, 100, 160, 192, 65535};
	struct fc_geometry geometry;
	struct fc_error error;
	for (size_t i = 0; i < fc_array_len(wrong); i++) {
		assert_int_equal(fc_geometry_preset(&geometry, "deepseek-v4-flash", wrong[i], 1, &error), FC_EINVAL);
		assert_non_null(strstr(error.text, "4, 8, 16, 32, 64 and multiples of 128"));
	}
	preset("deepseek-v4-flash", 384, 1);
	preset("deepseek-v3", 48, 1);
}

static void scale_divides_slices_and_leaves_a_byte(void **state)
{
	(void)state;
	struct fc_geometry geometry = preset("deepseek-v3", 16, 1000);
	assert_int_equal(geometry.groups[0].slice_bytes[0], 18); /* 18,432 / 1,000 */
	geometry = preset("deepseek-v3", 16, 12288);
	assert_int_equal(geometry.groups[0].slice_bytes[0], 2); /* 1.5, rounded up */
	geometry = preset("deepseek-v3", 16, FC_SCALE_MAX);
	assert_int_equal(geometry.groups[0].slice_bytes[60], 1);
	geometry = preset("deepseek-v4-flash", 64, 1000000);
	assert_int_equal(geometry.groups[0].slice_bytes[0], 0); /* a layer without a part stays without */
	assert_int_equal(geometry.groups[0].slice_bytes[2], 1);
	assert_int_equal(geometry.groups[1].slice_bytes[3], 1);
	assert_int_equal(geometry.groups[2].slice_bytes[0], 1);
}

static void every_listed_name_is_known(void **state)
{
	(void)state;
	size_t count = 0;
	for (; fc_geometry_preset_name(count) != NULL; count++) {
		struct fc_geometry geometry = preset(fc_geometry_preset_name(count), 128, 16);
		assert_int_equal(fc_geometry_check(&geometry, NULL), 0);
	}
	assert_int_equal(count, 7);
	assert_null(fc_geometry_preset_name(SIZE_MAX));
}

static void an_unknown_name_is_answered_with_the_known(void **state)
{
	(void)state;
	struct fc_geometry geometry;
	struct fc_error error;
	assert_int_equal(fc_geometry_preset(&geometry, "gpt-2", 0, 1, &error), FC_ENOENT);
	assert_string_equal(error.text,
			    "model \"gpt-2\" is unknown; known are deepseek-v4-flash, deepseek-v4-flash-bf16, "
			    "deepseek-v3, llama-3.1-70b, llama-3.1-70b-fp8, llama-3.1-8b, qwen3-32b");
	assert_int_equal(fc_geometry_preset(&geometry, NULL, 0, 1, &error), FC_EINVAL);
	assert_int_equal(fc_geometry_preset(NULL, "deepseek-v3", 0, 1, &error), FC_EINVAL);
}

static void impossible_presets_are_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry;
	struct fc_error error;
	assert_int_equal(fc_geometry_preset(&geometry, "deepseek-v3", 64, 0, &error), FC_EINVAL);
	assert_string_equal(error.text, "model: scale is 0; allowed are 1 to 1000000");
	assert_int_equal(fc_geometry_preset(&geometry, "deepseek-v3", 64, FC_SCALE_MAX + 1, &error), FC_EINVAL);
	assert_string_equal(error.text, "model: scale is 1000001; allowed are 1 to 1000000");
	assert_int_equal(fc_geometry_preset(&geometry, "deepseek-v3", 65537, 1, &error), FC_EINVAL);
	assert_string_equal(error.text, "model: block_tokens is 65537; allowed are 1 to 65536");
}

/* ---- check --------------------------------------------------------------------------------------------------------
 */

static void a_geometry_with_all_rules_passes(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	struct fc_error error = {0};
	assert_int_equal(fc_geometry_check(&geometry, &error), 0);
	assert_string_equal(error.text, "");
	assert_true(fabs(fc_geometry_bytes_per_token(&geometry) - 107.0 / 16) < 1e-12);
}

static void a_one_layer_model_of_odd_size_passes(void **state)
{
	(void)state;
	struct fc_geometry geometry = {.name = "odd", .block_tokens = 1, .layer_count = 1, .group_count = 1};
	geometry.groups[0] = (struct fc_group){.tokens_per_block = 1, .slice_bytes = {3098112 + 1}};
	assert_int_equal(fc_geometry_check(&geometry, NULL), 0);
}

static void counts_outside_their_ranges_are_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	geometry.layer_count = 0;
	assert_refused(&geometry, "geometry: layer_count is 0; allowed are 1 to 256");
	geometry.layer_count = 257;
	assert_refused(&geometry, "geometry: layer_count is 257; allowed are 1 to 256");
	geometry = small_geometry();
	geometry.group_count = 0;
	assert_refused(&geometry, "geometry: group_count is 0; allowed are 1 to 8");
	geometry.group_count = 9;
	assert_refused(&geometry, "geometry: group_count is 9; allowed are 1 to 8");
	geometry = small_geometry();
	geometry.block_tokens = 0;
	assert_refused(&geometry, "geometry: block_tokens is 0; allowed are 1 to 65536");
	geometry.block_tokens = 65537;
	assert_refused(&geometry, "geometry: block_tokens is 65537; allowed are 1 to 65536");
	assert_int_equal(fc_geometry_check(NULL, NULL), FC_EINVAL);
}

static void names_that_are_no_text_are_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	memset(geometry.name, 'x', sizeof(geometry.name));
	assert_refused(&geometry, "name is not terminated within 64 bytes");
	geometry.name[0] = '\0';
	assert_refused(&geometry, "geometry: name is empty; it is what tells models of equal sizes apart");
	strcpy(geometry.name, "a\nb");
	assert_refused(&geometry, "name holds byte 0x0a at 1");
}

static void the_first_group_holds_every_block(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	geometry.groups[0].rule = FC_RULE_STATE;
	assert_refused(&geometry, "geometry: group 0: rule is 2; the first group must be under rule 0 (all)");
	geometry = small_geometry();
	geometry.groups[0].tokens_per_block = 32;
	assert_refused(&geometry,
		       "geometry: group 0: tokens_per_block is 32; the first group's must be block_tokens, 16");
}

static void impossible_rules_are_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	geometry.groups[1].rule = (enum fc_rule)3;
	assert_refused(&geometry, "geometry: group 1: rule is 3; allowed are 0 (all), 1 (window) and 2 (state)");
	geometry = small_geometry();
	geometry.groups[1].window_tokens = 0;
	assert_refused(&geometry, "geometry: group 1: window_tokens is 0; allowed are 1 to 16777216");
	geometry.groups[1].window_tokens = (1 << 24) + 1;
	assert_refused(&geometry, "geometry: group 1: window_tokens is 16777217");
	geometry = small_geometry();
	geometry.groups[2].window_tokens = 9;
	assert_refused(&geometry, "geometry: group 2: window_tokens is 9; it must be 0 unless the rule is 1 (window)");
}

static void blocks_of_groups_must_end_together(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	geometry.groups[1].tokens_per_block = 24;
	assert_refused(&geometry, "geometry: group 1: tokens_per_block is 24, not a multiple of block_tokens 16");
	geometry.groups[1].tokens_per_block = 0;
	assert_refused(&geometry, "geometry: group 1: tokens_per_block is 0; allowed are 1 to 16777216");
	geometry.groups[1].tokens_per_block = 16 * 1009;
	assert_int_equal(fc_geometry_check(&geometry, NULL), 0);
	geometry.group_count = 4;
	geometry.groups[3] = (struct fc_group){.tokens_per_block = 16 * 2003, .slice_bytes = {1}};
	assert_refused(&geometry,
		       "geometry: group 3: tokens_per_block 32048 makes blocks of all groups end together only "
		       "every 32336432 tokens; at most 16777216 are allowed");
}

static void a_state_group_has_no_block_size(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	geometry.groups[2].tokens_per_block = 12345;
	assert_int_equal(fc_geometry_check(&geometry, NULL), 0);
}

static void impossible_slices_are_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry = small_geometry();
	geometry.groups[2].slice_bytes[1] = (1ull << 32) + 1;
	assert_refused(&geometry, "geometry: group 2: layer 1: slice_bytes is 4294967297; allowed are 0 to 4294967296");
	geometry.groups[2].slice_bytes[1] = UINT64_MAX;
	assert_refused(&geometry, "layer 1: slice_bytes is 18446744073709551615");
	geometry = small_geometry();
	geometry.groups[1].slice_bytes[1] = 0;
	assert_refused(&geometry, "geometry: group 1: slice_bytes is 0 in all 3 layers");
	geometry.groups[1].slice_bytes[3] = 5; /* behind the last layer: does not count */
	assert_refused(&geometry, "geometry: group 1: slice_bytes is 0 in all 3 layers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_models_have_their_published_sizes),
		cmocka_unit_test(flash_has_its_published_sizes),
		cmocka_unit_test(flash_alternates_its_layers),
		cmocka_unit_test(flash_wants_blocks_of_whole_entries),
		cmocka_unit_test(scale_divides_slices_and_leaves_a_byte),
		cmocka_unit_test(every_listed_name_is_known),
		cmocka_unit_test(an_unknown_name_is_answered_with_the_known),
		cmocka_unit_test(impossible_presets_are_refused),
		cmocka_unit_test(a_geometry_with_all_rules_passes),
		cmocka_unit_test(a_one_layer_model_of_odd_size_passes),
		cmocka_unit_test(counts_outside_their_ranges_are_refused),
		cmocka_unit_test(names_that_are_no_text_are_refused),
		cmocka_unit_test(the_first_group_holds_every_block),
		cmocka_unit_test(impossible_rules_are_refused),
		cmocka_unit_test(blocks_of_groups_must_end_together),
		cmocka_unit_test(a_state_group_has_no_block_size),
		cmocka_unit_test(impossible_slices_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

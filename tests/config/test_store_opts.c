/* The program's defaults and ranges are the library's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "config/option.h"
#include "store/opts.h"

static void defaults_equal_those_of_the_library(void **state)
{
	(void)state;
	struct fc_config config;
	struct fc_config_problem problem;
	struct fc_geometry geometry;
	struct fc_store_opts ours, theirs;
	memset(&ours, 0, sizeof(ours));
	memset(&theirs, 0, sizeof(theirs));
	struct fc_config_sources sources = {.command = FC_COMMAND_REPLAY};
	assert_int_equal(fc_config_load(&config, &sources, &problem), FC_OK);
	assert_int_equal(fc_config_store_opts(&config, &geometry, &ours, &problem.error), FC_OK);
	fc_store_opts_init(&theirs);
	assert_ptr_equal(ours.geometry, &geometry);
	theirs.geometry = ours.geometry;
	assert_memory_equal(&ours, &theirs, sizeof(ours));
	fc_config_free(&config);
}

/* ---- ranges ---- */

static void take_option(const struct fc_option *option, bool is_most, struct fc_store_opts *opts)
{
	struct fc_config config;
	struct fc_config_problem problem;
	static struct fc_geometry geometry;
	char value[64];
	bool is_daemon = (option->commands & FC_COMMAND_DAEMON) != 0;
	struct fc_config_sources sources = {.command = is_daemon ? FC_COMMAND_DAEMON : FC_COMMAND_REPLAY};
	assert_int_equal(fc_config_load(&config, &sources, &problem), FC_OK);
	if (option->type == FC_OPTION_RATIO)
		snprintf(value, sizeof(value), "%.15g", is_most ? option->ratio_max : option->ratio_min);
	else
		snprintf(value, sizeof(value), "%llu%s", (unsigned long long)(is_most ? option->max : option->min),
			 option->type == FC_OPTION_DURATION ? "ns" : "");
	assert_int_equal(fc_option_set(option, value, &config, option->name, &problem.error), FC_OK);
	assert_int_equal(fc_config_store_opts(&config, &geometry, opts, &problem.error), FC_OK);
	fc_config_free(&config);
}

static bool is_number(const struct fc_option *option)
{
	return option->type == FC_OPTION_SIZE || option->type == FC_OPTION_COUNT ||
	       option->type == FC_OPTION_DURATION || option->type == FC_OPTION_RATIO;
}

/* Where the range's field has another value in the two. */
static bool differ_in(const struct fc_store_opts *a, const struct fc_store_opts *b, const struct fc_opts_range *range)
{
	size_t bytes = range->kind == FC_OPTS_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
	return memcmp((const char *)a + range->offset, (const char *)b + range->offset, bytes) != 0;
}

static void expect_same_range(const struct fc_option *option, const struct fc_opts_range *range)
{
	bool is_same = range->kind == FC_OPTS_RATIO
			       ? option->type == FC_OPTION_RATIO && option->ratio_min == range->ratio_min &&
					 option->ratio_max == range->ratio_max
			       : option->min == range->min && option->max == range->max;
	if (!is_same)
		fail_msg("--%s has another range than %s", option->name, range->name);
}

/* Whichever option reaches a number of the store's reaches all of its values, and no other. */
static void ranges_equal_those_of_the_library(void **state)
{
	(void)state;
	size_t found = 0;
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		const struct fc_option *option = fc_option_at(row);
		struct fc_store_opts least, most;
		if (!is_number(option) || (option->commands & (FC_COMMAND_REPLAY | FC_COMMAND_DAEMON)) == 0)
			continue;
		take_option(option, false, &least);
		take_option(option, true, &most);
		for (size_t i = 0; fc_store_opts_range(i) != NULL; i++) {
			const struct fc_opts_range *range = fc_store_opts_range(i);
			if (!differ_in(&least, &most, range))
				continue;
			expect_same_range(option, range);
			found++;
		}
	}
	assert_int_equal(found, 14); /* all but node, requests_max, reconnect_timeout_ns, and the two choices */
}

/* The options that make the geometry, of every command that has them. */
static void the_ranges_of_presets_are_those_of_the_library(void **state)
{
	(void)state;
	size_t found = 0;
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		const struct fc_option *option = fc_option_at(row);
		if (strcmp(option->name, "scale") == 0) {
			assert_true(option->min == 1 && option->max == FC_SCALE_MAX);
			found++;
		}
		if (strcmp(option->name, "block-tokens") == 0) {
			assert_true(option->min == 0 && option->max == FC_BLOCK_TOKENS_MAX);
			found++;
		}
	}
	assert_int_equal(found, 3);
}

/* ---- names ---- */

static void an_unknown_model_is_named_with_the_known_ones(void **state)
{
	(void)state;
	struct fc_config config;
	struct fc_config_problem problem;
	struct fc_geometry geometry;
	struct fc_store_opts opts;
	char *arguments[] = {"--model", "gpt-0"};
	struct fc_config_sources sources = {.command = FC_COMMAND_REPLAY, .argument_count = 2, .arguments = arguments};
	assert_int_equal(fc_config_load(&config, &sources, &problem), FC_OK);
	assert_int_equal(fc_config_store_opts(&config, &geometry, &opts, &problem.error), FC_ENOENT);
	assert_non_null(strstr(problem.error.text, "--model"));
	assert_non_null(strstr(problem.error.text, "llama-3.1-70b"));
	fc_config_free(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_equal_those_of_the_library),
		cmocka_unit_test(ranges_equal_those_of_the_library),
		cmocka_unit_test(the_ranges_of_presets_are_those_of_the_library),
		cmocka_unit_test(an_unknown_model_is_named_with_the_known_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

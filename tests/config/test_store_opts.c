/* The program's defaults are the library's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "config/config.h"

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
		cmocka_unit_test(an_unknown_model_is_named_with_the_known_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Settings from defaults, YAML, variables and flags: which wins, what each type takes, and what every complaint names.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "config/option.h"

static char file_path[64];

static int make_file(void **state)
{
	(void)state;
	strcpy(file_path, "/tmp/flatcake-config-XXXXXX");
	int fd = mkstemp(file_path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(file_path);
}

/* One attempt: `yaml`, `variable` and `flags` may be NULL. */
struct attempt {
	struct fc_config config;
	struct fc_config_problem problem;
	int code;
	char flag_text[256];
	char *arguments[16];
	char *environment[2];
};

static void write_yaml(const char *text, size_t text_len)
{
	FILE *file = fopen(file_path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, text_len, file), text_len);
	assert_int_equal(fclose(file), 0);
}

static void load(struct attempt *attempt, enum fc_command_bit command, const char *yaml, const char *variable,
		 const char *flags)
{
	*attempt = (struct attempt){.code = 1};
	int count = 0;
	if (yaml != NULL) {
		write_yaml(yaml, strlen(yaml));
		attempt->arguments[count++] = "--config";
		attempt->arguments[count++] = file_path;
	}
	snprintf(attempt->flag_text, sizeof(attempt->flag_text), "%s", flags != NULL ? flags : "");
	char *rest = attempt->flag_text;
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		if (word[0] != '\0')
			attempt->arguments[count++] = word;
	}
	attempt->environment[0] = (char *)(uintptr_t)variable;
	struct fc_config_sources sources = {.command = command,
					    .argument_count = count,
					    .arguments = attempt->arguments,
					    .environment = attempt->environment};
	attempt->code = fc_config_load(&attempt->config, &sources, &attempt->problem);
}

static void replay(struct attempt *attempt, const char *yaml, const char *variable, const char *flags)
{
	load(attempt, FC_COMMAND_REPLAY, yaml, variable, flags);
}

static void expect_loaded(struct attempt *attempt)
{
	if (attempt->code != FC_OK)
		print_error("unexpected: %s\n", attempt->problem.error.text);
	assert_int_equal(attempt->code, FC_OK);
}

/* The attempt failed with `code`, and its sentence holds every one of the words. */
static void expect_refused(struct attempt *attempt, int code, const char *const *words)
{
	assert_int_equal(attempt->code, code);
	assert_int_equal(attempt->problem.error.code, code);
	for (; *words != NULL; words++) {
		if (strstr(attempt->problem.error.text, *words) == NULL)
			fail_msg("\"%s\" is not in: %s", *words, attempt->problem.error.text);
	}
	fc_config_free(&attempt->config);
}

#define expect_refusal(attempt, code, ...) expect_refused(attempt, code, (const char *const[]){__VA_ARGS__, NULL})

static void defaults_are_the_documented_ones(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, NULL);
	expect_loaded(&attempt);
	const struct fc_config *config = &attempt.config;
	assert_string_equal(config->dir, "flatcake-store");
	assert_null(config->ssd_path);
	assert_int_equal(config->memory_bytes, 1073741824);
	assert_int_equal(config->ssd_bytes, 8589934592);
	assert_int_equal(config->window_bytes, 67108864);
	assert_int_equal(config->gap_bytes, 65536);
	assert_int_equal(config->io_timeout_ns, 30000000000);
	assert_int_equal(config->agent_context_tokens, 32768);
	assert_int_equal(config->long_reply_tokens, 1024);
	assert_true(config->high_watermark == 0.95 && config->low_watermark == 0.85 && config->consolidate_ratio == 1);
	assert_int_equal(config->reclaim_order, FC_RECLAIM_LEAST_RECENTLY_USED);
	assert_int_equal(config->memory_reclaim, FC_MEMORY_SPILL);
	assert_true(isinf(config->rate_per_s) && isinf(config->prefill_per_s));
	assert_true(config->is_storing_replies && config->is_sharing_prompts && config->has_subagents);
	assert_false(config->is_lenient || config->is_simulated);
	assert_int_equal(config->session_count, 0);
	fc_config_free(&attempt.config);
}

static void rows_of_one_name_keep_their_own_defaults(void **state)
{
	(void)state;
	struct attempt attempt;
	load(&attempt, FC_COMMAND_GEN, NULL, NULL, NULL);
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.session_count, 40);
	fc_config_free(&attempt.config);
	load(&attempt, FC_COMMAND_DOCTOR, NULL, NULL, NULL);
	expect_loaded(&attempt);
	assert_string_equal(attempt.config.dir, ".");
	fc_config_free(&attempt.config);
}

static void variables_win_over_the_file_and_flags_over_both(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, "memory: 1M\nssd: 2M\ngap: 3K\n", "FLATCAKE_SSD=5M", "--gap 7K");
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.memory_bytes, 1048576);
	assert_int_equal(attempt.config.ssd_bytes, 5242880);
	assert_int_equal(attempt.config.gap_bytes, 7168);
	fc_config_free(&attempt.config);
	replay(&attempt, "ssd: 2M\n", "FLATCAKE_SSD=5M", "--ssd 9M");
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.ssd_bytes, 9437184);
	fc_config_free(&attempt.config);
}

static void the_file_may_be_named_by_a_variable(void **state)
{
	(void)state;
	write_yaml("seed: 42\ndir: /some/where\n", 26);
	char variable[128];
	snprintf(variable, sizeof(variable), "FLATCAKE_CONFIG=%s", file_path);
	struct attempt attempt;
	replay(&attempt, NULL, variable, NULL);
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.seed, 42);
	assert_string_equal(attempt.config.dir, "/some/where");
	fc_config_free(&attempt.config);
}

static void every_unit_of_a_size_is_binary(void **state)
{
	(void)state;
	static const struct {
		const char *flag;
		uint64_t bytes;
	} cases[] = {
		{"--memory 0", 0},
		{"--memory 5000", 5000},
		{"--memory 5000B", 5000},
		{"--memory 3K", 3072},
		{"--memory=3KiB", 3072},
		{"--memory 2MB", 2097152},
		{"--memory 4GiB", 4294967296},
		{"--memory 4g", 4294967296},
		{"--memory 256TiB", 281474976710656},
	};
	for (size_t index = 0; index < fc_array_len(cases); index++) {
		struct attempt attempt;
		replay(&attempt, NULL, NULL, cases[index].flag);
		expect_loaded(&attempt);
		assert_int_equal(attempt.config.memory_bytes, cases[index].bytes);
		fc_config_free(&attempt.config);
	}
}

static void a_bad_size_names_flag_value_and_what_is_allowed(void **state)
{
	(void)state;
	static const char *const values[] = {"5X",
					     "-1",
					     "abc",
					     "1.5G",
					     "+1",
					     "0x10",
					     "1 G",
					     "K",
					     "4GiBs",
					     "257TiB",
					     "18446744073709551616",
					     "18446744073709551615",
					     "99999999999T"};
	for (size_t index = 0; index < fc_array_len(values); index++) {
		char flag[64];
		snprintf(flag, sizeof(flag), "--memory=%s", values[index]);
		struct attempt attempt = {.code = 0};
		char *arguments[] = {flag};
		struct fc_config_sources sources = {FC_COMMAND_REPLAY, 1, arguments, NULL};
		attempt.code = fc_config_load(&attempt.config, &sources, &attempt.problem);
		expect_refusal(&attempt, FC_EINVAL, "--memory: ", values[index], "0 to 256TiB", "4GiB");
	}
}

static void an_empty_value_is_refused_everywhere(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, "--memory=");
	expect_refusal(&attempt, FC_EINVAL, "--memory: \"\"");
	replay(&attempt, NULL, NULL, "--dir=");
	expect_refusal(&attempt, FC_EINVAL, "--dir: \"\"", "not empty");
	replay(&attempt, NULL, "FLATCAKE_SSD=", NULL);
	expect_refusal(&attempt, FC_EINVAL, "FLATCAKE_SSD: \"\"");
	replay(&attempt, "memory: 1M\nssd:\n", NULL, NULL);
	expect_refusal(&attempt, FC_EINVAL, file_path, ":2: ssd: \"\"");
	replay(&attempt, NULL, NULL, "--memory");
	expect_refusal(&attempt, FC_EINVAL, "--memory: a value must follow", "4GiB");
}

static void counts_durations_ratios_and_rates_have_bounds(void **state)
{
	(void)state;
	static const char *const refused[] = {
		"--streams 0",
		"--streams 1025",
		"--streams 4K",
		"--io-timeout 30",
		"--io-timeout 30S.",
		"--io-timeout 0s",
		"--io-timeout 2h",
		"--high-watermark 1.1",
		"--low-watermark .5",
		"--low-watermark 5.",
		"--low-watermark 1e-1",
		"--rate 0",
		"--rate Max",
		"--rate -1",
		"--prefill 0.5",
		"--low-watermark nan",
		"--seed 18446744073709551616",
		"--consolidate 0.1234567890123456",
	};
	for (size_t index = 0; index < fc_array_len(refused); index++) {
		struct attempt attempt;
		replay(&attempt, NULL, NULL, refused[index]);
		expect_refusal(&attempt, FC_EINVAL, "allowed: ");
	}
	struct attempt attempt;
	replay(&attempt, NULL, NULL,
	       "--io-timeout 250ms --rate 2.5 --prefill 40000 --low-watermark 0.125 --seed 18446744073709551615");
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.io_timeout_ns, 250000000);
	assert_true(attempt.config.rate_per_s == 2.5 && attempt.config.prefill_per_s == 40000.0);
	assert_true(attempt.config.low_watermark == 0.125);
	assert_true(attempt.config.seed == UINT64_MAX);
	fc_config_free(&attempt.config);
	replay(&attempt, NULL, NULL, "--io-timeout 2min --rate max");
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.io_timeout_ns, 120000000000);
	assert_true(isinf(attempt.config.rate_per_s));
	fc_config_free(&attempt.config);
}

static void choices_and_switches_take_their_words_only(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, "lenient: on\nsimulate: on\n", NULL,
	       "--reclaim-order created --memory-reclaim=drop --subagents off --simulate=off");
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.reclaim_order, FC_RECLAIM_OLDEST_CREATED);
	assert_int_equal(attempt.config.memory_reclaim, FC_MEMORY_DROP);
	assert_false(attempt.config.has_subagents || attempt.config.is_simulated);
	assert_true(attempt.config.is_lenient);
	fc_config_free(&attempt.config);
	replay(&attempt, NULL, NULL, "--reclaim-order fifo");
	expect_refusal(&attempt, FC_EINVAL, "--reclaim-order: \"fifo\"", "lru or created");
	replay(&attempt, NULL, NULL, "--subagents yes");
	expect_refusal(&attempt, FC_EINVAL, "--subagents: \"yes\"", "on or off");
	replay(&attempt, NULL, NULL, "--lenient=1");
	expect_refusal(&attempt, FC_EINVAL, "--lenient: \"1\"", "on or off");
}

static void unknown_names_are_refused_with_the_names_that_exist(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, "--memroy 4G");
	assert_non_null(strstr(attempt.problem.allowed, "--memory, --ssd"));
	assert_null(strstr(attempt.problem.allowed, "--turns"));
	expect_refusal(&attempt, FC_ENOENT, "unknown option \"--memroy\"", "did you mean --memory?");
	replay(&attempt, NULL, "FLATCAKE_MEMRY=4G", NULL);
	assert_non_null(strstr(attempt.problem.allowed, "FLATCAKE_TURNS"));
	const char *once = strstr(attempt.problem.allowed, "FLATCAKE_DIR,"); /* an option of several commands */
	assert_non_null(once);
	assert_null(strstr(once + 1, "FLATCAKE_DIR,"));
	expect_refusal(&attempt, FC_ENOENT, "unknown variable \"FLATCAKE_MEMRY\"", "FLATCAKE_MEMORY");
	replay(&attempt, "# comment\n\nblock-tokens: 64\n", NULL, NULL);
	assert_non_null(strstr(attempt.problem.allowed, "block_tokens"));
	assert_null(strstr(attempt.problem.allowed, "config"));
	expect_refusal(&attempt, FC_ENOENT, file_path, ":3: unknown key \"block-tokens\"",
		       "did you mean block_tokens?");
	replay(&attempt, "config: other.yaml\n", NULL, NULL);
	expect_refusal(&attempt, FC_ENOENT, ":1: unknown key \"config\"");
	replay(&attempt, NULL, NULL, "--zzzzzz");
	assert_null(strstr(attempt.problem.error.text, "did you mean"));
	expect_refusal(&attempt, FC_ENOENT, "unknown option \"--zzzzzz\"");
	replay(&attempt, NULL, NULL, "-x");
	expect_refusal(&attempt, FC_ENOENT, "unknown option \"-x\"");
}

static void an_option_of_another_command_is_refused_as_a_flag_but_not_in_the_file(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, "--turns 5");
	expect_refusal(&attempt, FC_ENOENT, "--turns belongs to other commands");
	replay(&attempt, "turns: 5\n", NULL, NULL);
	expect_loaded(&attempt);
	fc_config_free(&attempt.config);
	replay(&attempt, "turns: none\n", NULL, NULL);
	expect_refusal(&attempt, FC_EINVAL, ":1: turns: \"none\"");
}

static void a_bad_file_is_refused_by_line(void **state)
{
	(void)state;
	static const struct {
		const char *yaml;
		const char *words[3];
	} cases[] = {
		{"memory: 5X\n", {":1: memory: \"5X\"", "0 to 256TiB"}},
		{"memory: 1M\nssd: 1M\nmemory: 2M\n", {":3: key \"memory\" stands twice", "line 1"}},
		{"memory:\n  - 1M\n", {":2: a value must be a single word"}},
		{"memory: {size: 1M}\n", {":1: a value must be a single word"}},
		{"- memory\n", {":1: expected lines of \"key: value\""}},
		{"just text\n", {":1: expected lines"}},
		{"? [a, b]\n: 1\n", {":1: a key must be a plain name"}},
		{"memory: 1M\n---\nssd: 1M\n", {":2: a second document"}},
		{"memory: 1M\n\tssd: 1M\n", {":2: not YAML"}},
		{"memory: \"1M\nssd: 1M\n", {"not YAML"}},
		{"memory: *other\n", {"1: "}},
		{"dir: \"a\\0b\"\n", {":1: a value must not contain a NUL byte"}},
	};
	for (size_t index = 0; index < fc_array_len(cases); index++) {
		struct attempt attempt;
		replay(&attempt, cases[index].yaml, NULL, NULL);
		expect_refused(&attempt, FC_EINVAL, cases[index].words);
	}
}

static void an_empty_file_sets_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "\n# nothing\n", "---\n{}\n"};
	for (size_t index = 0; index < fc_array_len(texts); index++) {
		struct attempt attempt;
		replay(&attempt, texts[index], NULL, NULL);
		expect_loaded(&attempt);
		assert_int_equal(attempt.config.seed, 1);
		fc_config_free(&attempt.config);
	}
}

static void a_missing_file_is_an_error(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, "--config /nonexistent/flatcake.yaml");
	expect_refusal(&attempt, FC_ESYSTEM, "/nonexistent/flatcake.yaml", "No such file");
}

static void control_characters_of_a_bad_value_are_not_shown(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, "memory: \"\\x1b[31m\"\n", NULL, NULL);
	assert_null(strchr(attempt.problem.error.text, '\x1b'));
	expect_refusal(&attempt, FC_EINVAL, "?[31m");
}

static void settings_that_contradict_each_other_are_refused(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, "--high-watermark 0.5 --low-watermark 0.5");
	expect_refusal(&attempt, FC_EINVAL, "low watermark (0.5)", "high watermark (0.5)");
	replay(&attempt, NULL, NULL, "--chunk 12K");
	expect_refusal(&attempt, FC_EINVAL, "--chunk", "power of two");
}

static void arguments_and_options_mix_in_any_order(void **state)
{
	(void)state;
	struct attempt attempt;
	replay(&attempt, NULL, NULL, "a.json --seed 3 - --lenient b.json -- --seed");
	expect_loaded(&attempt);
	assert_int_equal(attempt.config.argument_count, 4);
	assert_string_equal(attempt.config.arguments[0], "a.json");
	assert_string_equal(attempt.config.arguments[1], "-");
	assert_string_equal(attempt.config.arguments[2], "b.json");
	assert_string_equal(attempt.config.arguments[3], "--seed");
	assert_int_equal(attempt.config.seed, 3);
	assert_true(attempt.config.is_lenient);
	fc_config_free(&attempt.config);
}

static void names_of_the_table_are_spelled_three_ways_and_found_again(void **state)
{
	(void)state;
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		const struct fc_option *option = fc_option_at(row);
		for (int spelling = FC_SPELLING_FLAG; spelling <= FC_SPELLING_KEY; spelling++) {
			char name[FC_OPTION_NAME_BYTES];
			fc_option_spell(option, spelling, name);
			enum fc_command_bit command = option->commands & -option->commands;
			assert_ptr_equal(fc_option_find(spelling, name, strlen(name), command), option);
		}
	}
	char name[FC_OPTION_NAME_BYTES];
	const struct fc_option *option = fc_option_find(FC_SPELLING_KEY, "block_tokens", 12, FC_COMMAND_REPLAY);
	fc_option_spell(option, FC_SPELLING_VARIABLE, name);
	assert_string_equal(name, "FLATCAKE_BLOCK_TOKENS");
	fc_option_spell(option, FC_SPELLING_FLAG, name);
	assert_string_equal(name, "--block-tokens");
}

static void no_command_has_two_rows_of_one_name(void **state)
{
	(void)state;
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		for (size_t other = row + 1; fc_option_at(other) != NULL; other++) {
			if (strcmp(fc_option_at(row)->name, fc_option_at(other)->name) == 0)
				assert_int_equal(fc_option_at(row)->commands & fc_option_at(other)->commands, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_documented_ones),
		cmocka_unit_test(rows_of_one_name_keep_their_own_defaults),
		cmocka_unit_test(variables_win_over_the_file_and_flags_over_both),
		cmocka_unit_test(the_file_may_be_named_by_a_variable),
		cmocka_unit_test(every_unit_of_a_size_is_binary),
		cmocka_unit_test(a_bad_size_names_flag_value_and_what_is_allowed),
		cmocka_unit_test(an_empty_value_is_refused_everywhere),
		cmocka_unit_test(counts_durations_ratios_and_rates_have_bounds),
		cmocka_unit_test(choices_and_switches_take_their_words_only),
		cmocka_unit_test(unknown_names_are_refused_with_the_names_that_exist),
		cmocka_unit_test(an_option_of_another_command_is_refused_as_a_flag_but_not_in_the_file),
		cmocka_unit_test(a_bad_file_is_refused_by_line),
		cmocka_unit_test(an_empty_file_sets_nothing),
		cmocka_unit_test(a_missing_file_is_an_error),
		cmocka_unit_test(control_characters_of_a_bad_value_are_not_shown),
		cmocka_unit_test(settings_that_contradict_each_other_are_refused),
		cmocka_unit_test(arguments_and_options_mix_in_any_order),
		cmocka_unit_test(names_of_the_table_are_spelled_three_ways_and_found_again),
		cmocka_unit_test(no_command_has_two_rows_of_one_name),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}

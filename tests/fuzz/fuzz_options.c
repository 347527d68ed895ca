/* Flags, variables, and the values of every option.
 *
 *     1 byte     the command
 *     1 byte     an option's row, for the value that the whole rest is also taken as
 *     ...        lines: FLATCAKE_... are variables, the others arguments
 *
 * Sizes, durations and counts are parsed once more, by the grammar at the top of config/parse.c and in another way: the
 * two must agree on what is a number, and on which. */
#include "config/option.h"
#include "fuzz/config_check.h"
#include "fuzz/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32

/* ---- one value ---- */

/* The factor of a unit, 0 if there is none of this name. */
static uint64_t factor_of(enum fc_option_type type, const char *unit)
{
	static const char *const durations[] = {"ns", "us", "ms", "s", "min", "h"};
	static const uint64_t factors[] = {1, 1000, 1000000, 1000000000, 60000000000, 3600000000000};
	char small[8] = "";
	for (size_t i = 0; i + 1 < sizeof(small) && unit[i] != '\0'; i++)
		small[i] = (char)tolower((unsigned char)unit[i]);
	if (strlen(small) != strlen(unit))
		return 0;
	if (type == FC_OPTION_COUNT)
		return small[0] == '\0';
	for (size_t i = 0; type == FC_OPTION_DURATION && i < 6; i++)
		if (strcmp(small, durations[i]) == 0)
			return factors[i];
	if (type == FC_OPTION_DURATION)
		return 0;
	if (small[0] == '\0' || strcmp(small, "b") == 0)
		return 1;
	const char *letter = strchr("kmgt", small[0]);
	bool is_unit =
		letter != NULL && (small[1] == '\0' || strcmp(small + 1, "b") == 0 || strcmp(small + 1, "ib") == 0);
	return is_unit ? 1ull << 10 * (letter - "kmgt" + 1) : 0;
}

static bool expect_whole(const struct fc_option *option, const char *text, uint64_t *value)
{
	unsigned __int128 number = 0;
	size_t digits = strspn(text, "0123456789");
	uint64_t factor = factor_of(option->type, text + digits);
	for (size_t i = 0; i < digits && number <= UINT64_MAX; i++)
		number = number * 10 + (unsigned)(text[i] - '0');
	if (digits == 0 || factor == 0 || number > UINT64_MAX)
		return false;
	number *= factor;
	*value = (uint64_t)number;
	return number >= option->min && number <= option->max;
}

static void run_value(const struct fc_option *option, const char *text)
{
	struct fc_config config = {.command = FC_COMMAND_REPLAY};
	struct fc_error error = {0};
	uint64_t expected = 0;
	int code = fc_option_set(option, text, &config, "value", &error);
	if (code != FC_OK)
		fuzz_check_refusal(code, &error);
	if (option->type != FC_OPTION_SIZE && option->type != FC_OPTION_COUNT && option->type != FC_OPTION_DURATION)
		return;
	uint64_t *field = (uint64_t *)(void *)((char *)&config + option->field_offset);
	bool is_good = expect_whole(option, text, &expected);
	fuzz_check(is_good == (code == FC_OK) && *field == expected * is_good, "%s: \"%s\" is %llu, not %llu",
		   option->name, text, (unsigned long long)*field, (unsigned long long)expected);
	if (!is_good || option->type == FC_OPTION_DURATION)
		return;
	char plain[32];
	snprintf(plain, sizeof(plain), "%llu", (unsigned long long)expected);
	fuzz_check(fc_option_set(option, plain, &config, "value", &error) == FC_OK && *field == expected,
		   "%s: %s is not itself", option->name, plain);
}

/* ---- all of a command line ---- */

static void run_line(enum fc_command_bit command, char *text)
{
	char *arguments[WORDS_MAX + 1] = {0}, *environment[WORDS_MAX + 1] = {0};
	int argument_count = 0, variable_count = 0;
	char *rest = text;
	for (char *word; (word = strsep(&rest, "\n")) != NULL;) {
		/* naming a file that exists would make the outcome depend on the machine */
		bool is_skipped = strstr(word, "onfig") != NULL || strstr(word, "ONFIG") != NULL;
		if (is_skipped || argument_count == WORDS_MAX || variable_count == WORDS_MAX)
			continue;
		if (strncmp(word, "FLATCAKE_", 9) == 0)
			environment[variable_count++] = word;
		else
			arguments[argument_count++] = word;
	}
	struct fc_config_sources sources = {.command = command,
					    .argument_count = argument_count,
					    .arguments = arguments,
					    .environment = environment};
	fuzz_config_run(&sources);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	enum fc_command_bit command = fuzz_command(fuzz_u8(&input));
	size_t row = fuzz_u8(&input), row_count = 0;
	while (fc_option_at(row_count) != NULL)
		row_count++;
	char *text = calloc(1, input.left + 1);
	fuzz_check(text != NULL, "no memory");
	if (input.left > 0)
		memcpy(text, input.bytes, input.left);
	char *value = fuzz_exact(text, strlen(text) + 1);
	run_value(fc_option_at(row % row_count), value);
	run_line(command, text);
	free(value);
	free(text);
	return 0;
}

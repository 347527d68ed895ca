#include "fuzz/config_check.h"

#include "config/option.h"
#include "fuzz/fuzz.h"

#include <math.h>

enum fc_command_bit fuzz_command(uint8_t choice)
{
	return (enum fc_command_bit)(1u << choice % 7);
}

static void check_whole(const struct fc_option *option, const void *field)
{
	uint64_t value = *(const uint64_t *)field;
	fuzz_check(value >= option->min && value <= option->max, "%s is %llu", option->name, (unsigned long long)value);
}

static void check_decimal(const struct fc_option *option, const void *field)
{
	double value = *(const double *)field;
	bool is_max = option->type == FC_OPTION_RATE && isinf(value) && value > 0;
	fuzz_check(is_max || (value >= option->ratio_min && value <= option->ratio_max), "%s is %g", option->name,
		   value);
}

static void check_choice(const struct fc_option *option, const void *field)
{
	int value = *(const int *)field, count = 0;
	while (option->choices[count] != NULL)
		count++;
	fuzz_check(value >= 0 && value < count, "%s is choice %d", option->name, value);
}

static void check_field(const struct fc_option *option, const struct fc_config *config)
{
	const void *field = (const char *)config + option->field_offset;
	switch (option->type) {
	case FC_OPTION_SIZE:
	case FC_OPTION_COUNT:
	case FC_OPTION_DURATION:
		check_whole(option, field);
		break;
	case FC_OPTION_RATIO:
	case FC_OPTION_RATE:
		check_decimal(option, field);
		break;
	case FC_OPTION_CHOICE:
		check_choice(option, field);
		break;
	case FC_OPTION_BOOL:
	case FC_OPTION_SWITCH:
		fuzz_check(*(const unsigned char *)field <= 1, "%s is neither on nor off", option->name);
		break;
	case FC_OPTION_TEXT: {
		const char *text = *(const char *const *)field;
		fuzz_check(text == NULL || text[0] != '\0', "%s is an empty text", option->name);
		break;
	}
	}
}

static void check_config(const struct fc_config *config)
{
	for (size_t row = 0; fc_option_at(row) != NULL; row++)
		if (fc_option_at(row)->commands & config->command)
			check_field(fc_option_at(row), config);
	fuzz_check(config->low_watermark < config->high_watermark, "watermarks %g and %g", config->low_watermark,
		   config->high_watermark);
	struct fc_geometry geometry;
	struct fc_store_opts opts;
	struct fc_error error = {0};
	int code = fc_config_store_opts(config, &geometry, &opts, &error);
	if (code != FC_OK)
		fuzz_check_refusal(code, &error);
	else
		fuzz_check(fc_geometry_check(&geometry, &error) == FC_OK, "a model that is none: %s", error.text);
}

void fuzz_config_run(const struct fc_config_sources *sources)
{
	struct fc_config config;
	struct fc_config_problem problem;
	int code = fc_config_load(&config, sources, &problem);
	if (code == FC_OK)
		check_config(&config);
	else
		fuzz_check_refusal(code, &problem.error);
	fc_config_free(&config);
}

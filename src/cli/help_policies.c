/* What `flatcake help policies` prints: the registry of policies, with what --set takes for each. */
#include "cli/help.h"
#include "cli/table.h"
#include "config/describe.h"
#include "config/option.h"
#include "replay/policy.h"

#define INDENT 4

/* A number in the largest of its units that says it exactly: "1280MiB". */
static void print_in_units(uint64_t number, uint64_t step, const char *const *units, size_t unit_count,
			   char text[FC_HUMAN_BYTES])
{
	size_t unit = 0;
	while (number > 0 && number % step == 0 && unit + 1 < unit_count) {
		number /= step;
		unit++;
	}
	snprintf(text, FC_HUMAN_BYTES, "%llu%s", (unsigned long long)number, units[unit]);
}

/* What a setting is when nobody sets it, as --set would take it. */
static void print_default(const struct fc_option *setting, const void *defaults, char text[FC_HUMAN_BYTES])
{
	static const char *const sizes[] = {"", "KiB", "MiB", "GiB"}, *const times[] = {"ns", "us", "ms", "s"};
	const void *field = (const char *)defaults + setting->field_offset;
	switch (setting->type) {
	case FC_OPTION_SIZE:
		print_in_units(*(const uint64_t *)field, 1024, sizes, fc_array_len(sizes), text);
		break;
	case FC_OPTION_DURATION:
		print_in_units(*(const uint64_t *)field, 1000, times, fc_array_len(times), text);
		break;
	case FC_OPTION_COUNT:
		snprintf(text, FC_HUMAN_BYTES, "%llu", (unsigned long long)*(const uint64_t *)field);
		break;
	case FC_OPTION_RATIO:
		snprintf(text, FC_HUMAN_BYTES, "%g", *(const double *)field);
		break;
	case FC_OPTION_BOOL:
		snprintf(text, FC_HUMAN_BYTES, "%s", *(const bool *)field ? "on" : "off");
		break;
	default:
		fc_check(!"a type that no policy's setting has");
	}
}

static void print_setting(const struct fc_policy_type *policy, const struct fc_option *setting, FILE *file)
{
	char value[FC_HUMAN_BYTES], allowed[256], line[512];
	print_default(setting, policy->defaults, value);
	fc_option_describe(setting, allowed, sizeof(allowed));
	snprintf(line, sizeof(line), "%s.%s: %s [%s]", policy->name, setting->name, allowed, value);
	fc_describe_wrapped(line, INDENT, 0, file);
}

void fc_help_policies(FILE *file)
{
	fputs("What --policy of `flatcake replay --simulate` takes, and --set for each: allowed values [default].\n",
	      file);
	for (size_t i = 0; fc_policy_at(i) != NULL; i++) {
		const struct fc_policy_type *policy = fc_policy_at(i);
		fprintf(file, "\n%s\n  %s\n", policy->name, policy->summary);
		for (size_t j = 0; j < policy->settings_count; j++)
			print_setting(policy, &policy->settings[j], file);
	}
}

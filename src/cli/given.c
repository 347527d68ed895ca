#include "cli/given.h"

#include "base/check.h"
#include "config/option.h"

#include <math.h>
#include <string.h>

const char *fc_given_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == NULL || slash[1] == 0 ? path : slash + 1;
}

/* In the largest unit that leaves no fraction. */
static void add_in_units(struct fc_page *text, uint64_t value, const char *const *units, const uint64_t *sizes,
			 size_t count)
{
	size_t unit = 0;
	while (unit + 1 < count && value > 0 && value % sizes[unit + 1] == 0)
		unit++;
	fc_page_add(text, "%llu%s", (unsigned long long)(value / sizes[unit]), units[unit]);
}

static void add_size(struct fc_page *text, uint64_t bytes)
{
	static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
	static const uint64_t sizes[] = {1, 1ull << 10, 1ull << 20, 1ull << 30, 1ull << 40};
	add_in_units(text, bytes, units, sizes, fc_array_len(sizes));
}

static void add_duration(struct fc_page *text, uint64_t time_ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	static const uint64_t sizes[] = {1, 1000, 1000000, 1000000000};
	add_in_units(text, time_ns, units, sizes, fc_array_len(sizes));
}

static void add_number(struct fc_page *text, double number)
{
	if (isfinite(number))
		fc_page_add(text, "%.10g", number);
	else
		fc_page_add(text, "max");
}

void fc_given_add_value(struct fc_page *text, const struct fc_option *option, const void *field)
{
	switch (option->type) {
	case FC_OPTION_SIZE:
		add_size(text, *(const uint64_t *)field);
		break;
	case FC_OPTION_COUNT:
		fc_page_add(text, "%llu", (unsigned long long)*(const uint64_t *)field);
		break;
	case FC_OPTION_DURATION:
		add_duration(text, *(const uint64_t *)field);
		break;
	case FC_OPTION_RATIO:
	case FC_OPTION_RATE:
		add_number(text, *(const double *)field);
		break;
	case FC_OPTION_CHOICE:
		fc_page_add(text, "%s", option->choices[*(const int *)field]);
		break;
	case FC_OPTION_BOOL:
		fc_page_add(text, "%s", *(const bool *)field ? "on" : "off");
		break;
	case FC_OPTION_TEXT:
		fc_page_add(text, "%s", fc_given_name(*(const char *const *)field));
		break;
	case FC_OPTION_SWITCH:
		break;
	}
}

/* Where the page and its twin for machines went says nothing about what is in them, nor does how many ran at once. */
static bool is_shown(const struct fc_config *config, size_t row)
{
	static const char *const left_out[] = {"report", "json", "jobs"};
	const struct fc_option *option = fc_option_at(row);
	const char *field = (const char *)config + option->field_offset;
	if (!config->is_given[row] || (option->commands & config->command) == 0)
		return false;
	if (option->type == FC_OPTION_SWITCH && !*(const bool *)field)
		return false;
	for (size_t i = 0; i < fc_array_len(left_out); i++)
		if (strcmp(option->name, left_out[i]) == 0)
			return false;
	return true;
}

void fc_given_add(const struct fc_config *config, const char *command, struct fc_page *text)
{
	fc_page_add(text, "flatcake %s", command);
	for (int i = 0; i < config->argument_count; i++)
		fc_page_add(text, " %s", fc_given_name(config->arguments[i]));
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		const struct fc_option *option = fc_option_at(row);
		if (!is_shown(config, row))
			continue;
		fc_page_add(text, " --%s", option->name);
		if (option->type == FC_OPTION_SWITCH)
			continue;
		fc_page_add(text, " ");
		fc_given_add_value(text, option, (const char *)config + option->field_offset);
	}
}

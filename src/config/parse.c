/* From the text of a value to a typed, checked field, and from an option to the sentence that says what it takes.
 *
 *   size      digits [ [K|M|G|T] [iB|B] ]           times 1024 each; letters in either case
 *   duration  digits (ns|us|ms|s|min|h)
 *   count     digits
 *   ratio     digits [ . digits ]
 *   rate      ratio | max
 *
 * There are no signs, spaces or exponents, and no function of the C library that depends on the locale. */
#include "base/check.h"
#include "config/option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"K", 1ull << 10},
	{"KB", 1ull << 10},
	{"KiB", 1ull << 10},
	{"M", 1ull << 20},
	{"MB", 1ull << 20},
	{"MiB", 1ull << 20},
	{"G", 1ull << 30},
	{"GB", 1ull << 30},
	{"GiB", 1ull << 30},
	{"T", 1ull << 40},
	{"TB", 1ull << 40},
	{"TiB", 1ull << 40},
	{NULL, 0},
};
static const struct unit duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000ull},
	{"min", 60 * 1000000000ull},
	{"h", 3600 * 1000000000ull},
	{NULL, 0},
};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* Digits and one of `units`, exactly. False for anything else, and for what 64 bits do not hold. */
static bool parse_whole(const char *text, const struct unit *units, uint64_t *value)
{
	const char *letter = text;
	uint64_t number = 0;
	for (; *letter >= '0' && *letter <= '9'; letter++) {
		if (fc_mul_overflows(number, 10, &number) ||
		    fc_add_overflows(number, (uint64_t)(*letter - '0'), &number))
			return false;
	}
	if (letter == text)
		return false;
	for (; units->name != NULL; units++) {
		if (strcasecmp(letter, units->name) == 0)
			return !fc_mul_overflows(number, units->factor, value);
	}
	return false;
}

/* Up to 15 digits with at most one point between them: both parts of the division below are exact, so its result is the
 * nearest double. */
static bool parse_decimal(const char *text, double *value)
{
	uint64_t digits = 0;
	uint64_t divisor = 1;
	unsigned digit_count = 0;
	bool has_point = false;
	for (const char *letter = text; *letter != '\0'; letter++) {
		if (*letter == '.' && !has_point && digit_count > 0 && letter[1] != '\0') {
			has_point = true;
			continue;
		}
		if (*letter < '0' || *letter > '9' || ++digit_count > 15)
			return false;
		digits = digits * 10 + (uint64_t)(*letter - '0');
		divisor *= has_point ? 10 : 1;
	}
	*value = (double)digits / (double)divisor;
	return digit_count > 0;
}

static bool parse_choice(const char *text, const char *const *choices, int *value)
{
	for (int index = 0; choices[index] != NULL; index++) {
		if (strcmp(text, choices[index]) == 0) {
			*value = index;
			return true;
		}
	}
	return false;
}

static const struct unit *units_of(enum fc_option_type type)
{
	return type == FC_OPTION_SIZE ? size_units : type == FC_OPTION_DURATION ? duration_units : no_units;
}

static bool set_whole(const struct fc_option *option, const char *value, uint64_t *field)
{
	uint64_t number;
	if (!parse_whole(value, units_of(option->type), &number) || number < option->min || number > option->max)
		return false;
	*field = number;
	return true;
}

static bool set_decimal(const struct fc_option *option, const char *value, double *field)
{
	double number;
	if (option->type == FC_OPTION_RATE && strcmp(value, "max") == 0) {
		*field = INFINITY;
		return true;
	}
	if (!parse_decimal(value, &number) || number < option->ratio_min || number > option->ratio_max)
		return false;
	*field = number;
	return true;
}

static bool set_bool(const char *value, bool *field)
{
	static const char *const names[] = {"off", "on", NULL};
	int index;
	if (!parse_choice(value, names, &index))
		return false;
	*field = index == 1;
	return true;
}

static bool set_field(const struct fc_option *option, const char *value, void *field)
{
	switch (option->type) {
	case FC_OPTION_SIZE:
	case FC_OPTION_COUNT:
	case FC_OPTION_DURATION:
		return set_whole(option, value, field);
	case FC_OPTION_RATIO:
	case FC_OPTION_RATE:
		return set_decimal(option, value, field);
	case FC_OPTION_CHOICE:
		return parse_choice(value, option->choices, field);
	case FC_OPTION_BOOL:
	case FC_OPTION_SWITCH:
		return set_bool(value, field);
	case FC_OPTION_TEXT:
		*(const char **)field = value;
		return value[0] != '\0';
	}
	return false;
}

/* A value as it may be shown on a terminal: no control characters, and not without end. */
static void make_printable(const char *value, char shown[80])
{
	size_t used = 0;
	for (; used < 76 && value[used] != '\0'; used++)
		shown[used] = (unsigned char)value[used] < ' ' || value[used] == 127 ? '?' : value[used];
	strcpy(shown + used, value[used] != '\0' ? "..." : "");
}

int fc_option_set(const struct fc_option *option, const char *value, struct fc_config *config, const char *place,
		  struct fc_error *error)
{
	int code = fc_option_set_in(option, value, config, place, error);
	if (code == FC_OK)
		config->is_given[option - fc_option_at(0)] = true;
	return code;
}

int fc_option_set_in(const struct fc_option *option, const char *value, void *settings, const char *place,
		     struct fc_error *error)
{
	if (set_field(option, value, (char *)settings + option->field_offset))
		return FC_OK;
	char shown[80], allowed[256];
	make_printable(value, shown);
	fc_option_describe(option, allowed, sizeof(allowed));
	return fc_error_set(error, FC_EINVAL, "%s: \"%s\" does not fit; allowed: %s", place, shown, allowed);
}

/* The largest unit that leaves a whole number. */
static void format_exact(uint64_t value, const struct unit *units, char text[32])
{
	const struct unit *best = units;
	for (const struct unit *unit = units; unit->name != NULL; unit++) {
		bool is_preferred =
			unit->factor > best->factor || (unit->factor == best->factor && strlen(unit->name) == 3);
		if (value != 0 && value % unit->factor == 0 && is_preferred)
			best = unit;
	}
	snprintf(text, 32, "%llu%s", (unsigned long long)(value / best->factor), best->name);
}

static void describe_choices(const struct fc_option *option, char *text, size_t text_bytes)
{
	size_t used = 0;
	for (int index = 0; option->choices[index] != NULL; index++) {
		const char *separator = index == 0 ? "" : option->choices[index + 1] == NULL ? " or " : ", ";
		int written = snprintf(text + used, text_bytes - used, "%s%s", separator, option->choices[index]);
		fc_check(written > 0 && (size_t)written < text_bytes - used);
		used += (size_t)written;
	}
}

void fc_option_describe(const struct fc_option *option, char *text, size_t text_bytes)
{
	char least[32], most[32];
	format_exact(option->min, units_of(option->type), least);
	format_exact(option->max, units_of(option->type), most);
	switch (option->type) {
	case FC_OPTION_SIZE:
		snprintf(text, text_bytes,
			 "%s to %s, in bytes or with K, M, G or T (times 1024 each), such as 512M or 4GiB", least,
			 most);
		break;
	case FC_OPTION_DURATION:
		snprintf(text, text_bytes, "%s to %s, a whole number with ns, us, ms, s, min or h, such as 30s", least,
			 most);
		break;
	case FC_OPTION_COUNT:
		snprintf(text, text_bytes, "a whole number, %s to %s", least, most);
		break;
	case FC_OPTION_RATIO:
		snprintf(text, text_bytes, "a number, %.15g to %.15g, such as 0.8", option->ratio_min,
			 option->ratio_max);
		break;
	case FC_OPTION_RATE:
		snprintf(text, text_bytes, "a number, %.15g to %.15g, or max", option->ratio_min, option->ratio_max);
		break;
	case FC_OPTION_CHOICE:
		describe_choices(option, text, text_bytes);
		break;
	case FC_OPTION_BOOL:
	case FC_OPTION_SWITCH:
		snprintf(text, text_bytes, "on or off");
		break;
	case FC_OPTION_TEXT:
		snprintf(text, text_bytes, "a text that is not empty");
		break;
	}
}

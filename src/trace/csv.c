/* Tables of requests, as the Azure LLM traces and many others are: a line of column names, then a request a line.
 *
 *     TIMESTAMP,ContextTokens,GeneratedTokens
 *     2023-11-16 18:17:03.9799600,4808,10
 *
 * Columns are found by their names, in any order and case; those that nothing here needs are passed over. Such a table
 * names no blocks: it says when requests come and how long they are, and nothing of what they have in common. */
#define _GNU_SOURCE /* timegm, strptime */
#include "trace/csv.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define BLOCK_TOKENS 64
#define NAMES_MAX 5
#define VALUE_BYTES 64
#define NAMES_BYTES 128 /* of one column, in a sentence */

static const char *const names[FC_CSV_COLUMN_COUNT][NAMES_MAX] = {
	[FC_CSV_TIME] = {"timestamp", "time", "arrived_at"},
	[FC_CSV_INPUT] = {"ContextTokens", "input_length", "input_tokens", "Request tokens", "num_prefill_tokens"},
	[FC_CSV_OUTPUT] = {"GeneratedTokens", "output_length", "output_tokens", "Response tokens", "num_decode_tokens"},
};

static const char *const meanings[FC_CSV_COLUMN_COUNT] = {
	[FC_CSV_TIME] = "time", [FC_CSV_INPUT] = "input tokens", [FC_CSV_OUTPUT] = "output tokens"};

/* The next field of a line, without spaces and quotes around it; false behind the last. */
static bool next_field(const char **at, const char *end, const char **field, size_t *bytes)
{
	if (*at > end)
		return false;
	const char *comma = memchr(*at, ',', (size_t)(end - *at));
	const char *stop = comma != NULL ? comma : end;
	*field = *at;
	*at = stop + 1;
	while (*field < stop && (**field == ' ' || **field == '\t'))
		(*field)++;
	while (stop > *field && memchr(" \t\r\n", stop[-1], 4) != NULL)
		stop--;
	if (stop - *field >= 2 && **field == '"' && stop[-1] == '"') {
		(*field)++;
		stop--;
	}
	*bytes = (size_t)(stop - *field);
	return true;
}

static int column_of(const char *field, size_t bytes)
{
	for (int column = 0; column < FC_CSV_COLUMN_COUNT; column++)
		for (size_t i = 0; i < NAMES_MAX && names[column][i] != NULL; i++)
			if (strlen(names[column][i]) == bytes && strncasecmp(names[column][i], field, bytes) == 0)
				return column;
	return FC_CSV_COLUMN_COUNT;
}

bool fc_csv_is_header(const struct fc_csv_line *line)
{
	const char *at = line->bytes, *field;
	size_t bytes;
	bool is_first = true, names_column = false;
	for (; next_field(&at, line->bytes + line->byte_count, &field, &bytes); is_first = false) {
		if (is_first && bytes > 0 && (*field == '{' || *field == '['))
			return false;
		names_column |= column_of(field, bytes) != FC_CSV_COLUMN_COUNT;
	}
	return names_column || memchr(line->bytes, ',', line->byte_count) != NULL;
}

static int refuse_missing(const struct fc_csv_line *line, int column, struct fc_error *error)
{
	char known[NAMES_BYTES];
	size_t used = 0;
	for (size_t i = 0; i < NAMES_MAX && names[column][i] != NULL; i++) {
		bool is_last = i + 1 == NAMES_MAX || names[column][i + 1] == NULL;
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
					 i == 0    ? ""
					 : is_last ? " or "
						   : ", ",
					 names[column][i]);
	}
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: missing; needed: a column %s", line->file,
			    (unsigned long long)line->number, meanings[column], known);
}

int fc_csv_read_header(struct fc_csv *csv, const struct fc_csv_line *line, struct fc_error *error)
{
	const char *at = line->bytes, *field;
	size_t field_bytes;
	*csv = (struct fc_csv){0};
	for (; next_field(&at, line->bytes + line->byte_count, &field, &field_bytes); csv->field_count++) {
		int column = column_of(field, field_bytes);
		if (column == FC_CSV_COLUMN_COUNT)
			continue;
		if (csv->has[column])
			return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: in columns %u and %u; allowed: one column",
					    line->file, (unsigned long long)line->number, meanings[column],
					    csv->fields[column] + 1, csv->field_count + 1);
		csv->has[column] = true;
		csv->fields[column] = csv->field_count;
	}
	for (int column = 0; column < FC_CSV_COLUMN_COUNT; column++)
		if (!csv->has[column])
			return refuse_missing(line, column, error);
	return 0;
}

/* Digits, in whole and in fraction, without a double between: "61.114" and ".9799600" of units of 1e9. */
static bool read_decimal(const char *text, const char **end, uint64_t *result_ns)
{
	uint64_t whole = 0, fraction = 0, unit = 100000000;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++)
		if (fc_mul_overflows(whole, 10, &whole) || fc_add_overflows(whole, (uint64_t)(*at - '0'), &whole))
			return false;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
			fraction += (uint64_t)(*at - '0') * unit;
	*end = at;
	return at > text && !fc_mul_overflows(whole, 1000000000, &whole) &&
	       !fc_add_overflows(whole, fraction, result_ns) && *result_ns <= INT64_MAX;
}

/* Seconds, or a date and a time of day, which are UTC: a line that names another zone is refused. */
static bool read_time(const char *text, uint64_t *time_ns)
{
	struct tm parts = {0};
	uint64_t fraction_ns = 0;
	const char *end = strptime(text, "%Y-%m-%d", &parts);
	if (end == NULL || (*end != ' ' && *end != 'T'))
		return read_decimal(text, &end, time_ns) && *end == '\0';
	end = strptime(end + 1, "%H:%M:%S", &parts);
	if (end == NULL || (*end == '.' && !read_decimal(end, &end, &fraction_ns)))
		return false;
	time_t seconds = timegm(&parts);
	bool is_utc = *end == '\0' || strcmp(end, "Z") == 0 || strcmp(end, "+00:00") == 0;
	if (!is_utc || seconds < 0 || fraction_ns >= 1000000000 || (uint64_t)seconds >= INT64_MAX / 1000000000)
		return false;
	*time_ns = (uint64_t)seconds * 1000000000 + fraction_ns;
	return true;
}

static bool read_tokens(const char *text, uint64_t *tokens)
{
	uint64_t number = 0;
	for (const char *at = text; *at != '\0'; at++)
		if (*at < '0' || *at > '9' || fc_mul_overflows(number, 10, &number) ||
		    fc_add_overflows(number, (uint64_t)(*at - '0'), &number))
			return false;
	*tokens = number;
	return text[0] != '\0' && number <= INT64_MAX;
}

static int refuse(const struct fc_csv_line *line, const char *what, const char *value, const char *allowed,
		  struct fc_error *error)
{
	char shown[VALUE_BYTES];
	size_t bytes = 0;
	for (; value[bytes] != '\0' && bytes + 1 < sizeof(shown); bytes++)
		shown[bytes] = value[bytes] >= ' ' && value[bytes] <= '~' ? value[bytes] : '?';
	shown[bytes] = '\0';
	return fc_error_set(error, FC_EINVAL, "%s:%llu: %s: %s; allowed: %s", line->file,
			    (unsigned long long)line->number, what, shown, allowed);
}

/* Cuts the line into the columns that are needed. */
static int read_fields(const struct fc_csv *csv, const struct fc_csv_line *line,
		       char values[FC_CSV_COLUMN_COUNT][VALUE_BYTES], struct fc_error *error)
{
	const char *at = line->bytes, *field;
	size_t bytes;
	uint32_t count = 0;
	char text[VALUE_BYTES];
	for (; next_field(&at, line->bytes + line->byte_count, &field, &bytes); count++)
		for (int column = 0; column < FC_CSV_COLUMN_COUNT; column++) {
			if (csv->fields[column] != count)
				continue;
			snprintf(values[column], VALUE_BYTES, "%.*s", (int)fc_min_u64(bytes, VALUE_BYTES), field);
			if (bytes >= VALUE_BYTES)
				return refuse(line, meanings[column], values[column], "less than 64 characters", error);
		}
	if (count == csv->field_count)
		return 0;
	snprintf(text, sizeof(text), "%u, as the first line", csv->field_count);
	snprintf(values[0], VALUE_BYTES, "%u", count);
	return refuse(line, "(number of columns)", values[0], text, error);
}

int fc_csv_read(struct fc_reader *reader, const struct fc_csv *csv, const struct fc_csv_line *line,
		struct fc_error *error)
{
	static const char tokens[] = "an integer from 0 to 9223372036854775807";
	char values[FC_CSV_COLUMN_COUNT][VALUE_BYTES] = {{0}};
	struct fc_build_request made = {0};
	uint32_t block_tokens = reader->opts->block_tokens != 0 ? reader->opts->block_tokens : BLOCK_TOKENS;
	int result = memchr(line->bytes, '\0', line->byte_count) != NULL
			     ? refuse(line, "(whole line)", "a NUL byte", "text", error)
			     : read_fields(csv, line, values, error);
	if (result != 0)
		return result;
	if (!read_time(values[FC_CSV_TIME], &made.time_ns))
		return refuse(line, meanings[FC_CSV_TIME], values[FC_CSV_TIME],
			      "seconds from 0 on, or YYYY-MM-DD HH:MM:SS in UTC", error);
	if (!read_tokens(values[FC_CSV_INPUT], &made.input_tokens))
		return refuse(line, meanings[FC_CSV_INPUT], values[FC_CSV_INPUT], tokens, error);
	if (!read_tokens(values[FC_CSV_OUTPUT], &made.output_tokens))
		return refuse(line, meanings[FC_CSV_OUTPUT], values[FC_CSV_OUTPUT], tokens, error);
	if (!fc_reader_is_in_span(reader, made.time_ns))
		return refuse(line, meanings[FC_CSV_TIME], values[FC_CSV_TIME],
			      "at most three years from that of the first request", error);
	if (fc_reader_is_without_input(reader, &made))
		return 0;
	result = fc_build_timed_request(reader->build, block_tokens, &made, error);
	return result == 0 ? 0 : fc_error_wrap(error, result, "%s:%llu", line->file, (unsigned long long)line->number);
}

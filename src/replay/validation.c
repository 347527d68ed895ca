#include "replay/validation.h"

#include "base/check.h"
#include "report/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 1000

const char *const fc_validation_headings[FC_VALIDATION_COLUMNS] = {"workload",   "compared",     "live",    "simulated",
								   "difference", "live to live", "allowed", "result"};

bool fc_validation_difference(const struct fc_validation_row *row, double *difference)
{
	*difference = row->simulated - row->live;
	if (row->is_in_points || *difference == 0)
		return true;
	if (row->live == 0)
		return false;
	*difference *= 100 / row->live;
	return true;
}

void fc_validation_set_spread(struct fc_validation_row *row, const double *live, uint64_t count)
{
	double lowest = live[0], highest = live[0];
	for (uint64_t i = 1; i < count; i++) {
		lowest = fmin(lowest, live[i]);
		highest = fmax(highest, live[i]);
	}
	row->has_spread = count > 1 && (row->is_in_points || row->live > 0 || highest == lowest);
	row->spread = highest - lowest;
	if (!row->is_in_points && row->spread > 0 && row->live > 0)
		row->spread *= 100 / row->live;
}

bool fc_validation_is_met(const struct fc_validation_row *row)
{
	double difference;
	return row->has_allowed && fc_validation_difference(row, &difference) && fabs(difference) <= row->allowed;
}

/* ---- for people ---- */

static void print_value(char text[FC_VALIDATION_TEXT_BYTES], double value, const char *unit)
{
	snprintf(text, FC_VALIDATION_TEXT_BYTES, value == floor(value) && value < 1e15 ? "%.0f%s%s" : "%.4g%s%s", value,
		 unit[0] == '\0' ? "" : " ", unit);
}

void fc_validation_cells(const struct fc_validation_row *row,
			 char cells[FC_VALIDATION_COLUMNS][FC_VALIDATION_TEXT_BYTES])
{
	const char *unit = row->is_in_points ? "points" : "%";
	double difference;
	snprintf(cells[0], FC_VALIDATION_TEXT_BYTES, "%s", row->workload);
	snprintf(cells[1], FC_VALIDATION_TEXT_BYTES, "%s", row->what);
	print_value(cells[2], row->live, row->unit);
	print_value(cells[3], row->simulated, row->unit);
	if (fc_validation_difference(row, &difference))
		snprintf(cells[4], FC_VALIDATION_TEXT_BYTES, "%+.2f %s", difference, unit);
	else
		snprintf(cells[4], FC_VALIDATION_TEXT_BYTES, "n/a");
	if (row->has_spread)
		snprintf(cells[5], FC_VALIDATION_TEXT_BYTES, "%.2f %s", row->spread, unit);
	else
		snprintf(cells[5], FC_VALIDATION_TEXT_BYTES, "-");
	if (row->has_allowed)
		snprintf(cells[6], FC_VALIDATION_TEXT_BYTES, "%g %s", row->allowed, unit);
	else
		snprintf(cells[6], FC_VALIDATION_TEXT_BYTES, "-");
	snprintf(cells[7], FC_VALIDATION_TEXT_BYTES, "%s",
		 !row->has_allowed           ? "-"
		 : fc_validation_is_met(row) ? "met"
					     : "missed");
}

int fc_validation_report(const struct fc_validation *validation, struct fc_page *page)
{
	size_t count = validation->row_count;
	char(*texts)[FC_VALIDATION_COLUMNS][FC_VALIDATION_TEXT_BYTES] = calloc(count + 1, sizeof(*texts));
	const char **cells = calloc((count + 1) * FC_VALIDATION_COLUMNS, sizeof(*cells));
	bool *is_marked = calloc(count + 1, sizeof(*is_marked));
	char lead[3 * FC_VALIDATION_TEXT_BYTES];
	int code = texts == NULL || cells == NULL || is_marked == NULL ? FC_ENOMEM : FC_OK;
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		fc_validation_cells(&validation->rows[i], texts[i]);
		is_marked[i] = validation->rows[i].has_allowed && !fc_validation_is_met(&validation->rows[i]);
		for (size_t column = 0; column < FC_VALIDATION_COLUMNS; column++)
			cells[i * FC_VALIDATION_COLUMNS + column] = texts[i][column];
	}
	snprintf(lead, sizeof(lead),
		 "The same traces through a real store on a real disk, and simulated with a profile of that machine: "
		 "medians "
		 "of %llu runs of each, and how much the live runs differ among themselves. Measured on %s; %s. What "
		 "missed "
		 "its target stands out.",
		 (unsigned long long)validation->runs, validation->date, validation->machine);
	struct fc_page_table table = {fc_validation_headings, cells, is_marked, FC_VALIDATION_COLUMNS, count};
	if (code == FC_OK) {
		fc_page_section(page, "Is the simulator right?", lead);
		fc_page_add_table(page, &table);
	}
	free(texts);
	free(cells);
	free(is_marked);
	return code;
}

/* ---- to JSON ---- */

static json_t *row_json(const struct fc_validation_row *row)
{
	double difference;
	bool has_difference = fc_validation_difference(row, &difference);
	return json_pack("{s:s, s:s, s:s, s:f, s:f, s:o, s:s, s:o, s:o, s:o}", "workload", row->workload, "what",
			 row->what, "unit", row->unit, "live", row->live, "simulated", row->simulated, "difference",
			 has_difference ? json_real(difference) : json_null(), "difference_unit",
			 row->is_in_points ? "points" : "%", "live_spread",
			 row->has_spread ? json_real(row->spread) : json_null(), "allowed",
			 row->has_allowed ? json_real(row->allowed) : json_null(), "met",
			 row->has_allowed ? json_boolean(fc_validation_is_met(row)) : json_null());
}

json_t *fc_validation_json(const struct fc_validation *validation)
{
	json_t *rows = json_array();
	for (size_t i = 0; rows != NULL && i < validation->row_count; i++)
		if (json_array_append_new(rows, row_json(&validation->rows[i])) != 0) {
			json_decref(rows);
			return NULL;
		}
	return json_pack("{s:s, s:s, s:I, s:o}", "date", validation->date, "machine", validation->machine, "runs",
			 (json_int_t)validation->runs, "rows", rows);
}

/* ---- from JSON ---- */

struct reader {
	const char *path;
	char place[64]; /* of the object that is read: "" or "rows[3]." */
	struct fc_error *error;
};

static int refuse(const struct reader *reader, const char *key, const json_t *value, const char *allowed)
{
	char *text = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	int code = fc_error_set(reader->error, FC_EFORMAT, "%s: %s%s is %.60s; %s is allowed", reader->path,
				reader->place, key, text == NULL ? "missing" : text, allowed);
	free(text);
	return code;
}

static int read_text(const struct reader *reader, const json_t *object, const char *key,
		     char text[FC_VALIDATION_TEXT_BYTES])
{
	const json_t *value = json_object_get(object, key);
	size_t length = json_string_length(value);
	if (!json_is_string(value) || length >= FC_VALIDATION_TEXT_BYTES || strlen(json_string_value(value)) != length)
		return refuse(reader, key, value, "a text of 0 to 255 bytes");
	memcpy(text, json_string_value(value), length + 1);
	return FC_OK;
}

static int read_number(const struct reader *reader, const json_t *object, const char *key, double *number)
{
	const json_t *value = json_object_get(object, key);
	*number = json_number_value(value);
	if (!json_is_number(value) || !isfinite(*number) || *number < 0)
		return refuse(reader, key, value, "a number from 0");
	return FC_OK;
}

static int read_judgement(const struct reader *reader, const json_t *object, struct fc_validation_row *row)
{
	const json_t *unit = json_object_get(object, "difference_unit"), *allowed = json_object_get(object, "allowed");
	const char *unit_text = json_is_string(unit) ? json_string_value(unit) : "";
	row->is_in_points = strcmp(unit_text, "points") == 0;
	if (!row->is_in_points && strcmp(unit_text, "%") != 0)
		return refuse(reader, "difference_unit", unit, "\"points\" or \"%\"");
	row->has_allowed = !json_is_null(allowed);
	row->has_spread = !json_is_null(json_object_get(object, "live_spread"));
	int code = row->has_spread ? read_number(reader, object, "live_spread", &row->spread) : FC_OK;
	if (code == FC_OK && row->has_allowed)
		code = read_number(reader, object, "allowed", &row->allowed);
	return code;
}

static int read_row(struct reader *reader, const json_t *object, struct fc_validation_row *row)
{
	int code = read_text(reader, object, "workload", row->workload);
	if (code == FC_OK)
		code = read_text(reader, object, "what", row->what);
	if (code == FC_OK)
		code = read_text(reader, object, "unit", row->unit);
	if (code == FC_OK)
		code = read_number(reader, object, "live", &row->live);
	if (code == FC_OK)
		code = read_number(reader, object, "simulated", &row->simulated);
	return code == FC_OK ? read_judgement(reader, object, row) : code;
}

static int read_rows(struct reader *reader, const json_t *root, struct fc_validation *validation)
{
	const json_t *rows = json_object_get(root, "rows");
	size_t count = json_array_size(rows);
	int code = FC_OK;
	if (!json_is_array(rows) || count == 0 || count > FC_VALIDATION_ROWS_MAX)
		return fc_error_set(reader->error, FC_EFORMAT, "%s: rows: a list of 1 to %d rows is allowed, not %zu",
				    reader->path, FC_VALIDATION_ROWS_MAX, count);
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		snprintf(reader->place, sizeof(reader->place), "rows[%zu].", i);
		code = read_row(reader, json_array_get(rows, i), &validation->rows[i]);
	}
	validation->row_count = count;
	return code;
}

static int read_root(struct reader *reader, const json_t *root, struct fc_validation *validation)
{
	double runs = 0;
	int code = read_text(reader, root, "date", validation->date);
	if (code == FC_OK)
		code = read_text(reader, root, "machine", validation->machine);
	if (code == FC_OK)
		code = read_number(reader, root, "runs", &runs);
	if (code == FC_OK && (runs < 1 || runs > RUNS_MAX || runs != floor(runs)))
		code = refuse(reader, "runs", json_object_get(root, "runs"), "a whole number from 1 to 1000");
	validation->runs = (uint64_t)runs;
	return code == FC_OK ? read_rows(reader, root, validation) : code;
}

int fc_validation_load(struct fc_validation *validation, const char *path, struct fc_error *error)
{
	struct reader reader = {.path = path, .error = error};
	json_error_t fault;
	FILE *file = fopen(path, "re");
	*validation = (struct fc_validation){.runs = 0};
	if (file == NULL)
		return fc_error_set(error, FC_ESYSTEM, "%s: %s", path, strerror(errno));
	json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &fault);
	(void)fclose(file);
	if (root == NULL)
		return fc_error_set(error, FC_EFORMAT, "%s:%d: %.150s", path, fault.line, fault.text);
	int code = read_root(&reader, root, validation);
	json_decref(root);
	return code;
}

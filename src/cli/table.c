/* Tables and quantities as text. Widths are counted in characters, not bytes, so that UTF-8 cells line up. */
#include "cli/table.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#define COLUMN_GAP 3

void fc_table_init(struct fc_table *table, const char *columns)
{
	*table = (struct fc_table){.column_count = strlen(columns)};
	fc_check(table->column_count > 0 && table->column_count <= FC_TABLE_COLUMNS_MAX);
	for (size_t column = 0; column < table->column_count; column++)
		table->aligns[column] = columns[column] == 'r' ? FC_ALIGN_RIGHT : FC_ALIGN_LEFT;
}

void fc_table_deinit(struct fc_table *table)
{
	for (size_t cell = 0; cell < table->cell_count; cell++)
		free(table->cells[cell]);
	free(table->cells);
	*table = (struct fc_table){.column_count = 0};
}

static bool reserve_cell(struct fc_table *table)
{
	if (table->cell_count < table->cell_capacity)
		return true;
	size_t capacity = table->cell_capacity == 0 ? 64 : table->cell_capacity * 2;
	char **cells = realloc(table->cells, capacity * sizeof(*cells));
	if (cells == NULL)
		return false;
	table->cells = cells;
	table->cell_capacity = capacity;
	return true;
}

void fc_table_cell(struct fc_table *table, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;
	va_start(arguments, format);
	int written = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (written < 0) {
		table->is_out_of_memory = true;
	} else if (!reserve_cell(table)) {
		free(text);
		table->is_out_of_memory = true;
	} else {
		table->cells[table->cell_count++] = text;
	}
}

static size_t character_count(const char *text)
{
	size_t count = 0;
	for (; *text != '\0'; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80; /* bytes that continue a character do not count */
	return count;
}

static size_t column_width(const struct fc_table *table, size_t column)
{
	size_t width = 0;
	for (size_t cell = column; cell < table->cell_count; cell += table->column_count) {
		size_t count = character_count(table->cells[cell]);
		width = count > width ? count : width;
	}
	return width;
}

static void print_row(const struct fc_table *table, const size_t *widths, size_t first_cell, FILE *file)
{
	int owed = 0; /* spaces, printed only when something follows them */
	for (size_t column = 0; column < table->column_count && first_cell + column < table->cell_count; column++) {
		const char *text = table->cells[first_cell + column];
		int padding = (int)(widths[column] - character_count(text));
		bool is_right = table->aligns[column] == FC_ALIGN_RIGHT;
		if (text[0] != '\0')
			fprintf(file, "%*s%s", owed + (is_right ? padding : 0), "", text);
		owed = (text[0] != '\0' ? (is_right ? 0 : padding) : owed + padding) + COLUMN_GAP;
	}
	fputc('\n', file);
}

int fc_table_print(const struct fc_table *table, FILE *file)
{
	size_t widths[FC_TABLE_COLUMNS_MAX];
	if (table->is_out_of_memory)
		return FC_ENOMEM;
	for (size_t column = 0; column < table->column_count; column++)
		widths[column] = column_width(table, column);
	for (size_t cell = 0; cell < table->cell_count; cell += table->column_count)
		print_row(table, widths, cell, file);
	return ferror(file) ? FC_EIO : FC_OK;
}

const char *fc_human_bytes(uint64_t bytes, char text[FC_HUMAN_BYTES])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;
	/* what would be printed as 1024.0 goes to the next unit */
	while (value >= 1023.95 && unit + 1 < fc_array_len(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(text, FC_HUMAN_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return text;
}

void fc_human_print_bytes(char *string, size_t string_bytes, double bytes)
{
	char text[FC_HUMAN_BYTES];
	snprintf(string, string_bytes, "%s", fc_human_bytes((uint64_t)bytes, text));
}

void fc_human_print_share(char *string, size_t string_bytes, double share)
{
	snprintf(string, string_bytes, "%.4g %%", 100 * share);
}

const char *fc_human_ns(uint64_t time_ns, char text[FC_HUMAN_BYTES])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)time_ns;
	size_t unit = 0;
	while (value >= 999.5 && unit + 1 < fc_array_len(units)) {
		value /= 1000;
		unit++;
	}
	const char *format = unit == 0 || value >= 99.95 ? "%.0f %s" : value >= 9.995 ? "%.1f %s" : "%.2f %s";
	snprintf(text, FC_HUMAN_BYTES, format, value, units[unit]);
	return text;
}

const char *fc_human_count(uint64_t count, char text[FC_HUMAN_BYTES])
{
	char digits[FC_HUMAN_BYTES];
	int digit_count = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	size_t used = 0;
	for (int digit = 0; digit < digit_count; digit++) {
		if (digit > 0 && (digit_count - digit) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[digit];
	}
	text[used] = '\0';
	return text;
}

const char *fc_human_percent(uint64_t part, uint64_t whole, char text[FC_HUMAN_BYTES])
{
	if (whole == 0)
		snprintf(text, FC_HUMAN_BYTES, "n/a");
	else
		snprintf(text, FC_HUMAN_BYTES, "%.1f %%", 100.0 * (double)part / (double)whole);
	return text;
}

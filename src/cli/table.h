/* Text for people: tables with aligned columns, and quantities with units.
 *
 *   medium       bytes   sessions
 *   memory   512.0 MiB         17
 *   ssd        3.2 GiB        204
 *
 * A table borrows nothing: cells are copied. It grows without limit but for memory, for which it asks malloc; a cell
 * that finds none makes fc_table_print() return FC_ENOMEM. */
#ifndef FC_CLI_TABLE_H
#define FC_CLI_TABLE_H

#include "base/error.h"

#include <stdio.h>

#define FC_TABLE_COLUMNS_MAX 16

enum fc_align { FC_ALIGN_LEFT, FC_ALIGN_RIGHT };

struct fc_table {
	size_t column_count;
	enum fc_align aligns[FC_TABLE_COLUMNS_MAX];
	char **cells; /* row by row */
	size_t cell_count;
	size_t cell_capacity;
	bool is_out_of_memory;
};

/* `columns`: one letter a column, 'l' or 'r' for its alignment. */
void fc_table_init(struct fc_table *table, const char *columns);
void fc_table_deinit(struct fc_table *table);

/* Adds the next cell, left to right and row by row. */
void fc_table_cell(struct fc_table *table, const char *format, ...) FC_PRINTF(2, 3);

/* Prints every row, the last one filled up with empty cells. */
int fc_table_print(const struct fc_table *table, FILE *file) FC_MUST_USE;

#define FC_HUMAN_BYTES 32

/* "1.5 GiB", "5 B"; `text` is returned, so that it fits into a call. */
const char *fc_human_bytes(uint64_t bytes, char text[FC_HUMAN_BYTES]);

/* The same into `string`, and "94.2 %" of 0.942: for the axes of a plot. */
void fc_human_print_bytes(char *string, size_t string_bytes, double bytes);
void fc_human_print_share(char *string, size_t string_bytes, double share);

/* "3.42 s", "17.1 ms", "850 ns". */
const char *fc_human_ns(uint64_t time_ns, char text[FC_HUMAN_BYTES]);

/* "1,234,567". */
const char *fc_human_count(uint64_t count, char text[FC_HUMAN_BYTES]);

/* "94.2 %" of `part` in `whole`, "n/a" when the whole is 0. */
const char *fc_human_percent(uint64_t part, uint64_t whole, char text[FC_HUMAN_BYTES]);

#endif

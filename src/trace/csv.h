/* Reader of tables of requests (csv.c). For load.c. */
#ifndef FC_TRACE_CSV_H
#define FC_TRACE_CSV_H

#include "trace/reader.h"

enum fc_csv_column { FC_CSV_TIME, FC_CSV_INPUT, FC_CSV_OUTPUT, FC_CSV_COLUMN_COUNT };

/* Which field of a line is which column. */
struct fc_csv {
	uint32_t field_count;
	bool has[FC_CSV_COLUMN_COUNT];
	uint32_t fields[FC_CSV_COLUMN_COUNT]; /* from 0 */
};

struct fc_csv_line {
	const char *file;
	uint64_t number; /* from 1 */
	const char *bytes;
	size_t byte_count;
};

/* Whether a text that begins with this line is meant as a table: it has a comma or names a column, and does not begin
 * as JSON does. What it lacks is fc_csv_read_header()'s to say. */
bool fc_csv_is_header(const struct fc_csv_line *line);

/* FC_EINVAL unless all columns that are needed are named, each once. */
FC_MUST_USE int fc_csv_read_header(struct fc_csv *csv, const struct fc_csv_line *line, struct fc_error *error);

/* One request. FC_EINVAL, FC_ENOMEM, FC_ELIMIT. */
FC_MUST_USE int fc_csv_read(struct fc_reader *reader, const struct fc_csv *csv, const struct fc_csv_line *line,
			    struct fc_error *error);

#endif

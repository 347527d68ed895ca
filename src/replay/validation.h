/* Is the simulator right? What a live replay and a simulated one found for the same traces on one machine, row by row,
 * with the difference that is allowed. bench/validate makes such a file; a simulation's page shows it. */
#ifndef FC_REPLAY_VALIDATION_H
#define FC_REPLAY_VALIDATION_H

#include "base/error.h"
#include "report/text.h"

#include <jansson.h>

#define FC_VALIDATION_ROWS_MAX 128
#define FC_VALIDATION_TEXT_BYTES 256

struct fc_validation_row {
	char workload[FC_VALIDATION_TEXT_BYTES]; /* what was replayed */
	char what[FC_VALIDATION_TEXT_BYTES];     /* what is compared */
	char unit[FC_VALIDATION_TEXT_BYTES];     /* of both values */
	double live, simulated;
	/* How much the live runs differ among themselves, highest less lowest, in what the difference is in. */
	double spread;
	bool has_spread;   /* there were several */
	bool is_in_points; /* the difference is simulated - live; else its share of live, in percent */
	bool has_allowed;  /* false: shown, and not judged */
	double allowed;    /* largest difference, either way */
};

struct fc_validation {
	char date[FC_VALIDATION_TEXT_BYTES];
	char machine[FC_VALIDATION_TEXT_BYTES]; /* in words */
	uint64_t runs;                          /* of which the values are medians */
	struct fc_validation_row rows[FC_VALIDATION_ROWS_MAX];
	size_t row_count;
};

/* False: there is none, for live is 0 and simulated is not. */
bool fc_validation_difference(const struct fc_validation_row *row, double *difference);

/* Sets the spread of `count` live values, of which row->live is the median. */
void fc_validation_set_spread(struct fc_validation_row *row, const double *live, uint64_t count);

/* Within what is allowed; false for a row without a difference. */
bool fc_validation_is_met(const struct fc_validation_row *row);

/* Cells as a table shows them, in the order of fc_validation_headings. */
#define FC_VALIDATION_COLUMNS 8
extern const char *const fc_validation_headings[FC_VALIDATION_COLUMNS];
void fc_validation_cells(const struct fc_validation_row *row,
			 char cells[FC_VALIDATION_COLUMNS][FC_VALIDATION_TEXT_BYTES]);

/* NULL without memory. */
json_t *fc_validation_json(const struct fc_validation *validation);

/* Reads what fc_validation_json() made. FC_ESYSTEM when there is no such file, FC_EFORMAT with the place, the value and
 * what is allowed. */
FC_MUST_USE int fc_validation_load(struct fc_validation *validation, const char *path, struct fc_error *error);

/* Adds a section to a page. FC_ENOMEM. */
FC_MUST_USE int fc_validation_report(const struct fc_validation *validation, struct fc_page *page);

#endif

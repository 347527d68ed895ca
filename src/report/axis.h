/* Where the values of an axis lie, and where it has its marks. */
#ifndef FC_REPORT_AXIS_H
#define FC_REPORT_AXIS_H

#include "report/plot.h"

#define FC_MARKS_MAX 24

struct fc_scale {
	bool is_logarithmic;
	double first, last; /* values at the ends; first < last */
	double marks[FC_MARKS_MAX];
	size_t mark_count;
};

/* A scale that holds the values of every series of the plot, with ends at round numbers. Without any value to show it
 * goes from 0 to 1 (logarithmic: 1 to 10). */
void fc_scale_init(struct fc_scale *scale, const struct fc_plot *plot, bool is_x);

/* Whether a value can be shown. */
bool fc_scale_has(const struct fc_scale *scale, double value);

/* 0 at the first end, 1 at the last. */
double fc_scale_place(const struct fc_scale *scale, double value);

#endif

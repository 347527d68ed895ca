/* Plots as SVG inside a page: lines over a plane, and bars in parts.
 *
 * A plot is 720 units wide and scales with the page. Colours are named by the page's style sheet (page.c), which has a
 * light, a dark and a paper set of them, so that one SVG serves all three. Every plot is followed by what it shows as a
 * table behind a fold: for those who cannot see it, and to copy from.
 *
 *        title
 *   y  |        ___---  series 0
 *      |  __---
 *      |--      ......  series 1 (dashed)
 *      +--------------
 *              x
 *
 * Values that are not finite, and values of 0 and less on a logarithmic axis, are gaps in a line. */
#ifndef FC_REPORT_PLOT_H
#define FC_REPORT_PLOT_H

#include "report/text.h"

#define FC_PLOT_COLOURS 8

struct fc_axis {
	const char *label;
	bool is_logarithmic;
	bool is_binary;    /* a logarithmic axis has its marks at powers of two, as sizes in bytes have */
	bool is_from_zero; /* a linear axis begins at 0 instead of at the least value */
	/* Writes a value for people, with its unit; NULL: as a plain number. */
	void (*print)(char *string, size_t bytes, double value);
};

struct fc_plot_series {
	const char *name;
	const double *x, *y;
	size_t count;
	unsigned colour; /* below FC_PLOT_COLOURS */
	bool is_dashed;
};

struct fc_plot {
	const char *title;
	const char *note; /* a sentence or two below it, or NULL */
	struct fc_axis x, y;
	const struct fc_plot_series *series;
	size_t series_count;
};

void fc_plot_add(struct fc_page *page, const struct fc_plot *plot);

/* Bars that lie one below the other, each made of the same parts. */
struct fc_bars {
	const char *title;
	const char *note;
	const char *const *names; /* of the bars */
	size_t count;
	const char *const *part_names;
	size_t part_count;     /* at most FC_PLOT_COLOURS */
	const double *lengths; /* [bar * part_count + part], not negative */
	void (*print)(char *string, size_t bytes, double value);
};

void fc_bars_add(struct fc_page *page, const struct fc_bars *bars);

#endif

/* Plots as SVG inside a page: lines over a plane, bars in parts, and maps of cells.
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
 * Values that are not finite, and values of 0 and less on a logarithmic axis, are gaps in a line. A plot of nothing but
 * gaps is left out. */
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
	bool is_dashed, is_dotted;
	bool is_strong; /* drawn below the others and wider, so that it is seen where they lie on it */
};

struct fc_plot {
	const char *title;
	const char *note; /* a sentence or two below it, or NULL */
	struct fc_axis x, y;
	const struct fc_plot_series *series;
	size_t series_count;
};

void fc_plot_add(struct fc_page *page, const struct fc_plot *plot);

#define FC_BAR_PARTS 4u

/* Bars that lie one below the other, each made of the same parts. */
struct fc_bars {
	const char *title;
	const char *note;
	const char *const *names; /* of the bars */
	size_t count;
	const char *const *part_names;
	size_t part_count;     /* at most FC_BAR_PARTS */
	const double *lengths; /* [bar * part_count + part], not negative */
	/* What the width of the picture stands for; longer bars end at its edge with a mark. 0: the longest bar. */
	double length_max;
	double length_min; /* it stands for at least so much: 1 where lengths are shares */
	void (*print)(char *string, size_t bytes, double value);
};

void fc_bars_add(struct fc_page *page, const struct fc_bars *bars);

/* Cells in rows, read as a text is. Equal neighbours of a row are drawn as one. */
#define FC_CELL_FREE 0u
#define FC_CELL_MIXED 1u
#define FC_CELL_SHARED 2u
#define FC_CELL_OWNED 3u /* and above: FC_CELL_COLOURS of them */
#define FC_CELL_COLOURS 14u
#define FC_CELL_LOOKS (FC_CELL_OWNED + FC_CELL_COLOURS)

struct fc_map {
	const char *title;
	const char *note;
	const unsigned char *looks; /* [row * column_count + column], below FC_CELL_LOOKS */
	size_t row_count, column_count;
};

void fc_map_add(struct fc_page *page, const struct fc_map *map);
/* What the looks mean, once for all maps beside it; looks without a text are left out. */
void fc_map_add_keys(struct fc_page *page, const char *const texts[FC_CELL_OWNED + 1]);

#endif

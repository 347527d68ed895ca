#include "report/plot.h"

#include "report/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The picture, in units of the SVG. */
#define WIDTH 720
#define HEIGHT 372
#define LEFT 92
#define RIGHT 32
#define TOP 14
#define BOTTOM 60
#define ABOVE 34 /* the label of the vertical axis */
#define MARK_LENGTH 4
#define LONG_LABEL 5 /* bytes: it may reach over the edge when it stands below the last mark */
#define NUMBER_BYTES 32

struct frame {
	struct fc_scale x, y;
	const struct fc_plot *plot;
};

static void print_value(const struct fc_axis *axis, char string[NUMBER_BYTES], double value)
{
	if (axis->print != NULL)
		axis->print(string, NUMBER_BYTES, value);
	else
		snprintf(string, NUMBER_BYTES, "%.4g", fabs(value) < 1e-12 ? 0 : value);
}

static double x_of(const struct frame *frame, double value)
{
	return LEFT + fc_scale_place(&frame->x, value) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct frame *frame, double value)
{
	return HEIGHT - BOTTOM - fc_scale_place(&frame->y, value) * (HEIGHT - TOP - BOTTOM);
}

/* ---- axes ---- */

static void add_label(struct fc_page *page, const char *class, double x, double y, const char *anchor,
		      const char *string)
{
	fc_page_add(page, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y, anchor);
	fc_page_add_text(page, string);
	fc_page_add(page, "</text>");
}

/* Where there is little room, every second label is left out, but not the last. */
static void add_x_marks(struct fc_page *page, const struct frame *frame)
{
	char string[NUMBER_BYTES];
	for (size_t i = 0; i < frame->x.mark_count; i++) {
		double x = x_of(frame, frame->x.marks[i]);
		fc_page_add(page, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", x, TOP, HEIGHT - BOTTOM + MARK_LENGTH);
		print_value(&frame->plot->x, string, frame->x.marks[i]);
		bool is_at_edge = x > WIDTH - 2 * RIGHT && strlen(string) > LONG_LABEL;
		bool is_minor = frame->x.mark_count > 4 && (frame->x.mark_count - i) % 2 == 0;
		add_label(page, is_minor ? "x minor" : "x", is_at_edge ? WIDTH - 1 : x, HEIGHT - BOTTOM + 20,
			  is_at_edge ? "end" : "middle", string);
	}
}

static void add_y_marks(struct fc_page *page, const struct frame *frame)
{
	char string[NUMBER_BYTES];
	for (size_t i = 0; i < frame->y.mark_count; i++) {
		double y = y_of(frame, frame->y.marks[i]);
		fc_page_add(page, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT - MARK_LENGTH, y, WIDTH - RIGHT);
		print_value(&frame->plot->y, string, frame->y.marks[i]);
		add_label(page, frame->y.mark_count > 8 && i % 2 != 0 ? "minor" : "y", LEFT - 8, y + 4, "end", string);
	}
}

static void add_axes(struct fc_page *page, const struct frame *frame)
{
	add_x_marks(page, frame);
	add_y_marks(page, frame);
	fc_page_add(page, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>", LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
	add_label(page, "label", (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6, "middle", frame->plot->x.label);
	add_label(page, "label", 2, -12, "start", frame->plot->y.label);
}

/* ---- lines ---- */

static bool is_shown(const struct frame *frame, const struct fc_plot_series *series, size_t point)
{
	return fc_scale_has(&frame->x, series->x[point]) && fc_scale_has(&frame->y, series->y[point]);
}

static const char *style_of(const struct fc_plot_series *series)
{
	return series->is_strong ? " strong" : series->is_dotted ? " dotted" : series->is_dashed ? " dashed" : "";
}

static void add_line(struct fc_page *page, const struct frame *frame, const struct fc_plot_series *series)
{
	bool is_down = false;
	fc_page_add(page, "<path class=\"line c%u%s\" d=\"", series->colour, style_of(series));
	for (size_t point = 0; point < series->count; point++) {
		bool is_next = is_shown(frame, series, point);
		if (is_next)
			fc_page_add(page, "%c%.1f %.1f", is_down ? 'L' : 'M', x_of(frame, series->x[point]),
				    y_of(frame, series->y[point]));
		is_down = is_next;
	}
	fc_page_add(page, "\"><title>");
	fc_page_add_text(page, series->name);
	fc_page_add(page, "</title></path>");
}

/* A few points are marked; of many, the line is enough. */
static void add_points(struct fc_page *page, const struct frame *frame, const struct fc_plot_series *series)
{
	char x[NUMBER_BYTES], y[NUMBER_BYTES];
	for (size_t point = 0; point < series->count && series->count <= FC_MARKS_MAX; point++) {
		if (!is_shown(frame, series, point))
			continue;
		print_value(&frame->plot->x, x, series->x[point]);
		print_value(&frame->plot->y, y, series->y[point]);
		fc_page_add(page, "<circle class=\"point c%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", series->colour,
			    x_of(frame, series->x[point]), y_of(frame, series->y[point]));
		fc_page_add_text(page, series->name);
		fc_page_add(page, ": ");
		fc_page_add_text(page, x);
		fc_page_add(page, ", ");
		fc_page_add_text(page, y);
		fc_page_add(page, "</title></circle>");
	}
}

/* ---- around the picture ---- */

static void begin_figure(struct fc_page *page, const char *title)
{
	fc_page_add(page, "<figure><h3>");
	fc_page_add_text(page, title);
	fc_page_add(page, "</h3>\n");
}

static void end_figure(struct fc_page *page, const char *note)
{
	if (note != NULL) {
		fc_page_add(page, "<figcaption>");
		fc_page_add_text(page, note);
		fc_page_add(page, "</figcaption>");
	}
	fc_page_add(page, "</figure>\n");
}

static void begin_picture(struct fc_page *page, const char *title, const char *class, int above, double height)
{
	fc_page_add(page, "<svg class=\"%s\" viewBox=\"0 %d %d %.0f\" role=\"img\" aria-label=\"", class, -above, WIDTH,
		    above + height);
	fc_page_add_text(page, title);
	fc_page_add(page, "\">");
}

static void add_line_key(struct fc_page *page, const struct fc_plot_series *series)
{
	fc_page_add(page,
		    "<li><svg class=\"key\" viewBox=\"0 0 28 8\"><path class=\"line c%u%s\" d=\"M1 4H27\"/></svg>",
		    series->colour, style_of(series));
	fc_page_add_text(page, series->name);
	fc_page_add(page, "</li>");
}

static void add_part_key(struct fc_page *page, const char *name, unsigned part)
{
	fc_page_add(page,
		    "<li><svg class=\"key\" viewBox=\"0 0 28 12\"><path class=\"p%u\" d=\"M1 0H27V12H1z\"/></svg>",
		    part);
	fc_page_add_text(page, name);
	fc_page_add(page, "</li>");
}

static void add_cell(struct fc_page *page, const struct fc_axis *axis, double value)
{
	char string[NUMBER_BYTES];
	print_value(axis, string, value);
	fc_page_add(page, "<td>");
	fc_page_add_text(page, isfinite(value) ? string : "n/a");
	fc_page_add(page, "</td>");
}

static void add_numbers(struct fc_page *page, const struct fc_plot *plot)
{
	fc_page_add(page, "<details><summary>the numbers</summary><div><table><tr><th></th><th>");
	fc_page_add_text(page, plot->x.label);
	fc_page_add(page, "</th><th>");
	fc_page_add_text(page, plot->y.label);
	fc_page_add(page, "</th></tr>\n");
	for (size_t i = 0; i < plot->series_count; i++)
		for (size_t point = 0; point < plot->series[i].count; point++) {
			fc_page_add(page, "<tr><th>");
			fc_page_add_text(page, plot->series[i].name);
			fc_page_add(page, "</th>");
			add_cell(page, &plot->x, plot->series[i].x[point]);
			add_cell(page, &plot->y, plot->series[i].y[point]);
			fc_page_add(page, "</tr>\n");
		}
	fc_page_add(page, "</table></div></details>");
}

static bool has_points(const struct frame *frame)
{
	for (size_t i = 0; i < frame->plot->series_count; i++)
		for (size_t point = 0; point < frame->plot->series[i].count; point++)
			if (is_shown(frame, &frame->plot->series[i], point))
				return true;
	return false;
}

void fc_plot_add(struct fc_page *page, const struct fc_plot *plot)
{
	struct frame frame = {.plot = plot};
	fc_scale_init(&frame.x, plot, true);
	fc_scale_init(&frame.y, plot, false);
	if (!has_points(&frame))
		return;
	begin_figure(page, plot->title);
	begin_picture(page, plot->title, "plot", ABOVE, HEIGHT);
	add_axes(page, &frame);
	for (int pass = 0; pass < 2; pass++) /* strong ones lie below */
		for (size_t i = 0; i < plot->series_count; i++)
			if (plot->series[i].is_strong == (pass == 0)) {
				add_line(page, &frame, &plot->series[i]);
				add_points(page, &frame, &plot->series[i]);
			}
	fc_page_add(page, "</svg>\n<ul class=\"keys\">");
	for (size_t i = 0; i < plot->series_count; i++)
		add_line_key(page, &plot->series[i]);
	fc_page_add(page, "</ul>\n");
	add_numbers(page, plot);
	end_figure(page, plot->note);
}

/* ---- bars ---- */

#define BAR_HEIGHT 16
#define BAR_PITCH 26
#define BARS_LEFT 196
#define BARS_RIGHT 84

static double sum_of(const struct fc_bars *bars, size_t bar)
{
	double sum = 0;
	for (size_t part = 0; part < bars->part_count; part++)
		sum += bars->lengths[bar * bars->part_count + part];
	return sum;
}

static void add_part(struct fc_page *page, const struct fc_bars *bars, size_t bar, size_t part, double x, double y,
		     double width)
{
	char string[NUMBER_BYTES];
	bars->print(string, sizeof(string), bars->lengths[bar * bars->part_count + part]);
	fc_page_add(page, "<rect class=\"p%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"><title>",
		    bars->part_count > 1 ? part : FC_BAR_PARTS - 1, x, y, width, BAR_HEIGHT);
	fc_page_add_text(page, bars->part_names[part]);
	fc_page_add(page, ": ");
	fc_page_add_text(page, string);
	fc_page_add(page, "</title></rect>");
}

static void add_bar(struct fc_page *page, const struct fc_bars *bars, size_t bar, double longest)
{
	char string[NUMBER_BYTES];
	const double end = WIDTH - BARS_RIGHT;
	double x = BARS_LEFT, y = (double)bar * BAR_PITCH + 4, sum = sum_of(bars, bar);
	add_label(page, "name", BARS_LEFT - 8, y + 13, "end", bars->names[bar]);
	for (size_t part = 0; part < bars->part_count; part++) {
		double length = bars->lengths[bar * bars->part_count + part];
		double width = longest > 0 ? length / longest * (end - BARS_LEFT) : 0;
		width = fmin(width, end - x);
		add_part(page, bars, bar, part, x, y, width);
		x += width;
	}
	if (sum > longest) /* a slit: it goes on */
		fc_page_add(page, "<path class=\"cut\" d=\"M%.1f %.1fl6 %d\"/>", x - 14, y + BAR_HEIGHT + 1,
			    -BAR_HEIGHT - 2);
	bars->print(string, sizeof(string), sum);
	add_label(page, "number", x + 6, y + 13, "start", string);
}

static void add_bar_numbers(struct fc_page *page, const struct fc_bars *bars)
{
	char string[NUMBER_BYTES];
	fc_page_add(page, "<details><summary>the numbers</summary><div><table><tr><th></th>");
	for (size_t part = 0; part < bars->part_count; part++) {
		fc_page_add(page, "<th>");
		fc_page_add_text(page, bars->part_names[part]);
		fc_page_add(page, "</th>");
	}
	fc_page_add(page, "</tr>\n");
	for (size_t bar = 0; bar < bars->count; bar++) {
		fc_page_add(page, "<tr><th>");
		fc_page_add_text(page, bars->names[bar]);
		fc_page_add(page, "</th>");
		for (size_t part = 0; part < bars->part_count; part++) {
			bars->print(string, sizeof(string), bars->lengths[bar * bars->part_count + part]);
			fc_page_add(page, "<td>");
			fc_page_add_text(page, string);
			fc_page_add(page, "</td>");
		}
		fc_page_add(page, "</tr>\n");
	}
	fc_page_add(page, "</table></div></details>");
}

void fc_bars_add(struct fc_page *page, const struct fc_bars *bars)
{
	double longest = 0;
	for (size_t bar = 0; bar < bars->count; bar++)
		longest = fmax(longest, sum_of(bars, bar));
	if (bars->length_max > 0)
		longest = fmin(longest, bars->length_max);
	longest = fmax(longest, bars->length_min);
	begin_figure(page, bars->title);
	begin_picture(page, bars->title, "bars", 0, (double)bars->count * BAR_PITCH + 4);
	for (size_t bar = 0; bar < bars->count; bar++)
		add_bar(page, bars, bar, longest);
	fc_page_add(page, "</svg>\n<ul class=\"keys\">");
	for (size_t part = 0; part < bars->part_count && bars->part_count > 1; part++)
		add_part_key(page, bars->part_names[part], (unsigned)part);
	fc_page_add(page, "</ul>\n");
	add_bar_numbers(page, bars);
	end_figure(page, bars->note);
}

/* ---- maps ---- */

#define MAP_ROW_HEIGHT 13
#define MAP_ROW_PITCH 15

/* All cells of one look are one path of thick strokes, one for each run of them. */
static void add_look(struct fc_page *page, const struct fc_map *map, unsigned look)
{
	double width = (double)WIDTH / (double)map->column_count;
	bool is_open = false;
	for (size_t row = 0; row < map->row_count; row++)
		for (size_t column = 0; column < map->column_count;) {
			const unsigned char *at = &map->looks[row * map->column_count + column];
			size_t count = 1;
			while (column + count < map->column_count && at[count] == *at)
				count++;
			if (*at == look) {
				if (!is_open)
					fc_page_add(page, "<path class=\"cell l%u\" d=\"", look);
				is_open = true;
				fc_page_add(page, "M%.4g %zuh%.4g", (double)column * width,
					    row * MAP_ROW_PITCH + MAP_ROW_PITCH / 2, (double)count * width);
			}
			column += count;
		}
	if (is_open)
		fc_page_add(page, "\"/>");
}

void fc_map_add(struct fc_page *page, const struct fc_map *map)
{
	begin_figure(page, map->title);
	begin_picture(page, map->title, "map", 0, (double)map->row_count * MAP_ROW_PITCH);
	for (unsigned look = 0; look < FC_CELL_LOOKS; look++)
		add_look(page, map, look);
	fc_page_add(page, "</svg>\n");
	end_figure(page, map->note);
}

static void add_cell_key(struct fc_page *page, unsigned first, unsigned count)
{
	fc_page_add(page, "<svg class=\"key\" viewBox=\"0 0 24 %d\">", MAP_ROW_HEIGHT);
	for (unsigned i = 0; i < count; i++)
		fc_page_add(page, "<path class=\"cell l%u\" d=\"M%u %dh%u\"/>", first + i, i * 24 / count,
			    MAP_ROW_HEIGHT / 2, 24 / count);
	fc_page_add(page, "</svg>");
}

void fc_map_add_keys(struct fc_page *page, const char *const texts[FC_CELL_OWNED + 1])
{
	fc_page_add(page, "<ul class=\"keys\">");
	for (unsigned look = 0; look <= FC_CELL_OWNED; look++) {
		if (texts[look] == NULL)
			continue;
		fc_page_add(page, "<li>");
		add_cell_key(page, look, look == FC_CELL_OWNED ? 4 : 1);
		fc_page_add_text(page, texts[look]);
		fc_page_add(page, "</li>");
	}
	fc_page_add(page, "</ul>\n");
}

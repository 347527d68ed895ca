/* Does a page show the values that it was given, where they belong, and nothing that a name smuggles in? */
#include "report/axis.h"
#include "report/page.h"
#include "report/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct fc_scale scale_of(const double *values, size_t count, bool is_logarithmic, bool is_from_zero)
{
	struct fc_plot_series series = {.name = "s", .x = values, .y = values, .count = count};
	struct fc_plot plot = {.series = &series, .series_count = 1};
	plot.y.is_logarithmic = is_logarithmic;
	plot.y.is_from_zero = is_from_zero;
	struct fc_scale scale;
	fc_scale_init(&scale, &plot, false);
	return scale;
}

static void assert_near(double found, double wanted)
{
	assert_true(fabs(found - wanted) <= 1e-9 * fmax(1, fabs(wanted)));
}

static unsigned count_of(const char *bytes, const char *wanted)
{
	unsigned count = 0;
	for (const char *at = bytes; (at = strstr(at, wanted)) != NULL; at += strlen(wanted))
		count++;
	return count;
}

/* ---- axes ---- */

static void a_linear_axis_ends_at_round_numbers(void **state)
{
	(void)state;
	const double values[] = {12, 87};
	struct fc_scale scale = scale_of(values, 2, false, true);
	assert_near(scale.first, 0);
	assert_near(scale.last, 100);
	assert_int_equal(scale.mark_count, 6);
	assert_near(scale.marks[1], 20);
	assert_near(fc_scale_place(&scale, 25), 0.25);
	scale = scale_of(values, 2, false, false);
	assert_near(scale.first, 0); /* steps of 20 below 12 */
	const double narrow[] = {0.9412, 0.9437};
	scale = scale_of(narrow, 2, false, false);
	assert_near(scale.first, 0.941);
	assert_near(scale.last, 0.944);
}

static void a_logarithmic_axis_has_whole_decades(void **state)
{
	(void)state;
	const double values[] = {3, 4000};
	struct fc_scale scale = scale_of(values, 2, true, false);
	assert_near(scale.first, 1);
	assert_near(scale.last, 10000);
	assert_int_equal(scale.mark_count, 5);
	assert_near(fc_scale_place(&scale, 100), 0.5);
	const double within[] = {20, 60};
	scale = scale_of(within, 2, true, false);
	assert_near(scale.first, 20);
	assert_near(scale.last, 100);
	assert_int_equal(scale.mark_count, 3); /* 20, 50, 100 */
	assert_near(scale.marks[1], 50);
	const double one[] = {300};
	scale = scale_of(one, 1, true, false);
	assert_near(scale.first, 200);
	assert_near(scale.last, 500);
	assert_false(fc_scale_has(&scale, 0));
	assert_false(fc_scale_has(&scale, -1));
}

static void an_axis_of_sizes_has_powers_of_two(void **state)
{
	(void)state;
	const double values[] = {3.0 * (1 << 20), 900.0 * (1 << 20)};
	struct fc_plot_series series = {.name = "s", .x = values, .y = values, .count = 2};
	struct fc_plot plot = {.series = &series, .series_count = 1};
	plot.x.is_logarithmic = plot.x.is_binary = true;
	struct fc_scale scale;
	fc_scale_init(&scale, &plot, true);
	assert_near(scale.first, 2.0 * (1 << 20)); /* 2^21 to 2^31 in steps of 2^2: six marks, nine powers between */
	assert_near(scale.last, 2048.0 * (1 << 20));
	assert_int_equal(scale.mark_count, 6);
	assert_near(scale.marks[1], 8.0 * (1 << 20));
}

static void equal_no_and_impossible_values_have_an_axis_too(void **state)
{
	(void)state;
	const double equal[] = {7, 7}, zero[] = {0}, none[] = {NAN, INFINITY}, wide[] = {1e-300, 1e300};
	const struct fc_scale scales[] = {
		scale_of(equal, 2, false, false), scale_of(equal, 2, true, false), scale_of(zero, 1, false, true),
		scale_of(none, 2, false, false),  scale_of(none, 2, true, false),  scale_of(wide, 2, true, false),
		scale_of(wide, 2, false, false),
	};
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		assert_true(isfinite(scales[i].first) && isfinite(scales[i].last));
		assert_true(scales[i].first < scales[i].last);
		assert_true(scales[i].mark_count >= 2 && scales[i].mark_count <= FC_MARKS_MAX);
	}
	assert_true(fc_scale_place(&scales[0], 7) > 0 && fc_scale_place(&scales[0], 7) < 1);
}

/* ---- plots ---- */

static void a_point_lies_where_its_values_say(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const double x[] = {0, 50, 100}, y[] = {0, 100, 50};
	struct fc_plot_series series = {.name = "flat", .x = x, .y = y, .count = 3, .colour = 1};
	struct fc_plot plot = {.title = "t", .series = &series, .series_count = 1};
	fc_plot_add(&page, &plot);
	/* The plane is 596 x 298 units, from (92, 14) to (688, 312). */
	assert_non_null(strstr(page.bytes, "d=\"M92.0 312.0L390.0 14.0L688.0 163.0\""));
	assert_int_equal(count_of(page.bytes, "<circle class=\"point c1\""), 3);
	assert_int_equal(count_of(page.bytes, "<td>50</td>"), 2);
	fc_page_deinit(&page);
}

static void what_is_no_number_is_a_gap(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const double x[] = {0, 1, 2, 3, 4}, y[] = {0, 1, NAN, 1, 0};
	struct fc_plot_series series = {.name = "s", .x = x, .y = y, .count = 5};
	struct fc_plot plot = {.title = "t", .series = &series, .series_count = 1};
	fc_plot_add(&page, &plot);
	const char *line = strstr(page.bytes, "<path class=\"line c0\" d=\"");
	assert_non_null(line);
	const char *end = strstr(line, "\">");
	unsigned begins = 0;
	for (const char *at = line; at < end; at++)
		begins += *at == 'M';
	assert_int_equal(begins, 2);
	assert_null(strstr(page.bytes, "nan"));
	assert_int_equal(count_of(page.bytes, "<td>n/a</td>"), 1);
	fc_page_deinit(&page);
}

static void print_ms(char *string, size_t bytes, double value)
{
	snprintf(string, bytes, "%.0f ms", value);
}

static void a_line_that_stands_out_lies_below_the_others(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const double x[] = {0, 1}, y[] = {0, 1};
	const struct fc_plot_series series[] = {
		{.name = "a", .x = x, .y = y, .count = 2, .colour = 1},
		{.name = "b", .x = x, .y = y, .count = 2, .colour = 2, .is_strong = true},
		{.name = "c", .x = x, .y = y, .count = 2, .colour = 3, .is_dotted = true},
	};
	struct fc_plot plot = {.title = "t", .series = series, .series_count = 3};
	fc_plot_add(&page, &plot);
	const char *strong = strstr(page.bytes, "line c2 strong"), *other = strstr(page.bytes, "line c1\"");
	assert_non_null(strong);
	assert_non_null(other);
	assert_true(strong < other);
	assert_non_null(strstr(page.bytes, "line c3 dotted"));
	fc_page_deinit(&page);
}

static void cells_of_one_look_are_one_stroke(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const unsigned char looks[] = {3, 3, 0, 3, /* next row */ 3, 1, 1, 1};
	struct fc_map map = {.title = "t", .looks = looks, .row_count = 2, .column_count = 4};
	fc_map_add(&page, &map);
	/* A cell is 180 units wide, a row 15 high. */
	assert_non_null(strstr(page.bytes, "<path class=\"cell l3\" d=\"M0 7h360M540 7h180M0 22h180\"/>"));
	assert_non_null(strstr(page.bytes, "<path class=\"cell l0\" d=\"M360 7h180\"/>"));
	assert_non_null(strstr(page.bytes, "<path class=\"cell l1\" d=\"M180 22h540\"/>"));
	assert_null(strstr(page.bytes, "cell l2"));
	fc_page_deinit(&page);
}

static void a_bar_beyond_the_picture_is_cut_and_says_so(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const char *names[] = {"flat", "recompute"}, *parts[] = {"all"};
	const double lengths[] = {20, 4000};
	struct fc_bars bars = {.title = "t",
			       .names = names,
			       .count = 2,
			       .part_names = parts,
			       .part_count = 1,
			       .lengths = lengths,
			       .length_max = 40,
			       .print = print_ms};
	fc_bars_add(&page, &bars);
	assert_non_null(strstr(page.bytes, "p3\" x=\"196.0\" y=\"4.0\" width=\"220.0\""));
	assert_non_null(strstr(page.bytes, "p3\" x=\"196.0\" y=\"30.0\" width=\"440.0\""));
	assert_int_equal(count_of(page.bytes, "class=\"cut\""), 1);
	assert_non_null(strstr(page.bytes, ">4000 ms</text>"));
	fc_page_deinit(&page);
}

static void bars_are_as_long_as_the_sum_of_their_parts(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const char *names[] = {"flat", "mooncake"}, *parts[] = {"queue", "read"};
	const double lengths[] = {10, 30, 40, 40};
	struct fc_bars bars = {.title = "t",
			       .names = names,
			       .count = 2,
			       .part_names = parts,
			       .part_count = 2,
			       .lengths = lengths,
			       .print = print_ms};
	fc_bars_add(&page, &bars);
	/* 440 units stand for the longest bar, 80 ms. */
	assert_non_null(strstr(page.bytes, "p0\" x=\"196.0\" y=\"4.0\" width=\"55.0\""));
	assert_non_null(strstr(page.bytes, "p1\" x=\"251.0\" y=\"4.0\" width=\"165.0\""));
	assert_non_null(strstr(page.bytes, "p1\" x=\"416.0\" y=\"30.0\" width=\"220.0\""));
	assert_non_null(strstr(page.bytes, ">40 ms</text>"));
	assert_non_null(strstr(page.bytes, ">80 ms</text>"));
	fc_page_deinit(&page);
}

static void bars_of_shares_stand_for_their_share(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const char *names[] = {"flat"}, *parts[] = {"delivered"};
	const double lengths[] = {0.75};
	struct fc_bars bars = {.title = "t",
			       .names = names,
			       .count = 1,
			       .part_names = parts,
			       .part_count = 1,
			       .lengths = lengths,
			       .length_min = 1,
			       .print = print_ms};
	fc_bars_add(&page, &bars);
	assert_non_null(strstr(page.bytes, "p3\" x=\"196.0\" y=\"4.0\" width=\"330.0\"")); /* of 440 */
	fc_page_deinit(&page);
}

static void a_plot_of_gaps_is_left_out(void **state)
{
	(void)state;
	struct fc_page page = {0};
	const double x[] = {1, 2}, y[] = {NAN, NAN};
	struct fc_plot_series series = {.name = "flat", .x = x, .y = y, .count = 2};
	struct fc_plot plot = {.title = "t", .series = &series, .series_count = 1};
	plot.x.label = plot.y.label = "l";
	fc_plot_add(&page, &plot);
	assert_int_equal(page.length, 0);
	fc_page_deinit(&page);
}

/* ---- pages ---- */

static void make_page(struct fc_page *page, const char *name)
{
	const double x[] = {1, 2}, y[] = {1, 2};
	const char *headings[] = {"policy", "hits"}, *cells[] = {name, "94 %"};
	struct fc_plot_series series = {.name = name, .x = x, .y = y, .count = 2};
	struct fc_plot plot = {.title = name, .note = name, .series = &series, .series_count = 1};
	plot.x.label = plot.y.label = name;
	struct fc_page_table table = {.headings = headings, .cells = cells, .column_count = 2, .row_count = 1};
	fc_page_begin(page, name, name);
	fc_page_section(page, name, name);
	fc_plot_add(page, &plot);
	fc_page_add_table(page, &table);
	fc_page_end(page, name);
}

static void names_stay_text(void **state)
{
	(void)state;
	struct fc_page page = {0};
	make_page(&page, "a<script>\"&\n</title>");
	assert_null(strstr(page.bytes, "<script"));
	assert_non_null(strstr(page.bytes, "a&lt;script&gt;&quot;&amp; &lt;/title&gt;"));
	fc_page_deinit(&page);
}

static void a_page_needs_nothing_from_elsewhere(void **state)
{
	(void)state;
	static const char *const words[] = {"http", "src=", "href=", "url(", "@import", "<script"};
	struct fc_page page = {0};
	make_page(&page, "plain");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_null(strstr(page.bytes, words[i]));
	fc_page_deinit(&page);
}

static void a_page_is_written_whole_or_not_at_all(void **state)
{
	(void)state;
	struct fc_page page = {0};
	struct fc_error error = {0};
	char path[64];
	snprintf(path, sizeof(path), "/tmp/fc_report_%ld.html", (long)getpid());
	make_page(&page, "plain");
	assert_int_equal(fc_page_write(&page, path, &error), FC_OK);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	assert_int_equal(ftell(file), page.length);
	fclose(file);
	unlink(path);
	assert_int_equal(fc_page_write(&page, "/nonexistent/x.html", &error), FC_ESYSTEM);
	assert_non_null(strstr(error.text, "--report: cannot create /nonexistent/x.html"));
	page.is_out_of_memory = true;
	assert_int_equal(fc_page_write(&page, path, &error), FC_ENOMEM);
	assert_int_not_equal(access(path, F_OK), 0);
	fc_page_deinit(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_linear_axis_ends_at_round_numbers),
		cmocka_unit_test(a_logarithmic_axis_has_whole_decades),
		cmocka_unit_test(an_axis_of_sizes_has_powers_of_two),
		cmocka_unit_test(equal_no_and_impossible_values_have_an_axis_too),
		cmocka_unit_test(a_point_lies_where_its_values_say),
		cmocka_unit_test(what_is_no_number_is_a_gap),
		cmocka_unit_test(a_line_that_stands_out_lies_below_the_others),
		cmocka_unit_test(cells_of_one_look_are_one_stroke),
		cmocka_unit_test(a_bar_beyond_the_picture_is_cut_and_says_so),
		cmocka_unit_test(bars_are_as_long_as_the_sum_of_their_parts),
		cmocka_unit_test(bars_of_shares_stand_for_their_share),
		cmocka_unit_test(a_plot_of_gaps_is_left_out),
		cmocka_unit_test(names_stay_text),
		cmocka_unit_test(a_page_needs_nothing_from_elsewhere),
		cmocka_unit_test(a_page_is_written_whole_or_not_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

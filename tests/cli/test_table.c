/* Tables, quantities and the progress line as people see them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/table.h"

static char *print(const struct fc_table *table)
{
	char *text = NULL;
	size_t text_bytes = 0;
	FILE *file = open_memstream(&text, &text_bytes);
	assert_non_null(file);
	assert_int_equal(fc_table_print(table, file), FC_OK);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void expect_table(const char *columns, const char *const *cells, const char *expected)
{
	struct fc_table table;
	fc_table_init(&table, columns);
	for (; *cells != NULL; cells++)
		fc_table_cell(&table, "%s", *cells);
	char *text = print(&table);
	assert_string_equal(text, expected);
	free(text);
	fc_table_deinit(&table);
}

static void columns_line_up_to_the_left_and_to_the_right(void **state)
{
	(void)state;
	expect_table(
		"lrl",
		(const char *const[]){"medium", "bytes", "note", "memory", "512.0 MiB", "a", "ssd", "3 B", "", NULL},
		"medium       bytes   note\n"
		"memory   512.0 MiB   a\n"
		"ssd            3 B\n");
}

static void empty_cells_leave_no_space_at_the_end_of_a_line(void **state)
{
	(void)state;
	expect_table("lll", (const char *const[]){"aa", "b", "c", "", "", "d", "e", "", "", "f", NULL},
		     "aa   b   c\n"
		     "         d\n"
		     "e\n"
		     "f\n");
}

static void width_is_counted_in_characters(void **state)
{
	(void)state;
	expect_table("lr", (const char *const[]){"µµ", "1", "abc", "22", NULL}, "µµ     1\nabc   22\n");
}

static void a_table_takes_many_rows(void **state)
{
	(void)state;
	struct fc_table table;
	fc_table_init(&table, "r");
	for (int row = 1; row <= 1000; row++)
		fc_table_cell(&table, "%d", row);
	char *text = print(&table);
	assert_int_equal(strlen(text), 5000);
	assert_memory_equal(text + 4995, "1000\n", 5);
	free(text);
	fc_table_deinit(&table);
}

static void sizes_have_binary_units_and_one_decimal(void **state)
{
	(void)state;
	char text[FC_HUMAN_BYTES];
	assert_string_equal(fc_human_bytes(0, text), "0 B");
	assert_string_equal(fc_human_bytes(1023, text), "1023 B");
	assert_string_equal(fc_human_bytes(1024, text), "1.0 KiB");
	assert_string_equal(fc_human_bytes(1536, text), "1.5 KiB");
	assert_string_equal(fc_human_bytes((1 << 20) - 1, text), "1.0 MiB");
	assert_string_equal(fc_human_bytes(UINT64_MAX, text), "16.0 EiB");
}

static void times_have_three_digits(void **state)
{
	(void)state;
	char text[FC_HUMAN_BYTES];
	assert_string_equal(fc_human_ns(0, text), "0 ns");
	assert_string_equal(fc_human_ns(850, text), "850 ns");
	assert_string_equal(fc_human_ns(17100000, text), "17.1 ms");
	assert_string_equal(fc_human_ns(3420000000, text), "3.42 s");
	assert_string_equal(fc_human_ns(999999, text), "1.00 ms");
	assert_string_equal(fc_human_ns(99950000, text), "100 ms");
	assert_string_equal(fc_human_ns(120000000000, text), "120 s");
}

static void counts_have_commas_and_shares_of_nothing_are_not_available(void **state)
{
	(void)state;
	char text[FC_HUMAN_BYTES];
	assert_string_equal(fc_human_count(0, text), "0");
	assert_string_equal(fc_human_count(999, text), "999");
	assert_string_equal(fc_human_count(1000, text), "1,000");
	assert_string_equal(fc_human_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
	assert_string_equal(fc_human_percent(0, 0, text), "n/a");
	assert_string_equal(fc_human_percent(1, 3, text), "33.3 %");
	assert_string_equal(fc_human_percent(7, 7, text), "100.0 %");
}

static uint64_t fixed_now_ns(void *context)
{
	return *(uint64_t *)context;
}

static void the_progress_line_shows_share_counts_and_what_is_left(void **state)
{
	(void)state;
	uint64_t now_ns = 5000000000;
	struct fc_progress progress;
	char text[160];
	FILE *file = tmpfile();
	assert_non_null(file);
	fc_progress_init(&progress, file, (struct fc_clock){fixed_now_ns, &now_ns}, "replay", 4000);
	fc_progress_text(&progress, 1000, 15000000000, text, sizeof(text));
	assert_string_equal(text, "replay  [#######-----------------------]   25 %  1,000 of 4,000  30s left");
	fc_progress_text(&progress, 10, 15000000000, text, sizeof(text));
	assert_non_null(strstr(text, "  1h06m left"));
	fc_progress_text(&progress, 4000, 15000000000, text, sizeof(text));
	assert_string_equal(text, "replay  [##############################]  100 %  4,000 of 4,000");
	/* not a terminal: nothing is written */
	fc_progress_set(&progress, 1);
	fc_progress_deinit(&progress);
	assert_int_equal(ftell(file), 0);
	fclose(file);
}

static void progress_of_nothing_is_complete(void **state)
{
	(void)state;
	struct fc_progress progress = {.title = "gen", .total = 0};
	char text[160];
	fc_progress_text(&progress, 0, 0, text, sizeof(text));
	assert_string_equal(text, "gen  [##############################]  100 %  0 of 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_line_up_to_the_left_and_to_the_right),
		cmocka_unit_test(empty_cells_leave_no_space_at_the_end_of_a_line),
		cmocka_unit_test(width_is_counted_in_characters),
		cmocka_unit_test(a_table_takes_many_rows),
		cmocka_unit_test(sizes_have_binary_units_and_one_decimal),
		cmocka_unit_test(times_have_three_digits),
		cmocka_unit_test(counts_have_commas_and_shares_of_nothing_are_not_available),
		cmocka_unit_test(the_progress_line_shows_share_counts_and_what_is_left),
		cmocka_unit_test(progress_of_nothing_is_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lists of ids cut out of records: what is cut, what is left, and where things stood. */
#include "base/check.h"
#include "trace/cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void assert_cut(struct fc_cut *cut, const char *record, const char *text)
{
	assert_int_equal(fc_cut_record(cut, record, strlen(record)), 1);
	assert_int_equal(cut->text_bytes, strlen(text));
	assert_memory_equal(cut->text, text, strlen(text));
}

static void lists_are_read_and_numbered(void **state)
{
	(void)state;
	struct fc_cut cut = {0};
	uint64_t count;
	assert_cut(&cut, "{\"a\":1, \"hash_ids\" : [ 7,\n8 , 18446744073709551615 ] , \"b\":[2],\"hash_ids\":[]}",
		   "{\"a\":1, \"hash_ids\" : -1  , \"b\":[2],\"hash_ids\":-2 }");
	const uint64_t *ids = fc_cut_list(&cut, -1, &count);
	assert_int_equal(count, 3);
	assert_int_equal(ids[0], 7);
	assert_int_equal(ids[1], 8);
	assert_int_equal(ids[2], UINT64_MAX);
	fc_cut_list(&cut, -2, &count);
	assert_int_equal(count, 0);
	assert_int_equal(cut.bad_at, UINT64_MAX);
	fc_cut_deinit(&cut);
}

static void integers_of_every_length_are_read(void **state)
{
	(void)state;
	static const char digits[] = "12345678909876543210";
	struct fc_cut cut = {0};
	uint64_t count, wanted = 0;
	for (int length = 1; length <= 20; length++) {
		char record[128];
		wanted = wanted * 10 + (uint64_t)(digits[length - 1] - '0');
		snprintf(record, sizeof(record), "{\"hash_ids\":[%.*s, %.*s ,%.*s]}", length, digits, length, digits,
			 length, digits);
		assert_int_equal(fc_cut_record(&cut, record, strlen(record)), 1);
		const uint64_t *ids = fc_cut_list(&cut, -1, &count);
		assert_int_equal(count, 3);
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal(ids[i], wanted);
	}
	fc_cut_deinit(&cut);
}

static void what_is_nearly_a_digit_is_none(void **state)
{
	(void)state;
	static const char near[] = "/:;?@`p\x20\xb0\xb9\xff";
	struct fc_cut cut = {0};
	for (size_t i = 0; i < strlen(near); i++) {
		for (int place = 0; place < 16; place++) {
			char record[] = "{\"hash_ids\":[1111111111111111]}";
			record[strlen("{\"hash_ids\":[") + (size_t)place] = near[i];
			bool is_space = near[i] == ' ' && (place == 0 || place == 15);
			assert_int_equal(fc_cut_record(&cut, record, strlen(record)), 1);
			assert_int_equal(cut.list_count, is_space);
		}
	}
	fc_cut_deinit(&cut);
}

static void a_digit_behind_a_list_does_not_become_part_of_its_number(void **state)
{
	(void)state;
	struct fc_cut cut = {0};
	assert_cut(&cut, "{\"hash_ids\":[7]1}", "{\"hash_ids\":-1 1}");
	assert_int_equal(fc_cut_place(&cut, strlen("{\"hash_ids\":-1 ")), strlen("{\"hash_ids\":[7]"));
	fc_cut_deinit(&cut);
}

static void a_list_with_anything_else_stays(void **state)
{
	(void)state;
	static const char *const items[] = {"-1",
					    "1.5",
					    "1e3",
					    "\"x\"",
					    "null",
					    "[1]",
					    "007",
					    "1 2",
					    "",
					    "-0",
					    "18446744073709551616",
					    "184467440737095516150"};
	struct fc_cut cut = {0};
	uint64_t count;
	for (size_t i = 0; i < fc_array_len(items); i++) {
		char record[128], text[128];
		snprintf(record, sizeof(record), "{\"hash_ids\":[3,%s],\"hash_ids\":[4]}", items[i]);
		snprintf(text, sizeof(text), "{\"hash_ids\":[3,%s],\"hash_ids\":-1 }", items[i]);
		assert_cut(&cut, record, text);
		assert_int_equal(cut.bad_at, strlen("{\"hash_ids\":[3,"));
		assert_int_equal(*fc_cut_list(&cut, -1, &count), 4);
		assert_int_equal(count, 1);
	}
	fc_cut_deinit(&cut);
}

static void nothing_is_cut_where_a_number_could_be_taken_for_a_list(void **state)
{
	(void)state;
	static const char *const records[] = {"{\"hash_ids\":[3],\"b\":{\"hash_ids\":-1}}",
					      "{\"hash_ids\":\"[1]\"}",
					      "{\"hash_ids\"",
					      "{\"hash_ids\":",
					      "{\"a\":[1]}",
					      ""};
	struct fc_cut cut = {0};
	for (size_t i = 0; i < fc_array_len(records); i++)
		assert_int_equal(fc_cut_record(&cut, records[i], strlen(records[i])), 0);
	fc_cut_deinit(&cut);
}

static void a_list_that_breaks_off_stays(void **state)
{
	(void)state;
	static const char *const records[] = {"{\"hash_ids\":[", "{\"hash_ids\":[1", "{\"hash_ids\":[1,",
					      "{\"hash_ids\":[1 "};
	struct fc_cut cut = {0};
	for (size_t i = 0; i < fc_array_len(records); i++)
		assert_cut(&cut, records[i], records[i]);
	fc_cut_deinit(&cut);
}

static void places_in_the_text_lead_back_to_the_record(void **state)
{
	(void)state;
	static const char record[] = "{\"hash_ids\":[10,20],\"b\":1,\"hash_ids\":[],\"c\":2}";
	static const char letters[] = "abc{}12";
	struct fc_cut cut = {0};
	assert_int_equal(fc_cut_record(&cut, record, strlen(record)), 1);
	for (uint64_t place = 0; place < cut.text_bytes; place++) {
		if (strchr(letters, cut.text[place]) == NULL || (place > 0 && cut.text[place - 1] == '-'))
			continue;
		assert_int_equal(record[fc_cut_place(&cut, place)], cut.text[place]);
	}
	assert_int_equal(fc_cut_place(&cut, cut.text_bytes), strlen(record));
	fc_cut_deinit(&cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read_and_numbered),
		cmocka_unit_test(integers_of_every_length_are_read),
		cmocka_unit_test(what_is_nearly_a_digit_is_none),
		cmocka_unit_test(a_digit_behind_a_list_does_not_become_part_of_its_number),
		cmocka_unit_test(a_list_with_anything_else_stays),
		cmocka_unit_test(nothing_is_cut_where_a_number_could_be_taken_for_a_list),
		cmocka_unit_test(a_list_that_breaks_off_stays),
		cmocka_unit_test(places_in_the_text_lead_back_to_the_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Codes have texts, errors quote without harm, and arrays grow or stay as they are. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/tracked_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void every_code_has_a_text_of_its_own(void **state)
{
	(void)state;
	for (int code = 0; code >= FC_EAGAIN; code--) {
		assert_string_not_equal(fc_code_text(code), "unknown code");
		for (int other = 0; other > code; other--)
			assert_string_not_equal(fc_code_text(code), fc_code_text(other));
	}
	assert_string_equal(fc_code_text(FC_OK), "success");
	assert_string_equal(fc_code_text(FC_EAGAIN), "nothing now, try later");
}

static void a_code_that_does_not_exist_is_said_to_be_unknown(void **state)
{
	(void)state;
	assert_string_equal(fc_code_text(1), "unknown code");
	assert_string_equal(fc_code_text(FC_EAGAIN - 1), "unknown code");
	assert_string_equal(fc_code_text(-1000), "unknown code");
}

static void an_error_gets_a_place_in_front(void **state)
{
	(void)state;
	struct fc_error error;
	assert_int_equal(fc_error_set(&error, FC_EINVAL, "%u blocks", 7u), FC_EINVAL);
	assert_int_equal(fc_error_wrap(&error, FC_EIO, "file %d", 3), FC_EIO);
	assert_int_equal(error.code, FC_EIO);
	assert_string_equal(error.text, "file 3: 7 blocks");
}

static void no_place_stands_twice(void **state)
{
	(void)state;
	struct fc_error error;
	fc_error_set(&error, FC_EINVAL, "/d/ssd.arena: needs more");
	fc_error_wrap(&error, FC_EINVAL, "%s", "/d/ssd.arena");
	assert_string_equal(error.text, "/d/ssd.arena: needs more");
	fc_error_wrap(&error, FC_EINVAL, "%s", "/d");
	assert_string_equal(error.text, "/d/ssd.arena: needs more");
	fc_error_wrap(&error, FC_EINVAL, "%s", "/d/ssd");
	assert_string_equal(error.text, "/d/ssd: /d/ssd.arena: needs more");
}

/* What they quote comes from files, and a terminal would obey it. */
static void errors_hold_no_control_characters(void **state)
{
	(void)state;
	struct fc_error error;
	fc_error_set(&error, FC_EINVAL, "name '%s'", "a\x1b[2Jb\nc\x7f");
	assert_string_equal(error.text, "name 'a?[2Jb?c?'");
	fc_error_wrap(&error, FC_EINVAL, "file '%s'", "\r");
	assert_string_equal(error.text, "file '?': name 'a?[2Jb?c?'");
}

static void an_error_that_nobody_wants_is_only_a_code(void **state)
{
	(void)state;
	assert_int_equal(fc_error_set(NULL, FC_EINVAL, "text"), FC_EINVAL);
	assert_int_equal(fc_error_wrap(NULL, FC_EIO, "text"), FC_EIO);
}

static void a_long_text_is_cut_and_ends(void **state)
{
	(void)state;
	char name[2 * FC_ERROR_TEXT_BYTES];
	struct fc_error error;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	fc_error_set(&error, FC_EINVAL, "%s", name);
	assert_int_equal(strlen(error.text), FC_ERROR_TEXT_BYTES - 1);
	fc_error_set(&error, FC_EINVAL, "the reason");
	fc_error_wrap(&error, FC_EINVAL, "%s", name);
	assert_int_equal(strlen(error.text), FC_ERROR_TEXT_BYTES - 1);
	assert_int_equal(error.text[FC_ERROR_TEXT_BYTES - 2], 'n');
}

static void an_array_grows_by_doubling_and_keeps_what_it_holds(void **state)
{
	(void)state;
	struct tracked_alloc tracked = {0};
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	uint32_t *array = NULL;
	uint64_t room = 0;
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 0, sizeof(*array)), 0);
	assert_null(array);
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 1, sizeof(*array)), 0);
	assert_int_equal(room, 4);
	array[3] = 99;
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 5, sizeof(*array)), 0);
	assert_int_equal(room, 8);
	assert_int_equal(array[3], 99);
	assert_int_equal(array[4], 0);
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 100, sizeof(*array)), 0);
	assert_int_equal(room, 100);
	fc_alloc_free(&alloc, array, room * sizeof(*array));
	assert_int_equal(tracked.bytes, 0);
}

static void an_array_that_cannot_grow_stays_as_it_is(void **state)
{
	(void)state;
	struct tracked_alloc tracked = {0};
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	uint64_t *array = NULL, room = 0;
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 4, sizeof(*array)), 0);
	array[0] = 5;
	const uint64_t *before = array;
	tracked.fail_at = tracked.call_count + 1;
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 5, sizeof(*array)), FC_ENOMEM);
	tracked.fail_at = 0;
	/* 2^61 items of 8 bytes are 2^64 bytes, which a size does not hold. */
	assert_int_equal(fc_alloc_reserve(&alloc, (void **)&array, &room, 1ull << 61, sizeof(*array)), FC_ENOMEM);
	assert_ptr_equal(array, before);
	assert_int_equal(room, 4);
	assert_int_equal(array[0], 5);
	fc_alloc_free(&alloc, array, room * sizeof(*array));
	assert_int_equal(tracked.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_text_of_its_own),
		cmocka_unit_test(a_code_that_does_not_exist_is_said_to_be_unknown),
		cmocka_unit_test(an_error_gets_a_place_in_front),
		cmocka_unit_test(no_place_stands_twice),
		cmocka_unit_test(errors_hold_no_control_characters),
		cmocka_unit_test(an_error_that_nobody_wants_is_only_a_code),
		cmocka_unit_test(a_long_text_is_cut_and_ends),
		cmocka_unit_test(an_array_grows_by_doubling_and_keeps_what_it_holds),
		cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

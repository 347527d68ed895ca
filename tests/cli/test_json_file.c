/* JSON results: whole or not at all, and readable by nobody else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json_file.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/flatcake-json-XXXXXX");
	return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *path_in_folder(const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static unsigned count_files(void)
{
	unsigned count = 0;
	DIR *directory = opendir(folder);
	assert_non_null(directory);
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static void a_file_is_written_whole_and_private(void **state)
{
	(void)state;
	const char *path = path_in_folder("result.json");
	struct fc_error error;
	struct stat status;
	for (int pass = 1; pass <= 2; pass++) {
		assert_int_equal(fc_json_write(path, json_pack("{s:i}", "requests", pass), &error), FC_OK);
		json_t *read = json_load_file(path, 0, NULL);
		assert_int_equal(json_integer_value(json_object_get(read, "requests")), pass);
		json_decref(read);
		assert_int_equal(count_files(), 1);
	}
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(unlink(path), 0);
}

static void a_path_that_cannot_be_written_is_named_and_leaves_nothing(void **state)
{
	(void)state;
	struct fc_error error;
	assert_int_equal(fc_json_write(path_in_folder("none/result.json"), json_object(), &error), FC_ESYSTEM);
	assert_non_null(strstr(error.text, "none/result.json"));
	assert_int_equal(fc_json_write(folder, json_object(), &error), FC_ESYSTEM);
	assert_non_null(strstr(error.text, folder));
	assert_int_equal(count_files(), 0);
}

static void a_write_that_fails_half_way_keeps_the_old_file_and_leaves_nothing(void **state)
{
	(void)state;
	const char *path = path_in_folder("result.json");
	struct fc_error error;
	struct rlimit whole, none;
	assert_int_equal(fc_json_write(path, json_pack("{s:i}", "requests", 1), &error), FC_OK);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
	none = whole;
	none.rlim_cur = 0;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	int code = fc_json_write(path, json_pack("{s:i}", "requests", 2), &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
	assert_int_equal(code, FC_ESYSTEM);
	assert_int_equal(count_files(), 1);
	json_t *read = json_load_file(path, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(read, "requests")), 1);
	json_decref(read);
	assert_int_equal(unlink(path), 0);
}

/* A pipe with a name stands for all that is no regular file; a real device would be at the mercy of a broken program.
 */
static void what_is_no_regular_file_is_written_to_and_not_replaced(void **state)
{
	(void)state;
	const char *path = path_in_folder("pipe");
	char text[16] = "";
	struct fc_error error;
	struct stat status;
	assert_int_equal(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_NONBLOCK); /* lets the writer open it without waiting */
	assert_true(fd >= 0);
	assert_int_equal(fc_json_write(path, json_object(), &error), FC_OK);
	assert_int_equal(stat(path, &status), 0);
	assert_true(S_ISFIFO(status.st_mode));
	assert_int_equal(read(fd, text, sizeof(text) - 1), 3);
	assert_string_equal(text, "{}\n");
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

static void a_result_that_found_no_memory_is_an_error(void **state)
{
	(void)state;
	struct fc_error error;
	assert_int_equal(fc_json_write(path_in_folder("result.json"), NULL, &error), FC_ENOMEM);
	assert_int_equal(count_files(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_written_whole_and_private),
		cmocka_unit_test(a_path_that_cannot_be_written_is_named_and_leaves_nothing),
		cmocka_unit_test(a_write_that_fails_half_way_keeps_the_old_file_and_leaves_nothing),
		cmocka_unit_test(what_is_no_regular_file_is_written_to_and_not_replaced),
		cmocka_unit_test(a_result_that_found_no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* Files that hold what people wrote: whose they may be, and what others may do with them. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/private_file.h"

#define STRANGER 12345

static char dir[64], path[100];
static int fd;

static int make_file(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/fc-private-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0;
}

static int remove_file(void **state)
{
	(void)state;
	close(fd);
	return unlink(path) != 0 || rmdir(dir) != 0;
}

static void expect_mode(mode_t before, mode_t after, const char *text)
{
	char notice[FC_PRIVATE_NOTICE_BYTES];
	struct stat status;
	assert_int_equal(chmod(path, before), 0);
	fc_private_close_to_others(fd, path, notice);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, after);
	if (text == NULL ? notice[0] != '\0' : strstr(notice, text) == NULL || strstr(notice, path) == NULL)
		fail_msg("\"%s\" was expected in: %s", text, notice);
}

static void an_own_file_is_closed_to_all_others(void **state)
{
	(void)state;
	expect_mode(0600, 0600, NULL);
	expect_mode(0400, 0400, NULL);
	expect_mode(0666, 0600, "had mode 0666");
	expect_mode(0640, 0600, "it has 0600 now");
	expect_mode(0604, 0600, "had mode 0604");
	assert_int_equal(fc_private_check_owner(fd, path, NULL), FC_OK);
}

/* Its group may be how this process has its own access, and the mode is root's to change. */
static void of_roots_file_is_told_what_others_can_do(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(seteuid(STRANGER), 0);
	char notice[FC_PRIVATE_NOTICE_BYTES];
	int code = fc_private_check_owner(fd, path, NULL);
	fc_private_close_to_others(fd, path, notice);
	bool is_quiet = notice[0] == '\0';
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	fc_private_close_to_others(fd, path, notice);
	assert_int_equal(seteuid(0), 0);
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(code, FC_OK);
	assert_true(is_quiet);
	assert_non_null(strstr(notice, "has mode 0666"));
	assert_non_null(strstr(notice, "cannot take that from them"));
	assert_int_equal(status.st_mode & 07777, 0666);
}

static void another_users_file_is_refused(void **state)
{
	(void)state;
	struct fc_error error = {0};
	if (geteuid() != 0)
		skip();
	assert_int_equal(fchown(fd, STRANGER, (gid_t)-1), 0);
	assert_int_equal(fc_private_check_owner(fd, path, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "belongs to user 12345"));
	assert_int_equal(seteuid(STRANGER + 1), 0);
	int code = fc_private_check_owner(fd, path, NULL);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	int own_code = fc_private_check_owner(fd, path, NULL);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(code, FC_EINVAL);
	assert_int_equal(own_code, FC_OK);
}

static void names_and_folders_are_told(void **state)
{
	(void)state;
	char notice[FC_PRIVATE_NOTICE_BYTES], second[120];
	snprintf(second, sizeof(second), "%s/second", dir);
	fc_private_look_at_links(fd, path, notice);
	assert_string_equal(notice, "");
	assert_int_equal(link(path, second), 0);
	fc_private_look_at_links(fd, path, notice);
	assert_non_null(strstr(notice, "has 2 names"));
	assert_int_equal(unlink(second), 0);
	const struct {
		mode_t mode;
		bool is_told;
	} folders[] = {{0700, false}, {0775, false}, {0777, true}, {01777, false}, {0702, true}};
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		assert_int_equal(chmod(dir, folders[i].mode), 0);
		fc_private_look_at_folder(path, notice);
		assert_int_equal(notice[0] != '\0', folders[i].is_told);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_own_file_is_closed_to_all_others, make_file, remove_file),
		cmocka_unit_test_setup_teardown(of_roots_file_is_told_what_others_can_do, make_file, remove_file),
		cmocka_unit_test_setup_teardown(another_users_file_is_refused, make_file, remove_file),
		cmocka_unit_test_setup_teardown(names_and_folders_are_told, make_file, remove_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

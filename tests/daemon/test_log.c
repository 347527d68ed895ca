/* The log: three formats, nothing harmful in a line, and no kind of message that fills the disk. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "daemon/log.h"

static uint64_t the_time_ns;

static uint64_t fake_now_ns(void)
{
	return the_time_ns;
}

struct pipe_log {
	int read_fd, write_fd;
	char text[65536];
};

static void open_pipe_log(struct pipe_log *log, enum fc_log_format format, uint32_t burst)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	*log = (struct pipe_log){.read_fd = fds[0], .write_fd = fds[1]};
	struct fc_log_opts opts = {
		.format = format, .level = FC_LOG_INFO, .burst = burst, .fd = fds[1], .now_ns = fake_now_ns};
	struct fc_error error = {0};
	assert_int_equal(fc_log_open(&opts, &error), FC_OK);
}

static const char *close_pipe_log(struct pipe_log *log)
{
	fc_log_close();
	close(log->write_fd);
	ssize_t count = read(log->read_fd, log->text, sizeof(log->text) - 1);
	assert_true(count >= 0);
	log->text[count] = '\0';
	close(log->read_fd);
	return log->text;
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;
	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		count++;
	return count;
}

static const char hostile[] = "x\n2026 error forged: y\x1b[31m \xff\xc2\x9b \xe2\x80\xae \"q\" \\ \xc3\xa4";

static void text_has_one_line_a_message_and_no_control_characters(void **state)
{
	(void)state;
	struct pipe_log log;
	open_pipe_log(&log, FC_LOG_FORMAT_TEXT, 0);
	struct fc_log_field fields[] = {
		{"program", FC_LOG_TEXT(hostile)}, {"client", FC_LOG_COUNT(12)}, {"empty", FC_LOG_TEXT("")}};
	fc_log_write(FC_LOG_WARNING, "client-refused", fields, 3, "refused: %s", hostile);
	fc_log(FC_LOG_DEBUG, "detail", "not at this level");
	const char *text = close_pipe_log(&log);
	assert_int_equal(count_of(text, "\n"), 1);
	for (const char *at = text; at[1] != '\0'; at++)
		assert_true((unsigned char)*at >= ' ');
	assert_non_null(strstr(text, " warning client-refused: refused: x\\x0a2026"));
	assert_non_null(strstr(text, "\\x1b[31m \\xff\\xc2\\x9b \\xe2\\x80\\xae \"q\" \\ \xc3\xa4"));
	assert_non_null(strstr(text, " client=12 empty=\"\"\n"));
	assert_non_null(strstr(text, "program=\"x\\\\x0a"));
}

static void json_lines_parse_and_keep_numbers(void **state)
{
	(void)state;
	struct pipe_log log;
	open_pipe_log(&log, FC_LOG_FORMAT_JSON, 0);
	struct fc_log_field fields[] = {{"program", FC_LOG_TEXT(hostile)}, {"bytes", FC_LOG_COUNT(UINT64_C(1) << 60)}};
	fc_log_write(FC_LOG_ERROR, "arena-failed", fields, 2, "%s", hostile);
	const char *text = close_pipe_log(&log);
	json_error_t why;
	json_t *object = json_loads(text, 0, &why);
	assert_non_null(object);
	assert_string_equal(json_string_value(json_object_get(object, "level")), "error");
	assert_string_equal(json_string_value(json_object_get(object, "kind")), "arena-failed");
	assert_int_equal(json_integer_value(json_object_get(object, "bytes")), INT64_C(1) << 60);
	const char *message = json_string_value(json_object_get(object, "message"));
	assert_non_null(strstr(message, "x\\x0a2026"));
	assert_string_equal(message, json_string_value(json_object_get(object, "program")));
	json_decref(object);
}

static void a_message_too_long_is_cut_and_says_so(void **state)
{
	(void)state;
	struct pipe_log log;
	char large[3000];
	memset(large, '\1', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	open_pipe_log(&log, FC_LOG_FORMAT_JSON, 0);
	struct fc_log_field fields[] = {
		{"a", FC_LOG_TEXT(large)}, {"b", FC_LOG_TEXT(large)}, {"c", FC_LOG_TEXT(large)}};
	fc_log_write(FC_LOG_INFO, "large", fields, 3, "%s", large);
	const char *text = close_pipe_log(&log);
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	const char *message = json_string_value(json_object_get(object, "message"));
	assert_string_equal(message + strlen(message) - 3, "...");
	json_decref(object);
}

static void a_kind_is_limited_and_what_was_held_back_is_told(void **state)
{
	(void)state;
	struct pipe_log log;
	uint64_t held_before, held_back, unwritten;
	fc_log_lost(&held_before, &unwritten);
	open_pipe_log(&log, FC_LOG_FORMAT_TEXT, 3);
	for (int at = 0; at < 10; at++)
		fc_log(FC_LOG_INFO, "flood", "message %d", at);
	fc_log(FC_LOG_INFO, "other", "still heard");
	the_time_ns += 11 * UINT64_C(1000000000);
	fc_log_tick();
	fc_log(FC_LOG_INFO, "flood", "message of the next interval");
	fc_log_lost(&held_back, &unwritten);
	const char *text = close_pipe_log(&log);
	assert_int_equal(count_of(text, "flood: message "), 4);
	assert_int_equal(count_of(text, "flood: 7 more messages of this kind were held back held_back=7\n"), 1);
	assert_int_equal(count_of(text, "other: still heard"), 1);
	assert_int_equal(held_back - held_before, 7);
}

/* journald's side of its socket. */
static int bind_journal(char path[64])
{
	strcpy(path, "/tmp/flatcake-journal-XXXXXX");
	assert_non_null(mkdtemp(path));
	strcat(path, "/socket");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)(void *)&address, sizeof(address)), 0);
	return fd;
}

static void unbind_journal(char *path, int fd)
{
	close(fd);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static void journald_gets_fields_when_standard_error_is_its_stream(void **state)
{
	(void)state;
	char path[64], stream[64], got[4096];
	int journal = bind_journal(path), fds[2];
	struct stat status;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fstat(fds[1], &status), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
		 (unsigned long long)status.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	struct fc_log_opts opts = {.format = FC_LOG_AUTO, .level = FC_LOG_INFO, .fd = fds[1], .journal_path = path};
	struct fc_error error = {0};
	assert_int_equal(fc_log_open(&opts, &error), FC_OK);
	struct fc_log_field fields[] = {{"name_space", FC_LOG_TEXT("a\nPRIORITY=0")}, {"client", FC_LOG_COUNT(7)}};
	fc_log_write(FC_LOG_WARNING, "client-refused", fields, 2, "no");
	ssize_t count = recv(journal, got, sizeof(got) - 1, MSG_DONTWAIT);
	fc_log_close();
	assert_true(count > 0);
	got[count] = '\0';
	assert_string_equal(got, "MESSAGE=no\nPRIORITY=4\nSYSLOG_IDENTIFIER=flatcaked\nFLATCAKE_KIND=client-refused\n"
				 "FLATCAKE_NAME_SPACE=a\\x0aPRIORITY=0\nFLATCAKE_CLIENT=7\n");
	unsetenv("JOURNAL_STREAM");
	close(fds[0]);
	close(fds[1]);
	unbind_journal(path, journal);
}

static void a_journal_that_is_not_there_is_an_error_and_text_goes_on(void **state)
{
	(void)state;
	int fds[2];
	char got[512];
	assert_int_equal(pipe(fds), 0);
	struct fc_log_opts opts = {.format = FC_LOG_FORMAT_JOURNALD,
				   .level = FC_LOG_INFO,
				   .fd = fds[1],
				   .journal_path = "/nowhere/socket"};
	struct fc_error error = {0};
	assert_int_equal(fc_log_open(&opts, &error), FC_ESYSTEM);
	assert_non_null(strstr(error.text, "/nowhere/socket"));
	fc_log(FC_LOG_INFO, "heard", "all the same");
	ssize_t count = read(fds[0], got, sizeof(got) - 1);
	assert_true(count > 0);
	got[count] = '\0';
	assert_non_null(strstr(got, "info heard: all the same\n"));
	fc_log_close();
	close(fds[0]);
	close(fds[1]);
}

/* As when it is piped into a pager that nobody scrolls. */
static void a_reader_that_stops_reading_stops_nobody(void **state)
{
	(void)state;
	struct pipe_log log;
	uint64_t held_back, before, unwritten;
	open_pipe_log(&log, FC_LOG_FORMAT_TEXT, 0);
	fc_log_lost(&held_back, &before);
	for (int line = 0; line < 4000; line++) /* more than a pipe takes */
		fc_log(FC_LOG_INFO, "test", "line %d of a log that nobody reads", line);
	fc_log_lost(&held_back, &unwritten);
	assert_true(unwritten > before && unwritten < before + 4000);
	const char *text = close_pipe_log(&log);
	assert_non_null(strstr(text, "line 0 of"));
	assert_null(strstr(text, "line 3999 of"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_one_line_a_message_and_no_control_characters),
		cmocka_unit_test(json_lines_parse_and_keep_numbers),
		cmocka_unit_test(a_message_too_long_is_cut_and_says_so),
		cmocka_unit_test(a_kind_is_limited_and_what_was_held_back_is_told),
		cmocka_unit_test(journald_gets_fields_when_standard_error_is_its_stream),
		cmocka_unit_test(a_reader_that_stops_reading_stops_nobody),
		cmocka_unit_test(a_journal_that_is_not_there_is_an_error_and_text_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

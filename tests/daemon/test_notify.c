/* What the service manager is told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/notify.h"

static int manager;

static int bind_manager(void **state)
{
	(void)state;
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* an abstract name that the kernel chooses */
	socklen_t address_len = sizeof(sa_family_t);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(manager, (struct sockaddr *)(void *)&address, address_len) != 0)
		return -1;
	address_len = sizeof(address);
	if (getsockname(manager, (struct sockaddr *)(void *)&address, &address_len) != 0)
		return -1;
	char name[128] = "@";
	memcpy(name + 1, address.sun_path + 1, address_len - sizeof(sa_family_t) - 1);
	return setenv("NOTIFY_SOCKET", name, 1);
}

static int close_manager(void **state)
{
	(void)state;
	return close(manager);
}

static void expect(const char *wanted)
{
	char got[1024];
	ssize_t count = recv(manager, got, sizeof(got) - 1, MSG_DONTWAIT);
	assert_true(count >= 0);
	got[count] = '\0';
	assert_string_equal(got, wanted);
}

static void the_manager_hears_of_each_state(void **state)
{
	(void)state;
	struct fc_notify notify;
	struct fc_error error = {0};
	char pid[32];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_USEC", "30000000", 1);
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(fc_notify_open(&notify, &error), FC_OK);
	assert_int_equal(notify.watchdog_ns, 30000000000ull);
	assert_null(getenv("NOTIFY_SOCKET"));
	fc_notify_extend(&notify, 90000000000ull);
	expect("EXTEND_TIMEOUT_USEC=90000000");
	fc_notify_ready(&notify, "12 sessions\nREADY=0");
	expect("READY=1\nSTATUS=12 sessions READY=0");
	fc_notify_status(&notify, "3 clients");
	expect("STATUS=3 clients");
	fc_notify_alive(&notify);
	expect("WATCHDOG=1");
	fc_notify_stopping(&notify, "draining");
	expect("STOPPING=1\nSTATUS=draining");
	fc_notify_close(&notify);
}

static void a_watchdog_of_another_process_is_not_ours(void **state)
{
	(void)state;
	struct fc_notify notify;
	struct fc_error error = {0};
	setenv("WATCHDOG_USEC", "30000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(fc_notify_open(&notify, &error), FC_OK);
	assert_int_equal(notify.watchdog_ns, 0);
	fc_notify_close(&notify);
}

static void what_does_not_fit_is_named_and_the_notifier_is_silent(void **state)
{
	(void)state;
	struct fc_notify notify;
	struct fc_error error = {0};
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(fc_notify_open(&notify, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "WATCHDOG_USEC: \"soon\""));
	fc_notify_close(&notify);
	setenv("NOTIFY_SOCKET", "relative/path", 1);
	assert_int_equal(fc_notify_open(&notify, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "NOTIFY_SOCKET"));
	fc_notify_ready(&notify, "nobody hears");
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	assert_int_equal(fc_notify_open(&notify, &error), FC_ESYSTEM);
	fc_notify_close(&notify);
	assert_int_equal(fc_notify_open(&notify, &error), FC_OK); /* no variable, no manager */
	assert_int_equal(notify.fd, -1);
	fc_notify_ready(&notify, "nobody hears");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_manager_hears_of_each_state, bind_manager, close_manager),
		cmocka_unit_test_setup_teardown(a_watchdog_of_another_process_is_not_ours, bind_manager, close_manager),
		cmocka_unit_test(what_does_not_fit_is_named_and_the_notifier_is_silent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

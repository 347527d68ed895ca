#define _GNU_SOURCE
#include "real/alone.h"

#include "lib/hang.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define ARGUMENT "alone"

static bool is_child;

static int run_one(const struct CMUnitTest *tests, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(tests[i].name, name) == 0)
			return _cmocka_run_group_tests(name, &tests[i], 1, NULL, NULL) == 0 ? 0 : 1;
	return 1;
}

int alone_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
	if (argc == 3 && strcmp(argv[1], ARGUMENT) == 0) {
		is_child = true;
		return run_one(tests, count, argv[2]);
	}
	return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}

static void start(const char *name, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	alarm(HANG_S);
	execl("/proc/self/exe", "test", ARGUMENT, name, (char *)NULL);
	_exit(1);
}

bool is_alone(void **state)
{
	const char *name = *state;
	int status;
	if (is_child)
		return true;
	fflush(NULL);
	pid_t parent = getpid();
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		start(name, parent);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		fail_msg("%s: it has not ended after %u seconds", name, HANG_S);
	if (WIFSIGNALED(status))
		fail_msg("%s: its process died of signal %d (%s)", name, WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

void skip_alone(const char *reason)
{
	printf("skipped: %s\n", reason);
	fflush(NULL);
	_exit(SKIPPED);
}

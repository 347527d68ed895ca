/* Runs a function in a child process and tells whether a broken invariant stopped it (fc_check traps). */
#ifndef FC_TESTS_DIES_H
#define FC_TESTS_DIES_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool dies(void (*function)(void *context), void *context)
{
	pid_t child = fork();
	if (child == 0) {
		signal(SIGILL, SIG_DFL);
		signal(SIGTRAP, SIG_DFL);
		int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(quiet, STDERR_FILENO);
		function(context);
		_exit(0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}

#endif

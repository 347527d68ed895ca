#include "replay/jobs.h"

#include "base/check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void *fc_jobs_alloc(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void fc_jobs_free(void *memory, size_t bytes)
{
	if (memory != NULL)
		fc_check(munmap(memory, bytes) == 0);
}

uint64_t fc_jobs_at_once(uint64_t asked)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return asked > 0 ? asked : cores > 0 ? (uint64_t)cores : 1;
}

/* The child leaves without the parent's clean-ups, and does not outlive it. */
static pid_t start(const struct fc_jobs *jobs, size_t job)
{
	pid_t parent = getpid(), child = fork();
	if (child != 0)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	jobs->run(jobs->context, job);
	_exit(0);
}

static void note_end(const struct fc_jobs *jobs, size_t job, int status)
{
	struct fc_error error = {0};
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fc_error_set(&error, FC_ESYSTEM, "the run ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
			     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	jobs->ended(jobs->context, job, &error);
}

/* Waits until one of the `running` children has ended. */
static int wait_for_one(const struct fc_jobs *jobs, pid_t *children, struct fc_error *error)
{
	for (;;) {
		int status = 0;
		pid_t ended = wait(&status);
		if (ended < 0 && errno == EINTR)
			continue;
		if (ended < 0)
			return fc_error_set(error, FC_ESYSTEM, "wait: %s", strerror(errno));
		for (size_t job = 0; job < jobs->count; job++) {
			if (children[job] != ended)
				continue;
			children[job] = 0;
			note_end(jobs, job, status);
			return FC_OK;
		}
	}
}

int fc_jobs_run(const struct fc_jobs *jobs, struct fc_error *error)
{
	pid_t *children = calloc(jobs->count + 1, sizeof(*children));
	uint64_t at_once = fc_jobs_at_once(jobs->at_once);
	size_t started = 0, running = 0;
	if (children == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu runs", jobs->count);
	int code = FC_OK;
	while (running > 0 || (started < jobs->count && code == FC_OK)) {
		if (started < jobs->count && running < at_once && code == FC_OK) {
			size_t job = jobs->order == NULL ? started : jobs->order[started];
			children[job] = start(jobs, job);
			if (children[job] < 0) {
				code = fc_error_set(error, FC_ESYSTEM, "fork: %s", strerror(errno));
				children[job] = 0;
				continue;
			}
			started++;
			running++;
			continue;
		}
		int waited = wait_for_one(jobs, children, code == FC_OK ? error : NULL);
		if (waited != FC_OK) {
			code = waited;
			break;
		}
		running--;
	}
	free(children);
	return code;
}

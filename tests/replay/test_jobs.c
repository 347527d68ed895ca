/* Jobs in processes of their own: each runs once, in the order that is asked for, and one that dies is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replay/jobs.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define JOBS 9u

struct shared {
	_Atomic unsigned next;
	unsigned turn[JOBS]; /* when it ran, from 1; 0: never */
	unsigned runs[JOBS];
};

struct crowd {
	struct shared *shared;
	struct fc_error errors[JOBS];
	unsigned ended[JOBS];
	size_t killed; /* job that kills itself; JOBS: none */
};

static void run(void *context, size_t job)
{
	struct crowd *crowd = context;
	crowd->shared->turn[job] = atomic_fetch_add(&crowd->shared->next, 1) + 1;
	crowd->shared->runs[job]++;
	crowd->ended[job] = 99; /* in the child's memory only */
	if (job == crowd->killed)
		(void)kill(getpid(), SIGKILL);
}

static void ended(void *context, size_t job, const struct fc_error *error)
{
	struct crowd *crowd = context;
	crowd->errors[job] = *error;
	crowd->ended[job]++;
}

static void run_crowd(struct crowd *crowd, uint64_t at_once, const size_t *order)
{
	struct fc_error error = {0};
	crowd->shared = fc_jobs_alloc(sizeof(*crowd->shared));
	struct fc_jobs jobs = {
		.count = JOBS, .at_once = at_once, .order = order, .run = run, .ended = ended, .context = crowd};
	assert_int_equal(fc_jobs_run(&jobs, &error), FC_OK);
	for (size_t job = 0; job < JOBS; job++) {
		assert_int_equal(crowd->shared->runs[job], 1);
		assert_int_equal(crowd->ended[job], 1);
	}
}

static void each_job_runs_once_in_the_given_order(void **state)
{
	static const size_t order[JOBS] = {8, 0, 7, 1, 6, 2, 5, 3, 4};
	struct crowd crowd = {.killed = JOBS};
	(void)state;
	run_crowd(&crowd, 1, order);
	for (unsigned place = 0; place < JOBS; place++) {
		assert_int_equal(crowd.shared->turn[order[place]], place + 1);
		assert_int_equal(crowd.errors[place].code, FC_OK);
	}
	fc_jobs_free(crowd.shared, sizeof(*crowd.shared));
}

static void a_job_that_dies_is_told_and_the_others_go_on(void **state)
{
	struct crowd crowd = {.killed = 3};
	(void)state;
	run_crowd(&crowd, 4, NULL);
	for (size_t job = 0; job < JOBS; job++)
		assert_int_equal(crowd.errors[job].code, job == 3 ? FC_ESYSTEM : FC_OK);
	assert_string_equal(crowd.errors[3].text, "the run ended with signal 9");
	fc_jobs_free(crowd.shared, sizeof(*crowd.shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_job_runs_once_in_the_given_order),
		cmocka_unit_test(a_job_that_dies_is_told_and_the_others_go_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

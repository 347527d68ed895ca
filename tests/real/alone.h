/* A test that changes its process for good (limits, filters, namespaces) or that may die of what it does runs in a
 * process of its own, this program started again with the test's name:
 *
 *     static void a_limit_is_kept(void **state)
 *     {
 *         if (!is_alone(state))
 *             return;
 *         ... the story, with cmocka's assertions ...
 *     }
 *
 * The test outside fails when that process fails, dies of a signal, or has not ended after a minute; it is skipped,
 * with the reason printed, when the process called skip_alone(). */
#ifndef FC_TESTS_REAL_ALONE_H
#define FC_TESTS_REAL_ALONE_H

#include <stddef.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>

/* What every entry of the table looks like: the test and, as its state, its name. */
#define ALONE(test)                                                                                                    \
	{                                                                                                              \
		.name = #test, .test_func = test, .initial_state = #test                                               \
	}

/* main() calls this with its table. */
int alone_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

bool is_alone(void **state);
_Noreturn void skip_alone(const char *reason);

#endif

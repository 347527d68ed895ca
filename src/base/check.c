#include "base/check.h"

#include <stdio.h>

void fc_check_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "flatcake: broken invariant at %s:%d: %s\n", file, line, condition);
	__builtin_trap();
}

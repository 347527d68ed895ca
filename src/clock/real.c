/* The clock of production: CLOCK_MONOTONIC, which no administrator sets back. */
#include "clock/clock.h"

#include "base/check.h"

#include <time.h>

uint64_t fc_clock_real_ns(void)
{
	struct timespec now;

	fc_check(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t real_now_ns(void *context)
{
	(void)context;
	return fc_clock_real_ns();
}

struct fc_clock fc_clock_real(void)
{
	struct fc_clock clock = {.now_ns = real_now_ns, .context = NULL};
	return clock;
}

/* The clock interface: monotonic nanoseconds. Real in production, set by hand in tests and in the simulator. */
#ifndef FC_CLOCK_CLOCK_H
#define FC_CLOCK_CLOCK_H

#include <stdint.h>

struct fc_clock {
	uint64_t (*now_ns)(void *context);
	void *context;
};

static inline uint64_t fc_clock_now_ns(const struct fc_clock *clock)
{
	return clock->now_ns(clock->context);
}

/* CLOCK_MONOTONIC. */
struct fc_clock fc_clock_real(void);
/* What it says now, for those that run in real time only. */
uint64_t fc_clock_real_ns(void);

#endif

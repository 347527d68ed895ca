/* How long something was under way at all: the length of the union of intervals that overlap as they like. Bandwidth of
 * a medium is bytes over this, so that idle times do not count against it and parallel reads not twice. */
#ifndef FC_REPLAY_BUSY_H
#define FC_REPLAY_BUSY_H

#include <stdint.h>

struct fc_interval {
	uint64_t start_ns, end_ns;
};

struct fc_busy {
	struct fc_interval *intervals; /* the owner's */
	uint64_t count;
};

static inline void fc_busy_add(struct fc_busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	busy->intervals[busy->count++] = (struct fc_interval){start_ns, end_ns};
}

/* Sorts the intervals. */
uint64_t fc_busy_ns(struct fc_busy *busy);

#endif

#include "replay/busy.h"

#include "base/check.h"

#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
	const struct fc_interval *first = a, *second = b;
	return (first->start_ns > second->start_ns) - (first->start_ns < second->start_ns);
}

uint64_t fc_busy_ns(struct fc_busy *busy)
{
	uint64_t total_ns = 0, reached_ns = 0;
	if (busy->count > 0)
		qsort(busy->intervals, busy->count, sizeof(*busy->intervals), by_start);
	for (uint64_t i = 0; i < busy->count; i++) {
		uint64_t start_ns = fc_max_u64(busy->intervals[i].start_ns, reached_ns);
		uint64_t end_ns = busy->intervals[i].end_ns;
		if (end_ns <= start_ns)
			continue;
		total_ns += end_ns - start_ns;
		reached_ns = end_ns;
	}
	return total_ns;
}

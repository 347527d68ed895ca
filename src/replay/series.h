/* Amounts over time in a fixed number of equal intervals, which double in length when time outgrows them. */
#ifndef FC_REPLAY_SERIES_H
#define FC_REPLAY_SERIES_H

#include <stdint.h>

#define FC_SERIES_INTERVALS 256

struct fc_series {
	uint64_t interval_ns; /* 0: nothing was added yet */
	uint64_t amounts[FC_SERIES_INTERVALS];
};

void fc_series_add(struct fc_series *series, uint64_t at_ns, uint64_t amount);

#endif

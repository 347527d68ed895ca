#include "replay/series.h"

#define FIRST_INTERVAL_NS 1000000ull

void fc_series_add(struct fc_series *series, uint64_t at_ns, uint64_t amount)
{
	if (series->interval_ns == 0)
		series->interval_ns = FIRST_INTERVAL_NS;
	while (at_ns / series->interval_ns >= FC_SERIES_INTERVALS) {
		for (int i = 0; i < FC_SERIES_INTERVALS / 2; i++)
			series->amounts[i] = series->amounts[2 * i] + series->amounts[2 * i + 1];
		for (int i = FC_SERIES_INTERVALS / 2; i < FC_SERIES_INTERVALS; i++)
			series->amounts[i] = 0;
		series->interval_ns *= 2;
	}
	series->amounts[at_ns / series->interval_ns] += amount;
}

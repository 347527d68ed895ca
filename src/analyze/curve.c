/* See curve.h. */
#include "analyze/curve.h"

#include "base/check.h"

#include <stdlib.h>

int fc_curve_init(struct fc_curve *curve, uint64_t size_max)
{
	*curve = (struct fc_curve){.size_max = size_max};
	curve->hits = calloc(size_max + 2, sizeof(*curve->hits));
	return curve->hits != NULL ? 0 : FC_ENOMEM;
}

void fc_curve_deinit(struct fc_curve *curve)
{
	free(curve->hits);
	*curve = (struct fc_curve){0};
}

void fc_curve_add(struct fc_curve *curve, uint64_t above, uint64_t count)
{
	if (count == 0)
		return;
	fc_check(above + count <= curve->size_max);
	curve->hits[above + 1]++;
	curve->hits[above + count + 1]--;
	curve->distance_sum += (unsigned __int128)above * count + (unsigned __int128)count * (count + 1) / 2;
}

void fc_curve_finish(struct fc_curve *curve, uint64_t size_max)
{
	uint64_t at_distance = 0, hits = 0;
	fc_check(size_max <= curve->size_max);
	curve->size_max = size_max;
	for (uint64_t size = 0; size <= size_max; size++) {
		at_distance += curve->hits[size];
		hits += at_distance;
		curve->hits[size] = hits;
	}
}

uint64_t fc_curve_size(const struct fc_curve *curve, uint64_t hits)
{
	uint64_t low = 0, high = curve->size_max;
	fc_check(hits <= curve->hits[high]);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (curve->hits[middle] >= hits)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

#include "replay/policy/lru.h"

#include <stdlib.h>
#include <string.h>

int fc_lru_init(struct fc_lru *lru, uint64_t bound)
{
	*lru = (struct fc_lru){0};
	if (bound >= FC_LRU_ABSENT)
		return FC_ELIMIT;
	lru->bound = (uint32_t)bound;
	lru->next = malloc((bound + 1) * sizeof(*lru->next));
	lru->prev = malloc((bound + 1) * sizeof(*lru->prev));
	if (lru->next == NULL || lru->prev == NULL) {
		fc_lru_deinit(lru);
		return FC_ENOMEM;
	}
	memset(lru->next, 0xff, (bound + 1) * sizeof(*lru->next));
	lru->next[bound] = lru->prev[bound] = lru->bound;
	return FC_OK;
}

void fc_lru_deinit(struct fc_lru *lru)
{
	free(lru->next);
	free(lru->prev);
	*lru = (struct fc_lru){0};
}

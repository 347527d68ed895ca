/* A set of numbered things in the order of their last use: what tiered caches keep in DRAM and on disk.
 *
 * Numbers are below a bound that is known, so links lie in arrays and nothing is looked up. Things are all of one size;
 * whoever owns the set knows it. */
#ifndef FC_REPLAY_POLICY_LRU_H
#define FC_REPLAY_POLICY_LRU_H

#include "base/check.h"
#include "base/error.h"

#define FC_LRU_ABSENT UINT32_MAX

struct fc_lru {
	uint32_t *next,
		*prev; /* next is FC_LRU_ABSENT where the number is not in the set; [bound] is the ring's head */
	uint32_t bound;
	uint64_t count;
};

/* Room for the numbers below `bound`. FC_ENOMEM, FC_ELIMIT. */
FC_MUST_USE int fc_lru_init(struct fc_lru *lru, uint64_t bound);
void fc_lru_deinit(struct fc_lru *lru);

static inline bool fc_lru_has(const struct fc_lru *lru, uint32_t number)
{
	return lru->next[number] != FC_LRU_ABSENT;
}

static inline void fc_lru_remove(struct fc_lru *lru, uint32_t number)
{
	if (!fc_lru_has(lru, number))
		return;
	lru->next[lru->prev[number]] = lru->next[number];
	lru->prev[lru->next[number]] = lru->prev[number];
	lru->next[number] = FC_LRU_ABSENT;
	lru->count--;
}

/* Adds the number, or moves it, as the last one used. */
static inline void fc_lru_use(struct fc_lru *lru, uint32_t number)
{
	fc_lru_remove(lru, number);
	uint32_t last = lru->prev[lru->bound];
	lru->next[number] = lru->bound;
	lru->prev[number] = last;
	lru->next[last] = lru->prev[lru->bound] = number;
	lru->count++;
}

/* The one used longest ago; FC_LRU_ABSENT when the set is empty. */
static inline uint32_t fc_lru_oldest(const struct fc_lru *lru)
{
	uint32_t oldest = lru->next[lru->bound];
	return oldest == lru->bound ? FC_LRU_ABSENT : oldest;
}

/* The one used next after this one, which is in the set; FC_LRU_ABSENT: it is the last. */
static inline uint32_t fc_lru_next(const struct fc_lru *lru, uint32_t number)
{
	uint32_t next = lru->next[number];
	return next == lru->bound ? FC_LRU_ABSENT : next;
}

#endif

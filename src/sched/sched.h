/* FC-MAS: two queues, so that a big read from SSD does not hold up a small copy from memory (article, section FC-MAS;
 * design 2.2).
 *
 *                      all in memory
 *     arrival ------------------------------------------> READY, by arrival time --> take
 *        |                                                  ^
 *        '-- some on SSD --> PREPARE, by priority --> read -'   (re-enters by its original arrival)
 *
 *     priority = 1 + wait / size          wait in seconds since arrival, size in GiB to be read from SSD
 *
 * Highest first: small reads go first, and a large one rises as it waits, so nothing starves. With size_i > size_j, i
 * is served before j once wait_i / wait_j > size_i / size_j; ties go to the earlier arrival. A full window makes the
 * next read wait; nothing is cancelled for want of a buffer.
 *
 * Pure: the caller brings the time. Both queues are intrusive and take no memory. */
#ifndef FC_SCHED_SCHED_H
#define FC_SCHED_SCHED_H

#include "base/check.h"
#include "base/list.h"

struct fc_sched_item {
	struct fc_link link;
	uint64_t arrival_ns;
	uint64_t sequence; /* of submission: order among equal arrivals */
	uint64_t ssd_bytes;
};

struct fc_sched {
	struct fc_link ready;
	struct fc_link prepare;
	uint64_t ready_length, prepare_length;
	uint64_t next_sequence;
};

void fc_sched_init(struct fc_sched *sched);

/* Numbers the item; call once, before it enters a queue for the first time. */
void fc_sched_number(struct fc_sched *sched, struct fc_sched_item *item);

void fc_sched_add_ready(struct fc_sched *sched, struct fc_sched_item *item);
void fc_sched_add_prepare(struct fc_sched *sched, struct fc_sched_item *item);

/* Takes the item to be read next of those that are no larger, or NULL. */
struct fc_sched_item *fc_sched_take_prepare(struct fc_sched *sched, uint64_t now_ns, uint64_t bytes_max);
/* Takes the ready item that arrived first, or NULL. */
struct fc_sched_item *fc_sched_take_ready(struct fc_sched *sched);

void fc_sched_remove_ready(struct fc_sched *sched, struct fc_sched_item *item);
void fc_sched_remove_prepare(struct fc_sched *sched, struct fc_sched_item *item);

/* Whether `a` is read before `b`: in the prepare queue, and at the gate (gate.h). */
bool fc_sched_goes_before(const struct fc_sched_item *a, const struct fc_sched_item *b, uint64_t now_ns);

/* The number itself, for people: 1 + seconds / GiB. */
double fc_sched_priority(const struct fc_sched_item *item, uint64_t now_ns);

#endif

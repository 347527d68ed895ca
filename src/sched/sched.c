#include "sched/sched.h"

#include "base/plant.h"

#define NS_PER_S 1e9
#define BYTES_PER_GIB 1073741824.0

void fc_sched_init(struct fc_sched *sched)
{
	*sched = (struct fc_sched){0};
	fc_list_init(&sched->ready);
	fc_list_init(&sched->prepare);
}

void fc_sched_number(struct fc_sched *sched, struct fc_sched_item *item)
{
	item->sequence = sched->next_sequence++;
}

static struct fc_sched_item *item_of(struct fc_link *link)
{
	return fc_container_of(link, struct fc_sched_item, link);
}

static bool arrived_before(const struct fc_sched_item *a, const struct fc_sched_item *b)
{
	return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->sequence < b->sequence;
}

void fc_sched_add_ready(struct fc_sched *sched, struct fc_sched_item *item)
{
	/* Most arrive in order: look for the place from the tail. */
	struct fc_link *after = sched->ready.prev;
	while (after != &sched->ready && arrived_before(item, item_of(after)) && !fc_is_planted(FC_PLANT_READY_AT_TAIL))
		after = after->prev;
	fc_list_insert_before(after->next, &item->link);
	sched->ready_length++;
}

void fc_sched_add_prepare(struct fc_sched *sched, struct fc_sched_item *item)
{
	fc_check(item->ssd_bytes > 0);
	fc_list_push(&sched->prepare, &item->link);
	sched->prepare_length++;
}

static uint64_t wait_of(const struct fc_sched_item *item, uint64_t now_ns)
{
	return now_ns > item->arrival_ns ? now_ns - item->arrival_ns : 0;
}

/* Compares wait_a / size_a with wait_b / size_b without rounding. */
bool fc_sched_goes_before(const struct fc_sched_item *a, const struct fc_sched_item *b, uint64_t now_ns)
{
	unsigned __int128 left = (unsigned __int128)wait_of(a, now_ns) * b->ssd_bytes;
	unsigned __int128 right = (unsigned __int128)wait_of(b, now_ns) * a->ssd_bytes;
	return left != right ? left > right : arrived_before(a, b);
}

struct fc_sched_item *fc_sched_take_prepare(struct fc_sched *sched, uint64_t now_ns, uint64_t bytes_max)
{
	/* Priorities cross as time passes, so there is no order to keep; the queue is as long as requests_max at most.
	 */
	struct fc_sched_item *best = NULL;
	fc_list_for_each(link, &sched->prepare)
	{
		struct fc_sched_item *item = item_of(link);
		if (item->ssd_bytes > bytes_max)
			continue;
		if (best == NULL ||
		    (fc_sched_goes_before(item, best, now_ns) && !fc_is_planted(FC_PLANT_PREPARE_IN_ORDER)))
			best = item;
	}
	if (best != NULL)
		fc_sched_remove_prepare(sched, best);
	return best;
}

struct fc_sched_item *fc_sched_take_ready(struct fc_sched *sched)
{
	if (fc_list_is_empty(&sched->ready))
		return NULL;
	struct fc_sched_item *first = item_of(sched->ready.next);
	fc_sched_remove_ready(sched, first);
	return first;
}

void fc_sched_remove_ready(struct fc_sched *sched, struct fc_sched_item *item)
{
	fc_list_remove(&item->link);
	sched->ready_length--;
}

void fc_sched_remove_prepare(struct fc_sched *sched, struct fc_sched_item *item)
{
	fc_list_remove(&item->link);
	sched->prepare_length--;
}

double fc_sched_priority(const struct fc_sched_item *item, uint64_t now_ns)
{
	return 1.0 + ((double)wait_of(item, now_ns) / NS_PER_S) / ((double)item->ssd_bytes / BYTES_PER_GIB);
}

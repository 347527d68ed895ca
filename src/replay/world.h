/* The simulation's virtual time: a heap of things that will happen.
 *
 * Whoever waits for a moment embeds a fc_world_event. Events of one moment fire in the order in which they were
 * scheduled, so a run is a function of its inputs alone. Nothing here knows what happens. One thread. */
#ifndef FC_REPLAY_WORLD_H
#define FC_REPLAY_WORLD_H

#include "base/heap.h"
#include "clock/clock.h"

struct fc_world_event {
	struct fc_heap_node node;
	uint64_t due_ns;
	uint64_t sequence; /* of scheduling */
	void (*fire)(struct fc_world_event *event);
};

struct fc_world {
	uint64_t now_ns;
	uint64_t next_sequence;
	struct fc_heap events;
};

/* FC_ENOMEM. */
FC_MUST_USE int fc_world_init(struct fc_world *world);
void fc_world_deinit(struct fc_world *world);

/* Makes the event fire at `due_ns`, or now if that has passed; one that is scheduled already is moved. */
void fc_world_at(struct fc_world *world, struct fc_world_event *event, uint64_t due_ns);
void fc_world_cancel(struct fc_world *world, struct fc_world_event *event);

static inline bool fc_world_is_scheduled(const struct fc_world *world, const struct fc_world_event *event)
{
	return fc_heap_contains(&world->events, &event->node);
}

/* Moves time to the next event and fires it; false when nothing will ever happen. */
bool fc_world_step(struct fc_world *world);

/* The same time for those who know clocks. */
struct fc_clock fc_world_clock(struct fc_world *world);

#endif

#include "replay/world.h"

#include "host/alloc.h"

/* Scheduled at once; each request, command and batch under way has one. Only what is used takes memory. */
#define EVENTS_MAX (1ull << 20)

static bool comes_before(const struct fc_heap_node *a, const struct fc_heap_node *b, void *context)
{
	const struct fc_world_event *first = fc_container_of(a, struct fc_world_event, node);
	const struct fc_world_event *second = fc_container_of(b, struct fc_world_event, node);
	(void)context;
	return first->due_ns != second->due_ns ? first->due_ns < second->due_ns : first->sequence < second->sequence;
}

int fc_world_init(struct fc_world *world)
{
	struct fc_alloc alloc = fc_alloc_system();
	*world = (struct fc_world){0};
	return fc_heap_init(&world->events, &alloc, EVENTS_MAX, comes_before, NULL);
}

void fc_world_deinit(struct fc_world *world)
{
	fc_heap_deinit(&world->events);
}

void fc_world_at(struct fc_world *world, struct fc_world_event *event, uint64_t due_ns)
{
	fc_heap_remove(&world->events, &event->node);
	event->due_ns = fc_max_u64(due_ns, world->now_ns);
	event->sequence = world->next_sequence++;
	fc_check(fc_heap_push(&world->events, &event->node) == FC_OK);
}

void fc_world_cancel(struct fc_world *world, struct fc_world_event *event)
{
	fc_heap_remove(&world->events, &event->node);
}

bool fc_world_step(struct fc_world *world)
{
	struct fc_heap_node *node = fc_heap_pop(&world->events);
	if (node == NULL)
		return false;
	struct fc_world_event *event = fc_container_of(node, struct fc_world_event, node);
	world->now_ns = event->due_ns;
	event->fire(event);
	return true;
}

static uint64_t world_now_ns(void *context)
{
	return ((const struct fc_world *)context)->now_ns;
}

struct fc_clock fc_world_clock(struct fc_world *world)
{
	return (struct fc_clock){.now_ns = world_now_ns, .context = world};
}

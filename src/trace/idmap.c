/* See idmap.h. Ids from files may be chosen to collide, so the hash mixes all bits; a table that is at most half full
 * keeps probe sequences short for any that are not made against this very function. */
#include "trace/idmap.h"

#include "base/check.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOT_COUNT 1024

static struct fc_idmap_slot *slot_of(const struct fc_idmap *map, uint64_t id)
{
	uint64_t state = id;
	uint64_t at = fc_random_split(&state) & (map->slot_count - 1);
	while (map->slots[at].is_used && map->slots[at].id != id)
		at = (at + 1) & (map->slot_count - 1);
	return &map->slots[at];
}

static int grow(struct fc_idmap *map)
{
	struct fc_idmap larger = {.slot_count = map->slot_count == 0 ? FIRST_SLOT_COUNT : map->slot_count * 2,
				  .used_count = map->used_count};
	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (larger.slots == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < map->slot_count; i++) {
		if (map->slots[i].is_used)
			*slot_of(&larger, map->slots[i].id) = map->slots[i];
	}
	free(map->slots);
	*map = larger;
	return 0;
}

int fc_idmap_enter(struct fc_idmap *map, uint64_t id, uint32_t *number, bool *is_new)
{
	if (map->used_count * 2 >= map->slot_count && grow(map) != 0)
		return FC_ENOMEM;
	struct fc_idmap_slot *slot = slot_of(map, id);
	*is_new = !slot->is_used;
	if (*is_new) {
		*slot = (struct fc_idmap_slot){.id = id, .number = *number, .is_used = 1};
		map->used_count++;
	}
	*number = slot->number;
	return 0;
}

void fc_idmap_clear(struct fc_idmap *map)
{
	if (map->used_count > 0)
		memset(map->slots, 0, map->slot_count * sizeof(*map->slots));
	map->used_count = 0;
}

void fc_idmap_deinit(struct fc_idmap *map)
{
	free(map->slots);
	*map = (struct fc_idmap){0};
}

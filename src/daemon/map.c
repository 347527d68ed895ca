/* The map: one walk over the segments writes the list; sessions get their numbers from a table of ids that grows by
 * doubling. */
#include "daemon/status.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

struct slot {
	struct fc_session_id id;
	uint32_t number; /* plus 1; 0: empty */
};

struct map {
	struct fc_text segments, sessions;
	int arena_number[FC_MEDIUM_COUNT];
	struct slot *slots;
	size_t slot_count; /* a power of two, at least twice the sessions */
	uint32_t session_count;
	bool is_out_of_memory;
};

static struct slot *find_slot(struct slot *slots, size_t slot_count, struct fc_session_id id)
{
	size_t at = (size_t)((id.low ^ id.high) * 0x9e3779b97f4a7c15ull >> 20) & (slot_count - 1);
	while (slots[at].number != 0 && (slots[at].id.high != id.high || slots[at].id.low != id.low))
		at = (at + 1) & (slot_count - 1);
	return &slots[at];
}

static bool grow(struct map *map)
{
	size_t slot_count = map->slot_count == 0 ? 1024 : map->slot_count * 2;
	struct slot *slots = calloc(slot_count, sizeof(*slots));
	map->is_out_of_memory = slots == NULL;
	if (slots == NULL)
		return false;
	for (size_t at = 0; at < map->slot_count; at++)
		if (map->slots[at].number != 0)
			*find_slot(slots, slot_count, map->slots[at].id) = map->slots[at];
	free(map->slots);
	map->slots = slots;
	map->slot_count = slot_count;
	return true;
}

/* Index in the list of sessions, added to it when it is new. Call with room for one more. */
static uint32_t session_number(struct map *map, struct fc_session_id id)
{
	struct slot *slot = find_slot(map->slots, map->slot_count, id);
	if (slot->number == 0) {
		fc_text_addf(&map->sessions, "%s\"%016" PRIx64 "%016" PRIx64 "\"", map->session_count > 0 ? "," : "",
			     id.high, id.low);
		*slot = (struct slot){id, ++map->session_count};
	}
	return slot->number - 1;
}

static bool add_segment(void *context, const struct fc_segment_info *info)
{
	struct map *map = context;
	enum fc_medium medium = fc_gva_medium(info->placed.base);
	if (map->session_count * 2 >= map->slot_count && !grow(map))
		return false;
	fc_check(medium == FC_MEMORY || medium == FC_SSD);
	if (map->segments.used > 0)
		fc_text_add(&map->segments, ",");
	fc_text_add_number(&map->segments, (uint64_t)map->arena_number[medium], ',');
	fc_text_add_number(&map->segments, fc_gva_offset(info->placed.base), ',');
	fc_text_add_number(&map->segments, info->bytes, ',');
	if (info->is_kept)
		fc_text_add_number(&map->segments, session_number(map, info->session), ',');
	else
		fc_text_add(&map->segments, "-1,");
	fc_text_add(&map->segments, info->is_kept ? "1" : "0");
	return true;
}

static void add_arenas(struct fc_text *text, struct map *map, const struct fc_daemon_view *view)
{
	int number = 0;
	fc_text_add(text, "{\"arenas\":[");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		if (!view->arenas[medium].is_there)
			continue;
		map->arena_number[medium] = number;
		fc_text_addf(text, "%s{\"medium\":\"%s\",\"bytes\":%" PRIu64 ",\"chunk_bytes\":%" PRIu64 "}",
			     number > 0 ? "," : "", fc_medium_text((enum fc_medium)medium), view->arenas[medium].bytes,
			     view->arenas[medium].chunk_bytes);
		number++;
	}
	fc_text_add(text, "],\"sessions\":[");
}

void fc_status_map(struct fc_text *text, const struct fc_daemon_callbacks *callbacks, const struct fc_daemon_view *view)
{
	struct map map = {.slots = NULL};
	add_arenas(text, &map, view);
	callbacks->segments(callbacks->context, add_segment, &map);
	fc_text_add(text, map.sessions.used > 0 ? map.sessions.bytes : "");
	fc_text_add(text, "],\"segments\":[");
	fc_text_add(text, map.segments.used > 0 ? map.segments.bytes : "");
	fc_text_add(text, "]}");
	text->is_out_of_memory |=
		map.is_out_of_memory || map.sessions.is_out_of_memory || map.segments.is_out_of_memory;
	free(map.slots);
	fc_text_deinit(&map.sessions);
	fc_text_deinit(&map.segments);
}

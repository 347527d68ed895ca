/* Segments: their memory, their chunks, and which of their entries the index names.
 *
 * A segment struct, its ranges and its keys are one piece of memory, so that a segment comes and goes with one
 * allocation. The number of a segment is its place in catalog->segments and what the index stores; numbers are reused.
 */
#include "catalog/state.h"

#include "base/plant.h"

#include <string.h>

#define SEGMENTS_FIRST_ROOM 1024u

static int grow_numbers(struct fc_catalog *catalog)
{
	uint32_t room = catalog->segment_room == 0 ? SEGMENTS_FIRST_ROOM : catalog->segment_room * 2;
	if (room >= FC_SEGMENT_NONE / 2)
		return FC_ELIMIT;
	uint32_t *numbers = fc_alloc_zeroed(catalog->alloc, room * sizeof(*numbers));
	struct fc_segment **segments = fc_alloc_zeroed(catalog->alloc, room * sizeof(*segments));
	if (numbers == NULL || segments == NULL) {
		fc_alloc_free(catalog->alloc, numbers, room * sizeof(*numbers));
		fc_alloc_free(catalog->alloc, segments, room * sizeof(*segments));
		return FC_ENOMEM;
	}
	if (catalog->segment_room > 0) {
		memcpy(numbers, catalog->free_numbers, catalog->free_number_count * sizeof(*numbers));
		memcpy(segments, catalog->segments, catalog->segment_top * sizeof(*segments));
	}
	fc_alloc_free(catalog->alloc, catalog->free_numbers, catalog->segment_room * sizeof(*numbers));
	fc_alloc_free(catalog->alloc, catalog->segments, catalog->segment_room * sizeof(*segments));
	catalog->free_numbers = numbers;
	catalog->segments = segments;
	catalog->segment_room = room;
	return FC_OK;
}

static int take_number(struct fc_catalog *catalog, uint32_t *number)
{
	if (catalog->free_number_count > 0) {
		*number = catalog->free_numbers[--catalog->free_number_count];
		return FC_OK;
	}
	if (catalog->segment_top == catalog->segment_room) {
		int code = grow_numbers(catalog);
		if (code != FC_OK)
			return code;
	}
	*number = catalog->segment_top++;
	return FC_OK;
}

int fc_segment_new(struct fc_catalog *catalog, enum fc_medium medium, const struct fc_shape *shape,
		   struct fc_segment **result)
{
	size_t keys_at = fc_align_up(sizeof(struct fc_segment) + shape->range_count * sizeof(struct fc_range), 16);
	size_t bytes = keys_at + shape->entry_count * sizeof(struct fc_key);
	struct fc_segment *segment = fc_alloc_zeroed(catalog->alloc, bytes);
	if (segment == NULL)
		return FC_ENOMEM;
	segment->allocated_bytes = bytes;
	segment->state = FC_SEGMENT_RESERVED;
	segment->medium = medium;
	segment->shape = *shape;
	segment->shape.ranges = (struct fc_range *)(segment + 1);
	memcpy(segment->shape.ranges, shape->ranges, shape->range_count * sizeof(struct fc_range));
	segment->keys = (struct fc_key *)(void *)((uint8_t *)segment + keys_at);
	segment->chunk_first = FC_CHUNK_NONE;
	segment->sound_blocks = UINT64_MAX;
	segment->are_resume_blocks_sound = true;
	fc_list_init(&segment->pinned);
	int code = take_number(catalog, &segment->number);
	if (code == FC_OK) {
		catalog->segments[segment->number] = segment;
		code = fc_index_segment_set(&catalog->index, segment->number, segment->keys);
		if (code != FC_OK) {
			catalog->segments[segment->number] = NULL;
			catalog->free_numbers[catalog->free_number_count++] = segment->number;
		}
	}
	if (code != FC_OK) {
		fc_alloc_free(catalog->alloc, segment, bytes);
		return code;
	}
	catalog->key_bytes += shape->entry_count * sizeof(struct fc_key);
	*result = segment;
	return FC_OK;
}

/* More of it in its arena, and of what its owner has there; less by differences that wrap. */
static void hold(struct fc_catalog *catalog, const struct fc_segment *segment, struct fc_holdings more)
{
	struct fc_holdings *of_owner = segment->owner == NULL ? NULL : &segment->owner->held[segment->medium];
	struct fc_holdings *each[] = {&catalog->arenas[segment->medium].held, of_owner};
	for (size_t i = 0; i < fc_array_len(each) && each[i] != NULL; i++) {
		each[i]->chunks_used += more.chunks_used;
		each[i]->bytes_stored += more.bytes_stored;
		each[i]->blocks_named += more.blocks_named;
		each[i]->segment_count += more.segment_count;
		each[i]->seam_count += more.seam_count;
		each[i]->session_count += more.session_count;
	}
}

void fc_segment_delete(struct fc_catalog *catalog, struct fc_segment *segment)
{
	fc_check(segment->named_count == 0 && segment->lease_count == 0 && !segment->is_committing);
	fc_check(fc_list_is_empty(&segment->pinned));
	if (segment->chunk_first != FC_CHUNK_NONE) {
		struct fc_arena *arena = &catalog->arenas[segment->medium];
		arena->owner[segment->chunk_first] = 0;
		arena->ender[segment->chunk_first + segment->chunk_count - 1] = 0;
		fc_space_give(&arena->space, segment->chunk_first, segment->chunk_count);
		hold(catalog, segment,
		     (struct fc_holdings){.chunks_used = (fc_is_planted(FC_PLANT_CHUNK_COUNT) ? 1 : 0) -
							 segment->chunk_count});
		if (segment->state == FC_SEGMENT_RETIRED)
			arena->chunks_leaving -= segment->chunk_count;
		if (segment->owner != NULL) {
			segment->owner->bytes_used -= fc_segment_bytes(catalog, segment);
			if (segment->state == FC_SEGMENT_RETIRED)
				segment->owner->bytes_leaving -= fc_segment_bytes(catalog, segment);
		}
	}
	fc_segment_unpin(segment);
	fc_commit_forget(catalog, segment);
	fc_index_segment_clear(&catalog->index, segment->number);
	catalog->key_bytes -= segment->shape.entry_count * sizeof(struct fc_key);
	catalog->segments[segment->number] = NULL;
	catalog->free_numbers[catalog->free_number_count++] = segment->number;
	fc_alloc_free(catalog->alloc, segment, segment->allocated_bytes);
}

void fc_segment_assign(struct fc_segment *segment, struct fc_session *session)
{
	segment->session = session;
	segment->session_id = session->id;
	segment->session_kind = session->kind;
	segment->owner = session->owner;
}

/* The chunk behind the session's newest segment on this medium: where its extent would grow. */
static uint64_t growing_end(const struct fc_session *session, enum fc_medium medium)
{
	for (struct fc_link *link = session->segments.prev; link != &session->segments; link = link->prev) {
		const struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->medium == medium)
			return segment->chunk_first + segment->chunk_count;
	}
	return FC_CHUNK_NONE;
}

int fc_segment_place(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	uint64_t near = segment->session == NULL ? FC_CHUNK_NONE : growing_end(segment->session, segment->medium);
	uint64_t first;
	int code = fc_space_place(&arena->space, segment->chunk_count, near, &first);
	if (code != FC_OK)
		return code;
	segment->chunk_first = first;
	segment->seq = arena->next_seq++;
	fc_segment_own_chunks(catalog, segment);
	return FC_OK;
}

void fc_segment_own_chunks(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	fc_space_take(&arena->space, segment->chunk_first, segment->chunk_count);
	arena->owner[segment->chunk_first] = segment->number + 1;
	arena->ender[segment->chunk_first + segment->chunk_count - 1] = segment->number + 1;
	hold(catalog, segment, (struct fc_holdings){.chunks_used = segment->chunk_count});
	if (segment->owner != NULL)
		segment->owner->bytes_used += fc_segment_bytes(catalog, segment);
}

/* ---- neighbours ---- */

static bool has_seam(const struct fc_catalog *catalog, uint32_t before, uint32_t behind)
{
	if (before == 0 || behind == 0)
		return false;
	const struct fc_segment *first = catalog->segments[before - 1], *second = catalog->segments[behind - 1];
	return fc_link_is_linked(&first->session_link) && fc_link_is_linked(&second->session_link) &&
	       first->session == second->session;
}

bool fc_segment_has_seam(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	const struct fc_arena *arena = &catalog->arenas[segment->medium];
	uint64_t behind = segment->chunk_first + segment->chunk_count;
	return behind < arena->chunk_count && has_seam(catalog, segment->number + 1, arena->owner[behind]);
}

/* On both sides of it, as long as it is linked. */
static uint64_t count_seams(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	const struct fc_arena *arena = &catalog->arenas[segment->medium];
	uint64_t first = segment->chunk_first;
	bool has_one_before = first > 0 && has_seam(catalog, arena->ender[first - 1], segment->number + 1);
	return fc_segment_has_seam(catalog, segment) + has_one_before;
}

/* ---- in a session ---- */

void fc_segment_adopt(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_session *session)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	fc_check(segment->session == session);
	fc_list_push(&session->segments, &segment->session_link);
	bool is_first = session->segment_count[segment->medium]++ == 0;
	session->backup_count += segment->is_backup;
	hold(catalog, segment,
	     (struct fc_holdings){
		     .segment_count = 1,
		     .seam_count = count_seams(catalog, segment),
		     .session_count = is_first,
	     });
	arena->chunks_linked += segment->chunk_count;
	session->chunks[segment->medium] += segment->chunk_count;
	fc_reclaim_segments_changed(catalog, session);
}

void fc_segment_set_backup(struct fc_catalog *catalog, struct fc_segment *segment, bool is_backup)
{
	if (segment->is_backup == is_backup)
		return;
	segment->is_backup = is_backup;
	segment->session->backup_count += is_backup ? 1 : UINT64_MAX;
	fc_reclaim_segments_changed(catalog, segment->session);
}

static void count_named(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry, int sign)
{
	uint64_t bytes = catalog->block_bytes[fc_shape_range_of(&segment->shape, entry)->group];
	uint64_t one = (uint64_t)(int64_t)sign;
	segment->named_count += one;
	hold(catalog, segment, (struct fc_holdings){.blocks_named = one, .bytes_stored = one * bytes});
}

bool fc_segment_is_sound(const struct fc_catalog *catalog, const struct fc_segment *segment, uint64_t entry)
{
	const struct fc_range *range = fc_shape_range_of(&segment->shape, entry);
	if (catalog->geometry.groups[range->group].rule != FC_RULE_ALL)
		return segment->are_resume_blocks_sound;
	uint64_t block = range->block_first + (entry - range->entry_first);
	uint64_t span = fc_group_span(&catalog->geometry, range->group);
	return block * span >= segment->sound_from && (block + 1) * span <= segment->sound_blocks;
}

bool fc_segment_has_unnamed(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		if (fc_segment_is_sound(catalog, segment, entry) &&
		    fc_location_is_none(fc_index_find(&catalog->index, segment->keys[entry])))
			return true;
	return false;
}

void fc_segment_spoil(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t path_block,
		      bool are_resume_blocks_spoiled)
{
	segment->sound_blocks = fc_min_u64(segment->sound_blocks, path_block);
	segment->are_resume_blocks_sound &= !are_resume_blocks_spoiled;
	if (segment->is_backup && fc_segment_is_linked(segment))
		fc_reclaim_segments_changed(catalog, segment->session);
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		if (!fc_segment_is_sound(catalog, segment, entry))
			fc_segment_unname(catalog, segment, entry);
}

int fc_segment_name(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry, bool replace)
{
	struct fc_key key = segment->keys[entry];
	struct fc_location here = {segment->number, (uint32_t)entry};
	struct fc_location old = fc_index_find(&catalog->index, key);
	if (!fc_segment_is_sound(catalog, segment, entry))
		return FC_OK;
	if (fc_location_is_none(old)) {
		int code = fc_index_insert(&catalog->index, key, here);
		if (code != FC_OK)
			return code;
	} else {
		if (!replace || old.segment == segment->number)
			return FC_OK;
		fc_index_replace(&catalog->index, key, here);
		count_named(catalog, catalog->segments[old.segment], old.entry, -1);
	}
	count_named(catalog, segment, entry, 1);
	return FC_OK;
}

void fc_segment_unname(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry)
{
	struct fc_location here = {segment->number, (uint32_t)entry};
	if (fc_index_remove(&catalog->index, segment->keys[entry], here))
		count_named(catalog, segment, entry, -1);
}

bool fc_segment_is_orphan(const struct fc_catalog *catalog, const struct fc_segment *segment)
{
	return segment->start_block > 0 && fc_location_is_none(fc_index_find(&catalog->index, segment->parent));
}

bool fc_segment_is_named(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry)
{
	struct fc_location found = fc_index_find(&catalog->index, segment->keys[entry]);
	return found.segment == segment->number && found.entry == entry;
}

static void unlink_from_session(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_session *session = segment->session;
	uint64_t seams = count_seams(catalog, segment);
	fc_list_remove(&segment->session_link);
	fc_list_remove(&segment->spare_link);
	bool is_last = --session->segment_count[segment->medium] == 0;
	if (is_last && segment->medium == FC_MEMORY)
		fc_list_remove(&session->spill_link);
	session->backup_count -= segment->is_backup;
	hold(catalog, segment,
	     (struct fc_holdings){
		     .segment_count = UINT64_MAX,
		     .seam_count = 0 - seams,
		     .session_count = is_last ? UINT64_MAX : 0,
	     });
	if (fc_is_planted(FC_PLANT_KEPT_PART) && segment->owner != NULL)
		segment->owner->held[segment->medium].segment_count++;
	catalog->arenas[segment->medium].chunks_linked -= segment->chunk_count;
	session->chunks[segment->medium] -= segment->chunk_count;
	fc_reclaim_segments_changed(catalog, session);
}

void fc_segment_pin(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_segment *by)
{
	fc_list_push(&by->pinned, &segment->pin_link);
	fc_list_push(&catalog->pins, &segment->pins_link);
}

void fc_segment_unpin(struct fc_segment *segment)
{
	fc_list_remove(&segment->pin_link);
	fc_list_remove(&segment->pins_link);
}

void fc_segment_release_pinned(struct fc_catalog *catalog, struct fc_segment *segment)
{
	while (!fc_list_is_empty(&segment->pinned)) {
		struct fc_segment *pinned = fc_container_of(segment->pinned.next, struct fc_segment, pin_link);
		fc_segment_unpin(pinned);
		fc_segment_settle(catalog, pinned);
	}
}

void fc_segment_leave(struct fc_catalog *catalog, struct fc_segment *segment)
{
	segment->session = NULL;
	catalog->arenas[segment->medium].chunks_leaving += segment->chunk_count;
}

void fc_segment_retire(struct fc_catalog *catalog, struct fc_segment *segment)
{
	fc_check(fc_segment_is_linked(segment));
	for (uint64_t entry = 0; entry < segment->shape.entry_count && segment->named_count > 0; entry++)
		fc_segment_unname(catalog, segment, entry);
	unlink_from_session(catalog, segment);
	segment->state = FC_SEGMENT_RETIRED;
	if (segment->owner != NULL)
		segment->owner->bytes_leaving += fc_segment_bytes(catalog, segment);
	struct fc_session *session = segment->session;
	if (segment->lease_count == 0)
		fc_segment_leave(catalog, segment);
	fc_session_settle(catalog, session);
	fc_segment_settle(catalog, segment);
}

void fc_segment_settle(struct fc_catalog *catalog, struct fc_segment *segment)
{
	if (segment->state != FC_SEGMENT_RETIRED || segment->lease_count > 0 || segment->is_committing ||
	    fc_link_is_linked(&segment->pin_link))
		return;
	fc_segment_release_pinned(catalog, segment);
	if (segment->is_on_table)
		fc_free_queue(catalog, segment);
	else
		fc_segment_delete(catalog, segment);
}

struct fc_placed fc_segment_placed(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	uint64_t offset = arena->superblock.data_offset + segment->chunk_first * arena->superblock.chunk_bytes;
	return (struct fc_placed){
		.segment = segment,
		.base = fc_gva_make(segment->medium, catalog->opts.node, offset),
		.header_bytes = segment->header_bytes,
		.align = arena->superblock.align,
		.shape = &segment->shape,
	};
}

struct fc_key fc_catalog_segment_key(const struct fc_segment *segment, uint64_t entry)
{
	return fc_entry_key(segment->keys[entry], fc_shape_range_of(&segment->shape, entry)->group);
}

/* Publish: a turn's segments become visible, or leave no trace.
 *
 * Naming an entry points the index at it. The new copy wins over one of the same session (consolidation), and a
 * prompt's copy wins over all (promotion); a copy that another session already has stays named, and ours is then only a
 * spare. What loses its last name is retired, but stays on its medium, pinned by the segment that replaced it, until
 * that is durable: a crash in between finds one of the two. */
#include "catalog/state.h"

#include "base/plant.h"

static struct fc_segment *grant_segment(const struct fc_reservation *reservation, uint32_t i)
{
	return reservation->grants[i].placed.segment;
}

/* ---- grants, and abort ---- */

int fc_reservation_add(struct fc_catalog *catalog, struct fc_reservation *reservation, struct fc_segment *segment)
{
	int code = fc_alloc_reserve(catalog->alloc, (void **)&reservation->grants, &reservation->grant_room,
				    reservation->grant_count + 1ull, sizeof(*reservation->grants));
	if (code != FC_OK)
		return code;
	reservation->grants[reservation->grant_count++].placed = fc_segment_placed(catalog, segment);
	fc_session_add_reserved(catalog, segment->session);
	return FC_OK;
}

void fc_reservation_undo(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	fc_space_wait_no_more(catalog, reservation);
	for (uint32_t i = 0; i < reservation->grant_count; i++) {
		struct fc_segment *segment = grant_segment(reservation, i);
		struct fc_session *session = segment->session;
		fc_check(segment->state == FC_SEGMENT_RESERVED);
		fc_segment_delete(catalog, segment);
		fc_session_drop_reserved(catalog, session);
		fc_session_settle(catalog, session);
	}
	reservation->grant_count = 0;
	fc_catalog_release(catalog, &reservation->sources);
}

void fc_catalog_abort(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	bool freed_space = reservation->grant_count > 0;
	fc_reservation_undo(catalog, reservation);
	if (freed_space)
		fc_space_wake(catalog);
}

void fc_reservation_deinit(struct fc_reservation *reservation, const struct fc_alloc *alloc)
{
	fc_check(reservation->grant_count == 0);
	fc_alloc_free(alloc, reservation->grants, reservation->grant_room * sizeof(*reservation->grants));
	reservation->grants = NULL;
	reservation->grant_room = 0;
	fc_shape_store_deinit(&reservation->shapes, alloc);
	fc_path_deinit(&reservation->sources, alloc);
}

/* ---- what the new segments replace ---- */

static bool is_named_durably(struct fc_catalog *catalog, struct fc_key entry_key)
{
	struct fc_location location = fc_index_find(&catalog->index, entry_key);
	return !fc_location_is_none(location) &&
	       catalog->arenas[catalog->segments[location.segment]->medium].is_durable;
}

bool fc_publish_is_needed_as_backup(struct fc_catalog *catalog, const struct fc_segment *segment)
{
	if (!catalog->arenas[segment->medium].is_durable)
		return false;
	uint64_t entry = 0;
	while (entry < segment->shape.entry_count && is_named_durably(catalog, segment->keys[entry]))
		entry++;
	return entry < segment->shape.entry_count;
}

static void replace_segment(struct fc_catalog *catalog, struct fc_segment *old, struct fc_segment *new)
{
	/* Not only the one that took its last name counts: others may have taken some before, to where they do not
	 * last. */
	if (fc_publish_is_needed_as_backup(catalog, old) && !fc_is_planted(FC_PLANT_NO_BACKUP)) {
		fc_segment_set_backup(catalog, old, true);
		return;
	}
	if (catalog->arenas[new->medium].is_durable && !fc_link_is_linked(&old->pin_link) &&
	    !fc_is_planted(FC_PLANT_NO_PIN))
		fc_segment_pin(catalog, old, new);
	catalog->arenas[old->medium].removed.segments_absorbed++;
	if (old->owner != NULL)
		old->owner->removed[old->medium].segments_absorbed++;
	fc_segment_retire(catalog, old);
}

static bool wins_over(const struct fc_segment *segment, const struct fc_segment *holder)
{
	if (holder->session == segment->session)
		return true;
	bool leaves_memory = holder->medium == FC_MEMORY && segment->medium == FC_SSD;
	return segment->session->kind == FC_SESSION_PROMPT && !leaves_memory;
}

/* Names entry `entry`, and retires the segment that lost its last name by it. */
static int take_name(struct fc_catalog *catalog, struct fc_segment *segment, uint64_t entry,
		     struct fc_reservation *reservation)
{
	struct fc_location old = fc_index_find(&catalog->index, segment->keys[entry]);
	struct fc_segment *holder = fc_location_is_none(old) ? NULL : catalog->segments[old.segment];
	bool replace = holder != NULL && wins_over(segment, holder);
	int code = fc_segment_name(catalog, segment, entry, replace);
	if (code == FC_OK && replace && holder != segment && holder->named_count == 0 && fc_segment_is_linked(holder)) {
		reservation->segments_absorbed++;
		replace_segment(catalog, holder, segment);
	}
	return code;
}

static void drop_needless_backups(struct fc_catalog *catalog, struct fc_session *session,
				  struct fc_segment *replacement)
{
	if (!catalog->arenas[replacement->medium].is_durable || session->backup_count == 0)
		return;
	fc_list_for_each_safe(link, &session->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, session_link);
		if (segment->is_backup && segment != replacement && !fc_publish_is_needed_as_backup(catalog, segment))
			replace_segment(catalog, segment, replacement);
	}
}

/* ---- commit ---- */

/* The sessions that hold the path in front of the new segments are what its session stands on from now on. */
static int depend_on_path(struct fc_catalog *catalog, struct fc_session *session, const struct fc_key *keys,
			  uint64_t blocks)
{
	uint64_t stored;
	int code = fc_match_prefix(catalog, keys, blocks, &stored);
	if (code == FC_OK && stored < blocks)
		return FC_ENOENT;
	uint32_t previous = FC_SEGMENT_NONE;
	for (uint64_t block = 0; block < blocks && code == FC_OK; block++) {
		uint32_t number = catalog->locations[block].segment;
		if (number == previous)
			continue;
		previous = number;
		code = fc_session_depend(catalog, session, catalog->segments[number]->session);
	}
	return code;
}

/* Before a prompt takes names over: everybody who stands on the present holders must hold the prompt too. */
static int prepare_move(struct fc_catalog *catalog, struct fc_segment *segment)
{
	uint32_t previous = FC_SEGMENT_NONE;
	if (segment->session->kind != FC_SESSION_PROMPT)
		return FC_OK;
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++) {
		struct fc_location location = fc_index_find(&catalog->index, segment->keys[entry]);
		if (fc_location_is_none(location) || location.segment == previous)
			continue;
		previous = location.segment;
		int code =
			fc_session_depend_after_move(catalog, catalog->segments[previous]->session, segment->session);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

/* Whoever keeps the name of this entry although the segment has it too; NULL if the segment will name it, or its own
 * session does. */
static struct fc_session *keeper_of(struct fc_catalog *catalog, const struct fc_segment *segment, uint64_t entry,
				    bool takes_names)
{
	struct fc_location location = fc_index_find(&catalog->index, segment->keys[entry]);
	if (fc_location_is_none(location) || location.segment == segment->number)
		return NULL;
	const struct fc_segment *holder = catalog->segments[location.segment];
	bool will_name = takes_names ? wins_over(segment, holder) : holder->session == segment->session;
	return will_name ? NULL : holder->session;
}

/* Blocks that others have stored meanwhile stay theirs, and what the segment adds behind them then stands on theirs. A
 * segment that names nothing stands on nobody, but is there when they lose them. */
int fc_publish_depend_on_keepers(struct fc_catalog *catalog, struct fc_segment *segment, bool takes_names)
{
	uint64_t entry_count = segment->shape.entry_count, first = 0;
	int code = FC_OK;
	while (first < entry_count && keeper_of(catalog, segment, first, takes_names) != NULL)
		first++;
	for (uint64_t entry = 0; entry < entry_count && code == FC_OK; entry++) {
		struct fc_session *keeper = keeper_of(catalog, segment, entry, takes_names);
		if (keeper != NULL)
			code = first == entry_count ? fc_session_depend_loosely(catalog, segment->session, keeper)
						    : fc_session_depend(catalog, segment->session, keeper);
	}
	return code;
}

static void unpublish(struct fc_catalog *catalog, struct fc_segment *segment)
{
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		fc_segment_unname(catalog, segment, entry);
}

/* Only new names can fail (replacing one never allocates), so they go first and can be taken back. */
static int publish_names(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_reservation *reservation)
{
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++) {
		int code = fc_segment_name(catalog, segment, entry, false);
		if (code != FC_OK) {
			unpublish(catalog, segment);
			return code;
		}
	}
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++)
		fc_check(take_name(catalog, segment, entry, reservation) == FC_OK);
	return FC_OK;
}

/* A copy on SSD takes over what its session still names in memory, and nothing else: what was cut, evicted or replaced
 * while it was being written stays so. */
static int publish_copy_names(struct fc_catalog *catalog, struct fc_segment *segment,
			      struct fc_reservation *reservation)
{
	for (uint64_t entry = 0; entry < segment->shape.entry_count; entry++) {
		struct fc_location location = fc_index_find(&catalog->index, segment->keys[entry]);
		const struct fc_segment *holder =
			fc_location_is_none(location) ? NULL : catalog->segments[location.segment];
		if (holder != NULL && holder->session == segment->session && holder->medium == FC_MEMORY)
			fc_check(take_name(catalog, segment, entry, reservation) == FC_OK);
	}
	return segment->named_count > 0 ? FC_OK : FC_ENOENT;
}

static void publish(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_reservation *reservation)
{
	struct fc_session *session = segment->session;
	bool is_copy = reservation->keys == NULL;
	segment->state = FC_SEGMENT_VISIBLE;
	fc_session_drop_reserved(catalog, session);
	fc_segment_adopt(catalog, segment, session);
	if (segment->end_block > segment->start_block && session->turns <= segment->turn)
		session->turns = segment->turn + 1;
	drop_needless_backups(catalog, session, segment);
	if (catalog->arenas[segment->medium].is_durable) {
		segment->reservation = reservation;
		reservation->durable_pending++;
		fc_commit_queue(catalog, segment);
	}
	bool must_leave_memory = segment->medium == FC_SSD && segment->end_block > segment->start_block &&
				 !catalog->arenas[FC_MEMORY].is_durable;
	if (must_leave_memory && session->kind == FC_SESSION_CONVERSATION && session->segment_count[FC_MEMORY] > 0)
		fc_spill_want(catalog, session, is_copy && session->is_spilled_for_room);
	if (!is_copy) /* what was just saved does not go because the rest of it finds no room */
		session->is_spilled_for_room = false;
	fc_session_touch(catalog, session);
	if (segment->named_count > 0)
		return;
	/* Others have stored every block of it meanwhile: a spare that nobody names. */
	fc_segment_set_backup(catalog, segment, fc_publish_is_needed_as_backup(catalog, segment));
	if (!segment->is_backup)
		fc_segment_retire(catalog, segment);
}

static int publish_grant(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_reservation *reservation)
{
	bool is_copy = reservation->keys == NULL;
	int code = FC_OK;
	if (!is_copy)
		code = depend_on_path(catalog, segment->session, reservation->keys, segment->start_block);
	if (code == FC_OK && !is_copy)
		code = prepare_move(catalog, segment);
	if (code == FC_OK)
		code = fc_publish_depend_on_keepers(catalog, segment, true);
	if (code == FC_OK)
		code = is_copy ? publish_copy_names(catalog, segment, reservation)
			       : publish_names(catalog, segment, reservation);
	if (code == FC_OK)
		publish(catalog, segment, reservation);
	return code;
}

/* The caller of a commit that failed does not wait for what of it was published. */
static void forget_durability(struct fc_catalog *catalog, struct fc_reservation *reservation, uint32_t published)
{
	for (uint32_t i = 0; i < published; i++)
		if (catalog->arenas[fc_gva_medium(reservation->grants[i].placed.base)].is_durable)
			grant_segment(reservation, i)->reservation = NULL;
	reservation->durable_pending = 0;
}

/* A turn is of a conversation, and may bring a prompt. */
struct turn_sessions {
	struct fc_session *sessions[2];
	uint32_t count;
};

static void hold_sessions(struct fc_catalog *catalog, const struct fc_reservation *reservation,
			  struct turn_sessions *held)
{
	for (uint32_t i = 0; i < reservation->grant_count; i++) {
		struct fc_session *session = grant_segment(reservation, i)->session;
		if (session == held->sessions[0] || session == held->sessions[1])
			continue;
		fc_check(held->count < fc_array_len(held->sessions));
		held->sessions[held->count++] = session;
		fc_session_add_reserved(catalog, session);
	}
}

static void let_go(struct fc_catalog *catalog, const struct turn_sessions *held)
{
	for (uint32_t i = 0; i < held->count; i++) {
		fc_session_drop_reserved(catalog, held->sessions[i]);
		fc_session_settle(catalog, held->sessions[i]);
	}
}

/* Whatever the watermarks ask for, the turn that asks for it is none of it: who stores its path now is held meanwhile,
 * and so are its own sessions, which may keep the only durable copy of what others name in memory. Without memory for
 * that the next commit makes the room. A spill is nobody's turn, and goes by its age. */
static void make_room_around(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	struct fc_path *path = &reservation->sources;
	bool is_turn = reservation->keys != NULL && !fc_is_planted(FC_PLANT_RECLAIM_SAVED);
	if (is_turn && fc_catalog_match(catalog, reservation->keys, reservation->key_count, 0, false, path) != FC_OK)
		return;
	if (is_turn)
		fc_path_lease(catalog, path);
	fc_reclaim_to_watermarks(catalog);
	fc_catalog_release(catalog, path);
}

/* A turn of which everything was stored already, and may have been cut meanwhile. */
static int check_all_is_stored(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	struct fc_path path = {0};
	if (reservation->grant_count > 0 || reservation->keys == NULL)
		return FC_OK;
	int code = fc_catalog_match(catalog, reservation->keys, reservation->key_count, 0, false, &path);
	if (code == FC_OK && path.blocks < reservation->key_count)
		code = FC_ENOENT;
	fc_path_deinit(&path, catalog->alloc);
	return code;
}

int fc_catalog_commit(struct fc_catalog *catalog, struct fc_reservation *reservation)
{
	uint32_t published = 0;
	struct turn_sessions held = {0};
	if (reservation->keys != NULL && !fc_is_planted(FC_PLANT_RECLAIM_SAVED))
		hold_sessions(catalog, reservation, &held);
	int code = check_all_is_stored(catalog, reservation);
	while (published < reservation->grant_count && code == FC_OK) {
		code = publish_grant(catalog, grant_segment(reservation, published), reservation);
		if (code == FC_OK)
			published++;
	}
	/* A later segment that failed takes nothing back from the earlier ones: a prompt is whole without the turn. */
	if (code != FC_OK)
		forget_durability(catalog, reservation, published);
	for (uint32_t i = published; i < reservation->grant_count; i++)
		reservation->grants[i - published] = reservation->grants[i];
	reservation->grant_count -= published;
	fc_catalog_abort(catalog, reservation);
	if (fc_reclaim_is_wanted(catalog))
		make_room_around(catalog, reservation);
	let_go(catalog, &held);
	reservation->keys = NULL;
	return code;
}

/* Where a turn's KV lies: every group under FC_RULE_ALL has a slot for each of the path's blocks. The other groups are
 * needed only where a prefix ends, so a turn has slots for a few resume points of theirs:
 *
 *   load   It is not known before where the prefix will end, so the slot list is a ring: block b goes to slot b modulo
 *          what one resume point needs. Whatever the end, its blocks get slots of their own.
 *   save   The list runs from the first resume point's first block to the end of the path. Blocks that no resume point
 *          needs are in the hole, whose bytes are no block's: a store that wrote them would be found out. */
#define _GNU_SOURCE /* asprintf, ppoll */
#include "replay/live.h"

#include "clock/clock.h"
#include "format/shape.h"
#include "replay/content.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINTS (FC_TURN_POINTS_MAX + 1) /* and the path's end */
#define MEMORY_SHARE 0.4                /* of the machine's, for the pool */
#define NS_PER_MS 1000000ull

struct live_turn {
	struct fc_link link; /* live->turns */
	struct fc_replay_turn *turn;
	struct fc_load *load;
	struct fc_save *save;
	uint64_t *slots[FC_GROUPS_MAX];  /* of the path's blocks */
	uint64_t *resume[FC_GROUPS_MAX]; /* for resume points */
	uint64_t *list;                  /* room for one list of slots */
};

static struct fc_live *live_of(struct fc_backend *backend)
{
	return fc_container_of(backend, struct fc_live, backend);
}

static struct live_turn *place_of(const struct fc_replay_turn *turn)
{
	return turn->place;
}

static bool keeps_all(const struct fc_live *live, uint32_t group)
{
	return live->geometry->groups[group].rule == FC_RULE_ALL;
}

static uint64_t group_blocks(const struct fc_live *live, uint32_t group, uint64_t path_blocks)
{
	return path_blocks / fc_group_span(live->geometry, group);
}

/* ---- time and events ---- */

static uint64_t live_now_ns(struct fc_backend *backend)
{
	(void)backend;
	return fc_clock_real_ns();
}

static void live_wait(struct fc_backend *backend, uint64_t until_ns)
{
	const struct fc_live *live = live_of(backend);
	struct pollfd fds[] = {{.fd = fc_store_fd(live->store), .events = POLLIN},
			       {.fd = live->interrupt->fd, .events = POLLIN}};
	uint64_t now_ns = live_now_ns(backend);
	if (until_ns == UINT64_MAX) {
		(void)poll(fds, 2, -1);
		return;
	}
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / (1000 * NS_PER_MS)),
				.tv_nsec = (long)(left_ns % (1000 * NS_PER_MS))};
	(void)ppoll(fds, 2, &left, NULL);
}

static bool live_is_interrupted(struct fc_backend *backend)
{
	return fc_interrupt_is_set(live_of(backend)->interrupt);
}

static void note_durable(struct fc_live *live, struct fc_save *save)
{
	struct fc_save_result result;
	if (fc_save_wait(save, true, &result) != FC_OK)
		live->durable_code = result.durable_code;
	live->kept_saves--;
	fc_save_free(save);
}

static bool live_next_event(struct fc_backend *backend, struct fc_replay_event *event)
{
	struct fc_live *live = live_of(backend);
	struct fc_event from_store;
	while (fc_store_events(live->store, &from_store, 1) == 1) {
		if (from_store.kind == FC_EVENT_DURABLE) {
			note_durable(live, from_store.save);
		} else if (from_store.kind != FC_EVENT_LAYER) {
			*event = (struct fc_replay_event){from_store.kind, from_store.user};
			return true;
		}
	}
	return false;
}

/* ---- a turn's slots ---- */

static void turn_slot_counts(const struct fc_live *live, uint64_t path_blocks, uint64_t counts[FC_GROUPS_MAX])
{
	for (uint32_t group = 0; group < live->geometry->group_count; group++)
		counts[group] = keeps_all(live, group) ? group_blocks(live, group, path_blocks)
						       : live->resume_slots[group] * POINTS;
}

static void free_place(struct live_turn *place)
{
	for (uint32_t group = 0; group < FC_GROUPS_MAX; group++) {
		free(place->slots[group]);
		free(place->resume[group]);
	}
	free(place->list);
	free(place);
}

static int live_begin(struct fc_backend *backend, struct fc_replay_turn *turn)
{
	struct fc_live *live = live_of(backend);
	uint64_t counts[FC_GROUPS_MAX];
	turn_slot_counts(live, turn->stored_blocks, counts);
	if (!fc_kv_pool_has(&live->pool, counts))
		return FC_EAGAIN;
	struct live_turn *place = calloc(1, sizeof(*place));
	if (place == NULL)
		return FC_ENOMEM;
	bool has_memory = true;
	for (uint32_t group = 0; group < live->geometry->group_count; group++) {
		uint64_t *slots = calloc(counts[group] + 1, sizeof(*slots));
		*(keeps_all(live, group) ? &place->slots[group] : &place->resume[group]) = slots;
		has_memory = has_memory && slots != NULL;
	}
	place->list = calloc((turn->stored_blocks + 1) * live->geometry->group_count, sizeof(*place->list));
	if (!has_memory || place->list == NULL) {
		free_place(place);
		return FC_ENOMEM;
	}
	for (uint32_t group = 0; group < live->geometry->group_count; group++)
		fc_kv_pool_take(&live->pool, group, counts[group],
				keeps_all(live, group) ? place->slots[group] : place->resume[group]);
	place->turn = turn;
	fc_list_push(&live->turns, &place->link);
	turn->place = place;
	return FC_OK;
}

static void live_end(struct fc_backend *backend, struct fc_replay_turn *turn)
{
	struct fc_live *live = live_of(backend);
	struct live_turn *place = place_of(turn);
	uint64_t counts[FC_GROUPS_MAX];
	fc_load_free(place->load);
	fc_save_free(place->save);
	turn_slot_counts(live, turn->stored_blocks, counts);
	for (uint32_t group = 0; group < live->geometry->group_count; group++)
		fc_kv_pool_give(&live->pool, group, counts[group],
				keeps_all(live, group) ? place->slots[group] : place->resume[group]);
	fc_list_remove(&place->link);
	free_place(place);
	turn->place = NULL;
}

/* ---- loading ---- */

/* Slot of a block after a load. */
static uint64_t loaded_slot(const struct fc_live *live, const struct live_turn *place, uint32_t group, uint64_t block)
{
	return keeps_all(live, group) ? place->slots[group][block]
				      : place->resume[group][block % live->resume_slots[group]];
}

static int live_load(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_error *error)
{
	struct fc_live *live = live_of(backend);
	struct live_turn *place = place_of(turn);
	struct fc_load_opts opts = {
		.keys = turn->keys,
		.key_count = turn->input_blocks,
		.kv = live->kv,
		.arrival_ns = turn->arrival_ns,
		.user = turn,
	};
	uint64_t *list = place->list;
	for (uint32_t group = 0; group < live->geometry->group_count; group++) {
		uint64_t count = group_blocks(live, group, turn->input_blocks);
		opts.slots[group] = (struct fc_slots){.count = count, .slots = list};
		for (uint64_t block = 0; block < count; block++)
			*list++ = loaded_slot(live, place, group, block);
	}
	return fc_load_submit(live->store, &opts, &place->load, error);
}

static int live_take(struct fc_backend *backend, struct fc_replay_turn **turn)
{
	struct fc_live *live = live_of(backend);
	struct fc_load *load;
	int code = fc_ready_take(live->store, &load);
	if (code != FC_OK)
		return code;
	fc_list_for_each(link, &live->turns)
	{
		struct live_turn *place = fc_container_of(link, struct live_turn, link);
		if (place->load == load) {
			*turn = place->turn;
			return FC_OK;
		}
	}
	return FC_EAGAIN;
}

static void live_loaded(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_load_result *result)
{
	(void)backend;
	(void)fc_load_wait(place_of(turn)->load, result);
}

static uint64_t check_group(const struct fc_live *live, const struct fc_replay_turn *turn, uint32_t group,
			    uint64_t path_blocks, struct fc_error *error)
{
	const struct fc_geometry *geometry = live->geometry;
	uint64_t first, count, wrong_count = 0, span = fc_group_span(geometry, group);
	fc_group_needed(geometry, group, path_blocks, &first, &count);
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		uint64_t slice_bytes = geometry->groups[group].slice_bytes[layer];
		for (uint64_t block = first; block < first + count && slice_bytes > 0; block++) {
			struct fc_key key = turn->keys[fc_group_key_position(span, block)];
			uint64_t slot = loaded_slot(live, place_of(turn), group, block);
			uint64_t wrong_at =
				fc_content_check(fc_content_of(key, group, layer),
						 fc_kv_pool_slice(&live->pool, group, layer, slot), slice_bytes);
			if (wrong_at == FC_CONTENT_RIGHT)
				continue;
			if (error->code == FC_OK)
				fc_error_set(error, FC_ECORRUPT,
					     "group %" PRIu32 " layer %" PRIu32 " block %" PRIu64 " of %" PRIu64
					     " delivered: byte %" PRIu64 " of %" PRIu64,
					     group, layer, block, path_blocks, wrong_at, slice_bytes);
			wrong_count++;
		}
	}
	return wrong_count;
}

static void fill_block(const struct fc_live *live, const struct fc_replay_turn *turn, uint32_t group, uint64_t block,
		       uint64_t slot)
{
	const struct fc_geometry *geometry = live->geometry;
	struct fc_key key = turn->keys[fc_group_key_position(fc_group_span(geometry, group), block)];
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
		uint64_t slice_bytes = geometry->groups[group].slice_bytes[layer];
		if (slice_bytes > 0)
			fc_content_fill(fc_content_of(key, group, layer),
					fc_kv_pool_slice(&live->pool, group, layer, slot), slice_bytes);
	}
}

static uint64_t live_keep(struct fc_backend *backend, struct fc_replay_turn *turn, uint64_t blocks,
			  struct fc_error *error)
{
	struct fc_live *live = live_of(backend);
	struct live_turn *place = place_of(turn);
	uint64_t wrong_count = 0;
	fc_load_free(place->load);
	place->load = NULL;
	for (uint32_t group = 0; group < live->geometry->group_count; group++) {
		if (live->is_checking)
			wrong_count += check_group(live, turn, group, blocks, error);
		if (!keeps_all(live, group))
			continue;
		uint64_t count = group_blocks(live, group, turn->stored_blocks);
		for (uint64_t block = group_blocks(live, group, blocks); block < count; block++)
			fill_block(live, turn, group, block, place->slots[group][block]);
	}
	return wrong_count;
}

/* ---- saving ---- */

/* Fills in one group's slots for a save, and returns the list's end. */
static uint64_t *list_resume_slots(const struct fc_live *live, const struct fc_replay_turn *turn, uint32_t group,
				   uint64_t *list, struct fc_slots *slots)
{
	const struct live_turn *place = place_of(turn);
	uint64_t end = turn->stored_blocks - turn->stored_blocks % fc_resume_granule(live->geometry);
	uint64_t used = 0;
	*slots = (struct fc_slots){.slots = list};
	for (uint64_t i = 0; i <= turn->resume_point_count && end > 0; i++) {
		uint64_t first, count, point = i < turn->resume_point_count ? turn->resume_points[i] : end;
		fc_group_needed(live->geometry, group, point, &first, &count);
		if (slots->count == 0)
			slots->first_block = first;
		for (; slots->first_block + slots->count < first; slots->count++)
			*list++ = fc_kv_pool_hole(&live->pool, group);
		for (; slots->first_block + slots->count < first + count; slots->count++) {
			uint64_t slot = place->resume[group][used++];
			fill_block(live, turn, group, slots->first_block + slots->count, slot);
			*list++ = slot;
		}
	}
	return list;
}

static int live_save(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_error *error)
{
	struct fc_live *live = live_of(backend);
	struct live_turn *place = place_of(turn);
	struct fc_save_opts opts = {
		.session = turn->session,
		.keys = turn->keys,
		.key_count = turn->stored_blocks,
		.shared_blocks = turn->shared_blocks,
		.turn = turn->turn,
		.previous_reply_tokens = turn->previous_reply_tokens,
		.kv = live->kv,
		.resume_points = turn->resume_points,
		.resume_point_count = turn->resume_point_count,
		.user = turn,
	};
	uint64_t *list = place->list;
	for (uint32_t group = 0; group < live->geometry->group_count; group++) {
		if (keeps_all(live, group))
			opts.slots[group] = (struct fc_slots){
				.count = group_blocks(live, group, turn->stored_blocks),
				.slots = place->slots[group],
			};
		else
			list = list_resume_slots(live, turn, group, list, &opts.slots[group]);
	}
	return fc_save_submit(live->store, &opts, &place->save, error);
}

/* A save that has failed sends no more events. One that is visible is kept until it is durable. */
static void live_saved(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_save_result *result)
{
	struct live_turn *place = place_of(turn);
	if (fc_save_wait(place->save, false, result) == FC_OK)
		live_of(backend)->kept_saves++;
	else
		fc_save_free(place->save);
	place->save = NULL;
}

static int live_sync(struct fc_backend *backend, struct fc_error *error)
{
	struct fc_live *live = live_of(backend);
	struct fc_event event;
	int code = fc_store_sync(live->store, error);
	while (live->kept_saves > 0) {
		if (fc_store_events(live->store, &event, 1) == 0)
			live_wait(backend, UINT64_MAX);
		else if (event.kind == FC_EVENT_DURABLE)
			note_durable(live, event.save);
	}
	if (code == FC_OK && live->durable_code != FC_OK)
		code = fc_error_set(error, live->durable_code, "a save was visible and could not be made durable: %s",
				    fc_code_text(live->durable_code));
	return code;
}

static int live_stats(struct fc_backend *backend, struct fc_stats *stats)
{
	return fc_store_stats(live_of(backend)->store, stats);
}

/* ---- open and close ---- */

static const struct fc_backend_ops live_ops = {
	.now_ns = live_now_ns,
	.wait = live_wait,
	.is_interrupted = live_is_interrupted,
	.next_event = live_next_event,
	.begin = live_begin,
	.load = live_load,
	.take = live_take,
	.loaded = live_loaded,
	.keep = live_keep,
	.save = live_save,
	.saved = live_saved,
	.end = live_end,
	.stats = live_stats,
	.sync = live_sync,
};

uint64_t fc_live_pool_bytes_max(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	return pages <= 0 || page_bytes <= 0 ? UINT64_MAX
					     : (uint64_t)(MEMORY_SHARE * (double)pages * (double)page_bytes);
}

/* An engine's KV is there before its first request. Pages that came one by one with the first requests would be counted
 * as time of theirs, and were seconds. */
static void touch_pages(uint8_t *memory, uint64_t bytes)
{
	long page_bytes = sysconf(_SC_PAGESIZE);
	for (uint64_t at = 0; page_bytes > 0 && at < bytes; at += (uint64_t)page_bytes) {
		volatile uint8_t *byte = memory + at;
		uint8_t kept = *byte;
		*byte = kept;
	}
}

/* For as many of the largest turns as were asked for, or as memory allows. */
static int open_pool(struct fc_live *live, const struct fc_live_opts *opts, struct fc_error *error)
{
	uint64_t counts[FC_GROUPS_MAX];
	turn_slot_counts(live, opts->turn_blocks_max, counts);
	uint64_t turn_bytes = fc_kv_pool_bytes(live->geometry, counts);
	uint64_t limit_bytes = fc_live_pool_bytes_max();
	if (turn_bytes > limit_bytes)
		return fc_error_set(error, FC_ELIMIT,
				    "the largest request has %" PRIu64 " blocks and needs %" PRIu64
				    " bytes of KV on the modelled device; %" PRIu64
				    " are allowed (40 %% of this machine's memory): raise --scale",
				    opts->turn_blocks_max, turn_bytes, limit_bytes);
	uint64_t turns = fc_max_u64(1, fc_min_u64(opts->turn_count, limit_bytes / fc_max_u64(1, turn_bytes)));
	for (uint32_t group = 0; group < live->geometry->group_count; group++)
		counts[group] *= turns;
	int code = fc_kv_pool_init(&live->pool, live->geometry, counts, opts->seed, error);
	if (code == FC_OK)
		touch_pages(live->pool.memory, live->pool.bytes);
	return code;
}

int fc_live_open(struct fc_live *live, const struct fc_live_opts *opts, struct fc_error *error)
{
	*live = (struct fc_live){
		.backend.ops = &live_ops,
		.geometry = opts->store->geometry,
		.interrupt = opts->interrupt,
		.is_checking = opts->is_checking,
	};
	fc_list_init(&live->turns);
	for (uint32_t group = 0; group < live->geometry->group_count; group++) {
		const struct fc_group *rules = &live->geometry->groups[group];
		live->resume_slots[group] =
			rules->rule == FC_RULE_WINDOW
				? (rules->window_tokens + rules->tokens_per_block - 1ull) / rules->tokens_per_block
				: 1;
	}
	int code = open_pool(live, opts, error);
	if (code == FC_OK)
		code = fc_store_open(&live->store, opts->address, opts->store, error);
	if (code == FC_OK)
		code = fc_kv_register(live->store, live->pool.layers, &live->kv, error);
	if (code != FC_OK)
		fc_live_close(live);
	return code;
}

void fc_live_close(struct fc_live *live)
{
	fc_check(fc_list_is_empty(&live->turns));
	fc_kv_free(live->kv);
	fc_store_close(live->store);
	fc_kv_pool_deinit(&live->pool);
}

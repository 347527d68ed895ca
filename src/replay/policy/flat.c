/* FlatCake itself: the core of the live store on the simulated machine, and what it is without each of its mechanisms.
 *
 *   flat                  all of it. A request may start once its history is on the device, or, with overlapping
 *                         layers, as soon as the layers still to come are expected before the prefill needs them
 *   flat-one-queue        one queue instead of two (article, section FC-MAS): reads begin in the order of arrival, and
 *                         nobody starts before those that arrived earlier at the same worker
 *   flat-fifo             two queues, but reads from SSD in the order of arrival instead of by priority
 *   flat-no-merge         every slice is read by a command of its own
 *   flat-no-overlap       a prefill begins when the whole history is in place
 *   flat-no-consolidate   segments stay as they were written (the article's layout)
 *
 * Prefixes end at multiples of the model's granule (two blocks of 64 tokens for DeepSeek-V4-Flash), so the core is
 * given one key for each granule and slices that are as much longer: the same bytes, reads and segments, for fewer
 * look-ups.
 *
 * One core serves all workers of the node, as a node's daemon would, with --streams windows for each. The core hands
 * out ready requests by arrival over all workers; those whose worker is busy are kept here until it asks for them. */
#include "replay/policy.h"

#include "core/core.h"
#include "format/shape.h"
#include "host/alloc.h"
#include "replay/timed.h"

#include <stdlib.h>

#define SAVE_STREAMS_EACH 2u
#define REQUESTS_EACH 64u         /* of a worker, with the core at once; more wait here */
#define NEVER_NS (UINT64_MAX / 4) /* simulated I/O always ends */

enum {
	ONE_QUEUE = 1 << 0,
	IN_ORDER = 1 << 1,
	NO_MERGE = 1 << 2,
	NO_OVERLAP = 1 << 3,
	NO_CONSOLIDATE = 1 << 4,
};

struct flat_opts {
	bool is_by_granule;
};

struct flat {
	struct fc_policy policy;
	unsigned variant;
	struct fc_geometry geometry; /* in whole granules */
	uint64_t granule;            /* blocks of the trace that one of its blocks is */
	struct fc_timed *timed;
	struct fc_alloc alloc;
	struct fc_core *core;
	int open_code;
	struct fc_error open_error;
	struct fc_world_event pump;
	bool is_pumping;
	uint64_t *slots;        /* all 0: nobody looks */
	struct fc_link pending; /* by arrival, not yet with the core */
	uint32_t reading_count, reading_max;
	struct fc_link *lines; /* ONE_QUEUE: a worker's requests that have not been let start, by arrival */
	uint64_t segments_absorbed;
	uint64_t unit_bytes;     /* NO_MERGE: of a read command */
	uint64_t transfer_bytes; /* largest command */
};

struct flat_turn {
	struct fc_link pending_link;
	struct fc_link line_link;
	struct fc_world_event handed_over; /* the core's thread hears of the load */
	struct flat *flat;
	struct fc_policy_turn *turn;
	struct fc_key *keys; /* of granules */
	struct fc_core_load *load;
	struct fc_core_save *save;
	uint64_t submitted_ns;
	uint32_t layers_in_place;
	uint64_t first_layer_ns;
	bool is_ready; /* in the core's ready queue */
	bool is_taken, may_start, is_reading, has_started;
};

static struct flat *flat_of(struct fc_policy *policy)
{
	return fc_container_of(policy, struct flat, policy);
}

static uint64_t now_ns(const struct flat *flat)
{
	return flat->policy.env->world->now_ns;
}

/* ---- driving the core ---- */

static void pump(struct flat *flat)
{
	if (flat->is_pumping || flat->core == NULL)
		return;
	flat->is_pumping = true;
	while (fc_core_step(flat->core) > 0)
		;
	flat->is_pumping = false;
}

static void on_pump(struct fc_world_event *event)
{
	pump(fc_container_of(event, struct flat, pump));
}

/* The core must not be stepped from inside its own callbacks. */
static void pump_soon(struct flat *flat)
{
	struct fc_world *world = flat->policy.env->world;
	if (!fc_world_is_scheduled(world, &flat->pump))
		fc_world_at(world, &flat->pump, world->now_ns);
}

/* A whole step looks at every stream and queue. What reading leads to needs none: it happens inside the polls, and
 * where a load ends, its event asks for one. */
static void on_landed(void *context, bool is_reading)
{
	struct flat *flat = context;
	if (!is_reading)
		pump(flat);
	else if (!flat->is_pumping)
		fc_timed_poll(flat->timed);
}

/* ---- who may start ---- */

static void let_start(struct flat_turn *place)
{
	if (place->may_start)
		return;
	place->may_start = true;
	struct flat *flat = place->flat;
	if ((flat->variant & ONE_QUEUE) == 0) {
		fc_policy_may_start(&flat->policy, place->turn);
		return;
	}
	struct fc_link *line = &flat->lines[place->turn->worker];
	while (!fc_list_is_empty(line)) {
		struct flat_turn *first = fc_container_of(line->next, struct flat_turn, line_link);
		if (!first->may_start)
			break;
		fc_list_remove(&first->line_link);
		fc_policy_may_start(&flat->policy, first->turn);
	}
}

/* The layers still to come take as long as those that came. If that is no longer than the prefill, nobody waits. */
static void on_layer(struct flat_turn *place, uint32_t layer)
{
	const struct fc_policy_env *env = place->flat->policy.env;
	uint64_t count = env->geometry->layer_count, now = now_ns(place->flat);
	place->layers_in_place = layer + 1;
	if (layer == 0)
		place->first_layer_ns = now;
	if (place->may_start || !place->turn->load.is_overlapping || !place->is_reading || layer == 0)
		return;
	uint64_t left_ns = (now - place->first_layer_ns) / layer * (count - layer - 1);
	place->turn->load.blocks = place->load->result.blocks * place->flat->granule;
	if (left_ns <= fc_policy_prefill_ns(env, place->turn, place->turn->load.blocks))
		let_start(place);
}

static void dispatch_pending(struct flat *flat);

static void on_loaded(struct flat_turn *place)
{
	struct flat *flat = place->flat;
	struct fc_policy_load *load = &place->turn->load;
	const struct fc_load_result *result = &place->load->result;
	fc_check(result->code == FC_OK);
	load->blocks = result->blocks * flat->granule;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		load->bytes[medium] = result->bytes[medium];
	load->bytes_read = result->bytes_read;
	load->commands = flat->unit_bytes == 0 ? result->read_commands
					       : (result->bytes_read + flat->unit_bytes - 1) / flat->unit_bytes;
	load->segments = result->segments;
	load->start_ns = place->submitted_ns + result->queue_ns;
	load->end_ns = load->start_ns + result->read_ns;
	load->prefetched_ns = result->bytes[FC_SSD] > 0 ? load->end_ns : 0;
	if (place->is_reading) {
		place->is_reading = false;
		flat->reading_count--;
	}
	fc_policy_loaded(&flat->policy, place->turn);
	let_start(place);
	dispatch_pending(flat);
}

/* Takes everything that the core lists before this turn and this turn itself; copies from memory begin with that. */
static void take(struct flat *flat, const struct flat_turn *wanted)
{
	struct fc_core_load *load;
	while (!wanted->is_taken && fc_core_ready_take(flat->core, &load) == FC_OK) {
		struct flat_turn *place = load->owner;
		place->is_taken = true;
	}
	pump_soon(flat);
}

static void on_ready(struct flat_turn *place)
{
	place->is_ready = true;
	place->turn->load.blocks = place->load->result.blocks * place->flat->granule;
	if (place->has_started)
		take(place->flat, place);
	else if (place->load->result.bytes[FC_SSD] == 0 && !place->load->is_in_place)
		let_start(place); /* all in memory */
}

static void on_saved(struct flat_turn *place)
{
	struct flat *flat = place->flat;
	int code = place->save->result.code;
	flat->segments_absorbed += place->save->result.segments_absorbed;
	fc_policy_saved(&flat->policy, place->turn, code);
}

static void on_event(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
		     uint32_t layer)
{
	struct flat_turn *place = load != NULL ? load->owner : save->owner;
	(void)context;
	if (place == NULL)
		return; /* the turn is over: a save that became durable */
	if (load != NULL)
		place->load = load; /* it may end before its submission returns */
	if (kind != FC_EVENT_LAYER)
		pump_soon(place->flat);
	if (kind == FC_EVENT_LAYER)
		on_layer(place, layer);
	else if (kind == FC_EVENT_READY)
		on_ready(place);
	else if (kind == FC_EVENT_LOADED)
		on_loaded(place);
	else if (kind == FC_EVENT_SAVED)
		on_saved(place);
}

/* ---- a turn ---- */

static int submit_load(struct flat_turn *place, struct fc_error *error)
{
	struct flat *flat = place->flat;
	const struct fc_replay_turn *turn = &place->turn->turn;
	struct fc_load_opts opts = {
		.keys = place->keys,
		.key_count = turn->input_blocks / flat->granule,
		.arrival_ns = turn->arrival_ns,
	};
	for (uint32_t group = 0; group < flat->geometry.group_count; group++)
		opts.slots[group] = (struct fc_slots){.count = opts.key_count / fc_group_span(&flat->geometry, group),
						      .slots = flat->slots};
	place->submitted_ns = now_ns(flat);
	int code = fc_core_load_submit(flat->core, &opts, fc_timed_layers(flat->timed, place->turn->worker), place,
				       &place->load, error);
	if (code != FC_OK)
		return code;
	place->is_reading = place->load->state == FC_LOAD_PREPARE || place->load->state == FC_LOAD_READING;
	flat->reading_count += place->is_reading;
	pump_soon(flat);
	return FC_OK;
}

static bool needs_ssd(struct flat *flat, const struct flat_turn *place)
{
	struct fc_path path = {0};
	int code = fc_catalog_match(fc_core_catalog(flat->core), place->keys,
				    place->turn->turn.input_blocks / flat->granule, 0, false, &path);
	bool needs = code == FC_OK && path.bytes[FC_SSD] > 0;
	fc_path_deinit(&path, &flat->alloc);
	return needs;
}

/* The variants that keep an order of their own give the core no more loads than it has streams, so that it never has a
 * choice. */
static bool may_submit(struct flat *flat, const struct flat_turn *place)
{
	bool is_ordered =
		(flat->variant & ONE_QUEUE) != 0 || ((flat->variant & IN_ORDER) != 0 && needs_ssd(flat, place));
	return !is_ordered || flat->reading_count < flat->reading_max;
}

/* A core that has as many loads as it takes is given the next one when one has ended. */
static void dispatch_pending(struct flat *flat)
{
	while (!fc_list_is_empty(&flat->pending)) {
		struct fc_error error = {0};
		struct flat_turn *place = fc_container_of(flat->pending.next, struct flat_turn, pending_link);
		if (!may_submit(flat, place))
			return;
		/* Taken out first: a load that finds nothing ends inside its submission, and calls this. */
		fc_list_remove(&place->pending_link);
		int code = submit_load(place, &error);
		if (code == FC_ELIMIT) {
			fc_list_insert_before(flat->pending.next, &place->pending_link);
			return;
		}
		fc_check(code == FC_OK); /* or no memory, and nobody to tell */
	}
}

static struct fc_key *granule_keys(const struct flat *flat, const struct fc_replay_turn *turn)
{
	uint64_t count = turn->stored_blocks / flat->granule;
	struct fc_key *keys = malloc((count + 1) * sizeof(*keys));
	for (uint64_t i = 0; i < count && keys != NULL; i++)
		keys[i] = turn->keys[(i + 1) * flat->granule - 1];
	return keys;
}

static void hand_over(struct flat_turn *place)
{
	struct flat *flat = place->flat;
	struct fc_error error = {0};
	if ((flat->variant & IN_ORDER) != 0 && !needs_ssd(flat, place) && submit_load(place, &error) == FC_OK)
		return;
	fc_list_push(&flat->pending, &place->pending_link);
	dispatch_pending(flat);
}

static void on_handed_over(struct fc_world_event *event)
{
	hand_over(fc_container_of(event, struct flat_turn, handed_over));
}

static int flat_load(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	struct flat *flat = flat_of(policy);
	struct flat_turn *place = calloc(1, sizeof(*place));
	if (place == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a load");
	place->flat = flat;
	place->turn = turn;
	turn->place = place;
	turn->load.is_overlapping = policy->env->hardware->has_overlap && (flat->variant & NO_OVERLAP) == 0;
	place->keys = granule_keys(flat, &turn->turn);
	if (place->keys == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a load");
	if ((flat->variant & ONE_QUEUE) != 0)
		fc_list_push(&flat->lines[turn->worker], &place->line_link);
	place->handed_over.fire = on_handed_over;
	if (policy->env->hardware->load_ns == 0)
		hand_over(place);
	else
		fc_world_at(policy->env->world, &place->handed_over, now_ns(flat) + policy->env->hardware->load_ns);
	return FC_OK;
}

static void flat_start(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	struct flat *flat = flat_of(policy);
	struct flat_turn *place = turn->place;
	place->has_started = true;
	if (place->is_ready)
		take(flat, place);
}

static int flat_save(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	struct flat *flat = flat_of(policy);
	struct flat_turn *place = turn->place;
	uint64_t points[FC_TURN_POINTS_MAX];
	struct fc_save_opts opts = {
		.session = turn->turn.session,
		.keys = place->keys,
		.key_count = turn->turn.stored_blocks / flat->granule,
		.shared_blocks = turn->turn.shared_blocks / flat->granule,
		.turn = turn->turn.turn,
		.previous_reply_tokens = turn->turn.previous_reply_tokens,
		.resume_points = points,
		.resume_point_count = turn->turn.resume_point_count,
	};
	for (uint64_t i = 0; i < opts.resume_point_count; i++)
		points[i] = turn->turn.resume_points[i] / flat->granule;
	for (uint32_t group = 0; group < flat->geometry.group_count; group++)
		opts.slots[group] = (struct fc_slots){.count = opts.key_count / fc_group_span(&flat->geometry, group),
						      .slots = flat->slots};
	if (place->load != NULL) { /* nobody asks for it any more, and the core has room for so many only */
		place->load->owner = NULL;
		fc_core_load_free(flat->core, place->load);
		place->load = NULL;
	}
	int code = fc_core_save_submit(flat->core, &opts, fc_timed_layers(flat->timed, turn->worker), place,
				       &place->save, error);
	pump_soon(flat);
	return code;
}

static void flat_end(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	struct flat *flat = flat_of(policy);
	struct flat_turn *place = turn->place;
	if (place == NULL)
		return;
	fc_world_cancel(policy->env->world, &place->handed_over);
	fc_list_remove(&place->pending_link);
	fc_list_remove(&place->line_link);
	if (place->load != NULL) {
		place->load->owner = NULL;
		fc_core_load_free(flat->core, place->load);
	}
	if (place->save != NULL) {
		place->save->owner = NULL;
		fc_core_save_free(flat->core, place->save);
	}
	free(place->keys);
	free(place);
	turn->place = NULL;
	dispatch_pending(flat);
	pump_soon(flat);
}

static void flat_stats(struct fc_policy *policy, struct fc_policy_stats *stats)
{
	struct flat *flat = flat_of(policy);
	struct fc_stats core_stats;
	fc_core_stats(flat->core, &core_stats);
	*stats = (struct fc_policy_stats){.segments_absorbed = flat->segments_absorbed};
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		stats->bytes_written[medium] = core_stats.media[medium].bytes_written;
		stats->bytes_stored[medium] = core_stats.media[medium].bytes_stored;
		stats->bytes_lost += core_stats.media[medium].bytes_reclaimed;
	}
}

/* ---- where it lies ---- */

struct layout {
	void (*each)(void *context, const struct fc_policy_piece *piece);
	void *context;
};

static bool on_segment(void *context, const struct fc_segment_info *info)
{
	const struct layout *layout = context;
	struct fc_policy_piece piece = {
		.offset = fc_gva_offset(info->placed.base),
		.bytes = info->bytes,
		.is_point = info->start_block == info->end_block,
		.is_shared = info->session_kind == FC_SESSION_PROMPT,
		.session = info->session,
	};
	if (info->is_kept && fc_gva_medium(info->placed.base) == FC_SSD)
		layout->each(layout->context, &piece);
	return true;
}

static uint64_t flat_layout(struct fc_policy *policy, void (*each)(void *context, const struct fc_policy_piece *piece),
			    void *context)
{
	struct layout layout = {each, context};
	fc_catalog_segments(fc_core_catalog(flat_of(policy)->core), on_segment, &layout);
	return policy->env->ssd_bytes;
}

/* ---- open and close ---- */

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct flat *flat = context;
	flat->open_code = code;
	if (code != FC_OK)
		flat->open_error = *error;
}

static uint64_t unit_bytes_of(const struct flat *flat)
{
	const struct fc_geometry *geometry = flat->policy.env->geometry; /* a slice is one of the trace's blocks */
	uint64_t largest = 0;
	for (uint32_t layer = 0; layer < geometry->layer_count && (flat->variant & NO_MERGE) != 0; layer++)
		largest = fc_max_u64(largest, geometry->groups[0].slice_bytes[layer]);
	return largest;
}

/* One block for each granule, unless a window would then be rounded up. */
static void set_geometry(struct flat *flat)
{
	struct fc_geometry *geometry = &flat->geometry;
	*geometry = *flat->policy.env->geometry;
	flat->granule = fc_resume_granule(geometry);
	uint64_t granule_tokens = flat->granule * geometry->block_tokens;
	for (uint32_t i = 0; i < geometry->group_count; i++)
		if (geometry->groups[i].rule == FC_RULE_WINDOW &&
		    geometry->groups[i].window_tokens % granule_tokens != 0)
			flat->granule = 1;
	if (!((const struct flat_opts *)flat->policy.env->settings)->is_by_granule)
		flat->granule = 1;
	if (flat->granule == 1)
		return;
	for (uint32_t i = 0; i < geometry->group_count; i++) {
		struct fc_group *group = &geometry->groups[i];
		uint64_t times = group->rule == FC_RULE_STATE ? 1 : granule_tokens / group->tokens_per_block;
		group->tokens_per_block =
			group->rule == FC_RULE_STATE ? group->tokens_per_block : (uint32_t)granule_tokens;
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			group->slice_bytes[layer] *= times;
	}
	geometry->block_tokens = (uint32_t)granule_tokens;
}

static int open_core(struct flat *flat, struct fc_error *error)
{
	const struct fc_policy_env *env = flat->policy.env;
	const struct fc_config *config = env->config;
	struct fc_core_opts opts = {
		.catalog =
			{
				.geometry = &flat->geometry,
				.alloc = &flat->alloc,
				.media = {fc_timed_medium(flat->timed, FC_MEMORY),
					  fc_timed_medium(flat->timed, FC_SSD)},
				.chunk_bytes = config->chunk_bytes,
				.uuid = {1, 1},
				.hash_seed = env->seed,
				.agent_context_tokens = config->agent_context_tokens,
				.long_reply_tokens = config->long_reply_tokens,
				.high_watermark = config->high_watermark,
				.low_watermark = config->low_watermark,
				.consolidate_ratio =
					(flat->variant & NO_CONSOLIDATE) != 0 ? 0 : config->consolidate_ratio,
				.reclaim_order = config->reclaim_order,
				.memory_reclaim = config->memory_reclaim,
			},
		.device = fc_timed_device(flat->timed),
		.clock = fc_world_clock(env->world),
		.load_streams = (uint32_t)fc_min_u64(config->streams * env->hardware->workers, 1024),
		.save_streams = (uint32_t)fc_min_u64(SAVE_STREAMS_EACH * env->hardware->workers, 1024),
		.window_bytes = config->window_bytes,
		.gap_bytes = (flat->variant & NO_MERGE) != 0 ? 0 : config->gap_bytes,
		.transfer_bytes = flat->transfer_bytes,
		.requests_max = (uint32_t)(REQUESTS_EACH * env->hardware->workers),
		.io_timeout_ns = NEVER_NS,
		.event_cb = on_event,
		.context = flat,
	};
	flat->reading_max = opts.load_streams;
	flat->open_code = FC_EAGAIN;
	int code = fc_core_open(&flat->core, &opts, on_opened, error);
	if (code != FC_OK)
		return code;
	pump(flat);
	while (flat->open_code == FC_EAGAIN && fc_world_step(env->world))
		;
	if (flat->open_code != FC_OK && error != NULL)
		*error = flat->open_error;
	return flat->open_code;
}

static void flat_close(struct fc_policy *policy)
{
	struct flat *flat = flat_of(policy);
	if (flat->core != NULL) {
		fc_core_free_all(flat->core);
		pump(flat);
		while (flat->open_code == FC_OK && !fc_core_is_idle(flat->core) && fc_world_step(policy->env->world))
			;
		fc_core_free(flat->core);
	}
	fc_world_cancel(policy->env->world, &flat->pump);
	fc_timed_free(flat->timed);
	free(flat->lines);
	free(flat->slots);
	free(flat);
}

static const struct fc_policy_ops flat_ops = {
	.load = flat_load,
	.start = flat_start,
	.save = flat_save,
	.end = flat_end,
	.stats = flat_stats,
	.close = flat_close,
	.layout = flat_layout,
};

static int open_flat(struct fc_policy **policy, const struct fc_policy_env *env, unsigned variant,
		     struct fc_error *error)
{
	struct flat *flat = calloc(1, sizeof(*flat));
	if (flat == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a policy");
	flat->policy = (struct fc_policy){.ops = &flat_ops, .env = env};
	flat->variant = variant;
	flat->alloc = fc_alloc_system();
	flat->pump.fire = on_pump;
	fc_list_init(&flat->pending);
	set_geometry(flat);
	flat->unit_bytes = unit_bytes_of(flat);
	flat->transfer_bytes =
		env->config->transfer_bytes == 0 ? env->hardware->ssd_transfer_bytes : env->config->transfer_bytes;
	struct fc_timed_opts opts = {
		.machine = env->machine,
		.geometry = env->geometry,
		.memory_bytes = env->memory_bytes,
		.ssd_bytes = env->ssd_bytes,
		.window_bytes = env->config->window_bytes,
		.queue_depth = (uint32_t)env->config->queue_depth,
		.transfer_bytes = flat->transfer_bytes,
		.unit_bytes = flat->unit_bytes,
		.pump_cb = on_landed,
		.context = flat,
	};
	int code = fc_timed_new(&flat->timed, &opts);
	flat->slots = calloc(env->turn_blocks_max + 1, sizeof(*flat->slots));
	flat->lines = calloc(env->hardware->workers, sizeof(*flat->lines));
	for (uint64_t i = 0; i < env->hardware->workers && flat->lines != NULL; i++)
		fc_list_init(&flat->lines[i]);
	if (code != FC_OK || flat->slots == NULL || flat->lines == NULL)
		code = fc_error_set(error, FC_ENOMEM, "no memory for a policy");
	if (code == FC_OK)
		code = open_core(flat, error);
	if (code == FC_OK)
		*policy = &flat->policy;
	else
		flat_close(&flat->policy);
	return code;
}

#define VARIANT(function, flags)                                                                                       \
	static int function(struct fc_policy **policy, const struct fc_policy_env *env, struct fc_error *error)        \
	{                                                                                                              \
		return open_flat(policy, env, (flags), error);                                                         \
	}

VARIANT(open_whole, 0)
VARIANT(open_one_queue, ONE_QUEUE)
VARIANT(open_in_order, IN_ORDER)
VARIANT(open_unmerged, NO_MERGE)
VARIANT(open_without_overlap, NO_OVERLAP)
VARIANT(open_unconsolidated, NO_CONSOLIDATE)

static const struct flat_opts defaults = {.is_by_granule = true};
static const struct fc_option settings[] = {
	{.name = "granules", .type = FC_OPTION_BOOL, .field_offset = offsetof(struct flat_opts, is_by_granule)},
};

#define TYPE(variable, type_name, text, function, relative_work)                                                       \
	const struct fc_policy_type variable = {                                                                       \
		.name = (type_name),                                                                                   \
		.summary = (text),                                                                                     \
		.settings = settings,                                                                                  \
		.settings_count = fc_array_len(settings),                                                              \
		.settings_bytes = sizeof(defaults),                                                                    \
		.defaults = &defaults,                                                                                 \
		.work = (relative_work),                                                                               \
		.open = (function),                                                                                    \
	}

TYPE(fc_policy_flat, "flat", "FlatCake: the core of this program, unchanged", open_whole, 90);
TYPE(fc_policy_flat_one_queue, "flat-one-queue", "FlatCake with one queue, in order of arrival", open_one_queue, 90);
TYPE(fc_policy_flat_no_merge, "flat-no-merge", "FlatCake with a read command for each slice", open_unmerged, 90);
TYPE(fc_policy_flat_no_overlap, "flat-no-overlap", "FlatCake whose prefill waits for the whole history",
     open_without_overlap, 85);
TYPE(fc_policy_flat_fifo, "flat-fifo", "FlatCake that reads from SSD in order of arrival", open_in_order, 100);
TYPE(fc_policy_flat_no_consolidate, "flat-no-consolidate",
     "FlatCake in the article's layout: no segment is written twice", open_unconsolidated, 150);

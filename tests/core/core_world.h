/* A core with fake media, a clock that is set by hand, and an engine: where the stories of test_core*.c take place.
 *
 * After every step the whole catalog is checked. Whatever a load brings is compared byte by byte. core_world_deinit()
 * asserts that nothing is left: no request, no lease, no byte of memory. */
#ifndef FC_TESTS_CORE_CORE_WORLD_H
#define FC_TESTS_CORE_CORE_WORLD_H

#include "core/core.h"
#include "device/host.h"
#include "lib/engine.h"
#include "lib/hold_media.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define EVENTS_MAX 512
#define STEPS_MAX 100000
#define SECOND_NS 1000000000ull
#define PATH_BLOCKS_MAX 64

struct core_event {
	enum fc_event_kind kind;
	const struct fc_core_load *load;
	const struct fc_core_save *save;
	uint32_t layer;
	uint64_t blocks;
};

struct core_world {
	struct world world; /* media, geometry, memory; its own catalog stays closed */
	struct hold_media ssd;
	struct fc_device *device;
	struct fc_core_opts opts;
	struct fc_core *core;
	struct engine engine;
	uint64_t now_ns;
	bool is_opened;
	int open_code;
	struct core_event events[EVENTS_MAX];
	uint32_t event_count;
};

static inline uint64_t core_world_now(void *context)
{
	return ((struct core_world *)context)->now_ns;
}

static inline void core_world_on_event(void *context, enum fc_event_kind kind, struct fc_core_load *load,
				       struct fc_core_save *save, uint32_t layer)
{
	struct core_world *world = context;
	assert_true(world->event_count < EVENTS_MAX);
	world->events[world->event_count++] =
		(struct core_event){kind, load, save, layer, load == NULL ? 0 : load->result.blocks};
}

static inline void core_world_on_opened(void *context, int code, const struct fc_error *error)
{
	struct core_world *world = context;
	world->is_opened = true;
	world->open_code = code;
	world->world.error = *error;
}

/* Chunks of 4 KiB; 0: no such arena. Change `opts` before core_world_open(). */
static inline void core_world_init(struct core_world *world, struct fc_geometry geometry, uint64_t memory_chunks,
				   uint64_t ssd_chunks)
{
	memset(world, 0, sizeof(*world));
	world_init(&world->world, geometry, memory_chunks, ssd_chunks);
	engine_init(&world->engine, &world->world.geometry, PATH_BLOCKS_MAX, 1);
	assert_int_equal(fc_device_host(&world->device, NULL), 0);
	world->now_ns = 1000 * SECOND_NS;
	world->opts = (struct fc_core_opts){
		.catalog = world->world.opts,
		.device = world->device,
		.clock = {core_world_now, world},
		.load_streams = 2,
		.save_streams = 2,
		.window_bytes = 64 << 10,
		.gap_bytes = 1,
		.transfer_bytes = 4096,
		.requests_max = 16,
		.io_timeout_ns = 30 * SECOND_NS,
		.event_cb = core_world_on_event,
		.context = world,
	};
}

static inline void core_world_attach_media(struct core_world *world)
{
	struct fake_media **fakes = world->world.media;
	if (fakes[FC_SSD] != NULL)
		hold_media_init(&world->ssd, &fakes[FC_SSD]->media);
	if (fakes[FC_MEMORY] != NULL)
		fakes[FC_MEMORY]->media.map = fakes[FC_MEMORY]->image;
	world->opts.catalog.media[FC_SSD] = fakes[FC_SSD] == NULL ? NULL : &world->ssd.media;
	world->opts.catalog.media[FC_MEMORY] = fakes[FC_MEMORY] == NULL ? NULL : &fakes[FC_MEMORY]->media;
}

/* Returns the code of the open. */
static inline int core_world_open(struct core_world *world)
{
	core_world_attach_media(world);
	world->is_opened = false;
	int code = fc_core_open(&world->core, &world->opts, core_world_on_opened, &world->world.error);
	if (code != FC_OK)
		return code;
	for (int steps = 0; !world->is_opened; steps++) {
		assert_true(steps < STEPS_MAX);
		fc_core_step(world->core);
	}
	if (world->open_code != FC_OK) {
		fc_core_free(world->core);
		world->core = NULL;
	}
	return world->open_code;
}

static inline void core_world_check(struct core_world *world)
{
	struct fc_error error = {0};
	if (fc_catalog_check(fc_core_catalog(world->core), &error) != FC_OK)
		fail_msg("%s", error.text);
}

static inline unsigned core_world_step(struct core_world *world)
{
	unsigned count = fc_core_step(world->core);
	core_world_check(world);
	return count;
}

/* Until nothing moves any more. */
static inline void core_world_settle(struct core_world *world)
{
	for (int steps = 0; core_world_step(world) > 0; steps++)
		assert_true(steps < STEPS_MAX);
}

static inline struct fc_stats core_world_stats(const struct core_world *world)
{
	struct fc_stats stats = {0};
	fc_core_stats(world->core, &stats);
	return stats;
}

static inline void core_world_close(struct core_world *world)
{
	core_world_settle(world);
	assert_true(fc_core_is_idle(world->core));
	assert_int_equal(core_world_stats(world).leases, 0);
	fc_core_free(world->core);
	world->core = NULL;
}

static inline void core_world_deinit(struct core_world *world)
{
	if (world->core != NULL)
		core_world_close(world);
	fc_device_close(world->device);
	engine_deinit(&world->engine);
	world_deinit(&world->world);
}

/* ---- requests ---- */

static inline struct fc_save_opts core_world_save_opts(struct core_world *world, uint64_t session, uint64_t turn,
						       const struct fc_key *keys, uint64_t count)
{
	struct fc_save_opts opts = {.session = {0, session}, .keys = keys, .key_count = count, .turn = turn};
	engine_slots(&world->engine, count, opts.slots);
	return opts;
}

static inline struct fc_core_save *core_world_submit_save(struct core_world *world, const struct fc_save_opts *opts)
{
	struct fc_core_save *save = NULL;
	struct fc_error error = {0};
	if (fc_core_save_submit(world->core, opts, world->engine.layers, world, &save, &error) != FC_OK)
		fail_msg("%s", error.text);
	return save;
}

/* Prefill, save, wait until it is durable. */
static inline struct fc_save_result core_world_save(struct core_world *world, uint64_t session, uint64_t turn,
						    const struct fc_key *keys, uint64_t count)
{
	struct fc_save_opts opts = core_world_save_opts(world, session, turn, keys, count);
	engine_fill(&world->engine, keys, count);
	struct fc_core_save *save = core_world_submit_save(world, &opts);
	core_world_settle(world);
	assert_true(save->state == FC_SAVE_DURABLE || save->state == FC_SAVE_FAILED);
	struct fc_save_result result = save->result;
	fc_core_save_free(world->core, save);
	return result;
}

static inline struct fc_load_opts core_world_load_opts(struct core_world *world, const struct fc_key *keys,
						       uint64_t count)
{
	struct fc_load_opts opts = {.keys = keys, .key_count = count, .is_started_when_ready = true};
	engine_slots(&world->engine, count, opts.slots);
	return opts;
}

static inline struct fc_core_load *core_world_submit_load(struct core_world *world, const struct fc_load_opts *opts)
{
	struct fc_core_load *load = NULL;
	struct fc_error error = {0};
	if (fc_core_load_submit(world->core, opts, world->engine.layers, world, &load, &error) != FC_OK)
		fail_msg("%s", error.text);
	return load;
}

/* Load into wiped memory, and compare all that it says it brought. */
static inline struct fc_load_result core_world_load(struct core_world *world, const struct fc_key *keys, uint64_t count)
{
	struct fc_load_opts opts = core_world_load_opts(world, keys, count);
	engine_wipe(&world->engine);
	struct fc_core_load *load = core_world_submit_load(world, &opts);
	core_world_settle(world);
	assert_int_equal(load->state, FC_LOAD_ENDED);
	struct fc_load_result result = load->result;
	engine_check(&world->engine, keys, result.blocks);
	fc_core_load_free(world->core, load);
	return result;
}

/* Flips a byte of a slice where it lies. */
static inline void core_world_damage(struct core_world *world, const struct fc_key *keys, uint64_t count,
				     uint32_t group, uint64_t block, uint32_t layer)
{
	struct fc_path path = {0};
	const struct fc_geometry *geometry = &world->world.geometry;
	assert_int_equal(fc_catalog_match(fc_core_catalog(world->core), keys, count, 0, false, &path), 0);
	uint32_t number = 0;
	while (number < path.span_count &&
	       !(path.spans[number].group == group && block >= path.spans[number].block_first &&
		 block - path.spans[number].block_first < path.spans[number].count))
		number++;
	assert_true(number < path.span_count);
	const struct fc_span *span = &path.spans[number];
	const struct fc_placed *placed = &path.placed[span->placed];
	struct fc_layer_area area;
	fc_layer_seek(geometry, placed->shape, placed->header_bytes, placed->align, layer, &area);
	const struct fc_range *range = fc_shape_range_of(placed->shape, span->entry_first);
	struct fc_range_area where = fc_range_area_in(geometry, placed->shape, &area, range);
	uint64_t position = span->entry_first + (block - span->block_first) - range->entry_first;
	uint8_t *image = world->world.media[fc_gva_medium(placed->base)]->image;
	image[fc_gva_offset(placed->base) + where.slice_offset + position * where.slice_bytes] ^= 0x40;
	fc_path_deinit(&path, &world->world.alloc);
}

static inline uint32_t core_world_count_events(const struct core_world *world, enum fc_event_kind kind,
					       const struct fc_core_load *load)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < world->event_count; i++)
		count += world->events[i].kind == kind && world->events[i].load == load;
	return count;
}

#endif

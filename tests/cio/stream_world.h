/* A stream with fake media and a catalog: where the stories of test_load.c and test_save.c take place. */
#ifndef FC_TESTS_CIO_STREAM_WORLD_H
#define FC_TESTS_CIO_STREAM_WORLD_H

#include "cio/load.h"
#include "cio/save.h"
#include "device/host.h"
#include "lib/engine.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BLOCKS 24
#define LAYERS_SEEN_MAX 64

struct stream_world {
	struct world world;
	struct fc_device *device;
	uint8_t *window;
	uint64_t window_bytes;
	struct fc_gate gate;
	struct fc_stream stream;
	struct engine engine;
	struct fc_target target;
	struct fc_key keys[BLOCKS];
	struct fc_path path;
	struct fc_load_job load;
	struct fc_save_job save;
	unsigned end_count;
	uint32_t layers[LAYERS_SEEN_MAX]; /* announced, in order */
	unsigned layer_count;
};

/* Time stands still: the gate has no patience (0), so that every line has a command with the medium. */
static inline uint64_t stream_world_now(void *context)
{
	(void)context;
	return 1;
}

/* The catalog is open; window of two slots of `slot_bytes`, commands of at most 1024 bytes. */
static inline void stream_world_init_with(struct stream_world *world, struct fc_geometry geometry, uint64_t slot_bytes,
					  uint64_t ssd_chunks)
{
	memset(world, 0, sizeof(*world));
	world_init(&world->world, geometry, 32, ssd_chunks);
	world->world.media[FC_MEMORY]->media.map = world->world.media[FC_MEMORY]->image;
	assert_int_equal(world_open(&world->world), 0);
	assert_int_equal(fc_device_host(&world->device, NULL), 0);
	world->window_bytes = FC_STREAM_SLOTS * slot_bytes;
	world->window = world->device->ops->window_alloc(world->device, world->window_bytes);
	assert_non_null(world->window);
	fc_gate_init(&world->gate, &world->world.media[FC_SSD]->media, (struct fc_clock){stream_world_now, world}, 0,
		     false);
	struct fc_stream_opts opts = {&world->world.alloc, world->device, world->window_bytes, 1024, &world->gate};
	fc_stream_init(&world->stream, &opts, world->window);
	engine_init(&world->engine, &geometry, BLOCKS, 1);
	world->target.layers = world->engine.layers;
	engine_slots(&world->engine, BLOCKS, world->target.slots);
	path_keys(1, 0, world->keys, BLOCKS);
}

static inline void stream_world_init(struct stream_world *world, struct fc_geometry geometry, uint64_t slot_bytes)
{
	stream_world_init_with(world, geometry, slot_bytes, 64);
}

static inline void stream_world_deinit(struct stream_world *world)
{
	fc_catalog_release(world->world.catalog, &world->path);
	fc_path_deinit(&world->path, &world->world.alloc);
	fc_stream_deinit(&world->stream);
	world->device->ops->window_free(world->device, world->window, world->window_bytes);
	fc_device_close(world->device);
	engine_deinit(&world->engine);
	world_deinit(&world->world);
}

static inline unsigned stream_world_poll(struct stream_world *world)
{
	return fc_device_poll(world->device) + world_poll(&world->world);
}

/* Until the job has told that it ended, once. */
static inline void stream_world_finish(struct stream_world *world)
{
	for (int polls = 0; world->end_count == 0; polls++) {
		assert_true(polls < 100000);
		stream_world_poll(world);
	}
	assert_int_equal(world->end_count, 1);
	assert_false(fc_stream_is_moving(&world->stream));
	assert_false(world->stream.is_busy);
	assert_int_equal(stream_world_poll(world), 0); /* and nothing comes after the end */
}

/* ---- a device that fails ---- */

/* Stands in front of the world's own device and ends every batch with a code. */
struct failing_device {
	struct fc_device device;
	struct fc_device *real;
	struct fc_link batches;
	int code;
};

static inline void failing_submit(struct fc_device *device, struct fc_copy_batch *batch)
{
	fc_list_push(&fc_container_of(device, struct failing_device, device)->batches, &batch->link);
}

static inline unsigned failing_poll(struct fc_device *device)
{
	struct failing_device *failing = fc_container_of(device, struct failing_device, device);
	struct fc_link *link = fc_list_pop(&failing->batches);
	if (link == NULL)
		return 0;
	struct fc_copy_batch *batch = fc_container_of(link, struct fc_copy_batch, link);
	batch->result = failing->code;
	batch->bad_first = batch->copy_count;
	batch->done_cb(batch);
	return 1;
}

static const struct fc_device_ops failing_device_ops = {.submit = failing_submit, .poll = failing_poll};

static inline void failing_device_begin(struct failing_device *failing, struct stream_world *world, int code)
{
	*failing = (struct failing_device){.device = {.ops = &failing_device_ops}, .real = world->device, .code = code};
	fc_list_init(&failing->batches);
	world->device = world->stream.opts.device = &failing->device;
}

static inline void failing_device_end(struct failing_device *failing, struct stream_world *world)
{
	assert_true(fc_list_is_empty(&failing->batches));
	world->device = world->stream.opts.device = failing->real;
}

#endif

/* Load: two layers deep, in order, whole or not at all, and stopped anywhere. */
#include "cio/stream_world.h"

static void on_layer(struct fc_load_job *job, uint32_t layer)
{
	struct stream_world *world = fc_container_of(job, struct stream_world, load);
	assert_int_equal(world->end_count, 0);
	assert_true(world->layer_count < LAYERS_SEEN_MAX);
	/* What is announced is in place. */
	assert_true(engine_has_layer(&world->engine, world->keys, world->path.blocks, layer));
	world->layers[world->layer_count++] = layer;
}

static void on_ended(struct fc_load_job *job)
{
	fc_container_of(job, struct stream_world, load)->end_count++;
}

/* Saves turns that end at `ends`, each by a session of its own. */
static void store_turns(struct stream_world *world, const uint64_t *ends, uint64_t turn_count)
{
	for (uint64_t turn = 0; turn < turn_count; turn++)
		assert_int_equal(save(&world->world, turn + 1, 0, world->keys, ends[turn]), 0);
	assert_int_equal(fc_catalog_match(world->world.catalog, world->keys, BLOCKS, 0, true, &world->path), 0);
	assert_int_equal(world->path.blocks, ends[turn_count - 1]);
}

static int start(struct stream_world *world)
{
	static const struct fc_sched_item place = {.ssd_bytes = 1};
	engine_wipe(&world->engine);
	world->end_count = world->layer_count = 0;
	world->load = (struct fc_load_job){
		.plan =
			{
				.geometry = &world->world.geometry,
				.path = &world->path,
				.keys = world->keys,
				.target = &world->target,
				.memory_map = world->world.media[FC_MEMORY]->image,
				.gap_bytes = 1,
			},
		.place = &place,
		.layer_cb = on_layer,
		.ended_cb = on_ended,
	};
	return fc_load_job_start(&world->load, &world->stream, NULL);
}

static void run(struct stream_world *world)
{
	assert_int_equal(start(world), 0);
	assert_int_equal(world->end_count, 0); /* never from inside the start */
	stream_world_finish(world);
}

static void assert_all_layers(const struct stream_world *world)
{
	assert_int_equal(world->layer_count, world->world.geometry.layer_count);
	for (uint32_t layer = 0; layer < world->layer_count; layer++)
		assert_int_equal(world->layers[layer], layer);
}

static void layers_come_in_order_whatever_order_the_reads_end_in(void **state)
{
	(void)state;
	const struct fc_geometry geometries[] = {geometry_plain(100), geometry_hybrid(200)};
	for (size_t i = 0; i < fc_array_len(geometries); i++) {
		for (uint64_t seed = 0; seed < 30; seed++) {
			struct stream_world world;
			stream_world_init(&world, geometries[i], 16384);
			store_turns(&world, (uint64_t[]){8, 14, 24}, 3);
			world.world.media[FC_SSD]->shuffle_seed = seed;
			run(&world);
			assert_int_equal(world.load.code, 0);
			assert_all_layers(&world);
			engine_check(&world.engine, world.keys, 24);
			assert_int_equal(world.load.bytes_wanted[FC_SSD], world.path.bytes[FC_SSD]);
			stream_world_deinit(&world);
		}
	}
}

/* A read that is on its way while another has ended: the layers behind wait for the one in front. */
static void a_stream_never_stages_more_than_two_layers_or_its_window(void **state)
{
	(void)state;
	struct fc_geometry many = geometry_plain(100);
	many.layer_count = 40;
	for (uint32_t layer = 0; layer < 40; layer++)
		many.groups[0].slice_bytes[layer] = 100 + layer;
	for (uint64_t slot_bytes = 3584; slot_bytes <= 16384; slot_bytes += 2560) {
		struct stream_world world;
		stream_world_init(&world, many, slot_bytes);
		store_turns(&world, (uint64_t[]){8, 14, 24}, 3);
		world.world.media[FC_SSD]->shuffle_seed = slot_bytes;
		run(&world);
		assert_int_equal(world.load.code, 0);
		assert_all_layers(&world);
		assert_int_equal(world.load.staged_layers_max, 2);
		assert_true(world.load.staged_bytes_max <= 2 * slot_bytes);
		engine_check(&world.engine, world.keys, 24);
		stream_world_deinit(&world);
	}
}

/* 24 blocks of 1000 bytes: an area of 24096 bytes, read as 24576 in commands of 1024; the second layer, 16896, in 17.
 */
static void runs_and_commands_are_counted_apart(void **state)
{
	(void)state;
	struct stream_world world;
	stream_world_init(&world, geometry_plain(100), 32768);
	store_turns(&world, (uint64_t[]){24}, 1);
	run(&world);
	assert_int_equal(world.load.planned_runs, 2);
	assert_int_equal(world.load.commands, 24 + 17);
	assert_int_equal(world.load.bytes_read, 24576 + 16896);
	assert_int_equal(world.load.bytes_wanted[FC_SSD], 24 * 1700);
	stream_world_deinit(&world);
}

static void a_read_that_fails_once_is_sent_again(void **state)
{
	(void)state;
	for (int is_short = 0; is_short < 2; is_short++) {
		for (uint64_t k = 1; k <= 41; k++) {
			struct stream_world world;
			stream_world_init(&world, geometry_plain(100), 8192);
			store_turns(&world, (uint64_t[]){8, 24}, 2);
			struct fake_media *ssd = world.world.media[FC_SSD];
			ssd->is_short = is_short;
			ssd->fail_at = ssd->op_count + k;
			ssd->fail_count = 1;
			run(&world);
			assert_int_equal(ssd->media.counters.errors, 1);
			assert_int_equal(world.load.code, FC_OK);
			assert_all_layers(&world);
			engine_check(&world.engine, world.keys, 24);
			stream_world_deinit(&world);
		}
	}
}

/* Where the slice of a block lies in the arena. */
static uint64_t slice_offset(struct stream_world *world, uint64_t block, uint32_t layer)
{
	uint8_t slice[1000];
	uint64_t bytes = world->world.geometry.groups[0].slice_bytes[layer];
	slice_bytes(world->keys[block], 0, layer, slice, bytes);
	struct fake_media *ssd = world->world.media[FC_SSD];
	uint8_t *found = memmem(ssd->image, ssd->media.bytes, slice, bytes);
	assert_non_null(found);
	return (uint64_t)(found - ssd->image);
}

static void a_place_that_cannot_be_read_ends_the_job_and_is_named(void **state)
{
	(void)state;
	for (uint64_t block = 0; block < 24; block++) {
		for (uint32_t layer = 0; layer < 2; layer++) {
			struct stream_world world;
			stream_world_init(&world, geometry_plain(100), 8192);
			world.stream.opts.transfer_bytes = 512;
			store_turns(&world, (uint64_t[]){8, 24}, 2);
			struct fake_media *ssd = world.world.media[FC_SSD];
			ssd->bad_offset = slice_offset(&world, block, layer) + 500;
			ssd->bad_bytes = 1;
			run(&world);
			assert_int_equal(world.load.code, FC_ECORRUPT);
			assert_int_equal(world.load.bad_count, 1);
			assert_false(world.load.bad[0].is_checksum);
			assert_int_equal(world.load.bad[0].placed, block >= 8);
			/* A command brings 512 bytes, so it may also have been to bring the end of the slice before. */
			uint64_t entry = block - (block >= 8 ? 8 : 0);
			assert_in_range(world.load.bad[0].entry, entry - (entry > 0), entry);
			assert_true(world.layer_count <= layer);
			ssd->bad_bytes = 0;
			run(&world); /* the stream is as good as new */
			assert_int_equal(world.load.code, 0);
			stream_world_deinit(&world);
		}
	}
}

/* Flips a byte of the slices of these blocks in layer 0; the first segment has blocks 0 to 7. */
static void damage(struct stream_world *world, const uint64_t *blocks, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint8_t slice[1000];
		slice_bytes(world->keys[blocks[i]], 0, 0, slice, sizeof(slice));
		struct fake_media *ssd = world->world.media[FC_SSD];
		uint8_t *found = memmem(ssd->image, ssd->media.bytes, slice, sizeof(slice));
		assert_non_null(found);
		found[500] ^= 1;
	}
}

static void undo_damage(struct stream_world *world, uint64_t block)
{
	uint8_t slice[1000];
	slice_bytes(world->keys[block], 0, 0, slice, sizeof(slice));
	struct fake_media *ssd = world->world.media[FC_SSD];
	uint8_t *found = memmem(ssd->image, ssd->media.bytes, slice, 500);
	assert_non_null(found);
	found[500] ^= 1;
}

static void all_damage_of_a_part_is_named(void **state)
{
	(void)state;
	struct stream_world world;
	const uint64_t blocks[] = {1, 6, 9, 23};
	stream_world_init(&world, geometry_plain(100), 32768);
	store_turns(&world, (uint64_t[]){8, 24}, 2);
	damage(&world, blocks, 4);
	run(&world);
	assert_int_equal(world.load.code, FC_ECORRUPT);
	assert_int_equal(world.load.bad_count, 4);
	assert_int_equal(world.layer_count, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(world.load.bad[i].is_checksum);
		assert_int_equal(world.load.bad[i].placed, blocks[i] >= 8);
		assert_int_equal(world.load.bad[i].entry, blocks[i] - (blocks[i] >= 8 ? 8 : 0));
	}
	stream_world_deinit(&world);
}

/* The first reading of the layer is wrong, what lies on the medium is not. */
static void what_is_right_when_it_is_read_again_was_not_damaged(void **state)
{
	(void)state;
	struct stream_world world;
	const uint64_t blocks[] = {1, 6, 9, 23};
	stream_world_init(&world, geometry_plain(100), 32768);
	store_turns(&world, (uint64_t[]){8, 24}, 2);
	struct fake_media *ssd = world.world.media[FC_SSD];
	uint64_t reads_before = ssd->media.counters.read_commands;
	damage(&world, blocks, 4);
	assert_int_equal(start(&world), 0);
	while (ssd->media.counters.read_commands == reads_before)
		stream_world_poll(&world);
	for (unsigned i = 0; i < 4; i++)
		undo_damage(&world, blocks[i]);
	stream_world_finish(&world);
	assert_int_equal(world.load.code, 0);
	assert_int_equal(world.load.bad_count, 0);
	assert_int_equal(world.load.flickers, 1);
	assert_all_layers(&world);
	engine_check(&world.engine, world.keys, 24);
	stream_world_deinit(&world);
}

/* Four groups of 24 blocks are 96 slices in one part: as many as are worth naming are named, and none is delivered. */
static void more_damage_than_can_be_named_is_damage_all_the_same(void **state)
{
	(void)state;
	struct stream_world world;
	struct fc_geometry geometry = geometry_plain(1);
	geometry.layer_count = 1;
	geometry.group_count = 4;
	for (uint32_t group = 0; group < 4; group++)
		geometry.groups[group] = (struct fc_group){.tokens_per_block = 4, .slice_bytes = {20}};
	stream_world_init(&world, geometry, 32768);
	store_turns(&world, (uint64_t[]){24}, 1);
	struct fake_media *ssd = world.world.media[FC_SSD];
	for (uint32_t group = 0; group < 4; group++)
		for (uint64_t block = 0; block < 24; block++) {
			uint8_t slice[20];
			slice_bytes(world.keys[block], group, 0, slice, sizeof(slice));
			uint8_t *found = memmem(ssd->image, ssd->media.bytes, slice, sizeof(slice));
			assert_non_null(found);
			found[7] ^= 1;
		}
	run(&world);
	assert_int_equal(world.load.code, FC_ECORRUPT);
	assert_int_equal(world.load.bad_count, FC_BAD_MAX);
	assert_int_equal(world.load.bad[FC_BAD_MAX - 1].entry, FC_BAD_MAX - 1);
	assert_int_equal(world.layer_count, 0);
	stream_world_deinit(&world);
}

static void a_device_that_fails_ends_the_job_with_its_code(void **state)
{
	(void)state;
	struct stream_world world;
	struct failing_device failing;
	stream_world_init(&world, geometry_plain(100), 32768);
	store_turns(&world, (uint64_t[]){8, 24}, 2);
	failing_device_begin(&failing, &world, FC_EIO);
	run(&world);
	assert_int_equal(world.load.code, FC_EIO);
	assert_int_equal(world.load.bad_count, 0); /* nothing is wrong with what is stored */
	assert_int_equal(world.layer_count, 0);
	failing_device_end(&failing, &world);
	run(&world);
	assert_int_equal(world.load.code, 0);
	engine_check(&world.engine, world.keys, 24);
	stream_world_deinit(&world);
}

static void a_job_can_be_stopped_at_any_point(void **state)
{
	(void)state;
	for (unsigned polls = 0;; polls++) {
		struct stream_world world;
		stream_world_init(&world, geometry_plain(100), 8192);
		store_turns(&world, (uint64_t[]){8, 24}, 2);
		assert_int_equal(start(&world), 0);
		for (unsigned i = 0; i < polls && world.end_count == 0; i++)
			stream_world_poll(&world);
		bool has_ended = world.end_count > 0;
		if (!has_ended) {
			unsigned layers = world.layer_count;
			fc_load_job_stop(&world.load);
			stream_world_finish(&world);
			assert_int_equal(world.load.code, FC_ECANCELED);
			assert_int_equal(world.layer_count, layers); /* nothing is announced any more */
		}
		stream_world_deinit(&world);
		if (has_ended) {
			assert_true(polls > 6);
			return;
		}
	}
}

static void want_of_memory_ends_the_job_and_leaves_the_stream_usable(void **state)
{
	(void)state;
	for (uint64_t fail_at = 1;; fail_at++) {
		struct stream_world world;
		stream_world_init(&world, geometry_plain(100), 8192);
		store_turns(&world, (uint64_t[]){8, 24}, 2);
		world.world.tracked.call_count = 0;
		world.world.tracked.fail_at = fail_at;
		int code = start(&world);
		if (code == FC_OK) {
			stream_world_finish(&world);
			code = world.load.code;
		} else {
			assert_int_equal(stream_world_poll(&world), 0);
			assert_int_equal(world.end_count, 0);
		}
		world.world.tracked.fail_at = 0;
		assert_true(code == FC_OK || code == FC_ENOMEM);
		run(&world);
		assert_int_equal(world.load.code, 0);
		engine_check(&world.engine, world.keys, 24);
		stream_world_deinit(&world);
		if (code == FC_OK) {
			assert_true(fail_at > 6);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_come_in_order_whatever_order_the_reads_end_in),
		cmocka_unit_test(a_stream_never_stages_more_than_two_layers_or_its_window),
		cmocka_unit_test(runs_and_commands_are_counted_apart),
		cmocka_unit_test(a_read_that_fails_once_is_sent_again),
		cmocka_unit_test(a_place_that_cannot_be_read_ends_the_job_and_is_named),
		cmocka_unit_test(all_damage_of_a_part_is_named),
		cmocka_unit_test(what_is_right_when_it_is_read_again_was_not_damaged),
		cmocka_unit_test(more_damage_than_can_be_named_is_damage_all_the_same),
		cmocka_unit_test(a_device_that_fails_ends_the_job_with_its_code),
		cmocka_unit_test(a_job_can_be_stopped_at_any_point),
		cmocka_unit_test(want_of_memory_ends_the_job_and_leaves_the_stream_usable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

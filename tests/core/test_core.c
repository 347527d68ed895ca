/* Opening and closing the core: options that cannot be, memory that is not there, and what an earlier run left. */
#include "core/core_world.h"

#include <math.h>

static void assert_open_fails(struct core_world *world, int code, const char *text)
{
	assert_int_equal(core_world_open(world), code);
	assert_string_equal(world->world.error.text, text);
	assert_null(world->core);
	assert_int_equal(world->world.tracked.bytes, 0);
}

static void options_that_cannot_be_are_named_with_what_is_allowed(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 8, 32);
	struct fc_core_opts good = world.opts;
	world.opts.catalog.low_watermark = 0;
	assert_open_fails(&world, FC_EINVAL, "watermarks: low 0, high 1; 0 < low <= high <= 1 is allowed");
	world.opts = good;
	world.opts.catalog.high_watermark = 1.5;
	assert_open_fails(&world, FC_EINVAL, "watermarks: low 1, high 1.5; 0 < low <= high <= 1 is allowed");
	world.opts = good;
	world.opts.catalog.consolidate_ratio = -1;
	assert_open_fails(&world, FC_EINVAL, "consolidate_ratio -1; 0 to 100 is allowed");
	world.opts = good;
	world.opts.load_streams = 0;
	assert_open_fails(&world, FC_EINVAL, "streams: 0 to load, 2 to save; 1 to 1024 are allowed");
	world.opts = good;
	world.opts.requests_max = 0;
	assert_open_fails(&world, FC_EINVAL, "requests_max 0; 1 to 1048576 is allowed");
	world.opts = good;
	world.opts.io_timeout_ns = 0;
	assert_open_fails(&world, FC_EINVAL, "io_timeout_ns 0; at least 1 is allowed");
	world.opts = good;
	world.opts.transfer_bytes = 1000;
	assert_open_fails(&world, FC_EINVAL, "transfer_bytes 1000; a multiple of 512 is allowed");
	world.opts.transfer_bytes = 0;
	assert_open_fails(&world, FC_EINVAL, "transfer_bytes 0; a multiple of 512 is allowed");
	world.opts = good;
	world.opts.catalog.consolidate_ratio = (double)NAN;
	assert_open_fails(&world, FC_EINVAL, "consolidate_ratio nan; 0 to 100 is allowed");
	world.opts = good;
	world.opts.catalog.consolidate_ratio = 101;
	assert_open_fails(&world, FC_EINVAL, "consolidate_ratio 101; 0 to 100 is allowed");
	world.opts = good;
	world.opts.load_streams = 1025;
	assert_open_fails(&world, FC_EINVAL, "streams: 1025 to load, 2 to save; 1 to 1024 are allowed");
	world.opts = good;
	world.opts.save_streams = 0;
	assert_open_fails(&world, FC_EINVAL, "streams: 2 to load, 0 to save; 1 to 1024 are allowed");
	world.opts.save_streams = 1025;
	assert_open_fails(&world, FC_EINVAL, "streams: 2 to load, 1025 to save; 1 to 1024 are allowed");
	world.opts = good;
	world.opts.requests_max = (1u << 20) + 1;
	assert_open_fails(&world, FC_EINVAL, "requests_max 1048577; 1 to 1048576 is allowed");
	core_world_deinit(&world);
}

static void a_geometry_that_cannot_be_is_named(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 8, 32);
	struct fc_geometry wrong = world.world.geometry;
	wrong.group_count = 0;
	world.opts.catalog.geometry = &wrong;
	assert_int_equal(core_world_open(&world), FC_EINVAL);
	assert_non_null(strstr(world.world.error.text, "group_count is 0; allowed are 1 to"));
	assert_null(world.core);
	core_world_deinit(&world);
}

/* The largest slice has 1000 bytes: twice 1000 + 4 + 4 x 512. */
static void a_window_is_as_large_as_the_geometry_needs_and_not_absurd(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 8, 32);
	const uint64_t refused[] = {0, 5120, 6104, 6145, (64ull << 30) + 1024, 1ull << 63};
	for (size_t i = 0; i < fc_array_len(refused); i++) {
		char text[256];
		world.opts.window_bytes = refused[i];
		snprintf(text, sizeof(text),
			 "window_bytes %llu; from 6104, which this geometry needs, to 68719476736 are allowed, in "
			 "multiples of 1024",
			 (unsigned long long)refused[i]);
		assert_open_fails(&world, FC_EINVAL, text);
	}
	world.opts.window_bytes = 6144;
	assert_int_equal(core_world_open(&world), 0);
	struct fc_key keys[20];
	path_keys(1, 0, keys, 20);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 20).code, 0);
	assert_int_equal(core_world_load(&world, keys, 20).blocks, 20);
	core_world_deinit(&world);
}

static void a_core_without_any_arena_is_refused(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 0, 0);
	assert_open_fails(&world, FC_EINVAL, "memory_bytes and ssd_bytes are both 0; at least one arena is needed");
	core_world_deinit(&world);
}

static void one_arena_of_either_kind_is_enough(void **state)
{
	(void)state;
	for (uint64_t kind = 0; kind < 2; kind++) {
		struct core_world world;
		struct fc_key keys[8];
		core_world_init(&world, geometry_plain(100), kind == 0 ? 16 : 0, kind == 1 ? 16 : 0);
		assert_int_equal(core_world_open(&world), 0);
		path_keys(1, 0, keys, 8);
		for (uint64_t turn = 0; turn < 2; turn++) {
			struct fc_save_result result = core_world_save(&world, 1, turn, keys, 4 + 4 * turn);
			assert_int_equal(result.code, 0);
			assert_int_equal(result.is_durable, kind == 1);
		}
		assert_int_equal(core_world_load(&world, keys, 8).blocks, 8);
		core_world_deinit(&world);
	}
}

static void an_arena_of_another_geometry_is_refused_and_left_as_it_was(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	core_world_init(&world, geometry_plain(100), 0, 32);
	assert_int_equal(core_world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0);
	core_world_close(&world);
	struct fake_media *ssd = world.world.media[FC_SSD];
	uint8_t *before = malloc(ssd->media.bytes);
	memcpy(before, ssd->image, ssd->media.bytes);
	world.world.geometry.groups[0].slice_bytes[1] = 701;
	assert_int_equal(core_world_open(&world), FC_EGEOMETRY);
	assert_non_null(
		strstr(world.world.error.text, "group 0 layer 1: the arena has slices of 700 bytes; wanted 701"));
	assert_memory_equal(before, ssd->image, ssd->media.bytes);
	free(before);
	world.world.geometry.groups[0].slice_bytes[1] = 700;
	assert_int_equal(core_world_open(&world), 0);
	assert_int_equal(core_world_load(&world, keys, 8).blocks, 8);
	core_world_deinit(&world);
}

static void want_of_memory_while_opening_leaks_nothing(void **state)
{
	(void)state;
	int code = FC_ENOMEM;
	uint64_t failures = 0;
	for (uint64_t fail_at = 1; code != FC_OK; fail_at++, failures++) {
		struct core_world world;
		core_world_init(&world, geometry_plain(100), 8, 32);
		world.world.tracked.fail_at = fail_at;
		code = core_world_open(&world);
		assert_true(code == FC_OK || code == FC_ENOMEM);
		world.world.tracked.fail_at = 0;
		core_world_deinit(&world);
	}
	assert_true(failures > 10);
}

static void *no_window(struct fc_device *device, uint64_t bytes)
{
	(void)device, (void)bytes;
	return NULL;
}

static void a_device_without_memory_for_windows_is_an_error(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 8, 32);
	const struct fc_device_ops *real = world.device->ops;
	struct fc_device_ops ops = *real;
	ops.window_alloc = no_window;
	world.device->ops = &ops;
	assert_open_fails(&world, FC_ENOMEM, "open: out of memory");
	world.device->ops = real;
	core_world_deinit(&world);
}

static void freeing_everything_ends_every_request_and_tells_its_owner(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8], others[8];
	struct fc_core_load *loads[4];
	core_world_init(&world, geometry_plain(100), 8, 32);
	assert_int_equal(core_world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	path_keys(2, 0, others, 8);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0);
	world.event_count = 0;
	struct fc_load_opts opts = core_world_load_opts(&world, keys, 8);
	opts.is_started_when_ready = false;
	loads[0] = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(loads[0]->state, FC_LOAD_READY); /* in place, and nobody takes it */
	world.ssd.is_holding[FC_IO_READ] = world.ssd.is_holding[FC_IO_WRITE] = true;
	for (int i = 1; i < 4; i++)
		loads[i] = core_world_submit_load(&world, &opts);
	struct fc_save_opts save_opts = core_world_save_opts(&world, 2, 0, others, 8);
	struct fc_core_save *save = core_world_submit_save(&world, &save_opts);
	core_world_settle(&world);
	fc_core_free_all(world.core);
	fc_core_free_all(world.core); /* a second time does nothing more */
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(core_world_count_events(&world, FC_EVENT_LOADED, loads[i]), 1);
		assert_int_equal(loads[i]->result.code, i == 0 ? FC_OK : FC_ECANCELED);
	}
	assert_int_equal(save->result.code, FC_ECANCELED);
	assert_true(fc_core_is_idle(world.core));
	core_world_deinit(&world);
}

/* ---- looks ---- */

static void a_look_asks_every_arena_and_says_what_it_heard(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 16, 16);
	assert_int_equal(core_world_open(&world), 0);
	struct fake_media *ssd = world.world.media[FC_SSD];
	for (int is_failing = 0; is_failing < 2; is_failing++) {
		uint64_t syncs = ssd->media.counters.sync_commands;
		ssd->fail_at = is_failing ? ssd->op_count + 1 : 0;
		ssd->fail_count = 1;
		uint64_t look = fc_core_look(world.core);
		assert_int_equal(fc_core_looks_ended(world.core), look - 1);
		assert_false(fc_core_is_idle(world.core));
		core_world_settle(&world);
		assert_int_equal(fc_core_looks_ended(world.core), look);
		assert_true(fc_core_is_idle(world.core));
		assert_int_equal(ssd->media.counters.sync_commands, syncs + (is_failing ? 0 : 1));
		assert_int_equal(fc_core_look_error(world.core)->code, is_failing ? FC_EIO : FC_OK);
	}
	assert_non_null(strstr(fc_core_look_error(world.core)->text, "the test's arena: sync: a fault of the test"));
	core_world_deinit(&world);
}

/* Who asks while a look is under way is answered by the next one, together with all who asked meanwhile. */
static void an_answer_is_never_older_than_its_question(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 0, 16);
	assert_int_equal(core_world_open(&world), 0);
	struct fake_media *ssd = world.world.media[FC_SSD];
	uint64_t syncs = ssd->media.counters.sync_commands;
	uint64_t first = fc_core_look(world.core);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fc_core_look(world.core), first + 1);
	fc_core_step(world.core);
	assert_true(fc_core_looks_ended(world.core) >= first);
	core_world_settle(&world);
	assert_int_equal(fc_core_looks_ended(world.core), first + 1);
	assert_int_equal(ssd->media.counters.sync_commands, syncs + 2);
	core_world_deinit(&world);
}

static void without_an_arena_that_outlives_the_process_a_look_has_nothing_to_ask(void **state)
{
	(void)state;
	struct core_world world;
	core_world_init(&world, geometry_plain(100), 16, 0);
	assert_int_equal(core_world_open(&world), 0);
	uint64_t look = fc_core_look(world.core);
	assert_int_equal(fc_core_looks_ended(world.core), look);
	assert_int_equal(fc_core_look_error(world.core)->code, FC_OK);
	core_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_that_cannot_be_are_named_with_what_is_allowed),
		cmocka_unit_test(a_geometry_that_cannot_be_is_named),
		cmocka_unit_test(a_window_is_as_large_as_the_geometry_needs_and_not_absurd),
		cmocka_unit_test(a_core_without_any_arena_is_refused),
		cmocka_unit_test(one_arena_of_either_kind_is_enough),
		cmocka_unit_test(an_arena_of_another_geometry_is_refused_and_left_as_it_was),
		cmocka_unit_test(want_of_memory_while_opening_leaks_nothing),
		cmocka_unit_test(a_device_without_memory_for_windows_is_an_error),
		cmocka_unit_test(freeing_everything_ends_every_request_and_tells_its_owner),
		cmocka_unit_test(a_look_asks_every_arena_and_says_what_it_heard),
		cmocka_unit_test(an_answer_is_never_older_than_its_question),
		cmocka_unit_test(without_an_arena_that_outlives_the_process_a_look_has_nothing_to_ask),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

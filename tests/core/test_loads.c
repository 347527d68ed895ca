/* Loads, told as stories: through both queues, cancelled anywhere, timed out, damaged, and starved of memory. */
#include "core/core_world.h"

/* 8 blocks of session 1 on SSD, 6 of session 2 in memory. */
struct histories {
	struct fc_key on_ssd[8];
	struct fc_key in_memory[6];
};

static void save_both(struct core_world *world, struct histories *histories)
{
	path_keys(1, 0, histories->on_ssd, 8);
	path_keys(2, 0, histories->in_memory, 6);
	assert_int_equal(core_world_save(world, 1, 0, histories->on_ssd, 8).code, 0);
	assert_int_equal(core_world_save(world, 2, 1, histories->in_memory, 6).code, 0);
	struct fc_stats stats = core_world_stats(world);
	assert_int_equal(stats.media[FC_SSD].blocks, 8);
	assert_int_equal(stats.media[FC_MEMORY].blocks, 6);
	world->event_count = 0;
}

static void open_with_both(struct core_world *world, struct histories *histories)
{
	core_world_init(world, geometry_plain(100), 8, 32);
	assert_int_equal(core_world_open(world), 0);
	save_both(world, histories);
}

/* ---- the way of a load ---- */

static void layers_arrive_in_order_and_the_load_ends_behind_them(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	world.world.media[FC_SSD]->shuffle_seed = 5;
	world.opts.transfer_bytes = 512;
	struct fc_load_result result = core_world_load(&world, histories.on_ssd, 8);
	assert_int_equal(result.code, 0);
	assert_int_equal(result.blocks, 8);
	assert_int_equal(result.tokens, 32);
	assert_int_equal(result.matched_blocks, 8);
	assert_int_equal(result.bytes[FC_SSD], 8 * 1700);
	assert_int_equal(result.bytes[FC_MEMORY], 0);
	assert_int_equal(result.segments, 1);
	assert_int_equal(result.planned_runs, 2);      /* the third layer has no slices */
	assert_int_equal(result.read_commands, 2 + 2); /* 8032 and 5632 bytes in commands of 4096 */
	assert_int_equal(world.event_count, 4);
	for (uint32_t layer = 0; layer < 3; layer++) {
		assert_int_equal(world.events[layer].kind, FC_EVENT_LAYER);
		assert_int_equal(world.events[layer].layer, layer);
		assert_int_equal(world.events[layer].blocks, 8);
	}
	assert_int_equal(world.events[3].kind, FC_EVENT_LOADED);
	core_world_deinit(&world);
}

static void the_ready_queue_is_in_order_of_arrival_whatever_the_disk_took(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	struct fc_core_load *taken;
	open_with_both(&world, &histories);
	struct fc_load_opts early = core_world_load_opts(&world, histories.on_ssd, 8);
	struct fc_load_opts late = core_world_load_opts(&world, histories.in_memory, 6);
	early.is_started_when_ready = late.is_started_when_ready = false;
	early.arrival_ns = 10 * SECOND_NS;
	late.arrival_ns = 11 * SECOND_NS;
	struct fc_core_load *from_memory = core_world_submit_load(&world, &late);
	assert_int_equal(from_memory->state, FC_LOAD_READY);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_READY, from_memory), 1);
	struct fc_core_load *from_ssd = core_world_submit_load(&world, &early);
	assert_int_equal(from_ssd->state, FC_LOAD_PREPARE);
	core_world_settle(&world);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_READY, from_ssd), 1);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_LOADED, from_ssd), 1);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_LOADED, from_memory), 0); /* nobody took it */
	assert_int_equal(core_world_stats(&world).ready_length, 2);
	assert_int_equal(fc_core_ready_take(world.core, &taken), 0);
	assert_ptr_equal(taken, from_ssd);
	assert_int_equal(taken->state, FC_LOAD_ENDED);
	assert_int_equal(fc_core_ready_take(world.core, &taken), 0);
	assert_ptr_equal(taken, from_memory);
	assert_int_equal(taken->state, FC_LOAD_COPYING);
	assert_int_equal(fc_core_ready_take(world.core, &taken), FC_EAGAIN);
	core_world_settle(&world);
	assert_int_equal(from_memory->result.blocks, 6);
	assert_int_equal(from_memory->result.bytes[FC_MEMORY], 6 * 1700);
	assert_int_equal(from_memory->result.bytes_read, 0);
	engine_check(&world.engine, histories.in_memory, 6);
	fc_core_load_free(world.core, from_ssd);
	fc_core_load_free(world.core, from_memory);
	core_world_deinit(&world);
}

static void a_history_that_is_not_stored_is_ready_at_once_with_nothing(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	struct fc_key unknown[4];
	struct fc_core_load *taken;
	open_with_both(&world, &histories);
	path_keys(9, 0, unknown, 4);
	struct fc_load_opts opts = core_world_load_opts(&world, unknown, 4);
	opts.is_started_when_ready = false;
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_READY, load), 1);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_LOADED, load), 1);
	assert_int_equal(fc_core_ready_take(world.core, &taken), 0);
	assert_ptr_equal(taken, load);
	assert_int_equal(load->result.code, 0);
	assert_int_equal(load->result.blocks, 0);
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

static void full_windows_make_the_next_load_wait_and_priority_says_which(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][16];
	struct fc_core_load *loads[3];
	const uint64_t counts[3] = {4, 16, 2};
	core_world_init(&world, geometry_plain(100), 0, 64);
	world.opts.load_streams = 1;
	assert_int_equal(core_world_open(&world), 0);
	for (uint64_t i = 0; i < 3; i++) {
		path_keys(i + 1, 0, keys[i], 16);
		assert_int_equal(core_world_save(&world, i + 1, 0, keys[i], counts[i]).code, 0);
	}
	world.event_count = 0;
	world.ssd.is_holding[FC_IO_READ] = true;
	for (uint64_t i = 0; i < 3; i++) {
		struct fc_load_opts opts = core_world_load_opts(&world, keys[i], counts[i]);
		loads[i] = core_world_submit_load(&world, &opts);
		core_world_settle(&world);
	}
	assert_int_equal(loads[0]->state, FC_LOAD_READING);
	assert_int_equal(loads[1]->state, FC_LOAD_PREPARE);
	assert_int_equal(loads[2]->state, FC_LOAD_PREPARE);
	assert_int_equal(core_world_stats(&world).prepare_length, 2);
	world.now_ns += SECOND_NS;
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	const struct fc_core_load *ended[3];
	uint32_t count = 0;
	for (uint32_t i = 0; i < world.event_count; i++)
		if (world.events[i].kind == FC_EVENT_LOADED)
			ended[count++] = world.events[i].load;
	assert_int_equal(count, 3);
	assert_ptr_equal(ended[0], loads[0]);
	assert_ptr_equal(ended[1], loads[2]); /* 2 blocks before 16 */
	assert_ptr_equal(ended[2], loads[1]);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(loads[i]->result.blocks, counts[i]);
		fc_core_load_free(world.core, loads[i]);
	}
	core_world_deinit(&world);
}

/* One stream, and a load that takes it: a short one finds the express stream, one of half the size does not. */
static void a_short_load_passes_a_long_one_that_has_the_only_stream(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][32];
	struct fc_core_load *loads[3];
	const uint64_t counts[3] = {32, 16, 2};
	core_world_init(&world, geometry_plain(100), 0, 64);
	world.opts.load_streams = 1;
	assert_int_equal(core_world_open(&world), 0);
	for (uint64_t i = 0; i < 3; i++) {
		path_keys(i + 1, 0, keys[i], 32);
		assert_int_equal(core_world_save(&world, i + 1, 0, keys[i], counts[i]).code, 0);
	}
	world.event_count = 0;
	world.ssd.is_holding[FC_IO_READ] = true;
	for (uint64_t i = 0; i < 3; i++) {
		struct fc_load_opts opts = core_world_load_opts(&world, keys[i], counts[i]);
		loads[i] = core_world_submit_load(&world, &opts);
		core_world_settle(&world);
	}
	assert_int_equal(loads[0]->state, FC_LOAD_READING);
	assert_false(loads[0]->is_express);
	assert_int_equal(loads[1]->state, FC_LOAD_PREPARE);
	assert_int_equal(loads[2]->state, FC_LOAD_READING);
	assert_true(loads[2]->is_express);
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(loads[i]->result.blocks, counts[i]);
		fc_core_load_free(world.core, loads[i]);
	}
	core_world_deinit(&world);
}

static void a_load_stops_where_it_is_told_to(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	opts.blocks_max = 5;
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(load->result.blocks, 5);
	engine_check(&world.engine, histories.on_ssd, 5);
	assert_false(engine_has_layer(&world.engine, histories.on_ssd, 6, 0));
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

/* ---- cancelling ---- */

static void assert_cancelled(struct core_world *world, struct fc_core_load *load)
{
	core_world_settle(world);
	assert_int_equal(load->state, FC_LOAD_ENDED);
	assert_int_equal(load->result.code, FC_ECANCELED);
	assert_int_equal(load->result.error.code, FC_ECANCELED);
	assert_int_equal(load->result.blocks, 0);
	assert_int_equal(core_world_count_events(world, FC_EVENT_LOADED, load), 1);
	struct fc_stats stats = core_world_stats(world);
	assert_int_equal(stats.leases, 0);
	assert_int_equal(stats.ready_length + stats.prepare_length, 0);
	fc_core_load_free(world->core, load);
	assert_int_equal(core_world_stats(world).loads_active, 0);
	world->event_count = 0;
}

static void a_load_can_be_cancelled_in_every_state(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	struct fc_core_load *load, *taken;
	open_with_both(&world, &histories);
	struct fc_load_opts ssd = core_world_load_opts(&world, histories.on_ssd, 8);
	struct fc_load_opts memory = core_world_load_opts(&world, histories.in_memory, 6);
	memory.is_started_when_ready = ssd.is_started_when_ready = false;

	load = core_world_submit_load(&world, &ssd);
	assert_int_equal(load->state, FC_LOAD_PREPARE);
	fc_core_load_cancel(world.core, load);
	fc_core_load_cancel(world.core, load); /* a second time does nothing */
	assert_cancelled(&world, load);

	world.ssd.is_holding[FC_IO_READ] = true;
	load = core_world_submit_load(&world, &ssd);
	core_world_settle(&world);
	assert_int_equal(load->state, FC_LOAD_READING);
	fc_core_load_cancel(world.core, load);
	assert_cancelled(&world, load); /* what is still read goes to the window */
	assert_false(fc_core_is_idle(world.core));
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_true(fc_core_is_idle(world.core));

	load = core_world_submit_load(&world, &memory);
	assert_int_equal(load->state, FC_LOAD_READY);
	fc_core_load_cancel(world.core, load);
	assert_cancelled(&world, load);

	load = core_world_submit_load(&world, &memory);
	assert_int_equal(fc_core_ready_take(world.core, &taken), 0);
	fc_core_load_cancel(world.core, load); /* waits for the copy worker */
	assert_cancelled(&world, load);

	load = core_world_submit_load(&world, &memory);
	assert_int_equal(fc_core_ready_take(world.core, &taken), 0);
	core_world_step(&world);
	assert_int_equal(load->state, FC_LOAD_COPYING);
	fc_core_load_cancel(world.core, load);
	assert_cancelled(&world, load);
	core_world_deinit(&world);
}

static void cancelling_what_has_ended_only_takes_it_out_of_the_queue(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	struct fc_core_load *taken;
	open_with_both(&world, &histories);
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	opts.is_started_when_ready = false;
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(load->state, FC_LOAD_READY);
	fc_core_load_cancel(world.core, load);
	assert_int_equal(load->state, FC_LOAD_ENDED);
	assert_int_equal(load->result.code, 0);
	assert_int_equal(load->result.blocks, 8);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_LOADED, load), 1);
	assert_int_equal(fc_core_ready_take(world.core, &taken), FC_EAGAIN);
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

static void a_load_that_is_freed_early_cleans_up_behind_itself(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	for (int steps = 0; steps < 6; steps++) {
		struct fc_core_load *load = core_world_submit_load(&world, &opts);
		for (int i = 0; i < steps; i++)
			core_world_step(&world);
		fc_core_load_free(world.core, load);
		core_world_settle(&world);
		assert_int_equal(core_world_stats(&world).loads_active, 0);
		assert_int_equal(core_world_stats(&world).leases, 0);
	}
	core_world_deinit(&world);
}

/* ---- time ---- */

static void a_load_that_waits_too_long_ends_with_a_timeout(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	world.ssd.is_holding[FC_IO_READ] = true;
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	opts.timeout_ns = 5 * SECOND_NS;
	struct fc_core_load *loads[3];
	for (int i = 0; i < 3; i++)
		loads[i] = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(loads[2]->state, FC_LOAD_PREPARE); /* there are two streams */
	assert_int_equal(fc_core_wake_ns(world.core), world.now_ns + 5 * SECOND_NS);
	world.now_ns += 5 * SECOND_NS - 1;
	core_world_settle(&world);
	assert_int_equal(loads[2]->state, FC_LOAD_PREPARE);
	world.now_ns += 1;
	core_world_settle(&world);
	for (int i = 0; i < 3; i++) { /* whether it was read or waited for a stream */
		assert_int_equal(loads[i]->state, FC_LOAD_ENDED);
		assert_int_equal(loads[i]->result.code, FC_ETIMEOUT);
		assert_int_equal(loads[i]->result.blocks, 0);
		assert_non_null(strstr(loads[i]->result.error.text, "timeout_ns"));
		fc_core_load_free(world.core, loads[i]);
	}
	assert_int_equal(core_world_stats(&world).leases, 0);
	assert_false(fc_core_is_idle(world.core)); /* the windows are out of use */
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_true(fc_core_is_idle(world.core));
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8);
	core_world_deinit(&world);
}

static void a_timeout_beyond_the_end_of_time_is_none(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	opts.timeout_ns = UINT64_MAX;
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(load->result.code, 0);
	assert_int_equal(load->result.blocks, 8);
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

static void a_read_that_never_returns_ends_its_load_and_not_the_others(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	world.ssd.is_holding[FC_IO_READ] = true;
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	struct fc_core_load *stuck = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	world.ssd.is_holding[FC_IO_READ] = false; /* what is held stays held */
	assert_int_equal(fc_core_wake_ns(world.core), world.now_ns + 30 * SECOND_NS);
	world.now_ns += 30 * SECOND_NS;
	core_world_settle(&world);
	assert_int_equal(stuck->state, FC_LOAD_ENDED);
	assert_int_equal(stuck->result.code, FC_ETIMEOUT);
	assert_int_equal(core_world_stats(&world).leases, 0);
	assert_int_equal(core_world_stats(&world).io_errors, 1);
	assert_int_equal(fc_core_wake_ns(world.core), UINT64_MAX); /* nothing to wake up for */
	fc_core_load_free(world.core, stuck);
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8); /* the other stream */
	assert_false(fc_core_is_idle(world.core));
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_true(fc_core_is_idle(world.core));
	world.ssd.is_holding[FC_IO_READ] = true; /* both streams serve again */
	struct fc_core_load *loads[2] = {core_world_submit_load(&world, &opts), core_world_submit_load(&world, &opts)};
	core_world_settle(&world);
	assert_int_equal(loads[0]->state, FC_LOAD_READING);
	assert_int_equal(loads[1]->state, FC_LOAD_READING);
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	fc_core_load_free(world.core, loads[0]);
	fc_core_load_free(world.core, loads[1]);
	core_world_deinit(&world);
}

static unsigned nothing_has_ended(struct fc_device *device)
{
	(void)device;
	return 0;
}

/* The engine's slots must not be written to after the load has ended, so a copy is waited for, however long. */
static void a_copy_under_way_is_waited_for_beyond_the_time_limit(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	engine_wipe(&world.engine);
	const struct fc_device_ops *real = world.device->ops;
	struct fc_device_ops held = *real;
	held.poll = nothing_has_ended;
	world.device->ops = &held;
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	for (int i = 0; i < 3; i++) {
		world.now_ns += 31 * SECOND_NS;
		core_world_settle(&world);
		assert_int_equal(load->state, FC_LOAD_READING);
	}
	world.device->ops = real;
	core_world_settle(&world);
	assert_int_equal(load->state, FC_LOAD_ENDED);
	assert_int_equal(load->result.code, 0);
	assert_int_equal(load->result.blocks, 8);
	engine_check(&world.engine, histories.on_ssd, 8);
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

static void when_no_stream_is_left_nobody_waits_for_one(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	world.ssd.is_holding[FC_IO_READ] = true;
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	struct fc_core_load *loads[3];
	for (int i = 0; i < 3; i++)
		loads[i] = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	world.now_ns += 30 * SECOND_NS;
	core_world_settle(&world);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(loads[i]->state, FC_LOAD_ENDED);
		assert_int_equal(loads[i]->result.code, FC_ETIMEOUT);
		fc_core_load_free(world.core, loads[i]);
	}
	assert_int_equal(core_world_load(&world, histories.in_memory, 6).blocks, 6); /* memory needs no stream */
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8);
	core_world_deinit(&world);
}

/* ---- damage ---- */

static void damage_shortens_the_prefix_and_a_later_save_repairs_it(void **state)
{
	(void)state;
	for (uint64_t block = 0; block < 8; block++) {
		struct core_world world;
		struct histories histories;
		open_with_both(&world, &histories);
		core_world_damage(&world, histories.on_ssd, 8, 0, block, 1);
		struct fc_load_result result = core_world_load(&world, histories.on_ssd, 8);
		assert_int_equal(result.code, 0);
		assert_int_equal(result.blocks, block);
		assert_int_equal(result.matched_blocks, 8);
		struct fc_stats stats = core_world_stats(&world);
		assert_int_equal(stats.checksum_failures, 1);
		assert_int_equal(stats.sessions_cut, 1);
		assert_int_equal(core_world_save(&world, 1, 1, histories.on_ssd, 8).blocks_new, 8 - block);
		assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8);
		core_world_deinit(&world);
	}
}

static void after_damage_the_layers_start_again_with_fewer_blocks(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	core_world_damage(&world, histories.on_ssd, 8, 0, 3, 1);
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 3);
	const struct core_event wanted[] = {
		{FC_EVENT_LAYER, NULL, NULL, 0, 8},  {FC_EVENT_LAYER, NULL, NULL, 0, 3},
		{FC_EVENT_LAYER, NULL, NULL, 1, 3},  {FC_EVENT_LAYER, NULL, NULL, 2, 3},
		{FC_EVENT_LOADED, NULL, NULL, 0, 3},
	};
	assert_int_equal(world.event_count, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(world.events[i].kind, wanted[i].kind);
		assert_int_equal(world.events[i].layer, wanted[i].layer);
		assert_int_equal(world.events[i].blocks, wanted[i].blocks);
	}
	core_world_deinit(&world);
}

static void all_damage_of_a_layer_is_found_at_once(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	for (uint64_t block = 2; block < 8; block += 2)
		core_world_damage(&world, histories.on_ssd, 8, 0, block, 0);
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 2);
	assert_int_equal(core_world_stats(&world).checksum_failures, 3);
	core_world_deinit(&world);
}

static void damage_in_memory_is_found_like_any_other(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	core_world_damage(&world, histories.in_memory, 6, 0, 4, 0);
	assert_int_equal(core_world_load(&world, histories.in_memory, 6).blocks, 4);
	assert_int_equal(core_world_stats(&world).checksum_failures, 1);
	core_world_deinit(&world);
}

static void an_error_of_the_moment_costs_nothing(void **state)
{
	(void)state;
	for (int is_short = 0; is_short < 2; is_short++) {
		for (uint64_t k = 1; k <= 4; k++) { /* 4 read commands */
			struct core_world world;
			struct histories histories;
			open_with_both(&world, &histories);
			struct fake_media *ssd = world.world.media[FC_SSD];
			ssd->is_short = is_short;
			ssd->fail_at = ssd->op_count + k;
			ssd->fail_count = 1;
			struct fc_load_result result = core_world_load(&world, histories.on_ssd, 8);
			assert_int_equal(core_world_stats(&world).io_errors, 1);
			assert_int_equal(core_world_stats(&world).sessions_cut, 0);
			assert_int_equal(result.code, 0);
			assert_int_equal(result.blocks, 8);
			core_world_deinit(&world);
		}
	}
}

/* Where the slice of block `block` in layer 0 lies on the SSD. */
static uint64_t place_of(const struct core_world *world, const struct fc_key *keys, uint64_t block)
{
	uint8_t slice[1000];
	slice_bytes(keys[block], 0, 0, slice, sizeof(slice));
	const struct fake_media *ssd = world->world.media[FC_SSD];
	const uint8_t *found = memmem(ssd->image, ssd->media.bytes, slice, sizeof(slice));
	assert_non_null(found);
	return (uint64_t)(found - ssd->image);
}

/* It shortens the loads that meet it, to what lies in front of it; nothing is cut, so all is there when it has passed.
 */
static void an_error_shortens_loads_and_is_forgiven(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fake_media *ssd = world.world.media[FC_SSD];
	ssd->bad_offset = place_of(&world, histories.on_ssd, 5);
	ssd->bad_bytes = 1;
	struct fc_load_result result = core_world_load(&world, histories.on_ssd, 8);
	assert_int_equal(result.code, 0);
	assert_in_range(result.blocks, 4, 5); /* a command may bring the end of the slice before, too */
	assert_int_equal(result.matched_blocks, 8);
	assert_int_equal(core_world_stats(&world).sessions_cut, 0);
	assert_int_equal(core_world_stats(&world).io_errors, 2); /* tried twice */
	ssd->bad_bytes = 0;
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8);
	core_world_deinit(&world);
}

static void a_drive_that_is_away_for_a_while_loses_nothing(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fake_media *ssd = world.world.media[FC_SSD];
	ssd->bad_bytes = ssd->media.bytes;
	for (int load = 0; load < 100; load++) {
		struct fc_load_result result = core_world_load(&world, histories.on_ssd, 8);
		assert_int_equal(result.code, 0);
		assert_int_equal(result.blocks, 0);
	}
	assert_int_equal(core_world_stats(&world).sessions_cut, 0);
	assert_int_equal(core_world_load(&world, histories.in_memory, 6).blocks, 6);
	ssd->bad_bytes = 0;
	assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8);
	core_world_deinit(&world);
}

/* The same place twice, while others can be read: then it is damage like any other, and a later save repairs it. */
static void an_error_that_stays_is_cut(void **state)
{
	(void)state;
	for (uint64_t block = 0; block < 8; block++) {
		struct core_world world;
		struct histories histories;
		open_with_both(&world, &histories);
		struct fake_media *ssd = world.world.media[FC_SSD];
		ssd->bad_offset = place_of(&world, histories.on_ssd, block);
		ssd->bad_bytes = 1;
		uint64_t blocks = core_world_load(&world, histories.on_ssd, 8).blocks;
		assert_int_equal(core_world_stats(&world).sessions_cut, 0);
		struct fc_key others[2];
		path_keys(9, 0, others, 2);
		assert_int_equal(core_world_save(&world, 9, 0, others, 2).code, 0); /* the drive works */
		assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, blocks);
		assert_int_equal(core_world_stats(&world).sessions_cut, 1);
		uint64_t errors = core_world_stats(&world).io_errors;
		assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, blocks);
		assert_int_equal(core_world_stats(&world).io_errors, errors); /* not asked again */
		assert_int_equal(core_world_save(&world, 1, 1, histories.on_ssd, 8).blocks_new, 8 - blocks);
		core_world_deinit(&world);
	}
}

/* A prompt that two sessions share lies in memory, with a spare copy on SSD. When the copy in memory turns out to be
 * damaged, the load goes on with the one on SSD, and is not handed out a second time. */
static void a_load_that_was_taken_is_never_ready_again(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	struct fc_core_load *taken;
	core_world_init(&world, geometry_plain(100), 16, 32);
	assert_int_equal(core_world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	struct fc_save_opts save_opts = core_world_save_opts(&world, 1, 0, keys, 8);
	save_opts.shared_blocks = 8;
	engine_fill(&world.engine, keys, 8);
	struct fc_core_save *save = core_world_submit_save(&world, &save_opts);
	core_world_settle(&world);
	assert_int_equal(save->result.code, 0);
	fc_core_save_free(world.core, save);
	struct fc_load_opts opts = core_world_load_opts(&world, keys, 8);
	opts.is_started_when_ready = false;
	engine_wipe(&world.engine);
	core_world_damage(&world, keys, 8, 0, 5, 0);
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	assert_int_equal(load->state, FC_LOAD_READY);
	assert_int_equal(fc_core_ready_take(world.core, &taken), 0);
	core_world_settle(&world);
	assert_int_equal(core_world_stats(&world).checksum_failures, 1);
	assert_int_equal(load->result.blocks, 8);
	assert_true(load->result.bytes[FC_SSD] > 0);
	engine_check(&world.engine, keys, 8);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_READY, load), 1);
	assert_int_equal(core_world_count_events(&world, FC_EVENT_LOADED, load), 1);
	assert_int_equal(load->state, FC_LOAD_ENDED);
	assert_int_equal(fc_core_ready_take(world.core, &taken), FC_EAGAIN);
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

static void hybrid_histories_come_back_at_their_resume_points(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[32];
	const uint64_t ends[] = {6, 10, 24, 32};
	core_world_init(&world, geometry_hybrid(10), 32, 64);
	world.opts.catalog.consolidate_ratio = 1;
	assert_int_equal(core_world_open(&world), 0);
	path_keys(1, 0, keys, 32);
	for (uint64_t turn = 0; turn < 4; turn++)
		assert_int_equal(core_world_save(&world, 1, turn, keys, ends[turn]).code, 0);
	assert_int_equal(core_world_load(&world, keys, 32).blocks, 32);
	assert_int_equal(core_world_load(&world, keys, 31).blocks, 24); /* nothing can be resumed in between */
	assert_int_equal(core_world_load(&world, keys, 9).blocks, 6);
	core_world_deinit(&world);
}

/* ---- limits and wrong arguments ---- */

static void more_requests_than_allowed_are_refused_and_freed_ones_make_room(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	struct fc_core_load *loads[17];
	struct fc_error error;
	open_with_both(&world, &histories);
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	for (int i = 0; i < 16; i++)
		loads[i] = core_world_submit_load(&world, &opts);
	assert_int_equal(fc_core_load_submit(world.core, &opts, world.engine.layers, NULL, &loads[16], &error),
			 FC_ELIMIT);
	assert_string_equal(error.text, "load: 16 loads are open, which is the limit (requests_max)");
	fc_core_load_free(world.core, loads[3]);
	loads[3] = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(loads[i]->result.blocks, 8);
		fc_core_load_free(world.core, loads[i]);
	}
	core_world_deinit(&world);
}

static void assert_refused(struct core_world *world, const struct fc_load_opts *opts, const char *text)
{
	struct fc_core_load *load;
	struct fc_error error;
	assert_int_equal(fc_core_load_submit(world->core, opts, world->engine.layers, NULL, &load, &error), FC_EINVAL);
	assert_string_equal(error.text, text);
	assert_int_equal(core_world_stats(world).loads_active, 0);
}

static void wrong_arguments_are_named(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fc_load_opts good = core_world_load_opts(&world, histories.on_ssd, 8), bad = good;
	bad.keys = NULL;
	assert_refused(&world, &bad, "load: 8 keys, but the array is NULL");
	bad = good;
	bad.key_count = 1ull << 32;
	assert_refused(&world, &bad, "load: 4294967296 keys; at most 4294967295 are allowed");
	bad = good;
	bad.slots[0].slots = NULL;
	assert_refused(&world, &bad, "load: group 0 has 8 slots, but the array is NULL");
	bad = good;
	uint64_t slots[] = {0, 1, world.engine.slot_count};
	bad.slots[0] = (struct fc_slots){.first_block = 4, .count = 3, .slots = slots};
	char text[128];
	snprintf(text, sizeof(text), "load: group 0 block 6: slot %llu; 0 to %llu are allowed",
		 (unsigned long long)world.engine.slot_count, (unsigned long long)world.engine.slot_count - 1);
	assert_refused(&world, &bad, text);
	core_world_deinit(&world);
}

static void a_load_without_slots_for_what_is_stored_ends_with_the_reason(void **state)
{
	(void)state;
	struct core_world world;
	struct histories histories;
	open_with_both(&world, &histories);
	struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
	opts.slots[0].count = 7;
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(load->result.code, FC_EINVAL);
	assert_string_equal(load->result.error.text, "load: group 0 needs slots for blocks 0 to 7, given are 0 to 6");
	assert_int_equal(core_world_stats(&world).leases, 0);
	fc_core_load_free(world.core, load);
	core_world_deinit(&world);
}

static void want_of_memory_at_any_point_ends_the_load_and_leaks_nothing(void **state)
{
	(void)state;
	for (uint64_t fail_at = 1;; fail_at++) {
		struct core_world world;
		struct histories histories;
		struct fc_core_load *load = NULL;
		open_with_both(&world, &histories);
		struct fc_load_opts opts = core_world_load_opts(&world, histories.on_ssd, 8);
		world.world.tracked.call_count = 0;
		world.world.tracked.fail_at = fail_at;
		int code = fc_core_load_submit(world.core, &opts, world.engine.layers, &world, &load, NULL);
		core_world_settle(&world);
		if (code == FC_OK)
			code = load->result.code;
		assert_true(code == FC_OK || code == FC_ENOMEM);
		world.world.tracked.fail_at = 0;
		if (load != NULL)
			fc_core_load_free(world.core, load);
		assert_int_equal(core_world_load(&world, histories.on_ssd, 8).blocks, 8);
		core_world_deinit(&world);
		if (code == FC_OK) {
			assert_true(fail_at > 5);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_arrive_in_order_and_the_load_ends_behind_them),
		cmocka_unit_test(the_ready_queue_is_in_order_of_arrival_whatever_the_disk_took),
		cmocka_unit_test(a_history_that_is_not_stored_is_ready_at_once_with_nothing),
		cmocka_unit_test(full_windows_make_the_next_load_wait_and_priority_says_which),
		cmocka_unit_test(a_short_load_passes_a_long_one_that_has_the_only_stream),
		cmocka_unit_test(a_load_stops_where_it_is_told_to),
		cmocka_unit_test(a_load_can_be_cancelled_in_every_state),
		cmocka_unit_test(cancelling_what_has_ended_only_takes_it_out_of_the_queue),
		cmocka_unit_test(a_load_that_is_freed_early_cleans_up_behind_itself),
		cmocka_unit_test(a_load_that_waits_too_long_ends_with_a_timeout),
		cmocka_unit_test(a_timeout_beyond_the_end_of_time_is_none),
		cmocka_unit_test(a_read_that_never_returns_ends_its_load_and_not_the_others),
		cmocka_unit_test(a_copy_under_way_is_waited_for_beyond_the_time_limit),
		cmocka_unit_test(when_no_stream_is_left_nobody_waits_for_one),
		cmocka_unit_test(damage_shortens_the_prefix_and_a_later_save_repairs_it),
		cmocka_unit_test(after_damage_the_layers_start_again_with_fewer_blocks),
		cmocka_unit_test(all_damage_of_a_layer_is_found_at_once),
		cmocka_unit_test(damage_in_memory_is_found_like_any_other),
		cmocka_unit_test(an_error_of_the_moment_costs_nothing),
		cmocka_unit_test(an_error_shortens_loads_and_is_forgiven),
		cmocka_unit_test(a_drive_that_is_away_for_a_while_loses_nothing),
		cmocka_unit_test(an_error_that_stays_is_cut),
		cmocka_unit_test(a_load_that_was_taken_is_never_ready_again),
		cmocka_unit_test(hybrid_histories_come_back_at_their_resume_points),
		cmocka_unit_test(more_requests_than_allowed_are_refused_and_freed_ones_make_room),
		cmocka_unit_test(wrong_arguments_are_named),
		cmocka_unit_test(a_load_without_slots_for_what_is_stored_ends_with_the_reason),
		cmocka_unit_test(want_of_memory_at_any_point_ends_the_load_and_leaks_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

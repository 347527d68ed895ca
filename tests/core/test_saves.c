/* Saves, told as stories: what is written, what waits, what fails and leaves no trace, and what moves to SSD later. */
#include "core/core_world.h"

static void open_world(struct core_world *world, uint64_t memory_chunks, uint64_t ssd_chunks)
{
	core_world_init(world, geometry_plain(100), memory_chunks, ssd_chunks);
	assert_int_equal(core_world_open(world), 0);
}

static struct fc_core_save *begin_save(struct core_world *world, uint64_t session, uint64_t turn,
				       const struct fc_key *keys, uint64_t count)
{
	struct fc_save_opts opts = core_world_save_opts(world, session, turn, keys, count);
	engine_fill(&world->engine, keys, count);
	return core_world_submit_save(world, &opts);
}

static bool is_stored(struct core_world *world, const struct fc_key *keys, uint64_t count)
{
	return core_world_load(world, keys, count).blocks == count;
}

/* ---- what is written ---- */

/* 8 blocks of 1000 + 700 bytes: areas of 8032 and 5632 bytes, in 8192 and 5632 behind 512 of the header, all of it in
 * whole blocks of 4096; and the header of 512. */
static void a_save_says_what_it_wrote_and_how_long_it_lasts(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	open_world(&world, 8, 32);
	path_keys(1, 0, keys, 8);
	struct fc_core_save *save = begin_save(&world, 1, 0, keys, 8);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_DURABLE);
	assert_int_equal(save->result.code, 0);
	assert_int_equal(save->result.session.low, 1);
	assert_int_equal(save->result.blocks_new, 8);
	assert_int_equal(save->result.bytes_new, 8 * 1700);
	assert_int_equal(save->result.bytes_written[FC_SSD], 16384 + 512);
	assert_int_equal(save->result.bytes_written[FC_MEMORY], 0);
	assert_true(save->result.is_durable);
	assert_int_equal(world.event_count, 2);
	assert_int_equal(world.events[0].kind, FC_EVENT_SAVED);
	assert_int_equal(world.events[1].kind, FC_EVENT_DURABLE);
	fc_core_save_free(world.core, save);
	/* In memory: 4 blocks, areas of 4016 and 2816 bytes, in multiples of 64; no header is ever written. */
	path_keys(2, 0, keys, 4);
	struct fc_save_result result = core_world_save(&world, 2, 1, keys, 4);
	assert_int_equal(result.bytes_written[FC_MEMORY], 4032 + 2816);
	assert_int_equal(result.bytes_written[FC_SSD], 0);
	assert_false(result.is_durable);
	core_world_deinit(&world);
}

static void saving_what_is_stored_is_free(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	open_world(&world, 8, 32);
	path_keys(1, 0, keys, 8);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0);
	uint64_t operations = world.world.media[FC_SSD]->op_count;
	struct fc_save_result result = core_world_save(&world, 1, 0, keys, 8);
	assert_int_equal(result.code, 0);
	assert_int_equal(result.blocks_new, 0);
	assert_int_equal(result.bytes_written[FC_SSD], 0);
	assert_true(result.is_durable);
	assert_int_equal(world.world.media[FC_SSD]->op_count, operations);
	core_world_deinit(&world);
}

/* The second turn may bring the first along: its blocks come from memory, since the device has only the new ones. */
static void blocks_that_the_device_does_not_hold_come_from_memory(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	core_world_init(&world, geometry_plain(100), 16, 32);
	world.opts.catalog.consolidate_ratio = 2;
	assert_int_equal(core_world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	assert_int_equal(core_world_save(&world, 1, 1, keys, 4).bytes_written[FC_SSD], 0);
	engine_wipe(&world.engine);
	struct fc_save_opts opts = core_world_save_opts(&world, 1, 0, keys, 8);
	engine_fill(&world.engine, keys, 8);
	uint64_t slots[4];
	memcpy(slots, world.engine.slots[0] + 4, sizeof(slots));
	opts.slots[0] = (struct fc_slots){.first_block = 4, .count = 4, .slots = slots};
	struct fc_core_save *save = core_world_submit_save(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(save->result.code, 0);
	assert_int_equal(save->result.blocks_new, 4);
	assert_int_equal(save->result.segments_absorbed, 1);
	assert_true(save->result.bytes_written[FC_SSD] > 8 * 1700);
	fc_core_save_free(world.core, save);
	struct fc_load_result loaded = core_world_load(&world, keys, 8);
	assert_int_equal(loaded.blocks, 8);
	assert_int_equal(loaded.segments, 1);
	assert_int_equal(core_world_stats(&world).media[FC_MEMORY].bytes_used, 0);
	core_world_deinit(&world);
}

static void a_damaged_source_fails_the_save_and_is_cut(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	core_world_init(&world, geometry_plain(100), 16, 32);
	world.opts.catalog.consolidate_ratio = 2;
	assert_int_equal(core_world_open(&world), 0);
	path_keys(1, 0, keys, 8);
	assert_int_equal(core_world_save(&world, 1, 1, keys, 4).code, 0);
	core_world_damage(&world, keys, 4, 0, 2, 1);
	struct fc_save_opts opts = core_world_save_opts(&world, 1, 0, keys, 8);
	engine_fill(&world.engine, keys, 8);
	uint64_t slots[4];
	memcpy(slots, world.engine.slots[0] + 4, sizeof(slots));
	opts.slots[0] = (struct fc_slots){.first_block = 4, .count = 4, .slots = slots};
	struct fc_core_save *save = core_world_submit_save(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(save->result.code, FC_ECORRUPT);
	assert_int_equal(save->result.error.code, FC_ECORRUPT);
	fc_core_save_free(world.core, save);
	assert_int_equal(core_world_stats(&world).checksum_failures, 1);
	assert_int_equal(core_world_load(&world, keys, 8).blocks, 2);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0); /* the device holds everything again */
	assert_true(is_stored(&world, keys, 8));
	core_world_deinit(&world);
}

/* ---- waiting for space ---- */

/* 8 chunks of SSD: a turn of 8 blocks takes 4 (14336 bytes). The third needs what the first has, and that is free only
 * when its table entry is gone from the disk. */
static void a_save_waits_while_space_is_being_freed(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][8];
	open_world(&world, 0, 8);
	for (uint64_t i = 0; i < 3; i++)
		path_keys(i + 1, 0, keys[i], 8);
	assert_int_equal(core_world_save(&world, 1, 0, keys[0], 8).code, 0);
	assert_int_equal(core_world_save(&world, 2, 0, keys[1], 8).code, 0);
	world.ssd.is_holding[FC_IO_SYNC] = world.ssd.is_holding[FC_IO_WRITE] = true;
	struct fc_core_save *save = begin_save(&world, 3, 0, keys[2], 8);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_RESERVING);
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_DURABLE);
	assert_int_equal(save->result.code, 0);
	fc_core_save_free(world.core, save);
	assert_int_equal(core_world_load(&world, keys[0], 8).blocks, 0);
	assert_true(is_stored(&world, keys[1], 8));
	assert_true(is_stored(&world, keys[2], 8));
	core_world_deinit(&world);
}

static void a_save_that_finds_everything_leased_is_refused_without_a_trace(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][8];
	open_world(&world, 0, 8);
	for (uint64_t i = 0; i < 3; i++)
		path_keys(i + 1, 0, keys[i], 8);
	assert_int_equal(core_world_save(&world, 1, 0, keys[0], 8).code, 0);
	assert_int_equal(core_world_save(&world, 2, 0, keys[1], 8).code, 0);
	world.ssd.is_holding[FC_IO_READ] = true;
	struct fc_core_load *loads[2];
	for (int i = 0; i < 2; i++) {
		struct fc_load_opts opts = core_world_load_opts(&world, keys[i], 8);
		loads[i] = core_world_submit_load(&world, &opts);
	}
	core_world_settle(&world);
	struct fc_save_result result = core_world_save(&world, 3, 0, keys[2], 8);
	assert_int_equal(result.code, FC_EFULL);
	assert_string_equal(result.error.text, "save: 13600 new bytes do not fit: SSD needs 16384 bytes for them, and "
					       "at most 0 can be had; the rest is in use, or this session's own");
	assert_int_equal(core_world_stats(&world).saves_refused, 1);
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(loads[i]->result.blocks, 8);
		fc_core_load_free(world.core, loads[i]);
	}
	assert_int_equal(core_world_save(&world, 3, 0, keys[2], 8).code, 0);
	core_world_deinit(&world);
}

/* ---- cancelling ---- */

static void a_save_can_be_cancelled_until_it_is_visible(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][8];
	open_world(&world, 0, 8);
	for (uint64_t i = 0; i < 3; i++)
		path_keys(i + 1, 0, keys[i], 8);
	/* queued */
	assert_int_equal(core_world_save(&world, 1, 0, keys[0], 8).code, 0);
	struct fc_core_save *save = begin_save(&world, 2, 0, keys[1], 8);
	fc_core_save_cancel(world.core, save);
	assert_int_equal(save->state, FC_SAVE_FAILED);
	assert_int_equal(save->result.code, FC_ECANCELED);
	assert_int_equal(save->result.error.code, FC_ECANCELED);
	assert_int_equal(save->result.session.low, 2); /* and nothing of whoever had the request before */
	assert_int_equal(save->result.blocks_new + save->result.bytes_new, 0);
	fc_core_save_free(world.core, save);
	/* writing */
	world.ssd.is_holding[FC_IO_WRITE] = true;
	save = begin_save(&world, 2, 0, keys[1], 8);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_WRITING);
	fc_core_save_cancel(world.core, save);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_WRITING); /* its writes may still land */
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_int_equal(save->result.code, FC_ECANCELED);
	fc_core_save_free(world.core, save);
	assert_int_equal(core_world_load(&world, keys[1], 8).blocks, 0);
	/* visible: too late */
	save = begin_save(&world, 2, 0, keys[1], 8);
	world.ssd.is_holding[FC_IO_SYNC] = true;
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_VISIBLE);
	fc_core_save_cancel(world.core, save);
	assert_true(is_stored(&world, keys[1], 8));
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_DURABLE);
	fc_core_save_free(world.core, save);
	/* waiting for space */
	world.ssd.is_holding[FC_IO_SYNC] = world.ssd.is_holding[FC_IO_WRITE] = true;
	save = begin_save(&world, 3, 0, keys[2], 8);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_RESERVING);
	fc_core_save_cancel(world.core, save);
	assert_int_equal(save->result.code, FC_ECANCELED);
	fc_core_save_free(world.core, save);
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_int_equal(core_world_stats(&world).saves_active, 0);
	core_world_deinit(&world);
}

static void a_save_that_is_freed_early_is_given_back_once(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	open_world(&world, 0, 32);
	for (uint64_t steps = 0; steps < 8; steps++) {
		path_keys(steps + 1, 0, keys, 8);
		struct fc_core_save *save = begin_save(&world, steps + 1, 0, keys, 8);
		for (uint64_t i = 0; i < steps; i++)
			core_world_step(&world);
		fc_core_save_free(world.core, save);
		core_world_settle(&world);
		assert_int_equal(core_world_stats(&world).saves_active, 0);
	}
	core_world_deinit(&world);
}

/* ---- failures ---- */

/* Arena, operation, place and reason, in a save that was refused as in one that had been visible. */
static void assert_explained(const struct core_world *world, const struct fc_save_result *result, uint64_t k)
{
	const char *const begins[] = {"save: writing: the test's arena: write of ",
				      "save: visible, and could not be made durable: the test's arena: "};
	const char *operation = k == 5 || k == 8 ? "sync: " : "write of ";
	bool was_visible = k > 4;
	assert_int_equal(result->code == FC_OK, was_visible);
	assert_ptr_equal(strstr(result->error.text, begins[was_visible]), result->error.text);
	assert_non_null(strstr(result->error.text, operation));
	assert_non_null(strstr(result->error.text, ": a fault of the test"));
	assert_int_equal(core_world_stats(world).io_errors, 1);
	assert_int_equal(fc_core_durable_failures(world->core), was_visible);
	assert_string_equal(fc_core_durable_error(world->core)->text, was_visible ? result->error.text : "");
}

static void a_failed_write_leaves_no_trace(void **state)
{
	(void)state;
	for (int is_short = 0; is_short < 2; is_short++) {
		for (uint64_t k = 1;; k++) {
			struct core_world world;
			struct fc_key keys[8], older[4];
			open_world(&world, 0, 16);
			path_keys(1, 0, keys, 8);
			path_keys(2, 0, older, 4);
			assert_int_equal(core_world_save(&world, 2, 0, older, 4).code, 0);
			struct fc_stats before = core_world_stats(&world);
			struct fake_media *ssd = world.world.media[FC_SSD];
			ssd->is_short = is_short;
			ssd->fail_count = 1;
			ssd->fail_at = ssd->op_count + k;
			struct fc_save_result result = core_world_save(&world, 1, 0, keys, 8);
			bool has_failed = result.code != FC_OK || result.durable_code != FC_OK;
			ssd->fail_at = 0;
			core_world_settle(&world);
			if (has_failed) {
				assert_int_equal(result.code != FC_OK ? result.code : result.durable_code, FC_EIO);
				assert_int_equal(result.error.code, FC_EIO);
				assert_explained(&world, &result, k);
				assert_false(result.is_durable);
				assert_int_equal(core_world_load(&world, keys, 8).blocks, 0);
				assert_int_equal(core_world_stats(&world).blocks, before.blocks);
			}
			assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0);
			assert_true(is_stored(&world, keys, 8));
			/* What a failed attempt had taken is free again, at the latest with the next commit. */
			uint64_t used = core_world_stats(&world).media[FC_SSD].bytes_used;
			assert_int_equal(used, before.media[FC_SSD].bytes_used + 4 * WORLD_CHUNK_BYTES);
			assert_true(is_stored(&world, older, 4));
			core_world_deinit(&world);
			if (!has_failed) {
				/* 2 + 2 writes of slices, sync, header and table page, sync */
				assert_int_equal(k, 4 + 1 + 2 + 1 + 1);
				break;
			}
		}
	}
}

static void a_sync_that_never_returns_ends_its_saves_and_leaves_them_visible(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8], others[8];
	struct fc_error error = {0};
	open_world(&world, 0, 32);
	path_keys(1, 0, keys, 8);
	path_keys(2, 0, others, 8);
	world.ssd.is_holding[FC_IO_SYNC] = true;
	struct fc_core_save *late = begin_save(&world, 1, 0, keys, 8);
	core_world_settle(&world);
	assert_int_equal(late->state, FC_SAVE_VISIBLE);
	uint64_t sequence = fc_core_save_sequence(world.core);
	assert_int_equal(fc_core_wake_ns(world.core), world.now_ns + 30 * SECOND_NS);
	world.now_ns += 30 * SECOND_NS - 1;
	core_world_settle(&world);
	assert_int_equal(late->state, FC_SAVE_VISIBLE);
	world.now_ns += 1;
	core_world_settle(&world);
	assert_int_equal(late->state, FC_SAVE_DURABLE);
	assert_int_equal(late->result.code, FC_OK);
	assert_int_equal(late->result.durable_code, FC_ETIMEOUT);
	assert_false(late->result.is_durable);
	assert_non_null(strstr(late->result.error.text, "io_timeout_ns"));
	assert_int_equal(core_world_stats(&world).io_errors, 1);
	assert_true(fc_core_durable_sequence(world.core) >= sequence);
	assert_int_equal(fc_core_wake_ns(world.core), UINT64_MAX);
	fc_core_save_free(world.core, late);
	assert_int_equal(core_world_load(&world, keys, 8).blocks, 8); /* reads are answered */
	struct fc_save_result refused = core_world_save(&world, 2, 0, others, 8);
	assert_int_equal(refused.code, FC_ETIMEOUT);
	assert_non_null(strstr(refused.error.text, "does not answer"));
	assert_int_equal(fc_catalog_check(fc_core_catalog(world.core), &error), 0);
	assert_false(fc_core_is_idle(world.core));
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_true(fc_core_is_idle(world.core));
	assert_int_equal(core_world_save(&world, 2, 0, others, 8).durable_code, 0);
	core_world_deinit(&world);
}

static void a_write_that_never_returns_ends_its_save_and_holds_up_nobody(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8], others[8];
	open_world(&world, 0, 32);
	path_keys(1, 0, keys, 8);
	path_keys(2, 0, others, 8);
	world.ssd.is_holding[FC_IO_WRITE] = true;
	struct fc_core_save *stuck = begin_save(&world, 1, 0, keys, 8);
	core_world_settle(&world);
	world.ssd.is_holding[FC_IO_WRITE] = false;
	uint64_t sequence = fc_core_save_sequence(world.core);
	assert_true(fc_core_durable_sequence(world.core) < sequence);
	world.now_ns += 30 * SECOND_NS;
	core_world_settle(&world);
	assert_int_equal(stuck->result.code, FC_ETIMEOUT);
	assert_int_equal(stuck->result.error.code, FC_ETIMEOUT);
	assert_int_equal(core_world_stats(&world).io_errors, 1);
	assert_true(fc_core_durable_sequence(world.core) >= sequence); /* it has failed: a sync need not wait for it */
	assert_int_equal(fc_core_wake_ns(world.core), UINT64_MAX);
	assert_int_equal(core_world_save(&world, 2, 0, others, 8).code, 0); /* the other stream */
	fc_core_save_free(world.core, stuck);
	assert_false(fc_core_is_idle(world.core));
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_true(fc_core_is_idle(world.core));
	assert_int_equal(core_world_load(&world, keys, 8).blocks, 0);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0);
	core_world_deinit(&world);
}

static void when_no_stream_is_left_queued_saves_end_too(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][8];
	struct fc_core_save *saves[3];
	open_world(&world, 0, 32);
	world.ssd.is_holding[FC_IO_WRITE] = true;
	for (uint64_t i = 0; i < 3; i++) {
		path_keys(i + 1, 0, keys[i], 8);
		saves[i] = begin_save(&world, i + 1, 0, keys[i], 8);
		core_world_settle(&world);
	}
	assert_int_equal(saves[2]->state, FC_SAVE_QUEUED);
	world.now_ns += 30 * SECOND_NS;
	core_world_settle(&world);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(saves[i]->result.code, FC_ETIMEOUT);
		fc_core_save_free(world.core, saves[i]);
	}
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(core_world_save(&world, i + 1, 0, keys[i], 8).code, 0);
	core_world_deinit(&world);
}

/* A load finds damage in the first turn while the second is being written: what it would stand on is gone. */
static void a_turn_whose_head_vanished_is_not_committed(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	open_world(&world, 0, 32);
	path_keys(1, 0, keys, 8);
	assert_int_equal(core_world_save(&world, 1, 0, keys, 4).code, 0);
	core_world_damage(&world, keys, 4, 0, 1, 0);
	world.ssd.is_holding[FC_IO_WRITE] = true;
	struct fc_core_save *save = begin_save(&world, 1, 1, keys, 8);
	core_world_settle(&world);
	assert_int_equal(save->state, FC_SAVE_WRITING);
	struct fc_load_opts opts = core_world_load_opts(&world, keys, 4);
	struct fc_core_load *load = core_world_submit_load(&world, &opts);
	core_world_settle(&world);
	assert_int_equal(load->result.blocks, 1);
	fc_core_load_free(world.core, load);
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	assert_int_equal(save->result.code, FC_ENOENT);
	assert_int_equal(save->result.error.code, FC_ENOENT);
	fc_core_save_free(world.core, save);
	assert_int_equal(core_world_save(&world, 1, 1, keys, 8).blocks_new, 7);
	assert_true(is_stored(&world, keys, 8));
	core_world_deinit(&world);
}

static void want_of_memory_at_any_point_refuses_the_save_and_leaks_nothing(void **state)
{
	(void)state;
	for (uint64_t fail_at = 1;; fail_at++) {
		struct core_world world;
		struct fc_key keys[8];
		struct fc_core_save *save = NULL;
		open_world(&world, 0, 32);
		path_keys(1, 0, keys, 8);
		struct fc_save_opts opts = core_world_save_opts(&world, 1, 0, keys, 8);
		engine_fill(&world.engine, keys, 8);
		world.world.tracked.call_count = 0;
		world.world.tracked.fail_at = fail_at;
		int code = fc_core_save_submit(world.core, &opts, world.engine.layers, &world, &save, NULL);
		core_world_settle(&world);
		world.world.tracked.fail_at = 0;
		core_world_settle(&world);
		if (code == FC_OK)
			code = save->result.code;
		assert_true(code == FC_OK || code == FC_ENOMEM);
		if (save != NULL)
			fc_core_save_free(world.core, save);
		assert_int_equal(core_world_save(&world, 1, 0, keys, 8).code, 0);
		assert_true(is_stored(&world, keys, 8));
		core_world_deinit(&world);
		if (code == FC_OK && fail_at > 40)
			return;
	}
}

/* ---- spilling ---- */

/* Memory of 8 chunks holds three turns of 6 blocks (2.5 chunks each, so 3): the sessions that were read move to SSD
 * when a third one comes, and the one that nobody read is dropped. */
static void sessions_that_were_read_move_to_ssd_when_memory_is_full(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[4][6];
	core_world_init(&world, geometry_plain(100), 8, 64);
	world.opts.catalog.memory_reclaim = FC_MEMORY_SPILL;
	world.opts.catalog.high_watermark = 0.7;
	world.opts.catalog.low_watermark = 0.5;
	assert_int_equal(core_world_open(&world), 0);
	for (uint64_t i = 0; i < 4; i++) {
		path_keys(i + 1, 0, keys[i], 6);
		assert_int_equal(core_world_save(&world, i + 1, 1, keys[i], 6).code, 0);
		if (i != 1)
			assert_true(is_stored(&world, keys[i], 6));
		core_world_settle(&world);
	}
	struct fc_stats stats = core_world_stats(&world);
	assert_true(stats.segments_spilled > 0);
	assert_true(is_stored(&world, keys[0], 6));
	assert_int_equal(core_world_load(&world, keys[0], 6).bytes[FC_SSD], 6 * 1700);
	assert_true(is_stored(&world, keys[3], 6));
	core_world_deinit(&world);
}

static void a_spill_that_fails_is_tried_again(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][6];
	core_world_init(&world, geometry_plain(100), 8, 64);
	world.opts.catalog.memory_reclaim = FC_MEMORY_SPILL;
	world.opts.catalog.high_watermark = 0.7;
	world.opts.catalog.low_watermark = 0.5;
	assert_int_equal(core_world_open(&world), 0);
	struct fake_media *ssd = world.world.media[FC_SSD];
	for (uint64_t i = 0; i < 3; i++) {
		path_keys(i + 1, 0, keys[i], 6);
		ssd->fail_at = ssd->op_count + 1;
		ssd->fail_count = 2;
		assert_int_equal(core_world_save(&world, i + 1, 1, keys[i], 6).code, 0);
		assert_true(is_stored(&world, keys[i], 6));
	}
	core_world_settle(&world);
	assert_true(core_world_stats(&world).io_errors > 0);
	assert_true(core_world_stats(&world).segments_spilled > 0);
	for (uint64_t i = 0; i < 3; i++)
		assert_true(is_stored(&world, keys[i], 6));
	core_world_deinit(&world);
}

/* After a restart, whose memory was kept, no stream has memory for copies yet; the turn of 4 blocks needs less than the
 * spill of 6 that it asks for. */
static void a_spill_without_memory_loses_nothing(void **state)
{
	(void)state;
	for (uint64_t k = 1;; k++) {
		struct core_world world;
		struct fc_key keys[3][6];
		const uint64_t counts[] = {6, 2, 4};
		core_world_init(&world, geometry_plain(100), 8, 64);
		world_make_memory_durable(&world.world);
		world.opts.catalog.memory_reclaim = FC_MEMORY_SPILL;
		world.opts.catalog.high_watermark = 0.7;
		world.opts.catalog.low_watermark = 0.5;
		assert_int_equal(core_world_open(&world), 0);
		for (uint64_t i = 0; i < 2; i++) {
			path_keys(i + 1, 0, keys[i], 6);
			assert_int_equal(core_world_save(&world, i + 1, 1, keys[i], counts[i]).code, 0);
		}
		core_world_close(&world);
		assert_int_equal(core_world_open(&world), 0);
		for (uint64_t i = 0; i < 2; i++)
			assert_true(is_stored(&world, keys[i], counts[i]));
		path_keys(3, 0, keys[2], 6);
		world.world.tracked.fail_at = world.world.tracked.call_count + k;
		struct fc_save_opts opts = core_world_save_opts(&world, 3, 1, keys[2], 4);
		engine_fill(&world.engine, keys[2], 4);
		struct fc_core_save *save = NULL;
		int code = fc_core_save_submit(world.core, &opts, world.engine.layers, &world, &save, NULL);
		core_world_settle(&world);
		bool has_failed = world.world.tracked.call_count >= world.world.tracked.fail_at;
		world.world.tracked.fail_at = 0;
		core_world_settle(&world);
		if (code == FC_OK)
			code = save->result.code;
		bool is_durable = code == FC_OK && save->result.is_durable;
		if (save != NULL)
			fc_core_save_free(world.core, save);
		assert_true(code == FC_OK || (code == FC_ENOMEM && has_failed));
		assert_true(is_durable || has_failed);
		if (!is_durable)
			assert_int_equal(core_world_save(&world, 3, 1, keys[2], 4).code, 0);
		core_world_settle(&world);
		for (uint64_t i = 0; i < 3; i++)
			assert_true(is_stored(&world, keys[i], counts[i]));
		/* A copy that could not be made durable is withdrawn, and the original is still there. */
		uint64_t moved_bytes = core_world_load(&world, keys[0], 6).bytes[FC_SSD];
		assert_true(moved_bytes == 6 * 1700 || (moved_bytes == 0 && has_failed));
		core_world_deinit(&world);
		if (!has_failed) {
			assert_true(k > 10);
			return;
		}
	}
}

/* ---- arguments ---- */

static void wrong_arguments_are_named(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[8];
	open_world(&world, 0, 32);
	path_keys(1, 0, keys, 8);
	struct fc_save_opts good = core_world_save_opts(&world, 1, 0, keys, 8), bad[4] = {good, good, good, good};
	bad[0].keys = NULL;
	bad[1].resume_point_count = 1;
	bad[2].key_count = 1ull << 32;
	bad[3].shared_blocks = 9;
	static const char *const texts[] = {
		"save: an array is NULL, but its count is not 0",
		"save: an array is NULL, but its count is not 0",
		"save: 4294967296 keys; at most 4294967295 are allowed",
		"save: 9 shared blocks of 8",
	};
	for (size_t i = 0; i < fc_array_len(texts); i++) {
		struct fc_error error = {0};
		struct fc_core_save *save = NULL;
		assert_int_equal(fc_core_save_submit(world.core, &bad[i], world.engine.layers, &world, &save, &error),
				 FC_EINVAL);
		assert_string_equal(error.text, texts[i]);
		assert_null(save);
		assert_int_equal(core_world_stats(&world).saves_active, 0);
	}
	core_world_deinit(&world);
}

/* Two streams that write and a save that waits for one: with no limit there is no time at which to look after them. */
static void a_time_limit_beyond_the_end_of_time_is_none(void **state)
{
	(void)state;
	struct core_world world;
	struct fc_key keys[3][8];
	struct fc_core_save *saves[3];
	core_world_init(&world, geometry_plain(100), 0, 32);
	world.opts.io_timeout_ns = UINT64_MAX;
	assert_int_equal(core_world_open(&world), 0);
	world.ssd.is_holding[FC_IO_WRITE] = true;
	for (uint64_t i = 0; i < 3; i++) {
		path_keys(i + 1, 0, keys[i], 8);
		engine_fill(&world.engine, keys[i], 8);
		struct fc_save_opts opts = core_world_save_opts(&world, i + 1, 0, keys[i], 8);
		saves[i] = core_world_submit_save(&world, &opts);
	}
	core_world_settle(&world);
	assert_int_equal(saves[2]->state, FC_SAVE_QUEUED);
	assert_true(fc_core_wake_ns(world.core) == UINT64_MAX);
	world.now_ns += 1000000 * SECOND_NS;
	core_world_settle(&world);
	assert_int_equal(saves[2]->state, FC_SAVE_QUEUED);
	world.ssd.is_holding[FC_IO_WRITE] = false;
	hold_media_release(&world.ssd);
	core_world_settle(&world);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(saves[i]->state, FC_SAVE_DURABLE);
		fc_core_save_free(world.core, saves[i]);
	}
	core_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_save_says_what_it_wrote_and_how_long_it_lasts),
		cmocka_unit_test(saving_what_is_stored_is_free),
		cmocka_unit_test(blocks_that_the_device_does_not_hold_come_from_memory),
		cmocka_unit_test(a_damaged_source_fails_the_save_and_is_cut),
		cmocka_unit_test(a_save_waits_while_space_is_being_freed),
		cmocka_unit_test(a_save_that_finds_everything_leased_is_refused_without_a_trace),
		cmocka_unit_test(a_save_can_be_cancelled_until_it_is_visible),
		cmocka_unit_test(a_save_that_is_freed_early_is_given_back_once),
		cmocka_unit_test(a_failed_write_leaves_no_trace),
		cmocka_unit_test(a_sync_that_never_returns_ends_its_saves_and_leaves_them_visible),
		cmocka_unit_test(a_write_that_never_returns_ends_its_save_and_holds_up_nobody),
		cmocka_unit_test(when_no_stream_is_left_queued_saves_end_too),
		cmocka_unit_test(a_turn_whose_head_vanished_is_not_committed),
		cmocka_unit_test(want_of_memory_at_any_point_refuses_the_save_and_leaks_nothing),
		cmocka_unit_test(sessions_that_were_read_move_to_ssd_when_memory_is_full),
		cmocka_unit_test(a_spill_that_fails_is_tried_again),
		cmocka_unit_test(a_spill_without_memory_loses_nothing),
		cmocka_unit_test(wrong_arguments_are_named),
		cmocka_unit_test(a_time_limit_beyond_the_end_of_time_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

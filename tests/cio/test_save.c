/* Save: what the device holds is gathered, what it does not is copied from memory, and the medium ends up with exactly
 * the bytes that the keys say. */
#include "cio/stream_world.h"
#include "format/checksum.h"

static void on_ended(struct fc_save_job *job)
{
	fc_container_of(job, struct stream_world, save)->end_count++;
}

static int start(struct stream_world *world, struct put *put)
{
	world->end_count = 0;
	world->save = (struct fc_save_job){
		.geometry = &world->world.geometry,
		.grants = put->reservation.grants,
		.grant_count = put->reservation.grant_count,
		.keys = world->keys,
		.target = &world->target,
		.sources = &put->reservation.sources,
		.memory_map = world->world.media[FC_MEMORY]->image,
		.ended_cb = on_ended,
	};
	return fc_save_job_start(&world->save, &world->stream, NULL);
}

/* Reserves a turn of `count` blocks, of which the device holds those from `resident_from` on. */
static void reserve(struct stream_world *world, struct put *put, uint64_t session, uint64_t turn, uint64_t count,
		    uint64_t resident_from)
{
	engine_wipe(&world->engine);
	engine_fill(&world->engine, world->keys, count);
	put_init(put, &world->world, session, turn, world->keys, count);
	for (uint32_t group = 0; group < world->world.geometry.group_count; group++) {
		uint64_t first = resident_from / fc_group_span(&world->world.geometry, group);
		put->turn.resident[group].first_block = first;
		put->turn.resident[group].count -= first;
		world->target.slots[group] = (struct fc_slots){
			.first_block = first,
			.count = put->turn.resident[group].count,
			.slots = world->engine.slots[group] + first,
		};
	}
	assert_int_equal(put_reserve(put), 0);
}

static void commit(struct stream_world *world, struct put *put)
{
	assert_int_equal(world->save.code, 0);
	assert_int_equal(put_commit(put), 0);
	world_drain(&world->world);
	put_deinit(put);
	world_check(&world->world);
}

static void check_span(struct world *world, const struct fc_placed *placed, const struct fc_span *span, uint32_t layer)
{
	const struct fc_range *range = fc_shape_range_of(placed->shape, span->entry_first);
	const uint8_t *base = world->media[fc_gva_medium(placed->base)]->image + fc_gva_offset(placed->base);
	struct fc_layer_area area;
	fc_layer_seek(&world->geometry, placed->shape, placed->header_bytes, placed->align, layer, &area);
	struct fc_range_area where = fc_range_area_in(&world->geometry, placed->shape, &area, range);
	for (uint64_t i = 0; i < span->count && where.slice_bytes > 0; i++) {
		uint64_t entry = span->entry_first + i, position = entry - range->entry_first;
		uint64_t seed = fc_slice_seed(fc_catalog_segment_key(placed->segment, entry), range->group, layer);
		uint32_t sum = fc_slice_checksum(base + where.slice_offset + position * where.slice_bytes,
						 where.slice_bytes, seed);
		assert_memory_equal(base + where.checksum_offset + position * sizeof(sum), &sum, sizeof(sum));
	}
}

/* The first `blocks` are stored, and every byte and checksum on the medium is what the keys say. */
static void assert_stored(struct stream_world *world, uint64_t blocks)
{
	struct fc_path path = {0};
	assert_int_equal(stored(&world->world, world->keys, BLOCKS), blocks);
	assert_int_equal(fc_catalog_match(world->world.catalog, world->keys, BLOCKS, 0, false, &path), 0);
	for (uint32_t i = 0; i < path.span_count; i++)
		for (uint32_t layer = 0; layer < world->world.geometry.layer_count; layer++)
			check_span(&world->world, &path.placed[path.spans[i].placed], &path.spans[i], layer);
	fc_path_deinit(&path, &world->world.alloc);
}

static void turns_on_either_medium_are_written_exactly(void **state)
{
	(void)state;
	const struct fc_geometry geometries[] = {geometry_plain(100), geometry_plain(1), geometry_hybrid(50)};
	for (size_t i = 0; i < fc_array_len(geometries); i++) {
		struct stream_world world;
		struct put put;
		const uint64_t ends[] = {8, 14, 24};
		stream_world_init(&world, geometries[i], 32768);
		for (uint64_t turn = 0; turn < 3; turn++) {
			reserve(&world, &put, 1, turn == 1 ? 0 : turn, ends[turn], turn == 0 ? 0 : ends[turn - 1]);
			uint64_t bytes_before = world.world.media[FC_SSD]->media.counters.bytes_written;
			assert_int_equal(start(&world, &put), 0);
			assert_int_equal(world.end_count, 0);
			stream_world_finish(&world);
			assert_int_equal(world.world.media[FC_SSD]->media.counters.bytes_written - bytes_before,
					 world.save.bytes_written[FC_SSD]);
			commit(&world, &put);
			assert_stored(&world, ends[turn]);
		}
		if (i == 0)
			assert_string_equal(picture(&world.world, world.keys, BLOCKS), "8 6 m10");
		stream_world_deinit(&world);
	}
}

/* Blocks 0 to 7 lie in memory; the turn that goes to SSD takes them along, and only the last eight are on the device.
 */
/* 16 blocks of 1000 + 700 bytes lie in areas of 16384 and 11264 bytes behind 512 of the header. A slot of 24 KiB takes
 * the first of them alone, and leaves the 512 bytes of its last block to the second. A slot of 16 KiB has no room for
 * rounding, so nothing is. */
static void only_whole_blocks_are_written_where_slots_allow(void **state)
{
	(void)state;
	const struct {
		uint64_t slot_bytes, written_bytes;
	} cases[] = {{16384, 16384 + 11264}, {24576, 28672}, {32768, 28672}};
	for (size_t i = 0; i < fc_array_len(cases); i++) {
		struct stream_world world;
		struct put put;
		stream_world_init(&world, geometry_plain(100), cases[i].slot_bytes);
		reserve(&world, &put, 1, 0, 16, 0);
		assert_int_equal(start(&world, &put), 0);
		stream_world_finish(&world);
		assert_int_equal(world.save.bytes_written[FC_SSD], cases[i].written_bytes);
		commit(&world, &put);
		assert_stored(&world, 16);
		stream_world_deinit(&world);
	}
}

static void what_the_device_does_not_hold_comes_from_memory(void **state)
{
	(void)state;
	struct stream_world world;
	struct put put;
	stream_world_init(&world, geometry_plain(100), 32768);
	assert_int_equal(save(&world.world, 1, 1, world.keys, 8), 0);
	assert_string_equal(picture(&world.world, world.keys, 8), "m8");
	reserve(&world, &put, 1, 0, 16, 8);
	assert_int_equal(start(&world, &put), 0);
	stream_world_finish(&world);
	commit(&world, &put);
	assert_string_equal(picture(&world.world, world.keys, 16), "16");
	assert_stored(&world, 16);
	stream_world_deinit(&world);
}

static void a_source_that_is_damaged_is_named(void **state)
{
	(void)state;
	for (uint64_t block = 0; block < 8; block++) {
		struct stream_world world;
		struct put put;
		uint8_t slice[700];
		stream_world_init(&world, geometry_plain(100), 32768);
		assert_int_equal(save(&world.world, 1, 1, world.keys, 8), 0);
		slice_bytes(world.keys[block], 0, 1, slice, sizeof(slice));
		struct fake_media *memory = world.world.media[FC_MEMORY];
		uint8_t *found = memmem(memory->image, memory->media.bytes, slice, sizeof(slice));
		assert_non_null(found);
		found[3] ^= 8;
		reserve(&world, &put, 1, 0, 16, 8);
		assert_int_equal(start(&world, &put), 0);
		stream_world_finish(&world);
		assert_int_equal(world.save.code, FC_ECORRUPT);
		assert_true(world.save.is_source_bad);
		assert_int_equal(world.save.bad_entry, block);
		put_abort(&put);
		world_drain(&world.world);
		put_deinit(&put);
		world_check(&world.world);
		stream_world_deinit(&world);
	}
}

/* Blocks 0 to 7 lie on SSD, 8 to 15 in memory; the turn takes the latter along. */
static void of_several_sources_the_damaged_one_is_named(void **state)
{
	(void)state;
	struct stream_world world;
	struct put put;
	uint8_t slice[1000];
	stream_world_init(&world, geometry_plain(100), 32768);
	assert_int_equal(save(&world.world, 1, 0, world.keys, 8), 0);
	assert_int_equal(save(&world.world, 1, 1, world.keys, 16), 0);
	assert_string_equal(picture(&world.world, world.keys, 16), "8 m8");
	slice_bytes(world.keys[10], 0, 0, slice, sizeof(slice));
	struct fake_media *memory = world.world.media[FC_MEMORY];
	uint8_t *found = memmem(memory->image, memory->media.bytes, slice, sizeof(slice));
	assert_non_null(found);
	found[999] ^= 0x80;
	reserve(&world, &put, 1, 0, 24, 16);
	assert_int_equal(put.reservation.sources.placed_count, 2);
	assert_int_equal(start(&world, &put), 0);
	stream_world_finish(&world);
	assert_int_equal(world.save.code, FC_ECORRUPT);
	assert_int_equal(world.save.bad_placed, 1);
	assert_int_equal(world.save.bad_entry, 2);
	put_abort(&put);
	put_deinit(&put);
	stream_world_deinit(&world);
}

/* Neither on the device nor in memory: the owner's mistake, and no reason to write something else. */
static void a_block_that_lies_nowhere_is_refused(void **state)
{
	(void)state;
	struct stream_world world;
	struct put put;
	stream_world_init(&world, geometry_plain(100), 32768);
	assert_int_equal(save(&world.world, 1, 1, world.keys, 8), 0);
	reserve(&world, &put, 1, 0, 16, 8);
	struct fc_path *sources = &put.reservation.sources;
	struct fc_gva in_memory = sources->placed[0].base;
	sources->placed[0].base = fc_gva_make(FC_SSD, 0, fc_gva_offset(in_memory));
	assert_int_equal(start(&world, &put), FC_EINVAL);
	sources->placed[0].base = in_memory;
	sources->span_count--;
	assert_int_equal(start(&world, &put), FC_EINVAL);
	sources->span_count++;
	assert_int_equal(start(&world, &put), 0);
	stream_world_finish(&world);
	commit(&world, &put);
	assert_stored(&world, 16);
	stream_world_deinit(&world);
}

static void a_device_that_fails_ends_the_job_with_its_code(void **state)
{
	(void)state;
	struct stream_world world;
	struct put put;
	struct failing_device failing;
	stream_world_init(&world, geometry_plain(100), 32768);
	reserve(&world, &put, 1, 0, 16, 0);
	failing_device_begin(&failing, &world, FC_EIO);
	assert_int_equal(start(&world, &put), 0);
	stream_world_finish(&world);
	assert_int_equal(world.save.code, FC_EIO);
	assert_false(world.save.is_source_bad);
	assert_int_equal(world.save.bytes_written[FC_SSD], 0);
	failing_device_end(&failing, &world);
	put_abort(&put);
	put_deinit(&put);
	stream_world_deinit(&world);
}

/* Layer 0 has 24 slices of 4 bytes, layer 1 fills a slot alone (9.6 MB, and a slot is filled with 8 MiB where there is
 * a choice): what is there of the first block waits for the second slot, and nothing is written in between. */
static void a_slot_with_less_than_a_block_is_written_with_the_next(void **state)
{
	(void)state;
	struct stream_world world;
	struct put put;
	struct fc_geometry geometry = geometry_plain(1);
	geometry.groups[0].slice_bytes[0] = 4;
	geometry.groups[0].slice_bytes[1] = 400000;
	stream_world_init_with(&world, geometry, 12 << 20, 4096);
	world.stream.opts.transfer_bytes = 1 << 20;
	reserve(&world, &put, 1, 0, 24, 0);
	assert_int_equal(start(&world, &put), 0);
	stream_world_finish(&world);
	/* 1024 bytes of header, 512 of layer 0, 24 x 400,004 of layer 1: in blocks of 4096 */
	assert_int_equal(world.save.bytes_written[FC_SSD], (1024 + 512 + 24 * 400004 + 4095) / 4096 * 4096);
	commit(&world, &put);
	assert_stored(&world, 24);
	stream_world_deinit(&world);
}

static int start_spill(struct stream_world *world, struct put *put, const struct fc_path *from)
{
	world->end_count = 0;
	world->save = (struct fc_save_job){
		.geometry = &world->world.geometry,
		.grants = put->reservation.grants,
		.grant_count = put->reservation.grant_count,
		.original = &from->placed[0],
		.memory_map = world->world.media[FC_MEMORY]->image,
		.ended_cb = on_ended,
	};
	return fc_save_job_start(&world->save, &world->stream, NULL);
}

/* A session whose next turn, a branch, goes to SSD leaves memory with all it has there: a copy on SSD of the same
 * shape, with keys from the segment itself and every slice from where it lies. */
static void a_spill_has_the_shape_and_the_bytes_of_its_original(void **state)
{
	(void)state;
	const struct fc_geometry geometries[] = {geometry_plain(100), geometry_hybrid(50)};
	for (size_t i = 0; i < fc_array_len(geometries); i++) {
		struct stream_world world;
		struct put put;
		struct fc_key branch[8];
		struct fc_path from = {0};
		unsigned spilled = 0;
		stream_world_init(&world, geometries[i], 32768);
		path_keys(9, 0, branch, 8);
		assert_int_equal(save(&world.world, 1, 1, world.keys, 8), 0);
		assert_int_equal(save(&world.world, 1, 0, branch, 8), 0);
		assert_string_equal(picture(&world.world, world.keys, 8), "m8");
		put_init(&put, &world.world, 0, 0, NULL, 0);
		for (; fc_catalog_spill_next(world.world.catalog, &from, &put.reservation) == FC_OK; spilled++) {
			assert_int_equal(put.reservation.grants[0].placed.shape->entry_count,
					 from.placed[0].shape->entry_count);
			assert_int_equal(start_spill(&world, &put, &from), 0);
			stream_world_finish(&world);
			assert_int_equal(world.save.code, 0);
			assert_int_equal(put_commit(&put), 0);
			fc_catalog_release(world.world.catalog, &from);
			world_drain(&world.world);
			put.durable_count = 0;
		}
		assert_int_equal(spilled, i == 0 ? 1 : 2); /* the hybrid model has a segment of resume points too */
		assert_string_equal(picture(&world.world, world.keys, 8), "8");
		assert_stored(&world, 8);
		assert_int_equal(world_chunks_used(&world.world, FC_MEMORY), 0);
		put_deinit(&put);
		fc_path_deinit(&from, &world.world.alloc);
		stream_world_deinit(&world);
	}
}

static void a_failed_write_ends_the_job(void **state)
{
	(void)state;
	for (int is_short = 0; is_short < 2; is_short++) {
		for (uint64_t k = 1;; k++) {
			struct stream_world world;
			struct put put;
			stream_world_init(&world, geometry_plain(100), 32768);
			reserve(&world, &put, 1, 0, 16, 0);
			struct fake_media *ssd = world.world.media[FC_SSD];
			ssd->is_short = is_short;
			ssd->fail_at = ssd->op_count + k;
			ssd->fail_count = 1;
			assert_int_equal(start(&world, &put), 0);
			stream_world_finish(&world);
			ssd->fail_at = 0;
			int code = world.save.code;
			if (code == FC_OK) {
				commit(&world, &put);
				/* 512 of the header's block, 16384 and 11264, in whole blocks of 4096: commands of 1024
				 */
				assert_int_equal(k, 28672 / 1024 + 1);
			} else {
				assert_int_equal(code, FC_EIO);
				put_abort(&put);
				put_deinit(&put);
				assert_int_equal(stored(&world.world, world.keys, 16), 0);
			}
			stream_world_deinit(&world);
			if (code == FC_OK)
				break;
		}
	}
}

static void a_job_can_be_stopped_at_any_point(void **state)
{
	(void)state;
	for (unsigned polls = 0;; polls++) {
		struct stream_world world;
		struct put put;
		stream_world_init(&world, geometry_hybrid(50), 8192);
		reserve(&world, &put, 1, 0, 16, 0);
		assert_int_equal(start(&world, &put), 0);
		for (unsigned i = 0; i < polls && world.end_count == 0; i++)
			stream_world_poll(&world);
		bool has_ended = world.end_count > 0;
		if (!has_ended) {
			fc_save_job_stop(&world.save);
			stream_world_finish(&world);
			assert_int_equal(world.save.code, FC_ECANCELED);
		}
		put_abort(&put);
		put_deinit(&put);
		world_check(&world.world);
		stream_world_deinit(&world);
		if (has_ended) {
			assert_true(polls > 2);
			return;
		}
	}
}

static void an_area_larger_than_a_slot_is_refused(void **state)
{
	(void)state;
	struct stream_world world;
	struct put put;
	stream_world_init(&world, geometry_plain(100), 8192);
	reserve(&world, &put, 1, 0, 16, 0); /* this catalog was told of no limit */
	assert_int_equal(start(&world, &put), FC_ELIMIT);
	assert_int_equal(stream_world_poll(&world), 0);
	put_abort(&put);
	put_deinit(&put);
	stream_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_on_either_medium_are_written_exactly),
		cmocka_unit_test(only_whole_blocks_are_written_where_slots_allow),
		cmocka_unit_test(what_the_device_does_not_hold_comes_from_memory),
		cmocka_unit_test(a_source_that_is_damaged_is_named),
		cmocka_unit_test(of_several_sources_the_damaged_one_is_named),
		cmocka_unit_test(a_block_that_lies_nowhere_is_refused),
		cmocka_unit_test(a_device_that_fails_ends_the_job_with_its_code),
		cmocka_unit_test(a_slot_with_less_than_a_block_is_written_with_the_next),
		cmocka_unit_test(a_spill_has_the_shape_and_the_bytes_of_its_original),
		cmocka_unit_test(a_failed_write_ends_the_job),
		cmocka_unit_test(a_job_can_be_stopped_at_any_point),
		cmocka_unit_test(an_area_larger_than_a_slot_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

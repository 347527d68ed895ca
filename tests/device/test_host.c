/* Does the host device move slices between flat memory and slots, and tell every wrong one? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/host.h"
#include "format/checksum.h"

#define SLOT_COUNT 4
#define SLICE_BYTES 300
#define SLOT_STRIDE 512
#define PIECE_STRIDE 200 /* two pieces of 150 bytes, 50 bytes apart */

struct world {
	struct fc_device *device;
	uint8_t slots[SLOT_COUNT * SLOT_STRIDE];
	uint8_t flat[SLOT_COUNT * SLICE_BYTES];
	uint8_t checksums[SLOT_COUNT * 4 + 1]; /* used from byte 1: never aligned */
	struct fc_paged_layer paged;
	struct fc_copy copies[SLOT_COUNT];
	struct fc_copy_batch batch;
	unsigned done_count;
};

static void count_done(struct fc_copy_batch *batch)
{
	struct world *world = fc_container_of(batch, struct world, batch);
	world->done_count++;
}

/* Copy i moves flat slice i from or to slot 3 - i. */
static int world_init(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	if (fc_device_host(&world->device, NULL) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(world->flat); i++)
		world->flat[i] = (uint8_t)(i * 7 + i / 256);
	world->paged = (struct fc_paged_layer){.base = world->slots,
					       .slot_stride_bytes = SLOT_STRIDE,
					       .slot_count = SLOT_COUNT,
					       .piece_stride_bytes = PIECE_STRIDE,
					       .piece_count = 2};
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		world->copies[i] = (struct fc_copy){.flat = world->flat + i * SLICE_BYTES,
						    .paged = &world->paged,
						    .slot = SLOT_COUNT - 1 - i,
						    .bytes = SLICE_BYTES,
						    .seed = 1000 + i};
		world->copies[i].checksum = (uint32_t *)(void *)(world->checksums + 1 + (size_t)i * 4);
	}
	world->batch = (struct fc_copy_batch){.copies = world->copies, .copy_count = SLOT_COUNT, .done_cb = count_done};
	*state = world;
	return 0;
}

static int world_deinit(void **state)
{
	struct world *world = *state;
	fc_device_close(world->device);
	free(world);
	return 0;
}

static void write_right_checksums(struct world *world)
{
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		uint32_t checksum = fc_slice_checksum(world->flat + i * SLICE_BYTES, SLICE_BYTES, 1000 + i);
		memcpy(world->checksums + 1 + (size_t)i * 4, &checksum, 4);
	}
}

static void run(struct world *world, enum fc_copy_direction direction)
{
	unsigned before = world->done_count;

	world->batch.direction = direction;
	fc_device_submit(world->device, &world->batch);
	assert_int_equal(world->done_count, before);
	for (int polls = 0; world->done_count == before; polls++) {
		assert_true(polls < 1000);
		assert_int_equal(fc_device_poll(world->device), 1);
	}
	assert_int_equal(world->done_count, before + 1);
	assert_int_equal(fc_device_poll(world->device), 0);
}

static void scatter_puts_every_piece_in_its_place_and_nothing_between(void **state)
{
	struct world *world = *state;

	write_right_checksums(world);
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.result, 0);
	assert_int_equal(world->batch.bad_first, SLOT_COUNT);
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		const uint8_t *slot = world->slots + (size_t)(SLOT_COUNT - 1 - i) * SLOT_STRIDE;
		const uint8_t *flat = world->flat + (size_t)i * SLICE_BYTES;
		assert_memory_equal(slot, flat, 150);
		assert_memory_equal(slot + PIECE_STRIDE, flat + 150, 150);
		for (int at = 150; at < PIECE_STRIDE; at++)
			assert_int_equal(slot[at], 0);
		assert_int_equal(slot[PIECE_STRIDE + 150], 0);
	}
	assert_int_equal(world->device->bytes_scattered, SLOT_COUNT * SLICE_BYTES);
	assert_int_equal(world->device->bytes_gathered, 0);
}

static void gather_collects_the_pieces_and_writes_their_checksums(void **state)
{
	struct world *world = *state;
	uint8_t wanted[sizeof(world->flat)];
	uint8_t wanted_checksums[sizeof(world->checksums)];

	write_right_checksums(world);
	run(world, FC_COPY_SCATTER);
	memcpy(wanted, world->flat, sizeof(wanted));
	memcpy(wanted_checksums, world->checksums, sizeof(wanted_checksums));
	memset(world->flat, 0, sizeof(world->flat));
	memset(world->checksums + 1, 0, sizeof(world->checksums) - 1);
	run(world, FC_COPY_GATHER);
	assert_int_equal(world->batch.result, 0);
	assert_int_equal(world->batch.bad_first, SLOT_COUNT);
	assert_memory_equal(world->flat, wanted, sizeof(wanted));
	assert_memory_equal(world->checksums, wanted_checksums, sizeof(wanted_checksums));
	assert_int_equal(world->device->bytes_gathered, SLOT_COUNT * SLICE_BYTES);
}

static void scatter_reports_the_first_bad_slice_and_copies_the_rest(void **state)
{
	struct world *world = *state;

	write_right_checksums(world);
	world->flat[1 * SLICE_BYTES + 299] ^= 1;
	world->flat[2 * SLICE_BYTES] ^= 0x80;
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.result, 0);
	assert_int_equal(world->batch.bad_first, 1);
	assert_memory_equal(world->slots, world->flat + 3 * SLICE_BYTES, 150);
}

static void flat_copies_check_and_move(void **state)
{
	struct world *world = *state;

	write_right_checksums(world);
	for (size_t i = 0; i < SLOT_COUNT; i++) {
		world->copies[i].paged = NULL;
		world->copies[i].slot_memory = world->slots + i * SLICE_BYTES;
	}
	world->checksums[1 + 3 * 4] ^= 1;
	run(world, FC_COPY_FLAT);
	assert_int_equal(world->batch.bad_first, 3);
	assert_memory_equal(world->slots, world->flat, sizeof(world->flat));
}

static void a_slot_behind_the_last_ends_the_batch_before_it_writes(void **state)
{
	struct world *world = *state;

	write_right_checksums(world);
	world->copies[2].slot = SLOT_COUNT;
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.result, FC_EINVAL);
	assert_int_equal(world->batch.bad_first, 2);
	assert_memory_equal(world->slots + (size_t)2 * SLOT_STRIDE, world->flat + SLICE_BYTES, 150);
	for (int at = 0; at < 2 * SLOT_STRIDE; at++)
		assert_int_equal(world->slots[at], 0);
}

static void pieces_that_do_not_divide_the_slice_are_refused(void **state)
{
	struct world *world = *state;

	world->paged.piece_count = 7;
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.result, FC_EINVAL);
	assert_int_equal(world->batch.bad_first, 0);
	world->paged.piece_count = 0;
	run(world, FC_COPY_GATHER);
	assert_int_equal(world->batch.result, FC_EINVAL);
}

/* More than the caches hold, in slices of a size that is no multiple of anything. */
static void a_large_batch_comes_back_whole(void **state)
{
	enum { COUNT = 3000, BYTES = 1111, STRIDE = 1200 };
	struct world *world = *state;
	uint8_t *flat = malloc(COUNT * BYTES);
	uint8_t *slots = malloc(COUNT * STRIDE);
	uint32_t *checksums = malloc(COUNT * sizeof(*checksums));
	struct fc_copy *copies = calloc(COUNT, sizeof(*copies));
	struct fc_paged_layer paged = {
		.base = slots, .slot_stride_bytes = STRIDE, .slot_count = COUNT, .piece_count = 1};

	assert_true(flat != NULL && slots != NULL && checksums != NULL && copies != NULL);
	for (int i = 0; i < COUNT * BYTES; i++)
		flat[i] = (uint8_t)(i * 11 + i / 1000);
	for (size_t i = 0; i < COUNT; i++) {
		checksums[i] = fc_slice_checksum(flat + i * BYTES, BYTES, i);
		copies[i] = (struct fc_copy){.flat = flat + i * BYTES,
					     .paged = &paged,
					     .slot = i * 7 % COUNT, /* 7 and 3000 have no common factor */
					     .bytes = BYTES,
					     .seed = i,
					     .checksum = &checksums[i]};
	}
	world->batch.copies = copies;
	world->batch.copy_count = COUNT;
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.bad_first, COUNT);
	memset(flat, 0, COUNT * BYTES);
	memset(checksums, 0, COUNT * sizeof(*checksums));
	run(world, FC_COPY_GATHER);
	for (int i = 0; i < COUNT * BYTES; i++)
		assert_int_equal(flat[i], (uint8_t)(i * 11 + i / 1000));
	checksums[2999] ^= 1;
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.bad_first, 2999);
	free(copies);
	free(checksums);
	free(slots);
	free(flat);
}

/* A long load's slot is 16 MiB; a short one's slices must not lie behind the end of that. */
static void a_small_batch_does_not_wait_for_the_end_of_a_large_one(void **state)
{
	enum { COUNT = 64, BYTES = 128 << 10 };
	struct world *world = *state;
	struct world large = {.device = world->device};
	uint8_t *memory = malloc(2 * BYTES);
	uint32_t checksum = 0;
	struct fc_copy *copies = calloc(COUNT, sizeof(*copies));
	struct fc_paged_layer paged = {.base = memory, .slot_stride_bytes = BYTES, .slot_count = 1, .piece_count = 1};

	assert_true(memory != NULL && copies != NULL);
	memset(memory, 1, 2 * BYTES);
	for (size_t i = 0; i < COUNT; i++)
		copies[i] = (struct fc_copy){
			.flat = memory + BYTES, .paged = &paged, .bytes = BYTES, .checksum = &checksum};
	large.batch = (struct fc_copy_batch){
		.direction = FC_COPY_GATHER, .copies = copies, .copy_count = COUNT, .done_cb = count_done};
	fc_device_submit(world->device, &large.batch);
	assert_int_equal(fc_device_poll(world->device), 1);
	write_right_checksums(world);
	fc_device_submit(world->device, &world->batch);
	assert_int_equal(fc_device_poll(world->device) + fc_device_poll(world->device), 2);
	assert_int_equal(world->done_count, 1);
	assert_int_equal(large.done_count, 0);
	while (large.done_count == 0)
		assert_int_equal(fc_device_poll(world->device), 1);
	assert_int_equal(world->device->bytes_gathered, (uint64_t)COUNT * BYTES);
	free(copies);
	free(memory);
}

static void an_empty_batch_completes(void **state)
{
	struct world *world = *state;

	world->batch.copy_count = 0;
	run(world, FC_COPY_SCATTER);
	assert_int_equal(world->batch.result, 0);
	assert_int_equal(world->batch.bad_first, 0);
}

static void a_window_is_aligned_and_writable(void **state)
{
	struct world *world = *state;
	uint64_t bytes = (3 << 20) + 5;
	uint8_t *window = world->device->ops->window_alloc(world->device, bytes);

	assert_non_null(window);
	assert_int_equal((uintptr_t)window % (2 << 20), 0);
	window[0] = window[bytes - 1] = 1;
	world->device->ops->window_free(world->device, window, bytes);
	assert_null(world->device->ops->window_alloc(world->device, UINT64_MAX - 4096));
	world->device->ops->window_free(world->device, NULL, bytes);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_deinit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(scatter_puts_every_piece_in_its_place_and_nothing_between),
		WITH_WORLD(gather_collects_the_pieces_and_writes_their_checksums),
		WITH_WORLD(scatter_reports_the_first_bad_slice_and_copies_the_rest),
		WITH_WORLD(flat_copies_check_and_move),
		WITH_WORLD(a_slot_behind_the_last_ends_the_batch_before_it_writes),
		WITH_WORLD(pieces_that_do_not_divide_the_slice_are_refused),
		WITH_WORLD(a_large_batch_comes_back_whole),
		WITH_WORLD(a_small_batch_does_not_wait_for_the_end_of_a_large_one),
		WITH_WORLD(an_empty_batch_completes),
		WITH_WORLD(a_window_is_aligned_and_writable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

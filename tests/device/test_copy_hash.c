/* Does every kernel copy exactly the bytes it was told to, and hash like the library? Compared with XXH3_64bits() of
 * libxxhash at every size up to 2 KiB and around the edges beyond, at odd alignments, with bytes on both sides that
 * must not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <xxhash.h>

#include "device/copy_hash.h"

#define SPACE_BYTES 70016
#define GUARD 0xee

struct world {
	uint8_t *source;
	uint8_t *destination;
};

static int world_init(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	uint32_t random = 1;

	*state = world;
	if (world == NULL)
		return -1;
	world->source = aligned_alloc(64, SPACE_BYTES);
	world->destination = aligned_alloc(64, SPACE_BYTES);
	if (world->source == NULL || world->destination == NULL)
		return -1;
	for (int i = 0; i < SPACE_BYTES; i++) {
		random = random * 1664525 + 1013904223;
		world->source[i] = (uint8_t)(random >> 24);
	}
	return 0;
}

static int world_deinit(void **state)
{
	struct world *world = *state;
	free(world->source);
	free(world->destination);
	free(world);
	return 0;
}

/* One slice in one piece. */
static void check_one(struct world *world, const struct fc_copy_kernel *kernel, uint64_t bytes, unsigned source_shift,
		      unsigned destination_shift, bool is_streaming)
{
	struct fc_copy_hash slice = {
		.source = world->source + source_shift,
		.destination = world->destination + 64 + destination_shift,
		.piece_bytes = bytes,
		.piece_count = 1,
	};

	memset(world->destination, GUARD, bytes + 256);
	uint64_t hash = fc_copy_hash(kernel, &slice, is_streaming);
	if (hash != XXH3_64bits(slice.source, bytes))
		fail_msg("hash of %llu bytes", (unsigned long long)bytes);
	if (memcmp(slice.destination, slice.source, bytes) != 0)
		fail_msg("copy of %llu bytes", (unsigned long long)bytes);
	for (const uint8_t *at = world->destination; at < slice.destination; at++)
		assert_int_equal(*at, GUARD);
	for (const uint8_t *at = slice.destination + bytes; at < world->destination + bytes + 256; at++)
		assert_int_equal(*at, GUARD);
}

static void check_sizes(struct world *world, const struct fc_copy_kernel *kernel, bool is_streaming)
{
	static const unsigned shifts[][2] = {{0, 0}, {0, 1}, {1, 0}, {3, 61}, {32, 16}, {63, 63}};
	static const uint64_t large[] = {4095, 4096, 4097, 16383, 16384, 16385, 17408, 65535, 65536, 65537};

	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		for (uint64_t bytes = 0; bytes <= 2048; bytes++)
			check_one(world, kernel, bytes, shifts[i][0], shifts[i][1], is_streaming);
		for (size_t k = 0; k < sizeof(large) / sizeof(large[0]); k++)
			check_one(world, kernel, large[k], shifts[i][0], shifts[i][1], is_streaming);
	}
}

static void every_kernel_copies_and_hashes_every_size(void **state)
{
	check_sizes(*state, NULL, false);
	for (const struct fc_copy_kernel *const *kernel = fc_copy_kernels; *kernel != NULL; kernel++) {
		if (!(*kernel)->is_supported())
			continue;
		check_sizes(*state, *kernel, false);
		check_sizes(*state, *kernel, true);
		(*kernel)->flush();
	}
}

/* Pieces lie `gap` bytes apart on the side that is not flat. */
static void check_pieces(struct world *world, const struct fc_copy_kernel *kernel, uint64_t piece_bytes,
			 uint64_t piece_count, bool is_gather, bool is_streaming)
{
	const uint64_t gap = 37;
	uint64_t total_bytes = piece_bytes * piece_count;
	uint64_t spread_stride = piece_bytes + gap;
	uint8_t flat[8192];
	struct fc_copy_hash slice = {
		.source = world->source + 5,
		.destination = world->destination + 9,
		.source_stride_bytes = is_gather ? spread_stride : piece_bytes,
		.destination_stride_bytes = is_gather ? piece_bytes : spread_stride,
		.piece_bytes = piece_bytes,
		.piece_count = piece_count,
	};

	for (uint64_t i = 0; i < piece_count; i++)
		memcpy(flat + i * piece_bytes, slice.source + i * slice.source_stride_bytes, piece_bytes);
	memset(world->destination, GUARD, SPACE_BYTES);
	assert_int_equal(fc_copy_hash(kernel, &slice, is_streaming), XXH3_64bits(flat, total_bytes));
	for (uint64_t i = 0; i < piece_count; i++) {
		const uint8_t *piece = slice.destination + i * slice.destination_stride_bytes;
		assert_memory_equal(piece, flat + i * piece_bytes, piece_bytes);
		if (!is_gather || i + 1 == piece_count)
			assert_int_equal(piece[piece_bytes], GUARD);
	}
	assert_int_equal(slice.destination[-1], GUARD);
}

static void check_all_pieces(struct world *world, const struct fc_copy_kernel *kernel, bool is_streaming)
{
	static const uint64_t sizes[] = {1, 63, 64, 65, 100, 128, 192, 256, 320, 1000, 1024, 1088, 2048};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint64_t count = 1; count <= 4; count++) {
			check_pieces(world, kernel, sizes[i], count, false, is_streaming);
			check_pieces(world, kernel, sizes[i], count, true, is_streaming);
		}
	}
}

static void pieces_hash_as_if_they_were_one(void **state)
{
	check_all_pieces(*state, NULL, false);
	for (const struct fc_copy_kernel *const *kernel = fc_copy_kernels; *kernel != NULL; kernel++) {
		if (!(*kernel)->is_supported())
			continue;
		check_all_pieces(*state, *kernel, false);
		check_all_pieces(*state, *kernel, true);
	}
}

static void a_hash_tells_one_changed_bit_in_any_stripe(void **state)
{
	struct world *world = *state;
	const struct fc_copy_kernel *kernel = fc_copy_kernel_best();
	struct fc_copy_hash slice = {
		.source = world->source, .destination = world->destination, .piece_bytes = 3000, .piece_count = 1};
	uint64_t hash = fc_copy_hash(kernel, &slice, false);

	for (int at = 0; at < 3000; at += 13) {
		world->source[at] ^= 0x10;
		assert_int_not_equal(fc_copy_hash(kernel, &slice, false), hash);
		world->source[at] ^= 0x10;
	}
	assert_int_equal(fc_copy_hash(kernel, &slice, false), hash);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_deinit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(every_kernel_copies_and_hashes_every_size),
		WITH_WORLD(pieces_hash_as_if_they_were_one),
		WITH_WORLD(a_hash_tells_one_changed_bit_in_any_stripe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

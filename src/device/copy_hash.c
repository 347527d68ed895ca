/* One pass instead of two. A slice that is first hashed and then copied with memcpy() is read twice, and a plain store
 * reads its destination from memory as well before it overwrites it: four trips over the memory bus, where one read and
 * one write would do. So stripes of 64 bytes go from memory into a register, into the hash and out to the destination,
 * past the caches when the whole is larger than they are. Then the copy costs what memcpy() costs, and the hash hides
 * in the waiting.
 *
 *   source       |  stripe 0  |  stripe 1  |  ...        |  stripe n-1 | rest: 1 to 64 bytes |
 *   hash          ============ ============ ============= ============= [last 64 bytes, again]
 *   destination  | head |  full lines, aligned, each written whole  ...          | tail |
 *
 * Hash stripes count from the slice's first byte, copied ones from the destination's first full line: a kernel takes
 * two source pointers, less than a stripe apart.
 *
 * XXH3 as published in xxHash's doc/xxhash_spec.md, for inputs longer than 240 bytes with the default secret and seed
 * 0; everything else is left to the library. */
#define XXH_INLINE_ALL
#include "device/copy_hash.h"

#include "base/check.h"

#include <string.h>
#include <xxhash.h>

#define SHORT_BYTES_MAX 240 /* inputs up to here use other formulas */
#define SECRET_LAST_STRIPE 121
#define SECRET_MERGE 11

#define PRIME32_1 0x9E3779B1u
#define PRIME32_2 0x85EBCA77u
#define PRIME32_3 0xC2B2AE3Du
#define PRIME64_1 0x9E3779B185EBCA87u
#define PRIME64_2 0xC2B2AE3D27D4EB4Fu
#define PRIME64_3 0x165667B19E3779F9u
#define PRIME64_4 0x85EBCA77C2B2AE63u
#define PRIME64_5 0x27D4EB2F165667C5u

static const struct fc_stripe_state initial_state = {
	.lanes = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1},
};

/* ---- the library's way --------------------------------------------------------------------------------------------
 */

static uint64_t hash_pieces(const struct fc_copy_hash *slice)
{
	XXH3_state_t state;

	if (slice->piece_count == 1)
		return XXH3_64bits(slice->source, slice->piece_bytes);
	XXH3_INITSTATE(&state);
	XXH3_64bits_reset(&state);
	for (uint64_t i = 0; i < slice->piece_count; i++)
		XXH3_64bits_update(&state, slice->source + i * slice->source_stride_bytes, slice->piece_bytes);
	return XXH3_64bits_digest(&state);
}

static uint64_t hash_then_copy(const struct fc_copy_hash *slice)
{
	uint64_t hash = hash_pieces(slice);
	for (uint64_t i = 0; i < slice->piece_count; i++)
		memcpy(slice->destination + i * slice->destination_stride_bytes,
		       slice->source + i * slice->source_stride_bytes, slice->piece_bytes);
	return hash;
}

/* ---- one pass -----------------------------------------------------------------------------------------------------
 */

static uint64_t read_u64(const uint8_t *bytes)
{
	uint64_t value;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* The stripe that ends the input has a place of its own in the secret, and no block. */
static void take_last_stripe(struct fc_stripe_state *state, const uint8_t *stripe)
{
	for (int i = 0; i < 8; i++) {
		uint64_t value = read_u64(stripe + 8 * i);
		uint64_t keyed = value ^ read_u64(XXH3_kSecret + SECRET_LAST_STRIPE + 8 * i);
		state->lanes[i ^ 1] += value;
		state->lanes[i] += (keyed & 0xffffffff) * (keyed >> 32);
	}
}

static uint64_t merge(const struct fc_stripe_state *state, uint64_t total_bytes)
{
	uint64_t hash = total_bytes * PRIME64_1;

	for (int i = 0; i < 8; i += 2) {
		uint64_t a = state->lanes[i] ^ read_u64(XXH3_kSecret + SECRET_MERGE + 8 * i);
		uint64_t b = state->lanes[i + 1] ^ read_u64(XXH3_kSecret + SECRET_MERGE + 8 * i + 8);
		unsigned __int128 product = (unsigned __int128)a * b;
		hash += (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	hash ^= hash >> 37;
	hash *= 0x165667919E3779F9u;
	return hash ^ (hash >> 32);
}

/* `hash_count` of the piece's stripes go into the state, and all of its bytes to the destination. */
static void run_piece(const struct fc_copy_kernel *kernel, struct fc_stripe_state *state, const uint8_t *source,
		      uint8_t *destination, uint64_t bytes, uint64_t hash_count, bool is_streaming)
{
	uint64_t head_bytes = is_streaming ? -(uintptr_t)destination & (FC_STRIPE_BYTES - 1) : 0;
	struct fc_stripe_run run = {
		.hash_source = source,
		.hash_count = hash_count,
		.copy_source = source + head_bytes,
		.destination = destination + head_bytes,
		.copy_count = (bytes - head_bytes) / FC_STRIPE_BYTES,
		.is_streaming = is_streaming,
		.secret = XXH3_kSecret,
	};

	kernel->run(state, &run);
	uint64_t tail_at = head_bytes + run.copy_count * FC_STRIPE_BYTES;
	if (head_bytes > 0)
		memcpy(destination, source, head_bytes);
	if (tail_at < bytes)
		memcpy(destination + tail_at, source + tail_at, bytes - tail_at);
}

static uint64_t copy_and_hash(const struct fc_copy_kernel *kernel, const struct fc_copy_hash *slice, bool is_streaming)
{
	struct fc_stripe_state state = initial_state;
	uint64_t total_bytes = slice->piece_bytes * slice->piece_count;
	const uint8_t *source = slice->source;
	uint8_t *destination = slice->destination;
	uint64_t stripe_count = slice->piece_bytes / FC_STRIPE_BYTES;
	/* All but the last 1 to 64 bytes. */
	uint64_t last_stripe_count = (slice->piece_bytes - 1) / FC_STRIPE_BYTES;

	for (uint64_t left = slice->piece_count; left > 1; left--) {
		run_piece(kernel, &state, source, destination, slice->piece_bytes, stripe_count, is_streaming);
		source += slice->source_stride_bytes;
		destination += slice->destination_stride_bytes;
	}
	run_piece(kernel, &state, source, destination, slice->piece_bytes, last_stripe_count, is_streaming);
	take_last_stripe(&state, source + slice->piece_bytes - FC_STRIPE_BYTES);
	return merge(&state, total_bytes);
}

uint64_t fc_copy_hash(const struct fc_copy_kernel *kernel, const struct fc_copy_hash *slice, bool is_streaming)
{
	bool is_one_piece = slice->piece_count == 1;
	bool is_in_stripes = slice->piece_bytes >= FC_STRIPE_BYTES && slice->piece_bytes % FC_STRIPE_BYTES == 0;

	if (kernel == NULL || slice->piece_bytes * slice->piece_count <= SHORT_BYTES_MAX ||
	    !(is_one_piece || is_in_stripes))
		return hash_then_copy(slice);
	return copy_and_hash(kernel, slice, is_streaming);
}

const struct fc_copy_kernel *fc_copy_kernel_best(void)
{
	const struct fc_copy_kernel *const *kernel = fc_copy_kernels;
	while (*kernel != NULL && !(*kernel)->is_supported())
		kernel++;
	return *kernel;
}

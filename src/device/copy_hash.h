/* Copying a slice and computing its XXH3 in one pass over its bytes. Private to the devices that copy with the CPU. */
#ifndef FC_DEVICE_COPY_HASH_H
#define FC_DEVICE_COPY_HASH_H

#include <stdbool.h>
#include <stdint.h>

/* A slice in `piece_count` pieces: piece i goes from source + i * source_stride_bytes to destination + i *
 * destination_stride_bytes. Source and destination do not overlap. */
struct fc_copy_hash {
	const uint8_t *source;
	uint8_t *destination;
	uint64_t source_stride_bytes;
	uint64_t destination_stride_bytes;
	uint64_t piece_bytes;
	uint64_t piece_count;
};

#define FC_STRIPE_BYTES 64

/* XXH3 in the middle of a long input. */
struct fc_stripe_state {
	uint64_t lanes[8] __attribute__((aligned(FC_STRIPE_BYTES)));
	uint32_t stripe; /* of the block of 16 that comes next */
};

struct fc_stripe_run {
	const uint8_t *hash_source;
	uint64_t hash_count; /* stripes to take into the state */
	const uint8_t *copy_source;
	uint8_t *destination;
	uint64_t copy_count;   /* stripes to copy */
	bool is_streaming;     /* past the caches; then the destination is aligned to a stripe */
	const uint8_t *secret; /* XXH3's default one */
};

/* The inner loop, written for one instruction set. */
struct fc_copy_kernel {
	const char *name;
	bool (*is_supported)(void);
	void (*run)(struct fc_stripe_state *state, const struct fc_stripe_run *run);
	/* Makes streamed bytes visible to other threads in order. */
	void (*flush)(void);
};

/* All kernels built for this architecture, the fastest first; NULL behind the last. */
extern const struct fc_copy_kernel *const fc_copy_kernels[];

/* The fastest that this CPU runs, or NULL: then fc_copy_hash() hashes first and copies then. */
const struct fc_copy_kernel *fc_copy_kernel_best(void);

/* Copies, and returns what XXH3_64bits() gives for the pieces put together. `is_streaming`: the destination is too
 * large to be in a cache afterwards; flush() is the caller's, once for many slices. */
uint64_t fc_copy_hash(const struct fc_copy_kernel *kernel, const struct fc_copy_hash *slice, bool is_streaming);

#endif

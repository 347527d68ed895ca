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

/* Copies, and returns what XXH3_64bits() gives for the pieces put together. */
uint64_t fc_copy_hash_plain(const struct fc_copy_hash *slice);

#endif

#define XXH_STATIC_LINKING_ONLY
#include "device/copy_hash.h"

#include <string.h>
#include <xxhash.h>

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

uint64_t fc_copy_hash_plain(const struct fc_copy_hash *slice)
{
	uint64_t hash = hash_pieces(slice);
	for (uint64_t i = 0; i < slice->piece_count; i++)
		memcpy(slice->destination + i * slice->destination_stride_bytes,
		       slice->source + i * slice->source_stride_bytes, slice->piece_bytes);
	return hash;
}

/* The checksums as one plain call each, for whoever holds the bytes in one piece: headers, scans, tests. The devices
 * compute the same values while they copy (src/device/copy_hash.h). */
#include "format/checksum.h"

#include <xxhash.h>

uint32_t fc_slice_checksum(const void *bytes, uint64_t byte_count, uint64_t seed)
{
	return fc_slice_fold(XXH3_64bits(bytes, byte_count), seed);
}

uint64_t fc_checksum(const void *bytes, uint64_t byte_count, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes, byte_count, seed);
}

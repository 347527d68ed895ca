/* A segment header or an entry of the chunk table.
 *
 *     1 byte     bits 0-2: geometry; bit 3: an entry; bit 4: give it a right checksum; bit 5: and a right length and
 * magic
 *     ...        of an entry: chunk (2 bytes), uuid (16), the entry (16); else the header
 *
 * What decodes must encode to the same bytes, and its shape must be one that the geometry allows and that can be
 * walked. */
#include "format/arena.h"
#include "format/checksum.h"
#include "fuzz/fuzz.h"
#include "lib/world.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x31544d4745534346ull
#define FIXED_BYTES 136u
#define CHECKSUM_AT 8
#define LENGTH_AT 16
#define ENTRIES_AT 120
#define RANGES_AT 132

enum { GEOMETRY = 7, IS_ENTRY = 8, FIX_CHECKSUM = 16, FIX_LENGTH = 32 };

static struct fc_geometry choose_geometry(uint8_t number)
{
	struct fc_geometry geometry;
	if (number < 2)
		return number == 0 ? geometry_plain(1) : geometry_hybrid(1);
	size_t preset = (size_t)(number - 2);
	fuzz_check(fc_geometry_preset(&geometry, fc_geometry_preset_name(preset), 64, 1, NULL) == FC_OK, "no preset");
	return geometry;
}

/* ---- entry ---- */

static void run_entry(struct fuzz_input *input, bool is_fixed)
{
	uint64_t chunk = fuzz_u16(input);
	struct fc_uuid uuid = {fuzz_u64(input), fuzz_u64(input)};
	uint8_t bytes[FC_TABLE_ENTRY_BYTES] = {0}, again[FC_TABLE_ENTRY_BYTES];
	const uint8_t *given;
	size_t count = fuzz_bytes(input, sizeof(bytes), &given);
	if (count > 0)
		memcpy(bytes, given, count);
	if (is_fixed) {
		uint64_t words[5] = {0, 0, uuid.high, uuid.low, chunk};
		memcpy(&words[0], bytes, 8);
		memcpy(&words[1], bytes + 8, 4);
		uint32_t check = (uint32_t)(fc_checksum(words, sizeof(words), 3) >> 32);
		memcpy(bytes + 12, &check, sizeof(check));
	}
	struct fc_table_entry entry;
	if (fc_table_entry_decode(&entry, uuid, chunk, bytes) != FC_OK)
		return;
	fc_table_entry_encode(&entry, uuid, chunk, again);
	fuzz_check(memcmp(bytes, again, sizeof(bytes)) == 0, "an entry that encodes to other bytes");
	fuzz_check((entry.seq == 0) == (entry.chunk_count == 0), "segment %llu of %u chunks",
		   (unsigned long long)entry.seq, entry.chunk_count);
	if (entry.seq != 0)
		fuzz_check(fc_table_entry_decode(&entry, uuid, chunk + 1, bytes) != FC_OK, "an entry of two chunks");
}

/* ---- header ---- */

static void fix_length(uint8_t *header)
{
	uint64_t magic = MAGIC, entries;
	uint32_t ranges;
	memcpy(&entries, header + ENTRIES_AT, sizeof(entries));
	memcpy(&ranges, header + RANGES_AT, sizeof(ranges));
	uint64_t length = FIXED_BYTES + ranges * 24ull + entries * 16;
	memcpy(header, &magic, sizeof(magic));
	memcpy(header + LENGTH_AT, &length, sizeof(length));
}

static void fix_checksum(uint8_t *header, uint64_t bytes)
{
	uint64_t length;
	memcpy(&length, header + LENGTH_AT, sizeof(length));
	if (length < LENGTH_AT || length > bytes)
		return;
	uint64_t sum = fc_checksum(header + LENGTH_AT, length - LENGTH_AT, 2);
	memcpy(header + CHECKSUM_AT, &sum, sizeof(sum));
}

static void check_shape(const struct fc_geometry *geometry, const struct fc_shape *shape)
{
	uint64_t entries = 0, bytes;
	for (uint32_t i = 0; i < shape->range_count; i++) {
		const struct fc_range *range = &shape->ranges[i];
		fuzz_check(range->group < geometry->group_count && range->entry_first == entries && range->count > 0,
			   "range %u is impossible", i);
		fuzz_check(fc_shape_range_of(shape, entries) == range, "range %u is not found", i);
		entries += range->count;
	}
	fuzz_check(entries == shape->entry_count, "entries are lost");
	if (fc_shape_bytes(geometry, shape, 512, &bytes) != FC_OK)
		return;
	struct fc_layer_area area;
	uint64_t end = fc_shape_header_bytes(shape, 512);
	fc_layer_first(geometry, shape, end, &area);
	do {
		fuzz_check(area.offset >= end && area.offset % 512 == 0, "layer %u lies over another", area.layer);
		end = area.offset + area.bytes;
	} while (fc_layer_next(geometry, shape, 512, &area));
	fuzz_check(end <= bytes, "layers end behind their segment");
}

static void check_round_trip(const struct fc_header *header, const uint8_t *keys, const uint8_t *bytes)
{
	uint64_t encoded_bytes = fc_header_encoded_bytes(&header->shape);
	struct fc_key *copies = calloc(header->shape.entry_count, sizeof(*copies));
	uint8_t *again = malloc(encoded_bytes);
	fuzz_check(copies != NULL && again != NULL, "no memory");
	for (uint64_t entry = 0; entry < header->shape.entry_count; entry++)
		copies[entry] = fc_header_key(keys, entry);
	fc_header_encode(header, copies, again);
	fuzz_check(memcmp(again, bytes, encoded_bytes) == 0, "a header that encodes to other bytes");
	free(again);
	free(copies);
}

static void run_header(struct fuzz_input *input, uint8_t mode)
{
	struct fc_geometry geometry = choose_geometry(mode & GEOMETRY);
	size_t bytes = input->left < FC_HEADER_PREFIX_BYTES ? FC_HEADER_PREFIX_BYTES : input->left;
	uint8_t *header = calloc(1, bytes);
	fuzz_check(header != NULL, "no memory");
	if (input->left > 0)
		memcpy(header, input->bytes, input->left);
	if (mode & FIX_LENGTH)
		fix_length(header);
	if (mode & FIX_CHECKSUM)
		fix_checksum(header, bytes);
	struct fc_header decoded;
	struct fc_range ranges[FC_RANGES_MAX];
	const uint8_t *keys;
	uint64_t encoded_bytes = 0;
	int peek_code = fc_header_peek(header, &encoded_bytes);
	int code = fc_header_decode(&decoded, ranges, &geometry, header, bytes, &keys);
	fuzz_check(code == FC_OK || code == FC_ECORRUPT, "code %d", code);
	if (code == FC_OK) {
		fuzz_check(peek_code == FC_OK && encoded_bytes <= bytes, "decoded, but not seen");
		check_shape(&geometry, &decoded.shape);
		check_round_trip(&decoded, keys, header);
	}
	free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	uint8_t mode = fuzz_u8(&input);
	if (mode & IS_ENTRY)
		run_entry(&input, mode & FIX_CHECKSUM);
	else
		run_header(&input, mode);
	return 0;
}

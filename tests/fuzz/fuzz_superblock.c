/* Both copies of a superblock, as an arena begins.
 *
 *     1 byte     bits 0, 1: give copy 0, copy 1 a right checksum; bits 2, 3: give it magic, byte order and version too
 *     2 bytes    length n of copy 0
 *     n bytes    copy 0, the rest of it zeros
 *     ...        copy 1, the rest of it zeros
 *
 * What decodes must be usable: a geometry that passes its check, chunks and table that place the data where it is said
 * to be; and it must encode to bytes that decode to the same. */
#include "format/arena.h"
#include "format/checksum.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define CHECKSUM_AT 16
#define BEGIN_BYTES 28 /* magic, byte order, checksum, version */

static void fix_begin(uint8_t *copy)
{
	uint8_t mark[FC_TABLE_PAGE_BYTES];
	fc_superblock_encode_mark(mark);
	memcpy(copy, mark, BEGIN_BYTES);
}

static void fix_checksum(uint8_t *copy)
{
	uint64_t sum = fc_checksum(copy + CHECKSUM_AT + 8, FC_SUPERBLOCK_BYTES - CHECKSUM_AT - 8, 1);
	memcpy(copy + CHECKSUM_AT, &sum, sizeof(sum));
}

static void lay_out(struct fuzz_input *input, uint8_t *copies)
{
	uint8_t mode = fuzz_u8(input);
	size_t first_bytes = fuzz_u16(input);
	memset(copies, 0, FC_TABLE_OFFSET);
	for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++) {
		uint8_t *here = copies + copy * FC_SUPERBLOCK_BYTES;
		const uint8_t *bytes;
		size_t count = fuzz_bytes(input, copy == 0 ? first_bytes : FC_SUPERBLOCK_BYTES, &bytes);
		if (count > 0)
			memcpy(here, bytes, count);
		if (mode & (4u << copy))
			fix_begin(here);
		if (mode & (1u << copy))
			fix_checksum(here);
	}
}

static void check_usable(const struct fc_superblock *superblock)
{
	const struct fc_geometry *geometry = &superblock->geometry;
	struct fc_superblock planned;
	struct fc_error error = {0};
	fuzz_check(fc_geometry_check(geometry, &error) == FC_OK, "a geometry that is none: %s", error.text);
	fuzz_check(fc_geometry_same(geometry, geometry, &error) == FC_OK, "differs from itself: %s", error.text);
	fuzz_check(superblock->epoch < FC_EPOCH_MAX, "epoch %llu", (unsigned long long)superblock->epoch);
	fuzz_check(superblock->data_offset % superblock->chunk_bytes == 0 &&
			   superblock->data_offset >= FC_TABLE_OFFSET + superblock->table_chunks * FC_TABLE_ENTRY_BYTES,
		   "data at %llu", (unsigned long long)superblock->data_offset);
	fuzz_check(superblock->chunk_bytes % superblock->align == 0, "chunks are not aligned");
	fuzz_check(fc_superblock_chunks(superblock, UINT64_MAX) == superblock->table_chunks, "chunks beyond the table");
	fuzz_check(fc_superblock_plan(&planned, 1u << 30, superblock->chunk_bytes, superblock->align, geometry,
				      &error) == FC_OK ||
			   superblock->chunk_bytes > (1u << 28),
		   "cannot be planned: %s", error.text);
	fuzz_check(fc_resume_granule(geometry) > 0, "no resume point");
}

static void check_round_trip(const struct fc_superblock *superblock)
{
	struct fc_superblock again;
	struct fc_error error = {0};
	uint8_t *first = calloc(1, FC_TABLE_OFFSET), *second = malloc(FC_SUPERBLOCK_BYTES);
	fuzz_check(first != NULL && second != NULL, "no memory");
	fc_superblock_encode(superblock, first);
	fuzz_check(fc_superblock_decode(&again, first, &error) == FC_OK, "encoded, but not decoded: %s", error.text);
	fc_superblock_encode(&again, second);
	fuzz_check(memcmp(first, second, FC_SUPERBLOCK_BYTES) == 0, "decoded to another superblock");
	fuzz_check(!fc_superblocks_are_unwritten(first), "taken for no superblock");
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct fc_superblock decoded[FC_SUPERBLOCK_COPIES] = {0}, chosen;
	struct fc_error error = {0};
	uint8_t *copies = malloc(FC_TABLE_OFFSET);
	fuzz_check(copies != NULL, "no memory");
	lay_out(&input, copies);
	bool is_whole[FC_SUPERBLOCK_COPIES];
	for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++) {
		const uint8_t *here = copies + copy * FC_SUPERBLOCK_BYTES;
		int code = fc_superblock_decode(&decoded[copy], here, &error);
		is_whole[copy] = code == FC_OK;
		if (is_whole[copy]) {
			check_usable(&decoded[copy]);
			check_round_trip(&decoded[copy]);
		} else {
			fuzz_check_refusal(code, &error);
		}
	}
	fuzz_check(!fc_superblocks_are_unwritten(copies) || !(is_whole[0] || is_whole[1]), "whole, and unwritten");
	int code = fc_superblock_choose(&chosen, copies, &error);
	fuzz_check((code == FC_OK) == (is_whole[0] || is_whole[1]), "chosen with %d", code);
	if (code != FC_OK)
		fuzz_check_refusal(code, &error);
	for (unsigned copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++)
		fuzz_check(!is_whole[copy] || chosen.epoch >= decoded[copy].epoch, "the older copy was chosen");
	free(copies);
	return 0;
}

/* Is what lies on a medium read back as it was written, and is everything else refused by name? */
#include "format/arena.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define KIB 1024ull
#define GIB (1ull << 30)
/* offsets that docs/format.md gives */
#define AT_BYTE_ORDER 8
#define AT_VERSION 24

static const struct fc_uuid uuid = {0x0123456789abcdefull, 0xfedcba9876543210ull};
static uint8_t buffer[FC_SUPERBLOCK_BYTES];

static struct fc_superblock make_superblock(void)
{
	struct fc_geometry geometry = geometry_hybrid(3);
	struct fc_superblock superblock;
	assert_int_equal(fc_superblock_plan(&superblock, 1024 * KIB, 4096, 512, &geometry, NULL), 0);
	superblock.uuid = uuid;
	superblock.epoch = 9;
	return superblock;
}

/* ---- superblock ---- */

static void the_table_has_room_for_eight_times_the_size(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1);
	struct fc_superblock superblock;
	assert_int_equal(fc_superblock_plan(&superblock, 1024 * KIB, 4096, 512, &geometry, NULL), 0);
	assert_int_equal(superblock.table_chunks, 2048);
	assert_int_equal(superblock.data_offset, 128 * KIB + 2048 * 16);
	assert_int_equal(fc_superblock_chunks(&superblock, 1024 * KIB), (1024 - 160) / 4);
	assert_int_equal(fc_superblock_chunks(&superblock, 160 * KIB), 0);
	assert_int_equal(fc_superblock_chunks(&superblock, 164 * KIB - 1), 0);
	assert_int_equal(fc_superblock_chunks(&superblock, 164 * KIB), 1);
	assert_int_equal(fc_superblock_chunks(&superblock, 100 * GIB), 2048); /* the table is full */
}

static void chunks_are_chosen_so_that_there_are_about_a_million(void **state)
{
	(void)state;
	static const struct {
		uint64_t bytes, chunk_bytes;
	} sizes[] = {{GIB, 16 * KIB}, {16 * GIB, 16 * KIB}, {16 * GIB + 16 * KIB, 32 * KIB}, {4096 * GIB, 4096 * KIB}};
	struct fc_geometry geometry = geometry_plain(1);
	for (size_t i = 0; i < fc_array_len(sizes); i++) {
		struct fc_superblock superblock;
		assert_int_equal(fc_superblock_plan(&superblock, sizes[i].bytes, 0, 512, &geometry, NULL), 0);
		assert_int_equal(superblock.chunk_bytes, sizes[i].chunk_bytes);
	}
}

static void plans_that_cannot_be_are_refused_by_name(void **state)
{
	(void)state;
	static const struct {
		uint64_t bytes, chunk_bytes;
		uint32_t align;
		int code;
		const char *text;
	} plans[] = {
		{GIB, 5000, 512, FC_EINVAL, "chunk of 5000 bytes"},
		{GIB, 2048, 512, FC_EINVAL, "chunk of 2048 bytes"},
		{GIB, 2 * GIB, 512, FC_EINVAL, "a power of two from 4096 to 1073741824"},
		{128 * GIB, 4096, 512, FC_ELIMIT, "at most 16777216 chunks"},
		{132 * KIB, 4096, 512, FC_EINVAL,
		 "at least 143360 are needed"}, /* 128 + 8 (33 x 8 entries, in pages) + 4 KiB */
		{GIB, 65536, 8192, FC_EINVAL, "alignment of 8192 bytes"},
		{GIB, 65536, 3, FC_EINVAL, "alignment of 3 bytes"},
	};
	struct fc_geometry geometry = geometry_plain(1);
	for (size_t i = 0; i < fc_array_len(plans); i++) {
		struct fc_superblock superblock;
		struct fc_error error = {0};
		assert_int_equal(fc_superblock_plan(&superblock, plans[i].bytes, plans[i].chunk_bytes, plans[i].align,
						    &geometry, &error),
				 plans[i].code);
		assert_non_null(strstr(error.text, plans[i].text));
	}
}

static void a_superblock_comes_back_as_it_was(void **state)
{
	(void)state;
	struct fc_superblock written = make_superblock(), read;
	fc_superblock_encode(&written, buffer);
	assert_int_equal(fc_superblock_decode(&read, buffer, NULL), 0);
	assert_memory_equal(&read.uuid, &written.uuid, sizeof(read.uuid));
	assert_int_equal(read.align, 512);
	assert_int_equal(read.chunk_bytes, 4096);
	assert_int_equal(read.table_chunks, written.table_chunks);
	assert_int_equal(read.data_offset, written.data_offset);
	assert_int_equal(read.bytes, 1024 * KIB);
	assert_int_equal(read.epoch, 9);
	assert_string_equal(read.geometry.name, "hybrid");
	assert_int_equal(fc_geometry_same(&read.geometry, &written.geometry, NULL), 0);
}

static void any_damaged_byte_of_a_superblock_is_seen(void **state)
{
	(void)state;
	struct fc_superblock written = make_superblock(), read;
	fc_superblock_encode(&written, buffer);
	for (size_t i = 0; i < sizeof(buffer); i += i < 17000 ? 1 : 97) {
		buffer[i] ^= 0x10;
		assert_int_equal(fc_superblock_decode(&read, buffer, NULL), FC_EFORMAT);
		buffer[i] ^= 0x10;
	}
	assert_int_equal(fc_superblock_decode(&read, buffer, NULL), 0);
}

static void assert_refused(const char *text)
{
	struct fc_superblock read;
	struct fc_error error = {0};
	assert_int_equal(fc_superblock_decode(&read, buffer, &error), FC_EFORMAT);
	if (strstr(error.text, text) == NULL)
		fail_msg("'%s' does not say '%s'", error.text, text);
}

static void reverse(uint8_t *bytes)
{
	for (int i = 0; i < 4; i++) {
		uint8_t swapped = bytes[i];
		bytes[i] = bytes[7 - i];
		bytes[7 - i] = swapped;
	}
}

static void foreign_arenas_are_refused_by_name(void **state)
{
	(void)state;
	struct fc_superblock written = make_superblock();
	fc_superblock_encode(&written, buffer);
	buffer[AT_VERSION] = 7;
	assert_refused("format version 7; this program reads version 1");
	fc_superblock_encode(&written, buffer);
	reverse(buffer);
	reverse(buffer + AT_BYTE_ORDER);
	assert_refused("other byte order");
	fc_superblock_encode(&written, buffer);
	reverse(buffer + AT_BYTE_ORDER);
	assert_refused("other byte order");
	memcpy(buffer,
	       "\x7f"
	       "ELF....",
	       8);
	assert_refused("not a FlatCake arena");
}

/* Whole, but made by somebody who means no good: the checksum is right. */
static void impossible_superblocks_are_refused_though_they_are_whole(void **state)
{
	(void)state;
	for (int i = 0; i < 11; i++) {
		struct fc_superblock superblock = make_superblock();
		switch (i) {
		case 0:
			superblock.chunk_bytes = 0;
			break;
		case 1:
			superblock.chunk_bytes = 4097;
			break;
		case 2:
			superblock.align = 0;
			break;
		case 3:
			superblock.align = 8192;
			break;
		case 4:
			superblock.table_chunks = 0;
			break;
		case 5:
			superblock.table_chunks = 2049;
			break;
		case 6:
			superblock.table_chunks = UINT64_MAX - 255;
			break;
		case 7:
			superblock.data_offset += 4096;
			break;
		case 8:
			superblock.epoch = FC_EPOCH_MAX;
			break;
		case 9:
			superblock.geometry.layer_count = 0;
			break;
		case 10:
			superblock.geometry.groups[1].tokens_per_block = 0;
			break;
		}
		fc_superblock_encode(&superblock, buffer);
		assert_refused("");
	}
}

static void an_arena_may_outgrow_its_table(void **state)
{
	(void)state;
	struct fc_superblock written = make_superblock(), read;
	written.bytes = 128 * GIB; /* in chunks of 4 KiB more than any table holds */
	fc_superblock_encode(&written, buffer);
	assert_int_equal(fc_superblock_decode(&read, buffer, NULL), 0);
	assert_int_equal(fc_superblock_chunks(&read, read.bytes), read.table_chunks);
}

static void a_format_that_was_interrupted_is_recognised(void **state)
{
	(void)state;
	struct fc_superblock written = make_superblock(), read;
	uint8_t *copies = calloc(1, FC_TABLE_OFFSET);
	assert_non_null(copies);
	assert_true(fc_superblocks_are_unwritten(copies));
	fc_superblock_encode_mark(copies);
	assert_true(fc_superblocks_are_unwritten(copies));
	assert_int_equal(fc_superblock_decode(&read, copies, NULL), FC_EFORMAT);
	/* A superblock of which only the first sector has arrived, or all but the first. */
	uint8_t whole[FC_SUPERBLOCK_BYTES];
	fc_superblock_encode(&written, whole);
	memcpy(copies, whole, 512);
	assert_true(fc_superblocks_are_unwritten(copies));
	fc_superblock_encode_mark(copies);
	memcpy(copies + 512, whole + 512, sizeof(whole) - 512);
	assert_true(fc_superblocks_are_unwritten(copies));
	/* With anything in copy 1, even a part, copy 0 was finished before: what is wrong with it now is damage. */
	memcpy(copies + FC_SUPERBLOCK_BYTES + 512, whole + 512, sizeof(whole) - 512);
	assert_false(fc_superblocks_are_unwritten(copies));
	memset(copies + FC_SUPERBLOCK_BYTES, 0, FC_SUPERBLOCK_BYTES);
	memcpy(copies, whole, sizeof(whole));
	assert_false(fc_superblocks_are_unwritten(copies));
	/* Somebody else's. */
	memset(copies, 'x', FC_SUPERBLOCK_BYTES);
	assert_false(fc_superblocks_are_unwritten(copies));
	memset(copies, 0, FC_SUPERBLOCK_BYTES);
	copies[FC_SUPERBLOCK_BYTES - 1] = 1;
	assert_false(fc_superblocks_are_unwritten(copies));
	free(copies);
}

static void another_geometry_is_named_by_its_first_difference(void **state)
{
	(void)state;
	struct fc_geometry stored = geometry_hybrid(1);
	struct fc_error error = {0};
	for (int i = 0; i < 6; i++) {
		static const char *const texts[] = {
			"wanted hybrid: 4, 3, 4",
			"8 tokens per block, 4 layers",
			"geometry hybrid: group 2: the arena",
			"geometry hybrid: group 1 layer 3: the arena has slices of 1 bytes; wanted 2",
			"geometry hybrid: group 3: the arena has rule 2",
			"the arena has geometry hybrid: 4 tokens per block, 4 layers, 4 groups; wanted hybrid-fp8: 4, "
			"4, 4"};
		struct fc_geometry wanted = geometry_hybrid(1), found = stored;
		if (i == 0)
			wanted.layer_count = 3;
		else if (i == 1)
			found.block_tokens = 8;
		else if (i == 2)
			wanted.groups[2].window_tokens = 7;
		else if (i == 3)
			wanted.groups[1].slice_bytes[3] = 2;
		else if (i == 4)
			wanted.groups[3].rule = FC_RULE_WINDOW;
		else
			strcpy(wanted.name, "hybrid-fp8"); /* of equal sizes, as bf16 at half the scale is */
		assert_int_equal(fc_geometry_same(&found, &wanted, &error), FC_EGEOMETRY);
		if (strstr(error.text, texts[i]) == NULL)
			fail_msg("'%s' does not say '%s'", error.text, texts[i]);
	}
	struct fc_geometry equal = geometry_hybrid(1);
	equal.groups[3].tokens_per_block = 12; /* means nothing for a state group */
	assert_int_equal(fc_geometry_same(&stored, &equal, &error), 0);
}

/* ---- chunk table ---- */

static void an_entry_is_bound_to_its_arena_and_its_chunk(void **state)
{
	(void)state;
	uint8_t bytes[FC_TABLE_ENTRY_BYTES];
	struct fc_table_entry written = {.seq = fc_seq_first(3) + 5, .chunk_count = 17}, read;
	fc_table_entry_encode(&written, uuid, 1000, bytes);
	assert_int_equal(fc_table_entry_decode(&read, uuid, 1000, bytes), 0);
	assert_int_equal(read.seq, (3ull << 40) + 5);
	assert_int_equal(read.chunk_count, 17);
	struct fc_uuid other = {uuid.high, uuid.low ^ 1};
	assert_int_equal(fc_table_entry_decode(&read, uuid, 1001, bytes), FC_ECORRUPT);
	assert_int_equal(fc_table_entry_decode(&read, other, 1000, bytes), FC_ECORRUPT);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 1;
		assert_int_equal(fc_table_entry_decode(&read, uuid, 1000, bytes), FC_ECORRUPT);
		bytes[i] ^= 1;
	}
}

static void an_entry_of_zeros_says_that_nothing_begins_here(void **state)
{
	(void)state;
	uint8_t bytes[FC_TABLE_ENTRY_BYTES] = {0}, encoded[FC_TABLE_ENTRY_BYTES];
	struct fc_table_entry none = {0}, read;
	assert_int_equal(fc_table_entry_decode(&read, uuid, 4, bytes), 0);
	assert_int_equal(read.seq, 0);
	fc_table_entry_encode(&none, uuid, 4, encoded);
	assert_memory_equal(encoded, bytes, sizeof(bytes));
}

/* ---- header ---- */

struct header_case {
	struct fc_header header;
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_key keys[9];
	uint8_t bytes[1024];
	uint64_t encoded_bytes;
};

static void make_header(struct header_case *made)
{
	memset(made, 0, sizeof(*made));
	made->header = (struct fc_header){
		.uuid = uuid,
		.seq = 77,
		.offset = 163840,
		.chunk_count = 2,
		.session = {11, 12},
		.session_kind = FC_SESSION_PROMPT,
		.turn = 5,
		.start_block = 8,
		.end_block = 12,
		.parent = {1, 2},
	};
	fc_shape_init(&made->header.shape, made->storage);
	assert_int_equal(fc_shape_add(&made->header.shape, 0, 8, 4), 0);
	assert_int_equal(fc_shape_add(&made->header.shape, 1, 4, 2), 0);
	assert_int_equal(fc_shape_add(&made->header.shape, 2, 10, 2), 0);
	assert_int_equal(fc_shape_add(&made->header.shape, 3, 11, 1), 0);
	path_keys(3, 0, made->keys, 9);
	made->encoded_bytes = fc_header_encoded_bytes(&made->header.shape);
	fc_header_encode(&made->header, made->keys, made->bytes);
}

static int decode(const struct header_case *made, struct fc_header *header, struct fc_range *storage)
{
	struct fc_geometry geometry = geometry_hybrid(1);
	const uint8_t *keys;
	return fc_header_decode(header, storage, &geometry, made->bytes, sizeof(made->bytes), &keys);
}

static void a_header_comes_back_as_it_was(void **state)
{
	(void)state;
	struct header_case made;
	struct fc_geometry geometry = geometry_hybrid(1);
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_header read;
	const uint8_t *keys;
	uint64_t bytes;
	make_header(&made);
	assert_int_equal(made.encoded_bytes, 136 + 4 * 24 + 9 * 16);
	assert_int_equal(fc_header_peek(made.bytes, &bytes), 0);
	assert_int_equal(bytes, made.encoded_bytes);
	assert_int_equal(fc_header_decode(&read, storage, &geometry, made.bytes, sizeof(made.bytes), &keys), 0);
	assert_int_equal(read.shape.range_count, 4);
	assert_int_equal(read.shape.entry_count, 9);
	assert_memory_equal(storage, made.storage, 4 * sizeof(storage[0]));
	read.shape = made.header.shape;
	assert_memory_equal(&read, &made.header, sizeof(read));
	for (uint64_t i = 0; i < 9; i++) {
		struct fc_key key = fc_header_key(keys, i);
		assert_memory_equal(&key, &made.keys[i], sizeof(key));
	}
}

static void any_damaged_byte_of_a_header_is_seen(void **state)
{
	(void)state;
	struct header_case made;
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_header read;
	make_header(&made);
	for (size_t i = 0; i < made.encoded_bytes; i++) {
		for (int bit = 0; bit < 8; bit++) {
			made.bytes[i] ^= (uint8_t)(1 << bit);
			assert_int_equal(decode(&made, &read, storage), FC_ECORRUPT);
			made.bytes[i] ^= (uint8_t)(1 << bit);
		}
	}
	made.bytes[made.encoded_bytes] ^= 1; /* behind its end: not its own */
	assert_int_equal(decode(&made, &read, storage), 0);
}

static void a_header_that_is_cut_off_is_seen(void **state)
{
	(void)state;
	struct header_case made;
	struct fc_geometry geometry = geometry_hybrid(1);
	struct fc_range storage[FC_RANGES_MAX];
	struct fc_header read;
	const uint8_t *keys;
	make_header(&made);
	made.header.shape.ranges[2].block_first = 0; /* 10 keys more than there are: 536 bytes */
	made.header.shape.ranges[2].count = 12;
	made.header.shape.entry_count += 10;
	struct fc_key many[19] = {{0}};
	fc_header_encode(&made.header, many, made.bytes);
	assert_int_equal(fc_header_decode(&read, storage, &geometry, made.bytes, 536, &keys), 0);
	assert_int_equal(fc_header_decode(&read, storage, &geometry, made.bytes, 535, &keys), FC_ECORRUPT);
	assert_int_equal(fc_header_decode(&read, storage, &geometry, made.bytes, 511, &keys), FC_ECORRUPT);
}

static void impossible_headers_are_refused_though_they_are_whole(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		struct header_case made;
		struct fc_range storage[FC_RANGES_MAX];
		struct fc_header read;
		make_header(&made);
		switch (i) {
		case 0:
			made.header.session_kind = 2;
			break;
		case 1:
			made.header.start_block = 13;
			break;
		case 2:
			made.header.end_block = 1ull << 32;
			break;
		case 3:
			made.header.chunk_count = FC_CHUNKS_MAX + 1ull;
			break;
		case 4:
			made.storage[1].group = 4;
			break;
		case 5:
			made.storage[1].block_first = 1ull << 32;
			break;
		case 6:
			made.storage[1].count = 0;
			break;
		case 7:
			made.storage[1].count = 3;
			break; /* more than there are keys */
		case 8:
			made.header.start_block = 7; /* the ranges begin with 8 */
			break;
		case 9:
			made.header.end_block = 13;
			break;
		case 10:
			made.storage[2].block_first = 11; /* a window that ends with 13 */
			break;
		case 11:
			made.storage[1].group = 2; /* nothing of group 1 */
			break;
		}
		fc_header_encode(&made.header, made.keys, made.bytes);
		assert_int_equal(decode(&made, &read, storage), FC_ECORRUPT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_has_room_for_eight_times_the_size),
		cmocka_unit_test(chunks_are_chosen_so_that_there_are_about_a_million),
		cmocka_unit_test(plans_that_cannot_be_are_refused_by_name),
		cmocka_unit_test(a_superblock_comes_back_as_it_was),
		cmocka_unit_test(any_damaged_byte_of_a_superblock_is_seen),
		cmocka_unit_test(foreign_arenas_are_refused_by_name),
		cmocka_unit_test(impossible_superblocks_are_refused_though_they_are_whole),
		cmocka_unit_test(an_arena_may_outgrow_its_table),
		cmocka_unit_test(a_format_that_was_interrupted_is_recognised),
		cmocka_unit_test(another_geometry_is_named_by_its_first_difference),
		cmocka_unit_test(an_entry_is_bound_to_its_arena_and_its_chunk),
		cmocka_unit_test(an_entry_of_zeros_says_that_nothing_begins_here),
		cmocka_unit_test(a_header_comes_back_as_it_was),
		cmocka_unit_test(any_damaged_byte_of_a_header_is_seen),
		cmocka_unit_test(a_header_that_is_cut_off_is_seen),
		cmocka_unit_test(impossible_headers_are_refused_though_they_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

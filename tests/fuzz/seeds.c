/* Writes the seeds that hold checksums, made by the code that writes arenas: run it as `fuzz_seeds tests/fuzz/corpus`
 * when the format has changed. The seeds are files of the corpus like any other; trailing zeros, which the targets put
 * back, are left out. */
#include "format/arena.h"
#include "fuzz/fuzz.h"
#include "lib/world.h"
#include "wire/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_seed(const char *corpus, const char *name, const uint8_t *head, size_t head_bytes,
		       const uint8_t *bytes, size_t count)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", corpus, name);
	FILE *file = fopen(path, "wb");
	fuzz_check(file != NULL && fwrite(head, 1, head_bytes, file) == head_bytes &&
			   fwrite(bytes, 1, count, file) == count && fclose(file) == 0,
		   "%s: cannot be written", path);
}

static void write_superblock(const char *corpus, const char *name, const struct fc_geometry *geometry, uint8_t mode)
{
	struct fc_superblock superblock;
	uint8_t *copies = calloc(1, FC_TABLE_OFFSET);
	fuzz_check(copies != NULL && fc_superblock_plan(&superblock, 1u << 20, 4096, 512, geometry, NULL) == FC_OK,
		   "cannot be planned");
	superblock.uuid = (struct fc_uuid){1, 2};
	superblock.epoch = 1;
	fc_superblock_encode(&superblock, copies);
	size_t count = FC_SUPERBLOCK_BYTES;
	while (copies[count - 1] == 0)
		count--;
	superblock.epoch = 2;
	fc_superblock_encode(&superblock, copies + count);
	uint8_t head[3] = {mode, (uint8_t)count, (uint8_t)(count >> 8)};
	write_seed(corpus, name, head, sizeof(head), copies, 2 * count);
	free(copies);
}

/* Path blocks [2, 6) of the geometry, and what resuming behind them needs. */
static void write_header(const char *corpus, const char *name, const struct fc_geometry *geometry, uint8_t mode)
{
	struct fc_range ranges[FC_RANGES_MAX];
	struct fc_key keys[64];
	struct fc_header header = {.uuid = {1, 2},
				   .seq = fc_seq_first(1) + 1,
				   .offset = 1u << 20,
				   .chunk_count = 1,
				   .session = {3, 4},
				   .turn = 1,
				   .start_block = 2,
				   .end_block = 6,
				   .parent = {5, 6}};
	fc_shape_init(&header.shape, ranges);
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t first, count;
		fc_group_needed(geometry, group, 6, &first, &count);
		if (geometry->groups[group].rule == FC_RULE_ALL) {
			first = 2 / fc_group_span(geometry, group);
			count -= first;
		}
		fuzz_check(fc_shape_add(&header.shape, group, first, count) == FC_OK, "too many ranges");
	}
	path_keys(1, 0, keys, 64);
	uint8_t bytes[4096];
	fuzz_check(header.shape.entry_count <= 64, "too many entries");
	fc_header_encode(&header, keys, bytes);
	write_seed(corpus, name, &mode, 1, bytes, fc_header_encoded_bytes(&header.shape));
}

static void write_entry(const char *corpus, const char *name, uint8_t mode)
{
	struct fc_table_entry entry = {.seq = fc_seq_first(1) + 1, .chunk_count = 3};
	struct fc_uuid uuid = {1, 2};
	uint8_t head[19] = {mode, 5, 0, 1};
	head[11] = 2;
	uint8_t bytes[FC_TABLE_ENTRY_BYTES];
	fc_table_entry_encode(&entry, uuid, 5, bytes);
	write_seed(corpus, name, head, sizeof(head), bytes, sizeof(bytes));
}

/* One file for every example, and one with all of them. */
static void write_messages(const char *corpus)
{
	struct messages messages;
	struct tracked_alloc tracked = {0};
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_wire_buffer one, all;
	uint8_t mode = 4;
	messages_init(&messages);
	fc_wire_buffer_init(&one, &alloc);
	fc_wire_buffer_init(&all, &alloc);
	for (unsigned number = 0; messages_put(&messages, number, &one); number++) {
		char name[64];
		struct fc_wire_header header;
		fuzz_check(fc_wire_header_decode(&header, one.bytes, NULL) == FC_OK, "example %u", number);
		snprintf(name, sizeof(name), "wire/%02u-%s", number, fc_wire_type_name(header.type));
		if (header.body_bytes > 0)
			write_seed(corpus, name, &mode, 1, one.bytes, one.used);
		fuzz_check(fc_wire_buffer_add(&all, one.bytes, one.used) == FC_OK, "no memory");
		fc_wire_buffer_drop(&one, one.used);
	}
	mode = 3;
	write_seed(corpus, "wire/all", &mode, 1, all.bytes, all.used);
	fc_wire_buffer_deinit(&one);
	fc_wire_buffer_deinit(&all);
}

int main(int argument_count, char **arguments)
{
	fuzz_check(argument_count == 2, "name the folder of the corpora");
	const char *corpus = arguments[1];
	struct fc_geometry plain = geometry_plain(1), hybrid = geometry_hybrid(1);
	write_superblock(corpus, "superblock/plain", &plain, 3);
	write_superblock(corpus, "superblock/hybrid", &hybrid, 3);
	write_superblock(corpus, "superblock/exact", &plain, 0);
	write_superblock(corpus, "superblock/begun", &hybrid, 15);
	write_header(corpus, "header/plain", &plain, 48);
	write_header(corpus, "header/hybrid", &hybrid, 49);
	write_header(corpus, "header/exact", &hybrid, 1);
	write_entry(corpus, "header/entry", 24);
	write_entry(corpus, "header/entry-exact", 8);
	write_messages(corpus);
	return 0;
}

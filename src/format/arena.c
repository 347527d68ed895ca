/* Codecs of what lies on a medium; see arena.h for the picture and docs/format.md for the offsets. Fixed parts are C
 * structs without padding, copied as they stand: an arena belongs to machines of one byte order. */
#include "format/arena.h"

#include "base/plant.h"
#include "base/check.h"
#include "format/checksum.h"

#include <string.h>

#define SUPERBLOCK_MAGIC 0x31454b4143544c46ull /* "FLTCAKE1" */
#define HEADER_MAGIC 0x31544d4745534346ull     /* "FCSEGMT1" */
#define BYTE_ORDER_MARK 0x0102030405060708ull
#define SEED_SUPERBLOCK 1
#define SEED_HEADER 2
#define SEED_ENTRY 3

#define SECTOR_BYTES 512u
#define CHUNK_BYTES_DEFAULT_MIN (16u << 10)
#define CHUNKS_WANTED (1u << 20)
#define TABLE_GROWTH 8

struct group_record {
	uint32_t rule;
	uint32_t tokens_per_block;
	uint32_t window_tokens;
	uint32_t reserved;
	uint64_t slice_bytes[FC_LAYERS_MAX];
};

struct superblock_record {
	uint64_t magic;
	uint64_t byte_order;
	uint64_t checksum; /* of everything behind this field, to the end of FC_SUPERBLOCK_BYTES */
	uint32_t version;
	uint32_t align;
	struct fc_uuid uuid;
	uint64_t chunk_bytes;
	uint64_t table_chunks;
	uint64_t data_offset;
	uint64_t bytes;
	uint64_t epoch;
	char geometry_name[FC_NAME_BYTES];
	uint32_t block_tokens;
	uint32_t layer_count;
	uint32_t group_count;
	uint32_t reserved;
	struct group_record groups[FC_GROUPS_MAX];
};
_Static_assert(sizeof(struct superblock_record) <= FC_SUPERBLOCK_BYTES, "the superblock fits its place");
_Static_assert(sizeof(struct superblock_record) == 168 + FC_GROUPS_MAX * (16 + 8 * FC_LAYERS_MAX), "no padding");

struct range_record {
	uint32_t group;
	uint32_t reserved;
	uint64_t block_first;
	uint64_t count;
};

struct header_record {
	uint64_t magic;
	uint64_t checksum; /* of everything behind this field, to encoded_bytes */
	uint64_t encoded_bytes;
	struct fc_uuid uuid;
	uint64_t seq;
	uint64_t offset;
	uint64_t chunk_count;
	struct fc_session_id session;
	uint64_t turn;
	uint64_t start_block;
	uint64_t end_block;
	struct fc_key parent;
	uint64_t entry_count;
	uint32_t session_kind;
	uint32_t range_count;
};
_Static_assert(sizeof(struct header_record) == 136, "no padding");
_Static_assert(sizeof(struct header_record) <= FC_HEADER_PREFIX_BYTES, "a peek sees the fixed part");

/* ---- superblock ---- */

/* The checksum of an encoded structure covers what lies behind the checksum field itself. */
static uint64_t checksum_behind(const uint8_t *buffer, uint64_t bytes, size_t checksum_at, uint64_t seed)
{
	size_t begin = checksum_at + sizeof(uint64_t);
	return fc_checksum(buffer + begin, bytes - begin, seed);
}

static uint64_t superblock_checksum(const uint8_t *buffer)
{
	return checksum_behind(buffer, FC_SUPERBLOCK_BYTES, offsetof(struct superblock_record, checksum),
			       SEED_SUPERBLOCK);
}

static uint64_t chunk_bytes_for(uint64_t bytes)
{
	uint64_t chunk_bytes = CHUNK_BYTES_DEFAULT_MIN;
	while (chunk_bytes < FC_CHUNK_BYTES_MAX && bytes / chunk_bytes > CHUNKS_WANTED)
		chunk_bytes *= 2;
	return chunk_bytes;
}

static bool is_chunk_allowed(uint64_t chunk_bytes)
{
	return fc_is_power_of_two(chunk_bytes) && chunk_bytes >= FC_CHUNK_BYTES_MIN &&
	       chunk_bytes <= FC_CHUNK_BYTES_MAX;
}

static uint64_t data_offset_for(uint64_t table_chunks, uint64_t chunk_bytes)
{
	return fc_align_up(FC_TABLE_OFFSET + table_chunks * FC_TABLE_ENTRY_BYTES, chunk_bytes);
}

int fc_superblock_plan(struct fc_superblock *superblock, uint64_t bytes, uint64_t chunk_bytes, uint32_t align,
		       const struct fc_geometry *geometry, struct fc_error *error)
{
	if (chunk_bytes == 0)
		chunk_bytes = chunk_bytes_for(bytes);
	if (!fc_is_power_of_two(align) || align > FC_TABLE_PAGE_BYTES)
		return fc_error_set(error, FC_EINVAL, "alignment of %u bytes; a power of two up to %u is allowed",
				    align, FC_TABLE_PAGE_BYTES);
	if (!is_chunk_allowed(chunk_bytes))
		return fc_error_set(error, FC_EINVAL, "chunk of %llu bytes; a power of two from %u to %u is allowed",
				    (unsigned long long)chunk_bytes, FC_CHUNK_BYTES_MIN, FC_CHUNK_BYTES_MAX);
	uint64_t chunks = bytes / chunk_bytes;
	if (chunks > FC_CHUNKS_MAX)
		return fc_error_set(error, FC_ELIMIT,
				    "arena of %llu bytes in chunks of %llu; at most %u chunks are allowed",
				    (unsigned long long)bytes, (unsigned long long)chunk_bytes, FC_CHUNKS_MAX);
	uint64_t table_chunks =
		fc_align_up(fc_min_u64(fc_max_u64(chunks, 1) * TABLE_GROWTH, FC_CHUNKS_MAX), FC_ENTRIES_PER_PAGE);
	*superblock = (struct fc_superblock){
		.align = align,
		.chunk_bytes = chunk_bytes,
		.table_chunks = table_chunks,
		.data_offset = data_offset_for(table_chunks, chunk_bytes),
		.bytes = bytes,
		.geometry = *geometry,
	};
	if (fc_superblock_chunks(superblock, bytes) == 0)
		return fc_error_set(error, FC_EINVAL, "arena of %llu bytes; at least %llu are needed",
				    (unsigned long long)bytes, (unsigned long long)fc_superblock_bytes_min(superblock));
	return FC_OK;
}

uint64_t fc_superblock_chunks(const struct fc_superblock *superblock, uint64_t bytes)
{
	if (bytes <= superblock->data_offset)
		return 0;
	return fc_min_u64((bytes - superblock->data_offset) / superblock->chunk_bytes, superblock->table_chunks);
}

uint64_t fc_superblock_bytes_min(const struct fc_superblock *superblock)
{
	return superblock->data_offset + superblock->chunk_bytes;
}

uint64_t fc_superblock_bytes_max(const struct fc_superblock *superblock)
{
	return superblock->data_offset + superblock->table_chunks * superblock->chunk_bytes;
}

void fc_superblock_encode(const struct fc_superblock *superblock, uint8_t *buffer)
{
	const struct fc_geometry *geometry = &superblock->geometry;
	struct superblock_record record = {
		.magic = SUPERBLOCK_MAGIC,
		.byte_order = BYTE_ORDER_MARK,
		.version = FC_FORMAT_VERSION,
		.align = superblock->align,
		.uuid = superblock->uuid,
		.chunk_bytes = superblock->chunk_bytes,
		.table_chunks = superblock->table_chunks,
		.data_offset = superblock->data_offset,
		.bytes = superblock->bytes,
		.epoch = superblock->epoch,
		.block_tokens = geometry->block_tokens,
		.layer_count = geometry->layer_count,
		.group_count = geometry->group_count,
	};
	memcpy(record.geometry_name, geometry->name, sizeof(record.geometry_name));
	for (uint32_t i = 0; i < geometry->group_count; i++) {
		const struct fc_group *group = &geometry->groups[i];
		record.groups[i].rule = group->rule;
		record.groups[i].tokens_per_block = group->tokens_per_block;
		record.groups[i].window_tokens = group->window_tokens;
		memcpy(record.groups[i].slice_bytes, group->slice_bytes, geometry->layer_count * sizeof(uint64_t));
	}
	memset(buffer, 0, FC_SUPERBLOCK_BYTES);
	memcpy(buffer, &record, sizeof(record));
	record.checksum = superblock_checksum(buffer);
	memcpy(buffer, &record, sizeof(record));
}

static bool is_blank(const uint8_t *buffer)
{
	for (size_t i = 0; i < FC_SUPERBLOCK_BYTES; i++)
		if (buffer[i] != 0)
			return false;
	return true;
}

static int check_superblock_kind(const struct superblock_record *record, struct fc_error *error)
{
	if (record->magic == __builtin_bswap64(SUPERBLOCK_MAGIC) ||
	    (record->magic == SUPERBLOCK_MAGIC && record->byte_order == __builtin_bswap64(BYTE_ORDER_MARK)))
		return fc_error_set(error, FC_EFORMAT,
				    "arena of the other byte order; it can be opened on such a machine only");
	if (record->magic != SUPERBLOCK_MAGIC || record->byte_order != BYTE_ORDER_MARK)
		return fc_error_set(error, FC_EFORMAT,
				    "not a FlatCake arena: it begins with 0x%016llx, 0x%016llx was expected",
				    (unsigned long long)record->magic, (unsigned long long)SUPERBLOCK_MAGIC);
	if (record->version != FC_FORMAT_VERSION)
		return fc_error_set(error, FC_EFORMAT, "arena of format version %u; this program reads version %u",
				    record->version, FC_FORMAT_VERSION);
	return FC_OK;
}

void fc_superblock_encode_mark(uint8_t *buffer)
{
	struct superblock_record record = {
		.magic = SUPERBLOCK_MAGIC, .byte_order = BYTE_ORDER_MARK, .version = FC_FORMAT_VERSION};
	memset(buffer, 0, FC_TABLE_PAGE_BYTES);
	memcpy(buffer, &record, SECTOR_BYTES);
}

static bool is_unfinished(const uint8_t *buffer)
{
	struct superblock_record record;
	memcpy(&record, buffer, sizeof(record));
	return check_superblock_kind(&record, NULL) == FC_OK && record.checksum != superblock_checksum(buffer);
}

bool fc_superblocks_are_unwritten(const uint8_t *buffer)
{
	return is_blank(buffer + FC_SUPERBLOCK_BYTES) && (is_blank(buffer) || is_unfinished(buffer));
}

/* `bytes` is not held against the table: an arena may have grown beyond what its table can name. */
static int check_superblock_fields(const struct fc_superblock *superblock, struct fc_error *error)
{
	uint64_t table_chunks = superblock->table_chunks;
	if (!is_chunk_allowed(superblock->chunk_bytes))
		return fc_error_set(error, FC_EFORMAT, "superblock with impossible chunks of %llu bytes",
				    (unsigned long long)superblock->chunk_bytes);
	if (!fc_is_power_of_two(superblock->align) || superblock->align > FC_TABLE_PAGE_BYTES)
		return fc_error_set(error, FC_EFORMAT, "superblock with an impossible alignment of %u bytes",
				    superblock->align);
	if (table_chunks == 0 || table_chunks > FC_CHUNKS_MAX || table_chunks % FC_ENTRIES_PER_PAGE != 0)
		return fc_error_set(error, FC_EFORMAT, "superblock with an impossible table of %llu chunks",
				    (unsigned long long)table_chunks);
	if (superblock->data_offset != data_offset_for(table_chunks, superblock->chunk_bytes))
		return fc_error_set(error, FC_EFORMAT, "superblock with an impossible data offset of %llu",
				    (unsigned long long)superblock->data_offset);
	if (superblock->epoch >= FC_EPOCH_MAX)
		return fc_error_set(error, FC_EFORMAT, "superblock with an impossible epoch of %llu",
				    (unsigned long long)superblock->epoch);
	return FC_OK;
}

static void decode_geometry(struct fc_geometry *geometry, const struct superblock_record *record)
{
	*geometry = (struct fc_geometry){
		.block_tokens = record->block_tokens,
		.layer_count = record->layer_count,
		.group_count = record->group_count,
	};
	memcpy(geometry->name, record->geometry_name, sizeof(geometry->name));
	geometry->name[sizeof(geometry->name) - 1] = 0;
	for (uint32_t i = 0; i < record->group_count && i < FC_GROUPS_MAX; i++) {
		geometry->groups[i].rule = record->groups[i].rule;
		geometry->groups[i].tokens_per_block = record->groups[i].tokens_per_block;
		geometry->groups[i].window_tokens = record->groups[i].window_tokens;
		memcpy(geometry->groups[i].slice_bytes, record->groups[i].slice_bytes,
		       sizeof(record->groups[i].slice_bytes));
	}
}

int fc_superblock_decode(struct fc_superblock *superblock, const uint8_t *buffer, struct fc_error *error)
{
	struct superblock_record record;
	memcpy(&record, buffer, sizeof(record));
	int code = check_superblock_kind(&record, error);
	if (code != FC_OK)
		return code;
	if (record.checksum != superblock_checksum(buffer))
		return fc_error_set(error, FC_EFORMAT, "superblock with a wrong checksum");
	*superblock = (struct fc_superblock){
		.uuid = record.uuid,
		.align = record.align,
		.chunk_bytes = record.chunk_bytes,
		.table_chunks = record.table_chunks,
		.data_offset = record.data_offset,
		.bytes = record.bytes,
		.epoch = record.epoch,
	};
	decode_geometry(&superblock->geometry, &record);
	code = fc_geometry_check(&superblock->geometry, error);
	if (code != FC_OK)
		return fc_error_wrap(error, FC_EFORMAT, "superblock");
	return check_superblock_fields(superblock, error);
}

int fc_superblock_choose(struct fc_superblock *superblock, const uint8_t *buffer, struct fc_error *error)
{
	const uint8_t *second_copy = buffer + FC_SUPERBLOCK_BYTES;
	struct fc_superblock second;
	struct fc_error second_error = {0};
	int code = fc_superblock_decode(superblock, buffer, error);
	int second_code = fc_superblock_decode(&second, second_copy, &second_error);
	if (second_code == FC_OK && (code != FC_OK || second.epoch > superblock->epoch)) {
		*superblock = second;
		return FC_OK;
	}
	if (code != FC_OK && is_blank(buffer))
		return fc_error_set(error, second_code, "%s", second_error.text);
	return code;
}

/* ---- geometry ---- */

static int group_same(const struct fc_group *stored, const struct fc_group *wanted, uint32_t group,
		      uint32_t layer_count, struct fc_error *error)
{
	bool is_state = stored->rule == FC_RULE_STATE; /* tokens per block mean nothing there */
	if (stored->rule != wanted->rule || (!is_state && stored->tokens_per_block != wanted->tokens_per_block) ||
	    stored->window_tokens != wanted->window_tokens)
		return fc_error_set(
			error, FC_EGEOMETRY,
			"group %u: the arena has rule %u, %u tokens per block, window %u; wanted %u, %u, %u", group,
			(unsigned)stored->rule, stored->tokens_per_block, stored->window_tokens, (unsigned)wanted->rule,
			wanted->tokens_per_block, wanted->window_tokens);
	for (uint32_t layer = 0; layer < layer_count; layer++)
		if (stored->slice_bytes[layer] != wanted->slice_bytes[layer])
			return fc_error_set(error, FC_EGEOMETRY,
					    "group %u layer %u: the arena has slices of %llu bytes; wanted %llu", group,
					    layer, (unsigned long long)stored->slice_bytes[layer],
					    (unsigned long long)wanted->slice_bytes[layer]);
	return FC_OK;
}

static bool is_name_same(const struct fc_geometry *stored, const struct fc_geometry *wanted)
{
	return strncmp(stored->name, wanted->name, FC_NAME_BYTES) == 0 || fc_is_planted(FC_PLANT_ANY_NAME);
}

int fc_geometry_same(const struct fc_geometry *stored, const struct fc_geometry *wanted, struct fc_error *error)
{
	if (!is_name_same(stored, wanted) || stored->block_tokens != wanted->block_tokens ||
	    stored->layer_count != wanted->layer_count || stored->group_count != wanted->group_count)
		return fc_error_set(
			error, FC_EGEOMETRY,
			"the arena has geometry %s: %u tokens per block, %u layers, %u groups; wanted %s: %u, %u, %u",
			stored->name, stored->block_tokens, stored->layer_count, stored->group_count, wanted->name,
			wanted->block_tokens, wanted->layer_count, wanted->group_count);
	for (uint32_t group = 0; group < stored->group_count; group++) {
		int code =
			group_same(&stored->groups[group], &wanted->groups[group], group, stored->layer_count, error);
		if (code != FC_OK)
			return fc_error_wrap(error, code, "geometry %s", stored->name);
	}
	return FC_OK;
}

/* ---- chunk table ---- */

struct entry_record {
	uint64_t seq;
	uint32_t chunk_count;
	uint32_t check;
};
_Static_assert(sizeof(struct entry_record) == FC_TABLE_ENTRY_BYTES, "no padding");

static uint32_t entry_check(uint64_t seq, uint32_t chunk_count, struct fc_uuid uuid, uint64_t chunk)
{
	uint64_t words[5] = {seq, chunk_count, uuid.high, uuid.low, chunk};
	return (uint32_t)(fc_checksum(words, sizeof(words), SEED_ENTRY) >> 32);
}

void fc_table_entry_encode(const struct fc_table_entry *entry, struct fc_uuid uuid, uint64_t chunk, uint8_t *buffer)
{
	struct entry_record record = {0};
	if (entry->seq != 0) {
		record.seq = entry->seq;
		record.chunk_count = entry->chunk_count;
		record.check = entry_check(entry->seq, entry->chunk_count, uuid, chunk);
	}
	memcpy(buffer, &record, sizeof(record));
}

int fc_table_entry_decode(struct fc_table_entry *entry, struct fc_uuid uuid, uint64_t chunk, const uint8_t *buffer)
{
	struct entry_record record;
	memcpy(&record, buffer, sizeof(record));
	*entry = (struct fc_table_entry){.seq = record.seq, .chunk_count = record.chunk_count};
	if (record.seq == 0 && record.chunk_count == 0 && record.check == 0)
		return FC_OK;
	if (record.seq == 0 || record.chunk_count == 0 ||
	    record.check != entry_check(record.seq, record.chunk_count, uuid, chunk))
		return FC_ECORRUPT;
	return FC_OK;
}

/* ---- segment header ---- */

uint64_t fc_header_encoded_bytes(const struct fc_shape *shape)
{
	return sizeof(struct header_record) + shape->range_count * sizeof(struct range_record) +
	       shape->entry_count * sizeof(struct fc_key);
}

void fc_header_encode(const struct fc_header *header, const struct fc_key *keys, uint8_t *buffer)
{
	const struct fc_shape *shape = &header->shape;
	uint64_t encoded_bytes = fc_header_encoded_bytes(shape);
	struct header_record record = {
		.magic = HEADER_MAGIC,
		.encoded_bytes = encoded_bytes,
		.uuid = header->uuid,
		.seq = header->seq,
		.offset = header->offset,
		.chunk_count = header->chunk_count,
		.session = header->session,
		.turn = header->turn,
		.start_block = header->start_block,
		.end_block = header->end_block,
		.parent = header->parent,
		.entry_count = shape->entry_count,
		.session_kind = header->session_kind,
		.range_count = shape->range_count,
	};
	uint8_t *place = buffer + sizeof(record);
	for (uint32_t i = 0; i < shape->range_count; i++) {
		struct range_record range = {
			.group = shape->ranges[i].group,
			.block_first = shape->ranges[i].block_first,
			.count = shape->ranges[i].count,
		};
		memcpy(place, &range, sizeof(range));
		place += sizeof(range);
	}
	memcpy(place, keys, shape->entry_count * sizeof(*keys));
	memcpy(buffer, &record, sizeof(record));
	record.checksum = checksum_behind(buffer, encoded_bytes, offsetof(struct header_record, checksum), SEED_HEADER);
	memcpy(buffer, &record, sizeof(record));
}

int fc_header_peek(const uint8_t *buffer, uint64_t *encoded_bytes)
{
	struct header_record record;
	memcpy(&record, buffer, sizeof(record));
	if (record.magic != HEADER_MAGIC || record.range_count > FC_RANGES_MAX || record.entry_count > UINT32_MAX)
		return FC_ECORRUPT;
	*encoded_bytes = sizeof(record) + record.range_count * sizeof(struct range_record) +
			 record.entry_count * sizeof(struct fc_key);
	return *encoded_bytes == record.encoded_bytes ? FC_OK : FC_ECORRUPT;
}

static int decode_ranges(struct fc_shape *shape, const struct fc_geometry *geometry, const struct header_record *record,
			 const uint8_t *place)
{
	for (uint32_t i = 0; i < record->range_count; i++, place += sizeof(struct range_record)) {
		struct range_record range;
		memcpy(&range, place, sizeof(range));
		if (range.group >= geometry->group_count || range.reserved != 0 || range.count == 0 ||
		    range.count > record->entry_count || range.block_first > UINT32_MAX)
			return FC_ECORRUPT;
		if (fc_shape_add(shape, range.group, range.block_first, range.count) != FC_OK)
			return FC_ECORRUPT;
	}
	return shape->entry_count == record->entry_count && record->entry_count > 0 ? FC_OK : FC_ECORRUPT;
}

/* The path blocks [start_block, end_block) are what the header's ranges hold, in one range of each group under
 * FC_RULE_ALL; what the other groups have ends no later. */
static bool holds_what_it_says(const struct fc_header *header, const struct fc_geometry *geometry)
{
	uint32_t found[FC_GROUPS_MAX] = {0};
	for (uint32_t i = 0; i < header->shape.range_count; i++) {
		const struct fc_range *range = &header->shape.ranges[i];
		uint64_t span = fc_group_span(geometry, range->group);
		uint64_t first = range->block_first, end = range->block_first + range->count;
		if (end > header->end_block / span)
			return false;
		if (geometry->groups[range->group].rule == FC_RULE_ALL &&
		    (first != header->start_block / span || end != header->end_block / span ||
		     found[range->group]++ > 0))
			return false;
	}
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t span = fc_group_span(geometry, group);
		bool is_needed = geometry->groups[group].rule == FC_RULE_ALL &&
				 header->start_block / span < header->end_block / span;
		if (is_needed && found[group] == 0)
			return false;
	}
	return true;
}

int fc_header_decode(struct fc_header *header, struct fc_range *storage, const struct fc_geometry *geometry,
		     const uint8_t *buffer, uint64_t bytes, const uint8_t **keys)
{
	struct header_record record;
	uint64_t encoded_bytes;
	if (bytes < FC_HEADER_PREFIX_BYTES || fc_header_peek(buffer, &encoded_bytes) != FC_OK || encoded_bytes > bytes)
		return FC_ECORRUPT;
	memcpy(&record, buffer, sizeof(record));
	if (record.checksum !=
		    checksum_behind(buffer, encoded_bytes, offsetof(struct header_record, checksum), SEED_HEADER) &&
	    !fc_is_planted(FC_PLANT_UNCHECKED_HEADER))
		return FC_ECORRUPT;
	if (record.session_kind > FC_SESSION_PROMPT || record.start_block > record.end_block ||
	    record.end_block > UINT32_MAX || record.chunk_count > FC_CHUNKS_MAX)
		return FC_ECORRUPT;
	*header = (struct fc_header){
		.uuid = record.uuid,
		.seq = record.seq,
		.offset = record.offset,
		.chunk_count = record.chunk_count,
		.session = record.session,
		.session_kind = record.session_kind,
		.turn = record.turn,
		.start_block = record.start_block,
		.end_block = record.end_block,
		.parent = record.parent,
	};
	fc_shape_init(&header->shape, storage);
	*keys = buffer + sizeof(record) + record.range_count * sizeof(struct range_record);
	int code = decode_ranges(&header->shape, geometry, &record, buffer + sizeof(record));
	return code == FC_OK && !holds_what_it_says(header, geometry) ? FC_ECORRUPT : code;
}

struct fc_key fc_header_key(const uint8_t *keys, uint64_t entry)
{
	struct fc_key key;
	memcpy(&key, keys + entry * sizeof(key), sizeof(key));
	return key;
}

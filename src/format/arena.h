/* What lies on a medium: superblock, chunk table, segment headers. docs/format.md gives every offset.
 *
 *     0                    64 KiB        128 KiB                      data_offset
 *     | superblock, copy 0 | copy 1      | chunk table, 16 bytes each | chunk 0 | chunk 1 | ...
 *
 * A segment is a whole number of chunks. The table entry of its first chunk says "segment <seq> begins here and has n
 * chunks"; all other entries are zero. Its header repeats what the entry says and adds the rest, so that neither can
 * be believed without the other:
 *
 *   a segment exists  <=>  its entry is whole (own check)  and  its header is whole (checksum)  and  both name the same
 *                          seq, place and length, and the header names this arena and an epoch that has begun.
 *
 * Integers are stored in the byte order of the machine that formatted the arena; a marker in the superblock names it.
 * Everything that decodes takes bytes from outside: nothing is trusted before it is checked. */
#ifndef FC_FORMAT_ARENA_H
#define FC_FORMAT_ARENA_H

#include "format/shape.h"

#define FC_FORMAT_VERSION 1
#define FC_SUPERBLOCK_BYTES (64u << 10)
#define FC_SUPERBLOCK_COPIES 2
#define FC_TABLE_OFFSET (FC_SUPERBLOCK_COPIES * FC_SUPERBLOCK_BYTES)
#define FC_TABLE_ENTRY_BYTES 16u
#define FC_TABLE_PAGE_BYTES 4096u
#define FC_ENTRIES_PER_PAGE (FC_TABLE_PAGE_BYTES / FC_TABLE_ENTRY_BYTES)
#define FC_CHUNKS_MAX (16u << 20)

struct fc_uuid {
	uint64_t high;
	uint64_t low;
};

struct fc_superblock {
	struct fc_uuid uuid;
	uint32_t align; /* of areas and headers, and of every I/O */
	uint64_t chunk_bytes;
	uint64_t table_chunks; /* room in the chunk table: the most chunks that this arena can grow to */
	uint64_t data_offset;
	uint64_t bytes; /* of the arena when it was last opened for writing */
	uint64_t epoch; /* one more at every open for writing, so that a sequence number is never given twice */
	struct fc_geometry geometry;
};

/* Chooses table room and data offset for an arena of `bytes` with chunks of `chunk_bytes` (0: chosen so that there are
 * about a million chunks, from 16 KiB upwards). The table has room for eight times the size. */
FC_MUST_USE int fc_superblock_plan(struct fc_superblock *superblock, uint64_t bytes, uint64_t chunk_bytes,
				   uint32_t align, const struct fc_geometry *geometry, struct fc_error *error);

/* First sequence number of an epoch. An arena can be opened for writing FC_EPOCH_MAX - 1 times. */
#define FC_SEQ_EPOCH_BITS 40
#define FC_EPOCH_MAX (1ull << (64 - FC_SEQ_EPOCH_BITS))
static inline uint64_t fc_seq_first(uint64_t epoch)
{
	return epoch << FC_SEQ_EPOCH_BITS;
}

/* Chunks that an arena of `bytes` has. */
uint64_t fc_superblock_chunks(const struct fc_superblock *superblock, uint64_t bytes);

/* Least and most bytes that the arena can have: with one chunk, and with as many as its table has room for. What lies
 * behind the most would never be used. */
uint64_t fc_superblock_bytes_min(const struct fc_superblock *superblock);
uint64_t fc_superblock_bytes_max(const struct fc_superblock *superblock);

/* `buffer` has FC_SUPERBLOCK_BYTES. */
void fc_superblock_encode(const struct fc_superblock *superblock, uint8_t *buffer);

/* FC_EFORMAT: not an arena, another version, another byte order, or damaged; the error says which and what was found.
 */
FC_MUST_USE int fc_superblock_decode(struct fc_superblock *superblock, const uint8_t *buffer, struct fc_error *error);

/* Of both copies, FC_TABLE_OFFSET bytes, the whole one with the higher epoch. With none, the error of the first copy
 * that was ever written. */
FC_MUST_USE int fc_superblock_choose(struct fc_superblock *superblock, const uint8_t *buffer, struct fc_error *error);

/* The one answer to whether an arena may be formatted, whoever asks. Of both copies (of a file that is shorter, what it
 * has, and zeros behind): true when nothing can be stored yet, because both are zeros, or because the format was
 * interrupted before copy 1, which leaves in copy 0 its mark or a part of the superblock. Anything else that is not
 * whole is somebody's. */
bool fc_superblocks_are_unwritten(const uint8_t *buffer);

/* What is written over copy 0 before anything else of a format: FC_TABLE_PAGE_BYTES that say that it has begun. All
 * that matters lies in the first 512 bytes, which a medium writes whole or not at all. */
void fc_superblock_encode_mark(uint8_t *buffer);

/* The name counts like every other field: models of equal sizes (bf16 at one scale, fp8 at half of it) differ in
 * nothing else. FC_EGEOMETRY names the first field that differs. */
FC_MUST_USE int fc_geometry_same(const struct fc_geometry *stored, const struct fc_geometry *wanted,
				 struct fc_error *error);

struct fc_table_entry {
	uint64_t seq; /* 0: no segment begins here */
	uint32_t chunk_count;
};

void fc_table_entry_encode(const struct fc_table_entry *entry, struct fc_uuid uuid, uint64_t chunk, uint8_t *buffer);
/* FC_ECORRUPT for an entry that is neither zero nor whole. */
FC_MUST_USE int fc_table_entry_decode(struct fc_table_entry *entry, struct fc_uuid uuid, uint64_t chunk,
				      const uint8_t *buffer);

enum fc_session_kind {
	FC_SESSION_CONVERSATION = 0,
	FC_SESSION_PROMPT = 1, /* a shared prefix that belongs to no conversation */
};

struct fc_header {
	struct fc_uuid uuid; /* of the arena */
	uint64_t seq;    /* order of reservation over the life of the arena: fc_seq_first(epoch) + n; never reused */
	uint64_t offset; /* of the segment in the arena */
	uint64_t chunk_count;
	struct fc_session_id session;
	enum fc_session_kind session_kind;
	uint64_t turn;
	uint64_t start_block, end_block; /* path blocks that this segment adds */
	struct fc_key parent;            /* key of path block start_block - 1; zero when start_block is 0 */
	struct fc_shape shape;
};

/* Fixed part, ranges and keys, without padding. */
uint64_t fc_header_encoded_bytes(const struct fc_shape *shape);

/* `keys[shape.entry_count]`; `buffer` has fc_header_encoded_bytes(). */
void fc_header_encode(const struct fc_header *header, const struct fc_key *keys, uint8_t *buffer);

/* First step: how long is the header that starts in these FC_HEADER_PREFIX_BYTES? FC_ECORRUPT when it cannot be one. */
#define FC_HEADER_PREFIX_BYTES 512u
FC_MUST_USE int fc_header_peek(const uint8_t *buffer, uint64_t *encoded_bytes);

/* `buffer` holds `bytes` >= the encoded length; the decoded ranges go to `storage[FC_RANGES_MAX]`. `*keys` points into
 * the buffer (not aligned); copy them out with fc_header_key(). FC_ECORRUPT when anything is off, including ranges that
 * the geometry does not allow, or that hold other path blocks than the header says. */
FC_MUST_USE int fc_header_decode(struct fc_header *header, struct fc_range *storage, const struct fc_geometry *geometry,
				 const uint8_t *buffer, uint64_t bytes, const uint8_t **keys);
struct fc_key fc_header_key(const uint8_t *keys, uint64_t entry);

#endif

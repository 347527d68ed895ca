/* Arenas that an input describes, for fuzz_arena.
 *
 * Bytes made up at random die at the first checksum, so an input is a list of strokes that paint over two formatted
 * arenas, and what is painted gets right checksums wherever a stroke says so. Numbers are small, so that segments meet:
 * in chunks, sessions, keys and sequence numbers.
 *
 *     1 byte     bit 7: in the memory arena; bits 0-2:
 *
 *     0, 1  a segment as the product writes it: chunk, sequence, session, path (bits 0-1), kind (bit 2) and whether it
 * has resume blocks (bit 3) or nothing else (bit 4), start block, blocks, turn 2     any segment: the same, then its
 * ranges: count, and for each group, first block, blocks 3     an entry of the chunk table:
 * chunk, sequence, chunks 4     bytes over a superblock (0, 1), the table (2) or a chunk (3 and above): which, place (2
 * bytes), count, bytes 5     the same, and then the checksums in it are made right 6     one byte flipped: place in
 * 16-byte units (2 bytes), what to xor 7     a chunk copied over another one: from, to */
#ifndef FC_TESTS_FUZZ_ARENA_IMAGE_H
#define FC_TESTS_FUZZ_ARENA_IMAGE_H

#include "format/arena.h"
#include "fuzz/fuzz.h"
#include "lib/fake_media.h"

#define FUZZ_PATHS 4
#define FUZZ_PATH_BLOCKS 24
#define FUZZ_CHUNK_BYTES 4096u

struct fuzz_arena {
	struct fake_media *media;
	struct fc_superblock superblock;
};

/* Path 1 leaves path 0 behind block 4, path 2 leaves path 1 behind block 8, path 3 stands alone. */
struct fuzz_paths {
	struct fc_key keys[FUZZ_PATHS][FUZZ_PATH_BLOCKS];
};

void fuzz_paths_init(struct fuzz_paths *paths);

/* A medium of so many chunks; `is_formatted`: with superblocks of epoch 1. */
void fuzz_arena_init(struct fuzz_arena *arena, const struct fc_geometry *geometry, uint64_t chunks, uint32_t align,
		     bool is_durable, bool is_formatted);

/* Paints the rest of the input over the arenas; [1] may be NULL, then [0] takes all. */
void fuzz_arena_paint(struct fuzz_arena *const arenas[2], const struct fuzz_paths *paths, struct fuzz_input *input);

#endif

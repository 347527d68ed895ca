/* Free space of an arena, in chunks: which chunks are free, where a run of free chunks lies, and where new data should
 * go.
 *
 * A bit per chunk says what is free; a binary tree over the 64-chunk words of that bit map holds, per node, the longest
 * free run inside and the free runs at both of its ends. Looking for a run goes down the tree once; a change recomputes
 * the path above the words it touched. Memory: 1/8 + 3/8 byte a chunk when the word count is a power of two, less than
 * twice that otherwise (16 million chunks: 8 MiB).
 *
 * Where data goes (fc_space_place). A session should grow in place, however many others write at the same time:
 *
 *   1. Behind the session's last segment, if the free run there is long enough: the extent grows and stays contiguous.
 *
 *          | A A A |. . . . . . . .          | A A A a a |. . . . . .
 *
 *   2. Otherwise a new extent starts in the middle of the largest free run, if that is at least a 64th of the arena and
 *      two times the need fits behind the middle. The first half is left as room for the extent that ends in front of
 *      it (nobody ends in front of chunk 0: there it starts at 0).
 *
 *          | A A A |. . . . . . . . . . . .|          | A A A |. . . . . .| b b |. . . .|
 *                                                              room of A         room of B
 *
 *   3. Otherwise the leftmost run that fits is taken, because first fit wastes least. FC_EFULL if there is none.
 *
 * The limit of a 64th matters: halving again with every new extent would cut free space evenly into pieces smaller than
 * the next turn, in an arena that is nearly empty.
 *
 * So k sessions that write in turns halve the space k times between them, and each has about 1/k of it to grow into.
 * Nothing is reserved: room that is not used stays free for all. */
#ifndef FC_CATALOG_SPACE_H
#define FC_CATALOG_SPACE_H

#include "base/alloc.h"
#include "base/error.h"

#define FC_CHUNK_NONE UINT64_MAX
#define FC_SPACE_CHUNKS_MAX (1ull << 30)
#define FC_SPACE_ROOMS 64 /* free runs smaller than 1/64 of the arena are not halved */

/* Free runs of a node's chunks. */
struct fc_space_node {
	uint32_t longest;
	uint32_t prefix; /* from its first chunk on */
	uint32_t suffix; /* up to its last chunk */
};

struct fc_space {
	struct fc_alloc alloc;
	uint64_t chunk_count;
	uint64_t free_count;
	uint64_t leaf_count;         /* words, rounded up to a power of two */
	uint64_t *words;             /* bit set: chunk is free; bits behind chunk_count are never set */
	struct fc_space_node *nodes; /* root at 1, children of n at 2n and 2n + 1, word w at leaf_count + w */
};

/* Everything is free. FC_EINVAL unless 1 <= chunk_count <= FC_SPACE_CHUNKS_MAX; FC_ENOMEM. */
FC_MUST_USE int fc_space_init(struct fc_space *space, const struct fc_alloc *alloc, uint64_t chunk_count);
void fc_space_deinit(struct fc_space *space);

/* Changes the number of chunks; new ones are free. Shrinking needs a free tail, FC_EBUSY otherwise; FC_EINVAL and
 * FC_ENOMEM as above. On failure nothing has changed. */
FC_MUST_USE int fc_space_resize(struct fc_space *space, uint64_t chunk_count);

/* [first, first + count) must be free, or entirely taken, and inside the arena: asserted. O(count / 64 + log chunks).
 */
void fc_space_take(struct fc_space *space, uint64_t first, uint64_t count);
void fc_space_give(struct fc_space *space, uint64_t first, uint64_t count);

static inline uint64_t fc_space_free_count(const struct fc_space *space)
{
	return space->free_count;
}

/* False also for a range that is not inside the arena; true for an empty one that is. */
bool fc_space_is_free(const struct fc_space *space, uint64_t first, uint64_t count);

/* Length of the free run that starts at `chunk`: 0 when that is taken or not in the arena. */
uint64_t fc_space_free_after(const struct fc_space *space, uint64_t chunk);

/* Length of the longest free run, 0 when all is taken; `first` (may be NULL) is the leftmost such, FC_CHUNK_NONE if
 * none. */
uint64_t fc_space_largest(const struct fc_space *space, uint64_t *first);

/* Leftmost place where `count` (>= 1) chunks are free. FC_EFULL if there is none. */
FC_MUST_USE int fc_space_find_first(const struct fc_space *space, uint64_t count, uint64_t *first);

/* The rule above; takes nothing yet. `near` is the chunk behind the session's last segment, or FC_CHUNK_NONE. `count`
 * >= 1. */
FC_MUST_USE int fc_space_place(const struct fc_space *space, uint64_t count, uint64_t near, uint64_t *first);

/* Asserts that tree, bit map and counters agree. For tests and `verify`. */
void fc_space_check(const struct fc_space *space);

#endif

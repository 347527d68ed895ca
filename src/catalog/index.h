/* The block index: one in-memory hash table from a block's key to the segment entry that holds its newest copy.
 *
 * The table does not store keys. A segment has to know its keys anyway (so that it can be reclaimed without reading the
 * disk), so a slot holds 32 bits of the key's hash and the location, 12 bytes, and a hit is verified against all 128
 * bits in the segment's own key array:
 *
 *     hash(key) = | tag: 32 bits | ... | shard |
 *                      |                  |
 *                      |                  +--> shards[shard] --> slots, sorted by tag
 *                      +--> home slot = tag * size >> 32         | tag | segment | entry |
 *                                                                        |         |
 *                                               pages: segment's key array +-------+--> all 128 bits are compared here
 *
 *   - The tag alone decides a slot's place, and a larger tag never lies before a smaller one. So a miss ends at the
 *     first larger tag, and growth and removal never look at a key: they move slots in order.
 *   - Each shard grows by itself, by a quarter, when it is 0.8 full: memory stays between 15 and 18.75 bytes a key,
 *     plus the 16 of the segment's key array. Shards start at staggered sizes so that they do not all grow at once, and
 *     the longest pause is one shard's copy: 5,000 slots at 10 million keys in 2,048 shards. 100 million would make it
 *     ten times as long in as many shards; blocks_expected gives them 32,768 instead.
 *   - Shards never shrink: a store fills up to its watermark and stays there.
 *
 * The hash mixes all 128 bits with a secret seed, because keys may come from outside: sequential, poor or hostile.
 *
 * The index belongs to the core's thread; nothing here locks. */
#ifndef FC_CATALOG_INDEX_H
#define FC_CATALOG_INDEX_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/plant.h"

/* Position `entry` in the key array of segment `segment`. */
struct fc_location {
	uint32_t segment;
	uint32_t entry;
};

#define FC_SEGMENT_NONE UINT32_MAX
#define FC_LOCATION_NONE ((struct fc_location){FC_SEGMENT_NONE, UINT32_MAX})

static inline bool fc_location_is_none(struct fc_location location)
{
	return location.segment == FC_SEGMENT_NONE;
}
static inline bool fc_location_equals(struct fc_location a, struct fc_location b)
{
	return a.segment == b.segment && a.entry == b.entry;
}

static inline bool fc_key_equals(struct fc_key a, struct fc_key b)
{
	return (a.high == b.high || fc_is_planted(FC_PLANT_HALF_KEY)) && a.low == b.low;
}

/* The same path key names a block in each group, so the index works on entry keys: the key itself for group 0, the key
 * xor a constant of the group for others. Segment key arrays hold entry keys. Applying it twice gives the path key
 * back. */
static inline struct fc_key fc_entry_key(struct fc_key key, uint32_t group)
{
	struct fc_key entry_key = {key.high ^ (group * 0xa0761d6478bd642full),
				   key.low ^ (group * 0xe7037ed1a0b428dbull)};
	return entry_key;
}

struct fc_index_slot {
	uint32_t tag;
	struct fc_location location;
};

struct fc_index_shard {
	struct fc_index_slot *slots; /* size + slack, the last of them always empty */
	uint32_t size;
	uint32_t count;
};

#define FC_INDEX_PAGE_SEGMENTS 4096

/* Key arrays of consecutive segments, NULL where none is set. */
struct fc_index_page {
	const struct fc_key *keys[FC_INDEX_PAGE_SEGMENTS];
};

struct fc_index {
	struct fc_alloc alloc;
	uint64_t secret[4];
	struct fc_index_shard *shards;
	uint32_t shard_count;         /* a power of two */
	struct fc_index_page **pages; /* by segment / FC_INDEX_PAGE_SEGMENTS; NULL where no segment was set */
	uint32_t page_count;
	uint64_t count;
	uint64_t bytes;
};

#define FC_INDEX_SHARDS_MAX (1u << 20)

struct fc_index_opts {
	uint64_t seed[2];         /* secret and random, so that nobody can choose keys that collide */
	uint32_t shard_count;     /* a power of two up to FC_INDEX_SHARDS_MAX; 0: 2,048, more above 10 million
				     blocks_expected */
	uint64_t blocks_expected; /* shards start large enough for this many; 0: they start small */
};

/* FC_ENOMEM, or FC_EINVAL for a shard count that is not allowed. */
FC_MUST_USE int fc_index_init(struct fc_index *index, const struct fc_alloc *alloc, const struct fc_index_opts *opts);
void fc_index_deinit(struct fc_index *index);

/* Names the array of entry keys of a segment (below FC_SEGMENT_NONE). It is borrowed until it is set anew or cleared,
 * and must not change for entries that the index names. Setting it again (a moved array with the same keys) is allowed.
 * FC_ENOMEM. */
FC_MUST_USE int fc_index_segment_set(struct fc_index *index, uint32_t segment, const struct fc_key *keys);
/* The index must name no entry of the segment any more. */
void fc_index_segment_clear(struct fc_index *index, uint32_t segment);

/* All functions below take entry keys, except queries, which take path keys and a group. */

/* FC_LOCATION_NONE when the key is not there. */
struct fc_location fc_index_find(const struct fc_index *index, struct fc_key key);

/* Path keys keys[0], keys[stride], ..., `count` of them, in one group. A group whose blocks span n path blocks is asked
 * for with keys = path + n - 1 and stride = n. */
struct fc_index_query {
	const struct fc_key *keys;
	uint64_t stride; /* at least 1 */
	uint64_t count;
	uint32_t group;
};

/* Fills locations[0..count), FC_LOCATION_NONE where a key is missing; returns how many are there. It is a pipeline with
 * prefetching, which is several times faster than single look-ups. */
uint64_t fc_index_find_batch(const struct fc_index *index, const struct fc_index_query *query,
			     struct fc_location *locations);

/* The number of leading keys that are there, with their locations; stops soon after the first that is
 * missing, and writes no location behind it. */
uint64_t fc_index_find_prefix(const struct fc_index *index, const struct fc_index_query *query,
			      struct fc_location *locations);

/* Adds a key that is not there yet and stands at `location` of its segment's array (both asserted). On FC_ENOMEM the
 * index is as it was. */
FC_MUST_USE int fc_index_insert(struct fc_index *index, struct fc_key key, struct fc_location location);

/* Points a key that is there at `location`, where it must stand (asserted). Returns the location it had, whose
 * segment's array must still be set; FC_LOCATION_NONE, and nothing changes, when the key is not there. Never allocates.
 */
struct fc_location fc_index_replace(struct fc_index *index, struct fc_key key, struct fc_location location);

/* Removes the key if it points at `expected`; false, and nothing changes, when it is not there or points elsewhere (at
 * a newer copy). Never allocates. */
bool fc_index_remove(struct fc_index *index, struct fc_key key, struct fc_location expected);

static inline uint64_t fc_index_count(const struct fc_index *index)
{
	return index->count;
}
/* Memory of the index itself; the segments' key arrays are their owners'. */
static inline uint64_t fc_index_bytes(const struct fc_index *index)
{
	return index->bytes;
}

/* Scans everything and asserts the invariants: order, reachability, keys, counters. For tests and `verify`. */
void fc_index_check(const struct fc_index *index);

#endif

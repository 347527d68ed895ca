/* The block index; index.h has the picture.
 *
 * A shard is an array of slots in ascending order of their tags, each at its home slot or as near behind it as those in
 * front allow; empty slots carry the largest tag, which no key has. So a look-up starts at the home slot, skips what is
 * smaller and stops at what is larger, with one comparison a slot, empty or not. A few slots of slack behind the last
 * home slot take what is pushed over the end, which saves the wrap-around; the very last slot stays empty and ends
 * every walk.
 *
 *     home slots of tags 10, 11, 30:   3, 3, 5
 *
 *     0     1     2     3     4     5     6     7 ...            insert 12 (home 3): 30 is pushed on
 *     -     -     -     10    11    30    -     -          ->    -  -  -  10  11  12  30  -
 *
 * Growth copies a shard's slots in order into a larger array, removal pulls those behind back towards their homes; both
 * see tags only. At a load of 0.8 a look-up passes 3 slots (36 bytes) on average, at 0.64 it passes 2.
 *
 * Many keys are looked up as a pipeline, because a look-up is two cache misses, the slot's and the key's. While key i
 * is hashed and its slot prefetched, key i - 16 is walked to in the table and its full key prefetched, and key i - 32
 * is compared. So some 32 misses are under way at any time, about as many as a core can have. */
#include "catalog/index.h"

#include "base/plant.h"
#include "base/check.h"
#include "base/random.h"

#include <string.h>

#define EMPTY_TAG UINT32_MAX
#define SLACK_SLOTS                                                                                                    \
	32u /* at load 0.8 the overhang is 2 slots on average; 32 are exceeded by less than one shard in a million */
#define SHARD_SLOTS_MIN 16u
#define SHARD_SLOTS_MAX (1u << 30)
#define SHARD_KEYS_AIM 5000u /* keeps the copy of one shard short */
#define SHARDS_DEFAULT 2048u
#define PAGES_MIN 16u
#define STAGE_KEYS 16u
#define PROBES (4 * STAGE_KEYS) /* a power of two above the 2 * STAGE_KEYS that are under way */

static const struct fc_index_slot empty_slot = {EMPTY_TAG, {FC_SEGMENT_NONE, UINT32_MAX}};

/* ---- hash ---------------------------------------------------------------------------------------------------------
 */

/* Two rounds of a 64 x 64 -> 128 bit multiplication, all inputs and the result in between hidden by secrets: keys that
 * differ anywhere, in however regular a pattern, get unrelated hashes, and without the secrets nobody can find two that
 * do not. */
static uint64_t hash_key(const struct fc_index *index, struct fc_key key)
{
	uint64_t high = fc_is_planted(FC_PLANT_HALF_KEY) ? 0 : key.high;
	unsigned __int128 product = (unsigned __int128)(high ^ index->secret[0]) * (key.low ^ index->secret[1]);
	uint64_t upper = (uint64_t)(product >> 64) ^ index->secret[2];
	uint64_t lower = (uint64_t)product ^ index->secret[3];
	product = (unsigned __int128)upper * lower;
	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static struct fc_index_shard *shard_of(const struct fc_index *index, uint64_t hash)
{
	return &index->shards[hash & (index->shard_count - 1)];
}

static uint32_t tag_of(uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	return tag == EMPTY_TAG ? EMPTY_TAG - 1 : tag;
}

static uint32_t home_of(uint32_t tag, uint32_t size)
{
	return (uint32_t)(((uint64_t)tag * size) >> 32);
}

static struct fc_index_slot *home_slot(const struct fc_index_shard *shard, uint32_t tag)
{
	return &shard->slots[home_of(tag, shard->size)];
}

/* ---- keys of segments ---------------------------------------------------------------------------------------------
 */

static const struct fc_key *key_at(const struct fc_index *index, struct fc_location location)
{
	uint32_t page = location.segment / FC_INDEX_PAGE_SEGMENTS;
	return &index->pages[page]->keys[location.segment % FC_INDEX_PAGE_SEGMENTS][location.entry];
}

static bool has_keys(const struct fc_index *index, uint32_t segment)
{
	uint32_t page = segment / FC_INDEX_PAGE_SEGMENTS;
	return page < index->page_count && index->pages[page] != NULL &&
	       index->pages[page]->keys[segment % FC_INDEX_PAGE_SEGMENTS] != NULL;
}

static bool stands_at(const struct fc_index *index, struct fc_key key, struct fc_location location)
{
	return has_keys(index, location.segment) && fc_key_equals(*key_at(index, location), key);
}

static size_t pages_bytes(const struct fc_index *index)
{
	return index->page_count * sizeof(*index->pages);
}

static int grow_pages(struct fc_index *index, uint32_t page)
{
	uint64_t page_count = fc_max_u64(PAGES_MIN, 2 * (uint64_t)index->page_count);
	page_count = fc_max_u64(page_count, (uint64_t)page + 1);
	size_t bytes = page_count * sizeof(*index->pages);
	void *pages = fc_alloc_grow(&index->alloc, index->pages, pages_bytes(index), bytes);
	if (pages == NULL)
		return FC_ENOMEM;
	index->bytes += bytes - pages_bytes(index);
	index->pages = pages;
	index->page_count = (uint32_t)page_count;
	return 0;
}

int fc_index_segment_set(struct fc_index *index, uint32_t segment, const struct fc_key *keys)
{
	fc_check(segment != FC_SEGMENT_NONE && keys != NULL);
	uint32_t page = segment / FC_INDEX_PAGE_SEGMENTS;
	if (page >= index->page_count) {
		int code = grow_pages(index, page);
		if (code != 0)
			return code;
	}
	if (index->pages[page] == NULL) {
		index->pages[page] = fc_alloc_zeroed(&index->alloc, sizeof(struct fc_index_page));
		if (index->pages[page] == NULL)
			return FC_ENOMEM;
		index->bytes += sizeof(struct fc_index_page);
	}
	index->pages[page]->keys[segment % FC_INDEX_PAGE_SEGMENTS] = keys;
	return 0;
}

void fc_index_segment_clear(struct fc_index *index, uint32_t segment)
{
	fc_check(has_keys(index, segment));
	index->pages[segment / FC_INDEX_PAGE_SEGMENTS]->keys[segment % FC_INDEX_PAGE_SEGMENTS] = NULL;
}

/* ---- shards -------------------------------------------------------------------------------------------------------
 */

static size_t shard_bytes(uint32_t size)
{
	return ((size_t)size + SLACK_SLOTS) * sizeof(struct fc_index_slot);
}

/* At most 0.8 of the home slots are used. */
static uint32_t shard_capacity(uint32_t size)
{
	return size - size / 5;
}

/* Lays `from`'s slots out in `to`, which is at least as large, and whose array is another. The slack suffices as it did
 * before: a home slot is as far from the end in a larger shard as in a smaller one, or farther, so nothing is pushed
 * farther over the end. */
static void copy_slots(const struct fc_index_shard *from, struct fc_index_shard *to)
{
	uint32_t end = to->size + SLACK_SLOTS;
	uint32_t next = 0;
	const struct fc_index_slot *slot = from->slots;
	for (uint32_t left = from->count; left > 0; slot++) {
		if (slot->tag == EMPTY_TAG)
			continue;
		uint32_t home = home_of(slot->tag, to->size);
		while (next < home)
			to->slots[next++] = empty_slot;
		fc_check(next + 1 < end);
		to->slots[next++] = *slot;
		left--;
	}
	while (next < end)
		to->slots[next++] = empty_slot;
	to->count = from->count;
}

static int init_shard(struct fc_index *index, struct fc_index_shard *shard, uint32_t size)
{
	struct fc_index_shard none = {NULL, 0, 0};
	shard->slots = fc_alloc_zeroed(&index->alloc, shard_bytes(size));
	if (shard->slots == NULL)
		return FC_ENOMEM;
	shard->size = size;
	copy_slots(&none, shard);
	index->bytes += shard_bytes(size);
	return 0;
}

static void free_shard(struct fc_index *index, struct fc_index_shard *shard)
{
	if (shard->slots == NULL)
		return;
	fc_alloc_free(&index->alloc, shard->slots, shard_bytes(shard->size));
	index->bytes -= shard_bytes(shard->size);
	shard->slots = NULL;
}

/* By a quarter. */
static int grow_shard(struct fc_index *index, struct fc_index_shard *shard)
{
	struct fc_index_shard larger;
	if (shard->size > SHARD_SLOTS_MAX)
		return FC_ENOMEM;
	int code = init_shard(index, &larger, shard->size + shard->size / 4 + 1);
	if (code != 0)
		return code;
	copy_slots(shard, &larger);
	free_shard(index, shard);
	*shard = larger;
	return 0;
}

/* ---- init ---------------------------------------------------------------------------------------------------------
 */

static uint32_t shard_count_for(const struct fc_index_opts *opts)
{
	if (opts->shard_count != 0)
		return opts->shard_count;
	uint32_t shard_count = SHARDS_DEFAULT;
	while (opts->blocks_expected / shard_count > SHARD_KEYS_AIM && shard_count < FC_INDEX_SHARDS_MAX)
		shard_count *= 2;
	return shard_count;
}

/* The sizes of the shards are spread evenly over the quarter by which they grow, so their growth is spread over the
 * time in which the whole index grows by a quarter. The multiplier scatters neighbours; it is odd, so each place is
 * used once. */
static uint32_t staggered_size(const struct fc_index *index, uint32_t shard, uint64_t blocks_expected)
{
	uint32_t place = (shard * 0x9e3779b1u) & (index->shard_count - 1);
	uint64_t shard_keys = fc_min_u64(blocks_expected / index->shard_count, SHARD_SLOTS_MAX);
	uint64_t size = shard_keys * 5 / 4 + SHARD_SLOTS_MIN;
	size += size * place / index->shard_count / 4;
	return (uint32_t)fc_min_u64(size, SHARD_SLOTS_MAX);
}

static int init_shards(struct fc_index *index, uint64_t blocks_expected)
{
	size_t bytes = index->shard_count * sizeof(*index->shards);
	index->shards = fc_alloc_zeroed(&index->alloc, bytes);
	if (index->shards == NULL)
		return FC_ENOMEM;
	index->bytes += bytes;
	for (uint32_t i = 0; i < index->shard_count; i++) {
		int code = init_shard(index, &index->shards[i], staggered_size(index, i, blocks_expected));
		if (code != 0)
			return code;
	}
	return 0;
}

int fc_index_init(struct fc_index *index, const struct fc_alloc *alloc, const struct fc_index_opts *opts)
{
	memset(index, 0, sizeof(*index));
	if (opts->shard_count != 0 &&
	    (!fc_is_power_of_two(opts->shard_count) || opts->shard_count > FC_INDEX_SHARDS_MAX))
		return FC_EINVAL;
	index->alloc = *alloc;
	index->shard_count = shard_count_for(opts);
	for (size_t i = 0; i < fc_array_len(index->secret); i++) {
		uint64_t seed = opts->seed[i % 2] + i / 2 * 0x8ebc6af09c88c6e3ull;
		index->secret[i] = fc_random_split(&seed);
	}
	int code = init_shards(index, opts->blocks_expected);
	if (code != 0)
		fc_index_deinit(index);
	return code;
}

static void free_pages(struct fc_index *index)
{
	for (uint32_t page = 0; page < index->page_count; page++)
		fc_alloc_free(&index->alloc, index->pages[page], sizeof(struct fc_index_page));
	fc_alloc_free(&index->alloc, index->pages, pages_bytes(index));
}

void fc_index_deinit(struct fc_index *index)
{
	if (index->shards != NULL) {
		for (uint32_t i = 0; i < index->shard_count; i++)
			free_shard(index, &index->shards[i]);
		fc_alloc_free(&index->alloc, index->shards, index->shard_count * sizeof(*index->shards));
	}
	if (index->pages != NULL)
		free_pages(index);
	memset(index, 0, sizeof(*index));
}

/* ---- one key ------------------------------------------------------------------------------------------------------
 */

/* First slot from `slot` on whose tag is not smaller. */
static struct fc_index_slot *skip_smaller(struct fc_index_slot *slot, uint32_t tag)
{
	while (slot->tag < tag)
		slot++;
	return slot;
}

/* From the first slot with the key's tag: the slot that holds the key, or NULL. */
static struct fc_index_slot *verified(const struct fc_index *index, struct fc_index_slot *slot, uint32_t tag,
				      struct fc_key key)
{
	for (; slot->tag == tag; slot++) {
		if (fc_key_equals(*key_at(index, slot->location), key))
			return slot;
	}
	return NULL;
}

static struct fc_index_slot *slot_of(const struct fc_index *index, struct fc_key key, uint64_t hash)
{
	uint32_t tag = tag_of(hash);
	struct fc_index_slot *slot = skip_smaller(home_slot(shard_of(index, hash), tag), tag);
	return verified(index, slot, tag, key);
}

struct fc_location fc_index_find(const struct fc_index *index, struct fc_key key)
{
	const struct fc_index_slot *slot = slot_of(index, key, hash_key(index, key));
	return slot == NULL ? FC_LOCATION_NONE : slot->location;
}

/* ---- many keys ----------------------------------------------------------------------------------------------------
 */

struct probe {
	struct fc_key key;
	struct fc_index_slot *slot;
	uint32_t tag;
};

/* Hashes, and fetches the home slot and the line in which the walk mostly ends. */
static void probe_start(const struct fc_index *index, struct probe *probe, struct fc_key key)
{
	uint64_t hash = hash_key(index, key);
	probe->key = key;
	probe->tag = tag_of(hash);
	probe->slot = home_slot(shard_of(index, hash), probe->tag);
	__builtin_prefetch(probe->slot);
	__builtin_prefetch(probe->slot + 3);
}

/* Walks to the tag, and fetches the key that stands there. */
static void probe_walk(const struct fc_index *index, struct probe *probe)
{
	probe->slot = skip_smaller(probe->slot, probe->tag);
	if (probe->slot->tag == probe->tag)
		__builtin_prefetch(key_at(index, probe->slot->location));
}

static struct fc_location probe_end(const struct fc_index *index, const struct probe *probe)
{
	const struct fc_index_slot *slot = verified(index, probe->slot, probe->tag, probe->key);
	return slot == NULL ? FC_LOCATION_NONE : slot->location;
}

static uint64_t find_many(const struct fc_index *index, const struct fc_index_query *query, bool is_prefix,
			  struct fc_location *locations)
{
	struct probe probes[PROBES];
	uint64_t found_count = 0;
	for (uint64_t started = 0; started < query->count + 2 * STAGE_KEYS; started++) {
		uint64_t walked = started - STAGE_KEYS;
		uint64_t ended = started - 2 * STAGE_KEYS;
		if (started < query->count) {
			struct fc_key key = query->keys[started * query->stride];
			probe_start(index, &probes[started % PROBES], fc_entry_key(key, query->group));
		}
		if (started >= STAGE_KEYS && walked < query->count)
			probe_walk(index, &probes[walked % PROBES]);
		if (started < 2 * STAGE_KEYS)
			continue;
		locations[ended] = probe_end(index, &probes[ended % PROBES]);
		if (!fc_location_is_none(locations[ended]))
			found_count++;
		else if (is_prefix)
			break;
	}
	return found_count;
}

uint64_t fc_index_find_batch(const struct fc_index *index, const struct fc_index_query *query,
			     struct fc_location *locations)
{
	return find_many(index, query, false, locations);
}

uint64_t fc_index_find_prefix(const struct fc_index *index, const struct fc_index_query *query,
			      struct fc_location *locations)
{
	return find_many(index, query, true, locations);
}

/* ---- change -------------------------------------------------------------------------------------------------------
 */

/* Puts an entry in front of the first larger tag, moving what lies from there to the next empty slot by one. False when
 * that would take the last slot. */
static bool insert_slot(struct fc_index_shard *shard, struct fc_index_slot entry)
{
	struct fc_index_slot *slot = skip_smaller(home_slot(shard, entry.tag), entry.tag);
	struct fc_index_slot *empty = slot;
	while (empty->tag != EMPTY_TAG)
		empty++;
	if (empty == &shard->slots[shard->size + SLACK_SLOTS - 1])
		return false;
	memmove(slot + 1, slot, (size_t)(empty - slot) * sizeof(*slot));
	*slot = entry;
	shard->count++;
	return true;
}

int fc_index_insert(struct fc_index *index, struct fc_key key, struct fc_location location)
{
	uint64_t hash = hash_key(index, key);
	struct fc_index_shard *shard = shard_of(index, hash);
	struct fc_index_slot entry = {tag_of(hash), location};
	fc_check(stands_at(index, key, location));
	fc_check(slot_of(index, key, hash) == NULL);
	while (shard->count >= shard_capacity(shard->size) || !insert_slot(shard, entry)) {
		int code = grow_shard(index, shard);
		if (code != 0)
			return code;
	}
	index->count++;
	return 0;
}

struct fc_location fc_index_replace(struct fc_index *index, struct fc_key key, struct fc_location location)
{
	fc_check(stands_at(index, key, location));
	struct fc_index_slot *slot = slot_of(index, key, hash_key(index, key));
	if (slot == NULL)
		return FC_LOCATION_NONE;
	struct fc_location before = slot->location;
	slot->location = location;
	return before;
}

/* Closes the gap at `slot`: what lies behind moves back by one, up to the first slot that is empty or at home. */
static void remove_slot(struct fc_index_shard *shard, struct fc_index_slot *slot)
{
	struct fc_index_slot *end = slot + 1;
	while (end->tag != EMPTY_TAG && home_slot(shard, end->tag) != end)
		end++;
	memmove(slot, slot + 1, (size_t)(end - slot - 1) * sizeof(*slot));
	end[-1] = empty_slot;
	shard->count--;
}

bool fc_index_remove(struct fc_index *index, struct fc_key key, struct fc_location expected)
{
	uint64_t hash = hash_key(index, key);
	struct fc_index_slot *slot = slot_of(index, key, hash);
	if (slot == NULL || !fc_location_equals(slot->location, expected))
		return false;
	remove_slot(shard_of(index, hash), slot);
	index->count--;
	return true;
}

/* ---- check --------------------------------------------------------------------------------------------------------
 */

static void check_slot(const struct fc_index *index, const struct fc_index_shard *shard, uint32_t place)
{
	const struct fc_index_slot *slot = &shard->slots[place];
	uint32_t home = home_of(slot->tag, shard->size);
	fc_check(has_keys(index, slot->location.segment));
	struct fc_key key = *key_at(index, slot->location);
	uint64_t hash = hash_key(index, key);
	fc_check(shard_of(index, hash) == shard && tag_of(hash) == slot->tag);
	fc_check(home <= place);
	if (home < place) /* no gap in front of it, and sorted; by induction the walk from home arrives */
		fc_check(slot[-1].tag != EMPTY_TAG && slot[-1].tag <= slot->tag);
	for (const struct fc_index_slot *other = slot + 1; other->tag == slot->tag; other++)
		fc_check(!fc_key_equals(*key_at(index, other->location), key));
}

static void check_shard(const struct fc_index *index, const struct fc_index_shard *shard)
{
	uint32_t end = shard->size + SLACK_SLOTS;
	uint32_t count = 0;
	for (uint32_t place = 0; place < end; place++) {
		if (shard->slots[place].tag == EMPTY_TAG) {
			fc_check(fc_location_is_none(shard->slots[place].location));
			continue;
		}
		check_slot(index, shard, place);
		count++;
	}
	fc_check(shard->slots[end - 1].tag == EMPTY_TAG);
	fc_check(count == shard->count && count <= shard_capacity(shard->size));
}

void fc_index_check(const struct fc_index *index)
{
	uint64_t count = 0;
	uint64_t bytes = index->shard_count * sizeof(*index->shards) + pages_bytes(index);
	for (uint32_t i = 0; i < index->shard_count; i++) {
		check_shard(index, &index->shards[i]);
		count += index->shards[i].count;
		bytes += shard_bytes(index->shards[i].size);
	}
	for (uint32_t page = 0; page < index->page_count; page++)
		bytes += index->pages[page] == NULL ? 0 : sizeof(struct fc_index_page);
	fc_check(count == index->count);
	fc_check(bytes == index->bytes);
}

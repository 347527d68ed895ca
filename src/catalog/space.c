/* A bit map with a tree of free runs above it; see space.h for the picture and the placing rule.
 *
 * The words are the truth, the tree is derived from them. A leaf describes one word, and every node describes
 * 64 << height chunks, also where these lie behind the arena's end: there all bits are clear, that is, taken. */
#include "catalog/space.h"

#include "base/check.h"

#include <string.h>

#define WORD_CHUNKS 64u
#define ALL_FREE UINT64_MAX

/* ---- one word -----------------------------------------------------------------------------------------------------
 */

/* Bits [first, first + count) of a word; 1 <= count, first + count <= 64. */
static uint64_t bits_of(uint64_t first, uint64_t count)
{
	return (ALL_FREE >> (WORD_CHUNKS - count)) << first;
}

static uint32_t leading_run(uint64_t word)
{
	return word == ALL_FREE ? WORD_CHUNKS : (uint32_t)__builtin_ctzll(~word);
}

static uint32_t trailing_run(uint64_t word)
{
	return word == ALL_FREE ? WORD_CHUNKS : (uint32_t)__builtin_clzll(~word);
}

/* Bits at which a run of at least `count` set bits starts. Doubling the run length that is known to follow each bit
 * takes six steps instead of 64. */
static uint64_t run_starts(uint64_t word, uint32_t count)
{
	uint32_t known = 1;
	while (known < count && word != 0) {
		uint32_t step = known < count - known ? known : count - known;
		word &= word >> step;
		known += step;
	}
	return word;
}

static uint32_t longest_run(uint64_t word)
{
	uint32_t fits = 0;
	uint32_t too_long = WORD_CHUNKS + 1;
	while (too_long - fits > 1) {
		uint32_t count = (fits + too_long) / 2;
		if (run_starts(word, count) != 0)
			fits = count;
		else
			too_long = count;
	}
	return fits;
}

/* ---- the tree -----------------------------------------------------------------------------------------------------
 */

static struct fc_space_node leaf_of(uint64_t word)
{
	struct fc_space_node node = {longest_run(word), leading_run(word), trailing_run(word)};
	return node;
}

/* `child_chunks` is the length that each child describes. */
static struct fc_space_node parent_of(struct fc_space_node left, struct fc_space_node right, uint32_t child_chunks)
{
	struct fc_space_node node;
	uint32_t across = left.suffix + right.prefix;
	node.longest = left.longest > right.longest ? left.longest : right.longest;
	if (across > node.longest)
		node.longest = across;
	node.prefix = left.prefix == child_chunks ? child_chunks + right.prefix : left.prefix;
	node.suffix = right.suffix == child_chunks ? child_chunks + left.suffix : right.suffix;
	return node;
}

/* Derives the leaves of words [first, last] and everything above them. */
static void update_tree(struct fc_space *space, uint64_t first, uint64_t last)
{
	for (uint64_t word = first; word <= last; word++)
		space->nodes[space->leaf_count + word] = leaf_of(space->words[word]);
	first += space->leaf_count;
	last += space->leaf_count;
	for (uint32_t child_chunks = WORD_CHUNKS; first > 1; child_chunks *= 2) {
		first /= 2;
		last /= 2;
		for (uint64_t n = first; n <= last; n++)
			space->nodes[n] = parent_of(space->nodes[2 * n], space->nodes[2 * n + 1], child_chunks);
	}
}

/* ---- memory -------------------------------------------------------------------------------------------------------
 */

static uint64_t words_bytes(const struct fc_space *space)
{
	return space->leaf_count * sizeof(*space->words);
}
static uint64_t nodes_bytes(const struct fc_space *space)
{
	return 2 * space->leaf_count * sizeof(*space->nodes);
}

static uint64_t leaf_count_for(uint64_t chunk_count)
{
	uint64_t leaf_count = 1;
	while (leaf_count * WORD_CHUNKS < chunk_count)
		leaf_count *= 2;
	return leaf_count;
}

static void free_memory(struct fc_space *space)
{
	fc_alloc_free(&space->alloc, space->words, words_bytes(space));
	fc_alloc_free(&space->alloc, space->nodes, nodes_bytes(space));
	space->words = NULL;
	space->nodes = NULL;
}

/* All chunks taken. */
static int init_taken(struct fc_space *space, const struct fc_alloc *alloc, uint64_t chunk_count)
{
	memset(space, 0, sizeof(*space));
	if (chunk_count == 0 || chunk_count > FC_SPACE_CHUNKS_MAX)
		return FC_EINVAL;
	space->alloc = *alloc;
	space->chunk_count = chunk_count;
	space->leaf_count = leaf_count_for(chunk_count);
	space->words = fc_alloc_zeroed(alloc, words_bytes(space));
	space->nodes = fc_alloc_zeroed(alloc, nodes_bytes(space));
	if (space->words != NULL && space->nodes != NULL)
		return 0;
	free_memory(space);
	return FC_ENOMEM;
}

int fc_space_init(struct fc_space *space, const struct fc_alloc *alloc, uint64_t chunk_count)
{
	int code = init_taken(space, alloc, chunk_count);
	if (code == 0)
		fc_space_give(space, 0, chunk_count);
	return code;
}

void fc_space_deinit(struct fc_space *space)
{
	if (space->words != NULL)
		free_memory(space);
	memset(space, 0, sizeof(*space));
}

int fc_space_resize(struct fc_space *space, uint64_t chunk_count)
{
	uint64_t kept_count = fc_min_u64(chunk_count, space->chunk_count);
	if (chunk_count < space->chunk_count && !fc_space_is_free(space, chunk_count, space->chunk_count - chunk_count))
		return FC_EBUSY;
	struct fc_space resized;
	int code = init_taken(&resized, &space->alloc, chunk_count);
	if (code != 0)
		return code;
	uint64_t kept_words = (kept_count + WORD_CHUNKS - 1) / WORD_CHUNKS;
	memcpy(resized.words, space->words, kept_words * sizeof(*space->words));
	if (kept_count % WORD_CHUNKS != 0)
		resized.words[kept_words - 1] &= bits_of(0, kept_count % WORD_CHUNKS);
	resized.free_count = space->free_count - (space->chunk_count - kept_count);
	update_tree(&resized, 0, resized.leaf_count - 1);
	if (chunk_count > kept_count)
		fc_space_give(&resized, kept_count, chunk_count - kept_count);
	free_memory(space);
	*space = resized;
	return 0;
}

/* ---- change -------------------------------------------------------------------------------------------------------
 */

static bool is_inside(const struct fc_space *space, uint64_t first, uint64_t count)
{
	return first <= space->chunk_count && count <= space->chunk_count - first;
}

/* Turns all bits of a range from one state into the other. */
static void flip(struct fc_space *space, uint64_t first, uint64_t count, bool is_free_before)
{
	fc_check(count > 0 && is_inside(space, first, count));
	uint64_t behind = first + count;
	uint64_t first_word = first / WORD_CHUNKS;
	uint64_t last_word = (behind - 1) / WORD_CHUNKS;
	for (uint64_t word = first_word; word <= last_word; word++) {
		uint64_t from = fc_max_u64(first, word * WORD_CHUNKS);
		uint64_t to = fc_min_u64(behind, (word + 1) * WORD_CHUNKS);
		uint64_t bits = bits_of(from % WORD_CHUNKS, to - from);
		fc_check((space->words[word] & bits) == (is_free_before ? bits : 0));
		space->words[word] ^= bits;
	}
	update_tree(space, first_word, last_word);
}

void fc_space_take(struct fc_space *space, uint64_t first, uint64_t count)
{
	flip(space, first, count, true);
	space->free_count -= count;
}

void fc_space_give(struct fc_space *space, uint64_t first, uint64_t count)
{
	flip(space, first, count, false);
	space->free_count += count;
}

/* ---- questions ----------------------------------------------------------------------------------------------------
 */

uint64_t fc_space_free_after(const struct fc_space *space, uint64_t chunk)
{
	if (chunk >= space->chunk_count)
		return 0;
	uint64_t word = chunk / WORD_CHUNKS;
	uint64_t bit = chunk % WORD_CHUNKS;
	uint64_t run = leading_run(space->words[word] >> bit);
	if (run < WORD_CHUNKS - bit)
		return run;
	/* The run reaches the word's end. Whatever lies next to it is the sibling of the nearest node that is a left
	 * child. */
	uint64_t node_chunks = WORD_CHUNKS;
	for (uint64_t n = space->leaf_count + word; n > 1; n /= 2, node_chunks *= 2) {
		if (n % 2 != 0)
			continue;
		run += space->nodes[n + 1].prefix;
		if (space->nodes[n + 1].prefix < node_chunks)
			break;
	}
	return run;
}

bool fc_space_is_free(const struct fc_space *space, uint64_t first, uint64_t count)
{
	return is_inside(space, first, count) && (count == 0 || fc_space_free_after(space, first) >= count);
}

int fc_space_find_first(const struct fc_space *space, uint64_t count, uint64_t *first)
{
	fc_check(count > 0);
	if (space->nodes[1].longest < count)
		return FC_EFULL;
	uint64_t n = 1;
	uint64_t node_first = 0;
	uint64_t child_chunks = space->leaf_count * WORD_CHUNKS / 2;
	for (; n < space->leaf_count; child_chunks /= 2) {
		const struct fc_space_node *left = &space->nodes[2 * n];
		const struct fc_space_node *right = &space->nodes[2 * n + 1];
		if (left->longest >= count) {
			n = 2 * n;
			continue;
		}
		if ((uint64_t)left->suffix + right->prefix >= count) {
			*first = node_first + child_chunks - left->suffix;
			return 0;
		}
		n = 2 * n + 1;
		node_first += child_chunks;
	}
	uint64_t starts = run_starts(space->words[n - space->leaf_count], (uint32_t)count);
	*first = node_first + (uint64_t)__builtin_ctzll(starts);
	return 0;
}

uint64_t fc_space_largest(const struct fc_space *space, uint64_t *first)
{
	uint64_t longest = space->nodes[1].longest;
	uint64_t found = FC_CHUNK_NONE;
	if (longest > 0)
		fc_check(fc_space_find_first(space, longest, &found) == 0);
	if (first != NULL)
		*first = found;
	return longest;
}

int fc_space_place(const struct fc_space *space, uint64_t count, uint64_t near, uint64_t *first)
{
	fc_check(count > 0);
	if (near != FC_CHUNK_NONE && fc_space_free_after(space, near) >= count) {
		*first = near;
		return 0;
	}
	uint64_t run_first;
	uint64_t run = fc_space_largest(space, &run_first);
	uint64_t half = run / 2;
	bool is_roomy = run >= space->chunk_count / FC_SPACE_ROOMS && (run - half) / 2 >= count;
	if (!is_roomy)
		return fc_space_find_first(space, count, first);
	*first = run_first == 0 ? 0 : run_first + half;
	return 0;
}

/* ---- check --------------------------------------------------------------------------------------------------------
 */

static void check_node(const struct fc_space *space, uint64_t n, struct fc_space_node wanted)
{
	fc_check(space->nodes[n].longest == wanted.longest);
	fc_check(space->nodes[n].prefix == wanted.prefix);
	fc_check(space->nodes[n].suffix == wanted.suffix);
}

void fc_space_check(const struct fc_space *space)
{
	uint64_t free_count = 0;
	for (uint64_t word = 0; word < space->leaf_count; word++) {
		uint64_t first = word * WORD_CHUNKS;
		uint64_t inside = first < space->chunk_count ? fc_min_u64(space->chunk_count - first, WORD_CHUNKS) : 0;
		uint64_t outside_bits = inside == WORD_CHUNKS ? 0 : ALL_FREE << inside;
		fc_check((space->words[word] & outside_bits) == 0);
		free_count += (uint64_t)__builtin_popcountll(space->words[word]);
		check_node(space, space->leaf_count + word, leaf_of(space->words[word]));
	}
	fc_check(free_count == space->free_count);
	uint32_t child_chunks = WORD_CHUNKS;
	for (uint64_t level = space->leaf_count / 2; level > 0; level /= 2, child_chunks *= 2) {
		for (uint64_t n = level; n < 2 * level; n++)
			check_node(space, n, parent_of(space->nodes[2 * n], space->nodes[2 * n + 1], child_chunks));
	}
}

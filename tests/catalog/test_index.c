/* Does the index find what was put in, and only that; does it keep its books while it grows, shrinks and runs out of
 * memory; and do regular keys spread as well as random ones? */
#include "catalog/index.h"

#include "base/check.h"
#include "base/dies.h"
#include "base/random.h"
#include "base/tracked_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct tracked_alloc tracked;

static struct fc_index make_index(uint32_t shard_count)
{
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_index_opts opts = {.seed = {11, 22}, .shard_count = shard_count};
	struct fc_index index;
	assert_int_equal(fc_index_init(&index, &alloc, &opts), 0);
	return index;
}

static int no_memory_is_left(void **state)
{
	(void)state;
	uint64_t bytes = tracked.bytes;
	memset(&tracked, 0, sizeof(tracked));
	return bytes == 0 ? 0 : -1;
}

static void assert_location(struct fc_location location, uint32_t segment, uint32_t entry)
{
	assert_int_equal(location.segment, segment);
	assert_int_equal(location.entry, entry);
}

static struct fc_key numbered(uint64_t number)
{
	struct fc_key key = {0, number};
	return key;
}

static void insert(struct fc_index *index, struct fc_key key, uint32_t segment, uint32_t entry)
{
	struct fc_location location = {segment, entry};
	assert_int_equal(fc_index_insert(index, key, location), 0);
}

/* Keys first .. first + count - 1 as segment `segment`; all of them put into the index. */
static struct fc_key *add_segment(struct fc_index *index, uint32_t segment, uint64_t first, uint32_t count)
{
	struct fc_key *keys = malloc(count * sizeof(*keys));
	for (uint32_t e = 0; e < count; e++)
		keys[e] = numbered(first + e);
	assert_int_equal(fc_index_segment_set(index, segment, keys), 0);
	for (uint32_t e = 0; e < count; e++)
		insert(index, keys[e], segment, e);
	return keys;
}

/* ---- one key ------------------------------------------------------------------------------------------------------
 */

static void an_empty_index_finds_nothing(void **state)
{
	(void)state;
	struct fc_index index = make_index(1);
	assert_true(fc_location_is_none(fc_index_find(&index, numbered(1))));
	assert_false(fc_index_remove(&index, numbered(1), FC_LOCATION_NONE));
	assert_int_equal(fc_index_count(&index), 0);
	fc_index_check(&index);
	fc_index_deinit(&index);
}

static void keys_are_found_where_they_stand(void **state)
{
	(void)state;
	static const struct fc_key keys[] = {{1, 2}, {2, 1}, {0, 0}, {UINT64_MAX, UINT64_MAX}};
	static const struct fc_key more[] = {{7, 7}};
	struct fc_index index = make_index(4);
	assert_int_equal(fc_index_segment_set(&index, 70000, keys), 0); /* far from the others: another page */
	assert_int_equal(fc_index_segment_set(&index, 3, more), 0);
	for (uint32_t e = 0; e < 4; e++)
		insert(&index, keys[e], 70000, e);
	insert(&index, more[0], 3, 0);
	for (uint32_t e = 0; e < 4; e++)
		assert_location(fc_index_find(&index, keys[e]), 70000, e);
	assert_location(fc_index_find(&index, more[0]), 3, 0);
	assert_true(fc_location_is_none(fc_index_find(&index, (struct fc_key){1, 1})));
	assert_int_equal(fc_index_count(&index), 5);
	fc_index_check(&index);
	fc_index_deinit(&index);
}

static void groups_of_one_path_key_are_different_entries(void **state)
{
	(void)state;
	struct fc_key path_key = {0x1234, 0x5678};
	struct fc_key keys[FC_GROUPS_MAX];
	struct fc_index index = make_index(1);
	assert_int_equal(fc_index_segment_set(&index, 0, keys), 0);
	for (uint32_t group = 0; group < FC_GROUPS_MAX; group++) {
		keys[group] = fc_entry_key(path_key, group);
		assert_true(fc_key_equals(fc_entry_key(keys[group], group), path_key));
		insert(&index, keys[group], 0, group);
	}
	assert_true(fc_key_equals(keys[0], path_key));
	for (uint32_t group = 0; group < FC_GROUPS_MAX; group++) {
		struct fc_index_query query = {&path_key, 1, 1, group};
		struct fc_location location;
		assert_int_equal(fc_index_find_batch(&index, &query, &location), 1);
		assert_location(location, 0, group);
	}
	fc_index_deinit(&index);
}

static void a_replaced_key_points_at_its_newest_copy(void **state)
{
	(void)state;
	static const struct fc_key old_keys[] = {{5, 5}, {6, 6}};
	static const struct fc_key new_keys[] = {{9, 9}, {5, 5}};
	struct fc_location newer = {1, 1};
	struct fc_index index = make_index(1);
	assert_int_equal(fc_index_segment_set(&index, 0, old_keys), 0);
	assert_int_equal(fc_index_segment_set(&index, 1, new_keys), 0);
	insert(&index, old_keys[0], 0, 0);
	assert_location(fc_index_replace(&index, new_keys[1], newer), 0, 0);
	assert_location(fc_index_find(&index, old_keys[0]), 1, 1);
	assert_true(fc_location_is_none(fc_index_replace(&index, new_keys[0], (struct fc_location){1, 0})));
	assert_true(fc_location_is_none(fc_index_find(&index, new_keys[0])));
	assert_int_equal(fc_index_count(&index), 1);
	fc_index_segment_clear(&index, 0); /* nothing points at the old copy any more */
	fc_index_check(&index);
	fc_index_deinit(&index);
}

static void removal_spares_a_newer_copy(void **state)
{
	(void)state;
	static const struct fc_key keys[] = {{5, 5}, {6, 6}};
	struct fc_index index = make_index(1);
	assert_int_equal(fc_index_segment_set(&index, 2, keys), 0);
	insert(&index, keys[0], 2, 0);
	insert(&index, keys[1], 2, 1);
	assert_false(fc_index_remove(&index, keys[0], (struct fc_location){1, 0}));
	assert_false(fc_index_remove(&index, keys[0], (struct fc_location){2, 1}));
	assert_location(fc_index_find(&index, keys[0]), 2, 0);
	assert_true(fc_index_remove(&index, keys[0], (struct fc_location){2, 0}));
	assert_true(fc_location_is_none(fc_index_find(&index, keys[0])));
	assert_false(fc_index_remove(&index, keys[0], (struct fc_location){2, 0}));
	assert_location(fc_index_find(&index, keys[1]), 2, 1);
	assert_int_equal(fc_index_count(&index), 1);
	fc_index_check(&index);
	fc_index_deinit(&index);
}

static void a_moved_key_array_can_be_set_again(void **state)
{
	(void)state;
	struct fc_index index = make_index(1);
	struct fc_key *keys = add_segment(&index, 0, 100, 10);
	struct fc_key moved[10];
	memcpy(moved, keys, sizeof(moved));
	assert_int_equal(fc_index_segment_set(&index, 0, moved), 0);
	memset(keys, 0, sizeof(moved));
	free(keys);
	assert_location(fc_index_find(&index, numbered(107)), 0, 7);
	fc_index_check(&index);
	fc_index_deinit(&index);
}

/* ---- misuse is stopped --------------------------------------------------------------------------------------------
 */

static void insert_twice(void *context)
{
	(void)!fc_index_insert(context, numbered(1), (struct fc_location){0, 0});
}
static void insert_elsewhere(void *context)
{
	(void)!fc_index_insert(context, numbered(9), (struct fc_location){0, 0});
}
static void insert_without_keys(void *context)
{
	(void)!fc_index_insert(context, numbered(9), (struct fc_location){5, 0});
}
static void replace_elsewhere(void *context)
{
	fc_index_replace(context, numbered(1), (struct fc_location){0, 1});
}
static void clear_what_is_not_set(void *context)
{
	fc_index_segment_clear(context, 5);
}
static void check_after_clear(void *context)
{
	fc_index_segment_clear(context, 0);
	fc_index_check(context);
}

static void misuse_is_stopped(void **state)
{
	(void)state;
	struct fc_index index = make_index(1);
	struct fc_key *keys = add_segment(&index, 0, 1, 2);
	assert_true(dies(insert_twice, &index));
	assert_true(dies(insert_elsewhere, &index));
	assert_true(dies(insert_without_keys, &index));
	assert_true(dies(replace_elsewhere, &index));
	assert_true(dies(clear_what_is_not_set, &index));
	assert_true(dies(check_after_clear, &index));
	fc_index_deinit(&index);
	free(keys);
}

static void only_powers_of_two_are_shard_counts(void **state)
{
	(void)state;
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	static const uint32_t wrong[] = {3, 1000, FC_INDEX_SHARDS_MAX * 2, UINT32_MAX};
	for (size_t i = 0; i < fc_array_len(wrong); i++) {
		struct fc_index_opts opts = {.shard_count = wrong[i]};
		struct fc_index index;
		assert_int_equal(fc_index_init(&index, &alloc, &opts), FC_EINVAL);
	}
}

/* ---- many keys ----------------------------------------------------------------------------------------------------
 */

enum { path_keys = 1000 };

static void a_batch_tells_each_key_apart(void **state)
{
	(void)state;
	struct fc_index index = make_index(2);
	struct fc_key *keys = add_segment(&index, 4, 0, path_keys);
	struct fc_key path[path_keys];
	struct fc_location locations[path_keys];
	for (uint64_t i = 0; i < path_keys; i++)
		path[i] = numbered(i % 3 == 1 ? 1000000 + i : path_keys - 1 - i);
	for (uint64_t count = 0; count <= path_keys; count = count < 80 ? count + 1 : count + 307) {
		struct fc_index_query query = {path, 1, count, 0};
		assert_int_equal(fc_index_find_batch(&index, &query, locations), count - (count + 1) / 3);
		for (uint64_t i = 0; i < count; i++) {
			if (i % 3 == 1)
				assert_true(fc_location_is_none(locations[i]));
			else
				assert_location(locations[i], 4, (uint32_t)(path_keys - 1 - i));
		}
	}
	fc_index_deinit(&index);
	free(keys);
}

static void a_prefix_ends_at_the_first_missing_key(void **state)
{
	(void)state;
	static const uint64_t missing[] = {0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 100, 998, 999, path_keys};
	struct fc_index index = make_index(2);
	struct fc_key *keys = add_segment(&index, 0, 0, path_keys);
	struct fc_key path[path_keys + 1];
	for (size_t i = 0; i < fc_array_len(missing); i++) {
		struct fc_location locations[path_keys + 1];
		memset(locations, 0x55, sizeof(locations));
		for (uint64_t k = 0; k < path_keys; k++)
			path[k] = numbered(k);
		path[missing[i]] = numbered(5000000);
		struct fc_index_query query = {path, 1, path_keys, 0};
		assert_int_equal(fc_index_find_prefix(&index, &query, locations), missing[i]);
		for (uint64_t k = 0; k < missing[i]; k++)
			assert_location(locations[k], 0, (uint32_t)k);
		if (missing[i] + 1 < path_keys)
			assert_int_equal(locations[missing[i] + 1].segment, 0x55555555);
	}
	fc_index_deinit(&index);
	free(keys);
}

static void a_query_steps_over_keys(void **state)
{
	(void)state;
	struct fc_index index = make_index(1);
	struct fc_key *keys = add_segment(&index, 0, 0, 100);
	struct fc_location locations[100];
	struct fc_index_query query = {keys + 1, 2, 50, 0}; /* blocks that span two path blocks: keys 1, 3, ... 99 */
	assert_int_equal(fc_index_find_prefix(&index, &query, locations), 50);
	for (uint32_t i = 0; i < 50; i++)
		assert_location(locations[i], 0, 2 * i + 1);
	assert_int_equal(fc_index_find_batch(&index, &query, locations), 50);
	assert_location(locations[49], 0, 99);
	fc_index_deinit(&index);
	free(keys);
}

/* 300,000 keys in one shard: about 300,000^2 / 2^33 = 10 pairs share all 32 bits of their tags. */
static void keys_that_share_a_tag_are_told_apart(void **state)
{
	(void)state;
	enum { key_count = 300000 };
	struct fc_index index = make_index(1);
	struct fc_key *keys = add_segment(&index, 0, 0, key_count);
	struct fc_index_slot *slots = index.shards[0].slots;
	unsigned pair_count = 0;
	for (uint32_t i = 0; i + 1 < index.shards[0].size; i++) {
		if (slots[i].tag != slots[i + 1].tag || fc_location_is_none(slots[i].location))
			continue;
		struct fc_location first = slots[i].location;
		struct fc_location second = slots[i + 1].location;
		pair_count++;
		assert_location(fc_index_find(&index, keys[first.entry]), 0, first.entry);
		assert_location(fc_index_find(&index, keys[second.entry]), 0, second.entry);
		assert_true(fc_index_remove(&index, keys[first.entry], first));
		assert_true(fc_location_is_none(fc_index_find(&index, keys[first.entry])));
		assert_location(fc_index_find(&index, keys[second.entry]), 0, second.entry);
		insert(&index, keys[first.entry], 0, first.entry);
	}
	assert_in_range(pair_count, 1, 40);
	fc_index_check(&index);
	fc_index_deinit(&index);
	free(keys);
}

/* ---- growth and memory --------------------------------------------------------------------------------------------
 */

enum { segment_keys = 60 };

static void a_key_costs_at_most_forty_bytes(void **state)
{
	(void)state;
	enum { segment_count = 5000 };
	struct fc_index index = make_index(64);
	struct fc_key **segments = malloc(segment_count * sizeof(*segments));
	uint64_t before = 0, growth_count = 0, at_once_max = 0, at_once = 0;
	for (uint32_t s = 0; s < segment_count; s++) {
		segments[s] = add_segment(&index, s, (uint64_t)s * segment_keys, segment_keys);
		assert_int_equal(fc_index_bytes(&index), tracked.bytes);
		at_once = fc_index_bytes(&index) == before ? 0 : at_once + 1;
		at_once_max = fc_max_u64(at_once_max, at_once);
		growth_count += fc_index_bytes(&index) != before;
		before = fc_index_bytes(&index);
	}
	fc_index_check(&index);
	assert_int_equal(fc_index_count(&index), segment_count * segment_keys);
	double key_bytes = (double)fc_index_bytes(&index) / (double)fc_index_count(&index);
	assert_true(key_bytes > 12 / 0.8 && key_bytes < 12 / 0.63);
	assert_true(growth_count > 64 * 4);          /* shards grow one by one ... */
	assert_true(at_once_max < growth_count / 4); /* ... not all together */
	fc_index_deinit(&index);
	for (uint32_t s = 0; s < segment_count; s++)
		free(segments[s]);
	free(segments);
}

static void an_index_that_expects_its_blocks_does_not_grow(void **state)
{
	(void)state;
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_index_opts opts = {.seed = {1, 2}, .shard_count = 8, .blocks_expected = 40000};
	struct fc_index index;
	assert_int_equal(fc_index_init(&index, &alloc, &opts), 0);
	struct fc_key *keys = add_segment(&index, 0, 0, 1);
	uint64_t bytes = fc_index_bytes(&index);
	free(keys);
	keys = malloc(38000 * sizeof(*keys)); /* 5 % below: shards are not equally full */
	for (uint32_t e = 0; e < 38000; e++)
		keys[e] = numbered(e);
	assert_int_equal(fc_index_segment_set(&index, 0, keys), 0);
	for (uint32_t e = 1; e < 38000; e++)
		insert(&index, keys[e], 0, e);
	assert_int_equal(fc_index_bytes(&index), bytes);
	fc_index_deinit(&index);
	free(keys);
}

static void the_shard_count_follows_the_blocks_expected(void **state)
{
	(void)state;
	static const struct {
		uint64_t blocks;
		uint32_t shard_count;
	} cases[] = {{0, 2048}, {10000000, 2048}, {20000000, 4096}};
	for (size_t i = 0; i < fc_array_len(cases); i++) {
		struct fc_alloc alloc = tracked_alloc_interface(&tracked);
		struct fc_index_opts opts = {.blocks_expected = cases[i].blocks};
		struct fc_index index;
		assert_int_equal(fc_index_init(&index, &alloc, &opts), 0);
		assert_int_equal(index.shard_count, cases[i].shard_count);
		fc_index_deinit(&index);
	}
}

static void lack_of_memory_leaves_the_index_as_it_was(void **state)
{
	(void)state;
	struct fc_index index = make_index(1);
	struct fc_key keys[500];
	for (uint32_t e = 0; e < 500; e++)
		keys[e] = numbered(e);
	tracked.fail_at = tracked.call_count + 1;
	assert_int_equal(fc_index_segment_set(&index, 0, keys), FC_ENOMEM);
	tracked.fail_at = tracked.call_count + 2;
	assert_int_equal(fc_index_segment_set(&index, 0, keys), FC_ENOMEM);
	fc_index_check(&index);
	tracked.fail_at = 0;
	assert_int_equal(fc_index_segment_set(&index, 0, keys), 0);
	unsigned failure_count = 0;
	for (uint32_t e = 0; e < 500; e++) {
		tracked.fail_at = tracked.call_count + 1;
		int code = fc_index_insert(&index, keys[e], (struct fc_location){0, e});
		tracked.fail_at = 0;
		if (code == 0)
			continue;
		assert_int_equal(code, FC_ENOMEM);
		failure_count++;
		fc_index_check(&index);
		assert_int_equal(fc_index_count(&index), e);
		assert_int_equal(fc_index_bytes(&index), tracked.bytes);
		assert_true(fc_location_is_none(fc_index_find(&index, keys[e])));
		insert(&index, keys[e], 0, e);
	}
	assert_in_range(failure_count, 10, 20); /* 16 slots grow by quarters to 500 / 0.8 in about 16 steps */
	fc_index_check(&index);
	fc_index_deinit(&index);
}

static void init_survives_every_lack_of_memory(void **state)
{
	(void)state;
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_index_opts opts = {.shard_count = 4};
	struct fc_index index;
	for (uint64_t fail_at = 1; fail_at <= 5; fail_at++) {
		tracked = (struct tracked_alloc){.fail_at = fail_at};
		assert_int_equal(fc_index_init(&index, &alloc, &opts), FC_ENOMEM);
		assert_int_equal(tracked.bytes, 0);
	}
	tracked = (struct tracked_alloc){.fail_at = 6};
	assert_int_equal(fc_index_init(&index, &alloc, &opts), 0);
	fc_index_deinit(&index);
}

/* ---- spread -------------------------------------------------------------------------------------------------------
 */

/* Largest count of a shard when 64,000 keys fall into 64 shards: 1,000 on average, standard deviation 31. */
static uint32_t fullest_shard(struct fc_key (*make_key)(uint64_t number))
{
	enum { key_count = 64000 };
	struct fc_index index = make_index(64);
	struct fc_key *keys = malloc(key_count * sizeof(*keys));
	uint32_t fullest = 0;
	for (uint32_t e = 0; e < key_count; e++)
		keys[e] = make_key(e);
	assert_int_equal(fc_index_segment_set(&index, 0, keys), 0);
	for (uint32_t e = 0; e < key_count; e++)
		insert(&index, keys[e], 0, e);
	for (uint32_t s = 0; s < 64; s++)
		fullest = index.shards[s].count > fullest ? index.shards[s].count : fullest;
	fc_index_check(&index); /* no shard grew for want of slack: the loads are those of random keys */
	double key_bytes = (double)fc_index_bytes(&index) / key_count;
	assert_true(key_bytes < 12 / 0.6 + 1);
	fc_index_deinit(&index);
	free(keys);
	return fullest;
}

static struct fc_key low_bits(uint64_t number)
{
	return (struct fc_key){0, number};
}
static struct fc_key high_bits(uint64_t number)
{
	return (struct fc_key){number << 48, 0};
}
static struct fc_key strides(uint64_t number)
{
	return (struct fc_key){7, number << 20};
}
static struct fc_key both_halves(uint64_t number)
{
	return (struct fc_key){number, number};
}
static struct fc_key opposite_halves(uint64_t number)
{
	return (struct fc_key){number, ~number};
}
static struct fc_key grid(uint64_t number)
{
	return (struct fc_key){number / 256, number % 256};
}

static void regular_keys_spread_like_random_ones(void **state)
{
	(void)state;
	static struct fc_key (*const makers[])(uint64_t) = {low_bits,    high_bits,       strides,
							    both_halves, opposite_halves, grid};
	for (size_t i = 0; i < fc_array_len(makers); i++)
		assert_in_range(fullest_shard(makers[i]), 1001, 1160); /* five standard deviations */
}

static void the_seed_decides_where_keys_fall(void **state)
{
	(void)state;
	struct fc_index indexes[2];
	uint32_t counts[2][64];
	struct fc_key *keys[2];
	for (uint32_t i = 0; i < 2; i++) {
		struct fc_alloc alloc = tracked_alloc_interface(&tracked);
		struct fc_index_opts opts = {.seed = {1, i}, .shard_count = 64};
		assert_int_equal(fc_index_init(&indexes[i], &alloc, &opts), 0);
		keys[i] = add_segment(&indexes[i], 0, 0, 640);
		for (uint32_t s = 0; s < 64; s++)
			counts[i][s] = indexes[i].shards[s].count;
		fc_index_deinit(&indexes[i]);
		free(keys[i]);
	}
	assert_memory_not_equal(counts[0], counts[1], sizeof(counts[0]));
}

/* ---- against a plain array ----------------------------------------------------------------------------------------
 */

enum { model_keys = 3000, model_segments = 3 };

struct model {
	struct fc_index index;
	struct fc_key keys[model_segments][model_keys]; /* each segment holds every key, in an order of its own */
	uint32_t entry_of[model_segments][model_keys];
	struct fc_location locations[model_keys]; /* what the index should say of key k */
	uint64_t count;
};

static void model_init(struct model *model, struct fc_random *random)
{
	model->index = make_index(2);
	model->count = 0;
	for (uint32_t s = 0; s < model_segments; s++) {
		for (uint32_t k = 0; k < model_keys; k++) {
			uint32_t swap = (uint32_t)fc_random_below(random, k + 1);
			model->keys[s][k] = model->keys[s][swap];
			model->keys[s][swap] = numbered(k);
		}
		for (uint32_t e = 0; e < model_keys; e++)
			model->entry_of[s][model->keys[s][e].low] = e;
		assert_int_equal(fc_index_segment_set(&model->index, s, model->keys[s]), 0);
	}
	for (uint32_t k = 0; k < model_keys; k++)
		model->locations[k] = FC_LOCATION_NONE;
}

static void model_step(struct model *model, struct fc_random *random, bool is_filling)
{
	uint32_t k = (uint32_t)fc_random_below(random, model_keys);
	uint32_t s = (uint32_t)fc_random_below(random, model_segments);
	struct fc_location wanted = {s, model->entry_of[s][k]};
	struct fc_location present = model->locations[k];
	if (!fc_location_is_none(present) && fc_random_below(random, 4) < (is_filling ? 1 : 3)) {
		assert_int_equal(fc_index_remove(&model->index, numbered(k), wanted),
				 fc_location_equals(wanted, present));
		if (!fc_location_equals(wanted, present))
			assert_true(fc_index_remove(&model->index, numbered(k), present));
		model->locations[k] = FC_LOCATION_NONE;
		model->count--;
	} else if (!fc_location_is_none(present)) {
		assert_true(fc_location_equals(fc_index_replace(&model->index, numbered(k), wanted), present));
		model->locations[k] = wanted;
	} else if (is_filling || fc_random_below(random, 4) == 0) {
		insert(&model->index, numbered(k), wanted.segment, wanted.entry);
		model->locations[k] = wanted;
		model->count++;
	}
}

static void model_compare(const struct model *model)
{
	static struct fc_key path[model_keys];
	static struct fc_location locations[model_keys];
	for (uint32_t k = 0; k < model_keys; k++)
		path[k] = numbered(k);
	struct fc_index_query query = {path, 1, model_keys, 0};
	assert_int_equal(fc_index_find_batch(&model->index, &query, locations), model->count);
	assert_memory_equal(locations, model->locations, sizeof(locations));
	for (uint32_t k = 0; k < model_keys; k++)
		assert_true(fc_location_equals(fc_index_find(&model->index, numbered(k)), model->locations[k]));
	assert_int_equal(fc_index_count(&model->index), model->count);
	assert_int_equal(fc_index_bytes(&model->index), tracked.bytes);
	fc_index_check(&model->index);
}

static void random_changes_agree_with_a_plain_array(void **state)
{
	(void)state;
	static struct model model;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct fc_random random;
		fc_random_init(&random, seed);
		model_init(&model, &random);
		for (int phase = 0; phase < 8; phase++) {
			for (int step = 0; step < 4000; step++)
				model_step(&model, &random, phase % 2 == 0);
			model_compare(&model);
		}
		fc_index_deinit(&model.index);
	}
}

/* ---- the end of a shard -------------------------------------------------------------------------------------------
 */

static bool lies_behind(const struct fc_index_shard *shard, uint32_t slot, struct fc_location location)
{
	for (; shard->slots[slot].location.segment != FC_SEGMENT_NONE; slot++)
		if (fc_location_equals(shard->slots[slot].location, location))
			return true;
	return false;
}

/* Keys that all want the last home slot of a shard of 79 are pushed over its end, where 31 slots take them (one more
 * stays empty). The one after that makes the shard grow, although it is not half full. */
static void what_has_no_place_at_the_end_of_a_shard_makes_it_grow(void **state)
{
	(void)state;
	enum { KEYS = 36 };
	struct fc_key keys[KEYS];
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_index_opts opts = {.seed = {1, 2}, .shard_count = 1, .blocks_expected = 51};
	struct fc_index index;
	uint32_t found = 0;
	assert_int_equal(fc_index_init(&index, &alloc, &opts), 0);
	struct fc_index_shard *shard = &index.shards[0];
	assert_int_equal(shard->size, 51 * 5 / 4 + 16);
	uint32_t last = shard->size - 1;
	assert_int_equal(fc_index_segment_set(&index, 0, keys), 0);
	for (uint64_t number = 0; found < KEYS; number++) {
		struct fc_location location = {0, found};
		uint32_t size = shard->size;
		keys[found] = numbered(number);
		insert(&index, keys[found], 0, found);
		fc_index_check(&index);
		/* Only what the first size's last home slot would have got is kept; later ones are tried in vain. */
		bool is_last = size == last + 1 && shard->size == size && lies_behind(shard, last, location);
		if (is_last && found < 32)
			found++;
		else if (shard->size != size)
			break;
		else
			assert_true(fc_index_remove(&index, keys[found], location));
	}
	assert_int_equal(found, 32);
	assert_int_equal(shard->count, 33);
	assert_int_equal(shard->size, last + 1 + (last + 1) / 4 + 1);
	for (uint32_t entry = 0; entry <= found; entry++)
		assert_location(fc_index_find(&index, keys[entry]), 0, entry);
	fc_index_deinit(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_empty_index_finds_nothing, no_memory_is_left),
		cmocka_unit_test_teardown(keys_are_found_where_they_stand, no_memory_is_left),
		cmocka_unit_test_teardown(groups_of_one_path_key_are_different_entries, no_memory_is_left),
		cmocka_unit_test_teardown(a_replaced_key_points_at_its_newest_copy, no_memory_is_left),
		cmocka_unit_test_teardown(removal_spares_a_newer_copy, no_memory_is_left),
		cmocka_unit_test_teardown(a_moved_key_array_can_be_set_again, no_memory_is_left),
		cmocka_unit_test_teardown(misuse_is_stopped, no_memory_is_left),
		cmocka_unit_test_teardown(only_powers_of_two_are_shard_counts, no_memory_is_left),
		cmocka_unit_test_teardown(a_batch_tells_each_key_apart, no_memory_is_left),
		cmocka_unit_test_teardown(a_prefix_ends_at_the_first_missing_key, no_memory_is_left),
		cmocka_unit_test_teardown(a_query_steps_over_keys, no_memory_is_left),
		cmocka_unit_test_teardown(keys_that_share_a_tag_are_told_apart, no_memory_is_left),
		cmocka_unit_test_teardown(a_key_costs_at_most_forty_bytes, no_memory_is_left),
		cmocka_unit_test_teardown(an_index_that_expects_its_blocks_does_not_grow, no_memory_is_left),
		cmocka_unit_test_teardown(the_shard_count_follows_the_blocks_expected, no_memory_is_left),
		cmocka_unit_test_teardown(lack_of_memory_leaves_the_index_as_it_was, no_memory_is_left),
		cmocka_unit_test_teardown(init_survives_every_lack_of_memory, no_memory_is_left),
		cmocka_unit_test_teardown(regular_keys_spread_like_random_ones, no_memory_is_left),
		cmocka_unit_test_teardown(the_seed_decides_where_keys_fall, no_memory_is_left),
		cmocka_unit_test_teardown(what_has_no_place_at_the_end_of_a_shard_makes_it_grow, no_memory_is_left),
		cmocka_unit_test_teardown(random_changes_agree_with_a_plain_array, no_memory_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

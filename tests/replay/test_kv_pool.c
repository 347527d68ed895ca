/* The modelled engine's paged KV, and how long it is busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/world.h"
#include "replay/busy.h"
#include "replay/kv_pool.h"

#include <string.h>

enum { SLOTS = 100 };

static void slices_of_all_slots_lie_apart(void **state)
{
	(void)state;
	struct fc_kv_pool pool;
	struct fc_geometry geometry = geometry_hybrid(3);
	const uint64_t counts[FC_GROUPS_MAX] = {SLOTS, SLOTS / 2, 7, 1};
	assert_int_equal(fc_kv_pool_init(&pool, &geometry, counts, 1, NULL), FC_OK);
	memset(pool.memory, 0, pool.bytes);
	for (uint32_t group = 0; group < geometry.group_count; group++)
		for (uint32_t layer = 0; layer < geometry.layer_count; layer++)
			for (uint64_t slot = 0; slot <= counts[group]; slot++) {
				uint8_t *slice = fc_kv_pool_slice(&pool, group, layer, slot);
				for (uint64_t i = 0; i < geometry.groups[group].slice_bytes[layer]; i++) {
					assert_in_range(slice + i - pool.memory, 0, pool.bytes - 1);
					assert_int_equal(slice[i]++, 0);
				}
			}
	fc_kv_pool_deinit(&pool);
}

static void slots_are_handed_out_once_and_the_hole_never(void **state)
{
	(void)state;
	struct fc_kv_pool pool;
	struct fc_geometry geometry = geometry_plain(1);
	const uint64_t counts[FC_GROUPS_MAX] = {SLOTS};
	uint64_t slots[SLOTS];
	bool seen[SLOTS] = {false};
	assert_int_equal(fc_kv_pool_init(&pool, &geometry, counts, 1, NULL), FC_OK);
	assert_true(fc_kv_pool_has(&pool, counts));
	fc_kv_pool_take(&pool, 0, 60, slots);
	assert_false(fc_kv_pool_has(&pool, (const uint64_t[FC_GROUPS_MAX]){41}));
	fc_kv_pool_take(&pool, 0, 40, slots + 60);
	uint64_t neighbours = 0;
	for (int i = 0; i < SLOTS; i++) {
		assert_in_range(slots[i], 0, SLOTS - 1);
		assert_false(seen[slots[i]]);
		seen[slots[i]] = true;
		neighbours += i > 0 && slots[i] == slots[i - 1] + 1;
	}
	assert_in_range(neighbours, 0, 10); /* about one in a hundred by chance */
	assert_int_equal(fc_kv_pool_hole(&pool, 0), SLOTS);
	fc_kv_pool_give(&pool, 0, SLOTS, slots);
	assert_true(fc_kv_pool_has(&pool, counts));
	fc_kv_pool_deinit(&pool);
}

static void a_block_seldom_comes_back_to_its_slot(void **state)
{
	(void)state;
	struct fc_kv_pool pool;
	struct fc_geometry geometry = geometry_plain(1);
	uint64_t before[SLOTS], after[SLOTS], same = 0;
	assert_int_equal(fc_kv_pool_init(&pool, &geometry, (const uint64_t[FC_GROUPS_MAX]){SLOTS}, 1, NULL), FC_OK);
	fc_kv_pool_take(&pool, 0, SLOTS, before);
	fc_kv_pool_give(&pool, 0, SLOTS, before);
	fc_kv_pool_take(&pool, 0, SLOTS, after);
	for (int i = 0; i < SLOTS; i++)
		same += before[i] == after[i];
	assert_in_range(same, 0, 10);
	fc_kv_pool_deinit(&pool);
}

static void a_pool_beyond_all_memory_is_refused(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1);
	assert_int_equal(fc_kv_pool_bytes(&geometry, (const uint64_t[FC_GROUPS_MAX]){UINT64_MAX / 2}), UINT64_MAX);
}

static void busy_time_counts_overlaps_once_and_pauses_not_at_all(void **state)
{
	(void)state;
	struct fc_interval intervals[8];
	struct fc_busy busy = {.intervals = intervals};
	assert_int_equal(fc_busy_ns(&busy), 0);
	fc_busy_add(&busy, 100, 150);
	fc_busy_add(&busy, 10, 30);
	fc_busy_add(&busy, 20, 40);
	fc_busy_add(&busy, 12, 15); /* inside another */
	fc_busy_add(&busy, 40, 50); /* touches */
	assert_int_equal(fc_busy_ns(&busy), 40 + 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_of_all_slots_lie_apart),
		cmocka_unit_test(slots_are_handed_out_once_and_the_hole_never),
		cmocka_unit_test(a_block_seldom_comes_back_to_its_slot),
		cmocka_unit_test(a_pool_beyond_all_memory_is_refused),
		cmocka_unit_test(busy_time_counts_overlaps_once_and_pauses_not_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

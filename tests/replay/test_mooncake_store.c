/* The model of Mooncake's store, by the rules of v0.3.12: what is queued for SSD is pinned in DRAM, and what a
 * heartbeat leaves over is the first of the next. */
#define _GNU_SOURCE
#include "replay/policy/mooncake_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NUMBERS 4096u
#define BLOCK_BYTES 4096u
#define SECOND_NS 1000000000ull

struct scene {
	struct fc_world world;
	struct fc_hardware hardware;
	struct fc_machine machine;
	struct fc_policy_env env;
	struct fc_policy_stats stats;
	struct fc_mooncake_store store;
};

static void begin(struct scene *scene, uint64_t memory_blocks, uint64_t ssd_blocks, uint64_t bucket_objects)
{
	memset(scene, 0, sizeof(*scene));
	scene->hardware = (struct fc_hardware){
		.workers = 1,
		.ssd_count = 1,
		.ssd_stripe_bytes = 1 << 20,
		.ssd_write_bytes_per_s = SECOND_NS,
		.ssd_read_bytes_per_s = SECOND_NS,
		.dram_bytes_per_s = SECOND_NS,
	};
	assert_int_equal(fc_world_init(&scene->world), 0);
	assert_int_equal(fc_machine_init(&scene->machine, &scene->hardware, &scene->world), 0);
	scene->env = (struct fc_policy_env){
		.world = &scene->world,
		.machine = &scene->machine,
		.hardware = &scene->hardware,
		.block_bytes = BLOCK_BYTES,
		.number_max = NUMBERS,
	};
	struct fc_mooncake_store_opts opts = {
		.memory_bytes = memory_blocks * BLOCK_BYTES,
		.ssd_bytes = ssd_blocks * BLOCK_BYTES,
		.heartbeat_ns = 10 * SECOND_NS,
		.eviction_ns = 10000000,
		.bucket_bytes = 1 << 30,
		.bucket_objects = bucket_objects,
		.queue_max = 50000,
	};
	assert_int_equal(fc_mooncake_store_init(&scene->store, &scene->env, &opts, &scene->stats), 0);
}

static void end(struct scene *scene)
{
	fc_mooncake_store_deinit(&scene->store);
	fc_machine_deinit(&scene->machine);
	fc_world_deinit(&scene->world);
}

/* Until the next heartbeat has fired. */
static void beat(struct scene *scene)
{
	uint64_t due_ns = scene->store.heartbeat.due_ns;
	while (scene->store.heartbeat.due_ns == due_ns)
		assert_true(fc_world_step(&scene->world));
}

static void put(struct scene *scene, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fc_mooncake_put(&scene->store, first + i);
}

static uint32_t count_on_ssd(const struct scene *scene, uint32_t first, uint32_t count)
{
	uint32_t there = 0;
	for (uint32_t i = 0; i < count; i++)
		there += fc_mooncake_on_ssd(&scene->store, first + i);
	return there;
}

static void what_is_left_over_goes_first(void **state)
{
	struct scene scene;
	(void)state;
	begin(&scene, 2000, 2000, 10);
	for (uint32_t round = 0; round < 50; round++) {
		put(&scene, round * 13, 13);
		beat(&scene);
		assert_int_equal(count_on_ssd(&scene, 0, round * 13), round * 13); /* all but of this round */
		assert_int_equal(scene.store.queue_count, (round + 1) * 13 % 10);
	}
	assert_int_equal(scene.stats.bytes_lost, 0);
	end(&scene);
}

static void what_is_queued_is_not_evicted(void **state)
{
	struct scene scene;
	(void)state;
	begin(&scene, 100, 2000, 10);
	put(&scene, 0, 130); /* what finds no room fails, instead of pushing out what is to be written */
	assert_int_equal(scene.store.memory.count, 100);
	assert_int_equal(scene.store.queue_count, 100);
	assert_int_equal(scene.stats.bytes_lost, 0);
	beat(&scene);
	assert_int_equal(count_on_ssd(&scene, 0, 100), 100);
	put(&scene, 200, 60); /* now they may go, and their copies stay */
	assert_int_equal(count_on_ssd(&scene, 0, 100), 100);
	for (uint32_t i = 200; i < 260; i++)
		assert_true(fc_mooncake_in_memory(&scene.store, i));
	assert_int_equal(scene.stats.bytes_lost, 0);
	end(&scene);
}

/* Without an SSD nothing is queued, and nothing pinned. */
static void without_an_ssd_the_oldest_go(void **state)
{
	struct scene scene;
	(void)state;
	begin(&scene, 100, 0, 10);
	put(&scene, 0, 200);
	assert_true(fc_mooncake_in_memory(&scene.store, 199));
	assert_false(fc_mooncake_in_memory(&scene.store, 0));
	assert_true(scene.stats.bytes_lost > 0);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_over_goes_first),
		cmocka_unit_test(what_is_queued_is_not_evicted),
		cmocka_unit_test(without_an_ssd_the_oldest_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The public interface as an engine uses it: from several threads, by waiting or by events, and stopped at any moment.
 */
#include "store/store_world.h"
#include "clock/clock.h"
#include "lib/hang.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define THREADS 6
#define ROUNDS 12
#define BLOCKS 16

/* ---- many threads ---- */

struct worker {
	pthread_t thread;
	struct store_world *world;
	uint64_t number;
	uint64_t failures;
};

/* Its own memory, its own conversations. */
static void *save_and_load(void *context)
{
	struct worker *worker = context;
	struct store_world mine = *worker->world;
	struct fc_key keys[BLOCKS];
	engine_init(&mine.engine, &mine.geometry, BLOCKS, 1);
	assert_int_equal(fc_kv_register(mine.store, mine.engine.layers, &mine.kv, NULL), 0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t session = worker->number * 1000 + round;
		path_keys(session + 1, 0, keys, BLOCKS);
		worker->failures += store_world_save(&mine, session, 0, keys, BLOCKS / 2).code != FC_OK;
		worker->failures += store_world_save(&mine, session, 1, keys, BLOCKS).code != FC_OK;
		worker->failures += store_world_load(&mine, keys, BLOCKS).blocks != BLOCKS;
		struct fc_match match;
		worker->failures += fc_match(mine.store, keys, BLOCKS, &match) != FC_OK || match.blocks != BLOCKS;
	}
	fc_kv_free(mine.kv);
	engine_deinit(&mine.engine);
	return NULL;
}

static void many_threads_use_one_store(void **state)
{
	(void)state;
	struct store_world world;
	struct worker workers[THREADS];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	world.opts.memory_bytes = 4 * MIB;
	store_world_open(&world);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.world = &world, .number = i + 1};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, save_and_load, &workers[i]), 0);
	}
	for (uint64_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].failures, 0);
	}
	struct fc_stats stats = store_world_stats(&world);
	assert_int_equal(stats.blocks, THREADS * ROUNDS * BLOCKS);
	assert_int_equal(stats.loads, THREADS * ROUNDS);
	assert_int_equal(stats.saves, THREADS * ROUNDS * 2);
	assert_int_equal(stats.leases + stats.loads_active, 0);
	assert_int_equal(stats.checksum_failures + stats.io_errors, 0);
	store_world_deinit(&world);
}

/* ---- events ---- */

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static void events_tell_what_happened_and_the_descriptor_when(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_event event;
	int tag;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	assert_false(is_readable(fc_store_fd(world.store), 0));
	assert_int_equal(fc_store_events(world.store, &event, 1), 0);
	struct fc_save_opts save_opts = store_world_save_opts(&world, 1, 0, keys, BLOCKS);
	save_opts.user = &tag;
	engine_fill(&world.engine, keys, BLOCKS);
	struct fc_save *save = store_world_submit_save(&world, &save_opts);
	const enum fc_event_kind wanted[] = {FC_EVENT_SAVED, FC_EVENT_DURABLE};
	for (int i = 0; i < 2; i++) {
		assert_true(is_readable(fc_store_fd(world.store), HANG_MS));
		while (fc_store_events(world.store, &event, 1) == 0)
			assert_true(is_readable(fc_store_fd(world.store), HANG_MS));
		assert_int_equal(event.kind, wanted[i]);
		assert_ptr_equal(event.save, save);
		assert_ptr_equal(event.user, &tag);
		assert_null(event.load);
	}
	fc_save_free(save);
	engine_wipe(&world.engine);
	struct fc_load_opts load_opts = store_world_load_opts(&world, keys, BLOCKS);
	load_opts.user = &world;
	struct fc_load *load = store_world_submit_load(&world, &load_opts);
	uint32_t layers = 0;
	do {
		assert_true(is_readable(fc_store_fd(world.store), HANG_MS));
		if (fc_store_events(world.store, &event, 1) == 0)
			continue;
		assert_ptr_equal(event.load, load);
		assert_ptr_equal(event.user, &world);
		if (event.kind != FC_EVENT_LAYER)
			continue;
		assert_int_equal(event.layer, layers++);
		assert_int_equal(event.blocks, BLOCKS);
		assert_true(engine_has_layer(&world.engine, keys, BLOCKS, event.layer));
	} while (event.kind != FC_EVENT_LOADED);
	assert_int_equal(layers, 3);
	assert_int_equal(fc_store_events(world.store, &event, 1), 0);
	assert_false(is_readable(fc_store_fd(world.store), 0));
	fc_load_free(load);
	store_world_deinit(&world);
}

static void the_events_of_a_freed_request_are_gone(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_event events[16];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	assert_int_equal(store_world_save(&world, 1, 0, keys, BLOCKS).code, 0);
	store_world_load(&world, keys, BLOCKS);
	assert_int_equal(fc_store_events(world.store, events, 16), 0);
	assert_false(is_readable(fc_store_fd(world.store), 0));
	store_world_deinit(&world);
}

static void ready_loads_are_taken_in_order_of_arrival(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[3][BLOCKS];
	struct fc_load *loads[3], *taken;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	assert_int_equal(fc_ready_take(world.store, &taken), FC_EAGAIN);
	for (uint64_t i = 0; i < 3; i++) {
		path_keys(i + 1, 0, keys[i], BLOCKS);
		assert_int_equal(store_world_save(&world, i + 1, 0, keys[i], BLOCKS).code, 0);
	}
	uint64_t arrival = fc_clock_real_ns();
	for (uint64_t i = 0; i < 3; i++) {
		struct fc_load_opts opts = store_world_load_opts(&world, keys[i], BLOCKS);
		opts.is_started_when_ready = false;
		opts.arrival_ns = arrival - i; /* the last submitted came first */
		loads[i] = store_world_submit_load(&world, &opts);
		assert_int_equal(fc_load_wait(loads[i], NULL), 0);
	}
	for (int i = 2; i >= 0; i--) {
		assert_int_equal(fc_ready_take(world.store, &taken), 0);
		assert_ptr_equal(taken, loads[i]);
	}
	assert_int_equal(fc_ready_take(world.store, &taken), FC_EAGAIN);
	for (int i = 0; i < 3; i++)
		fc_load_free(loads[i]);
	store_world_deinit(&world);
}

/* ---- cancel and free ---- */

static void requests_can_be_cancelled_and_freed_at_any_point(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS], other[BLOCKS];
	store_world_init(&world, geometry_plain(1000), BLOCKS);
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	assert_int_equal(store_world_save(&world, 1, 0, keys, BLOCKS).code, 0);
	engine_fill(&world.engine, keys, BLOCKS);
	for (uint64_t pause_us = 0; pause_us < 400; pause_us += 8) {
		struct fc_load_opts load_opts = store_world_load_opts(&world, keys, BLOCKS);
		load_opts.is_started_when_ready = pause_us % 16 == 0;
		struct fc_load *load = store_world_submit_load(&world, &load_opts);
		path_keys(100 + pause_us, 0, other, BLOCKS);
		struct fc_save_opts save_opts = store_world_save_opts(&world, 100 + pause_us, 0, other, BLOCKS);
		struct fc_save *save = store_world_submit_save(&world, &save_opts);
		usleep((useconds_t)pause_us);
		if (pause_us % 3 == 0) {
			fc_load_cancel(load);
			fc_save_cancel(save);
		}
		fc_load_free(load);
		fc_save_free(save);
	}
	fc_load_free(NULL);
	fc_save_free(NULL);
	assert_int_equal(fc_store_sync(world.store, &world.error), 0);
	struct fc_stats stats = store_world_stats(&world);
	assert_int_equal(stats.leases + stats.loads_active + stats.saves_active, 0);
	assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, BLOCKS);
	store_world_deinit(&world);
}

static void a_load_that_was_cancelled_says_so(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_load_result result;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	world.opts.memory_bytes = 4 * MIB;
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	assert_int_equal(store_world_save(&world, 1, 1, keys, BLOCKS).code, 0);
	struct fc_load_opts opts = store_world_load_opts(&world, keys, BLOCKS);
	opts.is_started_when_ready = false;
	struct fc_load *load = store_world_submit_load(&world, &opts); /* in memory: it waits to be taken */
	fc_load_cancel(load);
	assert_int_equal(fc_load_wait(load, &result), FC_ECANCELED);
	assert_int_equal(result.blocks, 0);
	assert_string_equal(result.error.text, "load: cancelled");
	fc_load_free(load);
	store_world_deinit(&world);
}

/* ---- closing ---- */

static void *wait_for_load(void *load)
{
	struct fc_load_result result;
	(void)fc_load_wait(load, &result);
	return (void *)(intptr_t)result.code;
}

/* Loads in memory that nobody takes would wait for ever. */
static void closing_ends_what_is_open_and_its_owners_may_free_it_later(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_load *loads[3];
	pthread_t waiter;
	void *code;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	world.opts.memory_bytes = 4 * MIB;
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	assert_int_equal(store_world_save(&world, 1, 1, keys, BLOCKS).code, 0);
	struct fc_load_opts opts = store_world_load_opts(&world, keys, BLOCKS);
	opts.is_started_when_ready = false;
	for (int i = 0; i < 3; i++)
		loads[i] = store_world_submit_load(&world, &opts);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_load, loads[0]), 0);
	struct fc_save_opts save_opts = store_world_save_opts(&world, 2, 0, keys, BLOCKS);
	struct fc_save *save = store_world_submit_save(&world, &save_opts);
	assert_int_equal(fc_save_wait(save, true, NULL), 0);
	fc_store_close(world.store); /* three loads and a save are there */
	world.store = NULL;
	pthread_join(waiter, &code);
	assert_int_equal((intptr_t)code, FC_ECANCELED);
	struct fc_load_result result;
	assert_int_equal(fc_load_wait(loads[1], &result), FC_ECANCELED);
	fc_load_cancel(loads[2]);
	for (int i = 0; i < 3; i++)
		fc_load_free(loads[i]);
	struct fc_save_result save_result;
	assert_int_equal(fc_save_wait(save, true, &save_result), 0);
	fc_save_free(save);
	fc_kv_free(world.kv);
	store_world_deinit(&world);
}

static void closing_at_any_moment_leaves_a_store_that_opens(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	store_world_init(&world, geometry_plain(1000), BLOCKS);
	for (uint64_t round = 0; round < 20; round++) {
		store_world_open(&world);
		path_keys(1, 0, keys, BLOCKS);
		engine_fill(&world.engine, keys, BLOCKS);
		struct fc_save_opts save_opts = store_world_save_opts(&world, 1, 0, keys, BLOCKS);
		struct fc_save *save = store_world_submit_save(&world, &save_opts);
		struct fc_load_opts load_opts = store_world_load_opts(&world, keys, BLOCKS);
		struct fc_load *load = store_world_submit_load(&world, &load_opts);
		usleep((useconds_t)(round * 50));
		fc_store_close(world.store);
		fc_load_free(load);
		fc_save_free(save);
		fc_kv_free(world.kv);
	}
	store_world_open(&world);
	assert_int_equal(store_world_save(&world, 1, 0, keys, BLOCKS).code, 0);
	assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, BLOCKS);
	store_world_deinit(&world);
}

static atomic_bool is_over;

static void *sync_often(void *context)
{
	struct store_world *world = context;
	intptr_t failures = 0;
	while (!is_over)
		failures += fc_store_sync(world->store, NULL) != FC_OK;
	return (void *)failures;
}

static void a_sync_waits_for_what_was_saved_before_it(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	pthread_t syncer;
	void *failures;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	is_over = false;
	assert_int_equal(pthread_create(&syncer, NULL, sync_often, &world), 0);
	for (uint64_t i = 0; i < 30; i++) {
		struct fc_save_result result;
		path_keys(i + 1, 0, keys, BLOCKS);
		struct fc_save_opts opts = store_world_save_opts(&world, i + 1, 0, keys, BLOCKS);
		struct fc_save *save = store_world_submit_save(&world, &opts);
		assert_int_equal(fc_store_sync(world.store, &world.error), 0);
		assert_int_equal(fc_save_wait(save, true, &result), 0); /* returns at once */
		assert_true(result.is_durable);
		fc_save_free(save);
	}
	is_over = true;
	pthread_join(syncer, &failures);
	assert_int_equal((intptr_t)failures, 0);
	store_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_use_one_store),
		cmocka_unit_test(events_tell_what_happened_and_the_descriptor_when),
		cmocka_unit_test(the_events_of_a_freed_request_are_gone),
		cmocka_unit_test(ready_loads_are_taken_in_order_of_arrival),
		cmocka_unit_test(requests_can_be_cancelled_and_freed_at_any_point),
		cmocka_unit_test(a_load_that_was_cancelled_says_so),
		cmocka_unit_test(closing_ends_what_is_open_and_its_owners_may_free_it_later),
		cmocka_unit_test(closing_at_any_moment_leaves_a_store_that_opens),
		cmocka_unit_test(a_sync_waits_for_what_was_saved_before_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

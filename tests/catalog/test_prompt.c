/* Is a shared prompt written to memory when it becomes shared, once, and does it outlive whoever wrote it first? */
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SHARED 6u

static struct world world;
static struct fc_key first[16], second[16], third[16];

static void open_world(uint64_t memory_chunks, uint64_t ssd_chunks)
{
	world_init(&world, geometry_plain(1), memory_chunks, ssd_chunks);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, first, 16);
	memcpy(second, first, sizeof(second));
	memcpy(third, first, sizeof(third));
	path_keys(2, SHARED, second, 16);
	path_keys(3, SHARED, third, 16);
}

static uint64_t save_shared(uint64_t session, const struct fc_key *path, uint64_t count, uint64_t shared_blocks)
{
	struct put put;
	put_init(&put, &world, session, 0, path, count);
	put.turn.shared_blocks = shared_blocks;
	assert_int_equal(put_reserve(&put), 0);
	uint64_t grants = put.reservation.grant_count;
	assert_int_equal(put_finish(&put), 0);
	world_drain(&world);
	assert_int_equal(put.durable_code, 0);
	put_deinit(&put);
	world_check(&world);
	return grants;
}

static void evict(uint64_t session)
{
	struct fc_session_id id = {0, session};
	assert_int_equal(fc_catalog_evict(world.catalog, id), 0);
	world_drain(&world);
	world_check(&world);
}

static void a_prompt_moves_to_memory_when_a_second_session_needs_it(void **state)
{
	(void)state;
	open_world(16, 16);
	assert_int_equal(save(&world, 1, 0, first, 10), 0);
	assert_string_equal(picture(&world, first, 16), "10");
	/* To SSD for the next start, to memory to be read, and the turn itself. */
	assert_int_equal(save_shared(2, second, 8, SHARED), 3);
	assert_string_equal(picture(&world, second, 16), "m6 2");
	assert_string_equal(picture(&world, first, 16), "m6 4");
	assert_int_equal(stored(&world, first, 16), 10);
	assert_int_equal(stored(&world, second, 16), 8);
	assert_int_equal(world_sessions(&world), 3);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 1);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 3);
	world_deinit(&world);
}

static void the_copy_on_ssd_comes_first(void **state)
{
	(void)state;
	struct put put;
	open_world(16, 16);
	put_init(&put, &world, 1, 0, first, 10);
	put.turn.shared_blocks = SHARED;
	assert_int_equal(put_reserve(&put), 0);
	assert_int_equal(put.reservation.grant_count, 3);
	assert_int_equal(fc_gva_medium(put.reservation.grants[0].placed.base), FC_SSD);
	assert_int_equal(fc_gva_medium(put.reservation.grants[1].placed.base), FC_MEMORY);
	assert_int_equal(put.reservation.grants[0].placed.shape->ranges[0].count, SHARED);
	assert_int_equal(put.reservation.grants[1].placed.shape->ranges[0].count, SHARED);
	assert_int_equal(put.reservation.grants[2].placed.shape->ranges[0].block_first, SHARED);
	put_abort(&put);
	put_deinit(&put);
	assert_int_equal(world_sessions(&world), 0);
	world_deinit(&world);
}

static void evicting_who_wrote_it_first_cuts_nobody_else(void **state)
{
	(void)state;
	open_world(16, 16);
	assert_int_equal(save(&world, 1, 0, first, 10), 0);
	save_shared(2, second, 8, SHARED);
	evict(1);
	assert_int_equal(stored(&world, second, 16), 8);
	assert_int_equal(stored(&world, first, 16), SHARED);
	world_deinit(&world);
}

static void after_a_restart_it_is_read_from_ssd_and_moves_again(void **state)
{
	(void)state;
	open_world(16, 16);
	assert_int_equal(save(&world, 1, 0, first, 10), 0);
	save_shared(2, second, 8, SHARED);
	evict(1);
	world_crash(&world, 3);
	assert_int_equal(world_open(&world), 0);
	world_check(&world);
	assert_string_equal(picture(&world, second, 16), "6 2");
	assert_int_equal(stored(&world, second, 16), 8);
	assert_int_equal(save_shared(3, third, 8, SHARED), 2); /* the copy on SSD is there */
	assert_string_equal(picture(&world, second, 16), "m6 2");
	assert_string_equal(picture(&world, third, 16), "m6 2");
	world_deinit(&world);
}

static void it_is_promoted_once(void **state)
{
	(void)state;
	open_world(16, 16);
	save_shared(1, first, 10, SHARED);
	assert_int_equal(save_shared(2, second, 8, SHARED), 1);
	assert_int_equal(save_shared(3, third, 8, SHARED), 1);
	assert_int_equal(save_shared(3, third, 8, SHARED), 0);
	assert_int_equal(world_chunks_used(&world, FC_MEMORY), 1);
	assert_int_equal(world_chunks_used(&world, FC_SSD), 4);
	world_deinit(&world);
}

static void a_longer_prompt_stands_on_the_shorter_one(void **state)
{
	(void)state;
	open_world(16, 16);
	save_shared(1, first, 10, 4);
	assert_string_equal(picture(&world, first, 16), "m4 6");
	assert_int_equal(save_shared(2, first, 12, 8), 3); /* [4, 8) twice, and the turn */
	assert_string_equal(picture(&world, first, 16), "m4 m4 2 2");
	assert_int_equal(stored(&world, first, 16), 12);
	world_deinit(&world);
}

/* A chat may lie in memory as a whole. The prompt must not go when the chat goes, and is not written twice. */
static void a_prompt_in_a_chats_memory_gets_a_copy_of_its_own(void **state)
{
	(void)state;
	open_world(16, 16);
	assert_int_equal(save(&world, 1, 1, first, 10), 0);
	assert_string_equal(picture(&world, first, 16), "m10");
	assert_int_equal(save_shared(2, second, 8, SHARED), 3);
	assert_string_equal(picture(&world, first, 16), "m6 m4");
	assert_int_equal(save_shared(3, third, 8, SHARED), 1);
	evict(1);
	assert_int_equal(stored(&world, second, 16), 8);
	assert_int_equal(stored(&world, third, 16), 8);
	world_deinit(&world);
}

static void without_room_in_memory_it_stays_on_ssd(void **state)
{
	(void)state;
	struct fc_path lease = {0};
	struct fc_key chat[4];
	open_world(1, 16);
	path_keys(9, 0, chat, 4);
	assert_int_equal(save(&world, 9, 1, chat, 4), 0);
	assert_int_equal(fc_catalog_match(world.catalog, chat, 4, 0, true, &lease), 0); /* memory is full, and read */
	assert_int_equal(save_shared(1, first, 10, SHARED), 2);
	assert_string_equal(picture(&world, first, 16), "6 4");
	assert_int_equal(save_shared(2, second, 8, SHARED), 1); /* the copy on SSD is not written again */
	assert_string_equal(picture(&world, second, 16), "6 2");
	fc_catalog_release(world.catalog, &lease);
	fc_path_deinit(&lease, &world.alloc);
	assert_int_equal(save_shared(3, third, 8, SHARED), 2); /* now there is room */
	assert_string_equal(picture(&world, second, 16), "m6 2");
	world_deinit(&world);
}

static void under_pressure_memory_gives_it_back_to_ssd(void **state)
{
	(void)state;
	struct fc_key chat[4];
	open_world(1, 16);
	save_shared(1, first, 10, SHARED);
	assert_string_equal(picture(&world, first, 16), "m6 4");
	path_keys(9, 0, chat, 4);
	assert_int_equal(save(&world, 9, 1, chat, 4), 0);
	assert_string_equal(picture(&world, chat, 4), "m4");
	assert_string_equal(picture(&world, first, 16), "6 4");
	assert_int_equal(stored(&world, first, 16), 10);
	world_check(&world);
	world_deinit(&world);
}

static void memory_that_survives_needs_no_copy_on_ssd(void **state)
{
	(void)state;
	world_init(&world, geometry_plain(1), 16, 16);
	world_make_memory_durable(&world);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, first, 16);
	save_shared(1, first, 10, SHARED);
	assert_string_equal(picture(&world, first, 16), "m6 4");
	assert_int_equal(world_chunks_used(&world, FC_SSD), 1);
	assert_int_equal(world_reopen(&world, 0), 0);
	assert_string_equal(picture(&world, first, 16), "m6 4");
	assert_int_equal(stored(&world, first, 16), 10);
	world_check(&world);
	world_deinit(&world);
}

static void its_end_is_a_resume_point(void **state)
{
	(void)state;
	world_init(&world, geometry_hybrid(1), 16, 32);
	assert_int_equal(world_open(&world), 0);
	path_keys(1, 0, first, 16);
	memcpy(second, first, sizeof(second));
	path_keys(2, SHARED, second, 16);
	save_shared(1, first, 10, SHARED);
	assert_int_equal(stored(&world, second, 16), SHARED);
	evict(1);
	assert_int_equal(stored(&world, second, 16), SHARED);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_moves_to_memory_when_a_second_session_needs_it),
		cmocka_unit_test(the_copy_on_ssd_comes_first),
		cmocka_unit_test(evicting_who_wrote_it_first_cuts_nobody_else),
		cmocka_unit_test(after_a_restart_it_is_read_from_ssd_and_moves_again),
		cmocka_unit_test(it_is_promoted_once),
		cmocka_unit_test(a_longer_prompt_stands_on_the_shorter_one),
		cmocka_unit_test(a_prompt_in_a_chats_memory_gets_a_copy_of_its_own),
		cmocka_unit_test(without_room_in_memory_it_stays_on_ssd),
		cmocka_unit_test(under_pressure_memory_gives_it_back_to_ssd),
		cmocka_unit_test(memory_that_survives_needs_no_copy_on_ssd),
		cmocka_unit_test(its_end_is_a_resume_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Does the map of an arena show whose each piece is, where it lies, and in how many pieces a session lies? */
#include "replay/arena_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BLOCK 1024ull
#define ARENA (4ull * FC_MAP_CELLS * BLOCK) /* a cell of the whole is four blocks long */

struct world {
	struct fc_policy policy; /* first */
	struct fc_policy_env env;
	struct fc_world time;
	const struct fc_policy_piece *pieces;
	size_t count;
	struct fc_arena_map maps[FC_MAP_MOMENTS];
	struct fc_map_taker taker;
};

static uint64_t layout(struct fc_policy *policy, void (*each)(void *context, const struct fc_policy_piece *piece),
		       void *context)
{
	const struct world *world = (const struct world *)policy;
	for (size_t i = 0; i < world->count; i++)
		each(context, &world->pieces[i]);
	return ARENA;
}

static const struct fc_policy_ops ops = {.layout = layout};

static struct world *begin(const struct fc_policy_piece *pieces, size_t count, uint64_t request_total)
{
	struct world *world = calloc(1, sizeof(*world));
	assert_non_null(world);
	world->env = (struct fc_policy_env){.world = &world->time, .ssd_bytes = ARENA, .block_bytes = BLOCK};
	world->policy = (struct fc_policy){.ops = &ops, .env = &world->env};
	world->pieces = pieces;
	world->count = count;
	assert_int_equal(fc_map_taker_init(&world->taker, world->maps, 100, request_total), FC_OK);
	return world;
}

static void end(struct world *world)
{
	fc_map_taker_deinit(&world->taker);
	free(world);
}

static const struct fc_arena_map *take(struct world *world)
{
	assert_int_equal(fc_map_taker_take(&world->taker, &world->policy, world->taker.request_total), FC_OK);
	return &world->maps[FC_MAP_MOMENTS - 1];
}

static struct fc_policy_piece piece(uint64_t block, uint64_t count, uint64_t session)
{
	return (struct fc_policy_piece){
		.offset = block * BLOCK, .bytes = count * BLOCK, .session = {.high = session, .low = 1}};
}

static void pieces_side_by_side_are_one_extent(void **state)
{
	(void)state;
	/* session 7: blocks 0..8 in two pieces, and 20..24; session 9: 8..12; given in no order */
	const struct fc_policy_piece pieces[] = {piece(20, 4, 7), piece(4, 4, 7), piece(8, 4, 9), piece(0, 4, 7)};
	struct world *world = begin(pieces, 4, 1);
	const struct fc_arena_map *map = take(world);
	assert_int_equal(map->session_count, 2);
	assert_int_equal(map->extent_count, 3);
	assert_int_equal(map->extents_max, 2);
	assert_int_equal(map->extents_p50, 1);
	assert_int_equal(map->used_bytes, 16 * BLOCK);
	assert_int_equal(map->extent_bytes, 16 * BLOCK);
	assert_int_equal(map->gap_count, 2); /* 12..20, and behind 24 */
	assert_int_equal(map->gap_bytes_max, ARENA - 24 * BLOCK);
	end(world);
}

static void a_cell_shows_who_has_half_of_what_is_in_use(void **state)
{
	(void)state;
	/* Cells of four blocks: one whole; one shared 3 : 1; one of four sessions; one with a block alone; one free. */
	const struct fc_policy_piece pieces[] = {piece(0, 4, 7),  piece(4, 3, 9),   piece(7, 1, 7),   piece(8, 1, 11),
						 piece(9, 1, 12), piece(10, 1, 13), piece(11, 1, 14), piece(12, 1, 7)};
	struct world *world = begin(pieces, 8, 1);
	const struct fc_map_picture *whole = &take(world)->whole;
	assert_int_equal(whole->cell_bytes, 4 * BLOCK);
	assert_true(whole->cells[0] >= FC_MAP_SESSIONS);
	assert_true(whole->cells[1] >= FC_MAP_SESSIONS);
	assert_int_not_equal(whole->cells[0], whole->cells[1]);
	assert_int_equal(whole->cells[2], FC_MAP_MIXED);
	assert_int_equal(whole->cells[3], FC_MAP_FREE);
	assert_int_equal(whole->cells[4], FC_MAP_FREE);
	const struct fc_map_picture *near = &take(world)->near;
	assert_int_equal(near->cell_bytes, BLOCK);
	assert_int_equal(near->cells[0], whole->cells[0]);
	assert_int_equal(near->cells[7], whole->cells[0]);
	assert_int_equal(near->cells[13], FC_MAP_FREE);
	end(world);
}

static void the_nearby_picture_is_of_the_fullest_stretch(void **state)
{
	(void)state;
	const struct fc_policy_piece pieces[] = {piece(10, 5, 7), piece(2 * FC_MAP_CELLS + 3, 6, 7)};
	struct world *world = begin(pieces, 2, 1);
	const struct fc_map_picture *near = &take(world)->near;
	assert_int_equal(near->first_byte, 2 * FC_MAP_CELLS * BLOCK);
	assert_int_equal(near->cells[2], FC_MAP_FREE);
	assert_true(near->cells[3] >= FC_MAP_SESSIONS);
	end(world);
}

static void prompts_and_resume_points_are_told_apart(void **state)
{
	(void)state;
	struct fc_policy_piece pieces[] = {piece(0, 4, 7), piece(4, 4, 7), piece(8, 4, 9)};
	pieces[1].is_point = true;
	pieces[2].is_shared = true;
	struct world *world = begin(pieces, 3, 1);
	const struct fc_arena_map *map = take(world);
	assert_int_equal(map->extent_count, 2); /* the point is none */
	assert_int_equal(map->used_bytes, 12 * BLOCK);
	assert_int_equal(map->extent_bytes, 8 * BLOCK);
	assert_int_equal(map->whole.cells[1], map->whole.cells[0]); /* but is drawn as its session's */
	assert_int_equal(map->whole.cells[2], FC_MAP_SHARED);
	end(world);
}

static void save(struct world *world, uint64_t session, uint64_t shared, const uint32_t *numbers, uint64_t count)
{
	struct fc_policy_turn turn = {.numbers = numbers};
	turn.turn.stored_blocks = count;
	turn.turn.shared_blocks = shared;
	turn.turn.session.high = session;
	fc_map_taker_saving(&world->taker, &turn);
}

static struct fc_policy_piece block(uint64_t at, uint32_t number)
{
	return (struct fc_policy_piece){
		.offset = at * 4 * BLOCK, .bytes = 4 * BLOCK, .is_by_block = true, .number = number};
}

static void a_block_is_of_who_saved_it_first(void **state)
{
	(void)state;
	const struct fc_policy_piece pieces[] = {block(0, 1), block(1, 2), block(2, 3)};
	struct world *world = begin(pieces, 3, 1);
	save(world, 7, 0, (const uint32_t[]){1, 2}, 2);
	save(world, 9, 1, (const uint32_t[]){1, 3}, 2);
	const uint32_t *cells = take(world)->whole.cells;
	assert_int_equal(cells[0], cells[1]);
	assert_int_not_equal(cells[0], cells[2]);
	end(world);
}

static void without_names_a_conversation_goes_on_where_its_path_does(void **state)
{
	(void)state;
	const struct fc_policy_piece pieces[] = {block(0, 1), block(1, 2), block(2, 3), block(3, 4)};
	struct world *world = begin(pieces, 4, 1);
	save(world, 0, 0, (const uint32_t[]){1, 2}, 2);
	save(world, 0, 1, (const uint32_t[]){1, 2, 3}, 3); /* goes on behind 2, which it has alone */
	save(world, 0, 1, (const uint32_t[]){1, 4}, 2);    /* begins behind 1, which others use too */
	const uint32_t *cells = take(world)->whole.cells;
	assert_int_equal(cells[2], cells[1]);
	assert_int_not_equal(cells[3], cells[0]);
	end(world);
}

static void it_is_taken_after_each_quarter(void **state)
{
	(void)state;
	const struct fc_policy_piece pieces[] = {piece(0, 4, 7)};
	struct world *world = begin(pieces, 1, 8);
	for (uint64_t done = 0; done <= 8; done++) {
		world->time.now_ns = done * 10;
		assert_int_equal(fc_map_taker_take(&world->taker, &world->policy, done), FC_OK);
		assert_int_equal(world->taker.taken, done / 2);
	}
	assert_int_equal(world->maps[1].request_count, 4);
	assert_int_equal(world->maps[1].at_ns, 40);
	end(world);
}

static void an_empty_arena_is_free(void **state)
{
	(void)state;
	struct world *world = begin(NULL, 0, 1);
	const struct fc_arena_map *map = take(world);
	assert_int_equal(map->arena_bytes, ARENA);
	assert_int_equal(map->extent_count, 0);
	assert_int_equal(map->gap_bytes_max, ARENA);
	for (size_t i = 0; i < FC_MAP_CELLS; i++)
		assert_int_equal(map->whole.cells[i], FC_MAP_FREE);
	end(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_side_by_side_are_one_extent),
		cmocka_unit_test(a_cell_shows_who_has_half_of_what_is_in_use),
		cmocka_unit_test(the_nearby_picture_is_of_the_fullest_stretch),
		cmocka_unit_test(prompts_and_resume_points_are_told_apart),
		cmocka_unit_test(a_block_is_of_who_saved_it_first),
		cmocka_unit_test(without_names_a_conversation_goes_on_where_its_path_does),
		cmocka_unit_test(it_is_taken_after_each_quarter),
		cmocka_unit_test(an_empty_arena_is_free),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

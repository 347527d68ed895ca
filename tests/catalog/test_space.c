/* Does free space keep its books, and does data go where an extent can grow? Small arenas by hand, large ones against a
 * plain array of booleans. */
#include "catalog/space.h"

#include "base/check.h"
#include "base/dies.h"
#include "base/random.h"
#include "base/tracked_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct tracked_alloc tracked;

static struct fc_space make_space(uint64_t chunk_count)
{
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_space space;
	assert_int_equal(fc_space_init(&space, &alloc, chunk_count), 0);
	return space;
}

/* 'x' is taken, '.' is free. */
static struct fc_space space_from(const char *picture)
{
	struct fc_space space = make_space(strlen(picture));
	for (uint64_t i = 0; picture[i] != '\0'; i++) {
		if (picture[i] == 'x')
			fc_space_take(&space, i, 1);
	}
	fc_space_check(&space);
	return space;
}

static int no_memory_is_left(void **state)
{
	(void)state;
	uint64_t bytes = tracked.bytes;
	memset(&tracked, 0, sizeof(tracked));
	return bytes == 0 ? 0 : -1;
}

/* ---- books --------------------------------------------------------------------------------------------------------
 */

static void a_new_arena_is_one_free_run(void **state)
{
	(void)state;
	static const uint64_t counts[] = {1, 63, 64, 65, 127, 128, 129, 1000, 4096, 100001};
	for (size_t i = 0; i < fc_array_len(counts); i++) {
		struct fc_space space = make_space(counts[i]);
		uint64_t first;
		fc_space_check(&space);
		assert_int_equal(fc_space_free_count(&space), counts[i]);
		assert_int_equal(fc_space_largest(&space, &first), counts[i]);
		assert_int_equal(first, 0);
		assert_int_equal(fc_space_free_after(&space, 0), counts[i]);
		assert_int_equal(fc_space_free_after(&space, counts[i] - 1), 1);
		assert_int_equal(fc_space_free_after(&space, counts[i]), 0);
		fc_space_deinit(&space);
	}
}

static void sizes_outside_the_limits_are_refused(void **state)
{
	(void)state;
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_space space;
	assert_int_equal(fc_space_init(&space, &alloc, 0), FC_EINVAL);
	assert_int_equal(fc_space_init(&space, &alloc, FC_SPACE_CHUNKS_MAX + 1), FC_EINVAL);
	fc_space_deinit(&space);
}

static void runs_are_seen_across_words(void **state)
{
	(void)state;
	struct fc_space space = make_space(256);
	fc_space_take(&space, 0, 60);
	fc_space_take(&space, 133, 123); /* free: 60 to 132, over a whole word and parts of two */
	uint64_t first;
	assert_int_equal(fc_space_free_count(&space), 73);
	assert_int_equal(fc_space_largest(&space, &first), 73);
	assert_int_equal(first, 60);
	assert_int_equal(fc_space_free_after(&space, 60), 73);
	assert_int_equal(fc_space_free_after(&space, 63), 70);
	assert_int_equal(fc_space_free_after(&space, 100), 33);
	assert_int_equal(fc_space_free_after(&space, 132), 1);
	assert_int_equal(fc_space_free_after(&space, 133), 0);
	assert_true(fc_space_is_free(&space, 60, 73));
	assert_false(fc_space_is_free(&space, 60, 74));
	assert_false(fc_space_is_free(&space, 59, 2));
	fc_space_deinit(&space);
}

static void ranges_outside_the_arena_are_not_free(void **state)
{
	(void)state;
	struct fc_space space = make_space(100);
	assert_true(fc_space_is_free(&space, 0, 100));
	assert_true(fc_space_is_free(&space, 100, 0));
	assert_false(fc_space_is_free(&space, 0, 101));
	assert_false(fc_space_is_free(&space, 100, 1));
	assert_false(fc_space_is_free(&space, 101, 0));
	assert_false(fc_space_is_free(&space, 1, UINT64_MAX));
	assert_false(fc_space_is_free(&space, UINT64_MAX, 2));
	fc_space_deinit(&space);
}

static void the_leftmost_fit_is_found(void **state)
{
	(void)state;
	struct fc_space space = space_from("x..x....x...xx......");
	uint64_t first;
	assert_int_equal(fc_space_find_first(&space, 1, &first), 0);
	assert_int_equal(first, 1);
	assert_int_equal(fc_space_find_first(&space, 3, &first), 0);
	assert_int_equal(first, 4);
	assert_int_equal(fc_space_find_first(&space, 5, &first), 0);
	assert_int_equal(first, 14);
	assert_int_equal(fc_space_find_first(&space, 7, &first), FC_EFULL);
	assert_int_equal(fc_space_find_first(&space, UINT64_MAX, &first), FC_EFULL);
	fc_space_deinit(&space);
}

static void a_full_arena_has_no_run(void **state)
{
	(void)state;
	struct fc_space space = make_space(65);
	uint64_t first = 7;
	fc_space_take(&space, 0, 65);
	assert_int_equal(fc_space_largest(&space, &first), 0);
	assert_int_equal(first, FC_CHUNK_NONE);
	assert_int_equal(fc_space_largest(&space, NULL), 0);
	assert_int_equal(fc_space_find_first(&space, 1, &first), FC_EFULL);
	assert_int_equal(fc_space_place(&space, 1, FC_CHUNK_NONE, &first), FC_EFULL);
	assert_int_equal(fc_space_place(&space, 1, 64, &first), FC_EFULL);
	fc_space_deinit(&space);
}

static void take_twice(void *context)
{
	fc_space_take(context, 9, 2);
}
static void give_what_is_free(void *context)
{
	fc_space_give(context, 10, 2);
}
static void take_outside(void *context)
{
	fc_space_take(context, 99, 2);
}

static void wrong_changes_are_stopped(void **state)
{
	(void)state;
	struct fc_space space = make_space(100);
	fc_space_take(&space, 10, 1);
	assert_true(dies(take_twice, &space));
	assert_true(dies(give_what_is_free, &space));
	assert_true(dies(take_outside, &space));
	fc_space_check(&space);
	fc_space_deinit(&space);
}

/* ---- placing ------------------------------------------------------------------------------------------------------
 */

static void assert_placed(const char *picture, uint64_t count, uint64_t near, uint64_t wanted)
{
	struct fc_space space = space_from(picture);
	uint64_t first = 12345;
	assert_int_equal(fc_space_place(&space, count, near, &first), 0);
	assert_int_equal(first, wanted);
	fc_space_deinit(&space);
}

static void an_extent_grows_in_place(void **state)
{
	(void)state;
	assert_placed("xxx.....................", 4, 3, 3);
	assert_placed("xxx....xx...............", 4, 3, 3); /* exactly enough */
}

static void a_new_extent_leaves_room_for_the_one_before_it(void **state)
{
	(void)state;
	assert_placed("xxxx................", 4, FC_CHUNK_NONE, 12);  /* 16 free: middle at 4 + 8, 8 = 2 x 4 behind */
	assert_placed("xxxx...............", 4, FC_CHUNK_NONE, 11);   /* 15 free: 8 behind 4 + 7 */
	assert_placed("xxxx.................", 4, FC_CHUNK_NONE, 12); /* 17 free: 9 behind */
	assert_placed("xx..xx................", 4, 2, 14);            /* growth needs 4, has 2: 16 free from 6 */
}

static void nobody_ends_in_front_of_chunk_zero(void **state)
{
	(void)state;
	assert_placed("....................", 2, FC_CHUNK_NONE, 0);
}

static void without_a_roomy_run_space_is_filled_from_the_left(void **state)
{
	(void)state;
	assert_placed("xxxx..............", 4, FC_CHUNK_NONE, 4); /* 14 free: 7 behind the middle */
	assert_placed("x....x........", 4, FC_CHUNK_NONE, 1);     /* largest is 8: 4 behind its middle */
	assert_placed("x...x.......", 4, FC_CHUNK_NONE, 5);
}

/* 1,000 small sessions begin in a large arena. With halving without end the largest run would be smaller than 100,000 /
 * 1,000. */
static void many_extents_leave_large_runs(void **state)
{
	(void)state;
	struct fc_space space = make_space(100000);
	for (int session = 0; session < 1000; session++) {
		uint64_t first;
		assert_int_equal(fc_space_place(&space, 1, FC_CHUNK_NONE, &first), 0);
		fc_space_take(&space, first, 1);
	}
	assert_true(fc_space_largest(&space, NULL) >= 100000 / (2 * FC_SPACE_ROOMS) - 1);
	fc_space_deinit(&space);
}

static void interleaved_writers_each_keep_one_extent(void **state)
{
	(void)state;
	enum { session_count = 16, turn_count = 20, turn_chunks = 40 };
	struct fc_space space = make_space(session_count * turn_count * turn_chunks * 4);
	uint64_t behind[session_count];
	unsigned extent_count = 0;
	for (int turn = 0; turn < turn_count; turn++) {
		for (int session = 0; session < session_count; session++) {
			uint64_t near = turn == 0 ? FC_CHUNK_NONE : behind[session];
			uint64_t first;
			assert_int_equal(fc_space_place(&space, turn_chunks, near, &first), 0);
			extent_count += first != near;
			fc_space_take(&space, first, turn_chunks);
			behind[session] = first + turn_chunks;
		}
	}
	assert_int_equal(extent_count, session_count);
	fc_space_check(&space);
	fc_space_deinit(&space);
}

/* ---- size and memory ----------------------------------------------------------------------------------------------
 */

static void growing_adds_free_chunks_and_keeps_the_taken(void **state)
{
	(void)state;
	struct fc_space space = make_space(100);
	fc_space_take(&space, 90, 5);
	assert_int_equal(fc_space_resize(&space, 1000), 0);
	fc_space_check(&space);
	assert_int_equal(fc_space_free_count(&space), 995);
	assert_int_equal(fc_space_free_after(&space, 95), 905);
	assert_int_equal(fc_space_free_after(&space, 0), 90);
	fc_space_deinit(&space);
}

static void shrinking_needs_a_free_tail(void **state)
{
	(void)state;
	struct fc_space space = make_space(1000);
	fc_space_take(&space, 90, 5);
	assert_int_equal(fc_space_resize(&space, 94), FC_EBUSY);
	assert_int_equal(fc_space_resize(&space, 0), FC_EBUSY);
	assert_int_equal(fc_space_free_count(&space), 995);
	assert_int_equal(fc_space_resize(&space, 95), 0);
	fc_space_check(&space);
	assert_int_equal(fc_space_free_count(&space), 90);
	assert_int_equal(fc_space_largest(&space, NULL), 90);
	fc_space_give(&space, 90, 5);
	assert_int_equal(fc_space_resize(&space, 0), FC_EINVAL);
	assert_int_equal(fc_space_largest(&space, NULL), 95);
	fc_space_deinit(&space);
}

static void lack_of_memory_changes_nothing(void **state)
{
	(void)state;
	struct fc_alloc alloc = tracked_alloc_interface(&tracked);
	struct fc_space space;
	for (uint64_t fail_at = 1; fail_at <= 2; fail_at++) {
		tracked = (struct tracked_alloc){.fail_at = fail_at};
		assert_int_equal(fc_space_init(&space, &alloc, 100), FC_ENOMEM);
		assert_int_equal(tracked.bytes, 0);
	}
	tracked = (struct tracked_alloc){0};
	assert_int_equal(fc_space_init(&space, &alloc, 100), 0);
	fc_space_take(&space, 3, 4);
	for (uint64_t fail_at = 3; fail_at <= 4; fail_at++) {
		tracked.call_count = 2;
		tracked.fail_at = fail_at;
		assert_int_equal(fc_space_resize(&space, 10000), FC_ENOMEM);
		fc_space_check(&space);
		assert_int_equal(space.chunk_count, 100);
		assert_int_equal(fc_space_free_count(&space), 96);
	}
	fc_space_deinit(&space);
}

static void sixteen_million_chunks_take_eight_mebibytes(void **state)
{
	(void)state;
	struct fc_space space = make_space(1 << 24);
	assert_int_equal(tracked.bytes, (1 << 24) / 8 + 2 * ((1 << 24) / 64) * 12);
	fc_space_deinit(&space);
}

/* ---- against a plain array ----------------------------------------------------------------------------------------
 */

struct model {
	bool is_free[4096];
	uint64_t chunk_count;
};

static uint64_t model_free_after(const struct model *model, uint64_t chunk)
{
	uint64_t run = 0;
	while (chunk + run < model->chunk_count && model->is_free[chunk + run])
		run++;
	return run;
}

static uint64_t model_find_first(const struct model *model, uint64_t count)
{
	for (uint64_t chunk = 0; chunk < model->chunk_count; chunk++) {
		if (model_free_after(model, chunk) >= count)
			return chunk;
	}
	return FC_CHUNK_NONE;
}

static uint64_t model_largest(const struct model *model, uint64_t *first)
{
	uint64_t largest = 0;
	*first = FC_CHUNK_NONE;
	for (uint64_t chunk = 0; chunk < model->chunk_count; chunk++) {
		uint64_t run = model_free_after(model, chunk);
		if (run > largest) {
			largest = run;
			*first = chunk;
		}
		if (run > 0)
			chunk += run - 1;
	}
	return largest;
}

static void compare(const struct fc_space *space, const struct model *model, struct fc_random *random)
{
	uint64_t first, model_first;
	assert_int_equal(fc_space_largest(space, &first), model_largest(model, &model_first));
	assert_int_equal(first, model_first);
	uint64_t count = 1 + fc_random_below(random, 200);
	first = FC_CHUNK_NONE;
	int code = fc_space_find_first(space, count, &first);
	assert_int_equal(first, model_find_first(model, count));
	assert_int_equal(code, first == FC_CHUNK_NONE ? FC_EFULL : 0);
	uint64_t chunk = fc_random_below(random, model->chunk_count);
	assert_int_equal(fc_space_free_after(space, chunk), model_free_after(model, chunk));
	if (fc_space_place(space, count, chunk, &first) == 0)
		assert_true(model_free_after(model, first) >= count);
	else
		assert_true(model_find_first(model, count) == FC_CHUNK_NONE);
}

/* Takes or gives the run of equal chunks that starts at a random place, cut to a random length. */
static void change(struct fc_space *space, struct model *model, struct fc_random *random)
{
	uint64_t first = fc_random_below(random, model->chunk_count);
	uint64_t count_max = 1 + fc_random_below(random, fc_random_below(random, 4) == 0 ? 1000 : 70);
	bool is_free = model->is_free[first];
	uint64_t count = 0;
	while (count < count_max && first + count < model->chunk_count && model->is_free[first + count] == is_free)
		model->is_free[first + count++] = !is_free;
	if (is_free)
		fc_space_take(space, first, count);
	else
		fc_space_give(space, first, count);
}

static void resize(struct fc_space *space, struct model *model, struct fc_random *random)
{
	uint64_t chunk_count = 1 + fc_random_below(random, fc_array_len(model->is_free));
	bool is_tail_free = chunk_count >= model->chunk_count ||
			    model_free_after(model, chunk_count) == model->chunk_count - chunk_count;
	assert_int_equal(fc_space_resize(space, chunk_count), is_tail_free ? 0 : FC_EBUSY);
	if (!is_tail_free)
		return;
	for (uint64_t chunk = model->chunk_count; chunk < chunk_count; chunk++)
		model->is_free[chunk] = true;
	model->chunk_count = chunk_count;
}

static void random_changes_agree_with_a_plain_array(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct fc_random random;
		fc_random_init(&random, seed);
		struct model model = {.chunk_count = 1 + fc_random_below(&random, 1500)};
		memset(model.is_free, true, model.chunk_count);
		struct fc_space space = make_space(model.chunk_count);
		for (int step = 0; step < 300; step++) {
			if (fc_random_below(&random, 20) == 0)
				resize(&space, &model, &random);
			else
				change(&space, &model, &random);
			compare(&space, &model, &random);
			if (step % 50 == 0)
				fc_space_check(&space);
		}
		fc_space_deinit(&space);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_new_arena_is_one_free_run, no_memory_is_left),
		cmocka_unit_test_teardown(sizes_outside_the_limits_are_refused, no_memory_is_left),
		cmocka_unit_test_teardown(runs_are_seen_across_words, no_memory_is_left),
		cmocka_unit_test_teardown(ranges_outside_the_arena_are_not_free, no_memory_is_left),
		cmocka_unit_test_teardown(the_leftmost_fit_is_found, no_memory_is_left),
		cmocka_unit_test_teardown(a_full_arena_has_no_run, no_memory_is_left),
		cmocka_unit_test_teardown(wrong_changes_are_stopped, no_memory_is_left),
		cmocka_unit_test_teardown(an_extent_grows_in_place, no_memory_is_left),
		cmocka_unit_test_teardown(a_new_extent_leaves_room_for_the_one_before_it, no_memory_is_left),
		cmocka_unit_test_teardown(nobody_ends_in_front_of_chunk_zero, no_memory_is_left),
		cmocka_unit_test_teardown(without_a_roomy_run_space_is_filled_from_the_left, no_memory_is_left),
		cmocka_unit_test_teardown(many_extents_leave_large_runs, no_memory_is_left),
		cmocka_unit_test_teardown(interleaved_writers_each_keep_one_extent, no_memory_is_left),
		cmocka_unit_test_teardown(growing_adds_free_chunks_and_keeps_the_taken, no_memory_is_left),
		cmocka_unit_test_teardown(shrinking_needs_a_free_tail, no_memory_is_left),
		cmocka_unit_test_teardown(lack_of_memory_changes_nothing, no_memory_is_left),
		cmocka_unit_test_teardown(sixteen_million_chunks_take_eight_mebibytes, no_memory_is_left),
		cmocka_unit_test_teardown(random_changes_agree_with_a_plain_array, no_memory_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

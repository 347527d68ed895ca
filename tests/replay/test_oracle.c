/* What a perfect store would have, worked out by hand. Blocks are letters: a path is a word, and a letter's key follows
 * from the word up to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/world.h"
#include "replay/oracle.h"

#include <string.h>

enum { LENGTH_MAX = 32 };

struct word {
	uint32_t path[LENGTH_MAX];
	uint64_t count;
};

static struct word word(struct fc_oracle *oracle, const char *letters)
{
	struct word made = {.count = strlen(letters)};
	struct fc_key key = {0, 0};
	for (uint64_t i = 0; i < made.count; i++) {
		key.high = key.high * 31 + (uint64_t)letters[i];
		key.low = key.low * 0x9e3779b97f4a7c15ull + (uint64_t)letters[i];
		assert_int_equal(fc_oracle_number(oracle, key, &made.path[i]), FC_OK);
	}
	return made;
}

static void save_word(struct fc_oracle *oracle, const char *letters, uint64_t point, uint64_t losses)
{
	struct word saved = word(oracle, letters);
	fc_oracle_saved(oracle, saved.path, saved.count, &point, point > 0, losses);
}

static uint64_t possible(struct fc_oracle *oracle, const char *letters)
{
	struct word asked = word(oracle, letters);
	return fc_oracle_possible(oracle, asked.path, asked.count);
}

static struct fc_oracle *make_oracle(struct fc_geometry geometry)
{
	struct fc_oracle *oracle;
	assert_int_equal(fc_oracle_new(&oracle, &geometry), FC_OK);
	return oracle;
}

static void a_plain_model_resumes_behind_any_stored_block(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_plain(1));
	assert_int_equal(possible(oracle, "abc"), 0);
	save_word(oracle, "abcd", 0, 0);
	assert_int_equal(possible(oracle, "abcdef"), 4);
	assert_int_equal(possible(oracle, "abx"), 2);
	assert_int_equal(possible(oracle, "b"), 0); /* the same letter on another path is another block */
	fc_oracle_free(oracle);
}

/* Granule 2, and groups that keep only what the path's end needs. */
static void a_hybrid_model_resumes_only_where_a_save_ended(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_hybrid(1));
	save_word(oracle, "abcde", 0, 0);
	assert_int_equal(possible(oracle, "abcdefgh"), 4); /* the fifth is half of a block of the second group */
	assert_int_equal(possible(oracle, "abc"), 0);      /* stored, but nothing to resume from inside */
	save_word(oracle, "abxy", 2, 0);
	assert_int_equal(possible(oracle, "abc"), 2); /* a point that was asked for */
	assert_int_equal(possible(oracle, "abxyz"), 4);
	fc_oracle_free(oracle);
}

static void what_was_computed_is_a_prefix_whatever_the_model_needs(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_hybrid(1));
	struct word computed = word(oracle, "abc"), asked = word(oracle, "abcd");
	assert_int_equal(fc_oracle_prefix(oracle, asked.path, asked.count), 0);
	fc_oracle_computed(oracle, computed.path, computed.count);
	assert_int_equal(fc_oracle_prefix(oracle, asked.path, asked.count), 3);
	assert_int_equal(possible(oracle, "abcd"), 0);
	fc_oracle_free(oracle);
}

static void blocks_are_shared_once_a_second_session_uses_them(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_plain(1));
	struct word first = word(oracle, "abcd"), second = word(oracle, "abxy");
	fc_oracle_use(oracle, first.path, first.count, 1);
	fc_oracle_use(oracle, first.path, first.count, 1);
	assert_int_equal(fc_oracle_shared(oracle, first.path, first.count), 0);
	fc_oracle_use(oracle, second.path, second.count, 2);
	assert_int_equal(fc_oracle_shared(oracle, first.path, first.count), 2);
	assert_int_equal(fc_oracle_shared(oracle, second.path, second.count), 2);
	assert_int_equal(fc_oracle_shared(oracle, second.path, 1), 1);
	fc_oracle_free(oracle);
}

static void without_sessions_blocks_are_shared_up_to_a_fork(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_plain(1));
	struct word first = word(oracle, "abc"), longer = word(oracle, "abcd"), fork = word(oracle, "abxy");
	fc_oracle_use(oracle, first.path, first.count, FC_ORACLE_NONE);
	fc_oracle_use(oracle, longer.path, longer.count, FC_ORACLE_NONE);
	assert_int_equal(fc_oracle_shared(oracle, longer.path, longer.count), 0); /* one conversation that goes on */
	fc_oracle_use(oracle, fork.path, fork.count, FC_ORACLE_NONE);
	assert_int_equal(fc_oracle_shared(oracle, longer.path, longer.count), 2);
	fc_oracle_free(oracle);
}

static void a_miss_is_explained_by_a_loss_after_the_save_only(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_plain(1));
	save_word(oracle, "ab", 0, 3);
	save_word(oracle, "abcd", 0, 5);
	struct word asked = word(oracle, "abcd");
	assert_false(fc_oracle_explains(oracle, asked.path, 0, 4, 5));
	assert_true(fc_oracle_explains(oracle, asked.path, 0, 4, 6));
	save_word(oracle, "ab", 0, 6);
	assert_false(fc_oracle_explains(oracle, asked.path, 0, 2, 6));
	assert_true(fc_oracle_explains(oracle, asked.path, 2, 4, 6));
	fc_oracle_free(oracle);
}

/* Blocks that come back do not bring the resume point inside them back. */
static void a_resume_point_can_be_lost_alone(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_hybrid(1));
	save_word(oracle, "ab", 0, 3);
	save_word(oracle, "abcd", 0, 5);
	struct word asked = word(oracle, "abxy");
	assert_int_equal(fc_oracle_possible(oracle, asked.path, asked.count), 2);
	assert_true(fc_oracle_explains(oracle, asked.path, 0, 2, 5));
	assert_false(fc_oracle_explains(oracle, asked.path, 0, 2, 3));
	fc_oracle_free(oracle);
}

static void many_blocks_keep_their_numbers(void **state)
{
	(void)state;
	struct fc_oracle *oracle = make_oracle(geometry_plain(1));
	uint32_t number;
	for (uint32_t i = 0; i < 5000; i++) {
		assert_int_equal(fc_oracle_number(oracle, (struct fc_key){i, i % 7}, &number), FC_OK);
		assert_int_equal(number, i);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		assert_int_equal(fc_oracle_number(oracle, (struct fc_key){i, i % 7}, &number), FC_OK);
		assert_int_equal(number, i);
	}
	fc_oracle_free(oracle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_model_resumes_behind_any_stored_block),
		cmocka_unit_test(a_hybrid_model_resumes_only_where_a_save_ended),
		cmocka_unit_test(what_was_computed_is_a_prefix_whatever_the_model_needs),
		cmocka_unit_test(blocks_are_shared_once_a_second_session_uses_them),
		cmocka_unit_test(without_sessions_blocks_are_shared_up_to_a_fork),
		cmocka_unit_test(a_miss_is_explained_by_a_loss_after_the_save_only),
		cmocka_unit_test(a_resume_point_can_be_lost_alone),
		cmocka_unit_test(many_blocks_keep_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Are keys what the format says (known answers, computed once with Python's hashlib), and does everything that matters
 * go into them without ambiguity? */
#include "base/check.h"
#include "flatcake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct fc_namespace_opts known_opts = {
	.model = "deepseek-v3",
	.revision = "main",
	.dtype = "fp8_e4m3",
	.layout = "NHD",
	.adapter = "",
	.tenant_salt = "pepper",
	.rank = 1,
	.rank_count = 8,
};

static struct fc_namespace make_namespace(const struct fc_namespace_opts *opts)
{
	struct fc_namespace name_space;
	struct fc_error error;
	assert_int_equal(fc_namespace_init(&name_space, opts, &error), 0);
	return name_space;
}

static struct fc_namespace empty_namespace(void)
{
	struct fc_namespace_opts opts = {.rank_count = 1};
	return make_namespace(&opts);
}

static void assert_namespace(const struct fc_namespace *name_space, const char *wanted)
{
	char text[65];
	for (size_t i = 0; i < sizeof(name_space->bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", name_space->bytes[i]);
	assert_string_equal(text, wanted);
}

static void assert_key(struct fc_key key, uint64_t high, uint64_t low)
{
	assert_int_equal(key.high, high);
	assert_int_equal(key.low, low);
}

static struct fc_key key_of(const struct fc_namespace *name_space, const struct fc_key *parent, const uint32_t *tokens,
			    uint32_t block_tokens)
{
	struct fc_key key;
	assert_int_equal(fc_key_chain(name_space, parent, tokens, block_tokens, 1, &key), 0);
	return key;
}

static bool is_same(struct fc_key a, struct fc_key b)
{
	return a.high == b.high && a.low == b.low;
}

/* ---- known answers ------------------------------------------------------------------------------------------------
 */

static void namespaces_are_what_the_format_says(void **state)
{
	(void)state;
	struct fc_namespace name_space = empty_namespace();
	assert_namespace(&name_space, "d3e6ee2ec804edc3fc86ce7b25b8182d9407b69f1aec77935cc6960ef907a351");
	name_space = make_namespace(&known_opts);
	assert_namespace(&name_space, "545e86f767fe7efdb322e5a9e3a6abef5cb57e2480fd7479b9a566cf67e1c7f6");
}

static void keys_are_what_the_format_says(void **state)
{
	(void)state;
	static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct fc_namespace name_space = make_namespace(&known_opts);
	struct fc_key keys[2];
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 4, 2, keys), 0);
	assert_key(keys[0], 0xa141c1cae6045837, 0x3eb3d3d2cb1d1637);
	assert_key(keys[1], 0x971a7c34655dca60, 0x1edd059d7c6cb7e8);
}

static void long_blocks_are_what_the_format_says(void **state)
{
	(void)state;
	uint32_t tokens[1000];
	struct fc_namespace name_space = empty_namespace();
	for (uint32_t i = 0; i < 1000; i++)
		tokens[i] = i * 2654435761u;
	assert_key(key_of(&name_space, NULL, tokens, 1000), 0x56889b7a27189f22, 0x9b720a0c4f73d22e);
}

static void session_ids_are_what_the_format_says(void **state)
{
	(void)state;
	struct fc_session_id id = fc_session_id_from_text("chat-42");
	assert_int_equal(id.high, 0x7cb4f2ba9e4e0321);
	assert_int_equal(id.low, 0x9e2f84c542d35c04);
	id = fc_session_id_from_text("");
	assert_int_equal(id.high, 0x119a5fca33b25bfa);
	assert_int_equal(id.low, 0xf279a1d323f9f8b6);
}

static void content_keys_are_what_the_format_says(void **state)
{
	(void)state;
	const uint32_t tokens[] = {1, 2, 3, 4};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key parent = key_of(&name_space, NULL, tokens, 4), key;
	assert_int_equal(fc_key_for_content(&name_space, &parent, "image", 5, &key), FC_OK);
	assert_key(key, 0xe99ff00215b1da80, 0xfea25e7f5c196aa5);
	assert_int_equal(fc_key_for_content(&name_space, NULL, "image", 5, &key), FC_OK);
	assert_key(key, 0x94ff2f3801944bfa, 0x4a8d2fba23c9ad31);
}

/* Two pictures have the same placeholders, and must not have the same blocks. */
static void content_behind_equal_tokens_makes_other_blocks(void **state)
{
	(void)state;
	const uint32_t placeholders[] = {7, 7, 7, 7};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key before = key_of(&name_space, NULL, placeholders, 4), content[2];
	assert_int_equal(fc_key_for_content(&name_space, &before, "a cat", 5, &content[0]), FC_OK);
	assert_int_equal(fc_key_for_content(&name_space, &before, "a dog", 5, &content[1]), FC_OK);
	struct fc_key plain = key_of(&name_space, &before, placeholders, 4);
	struct fc_key cat = key_of(&name_space, &content[0], placeholders, 4);
	struct fc_key dog = key_of(&name_space, &content[1], placeholders, 4);
	assert_false(is_same(cat, dog));
	assert_false(is_same(cat, plain));
	assert_int_equal(fc_key_for_content(&name_space, &before, "", 0, &content[0]), FC_EINVAL);
	assert_int_equal(fc_key_for_content(&name_space, &before, NULL, 4, &content[0]), FC_EINVAL);
}

/* ---- everything counts --------------------------------------------------------------------------------------------
 */

static void every_field_changes_every_key(void **state)
{
	(void)state;
	static const uint32_t tokens[] = {10, 11, 12, 13};
	struct fc_namespace_opts variants[10];
	struct fc_key keys[10][2];
	for (size_t i = 0; i < 10; i++)
		variants[i] = known_opts;
	variants[1].model = "deepseek-v3x";
	variants[2].revision = "mainx";
	variants[3].dtype = "fp8_e4m3x";
	variants[4].layout = "NHDx";
	variants[5].adapter = "x";
	variants[6].tenant_salt = "pepperx";
	variants[7].rank = 2;
	variants[8].rank_count = 9;
	variants[9].rank_count = 8 + (1u << 31);
	for (size_t i = 0; i < 10; i++) {
		struct fc_namespace name_space = make_namespace(&variants[i]);
		assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 2, 2, keys[i]), 0);
		for (size_t other = 0; other < i; other++) {
			assert_false(is_same(keys[i][0], keys[other][0]));
			assert_false(is_same(keys[i][1], keys[other][1]));
		}
	}
}

static void fields_do_not_run_into_each_other(void **state)
{
	(void)state;
	struct fc_namespace_opts one = {.model = "ab", .revision = "c", .rank_count = 1};
	struct fc_namespace_opts two = {.model = "a", .revision = "bc", .rank_count = 1};
	struct fc_namespace_opts three = {.model = "abc", .rank_count = 1};
	struct fc_namespace_opts four = {.revision = "abc", .rank_count = 1};
	struct fc_namespace spaces[] = {make_namespace(&one), make_namespace(&two), make_namespace(&three),
					make_namespace(&four)};
	for (size_t i = 0; i < 4; i++) {
		for (size_t other = 0; other < i; other++)
			assert_memory_not_equal(&spaces[i], &spaces[other], sizeof(spaces[i]));
	}
}

static void a_missing_field_is_an_empty_one(void **state)
{
	(void)state;
	struct fc_namespace_opts opts = {.model = "",
					 .revision = "",
					 .dtype = "",
					 .layout = "",
					 .adapter = "",
					 .tenant_salt = "",
					 .rank_count = 1};
	struct fc_namespace name_space = make_namespace(&opts);
	struct fc_namespace other = empty_namespace();
	assert_memory_equal(&name_space, &other, sizeof(other));
}

static void the_same_tokens_after_other_tokens_have_another_key(void **state)
{
	(void)state;
	static const uint32_t one[] = {1, 2, 7, 7, 9, 9};
	static const uint32_t two[] = {1, 3, 7, 7, 9, 9};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key keys_one[3], keys_two[3];
	assert_int_equal(fc_key_chain(&name_space, NULL, one, 2, 3, keys_one), 0);
	assert_int_equal(fc_key_chain(&name_space, NULL, two, 2, 3, keys_two), 0);
	for (size_t i = 0; i < 3; i++)
		assert_false(is_same(keys_one[i], keys_two[i]));
}

static void a_chain_continues_from_its_parent(void **state)
{
	(void)state;
	static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key whole[4], tail[2];
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 2, 4, whole), 0);
	assert_int_equal(fc_key_chain(&name_space, &whole[1], tokens + 4, 2, 2, tail), 0);
	assert_true(is_same(whole[2], tail[0]));
	assert_true(is_same(whole[3], tail[1]));
}

static void the_start_of_a_sequence_is_no_parent_at_all(void **state)
{
	(void)state;
	static const uint32_t tokens[] = {1, 2};
	static const struct fc_key zero = {0, 0};
	struct fc_namespace name_space = empty_namespace();
	assert_false(is_same(key_of(&name_space, NULL, tokens, 2), key_of(&name_space, &zero, tokens, 2)));
}

/* A parent followed by tokens must not equal a first block whose leading tokens spell that parent. */
static void a_parent_cannot_be_spelled_in_tokens(void **state)
{
	(void)state;
	static const struct fc_key parent = {0x0100000002000000, 0x0300000004000000}; /* bytes of tokens 1, 2, 3, 4 */
	static const uint32_t tokens[] = {1, 2, 3, 4, 5, 6};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key chained = key_of(&name_space, &parent, tokens + 4, 2);
	assert_false(is_same(chained, key_of(&name_space, NULL, tokens, 6)));
	assert_false(is_same(chained, key_of(&name_space, NULL, tokens, 2)));
}

static void the_parents_halves_are_not_interchangeable(void **state)
{
	(void)state;
	static const struct fc_key parents[] = {{1, 2}, {2, 1}, {1, 3}, {0, 2}};
	static const uint32_t tokens[] = {1};
	struct fc_namespace name_space = empty_namespace();
	for (size_t i = 0; i < 4; i++) {
		for (size_t other = 0; other < i; other++)
			assert_false(is_same(key_of(&name_space, &parents[i], tokens, 1),
					     key_of(&name_space, &parents[other], tokens, 1)));
	}
}

static void every_bit_of_every_token_counts(void **state)
{
	(void)state;
	uint32_t tokens[600] = {0};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key plain = key_of(&name_space, NULL, tokens, 600);
	static const uint32_t places[] = {0, 1, 255, 256, 511, 512, 599};
	for (size_t i = 0; i < fc_array_len(places); i++) {
		for (int bit = 0; bit < 32; bit++) {
			tokens[places[i]] = 1u << bit;
			assert_false(is_same(plain, key_of(&name_space, NULL, tokens, 600)));
			tokens[places[i]] = 0;
		}
	}
}

static void session_ids_differ_from_text_to_text(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "a", "b", "aa", "chat-1", "chat-2"};
	for (size_t i = 0; i < fc_array_len(texts); i++) {
		struct fc_session_id id = fc_session_id_from_text(texts[i]);
		assert_false(id.high == 0 && id.low == 0);
		for (size_t other = 0; other < i; other++) {
			struct fc_session_id other_id = fc_session_id_from_text(texts[other]);
			assert_false(id.high == other_id.high && id.low == other_id.low);
		}
	}
}

/* ---- refusals -----------------------------------------------------------------------------------------------------
 */

static void impossible_ranks_are_refused(void **state)
{
	(void)state;
	struct fc_namespace name_space;
	struct fc_error error;
	struct fc_namespace_opts opts = {.rank = 8, .rank_count = 8};
	assert_int_equal(fc_namespace_init(&name_space, &opts, &error), FC_EINVAL);
	assert_string_equal(error.text, "namespace: rank is 8; with rank_count 8 allowed are 0 to 7");
	opts.rank_count = 0;
	assert_int_equal(fc_namespace_init(&name_space, &opts, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "rank_count is 0"));
	assert_int_equal(fc_namespace_init(&name_space, NULL, &error), FC_EINVAL);
	assert_int_equal(fc_namespace_init(NULL, &opts, NULL), FC_EINVAL);
}

static void impossible_chains_are_refused(void **state)
{
	(void)state;
	static const uint32_t tokens[] = {1};
	struct fc_namespace name_space = empty_namespace();
	struct fc_key key;
	assert_int_equal(fc_key_chain(NULL, NULL, tokens, 1, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, NULL, 1, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 1, 1, NULL), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 0, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 65537, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 1, UINT64_MAX / 4 + 2, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, NULL, 1, 0, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(namespaces_are_what_the_format_says),
		cmocka_unit_test(keys_are_what_the_format_says),
		cmocka_unit_test(long_blocks_are_what_the_format_says),
		cmocka_unit_test(session_ids_are_what_the_format_says),
		cmocka_unit_test(content_keys_are_what_the_format_says),
		cmocka_unit_test(content_behind_equal_tokens_makes_other_blocks),
		cmocka_unit_test(every_field_changes_every_key),
		cmocka_unit_test(fields_do_not_run_into_each_other),
		cmocka_unit_test(a_missing_field_is_an_empty_one),
		cmocka_unit_test(the_same_tokens_after_other_tokens_have_another_key),
		cmocka_unit_test(a_chain_continues_from_its_parent),
		cmocka_unit_test(the_start_of_a_sequence_is_no_parent_at_all),
		cmocka_unit_test(a_parent_cannot_be_spelled_in_tokens),
		cmocka_unit_test(the_parents_halves_are_not_interchangeable),
		cmocka_unit_test(every_bit_of_every_token_counts),
		cmocka_unit_test(session_ids_differ_from_text_to_text),
		cmocka_unit_test(impossible_ranks_are_refused),
		cmocka_unit_test(impossible_chains_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

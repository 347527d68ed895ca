/* Whatever was forgotten and restored must go on as if it had never been forgotten: bit for bit.
 *
 * Beside the context that forgets stands one that never does. Both decode the same tokens in batches of the same shapes
 * (a shorter prefix from the store means a longer batch, for both), so their logits must be equal in every bit.
 *
 *     exactness MODEL OTHER_MODEL      of one shape, from flatcake-llama-make-model with two seeds */
#include "world.h"

#include <string.h>

/* A prompt that grew by `added` tokens: everything is forgotten, restored, decoded, answered and stored. */
static size_t take_turn(struct world *world, const char *session, llama_token *tokens, size_t held, size_t added,
			size_t reply)
{
	size_t count = held + added;
	forget(world->engine, 0, 0);
	struct fc_llama_restored restored = restore(world, 0, tokens, count, 0);
	assert_int_equal(restored.tokens, held / BLOCK * BLOCK);
	tokens[count] = both_say(world, 0, tokens, restored.tokens, count);
	for (size_t i = 1; i <= reply; i++, count++)
		tokens[count + 1] = both_say(world, 0, tokens, count, count + 1);
	struct fc_llama_saved saved = save(world, session, 0, tokens, count);
	assert_int_equal(saved.stored_tokens, count / BLOCK * BLOCK);
	return count;
}

static void run_conversation(struct world *world)
{
	llama_token tokens[TOKENS_MAX];
	make_tokens(world, 1, tokens, TOKENS_MAX);
	size_t held = 0;
	const size_t added[] = {3 * BLOCK + 5, 1, 40, BLOCK, 2, 100};
	world_start(world);
	for (size_t turn = 0; turn < sizeof(added) / sizeof(*added); turn++) {
		llama_token next[128];
		make_tokens(world, 50 + turn, next, added[turn]);
		memcpy(tokens + held, next, added[turn] * sizeof(*next));
		held = take_turn(world, "talk", tokens, held, added[turn], 7);
	}
	world_deinit(world);
}

/* ---- conversations ---- */

static void a_conversation_that_is_forgotten_after_every_turn_goes_on_bit_for_bit(void **state)
{
	(void)state;
	struct world world;
	world_init(&world);
	run_conversation(&world);
}

static void so_it_does_from_memory(void **state)
{
	(void)state;
	struct world world;
	world_init(&world);
	world.opts.store_opts.memory_bytes = 64 * MIB;
	world.opts.store_opts.ssd_bytes = 0;
	run_conversation(&world);
}

static void so_it_does_with_quantized_rows(void **state)
{
	(void)state;
	struct world world;
	world_init(&world);
	world.params.type_k = world.params.type_v = GGML_TYPE_Q8_0;
	run_conversation(&world);
}

static void so_it_does_with_rows_of_k_and_v_of_different_sizes(void **state)
{
	(void)state;
	struct world world;
	world_init(&world);
	world.params.type_k = GGML_TYPE_Q8_0;
	run_conversation(&world);
}

static void so_it_does_when_only_new_tokens_are_copied_out(void **state)
{
	(void)state;
	struct world world;
	world_init(&world);
	world.params.kv_unified = true;
	world.params.n_ctx = CONTEXT;
	world.opts.scratch_sequence = SEQUENCES - 1;
	run_conversation(&world);
}

static void only_new_tokens_are_copied_out_of_a_unified_memory(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	world.params.kv_unified = true;
	world.opts.scratch_sequence = SEQUENCES - 1;
	world_start(&world);
	make_tokens(&world, 2, tokens, TOKENS_MAX);
	decode(world.engine, 0, tokens, 0, 24 * BLOCK);
	struct fc_llama_saved whole = save(&world, "a", 0, tokens, 24 * BLOCK);
	decode(world.engine, 0, tokens, 24 * BLOCK, 25 * BLOCK);
	struct fc_llama_saved part = save(&world, "a", 0, tokens, 25 * BLOCK);
	assert_int_equal(part.blocks_new, 1);
	assert_true(part.bytes_copied < whole.bytes_copied / 5); /* 4 blocks: what is new, and three times as much */
	assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(world.engine), SEQUENCES - 1), -1);
	world_deinit(&world);
}

static void a_prefix_of_every_length_around_a_block_boundary_is_restored_to_whole_blocks(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 3, tokens, TOKENS_MAX);
	for (size_t length = 1; length <= 2 * BLOCK + 2; length++) {
		tokens[0] = 300 + (llama_token)length; /* a text of its own */
		forget(world.engine, 0, 0);
		forget(world.witness, 0, 0);
		decode(world.engine, 0, tokens, 0, length);
		decode(world.witness, 0, tokens, 0, length);
		save(&world, "lengths", 0, tokens, length);
		for (size_t prompt = length; prompt <= length + 2; prompt++) {
			forget(world.engine, 0, 0);
			struct fc_llama_restored restored = restore(&world, 0, tokens, prompt, 0);
			size_t usable = length < prompt ? length : prompt - 1; /* one is left for the logits */
			assert_int_equal(restored.tokens, usable / BLOCK * BLOCK);
			both_say(&world, 0, tokens, restored.tokens, prompt);
		}
	}
	world_deinit(&world);
}

static void a_branch_shares_what_was_before_it_and_leaves_the_other_whole(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX], branch[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 4, tokens, TOKENS_MAX);
	make_tokens(&world, 5, branch, TOKENS_MAX);
	memcpy(branch, tokens, (3 * BLOCK + 7) * sizeof(*tokens));
	decode(world.engine, 0, tokens, 0, 8 * BLOCK);
	decode(world.witness, 0, tokens, 0, 8 * BLOCK);
	save(&world, "a", 0, tokens, 8 * BLOCK);

	forget(world.engine, 0, 0);
	assert_int_equal(restore(&world, 0, branch, 9 * BLOCK, 0).tokens, 3 * BLOCK);
	llama_memory_seq_cp(llama_get_memory(world.witness), 0, 1, -1, -1);
	both_say(&world, 0, branch, 3 * BLOCK, 9 * BLOCK);
	save(&world, "a", 0, branch, 9 * BLOCK);

	forget(world.engine, 0, 0);
	assert_int_equal(restore(&world, 0, branch, 9 * BLOCK + 1, 0).tokens, 9 * BLOCK);
	both_say(&world, 0, branch, 9 * BLOCK, 9 * BLOCK + 1);
	forget(world.engine, 1, 0);
	assert_int_equal(restore(&world, 1, tokens, 8 * BLOCK + 9, 0).tokens, 8 * BLOCK);
	both_say(&world, 1, tokens, 8 * BLOCK, 8 * BLOCK + 9);
	world_deinit(&world);
}

static void sessions_share_a_system_prompt(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX], other[TOKENS_MAX];
	world_init(&world);
	world.opts.store_opts.memory_bytes = 64 * MIB;
	world_start(&world);
	make_tokens(&world, 6, tokens, TOKENS_MAX);
	make_tokens(&world, 7, other, TOKENS_MAX);
	memcpy(other, tokens, 5 * BLOCK * sizeof(*tokens));
	decode(world.engine, 0, tokens, 0, 7 * BLOCK);
	decode(world.witness, 1, tokens, 0, 7 * BLOCK);
	save(&world, "first", 0, tokens, 7 * BLOCK);
	size_t stored;
	assert_int_equal(fc_llama_match(world.bridge, other, 7 * BLOCK, &stored), FC_OK);
	assert_int_equal(stored, 5 * BLOCK);
	assert_int_equal(restore(&world, 1, other, 7 * BLOCK, 0).tokens, 5 * BLOCK);
	both_say(&world, 1, other, 5 * BLOCK, 7 * BLOCK);
	assert_int_equal(save(&world, "second", 1, other, 7 * BLOCK).blocks_new, 2);
	world_deinit(&world);
}

static void an_empty_store_leaves_everything_to_be_decoded(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	struct fc_llama_restored restored;
	struct fc_error error;
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 8, tokens, TOKENS_MAX);
	assert_int_equal(restore(&world, 0, tokens, 100, 0).tokens_left, 100);
	assert_int_equal(restore(&world, 0, tokens, 1, 0).tokens_left, 1);
	assert_int_equal(fc_llama_restore(world.bridge, 0, tokens, 0, 0, &restored, &error), FC_EINVAL);
	assert_int_equal(save(&world, "nothing", 0, tokens, 0).stored_tokens, 0);
	decode(world.engine, 0, tokens, 0, BLOCK - 1);
	assert_int_equal(save(&world, "too short", 0, tokens, BLOCK - 1).stored_tokens, 0);
	world_deinit(&world);
}

static void what_the_sequence_still_holds_is_kept_when_it_is_more_than_is_stored(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 9, tokens, TOKENS_MAX);
	decode(world.engine, 0, tokens, 0, 100);
	decode(world.witness, 0, tokens, 0, 100);
	save(&world, "a", 0, tokens, 3 * BLOCK);
	struct fc_llama_restored restored = restore(&world, 0, tokens, 110, 90);
	assert_int_equal(restored.restored_tokens, 0);
	assert_int_equal(restored.tokens, 90);
	both_say(&world, 0, tokens, 90, 110);
	restored = restore(&world, 0, tokens, 60, 20); /* the store has 48 */
	assert_int_equal(restored.restored_tokens, 3 * BLOCK);
	both_say(&world, 0, tokens, 3 * BLOCK, 60);
	struct fc_error error;
	assert_int_equal(fc_llama_restore(world.bridge, 0, tokens, 200, 150, &restored, &error), FC_EINVAL);
	world_deinit(&world);
}

/* ---- two steps ---- */

static void a_load_runs_while_another_sequence_is_decoded(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX], other[TOKENS_MAX];
	struct fc_error error;
	struct fc_llama_load *load, *unwanted;
	struct fc_llama_restored restored;
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 10, tokens, TOKENS_MAX);
	make_tokens(&world, 11, other, TOKENS_MAX);
	decode(world.engine, 0, tokens, 0, 8 * BLOCK);
	decode(world.witness, 0, tokens, 0, 8 * BLOCK);
	save(&world, "a", 0, tokens, 8 * BLOCK);
	forget(world.engine, 0, 0);
	assert_int_equal(fc_llama_load_begin(world.bridge, tokens, 8 * BLOCK + 1, &load, &error), FC_OK);
	assert_int_equal(fc_llama_load_begin(world.bridge, tokens, 8 * BLOCK + 1, &unwanted, &error), FC_OK);
	fc_llama_load_cancel(unwanted);
	both_say(&world, 1, other, 0, 50);
	assert_int_equal(fc_llama_load_finish(load, 0, 0, &restored, &error), FC_OK);
	assert_int_equal(restored.tokens, 8 * BLOCK);
	both_say(&world, 0, tokens, 8 * BLOCK, 8 * BLOCK + 1);
	both_say(&world, 1, other, 50, 60);
	world_deinit(&world);
}

static void the_sequence_may_be_used_again_before_its_save_has_finished(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX], other[TOKENS_MAX];
	struct fc_error error;
	struct fc_llama_saving *saving;
	struct fc_llama_saved saved;
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 12, tokens, TOKENS_MAX);
	make_tokens(&world, 13, other, TOKENS_MAX);
	decode(world.engine, 0, tokens, 0, 8 * BLOCK);
	decode(world.witness, 0, tokens, 0, 8 * BLOCK);
	struct fc_llama_turn turn = {
		.session = fc_session_id_from_text("a"), .tokens = tokens, .token_count = 8 * BLOCK};
	assert_int_equal(fc_llama_save_begin(world.bridge, &turn, &saving, &error), FC_OK);
	forget(world.engine, 0, 0);
	decode(world.engine, 0, other, 0, 200);
	assert_int_equal(fc_llama_save_finish(saving, true, &saved, &error), FC_OK);
	assert_int_equal(saved.blocks_new, 8);
	assert_int_equal(restore(&world, 0, tokens, 8 * BLOCK + 1, 0).tokens, 8 * BLOCK);
	both_say(&world, 0, tokens, 8 * BLOCK, 8 * BLOCK + 1);
	world_deinit(&world);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conversation_that_is_forgotten_after_every_turn_goes_on_bit_for_bit),
		cmocka_unit_test(so_it_does_from_memory),
		cmocka_unit_test(so_it_does_with_quantized_rows),
		cmocka_unit_test(so_it_does_with_rows_of_k_and_v_of_different_sizes),
		cmocka_unit_test(so_it_does_when_only_new_tokens_are_copied_out),
		cmocka_unit_test(only_new_tokens_are_copied_out_of_a_unified_memory),
		cmocka_unit_test(a_prefix_of_every_length_around_a_block_boundary_is_restored_to_whole_blocks),
		cmocka_unit_test(a_branch_shares_what_was_before_it_and_leaves_the_other_whole),
		cmocka_unit_test(sessions_share_a_system_prompt),
		cmocka_unit_test(an_empty_store_leaves_everything_to_be_decoded),
		cmocka_unit_test(what_the_sequence_still_holds_is_kept_when_it_is_more_than_is_stored),
		cmocka_unit_test(a_load_runs_while_another_sequence_is_decoded),
		cmocka_unit_test(the_sequence_may_be_used_again_before_its_save_has_finished),
	};
	world_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

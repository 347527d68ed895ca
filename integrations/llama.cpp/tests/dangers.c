/* What goes wrong must cost time, never a wrong row: damage, changed models and settings, no room, forms that are not
 * known.
 *
 *     dangers MODEL OTHER_MODEL      of one shape, from flatcake-llama-make-model with two seeds */
#include "state.h"
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- helpers ---- */

struct copy {
	struct state_shape shape;
	struct state_view view;
	uint64_t size;
};

static uint8_t *state_of(struct llama_context *context, llama_seq_id sequence, uint64_t *size)
{
	*size = llama_state_seq_get_size(context, sequence);
	uint8_t *bytes = malloc(*size);
	assert_non_null(bytes);
	assert_int_equal(llama_state_seq_get_data(context, bytes, *size, sequence), *size);
	return bytes;
}

/* The state of a sequence, and the shape asked in a sequence that is empty. */
static void copy_init(struct copy *copy, struct llama_context *context, llama_seq_id sequence, llama_seq_id empty)
{
	const llama_token token = 1;
	struct fc_error error = {0};
	uint64_t size;
	decode(context, empty, &token, 0, 1);
	uint8_t *bytes = state_of(context, empty, &size);
	assert_int_equal(state_probe(&copy->shape, bytes, size, &error), FC_OK);
	free(bytes);
	forget(context, empty, 0);
	bytes = state_of(context, sequence, &copy->size);
	if (state_open(&copy->shape, bytes, copy->size, &copy->view, &error) != FC_OK)
		fail_msg("%s", error.text);
}

static void copy_deinit(struct copy *copy)
{
	free(copy->view.bytes);
}

/* Turns one bit over in the arena, in the row of a position: of K or V, in one layer. */
static void damage(const struct world *world, const struct copy *copy, bool is_value, uint32_t layer, uint32_t position)
{
	const struct state_rows *rows = is_value ? copy->shape.values : copy->shape.keys;
	uint64_t at = is_value ? state_values_at(&copy->shape, &copy->view, layer)
			       : state_keys_at(&copy->shape, &copy->view, layer);
	const uint8_t *row = copy->view.bytes + at + position * rows[layer].bytes;
	char path[128];
	struct stat status;
	snprintf(path, sizeof(path), "%s/ssd.arena", world->folder);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	uint8_t *arena = malloc((size_t)status.st_size);
	assert_non_null(arena);
	assert_int_equal(pread(fd, arena, (size_t)status.st_size, 0), status.st_size);
	uint8_t *found = memmem(arena, (size_t)status.st_size, row, rows[layer].bytes);
	assert_non_null(found);
	assert_null(memmem(found + 1, (size_t)status.st_size - (size_t)(found + 1 - arena), row, rows[layer].bytes));
	found[5] ^= 0x10;
	assert_int_equal(pwrite(fd, found + 5, 1, found + 5 - arena), 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	free(arena);
}

static void reopen(struct world *world)
{
	fc_llama_close(world->bridge);
	world->bridge = NULL;
	llama_free(world->engine);
	world->engine = llama_init_from_model(world->model, world->params);
	assert_non_null(world->engine);
	world->opts.context = world->engine;
	world_open_bridge(world);
}

static int open_code(struct world *world, const struct fc_llama_opts *opts, const char *expected_text)
{
	struct fc_error error = {0};
	struct fc_llama *bridge;
	(void)world;
	int code = fc_llama_open(&bridge, opts, &error);
	assert_null(bridge);
	if (strstr(error.text, expected_text) == NULL)
		fail_msg("\"%s\" says nothing of \"%s\"", error.text, expected_text);
	return code;
}

/* Both contexts hold `count` tokens in sequence 0, and the store has them. */
static void store_tokens(struct world *world, const llama_token *tokens, size_t count)
{
	decode(world->engine, 0, tokens, 0, count);
	decode(world->witness, 0, tokens, 0, count);
	save(world, "a", 0, tokens, count);
}

/* ---- damage ---- */

static void a_damaged_slice_ends_the_prefix_before_it_and_touches_no_live_sequence(void **state)
{
	(void)state;
	struct world world;
	struct copy copy;
	llama_token tokens[TOKENS_MAX], other[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 20, tokens, TOKENS_MAX);
	make_tokens(&world, 21, other, TOKENS_MAX);
	store_tokens(&world, tokens, 8 * BLOCK);
	decode(world.engine, 1, other, 0, 77);
	copy_init(&copy, world.engine, 0, 2);
	damage(&world, &copy, true, 2, 5 * BLOCK + 3);

	uint64_t size_before, size_after;
	uint8_t *before = state_of(world.engine, 1, &size_before);
	forget(world.engine, 0, 0);
	struct fc_llama_restored restored = restore(&world, 0, tokens, 8 * BLOCK + 1, 0);
	assert_int_equal(restored.matched_tokens, 8 * BLOCK);
	assert_int_equal(restored.tokens, 5 * BLOCK);
	uint8_t *after = state_of(world.engine, 1, &size_after);
	assert_int_equal(size_after, size_before);
	assert_memory_equal(after, before, size_before);
	both_say(&world, 0, tokens, 5 * BLOCK, 8 * BLOCK + 1);

	/* What was computed again is stored again. */
	save(&world, "a", 0, tokens, 8 * BLOCK);
	forget(world.engine, 0, 0);
	assert_int_equal(restore(&world, 0, tokens, 8 * BLOCK + 1, 0).tokens, 8 * BLOCK);
	both_say(&world, 0, tokens, 8 * BLOCK, 8 * BLOCK + 1);
	free(before);
	free(after);
	copy_deinit(&copy);
	world_deinit(&world);
}

static void what_a_sequence_holds_outlives_a_restore_that_finds_damage(void **state)
{
	(void)state;
	struct world world;
	struct copy copy;
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 22, tokens, TOKENS_MAX);
	store_tokens(&world, tokens, 8 * BLOCK);
	copy_init(&copy, world.engine, 0, 2);
	damage(&world, &copy, false, 0, BLOCK + 1);
	forget(world.engine, 0, 40);
	struct fc_llama_restored restored = restore(&world, 0, tokens, 8 * BLOCK, 40);
	assert_int_equal(restored.restored_tokens, 0);
	assert_int_equal(restored.tokens, 40);
	both_say(&world, 0, tokens, 40, 8 * BLOCK);
	copy_deinit(&copy);
	world_deinit(&world);
}

/* ---- restarts and changes ---- */

static void a_restarted_program_finds_everything_again(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 23, tokens, TOKENS_MAX);
	store_tokens(&world, tokens, 130);
	reopen(&world);
	assert_int_equal(restore(&world, 0, tokens, 140, 0).tokens, 8 * BLOCK);
	both_say(&world, 0, tokens, 8 * BLOCK, 140);
	world_deinit(&world);
}

static void copy_file(const char *from, const char *to)
{
	char command[512];
	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0);
}

static size_t stored_after_reopening(struct world *world, const llama_token *tokens, size_t count)
{
	size_t stored;
	reopen(world);
	assert_int_equal(fc_llama_match(world->bridge, tokens, count, &stored), FC_OK);
	return stored;
}

static void another_model_under_the_same_name_finds_nothing(void **state)
{
	(void)state;
	struct world world;
	char path[128];
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	snprintf(path, sizeof(path), "%s/model.gguf", world.folder);
	copy_file(world_models[0], path);
	world.opts.model_path = path;
	world_start(&world);
	make_tokens(&world, 24, tokens, TOKENS_MAX);
	store_tokens(&world, tokens, 100);
	copy_file(world_models[1], path);
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 0);
	copy_file(world_models[0], path);
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 6 * BLOCK);
	world_deinit(&world);
}

static void other_settings_adapters_and_tenants_find_nothing(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 25, tokens, TOKENS_MAX);
	store_tokens(&world, tokens, 100);
	world.params.rope_freq_base = 20000;
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 0);
	world.params.rope_freq_base = 0;
	world.params.n_ctx *= 2;
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 0);
	world.params.n_ctx /= 2;
	world.opts.adapter = "poems at 0.5";
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 0);
	world.opts.adapter = NULL;
	world.opts.tenant_salt = "pepper";
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 0);
	world.opts.tenant_salt = NULL;
	assert_int_equal(stored_after_reopening(&world, tokens, 100), 6 * BLOCK);
	world_deinit(&world);
}

static void a_store_for_rows_of_another_size_is_refused(void **state)
{
	(void)state;
	struct world world;
	world_init(&world);
	world_start(&world);
	fc_llama_close(world.bridge);
	world.bridge = NULL;
	llama_free(world.engine);
	world.params.type_k = world.params.type_v = GGML_TYPE_Q8_0;
	world.engine = llama_init_from_model(world.model, world.params);
	world.opts.context = world.engine;
	assert_int_equal(open_code(&world, &world.opts, "slice"), FC_EGEOMETRY);
	world_deinit(&world);
}

static void a_bridge_that_cannot_be_exact_is_refused_with_the_reason(void **state)
{
	(void)state;
	struct world world;
	const llama_token token = 1;
	world_init(&world);
	world_start(&world);
	struct fc_llama_opts opts = world.opts;
	opts.scratch_sequence = 1;
	assert_int_equal(open_code(&world, &opts, "kv_unified"), FC_EINVAL);
	opts = world.opts;
	opts.model_path = "model-00001-of-00004.gguf";
	assert_int_equal(open_code(&world, &opts, "one part of several"), FC_EINVAL);
	opts.model_path = "/nowhere/model.gguf";
	assert_int_equal(open_code(&world, &opts, "/nowhere/model.gguf"), FC_ESYSTEM);
	struct llama_context_params params = world.params;
	params.type_k = GGML_TYPE_Q4_0;
	opts = world.opts;
	opts.params = &params;
	assert_int_equal(open_code(&world, &opts, "KV types"), FC_EINVAL);
	decode(world.engine, 0, &token, 0, 1);
	assert_int_equal(open_code(&world, &world.opts, "must be empty"), FC_EBUSY);
	forget(world.engine, 0, 0);
	world.params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
	opts.context = llama_init_from_model(world.model, world.params);
	opts.params = &world.params;
	assert_int_equal(open_code(&world, &opts, "LLAMA_FLASH_ATTN_TYPE_ENABLED"), FC_EINVAL);
	llama_free(opts.context);
	world_deinit(&world);
}

/* ---- room ---- */

static void a_full_store_refuses_a_turn_and_the_conversation_goes_on(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	struct fc_error error = {0};
	struct fc_llama_saved saved;
	world_init(&world);
	world.opts.store_opts.ssd_bytes = 400 << 10;
	world_start(&world);
	make_tokens(&world, 26, tokens, TOKENS_MAX);
	store_tokens(&world, tokens, 8 * BLOCK);
	both_say(&world, 0, tokens, 8 * BLOCK, TOKENS_MAX - 1);
	struct fc_llama_turn turn = {
		.session = fc_session_id_from_text("a"), .tokens = tokens, .token_count = TOKENS_MAX - 1};
	int code = fc_llama_save(world.bridge, &turn, true, &saved, &error);
	assert_int_equal(code, FC_EFULL);
	assert_int_equal(saved.stored_tokens, 0);
	both_say(&world, 0, tokens, TOKENS_MAX - 1, TOKENS_MAX);
	world_deinit(&world);
}

static void old_sessions_make_room_for_new_ones(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	char name[16];
	size_t stored;
	world_init(&world);
	world.opts.store_opts.ssd_bytes = 600 << 10;
	world_start(&world);
	make_tokens(&world, 27, tokens, TOKENS_MAX);
	for (int i = 0; i < 8; i++) {
		tokens[0] = 300 + i;
		forget(world.engine, 0, 0);
		forget(world.witness, 0, 0);
		decode(world.engine, 0, tokens, 0, 10 * BLOCK);
		decode(world.witness, 0, tokens, 0, 10 * BLOCK);
		snprintf(name, sizeof(name), "session %d", i);
		save(&world, name, 0, tokens, 10 * BLOCK);
		forget(world.engine, 0, 0);
		assert_int_equal(restore(&world, 0, tokens, 10 * BLOCK + 1, 0).tokens, 10 * BLOCK);
		both_say(&world, 0, tokens, 10 * BLOCK, 10 * BLOCK + 1);
	}
	tokens[0] = 300;
	assert_int_equal(fc_llama_match(world.bridge, tokens, 10 * BLOCK, &stored), FC_OK);
	assert_int_equal(stored, 0);
	world_deinit(&world);
}

static void a_prefix_that_the_engine_has_no_room_for_is_reported(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX], other[TOKENS_MAX];
	struct fc_llama_restored restored;
	struct fc_error error = {0};
	world_init(&world);
	world.params.kv_unified = true;
	world.params.n_ctx = 256;
	world_start(&world);
	make_tokens(&world, 28, tokens, TOKENS_MAX);
	make_tokens(&world, 29, other, TOKENS_MAX);
	store_tokens(&world, tokens, 8 * BLOCK);
	forget(world.engine, 0, 0);
	forget(world.witness, 0, 0);
	decode(world.engine, 1, other, 0, 200);
	decode(world.witness, 1, other, 0, 200);
	assert_int_equal(fc_llama_restore(world.bridge, 0, tokens, 8 * BLOCK + 1, 0, &restored, &error), FC_EFULL);
	assert_non_null(strstr(error.text, "no room"));
	assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(world.engine), 0), -1);
	both_say(&world, 1, other, 200, 220);
	world_deinit(&world);
}

/* ---- forms ---- */

static void rows_that_lie_out_of_order_are_stored_in_order(void **state)
{
	(void)state;
	struct world world;
	struct copy scattered, again;
	llama_token tokens[TOKENS_MAX], other[TOKENS_MAX];
	struct fc_error error;
	world_init(&world);
	world.params.kv_unified = true;
	world.params.n_ctx = 256;
	world_start(&world);
	make_tokens(&world, 30, tokens, TOKENS_MAX);
	make_tokens(&world, 31, other, TOKENS_MAX);
	decode(world.engine, 1, other, 0, 100); /* cells 0 to 99, which are free again when ours grows */
	decode(world.engine, 0, tokens, 0, 90);
	forget(world.engine, 1, 0);
	decode(world.engine, 0, tokens, 90, 8 * BLOCK);
	copy_init(&scattered, world.engine, 0, 2);
	assert_false(state_is_in_order(&scattered.view, 0));
	save(&world, "a", 0, tokens, 8 * BLOCK);

	forget(world.engine, 0, 0);
	assert_int_equal(restore(&world, 0, tokens, 8 * BLOCK + 1, 0).tokens, 8 * BLOCK);
	copy_init(&again, world.engine, 0, 2);
	assert_true(state_is_in_order(&again.view, 0));
	struct state_view sorted;
	uint8_t *bytes = malloc(scattered.size);
	assert_non_null(bytes);
	state_frame(&scattered.shape, bytes, 8 * BLOCK, &sorted);
	assert_int_equal(state_sort(&scattered.shape, &scattered.view, 0, &sorted, &error), FC_OK);
	assert_int_equal(again.size, scattered.size);
	assert_memory_equal(again.view.bytes + 8, bytes + 8, again.size - 8); /* behind the number of the sequence */
	free(bytes);
	copy_deinit(&scattered);
	copy_deinit(&again);
	world_deinit(&world);
}

static void tokens_that_the_sequence_does_not_hold_are_not_stored(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	struct fc_error error = {0};
	struct fc_llama_saved saved;
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 32, tokens, TOKENS_MAX);
	decode(world.engine, 0, tokens, 0, 50);
	struct fc_llama_turn turn = {.session = fc_session_id_from_text("a"), .tokens = tokens, .token_count = 100};
	assert_int_equal(fc_llama_save(world.bridge, &turn, true, &saved, &error), FC_EINVAL);
	turn.sequence = 1;
	assert_int_equal(fc_llama_save(world.bridge, &turn, true, &saved, &error), FC_EINVAL);
	world_deinit(&world);
}

static void a_sequence_that_the_context_does_not_have_is_refused(void **state)
{
	(void)state;
	struct world world;
	llama_token tokens[TOKENS_MAX];
	struct fc_error error = {0};
	struct fc_llama_saved saved;
	struct fc_llama_restored restored;
	world_init(&world);
	world.params.kv_unified = true;
	world.opts.scratch_sequence = SEQUENCES - 1;
	world_start(&world);
	make_tokens(&world, 34, tokens, TOKENS_MAX);
	const llama_seq_id bad[] = {-1, SEQUENCES - 1, SEQUENCES, 1000000};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fc_llama_turn turn = {.sequence = bad[i], .tokens = tokens, .token_count = 100};
		assert_int_equal(fc_llama_save(world.bridge, &turn, true, &saved, &error), FC_EINVAL);
		assert_int_equal(fc_llama_restore(world.bridge, bad[i], tokens, 100, 0, &restored, &error), FC_EINVAL);
	}
	world_deinit(&world);
}

static bool is_of_known_form(const struct copy *copy, uint64_t size)
{
	struct state_view view;
	struct fc_error error;
	uint8_t *bytes = malloc(size + 1); /* of exactly this size, so that a sanitizer sees what is read behind it */
	assert_non_null(bytes);
	bytes = realloc(bytes, size > 0 ? size : 1);
	memcpy(bytes, copy->view.bytes, size);
	bool is_known = state_open(&copy->shape, bytes, size, &view, &error) == FC_OK && view.cell_count == 20 &&
			state_is_in_order(&view, 0);
	free(bytes);
	return is_known;
}

static bool is_row_byte(const struct copy *copy, uint64_t at)
{
	for (uint32_t layer = 0; layer < copy->shape.layer_count; layer++) {
		uint64_t keys_at = state_keys_at(&copy->shape, &copy->view, layer);
		uint64_t values_at = state_values_at(&copy->shape, &copy->view, layer);
		if ((at >= keys_at && at < keys_at + 20 * copy->shape.keys[layer].bytes) ||
		    (at >= values_at && at < values_at + 20 * copy->shape.values[layer].bytes))
			return true;
	}
	return false;
}

static void a_state_of_another_form_is_refused_whatever_byte_differs(void **state)
{
	(void)state;
	struct world world;
	struct copy copy;
	llama_token tokens[TOKENS_MAX];
	uint64_t checked = 0;
	world_init(&world);
	world_start(&world);
	make_tokens(&world, 33, tokens, TOKENS_MAX);
	decode(world.engine, 1, tokens, 0, 20);
	copy_init(&copy, world.engine, 1, 2);
	assert_true(is_of_known_form(&copy, copy.size));
	for (uint64_t at = 0; at < copy.size; at++) {
		uint64_t in_cell = (at - copy.view.cells_at) % 12;
		bool is_cell = at >= copy.view.cells_at && at < copy.view.cells_at + 20 * 12;
		bool is_sequence = (at >= 4 && at < 8) || (is_cell && in_cell >= 8); /* which one it was: no matter */
		if (is_sequence || is_row_byte(&copy, at))
			continue;
		copy.view.bytes[at] ^= 0x41;
		if (is_of_known_form(&copy, copy.size))
			fail_msg("byte %llu may be anything", (unsigned long long)at);
		copy.view.bytes[at] ^= 0x41;
		checked++;
	}
	assert_true(checked > 150);
	for (uint64_t size = 0; size < copy.size; size += size < 400 ? 1 : 97)
		assert_false(is_of_known_form(&copy, size));
	copy_deinit(&copy);
	world_deinit(&world);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_damaged_slice_ends_the_prefix_before_it_and_touches_no_live_sequence),
		cmocka_unit_test(what_a_sequence_holds_outlives_a_restore_that_finds_damage),
		cmocka_unit_test(a_restarted_program_finds_everything_again),
		cmocka_unit_test(another_model_under_the_same_name_finds_nothing),
		cmocka_unit_test(other_settings_adapters_and_tenants_find_nothing),
		cmocka_unit_test(a_store_for_rows_of_another_size_is_refused),
		cmocka_unit_test(a_bridge_that_cannot_be_exact_is_refused_with_the_reason),
		cmocka_unit_test(a_full_store_refuses_a_turn_and_the_conversation_goes_on),
		cmocka_unit_test(old_sessions_make_room_for_new_ones),
		cmocka_unit_test(a_prefix_that_the_engine_has_no_room_for_is_reported),
		cmocka_unit_test(rows_that_lie_out_of_order_are_stored_in_order),
		cmocka_unit_test(tokens_that_the_sequence_does_not_hold_are_not_stored),
		cmocka_unit_test(a_sequence_that_the_context_does_not_have_is_refused),
		cmocka_unit_test(a_state_of_another_form_is_refused_whatever_byte_differs),
	};
	world_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

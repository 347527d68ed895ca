#include "world.h"

#include <ggml-backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *world_models[2];

/* ---- a world ---- */

static void on_log(enum ggml_log_level level, const char *text, void *user)
{
	(void)user;
	if (level == GGML_LOG_LEVEL_ERROR && getenv("VERBOSE") != NULL)
		fputs(text, stderr);
}

void world_begin(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s MODEL OTHER_MODEL\n", argv[0]);
		exit(2);
	}
	world_models[0] = argv[1];
	world_models[1] = argv[2];
	llama_log_set(on_log, NULL);
	llama_backend_init();
	ggml_backend_load_all_from_path(LLAMA_LIB);
}

void world_open_bridge(struct world *world)
{
	struct fc_error error = {0};
	if (fc_llama_open(&world->bridge, &world->opts, &error) != FC_OK)
		fail_msg("%s", error.text);
}

static struct llama_context *new_context(struct world *world)
{
	struct llama_context *context = llama_init_from_model(world->model, world->params);
	assert_non_null(context);
	return context;
}

static void load_model(struct world *world, const char *path)
{
	struct llama_model_params params = llama_model_default_params();
	params.n_gpu_layers = 0;
	world->model = llama_model_load_from_file(path, params);
	assert_non_null(world->model);
	world->vocab = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(world->model));
	world->opts.model_path = path;
}

/* Contexts and options as most tests want them: all on SSD, a stream for each sequence. */
void world_init(struct world *world)
{
	memset(world, 0, sizeof(*world));
	fc_llama_opts_init(&world->opts);
	snprintf(world->folder, sizeof(world->folder), "%s/flatcake-llama-XXXXXX",
		 getenv("TMPDIR") != NULL && strlen(getenv("TMPDIR")) < 30 ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->address, sizeof(world->address), "dir:%s", world->folder);
	load_model(world, world_models[0]);
	world->params = llama_context_default_params();
	world->params.n_ctx = CONTEXT * SEQUENCES;
	world->params.n_seq_max = SEQUENCES;
	world->params.n_batch = world->params.n_ubatch = TOKENS_MAX;
	world->params.n_threads = world->params.n_threads_batch = 1; /* a second one spins while it waits */
	world->params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
	world->params.kv_unified = false;
	world->opts.params = &world->params;
	world->opts.block_tokens = BLOCK;
	world->opts.address = world->address;
	world->opts.store_opts.memory_bytes = 0;
	world->opts.store_opts.ssd_bytes = 64 * MIB;
}

void world_start(struct world *world)
{
	world->engine = new_context(world);
	world->witness = new_context(world);
	world->opts.context = world->engine;
	world->expected = malloc(world->vocab * sizeof(float));
	assert_non_null(world->expected);
	world_open_bridge(world);
}

void world_deinit(struct world *world)
{
	char command[128];
	fc_llama_close(world->bridge);
	llama_free(world->engine);
	llama_free(world->witness);
	llama_model_free(world->model);
	free(world->expected);
	snprintf(command, sizeof(command), "rm -rf '%s'", world->folder);
	assert_int_equal(system(command), 0);
}

/* ---- engines ---- */

void make_tokens(const struct world *world, uint64_t seed, llama_token *tokens, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		tokens[i] = (llama_token)((seed >> 33) % (world->vocab - 300)) + 300;
	}
}

/* Decodes tokens [from, to) in one batch; the logits are those of the last. */
const float *decode(struct llama_context *context, llama_seq_id sequence, const llama_token *tokens, size_t from,
		    size_t to)
{
	struct llama_batch batch = llama_batch_init((int32_t)(to - from), 0, 1);
	batch.n_tokens = (int32_t)(to - from);
	for (int32_t i = 0; i < batch.n_tokens; i++) {
		batch.token[i] = tokens[from + (size_t)i];
		batch.pos[i] = (llama_pos)from + i;
		batch.n_seq_id[i] = 1;
		batch.seq_id[i][0] = sequence;
		batch.logits[i] = i == batch.n_tokens - 1;
	}
	assert_int_equal(llama_decode(context, batch), 0);
	llama_batch_free(batch);
	return llama_get_logits_ith(context, -1);
}

void forget(struct llama_context *context, llama_seq_id sequence, size_t from)
{
	assert_true(llama_memory_seq_rm(llama_get_memory(context), sequence, (llama_pos)from, -1));
}

llama_token best_of(const float *logits, size_t vocab)
{
	size_t best = 0;
	for (size_t i = 1; i < vocab; i++)
		best = logits[i] > logits[best] ? i : best;
	return (llama_token)best;
}

/* ---- what tests do ---- */

struct fc_llama_restored restore(struct world *world, llama_seq_id sequence, const llama_token *tokens, size_t count,
				 size_t live)
{
	struct fc_error error = {0};
	struct fc_llama_restored restored;
	if (fc_llama_restore(world->bridge, sequence, tokens, count, live, &restored, &error) != FC_OK)
		fail_msg("%s", error.text);
	assert_int_equal(restored.tokens + restored.tokens_left, count);
	assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(world->engine), sequence),
			 (llama_pos)restored.tokens - 1);
	return restored;
}

struct fc_llama_saved save(struct world *world, const char *session, llama_seq_id sequence, const llama_token *tokens,
			   size_t count)
{
	struct fc_error error = {0};
	struct fc_llama_saved saved;
	struct fc_llama_turn turn = {.session = fc_session_id_from_text(session),
				     .sequence = sequence,
				     .tokens = tokens,
				     .token_count = count};
	if (fc_llama_save(world->bridge, &turn, true, &saved, &error) != FC_OK)
		fail_msg("%s", error.text);
	return saved;
}

/* The engine goes on from where it is, the witness from the same place, and both must say the same in every bit. */
llama_token both_say(struct world *world, llama_seq_id sequence, const llama_token *tokens, size_t from, size_t to)
{
	forget(world->witness, sequence, from);
	memcpy(world->expected, decode(world->witness, sequence, tokens, from, to), world->vocab * sizeof(float));
	const float *found = decode(world->engine, sequence, tokens, from, to);
	assert_memory_equal(found, world->expected, world->vocab * sizeof(float));
	return best_of(found, world->vocab);
}

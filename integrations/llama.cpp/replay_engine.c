#include "replay.h"

#include <ggml-backend.h>
#include <string.h>
#include <time.h>

uint64_t replay_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void on_log(enum ggml_log_level level, const char *text, void *user)
{
	(void)user;
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

int engine_load(struct engine *engine, const struct replay_opts *opts, struct fc_error *error)
{
	*engine = (struct engine){.opts = opts};
	llama_log_set(on_log, NULL);
	llama_backend_init();
	ggml_backend_load_all_from_path(opts->libraries);
	struct llama_model_params params = llama_model_default_params();
	params.n_gpu_layers = 0;
	engine->model = llama_model_load_from_file(opts->model, params);
	if (engine->model == NULL)
		return fc_error_set(error, FC_EINVAL, "--model: %s is not a model that llama.cpp can load",
				    opts->model);
	engine->vocab_count = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(engine->model));
	return FC_OK;
}

int engine_start(struct engine *engine, uint32_t sequences, uint64_t tokens_per_sequence, struct fc_error *error)
{
	const struct replay_opts *opts = engine->opts;
	engine->params = llama_context_default_params();
	if (tokens_per_sequence > UINT32_MAX / sequences)
		return fc_error_set(error, FC_ELIMIT, "%u sequences of %llu tokens", sequences,
				    (unsigned long long)tokens_per_sequence);
	engine->params.n_ctx = sequences * (uint32_t)tokens_per_sequence;
	engine->params.n_seq_max = sequences;
	engine->params.n_batch = engine->params.n_ubatch = (uint32_t)opts->batch;
	engine->params.n_threads = engine->params.n_threads_batch = (int32_t)opts->threads;
	engine->params.type_k = opts->type_k;
	engine->params.type_v = opts->type_v;
	engine->params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
	engine->params.kv_unified = false;
	engine->context = llama_init_from_model(engine->model, engine->params);
	if (engine->context == NULL)
		return fc_error_set(error, FC_ENOMEM, "llama.cpp makes no context of %u sequences of %llu tokens",
				    sequences, (unsigned long long)tokens_per_sequence);
	engine->memory = llama_get_memory(engine->context);
	engine->batch = llama_batch_init((int32_t)opts->batch, 0, 1);
	return FC_OK;
}

void engine_stop(struct engine *engine)
{
	if (engine->context == NULL)
		return;
	llama_batch_free(engine->batch);
	llama_free(engine->context);
	engine->context = NULL;
}

void engine_free(struct engine *engine)
{
	engine_stop(engine);
	llama_model_free(engine->model);
	llama_backend_free();
}

int engine_decode(struct engine *engine, llama_seq_id sequence, const llama_token *tokens, size_t from, size_t to,
		  const float **logits, struct fc_error *error)
{
	struct llama_batch *batch = &engine->batch;
	while (from < to) {
		size_t count = to - from < engine->opts->batch ? to - from : engine->opts->batch;
		for (size_t i = 0; i < count; i++) {
			batch->token[i] = tokens[from + i];
			batch->pos[i] = (llama_pos)(from + i);
			batch->n_seq_id[i] = 1;
			batch->seq_id[i][0] = sequence;
			batch->logits[i] = from + i + 1 == to;
		}
		batch->n_tokens = (int32_t)count;
		int code = llama_decode(engine->context, *batch);
		if (code != 0)
			return fc_error_set(error, FC_EFULL, "llama_decode says %d at token %zu", code, from);
		from += count;
	}
	*logits = llama_get_logits_ith(engine->context, -1);
	return FC_OK;
}

llama_token engine_best(const struct engine *engine, const float *logits)
{
	size_t best = 0;
	for (size_t i = 1; i < engine->vocab_count; i++)
		best = logits[i] > logits[best] ? i : best;
	return (llama_token)best;
}

/* A program of one's own: answers one prompt, and remembers it for the next run.
 *
 *     example MODEL.gguf STORE_FOLDER "a long text" [THREADS]
 *
 * What is FlatCake's is marked; the rest is what any llama.cpp program does. */
#include <flatcake-llama.h>

#include <ggml-backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_TOKENS 4096
#define REPLY_TOKENS 16

static void must(int code, const struct fc_error *error)
{
	if (code == FC_OK)
		return;
	fprintf(stderr, "example: %s\n", error->text);
	exit(1);
}

static void be_quiet(enum ggml_log_level level, const char *text, void *user)
{
	(void)user;
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

/* FlatCake: open once, next to the context. */
static struct fc_llama *open_bridge(struct llama_context *context, const struct llama_context_params *params,
				    const char *model_path, const char *folder)
{
	char address[4096];
	struct fc_error error = {0};
	struct fc_llama *bridge;
	struct fc_llama_opts opts;
	fc_llama_opts_init(&opts);
	opts.context = context;
	opts.params = params;
	opts.model_path = model_path;
	snprintf(address, sizeof(address), "dir:%s", folder);
	opts.address = address;
	opts.store_opts.memory_bytes = 0; /* all on SSD, for the next run */
	opts.store_opts.ssd_bytes = 1ull << 30;
	must(fc_llama_open(&bridge, &opts, &error), &error);
	return bridge;
}

static llama_token decode(struct llama_context *context, llama_token *tokens, int32_t count)
{
	if (llama_decode(context, llama_batch_get_one(tokens, count)) != 0) { /* in sequence 0, behind what it holds */
		fprintf(stderr, "example: llama_decode fails\n");
		exit(1);
	}
	const float *logits = llama_get_logits_ith(context, -1);
	llama_token best = 0;
	for (llama_token i = 1; i < llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context))); i++)
		best = logits[i] > logits[best] ? i : best;
	return best;
}

static void answer(struct llama_context *context, struct fc_llama *bridge, llama_token *tokens, size_t count)
{
	struct fc_error error = {0};
	struct fc_llama_restored restored;
	must(fc_llama_restore(bridge, 0, tokens, count, 0, &restored, &error), &error); /* FlatCake: before decoding */
	printf("%zu tokens, of which %zu need not be computed again\n", count, restored.tokens);

	llama_token next = decode(context, tokens + restored.tokens, (int32_t)restored.tokens_left);
	for (int i = 0; i < REPLY_TOKENS; i++) {
		tokens[count++] = next;
		next = decode(context, &tokens[count - 1], 1);
		printf(" %d", tokens[count - 1]);
	}
	printf("\n");

	struct fc_llama_saved saved; /* FlatCake: after the turn */
	struct fc_llama_turn turn = {
		.session = fc_session_id_from_text("example"), .tokens = tokens, .token_count = count};
	must(fc_llama_save(bridge, &turn, true, &saved, &error), &error);
	printf("%llu new blocks stored\n", (unsigned long long)saved.blocks_new);
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: %s MODEL.gguf STORE_FOLDER TEXT [THREADS]\n", argv[0]);
		return 2;
	}
	llama_log_set(be_quiet, NULL);
	llama_backend_init();
	ggml_backend_load_all_from_path(LLAMA_LIB);
	struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
	struct llama_context_params params = llama_context_default_params();
	params.n_ctx = params.n_batch = CONTEXT_TOKENS;
	if (argc == 5)
		params.n_threads = params.n_threads_batch = atoi(argv[4]);
	params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED; /* FlatCake: or V lies transposed */
	struct llama_context *context = model == NULL ? NULL : llama_init_from_model(model, params);
	if (context == NULL) {
		fprintf(stderr, "example: %s cannot be loaded\n", argv[1]);
		return 1;
	}
	static llama_token tokens[CONTEXT_TOKENS];
	int32_t count = llama_tokenize(llama_model_get_vocab(model), argv[3], (int32_t)strlen(argv[3]), tokens,
				       CONTEXT_TOKENS - REPLY_TOKENS, true, false);
	if (count <= 0) {
		fprintf(stderr, "example: the text is empty or too long\n");
		return 1;
	}
	struct fc_llama *bridge = open_bridge(context, &params, argv[1], argv[2]);
	answer(context, bridge, tokens, (size_t)count);
	fc_llama_close(bridge); /* FlatCake: before the context */
	llama_free(context);
	llama_model_free(model);
	return 0;
}

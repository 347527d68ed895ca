/* What the tests of flatcake-llama stand on: a context that forgets, beside it one that never does, and a bridge.
 * Anything that fails here fails the test. */
#ifndef FLATCAKE_LLAMA_TESTS_WORLD_H
#define FLATCAKE_LLAMA_TESTS_WORLD_H

#include "flatcake-llama.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define BLOCK 16
#define CONTEXT 1024
#define TOKENS_MAX 512
#define SEQUENCES 4
#define MIB (1ull << 20)

/* Files of two models of one shape. */
extern const char *world_models[2];

struct world {
	struct llama_model *model;
	struct llama_context_params params;
	struct llama_context *engine;  /* forgets */
	struct llama_context *witness; /* never forgets */
	struct fc_llama_opts opts;     /* of the bridge */
	struct fc_llama *bridge;
	char folder[64], address[80];
	size_t vocab;
	float *expected; /* logits of the witness */
};

/* Takes the models from the arguments and loads the engine. */
void world_begin(int argc, char **argv);

/* Contexts and options as most tests want them, to be changed before world_start(): all on SSD, a stream for each
 * sequence. */
void world_init(struct world *world);
void world_start(struct world *world);
void world_open_bridge(struct world *world);
void world_deinit(struct world *world);

void make_tokens(const struct world *world, uint64_t seed, llama_token *tokens, size_t count);

/* Decodes tokens [from, to) in one batch; the logits are those of the last. */
const float *decode(struct llama_context *context, llama_seq_id sequence, const llama_token *tokens, size_t from,
		    size_t to);
void forget(struct llama_context *context, llama_seq_id sequence, size_t from);
llama_token best_of(const float *logits, size_t vocab);

struct fc_llama_restored restore(struct world *world, llama_seq_id sequence, const llama_token *tokens, size_t count,
				 size_t live);
struct fc_llama_saved save(struct world *world, const char *session, llama_seq_id sequence, const llama_token *tokens,
			   size_t count);

/* The engine goes on from where it is, the witness from the same place, and both must say the same in every bit. */
llama_token both_say(struct world *world, llama_seq_id sequence, const llama_token *tokens, size_t from, size_t to);

#endif

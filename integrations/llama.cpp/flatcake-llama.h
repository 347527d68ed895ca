/* flatcake-llama: keeps what a llama.cpp context has read in a FlatCake store, so that it need not be read again.
 *
 * It sits beside a `llama_context` and uses nothing but the public interfaces of both sides. For each request:
 *
 *   fc_llama_restore()    puts the longest stored prefix of the prompt into a sequence, says how many tokens are left
 *   llama_decode()        the program decodes those, and then generates its reply, as ever
 *   fc_llama_save()       stores the blocks that are new, while the sequence still holds them
 *
 * The KV of `block_tokens` tokens in one layer (their rows of K and of V) is a slice of the store, so any prefix of
 * whole blocks can be restored: the session's own, one that another session wrote, a branch that was left. Rows are
 * copied as they are, bit for bit.
 *
 *   units      tokens unless a name says otherwise; a session's tokens are counted from its beginning
 *   errors     as in flatcake.h: 0 or a negative FC_E... code, and a sentence in `struct fc_error` (may be NULL)
 *   threads    one bridge is used by one thread at a time, the one that uses its llama_context
 *   ownership  tokens are copied or used up before a call returns; the context must outlive the bridge */
#ifndef FLATCAKE_LLAMA_H
#define FLATCAKE_LLAMA_H

#include <flatcake.h>
#include <llama.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fc_llama;

/* Fill with fc_llama_opts_init(), then change what should differ. */
struct fc_llama_opts {
	size_t size;                               /* sizeof(struct fc_llama_opts) */
	struct llama_context *context;             /* required */
	const struct llama_context_params *params; /* those it was made with; required */

	/* What besides the tokens the KV depends on. All of it is in the name of every block. */
	const char *model_path;     /* file of the weights, read as a whole to name it by its hash; or: */
	const char *model_revision; /* a hash that the program knows already; needed for models split over files */
	const char *adapter;        /* LoRA adapters and control vectors that are set, by name and scale */
	const char *tenant_salt;    /* secret that separates tenants */

	uint32_t block_tokens; /* tokens of a block; default 64 */

	/* A sequence that the program does not use, for contexts with kv_unified: then a save copies the new tokens out
	 * of the engine, not the whole sequence. -1 (default): none. */
	llama_seq_id scratch_sequence;

	struct fc_store *store;          /* opened already, by another bridge; or NULL, then: */
	const char *address;             /* as for fc_store_open() */
	struct fc_store_opts store_opts; /* the geometry is filled in */
};

void fc_llama_opts_init(struct fc_llama_opts *opts);

/* Asks the engine for the shape of its KV, opens the store and names the model. One token is decoded in the scratch
 * sequence, or else in sequence 0, which must be empty (FC_EBUSY).
 *
 * FC_EINVAL with the reason for what cannot be kept exactly: V transposed (flash attention off), sliding windows,
 * recurrent layers, M-RoPE, encoders, an unknown form of state. Errors of fc_store_open() are passed on; FC_EGEOMETRY
 * says that the store was made for a model of another shape or for other KV types. */
int fc_llama_open(struct fc_llama **bridge, const struct fc_llama_opts *opts, struct fc_error *error);

/* Ends what is under way, closes the store if this bridge opened it. NULL is allowed. */
void fc_llama_close(struct fc_llama *bridge);

/* For fc_store_stats(), fc_session_blocks() and further bridges. */
struct fc_store *fc_llama_store(struct fc_llama *bridge);
const struct fc_geometry *fc_llama_geometry(const struct fc_llama *bridge);

/* BLAKE2b of a file as 64 hexadecimal digits and a zero. FC_ESYSTEM names the call that failed. */
#define FC_LLAMA_HASH_BYTES 65
int fc_llama_hash_file(const char *path, char hash[FC_LLAMA_HASH_BYTES], struct fc_error *error);

/* ---- restore ------------------------------------------------------------------------------------------------------
 */

/* How many leading tokens of a prompt are stored. */
int fc_llama_match(struct fc_llama *bridge, const llama_token *tokens, size_t token_count, size_t *stored_tokens);

struct fc_llama_restored {
	size_t tokens;         /* [0, tokens) is in the sequence, and nothing behind it */
	size_t tokens_left;    /* to be decoded, from position `tokens` on; at least 1 */
	size_t matched_tokens; /* what the index promised; more than what was restored only after damage or a reclaim */
	size_t restored_tokens; /* that came out of the store: 0 where the sequence held as much itself */
	uint64_t bytes[FC_MEDIUM_COUNT];
	uint64_t wait_ns; /* for the store */
	uint64_t copy_ns; /* into the engine */
};

/* Makes `sequence` hold the longest prefix of the prompt that is to be had: what of it the sequence holds already
 * (`live_tokens`, 0 for none) or what the store has, whichever is longer, less the last token, which the program
 * decodes for its logits. Other sequences are not touched, and neither is this one before all bytes have arrived and
 * been checked: a damaged block, or one that was reclaimed meanwhile, only makes the prefix end before it.
 *
 * FC_EFULL: the engine has no room for the prefix; the sequence is then empty. */
int fc_llama_restore(struct fc_llama *bridge, llama_seq_id sequence, const llama_token *tokens, size_t token_count,
		     size_t live_tokens, struct fc_llama_restored *restored, struct fc_error *error);

/* The same in two steps: between them the store reads, on a thread of its own, while the program decodes for others.
 * Finishing and cancelling free the load. */
struct fc_llama_load;
int fc_llama_load_begin(struct fc_llama *bridge, const llama_token *tokens, size_t token_count,
			struct fc_llama_load **load, struct fc_error *error);
int fc_llama_load_finish(struct fc_llama_load *load, llama_seq_id sequence, size_t live_tokens,
			 struct fc_llama_restored *restored, struct fc_error *error);
void fc_llama_load_cancel(struct fc_llama_load *load);

/* ---- save ---------------------------------------------------------------------------------------------------------
 */

struct fc_llama_turn {
	struct fc_session_id session;
	llama_seq_id sequence;
	const llama_token *tokens; /* all that the sequence holds, from its first; only whole blocks are stored */
	size_t token_count;
	size_t shared_tokens; /* leading tokens that other sessions have too, such as a system prompt; 0: none known */
	uint64_t turn;        /* 0 for the first of a session */
	uint64_t previous_reply_tokens;
};

struct fc_llama_saved {
	size_t stored_tokens; /* of the turn: all of its whole blocks */
	uint64_t blocks_new;
	uint64_t bytes_copied; /* out of the engine */
	uint64_t bytes_written[FC_MEDIUM_COUNT];
	uint64_t copy_ns; /* out of the engine */
	uint64_t wait_ns; /* for the store */
	bool is_durable;
};

/* Stores the blocks of a turn that are not stored yet. Returns when they are visible to restores (or durable, if
 * asked). FC_EFULL and other errors of the store leave no trace; the turn is then computed again when it is wanted. */
int fc_llama_save(struct fc_llama *bridge, const struct fc_llama_turn *turn, bool until_durable,
		  struct fc_llama_saved *saved, struct fc_error *error);

/* The same in two steps: the engine's memory is free to be used again after the first. */
struct fc_llama_saving;
int fc_llama_save_begin(struct fc_llama *bridge, const struct fc_llama_turn *turn, struct fc_llama_saving **save,
			struct fc_error *error);
int fc_llama_save_finish(struct fc_llama_saving *save, bool until_durable, struct fc_llama_saved *saved,
			 struct fc_error *error);

#ifdef __cplusplus
}
#endif

#endif

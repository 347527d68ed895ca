/* Keys: names of blocks that nobody can make collide, because tenants are adversaries.
 *
 * All hashes are BLAKE2b. What goes into one is framed so that two different inputs never give the same bytes: first a
 * constant that says what is being hashed, with its length in front like every string; integers of 32 bits (lengths:
 * 64), least significant byte first; keys of 16 bytes.
 *
 *     namespace  = BLAKE2b-256 ("flatcake namespace 1", model, revision, dtype, layout, adapter, tenant salt,
 *                               rank, rank_count)
 *     first key  = BLAKE2b-128 keyed with the namespace ("flatcake root 1", block_tokens, tokens)
 *     next key   = BLAKE2b-128 keyed with the namespace ("flatcake chain 1", block_tokens, parent key, tokens)
 *     content    = BLAKE2b-128 keyed with the namespace ("flatcake content 1", 1 and parent key or 0, length, bytes)
 *     session id = BLAKE2b-128 ("flatcake session 1", text)
 *
 * A key's first eight bytes are `high`, the next eight `low`, most significant first, so that printed one after the
 * other they read as the hash does. These definitions are part of the format: a change makes every stored block
 * unreachable. */
#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#define KEY_BYTES 16
#define TOKENS_AT_ONCE 256

static void put_u32(unsigned char *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
}

static void put_u64_big(unsigned char *bytes, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> (56 - 8 * i));
}

static uint64_t get_u64_big(const unsigned char *bytes)
{
	uint64_t value = 0;
	for (int i = 0; i < 8; i++)
		value = value << 8 | bytes[i];
	return value;
}

static void hash_bytes(crypto_generichash_state *state, const void *bytes, size_t byte_count)
{
	/* Of the three calls only init can fail, on sizes that are constants here. */
	fc_check(crypto_generichash_update(state, bytes, byte_count) == 0);
}

static void hash_u32(crypto_generichash_state *state, uint32_t value)
{
	unsigned char bytes[4];
	put_u32(bytes, value);
	hash_bytes(state, bytes, sizeof(bytes));
}

/* With the length in front. */
static void hash_framed(crypto_generichash_state *state, const void *bytes, uint64_t byte_count)
{
	hash_u32(state, (uint32_t)byte_count);
	hash_u32(state, (uint32_t)(byte_count >> 32));
	if (byte_count != 0)
		hash_bytes(state, bytes, byte_count);
}

static void hash_text(crypto_generichash_state *state, const char *text)
{
	hash_framed(state, text, text == NULL ? 0 : strlen(text));
}

int fc_namespace_init(struct fc_namespace *name_space, const struct fc_namespace_opts *opts, struct fc_error *error)
{
	if (name_space == NULL || opts == NULL)
		return fc_error_set(error, FC_EINVAL, "namespace: %s missing", opts == NULL ? "options" : "result");
	if (opts->rank_count == 0)
		return fc_error_set(error, FC_EINVAL, "namespace: rank_count is 0; 1 means no tensor parallelism");
	if (opts->rank >= opts->rank_count)
		return fc_error_set(error, FC_EINVAL,
				    "namespace: rank is %" PRIu32 "; with rank_count %" PRIu32
				    " allowed are 0 to %" PRIu32,
				    opts->rank, opts->rank_count, opts->rank_count - 1);
	crypto_generichash_state state;
	fc_check(crypto_generichash_init(&state, NULL, 0, sizeof(name_space->bytes)) == 0);
	hash_text(&state, "flatcake namespace 1");
	hash_text(&state, opts->model);
	hash_text(&state, opts->revision);
	hash_text(&state, opts->dtype);
	hash_text(&state, opts->layout);
	hash_text(&state, opts->adapter);
	hash_text(&state, opts->tenant_salt);
	hash_u32(&state, opts->rank);
	hash_u32(&state, opts->rank_count);
	fc_check(crypto_generichash_final(&state, name_space->bytes, sizeof(name_space->bytes)) == 0);
	return 0;
}

static struct fc_key finish_key(crypto_generichash_state *state)
{
	unsigned char bytes[KEY_BYTES];
	fc_check(crypto_generichash_final(state, bytes, sizeof(bytes)) == 0);
	struct fc_key key = {get_u64_big(bytes), get_u64_big(bytes + 8)};
	return key;
}

static void hash_tokens(crypto_generichash_state *state, const uint32_t *tokens, uint32_t token_count)
{
	unsigned char bytes[TOKENS_AT_ONCE * 4];
	while (token_count > 0) {
		uint32_t part = token_count < TOKENS_AT_ONCE ? token_count : TOKENS_AT_ONCE;
		for (uint32_t i = 0; i < part; i++)
			put_u32(bytes + 4 * i, tokens[i]);
		hash_bytes(state, bytes, (size_t)part * 4);
		tokens += part;
		token_count -= part;
	}
}

static void hash_key(crypto_generichash_state *state, const struct fc_key *key)
{
	unsigned char bytes[KEY_BYTES];
	put_u64_big(bytes, key->high);
	put_u64_big(bytes + 8, key->low);
	hash_bytes(state, bytes, sizeof(bytes));
}

static struct fc_key block_key(const struct fc_namespace *name_space, const struct fc_key *parent,
			       const uint32_t *tokens, uint32_t block_tokens)
{
	crypto_generichash_state state;
	fc_check(crypto_generichash_init(&state, name_space->bytes, sizeof(name_space->bytes), KEY_BYTES) == 0);
	hash_text(&state, parent == NULL ? "flatcake root 1" : "flatcake chain 1");
	hash_u32(&state, block_tokens);
	if (parent != NULL)
		hash_key(&state, parent);
	hash_tokens(&state, tokens, block_tokens);
	return finish_key(&state);
}

int fc_key_chain(const struct fc_namespace *name_space, const struct fc_key *parent, const uint32_t *tokens,
		 uint32_t block_tokens, uint64_t block_count, struct fc_key *keys)
{
	uint64_t token_bytes;
	if (name_space == NULL || block_tokens == 0 || block_tokens > FC_BLOCK_TOKENS_MAX)
		return FC_EINVAL;
	if (fc_mul_overflows(block_count, (uint64_t)block_tokens * sizeof(uint32_t), &token_bytes) ||
	    token_bytes > PTRDIFF_MAX)
		return FC_EINVAL;
	if (block_count != 0 && (tokens == NULL || keys == NULL))
		return FC_EINVAL;
	for (uint64_t i = 0; i < block_count; i++) {
		keys[i] = block_key(name_space, parent, tokens + i * block_tokens, block_tokens);
		parent = &keys[i];
	}
	return 0;
}

int fc_key_for_content(const struct fc_namespace *name_space, const struct fc_key *parent, const void *content,
		       uint64_t content_bytes, struct fc_key *key)
{
	if (name_space == NULL || content == NULL || content_bytes == 0 || content_bytes > PTRDIFF_MAX || key == NULL)
		return FC_EINVAL;
	crypto_generichash_state state;
	fc_check(crypto_generichash_init(&state, name_space->bytes, sizeof(name_space->bytes), KEY_BYTES) == 0);
	hash_text(&state, "flatcake content 1");
	hash_u32(&state, parent != NULL);
	if (parent != NULL)
		hash_key(&state, parent);
	hash_framed(&state, content, content_bytes);
	*key = finish_key(&state);
	return FC_OK;
}

struct fc_session_id fc_session_id_from_text(const char *text)
{
	crypto_generichash_state state;
	fc_check(crypto_generichash_init(&state, NULL, 0, KEY_BYTES) == 0);
	hash_text(&state, "flatcake session 1");
	hash_text(&state, text);
	struct fc_key hash = finish_key(&state);
	struct fc_session_id id = {hash.high, hash.low};
	if (id.high == 0 && id.low == 0)
		id.low = 1; /* {0, 0} would ask the store to infer the session */
	return id;
}

/* The name of everything besides the tokens that the KV depends on: weights, KV types, rope and context settings. It
 * becomes the namespace of the store, which is part of every block's key, so that rows of another model, or of the same
 * under other settings, are never found. */
#include "bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (1u << 20)

static int system_error(struct fc_error *error, const char *call, const char *path)
{
	return state_error(error, FC_ESYSTEM, "%s %s: %s", call, path, strerror(errno));
}

static int hash_descriptor(int fd, const char *path, unsigned char *hash, size_t hash_bytes, struct fc_error *error)
{
	crypto_generichash_state state;
	unsigned char *buffer = malloc(READ_BYTES);
	if (buffer == NULL)
		return state_error(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
	crypto_generichash_init(&state, NULL, 0, hash_bytes);
	ssize_t got;
	while ((got = read(fd, buffer, READ_BYTES)) > 0 || (got < 0 && errno == EINTR))
		if (got > 0)
			crypto_generichash_update(&state, buffer, (unsigned long long)got);
	int code = got < 0 ? system_error(error, "read", path) : FC_OK;
	crypto_generichash_final(&state, hash, hash_bytes);
	free(buffer);
	return code;
}

int fc_llama_hash_file(const char *path, char hash[FC_LLAMA_HASH_BYTES], struct fc_error *error)
{
	unsigned char bytes[(FC_LLAMA_HASH_BYTES - 1) / 2];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(error, "open", path);
	int code = sodium_init() < 0 ? state_error(error, FC_ESYSTEM, "libsodium does not start") : FC_OK;
	if (code == FC_OK)
		code = hash_descriptor(fd, path, bytes, sizeof(bytes), error);
	close(fd);
	if (code == FC_OK)
		sodium_bin2hex(hash, FC_LLAMA_HASH_BYTES, bytes, sizeof(bytes));
	return code;
}

/* "...-00001-of-00004.gguf": one part says nothing about the others. */
static bool is_split(const char *path)
{
	const char *of = strstr(path, "-of-");
	return of != NULL && strstr(of, ".gguf") != NULL && of - path > 6 && of[-6] == '-' &&
	       strspn(of - 5, "0123456789") == 5;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == NULL ? path : slash + 1;
}

/* All that may change what a row holds. Fields that are 0 mean "as the model has it", and the model is named by its
 * hash. */
static void describe_layout(const struct fc_llama *bridge, const struct llama_context_params *params, char *text,
			    size_t text_bytes)
{
	const struct llama_model *model = llama_get_model(bridge->context);
	snprintf(text, text_bytes,
		 "llama.cpp %s, ggml %s %s, rows; rope %d scaling %d base %.9g scale %.9g; yarn %.9g %.9g %.9g %.9g "
		 "%u; context %u; "
		 "attention %d; causal; block %u",
		 llama_version(), ggml_version(), ggml_commit(), (int)llama_model_rope_type(model),
		 (int)params->rope_scaling_type, (double)params->rope_freq_base, (double)params->rope_freq_scale,
		 (double)params->yarn_ext_factor, (double)params->yarn_attn_factor, (double)params->yarn_beta_fast,
		 (double)params->yarn_beta_slow, params->yarn_orig_ctx, llama_n_ctx_seq(bridge->context),
		 (int)params->attention_type, bridge->geometry.block_tokens);
}

static void describe_types(const struct state_shape *shape, char *text, size_t text_bytes)
{
	int used = snprintf(text, text_bytes, "k %s", ggml_type_name((enum ggml_type)shape->keys[0].type));
	if (shape->has_values && used > 0 && (size_t)used < text_bytes)
		snprintf(text + used, text_bytes - (size_t)used, ", v %s",
			 ggml_type_name((enum ggml_type)shape->values[0].type));
}

int bridge_name(struct fc_llama *bridge, const struct fc_llama_opts *opts, struct fc_error *error)
{
	char hash[FC_LLAMA_HASH_BYTES], layout[512], types[64];
	const char *revision = opts->model_revision;
	if (revision == NULL && opts->model_path == NULL)
		return state_error(error, FC_EINVAL, "neither model_path nor model_revision is given");
	if (revision == NULL && is_split(opts->model_path))
		return state_error(error, FC_EINVAL, "%s is one part of several: give a model_revision for all of them",
				   opts->model_path);
	if (revision == NULL) {
		int code = fc_llama_hash_file(opts->model_path, hash, error);
		if (code != FC_OK)
			return code;
		revision = hash;
	}
	describe_layout(bridge, opts->params, layout, sizeof(layout));
	describe_types(&bridge->shape, types, sizeof(types));
	struct fc_namespace_opts names = {
		.model = opts->model_path == NULL ? "" : base_name(opts->model_path),
		.revision = revision,
		.dtype = types,
		.layout = layout,
		.adapter = opts->adapter,
		.tenant_salt = opts->tenant_salt,
		.rank_count = 1,
	};
	return fc_namespace_init(&bridge->name_space, &names, error);
}

/* Writes a model of llama architecture with random weights, for demonstrations and tests without a download:
 *
 *     flatcake-llama-make-model [--layers N] [--embd N] [--heads N] [--kv-heads N] [--vocab N] [--seed N] FILE
 *
 * What it says is noise; but the engine computes it as it would any other model, and its attention is as sensitive to a
 * wrong row. The same options give the same file on every machine. The vocabulary has a token for every byte, so that
 * any text can be tokenized.
 *
 *   GGUF 3   "GGUF", version, tensor and pair counts; pairs; tensor infos; padding; tensors, each padded to 32 bytes
 *   weights  matrices in f16, even in (-a, a) with a = sqrt(3 / inputs), so that signals neither fade nor grow; norms 1
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 32u
#define BYTE_TOKENS_AT 3u /* after <unk>, <s>, </s> */
#define OTHER_TOKENS_AT (BYTE_TOKENS_AT + 256u)
#define CHUNK_VALUES 4096u

enum { KIND_U32 = 4, KIND_I32 = 5, KIND_F32 = 6, KIND_STRING = 8, KIND_ARRAY = 9 }; /* gguf_type */
enum { TENSOR_F32 = 0, TENSOR_F16 = 1 };                                            /* ggml_type */

struct shape {
	uint64_t layers, embd, heads, kv_heads, vocab, seed;
};

struct tensor {
	char name[64];
	uint64_t columns, rows; /* rows 0: a vector */
};

struct model {
	struct shape shape;
	uint64_t feed_forward, kv_embd;
	struct tensor *tensors;
	uint64_t tensor_count;
	FILE *file;
	uint64_t random;
};

static void put(FILE *file, const void *value, size_t bytes)
{
	fwrite(value, 1, bytes, file); /* what fails shows in ferror() at the end */
}

static void put_u32(FILE *file, uint32_t value)
{
	put(file, &value, sizeof(value));
}

static void put_u64(FILE *file, uint64_t value)
{
	put(file, &value, sizeof(value));
}

static void put_text(FILE *file, const char *text)
{
	put_u64(file, strlen(text));
	put(file, text, strlen(text));
}

static void put_pair_u32(FILE *file, const char *key, uint64_t value)
{
	put_text(file, key);
	put_u32(file, KIND_U32);
	put_u32(file, (uint32_t)value);
}

static void put_pair_f32(FILE *file, const char *key, float value)
{
	put_text(file, key);
	put_u32(file, KIND_F32);
	put(file, &value, sizeof(value));
}

static void put_pair_text(FILE *file, const char *key, const char *value)
{
	put_text(file, key);
	put_u32(file, KIND_STRING);
	put_text(file, value);
}

static void put_array(FILE *file, const char *key, uint32_t kind, uint64_t count)
{
	put_text(file, key);
	put_u32(file, KIND_ARRAY);
	put_u32(file, kind);
	put_u64(file, count);
}

/* ---- metadata ---- */

static void put_token(FILE *file, uint64_t token)
{
	static const char *const special[] = {"<unk>", "<s>", "</s>"};
	char text[32];
	if (token < BYTE_TOKENS_AT)
		snprintf(text, sizeof(text), "%s", special[token]);
	else if (token < OTHER_TOKENS_AT)
		snprintf(text, sizeof(text), "<0x%02X>", (unsigned)(token - BYTE_TOKENS_AT));
	else if (token == OTHER_TOKENS_AT)
		snprintf(text, sizeof(text), "\xe2\x96\x81"); /* what llama's tokenizer makes of a space */
	else
		snprintf(text, sizeof(text), "t%llu", (unsigned long long)token);
	put_text(file, text);
}

static uint32_t token_kind(uint64_t token)
{
	enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 }; /* llama_token_type */
	if (token < BYTE_TOKENS_AT)
		return token == 0 ? UNKNOWN : CONTROL;
	return token < OTHER_TOKENS_AT ? BYTE : NORMAL;
}

static void put_vocabulary(FILE *file, uint64_t vocab)
{
	put_pair_text(file, "tokenizer.ggml.model", "llama");
	put_array(file, "tokenizer.ggml.tokens", KIND_STRING, vocab);
	for (uint64_t token = 0; token < vocab; token++)
		put_token(file, token);
	put_array(file, "tokenizer.ggml.scores", KIND_F32, vocab);
	for (uint64_t token = 0; token < vocab; token++) {
		float score = -(float)token;
		put(file, &score, sizeof(score));
	}
	put_array(file, "tokenizer.ggml.token_type", KIND_I32, vocab);
	for (uint64_t token = 0; token < vocab; token++)
		put_u32(file, token_kind(token));
	put_pair_u32(file, "tokenizer.ggml.bos_token_id", 1);
	put_pair_u32(file, "tokenizer.ggml.eos_token_id", 2);
}

#define PAIR_COUNT 19u

static void put_pairs(const struct model *model)
{
	FILE *file = model->file;
	const struct shape *shape = &model->shape;
	put_pair_text(file, "general.architecture", "llama");
	put_pair_text(file, "general.name", "flatcake-random");
	put_pair_u32(file, "general.alignment", ALIGNMENT);
	put_pair_u32(file, "general.file_type", TENSOR_F16);
	put_pair_u32(file, "llama.block_count", shape->layers);
	put_pair_u32(file, "llama.context_length", 131072);
	put_pair_u32(file, "llama.embedding_length", shape->embd);
	put_pair_u32(file, "llama.feed_forward_length", model->feed_forward);
	put_pair_u32(file, "llama.attention.head_count", shape->heads);
	put_pair_u32(file, "llama.attention.head_count_kv", shape->kv_heads);
	put_pair_f32(file, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
	put_pair_u32(file, "llama.rope.dimension_count", shape->embd / shape->heads);
	put_pair_f32(file, "llama.rope.freq_base", 10000.0f);
	put_vocabulary(file, shape->vocab); /* six pairs */
}

/* ---- tensors ---- */

static void add(struct model *model, int layer, const char *name, uint64_t columns, uint64_t rows)
{
	struct tensor *tensor = &model->tensors[model->tensor_count++];
	*tensor = (struct tensor){.columns = columns, .rows = rows};
	if (layer < 0)
		snprintf(tensor->name, sizeof(tensor->name), "%s.weight", name);
	else
		snprintf(tensor->name, sizeof(tensor->name), "blk.%d.%s.weight", layer, name);
}

static void add_tensors(struct model *model)
{
	uint64_t embd = model->shape.embd, forward = model->feed_forward, kv_embd = model->kv_embd;
	add(model, -1, "token_embd", embd, model->shape.vocab);
	add(model, -1, "output_norm", embd, 0);
	add(model, -1, "output", embd, model->shape.vocab);
	for (int layer = 0; layer < (int)model->shape.layers; layer++) {
		add(model, layer, "attn_norm", embd, 0);
		add(model, layer, "attn_q", embd, embd);
		add(model, layer, "attn_k", embd, kv_embd);
		add(model, layer, "attn_v", embd, kv_embd);
		add(model, layer, "attn_output", embd, embd);
		add(model, layer, "ffn_norm", embd, 0);
		add(model, layer, "ffn_gate", embd, forward);
		add(model, layer, "ffn_up", embd, forward);
		add(model, layer, "ffn_down", forward, embd);
	}
}

static uint64_t tensor_bytes(const struct tensor *tensor)
{
	uint64_t bytes = tensor->rows == 0 ? tensor->columns * 4 : tensor->columns * tensor->rows * 2;
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void put_infos(const struct model *model)
{
	uint64_t offset = 0;
	for (uint64_t i = 0; i < model->tensor_count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		put_text(model->file, tensor->name);
		put_u32(model->file, tensor->rows == 0 ? 1 : 2);
		put_u64(model->file, tensor->columns);
		if (tensor->rows != 0)
			put_u64(model->file, tensor->rows);
		put_u32(model->file, tensor->rows == 0 ? TENSOR_F32 : TENSOR_F16);
		put_u64(model->file, offset);
		offset += tensor_bytes(tensor);
	}
}

/* Numbers of the weights: splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t value = (*state += 0x9e3779b97f4a7c15ull);
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

/* For magnitudes in [2^-14, 1), cut off; what is smaller becomes 0. */
static uint16_t half_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	uint32_t exponent = (bits >> 23) & 0xff, sign = (bits >> 16) & 0x8000;
	if (exponent < 127 - 14)
		return (uint16_t)sign;
	return (uint16_t)(sign | (exponent - (127 - 15)) << 10 | ((bits >> 13) & 0x3ff));
}

static float root_of(float value) /* so that no math library is needed, and every machine gets the same bits */
{
	float root = value > 1 ? value : 1;
	for (int i = 0; i < 40; i++)
		root = (root + value / root) / 2;
	return root;
}

static void put_matrix(struct model *model, const struct tensor *tensor)
{
	uint16_t chunk[CHUNK_VALUES];
	float limit = root_of(3.0f / (float)tensor->columns);
	uint64_t left = tensor_bytes(tensor) / sizeof(*chunk);
	while (left > 0) {
		uint64_t count = left < CHUNK_VALUES ? left : CHUNK_VALUES;
		for (uint64_t i = 0; i < count; i += 4) { /* sizes are multiples of ALIGNMENT, so of 4 values, too */
			uint64_t random = next_random(&model->random);
			for (uint64_t k = 0; k < 4; k++)
				chunk[i + k] = half_of(limit * (float)(int16_t)(random >> (16 * k)) / 32768.0f);
		}
		put(model->file, chunk, count * sizeof(*chunk));
		left -= count;
	}
}

static void put_vector(struct model *model, const struct tensor *tensor)
{
	const float one = 1.0f;
	for (uint64_t i = 0; i < tensor_bytes(tensor) / sizeof(one); i++)
		put(model->file, &one, sizeof(one));
}

static int write_model(struct model *model)
{
	FILE *file = model->file;
	put(file, "GGUF", 4);
	put_u32(file, 3);
	put_u64(file, model->tensor_count);
	put_u64(file, PAIR_COUNT);
	put_pairs(model);
	put_infos(model);
	while (ftell(file) % (long)ALIGNMENT != 0)
		put(file, "", 1);
	for (uint64_t i = 0; i < model->tensor_count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		if (tensor->rows == 0)
			put_vector(model, tensor);
		else
			put_matrix(model, tensor);
	}
	return ferror(file) ? -1 : 0;
}

/* ---- options ---- */

static int read_option(struct shape *shape, const char *name, const char *text)
{
	struct {
		const char *name;
		uint64_t *value, min, max;
	} options[] = {
		{"--layers", &shape->layers, 1, 256},     {"--embd", &shape->embd, 32, 8192},
		{"--heads", &shape->heads, 1, 128},       {"--kv-heads", &shape->kv_heads, 1, 128},
		{"--vocab", &shape->vocab, 300, 1000000}, {"--seed", &shape->seed, 0, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (strcmp(name, options[i].name) != 0)
			continue;
		char *end;
		errno = 0;
		*options[i].value = strtoull(text == NULL ? "" : text, &end, 10);
		if (text != NULL && *text != 0 && *text != '-' && *end == 0 && errno == 0 &&
		    *options[i].value >= options[i].min && *options[i].value <= options[i].max)
			return 0;
		fprintf(stderr, "make-model: %s %s; %llu to %llu are allowed\n", name, text == NULL ? "" : text,
			(unsigned long long)options[i].min, (unsigned long long)options[i].max);
		return -1;
	}
	fprintf(stderr, "make-model: unknown option %s\n", name);
	return -1;
}

static int check_shape(const struct shape *shape)
{
	if (shape->embd % shape->heads != 0 || shape->embd / shape->heads % 32 != 0 ||
	    shape->heads % shape->kv_heads != 0) {
		fprintf(stderr, "make-model: heads must divide embd into multiples of 32, and kv-heads heads\n");
		return -1;
	}
	return 0;
}

static int make(struct model *model, const char *path)
{
	model->tensors = calloc(3 + 9 * model->shape.layers, sizeof(*model->tensors));
	model->file = fopen(path, "wb");
	if (model->tensors == NULL || model->file == NULL) {
		fprintf(stderr, "make-model: %s: %s\n", path, strerror(errno));
		free(model->tensors);
		return -1;
	}
	add_tensors(model);
	int result = write_model(model);
	if (fclose(model->file) != 0 || result != 0) {
		fprintf(stderr, "make-model: %s: %s\n", path, strerror(errno));
		result = -1;
	}
	free(model->tensors);
	return result;
}

int main(int argc, char **argv)
{
	struct model model = {
		.shape = {.layers = 8, .embd = 512, .heads = 8, .kv_heads = 2, .vocab = 32000, .seed = 1}};
	int i = 1;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
		if (read_option(&model.shape, argv[i], argv[i + 1]) != 0)
			return 2;
	if (i + 1 != argc) {
		fprintf(stderr, "usage: flatcake-llama-make-model [--layers N] [--embd N] [--heads N] [--kv-heads N] "
				"[--vocab N] [--seed N] FILE\n");
		return 2;
	}
	if (check_shape(&model.shape) != 0)
		return 2;
	model.random = model.shape.seed;
	model.kv_embd = model.shape.embd / model.shape.heads * model.shape.kv_heads;
	model.feed_forward = (model.shape.embd * 11 / 4 + 31) / 32 * 32;
	return make(&model, argv[i]) == 0 ? 0 : 1;
}

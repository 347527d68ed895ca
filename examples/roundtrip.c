/* Stores a conversation of two turns and restores it: the whole life of a session in one small program.
 *
 *     cc roundtrip.c $(pkg-config --cflags --libs flatcake) -o roundtrip && ./roundtrip /tmp/flatcake-example
 */
#include <flatcake.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_TOKENS = 16, BLOCKS = 32, FIRST_TURN = 20, LAYERS = 4, SLICE_BYTES = 3000 };

static unsigned char kv_memory[LAYERS][BLOCKS][SLICE_BYTES]; /* an engine's paged KV: slot s of layer l */

static void must(int code, const struct fc_error *error)
{
	if (code == FC_OK)
		return;
	fprintf(stderr, "roundtrip: %s (%s)\n", error->text, fc_code_text(code));
	exit(1);
}

static void save_turn(struct fc_store *store, struct fc_kv *kv, const struct fc_key *keys, uint64_t block_count,
		      const uint64_t *slots, uint64_t turn)
{
	struct fc_error error = {0};
	struct fc_save *save;
	struct fc_save_result result;
	struct fc_save_opts opts = {
		.session = fc_session_id_from_text("example"), .keys = keys, .key_count = block_count};
	opts.kv = kv;
	opts.turn = turn;
	opts.slots[0] = (struct fc_slots){.count = block_count, .slots = slots};
	must(fc_save_submit(store, &opts, &save, &error), &error);
	must(fc_save_wait(save, true, &result), &result.error); /* until it is on the disk */
	fc_save_free(save);
	printf("turn %llu: %llu new blocks%s\n", (unsigned long long)turn, (unsigned long long)result.blocks_new,
	       result.is_durable ? ", durable" : "");
}

int main(int argc, char **argv)
{
	struct fc_error error = {0};
	char address[4096];
	snprintf(address, sizeof(address), "dir:%s", argc > 1 ? argv[1] : "flatcake-example");

	/* What a block is: 16 tokens, four layers of 3000 bytes. */
	struct fc_geometry geometry = {
		.name = "example", .block_tokens = BLOCK_TOKENS, .layer_count = LAYERS, .group_count = 1};
	geometry.groups[0].tokens_per_block = BLOCK_TOKENS;
	for (int layer = 0; layer < LAYERS; layer++)
		geometry.groups[0].slice_bytes[layer] = SLICE_BYTES;

	struct fc_store *store;
	struct fc_store_opts opts;
	fc_store_opts_init(&opts);
	opts.geometry = &geometry;
	opts.ssd_bytes = 64 << 20;
	opts.memory_bytes = 0; /* all of it on SSD, so that the second run finds it again */
	must(fc_store_open(&store, address, &opts, &error), &error);

	/* Where the engine's KV lies. */
	struct fc_kv *kv;
	struct fc_paged_layer layers[LAYERS];
	for (int layer = 0; layer < LAYERS; layer++)
		layers[layer] = (struct fc_paged_layer){kv_memory[layer], SLICE_BYTES, BLOCKS, 0, 1};
	must(fc_kv_register(store, layers, &kv, &error), &error);

	/* The names of the blocks follow from the tokens. */
	struct fc_namespace name_space;
	struct fc_key keys[BLOCKS];
	uint32_t tokens[BLOCKS * BLOCK_TOKENS];
	uint64_t slots[BLOCKS];
	for (int i = 0; i < BLOCKS * BLOCK_TOKENS; i++)
		tokens[i] = (uint32_t)i;
	for (int i = 0; i < BLOCKS; i++)
		slots[i] = (uint64_t)i;
	must(fc_namespace_init(&name_space, &(struct fc_namespace_opts){.model = "example", .rank_count = 1}, &error),
	     &error);
	must(fc_key_chain(&name_space, NULL, tokens, BLOCK_TOKENS, BLOCKS, keys), &error);

	memset(kv_memory, 0x5a, sizeof(kv_memory)); /* "prefill" */
	save_turn(store, kv, keys, FIRST_TURN, slots, 0);
	save_turn(store, kv, keys, BLOCKS, slots, 1);

	memset(kv_memory, 0, sizeof(kv_memory)); /* the engine needed the memory for somebody else ... */
	struct fc_load *load;
	struct fc_load_result result;
	struct fc_load_opts load_opts = {.keys = keys, .key_count = BLOCKS, .kv = kv, .is_started_when_ready = true};
	load_opts.slots[0] = (struct fc_slots){.count = BLOCKS, .slots = slots};
	must(fc_load_submit(store, &load_opts, &load, &error), &error);
	must(fc_load_wait(load, &result), &result.error); /* ... and the user came back */
	fc_load_free(load);
	int is_right = kv_memory[0][0][0] == 0x5a && kv_memory[LAYERS - 1][BLOCKS - 1][SLICE_BYTES - 1] == 0x5a;
	printf("restored %llu tokens in %llu reads: %s\n", (unsigned long long)result.tokens,
	       (unsigned long long)result.read_commands, is_right ? "every layer is back" : "WRONG BYTES");
	fc_kv_free(kv);
	fc_store_close(store);
	return is_right ? 0 : 1;
}

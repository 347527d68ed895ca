/* `flatcake stat`: what a store that nobody uses holds, by medium. */
#include "cli/closed_store.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/table.h"

#include <inttypes.h>
#include <jansson.h>

struct stat_view {
	const struct fc_probe *probe;
	struct fc_stats stats;
};

struct quantity {
	const char *name;
	size_t field_offset; /* in struct fc_medium_stats */
	bool is_bytes;
};

static const struct quantity quantities[] = {
	{"bytes", offsetof(struct fc_medium_stats, bytes), true},
	{"bytes_used", offsetof(struct fc_medium_stats, bytes_used), true},
	{"bytes_stored", offsetof(struct fc_medium_stats, bytes_stored), true},
	{"sessions", offsetof(struct fc_medium_stats, sessions), false},
	{"segments", offsetof(struct fc_medium_stats, segments), false},
	{"extents", offsetof(struct fc_medium_stats, extents), false},
	{"blocks", offsetof(struct fc_medium_stats, blocks), false},
};

static uint64_t value_of(const struct stat_view *view, enum fc_medium medium, const struct quantity *quantity)
{
	return *(const uint64_t *)(const void *)((const char *)&view->stats.media[medium] + quantity->field_offset);
}

static int print_media(const struct stat_view *view)
{
	struct fc_table table;
	char text[FC_HUMAN_BYTES];
	int media_count = view->probe->has_arena[FC_MEMORY] + view->probe->has_arena[FC_SSD];
	fc_table_init(&table, media_count == 2 ? "lrr" : "lr");
	fc_table_cell(&table, "%s", "");
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (view->probe->has_arena[medium])
			fc_table_cell(&table, "%s", fc_medium_name((enum fc_medium)medium));
	for (size_t i = 0; i < sizeof(quantities) / sizeof(quantities[0]); i++) {
		fc_table_cell(&table, "%s", quantities[i].name);
		for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
			uint64_t value = value_of(view, (enum fc_medium)medium, &quantities[i]);
			if (view->probe->has_arena[medium])
				fc_table_cell(&table, "%s",
					      quantities[i].is_bytes ? fc_human_bytes(value, text)
								     : fc_human_count(value, text));
		}
	}
	int code = fc_table_print(&table, stdout);
	fc_table_deinit(&table);
	return code;
}

static int print_view(const struct stat_view *view)
{
	const struct fc_geometry *geometry = fc_probe_geometry(view->probe);
	char text[FC_HUMAN_BYTES], most[FC_HUMAN_BYTES];
	printf("%s: %u layers in %u groups, %u tokens a block\n", geometry->name, geometry->layer_count,
	       geometry->group_count, geometry->block_tokens);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_superblock *superblock = &view->probe->superblocks[medium];
		if (view->probe->has_arena[medium])
			printf("%s arena %016" PRIx64 "%016" PRIx64
			       ": chunks of %s, can have up to %s, opened for writing %" PRIu64 " times\n",
			       fc_medium_name((enum fc_medium)medium), superblock->uuid.high, superblock->uuid.low,
			       fc_human_bytes(superblock->chunk_bytes, text),
			       fc_human_bytes(fc_superblock_bytes_max(superblock), most), superblock->epoch);
	}
	int code = print_media(view);
	if (view->stats.dropped_segments > 0)
		printf("%s segments are not whole, or have lost their head; the next open drops them\n",
		       fc_human_count(view->stats.dropped_segments, text));
	return code;
}

static json_t *medium_to_json(const struct stat_view *view, enum fc_medium medium)
{
	const struct fc_superblock *superblock = &view->probe->superblocks[medium];
	json_t *object = json_object();
	for (size_t i = 0; object != NULL && i < sizeof(quantities) / sizeof(quantities[0]); i++)
		json_object_set_new(object, quantities[i].name, fc_json_count(value_of(view, medium, &quantities[i])));
	if (object == NULL)
		return NULL;
	json_object_set_new(object, "chunk_bytes", fc_json_count(superblock->chunk_bytes));
	json_object_set_new(object, "bytes_max", fc_json_count(fc_superblock_bytes_max(superblock)));
	json_object_set_new(object, "epoch", fc_json_count(superblock->epoch));
	json_object_set_new(object, "uuid",
			    json_sprintf("%016" PRIx64 "%016" PRIx64, superblock->uuid.high, superblock->uuid.low));
	return object;
}

static json_t *view_to_json(const struct stat_view *view)
{
	const struct fc_geometry *geometry = fc_probe_geometry(view->probe);
	json_t *object =
		json_pack("{s:s, s:I, s:I, s:I, s:I}", "model", geometry->name, "block_tokens",
			  (json_int_t)geometry->block_tokens, "layers", (json_int_t)geometry->layer_count, "blocks",
			  (json_int_t)view->stats.blocks, "dropped_segments", (json_int_t)view->stats.dropped_segments);
	for (int medium = 0; object != NULL && medium < FC_MEDIUM_COUNT; medium++)
		if (view->probe->has_arena[medium])
			json_object_set_new(object, fc_medium_name((enum fc_medium)medium),
					    medium_to_json(view, (enum fc_medium)medium));
	return object;
}

int fc_command_stat(const struct fc_config *config, struct fc_error *error)
{
	struct fc_inspect *inspect;
	int code = fc_closed_store_open(&inspect, config, error);
	if (code != FC_OK)
		return code;
	struct stat_view view = {.probe = fc_inspect_probe(inspect)};
	fc_catalog_stats(fc_inspect_catalog(inspect), &view.stats);
	if (!fc_json_replaces_text(config) && print_view(&view) != FC_OK)
		code = fc_error_set(error, FC_ENOMEM, "no memory to print the table");
	if (code == FC_OK && config->json_path != NULL)
		code = fc_json_write(config->json_path, view_to_json(&view), error);
	fc_inspect_close(inspect);
	return code;
}

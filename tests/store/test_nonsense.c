/* Every function of the interface, and every option, with what no caller should pass: each is answered by name, nothing
 * is made or harmed, and the store goes on. */
#include "store/store_world.h"

#include "base/check.h"
#include "core/core.h"
#include "store/opts.h"

#include <math.h>

#define BLOCKS 8
#define SLOTS 16

/* ---- options ---- */

/* In which every range may be exhausted: chunks of 1 GiB fit, watermarks do not cross, windows of 64 KiB do. */
static struct fc_store_opts roomy_opts(const struct fc_geometry *geometry)
{
	struct fc_store_opts opts;
	fc_store_opts_init(&opts);
	opts.geometry = geometry;
	opts.memory_bytes = 0;
	opts.ssd_bytes = 64ull << 30;
	opts.high_watermark = 1;
	opts.low_watermark = FC_WATERMARK_MIN;
	return opts;
}

static void set_whole(struct fc_store_opts *opts, const struct fc_opts_range *range, uint64_t value)
{
	uint32_t half = (uint32_t)value;
	char *field = (char *)opts + range->offset;
	if (range->kind == FC_OPTS_U32)
		memcpy(field, &half, sizeof(half));
	else
		memcpy(field, &value, sizeof(value));
}

static void set_ratio(struct fc_store_opts *opts, const struct fc_opts_range *range, double ratio)
{
	memcpy((char *)opts + range->offset, &ratio, sizeof(ratio));
}

static void expect_accepted(const struct fc_store_opts *opts)
{
	struct fc_error error = {0};
	if (fc_store_opts_check(opts, &error) != FC_OK)
		fail_msg("%s", error.text);
}

/* And no folder is made, let alone an arena. */
static void expect_refused(const struct fc_store_opts *opts, const char *words)
{
	struct fc_error error = {0};
	struct fc_store *store = (struct fc_store *)&error;
	struct stat status;
	char address[64];
	snprintf(address, sizeof(address), "dir:/tmp/fc-nonsense-%ld", (long)getpid());
	assert_int_equal(fc_store_open(&store, address, opts, &error), FC_EINVAL);
	if (strstr(error.text, words) == NULL)
		fail_msg("\"%s\" was expected in: %s", words, error.text);
	assert_null(store);
	assert_int_equal(stat(address + strlen("dir:"), &status), -1);
	assert_int_equal(error.code, FC_EINVAL);
}

static void every_number_is_taken_in_its_range_and_refused_by_name_outside(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1);
	const struct fc_store_opts good = roomy_opts(&geometry);
	size_t count = 0;
	for (const struct fc_opts_range *range; (range = fc_store_opts_range(count)) != NULL; count++) {
		struct fc_store_opts opts = good;
		uint64_t largest = range->kind == FC_OPTS_U32 ? UINT32_MAX : UINT64_MAX;
		if (range->kind == FC_OPTS_RATIO)
			continue;
		set_whole(&opts, range, range->min);
		expect_accepted(&opts);
		set_whole(&opts, range, range->max);
		expect_accepted(&opts);
		if (range->min > 0) {
			set_whole(&opts, range, range->min - 1);
			expect_refused(&opts, range->name);
			set_whole(&opts, range, 0);
			expect_refused(&opts, range->name);
		}
		if (range->max < largest) {
			set_whole(&opts, range, range->max + 1);
			expect_refused(&opts, range->name);
			set_whole(&opts, range, largest);
			expect_refused(&opts, range->name);
		}
	}
	assert_true(count >= 19);
}

static void every_ratio_is_taken_in_its_range_and_refused_by_name_outside(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1);
	const struct fc_store_opts good = roomy_opts(&geometry);
	size_t count = 0;
	for (size_t i = 0; fc_store_opts_range(i) != NULL; i++) {
		const struct fc_opts_range *range = fc_store_opts_range(i);
		struct fc_store_opts opts = good;
		const double nonsense[] = {NAN,
					   -NAN,
					   INFINITY,
					   -INFINITY,
					   -1,
					   nextafter(range->ratio_min, -1),
					   nextafter(range->ratio_max, INFINITY)};
		if (range->kind != FC_OPTS_RATIO)
			continue;
		count++;
		set_ratio(&opts, range, range->ratio_min);
		expect_accepted(&opts);
		set_ratio(&opts, range, range->ratio_max);
		expect_accepted(&opts);
		for (size_t n = 0; n < fc_array_len(nonsense); n++) {
			set_ratio(&opts, range, nonsense[n]);
			expect_refused(&opts, range->name);
		}
	}
	assert_int_equal(count, 3);
}

static void options_that_contradict_each_other_are_named(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1), large = geometry_plain(100000);
	const struct fc_store_opts good = roomy_opts(&geometry);
	struct fc_store_opts opts = good;
	expect_refused(NULL, "options are NULL");
	opts.size = 0;
	expect_refused(&opts, "call fc_store_opts_init() first");
	opts.size = SIZE_MAX;
	expect_refused(&opts, "call fc_store_opts_init() first");
	opts = good;
	opts.geometry = NULL;
	expect_refused(&opts, "options without a geometry");
	opts = good;
	opts.high_watermark = 0.5;
	opts.low_watermark = 0.6;
	expect_refused(&opts, "low_watermark 0.6, high_watermark 0.5");
	opts = good;
	opts.chunk_bytes = FC_CHUNK_BYTES_MIN / 2;
	expect_refused(&opts, "ssd_bytes: chunk of 2048 bytes");
	opts.chunk_bytes = FC_CHUNK_BYTES_MAX - 1;
	expect_refused(&opts, "ssd_bytes: chunk of 1073741823 bytes");
	opts = good;
	opts.ssd_bytes = 1;
	expect_refused(&opts, "ssd_bytes: arena of 1 bytes; at least ");
	opts = good;
	opts.memory_bytes = 1;
	expect_refused(&opts, "memory_bytes: arena of 1 bytes; at least ");
	opts = good;
	opts.window_bytes = FC_WINDOW_BYTES_MIN + 1;
	expect_refused(&opts, "window_bytes 65537; from ");
	opts.window_bytes = FC_WINDOW_BYTES_MIN + 4096; /* good for some disks */
	expect_refused(&opts, "in multiples of 8192");
	opts = good;
	opts.geometry = &large;
	opts.window_bytes = FC_WINDOW_BYTES_MIN;
	expect_refused(&opts, "which this geometry needs");
	opts = good;
	opts.ssd_path = "";
	expect_refused(&opts, "ssd_path is empty");
	opts = good;
	opts.memory_path = "";
	expect_refused(&opts, "memory_path is empty");
	opts = good;
	opts.ssd_bytes = 0;
	expect_refused(&opts, "memory_bytes and ssd_bytes are both 0");
}

static void geometries_that_cannot_be_are_named(void **state)
{
	(void)state;
	const struct fc_geometry good = geometry_plain(1);
	struct fc_geometry geometry = good;
	const struct fc_store_opts opts = roomy_opts(&geometry);
	expect_accepted(&opts);
	memset(geometry.name, 0, sizeof(geometry.name));
	expect_refused(&opts, "geometry: name is empty");
	memset(geometry.name, 'x', sizeof(geometry.name));
	expect_refused(&opts, "name is not terminated within 64 bytes");
	geometry = good;
	geometry.layer_count = UINT32_MAX;
	expect_refused(&opts, "layer_count is 4294967295");
	geometry = good;
	geometry.group_count = UINT32_MAX;
	expect_refused(&opts, "group_count is 4294967295");
	assert_true(fc_geometry_bytes_per_token(&geometry) == 0);
	geometry = good;
	geometry.block_tokens = UINT32_MAX;
	expect_refused(&opts, "block_tokens is 4294967295");
	geometry = good;
	geometry.groups[0].rule = (enum fc_rule)77;
	expect_refused(&opts, "rule is 77");
	geometry = good;
	geometry.groups[0].slice_bytes[2] = UINT64_MAX;
	expect_refused(&opts, "slice_bytes is 18446744073709551615");
	geometry = good;
	geometry.groups[0].tokens_per_block = 0;
	expect_refused(&opts, "tokens_per_block is 0");
	assert_true(fc_geometry_bytes_per_token(&geometry) == 0);
	assert_true(fc_geometry_bytes_per_token(NULL) == 0);
}

static void names_for_a_daemon_are_checked_before_it_is_asked(void **state)
{
	(void)state;
	struct fc_geometry geometry = geometry_plain(1);
	struct fc_store_opts opts = roomy_opts(&geometry);
	struct fc_error error = {0};
	struct fc_store *store;
	char name[2000];
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	opts.daemon_namespace = name;
	assert_int_equal(fc_store_open(&store, "unix:/tmp/fc-nobody", &opts, &error), FC_EINVAL);
	opts.daemon_namespace = NULL;
	opts.daemon_program = "two\nlines";
	assert_int_equal(fc_store_open(&store, "unix:/tmp/fc-nobody", &opts, &error), FC_EINVAL);
	opts.daemon_program = NULL;
	assert_int_equal(fc_store_open(&store, "unix:/tmp/fc-nobody", &opts, &error), FC_ENOENT);
	assert_null(store);
}

/* ---- pointers ---- */

static void what_needs_no_store_answers_to_null(void **state)
{
	(void)state;
	struct fc_error error;
	struct fc_namespace name_space = {{0}};
	struct fc_namespace_opts names = {.rank_count = 1};
	struct fc_key key;
	struct fc_geometry geometry = geometry_plain(1);
	struct fc_store_opts opts = roomy_opts(&geometry);
	uint32_t tokens[4] = {0};
	assert_non_null(fc_code_text(INT32_MIN));
	assert_non_null(fc_code_text(INT32_MAX));
	assert_int_equal(fc_namespace_init(NULL, &names, &error), FC_EINVAL);
	assert_int_equal(fc_namespace_init(&name_space, NULL, &error), FC_EINVAL);
	names.rank = UINT32_MAX;
	assert_int_equal(fc_namespace_init(&name_space, &names, &error), FC_EINVAL);
	assert_int_equal(fc_key_chain(NULL, NULL, tokens, 4, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, NULL, 4, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 4, 1, NULL), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 0, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, UINT32_MAX, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_chain(&name_space, NULL, tokens, 4, UINT64_MAX, &key), FC_EINVAL);
	assert_int_equal(fc_key_for_content(NULL, NULL, "x", 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_for_content(&name_space, NULL, NULL, 1, &key), FC_EINVAL);
	assert_int_equal(fc_key_for_content(&name_space, NULL, "x", 1, NULL), FC_EINVAL);
	assert_int_equal(fc_key_for_content(&name_space, NULL, "x", 0, &key), FC_EINVAL);
	assert_int_equal(fc_key_for_content(&name_space, NULL, "x", UINT64_MAX, &key), FC_EINVAL);
	assert_int_equal(fc_geometry_check(NULL, &error), FC_EINVAL);
	assert_int_equal(fc_geometry_preset(NULL, "llama-3.1-8b", 64, 1, &error), FC_EINVAL);
	assert_int_equal(fc_geometry_preset(&geometry, NULL, 64, 1, &error), FC_EINVAL);
	assert_int_equal(fc_geometry_preset(&geometry, "llama-3.1-8b", UINT32_MAX, 1, &error), FC_EINVAL);
	assert_int_equal(fc_geometry_preset(&geometry, "llama-3.1-8b", 64, FC_SCALE_MAX, &error), FC_OK);
	assert_int_equal(fc_geometry_preset(&geometry, "llama-3.1-8b", 64, FC_SCALE_MAX + 1, &error), FC_EINVAL);
	assert_null(fc_geometry_preset_name(SIZE_MAX));
	assert_true(fc_session_id_from_text(NULL).low != 0);
	fc_store_opts_init(NULL);
	assert_int_equal(fc_store_open(NULL, "dir:/tmp", &opts, &error), FC_EINVAL);
	assert_int_equal(fc_store_open(NULL, "dir:/tmp", &opts, NULL), FC_EINVAL);
}

static void without_a_store_nothing_is_done(void **state)
{
	(void)state;
	struct fc_error error;
	struct fc_paged_layer layers[3] = {{0}};
	struct fc_load_opts load_opts = {0};
	struct fc_save_opts save_opts = {0};
	struct fc_event event;
	struct fc_match match;
	struct fc_stats stats;
	struct fc_load *load = (struct fc_load *)&stats;
	struct fc_save *save = (struct fc_save *)&stats;
	struct fc_kv *kv = (struct fc_kv *)&stats;
	uint64_t blocks;
	assert_string_equal(fc_store_notice(NULL), "");
	fc_store_close(NULL);
	assert_int_equal(fc_store_sync(NULL, &error), FC_EINVAL);
	assert_string_equal(error.text, "sync: store is NULL");
	assert_int_equal(fc_kv_register(NULL, layers, &kv, &error), FC_EINVAL);
	assert_null(kv);
	fc_kv_free(NULL);
	assert_int_equal(fc_session_blocks(NULL, (struct fc_session_id){0, 1}, &blocks), FC_EINVAL);
	assert_int_equal(fc_match(NULL, NULL, 0, &match), FC_EINVAL);
	assert_int_equal(fc_load_submit(NULL, &load_opts, &load, &error), FC_EINVAL);
	assert_null(load);
	fc_load_cancel(NULL);
	assert_int_equal(fc_load_wait(NULL, NULL), FC_EINVAL);
	fc_load_free(NULL);
	load = (struct fc_load *)&stats;
	assert_int_equal(fc_ready_take(NULL, &load), FC_EINVAL);
	assert_null(load);
	assert_int_equal(fc_save_submit(NULL, &save_opts, &save, &error), FC_EINVAL);
	assert_null(save);
	fc_save_cancel(NULL);
	assert_int_equal(fc_save_wait(NULL, true, NULL), FC_EINVAL);
	fc_save_free(NULL);
	assert_int_equal(fc_store_fd(NULL), -1);
	assert_int_equal(fc_store_events(NULL, &event, 1), 0);
	assert_int_equal(fc_store_stats(NULL, &stats), FC_EINVAL);
}

/* ---- an open store ---- */

struct scene {
	struct store_world world;
	struct fc_key keys[BLOCKS];
	uint64_t slots[SLOTS];
};

static void scene_init(struct scene *scene)
{
	store_world_init(&scene->world, geometry_plain(100), BLOCKS);
	scene->world.opts.requests_max = 4;
	store_world_open(&scene->world);
	path_keys(1, 0, scene->keys, BLOCKS);
	for (uint64_t i = 0; i < SLOTS; i++)
		scene->slots[i] = i % BLOCKS;
}

/* After all of it, a save and a load go through. */
static void scene_deinit(struct scene *scene)
{
	assert_int_equal(store_world_save(&scene->world, 1, 0, scene->keys, BLOCKS).code, 0);
	assert_int_equal(store_world_load(&scene->world, scene->keys, BLOCKS).blocks, BLOCKS);
	assert_int_equal(store_world_stats(&scene->world).loads_active, 0);
	store_world_deinit(&scene->world);
}

static void an_open_store_answers_to_null(void **state)
{
	(void)state;
	struct scene scene;
	struct fc_error error;
	struct fc_match match;
	scene_init(&scene);
	struct fc_store *store = scene.world.store;
	struct fc_load_opts load_opts = store_world_load_opts(&scene.world, scene.keys, BLOCKS);
	struct fc_save_opts save_opts = store_world_save_opts(&scene.world, 1, 0, scene.keys, BLOCKS);
	struct fc_load *load = NULL;
	struct fc_save *save = NULL;
	assert_int_equal(fc_kv_register(store, scene.world.engine.layers, NULL, &error), FC_EINVAL);
	assert_int_equal(fc_session_blocks(store, (struct fc_session_id){0, 1}, NULL), FC_EINVAL);
	assert_int_equal(fc_match(store, scene.keys, BLOCKS, NULL), FC_EINVAL);
	assert_int_equal(fc_match(store, NULL, 1, &match), FC_EINVAL);
	assert_int_equal(fc_match(store, scene.keys, UINT64_MAX, &match), FC_EINVAL);
	assert_int_equal(fc_match(store, NULL, 0, &match), FC_OK);
	assert_int_equal(fc_load_submit(store, NULL, &load, &error), FC_EINVAL);
	assert_int_equal(fc_load_submit(store, &load_opts, NULL, &error), FC_EINVAL);
	assert_int_equal(fc_ready_take(store, NULL), FC_EINVAL);
	assert_int_equal(fc_save_submit(store, NULL, &save, &error), FC_EINVAL);
	assert_int_equal(fc_save_submit(store, &save_opts, NULL, &error), FC_EINVAL);
	assert_int_equal(fc_store_events(store, NULL, SIZE_MAX), 0);
	assert_int_equal(fc_store_stats(store, NULL), FC_EINVAL);
	scene_deinit(&scene);
}

static void slots_that_end_nowhere_are_not_registered(void **state)
{
	(void)state;
	struct scene scene;
	struct fc_kv *kv;
	scene_init(&scene);
	struct fc_paged_layer layers[3];
	uint8_t byte;
	const uint64_t huge = UINT64_MAX;
	const struct {
		struct fc_paged_layer layer;
		const char *words;
	} table[] = {
		{{NULL, 1000, 8, 0, 1}, "no memory or no slots"},
		{{&byte, 1000, 0, 0, 1}, "no memory or no slots"},
		{{&byte, 1000, 8, 0, 0}, "0 pieces"},
		{{&byte, 1000, 8, 0, UINT32_MAX}, "4294967295 pieces"},
		{{&byte, 999, 8, 0, 1}, "slots 999 bytes apart"},
		{{&byte, 0, 8, 0, 1}, "slots 0 bytes apart"},
		{{&byte, 1000, 8, 499, 2}, "pieces 499 bytes apart"},
		{{&byte, huge, huge, huge, 2}, "end behind the last address"},
		{{&byte, huge, 2, 0, 1}, "end behind the last address"},
		{{&byte, 1000, huge, 0, 1}, "end behind the last address"},
		{{&byte, 1000, huge / 1000 + 1, 0, 1}, "end behind the last address"},
		{{&byte, 1000, 8, huge, 2}, "end behind the last address"},
		{{&byte, 1000, 8, huge - 8000, 2}, "end behind the last address"},
		{{&byte, 1ull << 63, 3, 0, 1}, "end behind the last address"},
	};
	for (size_t i = 0; i < fc_array_len(table); i++) {
		struct fc_error error = {0};
		memcpy(layers, scene.world.engine.layers, sizeof(layers));
		layers[0] = table[i].layer;
		assert_int_equal(fc_kv_register(scene.world.store, layers, &kv, &error), FC_EINVAL);
		if (strstr(error.text, table[i].words) == NULL)
			fail_msg("%zu: \"%s\" was expected in: %s", i, table[i].words, error.text);
		assert_null(kv);
	}
	struct fc_error error;
	assert_int_equal(fc_kv_register(scene.world.store, NULL, &kv, &error), FC_EINVAL);
	/* With one slot, and one piece, no distance counts. */
	memcpy(layers, scene.world.engine.layers, sizeof(layers));
	layers[0] = (struct fc_paged_layer){&byte, huge, 1, huge, 1};
	assert_int_equal(fc_kv_register(scene.world.store, layers, &kv, &error), FC_OK);
	fc_kv_free(kv);
	scene_deinit(&scene);
}

static void expect_load_refused(struct scene *scene, const struct fc_load_opts *opts, const char *words)
{
	struct fc_load *load = (struct fc_load *)scene;
	struct fc_error error = {0};
	assert_int_equal(fc_load_submit(scene->world.store, opts, &load, &error), FC_EINVAL);
	if (strstr(error.text, words) == NULL)
		fail_msg("\"%s\" was expected in: %s", words, error.text);
	assert_null(load);
}

static void expect_save_refused(struct scene *scene, const struct fc_save_opts *opts, const char *words)
{
	struct fc_save *save = (struct fc_save *)scene;
	struct fc_error error = {0};
	assert_int_equal(fc_save_submit(scene->world.store, opts, &save, &error), FC_EINVAL);
	if (strstr(error.text, words) == NULL)
		fail_msg("\"%s\" was expected in: %s", words, error.text);
	assert_null(save);
}

/* Slots that no path can have: where they begin, how many they are, where they lie. */
static const struct {
	uint64_t first_block, count;
	bool has_array;
	const char *words;
} slots_table[] = {
	{0, 1, false, "but the array is NULL"},
	{0, UINT64_MAX, false, "slots of 18446744073709551615 blocks"},
	{0, UINT64_MAX, true, "slots of 18446744073709551615 blocks"},
	{UINT64_MAX, 8, true, "from block 18446744073709551615 on"},
	{UINT64_MAX - 7, 8, true, "from block 18446744073709551608 on"},
	{UINT32_MAX - 6, 8, true, "from block 4294967289 on"},
	{0, 1ull << 40, true, "slots of 1099511627776 blocks"},
};

static void loads_of_nonsense_are_refused(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene);
	const struct fc_load_opts good = store_world_load_opts(&scene.world, scene.keys, BLOCKS);
	struct fc_load_opts opts = good;
	opts.kv = NULL;
	expect_load_refused(&scene, &opts, "kv is NULL");
	opts = good;
	opts.keys = NULL;
	expect_load_refused(&scene, &opts, "the array is NULL");
	opts = good;
	opts.key_count = UINT64_MAX;
	expect_load_refused(&scene, &opts, "18446744073709551615 keys");
	for (size_t i = 0; i < fc_array_len(slots_table); i++) {
		opts = good;
		opts.slots[0] = (struct fc_slots){slots_table[i].first_block, slots_table[i].count,
						  slots_table[i].has_array ? scene.slots : NULL};
		expect_load_refused(&scene, &opts, slots_table[i].words);
	}
	opts = good;
	uint64_t slots[BLOCKS] = {0, 1, 2, UINT64_MAX, 4, 5, 6, 7};
	opts.slots[0].slots = slots;
	expect_load_refused(&scene, &opts, "block 3: slot 18446744073709551615; 0 to 8 are allowed");
	scene_deinit(&scene);
}

static void saves_of_nonsense_are_refused(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene);
	const struct fc_save_opts good = store_world_save_opts(&scene.world, 1, 0, scene.keys, BLOCKS);
	struct fc_save_opts opts = good;
	uint64_t points[4] = {2, 4, 6, 8};
	opts.kv = NULL;
	expect_save_refused(&scene, &opts, "kv is NULL");
	opts = good;
	opts.keys = NULL;
	expect_save_refused(&scene, &opts, "an array is NULL");
	opts = good;
	opts.key_count = UINT64_MAX;
	expect_save_refused(&scene, &opts, "18446744073709551615 keys");
	opts = good;
	opts.shared_blocks = UINT64_MAX;
	expect_save_refused(&scene, &opts, "18446744073709551615 shared blocks of 8");
	opts = good;
	opts.resume_point_count = 1;
	expect_save_refused(&scene, &opts, "an array is NULL");
	opts.resume_points = points;
	opts.resume_point_count = UINT64_MAX;
	expect_save_refused(&scene, &opts, "18446744073709551615 resume points on a path of 8 blocks");
	for (size_t i = 0; i < fc_array_len(slots_table); i++) {
		opts = good;
		opts.slots[0] = (struct fc_slots){slots_table[i].first_block, slots_table[i].count,
						  slots_table[i].has_array ? scene.slots : NULL};
		expect_save_refused(&scene, &opts, slots_table[i].words);
	}
	scene_deinit(&scene);
}

/* What is seen only when the request runs ends the request. */
static void resume_points_that_cannot_be_fail_the_save(void **state)
{
	(void)state;
	struct scene scene;
	scene_init(&scene);
	const uint64_t table[][2] = {{0, 4}, {9, 10}, {4, 4}, {6, 4}, {4, UINT64_MAX}};
	for (size_t i = 0; i < fc_array_len(table); i++) {
		struct fc_save_opts opts = store_world_save_opts(&scene.world, 1, 0, scene.keys, BLOCKS);
		struct fc_save_result result;
		opts.resume_points = table[i];
		opts.resume_point_count = 2;
		struct fc_save *save = store_world_submit_save(&scene.world, &opts);
		assert_int_equal(fc_save_wait(save, true, &result), FC_EINVAL);
		assert_non_null(strstr(result.error.text, "resume point"));
		fc_save_free(save);
	}
	scene_deinit(&scene);
}

/* Numbers that are large, and mean something. */
static void times_and_numbers_without_end_are_taken(void **state)
{
	(void)state;
	struct scene scene;
	struct fc_load_result loaded;
	struct fc_save_result saved;
	scene_init(&scene);
	engine_fill(&scene.world.engine, scene.keys, BLOCKS);
	struct fc_save_opts save_opts = store_world_save_opts(&scene.world, 1, UINT64_MAX, scene.keys, BLOCKS);
	save_opts.previous_reply_tokens = UINT64_MAX;
	save_opts.session = (struct fc_session_id){UINT64_MAX, UINT64_MAX};
	struct fc_save *save = store_world_submit_save(&scene.world, &save_opts);
	assert_int_equal(fc_save_wait(save, true, &saved), FC_OK);
	fc_save_free(save);
	for (uint64_t arrival_ns = 0; arrival_ns < 2; arrival_ns++) {
		struct fc_load_opts load_opts = store_world_load_opts(&scene.world, scene.keys, BLOCKS);
		load_opts.blocks_max = UINT64_MAX;
		load_opts.timeout_ns = UINT64_MAX;
		load_opts.arrival_ns = arrival_ns == 0 ? 1 : UINT64_MAX;
		struct fc_load *load = store_world_submit_load(&scene.world, &load_opts);
		assert_int_equal(fc_load_wait(load, &loaded), FC_OK);
		assert_int_equal(loaded.blocks, BLOCKS);
		fc_load_free(load);
	}
	scene_deinit(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_is_taken_in_its_range_and_refused_by_name_outside),
		cmocka_unit_test(every_ratio_is_taken_in_its_range_and_refused_by_name_outside),
		cmocka_unit_test(options_that_contradict_each_other_are_named),
		cmocka_unit_test(geometries_that_cannot_be_are_named),
		cmocka_unit_test(names_for_a_daemon_are_checked_before_it_is_asked),
		cmocka_unit_test(what_needs_no_store_answers_to_null),
		cmocka_unit_test(without_a_store_nothing_is_done),
		cmocka_unit_test(an_open_store_answers_to_null),
		cmocka_unit_test(slots_that_end_nowhere_are_not_registered),
		cmocka_unit_test(loads_of_nonsense_are_refused),
		cmocka_unit_test(saves_of_nonsense_are_refused),
		cmocka_unit_test(resume_points_that_cannot_be_fail_the_save),
		cmocka_unit_test(times_and_numbers_without_end_are_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A store from the outside: what options and paths it takes, geometries of all shapes, and disks that are too small. */
#include "store/store_world.h"

#include "format/shape.h"
#include "store/inspect.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define BLOCKS 16

/* ---- options ---- */

static void assert_open_refused(struct store_world *world, int code, const char *text)
{
	assert_int_equal(store_world_try_open(world), code);
	if (strstr(world->error.text, text) == NULL)
		fail_msg("\"%s\" was expected in: %s", text, world->error.text);
	assert_null(world->store);
}

static void options_that_cannot_be_are_named(void **state)
{
	(void)state;
	struct store_world world;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	const struct fc_store_opts good = world.opts;
	world.opts.size--;
	assert_open_refused(&world, FC_EINVAL, "call fc_store_opts_init() first");
	world.opts = good;
	world.opts.geometry = NULL;
	assert_open_refused(&world, FC_EINVAL, "options without a geometry");
	world.opts = good;
	world.opts.node = 4096;
	assert_open_refused(&world, FC_EINVAL, "node 4096; 0 to 4095 are allowed");
	world.opts = good;
	world.opts.ssd_bytes = 0;
	assert_open_refused(&world, FC_EINVAL, "memory_bytes and ssd_bytes are both 0");
	world.opts = good;
	world.opts.chunk_bytes = 5000;
	assert_open_refused(&world, FC_EINVAL,
			    "ssd_bytes: chunk of 5000 bytes; a power of two from 4096 to 1073741824 is allowed");
	world.opts = good;
	world.opts.high_watermark = 0.5;
	assert_open_refused(&world, FC_EINVAL, "low_watermark 0.85, high_watermark 0.5; low <= high is allowed");
	world.opts = good;
	world.opts.streams = 0;
	assert_open_refused(&world, FC_EINVAL, "streams 0; 1 to 1024 are allowed");
	world.opts = good;
	world.opts.window_bytes = 4096;
	assert_open_refused(&world, FC_EINVAL, "window_bytes 4096; 65536 to 68719476736 are allowed");
	world.opts = good;
	world.opts.transfer_bytes = 1000;
	assert_open_refused(&world, FC_EINVAL, "1000");
	world.opts = good;
	world.opts.queue_depth = 1u << 30;
	assert_open_refused(&world, FC_EINVAL, "1073741824");
	world.opts = good;
	world.opts.requests_max = 0;
	assert_open_refused(&world, FC_EINVAL, "requests_max 0; 1 to 1048576 are allowed");
	world.opts = good;
	world.opts.ssd_bytes = 64 << 10;
	assert_open_refused(&world, FC_EINVAL, "ssd_bytes: arena of 65536 bytes; at least ");
	world.opts = good;
	world.opts.memory_bytes = 4096;
	assert_open_refused(&world, FC_EINVAL, "memory_bytes: arena of 4096 bytes; at least ");
	world.opts = good;
	store_world_open(&world); /* none of it stands in the way of a good one */
	store_world_deinit(&world);
}

static void addresses_that_cannot_be_are_named(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_store *store;
	const char *addresses[] = {NULL, "", "/tmp", "dir:", "unix:", "tcp:127.0.0.1:1"};
	store_world_init(&world, geometry_plain(100), BLOCKS);
	for (size_t i = 0; i < fc_array_len(addresses); i++) {
		assert_int_equal(fc_store_open(&store, addresses[i], &world.opts, &world.error), FC_EINVAL);
		assert_non_null(strstr(world.error.text, "\"dir:PATH\" and \"unix:PATH\" are allowed"));
		assert_int_equal(fc_store_open(&store, addresses[i], &world.opts, NULL), FC_EINVAL);
	}
	store_world_deinit(&world);
}

/* ---- paths ---- */

static void files_are_for_their_owner_alone(void **state)
{
	(void)state;
	struct store_world world;
	struct stat status;
	char folder[320];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	snprintf(folder, sizeof(folder), "%s/made", world.dir);
	snprintf(world.address, sizeof(world.address), "dir:%.280s", folder);
	store_world_open(&world);
	assert_int_equal(stat(folder, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	snprintf(world.arena, sizeof(world.arena), "%.280s/ssd.arena", folder);
	assert_int_equal(stat(world.arena, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	store_world_close(&world);
	store_world_remove_files(folder);
	store_world_deinit(&world);
}

static void what_is_no_arena_file_is_refused(void **state)
{
	(void)state;
	struct store_world world;
	char other[300];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	assert_int_equal(mkdir(world.arena, 0700), 0);
	assert_open_refused(&world, FC_EINVAL, "a folder; an arena is a regular file or a block device");
	assert_int_equal(rmdir(world.arena), 0);
	snprintf(other, sizeof(other), "%s/other", world.dir);
	store_world_write_file(other, 0, "precious", 8);
	assert_int_equal(symlink(other, world.arena), 0);
	assert_open_refused(&world, FC_EINVAL, "a symbolic link");
	assert_int_equal(store_world_file_bytes(other), 8);
	assert_int_equal(unlink(world.arena), 0);
	assert_int_equal(mkfifo(world.arena, 0600), 0);
	assert_open_refused(&world, FC_EINVAL, "an arena is a regular file or a block device");
	snprintf(world.address, sizeof(world.address), "dir:%.280s", other); /* a file in the folder's place */
	assert_open_refused(&world, FC_ESYSTEM, "Not a directory");
	world.opts.ssd_path = "/dev/null";
	assert_open_refused(&world, FC_EINVAL, "an arena is a regular file or a block device");
	store_world_deinit(&world);
}

/* In a child, so that root can become somebody who may not. */
static void a_folder_that_may_not_be_written_is_refused(void **state)
{
	(void)state;
	struct store_world world;
	int status;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	assert_int_equal(chmod(world.dir, 0555), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && setuid(65534) != 0)
			_exit(2);
		int code = store_world_try_open(&world);
		_exit(code == FC_ESYSTEM && strstr(world.error.text, "Permission denied") != NULL ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(world.dir, 0700), 0);
	store_world_deinit(&world);
}

/* ---- disks that are too small ---- */

/* A limit on file sizes stands for a full disk; it belongs to the process, so a child takes it. */
static void a_file_that_may_not_grow_is_refused_and_nothing_stays_behind(void **state)
{
	(void)state;
	struct store_world world;
	int status;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit limit = {4 * MIB, 4 * MIB};
		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(2);
		int code = store_world_try_open(&world);
		struct stat file;
		bool is_left = stat(world.arena, &file) == 0;
		_exit(code < 0 && strstr(world.error.text, world.arena) != NULL && !is_left ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store_world_open(&world);
	store_world_deinit(&world);
}

static void a_disk_without_the_space_is_refused_with_what_it_has(void **state)
{
	(void)state;
	struct store_world world;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	world.opts.ssd_bytes = 1ull << 46;
	int code = store_world_try_open(&world);
	assert_true(code == FC_EFULL || code == FC_ESYSTEM || code == FC_EINVAL);
	assert_non_null(strstr(world.error.text, world.arena));
	assert_int_not_equal(access(world.arena, F_OK), 0);
	world.opts.ssd_bytes = 16 * MIB;
	store_world_open(&world);
	store_world_deinit(&world);
}

/* ---- where the engine's KV lies ---- */

static void assert_kv_refused(struct store_world *world, const struct fc_paged_layer *layers, const char *text)
{
	struct fc_kv *kv;
	assert_int_equal(fc_kv_register(world->store, layers, &kv, &world->error), FC_EINVAL);
	if (strstr(world->error.text, text) == NULL)
		fail_msg("\"%s\" was expected in: %s", text, world->error.text);
}

static void descriptions_of_kv_that_cannot_be_are_named(void **state)
{
	(void)state;
	struct store_world world;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	struct fc_paged_layer *layer = &world.engine.layers[1];
	const struct fc_paged_layer good = *layer;
	layer->base = NULL;
	assert_kv_refused(&world, world.engine.layers, "kv: group 0 layer 1 has no memory or no slots");
	*layer = good;
	layer->slot_count = 0;
	assert_kv_refused(&world, world.engine.layers, "kv: group 0 layer 1 has no memory or no slots");
	*layer = good;
	layer->piece_count = 3;
	assert_kv_refused(&world, world.engine.layers, "3 pieces for a slice of 700 bytes");
	*layer = good;
	layer->slot_stride_bytes = 699;
	assert_kv_refused(&world, world.engine.layers, "slots 699 bytes apart; at least 700 are needed");
	*layer = good;
	layer->piece_count = 2;
	layer->piece_stride_bytes = 349;
	assert_kv_refused(&world, world.engine.layers, "pieces 349 bytes apart; at least 350 are needed");
	*layer = good;
	store_world_deinit(&world);
}

static void requests_that_cannot_be_are_named(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_load *load;
	struct fc_save *save;
	struct fc_match match;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	struct fc_load_opts load_opts = store_world_load_opts(&world, keys, BLOCKS);
	load_opts.kv = NULL;
	assert_int_equal(fc_load_submit(world.store, &load_opts, &load, &world.error), FC_EINVAL);
	assert_string_equal(world.error.text, "load: kv is NULL");
	load_opts = store_world_load_opts(&world, NULL, BLOCKS);
	assert_int_equal(fc_load_submit(world.store, &load_opts, &load, &world.error), FC_EINVAL);
	assert_null(load);
	struct fc_save_opts save_opts = store_world_save_opts(&world, 1, 0, keys, BLOCKS);
	save_opts.shared_blocks = BLOCKS + 1;
	assert_int_equal(fc_save_submit(world.store, &save_opts, &save, &world.error), FC_EINVAL);
	assert_string_equal(world.error.text, "save: 17 shared blocks of 16");
	save_opts = store_world_save_opts(&world, 1, 0, keys, BLOCKS);
	save_opts.resume_point_count = 1;
	assert_int_equal(fc_save_submit(world.store, &save_opts, &save, &world.error), FC_EINVAL);
	assert_null(save);
	save_opts = store_world_save_opts(&world, 1, 0, keys, BLOCKS);
	uint64_t slots[BLOCKS] = {[3] = 1u << 20};
	save_opts.slots[0].slots = slots;
	assert_int_equal(fc_save_submit(world.store, &save_opts, &save, &world.error), FC_EINVAL);
	assert_non_null(strstr(world.error.text, "save: group 0 block 3: slot 1048576; 0 to "));
	assert_int_equal(fc_match(world.store, NULL, 3, &match), FC_EINVAL);
	assert_int_equal(fc_match(world.store, NULL, 0, &match), 0);
	assert_int_equal(match.blocks, 0);
	struct fc_stats stats = store_world_stats(&world);
	assert_int_equal(stats.loads + stats.saves, 0);
	store_world_deinit(&world);
}

/* ---- geometries ---- */

static struct fc_geometry uniform(uint32_t layer_count, uint64_t slice_len)
{
	struct fc_geometry geometry = {
		.name = "uniform", .block_tokens = 4, .layer_count = layer_count, .group_count = 1};
	geometry.groups[0].tokens_per_block = 4;
	for (uint32_t layer = 0; layer < layer_count; layer++)
		geometry.groups[0].slice_bytes[layer] = slice_len;
	return geometry;
}

/* Three turns, in memory and on SSD by turns where both are there, read back whole and in part. */
static void round_trip(struct fc_geometry geometry, uint64_t memory_bytes, double consolidate_ratio)
{
	struct store_world world;
	struct fc_key keys[12];
	const uint64_t ends[] = {4, 6, 12};
	store_world_init(&world, geometry, 12);
	world.opts.ssd_bytes = 8 * MIB;
	for (uint32_t group = 0; group < geometry.group_count; group++)
		world.opts.ssd_bytes += 40 * fc_group_block_bytes(&geometry, group);
	world.opts.memory_bytes = memory_bytes;
	world.opts.window_bytes = 16 * MIB;
	world.opts.consolidate_ratio = consolidate_ratio;
	store_world_open(&world);
	path_keys(1, 0, keys, 12);
	for (uint64_t turn = 0; turn < 3; turn++) {
		assert_int_equal(store_world_save(&world, 1, turn, keys, ends[turn]).code, 0);
		struct fc_load_result result = store_world_load(&world, keys, ends[turn]);
		assert_int_equal(result.code, 0);
		assert_int_equal(result.blocks, ends[turn]);
		assert_int_equal(result.bytes[FC_MEMORY] > 0, memory_bytes > 0 && turn > 0);
	}
	assert_int_equal(store_world_load(&world, keys, 6).blocks, 6);
	store_world_close(&world);
	store_world_open(&world);
	assert_true(store_world_load(&world, keys, 12).blocks >= 4);
	store_world_deinit(&world);
}

static void geometries_of_all_shapes_come_back_byte_by_byte(void **state)
{
	(void)state;
	const struct fc_geometry geometries[] = {
		uniform(1, 1),    uniform(1, 4093),   uniform(2, 3098112 / 2), uniform(61, 50788),  geometry_plain(1),
		uniform(7, 4096), geometry_hybrid(1), geometry_hybrid(1001),   uniform(1, 3098112),
	};
	for (size_t i = 0; i < fc_array_len(geometries); i++) {
		round_trip(geometries[i], 0, 0);
		round_trip(geometries[i], 0, 1);
	}
}

static void histories_across_memory_and_ssd_come_back_byte_by_byte(void **state)
{
	(void)state;
	round_trip(geometry_plain(1000), 4 * MIB, 0);
	round_trip(geometry_hybrid(1000), 4 * MIB, 0);
}

static void a_preset_model_makes_a_round_trip(void **state)
{
	(void)state;
	struct fc_geometry geometry;
	for (size_t i = 0; fc_geometry_preset_name(i) != NULL; i++) {
		assert_int_equal(fc_geometry_preset(&geometry, fc_geometry_preset_name(i), 0, 64, NULL), 0);
		struct store_world world;
		struct fc_key keys[8];
		store_world_init(&world, geometry, 8);
		world.opts.window_bytes = 16 * MIB;
		store_world_open(&world);
		path_keys(1, 0, keys, 8);
		assert_int_equal(store_world_save(&world, 1, 0, keys, 8).code, 0);
		assert_int_equal(store_world_load(&world, keys, 8).blocks, 8);
		store_world_deinit(&world);
	}
}

/* ---- looking at a closed store ---- */

struct found {
	struct fc_damage damage;
	uint64_t count;
};

static void on_damage(void *context, const struct fc_damage *damage)
{
	struct found *found = context;
	found->damage = *damage;
	found->count++;
}

static void inspect_finds_the_damaged_slice_and_changes_nothing(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	struct fc_inspect *inspect;
	struct found found = {0};
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	path_keys(1, 0, keys, BLOCKS);
	assert_int_equal(store_world_save(&world, 77, 0, keys, 10).code, 0);
	assert_int_equal(store_world_save(&world, 77, 1, keys, BLOCKS).code, 0);
	struct fc_probe_opts probe_opts = {.dir = world.dir};
	assert_int_equal(fc_inspect_open(&inspect, &probe_opts, &world.error), FC_EBUSY); /* it is in use */
	store_world_close(&world);
	store_world_damage(&world, keys[12], 0, 1);
	uint64_t bytes, bytes_after;
	uint8_t *before = store_world_read_file(world.arena, &bytes);
	assert_int_equal(fc_inspect_open(&inspect, &probe_opts, &world.error), 0);
	assert_string_equal(fc_probe_geometry(fc_inspect_probe(inspect))->name, "plain");
	assert_int_equal(fc_catalog_check(fc_inspect_catalog(inspect), &world.error), 0);
	struct fc_scan scan = {.damage_cb = on_damage, .context = &found};
	assert_int_equal(fc_inspect_scan(inspect, &scan, &world.error), 0);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.damage.segment.session.low, 77);
	assert_int_equal(found.damage.segment.turn, 1);
	assert_int_equal(found.damage.layer, 1);
	assert_int_equal(found.damage.block, 12);
	assert_false(found.damage.is_unread);
	assert_int_equal(scan.media[FC_SSD].slices, 2 * BLOCKS);
	assert_int_equal(scan.media[FC_SSD].bytes, 1700 * BLOCKS);
	assert_int_equal(scan.media[FC_SSD].slices_damaged, 1);
	assert_int_equal(scan.media[FC_SSD].bytes_kept, fc_inspect_bytes(inspect));
	fc_inspect_close(inspect);
	uint8_t *after = store_world_read_file(world.arena, &bytes_after);
	assert_int_equal(bytes, bytes_after);
	assert_memory_equal(before, after, bytes);
	free(before);
	free(after);
	store_world_deinit(&world);
}

static void a_probe_of_nothing_says_what_it_looked_for(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_probe probe;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	struct fc_probe_opts opts = {.dir = world.dir, .memory_path = "/dev/shm/none"};
	assert_int_equal(fc_store_probe(&probe, &opts, &world.error), FC_ENOENT);
	assert_non_null(strstr(world.error.text, "ssd.arena: no such arena, nor /dev/shm/none"));
	store_world_write_file(world.arena, 0, "a letter", 8);
	assert_int_equal(fc_store_probe(&probe, &opts, &world.error), FC_EFORMAT);
	assert_non_null(strstr(world.error.text, "it ends before the superblocks do"));
	assert_int_equal(truncate(world.arena, 1 << 20), 0);
	assert_int_equal(fc_store_probe(&probe, &opts, &world.error), FC_EFORMAT);
	assert_non_null(strstr(world.error.text, "not a FlatCake arena"));
	store_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_that_cannot_be_are_named),
		cmocka_unit_test(addresses_that_cannot_be_are_named),
		cmocka_unit_test(files_are_for_their_owner_alone),
		cmocka_unit_test(what_is_no_arena_file_is_refused),
		cmocka_unit_test(a_folder_that_may_not_be_written_is_refused),
		cmocka_unit_test(a_file_that_may_not_grow_is_refused_and_nothing_stays_behind),
		cmocka_unit_test(a_disk_without_the_space_is_refused_with_what_it_has),
		cmocka_unit_test(descriptions_of_kv_that_cannot_be_are_named),
		cmocka_unit_test(requests_that_cannot_be_are_named),
		cmocka_unit_test(geometries_of_all_shapes_come_back_byte_by_byte),
		cmocka_unit_test(histories_across_memory_and_ssd_come_back_byte_by_byte),
		cmocka_unit_test(a_preset_model_makes_a_round_trip),
		cmocka_unit_test(inspect_finds_the_damaged_slice_and_changes_nothing),
		cmocka_unit_test(a_probe_of_nothing_says_what_it_looked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

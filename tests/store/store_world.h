/* A folder, a store in it, and an engine: where the stories of tests/store take place. Bytes follow from keys, so that
 * whatever comes back can be told from anything else. */
#ifndef FC_TESTS_STORE_STORE_WORLD_H
#define FC_TESTS_STORE_STORE_WORLD_H

#include "flatcake.h"
#include "lib/engine.h"
#include "lib/world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1ull << 20)

struct store_world {
	char dir[256];
	char address[300];
	char arena[300];
	struct fc_geometry geometry;
	struct fc_store_opts opts;
	struct fc_store *store;
	struct fc_kv *kv;
	struct engine engine;
	struct fc_error error;
};

static inline void store_world_init(struct store_world *world, struct fc_geometry geometry, uint64_t path_blocks)
{
	const char *base = getenv("TMPDIR");
	memset(world, 0, sizeof(*world));
	snprintf(world->dir, sizeof(world->dir), "%s/fc-store-XXXXXX", base != NULL ? base : "/tmp");
	assert_non_null(mkdtemp(world->dir));
	snprintf(world->address, sizeof(world->address), "dir:%s", world->dir);
	snprintf(world->arena, sizeof(world->arena), "%s/ssd.arena", world->dir);
	world->geometry = geometry;
	engine_init(&world->engine, &geometry, path_blocks, 1);
	fc_store_opts_init(&world->opts);
	world->opts.geometry = &world->geometry;
	world->opts.ssd_bytes = 16 * MIB;
	world->opts.memory_bytes = 0;
	world->opts.window_bytes = MIB;
	world->opts.consolidate_ratio = 0;
}

static inline int store_world_try_open(struct store_world *world)
{
	memset(&world->error, 0, sizeof(world->error));
	world->store = NULL;
	return fc_store_open(&world->store, world->address, &world->opts, &world->error);
}

static inline void store_world_open(struct store_world *world)
{
	if (store_world_try_open(world) != FC_OK)
		fail_msg("%s", world->error.text);
	assert_int_equal(fc_kv_register(world->store, world->engine.layers, &world->kv, &world->error), 0);
}

static inline void store_world_close(struct store_world *world)
{
	fc_kv_free(world->kv);
	world->kv = NULL;
	fc_store_close(world->store);
	world->store = NULL;
}

static inline void store_world_remove_files(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char path[600];
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	if (dir != NULL)
		closedir(dir);
	rmdir(folder);
}

static inline void store_world_deinit(struct store_world *world)
{
	if (world->store != NULL)
		store_world_close(world);
	engine_deinit(&world->engine);
	store_world_remove_files(world->dir);
}

/* ---- requests ---- */

static inline struct fc_save_opts store_world_save_opts(struct store_world *world, uint64_t session, uint64_t turn,
							const struct fc_key *keys, uint64_t count)
{
	struct fc_save_opts opts = {
		.session = {0, session}, .keys = keys, .key_count = count, .turn = turn, .kv = world->kv};
	engine_slots(&world->engine, count, opts.slots);
	return opts;
}

static inline struct fc_load_opts store_world_load_opts(struct store_world *world, const struct fc_key *keys,
							uint64_t count)
{
	struct fc_load_opts opts = {.keys = keys, .key_count = count, .kv = world->kv, .is_started_when_ready = true};
	engine_slots(&world->engine, count, opts.slots);
	return opts;
}

static inline struct fc_save *store_world_submit_save(struct store_world *world, const struct fc_save_opts *opts)
{
	struct fc_save *save = NULL;
	if (fc_save_submit(world->store, opts, &save, &world->error) != FC_OK)
		fail_msg("%s", world->error.text);
	return save;
}

static inline struct fc_load *store_world_submit_load(struct store_world *world, const struct fc_load_opts *opts)
{
	struct fc_load *load = NULL;
	if (fc_load_submit(world->store, opts, &load, &world->error) != FC_OK)
		fail_msg("%s", world->error.text);
	return load;
}

/* Prefill and save, until it is durable. */
static inline struct fc_save_result store_world_save(struct store_world *world, uint64_t session, uint64_t turn,
						     const struct fc_key *keys, uint64_t count)
{
	struct fc_save_opts opts = store_world_save_opts(world, session, turn, keys, count);
	struct fc_save_result result;
	engine_fill(&world->engine, keys, count);
	struct fc_save *save = store_world_submit_save(world, &opts);
	(void)fc_save_wait(save, true, &result);
	fc_save_free(save);
	return result;
}

/* Load into wiped memory, and compare all that came. */
static inline struct fc_load_result store_world_load(struct store_world *world, const struct fc_key *keys,
						     uint64_t count)
{
	struct fc_load_opts opts = store_world_load_opts(world, keys, count);
	struct fc_load_result result;
	engine_wipe(&world->engine);
	struct fc_load *load = store_world_submit_load(world, &opts);
	(void)fc_load_wait(load, &result);
	fc_load_free(load);
	engine_check(&world->engine, keys, result.blocks);
	return result;
}

static inline struct fc_stats store_world_stats(struct store_world *world)
{
	struct fc_stats stats;
	assert_int_equal(fc_store_stats(world->store, &stats), 0);
	return stats;
}

/* ---- the file behind the store's back ---- */

static inline uint64_t store_world_file_bytes(const char *path)
{
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	return (uint64_t)status.st_size;
}

static inline uint8_t *store_world_read_file(const char *path, uint64_t *bytes)
{
	*bytes = store_world_file_bytes(path);
	uint8_t *content = malloc(*bytes);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && content != NULL);
	assert_int_equal(pread(fd, content, *bytes, 0), *bytes);
	close(fd);
	return content;
}

static inline void store_world_write_file(const char *path, uint64_t offset, const void *content, uint64_t bytes)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, content, bytes, (off_t)offset), bytes);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* Flips a bit of a slice in the closed store's arena. */
static inline void store_world_damage(const struct store_world *world, struct fc_key key, uint32_t group,
				      uint32_t layer)
{
	uint64_t bytes, slice_len = world->geometry.groups[group].slice_bytes[layer];
	uint8_t *content = store_world_read_file(world->arena, &bytes);
	uint8_t *slice = malloc(slice_len);
	slice_bytes(key, group, layer, slice, slice_len);
	uint8_t *found = memmem(content, bytes, slice, slice_len);
	assert_non_null(found);
	found[slice_len / 2] ^= 1;
	store_world_write_file(world->arena, (uint64_t)(found - content), found, slice_len);
	free(slice);
	free(content);
}

#endif

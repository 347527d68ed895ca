/* What one process leaves, another finds: after a clean close, after kill -9, with another capacity, with damage. And
 * what is not ours, or somebody else's, is refused by name and left as it was. */
#include "store/store_world.h"

#include "format/arena.h"

#include <signal.h>
#include <sys/wait.h>

#define BLOCKS 16

static void save_sessions(struct store_world *world, uint64_t first, uint64_t count)
{
	struct fc_key keys[BLOCKS];
	for (uint64_t session = first; session < first + count; session++) {
		path_keys(session, 0, keys, BLOCKS);
		assert_int_equal(store_world_save(world, session, 0, keys, BLOCKS / 2).code, 0);
		assert_int_equal(store_world_save(world, session, 1, keys, BLOCKS).code, 0);
	}
}

static uint64_t count_whole(struct store_world *world, uint64_t first, uint64_t count)
{
	struct fc_key keys[BLOCKS];
	uint64_t whole = 0;
	for (uint64_t session = first; session < first + count; session++) {
		path_keys(session, 0, keys, BLOCKS);
		struct fc_load_result result = store_world_load(world, keys, BLOCKS);
		assert_int_equal(result.code, 0);
		whole += result.blocks == BLOCKS;
	}
	return whole;
}

static void a_closed_store_is_found_again(void **state)
{
	(void)state;
	const struct fc_geometry geometries[] = {geometry_plain(100), geometry_hybrid(100)};
	for (size_t i = 0; i < fc_array_len(geometries); i++) {
		struct store_world world;
		uint64_t blocks;
		store_world_init(&world, geometries[i], BLOCKS);
		store_world_open(&world);
		save_sessions(&world, 1, 10);
		store_world_close(&world);
		store_world_open(&world);
		assert_int_equal(store_world_stats(&world).recovered_segments, i == 0 ? 20 : 40);
		assert_int_equal(count_whole(&world, 1, 10), 10);
		assert_int_equal(fc_session_blocks(world.store, (struct fc_session_id){0, 3}, &blocks), 0);
		assert_true(blocks >= BLOCKS);
		assert_int_equal(fc_session_blocks(world.store, (struct fc_session_id){0, 99}, &blocks), FC_ENOENT);
		store_world_deinit(&world);
	}
}

static void memory_on_tmpfs_outlives_the_process_and_other_memory_does_not(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	char path[300];
	struct stat status;
	if (stat("/dev/shm", &status) != 0)
		skip();
	snprintf(path, sizeof(path), "/dev/shm/fc-store-test-%ld", (long)getpid());
	path_keys(1, 0, keys, BLOCKS);
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		store_world_init(&world, geometry_plain(100), BLOCKS);
		world.opts.memory_bytes = 4 * MIB;
		world.opts.memory_path = is_kept ? path : NULL;
		store_world_open(&world);
		struct fc_save_result saved = store_world_save(&world, 1, 1, keys, BLOCKS);
		assert_int_equal(saved.code, 0);
		assert_int_equal(saved.is_durable, is_kept);
		assert_int_equal(store_world_load(&world, keys, BLOCKS).bytes[FC_MEMORY], BLOCKS * 1700);
		store_world_close(&world);
		store_world_open(&world);
		assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, is_kept ? BLOCKS : 0);
		store_world_deinit(&world);
	}
	unlink(path);
}

/* ---- kill -9 ---- */

/* Saves session after session, and tells the number of each that is durable. */
static void save_until_killed(struct store_world *world, int pipe_fd)
{
	struct fc_key keys[BLOCKS];
	for (uint64_t session = 1;; session++) {
		path_keys(session, 0, keys, BLOCKS);
		if (store_world_save(world, session, 0, keys, BLOCKS / 2).code != FC_OK ||
		    store_world_save(world, session, 1, keys, BLOCKS).code != FC_OK)
			_exit(1);
		if (write(pipe_fd, &session, sizeof(session)) != sizeof(session))
			_exit(1);
	}
}

static uint64_t run_until_killed(struct store_world *world, uint64_t sessions)
{
	int fds[2];
	uint64_t told = 0, next;
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(fds[0]);
		store_world_open(world);
		save_until_killed(world, fds[1]);
	}
	close(fds[1]);
	while (told < sessions && read(fds[0], &next, sizeof(next)) == sizeof(next))
		told = next;
	kill(child, SIGKILL);
	while (read(fds[0], &next, sizeof(next)) == sizeof(next))
		told = next;
	close(fds[0]);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	return told;
}

static void what_was_durable_survives_a_kill(void **state)
{
	(void)state;
	for (uint64_t sessions = 0; sessions < 12; sessions += 3) {
		struct store_world world;
		store_world_init(&world, geometry_plain(100), BLOCKS);
		world.opts.ssd_bytes = 64 * MIB;
		uint64_t told = run_until_killed(&world, sessions);
		assert_true(told >= sessions);
		store_world_open(&world);
		assert_int_equal(count_whole(&world, 1, told), told);
		save_sessions(&world, 1000, 2);
		assert_int_equal(count_whole(&world, 1000, 2), 2);
		store_world_deinit(&world);
	}
}

static void a_store_that_is_open_names_its_holder(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_store *second;
	char pid[64];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	assert_int_equal(fc_store_open(&second, world.address, &world.opts, &world.error), FC_EBUSY);
	snprintf(pid, sizeof(pid), "held by process %ld (", (long)getpid());
	assert_non_null(strstr(world.error.text, pid));
	assert_non_null(strstr(world.error.text, world.arena));
	store_world_deinit(&world);
}

/* ---- another capacity ---- */

static void a_store_that_grows_keeps_everything(void **state)
{
	(void)state;
	struct store_world world;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	save_sessions(&world, 1, 20);
	uint64_t capacity = store_world_stats(&world).media[FC_SSD].bytes;
	store_world_close(&world);
	world.opts.ssd_bytes = 32 * MIB;
	store_world_open(&world);
	assert_int_equal(store_world_stats(&world).media[FC_SSD].bytes, capacity + 16 * MIB);
	assert_int_equal(count_whole(&world, 1, 20), 20);
	save_sessions(&world, 100, 200);
	assert_int_equal(count_whole(&world, 100, 200), 200);
	store_world_deinit(&world);
}

static void a_store_that_shrinks_loses_what_lay_behind_the_end_and_nothing_else(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	save_sessions(&world, 1, 100);
	uint64_t used = store_world_stats(&world).media[FC_SSD].bytes_used;
	store_world_close(&world);
	world.opts.ssd_bytes = 4 * MIB;
	store_world_open(&world);
	struct fc_stats stats = store_world_stats(&world);
	assert_true(stats.dropped_segments > 0);
	assert_true(stats.media[FC_SSD].bytes_used > 0);
	assert_true(stats.media[FC_SSD].bytes_used < used);
	uint64_t blocks = 0;
	for (uint64_t session = 1; session <= 100; session++) {
		path_keys(session, 0, keys, BLOCKS);
		blocks += store_world_load(&world, keys, BLOCKS).blocks; /* every byte is compared */
	}
	assert_int_equal(blocks, stats.blocks);
	assert_true(blocks > 0);
	save_sessions(&world, 200, 3);
	assert_int_equal(count_whole(&world, 200, 3), 3);
	store_world_close(&world);
	world.opts.ssd_bytes = 16 * MIB;
	store_world_open(&world); /* what is gone stays gone */
	assert_int_equal(count_whole(&world, 200, 3), 3);
	blocks = 0;
	for (uint64_t session = 1; session <= 100; session++) {
		path_keys(session, 0, keys, BLOCKS);
		blocks += store_world_load(&world, keys, BLOCKS).blocks;
	}
	assert_true(blocks <= stats.blocks);
	store_world_deinit(&world);
}

/* ---- refused, by name, and left as it was ---- */

static void assert_refused(struct store_world *world, int code, const char *text)
{
	uint64_t bytes, bytes_after;
	uint8_t *before = store_world_read_file(world->arena, &bytes);
	assert_int_equal(store_world_try_open(world), code);
	if (strstr(world->error.text, text) == NULL)
		fail_msg("\"%s\" was expected in: %s", text, world->error.text);
	assert_non_null(strstr(world->error.text, world->dir));
	uint8_t *after = store_world_read_file(world->arena, &bytes_after);
	assert_int_equal(bytes, bytes_after);
	assert_memory_equal(before, after, bytes);
	free(before);
	free(after);
}

/* With the size that the arena has, and with another one, which must not be set before the refusal. */
static void assert_refused_in_any_size(struct store_world *world, int code, const char *text)
{
	assert_refused(world, code, text);
	world->opts.ssd_bytes *= 2;
	assert_refused(world, code, text);
	world->opts.ssd_bytes /= 4;
	assert_refused(world, code, text);
	world->opts.ssd_bytes *= 2;
}

static void make_store(struct store_world *world)
{
	store_world_init(world, geometry_plain(100), BLOCKS);
	store_world_open(world);
	save_sessions(world, 1, 2);
	store_world_close(world);
}

static void another_geometry_is_refused(void **state)
{
	(void)state;
	struct store_world world;
	make_store(&world);
	world.geometry.groups[0].slice_bytes[0]++;
	assert_refused_in_any_size(&world, FC_EGEOMETRY,
				   "group 0 layer 0: the arena has slices of 1000 bytes; wanted 1001");
	world.geometry.groups[0].slice_bytes[0]--;
	world.geometry.block_tokens = world.geometry.groups[0].tokens_per_block = 8;
	assert_refused_in_any_size(&world, FC_EGEOMETRY,
				   "the arena has geometry plain: 4 tokens per block, 3 layers, 1 groups");
	world.geometry.block_tokens = world.geometry.groups[0].tokens_per_block = 4;
	strcpy(world.geometry.name, "plain-fp8");
	assert_refused_in_any_size(
		&world, FC_EGEOMETRY,
		"the arena has geometry plain: 4 tokens per block, 3 layers, 1 groups; wanted plain-fp8: 4, 3, 1");
	strcpy(world.geometry.name, "plain");
	store_world_open(&world);
	assert_int_equal(count_whole(&world, 1, 2), 2);
	store_world_deinit(&world);
}

static void a_memory_arena_of_another_model_of_equal_sizes_is_refused(void **state)
{
	(void)state;
	struct store_world world;
	char path[300];
	struct stat status;
	if (stat("/dev/shm", &status) != 0)
		skip();
	snprintf(path, sizeof(path), "/dev/shm/fc-store-model-%ld", (long)getpid());
	store_world_init(&world, geometry_plain(100), BLOCKS);
	world.opts.memory_bytes = 4 * MIB;
	world.opts.memory_path = path;
	store_world_open(&world);
	store_world_close(&world);
	unlink(world.arena);
	strcpy(world.geometry.name, "plain-fp8");
	assert_int_equal(store_world_try_open(&world), FC_EGEOMETRY);
	if (strstr(world.error.text, "geometry plain: ") == NULL ||
	    strstr(world.error.text, "wanted plain-fp8") == NULL)
		fail_msg("%s", world.error.text);
	unlink(path);
	store_world_deinit(&world);
}

static void change_superblocks(struct store_world *world, uint64_t offset, const void *bytes, uint64_t count)
{
	for (uint64_t copy = 0; copy < FC_SUPERBLOCK_COPIES; copy++)
		store_world_write_file(world->arena, copy * FC_SUPERBLOCK_BYTES + offset, bytes, count);
}

static void another_version_byte_order_or_file_is_refused(void **state)
{
	(void)state;
	struct store_world world;
	uint32_t version = FC_FORMAT_VERSION + 1;
	make_store(&world);
	change_superblocks(&world, 24, &version, sizeof(version));
	char text[100];
	snprintf(text, sizeof(text), "arena of format version %u; this program reads version %u", version,
		 FC_FORMAT_VERSION);
	assert_refused_in_any_size(&world, FC_EFORMAT, text);
	store_world_deinit(&world);

	make_store(&world);
	uint64_t bytes;
	uint8_t *content = store_world_read_file(world.arena, &bytes);
	uint64_t magic;
	memcpy(&magic, content, sizeof(magic));
	magic = __builtin_bswap64(magic);
	change_superblocks(&world, 0, &magic, sizeof(magic));
	assert_refused_in_any_size(&world, FC_EFORMAT, "arena of the other byte order");
	free(content);
	change_superblocks(&world, 0, "SQLite format 3", 16);
	assert_refused_in_any_size(&world, FC_EFORMAT, "not a FlatCake arena");
	store_world_deinit(&world);

	store_world_init(&world, geometry_plain(100), BLOCKS);
	char letter[8192] = "a letter to a friend";
	store_world_write_file(world.arena, 0, letter, sizeof(letter));
	assert_refused(&world, FC_EFORMAT, "not a FlatCake arena");
	store_world_deinit(&world);
}

static void one_damaged_superblock_is_no_loss_and_two_are_refused(void **state)
{
	(void)state;
	struct store_world world;
	for (uint64_t copy = 0; copy < 2; copy++) {
		make_store(&world);
		store_world_write_file(world.arena, copy * FC_SUPERBLOCK_BYTES + 80, "damage", 6);
		store_world_open(&world);
		assert_int_equal(count_whole(&world, 1, 2), 2);
		store_world_deinit(&world);
	}
	make_store(&world);
	change_superblocks(&world, 80, "damage", 6);
	assert_refused_in_any_size(&world, FC_EFORMAT, "superblock with a wrong checksum");
	store_world_deinit(&world);
}

static void a_size_that_cannot_hold_the_arenas_own_tables_is_refused_before_anything_is_cut(void **state)
{
	(void)state;
	struct store_world world;
	make_store(&world);
	uint64_t bytes = world.opts.ssd_bytes;
	world.opts.ssd_bytes = 200 << 10;
	assert_refused(&world, FC_EINVAL, "204800 bytes are too few for this arena; at least ");
	world.opts.ssd_bytes = bytes;
	store_world_open(&world);
	assert_int_equal(count_whole(&world, 1, 2), 2);
	store_world_deinit(&world);
}

static void an_arena_that_was_never_written_is_new_whatever_its_size(void **state)
{
	(void)state;
	const uint64_t sizes[] = {0, 16 * MIB, 5 * MIB};
	for (size_t i = 0; i < fc_array_len(sizes); i++) {
		struct store_world world;
		store_world_init(&world, geometry_plain(100), BLOCKS);
		int fd = open(world.arena, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		close(fd);
		store_world_open(&world);
		save_sessions(&world, 1, 2);
		assert_int_equal(count_whole(&world, 1, 2), 2);
		store_world_deinit(&world);
	}
}

/* ---- damage ---- */

static void a_flipped_bit_costs_a_shorter_prefix_and_never_a_wrong_byte(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_key keys[BLOCKS];
	path_keys(1, 0, keys, BLOCKS);
	for (uint64_t block = 0; block < BLOCKS; block += 5) {
		for (uint32_t layer = 0; layer < 2; layer++) {
			make_store(&world);
			store_world_damage(&world, keys[block], 0, layer);
			store_world_open(&world);
			assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, block);
			struct fc_stats stats = store_world_stats(&world);
			assert_int_equal(stats.checksum_failures, 1);
			assert_int_equal(stats.sessions_cut, 1);
			assert_int_equal(count_whole(&world, 2, 1), 1);
			assert_int_equal(store_world_save(&world, 1, 2, keys, BLOCKS).code, 0);
			assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, BLOCKS);
			store_world_close(&world);
			store_world_open(&world); /* the cut is durable, and so is the repair */
			assert_int_equal(store_world_load(&world, keys, BLOCKS).blocks, BLOCKS);
			assert_int_equal(store_world_stats(&world).checksum_failures, 0);
			store_world_deinit(&world);
		}
	}
}

/* One byte in 997 of the tables, headers and slices is overwritten: the store opens, and whatever it delivers is right.
 */
static void an_arena_full_of_damage_delivers_only_what_is_right(void **state)
{
	(void)state;
	for (uint64_t shift = 0; shift < 997; shift += 199) {
		struct store_world world;
		struct fc_key keys[BLOCKS];
		store_world_init(&world, geometry_plain(10), BLOCKS);
		world.opts.ssd_bytes = MIB;
		world.opts.chunk_bytes = 4096;
		store_world_open(&world);
		save_sessions(&world, 1, 30);
		store_world_close(&world);
		uint64_t bytes;
		uint8_t *content = store_world_read_file(world.arena, &bytes);
		for (uint64_t at = FC_TABLE_OFFSET + shift; at < bytes; at += 997)
			content[at] ^= 0x10;
		store_world_write_file(world.arena, 0, content, bytes);
		free(content);
		store_world_open(&world);
		for (uint64_t session = 1; session <= 30; session++) {
			path_keys(session, 0, keys, BLOCKS);
			assert_int_equal(store_world_load(&world, keys, BLOCKS).code, 0);
		}
		save_sessions(&world, 100, 3);
		assert_int_equal(count_whole(&world, 100, 3), 3);
		store_world_deinit(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_store_is_found_again),
		cmocka_unit_test(memory_on_tmpfs_outlives_the_process_and_other_memory_does_not),
		cmocka_unit_test(what_was_durable_survives_a_kill),
		cmocka_unit_test(a_store_that_is_open_names_its_holder),
		cmocka_unit_test(a_store_that_grows_keeps_everything),
		cmocka_unit_test(a_store_that_shrinks_loses_what_lay_behind_the_end_and_nothing_else),
		cmocka_unit_test(another_geometry_is_refused),
		cmocka_unit_test(a_memory_arena_of_another_model_of_equal_sizes_is_refused),
		cmocka_unit_test(another_version_byte_order_or_file_is_refused),
		cmocka_unit_test(one_damaged_superblock_is_no_loss_and_two_are_refused),
		cmocka_unit_test(a_size_that_cannot_hold_the_arenas_own_tables_is_refused_before_anything_is_cut),
		cmocka_unit_test(an_arena_that_was_never_written_is_new_whatever_its_size),
		cmocka_unit_test(a_flipped_bit_costs_a_shorter_prefix_and_never_a_wrong_byte),
		cmocka_unit_test(an_arena_full_of_damage_delivers_only_what_is_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

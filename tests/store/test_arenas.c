/* What a store finds where its arenas should be: the rest of an interrupted format, an arena of another size, a file
 * that others may read, or one that is not its own. */
#include "store/store_world.h"

#include "format/arena.h"
#include "store/inspect.h"

#define BLOCKS 16
#define ALIGN 4096u

static void save_and_load(struct store_world *world)
{
	struct fc_key keys[BLOCKS];
	path_keys(1, 0, keys, BLOCKS);
	assert_int_equal(store_world_save(world, 1, 1, keys, BLOCKS).code, 0);
	assert_int_equal(store_world_load(world, keys, BLOCKS).blocks, BLOCKS);
}

static void assert_notice(const struct store_world *world, const char *text)
{
	if (strstr(fc_store_notice(world->store), text) == NULL)
		fail_msg("\"%s\" was expected in: %s", text, fc_store_notice(world->store));
}

static void make_file(const char *path, uint64_t bytes, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

static unsigned mode_of(const char *path)
{
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}

/* Where memory arenas are files; NULL without such a place. */
static const char *memory_path(char path[300])
{
	struct stat status;
	snprintf(path, 300, "/dev/shm/fc-store-arenas-%ld", (long)getpid());
	return stat("/dev/shm", &status) == 0 ? path : NULL;
}

/* ---- interrupted ---- */

/* Formats a medium that dies at operation `die_at`; false when it lived to the end. `media` gets what is left. */
static bool format_until(uint64_t die_at, uint64_t seed, struct fake_media **media, uint64_t bytes)
{
	struct world world;
	world_init(&world, geometry_plain(100), 0, 8);
	fake_media_close(world.media[FC_SSD]);
	world.opts.chunk_bytes = 0; /* as a store chooses it */
	world.media[FC_SSD] = fake_media_new(bytes, ALIGN, true);
	world.media[FC_SSD]->die_at = die_at;
	bool has_died = world_open(&world) != FC_OK;
	world_crash(&world, seed);
	*media = fake_media_reopen(world.media[FC_SSD], 0);
	world_deinit(&world);
	return has_died;
}

static void open_what_is_left(const struct fake_media *media, uint64_t bytes)
{
	struct store_world world;
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_write_file(world.arena, 0, media->image, media->media.bytes);
	struct fc_probe probe;
	struct fc_probe_opts opts = {.dir = world.dir};
	struct fc_error error = {0};
	int code = fc_store_probe(&probe, &opts, &error);
	if (code != FC_OK && strstr(error.text, "nothing was ever stored in it") == NULL)
		fail_msg("%s", error.text);
	world.opts.ssd_bytes = bytes;
	store_world_open(&world);
	assert_int_equal(store_world_file_bytes(world.arena), bytes);
	save_and_load(&world);
	store_world_deinit(&world);
}

static void a_format_interrupted_at_any_write_is_begun_again_in_any_size(void **state)
{
	(void)state;
	const uint64_t sizes[] = {4 * MIB, 8 * MIB, 2 * MIB};
	bool has_died = true;
	uint64_t deaths = 0;
	for (uint64_t die_at = 1; has_died; die_at++) {
		for (uint64_t seed = 0; seed < 3 && has_died; seed++) {
			struct fake_media *media;
			has_died = format_until(die_at, 3 * die_at + seed, &media, sizes[0]);
			for (size_t i = 0; i < fc_array_len(sizes); i++)
				open_what_is_left(media, sizes[i]);
			fake_media_close(media);
			deaths += has_died;
		}
	}
	assert_true(deaths >= 3 * 8); /* mark, table, two superblocks, and the syncs between */
}

static void zeros_of_any_length_are_no_arena_yet_and_anything_else_is_somebodys(void **state)
{
	(void)state;
	const uint64_t lengths[] = {ALIGN, FC_SUPERBLOCK_BYTES, FC_TABLE_OFFSET, FC_TABLE_OFFSET + ALIGN};
	for (size_t i = 0; i < fc_array_len(lengths); i++) {
		struct store_world world;
		store_world_init(&world, geometry_plain(100), BLOCKS);
		make_file(world.arena, lengths[i], 0600);
		store_world_write_file(world.arena, lengths[i] - 1, "x", 1);
		if (lengths[i] <= FC_TABLE_OFFSET) {
			assert_int_equal(store_world_try_open(&world), FC_EFORMAT);
			assert_int_equal(store_world_file_bytes(world.arena), lengths[i]);
		}
		make_file(world.arena, lengths[i], 0600);
		store_world_open(&world);
		save_and_load(&world);
		store_world_deinit(&world);
	}
}

/* ---- another size ---- */

static void set_bytes(struct store_world *world, enum fc_medium medium, uint64_t bytes)
{
	if (medium == FC_SSD)
		world->opts.ssd_bytes = bytes;
	else
		world->opts.memory_bytes = bytes;
}

/* No byte is taken from the disk that no chunk could lie in. */
static void an_arena_grows_as_far_as_its_table_and_says_so(void **state)
{
	(void)state;
	char memory[300];
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct store_world world;
		store_world_init(&world, geometry_plain(100), BLOCKS);
		world.opts.memory_path = memory_path(memory);
		if (medium == FC_MEMORY && world.opts.memory_path == NULL)
			continue;
		const char *path = medium == FC_SSD ? world.arena : memory;
		world.opts.ssd_bytes = 0;
		set_bytes(&world, (enum fc_medium)medium, 2 * MIB);
		store_world_open(&world);
		assert_null(strstr(fc_store_notice(world.store), "chunk table"));
		save_and_load(&world);
		store_world_close(&world);

		uint64_t bytes;
		struct fc_superblock superblock;
		uint8_t *content = store_world_read_file(path, &bytes);
		assert_int_equal(fc_superblock_choose(&superblock, content, NULL), 0);
		free(content);
		uint64_t most = fc_superblock_bytes_max(&superblock);
		assert_true(most > 8 * bytes &&
			    most < 24 * bytes); /* of so small an arena a table page is a large part */

		for (int is_again = 0; is_again < 2; is_again++) {
			set_bytes(&world, (enum fc_medium)medium, most + (64ull << 30)); /* more than many a disk has */
			store_world_open(&world);
			assert_notice(&world, path);
			assert_notice(&world, "its chunk table");
			assert_int_equal(store_world_file_bytes(path), most);
			assert_int_equal(store_world_stats(&world).media[medium].bytes,
					 superblock.table_chunks * superblock.chunk_bytes);
			save_and_load(&world);
			store_world_close(&world);
			/* As an earlier version left it. */
			assert_int_equal(truncate(path, (off_t)(most + 8 * MIB)), 0);
		}
		set_bytes(&world, (enum fc_medium)medium, most);
		store_world_open(&world);
		assert_null(strstr(fc_store_notice(world.store), "chunk table"));
		assert_int_equal(store_world_file_bytes(path), most);
		store_world_deinit(&world);
		unlink(memory);
	}
}

/* ---- others ---- */

static void what_others_may_do_with_an_arena_is_taken_from_them(void **state)
{
	(void)state;
	const mode_t modes[] = {0666, 0640, 0604, 0600};
	char memory[300];
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		for (size_t i = 0; i < fc_array_len(modes); i++) {
			struct store_world world;
			char text[64];
			store_world_init(&world, geometry_plain(100), BLOCKS);
			world.opts.memory_path = memory_path(memory);
			if (medium == FC_MEMORY && world.opts.memory_path == NULL)
				continue;
			const char *path = medium == FC_SSD ? world.arena : memory;
			world.opts.ssd_bytes = 0;
			set_bytes(&world, (enum fc_medium)medium, 2 * MIB);
			store_world_open(&world);
			assert_int_equal(mode_of(path), 0600);
			store_world_close(&world);
			assert_int_equal(chmod(path, modes[i]), 0);
			store_world_open(&world);
			snprintf(text, sizeof(text), "had mode %04o", (unsigned)modes[i]);
			assert_int_equal(strstr(fc_store_notice(world.store), text) != NULL, modes[i] != 0600);
			assert_int_equal(mode_of(path), 0600);
			store_world_deinit(&world);
			unlink(memory);
		}
	}
}

static void a_file_that_was_named_by_mistake_keeps_its_mode(void **state)
{
	(void)state;
	struct store_world world;
	char letter[8192] = "a letter to a friend";
	store_world_init(&world, geometry_plain(100), BLOCKS);
	make_file(world.arena, world.opts.ssd_bytes, 0644);
	store_world_write_file(world.arena, 0, letter, sizeof(letter));
	assert_int_equal(store_world_try_open(&world), FC_EFORMAT);
	assert_int_equal(mode_of(world.arena), 0644);
	store_world_deinit(&world);

	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	store_world_close(&world);
	assert_int_equal(chmod(world.arena, 0644), 0);
	strcpy(world.geometry.name, "another");
	assert_int_equal(store_world_try_open(&world), FC_EGEOMETRY);
	assert_int_equal(mode_of(world.arena), 0644);
	store_world_deinit(&world);
}

static void an_arena_of_another_user_is_refused_and_can_be_looked_at(void **state)
{
	(void)state;
	struct store_world world;
	struct fc_inspect *inspect;
	if (geteuid() != 0)
		skip();
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	store_world_close(&world);
	assert_int_equal(chown(world.arena, 12345, (gid_t)-1), 0);
	assert_int_equal(store_world_try_open(&world), FC_EINVAL);
	if (strstr(world.error.text, "belongs to user 12345") == NULL)
		fail_msg("%s", world.error.text);
	struct fc_probe_opts opts = {.dir = world.dir};
	assert_int_equal(fc_inspect_open(&inspect, &opts, &world.error), 0);
	fc_inspect_close(inspect);
	assert_int_equal(chown(world.arena, 0, (gid_t)-1), 0);
	store_world_open(&world);
	store_world_deinit(&world);
}

static void further_names_and_open_folders_are_told(void **state)
{
	(void)state;
	struct store_world world;
	char link_path[320];
	store_world_init(&world, geometry_plain(100), BLOCKS);
	store_world_open(&world);
	assert_null(strstr(fc_store_notice(world.store), "hard links"));
	assert_null(strstr(fc_store_notice(world.store), "a folder of mode"));
	store_world_close(&world);
	snprintf(link_path, sizeof(link_path), "%s/second", world.dir);
	assert_int_equal(link(world.arena, link_path), 0);
	assert_int_equal(chmod(world.dir, 0777), 0);
	store_world_open(&world);
	assert_notice(&world, "has 2 names (hard links)");
	assert_notice(&world, "a folder of mode 0777");
	assert_int_equal(mode_of(world.dir), 0777);
	store_world_close(&world);
	assert_int_equal(chmod(world.dir, 01777), 0);
	store_world_open(&world);
	assert_null(strstr(fc_store_notice(world.store), "a folder of mode"));
	store_world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_interrupted_at_any_write_is_begun_again_in_any_size),
		cmocka_unit_test(zeros_of_any_length_are_no_arena_yet_and_anything_else_is_somebodys),
		cmocka_unit_test(an_arena_grows_as_far_as_its_table_and_says_so),
		cmocka_unit_test(what_others_may_do_with_an_arena_is_taken_from_them),
		cmocka_unit_test(a_file_that_was_named_by_mistake_keeps_its_mode),
		cmocka_unit_test(an_arena_of_another_user_is_refused_and_can_be_looked_at),
		cmocka_unit_test(further_names_and_open_folders_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

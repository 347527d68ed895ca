/* What the tests of this folder tell of a store: some sessions, saved and found again. */
#ifndef FC_TESTS_REAL_STORIES_H
#define FC_TESTS_REAL_STORIES_H

#include "store/store_world.h"

#define BLOCKS 16
#define SESSIONS 8

static inline void make_world(struct store_world *world)
{
	store_world_init(world, geometry_plain(100), BLOCKS);
}

static inline void save_sessions(struct store_world *world, uint64_t first, uint64_t turn)
{
	struct fc_key keys[BLOCKS];
	for (uint64_t session = first; session < first + SESSIONS; session++) {
		path_keys(session, 0, keys, BLOCKS);
		struct fc_save_result result = store_world_save(world, session, turn, keys, BLOCKS);
		assert_int_equal(result.code, FC_OK);
		assert_int_equal(result.durable_code, FC_OK);
	}
}

/* Whole sessions of those that save_sessions() saved; every byte that comes is compared. */
static inline uint64_t count_whole(struct store_world *world, uint64_t first)
{
	struct fc_key keys[BLOCKS];
	uint64_t whole = 0;
	for (uint64_t session = first; session < first + SESSIONS; session++) {
		path_keys(session, 0, keys, BLOCKS);
		struct fc_load_result result = store_world_load(world, keys, BLOCKS);
		assert_int_equal(result.code, FC_OK);
		whole += result.blocks == BLOCKS;
	}
	return whole;
}

/* Open, save, load, close, open, load. */
static inline void check_works(struct store_world *world)
{
	store_world_open(world);
	save_sessions(world, 1, 0);
	assert_int_equal(count_whole(world, 1), SESSIONS);
	store_world_close(world);
	store_world_open(world);
	assert_int_equal(count_whole(world, 1), SESSIONS);
}

static inline void assert_text(const char *text, const char *wanted)
{
	if (strstr(text, wanted) == NULL)
		fail_msg("\"%s\" was expected in: %s", wanted, text);
}

static inline void assert_refused(struct store_world *world, int code, const char *path, const char *text)
{
	int found = store_world_try_open(world);
	if (found != code)
		fail_msg("%s was expected; the open says: %s", fc_code_text(code),
			 found == FC_OK ? "no error" : world->error.text);
	assert_text(world->error.text, path);
	assert_text(world->error.text, text);
}

#endif

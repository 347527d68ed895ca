/* A folder, an arena in it and a buffer of its size: where the tests of the SSD medium take place. */
#ifndef FC_TESTS_MEDIA_SSD_WORLD_H
#define FC_TESTS_MEDIA_SSD_WORLD_H

#include "media/medium_io.h"
#include "media/ssd.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARENA_BYTES ((uint64_t)1 << 20)
#define PIECE_COUNT 16
#define PIECE_BYTES (ARENA_BYTES / PIECE_COUNT)

struct ssd_world {
	char folder[256];
	char path[300];
	struct fc_error error;
	struct fc_media *media;
	uint8_t *buffer; /* ARENA_BYTES, aligned to 64 KiB */
};

static inline int world_init(void **state)
{
	struct ssd_world *world = calloc(1, sizeof(*world));
	const char *base = getenv("TMPDIR");

	*state = world;
	if (world == NULL)
		return -1;
	snprintf(world->folder, sizeof(world->folder), "%s/fc-ssd-XXXXXX", base != NULL ? base : "/tmp");
	world->buffer = aligned_alloc(65536, ARENA_BYTES);
	if (world->buffer == NULL || mkdtemp(world->folder) == NULL)
		return -1;
	memset(world->buffer, 0, ARENA_BYTES);
	snprintf(world->path, sizeof(world->path), "%s/arena", world->folder);
	return 0;
}

static inline int world_deinit(void **state)
{
	struct ssd_world *world = *state;
	unlink(world->path);
	rmdir(world->folder);
	free(world->buffer);
	free(world);
	return 0;
}

static inline void world_open(struct ssd_world *world, struct fc_ssd_opts opts)
{
	opts.path = world->path;
	world->media = NULL;
	if (fc_ssd_open(&opts, &world->media, &world->error) != 0)
		fail_msg("%s", world->error.text);
}

static inline uint8_t world_byte(uint8_t seed, uint64_t at)
{
	return (uint8_t)(seed + at * 31 + at / 4096);
}

static inline void world_fill_range(struct ssd_world *world, uint8_t seed, uint64_t begin, uint64_t end)
{
	for (uint64_t at = begin; at < end; at++)
		world->buffer[at] = world_byte(seed, at);
}

static inline void world_fill(struct ssd_world *world, uint8_t seed)
{
	world_fill_range(world, seed, 0, ARENA_BYTES);
}

static inline void world_check_filled(const struct ssd_world *world, uint8_t seed)
{
	for (uint64_t at = 0; at < ARENA_BYTES; at++)
		if (world->buffer[at] != world_byte(seed, at))
			fail_msg("byte %llu is %u", (unsigned long long)at, world->buffer[at]);
}

/* All pieces at once, the last one first. */
static inline void world_submit_all(struct ssd_world *world, struct medium_io *ios, enum fc_io_op op)
{
	for (uint64_t i = PIECE_COUNT; i-- > 0;) {
		medium_io_init(&ios[i], op, i * PIECE_BYTES, world->buffer + i * PIECE_BYTES, PIECE_BYTES);
		fc_media_submit(world->media, &ios[i].io);
	}
}

static inline bool world_is_all_done(const struct medium_io *ios)
{
	for (int i = 0; i < PIECE_COUNT; i++)
		if (ios[i].done_count == 0)
			return false;
	return true;
}

static inline void world_run_all(struct ssd_world *world, struct medium_io *ios, enum fc_io_op op)
{
	world_submit_all(world, ios, op);
	for (int tries = 0; !world_is_all_done(ios); tries++) {
		fc_check(tries < 1000);
		fc_media_wait(world->media, 1000000000);
	}
	for (int i = 0; i < PIECE_COUNT; i++) {
		assert_int_equal(ios[i].done_count, 1);
		assert_int_equal(ios[i].io.result, PIECE_BYTES);
	}
}

#endif

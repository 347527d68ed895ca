/* A small world for tests of the catalog: two fake media, an allocator that counts and fails, a geometry of odd sizes,
 * and the few verbs that a story needs. The bytes of every slice follow from its key, so whatever is read back can be
 * told from anything else.
 *
 *     struct world world;
 *     world_init(&world, geometry_plain(1), 8, 16);        chunks of memory and of SSD; 0: no such arena
 *     world.opts.consolidate_ratio = 1;                    anything in opts may be changed before world_open()
 *     assert_int_equal(world_open(&world), 0);
 *     struct fc_key keys[10];
 *     path_keys(1, 0, keys, 10);
 *     assert_int_equal(save(&world, 7, 0, keys, 10), 0);   session 7, turn 0: reserve, write, commit, wait
 *     world_crash(&world, 42);                             the power fails
 *     assert_int_equal(world_open(&world), 0);
 *     assert_int_equal(stored(&world, keys, 10), 10);
 *     world_deinit(&world);                                asserts that no byte of memory is left
 *
 * Everything here asserts with cmocka, so a helper that returns has succeeded. */
#ifndef FC_TESTS_LIB_WORLD_H
#define FC_TESTS_LIB_WORLD_H

#include "base/tracked_alloc.h"
#include "catalog/catalog.h"
#include "lib/fake_media.h"

/* ---- geometries and keys ---- */

/* One group, 3 layers with slices of 10, 7 and 0 bytes times `scale`; 4 tokens a block. 17 bytes a block. */
struct fc_geometry geometry_plain(uint32_t scale);

/* 4 layers, 4 tokens a block, resume granule 2 blocks. Times `scale`:
 *     group 0  all, span 1                 10 0 3 0
 *     group 1  all, span 2                  0 6 0 1
 *     group 2  window of 6 tokens, span 1   2 2 2 2    (2 blocks at every resume point)
 *     group 3  state                        0 0 0 9 */
struct fc_geometry geometry_hybrid(uint32_t scale);

/* keys[i] follows from keys[i - 1] and `seed`, for i >= from. Keys below `from` are left as they are: so a
 * branch at block 4 of a path is a copy of it, then path_keys(0, 4, copy, count) with another `seed`. */
void path_keys(uint64_t seed, uint64_t from, struct fc_key *keys, uint64_t count);

/* The bytes of a slice. */
void slice_bytes(struct fc_key key, uint32_t group, uint32_t layer, uint8_t *bytes, uint64_t count);

/* ---- the world ---- */

#define WORLD_CHUNK_BYTES 4096u

struct world {
	struct tracked_alloc tracked;
	struct fc_alloc alloc;
	struct fc_geometry geometry;
	struct fc_catalog_opts opts;
	struct fake_media *media[FC_MEDIUM_COUNT];
	struct fc_catalog *catalog; /* NULL while it is closed */
	bool is_opened;
	int open_code;
	struct fc_error error;
};

/* Arenas of 4 KiB chunks. Placement sends everything to SSD but later turns (turn > 0); nothing is consolidated;
 * nothing is reclaimed before an arena is full. SSD is durable, memory is not. */
void world_init(struct world *world, struct fc_geometry geometry, uint64_t memory_chunks, uint64_t ssd_chunks);
/* Memory that outlives the process, as a file on tmpfs does. Before world_open(). */
void world_make_memory_durable(struct world *world);
void world_deinit(struct world *world);

/* Opens and waits for the callback; returns its code. */
int world_open(struct world *world);
/* Waits until all is durable, and closes. */
void world_close(struct world *world);
/* Closes, and opens again with the other size of the SSD arena, in chunks, if that is not 0. */
int world_reopen(struct world *world, uint64_t ssd_chunks);
/* The power fails. The catalog is gone; world_open() comes next. */
void world_crash(struct world *world, uint64_t seed);

/* One poll of both media; returns how many operations ended. */
unsigned world_poll(struct world *world);
/* Polls until nothing is on its way. */
void world_drain(struct world *world);
/* fc_catalog_check(). */
void world_check(struct world *world);

struct fc_stats world_stats(const struct world *world);
/* Of a session, by the low half of its id; segments is 0 when there is none. */
struct fc_session_info world_session(struct world *world, uint64_t session);
uint64_t world_sessions(struct world *world);
uint64_t world_chunks_used(const struct world *world, enum fc_medium medium);

/* Bytes of an arena that has this many chunks. */
uint64_t world_arena_bytes(const struct fc_geometry *geometry, uint64_t chunks, uint32_t align);

/* ---- saving ---- */

/* One turn on its way. put_init() fills in `turn` for a device that holds every block; change it before put_reserve().
 */
struct put {
	struct world *world;
	struct fc_turn turn;
	struct fc_reservation reservation;
	struct fc_error error;
	bool has_space;         /* space_cb was called */
	unsigned durable_count; /* calls of durable_cb */
	int durable_code;
};

void put_init(struct put *put, struct world *world, uint64_t session, uint64_t turn, const struct fc_key *keys,
	      uint64_t key_count);
/* Waits for space as long as it is told to. After an error, or after put_abort(), only put_deinit() is allowed. */
int put_reserve(struct put *put);
/* Writes every slice of every grant, and waits for the media. FC_EIO when one refuses. */
int put_write(struct put *put);
int put_commit(struct put *put);
void put_abort(struct put *put);
/* Writes and commits; aborts when a medium refuses. */
int put_finish(struct put *put);
bool put_is_settled(const struct put *put);
void put_deinit(struct put *put);

/* Reserve, write, commit, and everything durable. Returns the first error. */
int save(struct world *world, uint64_t session, uint64_t turn, const struct fc_key *keys, uint64_t key_count);

/* Copies the next segment that waits for it from memory to SSD. The code of fc_catalog_spill_next() or of the commit.
 */
int spill_one(struct world *world);

/* ---- reading ---- */

/* Depth of the deepest resume point; all its bytes are read and compared. No lease. */
uint64_t stored(struct world *world, const struct fc_key *keys, uint64_t key_count);
/* Compares every slice that a match of `keys` names with what its key says. */
void verify_path(struct world *world, const struct fc_path *path, const struct fc_key *keys);
/* Path blocks of group 0 by the segments that hold them, as "4 4 2 | m8" (m: in memory), in order of the path. */
const char *picture(struct world *world, const struct fc_key *keys, uint64_t key_count);

#endif

/* Where sessions lie on the SSD of a simulated node: a picture of the arena, and what a picture cannot say in numbers.
 *
 *   policy --pieces--> fc_map_taker --sort by offset--> extents --> fc_arena_map (plain memory, for another process)
 *
 * A piece is what one write laid down: a segment of a catalog, an object of a bucket. Pieces of one session that lie
 * side by side are one extent, whoever wrote them and when. Pieces that hold resume points alone are drawn, and are no
 * extents: a load reads one of them at most. The picture has cells of equal size; a cell shows
 *
 *   free     less than half of it is in use
 *   mixed    no session has half of what is in use
 *   session  one has: a 32-bit hash of its name, the same for all policies, above the other values
 *
 * It is taken twice, of the whole arena and, through a magnifying glass, of the fullest stretch of it in which a cell
 * is as long as one block.
 *
 * Whose a piece is: a policy that knows sessions says so. One that knows blocks alone gives a block's number, and the
 * block belongs to whoever saved it first. Where a trace has no sessions, blocks that are new join the conversation of
 * the block before them, unless that is one that several conversations use. */
#ifndef FC_REPLAY_ARENA_MAP_H
#define FC_REPLAY_ARENA_MAP_H

#include "replay/policy.h"

#define FC_MAP_ROWS 20
#define FC_MAP_COLUMNS 240
#define FC_MAP_CELLS (FC_MAP_ROWS * FC_MAP_COLUMNS)
#define FC_MAP_MOMENTS 4 /* after each quarter of the requests */

#define FC_MAP_FREE 0u
#define FC_MAP_MIXED 1u
#define FC_MAP_SHARED 2u /* prompts that several conversations use */
#define FC_MAP_SESSIONS 3u

struct fc_map_picture {
	uint64_t first_byte, cell_bytes;
	uint32_t cells[FC_MAP_CELLS];
};

struct fc_arena_map {
	uint64_t arena_bytes; /* 0: none was taken */
	uint64_t at_ns, request_count;
	uint64_t used_bytes;
	uint64_t session_count, extent_count, extent_bytes; /* prompts are sessions here */
	uint64_t extents_p50, extents_p90, extents_max;     /* of a session */
	uint64_t gap_count, gap_bytes_max;
	struct fc_map_picture whole, near;
};

struct fc_map_taker {
	struct fc_arena_map *maps; /* FC_MAP_MOMENTS, borrowed; NULL: none is wanted, and nothing is done */
	int taken;
	uint64_t request_total;
	uint32_t *owner_of; /* by number: hash of the session, 0: nobody saved it */
	uint32_t unnamed;   /* conversations without a name so far */
};

/* FC_ENOMEM. fc_map_taker_deinit() also after a failure. */
FC_MUST_USE int fc_map_taker_init(struct fc_map_taker *taker, struct fc_arena_map *maps, uint64_t number_max,
				  uint64_t request_total);
void fc_map_taker_deinit(struct fc_map_taker *taker);

/* A turn is about to be saved. */
void fc_map_taker_saving(struct fc_map_taker *taker, const struct fc_policy_turn *turn);

/* Takes what is due after so many requests. FC_ENOMEM. */
FC_MUST_USE int fc_map_taker_take(struct fc_map_taker *taker, struct fc_policy *policy, uint64_t request_count);

#endif

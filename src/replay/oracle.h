/* What a perfect store would have: every block that a save was acknowledged for, and where a prefix of them can be
 * resumed. The yardstick for what the real one delivers.
 *
 * It also stands in for an engine's prefix tree, which knows which leading blocks more than one conversation uses:
 *  - where sessions are known, a block is shared once a second session has used it;
 *  - where they are not, the blocks up to a fork are: two conversations went on differently behind them.
 *
 * Blocks are numbered by first appearance; whoever keeps a path keeps its numbers, so that a step along a path costs no
 * look-up. Pure memory, one thread. */
#ifndef FC_REPLAY_ORACLE_H
#define FC_REPLAY_ORACLE_H

#include "base/check.h"
#include "base/error.h"

#define FC_ORACLE_NONE UINT32_MAX

struct fc_oracle;

/* Of the geometry, only where prefixes may end matters. FC_ENOMEM. */
FC_MUST_USE int fc_oracle_new(struct fc_oracle **oracle, const struct fc_geometry *geometry);
void fc_oracle_free(struct fc_oracle *oracle);

/* The number of a block, given with its first use. FC_ENOMEM, FC_ELIMIT (2^31 blocks). */
FC_MUST_USE int fc_oracle_number(struct fc_oracle *oracle, struct fc_key key, uint32_t *number);

/* Numbers given so far. */
uint32_t fc_oracle_count(const struct fc_oracle *oracle);
/* Gives the numbers below `count` to blocks that somebody else has numbered. The oracle must be new, and
 * fc_oracle_number() is not called any more. FC_ENOMEM. */
FC_MUST_USE int fc_oracle_give(struct fc_oracle *oracle, uint32_t count);

/* A request with this path has come; `session` is FC_ORACLE_NONE when it is not known. */
void fc_oracle_use(struct fc_oracle *oracle, const uint32_t *path, uint64_t count, uint32_t session);

/* Leading blocks that more than one conversation uses. */
uint64_t fc_oracle_shared(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count);

/* A request with this path has begun, and computes what it does not find. */
void fc_oracle_begun(struct fc_oracle *oracle, const uint32_t *path, uint64_t count);
/* Leading blocks that some request before has begun with, whether it has ended or not. What this has more than
 * fc_oracle_prefix() is being computed: no cache can deliver it yet. */
uint64_t fc_oracle_begun_prefix(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count);

/* A request has ended, its path was computed, stored or not. */
void fc_oracle_computed(struct fc_oracle *oracle, const uint32_t *path, uint64_t count);
/* Leading blocks that some request before computed: what any cache could reuse, whatever the model. */
uint64_t fc_oracle_prefix(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count);

/* A save of the path was acknowledged. `resume_points` are those that were asked for besides the path's end. `losses`
 * is how many sessions the store had given up when the save began. */
void fc_oracle_saved(struct fc_oracle *oracle, const uint32_t *path, uint64_t count, const uint64_t *resume_points,
		     uint64_t resume_point_count, uint64_t losses);
/* The deepest resume point among what was acknowledged, in blocks. */
uint64_t fc_oracle_possible(const struct fc_oracle *oracle, const uint32_t *path, uint64_t count);

/* Whether the store gave up any session since it acknowledged the blocks [delivered, possible) of a path; if not,
 * nothing explains why it does not have them. */
bool fc_oracle_explains(const struct fc_oracle *oracle, const uint32_t *path, uint64_t delivered, uint64_t possible,
			uint64_t losses);

#endif

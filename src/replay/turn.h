/* One request as a store sees it, live or simulated. */
#ifndef FC_REPLAY_TURN_H
#define FC_REPLAY_TURN_H

#include "base/error.h"
#include "trace/trace.h"

#define FC_TURN_POINTS_MAX 2

/* Fields are set by the engine, keys are borrowed until the turn ends. */
struct fc_replay_turn {
	const struct fc_key *keys;
	uint64_t input_blocks;  /* what is loaded */
	uint64_t stored_blocks; /* what is saved: with the reply */
	struct fc_session_id session;
	uint64_t arrival_ns;
	/* known when it is saved */
	uint64_t turn;
	uint64_t previous_reply_tokens;
	uint64_t shared_blocks;
	uint64_t resume_points[FC_TURN_POINTS_MAX]; /* ascending, in blocks; the device has seen them */
	uint64_t resume_point_count;
	void *place; /* the backend's */
};

/* What a store is told of a session of the trace; {0, 0}, to be inferred, where the trace does not name it. */
struct fc_session_id fc_turn_session(const struct fc_trace *trace, uint32_t session);

/* Resume points besides the path's end: where the system prompt ends and where other conversations leave this one
 * (`shared_blocks`), as far as the device has seen the windows and states there: it has if the prefix that was
 * delivered ends no later. `granule` is fc_resume_granule(). */
void fc_turn_set_points(struct fc_replay_turn *turn, uint64_t prompt_blocks, uint64_t delivered_blocks,
			uint64_t granule);

#endif

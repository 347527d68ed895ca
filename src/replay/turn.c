#include "replay/turn.h"

#include "base/check.h"

struct fc_session_id fc_turn_session(const struct fc_trace *trace, uint32_t session)
{
	if (session == FC_TRACE_NONE)
		return (struct fc_session_id){0, 0};
	return fc_session_id_from_text(trace->sessions[session].name);
}

void fc_turn_set_points(struct fc_replay_turn *turn, uint64_t prompt_blocks, uint64_t delivered_blocks,
			uint64_t granule)
{
	uint64_t end = turn->stored_blocks - turn->stored_blocks % granule;
	uint64_t points[FC_TURN_POINTS_MAX] = {fc_min_u64(prompt_blocks, turn->shared_blocks),
					       fc_max_u64(prompt_blocks, turn->shared_blocks)};
	turn->resume_point_count = 0;
	for (int i = 0; i < FC_TURN_POINTS_MAX; i++) {
		uint64_t point = points[i] - points[i] % granule;
		bool is_seen = point > 0 && point >= delivered_blocks && point < end;
		uint64_t last = turn->resume_point_count > 0 ? turn->resume_points[turn->resume_point_count - 1] : 0;
		if (is_seen && point > last)
			turn->resume_points[turn->resume_point_count++] = point;
	}
}

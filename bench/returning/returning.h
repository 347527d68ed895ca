/* A trace of sessions that return once: each writes its history, and when all have, each comes back with a few new
 * tokens. So a history lies where the policy has put it, and nothing else is different between those that come back.
 * Nothing is shared between sessions. */
#ifndef FC_BENCH_RETURNING_H
#define FC_BENCH_RETURNING_H

#include "base/error.h"
#include "trace/trace.h"

#define RETURNING_BLOCK_TOKENS 64u

struct returning {
	struct fc_trace trace; /* those that came back are of source 1 */
	struct fc_trace_request *requests;
	struct fc_trace_session *sessions;
	char (*names)[16];
	uint32_t *session_requests;
};

/* Both numbers of tokens are multiples of RETURNING_BLOCK_TOKENS. FC_ENOMEM. */
FC_MUST_USE int returning_init(struct returning *returning, uint32_t session_count, uint64_t history_tokens,
			       uint64_t new_tokens);
void returning_deinit(struct returning *returning);

#endif

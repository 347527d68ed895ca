#include "bench/returning/returning.h"

#include <stdio.h>
#include <stdlib.h>

static void add_session(struct returning *returning, uint32_t i, uint64_t history_tokens, uint64_t new_tokens)
{
	uint32_t count = returning->trace.session_count;
	uint32_t history = (uint32_t)(history_tokens / RETURNING_BLOCK_TOKENS);
	uint32_t new_blocks = (uint32_t)(new_tokens / RETURNING_BLOCK_TOKENS);
	snprintf(returning->names[i], sizeof(returning->names[i]), "session %u", i);
	returning->sessions[i] =
		(struct fc_trace_session){.name = returning->names[i], .requests_start = 2 * i, .request_count = 2};
	returning->session_requests[2 * i] = i;
	returning->session_requests[2 * i + 1] = count + i;
	returning->requests[i] = (struct fc_trace_request){.input_tokens = history_tokens,
							   .output_tokens = 1,
							   .suffix_start = (uint64_t)i * history,
							   .suffix_count = history,
							   .session = i,
							   .line = i,
							   .previous = FC_TRACE_NONE,
							   .next = count + i};
	returning->requests[count + i] =
		(struct fc_trace_request){.input_tokens = history_tokens + new_tokens,
					  .output_tokens = 1,
					  .suffix_start = (uint64_t)count * history + (uint64_t)i * new_blocks,
					  .suffix_count = new_blocks,
					  .prefix_count = history,
					  .session = i,
					  .line = i,
					  .turn = 1,
					  .previous = i,
					  .next = FC_TRACE_NONE,
					  .source = 1};
}

int returning_init(struct returning *returning, uint32_t session_count, uint64_t history_tokens, uint64_t new_tokens)
{
	uint64_t id_count = session_count * ((history_tokens + new_tokens) / RETURNING_BLOCK_TOKENS);
	uint64_t *ids = calloc(id_count, sizeof(*ids));
	*returning = (struct returning){.requests = calloc(2ull * session_count, sizeof(*returning->requests)),
					.sessions = calloc(session_count, sizeof(*returning->sessions)),
					.names = calloc(session_count, sizeof(*returning->names)),
					.session_requests =
						calloc(2ull * session_count, sizeof(*returning->session_requests))};
	returning->trace = (struct fc_trace){.block_tokens = RETURNING_BLOCK_TOKENS,
					     .requests = returning->requests,
					     .request_count = 2 * session_count,
					     .sessions = returning->sessions,
					     .session_count = session_count,
					     .session_requests = returning->session_requests,
					     .line_count = session_count,
					     .source_count = 2,
					     .suffix_ids = ids,
					     .suffix_id_count = id_count,
					     .id_bound = id_count};
	if (ids == NULL || returning->requests == NULL || returning->sessions == NULL || returning->names == NULL ||
	    returning->session_requests == NULL) {
		returning_deinit(returning);
		return FC_ENOMEM;
	}
	for (uint64_t i = 0; i < id_count; i++)
		ids[i] = i;
	for (uint32_t i = 0; i < session_count; i++)
		add_session(returning, i, history_tokens, new_tokens);
	return FC_OK;
}

void returning_deinit(struct returning *returning)
{
	free(returning->trace.suffix_ids);
	free(returning->requests);
	free(returning->sessions);
	free(returning->names);
	free(returning->session_requests);
	*returning = (struct returning){0};
}

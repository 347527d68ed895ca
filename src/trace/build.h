/* Builds a trace from sessions, lines and requests in the order in which files give them. For the readers of this
 * folder.
 *
 * Calls: session, then for each of its lines: line, then request for each of its requests in the order of their times;
 * or, for formats whose requests stand for themselves with times of their own, timed requests only, in any order, all
 * with a session that timed_session has given, or none with one. Then finish, once. After an error of a call the
 * builder can only be freed, except for the refusal of a session (FC_EINVAL), which changes nothing. */
#ifndef FC_TRACE_BUILD_H
#define FC_TRACE_BUILD_H

#include "trace/trace.h"

struct fc_trace_build;

struct fc_build_request {
	uint64_t time_ns; /* from the session's own zero, or absolute */
	uint64_t input_tokens;
	uint64_t output_tokens;
	const uint64_t *ids; /* as the file has them */
	uint64_t id_count;
	bool has_session; /* of a timed request: it is one of `session` */
	uint32_t session;
};

FC_MUST_USE int fc_build_new(const struct fc_trace_opts *opts, struct fc_trace_build **build, struct fc_error *error);
void fc_build_free(struct fc_trace_build *build);

/* Starts a session. `source` says where it stands, for the error about a second one of the same name. */
FC_MUST_USE int fc_build_session(struct fc_trace_build *build, const char *name, const char *source,
				 uint32_t block_tokens, struct fc_error *error);
FC_MUST_USE int fc_build_line(struct fc_trace_build *build, enum fc_trace_kind kind, uint64_t tool_tokens,
			      uint64_t system_tokens, struct fc_error *error);
FC_MUST_USE int fc_build_request(struct fc_trace_build *build, const struct fc_build_request *request,
				 struct fc_error *error);
/* Whether timed requests with such blocks fit to what was built so far: FC_EINVAL, which changes nothing. */
FC_MUST_USE int fc_build_check_timed(struct fc_trace_build *build, uint32_t block_tokens, struct fc_error *error);
FC_MUST_USE int fc_build_timed_request(struct fc_trace_build *build, uint32_t block_tokens,
				       const struct fc_build_request *request, struct fc_error *error);

/* The number of the session of timed requests that has this name; a name that is new gets the next number. One
 * that no request of follows is no session of the trace. */
FC_MUST_USE int fc_build_timed_session(struct fc_trace_build *build, const char *name, uint32_t *session,
				       struct fc_error *error);
uint32_t fc_build_session_number(const struct fc_trace_build *build); /* the next */

/* So far. */
uint32_t fc_build_request_count(const struct fc_trace_build *build);

/* Arranges, orders and renumbers; hands the trace out. The builder can then only be freed. FC_EINVAL for two sessions
 * of one name. */
FC_MUST_USE int fc_build_finish(struct fc_trace_build *build, struct fc_trace **trace, struct fc_error *error);

#endif

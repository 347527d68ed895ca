/* What the readers of the formats share while one trace is loaded. */
#ifndef FC_TRACE_READER_H
#define FC_TRACE_READER_H

#include "trace/build.h"
#include "trace/idmap.h"
#include "trace/json.h"

/* How requests that come one by one name their sessions: all in one way. */
enum fc_reader_sessions {
	FC_READER_SESSIONS_UNKNOWN,
	FC_READER_SESSIONS_NONE,
	FC_READER_SESSIONS_BY_ID,
	FC_READER_SESSIONS_BY_CHAT,
};

struct fc_reader {
	const struct fc_trace_opts *opts;
	struct fc_trace_build *build;
	struct fc_json_ids ids; /* of the request that is being read */
	struct fc_cut cut;      /* of the record that is being read */
	uint64_t record_count;  /* seen so far */
	enum fc_reader_sessions sessions;
	bool has_first_time;
	uint64_t first_time_ns; /* of requests that have times of their own */
	struct fc_idmap chats;  /* the session of every chat of a Bailian trace */
	uint64_t skipped_count;
	uint64_t without_input_count;
	struct fc_error skipped_first;
};

FC_MUST_USE int fc_reader_check_opts(const struct fc_trace_opts *opts, struct fc_error *error);

/* Turns the refusal of a bad record into a skipped one when opts.is_lenient asks for it. Returns 0, or `result` as it
 * is. */
FC_MUST_USE int fc_reader_skip(struct fc_reader *reader, int result, const struct fc_error *error);

/* The ids of a request's full blocks into reader->ids; refuses more than an input of so many tokens can have, the
 * partial block at its end included. */
FC_MUST_USE int fc_reader_ids(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
			      const json_t *request, uint64_t input_tokens, uint32_t block_tokens,
			      struct fc_error *error);

/* Whether a request that was read and found right has no input. Then it is counted, and no request of the trace. */
bool fc_reader_is_without_input(struct fc_reader *reader, const struct fc_build_request *request);

/* Whether a time is at most FC_JSON_SPAN_NS_MAX from that of the first request, which it is if there was none. */
bool fc_reader_is_in_span(struct fc_reader *reader, uint64_t time_ns);

/* What requests that come one by one have in common: "timestamp", in units of `unit_ns` and at most three years from
 * that of the first, "input_length", "output_length" and "hash_ids". `made` borrows reader->ids. */
FC_MUST_USE int fc_reader_timed(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
				const json_t *request, uint64_t unit_ns, uint32_t block_tokens,
				struct fc_build_request *made, struct fc_error *error);

/* Refuses a request that names its session, at `key`, otherwise than the first did. */
FC_MUST_USE int fc_reader_check_session(struct fc_reader *reader, const struct fc_json_text *text,
					const struct fc_json_at *at, const char *key, enum fc_reader_sessions sessions,
					struct fc_error *error);

/* Readers of one record; `error` may not be NULL. */
FC_MUST_USE int fc_claude_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
			       const json_t *session, struct fc_error *error);
FC_MUST_USE int fc_mooncake_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
				 const json_t *request, struct fc_error *error);
FC_MUST_USE int fc_bailian_read(struct fc_reader *reader, const struct fc_json_text *text, const struct fc_json_at *at,
				const json_t *request, struct fc_error *error);

#endif

/* Request traces in memory: what replay, analysis and simulation read.
 *
 * A request names the blocks of its input by a list of 64-bit ids. Agent sessions repeat nearly the whole list from
 * request to request, so a trace keeps lists as differences: a request's list is the first `prefix_count` ids of the
 * list of the request before it on the same line, then its own suffix.
 *
 *   line      the requests of a session that continue one another: the main line, or one subagent
 *   previous  the request before it on the same line, or FC_TRACE_NONE
 *   list      ids(previous)[0, prefix_count) + suffix; prefix_count is the longest common prefix with the previous list
 *
 * Lists name full blocks only. An engine keeps a block once all its tokens are known, so a partial block at the end of
 * an input can neither be found nor be stored; where a file names it, its id is left out. A request without input has
 * nothing to find and nothing to compute: it is no request of the trace, but counted in `without_input_count`.
 *
 * Ids name content, but a block is named by its path: the same id behind different ids is another block (its key is
 * hashed over its parent's key), so an id may even occur twice in one list and then stands for two blocks.
 *
 * All ids are global: two requests of any sessions share a leading run of blocks exactly when their lists start with
 * the same ids. Files whose ids mean something inside a session only are renumbered on load, without collisions:
 *  - ids are numbered from 0 upwards, shared prompts first, then session by session (in the order of their names) by
 * first appearance; every id is below `id_bound`. The numbers depend only on the sessions that were loaded, not on the
 * seed;
 *  - what sessions share is put back from the tool and system tokens (unless opts.share_prompts is false). Block i of a
 * request counts as shared while its ids [0, i] are those of the first request of its line. If it lies wholly inside
 *    [0, tool_tokens), its id is a function of (tool_tokens, i); if inside [0, tool_tokens + system_tokens), of
 * (tool_tokens, system_tokens, i). A subagent states tool and system tokens of its own, so it shares with subagents of
 * its kind, not with the session that started it.
 *
 * Times: sessions are recorded each from its own zero, so opts.concurrent_sessions (C) and opts.seed arrange them.
 * Sessions, shuffled by the seed, are handed to C lanes; a lane runs one session after the other, and the next session
 * always goes to the lane that is free first. Lane k opens at k * (mean session duration) / C, so that sessions do not
 * start in step. From the opening of the last lane until sessions run out, exactly C are active. Requests are then
 * ordered by arrival; the first arrives at 0. Traces with absolute times (Mooncake, Bailian) keep them, less the first;
 * where they name sessions, each is one line, in the order of its times.
 *
 * A trace is constant once loaded; any thread may read it. */
#ifndef FC_TRACE_TRACE_H
#define FC_TRACE_TRACE_H

#include "base/error.h"

#include <stdio.h>

#define FC_TRACE_NONE UINT32_MAX

/* What a record is: a session, with times from its own zero; or a request, with a time of its own. */
enum fc_trace_format { FC_TRACE_OF_SESSIONS = 1, FC_TRACE_OF_REQUESTS = 2 };
enum fc_trace_kind { FC_TRACE_KIND_MAIN = 0, FC_TRACE_KIND_SUBAGENT = 1 };

struct fc_trace_request {
	uint64_t arrival_ns; /* since the start of the trace */
	uint64_t input_tokens;
	uint64_t output_tokens;
	uint64_t shared_tokens; /* leading tokens that other sessions have too, as far as the engine would know; 0: none
				 */
	uint64_t suffix_start;  /* in fc_trace.suffix_ids */
	uint32_t suffix_count;
	uint32_t prefix_count;
	uint32_t session;  /* FC_TRACE_NONE: the trace does not say, the store has to infer it */
	uint32_t line;     /* over the whole trace; FC_TRACE_NONE with an unknown session */
	uint32_t turn;     /* from 0, on its line */
	uint32_t previous; /* on its line; both are always later or earlier in the trace as their names say */
	uint32_t next;
	uint32_t source; /* which trace of a mix it is from (mix.h); 0 without one */
	enum fc_trace_kind kind;
};

struct fc_trace_session {
	char *name; /* unique in the trace */
	uint64_t start_ns;
	uint64_t duration_ns;    /* from its first to its last request */
	uint32_t requests_start; /* in fc_trace.session_requests */
	uint32_t request_count;  /* at least 1 */
};

struct fc_trace {
	enum fc_trace_format format;
	uint32_t block_tokens;
	struct fc_trace_request *requests; /* by arrival */
	uint32_t request_count;
	struct fc_trace_session *sessions; /* by name; none when the trace does not say */
	uint32_t session_count;
	uint32_t *session_requests; /* indices of the requests of session 0, then of session 1, ..., each by arrival */
	uint32_t line_count;
	uint32_t source_count; /* traces of a mix; 0: it is none */
	uint64_t *suffix_ids;
	uint64_t suffix_id_count;
	uint64_t id_bound;             /* ids are below this; 0: they are as the file has them, any 64 bits */
	uint64_t reference_count;      /* sum of the lengths of all lists */
	uint64_t skipped_count;        /* records left out because opts.is_lenient was set and they are bad */
	struct fc_error skipped_first; /* what was wrong with the first of them */
	uint64_t without_input_count;  /* requests left out because they have no input tokens */
	uint64_t ignored_file_count;   /* files of folders and archives whose names are not those of traces */
};

struct fc_trace_opts {
	bool is_lenient;        /* leave bad records out and count them; default: the first one ends the load */
	bool share_prompts;     /* default true; see above. false also sets shared_tokens to 0 */
	bool include_subagents; /* default true */
	uint64_t skip;          /* leave out the first so many records: sessions or requests, as the format has them */
	uint64_t limit;         /* read the first so many of the rest, with those that are then left out; 0: all */
	uint64_t seed;
	uint32_t concurrent_sessions; /* 1 to 10,000; default 8 */
	uint32_t block_tokens; /* of formats whose files do not state it; 0, the default: 512 of Mooncake's, 16 of
				  Bailian's */
};

void fc_trace_opts_init(struct fc_trace_opts *opts);

/* Loads one trace from all paths together. A path is a file, a folder (searched to a depth of 8, in the order of
 * names), or "-" for standard input; a file holds one of
 *  - Claude Code sessions: a JSON document, or one a line;
 *  - Mooncake or Bailian requests: one JSON object a line, or a JSON array of them;
 *  - a table of requests, with commas, whose first line names the columns of time, input and output tokens;
 *  - a tar of such files;
 * plain or compressed (gzip, zstd, xz, bzip2). What it is, is told from its content. In folders and tars, only files
 * whose names end in .json, .jsonl, .tar, .tgz, .gz, .zst, .xz or .bz2 are read, the rest are counted in
 * `ignored_file_count`.
 *
 * Every number is checked: ids are integers from 0 to 2^64 - 1, tokens from 0 to 2^63 - 1. hash_ids must not name more
 * blocks than the input has, the last partial one included (Claude Code lists the full blocks, Mooncake also the
 * partial one, which is left out); it may name fewer or none. Sessions must have one block size and names that differ.
 * A record that breaks a rule is an error that gives file:line: field, the value, and what is allowed; a damaged
 * archive is an error even with is_lenient.
 *
 * 0, or FC_EINVAL, FC_ESYSTEM, FC_ENOMEM, FC_ELIMIT (documented limits: 2^32 - 2 requests, sessions, lines, blocks of a
 * list and unique blocks of a session). On failure *trace is NULL. */
FC_MUST_USE int fc_trace_load(const char *const *paths, size_t path_count, const struct fc_trace_opts *opts,
			      struct fc_trace **trace, struct fc_error *error);
void fc_trace_free(struct fc_trace *trace);

/* How many records a trace was made of: what opts.skip and opts.limit count. */
static inline uint64_t fc_trace_unit_count(const struct fc_trace *trace)
{
	return trace->format == FC_TRACE_OF_SESSIONS ? trace->session_count : trace->request_count;
}

/* Says what was left out, a line each: "damaged records left out: 1; the first: ..." and "requests without input left
 * out: 2". Returns whether there was anything. */
bool fc_trace_print_left_out(const struct fc_trace *trace, FILE *file);

/* How many sessions, for people: "426 sessions", "1 session", "sessions not named". Returns `text`. */
#define FC_TRACE_SESSIONS_BYTES 32
const char *fc_trace_sessions_text(const struct fc_trace *trace, char text[FC_TRACE_SESSIONS_BYTES]);

static inline uint64_t fc_trace_id_count(const struct fc_trace_request *request)
{
	return (uint64_t)request->prefix_count + request->suffix_count;
}

/* Writes the list of one request into `ids`, which has room for fc_trace_id_count() ids. Time grows with the number of
 * earlier requests that the list is spread over; who walks a trace takes fc_trace_lists. */
void fc_trace_request_ids(const struct fc_trace *trace, uint32_t request, uint64_t *ids);

/* Leading blocks that are stored once the request has ended.
 *
 * With store_replies: an engine that stores its reply has the tokens [0, input + output), so floor((input + output) /
 * block_tokens) blocks, as far as the trace names them: the list of the next request of the line does, if it starts
 * with this request's whole list. The answer is then at least the own list and at most the next one; the ids are those
 * of the next list. Without store_replies, or where no such next request is known: the request's own list. */
uint64_t fc_trace_stored_count(const struct fc_trace *trace, uint32_t request, bool store_replies);

/* A walk over a trace that keeps the current list of every line, so that each step costs only what the list changed by.
 * Requests may be taken in any order, but only the order of each line is fast. A list is freed after its line's last
 * request. */
struct fc_trace_lists;

FC_MUST_USE int fc_trace_lists_new(const struct fc_trace *trace, struct fc_trace_lists **lists);
void fc_trace_lists_free(struct fc_trace_lists *lists);

/* The list of a request, valid until the next call. Asking again for the same request is free. 0 or FC_ENOMEM. */
FC_MUST_USE int fc_trace_lists_get(struct fc_trace_lists *lists, uint32_t request, const uint64_t **ids,
				   uint64_t *id_count);

#endif

/* What a request trace is made of, computed from struct fc_trace alone: no time, no files, one thread, and the same
 * numbers on every machine.
 *
 * Words and rules:
 *
 *   reference   one block of one request's list. A request's list covers its input only.
 *   store       a cache without limit, filled by every request with its list, and, with opts.store_replies, with the
 *               blocks of its reply as far as the next request of its line names them (fc_trace_stored_count()).
 *   hit         a reference to a block that is stored together with all blocks before it in the list. The best possible
 *               hit rate is the store's. A request's path counts as stored from its arrival on.
 *   new tokens  of a request: input tokens less those of hit blocks.
 *   sessions    as the trace gives them, else inferred. A request goes on with the session of the deepest earlier
 *               request whose list it begins with, unless another request has already parted from that list there or
 *               deeper: what lies above a fork is shared. A request that goes on with none begins a session. So the
 *               first two conversations on a shared prompt are taken for two only if one of them does not end where
 *               the prompt does, which is nearly always so.
 *   distances   of a hit, since the block was last touched: in requests, in time between arrivals, and in distinct
 *               blocks, which is the LRU stack distance (stack.h).
 *   size        of a session: distinct blocks of the lists of all its requests.
 *   shared      a block that lists of two sessions or more hold.
 *   tier        LRU of opts.dram_blocks in front of a store without limit on SSD: it reads from SSD every hit whose
 *               stack distance is larger.
 *   window      working set of a span of time: distinct blocks referenced or stored in it, averaged over all places of
 *               the span within the trace (Denning). */
#ifndef FC_ANALYZE_ANALYZE_H
#define FC_ANALYZE_ANALYZE_H

#include "analyze/curve.h"
#include "base/histogram.h"
#include "trace/trace.h"

struct fc_analyze_opts {
	uint64_t dram_blocks;
	uint64_t agent_context_tokens; /* see enum fc_traffic */
	bool store_replies;
};

/* Numbers of a kind. All 0 when there are none (count 0): of no meaning then. Percentiles are nearest-rank; the 0th is
 * the least number. */
struct fc_spread {
	uint64_t count;
	double mean;
	uint64_t p50, p90, p99, max;
	uint64_t percentiles[101]; /* for plots */
};

/* What a session is: `one shot` has one request; of the others, an agent's largest input is above the agent threshold.
 */
enum fc_traffic { FC_TRAFFIC_ONE_SHOT, FC_TRAFFIC_CHAT, FC_TRAFFIC_AGENT, FC_TRAFFIC_COUNT };

#define FC_WINDOW_COUNT 3
extern const uint64_t fc_analyze_windows_ns[FC_WINDOW_COUNT]; /* a minute, ten, an hour */

struct fc_analysis {
	uint64_t request_count, session_count;
	bool are_sessions_inferred;
	uint64_t span_ns; /* from the first to the last arrival */
	uint32_t block_tokens;
	uint64_t dram_blocks;
	uint64_t agent_context_tokens;

	struct fc_spread input_tokens, output_tokens, new_tokens, history_tokens; /* by request; history: hit tokens */
	struct fc_spread session_requests, session_blocks;
	uint64_t traffic_sessions[FC_TRAFFIC_COUNT], traffic_requests[FC_TRAFFIC_COUNT];
	uint64_t active_sessions_max; /* between first and last request */
	double active_sessions_mean;  /* at the arrivals of requests; 0 when there are none */
	uint64_t minute_requests_max; /* minutes are counted from the first arrival */

	uint64_t reference_count, unique_count, once_count;
	uint64_t list_hits;          /* without stored replies */
	uint64_t hits;               /* by the rule of opts.store_replies */
	uint64_t other_session_hits; /* last touched by another session */
	uint64_t shared_references, shared_blocks;

	struct fc_spread reuse_requests;
	struct fc_spread reuse_ns; /* percentiles to within 0.8 % */
	struct fc_spread reuse_blocks;
	double window_blocks[FC_WINDOW_COUNT]; /* of no meaning if the trace is shorter */

	struct fc_curve curve;

	uint64_t tier_blocks;            /* read from SSD */
	struct fc_spread request_blocks; /* of those, by request */
	uint64_t minute_blocks_max;      /* of those, in the minute with the most */
};

/* FC_ENOMEM; FC_ELIMIT when the trace has more than 2^32 - 2 runs of blocks. `analysis` is to be freed after success.
 */
FC_MUST_USE int fc_analyze(const struct fc_trace *trace, const struct fc_analyze_opts *opts,
			   struct fc_analysis *analysis);
void fc_analysis_deinit(struct fc_analysis *analysis);

#endif

/* The simulated engine: requests of a trace through the workers of a node, on virtual time.
 *
 * A worker computes in steps, as engines with continuous batching and chunked prefill do: a step takes up to
 * chunk_tokens of new tokens, of the requests that may start in the order of their arrival, and one token of every
 * request that is being replied to. Its time is
 *
 *     step_ns + sum of prefill_ns(new tokens, context behind them) + decode_ns(requests, their KV)
 *
 * (hardware.h has the two functions). The first token of a request is there at the end of the step that ends its
 * prefill. With overlapping layers, a step that begins before the last layer of a history is in place ends no earlier
 * than one layer's share of the step after it is.
 *
 * A request goes to the worker with the fewest requests that has room for its KV; where none has, it waits, and those
 * behind it with it. HBM holds the KV of requests under way and nothing else: what it could keep between requests is
 * the same for all policies, and left out.
 *
 * docs/simulation.md has the model as a whole. */
#ifndef FC_REPLAY_ENGINE_H
#define FC_REPLAY_ENGINE_H

#include "replay/arena_map.h"
#include "replay/outcome.h"
#include "replay/paths.h"
#include "trace/trace.h"

struct fc_engine_opts {
	const struct fc_trace *trace;
	const struct fc_path_table *paths; /* of the trace; NULL: made on the way */
	const struct fc_geometry *geometry;
	const struct fc_hardware *hardware;
	const struct fc_config *config; /* the rate, the seed, and what concerns the store */
	const struct fc_policy_type *policy;
	const char *settings; /* "NAME.KEY=VALUE,..."; NULL: none */
	uint64_t memory_bytes, ssd_bytes;
	struct fc_arena_map *maps; /* FC_MAP_MOMENTS that are to be taken; NULL: none */
	double rate_per_s; /* counts if config->speed is 0. INFINITY: --streams + 2 requests a worker are always under
			      way, as in a live replay */
};

/* FC_ENOMEM, FC_ELIMIT (a request that no worker has room for), or the policy's errors. `outcome` is zeroed first. */
FC_MUST_USE int fc_engine_run(const struct fc_engine_opts *opts, struct fc_outcome *outcome, struct fc_error *error);

#endif

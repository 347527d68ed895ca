/* The modelled engine: takes requests from a trace through a backend, one turn after another, as an LLM server would.
 *
 *   arrives -> room in the paged KV -> load (FC-MAS) -> ready -> taken, when the engine is free, in order of arrival
 *           -> what was not delivered is computed (one prefill at a time) -> first token -> saved -> done
 *
 * A session's requests follow one another: the next arrives when the one before it is done, or later. With a rate, the
 * k-th request of the trace arrives at a random time whose mean is k / rate, or when its session is free; with a speed,
 * at its own time in the trace divided by that. Without either, `active_max` turns are always under way, the next ones
 * of the trace whose sessions are free. */
#ifndef FC_REPLAY_DRIVER_H
#define FC_REPLAY_DRIVER_H

#include "replay/arrivals.h"
#include "replay/backend.h"
#include "replay/result.h"
#include "trace/trace.h"

struct fc_driver_opts {
	const struct fc_trace *trace;
	const struct fc_geometry *geometry;
	const char *model; /* what keys depend on besides the ids */
	struct fc_pace pace;
	double prefill_per_s; /* tokens; INFINITY: in no time */
	bool is_storing_replies;
	uint32_t active_max;
	uint64_t seed;
	void (*progress_cb)(void *context, uint64_t done); /* may be NULL */
	void *context;
};

/* Runs the trace, or what of it an interrupt leaves. Failures of single requests are counted in the result; an error is
 * what ends the replay: FC_ENOMEM, FC_ELIMIT. */
FC_MUST_USE int fc_driver_run(const struct fc_driver_opts *opts, struct fc_backend *backend,
			      struct fc_replay_result *result, struct fc_error *error);

/* Blocks of the largest turn, with its reply if replies are stored. */
uint64_t fc_driver_turn_blocks_max(const struct fc_trace *trace, bool is_storing_replies);

#endif

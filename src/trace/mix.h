/* Several traces as one, as a node sees them that serves several kinds of traffic.
 *
 * Each next request comes from a trace that is drawn by the given shares, and is that trace's next one; so shares are
 * of requests, and every trace keeps its own order, sessions and lines. The mix ends when a trace that is drawn has no
 * more: all traces are then in it in their shares from the first request to the last, and what is left of the others is
 * left out.
 *
 * Traces share no content. Where their blocks differ in size, larger ones are cut into as many of the smallest as they
 * hold (the last one of a list into no more full ones than its input has), so sizes must be multiples of the smallest.
 * Sessions are named "1:NAME" after the trace's place. Requests are evenly spaced in time at the pace that the first
 * trace had; who replays at a rate counts them only. */
#ifndef FC_TRACE_MIX_H
#define FC_TRACE_MIX_H

#include "trace/trace.h"

#define FC_MIX_MAX 4

struct fc_mix_opts {
	const struct fc_trace *traces[FC_MIX_MAX];
	double shares[FC_MIX_MAX]; /* above 0; of their sum */
	uint32_t count;
	uint64_t seed;
};

/* FC_EINVAL with what is allowed, FC_ENOMEM, FC_ELIMIT. */
FC_MUST_USE int fc_trace_mix(const struct fc_mix_opts *opts, struct fc_trace **mixed, struct fc_error *error);

#endif

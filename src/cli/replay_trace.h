/* What both kinds of `flatcake replay` do first: read the trace, and describe the model in blocks of the trace's size.
 */
#ifndef FC_CLI_REPLAY_TRACE_H
#define FC_CLI_REPLAY_TRACE_H

#include "config/config.h"
#include "trace/trace.h"

FC_MUST_USE int fc_replay_load_trace(const struct fc_config *config, struct fc_trace **trace, struct fc_error *error);

/* Blocks are the trace's: its ids name so many tokens each, and no others can be made of them. */
FC_MUST_USE int fc_replay_make_options(const struct fc_config *config, const struct fc_trace *trace,
				       struct fc_geometry *geometry, struct fc_store_opts *opts,
				       struct fc_error *error);

#endif

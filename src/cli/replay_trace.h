/* What both kinds of `flatcake replay`, and `flatcake tune`, do first: read the trace, and describe the model in blocks
 * of the trace's size. */
#ifndef FC_CLI_REPLAY_TRACE_H
#define FC_CLI_REPLAY_TRACE_H

#include "config/config.h"
#include "replay/hardware.h"
#include "trace/trace.h"

/* The profile's model and budgets where none were given, and the given prefill rate in place of the profile's. */
void fc_replay_use_profile(struct fc_config *config, struct fc_hardware *hardware);

FC_MUST_USE int fc_replay_load_trace(const struct fc_config *config, struct fc_trace **trace, struct fc_error *error);

/* With --mix: one trace of all arguments, each in its share. */
FC_MUST_USE int fc_replay_load_mix(const struct fc_config *config, struct fc_trace **trace, struct fc_error *error);

/* Blocks are the trace's: its ids name so many tokens each, and no others can be made of them. */
FC_MUST_USE int fc_replay_make_options(const struct fc_config *config, const struct fc_trace *trace,
				       struct fc_geometry *geometry, struct fc_store_opts *opts,
				       struct fc_error *error);

#endif

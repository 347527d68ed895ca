/* The model behind generated traces (generate.h): one session at a time, as a Claude Code record. */
#ifndef FC_TRACE_MODEL_H
#define FC_TRACE_MODEL_H

#include "trace/generate.h"

#include <jansson.h>

FC_MUST_USE int fc_model_check(const struct fc_generate_opts *opts, struct fc_error *error);

/* The index-th session; the caller releases it. NULL without memory. The options have been checked. */
json_t *fc_model_session(const struct fc_generate_opts *opts, uint32_t index);

#endif

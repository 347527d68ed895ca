#include "cli/replay_trace.h"

#include "base/check.h"

void fc_replay_use_profile(struct fc_config *config, struct fc_hardware *hardware)
{
	if (!fc_config_is_given(config, "model"))
		config->model = hardware->model;
	if (!fc_config_is_given(config, "memory"))
		config->memory_bytes = hardware->memory_bytes;
	if (!fc_config_is_given(config, "ssd"))
		config->ssd_bytes = hardware->ssd_bytes;
	if (fc_config_is_given(config, "prefill"))
		hardware->prefill_tokens_per_s = config->prefill_per_s;
}

int fc_replay_load_trace(const struct fc_config *config, struct fc_trace **trace, struct fc_error *error)
{
	struct fc_trace_opts opts;
	fc_trace_opts_init(&opts);
	opts.is_lenient = config->is_lenient;
	opts.share_prompts = config->is_sharing_prompts;
	opts.include_subagents = config->has_subagents;
	opts.skip = config->skip_count;
	opts.limit = config->session_count;
	opts.seed = config->seed;
	opts.concurrent_sessions = (uint32_t)fc_min_u64(config->concurrency, UINT32_MAX);
	return fc_trace_load(config->arguments, (size_t)config->argument_count, &opts, trace, error);
}

int fc_replay_make_options(const struct fc_config *from, const struct fc_trace *trace, struct fc_geometry *geometry,
			   struct fc_store_opts *opts, struct fc_error *error)
{
	struct fc_config config = *from;
	uint64_t asked = config.block_tokens, traced = trace->block_tokens;
	if (asked != 0 && asked != traced)
		return fc_error_set(error, FC_EINVAL,
				    "--block-tokens: %llu does not fit this trace, whose blocks have %llu tokens",
				    (unsigned long long)asked, (unsigned long long)traced);
	config.block_tokens = traced;
	return fc_config_store_opts(&config, geometry, opts, error);
}

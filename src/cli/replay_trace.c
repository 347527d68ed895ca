#include "cli/replay_trace.h"

#include "base/check.h"
#include "config/option.h"
#include "trace/mix.h"

#include <string.h>

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
	opts.block_tokens = (uint32_t)config->block_tokens;
	int code = fc_trace_load(config->arguments, (size_t)config->argument_count, &opts, trace, error);
	if (code != FC_OK || config->block_tokens == 0 || config->block_tokens == (*trace)->block_tokens)
		return code;
	code = fc_error_set(error, FC_EINVAL,
			    "--block-tokens: %llu does not fit this trace, which says that its blocks have %u tokens",
			    (unsigned long long)config->block_tokens, (*trace)->block_tokens);
	fc_trace_free(*trace);
	*trace = NULL;
	return code;
}

static int read_share(const char *text, double *share, struct fc_error *error)
{
	static const struct fc_option row = {
		.name = "mix", .type = FC_OPTION_RATIO, .ratio_min = 0.001, .ratio_max = 1000};
	return fc_option_set_in(&row, text, share, "--mix", error);
}

/* As many shares as there are arguments. */
static int read_mix(const struct fc_config *config, struct fc_mix_opts *mix, struct fc_error *error)
{
	char copy[256];
	if (strlen(config->mix) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--mix: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, config->mix);
	uint32_t count = 0;
	int code = FC_OK;
	for (char *rest = copy, *word; code == FC_OK && (word = strsep(&rest, ",")) != NULL; count++)
		if (count < FC_MIX_MAX)
			code = read_share(word, &mix->shares[count], error);
	if (code == FC_OK && (count > FC_MIX_MAX || (int)count != config->argument_count))
		return fc_error_set(error, FC_EINVAL, "--mix: %u shares for %d traces; one each, at most %d", count,
				    config->argument_count, FC_MIX_MAX);
	mix->count = count;
	return code;
}

int fc_replay_load_mix(const struct fc_config *config, struct fc_trace **trace, struct fc_error *error)
{
	struct fc_mix_opts mix = {.seed = config->seed};
	struct fc_trace *traces[FC_MIX_MAX] = {NULL};
	int code = read_mix(config, &mix, error);
	for (uint32_t i = 0; i < mix.count && code == FC_OK; i++) {
		struct fc_config one = *config;
		one.arguments = config->arguments + i;
		one.argument_count = 1;
		code = fc_replay_load_trace(&one, &traces[i], error);
		mix.traces[i] = traces[i];
	}
	if (code == FC_OK)
		code = fc_trace_mix(&mix, trace, error);
	for (uint32_t i = 0; i < FC_MIX_MAX; i++)
		fc_trace_free(traces[i]);
	return code;
}

int fc_replay_make_options(const struct fc_config *from, const struct fc_trace *trace, struct fc_geometry *geometry,
			   struct fc_store_opts *opts, struct fc_error *error)
{
	struct fc_config config = *from;
	config.block_tokens = trace->block_tokens;
	return fc_config_store_opts(&config, geometry, opts, error);
}

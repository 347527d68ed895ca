/* `flatcake gen`: agent sessions of the recorded shape, from a seed, so that nothing needs recorded ones. */
#include "cli/commands.h"
#include "trace/generate.h"

#include <stdio.h>

#define MEDIAN_TURNS 45.0 /* of the recorded sessions; what --turns is relative to */

int fc_command_gen(const struct fc_config *config, struct fc_error *error)
{
	struct fc_generate_opts opts;
	fc_generate_opts_init(&opts);
	if (config->output_path == NULL)
		return fc_error_set(error, FC_EINVAL,
				    "gen: --output is missing; allowed: a folder, a file whose name ends in .tar, "
				    ".tar.gz, .tar.zst or .jsonl, or - for standard output");
	opts.seed = config->seed;
	opts.session_count = (uint32_t)config->session_count;
	opts.turn_scale = (double)config->turn_count / MEDIAN_TURNS;
	opts.token_scale = config->length_ratio;
	return fc_generate_write(&opts, config->output_path, config->is_replacing, error);
}

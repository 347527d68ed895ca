/* From the program's settings to what a store is opened with. */
#include "config/config.h"

int fc_config_store_opts(const struct fc_config *config, struct fc_geometry *geometry, struct fc_store_opts *opts,
			 struct fc_error *error)
{
	int code = fc_geometry_preset(geometry, config->model, (uint32_t)config->block_tokens, (uint32_t)config->scale,
				      error);
	if (code != FC_OK)
		return fc_error_wrap(error, code, "--model");
	fc_store_opts_init(opts);
	opts->geometry = geometry;
	opts->memory_bytes = config->memory_bytes;
	opts->memory_path = config->memory_path;
	opts->ssd_bytes = config->ssd_bytes;
	opts->ssd_path = config->ssd_path;
	opts->chunk_bytes = config->chunk_bytes;
	opts->agent_context_tokens = config->agent_context_tokens;
	opts->long_reply_tokens = config->long_reply_tokens;
	opts->high_watermark = config->high_watermark;
	opts->low_watermark = config->low_watermark;
	opts->reclaim_order = config->reclaim_order;
	opts->memory_reclaim = config->memory_reclaim;
	opts->consolidate_ratio = config->consolidate_ratio;
	opts->streams = (uint32_t)config->streams;
	opts->window_bytes = config->window_bytes;
	opts->gap_bytes = config->gap_bytes;
	opts->transfer_bytes = config->transfer_bytes;
	opts->queue_depth = (uint32_t)config->queue_depth;
	opts->io_timeout_ns = config->io_timeout_ns;
	return FC_OK;
}

/* The defaults of a store. */
#include "flatcake.h"

#include <string.h>

void fc_store_opts_init(struct fc_store_opts *opts)
{
	memset(opts, 0, sizeof(*opts)); /* padding too, so that options can be compared as bytes */
	opts->size = sizeof(*opts);
	opts->memory_bytes = 1ull << 30;
	opts->ssd_bytes = 8ull << 30;
	opts->agent_context_tokens = 32768;
	opts->long_reply_tokens = 1024;
	opts->high_watermark = 0.95;
	opts->low_watermark = 0.85;
	opts->reclaim_order = FC_RECLAIM_LEAST_RECENTLY_USED;
	opts->memory_reclaim = FC_MEMORY_SPILL;
	opts->consolidate_ratio = 1.0;
	opts->streams = 4;
	opts->window_bytes = 64ull << 20;
	opts->gap_bytes = 64ull << 10;
	opts->queue_depth = 64;
	opts->requests_max = 1024;
	opts->io_timeout_ns = 30ull * 1000 * 1000 * 1000;
	opts->reconnect_timeout_ns = 2ull * 1000 * 1000 * 1000;
}

#include "store/core_opts.h"

#include "host/random_bits.h"

#define SAVE_STREAMS 2
#define TRANSFER_BYTES_DEFAULT (1u << 20) /* without an SSD arena */

static uint64_t transfer_bytes(const struct fc_store_opts *store, const struct fc_media *ssd)
{
	if (store->transfer_bytes != 0)
		return store->transfer_bytes;
	return ssd == NULL ? TRANSFER_BYTES_DEFAULT : ssd->transfer_bytes_max;
}

int fc_store_core_opts(struct fc_core_opts *opts, const struct fc_store_opts *store,
		       struct fc_media *const media[FC_MEDIUM_COUNT], const struct fc_alloc *alloc,
		       struct fc_error *error)
{
	*opts = (struct fc_core_opts){
		.catalog =
			{
				.geometry = store->geometry,
				.alloc = alloc,
				.node = store->node,
				.media = {media[FC_MEMORY], media[FC_SSD]},
				.chunk_bytes = store->chunk_bytes,
				.agent_context_tokens = store->agent_context_tokens,
				.long_reply_tokens = store->long_reply_tokens,
				.high_watermark = store->high_watermark,
				.low_watermark = store->low_watermark,
				.consolidate_ratio = store->consolidate_ratio,
				.reclaim_order = store->reclaim_order,
				.memory_reclaim = store->memory_reclaim,
			},
		.clock = fc_clock_real(),
		.load_streams = store->streams,
		.save_streams = SAVE_STREAMS,
		.window_bytes = store->window_bytes,
		.gap_bytes = store->gap_bytes,
		.transfer_bytes = transfer_bytes(store, media[FC_SSD]),
		.requests_max = store->requests_max,
		.io_timeout_ns = store->io_timeout_ns,
	};
	int code = fc_random_bits(&opts->catalog.uuid, sizeof(opts->catalog.uuid), error);
	if (code == FC_OK)
		code = fc_random_bits(&opts->catalog.hash_seed, sizeof(opts->catalog.hash_seed), error);
	return code;
}

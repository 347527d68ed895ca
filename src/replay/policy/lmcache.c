/* LMCache: chunks of 256 tokens, DRAM first, every chunk also on disk; only full chunks and a contiguous prefix count;
 * the whole prefix is in DRAM before the computation begins, and on the device before its first layer does.
 *
 *   lmcache       a file a chunk, read through the page cache by four threads a worker
 *   lmcache-raw   fixed slots on a raw device, O_DIRECT, 128 KiB at a time. Depth 1 gives the 1.2 GB/s that were
 * measured, depth 5 about the 5.3 GB/s of its parallel mode; that is the default here
 *
 * (facts of August 2026) */
#include "replay/policy/tiered.h"

#define FIELD(member) offsetof(struct fc_tiered_opts, member)

static const struct fc_tiered_opts file_defaults = {
	.object_tokens = 256,
	.has_disk = true,
	.readers = 4,
	.is_through_files = true,
	.piece_bytes = 128 << 10,
	.disk_high_percent = 100,
};

static const struct fc_tiered_opts raw_defaults = {
	.object_tokens = 256,
	.has_disk = true,
	.readers = 5,
	.piece_bytes = 128 << 10,
	.disk_high_percent = 100,
};

static const struct fc_option settings[] = {
	{.name = "chunk_tokens",
	 .type = FC_OPTION_COUNT,
	 .field_offset = FIELD(object_tokens),
	 .min = 1,
	 .max = 1 << 20},
	{.name = "readers", .type = FC_OPTION_COUNT, .field_offset = FIELD(readers), .min = 1, .max = 64},
	{.name = "overlap", .type = FC_OPTION_BOOL, .field_offset = FIELD(is_overlapping)},
};

const struct fc_policy_type fc_policy_lmcache = {
	.name = "lmcache",
	.summary = "LMCache: DRAM, and a file for each chunk of 256 tokens",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(file_defaults),
	.defaults = &file_defaults,
	.work = 10,
	.open = fc_tiered_open,
};

const struct fc_policy_type fc_policy_lmcache_raw = {
	.name = "lmcache-raw",
	.summary = "LMCache: DRAM, and fixed slots on a raw device",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(raw_defaults),
	.defaults = &raw_defaults,
	.work = 10,
	.open = fc_tiered_open,
};

/* A file for each block (SGLang's HiCacheFile, or a plain connector): DRAM as in HiCache, and behind it one file after
 * the other, through the page cache. Users report that such a hit may take longer than computing it. (facts of August
 * 2026) */
#include "replay/policy/tiered.h"

#define FIELD(member) offsetof(struct fc_tiered_opts, member)

static const struct fc_tiered_opts defaults = {
	.has_disk = true,
	.readers = 1,
	.is_overlapping = true,
	.is_through_files = true,
	.piece_bytes = 128 << 10,
	.disk_high_percent = 100,
};

static const struct fc_option settings[] = {
	{.name = "readers", .type = FC_OPTION_COUNT, .field_offset = FIELD(readers), .min = 1, .max = 64},
	{.name = "overlap", .type = FC_OPTION_BOOL, .field_offset = FIELD(is_overlapping)},
};

const struct fc_policy_type fc_policy_file_per_block = {
	.name = "file-per-block",
	.summary = "DRAM, and a file for each block, read one by one",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(defaults),
	.defaults = &defaults,
	.work = 15,
	.open = fc_tiered_open,
};

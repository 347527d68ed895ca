/* SGLang HiCache without a storage back end: GPU, then host DRAM, least recently used over the radix tree. What falls
 * out of DRAM is computed again. Copies to the device run layer by layer beside the prefill. (facts of August 2026) */
#include "replay/policy/tiered.h"

static const struct fc_tiered_opts defaults = {.is_overlapping = true};

static const struct fc_option settings[] = {
	{.name = "overlap", .type = FC_OPTION_BOOL, .field_offset = offsetof(struct fc_tiered_opts, is_overlapping)},
};

const struct fc_policy_type fc_policy_hicache = {
	.name = "hicache",
	.summary = "SGLang HiCache: DRAM only",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(defaults),
	.defaults = &defaults,
	.has_no_ssd = true,
	.work = 6,
	.open = fc_tiered_open,
};

/* DRAM that holds everything, copied to the device beside the prefill: the bound above which nothing can rise. */
#include "replay/policy/tiered.h"

static const struct fc_tiered_opts defaults = {.is_overlapping = true, .is_endless = true};

const struct fc_policy_type fc_policy_infinite_dram = {
	.name = "infinite-dram",
	.summary = "DRAM without limit: the bound",
	.settings_bytes = sizeof(defaults),
	.defaults = &defaults,
	.has_no_ssd = true,
	.work = 7,
	.open = fc_tiered_open,
};

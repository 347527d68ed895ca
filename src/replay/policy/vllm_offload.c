/* vLLM's own offloading: blocks in DRAM, least recently used first out, with its optional file tier behind (`files` off
 * leaves DRAM alone). Blocks are loaded before the step, so nothing overlaps. How many files are read at once is not in
 * the facts; 16 a worker is generous. (facts of August 2026) */
#include "replay/policy/tiered.h"

#define FIELD(member) offsetof(struct fc_tiered_opts, member)

static const struct fc_tiered_opts defaults = {
	.has_disk = true,
	.readers = 16,
	.is_through_files = true,
	.piece_bytes = 128 << 10,
	.disk_high_percent = 100,
};

static const struct fc_option settings[] = {
	{.name = "files", .type = FC_OPTION_BOOL, .field_offset = FIELD(has_disk)},
	{.name = "file_tokens", .type = FC_OPTION_COUNT, .field_offset = FIELD(object_tokens), .max = 1 << 20},
	{.name = "readers", .type = FC_OPTION_COUNT, .field_offset = FIELD(readers), .min = 1, .max = 64},
};

const struct fc_policy_type fc_policy_vllm_offload = {
	.name = "vllm-offload",
	.summary = "vLLM's offloading connector: DRAM, and its file tier",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(defaults),
	.defaults = &defaults,
	.work = 15,
	.open = fc_tiered_open,
};

#include "store/opts.h"

#include "base/check.h"
#include "core/core.h"
#include "format/arena.h"

#include <string.h>

#define ALIGN_MIN 64u                 /* of any medium's I/O, as the core has it */
#define ALIGN_MAX FC_TABLE_PAGE_BYTES /* the same: what windows are good for on every disk */

void fc_store_opts_init(struct fc_store_opts *opts)
{
	if (opts == NULL)
		return;
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

#define FIELD(name) #name, offsetof(struct fc_store_opts, name)

_Static_assert(sizeof(enum fc_reclaim_order) == sizeof(uint32_t) && sizeof(enum fc_memory_reclaim) == sizeof(uint32_t),
	       "choices are read as numbers");

static const struct fc_opts_range ranges[] = {
	{FIELD(node), FC_OPTS_U32, .max = (1u << FC_GVA_NODE_BITS) - 1},
	{FIELD(memory_bytes), FC_OPTS_U64, .max = FC_ARENA_BYTES_MAX},
	{FIELD(ssd_bytes), FC_OPTS_U64, .max = FC_ARENA_BYTES_MAX},
	{FIELD(chunk_bytes), FC_OPTS_U64, .max = FC_CHUNK_BYTES_MAX},
	{FIELD(agent_context_tokens), FC_OPTS_U64, .max = FC_CONTEXT_TOKENS_MAX},
	{FIELD(long_reply_tokens), FC_OPTS_U64, .max = FC_CONTEXT_TOKENS_MAX},
	{FIELD(high_watermark), FC_OPTS_RATIO, .ratio_min = FC_WATERMARK_MIN, .ratio_max = 1},
	{FIELD(low_watermark), FC_OPTS_RATIO, .ratio_min = FC_WATERMARK_MIN, .ratio_max = 1},
	{FIELD(reclaim_order), FC_OPTS_U32, .max = FC_RECLAIM_OLDEST_CREATED},
	{FIELD(memory_reclaim), FC_OPTS_U32, .max = FC_MEMORY_SPILL},
	{FIELD(consolidate_ratio), FC_OPTS_RATIO, .ratio_max = FC_CONSOLIDATE_RATIO_MAX},
	{FIELD(streams), FC_OPTS_U32, .min = 1, .max = FC_STREAMS_MAX},
	{FIELD(window_bytes), FC_OPTS_U64, .min = FC_WINDOW_BYTES_MIN, .max = FC_WINDOW_BYTES_MAX},
	{FIELD(gap_bytes), FC_OPTS_U64, .max = FC_GAP_BYTES_MAX},
	{FIELD(transfer_bytes), FC_OPTS_U64, .max = FC_TRANSFER_BYTES_MAX},
	{FIELD(queue_depth), FC_OPTS_U32, .min = 1, .max = FC_QUEUE_DEPTH_MAX},
	{FIELD(requests_max), FC_OPTS_U32, .min = 1, .max = FC_REQUESTS_MAX},
	{FIELD(io_timeout_ns), FC_OPTS_U64, .min = FC_IO_TIMEOUT_NS_MIN, .max = FC_IO_TIMEOUT_NS_MAX},
	{FIELD(reconnect_timeout_ns), FC_OPTS_U64, .max = UINT64_MAX},
};

const struct fc_opts_range *fc_store_opts_range(size_t index)
{
	return index < fc_array_len(ranges) ? &ranges[index] : NULL;
}

static int check_range(const struct fc_opts_range *range, const struct fc_store_opts *opts, struct fc_error *error)
{
	const char *field = (const char *)opts + range->offset;
	uint64_t value = 0;
	uint32_t half;
	double ratio;
	if (range->kind == FC_OPTS_RATIO) {
		memcpy(&ratio, field, sizeof(ratio));
		if (ratio >= range->ratio_min && ratio <= range->ratio_max) /* false for what is no number */
			return FC_OK;
		return fc_error_set(error, FC_EINVAL, "%s %g; %g to %g are allowed", range->name, ratio,
				    range->ratio_min, range->ratio_max);
	}
	if (range->kind == FC_OPTS_U32) {
		memcpy(&half, field, sizeof(half));
		value = half;
	} else {
		memcpy(&value, field, sizeof(value));
	}
	if (value >= range->min && value <= range->max)
		return FC_OK;
	return fc_error_set(error, FC_EINVAL, "%s %llu; %llu to %llu are allowed", range->name,
			    (unsigned long long)value, (unsigned long long)range->min, (unsigned long long)range->max);
}

static int check_path(const char *name, const char *path, struct fc_error *error)
{
	return path == NULL || path[0] != '\0' ? FC_OK : fc_error_set(error, FC_EINVAL, "%s is empty", name);
}

/* Before a file of that size is made. Whether it fits an arena that is there already is seen when that is opened. */
static int check_arena_bytes(const char *name, uint64_t bytes, const struct fc_store_opts *opts, struct fc_error *error)
{
	struct fc_superblock planned;
	int code = bytes == 0
			   ? FC_OK
			   : fc_superblock_plan(&planned, bytes, opts->chunk_bytes, ALIGN_MIN, opts->geometry, error);
	return code == FC_OK ? code : fc_error_wrap(error, code, "%s", name);
}

static int check_together(const struct fc_store_opts *opts, struct fc_error *error)
{
	int code = fc_geometry_check(opts->geometry, error);
	if (code == FC_OK && opts->low_watermark > opts->high_watermark)
		code = fc_error_set(error, FC_EINVAL, "low_watermark %g, high_watermark %g; low <= high is allowed",
				    opts->low_watermark, opts->high_watermark);
	if (code == FC_OK)
		code = check_arena_bytes("ssd_bytes", opts->ssd_bytes, opts, error);
	if (code == FC_OK)
		code = check_arena_bytes("memory_bytes", opts->memory_bytes, opts, error);
	if (code == FC_OK)
		code = fc_core_check_window(opts->geometry, opts->window_bytes, ALIGN_MAX, error);
	if (code == FC_OK)
		code = check_path("ssd_path", opts->ssd_path, error);
	if (code == FC_OK)
		code = check_path("memory_path", opts->memory_path, error);
	return code;
}

int fc_store_opts_check(const struct fc_store_opts *opts, struct fc_error *error)
{
	if (opts == NULL)
		return fc_error_set(error, FC_EINVAL, "options are NULL");
	if (opts->size != sizeof(*opts))
		return fc_error_set(error, FC_EINVAL, "options of %zu bytes; call fc_store_opts_init() first (%zu)",
				    opts->size, sizeof(*opts));
	if (opts->geometry == NULL)
		return fc_error_set(error, FC_EINVAL, "options without a geometry");
	for (size_t i = 0; i < fc_array_len(ranges); i++) {
		int code = check_range(&ranges[i], opts, error);
		if (code != FC_OK)
			return code;
	}
	return check_together(opts, error);
}

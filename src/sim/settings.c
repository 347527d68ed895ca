/* The shape of a run's world. Sizes are small, so that arenas fill up, windows are scarce and queues are long. */
#include "sim/run.h"

#include "format/arena.h"

#define SECOND_NS 1000000000ull

static uint64_t pick(struct fc_random *random, const uint64_t *values, uint64_t count)
{
	return values[fc_random_below(random, count)];
}

static void choose_clock(struct fc_sim_settings *settings, struct fc_random *random)
{
	static const uint64_t starts[] = {0, 1, 1000 * SECOND_NS, 1ull << 40, 1ull << 62};
	settings->start_ns = pick(random, starts, fc_array_len(starts)) + fc_random_below(random, 3);
}

static void choose_ssd(struct fc_sim_settings *settings, struct fc_random *random)
{
	static const uint64_t chunks[] = {6, 12, 24, 60, 200, 500};
	uint64_t chunk_bytes = settings->core.catalog.chunk_bytes;
	settings->has_medium[FC_SSD] = true;
	settings->media[FC_SSD] = (struct fc_sim_medium_opts){
		.bytes = FC_TABLE_OFFSET + (64u << 10) + pick(random, chunks, fc_array_len(chunks)) * chunk_bytes,
		.align = fc_random_below(random, 2) == 0 ? 512 : 4096,
		.is_durable = true,
		.latency_ns = fc_random_between(random, 10000, 300000),
		.bytes_per_s = fc_random_between(random, 2, 2000) * 1000000,
		.queue_depth = (uint32_t)fc_random_between(random, 1, FC_SIM_QUEUE_DEPTH_MAX),
		.late_ns = settings->core.io_timeout_ns,
		.seed = fc_random_u64(random),
	};
}

static void choose_memory(struct fc_sim_settings *settings, struct fc_random *random)
{
	static const uint64_t chunks[] = {0, 0, 4, 10, 40, 200, 400};
	uint64_t count = pick(random, chunks, fc_array_len(chunks));
	bool is_only_one = fc_random_below(random, 16) == 0;
	if (is_only_one)
		settings->has_medium[FC_SSD] = false;
	else if (count == 0)
		return;
	count = fc_max_u64(count, 4);
	settings->has_medium[FC_MEMORY] = true;
	settings->media[FC_MEMORY] = (struct fc_sim_medium_opts){
		.bytes = FC_TABLE_OFFSET + (64u << 10) + count * settings->core.catalog.chunk_bytes,
		.align = 1,
		.is_durable = fc_random_below(random, 4) == 0,
		.is_mapped = true,
		.queue_depth = 1,
		.seed = fc_random_u64(random),
	};
}

static void choose_catalog(struct fc_catalog_opts *catalog, struct fc_random *random)
{
	static const uint64_t ratios_percent[] = {0, 0, 50, 100, 100, 200, 1000};
	catalog->node = (uint32_t)fc_random_below(random, 4096);
	catalog->chunk_bytes = fc_random_below(random, 4) == 0 ? 8192 : 4096;
	catalog->uuid = (struct fc_uuid){fc_random_u64(random) | 1, fc_random_u64(random)};
	catalog->hash_seed = fc_random_u64(random);
	catalog->agent_context_tokens = fc_random_between(random, 16, 300);
	catalog->long_reply_tokens = fc_random_between(random, 4, 24);
	catalog->high_watermark = 0.5 + fc_random_unit(random) * 0.5;
	catalog->low_watermark = catalog->high_watermark * (0.5 + fc_random_unit(random) * 0.5);
	catalog->consolidate_ratio = (double)pick(random, ratios_percent, fc_array_len(ratios_percent)) / 100;
	catalog->reclaim_order =
		fc_random_below(random, 3) == 0 ? FC_RECLAIM_OLDEST_CREATED : FC_RECLAIM_LEAST_RECENTLY_USED;
	catalog->memory_reclaim = fc_random_below(random, 2) == 0 ? FC_MEMORY_SPILL : FC_MEMORY_DROP;
}

static void choose_streams(struct fc_sim_settings *settings, struct fc_random *random)
{
	static const uint64_t gaps[] = {0, 1, 600, 5000, 65536};
	struct fc_core_opts *core = &settings->core;
	uint32_t align = settings->has_medium[FC_SSD] ? settings->media[FC_SSD].align : 64;
	uint64_t area_bytes = fc_align_up(fc_catalog_area_bytes_min(&settings->geometry), align);
	uint64_t slice_bytes = fc_align_up(fc_plan_slot_bytes_min(&settings->geometry, align), align);
	uint64_t slot_bytes = fc_max_u64(slice_bytes, area_bytes + align);
	slot_bytes += fc_random_below(random, 12) * align;
	core->load_streams = (uint32_t)fc_random_between(random, 1, 3);
	core->save_streams = (uint32_t)fc_random_between(random, 1, 2);
	core->window_bytes = FC_STREAM_SLOTS * slot_bytes;
	core->gap_bytes = pick(random, gaps, fc_array_len(gaps));
	core->transfer_bytes = align * fc_random_between(random, 1, 16);
	core->requests_max = (uint32_t)fc_random_between(random, 2, 16);
}

/* From one chunk to more than there are: tight ones, that nothing fits into, and that never matter. */
void fc_sim_settings_choose_quotas(struct fc_sim_settings *settings, struct fc_random *random)
{
	uint64_t chunks = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (settings->has_medium[medium])
			chunks += settings->media[medium].bytes / settings->core.catalog.chunk_bytes;
	for (uint32_t i = 0; i < settings->core.catalog.owner_count; i++) {
		uint64_t most = fc_random_below(random, 3) == 0 ? fc_max_u64(chunks / 8, 4) : chunks;
		uint64_t bytes = fc_random_between(random, 1, most) * settings->core.catalog.chunk_bytes;
		settings->owners[i].bytes_max = fc_random_below(random, 6) == 0 ? 0 : bytes;
	}
}

/* One run in three has owners. */
static void choose_owners(struct fc_sim_settings *settings, struct fc_random *random)
{
	static const uint64_t counts[] = {0, 0, 0, 0, 2, 3};
	settings->core.catalog.owner_count = (uint32_t)pick(random, counts, fc_array_len(counts));
	for (uint32_t i = 0; i < settings->core.catalog.owner_count; i++)
		settings->owners[i].tag = (uint16_t)(fc_random_between(random, 1, 20000) * 3 + i);
	fc_sim_settings_choose_quotas(settings, random);
}

void fc_sim_settings_choose(struct fc_sim_settings *settings, struct fc_random *random)
{
	*settings = (struct fc_sim_settings){0};
	fc_sim_geometry(&settings->geometry, random);
	choose_clock(settings, random);
	settings->core.io_timeout_ns = fc_random_between(random, 1, 30) * SECOND_NS;
	choose_catalog(&settings->core.catalog, random);
	choose_ssd(settings, random);
	choose_memory(settings, random);
	choose_streams(settings, random);
	settings->client_count = (uint32_t)fc_random_between(random, 2, FC_SIM_CLIENTS_MAX);
	settings->session_count = (uint32_t)fc_random_between(random, 2, FC_SIM_SESSIONS_MAX);
	settings->prompt_count = (uint32_t)fc_random_below(random, FC_SIM_PROMPTS_MAX + 1);
	settings->pace_ns = fc_random_between(random, 20000, 4000000);
	choose_owners(settings, random);
}

/* ---- the wired world ---- */

static void choose_limits(struct fc_server_limits *limits, struct fc_random *random)
{
	fc_server_limits_init(limits);
	limits->clients_max = FC_SIM_CONNECTIONS_MAX;
	limits->requests_max = 64;
	limits->unsent_bytes_max = fc_random_between(random, 64, 512) << 10;
	limits->hello_timeout_ns = fc_random_between(random, 1, 10) * SECOND_NS;
	limits->lease_timeout_ns =
		fc_random_below(random, 4) == 0 ? fc_random_between(random, 1, 20) * SECOND_NS : 1000000 * SECOND_NS;
	limits->io_timeout_ns = fc_random_between(random, 1, 30) * SECOND_NS;
	limits->reserved_share = 0.05 + 0.5 * fc_random_unit(random);
	limits->reserved_old_ns = fc_random_between(random, 1, 20) * SECOND_NS;
	limits->damages_max = (uint32_t)fc_random_between(random, 1, 16);
}

void fc_sim_settings_choose_wire(struct fc_sim_settings *settings, struct fc_random *random)
{
	static const uint64_t delays_ns[] = {0, 1000, 50000, 1000000, 20000000};
	static const uint64_t pieces[] = {64, 700, 4096, 65536};
	settings->engine_count = (uint32_t)fc_random_between(random, 1, FC_SIM_ENGINES_MAX);
	settings->space_count = settings->engine_count > 1 ? (uint32_t)fc_random_between(random, 1, 2) : 1;
	settings->delay_ns_max = pick(random, delays_ns, fc_array_len(delays_ns));
	settings->piece_bytes_max = pick(random, pieces, fc_array_len(pieces));
	settings->stream_bytes_max = fc_random_between(random, 4, 200) << 10;
	settings->answer_timeout_ns = fc_random_between(random, 2, 10) * SECOND_NS;
	settings->reconnect_timeout_ns = fc_random_between(random, 1, 20) * SECOND_NS;
	/* Longer than anybody is deaf: who has not closed its connection by then never will. */
	settings->fence_timeout_ns = fc_random_between(random, 3, 6) * settings->answer_timeout_ns;
	settings->drain_timeout_ns = fc_random_between(random, 0, 5000) * 1000000;
	settings->probe_ns = fc_random_between(random, 1, 200) * 1000000;
	settings->retry_ns = fc_random_between(random, 1, 100) * 1000000;
	settings->media[FC_MEMORY].is_durable = true; /* the mapping outlives the daemon */
	if (settings->core.catalog.owner_count > 0)
		settings->core.catalog.owner_count = settings->space_count;
	for (uint32_t i = 0; i < settings->core.catalog.owner_count; i++)
		settings->owners[i].tag = fc_server_namespace_tag(fc_sim_space_name(i));
	choose_limits(&settings->limits, random);
}

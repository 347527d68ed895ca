/* Recovery of whatever lies on a medium, and a life after it.
 *
 *     1 byte     bit 0: hybrid geometry; bit 1: larger slices; bit 2: memory outlives its process; bit 3: opened for
 *                reading first; bit 4: not formatted; bit 5: no consolidation; bit 6: reclaim memory by spilling
 *     ...        strokes over both arenas (arena_image.h)
 *
 * An arena is refused with a sentence, and then nothing on it has changed, or it opens to a catalog whose full scan
 * agrees with its counters. Loads bring nothing but right bytes, and damage that they meet is gone when they end. Then
 * sessions are saved until there is no room left, and everything is closed, opened once more, and evicted to the last
 * chunk. */
#include "core/core.h"
#include "device/host.h"
#include "fuzz/arena_image.h"
#include "base/random.h"
#include "lib/engine.h"
#include "lib/world.h"

#include <stdlib.h>
#include <string.h>

#define SSD_CHUNKS 16
#define MEMORY_CHUNKS 8
#define SSD_ALIGN 512u
#define STEPS_MAX 20000
#define ROUNDS_MAX 64
#define SECOND_NS 1000000000ull

enum {
	IS_HYBRID = 1,
	IS_LARGE = 2,
	IS_MEMORY_DURABLE = 4,
	IS_READ_FIRST = 8,
	IS_BLANK = 16,
	IS_PLAIN_LAYOUT = 32,
	IS_SPILLING = 64,
};

struct life {
	struct fc_geometry geometry;
	struct fuzz_paths paths;
	struct fuzz_arena ssd, memory;
	struct tracked_alloc tracked;
	struct fc_alloc alloc;
	struct fc_core_opts opts;
	struct fc_core *core;
	struct engine engine;
	bool is_opened;
	int open_code;
	struct fc_error error;
};

/* ---- the core ---- */

static uint64_t now(void *context)
{
	(void)context;
	return 1000 * SECOND_NS;
}

static void on_event(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
		     uint32_t layer)
{
	(void)context, (void)kind, (void)load, (void)save, (void)layer;
}

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct life *life = context;
	life->is_opened = true;
	life->open_code = code;
	life->error = *error;
}

static void settle(struct life *life)
{
	for (int steps = 0; fc_core_step(life->core) > 0; steps++)
		fuzz_check(steps < STEPS_MAX, "it never comes to rest");
}

static void check(struct life *life)
{
	struct fc_error error = {0};
	fuzz_check(fc_catalog_check(fc_core_catalog(life->core), &error) == FC_OK, "%s", error.text);
}

static struct fc_stats stats_of(struct life *life)
{
	struct fc_stats stats = {0};
	fc_core_stats(life->core, &stats);
	return stats;
}

static int open_core(struct life *life)
{
	life->is_opened = false;
	life->error = (struct fc_error){0};
	life->memory.media->media.map = life->memory.media->image;
	life->opts.catalog.media[FC_SSD] = &life->ssd.media->media;
	life->opts.catalog.media[FC_MEMORY] = &life->memory.media->media;
	fuzz_check(fc_core_open(&life->core, &life->opts, on_opened, &life->error) == FC_OK, "%s", life->error.text);
	for (int steps = 0; !life->is_opened; steps++) {
		fuzz_check(steps < STEPS_MAX, "it never opens");
		fc_core_step(life->core);
	}
	if (life->open_code != FC_OK) {
		fc_core_free(life->core);
		fuzz_check_refusal(life->open_code, &life->error);
		return life->open_code;
	}
	check(life);
	return FC_OK;
}

static void close_core(struct life *life)
{
	settle(life);
	check(life);
	fuzz_check(fc_core_is_idle(life->core), "at rest, and not idle");
	fuzz_check(stats_of(life).leases == 0, "a lease is left");
	fc_core_free(life->core);
}

static uint64_t depth(struct life *life, const struct fc_key *keys)
{
	struct fc_match match = {0};
	struct fc_path path = {0};
	fuzz_check(fc_catalog_match(fc_core_catalog(life->core), keys, FUZZ_PATH_BLOCKS, 0, false, &path) == FC_OK,
		   "no match");
	match.blocks = path.blocks;
	fc_path_deinit(&path, &life->alloc);
	return match.blocks;
}

/* ---- loads and saves ---- */

static uint64_t load_path(struct life *life, const struct fc_key *keys)
{
	struct fc_load_opts opts = {.keys = keys, .key_count = FUZZ_PATH_BLOCKS, .is_started_when_ready = true};
	struct fc_core_load *load;
	struct fc_error error = {0};
	uint64_t matched = depth(life, keys), failures = stats_of(life).checksum_failures;
	engine_slots(&life->engine, FUZZ_PATH_BLOCKS, opts.slots);
	engine_wipe(&life->engine);
	fuzz_check(fc_core_load_submit(life->core, &opts, life->engine.layers, NULL, &load, &error) == FC_OK, "%s",
		   error.text);
	settle(life);
	fuzz_check(load->state == FC_LOAD_ENDED && load->result.code == FC_OK, "a load is in state %d, code %d",
		   (int)load->state, load->result.code);
	uint64_t blocks = load->result.blocks;
	fuzz_check(blocks <= matched, "%llu blocks of %llu", (unsigned long long)blocks, (unsigned long long)matched);
	fuzz_check(blocks == matched || stats_of(life).checksum_failures > failures, "a shorter prefix, and no damage");
	for (uint32_t layer = 0; layer < life->geometry.layer_count; layer++)
		fuzz_check(engine_has_layer(&life->engine, keys, blocks, layer), "wrong bytes in layer %u", layer);
	fc_core_load_free(life->core, load);
	check(life);
	return blocks;
}

/* Until nothing damaged is met any more. */
static void load_all(struct life *life)
{
	uint64_t failures = UINT64_MAX;
	for (int rounds = 0; stats_of(life).checksum_failures != failures; rounds++) {
		fuzz_check(rounds < ROUNDS_MAX, "damage without end");
		failures = stats_of(life).checksum_failures;
		for (int path = 0; path < FUZZ_PATHS; path++)
			load_path(life, life->paths.keys[path]);
	}
}

static void save_path(struct life *life, const struct fc_key *keys, uint64_t session, uint64_t turn, uint64_t blocks)
{
	struct fc_save_opts opts = {
		.session = {0, session}, .keys = keys, .key_count = blocks, .turn = turn, .shared_blocks = turn * 2};
	struct fc_core_save *save;
	struct fc_error error = {0};
	engine_slots(&life->engine, blocks, opts.slots);
	engine_fill(&life->engine, keys, blocks);
	fuzz_check(fc_core_save_submit(life->core, &opts, life->engine.layers, NULL, &save, &error) == FC_OK, "%s",
		   error.text);
	settle(life);
	int code = save->result.code;
	fuzz_check(save->state == FC_SAVE_DURABLE || save->state == FC_SAVE_FAILED, "a save is in state %d",
		   (int)save->state);
	fuzz_check(code == FC_OK || code == FC_EFULL, "a save ends with %d: %s", code, save->result.error.text);
	if (code != FC_OK)
		fuzz_check_refusal(code, &save->result.error);
	fc_core_save_free(life->core, save);
	check(life);
	if (code == FC_OK)
		load_path(life, keys);
}

static void save_all(struct life *life)
{
	struct fc_key keys[FUZZ_PATH_BLOCKS];
	for (int path = 0; path < FUZZ_PATHS; path++)
		save_path(life, life->paths.keys[path], (uint64_t)path, 1 + (uint64_t)path, FUZZ_PATH_BLOCKS);
	for (uint64_t session = 3; session < 6; session++) {
		path_keys(100 + session, 0, keys, FUZZ_PATH_BLOCKS);
		save_path(life, keys, session, 0, FUZZ_PATH_BLOCKS / 2);
		save_path(life, keys, session, 1, FUZZ_PATH_BLOCKS);
	}
}

/* ---- a second open, and the end ---- */

static void replace_media(struct life *life)
{
	struct fake_media *old[2] = {life->ssd.media, life->memory.media};
	life->ssd.media = fake_media_reopen(old[0], 0);
	life->memory.media = fake_media_reopen(old[1], 0);
	fake_media_close(old[0]);
	fake_media_close(old[1]);
}

/* Which blocks are damaged is not on a medium: those that are left of a segment with damage are believed again, until
 * they are read. */
static void check_depth(struct life *life, int path, uint64_t before, bool is_damaged)
{
	uint64_t after = depth(life, life->paths.keys[path]);
	fuzz_check(after == before || (after > before && is_damaged), "path %d: %llu blocks, %llu before", path,
		   (unsigned long long)after, (unsigned long long)before);
}

static void reopen(struct life *life)
{
	uint64_t before[FUZZ_PATHS];
	for (int path = 0; path < FUZZ_PATHS; path++)
		before[path] = depth(life, life->paths.keys[path]);
	bool is_durable = life->memory.media->media.is_durable, is_damaged = stats_of(life).checksum_failures > 0;
	close_core(life);
	replace_media(life);
	fuzz_check(open_core(life) == FC_OK, "does not open again: %s", life->error.text);
	fuzz_check(stats_of(life).dropped_segments == 0 || !is_durable, "%llu segments are lost by closing",
		   (unsigned long long)stats_of(life).dropped_segments);
	for (int path = 0; path < FUZZ_PATHS && is_durable; path++)
		check_depth(life, path, before[path], is_damaged);
	load_all(life);
}

static bool on_session(void *context, const struct fc_session_info *info)
{
	*(struct fc_session_id *)context = info->id;
	return false;
}

static void evict_all(struct life *life)
{
	struct fc_catalog *catalog = fc_core_catalog(life->core);
	for (int rounds = 0;; rounds++) {
		struct fc_session_id id = {UINT64_MAX, UINT64_MAX};
		fc_catalog_sessions(catalog, on_session, &id);
		if (id.high == UINT64_MAX)
			break;
		fuzz_check(rounds < 1000, "sessions without end");
		fuzz_check(fc_catalog_evict(catalog, id) == FC_OK, "a session that nobody reads stays");
		check(life);
		settle(life);
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fuzz_check(stats_of(life).media[medium].bytes_used == 0, "%llu bytes belong to nobody",
			   (unsigned long long)stats_of(life).media[medium].bytes_used);
}

/* ---- inputs ---- */

/* libFuzzer's; nobody calls it in an ordinary build. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define SEGMENT_STROKE_BYTES 9u

/* A stroke that is likely to meet the others. */
static void make_stroke(struct fc_random *random, uint8_t stroke[SEGMENT_STROKE_BYTES])
{
	uint64_t memory = fc_random_below(random, 4) == 0 ? 0x80 : 0;
	uint8_t made[SEGMENT_STROKE_BYTES] = {
		(uint8_t)(memory | fc_random_below(random, 8)),
		(uint8_t)fc_random_below(random, SSD_CHUNKS),
		(uint8_t)fc_random_below(random, 32),
		(uint8_t)fc_random_below(random, 5),
		(uint8_t)fc_random_below(random, 32),
		(uint8_t)(fc_random_below(random, 7) * 2),
		(uint8_t)fc_random_below(random, 16),
		(uint8_t)fc_random_below(random, 4),
		(uint8_t)fc_random_below(random, 4),
	};
	memcpy(stroke, made, sizeof(made));
}

/* Half of the time one more stroke, at the end or among the others; else what libFuzzer does to any bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct fc_random random;
	fc_random_init(&random, seed);
	if (fc_random_below(&random, 2) == 0 || size == 0 || size + SEGMENT_STROKE_BYTES > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t strokes = (size - 1) / SEGMENT_STROKE_BYTES;
	size_t place = fc_random_below(&random, 2) == 0
			       ? size
			       : 1 + SEGMENT_STROKE_BYTES * fc_random_below(&random, strokes + 1);
	memmove(data + place + SEGMENT_STROKE_BYTES, data + place, size - place);
	make_stroke(&random, data + place);
	return size + SEGMENT_STROKE_BYTES;
}

/* ---- from the bytes to the end ---- */

static void init(struct life *life, uint8_t flags)
{
	uint32_t scale = flags & IS_LARGE ? 40 : 1;
	memset(life, 0, sizeof(*life));
	life->geometry = flags & IS_HYBRID ? geometry_hybrid(scale) : geometry_plain(scale);
	life->alloc = tracked_alloc_interface(&life->tracked);
	fuzz_paths_init(&life->paths);
	fuzz_arena_init(&life->ssd, &life->geometry, SSD_CHUNKS, SSD_ALIGN, true, !(flags & IS_BLANK));
	fuzz_arena_init(&life->memory, &life->geometry, MEMORY_CHUNKS, 1, flags & IS_MEMORY_DURABLE,
			flags & IS_MEMORY_DURABLE && !(flags & IS_BLANK));
	engine_init(&life->engine, &life->geometry, FUZZ_PATH_BLOCKS, 1);
	life->opts = (struct fc_core_opts){
		.catalog = {.geometry = &life->geometry,
			    .alloc = &life->alloc,
			    .node = 5,
			    .chunk_bytes = FUZZ_CHUNK_BYTES,
			    .uuid = {1, 2},
			    .hash_seed = 77,
			    .index_shards = 4,
			    .agent_context_tokens = 60,
			    .long_reply_tokens = 1u << 30,
			    .high_watermark = 0.9,
			    .low_watermark = 0.6,
			    .consolidate_ratio = flags & IS_PLAIN_LAYOUT ? 0 : 1,
			    .memory_reclaim = flags & IS_SPILLING ? FC_MEMORY_SPILL : FC_MEMORY_DROP},
		.clock = {now, NULL},
		.load_streams = 2,
		.save_streams = 2,
		.window_bytes = 64 << 10,
		.gap_bytes = 1,
		.transfer_bytes = 4096,
		.requests_max = 4,
		.io_timeout_ns = 30 * SECOND_NS,
		.event_cb = on_event,
		.context = life,
	};
	fuzz_check(fc_device_host(&life->opts.device, NULL) == FC_OK, "no device");
}

static void deinit(struct life *life)
{
	fc_device_close(life->opts.device);
	engine_deinit(&life->engine);
	fake_media_close(life->ssd.media);
	fake_media_close(life->memory.media);
	fuzz_check(life->tracked.bytes == 0, "%llu bytes of memory are left", (unsigned long long)life->tracked.bytes);
}

/* Opens both, and holds what was not to change against what was there. */
static int open_watched(struct life *life, bool is_read_only)
{
	struct fake_media *media = life->ssd.media;
	uint8_t *before = fuzz_exact(media->image, media->media.bytes);
	life->opts.catalog.is_read_only = is_read_only;
	int code = open_core(life);
	if (code == FC_OK && is_read_only)
		close_core(life);
	if (is_read_only || code == FC_EFORMAT || code == FC_EGEOMETRY)
		fuzz_check(memcmp(before, media->image, media->media.bytes) == 0 ||
				   life->memory.media->media.is_durable,
			   "an arena that was not to be touched has changed");
	life->opts.catalog.is_read_only = false;
	free(before);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct life life;
	uint8_t flags = fuzz_u8(&input);
	init(&life, flags);
	struct fuzz_arena *const arenas[2] = {&life.ssd, flags & IS_MEMORY_DURABLE ? &life.memory : NULL};
	fuzz_arena_paint(arenas, &life.paths, &input);
	int read_code = flags & IS_READ_FIRST ? open_watched(&life, true) : FC_OK;
	int code = open_watched(&life, false);
	fuzz_check(code != FC_OK || read_code == FC_OK || read_code == FC_EFORMAT, "opens, but not for reading: %d",
		   read_code);
	if (code == FC_OK) {
		load_all(&life);
		save_all(&life);
		reopen(&life);
		evict_all(&life);
		close_core(&life);
	}
	deinit(&life);
	return 0;
}

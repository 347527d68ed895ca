#include "lib/world.h"

#include "base/random.h"
#include "format/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define POLLS_MAX 100000
#define SSD_ALIGN 512u
#define MEMORY_ALIGN 1u

/* ---- geometries and keys ---- */

struct fc_geometry geometry_plain(uint32_t scale)
{
	struct fc_geometry geometry = {.name = "plain", .block_tokens = 4, .layer_count = 3, .group_count = 1};
	geometry.groups[0] = (struct fc_group){
		.rule = FC_RULE_ALL, .tokens_per_block = 4, .slice_bytes = {10ull * scale, 7ull * scale, 0}};
	return geometry;
}

struct fc_geometry geometry_hybrid(uint32_t scale)
{
	static const uint64_t slices[4][4] = {{10, 0, 3, 0}, {0, 6, 0, 1}, {2, 2, 2, 2}, {0, 0, 0, 9}};
	struct fc_geometry geometry = {.name = "hybrid", .block_tokens = 4, .layer_count = 4, .group_count = 4};
	geometry.groups[0] = (struct fc_group){.rule = FC_RULE_ALL, .tokens_per_block = 4};
	geometry.groups[1] = (struct fc_group){.rule = FC_RULE_ALL, .tokens_per_block = 8};
	geometry.groups[2] = (struct fc_group){.rule = FC_RULE_WINDOW, .tokens_per_block = 4, .window_tokens = 6};
	geometry.groups[3] = (struct fc_group){.rule = FC_RULE_STATE};
	for (int group = 0; group < 4; group++)
		for (int layer = 0; layer < 4; layer++)
			geometry.groups[group].slice_bytes[layer] = slices[group][layer] * scale;
	return geometry;
}

void path_keys(uint64_t seed, uint64_t from, struct fc_key *keys, uint64_t count)
{
	for (uint64_t i = from; i < count; i++) {
		uint64_t state = seed * 0x9e3779b97f4a7c15ull + (i == 0 ? 0 : keys[i - 1].low);
		keys[i].high = fc_random_split(&state);
		keys[i].low = fc_random_split(&state);
	}
}

void slice_bytes(struct fc_key key, uint32_t group, uint32_t layer, uint8_t *bytes, uint64_t count)
{
	uint64_t state = fc_slice_seed(key, group, layer), word = 0;
	for (uint64_t i = 0; i < count; i++, word >>= 8) {
		if (i % 8 == 0)
			word = fc_random_split(&state);
		bytes[i] = (uint8_t)word;
	}
}

/* ---- the world ---- */

uint64_t world_arena_bytes(const struct fc_geometry *geometry, uint64_t chunks, uint32_t align)
{
	struct fc_superblock superblock;
	for (uint64_t bytes = FC_TABLE_OFFSET;; bytes += WORLD_CHUNK_BYTES)
		if (fc_superblock_plan(&superblock, bytes, WORLD_CHUNK_BYTES, align, geometry, NULL) == FC_OK &&
		    fc_superblock_chunks(&superblock, bytes) == chunks)
			return bytes;
}

void world_init(struct world *world, struct fc_geometry geometry, uint64_t memory_chunks, uint64_t ssd_chunks)
{
	memset(world, 0, sizeof(*world));
	world->alloc = tracked_alloc_interface(&world->tracked);
	world->geometry = geometry;
	if (memory_chunks > 0)
		world->media[FC_MEMORY] =
			fake_media_new(world_arena_bytes(&geometry, memory_chunks, 64), MEMORY_ALIGN, false);
	if (ssd_chunks > 0)
		world->media[FC_SSD] =
			fake_media_new(world_arena_bytes(&geometry, ssd_chunks, SSD_ALIGN), SSD_ALIGN, true);
	world->opts = (struct fc_catalog_opts){
		.geometry = &world->geometry,
		.alloc = &world->alloc,
		.node = 5,
		.chunk_bytes = WORLD_CHUNK_BYTES,
		.uuid = {0x1122334455667788ull, 0x99aabbccddeeff00ull},
		.hash_seed = 77,
		.agent_context_tokens = 1u << 30,
		.long_reply_tokens = 1u << 30,
		.high_watermark = 1,
		.low_watermark = 1,
	};
}

void world_make_memory_durable(struct world *world)
{
	uint64_t bytes = world->media[FC_MEMORY]->media.bytes;
	fake_media_close(world->media[FC_MEMORY]);
	world->media[FC_MEMORY] = fake_media_new(bytes, MEMORY_ALIGN, true);
}

void world_deinit(struct world *world)
{
	world_close(world);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fake_media_close(world->media[medium]);
	assert_int_equal(world->tracked.bytes, 0);
}

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct world *world = context;
	assert_false(world->is_opened);
	world->is_opened = true;
	world->open_code = code;
	if (error != NULL)
		world->error = *error;
}

int world_open(struct world *world)
{
	world->is_opened = false;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		world->opts.media[medium] = world->media[medium] == NULL ? NULL : &world->media[medium]->media;
	int code = fc_catalog_open(&world->catalog, &world->opts, on_opened, world);
	assert_false(world->is_opened);
	if (code != FC_OK) {
		world->catalog = NULL;
		return code;
	}
	for (int polls = 0; !world->is_opened; polls++) {
		assert_true(polls < POLLS_MAX);
		world_poll(world);
	}
	if (world->open_code != FC_OK) {
		fc_catalog_free(world->catalog);
		world->catalog = NULL;
	}
	return world->open_code;
}

unsigned world_poll(struct world *world)
{
	unsigned count = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (world->media[medium] != NULL)
			count += fc_media_poll(&world->media[medium]->media);
	return count;
}

void world_drain(struct world *world)
{
	for (int polls = 0; world_poll(world) > 0 || !fc_catalog_is_settled(world->catalog); polls++)
		assert_true(polls < POLLS_MAX);
}

void world_close(struct world *world)
{
	if (world->catalog == NULL)
		return;
	world_drain(world);
	fc_catalog_free(world->catalog);
	world->catalog = NULL;
}

static void replace_medium(struct world *world, enum fc_medium medium, struct fake_media *next)
{
	fake_media_close(world->media[medium]);
	world->media[medium] = next;
}

int world_reopen(struct world *world, uint64_t ssd_chunks)
{
	world_close(world);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct fake_media *old = world->media[medium];
		uint64_t bytes = 0;
		if (old == NULL)
			continue;
		if (medium == FC_SSD && ssd_chunks > 0) {
			struct fc_superblock superblock;
			assert_int_equal(fc_superblock_decode(&superblock, old->image, NULL), 0);
			bytes = superblock.data_offset + ssd_chunks * superblock.chunk_bytes;
		}
		replace_medium(world, (enum fc_medium)medium, fake_media_reopen(old, bytes));
	}
	return world_open(world);
}

void world_crash(struct world *world, uint64_t seed)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (world->media[medium] != NULL)
			world->media[medium]->is_dead = true;
	world_close(world);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (world->media[medium] != NULL)
			replace_medium(world, (enum fc_medium)medium,
				       fake_media_crash(world->media[medium], seed + (uint64_t)medium));
}

void world_check(struct world *world)
{
	struct fc_error error = {0};
	if (fc_catalog_check(world->catalog, &error) != FC_OK)
		fail_msg("%s", error.text);
}

struct fc_stats world_stats(const struct world *world)
{
	struct fc_stats stats = {0};
	fc_catalog_stats(world->catalog, &stats);
	return stats;
}

struct session_search {
	uint64_t wanted;
	uint64_t count;
	struct fc_session_info info;
};

static bool on_session(void *context, const struct fc_session_info *info)
{
	struct session_search *search = context;
	search->count++;
	if (info->id.low == search->wanted && info->id.high == 0)
		search->info = *info;
	return true;
}

struct fc_session_info world_session(struct world *world, uint64_t session)
{
	struct session_search search = {.wanted = session};
	fc_catalog_sessions(world->catalog, on_session, &search);
	return search.info;
}

uint64_t world_sessions(struct world *world)
{
	struct session_search search = {0};
	fc_catalog_sessions(world->catalog, on_session, &search);
	return search.count;
}

uint64_t world_chunks_used(const struct world *world, enum fc_medium medium)
{
	return world_stats(world).media[medium].bytes_used / WORLD_CHUNK_BYTES;
}

/* ---- saving ---- */

static struct put *put_of(struct fc_reservation *reservation)
{
	return fc_container_of(reservation, struct put, reservation);
}

static void on_space(struct fc_reservation *reservation)
{
	put_of(reservation)->has_space = true;
}

static void on_durable(struct fc_reservation *reservation)
{
	struct put *put = put_of(reservation);
	put->durable_count++;
	put->durable_code = reservation->durable_code;
}

void put_init(struct put *put, struct world *world, uint64_t session, uint64_t turn, const struct fc_key *keys,
	      uint64_t key_count)
{
	memset(put, 0, sizeof(*put));
	put->world = world;
	put->turn = (struct fc_turn){
		.session = {0, session},
		.keys = keys,
		.key_count = key_count,
		.turn = turn,
	};
	for (uint32_t group = 0; group < world->geometry.group_count; group++)
		put->turn.resident[group].count = key_count / fc_group_span(&world->geometry, group);
	put->reservation.space_cb = on_space;
	put->reservation.durable_cb = on_durable;
}

int put_reserve(struct put *put)
{
	put->reservation.space_attempts = 0;
	for (;;) {
		put->has_space = false;
		int code = fc_catalog_reserve(put->world->catalog, &put->turn, &put->reservation, &put->error);
		if (code != FC_EAGAIN)
			return code;
		for (int polls = 0; !put->has_space; polls++) {
			assert_true(polls < POLLS_MAX);
			world_poll(put->world);
		}
	}
}

static void fill_area(const struct fc_geometry *geometry, const struct fc_placed *placed,
		      const struct fc_layer_area *area, uint8_t *segment)
{
	for (uint32_t i = 0; i < placed->shape->range_count; i++) {
		const struct fc_range *range = &placed->shape->ranges[i];
		if (geometry->groups[range->group].slice_bytes[area->layer] == 0)
			continue;
		struct fc_range_area part = fc_range_area_in(geometry, placed->shape, area, range);
		for (uint64_t j = 0; j < range->count; j++) {
			struct fc_key key = fc_catalog_segment_key(placed->segment, range->entry_first + j);
			uint8_t *slice = segment + part.slice_offset + j * part.slice_bytes;
			slice_bytes(key, range->group, area->layer, slice, part.slice_bytes);
			uint32_t sum = fc_slice_checksum(slice, part.slice_bytes,
							 fc_slice_seed(key, range->group, area->layer));
			memcpy(segment + part.checksum_offset + j * sizeof(sum), &sum, sizeof(sum));
		}
	}
}

struct waited_io {
	struct fc_io io;
	bool is_done;
};

static void on_waited(struct fc_io *io)
{
	fc_container_of(io, struct waited_io, io)->is_done = true;
}

/* Everything behind the header, in one write. */
static int write_segment(struct world *world, const struct fc_placed *placed)
{
	struct fc_media *media = &world->media[fc_gva_medium(placed->base)]->media;
	uint64_t bytes;
	assert_int_equal(fc_shape_bytes(&world->geometry, placed->shape, placed->align, &bytes), 0);
	uint8_t *segment = aligned_alloc(4096, fc_align_up(bytes + 4096, 4096));
	memset(segment, 0, bytes);
	struct fc_layer_area area;
	fc_layer_first(&world->geometry, placed->shape, placed->header_bytes, &area);
	do {
		fill_area(&world->geometry, placed, &area, segment);
	} while (fc_layer_next(&world->geometry, placed->shape, placed->align, &area));
	struct waited_io write = {
		.io = {.op = FC_IO_WRITE,
		       .offset = fc_gva_offset(placed->base) + placed->header_bytes,
		       .bytes = bytes - placed->header_bytes,
		       .buffer = segment + placed->header_bytes,
		       .done_cb = on_waited},
	};
	fc_media_submit(media, &write.io);
	for (int polls = 0; !write.is_done; polls++) {
		assert_true(polls < POLLS_MAX);
		world_poll(world);
	}
	free(segment);
	return write.io.result == (int64_t)write.io.bytes ? FC_OK : FC_EIO;
}

static int write_grants(struct world *world, const struct fc_reservation *reservation)
{
	int code = FC_OK;
	for (uint32_t i = 0; i < reservation->grant_count && code == FC_OK; i++)
		code = write_segment(world, &reservation->grants[i].placed);
	return code;
}

int put_write(struct put *put)
{
	return write_grants(put->world, &put->reservation);
}

int put_finish(struct put *put)
{
	int code = put_write(put);
	if (code == FC_OK)
		return put_commit(put);
	put_abort(put);
	return code;
}

int put_commit(struct put *put)
{
	return fc_catalog_commit(put->world->catalog, &put->reservation);
}

void put_abort(struct put *put)
{
	fc_catalog_abort(put->world->catalog, &put->reservation);
}

bool put_is_settled(const struct put *put)
{
	return put->reservation.durable_pending == 0;
}

void put_deinit(struct put *put)
{
	assert_true(put_is_settled(put));
	assert_true(put->durable_count <= 1);
	fc_reservation_deinit(&put->reservation, &put->world->alloc);
}

int save(struct world *world, uint64_t session, uint64_t turn, const struct fc_key *keys, uint64_t key_count)
{
	struct put put;
	put_init(&put, world, session, turn, keys, key_count);
	int code = put_reserve(&put);
	if (code == FC_OK)
		code = put_finish(&put);
	world_drain(world);
	if (code == FC_OK)
		code = put.durable_code;
	put_deinit(&put);
	return code;
}

int spill_one(struct world *world)
{
	struct put put;
	struct fc_path from = {0};
	put_init(&put, world, 0, 0, NULL, 0);
	int code = fc_catalog_spill_next(world->catalog, &from, &put.reservation);
	if (code == FC_OK) {
		assert_int_equal(put.reservation.grant_count, 1);
		code = put_finish(&put);
		fc_catalog_release(world->catalog, &from);
		world_drain(world);
	} else {
		fc_catalog_abort(world->catalog, &put.reservation); /* it may wait for space */
	}
	fc_path_deinit(&from, &world->alloc);
	put_deinit(&put);
	return code;
}

/* ---- reading ---- */

static void verify_block(struct world *world, const struct fc_placed *placed, const struct fc_range *range,
			 uint64_t entry, struct fc_key key)
{
	const uint8_t *segment = world->media[fc_gva_medium(placed->base)]->image + fc_gva_offset(placed->base);
	for (uint32_t layer = 0; layer < world->geometry.layer_count; layer++) {
		struct fc_layer_area area;
		fc_layer_seek(&world->geometry, placed->shape, placed->header_bytes, placed->align, layer, &area);
		uint64_t bytes = world->geometry.groups[range->group].slice_bytes[layer];
		if (bytes == 0)
			continue;
		struct fc_range_area part = fc_range_area_in(&world->geometry, placed->shape, &area, range);
		uint8_t *wanted = malloc(bytes);
		slice_bytes(key, range->group, layer, wanted, bytes);
		const uint8_t *found = segment + part.slice_offset + (entry - range->entry_first) * bytes;
		assert_memory_equal(found, wanted, bytes);
		free(wanted);
	}
}

void verify_path(struct world *world, const struct fc_path *path, const struct fc_key *keys)
{
	for (uint32_t i = 0; i < path->span_count; i++) {
		const struct fc_span *span = &path->spans[i];
		const struct fc_placed *placed = &path->placed[span->placed];
		const struct fc_range *range = fc_shape_range_of(placed->shape, span->entry_first);
		assert_int_equal(range->group, span->group);
		assert_int_equal(span->block_first - range->block_first, span->entry_first - range->entry_first);
		assert_true(span->entry_first + span->count <= range->entry_first + range->count);
		uint64_t width = fc_group_span(&world->geometry, span->group);
		for (uint64_t j = 0; j < span->count; j++)
			verify_block(world, placed, range, span->entry_first + j,
				     keys[fc_group_key_position(width, span->block_first + j)]);
	}
}

uint64_t stored(struct world *world, const struct fc_key *keys, uint64_t key_count)
{
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(world->catalog, keys, key_count, 0, false, &path), 0);
	verify_path(world, &path, keys);
	uint64_t blocks = path.blocks;
	fc_path_deinit(&path, &world->alloc);
	return blocks;
}

const char *picture(struct world *world, const struct fc_key *keys, uint64_t key_count)
{
	static char text[512];
	struct fc_path path = {0};
	size_t length = 0;
	assert_int_equal(fc_catalog_match(world->catalog, keys, key_count, 0, false, &path), 0);
	text[0] = '\0';
	for (uint32_t i = 0; i < path.span_count; i++) {
		const struct fc_span *span = &path.spans[i];
		if (span->group != 0)
			continue;
		const char *mark = fc_gva_medium(path.placed[span->placed].base) == FC_MEMORY ? "m" : "";
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%llu", length == 0 ? "" : " ",
					   mark, (unsigned long long)span->count);
		assert_true(length < sizeof(text));
	}
	fc_path_deinit(&path, &world->alloc);
	return text;
}

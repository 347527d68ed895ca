#include "wire/messages.h"

#include "lib/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the example ---- */

static void place(struct messages *messages, uint32_t number, enum fc_medium medium, uint64_t offset)
{
	struct fc_shape *shape = &messages->shapes[number];
	uint32_t align = messages->welcome.arenas[medium].align;
	messages->placed[number] = (struct fc_placed){
		.base = fc_gva_make(medium, 9, offset),
		.header_bytes = fc_shape_header_bytes(shape, align),
		.align = align,
		.shape = shape,
	};
}

static void add_range(struct messages *messages, uint32_t number, uint32_t group, uint64_t first, uint64_t count)
{
	fc_check(fc_shape_add(&messages->shapes[number], group, first, count) == FC_OK);
}

static void make_path(struct messages *messages)
{
	static const struct fc_span spans[] = {
		{0, 0, 0, 4, 0}, {1, 0, 4, 2, 0}, {0, 1, 0, 2, 4}, {1, 1, 2, 1, 2}, {2, 2, 4, 2, 0}, {2, 3, 5, 1, 2},
	};
	for (uint32_t i = 0; i < 3; i++)
		fc_shape_init(&messages->shapes[i], messages->ranges[i]);
	add_range(messages, 0, 0, 0, 4);
	add_range(messages, 0, 1, 0, 2);
	add_range(messages, 1, 0, 4, 2);
	add_range(messages, 1, 1, 2, 1);
	add_range(messages, 2, 2, 4, 2);
	add_range(messages, 2, 3, 5, 1);
	place(messages, 0, FC_MEMORY, 0x40000);
	place(messages, 1, FC_SSD, 0x40000);
	place(messages, 2, FC_SSD, 0x41000);
	memcpy(messages->spans, spans, sizeof(spans));
	messages->path = (struct fc_path){
		.blocks = 6,
		.stored_blocks = 7,
		.bytes = {4 * 13 + 2 * 7, 2 * 13 + 7 + 2 * 8 + 9},
		.placed = messages->placed,
		.placed_count = 3,
		.spans = messages->spans,
		.span_count = 6,
		.is_leased = true,
	};
}

void messages_init(struct messages *messages)
{
	*messages = (struct messages){.geometry = geometry_hybrid(1), .points = {2, 4}};
	messages->welcome = (struct fc_wire_welcome){
		.version = 1,
		.client = 7,
		.instance = {11, 12},
		.key_salt = {0x1111111111111111ull, 0x2222222222222222ull},
		.area_bytes_max = 4096,
		.requests_max = 64,
		.arenas = {{true, false, 64, 1u << 20}, {true, true, 512, 2u << 20}},
	};
	make_path(messages);
	path_keys(1, 0, messages->keys, 7);
	messages->grants[0].placed = messages->placed[1];
	messages->grants[1].placed = messages->placed[2];
	messages->reservation = (struct fc_reservation){
		.grants = messages->grants,
		.grant_count = 2,
		.sources = messages->path,
		.session = {21, 22},
		.blocks_new = 2,
		.bytes_new = 58,
	};
	/* Sources need not cover what a resume needs. */
	messages->reservation.sources.blocks = messages->reservation.sources.stored_blocks = 0;
	messages->reservation.sources.span_count = 4;
	messages->reservation.sources.bytes[FC_SSD] = 2 * 13 + 7;
}

/* ---- an example of every message ---- */

static int put_hello(const struct messages *messages, struct fc_wire_buffer *buffer)
{
	struct fc_wire_hello hello = {
		.version_min = 1, .version_max = 3, .program = "worker \xc3\xa9", .geometry = messages->geometry};
	snprintf(hello.name_space, sizeof(hello.name_space), "team-a");
	return fc_wire_put_hello(buffer, &hello);
}

static int put_match(const struct messages *messages, struct fc_wire_buffer *buffer)
{
	struct fc_wire_match match = {.blocks_max = 6,
				      .is_leased = true,
				      .keys = messages->keys,
				      .key_count = 7,
				      .salt = messages->welcome.key_salt};
	return fc_wire_put_match(buffer, UINT64_MAX, &match);
}

static int put_turn(const struct messages *messages, struct fc_wire_buffer *buffer)
{
	struct fc_wire_reserve reserve = {
		.salt = messages->welcome.key_salt,
		.turn = {.session = {21, 22},
			 .keys = messages->keys,
			 .key_count = 7,
			 .shared_blocks = 2,
			 .turn = 3,
			 .previous_reply_tokens = 400,
			 .resident = {{0, 7}, {0, 3}, {4, 2}, {5, UINT32_MAX - 5}},
			 .resume_points = messages->points,
			 .resume_point_count = 2},
	};
	return fc_wire_put_reserve(buffer, 5, &reserve);
}

static int put_report(struct fc_wire_buffer *buffer)
{
	struct fc_wire_report report = {
		.loads = 1,
		.saves_failed = UINT64_MAX,
		.bytes_wanted = {2, 3},
		.bytes_written = {4, 5},
		.saves_active = 6,
		.load_time = {{1, [FC_WIRE_TIME_BUCKETS - 1] = UINT64_MAX - 1}, 7},
		.queue_wait = {{0}, UINT64_MAX},
		.waiter_count = FC_WIRE_WAITERS_MAX,
	};
	for (uint32_t i = 0; i < FC_WIRE_WAITERS_MAX; i++)
		report.waiters[i] = (struct fc_wire_waiter){i + 1, 1u << i, 1000 * i, i / 3.0};
	return fc_wire_put_report(buffer, &report);
}

static int put_stated(struct fc_wire_buffer *buffer)
{
	struct fc_stats stats = {.media = {{.bytes = 1}, {.segments_absorbed = 2}}, .dropped_segments = UINT64_MAX};
	return fc_wire_put_stated(buffer, 12, &stats);
}

static const enum fc_wire_type plain_types[] = {
	FC_WIRE_RELEASE, FC_WIRE_FORGET, FC_WIRE_COMMIT, FC_WIRE_ABORT, FC_WIRE_STATS, FC_WIRE_GOODBYE,
};

static int put_example(const struct messages *messages, unsigned number, struct fc_wire_buffer *buffer)
{
	struct fc_error why = {.code = FC_EFULL, .text = "no room"};
	switch (number) {
	case 0:
		return put_hello(messages, buffer);
	case 1:
		return fc_wire_put_welcome(buffer, &messages->welcome);
	case 2:
		return fc_wire_put_refused(buffer, &(struct fc_wire_refused){why, true});
	case 3:
		return put_match(messages, buffer);
	case 4:
		return fc_wire_put_matched(buffer, 3, FC_OK, &messages->path);
	case 5:
		return fc_wire_put_matched(buffer, 4, FC_ENOMEM, NULL);
	case 6:
		return put_turn(messages, buffer);
	case 7:
		return fc_wire_put_reserved(buffer, 5, FC_OK, &messages->reservation, NULL);
	case 8:
		return fc_wire_put_reserved(buffer, 6, FC_EFULL, NULL, &why);
	case 9:
		return fc_wire_put_committed(buffer, 7, &(struct fc_wire_committed){FC_OK, 9, true});
	case 10:
		return fc_wire_put_committed(buffer, 8, &(struct fc_wire_committed){FC_ENOENT, 0, false});
	case 11:
		return fc_wire_put_durable(buffer, 9, FC_EIO);
	case 12:
		return fc_wire_put_damage(buffer, 10, &(struct fc_wire_damage){2, UINT64_MAX, true});
	case 13:
		return put_report(buffer);
	case 14:
		return put_stated(buffer);
	case 15:
		return fc_wire_put_session(buffer, 13, (struct fc_session_id){UINT64_MAX, 1});
	default:
		return fc_wire_put_session_found(buffer, 14, FC_OK, UINT64_MAX);
	}
}

#define EXAMPLES_WITH_BODY 17u

bool messages_put(const struct messages *messages, unsigned number, struct fc_wire_buffer *buffer)
{
	if (number >= EXAMPLES_WITH_BODY + fc_array_len(plain_types))
		return false;
	if (number < EXAMPLES_WITH_BODY) {
		fc_check(put_example(messages, number, buffer) == FC_OK);
		return true;
	}
	enum fc_wire_type type = plain_types[number - EXAMPLES_WITH_BODY];
	fc_check(fc_wire_put_plain(buffer, type, type == FC_WIRE_GOODBYE ? 0 : 20 + number) == FC_OK);
	return true;
}

/* ---- promises ---- */

static void check_placed(const struct decoded *decoded, const struct fc_placed *placed)
{
	const struct fc_geometry *geometry = &decoded->messages->geometry;
	uint64_t entries = 0, offset = fc_gva_offset(placed->base);
	fc_check(placed->segment == NULL && fc_gva_medium(placed->base) < FC_MEDIUM_COUNT);
	const struct fc_wire_arena *arena = &decoded->messages->welcome.arenas[fc_gva_medium(placed->base)];
	fc_check(arena->is_there && placed->align == arena->align && offset % placed->align == 0);
	fc_check(placed->shape->range_count > 0 && placed->shape->range_count <= FC_RANGES_MAX);
	for (uint32_t i = 0; i < placed->shape->range_count; i++) {
		const struct fc_range *range = &placed->shape->ranges[i];
		fc_check(range->group < geometry->group_count && range->count > 0 && range->entry_first == entries);
		fc_check(range->block_first + range->count <= UINT32_MAX);
		entries += range->count;
	}
	fc_check(entries == placed->shape->entry_count && entries <= UINT32_MAX);
	struct fc_layer_area area;
	fc_layer_first(geometry, placed->shape, placed->header_bytes, &area);
	while (fc_layer_next(geometry, placed->shape, placed->align, &area))
		;
	fc_check(offset >= FC_TABLE_OFFSET && offset + area.offset + area.bytes <= arena->bytes);
}

static void check_span(const struct fc_path *path, const struct fc_span *span)
{
	fc_check(span->placed < path->placed_count && span->count > 0);
	const struct fc_shape *shape = path->placed[span->placed].shape;
	for (uint64_t i = 0; i<span->count; i += span->count> 1000 ? span->count - 1 : 1) {
		fc_check(span->entry_first + i < shape->entry_count);
		const struct fc_range *range = fc_shape_range_of(shape, span->entry_first + i);
		fc_check(range == fc_shape_range_of(shape, span->entry_first) && range->group == span->group);
		fc_check(range->block_first + span->entry_first + i - range->entry_first == span->block_first + i);
	}
}

static void check_path(const struct decoded *decoded, const struct fc_path *path, bool is_whole)
{
	const struct fc_geometry *geometry = &decoded->messages->geometry;
	uint64_t blocks[FC_GROUPS_MAX] = {0}, bytes[FC_MEDIUM_COUNT] = {0};
	for (uint32_t i = 0; i < path->placed_count; i++)
		check_placed(decoded, &path->placed[i]);
	for (uint32_t i = 0; i < path->span_count; i++) {
		const struct fc_span *span = &path->spans[i];
		check_span(path, span);
		blocks[span->group] += span->count;
		bytes[fc_gva_medium(path->placed[span->placed].base)] +=
			span->count * fc_group_block_bytes(geometry, span->group);
	}
	fc_check(bytes[FC_MEMORY] == path->bytes[FC_MEMORY] && bytes[FC_SSD] == path->bytes[FC_SSD]);
	fc_check(path->blocks <= path->stored_blocks && path->blocks % fc_resume_granule(geometry) == 0);
	for (uint32_t group = 0; is_whole && group < geometry->group_count; group++) {
		uint64_t first, count;
		fc_group_needed(geometry, group, path->blocks, &first, &count);
		fc_check(blocks[group] == count);
	}
}

static void check_empty(const struct fc_path *path)
{
	fc_check(path->placed_count == 0 && path->span_count == 0 && !path->is_leased);
	fc_check(path->blocks == 0 && path->stored_blocks == 0 && path->bytes[0] == 0 && path->bytes[1] == 0);
}

static void check_text(const char *text, size_t bytes)
{
	fc_check(strnlen(text, bytes) < bytes);
	for (; *text != '\0'; text++)
		fc_check((unsigned char)*text >= ' ' && *text != 127);
}

/* ---- decoding ---- */

void decoded_init(struct decoded *decoded, const struct messages *messages, const struct fc_alloc *alloc)
{
	memset(decoded, 0, sizeof(*decoded));
	decoded->messages = messages;
	decoded->alloc = alloc;
}

void decoded_deinit(struct decoded *decoded)
{
	fc_path_deinit(&decoded->path, decoded->alloc);
	fc_reservation_deinit(&decoded->reservation, decoded->alloc);
	free(decoded->keys);
}

/* Keys taken out with one salt, to be put with it again. */
static const struct fc_key *copy_keys(struct decoded *decoded, const struct fc_wire_keys *keys)
{
	if (keys->count > decoded->key_room) {
		free(decoded->keys);
		decoded->keys = calloc(keys->count, sizeof(*decoded->keys));
		fc_check(decoded->keys != NULL);
		decoded->key_room = keys->count;
	}
	fc_wire_keys_copy(keys, decoded->messages->welcome.key_salt, decoded->keys);
	return decoded->keys;
}

static int any_greeting(uint32_t type, const uint8_t *body, uint64_t bytes, struct fc_wire_buffer *again,
			struct fc_error *error)
{
	struct fc_wire_hello hello;
	struct fc_wire_welcome welcome;
	struct fc_wire_refused refused;
	int code;
	if (type == FC_WIRE_HELLO) {
		code = fc_wire_get_hello(&hello, body, bytes, error);
		if (code != FC_OK)
			return code;
		check_text(hello.name_space, sizeof(hello.name_space));
		check_text(hello.program, sizeof(hello.program));
		fc_check(fc_geometry_check(&hello.geometry, NULL) == FC_OK);
		return fc_wire_put_hello(again, &hello);
	}
	if (type == FC_WIRE_WELCOME) {
		code = fc_wire_get_welcome(&welcome, body, bytes, error);
		return code == FC_OK ? fc_wire_put_welcome(again, &welcome) : code;
	}
	code = fc_wire_get_refused(&refused, body, bytes, error);
	if (code != FC_OK)
		return code;
	check_text(refused.error.text, sizeof(refused.error.text));
	fc_check(refused.error.code < 0 && refused.error.text[0] != '\0');
	return fc_wire_put_refused(again, &refused);
}

static int any_question(struct decoded *decoded, uint32_t type, uint64_t request, const uint8_t *body, uint64_t bytes,
			struct fc_wire_buffer *again, struct fc_error *error)
{
	struct fc_wire_match match;
	struct fc_wire_reserve reserve;
	if (type == FC_WIRE_MATCH) {
		int code = fc_wire_get_match(&match, body, bytes, error);
		if (code != FC_OK)
			return code;
		fc_check(match.found.count == match.key_count && match.key_count <= bytes / 16);
		match.keys = copy_keys(decoded, &match.found);
		match.salt = decoded->messages->welcome.key_salt;
		return fc_wire_put_match(again, request, &match);
	}
	const struct fc_geometry *geometry = &decoded->messages->geometry;
	int code = fc_wire_get_reserve(&reserve, decoded->points, geometry, body, bytes, error);
	if (code != FC_OK)
		return code;
	fc_check(reserve.turn.keys == NULL && reserve.turn.resume_points == decoded->points);
	fc_check(reserve.turn.resume_point_count <= FC_WIRE_POINTS_MAX);
	fc_check(reserve.found.count == reserve.turn.key_count && reserve.turn.key_count <= bytes / 16);
	reserve.turn.keys = copy_keys(decoded, &reserve.found);
	reserve.salt = decoded->messages->welcome.key_salt;
	return fc_wire_put_reserve(again, request, &reserve);
}

static int any_matched(struct decoded *decoded, uint64_t request, const uint8_t *body, uint64_t bytes,
		       struct fc_wire_buffer *again, struct fc_error *error)
{
	struct fc_path *path = &decoded->path;
	int told;
	int code = fc_wire_get_matched(&told, path, &decoded->messages->welcome, &decoded->messages->geometry,
				       decoded->alloc, body, bytes, error);
	if (code != FC_OK || told != FC_OK)
		check_empty(path);
	else
		check_path(decoded, path, true);
	if (code == FC_OK)
		code = fc_wire_put_matched(again, request, told, path);
	path->is_leased = false; /* nobody gave a lease */
	return code;
}

static void check_grants(const struct decoded *decoded, const struct fc_reservation *reservation)
{
	for (uint32_t i = 0; i < reservation->grant_count; i++) {
		const struct fc_placed *placed = &reservation->grants[i].placed;
		struct fc_layer_area area;
		check_placed(decoded, placed);
		fc_layer_first(&decoded->messages->geometry, placed->shape, placed->header_bytes, &area);
		do
			fc_check(area.bytes <= decoded->messages->welcome.area_bytes_max);
		while (fc_layer_next(&decoded->messages->geometry, placed->shape, placed->align, &area));
	}
	check_path(decoded, &reservation->sources, false);
}

static int any_reserved(struct decoded *decoded, uint64_t request, const uint8_t *body, uint64_t bytes,
			struct fc_wire_buffer *again, struct fc_error *error)
{
	struct fc_reservation *reservation = &decoded->reservation;
	struct fc_error why = {0};
	int told;
	int code = fc_wire_get_reserved(&told, reservation, &why, &decoded->messages->welcome,
					&decoded->messages->geometry, decoded->alloc, body, bytes, error);
	if (code != FC_OK || told != FC_OK) {
		fc_check(reservation->grant_count == 0);
		check_empty(&reservation->sources);
	} else {
		check_grants(decoded, reservation);
	}
	if (code == FC_OK && told != FC_OK) {
		check_text(why.text, sizeof(why.text));
		fc_check(why.code == told && why.text[0] != '\0');
	}
	if (code == FC_OK)
		code = fc_wire_put_reserved(again, request, told, reservation, &why);
	reservation->sources.is_leased = false;
	reservation->grant_count = 0;
	return code;
}

static int any_outcome(uint32_t type, uint64_t request, const uint8_t *body, uint64_t bytes,
		       struct fc_wire_buffer *again, struct fc_error *error)
{
	struct fc_wire_committed committed;
	struct fc_wire_damage damage;
	int code, told;
	switch (type) {
	case FC_WIRE_COMMITTED:
		code = fc_wire_get_committed(&committed, body, bytes, error);
		return code == FC_OK ? fc_wire_put_committed(again, request, &committed) : code;
	case FC_WIRE_DURABLE:
		code = fc_wire_get_durable(&told, body, bytes, error);
		return code == FC_OK ? fc_wire_put_durable(again, request, told) : code;
	default:
		code = fc_wire_get_damage(&damage, body, bytes, error);
		return code == FC_OK ? fc_wire_put_damage(again, request, &damage) : code;
	}
}

static int any_figures(uint32_t type, uint64_t request, const uint8_t *body, uint64_t bytes,
		       struct fc_wire_buffer *again, struct fc_error *error)
{
	struct fc_wire_report report;
	struct fc_session_id id;
	struct fc_stats stats;
	uint64_t blocks;
	int code, told;
	switch (type) {
	case FC_WIRE_STATED:
		code = fc_wire_get_stated(&stats, body, bytes, error);
		return code == FC_OK ? fc_wire_put_stated(again, request, &stats) : code;
	case FC_WIRE_SESSION:
		code = fc_wire_get_session(&id, body, bytes, error);
		return code == FC_OK ? fc_wire_put_session(again, request, id) : code;
	case FC_WIRE_SESSION_FOUND:
		code = fc_wire_get_session_found(&told, &blocks, body, bytes, error);
		return code == FC_OK ? fc_wire_put_session_found(again, request, told, blocks) : code;
	default:
		code = fc_wire_get_report(&report, body, bytes, error);
		for (uint32_t i = 0; code == FC_OK && i < report.waiter_count; i++)
			fc_check(isfinite(report.waiters[i].priority) && report.waiters[i].priority >= 0);
		return code == FC_OK ? fc_wire_put_report(again, &report) : code;
	}
}

static int get_any(struct decoded *decoded, uint32_t type, uint64_t request, const uint8_t *body, uint64_t bytes,
		   struct fc_wire_buffer *again, struct fc_error *error)
{
	switch (type) {
	case FC_WIRE_HELLO:
	case FC_WIRE_WELCOME:
	case FC_WIRE_REFUSED:
		return any_greeting(type, body, bytes, again, error);
	case FC_WIRE_MATCH:
	case FC_WIRE_RESERVE:
		return any_question(decoded, type, request, body, bytes, again, error);
	case FC_WIRE_MATCHED:
		return any_matched(decoded, request, body, bytes, again, error);
	case FC_WIRE_RESERVED:
		return any_reserved(decoded, request, body, bytes, again, error);
	case FC_WIRE_COMMITTED:
	case FC_WIRE_DURABLE:
	case FC_WIRE_DAMAGE:
		return any_outcome(type, request, body, bytes, again, error);
	case FC_WIRE_STATED:
	case FC_WIRE_SESSION:
	case FC_WIRE_SESSION_FOUND:
	case FC_WIRE_REPORT:
		return any_figures(type, request, body, bytes, again, error);
	default:
		fc_check(bytes == 0); /* the header says so */
		return fc_wire_put_plain(again, type, request);
	}
}

/* A later version's statistics may have fields that are not known here. */
static bool has_more(uint32_t type, uint64_t bytes, uint64_t again_bytes)
{
	return type == FC_WIRE_STATED && bytes > again_bytes;
}

int decode_any(struct decoded *decoded, uint32_t type, uint64_t request, const uint8_t *body, uint64_t bytes,
	       struct fc_wire_buffer *again, struct fc_error *error)
{
	uint64_t used = again->used;
	int code = get_any(decoded, type, request, body, bytes, again, error);
	if (code != FC_OK) {
		fc_check(again->used == used);
		return code;
	}
	const uint8_t *frame = again->bytes + used;
	uint64_t again_bytes = again->used - used - FC_WIRE_HEADER_BYTES;
	if (has_more(type, bytes, again_bytes))
		return FC_OK;
	fc_check(again_bytes == bytes && (bytes == 0 || memcmp(frame + FC_WIRE_HEADER_BYTES, body, bytes) == 0));
	return FC_OK;
}

/* A turn on its way to be written: RESERVE and its answer, then COMMIT's. */
#include "wire/codec.h"

#include "base/check.h"

/* ---- RESERVE ---- */

static bool is_range_possible(uint64_t first, uint64_t count)
{
	return first <= UINT32_MAX && count <= UINT32_MAX - first;
}

int fc_wire_put_reserve(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_wire_reserve *reserve)
{
	const struct fc_turn *turn = &reserve->turn;
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_RESERVE, request);
	fc_put_u64(&writer, turn->session.high);
	fc_put_u64(&writer, turn->session.low);
	fc_put_u64(&writer, turn->shared_blocks);
	fc_put_u64(&writer, turn->turn);
	fc_put_u64(&writer, turn->previous_reply_tokens);
	fc_put_u64(&writer, turn->key_count);
	fc_put_u64(&writer, turn->resume_point_count);
	for (uint32_t group = 0; group < FC_GROUPS_MAX; group++) {
		if (!is_range_possible(turn->resident[group].first_block, turn->resident[group].count))
			fc_writer_fail(&writer, FC_EINVAL);
		fc_put_u64(&writer, turn->resident[group].first_block);
		fc_put_u64(&writer, turn->resident[group].count);
	}
	if (turn->resume_point_count > FC_WIRE_POINTS_MAX)
		fc_writer_fail(&writer, FC_ELIMIT);
	for (uint64_t i = 0; i < turn->resume_point_count && writer.code == FC_OK; i++)
		fc_put_u64(&writer, turn->resume_points[i]);
	fc_put_keys(&writer, turn->keys, turn->key_count, reserve->salt);
	return fc_writer_end(&writer);
}

static void take_resident(struct fc_reader *reader, struct fc_turn *turn, uint32_t group, uint32_t group_count)
{
	uint64_t first = fc_take_u64(reader, "first resident block");
	uint64_t count = fc_take_u64(reader, "resident blocks");
	turn->resident[group].first_block = first;
	turn->resident[group].count = count;
	if (!is_range_possible(first, count))
		fc_reader_fail(reader, "%llu resident blocks of group %u from block %llu on", (unsigned long long)count,
			       group, (unsigned long long)first);
	if (group >= group_count && (first != 0 || count != 0))
		fc_reader_fail(reader, "resident blocks of group %u; the geometry has %u", group, group_count);
}

int fc_wire_get_reserve(struct fc_wire_reserve *reserve, uint64_t *points, const struct fc_geometry *geometry,
			const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_turn *turn = &reserve->turn;
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_RESERVE, body, bytes, error);
	*reserve = (struct fc_wire_reserve){0};
	turn->session.high = fc_take_u64(&reader, "session");
	turn->session.low = fc_take_u64(&reader, "session");
	turn->shared_blocks = fc_take_u64(&reader, "shared blocks");
	turn->turn = fc_take_u64(&reader, "turn");
	turn->previous_reply_tokens = fc_take_u64(&reader, "tokens of the previous reply");
	turn->key_count = fc_take_u64(&reader, "number of keys");
	turn->resume_point_count = fc_take_u64(&reader, "number of resume points");
	turn->resume_points = points;
	for (uint32_t group = 0; group < FC_GROUPS_MAX; group++)
		take_resident(&reader, turn, group, geometry->group_count);
	if (turn->resume_point_count > FC_WIRE_POINTS_MAX)
		fc_reader_fail(&reader, "%llu resume points; at most %u are allowed",
			       (unsigned long long)turn->resume_point_count, FC_WIRE_POINTS_MAX);
	for (uint64_t i = 0; i < turn->resume_point_count && reader.code == FC_OK; i++)
		points[i] = fc_take_u64(&reader, "resume point");
	fc_take_keys(&reader, turn->key_count, &reserve->found);
	return fc_reader_end(&reader);
}

/* ---- RESERVED ---- */

static void put_reservation(struct fc_writer *writer, const struct fc_reservation *reservation)
{
	uint64_t range_count = 0;
	for (uint32_t i = 0; i < reservation->grant_count; i++)
		range_count += fc_count_ranges(&reservation->grants[i].placed);
	fc_put_u64(writer, reservation->session.high);
	fc_put_u64(writer, reservation->session.low);
	fc_put_u64(writer, reservation->blocks_new);
	fc_put_u64(writer, reservation->bytes_new);
	fc_put_u64(writer, reservation->grant_count);
	fc_put_u64(writer, range_count);
	for (uint32_t i = 0; i < reservation->grant_count; i++)
		fc_put_placed(writer, &reservation->grants[i].placed);
	fc_put_path(writer, &reservation->sources);
}

int fc_wire_put_reserved(struct fc_wire_buffer *buffer, uint64_t request, int code,
			 const struct fc_reservation *reservation, const struct fc_error *why)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_RESERVED, request);
	fc_put_error_head(&writer, code, why);
	if (code == FC_OK)
		put_reservation(&writer, reservation);
	else
		fc_put_error_text(&writer, code, why);
	return fc_writer_end(&writer);
}

/* What a window cannot take cannot be written. */
static void check_areas(struct fc_reader *reader, const struct fc_placing *placing, const struct fc_placed *placed)
{
	struct fc_layer_area area;
	fc_layer_first(placing->geometry, placed->shape, placed->header_bytes, &area);
	do {
		if (area.bytes > placing->welcome->area_bytes_max)
			fc_reader_fail(reader, "layer %u of a grant has %llu bytes; at most %llu are allowed",
				       area.layer, (unsigned long long)area.bytes,
				       (unsigned long long)placing->welcome->area_bytes_max);
	} while (reader->code == FC_OK && fc_layer_next(placing->geometry, placed->shape, placed->align, &area));
}

static void take_grants(struct fc_reader *reader, const struct fc_placing *placing, struct fc_reservation *reservation)
{
	uint64_t grant_count = fc_take_u64(reader, "number of grants");
	uint64_t range_count = fc_take_u64(reader, "number of ranges");
	struct fc_shape_cursor cursor;
	fc_shape_cursor_begin(&cursor, reader, placing, &reservation->shapes, grant_count, range_count);
	if (reader->code != FC_OK)
		return;
	if (fc_alloc_reserve(placing->alloc, (void **)&reservation->grants, &reservation->grant_room, grant_count,
			     sizeof(*reservation->grants)) != FC_OK) {
		fc_reader_no_memory(reader);
		return;
	}
	for (uint64_t i = 0; i < grant_count && reader->code == FC_OK; i++) {
		struct fc_placed *placed = &reservation->grants[i].placed;
		fc_take_placed(reader, placing, &cursor, placed);
		if (reader->code == FC_OK)
			check_areas(reader, placing, placed);
	}
	fc_shape_cursor_end(&cursor, reader);
	reservation->grant_count = (uint32_t)grant_count;
}

static void empty_reservation(struct fc_reservation *reservation)
{
	reservation->grant_count = 0;
	reservation->blocks_new = reservation->bytes_new = 0;
	fc_wire_path_empty(&reservation->sources);
}

int fc_wire_get_reserved(int *code, struct fc_reservation *reservation, struct fc_error *why,
			 const struct fc_wire_welcome *welcome, const struct fc_geometry *geometry,
			 const struct fc_alloc *alloc, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_placing placing = {welcome, geometry, alloc};
	struct fc_reader reader;
	uint32_t text_bytes;
	fc_check(reservation->grant_count == 0 && !reservation->sources.is_leased);
	empty_reservation(reservation);
	fc_reader_begin(&reader, FC_WIRE_RESERVED, body, bytes, error);
	*code = fc_take_error_head(&reader, &text_bytes);
	if (*code != FC_OK) {
		fc_take_error_text(&reader, *code, text_bytes, why);
	} else if (reader.code == FC_OK) {
		reservation->session.high = fc_take_u64(&reader, "session");
		reservation->session.low = fc_take_u64(&reader, "session");
		reservation->blocks_new = fc_take_u64(&reader, "new blocks");
		reservation->bytes_new = fc_take_u64(&reader, "new bytes");
		take_grants(&reader, &placing, reservation);
		fc_take_path(&reader, &placing, false, &reservation->sources);
	}
	int outcome = fc_reader_end(&reader);
	if (outcome != FC_OK)
		empty_reservation(reservation);
	return outcome;
}

/* ---- COMMITTED, DURABLE ---- */

int fc_wire_put_committed(struct fc_wire_buffer *buffer, uint64_t request, const struct fc_wire_committed *committed)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_COMMITTED, request);
	fc_put_u32(&writer, (uint32_t)committed->code);
	fc_put_u32(&writer, committed->is_durable_coming);
	fc_put_u64(&writer, committed->segments_absorbed);
	return fc_writer_end(&writer);
}

int fc_wire_get_committed(struct fc_wire_committed *committed, const uint8_t *body, uint64_t bytes,
			  struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_COMMITTED, body, bytes, error);
	committed->code = fc_take_code(&reader);
	committed->is_durable_coming = fc_take_bool(&reader, "durable is coming");
	committed->segments_absorbed = fc_take_u64(&reader, "absorbed segments");
	if (committed->code != FC_OK && committed->is_durable_coming)
		fc_reader_fail(&reader, "code %d, but it will be durable", committed->code);
	return fc_reader_end(&reader);
}

int fc_wire_put_durable(struct fc_wire_buffer *buffer, uint64_t request, int code)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_DURABLE, request);
	fc_put_u32(&writer, (uint32_t)code);
	fc_put_u32(&writer, 0);
	return fc_writer_end(&writer);
}

int fc_wire_get_durable(int *code, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_DURABLE, body, bytes, error);
	*code = fc_take_code(&reader);
	fc_take_zero(&reader);
	return fc_reader_end(&reader);
}

/* How a connection begins: HELLO, and the answer to it. */
#include "wire/codec.h"

#include "base/check.h"
#include "base/error.h"
#include "base/plant.h"

/* ---- HELLO ---- */

int fc_wire_put_hello(struct fc_wire_buffer *buffer, const struct fc_wire_hello *hello)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_HELLO, 0);
	fc_put_u32(&writer, hello->version_min);
	fc_put_u32(&writer, hello->version_max);
	fc_put_name(&writer, hello->name_space, sizeof(hello->name_space));
	fc_put_name(&writer, hello->program, sizeof(hello->program));
	fc_put_geometry(&writer, &hello->geometry);
	return fc_writer_end(&writer);
}

int fc_wire_get_hello(struct fc_wire_hello *hello, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	fc_reader_begin(&reader, FC_WIRE_HELLO, body, bytes, error);
	hello->version_min = fc_take_u32(&reader, "least version");
	hello->version_max = fc_take_u32(&reader, "highest version");
	if (hello->version_min == 0 || hello->version_min > hello->version_max)
		fc_reader_fail(&reader, "versions %u to %u", hello->version_min, hello->version_max);
	fc_take_name(&reader, hello->name_space, sizeof(hello->name_space), "namespace");
	fc_take_name(&reader, hello->program, sizeof(hello->program), "name of the program");
	fc_take_geometry(&reader, &hello->geometry);
	return fc_reader_end(&reader);
}

int fc_wire_choose_version(const struct fc_wire_hello *hello, uint32_t *version, struct fc_error *error)
{
	uint32_t highest = (uint32_t)fc_min_u64(hello->version_max, FC_WIRE_VERSION_MAX);
	if (fc_is_planted(FC_PLANT_ANY_VERSION))
		highest = FC_WIRE_VERSION_MAX;
	else if (highest < hello->version_min || highest < FC_WIRE_VERSION_MIN)
		return fc_error_set(error, FC_EINVAL,
				    "the client speaks versions %u to %u of the protocol, the daemon %u to %u",
				    hello->version_min, hello->version_max, FC_WIRE_VERSION_MIN, FC_WIRE_VERSION_MAX);
	*version = highest;
	return FC_OK;
}

/* ---- WELCOME ---- */

int fc_wire_put_welcome(struct fc_wire_buffer *buffer, const struct fc_wire_welcome *welcome)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, FC_WIRE_WELCOME, 0);
	fc_put_u32(&writer, welcome->version);
	fc_put_u32(&writer, welcome->requests_max);
	fc_put_u64(&writer, welcome->client);
	fc_put_u64(&writer, welcome->instance.high);
	fc_put_u64(&writer, welcome->instance.low);
	fc_put_u64(&writer, welcome->key_salt.high);
	fc_put_u64(&writer, welcome->key_salt.low);
	fc_put_u64(&writer, welcome->area_bytes_max);
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		const struct fc_wire_arena *arena = &welcome->arenas[medium];
		fc_put_u32(&writer, arena->is_there);
		fc_put_u32(&writer, arena->is_durable);
		fc_put_u32(&writer, arena->align);
		fc_put_u32(&writer, 0);
		fc_put_u64(&writer, arena->bytes);
	}
	return fc_writer_end(&writer);
}

static void take_arena(struct fc_reader *reader, uint32_t medium, struct fc_wire_arena *arena)
{
	arena->is_there = fc_take_bool(reader, "arena: there");
	arena->is_durable = fc_take_bool(reader, "arena: durable");
	arena->align = fc_take_u32(reader, "arena: alignment");
	fc_take_zero(reader);
	arena->bytes = fc_take_u64(reader, "arena: bytes");
	if (!arena->is_there) {
		if (arena->is_durable || arena->align != 0 || arena->bytes != 0)
			fc_reader_fail(reader, "arena %u is not there, but is described", medium);
		return;
	}
	if (!fc_is_power_of_two(arena->align) || arena->align > FC_TABLE_PAGE_BYTES)
		fc_reader_fail(reader, "arena %u: alignment of %u bytes; a power of two up to %u is allowed", medium,
			       arena->align, FC_TABLE_PAGE_BYTES);
	if (arena->bytes > 1ull << FC_GVA_OFFSET_BITS)
		fc_reader_fail(reader, "arena %u: %llu bytes; at most 2^%d can be named", medium,
			       (unsigned long long)arena->bytes, FC_GVA_OFFSET_BITS);
}

int fc_wire_get_welcome(struct fc_wire_welcome *welcome, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	bool has_arena = false;
	fc_reader_begin(&reader, FC_WIRE_WELCOME, body, bytes, error);
	welcome->version = fc_take_u32(&reader, "version");
	welcome->requests_max = fc_take_u32(&reader, "most requests");
	welcome->client = fc_take_u64(&reader, "client");
	welcome->instance.high = fc_take_u64(&reader, "instance");
	welcome->instance.low = fc_take_u64(&reader, "instance");
	welcome->key_salt.high = fc_take_u64(&reader, "salt");
	welcome->key_salt.low = fc_take_u64(&reader, "salt");
	welcome->area_bytes_max = fc_take_u64(&reader, "longest layer");
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		take_arena(&reader, medium, &welcome->arenas[medium]);
		has_arena = has_arena || welcome->arenas[medium].is_there;
	}
	if (welcome->version < FC_WIRE_VERSION_MIN || welcome->version > FC_WIRE_VERSION_MAX)
		fc_reader_fail(&reader, "version %u of the protocol; this program speaks %u to %u", welcome->version,
			       FC_WIRE_VERSION_MIN, FC_WIRE_VERSION_MAX);
	if (welcome->requests_max == 0 || welcome->area_bytes_max == 0)
		fc_reader_fail(&reader, "%u requests and %llu bytes of a layer; neither may be 0",
			       welcome->requests_max, (unsigned long long)welcome->area_bytes_max);
	if (!has_arena)
		fc_reader_fail(&reader, "no arena");
	return fc_reader_end(&reader);
}

/* ---- REFUSED ---- */

int fc_wire_put_refused(struct fc_wire_buffer *buffer, const struct fc_wire_refused *refused)
{
	struct fc_writer writer;
	fc_check(refused->error.code != FC_OK);
	fc_writer_begin(&writer, buffer, FC_WIRE_REFUSED, 0);
	fc_put_error_head(&writer, refused->error.code, &refused->error);
	fc_put_u32(&writer, refused->is_final);
	fc_put_u32(&writer, 0);
	fc_put_error_text(&writer, refused->error.code, &refused->error);
	return fc_writer_end(&writer);
}

int fc_wire_get_refused(struct fc_wire_refused *refused, const uint8_t *body, uint64_t bytes, struct fc_error *error)
{
	struct fc_reader reader;
	uint32_t text_bytes;
	fc_reader_begin(&reader, FC_WIRE_REFUSED, body, bytes, error);
	int code = fc_take_error_head(&reader, &text_bytes);
	refused->is_final = fc_take_bool(&reader, "final");
	fc_take_zero(&reader);
	if (code == FC_OK)
		fc_reader_fail(&reader, "no reason");
	fc_take_error_text(&reader, code, text_bytes, &refused->error);
	return fc_reader_end(&reader);
}

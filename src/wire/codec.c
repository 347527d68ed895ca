/* Numbers, texts, keys and geometries as bytes, in both directions; see codec.h. */
#include "wire/codec.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

/* Place for `count` bytes, NULL after a failure. */
static uint8_t *extend(struct fc_writer *writer, uint64_t count)
{
	struct fc_wire_buffer *buffer = writer->buffer;
	uint64_t body_bytes = buffer->used - writer->frame_at;
	if (writer->code != FC_OK)
		return NULL;
	if (count > FC_WIRE_HEADER_BYTES + FC_WIRE_BODY_BYTES_MAX - body_bytes)
		writer->code = FC_ELIMIT;
	else
		writer->code = fc_wire_buffer_room(buffer, count);
	if (writer->code != FC_OK)
		return NULL;
	uint8_t *place = buffer->bytes + buffer->used;
	buffer->used += count;
	return place;
}

void fc_writer_begin(struct fc_writer *writer, struct fc_wire_buffer *buffer, enum fc_wire_type type, uint64_t request)
{
	*writer = (struct fc_writer){.buffer = buffer, .frame_at = buffer->used};
	uint8_t *header = extend(writer, FC_WIRE_HEADER_BYTES);
	if (header == NULL)
		return;
	fc_store_u32(header, FC_WIRE_MAGIC);
	fc_store_u16(header + 4, type);
	fc_store_u16(header + 6, 0);
	fc_store_u64(header + 8, 0); /* of the body: when its length is known */
	fc_store_u64(header + 16, request);
}

int fc_writer_end(struct fc_writer *writer)
{
	struct fc_wire_buffer *buffer = writer->buffer;
	if (writer->code != FC_OK) {
		buffer->used = writer->frame_at;
		return writer->code;
	}
	uint8_t *frame = buffer->bytes + writer->frame_at;
	fc_store_u64(frame + 8, buffer->used - writer->frame_at - FC_WIRE_HEADER_BYTES);
	struct fc_wire_header header;
	fc_check(fc_wire_header_decode(&header, frame, NULL) == FC_OK);
	return FC_OK;
}

void fc_writer_fail(struct fc_writer *writer, int code)
{
	if (writer->code == FC_OK)
		writer->code = code;
}

void fc_put_u32(struct fc_writer *writer, uint32_t value)
{
	uint8_t *place = extend(writer, sizeof(value));
	if (place != NULL)
		fc_store_u32(place, value);
}

void fc_put_u64(struct fc_writer *writer, uint64_t value)
{
	uint8_t *place = extend(writer, sizeof(value));
	if (place != NULL)
		fc_store_u64(place, value);
}

void fc_put_double(struct fc_writer *writer, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	fc_put_u64(writer, bits);
}

void fc_put_name(struct fc_writer *writer, const char *name, size_t bytes)
{
	size_t length = strnlen(name, bytes);
	fc_check(length < bytes);
	uint8_t *place = extend(writer, bytes);
	if (place == NULL)
		return;
	memcpy(place, name, length);
	memset(place + length, 0, bytes - length);
}

int fc_wire_put_plain(struct fc_wire_buffer *buffer, enum fc_wire_type type, uint64_t request)
{
	struct fc_writer writer;
	fc_writer_begin(&writer, buffer, type, request);
	return fc_writer_end(&writer);
}

/* ---- keys ---- */

void fc_put_keys(struct fc_writer *writer, const struct fc_key *keys, uint64_t count, struct fc_key salt)
{
	uint64_t bytes;
	if (fc_mul_overflows(count, sizeof(*keys), &bytes)) {
		fc_writer_fail(writer, FC_ELIMIT);
		return;
	}
	uint8_t *place = extend(writer, bytes);
	for (uint64_t i = 0; place != NULL && i < count; i++, place += sizeof(*keys)) {
		fc_store_u64(place, keys[i].high ^ salt.high);
		fc_store_u64(place + 8, keys[i].low ^ salt.low);
	}
}

void fc_wire_keys_copy(const struct fc_wire_keys *keys, struct fc_key salt, struct fc_key *to)
{
	const uint8_t *place = keys->bytes;
	for (uint64_t i = 0; i < keys->count; i++, place += sizeof(*to)) {
		to[i].high = fc_load_u64(place) ^ salt.high;
		to[i].low = fc_load_u64(place + 8) ^ salt.low;
	}
}

/* ---- texts ---- */

static bool continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Reads one letter of `left` (> 0) bytes of UTF-8; returns its length, or 0 when it is not well-formed. */
static size_t read_letter(const uint8_t *text, size_t left, uint32_t *letter)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	if (length == 0 || length > left || text[0] > 0xf4)
		return 0;
	*letter = length == 1 ? text[0] : text[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if (!continues(text[i]))
			return 0;
		*letter = *letter << 6 | (text[i] & 0x3f);
	}
	bool is_surrogate = *letter >= 0xd800 && *letter < 0xe000;
	return *letter < least[length] || *letter > 0x10ffff || is_surrogate ? 0 : length;
}

/* Controls, line ends, and what changes the direction of writing could forge lines of a log. */
static bool is_printable(uint32_t letter)
{
	return letter >= 0x20 && !(letter >= 0x7f && letter < 0xa0) && !(letter >= 0x2028 && letter <= 0x202e) &&
	       !(letter >= 0x2066 && letter <= 0x2069);
}

/* Length of the printable letter at the front, 0 if there is none. */
static size_t printable_letter(const uint8_t *text, size_t left)
{
	uint32_t letter;
	size_t length = read_letter(text, left, &letter);
	return length > 0 && is_printable(letter) ? length : 0;
}

/* Bytes in front of the first that is not part of a printable letter. */
static size_t printable_bytes(const uint8_t *text, size_t bytes)
{
	size_t at = 0, length;
	while (at < bytes && (length = printable_letter(text + at, bytes - at)) > 0)
		at += length;
	return at;
}

bool fc_wire_is_printable(const char *text)
{
	size_t bytes = strlen(text);
	return printable_bytes((const uint8_t *)text, bytes) == bytes;
}

/* ---- errors and geometries, written ---- */

static const char *text_of(int code, const struct fc_error *error)
{
	return error != NULL && error->text[0] != '\0' ? error->text : fc_code_text(code);
}

static uint32_t text_bytes_of(int code, const struct fc_error *error)
{
	return code == FC_OK ? 0 : (uint32_t)strnlen(text_of(code, error), FC_WIRE_ERROR_BYTES_MAX);
}

void fc_put_error_head(struct fc_writer *writer, int code, const struct fc_error *error)
{
	fc_put_u32(writer, (uint32_t)code);
	fc_put_u32(writer, text_bytes_of(code, error));
}

void fc_put_error_text(struct fc_writer *writer, int code, const struct fc_error *error)
{
	uint32_t bytes = text_bytes_of(code, error);
	uint8_t *place = extend(writer, bytes);
	if (place == NULL || bytes == 0)
		return;
	memcpy(place, text_of(code, error), bytes);
	for (size_t at = 0; (at += printable_bytes(place + at, bytes - at)) < bytes;)
		place[at] = '?';
}

void fc_put_geometry(struct fc_writer *writer, const struct fc_geometry *geometry)
{
	fc_put_name(writer, geometry->name, sizeof(geometry->name));
	fc_put_u32(writer, geometry->block_tokens);
	fc_put_u32(writer, geometry->layer_count);
	fc_put_u32(writer, geometry->group_count);
	fc_put_u32(writer, 0);
	for (uint32_t i = 0; i < geometry->group_count; i++) {
		const struct fc_group *group = &geometry->groups[i];
		fc_put_u32(writer, (uint32_t)group->rule);
		fc_put_u32(writer, group->tokens_per_block);
		fc_put_u32(writer, group->window_tokens);
		fc_put_u32(writer, 0);
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			fc_put_u64(writer, group->slice_bytes[layer]);
	}
}

/* ---- reading ---- */

void fc_reader_begin(struct fc_reader *reader, enum fc_wire_type type, const uint8_t *body, uint64_t bytes,
		     struct fc_error *error)
{
	fc_check(bytes <= FC_WIRE_BODY_BYTES_MAX);
	*reader = (struct fc_reader){.type = type, .body = body, .bytes = bytes, .error = error};
}

int fc_reader_end(struct fc_reader *reader)
{
	if (fc_reader_left(reader) > 0)
		fc_reader_fail(reader, "%llu bytes behind its end at byte %llu",
			       (unsigned long long)fc_reader_left(reader), (unsigned long long)reader->at);
	return reader->code;
}

void fc_reader_fail(struct fc_reader *reader, const char *format, ...)
{
	if (reader->code != FC_OK)
		return;
	char text[FC_ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	reader->code = fc_error_set(reader->error, FC_EFORMAT, "%s: %s", fc_wire_type_name(reader->type), text);
}

void fc_reader_no_memory(struct fc_reader *reader)
{
	if (reader->code == FC_OK)
		reader->code = fc_error_set(reader->error, FC_ENOMEM, "%s: %s", fc_wire_type_name(reader->type),
					    fc_code_text(FC_ENOMEM));
}

const uint8_t *fc_take_bytes(struct fc_reader *reader, uint64_t count, const char *field)
{
	if (count > fc_reader_left(reader))
		fc_reader_fail(reader, "%s at byte %llu has %llu bytes; %llu are left", field,
			       (unsigned long long)reader->at, (unsigned long long)count,
			       (unsigned long long)fc_reader_left(reader));
	if (reader->code != FC_OK)
		return NULL;
	const uint8_t *place = reader->body + reader->at;
	reader->at += count;
	return place;
}

uint32_t fc_take_u32(struct fc_reader *reader, const char *field)
{
	const uint8_t *place = fc_take_bytes(reader, sizeof(uint32_t), field);
	return place == NULL ? 0 : fc_load_u32(place);
}

uint64_t fc_take_u64(struct fc_reader *reader, const char *field)
{
	const uint8_t *place = fc_take_bytes(reader, sizeof(uint64_t), field);
	return place == NULL ? 0 : fc_load_u64(place);
}

bool fc_take_bool(struct fc_reader *reader, const char *field)
{
	uint32_t value = fc_take_u32(reader, field);
	if (value > 1)
		fc_reader_fail(reader, "%s is %u; allowed are 0 and 1", field, value);
	return value == 1;
}

double fc_take_double(struct fc_reader *reader, const char *field)
{
	uint64_t bits = fc_take_u64(reader, field);
	double value;
	memcpy(&value, &bits, sizeof(value));
	if (isfinite(value) && !signbit(value))
		return value;
	fc_reader_fail(reader, "%s is %g; a finite number from 0 is allowed", field, value);
	return 0;
}

int fc_take_code(struct fc_reader *reader)
{
	uint32_t bits = fc_take_u32(reader, "code");
	int64_t code = bits > INT32_MAX ? (int64_t)bits - ((int64_t)UINT32_MAX + 1) : bits;
	if (code <= FC_OK && code >= FC_WIRE_CODE_LEAST)
		return (int)code;
	fc_reader_fail(reader, "code %lld; allowed are 0 to %d", (long long)code, FC_WIRE_CODE_LEAST);
	return FC_OK;
}

void fc_take_zero(struct fc_reader *reader)
{
	uint64_t at = reader->at;
	uint32_t value = fc_take_u32(reader, "what is reserved");
	if (value != 0)
		fc_reader_fail(reader, "0x%x at byte %llu, which is reserved and must be 0", value,
			       (unsigned long long)at);
}

void fc_take_name(struct fc_reader *reader, char *name, size_t bytes, const char *field)
{
	memset(name, 0, bytes);
	const uint8_t *place = fc_take_bytes(reader, bytes, field);
	if (place == NULL)
		return;
	size_t length = strnlen((const char *)place, bytes), printable = printable_bytes(place, length);
	if (length == bytes)
		fc_reader_fail(reader, "%s does not end within %zu bytes", field, bytes);
	else if (printable < length)
		fc_reader_fail(reader, "%s holds byte 0x%02x at %zu; printable UTF-8 is allowed", field,
			       place[printable], printable);
	for (size_t i = length; i < bytes; i++)
		if (place[i] != 0)
			fc_reader_fail(reader, "%s goes on behind its end", field);
	if (reader->code == FC_OK)
		memcpy(name, place, length);
}

static void take_group(struct fc_reader *reader, struct fc_group *group, uint32_t layer_count)
{
	group->rule = (enum fc_rule)fc_take_u32(reader, "rule of a group");
	group->tokens_per_block = fc_take_u32(reader, "tokens of a block");
	group->window_tokens = fc_take_u32(reader, "tokens of a window");
	fc_take_zero(reader);
	for (uint32_t layer = 0; layer < layer_count && reader->code == FC_OK; layer++)
		group->slice_bytes[layer] = fc_take_u64(reader, "bytes of a slice");
}

void fc_take_geometry(struct fc_reader *reader, struct fc_geometry *geometry)
{
	struct fc_error why;
	*geometry = (struct fc_geometry){0};
	fc_take_name(reader, geometry->name, sizeof(geometry->name), "name of the geometry");
	geometry->block_tokens = fc_take_u32(reader, "tokens of a block");
	geometry->layer_count = fc_take_u32(reader, "number of layers");
	geometry->group_count = fc_take_u32(reader, "number of groups");
	fc_take_zero(reader);
	if (geometry->layer_count > FC_LAYERS_MAX || geometry->group_count > FC_GROUPS_MAX)
		fc_reader_fail(reader, "%u layers and %u groups; at most %d and %d are allowed", geometry->layer_count,
			       geometry->group_count, FC_LAYERS_MAX, FC_GROUPS_MAX);
	for (uint32_t i = 0; i < geometry->group_count && reader->code == FC_OK; i++)
		take_group(reader, &geometry->groups[i], geometry->layer_count);
	if (reader->code == FC_OK && fc_geometry_check(geometry, &why) != FC_OK)
		fc_reader_fail(reader, "%s", why.text);
}

int fc_take_error_head(struct fc_reader *reader, uint32_t *text_bytes)
{
	int code = fc_take_code(reader);
	*text_bytes = fc_take_u32(reader, "length of the text");
	if (*text_bytes > FC_WIRE_ERROR_BYTES_MAX)
		fc_reader_fail(reader, "text of %u bytes; at most %u are allowed", *text_bytes,
			       FC_WIRE_ERROR_BYTES_MAX);
	if ((code == FC_OK) != (*text_bytes == 0))
		fc_reader_fail(reader, "code %d with a text of %u bytes", code, *text_bytes);
	return code;
}

void fc_take_error_text(struct fc_reader *reader, int code, uint32_t text_bytes, struct fc_error *to)
{
	const uint8_t *place = fc_take_bytes(reader, text_bytes, "text");
	if (place == NULL)
		return;
	size_t printable = printable_bytes(place, text_bytes);
	if (printable < text_bytes)
		fc_reader_fail(reader, "text holds byte 0x%02x at %zu; printable UTF-8 is allowed", place[printable],
			       printable);
	if (reader->code == FC_OK)
		fc_error_set(to, code, "%.*s", (int)text_bytes, (const char *)place);
}

void fc_take_keys(struct fc_reader *reader, uint64_t count, struct fc_wire_keys *keys)
{
	*keys = (struct fc_wire_keys){0};
	if (count > fc_reader_left(reader) / sizeof(struct fc_key))
		fc_reader_fail(reader, "%llu keys in %llu bytes", (unsigned long long)count,
			       (unsigned long long)fc_reader_left(reader));
	else
		*keys = (struct fc_wire_keys){fc_take_bytes(reader, count * sizeof(struct fc_key), "keys"), count};
	if (reader->code != FC_OK)
		*keys = (struct fc_wire_keys){0};
}

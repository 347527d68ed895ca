/* Frames: the header in front of every message, and the buffers that frames are appended to and taken from.
 *
 * A buffer is a piece of memory with what is in it somewhere in the middle:
 *
 *     | front (dropped) | bytes: used | free |        room in all
 *
 * so that taking a frame off the front costs nothing however many wait behind it; they are moved to the beginning when
 * room runs out and no more is to be moved than has been dropped. */
#include "wire/codec.h"

#include "base/check.h"

#include <string.h>

#define ROOM_FIRST_BYTES 4096u
/* An empty buffer keeps no more: 14,000 keys are 224 kB. */
#define KEPT_BYTES_MAX (1u << 20)

/* ---- types ---- */

struct kind {
	const char *name;
	uint64_t body_bytes_max;
	bool is_about_request;
};

#define PLAIN(name)                                                                                                    \
	{                                                                                                              \
		name, 0, true                                                                                          \
	}

static const struct kind kinds[] = {
	[FC_WIRE_HELLO] = {"HELLO", 8 + FC_WIRE_NAMESPACE_BYTES + FC_NAME_BYTES + FC_WIRE_GEOMETRY_BYTES_MAX, false},
	[FC_WIRE_MATCH] = {"MATCH", FC_WIRE_BODY_BYTES_MAX, true},
	[FC_WIRE_RELEASE] = PLAIN("RELEASE"),
	[FC_WIRE_FORGET] = PLAIN("FORGET"),
	[FC_WIRE_RESERVE] = {"RESERVE", FC_WIRE_BODY_BYTES_MAX, true},
	[FC_WIRE_COMMIT] = PLAIN("COMMIT"),
	[FC_WIRE_ABORT] = PLAIN("ABORT"),
	[FC_WIRE_DAMAGE] = {"DAMAGE", 16, true},
	[FC_WIRE_REPORT] = {"REPORT",
			    8 * FC_WIRE_REPORT_COUNTERS + 3 * FC_WIRE_TIMES_BYTES + 8 +
				    FC_WIRE_WAITERS_MAX *FC_WIRE_WAITER_BYTES,
			    false},
	[FC_WIRE_STATS] = PLAIN("STATS"),
	[FC_WIRE_SESSION] = {"SESSION", 16, true},
	[FC_WIRE_GOODBYE] = {"GOODBYE", 0, false},
	[FC_WIRE_WELCOME] = {"WELCOME", 56 + 24 * FC_MEDIUM_COUNT, false},
	[FC_WIRE_REFUSED] = {"REFUSED", 16 + FC_WIRE_ERROR_BYTES_MAX, false},
	[FC_WIRE_MATCHED] = {"MATCHED", FC_WIRE_BODY_BYTES_MAX, true},
	[FC_WIRE_RESERVED] = {"RESERVED", FC_WIRE_BODY_BYTES_MAX, true},
	[FC_WIRE_COMMITTED] = {"COMMITTED", 16, true},
	[FC_WIRE_DURABLE] = {"DURABLE", 8, true},
	[FC_WIRE_STATED] = {"STATED", 8 + 8 * FC_WIRE_STATS_FIELDS_MAX, true},
	[FC_WIRE_SESSION_FOUND] = {"SESSION_FOUND", 16, true},
};

static const struct kind *kind_of(uint32_t type)
{
	return type < fc_array_len(kinds) && kinds[type].name != NULL ? &kinds[type] : NULL;
}

const char *fc_wire_type_name(uint32_t type)
{
	const struct kind *kind = kind_of(type);
	return kind == NULL ? "unknown" : kind->name;
}

/* ---- header ---- */

int fc_wire_header_decode(struct fc_wire_header *header, const uint8_t *buffer, struct fc_error *error)
{
	uint32_t magic = fc_load_u32(buffer);
	uint16_t flags = fc_load_u16(buffer + 6);
	*header = (struct fc_wire_header){
		.type = fc_load_u16(buffer + 4),
		.body_bytes = fc_load_u64(buffer + 8),
		.request = fc_load_u64(buffer + 16),
	};
	if (magic != FC_WIRE_MAGIC)
		return fc_error_set(error, FC_EFORMAT,
				    "not a FlatCake message: it begins with 0x%08x, 0x%08x was expected", magic,
				    FC_WIRE_MAGIC);
	const struct kind *kind = kind_of(header->type);
	if (kind == NULL)
		return fc_error_set(error, FC_EFORMAT, "message of unknown type %u", header->type);
	if (flags != 0)
		return fc_error_set(error, FC_EFORMAT, "%s: flags 0x%x; there are none", kind->name, flags);
	if (header->body_bytes > kind->body_bytes_max)
		return fc_error_set(error, FC_EFORMAT, "%s: body of %llu bytes; at most %llu are allowed", kind->name,
				    (unsigned long long)header->body_bytes, (unsigned long long)kind->body_bytes_max);
	if (kind->is_about_request != (header->request != 0))
		return fc_error_set(error, FC_EFORMAT, "%s: request %llu; %s", kind->name,
				    (unsigned long long)header->request,
				    kind->is_about_request ? "numbers begin at 1" : "it is about none and must say 0");
	return FC_OK;
}

int fc_wire_next(const struct fc_wire_buffer *buffer, struct fc_wire_header *header, const uint8_t **body,
		 struct fc_error *error)
{
	if (buffer->used < FC_WIRE_HEADER_BYTES)
		return FC_EAGAIN;
	int code = fc_wire_header_decode(header, buffer->bytes, error);
	if (code != FC_OK)
		return code;
	if (buffer->used - FC_WIRE_HEADER_BYTES < header->body_bytes)
		return FC_EAGAIN;
	*body = buffer->bytes + FC_WIRE_HEADER_BYTES;
	return FC_OK;
}

/* ---- buffers ---- */

void fc_wire_buffer_init(struct fc_wire_buffer *buffer, const struct fc_alloc *alloc)
{
	*buffer = (struct fc_wire_buffer){.alloc = alloc};
}

static void free_memory(struct fc_wire_buffer *buffer)
{
	if (buffer->bytes != NULL)
		fc_alloc_free(buffer->alloc, buffer->bytes - buffer->front, buffer->room);
	buffer->bytes = NULL;
	buffer->front = buffer->room = 0;
}

void fc_wire_buffer_deinit(struct fc_wire_buffer *buffer)
{
	free_memory(buffer);
	buffer->used = 0;
}

int fc_wire_buffer_room(struct fc_wire_buffer *buffer, uint64_t count)
{
	uint64_t needed;
	if (count <= buffer->room - buffer->front - buffer->used)
		return FC_OK;
	if (fc_add_overflows(buffer->used, count, &needed))
		return FC_ENOMEM;
	if (needed <= buffer->room && buffer->front >= buffer->used) {
		uint8_t *memory = buffer->bytes - buffer->front;
		memmove(memory, buffer->bytes, buffer->used);
		buffer->bytes = memory;
		buffer->front = 0;
		return FC_OK;
	}
	uint64_t room = fc_max_u64(needed, fc_max_u64(buffer->room * 2, ROOM_FIRST_BYTES));
	uint8_t *memory = fc_alloc_zeroed(buffer->alloc, room);
	if (memory == NULL)
		return FC_ENOMEM;
	if (buffer->used > 0)
		memcpy(memory, buffer->bytes, buffer->used);
	free_memory(buffer);
	buffer->bytes = memory;
	buffer->room = room;
	return FC_OK;
}

void fc_wire_buffer_drop(struct fc_wire_buffer *buffer, uint64_t bytes)
{
	fc_check(bytes <= buffer->used);
	if (bytes == 0)
		return;
	buffer->bytes += bytes;
	buffer->front += bytes;
	buffer->used -= bytes;
	if (buffer->used > 0)
		return;
	buffer->bytes -= buffer->front;
	buffer->front = 0;
	if (buffer->room > KEPT_BYTES_MAX)
		free_memory(buffer);
}

int fc_wire_buffer_add(struct fc_wire_buffer *buffer, const void *bytes, uint64_t count)
{
	int code = fc_wire_buffer_room(buffer, count);
	if (code != FC_OK || count == 0)
		return code;
	memcpy(buffer->bytes + buffer->used, bytes, count);
	buffer->used += count;
	return FC_OK;
}

/* Every message as bytes and back: the bytes themselves, written down by hand; what is cut short, longer, or changed in
 * any one byte; and what each message refuses, by name. */
#include "base/dies.h"
#include "lib/world.h"
#include "wire/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct fixture {
	struct tracked_alloc tracked;
	struct fc_alloc alloc;
	struct messages messages;
	struct decoded decoded;
	struct fc_wire_buffer buffer, again;
	struct fc_error error;
};

static void fixture_init(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->alloc = tracked_alloc_interface(&fixture->tracked);
	messages_init(&fixture->messages);
	decoded_init(&fixture->decoded, &fixture->messages, &fixture->alloc);
	fc_wire_buffer_init(&fixture->buffer, &fixture->alloc);
	fc_wire_buffer_init(&fixture->again, &fixture->alloc);
}

static void fixture_deinit(struct fixture *fixture)
{
	decoded_deinit(&fixture->decoded);
	fc_wire_buffer_deinit(&fixture->buffer);
	fc_wire_buffer_deinit(&fixture->again);
	assert_int_equal(fixture->tracked.bytes, 0);
}

/* Example `number` alone in the buffer; false behind the last. */
static bool load_example(struct fixture *fixture, unsigned number, struct fc_wire_header *header)
{
	const uint8_t *body;
	fc_wire_buffer_drop(&fixture->buffer, fixture->buffer.used);
	if (!messages_put(&fixture->messages, number, &fixture->buffer))
		return false;
	assert_int_equal(fc_wire_next(&fixture->buffer, header, &body, &fixture->error), FC_OK);
	return true;
}

/* Decodes a copy of exactly these bytes, so that a sanitizer sees what is read behind their end. */
static int decode_exact(struct fixture *fixture, const struct fc_wire_header *header, const uint8_t *body,
			uint64_t bytes)
{
	uint8_t *exact = malloc(bytes + 1);
	assert_non_null(exact);
	if (bytes > 0)
		memcpy(exact + 1, body, bytes);
	fixture->error = (struct fc_error){0};
	fc_wire_buffer_drop(&fixture->again, fixture->again.used);
	int code = decode_any(&fixture->decoded, header->type, header->request, exact + 1, bytes, &fixture->again,
			      &fixture->error);
	free(exact);
	if (code == FC_OK)
		return FC_OK;
	assert_int_equal(code, FC_EFORMAT);
	assert_int_equal(fixture->error.code, FC_EFORMAT);
	assert_ptr_equal(strstr(fixture->error.text, fc_wire_type_name(header->type)), fixture->error.text);
	return code;
}

static void every_message_comes_back_as_it_was(void **state)
{
	struct fixture fixture;
	struct fc_wire_header header;
	(void)state;
	fixture_init(&fixture);
	for (unsigned number = 0; load_example(&fixture, number, &header); number++) {
		const uint8_t *frame = fixture.buffer.bytes;
		int code = decode_exact(&fixture, &header, frame + FC_WIRE_HEADER_BYTES, header.body_bytes);
		assert_int_equal(code, FC_OK);
		assert_int_equal(fixture.again.used, fixture.buffer.used);
		assert_memory_equal(fixture.again.bytes, frame, fixture.buffer.used);
	}
	fixture_deinit(&fixture);
}

static void what_is_cut_short_or_goes_on_is_refused(void **state)
{
	struct fixture fixture;
	struct fc_wire_header header;
	(void)state;
	fixture_init(&fixture);
	for (unsigned number = 0; load_example(&fixture, number, &header); number++) {
		if (header.body_bytes == 0)
			continue;
		for (uint64_t bytes = 0; bytes < header.body_bytes; bytes++)
			assert_int_equal(
				decode_exact(&fixture, &header, fixture.buffer.bytes + FC_WIRE_HEADER_BYTES, bytes),
				FC_EFORMAT);
		assert_int_equal(fc_wire_buffer_add(&fixture.buffer, "\0\0\0\0\0\0\0", 8), FC_OK);
		for (uint64_t more = 1; more <= 8; more++)
			assert_int_equal(decode_exact(&fixture, &header, fixture.buffer.bytes + FC_WIRE_HEADER_BYTES,
						      header.body_bytes + more),
					 FC_EFORMAT);
	}
	fixture_deinit(&fixture);
}

/* decode_any() holds whatever is accepted against the promises, and against the bytes. */
static void a_changed_byte_is_refused_or_means_something(void **state)
{
	struct fixture fixture;
	struct fc_wire_header header;
	unsigned refused = 0, accepted = 0;
	(void)state;
	fixture_init(&fixture);
	for (unsigned number = 0; load_example(&fixture, number, &header); number++) {
		for (uint64_t at = 0; at < header.body_bytes; at++) {
			uint8_t *body = fixture.buffer.bytes + FC_WIRE_HEADER_BYTES, right = body[at];
			for (unsigned change = 1; change < 256; change += number == 4 || number == 7 ? 1 : 5) {
				body[at] = right ^ (uint8_t)change;
				int code = decode_exact(&fixture, &header, body, header.body_bytes);
				*(code == FC_OK ? &accepted : &refused) += 1;
			}
			body[at] = right;
		}
	}
	assert_true(refused > 10000 && accepted > 10000);
	fixture_deinit(&fixture);
}

/* ---- bytes by hand: what these tests say may change only with the version of the protocol ---- */

#define ZEROS_8 0, 0, 0, 0, 0, 0, 0, 0
#define ZEROS_56 ZEROS_8, ZEROS_8, ZEROS_8, ZEROS_8, ZEROS_8, ZEROS_8, ZEROS_8

static void hello_has_these_bytes(void **state)
{
	static const uint8_t expected[] = {
		'F',     'C', 'W', '1', 1,   0,   0,   0,             /* magic, type, flags */
		248,     0,   0,   0,   0,   0,   0,   0,             /* body bytes */
		ZEROS_8,                                              /* request */
		1,       0,   0,   0,   2,   0,   0,   0,             /* versions */
		't',     'e', 'a', 'm', '-', 'a', 0,   0,   ZEROS_56, /* namespace */
		'w',     'o', 'r', 'k', 'e', 'r', ' ', '3', ZEROS_56, /* program */
		't',     'i', 'n', 'y', 0,   0,   0,   0,   ZEROS_56, /* geometry: name */
		16,      0,   0,   0,   2,   0,   0,   0,             /* tokens of a block, layers */
		1,       0,   0,   0,   0,   0,   0,   0,             /* groups */
		0,       0,   0,   0,   16,  0,   0,   0,   ZEROS_8,  /* rule, tokens; window */
		0,       16,  0,   0,   1,   0,   0,   0,   ZEROS_8,  /* slices of 4 GiB + 4 KiB, and none */
	};
	struct fc_wire_hello hello = {
		.version_min = 1,
		.version_max = 2,
		.name_space = "team-a",
		.program = "worker 3",
		.geometry = {.name = "tiny",
			     .block_tokens = 16,
			     .layer_count = 2,
			     .group_count = 1,
			     .groups = {{.tokens_per_block = 16, .slice_bytes = {(1ull << 32) + 4096}}}}};
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	assert_int_equal(fc_wire_put_hello(&fixture.buffer, &hello), FC_OK);
	assert_int_equal(fixture.buffer.used, sizeof(expected));
	assert_memory_equal(fixture.buffer.bytes, expected, sizeof(expected));
	fixture_deinit(&fixture);
}

static void match_has_these_bytes(void **state)
{
	static const uint8_t expected[] = {
		'F',  'C',  'W',  '1',  2,    0,    0,    0,    /* magic, type, flags */
		56,   0,    0,    0,    0,    0,    0,    0,    /* body bytes */
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* request */
		5,    0,    0,    0,    0,    0,    0,    0,    /* most blocks */
		2,    0,    0,    0,    0,    0,    0,    0,    /* keys */
		1,    0,    0,    0,    0,    0,    0,    0,    /* leased */
		0x0e, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x11, /* high, with the salt */
		0x01, 0,    0,    0,    0,    0,    0,    0x80, /* low */
		0xf1, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x11, /* high */
		0x02, 0,    0,    0,    0,    0,    0,    0x40, /* low */
	};
	struct fc_key keys[] = {{0x112222222222220dull, 0x8000000000000101ull},
				{0x11222222222222f2ull, 0x4000000000000102ull}};
	struct fc_wire_match match = {
		.blocks_max = 5, .is_leased = true, .keys = keys, .key_count = 2, .salt = {3, 0x100}};
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	assert_int_equal(fc_wire_put_match(&fixture.buffer, 0x0102030405060708ull, &match), FC_OK);
	assert_int_equal(fixture.buffer.used, sizeof(expected));
	assert_memory_equal(fixture.buffer.bytes, expected, sizeof(expected));
	fixture_deinit(&fixture);
}

/* Two blocks of geometry_plain(1) at the beginning of the SSD arena: 136 bytes of header, 24 of a range and 32 of keys
 * are 192, which is less than an alignment. */
static void matched_has_these_bytes(void **state)
{
	static const uint8_t expected[] = {
		'F', 'C', 'W', '1', 35, 0, 0, 0,    /* magic, type, flags */
		144, 0,   0,   0,   0,  0, 0, 0,    /* body bytes */
		9,   0,   0,   0,   0,  0, 0, 0,    /* request */
		0,   0,   0,   0,   0,  0, 0, 0,    /* code */
		2,   0,   0,   0,   0,  0, 0, 0,    /* blocks */
		3,   0,   0,   0,   0,  0, 0, 0,    /* stored */
		0,   0,   0,   0,   0,  0, 0, 0,    /* bytes in memory */
		34,  0,   0,   0,   0,  0, 0, 0,    /* bytes on SSD */
		1,   0,   0,   0,   1,  0, 0, 0,    /* leased, segments */
		1,   0,   0,   0,   0,  0, 0, 0,    /* spans */
		1,   0,   0,   0,   0,  0, 0, 0,    /* ranges */
		0,   0,   2,   0,   0,  0, 7, 0x10, /* at 128 KiB on SSD of node 7 */
		0,   2,   0,   0,   0,  0, 0, 0,    /* header bytes */
		0,   2,   0,   0,   1,  0, 0, 0,    /* alignment, ranges */
		0,   0,   0,   0,   0,  0, 0, 0,    /* range: group */
		0,   0,   0,   0,   0,  0, 0, 0,    /* first block */
		2,   0,   0,   0,   0,  0, 0, 0,    /* blocks */
		0,   0,   0,   0,   0,  0, 0, 0,    /* span: segment, group */
		0,   0,   0,   0,   0,  0, 0, 0,    /* first block */
		2,   0,   0,   0,   0,  0, 0, 0,    /* blocks */
		0,   0,   0,   0,   0,  0, 0, 0,    /* first entry */
	};
	struct fixture fixture;
	struct fc_path path = {0};
	struct fc_geometry geometry = geometry_plain(1);
	int code;
	(void)state;
	fixture_init(&fixture);
	assert_int_equal(fc_wire_get_matched(&code, &path, &fixture.messages.welcome, &geometry, &fixture.alloc,
					     expected + FC_WIRE_HEADER_BYTES, sizeof(expected) - FC_WIRE_HEADER_BYTES,
					     NULL),
			 FC_OK);
	assert_int_equal(code, FC_OK);
	assert_int_equal(path.blocks, 2);
	assert_int_equal(path.stored_blocks, 3);
	assert_true(path.is_leased);
	assert_int_equal(fc_gva_medium(path.placed[0].base), FC_SSD);
	assert_int_equal(fc_gva_offset(path.placed[0].base), 128 << 10);
	assert_int_equal(path.placed[0].shape->entry_count, 2);
	assert_int_equal(path.spans[0].count, 2);
	assert_int_equal(fc_wire_put_matched(&fixture.buffer, 9, FC_OK, &path), FC_OK);
	assert_int_equal(fixture.buffer.used, sizeof(expected));
	assert_memory_equal(fixture.buffer.bytes, expected, sizeof(expected));
	path.is_leased = false;
	fc_path_deinit(&path, &fixture.alloc);
	fixture_deinit(&fixture);
}

/* ---- buffers and frames ---- */

static void frames_are_taken_as_their_bytes_arrive(void **state)
{
	struct fixture fixture;
	struct fc_wire_buffer *received = &fixture.again;
	struct fc_wire_header header;
	const uint8_t *body;
	unsigned sent = 0, taken = 0;
	(void)state;
	fixture_init(&fixture);
	for (unsigned round = 0; round < 50; round++)
		for (unsigned number = 0; messages_put(&fixture.messages, number, &fixture.buffer); number++)
			sent++;
	/* In pieces of 1, 2, 3 ... bytes, as a socket may cut them. */
	for (uint64_t at = 0, piece = 1; at < fixture.buffer.used; at += piece, piece = piece % 6000 + 1) {
		piece = fc_min_u64(piece, fixture.buffer.used - at);
		assert_int_equal(fc_wire_buffer_add(received, fixture.buffer.bytes + at, piece), FC_OK);
		while (fc_wire_next(received, &header, &body, NULL) == FC_OK) {
			assert_ptr_equal(body, received->bytes + FC_WIRE_HEADER_BYTES);
			fc_wire_buffer_drop(received, FC_WIRE_HEADER_BYTES + header.body_bytes);
			taken++;
		}
	}
	assert_int_equal(taken, sent);
	assert_int_equal(received->used, 0);
	assert_true(received->room <= 32 << 10); /* what lay in it at once, not what went through it */
	fixture_deinit(&fixture);
}

static void a_buffer_moves_no_more_than_was_dropped(void **state)
{
	static const uint8_t piece[1024] = {7};
	struct fixture fixture;
	struct fc_wire_buffer *buffer = &fixture.buffer;
	(void)state;
	fixture_init(&fixture);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(fc_wire_buffer_add(buffer, piece, sizeof(piece)), FC_OK);
	/* A thousand pieces wait; one goes and one comes. The front moves on, and the bytes are moved once, to larger
	 * memory, although there is little room behind them. */
	unsigned moves = 0;
	for (unsigned i = 0; i < 500; i++) {
		const uint8_t *second = buffer->bytes + sizeof(piece);
		fc_wire_buffer_drop(buffer, sizeof(piece));
		assert_ptr_equal(buffer->bytes, second);
		assert_int_equal(fc_wire_buffer_add(buffer, piece, sizeof(piece)), FC_OK);
		moves += buffer->bytes != second;
	}
	assert_int_equal(moves, 1);
	assert_true(buffer->room <= 4 << 20);
	fixture_deinit(&fixture);
}

static void an_empty_buffer_gives_large_memory_back(void **state)
{
	static const uint8_t piece[1u << 20];
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, piece, sizeof(piece)), FC_OK);
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, piece, 1), FC_OK);
	fc_wire_buffer_drop(&fixture.buffer, sizeof(piece) + 1);
	assert_int_equal(fixture.tracked.bytes, 0);
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, "again", 5), FC_OK);
	assert_memory_equal(fixture.buffer.bytes, "again", 5);
	fixture_deinit(&fixture);
}

static void drop_too_many(void *context)
{
	fc_wire_buffer_drop(context, 1);
}

static void a_buffer_cannot_lose_what_it_does_not_hold(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	assert_true(dies(drop_too_many, &fixture.buffer));
	fc_wire_buffer_drop(&fixture.buffer, 0);
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, "a", 1), FC_OK);
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, "a", UINT64_MAX), FC_ENOMEM);
	assert_int_equal(fixture.buffer.used, 1);
	fixture_deinit(&fixture);
}

/* ---- memory that ends ---- */

static void without_memory_a_buffer_is_as_it_was(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	/* Behind 4,095 bytes the first byte of a frame fits still. */
	static const uint8_t before[4095] = {1, 2, 3};
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, before, sizeof(before)), FC_OK);
	fixture.tracked.fail_at = fixture.tracked.call_count + 1;
	assert_int_equal(fc_wire_put_matched(&fixture.buffer, 1, FC_OK, &fixture.messages.path), FC_ENOMEM);
	assert_int_equal(fc_wire_put_welcome(&fixture.buffer, &fixture.messages.welcome), FC_ENOMEM);
	assert_int_equal(fc_wire_put_plain(&fixture.buffer, FC_WIRE_STATS, 1), FC_ENOMEM);
	assert_int_equal(fixture.buffer.used, sizeof(before));
	assert_memory_equal(fixture.buffer.bytes, before, sizeof(before));
	fixture_deinit(&fixture);
}

static void without_memory_a_path_is_empty_and_can_be_filled_later(void **state)
{
	struct fc_wire_header header;
	(void)state;
	for (unsigned number = 4; number <= 7; number += 3) {
		unsigned failures = 0;
		for (uint64_t fail_at = 1; fail_at < 20; fail_at++) {
			struct fixture fixture;
			fixture_init(&fixture);
			assert_true(load_example(&fixture, number, &header));
			const uint8_t *body = fixture.buffer.bytes + FC_WIRE_HEADER_BYTES;
			/* The first allocation belongs to the buffer that it is put into again. */
			assert_int_equal(fc_wire_buffer_add(&fixture.again, body, header.body_bytes), FC_OK);
			fixture.tracked.fail_at = fixture.tracked.call_count + fail_at;
			int code = decode_any(&fixture.decoded, header.type, header.request, body, header.body_bytes,
					      &fixture.again, &fixture.error);
			assert_true(code == FC_OK || (code == FC_ENOMEM && fixture.error.code == FC_ENOMEM));
			failures += code != FC_OK;
			fixture.tracked.fail_at = 0;
			assert_int_equal(decode_exact(&fixture, &header, body, header.body_bytes), FC_OK);
			fixture_deinit(&fixture);
		}
		assert_int_equal(failures, number == 4 ? 4 : 7);
	}
}

/* ---- a real path ---- */

static void a_path_of_the_catalog_names_the_same_bytes_on_the_other_side(void **state)
{
	struct world world;
	struct fc_key keys[40];
	struct fc_path path = {0}, theirs = {0};
	struct fc_wire_buffer buffer;
	struct fc_wire_header header;
	const uint8_t *body;
	int code;
	(void)state;
	world_init(&world, geometry_hybrid(3), 64, 64);
	assert_int_equal(world_open(&world), FC_OK);
	struct fc_wire_welcome welcome = {.area_bytes_max = 1u << 20};
	for (uint32_t medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		/* What the catalog formats an arena with: at least a line of the processor's cache. */
		uint32_t align = (uint32_t)fc_max_u64(world.media[medium]->media.align, 64);
		welcome.arenas[medium] = (struct fc_wire_arena){true, false, align, world.media[medium]->media.bytes};
	}
	path_keys(1, 0, keys, 40);
	for (uint64_t turn = 0; turn < 5; turn++)
		assert_int_equal(save(&world, 7, turn, keys, 8 * (turn + 1)), FC_OK);
	fc_wire_buffer_init(&buffer, &world.alloc);
	for (uint64_t count = 0; count <= 40; count++) {
		assert_int_equal(fc_catalog_match(world.catalog, keys, count, 0, true, &path), FC_OK);
		assert_int_equal(fc_wire_put_matched(&buffer, 1, FC_OK, &path), FC_OK);
		assert_int_equal(fc_wire_next(&buffer, &header, &body, NULL), FC_OK);
		assert_int_equal(fc_wire_get_matched(&code, &theirs, &welcome, &world.geometry, &world.alloc, body,
						     header.body_bytes, &world.error),
				 FC_OK);
		assert_int_equal(theirs.blocks, path.blocks);
		assert_int_equal(theirs.span_count, path.span_count);
		verify_path(&world, &theirs, keys);
		theirs.is_leased = false;
		fc_catalog_release(world.catalog, &path);
		fc_wire_buffer_drop(&buffer, buffer.used);
	}
	fc_wire_buffer_deinit(&buffer);
	fc_path_deinit(&path, &world.alloc);
	fc_path_deinit(&theirs, &world.alloc);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_comes_back_as_it_was),
		cmocka_unit_test(what_is_cut_short_or_goes_on_is_refused),
		cmocka_unit_test(a_changed_byte_is_refused_or_means_something),
		cmocka_unit_test(hello_has_these_bytes),
		cmocka_unit_test(match_has_these_bytes),
		cmocka_unit_test(matched_has_these_bytes),
		cmocka_unit_test(frames_are_taken_as_their_bytes_arrive),
		cmocka_unit_test(a_buffer_moves_no_more_than_was_dropped),
		cmocka_unit_test(an_empty_buffer_gives_large_memory_back),
		cmocka_unit_test(a_buffer_cannot_lose_what_it_does_not_hold),
		cmocka_unit_test(without_memory_a_buffer_is_as_it_was),
		cmocka_unit_test(without_memory_a_path_is_empty_and_can_be_filled_later),
		cmocka_unit_test(a_path_of_the_catalog_names_the_same_bytes_on_the_other_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What each message refuses: every check of the decoders, one field at a time, and what the sentence says. */
#include "lib/world.h"
#include "wire/messages.h"

#include <math.h>
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

/* A number of `width` bytes at `at` of a body, and what is said of it; NULL: it is allowed. */
struct change {
	uint64_t at, width, value;
	const char *said;
};

static void put_number(uint8_t *body, uint64_t at, uint64_t width, uint64_t value)
{
	for (uint64_t i = 0; i < width; i++)
		body[at + i] = (uint8_t)(value >> 8 * i);
}

static void check_change(struct fixture *fixture, const struct change *change)
{
	struct fc_wire_header header;
	const uint8_t *frame;
	assert_int_equal(fc_wire_next(&fixture->buffer, &header, &frame, NULL), FC_OK);
	uint8_t *body = malloc(header.body_bytes);
	assert_non_null(body);
	memcpy(body, frame, header.body_bytes);
	assert_true(change->at + change->width <= header.body_bytes);
	put_number(body, change->at, change->width, change->value);
	fixture->error = (struct fc_error){0};
	int code = decode_any(&fixture->decoded, header.type, header.request, body, header.body_bytes, &fixture->again,
			      &fixture->error);
	free(body);
	if (code != (change->said == NULL ? FC_OK : FC_EFORMAT) ||
	    (change->said != NULL && strstr(fixture->error.text, change->said) == NULL))
		fail_msg("%s: %llu at byte %llu: code %d, \"%s\"; expected \"%s\"", fc_wire_type_name(header.type),
			 (unsigned long long)change->value, (unsigned long long)change->at, code, fixture->error.text,
			 change->said == NULL ? "" : change->said);
}

static void check_changes(unsigned example, const struct change *changes, size_t count)
{
	struct fixture fixture;
	fixture_init(&fixture);
	assert_true(messages_put(&fixture.messages, example, &fixture.buffer));
	for (size_t i = 0; i < count; i++)
		check_change(&fixture, &changes[i]);
	fixture_deinit(&fixture);
}

/* Both numbers changed; said is what the second one says. */
static void check_pair(unsigned example, struct change first, struct change second)
{
	struct fixture fixture;
	fixture_init(&fixture);
	assert_true(messages_put(&fixture.messages, example, &fixture.buffer));
	put_number(fixture.buffer.bytes + FC_WIRE_HEADER_BYTES, first.at, first.width, first.value);
	check_change(&fixture, &second);
	fixture_deinit(&fixture);
}

#define CHECK_CHANGES(example, changes) check_changes(example, changes, fc_array_len(changes))

/* ---- headers ---- */

static void headers_are_held_against_their_type(void **state)
{
	static const struct {
		uint32_t type;
		uint64_t body_bytes, request;
		const char *said;
	} headers[] = {
		{FC_WIRE_MATCH, 32u << 20, 1, NULL},
		{FC_WIRE_MATCH, (32u << 20) + 1, 1, "MATCH: body of 33554433 bytes; at most 33554432"},
		{FC_WIRE_MATCH, UINT64_MAX, 1, "at most 33554432"},
		{FC_WIRE_MATCH, 0, 0, "MATCH: request 0"},
		{FC_WIRE_RELEASE, 0, UINT64_MAX, NULL},
		{FC_WIRE_RELEASE, 1, 1, "RELEASE: body of 1 bytes; at most 0"},
		{FC_WIRE_GOODBYE, 0, 0, NULL},
		{FC_WIRE_GOODBYE, 0, 1, "GOODBYE: request 1; it is about none"},
		{FC_WIRE_DAMAGE, 17, 1, "DAMAGE: body of 17"},
		{FC_WIRE_HELLO, 16728, 0, NULL},
		{FC_WIRE_HELLO, 16729, 0, "HELLO: body of 16729"},
		{FC_WIRE_REFUSED, 528, 0, "REFUSED: body of 528"},
		{0, 0, 1, "unknown type 0"},
		{13, 0, 1, "unknown type 13"},
		{41, 0, 1, "unknown type 41"},
		{UINT16_MAX, 0, 1, "unknown type 65535"},
		{FC_WIRE_RELEASE | 1u << 16, 0, 1, "RELEASE: flags 0x1"},
	};
	struct fc_wire_header header;
	(void)state;
	for (size_t i = 0; i < fc_array_len(headers); i++) {
		struct fc_error error = {0};
		uint8_t bytes[FC_WIRE_HEADER_BYTES];
		put_number(bytes, 0, 4, FC_WIRE_MAGIC);
		put_number(bytes, 4, 4, headers[i].type);
		put_number(bytes, 8, 8, headers[i].body_bytes);
		put_number(bytes, 16, 8, headers[i].request);
		int code = fc_wire_header_decode(&header, bytes, &error);
		assert_int_equal(code, headers[i].said == NULL ? FC_OK : FC_EFORMAT);
		if (headers[i].said != NULL && strstr(error.text, headers[i].said) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", error.text, headers[i].said);
		bytes[3] ^= 1;
		assert_int_equal(fc_wire_header_decode(&header, bytes, &error), FC_EFORMAT);
		assert_non_null(strstr(error.text, "not a FlatCake message"));
	}
	assert_string_equal(fc_wire_type_name(0), "unknown");
	assert_string_equal(fc_wire_type_name(FC_WIRE_SESSION_FOUND), "SESSION_FOUND");
}

/* ---- greetings ---- */

static void hello_is_checked(void **state)
{
	static const struct change changes[] = {
		{0, 4, 0, "versions 0 to 3"},
		{0, 4, 4, "versions 4 to 3"},
		{0, 4, 3, NULL},
		{4, 4, UINT32_MAX, NULL},
		{8, 1, '\n', "namespace holds byte 0x0a at 0"},
		{8, 1, 0, "namespace goes on behind its end"},
		{71, 1, 'a', "namespace goes on behind its end"},
		{200, 4, 0, "block_tokens is 0"},
		{204, 4, 257, "257 layers"},
		{204, 4, 3, "is reserved"},
		{208, 4, 9, "9 groups"},
		{212, 4, 1, "is reserved"},
		{216, 4, 1, "the first group must be under rule"},
		{228, 4, 1, "is reserved"},
		{232, 8, (1ull << 32) + 1, "slice_bytes is 4294967297"},
		{136, 1, 0xc3, "name of the geometry holds byte 0xc3"},
	};
	(void)state;
	CHECK_CHANGES(0, changes);
}

static void versions_are_chosen_or_refused(void **state)
{
	struct fc_wire_hello hello = {.version_min = 1, .version_max = 1};
	struct fc_error error;
	uint32_t version = 0;
	(void)state;
	assert_int_equal(fc_wire_choose_version(&hello, &version, &error), FC_OK);
	assert_int_equal(version, 1);
	hello.version_max = UINT32_MAX;
	assert_int_equal(fc_wire_choose_version(&hello, &version, &error), FC_OK);
	assert_int_equal(version, FC_WIRE_VERSION_MAX);
	hello.version_min = FC_WIRE_VERSION_MAX + 1;
	assert_int_equal(fc_wire_choose_version(&hello, &version, &error), FC_EINVAL);
	assert_non_null(strstr(error.text, "versions 2 to 4294967295"));
}

static void welcome_is_checked(void **state)
{
	static const struct change changes[] = {
		{0, 4, 0, "version 0"},
		{0, 4, 2, "version 2"},
		{4, 4, 0, "0 requests"},
		{48, 8, 0, "0 bytes of a layer"},
		{56, 4, 2, "arena: there is 2"},
		{56, 4, 0, "arena 0 is not there, but is described"},
		{60, 4, 2, "arena: durable is 2"},
		{64, 4, 0, "alignment of 0"},
		{64, 4, 3, "alignment of 3"},
		{64, 4, 8192, "alignment of 8192"},
		{64, 4, 4096, NULL},
		{68, 4, 1, "is reserved"},
		{72, 8, 1ull << 48, NULL},
		{72, 8, (1ull << 48) + 1, "281474976710657 bytes"},
	};
	struct fixture fixture;
	(void)state;
	CHECK_CHANGES(1, changes);
	fixture_init(&fixture);
	struct fc_wire_welcome welcome = fixture.messages.welcome;
	welcome.arenas[FC_MEMORY] = (struct fc_wire_arena){0};
	assert_int_equal(fc_wire_put_welcome(&fixture.buffer, &welcome), FC_OK);
	check_change(&fixture, &(struct change){0, 4, 1, NULL});
	fc_wire_buffer_drop(&fixture.buffer, fixture.buffer.used);
	welcome.arenas[FC_SSD] = (struct fc_wire_arena){0};
	assert_int_equal(fc_wire_put_welcome(&fixture.buffer, &welcome), FC_OK);
	check_change(&fixture, &(struct change){0, 4, 1, "no arena"});
	fixture_deinit(&fixture);
}

static void refusals_are_checked(void **state)
{
	static const struct change changes[] = {
		{0, 4, 0, "code 0 with a text of 7 bytes"},
		{0, 4, 1, "code 1; allowed are 0 to -14"},
		{0, 4, (uint32_t)-15, "code -15"},
		{0, 4, (uint32_t)-14, NULL},
		{0, 4, (uint32_t)INT32_MIN, "code -2147483648"},
		{4, 4, 0, "code -4 with a text of 0 bytes"},
		{4, 4, 512, "text of 512 bytes"},
		{4, 4, 8, "text at byte 16 has 8 bytes; 7 are left"},
		{8, 4, 2, "final is 2"},
		{12, 4, 1, "is reserved"},
		{16, 1, 0x1b, "text holds byte 0x1b at 0"},
		{18, 1, 0, "text holds byte 0x00 at 2"},
	};
	(void)state;
	/* A code that is added moves the bound with it. */
	assert_string_equal(fc_code_text(FC_EAGAIN - 1), "unknown code");
	CHECK_CHANGES(2, changes);
	check_pair(2, (struct change){0, 4, 0, NULL}, (struct change){4, 4, 0, "no reason"});
}

/* ---- texts ---- */

static void texts_are_whole_printable_utf8(void **state)
{
	static const char *const good[] = {"",
					   "plain ~",
					   "\xc2\xa0",
					   "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x8d\xb0",
					   "\xed\x9f\xbf",
					   "\xee\x80\x80",
					   "\xf4\x8f\xbf\xbf",
					   "\xef\xbf\xbd"};
	static const char *const bad[] = {
		"\x1f",
		"\x7f", /* controls */
		"\xc2\x80",
		"\xc2\x9f", /* controls of the second kind */
		"\xe2\x80\xa8",
		"\xe2\x80\xae", /* end of a line, change of direction */
		"\xe2\x81\xa6",
		"\xe2\x81\xa9", /* the same */
		"\x80",
		"\xbf", /* no beginning */
		"\xc3",
		"\xe4\xb8",
		"\xf0\x9f\x8d", /* no end */
		"\xc3(",
		"\xe4\xb8(",
		"\xe4(\xad", /* broken off */
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xf0\x8f\xbf\xbf", /* longer than they need be */
		"\xed\xa0\x80",
		"\xed\xbf\xbf", /* halves of a pair */
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff", /* no letters */
	};
	struct fixture fixture;
	struct fc_wire_header header;
	const uint8_t *body;
	(void)state;
	fixture_init(&fixture);
	struct fc_wire_hello hello = {.version_min = 1, .version_max = 1, .geometry = fixture.messages.geometry}, got;
	for (size_t i = 0; i < fc_array_len(good) + fc_array_len(bad); i++) {
		bool is_good = i < fc_array_len(good);
		const char *text = is_good ? good[i] : bad[i - fc_array_len(good)];
		snprintf(hello.program, sizeof(hello.program), "a%sb", text);
		assert_int_equal(fc_wire_put_hello(&fixture.buffer, &hello), FC_OK);
		assert_int_equal(fc_wire_next(&fixture.buffer, &header, &body, NULL), FC_OK);
		int code = fc_wire_get_hello(&got, body, header.body_bytes, &fixture.error);
		if (code != (is_good ? FC_OK : FC_EFORMAT))
			fail_msg("text %zu: code %d", i, code);
		if (is_good)
			assert_string_equal(got.program, hello.program);
		else
			assert_non_null(strstr(fixture.error.text, "name of the program holds byte"));
		fc_wire_buffer_drop(&fixture.buffer, fixture.buffer.used);
	}
	fixture_deinit(&fixture);
}

static void a_text_without_an_end_is_refused(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	assert_true(messages_put(&fixture.messages, 0, &fixture.buffer));
	memset(fixture.buffer.bytes + FC_WIRE_HEADER_BYTES + 8, 'a', 64);
	check_change(&fixture, &(struct change){0, 4, 1, "namespace does not end within 64 bytes"});
	fixture.buffer.bytes[FC_WIRE_HEADER_BYTES + 8 + 63] = 0;
	check_change(&fixture, &(struct change){0, 4, 1, NULL});
	fixture_deinit(&fixture);
}

/* Sentences quote what came from outside, and are cut where they do not fit. */
static void a_broken_sentence_arrives_with_question_marks(void **state)
{
	struct fixture fixture;
	struct fc_wire_header header;
	struct fc_wire_refused refused = {.error = {.code = FC_EINVAL}}, got = {0};
	const uint8_t *body;
	(void)state;
	fixture_init(&fixture);
	memset(refused.error.text, 'x', sizeof(refused.error.text) - 1);
	memcpy(refused.error.text, "name \xff\x9b \xc3\xa9:", 10);
	refused.error.text[FC_ERROR_TEXT_BYTES - 2] = (char)0xe4;
	assert_int_equal(fc_wire_put_refused(&fixture.buffer, &refused), FC_OK);
	assert_int_equal(fc_wire_next(&fixture.buffer, &header, &body, NULL), FC_OK);
	assert_int_equal(fc_wire_get_refused(&got, body, header.body_bytes, &fixture.error), FC_OK);
	memcpy(refused.error.text, "name ?? \xc3\xa9:", 10);
	refused.error.text[FC_ERROR_TEXT_BYTES - 2] = '?';
	assert_string_equal(got.error.text, refused.error.text);
	assert_int_equal(got.error.code, FC_EINVAL);
	fc_wire_buffer_drop(&fixture.buffer, fixture.buffer.used);

	refused = (struct fc_wire_refused){.error = {.code = FC_EBUSY}};
	assert_int_equal(fc_wire_put_refused(&fixture.buffer, &refused), FC_OK);
	assert_int_equal(fc_wire_next(&fixture.buffer, &header, &body, NULL), FC_OK);
	assert_int_equal(fc_wire_get_refused(&got, body, header.body_bytes, &fixture.error), FC_OK);
	assert_string_equal(got.error.text, fc_code_text(FC_EBUSY));
	fixture_deinit(&fixture);
}

/* ---- match and path ---- */

static void match_is_checked(void **state)
{
	static const struct change changes[] = {
		{0, 8, UINT64_MAX, NULL},
		{8, 8, 8, "8 keys in 112 bytes"},
		{8, 8, 6, "16 bytes behind its end"},
		{8, 8, 1ull << 60, "1152921504606846976 keys"},
		{8, 8, (1ull << 60) + 7, "keys in 112 bytes"},
		{16, 4, 2, "lease is 2"},
		{20, 4, 1, "is reserved"},
	};
	(void)state;
	CHECK_CHANGES(3, changes);
}

/* Of the path in messages.h. Segment 0 is described at byte 64, with ranges at 88 and 112; segment 1 at 136 (ranges 160
 * and 184), segment 2 at 208 (ranges 232 and 256); spans of 32 bytes each from 280. */
static void matched_is_checked(void **state)
{
	static const struct change changes[] = {
		{0, 4, 1, "code 1"},
		{0, 4, (uint32_t)FC_ENOMEM, "464 bytes behind its end"},
		{4, 4, 1, "is reserved"},
		/* blocks */
		{8, 8, 8, "8 blocks of 7 stored"},
		{8, 8, 5, "multiples of 2"},
		{8, 8, 4, "span 1 is not that of group 1 from block 0 to 2"},
		{8, 8, 1ull << 63, "blocks of 7 stored"},
		{16, 8, 5, "6 blocks of 5 stored"},
		{16, 8, UINT32_MAX, NULL},
		{16, 8, 1ull << 32, "4294967296 stored"},
		{24, 8, 67, "67 bytes on medium 0; its spans have 66"},
		{32, 8, 57, "57 bytes on medium 1; its spans have 58"},
		{40, 4, 2, "lease is 2"},
		/* counts */
		{44, 4, UINT32_MAX, "4294967295 segments with 6 ranges in 408 bytes"},
		{44, 4, 4, "segment of 0 ranges"},
		{44, 4, 17, "17 segments with 6 ranges"},
		{44, 4, 2, "4 ranges; 6 were announced"},
		{48, 4, UINT32_MAX, "4294967295 spans"},
		{48, 4, 5, "its spans have 49"},
		{48, 4, 7, "bytes; 0 are left"},
		{52, 4, 1, "is reserved"},
		{56, 8, 7, "6 ranges; 7 were announced"},
		{56, 8, 5, "segment of 2 ranges"},
		{56, 8, UINT64_MAX, "3 segments with 18446744073709551615 ranges"},
		{56, 8, 0xaaaaaaaaaaaaaab, "ranges in 408 bytes"}, /* times 24: 8, and an overflow */
		/* places */
		{64, 8, 0x2009000000040000ull, "no arena of medium 2"},
		{64, 8, 0xf009000000040000ull, "no arena of medium 15"},
		{64, 8, 0x0009000000040020ull, "alignment 64; the arena's is 64"},
		{64, 8, 0x0009000000040040ull, NULL},
		{64, 8, 0x000900000001ffc0ull, "the first 131072 its own"},
		{64, 8, 0x0009000000020000ull, NULL},
		{64, 8, 0x00090000000ffdc0ull, NULL}, /* 320 bytes of header and 4 areas of 64 end with the arena */
		{64, 8, 0x00090000000ffe00ull, "its arena has 1048576"},
		{64, 8, 0x0009ffffffffffc0ull, "its arena has 1048576"},
		{72, 8, 256, "header of 256 bytes; its shape needs 320"},
		{80, 4, 128, "alignment 128; the arena's is 64"},
		{80, 4, 0, "alignment 0"},
		{84, 4, 0, "segment of 0 ranges"},
		{84, 4, 65, "segment of 65 ranges"},
		{84, 4, 1, "header of 320 bytes"},
	};
	(void)state;
	CHECK_CHANGES(4, changes);
}

static void ranges_and_spans_are_checked(void **state)
{
	static const struct change changes[] = {
		/* ranges */
		{88, 4, 4, "range of group 4; the geometry has 4"},
		{92, 4, 1, "is reserved"},
		{96, 8, 1, "which has no such blocks there"},
		{96, 8, 1ull << 32, "range of 4 blocks from block 4294967296 on"},
		{104, 8, 0, "range of 0 blocks"},
		{104, 8, UINT32_MAX + 1ull, "range of 4294967296 blocks"},
		{104, 8, UINT32_MAX, "segment of more than 4294967295 blocks"},
		{104, 8, UINT64_MAX, "range of 18446744073709551615 blocks"},
		{104, 8, UINT32_MAX - 2, "a header of 320 bytes; its shape needs"},
		/* spans */
		{280, 4, 3, "span in segment 3; there are 3"},
		{280, 4, 1, "which has no such blocks there"},
		{284, 4, 1, "of group 1"},
		{284, 4, UINT32_MAX, "of group 4294967295"},
		{288, 8, 1, "from block 1"},
		{296, 8, 0, "span of 0 blocks"},
		{296, 8, 5, "span of 5 blocks"},
		{296, 8, UINT64_MAX, "span of 18446744073709551615 blocks"},
		{304, 8, 6, "entry 6"},
		{304, 8, UINT64_MAX, "entry 18446744073709551615"},
	};
	(void)state;
	CHECK_CHANGES(4, changes);
	/* Right in themselves, but not what a resume needs: a block fewer at the end of one, at the beginning of
	 * another. */
	check_pair(4, (struct change){32, 8, 45, NULL},
		   (struct change){328, 8, 1, "span 2 is not that of group 0 from block 5 to 6"});
}

static void a_path_of_more_spans_than_needed_is_refused(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	fixture.messages.path.blocks = 0;
	assert_int_equal(fc_wire_put_matched(&fixture.buffer, 1, FC_OK, &fixture.messages.path), FC_OK);
	check_change(&fixture, &(struct change){4, 4, 0, "6 spans, of which 0 are needed"});
	fc_wire_buffer_drop(&fixture.buffer, fixture.buffer.used);
	fixture.messages.path.blocks = 6;
	fixture.messages.path.span_count = 5;
	fixture.messages.path.bytes[FC_SSD] -= 9;
	assert_int_equal(fc_wire_put_matched(&fixture.buffer, 1, FC_OK, &fixture.messages.path), FC_OK);
	check_change(&fixture, &(struct change){4, 4, 0, "span 5 is not that of group 3 from block 5 to 6"});
	fixture_deinit(&fixture);
}

static void damage_is_checked(void **state)
{
	static const struct change changes[] = {{0, 4, UINT32_MAX, NULL}, {4, 4, 2, "checksum is 2"}, {8, 8, 0, NULL}};
	(void)state;
	CHECK_CHANGES(12, changes);
}

/* ---- turns ---- */

static void reserve_is_checked(void **state)
{
	static const struct change changes[] = {
		{40, 8, 8, "8 keys in 112 bytes"},
		{40, 8, (1ull << 60) + 7, "keys in 112 bytes"},
		{48, 8, 1, "8 bytes behind its end"},
		{48, 8, 4097, "4097 resume points; at most 4096"},
		{48, 8, 1ull << 61, "resume points"},
		{48, 8, 4096, "are left"},
		{56, 8, 1ull << 32, "7 resident blocks of group 0 from block 4294967296"},
		{104, 8, 6, "4294967290 resident blocks of group 3"},
		{112, 8, UINT64_MAX, "18446744073709551615 resident blocks of group 3"},
		{120, 8, 1, "resident blocks of group 4; the geometry has 4"},
		{128, 8, 1, "resident blocks of group 4; the geometry has 4"},
		{184, 8, UINT64_MAX, NULL}, /* what a point means is for the catalog to say */
	};
	(void)state;
	CHECK_CHANGES(6, changes);
}

/* Grant 0 is described at byte 56, grant 1 at 128; the sources begin at 200. */
static void reserved_is_checked(void **state)
{
	static const struct change changes[] = {
		{0, 4, (uint32_t)FC_EFULL, "code -4 with a text of 0 bytes"},
		{4, 4, 1, "code 0 with a text of 1 bytes"},
		{40, 8, 1ull << 32, "4294967296 segments with 4 ranges"},
		{40, 8, UINT64_MAX, "segments with 4 ranges"},
		{40, 8, 1, "2 ranges; 4 were announced"},
		{48, 8, 3, "segment of 2 ranges"},
		{56, 8, 0x3000000000040000ull, "no arena of medium 3"},
		{72, 4, 1024, "alignment 1024"},
		{200, 8, 2, "2 blocks of 0 stored"},
		{208, 8, 9, NULL},
		{216, 8, 0, "0 bytes on medium 0"},
	};
	struct fixture fixture;
	(void)state;
	CHECK_CHANGES(7, changes);

	fixture_init(&fixture);
	assert_true(messages_put(&fixture.messages, 7, &fixture.buffer));
	fixture.messages.welcome.area_bytes_max =
		28; /* layer 0 of grant 0: two slices of 10 bytes with their checksums */
	check_change(&fixture, &(struct change){4, 4, 0, NULL});
	fixture.messages.welcome.area_bytes_max = 27;
	check_change(&fixture, &(struct change){4, 4, 0, "layer 0 of a grant has 28 bytes; at most 27"});
	fixture_deinit(&fixture);
}

static void outcomes_are_checked(void **state)
{
	static const struct change committed[] = {
		{0, 4, (uint32_t)FC_ENOENT, "code -5, but it will be durable"},
		{4, 4, 2, "durable is coming is 2"},
		{4, 4, 0, NULL},
	};
	static const struct change durable[] = {{0, 4, 1, "code 1"}, {0, 4, 0, NULL}, {4, 4, 1, "is reserved"}};
	static const struct change found[] = {{0, 4, 7, "code 7"}, {4, 4, 1, "is reserved"}, {8, 8, 0, NULL}};
	static const struct change stated[] = {
		{0, 8, 46, "46 fields; allowed are 47 to 1024"},
		{0, 8, 48, "further fields at byte 384 has 8 bytes; 0 are left"},
		{0, 8, UINT64_MAX, "fields; allowed"},
	};
	(void)state;
	CHECK_CHANGES(9, committed);
	CHECK_CHANGES(11, durable);
	CHECK_CHANGES(16, found);
	CHECK_CHANGES(14, stated);
}

/* ---- reports ---- */

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* 19 counters, three times 24 buckets and a sum, waiters from byte 760. */
static void report_is_checked(void **state)
{
	const struct change changes[] = {
		{160, 8, 1, "load times: more times than can be counted"},
		{352, 8, 0, NULL},
		{752, 4, 17, "17 waiters; at most 16"},
		{752, 4, 15, "32 bytes behind its end"},
		{756, 4, 1, "is reserved"},
		{784, 8, bits_of(NAN), "priority of a waiter is nan"},
		{784, 8, bits_of(INFINITY), "priority of a waiter is inf"},
		{784, 8, bits_of(-1), "priority of a waiter is -1"},
		{784, 8, bits_of(1e300), NULL},
	};
	(void)state;
	CHECK_CHANGES(13, changes);
}

static void a_later_daemon_may_tell_more(void **state)
{
	struct fixture fixture;
	struct fc_wire_header header;
	struct fc_stats stats;
	const uint8_t *body;
	(void)state;
	fixture_init(&fixture);
	assert_true(messages_put(&fixture.messages, 14, &fixture.buffer));
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, "12345678", 8), FC_OK);
	put_number(fixture.buffer.bytes, 8, 8, 8 + 48 * 8);
	put_number(fixture.buffer.bytes, FC_WIRE_HEADER_BYTES, 8, 48);
	assert_int_equal(fc_wire_next(&fixture.buffer, &header, &body, NULL), FC_OK);
	assert_int_equal(fc_wire_get_stated(&stats, body, header.body_bytes, NULL), FC_OK);
	assert_int_equal(stats.media[FC_MEMORY].bytes, 1);
	assert_true(stats.dropped_segments == UINT64_MAX);
	fixture_deinit(&fixture);
}

/* ---- what cannot be sent ---- */

static void more_than_a_frame_takes_is_not_put(void **state)
{
	struct fixture fixture;
	(void)state;
	fixture_init(&fixture);
	struct fc_wire_match match = {.keys = fixture.messages.keys, .key_count = (2u << 20)};
	struct fc_wire_reserve reserve = {.turn = {.resume_point_count = FC_WIRE_POINTS_MAX + 1}};
	assert_int_equal(fc_wire_buffer_add(&fixture.buffer, "before", 6), FC_OK);
	assert_int_equal(fc_wire_put_match(&fixture.buffer, 1, &match), FC_ELIMIT);
	match.key_count = UINT64_MAX / 8;
	assert_int_equal(fc_wire_put_match(&fixture.buffer, 1, &match), FC_ELIMIT);
	assert_int_equal(fc_wire_put_reserve(&fixture.buffer, 1, &reserve), FC_ELIMIT);
	reserve.turn.resume_point_count = 0;
	reserve.turn.resident[7].count = 1ull << 32;
	assert_int_equal(fc_wire_put_reserve(&fixture.buffer, 1, &reserve), FC_EINVAL);
	assert_int_equal(fixture.buffer.used, 6);
	reserve.turn.resident[7].count = UINT32_MAX;
	assert_int_equal(fc_wire_put_reserve(&fixture.buffer, 1, &reserve), FC_OK);
	fixture_deinit(&fixture);
}

static void two_million_keys_are_one_message(void **state)
{
	struct fixture fixture;
	struct fc_wire_header header;
	struct fc_wire_match got;
	const uint8_t *body;
	(void)state;
	fixture_init(&fixture);
	uint64_t count = 2000000;
	struct fc_key *keys = calloc(count, sizeof(*keys)), *copy = calloc(count, sizeof(*keys));
	assert_non_null(keys);
	assert_non_null(copy);
	path_keys(1, 0, keys, count);
	struct fc_wire_match match = {.keys = keys, .key_count = count, .salt = {5, 6}};
	assert_int_equal(fc_wire_put_match(&fixture.buffer, 1, &match), FC_OK);
	assert_int_equal(fc_wire_next(&fixture.buffer, &header, &body, NULL), FC_OK);
	assert_int_equal(fc_wire_get_match(&got, body, header.body_bytes, NULL), FC_OK);
	assert_int_equal(got.found.count, count);
	fc_wire_keys_copy(&got.found, (struct fc_key){5, 6}, copy);
	assert_memory_equal(copy, keys, count * sizeof(*keys));
	free(keys);
	free(copy);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_held_against_their_type),
		cmocka_unit_test(hello_is_checked),
		cmocka_unit_test(versions_are_chosen_or_refused),
		cmocka_unit_test(welcome_is_checked),
		cmocka_unit_test(refusals_are_checked),
		cmocka_unit_test(texts_are_whole_printable_utf8),
		cmocka_unit_test(a_text_without_an_end_is_refused),
		cmocka_unit_test(a_broken_sentence_arrives_with_question_marks),
		cmocka_unit_test(match_is_checked),
		cmocka_unit_test(matched_is_checked),
		cmocka_unit_test(ranges_and_spans_are_checked),
		cmocka_unit_test(a_path_of_more_spans_than_needed_is_refused),
		cmocka_unit_test(damage_is_checked),
		cmocka_unit_test(reserve_is_checked),
		cmocka_unit_test(reserved_is_checked),
		cmocka_unit_test(outcomes_are_checked),
		cmocka_unit_test(report_is_checked),
		cmocka_unit_test(a_later_daemon_may_tell_more),
		cmocka_unit_test(more_than_a_frame_takes_is_not_put),
		cmocka_unit_test(two_million_keys_are_one_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

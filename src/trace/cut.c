/* See cut.h. */
#define _GNU_SOURCE /* memmem */
#include "trace/cut.h"

#include "base/check.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "\"hash_ids\""
#define KEY_BYTES (sizeof(KEY) - 1)
#define SAFE_DIGITS 19 /* that any 64-bit number can have */

static int grow(void **items, uint64_t *capacity, uint64_t count, size_t item_bytes)
{
	if (count <= *capacity)
		return 0;
	uint64_t larger = fc_max_u64(count, fc_max_u64(256, *capacity * 2)), bytes;
	void *grown = fc_mul_overflows(larger, item_bytes, &bytes) ? NULL : realloc(*items, bytes);
	if (grown == NULL)
		return FC_ENOMEM;
	*items = grown;
	*capacity = larger;
	return 0;
}

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
		at++;
	return at;
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Eight digits at once, the first in the lowest byte: pairs, then fours, then all. False if one is none. */
static bool read_eight_digits(const char *at, uint64_t *number)
{
	uint64_t bytes;
	memcpy(&bytes, at, sizeof(bytes));
	bytes = le64toh(bytes);
	if ((bytes & 0xf0f0f0f0f0f0f0f0) != 0x3030303030303030 ||
	    ((bytes + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) != 0x3030303030303030)
		return false;
	bytes = (bytes & 0x0f0f0f0f0f0f0f0f) * (10 << 8 | 1) >> 8;
	bytes = (bytes & 0x00ff00ff00ff00ff) * (100 << 16 | 1) >> 16;
	*number = (bytes & 0x0000ffff0000ffff) * (10000ull << 32 | 1) >> 32;
	return true;
}

/* One integer from 0 to 2^64 - 1 without a leading zero; NULL for anything else. */
static const char *read_integer(const char *at, const char *end, uint64_t *number)
{
	const char *first = at;
	uint64_t eight;
	*number = 0;
	for (; end - at >= 8 && at - first <= SAFE_DIGITS - 8 && read_eight_digits(at, &eight); at += 8)
		*number = *number * 100000000 + eight;
	for (; at < end && is_digit(*at) && at - first < SAFE_DIGITS; at++)
		*number = *number * 10 + (uint64_t)(*at - '0');
	for (; at < end && is_digit(*at); at++) {
		if (fc_mul_overflows(*number, 10, number) || fc_add_overflows(*number, (uint64_t)(*at - '0'), number))
			return NULL;
	}
	bool is_other_number = at == end || *at == '.' || *at == 'e' || *at == 'E';
	bool has_leading_zero = at - first > 1 && *first == '0';
	return at == first || is_other_number || has_leading_zero ? NULL : at;
}

/* The list behind its opening bracket: its end, behind the closing one, with *ids appended to. NULL if it is not plain,
 * with *bad_at as the first item that is to blame. There is room: a list has fewer ids than bytes. */
static const char *read_list(const char *at, const char *end, uint64_t *ids, uint64_t *count, const char **bad_at)
{
	at = skip_space(at, end);
	if (at < end && *at == ']')
		return at + 1;
	for (;;) {
		*bad_at = skip_space(at, end);
		at = read_integer(*bad_at, end, &ids[*count]);
		if (at == NULL)
			return NULL;
		++*count;
		at = skip_space(at, end);
		if (at == end || (*at != ',' && *at != ']'))
			return NULL;
		if (*at++ == ']')
			return at;
	}
}

/* From behind the key to behind the opening bracket; NULL if the value is no array. */
static const char *open_list(const char *at, const char *end)
{
	at = skip_space(at, end);
	if (at == end || *at++ != ':')
		return NULL;
	at = skip_space(at, end);
	return at < end && *at == '[' ? at + 1 : NULL;
}

static void append_text(struct fc_cut *cut, const char *bytes, uint64_t byte_count)
{
	memcpy(cut->text + cut->text_bytes, bytes, byte_count);
	cut->text_bytes += byte_count;
}

/* Notes a list that was read up to `record_end`, and puts its number into the text. A number may be longer than the
 * list that it stands for, so room is made for each, and for the rest of the record. */
static int close_list(struct fc_cut *cut, uint64_t record_end, uint64_t bytes_left)
{
	char number[24];
	int number_bytes = snprintf(number, sizeof(number), "-%llu ", (unsigned long long)cut->list_count + 1);
	if (grow((void **)&cut->lists, &cut->list_capacity, cut->list_count + 1, sizeof(*cut->lists)) != 0 ||
	    grow((void **)&cut->text, &cut->text_capacity, cut->text_bytes + sizeof(number) + bytes_left, 1) != 0)
		return FC_ENOMEM;
	append_text(cut, number, (uint64_t)number_bytes);
	cut->lists[cut->list_count++] =
		(struct fc_cut_list){.id_end = cut->id_count, .text_end = cut->text_bytes, .record_end = record_end};
	return 0;
}

/* Room for the ids of a list: at most one for every two bytes up to its closing bracket. */
static int reserve_ids(struct fc_cut *cut, const char *at, const char *end)
{
	const char *close = memchr(at, ']', (size_t)(end - at));
	uint64_t bytes = (uint64_t)((close != NULL ? close : end) - at);
	return grow((void **)&cut->ids, &cut->id_capacity, cut->id_count + bytes / 2 + 2, sizeof(*cut->ids));
}

/* Takes the list behind `list`, its opening bracket, if it is plain: *at moves from there to its end, else stays. */
static int take_list(struct fc_cut *cut, const char *bytes, const char *list, const char *end, const char **at)
{
	const char *bad_at = list;
	uint64_t id_count = cut->id_count;
	if (reserve_ids(cut, list, end) != 0)
		return FC_ENOMEM;
	const char *list_end = read_list(list, end, cut->ids, &cut->id_count, &bad_at);
	if (list_end == NULL) {
		cut->id_count = id_count;
		cut->bad_at = fc_min_u64(cut->bad_at, (uint64_t)(bad_at - bytes));
		append_text(cut, *at, (uint64_t)(list - *at));
		*at = list;
		return 0;
	}
	append_text(cut, *at, (uint64_t)(list - 1 - *at));
	*at = list_end;
	return close_list(cut, (uint64_t)(list_end - bytes), (uint64_t)(end - list_end));
}

int fc_cut_record(struct fc_cut *cut, const char *bytes, uint64_t byte_count)
{
	const char *at = bytes, *end = bytes + byte_count, *key;
	cut->text_bytes = cut->id_count = cut->list_count = 0;
	cut->bad_at = UINT64_MAX;
	if (grow((void **)&cut->text, &cut->text_capacity, byte_count + 1, 1) != 0)
		return FC_ENOMEM;
	while ((key = memmem(at, (size_t)(end - at), KEY, KEY_BYTES)) != NULL) {
		const char *list = open_list(key + KEY_BYTES, end);
		if (list == NULL)
			return 0;
		if (take_list(cut, bytes, list, end, &at) != 0)
			return FC_ENOMEM;
	}
	append_text(cut, at, (uint64_t)(end - at));
	return cut->list_count > 0 || cut->bad_at != UINT64_MAX;
}

void fc_cut_deinit(struct fc_cut *cut)
{
	free(cut->text);
	free(cut->ids);
	free(cut->lists);
	*cut = (struct fc_cut){0};
}

const uint64_t *fc_cut_list(const struct fc_cut *cut, int64_t number, uint64_t *id_count)
{
	uint64_t list = (uint64_t) - (number + 1);
	fc_check(number < 0 && list < cut->list_count);
	uint64_t start = list > 0 ? cut->lists[list - 1].id_end : 0;
	*id_count = cut->lists[list].id_end - start;
	return cut->ids + start;
}

uint64_t fc_cut_place(const struct fc_cut *cut, uint64_t text_place)
{
	uint64_t passed = 0; /* lists that end before the place */
	while (passed < cut->list_count && cut->lists[passed].text_end <= text_place)
		passed++;
	if (passed == 0)
		return text_place;
	return cut->lists[passed - 1].record_end + (text_place - cut->lists[passed - 1].text_end);
}

/* Strict reading of JSON records: every refusal names file:line: field, the value, and what is allowed.
 *
 * jansson parses, keeps integers as signed 64-bit (never as a double), and refuses what does not fit. It does not keep
 * the places of values, so a place is looked up in the text again once something is wrong with it. For the readers of
 * this folder. */
#ifndef FC_TRACE_JSON_H
#define FC_TRACE_JSON_H

#include "trace/cut.h"

#include <jansson.h>

#define FC_JSON_ID_RANGE "an integer from 0 to 18446744073709551615"

/* The text of one record: a line of a file, or a whole file. Borrowed. */
struct fc_json_text {
	const char *file;
	uint64_t first_line; /* from 1 */
	const char *bytes;
	size_t byte_count;
	struct fc_cut *cut; /* NULL, or where fc_json_parse() may put lists of ids, see cut.h */
	bool is_cut;        /* it did */
};

/* A value's place in a record, from inside out: a member `key` of the object at `parent`, or, with key NULL, an item of
 * the array there. The root has parent NULL, key NULL and is written as nothing. Lives on the caller's stack. */
struct fc_json_at {
	const struct fc_json_at *parent;
	const char *key;
	size_t index;
};

/* The caller releases *root with json_decref(). FC_EINVAL, or FC_ENOMEM. */
FC_MUST_USE int fc_json_parse(struct fc_json_text *text, json_t **root, struct fc_error *error);

/* Writes the error about the value at `at`, or about its absence, and returns FC_EINVAL. */
int fc_json_refuse(const struct fc_json_text *text, const struct fc_json_at *at, const char *allowed,
		   struct fc_error *error);

/* An integer from `min` to `max`, at most 2^63 - 1. `value` is what stands at `at`; NULL when it is missing. */
FC_MUST_USE int fc_json_integer(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *value,
				uint64_t min, uint64_t max, uint64_t *result, struct fc_error *error);

/* A time in units of `unit_ns`, whole or with a fraction, from 0 to `max_ns`, rounded to nanoseconds. */
#define FC_JSON_SPAN_NS_MAX 100000000000000000ull /* of a trace or a session: three years */
#define FC_JSON_TIME_NS_MAX ((uint64_t)INT64_MAX) /* since 1970: the year 2262 */
FC_MUST_USE int fc_json_time(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *value,
			     uint64_t unit_ns, uint64_t max_ns, uint64_t *result_ns, struct fc_error *error);

/* The member `key` of the object at `at`, as above. */
FC_MUST_USE int fc_json_member_integer(const struct fc_json_text *text, const struct fc_json_at *at,
				       const json_t *object, const char *key, uint64_t max, uint64_t *result,
				       struct fc_error *error);

/* The ids of the array that is the member `key`, into `ids`, which is grown; 64 bits each. */
struct fc_json_ids {
	uint64_t *items;
	uint64_t capacity;
	uint64_t count;
};
FC_MUST_USE int fc_json_member_ids(const struct fc_json_text *text, const struct fc_json_at *at, const json_t *object,
				   const char *key, struct fc_json_ids *ids, struct fc_error *error);
void fc_json_ids_deinit(struct fc_json_ids *ids);

#endif

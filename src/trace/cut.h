/* Cuts the lists of ids out of a record before it is parsed.
 *
 * Nearly all of a trace is lists of ids, and a parser that makes an object of each id needs ten times the memory and
 * time of one that knows what it wants. So members "hash_ids" whose value is an array of plain integers from 0 to
 * 2^64 - 1 are read here, and the parser is given the record with a number in the place of each:
 *
 *     {"in":150,"hash_ids":[7,8,12],"out":3}   becomes   {"in":150,"hash_ids":-1 ,"out":3}   and list 0: 7 8 12
 *
 * -1 - n stands for list n; the space keeps it apart from digits that stand wrongly behind a list. An array that holds
 * anything else stays as it is, for the parser to say what is wrong with it. If a "hash_ids" has a value that is no
 * array, nothing at all is cut from the record: such a number could be taken for one of these. */
#ifndef FC_TRACE_CUT_H
#define FC_TRACE_CUT_H

#include "base/error.h"

/* A list that was cut out. */
struct fc_cut_list {
	uint64_t id_end;     /* the next one's ids begin there */
	uint64_t text_end;   /* behind the number that stands for it */
	uint64_t record_end; /* behind the list in the record */
};

struct fc_cut {
	char *text; /* of the record, without its lists */
	uint64_t text_bytes, text_capacity;
	uint64_t *ids; /* of all lists */
	uint64_t id_count, id_capacity;
	struct fc_cut_list *lists;
	uint64_t list_count, list_capacity;
	uint64_t
		bad_at; /* place in the record of the first item of a list that is no plain integer; UINT64_MAX: none */
};

/* Fills `cut`, which is used again for record after record: 1, or 0 if nothing was cut; FC_ENOMEM. */
FC_MUST_USE int fc_cut_record(struct fc_cut *cut, const char *bytes, uint64_t byte_count);
void fc_cut_deinit(struct fc_cut *cut);

/* The list that the parsed number stands for. */
const uint64_t *fc_cut_list(const struct fc_cut *cut, int64_t number, uint64_t *id_count);

/* The place in the record of what stands at a place in the text. */
uint64_t fc_cut_place(const struct fc_cut *cut, uint64_t text_place);

#endif

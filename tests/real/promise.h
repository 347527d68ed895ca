/* What the writers were promised, and whether it was kept. A session that was acknowledged as durable must be there
 * with at least the acknowledged blocks. It may be missing only where the store reclaims, and then only
 *   - if the arena was full: its use is still above the low watermark, less what a kill can have freed half-way; and
 *   - if it was older, by its last use, than every session that is still there. */
#ifndef FC_TESTS_REAL_PROMISE_H
#define FC_TESTS_REAL_PROMISE_H

#include "real/writer.h"

struct promise {
	uint64_t submitted_blocks, durable_blocks;
	uint64_t submitted_order, durable_order; /* of the last such record */
	uint64_t used_order;                     /* of the last save that used it, be it a branch's */
	bool is_reclaimed;
};

struct promises {
	struct promise *sessions; /* by number */
	uint64_t session_room;
	uint64_t session_end; /* behind the highest that was used */
	uint64_t order;
	uint64_t durable_count, refused_count; /* records, in all */
	uint64_t reclaimed_count;
};

void promises_deinit(struct promises *promises);
/* Another folder: nothing is promised any more, numbers go on. */
void promises_forget(struct promises *promises);
void promises_note(struct promises *promises, const struct writer_record *record);

/* A store that was opened to be looked at. */
struct promise_witness {
	struct fc_store *store;
	struct fc_kv *kv;
	struct engine *engine;
};

/* Loads every session and compares every byte; fails the test when a promise is broken. Returns how many sessions it
 * found whole. */
uint64_t promises_check(struct promises *promises, const struct promise_witness *witness, bool is_reclaiming);

#endif

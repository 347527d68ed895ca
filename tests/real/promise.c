#include "real/promise.h"

#include "base/check.h"
#include "lib/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Saves in flight may be given their place in another order than they were submitted in. */
#define ORDER_SLACK (2 * WRITER_LANES)

void promises_deinit(struct promises *promises)
{
	free(promises->sessions);
}

void promises_forget(struct promises *promises)
{
	if (promises->session_room > 0)
		memset(promises->sessions, 0, promises->session_room * sizeof(*promises->sessions));
}

static struct promise *promise_of(struct promises *promises, uint64_t session)
{
	if (session >= promises->session_room) {
		uint64_t room = fc_max_u64(1024, 2 * session);
		promises->sessions = realloc(promises->sessions, room * sizeof(*promises->sessions));
		assert_non_null(promises->sessions);
		memset(&promises->sessions[promises->session_room], 0,
		       (room - promises->session_room) * sizeof(*promises->sessions));
		promises->session_room = room;
	}
	promises->session_end = fc_max_u64(promises->session_end, session + 1);
	return &promises->sessions[session];
}

/* What a branch stands on is as young as the branch. */
static void note_use_of_base(struct promises *promises, uint64_t session)
{
	struct fc_key keys[WRITER_BLOCKS];
	uint64_t base, shared_blocks;
	writer_session_keys(session, keys, &base, &shared_blocks);
	if (shared_blocks > 0)
		promise_of(promises, base)->used_order = promises->order;
}

void promises_note(struct promises *promises, const struct writer_record *record)
{
	struct promise *promise = promise_of(promises, record->session);
	switch (record->event) {
	case WRITER_SUBMITTED:
		promise->submitted_blocks = record->blocks;
		promise->submitted_order = promise->used_order = ++promises->order;
		note_use_of_base(promises, record->session);
		break;
	case WRITER_DURABLE:
		promise->durable_blocks = record->blocks;
		promise->durable_order = promise->submitted_order;
		promises->durable_count++;
		break;
	case WRITER_REFUSED:
		promises->refused_count++;
		break;
	default:
		break;
	}
}

/* Blocks that are in place for the session, each compared. */
static uint64_t load(const struct promise_witness *witness, const struct fc_key *keys, uint64_t session)
{
	struct fc_error error = {0};
	struct fc_load *load = NULL;
	struct fc_load_result result;
	struct fc_load_opts opts = {
		.keys = keys, .key_count = WRITER_BLOCKS, .kv = witness->kv, .is_started_when_ready = true};
	engine_slots(witness->engine, WRITER_BLOCKS, opts.slots);
	engine_wipe(witness->engine);
	if (fc_load_submit(witness->store, &opts, &load, &error) != FC_OK)
		fail_msg("session %llu: load: %s", (unsigned long long)session, error.text);
	(void)fc_load_wait(load, &result);
	fc_load_free(load);
	if (result.code != FC_OK)
		fail_msg("session %llu: load: %s", (unsigned long long)session, result.error.text);
	engine_check(witness->engine, keys, result.blocks);
	return result.blocks;
}

/* Orders of last use: the newest of what is gone, at least, and the oldest of what is there, at most. */
struct ages {
	uint64_t newest_gone, newest_gone_session;
	uint64_t oldest_kept, oldest_kept_session;
	uint64_t whole_count, gone_count;
};

static void look_at(struct promises *promises, uint64_t session, const struct promise_witness *witness,
		    struct ages *ages)
{
	struct fc_key keys[WRITER_BLOCKS];
	uint64_t base, shared_blocks;
	struct promise *promise = &promises->sessions[session];
	if (promise->submitted_blocks == 0)
		return;
	writer_session_keys(session, keys, &base, &shared_blocks);
	uint64_t blocks = load(witness, keys, session);
	if (blocks >= promise->durable_blocks) {
		ages->whole_count += blocks > 0;
		if (promise->durable_blocks > 0 && promise->used_order < ages->oldest_kept) {
			ages->oldest_kept = promise->used_order;
			ages->oldest_kept_session = session;
		}
		return;
	}
	ages->gone_count++;
	promise->is_reclaimed = true;
	if (promise->durable_order > ages->newest_gone) {
		ages->newest_gone = promise->durable_order;
		ages->newest_gone_session = session;
	}
	*promise = (struct promise){.submitted_blocks = promise->submitted_blocks, .is_reclaimed = true};
}

static void check_gone(const struct promise_witness *witness, const struct ages *ages)
{
	struct fc_stats stats;
	struct fc_store_opts opts;
	fc_store_opts_init(&opts);
	assert_int_equal(fc_store_stats(witness->store, &stats), FC_OK);
	const struct fc_medium_stats *ssd = &stats.media[FC_SSD];
	/* A kill in the middle of a reclaim frees what was under way without what was to take its place. */
	if ((double)ssd->bytes_used < (opts.low_watermark - 0.2) * (double)ssd->bytes)
		fail_msg("%llu sessions are gone, session %llu for one, and the arena is not full: %llu bytes of %llu",
			 (unsigned long long)ages->gone_count, (unsigned long long)ages->newest_gone_session,
			 (unsigned long long)ssd->bytes_used, (unsigned long long)ssd->bytes);
	if (ages->newest_gone > ages->oldest_kept + ORDER_SLACK)
		fail_msg("session %llu is gone, last used by save %llu; session %llu is older (%llu) and still there",
			 (unsigned long long)ages->newest_gone_session, (unsigned long long)ages->newest_gone,
			 (unsigned long long)ages->oldest_kept_session, (unsigned long long)ages->oldest_kept);
}

uint64_t promises_check(struct promises *promises, const struct promise_witness *witness, bool is_reclaiming)
{
	struct ages ages = {.oldest_kept = UINT64_MAX / 2};
	for (uint64_t session = 0; session < promises->session_end; session++)
		look_at(promises, session, witness, &ages);
	if (ages.gone_count > 0 && !is_reclaiming)
		fail_msg("session %llu was acknowledged as durable, the arena has room, and it is gone (%llu in all)",
			 (unsigned long long)ages.newest_gone_session, (unsigned long long)ages.gone_count);
	if (ages.gone_count > 0)
		check_gone(witness, &ages);
	promises->reclaimed_count += ages.gone_count;
	return ages.whole_count;
}

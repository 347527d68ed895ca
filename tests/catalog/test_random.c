/* Does the catalog keep its promises whatever is asked of it, in whatever order? Random turns, loads under leases,
 * branches, evictions, damage and power failures, against a model that knows three things:
 *
 *   - what is read back has the bytes of its key, also at the end of a lease
 *   - what was saved is there when the commit returns, and a turn that is refused without a wait takes nobody
 *   - a session that has not been reported lost has every path that it saved, to its end
 *   - after a power failure, that is so for every session whose last save was durable and lay on SSD
 *
 * Some runs also have media that refuse writes, others an allocator that fails. fc_catalog_check() looks after the
 * rest, after every step. FC_SEED=n runs one life alone. */
#include "base/random.h"
#include "lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SESSIONS 10u
#define BLOCKS_MAX 96u
#define TIPS_MAX 3u
#define LOADS_MAX 4u
#define PUTS_MAX 3u
#define STEPS 1500
#define SEEDS 40
#define SEEDS_SANITIZED 6

/* A path that a session has saved and must still have. */
struct tip {
	struct fc_key keys[BLOCKS_MAX];
	uint64_t count;
};

struct model_session {
	uint64_t id;
	struct fc_key keys[BLOCKS_MAX];
	uint64_t count, prompt_count;
	uint64_t turn;
	struct tip tips[TIPS_MAX];
	uint32_t tip_count;
	struct tip safe; /* the last one that became durable: what is left when a medium refuses what came after it */
	bool is_busy;    /* a put of it is open */
	bool is_twin;    /* others own its blocks, so it has none that it must still have */
};

struct open_load {
	struct fc_path path;
	struct fc_key keys[BLOCKS_MAX];
};

struct open_put {
	struct put put;
	struct fc_key keys[BLOCKS_MAX];
	struct model_session *session;
	uint64_t session_id;
	uint64_t resume_point;
	bool is_open, is_noted;
};

struct run {
	struct world world;
	struct fc_random random;
	struct model_session sessions[SESSIONS];
	struct open_load loads[LOADS_MAX];
	struct open_put puts[PUTS_MAX];
	uint64_t next_seed;
	bool has_io_faults, has_memory_faults;
	uint64_t saved, unsaved, refused, crashes;
};

static uint64_t below(struct run *run, uint64_t bound)
{
	return fc_random_below(&run->random, bound);
}

static uint64_t granule(const struct run *run)
{
	return fc_resume_granule(&run->world.geometry);
}

/* ---- sessions ---- */

/* A new conversation, on one of three prompts. */
static void begin_session(struct run *run, struct model_session *session)
{
	static const uint64_t prompt_blocks[3] = {4, 6, 10};
	uint64_t prompt = below(run, 3);
	bool is_busy = session->is_busy;
	*session = (struct model_session){.id = ++run->next_seed, .is_busy = is_busy};
	session->prompt_count = prompt_blocks[prompt];
	path_keys(1000 + prompt, 0, session->keys, session->prompt_count);
	session->count = session->prompt_count + granule(run) * (1 + below(run, 4));
	path_keys(++run->next_seed, session->prompt_count, session->keys, session->count);
}

static void extend_session(struct run *run, struct model_session *session)
{
	uint64_t more = granule(run) * (1 + below(run, 8));
	if (session->count + more > BLOCKS_MAX) {
		begin_session(run, session);
		return;
	}
	path_keys(++run->next_seed, session->count, session->keys, session->count + more);
	session->count += more;
}

/* An edited history: the conversation goes on from an earlier block. */
static void branch_session(struct run *run, struct model_session *session)
{
	uint64_t own = (session->count - session->prompt_count) / granule(run);
	session->count = session->prompt_count + granule(run) * below(run, own + 1);
	extend_session(run, session);
}

/* Another conversation that says the same as some other has said so far. */
static void begin_twin(struct run *run, struct model_session *session)
{
	const struct model_session *other = &run->sessions[below(run, SESSIONS)];
	if (other->is_busy)
		return; /* what it is about to save would belong to whoever comes first */
	struct model_session twin = *other;
	twin.id = ++run->next_seed;
	twin.is_twin = true;
	twin.turn = twin.tip_count = 0;
	*session = twin;
}

static void on_loss(void *context, struct fc_session_id id)
{
	struct run *run = context;
	for (uint32_t i = 0; i < SESSIONS; i++)
		if (run->sessions[i].id == id.low && id.high == 0)
			run->sessions[i].tip_count = 0, run->sessions[i].safe.count = 0;
}

static void forget_all(struct run *run)
{
	for (uint32_t i = 0; i < SESSIONS; i++)
		run->sessions[i].tip_count = 0, run->sessions[i].safe.count = 0;
}

static bool is_prefix_of(const struct tip *tip, const struct fc_key *keys, uint64_t count)
{
	return tip->count <= count && memcmp(tip->keys, keys, tip->count * sizeof(*keys)) == 0;
}

/* Only the end of a path is remembered, not what lies on the way to it. */
static void remember_tip(struct model_session *session, const struct fc_key *keys, uint64_t count)
{
	for (uint32_t i = 0; i < session->tip_count; i++)
		if (is_prefix_of(&session->tips[i], keys, count))
			session->tips[i--] = session->tips[--session->tip_count];
	if (session->tip_count == TIPS_MAX)
		session->tip_count--;
	struct tip *tip = &session->tips[session->tip_count++];
	memcpy(tip->keys, keys, count * sizeof(*keys));
	tip->count = count;
}

static void check_tips(struct run *run)
{
	for (uint32_t i = 0; i < SESSIONS; i++)
		for (uint32_t j = 0; j < run->sessions[i].tip_count; j++) {
			struct tip *tip = &run->sessions[i].tips[j];
			assert_int_equal(stored(&run->world, tip->keys, tip->count), tip->count);
		}
}

/* ---- saves ---- */

static struct open_put *free_put(struct run *run)
{
	for (uint32_t i = 0; i < PUTS_MAX; i++)
		if (!run->puts[i].is_open && put_is_settled(&run->puts[i].put))
			return &run->puts[i];
	return NULL;
}

static uint64_t stored_quietly(struct run *run, const struct fc_key *keys, uint64_t count)
{
	uint64_t fail_at = run->world.tracked.fail_at;
	run->world.tracked.fail_at = 0;
	uint64_t blocks = stored(&run->world, keys, count);
	run->world.tracked.fail_at = fail_at == 0 ? 0 : fc_max_u64(fail_at, run->world.tracked.call_count + 1);
	return blocks;
}

static uint64_t sessions_reclaimed(const struct run *run)
{
	struct fc_stats stats = world_stats(&run->world);
	return stats.media[FC_MEMORY].sessions_reclaimed + stats.media[FC_SSD].sessions_reclaimed;
}

static void begin_put(struct run *run)
{
	struct open_put *open = free_put(run);
	struct model_session *session = &run->sessions[below(run, SESSIONS)];
	if (open == NULL || session->is_busy)
		return;
	uint64_t choice = below(run, 10);
	if (choice == 0 && below(run, 2) == 0)
		begin_twin(run, session);
	else if (choice == 0)
		begin_session(run, session);
	else if (choice <= 2)
		branch_session(run, session);
	else
		extend_session(run, session);
	memcpy(open->keys, session->keys, sizeof(open->keys));
	fc_reservation_deinit(&open->put.reservation, &run->world.alloc);
	put_init(&open->put, &run->world, session->id, session->turn, open->keys, session->count);
	open->put.turn.shared_blocks = below(run, 2) == 0 ? session->prompt_count : 0;
	open->resume_point = session->prompt_count;
	open->put.turn.resume_points = &open->resume_point;
	open->put.turn.resume_point_count = below(run, 4) == 0;
	open->put.turn.previous_reply_tokens = below(run, 3) == 0 ? 1u << 30 : 0;
	uint64_t have_blocks = stored_quietly(run, open->keys, session->count);
	if (below(run, 4) == 0) /* the device holds only what is new */
		for (uint32_t group = 0; group < run->world.geometry.group_count; group++) {
			uint64_t have = have_blocks;
			uint64_t span = fc_group_span(&run->world.geometry, group);
			open->put.turn.resident[group].first_block = have / span;
			open->put.turn.resident[group].count -= have / span;
		}
	uint64_t reclaimed = sessions_reclaimed(run);
	int code = put_reserve(&open->put);
	if (code != FC_OK) {
		run->refused++;
		if (code == FC_EFULL && open->put.reservation.space_attempts == 0)
			assert_int_equal(sessions_reclaimed(run), reclaimed);
		session->tip_count = 0; /* the model follows no branch of it any more */
		begin_session(run, session);
		return;
	}
	open->session = session;
	open->session_id = session->id;
	open->is_noted = true;
	session->is_busy = open->is_open = true;
}

static bool has_unsettled_put(const struct run *run, const struct model_session *session)
{
	for (uint32_t i = 0; i < PUTS_MAX; i++)
		if (run->puts[i].session == session && !put_is_settled(&run->puts[i].put))
			return true;
	return false;
}

/* What has become durable since the last time, or could not. */
static void note_durable(struct run *run)
{
	for (uint32_t i = 0; i < PUTS_MAX; i++) {
		struct open_put *open = &run->puts[i];
		struct model_session *session = open->session;
		bool has_failed = open->put.reservation.durable_code != FC_OK; /* of two media, one may be early */
		if (open->is_open || open->is_noted || session == NULL || (!put_is_settled(&open->put) && !has_failed))
			continue;
		open->is_noted = true;
		if (session->id != open->session_id || session->is_twin)
			continue;
		struct tip tip = {.count = open->put.turn.key_count};
		memcpy(tip.keys, open->keys, sizeof(tip.keys));
		if (!has_failed && session->tip_count > 0 && !has_unsettled_put(run, session))
			session->safe = tip;
		if (!has_failed)
			continue;
		run->unsaved++;
		session->tip_count = 0;
		if (session->safe.count > 0)
			session->tips[session->tip_count++] = session->safe;
	}
}

static void end_put(struct run *run, struct open_put *open)
{
	struct model_session *session = open->session;
	open->is_open = session->is_busy = false;
	if (put_write(&open->put) != FC_OK || below(run, 8) == 0) {
		put_abort(&open->put);
		return;
	}
	uint64_t blocks_new = open->put.reservation.blocks_new;
	if (blocks_new > 0 && !session->is_twin)
		remember_tip(session, open->keys, open->put.turn.key_count);
	if (put_commit(&open->put) != FC_OK) {
		session->tip_count = session->safe.count = 0;
		return;
	}
	assert_int_equal(stored_quietly(run, open->keys, open->put.turn.key_count), open->put.turn.key_count);
	run->saved++;
	session->turn++;
	open->is_noted = false;
	note_durable(run);
}

static void end_random_put(struct run *run)
{
	struct open_put *open = &run->puts[below(run, PUTS_MAX)];
	if (open->is_open)
		end_put(run, open);
}

/* ---- loads ---- */

static void release_load(struct run *run, struct open_load *load)
{
	if (!load->path.is_leased)
		return;
	verify_path(&run->world, &load->path, load->keys);
	fc_catalog_release(run->world.catalog, &load->path);
}

static void begin_load(struct run *run)
{
	struct open_load *load = &run->loads[below(run, LOADS_MAX)];
	const struct model_session *session = &run->sessions[below(run, SESSIONS)];
	release_load(run, load);
	memcpy(load->keys, session->keys, sizeof(load->keys));
	if (fc_catalog_match(run->world.catalog, load->keys, session->count, 0, true, &load->path) != FC_OK)
		return;
	verify_path(&run->world, &load->path, load->keys);
}

static void damage(struct run *run)
{
	const struct model_session *session = &run->sessions[below(run, SESSIONS)];
	struct fc_path path = {0};
	int code = fc_catalog_match(run->world.catalog, session->keys, session->count, 0, true, &path);
	if (code == FC_OK && path.span_count > 0) {
		const struct fc_span *span = &path.spans[below(run, path.span_count)];
		uint64_t entry = span->entry_first + below(run, span->count);
		fc_catalog_cut(run->world.catalog, path.placed[span->placed].segment, entry);
		forget_all(run); /* who stood on it without a segment of its own behind it is not told */
	}
	fc_catalog_release(run->world.catalog, &path);
	fc_path_deinit(&path, &run->world.alloc);
}

static void evict(struct run *run)
{
	struct fc_session_id id = {0, run->sessions[below(run, SESSIONS)].id};
	int code = fc_catalog_evict(run->world.catalog, id);
	assert_true(code == FC_OK || code == FC_ENOENT || code == FC_EBUSY);
}

/* ---- power failures ---- */

static bool lies_on_ssd(struct run *run, const struct tip *tip)
{
	struct fc_path path = {0};
	assert_int_equal(fc_catalog_match(run->world.catalog, tip->keys, tip->count, 0, false, &path), 0);
	bool is_ssd = path.bytes[FC_MEMORY] == 0 && path.blocks == tip->count;
	fc_path_deinit(&path, &run->world.alloc);
	return is_ssd;
}

static void forget_what_may_be_lost(struct run *run, bool is_settled)
{
	for (uint32_t i = 0; i < SESSIONS; i++)
		run->sessions[i].safe.count = 0;
	for (uint32_t i = 0; i < SESSIONS; i++)
		for (uint32_t j = 0; j < run->sessions[i].tip_count; j++) {
			struct tip *tip = &run->sessions[i].tips[j];
			if (!is_settled || !lies_on_ssd(run, tip))
				run->sessions[i].tips[j--] = run->sessions[i].tips[--run->sessions[i].tip_count];
		}
}

static void crash(struct run *run)
{
	bool is_settled = below(run, 2) == 0;
	for (uint32_t i = 0; i < LOADS_MAX; i++)
		release_load(run, &run->loads[i]);
	for (uint32_t i = 0; i < PUTS_MAX; i++)
		if (run->puts[i].is_open)
			end_put(run, &run->puts[i]);
	if (is_settled)
		world_drain(&run->world);
	else
		for (uint64_t polls = below(run, 6); polls > 0; polls--)
			world_poll(&run->world);
	note_durable(run);
	forget_what_may_be_lost(run, is_settled);
	fc_catalog_on_loss(run->world.catalog, NULL, NULL);
	world_crash(&run->world, below(run, 1u << 30));
	assert_int_equal(world_open(&run->world), 0);
	fc_catalog_on_loss(run->world.catalog, on_loss, run);
	run->crashes++;
}

/* ---- faults ---- */

static void set_faults(struct run *run)
{
	struct fake_media *ssd = run->world.media[FC_SSD];
	if (run->has_io_faults && below(run, 60) == 0) {
		ssd->fail_at = ssd->op_count + 1 + below(run, 6);
		ssd->fail_count = 1 + below(run, 4);
		ssd->is_short = below(run, 2) == 0;
	}
	if (run->has_memory_faults && below(run, 30) == 0)
		run->world.tracked.fail_at = run->world.tracked.call_count + 1 + below(run, 30);
}

static void clear_faults(struct run *run)
{
	struct tracked_alloc *tracked = &run->world.tracked;
	if (tracked->fail_at != 0 && tracked->call_count >= tracked->fail_at)
		forget_all(run);
	tracked->fail_at = 0;
}

/* ---- the run ---- */

static void step(struct run *run)
{
	uint64_t choice = below(run, 1000);
	if (choice < 980)
		set_faults(run);
	if (choice < 300)
		begin_put(run);
	else if (choice < 700)
		end_random_put(run);
	else if (choice < 800)
		begin_load(run);
	else if (choice < 860)
		release_load(run, &run->loads[below(run, LOADS_MAX)]);
	else if (choice < 930)
		world_poll(&run->world);
	else if (choice < 950)
		world_drain(&run->world);
	else if (choice < 955)
		evict(run);
	else if (choice < 957)
		damage(run);
	else if (choice < 980)
		(void)spill_one(&run->world);
	else if (choice < 984)
		crash(run);
}

static void choose_world(struct run *run)
{
	struct world *world = &run->world;
	struct fc_geometry geometry = below(run, 2) == 0 ? geometry_plain(60) : geometry_hybrid(60);
	uint64_t memory_chunks = below(run, 4) == 0 ? 0 : 8 + below(run, 40);
	world_init(world, geometry, memory_chunks, 40 + below(run, 120));
	if (memory_chunks > 0 && below(run, 4) == 0)
		world_make_memory_durable(world);
	static const double ratios[] = {0, 0.5, 1, 2};
	world->opts.consolidate_ratio = ratios[below(run, 4)];
	world->opts.high_watermark = below(run, 2) == 0 ? 1 : 0.9;
	world->opts.low_watermark = world->opts.high_watermark - 0.2;
	world->opts.memory_reclaim = below(run, 2) == 0 ? FC_MEMORY_DROP : FC_MEMORY_SPILL;
	world->opts.reclaim_order = below(run, 2) == 0 ? FC_RECLAIM_LEAST_RECENTLY_USED : FC_RECLAIM_OLDEST_CREATED;
	world->opts.agent_context_tokens = 4 * (20 + below(run, 60));
	world->opts.long_reply_tokens = 1u << 20;
	world->opts.area_bytes_max = below(run, 3) == 0 ? 8 * 700 : 0; /* long turns become several segments */
	run->has_io_faults = below(run, 3) == 0;
	run->has_memory_faults = below(run, 4) == 0;
	if (below(run, 2) == 0)
		world->media[FC_SSD]->shuffle_seed = 1 + below(run, 1000);
}

static void finish(struct run *run)
{
	for (uint32_t i = 0; i < LOADS_MAX; i++) {
		release_load(run, &run->loads[i]);
		fc_path_deinit(&run->loads[i].path, &run->world.alloc);
	}
	for (uint32_t i = 0; i < PUTS_MAX; i++)
		if (run->puts[i].is_open)
			end_put(run, &run->puts[i]);
	world_drain(&run->world);
	world_check(&run->world);
	for (uint32_t i = 0; i < PUTS_MAX; i++)
		fc_reservation_deinit(&run->puts[i].put.reservation, &run->world.alloc);
	world_deinit(&run->world);
}

static void run_seed(uint64_t seed)
{
	struct run *run = calloc(1, sizeof(*run));
	fc_random_init(&run->random, seed);
	choose_world(run);
	assert_int_equal(world_open(&run->world), 0);
	fc_catalog_on_loss(run->world.catalog, on_loss, run);
	for (uint32_t i = 0; i < SESSIONS; i++)
		begin_session(run, &run->sessions[i]);
	for (int i = 0; i < STEPS; i++) {
		step(run);
		clear_faults(run);
		note_durable(run);
		world_check(&run->world);
		if (i % 4 == 0)
			check_tips(run);
	}
	finish(run);
	free(run);
}

/* Sanitizers take ten times as long, and look for other faults than the model does. */
static bool is_sanitized(void)
{
	const char *sanitizers = getenv("FC_SANITIZE");
	return sanitizers != NULL && sanitizers[0] != 0;
}

static void random_lives_keep_every_promise(void **state)
{
	(void)state;
	const char *only = getenv("FC_SEED");
	if (only != NULL) {
		run_seed(strtoull(only, NULL, 10));
		return;
	}
	uint64_t seed_count = is_sanitized() ? SEEDS_SANITIZED : SEEDS;
	for (uint64_t seed = 1; seed <= seed_count; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		run_seed(seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives_keep_every_promise)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

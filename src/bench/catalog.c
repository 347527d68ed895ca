/* The catalog of a large daemon, without a disk: how much memory a hundred million blocks take, and whether anything
 * grows in a day of sessions that come and go.
 *
 * `capacity` saves sessions of a thousand blocks, a thousand to a segment, until a hundred million blocks are indexed.
 *
 * `churn` is 24 hours of one turn a second on an arena that holds a few hundred sessions, so that room has to be made
 * for nearly every turn. Sessions are continued at random, some branch off, all end some time. The sizes are looked at
 * every hour; the second hour is when the arena has been full for long, and what the last has more than that is growth.
 */
#include "bench/bench.h"

#include "base/check.h"
#include "base/random.h"
#include "bench/null_media.h"
#include "catalog/catalog.h"
#include "host/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CAPACITY_BLOCKS 100000000ull
#define CAPACITY_BLOCKS_MIN 100000ull
#define SESSION_BLOCKS 1000u
#define GIB (1ull << 30)

#define CHURN_SECONDS 86400ull
#define CHURN_SECONDS_MIN 7200ull
#define HOURS_MAX 24u
#define CHURN_BYTES (1ull << 30)
#define LIVE_SESSIONS 512u
#define PATH_BLOCKS_MAX 4096u
#define TURN_BLOCKS_MAX 64u

/* An allocator that knows how much is out. */
struct counted {
	struct fc_alloc system;
	uint64_t bytes;
};

static void *counted_alloc(void *context, size_t bytes)
{
	struct counted *counted = context;
	counted->bytes += bytes;
	return counted->system.alloc(counted->system.context, bytes);
}

static void counted_free(void *context, void *memory, size_t bytes)
{
	struct counted *counted = context;
	if (memory == NULL)
		return;
	counted->bytes -= bytes;
	counted->system.free(counted->system.context, memory, bytes);
}

struct catalog_bench {
	struct fc_bench *bench;
	struct counted counted;
	struct fc_alloc alloc;
	struct fc_null_media ssd;
	struct fc_geometry geometry;
	struct fc_catalog *catalog;
	struct fc_reservation reservation;
	struct fc_path path;
	struct fc_random random;
	int open_code;
	bool is_opened;
	uint64_t turns_refused;
};

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct catalog_bench *world = context;
	(void)error;
	world->is_opened = true;
	world->open_code = code;
}

static void on_told(struct fc_reservation *reservation)
{
	(void)reservation;
}

static void settle(struct catalog_bench *world)
{
	while (fc_media_poll(&world->ssd.media) > 0)
		;
}

static int open_world(struct catalog_bench *world, uint64_t arena_bytes, struct fc_error *error)
{
	world->counted.system = fc_alloc_system();
	world->alloc = (struct fc_alloc){counted_alloc, counted_free, &world->counted};
	fc_null_media_init(&world->ssd, arena_bytes);
	fc_random_init(&world->random, world->bench->seed);
	world->geometry = (struct fc_geometry){.name = "bench", .block_tokens = 16, .layer_count = 1, .group_count = 1};
	world->geometry.groups[0] =
		(struct fc_group){.rule = FC_RULE_ALL, .tokens_per_block = 16, .slice_bytes[0] = 4096};
	struct fc_catalog_opts opts = {
		.geometry = &world->geometry,
		.alloc = &world->alloc,
		.media = {NULL, &world->ssd.media},
		.uuid = {1, 2},
		.hash_seed = world->bench->seed,
		.high_watermark = world->bench->store.high_watermark,
		.low_watermark = world->bench->store.low_watermark,
		.consolidate_ratio = world->bench->store.consolidate_ratio,
		.agent_context_tokens = world->bench->store.agent_context_tokens,
		.long_reply_tokens = world->bench->store.long_reply_tokens,
	};
	world->reservation.durable_cb = world->reservation.space_cb = on_told;
	int code = fc_catalog_open(&world->catalog, &opts, on_opened, world);
	if (code == FC_OK)
		settle(world);
	if (code == FC_OK && world->is_opened)
		code = world->open_code;
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "catalog: %s", fc_code_text(code));
}

static void close_world(struct catalog_bench *world)
{
	if (world->catalog != NULL) {
		settle(world);
		fc_path_deinit(&world->path, &world->alloc);
		fc_reservation_deinit(&world->reservation, &world->alloc);
		fc_catalog_free(world->catalog);
	}
}

/* A turn that brings a path to `count` blocks. */
static int save(struct catalog_bench *world, struct fc_session_id session, const struct fc_key *keys, uint64_t count,
		uint64_t turn, struct fc_error *error)
{
	struct fc_turn opts = {
		.session = session,
		.keys = keys,
		.key_count = count,
		.turn = turn,
		.resident[0].count = count,
	};
	world->reservation.space_attempts = 0;
	int code;
	do {
		code = fc_catalog_reserve(world->catalog, &opts, &world->reservation, error);
		settle(world);
	} while (code == FC_EAGAIN);
	if (code == FC_EFULL) {
		world->turns_refused++;
		return FC_OK;
	}
	if (code == FC_OK)
		code = fc_catalog_commit(world->catalog, &world->reservation);
	settle(world);
	return code == FC_OK ? FC_OK : fc_error_set(error, code, "turn: %s", fc_code_text(code));
}

static void draw_keys(struct catalog_bench *world, struct fc_key *keys, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		keys[i] = (struct fc_key){fc_random_u64(&world->random), fc_random_u64(&world->random)};
}

/* ---- capacity ---- */

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int fill(struct catalog_bench *world, uint64_t block_count, struct fc_error *error)
{
	struct fc_key keys[SESSION_BLOCKS];
	int code = FC_OK;
	for (uint64_t stored = 0; stored < block_count && code == FC_OK; stored += SESSION_BLOCKS) {
		draw_keys(world, keys, SESSION_BLOCKS);
		if (stored % (SESSION_BLOCKS * 10000ull) == 0)
			code = fc_bench_step(world->bench, error);
		if (code == FC_OK)
			code = save(world, (struct fc_session_id){0, 0}, keys, SESSION_BLOCKS, 0, error);
	}
	return code;
}

int fc_bench_capacity(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row size = {
		.name = "capacity",
		.summary = "memory of a catalog with 100 million blocks in 100,000 segments",
		.unit = "GiB",
		.runs_unit = "GiB",
		.goal = FC_BENCH_AT_MOST,
		.target = 4,
	};
	struct fc_bench own = *bench;
	own.run_count = 1;
	struct fc_bench_row *row = fc_bench_add_row(&own, &size, false);
	if (row == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	struct catalog_bench *world = calloc(1, sizeof(*world));
	if (world == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the catalog");
	world->bench = &own;
	uint64_t block_count = fc_bench_scaled(bench, CAPACITY_BLOCKS, CAPACITY_BLOCKS_MIN);
	uint64_t before_bytes = resident_bytes();
	int code = open_world(world, block_count * 8192, error);
	if (code == FC_OK)
		code = fill(world, block_count, error);
	if (code == FC_OK) {
		struct fc_stats stats;
		fc_catalog_stats(world->catalog, &stats);
		row->runs[0] = (double)(resident_bytes() - before_bytes) / (double)GIB;
		fc_bench_set_median(row);
		fc_bench_note(row, "%llu blocks, resident; %.2f GiB allocated", (unsigned long long)stats.blocks,
			      (double)world->counted.bytes / (double)GIB);
	}
	close_world(world);
	free(world);
	return code;
}

/* ---- churn ---- */

struct live_session {
	struct fc_session_id id;
	uint64_t blocks, turns;
	struct fc_key *keys; /* PATH_BLOCKS_MAX */
};

struct churn {
	struct catalog_bench world;
	struct live_session *sessions;
	struct fc_key *keys; /* of all sessions */
	double block_bytes[HOURS_MAX + 1], spans[HOURS_MAX + 1];
	uint64_t hour, loads, load_spans;
};

static void renew(struct churn *churn, struct live_session *session, const struct live_session *branch_of)
{
	session->id = (struct fc_session_id){fc_random_u64(&churn->world.random) | 1, 1};
	session->blocks = session->turns = 0;
	if (branch_of == NULL || branch_of == session)
		return;
	session->blocks = branch_of->blocks / 2;
	for (uint64_t i = 0; i < session->blocks; i++)
		session->keys[i] = branch_of->keys[i];
}

static int load(struct churn *churn, const struct live_session *session)
{
	struct catalog_bench *world = &churn->world;
	int code = fc_catalog_match(world->catalog, session->keys, session->blocks, 0, true, &world->path);
	if (code != FC_OK)
		return code;
	churn->loads += world->path.blocks > 0;
	churn->load_spans += world->path.placed_count;
	fc_catalog_release(world->catalog, &world->path);
	return FC_OK;
}

static int one_turn(struct churn *churn, struct fc_error *error)
{
	struct fc_random *random = &churn->world.random;
	struct live_session *session = &churn->sessions[fc_random_below(random, LIVE_SESSIONS)];
	uint64_t more = 1 + fc_random_below(random, TURN_BLOCKS_MAX);
	bool is_over = session->blocks + more > PATH_BLOCKS_MAX || fc_random_below(random, 60) == 0;
	if (is_over)
		renew(churn, session,
		      fc_random_below(random, 4) == 0 ? &churn->sessions[fc_random_below(random, LIVE_SESSIONS)]
						      : NULL);
	int code = load(churn, session);
	if (code != FC_OK)
		return fc_error_set(error, code, "match: %s", fc_code_text(code));
	draw_keys(&churn->world, session->keys + session->blocks, more);
	session->blocks += more;
	return save(&churn->world, session->id, session->keys, session->blocks, session->turns++, error);
}

static int look(struct churn *churn, struct fc_error *error)
{
	int code = fc_catalog_check(churn->world.catalog, error);
	struct fc_stats stats;
	fc_catalog_stats(churn->world.catalog, &stats);
	churn->block_bytes[churn->hour] = (double)churn->world.counted.bytes / (double)stats.blocks;
	churn->spans[churn->hour] = churn->loads == 0 ? 0 : (double)churn->load_spans / (double)churn->loads;
	churn->hour++;
	churn->loads = churn->load_spans = 0;
	return code;
}

static int run_churn(struct churn *churn, uint64_t seconds, struct fc_error *error)
{
	int code = FC_OK;
	for (uint64_t second = 1; second <= seconds && code == FC_OK; second++) {
		code = one_turn(churn, error);
		if (code == FC_OK && second % 3600 == 0)
			code = look(churn, error);
		if (code == FC_OK && second % 3600 == 0)
			code = fc_bench_step(churn->world.bench, error);
	}
	return code;
}

static int make_sessions(struct churn *churn, struct fc_error *error)
{
	churn->sessions = calloc(LIVE_SESSIONS, sizeof(*churn->sessions));
	churn->keys = calloc((size_t)LIVE_SESSIONS * PATH_BLOCKS_MAX, sizeof(*churn->keys));
	if (churn->sessions == NULL || churn->keys == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the sessions");
	for (uint64_t i = 0; i < LIVE_SESSIONS; i++) {
		churn->sessions[i].keys = churn->keys + i * PATH_BLOCKS_MAX;
		renew(churn, &churn->sessions[i], NULL);
	}
	return FC_OK;
}

static double most(const double *values, uint64_t first, uint64_t end)
{
	double found = 0;
	for (uint64_t i = first; i < end; i++)
		found = values[i] > found ? values[i] : found;
	return found;
}

static void fill_row(const struct churn *churn, struct fc_bench_row *row)
{
	struct fc_stats stats;
	uint64_t quarter = churn->hour / 4, last = churn->hour - 1;
	fc_catalog_stats(churn->world.catalog, &stats);
	row->runs[0] = most(churn->block_bytes, last - quarter, churn->hour) /
		       most(churn->block_bytes, quarter, 2 * quarter + 1);
	fc_bench_set_median(row);
	fc_bench_note(row,
		      "%.1f bytes a block; %.1f segments a load, %.1f in hour %llu; %llu sessions reclaimed, %llu "
		      "turns refused",
		      churn->block_bytes[last], churn->spans[last], churn->spans[quarter],
		      (unsigned long long)quarter + 1, (unsigned long long)stats.media[FC_SSD].sessions_reclaimed,
		      (unsigned long long)churn->world.turns_refused);
}

int fc_bench_churn(struct fc_bench *bench, struct fc_error *error)
{
	static const struct fc_bench_row growth = {
		.name = "churn",
		.summary = "memory of a block in the last 6 of 24 h of sessions that come and go / in the second 6",
		.unit = "x",
		.runs_unit = "x",
		.goal = FC_BENCH_AT_MOST,
		.target = 1.05,
	};
	struct fc_bench own = *bench;
	own.run_count = 1;
	struct fc_bench_row *row = fc_bench_add_row(&own, &growth, false);
	struct churn *churn = calloc(1, sizeof(*churn));
	if (row == NULL || churn == NULL) {
		free(churn);
		return fc_error_set(error, FC_ENOMEM, "no memory for the result");
	}
	churn->world.bench = &own;
	int code = open_world(&churn->world, CHURN_BYTES, error);
	if (code == FC_OK)
		code = make_sessions(churn, error);
	if (code == FC_OK)
		code = run_churn(churn, fc_bench_scaled(bench, CHURN_SECONDS, CHURN_SECONDS_MIN), error);
	if (code == FC_OK)
		fill_row(churn, row);
	close_world(&churn->world);
	free(churn->sessions);
	free(churn->keys);
	free(churn);
	return code;
}

/* Mooncake Store behind SGLang's HiCache (wheel 0.3.12, August 2026), and the article's control that reads straight to
 * the device.
 *
 *   device -- host pool (HiCache, LRU) -- store's DRAM (leases) -- buckets on SSD      (the last two: mooncake_store.h)
 *
 * mooncake: one prefetch after the other on each worker, in batches of 128 objects; those on SSD are read bucket by
 * bucket into a staging buffer, which is given back when the transfer is done (from v0.3.11 on, ReleaseBuffer; v0.3.9
 * has no such call and keeps it for the lease of its collector: staging_lease=5s). When it is full the batch fails, and
 * the prefetch ends with what it has. A prefetch is not begun when it is shorter than 256 tokens, or when as many
 * tokens as are allowed are in flight before it, and ends when its time is up. What is then missing is computed.
 *
 * mooncake-gds: objects on SSD are read straight to the device, a read each, from wherever eviction has put them; no
 * staging, no limit, no time, and never through the page cache.
 *
 * The DRAM budget is that of the host pool, of the store and of the staging, of which no more than a quarter is
 * staging.
 *
 * In its favour: pools of ranks are counted as one, look-ups take no time, and nothing that a request is about to copy
 * is dropped from under it. */
#include "replay/policy.h"

#include "base/list.h"
#include "replay/policy/mooncake_store.h"
#include "replay/policy/wave.h"

#include <stdlib.h>

#define SECOND_NS 1000000000ull
#define BATCH_MAX 1024u

struct mooncake_opts {
	bool is_direct;         /* mooncake-gds */
	double host_share;      /* of the DRAM without staging that is HiCache's host pool; the rest is the store's */
	double host_ratio;      /* host pool / device pool: the limit on tokens in flight follows from it */
	uint64_t staging_bytes; /* each worker; all of them take a quarter of the DRAM budget at most */
	bool is_staging_shared; /* one buffer for the node, as where one process serves all its ranks */
	uint64_t staging_lease_ns; /* what it is kept for at least; 0: until its transfer is done */
	uint64_t batch_objects, threshold_tokens;
	uint64_t timeout_ns, timeout_token_ns /* for 1,024 tokens */, timeout_max_ns;
	uint64_t depth; /* reads at once inside a bucket; 1: POSIX (v0.3.12's default), through the page cache */
	uint64_t object_tokens; /* that one read brings; a block of the trace at most */
	struct fc_mooncake_store_opts store;
};

struct mooncake;

struct job {
	struct fc_world_event event;    /* the end of a batch, copy or save */
	struct fc_world_event deadline; /* of the prefetch */
	struct fc_link link;            /* waits for its rank */
	struct mooncake *mooncake;
	struct fc_policy_turn *turn;
	uint64_t first, count; /* blocks [first, first + count) of the input are to be prefetched */
	uint64_t done;         /* of them */
	uint64_t batch, batch_ssd;
	bool is_prefetching, is_saving;
};

struct staged {
	struct fc_link link;
	uint64_t bytes, expiry_ns;
};

struct staging {
	struct fc_link staged;
	uint64_t bytes;
};

struct rank {
	struct fc_link waiting;
	struct job *job;
	struct staging staging;
};

struct mooncake {
	struct fc_policy policy;
	const struct mooncake_opts *opts;
	struct fc_lru host;
	uint64_t host_max;    /* blocks */
	uint64_t staging_max; /* bytes, of each buffer */
	uint64_t pool_bytes;  /* of the host pool and the store */
	struct fc_mooncake_store store;
	struct rank *ranks; /* a worker each */
	uint64_t in_flight_tokens, in_flight_max;
	uint64_t object_bytes, block_objects;
	struct fc_policy_stats stats;
};

static struct mooncake *mooncake_of(struct fc_policy *policy)
{
	return fc_container_of(policy, struct mooncake, policy);
}

static uint64_t now_ns(const struct mooncake *mooncake)
{
	return mooncake->policy.env->world->now_ns;
}

static void use_in_host(struct mooncake *mooncake, uint32_t number)
{
	fc_lru_use(&mooncake->host, number);
	while (mooncake->host.count > mooncake->host_max)
		fc_lru_remove(&mooncake->host, fc_lru_oldest(&mooncake->host));
}

/* ---- staging ---- */

static void free_expired(struct mooncake *mooncake, struct staging *staging, bool is_all)
{
	fc_list_for_each_safe(link, &staging->staged)
	{
		struct staged *staged = fc_container_of(link, struct staged, link);
		if (!is_all && staged->expiry_ns > now_ns(mooncake))
			continue;
		staging->bytes -= staged->bytes;
		fc_list_remove(&staged->link);
		free(staged);
	}
}

/* Room for what is read from SSD: *staged is NULL when none is needed. False: there is none, also not after freeing
 * what has expired. */
static bool stage(struct mooncake *mooncake, uint32_t worker, uint64_t blocks, struct staged **result)
{
	struct staging *staging = &mooncake->ranks[mooncake->opts->is_staging_shared ? 0 : worker].staging;
	uint64_t bytes = blocks * mooncake->block_objects * (fc_align_up(mooncake->object_bytes, 4096) + 8192);
	*result = NULL;
	if (bytes == 0 || mooncake->opts->is_direct)
		return true;
	free_expired(mooncake, staging, false);
	if (bytes > mooncake->staging_max || staging->bytes > mooncake->staging_max - bytes)
		return false;
	struct staged *staged = calloc(1, sizeof(*staged));
	fc_check(staged != NULL);
	staged->bytes = bytes;
	fc_list_push(&staging->staged, &staged->link);
	staging->bytes += bytes;
	*result = staged;
	return true;
}

/* ---- prefetch ---- */

static void run_rank(struct mooncake *mooncake, struct rank *rank);

static int compare_places(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return first < second ? -1 : first > second;
}

/* Reads the objects of a batch that lie on SSD; `places` are bucket << 32 | number. Buckets are read one after the
 * other; the direct variant knows no buckets. */
static uint64_t read_places(struct mooncake *mooncake, struct job *job, uint64_t *places, uint64_t count)
{
	const struct fc_policy_env *env = mooncake->policy.env;
	bool is_deep = mooncake->opts->depth > 1 || mooncake->opts->is_direct; /* else through the page cache */
	struct fc_wave_opts opts = {
		.lanes = mooncake->opts->depth,
		.object_bytes = env->block_bytes,
		.unit_bytes = mooncake->object_bytes,
		.piece_ns = mooncake->block_objects *
			    (is_deep ? env->hardware->direct_command_ns : env->hardware->kernel_command_ns),
		.copy_bytes_per_s = is_deep ? 0 : env->hardware->kernel_copy_bytes_per_s,
	};
	uint32_t numbers[BATCH_MAX];
	uint64_t end_ns = now_ns(mooncake), filled = 0;
	if (!mooncake->opts->is_direct)
		qsort(places, count, sizeof(*places), compare_places);
	for (uint64_t i = 0; i < count; i++) {
		numbers[filled++] = (uint32_t)places[i];
		bool is_last_of_bucket =
			i + 1 == count || (!mooncake->opts->is_direct && places[i] >> 32 != places[i + 1] >> 32);
		if (!is_last_of_bucket)
			continue;
		end_ns = fc_wave_read(env->machine, &opts, end_ns, numbers, filled, &job->turn->load.commands);
		filled = 0;
	}
	job->turn->load.bytes_read += count * env->block_bytes;
	return end_ns;
}

static void end_prefetch(struct job *job)
{
	struct mooncake *mooncake = job->mooncake;
	struct rank *rank = &mooncake->ranks[job->turn->worker];
	struct fc_policy_load *load = &job->turn->load;
	if (!job->is_prefetching)
		return;
	job->is_prefetching = false;
	fc_world_cancel(mooncake->policy.env->world, &job->event);
	fc_world_cancel(mooncake->policy.env->world, &job->deadline);
	fc_list_remove(&job->link);
	mooncake->in_flight_tokens -= job->count * mooncake->policy.env->geometry->block_tokens;
	load->blocks = fc_policy_resume_at(&mooncake->policy, job->turn, job->first + job->done);
	load->prefetched_ns = now_ns(mooncake);
	load->cancelled_blocks += job->count - job->done;
	if (load->start_ns == 0) /* its time was up before its turn came: it has waited, and read nothing */
		load->start_ns = now_ns(mooncake);
	if (rank->job == job)
		rank->job = NULL;
	if (load->blocks == 0)
		fc_policy_loaded(&mooncake->policy, job->turn);
	fc_policy_may_start(&mooncake->policy, job->turn);
	run_rank(mooncake, rank);
}

static void start_batch(struct job *job)
{
	struct mooncake *mooncake = job->mooncake;
	const struct fc_policy_env *env = mooncake->policy.env;
	const uint32_t *numbers = job->turn->numbers + job->first + job->done;
	uint64_t places[BATCH_MAX];
	job->batch = fc_min_u64(job->count - job->done, fc_min_u64(mooncake->opts->batch_objects, BATCH_MAX));
	job->batch_ssd = 0;
	bool is_there = true; /* what was looked up may have been evicted since */
	for (uint64_t i = 0; i < job->batch && is_there; i++) {
		bool is_in_memory = fc_mooncake_in_memory(&mooncake->store, numbers[i]);
		is_there = is_in_memory || fc_mooncake_on_ssd(&mooncake->store, numbers[i]);
		if (is_there && !is_in_memory)
			places[job->batch_ssd++] = (uint64_t)mooncake->store.bucket_of[numbers[i]] << 32 | numbers[i];
	}
	struct staged *staging = NULL;
	if (!is_there || !stage(mooncake, job->turn->worker, job->batch_ssd, &staging)) {
		end_prefetch(job);
		return;
	}
	uint64_t end_ns = read_places(mooncake, job, places, job->batch_ssd);
	/* From the store's memory, or from staging, to the host pool: read and written. */
	uint64_t staged = mooncake->opts->is_direct ? job->batch - job->batch_ssd : job->batch;
	end_ns = fc_max_u64(end_ns, fc_pipe_move(&env->machine->dram, end_ns, 2 * staged * env->block_bytes));
	if (staging != NULL)
		staging->expiry_ns = fc_max_u64(end_ns, now_ns(mooncake) + mooncake->opts->staging_lease_ns);
	fc_world_at(env->world, &job->event, end_ns);
}

static void end_batch(struct job *job)
{
	struct mooncake *mooncake = job->mooncake;
	const uint32_t *numbers = job->turn->numbers + job->first + job->done;
	for (uint64_t i = 0; i < job->batch; i++)
		fc_mooncake_renew(&mooncake->store, numbers[i]);
	for (uint64_t i = job->batch; i > 0 && !mooncake->opts->is_direct; i--)
		use_in_host(mooncake, numbers[i - 1]);
	job->turn->load.bytes[FC_SSD] += job->batch_ssd * mooncake->policy.env->block_bytes;
	job->turn->load.bytes[FC_MEMORY] += (job->batch - job->batch_ssd) * mooncake->policy.env->block_bytes;
	job->done += job->batch;
	if (job->done < job->count)
		start_batch(job);
	else
		end_prefetch(job);
}

static void run_rank(struct mooncake *mooncake, struct rank *rank)
{
	struct fc_link *link = rank->job == NULL ? fc_list_pop(&rank->waiting) : NULL;
	if (link == NULL)
		return;
	rank->job = fc_container_of(link, struct job, link);
	rank->job->turn->load.start_ns = now_ns(mooncake);
	start_batch(rank->job);
}

static void on_deadline(struct fc_world_event *event)
{
	end_prefetch(fc_container_of(event, struct job, deadline));
}

/* ---- a turn ---- */

static void on_job(struct fc_world_event *event)
{
	struct job *job = fc_container_of(event, struct job, event);
	struct mooncake *mooncake = job->mooncake;
	if (job->is_saving) {
		fc_policy_saved(&mooncake->policy, job->turn, FC_OK);
	} else if (job->is_prefetching) {
		end_batch(job);
	} else {
		job->turn->load.end_ns = now_ns(mooncake);
		fc_policy_loaded(&mooncake->policy, job->turn);
	}
}

static void look_up(struct mooncake *mooncake, struct job *job)
{
	const struct fc_policy_turn *turn = job->turn;
	uint64_t count = turn->turn.input_blocks;
	while (job->first < count && fc_lru_has(&mooncake->host, turn->numbers[job->first]))
		job->first++;
	for (uint64_t i = job->first; i > 0; i--)
		fc_lru_use(&mooncake->host, turn->numbers[i - 1]);
	uint64_t found = job->first;
	for (; found < count; found++) {
		uint32_t number = turn->numbers[found];
		if (!fc_mooncake_in_memory(&mooncake->store, number) && !fc_mooncake_on_ssd(&mooncake->store, number))
			break;
	}
	found = fc_policy_resume_at(&mooncake->policy, turn, found);
	job->first = fc_min_u64(job->first, found);
	job->count = found - job->first;
}

/* Whether SGLang begins the prefetch at all: what counts is what is in flight without it. */
static bool is_allowed(const struct mooncake *mooncake, const struct job *job)
{
	uint64_t tokens = job->count * mooncake->policy.env->geometry->block_tokens;
	if (job->count == 0)
		return false;
	if (mooncake->opts->is_direct)
		return true;
	return tokens >= mooncake->opts->threshold_tokens && mooncake->in_flight_tokens < mooncake->in_flight_max;
}

static void start_prefetch(struct mooncake *mooncake, struct job *job)
{
	const struct mooncake_opts *opts = mooncake->opts;
	struct fc_world *world = mooncake->policy.env->world;
	uint64_t tokens = job->count * mooncake->policy.env->geometry->block_tokens;
	uint64_t limit_ns = opts->timeout_ns + tokens * opts->timeout_token_ns / 1024;
	job->is_prefetching = true;
	mooncake->in_flight_tokens += tokens;
	if (!opts->is_direct)
		fc_world_at(world, &job->deadline, world->now_ns + fc_min_u64(limit_ns, opts->timeout_max_ns));
	fc_list_push(&mooncake->ranks[job->turn->worker].waiting, &job->link);
	run_rank(mooncake, &mooncake->ranks[job->turn->worker]);
}

static int mooncake_load(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	struct mooncake *mooncake = mooncake_of(policy);
	struct job *job = calloc(1, sizeof(*job));
	if (job == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a load");
	*job = (struct job){.event.fire = on_job, .deadline.fire = on_deadline, .mooncake = mooncake, .turn = turn};
	turn->place = job;
	turn->load.is_overlapping = policy->env->hardware->has_overlap;
	look_up(mooncake, job);
	turn->load.blocks = fc_policy_resume_at(policy, turn, job->first);
	turn->load.bytes[FC_MEMORY] = job->first * policy->env->block_bytes;
	if (is_allowed(mooncake, job)) {
		start_prefetch(mooncake, job);
		return FC_OK;
	}
	turn->load.cancelled_blocks = job->count;
	if (turn->load.blocks == 0)
		fc_policy_loaded(policy, turn);
	fc_policy_may_start(policy, turn);
	return FC_OK;
}

/* What is in the host pool is copied; what was read straight to the device is there. */
static void mooncake_start(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	struct mooncake *mooncake = mooncake_of(policy);
	const struct fc_policy_env *env = policy->env;
	struct job *job = turn->place;
	uint64_t bytes = turn->load.blocks * env->block_bytes, from_ns = now_ns(mooncake);
	if (turn->load.blocks == 0)
		return;
	if (mooncake->opts->is_direct)
		bytes = turn->load.bytes[FC_MEMORY];
	if (turn->load.start_ns == 0)
		turn->load.start_ns = from_ns;
	uint64_t end_ns = fc_pipe_move(&env->machine->links[turn->worker].up, from_ns, bytes);
	end_ns = fc_max_u64(end_ns, fc_pipe_move(&env->machine->dram, from_ns, bytes));
	fc_world_at(env->world, &job->event, end_ns + env->hardware->copy_ns);
}

static int mooncake_save(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	struct mooncake *mooncake = mooncake_of(policy);
	const struct fc_policy_env *env = policy->env;
	struct job *job = turn->place;
	uint64_t new_bytes = 0, from_ns = now_ns(mooncake);
	(void)error;
	for (uint64_t i = turn->turn.stored_blocks; i > 0; i--) {
		uint32_t number = turn->numbers[i - 1];
		new_bytes += fc_lru_has(&mooncake->host, number) ? 0 : env->block_bytes;
		use_in_host(mooncake, number);
	}
	for (uint64_t i = 0; i < turn->turn.stored_blocks; i++)
		if (!fc_mooncake_on_ssd(&mooncake->store, turn->numbers[i]))
			fc_mooncake_put(&mooncake->store, turn->numbers[i]);
	job->is_saving = true;
	uint64_t end_ns = fc_pipe_move(&env->machine->links[turn->worker].down, from_ns, new_bytes);
	end_ns = fc_max_u64(end_ns, fc_pipe_move(&env->machine->dram, from_ns, 3 * new_bytes));
	fc_world_at(env->world, &job->event, end_ns + env->hardware->copy_ns);
	return FC_OK;
}

static void mooncake_end(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	struct job *job = turn->place;
	struct rank *rank = &mooncake_of(policy)->ranks[turn->worker];
	if (job == NULL)
		return;
	fc_world_cancel(policy->env->world, &job->event);
	fc_world_cancel(policy->env->world, &job->deadline);
	fc_list_remove(&job->link);
	if (rank->job == job)
		rank->job = NULL;
	free(job);
	turn->place = NULL;
}

static void mooncake_stats(struct fc_policy *policy, struct fc_policy_stats *stats)
{
	struct mooncake *mooncake = mooncake_of(policy);
	*stats = mooncake->stats;
	stats->bytes_stored[FC_MEMORY] =
		(mooncake->host.count + mooncake->store.memory.count) * policy->env->block_bytes;
	stats->bytes_stored[FC_SSD] = mooncake->store.ssd_blocks * policy->env->block_bytes;
}

static uint64_t mooncake_layout(struct fc_policy *policy,
				void (*each)(void *context, const struct fc_policy_piece *piece), void *context)
{
	return fc_mooncake_layout(&mooncake_of(policy)->store, each, context);
}

static void mooncake_close(struct fc_policy *policy)
{
	struct mooncake *mooncake = mooncake_of(policy);
	for (uint64_t i = 0; i < policy->env->hardware->workers && mooncake->ranks != NULL; i++)
		free_expired(mooncake, &mooncake->ranks[i].staging, true);
	free(mooncake->ranks);
	fc_mooncake_store_deinit(&mooncake->store);
	fc_lru_deinit(&mooncake->host);
	free(mooncake);
}

static const struct fc_policy_ops mooncake_ops = {
	.load = mooncake_load,
	.start = mooncake_start,
	.save = mooncake_save,
	.end = mooncake_end,
	.stats = mooncake_stats,
	.close = mooncake_close,
	.layout = mooncake_layout,
};

static void set_sizes(struct mooncake *mooncake)
{
	const struct fc_policy_env *env = mooncake->policy.env;
	const struct mooncake_opts *opts = mooncake->opts;
	uint64_t buffers = opts->is_staging_shared ? 1 : env->hardware->workers;
	mooncake->staging_max = opts->is_direct ? 0 : fc_min_u64(opts->staging_bytes, env->memory_bytes / 4 / buffers);
	mooncake->pool_bytes = env->memory_bytes - buffers * mooncake->staging_max;
	double host_bytes = (double)mooncake->pool_bytes * opts->host_share;
	double host_tokens = host_bytes / (double)env->block_bytes * env->geometry->block_tokens;
	mooncake->host_max = (uint64_t)(host_bytes / (double)env->block_bytes);
	mooncake->in_flight_max = (uint64_t)(0.8 * (host_tokens - host_tokens / opts->host_ratio));
	mooncake->block_objects = fc_max_u64(1, env->geometry->block_tokens / opts->object_tokens);
	mooncake->object_bytes = fc_max_u64(1, env->block_bytes / mooncake->block_objects);
}

static int mooncake_open(struct fc_policy **policy, const struct fc_policy_env *env, struct fc_error *error)
{
	struct mooncake *mooncake = calloc(1, sizeof(*mooncake));
	if (mooncake == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a policy");
	mooncake->policy = (struct fc_policy){.ops = &mooncake_ops, .env = env};
	mooncake->opts = env->settings;
	set_sizes(mooncake);
	struct fc_mooncake_store_opts store_opts = mooncake->opts->store;
	store_opts.memory_bytes = (uint64_t)((double)mooncake->pool_bytes * (1 - mooncake->opts->host_share));
	store_opts.ssd_bytes = env->ssd_bytes;
	mooncake->ranks = calloc(env->hardware->workers, sizeof(*mooncake->ranks));
	int code = mooncake->ranks == NULL ? FC_ENOMEM : fc_lru_init(&mooncake->host, env->number_max);
	for (uint64_t i = 0; i < env->hardware->workers && mooncake->ranks != NULL; i++) {
		fc_list_init(&mooncake->ranks[i].waiting);
		fc_list_init(&mooncake->ranks[i].staging.staged);
	}
	if (code == FC_OK)
		code = fc_mooncake_store_init(&mooncake->store, env, &store_opts, &mooncake->stats);
	if (code == FC_OK) {
		*policy = &mooncake->policy;
		return FC_OK;
	}
	mooncake_close(&mooncake->policy);
	return fc_error_set(error, code, "a policy for %llu blocks: %s", (unsigned long long)env->number_max,
			    fc_code_text(code));
}

/* ---- settings ---- */

#define FIELD(member) offsetof(struct mooncake_opts, member)
#define DEFAULTS                                                                                                       \
	.host_share = 0.5, .host_ratio = 2, .staging_bytes = 1280ull << 20, .batch_objects = 128,                      \
	.threshold_tokens = 256, .timeout_ns = 2 * SECOND_NS, .timeout_token_ns = SECOND_NS / 10,                      \
	.timeout_max_ns = 30 * SECOND_NS, .depth = 1, .object_tokens = 64,                                             \
	.store = {.lease_ns = 10 * SECOND_NS,                                                                          \
		  .heartbeat_ns = 10 * SECOND_NS,                                                                      \
		  .eviction_ns = 10000000,                                                                             \
		  .bucket_bytes = 256ull << 20,                                                                        \
		  .bucket_objects = 500,                                                                               \
		  .queue_max = 50000}

static const struct mooncake_opts defaults = {DEFAULTS};
static const struct mooncake_opts direct_defaults = {.is_direct = true, DEFAULTS};

#define DURATION(key, field)                                                                                           \
	{                                                                                                              \
		.name = (key), .type = FC_OPTION_DURATION, .field_offset = FIELD(field), .max = 3600 * SECOND_NS       \
	}
#define NUMBER(key, field, least, most)                                                                                \
	{                                                                                                              \
		.name = (key), .type = FC_OPTION_COUNT, .field_offset = FIELD(field), .min = (least), .max = (most)    \
	}

static const struct fc_option settings[] = {
	{.name = "host_share", .type = FC_OPTION_RATIO, .field_offset = FIELD(host_share), .ratio_max = 0.99},
	{.name = "host_ratio",
	 .type = FC_OPTION_RATIO,
	 .field_offset = FIELD(host_ratio),
	 .ratio_min = 1,
	 .ratio_max = 1000},
	{.name = "staging", .type = FC_OPTION_SIZE, .field_offset = FIELD(staging_bytes), .max = 1ull << 44},
	{.name = "shared_staging", .type = FC_OPTION_BOOL, .field_offset = FIELD(is_staging_shared)},
	DURATION("staging_lease", staging_lease_ns),
	NUMBER("batch", batch_objects, 1, BATCH_MAX),
	NUMBER("threshold", threshold_tokens, 0, 1 << 20),
	DURATION("timeout", timeout_ns),
	DURATION("timeout_per_1024", timeout_token_ns),
	DURATION("timeout_max", timeout_max_ns),
	NUMBER("depth", depth, 1, FC_WAVE_LANES_MAX),
	NUMBER("object_tokens", object_tokens, 1, 65536),
	DURATION("lease", store.lease_ns),
	DURATION("heartbeat", store.heartbeat_ns),
	{.name = "bucket_bytes", .type = FC_OPTION_SIZE, .field_offset = FIELD(store.bucket_bytes), .max = 1ull << 40},
	NUMBER("bucket_objects", store.bucket_objects, 1, 1 << 20),
	NUMBER("queue", store.queue_max, 1, 1 << 28),
};

const struct fc_policy_type fc_policy_mooncake = {
	.name = "mooncake",
	.summary = "Mooncake Store 0.3.12 behind SGLang HiCache",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(defaults),
	.defaults = &defaults,
	.work = 25,
	.open = mooncake_open,
};

const struct fc_policy_type fc_policy_mooncake_gds = {
	.name = "mooncake-gds",
	.summary = "the same, read from SSD straight to the device (the article's control)",
	.settings = settings,
	.settings_count = fc_array_len(settings),
	.settings_bytes = sizeof(direct_defaults),
	.defaults = &direct_defaults,
	.work = 25,
	.open = mooncake_open,
};

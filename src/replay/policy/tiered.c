#include "replay/policy/tiered.h"

#include "base/list.h"
#include "replay/policy/lru.h"
#include "replay/policy/wave.h"

#include <stdlib.h>

struct tiered;

/* One request: its read from disk, then its copy to the device. */
struct job {
	struct fc_world_event event; /* the end of a wave, or of the copy, or of a save */
	struct fc_link link;         /* waits for its worker's readers */
	struct tiered *tiered;
	struct fc_policy_turn *turn;
	uint32_t *objects; /* to be read from disk */
	uint64_t object_count, objects_done;
	bool is_saving;
};

struct reader_pool {
	struct fc_link waiting;
	struct job *job; /* whose objects are read */
};

struct tiered {
	struct fc_policy policy;
	const struct fc_tiered_opts *opts;
	uint64_t object_blocks, object_bytes;
	uint64_t memory_max, disk_max; /* objects */
	struct fc_lru memory, disk;
	struct reader_pool *pools; /* a worker each */
	struct fc_wave_opts wave;
	struct fc_policy_stats stats;
};

static struct tiered *tiered_of(struct fc_policy *policy)
{
	return fc_container_of(policy, struct tiered, policy);
}

/* An object is known by the last block in it. */
static uint32_t object_at(const struct tiered *tiered, const struct fc_policy_turn *turn, uint64_t index)
{
	return turn->numbers[(index + 1) * tiered->object_blocks - 1];
}

static void use_in_memory(struct tiered *tiered, uint32_t object)
{
	fc_lru_use(&tiered->memory, object);
	while (tiered->memory.count > tiered->memory_max) {
		uint32_t oldest = fc_lru_oldest(&tiered->memory);
		fc_lru_remove(&tiered->memory, oldest);
		if (!tiered->opts->has_disk || !fc_lru_has(&tiered->disk, oldest))
			tiered->stats.bytes_lost += tiered->object_bytes;
	}
}

static void use_on_disk(struct tiered *tiered, uint32_t object)
{
	fc_lru_use(&tiered->disk, object);
	while (tiered->disk.count > tiered->disk_max) {
		fc_lru_remove(&tiered->disk, fc_lru_oldest(&tiered->disk));
		tiered->stats.bytes_lost += tiered->object_bytes;
	}
}

/* ---- reading from disk ---- */

static void run_pool(struct tiered *tiered, struct reader_pool *pool);

static void start_wave(struct job *job)
{
	struct tiered *tiered = job->tiered;
	const struct fc_policy_env *env = tiered->policy.env;
	uint64_t left = job->object_count - job->objects_done;
	uint64_t count = fc_min_u64(left, fc_wave_objects(&tiered->wave));
	uint64_t end_ns = fc_wave_read(env->machine, &tiered->wave, env->world->now_ns,
				       job->objects + job->objects_done, count, &job->turn->load.commands);
	uint64_t bytes = count * tiered->object_bytes;
	job->objects_done += count;
	job->turn->load.bytes_read += bytes;
	end_ns = fc_max_u64(end_ns, fc_pipe_move(&env->machine->dram, env->world->now_ns,
						 tiered->opts->is_through_files ? 3 * bytes : bytes));
	fc_world_at(env->world, &job->event, end_ns);
}

static void end_read(struct job *job)
{
	struct tiered *tiered = job->tiered;
	struct reader_pool *pool = &tiered->pools[job->turn->worker];
	for (uint64_t i = job->object_count; i > 0; i--)
		use_in_memory(tiered, job->objects[i - 1]);
	pool->job = NULL;
	job->turn->load.prefetched_ns = tiered->policy.env->world->now_ns;
	fc_policy_may_start(&tiered->policy, job->turn);
	run_pool(tiered, pool);
}

static void run_pool(struct tiered *tiered, struct reader_pool *pool)
{
	struct fc_link *link = pool->job == NULL ? fc_list_pop(&pool->waiting) : NULL;
	if (link == NULL)
		return;
	pool->job = fc_container_of(link, struct job, link);
	pool->job->turn->load.start_ns = tiered->policy.env->world->now_ns;
	start_wave(pool->job);
}

/* ---- a turn ---- */

static void end_copy(struct job *job)
{
	job->turn->load.end_ns = job->tiered->policy.env->world->now_ns;
	fc_policy_loaded(&job->tiered->policy, job->turn);
}

static void on_job(struct fc_world_event *event)
{
	struct job *job = fc_container_of(event, struct job, event);
	if (job->is_saving)
		fc_policy_saved(&job->tiered->policy, job->turn, FC_OK);
	else if (job->tiered->pools[job->turn->worker].job != job)
		end_copy(job);
	else if (job->objects_done < job->object_count)
		start_wave(job);
	else
		end_read(job);
}

static uint64_t objects_of(const struct tiered *tiered, uint64_t blocks)
{
	return (blocks + tiered->object_blocks - 1) / tiered->object_blocks;
}

/* Looks the prefix up and lists what has to be read. */
static int look_up(struct tiered *tiered, struct job *job, uint64_t *blocks)
{
	const struct fc_policy_turn *turn = job->turn;
	uint64_t count = turn->turn.input_blocks / tiered->object_blocks;
	uint64_t found = 0, on_disk = 0;
	for (; found < count; found++) {
		uint32_t object = object_at(tiered, turn, found);
		if (!fc_lru_has(&tiered->memory, object) &&
		    !(tiered->opts->has_disk && fc_lru_has(&tiered->disk, object)))
			break;
	}
	*blocks = found * tiered->object_blocks;
	if (tiered->object_blocks == 1)
		*blocks = fc_policy_resume_at(&tiered->policy, turn, *blocks);
	found = objects_of(tiered, *blocks);
	on_disk = 0;
	for (uint64_t i = 0; i < found; i++)
		on_disk += !fc_lru_has(&tiered->memory, object_at(tiered, turn, i));
	job->objects = on_disk == 0 ? NULL : malloc(on_disk * sizeof(*job->objects));
	if (on_disk > 0 && job->objects == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < found; i++) {
		uint32_t object = object_at(tiered, turn, i);
		if (!fc_lru_has(&tiered->memory, object))
			job->objects[job->object_count++] = object;
	}
	return FC_OK;
}

static int tiered_load(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	struct tiered *tiered = tiered_of(policy);
	struct job *job = calloc(1, sizeof(*job));
	uint64_t blocks = 0;
	if (job == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a load");
	*job = (struct job){.event.fire = on_job, .tiered = tiered, .turn = turn};
	turn->place = job;
	if (look_up(tiered, job, &blocks) != FC_OK)
		return fc_error_set(error, FC_ENOMEM, "no memory for a load");
	uint64_t found = objects_of(tiered, blocks);
	for (uint64_t i = found; i > 0; i--) {
		uint32_t object = object_at(tiered, turn, i - 1);
		if (fc_lru_has(&tiered->memory, object))
			fc_lru_use(&tiered->memory, object);
		else
			fc_lru_use(&tiered->disk, object);
	}
	turn->load.blocks = blocks;
	turn->load.bytes[FC_SSD] = job->object_count * tiered->object_bytes;
	turn->load.bytes[FC_MEMORY] = (found - job->object_count) * tiered->object_bytes;
	turn->load.is_overlapping = tiered->opts->is_overlapping && policy->env->hardware->has_overlap;
	if (found == 0)
		fc_policy_loaded(policy, turn);
	if (job->object_count == 0) {
		fc_policy_may_start(policy, turn);
		return FC_OK;
	}
	fc_list_push(&tiered->pools[turn->worker].waiting, &job->link);
	run_pool(tiered, &tiered->pools[turn->worker]);
	return FC_OK;
}

static void tiered_start(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	const struct fc_policy_env *env = policy->env;
	struct job *job = turn->place;
	uint64_t bytes = turn->load.blocks * env->block_bytes, now_ns = env->world->now_ns;
	if (turn->load.blocks == 0)
		return;
	if (turn->load.start_ns == 0)
		turn->load.start_ns = now_ns;
	uint64_t end_ns = fc_pipe_move(&env->machine->links[turn->worker].up, now_ns, bytes);
	end_ns = fc_max_u64(end_ns, fc_pipe_move(&env->machine->dram, now_ns, bytes));
	fc_world_at(env->world, &job->event, end_ns + env->hardware->copy_ns);
}

static int tiered_save(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error)
{
	struct tiered *tiered = tiered_of(policy);
	const struct fc_policy_env *env = policy->env;
	struct job *job = turn->place;
	uint64_t new_bytes = 0, now_ns = env->world->now_ns;
	(void)error;
	for (uint64_t i = turn->turn.stored_blocks / tiered->object_blocks; i > 0; i--) {
		uint32_t object = object_at(tiered, turn, i - 1);
		bool is_on_disk = tiered->opts->has_disk && fc_lru_has(&tiered->disk, object);
		if (!fc_lru_has(&tiered->memory, object)) {
			new_bytes += tiered->object_bytes;
			tiered->stats.bytes_written[FC_MEMORY] += tiered->object_bytes;
		}
		use_in_memory(tiered, object);
		if (!tiered->opts->has_disk || is_on_disk)
			continue;
		(void)fc_machine_write(env->machine, now_ns, fc_wave_offset(env->machine, object), tiered->object_bytes,
				       false);
		tiered->stats.bytes_written[FC_SSD] += tiered->object_bytes;
		use_on_disk(tiered, object);
	}
	job->is_saving = true;
	uint64_t end_ns = fc_pipe_move(&env->machine->links[turn->worker].down, now_ns, new_bytes);
	end_ns = fc_max_u64(end_ns, fc_pipe_move(&env->machine->dram, now_ns, new_bytes));
	fc_world_at(env->world, &job->event, end_ns + env->hardware->copy_ns);
	return FC_OK;
}

static void tiered_end(struct fc_policy *policy, struct fc_policy_turn *turn)
{
	struct job *job = turn->place;
	struct reader_pool *pool = &tiered_of(policy)->pools[turn->worker];
	if (job == NULL)
		return;
	fc_world_cancel(policy->env->world, &job->event);
	fc_list_remove(&job->link);
	if (pool->job == job)
		pool->job = NULL;
	free(job->objects);
	free(job);
	turn->place = NULL;
}

static void tiered_stats(struct fc_policy *policy, struct fc_policy_stats *stats)
{
	struct tiered *tiered = tiered_of(policy);
	*stats = tiered->stats;
	stats->bytes_stored[FC_MEMORY] = tiered->memory.count * tiered->object_bytes;
	stats->bytes_stored[FC_SSD] = tiered->disk.count * tiered->object_bytes;
}

static void tiered_close(struct fc_policy *policy)
{
	struct tiered *tiered = tiered_of(policy);
	fc_lru_deinit(&tiered->memory);
	fc_lru_deinit(&tiered->disk);
	free(tiered->pools);
	free(tiered);
}

static const struct fc_policy_ops tiered_ops = {
	.load = tiered_load,
	.start = tiered_start,
	.save = tiered_save,
	.end = tiered_end,
	.stats = tiered_stats,
	.close = tiered_close,
};

/* ---- open ---- */

static void set_sizes(struct tiered *tiered)
{
	const struct fc_policy_env *env = tiered->policy.env;
	const struct fc_tiered_opts *opts = tiered->opts;
	const struct fc_hardware *hardware = env->hardware;
	tiered->object_blocks = fc_max_u64(1, opts->object_tokens / env->geometry->block_tokens);
	tiered->object_bytes = tiered->object_blocks * env->block_bytes;
	tiered->memory_max = opts->is_endless ? UINT64_MAX : env->memory_bytes / tiered->object_bytes;
	tiered->disk_max = (uint64_t)((double)env->ssd_bytes * (double)opts->disk_high_percent / 100 /
				      (double)tiered->object_bytes);
	tiered->wave = (struct fc_wave_opts){
		.lanes = opts->readers,
		.object_bytes = tiered->object_bytes,
		.piece_bytes = opts->piece_bytes,
		.object_ns = opts->is_through_files ? hardware->file_open_ns : 0,
		.piece_ns = opts->is_through_files ? hardware->kernel_command_ns : hardware->direct_command_ns,
		.copy_bytes_per_s = opts->is_through_files ? hardware->kernel_copy_bytes_per_s : 0,
	};
}

int fc_tiered_open(struct fc_policy **policy, const struct fc_policy_env *env, struct fc_error *error)
{
	struct tiered *tiered = calloc(1, sizeof(*tiered));
	if (tiered == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a policy");
	tiered->policy = (struct fc_policy){.ops = &tiered_ops, .env = env};
	tiered->opts = env->settings;
	set_sizes(tiered);
	int code = fc_lru_init(&tiered->memory, env->number_max);
	if (code == FC_OK)
		code = fc_lru_init(&tiered->disk, env->number_max);
	tiered->pools = calloc(env->hardware->workers, sizeof(*tiered->pools));
	if (code != FC_OK || tiered->pools == NULL) {
		tiered_close(&tiered->policy);
		return fc_error_set(error, code == FC_OK ? FC_ENOMEM : code, "a policy for %llu blocks: %s",
				    (unsigned long long)env->number_max, fc_code_text(code));
	}
	for (uint64_t i = 0; i < env->hardware->workers; i++)
		fc_list_init(&tiered->pools[i].waiting);
	*policy = &tiered->policy;
	return FC_OK;
}

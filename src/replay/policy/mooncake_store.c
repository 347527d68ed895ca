#include "replay/policy/mooncake_store.h"

#include "base/random.h"
#include "replay/policy/wave.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_HIGH 0.90
#define MEMORY_LOW 0.85
#define MEMORY_EVICT_MIN 0.05
#define SSD_HIGH 0.90
#define SSD_LOW 0.80

/* ---- DRAM ---- */

void fc_mooncake_renew(struct fc_mooncake_store *store, uint32_t number)
{
	if (!fc_lru_has(&store->memory, number))
		return;
	store->lease_ns[number] = store->env->world->now_ns + store->opts.lease_ns;
	fc_lru_use(&store->memory, number);
}

static void evict_later(struct fc_mooncake_store *store)
{
	struct fc_world *world = store->env->world;
	if (!fc_world_is_scheduled(world, &store->eviction))
		fc_world_at(world, &store->eviction, world->now_ns + store->opts.eviction_ns);
}

static bool is_high(const struct fc_mooncake_store *store)
{
	return (double)store->memory.count > MEMORY_HIGH * (double)store->memory_max;
}

static void evict(struct fc_mooncake_store *store)
{
	double excess = (double)store->memory.count / (double)store->memory_max - MEMORY_LOW;
	double share = excess > MEMORY_EVICT_MIN ? excess : MEMORY_EVICT_MIN;
	uint64_t count = (uint64_t)(share * (double)store->memory.count) + 1;
	uint32_t next, number = fc_lru_oldest(&store->memory);
	for (; count > 0 && store->memory.count > store->queue_count; number = next) {
		if (store->lease_ns[number] > store->env->world->now_ns)
			break;
		next = fc_lru_next(&store->memory, number);
		if (store->is_queued[number])
			continue;
		fc_lru_remove(&store->memory, number);
		count--;
		if (!fc_mooncake_on_ssd(store, number))
			store->stats->bytes_lost += store->env->block_bytes;
	}
}

static void on_eviction(struct fc_world_event *event)
{
	struct fc_mooncake_store *store = fc_container_of(event, struct fc_mooncake_store, eviction);
	evict(store);
	if (is_high(store))
		evict_later(store);
}

void fc_mooncake_put(struct fc_mooncake_store *store, uint32_t number)
{
	if (fc_lru_has(&store->memory, number))
		return;
	/* A turn's puts come all at once here, and over seconds in truth: eviction keeps up with them. */
	if (store->memory.count >= store->memory_max && store->memory_max > 0)
		evict(store);
	if (store->memory.count >= store->memory_max)
		return; /* the put has failed */
	fc_lru_use(&store->memory, number);
	store->lease_ns[number] = store->env->world->now_ns;
	store->stats->bytes_written[FC_MEMORY] += store->env->block_bytes;
	if (is_high(store))
		evict_later(store);
	bool is_to_go = store->ssd_max > 0 && !fc_mooncake_on_ssd(store, number);
	if (is_to_go && store->queue_count < store->opts.queue_max) {
		store->queue[store->queue_count++] = number;
		store->is_queued[number] = true;
	}
}

/* ---- buckets ---- */

static uint64_t hash_of(uint32_t number)
{
	uint64_t state = number;
	return fc_random_split(&state);
}

static int compare_hashes(const void *a, const void *b)
{
	uint64_t first = hash_of(*(const uint32_t *)a), second = hash_of(*(const uint32_t *)b);
	return first < second ? -1 : first > second;
}

static void evict_buckets(struct fc_mooncake_store *store)
{
	if ((double)store->ssd_blocks <= SSD_HIGH * (double)store->ssd_max)
		return;
	while ((double)store->ssd_blocks > SSD_LOW * (double)store->ssd_max &&
	       store->bucket_first < store->bucket_count) {
		struct fc_mooncake_bucket *bucket = &store->buckets[store->bucket_first++];
		for (uint32_t i = 0; i < bucket->count; i++) {
			store->bucket_of[bucket->objects[i]] = FC_MOONCAKE_NO_BUCKET;
			if (!fc_lru_has(&store->memory, bucket->objects[i]))
				store->stats->bytes_lost += store->env->block_bytes;
		}
		store->ssd_blocks -= bucket->count;
		free(bucket->objects);
		bucket->objects = NULL;
	}
}

static void add_bucket(struct fc_mooncake_store *store, const uint32_t *objects, uint32_t count)
{
	if (store->bucket_count == store->bucket_room) {
		store->bucket_room = store->bucket_room * 2 + 64;
		store->buckets = realloc(store->buckets, store->bucket_room * sizeof(*store->buckets));
		fc_check(store->buckets != NULL);
	}
	struct fc_mooncake_bucket *bucket = &store->buckets[store->bucket_count];
	bucket->count = count;
	bucket->objects = malloc(count * sizeof(*objects));
	fc_check(bucket->objects != NULL);
	memcpy(bucket->objects, objects, count * sizeof(*objects));
	for (uint32_t i = 0; i < count; i++) {
		store->bucket_of[objects[i]] = store->bucket_count;
		store->is_queued[objects[i]] = false;
	}
	store->bucket_count++;
	store->ssd_blocks += count;
	store->stats->bytes_written[FC_SSD] += count * store->env->block_bytes;
}

static uint64_t bucket_objects(const struct fc_mooncake_store *store)
{
	return fc_min_u64(store->opts.bucket_objects,
			  fc_max_u64(1, store->opts.bucket_bytes / store->env->block_bytes));
}

uint64_t fc_mooncake_layout(const struct fc_mooncake_store *store,
			    void (*each)(void *context, const struct fc_policy_piece *piece), void *context)
{
	uint64_t block_bytes = store->env->block_bytes, bucket_bytes = bucket_objects(store) * block_bytes;
	uint64_t live = store->bucket_count - store->bucket_first;
	uint64_t places = fc_max_u64(fc_max_u64(1, live), store->env->ssd_bytes / bucket_bytes);
	for (uint32_t id = store->bucket_first; id < store->bucket_count; id++)
		for (uint32_t i = 0; i < store->buckets[id].count; i++)
			each(context, &(struct fc_policy_piece){
					      .offset = id % places * bucket_bytes + i * block_bytes,
					      .bytes = block_bytes,
					      .is_by_block = true,
					      .number = store->buckets[id].objects[i],
				      });
	return places * bucket_bytes;
}

static void on_heartbeat(struct fc_world_event *event)
{
	struct fc_mooncake_store *store = fc_container_of(event, struct fc_mooncake_store, heartbeat);
	struct fc_machine *machine = store->env->machine;
	uint64_t end_ns = store->env->world->now_ns, done = 0;
	uint64_t objects = bucket_objects(store);
	qsort(store->queue + store->left_over_count, store->queue_count - store->left_over_count, sizeof(*store->queue),
	      compare_hashes);
	for (; store->queue_count - done >= objects; done += objects) {
		uint64_t offset = fc_wave_offset(machine, store->bucket_count);
		add_bucket(store, store->queue + done, (uint32_t)objects);
		end_ns = fc_machine_write(machine, end_ns, offset, objects * store->env->block_bytes, false);
	}
	store->queue_count = store->left_over_count = store->queue_count - done;
	memmove(store->queue, store->queue + done, store->queue_count * sizeof(*store->queue));
	evict_buckets(store);
	fc_world_at(store->env->world, &store->heartbeat, end_ns + store->opts.heartbeat_ns);
}

/* ---- open and close ---- */

int fc_mooncake_store_init(struct fc_mooncake_store *store, const struct fc_policy_env *env,
			   const struct fc_mooncake_store_opts *opts, struct fc_policy_stats *stats)
{
	*store = (struct fc_mooncake_store){
		.env = env, .opts = *opts, .stats = stats, .bucket_count = 1, .bucket_first = 1};
	store->heartbeat.fire = on_heartbeat;
	store->eviction.fire = on_eviction;
	store->memory_max = opts->memory_bytes / env->block_bytes;
	store->ssd_max = opts->ssd_bytes / env->block_bytes;
	store->lease_ns = calloc(env->number_max, sizeof(*store->lease_ns));
	store->bucket_of = calloc(env->number_max, sizeof(*store->bucket_of));
	store->is_queued = calloc(env->number_max, sizeof(*store->is_queued));
	store->queue = malloc((opts->queue_max + 1) * sizeof(*store->queue));
	store->bucket_room = 64;
	store->buckets = calloc(store->bucket_room, sizeof(*store->buckets));
	if (store->lease_ns == NULL || store->bucket_of == NULL || store->is_queued == NULL || store->queue == NULL ||
	    store->buckets == NULL)
		return FC_ENOMEM;
	if (store->ssd_max > 0)
		fc_world_at(env->world, &store->heartbeat, env->world->now_ns + opts->heartbeat_ns);
	return fc_lru_init(&store->memory, env->number_max);
}

void fc_mooncake_store_deinit(struct fc_mooncake_store *store)
{
	if (store->env == NULL)
		return;
	fc_world_cancel(store->env->world, &store->heartbeat);
	fc_world_cancel(store->env->world, &store->eviction);
	for (uint32_t i = store->bucket_first; i < store->bucket_count && store->buckets != NULL; i++)
		free(store->buckets[i].objects);
	free(store->buckets);
	free(store->queue);
	free(store->is_queued);
	free(store->bucket_of);
	free(store->lease_ns);
	fc_lru_deinit(&store->memory);
}

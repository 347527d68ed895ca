#include "bench/probes.h"

#include "base/check.h"
#include "base/random.h"
#include "host/alloc.h"

#define AHEAD 16u /* keys between a prefetch and its use; catalog/index.c has as many */
#define EMPTY UINT32_MAX

static void place_keys(struct fc_bench_probes *probes, struct fc_random *random)
{
	for (uint64_t i = 0; i < probes->slot_count; i++)
		probes->slots[i].entry = EMPTY;
	for (uint64_t i = 0; i < probes->key_count; i++) {
		uint64_t home = fc_random_below(random, probes->slot_count);
		while (probes->slots[home].entry != EMPTY)
			home = home + 1 == probes->slot_count ? 0 : home + 1;
		probes->slots[home] = (struct fc_bench_probe_slot){(uint32_t)home, 0, (uint32_t)i};
		probes->keys[i] = (struct fc_key){i, ~i};
		uint64_t other = fc_random_below(random, i + 1);
		probes->homes[i] = probes->homes[other];
		probes->homes[other] = (uint32_t)home;
	}
}

int fc_bench_probes_init(struct fc_bench_probes *probes, uint64_t key_count, uint64_t seed, struct fc_error *error)
{
	struct fc_random random;
	fc_check(key_count > 0 && key_count < EMPTY / 2);
	*probes = (struct fc_bench_probes){
		.alloc = fc_alloc_system(), .key_count = key_count, .slot_count = key_count + key_count / 4 + 1};
	probes->slots = fc_alloc_zeroed(&probes->alloc, probes->slot_count * sizeof(*probes->slots));
	probes->keys = fc_alloc_zeroed(&probes->alloc, key_count * sizeof(*probes->keys));
	probes->homes = fc_alloc_zeroed(&probes->alloc, key_count * sizeof(*probes->homes));
	if (probes->slots == NULL || probes->keys == NULL || probes->homes == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for a table of %llu keys",
				    (unsigned long long)key_count);
	fc_random_init(&random, seed);
	place_keys(probes, &random);
	return FC_OK;
}

void fc_bench_probes_deinit(struct fc_bench_probes *probes)
{
	if (probes->slots != NULL)
		fc_alloc_free(&probes->alloc, probes->slots, probes->slot_count * sizeof(*probes->slots));
	if (probes->keys != NULL)
		fc_alloc_free(&probes->alloc, probes->keys, probes->key_count * sizeof(*probes->keys));
	if (probes->homes != NULL)
		fc_alloc_free(&probes->alloc, probes->homes, probes->key_count * sizeof(*probes->homes));
	*probes = (struct fc_bench_probes){0};
}

/* Without a turn of its own behind the last key. */
static uint64_t run_to_end(const struct fc_bench_probes *probes, uint64_t first, uint64_t count)
{
	const uint32_t *homes = probes->homes + first;
	uint64_t found = 0;
	for (uint64_t started = 0; started < count + 2 * AHEAD; started++) {
		if (started < count)
			__builtin_prefetch(&probes->slots[homes[started]]);
		if (started >= AHEAD && started - AHEAD < count)
			__builtin_prefetch(&probes->keys[probes->slots[homes[started - AHEAD]].entry]);
		if (started < 2 * AHEAD)
			continue;
		const struct fc_bench_probe_slot *slot = &probes->slots[homes[started - 2 * AHEAD]];
		const struct fc_key *key = &probes->keys[slot->entry];
		found += key->high == slot->entry && key->low == ~(uint64_t)slot->entry;
	}
	return found;
}

uint64_t fc_bench_probes_run(const struct fc_bench_probes *probes, uint64_t first, uint64_t count)
{
	uint64_t found = 0;
	while (count > 0) {
		uint64_t now = fc_min_u64(count, probes->key_count - first);
		found += run_to_end(probes, first, now);
		count -= now;
		first = 0;
	}
	return found;
}

/* Pseudo-random numbers that are a function of their seed alone: the same sequence on every machine and in every
 * release. The generator is xoshiro256++ (Blackman and Vigna), its state filled from the seed by splitmix64, as its
 * authors advise, so that seeds that differ in one bit give unrelated sequences. Not for secrets. */
#ifndef FC_BASE_RANDOM_H
#define FC_BASE_RANDOM_H

#include "base/check.h"

struct fc_random {
	uint64_t state[4];
};

/* One step of splitmix64: advances `*state` and returns 64 well-mixed bits. Also serves to derive one seed from
 * another. */
static inline uint64_t fc_random_split(uint64_t *state)
{
	uint64_t mixed = (*state += 0x9e3779b97f4a7c15ull);
	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
	return mixed ^ (mixed >> 31);
}

static inline void fc_random_init(struct fc_random *random, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		random->state[i] = fc_random_split(&seed);
}

static inline uint64_t fc_random_rotate(uint64_t value, int bits)
{
	return (value << bits) | (value >> (64 - bits));
}

static inline uint64_t fc_random_u64(struct fc_random *random)
{
	uint64_t *s = random->state;
	uint64_t result = fc_random_rotate(s[0] + s[3], 23) + s[0];
	uint64_t shifted = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = fc_random_rotate(s[3], 45);
	return result;
}

/* Uniform in [0, bound), without bias: the few values that would favour the low numbers are drawn again. bound > 0. */
static inline uint64_t fc_random_below(struct fc_random *random, uint64_t bound)
{
	fc_check(bound > 0);
	uint64_t unfair = -bound % bound;
	uint64_t value;
	do {
		value = fc_random_u64(random);
	} while (value < unfair);
	return value % bound;
}

/* Uniform in [low, high]. */
static inline uint64_t fc_random_between(struct fc_random *random, uint64_t low, uint64_t high)
{
	fc_check(low <= high && high - low < UINT64_MAX);
	return low + fc_random_below(random, high - low + 1);
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double fc_random_unit(struct fc_random *random)
{
	return (double)(fc_random_u64(random) >> 11) * 0x1p-53;
}

#endif

/* The inner loop for AVX-512 and for AVX2. Both do the same; the compiler is told per function what the CPU has, so the
 * program runs on every x86-64 and chooses when it starts.
 *
 * The hardware prefetcher stops at page ends, every 4 KiB, so the loop asks for what it will need itself. */
#include "device/copy_hash.h"

#include <stddef.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define STRIPES_PER_BLOCK 16
#define SECRET_SCRAMBLE 128
#define PREFETCH_BYTES 1024
#define PRIME32_1 0x9E3779B1

#define FC_AVX512 __attribute__((target("avx512f")))
#define FC_AVX2 __attribute__((target("avx2")))
#define FC_INLINE static inline __attribute__((always_inline))

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Never beyond the run, where for all we know another slice's slot begins, which nobody wants. */
FC_INLINE void prefetch_ahead(const struct fc_stripe_run *run, uint64_t at)
{
	uint64_t last_at = run->hash_count * FC_STRIPE_BYTES;
	_mm_prefetch((const char *)run->hash_source + smaller(at + PREFETCH_BYTES, last_at), _MM_HINT_T0);
}

static void flush_streamed(void)
{
	_mm_sfence();
}

/* ---- AVX-512: a stripe is a register ------------------------------------------------------------------------------
 */

FC_INLINE FC_AVX512 __m512i take_512(__m512i lanes, const uint8_t *stripe, const uint8_t *secret)
{
	__m512i value = _mm512_loadu_si512(stripe);
	__m512i keyed = _mm512_xor_si512(value, _mm512_loadu_si512(secret));
	__m512i product = _mm512_mul_epu32(keyed, _mm512_srli_epi64(keyed, 32));
	__m512i swapped = _mm512_shuffle_epi32(value, _MM_PERM_BADC);
	return _mm512_add_epi64(lanes, _mm512_add_epi64(product, swapped));
}

FC_INLINE FC_AVX512 __m512i scramble_512(__m512i lanes, const uint8_t *secret)
{
	__m512i prime = _mm512_set1_epi64(PRIME32_1);
	__m512i mixed = _mm512_xor_si512(lanes, _mm512_srli_epi64(lanes, 47));
	mixed = _mm512_xor_si512(mixed, _mm512_loadu_si512(secret + SECRET_SCRAMBLE));
	__m512i low = _mm512_mul_epu32(mixed, prime);
	__m512i high = _mm512_mul_epu32(_mm512_srli_epi64(mixed, 32), prime);
	return _mm512_add_epi64(low, _mm512_slli_epi64(high, 32));
}

FC_INLINE FC_AVX512 void copy_512(uint8_t *destination, const uint8_t *source, bool is_streaming)
{
	__m512i value = _mm512_loadu_si512(source);
	if (is_streaming)
		_mm512_stream_si512((void *)destination, value);
	else
		_mm512_storeu_si512(destination, value);
}

FC_INLINE FC_AVX512 void run_512(struct fc_stripe_state *state, const struct fc_stripe_run *run, bool is_streaming)
{
	__m512i lanes = _mm512_load_si512(state->lanes);
	uint64_t both_count = smaller(run->hash_count, run->copy_count);
	uint64_t stripe = state->stripe;
	uint64_t at = 0;

	for (uint64_t i = 0; i < run->hash_count; i++, at += FC_STRIPE_BYTES) {
		prefetch_ahead(run, at);
		lanes = take_512(lanes, run->hash_source + at, run->secret + 8 * stripe);
		if (i < both_count)
			copy_512(run->destination + at, run->copy_source + at, is_streaming);
		if (++stripe == STRIPES_PER_BLOCK) {
			lanes = scramble_512(lanes, run->secret);
			stripe = 0;
		}
	}
	for (uint64_t i = both_count; i < run->copy_count; i++)
		copy_512(run->destination + i * FC_STRIPE_BYTES, run->copy_source + i * FC_STRIPE_BYTES, is_streaming);
	_mm512_store_si512(state->lanes, lanes);
	state->stripe = (uint32_t)stripe;
}

static FC_AVX512 void run_avx512(struct fc_stripe_state *state, const struct fc_stripe_run *run)
{
	if (run->is_streaming)
		run_512(state, run, true);
	else
		run_512(state, run, false);
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

/* ---- AVX2: a stripe is two registers ------------------------------------------------------------------------------
 */

FC_INLINE FC_AVX2 __m256i take_256(__m256i lanes, const uint8_t *half, const uint8_t *secret)
{
	__m256i value = _mm256_loadu_si256((const void *)half);
	__m256i keyed = _mm256_xor_si256(value, _mm256_loadu_si256((const void *)secret));
	__m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
	__m256i swapped = _mm256_shuffle_epi32(value, _MM_SHUFFLE(1, 0, 3, 2));
	return _mm256_add_epi64(lanes, _mm256_add_epi64(product, swapped));
}

FC_INLINE FC_AVX2 __m256i scramble_256(__m256i lanes, const uint8_t *secret)
{
	__m256i prime = _mm256_set1_epi64x(PRIME32_1);
	__m256i mixed = _mm256_xor_si256(lanes, _mm256_srli_epi64(lanes, 47));
	mixed = _mm256_xor_si256(mixed, _mm256_loadu_si256((const void *)secret));
	__m256i low = _mm256_mul_epu32(mixed, prime);
	__m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), prime);
	return _mm256_add_epi64(low, _mm256_slli_epi64(high, 32));
}

FC_INLINE FC_AVX2 void copy_256(uint8_t *destination, const uint8_t *source, bool is_streaming)
{
	for (int half = 0; half < FC_STRIPE_BYTES; half += 32) {
		__m256i value = _mm256_loadu_si256((const void *)(source + half));
		if (is_streaming)
			_mm256_stream_si256((void *)(destination + half), value);
		else
			_mm256_storeu_si256((void *)(destination + half), value);
	}
}

FC_INLINE FC_AVX2 void run_256(struct fc_stripe_state *state, const struct fc_stripe_run *run, bool is_streaming)
{
	__m256i lower = _mm256_load_si256((const void *)state->lanes);
	__m256i upper = _mm256_load_si256((const void *)(state->lanes + 4));
	uint64_t both_count = smaller(run->hash_count, run->copy_count);
	uint64_t stripe = state->stripe;
	uint64_t at = 0;

	for (uint64_t i = 0; i < run->hash_count; i++, at += FC_STRIPE_BYTES) {
		prefetch_ahead(run, at);
		lower = take_256(lower, run->hash_source + at, run->secret + 8 * stripe);
		upper = take_256(upper, run->hash_source + at + 32, run->secret + 8 * stripe + 32);
		if (i < both_count)
			copy_256(run->destination + at, run->copy_source + at, is_streaming);
		if (++stripe == STRIPES_PER_BLOCK) {
			lower = scramble_256(lower, run->secret + SECRET_SCRAMBLE);
			upper = scramble_256(upper, run->secret + SECRET_SCRAMBLE + 32);
			stripe = 0;
		}
	}
	for (uint64_t i = both_count; i < run->copy_count; i++)
		copy_256(run->destination + i * FC_STRIPE_BYTES, run->copy_source + i * FC_STRIPE_BYTES, is_streaming);
	_mm256_store_si256((void *)state->lanes, lower);
	_mm256_store_si256((void *)(state->lanes + 4), upper);
	state->stripe = (uint32_t)stripe;
}

static FC_AVX2 void run_avx2(struct fc_stripe_state *state, const struct fc_stripe_run *run)
{
	if (run->is_streaming)
		run_256(state, run, true);
	else
		run_256(state, run, false);
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static const struct fc_copy_kernel kernel_avx512 = {"avx512", has_avx512, run_avx512, flush_streamed};
static const struct fc_copy_kernel kernel_avx2 = {"avx2", has_avx2, run_avx2, flush_streamed};

const struct fc_copy_kernel *const fc_copy_kernels[] = {&kernel_avx512, &kernel_avx2, NULL};

#else

const struct fc_copy_kernel *const fc_copy_kernels[] = {NULL};

#endif

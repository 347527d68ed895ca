/* Assertions on the program's own invariants. They stay on in release builds: a store that has lost its
 * bookkeeping must stop before it serves a wrong byte. Operating errors are never asserted. */
#ifndef FC_BASE_CHECK_H
#define FC_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints the condition and its place through the handler (default: stderr) and traps. Never returns. */
void fc_check_failed(const char *condition, const char *file, int line) __attribute__((noreturn));

#define fc_check(condition) ((condition) ? (void)0 : fc_check_failed(#condition, __FILE__, __LINE__))

#define fc_container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define fc_array_len(array) (sizeof(array) / sizeof((array)[0]))

static inline uint64_t fc_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t fc_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* `alignment` is a power of two; the caller has checked that value + alignment does not overflow. */
static inline uint64_t fc_align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}
static inline uint64_t fc_align_down(uint64_t value, uint64_t alignment)
{
	return value & ~(alignment - 1);
}
static inline bool fc_is_power_of_two(uint64_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

static inline bool fc_mul_overflows(uint64_t a, uint64_t b, uint64_t *result)
{
	return __builtin_mul_overflow(a, b, result);
}
static inline bool fc_add_overflows(uint64_t a, uint64_t b, uint64_t *result)
{
	return __builtin_add_overflow(a, b, result);
}

#endif

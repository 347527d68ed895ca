/* What the fuzz targets share. A target is a file fuzz_THING.c with LLVMFuzzerTestOneInput(), which libFuzzer calls
 * with one made-up input after another, and driver.c with those of corpus/THING/ in every ordinary build.
 *
 * A target says more than "no crash": whatever is refused is refused with a sentence, and whatever is accepted keeps
 * what its header promises. What a checksum protects is reached by computing the checksum anew where the input asks for
 * it. */
#ifndef FC_TESTS_FUZZ_FUZZ_H
#define FC_TESTS_FUZZ_FUZZ_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says why, and aborts, when the condition does not hold. */
#define fuzz_check(condition, ...) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, __VA_ARGS__))
void fuzz_fail(const char *file, int line, const char *format, ...) FC_PRINTF(3, 4) __attribute__((noreturn));

/* A refusal: `code` is negative and the sentence's own, and there is a sentence without control characters, which could
 * change what a terminal shows. */
void fuzz_check_refusal(int code, const struct fc_error *error);

/* ---- taking an input apart -----------------------------------------------------------------------------------------
 */

/* An input is taken from the front; behind its end there are zeros. */
struct fuzz_input {
	const uint8_t *bytes;
	size_t left;
};

uint8_t fuzz_u8(struct fuzz_input *input);
uint16_t fuzz_u16(struct fuzz_input *input);
uint64_t fuzz_u64(struct fuzz_input *input);
/* At most `count` bytes, fewer at the end of the input; returns how many. */
size_t fuzz_bytes(struct fuzz_input *input, size_t count, const uint8_t **bytes);

/* A copy of exactly these bytes, so that the address sanitizer sees a read behind their end. The caller frees it. */
void *fuzz_exact(const void *bytes, size_t count);

/* A path under which the bytes can be opened for reading, until the next call. Nothing is written to a disk. */
const char *fuzz_file(const void *bytes, size_t count);

#endif

/* Errors: a code for programs and a sentence for people.
 *
 * A function that can fail returns 0 or a negative FC_E... code (include/flatcake.h). Where a person
 * will read the failure, the function also takes a `struct fc_error` (may be NULL) and writes, once, where the
 * fault was known: the place, the value, and what is allowed. Callers pass it up unchanged. Control characters in what
 * is quoted become question marks: a name in a file must not steer the terminal that shows it. */
#ifndef FC_BASE_ERROR_H
#define FC_BASE_ERROR_H

#include "flatcake.h"

#include <stdarg.h>

#define FC_MUST_USE __attribute__((warn_unused_result))
#define FC_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

/* Writes `code` and the sentence into `error` (when not NULL) and returns `code`, so that a caller can
 * write `return fc_error_set(error, FC_EINVAL, "...")`. */
int fc_error_set(struct fc_error *error, int code, const char *format, ...) FC_PRINTF(3, 4);

/* Puts "context: " in front of the sentence that is already there, unless that begins with it, or with something inside
 * it ("DIR/file: " in DIR): no path stands twice. */
int fc_error_wrap(struct fc_error *error, int code, const char *format, ...) FC_PRINTF(3, 4);

#endif

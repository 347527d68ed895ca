/* Results that are written to a file: whoever reads it never meets half of it. */
#ifndef FC_HOST_WHOLE_FILE_H
#define FC_HOST_WHOLE_FILE_H

#include "base/error.h"

/* Writes the bytes into a file beside `path` (0600), which then takes its name; what is no regular file (a pipe,
 * /dev/null) is written to directly, and "-" is standard output. FC_ESYSTEM with `what` (the option, for instance), the
 * path and the reason; FC_ENOMEM. A regular file is replaced as a whole or not at all. */
FC_MUST_USE int fc_whole_file_write(const char *path, const void *bytes, size_t byte_count, const char *what,
				    struct fc_error *error);

/* Whether that could be done: FC_ESYSTEM as above if not. Tries it with an empty file beside `path`, which it removes.
 */
FC_MUST_USE int fc_whole_file_check(const char *path, const char *what, struct fc_error *error);

/* Whether a regular file is there, which would be replaced. */
bool fc_whole_file_exists(const char *path);

#endif

/* A YAML file of settings: one mapping of names to plain values, nothing nested.
 *
 *   memory: 4GiB
 *   ssd: 500GiB
 *
 * It is read event by event, because only events know their line, and every complaint names it. */
#ifndef FC_CONFIG_PAIRS_H
#define FC_CONFIG_PAIRS_H

#include "base/error.h"

struct fc_pair {
	const char *key; /* ends with NUL, and may hold others */
	size_t key_len;
	const char *value; /* without NUL inside */
	size_t line;
};

/* Calls `each` for every pair in the file's order, until one of them fails. FC_ESYSTEM when the file cannot be read,
 * FC_EINVAL with path and line when it is not such a mapping. */
FC_MUST_USE int fc_pairs_read(const char *path, int (*each)(void *context, const struct fc_pair *pair), void *context,
			      struct fc_error *error);

#endif

/* A YAML file of settings: one mapping of names to plain values,
 *
 *   memory: 4GiB
 *   ssd: 500GiB
 *
 * or, where the reader takes lists, with lists of such mappings:
 *
 *   namespaces:
 *     - name: team-a
 *       quota: 100GiB
 *
 * It is read event by event, because only events know their line, and every complaint names it. */
#ifndef FC_CONFIG_PAIRS_H
#define FC_CONFIG_PAIRS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct fc_pair {
	const char *key; /* ends with NUL, and may hold others */
	size_t key_len;
	const char *value; /* without NUL inside */
	size_t line;
	const char *list; /* the key that a list of mappings stands behind, NULL for a pair of the file itself */
	size_t list_len;
	size_t item;   /* which of the list's mappings, from 0 */
	bool is_first; /* of its mapping's pairs */
	bool is_empty; /* the list itself, which has no mappings: no key, no value */
};

/* Calls `each` for every pair in the file's order, until one of them fails. FC_ESYSTEM when the file cannot be read,
 * FC_EINVAL with path and line when it is not such a mapping. */
FC_MUST_USE int fc_pairs_read(const char *path, int (*each)(void *context, const struct fc_pair *pair), void *context,
			      struct fc_error *error);

/* The same, with lists of mappings as values; their pairs come one by one. */
FC_MUST_USE int fc_pairs_read_lists(const char *path, int (*each)(void *context, const struct fc_pair *pair),
				    void *context, struct fc_error *error);

#endif

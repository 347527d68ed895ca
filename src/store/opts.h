/* What a store's options may be: one table of ranges, which the check walks, and which the tests hold against those of
 * the program's options. */
#ifndef FC_STORE_OPTS_H
#define FC_STORE_OPTS_H

#include "base/error.h"

enum fc_opts_kind { FC_OPTS_U32, FC_OPTS_U64, FC_OPTS_RATIO };

struct fc_opts_range {
	const char *name;
	size_t offset; /* in struct fc_store_opts */
	enum fc_opts_kind kind;
	uint64_t min, max;           /* FC_OPTS_U32, FC_OPTS_U64 */
	double ratio_min, ratio_max; /* FC_OPTS_RATIO */
};

/* Range `index`, or NULL behind the last. */
const struct fc_opts_range *fc_store_opts_range(size_t index);

/* All that can be said of options before anything is opened, whoever opens it. FC_EINVAL and FC_ELIMIT name the option,
 * its value and what is allowed. Windows have to fit the coarsest alignment there is, so
 * that no medium finds fault with them once it has been made. */
FC_MUST_USE int fc_store_opts_check(const struct fc_store_opts *opts, struct fc_error *error);

#endif

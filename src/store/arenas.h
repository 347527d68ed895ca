/* The arenas of a store or a daemon: they get the size that is asked for, and nothing is resized before it is known to
 * be ours. */
#ifndef FC_STORE_ARENAS_H
#define FC_STORE_ARENAS_H

#include "media/media.h"

struct fc_arenas_opts {
	const struct fc_geometry *geometry;
	uint64_t memory_bytes, ssd_bytes; /* 0: none */
	const char *memory_path;          /* NULL: memory that ends with the process */
	const char *ssd_path;
	uint32_t queue_depth;
	uint64_t transfer_bytes;
};

/* Opens what has a size. On failure what was opened stays in `media`, to be closed. */
FC_MUST_USE int fc_arenas_open(struct fc_media *media[FC_MEDIUM_COUNT], const struct fc_arenas_opts *opts,
			       struct fc_error *error);

#endif

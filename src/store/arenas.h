/* The arenas of a store or a daemon. What is there already is looked at first (superblocks, geometry, owner): nothing
 * that is not ours is resized, nor is its mode changed. What is ours gets the size that is asked for, as far as its
 * chunk table can name it, so that no space is set aside which nobody could use; a notice says what is missing. */
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

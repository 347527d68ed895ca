/* A medium that has a size and nothing else: reads bring zeros, writes and syncs end at the next poll. For measurements
 * of the catalog alone, with arenas far larger than the disk. */
#ifndef FC_BENCH_NULL_MEDIA_H
#define FC_BENCH_NULL_MEDIA_H

#include "media/media.h"

struct fc_null_media {
	struct fc_media media;
	struct fc_link done;
};

void fc_null_media_init(struct fc_null_media *null, uint64_t bytes);

#endif

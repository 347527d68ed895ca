/* A medium in front of another that keeps what is submitted while it is told to: an I/O that never returns, or that
 * returns when the test says so. */
#ifndef FC_TESTS_LIB_HOLD_MEDIA_H
#define FC_TESTS_LIB_HOLD_MEDIA_H

#include "media/media.h"

struct hold_media {
	struct fc_media media; /* what is handed to the core */
	struct fc_media *inner;
	struct fc_link held;
	uint64_t held_count;
	bool is_holding[3]; /* by enum fc_io_op; set by tests at any time */
};

/* `inner` is borrowed. */
void hold_media_init(struct hold_media *hold, struct fc_media *inner);

/* Passes on what is held, and from now on everything. */
void hold_media_release(struct hold_media *hold);

#endif

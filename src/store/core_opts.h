/* What a store's options say of its core, for a store and for a daemon. */
#ifndef FC_STORE_CORE_OPTS_H
#define FC_STORE_CORE_OPTS_H

#include "core/core.h"

/* Fills in all that follows from `store` and the media, with fresh random bits and the real clock. Device, event_cb and
 * context are left to the caller, as are numbers of streams and requests other than the store's. `alloc` and
 * store->geometry stay borrowed. FC_ESYSTEM. */
FC_MUST_USE int fc_store_core_opts(struct fc_core_opts *opts, const struct fc_store_opts *store,
				   struct fc_media *const media[FC_MEDIUM_COUNT], const struct fc_alloc *alloc,
				   struct fc_error *error);

#endif

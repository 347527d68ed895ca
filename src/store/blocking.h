/* An I/O that is waited for, where nothing else is under way on the medium: at open, and in tools. */
#ifndef FC_STORE_BLOCKING_H
#define FC_STORE_BLOCKING_H

#include "media/media.h"

/* Offset, bytes and buffer as the medium wants them aligned. FC_OK only when all bytes have come; else `error` (may be
 * NULL) names place and reason. */
FC_MUST_USE int fc_store_read(struct fc_media *media, uint64_t offset, uint64_t bytes, uint8_t *buffer,
			      struct fc_error *error);

#endif

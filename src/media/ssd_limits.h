/* What the kernel says about direct I/O on an open file. Private to src/media/. */
#ifndef FC_MEDIA_SSD_LIMITS_H
#define FC_MEDIA_SSD_LIMITS_H

#include "media/arena_file.h"

/* Of offsets, sizes and memory under O_DIRECT, a power of two; 0 when direct I/O does not work on this file after all.
 */
uint32_t fc_ssd_direct_align(const struct fc_arena_file *file);

/* Largest command that the device below takes whole; 1 MiB where nobody knows. */
uint64_t fc_ssd_transfer_bytes_max(const struct fc_arena_file *file);

#endif

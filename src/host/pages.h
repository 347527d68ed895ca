/* Large pieces of memory straight from the kernel: zeroed, aligned to a huge page, and huge pages asked for. Tables and
 * windows of many megabytes are walked at random or copied at full speed, where 4 KiB pages would cost a TLB miss each.
 */
#ifndef FC_HOST_PAGES_H
#define FC_HOST_PAGES_H

#include <stdint.h>

#define FC_HUGE_PAGE_BYTES ((uint64_t)2 << 20)

/* NULL without memory, or when `bytes` is 0. Huge pages are a wish; where the kernel has none the memory is as good. */
void *fc_pages_alloc(uint64_t bytes);

/* `bytes` as given to fc_pages_alloc(); `memory` may be NULL. */
void fc_pages_free(void *memory, uint64_t bytes);

#endif

/* Maps more than is wanted and gives back both ends, since mmap() itself aligns to small pages only. */
#include "host/pages.h"

#include "base/check.h"

#include <sys/mman.h>

#define SMALL_PAGE_BYTES ((uint64_t)4096)

void *fc_pages_alloc(uint64_t bytes)
{
	uint64_t mapped_bytes = 0;
	uint64_t reserved_bytes = 0;

	if (bytes == 0 || fc_add_overflows(bytes, SMALL_PAGE_BYTES - 1, &mapped_bytes))
		return NULL;
	mapped_bytes = fc_align_down(mapped_bytes, SMALL_PAGE_BYTES);
	if (fc_add_overflows(mapped_bytes, FC_HUGE_PAGE_BYTES, &reserved_bytes))
		return NULL;
	uint8_t *reserved = mmap(NULL, reserved_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reserved == MAP_FAILED)
		return NULL;
	uint8_t *memory = reserved + (-(uintptr_t)reserved & (FC_HUGE_PAGE_BYTES - 1));
	uint64_t head_bytes = (uint64_t)(memory - reserved);
	uint64_t tail_bytes = FC_HUGE_PAGE_BYTES - head_bytes;
	if (head_bytes > 0)
		fc_check(munmap(reserved, head_bytes) == 0);
	fc_check(munmap(memory + mapped_bytes, tail_bytes) == 0);
	/* A kernel built without huge pages refuses the advice; the memory serves all the same. */
	(void)madvise(memory, mapped_bytes, MADV_HUGEPAGE);
	return memory;
}

void fc_pages_free(void *memory, uint64_t bytes)
{
	if (memory != NULL)
		fc_check(munmap(memory, fc_align_up(bytes, SMALL_PAGE_BYTES)) == 0);
}

/* Two sources behind one interface. Which one a piece came from is told by its size, which free() is given again, so no
 * header is stored in front of it and every piece keeps its 64-byte alignment. */
#include "host/alloc.h"

#include "base/check.h"
#include "host/pages.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT_BYTES 64

static void *system_alloc(void *context, size_t bytes)
{
	(void)context;
	if (bytes >= FC_HUGE_PAGE_BYTES)
		return fc_pages_alloc(bytes);
	size_t rounded_bytes = fc_align_up(bytes == 0 ? 1 : bytes, ALIGNMENT_BYTES);
	void *memory = aligned_alloc(ALIGNMENT_BYTES, rounded_bytes);
	if (memory != NULL)
		memset(memory, 0, rounded_bytes);
	return memory;
}

static void system_free(void *context, void *memory, size_t bytes)
{
	(void)context;
	if (bytes >= FC_HUGE_PAGE_BYTES)
		fc_pages_free(memory, bytes);
	else
		free(memory);
}

struct fc_alloc fc_alloc_system(void)
{
	struct fc_alloc alloc = {.alloc = system_alloc, .free = system_free, .context = NULL};
	return alloc;
}

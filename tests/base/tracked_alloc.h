/* An allocator for tests: knows how many bytes are out, holds every free against the size it was allocated with, and
 * fails at the k-th call when told to. */
#ifndef FC_TESTS_TRACKED_ALLOC_H
#define FC_TESTS_TRACKED_ALLOC_H

#include "base/alloc.h"
#include "base/check.h"

#include <stdlib.h>

struct tracked_alloc {
	uint64_t bytes;
	uint64_t call_count;
	uint64_t fail_at; /* this call, counted from 1, and all after it fail; 0: none */
};

#define TRACKED_HEAD_BYTES 64

static inline void *tracked_alloc_alloc(void *context, size_t bytes)
{
	struct tracked_alloc *tracked = context;
	tracked->call_count++;
	if (tracked->fail_at != 0 && tracked->call_count >= tracked->fail_at)
		return NULL;
	uint64_t *head = aligned_alloc(64, TRACKED_HEAD_BYTES + fc_align_up(bytes, 64));
	fc_check(head != NULL);
	for (size_t i = 0; i < (TRACKED_HEAD_BYTES + fc_align_up(bytes, 64)) / sizeof(*head); i++)
		head[i] = 0;
	head[0] = bytes;
	tracked->bytes += bytes;
	return head + TRACKED_HEAD_BYTES / sizeof(*head);
}

static inline void tracked_alloc_free(void *context, void *memory, size_t bytes)
{
	struct tracked_alloc *tracked = context;
	if (memory == NULL)
		return;
	uint64_t *head = (uint64_t *)memory - TRACKED_HEAD_BYTES / sizeof(*head);
	fc_check(head[0] == bytes);
	tracked->bytes -= bytes;
	free(head);
}

static inline struct fc_alloc tracked_alloc_interface(struct tracked_alloc *tracked)
{
	struct fc_alloc alloc = {tracked_alloc_alloc, tracked_alloc_free, tracked};
	return alloc;
}

#endif

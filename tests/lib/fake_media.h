/* A medium made of memory that fails, dies and forgets on demand.
 *
 * It keeps two images and what lies between them:
 *
 *     image             what a read sees: every write that has ended
 *     durable image     what survives for certain: writes that had ended before a sync was submitted that has ended
 *     unsynced writes   the difference, write by write, and the writes that are still on their way
 *
 * Nothing ends inside submit(); poll() ends what was submitted before it, in order or (shuffle_seed) in any order. It
 * holds its users to the contract of media.h: alignment, bounds, nothing in flight at close.
 *
 * Every operation has a number, counted from 1. Tests raise a fault's number until nothing fails any more:
 *
 *     fail_at = k, fail_count = n    operations k .. k+n-1 end with FC_EIO (a read or write is then half done), or with
 *                                    fewer bytes than asked if is_short
 *     bad_offset, bad_bytes          reads that touch this place end with FC_EIO
 *     die_at = k                     from operation k on nothing reaches the medium and everything ends with FC_EIO:
 * the moment that fake_media_crash() goes back to */
#ifndef FC_TESTS_LIB_FAKE_MEDIA_H
#define FC_TESTS_LIB_FAKE_MEDIA_H

#include "media/media.h"

struct fake_write {
	struct fc_link link;
	uint64_t offset, bytes;
	uint64_t ended_at; /* number of operations submitted when it ended; UINT64_MAX: still on its way */
	uint8_t data[];
};

struct fake_media {
	struct fc_media media;
	uint8_t *image;
	uint8_t *durable_image; /* NULL: not durable */
	struct fc_link unsynced;
	struct fc_link pending; /* fc_io.link */
	uint64_t op_count;
	bool is_dead;

	/* set by tests at any time */
	uint64_t fail_at, fail_count;
	bool is_short;
	uint64_t bad_offset, bad_bytes;
	uint64_t die_at;
	uint64_t shuffle_seed; /* 0: operations end in the order in which they were submitted */
};

/* Zeros, `is_durable` or ending with the process. */
struct fake_media *fake_media_new(uint64_t bytes, uint32_t align, bool is_durable);

/* The medium as a new process finds it after a power failure now, or at the moment it died: each unsynced write is
 * kept, dropped or torn at 512 bytes, as the seed says. One that is not durable comes back as zeros. The old one is
 * left as it is, to be drained and closed. */
struct fake_media *fake_media_crash(const struct fake_media *old, uint64_t seed);

/* The medium as the next process finds it after a clean stop, with another size if `bytes` is not 0. */
struct fake_media *fake_media_reopen(const struct fake_media *old, uint64_t bytes);

/* Frees it; nothing may be in flight. The same as fc_media_close(). */
void fake_media_close(struct fake_media *media);

#endif

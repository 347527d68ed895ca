/* Keeps a mapped arena file that lost its bytes from killing the process. Private to src/media/.
 *
 * A memory arena with a path is a file that other processes map too, so whoever may write it may also truncate it, and
 * a file system that is full may have no page for a hole in it. The kernel answers the next access with SIGBUS. Files
 * on tmpfs cannot be sealed against that (only a memfd can), file locks do not prevent it, and to look at the size
 * before each copy would still leave a moment in between; to copy by system calls would double the cost of the path
 * that memory exists for. So the signal is caught, as libwayland does for its clients' buffers: zeros are mapped where
 * the file ends, the copy goes on, checksums tell that the bytes are wrong, and from then on every I/O of the arena
 * fails. A SIGBUS anywhere else goes to whoever handled it before, or ends the process as ever.
 *
 * The handler is installed for the first arena with a path and stays. Arenas without a path are private memory, where
 * none of this can happen. */
#ifndef FC_MEDIA_MAP_GUARD_H
#define FC_MEDIA_MAP_GUARD_H

#include "base/error.h"

struct fc_map_guard;

/* Guards a mapping of the whole file. FC_ELIMIT when too many are open. */
int fc_map_guard_new(struct fc_map_guard **guard, uint8_t *map, uint64_t bytes, uint64_t page_bytes, int fd,
		     struct fc_error *error) FC_MUST_USE;
/* Before the mapping goes. NULL is allowed. */
void fc_map_guard_free(struct fc_map_guard *guard);

/* Whether bytes of the file are gone, or have ever been: then what was written since may be nowhere. */
bool fc_map_guard_is_broken(struct fc_map_guard *guard);

#endif

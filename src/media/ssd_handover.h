/* What the two engines share: the way of a command that has ended from the engine's thread back to the medium's, and
 * the start of such a thread.
 *
 *     engine's thread: fc_ssd_handover_give()  -->  ended, event_fd  -->  medium's thread: fc_ssd_handover_take()
 *
 * The medium's thread holds the mutex for as long as it takes to move a list, and waits for nobody else: whatever an
 * engine's thread waits for, it waits for without the mutex. The descriptor is signalled once for all that has ended
 * since the list was last empty. */
#ifndef FC_MEDIA_SSD_HANDOVER_H
#define FC_MEDIA_SSD_HANDOVER_H

#include "media/ssd_internal.h"

#include <pthread.h>

struct fc_ssd_handover {
	pthread_mutex_t mutex; /* of the lists, and of what the engine puts under it */
	struct fc_link ended;
	int event_fd;
};

/* Returns 0 or an errno. */
int fc_ssd_handover_init(struct fc_ssd_handover *handover);
void fc_ssd_handover_deinit(struct fc_ssd_handover *handover);

/* Empties `from`; each io's result is what the system answered. The mutex is held. */
void fc_ssd_handover_give(struct fc_ssd_handover *handover, struct fc_link *from);
/* Passes what was given to fc_ssd_ended(). */
void fc_ssd_handover_take(struct fc_ssd_handover *handover, struct fc_ssd *ssd);
/* Sleeps until there is something to take, or the time is over. */
void fc_ssd_handover_sleep(const struct fc_ssd_handover *handover, uint64_t timeout_ns);

/* Moves all of `from` behind `to`. */
void fc_ssd_move_list(struct fc_link *to, struct fc_link *from);

/* Returns 0 or an errno. Signals are the program's own threads' business. */
int fc_ssd_start_thread(pthread_t *thread, void *(*main_cb)(void *context), void *context);

#endif

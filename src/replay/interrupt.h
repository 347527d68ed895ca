/* SIGINT and SIGTERM as something to be asked for, so that a replay ends between two steps and says what it has. Only
 * the first is caught: a second one ends the process at once. */
#ifndef FC_REPLAY_INTERRUPT_H
#define FC_REPLAY_INTERRUPT_H

#include "base/error.h"

#include <signal.h>

struct fc_interrupt {
	sigset_t former; /* mask of the thread before */
	int fd;          /* readable once a signal has come; -1 when it was taken */
	bool is_set;
};

/* Before other threads are made, which then leave the signals alone too. FC_ESYSTEM. */
FC_MUST_USE int fc_interrupt_init(struct fc_interrupt *interrupt, struct fc_error *error);
bool fc_interrupt_is_set(struct fc_interrupt *interrupt);
void fc_interrupt_deinit(struct fc_interrupt *interrupt);

#endif

/* The law of the gate (sched/gate.h), seen from the medium: how much a load waits for.
 *
 * While a load has a command that could go, there go before it
 *  - of loads that FC-MAS puts behind it, nothing,
 *  - of saves and spills, one byte of every FC_GATE_WRITE_SHARE that are read,
 *  - and one command of each line that has waited for the gate's patience without any.
 * What was with the medium when it came is FC_GATE_ALONE_MAX and a command of each line at most; while it is being
 * read, the larger of `beside` and its own longest part. */
#ifndef FC_SIM_ORDER_H
#define FC_SIM_ORDER_H

#include "cio/stream.h"
#include "sim/note.h"

struct fc_sim_order {
	uint64_t read_bytes; /* while saves waited, and not yet set against what they wrote */
};

/* 1 + wait / size, compared without rounding; equal ones by arrival. */
bool fc_sim_may_go_before(const struct fc_sched_item *a, const struct fc_sched_item *b, uint64_t now_ns);

/* A command reaches the medium; those of nobody's stream are none of its business. */
void fc_sim_order_check(struct fc_sim_order *order, struct fc_sim_notes *notes, const struct fc_io *io);

#endif

/* What a store tells its daemon about itself: sums over its loads and saves, and how its queues stand. Sent at most
 * once a second, and only when something has changed. The store's thread. */
#ifndef FC_STORE_REPORT_H
#define FC_STORE_REPORT_H

#include "client/client.h"
#include "core/core.h"

struct fc_report {
	struct fc_wire_report sums; /* since the store was opened */
	struct fc_wire_report sent; /* the sums when they were last sent */
	struct fc_wire_report base; /* what earlier connections were told: a connection's counters begin at zero */
	uint64_t connection;        /* that the last one was sent on; 0: none */
	uint64_t next_ns;           /* before which none is sent */
	bool is_changed;
};

/* An event of the core's. */
void fc_report_event(struct fc_report *report, enum fc_event_kind kind, const struct fc_core_load *load,
		     const struct fc_core_save *save, uint32_t layer, uint64_t now_ns);
/* Sends it if it is time to. */
void fc_report_step(struct fc_report *report, const struct fc_core *core, struct fc_client *client, uint64_t now_ns);
/* When the next step should be; UINT64_MAX: nothing to tell. */
uint64_t fc_report_wake_ns(const struct fc_report *report);

#endif

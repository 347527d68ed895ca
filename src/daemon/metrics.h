/* /metrics: a view in Prometheus' text format. Names begin with flatcake_, units are seconds and bytes, counters end in
 * _total. What is not known (a limit that was not set, a quota that does not exist) is absent, never 0. */
#ifndef FC_DAEMON_METRICS_H
#define FC_DAEMON_METRICS_H

#include "daemon/text.h"
#include "daemon/view.h"

/* What the reporting parts count of themselves. */
struct fc_metrics_own {
	uint64_t http_requests[6]; /* by the first digit of the answer's status */
	uint64_t log_held_back, log_unwritten;
};

void fc_metrics_write(struct fc_text *text, const struct fc_daemon_view *view, const struct fc_metrics_own *own);

/* Upper bound, in seconds, of a bucket of fc_wire_times; INFINITY for the last. */
double fc_metrics_bucket_s(size_t bucket);

#endif

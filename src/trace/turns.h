/* The turns of sessions whose requests a file gives one by one, each with its own time. For build.c. */
#ifndef FC_TRACE_TURNS_H
#define FC_TRACE_TURNS_H

#include "trace/trace.h"

/* `trace` has its requests in order of arrival, with their sessions and with whole lists as suffixes. Makes each
 * session a line: sets line, turn, previous and next, and takes from a list what it has in common with the one before,
 * which stays in the pool. FC_ENOMEM. */
FC_MUST_USE int fc_turns_link(struct fc_trace *trace);

#endif

/* Many independent pieces of work in processes of their own, several at once.
 *
 * A job is a number. Its process is a fork of this one, so it sees everything that was made before, and leaves its
 * result in memory that is shared with the parent. Jobs share nothing else, so no result depends on how many run at
 * once or in which order they are started. */
#ifndef FC_REPLAY_JOBS_H
#define FC_REPLAY_JOBS_H

#include "base/error.h"

struct fc_jobs {
	size_t count;
	uint64_t at_once;                       /* 0: one a core */
	const size_t *order;                    /* in which they are started; NULL: as numbered */
	void (*run)(void *context, size_t job); /* in the child */
	/* In the parent, when a job has ended; `error` says how, if it ended otherwise than by returning. */
	void (*ended)(void *context, size_t job, const struct fc_error *error);
	void *context;
};

/* Memory that a job can leave its result in: zeroed, shared with children that are made later. NULL when there is none.
 */
void *fc_jobs_alloc(size_t bytes);
void fc_jobs_free(void *memory, size_t bytes);

/* Returns when all have ended. FC_ENOMEM; FC_ESYSTEM, after those that were running have ended. */
FC_MUST_USE int fc_jobs_run(const struct fc_jobs *jobs, struct fc_error *error);

/* How many run at once when `asked` is what --jobs says. */
uint64_t fc_jobs_at_once(uint64_t asked);

#endif

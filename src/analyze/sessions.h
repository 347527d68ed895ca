/* Which request belongs to which session, and what sessions are made of. */
#ifndef FC_ANALYZE_SESSIONS_H
#define FC_ANALYZE_SESSIONS_H

#include "analyze/analyze.h"
#include "analyze/tree.h"

/* `of_request` has room for one number a request of the trace. */
struct fc_sessions {
	uint32_t *of_request;
	uint32_t count;
};

/* Infers the session of a request from what it met in the tree, by the rule in analyze.h. */
void fc_sessions_infer(struct fc_sessions *sessions, const struct fc_tree *tree, uint32_t request,
		       const struct fc_tree_match *match);

/* Once all requests are in the tree: fills in everything of the analysis that is by session. Writes the tree's
 * session_count and session_mark. FC_ENOMEM. */
FC_MUST_USE int fc_sessions_measure(const struct fc_sessions *sessions, struct fc_tree *tree,
				    struct fc_analysis *analysis);

#endif

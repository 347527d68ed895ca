/* Placement: which medium a turn's blocks go to, from what an engine knows before the turn generates anything (article,
 * section "FC-GVA"; design 2.1). A wrong choice costs bandwidth, never a miss, so the rule may be this plain:
 *
 *   SSD      a session's first turn; a context above the agent threshold; a long previous reply
 *   memory   everything else: chats of several turns whose replies are short
 *
 * Two more rules live where their facts are known (reserve.c): shared prompts go to memory, and what finds no room in
 * memory goes to SSD. */
#include "catalog/state.h"

enum fc_medium fc_placement_choose(const struct fc_catalog_opts *opts, uint64_t turn, uint64_t context_tokens,
				   uint64_t previous_reply_tokens)
{
	if (turn == 0 || context_tokens > opts->agent_context_tokens ||
	    previous_reply_tokens >= opts->long_reply_tokens)
		return FC_SSD;
	return FC_MEMORY;
}

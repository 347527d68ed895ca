/* What a simulation found, in plain sentences: for the top of its page. */
#ifndef FC_REPLAY_SIMULATION_WORDS_H
#define FC_REPLAY_SIMULATION_WORDS_H

#include "replay/simulation.h"
#include "report/text.h"

/* Adds sentences to a list of them (fc_page_begin_words()). They compare "flat" with what ran beside it, and say where
 * it is not ahead; without it there are none. */
void fc_simulation_add_words(const struct fc_simulation *simulation, struct fc_page *page);

/* "at 1 requests/s with 8.0 GiB of DRAM": the load that is shown as one. */
#define FC_POINT_BYTES 96
void fc_simulation_point(const struct fc_simulation *simulation, char text[FC_POINT_BYTES]);

/* Whether `outcome` is level with the one of flat: the mean time to first token at most 5 % longer, and at most half a
 * point less of the input delivered. */
bool fc_simulation_is_level(const struct fc_outcome *outcome, const struct fc_outcome *flat);

#endif

/* Where sessions lie on the SSD, as a section of the page of a simulation. */
#ifndef FC_REPLAY_SIMULATION_MAP_H
#define FC_REPLAY_SIMULATION_MAP_H

#include "replay/simulation.h"
#include "report/text.h"

/* Nothing, where no policy that ran says where things lie, or no maps were wanted. FC_ENOMEM. */
FC_MUST_USE int fc_simulation_add_map(const struct fc_simulation *simulation, struct fc_page *page);

#endif

/* The page of a simulation: --report FILE. */
#ifndef FC_REPLAY_SIMULATION_REPORT_H
#define FC_REPLAY_SIMULATION_REPORT_H

#include "replay/simulation.h"
#include "report/text.h"

/* Adds the sections of the simulation to a page: what each policy delivered, at which load, how long requests waited
 * and for what, and what the SSD did. Runs that failed are left out of plots and named in the table. FC_ENOMEM. */
FC_MUST_USE int fc_simulation_report(const struct fc_simulation *simulation, struct fc_page *page);

#endif

/* Names of the planted bugs (base/plant.h), and which one is switched on. Only in flatcake-sim-planted is there any. */
#ifndef FC_SIM_PLANTS_H
#define FC_SIM_PLANTS_H

#include "base/plant.h"

/* NULL behind the last; the first is "none". */
const char *fc_sim_plant_name(int plant);
/* False when there is none of this name, or this program was built without. */
bool fc_sim_plant_choose(const char *name);

#endif

/* The invariants. Each stops the run with a sentence when it does not hold.
 *
 *   while a load runs     a layer that is announced is right and the next in order; what is delivered is right, a
 * resume point, and what was promised unless something was cut; its lease keeps the bytes that it covers after every
 * step      who was taken from the prepare queue had the highest priority; no request outlives its bound; what was
 * acknowledged in the step can be matched; leases belong to requests every few             the catalog's own full scan;
 * every claim that nothing excuses is there and right, byte by byte after a restart       what was reported durable is
 * there, unless the medium was damaged
 *
 * A new one goes here, and gets a planted bug that nothing else finds (docs/testing.md). */
#ifndef FC_SIM_CHECK_H
#define FC_SIM_CHECK_H

#include "sim/run.h"

void fc_sim_check_before_step(struct fc_sim *sim, struct fc_sim_process *process);
void fc_sim_check_after_step(struct fc_sim *sim, struct fc_sim_process *process);
/* Sessions that the store said were lost since it was last looked at. */
void fc_sim_check_lost(struct fc_sim *sim);
void fc_sim_check_scan(struct fc_sim *sim);
/* Matches every claim, and compares the bytes of a few. */
void fc_sim_check_claims(struct fc_sim *sim, uint32_t compared_count);
void fc_sim_check_lease(struct fc_sim *sim, const struct fc_sim_client *client);
/* Nothing is open, nothing is under way. */
void fc_sim_check_idle(struct fc_sim *sim);

/* When a process has nothing to do. */
void fc_sim_check_liveness(struct fc_sim *sim, const struct fc_sim_process *process);

/* After every operation: counters and gauges against what the clients know. */
void fc_sim_check_counters(struct fc_sim *sim);

/* Blocks that a load of the path that ends at `node` would bring, of its first `limit`. */
uint64_t fc_sim_matched(struct fc_sim *sim, uint32_t node, uint64_t limit);
/* Whatever excuses the absence of what was there: reclaims, cuts, faults. Never falls. */
uint64_t fc_sim_losses(struct fc_sim *sim);
/* The part of it that takes durable blocks away: all but faults. */
uint64_t fc_sim_reclaims(struct fc_sim *sim);
/* Damage that was met; in a plain world, in this process. */
uint64_t fc_sim_cuts(struct fc_sim *sim);
uint64_t fc_sim_process_cuts(const struct fc_sim_process *process);
/* What the catalog has of a path: as a load would find it, without faults, leased by nobody. `keys` has room for
 * FC_SIM_PATH_BLOCKS_MAX, and gets the keys as an engine has them. */
FC_MUST_USE int fc_sim_match(struct fc_sim *sim, uint32_t node, uint64_t limit, struct fc_key *keys,
			     struct fc_path *path);

/* What must still be there after the process ends now, and whether it is. */
void fc_sim_promises_take(struct fc_sim *sim);
void fc_sim_promises_check(struct fc_sim *sim, bool is_excused);

/* A save that is told to be durable: do its arenas keep it? What makes it so begins when it is visible, so a loss
 * before that must come out; one afterwards may come between the last sync of its arena and the last of all. */
void fc_sim_check_durable(struct fc_sim *sim, const struct fc_sim_client *client, const struct fc_save_result *result);

/* The operator asks whether the arenas are still there. */
void fc_sim_look(struct fc_sim *sim);

/* A save: may this code be its end? */
/* A save has just been acknowledged: what it saved is there. */
void fc_sim_check_saved(struct fc_sim *sim, const struct fc_sim_client *client);
void fc_sim_check_save_code(struct fc_sim *sim, const struct fc_sim_client *client, int code);
void fc_sim_check_load_code(struct fc_sim *sim, const struct fc_sim_client *client, int code);

#endif

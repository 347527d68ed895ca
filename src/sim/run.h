/* One run: a world made from a seed, a number of operations in it, and the end, at which everything heals and must
 * drain.
 *
 *     operation --> clients submit, cancel, vanish; the operator restarts, evicts; the world breaks something
 *        |
 *     advance ----> virtual time goes on from event to event; the core steps; what it says is checked as it says it
 *        |
 *     check ------> the invariants of check.h, some after every operation, the costly ones every few
 *
 * A run of n operations is the beginning of a run of n + 1: nothing that happens depends on how many are still to come.
 * That is what makes the shortest failing prefix worth looking for. */
#ifndef FC_SIM_RUN_H
#define FC_SIM_RUN_H

#include "core/core.h"
#include "sim/content.h"
#include "sim/device.h"
#include "sim/medium.h"
#include "sim/model.h"

#define FC_SIM_CLIENTS_MAX 12u
#define FC_SIM_SESSIONS_MAX 24u
#define FC_SIM_PROMPTS_MAX 4u
#define FC_SIM_LOST_MAX 32u
#define FC_SIM_OWNERS_MAX 3u

/* What the seed decides once and for all. */
struct fc_sim_settings {
	struct fc_geometry geometry;
	struct fc_core_opts core; /* without what a process has of its own */
	struct fc_sim_medium_opts media[FC_MEDIUM_COUNT];
	bool has_medium[FC_MEDIUM_COUNT];
	struct fc_owner owners[FC_SIM_OWNERS_MAX]; /* core.catalog.owner_count of them */
	uint64_t start_ns;                         /* of the clock */
	uint32_t client_count, session_count, prompt_count;
	uint64_t pace_ns; /* mean time between operations */
};

/* A segment's header with a bit that was flipped, as it then was. */
struct fc_sim_damaged_header {
	enum fc_medium medium;
	uint64_t offset, bytes, digest;
};
#define FC_SIM_DAMAGED_MAX 16u

enum fc_sim_session_kind { FC_SIM_AGENT, FC_SIM_CHAT, FC_SIM_PROMPTED, FC_SIM_TWIN, FC_SIM_KIND_COUNT };

struct fc_sim_session {
	struct fc_session_id id; /* {0, 0}: left to the store */
	uint16_t owner;          /* tag, 0 where there are no owners */
	enum fc_sim_session_kind kind;
	uint32_t tip; /* node of the history's last block */
	uint32_t shared_blocks;
	uint64_t turn, turn_max;
	uint64_t reply_tokens; /* of the last turn */
	bool is_busy;
};

enum fc_sim_client_state {
	FC_CLIENT_IDLE,
	FC_CLIENT_LOADING,
	FC_CLIENT_LOADED, /* the prefix is there and the load freed: prefill */
	FC_CLIENT_SAVING,
	FC_CLIENT_LINGERING, /* vanished, or done with: the store still has to say its last word */
};

/* One request of one conversation: loads, prefills, saves. */
struct fc_sim_client {
	uint32_t number;
	enum fc_sim_client_state state;
	struct fc_sim_kv kv;
	bool is_kv_lent; /* to the core, which may touch it */
	uint32_t session;
	uint32_t prompt_tip; /* what is asked for */
	uint32_t reply_tip;  /* what is saved: with the reply */
	struct fc_key keys[FC_SIM_PATH_BLOCKS_MAX];
	uint64_t submitted_ns;
	/* the load */
	struct fc_core_load *load; /* NULL: freed */
	bool is_started_when_ready, has_timeout, has_ended, is_taken, is_ready_told, is_cancelled;
	uint64_t matched_blocks, loaded_blocks;
	uint32_t next_layer;
	uint64_t cuts;                 /* of the run when it was submitted */
	enum fc_load_state seen_state; /* before the step */
	uint32_t seen_attempts;
	/* the save */
	struct fc_core_save *save; /* NULL: freed */
	bool is_partly_resident, is_saved_told, is_save_closed;
	uint64_t saved_blocks; /* of the path, whole granules */
	uint64_t shared_blocks;
	uint64_t saved_reclaims; /* of the run when it was acknowledged */
	uint32_t durable_from;   /* first depth that this save brought */
	bool was_kept;           /* seen there after it was acknowledged: making room did not take it at once */
	bool is_fresh;           /* acknowledged in this step: checked at its end */
};

/* Sessions that the store says it has reclaimed, for want of room in an arena and for each owner's quota. */
struct fc_sim_reclaimed {
	uint64_t for_room, for_owner[FC_SIM_OWNERS_MAX];
};

struct fc_sim_counts {
	uint64_t operations, loads, saves, blocks_delivered, blocks_saved, restarts, crashes, faults, refused, steps;
};

struct fc_sim_opts {
	uint64_t seed;
	uint64_t operation_count;
	struct fc_sim_faults faults;
	FILE *log;
};

struct fc_sim {
	struct fc_sim_notes notes;
	struct fc_sim_opts opts;
	struct fc_sim_faults faults; /* of this run */
	struct fc_sim_settings settings;
	struct fc_random random;   /* of the workload */
	struct fc_random breakage; /* of crashes, flips and jumps, so that a switch changes nothing else */
	struct fc_sim_memory memory;
	struct fc_sim_device device;
	struct fc_sim_medium *media[FC_MEDIUM_COUNT];
	uint64_t clock_skew_ns;
	struct fc_core *core; /* NULL between processes */
	bool is_opened;
	int open_code;
	struct fc_error open_error;
	struct fc_sim_model model;
	struct fc_sim_session sessions[FC_SIM_SESSIONS_MAX];
	uint32_t prompts[FC_SIM_PROMPTS_MAX]; /* nodes */
	struct fc_sim_client clients[FC_SIM_CLIENTS_MAX];
	bool is_healed;
	/* what may excuse the store */
	uint64_t losses;          /* sessions it said it lost, saves it could not make durable */
	uint64_t withdrawals;     /* saves that could not be made durable */
	uint64_t faults_fired;    /* beyond those of the media */
	uint64_t payload_flips;   /* since the arenas were blank */
	bool has_structure_flips; /* header, table, superblock: since the last open */
	bool has_superblock_flips;
	struct fc_session_id lost[FC_SIM_LOST_MAX]; /* sessions of which it was said since that was last looked at */
	uint32_t lost_count;
	struct fc_sim_reclaimed reclaimed; /* when that was */
	uint64_t operation_losses;
	uint32_t promised[FC_SIM_CLAIMS_MAX]; /* nodes that must survive the end of the process */
	uint32_t promised_count;
	struct fc_sim_damaged_header damaged[FC_SIM_DAMAGED_MAX]; /* since the last open */
	uint32_t damaged_count;
	struct fc_sim_counts counts;
};

/* Runs it. Returns true when nothing broke; else sim->notes.broken says what. `sim` is zeroed memory. */
bool fc_sim_run(struct fc_sim *sim, const struct fc_sim_opts *opts);

/* ---- between the files of the run ---- */

/* settings.c */
void fc_sim_settings_choose(struct fc_sim_settings *settings, struct fc_random *random);
/* How much each owner may use from the next open on. */
void fc_sim_settings_choose_quotas(struct fc_sim_settings *settings, struct fc_random *random);

/* process.c: the process that holds the store */
int fc_sim_open(struct fc_sim *sim);     /* 0, or the error of an open that was allowed to fail */
void fc_sim_restart(struct fc_sim *sim); /* in order */
void fc_sim_crash(struct fc_sim *sim, bool is_power);
void fc_sim_close(struct fc_sim *sim);
void fc_sim_drain(struct fc_sim *sim);
void fc_sim_step(struct fc_sim *sim);
void fc_sim_advance(struct fc_sim *sim, uint64_t duration_ns);
bool fc_sim_advance_until(struct fc_sim *sim, bool (*is_reached)(struct fc_sim *sim), uint64_t limit_ns);
uint64_t fc_sim_fired(const struct fc_sim *sim); /* faults of all kinds that happened so far */

/* The next block of a path. Now and then one of a few, so that conversations meet by themselves. */
uint32_t fc_sim_next_block(struct fc_sim *sim, uint32_t tip);

/* client.c */
void fc_sim_on_event(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
		     uint32_t layer);
void fc_sim_client_start(struct fc_sim *sim, struct fc_sim_client *client, uint32_t session);
void fc_sim_client_take(struct fc_sim *sim);
void fc_sim_client_continue(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_client_cancel(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_client_vanish(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_clients_settle(struct fc_sim *sim); /* after a step: what has had its last word is free again */
void fc_sim_clients_forget(struct fc_sim *sim); /* the process was killed under them */

/* workload.c */
void fc_sim_workload_init(struct fc_sim *sim);
void fc_sim_operation(struct fc_sim *sim);

#endif

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
 * That is what makes the shortest failing prefix worth looking for.
 *
 * A world is of one of two kinds. In the plain one a single process holds the store and serves the clients. In the
 * wired one the process that holds it is a daemon, and the clients belong to engines, processes of their own with the
 * core of production and the client's side of the protocol as its directory:
 *
 *     clients --> engine: core, fc_client --streams of bytes--> daemon: fc_server, core, catalog
 *                    '------------- media and memory map, each through a front of its own ----'
 *
 * Everything else (workload, model, checks) is the same. */
#ifndef FC_SIM_RUN_H
#define FC_SIM_RUN_H

#include "client/client.h"
#include "core/core.h"
#include "server/server.h"
#include "sim/content.h"
#include "sim/device.h"
#include "sim/medium.h"
#include "sim/model.h"
#include "sim/network.h"

#define FC_SIM_CLIENTS_MAX 12u
#define FC_SIM_SESSIONS_MAX 24u
#define FC_SIM_PROMPTS_MAX 4u
#define FC_SIM_LOST_MAX 32u
#define FC_SIM_OWNERS_MAX 3u
#define FC_SIM_ENGINES_MAX 4u
#define FC_SIM_SPACES_MAX 2u
#define FC_SIM_CONNECTIONS_MAX 64u

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
	/* the wired world */
	uint32_t engine_count; /* 0: a plain one */
	uint32_t space_count;  /* namespaces */
	struct fc_server_limits limits;
	uint64_t delay_ns_max, piece_bytes_max, stream_bytes_max; /* of the network */
	uint64_t reconnect_timeout_ns, answer_timeout_ns, fence_timeout_ns, drain_timeout_ns;
	uint64_t probe_ns; /* between two looks at the locks */
	uint64_t retry_ns; /* between two attempts to connect */
};

/* A segment's header with a bit that was flipped, as it then was. */
struct fc_sim_damaged_header {
	enum fc_medium medium;
	uint64_t offset, bytes, digest;
};
#define FC_SIM_DAMAGED_MAX 16u

enum fc_sim_session_kind { FC_SIM_AGENT, FC_SIM_CHAT, FC_SIM_PROMPTED, FC_SIM_TWIN, FC_SIM_KIND_COUNT };

struct fc_sim_session {
	uint32_t space;          /* namespace */
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
	FC_SIM_IDLE,
	FC_SIM_LOADING,
	FC_SIM_LOADED, /* the prefix is there and the load freed: prefill */
	FC_SIM_SAVING,
	FC_SIM_LINGERING, /* vanished, or done with: the store still has to say its last word */
};

/* A process: a core, and what a core has of its own. The holder of the store opens the catalog of the arenas. */
struct fc_sim_process {
	struct fc_sim *sim;
	struct fc_sim_memory memory;
	struct fc_sim_device device;
	struct fc_core *core; /* NULL: between two lives */
	bool is_opened;
	int open_code;
	struct fc_error open_error;
};

/* A client's lock: what tells the daemon that its process may still write. */
enum fc_sim_lock {
	FC_SIM_UNLOCKED,
	FC_SIM_LOCKED_BY_ENGINE,
	FC_SIM_LOCKED_BY_WRITES, /* the engine is gone, and has writes under way */
};

/* A connection, from connect() until nothing is left of it at either end. */
struct fc_sim_connection {
	bool is_used;
	struct fc_sim_engine *engine;  /* NULL: that end is closed, or was never an engine's */
	struct fc_server_client *peer; /* NULL: the daemon knows nothing of it (any more) */
	bool is_open;                  /* at the daemon's end */
	bool has_output, wants_close;  /* what the server asks for */
	bool is_strange;               /* its other end is no engine: it sends what it should not */
	bool must_be_refused;
	struct fc_sim_stream up, down; /* to the daemon, and from it */
	enum fc_sim_lock lock;
	uint64_t life;     /* of the engine that got the lock */
	uint64_t instance; /* of the daemon that gave it */
	uint64_t opened_ns;
	uint64_t frame_left_bytes; /* of the answer whose front has been sent */
};

struct fc_sim_engine {
	struct fc_sim_process process;
	uint32_t number, space;
	struct fc_sim_front fronts[FC_MEDIUM_COUNT];
	struct fc_client *client;             /* NULL: it does not run */
	struct fc_sim_connection *connection; /* NULL: none */
	struct fc_sim_connection *fence;      /* one that has ended, and whose lock it still holds */
	uint64_t life;
	uint64_t start_ns; /* when it runs again */
	uint64_t next_try_ns;
	uint64_t deaf_until_ns;    /* until then it reads nothing */
	uint64_t stopped_until_ns; /* until then it does nothing at all; 0: it runs */
	uint64_t disturbances;     /* what may have cost an answer, a lease, or time: never falls */
};

/* A namespace. */
struct fc_sim_space {
	struct fc_key salt;   /* that the daemon mixes into its keys, once it has said so */
	struct fc_key secret; /* that its engines mix into the bytes of a slice */
	bool is_salt_known;
};

/* The daemon, besides its core. */
struct fc_sim_daemon {
	struct fc_server *server; /* NULL: nobody listens */
	uint64_t instance;
	uint64_t next_probe_ns;
	uint64_t fence_end_ns;
	bool is_fenced, is_stopping;
	uint64_t commits; /* as last seen */
};

/* One request of one conversation: loads, prefills, saves. */
struct fc_sim_client {
	uint32_t number;
	struct fc_sim_process *process; /* whose core it asks */
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
	uint64_t cuts, fired;          /* of the run when it was submitted */
	uint64_t losses, disturbances; /* of the run, of the engine, when the load or the save was submitted */
	enum fc_load_state seen_state; /* before the step */
	uint32_t seen_attempts;
	/* the save */
	struct fc_core_save *save; /* NULL: freed */
	bool is_partly_resident, is_saved_told, is_save_closed;
	uint64_t saved_blocks; /* of the path, whole granules */
	uint64_t shared_blocks;
	uint64_t saved_reclaims; /* of the run when it was acknowledged */
	uint64_t saved_ns;       /* when it was */
	uint32_t durable_from;   /* first depth that this save brought */
	bool was_kept;           /* seen there after it was acknowledged: making room did not take it at once */
	bool is_fresh;           /* acknowledged in this step: checked at its end */
	bool is_durable;         /* as it was told */
};

/* Sessions that the store says it has reclaimed, for want of room in an arena and for each owner's quota. */
struct fc_sim_reclaimed {
	uint64_t for_room, for_owner[FC_SIM_OWNERS_MAX];
};

struct fc_sim_counts {
	uint64_t operations, loads, saves, blocks_delivered, blocks_saved, restarts, crashes, faults, refused, steps;
	uint64_t connections, engine_crashes, fences, fences_given_up; /* of wired worlds */
};

struct fc_sim_opts {
	bool is_wired;
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
	struct fc_sim_medium *media[FC_MEDIUM_COUNT];
	uint64_t clock_skew_ns;
	struct fc_sim_process holder; /* of the store */
	bool is_wired;
	struct fc_sim_daemon daemon;
	struct fc_sim_engine engines[FC_SIM_ENGINES_MAX];
	struct fc_sim_space spaces[FC_SIM_SPACES_MAX];
	struct fc_sim_network network;
	struct fc_sim_connection connections[FC_SIM_CONNECTIONS_MAX];
	uint64_t next_life;
	uint64_t strays_seen;
	uint64_t turns;       /* of the loops that let time pass, since the last operation */
	uint64_t cuts_before; /* of processes that are gone */
	struct fc_sim_model model;
	struct fc_sim_session sessions[FC_SIM_SESSIONS_MAX];
	uint32_t prompts[FC_SIM_PROMPTS_MAX]; /* nodes */
	struct fc_sim_client clients[FC_SIM_CLIENTS_MAX];
	bool is_healed;
	/* what may excuse the store */
	uint64_t losses;          /* sessions it said it lost, saves it could not make durable */
	uint64_t withdrawals;     /* saves that could not be made durable */
	uint64_t late_count;      /* of these, whose sync or header is still under way */
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
	uint64_t look; /* that was asked for and has not ended; 0: none */
	bool is_look_at_lost;
	struct fc_sim_counts counts;
};

/* Runs it. Returns true when nothing broke; else sim->notes.broken says what. `sim` is zeroed memory. */
bool fc_sim_run(struct fc_sim *sim, const struct fc_sim_opts *opts);

/* ---- between the files of the run ---- */

/* settings.c */
void fc_sim_settings_choose(struct fc_sim_settings *settings, struct fc_random *random);
/* Makes it a wired world. */
void fc_sim_settings_choose_wire(struct fc_sim_settings *settings, struct fc_random *random);
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
uint64_t fc_sim_now_ns(void *sim);               /* the clock of all processes */
void fc_sim_core_opts(struct fc_sim *sim, struct fc_sim_process *process, struct fc_core_opts *opts);
/* Its core has been given back, or the process is killed: nothing of it is left but writes that are adrift. */
void fc_sim_process_forget(struct fc_sim *sim, struct fc_sim_process *process);

/* daemon.c: the server, and the connections seen from it */
const char *fc_sim_space_name(uint32_t space);
void fc_sim_daemon_start(struct fc_sim *sim);
void fc_sim_daemon_kill(struct fc_sim *sim);
/* Says goodbye, and waits for whoever has something to commit, for a while. Then nothing of the server is left. */
void fc_sim_daemon_stop(struct fc_sim *sim);
unsigned fc_sim_daemon_step(struct fc_sim *sim);
/* Nothing is held for anybody, and nobody is gone whose lock is held. */
bool fc_sim_daemon_is_idle(struct fc_sim *sim);
uint64_t fc_sim_daemon_next_ns(const struct fc_sim *sim);
struct fc_sim_connection *fc_sim_accept(struct fc_sim *sim, int32_t pid); /* NULL: nobody listens */
/* A commit has been taken since this was last asked: a session that was lost may be there again. */
bool fc_sim_daemon_has_committed(struct fc_sim *sim);
/* What the server says it holds, against the catalog. */
void fc_sim_daemon_check(struct fc_sim *sim);
/* Somebody connects who is no engine: garbage, another version, another geometry, silence. */
void fc_sim_stranger(struct fc_sim *sim);
bool fc_sim_is_locked(const struct fc_sim *sim, struct fc_sim_connection *connection);

/* engine.c */
void fc_sim_engines_init(struct fc_sim *sim, uint64_t seed);
unsigned fc_sim_engines_step(struct fc_sim *sim);
bool fc_sim_engines_are_pending(const struct fc_sim *sim); /* something can be done at once */
uint64_t fc_sim_engines_next_ns(const struct fc_sim *sim);
void fc_sim_engine_kill(struct fc_sim *sim, struct fc_sim_engine *engine, uint64_t away_ns);
void fc_sim_engine_close(struct fc_sim *sim, struct fc_sim_engine *engine); /* in order; nothing of it is left */
/* As a process that gets SIGSTOP, and later SIGCONT. */
void fc_sim_engine_stop(struct fc_sim *sim, struct fc_sim_engine *engine, uint64_t until_ns);
void fc_sim_engine_resume(struct fc_sim *sim, struct fc_sim_engine *engine);
void fc_sim_engine_cut(struct fc_sim *sim, struct fc_sim_engine *engine);
void fc_sim_engine_lie(struct fc_sim *sim, struct fc_sim_client *client); /* reports damage where there is none */
static inline struct fc_sim_engine *fc_sim_engine_of(const struct fc_sim *sim, struct fc_sim_process *process)
{
	return sim->is_wired && process != &sim->holder ? fc_container_of(process, struct fc_sim_engine, process)
							: NULL;
}
/* Whether it has been connected, and nothing has kept it from its answers, since the client's request. */
bool fc_sim_is_undisturbed(const struct fc_sim *sim, const struct fc_sim_client *client);

/* The next block of a path. Now and then one of a few, so that conversations meet by themselves. */
uint32_t fc_sim_next_block(struct fc_sim *sim, uint32_t space, uint32_t tip);

/* client.c */
void fc_sim_on_event(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
		     uint32_t layer);
bool fc_sim_client_may_start(const struct fc_sim *sim, const struct fc_sim_client *client, uint32_t space);
void fc_sim_client_start(struct fc_sim *sim, struct fc_sim_client *client, uint32_t session);
/* Its save is known to be there, and was told to be durable: held against the store from now on. */
void fc_sim_client_is_durable(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_client_take(struct fc_sim *sim, struct fc_sim_process *process);
void fc_sim_client_continue(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_client_cancel(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_client_vanish(struct fc_sim *sim, struct fc_sim_client *client);
void fc_sim_clients_settle(struct fc_sim *sim,
			   struct fc_sim_process *process); /* after a step: what has had its last word is free again */
void fc_sim_clients_forget(struct fc_sim *sim, struct fc_sim_process *process); /* the process was killed under them */

/* workload.c */
void fc_sim_workload_init(struct fc_sim *sim);
void fc_sim_operation(struct fc_sim *sim);
/* While the daemon is away. */
void fc_sim_engines_operation(struct fc_sim *sim);
/* What the store calls the session. */
struct fc_session_id fc_sim_stored_id(const struct fc_sim *sim, const struct fc_sim_session *session);

#endif

/* What a cache of KV is to the simulated engine: one policy, one file in policy/.
 *
 * The engine (engine.c) knows requests, workers and steps; a policy knows where blocks are, what it costs to bring them
 * to a worker's device, and what to keep. For each request, in this order:
 *
 *     load ---> may_start ---> start ---> (the prefill) ... (the reply) ---> save ---> saved ---> end
 *       '--------------> loaded (before or after start) -----'
 *
 *   load       the request has arrived and has room on its worker. The policy looks up what it has and begins whatever
 *              goes on in the background.
 *   may_start  told by the policy: the engine may take the request when its turn comes.
 *   start      the engine has taken it. What was left for this moment (a copy from DRAM, say) begins.
 *   loaded     told by the policy: the first load.blocks blocks are on the device. If load.is_overlapping, the prefill
 *              runs meanwhile and waits only for the last layer; else it waits for this.
 *   save       the reply is complete: stored_blocks of the path are on the device.
 *   saved      told by the policy: the device may forget them.
 *   end        the turn is over; what the policy keeps for it goes, events included. After a failure of the run it may
 * come at any moment after load, and nothing follows but the ends of the others.
 *
 * The policy tells through `env->host`, never from inside the call that it is told by, except may_start, loaded and
 * saved, which may be told at once.
 *
 * All policies have the same budgets and the same machine. Times come from taking pipes of the machine (machine.h) and
 * from scheduling events in its world (world.h). How to add one: docs/simulation.md. */
#ifndef FC_REPLAY_POLICY_H
#define FC_REPLAY_POLICY_H

#include "replay/machine.h"
#include "replay/turn.h"

struct fc_policy_host;
struct fc_policy_type;

/* What a load found and did. Set by the policy, complete when it tells `loaded`. */
struct fc_policy_load {
	uint64_t blocks;                 /* delivered: leading blocks of the input */
	uint64_t bytes[FC_MEDIUM_COUNT]; /* of them, by where they came from */
	uint64_t bytes_read;             /* from SSD, with everything that was read for it in vain or beside it */
	uint64_t commands;               /* reads of the SSD */
	uint64_t segments;               /* contiguous pieces that they lay in; 0: not known */
	uint64_t start_ns;               /* when the first byte began to move */
	uint64_t prefetched_ns;          /* when what comes from SSD needed it no more; 0: nothing did */
	uint64_t end_ns;                 /* when the last was in place */
	uint64_t cancelled_blocks;       /* stored, and not brought for want of room or time */
	bool is_overlapping;
};

struct fc_policy_turn {
	struct fc_replay_turn turn;
	const uint32_t *numbers; /* its path once more: blocks numbered from 0 in the order of their first appearance */
	uint32_t worker;
	uint64_t prefill_tokens_of_input; /* input tokens, from which the expected prefill follows */
	struct fc_policy_load load;
	void *place; /* the policy's */
};

struct fc_policy_stats {
	uint64_t bytes_written[FC_MEDIUM_COUNT];
	uint64_t bytes_stored[FC_MEDIUM_COUNT]; /* at the end */
	uint64_t bytes_lost;                    /* evicted, reclaimed or refused before the end */
	uint64_t segments_absorbed;
};

struct fc_policy_env {
	struct fc_world *world;
	struct fc_machine *machine;
	const struct fc_hardware *hardware;
	const struct fc_geometry *geometry;
	const struct fc_config *config;
	const struct fc_policy_type *type;
	uint64_t memory_bytes, ssd_bytes; /* budgets */
	uint64_t block_bytes;             /* over all layers and all groups that a whole prefix needs */
	uint64_t turn_blocks_max;
	uint64_t number_max; /* numbers of blocks are below this */
	uint64_t seed;
	struct fc_policy_host *host;
	const void *settings; /* of the policy's type */
};

struct fc_policy;

/* Bytes of the SSD that are in use, laid down by one write. */
struct fc_policy_piece {
	uint64_t offset, bytes;
	bool is_shared;   /* a prompt of several conversations */
	bool is_point;    /* resume points alone, of which a load reads one */
	bool is_by_block; /* the policy knows no sessions: it is the block `number`; else it is of `session` */
	struct fc_session_id session;
	uint32_t number;
};

struct fc_policy_ops {
	int (*load)(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error);
	void (*start)(struct fc_policy *policy, struct fc_policy_turn *turn);
	int (*save)(struct fc_policy *policy, struct fc_policy_turn *turn, struct fc_error *error);
	void (*end)(struct fc_policy *policy, struct fc_policy_turn *turn);
	void (*stats)(struct fc_policy *policy, struct fc_policy_stats *stats);
	void (*close)(struct fc_policy *policy);
	/* Calls `each` for all that lies on the SSD and returns how long the arena is: for pictures of it
	 * (arena_map.h). NULL: the policy says nothing about where things lie. */
	uint64_t (*layout)(struct fc_policy *policy, void (*each)(void *context, const struct fc_policy_piece *piece),
			   void *context);
};

struct fc_policy {
	const struct fc_policy_ops *ops;
	const struct fc_policy_env *env;
};

/* A kind of policy: its row in the registry. */
struct fc_policy_type {
	const char *name;
	const char *summary; /* what it models, and which version */
	/* Rows for --set NAME.KEY=VALUE; fields of a struct of `settings_bytes` that `defaults` fills in. NULL: none.
	 */
	const struct fc_option *settings;
	size_t settings_count, settings_bytes;
	const void *defaults;
	bool has_no_memory, has_no_ssd; /* it leaves this budget unused */
	unsigned work; /* of the computer that simulates it, beside the others: only the order of runs depends on it */
	int (*open)(struct fc_policy **policy, const struct fc_policy_env *env, struct fc_error *error);
};

/* Row `index`, or NULL behind the last. */
const struct fc_policy_type *fc_policy_at(size_t index);
const struct fc_policy_type *fc_policy_find(const char *name, size_t name_len);

#define FC_POLICIES_MAX 4096

/* The policies that "NAME,NAME,..." names, where "all" is each of the registry. FC_EINVAL with the names that there
 * are.
 */
FC_MUST_USE int fc_policy_list(const char *text, const struct fc_policy_type *types[FC_POLICIES_MAX], size_t *count,
			       struct fc_error *error);

/* The settings of a type: its defaults, changed by "NAME.KEY=VALUE,..." where NAME is the type's. Names of other types
 * are passed over, unknown ones refused. `settings` has room for settings_bytes. */
FC_MUST_USE int fc_policy_settings(const struct fc_policy_type *type, const char *text, void *settings,
				   struct fc_error *error);

/* The settings of every type that `text` names, whether or not it will run: to know of a mistake before anything does.
 */
FC_MUST_USE int fc_policy_check_settings(const char *text, struct fc_error *error);

/* FC_EINVAL for a setting of a policy that is none of those that run: it would have no effect. `text` has been checked
 * as above. */
FC_MUST_USE int fc_policy_check_used(const char *text, const struct fc_policy_type *const *running, size_t count,
				     struct fc_error *error);

/* ---- what a policy tells ---- */

struct fc_policy_host {
	void (*may_start)(struct fc_policy_host *host, struct fc_policy_turn *turn);
	void (*loaded)(struct fc_policy_host *host, struct fc_policy_turn *turn);
	/* `code` 0, or FC_EFULL when it was not kept for want of room, or another error */
	void (*saved)(struct fc_policy_host *host, struct fc_policy_turn *turn, int code);
	/* Asked by the policy: of the first `blocks` of the turn's input, how many the model can resume from. The same
	 * for all: where somebody's turn ended, a prompt did, or a path forked; everywhere, if the model has no windows
	 * or states. A core knows by itself. */
	uint64_t (*resume_at)(struct fc_policy_host *host, const struct fc_policy_turn *turn, uint64_t blocks);
};

static inline void fc_policy_may_start(const struct fc_policy *policy, struct fc_policy_turn *turn)
{
	policy->env->host->may_start(policy->env->host, turn);
}
static inline void fc_policy_loaded(const struct fc_policy *policy, struct fc_policy_turn *turn)
{
	policy->env->host->loaded(policy->env->host, turn);
}
static inline void fc_policy_saved(const struct fc_policy *policy, struct fc_policy_turn *turn, int code)
{
	policy->env->host->saved(policy->env->host, turn, code);
}

static inline uint64_t fc_policy_resume_at(const struct fc_policy *policy, const struct fc_policy_turn *turn,
					   uint64_t blocks)
{
	return policy->env->host->resume_at(policy->env->host, turn, blocks);
}

/* The prefill that a turn will need when its load brings `blocks`, on an idle worker. */
uint64_t fc_policy_prefill_ns(const struct fc_policy_env *env, const struct fc_policy_turn *turn, uint64_t blocks);

#endif

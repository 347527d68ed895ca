/* What the modelled engine asks of the world: time, a store, and a device that holds KV.
 *
 * The driver (driver.c) is the engine: it decides when requests arrive, which one is computed next, how long that takes
 * and what is saved. It knows nothing of clocks, threads and bytes; those are a backend's. The live one (live.c) drives
 * the public API with real bytes. Calls are made in this order for each turn:
 *
 *     begin --> load --> (LOADED) --> loaded --> keep --> save --> (SAVED) --> saved --> end
 *                   '--> (READY) --> take --'
 *
 * One thread. */
#ifndef FC_REPLAY_BACKEND_H
#define FC_REPLAY_BACKEND_H

#include "replay/turn.h"

struct fc_replay_event {
	enum fc_event_kind kind; /* READY, LOADED or SAVED */
	struct fc_replay_turn *turn;
};

struct fc_backend;

struct fc_backend_ops {
	uint64_t (*now_ns)(struct fc_backend *backend);
	/* Returns when there are events, at `until_ns` (UINT64_MAX: no limit), or when the replay is to stop. */
	void (*wait)(struct fc_backend *backend, uint64_t until_ns);
	bool (*is_interrupted)(struct fc_backend *backend);
	/* The next event, to be handled before the next call; false when there is none. */
	bool (*next_event)(struct fc_backend *backend, struct fc_replay_event *event);

	/* Room on the device for the whole turn: 0, FC_EAGAIN (not before other turns end), FC_ENOMEM. */
	int (*begin)(struct fc_backend *backend, struct fc_replay_turn *turn);
	int (*load)(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_error *error);
	/* The ready request that arrived first, or FC_EAGAIN. */
	int (*take)(struct fc_backend *backend, struct fc_replay_turn **turn);
	void (*loaded)(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_load_result *result);
	/* The turn is computed: `blocks` of its input were delivered. Returns how many slices of them are wrong; the
	 * first one is described in `error`. */
	uint64_t (*keep)(struct fc_backend *backend, struct fc_replay_turn *turn, uint64_t blocks,
			 struct fc_error *error);
	int (*save)(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_error *error);
	void (*saved)(struct fc_backend *backend, struct fc_replay_turn *turn, struct fc_save_result *result);
	/* Gives the room back; what is still under way is cancelled. */
	void (*end)(struct fc_backend *backend, struct fc_replay_turn *turn);

	int (*stats)(struct fc_backend *backend, struct fc_stats *stats);
	/* All that was saved is on the medium; the error says what could not be brought there. */
	int (*sync)(struct fc_backend *backend, struct fc_error *error);
};

struct fc_backend {
	const struct fc_backend_ops *ops;
};

#endif

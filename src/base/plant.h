/* Planted bugs: mistakes that somebody might make, put into the core on purpose and one at a time, to show that the
 * simulator would find them (docs/testing.md). All of them stand behind fc_is_planted(), which is the constant false in
 * every build but that of flatcake-sim-planted, so that nothing of them is left in a product. */
#ifndef FC_BASE_PLANT_H
#define FC_BASE_PLANT_H

#include <stdbool.h>

enum fc_plant {
	FC_PLANT_NONE,
	FC_PLANT_SKIP_CHECKSUM,  /* cio/load.c: a slice whose checksum differs is taken all the same */
	FC_PLANT_HEADER_FIRST,   /* catalog/commit.c: header and table entry are written before the data is synced */
	FC_PLANT_NO_FINAL_SYNC,  /* catalog/commit.c: durable is told when the header is written, not synced */
	FC_PLANT_SHORT_HEADER,   /* catalog/commit.c: a short write of a header or table page passes for a whole one */
	FC_PLANT_FREE_AT_ONCE,   /* catalog/commit.c: chunks are free before their table entry is zero on the medium */
	FC_PLANT_NO_REVIVE,      /* catalog/commit.c: what a refused segment had replaced is not named again */
	FC_PLANT_KEPT_LEASE,     /* core/loads.c: a load that fails keeps its lease */
	FC_PLANT_LOST_REQUEST,   /* core/loads.c: a request that failed is not given back to the pool */
	FC_PLANT_HALF_SESSION,   /* catalog/reclaim.c: reclaim takes only the last segment of a session */
	FC_PLANT_RECLAIM_LEASED, /* catalog/reclaim.c: reclaim takes sessions that are being read */
	FC_PLANT_NO_CUT,         /* catalog/cut.c: damage is not cut off */
	FC_PLANT_SWAP_LAYERS,    /* cio/save.c: a layer is gathered from another of the same size */
	FC_PLANT_SWAP_BLOCKS,    /* cio/plan.c: two blocks go into each other's slots */
	FC_PLANT_SHORT_READ,     /* cio/stream.c: a short read passes for a whole one */
	FC_PLANT_EARLY_LAYER,    /* cio/load.c: a layer is announced after its first part */
	FC_PLANT_BUSY_SLOT,      /* cio/load.c: a slot is read into while it is being copied from */
	FC_PLANT_HALF_KEY,       /* catalog/index.c: 64 of the 128 bits of a key are compared */
	FC_PLANT_NO_RESUME_RULE, /* catalog/match.c: a match ends where windows and states are missing */
	FC_PLANT_SHORT_WINDOW,   /* catalog/reserve.c: the oldest block of a window is not saved */
	FC_PLANT_READY_AT_TAIL,  /* sched/sched.c: what was read re-enters the ready queue at its tail */
	FC_PLANT_PREPARE_IN_ORDER, /* sched/sched.c: the prepare queue is served in order of arrival */
	FC_PLANT_NO_PIN,           /* catalog/publish.c: what was replaced is freed before its replacement is durable */
	FC_PLANT_NO_BACKUP,        /* catalog/publish.c: a copy in memory frees the one on SSD */
	FC_PLANT_CHUNK_COUNT,      /* catalog/segment.c: one chunk too few is counted as free */
	FC_PLANT_UNCHECKED_HEADER, /* format/arena.c: a header is believed without its checksum */
	FC_PLANT_ANY_GEOMETRY,     /* catalog/recover.c: an arena of another geometry is opened */
	FC_PLANT_NAME_ONCE,        /* catalog/rebuild.c: what an orphan had named is not named again (was a real bug) */
	FC_PLANT_DURABLE_TWICE,    /* core/saves.c: a save is durable as soon as it is visible */
	FC_PLANT_ENDLESS_WAIT,     /* core/core.c: an I/O that never returns keeps its request waiting */
	FC_PLANT_WAKE_IN_PAST,     /* core/core.c: a load whose time is up wakes the core again and again (was one) */
	FC_PLANT_ENDLESS_SPILL,    /* catalog/spill.c: a spill that fails is tried again for ever (was one) */
	FC_PLANT_FOREIGN_QUOTA,    /* catalog/reclaim.c: a quota takes the oldest session of all, whoever's it is */
	FC_PLANT_LEAK,             /* core/core.c: memory of requests is not given back */
	/* of the protocol: found in wired worlds */
	FC_PLANT_NO_FENCE,           /* server/server.c: a new daemon reserves at once, whoever may still write */
	FC_PLANT_DEAD_LEASE,         /* server/requests.c: leases of a client that is gone are kept */
	FC_PLANT_EARLY_ORPHAN,       /* server/requests.c: a reservation is free when its connection ends */
	FC_PLANT_FORGET_CROSSED,     /* server/requests.c: FORGET that crosses its answer leaves the lease */
	FC_PLANT_DURABLE_UNHEARD,    /* server/requests.c: what was committed passes for durable */
	FC_PLANT_TRUSTED_REPORT,     /* server/verify.c: a report of damage is believed without a look */
	FC_PLANT_COMMON_SALT,        /* server/namespace.c: namespaces have the same salt */
	FC_PLANT_ANY_VERSION,        /* wire/greeting.c: whatever version a client speaks */
	FC_PLANT_SILENT_ABORT,       /* client/ask.c: a claim that is given up before its answer is not taken back */
	FC_PLANT_COMMIT_OF_THE_LOST, /* client/client.c: a reservation outlives its connection */
	FC_PLANT_EARLY_UNLOCK,       /* client/client.c: the lock is given back while writes are under way */
	FC_PLANT_NUMBERS_ANEW,       /* client/client.c: request numbers begin at 1 in each connection */
	FC_PLANT_NOT_ASKED_AGAIN,    /* client/ask.c: what was asked of a daemon that died is not asked of the next */
	FC_PLANT_ANY_NAME,           /* format/arena.c: geometries of equal sizes are one, whatever they are called */
	/* of making room */
	FC_PLANT_RECLAIM_SAVED, /* catalog/publish.c: what was just saved makes room for itself */
	FC_PLANT_LATE_MEMORY,   /* catalog/commit.c: a batch takes memory when it needs it, or withdraws (was one) */
	FC_PLANT_DROP_COPIES,   /* catalog/rebuild.c: of two copies one goes before any was read (was one) */
	/* of what does not answer */
	FC_PLANT_READ_OUTLASTS_DEADLINE, /* core/loads.c: a load whose time is over waits for its reads */
	FC_PLANT_LEFT_COPY,              /* core/loads.c: an interrupted load ends while its slots are copied to */
	FC_PLANT_ENDLESS_SYNC,           /* core/core.c: a sync that never returns keeps its saves waiting */
	FC_PLANT_LATE_TWICE,             /* catalog/commit.c: who was told that it is late is told its end as well */
	FC_PLANT_CUT_ON_ERROR,           /* core/local.c: what cannot be read is cut at once */
	FC_PLANT_UNCHECKED_SYNC,   /* sim/medium.c, as media/arena_file.c: a sync of a file that is lost succeeds */
	FC_PLANT_GATE_IN_ORDER,    /* sched/gate.c: commands reach the medium in the order they came */
	FC_PLANT_SAVE_BEFORE_LOAD, /* sched/gate.c: what saves write goes before what loads read */
	FC_PLANT_FULL_BESIDE,      /* sched/gate.c: beside a small load as much of a long one goes as ever */
	FC_PLANT_LONG_EXPRESS,     /* core/loads.c: a long load takes the express stream */
	FC_PLANT_WAKE_FOR_NOTHING, /* server/server.c: who says nothing is ended a moment after the server woke for it
				    */
	FC_PLANT_NO_SHARE,         /* server/share.c: a process reserves as much as there is */
	FC_PLANT_ANY_PROGRESS,     /* client/ask.c: a claim waits for as long as anything at all is received */
	FC_PLANT_KEPT_PART,        /* catalog/segment.c: a segment that leaves its session still counts for its owner */
	FC_PLANT_COUNT
};

#ifdef FLATCAKE_PLANTS
extern enum fc_plant fc_planted; /* src/sim/plants.c */
static inline bool fc_is_planted(enum fc_plant plant)
{
	return fc_planted == plant;
}
#else /* a constant and no function, so that not even an unoptimised build keeps a branch for it */
#define fc_is_planted(plant) ((void)(plant), false)
#endif

#endif

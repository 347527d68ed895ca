/* The core: catalog, queues and streams put together into one machine that is driven from outside.
 *
 * It never waits, never asks the operating system, and has one thread. Whoever owns it calls fc_core_step() whenever a
 * medium or the device may have something, and reads the events that come out. Production drives it from a thread
 * (store/), the tests and the simulator from their own loops.
 *
 * States of a load:
 *
 *   MATCHING: the directory is asked
 *      |   (leased)
 *      |-- nothing stored, or all in memory ------> READY ---take--> COPYING --> ENDED
 *      '-- some on SSD --> PREPARE --> READING --------------------> READY (data in place) ---take--> ENDED
 *
 *   READING takes a stream: one of `load_streams`, or, when all of those are busy, the express stream. That one has a
 * small window (4 MiB, or what one slice of the geometry needs) and only takes loads that are at most an eighth of
 * whatever the others read, and of which one of its slots holds a layer on average. So a short load finds a stream
 * however many long ones are under way, and however few streams there are.
 *
 *   With `is_started_when_ready` a load is taken by itself. Damage found on the way cuts the session, and what cannot
 * be read is done without (directory.h); the load starts over with what is left, keeping its arrival time. Cancelling
 * ends it from any state; the lease ends with it.
 *
 * States of a save:
 *
 *   QUEUED --> RESERVING --> RESERVED --> WRITING --> COMMITTING --> VISIBLE --> DURABLE
 *     ^        (the first of the queue;      |            |
 *     '------ the claim was lost with its directory ------+--> failed: nothing of it is visible
 *
 *   RESERVING lasts while space is being freed, and saves behind it wait.
 *
 * Requests are the core's, from a pool of requests_max; whoever submitted one gives it back with fc_core_load_free() or
 * fc_core_save_free() after it has ended.
 *
 * No request is kept by an I/O that never returns: whatever waits for I/O of which nothing has ended for io_timeout_ns
 * ends with FC_ETIMEOUT, a save that is visible with that as its durable_code. A load whose own time is over, or that
 * is cancelled, ends as soon as no copy to its slots is under way. What the I/O could still touch (window, reserved
 * space, chunks that a batch frees) stays out of use until it returns, and until then the core is not idle. */
#ifndef FC_CORE_CORE_H
#define FC_CORE_CORE_H

#include "cio/load.h"
#include "cio/save.h"
#include "clock/clock.h"
#include "core/directory.h"
#include "sched/sched.h"

struct fc_core;

#define FC_CORE_EXPRESS_RATIO 8 /* how many times longer all others are than a load that takes the express stream */

enum fc_load_state {
	FC_LOAD_MATCHING = 1,
	FC_LOAD_PREPARE = 2,
	FC_LOAD_READING = 3,
	FC_LOAD_READY = 4,   /* in the ready queue */
	FC_LOAD_COPYING = 5, /* from memory, after it was taken; or waiting for that */
	FC_LOAD_ENDED = 6,   /* and not in the ready queue */
};

struct fc_core_load {
	struct fc_sched_item sched;
	struct fc_link link;      /* core->loads, or the free list */
	struct fc_link copy_link; /* core->copies */
	enum fc_load_state state;
	/* from the caller; arrays are copied into memory of the load's own, which is reused */
	struct fc_key *keys;
	uint64_t key_count, key_room;
	uint64_t blocks_max;
	struct fc_target target;
	uint64_t *slot_memory;
	uint64_t slot_room;
	uint64_t submitted_ns, deadline_ns; /* 0: none */
	bool is_started_when_ready;
	void *owner;
	/* progress */
	struct fc_lookup lookup;
	struct fc_path path;
	struct fc_core *core;
	struct fc_worker *worker;
	uint64_t started_ns;
	uint32_t attempts;
	bool is_taken;   /* by fc_core_ready_take(), which hands out a load once */
	bool is_express; /* is read, or was, through the stream that long ones cannot take */
	bool is_in_place, is_cancelled, is_freed;
	bool is_worthless; /* nothing of its path can be had */
	struct fc_load_result result;
};

enum fc_save_state {
	FC_SAVE_QUEUED = 1,
	FC_SAVE_RESERVING = 2,
	FC_SAVE_RESERVED = 3,
	FC_SAVE_WRITING = 4,
	FC_SAVE_COMMITTING = 5,
	FC_SAVE_VISIBLE = 6,
	FC_SAVE_DURABLE = 7,
	FC_SAVE_FAILED = 8,
};

struct fc_core_save {
	struct fc_core *core;
	struct fc_link link;       /* core->saves, or the free list */
	struct fc_link queue_link; /* core->save_queue */
	enum fc_save_state state;
	struct fc_claim claim; /* its turn is what the caller said; the arrays are copies: */
	struct fc_key *keys;
	uint64_t key_room;
	uint64_t *resume_points;
	uint64_t resume_room;
	struct fc_target target;
	uint64_t *slot_memory;
	uint64_t slot_room;
	void *owner;
	struct fc_worker *worker;
	uint64_t sequence; /* of submission */
	bool is_cancelled, is_lost, is_freed, is_reported;
	struct fc_save_result result;
};

struct fc_core_opts {
	struct fc_catalog_opts catalog; /* alloc, media and geometry inside; area_bytes_max is set by the core */
	/* NULL: the core opens a catalog of its own. Else this is asked, of `catalog` only alloc, geometry and media
	 * count, and area_bytes_max is what windows must take. Borrowed */
	struct fc_directory *directory;
	struct fc_key key_salt; /* exclusive-ored with every key that comes in; zero: nothing */
	struct fc_device *device;
	struct fc_clock clock;
	uint32_t load_streams, save_streams;
	uint64_t window_bytes, gap_bytes, transfer_bytes;
	bool is_ssd_shared;    /* other processes read and write it too */
	uint32_t requests_max; /* loads, and as many saves */
	uint64_t io_timeout_ns;
	/* Something happened to a request; called from inside fc_core_step() or the call that caused it, must not call
	 * back. */
	void (*event_cb)(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
			 uint32_t layer);
	void *context;
};

/* Whether windows of this size do for a geometry, on a medium of this alignment: FC_EINVAL says what would. */
FC_MUST_USE int fc_core_check_window(const struct fc_geometry *geometry, uint64_t window_bytes, uint32_t align,
				     struct fc_error *error);

/* Checks the options and starts opening the catalog; `opened_cb` follows from a step. FC_EINVAL with text, FC_ENOMEM.
 */
FC_MUST_USE int fc_core_open(struct fc_core **core, const struct fc_core_opts *opts,
			     void (*opened_cb)(void *context, int code, const struct fc_error *error),
			     struct fc_error *error);

/* Only when fc_core_is_idle(), or when opening has failed. Media and device stay the caller's. */
void fc_core_free(struct fc_core *core);

/* Polls media and device and moves everything on that can move. Returns how many completions it saw: 0 means that
 * nothing will happen before a medium, the device or the clock does something. */
unsigned fc_core_step(struct fc_core *core);

/* When the clock should wake the core at the latest; UINT64_MAX: never. */
uint64_t fc_core_wake_ns(const struct fc_core *core);

/* No I/O is under way, no request is open, and all that can become durable is. */
bool fc_core_is_idle(const struct fc_core *core);
/* Saves submitted before the call have numbers below this ... */
uint64_t fc_core_save_sequence(const struct fc_core *core);
/* ... and when this has reached it, all of them are durable or have failed. */
uint64_t fc_core_durable_sequence(const struct fc_core *core);
/* Saves that were visible and could not be made durable. */
uint64_t fc_core_durable_failures(const struct fc_core *core);
/* Why the last of them could not. */
const struct fc_error *fc_core_durable_error(const struct fc_core *core);

/* Asks every arena that outlives the process whether it is still there, by a sync. Returns the look's number: it has
 * ended when fc_core_looks_ended() has reached that. One begins after the other, each after it was asked for; nothing
 * is asked where the catalog is another process's. Whether it is there, fc_media.lost says. */
uint64_t fc_core_look(struct fc_core *core);
uint64_t fc_core_looks_ended(const struct fc_core *core);
/* Why the last look failed; code 0: it did not. */
const struct fc_error *fc_core_look_error(const struct fc_core *core);

/* Cancels every request that has not ended, and gives each back when it has. Their owners are told, and must not free
 * them any more. */
void fc_core_free_all(struct fc_core *core);

/* NULL when the core was opened with a directory. */
struct fc_catalog *fc_core_catalog(struct fc_core *core);
struct fc_directory *fc_core_directory(struct fc_core *core);
/* No layer of a segment is longer: what a window takes at once. */
uint64_t fc_core_area_bytes_max(const struct fc_core *core);

/* FC_ELIMIT (requests_max), FC_EINVAL with text, FC_ENOMEM. */
FC_MUST_USE int fc_core_load_submit(struct fc_core *core, const struct fc_load_opts *opts,
				    const struct fc_paged_layer *layers, void *owner, struct fc_core_load **load,
				    struct fc_error *error);
void fc_core_load_cancel(struct fc_core *core, struct fc_core_load *load);
void fc_core_load_free(struct fc_core *core, struct fc_core_load *load);
/* FC_EAGAIN when none is ready. */
FC_MUST_USE int fc_core_ready_take(struct fc_core *core, struct fc_core_load **load);

FC_MUST_USE int fc_core_save_submit(struct fc_core *core, const struct fc_save_opts *opts,
				    const struct fc_paged_layer *layers, void *owner, struct fc_core_save **save,
				    struct fc_error *error);
void fc_core_save_cancel(struct fc_core *core, struct fc_core_save *save);
void fc_core_save_free(struct fc_core *core, struct fc_core_save *save);

/* Copies the keys of a path into memory that grows as needed (fc_alloc_reserve), as the store has them. FC_ENOMEM. */
FC_MUST_USE int fc_core_copy_keys(const struct fc_core *core, struct fc_key **memory, uint64_t *room,
				  const struct fc_key *from, uint64_t count);

/* A load in the prepare queue. */
struct fc_core_waiter {
	uint64_t request;   /* of its lookup */
	uint64_t ssd_bytes; /* to be read */
	uint64_t waited_ns;
	double priority; /* sched/sched.h */
};
/* Those that have waited longest, by arrival; returns how many, at most `room`. */
uint32_t fc_core_waiters(const struct fc_core *core, struct fc_core_waiter *waiters, uint32_t room);

void fc_core_stats(const struct fc_core *core, struct fc_stats *stats);

#endif

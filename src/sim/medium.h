/* A medium made of memory, with the latency, the bandwidth and the faults of a real one.
 *
 *     image     what a read sees: every write that has ended
 *     stable    what survives a power failure for certain: writes that had ended before a sync was submitted that ended
 *     unsynced  the difference, write by write
 *     flights   what was submitted and has not ended
 *
 * Each command takes one of `queue_depth` places, waits there for its turn, and ends `latency_ns` + bytes / bandwidth
 * later, in virtual time. Bytes move when the command ends, not when it is submitted: whoever touches a buffer too
 * early is found out. What a fault does to a command is decided when it is submitted.
 *
 * Kept to the contract of media.h: alignment, bounds, a command submitted once, no two writes of one place at a time.
 *
 * The file behind it can be lost while it is in use (fc_sim_medium_lose()). As media.h wants it, that comes out at a
 * sync, or when a command finds the end of the file too early; nothing of what is written then is there for the next
 * process.
 *
 * Several processes may use one medium, each through a front of its own, as separate descriptors are: what a front
 * submitted ends when that front is polled. When a process is killed, its writes under way are left to themselves
 * (adrift): they still land, or not, when they are due, and until then the kernel would hold the process's locks.
 */
#ifndef FC_SIM_MEDIUM_H
#define FC_SIM_MEDIUM_H

#include "media/media.h"
#include "sim/fault.h"
#include "sim/note.h"
#include "sim/order.h"

#define FC_SIM_QUEUE_DEPTH_MAX 32u
#define FC_SIM_NEVER_NS UINT64_MAX

struct fc_sim_medium_opts {
	uint64_t bytes;
	uint32_t align;
	bool is_durable; /* its content outlives the process */
	bool is_mapped;  /* memory: the core reads and writes in place */
	uint64_t latency_ns;
	uint64_t bytes_per_s;
	uint32_t queue_depth;
	uint64_t late_ns; /* how much later than allowed a late command is */
	uint64_t seed;
};

enum fc_sim_fate {
	FC_FATE_DONE,
	FC_FATE_ERROR,
	FC_FATE_SHORT,
	FC_FATE_FULL,
};

struct fc_sim_flight {
	struct fc_io *io;
	struct fc_media *via; /* the front it came through; NULL: adrift, the io and its buffer are the medium's */
	uint64_t life;        /* of the process that is gone */
	bool is_unseen;       /* its process is stopped: it does not look whether this has ended */
	bool is_stray;        /* nobody waits for it any more: it may land on what belongs to somebody else */
	uint64_t due_ns;      /* FC_SIM_NEVER_NS: stuck */
	uint64_t number;      /* of submission */
	enum fc_sim_fate fate;
	uint64_t moved_bytes; /* of a command that fails on the way */
};

struct fc_sim_write {
	struct fc_link link;
	uint64_t offset, bytes;
	uint64_t ended_at; /* number of commands submitted when it ended */
	uint8_t data[];
};

#define FC_SIM_STICKY_MAX 8u
#define FC_SIM_NEAR_BYTES (256u << 10) /* no segment is longer */

struct fc_sim_place {
	uint64_t offset, bytes;
};

struct fc_sim_medium {
	struct fc_media media;
	struct fc_sim_order order; /* of what comes through the medium's own interface */
	struct fc_sim_medium_opts opts;
	struct fc_sim_notes *notes;
	const struct fc_sim_faults *faults;
	struct fc_random random;
	uint8_t *image;
	uint8_t *stable; /* NULL: memory */
	struct fc_link unsynced;
	struct fc_sim_flight *flights;
	uint32_t flight_count, flight_room;
	uint64_t next_number;
	uint64_t place_free_ns[FC_SIM_QUEUE_DEPTH_MAX];
	uint64_t blocked_until_ns; /* nothing ends before; FC_SIM_NEVER_NS: until it is released */
	struct fc_sim_place sticky[FC_SIM_STICKY_MAX];
	uint32_t sticky_count;
	struct fc_sim_place *unread; /* reads that failed */
	uint32_t unread_count, unread_room;
	uint64_t reread_failures; /* reads that failed where another had failed before */
	uint32_t unread_near_max; /* most that failed so near to each other that they may have been of one segment */
	bool is_lost;             /* its file is; media.lost says whether that has come out */
	uint64_t lost_ns;         /* since then */
	bool is_gone;             /* the next process finds another file, or none */
	uint64_t end;             /* of the file that is there */
	bool is_healed;           /* no more faults; what is stuck stays so */
	bool never_sticks;        /* while the process opens or closes */
	uint64_t fired_count;     /* faults that happened */
	uint64_t stray_count;     /* strays that landed */
};

/* What another process than the one that owns the medium sees of it. */
struct fc_sim_front {
	struct fc_media media;
	struct fc_sim_medium *medium;
	struct fc_sim_order order;
};

/* NULL without memory. */
struct fc_sim_medium *fc_sim_medium_new(const struct fc_sim_medium_opts *opts, struct fc_sim_notes *notes,
					const struct fc_sim_faults *faults);
void fc_sim_medium_free(struct fc_sim_medium *medium);

void fc_sim_front_init(struct fc_sim_front *front, struct fc_sim_medium *medium);
/* The process behind it is gone; `life` names it from now on. */
void fc_sim_front_kill(struct fc_sim_front *front, uint64_t life);

/* Commands under way that came through a front, or the medium's own interface. */
uint32_t fc_sim_medium_flights(const struct fc_sim_medium *medium, const struct fc_media *via);
/* Writes of a process that is gone, and have not landed. */
uint32_t fc_sim_medium_adrift(const struct fc_sim_medium *medium, uint64_t life);
/* Lets land what is due of them; returns how many did. */
unsigned fc_sim_medium_land(struct fc_sim_medium *medium);
/* Whoever uses the front looks no more what has ended, or does again. */
void fc_sim_medium_stop(struct fc_sim_medium *medium, const struct fc_media *via, bool is_stopped);
/* The writes under way of a process that is gone, or (`via` not NULL) of a front, are waited for no more. */
void fc_sim_medium_stray(struct fc_sim_medium *medium, const struct fc_media *via, uint64_t life);

/* When the next command ends; FC_SIM_NEVER_NS if none will. */
uint64_t fc_sim_medium_next_ns(const struct fc_sim_medium *medium);
uint32_t fc_sim_medium_stuck_count(const struct fc_sim_medium *medium);

/* No faults from now on, and places that failed work again. */
void fc_sim_medium_heal(struct fc_sim_medium *medium);
/* It moves again, and what was stuck returns within `within_ns`; with `via`, only what came through it. */
void fc_sim_medium_release(struct fc_sim_medium *medium, const struct fc_media *via, uint64_t within_ns);

/* The process that owns it is killed: its commands under way have happened, or not, or in part. Memory that is not
 * durable is zeros. */
void fc_sim_medium_kill(struct fc_sim_medium *medium);
/* The power fails as well. */
void fc_sim_medium_power_off(struct fc_sim_medium *medium);

/* Another size, between two processes. */
FC_MUST_USE int fc_sim_medium_resize(struct fc_sim_medium *medium, uint64_t bytes);
/* Zeros everywhere, as a new one. */
void fc_sim_medium_blank(struct fc_sim_medium *medium);

/* What befalls its file: FC_FAULT_TRUNCATED (to `end` bytes), FC_FAULT_REMOVED, FC_FAULT_REPLACED. */
void fc_sim_medium_lose(struct fc_sim_medium *medium, enum fc_sim_fault fault, uint64_t end);
/* The next process opens what goes by its name. */
void fc_sim_medium_find(struct fc_sim_medium *medium);

/* One bit, at rest. */
void fc_sim_medium_flip(struct fc_sim_medium *medium, uint64_t offset, unsigned bit);

/* Of all that survives. */
uint64_t fc_sim_medium_digest(const struct fc_sim_medium *medium);

#endif

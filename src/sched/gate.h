/* The gate: in which order commands of streams reach the SSD, and how many bytes of them are there at once.
 *
 * What a drive has taken it serves in an order of its own, so FC-MAS ends where a command is handed over: whatever lies
 * before a small load there, it waits for, and again before each of its layers. Hence commands are kept here, cut to
 * FC_GATE_COMMAND_BYTES, and handed over one by one, no more than keeps the drive busy. The medium's own list of
 * waiting commands stays empty. The simulators run this very code.
 *
 *     stream   line                 |  the order                       with the medium
 *     long     [c][c][c][c][c] ...  |  loads by FC-MAS (sched.h),      at most `busy` bytes; beside a smaller load
 *     short    [c]                  |  then saves and spills, by the   that is being read, of what ranks behind it no
 *     save     [c][c][c] ...        |  time they began                 more than that load reads at a time itself
 *
 * Laws:
 *   Order     A load's command goes before those of every load that FC-MAS puts behind it, now.
 *   Share     Saves and spills go behind loads, but of every FC_GATE_WRITE_SHARE bytes that are read while they wait
 *             one is theirs.
 *   Beside    While a load is being read, what ranks behind it goes only as long as at most max(`beside`, the largest
 *             part of that load) bytes are with the medium: its next layer waits for about as much as it reads. Long
 *             loads side by side do not slow each other down by this, since their parts are longer than `busy`.
 *   Progress  A line whose commands have waited for `patience_ns` and that has none with the medium may send one,
 *             whatever the others do. So nobody starves, and a command that never returns holds up its own line alone.
 *
 * `busy` is what the drive moves in 3 ms, or in four times the quickest answer to a read that was alone there, if that
 * is longer; 1 to 8 MiB. It is three times as much once no load of less than that was there for a second. Where other
 * processes read too it is 4 MiB at most, ever: who is about in those cannot be seen, and what each of them keeps there
 * adds up.
 *
 * `beside` is what the drive moves during the quickest answer; 512 KiB at least. Waiting for so much no more than
 * doubles the time of a read that finds the drive idle.
 *
 * Why three times: some devices, virtual ones above all, report what they have done only when nothing is left to do,
 * and idle until this side has heard of it and sent more. The rarer the better; a small load that comes waits for all
 * of it, but once in a second.
 *
 * The speed is that of spans in which commands had to wait for room; until one is over, the drive passes for fast. A
 * small command is charged with FC_GATE_COST_MIN: drives count those by number. No more commands go than the medium
 * runs at once, and to a drive with nothing to do any may go.
 *
 * What else uses the medium passes by: headers, table pages and syncs of commits, which are few and small and have a
 * save waiting for them, and whatever is read to open or to verify.
 *
 * Pure: the clock is the owner's. Intrusive, takes no memory. */
#ifndef FC_SCHED_GATE_H
#define FC_SCHED_GATE_H

#include "clock/clock.h"
#include "media/media.h"
#include "sched/sched.h"

#define FC_GATE_COMMAND_BYTES (1ull << 20)
#define FC_GATE_COST_MIN (32ull << 10)
#define FC_GATE_BUSY_MIN (1ull << 20)
#define FC_GATE_BUSY_MAX (8ull << 20)
#define FC_GATE_SHARED_MAX (4ull << 20)
#define FC_GATE_ALONE_FACTOR 3 /* of `busy`, while nobody small is about */
#define FC_GATE_ALONE_MAX (FC_GATE_ALONE_FACTOR * FC_GATE_BUSY_MAX)
#define FC_GATE_BESIDE_MIN (512ull << 10)
#define FC_GATE_WRITE_SHARE 4

struct fc_gate {
	struct fc_media *media; /* NULL: no SSD, no commands */
	struct fc_clock clock;
	uint64_t patience_ns;
	bool is_shared;         /* other processes read there too, and who is about in those cannot be seen */
	struct fc_link lines;   /* that are open, in the order they were opened */
	uint64_t small_seen_ns; /* when a small load was there last; 0: never */
	bool is_alone;          /* that is so long ago that nobody small is about */
	bool is_busy;           /* since it last had nothing to do */
	uint64_t in_flight_cost, in_flight_count;
	uint64_t write_credit;   /* bytes that saves may write before the next load */
	uint64_t bytes_per_s;    /* of the drive when it is busy; 0: not known yet */
	uint64_t quickest_ns;    /* of a read that was alone there, from sending it to its end; 0: not known yet */
	uint64_t alone_since_ns; /* when such a one went; 0: none is under way */
	uint64_t span_begin_ns, span_bytes; /* of the measurement that is going on */
	bool is_span_full;                  /* somebody had to wait for room in it */
};

/* The commands of one stream, for one load, save or spill. */
struct fc_gate_line {
	struct fc_link link; /* gate->lines */
	struct fc_gate *gate;
	struct fc_link waiting; /* commands, in the order they go */
	struct fc_sched_item item;
	bool is_load;
	bool is_lost;        /* what it has in flight is counted no more, until it ends */
	uint64_t part_bytes; /* most that was added at once */
	uint64_t in_flight_cost, in_flight_count;
	uint64_t waiting_since_ns; /* with nothing in flight */
};

void fc_gate_init(struct fc_gate *gate, struct fc_media *media, struct fc_clock clock, uint64_t patience_ns,
		  bool is_shared);

/* `load` is the place of a load in FC-MAS, copied; NULL: a save or a spill. */
void fc_gate_open(struct fc_gate *gate, struct fc_gate_line *line, const struct fc_sched_item *load);
/* With nothing of it waiting or in flight. */
void fc_gate_close(struct fc_gate_line *line);

/* Queues a command of one of the medium's kinds; its done_cb has to call fc_gate_ended() first of all. */
void fc_gate_add(struct fc_gate_line *line, struct fc_io *io);
/* All of a part has been added: `bytes` of it. Sends what may go. */
void fc_gate_send(struct fc_gate_line *line, uint64_t bytes);
void fc_gate_ended(struct fc_gate_line *line, const struct fc_io *io);

/* The line's commands in flight never returned: they no longer count. */
void fc_gate_give_up(struct fc_gate_line *line);

/* Sends what may go now; to be called when the time of fc_gate_wake_ns() has come, UINT64_MAX: never. */
void fc_gate_step(struct fc_gate *gate);
uint64_t fc_gate_wake_ns(const struct fc_gate *gate);

/* Most bytes with the medium: of all, and of what ranks behind a load that is being read. */
uint64_t fc_gate_busy_bytes(const struct fc_gate *gate);
uint64_t fc_gate_beside_bytes(const struct fc_gate *gate);

#endif

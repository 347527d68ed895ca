/* A stream: a window of two slots, and the memory it takes to fill and empty them.
 *
 *     slot 0   | layer l   : reading ... copying ... free |
 *     slot 1   | layer l+1 : reading ............. copying |
 *
 * Slots are used in turn, so at most two parts, of at most two layers, are staged at any time; when both are busy the
 * next part waits. Nothing is ever cancelled for want of a buffer. Loads use streams to read, saves to write; a stream
 * serves one of them at a time. When their commands reach the medium is the gate's to say (sched/gate.h). */
#ifndef FC_CIO_STREAM_H
#define FC_CIO_STREAM_H

#include "cio/plan.h"
#include "sched/gate.h"

#define FC_STREAM_SLOTS 2

enum fc_slot_state {
	FC_SLOT_FREE = 0,
	FC_SLOT_MOVING = 1,  /* reads or writes under way */
	FC_SLOT_COPYING = 2, /* the device is at work */
	FC_SLOT_WAITING = 3, /* its work is done, that of an earlier part is not */
};

struct fc_slot {
	struct fc_stream *stream;
	enum fc_slot_state state;
	uint8_t *memory;
	struct fc_part part; /* loads */
	struct fc_slot_io *ios;
	uint64_t io_room, io_count, ios_open;
	struct fc_copy_batch batch;
	uint64_t copies_done;       /* of the part, after a bad one was skipped */
	int failure;                /* code of some I/O of it; 0: none failed */
	const struct fc_io *failed; /* that one */
	bool is_second;             /* loads: a checksum of the part did not match, and all of it has been read again */
	/* saves */
	struct fc_copy *copies;
	uint64_t copy_room;
	uint64_t save_begin, save_end; /* in the arena, of what was gathered into it */
	bool is_segment_begin, is_segment_end, is_for_memory;
};

struct fc_slot_io {
	struct fc_io io;
	struct fc_slot *slot;
	bool is_second; /* a read that failed once already */
	bool is_bad;    /* has failed for good */
};

struct fc_stream_opts {
	const struct fc_alloc *alloc;
	struct fc_device *device;
	uint64_t window_bytes;   /* both slots */
	uint64_t transfer_bytes; /* largest single command */
	struct fc_gate *gate;    /* of the SSD */
};

struct fc_stream {
	struct fc_stream_opts opts;
	uint8_t *window;
	uint64_t slot_bytes;
	struct fc_slot slots[FC_STREAM_SLOTS];
	struct fc_plan plan; /* loads */
	bool is_busy;
	void *job;
	void (*on_moved)(struct fc_slot *slot);  /* all I/O of the slot has ended */
	void (*on_copied)(struct fc_slot *slot); /* its batch has ended */
	uint64_t commands;                       /* of the present job */
	uint64_t completions;                    /* of I/Os and copies, ever: shows that something moves */
	struct fc_gate_line line;                /* its commands; open while it is busy, if it has any */
};

/* `window` is opts->window_bytes of the device's window memory, borrowed. */
void fc_stream_init(struct fc_stream *stream, const struct fc_stream_opts *opts, uint8_t *window);
void fc_stream_deinit(struct fc_stream *stream);

/* Takes and releases the stream for a job. `load`: its place in FC-MAS, copied; NULL: a save. `has_commands` false:
 * nothing of it is on SSD. */
void fc_stream_begin(struct fc_stream *stream, void *job, const struct fc_sched_item *load, bool has_commands);
void fc_stream_end(struct fc_stream *stream);

/* Splits [offset, offset + bytes) of the medium into commands of at most transfer_bytes, appended to the slot's list.
 * FC_ENOMEM. */
FC_MUST_USE int fc_slot_add_io(struct fc_slot *slot, enum fc_io_op op, uint64_t offset, uint64_t bytes,
			       uint8_t *buffer);
/* Whose command it is; NULL: no stream's. */
const struct fc_gate_line *fc_stream_line_of(const struct fc_io *io);
/* Gives the list to the gate; on_moved follows once all have ended. The list must not be empty. */
void fc_slot_move(struct fc_slot *slot);
/* Sends copies [first, first + count); on_copied follows. */
void fc_slot_copy(struct fc_slot *slot, enum fc_copy_direction direction, struct fc_copy *copies, uint64_t count);
/* True while the medium or the device still works on a slot of the stream. */
bool fc_stream_is_moving(const struct fc_stream *stream);
/* True while the device does. */
bool fc_stream_is_copying(const struct fc_stream *stream);

#endif

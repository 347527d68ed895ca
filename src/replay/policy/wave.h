/* Reading many objects from the drives with some lanes side by side, each lane one object after the other.
 *
 * A wave is as much as is worked out at once: a few objects for each lane. Within it, a lane's next object starts when
 * its last one has ended, and drives are shared with whoever else reads. The next wave starts when the last lane of
 * this one has ended. */
#ifndef FC_REPLAY_POLICY_WAVE_H
#define FC_REPLAY_POLICY_WAVE_H

#include "replay/machine.h"

#define FC_WAVE_LANES_MAX 64u

struct fc_wave_opts {
	uint64_t lanes; /* 1 to FC_WAVE_LANES_MAX */
	uint64_t object_bytes;
	uint64_t piece_bytes;      /* read one after the other; 0: an object is one read */
	uint64_t unit_bytes;       /* a read counts as so many commands of this size; 0: one */
	uint64_t object_ns;        /* software, for each object */
	uint64_t piece_ns;         /* for each piece, or each object that is one */
	uint64_t copy_bytes_per_s; /* of a lane's thread that copies what it reads; 0: it copies nothing */
};

/* Objects of a full wave. */
uint64_t fc_wave_objects(const struct fc_wave_opts *opts);

/* Reads the objects with these numbers (each lies wherever its number says) from `from_ns` on; returns when all are
 * there. Counts their reads into `commands`. */
uint64_t fc_wave_read(struct fc_machine *machine, const struct fc_wave_opts *opts, uint64_t from_ns,
		      const uint32_t *numbers, uint64_t count, uint64_t *commands);

/* Where an object of this number lies: scattered over the drives as files, slots and buckets of other sessions are. */
uint64_t fc_wave_offset(const struct fc_machine *machine, uint32_t number);

#endif

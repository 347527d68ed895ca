/* Save: writes reserved segments through a stream.
 *
 * The layers of a segment lie one behind the other, so they are gathered, with their checksums in front of each, into
 * a slot as long as it has room, written in large commands, and the other slot takes the next ones meanwhile. A segment
 * in memory needs no slot: its slices are gathered to where they stay. Blocks that the device does not hold come from
 * where they lie in memory, verified on the way.
 *
 * Layers begin wherever the medium allows a command to begin, which may be inside a block of the file system. To write
 * a part of a block is slow there (ext4 does it alone, after everything else), so what a slot holds of its last block
 * is carried over to the front of the next slot, and only whole blocks are written:
 *
 *     blocks   |       |       |       |       |       |
 *     slot 0     hhhh 00000 1111                          layers 0 and 1 behind the header's place
 *     written  |_______________|
 *     slot 1                    ~1 222222 3333            ~ carried over
 *     written                  |_______________________|  up to the end of the block at the segment's end
 *
 * The header's place is written with zeros at first where it shares a block with layer 0.
 *
 *   RUNNING --all layers written--> ended: FC_OK
 *      '----a write, a copy or a source failed, or fc_save_job_stop()--> ended: the code (I/O under way ends first)
 *
 * Nothing is visible before the owner commits; after a failure the owner aborts. */
#ifndef FC_CIO_SAVE_H
#define FC_CIO_SAVE_H

#include "cio/stream.h"

#define FC_SAVE_BLOCK_BYTES 4096u

struct fc_save_job {
	/* set by the owner; borrowed */
	const struct fc_geometry *geometry;
	const struct fc_grant *grants;
	uint32_t grant_count;
	const struct fc_key *keys;        /* of the path; NULL for a spill */
	const struct fc_target *target;   /* NULL for a spill */
	const struct fc_path *sources;    /* stored blocks that may have to be copied */
	const struct fc_placed *original; /* a spill: the segment in memory of the same shape */
	uint8_t *memory_map;
	void (*ended_cb)(struct fc_save_job *job);
	/* results */
	int code;
	struct fc_error error; /* of an I/O that failed; without text where the code says all */
	bool is_source_bad;    /* with FC_ECORRUPT: a source failed its checksum. Which: */
	uint32_t bad_placed;   /* in `sources`; 0 for an original */
	uint64_t bad_entry;
	uint64_t bytes_written[FC_MEDIUM_COUNT];
	/* the job's own */
	struct fc_stream *stream;
	bool is_stopping, is_planned_out;
	uint32_t grant;
	struct fc_layer_area area;      /* next to be gathered */
	unsigned next_fill, next_write; /* slots, in turn */
	uint32_t block_bytes;           /* that are written whole: of the file system, or the medium's align */
	uint64_t carry_bytes;
	uint8_t carry[FC_SAVE_BLOCK_BYTES];
};

/* Starts on a free stream. FC_EINVAL, FC_ELIMIT (a layer is larger than a slot), FC_ENOMEM: then nothing was started.
 * Callbacks come from inside polls, never from here. */
FC_MUST_USE int fc_save_job_start(struct fc_save_job *job, struct fc_stream *stream, struct fc_error *error);
void fc_save_job_stop(struct fc_save_job *job);

#endif

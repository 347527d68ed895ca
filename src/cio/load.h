/* Load: brings a leased history from the media to the engine's slots, layer by layer, through a stream.
 *
 *   RUNNING --all layers in place--------------------------------> ended: FC_OK
 *      |----a read failed or a checksum did not match------------> ended: FC_ECORRUPT, `bad` lists what
 *      '----fc_load_job_stop()-----(I/O under way ends first)----> ended: FC_ECANCELED
 *
 * What fails is tried once more before anything follows from it: a read that fails, alone; a part of which a checksum
 * does not match, as a whole. Most such failures are of the moment, and what comes of damage is that data goes. What
 * fails twice ends the job at once: what is announced then is less than was matched, and the owner matches again and
 * starts over with what is left (core/loads.c). A layer is announced when it and all before it are in place. */
#ifndef FC_CIO_LOAD_H
#define FC_CIO_LOAD_H

#include "cio/stream.h"

#define FC_BAD_MAX 64
#define FC_WINDOW_LAYERS 2 /* the promise that a load keeps, whatever a stream is made of */

struct fc_bad_slice {
	uint32_t placed; /* in the path */
	uint64_t entry;
	bool is_checksum; /* else the read failed; either of them twice */
};

struct fc_load_job {
	/* set by the owner */
	struct fc_plan_opts plan;
	const struct fc_sched_item *place; /* in FC-MAS; may be NULL when the path has nothing on SSD */
	void (*layer_cb)(struct fc_load_job *job, uint32_t layer);
	void (*ended_cb)(struct fc_load_job *job);
	/* results */
	int code;
	struct fc_bad_slice bad[FC_BAD_MAX]; /* the first of them */
	uint32_t bad_count;
	uint32_t flickers; /* parts that did not match their checksums, and did when they were read again */
	uint64_t bytes_wanted[FC_MEDIUM_COUNT];
	uint64_t bytes_read, planned_runs, commands;
	uint64_t staged_bytes_max; /* most that was in the window at once */
	uint32_t staged_layers_max;
	/* the job's own */
	struct fc_stream *stream;
	bool is_stopping, is_planned_out;
	unsigned next_slot; /* to be filled */
	unsigned next_done; /* to be announced */
};

/* Starts on a free stream. FC_EINVAL with text (slots missing), FC_ENOMEM: then nothing was started. Callbacks come
 * from inside polls, never from here. */
FC_MUST_USE int fc_load_job_start(struct fc_load_job *job, struct fc_stream *stream, struct fc_error *error);

/* No new part is begun; ended_cb follows when the I/O and copies under way have ended. */
void fc_load_job_stop(struct fc_load_job *job);

#endif

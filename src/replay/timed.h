/* Media and a device for the core that take time and move nothing: the core's own code runs, against the simulated
 * machine, and no payload exists.
 *
 *   SSD     what is written is forgotten, what is read reads as zeros (only an open looks at it, and finds a blank
 * arena); each command goes through the drives of the machine memory  address space without pages behind it; in place
 * at once device  batches end right, whatever their checksums; a batch takes the link to its worker for what lies in
 * the memory arena, and the device's own memory for what lies in a window
 *
 * Where the device is the host's memory (`cpu_device` of the profile), one thread does it all, as the live store's
 * does: it sends commands and copies batches, one at a time, and hears of commands that have ended between two batches,
 * or when it has woken up.
 *
 * A worker is known by the array of paged layers that its requests name (fc_timed_layers()). Completions wait until the
 * core polls, as media.h demands; `pump_cb` says that some do. */
#ifndef FC_REPLAY_TIMED_H
#define FC_REPLAY_TIMED_H

#include "device/device.h"
#include "media/media.h"
#include "replay/machine.h"

struct fc_timed;

struct fc_timed_opts {
	struct fc_machine *machine;
	const struct fc_geometry *geometry; /* of the slices that a device copies: the core's may be several of them */
	uint64_t memory_bytes, ssd_bytes;   /* 0: no such medium */
	uint64_t window_bytes;              /* of a stream */
	uint32_t queue_depth;
	uint64_t transfer_bytes; /* largest command of the SSD */
	uint64_t unit_bytes;     /* reads count as so many commands of this size each; 0: as the core sends them */
	/* Something has ended. `is_reading`: a read into a window, or a scatter out of one; what follows from it
	 * follows inside fc_timed_poll(). Else the core has to be stepped. */
	void (*pump_cb)(void *context, bool is_reading);
	void *context;
};

/* FC_ENOMEM. */
FC_MUST_USE int fc_timed_new(struct fc_timed **timed, const struct fc_timed_opts *opts);
void fc_timed_free(struct fc_timed *timed);

/* What the core's own polls do: hands over what has ended, until nothing has. */
void fc_timed_poll(struct fc_timed *timed);

struct fc_media *fc_timed_medium(struct fc_timed *timed, enum fc_medium medium); /* NULL: none */
struct fc_device *fc_timed_device(struct fc_timed *timed);
const struct fc_paged_layer *fc_timed_layers(const struct fc_timed *timed, uint32_t worker);

#endif

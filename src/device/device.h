/* The device interface: moving slices between flat memory (a window, an arena's mapping) and an engine's paged slots,
 * with their checksums. The host device copies with the CPU; a GPU device queues copies and kernels.
 *
 * Contract: submit() never calls done_cb itself; it is called exactly once, from inside poll(). The batch, its items
 * and all memory that they name are borrowed until then. One thread. */
#ifndef FC_DEVICE_DEVICE_H
#define FC_DEVICE_DEVICE_H

#include "base/error.h"
#include "base/list.h"

enum fc_copy_direction {
	FC_COPY_SCATTER = 0, /* flat to slot, checking: stops nothing, but reports the first bad item */
	FC_COPY_GATHER = 1,  /* slot to flat, computing the checksum */
	FC_COPY_FLAT = 2,    /* flat to flat (`slot_memory` is flat), checking as scatter: from one arena to another */
};

/* One slice. */
struct fc_copy {
	uint8_t *flat;
	const struct fc_paged_layer *paged; /* NULL for FC_COPY_FLAT */
	uint64_t slot;
	uint8_t *slot_memory; /* FC_COPY_FLAT: the destination */
	uint64_t bytes;
	uint64_t seed;      /* of the checksum: fc_slice_seed() */
	uint32_t *checksum; /* compared (scatter, flat) or written (gather); not necessarily aligned to 4 bytes in the
			       flat memory */
};

struct fc_copy_batch {
	struct fc_link link; /* the device's while in flight */
	enum fc_copy_direction direction;
	struct fc_copy *copies;
	uint64_t copy_count;
	uint64_t bad_first; /* out: index of the first copy whose checksum differs, or copy_count */
	int result;         /* out: 0, or a negative FC_E... code when the device itself failed */
	void (*done_cb)(struct fc_copy_batch *batch);
	uint64_t device_private[3]; /* the device's while in flight */
};

struct fc_device;

struct fc_device_ops {
	void (*submit)(struct fc_device *device, struct fc_copy_batch *batch);
	unsigned (*poll)(struct fc_device *device);
	/* Memory for windows, that media can read into and write from; aligned to 4 KiB at least. NULL when there is
	 * none. */
	void *(*window_alloc)(struct fc_device *device, uint64_t bytes);
	void (*window_free)(struct fc_device *device, void *memory, uint64_t bytes);
	void (*close)(struct fc_device *device);
};

struct fc_device {
	const struct fc_device_ops *ops;
	uint64_t bytes_scattered, bytes_gathered;
	/* Slices that lie side by side in the flat memory may come as one copy of all their bytes, with the slot, seed
	 * and checksum of the first: for a simulated device, which only counts bytes. */
	bool takes_pieces;
};

static inline void fc_device_submit(struct fc_device *device, struct fc_copy_batch *batch)
{
	device->ops->submit(device, batch);
}
static inline unsigned fc_device_poll(struct fc_device *device)
{
	return device->ops->poll(device);
}
static inline void fc_device_close(struct fc_device *device)
{
	if (device != NULL)
		device->ops->close(device);
}

#endif

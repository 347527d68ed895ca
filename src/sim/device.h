/* A device whose copies take virtual time. A batch copies when it is submitted or when it ends, as the seed decides, so
 * that whoever changes or frees memory of a batch under way is found out either way. */
#ifndef FC_SIM_DEVICE_H
#define FC_SIM_DEVICE_H

#include "device/device.h"
#include "sim/memory.h"

#define FC_SIM_BATCHES_MAX 64u

struct fc_sim_batch {
	struct fc_copy_batch *batch;
	uint64_t due_ns;
	bool is_copied;
};

struct fc_sim_device {
	struct fc_device device;
	struct fc_sim_notes *notes;
	struct fc_sim_memory *memory; /* of the process: windows come from there */
	struct fc_random random;
	struct fc_sim_batch flights[FC_SIM_BATCHES_MAX]; /* under way, in order */
	uint32_t flight_count;
	uint64_t latency_ns, bytes_per_s;
	uint64_t free_ns; /* when it has done what it has */
};

void fc_sim_device_init(struct fc_sim_device *device, struct fc_sim_notes *notes, struct fc_sim_memory *memory,
			uint64_t seed);
/* When the next batch ends; UINT64_MAX if none is under way. */
uint64_t fc_sim_device_next_ns(const struct fc_sim_device *device);
/* The process is gone, and its batches with it. */
void fc_sim_device_kill(struct fc_sim_device *device);

#endif

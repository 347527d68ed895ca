#include "sim/device.h"

#include "format/checksum.h"

#include <string.h>

static struct fc_sim_device *device_of(struct fc_device *device)
{
	return fc_container_of(device, struct fc_sim_device, device);
}

/* ---- copying ---- */

/* Between the pieces of a slot and flat memory. */
static bool move_pieces(const struct fc_copy *copy, uint8_t *flat, bool to_slot)
{
	const struct fc_paged_layer *paged = copy->paged;
	if (paged == NULL || copy->slot >= paged->slot_count || paged->piece_count == 0 ||
	    copy->bytes % paged->piece_count != 0)
		return false;
	uint64_t piece_bytes = copy->bytes / paged->piece_count;
	uint8_t *slot = (uint8_t *)paged->base + copy->slot * paged->slot_stride_bytes;
	for (uint32_t piece = 0; piece < paged->piece_count; piece++) {
		uint8_t *in_slot = slot + piece * paged->piece_stride_bytes;
		uint8_t *in_flat = flat + piece * piece_bytes;
		memcpy(to_slot ? in_slot : in_flat, to_slot ? in_flat : in_slot, piece_bytes);
	}
	return true;
}

static void copy_one(struct fc_sim_device *device, struct fc_copy_batch *batch, uint64_t index)
{
	const struct fc_copy *copy = &batch->copies[index];
	bool is_possible = true;
	if (batch->direction == FC_COPY_GATHER) {
		is_possible = move_pieces(copy, copy->flat, false);
		uint32_t sum = fc_slice_checksum(copy->flat, copy->bytes, copy->seed);
		memcpy(copy->checksum, &sum, sizeof(sum));
		device->device.bytes_gathered += copy->bytes;
	} else {
		uint32_t sum = fc_slice_checksum(copy->flat, copy->bytes, copy->seed);
		if (memcmp(copy->checksum, &sum, sizeof(sum)) != 0)
			batch->bad_first = fc_min_u64(batch->bad_first, index);
		if (batch->direction == FC_COPY_FLAT)
			memcpy(copy->slot_memory, copy->flat, copy->bytes);
		else
			is_possible = move_pieces(copy, copy->flat, true);
		device->device.bytes_scattered += copy->bytes;
	}
	if (!is_possible)
		fc_sim_broken(device->notes, "device: copy %llu names slot %llu, which is not there",
			      (unsigned long long)index, (unsigned long long)copy->slot);
}

static void copy_batch(struct fc_sim_device *device, struct fc_copy_batch *batch)
{
	batch->result = FC_OK;
	batch->bad_first = batch->copy_count;
	for (uint64_t i = 0; i < batch->copy_count; i++)
		copy_one(device, batch, i);
}

/* ---- the interface ---- */

static void sim_submit(struct fc_device *interface, struct fc_copy_batch *batch)
{
	struct fc_sim_device *device = device_of(interface);
	uint64_t bytes = 0;
	for (uint64_t i = 0; i < batch->copy_count; i++)
		bytes += batch->copies[i].bytes;
	if (device->flight_count == FC_SIM_BATCHES_MAX)
		fc_sim_broken(device->notes, "device: more batches than slots of all streams");
	struct fc_sim_batch *flight = &device->flights[device->flight_count++];
	uint64_t start_ns = fc_max_u64(device->notes->now_ns, device->free_ns);
	flight->batch = batch;
	flight->due_ns = start_ns + device->latency_ns + (uint64_t)((double)bytes * 1e9 / (double)device->bytes_per_s);
	flight->is_copied = fc_random_below(&device->random, 2) == 0;
	if (flight->is_copied)
		copy_batch(device, batch);
	device->free_ns = flight->due_ns;
}

static unsigned sim_poll(struct fc_device *interface)
{
	struct fc_sim_device *device = device_of(interface);
	unsigned count = 0;
	while (fc_sim_device_next_ns(device) <= device->notes->now_ns) {
		struct fc_copy_batch *batch = device->flights[0].batch;
		bool is_copied = device->flights[0].is_copied;
		device->flight_count--;
		memmove(device->flights, device->flights + 1, device->flight_count * sizeof(*device->flights));
		if (!is_copied)
			copy_batch(device, batch);
		fc_sim_note(device->notes, "  copies %llu: %llu slices, first bad %llu", (uint64_t)batch->direction,
			    batch->copy_count, batch->bad_first, 0);
		batch->done_cb(batch);
		count++;
	}
	return count;
}

static void *sim_window_alloc(struct fc_device *interface, uint64_t bytes)
{
	return fc_sim_pages_alloc(device_of(interface)->memory, bytes);
}

static void sim_window_free(struct fc_device *interface, void *memory, uint64_t bytes)
{
	fc_sim_pages_free(device_of(interface)->memory, memory, bytes);
}

static void sim_close(struct fc_device *interface)
{
	fc_check(device_of(interface)->flight_count == 0);
}

void fc_sim_device_init(struct fc_sim_device *device, struct fc_sim_notes *notes, struct fc_sim_memory *memory,
			uint64_t seed)
{
	static const struct fc_device_ops ops = {
		.submit = sim_submit,
		.poll = sim_poll,
		.window_alloc = sim_window_alloc,
		.window_free = sim_window_free,
		.close = sim_close,
	};
	*device = (struct fc_sim_device){.device = {.ops = &ops}, .notes = notes, .memory = memory};
	fc_random_init(&device->random, seed);
	device->latency_ns = fc_random_between(&device->random, 1, 20000);
	device->bytes_per_s = fc_random_between(&device->random, 100, 20000) * 1000000ull;
}

uint64_t fc_sim_device_next_ns(const struct fc_sim_device *device)
{
	return device->flight_count == 0 ? UINT64_MAX : device->flights[0].due_ns;
}

void fc_sim_device_kill(struct fc_sim_device *device)
{
	device->flight_count = 0;
	device->free_ns = 0;
}

#include "replay/policy/wave.h"

#include "base/random.h"

#define LANE_OBJECTS 4u /* of a lane in one wave */

uint64_t fc_wave_objects(const struct fc_wave_opts *opts)
{
	return opts->lanes * LANE_OBJECTS;
}

uint64_t fc_wave_offset(const struct fc_machine *machine, uint32_t number)
{
	uint64_t state = number, stripe_bytes = machine->hardware->ssd_stripe_bytes;
	return fc_random_split(&state) % (1u << 20) * stripe_bytes;
}

/* A lane's thread does its software and its copying while the drive works ahead, but not before the first bytes come.
 */
static uint64_t read_object(struct fc_machine *machine, const struct fc_wave_opts *opts, uint64_t from_ns,
			    uint32_t number)
{
	uint64_t offset = fc_wave_offset(machine, number);
	uint64_t piece_bytes = opts->piece_bytes == 0 ? opts->object_bytes : opts->piece_bytes;
	uint64_t at_ns = from_ns + opts->object_ns;
	for (uint64_t done = 0; done < opts->object_bytes; done += piece_bytes) {
		uint64_t bytes = fc_min_u64(piece_bytes, opts->object_bytes - done);
		at_ns += opts->piece_ns;
		uint64_t end_ns = fc_machine_read(machine, at_ns, offset + done, bytes, opts->unit_bytes);
		if (opts->copy_bytes_per_s > 0)
			end_ns = fc_max_u64(end_ns, at_ns + machine->hardware->ssd_latency_ns +
							    fc_transfer_ns(bytes, opts->copy_bytes_per_s));
		at_ns = end_ns;
	}
	return at_ns;
}

uint64_t fc_wave_read(struct fc_machine *machine, const struct fc_wave_opts *opts, uint64_t from_ns,
		      const uint32_t *numbers, uint64_t count, uint64_t *commands)
{
	uint64_t lanes_ns[FC_WAVE_LANES_MAX], end_ns = from_ns;
	uint64_t lanes = fc_min_u64(opts->lanes, FC_WAVE_LANES_MAX);
	uint64_t before = machine->read_commands;
	for (uint64_t lane = 0; lane < lanes; lane++)
		lanes_ns[lane] = from_ns;
	/* Row by row, so that the drives see the lanes side by side. */
	for (uint64_t i = 0; i < count; i++) {
		uint64_t *lane_ns = &lanes_ns[i % lanes];
		*lane_ns = read_object(machine, opts, *lane_ns, numbers[i]);
		end_ns = fc_max_u64(end_ns, *lane_ns);
	}
	*commands += machine->read_commands - before;
	return end_ns;
}

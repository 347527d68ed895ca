#include "replay/machine.h"

#include <stdlib.h>

int fc_machine_init(struct fc_machine *machine, const struct fc_hardware *hardware, struct fc_world *world)
{
	*machine = (struct fc_machine){.hardware = hardware, .world = world};
	machine->drives = calloc(hardware->ssd_count, sizeof(*machine->drives));
	machine->links = calloc(hardware->workers, sizeof(*machine->links));
	if (machine->drives == NULL || machine->links == NULL)
		return FC_ENOMEM;
	for (uint64_t i = 0; i < hardware->workers; i++) {
		machine->links[i].up.bytes_per_s = hardware->link_up_bytes_per_s;
		machine->links[i].down.bytes_per_s = hardware->link_down_bytes_per_s;
	}
	machine->dram.bytes_per_s = hardware->dram_bytes_per_s;
	return FC_OK;
}

void fc_machine_deinit(struct fc_machine *machine)
{
	free(machine->drives);
	free(machine->links);
	*machine = (struct fc_machine){0};
}

static void forget_oldest(struct fc_drive *drive)
{
	drive->bytes -= drive->reads[drive->first].bytes;
	drive->first = (drive->first + 1) % FC_DRIVE_COMMANDS_MAX;
	drive->count--;
}

/* Speed of a read that is sent at `from_ns`, from what is under way then. */
static uint64_t read_speed(const struct fc_machine *machine, struct fc_drive *drive, uint64_t from_ns, uint64_t bytes)
{
	const struct fc_hardware *hardware = machine->hardware;
	if (hardware->read_curve.count == 0)
		return hardware->ssd_read_bytes_per_s;
	while (drive->count > 0 && drive->reads[drive->first].end_ns <= from_ns)
		forget_oldest(drive);
	return fc_speed_at(&hardware->read_curve, drive->bytes + bytes);
}

static void note_read(struct fc_drive *drive, uint64_t end_ns, uint64_t bytes)
{
	if (drive->count == FC_DRIVE_COMMANDS_MAX)
		forget_oldest(drive);
	uint64_t last = (drive->first + drive->count++) % FC_DRIVE_COMMANDS_MAX;
	drive->reads[last].end_ns = end_ns;
	drive->reads[last].bytes = bytes;
	drive->bytes += bytes;
}

/* What the latency of a command on an idle drive is besides the command itself. */
static uint64_t waking_ns(const struct fc_hardware *hardware, const struct fc_drive *drive, uint64_t from_ns)
{
	if (!hardware->has_joint_reports || !fc_pipe_is_idle_at(&drive->pipe, from_ns))
		return 0;
	return hardware->ssd_latency_ns - fc_min_u64(hardware->ssd_latency_ns, hardware->ssd_command_ns);
}

enum access { READ, WRITE, FIRST_WRITE };

/* The part of one command, or of several, that falls on one drive. */
static uint64_t use_drive(struct fc_machine *machine, uint64_t from_ns, uint64_t stripe, uint64_t bytes,
			  uint64_t commands, enum access access)
{
	const struct fc_hardware *hardware = machine->hardware;
	struct fc_drive *drive = &machine->drives[stripe % hardware->ssd_count];
	uint64_t bytes_per_s = access == READ    ? read_speed(machine, drive, from_ns, bytes)
			       : access == WRITE ? hardware->ssd_write_bytes_per_s
						 : hardware->ssd_first_write_bytes_per_s;
	drive->pipe.bytes += bytes;
	from_ns = fc_pipe_pause(&drive->pipe, from_ns, waking_ns(hardware, drive, from_ns));
	uint64_t end_ns = fc_pipe_occupy(&drive->pipe, from_ns,
					 commands * hardware->ssd_command_ns + fc_transfer_ns(bytes, bytes_per_s));
	if (access == READ && hardware->read_curve.count > 0)
		note_read(drive, end_ns, bytes);
	return end_ns;
}

static uint64_t spread(struct fc_machine *machine, uint64_t from_ns, uint64_t offset, uint64_t bytes,
		       uint64_t unit_bytes, enum access access, uint64_t *command_count)
{
	uint64_t stripe_bytes = machine->hardware->ssd_stripe_bytes, end_ns = from_ns;
	for (uint64_t at = offset, end = offset + bytes; at < end;) {
		uint64_t stripe = at / stripe_bytes;
		uint64_t part = fc_min_u64(end, (stripe + 1) * stripe_bytes) - at;
		uint64_t commands = unit_bytes == 0 ? 1 : (part + unit_bytes - 1) / unit_bytes;
		end_ns = fc_max_u64(end_ns, use_drive(machine, from_ns, stripe, part, commands, access));
		*command_count += commands;
		at += part;
	}
	if (machine->hardware->has_joint_reports)
		return end_ns;
	/* What a curve says includes the latency of its commands: then it is only the least that one takes. */
	if (access == READ && machine->hardware->read_curve.count > 0)
		return fc_max_u64(end_ns, from_ns + machine->hardware->ssd_latency_ns);
	return end_ns + machine->hardware->ssd_latency_ns;
}

uint64_t fc_machine_read(struct fc_machine *machine, uint64_t from_ns, uint64_t offset, uint64_t bytes,
			 uint64_t unit_bytes)
{
	uint64_t end_ns = spread(machine, from_ns, offset, bytes, unit_bytes, READ, &machine->read_commands);
	machine->bytes_read += bytes;
	fc_series_add(&machine->read_series, end_ns, bytes);
	return end_ns;
}

uint64_t fc_machine_write(struct fc_machine *machine, uint64_t from_ns, uint64_t offset, uint64_t bytes, bool is_first)
{
	machine->bytes_written += bytes;
	return spread(machine, from_ns, offset, bytes, 0, is_first ? FIRST_WRITE : WRITE, &machine->write_commands);
}

uint64_t fc_machine_sync(struct fc_machine *machine, uint64_t from_ns)
{
	const struct fc_hardware *hardware = machine->hardware;
	uint64_t end_ns = from_ns + hardware->ssd_sync_ns;
	for (uint64_t i = 0; i < hardware->ssd_count && hardware->has_joint_reports; i++)
		end_ns = fc_max_u64(end_ns, fc_pipe_occupy(&machine->drives[i].pipe, from_ns, hardware->ssd_sync_ns));
	return end_ns;
}

uint64_t fc_machine_report_ns(const struct fc_machine *machine, uint64_t offset, uint64_t bytes)
{
	const struct fc_hardware *hardware = machine->hardware;
	uint64_t first = offset / hardware->ssd_stripe_bytes, count = hardware->ssd_count, report_ns = 0;
	if (bytes > 0)
		count = fc_min_u64(count, (offset + bytes - 1) / hardware->ssd_stripe_bytes - first + 1);
	for (uint64_t i = first; i < first + count && hardware->has_joint_reports; i++)
		report_ns = fc_max_u64(report_ns, machine->drives[i % hardware->ssd_count].pipe.free_ns);
	return report_ns;
}

/* The simulated node's shared parts, as pipes in front of something that takes time (pipe.h): drives, links, DRAM. That
 * is all there is to contention here; a chain of transfers is made of pipes taken one after the other.
 *
 * A drive is a pipe whose commands end `ssd_latency_ns` after it has served them. One with `ssd_joint_reports`, such as
 * a host's thread that works for a virtual machine, has to be woken: the latency comes before the first of the commands
 * that it then serves one after the other, and it tells of none of them before it has nothing left to do. */
#ifndef FC_REPLAY_MACHINE_H
#define FC_REPLAY_MACHINE_H

#include "replay/hardware.h"
#include "replay/pipe.h"
#include "replay/series.h"
#include "replay/world.h"

#include "base/check.h"

#define FC_DRIVE_COMMANDS_MAX 64

/* A drive whose speed depends on how much it has to do. */
struct fc_drive {
	struct fc_pipe pipe;
	/* Reads under way, the oldest first, in a ring; of more than these the oldest count as done. */
	struct {
		uint64_t end_ns, bytes;
	} reads[FC_DRIVE_COMMANDS_MAX];
	uint64_t first, count, bytes;
};

struct fc_link_pair {
	struct fc_pipe up, down; /* to the device, from it */
};

struct fc_machine {
	const struct fc_hardware *hardware;
	struct fc_world *world;
	struct fc_drive *drives;    /* ssd_count */
	struct fc_link_pair *links; /* a worker each */
	struct fc_pipe dram;
	uint64_t read_commands, write_commands; /* of the drives */
	uint64_t bytes_read, bytes_written;
	struct fc_series read_series; /* bytes read from SSD over time */
};

/* FC_ENOMEM. fc_machine_deinit() also after a failure. */
FC_MUST_USE int fc_machine_init(struct fc_machine *machine, const struct fc_hardware *hardware, struct fc_world *world);
void fc_machine_deinit(struct fc_machine *machine);

/* One read of `bytes` at `offset` of the striped drives, sent at `from_ns`; returns when its last byte has left them.
 * Every piece on one drive is a command, or as many as it has units of `unit_bytes` (0: one). */
uint64_t fc_machine_read(struct fc_machine *machine, uint64_t from_ns, uint64_t offset, uint64_t bytes,
			 uint64_t unit_bytes);
/* The same for a write; `is_first`: nothing was ever written there. */
uint64_t fc_machine_write(struct fc_machine *machine, uint64_t from_ns, uint64_t offset, uint64_t bytes, bool is_first);
/* All of the drives. */
uint64_t fc_machine_sync(struct fc_machine *machine, uint64_t from_ns);

/* When a command that has ended is reported, as far as is known now: what is sent meanwhile to drives that report
 * jointly may put it off. The same range as the command's; no bytes: all drives, as for a sync. */
uint64_t fc_machine_report_ns(const struct fc_machine *machine, uint64_t offset, uint64_t bytes);

#endif

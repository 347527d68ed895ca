/* What serves one transfer after the other: a drive, a link, DRAM. It is busy for bytes / bandwidth, or for as long as
 * it is told; what comes while it is busy waits.
 *
 * A transfer may be laid out before its time: some policies work out a row of reads at once, each of which begins when
 * the one before has ended. Such a reservation is kept, and everybody else uses the time in front of it. The law is
 * that nobody waits for a pipe that is idle (tests/replay/test_pipe.c):
 *
 *     ####....####........######            #: taken   .: a gap
 *         ^ 6 units that come here take     ####++++####++......######, and end after the second run of +
 *
 * A transfer that does not fit into a gap is served in parts, as a drive serves the commands of several in turn. */
#ifndef FC_REPLAY_PIPE_H
#define FC_REPLAY_PIPE_H

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of more gaps than these the older half is forgotten, which lies in the past but for more than so many reservations.
 */
#define FC_PIPE_GAPS_MAX 2048u

struct fc_pipe {
	uint64_t bytes_per_s;
	uint64_t free_ns; /* when it has done all that it has */
	uint64_t busy_ns; /* so far */
	uint64_t bytes;
	/* Before `free_ns`, in the order of time: they neither touch nor overlap. */
	struct {
		uint64_t start_ns, end_ns;
	} gaps[FC_PIPE_GAPS_MAX];
	size_t gap_count;
};

/* Bytes at a speed, in nanoseconds, rounded up. */
static inline uint64_t fc_transfer_ns(uint64_t bytes, uint64_t bytes_per_s)
{
	unsigned __int128 product = (unsigned __int128)bytes * 1000000000u + bytes_per_s - 1;
	return (uint64_t)(product / bytes_per_s);
}

/* Takes `busy_ns` of its time, from `from_ns` on, as soon as it is idle; returns the end. */
uint64_t fc_pipe_occupy(struct fc_pipe *pipe, uint64_t from_ns, uint64_t busy_ns);

/* The same for bytes at its speed. */
uint64_t fc_pipe_move(struct fc_pipe *pipe, uint64_t from_ns, uint64_t bytes);

/* It serves nobody for so long, from `from_ns` on or as soon as it is idle, and does no work; returns the end. */
uint64_t fc_pipe_pause(struct fc_pipe *pipe, uint64_t from_ns, uint64_t pause_ns);

bool fc_pipe_is_idle_at(const struct fc_pipe *pipe, uint64_t at_ns);

#endif

#include "replay/pipe.h"

#include <string.h>

/* The first gap that is not over at that time; gap_count: none. */
static size_t find_gap(const struct fc_pipe *pipe, uint64_t at_ns)
{
	size_t first = 0, end = pipe->gap_count;
	while (first < end) {
		size_t middle = first + (end - first) / 2;
		if (pipe->gaps[middle].end_ns > at_ns)
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

static void remove_gaps(struct fc_pipe *pipe, size_t at, size_t count)
{
	pipe->gap_count -= count;
	memmove(&pipe->gaps[at], &pipe->gaps[at + count], (pipe->gap_count - at) * sizeof(pipe->gaps[0]));
}

static void insert_gap(struct fc_pipe *pipe, size_t at, uint64_t start_ns, uint64_t end_ns)
{
	if (pipe->gap_count == FC_PIPE_GAPS_MAX) {
		size_t old = FC_PIPE_GAPS_MAX / 2;
		remove_gaps(pipe, 0, old);
		if (at < old)
			return; /* one of them */
		at -= old;
	}
	memmove(&pipe->gaps[at + 1], &pipe->gaps[at], (pipe->gap_count - at) * sizeof(pipe->gaps[0]));
	pipe->gaps[at].start_ns = start_ns;
	pipe->gaps[at].end_ns = end_ns;
	pipe->gap_count++;
}

/* Takes this part of the gap. */
static void take(struct fc_pipe *pipe, size_t at, uint64_t start_ns, uint64_t end_ns)
{
	bool is_front = pipe->gaps[at].start_ns == start_ns, is_back = pipe->gaps[at].end_ns == end_ns;
	if (is_front && is_back) {
		remove_gaps(pipe, at, 1);
	} else if (is_front) {
		pipe->gaps[at].start_ns = end_ns;
	} else {
		uint64_t behind_ns = pipe->gaps[at].end_ns;
		pipe->gaps[at].end_ns = start_ns;
		if (!is_back)
			insert_gap(pipe, at + 1, end_ns, behind_ns);
	}
}

/* Behind all that it has. */
static uint64_t append(struct fc_pipe *pipe, uint64_t from_ns, uint64_t busy_ns)
{
	uint64_t start_ns = fc_max_u64(pipe->free_ns, from_ns);
	if (busy_ns == 0)
		return start_ns;
	if (start_ns > pipe->free_ns)
		insert_gap(pipe, pipe->gap_count, pipe->free_ns, start_ns);
	return pipe->free_ns = start_ns + busy_ns;
}

uint64_t fc_pipe_occupy(struct fc_pipe *pipe, uint64_t from_ns, uint64_t busy_ns)
{
	uint64_t left_ns = busy_ns;
	pipe->busy_ns += busy_ns;
	for (size_t at; (at = find_gap(pipe, from_ns)) < pipe->gap_count;) {
		uint64_t start_ns = fc_max_u64(pipe->gaps[at].start_ns, from_ns);
		uint64_t part_ns = fc_min_u64(left_ns, pipe->gaps[at].end_ns - start_ns);
		if (part_ns > 0)
			take(pipe, at, start_ns, start_ns + part_ns);
		left_ns -= part_ns;
		from_ns = start_ns + part_ns;
		if (left_ns == 0)
			return from_ns;
	}
	return append(pipe, from_ns, left_ns);
}

uint64_t fc_pipe_move(struct fc_pipe *pipe, uint64_t from_ns, uint64_t bytes)
{
	pipe->bytes += bytes;
	return fc_pipe_occupy(pipe, from_ns, fc_transfer_ns(bytes, pipe->bytes_per_s));
}

uint64_t fc_pipe_pause(struct fc_pipe *pipe, uint64_t from_ns, uint64_t pause_ns)
{
	if (pause_ns == 0)
		return from_ns;
	pipe->busy_ns -= pause_ns;
	return fc_pipe_occupy(pipe, from_ns, pause_ns);
}

bool fc_pipe_is_idle_at(const struct fc_pipe *pipe, uint64_t at_ns)
{
	size_t at = find_gap(pipe, at_ns);
	return at < pipe->gap_count ? pipe->gaps[at].start_ns <= at_ns : pipe->free_ns <= at_ns;
}

/* What a replay found: counters, times and the store's own statistics before and after. */
#ifndef FC_REPLAY_RESULT_H
#define FC_REPLAY_RESULT_H

#include "base/error.h"
#include "base/histogram.h"
#include "config/config.h"
#include "replay/busy.h"
#include "trace/trace.h"

#include <jansson.h>
#include <stdio.h>

/* Parts of the time to first token. Their sum is the whole. */
enum fc_ttft_part {
	FC_TTFT_QUEUE,   /* from arrival to the first read or copy: slots, and the store's own queue */
	FC_TTFT_READ,    /* until the last byte is in place */
	FC_TTFT_READY,   /* in place, and the engine computes others */
	FC_TTFT_PREFILL, /* what was not delivered is computed */
	FC_TTFT_PART_COUNT,
};

const char *fc_ttft_part_name(enum fc_ttft_part part);

struct fc_replay_result {
	uint64_t request_total; /* of the trace */
	uint64_t requests;      /* that ended */
	uint64_t blocks;        /* of their inputs, and all below in such blocks */
	uint64_t prefix_blocks;
	uint64_t under_way_blocks; /* behind those: of requests that had begun before, and had not ended */
	uint64_t possible_blocks;
	uint64_t delivered_blocks;
	uint64_t unexplained_blocks; /* not delivered, and the store gave up no session since they were saved */
	uint64_t short_loads;        /* requests that were delivered less than was possible */

	uint64_t mismatches; /* slices */
	struct fc_error first_mismatch;
	uint64_t errors; /* loads and saves that failed and should not */
	struct fc_error first_error;

	uint64_t loads;                        /* that found something */
	uint64_t media_bytes[FC_MEDIUM_COUNT]; /* delivered */
	uint64_t bytes_read;                   /* from SSD, to deliver what came from there */
	uint64_t segments_touched, planned_runs, read_commands;
	uint64_t memory_only_bytes; /* of loads that needed nothing else: the copy's speed shows in these alone */
	struct fc_busy busy[FC_MEDIUM_COUNT]; /* loads that were copying from memory alone, or reading from SSD */

	uint64_t saves, saves_refused;
	uint64_t blocks_new, bytes_new, segments_absorbed;
	uint64_t bytes_saved; /* written by these saves */

	struct fc_histogram ttft; /* nanoseconds */
	struct fc_histogram ttft_parts[FC_TTFT_PART_COUNT];

	uint64_t elapsed_ns;
	bool is_interrupted;
	bool is_warm;   /* the store held blocks before */
	bool is_shared; /* it is a flatcaked's: its counters have what other clients do, and not what these write */
	struct fc_stats before, after;
};

/* Room for the times of so many requests. FC_ENOMEM. */
FC_MUST_USE int fc_replay_result_new(struct fc_replay_result **result, uint64_t request_total);
void fc_replay_result_free(struct fc_replay_result *result);

/* Over the replay; both media together. */
uint64_t fc_replay_bytes_written(const struct fc_replay_result *result);
uint64_t fc_replay_bytes_stored(const struct fc_replay_result *result);
uint64_t fc_replay_sessions_reclaimed(const struct fc_replay_result *result, enum fc_medium medium);

/* Says so where a trace has times of its own and they do not count, and what that leaves no cache to deliver. */
void fc_replay_print_clock(const struct fc_trace *trace, const struct fc_config *config, uint64_t under_way_blocks,
			   FILE *file);

/* A table for people. FC_ENOMEM, FC_EIO. */
FC_MUST_USE int fc_replay_print(struct fc_replay_result *result, const struct fc_trace *trace,
				const struct fc_config *config, const struct fc_geometry *geometry, FILE *file);

/* The same for machines, and the settings; NULL without memory. What would be 0/0 is null. */
json_t *fc_replay_json(struct fc_replay_result *result, const struct fc_trace *trace, const struct fc_config *config,
		       const struct fc_geometry *geometry);

#endif

/* What one simulated run found. Plain memory without pointers, so that a process can leave it to another. */
#ifndef FC_REPLAY_OUTCOME_H
#define FC_REPLAY_OUTCOME_H

#include "base/histogram.h"
#include "replay/policy.h"
#include "replay/result.h"
#include "trace/mix.h"

/* The requests of one trace of a mix. */
struct fc_source_outcome {
	uint64_t requests, blocks, possible_blocks, delivered_blocks;
	struct fc_histogram ttft;
	struct fc_histogram waited; /* from arrival until the engine took it */
};

struct fc_outcome {
	struct fc_error error; /* code 0: the run ended */
	uint64_t requests;
	uint64_t blocks;           /* of their inputs */
	uint64_t seen_blocks;      /* leading blocks that some request before had computed */
	uint64_t under_way_blocks; /* behind those: of requests that had begun before, and had not ended */
	uint64_t possible_blocks;  /* of those seen, up to where the model can resume: what any cache could deliver */
	uint64_t delivered_blocks; /* on the device before the prefill needed them */
	uint64_t cancelled_blocks; /* stored, and computed again for want of a buffer or of time */
	uint64_t cancelled_loads;
	uint64_t short_loads;                  /* delivered less than possible */
	uint64_t loads;                        /* that delivered something */
	uint64_t ssd_loads;                    /* that read from SSD */
	uint64_t media_bytes[FC_MEDIUM_COUNT]; /* delivered, by where they came from */
	uint64_t bytes_read;                   /* from SSD for loads */
	uint64_t commands, segments;
	uint64_t saves_refused;
	uint64_t output_tokens;
	struct fc_histogram ttft, parts[FC_TTFT_PART_COUNT]; /* nanoseconds */
	struct fc_histogram ttft_ssd;                        /* of requests that read from SSD */
	struct fc_histogram prefetch; /* of loads that read from SSD: from arrival until all is in place */
	struct fc_histogram read;     /* of the same: from the first byte on */
	uint64_t read_busy_ns;        /* sum of the latter */
	uint64_t elapsed_ns;          /* simulated */
	uint64_t prefill_busy_ns;     /* of all workers */
	struct fc_policy_stats stats;
	uint64_t drive_bytes_read, drive_bytes_written, drive_busy_ns;  /* of all drives, whoever asked */
	struct fc_series ssd_series, delivered_series, possible_series; /* bytes; blocks over arrival time */
	struct fc_source_outcome sources[FC_MIX_MAX];                   /* of a mix only */
	uint64_t real_ns;                                               /* that the simulation itself took */
};

#endif

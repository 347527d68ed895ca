/* Hardware profiles: what a simulated node is made of, and how fast its engine computes.
 *
 * A profile is a YAML file of "name: number" lines; profiles/ holds some, with the origin of every number as a comment.
 * A worker is one engine process, a data-parallel rank, or a group of GPUs that work on one batch together; its numbers
 * are those of the whole group. */
#ifndef FC_REPLAY_HARDWARE_H
#define FC_REPLAY_HARDWARE_H

#include "config/option.h"

#include <stdio.h>

#define FC_SPEED_POINTS_MAX 16

/* How fast a drive reads with so many bytes under way, or a thread copies slices of so many bytes. */
struct fc_speed_curve {
	uint64_t bytes[FC_SPEED_POINTS_MAX]; /* ascending */
	uint64_t bytes_per_s[FC_SPEED_POINTS_MAX];
	uint64_t count; /* 0: one speed for all */
};

struct fc_hardware {
	char name[FC_NAME_BYTES];
	const char *model; /* the preset whose KV is meant, unless --model says otherwise */
	uint64_t workers;

	/* the engine, each worker */
	uint64_t hbm_kv_bytes;           /* for the KV of requests under way */
	uint64_t hbm_bytes_per_s;        /* at which decoding reads KV, and a window is scattered */
	double prefill_tokens_per_s;     /* at short contexts */
	uint64_t prefill_context_tokens; /* at this context a new token costs twice as much; 0: context costs nothing */
	uint64_t step_ns;                /* fixed part of every step: launches, sampling, scheduling */
	uint64_t decode_step_ns;         /* what a step with any decoding takes at least: weights are read once */
	uint64_t decode_request_ns;      /* and for each request in it */
	bool is_decoding;                /* off: replies take no time */
	uint64_t chunk_tokens;           /* most new tokens that a step prefills */
	uint64_t batch_max;              /* requests that are computed at once */
	bool has_overlap;                /* prefill of a layer may run while later layers are on their way */
	bool has_cpu_device;             /* the device is host memory: one thread copies, and sends the commands too */

	/* the node */
	uint64_t memory_bytes, ssd_bytes; /* budgets of the cache, unless --memory and --ssd say otherwise */
	uint64_t dram_bytes_per_s;        /* read and written together */
	uint64_t link_up_bytes_per_s;     /* host to device, each worker */
	uint64_t link_down_bytes_per_s;   /* device to host */
	uint64_t copy_ns;                 /* to start a copy on a device */
	uint64_t slice_ns;                /* for each slice of a copy, besides its bytes */
	/* With has_cpu_device, out of a window: to have it filled and start its copy, and the copy's speed by the bytes
	 * of a slice, "none" or "BYTES=SPEED,...", in batches below and from window_large_bytes. None: slice_ns, and
	 * hbm_bytes_per_s. */
	uint64_t window_copy_ns;
	const char *window_curve, *window_large_curve;
	struct fc_speed_curve slice_curve, large_slice_curve; /* the same */
	uint64_t window_large_bytes;
	uint64_t wake_ns;                 /* with has_cpu_device: until its thread, asleep, hears of a command's end */
	uint64_t load_ns;                 /* for each load, besides its copies and commands: hand-offs and look-ups */
	uint64_t ssd_count;               /* drives, striped */
	uint64_t ssd_align_bytes;         /* of offsets and sizes of direct reads and writes */
	uint64_t ssd_stripe_bytes;        /* of the arena on one drive before the next */
	uint64_t ssd_transfer_bytes;      /* largest command worth sending */
	uint64_t ssd_read_bytes_per_s;    /* each drive */
	const char *ssd_read_curve;       /* as it stands in the profile: "none", or "BYTES=SPEED,..." */
	struct fc_speed_curve read_curve; /* the same, of each drive */
	uint64_t ssd_write_bytes_per_s;
	uint64_t ssd_first_write_bytes_per_s; /* where the arena was never written to */
	uint64_t ssd_command_ns;              /* that a drive is busy with a command besides its bytes: 1 / its IOPS */
	uint64_t ssd_latency_ns;              /* from a command to its end on an idle drive, besides its bytes */
	uint64_t ssd_sync_ns;                 /* to make what is written durable */
	bool has_joint_reports;               /* a drive reports what it has done when it has nothing left to do */
	uint64_t direct_command_ns;       /* software of a read that goes straight to the device, for each command */
	uint64_t kernel_command_ns;       /* of one that goes through the kernel's file system and page cache */
	uint64_t kernel_copy_bytes_per_s; /* of a thread that copies out of the page cache */
	uint64_t file_open_ns;            /* to open and close a file */

	char *owned_texts[4]; /* model, ssd_read_curve, window_curve, window_large_curve */
};

/* Finds a profile by name (in the source's or the installed folder) or by path, and reads it. Every
 * name has to be there once. FC_ENOENT with the names of those that there are, FC_EINVAL with path, line and what is
 * allowed. To be freed also after a failure. */
FC_MUST_USE int fc_hardware_load(struct fc_hardware *hardware, const char *name, struct fc_error *error);
void fc_hardware_deinit(struct fc_hardware *hardware);

/* The speed with `bytes` under way: between two points a straight line over the logarithm of the bytes, beyond the ends
 * that of the end. `curve` has a point at least. */
uint64_t fc_speed_at(const struct fc_speed_curve *curve, uint64_t bytes);

/* Where a number comes from. */
struct fc_hardware_origin {
	const char *name;
	const char *origin; /* without line ends */
};

/* Writes a profile that fc_hardware_load() reads: `head` as a comment, one line or several, then each value with its
 * origin. Every name must have one. FC_EIO. */
FC_MUST_USE int fc_hardware_print(const struct fc_hardware *hardware, const char *head,
				  const struct fc_hardware_origin *origins, size_t origin_count, FILE *file);

/* How long `tokens` new ones take behind `context` others, in nanoseconds:
 *
 *     tokens / rate x (1 + (context + tokens / 2) / prefill_context_tokens)
 *
 * Everything but attention costs the same for each token; attention costs in proportion to what it looks back on. */
uint64_t fc_hardware_prefill_ns(const struct fc_hardware *hardware, uint64_t tokens, uint64_t context);

/* One step of decoding for `requests` whose KV together is `kv_bytes`. */
uint64_t fc_hardware_decode_ns(const struct fc_hardware *hardware, uint64_t requests, uint64_t kv_bytes);

#endif

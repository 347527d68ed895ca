/* What a hardware profile needs to know of this machine: its disk through the store's own medium, and the store's own
 * way from memory to an engine's slots. Every figure is measured, none is fitted to what the store does with them. */
#ifndef FC_BENCH_PROFILE_H
#define FC_BENCH_PROFILE_H

#include "bench/bench.h"

#define FC_BENCH_CURVE_POINTS 9
#define FC_BENCH_SLICE_POINTS 4

/* Medians of bench->run_count runs. */
struct fc_bench_profile {
	uint32_t ssd_align_bytes;
	uint64_t ssd_transfer_bytes;                /* largest command that the store would send */
	bool is_direct;                             /* the page cache is out of the way */
	double first_write_bytes_per_s;             /* where the file was never written to */
	double read_bytes_per_s, write_bytes_per_s; /* of commands of that size, besides their fixed part */
	bool has_joint_reports;                     /* what has ended is reported when nothing is left to do */
	/* With so many bytes under way, in four commands or, where they are too large for that, more. */
	uint64_t curve_bytes[FC_BENCH_CURVE_POINTS];
	double curve_bytes_per_s[FC_BENCH_CURVE_POINTS];
	double command_s; /* 1 / IOPS, of small reads, many at once */
	double wake_s;    /* until a thread that sleeps hears of an end */
	double latency_s; /* of a small read alone, by a thread that is awake */
	double sync_s;
	double direct_command_s; /* of a thread, to send a command and hear of its end */
	double kernel_command_s; /* a small read out of the page cache */
	double kernel_copy_bytes_per_s;
	double file_open_s;
	double memcpy_bytes_per_s; /* two threads at once, or one on a machine with one processor */
	double load_bytes_per_s;   /* from memory to slots, checked: large slices, besides their fixed part */
	/* From a window that the disk has filled, processor time of loads from SSD: of a layer, and by the bytes of a
	 * slice, in batches that the device copies through the caches and in those that it copies past them. */
	double window_copy_s;
	uint64_t slice_bytes[FC_BENCH_SLICE_POINTS];
	double slice_bytes_per_s[FC_BENCH_SLICE_POINTS], large_slice_bytes_per_s[FC_BENCH_SLICE_POINTS];
	double save_bytes_per_s; /* to SSD, processor time */
	double slice_s;          /* fixed part of a slice */
	double load_s;           /* of a load, from its submission to its end in another thread */
	double copy_s;           /* of a layer */
};

FC_MUST_USE int fc_bench_profile(struct fc_bench *bench, struct fc_bench_profile *profile, struct fc_error *error);

#endif

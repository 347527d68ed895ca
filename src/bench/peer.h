/* What the store is held against: fio for the disk, a plain loop of pread() for the CPU time. */
#ifndef FC_BENCH_PEER_H
#define FC_BENCH_PEER_H

#include "bench/bench.h"

struct fc_bench_fio {
	const char *path; /* the file, kept for the next job */
	bool is_write;    /* to the end, made durable; a file that is there is removed first */
	uint64_t bytes;
	uint64_t transfer_bytes, queue_depth;
};

/* Runs `fio` with io_uring and direct I/O, sequentially. Where it is not installed the result is 0. */
int fc_bench_fio(const struct fc_bench *bench, const struct fc_bench_fio *job, double *bytes_per_s,
		 struct fc_error *error) FC_MUST_USE;

/* The ratio of a row's runs to fio's, all of them in bytes per second so far, and a note of both in GiB/s. */
void fc_bench_set_fio_ratio(struct fc_bench_row *row);

/* Makes job->path, job->bytes long, of repetitions of `memory`: set aside and then written, as an arena is. */
int fc_bench_write_file(const struct fc_bench_fio *job, const uint8_t *memory, uint64_t memory_bytes,
			struct fc_error *error) FC_MUST_USE;

/* CPU seconds that reading the file by O_DIRECT pread() of 256 KiB takes. */
int fc_bench_pread_loop(const char *path, uint64_t bytes, double *cpu_s, struct fc_error *error) FC_MUST_USE;

/* The largest command that the store would send below bench->work_dir. */
int fc_bench_transfer_bytes(const struct fc_bench *bench, uint64_t *transfer_bytes, struct fc_error *error) FC_MUST_USE;

#endif

#define _GNU_SOURCE
#include "bench/peer.h"

#include "base/check.h"
#include "host/pages.h"
#include "media/ssd.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB ((double)(1ull << 30))
#define WRITE_BYTES (8ull << 20)
#define PREAD_BYTES (256ull << 10)
#define ARGUMENT_BYTES (FC_BENCH_PATH_BYTES + 64)
#define PROBE_BYTES (1ull << 20)

/* ---- fio ---- */

/* As fast as it gets: with huge pages, which fio's own options offer only where they are reserved, a command of 4 MiB
 * reaches the disk in one piece; without, in four. FC_ENOENT when there is no such program. */
static int run_fio(char *const *arguments, struct fc_error *error)
{
	pid_t child;
	int status;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1) != 0)
		return fc_error_set(error, FC_ENOMEM, "fio: no memory for its environment");
	int failure = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failure == ENOENT)
		return fc_error_set(error, FC_ENOENT, "fio is not installed: apt-get install fio");
	if (failure != 0)
		return fc_error_set(error, FC_ESYSTEM, "fio: %s", strerror(failure));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return fc_error_set(error, FC_ESYSTEM, "fio: waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
		return fc_error_set(error, FC_ECANCELED, "fio was stopped");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fc_error_set(error, FC_ESYSTEM, "fio failed (status %d)", status);
	return FC_OK;
}

static int read_result(const char *path, bool is_write, double *bytes_per_s, struct fc_error *error)
{
	double bytes = 0, runtime_ms = 0;
	json_error_t json_error;
	json_t *root = json_load_file(path, 0, &json_error);
	json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
	json_t *side = json_object_get(job, is_write ? "write" : "read");
	bytes = json_number_value(json_object_get(side, "io_bytes"));
	runtime_ms = json_number_value(json_object_get(side, "runtime"));
	json_decref(root);
	if (!(bytes > 0))
		return fc_error_set(error, FC_EFORMAT, "fio's result names no bytes");
	*bytes_per_s = bytes * 1e3 / (runtime_ms > 0 ? runtime_ms : 1);
	return FC_OK;
}

int fc_bench_fio(const struct fc_bench *bench, const struct fc_bench_fio *job, double *bytes_per_s,
		 struct fc_error *error)
{
	char file[ARGUMENT_BYTES], size[64], block[64], depth[64], output[ARGUMENT_BYTES],
		output_path[FC_BENCH_PATH_BYTES];
	snprintf(output_path, sizeof(output_path), "%s/fio.json", bench->work_dir);
	snprintf(output, sizeof(output), "--output=%s", output_path);
	snprintf(file, sizeof(file), "--filename=%s", job->path);
	snprintf(size, sizeof(size), "--size=%llu", (unsigned long long)job->bytes);
	snprintf(block, sizeof(block), "--bs=%llu", (unsigned long long)fc_min_u64(job->transfer_bytes, job->bytes));
	snprintf(depth, sizeof(depth), "--iodepth=%llu", (unsigned long long)job->queue_depth);
	char *arguments[] = {"fio",
			     "--name=peer",
			     file,
			     size,
			     block,
			     depth,
			     job->is_write ? "--rw=write" : "--rw=read",
			     output,
			     "--output-format=json",
			     "--direct=1",
			     "--ioengine=io_uring",
			     job->is_write ? "--end_fsync=1" : "--readonly",
			     "--registerfiles=1",
			     "--fixedbufs=1",
			     NULL};
	*bytes_per_s = 0;
	if (job->is_write)
		(void)unlink(job->path);
	int code = run_fio(arguments, error);
	if (code == FC_ENOENT)
		return FC_OK;
	if (code == FC_ESYSTEM) { /* memory that may not be locked cannot be registered */
		arguments[fc_array_len(arguments) - 2] = NULL;
		code = run_fio(arguments, error);
	}
	return code == FC_OK ? read_result(output_path, job->is_write, bytes_per_s, error) : code;
}

void fc_bench_set_fio_ratio(struct fc_bench_row *row)
{
	for (uint64_t i = 0; i < row->run_count; i++) {
		row->runs[i] /= GIB;
		row->peer_runs[i] /= GIB;
	}
	fc_bench_set_ratio(row);
	double ours = fc_bench_median(row->runs, row->run_count);
	if (row->has_value)
		fc_bench_note(row, "%.2f GiB/s, fio %.2f", ours, fc_bench_median(row->peer_runs, row->run_count));
	else
		fc_bench_note(row, "%.2f GiB/s; held against nothing, fio is not installed: apt-get install fio", ours);
}

/* ---- pread ---- */

static int write_all(int fd, const struct fc_bench_fio *job, const uint8_t *memory, uint64_t memory_bytes,
		     struct fc_error *error)
{
	int failure = posix_fallocate(fd, 0, (off_t)job->bytes);
	for (uint64_t offset = 0; offset < job->bytes && failure == 0;) {
		uint64_t place = offset % memory_bytes;
		uint64_t wanted = fc_min_u64(fc_min_u64(job->bytes - offset, memory_bytes - place), WRITE_BYTES);
		ssize_t moved = pwrite(fd, memory + place, wanted, (off_t)offset);
		failure = moved > 0 ? 0 : errno;
		offset += moved > 0 ? (uint64_t)moved : 0;
	}
	if (failure == 0 && fdatasync(fd) != 0)
		failure = errno;
	return failure == 0 ? FC_OK : fc_error_set(error, FC_ESYSTEM, "%s: writing: %s", job->path, strerror(failure));
}

int fc_bench_write_file(const struct fc_bench_fio *job, const uint8_t *memory, uint64_t memory_bytes,
			struct fc_error *error)
{
	int fd = open(job->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: %s", job->path, strerror(errno));
	int code = write_all(fd, job, memory, memory_bytes, error);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(fd);
	return code;
}

static int read_all(int fd, uint8_t *buffer, uint64_t bytes, const char *path, struct fc_error *error)
{
	for (uint64_t offset = 0; offset < bytes;) {
		ssize_t moved = pread(fd, buffer, PREAD_BYTES, (off_t)offset);
		if (moved <= 0)
			return fc_error_set(error, FC_EIO, "%s: pread at %llu: %s", path, (unsigned long long)offset,
					    moved == 0 ? "end of file" : strerror(errno));
		offset += (uint64_t)moved;
	}
	return FC_OK;
}

int fc_bench_pread_loop(const char *path, uint64_t bytes, double *cpu_s, struct fc_error *error)
{
	uint8_t *buffer = fc_pages_alloc(PREAD_BYTES);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0) /* as the store does where the file system has no direct I/O */
		fd = open(path, O_RDONLY | O_CLOEXEC);
	int code = FC_OK;
	if (buffer == NULL || fd < 0)
		code = fc_error_set(error, FC_ESYSTEM, "%s: %s", path, strerror(errno));
	double start_s = fc_bench_cpu_seconds();
	if (code == FC_OK)
		code = read_all(fd, buffer, bytes, path, error);
	*cpu_s = fc_bench_cpu_seconds() - start_s;
	if (fd >= 0)
		(void)close(fd);
	fc_pages_free(buffer, PREAD_BYTES);
	return code;
}

/* ---- the command size ---- */

int fc_bench_transfer_bytes(const struct fc_bench *bench, uint64_t *transfer_bytes, struct fc_error *error)
{
	char path[FC_BENCH_PATH_BYTES];
	struct fc_media *media;
	snprintf(path, sizeof(path), "%s/probe", bench->work_dir);
	struct fc_ssd_opts opts = {.path = path, .bytes = PROBE_BYTES, .transfer_bytes = bench->store.transfer_bytes};
	int code = fc_ssd_open(&opts, &media, error);
	if (code != FC_OK)
		return code;
	*transfer_bytes = media->transfer_bytes_max;
	fc_media_close(media);
	(void)unlink(path);
	return FC_OK;
}

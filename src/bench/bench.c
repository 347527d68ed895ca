/* The frame that all measurements share: folders, pairs, medians, rows. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include "base/check.h"
#include "clock/clock.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WHOLE_SIZE_BYTES (1ull << 30)
#define FOLDERS_OPEN_MAX 16

static const struct fc_bench_measurement measurements[] = {
	{"load", "read one session from SSD", fc_bench_load},
	{"save", "write one session to SSD", fc_bench_save},
	{"interleaved", "read sessions that were written turn by turn, all at once", fc_bench_interleaved},
	{"mixed", "short loads while a long load or save is under way, in one process and in two", fc_bench_mixed},
	{"memory", "read one session from memory", fc_bench_memory},
	{"lookup", "the index: look-ups and bytes", fc_bench_lookup},
	{"open", "open a large arena, and match a long history in it", fc_bench_open},
	{"capacity", "the catalog: memory of 100 million blocks", fc_bench_capacity},
	{"churn", "the catalog: 24 hours of sessions that come and go", fc_bench_churn},
	{"full", "the catalog: making room in one that is full of what others stand on", fc_bench_full},
	{"shared", "the same through flatcaked, and how many processes it serves", fc_bench_shared},
	{"trace", "replay a recorded trace", fc_bench_trace},
};

const struct fc_bench_measurement *fc_bench_at(size_t index)
{
	return index < fc_array_len(measurements) ? &measurements[index] : NULL;
}

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

static int remove_folder(const char *path, struct fc_error *error)
{
	if (nftw(path, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS) == 0)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "%s: cannot be removed: %s", path, strerror(errno));
}

int fc_bench_run(struct fc_bench *bench, const struct fc_bench_measurement *measurement, struct fc_error *error)
{
	int length = snprintf(bench->work_dir, sizeof(bench->work_dir), "%s/flatcake-bench-XXXXXX", bench->dir);
	if (length < 0 || (size_t)length >= sizeof(bench->work_dir))
		return fc_error_set(error, FC_EINVAL, "--dir: the folder's name is too long");
	if (mkdtemp(bench->work_dir) == NULL)
		return fc_error_set(error, FC_ESYSTEM, "--dir: cannot make a folder in %s: %s", bench->dir,
				    strerror(errno));
	bench->measurement = measurement->name;
	int code = measurement->run(bench, error);
	if (code != FC_OK)
		code = fc_error_wrap(error, code, "%s", measurement->name);
	int removed = remove_folder(bench->work_dir, code == FC_OK ? error : NULL);
	return code == FC_OK ? removed : code;
}

/* ---- rows ---- */

void fc_bench_report_deinit(struct fc_bench_report *report)
{
	for (size_t i = 0; i < report->row_count; i++) {
		free(report->rows[i].runs);
		free(report->rows[i].peer_runs);
	}
	*report = (struct fc_bench_report){0};
}

struct fc_bench_row *fc_bench_add_row(struct fc_bench *bench, const struct fc_bench_row *row, bool has_peer)
{
	struct fc_bench_report *report = bench->report;
	fc_check(report->row_count < FC_BENCH_ROWS_MAX);
	struct fc_bench_row *added = &report->rows[report->row_count];
	*added = *row;
	added->run_count = bench->run_count;
	added->runs = calloc(bench->run_count, sizeof(*added->runs));
	added->peer_runs = has_peer ? calloc(bench->run_count, sizeof(*added->peer_runs)) : NULL;
	report->row_count++;
	return added->runs == NULL || (has_peer && added->peer_runs == NULL) ? NULL : added;
}

bool fc_bench_row_passes(const struct fc_bench_row *row)
{
	if (!row->has_value)
		return false;
	return row->goal == FC_BENCH_AT_LEAST ? row->value >= row->target : row->value <= row->target;
}

static int compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;
	return (*left > *right) - (*left < *right);
}

static double *sort_copy(const double *values, uint64_t count)
{
	double *sorted = malloc(count * sizeof(*sorted));
	fc_check(sorted != NULL && count > 0);
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	return sorted;
}

double fc_bench_median(const double *values, uint64_t count)
{
	double *sorted = sort_copy(values, count);
	double median = count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
	free(sorted);
	return median;
}

double fc_bench_percentile(const double *values, uint64_t count, uint64_t percent)
{
	double *sorted = sort_copy(values, count);
	double value = sorted[count * percent / 100];
	free(sorted);
	return value;
}

void fc_bench_set_median(struct fc_bench_row *row)
{
	row->value = fc_bench_median(row->runs, row->run_count);
	row->has_value = true;
}

void fc_bench_set_ratio(struct fc_bench_row *row)
{
	double *ratios = malloc(row->run_count * sizeof(*ratios));
	fc_check(ratios != NULL);
	row->has_value = true;
	for (uint64_t i = 0; i < row->run_count; i++) {
		row->has_value = row->has_value && row->peer_runs[i] > 0;
		ratios[i] = row->peer_runs[i] > 0 ? row->runs[i] / row->peer_runs[i] : 0;
	}
	row->value = row->has_value ? fc_bench_median(ratios, row->run_count) : 0;
	free(ratios);
}

void fc_bench_note(struct fc_bench_row *row, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(row->note, sizeof(row->note), format, arguments);
	va_end(arguments);
}

/* ---- runs ---- */

int fc_bench_step(struct fc_bench *bench, struct fc_error *error)
{
	if (bench->step_cb == NULL || bench->step_cb(bench->context, bench->measurement))
		return FC_OK;
	return fc_error_set(error, FC_ECANCELED, "stopped");
}

int fc_bench_pairs(struct fc_bench *bench, fc_bench_run_cb ours, fc_bench_run_cb peer, void *context,
		   struct fc_error *error)
{
	int code = FC_OK;
	for (uint64_t run = 0; run < bench->run_count && code == FC_OK; run++) {
		bool is_peer_first = run % 2 == 1;
		code = fc_bench_step(bench, error);
		if (code == FC_OK && is_peer_first && peer != NULL)
			code = peer(context, run, error);
		if (code == FC_OK)
			code = ours(context, run, error);
		if (code == FC_OK && !is_peer_first && peer != NULL)
			code = peer(context, run, error);
	}
	return code;
}

uint64_t fc_bench_scaled(const struct fc_bench *bench, uint64_t whole, uint64_t least)
{
	if (bench->size_bytes >= WHOLE_SIZE_BYTES)
		return whole;
	double scaled = (double)whole * (double)bench->size_bytes / (double)WHOLE_SIZE_BYTES;
	return fc_max_u64((uint64_t)scaled, least);
}

/* ---- time ---- */

double fc_bench_seconds(void)
{
	return (double)fc_clock_real_ns() * 1e-9;
}

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

double fc_bench_cpu_seconds(void)
{
	struct rusage usage;
	fc_check(getrusage(RUSAGE_SELF, &usage) == 0);
	return seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

/* A recorded trace, replayed by `flatcake replay` in a process of its own: how many bytes it read for those it wanted,
 * in how many segments a load lay, and how much was written for what was new. Counts, not times, so one run is enough.
 */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES 4352

struct trace_counts {
	double loads, segments_touched, bytes_wanted, bytes_read, bytes_written, bytes_new;
};

static int run_replay(const struct fc_bench *bench, const char *json_path, struct fc_error *error)
{
	char store_path[PATH_BYTES], scale[32], ssd[32], memory[32];
	pid_t child;
	int status;
	snprintf(store_path, sizeof(store_path), "%s/store", bench->work_dir);
	snprintf(scale, sizeof(scale), "%llu", (unsigned long long)bench->trace.scale);
	snprintf(ssd, sizeof(ssd), "%llu", (unsigned long long)bench->trace.ssd_bytes);
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)bench->trace.memory_bytes);
	char *arguments[] = {"flatcake",
			     "replay",
			     (char *)(uintptr_t)bench->trace.path,
			     "--dir",
			     store_path,
			     "--json",
			     (char *)(uintptr_t)json_path,
			     "--model",
			     (char *)(uintptr_t)bench->trace.model,
			     "--scale",
			     scale,
			     "--ssd",
			     ssd,
			     "--memory",
			     memory,
			     NULL};
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	int failure = posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failure != 0)
		return fc_error_set(error, FC_ESYSTEM, "flatcake replay: %s", strerror(failure));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return fc_error_set(error, FC_ESYSTEM, "flatcake replay: waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "flatcake replay failed (status %d)", status);
}

static int read_counts(const char *path, struct trace_counts *counts, struct fc_error *error)
{
	json_error_t problem;
	json_t *root = json_load_file(path, 0, &problem);
	if (root == NULL)
		return fc_error_set(error, FC_EFORMAT, "flatcake replay: its result: %s", problem.text);
	int code = json_unpack_ex(root, &problem, 0, "{s:F, s:F, s:F, s:F, s:F, s:F}", "loads", &counts->loads,
				  "segments_touched", &counts->segments_touched, "bytes_wanted", &counts->bytes_wanted,
				  "bytes_read", &counts->bytes_read, "bytes_written", &counts->bytes_written,
				  "bytes_new", &counts->bytes_new);
	json_decref(root);
	return code == 0 ? FC_OK : fc_error_set(error, FC_EFORMAT, "flatcake replay: its result: %s", problem.text);
}

static const struct fc_bench_row rows[] = {
	{.name = "trace-read", .summary = "bytes read / bytes wanted on the recorded trace", .target = 1.02},
	{.name = "trace-segments", .summary = "segments that a load lies in, on the recorded trace", .target = 6},
	{.name = "trace-written",
	 .summary = "bytes written / bytes that were new, on the recorded trace",
	 .target = 1.6},
};

static int add_rows(struct fc_bench *bench, struct fc_bench_row *added[3], struct fc_error *error)
{
	for (int i = 0; i < 3; i++) {
		struct fc_bench_row row = rows[i];
		row.unit = row.runs_unit = i == 1 ? "segments" : "ratio";
		row.goal = FC_BENCH_AT_MOST;
		added[i] = fc_bench_add_row(bench, &row, false);
		if (added[i] == NULL)
			return fc_error_set(error, FC_ENOMEM, "no memory for the result");
		added[i]->run_count = 0;
		fc_bench_note(added[i], "n/a: no --trace");
	}
	return FC_OK;
}

static void set_value(struct fc_bench_row *row, double part, double whole)
{
	if (!(whole > 0)) {
		fc_bench_note(row, "n/a: the trace loads or saves nothing");
		return;
	}
	row->run_count = 1;
	row->runs[0] = part / whole;
	row->note[0] = '\0';
	fc_bench_set_median(row);
}

int fc_bench_trace(struct fc_bench *bench, struct fc_error *error)
{
	struct fc_bench_row *added[3];
	struct trace_counts counts = {0};
	char json_path[PATH_BYTES];
	snprintf(json_path, sizeof(json_path), "%s/replay.json", bench->work_dir);
	int code = add_rows(bench, added, error);
	if (code != FC_OK || bench->trace.path == NULL)
		return code;
	code = fc_bench_step(bench, error);
	if (code == FC_OK)
		code = run_replay(bench, json_path, error);
	if (code == FC_OK)
		code = read_counts(json_path, &counts, error);
	if (code != FC_OK)
		return code;
	set_value(added[0], counts.bytes_read, counts.bytes_wanted);
	set_value(added[1], counts.segments_touched, counts.loads);
	set_value(added[2], counts.bytes_written, counts.bytes_new);
	return FC_OK;
}

/* `flatcake bench`: runs the measurements of src/bench/ and prints them as a table and as JSON. A target that is missed
 * is a result like any other: the command fails only when it could not measure. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include "base/check.h"
#include "cli/bench_profile.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/table.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t is_stopped;

static void stop(int signal_number)
{
	(void)signal_number;
	is_stopped = 1;
}

/* The first signal ends the measurements after the run under way, and what they left on disk is removed; the second
 * ends the program. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static bool show_step(void *context, const char *measurement)
{
	const char **shown = context;
	if (isatty(STDERR_FILENO) && *shown != measurement)
		fprintf(stderr, "\r\033[Kmeasuring: %s", measurement);
	*shown = measurement;
	return !is_stopped;
}

/* ---- which measurements ---- */

static bool is_wanted(const char *only, const char *name)
{
	size_t name_length = strlen(name);
	for (const char *at = only; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, name_length) == 0 && (at[name_length] == '\0' || at[name_length] == ','))
			return true;
	}
	return only == NULL;
}

static bool is_known(const char *name, size_t length)
{
	for (size_t i = 0; fc_bench_at(i) != NULL; i++)
		if (strlen(fc_bench_at(i)->name) == length && strncmp(fc_bench_at(i)->name, name, length) == 0)
			return true;
	return false;
}

static int check_names(const char *only, struct fc_error *error)
{
	for (const char *at = only; at != NULL;) {
		size_t length = strcspn(at, ",");
		char names[512] = "";
		if (!is_known(at, length)) {
			for (size_t i = 0, used = 0; fc_bench_at(i) != NULL && used < sizeof(names); i++)
				used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
							 fc_bench_at(i)->name);
			return fc_error_set(error, FC_EINVAL, "--only: unknown measurement \"%.*s\"; there are: %s",
					    (int)length, at, names);
		}
		at = at[length] == ',' ? at + length + 1 : NULL;
	}
	return FC_OK;
}

/* ---- the result ---- */

static json_t *runs_to_json(const double *runs, uint64_t count)
{
	json_t *array = json_array();
	for (uint64_t i = 0; runs != NULL && i < count; i++)
		if (json_array_append_new(array, json_real(runs[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *row_to_json(const struct fc_bench_row *row)
{
	json_t *value = row->has_value ? json_real(row->value) : json_null();
	json_t *pass = row->has_value ? json_boolean(fc_bench_row_passes(row)) : json_null();
	return json_pack("{s:s, s:o, s:s, s:s, s:f, s:o, s:s, s:o, s:o, s:s}", "name", row->name, "value", value,
			 "unit", row->unit, "goal", row->goal == FC_BENCH_AT_LEAST ? "at least" : "at most", "target",
			 row->target, "pass", pass, "runs_unit", row->runs_unit, "runs",
			 runs_to_json(row->runs, row->run_count), "peer_runs",
			 runs_to_json(row->peer_runs, row->run_count), "note", row->note);
}

static json_t *report_to_json(const struct fc_bench_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0; array != NULL && i < report->row_count; i++)
		if (json_array_append_new(array, row_to_json(&report->rows[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

/* A target that was not measured is no target that was reached: says which, the reasons stand beside them. */
static void print_unmeasured(const struct fc_bench_report *report, FILE *file)
{
	bool is_first = true;
	for (size_t i = 0; i < report->row_count; i++) {
		if (report->rows[i].has_value)
			continue;
		fprintf(file, "%s%s", is_first ? "\nnot measured, for the reasons above: " : ", ",
			report->rows[i].name);
		is_first = false;
	}
	if (!is_first)
		fputc('\n', file);
}

static int print_report(const struct fc_bench_report *report, FILE *file)
{
	struct fc_table table;
	fc_table_init(&table, "lrrlll");
	static const char *const titles[] = {"name", "value", "target", "", "what", "measured"};
	for (size_t i = 0; i < fc_array_len(titles); i++)
		fc_table_cell(&table, "%s", titles[i]);
	for (size_t i = 0; i < report->row_count; i++) {
		const struct fc_bench_row *row = &report->rows[i];
		const char *unit = strcmp(row->unit, "ratio") == 0 ? "" : row->unit;
		fc_table_cell(&table, "%s", row->name);
		if (row->has_value)
			fc_table_cell(&table, "%.4g%s%s", row->value, *unit != '\0' ? " " : "", unit);
		else
			fc_table_cell(&table, "n/a");
		fc_table_cell(&table, "%s %.4g", row->goal == FC_BENCH_AT_LEAST ? ">=" : "<=", row->target);
		fc_table_cell(&table, "%s", !row->has_value ? "" : fc_bench_row_passes(row) ? "ok" : "MISSED");
		fc_table_cell(&table, "%s", row->summary);
		fc_table_cell(&table, "%s", row->note);
	}
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	print_unmeasured(report, file);
	return code;
}

static int give_report(const struct fc_config *config, const struct fc_bench_report *report, struct fc_error *error)
{
	int code = FC_OK;
	if (!fc_json_replaces_text(config))
		code = print_report(report, stdout);
	if (code == FC_OK && config->json_path != NULL)
		code = fc_json_write(config->json_path, report_to_json(report), error);
	return code;
}

static int init_bench(struct fc_bench *bench, const struct fc_config *config, struct fc_error *error)
{
	struct fc_geometry unused;
	bench->dir = config->dir;
	bench->size_bytes = config->size_bytes;
	bench->run_count = config->run_count;
	bench->seed = config->seed;
	bench->trace.path = config->trace_path;
	bench->trace.model = config->model;
	bench->trace.scale = config->scale;
	bench->trace.ssd_bytes = config->ssd_bytes;
	bench->trace.memory_bytes = config->memory_bytes;
	return fc_config_store_opts(config, &unused, &bench->store, error);
}

/* Refuses what the measurements that were asked for do not use. */
static int check_used(const struct fc_config *config, struct fc_error *error)
{
	static const char *const stores[] = {"model", "memory", "ssd"};
	bool is_profile_alone = config->profile_path != NULL && config->only == NULL;
	bool has_trace = config->trace_path != NULL && !is_profile_alone && is_wanted(config->only, "trace");
	if (fc_config_is_flag(config, "trace") && !has_trace)
		return fc_error_set(error, FC_EINVAL, "--trace: has no effect alone; add --only with trace among them");
	if (fc_config_is_flag(config, "json") && is_profile_alone)
		return fc_error_set(error, FC_EINVAL,
				    "--json: has no effect with --profile alone; add --only with measurements");
	for (size_t i = 0; i < fc_array_len(stores); i++)
		if (fc_config_is_flag(config, stores[i]) && !has_trace && config->profile_path == NULL)
			return fc_error_set(error, FC_EINVAL, "--%s: has no effect alone; add --trace or --profile",
					    stores[i]);
	return FC_OK;
}

int fc_command_bench(const struct fc_config *config, struct fc_error *error)
{
	struct fc_bench_report report = {0};
	const char *shown = NULL;
	struct fc_bench bench = {.report = &report, .step_cb = show_step, .context = &shown};
	int code = check_names(config->only, error);
	if (code == FC_OK)
		code = check_used(config, error);
	if (code == FC_OK)
		code = init_bench(&bench, config, error);
	catch_signals();
	if (code == FC_OK && config->profile_path != NULL)
		code = fc_bench_write_profile(&bench, config, error);
	bool is_profile_alone = config->profile_path != NULL && config->only == NULL;
	for (size_t i = 0; code == FC_OK && !is_profile_alone && fc_bench_at(i) != NULL; i++)
		if (is_wanted(config->only, fc_bench_at(i)->name))
			code = fc_bench_run(&bench, fc_bench_at(i), error);
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (code == FC_OK && !is_profile_alone)
		code = give_report(config, &report, error);
	fc_bench_report_deinit(&report);
	return code;
}

/* Is the simulator right? Each workload goes through a real store on this machine's disk and through the simulation, in
 * turns; what both say is laid side by side.
 *
 *     for each workload, some runs of:   measure the machine -> replay live -> measure it again -> simulate with both
 *     value of a row                     the median of the runs, for either side
 *
 * The disk may be shared, and is not the same from one minute to the next, so the machine is measured before and after
 * each live replay, and a run's simulated value is half of both. Nothing of the result goes back into
 * the profile. bench/validate/run builds this and starts it. */
#define _GNU_SOURCE
#include "base/check.h"
#include "bench/bench.h"
#include "cli/json_file.h"
#include "cli/table.h"
#include "host/whole_file.h"
#include "replay/validation.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 99
#define WORKLOADS_MAX 16
#define WORDS_MAX 64
#define PATH_BYTES 4096
#define RECORDED_REQUESTS_MAX 320 /* a cut of a recorded trace */
#define HIT_POINTS 0.5
#define TTFT_PERCENT 10
#define GIB (1ull << 30)

struct workload {
	const char *name, *words;
	const char *generate; /* options of `flatcake gen`, with spaces; NULL: a recorded trace */
	const char *small;    /* the same for --small */
	const char *replay;   /* options of both replays */
	const char *path;     /* of the recorded trace */
};

/* The store sees nothing of the prefill's speed but time: it is chosen so that reading shows in the time to the first
 * token. At these rates few requests meet, and the order of events is determined; where none is given, the streams are
 * always busy, and it is not. */
static const struct workload generated[] = {
	{"agent", "agent sessions, 3 requests/s", "--sessions 8 --turns 12 --length 0.5 --seed 5",
	 "--sessions 2 --turns 3 --length 0.05 --seed 5",
	 "--scale 4 --ssd 8GiB --memory 64MiB --rate 3 --prefill 200000", NULL},
	{"chat", "short sessions, 12 requests/s", "--sessions 90 --turns 3 --length 0.1 --seed 6",
	 "--sessions 4 --turns 2 --length 0.02 --seed 6",
	 "--scale 1 --ssd 8GiB --memory 512MiB --agent-context 16384 --rate 12 --prefill 100000", NULL},
	{"long", "long sessions, nothing kept in memory, 3 requests/s", "--sessions 6 --turns 30 --length 1 --seed 7",
	 "--sessions 1 --turns 4 --length 0.05 --seed 7", "--scale 8 --ssd 8GiB --memory 0 --rate 3 --prefill 400000",
	 NULL},
	{"busy", "agent sessions, as fast as they are taken", "--sessions 8 --turns 12 --length 0.5 --seed 5",
	 "--sessions 2 --turns 3 --length 0.05 --seed 5", "--scale 4 --ssd 8GiB --memory 64MiB --prefill 200000", NULL},
};

/* Requests of a recorded trace are larger and come in bursts. */
static const char *const recorded_replay = "--scale 16 --ssd 8GiB --memory 64MiB --rate 8 --prefill 400000";

/* Of the machine, before a live replay and after it, in turns. */
#define PROFILES 2
static const char *const profiles[PROFILES] = {"measured-0.yaml", "measured-1.yaml"};

/* What is compared, and where the two results have it. */
static const struct measure {
	const char *what, *unit;
	const char *live, *simulated; /* keys, the second one below a dot */
	double times;
	bool is_in_points, has_allowed;
	double allowed;
} measures[] = {
	{"delivered hit rate", "%", "delivered_blocks", "delivered_blocks", 100, true, true, HIT_POINTS},
	{"read commands", "", "read_commands", "read_commands", 1, false, true, 0},
	{"mean TTFT", "ms", "ttft_ms.mean", "ttft_ms.mean", 1, false, true, TTFT_PERCENT},
	{"p99 TTFT", "ms", "ttft_ms.p99", "ttft_ms.p99", 1, false, true, TTFT_PERCENT},
	{"of it reading, mean", "ms", "ttft_parts_ms.read.mean", "ttft_parts_ms.read.mean", 1, false, false, 0},
};
#define MEASURES fc_array_len(measures)

struct validate {
	const char *program, *hardware, *json_path, *only;
	char dir[PATH_BYTES];
	uint64_t runs;
	bool is_small;
	struct workload workloads[WORKLOADS_MAX];
	size_t workload_count;
	struct fc_validation validation;
	struct fc_error error;
};

/* ---- programs ---- */

struct words {
	char text[2 * PATH_BYTES];
	size_t used;
	char *list[WORDS_MAX + 1];
	size_t count;
};

/* Words with spaces between them. */
static void add_words(struct words *words, const char *text)
{
	size_t length = strlen(text);
	fc_check(words->used + length + 1 <= sizeof(words->text));
	char *copy = memcpy(words->text + words->used, text, length + 1);
	words->used += length + 1;
	for (char *word; (word = strsep(&copy, " ")) != NULL;) {
		fc_check(words->count < WORDS_MAX);
		words->list[words->count++] = word;
	}
}

/* One word, spaces and all. */
static void add_word(struct words *words, const char *text)
{
	size_t length = strlen(text);
	fc_check(words->used + length + 1 <= sizeof(words->text) && words->count < WORDS_MAX);
	words->list[words->count++] = memcpy(words->text + words->used, text, length + 1);
	words->used += length + 1;
}

/* Runs the program; what it prints for people is not wanted, its complaints are. */
static int run_program(struct validate *validate, struct words *words)
{
	pid_t child;
	int status;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	int failure = posix_spawn(&child, validate->program, &actions, NULL, words->list, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failure != 0)
		return fc_error_set(&validate->error, FC_ESYSTEM, "%.200s: %s", validate->program, strerror(failure));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return fc_error_set(&validate->error, FC_ESYSTEM, "waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return FC_OK;
	return fc_error_set(&validate->error, FC_ESYSTEM, "`flatcake %s` failed", words->list[1]);
}

static const char *path_of(const struct validate *validate, const char *name, char path[PATH_BYTES])
{
	int length = snprintf(path, PATH_BYTES, "%s/%s", validate->dir, name);
	fc_check(length > 0 && length < PATH_BYTES); /* main() has left room for the names */
	return path;
}

static void begin(const struct validate *validate, struct words *words, const char *command)
{
	*words = (struct words){.count = 0};
	add_word(words, validate->program);
	add_words(words, command);
}

static void add_path(const struct validate *validate, struct words *words, const char *option, const char *name)
{
	char path[PATH_BYTES];
	add_word(words, option);
	add_word(words, path_of(validate, name, path));
}

/* ---- results ---- */

static int load_result(struct validate *validate, const char *name, json_t **root)
{
	char path[PATH_BYTES];
	json_error_t fault;
	*root = json_load_file(path_of(validate, name, path), 0, &fault);
	if (*root == NULL)
		return fc_error_set(&validate->error, FC_EFORMAT, "%.200s:%d: %.100s", path, fault.line, fault.text);
	return FC_OK;
}

/* `keys` with dots between them; null and missing ones are 0. */
static double number_at(const json_t *object, const char *keys)
{
	char copy[128];
	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *rest = copy, *key; object != NULL && (key = strsep(&rest, ".")) != NULL;)
		object = json_object_get(object, key);
	return json_number_value(object);
}

static double value_of(const struct measure *measure, const json_t *result, const char *keys)
{
	double value = number_at(result, keys), blocks = number_at(result, "blocks");
	if (!measure->is_in_points)
		return value * measure->times;
	return blocks > 0 ? value / blocks * measure->times : 0;
}

/* ---- one run ---- */

static int measure_machine(struct validate *validate, const char *profile)
{
	struct words words;
	if (validate->hardware != NULL)
		return FC_OK;
	begin(validate, &words, validate->is_small ? "bench --force --runs 1 --size 1MiB" : "bench --force --runs 3");
	add_path(validate, &words, "--dir", ".");
	add_path(validate, &words, "--profile", profile);
	return run_program(validate, &words);
}

static void add_trace(const struct validate *validate, struct words *words, const struct workload *workload,
		      uint64_t sessions)
{
	char path[PATH_BYTES], count[32];
	if (workload->path == NULL) {
		add_word(words, path_of(validate, "trace.tar", path));
		return;
	}
	snprintf(count, sizeof(count), "--sessions=%llu", (unsigned long long)sessions);
	add_word(words, count);
	add_word(words, workload->path);
}

static void remove_store(const struct validate *validate)
{
	char path[PATH_BYTES];
	(void)unlink(path_of(validate, "store/ssd.arena", path));
	(void)rmdir(path_of(validate, "store", path));
}

static int replay_live(struct validate *validate, const struct workload *workload, uint64_t sessions)
{
	struct words words;
	begin(validate, &words, "replay --check off");
	add_words(&words, workload->replay);
	add_path(validate, &words, "--dir", "store");
	add_path(validate, &words, "--json", "live.json");
	add_trace(validate, &words, workload, sessions);
	remove_store(validate);
	int code = run_program(validate, &words);
	remove_store(validate);
	return code;
}

static int replay_simulated(struct validate *validate, const struct workload *workload, uint64_t sessions,
			    const char *profile)
{
	struct words words;
	begin(validate, &words, "replay --simulate --policy flat --set flat.granules=off");
	add_words(&words, workload->replay);
	if (validate->hardware != NULL) {
		add_word(&words, "--hardware");
		add_word(&words, validate->hardware);
	} else {
		add_path(validate, &words, "--hardware", profile);
	}
	add_path(validate, &words, "--json", "simulated.json");
	add_trace(validate, &words, workload, sessions);
	return run_program(validate, &words);
}

/* A live run, and what is simulated with the machine as it was measured before it and after it: half of both. */
struct values {
	double live[MEASURES][RUNS_MAX], simulated[MEASURES][RUNS_MAX];
};

static int note_live(struct validate *validate, struct values *values, uint64_t run, double *requests)
{
	json_t *live = NULL;
	int code = load_result(validate, "live.json", &live);
	for (size_t i = 0; i < MEASURES && code == FC_OK; i++) {
		values->live[i][run] = value_of(&measures[i], live, measures[i].live);
		values->simulated[i][run] = 0;
	}
	*requests = number_at(live, "requests");
	json_decref(live);
	return code;
}

static int note_simulated(struct validate *validate, struct values *values, uint64_t run, double requests)
{
	json_t *simulated = NULL;
	int code = load_result(validate, "simulated.json", &simulated);
	const json_t *simulated_run = json_array_get(json_object_get(simulated, "runs"), 0);
	for (size_t i = 0; i < MEASURES && code == FC_OK; i++)
		values->simulated[i][run] += value_of(&measures[i], simulated_run, measures[i].simulated) / PROFILES;
	if (code == FC_OK && requests != number_at(simulated_run, "requests"))
		code = fc_error_set(&validate->error, FC_EFORMAT, "live and simulated replay had other requests");
	json_decref(simulated);
	return code;
}

/* ---- a workload ---- */

static int generate(struct validate *validate, const struct workload *workload)
{
	struct words words;
	begin(validate, &words, "gen --force");
	add_words(&words, validate->is_small ? workload->small : workload->generate);
	add_path(validate, &words, "--output", "trace.tar");
	return run_program(validate, &words);
}

/* So many sessions of a recorded trace that they have about RECORDED_REQUESTS_MAX requests at most. */
static int choose_sessions(struct validate *validate, const struct workload *workload, uint64_t *sessions)
{
	int code = FC_OK;
	double requests = INFINITY;
	for (*sessions = 2 * RECORDED_REQUESTS_MAX; code == FC_OK && requests > RECORDED_REQUESTS_MAX;) {
		json_t *root = NULL;
		*sessions = *sessions > 1 ? *sessions / 2 : 0;
		if (*sessions == 0)
			return fc_error_set(&validate->error, FC_ELIMIT,
					    "%.200s: one session has more than %d requests", workload->path,
					    RECORDED_REQUESTS_MAX);
		code = replay_simulated(validate, workload, *sessions, profiles[0]);
		if (code == FC_OK)
			code = load_result(validate, "simulated.json", &root);
		requests = number_at(root, "requests");
		json_decref(root);
	}
	return code;
}

static void add_rows(struct validate *validate, const struct workload *workload, const struct values *values)
{
	struct fc_validation *validation = &validate->validation;
	for (size_t i = 0; i < MEASURES; i++) {
		fc_check(validation->row_count < FC_VALIDATION_ROWS_MAX);
		struct fc_validation_row *row = &validation->rows[validation->row_count++];
		snprintf(row->workload, sizeof(row->workload), "%s: %s", workload->name, workload->words);
		snprintf(row->what, sizeof(row->what), "%s", measures[i].what);
		snprintf(row->unit, sizeof(row->unit), "%s", measures[i].unit);
		row->live = fc_bench_median(values->live[i], validate->runs);
		row->simulated = fc_bench_median(values->simulated[i], validate->runs);
		row->is_in_points = measures[i].is_in_points;
		fc_validation_set_spread(row, values->live[i], validate->runs);
		row->has_allowed = measures[i].has_allowed;
		row->allowed = measures[i].allowed;
	}
}

/* The machine has been measured, and is again: the next run's `before`. */
static int run_once(struct validate *validate, const struct workload *workload, uint64_t sessions,
		    struct values *values, uint64_t run)
{
	double requests = 0;
	int code = replay_live(validate, workload, sessions);
	if (code == FC_OK)
		code = note_live(validate, values, run, &requests);
	if (code == FC_OK)
		code = measure_machine(validate, profiles[(run + 1) % PROFILES]);
	for (int i = 0; i < PROFILES && code == FC_OK; i++) {
		code = replay_simulated(validate, workload, sessions, profiles[i]);
		if (code == FC_OK)
			code = note_simulated(validate, values, run, requests);
	}
	return code;
}

static int run_workload(struct validate *validate, const struct workload *workload)
{
	struct values values;
	uint64_t sessions = 0;
	int code = measure_machine(validate, profiles[0]);
	if (code == FC_OK)
		code = workload->path == NULL ? generate(validate, workload)
					      : choose_sessions(validate, workload, &sessions);
	for (uint64_t run = 0; run < validate->runs && code == FC_OK; run++) {
		fprintf(stderr, "%s, run %llu of %llu\n", workload->name, (unsigned long long)run + 1,
			(unsigned long long)validate->runs);
		code = run_once(validate, workload, sessions, &values, run);
	}
	if (code == FC_OK)
		add_rows(validate, workload, &values);
	return code;
}

static bool is_wanted(const struct validate *validate, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = validate->only; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && (at[length] == '\0' || at[length] == ','))
			return true;
	}
	return validate->only == NULL;
}

/* ---- the machine in words ---- */

static void find_processor(char name[128])
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "re");
	snprintf(name, 128, "unknown");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *value = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || value == NULL)
			continue;
		snprintf(name, 128, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
		break;
	}
	if (file != NULL)
		(void)fclose(file);
}

static void describe(struct fc_validation *validation)
{
	char processor[128];
	time_t now = time(NULL);
	struct tm local;
	find_processor(processor);
	snprintf(validation->machine, sizeof(validation->machine),
		 "%ld processors (%s), %.1f GiB of memory, no GPU: the \"device\" is host memory",
		 sysconf(_SC_NPROCESSORS_ONLN), processor,
		 (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (double)GIB);
	if (localtime_r(&now, &local) == NULL ||
	    strftime(validation->date, sizeof(validation->date), "%Y-%m-%d", &local) == 0)
		snprintf(validation->date, sizeof(validation->date), "unknown");
}

/* ---- the whole ---- */

static int print_table(const struct fc_validation *validation)
{
	struct fc_table table;
	fc_table_init(&table, "llrrrrrl");
	for (size_t column = 0; column < FC_VALIDATION_COLUMNS; column++)
		fc_table_cell(&table, "%s", fc_validation_headings[column]);
	for (size_t i = 0; i < validation->row_count; i++) {
		char cells[FC_VALIDATION_COLUMNS][FC_VALIDATION_TEXT_BYTES];
		fc_validation_cells(&validation->rows[i], cells);
		for (size_t column = 0; column < FC_VALIDATION_COLUMNS; column++)
			fc_table_cell(&table, "%s", cells[column]);
	}
	int code = fc_table_print(&table, stdout);
	fc_table_deinit(&table);
	return code;
}

static int run_all(struct validate *validate)
{
	struct fc_validation *validation = &validate->validation;
	int code = FC_OK;
	validation->runs = validate->runs;
	describe(validation);
	for (size_t i = 0; i < validate->workload_count && code == FC_OK; i++)
		if (is_wanted(validate, validate->workloads[i].name))
			code = run_workload(validate, &validate->workloads[i]);
	if (code != FC_OK)
		return code;
	printf("%s; %s; medians of %llu runs\n\n", validation->date, validation->machine,
	       (unsigned long long)validation->runs);
	code = print_table(validation);
	if (code == FC_OK && validate->json_path != NULL)
		code = fc_json_write(validate->json_path, fc_validation_json(validation), &validate->error);
	return code;
}

static int add_recorded(struct validate *validate, const char *path)
{
	const char *name = strrchr(path, '/');
	if (access(path, R_OK) != 0)
		return fc_error_set(&validate->error, FC_ENOENT, "%.200s: %s", path, strerror(errno));
	if (validate->workload_count == WORKLOADS_MAX)
		return fc_error_set(&validate->error, FC_ELIMIT, "more than %d workloads", WORKLOADS_MAX);
	validate->workloads[validate->workload_count++] = (struct workload){
		.name = name == NULL ? path : name + 1,
		.words = "recorded, the first sessions, 8 requests/s",
		.replay = recorded_replay,
		.path = path,
	};
	return FC_OK;
}

static int read_runs(struct validate *validate, const char *text)
{
	char *end;
	errno = 0;
	unsigned long long runs = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || runs < 1 || runs > RUNS_MAX)
		return fc_error_set(&validate->error, FC_EINVAL, "--runs: \"%.80s\" does not fit; 1 to %d are allowed",
				    text, RUNS_MAX);
	validate->runs = runs;
	return FC_OK;
}

static int check_only(struct validate *validate)
{
	for (const char *at = validate->only; at != NULL;) {
		size_t length = strcspn(at, ","), i = 0;
		while (i < validate->workload_count && (strncmp(validate->workloads[i].name, at, length) != 0 ||
							validate->workloads[i].name[length] != '\0'))
			i++;
		if (i == validate->workload_count)
			return fc_error_set(
				&validate->error, FC_EINVAL,
				"--only: there is no workload \"%.*s\"; agent, chat, long, busy and the file "
				"names of recorded traces are allowed",
				(int)fc_min_u64(length, 80), at);
		at = at[length] == ',' ? at + length + 1 : NULL;
	}
	return FC_OK;
}

static int read_option(struct validate *validate, const char *name, const char *value)
{
	if (strcmp(name, "--runs") == 0)
		return read_runs(validate, value);
	if (strcmp(name, "--json") == 0)
		validate->json_path = value;
	else if (strcmp(name, "--hardware") == 0)
		validate->hardware = value;
	else if (strcmp(name, "--only") == 0)
		validate->only = value;
	else if (strcmp(name, "--dir") == 0 && strlen(value) < PATH_BYTES - 64)
		snprintf(validate->dir, sizeof(validate->dir), "%s", value);
	else
		return fc_error_set(&validate->error, FC_EINVAL,
				    "unknown option %.80s; --json FILE, --hardware PROFILE, --dir FOLDER, --runs N, "
				    "--only NAMES and --small are allowed",
				    name);
	return FC_OK;
}

static int read_arguments(struct validate *validate, int count, char **arguments)
{
	int code = FC_OK;
	for (size_t i = 0; i < fc_array_len(generated); i++)
		validate->workloads[validate->workload_count++] = generated[i];
	for (int i = 1; i < count && code == FC_OK; i++) {
		const char *argument = arguments[i];
		if (strcmp(argument, "--small") == 0)
			validate->is_small = true;
		else if (argument[0] != '-')
			code = add_recorded(validate, argument);
		else if (i + 1 == count)
			code = fc_error_set(&validate->error, FC_EINVAL, "%.80s: a value is missing", argument);
		else
			code = read_option(validate, argument, arguments[++i]);
	}
	return code == FC_OK ? check_only(validate) : code;
}

int main(int count, char **arguments)
{
	static struct validate validate = {.dir = "build/validate", .runs = 3};
	validate.program = getenv("FLATCAKE");
	int code = read_arguments(&validate, count, arguments);
	if (code == FC_OK && validate.program == NULL)
		code = fc_error_set(&validate.error, FC_EINVAL, "FLATCAKE: the program's path is missing");
	if (code != FC_OK) {
		fprintf(stderr, "bench/validate: %s\n", validate.error.text);
		return 2;
	}
	if (mkdir(validate.dir, 0700) != 0 && errno != EEXIST)
		code = fc_error_set(&validate.error, FC_ESYSTEM, "--dir: %.200s: %s", validate.dir, strerror(errno));
	if (code == FC_OK)
		code = run_all(&validate);
	if (code == FC_OK)
		return 0;
	fprintf(stderr, "bench/validate: %s\n", validate.error.text);
	return 1;
}

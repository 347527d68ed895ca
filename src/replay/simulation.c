#include "replay/simulation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 4096
#define MEMORY_BYTES_MAX (256ull << 40)

/* ---- what is to be run ---- */

static int unknown_policy(const char *name, struct fc_error *error)
{
	char names[FC_ERROR_TEXT_BYTES / 2];
	size_t used = 0;
	for (size_t i = 0; fc_policy_at(i) != NULL; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : ", ",
					 fc_policy_at(i)->name);
	fc_check(used < sizeof(names));
	return fc_error_set(error, FC_EINVAL, "--policy: there is no \"%.80s\"; there are %s, and all", name, names);
}

/* Appends the policies that `text` names to `types`; returns how many, or an error. */
static int list_policies(const char *text, const struct fc_policy_type *types[RUNS_MAX], size_t *count,
			 struct fc_error *error)
{
	char copy[1024];
	*count = 0;
	if (strlen(text) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--policy: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	for (char *rest = copy, *name; (name = strsep(&rest, ",")) != NULL;) {
		bool is_all = strcmp(name, "all") == 0;
		const struct fc_policy_type *type = fc_policy_find(name, strlen(name));
		if (type == NULL && !is_all)
			return unknown_policy(name, error);
		if (!is_all)
			types[(*count)++] = type;
		for (size_t i = 0; is_all && fc_policy_at(i) != NULL; i++)
			types[(*count)++] = fc_policy_at(i);
	}
	return FC_OK;
}

static int read_rate(const char *text, double *rate_per_s, struct fc_error *error)
{
	static const struct fc_option rate = {
		.name = "rates", .type = FC_OPTION_RATE, .ratio_min = 0.001, .ratio_max = 1e6};
	return fc_option_set_in(&rate, text, rate_per_s, "--rates", error);
}

static int list_rates(const struct fc_config *config, double rates[RUNS_MAX], size_t *count, struct fc_error *error)
{
	char copy[1024];
	rates[0] = config->rate_per_s;
	*count = 1;
	if (config->rates == NULL)
		return FC_OK;
	if (strlen(config->rates) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--rates: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, config->rates);
	*count = 0;
	int code = FC_OK;
	for (char *rest = copy, *word; code == FC_OK && (word = strsep(&rest, ",")) != NULL;)
		code = read_rate(word, &rates[(*count)++], error);
	return code;
}

static int read_memory(const char *text, uint64_t *bytes, struct fc_error *error)
{
	static const struct fc_option memory = {.name = "memories", .type = FC_OPTION_SIZE, .max = MEMORY_BYTES_MAX};
	return fc_option_set_in(&memory, text, bytes, "--memories", error);
}

static int list_memories(const struct fc_simulation_opts *opts, uint64_t memories[RUNS_MAX], size_t *count,
			 struct fc_error *error)
{
	char copy[1024];
	memories[0] = opts->memory_bytes;
	*count = 1;
	if (opts->config->memories == NULL)
		return FC_OK;
	if (strlen(opts->config->memories) >= sizeof(copy))
		return fc_error_set(error, FC_EINVAL, "--memories: more than %zu characters", sizeof(copy) - 1);
	strcpy(copy, opts->config->memories);
	*count = 0;
	int code = FC_OK;
	for (char *rest = copy, *word; code == FC_OK && (word = strsep(&rest, ",")) != NULL;)
		code = read_memory(word, &memories[(*count)++], error);
	return code;
}

int fc_simulation_init_runs(struct fc_simulation *simulation, const struct fc_simulation_opts *opts,
			    const struct fc_simulated *model, size_t count, struct fc_error *error)
{
	*simulation = (struct fc_simulation){.opts = *opts, .policy_count = count, .rate_count = 1};
	simulation->runs = calloc(count, sizeof(*simulation->runs));
	void *shared = mmap(NULL, count * sizeof(struct fc_outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	simulation->run_count = count;
	simulation->outcomes = shared == MAP_FAILED ? NULL : shared;
	if (simulation->runs == NULL || simulation->outcomes == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu runs", count);
	for (size_t i = 0; i < count; i++) {
		simulation->runs[i] = *model;
		simulation->runs[i].outcome = &simulation->outcomes[i];
	}
	return FC_OK;
}

/* Settings are read where they are used; here only so that a mistake is known before anything runs. */
static int check_settings(const struct fc_simulation *simulation, struct fc_error *error)
{
	for (size_t i = 0; i < simulation->run_count; i++) {
		const struct fc_policy_type *type = simulation->runs[i].policy;
		void *settings = calloc(1, type->settings_bytes + 1);
		if (settings == NULL)
			return fc_error_set(error, FC_ENOMEM, "no memory for settings");
		int code = fc_policy_settings(type, simulation->opts.config->policy_settings, settings, error);
		free(settings);
		if (code != FC_OK)
			return code;
	}
	return FC_OK;
}

int fc_simulation_init(struct fc_simulation *simulation, const struct fc_simulation_opts *opts, struct fc_error *error)
{
	const struct fc_policy_type *types[RUNS_MAX];
	double rates[RUNS_MAX];
	uint64_t memories[RUNS_MAX];
	size_t type_count, rate_count, memory_count;
	struct fc_simulated model = {.trace = opts->trace, .config = opts->config, .ssd_bytes = opts->ssd_bytes};
	*simulation = (struct fc_simulation){.opts = *opts};
	int code = list_policies(opts->config->policies, types, &type_count, error);
	if (code == FC_OK)
		code = list_rates(opts->config, rates, &rate_count, error);
	if (code == FC_OK)
		code = list_memories(opts, memories, &memory_count, error);
	if (code == FC_OK && type_count * rate_count * memory_count > RUNS_MAX)
		code = fc_error_set(error, FC_EINVAL, "%zu policies at %zu rates with %zu memories: at most %d runs",
				    type_count, rate_count, memory_count, RUNS_MAX);
	if (code == FC_OK)
		code = fc_simulation_init_runs(simulation, opts, &model, type_count * rate_count * memory_count, error);
	if (code != FC_OK)
		return code;
	simulation->policy_count = type_count;
	simulation->rate_count = rate_count;
	for (size_t i = 0; i < simulation->run_count; i++) {
		simulation->runs[i].policy = types[i % type_count];
		simulation->runs[i].rate_per_s = rates[i / type_count % rate_count];
		simulation->runs[i].memory_bytes = memories[i / type_count / rate_count];
	}
	return check_settings(simulation, error);
}

void fc_simulation_deinit(struct fc_simulation *simulation)
{
	if (simulation->outcomes != NULL)
		fc_check(munmap(simulation->outcomes, simulation->run_count * sizeof(struct fc_outcome)) == 0);
	for (size_t i = 0; i < simulation->table_count; i++)
		fc_path_table_deinit(&simulation->tables[i]);
	free(simulation->tables);
	free(simulation->runs);
	*simulation = (struct fc_simulation){0};
}

/* ---- running ---- */

static uint64_t real_now_ns(void)
{
	struct fc_clock clock = fc_clock_real();
	return fc_clock_now_ns(&clock);
}

static void run_one(const struct fc_simulation *simulation, const struct fc_simulated *run)
{
	struct fc_error error = {0};
	uint64_t start_ns = real_now_ns();
	struct fc_engine_opts opts = {
		.trace = run->trace,
		.paths = run->paths,
		.geometry = simulation->opts.geometry,
		.hardware = simulation->opts.hardware,
		.config = run->config,
		.policy = run->policy,
		.settings = run->config->policy_settings,
		.memory_bytes = run->memory_bytes,
		.ssd_bytes = run->ssd_bytes,
		.rate_per_s = run->rate_per_s,
	};
	if (fc_engine_run(&opts, run->outcome, &error) != FC_OK)
		run->outcome->error = error;
	run->outcome->real_ns = real_now_ns() - start_ns;
}

/* The child writes its outcome where the parent reads it, and leaves without the parent's clean-ups. */
static pid_t start_one(const struct fc_simulation *simulation, size_t index)
{
	simulation->runs[index].outcome->error.code = FC_ESYSTEM; /* unless it says otherwise */
	pid_t parent = getpid(), child = fork();
	if (child != 0)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	run_one(simulation, &simulation->runs[index]);
	_exit(0);
}

static void note_end(const struct fc_simulated *run, int status)
{
	struct fc_error *error = &run->outcome->error;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	fc_error_set(error, FC_ESYSTEM, "the run ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
		     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int first_error(const struct fc_simulation *simulation, struct fc_error *error)
{
	for (size_t i = 0; i < simulation->run_count; i++) {
		const struct fc_simulated *run = &simulation->runs[i];
		if (run->outcome->error.code != FC_OK)
			return fc_error_set(error, run->outcome->error.code, "%s: %.400s", run->policy->name,
					    run->outcome->error.text);
	}
	return FC_OK;
}

/* Blocks are hashed and numbered once for all runs of a trace. */
static int make_tables(struct fc_simulation *simulation, struct fc_error *error)
{
	simulation->tables = calloc(simulation->run_count, sizeof(*simulation->tables));
	int code = simulation->tables == NULL ? FC_ENOMEM : FC_OK;
	for (size_t i = 0; i < simulation->run_count && code == FC_OK; i++) {
		struct fc_simulated *run = &simulation->runs[i];
		size_t at = 0;
		while (at < simulation->table_count && simulation->tables[at].trace != run->trace)
			at++;
		run->paths = &simulation->tables[at];
		if (at < simulation->table_count)
			continue;
		simulation->table_count++;
		code = fc_path_table_init(&simulation->tables[at], run->trace, simulation->opts.geometry->name);
	}
	return code == FC_OK ? code : fc_error_set(error, code, "the paths of a trace: %s", fc_code_text(code));
}

static int run_all(struct fc_simulation *simulation, struct fc_error *error)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t asked = simulation->opts.config->job_count;
	uint64_t jobs = asked > 0 ? asked : cores > 0 ? (uint64_t)cores : 1;
	pid_t *children = calloc(simulation->run_count, sizeof(*children));
	size_t next = 0, running = 0, done = 0;
	if (children == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu runs", simulation->run_count);
	int code = FC_OK;
	while (done < simulation->run_count && code == FC_OK) {
		for (; next < simulation->run_count && running < jobs && code == FC_OK; next++, running++) {
			children[next] = start_one(simulation, next);
			if (children[next] < 0)
				code = fc_error_set(error, FC_ESYSTEM, "fork: %s", strerror(errno));
		}
		int status = 0;
		pid_t ended = code == FC_OK ? wait(&status) : -1;
		for (size_t i = 0; i < next && ended > 0; i++) {
			if (children[i] != ended)
				continue;
			note_end(&simulation->runs[i], status);
			running--;
			done++;
			if (simulation->opts.progress_cb != NULL)
				simulation->opts.progress_cb(simulation->opts.context, done);
		}
		if (ended < 0 && errno != EINTR && code == FC_OK)
			code = fc_error_set(error, FC_ESYSTEM, "wait: %s", strerror(errno));
	}
	free(children);
	return code == FC_OK ? first_error(simulation, error) : code;
}

int fc_simulation_run(struct fc_simulation *simulation, struct fc_error *error)
{
	int code = make_tables(simulation, error);
	return code == FC_OK ? run_all(simulation, error) : code;
}

#include "replay/simulation.h"

#include "replay/jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX FC_POLICIES_MAX
#define MEMORY_BYTES_MAX (256ull << 40)

/* ---- what is to be run ---- */

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
	for (char *rest = copy, *word; code == FC_OK && (word = strsep(&rest, ",")) != NULL; (*count)++) {
		code = read_rate(word, &rates[*count], error);
		for (size_t i = 0; i < *count && code == FC_OK; i++)
			if (!(rates[i] < rates[*count]) && !(rates[i] > rates[*count]))
				code = fc_error_set(error, FC_EINVAL, "--rates: %s stands twice; allowed: once", word);
	}
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
	for (char *rest = copy, *word; code == FC_OK && (word = strsep(&rest, ",")) != NULL; (*count)++) {
		code = read_memory(word, &memories[*count], error);
		for (size_t i = 0; i < *count && code == FC_OK; i++)
			if (memories[i] == memories[*count])
				code = fc_error_set(error, FC_EINVAL, "--memories: %s stands twice; allowed: once",
						    word);
	}
	return code;
}

int fc_simulation_want_maps(struct fc_simulation *simulation)
{
	size_t count = simulation->policy_count;
	struct fc_simulated *last = simulation->runs + simulation->run_count - count;
	simulation->maps = fc_jobs_alloc(count * FC_MAP_MOMENTS * sizeof(*simulation->maps));
	if (simulation->maps == NULL)
		return FC_ENOMEM;
	simulation->map_count = count * FC_MAP_MOMENTS;
	for (size_t i = 0; i < count; i++)
		last[i].maps = &simulation->maps[i * FC_MAP_MOMENTS];
	return FC_OK;
}

int fc_simulation_init_runs(struct fc_simulation *simulation, const struct fc_simulation_opts *opts,
			    const struct fc_simulated *model, size_t count, struct fc_error *error)
{
	*simulation = (struct fc_simulation){.opts = *opts, .policy_count = count, .rate_count = 1};
	simulation->runs = calloc(count, sizeof(*simulation->runs));
	simulation->run_count = count;
	simulation->outcomes = fc_jobs_alloc(count * sizeof(struct fc_outcome));
	if (simulation->runs == NULL || simulation->outcomes == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu runs", count);
	for (size_t i = 0; i < count; i++) {
		simulation->runs[i] = *model;
		simulation->runs[i].outcome = &simulation->outcomes[i];
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
	int code = fc_policy_list(opts->config->policies, types, &type_count, error);
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
	code = fc_policy_check_settings(opts->config->policy_settings, error);
	if (code == FC_OK && fc_config_is_flag(opts->config, "set"))
		code = fc_policy_check_used(opts->config->policy_settings, types, type_count, error);
	return code;
}

void fc_simulation_deinit(struct fc_simulation *simulation)
{
	fc_jobs_free(simulation->outcomes, simulation->run_count * sizeof(struct fc_outcome));
	fc_jobs_free(simulation->maps, simulation->map_count * sizeof(*simulation->maps));
	for (size_t i = 0; i < simulation->table_count; i++)
		fc_path_table_deinit(&simulation->tables[i]);
	free(simulation->tables);
	free(simulation->runs);
	*simulation = (struct fc_simulation){0};
}

/* ---- running ---- */

static void run_one(const struct fc_simulation *simulation, const struct fc_simulated *run)
{
	struct fc_error error = {0};
	uint64_t start_ns = fc_clock_real_ns();
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
		.maps = run->maps,
	};
	if (fc_engine_run(&opts, run->outcome, &error) != FC_OK)
		run->outcome->error = error;
	run->outcome->real_ns = fc_clock_real_ns() - start_ns;
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

/* ---- all of them ---- */

struct running {
	struct fc_simulation *simulation;
	uint64_t done;
};

static void run_job(void *context, size_t job)
{
	const struct fc_simulation *simulation = ((struct running *)context)->simulation;
	run_one(simulation, &simulation->runs[job]);
}

static void on_job_ended(void *context, size_t job, const struct fc_error *error)
{
	struct running *running = context;
	struct fc_simulation *simulation = running->simulation;
	if (error->code != FC_OK)
		simulation->runs[job].outcome->error = *error;
	running->done++;
	if (simulation->opts.progress_cb != NULL)
		simulation->opts.progress_cb(simulation->opts.context, running->done);
}

/* What a run takes, beside the others. */
static double work_of(const struct fc_simulated *run)
{
	return (double)run->policy->work * (double)run->trace->reference_count;
}

struct place {
	double work;
	size_t run;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *first = a, *second = b;
	if (first->work != second->work)
		return first->work > second->work ? -1 : 1;
	return first->run < second->run ? -1 : 1;
}

/* The longest run begins first, so that no core is left waiting for one that began last. */
static int order_runs(const struct fc_simulation *simulation, size_t *order)
{
	struct place *places = calloc(simulation->run_count + 1, sizeof(*places));
	if (places == NULL)
		return FC_ENOMEM;
	for (size_t i = 0; i < simulation->run_count; i++)
		places[i] = (struct place){work_of(&simulation->runs[i]), i};
	qsort(places, simulation->run_count, sizeof(*places), compare_places);
	for (size_t i = 0; i < simulation->run_count; i++)
		order[i] = places[i].run;
	free(places);
	return FC_OK;
}

static int run_all(struct fc_simulation *simulation, struct fc_error *error)
{
	struct running running = {.simulation = simulation};
	size_t *order = calloc(simulation->run_count + 1, sizeof(*order));
	if (order == NULL || order_runs(simulation, order) != FC_OK) {
		free(order);
		return fc_error_set(error, FC_ENOMEM, "no memory for %zu runs", simulation->run_count);
	}
	struct fc_jobs jobs = {
		.count = simulation->run_count,
		.at_once = simulation->opts.config->job_count,
		.order = order,
		.run = run_job,
		.ended = on_job_ended,
		.context = &running,
	};
	int code = fc_jobs_run(&jobs, error);
	free(order);
	return code == FC_OK ? first_error(simulation, error) : code;
}

int fc_simulation_run(struct fc_simulation *simulation, struct fc_error *error)
{
	int code = make_tables(simulation, error);
	return code == FC_OK ? run_all(simulation, error) : code;
}

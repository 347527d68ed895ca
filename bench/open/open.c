/* bench/open/run: what the published evaluation left open, answered with the simulator: chat traffic, LMCache, short
 * chats on SSD, the DRAM at which tiering catches up, agents and chats on one node. Each part prints its table and, in
 * words made from its figures, what follows. */
#include "bench/open/open.h"

#include "cli/json_file.h"
#include "cli/replay_trace.h"
#include "trace/generate.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define AGENT_RATE_PER_S 1.0
#define AGENT_CONCURRENCY 157 /* sessions that keep their recorded pace at that rate, see bench/paper */

/* So much of a trace is taken where --sessions does not say, so that all parts end within minutes. */
#define SESSIONS_TAKEN 160
#define REQUESTS_TAKEN 1800 /* of a trace of requests */

/* ---- figures ---- */

double open_mean_ms(const struct fc_histogram *histogram)
{
	double mean;
	return fc_histogram_mean(histogram, &mean) ? mean / 1e6 : NO_VALUE;
}

double open_percentile_ms(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? (double)value / 1e6 : NO_VALUE;
}

double open_share(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : NO_VALUE;
}

void open_ms_cell(struct fc_table *table, double value_ms)
{
	char text[FC_HUMAN_BYTES];
	if (value_ms == NO_VALUE)
		fc_table_cell(table, "n/a");
	else
		fc_table_cell(table, "%s", fc_human_ns((uint64_t)(value_ms * 1e6), text));
}

void open_titles(struct fc_table *table, const char *const *titles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fc_table_cell(table, "%s", titles[i]);
}

void open_heading(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	printf("\n== ");
	vprintf(format, arguments);
	printf("\n\n");
	va_end(arguments);
}

static json_t *number(double value)
{
	return value == NO_VALUE ? json_null() : json_real(value);
}

void open_note(struct open *open, const char *section, const struct subject *subject, const struct wanted *wanted)
{
	const struct fc_outcome *outcome = wanted->outcome;
	json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:f}", "section", section, "trace", subject->name, "policy",
				wanted->policy, "memory_bytes", (json_int_t)wanted->memory_bytes, "rate_per_s",
				wanted->rate_per_s);
	json_object_set_new(row, "requests", fc_json_count(outcome->requests));
	json_object_set_new(row, "delivered_rate", number(open_share(outcome->delivered_blocks, outcome->blocks)));
	json_object_set_new(row, "possible_rate", number(open_share(outcome->possible_blocks, outcome->blocks)));
	json_object_set_new(row, "ttft_mean_ms", number(open_mean_ms(&outcome->ttft)));
	json_object_set_new(row, "ttft_p50_ms", number(open_percentile_ms(&outcome->ttft, 50)));
	json_object_set_new(row, "ttft_p99_ms", number(open_percentile_ms(&outcome->ttft, 99)));
	json_object_set_new(row, "ssd_bytes_read", fc_json_count(outcome->bytes_read));
	json_object_set_new(row, "ssd_bytes_written", fc_json_count(outcome->drive_bytes_written));
	json_array_append_new(open->rows, row);
}

/* ---- runs ---- */

int open_outcomes(struct open *open, struct wanted *wanted, size_t count, struct fc_outcome **outcomes)
{
	*outcomes = calloc(count, sizeof(**outcomes));
	if (*outcomes == NULL)
		return fc_error_set(&open->error, FC_ENOMEM, "no memory for %zu outcomes", count);
	for (size_t i = 0; i < count; i++)
		wanted[i].outcome = &(*outcomes)[i];
	return FC_OK;
}

int open_run(struct open *open, const struct subject *subject, const struct fc_hardware *hardware,
	     struct wanted *wanted, size_t count)
{
	struct fc_simulation simulation;
	struct fc_simulated model = {
		.trace = subject->trace, .config = &open->config, .ssd_bytes = open->config.ssd_bytes};
	struct fc_simulation_opts opts = {.trace = subject->trace,
					  .geometry = &subject->geometry,
					  .hardware = hardware,
					  .config = &open->config,
					  .memory_bytes = open->config.memory_bytes,
					  .ssd_bytes = open->config.ssd_bytes};
	int code = fc_simulation_init_runs(&simulation, &opts, &model, count, &open->error);
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		simulation.runs[i].policy = fc_policy_find(wanted[i].policy, strlen(wanted[i].policy));
		simulation.runs[i].memory_bytes = wanted[i].memory_bytes;
		simulation.runs[i].rate_per_s = wanted[i].rate_per_s;
	}
	if (code == FC_OK)
		code = fc_simulation_run(&simulation, &open->error);
	for (size_t i = 0; i < count && code == FC_OK; i++)
		*wanted[i].outcome = *simulation.runs[i].outcome;
	fc_simulation_deinit(&simulation);
	return code;
}

/* ---- traces ---- */

static double mean_input_tokens(const struct fc_trace *trace)
{
	double sum = 0;
	for (uint32_t i = 0; i < trace->request_count; i++)
		sum += (double)trace->requests[i].input_tokens;
	return sum / trace->request_count;
}

/* Agents at a stated rate; a trace with times of its own at the pace that it was recorded at. */
static double rate_of(const struct open *open, const struct fc_trace *trace)
{
	double duration_s = (double)trace->requests[trace->request_count - 1].arrival_ns / 1e9;
	if (isfinite(open->config.rate_per_s))
		return open->config.rate_per_s;
	return trace->format == FC_TRACE_OF_SESSIONS || duration_s <= 0 ? AGENT_RATE_PER_S
									: trace->request_count / duration_s;
}

static int add_subject(struct open *open, const char *name, struct fc_trace *trace)
{
	struct subject *subject = &open->subjects[open->subject_count];
	*subject = (struct subject){.name = name, .trace = trace};
	open->subject_count++;
	if (trace->request_count == 0)
		return fc_error_set(&open->error, FC_EINVAL, "%s has no requests", name);
	subject->rate_per_s = rate_of(open, trace);
	subject->is_agents = mean_input_tokens(trace) > (double)open->config.agent_context_tokens;
	return fc_geometry_preset(&subject->geometry, open->config.model, trace->block_tokens, open->config.scale,
				  &open->error);
}

/* The whole trace, or where --sessions is not given, its beginning. */
static int load_trace(struct open *open, struct fc_config *one, struct fc_trace **trace, bool *is_cut)
{
	int code = fc_replay_load_trace(one, trace, &open->error);
	*is_cut = false;
	if (code != FC_OK || fc_config_is_given(&open->config, "sessions"))
		return code;
	uint64_t taken = (*trace)->format == FC_TRACE_OF_SESSIONS ? SESSIONS_TAKEN : REQUESTS_TAKEN;
	if (fc_trace_unit_count(*trace) <= taken)
		return FC_OK;
	fc_trace_free(*trace);
	*trace = NULL;
	*is_cut = true;
	one->session_count = taken;
	return fc_replay_load_trace(one, trace, &open->error);
}

static int load_traces(struct open *open)
{
	int code = FC_OK;
	if (open->config.argument_count > TRACES_MAX)
		return fc_error_set(&open->error, FC_EINVAL, "%d traces; at most %d", open->config.argument_count,
				    TRACES_MAX);
	for (int i = 0; i < open->config.argument_count && code == FC_OK; i++) {
		struct fc_config one = open->config;
		struct fc_trace *trace = NULL;
		one.arguments = open->config.arguments + i;
		one.argument_count = 1;
		bool is_cut;
		code = load_trace(open, &one, &trace, &is_cut);
		const char *slash = strrchr(open->config.arguments[i], '/');
		if (code == FC_OK)
			code = add_subject(open, slash == NULL ? open->config.arguments[i] : slash + 1, trace);
		if (code == FC_OK)
			open->subjects[i].is_cut = is_cut;
	}
	return code;
}

/* Agents as `flatcake gen` makes them; chats of a few turns and a few thousand tokens. */
static int generate_traces(struct open *open)
{
	static const struct {
		const char *name;
		double turns, tokens;
		uint32_t sessions;
	} kinds[] = {{"generated agents", 1, 1, 60}, {"generated chats", 0.1, 0.04, 1500}};
	int code = FC_OK;
	for (size_t i = 0; i < fc_array_len(kinds) && code == FC_OK; i++) {
		struct fc_generate_opts generate;
		struct fc_trace_opts opts;
		struct fc_trace *trace = NULL;
		uint64_t asked = open->config.session_count;
		fc_generate_opts_init(&generate);
		fc_trace_opts_init(&opts);
		generate.seed = opts.seed = open->config.seed;
		generate.session_count = asked > 0 ? (uint32_t)asked : kinds[i].sessions;
		generate.turn_scale = kinds[i].turns;
		generate.token_scale = kinds[i].tokens;
		opts.concurrent_sessions = (uint32_t)open->config.concurrency;
		code = fc_trace_generate(&generate, &opts, &trace, &open->error);
		if (code == FC_OK)
			code = add_subject(open, kinds[i].name, trace);
	}
	return code;
}

/* ---- the whole ---- */

static void print_head(const struct open *open)
{
	char memory[FC_HUMAN_BYTES], ssd[FC_HUMAN_BYTES];
	printf("%s, %s; %s of memory unless another is named, %s of SSD\n", open->hardware.name, open->config.model,
	       fc_human_bytes(open->config.memory_bytes, memory), fc_human_bytes(open->config.ssd_bytes, ssd));
	for (size_t i = 0; i < open->subject_count; i++) {
		const struct subject *subject = &open->subjects[i];
		printf("%s: ", subject->name);
		if (subject->is_cut && subject->trace->format == FC_TRACE_OF_SESSIONS)
			printf("only the first %u sessions (all of them: --sessions 0), ",
			       subject->trace->session_count);
		else if (subject->is_cut)
			printf("only the beginning (all of it: --sessions 0), ");
		printf("%u requests, mean input %.0f tokens, taken as %s, at %.2f requests/s\n",
		       subject->trace->request_count, mean_input_tokens(subject->trace),
		       subject->is_agents ? "agents" : "chats", subject->rate_per_s);
	}
	fflush(stdout);
}

static int run_all(struct open *open)
{
	int code = fc_hardware_load(&open->hardware, open->config.hardware, &open->error);
	if (code != FC_OK)
		return code;
	fc_replay_use_profile(&open->config, &open->hardware);
	if (!fc_config_is_given(&open->config, "concurrency"))
		open->config.concurrency = AGENT_CONCURRENCY;
	code = open->config.argument_count > 0 ? load_traces(open) : generate_traces(open);
	if (code != FC_OK)
		return code;
	print_head(open);
	code = open_beside(open);
	if (code == FC_OK)
		code = open_crossover(open);
	if (code == FC_OK)
		code = open_short_chats(open);
	return code == FC_OK ? open_mixed(open) : code;
}

int main(int argc, char **argv)
{
	static struct open open;
	struct fc_config_problem problem;
	struct fc_config_sources sources = {
		.command = FC_COMMAND_REPLAY, .argument_count = argc - 1, .arguments = argv + 1};
	if (fc_config_load(&open.config, &sources, &problem) != FC_OK) {
		fprintf(stderr, "bench/open/run: %s\n", problem.error.text);
		return 2;
	}
	open.rows = json_array();
	int code = run_all(&open);
	if (code == FC_OK && open.config.json_path != NULL)
		code = fc_json_write(open.config.json_path, json_incref(open.rows), &open.error);
	if (code != FC_OK)
		fprintf(stderr, "bench/open/run: %s\n", open.error.text);
	for (size_t i = 0; i < open.subject_count; i++)
		fc_trace_free(open.subjects[i].trace);
	json_decref(open.rows);
	fc_hardware_deinit(&open.hardware);
	fc_config_free(&open.config);
	return code == FC_OK ? 0 : 1;
}

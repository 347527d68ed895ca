/* `flatcake tune`: the settings that serve a trace best, as a table and as a file for --config.
 *
 * The trace is read three times: whole, to know how many sessions there are, then the first part to search on, then the
 * last part to judge what was found. */
#include "replay/tune.h"

#include "cli/commands.h"
#include "cli/given.h"
#include "cli/json_file.h"
#include "cli/progress.h"
#include "cli/replay_trace.h"
#include "cli/table.h"
#include "config/option.h"
#include "host/whole_file.h"
#include "replay/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_EXPECTED 24

struct tune {
	struct fc_config config; /* with what the profile decides filled in */
	struct fc_hardware hardware;
	struct fc_geometry geometry;
	struct fc_trace *training, *held_out;
	uint64_t without_input_count; /* of the whole */
	struct fc_tune_result result;
	struct fc_progress progress;
	uint64_t settings_tried;
};

/* ---- the two parts of the trace ---- */

static int load_part(const struct tune *tune, uint64_t skip, uint64_t count, struct fc_trace **trace,
		     struct fc_error *error)
{
	struct fc_config config = tune->config;
	config.skip_count += skip;
	config.session_count = count;
	return fc_replay_load_trace(&config, trace, error);
}

/* Bytes of a day follow from how long the trace takes, and without a rate it takes what the engine makes of it. */
static int check_rate(const struct fc_config *config, struct fc_error *error)
{
	if (isfinite(config->rate_per_s) ||
	    (config->writes_per_day_max == 0 && config->objective != FC_TUNE_SSD_WRITES))
		return FC_OK;
	return fc_error_set(error, FC_EINVAL, "%s: without a rate there is no day; add --rate with a number",
			    config->objective == FC_TUNE_SSD_WRITES ? "--objective ssd-writes" : "--writes-per-day");
}

static int load(struct tune *tune, struct fc_error *error)
{
	struct fc_trace *whole;
	for (int i = 0; i < tune->config.argument_count; i++)
		if (strcmp(tune->config.arguments[i], "-") == 0)
			return fc_error_set(error, FC_EINVAL,
					    "tune reads its trace three times; standard input can be read once");
	int code = fc_replay_load_trace(&tune->config, &whole, error);
	if (code != FC_OK)
		return code;
	uint64_t count = fc_trace_unit_count(whole);
	uint64_t held = (uint64_t)((double)count * tune->config.hold_out_ratio);
	tune->without_input_count = whole->without_input_count;
	fc_trace_free(whole);
	if (held == 0 || held == count)
		return fc_error_set(error, FC_EINVAL,
				    "--hold-out: %g of %llu sessions or requests leaves none on one side",
				    tune->config.hold_out_ratio, (unsigned long long)count);
	code = load_part(tune, 0, count - held, &tune->training, error);
	return code == FC_OK ? load_part(tune, count - held, held, &tune->held_out, error) : code;
}

/* ---- for people ---- */

static const char *cost_text(const struct tune *tune, const struct fc_tune_score *score, char text[FC_HUMAN_BYTES])
{
	if (!isfinite(score->cost)) { /* budgets that the search made too small for what was held out */
		snprintf(text, FC_HUMAN_BYTES, "impossible");
		return text;
	}
	switch (tune->config.objective) {
	case FC_TUNE_MISSES:
		snprintf(text, FC_HUMAN_BYTES, "%.3f %% missed", 100 * score->cost);
		return text;
	case FC_TUNE_SSD_WRITES:
		return fc_human_bytes((uint64_t)score->cost, text);
	default:
		return fc_human_ns((uint64_t)(score->cost * 1e9), text);
	}
}

static void add_score(struct fc_table *table, const struct tune *tune, const char *name,
		      const struct fc_tune_score *score)
{
	char text[FC_HUMAN_BYTES];
	fc_table_cell(table, "%s", name);
	fc_table_cell(table, "%s", cost_text(tune, score, text));
	fc_table_cell(table, "%s", fc_human_ns((uint64_t)(score->ttft_mean_s * 1e9), text));
	fc_table_cell(table, "%s", fc_human_ns((uint64_t)(score->ttft_p99_s * 1e9), text));
	fc_table_cell(table, "%.2f %%", 100 * score->hit_rate);
	fc_table_cell(table, "%s",
		      isfinite(score->writes_per_day) ? fc_human_bytes((uint64_t)score->writes_per_day, text) : "n/a");
}

static int print_scores(const struct tune *tune, FILE *file)
{
	static const char *const titles[] = {"", "objective", "TTFT mean", "p99", "of input", "written a day"};
	const struct fc_tune_result *result = &tune->result;
	struct fc_table table;
	fc_table_init(&table, "lrrrrr");
	for (size_t i = 0; i < fc_array_len(titles); i++)
		fc_table_cell(&table, "%s", titles[i]);
	add_score(&table, tune, "training, as given", &result->training_start);
	add_score(&table, tune, "training, tuned", &result->training_best);
	add_score(&table, tune, "held out, as given", &result->held_start);
	add_score(&table, tune, "held out, tuned", &result->held_best);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static int print_steps(const struct tune *tune, FILE *file)
{
	char text[FC_HUMAN_BYTES];
	struct fc_table table;
	fc_table_init(&table, "llr");
	for (size_t i = 0; i < tune->result.step_count; i++) {
		const struct fc_tune_step *step = &tune->result.steps[i];
		fc_table_cell(&table, "%s", step->setting);
		fc_table_cell(&table, "%s", step->value);
		fc_table_cell(&table, "%s", cost_text(tune, &step->score, text));
	}
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static int print(const struct tune *tune, FILE *file)
{
	const struct fc_tune_result *result = &tune->result;
	fprintf(file, "%llu sessions or requests to search on, %llu held out; %llu runs on %s\n\n",
		(unsigned long long)fc_trace_unit_count(tune->training),
		(unsigned long long)fc_trace_unit_count(tune->held_out), (unsigned long long)result->run_count,
		tune->hardware.name);
	if (tune->without_input_count > 0)
		fprintf(file, "requests without input left out: %llu\n\n",
			(unsigned long long)tune->without_input_count);
	int code = FC_OK;
	if (result->step_count == 0)
		fprintf(file, "Nothing that was tried is better than the settings as given.\n");
	else
		code = print_steps(tune, file);
	fputc('\n', file);
	if (code == FC_OK)
		code = print_scores(tune, file);
	if (result->is_over_limit)
		fprintf(file,
			"\nNothing that was tried writes as little as --writes-per-day allows; this comes nearest.\n");
	if (result->is_start_better)
		fprintf(file,
			"\nOn the sessions that were held out this is worse than the settings as given, which are "
			"therefore recommended.\n");
	return code;
}

/* ---- the file for --config ---- */

/* What makes the store that was simulated: what is searched on or was given, of that which flatcaked takes too, so that
 * either can be started with the file. */
static bool is_written(const struct fc_config *config, size_t row)
{
	static const char *const always[] = {
		"model",          "memory",        "ssd",           "agent-context",  "long-reply",
		"high-watermark", "low-watermark", "reclaim-order", "memory-reclaim", "consolidate",
	};
	const struct fc_option *option = fc_option_at(row);
	if ((option->commands & FC_COMMAND_TUNE) == 0 || (option->commands & FC_COMMAND_DAEMON) == 0)
		return false;
	for (size_t i = 0; i < fc_array_len(always); i++)
		if (strcmp(option->name, always[i]) == 0)
			return true;
	return config->is_given[row];
}

static void write_head(const struct tune *tune, struct fc_page *text)
{
	const struct fc_tune_result *result = &tune->result;
	char given[FC_HUMAN_BYTES], tuned[FC_HUMAN_BYTES];
	fc_page_add(text, "# Settings found on %s by\n# ", tune->hardware.name);
	fc_given_add(&tune->config, "tune", text);
	fc_page_add(text,
		    "\n# What is not named keeps its default.\n"
		    "# On the sessions that were held out: %s with these, %s with what was given.\n",
		    cost_text(tune, &result->held_best, tuned), cost_text(tune, &result->held_start, given));
	if (result->is_start_better)
		fc_page_add(text, "# That is worse, so these are the settings as given.\n");
}

static int write_settings(const struct tune *tune, struct fc_page *text, struct fc_error *error)
{
	struct fc_config config = tune->config;
	int code = FC_OK;
	for (size_t i = 0; i < tune->result.step_count && !tune->result.is_start_better && code == FC_OK; i++)
		code = fc_tune_set(&config, tune->result.steps[i].setting, tune->result.steps[i].value, error);
	write_head(tune, text);
	for (size_t row = 0; fc_option_at(row) != NULL && code == FC_OK; row++) {
		const struct fc_option *option = fc_option_at(row);
		char key[FC_OPTION_NAME_BYTES];
		if (!is_written(&tune->config, row))
			continue;
		fc_option_spell(option, FC_SPELLING_KEY, key);
		fc_page_add(text, "%s: ", key);
		fc_given_add_value(text, option, (const char *)&config + option->field_offset);
		fc_page_add(text, "\n");
	}
	return code;
}

static int write_file(const struct tune *tune, struct fc_error *error)
{
	struct fc_page text = {0};
	int code = write_settings(tune, &text, error);
	if (code == FC_OK && text.is_out_of_memory)
		code = fc_error_set(error, FC_ENOMEM, "--output: no memory");
	if (code == FC_OK)
		code = fc_whole_file_write(tune->config.output_path, text.bytes, text.length, "--output", error);
	fc_page_deinit(&text);
	return code;
}

/* ---- for machines ---- */

static json_t *number_or_null(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

static json_t *score_json(const struct fc_tune_score *score)
{
	return json_pack("{s:o, s:f, s:f, s:f, s:o}", "objective", number_or_null(score->cost), "ttft_mean_s",
			 score->ttft_mean_s, "ttft_p99_s", score->ttft_p99_s, "delivered_rate", score->hit_rate,
			 "ssd_bytes_written_per_day", number_or_null(score->writes_per_day));
}

static json_t *result_json(const struct tune *tune)
{
	const struct fc_tune_result *result = &tune->result;
	json_t *steps = json_array();
	for (size_t i = 0; i < result->step_count; i++)
		json_array_append_new(steps,
				      json_pack("{s:s, s:s, s:o}", "setting", result->steps[i].setting, "value",
						result->steps[i].value, "score", score_json(&result->steps[i].score)));
	return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "hardware", tune->hardware.name, "runs",
			 (json_int_t)result->run_count, "requests_without_input", (json_int_t)tune->without_input_count,
			 "steps", steps, "training_given", score_json(&result->training_start), "training_tuned",
			 score_json(&result->training_best), "held_out_given", score_json(&result->held_start),
			 "held_out_tuned", score_json(&result->held_best), "is_given_recommended",
			 result->is_start_better, "is_over_limit", result->is_over_limit);
}

/* ---- the command ---- */

static void on_step(void *context, const char *setting)
{
	struct tune *tune = context;
	(void)setting;
	fc_progress_set(&tune->progress, fc_min_u64(tune->settings_tried++, STEPS_EXPECTED));
}

static int search(struct tune *tune, struct fc_error *error)
{
	struct fc_tune_opts opts = {
		.training = tune->training,
		.held_out = tune->held_out,
		.geometry = &tune->geometry,
		.hardware = &tune->hardware,
		.config = &tune->config,
		.objective = tune->config.objective,
		.tolerance = tune->config.tolerance,
		.writes_per_day_max = tune->config.writes_per_day_max,
		.step_cb = on_step,
		.context = tune,
	};
	fc_progress_init(&tune->progress, stderr, fc_clock_real(), "tune", STEPS_EXPECTED);
	int code = fc_tune(&opts, &tune->result, error);
	fc_progress_deinit(&tune->progress);
	return code;
}

static int report(const struct tune *tune, struct fc_error *error)
{
	const struct fc_config *config = &tune->config;
	bool is_settings_only = config->output_path != NULL && strcmp(config->output_path, "-") == 0;
	if (!fc_json_replaces_text(config) && !is_settings_only && print(tune, stdout) != FC_OK)
		return fc_error_set(error, FC_EIO, "cannot print the result");
	int code = config->output_path == NULL ? FC_OK : write_file(tune, error);
	if (code != FC_OK || config->json_path == NULL)
		return code;
	return fc_json_write(config->json_path, result_json(tune), error);
}

int fc_command_tune(const struct fc_config *config, struct fc_error *error)
{
	struct tune tune = {.config = *config};
	struct fc_store_opts unused;
	const struct fc_policy_type *flat = fc_policy_find("flat", strlen("flat")); /* the only one that is tuned */
	int code = check_rate(config, error);
	if (code == FC_OK)
		code = fc_policy_check_settings(config->policy_settings, error);
	if (code == FC_OK && fc_config_is_flag(config, "set"))
		code = fc_policy_check_used(config->policy_settings, &flat, 1, error);
	if (code == FC_OK)
		code = fc_hardware_load(&tune.hardware, config->hardware, error);
	if (code == FC_OK) {
		fc_replay_use_profile(&tune.config, &tune.hardware);
		code = load(&tune, error);
	}
	if (code == FC_OK)
		code = fc_replay_make_options(&tune.config, tune.training, &tune.geometry, &unused, error);
	if (code == FC_OK)
		code = search(&tune, error);
	if (code == FC_OK)
		code = report(&tune, error);
	fc_trace_free(tune.training);
	fc_trace_free(tune.held_out);
	fc_hardware_deinit(&tune.hardware);
	return code;
}

#include "replay/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 3
#define CHOICES_MAX 8
#define SHRINKS_MAX 6 /* a budget shrinks to 1/64 at most */
#define SECONDS_PER_DAY 86400.0

/* A setting, or two that are changed together: names and values have a space between them. */
struct setting {
	const char *names;
	const char *choices[CHOICES_MAX];
};

/* Values that differ enough to make a difference, from one extreme that switches a rule off to the other. All are
 * settings of the store: flatcaked takes them as an embedded one does. */
static const struct setting settings[] = {
	{"agent_context", {"1", "8192", "16384", "32768", "65536", "131072", "1000000000"}},
	{"long_reply", {"1", "256", "512", "1024", "2048", "4096", "1000000000"}},
	{"memory_reclaim", {"drop", "spill"}},
	{"consolidate", {"0", "0.5", "0.8", "1", "1.25", "2"}},
	{"high_watermark low_watermark", {"0.9 0.8", "0.95 0.85", "0.95 0.9", "0.98 0.95"}},
	{"reclaim_order", {"lru", "created"}},
};

struct search {
	const struct fc_tune_opts *opts;
	struct fc_tune_result *result;
	struct fc_error *error;
	struct fc_config config;      /* what is recommended so far */
	struct fc_tune_score present; /* of it */
	struct fc_tune_score best;    /* of it before its budgets were made smaller */
};

/* ---- settings ---- */

int fc_tune_set(struct fc_config *config, const char *names, const char *values, struct fc_error *error)
{
	while (*names != 0) {
		size_t name_len = strcspn(names, " "), value_len = strcspn(values, " ");
		char value[FC_TUNE_TEXT_BYTES];
		const struct fc_option *option = fc_option_find(FC_SPELLING_KEY, names, name_len, FC_COMMAND_REPLAY);
		fc_check(option != NULL && value_len < sizeof(value));
		snprintf(value, sizeof(value), "%.*s", (int)value_len, values);
		int code = fc_option_set(option, value, config, option->name, error);
		if (code != FC_OK)
			return code;
		names += name_len + (names[name_len] == ' ');
		values += value_len + (values[value_len] == ' ');
	}
	return FC_OK;
}

static void note_step(struct search *search, const char *names, const char *values, const struct fc_tune_score *score)
{
	struct fc_tune_result *result = search->result;
	fc_check(result->step_count < FC_TUNE_STEPS_MAX);
	struct fc_tune_step *step = &result->steps[result->step_count++];
	snprintf(step->setting, sizeof(step->setting), "%s", names);
	snprintf(step->value, sizeof(step->value), "%s", values);
	step->score = *score;
}

/* ---- scores ---- */

static double histogram_s(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? (double)value / 1e9 : 0;
}

static struct fc_tune_score score_of(const struct fc_tune_opts *opts, const struct fc_outcome *outcome)
{
	struct fc_tune_score score = {0};
	double mean_ns = 0;
	(void)fc_histogram_mean(&outcome->ttft, &mean_ns);
	score.ttft_mean_s = mean_ns / 1e9;
	score.ttft_p99_s = histogram_s(&outcome->ttft, 99);
	score.hit_rate = outcome->blocks > 0 ? (double)outcome->delivered_blocks / (double)outcome->blocks : 0;
	if (outcome->elapsed_ns > 0)
		score.writes_per_day =
			(double)outcome->drive_bytes_written * 1e9 / (double)outcome->elapsed_ns * SECONDS_PER_DAY;
	const double costs[] = {
		[FC_TUNE_TTFT_MEAN] = score.ttft_mean_s,
		[FC_TUNE_TTFT_P99] = score.ttft_p99_s,
		[FC_TUNE_MISSES] = 1 - score.hit_rate,
		[FC_TUNE_SSD_WRITES] = score.writes_per_day,
	};
	score.cost = costs[opts->objective];
	return score;
}

/* How much worse than `cost` counts as the same. */
static double slack(const struct fc_tune_opts *opts, double cost)
{
	return opts->tolerance * (opts->objective == FC_TUNE_MISSES ? 1 : cost);
}

static double excess(const struct fc_tune_opts *opts, const struct fc_tune_score *score)
{
	double limit = (double)opts->writes_per_day_max;
	return limit > 0 && score->writes_per_day > limit ? score->writes_per_day - limit : 0;
}

/* Whether `a` is to be preferred to `b`: writing less than is allowed comes first, and then a cost that is lower by
 * more than the tolerance. */
static bool is_better(const struct fc_tune_opts *opts, const struct fc_tune_score *a, const struct fc_tune_score *b)
{
	double excess_a = excess(opts, a), excess_b = excess(opts, b);
	if (excess_a != excess_b)
		return excess_a < excess_b;
	return a->cost < b->cost - slack(opts, b->cost);
}

static bool is_as_good(const struct fc_tune_opts *opts, const struct fc_tune_score *a, const struct fc_tune_score *b)
{
	return excess(opts, a) <= excess(opts, b) && a->cost <= b->cost + slack(opts, b->cost);
}

/* ---- runs ---- */

/* A budget may be too small for the trace, or a setting for the budget: that is a bad choice, and no error. */
static bool is_bad_choice(int code)
{
	return code == FC_EINVAL || code == FC_ELIMIT || code == FC_EFULL;
}

/* Simulates `count` configurations of `trace` at once. One that is impossible costs infinitely much. */
static int run(struct search *search, const struct fc_trace *trace, const struct fc_config *configs, size_t count,
	       struct fc_tune_score *scores)
{
	const struct fc_tune_opts *opts = search->opts;
	struct fc_simulation simulation;
	struct fc_simulation_opts simulation_opts = {
		.trace = trace, .geometry = opts->geometry, .hardware = opts->hardware, .config = opts->config};
	struct fc_simulated model = {.policy = fc_policy_find("flat", strlen("flat")),
				     .trace = trace,
				     .rate_per_s = opts->config->rate_per_s};
	int code = fc_simulation_init_runs(&simulation, &simulation_opts, &model, count, search->error);
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		simulation.runs[i].config = &configs[i];
		simulation.runs[i].memory_bytes = configs[i].memory_bytes;
		simulation.runs[i].ssd_bytes = configs[i].ssd_bytes;
	}
	if (code == FC_OK)
		code = fc_simulation_run(&simulation, search->error);
	if (is_bad_choice(code) && count > 1)
		code = FC_OK;
	for (size_t i = 0; i < count && code == FC_OK; i++) {
		const struct fc_outcome *outcome = simulation.runs[i].outcome;
		scores[i] = score_of(opts, outcome);
		if (outcome->error.code != FC_OK)
			scores[i].cost = scores[i].writes_per_day = INFINITY;
	}
	fc_simulation_deinit(&simulation);
	search->result->run_count += count;
	return code;
}

static void tell(const struct search *search, const char *setting)
{
	if (search->opts->step_cb != NULL)
		search->opts->step_cb(search->opts->context, setting);
}

/* Which of several is best, however little the difference. */
static size_t lowest(const struct fc_tune_opts *opts, const struct fc_tune_score *scores, size_t count)
{
	size_t best = 0;
	for (size_t i = 1; i < count; i++) {
		double excess_i = excess(opts, &scores[i]), excess_best = excess(opts, &scores[best]);
		bool is_level = excess_i == excess_best;
		if (is_level ? scores[i].cost < scores[best].cost : excess_i < excess_best)
			best = i;
	}
	return best;
}

static int try_setting(struct search *search, const struct setting *setting, bool *has_changed)
{
	struct fc_config configs[CHOICES_MAX];
	struct fc_tune_score scores[CHOICES_MAX];
	size_t count = 0;
	tell(search, setting->names);
	for (; count < CHOICES_MAX && setting->choices[count] != NULL; count++) {
		configs[count] = search->config;
		int code = fc_tune_set(&configs[count], setting->names, setting->choices[count], search->error);
		if (code != FC_OK)
			return code;
	}
	int code = run(search, search->opts->training, configs, count, scores);
	if (code != FC_OK)
		return code;
	size_t best = lowest(search->opts, scores, count);
	if (!is_better(search->opts, &scores[best], &search->best))
		return FC_OK;
	*has_changed = true;
	search->config = configs[best];
	search->best = search->present = scores[best];
	note_step(search, setting->names, setting->choices[best], &scores[best]);
	return FC_OK;
}

/* Exactly, in the largest unit that divides it. */
static void print_size(char text[FC_TUNE_TEXT_BYTES], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < fc_array_len(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, FC_TUNE_TEXT_BYTES, "%llu%s", (unsigned long long)bytes, units[unit]);
}

/* The smallest budget, by halves, that is as good as the whole. */
static int shrink(struct search *search, const char *name)
{
	struct fc_config configs[SHRINKS_MAX];
	struct fc_tune_score scores[SHRINKS_MAX];
	char values[SHRINKS_MAX][FC_TUNE_TEXT_BYTES];
	uint64_t bytes = strcmp(name, "memory") == 0 ? search->config.memory_bytes : search->config.ssd_bytes;
	tell(search, name);
	for (size_t i = 0; i < SHRINKS_MAX; i++) {
		configs[i] = search->config;
		print_size(values[i], bytes >> (i + 1));
		int code = fc_tune_set(&configs[i], name, values[i], search->error);
		if (code != FC_OK)
			return code;
	}
	int code = run(search, search->opts->training, configs, SHRINKS_MAX, scores);
	if (code != FC_OK)
		return code;
	size_t kept = 0;
	while (kept < SHRINKS_MAX && is_as_good(search->opts, &scores[kept], &search->best))
		kept++;
	if (kept == 0)
		return FC_OK;
	/* What was reached stays the measure for the next budget, so that losses do not add up. */
	search->config = configs[kept - 1];
	search->present = scores[kept - 1];
	note_step(search, name, values[kept - 1], &scores[kept - 1]);
	return FC_OK;
}

/* ---- the search ---- */

static int search_all(struct search *search)
{
	bool has_changed = true;
	int code = FC_OK;
	for (int round = 0; round < ROUNDS_MAX && has_changed && code == FC_OK; round++) {
		has_changed = false;
		for (size_t i = 0; i < fc_array_len(settings) && code == FC_OK; i++)
			code = try_setting(search, &settings[i], &has_changed);
	}
	if (code == FC_OK && search->config.memory_bytes > 0)
		code = shrink(search, "memory");
	if (code == FC_OK && search->config.ssd_bytes > 0)
		code = shrink(search, "ssd");
	return code;
}

static int validate(struct search *search)
{
	const struct fc_config configs[] = {*search->opts->config, search->config};
	struct fc_tune_score held[2];
	tell(search, "held out");
	int code = run(search, search->opts->held_out, configs, 2, held);
	if (code != FC_OK)
		return code;
	struct fc_tune_result *result = search->result;
	result->training_best = search->present;
	result->held_start = held[0];
	result->held_best = held[1];
	result->is_over_limit = excess(search->opts, &search->present) > 0;
	result->is_start_better = !is_as_good(search->opts, &held[1], &held[0]);
	return FC_OK;
}

int fc_tune(const struct fc_tune_opts *opts, struct fc_tune_result *result, struct fc_error *error)
{
	struct search search = {.opts = opts, .result = result, .error = error, .config = *opts->config};
	*result = (struct fc_tune_result){0};
	tell(&search, "start");
	int code = run(&search, opts->training, opts->config, 1, &result->training_start);
	search.best = search.present = result->training_start;
	if (code == FC_OK)
		code = search_all(&search);
	return code == FC_OK ? validate(&search) : code;
}

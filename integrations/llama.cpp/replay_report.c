#include "replay.h"

#include "cli/json_file.h"
#include "cli/table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- tables ---- */

static uint64_t mean_of(const struct fc_histogram *histogram)
{
	double mean;
	return fc_histogram_mean(histogram, &mean) ? (uint64_t)mean : 0;
}

static uint64_t percentile_of(const struct fc_histogram *histogram, double percent)
{
	uint64_t value;
	return fc_histogram_percentile(histogram, percent, &value) ? value : 0;
}

static void add_heads(struct fc_table *table, const char *const *heads, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fc_table_cell(table, "%s", heads[i]);
}

static void add_run(struct fc_table *table, enum system_kind kind, const struct run_result *result,
		    const struct run_result *recompute)
{
	char text[FC_HUMAN_BYTES];
	uint64_t mean = mean_of(&result->first_token);
	fc_table_cell(table, "%s", system_title(kind));
	fc_table_cell(table, "%s", fc_human_ns(mean, text));
	fc_table_cell(table, "%s", fc_human_ns(percentile_of(&result->first_token, 50), text));
	fc_table_cell(table, "%s", fc_human_ns(percentile_of(&result->first_token, 99), text));
	if (recompute->is_done && mean > 0)
		fc_table_cell(table, "%.1f x", (double)mean_of(&recompute->first_token) / (double)mean);
	else
		fc_table_cell(table, "n/a");
	fc_table_cell(table, "%s", fc_human_ns(mean_of(&result->restore), text));
	fc_table_cell(table, "%s", fc_human_ns(mean_of(&result->save), text));
	fc_table_cell(table, "%s", fc_human_count(result->computed_tokens, text));
	fc_table_cell(table, "%s", fc_human_count(result->restored_tokens, text));
	fc_table_cell(table, "%s", fc_human_bytes(result->bytes_written, text));
	fc_table_cell(table, "%llu", (unsigned long long)result->bits_equal);
	fc_table_cell(table, "%llu", (unsigned long long)result->reply_equal);
}

void replay_print_run(const struct replay_opts *opts, const struct replay_input *input,
		      const struct run_result results[SYSTEM_COUNT])
{
	static const char *const heads[] = {"",     "first token", "p50",      "p99",     "faster",    "restore",
					    "save", "computed",    "restored", "written", "same bits", "same reply"};
	char text[FC_HUMAN_BYTES];
	struct fc_table table;
	printf("%u sessions, %zu turns from %s", input->session_count, input->turn_count, input->source);
	if (input->skipped_count > 0)
		printf(" (the rest is too long for --history)");
	if (input->scale != 1)
		printf(", a token for %.3g of its tokens", input->scale);
	printf("\nprompts of up to %s tokens; ", fc_human_count(input->history_max - opts->reply, text));
	printf("a KV memory for %llu sessions of %s tokens\n\n", (unsigned long long)opts->slots,
	       fc_human_count(opts->kv_tokens / opts->slots, text));
	fc_table_init(&table, "lrrrrrrrrrrr");
	add_heads(&table, heads, sizeof(heads) / sizeof(*heads));
	for (int kind = 0; kind < SYSTEM_COUNT; kind++)
		if (results[kind].is_done)
			add_run(&table, (enum system_kind)kind, &results[kind], &results[SYSTEM_RECOMPUTE]);
	if (fc_table_print(&table, stdout) != FC_OK)
		fprintf(stderr, "no memory for the table\n");
	fc_table_deinit(&table);
	printf("\nfirst token: time to it, the mean of all turns but each session's first; restore: until the KV is "
	       "back, a part "
	       "of it\nsave: mean of all turns; computed, restored: tokens of prompts; written: to the store or to "
	       "files\n"
	       "same bits: turns whose logits equal those of the first line in every bit; same reply: whose next %llu "
	       "tokens do\n",
	       (unsigned long long)(opts->reply == 0 ? 1 : opts->reply));
}

static void print_times(const struct replay_opts *opts, const struct worth_row *rows, bool is_restore)
{
	char text[FC_HUMAN_BYTES], columns[SYSTEM_COUNT + 3] = "r";
	struct fc_table table;
	for (int kind = 0; kind < SYSTEM_COUNT; kind++)
		if (rows[0].first_token_ns[kind] > 0)
			strcat(columns, "r");
	bool has_factor = rows[0].first_token_ns[SYSTEM_RECOMPUTE] > 0 && rows[0].first_token_ns[SYSTEM_SSD] > 0;
	strcat(columns, has_factor && !is_restore ? "r" : "");
	fc_table_init(&table, columns);
	fc_table_cell(&table, "history");
	for (int kind = 0; kind < SYSTEM_COUNT; kind++)
		if (rows[0].first_token_ns[kind] > 0)
			fc_table_cell(&table, "%s", system_name((enum system_kind)kind));
	if (has_factor && !is_restore)
		fc_table_cell(&table, "recompute / ssd");
	for (size_t i = 0; i < opts->length_count; i++) {
		const uint64_t *times = is_restore ? rows[i].restore_ns : rows[i].first_token_ns;
		fc_table_cell(&table, "%s", fc_human_count(rows[i].history, text));
		for (int kind = 0; kind < SYSTEM_COUNT; kind++)
			if (rows[0].first_token_ns[kind] > 0)
				fc_table_cell(&table, "%s", fc_human_ns(times[kind], text));
		if (has_factor && !is_restore)
			fc_table_cell(&table, "%.1f x", (double)times[SYSTEM_RECOMPUTE] / (double)times[SYSTEM_SSD]);
	}
	if (fc_table_print(&table, stdout) != FC_OK)
		fprintf(stderr, "no memory for the table\n");
	fc_table_deinit(&table);
}

void replay_print_worth(const struct replay_opts *opts, const struct worth_row *rows)
{
	printf("time to first token when a session of so many tokens comes back with 3.65 %% more, median of %llu\n\n",
	       (unsigned long long)opts->repeat);
	print_times(opts, rows, false);
	printf("\nof that, until the history is back in the engine\n\n");
	print_times(opts, rows, true);
}

/* ---- JSON ---- */

static json_t *times_ms(const struct fc_histogram *histogram)
{
	return json_pack("{s:f, s:f, s:f}", "mean", (double)mean_of(histogram) / 1e6, "p50",
			 (double)percentile_of(histogram, 50) / 1e6, "p99", (double)percentile_of(histogram, 99) / 1e6);
}

static json_t *run_json(const struct run_result *result)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "first_turn_ms",
			 times_ms(&result->first_turn), "first_token_ms", times_ms(&result->first_token), "restore_ms",
			 times_ms(&result->restore), "save_ms", times_ms(&result->save), "turns",
			 (json_int_t)result->turns, "prompt_tokens", (json_int_t)result->prompt_tokens,
			 "computed_tokens", (json_int_t)result->computed_tokens, "live_tokens",
			 (json_int_t)result->live_tokens, "restored_tokens", (json_int_t)result->restored_tokens,
			 "bytes_written", (json_int_t)result->bytes_written, "turns_with_equal_bits",
			 (json_int_t)result->bits_equal, "turns_with_equal_reply", (json_int_t)result->reply_equal,
			 "time_s", (double)result->time_ns / 1e9);
}

static json_t *runs_json(const struct run_result *results)
{
	json_t *object = json_object();
	for (int kind = 0; kind < SYSTEM_COUNT; kind++)
		if (results[kind].is_done)
			json_object_set_new(object, system_name((enum system_kind)kind), run_json(&results[kind]));
	return object;
}

static json_t *times_json(const uint64_t times_ns[SYSTEM_COUNT])
{
	json_t *object = json_object();
	for (int kind = 0; kind < SYSTEM_COUNT; kind++)
		if (times_ns[kind] > 0)
			json_object_set_new(object, system_name((enum system_kind)kind),
					    json_real((double)times_ns[kind] / 1e6));
	return object;
}

static json_t *worth_json(const struct replay_opts *opts, const struct worth_row *rows)
{
	json_t *array = json_array();
	for (size_t i = 0; i < opts->length_count; i++)
		json_array_append_new(array, json_pack("{s:I, s:o, s:o}", "history_tokens", (json_int_t)rows[i].history,
						       "first_token_ms", times_json(rows[i].first_token_ns),
						       "restore_ms", times_json(rows[i].restore_ns)));
	return array;
}

int replay_write_json(const struct replay_opts *opts, const struct replay_input *input,
		      const struct run_result *results, const struct worth_row *rows, struct fc_error *error)
{
	json_t *json = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:s}", "model", opts->model, "block_tokens",
				 (json_int_t)opts->block, "kv_tokens", (json_int_t)opts->kv_tokens, "slots",
				 (json_int_t)opts->slots, "batch_tokens", (json_int_t)opts->batch, "type_k",
				 ggml_type_name(opts->type_k), "type_v", ggml_type_name(opts->type_v));
	if (json != NULL && input->turn_count > 0) {
		json_object_set_new(json, "source", json_string(input->source));
		json_object_set_new(json, "sessions", json_integer(input->session_count));
		json_object_set_new(json, "turns", json_integer((json_int_t)input->turn_count));
		json_object_set_new(json, "history_tokens_max", json_integer((json_int_t)input->history_max));
		json_object_set_new(json, "systems", runs_json(results));
	}
	if (json != NULL && opts->length_count > 0)
		json_object_set_new(json, "by_length", worth_json(opts, rows));
	return fc_json_write(opts->json, json, error);
}

/* ---- plot ---- */

#define PLOT_LEFT 70.0
#define PLOT_RIGHT 540.0
#define PLOT_TOP 40.0
#define PLOT_BOTTOM 360.0

struct plane {
	double x_min, x_max, y_min, y_max; /* logarithms */
};

static double x_of(const struct plane *plane, double tokens)
{
	double share =
		plane->x_max > plane->x_min ? (log2(tokens) - plane->x_min) / (plane->x_max - plane->x_min) : 0.5;
	return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT);
}

static double y_of(const struct plane *plane, double ms)
{
	return PLOT_BOTTOM - (log10(ms) - plane->y_min) / (plane->y_max - plane->y_min) * (PLOT_BOTTOM - PLOT_TOP);
}

static struct plane plane_of(const struct replay_opts *opts, const struct worth_row *rows)
{
	struct plane plane = {INFINITY, -INFINITY, INFINITY, -INFINITY};
	for (size_t i = 0; i < opts->length_count; i++) {
		plane.x_min = fmin(plane.x_min, log2((double)rows[i].history));
		plane.x_max = fmax(plane.x_max, log2((double)rows[i].history));
		for (int kind = 0; kind < SYSTEM_COUNT; kind++) {
			if (rows[i].first_token_ns[kind] == 0)
				continue;
			double ms = log10((double)rows[i].first_token_ns[kind] / 1e6);
			plane.y_min = fmin(plane.y_min, floor(ms));
			plane.y_max = fmax(plane.y_max, ceil(ms));
		}
	}
	if (!(plane.y_max > plane.y_min))
		plane.y_max = plane.y_min + 1;
	return plane;
}

static void draw_axes(FILE *file, const struct replay_opts *opts, const struct worth_row *rows,
		      const struct plane *plane)
{
	for (double power = plane->y_min; power <= plane->y_max; power++) {
		double y = y_of(plane, pow(10, power));
		fprintf(file, "<path d=\"M%.0f %.1fH%.0f\" stroke=\"#ddd\"/>", PLOT_LEFT, y, PLOT_RIGHT);
		fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g %s</text>\n", PLOT_LEFT - 8, y + 4,
			pow(10, power < 3 ? power : power - 3), power < 3 ? "ms" : "s");
	}
	for (size_t i = 0; i < opts->length_count; i++)
		fprintf(file, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%llu</text>\n",
			x_of(plane, (double)rows[i].history), PLOT_BOTTOM + 20, (unsigned long long)rows[i].history);
	fprintf(file, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">tokens of history</text>\n",
		(PLOT_LEFT + PLOT_RIGHT) / 2, PLOT_BOTTOM + 42);
	fprintf(file,
		"<text x=\"%.0f\" y=\"22\" font-weight=\"bold\">Time to first token when a session comes back</text>\n",
		PLOT_LEFT);
}

static void draw_line(FILE *file, const struct replay_opts *opts, const struct worth_row *rows,
		      const struct plane *plane, int kind, double label_y)
{
	static const char *const colours[SYSTEM_COUNT] = {
		[SYSTEM_RECOMPUTE] = "#888", [SYSTEM_FILE] = "#e69f00", [SYSTEM_FILE_COLD] = "#b35c00",
		[SYSTEM_MEMORY] = "#56b4e9", [SYSTEM_SSD] = "#0060a0",
	};
	fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colours[kind]);
	for (size_t i = 0; i < opts->length_count; i++)
		fprintf(file, "%.1f,%.1f ", x_of(plane, (double)rows[i].history),
			y_of(plane, (double)rows[i].first_token_ns[kind] / 1e6));
	fprintf(file, "\"/>\n<text x=\"%.0f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", PLOT_RIGHT + 10, label_y + 4,
		colours[kind], system_name((enum system_kind)kind));
}

static void draw_lines(FILE *file, const struct replay_opts *opts, const struct worth_row *rows,
		       const struct plane *plane)
{
	int order[SYSTEM_COUNT], count = 0; /* from the slowest down, so that labels do not lie on each other */
	const uint64_t *last = rows[opts->length_count - 1].first_token_ns;
	for (int kind = 0; kind < SYSTEM_COUNT; kind++) {
		if (last[kind] == 0)
			continue;
		int at = count++;
		for (; at > 0 && last[order[at - 1]] < last[kind]; at--)
			order[at] = order[at - 1];
		order[at] = kind;
	}
	double label_y = -INFINITY;
	for (int i = 0; i < count; i++) {
		label_y = fmax(label_y + 16, y_of(plane, (double)last[order[i]] / 1e6));
		draw_line(file, opts, rows, plane, order[i], label_y);
	}
}

int replay_write_svg(const struct replay_opts *opts, const struct worth_row *rows, struct fc_error *error)
{
	FILE *file = fopen(opts->svg, "w");
	if (file == NULL)
		return fc_error_set(error, FC_ESYSTEM, "--svg: %s: %s", opts->svg, strerror(errno));
	struct plane plane = plane_of(opts, rows);
	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 420\" font-family=\"sans-serif\" "
		      "font-size=\"13\">\n<rect width=\"640\" height=\"420\" fill=\"#fff\"/>\n");
	draw_axes(file, opts, rows, &plane);
	draw_lines(file, opts, rows, &plane);
	fprintf(file, "</svg>\n");
	bool is_written = ferror(file) == 0;
	if (fclose(file) != 0 || !is_written)
		return fc_error_set(error, FC_EIO, "--svg: %s could not be written", opts->svg);
	return FC_OK;
}

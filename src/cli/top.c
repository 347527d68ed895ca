/* `flatcake top`: what a running flatcaked does, for a terminal. Each refresh asks /v1/status and /v1/clients, puts a
 * screen together as text, and shows as much of it as fits. On a pipe screens follow each other, whole. */
#include "base/check.h"
#include "cli/commands.h"
#include "cli/http_get.h"
#include "cli/table.h"
#include "clock/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define WAITERS_SHOWN 8

struct sample {
	json_t *status, *clients;
	double at_s;
};

/* ---- reading JSON ---- */

static const json_t *at(const json_t *object, const char *first, const char *second)
{
	const json_t *value = json_object_get(object, first);
	return second != NULL ? json_object_get(value, second) : value;
}

static uint64_t count_at(const json_t *object, const char *first, const char *second)
{
	json_int_t value = json_integer_value(at(object, first, second));
	return value > 0 ? (uint64_t)value : 0;
}

/* A text from the daemon may have come from a client: a terminal is not to be steered by it. */
static const char *text_at(const json_t *object, const char *name, char text[128])
{
	const char *value = json_string_value(json_object_get(object, name));
	snprintf(text, 128, "%s", value != NULL ? value : "n/a");
	for (char *letter = text; *letter != '\0'; letter++)
		if ((unsigned char)*letter < ' ' || *letter == 127 || (unsigned char)*letter >= 0x80)
			*letter = '?';
	return text;
}

static const char *seconds_text(double seconds, char text[FC_HUMAN_BYTES])
{
	if (seconds >= 7200)
		snprintf(text, FC_HUMAN_BYTES, seconds >= 172800 ? "%.1f d" : "%.1f h",
			 seconds / (seconds >= 172800 ? 86400 : 3600));
	else
		fc_human_ns(seconds > 0 ? (uint64_t)(seconds * 1e9) : 0, text);
	return text;
}

/* Upper bound of the bucket that holds the quantile; of the first and the last bucket only one bound is known. */
static const char *quantile_text(const json_t *status, const char *name, double share, char text[FC_HUMAN_BYTES])
{
	const json_t *bounds = at(status, name, "bounds_seconds"), *counts = at(status, name, "counts");
	uint64_t below = 0, count = count_at(status, name, "count");
	for (size_t bucket = 0; count > 0 && bucket < json_array_size(counts); bucket++) {
		below += (uint64_t)json_integer_value(json_array_get(counts, bucket));
		if ((double)below < share * (double)count)
			continue;
		const json_t *bound = json_array_get(bounds, bucket);
		if (json_is_number(bound) && bucket > 0)
			return seconds_text(json_number_value(bound), text);
		const json_t *nearest = json_is_number(bound) ? bound : json_array_get(bounds, bucket - (bucket > 0));
		char limit[FC_HUMAN_BYTES];
		snprintf(text, FC_HUMAN_BYTES, "%s %.20s", json_is_number(bound) ? "below" : "over",
			 seconds_text(json_number_value(nearest), limit));
		return text;
	}
	snprintf(text, FC_HUMAN_BYTES, "n/a");
	return text;
}

/* ---- the screen ---- */

static void print_head(const json_t *status, FILE *out)
{
	char state[128], reason[128], version[128], model[128], up[FC_HUMAN_BYTES];
	fprintf(out, "flatcaked %s  %s%s%s  up %s  %s  %llu clients  %llu leases\n",
		text_at(status, "version", version), text_at(status, "state", state),
		json_string_length(json_object_get(status, "reason")) > 0 ? ": " : "",
		text_at(status, "reason", reason),
		seconds_text(json_number_value(at(status, "uptime_seconds", NULL)), up),
		text_at(at(status, "model", NULL), "name", model),
		(unsigned long long)count_at(status, "clients", NULL),
		(unsigned long long)count_at(status, "leases", NULL));
}

/* What a counter of the reports grew by since the sample before; false without one, or from another run of the daemon.
 */
static bool growth(const struct sample *before, const struct sample *now, const char *name, uint64_t *value)
{
	if (before->status == NULL || now->at_s <= before->at_s ||
	    !json_equal(at(before->status, "instance", NULL), at(now->status, "instance", NULL)))
		return false;
	uint64_t from = count_at(at(before->status, "reports", NULL), name, NULL);
	uint64_t to = count_at(at(now->status, "reports", NULL), name, NULL);
	*value = to > from ? to - from : 0;
	return true;
}

static void print_hits(const struct sample *before, const struct sample *now, FILE *out)
{
	const json_t *reports = at(now->status, "reports", NULL);
	char all[FC_HUMAN_BYTES], recent[FC_HUMAN_BYTES] = "n/a";
	uint64_t delivered = 0, possible = 0, loads = 0;
	bool has_growth = growth(before, now, "blocks_delivered", &delivered) &&
			  growth(before, now, "blocks_possible", &possible) && growth(before, now, "loads", &loads);
	fprintf(out, "hit rate   %s now, %s since the start",
		has_growth ? fc_human_percent(delivered, possible, recent) : recent,
		fc_human_percent(count_at(reports, "blocks_delivered", NULL),
				 count_at(reports, "blocks_possible", NULL), all));
	if (has_growth)
		fprintf(out, ", %.1f loads/s", (double)loads / (now->at_s - before->at_s));
	fputc('\n', out);
}

static uint64_t read_limit(const json_t *status)
{
	size_t index;
	const json_t *arenas = at(status, "arenas", NULL);
	for (index = 0; index < json_array_size(arenas); index++) {
		const json_t *arena = json_array_get(arenas, index);
		const char *medium = json_string_value(json_object_get(arena, "medium"));
		if (medium != NULL && strcmp(medium, "ssd") == 0)
			return count_at(arena, "read_limit_bytes_per_second", NULL);
	}
	return 0;
}

static void print_reads(const struct sample *before, const struct sample *now, FILE *out)
{
	const json_t *reports = at(now->status, "reports", NULL);
	char text[FC_HUMAN_BYTES], share[FC_HUMAN_BYTES];
	uint64_t bytes = 0, commands = 0, limit = read_limit(now->status);
	if (growth(before, now, "bytes_read", &bytes) && growth(before, now, "read_commands", &commands)) {
		uint64_t rate = (uint64_t)((double)bytes / (now->at_s - before->at_s));
		fprintf(out, "from SSD   %s/s", fc_human_bytes(rate, text));
		if (limit > 0)
			fprintf(out, " (%s of %s/s)", fc_human_percent(rate, limit, share),
				fc_human_bytes(limit, text));
		if (commands > 0)
			fprintf(out, ", %s a command", fc_human_bytes(bytes / commands, text));
	} else {
		fprintf(out, "from SSD   %s since the start",
			fc_human_bytes(count_at(reports, "bytes_read", NULL), text));
	}
	uint64_t wanted = count_at(reports, "bytes_wanted", "ssd");
	if (wanted > 0)
		fprintf(out, ", %.2f x read of wanted", (double)count_at(reports, "bytes_read", NULL) / (double)wanted);
	fputc('\n', out);
}

static void print_times(const json_t *status, FILE *out)
{
	static const struct {
		const char *name, *title;
	} rows[] = {{"load_time", "load"},
		    {"first_layer_time", "first layer"},
		    {"queue_wait", "in queues"},
		    {"match_time", "match"}};
	char p50[FC_HUMAN_BYTES], p99[FC_HUMAN_BYTES];
	const char *separator = "times      ";
	for (size_t row = 0; row < fc_array_len(rows); row++) {
		fprintf(out, "%s%s p50 %s p99 %s", separator, rows[row].title,
			quantile_text(status, rows[row].name, 0.5, p50),
			quantile_text(status, rows[row].name, 0.99, p99));
		separator = "; ";
	}
	const json_t *reports = at(status, "reports", NULL);
	fprintf(out, "\nqueues     %llu ready, %llu being prepared; %llu loads and %llu saves now\n",
		(unsigned long long)count_at(reports, "ready_length", NULL),
		(unsigned long long)count_at(reports, "prepare_length", NULL),
		(unsigned long long)count_at(reports, "loads_active", NULL),
		(unsigned long long)count_at(reports, "saves_active", NULL));
}

static int print_arenas(const json_t *status, FILE *out)
{
	static const char *const counts[] = {"sessions", "extents", "segments"};
	struct fc_table table;
	char text[FC_HUMAN_BYTES], name[128];
	size_t index;
	const json_t *arenas = at(status, "arenas", NULL);
	fc_table_init(&table, "lrrrrrrrr");
	static const char *const heads[] = {"arena",  "used",     "of",           "",         "sessions",
					    "pieces", "segments", "largest free", "reclaimed"};
	for (size_t head = 0; head < fc_array_len(heads); head++)
		fc_table_cell(&table, "%s", heads[head]);
	for (index = 0; index < json_array_size(arenas); index++) {
		const json_t *arena = json_array_get(arenas, index);
		uint64_t used = count_at(arena, "bytes_used", NULL), bytes = count_at(arena, "bytes", NULL);
		fc_table_cell(&table, "%s", text_at(arena, "medium", name));
		fc_table_cell(&table, "%s", fc_human_bytes(used, text));
		fc_table_cell(&table, "%s", fc_human_bytes(bytes, text));
		fc_table_cell(&table, "%s", fc_human_percent(used, bytes, text));
		for (size_t column = 0; column < fc_array_len(counts); column++)
			fc_table_cell(&table, "%s", fc_human_count(count_at(arena, counts[column], NULL), text));
		fc_table_cell(&table, "%s", fc_human_bytes(count_at(arena, "largest_free_bytes", NULL), text));
		fc_table_cell(&table, "%s", fc_human_bytes(count_at(arena, "bytes_reclaimed", NULL), text));
	}
	fputc('\n', out);
	int code = fc_table_print(&table, out);
	fc_table_deinit(&table);
	return code;
}

static const char *name_at(const json_t *object, const char *name, const char *nameless, char text[128])
{
	text_at(object, name, text);
	return text[0] != '\0' ? text : nameless;
}

static void add_client(struct fc_table *table, const json_t *client)
{
	char text[FC_HUMAN_BYTES], name[128];
	const json_t *report = at(client, "report", NULL);
	fc_table_cell(table, "%s", name_at(client, "program", "(unnamed)", name));
	fc_table_cell(table, "%s", name_at(client, "namespace", "(default)", name));
	if (json_is_integer(at(client, "pid", NULL)))
		fc_table_cell(table, "%lld", (long long)json_integer_value(at(client, "pid", NULL)));
	else
		fc_table_cell(table, "elsewhere"); /* in a container that this daemon does not see into */
	fc_table_cell(table, "%s",
		      fc_human_percent(count_at(report, "blocks_delivered", NULL),
				       count_at(report, "blocks_possible", NULL), text));
	fc_table_cell(table, "%s", fc_human_count(count_at(report, "loads", NULL), text));
	fc_table_cell(table, "%s", fc_human_count(count_at(report, "ready_length", NULL), text));
	fc_table_cell(table, "%s", fc_human_count(count_at(report, "prepare_length", NULL), text));
	fc_table_cell(table, "%s", fc_human_count(count_at(client, "leases", NULL), text));
	fc_table_cell(table, "%s", fc_human_bytes(count_at(client, "reserved_bytes", NULL), text));
	fc_table_cell(table, "%s",
		      seconds_text(json_number_value(at(client, "oldest_reservation_seconds", NULL)), text));
	fc_table_cell(table, "%s", seconds_text(json_number_value(at(client, "age_seconds", NULL)), text));
}

static int print_clients(const json_t *clients, FILE *out)
{
	static const char *const heads[] = {"client",  "namespace", "process",  "hit rate", "loads",    "ready",
					    "prepare", "leases",    "reserved", "oldest",   "connected"};
	struct fc_table table;
	const json_t *list = at(clients, "clients", NULL);
	if (json_array_size(list) == 0) {
		fputs("\nno client is connected\n", out);
		return FC_OK;
	}
	fc_table_init(&table, "llrrrrrrrrr");
	for (size_t head = 0; head < fc_array_len(heads); head++)
		fc_table_cell(&table, "%s", heads[head]);
	for (size_t index = 0; index < json_array_size(list); index++)
		add_client(&table, json_array_get(list, index));
	fputc('\n', out);
	int code = fc_table_print(&table, out);
	fc_table_deinit(&table);
	return code;
}

struct waiter {
	const json_t *client, *waiter;
	double priority;
};

/* Keeps the highest priorities, in order. */
static void keep_waiter(struct waiter *kept, size_t *count, struct waiter next)
{
	size_t place = *count;
	while (place > 0 && kept[place - 1].priority < next.priority)
		place--;
	if (place == WAITERS_SHOWN)
		return;
	*count += *count < WAITERS_SHOWN;
	for (size_t moved = *count - 1; moved > place; moved--)
		kept[moved] = kept[moved - 1];
	kept[place] = next;
}

static int print_waiters(const json_t *clients, FILE *out)
{
	struct waiter found[WAITERS_SHOWN];
	size_t count = 0;
	const json_t *list = at(clients, "clients", NULL);
	for (size_t client_at = 0; client_at < json_array_size(list); client_at++) {
		const json_t *client = json_array_get(list, client_at), *waiters = at(client, "waiters", NULL);
		for (size_t index = 0; index < json_array_size(waiters); index++) {
			const json_t *waiter = json_array_get(waiters, index);
			double priority = json_number_value(at(waiter, "priority", NULL));
			keep_waiter(found, &count, (struct waiter){client, waiter, priority});
		}
	}
	if (count == 0)
		return FC_OK;
	struct fc_table table;
	char text[FC_HUMAN_BYTES], name[128];
	fc_table_init(&table, "lrrr");
	static const char *const heads[] = {"waits for SSD", "size", "waited", "priority"};
	for (size_t head = 0; head < fc_array_len(heads); head++)
		fc_table_cell(&table, "%s", heads[head]);
	for (size_t row = 0; row < count; row++) {
		fc_table_cell(&table, "%s #%llu", text_at(found[row].client, "program", name),
			      (unsigned long long)count_at(found[row].waiter, "request", NULL));
		fc_table_cell(&table, "%s", fc_human_bytes(count_at(found[row].waiter, "ssd_bytes", NULL), text));
		fc_table_cell(&table, "%s",
			      seconds_text(json_number_value(at(found[row].waiter, "waited_seconds", NULL)), text));
		fc_table_cell(&table, "%.2f", found[row].priority);
	}
	fputc('\n', out);
	int code = fc_table_print(&table, out);
	fc_table_deinit(&table);
	return code;
}

static int print_screen(const struct sample *before, const struct sample *now, FILE *out)
{
	print_head(now->status, out);
	print_hits(before, now, out);
	print_reads(before, now, out);
	print_times(now->status, out);
	int code = print_arenas(now->status, out);
	if (code == FC_OK)
		code = print_clients(now->clients, out);
	return code == FC_OK ? print_waiters(now->clients, out) : code;
}

/* ---- the terminal ---- */

/* Writes what fits, over what was there, and clears the rest. */
static void show_on_terminal(const char *text)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fputs("\033[H", stdout);
	for (unsigned row = 0; *text != '\0' && row + 1 < size.ws_row; row++) {
		size_t len = strcspn(text, "\n");
		printf("%.*s\033[K\n", (int)fc_min_u64(len, size.ws_col), text);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", stdout);
	fflush(stdout);
}

static int show(const struct sample *before, const struct sample *now, bool is_terminal, struct fc_error *error)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (out == NULL)
		return fc_error_set(error, FC_ENOMEM, "no memory for the screen");
	int code = print_screen(before, now, out);
	if (fclose(out) != 0 || code != FC_OK)
		code = fc_error_set(error, FC_ENOMEM, "no memory for the screen");
	else if (is_terminal)
		show_on_terminal(text);
	else
		printf("%s\n", text);
	free(text);
	return code;
}

static void drop(struct sample *sample)
{
	json_decref(sample->status);
	json_decref(sample->clients);
	*sample = (struct sample){.status = NULL};
}

static int take(const struct fc_http_source *source, struct sample *sample, struct fc_error *error)
{
	int code = fc_http_get(source, "/v1/status", &sample->status, error);
	if (code == FC_OK)
		code = fc_http_get(source, "/v1/clients", &sample->clients, error);
	sample->at_s = (double)fc_clock_real_ns() / 1e9;
	return code;
}

/* A daemon that is started anew is not the end: what was there stays, with a line on why nothing new comes. */
static void show_gap(const struct fc_error *error, bool is_terminal)
{
	FILE *out = is_terminal ? stdout : stderr;
	fprintf(out, "%s%s; trying again%s\n", is_terminal ? "\033[H" : "flatcake: top: ", error->text,
		is_terminal ? "\033[K" : "");
	fflush(out);
}

int fc_command_top(const struct fc_config *config, struct fc_error *error)
{
	struct fc_http_source source;
	struct sample before = {.status = NULL};
	bool has_shown = false;
	bool is_terminal = isatty(STDOUT_FILENO) && !config->is_once;
	const struct timespec interval = {.tv_sec = (time_t)(config->interval_ns / 1000000000u),
					  .tv_nsec = (long)(config->interval_ns % 1000000000u)};
	int code = fc_http_source_init(&source, config->url, config->token_path, error);
	if (code == FC_OK && is_terminal)
		fputs("\033[2J", stdout);
	while (code == FC_OK) {
		struct sample now = {.status = NULL};
		code = take(&source, &now, error);
		if (code != FC_OK && has_shown && !config->is_once) {
			show_gap(error, is_terminal);
			code = FC_OK;
			drop(&now);
		} else if (code == FC_OK) {
			code = show(&before, &now, is_terminal, error);
			has_shown = true;
		}
		drop(&before);
		before = now;
		if (code != FC_OK || config->is_once)
			break;
		if (fflush(stdout) != 0)
			break; /* who read it is gone */
		nanosleep(&interval, NULL);
	}
	drop(&before);
	return code;
}

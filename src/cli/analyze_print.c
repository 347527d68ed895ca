/* An analysis for people: spreads, blocks, the LRU curve as bars, and the judgement in words. */
#include "base/check.h"
#include "cli/analyze_report.h"
#include "cli/table.h"
#include "config/describe.h"

#include <math.h>
#include <stdarg.h>

#define BAR_CELLS 40
#define SENTENCE_BYTES 512

/* Numbers of a spread as text; `unit_of` is what the report knows about them. */
typedef const char *(*number_text)(const struct fc_analyze_report *report, double number, char text[FC_HUMAN_BYTES]);

/* Whole but for the means of small numbers: 1.4 requests of a session are not 1. */
static const char *count_text(const struct fc_analyze_report *report, double number, char text[FC_HUMAN_BYTES])
{
	(void)report;
	if (number >= 99.95 || number == floor(number))
		return fc_human_count((uint64_t)llround(number), text);
	snprintf(text, FC_HUMAN_BYTES, "%.1f", number);
	return text;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static const char *blocks_text(const struct fc_analyze_report *report, double number, char text[FC_HUMAN_BYTES])
{
	return fc_human_bytes(fc_analyze_bytes(report, number), text);
}

/* "3 h 25 min", "17 min", "42.5 s", "12 ms". */
static const char *time_text(const struct fc_analyze_report *report, double number, char text[FC_HUMAN_BYTES])
{
	(void)report;
	uint64_t minutes = (uint64_t)(number / 60e9 + 0.5);
	if (number < 600e9)
		return fc_human_ns((uint64_t)number, text);
	if (minutes < 120)
		snprintf(text, FC_HUMAN_BYTES, "%llu min", (unsigned long long)minutes);
	else
		snprintf(text, FC_HUMAN_BYTES, "%llu h %02llu min", (unsigned long long)(minutes / 60),
			 (unsigned long long)(minutes % 60));
	return text;
}

static void spread_row(struct fc_table *table, const struct fc_analyze_report *report, const char *name,
		       const struct fc_spread *spread, number_text number)
{
	char text[FC_HUMAN_BYTES];
	double numbers[] = {spread->mean, (double)spread->p50, (double)spread->p90, (double)spread->p99,
			    (double)spread->max};
	fc_table_cell(table, "%s", name);
	for (size_t i = 0; i < fc_array_len(numbers); i++)
		fc_table_cell(table, "%s", spread->count > 0 ? number(report, numbers[i], text) : "n/a");
}

static void title_row(struct fc_table *table, const char *const *titles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fc_table_cell(table, "%s", titles[i]);
}

static int print_spreads(const struct fc_analyze_report *report, FILE *file)
{
	static const char *const titles[] = {"", "mean", "p50", "p90", "p99", "max"};
	const struct fc_analysis *analysis = report->analysis;
	struct fc_table table;
	fc_table_init(&table, "lrrrrr");
	title_row(&table, titles, fc_array_len(titles));
	spread_row(&table, report, "input tokens", &analysis->input_tokens, count_text);
	spread_row(&table, report, "  of those in the history", &analysis->history_tokens, count_text);
	spread_row(&table, report, "  new in this turn", &analysis->new_tokens, count_text);
	spread_row(&table, report, "output tokens", &analysis->output_tokens, count_text);
	spread_row(&table, report, "requests of a session", &analysis->session_requests, count_text);
	spread_row(&table, report, "KV of a session", &analysis->session_blocks, blocks_text);
	spread_row(&table, report, "reuse distance, requests", &analysis->reuse_requests, count_text);
	spread_row(&table, report, "  time", &analysis->reuse_ns, time_text);
	spread_row(&table, report, "  distinct bytes", &analysis->reuse_blocks, blocks_text);
	spread_row(&table, report, "tiered: SSD reads of a request", &analysis->request_blocks, blocks_text);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static void fact_row(struct fc_table *table, const char *name, const char *value, const char *note)
{
	fc_table_cell(table, "%s", name);
	fc_table_cell(table, "%s", value);
	fc_table_cell(table, "%s", note);
}

static void share_row(struct fc_table *table, const char *name, uint64_t part, uint64_t whole, const char *note)
{
	char text[FC_HUMAN_BYTES];
	fact_row(table, name, fc_human_percent(part, whole, text), note);
}

static void add_blocks(struct fc_table *table, const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	uint64_t references = analysis->reference_count;
	char text[FC_HUMAN_BYTES], other[FC_HUMAN_BYTES], note[128];
	fact_row(table, "block references", fc_human_count(references, text), "");
	snprintf(note, sizeof(note), "%s of KV, the working set of the whole trace",
		 blocks_text(report, (double)analysis->unique_count, other));
	fact_row(table, "distinct blocks", fc_human_count(analysis->unique_count, text), note);
	share_row(table, "  used once", analysis->once_count, analysis->unique_count, "of the distinct blocks");
	snprintf(note, sizeof(note), "of the distinct blocks, and %s of the references",
		 fc_human_percent(analysis->shared_references, references, other));
	share_row(table, "  shared by sessions", analysis->shared_blocks, analysis->unique_count, note);
	snprintf(note, sizeof(note), "of references; %s if replies are not stored",
		 fc_human_percent(analysis->list_hits, references, other));
	if (analysis->hits == analysis->list_hits)
		snprintf(note, sizeof(note), "of references");
	share_row(table, "best possible hit rate", analysis->hits, references, note);
	share_row(table, "  from other sessions", analysis->other_session_hits, analysis->hits, "of those hits");
}

static void add_windows(struct fc_table *table, const struct fc_analyze_report *report)
{
	static const char *const names[FC_WINDOW_COUNT] = {"working set of a minute", "  of ten minutes",
							   "  of an hour"};
	char text[FC_HUMAN_BYTES];
	for (int i = 0; i < FC_WINDOW_COUNT; i++) {
		bool is_known = report->analysis->span_ns >= fc_analyze_windows_ns[i];
		fact_row(table, names[i],
			 is_known ? blocks_text(report, report->analysis->window_blocks[i], text) : "n/a",
			 is_known ? "on average" : "the trace is shorter");
	}
}

static const char *per_second_text(const struct fc_analyze_report *report, double blocks, uint64_t time_ns,
				   char text[FC_HUMAN_BYTES])
{
	if (time_ns == 0)
		return "n/a";
	return blocks_text(report, blocks * 1e9 / (double)time_ns, text);
}

static void add_tier(struct fc_table *table, const struct fc_analyze_report *report)
{
	const struct fc_analysis *analysis = report->analysis;
	char text[FC_HUMAN_BYTES], other[FC_HUMAN_BYTES], name[96], note[128];
	snprintf(name, sizeof(name), "tiered, %s of DRAM", fc_human_bytes(report->config->dram_bytes, text));
	share_row(table, name, report->judgement.dram_hits, analysis->reference_count, "hit rate of DRAM alone, LRU");
	share_row(table, "  hits that come from SSD", analysis->tier_blocks, analysis->hits, "of all hits");
	snprintf(note, sizeof(note), "a second on average, %s in the busiest minute",
		 per_second_text(report, (double)analysis->minute_blocks_max,
				 fc_min_u64(fc_analyze_windows_ns[0], analysis->span_ns), other));
	fact_row(table, "  read from SSD",
		 per_second_text(report, (double)analysis->tier_blocks, analysis->span_ns, text), note);
}

static int print_facts(const struct fc_analyze_report *report, FILE *file)
{
	struct fc_table table;
	fc_table_init(&table, "lrl");
	add_blocks(&table, report);
	add_windows(&table, report);
	add_tier(&table, report);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static void bar(double share, char text[BAR_CELLS + 1])
{
	int cells = (int)(share * BAR_CELLS + 0.5);
	for (int cell = 0; cell < BAR_CELLS; cell++)
		text[cell] = cell < cells ? '#' : '.';
	text[BAR_CELLS] = '\0';
}

/* Sizes that say something new: each hits at least this much more of all references than the one before it. */
#define CURVE_STEP 0.001

static void add_curve(struct fc_table *table, const struct fc_analyze_report *report, const uint64_t *sizes,
		      size_t count)
{
	double references = (double)report->analysis->reference_count, shown = 0;
	char text[FC_HUMAN_BYTES], cells[BAR_CELLS + 1];
	for (size_t i = 0; i < count; i++) {
		uint64_t hits = fc_curve_hits(&report->analysis->curve, fc_analyze_blocks(report, sizes[i]));
		double share = (double)hits / references;
		if (share < shown + CURVE_STEP)
			continue;
		shown = share;
		bar(share, cells);
		fc_table_cell(table, "%s", fc_human_bytes(sizes[i], text));
		fc_table_cell(table, "%s", fc_human_percent(hits, report->analysis->reference_count, text));
		fc_table_cell(table, "%s", cells);
	}
}

static int print_curve(const struct fc_analyze_report *report, FILE *file)
{
	uint64_t sizes[FC_CURVE_SIZES_MAX];
	size_t count = fc_analyze_curve_sizes(report, sizes);
	struct fc_table table;
	if (count == 0)
		return FC_OK;
	fc_table_init(&table, "rrl");
	fc_table_cell(&table, "LRU cache of");
	fc_table_cell(&table, "hits");
	fc_table_cell(&table, "of all references; exact, not sampled");
	add_curve(&table, report, sizes, count);
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	fputc('\n', file);
	return code;
}

/* Where sentences go, and whether they are wrapped there. */
struct words {
	FILE *file;
	bool is_wrapped;
};

static void FC_PRINTF(2, 3) say(const struct words *words, const char *format, ...)
{
	char text[SENTENCE_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (words->is_wrapped)
		fc_describe_wrapped(text, 0, 0, words->file);
	else
		fprintf(words->file, "%s\n", text);
}

static void print_head(const struct fc_analyze_report *report, FILE *file)
{
	const struct fc_analysis *analysis = report->analysis;
	char requests[FC_HUMAN_BYTES], sessions[FC_HUMAN_BYTES], span[FC_HUMAN_BYTES], block[FC_HUMAN_BYTES];
	fprintf(file, "%s request%s in %s session%s, %s\n", fc_human_count(analysis->request_count, requests),
		plural(analysis->request_count), fc_human_count(analysis->session_count, sessions),
		plural(analysis->session_count),
		analysis->are_sessions_inferred ? "inferred from shared prefixes" : "as the trace gives them");
	fprintf(file, "%s from first to last, %s in the busiest minute, %.1f sessions active on average, %s at most\n",
		time_text(report, (double)analysis->span_ns, span),
		fc_human_count(analysis->minute_requests_max, requests), analysis->active_sessions_mean,
		fc_human_count(analysis->active_sessions_max, sessions));
	fprintf(file, "blocks of %u tokens; %s / %llu: %s a block\n", analysis->block_tokens, report->config->model,
		(unsigned long long)report->config->scale, blocks_text(report, 1, block));
	if (report->trace->format == FC_TRACE_OF_SESSIONS)
		say(&(struct words){file, true},
		    "The trace does not say when sessions began: they are arranged so that %llu run at once "
		    "(--concurrency). Times, and distances between sessions, depend on that.",
		    (unsigned long long)report->config->concurrency);
	(void)fc_trace_print_left_out(report->trace, file);
	fputc('\n', file);
}

static void print_traffic(const struct fc_analyze_report *report, const struct words *words)
{
	const struct fc_analysis *analysis = report->analysis;
	char agents[FC_HUMAN_BYTES], chats[FC_HUMAN_BYTES], once[FC_HUMAN_BYTES];
	char tokens[FC_HUMAN_BYTES], history[FC_HUMAN_BYTES], size[FC_HUMAN_BYTES];
	const uint64_t *kinds = analysis->traffic_requests;
	say(words,
	    "This is %s: of the requests, %s belong to agents (sessions that exceed %s tokens), %s to chats, %s stand "
	    "alone.",
	    fc_traffic_name(report->judgement.traffic),
	    fc_human_percent(kinds[FC_TRAFFIC_AGENT], analysis->request_count, agents),
	    fc_human_count(analysis->agent_context_tokens, tokens),
	    fc_human_percent(kinds[FC_TRAFFIC_CHAT], analysis->request_count, chats),
	    fc_human_percent(kinds[FC_TRAFFIC_ONE_SHOT], analysis->request_count, once));
	say(words,
	    "The median request adds %s tokens to a history of %s. The median session has %llu request%s and %s of KV.",
	    fc_human_count(analysis->new_tokens.p50, tokens), fc_human_count(analysis->history_tokens.p50, history),
	    (unsigned long long)analysis->session_requests.p50, plural(analysis->session_requests.p50),
	    blocks_text(report, (double)analysis->session_blocks.p50, size));
	if (analysis->hits > 0)
		say(words, "An LRU cache of %s would serve half of the reuse, one of %s nine tenths.",
		    blocks_text(report, (double)analysis->reuse_blocks.p50, agents),
		    blocks_text(report, (double)analysis->reuse_blocks.p90, chats));
}

static const char *tiering_words(enum fc_tiering tiering)
{
	switch (tiering) {
	case FC_TIERING_UNKNOWN:
		return "The trace names no blocks, so what a cache would do for it cannot be told.";
	case FC_TIERING_NO_REUSE:
		return "No cache pays: too little is used again, wherever it lies.";
	case FC_TIERING_DRAM_ENOUGH:
		return "DRAM is enough: SSD behind it or beside it adds next to nothing.";
	case FC_TIERING_DOES:
		return "Tiering would do: DRAM serves most hits, SSD the rest.";
	case FC_TIERING_DEPENDS:
		return "Whether tiering would do depends on load and drives: flatcake replay --simulate can tell.";
	case FC_TIERING_FAILS:
		break;
	}
	return "Tiering would not do: DRAM turns over before sessions come back, so that hits are reads from SSD, and "
	       "how KV lies there decides.";
}

/* What DRAM of the given size would hold, and what of it the trace can show. */
static void print_room(const struct fc_analyze_report *report, const struct words *words)
{
	const struct fc_analysis *analysis = report->analysis;
	char size[FC_HUMAN_BYTES], all[FC_HUMAN_BYTES];
	fc_human_bytes(report->config->dram_bytes, size);
	if (analysis->session_blocks.p50 > 0 && report->judgement.traffic != FC_TRAFFIC_ONE_SHOT)
		say(words, "%s holds %.1f median sessions, and %.1f are active.", size,
		    report->judgement.sessions_in_dram, analysis->active_sessions_mean);
	if (analysis->hits > 0 && analysis->unique_count <= analysis->dram_blocks)
		say(words,
		    "All KV of this trace, %s, fits into %s, so nothing has to leave it here: a longer trace of the "
		    "same traffic may need more.",
		    blocks_text(report, (double)analysis->unique_count, all), size);
}

static void print_tiering(const struct fc_analyze_report *report, const struct words *words)
{
	const struct fc_analysis *analysis = report->analysis;
	const struct fc_judgement *judgement = &report->judgement;
	char best[FC_HUMAN_BYTES], dram[FC_HUMAN_BYTES], ssd[FC_HUMAN_BYTES], size[FC_HUMAN_BYTES];
	double enough = (double)judgement->enough_blocks, active = analysis->active_sessions_mean;
	say(words, "%s", tiering_words(judgement->tiering));
	if (analysis->hits == 0)
		return;
	fc_human_bytes(report->config->dram_bytes, size);
	say(words, "Of all blocks, %s could hit; %s of DRAM alone hits %s. Behind it, SSD would serve %s of the hits.",
	    fc_human_percent(analysis->hits, analysis->reference_count, best), size,
	    fc_human_percent(judgement->dram_hits, analysis->reference_count, dram),
	    fc_human_percent(analysis->tier_blocks, analysis->hits, ssd));
	print_room(report, words);
	blocks_text(report, (double)judgement->tiering_blocks, best);
	blocks_text(report, enough, dram);
	if (judgement->traffic == FC_TRAFFIC_ONE_SHOT)
		say(words, "At this load, tiering would do from %s of DRAM on; %s would be enough alone.", best, dram);
	else
		say(words,
		    "At this load, tiering would do from %s of DRAM on; %s would be enough alone, which is %s for each "
		    "active session.",
		    best, dram, blocks_text(report, enough / active, ssd));
}

int fc_analyze_print(const struct fc_analyze_report *report, FILE *file)
{
	print_head(report, file);
	int code = print_spreads(report, file);
	fputc('\n', file);
	if (code == FC_OK)
		code = print_facts(report, file);
	fputc('\n', file);
	if (code == FC_OK)
		code = print_curve(report, file);
	struct words words = {file, true};
	print_traffic(report, &words);
	print_tiering(report, &words);
	return ferror(file) ? FC_EIO : code;
}

int fc_analyze_print_words(const struct fc_analyze_report *report, FILE *file)
{
	struct words words = {file, false};
	print_traffic(report, &words);
	print_tiering(report, &words);
	return ferror(file) ? FC_EIO : FC_OK;
}

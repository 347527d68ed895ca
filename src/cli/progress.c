/* The progress bar. The line is made by a pure function, so that it can be tested without a terminal or a clock. */
#include "cli/progress.h"

#include "cli/table.h"

#include <string.h>
#include <unistd.h>

#define BAR_CHARACTERS 30
#define REDRAW_NS 100000000ull

void fc_progress_init(struct fc_progress *progress, FILE *file, struct fc_clock clock, const char *title,
		      uint64_t total)
{
	*progress = (struct fc_progress){
		.file = isatty(fileno(file)) ? file : NULL,
		.clock = clock,
		.title = title,
		.total = total,
		.start_ns = fc_clock_now_ns(&clock),
	};
}

/* What is left if it goes on as until now; nothing in the first second, when that would be a guess. */
static void format_left(uint64_t done, uint64_t total, uint64_t elapsed_ns, char text[48])
{
	text[0] = '\0';
	if (done == 0 || done >= total || elapsed_ns < 1000000000ull)
		return;
	double left_s = (double)elapsed_ns / 1e9 * ((double)(total - done) / (double)done);
	if (left_s >= 360000)
		return;
	unsigned seconds = (unsigned)(left_s + 0.5);
	if (seconds >= 3600)
		snprintf(text, 48, "  %uh%02um left", seconds / 3600, seconds / 60 % 60);
	else if (seconds >= 60)
		snprintf(text, 48, "  %um%02us left", seconds / 60, seconds % 60);
	else
		snprintf(text, 48, "  %us left", seconds);
}

void fc_progress_text(const struct fc_progress *progress, uint64_t done, uint64_t now_ns, char *text, size_t text_bytes)
{
	double share = progress->total == 0 || done >= progress->total ? 1.0 : (double)done / (double)progress->total;
	char bar[BAR_CHARACTERS + 1], left[48], done_text[FC_HUMAN_BYTES], total_text[FC_HUMAN_BYTES];
	size_t filled = (size_t)(share * BAR_CHARACTERS);
	memset(bar, '#', filled);
	memset(bar + filled, '-', BAR_CHARACTERS - filled);
	bar[BAR_CHARACTERS] = '\0';
	format_left(done, progress->total, now_ns - progress->start_ns, left);
	snprintf(text, text_bytes, "%s  [%s]  %3.0f %%  %s of %s%s", progress->title, bar, 100 * share,
		 fc_human_count(done, done_text), fc_human_count(progress->total, total_text), left);
}

void fc_progress_set(struct fc_progress *progress, uint64_t done)
{
	if (progress->file == NULL)
		return;
	uint64_t now_ns = fc_clock_now_ns(&progress->clock);
	if (progress->is_drawn && now_ns - progress->drawn_ns < REDRAW_NS)
		return;
	char text[160];
	fc_progress_text(progress, done, now_ns, text, sizeof(text));
	fprintf(progress->file, "\r%s\033[K", text);
	fflush(progress->file);
	progress->drawn_ns = now_ns;
	progress->is_drawn = true;
}

void fc_progress_deinit(struct fc_progress *progress)
{
	if (progress->file == NULL || !progress->is_drawn)
		return;
	fputs("\r\033[K", progress->file);
	fflush(progress->file);
	progress->is_drawn = false;
}

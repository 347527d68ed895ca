/* A progress bar on a terminal:
 *
 *   replay  [#########---------------------]  31 %  9,251 of 29,843  2m14s left
 *
 * It writes to standard error, only when that is a terminal, and at most ten times a second, so callers may report
 * every step. Time comes from the caller's clock. */
#ifndef FC_CLI_PROGRESS_H
#define FC_CLI_PROGRESS_H

#include "clock/clock.h"

#include <stdbool.h>
#include <stdio.h>

struct fc_progress {
	FILE *file; /* NULL: silent */
	struct fc_clock clock;
	const char *title;
	uint64_t total;
	uint64_t start_ns;
	uint64_t drawn_ns;
	bool is_drawn;
};

/* Silent unless `file` is a terminal. */
void fc_progress_init(struct fc_progress *progress, FILE *file, struct fc_clock clock, const char *title,
		      uint64_t total);
void fc_progress_set(struct fc_progress *progress, uint64_t done);

/* Removes the bar, so that what follows starts on a clean line. */
void fc_progress_deinit(struct fc_progress *progress);

/* The line itself, without the terminal's codes. */
void fc_progress_text(const struct fc_progress *progress, uint64_t done, uint64_t now_ns, char *text,
		      size_t text_bytes);

#endif

/* What the daemon says while it runs: one line, or one journal entry, for each event.
 *
 *     fc_log_write(FC_LOG_WARNING, "client-refused", fields, 2, "client %u is refused: ...", 12), fields being
 *     {"client", FC_LOG_COUNT(12)}, {"reason", FC_LOG_TEXT("namespace")}
 *
 *     text      2026-11-30T14:07:02.120Z warning client-refused: client 12 is refused: ... client=12 reason=namespace
 *     json      {"time":"2026-...","level":"warning","kind":"client-refused","message":"...","client":12,...}
 *     journald  fields MESSAGE, PRIORITY, FLATCAKE_KIND, FLATCAKE_CLIENT, ... straight to journald's socket
 *
 * Every message has a kind, a short fixed name that rules and alerts can match. Of one kind, `burst` messages pass in
 * each interval of ten seconds; the rest is counted and told as one line when the interval is over, so that a hostile
 * client cannot fill a disk. What is quoted from outside is escaped: no control character reaches a terminal or makes a
 * second line. Keys, tokens and contents are never given to it.
 *
 * One log a process, used by one thread. A message that cannot be written is lost and counted. */
#ifndef FC_DAEMON_LOG_H
#define FC_DAEMON_LOG_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fc_log_level { FC_LOG_ERROR, FC_LOG_WARNING, FC_LOG_INFO, FC_LOG_DEBUG };
enum fc_log_format { FC_LOG_AUTO, FC_LOG_FORMAT_TEXT, FC_LOG_FORMAT_JSON, FC_LOG_FORMAT_JOURNALD };

/* A value beside the sentence. `name`: lower case letters and _. */
struct fc_log_field {
	const char *name;
	const char *text; /* NULL: `count` is the value */
	uint64_t count;
};
#define FC_LOG_TEXT(value) (value), 0
#define FC_LOG_COUNT(value) NULL, (value)

struct fc_log_opts {
	enum fc_log_format format; /* FC_LOG_AUTO: journald when standard error goes to the journal, else text */
	enum fc_log_level level;   /* what is less important is not written */
	uint32_t burst;            /* messages of one kind in ten seconds; 0: no limit */
	int fd;                    /* text and JSON go here: STDERR_FILENO */
	const char *journal_path;  /* NULL: /run/systemd/journal/socket */
	uint64_t (*now_ns)(void);  /* monotonic; NULL: CLOCK_MONOTONIC */
};

/* FC_ESYSTEM when journald is asked for and does not answer: the log then writes text. */
FC_MUST_USE int fc_log_open(const struct fc_log_opts *opts, struct fc_error *error);
/* Tells what was held back, and ends. */
void fc_log_close(void);

/* `kind` is a literal: it is kept. Before fc_log_open() messages go to standard error as text. */
void fc_log_write(enum fc_log_level level, const char *kind, const struct fc_log_field *fields, size_t field_count,
		  const char *format, ...) FC_PRINTF(5, 6);

/* Call now and then (each second): tells what was held back in intervals that are over. */
void fc_log_tick(void);

/* Messages that were held back by the limit, and that could not be written. */
void fc_log_lost(uint64_t *held_back, uint64_t *unwritten);

/* Without fields. */
#define fc_log(level, kind, ...) fc_log_write((level), (kind), NULL, 0, __VA_ARGS__)

#endif

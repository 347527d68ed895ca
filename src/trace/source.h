/* Where the text of traces comes from: files, folders, archives and standard input, compressed or not. For the readers
 * of this folder. */
#ifndef FC_TRACE_SOURCE_H
#define FC_TRACE_SOURCE_H

#include "base/error.h"

/* Most that is asked for at once: a line with its end, or a whole text. It is the one bound of what a text can make a
 * reader keep in memory, however it is packed. The largest recorded session has 4 MiB. */
#define FC_TEXT_BYTES_MAX (64ull << 20)

/* One file's text, read as it is asked for. Belongs to the walk; lives as long as the call that it was handed to. */
struct fc_text;

/* For errors: the path, for a member of an archive with the member's name behind it. */
const char *fc_text_name(const struct fc_text *text);

/* The line that starts `offset` bytes behind what was consumed, its newline included (the last may have none): 1 and
 * the line, valid until the next call, 0 at the end of the text, or FC_EINVAL (damaged), FC_ENOMEM. FC_ELIMIT, which
 * leaves the error to the caller, who knows the place: the line is longer than FC_TEXT_BYTES_MAX, known once so much of
 * it is read. */
FC_MUST_USE int fc_text_line(struct fc_text *text, uint64_t offset, const char **line, uint64_t *bytes,
			     struct fc_error *error);

/* The same for all text that was not consumed. */
FC_MUST_USE int fc_text_rest(struct fc_text *text, const char **rest, uint64_t *bytes, struct fc_error *error);

/* Lets go of bytes that one of the above returned. */
void fc_text_consume(struct fc_text *text, uint64_t bytes);

/* Called for each file: 0 to go on, 1 to stop there, negative for an error that is passed up. Need not read to the end.
 */
typedef int (*fc_source_text_cb)(void *context, struct fc_text *text, struct fc_error *error);

/* Walks all files of one path (see fc_trace_load). *ignored_count grows by the files that were passed by for their
 * names. 0, 1 when the callback stopped it, or an error. */
FC_MUST_USE int fc_source_walk(const char *path, fc_source_text_cb text_cb, void *context, uint64_t *ignored_count,
			       struct fc_error *error);

#endif

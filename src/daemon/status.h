/* A view as JSON: /v1/status, /v1/clients, /v1/namespaces, /v1/sessions, /v1/map. Numbers of bytes and counters are
 * integers, times are seconds, ids are strings; what is not known is null. */
#ifndef FC_DAEMON_STATUS_H
#define FC_DAEMON_STATUS_H

#include "daemon/text.h"
#include "daemon/view.h"

#include <jansson.h>

/* Each returns a new reference, or NULL without memory. */
json_t *fc_status_json(const struct fc_daemon_view *view);
json_t *fc_status_clients_json(const struct fc_daemon_view *view);
json_t *fc_status_namespaces_json(const struct fc_daemon_view *view);

/* At most `limit` sessions whose last use is later than `cursor` (0 at first), least recently used first. Walks through
 * them all: for people and scripts, not for every second. A session that is used meanwhile moves to the end and may
 * be seen twice, none is missed. */
json_t *fc_status_sessions_json(const struct fc_daemon_callbacks *callbacks, uint64_t limit, uint64_t cursor);

/* Every segment of every arena, written by hand since there may be a hundred thousand:
 *
 *   {"arenas":[{"medium":"ssd","bytes":N,"chunk_bytes":N},...],
 *    "sessions":["32 hexadecimal digits",...],
 *    "segments":[medium, offset, bytes, session, kept, medium, offset, ...]}
 *
 * `segments` is one flat list of five numbers each: the index into `arenas`, offset and length in bytes, the index into
 * `sessions` (-1: nobody's), 1 for what is kept and 0 for what is reserved or about to be freed. */
void fc_status_map(struct fc_text *text, const struct fc_daemon_callbacks *callbacks,
		   const struct fc_daemon_view *view);

#endif

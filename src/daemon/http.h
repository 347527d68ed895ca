/* flatcaked over HTTP: metrics, health, administration, the status page.
 *
 * libmicrohttpd without a thread of its own. The daemon's loop polls one descriptor and calls back:
 *
 *     fc_http_open(&http, &opts, &callbacks, &error)
 *     uv_poll on fc_http_fd(http), readable:                  fc_http_run(http)
 *     uv_timer after fc_http_timeout_ms(http), renewed after each run (-1: none)  fc_http_run(http)
 *     fc_http_close(http)
 *
 *     GET    /  /metrics  /healthz  /readyz  /v1/status  /v1/clients  /v1/namespaces  /v1/map
 *     GET    /v1/sessions?limit=N&cursor=C
 *     DELETE /v1/sessions/ID            POST /v1/drain
 *
 * Who may: on the loopback everybody reads; what changes something needs the token (Authorization: Bearer). Elsewhere
 * everything needs it; a browser may then send it as the password of Basic authentication, for reading only, so that no
 * other page can make the browser change something. Without a token file nothing can be changed. On the loopback the
 * Host header must name it: a page of elsewhere that had its name resolved to 127.0.0.1 reads nothing.
 *
 * Limits: connections, 16 KiB of headers, no bodies, 30 s of silence. No part of a request becomes a path of the file
 * system. Answers are made at once from a view (view.h), except that the map is at most one second old: many who look
 * cost the core no more than one. */
#ifndef FC_DAEMON_HTTP_H
#define FC_DAEMON_HTTP_H

#include "daemon/view.h"

#include <sys/socket.h>

struct fc_http;

struct fc_http_opts {
	const struct sockaddr *address;
	socklen_t address_len;
	bool is_loopback;
	const char *token_path; /* NULL: none */
	uint64_t connections_max;
	uint64_t (*now_ns)(void); /* NULL: CLOCK_MONOTONIC */
};

/* FC_EINVAL: a token file that others may read, or that holds no token; an address elsewhere without a token. FC_EBUSY:
 * the port is taken. FC_ESYSTEM, FC_ENOMEM. `callbacks` is copied. */
FC_MUST_USE int fc_http_open(struct fc_http **http, const struct fc_http_opts *opts,
			     const struct fc_daemon_callbacks *callbacks, struct fc_error *error);
int fc_http_fd(const struct fc_http *http);
uint16_t fc_http_port(const struct fc_http *http);
void fc_http_run(struct fc_http *http);
/* Milliseconds until fc_http_run() is due without the descriptor being readable, -1 for never. */
int fc_http_timeout_ms(const struct fc_http *http);
void fc_http_close(struct fc_http *http); /* NULL is allowed */

#endif

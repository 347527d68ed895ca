/* HTTP on the daemon's loop: libmicrohttpd's descriptor is polled, and a timer runs what it wants to do without one. It
 * listens from the first moment on, so that /readyz can say that arenas are being recovered. */
#include "daemon/daemon.h"

#include "base/check.h"
#include "daemon/http.h"

static void run(struct fc_daemon *daemon);

static void on_timer(uv_timer_t *timer)
{
	run(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	run(poll->data);
}

static void run(struct fc_daemon *daemon)
{
	fc_http_run(daemon->http);
	int wait_ms = fc_http_timeout_ms(daemon->http);
	if (wait_ms >= 0)
		uv_timer_start(&daemon->http_timer, on_timer, (uint64_t)wait_ms, 0);
	else
		uv_timer_stop(&daemon->http_timer);
}

int fc_daemon_open_http(struct fc_daemon *daemon, struct fc_error *error)
{
	const struct fc_daemon_settings *settings = daemon->settings;
	struct fc_daemon_callbacks callbacks;
	const struct fc_http_opts opts = {
		.address = (const struct sockaddr *)(const void *)&settings->http.address,
		.address_len = settings->http.address_len,
		.is_loopback = settings->http.is_loopback,
		.token_path = settings->config.http_token_path,
		.connections_max = settings->config.http_connections_max,
	};
	if (!settings->http.is_on)
		return FC_OK;
	int code = fc_daemon_open_snapshot(daemon, &callbacks, error);
	if (code == FC_OK)
		code = fc_http_open(&daemon->http, &opts, &callbacks, error);
	if (code != FC_OK)
		return fc_error_wrap(error, code, "%s", settings->config.http_listen);
	fc_check(uv_poll_init(&daemon->loop, &daemon->http_poll, fc_http_fd(daemon->http)) == 0);
	fc_check(uv_timer_init(&daemon->loop, &daemon->http_timer) == 0);
	daemon->http_poll.data = daemon->http_timer.data = daemon;
	fc_check(uv_poll_start(&daemon->http_poll, UV_READABLE, on_readable) == 0);
	fc_log(FC_LOG_INFO, "http", "metrics, health and the status page at port %u", fc_http_port(daemon->http));
	return FC_OK;
}

void fc_daemon_close_http(struct fc_daemon *daemon)
{
	fc_http_close(daemon->http);
	fc_snapshot_free(daemon->snapshot);
	daemon->http = NULL;
	daemon->snapshot = NULL;
}

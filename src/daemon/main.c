/* flatcaked: one store for all engine processes of a node (docs/daemon.md). */
#include "daemon/daemon.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void open_log(const struct fc_daemon_settings *settings)
{
	struct fc_log_opts opts = {
		.format = settings->log_format,
		.level = settings->log_level,
		.burst = (uint32_t)settings->config.log_burst,
		.fd = STDERR_FILENO,
	};
	struct fc_error error;
	if (fc_log_open(&opts, &error) != FC_OK)
		fc_log(FC_LOG_WARNING, "log", "%s", error.text);
}

static void open_notify(struct fc_daemon *daemon)
{
	struct fc_error error;
	if (fc_notify_open(&daemon->notify, &error) != FC_OK)
		fc_log(FC_LOG_WARNING, "notify", "%s", error.text);
}

static int serve(struct fc_daemon *daemon)
{
	struct fc_error error = {0};
	int status = EXIT_FAILURE;
	if (fc_daemon_open(daemon, &error) == FC_OK)
		status = fc_daemon_run(daemon);
	else
		fc_log(FC_LOG_ERROR, "failed", "%s", error.text);
	fc_daemon_stop_listening(daemon);
	fc_daemon_close(daemon);
	return status;
}

int main(int argc, char **argv)
{
	static struct fc_daemon_settings settings;
	static struct fc_daemon daemon = {.listen_fd = -1, .spare_fd = -1};
	int status = fc_daemon_front(argc, argv, environ, stdout, stderr, &settings);
	if (status >= 0)
		return status;
	(void)signal(SIGPIPE, SIG_IGN);
	daemon.settings = &settings;
	daemon.started_ns = fc_daemon_now_ns();
	daemon.started_at_s = (int64_t)time(NULL);
	fc_list_init(&daemon.connections);
	fc_list_init(&daemon.dirty);
	fc_list_init(&daemon.gone);
	open_log(&settings);
	open_notify(&daemon);
	status = serve(&daemon);
	fc_log(FC_LOG_INFO, "stopped", "ends with status %d", status);
	fc_notify_close(&daemon.notify);
	fc_log_close();
	fc_daemon_settings_free(&settings);
	return status;
}

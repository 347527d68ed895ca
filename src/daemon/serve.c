/* The whole life of a daemon, whoever started it. */
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

static int open_and_run(struct fc_daemon *daemon)
{
	struct fc_error error = {0};
	int status = EXIT_FAILURE;
	int code = fc_daemon_open(daemon, &error);
	if (code == FC_OK)
		status = fc_daemon_run(daemon);
	else
		fc_log(FC_LOG_ERROR, "failed", "%s", error.text);
	fc_daemon_hint(daemon, code);
	fc_daemon_stop_listening(daemon);
	fc_daemon_close(daemon);
	return status;
}

int fc_daemon_serve(const struct fc_daemon_settings *settings)
{
	static struct fc_daemon daemon;
	daemon = (struct fc_daemon){.listen_fd = -1, .spare_fd = -1, .settings = settings};
	(void)signal(SIGPIPE, SIG_IGN);
	daemon.started_ns = fc_daemon_now_ns();
	daemon.started_at_s = (int64_t)time(NULL);
	fc_list_init(&daemon.connections);
	fc_list_init(&daemon.dirty);
	fc_list_init(&daemon.gone);
	open_log(settings);
	open_notify(&daemon);
	int status = open_and_run(&daemon);
	fc_log(FC_LOG_INFO, "stopped", "ends with status %d", status);
	fc_notify_close(&daemon.notify);
	fc_log_close();
	return status;
}

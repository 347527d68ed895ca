#include "daemon/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int open_socket(struct fc_notify *notify, const char *path, struct fc_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t path_len = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || path_len >= sizeof(address.sun_path))
		return fc_error_set(error, FC_EINVAL,
				    "NOTIFY_SOCKET: \"%s\" is no path and no abstract name of at most %zu bytes", path,
				    sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, path_len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	socklen_t address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_len);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "NOTIFY_SOCKET: socket: %s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)(const void *)&address, address_len) != 0) {
		int code = fc_error_set(error, FC_ESYSTEM, "NOTIFY_SOCKET: %s: %s", path, strerror(errno));
		close(fd);
		return code;
	}
	notify->fd = fd;
	return FC_OK;
}

/* A whole number of microseconds, alone. */
static bool parse_usec(const char *text, uint64_t *usec)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > UINT64_MAX / 1000)
		return false;
	*usec = value;
	return true;
}

static int read_watchdog(struct fc_notify *notify, struct fc_error *error)
{
	const char *usec_text = getenv("WATCHDOG_USEC"), *pid_text = getenv("WATCHDOG_PID");
	uint64_t usec = 0, pid = 0;
	if (usec_text == NULL)
		return FC_OK;
	if (pid_text != NULL && (!parse_usec(pid_text, &pid) || pid != (uint64_t)getpid()))
		return FC_OK; /* meant for another process */
	if (!parse_usec(usec_text, &usec))
		return fc_error_set(error, FC_EINVAL, "WATCHDOG_USEC: \"%s\" is no number of microseconds", usec_text);
	notify->watchdog_ns = usec * 1000;
	return FC_OK;
}

int fc_notify_open(struct fc_notify *notify, struct fc_error *error)
{
	*notify = (struct fc_notify){.fd = -1};
	const char *path = getenv("NOTIFY_SOCKET");
	int code = path != NULL ? open_socket(notify, path, error) : FC_OK;
	if (code == FC_OK)
		code = read_watchdog(notify, error);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return code;
}

void fc_notify_close(struct fc_notify *notify)
{
	if (notify->fd >= 0)
		close(notify->fd);
	*notify = (struct fc_notify){.fd = -1};
}

static void tell(const struct fc_notify *notify, const char *text)
{
	if (notify->fd >= 0)
		(void)!send(notify->fd, text, strlen(text), MSG_NOSIGNAL);
}

/* A status is one line: what follows a line's end would be another message. */
static void tell_status(const struct fc_notify *notify, const char *what, const char *status)
{
	char text[512];
	int used = snprintf(text, sizeof(text), "%sSTATUS=%s", what, status);
	for (int at = (int)strlen(what); at < used && at < (int)sizeof(text) - 1; at++)
		if (text[at] == '\n')
			text[at] = ' ';
	tell(notify, text);
}

void fc_notify_ready(const struct fc_notify *notify, const char *status)
{
	tell_status(notify, "READY=1\n", status);
}

void fc_notify_status(const struct fc_notify *notify, const char *status)
{
	tell_status(notify, "", status);
}

void fc_notify_alive(const struct fc_notify *notify)
{
	tell(notify, "WATCHDOG=1");
}

void fc_notify_extend(const struct fc_notify *notify, uint64_t more_ns)
{
	char text[64];
	snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)(more_ns / 1000));
	tell(notify, text);
}

void fc_notify_stopping(const struct fc_notify *notify, const char *status)
{
	tell_status(notify, "STOPPING=1\n", status);
}

/* Telling the service manager: readiness, status, the watchdog's sign of life, the end. systemd's protocol is one
 * datagram of lines to the Unix socket that NOTIFY_SOCKET names; without that variable every call does nothing, and a
 * datagram that cannot be sent is lost, since a daemon must not stop for its supervisor's sake. */
#ifndef FC_DAEMON_NOTIFY_H
#define FC_DAEMON_NOTIFY_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct fc_notify {
	int fd;               /* connected, or -1 */
	uint64_t watchdog_ns; /* how often fc_notify_alive() is due at the latest; 0: nobody watches */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment. FC_EINVAL, FC_ESYSTEM:
 * then the notifier is usable and silent. */
FC_MUST_USE int fc_notify_open(struct fc_notify *notify, struct fc_error *error);
void fc_notify_close(struct fc_notify *notify);

/* READY=1 with a status line; call once clients are answered. */
void fc_notify_ready(const struct fc_notify *notify, const char *status);
void fc_notify_status(const struct fc_notify *notify, const char *status);
/* Call at half of watchdog_ns. */
void fc_notify_alive(const struct fc_notify *notify);
/* Start may take `more_ns` from now on: recovery of a large arena. */
void fc_notify_extend(const struct fc_notify *notify, uint64_t more_ns);
void fc_notify_stopping(const struct fc_notify *notify, const char *status);

#endif

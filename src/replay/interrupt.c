#include "replay/interrupt.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int fc_interrupt_init(struct fc_interrupt *interrupt, struct fc_error *error)
{
	sigset_t signals;
	*interrupt = (struct fc_interrupt){.fd = -1};
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	int failed = pthread_sigmask(SIG_BLOCK, &signals, &interrupt->former);
	if (failed == 0) {
		interrupt->fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
		failed = interrupt->fd < 0 ? errno : 0;
	}
	if (failed == 0)
		return FC_OK;
	return fc_error_set(error, FC_ESYSTEM, "signals: %s", strerror(failed));
}

bool fc_interrupt_is_set(struct fc_interrupt *interrupt)
{
	struct signalfd_siginfo info;
	if (!interrupt->is_set && read(interrupt->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		interrupt->is_set = true;
		fc_interrupt_deinit(interrupt);
	}
	return interrupt->is_set;
}

void fc_interrupt_deinit(struct fc_interrupt *interrupt)
{
	if (interrupt->fd < 0)
		return;
	close(interrupt->fd);
	interrupt->fd = -1;
	pthread_sigmask(SIG_SETMASK, &interrupt->former, NULL);
}

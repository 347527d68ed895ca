#define _GNU_SOURCE
#include "media/ssd_handover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int fc_ssd_handover_init(struct fc_ssd_handover *handover)
{
	handover->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (handover->event_fd < 0)
		return errno;
	fc_check(pthread_mutex_init(&handover->mutex, NULL) == 0);
	fc_list_init(&handover->ended);
	return 0;
}

void fc_ssd_handover_deinit(struct fc_ssd_handover *handover)
{
	pthread_mutex_destroy(&handover->mutex);
	(void)close(handover->event_fd);
}

void fc_ssd_move_list(struct fc_link *to, struct fc_link *from)
{
	if (fc_list_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	fc_list_init(from);
}

void fc_ssd_handover_give(struct fc_ssd_handover *handover, struct fc_link *from)
{
	const uint64_t one = 1;
	bool is_first = fc_list_is_empty(&handover->ended) && !fc_list_is_empty(from);

	fc_ssd_move_list(&handover->ended, from);
	if (is_first)
		fc_check(write(handover->event_fd, &one, sizeof(one)) == sizeof(one));
}

void fc_ssd_handover_take(struct fc_ssd_handover *handover, struct fc_ssd *ssd)
{
	struct fc_link ended, *link;
	uint64_t signal_count;

	fc_list_init(&ended);
	pthread_mutex_lock(&handover->mutex);
	if (!fc_list_is_empty(&handover->ended))
		fc_check(read(handover->event_fd, &signal_count, sizeof(signal_count)) > 0 || errno == EAGAIN ||
			 errno == EINTR);
	fc_ssd_move_list(&ended, &handover->ended);
	pthread_mutex_unlock(&handover->mutex);
	while ((link = fc_list_pop(&ended)) != NULL) {
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		fc_ssd_ended(ssd, io, io->result);
	}
}

void fc_ssd_handover_sleep(const struct fc_ssd_handover *handover, uint64_t timeout_ns)
{
	struct pollfd event = {.fd = handover->event_fd, .events = POLLIN};
	struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
				   .tv_nsec = (long)(timeout_ns % 1000000000)};

	/* An interrupted sleep is a short one. */
	(void)ppoll(&event, 1, &timeout, NULL);
}

int fc_ssd_start_thread(pthread_t *thread, void *(*main_cb)(void *context), void *context)
{
	sigset_t all, before;

	sigfillset(&all);
	fc_check(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	int failure = pthread_create(thread, NULL, main_cb, context);
	fc_check(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	return failure;
}

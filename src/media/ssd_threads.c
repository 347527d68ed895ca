/* The engine for where io_uring is refused (containers filter it, old kernels lack it): a few threads that call pread()
 * and pwrite(). They share two lists under one mutex, commands to do and commands done; done_cb is never called here
 * but by the medium's own thread, which an eventfd wakes. */
#define _GNU_SOURCE
#include "media/ssd_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define THREAD_COUNT 4

struct threads {
	int fd; /* the arena's */
	int event_fd;
	pthread_t threads[THREAD_COUNT];
	unsigned thread_count; /* that were started */
	pthread_mutex_t mutex;
	pthread_cond_t has_work; /* or is_closing */
	struct fc_link todo;
	struct fc_link ended;
	bool is_closing;
};

static int64_t run_transfer(int fd, const struct fc_io *io)
{
	struct fc_ssd_command command = fc_ssd_command_of(io);

	if (io->op == FC_IO_READ)
		return pread(fd, command.buffer, command.bytes, (off_t)command.offset);
	return pwrite(fd, command.buffer, command.bytes, (off_t)command.offset);
}

static int64_t run_command(int fd, const struct fc_io *io)
{
	int64_t result = io->op == FC_IO_SYNC ? fdatasync(fd) : run_transfer(fd, io);
	return result < 0 ? -errno : result;
}

static struct fc_io *next_command(struct threads *threads)
{
	while (fc_list_is_empty(&threads->todo) && !threads->is_closing)
		pthread_cond_wait(&threads->has_work, &threads->mutex);
	if (fc_list_is_empty(&threads->todo))
		return NULL;
	return fc_container_of(fc_list_pop(&threads->todo), struct fc_io, link);
}

static void *thread_main(void *argument)
{
	struct threads *threads = argument;
	const uint64_t one = 1;
	struct fc_io *io;

	pthread_mutex_lock(&threads->mutex);
	while ((io = next_command(threads)) != NULL) {
		pthread_mutex_unlock(&threads->mutex);
		int64_t result = run_command(threads->fd, io);
		pthread_mutex_lock(&threads->mutex);
		io->result = result;
		bool is_first = fc_list_is_empty(&threads->ended);
		fc_list_push(&threads->ended, &io->link);
		if (is_first)
			fc_check(write(threads->event_fd, &one, sizeof(one)) == sizeof(one));
	}
	pthread_mutex_unlock(&threads->mutex);
	return NULL;
}

static void threads_close(struct fc_ssd *ssd)
{
	struct threads *threads = ssd->engine_state;

	pthread_mutex_lock(&threads->mutex);
	threads->is_closing = true;
	pthread_cond_broadcast(&threads->has_work);
	pthread_mutex_unlock(&threads->mutex);
	for (unsigned i = 0; i < threads->thread_count; i++)
		fc_check(pthread_join(threads->threads[i], NULL) == 0);
	pthread_cond_destroy(&threads->has_work);
	pthread_mutex_destroy(&threads->mutex);
	(void)close(threads->event_fd);
	free(threads);
}

/* Signals are the program's own threads' business. Fewer threads than wanted are slower, none are a failure. */
static int start_threads(struct threads *threads)
{
	sigset_t all, before;
	int failure = 0;

	sigfillset(&all);
	fc_check(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	while (threads->thread_count < THREAD_COUNT && failure == 0) {
		failure = pthread_create(&threads->threads[threads->thread_count], NULL, thread_main, threads);
		if (failure == 0)
			threads->thread_count++;
	}
	fc_check(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	return threads->thread_count > 0 ? 0 : failure;
}

static int threads_open(struct fc_ssd *ssd)
{
	struct threads *threads = calloc(1, sizeof(*threads));

	if (threads == NULL)
		return ENOMEM;
	threads->fd = ssd->file.fd;
	threads->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (threads->event_fd < 0) {
		int failure = errno;
		free(threads);
		return failure;
	}
	fc_check(pthread_mutex_init(&threads->mutex, NULL) == 0);
	fc_check(pthread_cond_init(&threads->has_work, NULL) == 0);
	fc_list_init(&threads->todo);
	fc_list_init(&threads->ended);
	ssd->engine_state = threads;
	int start_failure = start_threads(threads);
	if (start_failure != 0)
		threads_close(ssd);
	return start_failure;
}

static void threads_start(struct fc_ssd *ssd, struct fc_io *io)
{
	struct threads *threads = ssd->engine_state;

	pthread_mutex_lock(&threads->mutex);
	fc_list_push(&threads->todo, &io->link);
	pthread_cond_signal(&threads->has_work);
	pthread_mutex_unlock(&threads->mutex);
}

static struct fc_io *next_ended(struct threads *threads)
{
	pthread_mutex_lock(&threads->mutex);
	struct fc_link *link = fc_list_pop(&threads->ended);
	pthread_mutex_unlock(&threads->mutex);
	return link == NULL ? NULL : fc_container_of(link, struct fc_io, link);
}

static void threads_poll(struct fc_ssd *ssd)
{
	struct threads *threads = ssd->engine_state;
	uint64_t signal_count;
	struct fc_io *io;

	/* First the signal, then the list: what is pushed in between is found now and leaves a signal too many. */
	fc_check(read(threads->event_fd, &signal_count, sizeof(signal_count)) > 0 || errno == EAGAIN || errno == EINTR);
	while ((io = next_ended(threads)) != NULL)
		fc_ssd_ended(ssd, io, io->result);
}

static void threads_wait(struct fc_ssd *ssd, uint64_t timeout_ns)
{
	struct threads *threads = ssd->engine_state;
	struct pollfd event = {.fd = threads->event_fd, .events = POLLIN};
	struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
				   .tv_nsec = (long)(timeout_ns % 1000000000)};

	/* An interrupted sleep is a short one. */
	(void)ppoll(&event, 1, &timeout, NULL);
	threads_poll(ssd);
}

static int threads_event_fd(struct fc_ssd *ssd)
{
	struct threads *threads = ssd->engine_state;
	return threads->event_fd;
}

/* Nothing to register with: every piece of memory is as fast. */
static int threads_register_buffers(struct fc_ssd *ssd, void *memory, uint64_t bytes)
{
	(void)ssd;
	(void)memory;
	(void)bytes;
	return 0;
}

const struct fc_ssd_engine fc_ssd_engine_threads = {
	.name = "threads",
	.open = threads_open,
	.start = threads_start,
	.poll = threads_poll,
	.wait = threads_wait,
	.event_fd = threads_event_fd,
	.register_buffers = threads_register_buffers,
	.close = threads_close,
};

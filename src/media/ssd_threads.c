/* The engine for where io_uring is refused (containers filter it, old kernels lack it): a few threads that call pread()
 * and pwrite(). They share two lists under one mutex, commands to do and commands done; done_cb is never called here
 * but by the medium's own thread, which an eventfd wakes. A thread whose call does not return holds up nothing but what
 * waits for a thread. */
#define _GNU_SOURCE
#include "media/ssd_handover.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define THREAD_COUNT 4

struct threads {
	const struct fc_arena_file *file;
	pthread_t threads[THREAD_COUNT];
	unsigned thread_count; /* that were started */
	struct fc_ssd_handover handover;
	pthread_cond_t has_work; /* or is_closing */
	struct fc_link todo;
	bool is_closing;
};

static int64_t run_transfer(int fd, const struct fc_io *io)
{
	struct fc_ssd_command command = fc_ssd_command_of(io);

	if (io->op == FC_IO_READ)
		return pread(fd, command.buffer, command.bytes, (off_t)command.offset);
	return pwrite(fd, command.buffer, command.bytes, (off_t)command.offset);
}

static int64_t run_command(const struct fc_arena_file *file, struct fc_io *io)
{
	int64_t result = fc_ssd_check_write(file, io);
	if (result != 0)
		return result;
	result = io->op == FC_IO_SYNC ? fdatasync(file->fd) : run_transfer(file->fd, io);
	return fc_ssd_check_sync(file, io, result < 0 ? -errno : result);
}

static struct fc_io *next_command(struct threads *threads)
{
	while (fc_list_is_empty(&threads->todo) && !threads->is_closing)
		pthread_cond_wait(&threads->has_work, &threads->handover.mutex);
	if (fc_list_is_empty(&threads->todo))
		return NULL;
	return fc_container_of(fc_list_pop(&threads->todo), struct fc_io, link);
}

static void *thread_main(void *argument)
{
	struct threads *threads = argument;
	struct fc_link ended;
	struct fc_io *io;

	fc_list_init(&ended);
	pthread_mutex_lock(&threads->handover.mutex);
	while ((io = next_command(threads)) != NULL) {
		pthread_mutex_unlock(&threads->handover.mutex);
		io->result = run_command(threads->file, io);
		fc_list_push(&ended, &io->link);
		pthread_mutex_lock(&threads->handover.mutex);
		fc_ssd_handover_give(&threads->handover, &ended);
	}
	pthread_mutex_unlock(&threads->handover.mutex);
	return NULL;
}

static void threads_close(struct fc_ssd *ssd)
{
	struct threads *threads = ssd->engine_state;

	pthread_mutex_lock(&threads->handover.mutex);
	threads->is_closing = true;
	pthread_cond_broadcast(&threads->has_work);
	pthread_mutex_unlock(&threads->handover.mutex);
	for (unsigned i = 0; i < threads->thread_count; i++)
		fc_check(pthread_join(threads->threads[i], NULL) == 0);
	pthread_cond_destroy(&threads->has_work);
	fc_ssd_handover_deinit(&threads->handover);
	free(threads);
}

/* Fewer threads than wanted are slower, none are a failure. */
static int start_threads(struct threads *threads)
{
	int failure = 0;

	while (threads->thread_count < THREAD_COUNT && failure == 0) {
		failure = fc_ssd_start_thread(&threads->threads[threads->thread_count], thread_main, threads);
		if (failure == 0)
			threads->thread_count++;
	}
	return threads->thread_count > 0 ? 0 : failure;
}

static int threads_open(struct fc_ssd *ssd)
{
	struct threads *threads = calloc(1, sizeof(*threads));

	if (threads == NULL)
		return ENOMEM;
	threads->file = &ssd->file;
	int failure = fc_ssd_handover_init(&threads->handover);
	if (failure != 0) {
		free(threads);
		return failure;
	}
	fc_check(pthread_cond_init(&threads->has_work, NULL) == 0);
	fc_list_init(&threads->todo);
	ssd->engine_state = threads;
	failure = start_threads(threads);
	if (failure != 0)
		threads_close(ssd);
	return failure;
}

static void threads_start(struct fc_ssd *ssd, struct fc_io *io)
{
	struct threads *threads = ssd->engine_state;

	pthread_mutex_lock(&threads->handover.mutex);
	fc_list_push(&threads->todo, &io->link);
	pthread_cond_signal(&threads->has_work);
	pthread_mutex_unlock(&threads->handover.mutex);
}

static void threads_poll(struct fc_ssd *ssd)
{
	struct threads *threads = ssd->engine_state;
	fc_ssd_handover_take(&threads->handover, ssd);
}

static void threads_wait(struct fc_ssd *ssd, uint64_t timeout_ns)
{
	struct threads *threads = ssd->engine_state;
	fc_ssd_handover_sleep(&threads->handover, timeout_ns);
	fc_ssd_handover_take(&threads->handover, ssd);
}

static int threads_event_fd(struct fc_ssd *ssd)
{
	const struct threads *threads = ssd->engine_state;
	return threads->handover.event_fd;
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

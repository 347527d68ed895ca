/* The io_uring engine. An entry into the kernel may block there for as long as a file system or a device does not
 * answer (FUSE, NFS, anything frozen), whatever is asked of io_uring, so the ring has a thread of its own, the
 * submitter, and nobody else enters the kernel for it:
 *
 *     medium's thread                                      submitter
 *     start()        -> starting
 *     poll(), wait() -> todo, wake_fd if it sleeps    -->   takes todo, enters: submits all, waits for one to end
 *     take           <- ended, event_fd (ssd_handover.h) <- gives what has ended
 *
 * While the submitter is held up, commands wait for it and what has ended is not seen; the medium's thread goes on.
 * The submitter sleeps in the kernel only, for its ring: a read of wake_fd is one of its commands.
 *
 * What it does to spend little CPU on a byte:
 *  - Registered buffers: the kernel does not pin pages for each command. Memory is registered piecewise into a table of
 *    fixed size that starts empty.
 *  - Deferred task work: completions are handled in batches when the submitter enters the kernel anyway.
 *  - One hand-over, one wake and one entry for many commands.
 *
 * The file is not registered, though that would save a look-up for each command: a registered file belongs to the ring,
 * and the kernel takes a ring down at its leisure (after an RCU grace period at least; seconds on a busy machine, also
 * after kill -9). Until then nobody could lock the arena, unmount its file system or have its space back. Without it
 * each command holds the file for as long as it runs, which is what the lock has to wait for.
 *
 * The ring belongs to one thread (IORING_SETUP_SINGLE_ISSUER), which is not the one that opens the medium. So it is
 * made disabled, and enabled by the submitter. Kernels that do not know a flag get the next simpler ring. */
#define _GNU_SOURCE
#include "media/ssd_handover.h"

#include <errno.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BUFFERS_MAX 64
#define BUFFER_BYTES_MAX ((uint64_t)1 << 30) /* the kernel's limit */
#define WAKE_ENTRIES 1u                      /* of the ring, for the read of wake_fd */
#define PAUSE_NS 1000000L                    /* when the kernel has no memory for an entry */

/* Linux 6.0 and 6.1 brought these; named here for older headers. */
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

struct registration {
	void *memory;
	uint64_t bytes;
	int failure; /* an errno */
	bool is_done;
};

struct uring {
	/* the medium's thread */
	struct fc_link starting; /* not handed over yet */
	const struct fc_arena_file *file;
	int wake_fd;
	pthread_t thread;
	struct fc_ssd_handover handover;

	/* under its mutex */
	struct fc_link todo;
	bool is_asleep; /* or about to enter the kernel: what is added needs a wake */
	bool is_closing;
	struct registration *registration; /* asked for, and not done */
	pthread_cond_t registered;

	/* the submitter */
	struct io_uring ring;
	bool is_enabled;
	bool has_buffer_table;
	bool is_wake_armed;
	uint64_t wake_count; /* what the read of wake_fd brings */
	uint32_t buffer_count;
	uint32_t buffer_hit; /* where the last command's buffer was found */
	struct iovec buffers[BUFFERS_MAX];
};

/* A ring may get the addresses of one that is gone. liburing maps and unmaps them by system calls of its own, so that
 * nothing that watches threads, nor the language, sees the old ring's accesses before the new one's: this counts those
 * that have gone. */
static atomic_uint rings_gone;

static void ring_exit(struct uring *uring)
{
	atomic_fetch_add_explicit(&rings_gone, 1, memory_order_release);
	io_uring_queue_exit(&uring->ring);
}

static int ring_init(struct uring *uring, uint32_t depth)
{
	static const unsigned flag_sets[] = {
		IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG,
		IORING_SETUP_R_DISABLED | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		0,
	};
	int result = -EINVAL;

	for (size_t i = 0; i < fc_array_len(flag_sets) && result == -EINVAL; i++) {
		struct io_uring_params params = {.flags = flag_sets[i]};
		result = io_uring_queue_init_params(depth, &uring->ring, &params);
		uring->is_enabled = (flag_sets[i] & IORING_SETUP_R_DISABLED) == 0;
	}
	(void)atomic_load_explicit(&rings_gone, memory_order_acquire);
	return -result;
}

/* By system call, since the shared library of liburing 2.3 lacks io_uring_enable_rings(). */
static void enable(struct uring *uring)
{
	if (!uring->is_enabled)
		fc_check(syscall(SYS_io_uring_register, uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) ==
			 0);
	uring->is_enabled = true;
}

/* ---- buffers ------------------------------------------------------------------------------------------------------
 */

/* Returns 0 or an errno. */
static int register_memory(struct uring *uring, void *memory, uint64_t bytes)
{
	if (!uring->has_buffer_table)
		return EOPNOTSUPP;
	for (uint64_t at = 0; at < bytes; at += BUFFER_BYTES_MAX) {
		uint32_t index = uring->buffer_count;
		if (index == BUFFERS_MAX)
			return ENOSPC;
		struct iovec piece = {.iov_base = (uint8_t *)memory + at,
				      .iov_len = fc_min_u64(bytes - at, BUFFER_BYTES_MAX)};
		__u64 tag = 0;
		int result = io_uring_register_buffers_update_tag(&uring->ring, index, &piece, &tag, 1);
		if (result < 0)
			return -result;
		uring->buffers[index] = piece;
		uring->buffer_count++;
	}
	return 0;
}

static bool is_inside(const struct iovec *piece, const struct fc_ssd_command *command)
{
	uintptr_t begin = (uintptr_t)piece->iov_base;
	uintptr_t at = (uintptr_t)command->buffer;
	return at >= begin && at - begin <= piece->iov_len && command->bytes <= piece->iov_len - (at - begin);
}

/* The registered buffer that holds all of the command's memory, or -1. */
static int find_buffer(struct uring *uring, const struct fc_ssd_command *command)
{
	if (uring->buffer_count > 0 && is_inside(&uring->buffers[uring->buffer_hit], command))
		return (int)uring->buffer_hit;
	for (uint32_t i = 0; i < uring->buffer_count; i++) {
		if (is_inside(&uring->buffers[i], command)) {
			uring->buffer_hit = i;
			return (int)i;
		}
	}
	return -1;
}

/* ---- commands -----------------------------------------------------------------------------------------------------
 */

static void prepare(struct uring *uring, struct io_uring_sqe *sqe, int fd, const struct fc_io *io)
{
	if (io->op == FC_IO_SYNC) {
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		return;
	}
	struct fc_ssd_command command = fc_ssd_command_of(io);
	int buffer = find_buffer(uring, &command);
	if (io->op == FC_IO_READ && buffer >= 0)
		io_uring_prep_read_fixed(sqe, fd, command.buffer, command.bytes, command.offset, buffer);
	else if (io->op == FC_IO_READ)
		io_uring_prep_read(sqe, fd, command.buffer, command.bytes, command.offset);
	else if (buffer >= 0)
		io_uring_prep_write_fixed(sqe, fd, command.buffer, command.bytes, command.offset, buffer);
	else
		io_uring_prep_write(sqe, fd, command.buffer, command.bytes, command.offset);
}

/* A write that must not be sent has ended. */
static void prepare_all(struct uring *uring, struct fc_link *commands, struct fc_link *ended)
{
	struct fc_link *link;

	while ((link = fc_list_pop(commands)) != NULL) {
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		io->result = fc_ssd_check_write(uring->file, io);
		if (io->result != 0) {
			fc_list_push(ended, &io->link);
			continue;
		}
		struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
		fc_check(sqe != NULL); /* the ring has room for queue_depth */
		prepare(uring, sqe, uring->file->fd, io);
		io_uring_sqe_set_data(sqe, io);
	}
}

/* ---- the submitter ------------------------------------------------------------------------------------------------
 */

static void arm_wake(struct uring *uring)
{
	if (uring->is_wake_armed)
		return;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
	fc_check(sqe != NULL);
	io_uring_prep_read(sqe, uring->wake_fd, &uring->wake_count, sizeof(uring->wake_count), 0);
	io_uring_sqe_set_data(sqe, uring);
	uring->is_wake_armed = true;
}

/* Hands over all that is prepared and sleeps until something has ended, unless something has. What the kernel may
 * answer: all else (another thread's ring, a bad descriptor) is a mistake of this program. What was not taken stays
 * queued for the next entry. */
static void enter(struct uring *uring, const struct fc_link *ended)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int result = io_uring_submit_and_wait(&uring->ring, fc_list_is_empty(ended));

	fc_check(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY || result == -ENOMEM);
	if (result == -EAGAIN || result == -ENOMEM)
		(void)nanosleep(&pause, NULL);
}

static void reap(struct uring *uring, struct fc_link *ended)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned count = 0;

	io_uring_for_each_cqe(&uring->ring, head, cqe)
	{
		struct fc_io *io = io_uring_cqe_get_data(cqe);
		count++;
		if ((void *)io == uring) {
			uring->is_wake_armed = false;
			continue;
		}
		io->result = fc_ssd_check_sync(uring->file, io, cqe->res);
		fc_list_push(ended, &io->link);
	}
	io_uring_cq_advance(&uring->ring, count);
}

static void register_asked(struct uring *uring)
{
	struct registration *registration = uring->registration;

	if (registration == NULL)
		return;
	registration->failure = register_memory(uring, registration->memory, registration->bytes);
	registration->is_done = true;
	uring->registration = NULL;
	pthread_cond_signal(&uring->registered);
}

static void *submitter_main(void *context)
{
	struct uring *uring = context;
	struct fc_link commands, ended;

	fc_list_init(&commands);
	fc_list_init(&ended);
	enable(uring);
	pthread_mutex_lock(&uring->handover.mutex);
	for (;;) {
		uring->is_asleep = false;
		fc_ssd_handover_give(&uring->handover, &ended);
		register_asked(uring);
		if (uring->is_closing)
			break;
		fc_ssd_move_list(&commands, &uring->todo);
		uring->is_asleep = true;
		pthread_mutex_unlock(&uring->handover.mutex);
		arm_wake(uring);
		prepare_all(uring, &commands, &ended);
		enter(uring, &ended);
		reap(uring, &ended);
		pthread_mutex_lock(&uring->handover.mutex);
	}
	pthread_mutex_unlock(&uring->handover.mutex);
	return NULL;
}

/* ---- the medium's thread ------------------------------------------------------------------------------------------
 */

/* With the mutex held. */
static void wake(struct uring *uring)
{
	const uint64_t one = 1;

	if (uring->is_asleep)
		fc_check(write(uring->wake_fd, &one, sizeof(one)) == sizeof(one));
	uring->is_asleep = false; /* one wake is enough */
}

static void hand_over(struct uring *uring)
{
	if (fc_list_is_empty(&uring->starting))
		return;
	pthread_mutex_lock(&uring->handover.mutex);
	fc_ssd_move_list(&uring->todo, &uring->starting);
	wake(uring);
	pthread_mutex_unlock(&uring->handover.mutex);
}

static void uring_start(struct fc_ssd *ssd, struct fc_io *io)
{
	struct uring *uring = ssd->engine_state;
	fc_list_push(&uring->starting, &io->link);
}

static void uring_poll(struct fc_ssd *ssd)
{
	struct uring *uring = ssd->engine_state;
	hand_over(uring);
	fc_ssd_handover_take(&uring->handover, ssd);
}

static void uring_wait(struct fc_ssd *ssd, uint64_t timeout_ns)
{
	struct uring *uring = ssd->engine_state;
	hand_over(uring);
	fc_ssd_handover_sleep(&uring->handover, timeout_ns);
	fc_ssd_handover_take(&uring->handover, ssd);
}

static int uring_event_fd(struct fc_ssd *ssd)
{
	const struct uring *uring = ssd->engine_state;
	return uring->handover.event_fd;
}

/* The ring is the submitter's alone. */
static int uring_register_buffers(struct fc_ssd *ssd, void *memory, uint64_t bytes)
{
	struct uring *uring = ssd->engine_state;
	struct registration registration = {.memory = memory, .bytes = bytes};

	pthread_mutex_lock(&uring->handover.mutex);
	uring->registration = &registration;
	wake(uring);
	while (!registration.is_done)
		pthread_cond_wait(&uring->registered, &uring->handover.mutex);
	pthread_mutex_unlock(&uring->handover.mutex);
	return registration.failure;
}

/* ---- open and close -----------------------------------------------------------------------------------------------
 */

static void free_uring(struct uring *uring)
{
	pthread_cond_destroy(&uring->registered);
	fc_ssd_handover_deinit(&uring->handover);
	(void)close(uring->wake_fd);
	free(uring);
}

static struct uring *make_uring(const struct fc_arena_file *file)
{
	struct uring *uring = calloc(1, sizeof(*uring));

	if (uring == NULL)
		return NULL;
	uring->file = file;
	uring->wake_fd = eventfd(0, EFD_CLOEXEC); /* it blocks, so that a read waits for a wake */
	if (uring->wake_fd < 0 || fc_ssd_handover_init(&uring->handover) != 0) {
		if (uring->wake_fd >= 0)
			(void)close(uring->wake_fd);
		free(uring);
		return NULL;
	}
	fc_check(pthread_cond_init(&uring->registered, NULL) == 0);
	fc_list_init(&uring->starting);
	fc_list_init(&uring->todo);
	return uring;
}

static int uring_open(struct fc_ssd *ssd)
{
	struct uring *uring = make_uring(&ssd->file);

	if (uring == NULL)
		return errno;
	int failure = ring_init(uring, ssd->media.queue_depth + WAKE_ENTRIES);
	if (failure == 0) {
		uring->has_buffer_table = io_uring_register_buffers_sparse(&uring->ring, BUFFERS_MAX) == 0;
		failure = fc_ssd_start_thread(&uring->thread, submitter_main, uring);
		if (failure != 0)
			ring_exit(uring);
	}
	if (failure != 0) {
		free_uring(uring);
		return failure;
	}
	ssd->engine_state = uring;
	return 0;
}

/* Nothing is in flight, so nothing holds up the submitter. */
static void uring_close(struct fc_ssd *ssd)
{
	struct uring *uring = ssd->engine_state;

	pthread_mutex_lock(&uring->handover.mutex);
	uring->is_closing = true;
	wake(uring);
	pthread_mutex_unlock(&uring->handover.mutex);
	fc_check(pthread_join(uring->thread, NULL) == 0);
	ring_exit(uring);
	free_uring(uring);
}

const struct fc_ssd_engine fc_ssd_engine_uring = {
	.name = "io_uring",
	.open = uring_open,
	.start = uring_start,
	.poll = uring_poll,
	.wait = uring_wait,
	.event_fd = uring_event_fd,
	.register_buffers = uring_register_buffers,
	.close = uring_close,
};

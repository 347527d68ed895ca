/* The io_uring engine. What it does to spend little CPU on a byte:
 *  - Registered buffers: the kernel does not pin pages for each command. Memory is registered piecewise into a table of
 *    fixed size that starts empty.
 *  - Deferred task work: completions are handled in batches when this thread enters the kernel anyway.
 *  - One entry for many commands: start() only fills the queue, poll() and wait() hand it over.
 *
 * The file is not registered, though that would save a look-up for each command: a registered file belongs to the ring,
 * and the kernel takes a ring down at its leisure (after an RCU grace period at least; seconds on a busy machine, also
 * after kill -9). Until then nobody could lock the arena, unmount its file system or have its space back. Without it
 * each command holds the file for as long as it runs, which is what the lock has to wait for.
 *
 * The ring belongs to one thread (IORING_SETUP_SINGLE_ISSUER), which is not the one that opens the medium. So it is
 * made disabled, and enabled by whoever uses it first. Kernels that do not know a flag get the next simpler ring. */
#define _GNU_SOURCE
#include "media/ssd_internal.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUFFERS_MAX 64
#define BUFFER_BYTES_MAX ((uint64_t)1 << 30) /* the kernel's limit */

/* Linux 6.0 and 6.1 brought these; named here for older headers. */
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

struct uring {
	struct io_uring ring;
	bool is_enabled;
	bool has_buffer_table;
	int event_fd;
	bool is_signalling; /* from when somebody asks for the descriptor: signals cost */
	uint32_t buffer_count;
	uint32_t buffer_hit; /* where the last command's buffer was found */
	struct iovec buffers[BUFFERS_MAX];
};

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
	return -result;
}

static int uring_open(struct fc_ssd *ssd)
{
	struct uring *uring = calloc(1, sizeof(*uring));

	if (uring == NULL)
		return ENOMEM;
	uring->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int failure = uring->event_fd < 0 ? errno : ring_init(uring, ssd->media.queue_depth);
	if (failure != 0) {
		if (uring->event_fd >= 0)
			(void)close(uring->event_fd);
		free(uring);
		return failure;
	}
	uring->has_buffer_table = io_uring_register_buffers_sparse(&uring->ring, BUFFERS_MAX) == 0;
	ssd->engine_state = uring;
	return 0;
}

static void uring_close(struct fc_ssd *ssd)
{
	struct uring *uring = ssd->engine_state;
	io_uring_queue_exit(&uring->ring);
	(void)close(uring->event_fd);
	free(uring);
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

static int uring_register_buffers(struct fc_ssd *ssd, void *memory, uint64_t bytes)
{
	struct uring *uring = ssd->engine_state;

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

static void uring_start(struct fc_ssd *ssd, struct fc_io *io)
{
	struct uring *uring = ssd->engine_state;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

	fc_check(sqe != NULL); /* the ring has room for queue_depth */
	prepare(uring, sqe, ssd->file.fd, io);
	io_uring_sqe_set_data(sqe, io);
}

static bool has_deferred_work(const struct uring *uring)
{
	unsigned flags = __atomic_load_n(uring->ring.sq.kflags, __ATOMIC_RELAXED);
	return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/* What the kernel may answer to an entry; all else (another thread's ring, a bad descriptor) is a mistake of this
 * program. What was not taken stays queued for the next entry. */
static void check_entered(int result)
{
	fc_check(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY || result == -ETIME ||
		 result == -ENOMEM);
}

static void reap(struct fc_ssd *ssd, struct uring *uring)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned count = 0;

	io_uring_for_each_cqe(&uring->ring, head, cqe)
	{
		fc_ssd_ended(ssd, io_uring_cqe_get_data(cqe), cqe->res);
		count++;
	}
	io_uring_cq_advance(&uring->ring, count);
}

/* The descriptor is emptied between the entry and the look at the ring: what ends earlier is seen by the look, what
 * ends later makes it readable again. */
static void uring_poll(struct fc_ssd *ssd)
{
	struct uring *uring = ssd->engine_state;
	uint64_t signal_count;

	enable(uring);
	if (io_uring_sq_ready(&uring->ring) > 0)
		check_entered(io_uring_submit(&uring->ring));
	if (uring->is_signalling)
		fc_check(read(uring->event_fd, &signal_count, sizeof(signal_count)) > 0 || errno == EAGAIN ||
			 errno == EINTR);
	if (has_deferred_work(uring))
		check_entered(io_uring_get_events(&uring->ring));
	reap(ssd, uring);
}

static void uring_wait(struct fc_ssd *ssd, uint64_t timeout_ns)
{
	struct uring *uring = ssd->engine_state;
	struct __kernel_timespec timeout = {.tv_sec = (int64_t)(timeout_ns / 1000000000),
					    .tv_nsec = (int64_t)(timeout_ns % 1000000000)};
	struct io_uring_cqe *cqe = NULL;

	enable(uring);
	check_entered(io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1, &timeout, NULL));
	reap(ssd, uring);
}

/* The ring's own descriptor can be polled as well, but kernels before 6.2 may not show deferred work on it. */
static int uring_event_fd(struct fc_ssd *ssd)
{
	struct uring *uring = ssd->engine_state;

	if (!uring->is_signalling)
		uring->is_signalling = io_uring_register_eventfd(&uring->ring, uring->event_fd) == 0;
	return uring->is_signalling ? uring->event_fd : uring->ring.ring_fd;
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

/* One I/O at a time, waited for: what every test of a medium needs. */
#ifndef FC_TESTS_MEDIA_MEDIUM_IO_H
#define FC_TESTS_MEDIA_MEDIUM_IO_H

#include <stdbool.h>

#include "media/media.h"

struct medium_io {
	struct fc_io io;
	unsigned done_count;
};

static inline void medium_io_done(struct fc_io *io)
{
	struct medium_io *test_io = fc_container_of(io, struct medium_io, io);
	test_io->done_count++;
}

static inline void medium_io_init(struct medium_io *test_io, enum fc_io_op op, uint64_t offset, void *buffer,
				  uint64_t bytes)
{
	*test_io = (struct medium_io){.io = {.op = op, .offset = offset, .buffer = buffer, .bytes = bytes}};
	test_io->io.done_cb = medium_io_done;
}

static inline int64_t medium_run(struct fc_media *media, enum fc_io_op op, uint64_t offset, void *buffer,
				 uint64_t bytes)
{
	struct medium_io test_io;

	medium_io_init(&test_io, op, offset, buffer, bytes);
	fc_media_submit(media, &test_io.io);
	fc_check(test_io.done_count == 0);
	for (int tries = 0; test_io.done_count == 0; tries++) {
		fc_check(tries < 2000);
		fc_media_wait(media, 1000000000);
	}
	fc_check(test_io.done_count == 1);
	return test_io.io.result;
}

#endif

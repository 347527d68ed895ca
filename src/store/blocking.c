#include "store/blocking.h"

#include "base/check.h"

#define WAIT_NS 1000000ull

struct wait_io {
	struct fc_io io;
	bool is_done;
};

static void on_done(struct fc_io *io)
{
	fc_container_of(io, struct wait_io, io)->is_done = true;
}

int fc_store_read(struct fc_media *media, uint64_t offset, uint64_t bytes, uint8_t *buffer, struct fc_error *error)
{
	struct wait_io wait = {
		.io = {.op = FC_IO_READ, .offset = offset, .bytes = bytes, .buffer = buffer, .done_cb = on_done},
	};
	fc_media_submit(media, &wait.io);
	while (!wait.is_done)
		if (fc_media_poll(media) == 0)
			fc_media_wait(media, WAIT_NS);
	return wait.io.result == (int64_t)bytes ? FC_OK : fc_io_explain(NULL, &wait.io, error);
}

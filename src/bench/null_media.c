#include "bench/null_media.h"

#include "base/check.h"

#include <string.h>

static void null_submit(struct fc_media *media, struct fc_io *io)
{
	struct fc_null_media *null = fc_container_of(media, struct fc_null_media, media);
	if (io->op == FC_IO_READ)
		memset(io->buffer, 0, io->bytes);
	io->result = (int64_t)io->bytes;
	fc_list_push(&null->done, &io->link);
}

/* Only what waits now: a callback that submits the next I/O must not keep poll() here for ever. */
static unsigned null_poll(struct fc_media *media)
{
	struct fc_null_media *null = fc_container_of(media, struct fc_null_media, media);
	struct fc_link *last = null->done.prev;
	unsigned count = 0;
	for (bool is_last = fc_list_is_empty(&null->done); !is_last; count++) {
		struct fc_link *link = fc_list_pop(&null->done);
		is_last = link == last;
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		io->done_cb(io);
	}
	return count;
}

void fc_null_media_init(struct fc_null_media *null, uint64_t bytes)
{
	static const struct fc_media_ops ops = {.submit = null_submit, .poll = null_poll};
	*null = (struct fc_null_media){
		.media =
			{
				.ops = &ops,
				.bytes = bytes,
				.align = 4096,
				.transfer_bytes_max = 1u << 20,
				.queue_depth = 64,
				.is_durable = true,
				.is_new = true,
			},
	};
	fc_list_init(&null->done);
}

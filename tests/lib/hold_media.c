#include "lib/hold_media.h"

static struct hold_media *hold_of(struct fc_media *media)
{
	return fc_container_of(media, struct hold_media, media);
}

static void hold_submit(struct fc_media *media, struct fc_io *io)
{
	struct hold_media *hold = hold_of(media);
	if (!hold->is_holding[io->op]) {
		fc_media_submit(hold->inner, io);
		return;
	}
	fc_list_push(&hold->held, &io->link);
	hold->held_count++;
}

static unsigned hold_poll(struct fc_media *media)
{
	struct hold_media *hold = hold_of(media);
	unsigned count = fc_media_poll(hold->inner);
	hold->media.counters = hold->inner->counters;
	return count;
}

static int hold_register_buffers(struct fc_media *media, void *memory, uint64_t bytes)
{
	struct fc_media *inner = hold_of(media)->inner;
	return inner->ops->register_buffers(inner, memory, bytes);
}

static void hold_close(struct fc_media *media)
{
	fc_check(fc_list_is_empty(&hold_of(media)->held));
}

void hold_media_init(struct hold_media *hold, struct fc_media *inner)
{
	static const struct fc_media_ops ops = {
		.submit = hold_submit,
		.poll = hold_poll,
		.register_buffers = hold_register_buffers,
		.close = hold_close,
	};
	*hold = (struct hold_media){.media = *inner, .inner = inner};
	hold->media.ops = &ops;
	fc_list_init(&hold->held);
}

void hold_media_release(struct hold_media *hold)
{
	struct fc_link *link;
	hold->is_holding[FC_IO_READ] = hold->is_holding[FC_IO_WRITE] = hold->is_holding[FC_IO_SYNC] = false;
	while ((link = fc_list_pop(&hold->held)) != NULL)
		fc_media_submit(hold->inner, fc_container_of(link, struct fc_io, link));
	hold->held_count = 0;
}

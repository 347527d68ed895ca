#include "lib/fake_media.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR_BYTES 512u
#define STILL_ON_ITS_WAY UINT64_MAX

/* io->medium_private: [0] the operation's number, [1] its fake_write, or for a sync the number of operations before it
 */

static struct fake_media *fake_of(struct fc_media *media)
{
	return fc_container_of(media, struct fake_media, media);
}

static void check_contract(const struct fake_media *fake, const struct fc_io *io)
{
	fc_check(io->done_cb != NULL && !fc_link_is_linked(&io->link));
	if (io->op == FC_IO_SYNC)
		return;
	uint32_t align = fake->media.align;
	fc_check(io->offset % align == 0 && io->bytes % align == 0 && (uintptr_t)io->buffer % align == 0);
	fc_check(io->bytes > 0 && io->offset <= fake->media.bytes && io->bytes <= fake->media.bytes - io->offset);
}

static struct fake_write *note_write(struct fake_media *fake, const struct fc_io *io)
{
	if (fake->durable_image == NULL)
		return NULL;
	struct fake_write *write = calloc(1, sizeof(*write) + io->bytes);
	fc_check(write != NULL);
	write->offset = io->offset;
	write->bytes = io->bytes;
	write->ended_at = STILL_ON_ITS_WAY;
	memcpy(write->data, io->buffer, io->bytes);
	fc_list_push(&fake->unsynced, &write->link);
	return write;
}

static void fake_submit(struct fc_media *media, struct fc_io *io)
{
	struct fake_media *fake = fake_of(media);
	check_contract(fake, io);
	fake->op_count++;
	if (fake->die_at != 0 && fake->op_count >= fake->die_at)
		fake->is_dead = true;
	io->medium_private[0] = fake->op_count;
	io->medium_private[1] = fake->op_count;
	if (io->op == FC_IO_WRITE)
		io->medium_private[1] = fake->is_dead ? 0 : (uintptr_t)note_write(fake, io);
	fc_list_push(&fake->pending, &io->link);
}

static void make_durable(struct fake_media *fake, uint64_t submitted_at)
{
	if (fake->durable_image == NULL)
		return;
	fc_list_for_each_safe(link, &fake->unsynced)
	{
		struct fake_write *write = fc_container_of(link, struct fake_write, link);
		if (write->ended_at >= submitted_at)
			continue;
		memcpy(fake->durable_image + write->offset, write->data, write->bytes);
		fc_list_remove(&write->link);
		free(write);
	}
}

static bool is_to_fail(const struct fake_media *fake, const struct fc_io *io)
{
	uint64_t number = io->medium_private[0];
	if (io->op == FC_IO_READ && fake->bad_bytes > 0 && io->offset < fake->bad_offset + fake->bad_bytes &&
	    fake->bad_offset < io->offset + io->bytes)
		return true;
	return fake->fail_at != 0 && number >= fake->fail_at && number - fake->fail_at < fake->fail_count;
}

/* A write that fails has done its first half, and nobody can tell. */
static int64_t fail(struct fake_media *fake, struct fc_io *io)
{
	uint64_t done_bytes = fc_align_down(io->bytes / 2, fake->media.align);
	fake->media.counters.errors++;
	io->failure = "a fault of the test";
	if (io->op == FC_IO_SYNC)
		return FC_EIO;
	if (io->op == FC_IO_READ)
		memcpy(io->buffer, fake->image + io->offset, done_bytes);
	else
		memcpy(fake->image + io->offset, io->buffer, done_bytes);
	struct fake_write *write = io->op == FC_IO_WRITE ? (struct fake_write *)(uintptr_t)io->medium_private[1] : NULL;
	if (write != NULL)
		write->bytes = done_bytes, write->ended_at = fake->op_count;
	return fake->is_short ? (int64_t)done_bytes : FC_EIO;
}

static int64_t do_io(struct fake_media *fake, struct fc_io *io)
{
	struct fc_media_counters *counters = &fake->media.counters;
	switch (io->op) {
	case FC_IO_READ:
		memcpy(io->buffer, fake->image + io->offset, io->bytes);
		counters->read_commands++;
		counters->bytes_read += io->bytes;
		break;
	case FC_IO_WRITE:
		memcpy(fake->image + io->offset, io->buffer, io->bytes);
		if (io->medium_private[1] != 0)
			((struct fake_write *)(uintptr_t)io->medium_private[1])->ended_at = fake->op_count;
		counters->write_commands++;
		counters->bytes_written += io->bytes;
		break;
	case FC_IO_SYNC:
		make_durable(fake, io->medium_private[1]);
		counters->sync_commands++;
		break;
	}
	return (int64_t)io->bytes;
}

static void shuffle(struct fake_media *fake, struct fc_link *list)
{
	if (fake->shuffle_seed == 0)
		return;
	struct fc_link mixed;
	fc_list_init(&mixed);
	struct fc_link *link;
	while ((link = fc_list_pop(list)) != NULL) {
		struct fc_link *place = &mixed;
		for (uint64_t steps = fc_random_split(&fake->shuffle_seed) % 8; steps > 0; steps--)
			place = place->prev;
		fc_list_insert_before(place, link);
	}
	while ((link = fc_list_pop(&mixed)) != NULL)
		fc_list_push(list, link);
}

static unsigned fake_poll(struct fc_media *media)
{
	struct fake_media *fake = fake_of(media);
	struct fc_link ending;
	struct fc_link *link;
	unsigned count = 0;
	fc_list_init(&ending);
	while ((link = fc_list_pop(&fake->pending)) != NULL)
		fc_list_push(&ending, link);
	shuffle(fake, &ending);
	for (; (link = fc_list_pop(&ending)) != NULL; count++) {
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		if (fake->is_dead)
			io->result = FC_EIO;
		else
			io->result = is_to_fail(fake, io) ? fail(fake, io) : do_io(fake, io);
		io->done_cb(io);
	}
	return count;
}

static int fake_register_buffers(struct fc_media *media, void *memory, uint64_t bytes)
{
	(void)media, (void)memory, (void)bytes;
	return 0;
}

static void fake_close(struct fc_media *media)
{
	struct fake_media *fake = fake_of(media);
	struct fc_link *link;
	fc_check(fc_list_is_empty(&fake->pending));
	while ((link = fc_list_pop(&fake->unsynced)) != NULL)
		free(fc_container_of(link, struct fake_write, link));
	free(fake->image);
	free(fake->durable_image);
	free(fake);
}

static const struct fc_media_ops fake_ops = {
	.submit = fake_submit,
	.poll = fake_poll,
	.register_buffers = fake_register_buffers,
	.close = fake_close,
};

struct fake_media *fake_media_new(uint64_t bytes, uint32_t align, bool is_durable)
{
	struct fake_media *fake = calloc(1, sizeof(*fake));
	fc_check(fake != NULL);
	fake->media = (struct fc_media){
		.ops = &fake_ops,
		.name = "the test's arena",
		.bytes = bytes,
		.align = align,
		.transfer_bytes_max = bytes,
		.queue_depth = 64,
		.is_durable = is_durable,
		.is_new = true,
	};
	fake->image = calloc(1, bytes);
	fake->durable_image = is_durable ? calloc(1, bytes) : NULL;
	fc_check(fake->image != NULL && (!is_durable || fake->durable_image != NULL));
	fc_list_init(&fake->unsynced);
	fc_list_init(&fake->pending);
	return fake;
}

static struct fake_media *successor(const struct fake_media *old, const uint8_t *image, uint64_t bytes)
{
	struct fake_media *fake = fake_media_new(bytes, old->media.align, old->durable_image != NULL);
	fake->shuffle_seed = old->shuffle_seed;
	if (old->durable_image == NULL)
		return fake;
	fake->media.is_new = false;
	memcpy(fake->image, image, fc_min_u64(bytes, old->media.bytes));
	memcpy(fake->durable_image, fake->image, bytes);
	return fake;
}

static void replay_write(uint8_t *image, const struct fake_write *write, struct fc_random *random)
{
	enum { KEEP, DROP, TEAR } fate = (int)fc_random_below(random, 3);
	for (uint64_t done = 0; done < write->bytes; done += SECTOR_BYTES)
		if (fate == KEEP || (fate == TEAR && fc_random_below(random, 2) == 0))
			memcpy(image + write->offset + done, write->data + done,
			       fc_min_u64(SECTOR_BYTES, write->bytes - done));
}

struct fake_media *fake_media_crash(const struct fake_media *old, uint64_t seed)
{
	struct fake_media *fake = successor(old, old->durable_image, old->media.bytes);
	struct fc_random random;
	fc_random_init(&random, seed);
	if (old->durable_image == NULL)
		return fake;
	fc_list_for_each(link, &old->unsynced)
	{
		replay_write(fake->image, fc_container_of(link, struct fake_write, link), &random);
	}
	memcpy(fake->durable_image, fake->image, fake->media.bytes);
	return fake;
}

struct fake_media *fake_media_reopen(const struct fake_media *old, uint64_t bytes)
{
	fc_check(fc_list_is_empty(&old->pending));
	return successor(old, old->image, bytes == 0 ? old->media.bytes : bytes);
}

void fake_media_close(struct fake_media *media)
{
	if (media != NULL)
		fake_close(&media->media);
}

#include "cio/stream.h"

#include "base/check.h"

void fc_stream_init(struct fc_stream *stream, const struct fc_stream_opts *opts, uint8_t *window)
{
	*stream =
		(struct fc_stream){.opts = *opts, .window = window, .slot_bytes = opts->window_bytes / FC_STREAM_SLOTS};
	for (unsigned i = 0; i < FC_STREAM_SLOTS; i++) {
		stream->slots[i].stream = stream;
		stream->slots[i].memory = window + i * stream->slot_bytes;
	}
}

void fc_stream_deinit(struct fc_stream *stream)
{
	fc_check(!fc_stream_is_moving(stream));
	for (unsigned i = 0; i < FC_STREAM_SLOTS; i++) {
		struct fc_slot *slot = &stream->slots[i];
		fc_part_deinit(&slot->part, stream->opts.alloc);
		fc_alloc_free(stream->opts.alloc, slot->ios, slot->io_room * sizeof(*slot->ios));
		fc_alloc_free(stream->opts.alloc, slot->copies, slot->copy_room * sizeof(*slot->copies));
	}
	fc_plan_deinit(&stream->plan);
}

static void on_io(struct fc_io *io)
{
	struct fc_slot_io *slot_io = fc_container_of(io, struct fc_slot_io, io);
	struct fc_slot *slot = slot_io->slot;
	slot->stream->completions++;
	if (io->result != (int64_t)io->bytes) {
		slot->has_failed = true;
		if (slot_io->run < slot->part.run_count)
			slot->part.runs[slot_io->run].is_bad = true;
	}
	if (--slot->ios_open == 0)
		slot->stream->on_moved(slot);
}

int fc_slot_add_io(struct fc_slot *slot, enum fc_io_op op, uint64_t offset, uint64_t bytes, uint8_t *buffer,
		   uint32_t run)
{
	const struct fc_stream_opts *opts = &slot->stream->opts;
	uint64_t commands = (bytes + opts->transfer_bytes - 1) / opts->transfer_bytes;
	if (slot->io_count + commands > slot->io_room) {
		uint64_t room = fc_max_u64(slot->io_count + commands, slot->io_room * 2);
		struct fc_slot_io *ios =
			fc_alloc_grow(opts->alloc, slot->ios, slot->io_room * sizeof(*ios), room * sizeof(*ios));
		if (ios == NULL)
			return FC_ENOMEM;
		slot->ios = ios;
		slot->io_room = room;
	}
	for (uint64_t done = 0; done < bytes; done += opts->transfer_bytes) {
		struct fc_slot_io *slot_io = &slot->ios[slot->io_count++];
		*slot_io = (struct fc_slot_io){.slot = slot, .run = run};
		slot_io->io = (struct fc_io){
			.op = op,
			.offset = offset + done,
			.bytes = fc_min_u64(opts->transfer_bytes, bytes - done),
			.buffer = buffer + done,
			.done_cb = on_io,
		};
	}
	return FC_OK;
}

void fc_slot_move(struct fc_slot *slot, struct fc_media *media)
{
	fc_check(slot->io_count > 0 && slot->ios_open == 0);
	slot->state = FC_SLOT_MOVING;
	slot->has_failed = false;
	slot->ios_open = slot->io_count;
	slot->stream->commands += slot->io_count;
	for (uint64_t i = 0; i < slot->io_count; i++)
		fc_media_submit(media, &slot->ios[i].io);
}

static void on_batch(struct fc_copy_batch *batch)
{
	struct fc_slot *slot = fc_container_of(batch, struct fc_slot, batch);
	slot->stream->completions++;
	slot->stream->on_copied(slot);
}

void fc_slot_copy(struct fc_slot *slot, enum fc_copy_direction direction, struct fc_copy *copies, uint64_t count)
{
	slot->state = FC_SLOT_COPYING;
	slot->batch = (struct fc_copy_batch){
		.direction = direction,
		.copies = copies,
		.copy_count = count,
		.done_cb = on_batch,
	};
	fc_device_submit(slot->stream->opts.device, &slot->batch);
}

bool fc_stream_is_moving(const struct fc_stream *stream)
{
	for (unsigned i = 0; i < FC_STREAM_SLOTS; i++)
		if (stream->slots[i].state != FC_SLOT_FREE)
			return true;
	return false;
}

#include "cio/stream.h"

#include "base/plant.h"
#include "base/check.h"

/* The physical block of most devices, whatever they allow commands to be aligned to. */
#define DEVICE_BLOCK_BYTES 4096u

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

void fc_stream_begin(struct fc_stream *stream, void *job, const struct fc_sched_item *load, bool has_commands)
{
	fc_check(!stream->is_busy && !fc_stream_is_moving(stream));
	stream->is_busy = true;
	stream->job = job;
	stream->commands = 0;
	if (has_commands)
		fc_gate_open(stream->opts.gate, &stream->line, load);
}

void fc_stream_end(struct fc_stream *stream)
{
	if (fc_link_is_linked(&stream->line.link))
		fc_gate_close(&stream->line);
	stream->is_busy = false;
	stream->job = NULL;
}

/* Many an error is of the moment: a link that was reset, a command that the device lost. One that comes twice is told.
 */
static void read_again(struct fc_slot_io *slot_io)
{
	struct fc_stream *stream = slot_io->slot->stream;
	slot_io->is_second = true;
	stream->commands++;
	fc_gate_add(&stream->line, &slot_io->io);
	fc_gate_send(&stream->line, slot_io->io.bytes);
}

static void on_io(struct fc_io *io)
{
	struct fc_slot_io *slot_io = fc_container_of(io, struct fc_slot_io, io);
	struct fc_slot *slot = slot_io->slot;
	slot->stream->completions++;
	fc_gate_ended(&slot->stream->line, io);
	bool is_short_allowed = fc_is_planted(FC_PLANT_SHORT_READ) && io->op == FC_IO_READ && io->result >= 0;
	if (io->result != (int64_t)io->bytes && !is_short_allowed) {
		if (io->op == FC_IO_READ && !slot_io->is_second) {
			read_again(slot_io);
			return;
		}
		slot_io->is_bad = true;
		slot->failure = fc_io_code(io);
		slot->failed = io;
	}
	if (--slot->ios_open == 0)
		slot->stream->on_moved(slot);
}

const struct fc_gate_line *fc_stream_line_of(const struct fc_io *io)
{
	if (io->done_cb != on_io)
		return NULL;
	const struct fc_slot_io *slot_io = fc_container_of(io, struct fc_slot_io, io);
	return &slot_io->slot->stream->line;
}

/* How much of what is left goes into one command. Commands end at whole blocks of the device where they can: one that
 * begins inside a block and is as large as the device takes reaches it in two pieces. */
static uint64_t command_bytes(uint64_t transfer_bytes, uint64_t offset, uint64_t left_bytes)
{
	if (left_bytes <= transfer_bytes)
		return left_bytes;
	uint64_t end = fc_align_down(offset + transfer_bytes, DEVICE_BLOCK_BYTES);
	return transfer_bytes >= 2 * DEVICE_BLOCK_BYTES ? end - offset : transfer_bytes;
}

int fc_slot_add_io(struct fc_slot *slot, enum fc_io_op op, uint64_t offset, uint64_t bytes, uint8_t *buffer)
{
	uint64_t transfer_bytes = slot->stream->opts.transfer_bytes;
	for (uint64_t done = 0, part; done < bytes; done += part) {
		int code = fc_alloc_reserve(slot->stream->opts.alloc, (void **)&slot->ios, &slot->io_room,
					    slot->io_count + 1, sizeof(*slot->ios));
		if (code != FC_OK)
			return code;
		part = command_bytes(transfer_bytes, offset + done, bytes - done);
		struct fc_slot_io *slot_io = &slot->ios[slot->io_count++];
		*slot_io = (struct fc_slot_io){.slot = slot};
		slot_io->io = (struct fc_io){
			.op = op,
			.offset = offset + done,
			.bytes = part,
			.buffer = buffer + done,
			.done_cb = on_io,
		};
	}
	return FC_OK;
}

void fc_slot_move(struct fc_slot *slot)
{
	struct fc_stream *stream = slot->stream;
	uint64_t bytes = 0;
	fc_check(slot->io_count > 0 && slot->ios_open == 0);
	slot->state = FC_SLOT_MOVING;
	slot->failure = FC_OK;
	for (uint64_t i = 0; i < slot->io_count; i++)
		slot->ios[i].is_second = slot->ios[i].is_bad = false;
	slot->ios_open = slot->io_count;
	stream->commands += slot->io_count;
	for (uint64_t i = 0; i < slot->io_count; i++) {
		bytes += slot->ios[i].io.bytes;
		fc_gate_add(&stream->line, &slot->ios[i].io);
	}
	fc_gate_send(&stream->line, bytes);
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

bool fc_stream_is_copying(const struct fc_stream *stream)
{
	for (unsigned i = 0; i < FC_STREAM_SLOTS; i++)
		if (stream->slots[i].state == FC_SLOT_COPYING)
			return true;
	return false;
}

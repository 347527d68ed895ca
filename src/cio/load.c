#include "cio/load.h"

#include "base/plant.h"
#include "base/check.h"
#include "format/checksum.h"

static void fill_slots(struct fc_load_job *job);

static void end(struct fc_load_job *job)
{
	struct fc_stream *stream = job->stream;
	if (job->is_stopping && job->code == FC_OK)
		job->code = FC_ECANCELED;
	job->commands = stream->commands;
	fc_stream_end(stream);
	job->ended_cb(job);
}

static void end_if_idle(struct fc_load_job *job)
{
	bool is_over = job->is_stopping || job->code != FC_OK || job->is_planned_out;
	if (is_over && !fc_stream_is_moving(job->stream))
		end(job);
}

/* ---- damage ---- */

static void note_bad(struct fc_load_job *job, const struct fc_part *part, uint64_t copy, bool is_checksum)
{
	const struct fc_origin *origin = &part->origins[copy];
	const struct fc_span *span = &job->plan.path->spans[origin->span];
	job->code = FC_ECORRUPT;
	if (job->bad_count == FC_BAD_MAX)
		return;
	job->bad[job->bad_count++] = (struct fc_bad_slice){
		.placed = span->placed,
		.entry = span->entry_first + (origin->block - span->block_first),
		.is_checksum = is_checksum,
	};
}

/* Whether a command that failed was to bring some of these bytes of the slot. */
static bool is_missing(const struct fc_slot *slot, const void *memory, uint64_t bytes)
{
	uintptr_t begin = (uintptr_t)memory;
	for (uint64_t i = 0; i < slot->io_count; i++) {
		uintptr_t read_begin = (uintptr_t)slot->ios[i].io.buffer;
		if (slot->ios[i].is_bad && begin < read_begin + slot->ios[i].io.bytes && read_begin < begin + bytes)
			return true;
	}
	return false;
}

/* One report per span: cutting its session at the first bad block takes the rest along. */
static void note_unread(struct fc_load_job *job, const struct fc_slot *slot)
{
	uint32_t last_span = UINT32_MAX;
	for (uint64_t i = 0; i < slot->part.copy_count; i++) {
		const struct fc_origin *origin = &slot->part.origins[i];
		const struct fc_copy *copy = &slot->part.copies[i];
		if (origin->span == last_span ||
		    !(is_missing(slot, copy->flat, copy->bytes) || is_missing(slot, copy->checksum, FC_CHECKSUM_BYTES)))
			continue;
		last_span = origin->span;
		note_bad(job, &slot->part, i, false);
	}
}

/* ---- the two slots ---- */

/* Reads may end out of order; layers are announced in order, and so slots become free in order. */
static void slot_is_done(struct fc_load_job *job, struct fc_slot *slot)
{
	slot->state = FC_SLOT_WAITING;
	for (;;) {
		slot = &job->stream->slots[job->next_done % FC_STREAM_SLOTS];
		if (job->next_done == job->next_slot || slot->state != FC_SLOT_WAITING)
			break;
		slot->state = FC_SLOT_FREE;
		job->next_done++;
		if (job->code == FC_OK && !job->is_stopping &&
		    (slot->part.is_last_of_layer || fc_is_planted(FC_PLANT_EARLY_LAYER)))
			job->layer_cb(job, slot->part.layer);
	}
	fill_slots(job);
	end_if_idle(job);
}

static void on_moved(struct fc_slot *slot)
{
	struct fc_load_job *job = slot->stream->job;
	/* Whoever stopped the job may have left it, and the path with it. */
	if (slot->failure != FC_OK && !job->is_stopping)
		note_unread(job, slot);
	if (job->code != FC_OK || job->is_stopping)
		slot_is_done(job, slot);
	else
		fc_slot_copy(slot, FC_COPY_SCATTER, slot->part.copies, slot->part.copy_count);
}

/* Bytes can be wrong on their way and right where they lie. */
static void read_again(struct fc_slot *slot)
{
	slot->is_second = true;
	slot->copies_done = 0;
	if (slot->io_count > 0)
		fc_slot_move(slot);
	else
		fc_slot_copy(slot, FC_COPY_SCATTER, slot->part.copies, slot->part.copy_count);
}

static void on_copied(struct fc_slot *slot)
{
	struct fc_load_job *job = slot->stream->job;
	if (slot->batch.result != FC_OK) {
		job->code = slot->batch.result;
	} else if (slot->batch.bad_first < slot->batch.copy_count && !fc_is_planted(FC_PLANT_SKIP_CHECKSUM)) {
		if (!slot->is_second && !job->is_stopping) {
			read_again(slot);
			return;
		}
		/* The rest of the part is checked too, so that one match afterwards sees all of the damage in it. */
		uint64_t bad = slot->copies_done + slot->batch.bad_first;
		note_bad(job, &slot->part, bad, true);
		slot->copies_done = bad + 1;
		if (slot->copies_done < slot->part.copy_count) {
			fc_slot_copy(slot, FC_COPY_SCATTER, slot->part.copies + slot->copies_done,
				     slot->part.copy_count - slot->copies_done);
			return;
		}
	}
	job->flickers += slot->is_second && slot->copies_done == 0 && slot->batch.result == FC_OK;
	slot_is_done(job, slot);
}

static int add_reads(struct fc_load_job *job, struct fc_slot *slot)
{
	slot->io_count = 0;
	for (uint32_t i = 0; i < slot->part.run_count; i++) {
		const struct fc_run *run = &slot->part.runs[i];
		int code = fc_slot_add_io(slot, FC_IO_READ, run->offset, run->bytes, slot->memory + run->stage_offset);
		if (code != FC_OK)
			return code;
		job->bytes_read += run->bytes;
	}
	job->planned_runs += slot->part.run_count;
	return FC_OK;
}

static void note_staging(struct fc_load_job *job)
{
	const struct fc_slot *slots = job->stream->slots;
	uint64_t bytes = 0;
	uint32_t layers = 0, layer = UINT32_MAX;
	for (unsigned i = 0; i < FC_STREAM_SLOTS; i++) {
		if (slots[i].state == FC_SLOT_FREE || slots[i].part.run_count == 0)
			continue;
		bytes += slots[i].part.stage_bytes;
		layers += slots[i].part.layer != layer;
		layer = slots[i].part.layer;
	}
	job->staged_bytes_max = fc_max_u64(job->staged_bytes_max, bytes);
	fc_check(layers <= FC_WINDOW_LAYERS && bytes <= job->stream->opts.window_bytes);
	job->staged_layers_max = layers > job->staged_layers_max ? layers : job->staged_layers_max;
}

static int fill_slot(struct fc_load_job *job, struct fc_slot *slot)
{
	int code = fc_plan_next(&job->stream->plan, &slot->part);
	if (code == FC_ENOENT) {
		job->is_planned_out = true;
		return FC_OK;
	}
	if (code == FC_OK)
		code = add_reads(job, slot);
	if (code != FC_OK)
		return code;
	fc_part_bind(&slot->part, slot->memory);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		job->bytes_wanted[medium] += slot->part.bytes_wanted[medium];
	job->next_slot++;
	slot->copies_done = 0;
	slot->is_second = false;
	if (slot->io_count > 0)
		fc_slot_move(slot);
	else
		fc_slot_copy(slot, FC_COPY_SCATTER, slot->part.copies, slot->part.copy_count);
	note_staging(job);
	return FC_OK;
}

static void fill_slots(struct fc_load_job *job)
{
	while (job->code == FC_OK && !job->is_stopping && !job->is_planned_out) {
		struct fc_slot *slot = &job->stream->slots[job->next_slot % FC_STREAM_SLOTS];
		bool is_busy_too = fc_is_planted(FC_PLANT_BUSY_SLOT) && slot->state == FC_SLOT_COPYING;
		if (slot->state != FC_SLOT_FREE && !is_busy_too)
			return;
		job->code = fill_slot(job, slot);
	}
}

int fc_load_job_start(struct fc_load_job *job, struct fc_stream *stream, struct fc_error *error)
{
	job->code = FC_OK;
	job->bad_count = job->flickers = 0;
	job->is_stopping = job->is_planned_out = false;
	job->next_slot = job->next_done = 0;
	job->bytes_wanted[FC_MEMORY] = job->bytes_wanted[FC_SSD] = 0;
	job->bytes_read = job->planned_runs = job->commands = job->staged_bytes_max = 0;
	job->staged_layers_max = 0;
	job->stream = stream;
	job->plan.slot_bytes = stream->slot_bytes;
	job->plan.is_by_piece = stream->opts.device->takes_pieces;
	int code = fc_plan_start(&stream->plan, stream->opts.alloc, &job->plan, error);
	if (code != FC_OK)
		return code;
	fc_stream_begin(stream, job, job->place, job->plan.path->bytes[FC_SSD] > 0);
	stream->on_moved = on_moved;
	stream->on_copied = on_copied;
	fill_slots(job);
	if (fc_stream_is_moving(stream))
		return FC_OK;
	fc_stream_end(stream);
	return fc_error_set(error, job->code, "load: %s", fc_code_text(job->code));
}

void fc_load_job_stop(struct fc_load_job *job)
{
	job->is_stopping = true;
}

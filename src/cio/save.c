#include "cio/save.h"

#include "base/plant.h"
#include "base/check.h"
#include "format/checksum.h"

#include <string.h>

/* Small layers are put together into commands of about this size, as much as keeps a device busy. */
#define FILL_BYTES (8ull << 20)

/* ---- what one slot is filled with ---- */

/* The layer area under construction. */
struct filling {
	struct fc_save_job *job;
	struct fc_slot *slot;
	const struct fc_placed *placed;
	uint8_t *base; /* of the area in the slot or in the memory arena */
	uint64_t gather_count, flat_count;
	/* where the source block was found last */
	uint32_t source_span;
	struct fc_layer_area source_area;
	uint32_t source_area_of; /* placed segment that source_area describes; UINT32_MAX: none */
};

static bool is_on_device(const struct fc_save_job *job, uint32_t group, uint64_t block)
{
	if (job->target == NULL)
		return false;
	const struct fc_slots *slots = &job->target->slots[group];
	return block >= slots->first_block && block - slots->first_block < slots->count;
}

struct source {
	uint8_t *slice;
	uint8_t *checksum;
};

static struct source source_in(struct filling *filling, const struct fc_placed *placed,
			       const struct fc_layer_area *area, uint64_t entry)
{
	const struct fc_range *range = fc_shape_range_of(placed->shape, entry);
	struct fc_range_area where = fc_range_area_in(filling->job->geometry, placed->shape, area, range);
	uint8_t *base = filling->job->memory_map + fc_gva_offset(placed->base);
	uint64_t position = entry - range->entry_first;
	return (struct source){
		.slice = base + where.slice_offset + position * where.slice_bytes,
		.checksum = base + where.checksum_offset + position * FC_CHECKSUM_BYTES,
	};
}

static int find_source(struct filling *filling, uint32_t group, uint64_t block, struct source *source)
{
	const struct fc_path *sources = filling->job->sources;
	for (uint32_t tried = 0; tried < sources->span_count; tried++) {
		uint32_t number = (filling->source_span + tried) % sources->span_count;
		const struct fc_span *span = &sources->spans[number];
		if (span->group != group || block < span->block_first || block - span->block_first >= span->count)
			continue;
		const struct fc_placed *placed = &sources->placed[span->placed];
		if (fc_gva_medium(placed->base) != FC_MEMORY)
			return FC_EINVAL;
		filling->source_span = number;
		if (filling->source_area_of != span->placed) {
			fc_layer_seek(filling->job->geometry, placed->shape, placed->header_bytes, placed->align,
				      filling->job->area.layer, &filling->source_area);
			filling->source_area_of = span->placed;
		}
		*source = source_in(filling, placed, &filling->source_area,
				    span->entry_first + block - span->block_first);
		return FC_OK;
	}
	return FC_EINVAL;
}

static int original_source(struct filling *filling, uint64_t entry, struct source *source)
{
	const struct fc_placed *original = filling->job->original;
	if (filling->source_area_of == UINT32_MAX) {
		fc_layer_seek(filling->job->geometry, original->shape, original->header_bytes, original->align,
			      filling->job->area.layer, &filling->source_area);
		filling->source_area_of = 0;
	}
	*source = source_in(filling, original, &filling->source_area, entry);
	return FC_OK;
}

/* Gathers stand at the front of the slot's copies, flat copies at the back. */
static void add_gather(struct filling *filling, const struct fc_copy *copy)
{
	filling->slot->copies[filling->gather_count++] = *copy;
}

static void add_flat(struct filling *filling, const struct fc_copy *copy, const struct source *source)
{
	struct fc_copy flat = *copy;
	flat.slot_memory = copy->flat;
	flat.flat = source->slice;
	flat.paged = NULL;
	flat.checksum = (uint32_t *)(void *)source->checksum;
	memcpy(copy->checksum, source->checksum, FC_CHECKSUM_BYTES);
	filling->slot->copies[filling->slot->copy_room - ++filling->flat_count] = flat;
}

static struct fc_key key_of(const struct filling *filling, uint32_t group, uint64_t block, uint64_t entry)
{
	const struct fc_save_job *job = filling->job;
	if (job->keys == NULL)
		return fc_catalog_segment_key(filling->placed->segment, entry);
	return job->keys[fc_group_key_position(fc_group_span(job->geometry, group), block)];
}

/* The layer that is gathered: the one that is being written. */
static uint32_t layer_of(const struct fc_save_job *job, const struct fc_range *range)
{
	const uint64_t *slice_bytes = job->geometry->groups[range->group].slice_bytes;
	uint32_t layer = job->area.layer;
	for (uint32_t other = 0; other < job->geometry->layer_count && fc_is_planted(FC_PLANT_SWAP_LAYERS); other++)
		if (other != layer && slice_bytes[other] == slice_bytes[layer])
			return other;
	return layer;
}

static int add_block(struct filling *filling, const struct fc_range *range, const struct fc_range_area *where,
		     uint64_t j)
{
	struct fc_save_job *job = filling->job;
	uint64_t block = range->block_first + j;
	uint64_t entry = range->entry_first + j;
	struct fc_copy copy = {
		.flat = filling->base + (where->slice_offset - job->area.offset) + j * where->slice_bytes,
		.bytes = where->slice_bytes,
		.seed = fc_slice_seed(key_of(filling, range->group, block, entry), range->group, job->area.layer),
		.checksum = (uint32_t *)(void *)(filling->base + (where->checksum_offset - job->area.offset) +
						 j * FC_CHECKSUM_BYTES),
	};
	if (is_on_device(job, range->group, block)) {
		const struct fc_slots *slots = &job->target->slots[range->group];
		copy.paged = &job->target->layers[range->group * job->geometry->layer_count + layer_of(job, range)];
		copy.slot = slots->slots[block - slots->first_block];
		add_gather(filling, &copy);
		return FC_OK;
	}
	struct source source;
	int code = job->original != NULL ? original_source(filling, entry, &source)
					 : find_source(filling, range->group, block, &source);
	if (code == FC_OK)
		add_flat(filling, &copy, &source);
	return code;
}

static int fill_area(struct filling *filling)
{
	struct fc_save_job *job = filling->job;
	const struct fc_shape *shape = filling->placed->shape;
	for (uint32_t i = 0; i < shape->range_count; i++) {
		const struct fc_range *range = &shape->ranges[i];
		struct fc_range_area where = fc_range_area_in(job->geometry, shape, &job->area, range);
		for (uint64_t j = 0; j < range->count && where.slice_bytes > 0; j++) {
			int code = add_block(filling, range, &where, j);
			if (code != FC_OK)
				return code;
		}
	}
	return FC_OK;
}

/* ---- the areas, in order ---- */

static const struct fc_placed *placed_of(const struct fc_save_job *job)
{
	return &job->grants[job->grant].placed;
}

/* False when the segment has no more. Layers without slices are passed over. */
static bool next_area(const struct fc_save_job *job, struct fc_layer_area *area)
{
	const struct fc_placed *placed = placed_of(job);
	do {
		if (!fc_layer_next(job->geometry, placed->shape, placed->align, area))
			return false;
	} while (area->bytes == 0);
	return true;
}

/* Moves to the first area of the segment `job->grant`, or of the next one that has any. */
static void begin_segment(struct fc_save_job *job)
{
	for (; job->grant < job->grant_count; job->grant++) {
		const struct fc_placed *placed = placed_of(job);
		fc_layer_first(job->geometry, placed->shape, placed->header_bytes, &job->area);
		if (job->area.bytes > 0 || next_area(job, &job->area))
			return;
	}
	job->is_planned_out = true;
}

/* ---- running ---- */

static void fill_slots(struct fc_save_job *job);

static void settle(struct fc_save_job *job)
{
	struct fc_stream *stream = job->stream;
	fill_slots(job);
	bool is_over = job->is_stopping || job->code != FC_OK || job->is_planned_out;
	if (!is_over || fc_stream_is_moving(stream))
		return;
	if (job->is_stopping && job->code == FC_OK)
		job->code = FC_ECANCELED;
	fc_stream_end(stream);
	job->ended_cb(job);
}

static void on_moved(struct fc_slot *slot)
{
	struct fc_save_job *job = slot->stream->job;
	if (slot->failure != FC_OK)
		job->code = fc_io_explain(slot->stream->opts.gate->media, slot->failed, &job->error);
	slot->state = FC_SLOT_FREE;
	settle(job);
}

/* ---- writing ---- */

/* Takes over what the slot before left of the first block, and leaves what there is of the last one. Returns where the
 * whole blocks end. */
static uint64_t join_blocks(struct fc_save_job *job, struct fc_slot *slot, uint64_t begin)
{
	uint64_t head_bytes = slot->save_begin - begin;
	uint64_t bytes = slot->save_end - begin;
	if (slot->is_segment_begin)
		job->carry_bytes = head_bytes;
	fc_check(job->carry_bytes == head_bytes);
	if (slot->is_segment_begin)
		memset(slot->memory, 0, head_bytes);
	else
		memcpy(slot->memory, job->carry, head_bytes);
	uint64_t whole_bytes =
		slot->is_segment_end ? fc_align_up(bytes, job->block_bytes) : fc_align_down(bytes, job->block_bytes);
	if (slot->is_segment_end)
		memset(slot->memory + bytes, 0, whole_bytes - bytes);
	job->carry_bytes = slot->is_segment_end ? 0 : bytes - whole_bytes;
	memcpy(job->carry, slot->memory + whole_bytes, job->carry_bytes);
	return begin + whole_bytes;
}

static int write_slot(struct fc_save_job *job, struct fc_slot *slot)
{
	if (slot->is_for_memory) {
		job->bytes_written[FC_MEMORY] += slot->save_end - slot->save_begin;
		slot->state = FC_SLOT_FREE;
		return FC_OK;
	}
	uint64_t begin = fc_align_down(slot->save_begin, job->block_bytes);
	uint64_t end = join_blocks(job, slot, begin);
	slot->io_count = 0;
	slot->state = FC_SLOT_FREE;
	if (end == begin)
		return FC_OK;
	int code = fc_slot_add_io(slot, FC_IO_WRITE, begin, end - begin, slot->memory);
	if (code != FC_OK)
		return code;
	job->bytes_written[FC_SSD] += end - begin;
	fc_slot_move(slot);
	return FC_OK;
}

/* Copies may end out of order; what is carried over makes writes follow the order of filling. */
static void write_slots(struct fc_save_job *job)
{
	for (; job->next_write != job->next_fill; job->next_write++) {
		struct fc_slot *slot = &job->stream->slots[job->next_write % FC_STREAM_SLOTS];
		if (slot->state != FC_SLOT_WAITING)
			return;
		if (job->code == FC_OK && !job->is_stopping)
			job->code = write_slot(job, slot);
		else
			slot->state = FC_SLOT_FREE;
	}
}

/* True when the slice at `offset` of the arena is one of the segment's. */
static bool find_entry(const struct fc_save_job *job, const struct fc_placed *placed, uint64_t offset, uint64_t *entry)
{
	uint64_t base = fc_gva_offset(placed->base);
	struct fc_layer_area area;
	if (fc_gva_medium(placed->base) != FC_MEMORY || offset < base)
		return false;
	fc_layer_first(job->geometry, placed->shape, placed->header_bytes, &area);
	do {
		for (uint32_t i = 0; i < placed->shape->range_count; i++) {
			const struct fc_range *range = &placed->shape->ranges[i];
			struct fc_range_area where = fc_range_area_in(job->geometry, placed->shape, &area, range);
			uint64_t first = base + where.slice_offset;
			if (where.slice_bytes == 0 || offset < first ||
			    offset - first >= range->count * where.slice_bytes)
				continue;
			*entry = range->entry_first + (offset - first) / where.slice_bytes;
			return true;
		}
	} while (fc_layer_next(job->geometry, placed->shape, placed->align, &area));
	return false;
}

/* Which source was damaged? The slice's address says: it lies in one of the segments that were copied from. */
static void blame_source(struct fc_save_job *job, const struct fc_copy *copy)
{
	const struct fc_placed *placed = job->original != NULL ? job->original : job->sources->placed;
	uint32_t count = job->original != NULL ? 1 : job->sources->placed_count;
	uint64_t offset = (uint64_t)(copy->flat - job->memory_map);
	for (uint32_t i = 0; i < count && !job->is_source_bad; i++) {
		job->is_source_bad = find_entry(job, &placed[i], offset, &job->bad_entry);
		job->bad_placed = i;
	}
}

static void on_copied(struct fc_slot *slot)
{
	struct fc_save_job *job = slot->stream->job;
	if (slot->batch.result != FC_OK)
		job->code = slot->batch.result;
	if (slot->batch.direction == FC_COPY_FLAT && slot->batch.bad_first < slot->batch.copy_count) {
		job->code = FC_ECORRUPT;
		blame_source(job, &slot->batch.copies[slot->batch.bad_first]);
	}
	if (job->code == FC_OK && !job->is_stopping && slot->batch.direction == FC_COPY_GATHER &&
	    slot->copies_done > 0) {
		uint64_t flat_count = slot->copies_done;
		slot->copies_done = 0;
		fc_slot_copy(slot, FC_COPY_FLAT, slot->copies + slot->copy_room - flat_count, flat_count);
		return;
	}
	slot->state = FC_SLOT_WAITING;
	write_slots(job);
	settle(job);
}

/* ---- filling ---- */

/* What an area takes, its pad included. */
static uint64_t area_end(const struct fc_save_job *job, const struct fc_layer_area *area)
{
	const struct fc_placed *placed = placed_of(job);
	return fc_gva_offset(placed->base) + fc_align_up(area->offset + area->bytes, placed->align);
}

/* How many areas from the present one on the slot takes, and how many slices they have. At least one: that it fits is
 * the caller's to check. */
static uint32_t choose_areas(const struct fc_save_job *job, const struct fc_slot *slot, uint64_t *slice_count)
{
	struct fc_layer_area area = job->area;
	uint64_t begin = fc_align_down(fc_gva_offset(placed_of(job)->base) + area.offset, job->block_bytes);
	uint64_t room_bytes = fc_min_u64(slot->stream->slot_bytes, FILL_BYTES);
	uint32_t count = 0;
	*slice_count = 0;
	do {
		*slice_count += area.slice_count;
		count++;
	} while (next_area(job, &area) && fc_align_up(area_end(job, &area), job->block_bytes) - begin <= room_bytes);
	return count;
}

/* Gathers the present area to its place in the slot or the arena. `slot_begin` is what the slot's first byte is in the
 * arena. */
static int gather_area(struct filling *filling, uint64_t slot_begin)
{
	struct fc_save_job *job = filling->job;
	struct fc_slot *slot = filling->slot;
	uint64_t begin = fc_gva_offset(filling->placed->base) + job->area.offset;
	uint64_t end = area_end(job, &job->area);
	if (!slot->is_for_memory && fc_align_up(end, job->block_bytes) - slot_begin > slot->stream->slot_bytes)
		return FC_ELIMIT;
	filling->base = slot->is_for_memory ? job->memory_map + begin : slot->memory + (begin - slot_begin);
	filling->source_area_of = UINT32_MAX;
	memset(filling->base + job->area.bytes, 0, end - begin - job->area.bytes);
	slot->save_end = end;
	return fill_area(filling);
}

static int gather_areas(struct filling *filling, uint32_t area_count)
{
	struct fc_save_job *job = filling->job;
	struct fc_slot *slot = filling->slot;
	uint64_t slot_begin = fc_align_down(slot->save_begin, job->block_bytes);
	int code = FC_OK;
	slot->is_segment_end = false;
	for (uint32_t i = 0; i < area_count && code == FC_OK; i++) {
		code = gather_area(filling, slot_begin);
		slot->is_segment_end = !next_area(job, &job->area);
	}
	if (code == FC_OK && slot->is_segment_end) {
		job->grant++;
		begin_segment(job);
	}
	return code;
}

static int fill_slot(struct fc_save_job *job, struct fc_slot *slot)
{
	const struct fc_placed *placed = placed_of(job);
	struct filling filling = {.job = job, .slot = slot, .placed = placed};
	uint64_t slice_count;
	slot->part.run_count = 0;
	slot->is_for_memory = fc_gva_medium(placed->base) == FC_MEMORY;
	slot->is_segment_begin = job->area.offset == placed->header_bytes;
	slot->save_begin = fc_gva_offset(placed->base) + job->area.offset;
	uint32_t area_count = choose_areas(job, slot, &slice_count);
	int code = fc_alloc_reserve(slot->stream->opts.alloc, (void **)&slot->copies, &slot->copy_room, slice_count,
				    sizeof(*slot->copies));
	if (code == FC_OK)
		code = gather_areas(&filling, area_count);
	if (code != FC_OK)
		return code;
	slot->copies_done = filling.flat_count; /* still to be done after the gather */
	job->next_fill++;
	fc_slot_copy(slot, FC_COPY_GATHER, slot->copies, filling.gather_count);
	return FC_OK;
}

static void fill_slots(struct fc_save_job *job)
{
	while (job->code == FC_OK && !job->is_stopping && !job->is_planned_out) {
		struct fc_slot *slot = &job->stream->slots[job->next_fill % FC_STREAM_SLOTS];
		if (slot->state != FC_SLOT_FREE)
			return;
		job->code = fill_slot(job, slot);
	}
}

/* Blocks of the file system, if every area fits a slot together with what rounding adds at both ends. */
static uint32_t choose_block_bytes(const struct fc_save_job *job, uint64_t slot_bytes)
{
	uint32_t block_bytes = FC_SAVE_BLOCK_BYTES;
	for (uint32_t i = 0; i < job->grant_count; i++) {
		const struct fc_placed *placed = &job->grants[i].placed;
		struct fc_layer_area area;
		if (fc_gva_medium(placed->base) == FC_MEMORY)
			continue;
		block_bytes = placed->align > block_bytes ? placed->align : block_bytes;
		fc_layer_first(job->geometry, placed->shape, placed->header_bytes, &area);
		do {
			if (fc_align_up(area.bytes, placed->align) + 2 * block_bytes > slot_bytes)
				return placed->align;
		} while (fc_layer_next(job->geometry, placed->shape, placed->align, &area));
	}
	return block_bytes;
}

int fc_save_job_start(struct fc_save_job *job, struct fc_stream *stream, struct fc_error *error)
{
	fc_check(job->grant_count > 0);
	job->code = FC_OK;
	job->error = (struct fc_error){0};
	job->is_source_bad = false;
	job->is_stopping = job->is_planned_out = false;
	job->grant = 0;
	job->next_fill = job->next_write = 0;
	job->carry_bytes = 0;
	job->block_bytes = choose_block_bytes(job, stream->slot_bytes);
	job->bytes_written[FC_MEMORY] = job->bytes_written[FC_SSD] = 0;
	job->stream = stream;
	fc_stream_begin(stream, job, NULL, true);
	stream->on_moved = on_moved;
	stream->on_copied = on_copied;
	begin_segment(job);
	fill_slots(job);
	if (fc_stream_is_moving(stream))
		return FC_OK;
	fc_stream_end(stream);
	return fc_error_set(error, job->code, "save: %s", fc_code_text(job->code));
}

void fc_save_job_stop(struct fc_save_job *job)
{
	job->is_stopping = true;
}

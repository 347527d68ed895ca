#include "cio/plan.h"

#include "base/plant.h"
#include "base/check.h"
#include "catalog/index.h"
#include "format/checksum.h"

void fc_part_deinit(struct fc_part *part, const struct fc_alloc *alloc)
{
	fc_alloc_free(alloc, part->runs, part->run_room * sizeof(*part->runs));
	fc_alloc_free(alloc, part->copies, part->copy_room * sizeof(*part->copies));
	fc_alloc_free(alloc, part->origins, part->copy_room * sizeof(*part->origins));
	*part = (struct fc_part){0};
}

static int reserve_copies(struct fc_part *part, const struct fc_alloc *alloc, uint64_t more)
{
	uint64_t copy_room = part->copy_room;
	uint64_t origin_room = part->copy_room;
	int code = fc_alloc_reserve(alloc, (void **)&part->copies, &copy_room, part->copy_count + more,
				    sizeof(*part->copies));
	if (code != FC_OK)
		return code;
	code = fc_alloc_reserve(alloc, (void **)&part->origins, &origin_room, part->copy_count + more,
				sizeof(*part->origins));
	if (code != FC_OK) {
		/* Both arrays have one room: keep the smaller truth. */
		fc_alloc_free(alloc, part->copies, copy_room * sizeof(*part->copies));
		part->copies = NULL;
		fc_alloc_free(alloc, part->origins, origin_room * sizeof(*part->origins));
		part->origins = NULL;
		part->copy_room = part->copy_count = 0;
		return code;
	}
	part->copy_room = copy_room;
	return FC_OK;
}

/* ---- pieces: blocks of a span that go into one part ---- */

struct piece {
	uint32_t span_number;
	const struct fc_span *span;
	const struct fc_placed *placed;
	uint64_t first; /* relative to the span */
	uint64_t count;
	uint64_t slice_bytes;
	uint64_t slices_offset;    /* of the piece's first slice in the arena */
	uint64_t checksums_offset; /* of its checksum */
};

static struct piece piece_of(const struct fc_plan *plan, uint32_t span_number, uint64_t first, uint64_t count)
{
	const struct fc_span *span = &plan->opts.path->spans[span_number];
	const struct fc_placed *placed = &plan->opts.path->placed[span->placed];
	const struct fc_range *range = fc_shape_range_of(placed->shape, span->entry_first);
	struct fc_range_area area =
		fc_range_area_in(plan->opts.geometry, placed->shape, &plan->areas[span->placed], range);
	uint64_t position = span->entry_first - range->entry_first + first;
	uint64_t base = fc_gva_offset(placed->base);
	return (struct piece){
		.span_number = span_number,
		.span = span,
		.placed = placed,
		.first = first,
		.count = count,
		.slice_bytes = area.slice_bytes,
		.slices_offset = base + area.slice_offset + position * area.slice_bytes,
		.checksums_offset = base + area.checksum_offset + position * FC_CHECKSUM_BYTES,
	};
}

static bool is_on_ssd(const struct piece *piece)
{
	return fc_gva_medium(piece->placed->base) == FC_SSD;
}

/* The most that rounding adds to the piece's two intervals. */
static uint64_t piece_pad_bytes(const struct piece *piece)
{
	return is_on_ssd(piece) ? 4ull * piece->placed->align : 0;
}

/* The most that the piece takes in a slot, without gaps. What comes from memory takes nothing there, but counts all the
 * same, so that one part is never long work. */
static uint64_t piece_stage_bytes(const struct piece *piece)
{
	return piece->count * (piece->slice_bytes + FC_CHECKSUM_BYTES) + piece_pad_bytes(piece);
}

/* A piece that an empty slot would take whole is left to the next part: cut, it would cost one run more. */
static void cut_to_fit(struct piece *piece, uint64_t free_bytes, uint64_t slot_bytes, bool is_first)
{
	if (piece_stage_bytes(piece) <= free_bytes)
		return;
	if (!is_first && piece_stage_bytes(piece) <= slot_bytes) {
		piece->count = 0;
		return;
	}
	uint64_t pad_bytes = piece_pad_bytes(piece);
	uint64_t room = free_bytes > pad_bytes ? free_bytes - pad_bytes : 0;
	piece->count = room / (piece->slice_bytes + FC_CHECKSUM_BYTES);
	if (piece->count == 0 && is_first && !is_on_ssd(piece))
		piece->count = 1;
}

/* ---- runs ---- */

static int add_interval(struct fc_part *part, const struct fc_alloc *alloc, uint64_t offset, uint64_t bytes,
			uint32_t align)
{
	int code = fc_alloc_reserve(alloc, (void **)&part->runs, &part->run_room, part->run_count + 1ull,
				    sizeof(*part->runs));
	if (code != FC_OK)
		return code;
	struct fc_run run = {.offset = fc_align_down(offset, align)};
	run.bytes = fc_align_up(offset + bytes, align) - run.offset;
	/* Spans come nearly sorted: the newest finds its place from the end. */
	uint32_t at = part->run_count++;
	for (; at > 0 && part->runs[at - 1].offset > run.offset; at--)
		part->runs[at] = part->runs[at - 1];
	part->runs[at] = run;
	return FC_OK;
}

/* Merges what overlaps, touches, or has a small gap that the slot still has room for. */
static void merge_runs(struct fc_part *part, uint64_t gap_bytes, uint64_t slot_bytes)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < part->run_count; i++)
		total += part->runs[i].bytes;
	uint32_t merged = 0;
	for (uint32_t i = 1; i < part->run_count; i++) {
		struct fc_run *last = &part->runs[merged];
		const struct fc_run *run = &part->runs[i];
		uint64_t end = last->offset + last->bytes;
		uint64_t gap = run->offset > end ? run->offset - end : 0;
		if (gap > 0 && (gap >= gap_bytes || total + gap > slot_bytes)) {
			part->runs[++merged] = *run;
			continue;
		}
		uint64_t new_end = fc_max_u64(end, run->offset + run->bytes);
		total = total - last->bytes - run->bytes + (new_end - last->offset);
		last->bytes = new_end - last->offset;
	}
	if (part->run_count > 0)
		part->run_count = merged + 1;
	part->stage_bytes = 0;
	for (uint32_t i = 0; i < part->run_count; i++) {
		part->runs[i].stage_offset = part->stage_bytes;
		part->stage_bytes += part->runs[i].bytes;
	}
	fc_check(part->stage_bytes <= slot_bytes);
}

static uint32_t run_with(const struct fc_part *part, uint64_t offset)
{
	uint32_t low = 0, high = part->run_count;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;
		if (part->runs[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- copies ---- */

/* Address in memory, or offset in the slot, of an arena offset. A number, since an offset is no pointer to calculate
 * with. */
static uintptr_t flat_address(const struct fc_plan *plan, const struct fc_part *part, uint32_t run, uint64_t offset)
{
	if (run == FC_RUN_NONE)
		return (uintptr_t)(plan->opts.memory_map + offset);
	return (uintptr_t)(part->runs[run].stage_offset + offset - part->runs[run].offset);
}

static void add_copies(const struct fc_plan *plan, struct fc_part *part, const struct piece *piece)
{
	const struct fc_span *span = piece->span;
	const struct fc_geometry *geometry = plan->opts.geometry;
	uint64_t group_span = fc_group_span(geometry, span->group);
	const struct fc_slots *slots = &plan->opts.target->slots[span->group];
	uint32_t slice_run = is_on_ssd(piece) ? run_with(part, piece->slices_offset) : FC_RUN_NONE;
	uint32_t checksum_run = is_on_ssd(piece) ? run_with(part, piece->checksums_offset) : FC_RUN_NONE;
	uintptr_t slice = flat_address(plan, part, slice_run, piece->slices_offset);
	uintptr_t checksum = flat_address(plan, part, checksum_run, piece->checksums_offset);
	uint64_t step = plan->opts.is_by_piece ? fc_max_u64(1, piece->count) : 1;
	for (uint64_t i = 0; i < piece->count; i += step) {
		uint64_t block = span->block_first + piece->first + i;
		bool is_swapped = fc_is_planted(FC_PLANT_SWAP_BLOCKS) && piece->count > 1 && i < 2;
		struct fc_key key = plan->opts.keys[fc_group_key_position(group_span, block)];
		part->origins[part->copy_count] = (struct fc_origin){piece->span_number, slice_run, block};
		part->copies[part->copy_count++] = (struct fc_copy){
			.flat = (uint8_t *)(slice + i * piece->slice_bytes),
			.paged = &plan->opts.target->layers[span->group * geometry->layer_count + part->layer],
			.slot = slots->slots[(is_swapped ? block + 1 - 2 * i : block) - slots->first_block],
			.bytes = step * piece->slice_bytes,
			.seed = fc_slice_seed(key, span->group, part->layer),
			.checksum = (uint32_t *)(checksum + i * FC_CHECKSUM_BYTES),
		};
	}
	part->bytes_wanted[fc_gva_medium(piece->placed->base)] += piece->count * piece->slice_bytes;
}

void fc_part_bind(struct fc_part *part, uint8_t *slot)
{
	for (uint64_t i = 0; i < part->copy_count; i++) {
		if (part->origins[i].run == FC_RUN_NONE)
			continue;
		part->copies[i].flat = slot + (uintptr_t)part->copies[i].flat;
		part->copies[i].checksum = (uint32_t *)(void *)(slot + (uintptr_t)part->copies[i].checksum);
	}
}

/* ---- the plan ---- */

static int refuse_slots(const struct fc_span *span, const struct fc_slots *slots, struct fc_error *error)
{
	unsigned long long first = span->block_first, last = span->block_first + span->count - 1;
	unsigned long long given_first = slots->first_block, given_last = slots->first_block + slots->count - 1;
	if (slots->count == 0)
		return fc_error_set(error, FC_EINVAL,
				    "load: group %u needs slots for blocks %llu to %llu, none are given", span->group,
				    first, last);
	return fc_error_set(error, FC_EINVAL,
			    "load: group %u needs slots for blocks %llu to %llu, given are %llu to %llu", span->group,
			    first, last, given_first, given_last);
}

static int check_slots(const struct fc_plan_opts *opts, struct fc_error *error)
{
	for (uint32_t i = 0; i < opts->path->span_count; i++) {
		const struct fc_span *span = &opts->path->spans[i];
		const struct fc_slots *slots = &opts->target->slots[span->group];
		uint64_t skipped = span->block_first - slots->first_block;
		if (span->block_first < slots->first_block || skipped > slots->count ||
		    span->count > slots->count - skipped)
			return refuse_slots(span, slots, error);
	}
	return FC_OK;
}

int fc_plan_start(struct fc_plan *plan, const struct fc_alloc *alloc, const struct fc_plan_opts *opts,
		  struct fc_error *error)
{
	plan->opts = *opts;
	plan->alloc = alloc;
	plan->layer = 0;
	plan->cursor = (struct fc_plan_cursor){0};
	int code = check_slots(opts, error);
	if (code != FC_OK)
		return code;
	code = fc_alloc_reserve(alloc, (void **)&plan->areas, &plan->area_room, opts->path->placed_count,
				sizeof(*plan->areas));
	if (code != FC_OK)
		return fc_error_set(error, code, "load: %s", fc_code_text(code));
	for (uint32_t i = 0; i < opts->path->placed_count; i++)
		fc_layer_first(opts->geometry, opts->path->placed[i].shape, opts->path->placed[i].header_bytes,
			       &plan->areas[i]);
	return FC_OK;
}

void fc_plan_deinit(struct fc_plan *plan)
{
	if (plan->alloc != NULL)
		fc_alloc_free(plan->alloc, plan->areas, plan->area_room * sizeof(*plan->areas));
	*plan = (struct fc_plan){0};
}

/* Room and runs for a piece; its copies are filled in when all runs of the part are known. */
static int add_piece(struct fc_plan *plan, struct fc_part *part, const struct piece *piece)
{
	uint32_t align = piece->placed->align;
	int code = reserve_copies(part, plan->alloc, piece->count);
	part->copy_count += piece->count;
	if (code != FC_OK || !is_on_ssd(piece))
		return code;
	code = add_interval(part, plan->alloc, piece->checksums_offset, piece->count * FC_CHECKSUM_BYTES, align);
	if (code == FC_OK)
		code = add_interval(part, plan->alloc, piece->slices_offset, piece->count * piece->slice_bytes, align);
	return code;
}

/* Adds pieces of the current layer from the cursor on, as many as the slot takes; `end` is where it stopped. */
static int gather_pieces(struct fc_plan *plan, struct fc_part *part, struct fc_plan_cursor *end)
{
	const struct fc_path *path = plan->opts.path;
	uint64_t free_bytes = plan->opts.slot_bytes;
	for (*end = plan->cursor; end->span < path->span_count; *end = (struct fc_plan_cursor){end->span + 1, 0}) {
		const struct fc_span *span = &path->spans[end->span];
		if (plan->opts.geometry->groups[span->group].slice_bytes[plan->layer] == 0)
			continue;
		uint64_t wanted = span->count - end->block;
		struct piece piece = piece_of(plan, end->span, end->block, wanted);
		cut_to_fit(&piece, free_bytes, plan->opts.slot_bytes, part->copy_count == 0);
		if (piece.count == 0)
			return FC_OK;
		int code = add_piece(plan, part, &piece);
		if (code != FC_OK)
			return code;
		free_bytes -= fc_min_u64(free_bytes, piece_stage_bytes(&piece));
		if (piece.count < wanted) {
			end->block += piece.count;
			return FC_OK;
		}
	}
	return FC_OK;
}

static void fill_copies(struct fc_plan *plan, struct fc_part *part, struct fc_plan_cursor end)
{
	struct fc_plan_cursor *cursor = &plan->cursor;
	part->copy_count = 0;
	while (cursor->span < end.span || (cursor->span == end.span && cursor->block < end.block)) {
		const struct fc_span *span = &plan->opts.path->spans[cursor->span];
		uint64_t block_end = cursor->span == end.span ? end.block : span->count;
		if (plan->opts.geometry->groups[span->group].slice_bytes[plan->layer] != 0) {
			struct piece piece = piece_of(plan, cursor->span, cursor->block, block_end - cursor->block);
			add_copies(plan, part, &piece);
		}
		if (cursor->span == end.span)
			cursor->block = block_end;
		else
			*cursor = (struct fc_plan_cursor){cursor->span + 1, 0};
	}
}

static void next_layer(struct fc_plan *plan)
{
	const struct fc_path *path = plan->opts.path;
	plan->layer++;
	plan->cursor = (struct fc_plan_cursor){0};
	for (uint32_t i = 0; i < path->placed_count && plan->layer < plan->opts.geometry->layer_count; i++)
		fc_check(fc_layer_next(plan->opts.geometry, path->placed[i].shape, path->placed[i].align,
				       &plan->areas[i]));
}

int fc_plan_next(struct fc_plan *plan, struct fc_part *part)
{
	if (plan->layer == plan->opts.geometry->layer_count)
		return FC_ENOENT;
	part->layer = plan->layer;
	part->run_count = 0;
	part->copy_count = 0;
	part->bytes_wanted[FC_MEMORY] = part->bytes_wanted[FC_SSD] = 0;
	struct fc_plan_cursor end;
	int code = gather_pieces(plan, part, &end);
	if (code != FC_OK)
		return code;
	if (part->copy_count == 0 && end.span < plan->opts.path->span_count)
		return FC_ELIMIT; /* not one slice fits */
	merge_runs(part, plan->opts.gap_bytes, plan->opts.slot_bytes);
	fill_copies(plan, part, end);
	part->is_last_of_layer = plan->cursor.span == plan->opts.path->span_count;
	if (part->is_last_of_layer)
		next_layer(plan);
	return FC_OK;
}

uint64_t fc_plan_slot_bytes_min(const struct fc_geometry *geometry, uint32_t align)
{
	uint64_t largest = 0;
	for (uint32_t group = 0; group < geometry->group_count; group++)
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
			largest = fc_max_u64(largest, geometry->groups[group].slice_bytes[layer]);
	return largest + FC_CHECKSUM_BYTES + 4ull * align;
}

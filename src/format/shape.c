#include "format/shape.h"

#include "base/check.h"
#include "format/arena.h"

void fc_shape_init(struct fc_shape *shape, struct fc_range *storage)
{
	*shape = (struct fc_shape){.ranges = storage};
}

int fc_shape_add(struct fc_shape *shape, uint32_t group, uint64_t block_first, uint64_t count)
{
	if (count == 0)
		return FC_OK;
	if (shape->range_count == FC_RANGES_MAX || shape->entry_count + count > UINT32_MAX)
		return FC_ELIMIT;
	shape->ranges[shape->range_count++] = (struct fc_range){
		.group = group,
		.entry_first = (uint32_t)shape->entry_count,
		.block_first = block_first,
		.count = count,
	};
	shape->entry_count += count;
	return FC_OK;
}

const struct fc_range *fc_shape_range_of(const struct fc_shape *shape, uint64_t entry)
{
	uint32_t range = shape->range_count - 1;
	while (shape->ranges[range].entry_first > entry)
		range--;
	return &shape->ranges[range];
}

static void measure_layer(const struct fc_geometry *geometry, const struct fc_shape *shape, struct fc_layer_area *area)
{
	uint64_t slice_total_bytes = 0;
	area->slice_count = 0;
	for (uint32_t i = 0; i < shape->range_count; i++) {
		const struct fc_range *range = &shape->ranges[i];
		uint64_t slice_bytes = geometry->groups[range->group].slice_bytes[area->layer];
		if (slice_bytes == 0)
			continue;
		area->slice_count += range->count;
		slice_total_bytes += range->count * slice_bytes;
	}
	area->bytes = slice_total_bytes + area->slice_count * FC_CHECKSUM_BYTES;
}

void fc_layer_first(const struct fc_geometry *geometry, const struct fc_shape *shape, uint64_t header_bytes,
		    struct fc_layer_area *area)
{
	area->layer = 0;
	area->offset = header_bytes;
	measure_layer(geometry, shape, area);
}

bool fc_layer_next(const struct fc_geometry *geometry, const struct fc_shape *shape, uint32_t align,
		   struct fc_layer_area *area)
{
	if (area->layer + 1 >= geometry->layer_count)
		return false;
	area->offset = fc_align_up(area->offset + area->bytes, align);
	area->layer++;
	measure_layer(geometry, shape, area);
	return true;
}

void fc_layer_seek(const struct fc_geometry *geometry, const struct fc_shape *shape, uint64_t header_bytes,
		   uint32_t align, uint32_t layer, struct fc_layer_area *area)
{
	fc_layer_first(geometry, shape, header_bytes, area);
	while (area->layer < layer)
		fc_check(fc_layer_next(geometry, shape, align, area));
}

struct fc_range_area fc_range_area_in(const struct fc_geometry *geometry, const struct fc_shape *shape,
				      const struct fc_layer_area *area, const struct fc_range *range)
{
	uint64_t slices_before = 0;
	uint64_t bytes_before = 0;
	for (uint32_t i = 0; &shape->ranges[i] != range; i++) {
		uint64_t slice_bytes = geometry->groups[shape->ranges[i].group].slice_bytes[area->layer];
		if (slice_bytes == 0)
			continue;
		slices_before += shape->ranges[i].count;
		bytes_before += shape->ranges[i].count * slice_bytes;
	}
	return (struct fc_range_area){
		.slice_offset = area->offset + area->slice_count * FC_CHECKSUM_BYTES + bytes_before,
		.slice_bytes = geometry->groups[range->group].slice_bytes[area->layer],
		.checksum_offset = area->offset + slices_before * FC_CHECKSUM_BYTES,
	};
}

uint64_t fc_shape_header_bytes(const struct fc_shape *shape, uint32_t align)
{
	return fc_align_up(fc_header_encoded_bytes(shape), align);
}

int fc_shape_bytes(const struct fc_geometry *geometry, const struct fc_shape *shape, uint32_t align, uint64_t *bytes)
{
	/* Geometry limits a slice to 2^32 bytes and a segment to 2^32 entries, so only the sum over a layer can
	 * overflow. */
	const uint64_t reach_bytes = 1ull << FC_GVA_OFFSET_BITS;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t product;
		if (fc_mul_overflows(fc_group_block_bytes(geometry, group), shape->entry_count, &product) ||
		    product > reach_bytes)
			return FC_EINVAL;
	}
	struct fc_layer_area area;
	fc_layer_first(geometry, shape, fc_shape_header_bytes(shape, align), &area);
	while (fc_layer_next(geometry, shape, align, &area))
		;
	*bytes = fc_align_up(area.offset + area.bytes, align);
	return *bytes > reach_bytes ? FC_EINVAL : FC_OK;
}

uint64_t fc_group_block_bytes(const struct fc_geometry *geometry, uint32_t group)
{
	uint64_t bytes = 0;
	for (uint32_t layer = 0; layer < geometry->layer_count; layer++)
		bytes += geometry->groups[group].slice_bytes[layer];
	return bytes;
}

uint64_t fc_group_span(const struct fc_geometry *geometry, uint32_t group)
{
	if (geometry->groups[group].rule == FC_RULE_STATE)
		return 1;
	return geometry->groups[group].tokens_per_block / geometry->block_tokens;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

uint64_t fc_resume_granule(const struct fc_geometry *geometry)
{
	uint64_t granule = 1;
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		uint64_t span = fc_group_span(geometry, group);
		granule = granule / greatest_common_divisor(granule, span) * span;
	}
	return granule;
}

void fc_group_needed(const struct fc_geometry *geometry, uint32_t group, uint64_t path_blocks, uint64_t *block_first,
		     uint64_t *count)
{
	const struct fc_group *rules = &geometry->groups[group];
	if (rules->rule == FC_RULE_STATE) {
		*block_first = path_blocks == 0 ? 0 : path_blocks - 1;
		*count = path_blocks == 0 ? 0 : 1;
		return;
	}
	uint64_t span = fc_group_span(geometry, group);
	uint64_t end = path_blocks / span;
	*block_first = 0;
	if (rules->rule == FC_RULE_WINDOW) {
		uint64_t tokens = path_blocks * geometry->block_tokens;
		uint64_t outside_tokens = tokens > rules->window_tokens ? tokens - rules->window_tokens : 0;
		*block_first = outside_tokens / rules->tokens_per_block;
	}
	*count = end - *block_first;
}

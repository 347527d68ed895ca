/* The shape of a segment: which blocks of which groups it holds, and where each slice lies in it.
 *
 * A segment is what one turn wrote. It holds ranges of consecutive blocks of one group each, and behind its header it
 * is laid out layer by layer, so that layer l of everything in it is one contiguous area:
 *
 *     segment base
 *     | header | layer 0 area | layer 1 area | ... | layer L-1 area | unused rest of the last chunk
 *                             |
 *                             | c c c c | slices of range 0 | slices of range 1 | pad to `align`
 *                               ^ one 32-bit checksum for each slice of the area, in the order of the slices
 *
 * A range has no part in a layer whose slice size in its group is 0; an area without slices has no bytes. Checksums lie
 * in front of their slices so that one read of a prefix of the area brings both.
 *
 * Entries number the blocks of a segment over all its ranges, in order; entry e has key e of the header.
 * Pure functions; anyone may call them. */
#ifndef FC_FORMAT_SHAPE_H
#define FC_FORMAT_SHAPE_H

#include "base/error.h"

#define FC_RANGES_MAX 64
#define FC_CHECKSUM_BYTES 4

/* Blocks [block_first, block_first + count) of `group`, counted in the group's own blocks. For FC_RULE_STATE block b is
 * the snapshot behind path block b. */
struct fc_range {
	uint32_t group;
	uint32_t entry_first;
	uint64_t block_first;
	uint64_t count;
};

struct fc_shape {
	uint32_t range_count;
	uint64_t entry_count;
	struct fc_range
		*ranges; /* the owner's; room for FC_RANGES_MAX while it is built, range_count when it is kept */
};

/* An empty shape over `storage[FC_RANGES_MAX]`. */
void fc_shape_init(struct fc_shape *shape, struct fc_range *storage);

/* Appends a range; empty ranges are left out. FC_ELIMIT when there are FC_RANGES_MAX already. */
FC_MUST_USE int fc_shape_add(struct fc_shape *shape, uint32_t group, uint64_t block_first, uint64_t count);

/* Range that holds entry `entry` (< entry_count). */
const struct fc_range *fc_shape_range_of(const struct fc_shape *shape, uint64_t entry);

/* Where one layer's slices lie, relative to the segment's base. Walk a segment's layers with fc_layer_first() and
 * fc_layer_next(); both are cheap. */
struct fc_layer_area {
	uint32_t layer;
	uint64_t offset; /* of the area, a multiple of align */
	uint64_t bytes;  /* checksums and slices, without the pad */
	uint64_t slice_count;
};

void fc_layer_first(const struct fc_geometry *geometry, const struct fc_shape *shape, uint64_t header_bytes,
		    struct fc_layer_area *area);
/* False behind the last layer. */
bool fc_layer_next(const struct fc_geometry *geometry, const struct fc_shape *shape, uint32_t align,
		   struct fc_layer_area *area);
/* The area of any layer, by walking. */
void fc_layer_seek(const struct fc_geometry *geometry, const struct fc_shape *shape, uint64_t header_bytes,
		   uint32_t align, uint32_t layer, struct fc_layer_area *area);

/* Slices [0, count) of a range in an area: `slice_offset` of the first relative to the segment, its checksum at
 * `checksum_offset`. `range` must have a part in the area's layer. */
struct fc_range_area {
	uint64_t slice_offset;
	uint64_t slice_bytes;
	uint64_t checksum_offset;
};
struct fc_range_area fc_range_area_in(const struct fc_geometry *geometry, const struct fc_shape *shape,
				      const struct fc_layer_area *area, const struct fc_range *range);

/* Bytes of a header with this shape, a multiple of align. */
uint64_t fc_shape_header_bytes(const struct fc_shape *shape, uint32_t align);

/* Header and all areas with their pads. FC_EINVAL when it overflows 2^48, the reach of an address. */
FC_MUST_USE int fc_shape_bytes(const struct fc_geometry *geometry, const struct fc_shape *shape, uint32_t align,
			       uint64_t *bytes);

/* Sum of a group's slices over the layers: bytes of one of its blocks. */
uint64_t fc_group_block_bytes(const struct fc_geometry *geometry, uint32_t group);

/* Path blocks (of geometry->block_tokens) that one block of the group spans; 1 for FC_RULE_STATE. */
uint64_t fc_group_span(const struct fc_geometry *geometry, uint32_t group);

/* Least common multiple of all groups' spans: a prefix can be resumed only at multiples of this. */
uint64_t fc_resume_granule(const struct fc_geometry *geometry);

/* Range of the group's blocks that resuming at `path_blocks` needs, a multiple of the granule: everything, the window,
 * or the snapshot. */
void fc_group_needed(const struct fc_geometry *geometry, uint32_t group, uint64_t path_blocks, uint64_t *block_first,
		     uint64_t *count);

/* Index on the path of the key that names a group's block: that of the last path block it covers. */
static inline uint64_t fc_group_key_position(uint64_t span, uint64_t block)
{
	return (block + 1) * span - 1;
}

#endif

/* The planner: which bytes to read for a history, layer by layer, and where each slice goes.
 *
 * A history is spans of placed segments (catalog.h). For one layer, every span on SSD needs two intervals of its
 * segment's layer area: the checksums of its slices and the slices. The planner sorts the intervals by offset, merges
 * neighbours, reads through gaps smaller than `gap_bytes` while the window has room for them, and so gets one run per
 * segment as a rule:
 *
 *   area of a segment   |cccc|ssssssssssssssss|          wanted: the first half of a segment
 *   intervals            ^^   ^^^^^^^^
 *   run                 [--------------]                  one read, rounded to `align`
 *
 * Spans in memory need no read: their slices are copied from where they lie.
 *
 * The work is handed out in parts: a part belongs to one layer, and its runs together fit a window's slot. A layer that
 * is larger than a slot has several parts. Parts come in the order of the layers (article, section FC-CIO; design 2.3).
 *
 * Pure: no I/O happens here. */
#ifndef FC_CIO_PLAN_H
#define FC_CIO_PLAN_H

#include "base/alloc.h"
#include "catalog/catalog.h"
#include "device/device.h"

/* What the engine's memory looks like, and which slot a block has. */
struct fc_target {
	const struct fc_paged_layer *layers; /* [group * layer_count + layer] */
	struct fc_slots slots[FC_GROUPS_MAX];
};

struct fc_plan_opts {
	const struct fc_geometry *geometry;
	const struct fc_path *path;
	const struct fc_key *keys; /* of the path */
	const struct fc_target *target;
	uint8_t *memory_map; /* of the memory arena; may be NULL when the path has nothing there */
	uint64_t gap_bytes;
	uint64_t slot_bytes; /* a part's runs fit into this */
	bool is_by_piece;    /* one copy for all slices of a span in a part: fc_device.takes_pieces */
};

/* One read: `bytes` at `offset` of the SSD arena to `stage_offset` of the slot. All are multiples of the segments'
 * align. */
struct fc_run {
	uint64_t offset;
	uint64_t bytes;
	uint64_t stage_offset;
};

#define FC_RUN_NONE UINT32_MAX

/* Where a copy's slice comes from: for reporting damage. */
struct fc_origin {
	uint32_t span;
	uint32_t run;   /* FC_RUN_NONE: from memory */
	uint64_t block; /* counted in its group */
};

/* Arrays belong to the part, grow as needed and are reused for the next one; fc_part_deinit() frees them. */
struct fc_part {
	uint32_t layer;
	bool is_last_of_layer;
	struct fc_run *runs;
	uint32_t run_count;
	uint64_t run_room;
	struct fc_copy *copies; /* `flat` of slices from SSD is an offset in the slot until fc_part_bind() */
	struct fc_origin *origins;
	uint64_t copy_count, copy_room;
	uint64_t stage_bytes;
	uint64_t bytes_wanted[FC_MEDIUM_COUNT];
};

void fc_part_deinit(struct fc_part *part, const struct fc_alloc *alloc);

/* The next block of a layer to be handed out: `block` of span `span`. */
struct fc_plan_cursor {
	uint32_t span;
	uint64_t block;
};

struct fc_plan {
	struct fc_plan_opts opts;
	const struct fc_alloc *alloc;
	struct fc_layer_area *areas; /* per placed segment, at the current layer */
	uint64_t area_room;
	uint32_t layer;
	struct fc_plan_cursor cursor;
};

/* Starts a plan over a path; the opts' pointers are borrowed until the plan's last use. FC_ENOMEM; FC_EINVAL with text
 * when a block of the path has no slot. */
FC_MUST_USE int fc_plan_start(struct fc_plan *plan, const struct fc_alloc *alloc, const struct fc_plan_opts *opts,
			      struct fc_error *error);

/* The next part. FC_ENOENT when all are done; FC_ELIMIT when the slot cannot hold a single slice at the segment's
 * alignment; FC_ENOMEM. Every layer of the model has at least one part, if only an empty one. */
FC_MUST_USE int fc_plan_next(struct fc_plan *plan, struct fc_part *part);

/* Turns the offsets of slices from SSD into addresses in `slot`. */
void fc_part_bind(struct fc_part *part, uint8_t *slot);

void fc_plan_deinit(struct fc_plan *plan);

/* A slot must take one slice of any layer with its checksum and both alignments. */
uint64_t fc_plan_slot_bytes_min(const struct fc_geometry *geometry, uint32_t align);

#endif

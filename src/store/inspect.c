#include "store/inspect.h"

#include "base/check.h"
#include "format/checksum.h"
#include "host/alloc.h"
#include "host/pages.h"
#include "media/memory.h"
#include "media/ssd.h"
#include "store/blocking.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_NS 1000000ull
#define PIECE_BYTES (8ull << 20)

struct fc_inspect {
	struct fc_alloc alloc;
	struct fc_probe probe;
	struct fc_media *media[FC_MEDIUM_COUNT];
	struct fc_catalog *catalog;
	bool is_opened;
	int open_code;
	struct fc_error open_error;
};

/* ---- open and close ---- */

static int open_media(struct fc_inspect *inspect, const struct fc_probe_opts *opts, struct fc_error *error)
{
	int code = FC_OK;
	if (inspect->probe.has_arena[FC_SSD]) {
		char *path = fc_probe_ssd_path(opts);
		if (path == NULL)
			return fc_error_set(error, FC_ENOMEM, "%s", fc_code_text(FC_ENOMEM));
		struct fc_ssd_opts ssd = {.path = path, .is_read_only = true};
		code = fc_ssd_open(&ssd, &inspect->media[FC_SSD], error);
		free(path);
	}
	if (code == FC_OK && inspect->probe.has_arena[FC_MEMORY]) {
		struct fc_memory_opts memory = {.path = opts->memory_path, .is_read_only = true};
		code = fc_memory_open(&memory, &inspect->media[FC_MEMORY], error);
	}
	return code;
}

static void on_opened(void *context, int code, const struct fc_error *error)
{
	struct fc_inspect *inspect = context;
	inspect->is_opened = true;
	inspect->open_code = code;
	inspect->open_error = *error;
}

static void poll_media(struct fc_inspect *inspect)
{
	unsigned count = 0;
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (inspect->media[medium] != NULL)
			count += fc_media_poll(inspect->media[medium]);
	if (count == 0 && inspect->media[FC_SSD] != NULL)
		fc_media_wait(inspect->media[FC_SSD], WAIT_NS);
}

static int open_catalog(struct fc_inspect *inspect, struct fc_error *error)
{
	struct fc_catalog_opts opts = {
		.geometry = fc_probe_geometry(&inspect->probe),
		.alloc = &inspect->alloc,
		.media = {inspect->media[FC_MEMORY], inspect->media[FC_SSD]},
		.high_watermark = 1,
		.low_watermark = 1,
		.is_read_only = true,
	};
	int code = fc_catalog_open(&inspect->catalog, &opts, on_opened, inspect);
	if (code != FC_OK)
		return fc_error_set(error, code, "open: %s", fc_code_text(code));
	while (!inspect->is_opened)
		poll_media(inspect);
	if (inspect->open_code != FC_OK)
		return fc_error_set(error, inspect->open_code, "%s", inspect->open_error.text);
	return FC_OK;
}

int fc_inspect_open(struct fc_inspect **result, const struct fc_probe_opts *opts, struct fc_error *error)
{
	struct fc_inspect *inspect = calloc(1, sizeof(*inspect));
	if (inspect == NULL)
		return fc_error_set(error, FC_ENOMEM, "open: %s", fc_code_text(FC_ENOMEM));
	inspect->alloc = fc_alloc_system();
	int code = fc_store_probe(&inspect->probe, opts, error);
	if (code == FC_OK)
		code = open_media(inspect, opts, error);
	if (code == FC_OK)
		code = open_catalog(inspect, error);
	if (code == FC_OK)
		*result = inspect;
	else
		fc_inspect_close(inspect);
	return code;
}

void fc_inspect_close(struct fc_inspect *inspect)
{
	if (inspect == NULL)
		return;
	fc_catalog_free(inspect->catalog);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_media_close(inspect->media[medium]);
	free(inspect);
}

struct fc_catalog *fc_inspect_catalog(struct fc_inspect *inspect)
{
	return inspect->catalog;
}

const struct fc_probe *fc_inspect_probe(const struct fc_inspect *inspect)
{
	return &inspect->probe;
}

/* ---- the scan ---- */

struct scanner {
	struct fc_inspect *inspect;
	struct fc_scan *scan;
	const struct fc_segment_info *segment;
	struct fc_scan_sums *sums; /* of the segment's medium */
	uint8_t *pieces, *checksums;
	uint64_t piece_bytes, checksum_bytes; /* room */
	uint64_t bytes_done;
	int code;
};

/* Brings [offset, offset + bytes) into the buffer, which has room for both roundings; returns where it begins there, or
 * NULL when the medium failed. */
static const uint8_t *read_range(struct scanner *scanner, uint64_t offset, uint64_t bytes, uint8_t *buffer)
{
	struct fc_media *media = scanner->inspect->media[fc_gva_medium(scanner->segment->placed.base)];
	uint32_t align = scanner->segment->placed.align;
	uint64_t first = fc_align_down(offset, align);
	int code = fc_store_read(media, first, fc_align_up(offset + bytes, align) - first, buffer, NULL);
	return code == FC_OK ? buffer + (offset - first) : NULL;
}

static int reserve(uint8_t **buffer, uint64_t *room, uint64_t bytes)
{
	if (bytes <= *room)
		return FC_OK;
	fc_pages_free(*buffer, *room);
	*room = 0;
	*buffer = fc_pages_alloc(bytes);
	if (*buffer == NULL)
		return FC_ENOMEM;
	*room = bytes;
	return FC_OK;
}

/* Consecutive slices of one range in one layer. */
struct slices {
	const struct fc_range *range;
	uint32_t layer;
	struct fc_range_area area;
	uint64_t first, count; /* in the range */
};

static void tell_damage(struct scanner *scanner, const struct slices *slices, uint64_t position, bool is_unread)
{
	struct fc_damage damage = {
		.segment = *scanner->segment,
		.group = slices->range->group,
		.layer = slices->layer,
		.block = slices->range->block_first + position,
		.is_unread = is_unread,
		.offset = fc_gva_offset(scanner->segment->placed.base) + slices->area.slice_offset +
			  position * slices->area.slice_bytes,
	};
	scanner->sums->slices_damaged++;
	if (scanner->scan->damage_cb != NULL)
		scanner->scan->damage_cb(scanner->scan->context, &damage);
}

static void check_slices(struct scanner *scanner, const struct slices *slices, const uint8_t *checksums)
{
	uint64_t base = fc_gva_offset(scanner->segment->placed.base);
	uint64_t slice_bytes = slices->area.slice_bytes;
	const uint8_t *bytes = read_range(scanner, base + slices->area.slice_offset + slices->first * slice_bytes,
					  slices->count * slice_bytes, scanner->pieces);
	for (uint64_t i = 0; i < slices->count; i++) {
		uint64_t position = slices->first + i;
		uint64_t entry = slices->range->entry_first + position;
		struct fc_key key = fc_catalog_segment_key(scanner->segment->placed.segment, entry);
		bool is_unread = bytes == NULL || checksums == NULL;
		uint32_t sum = is_unread ? 0
					 : fc_slice_checksum(bytes + i * slice_bytes, slice_bytes,
							     fc_slice_seed(key, slices->range->group, slices->layer));
		if (is_unread || memcmp(checksums + position * FC_CHECKSUM_BYTES, &sum, sizeof(sum)) != 0)
			tell_damage(scanner, slices, position, is_unread);
	}
	scanner->sums->slices += slices->count;
	scanner->sums->bytes += slices->count * slice_bytes;
}

static int scan_range(struct scanner *scanner, const struct fc_layer_area *area, const struct fc_range *range)
{
	const struct fc_geometry *geometry = fc_probe_geometry(&scanner->inspect->probe);
	const struct fc_placed *placed = &scanner->segment->placed;
	struct slices slices = {.range = range, .layer = area->layer};
	if (geometry->groups[range->group].slice_bytes[area->layer] == 0)
		return FC_OK;
	slices.area = fc_range_area_in(geometry, placed->shape, area, range);
	uint64_t at_once = fc_max_u64(1, PIECE_BYTES / slices.area.slice_bytes);
	int code = reserve(&scanner->checksums, &scanner->checksum_bytes,
			   range->count * FC_CHECKSUM_BYTES + 2ull * placed->align);
	if (code == FC_OK)
		code = reserve(&scanner->pieces, &scanner->piece_bytes,
			       fc_max_u64(PIECE_BYTES, slices.area.slice_bytes) + 2ull * placed->align);
	if (code != FC_OK)
		return code;
	const uint8_t *checksums = read_range(scanner, fc_gva_offset(placed->base) + slices.area.checksum_offset,
					      range->count * FC_CHECKSUM_BYTES, scanner->checksums);
	for (; slices.first < range->count; slices.first += slices.count) {
		slices.count = fc_min_u64(at_once, range->count - slices.first);
		check_slices(scanner, &slices, checksums);
	}
	return FC_OK;
}

static int scan_segment(struct scanner *scanner)
{
	const struct fc_geometry *geometry = fc_probe_geometry(&scanner->inspect->probe);
	const struct fc_placed *placed = &scanner->segment->placed;
	struct fc_layer_area area;
	fc_layer_first(geometry, placed->shape, placed->header_bytes, &area);
	do {
		for (uint32_t i = 0; i < placed->shape->range_count; i++) {
			int code = scan_range(scanner, &area, &placed->shape->ranges[i]);
			if (code != FC_OK)
				return code;
		}
	} while (fc_layer_next(geometry, placed->shape, placed->align, &area));
	return FC_OK;
}

static bool on_segment(void *context, const struct fc_segment_info *segment)
{
	struct scanner *scanner = context;
	scanner->segment = segment;
	scanner->sums = &scanner->scan->media[fc_gva_medium(segment->placed.base)];
	if (!segment->is_kept) {
		scanner->sums->bytes_dropped += segment->bytes;
		return true;
	}
	scanner->sums->segments++;
	scanner->sums->bytes_kept += segment->bytes;
	scanner->code = scan_segment(scanner);
	scanner->bytes_done += segment->bytes;
	if (scanner->scan->progress_cb != NULL)
		scanner->scan->progress_cb(scanner->scan->context, scanner->bytes_done);
	return scanner->code == FC_OK;
}

int fc_inspect_scan(struct fc_inspect *inspect, struct fc_scan *scan, struct fc_error *error)
{
	struct scanner scanner = {.inspect = inspect, .scan = scan};
	memset(scan->media, 0, sizeof(scan->media));
	fc_catalog_segments(inspect->catalog, on_segment, &scanner);
	fc_pages_free(scanner.pieces, scanner.piece_bytes);
	fc_pages_free(scanner.checksums, scanner.checksum_bytes);
	return scanner.code == FC_OK ? FC_OK
				     : fc_error_set(error, scanner.code, "scan: %s", fc_code_text(scanner.code));
}

static bool add_bytes(void *context, const struct fc_segment_info *segment)
{
	*(uint64_t *)context += segment->is_kept ? segment->bytes : 0;
	return true;
}

uint64_t fc_inspect_bytes(struct fc_inspect *inspect)
{
	uint64_t bytes = 0;
	fc_catalog_segments(inspect->catalog, add_bytes, &bytes);
	return bytes;
}

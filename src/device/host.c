/* The CPU that copies is the CPU that would wait, so copies are done inside poll(), and only PIECE_BYTES in each: what
 * has ended on the disk meanwhile is seen, and what may go there is sent, before the next piece keeps the CPU busy.
 *
 * Pieces are taken by turns from the batch that came first and from the one with the least left. So a small load's
 * batch never waits for the end of a long one's, which may take milliseconds, and none starves. Of two batches of one
 * stream the first comes first either way, so that its slot is free to be read into as early as can be.
 *
 * The slice's checksum is always taken over the bytes as they are read for the copy, so what was checked is what
 * arrived, even if another process scribbles over the arena meanwhile. */
#include "device/host.h"

#include "device/copy_hash.h"
#include "format/checksum.h"
#include "host/pages.h"

#include <stdlib.h>
#include <string.h>

#define HOST_MAGIC 0x46434b44484f5354ull
#define STREAMING_SLICE_BYTES_MIN 256 /* smaller ones have too few whole lines */
#define LINE_BYTES 64
#define PREFETCH_BYTES_MAX 512
#define LOOKAHEAD_SLICES 8
#define LOOKAHEAD_BYTES 8192
#define PIECE_BYTES (256ull << 10)

struct host_device {
	struct fc_device device;
	uint64_t magic;
	const struct fc_copy_kernel *kernel;
	struct fc_link waiting; /* batches to be done, in the order they came */
	bool is_turn_of_least;
};

static struct host_device *host_device_of(struct fc_device *device)
{
	struct host_device *host = fc_container_of(device, struct host_device, device);
	fc_check(host->magic == HOST_MAGIC);
	return host;
}

/* Where the slice lies on either side; false when the copy is not possible as described. */
static bool slice_init(struct fc_copy_hash *slice, const struct fc_copy *copy, enum fc_copy_direction direction)
{
	const struct fc_paged_layer *paged = copy->paged;

	*slice = (struct fc_copy_hash){.source = copy->flat, .destination = copy->slot_memory};
	slice->piece_bytes = copy->bytes;
	slice->piece_count = 1;
	if (direction == FC_COPY_FLAT)
		return true;
	if (paged == NULL || copy->slot >= paged->slot_count || paged->piece_count == 0)
		return false;
	if (paged->piece_count > 1) { /* division is slow enough to be worth avoiding */
		if (copy->bytes % paged->piece_count != 0)
			return false;
		slice->piece_count = paged->piece_count;
		slice->piece_bytes = copy->bytes / paged->piece_count;
	}
	uint8_t *slot = (uint8_t *)paged->base + copy->slot * paged->slot_stride_bytes;
	bool is_gather = direction == FC_COPY_GATHER;
	slice->source = is_gather ? slot : copy->flat;
	slice->destination = is_gather ? copy->flat : slot;
	slice->source_stride_bytes = is_gather ? paged->piece_stride_bytes : slice->piece_bytes;
	slice->destination_stride_bytes = is_gather ? slice->piece_bytes : paged->piece_stride_bytes;
	return true;
}

/* Asks for what the copy will stumble over: the first bytes of its source, since no hardware foresees the jump to them,
 * and the lines that it writes only in part, which have to be read first. */
static void prefetch(const struct fc_copy_hash *slice)
{
	uint64_t source_bytes = fc_min_u64(slice->piece_bytes, PREFETCH_BYTES_MAX);
	const uint8_t *begin = slice->destination;
	const uint8_t *end = begin + slice->piece_bytes;

	for (uint64_t at = 0; at < source_bytes; at += LINE_BYTES)
		__builtin_prefetch(slice->source + at);
	if ((uintptr_t)begin % LINE_BYTES != 0)
		__builtin_prefetch(begin, 1);
	if ((uintptr_t)end % LINE_BYTES != 0)
		__builtin_prefetch(end, 1);
}

/* The slices of a batch in order, a few of them made ready ahead of the copy. */
struct lookahead {
	const struct fc_copy_batch *batch;
	uint64_t end; /* slices [.., end) are ready */
	bool is_valid[LOOKAHEAD_SLICES];
	struct fc_copy_hash slices[LOOKAHEAD_SLICES];
};

/* Small slices need more of them ahead to cover the memory's latency. */
static void look_ahead(struct lookahead *ahead, uint64_t index)
{
	const struct fc_copy_batch *batch = ahead->batch;
	uint64_t count = batch->copies[index].bytes < LOOKAHEAD_BYTES ? LOOKAHEAD_SLICES : 2;
	uint64_t end = fc_min_u64(index + count, batch->copy_count);

	for (; ahead->end < end; ahead->end++) {
		uint64_t place = ahead->end % LOOKAHEAD_SLICES;
		struct fc_copy_hash *slice = &ahead->slices[place];
		ahead->is_valid[place] = slice_init(slice, &batch->copies[ahead->end], batch->direction);
		if (ahead->is_valid[place])
			prefetch(slice);
	}
}

static void check_or_store(struct fc_copy_batch *batch, uint64_t index, uint64_t hash)
{
	const struct fc_copy *copy = &batch->copies[index];
	uint32_t found = fc_slice_fold(hash, copy->seed);

	if (batch->direction == FC_COPY_GATHER)
		memcpy(copy->checksum, &found, sizeof(found));
	else if (memcmp(copy->checksum, &found, sizeof(found)) != 0)
		batch->bad_first = fc_min_u64(batch->bad_first, index);
}

/* What a batch keeps in its device_private. */
enum { COPIES_DONE, BYTES_LEFT, IS_LARGER_THAN_CACHES };

/* Copies until PIECE_BYTES are done, or the batch is. */
static void run_piece(struct host_device *host, struct fc_copy_batch *batch)
{
	bool is_gather = batch->direction == FC_COPY_GATHER;
	uint64_t *bytes_moved = is_gather ? &host->device.bytes_gathered : &host->device.bytes_scattered;
	bool is_streaming = host->kernel != NULL && batch->device_private[IS_LARGER_THAN_CACHES];
	uint64_t i = batch->device_private[COPIES_DONE], piece_bytes = 0;
	struct lookahead ahead = {.batch = batch, .end = i};

	for (; i < batch->copy_count && piece_bytes < PIECE_BYTES && batch->result == 0; i++) {
		look_ahead(&ahead, i);
		if (!ahead.is_valid[i % LOOKAHEAD_SLICES]) {
			batch->result = FC_EINVAL;
			batch->bad_first = fc_min_u64(batch->bad_first, i);
			break;
		}
		uint64_t bytes = batch->copies[i].bytes;
		const struct fc_copy_hash *slice = &ahead.slices[i % LOOKAHEAD_SLICES];
		check_or_store(batch, i,
			       fc_copy_hash(host->kernel, slice, is_streaming && bytes >= STREAMING_SLICE_BYTES_MIN));
		piece_bytes += bytes;
	}
	if (is_streaming)
		host->kernel->flush();
	*bytes_moved += piece_bytes;
	batch->device_private[COPIES_DONE] = i;
	batch->device_private[BYTES_LEFT] -= piece_bytes;
}

static void host_submit(struct fc_device *device, struct fc_copy_batch *batch)
{
	struct host_device *host = host_device_of(device);
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < batch->copy_count; i++)
		bytes += batch->copies[i].bytes;
	batch->device_private[COPIES_DONE] = 0;
	batch->device_private[BYTES_LEFT] = bytes;
	batch->device_private[IS_LARGER_THAN_CACHES] = bytes >= FC_HOST_STREAMING_BYTES;
	batch->result = 0;
	batch->bad_first = batch->copy_count;
	fc_list_push(&host->waiting, &batch->link);
}

static struct fc_copy_batch *batch_of(struct fc_link *link)
{
	return fc_container_of(link, struct fc_copy_batch, link);
}

static struct fc_copy_batch *choose_batch(struct host_device *host)
{
	struct fc_copy_batch *chosen = batch_of(host->waiting.next);

	fc_list_for_each(link, &host->waiting)
	{
		struct fc_copy_batch *batch = batch_of(link);
		if (host->is_turn_of_least && batch->device_private[BYTES_LEFT] < chosen->device_private[BYTES_LEFT])
			chosen = batch;
	}
	host->is_turn_of_least = !host->is_turn_of_least;
	return chosen;
}

static unsigned host_poll(struct fc_device *device)
{
	struct host_device *host = host_device_of(device);

	if (fc_list_is_empty(&host->waiting))
		return 0;
	struct fc_copy_batch *batch = choose_batch(host);
	run_piece(host, batch);
	if (batch->device_private[COPIES_DONE] < batch->copy_count && batch->result == 0)
		return 1;
	fc_list_remove(&batch->link);
	batch->done_cb(batch);
	return 1;
}

static void *host_window_alloc(struct fc_device *device, uint64_t bytes)
{
	(void)host_device_of(device);
	return fc_pages_alloc(bytes);
}

static void host_window_free(struct fc_device *device, void *memory, uint64_t bytes)
{
	(void)host_device_of(device);
	fc_pages_free(memory, bytes);
}

static void host_close(struct fc_device *device)
{
	struct host_device *host = host_device_of(device);
	fc_check(fc_list_is_empty(&host->waiting));
	free(host);
}

int fc_device_host(struct fc_device **device, struct fc_error *error)
{
	static const struct fc_device_ops ops = {
		.submit = host_submit,
		.poll = host_poll,
		.window_alloc = host_window_alloc,
		.window_free = host_window_free,
		.close = host_close,
	};
	struct host_device *host = calloc(1, sizeof(*host));

	if (host == NULL)
		return fc_error_set(error, FC_ENOMEM, "host device: no memory for %zu bytes", sizeof(*host));
	host->device.ops = &ops;
	host->magic = HOST_MAGIC;
	host->kernel = fc_copy_kernel_best();
	fc_list_init(&host->waiting);
	*device = &host->device;
	return 0;
}

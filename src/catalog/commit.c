/* Commit batches: how segments become durable, and how their space becomes free again.
 *
 * Per arena, one batch at a time:
 *
 *     committing ---+
 *                   +--> batch: 1. sync            the slices are on the medium
 *     freeing ------+           2. write headers and the table pages that changed
 *                               3. sync            now the segments exist, and the freed ones do not
 *
 * Without segments to commit, step 1 is left out. What comes in meanwhile waits for the next batch, so many small turns
 * share two syncs. Chunks of a freed segment are given back after step 3, never before: nobody writes over a segment
 * that a crash could still bring back. And a segment that others replaced gets here only after what replaced it is
 * durable (it is pinned until then).
 *
 * When a step fails, nothing of the batch counts: its segments are withdrawn, what they had replaced is named again,
 * and frees are tried again with the next batch.
 *
 * A step may not end at all. The catalog has no clock: whoever has one says when it is late, and then nobody is kept
 * waiting for it, while the batch, its segments and the chunks that it frees stay as they are until it ends:
 *
 *     under way --fc_catalog_commit_is_late()--> under way, silent: waiters are told, nothing new is placed here
 *          ^                                             |
 *          '------------- any I/O of it ends ------------'
 *
 * A batch asks for no memory: its segments are visible, and to withdraw them because there is none would take back what
 * was acknowledged. What it needs for itself and for pages of the table is taken when the arena is opened; a segment's
 * header has its memory from when the segment was reserved, and hands it over to the write. */
#include "catalog/state.h"

#include "base/plant.h"

#include <string.h>

#define BATCH_SEGMENTS_MAX 256
#define PAGES_MAX (2 * BATCH_SEGMENTS_MAX)
#define WRITES_MAX (BATCH_SEGMENTS_MAX + PAGES_MAX)

struct commit_write {
	struct fc_io io;
	struct fc_commit_batch *batch;
	uint8_t *memory; /* of a header: io.buffer is its aligned part; NULL: a page */
	size_t memory_bytes;
};

struct fc_commit_batch {
	struct fc_arena *arena;
	struct fc_link segments; /* to commit */
	struct fc_link frees;
	uint64_t segment_count;
	struct fc_io sync;
	bool is_final_sync;
	struct commit_write writes[WRITES_MAX];
	uint64_t write_count, writes_open;
	uint8_t *page_memory; /* `pages` are its aligned part */
	uint8_t *pages;
	uint64_t page_count, page_room;
	struct fc_error error; /* its code is 0 as long as nothing has failed */
};

static void start_batch(struct fc_arena *arena);

/* ---- outcome ---- */

/* Those that have heard of all of their segments are told when the batch is done with: a callback may do anything. */
static void note_outcome(struct fc_reservation *reservation, const struct fc_error *error, struct fc_link *told)
{
	if (reservation == NULL)
		return;
	if (error->code != FC_OK) {
		reservation->durable_code = error->code;
		reservation->durable_error = *error;
	}
	if (--reservation->durable_pending == 0)
		fc_list_push(told, &reservation->wait_link);
}

static void tell(struct fc_link *told)
{
	struct fc_link *link;
	while ((link = fc_list_pop(told)) != NULL) {
		struct fc_reservation *reservation = fc_container_of(link, struct fc_reservation, wait_link);
		reservation->durable_cb(reservation);
	}
}

static struct fc_reservation *leave_batch(struct fc_segment *segment)
{
	struct fc_reservation *reservation = segment->reservation;
	segment->reservation = NULL;
	segment->is_committing = false;
	return reservation;
}

static void segment_is_durable(struct fc_catalog *catalog, struct fc_segment *segment, struct fc_link *told)
{
	note_outcome(leave_batch(segment), &(struct fc_error){.code = FC_OK}, told);
	segment->was_durable = segment->is_on_table;
	if (segment->state == FC_SEGMENT_VISIBLE)
		segment->state = FC_SEGMENT_DURABLE;
	fc_segment_release_pinned(catalog, segment);
	fc_segment_settle(catalog, segment);
}

/* A segment that was replaced before it was durable, and then could not become so, is kept for what it pins. */
static void withdraw(struct fc_commit_batch *batch, struct fc_link *told)
{
	struct fc_catalog *catalog = batch->arena->catalog;
	struct fc_link refused, *link;
	fc_list_init(&refused);
	while ((link = fc_list_pop(&batch->segments)) != NULL) {
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, commit_link);
		note_outcome(leave_batch(segment), &batch->error, told);
		if (segment->state == FC_SEGMENT_VISIBLE)
			fc_list_push(&refused, &segment->commit_link);
		else
			fc_segment_settle(catalog, segment);
	}
	fc_withdraw(catalog, &refused);
}

static void free_writes(struct fc_commit_batch *batch)
{
	const struct fc_alloc *alloc = batch->arena->catalog->alloc;
	for (uint64_t i = 0; i < batch->write_count; i++)
		fc_alloc_free(alloc, batch->writes[i].memory, batch->writes[i].memory_bytes);
	batch->write_count = batch->page_count = 0;
}

static void finish_frees(struct fc_commit_batch *batch)
{
	struct fc_arena *arena = batch->arena;
	struct fc_link *link;
	while ((link = fc_list_pop(&batch->frees)) != NULL) {
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, commit_link);
		if (batch->error.code != FC_OK) {
			segment->is_on_table = true;
			fc_list_push(&arena->freeing, &segment->commit_link);
			continue;
		}
		arena->chunks_freeing -= segment->chunk_count;
		arena->catalog->chunks_freed += segment->chunk_count;
		fc_segment_delete(arena->catalog, segment);
	}
}

/* The arena counts as busy until all is told, so that nothing that happens on the way starts the next batch. */
static void finish_batch(struct fc_commit_batch *batch)
{
	struct fc_arena *arena = batch->arena;
	struct fc_catalog *catalog = arena->catalog;
	struct fc_link told, *link;
	int code = batch->error.code;
	fc_list_init(&told);
	free_writes(batch);
	finish_frees(batch);
	if (code != FC_OK)
		withdraw(batch, &told);
	while ((link = fc_list_pop(&batch->segments)) != NULL)
		segment_is_durable(catalog, fc_container_of(link, struct fc_segment, commit_link), &told);
	tell(&told);
	arena->batch = NULL;
	/* After a failure the frees wait for the next turn's batch, so that a broken medium is not asked in a circle.
	 */
	if (code == FC_OK || !fc_list_is_empty(&arena->committing))
		start_batch(arena);
	fc_space_wake(catalog);
}

/* ---- steps ---- */

static void on_sync(struct fc_io *io);

static void submit_sync(struct fc_commit_batch *batch, bool is_final)
{
	batch->is_final_sync = is_final;
	batch->sync = (struct fc_io){.op = FC_IO_SYNC, .done_cb = on_sync};
	fc_media_submit(batch->arena->media, &batch->sync);
}

static void has_moved(struct fc_arena *arena)
{
	arena->commit_progress++;
	arena->is_silent = false;
}

/* What a batch would do that takes its memory as it needs it. */
static bool lacks_memory(const struct fc_commit_batch *batch)
{
	const struct fc_alloc *alloc = batch->arena->catalog->alloc;
	if (!fc_is_planted(FC_PLANT_LATE_MEMORY))
		return false;
	void *memory = fc_alloc_zeroed(alloc, FC_TABLE_PAGE_BYTES);
	fc_alloc_free(alloc, memory, FC_TABLE_PAGE_BYTES);
	return memory == NULL;
}

static void on_write(struct fc_io *io)
{
	struct commit_write *write = fc_container_of(io, struct commit_write, io);
	struct fc_commit_batch *batch = write->batch;
	has_moved(batch->arena);
	bool is_short_allowed = fc_is_planted(FC_PLANT_SHORT_HEADER) && io->result >= 0;
	if (io->result != (int64_t)io->bytes && !is_short_allowed)
		fc_io_explain(batch->arena->media, io, &batch->error);
	if (lacks_memory(batch))
		fc_error_set(&batch->error, FC_ENOMEM, "segment headers: %s", fc_code_text(FC_ENOMEM));
	if (--batch->writes_open > 0)
		return;
	if (batch->error.code == FC_OK && !fc_is_planted(FC_PLANT_NO_FINAL_SYNC))
		submit_sync(batch, true);
	else
		finish_batch(batch);
}

/* ---- what is written ---- */

static size_t header_memory_bytes(const struct fc_segment *segment)
{
	return segment->header_bytes + FC_TABLE_PAGE_BYTES;
}

int fc_commit_prepare(struct fc_catalog *catalog, struct fc_segment *segment)
{
	if (!catalog->arenas[segment->medium].is_durable)
		return FC_OK;
	segment->header_memory = fc_alloc_zeroed(catalog->alloc, header_memory_bytes(segment));
	return segment->header_memory == NULL ? FC_ENOMEM : FC_OK;
}

void fc_commit_forget(const struct fc_catalog *catalog, struct fc_segment *segment)
{
	if (segment->header_memory != NULL)
		fc_alloc_free(catalog->alloc, segment->header_memory, header_memory_bytes(segment));
	segment->header_memory = NULL;
}

static struct commit_write *add_write(struct fc_commit_batch *batch, uint64_t offset, uint64_t bytes, uint8_t *buffer)
{
	struct commit_write *write = &batch->writes[batch->write_count++];
	fc_check(batch->write_count <= WRITES_MAX);
	*write = (struct commit_write){.batch = batch};
	write->io = (struct fc_io){
		.op = FC_IO_WRITE,
		.offset = offset,
		.bytes = bytes,
		.buffer = buffer,
		.done_cb = on_write,
	};
	return write;
}

static void add_header(struct fc_commit_batch *batch, struct fc_segment *segment)
{
	struct fc_arena *arena = batch->arena;
	uint64_t offset = arena->superblock.data_offset + segment->chunk_first * arena->superblock.chunk_bytes;
	uint8_t *buffer = (uint8_t *)fc_align_up((uintptr_t)segment->header_memory, FC_TABLE_PAGE_BYTES);
	struct commit_write *write = add_write(batch, offset, segment->header_bytes, buffer);
	write->memory = segment->header_memory;
	write->memory_bytes = header_memory_bytes(segment);
	segment->header_memory = NULL;
	struct fc_header header = {
		.uuid = arena->superblock.uuid,
		.seq = segment->seq,
		.offset = offset,
		.chunk_count = segment->chunk_count,
		.session = segment->session_id,
		.session_kind = segment->session_kind,
		.turn = segment->turn,
		.start_block = segment->start_block,
		.end_block = segment->end_block,
		.parent = segment->parent,
		.shape = segment->shape,
	};
	fc_header_encode(&header, segment->keys, buffer);
}

static void add_page(struct fc_commit_batch *batch, uint64_t page)
{
	struct fc_arena *arena = batch->arena;
	fc_check(batch->page_count < batch->page_room);
	uint8_t *buffer = batch->pages + batch->page_count++ * FC_TABLE_PAGE_BYTES;
	memset(buffer, 0, FC_TABLE_PAGE_BYTES);
	add_write(batch, FC_TABLE_OFFSET + page * FC_TABLE_PAGE_BYTES, FC_TABLE_PAGE_BYTES, buffer);
	for (uint64_t i = 0; i < FC_ENTRIES_PER_PAGE; i++) {
		uint64_t chunk = page * FC_ENTRIES_PER_PAGE + i;
		if (chunk >= arena->chunk_count || arena->owner[chunk] == 0)
			continue;
		const struct fc_segment *segment = arena->catalog->segments[arena->owner[chunk] - 1];
		if (!segment->is_on_table)
			continue;
		struct fc_table_entry entry = {.seq = segment->seq, .chunk_count = (uint32_t)segment->chunk_count};
		fc_table_entry_encode(&entry, arena->superblock.uuid, chunk, buffer + i * FC_TABLE_ENTRY_BYTES);
	}
}

static bool has_page(const struct fc_commit_batch *batch, uint64_t page)
{
	for (uint64_t i = 0; i < batch->write_count; i++)
		if (batch->writes[i].io.offset == FC_TABLE_OFFSET + page * FC_TABLE_PAGE_BYTES)
			return true;
	return false;
}

static void add_pages_of(struct fc_commit_batch *batch, struct fc_link *list)
{
	fc_list_for_each(link, list)
	{
		uint64_t page =
			fc_container_of(link, struct fc_segment, commit_link)->chunk_first / FC_ENTRIES_PER_PAGE;
		if (!has_page(batch, page))
			add_page(batch, page);
	}
}

/* One that was reclaimed meanwhile is not written any more; one that was replaced is, in case what replaced it fails.
 */
static bool is_worth_writing(const struct fc_segment *segment)
{
	return segment->state != FC_SEGMENT_RETIRED || fc_link_is_linked(&segment->pin_link);
}

static void prepare_writes(struct fc_commit_batch *batch)
{
	fc_list_for_each(link, &batch->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, commit_link);
		segment->is_on_table = is_worth_writing(segment);
	}
	fc_list_for_each(link, &batch->frees)
	{
		fc_container_of(link, struct fc_segment, commit_link)->is_on_table = false;
	}
	fc_list_for_each(link, &batch->segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, commit_link);
		if (segment->is_on_table)
			add_header(batch, segment);
	}
	add_pages_of(batch, &batch->segments);
	add_pages_of(batch, &batch->frees);
}

static void start_writes(struct fc_commit_batch *batch)
{
	prepare_writes(batch);
	batch->writes_open = batch->write_count;
	uint64_t count = batch->write_count;
	for (uint64_t i = 0; i < count; i++)
		fc_media_submit(batch->arena->media, &batch->writes[i].io);
}

static void on_sync(struct fc_io *io)
{
	struct fc_commit_batch *batch = fc_container_of(io, struct fc_commit_batch, sync);
	has_moved(batch->arena);
	if (io->result < 0)
		fc_io_explain(batch->arena->media, io, &batch->error);
	if (batch->error.code != FC_OK || batch->is_final_sync)
		finish_batch(batch);
	else
		start_writes(batch);
}

static uint64_t move_segments(struct fc_link *from, struct fc_link *to)
{
	uint64_t count = 0;
	while (count < BATCH_SEGMENTS_MAX && !fc_list_is_empty(from)) {
		fc_list_push(to, fc_list_pop(from));
		count++;
	}
	return count;
}

static void start_batch(struct fc_arena *arena)
{
	if (arena->catalog->opts.is_read_only)
		return;
	if (arena->batch != NULL || !arena->catalog->is_open ||
	    (fc_list_is_empty(&arena->committing) && fc_list_is_empty(&arena->freeing)))
		return;
	struct fc_commit_batch *batch = arena->idle_batch;
	batch->error = (struct fc_error){0};
	fc_list_init(&batch->segments);
	fc_list_init(&batch->frees);
	batch->segment_count = move_segments(&arena->committing, &batch->segments);
	move_segments(&arena->freeing, &batch->frees);
	arena->batch = batch;
	arena->commit_progress++;
	if (batch->segment_count > 0 && !fc_is_planted(FC_PLANT_HEADER_FIRST))
		submit_sync(batch, false);
	else
		start_writes(batch);
}

int fc_commit_init(struct fc_arena *arena)
{
	const struct fc_alloc *alloc = arena->catalog->alloc;
	struct fc_commit_batch *batch = fc_alloc_zeroed(alloc, sizeof(*batch));
	if (batch == NULL)
		return FC_ENOMEM;
	uint64_t table_pages = (arena->chunk_count + FC_ENTRIES_PER_PAGE - 1) / FC_ENTRIES_PER_PAGE;
	batch->arena = arena;
	batch->page_room = fc_min_u64(PAGES_MAX, table_pages);
	batch->page_memory = fc_alloc_zeroed(alloc, (batch->page_room + 1) * FC_TABLE_PAGE_BYTES);
	batch->pages = (uint8_t *)fc_align_up((uintptr_t)batch->page_memory, FC_TABLE_PAGE_BYTES);
	arena->idle_batch = batch;
	return batch->page_memory == NULL ? FC_ENOMEM : FC_OK;
}

void fc_commit_kick(struct fc_arena *arena)
{
	start_batch(arena);
}

void fc_commit_queue(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	segment->is_committing = true;
	fc_list_push(&arena->committing, &segment->commit_link);
	start_batch(arena);
}

void fc_free_queue(struct fc_catalog *catalog, struct fc_segment *segment)
{
	struct fc_arena *arena = &catalog->arenas[segment->medium];
	fc_check(!fc_link_is_linked(&segment->commit_link));
	if (fc_is_planted(FC_PLANT_FREE_AT_ONCE)) {
		fc_segment_delete(catalog, segment);
		return;
	}
	arena->chunks_freeing += segment->chunk_count;
	fc_list_push(&arena->freeing, &segment->commit_link);
	start_batch(arena);
}

/* ---- what does not end ---- */

bool fc_catalog_is_committing(const struct fc_catalog *catalog, enum fc_medium medium, uint64_t *progress)
{
	const struct fc_arena *arena = &catalog->arenas[medium];
	*progress = arena->commit_progress;
	return arena->batch != NULL;
}

bool fc_catalog_is_silent(const struct fc_catalog *catalog, enum fc_medium medium)
{
	return catalog->arenas[medium].is_silent;
}

/* Those that then wait for nothing else go to `told`. */
static void stop_waiting(struct fc_link *segments, const struct fc_error *late, struct fc_link *told)
{
	fc_list_for_each(link, segments)
	{
		struct fc_segment *segment = fc_container_of(link, struct fc_segment, commit_link);
		struct fc_reservation *reservation = segment->reservation;
		if (!fc_is_planted(FC_PLANT_LATE_TWICE))
			segment->reservation = NULL;
		note_outcome(reservation, late, told);
	}
}

void fc_catalog_commit_is_late(struct fc_catalog *catalog, enum fc_medium medium)
{
	struct fc_arena *arena = &catalog->arenas[medium];
	struct fc_error late = {0};
	struct fc_link told;
	fc_check(arena->batch != NULL);
	arena->is_silent = true;
	fc_list_init(&told);
	fc_error_set(&late, FC_ETIMEOUT,
		     "%s does not answer: nothing of what makes it durable has ended for io_timeout_ns",
		     arena->media->name != NULL ? arena->media->name : "arena");
	stop_waiting(&arena->batch->segments, &late, &told);
	stop_waiting(&arena->committing, &late, &told);
	tell(&told);
}

bool fc_catalog_is_settled(const struct fc_catalog *catalog)
{
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		if (catalog->arenas[medium].batch != NULL ||
		    (catalog->arenas[medium].is_open && !fc_list_is_empty(&catalog->arenas[medium].committing)))
			return false;
	return true;
}

void fc_commit_deinit(struct fc_arena *arena)
{
	/* A batch under way belongs to the medium until its I/O has ended; callers drain first. */
	fc_check(arena->batch == NULL);
	struct fc_commit_batch *batch = arena->idle_batch;
	if (batch == NULL)
		return;
	fc_alloc_free(arena->catalog->alloc, batch->page_memory, (batch->page_room + 1) * FC_TABLE_PAGE_BYTES);
	fc_alloc_free(arena->catalog->alloc, batch, sizeof(*batch));
}

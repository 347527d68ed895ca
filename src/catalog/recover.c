/* Open: format a blank arena, or find again what an earlier run left.
 *
 * One arena after the other:
 *
 *   READ_SUPERBLOCKS --blank--> WRITE_MARK, sync --> ZERO_TABLE --> WRITE_SUPERBLOCK 0, sync, 1, sync
 *         |                                                           ^        |
 *         +--ours, same geometry---------------------(epoch + 1)------+        v
 *                                     READ_TABLE --> READ_HEADERS --> REWRITE_TABLE (pages with entries that name
 * nothing)
 *
 * Where two segments claim a chunk, the younger has it. What both arenas hold together is made of that in rebuild.c.
 * Nothing on a medium is trusted: an entry and its header must both be whole and agree (format/arena.h), or the segment
 * does not exist. */
#include "catalog/state.h"

#include "base/plant.h"

#include <string.h>

#define TABLE_PIECE_BYTES (1u << 20)
#define HEADER_SLOTS 64u
#define HEADER_FIRST_BYTES (8u << 10)
#define HEADER_READS_MAX 3u /* a segment whose header cannot be read is gone for good */

enum step {
	START,
	READ_SUPERBLOCKS,
	WRITE_MARK,
	SYNC_MARK,
	ZERO_TABLE,
	WRITE_SUPERBLOCK,
	SYNC_SUPERBLOCK,
	READ_TABLE,
	READ_HEADERS,
	REWRITE_TABLE,
	SYNC_TABLE
};

struct candidate {
	uint64_t chunk;
	struct fc_table_entry entry;
	struct fc_segment *segment; /* once its header is read and right */
};

struct header_slot {
	struct fc_io io;
	struct fc_open_job *job;
	uint64_t candidate;
	unsigned failed_reads; /* of that candidate */
	uint8_t *memory;
	size_t memory_bytes;
};

struct fc_open_job {
	struct fc_catalog *catalog;
	void (*opened_cb)(void *context, int code, const struct fc_error *error);
	void *context;
	struct fc_error error;
	int medium; /* of the arena being opened */
	enum step step;
	struct fc_io io;
	uint8_t *memory; /* buffer inside, aligned */
	uint8_t *buffer;
	unsigned copy; /* superblock being written */
	uint64_t page, page_count;
	struct candidate *candidates;
	uint64_t candidate_count, candidate_room, next_candidate;
	uint64_t damaged_entries;
	struct header_slot slots[HEADER_SLOTS];
	unsigned slots_open;
	int header_code;
};

static void next_step(struct fc_open_job *job, enum step step);

static struct fc_arena *arena_of(struct fc_open_job *job)
{
	return &job->catalog->arenas[job->medium];
}

static const char *medium_name(const struct fc_open_job *job)
{
	return job->medium == FC_SSD ? "ssd" : "memory";
}

static void finish(struct fc_open_job *job, int code)
{
	/* The callback may free the catalog. Nobody on the way here touches the job again. */
	struct fc_error error = job->error;
	void (*opened_cb)(void *context, int code, const struct fc_error *error) = job->opened_cb;
	void *context = job->context;
	error.code = code;
	fc_open_deinit(job->catalog);
	opened_cb(context, code, &error);
}

static int fail(struct fc_open_job *job, int code, const char *what)
{
	return fc_error_set(&job->error, code, "%s arena: %s: %s", medium_name(job), what, fc_code_text(code));
}

static void submit(struct fc_open_job *job, enum fc_io_op op, uint64_t offset, uint64_t bytes)
{
	job->io.op = op;
	job->io.offset = offset;
	job->io.bytes = op == FC_IO_SYNC ? 0 : bytes;
	job->io.buffer = job->buffer;
	fc_media_submit(arena_of(job)->media, &job->io);
}

/* ---- superblocks ---- */

static int decode_superblocks(struct fc_open_job *job, bool *is_blank)
{
	struct fc_arena *arena = arena_of(job);
	*is_blank = fc_superblocks_are_unwritten(job->buffer);
	if (*is_blank)
		return FC_OK;
	int code = fc_superblock_choose(&arena->superblock, job->buffer, &job->error);
	if (code != FC_OK)
		return fc_error_wrap(&job->error, code, "%s arena", medium_name(job));
	if (fc_is_planted(FC_PLANT_ANY_GEOMETRY))
		return FC_OK;
	code = fc_geometry_same(&arena->superblock.geometry, &job->catalog->geometry, &job->error);
	return code == FC_OK ? code : fc_error_wrap(&job->error, code, "%s arena", medium_name(job));
}

static int plan_superblock(struct fc_open_job *job)
{
	struct fc_arena *arena = arena_of(job);
	const struct fc_catalog_opts *opts = &job->catalog->opts;
	uint32_t align = arena->media->align < 64 ? 64 : arena->media->align;
	int code = fc_superblock_plan(&arena->superblock, arena->media->bytes, opts->chunk_bytes, align,
				      &job->catalog->geometry, &job->error);
	arena->superblock.uuid = opts->uuid;
	arena->superblock.uuid.low ^= (uint64_t)job->medium + 1;
	return code;
}

/* The arena may have another size than last time; its table has a fixed room. */
static int adopt_superblock(struct fc_open_job *job)
{
	struct fc_arena *arena = arena_of(job);
	struct fc_superblock *superblock = &arena->superblock;
	if (superblock->align % arena->media->align != 0)
		return fc_error_set(
			&job->error, FC_EFORMAT,
			"arena with an alignment of %u bytes on a medium that needs %u; copy it to a medium like the "
			"one it was made on",
			superblock->align, arena->media->align);
	superblock->bytes = arena->media->bytes;
	if (++superblock->epoch >= FC_EPOCH_MAX)
		return fc_error_set(&job->error, FC_ELIMIT,
				    "arena that was opened %llu times, the most that its numbers allow",
				    (unsigned long long)superblock->epoch - 1);
	arena->next_seq = fc_seq_first(superblock->epoch) + 1;
	arena->chunk_count = fc_superblock_chunks(superblock, superblock->bytes);
	if (arena->chunk_count == 0)
		return fc_error_set(&job->error, FC_EINVAL, "arena of %llu bytes; at least %llu are needed",
				    (unsigned long long)superblock->bytes,
				    (unsigned long long)fc_superblock_bytes_min(superblock));
	arena->owner = fc_alloc_zeroed(job->catalog->alloc, arena->chunk_count * sizeof(*arena->owner));
	arena->ender = fc_alloc_zeroed(job->catalog->alloc, arena->chunk_count * sizeof(*arena->ender));
	if (arena->owner == NULL || arena->ender == NULL)
		return fail(job, FC_ENOMEM, "chunk owners");
	int code = fc_space_init(&arena->space, job->catalog->alloc, arena->chunk_count);
	if (code == FC_OK && arena->is_durable && !job->catalog->opts.is_read_only)
		code = fc_commit_init(arena);
	return code == FC_OK ? FC_OK : fail(job, code, "free space and commits");
}

/* A volatile arena is always new; its superblock and table are never written. */
static int open_volatile(struct fc_open_job *job)
{
	int code = plan_superblock(job);
	return code == FC_OK ? adopt_superblock(job) : code;
}

static void write_superblock(struct fc_open_job *job, unsigned copy)
{
	job->copy = copy;
	job->step = WRITE_SUPERBLOCK;
	fc_superblock_encode(&arena_of(job)->superblock, job->buffer);
	submit(job, FC_IO_WRITE, copy * (uint64_t)FC_SUPERBLOCK_BYTES, FC_SUPERBLOCK_BYTES);
}

/* A format that a crash interrupts can be begun again. */
static void write_mark(struct fc_open_job *job)
{
	job->step = WRITE_MARK;
	fc_superblock_encode_mark(job->buffer);
	submit(job, FC_IO_WRITE, 0, FC_TABLE_PAGE_BYTES);
}

static int on_superblocks_read(struct fc_open_job *job)
{
	bool is_blank;
	int code = decode_superblocks(job, &is_blank);
	if (code == FC_OK && is_blank && job->catalog->opts.is_read_only)
		code = fail(job, FC_EFORMAT, "nothing was ever stored in it");
	if (code == FC_OK && is_blank)
		code = plan_superblock(job);
	if (code == FC_OK)
		code = adopt_superblock(job);
	if (code != FC_OK)
		return code;
	job->page = 0;
	if (job->catalog->opts.is_read_only)
		next_step(job, READ_TABLE);
	else if (is_blank)
		write_mark(job);
	else
		write_superblock(job, 0);
	return FC_OK;
}

/* ---- chunk table ---- */

static uint64_t table_pages(const struct fc_arena *arena)
{
	return arena->superblock.table_chunks / FC_ENTRIES_PER_PAGE;
}

static uint64_t piece_pages(const struct fc_open_job *job, uint64_t page_end)
{
	return fc_min_u64(page_end - job->page, TABLE_PIECE_BYTES / FC_TABLE_PAGE_BYTES);
}

static int add_candidate(struct fc_open_job *job, uint64_t chunk, struct fc_table_entry entry)
{
	int code = fc_alloc_reserve(job->catalog->alloc, (void **)&job->candidates, &job->candidate_room,
				    job->candidate_count + 1, sizeof(*job->candidates));
	if (code != FC_OK)
		return fail(job, code, "list of segments");
	job->candidates[job->candidate_count++] = (struct candidate){.chunk = chunk, .entry = entry};
	return FC_OK;
}

static int on_table_piece(struct fc_open_job *job)
{
	struct fc_arena *arena = arena_of(job);
	uint64_t entry_count = job->io.bytes / FC_TABLE_ENTRY_BYTES;
	for (uint64_t i = 0; i < entry_count; i++) {
		struct fc_table_entry entry;
		uint64_t chunk = job->page * FC_ENTRIES_PER_PAGE + i;
		int code = fc_table_entry_decode(&entry, arena->superblock.uuid, chunk,
						 job->buffer + i * FC_TABLE_ENTRY_BYTES);
		if (code != FC_OK) {
			job->damaged_entries++;
			continue;
		}
		if (entry.seq == 0)
			continue;
		/* Behind a new, smaller end: gone. */
		if (chunk + entry.chunk_count > arena->chunk_count) {
			job->damaged_entries++;
			continue;
		}
		code = add_candidate(job, chunk, entry);
		if (code != FC_OK)
			return code;
	}
	job->page += job->io.bytes / FC_TABLE_PAGE_BYTES;
	next_step(job, job->page < table_pages(arena) ? READ_TABLE : READ_HEADERS);
	return FC_OK;
}

/* ---- headers ---- */

static void on_header(struct fc_io *io);

static int slot_memory(struct header_slot *slot, size_t bytes)
{
	const struct fc_alloc *alloc = slot->job->catalog->alloc;
	size_t needed = bytes + FC_TABLE_PAGE_BYTES;
	if (slot->memory_bytes >= needed)
		return FC_OK;
	fc_alloc_free(alloc, slot->memory, slot->memory_bytes);
	slot->memory_bytes = 0;
	slot->memory = fc_alloc_zeroed(alloc, needed);
	if (slot->memory == NULL)
		return FC_ENOMEM;
	slot->memory_bytes = needed;
	return FC_OK;
}

static int read_header(struct header_slot *slot, uint64_t bytes)
{
	struct fc_arena *arena = arena_of(slot->job);
	const struct candidate *candidate = &slot->job->candidates[slot->candidate];
	bytes = fc_align_up(bytes, arena->superblock.align);
	int code = slot_memory(slot, bytes);
	if (code != FC_OK)
		return code;
	slot->io = (struct fc_io){
		.op = FC_IO_READ,
		.offset = arena->superblock.data_offset + candidate->chunk * arena->superblock.chunk_bytes,
		.bytes = bytes,
		.buffer = (void *)fc_align_up((uintptr_t)slot->memory, FC_TABLE_PAGE_BYTES),
		.done_cb = on_header,
	};
	slot->job->slots_open++;
	fc_media_submit(arena->media, &slot->io);
	return FC_OK;
}

/* Numbers of an epoch that has not begun were never given, and the next ones are counted on from the highest. */
static bool belongs(const struct fc_arena *arena, const struct fc_header *header, const struct candidate *candidate)
{
	uint64_t offset = arena->superblock.data_offset + candidate->chunk * arena->superblock.chunk_bytes;
	return header->uuid.high == arena->superblock.uuid.high && header->uuid.low == arena->superblock.uuid.low &&
	       header->seq == candidate->entry.seq && header->seq < fc_seq_first(arena->superblock.epoch) &&
	       header->chunk_count == candidate->entry.chunk_count && header->offset == offset;
}

static int restore_segment(struct fc_open_job *job, struct candidate *candidate, const struct fc_header *header,
			   const uint8_t *keys)
{
	struct fc_catalog *catalog = job->catalog;
	struct fc_segment *segment;
	int code = fc_segment_new(catalog, (enum fc_medium)job->medium, &header->shape, &segment);
	if (code != FC_OK)
		return code;
	segment->state = FC_SEGMENT_DURABLE;
	segment->is_on_table = segment->was_durable = true;
	segment->seq = header->seq;
	segment->turn = header->turn;
	segment->start_block = header->start_block;
	segment->end_block = header->end_block;
	segment->parent = header->parent;
	for (uint64_t entry = 0; entry < header->shape.entry_count; entry++)
		segment->keys[entry] = fc_header_key(keys, entry);
	code = fc_segment_measure(catalog, segment);
	if (code != FC_OK || segment->chunk_count != header->chunk_count) {
		fc_segment_delete(catalog, segment);
		return FC_OK; /* a header that its own geometry contradicts: not a segment */
	}
	struct fc_session *session;
	code = fc_session_obtain(catalog, header->session, header->session_kind, &session);
	if (code != FC_OK) {
		fc_segment_delete(catalog, segment);
		return code;
	}
	fc_segment_assign(segment, session);
	candidate->segment = segment;
	return FC_OK;
}

static void fill_slots(struct fc_open_job *job);

static void on_header(struct fc_io *io)
{
	struct header_slot *slot = fc_container_of(io, struct header_slot, io);
	struct fc_open_job *job = slot->job;
	struct candidate *candidate = &job->candidates[slot->candidate];
	struct fc_header header;
	struct fc_range ranges[FC_RANGES_MAX];
	const uint8_t *keys;
	uint64_t encoded_bytes = 0;
	uint64_t limit = candidate->entry.chunk_count * arena_of(job)->superblock.chunk_bytes;
	job->slots_open--;
	bool is_read = io->result == (int64_t)io->bytes;
	if (!is_read && ++slot->failed_reads < HEADER_READS_MAX) {
		job->header_code = read_header(slot, io->bytes);
		if (job->header_code == FC_OK)
			return;
	}
	if (is_read && fc_header_peek(io->buffer, &encoded_bytes) == FC_OK && encoded_bytes > io->bytes &&
	    encoded_bytes <= limit) {
		job->header_code = read_header(slot, encoded_bytes);
		if (job->header_code == FC_OK)
			return;
	}
	if (is_read &&
	    fc_header_decode(&header, ranges, &job->catalog->geometry, io->buffer, io->bytes, &keys) == FC_OK &&
	    belongs(arena_of(job), &header, candidate) && job->header_code == FC_OK)
		job->header_code = restore_segment(job, candidate, &header, keys);
	slot->job = NULL;
	fill_slots(job);
}

static int take_chunks(struct fc_open_job *job);

static void on_headers_read(struct fc_open_job *job)
{
	int code = job->header_code != FC_OK ? fail(job, job->header_code, "segment headers") : take_chunks(job);
	if (code != FC_OK) {
		finish(job, code);
		return;
	}
	job->page = 0;
	next_step(job, REWRITE_TABLE);
}

static void fill_slots(struct fc_open_job *job)
{
	for (unsigned i = 0; i < HEADER_SLOTS && job->header_code == FC_OK; i++) {
		struct header_slot *slot = &job->slots[i];
		if (slot->job != NULL || job->next_candidate == job->candidate_count)
			continue;
		slot->job = job;
		slot->candidate = job->next_candidate++;
		slot->failed_reads = 0;
		uint64_t bytes =
			job->candidates[slot->candidate].entry.chunk_count * arena_of(job)->superblock.chunk_bytes;
		job->header_code = read_header(slot, fc_min_u64(bytes, HEADER_FIRST_BYTES));
	}
	if (job->slots_open == 0)
		on_headers_read(job);
}

/* ---- ownership of chunks ---- */

static void sort_candidates(struct candidate *candidates, uint64_t count)
{
	/* Heap sort by sequence number, youngest first. */
	for (uint64_t end = count, start = count / 2; end > 1;) {
		if (start > 0) {
			start--;
		} else {
			end--;
			struct candidate last = candidates[end];
			candidates[end] = candidates[0];
			candidates[0] = last;
		}
		uint64_t root = start;
		for (uint64_t child; (child = 2 * root + 1) < end; root = child) {
			if (child + 1 < end && candidates[child + 1].entry.seq < candidates[child].entry.seq)
				child++;
			if (candidates[root].entry.seq <= candidates[child].entry.seq)
				break;
			struct candidate swap = candidates[root];
			candidates[root] = candidates[child];
			candidates[child] = swap;
		}
	}
}

static int take_chunks(struct fc_open_job *job)
{
	struct fc_catalog *catalog = job->catalog;
	struct fc_arena *arena = arena_of(job);
	sort_candidates(job->candidates, job->candidate_count);
	for (uint64_t i = 0; i < job->candidate_count; i++) {
		struct candidate *candidate = &job->candidates[i];
		struct fc_segment *segment = candidate->segment;
		if (segment == NULL ||
		    !fc_space_is_free(&arena->space, candidate->chunk, candidate->entry.chunk_count)) {
			job->damaged_entries++;
			if (segment != NULL)
				fc_segment_delete(catalog, segment);
			continue;
		}
		segment->chunk_first = candidate->chunk;
		fc_segment_own_chunks(catalog, segment);
		arena->next_seq = fc_max_u64(arena->next_seq, segment->seq + 1);
	}
	job->candidate_count = job->next_candidate = 0;
	return FC_OK;
}

/* ---- the steps ---- */

static void open_is_complete(struct fc_open_job *job)
{
	int code = fc_rebuild(job->catalog);
	if (code != FC_OK)
		fc_error_set(&job->error, code, "rebuilding the index: %s", fc_code_text(code));
	job->catalog->is_open = code == FC_OK;
	fc_owners_opened(job->catalog);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_commit_kick(&job->catalog->arenas[medium]);
	finish(job, code);
}

static void next_arena(struct fc_open_job *job)
{
	job->catalog->dropped_segments += job->damaged_entries;
	job->damaged_entries = 0;
	for (job->medium++; job->medium < FC_MEDIUM_COUNT; job->medium++) {
		struct fc_arena *arena = arena_of(job);
		if (arena->media == NULL)
			continue;
		arena->is_durable = arena->media->is_durable;
		arena->is_open = true;
		if (arena->is_durable && arena->media->bytes >= FC_TABLE_OFFSET) {
			next_step(job, READ_SUPERBLOCKS);
			return;
		}
		int code = open_volatile(job); /* also says how small an arena is that has no place for a superblock */
		if (code != FC_OK) {
			finish(job, code);
			return;
		}
	}
	open_is_complete(job);
}

/* Writes the table as it should be, so that entries which name nothing can never come back. */
static void rewrite_table(struct fc_open_job *job)
{
	struct fc_arena *arena = arena_of(job);
	uint64_t pages = piece_pages(job, table_pages(arena));
	memset(job->buffer, 0, pages * FC_TABLE_PAGE_BYTES);
	for (uint64_t i = 0; i < pages * FC_ENTRIES_PER_PAGE; i++) {
		uint64_t chunk = job->page * FC_ENTRIES_PER_PAGE + i;
		if (chunk >= arena->chunk_count || arena->owner[chunk] == 0)
			continue;
		const struct fc_segment *segment = job->catalog->segments[arena->owner[chunk] - 1];
		struct fc_table_entry entry = {.seq = segment->seq, .chunk_count = (uint32_t)segment->chunk_count};
		fc_table_entry_encode(&entry, arena->superblock.uuid, chunk, job->buffer + i * FC_TABLE_ENTRY_BYTES);
	}
	submit(job, FC_IO_WRITE, FC_TABLE_OFFSET + job->page * FC_TABLE_PAGE_BYTES, pages * FC_TABLE_PAGE_BYTES);
}

static void next_step(struct fc_open_job *job, enum step step)
{
	struct fc_arena *arena = arena_of(job);
	uint64_t pages;
	job->step = step;
	switch (step) {
	case READ_SUPERBLOCKS:
		submit(job, FC_IO_READ, 0, FC_TABLE_OFFSET);
		break;
	case ZERO_TABLE:
		pages = piece_pages(job, table_pages(arena));
		memset(job->buffer, 0, pages * FC_TABLE_PAGE_BYTES);
		submit(job, FC_IO_WRITE, FC_TABLE_OFFSET + job->page * FC_TABLE_PAGE_BYTES,
		       pages * FC_TABLE_PAGE_BYTES);
		break;
	case READ_TABLE:
		pages = piece_pages(job, table_pages(arena));
		submit(job, FC_IO_READ, FC_TABLE_OFFSET + job->page * FC_TABLE_PAGE_BYTES, pages * FC_TABLE_PAGE_BYTES);
		break;
	case READ_HEADERS:
		job->next_candidate = 0;
		fill_slots(job);
		break;
	case REWRITE_TABLE:
		if (job->damaged_entries == 0 || job->catalog->opts.is_read_only)
			next_arena(job);
		else
			rewrite_table(job);
		break;
	case START:
	case WRITE_MARK:
	case SYNC_MARK:
	case WRITE_SUPERBLOCK:
	case SYNC_SUPERBLOCK:
	case SYNC_TABLE:
		submit(job, FC_IO_SYNC, 0, 0);
		break;
	}
}

static int on_step(struct fc_open_job *job)
{
	struct fc_arena *arena = arena_of(job);
	switch (job->step) {
	case START:
		if (job->error.code != FC_OK)
			return job->error.code; /* the options' */
		job->medium = -1;
		next_arena(job);
		return FC_OK;
	case READ_SUPERBLOCKS:
		return on_superblocks_read(job);
	case WRITE_MARK:
		next_step(job, SYNC_MARK);
		return FC_OK;
	case SYNC_MARK:
		next_step(job, ZERO_TABLE);
		return FC_OK;
	case ZERO_TABLE:
	case REWRITE_TABLE:
		job->page += job->io.bytes / FC_TABLE_PAGE_BYTES;
		if (job->page < table_pages(arena))
			next_step(job, job->step);
		else if (job->step == ZERO_TABLE)
			write_superblock(job, 0);
		else
			next_step(job, SYNC_TABLE);
		return FC_OK;
	case WRITE_SUPERBLOCK:
		next_step(job, SYNC_SUPERBLOCK);
		return FC_OK;
	case SYNC_SUPERBLOCK:
		job->page = 0;
		if (job->copy + 1 < FC_SUPERBLOCK_COPIES)
			write_superblock(job, job->copy + 1);
		else
			next_step(job, READ_TABLE);
		return FC_OK;
	case READ_TABLE:
		return on_table_piece(job);
	case SYNC_TABLE:
		next_arena(job);
		return FC_OK;
	case READ_HEADERS:
		break;
	}
	return FC_OK;
}

static void on_io(struct fc_io *io)
{
	struct fc_open_job *job = fc_container_of(io, struct fc_open_job, io);
	int code;
	if (io->result != (int64_t)io->bytes)
		code = fc_error_wrap(&job->error, fc_io_explain(NULL, io, &job->error), "%s arena: what describes it",
				     medium_name(job));
	else
		code = on_step(job);
	if (code != FC_OK)
		finish(job, code);
}

/* ---- start and end ---- */

static int init_catalog(struct fc_catalog *catalog, const struct fc_catalog_opts *opts)
{
	catalog->opts = *opts;
	catalog->geometry = *opts->geometry;
	catalog->opts.geometry = &catalog->geometry;
	catalog->opts.owners = NULL; /* the caller's */
	catalog->alloc = opts->alloc;
	catalog->granule = fc_resume_granule(&catalog->geometry);
	catalog->segment_blocks_max = fc_segment_blocks_max(&catalog->geometry, opts->area_bytes_max);
	fc_list_init(&catalog->sessions);
	fc_list_init(&catalog->work);
	catalog->affected.seed = opts->hash_seed;
	fc_list_init(&catalog->space_waiters);
	fc_list_init(&catalog->pins);
	fc_list_init(&catalog->spares);
	fc_list_init(&catalog->spills);
	for (uint32_t group = 0; group < catalog->geometry.group_count; group++) {
		catalog->block_bytes[group] = fc_group_block_bytes(&catalog->geometry, group);
		catalog->has_resume_groups |= catalog->geometry.groups[group].rule != FC_RULE_ALL;
	}
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++) {
		struct fc_arena *arena = &catalog->arenas[medium];
		arena->catalog = catalog;
		arena->medium = (enum fc_medium)medium;
		arena->media = opts->media[medium];
		arena->order.seed = opts->hash_seed;
		fc_list_init(&arena->committing);
		fc_list_init(&arena->freeing);
	}
	struct fc_index_opts index_opts = {.seed = {opts->hash_seed, opts->uuid.low},
					   .shard_count = opts->index_shards};
	return fc_index_init(&catalog->index, opts->alloc, &index_opts);
}

int fc_catalog_open(struct fc_catalog **result, const struct fc_catalog_opts *opts,
		    void (*opened_cb)(void *context, int code, const struct fc_error *error), void *context)
{
	if (opts->media[FC_MEMORY] == NULL && opts->media[FC_SSD] == NULL)
		return FC_EINVAL;
	struct fc_catalog *catalog = fc_alloc_zeroed(opts->alloc, sizeof(*catalog));
	if (catalog == NULL)
		return FC_ENOMEM;
	int code = init_catalog(catalog, opts);
	if (code != FC_OK) {
		fc_alloc_free(opts->alloc, catalog, sizeof(*catalog));
		return code;
	}
	struct fc_open_job *job = fc_alloc_zeroed(opts->alloc, sizeof(*job));
	if (job != NULL)
		job->memory = fc_alloc_zeroed(opts->alloc, TABLE_PIECE_BYTES + FC_TABLE_PAGE_BYTES);
	if (job == NULL || job->memory == NULL ||
	    fc_owners_init(catalog, opts->owners, opts->owner_count, &job->error) == FC_ENOMEM) {
		if (job != NULL)
			fc_alloc_free(opts->alloc, job->memory, TABLE_PIECE_BYTES + FC_TABLE_PAGE_BYTES);
		fc_alloc_free(opts->alloc, job, sizeof(*job));
		fc_index_deinit(&catalog->index);
		fc_alloc_free(opts->alloc, catalog, sizeof(*catalog));
		return FC_ENOMEM;
	}
	job->catalog = catalog;
	job->opened_cb = opened_cb;
	job->context = context;
	job->buffer = (uint8_t *)fc_align_up((uintptr_t)job->memory, FC_TABLE_PAGE_BYTES);
	job->medium = opts->media[FC_MEMORY] != NULL ? FC_MEMORY : FC_SSD;
	job->io.done_cb = on_io;
	catalog->open_job = job;
	*result = catalog;
	next_step(job, START); /* an I/O, so that nothing is told from inside this call */
	return FC_OK;
}

void fc_open_deinit(struct fc_catalog *catalog)
{
	struct fc_open_job *job = catalog->open_job;
	const struct fc_alloc *alloc = catalog->alloc;
	if (job == NULL)
		return;
	for (unsigned i = 0; i < HEADER_SLOTS; i++)
		fc_alloc_free(alloc, job->slots[i].memory, job->slots[i].memory_bytes);
	fc_alloc_free(alloc, job->candidates, job->candidate_room * sizeof(*job->candidates));
	fc_alloc_free(alloc, job->memory, TABLE_PIECE_BYTES + FC_TABLE_PAGE_BYTES);
	fc_alloc_free(alloc, job, sizeof(*job));
	catalog->open_job = NULL;
}

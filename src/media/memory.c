/* An arena in memory has three possible backings, in falling order of what they offer:
 *
 *   a file on tmpfs or hugetlbfs   outlives the process, other processes map it; locked like an SSD arena
 *   memfd                          other processes map it through its descriptor; reserved huge pages when there are
 * enough private anonymous memory       this process only; transparent huge pages, which memfd has only where the
 * kernel is set so
 *
 * Copies run at the speed of memory only with huge pages: a 1 GiB arena in 4 KiB pages misses the TLB on every page.
 *
 * A file gets all its pages at open, an existing one too (it may have holes): where there is no room for them, the open
 * fails, instead of the first touch. What can still happen to a file later is map_guard.h's business. */
#define _GNU_SOURCE
#include "media/memory.h"

#include "host/pages.h"
#include "media/arena_file.h"
#include "media/map_guard.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MEMORY_MAGIC 0x46434d454d4f5259ull

struct memory_media {
	struct fc_media media;
	uint64_t magic;
	struct fc_link done;       /* I/O whose done_cb is still to be called */
	struct fc_arena_file file; /* fd -1 for private memory */
	uint64_t page_bytes;       /* what sizes of mappings are rounded up to */
	bool is_read_only;
	char *path;                 /* NULL without a file */
	struct fc_map_guard *guard; /* NULL without a path */
};

static struct memory_media *memory_of(const struct fc_media *media)
{
	struct memory_media *memory = fc_container_of(media, struct memory_media, media);
	fc_check(memory->magic == MEMORY_MAGIC);
	return memory;
}

/* ---- I/O ----------------------------------------------------------------------------------------------------------
 */

/* Whether this I/O has to fail for it. What a file has lost that became short is zeros now. */
static bool is_lost(struct memory_media *memory, const struct fc_io *io)
{
	const char **lost = &memory->media.lost;
	bool is_broken = memory->guard != NULL && fc_map_guard_is_broken(memory->guard);

	if (*lost == NULL && io->op == FC_IO_SYNC && memory->path != NULL)
		*lost = fc_arena_file_lost(&memory->file);
	if (*lost == NULL && is_broken)
		*lost = "the file was made shorter while it was in use, or its pages cannot be had; it has to be "
			"opened anew";
	return is_broken || (*lost != NULL && io->op != FC_IO_READ);
}

static int64_t run_io(struct memory_media *memory, struct fc_io *io)
{
	struct fc_media *media = &memory->media;
	uint64_t end = 0;

	if (is_lost(memory, io)) {
		io->failure = media->lost;
		return FC_EIO;
	}
	io->failure = "not inside the arena, or not open for that";
	if (io->op == FC_IO_SYNC) {
		media->counters.sync_commands++;
		return (int64_t)io->bytes;
	}
	if (fc_add_overflows(io->offset, io->bytes, &end) || end > media->bytes)
		return FC_EINVAL;
	if (io->op == FC_IO_WRITE && memory->is_read_only)
		return FC_EINVAL;
	if (io->op == FC_IO_READ) {
		memcpy(io->buffer, media->map + io->offset, io->bytes);
		media->counters.read_commands++;
		media->counters.bytes_read += io->bytes;
	} else {
		memcpy(media->map + io->offset, io->buffer, io->bytes);
		media->counters.write_commands++;
		media->counters.bytes_written += io->bytes;
	}
	return (int64_t)io->bytes;
}

static void memory_submit(struct fc_media *media, struct fc_io *io)
{
	struct memory_media *memory = memory_of(media);
	io->result = run_io(memory, io);
	if (io->result < 0)
		media->counters.errors++;
	fc_list_push(&memory->done, &io->link);
}

/* Only what waits now: a done_cb that submits the next I/O must not keep poll() here for ever. */
static unsigned memory_poll(struct fc_media *media)
{
	struct memory_media *memory = memory_of(media);
	struct fc_link *last = memory->done.prev;
	unsigned count = 0;

	for (bool is_last = fc_list_is_empty(&memory->done); !is_last; count++) {
		struct fc_link *link = fc_list_pop(&memory->done);
		is_last = link == last;
		struct fc_io *io = fc_container_of(link, struct fc_io, link);
		io->done_cb(io);
	}
	return count;
}

static int memory_register_buffers(struct fc_media *media, void *buffer, uint64_t bytes)
{
	(void)memory_of(media);
	return buffer != NULL && bytes > 0 ? 0 : FC_EINVAL;
}

/* ---- backing ------------------------------------------------------------------------------------------------------
 */

/* -1 when the kernel has no free huge pages reserved for this many bytes. */
static int open_huge_memfd(uint64_t bytes)
{
	int fd = memfd_create("flatcake", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	if (fd < 0)
		return -1;
	/* A shared mapping reserves its pages, so this answers for the later one. */
	if (ftruncate(fd, (off_t)bytes) == 0) {
		void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED) {
			fc_check(munmap(map, bytes) == 0);
			return fd;
		}
	}
	close(fd);
	return -1;
}

static int open_memfd(struct memory_media *memory, uint64_t bytes, struct fc_error *error)
{
	uint64_t huge_bytes = fc_align_up(bytes, FC_HUGE_PAGE_BYTES);

	memory->page_bytes = FC_HUGE_PAGE_BYTES;
	memory->file.fd = open_huge_memfd(huge_bytes);
	if (memory->file.fd >= 0)
		return 0;
	memory->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	fc_media_note(
		&memory->media,
		"memory arena: no reserved huge pages (vm.nr_hugepages), so shared memory uses small pages unless "
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled is 'advise'");
	memory->file.fd = memfd_create("flatcake", MFD_CLOEXEC);
	if (memory->file.fd < 0)
		return fc_error_set(error, FC_ESYSTEM, "memory arena: memfd_create: %s", strerror(errno));
	if (ftruncate(memory->file.fd, (off_t)bytes) != 0)
		return fc_error_set(error, FC_ESYSTEM, "memory arena: %" PRIu64 " bytes: %s", bytes, strerror(errno));
	return 0;
}

static int check_is_memory(struct memory_media *memory, struct fc_error *error)
{
	struct statfs system;

	if (fstatfs(memory->file.fd, &system) != 0)
		return fc_error_set(error, FC_ESYSTEM, "%s: fstatfs: %s", memory->path, strerror(errno));
	switch ((unsigned long)system.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		memory->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
		return 0;
	case HUGETLBFS_MAGIC:
		memory->page_bytes = (uint64_t)system.f_bsize;
		return 0;
	default:
		return fc_error_set(
			error, FC_EINVAL,
			"%s: not in memory (file system type 0x%lx); name a file on tmpfs, for example under "
			"/dev/shm, or on hugetlbfs",
			memory->path, (unsigned long)system.f_type);
	}
}

static int open_file(struct memory_media *memory, const struct fc_memory_opts *opts, struct fc_error *error)
{
	struct fc_arena_file_opts file_opts = {
		.path = memory->path, .is_created = opts->bytes > 0, .is_read_only = opts->is_read_only};

	int code = fc_arena_file_open(&memory->file, &file_opts, error);
	if (code != 0)
		return code;
	code = check_is_memory(memory, error);
	if (code != 0)
		return code;
	if (memory->file.bytes > 0)
		return opts->is_read_only ? 0 : fc_arena_file_fill(&memory->file, memory->path, error);
	if (opts->bytes == 0 || opts->is_read_only)
		return fc_error_set(error, FC_EINVAL, "%s: empty, and no size was given to make an arena of",
				    memory->path);
	memory->media.is_new = true;
	return fc_arena_file_resize(&memory->file, memory->path, fc_align_up(opts->bytes, memory->page_bytes), NULL,
				    error);
}

/* NULL when there is no room. Private memory has no descriptor. */
static uint8_t *map_arena(const struct memory_media *memory, uint64_t bytes)
{
	int protection = memory->is_read_only ? PROT_READ : PROT_READ | PROT_WRITE;

	if (memory->file.fd < 0)
		return fc_pages_alloc(bytes);
	uint64_t mapped_bytes = fc_align_up(bytes, memory->page_bytes);
	void *map = mmap(NULL, mapped_bytes, protection, MAP_SHARED, memory->file.fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	(void)madvise(map, mapped_bytes, MADV_HUGEPAGE);
	return map;
}

static void unmap_arena(const struct memory_media *memory, uint8_t *map, uint64_t bytes)
{
	if (memory->file.fd < 0)
		fc_pages_free(map, bytes);
	else if (map != NULL)
		fc_check(munmap(map, fc_align_up(bytes, memory->page_bytes)) == 0);
}

static int guard_map(const struct memory_media *memory, struct fc_map_guard **guard, uint8_t *map, uint64_t bytes,
		     struct fc_error *error)
{
	if (memory->path == NULL)
		return 0;
	return fc_map_guard_new(guard, map, bytes, memory->page_bytes, memory->file.fd, error);
}

static void memory_close(struct fc_media *media)
{
	struct memory_media *memory = memory_of(media);
	fc_check(fc_list_is_empty(&memory->done));
	fc_map_guard_free(memory->guard);
	unmap_arena(memory, media->map, media->bytes);
	fc_arena_file_close(&memory->file, memory->path, false);
	free(memory->path);
	free(memory);
}

static const struct fc_media_ops memory_ops = {
	.submit = memory_submit,
	.poll = memory_poll,
	.register_buffers = memory_register_buffers,
	.close = memory_close,
};

static int open_backing(struct memory_media *memory, const struct fc_memory_opts *opts, struct fc_error *error)
{
	if (opts->path != NULL)
		return open_file(memory, opts, error);
	if (opts->is_read_only || opts->bytes == 0 || opts->bytes > INT64_MAX - FC_HUGE_PAGE_BYTES)
		return fc_error_set(error, FC_EINVAL,
				    "memory arena: without a path it is made new, so it must be writable and its size "
				    "(%" PRIu64 ") above 0",
				    opts->bytes);
	memory->media.is_new = true;
	return opts->is_shared ? open_memfd(memory, opts->bytes, error) : 0;
}

static void memory_init(struct memory_media *memory, const struct fc_memory_opts *opts)
{
	memory->magic = MEMORY_MAGIC;
	memory->media.ops = &memory_ops;
	memory->media.name = memory->path != NULL ? memory->path : "memory arena";
	memory->media.align = 1;
	memory->media.transfer_bytes_max = UINT64_MAX;
	memory->media.queue_depth = UINT32_MAX;
	memory->media.is_durable = opts->path != NULL;
	memory->file.fd = memory->file.folder_fd = -1;
	memory->is_read_only = opts->is_read_only;
	fc_list_init(&memory->done);
}

static struct memory_media *make_memory(const struct fc_memory_opts *opts, struct fc_error *error)
{
	struct memory_media *memory = calloc(1, sizeof(*memory));

	if (memory == NULL || (opts->path != NULL && (memory->path = strdup(opts->path)) == NULL)) {
		free(memory);
		fc_error_set(error, FC_ENOMEM, "memory arena: no memory for its state");
		return NULL;
	}
	memory_init(memory, opts);
	return memory;
}

/* With the backing there. */
static int map_memory(struct memory_media *memory, uint64_t bytes, struct fc_error *error)
{
	memory->media.map = map_arena(memory, bytes);
	if (memory->media.map == NULL)
		return fc_error_set(error, FC_ENOMEM, "memory arena: cannot map %" PRIu64 " bytes: %s", bytes,
				    strerror(errno));
	int code = guard_map(memory, &memory->guard, memory->media.map, bytes, error);
	if (code == 0)
		memory->media.bytes = bytes;
	else
		unmap_arena(memory, memory->media.map, bytes);
	return code;
}

int fc_memory_open(const struct fc_memory_opts *opts, struct fc_media **media, struct fc_error *error)
{
	struct memory_media *memory = make_memory(opts, error);

	if (memory == NULL)
		return FC_ENOMEM;
	int code = open_backing(memory, opts, error);
	if (code == 0)
		code = map_memory(memory, memory->file.bytes > 0 ? memory->file.bytes : opts->bytes, error);
	if (code != 0) {
		fc_arena_file_close(&memory->file, memory->path, memory->file.is_new);
		free(memory->path);
		free(memory);
		return code;
	}
	*media = &memory->media;
	return 0;
}

int fc_memory_adopt(int fd, const char *name, bool is_durable, struct fc_media **media, struct fc_error *error)
{
	struct fc_memory_opts opts = {.path = name};
	struct memory_media *memory = make_memory(&opts, error);

	if (memory == NULL)
		return FC_ENOMEM;
	memory->media.is_durable = is_durable;
	int code = fc_arena_file_adopt(&memory->file, fd, name, error);
	if (code == 0)
		code = check_is_memory(memory, error);
	if (code == 0)
		code = map_memory(memory, memory->file.bytes, error);
	if (code != 0) {
		free(memory->path);
		free(memory);
		return code;
	}
	*media = &memory->media;
	return 0;
}

/* ---- size ---------------------------------------------------------------------------------------------------------
 */

static int resize_backing(struct memory_media *memory, uint64_t bytes, struct fc_error *error)
{
	if (memory->path != NULL)
		return fc_arena_file_resize(&memory->file, memory->path, fc_align_up(bytes, memory->page_bytes), NULL,
					    error);
	if (memory->file.fd >= 0 && ftruncate(memory->file.fd, (off_t)fc_align_up(bytes, memory->page_bytes)) != 0)
		return fc_error_set(error, FC_ESYSTEM, "memory arena: %" PRIu64 " bytes: %s", bytes, strerror(errno));
	return 0;
}

int fc_memory_resize(struct fc_media *media, uint64_t bytes, struct fc_error *error)
{
	struct memory_media *memory = memory_of(media);
	uint64_t old_bytes = media->bytes;

	fc_check(fc_list_is_empty(&memory->done));
	if (memory->is_read_only || bytes == 0 || bytes > INT64_MAX - FC_HUGE_PAGE_BYTES)
		return fc_error_set(error, FC_EINVAL, "memory arena: cannot change its size to %" PRIu64 " bytes%s",
				    bytes, memory->is_read_only ? ": it is open for reading only" : "");
	/* A file grows before it is mapped anew, and shrinks only after nothing maps its end. */
	int code = bytes > old_bytes ? resize_backing(memory, bytes, error) : 0;
	if (code != 0)
		return code;
	uint8_t *map = map_arena(memory, bytes);
	if (map == NULL)
		return fc_error_set(error, FC_ENOMEM, "memory arena: cannot map %" PRIu64 " bytes", bytes);
	struct fc_map_guard *guard = NULL;
	code = guard_map(memory, &guard, map, bytes, error);
	if (code != 0) {
		unmap_arena(memory, map, bytes);
		return code;
	}
	fc_map_guard_free(memory->guard);
	memory->guard = guard;
	if (memory->file.fd < 0)
		memcpy(map, media->map, fc_min_u64(bytes, old_bytes));
	unmap_arena(memory, media->map, old_bytes);
	media->map = map;
	media->bytes = bytes;
	return bytes < old_bytes ? resize_backing(memory, bytes, error) : 0;
}

void fc_memory_make_private(struct fc_media *media)
{
	const struct memory_media *memory = memory_of(media);
	if (memory->path != NULL)
		fc_arena_file_make_private(&memory->file, memory->path, media);
}

int fc_memory_fd(const struct fc_media *media)
{
	return memory_of(media)->file.fd;
}

void fc_memory_abandon(const struct fc_media *media)
{
	fc_arena_file_abandon(&memory_of(media)->file);
}

#include "store/arenas.h"

#include "base/check.h"
#include "format/arena.h"
#include "media/memory.h"
#include "media/ssd.h"
#include "store/blocking.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What lies in the arena keeps its place, so the superblock says how small it may become, and how large. */
static int fit(const struct fc_superblock *superblock, const struct fc_geometry *geometry, uint64_t *bytes,
	       struct fc_error *error)
{
	uint64_t least = fc_superblock_bytes_min(superblock);
	int code = fc_geometry_same(&superblock->geometry, geometry, error);
	if (code == FC_OK && *bytes < least)
		code = fc_error_set(error, FC_EINVAL, "%llu bytes are too few for this arena; at least %llu are needed",
				    (unsigned long long)*bytes, (unsigned long long)least);
	*bytes = fc_min_u64(*bytes, fc_superblock_bytes_max(superblock));
	return code;
}

/* Of the bytes that are wanted, those that an arena which is there already can use. It has to be one of ours, of this
 * geometry, or one that nothing was ever stored in. */
static int usable_bytes(struct fc_media *media, const struct fc_geometry *geometry, uint64_t *bytes,
			struct fc_error *error)
{
	uint64_t there = fc_min_u64(media->bytes, FC_TABLE_OFFSET);
	uint8_t *buffer = aligned_alloc(4096, FC_TABLE_OFFSET);
	if (buffer == NULL)
		return fc_error_set(error, FC_ENOMEM, "superblock buffer");
	memset(buffer, 0, FC_TABLE_OFFSET);
	struct fc_superblock superblock;
	int code = fc_store_read(media, 0, there, buffer, error);
	bool is_written = code == FC_OK && !fc_superblocks_are_unwritten(buffer);
	if (is_written && there < FC_TABLE_OFFSET)
		code = fc_error_set(error, FC_EFORMAT,
				    "not a FlatCake arena: it has %llu bytes, the superblocks alone have %u",
				    (unsigned long long)media->bytes, FC_TABLE_OFFSET);
	if (is_written && code == FC_OK)
		code = fc_superblock_choose(&superblock, buffer, error);
	if (is_written && code == FC_OK)
		code = fit(&superblock, geometry, bytes, error);
	free(buffer);
	return code;
}

static bool is_regular_file(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

typedef int resize_function(struct fc_media *media, uint64_t bytes, struct fc_error *error);

/* A file that is there already gets the size that is asked for, as far as it could ever use it; a device has the size
 * that it has. Whatever is not ours is left as it is. */
static int settle(struct fc_media *media, resize_function *resize, const char *path, uint64_t wanted,
		  const struct fc_geometry *geometry, struct fc_error *error)
{
	bool has_any_size = is_regular_file(path);
	uint64_t offered = has_any_size ? wanted : media->bytes, bytes = offered;
	int code = usable_bytes(media, geometry, &bytes, error);
	if (code == FC_OK && has_any_size && bytes != media->bytes)
		code = resize(media, bytes, error);
	if (code != FC_OK)
		return fc_error_wrap(error, code, "%s", path);
	if (bytes < offered)
		fc_media_note(media,
			      "%s: has %llu bytes and not %llu: its chunk table, which keeps the room that it was made "
			      "with, ends there; to have more, remove the arena while nobody uses it, or name another "
			      "file",
			      path, (unsigned long long)bytes, (unsigned long long)offered);
	return FC_OK;
}

static int open_ssd(struct fc_media **result, const struct fc_arenas_opts *arenas, struct fc_error *error)
{
	struct fc_ssd_opts opts = {
		.path = arenas->ssd_path,
		.bytes = arenas->ssd_bytes,
		.queue_depth = arenas->queue_depth,
		.transfer_bytes = arenas->transfer_bytes,
	};
	int code = fc_ssd_open(&opts, result, error);
	if (code == FC_OK && !(*result)->is_new)
		code = settle(*result, fc_ssd_resize, opts.path, opts.bytes, arenas->geometry, error);
	if (code == FC_OK)
		fc_ssd_make_private(*result);
	return code;
}

static int open_memory(struct fc_media **result, const struct fc_arenas_opts *arenas, struct fc_error *error)
{
	struct fc_memory_opts opts = {.path = arenas->memory_path, .bytes = arenas->memory_bytes};
	int code = fc_memory_open(&opts, result, error);
	if (code == FC_OK && !(*result)->is_new)
		code = settle(*result, fc_memory_resize, opts.path, opts.bytes, arenas->geometry, error);
	if (code == FC_OK)
		fc_memory_make_private(*result);
	return code;
}

int fc_arenas_open(struct fc_media *media[FC_MEDIUM_COUNT], const struct fc_arenas_opts *opts, struct fc_error *error)
{
	int code = FC_OK;
	if (opts->ssd_bytes > 0)
		code = open_ssd(&media[FC_SSD], opts, error);
	if (code == FC_OK && opts->memory_bytes > 0)
		code = open_memory(&media[FC_MEMORY], opts, error);
	return code;
}

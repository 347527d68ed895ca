#include "store/arenas.h"

#include "format/arena.h"
#include "media/memory.h"
#include "media/ssd.h"
#include "store/blocking.h"

#include <stdlib.h>
#include <sys/stat.h>

/* What lies in the arena keeps its place, so the superblock says how small it may become. */
static int check_superblock(const struct fc_superblock *superblock, const struct fc_geometry *geometry, uint64_t bytes,
			    struct fc_error *error)
{
	uint64_t least = superblock->data_offset + superblock->chunk_bytes;
	int code = fc_geometry_same(&superblock->geometry, geometry, error);
	if (code == FC_OK && bytes < least)
		code = fc_error_set(error, FC_EINVAL, "%llu bytes are too few for this arena; at least %llu are needed",
				    (unsigned long long)bytes, (unsigned long long)least);
	return code;
}

/* An arena of another size than asked for is resized, but only if it is one of ours, of this geometry, or has never
 * been written. Anything else is left as it is. */
static int check_before_resize(struct fc_media *media, const struct fc_geometry *geometry, uint64_t bytes,
			       struct fc_error *error)
{
	if (media->bytes < FC_TABLE_OFFSET)
		return fc_error_set(error, FC_EFORMAT,
				    "not a FlatCake arena: it has %llu bytes, the superblocks alone have %u",
				    (unsigned long long)media->bytes, FC_TABLE_OFFSET);
	uint8_t *buffer = aligned_alloc(4096, FC_TABLE_OFFSET);
	if (buffer == NULL)
		return fc_error_set(error, FC_ENOMEM, "superblock buffer");
	struct fc_superblock superblock;
	int code = fc_store_read(media, 0, FC_TABLE_OFFSET, buffer);
	if (code != FC_OK)
		code = fc_error_set(error, FC_EIO, "reading the superblock: %s", fc_code_text(code));
	bool is_blank =
		code == FC_OK && fc_superblock_is_blank(buffer) && fc_superblock_is_blank(buffer + FC_SUPERBLOCK_BYTES);
	if (code == FC_OK && !is_blank) {
		code = fc_superblock_choose(&superblock, buffer, error);
		if (code == FC_OK)
			code = check_superblock(&superblock, geometry, bytes, error);
	}
	free(buffer);
	return code;
}

static bool is_regular_file(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
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
	if (code != FC_OK)
		return code;
	struct fc_media *media = *result;
	if (media->is_new || media->bytes == opts.bytes || !is_regular_file(opts.path))
		return FC_OK;
	code = check_before_resize(media, arenas->geometry, opts.bytes, error);
	if (code == FC_OK)
		code = fc_ssd_resize(media, opts.bytes, error);
	return code == FC_OK ? code : fc_error_wrap(error, code, "%s", opts.path);
}

static int open_memory(struct fc_media **result, const struct fc_arenas_opts *arenas, struct fc_error *error)
{
	struct fc_memory_opts opts = {.path = arenas->memory_path, .bytes = arenas->memory_bytes};
	int code = fc_memory_open(&opts, result, error);
	if (code != FC_OK)
		return code;
	struct fc_media *media = *result;
	if (media->is_new || media->bytes == opts.bytes || opts.path == NULL)
		return FC_OK;
	code = check_before_resize(media, arenas->geometry, opts.bytes, error);
	if (code == FC_OK)
		code = fc_memory_resize(media, opts.bytes, error);
	return code == FC_OK ? code : fc_error_wrap(error, code, "%s", opts.path);
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

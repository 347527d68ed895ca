/* Three ways to learn the alignment, from the one that knows to the one that tries: statx() (Linux 6.1), the block size
 * of a block device, and reading with finer and then coarser alignment.
 *
 * statx() is called as a system call because the C library's struct lacks the fields for it, and the kernel's header
 * and <sys/stat.h> do not go together. */
#define _GNU_SOURCE
#include "media/ssd_limits.h"

#include "base/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ALIGN_MIN 512
#define ALIGN_MAX 65536
#define TRANSFER_BYTES_UNKNOWN ((uint64_t)1 << 20)
#define TRANSFER_BYTES_MIN ((uint64_t)128 << 10)

static bool is_plausible(uint32_t align)
{
	return align <= ALIGN_MAX && fc_is_power_of_two(align);
}

static bool can_read_aligned(int fd, uint32_t align)
{
	/* Memory and offset are aligned to this and nothing coarser. */
	uint8_t *memory = aligned_alloc(2 * (size_t)align, 4 * (size_t)align);
	bool is_good = memory != NULL && pread(fd, memory + align, align, align) >= 0;

	free(memory);
	return is_good;
}

static uint32_t align_by_trying(int fd)
{
	for (uint32_t align = ALIGN_MIN; align <= ALIGN_MAX; align *= 2)
		if (can_read_aligned(fd, align))
			return align;
	return 0;
}

uint32_t fc_ssd_direct_align(const struct fc_arena_file *file)
{
	struct statx status = {0};
	int block_bytes = 0;

	if (syscall(SYS_statx, file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
	    (status.stx_mask & STATX_DIOALIGN) != 0) {
		uint32_t align = status.stx_dio_offset_align;
		if (align == 0)
			return 0;
		align = align > status.stx_dio_mem_align ? align : status.stx_dio_mem_align;
		if (is_plausible(align))
			return align < ALIGN_MIN ? ALIGN_MIN : align;
	}
	if (file->is_block_device && ioctl(file->fd, BLKSSZGET, &block_bytes) == 0 &&
	    is_plausible((uint32_t)block_bytes))
		return (uint32_t)block_bytes;
	return align_by_trying(file->fd);
}

/* False when there is no such file, as for partitions (asked of the whole device then) and devices without a queue. */
static bool read_max_kb(dev_t device, const char *below, uint64_t *kib)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%squeue/max_sectors_kb", major(device), minor(device),
		 below);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	bool is_read = fscanf(file, "%" SCNu64, kib) == 1;
	fclose(file);
	return is_read;
}

uint64_t fc_ssd_transfer_bytes_max(const struct fc_arena_file *file)
{
	uint64_t kib = 0;

	if (!read_max_kb(file->device, "", &kib) && !read_max_kb(file->device, "../", &kib))
		return TRANSFER_BYTES_UNKNOWN;
	if (kib > UINT32_MAX)
		return TRANSFER_BYTES_UNKNOWN;
	return fc_align_down(fc_max_u64(kib << 10, TRANSFER_BYTES_MIN), ALIGN_MAX);
}

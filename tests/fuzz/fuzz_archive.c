/* The way from a file's bytes to the texts of traces: archives, compression, lines, and telling apart what they hold.
 *
 *     1 byte     options (trace_input.h)
 *     1 byte     bits 0-1: 0 the rest is the file; 1 a tar, 2 the same in gzip, 3 the text alone in gzip; bit 2: then
 * cut the last 7 bytes off; bit 3: then flip a bit of the file, at the next two bytes
 *     ...        of a tar: members, apart by a line "===", each with its name on its first line
 */
#include "fuzz/fuzz.h"
#include "fuzz/trace_input.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

enum { PACKING = 3, IS_CUT = 4, IS_FLIPPED = 8 };
enum { RAW, TAR, TAR_GZIP, TEXT_GZIP };

#define ROOM_BYTES (1u << 20)
#define SEPARATOR "\n===\n"

static void add_member(struct archive *archive, const char *name, const void *bytes, size_t count)
{
	struct archive_entry *entry = archive_entry_new();
	fuzz_check(entry != NULL, "no memory");
	archive_entry_set_pathname(entry, name);
	archive_entry_set_filetype(entry, name[0] == '/' ? AE_IFDIR : AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)count);
	if (archive_write_header(archive, entry) >= ARCHIVE_WARN && count > 0)
		(void)archive_write_data(archive, bytes, count);
	archive_entry_free(entry);
}

/* `text` ends with a NUL byte behind its `count` bytes. */
static void add_members(struct archive *archive, char *text, size_t count)
{
	char *end = text + count;
	for (char *member = text; member < end;) {
		char *next = memmem(member, (size_t)(end - member), SEPARATOR, strlen(SEPARATOR));
		char *member_end = next != NULL ? next : end;
		char *newline = memchr(member, '\n', (size_t)(member_end - member));
		char *content = newline != NULL ? newline + 1 : member_end;
		if (newline != NULL)
			*newline = '\0';
		add_member(archive, member, content, (size_t)(member_end - content));
		member = next != NULL ? next + strlen(SEPARATOR) : end;
	}
}

static size_t pack(unsigned packing, const uint8_t *bytes, size_t count, uint8_t *packed)
{
	size_t used = 0;
	struct archive *archive = archive_write_new();
	char *text = calloc(1, count + 1);
	fuzz_check(archive != NULL && text != NULL, "no memory");
	if (count > 0)
		memcpy(text, bytes, count);
	if (packing == TEXT_GZIP)
		archive_write_set_format_raw(archive);
	else
		archive_write_set_format_ustar(archive);
	if (packing != TAR)
		archive_write_add_filter_gzip(archive);
	archive_write_set_bytes_per_block(archive, 0);
	fuzz_check(archive_write_open_memory(archive, packed, ROOM_BYTES, &used) == ARCHIVE_OK, "cannot pack");
	if (packing == TEXT_GZIP)
		add_member(archive, "text", text, count);
	else
		add_members(archive, text, count);
	archive_write_free(archive);
	free(text);
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct fc_trace_opts opts = fuzz_trace_opts(fuzz_u8(&input));
	uint8_t mode = fuzz_u8(&input);
	size_t flip = mode & IS_FLIPPED ? fuzz_u16(&input) : 0;
	uint8_t *file = malloc(ROOM_BYTES);
	fuzz_check(file != NULL, "no memory");
	size_t count = input.left < ROOM_BYTES / 4 ? input.left : ROOM_BYTES / 4;
	if ((mode & PACKING) != RAW)
		count = pack(mode & PACKING, input.bytes, count, file);
	else if (count > 0)
		memcpy(file, input.bytes, count);
	if ((mode & IS_CUT) && count > 7)
		count -= 7;
	if ((mode & IS_FLIPPED) && count > 0)
		file[flip / 8 % count] ^= (uint8_t)(1u << flip % 8);
	fuzz_trace_run(&opts, file, count, false);
	free(file);
	return 0;
}

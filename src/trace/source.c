/* Every file goes through libarchive: its "raw" format makes a plain or compressed file look like an archive with one
 * member, so there is one way in. Only filters that are built in are enabled; the others would start programs that a
 * file's first bytes name. A member's bytes are kept in one buffer, which grows to the longest line (or document) that
 * is asked for.
 *
 * libarchive passes over what follows a compressed text without being one itself, such as a second gzip member that is
 * cut inside its header, and over what follows a tar. Here both are read on: tars one after the other are one, and for
 * the rest it is compared how many bytes went in and how many were used. */
#define _GNU_SOURCE /* asprintf */
#include "trace/source.h"

#include "base/check.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (256u << 10)
#define FOLDER_DEPTH_MAX 8
#define ZEROS_MAX (64ull << 20) /* ahead of a tar: more is no trace, and may have no end */

struct fc_text {
	const char *name;
	struct archive *archive;
	char *buffer;
	uint64_t capacity;
	uint64_t start, end; /* of what was read and not consumed */
	bool is_at_end;
};

/* What libarchive reads from. */
struct input {
	int fd;
	uint64_t bytes; /* read so far */
	bool is_zero;   /* all of them */
	char *buffer;
};

struct walk {
	fc_source_text_cb text_cb;
	void *context;
	uint64_t *ignored_count;
	struct fc_error *error;
};

const char *fc_text_name(const struct fc_text *text)
{
	return text->name;
}

void fc_text_consume(struct fc_text *text, uint64_t bytes)
{
	fc_check(bytes <= text->end - text->start);
	text->start += bytes;
}

/* Makes room for one more read: moves what is kept to the front, then doubles. */
static int make_room(struct fc_text *text, struct fc_error *error)
{
	if (text->capacity - text->end >= READ_BYTES)
		return 0;
	if (text->start > 0) {
		memmove(text->buffer, text->buffer + text->start, text->end - text->start);
		text->end -= text->start;
		text->start = 0;
	}
	if (text->capacity - text->end >= READ_BYTES)
		return 0;
	uint64_t capacity = fc_max_u64(text->capacity * 2, 2 * READ_BYTES);
	char *buffer = realloc(text->buffer, capacity);
	if (buffer == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory for a record", text->name);
	text->buffer = buffer;
	text->capacity = capacity;
	return 0;
}

static int damaged(const char *name, struct archive *archive, struct fc_error *error)
{
	const char *reason = archive_error_string(archive);
	return fc_error_set(error, FC_EINVAL, "%s: cannot be read: %s", name, reason != NULL ? reason : "damaged");
}

static int read_more(struct fc_text *text, struct fc_error *error)
{
	int result = make_room(text, error);
	if (result != 0)
		return result;
	la_ssize_t bytes = archive_read_data(text->archive, text->buffer + text->end, READ_BYTES);
	if (bytes < 0)
		return damaged(text->name, text->archive, error);
	text->end += (uint64_t)bytes;
	text->is_at_end = bytes == 0;
	return 0;
}

int fc_text_line(struct fc_text *text, uint64_t offset, const char **line, uint64_t *bytes, struct fc_error *error)
{
	uint64_t searched = 0; /* bytes of the line that are known to hold no newline */
	for (;;) {
		uint64_t held = text->end - text->start;
		if (held > offset + searched) {
			*line = text->buffer + text->start + offset;
			const char *newline = memchr(*line + searched, '\n', held - offset - searched);
			searched = held - offset;
			*bytes = newline != NULL ? (uint64_t)(newline - *line) + 1 : searched;
			if (*bytes > FC_TEXT_BYTES_MAX)
				return FC_ELIMIT;
			if (newline != NULL)
				return 1;
		}
		if (text->is_at_end && searched > 0)
			*line = text->buffer + text->start + offset; /* the last read may have moved it */
		if (text->is_at_end)
			return searched > 0;
		int result = read_more(text, error);
		if (result != 0)
			return result;
	}
}

int fc_text_rest(struct fc_text *text, const char **rest, uint64_t *bytes, struct fc_error *error)
{
	while (!text->is_at_end) {
		int result = read_more(text, error);
		if (result != 0)
			return result;
		if (text->end - text->start > FC_TEXT_BYTES_MAX)
			return FC_ELIMIT;
	}
	*rest = text->buffer + text->start;
	*bytes = text->end - text->start;
	return *bytes > 0;
}

static bool ends_with(const char *name, const char *end)
{
	size_t name_bytes = strlen(name), end_bytes = strlen(end);
	return name_bytes >= end_bytes && strcmp(name + name_bytes - end_bytes, end) == 0;
}

/* Of files that were found, not named. Names that start with a dot are what systems leave behind ("._x", ".DS_Store").
 */
static bool is_trace_name(const char *path)
{
	static const char *const ends[] = {".json", ".jsonl", ".tar", ".tgz", ".gz", ".zst", ".xz", ".bz2"};
	const char *slash = strrchr(path, '/');
	if ((slash != NULL ? slash + 1 : path)[0] == '.')
		return false;
	for (size_t i = 0; i < fc_array_len(ends); i++) {
		if (ends_with(path, ends[i]))
			return true;
	}
	return false;
}

static int walk_member(struct walk *walk, struct archive *archive, const char *name, struct fc_text *text)
{
	text->name = name;
	text->archive = archive;
	text->start = text->end = 0;
	text->is_at_end = false;
	return walk->text_cb(walk->context, text, walk->error);
}

/* Joined as "archive:member". The caller frees it. */
static char *member_name(const char *path, const char *member)
{
	char *name = NULL;
	return asprintf(&name, "%s:%s", path, member) < 0 ? NULL : name;
}

static int walk_tar_member(struct walk *walk, struct archive *archive, struct archive_entry *entry, const char *path,
			   struct fc_text *text)
{
	const char *member = archive_entry_pathname(entry);
	if (archive_entry_filetype(entry) == AE_IFDIR)
		return 0;
	if (archive_entry_filetype(entry) != AE_IFREG || member == NULL || !is_trace_name(member)) {
		(*walk->ignored_count)++;
		return 0;
	}
	char *name = member_name(path, member);
	if (name == NULL)
		return fc_error_set(walk->error, FC_ENOMEM, "%s: no memory", path);
	int result = walk_member(walk, archive, name, text);
	free(name);
	return result;
}

static int walk_archive(struct walk *walk, struct archive *archive, const char *path)
{
	struct fc_text text = {0};
	int result = 0;
	while (result == 0) {
		struct archive_entry *entry;
		int status = archive_read_next_header(archive, &entry);
		if (status == ARCHIVE_EOF)
			break;
		if (status < ARCHIVE_WARN)
			result = damaged(path, archive, walk->error);
		else if ((archive_format(archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_RAW)
			result = walk_member(walk, archive, path, &text);
		else
			result = walk_tar_member(walk, archive, entry, path, &text);
	}
	free(text.buffer);
	return result;
}

static struct archive *new_reader(void)
{
	struct archive *archive = archive_read_new();
	if (archive == NULL)
		return NULL;
	archive_read_support_filter_gzip(archive);
	archive_read_support_filter_zstd(archive);
	archive_read_support_filter_xz(archive);
	archive_read_support_filter_bzip2(archive);
	archive_read_support_format_tar(archive);
	archive_read_support_format_raw(archive);
	archive_read_support_format_empty(archive);
	if (archive_read_set_options(archive, "tar:read_concatenated_archives") != ARCHIVE_OK) {
		archive_read_free(archive);
		return NULL;
	}
	return archive;
}

static la_ssize_t read_input(struct archive *archive, void *context, const void **buffer)
{
	struct input *input = context;
	ssize_t bytes;
	do
		bytes = read(input->fd, input->buffer, READ_BYTES);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0) {
		archive_set_error(archive, errno, "%s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	input->is_zero = input->is_zero &&
			 (bytes == 0 ||
			  (input->buffer[0] == 0 && memcmp(input->buffer, input->buffer + 1, (size_t)bytes - 1) == 0));
	input->bytes += (uint64_t)bytes;
	if (input->is_zero && input->bytes > ZEROS_MAX) {
		archive_set_error(archive, EINVAL, "begins with more than 64 MiB of zero bytes");
		return ARCHIVE_FATAL;
	}
	*buffer = input->buffer;
	return bytes;
}

static int walk_input(struct walk *walk, struct archive *archive, struct input *input, const char *path)
{
	if (archive_read_open(archive, input, NULL, read_input, NULL) != ARCHIVE_OK)
		return damaged(path, archive, walk->error);
	int result = walk_archive(walk, archive, path);
	uint64_t used = (uint64_t)archive_filter_bytes(archive, -1);
	if (result == 0 && used < input->bytes)
		result = fc_error_set(walk->error, FC_EINVAL, "%s: cannot be read: from byte %llu on, it is no %s text",
				      path, (unsigned long long)used, archive_filter_name(archive, 0));
	return result;
}

static int walk_fd(struct walk *walk, int fd, const char *path)
{
	struct archive *archive = new_reader();
	struct input input = {.fd = fd, .is_zero = true, .buffer = malloc(READ_BYTES)};
	int result = archive == NULL || input.buffer == NULL
			     ? fc_error_set(walk->error, FC_ENOMEM, "%s: no memory", path)
			     : walk_input(walk, archive, &input, path);
	archive_read_free(archive);
	free(input.buffer);
	return result;
}

static int system_error(struct walk *walk, const char *path)
{
	return fc_error_set(walk->error, FC_ESYSTEM, "%s: %s", path, strerror(errno));
}

static int walk_path(struct walk *walk, const char *path, unsigned depth);

/* An entry of a folder: folders are entered, other names must look like traces. */
static int walk_entry(struct walk *walk, const char *folder, const char *entry, unsigned depth)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s", folder, entry) < 0)
		return fc_error_set(walk->error, FC_ENOMEM, "%s: no memory", folder);
	struct stat status;
	int result = 0;
	if (stat(path, &status) != 0)
		result = system_error(walk, path);
	else if (S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && is_trace_name(entry)))
		result = walk_path(walk, path, depth + 1);
	else
		(*walk->ignored_count)++;
	free(path);
	return result;
}

static int is_not_dots(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int walk_folder(struct walk *walk, const char *path, unsigned depth)
{
	struct dirent **entries;
	if (depth > FOLDER_DEPTH_MAX)
		return fc_error_set(walk->error, FC_ELIMIT, "%s: lies %u folders deep; allowed: %u", path, depth,
				    FOLDER_DEPTH_MAX);
	int count = scandir(path, &entries, is_not_dots, by_name);
	if (count < 0)
		return system_error(walk, path);
	int result = 0;
	for (int i = 0; i < count; i++) {
		if (result == 0)
			result = walk_entry(walk, path, entries[i]->d_name, depth);
		free(entries[i]);
	}
	free(entries);
	return result;
}

static int walk_path(struct walk *walk, const char *path, unsigned depth)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	if (fd < 0)
		return system_error(walk, path);
	int result;
	if (fstat(fd, &status) != 0)
		result = system_error(walk, path);
	else if (S_ISDIR(status.st_mode))
		result = walk_folder(walk, path, depth);
	else
		result = walk_fd(walk, fd, path);
	close(fd);
	return result;
}

int fc_source_walk(const char *path, fc_source_text_cb text_cb, void *context, uint64_t *ignored_count,
		   struct fc_error *error)
{
	struct walk walk = {.text_cb = text_cb, .context = context, .ignored_count = ignored_count, .error = error};
	if (strcmp(path, "-") == 0)
		return walk_fd(&walk, STDIN_FILENO, "(standard input)");
	return walk_path(&walk, path, 0);
}

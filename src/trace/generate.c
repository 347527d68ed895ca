/* Where generated sessions go: into memory, a folder, an archive or standard output. Sessions are made one at a time,
 * and into memory they go through the reader of the format, so a trace is the same whichever way it came. */
#define _GNU_SOURCE /* asprintf */
#include "trace/generate.h"

#include "base/check.h"
#include "trace/model.h"
#include "trace/reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int no_memory(struct fc_error *error)
{
	return fc_error_set(error, FC_ENOMEM, "no memory for a generated session");
}

static int system_error(const char *path, struct fc_error *error)
{
	return fc_error_set(error, FC_ESYSTEM, "%s: %s", path, strerror(errno));
}

/* ---- into memory --------------------------------------------------------------------------------------------------
 */

static int read_session(struct fc_reader *reader, const struct fc_generate_opts *generate, uint32_t index,
			struct fc_error *error)
{
	struct fc_json_text text = {.file = "(generated)", .first_line = 1, .bytes = ""};
	struct fc_json_at at = {0};
	json_t *session = fc_model_session(generate, index);
	int result = session == NULL ? no_memory(error) : fc_claude_read(reader, &text, &at, session, error);
	json_decref(session);
	return result;
}

int fc_trace_generate(const struct fc_generate_opts *generate, const struct fc_trace_opts *opts,
		      struct fc_trace **trace, struct fc_error *error)
{
	struct fc_error unread;
	struct fc_reader reader = {.opts = opts};
	error = error != NULL ? error : &unread;
	*trace = NULL;
	int result = fc_model_check(generate, error);
	if (result == 0)
		result = fc_reader_check_opts(opts, error);
	if (result == 0)
		result = fc_build_new(opts, &reader.build, error);
	uint64_t count = generate->session_count;
	if (opts->limit != 0)
		count = fc_min_u64(count, opts->limit);
	for (uint32_t i = 0; result == 0 && i < count; i++)
		result = read_session(&reader, generate, i, error);
	if (result == 0)
		result = fc_build_finish(reader.build, trace, error);
	fc_build_free(reader.build);
	fc_json_ids_deinit(&reader.ids);
	return result;
}

/* ---- into files ---------------------------------------------------------------------------------------------------
 */

/* Where each session's text goes. */
struct output {
	const char *path; /* that is written: of a file, one beside the wanted one */
	const char *name; /* that was asked for */
	FILE *stream;
	int (*write_cb)(struct output *output, const char *name, const char *text, size_t bytes,
			struct fc_error *error);
	struct archive *archive;
};

static int write_stream(const char *path, FILE *stream, const char *text, size_t bytes, struct fc_error *error)
{
	if (fwrite(text, 1, bytes, stream) != bytes || fputc('\n', stream) == EOF || fflush(stream) != 0)
		return system_error(path, error);
	return 0;
}

static int write_stdout(struct output *output, const char *name, const char *text, size_t bytes, struct fc_error *error)
{
	(void)output;
	(void)name;
	return write_stream("(standard output)", stdout, text, bytes, error);
}

static int write_to_stream(struct output *output, const char *name, const char *text, size_t bytes,
			   struct fc_error *error)
{
	(void)name;
	return write_stream(output->path, output->stream, text, bytes, error);
}

static int write_new_file(const char *path, const char *text, size_t bytes, struct fc_error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (stream == NULL)
		return system_error(path, error);
	int result = write_stream(path, stream, text, bytes, error);
	if (fclose(stream) != 0 && result == 0)
		result = system_error(path, error);
	return result;
}

static int write_to_folder(struct output *output, const char *name, const char *text, size_t bytes,
			   struct fc_error *error)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s.json", output->path, name) < 0)
		return no_memory(error);
	int result = write_new_file(path, text, bytes, error);
	free(path);
	return result;
}

static int archive_error(const struct output *output, struct fc_error *error)
{
	return fc_error_set(error, FC_ESYSTEM, "%s: cannot be written: %s", output->path,
			    archive_error_string(output->archive));
}

static int write_to_archive(struct output *output, const char *name, const char *text, size_t bytes,
			    struct fc_error *error)
{
	char path[128];
	snprintf(path, sizeof(path), "generated/%s.json", name);
	struct archive_entry *entry = archive_entry_new();
	if (entry == NULL)
		return no_memory(error);
	archive_entry_set_pathname(entry, path);
	archive_entry_set_size(entry, (la_int64_t)bytes);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0600);
	archive_entry_set_mtime(entry, 0, 0);
	int result = 0;
	if (archive_write_header(output->archive, entry) != ARCHIVE_OK ||
	    archive_write_data(output->archive, text, bytes) != (la_ssize_t)bytes)
		result = archive_error(output, error);
	archive_entry_free(entry);
	return result;
}

static int write_session(struct output *output, json_t *session, struct fc_error *error)
{
	char *text = json_dumps(session, JSON_COMPACT | JSON_REAL_PRECISION(15));
	if (text == NULL)
		return no_memory(error);
	const char *name = json_string_value(json_object_get(session, "id"));
	int result = output->write_cb(output, name, text, strlen(text), error);
	free(text);
	return result;
}

static int write_sessions(const struct fc_generate_opts *generate, struct output *output, struct fc_error *error)
{
	int result = 0;
	for (uint32_t i = 0; result == 0 && i < generate->session_count; i++) {
		json_t *session = fc_model_session(generate, i);
		result = session == NULL ? no_memory(error) : write_session(output, session, error);
		json_decref(session);
	}
	return result;
}

static int count_entry(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Sessions of an earlier trace must not get mixed with those of this one. */
static int prepare_folder(const char *path, struct fc_error *error)
{
	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return system_error(path, error);
	struct dirent **entries;
	int count = scandir(path, &entries, count_entry, NULL);
	if (count < 0)
		return system_error(path, error);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	if (count > 0)
		return fc_error_set(error, FC_EINVAL,
				    "%s: holds %d files; allowed: a new or empty folder, or a name that ends in .tar, "
				    ".tar.gz or .tar.zst",
				    path, count);
	return 0;
}

static bool ends_with(const char *name, const char *end)
{
	size_t name_bytes = strlen(name), end_bytes = strlen(end);
	return name_bytes >= end_bytes && strcmp(name + name_bytes - end_bytes, end) == 0;
}

static int open_archive(struct output *output, int fd, struct fc_error *error)
{
	output->archive = archive_write_new();
	if (output->archive == NULL)
		return no_memory(error);
	int status = ARCHIVE_OK;
	if (ends_with(output->name, ".gz"))
		status = archive_write_add_filter_gzip(output->archive);
	else if (ends_with(output->name, ".zst"))
		status = archive_write_add_filter_zstd(output->archive);
	if (status == ARCHIVE_OK)
		status = archive_write_set_format_pax_restricted(output->archive);
	if (status == ARCHIVE_OK && ends_with(output->name, ".gz"))
		status = archive_write_set_options(output->archive, "gzip:!timestamp");
	if (status == ARCHIVE_OK)
		status = archive_write_open_fd(output->archive, fd);
	return status == ARCHIVE_OK ? 0 : archive_error(output, error);
}

static int write_archive(const struct fc_generate_opts *generate, struct output *output, int fd, struct fc_error *error)
{
	output->write_cb = write_to_archive;
	int result = open_archive(output, fd, error);
	if (result == 0)
		result = write_sessions(generate, output, error);
	if (result == 0 && archive_write_close(output->archive) != ARCHIVE_OK)
		result = archive_error(output, error);
	archive_write_free(output->archive);
	return result;
}

static int write_lines(const struct fc_generate_opts *generate, struct output *output, int fd, struct fc_error *error)
{
	int copy = dup(fd);
	output->write_cb = write_to_stream;
	output->stream = copy < 0 ? NULL : fdopen(copy, "w");
	if (output->stream == NULL)
		return system_error(output->path, error);
	int result = write_sessions(generate, output, error);
	if (fclose(output->stream) != 0 && result == 0)
		result = system_error(output->path, error);
	return result;
}

/* Into a file beside the wanted one, which then takes its name. */
static int write_file(const struct fc_generate_opts *generate, const char *path, struct fc_error *error)
{
	char *beside = NULL;
	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return no_memory(error);
	struct output output = {.path = beside, .name = path};
	int result, fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0) {
		result = system_error(path, error);
		free(beside);
		return result;
	}
	result = ends_with(path, ".jsonl") ? write_lines(generate, &output, fd, error)
					   : write_archive(generate, &output, fd, error);
	if (close(fd) != 0 && result == 0)
		result = system_error(path, error);
	if (result == 0 && rename(beside, path) != 0)
		result = system_error(path, error);
	if (result != 0)
		unlink(beside);
	free(beside);
	return result;
}

/* A name that looks like a file's, and is no folder's that is there. */
static bool has_extension(const char *path)
{
	struct stat status;
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	const char *dot = name[0] == '\0' ? NULL : strrchr(name + 1, '.');
	return dot != NULL && strcmp(name, "..") != 0 && !(stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

int fc_generate_write(const struct fc_generate_opts *generate, const char *path, bool is_replacing,
		      struct fc_error *error)
{
	static const char *const ends[] = {".tar", ".tar.gz", ".tar.zst", ".jsonl"};
	struct output output = {.path = path, .name = path, .write_cb = write_to_folder};
	struct stat status;
	bool is_file = false;
	int result = fc_model_check(generate, error);
	if (result != 0)
		return result;
	if (strcmp(path, "-") == 0) {
		output.write_cb = write_stdout;
		return write_sessions(generate, &output, error);
	}
	for (size_t i = 0; i < fc_array_len(ends); i++)
		is_file |= ends_with(path, ends[i]);
	if (is_file && !is_replacing && lstat(path, &status) == 0)
		return fc_error_set(error, FC_EINVAL,
				    "%s: is there already; allowed: another name, or --force to replace it", path);
	if (is_file)
		return write_file(generate, path, error);
	if (has_extension(path))
		return fc_error_set(
			error, FC_EINVAL,
			"%s: an extension that is not written; allowed: .tar, .tar.gz, .tar.zst, .jsonl, or a "
			"folder, whose name may end in /",
			path);
	result = prepare_folder(path, error);
	return result != 0 ? result : write_sessions(generate, &output, error);
}

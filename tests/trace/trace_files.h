/* Files for the tests of traces: a folder of one test's own, texts in it, and the same texts packed. */
#ifndef FC_TESTS_TRACE_FILES_H
#define FC_TESTS_TRACE_FILES_H

#include "base/check.h"
#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum packing { PLAIN, GZIP, ZSTD };

struct member {
	const char *name; /* NULL: not a tar, the bytes themselves */
	const char *bytes;
	size_t byte_count;
};

static inline char *folder_new(void)
{
	const char *parent = getenv("TMPDIR");
	char *folder = NULL;
	assert_true(asprintf(&folder, "%s/fc-trace-XXXXXX", parent != NULL ? parent : "/tmp") > 0);
	assert_non_null(mkdtemp(folder));
	return folder;
}

static inline int folder_remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

static inline void folder_free(char *folder)
{
	assert_int_equal(nftw(folder, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(folder);
}

/* A path in the folder, in one of a few buffers that are used in turn. */
static inline const char *in_folder(const char *folder, const char *name)
{
	static char paths[8][512];
	static unsigned turn;
	char *path = paths[turn++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static inline void write_bytes(const char *path, const char *bytes, size_t byte_count)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, byte_count, file), byte_count);
	assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
	write_bytes(path, text, strlen(text));
}

static inline void write_packed(const char *path, enum packing packing, const struct member *members,
				size_t member_count)
{
	struct archive *archive = archive_write_new();
	if (packing == GZIP)
		assert_int_equal(archive_write_add_filter_gzip(archive), ARCHIVE_OK);
	if (packing == ZSTD)
		assert_int_equal(archive_write_add_filter_zstd(archive), ARCHIVE_OK);
	if (members[0].name == NULL)
		assert_int_equal(archive_write_set_format_raw(archive), ARCHIVE_OK);
	else
		assert_int_equal(archive_write_set_format_ustar(archive), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
	for (size_t i = 0; i < member_count; i++) {
		struct archive_entry *entry = archive_entry_new();
		archive_entry_set_pathname(entry, members[i].name != NULL ? members[i].name : "data");
		archive_entry_set_filetype(entry, AE_IFREG);
		archive_entry_set_perm(entry, 0600);
		archive_entry_set_size(entry, (la_int64_t)members[i].byte_count);
		assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
		assert_int_equal(archive_write_data(archive, members[i].bytes, members[i].byte_count),
				 members[i].byte_count);
		archive_entry_free(entry);
	}
	assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
	archive_write_free(archive);
}

static inline char *read_bytes(const char *path, size_t *byte_count)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*byte_count = (size_t)ftell(file);
	rewind(file);
	char *bytes = malloc(*byte_count + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *byte_count, file), *byte_count);
	bytes[*byte_count] = '\0';
	fclose(file);
	return bytes;
}

static inline struct fc_trace *load(const char *path, const struct fc_trace_opts *opts)
{
	struct fc_trace_opts standard;
	struct fc_trace *trace;
	struct fc_error error = {0};
	fc_trace_opts_init(&standard);
	int result = fc_trace_load(&path, 1, opts != NULL ? opts : &standard, &trace, &error);
	if (result != 0)
		fail_msg("%s: %s", path, error.text);
	return trace;
}

/* Loads `path` with standard input being `file`. */
static inline struct fc_trace *load_from_input(const char *file)
{
	int saved = dup(STDIN_FILENO);
	int input = open(file, O_RDONLY);
	assert_true(input >= 0 && dup2(input, STDIN_FILENO) == STDIN_FILENO);
	close(input);
	struct fc_trace *trace = load("-", NULL);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	return trace;
}

static inline void assert_requests_equal(const struct fc_trace_request *a, const struct fc_trace_request *b)
{
	assert_int_equal(a->arrival_ns, b->arrival_ns);
	assert_int_equal(a->input_tokens, b->input_tokens);
	assert_int_equal(a->output_tokens, b->output_tokens);
	assert_int_equal(a->shared_tokens, b->shared_tokens);
	assert_int_equal(a->suffix_count, b->suffix_count);
	assert_int_equal(a->prefix_count, b->prefix_count);
	assert_int_equal(a->session, b->session);
	assert_int_equal(a->turn, b->turn);
	assert_int_equal(a->previous, b->previous);
	assert_int_equal(a->next, b->next);
	assert_int_equal(a->kind, b->kind);
}

static inline void assert_traces_equal(const struct fc_trace *a, const struct fc_trace *b)
{
	assert_int_equal(a->format, b->format);
	assert_int_equal(a->block_tokens, b->block_tokens);
	assert_int_equal(a->request_count, b->request_count);
	assert_int_equal(a->session_count, b->session_count);
	assert_int_equal(a->line_count, b->line_count);
	assert_int_equal(a->reference_count, b->reference_count);
	assert_int_equal(a->id_bound, b->id_bound);
	for (uint32_t i = 0; i < a->session_count; i++) {
		assert_string_equal(a->sessions[i].name, b->sessions[i].name);
		assert_int_equal(a->sessions[i].start_ns, b->sessions[i].start_ns);
		assert_int_equal(a->sessions[i].duration_ns, b->sessions[i].duration_ns);
	}
	for (uint32_t i = 0; i < a->request_count; i++) {
		const struct fc_trace_request *of_a = &a->requests[i], *of_b = &b->requests[i];
		assert_requests_equal(of_a, of_b);
		assert_memory_equal(a->suffix_ids + of_a->suffix_start, b->suffix_ids + of_b->suffix_start,
				    of_a->suffix_count * sizeof(uint64_t));
	}
}

#endif

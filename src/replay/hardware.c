#include "replay/hardware.h"

#include "base/check.h"
#include "config/pairs.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(member) offsetof(struct fc_hardware, member)
#define SECOND_NS 1000000000ull
#define TIB (1ull << 40)
#define SPEED_MIN 1000ull
#define SPEED_MAX 1000000000000000ull

#define BYTES(key, min_bytes)                                                                                          \
	{                                                                                                              \
		.name = #key, .type = FC_OPTION_SIZE, .field_offset = FIELD(key), .min = (min_bytes), .max = 256 * TIB \
	}
#define SPEED(key)                                                                                                     \
	{                                                                                                              \
		.name = #key, .type = FC_OPTION_COUNT, .field_offset = FIELD(key), .min = SPEED_MIN, .max = SPEED_MAX  \
	}
#define TIME(key)                                                                                                      \
	{                                                                                                              \
		.name = #key, .type = FC_OPTION_DURATION, .field_offset = FIELD(key), .max = SECOND_NS                 \
	}
#define COUNT(key, least, most)                                                                                        \
	{                                                                                                              \
		.name = #key, .type = FC_OPTION_COUNT, .field_offset = FIELD(key), .min = (least), .max = (most)       \
	}
#define SWITCH(key, field)                                                                                             \
	{                                                                                                              \
		.name = #key, .type = FC_OPTION_BOOL, .field_offset = FIELD(field)                                     \
	}

static const struct fc_option rows[] = {
	{.name = "model", .type = FC_OPTION_TEXT, .field_offset = FIELD(model)},
	COUNT(workers, 1, 1024),
	BYTES(hbm_kv_bytes, 1),
	SPEED(hbm_bytes_per_s),
	{.name = "prefill_tokens_per_s",
	 .type = FC_OPTION_RATE,
	 .field_offset = FIELD(prefill_tokens_per_s),
	 .ratio_min = 1,
	 .ratio_max = 1e12},
	COUNT(prefill_context_tokens, 0, 1ull << 40),
	TIME(step_ns),
	TIME(decode_step_ns),
	TIME(decode_request_ns),
	SWITCH(decode, is_decoding),
	COUNT(chunk_tokens, 1, 1ull << 32),
	COUNT(batch_max, 1, 65536),
	SWITCH(overlap, has_overlap),
	SWITCH(cpu_device, has_cpu_device),
	BYTES(memory_bytes, 0),
	BYTES(ssd_bytes, 0),
	SPEED(dram_bytes_per_s),
	SPEED(link_up_bytes_per_s),
	SPEED(link_down_bytes_per_s),
	TIME(copy_ns),
	TIME(slice_ns),
	TIME(window_copy_ns),
	{.name = "window_curve", .type = FC_OPTION_TEXT, .field_offset = FIELD(window_curve)},
	{.name = "window_large_curve", .type = FC_OPTION_TEXT, .field_offset = FIELD(window_large_curve)},
	BYTES(window_large_bytes, 0),
	TIME(wake_ns),
	TIME(load_ns),
	COUNT(ssd_count, 1, 256),
	BYTES(ssd_align_bytes, 64),
	BYTES(ssd_stripe_bytes, 4096),
	BYTES(ssd_transfer_bytes, 4096),
	SPEED(ssd_read_bytes_per_s),
	{.name = "ssd_read_curve", .type = FC_OPTION_TEXT, .field_offset = FIELD(ssd_read_curve)},
	SPEED(ssd_write_bytes_per_s),
	SPEED(ssd_first_write_bytes_per_s),
	TIME(ssd_command_ns),
	TIME(ssd_latency_ns),
	TIME(ssd_sync_ns),
	SWITCH(ssd_joint_reports, has_joint_reports),
	TIME(direct_command_ns),
	TIME(kernel_command_ns),
	SPEED(kernel_copy_bytes_per_s),
	TIME(file_open_ns),
};

struct reader {
	struct fc_hardware *hardware;
	const char *path;
	struct fc_error *error;
	size_t seen_at[sizeof(rows) / sizeof(rows[0])];
};

static const struct fc_option *find_row(const char *key)
{
	for (size_t i = 0; i < fc_array_len(rows); i++)
		if (strcmp(rows[i].name, key) == 0)
			return &rows[i];
	return NULL;
}

/* ---- the curve ---- */

/* "BYTES=SPEED" at `text`; returns what is behind it, or NULL. */
static const char *read_point(const char *text, uint64_t *bytes, uint64_t *bytes_per_s)
{
	char *end;
	if (*text < '0' || *text > '9')
		return NULL;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (end[0] != '=' || end[1] < '0' || end[1] > '9')
		return NULL;
	*bytes_per_s = strtoull(end + 1, &end, 10);
	bool is_good = errno == 0 && *bytes > 0 && *bytes_per_s >= SPEED_MIN && *bytes_per_s <= SPEED_MAX;
	return is_good && (*end == ',' || *end == '\0') ? end : NULL;
}

static int read_curve(struct fc_speed_curve *curve, const char *text, const char *place, struct fc_error *error)
{
	*curve = (struct fc_speed_curve){.count = 0};
	if (strcmp(text, "none") == 0)
		return FC_OK;
	for (const char *at = text;; at++) {
		uint64_t bytes = 0, bytes_per_s = 0, last = curve->count > 0 ? curve->bytes[curve->count - 1] : 0;
		at = curve->count < FC_SPEED_POINTS_MAX ? read_point(at, &bytes, &bytes_per_s) : NULL;
		if (at == NULL || bytes <= last)
			return fc_error_set(
				error, FC_EINVAL,
				"%s: \"%.80s\" does not fit; none, or up to %d of BYTES=BYTES_PER_S with commas, "
				"bytes ascending, speeds from %llu to %llu, are allowed",
				place, text, FC_SPEED_POINTS_MAX, (unsigned long long)SPEED_MIN,
				(unsigned long long)SPEED_MAX);
		curve->bytes[curve->count] = bytes;
		curve->bytes_per_s[curve->count++] = bytes_per_s;
		if (*at == '\0')
			return FC_OK;
	}
}

uint64_t fc_speed_at(const struct fc_speed_curve *curve, uint64_t bytes)
{
	uint64_t above = 0;
	fc_check(curve->count > 0);
	while (above < curve->count && curve->bytes[above] < bytes)
		above++;
	if (above == 0)
		return curve->bytes_per_s[0];
	if (above == curve->count)
		return curve->bytes_per_s[above - 1];
	double low = (double)curve->bytes_per_s[above - 1], high = (double)curve->bytes_per_s[above];
	double whole = log((double)curve->bytes[above] / (double)curve->bytes[above - 1]);
	double part = log((double)bytes / (double)curve->bytes[above - 1]);
	return (uint64_t)(low + (high - low) * part / whole);
}

/* ---- reading ---- */

/* Texts outlive the file that they were read from. */
static const struct {
	size_t text_offset, curve_offset; /* 0: no curve; that of the name is the first field */
} texts[] = {
	{FIELD(model), 0},
	{FIELD(ssd_read_curve), FIELD(read_curve)},
	{FIELD(window_curve), FIELD(slice_curve)},
	{FIELD(window_large_curve), FIELD(large_slice_curve)},
};

/* Keeps a copy of the text in `*value`, and reads it where it is a curve. */
static int read_text(const struct reader *reader, const struct fc_option *row, const char *place, const char **value)
{
	size_t i = 0;
	while (texts[i].text_offset != row->field_offset)
		fc_check(++i < fc_array_len(texts));
	*value = reader->hardware->owned_texts[i] = strdup(*value);
	if (*value == NULL)
		return fc_error_set(reader->error, FC_ENOMEM, "no memory for %s", reader->path);
	if (texts[i].curve_offset == 0)
		return FC_OK;
	struct fc_speed_curve *curve = (void *)((char *)reader->hardware + texts[i].curve_offset);
	return read_curve(curve, *value, place, reader->error);
}

static int on_pair(void *context, const struct fc_pair *pair)
{
	struct reader *reader = context;
	char place[FC_ERROR_TEXT_BYTES / 2];
	const char *value = pair->value;
	const struct fc_option *row = find_row(pair->key);
	if (row == NULL || strlen(pair->key) != pair->key_len)
		return fc_error_set(reader->error, FC_EINVAL, "%s:%zu: a profile has no \"%.80s\"", reader->path,
				    pair->line, pair->key);
	size_t *seen_at = &reader->seen_at[row - rows];
	if (*seen_at != 0)
		return fc_error_set(reader->error, FC_EINVAL, "%s:%zu: \"%s\" stands twice, first in line %zu",
				    reader->path, pair->line, pair->key, *seen_at);
	*seen_at = pair->line;
	snprintf(place, sizeof(place), "%.160s:%zu: %s", reader->path, pair->line, pair->key);
	if (row->type == FC_OPTION_TEXT) {
		int code = read_text(reader, row, place, &value);
		if (code != FC_OK)
			return code;
	}
	return fc_option_set_in(row, value, reader->hardware, place, reader->error);
}

static int read_file(struct fc_hardware *hardware, const char *path, struct fc_error *error)
{
	struct reader reader = {.hardware = hardware, .path = path, .error = error};
	int code = fc_pairs_read(path, on_pair, &reader, error);
	for (size_t i = 0; i < fc_array_len(rows) && code == FC_OK; i++)
		if (reader.seen_at[i] == 0)
			code = fc_error_set(error, FC_EINVAL, "%s: \"%s\" is missing", path, rows[i].name);
	if (code == FC_OK && hardware->ssd_transfer_bytes % 4096 != 0)
		code = fc_error_set(error, FC_EINVAL, "%s: ssd_transfer_bytes is %llu; a multiple of 4096 is allowed",
				    path, (unsigned long long)hardware->ssd_transfer_bytes);
	if (code == FC_OK && (!fc_is_power_of_two(hardware->ssd_align_bytes) || hardware->ssd_align_bytes > 4096))
		code = fc_error_set(error, FC_EINVAL,
				    "%s: ssd_align_bytes is %llu; a power of two from 64 to 4096 is allowed", path,
				    (unsigned long long)hardware->ssd_align_bytes);
	return code;
}

/* ---- finding one ---- */

/* Where profiles lie: beside the sources that this was built from, or where they were installed. */
static const char *profile_folder(void)
{
	return access(FLATCAKE_SOURCE_PROFILES, R_OK) == 0 ? FLATCAKE_SOURCE_PROFILES : FLATCAKE_INSTALLED_PROFILES;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_profile(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static int unknown_profile(const char *name, struct fc_error *error)
{
	char names[FC_ERROR_TEXT_BYTES / 2] = "";
	struct dirent **entries = NULL;
	size_t used = 0;
	int count = scandir(profile_folder(), &entries, is_profile, compare_names);
	for (int i = 0; i < count; i++) {
		int length = (int)strlen(entries[i]->d_name) - 5;
		if (used + (size_t)length + 3 < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.*s", used > 0 ? ", " : "",
						 length, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return fc_error_set(error, FC_ENOENT, "there is no hardware profile \"%.80s\"; there are %s in %.120s", name,
			    used > 0 ? names : "none", profile_folder());
}

static void set_name(struct fc_hardware *hardware, const char *path)
{
	const char *last = strrchr(path, '/');
	last = last == NULL ? path : last + 1;
	size_t length = strlen(last);
	if (length > 5 && strcmp(last + length - 5, ".yaml") == 0)
		length -= 5;
	snprintf(hardware->name, sizeof(hardware->name), "%.*s", (int)fc_min_u64(length, sizeof(hardware->name) - 1),
		 last);
}

int fc_hardware_load(struct fc_hardware *hardware, const char *name, struct fc_error *error)
{
	char *path = NULL;
	*hardware = (struct fc_hardware){0};
	set_name(hardware, name);
	if (strchr(name, '/') != NULL || access(name, R_OK) == 0)
		return read_file(hardware, name, error);
	if (asprintf(&path, "%s/%s.yaml", profile_folder(), name) < 0)
		return fc_error_set(error, FC_ENOMEM, "no memory for the path of a profile");
	int code = access(path, R_OK) == 0 ? read_file(hardware, path, error) : unknown_profile(name, error);
	free(path);
	return code;
}

void fc_hardware_deinit(struct fc_hardware *hardware)
{
	for (size_t i = 0; i < fc_array_len(hardware->owned_texts); i++)
		free(hardware->owned_texts[i]);
	*hardware = (struct fc_hardware){0};
}

/* ---- writing one ---- */

#define VALUE_BYTES 512

static void print_value(const struct fc_option *row, const struct fc_hardware *hardware, char text[VALUE_BYTES])
{
	const void *field = (const char *)hardware + row->field_offset;
	switch (row->type) {
	case FC_OPTION_TEXT:
		snprintf(text, VALUE_BYTES, "%s", *(const char *const *)field);
		break;
	case FC_OPTION_BOOL:
		snprintf(text, VALUE_BYTES, "%s", *(const bool *)field ? "on" : "off");
		break;
	case FC_OPTION_RATE:
		snprintf(text, VALUE_BYTES, isfinite(*(const double *)field) ? "%.9g" : "max", *(const double *)field);
		break;
	default:
		snprintf(text, VALUE_BYTES, "%llu%s", (unsigned long long)*(const uint64_t *)field,
			 row->type == FC_OPTION_DURATION ? "ns" : "");
	}
}

static const char *origin_of(const char *name, const struct fc_hardware_origin *origins, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(origins[i].name, name) == 0)
			return origins[i].origin;
	return NULL;
}

int fc_hardware_print(const struct fc_hardware *hardware, const char *head, const struct fc_hardware_origin *origins,
		      size_t origin_count, FILE *file)
{
	for (const char *line = head; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		fprintf(file, "#%s%.*s\n", length > 0 ? " " : "", (int)length, line);
		line += length + (line[length] == '\n');
	}
	fprintf(file, "\n");
	for (size_t i = 0; i < fc_array_len(rows); i++) {
		const char *origin = origin_of(rows[i].name, origins, origin_count);
		char value[VALUE_BYTES], pair[VALUE_BYTES + 64];
		fc_check(origin != NULL); /* a number without an origin is not to be believed */
		print_value(&rows[i], hardware, value);
		snprintf(pair, sizeof(pair), "%s: %s", rows[i].name, value);
		fprintf(file, "%-36s # %s\n", pair, origin);
	}
	return fflush(file) == 0 && !ferror(file) ? FC_OK : FC_EIO;
}

/* ---- how fast it computes ---- */

uint64_t fc_hardware_prefill_ns(const struct fc_hardware *hardware, uint64_t tokens, uint64_t context)
{
	if (!isfinite(hardware->prefill_tokens_per_s))
		return 0;
	double time_ns = (double)tokens * 1e9 / hardware->prefill_tokens_per_s;
	if (hardware->prefill_context_tokens > 0)
		time_ns *= 1 + ((double)context + (double)tokens / 2) / (double)hardware->prefill_context_tokens;
	return (uint64_t)(time_ns + 0.5);
}

uint64_t fc_hardware_decode_ns(const struct fc_hardware *hardware, uint64_t requests, uint64_t kv_bytes)
{
	double reading_ns = (double)kv_bytes * 1e9 / (double)hardware->hbm_bytes_per_s;
	return requests == 0 ? 0
			     : hardware->decode_step_ns + requests * hardware->decode_request_ns + (uint64_t)reading_ns;
}
